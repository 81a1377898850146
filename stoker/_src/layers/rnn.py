"""Recurrent networks: cells run over time, unrolled or in a loop."""

from __future__ import annotations

from typing import Any

from stoker._src.base import dtypes, nest
from stoker._src.base.export import export
from stoker._src.base.shapes import Shape
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.scopes import control_dependencies
from stoker._src.graph.tensor import Tensor
from stoker._src.layers.rnn_cells import check_cell, zero_tensors
from stoker._src.ops.array import casting, constants, joining, selection, shaping
from stoker._src.ops.control_flow import assertions, branches_and_loops
from stoker._src.ops.control_flow.tensor_array import TensorArray
from stoker._src.ops.math import arithmetic, comparison, reductions
from stoker._src.ops.variables import variable_scope


def _swapped(x: Any) -> Tensor:
    """Swaps batch and time."""
    x = convert_to_tensor(x)
    rank = x.static_shape.rank
    if rank is None:
        raise ValueError("Inputs to a recurrent network must have a known rank.")
    return shaping.transpose(x, [1, 0, *range(2, rank)])


def _initial_state(cell: Any, initial_state: Any, batch_size: Any, dtype: Any) -> Any:
    if initial_state is not None:
        return initial_state
    if dtype is None:
        raise ValueError("If there is no initial_state, you must give a dtype.")
    if getattr(cell, "get_initial_state", None) is not None:
        return cell.get_initial_state(inputs=None, batch_size=batch_size, dtype=dtype)
    return cell.zero_state(batch_size, dtype)


def _where_running(running: Any, new: Any, old: Any) -> Any:
    """`new` for examples that are still running at this step, `old` for those that have ended."""

    def choose(mine: Any, theirs: Any) -> Any:
        if isinstance(mine, TensorArray) or (isinstance(mine, Tensor) and mine.static_shape.rank == 0):
            return mine
        chosen = selection.where(running, mine, theirs)
        chosen.set_shape(mine.static_shape)
        return chosen

    return nest.map_structure(choose, new, old)


def _checked_lengths(sequence_length: Any, batch_size: Any) -> Any:
    """The lengths as int32, checked against the batch size at run time."""
    if sequence_length is None:
        return None
    lengths = casting.cast(sequence_length, dtypes.int32)
    if lengths.static_shape.rank not in (None, 1):
        raise ValueError(f"sequence_length must be a vector of length batch_size, but saw shape: {lengths.shape}")
    lengths = shaping.identity(lengths, name="sequence_length")
    if context.executing_eagerly():
        return lengths
    check = assertions.assert_op(
        comparison.equal(shaping.shape(lengths)[0], batch_size),
        ["Expected a sequence_length for each example of the batch:", shaping.shape(lengths), "batch size", batch_size],
    )
    with control_dependencies([check]):
        return shaping.identity(lengths, name="CheckSeqLen")


@export(v1="nn.dynamic_rnn")
def dynamic_rnn(
    cell: Any,
    inputs: Any,
    sequence_length: Any = None,
    initial_state: Any = None,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    time_major: bool = False,
    scope: Any = None,
) -> Any:
    """Runs a cell over time in a loop. Returns (outputs, final state).

    Args:
        cell: the RNNCell.
        inputs: a tensor or structure of tensors, [batch, time, ...], or [time, batch, ...] if `time_major`.
        sequence_length: the number of steps of each example. Later outputs are 0, and the state stays the same.
        initial_state: the initial state; zeros of `dtype` by default.
        dtype: the dtype of the initial state.
        parallel_iterations, swap_memory: have no effect.
        time_major: whether time is the first dimension of inputs and outputs.
        scope: the variable scope; "rnn" by default.

    Raises:
        TypeError: `cell` is not a cell.
        ValueError: neither an initial state nor a dtype is given, or the rank of the inputs is unknown.
    """
    return run_in_loop(
        cell,
        inputs,
        sequence_length,
        initial_state,
        dtype,
        parallel_iterations,
        time_major,
        scope,
        lambda x: x,
        lambda x: x,
    )


def run_in_loop(
    cell: Any,
    inputs: Any,
    sequence_length: Any,
    initial_state: Any,
    dtype: Any,
    parallel_iterations: int | None,
    time_major: bool,
    scope: Any,
    entering: Any,
    leaving: Any,
) -> Any:
    """`dynamic_rnn`. `entering` and `leaving` wrap what goes into the loop and what comes out of it, both with time first."""
    check_cell(cell, "cell")
    with variable_scope.variable_scope(scope or "rnn"):
        flat = [convert_to_tensor(x) for x in nest.flatten(inputs)]
        for x in flat:
            if x.static_shape.rank is not None and x.static_shape.rank < (2 if time_major else 3):
                raise ValueError(f"Shape {x.shape} must have rank at least {2 if time_major else 3}")
        if not time_major:
            flat = [_swapped(x) for x in flat]
        flat = [entering(x) for x in flat]
        first = flat[0]
        sizes = shaping.shape(first)
        steps = sizes[0]
        known = first.static_shape[1]
        batch_size = sizes[1] if known is None else known
        lengths = _checked_lengths(sequence_length, batch_size)
        state = _initial_state(cell, initial_state, batch_size, dtype)
        structure = inputs
        kind = _output_dtype(dtype, state, flat)
        outputs, final = _loop(cell, structure, flat, state, kind, steps, batch_size, lengths, parallel_iterations)
        outputs = nest.map_structure(leaving, outputs)
        if not time_major:
            outputs = nest.map_structure(_swapped, outputs)
        return outputs, final


def _output_dtype(dtype: Any, state: Any, inputs: list[Tensor]) -> Any:
    if dtype is not None:
        return dtypes.as_dtype(dtype).base_dtype
    found = [each.dtype.base_dtype for each in nest.flatten(state) if isinstance(each, Tensor)]
    return found[0] if found else inputs[0].dtype.base_dtype


def _loop(
    cell: Any,
    structure: Any,
    flat: list[Tensor],
    state: Any,
    kind: Any,
    steps: Any,
    batch_size: Any,
    lengths: Any,
    parallel_iterations: int | None,
) -> Any:
    state = nest.map_structure(lambda x: x if isinstance(x, TensorArray) else convert_to_tensor(x), state)
    sizes = cell.output_size
    flat_sizes = nest.flatten(sizes) if isinstance(sizes, (list, tuple, dict)) else [sizes]
    zero_outputs = [zero_tensors(size, batch_size, kind) for size in flat_sizes]
    read_from = [
        TensorArray(x.dtype.base_dtype, steps, element_shape=x.shape[1:], name=f"input_{i}").unstack(x)
        for i, x in enumerate(flat)
    ]
    written = [
        TensorArray(kind, steps, element_shape=zero.shape, name=f"output_{i}") for i, zero in enumerate(zero_outputs)
    ]

    def body(time: Any, arrays: Any, state: Any) -> Any:
        step_inputs = [each.read(time) for each in read_from]
        for value, whole in zip(step_inputs, flat):
            value.set_shape(Shape(whole.static_shape.dims[1:]))  # type: ignore[index]
        arguments = nest.pack_sequence_as(structure, step_inputs)
        output, new_state = cell(arguments, state)
        nest.assert_same_structure(state, new_state)
        results = nest.flatten(output)
        if lengths is not None:
            running = comparison.less(time, lengths)
            results = [_where_running(running, new, zero) for new, zero in zip(results, zero_outputs)]
            new_state = _where_running(running, new_state, state)
        return time + 1, tuple(array_.write(time, value) for array_, value in zip(arrays, results)), new_state

    time = constants.constant(0, dtypes.int32, name="time")
    # The cell does not run after the longest sequence, which matters if it draws random numbers. At least one step
    # runs, so that the arrays know the batch size.
    bound = steps
    if lengths is not None and not context.executing_eagerly():
        bound = arithmetic.minimum(steps, arithmetic.maximum(1, reductions.reduce_max(lengths)))
    _, arrays, final = branches_and_loops.while_loop(
        lambda time, *_: time < bound,
        body,
        (time, tuple(written), state),
        parallel_iterations=parallel_iterations or 32,
        maximum_iterations=steps,
        return_same_structure=True,
    )
    outputs = []
    for array_, zero, size in zip(arrays, zero_outputs, flat_sizes):
        stacked = array_.stack()
        inner = [size] if isinstance(size, int) else list(size)
        stacked.set_shape(Shape((flat[0].static_shape[0], flat[0].static_shape[1] or zero.static_shape[0], *inner)))
        outputs.append(stacked)
    if isinstance(sizes, (list, tuple, dict)):
        return nest.pack_sequence_as(sizes, outputs), final
    return outputs[0], final


@export(v1="nn.bidirectional_dynamic_rnn")
def bidirectional_dynamic_rnn(
    cell_fw: Any,
    cell_bw: Any,
    inputs: Any,
    sequence_length: Any = None,
    initial_state_fw: Any = None,
    initial_state_bw: Any = None,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    time_major: bool = False,
    scope: Any = None,
) -> Any:
    """Runs one cell forward and another backward over time: ((outputs, outputs), (final state, final state)), forward first."""
    check_cell(cell_fw, "cell_fw")
    check_cell(cell_bw, "cell_bw")
    time_axis, batch_axis = (0, 1) if time_major else (1, 0)

    def turned(x: Any) -> Tensor:
        if sequence_length is not None:
            return selection.reverse_sequence(x, seq_lengths=sequence_length, seq_axis=time_axis, batch_axis=batch_axis)
        return selection.reverse(x, axis=[time_axis])

    with variable_scope.variable_scope(scope or "bidirectional_rnn"):
        with variable_scope.variable_scope("fw") as forward:
            outputs_fw, state_fw = dynamic_rnn(
                cell_fw,
                inputs,
                sequence_length,
                initial_state_fw,
                dtype,
                parallel_iterations,
                swap_memory,
                time_major,
                forward,
            )
        with variable_scope.variable_scope("bw") as backward:
            outputs_bw, state_bw = dynamic_rnn(
                cell_bw,
                nest.map_structure(turned, inputs),
                sequence_length,
                initial_state_bw,
                dtype,
                parallel_iterations,
                swap_memory,
                time_major,
                backward,
            )
    return (outputs_fw, nest.map_structure(turned, outputs_bw)), (state_fw, state_bw)


@export(v1="nn.static_rnn")
def static_rnn(
    cell: Any, inputs: Any, initial_state: Any = None, dtype: Any = None, sequence_length: Any = None, scope: Any = None
) -> Any:
    """Runs a cell over a list of inputs, one for each step. Returns (list of outputs, final state).

    Raises:
        TypeError: `inputs` is not a list, or `cell` is not a cell.
        ValueError: there are no inputs, or neither an initial state nor a dtype.
    """
    check_cell(cell, "cell")
    if not isinstance(inputs, (list, tuple)):
        raise TypeError(f"inputs must be a sequence, got {inputs!r}.")
    if not inputs:
        raise ValueError("inputs must not be empty")
    with variable_scope.variable_scope(scope or "rnn") as opened:
        first = convert_to_tensor(nest.flatten(inputs[0])[0])
        if first.static_shape.rank == 0:
            raise ValueError(f"The inputs of a step must have a batch dimension, got {first}.")
        known = first.static_shape[0]
        batch_size = shaping.shape(first)[0] if known is None else known
        state = _initial_state(cell, initial_state, batch_size, dtype)
        lengths = _checked_lengths(sequence_length, batch_size)
        outputs: list[Any] = []
        if lengths is not None:
            kind = _output_dtype(dtype, state, [first])
            zeros = zero_tensors(cell.output_size, batch_size, kind)
            longest = reductions.reduce_max(lengths)
        for time, step_inputs in enumerate(inputs):
            if time > 0:
                opened.reuse_variables()
            if lengths is None:
                output, state = cell(step_inputs, state)
            else:
                output, state = _unless_all_ended(time, longest, lengths, cell, step_inputs, state, zeros)
            outputs.append(output)
        return outputs, state


def _unless_all_ended(
    time: int, longest: Any, lengths: Any, cell: Any, inputs: Any, state: Any, zeros: Any
) -> tuple[Any, Any]:
    """One step of the cell. After the longest sequence the cell does not run, so it draws no random numbers."""

    def step() -> list[Any]:
        output, new_state = cell(inputs, state)
        nest.assert_same_structure(state, new_state)
        running = comparison.less(time, lengths)
        return nest.flatten([_where_running(running, output, zeros), _where_running(running, new_state, state)])

    found = branches_and_loops.cond(comparison.less(time, longest), step, lambda: nest.flatten([zeros, state]))
    for value, kept in zip(found, nest.flatten([zeros, state])):
        value.set_shape(kept.static_shape)
    output, new_state = nest.pack_sequence_as([zeros, state], found)
    return output, new_state


@export(v1="nn.static_state_saving_rnn")
def static_state_saving_rnn(
    cell: Any, inputs: Any, state_saver: Any, state_name: Any, sequence_length: Any = None, scope: Any = None
) -> Any:
    """`static_rnn` that reads its initial state with `state_saver.state(name)` and saves the final one with `save_state`.

    Raises:
        ValueError: the number of names differs from the number of states.
    """
    structured = isinstance(cell.state_size, (list, tuple))
    if structured != isinstance(state_name, (list, tuple)):
        raise ValueError(f"state_name should be the same type as cell.state_size.  state_name: {state_name}, cell.state_size: {cell.state_size}")  # fmt: skip
    if structured:
        names = nest.flatten(state_name)
        if len(names) != len(nest.flatten(cell.state_size)):
            raise ValueError(f"#elems(state_name) != #elems(state_size): {len(names)} vs. {len(nest.flatten(cell.state_size))}")  # fmt: skip
        initial = nest.pack_sequence_as(cell.state_size, [state_saver.state(name) for name in names])
    else:
        names = [state_name]
        initial = state_saver.state(state_name)
    outputs, state = static_rnn(cell, inputs, initial, sequence_length=sequence_length, scope=scope)
    saved = [state_saver.save_state(name, value) for name, value in zip(names, nest.flatten(state))]
    # The state is saved whenever the last output is computed.
    with control_dependencies(saved):
        outputs[-1] = nest.map_structure(shaping.identity, outputs[-1])
        if structured:
            state = nest.map_structure(shaping.identity, state)
        else:
            state = shaping.identity(state)
    return outputs, state


@export(v1="nn.static_bidirectional_rnn")
def static_bidirectional_rnn(
    cell_fw: Any,
    cell_bw: Any,
    inputs: Any,
    initial_state_fw: Any = None,
    initial_state_bw: Any = None,
    dtype: Any = None,
    sequence_length: Any = None,
    scope: Any = None,
) -> Any:
    """Runs one cell forward and another backward over a list of inputs: (concatenated outputs, forward state, backward state)."""
    check_cell(cell_fw, "cell_fw")
    check_cell(cell_bw, "cell_bw")
    if not isinstance(inputs, (list, tuple)):
        raise TypeError(f"inputs must be a sequence, got {inputs!r}.")
    if not inputs:
        raise ValueError("inputs must not be empty")
    with variable_scope.variable_scope(scope or "bidirectional_rnn"):
        with variable_scope.variable_scope("fw") as forward:
            outputs_fw, state_fw = static_rnn(cell_fw, inputs, initial_state_fw, dtype, sequence_length, forward)
        with variable_scope.variable_scope("bw") as backward:
            turned = _reversed_steps(inputs, sequence_length)
            outputs_bw, state_bw = static_rnn(cell_bw, turned, initial_state_bw, dtype, sequence_length, backward)
    back = _reversed_steps(outputs_bw, sequence_length)
    joined = [
        nest.pack_sequence_as(fw, [joining.concat([a, b], 1) for a, b in zip(nest.flatten(fw), nest.flatten(bw))])
        for fw, bw in zip(outputs_fw, back)
    ]
    return joined, state_fw, state_bw


def _reversed_steps(steps: Any, lengths: Any) -> list[Any]:
    """The steps in reverse order. With lengths, each example is reversed within its own length."""
    if lengths is None:
        return list(reversed(steps))
    columns = []
    for column in zip(*[nest.flatten(step) for step in steps]):
        whole = joining.stack(list(column))
        turned = selection.reverse_sequence(whole, seq_lengths=lengths, seq_axis=0, batch_axis=1)
        columns.append(joining.unstack(turned))
    return [nest.pack_sequence_as(steps[0], list(row)) for row in zip(*columns)]


@export(v1="nn.raw_rnn")
def raw_rnn(
    cell: Any, loop_fn: Any, parallel_iterations: int | None = None, swap_memory: bool = False, scope: Any = None
) -> Any:
    """Runs a cell in a loop that `loop_fn` controls. Returns (TensorArrays of outputs, final state, final loop state).

    `loop_fn(time, cell_output, cell_state, loop_state)` returns (finished, next inputs, next state, output to emit, next
    loop state). It is first called with time 0 and None for output, state and loop state. The output emitted by that call
    (None means zeros of the cell's output size) defines what is emitted for examples that have finished.

    Raises:
        TypeError: `cell` is not a cell, or `loop_fn` is not callable.
    """
    check_cell(cell, "cell")
    if not callable(loop_fn):
        raise TypeError("loop_fn must be a callable")
    steer: Any = loop_fn
    with variable_scope.variable_scope(scope or "rnn"):
        time = constants.constant(0, dtypes.int32)
        finished, next_input, state, emit, loop_state = steer(time, None, None, None)
        first = convert_to_tensor(nest.flatten(next_input)[0])
        known = first.static_shape[0]
        batch_size = shaping.shape(first)[0] if known is None else known
        has_loop_state = loop_state is not None
        loop_state = constants.constant(0, dtypes.int32) if not has_loop_state else loop_state
        next_input = nest.map_structure(convert_to_tensor, next_input)
        state = nest.map_structure(lambda x: x if isinstance(x, TensorArray) else convert_to_tensor(x), state)
        if emit is not None:
            structure = emit
            zeros = [
                shaping.zeros(
                    joining.concat([shaping.reshape(batch_size, [1]), shaping.shape(x)], 0), x.dtype.base_dtype
                )
                for x in map(convert_to_tensor, nest.flatten(emit))
            ]
            kinds: list[Any] = [x.dtype.base_dtype for x in zeros]
        else:
            structure = cell.output_size
            kind = nest.flatten(state)[0].dtype.base_dtype
            sizes = nest.flatten(structure) if isinstance(structure, (list, tuple, dict)) else [structure]
            zeros = [zero_tensors(size, batch_size, kind) for size in sizes]
            kinds = [kind] * len(zeros)
        arrays = tuple(
            TensorArray(kind, 0, dynamic_size=True, element_shape=zero.shape, name=f"rnn_output_{i}")
            for i, (kind, zero) in enumerate(zip(kinds, zeros))
        )
        structured = isinstance(structure, (list, tuple, dict))

        def body(time: Any, finished: Any, inputs: Any, arrays: Any, state: Any, loop_state: Any) -> Any:
            output, cell_state = cell(inputs, state)
            following = time + 1
            done, new_input, new_state, emitted, new_loop = steer(
                following, output, cell_state, loop_state if has_loop_state else None
            )
            running = comparison.logical_not(finished)
            new_state = _where_running(running, new_state, state)
            values = [_where_running(running, a, b) for a, b in zip(nest.flatten(emitted), zeros)]
            written = tuple(each.write(time, value) for each, value in zip(arrays, values))
            done = comparison.logical_or(done, finished)
            return following, done, new_input, written, new_state, new_loop if has_loop_state else loop_state

        finished = convert_to_tensor(finished, dtypes.bool_)
        if finished.static_shape.rank == 0:
            finished = shaping.fill(shaping.reshape(batch_size, [1]), finished)
        results: Any = branches_and_loops.while_loop(
            lambda time, finished, *_: comparison.logical_not(reductions.reduce_all(finished)),
            body,
            (time, finished, next_input, arrays, state, loop_state),
            parallel_iterations=parallel_iterations or 32,
            return_same_structure=True,
        )
        _, _, _, arrays, state, loop_state = results
        outputs = nest.pack_sequence_as(structure, list(arrays)) if structured else arrays[0]
        return outputs, state, loop_state if has_loop_state else None
