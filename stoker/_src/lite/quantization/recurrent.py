"""The fused LSTM in integers: inputs, outputs and weights in 8 bits, the state of the cell in 16.

The kernel keeps the cell's state with a power of two as scale, and adds the products of a step in 32 bits. The ranges of the cell's state and of the
values before a projection exist in no tensor that an interpreter shows, so the float computation is repeated here.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from stoker._src.lite.model import Operator, Quantization, Tensor
from stoker._src.lite.quantization import arrays

CODE = "UNIDIRECTIONAL_SEQUENCE_LSTM"
# Places among the inputs. Gates come in the order input, forget, cell, output.
_INPUT_WEIGHTS, _STATE_WEIGHTS = (1, 2, 3, 4), (5, 6, 7, 8)
_PEEPHOLES, _BIASES = (9, 10, 11), (12, 13, 14, 15)
PROJECTION, _PROJECTION_BIAS, OUTPUT_STATE, CELL_STATE = 16, 17, 18, 19
_NORMALIZERS = (20, 21, 22, 23)
_TANH = 4
# Cells are clipped here, where 16 bits end for the usual scale.
_CLIP = 10.0
_INTERMEDIATES = ("input_to_input", "input_to_forget", "input_to_cell", "input_to_output", "effective_hidden_scale")


def _place(operator: Operator, place: int) -> Tensor | None:
    return operator.inputs[place] if place < len(operator.inputs) else None


def _array(operator: Operator, place: int) -> np.ndarray | None:
    tensor = _place(operator, place)
    return None if tensor is None else tensor.data


def obstacle(operator: Operator) -> str:
    """The reason why an LSTM stays in floating point, or ""."""
    if operator.options.fusedActivationFunction != _TANH:
        return "its activation is not tanh"
    if any(_place(operator, place) is not None for place in _NORMALIZERS):
        return "it normalizes its gates"
    constants = (*_INPUT_WEIGHTS, *_STATE_WEIGHTS, *_PEEPHOLES, *_BIASES, PROJECTION, _PROJECTION_BIAS)
    for place in constants:
        tensor = _place(operator, place)
        if tensor is not None and (tensor.data is None or tensor.type != "FLOAT32"):
            return f"'{tensor.name}' is not constant"
    return ""


def observed(operator: Operator, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The largest absolute state of the cell, and the smallest and largest value before a projection, over the steps of a sequence.

    The computation starts from states of zero.
    """
    options = operator.options
    steps = x if options.timeMajor else np.swapaxes(x, 0, 1)
    weights = [_array(operator, place) for place in _INPUT_WEIGHTS]
    recurrent = [_array(operator, place) for place in _STATE_WEIGHTS]
    peepholes = [_array(operator, place) for place in _PEEPHOLES]
    biases = [_array(operator, place) for place in _BIASES]
    projection, offset = _array(operator, PROJECTION), _array(operator, _PROJECTION_BIAS)
    units, width = weights[1].shape[0], recurrent[1].shape[1]  # type: ignore[union-attr]
    cell, state = np.zeros([steps.shape[1], units]), np.zeros([steps.shape[1], width])
    largest, low, high = 0.0, 0.0, 0.0

    def gate(
        number: int, step: np.ndarray, state: np.ndarray, cell: np.ndarray | None, peephole: int = 0
    ) -> np.ndarray:
        sums = step @ weights[number].T + state @ recurrent[number].T  # type: ignore[union-attr]
        if biases[number] is not None:
            sums = sums + biases[number]
        return sums if cell is None or peepholes[peephole] is None else sums + cell * peepholes[peephole]

    for step in steps.astype(np.float64):
        forget = _sigmoid(gate(1, step, state, cell, 1))
        enter = 1.0 - forget if weights[0] is None else _sigmoid(gate(0, step, state, cell, 0))
        cell = forget * cell + enter * np.tanh(gate(2, step, state, None))
        if options.cellClip > 0:
            cell = np.clip(cell, -options.cellClip, options.cellClip)
        hidden = _sigmoid(gate(3, step, state, cell, 2)) * np.tanh(cell)
        largest = max(largest, float(np.abs(cell).max(initial=0.0)))
        low, high = min(low, float(hidden.min(initial=0.0))), max(high, float(hidden.max(initial=0.0)))
        if projection is None:
            state = hidden
            continue
        state = hidden @ projection.T + (0.0 if offset is None else offset)
        if options.projClip > 0:
            state = np.clip(state, -options.projClip, options.projClip)
    return np.array([-largest, largest]), np.array([low, high])


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 0.5 * (1.0 + np.tanh(0.5 * x))


def rewrite_lstm(
    operator: Operator,
    data: Tensor,
    output: Quantization,
    hidden: Quantization,
    cell: tuple[float, float],
    weights: Callable[[Tensor], Tensor],
) -> None:
    """Turns an LSTM into integers.

    Args:
        operator: the operator, whose outputs are already in integers.
        data: its input in integers.
        output: the scale of its outputs and of the state that is fed back.
        hidden: the scale of values before a projection. Without a projection, it is that of the output.
        cell: the range of the cell's state.
        weights: returns a constant with one scale in 8 bits.
    """
    inputs: list[Tensor | None] = list(operator.inputs)
    inputs[0] = data
    for place in (*_INPUT_WEIGHTS, *_STATE_WEIGHTS, PROJECTION):
        tensor = _place(operator, place)
        if tensor is not None:
            inputs[place] = weights(tensor)
    for place in _PEEPHOLES:
        tensor = _place(operator, place)
        if tensor is not None:
            inputs[place] = _sixteen_bits(tensor)
    for place, source in zip(_BIASES, _INPUT_WEIGHTS, strict=True):
        tensor, scaled = _place(operator, place), inputs[source]
        if tensor is not None and scaled is not None:
            inputs[place] = arrays.bias(tensor, _scale(data.quantization), _scale(scaled.quantization), "INT32")
    tensor = _place(operator, _PROJECTION_BIAS)
    if tensor is not None:
        scaled = inputs[PROJECTION]
        assert scaled is not None
        inputs[_PROJECTION_BIAS] = arrays.bias(tensor, _scale(hidden), _scale(scaled.quantization), "INT32")
    for place, type_name, numbers in (
        (OUTPUT_STATE, "INT8", output),
        (CELL_STATE, "INT16", _power_of_two(max(-cell[0], cell[1]))),
    ):
        state = operator.inputs[place]
        assert state is not None
        inputs[place] = Tensor(f"{state.name}/integer", type_name, state.shape, None, numbers, is_variable=True)
    operator.inputs = inputs
    operator.intermediates = [
        Tensor(f"{operator.outputs[0].name}/{name}_intermediate", "FLOAT32", (0,)) for name in _INTERMEDIATES[:-1]
    ]
    last = Tensor(f"{operator.outputs[0].name}/{_INTERMEDIATES[-1]}_intermediate", "INT8", (0,), None, hidden)
    operator.intermediates.append(last)
    if not operator.options.cellClip:
        operator.options.cellClip = _CLIP


def _scale(numbers: Quantization | None) -> np.ndarray:
    assert numbers is not None and numbers.scale is not None
    return numbers.scale


def _power_of_two(largest: float) -> Quantization:
    # The kernel's tanh reads numbers with at least one bit of 16 for the sign, and none after the first 15 of the fraction.
    exponent = max(0, math.ceil(math.log2(largest))) if largest > 0 else 0
    return Quantization(np.array([2.0 ** (exponent - 15)], np.float32), np.array([0], np.int64))


def _sixteen_bits(tensor: Tensor) -> Tensor:
    assert tensor.data is not None
    largest = float(np.abs(tensor.data).max(initial=0.0))
    numbers = Quantization(np.array([largest / 32767 if largest else 1.0], np.float32), np.array([0], np.int64))
    return Tensor(tensor.name, "INT16", tensor.shape, arrays.stored(tensor.data, numbers, "INT16"), numbers)
