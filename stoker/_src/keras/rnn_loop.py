"""The loop over time of recurrent layers: `tf.keras.backend.rnn`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stoker._src.base import dtypes, nest
from stoker._src.base.export import export
from stoker._src.ops.array import casting, joining, selection, shaping
from stoker._src.ops.array import constants as array_constants
from stoker._src.ops.control_flow import branches_and_loops, tensor_array

Step = Callable[[Any, list[Any]], tuple[Any, list[Any]]]


def swapped(tensor: Any) -> Any:
    """Batch and time exchanged."""
    rank = tensor.static_shape.rank
    return shaping.transpose(tensor, [1, 0, *range(2, rank)])


@export("keras.backend.rnn")
def rnn(
    step_function: Step,
    inputs: Any,
    initial_states: Any,
    go_backwards: bool = False,
    mask: Any = None,
    constants: Any = None,
    unroll: bool = False,
    input_length: Any = None,
    time_major: bool = False,
    zero_output_for_mask: bool = False,
) -> tuple[Any, Any, list[Any]]:
    """Applies a step to each time step: (input, states + constants) -> (output, new states).

    Where a mask says that a step is padding, states stay, and the output is the one before (zero at first, or always
    with `zero_output_for_mask`).

    Returns:
        The last output, the outputs at all times, and the last states.

    Raises:
        ValueError: the loop is unrolled, and the number of steps is unknown.
    """
    if not time_major:
        inputs = nest.map_structure(swapped, inputs)
    if mask is not None:
        mask = casting.cast(mask, dtypes.bool_) if mask.dtype != dtypes.bool_ else mask
        if mask.static_shape.rank == 3:
            mask = shaping.squeeze(mask, -1)
        mask = mask if time_major else swapped(mask)
    if go_backwards:
        inputs = nest.map_structure(lambda x: selection.reverse(x, [0]), inputs)
        mask = None if mask is None else selection.reverse(mask, [0])
    first = nest.flatten(inputs)[0]
    steps = first.static_shape[0]
    constants = list(constants or [])

    def step(now: Any, states: list[Any], before: Any, present: Any) -> tuple[Any, list[Any]]:
        output, following = step_function(now, [*states, *constants])
        following = list(following)
        if present is None:
            return output, following
        following = [selection.where(present, new, old) for new, old in zip(following, states)]
        skipped = shaping.zeros_like(output) if zero_output_for_mask or before is None else before
        return selection.where(present, output, skipped), following

    states = list(initial_states)
    if unroll:
        if steps is None:
            raise ValueError("Unrolling requires a fixed number of timesteps.")
        outputs: list[Any] = []
        for time in range(steps):
            now = nest.map_structure(lambda x, at=time: x[at], inputs)
            output, states = step(now, states, outputs[-1] if outputs else None, None if mask is None else mask[time])
            outputs.append(output)
        stacked = joining.stack(outputs)
    else:
        stacked, states, output = _looped(step, inputs, states, mask, steps)
    whole = stacked if time_major else swapped(stacked)
    return output, whole, states


def _looped(step: Any, inputs: Any, states: list[Any], mask: Any, steps: int | None) -> tuple[Any, list[Any], Any]:
    flat = nest.flatten(inputs)
    length = shaping.shape(flat[0])[0] if steps is None else array_constants.constant(steps, dtypes.int32)
    fed = [tensor_array.TensorArray(x.dtype, size=length, element_shape=x.shape[1:]).unstack(x) for x in flat]
    masks = (
        None
        if mask is None
        else tensor_array.TensorArray(dtypes.bool_, size=length, element_shape=mask.shape[1:]).unstack(mask)
    )
    # The first step tells what outputs look like; nothing else uses it, so it is not run.
    sample, _ = step(nest.pack_sequence_as(inputs, [x[0] for x in flat]), states, None, None)
    written = tensor_array.TensorArray(sample.dtype, size=length, element_shape=sample.shape)
    loop = [array_constants.constant(0), written, *states]
    if mask is not None:
        loop.append(shaping.zeros_like(sample))

    def body(time: Any, written: Any, *rest: Any) -> list[Any]:
        old = list(rest[: len(states)])
        now = nest.pack_sequence_as(inputs, [each.read(time) for each in fed])
        before, present = (None, None) if masks is None else (rest[-1], masks.read(time))
        output, following = step(now, old, before, present)
        for each, past in zip(following, old):
            each.set_shape(past.shape)
        return [time + 1, written.write(time, output), *following, *([] if masks is None else [output])]

    done = branches_and_loops.while_loop(lambda time, *_: time < length, body, loop, maximum_iterations=None)
    stacked = done[1].stack()
    stacked.set_shape([steps, *sample.shape.as_list()])
    output = stacked[-1]
    return stacked, list(done[2 : 2 + len(states)]), output
