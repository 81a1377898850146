"""`tf.lite.experimental.nn`: recurrent cells that the converter recognises, and the loop around them.

The cells compute the same as the cells of `tf.nn.rnn_cell`. Their weights have the layout of TFLite's fused ops (one matrix per gate, output size
first). `OpHint`s mark the cells, so that a converted model has one UNIDIRECTIONAL_SEQUENCE_LSTM or _RNN instead of the loop.
"""

from __future__ import annotations

import weakref
from typing import Any

from stoker._src.base.export import export
from stoker._src.graph.behavior import control_flow_v2_enabled
from stoker._src.graph.context import get_default_graph
from stoker._src.graph.tensor import Tensor
from stoker._src.layers.base import InputSpec, Layer, as_activation, dims
from stoker._src.layers.rnn import run_in_loop
from stoker._src.layers.rnn_cells import LSTMStateTuple, RNNCell, check_cell
from stoker._src.lite.op_hints import OpHint
from stoker._src.ops.array import joining
from stoker._src.ops.linalg import matrix_products
from stoker._src.ops.math import clipping, unary_functions
from stoker._src.ops.nn import bias
from stoker._src.ops.variables import initializers

_GATES = ("input", "forget", "cell", "output")
# Arguments of the fused LSTM, by number.
_INPUT, _INPUT_WEIGHTS, _RECURRENT_WEIGHTS, _BIASES, _PROJECTION, _OUTPUT_STATE, _CELL_STATE = 0, 1, 5, 12, 16, 18, 19
_PEEPHOLES = {"f": 10, "i": 9, "o": 11}


class _HintedCell(RNNCell):
    """A cell whose weights and steps are marked by a hint. Each graph in which the cell runs has its own hint."""

    _function = ""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.input_spec = InputSpec(ndim=2)
        self._hints: Any = weakref.WeakKeyDictionary()

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        return Layer.__call__(self, inputs, state, scope=scope)

    def _hinted(self) -> tuple[OpHint, dict[str, Tensor]]:
        """The hint in the current graph, and the weights marked by it."""
        graph = get_default_graph()
        found = self._hints.get(graph)
        if found is None:
            hint = OpHint(self._function, **self._hint_attrs())
            wrapped = {
                name: hint.add_input(weight, name=name, index_override=index)
                for name, (index, weight) in self._arguments().items()
            }
            found = self._hints[graph] = (hint, wrapped)
        return found

    def _hint_attrs(self) -> dict[str, Any]:
        raise NotImplementedError

    def _arguments(self) -> dict[str, tuple[int, Any]]:
        """Name -> (number of the argument, variable)."""
        raise NotImplementedError

    def _known_size(self, input_shape: Any) -> int:
        sizes = dims(input_shape)
        if not sizes or sizes[-1] is None:
            raise ValueError(f"Invalid inputs_shape, saw shape: {input_shape}")
        return sizes[-1]


def _activation_name(function: Any) -> str:
    return getattr(function, "__name__", type(function).__name__)


@export(v1="lite.experimental.nn.TfLiteRNNCell")
class TfLiteRNNCell(_HintedCell):
    """output = new_state = activation(input_weights inputs + recurrent_weights state + bias).

    Args:
        num_units: the size of the output.
        activation: a function or its name. The default is tanh.
        reuse, name, dtype, **kwargs: see `Layer`.

    Raises:
        ValueError: the variables exist already and `reuse` is not set, or the activation is unknown.
    """

    _function = "UnidirectionalSequenceRnn"

    def __init__(
        self,
        num_units: int,
        activation: Any = None,
        reuse: Any = None,
        name: str | None = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, dtype=dtype, _reuse=reuse, **kwargs)
        self._num_units = num_units
        self._activation = unary_functions.tanh if activation is None else as_activation(activation)

    @property
    def state_size(self) -> int:
        return self._num_units

    @property
    def output_size(self) -> int:
        return self._num_units

    def _hint_attrs(self) -> dict[str, Any]:
        return {"activation": _activation_name(self._activation)}

    def _arguments(self) -> dict[str, tuple[int, Any]]:
        return {
            "input_weights": (1, self._input_weights),
            "recurrent_weights": (2, self._recurrent_weights),
            "bias": (3, self._bias),
        }

    def build(self, input_shape: Any) -> None:
        size = self._known_size(input_shape)
        self._input_weights = self.add_weight("input_weights", [self._num_units, size])
        self._recurrent_weights = self.add_weight("recurrent_weights", [self._num_units, self._num_units])
        self._bias = self.add_weight("bias", [self._num_units], initializer=initializers.Zeros(self._variable_dtype))
        self.built = True

    def call(self, inputs: Any, state: Any) -> Any:
        hint, weights = self._hinted()
        inputs = hint.add_input(
            inputs, tag="input", name="input", aggregate=OpHint.AGGREGATE_STACK, index_override=_INPUT
        )
        state = hint.add_input(
            state, tag="hidden_state", name="hidden_state", aggregate=OpHint.AGGREGATE_FIRST, index_override=4
        )
        both = joining.concat([weights["input_weights"], weights["recurrent_weights"]], 1)
        product = matrix_products.matmul(joining.concat([inputs, state], 1), both, transpose_b=True)
        output = self._activation(bias.bias_add(product, weights["bias"]))
        output = hint.add_output(
            output, tag="output", name="output", aggregate=OpHint.AGGREGATE_STACK, index_override=1
        )
        return output, output


@export(v1="lite.experimental.nn.TFLiteLSTMCell")
class TFLiteLSTMCell(_HintedCell):
    """Long short-term memory with optional peepholes, clipping and projection (Sak et al., 2014).

    c = sigmoid(f) * c + sigmoid(i) * activation(j), clipped; m = sigmoid(o) * activation(c), projected and clipped. Each gate is a product
    of inputs and m with the matrices `input_to_<gate>_w` and `cell_to_<gate>_w`, plus `<gate>_bias`.

    Args:
        num_units: the size of c.
        use_peepholes: whether gates depend on c, through the diagonal weights `w_f_diag`, `w_i_diag`, `w_o_diag`.
        cell_clip: a bound on |c|.
        initializer: the initializer of the weights.
        num_proj: the size of m after projection by `projection/kernel`, which is [num_proj, num_units].
        proj_clip: a bound on the projected m.
        num_unit_shards, num_proj_shards: have no effect.
        forget_bias: the initial value of the forget gate's bias.
        state_is_tuple: whether the state is an LSTMStateTuple (c, m). Otherwise it is the concatenation of both.
        activation: tanh by default.
        reuse, name, dtype: see `Layer`.
    """

    _function = "UnidirectionalSequenceLstm"

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        cell_clip: float | None = None,
        initializer: Any = None,
        num_proj: int | None = None,
        proj_clip: float | None = None,
        num_unit_shards: int | None = None,
        num_proj_shards: int | None = None,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: Any = None,
        reuse: Any = None,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(name=name, dtype=dtype, _reuse=reuse)
        self._num_units, self._use_peepholes, self._cell_clip = num_units, use_peepholes, cell_clip
        self._initializer, self._num_proj, self._proj_clip = initializer, num_proj, proj_clip
        self._forget_bias, self._state_is_tuple = forget_bias, state_is_tuple
        self._activation = unary_functions.tanh if activation is None else as_activation(activation)
        self._output_size = num_proj or num_units

    @property
    def output_size(self) -> int:
        return self._output_size

    @property
    def state_size(self) -> Any:
        sizes = (self._num_units, self._output_size)
        return LSTMStateTuple(*sizes) if self._state_is_tuple else sum(sizes)

    def _hint_attrs(self) -> dict[str, Any]:
        return {
            "activation": _activation_name(self._activation),
            "cell_clip": float(self._cell_clip or 0.0),
            "proj_clip": float(self._proj_clip or 0.0),
        }

    def _arguments(self) -> dict[str, tuple[int, Any]]:
        found: dict[str, tuple[int, Any]] = {}
        for number, gate in enumerate(_GATES):
            found[f"input_to_{gate}_w"] = (_INPUT_WEIGHTS + number, self._input_to[gate])
        for number, gate in enumerate(_GATES):
            found[f"cell_to_{gate}_w"] = (_RECURRENT_WEIGHTS + number, self._cell_to[gate])
        for number, gate in enumerate(_GATES):
            found[f"{gate}_bias"] = (_BIASES + number, self._biases[gate])
        for gate, diagonal in self._diagonals.items():
            found[f"w_{gate}_diag"] = (_PEEPHOLES[gate], diagonal)
        if self._projection is not None:
            found["projection/kernel"] = (_PROJECTION, self._projection)
        return found

    def build(self, input_shape: Any) -> None:
        size, units = self._known_size(input_shape), self._num_units

        def weight(name: str, shape: list[int]) -> Any:
            return self.add_weight(name, shape, initializer=self._initializer)

        self._input_to = {gate: weight(f"input_to_{gate}_w", [units, size]) for gate in _GATES}
        self._cell_to = {gate: weight(f"cell_to_{gate}_w", [units, self._output_size]) for gate in _GATES}
        kind = self._variable_dtype
        self._biases = {
            gate: self.add_weight(
                f"{gate}_bias",
                [units],
                initializer=initializers.Constant(self._forget_bias, dtype=kind)
                if gate == "forget"
                else initializers.Zeros(kind),
            )
            for gate in _GATES
        }
        self._diagonals = {gate: weight(f"w_{gate}_diag", [units]) for gate in _PEEPHOLES if self._use_peepholes}
        self._projection = None
        if self._num_proj is not None:
            self._projection = weight("projection/kernel", [self._num_proj, units])
        self.built = True

    def call(self, inputs: Any, state: Any) -> Any:
        hint, weights = self._hinted()
        inputs = hint.add_input(
            inputs, tag="input", name="input", aggregate=OpHint.AGGREGATE_STACK, index_override=_INPUT
        )
        c, m = state if self._state_is_tuple else joining.split(state, [self._num_units, self._output_size], 1)
        c = hint.add_input(c, tag="c_prev", name="c_prev", aggregate=OpHint.AGGREGATE_FIRST, index_override=_CELL_STATE)
        m = hint.add_input(
            m, tag="m_prev", name="m_prev", aggregate=OpHint.AGGREGATE_FIRST, index_override=_OUTPUT_STATE
        )
        both = joining.concat([inputs, m], 1)
        gates = {}
        for gate in _GATES:
            kernel = joining.concat([weights[f"input_to_{gate}_w"], weights[f"cell_to_{gate}_w"]], 1)
            product = matrix_products.matmul(both, kernel, transpose_b=True)
            gates[gate] = bias.bias_add(product, weights[f"{gate}_bias"])
        i, f, j, o = (gates[gate] for gate in _GATES)
        sigmoid, act, peep = unary_functions.sigmoid, self._activation, self._use_peepholes
        new_c = sigmoid(f + weights["w_f_diag"] * c if peep else f) * c
        new_c = new_c + sigmoid(i + weights["w_i_diag"] * c if peep else i) * act(j)
        if self._cell_clip is not None:
            new_c = clipping.clip_by_value(new_c, -self._cell_clip, self._cell_clip)
        new_m = sigmoid(o + weights["w_o_diag"] * new_c if peep else o) * act(new_c)
        if self._projection is not None:
            new_m = matrix_products.matmul(new_m, weights["projection/kernel"], transpose_b=True)
            if self._proj_clip is not None:
                new_m = clipping.clip_by_value(new_m, -self._proj_clip, self._proj_clip)
        new_c = hint.add_output(new_c, tag="c", name="c", aggregate=OpHint.AGGREGATE_LAST, index_override=1)
        new_m = hint.add_output(new_m, tag="m", name="m", aggregate=OpHint.AGGREGATE_STACK, index_override=2)
        return new_m, LSTMStateTuple(new_c, new_m) if self._state_is_tuple else joining.concat([new_c, new_m], 1)


@export(v1="lite.experimental.nn.dynamic_rnn")
def dynamic_rnn(
    cell: Any,
    inputs: Any,
    sequence_length: Any = None,
    initial_state: Any = None,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    time_major: bool = True,
    scope: Any = None,
) -> Any:
    """`tf.nn.dynamic_rnn` in a hint, so that the loop is converted to the fused ops of its cells. Returns (outputs, final state).

    Time is the first dimension unless `time_major` is False. With `sequence_length` the loop is not marked but converted itself, because the fused
    ops always run all steps. `parallel_iterations` and `swap_memory` have no effect.

    Args:
        cell: the RNNCell. A `MultiRNNCell` of cells of this module becomes one fused op per cell.
        inputs: a tensor, [time, batch, ...], or [batch, time, ...] if `time_major` is False; or a structure of tensors.
        sequence_length: the number of steps of each example. Later outputs are 0, and the state stays the same.
        initial_state: the initial state. The default is zeros of `dtype`.
        dtype: the dtype of the initial state.
        scope: the variable scope. The default is "rnn".

    Raises:
        TypeError: `cell` is not a cell.
        ValueError: there are no inputs, or neither an initial state nor a dtype is given.
        RuntimeError: control flow v2 is not enabled. TensorFlow 1.15 would create a loop that hints cannot mark.
    """
    if not control_flow_v2_enabled():
        raise RuntimeError("OpHint dynamic rnn only supports control flow v2.")
    check_cell(cell, "cell")
    if inputs is None or (isinstance(inputs, (list, tuple)) and not inputs):
        raise ValueError(f"dynamic_rnn needs inputs, not {inputs!r}.")
    single = not isinstance(inputs, (list, tuple, dict))
    hint = None
    if single and sequence_length is None:
        hint = OpHint(
            "TfLiteDynamicRnn",
            level=2,
            children_inputs_mappings={
                "parent_first_child_input": [{"parent_ophint_input_index": 0, "first_child_ophint_input_index": 0}],
                "parent_last_child_output": [{"parent_output_index": 0, "child_output_index": -1}],
                "internal_children_input_output": [{"child_input_index": 0, "child_output_index": -1}],
            },
        )

    def entering(x: Any) -> Any:
        return x if hint is None else hint.add_input(x, name="input")

    def leaving(x: Any) -> Any:
        return x if hint is None else hint.add_output(x, name="outputs")

    return run_in_loop(
        cell,
        inputs,
        sequence_length,
        initial_state,
        dtype,
        parallel_iterations or 32,
        time_major,
        scope,
        entering,
        leaving,
    )
