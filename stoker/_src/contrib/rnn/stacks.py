"""The names that `tf.contrib.rnn` shares with `tf.nn`, and stacks of bidirectional networks."""

from __future__ import annotations

from typing import Any

from stoker._src.base.export import export, export_constant
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.tensor import Tensor
from stoker._src.layers import rnn, rnn_cells, rnn_wrappers
from stoker._src.ops.array import joining, shaping
from stoker._src.ops.variables import variable_scope

for _module, _names in (
    (rnn_cells, "BasicLSTMCell BasicRNNCell GRUCell LSTMCell LSTMStateTuple MultiRNNCell RNNCell"),
    (rnn_wrappers, "DeviceWrapper DropoutWrapper ResidualWrapper"),
    (rnn, "static_bidirectional_rnn static_rnn static_state_saving_rnn"),
):
    for _name in _names.split():
        export_constant(_module.__name__, _name, v1=f"contrib.rnn.{_name}")


@export(v1="contrib.rnn.transpose_batch_time")
def transpose_batch_time(x: Any) -> Tensor:
    """Swaps the first two dimensions.

    Raises:
        ValueError: the rank is known and less than 2.
    """
    x = convert_to_tensor(x)
    rank = x.static_shape.rank
    if rank is None:
        return x
    if rank < 2:
        raise ValueError(f"Expected input tensor {x} to have rank at least 2, but saw shape: {x.shape}")
    return shaping.transpose(x, [1, 0, *range(2, rank)])


@export(v1="contrib.rnn.best_effort_input_batch_size")
def best_effort_input_batch_size(flat_input: Any) -> Any:
    """The batch size of inputs [time, batch, ...]: a number if the shape of one of them says it, else a tensor.

    Raises:
        ValueError: an input with a known rank below 2 comes before one that says it.
    """
    for each in flat_input:
        shape = each.static_shape
        if shape.rank is None:
            continue
        if shape.rank < 2:
            raise ValueError(f"Expected input tensor {each} to have rank at least 2")
        if shape[1] is not None:
            return shape[1]
    return shaping.shape(flat_input[0])[1]


def _check_stacks(cells_fw: Any, cells_bw: Any, states_fw: Any, states_bw: Any) -> None:
    if cells_fw is None:
        raise ValueError("Must specify at least one fw cell for BidirectionalRNN.")
    if cells_bw is None:
        raise ValueError("Must specify at least one bw cell for BidirectionalRNN.")
    for name, cells in (("fw", cells_fw), ("bw", cells_bw)):
        if not isinstance(cells, list):
            raise ValueError(f"cells_{name} must be a list of RNNCells (one per layer).")
    if len(cells_fw) != len(cells_bw):
        raise ValueError("Forward and Backward cells must have the same depth.")
    for name, states in (("fw", states_fw), ("bw", states_bw)):
        if states is not None and (not isinstance(states, list) or len(states) != len(cells_fw)):
            raise ValueError(f"initial_states_{name} must be a list of state tensors (one per layer).")


@export(v1="contrib.rnn.stack_bidirectional_rnn")
def stack_bidirectional_rnn(
    cells_fw: Any,
    cells_bw: Any,
    inputs: Any,
    initial_states_fw: Any = None,
    initial_states_bw: Any = None,
    dtype: Any = None,
    sequence_length: Any = None,
    scope: Any = None,
) -> Any:
    """Stacks `static_bidirectional_rnn`: (outputs of the last layer, forward states, backward states), one state a layer."""
    _check_stacks(cells_fw, cells_bw, initial_states_fw, initial_states_bw)
    states_fw, states_bw = [], []
    with variable_scope.variable_scope(scope or "stack_bidirectional_rnn"):
        for i, (forward, backward) in enumerate(zip(cells_fw, cells_bw)):
            with variable_scope.variable_scope(f"cell_{i}") as opened:
                inputs, state_fw, state_bw = rnn.static_bidirectional_rnn(
                    forward,
                    backward,
                    inputs,
                    initial_states_fw[i] if initial_states_fw else None,
                    initial_states_bw[i] if initial_states_bw else None,
                    dtype,
                    sequence_length,
                    opened,
                )
            states_fw.append(state_fw)
            states_bw.append(state_bw)
    return inputs, tuple(states_fw), tuple(states_bw)


@export(v1="contrib.rnn.stack_bidirectional_dynamic_rnn")
def stack_bidirectional_dynamic_rnn(
    cells_fw: Any,
    cells_bw: Any,
    inputs: Any,
    initial_states_fw: Any = None,
    initial_states_bw: Any = None,
    dtype: Any = None,
    sequence_length: Any = None,
    parallel_iterations: int | None = None,
    time_major: bool = False,
    scope: Any = None,
    swap_memory: bool = False,
) -> Any:
    """Stacks `bidirectional_dynamic_rnn`: (outputs of the last layer, forward states, backward states), one state a layer."""
    _check_stacks(cells_fw, cells_bw, initial_states_fw, initial_states_bw)
    states_fw, states_bw = [], []
    with variable_scope.variable_scope(scope or "stack_bidirectional_rnn"):
        for i, (forward, backward) in enumerate(zip(cells_fw, cells_bw)):
            with variable_scope.variable_scope(f"cell_{i}"):
                outputs, (state_fw, state_bw) = rnn.bidirectional_dynamic_rnn(
                    forward,
                    backward,
                    inputs,
                    sequence_length,
                    initial_states_fw[i] if initial_states_fw else None,
                    initial_states_bw[i] if initial_states_bw else None,
                    dtype,
                    parallel_iterations,
                    swap_memory,
                    time_major,
                )
                inputs = joining.concat(outputs, 2)
            states_fw.append(state_fw)
            states_bw.append(state_bw)
    return inputs, tuple(states_fw), tuple(states_bw)
