"""Recurrent layers, as loops over time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from stoker._src.formats.keras_files import snake_case
from stoker._src.graph.tensor import Tensor
from stoker._src.keras import configurations
from stoker._src.lite.keras.calls import Call, flat
from stoker._src.lite.keras.layers import LAYERS, Layer, UnsupportedLayer, builds, static, weights_of
from stoker._src.ops.array import constants, gathering, joining, selection, shaping
from stoker._src.ops.control_flow import branches_and_loops
from stoker._src.ops.control_flow.tensor_array import TensorArray
from stoker._src.ops.linalg import matrix_products
from stoker._src.ops.nn import bias
from stoker._src.ops.variables.variables import ResourceVariable

Step = Callable[[Tensor, list[Tensor]], tuple[Tensor, list[Tensor]]]


@dataclass
class Cell:
    """One step of a recurrent layer: from the input and the states to the output and the next states. Shapes are those of one example."""

    states: list[list[int]]
    output: list[int]
    step: Step
    place: int = 0
    """The state that is the output."""


def _run(layer: Layer, inputs: Any, cell: Cell) -> Any:
    """Applies a cell to each time step. Where a mask says that a step is padding, states stay and the output is the one before."""
    config = layer.config
    x, *given = inputs if isinstance(inputs, list) else [inputs]
    started = layer.call.kwargs.get("initial_state")
    if started is not None:
        given = flat(started)
    rank = x.static_shape.rank or 0
    if rank < 3:
        raise UnsupportedLayer(f"its input has the shape {x.shape} in place of [batch, time, features]")
    swapped = [1, 0, *range(2, rank)]
    # Keras 3 finds the mask of a layer by itself only if the layer has no other tensors as arguments.
    mask = layer.call.kwargs.get("mask") if given and layer.is_keras_3 else layer.mask
    if not config.get("time_major"):
        x = shaping.transpose(x, swapped)
        mask = None if mask is None else shaping.transpose(mask, [1, 0])
    steps, batch = x.static_shape[0], x.static_shape[1]
    length: Any = shaping.shape(x)[0] if steps is None else steps
    rows: Any = shaping.shape(x)[1] if batch is None else batch
    if config.get("go_backwards"):
        x = selection.reverse(x, [0])
        mask = None if mask is None else selection.reverse(mask, [0])
    kept = _kept_states(layer, cell, batch) if config.get("stateful") and not given else []
    states = given or [each.read_value() for each in kept]
    if not states:
        states = [shaping.zeros(joining.stack([rows, *sizes])) for sizes in cell.states]
    for each, sizes in zip(states, cell.states, strict=True):
        each.set_shape([batch, *sizes])
    sequences = bool(config.get("return_sequences"))
    count = len(cell.states)
    loop: list[Any] = [0, *states]
    # The output before the first step is zero, whatever the states are.
    remembers = mask is not None and bool(given or kept)
    if remembers:
        first = shaping.zeros(joining.stack([rows, *cell.output]))
        first.set_shape([batch, *cell.output])
        loop.append(first)
    if sequences:
        loop.append(TensorArray(x.dtype, size=length, element_shape=[batch, *cell.output]))

    def body(time: Any, *now: Any) -> list[Any]:
        old, others = list(now[:count]), list(now[count:])
        output, following = cell.step(gathering.gather(x, time), old)
        if mask is not None:
            present = gathering.gather(mask, time)
            last = others[0] if remembers else old[cell.place]
            skipped = shaping.zeros_like(last) if config.get("zero_output_for_mask") else last
            following = [_chosen(present, new, one) for new, one in zip(following, old, strict=True)]
            output = following[cell.place] if skipped is old[cell.place] else _chosen(present, output, skipped)
        after = [output] if remembers else []
        return [time + 1, *following, *after, *([others[-1].write(time, output)] if sequences else [])]

    done = branches_and_loops.while_loop(lambda time, *_: time < length, body, loop)
    last = list(done[1 : count + 1])
    output = done[count + 1] if remembers else last[cell.place]
    if layer.models is not None:
        for variable, value in zip(kept, last, strict=False):
            layer.models.updates.append(variable.assign(value).op)
    if sequences:
        output = done[-1].stack()
        if not config.get("time_major"):
            output = shaping.transpose(output, [1, 0, *range(2, len(cell.output) + 2)])
            output.set_shape([batch, steps, *cell.output])
    return [output, *last] if config.get("return_state") else output


def _chosen(present: Tensor, new: Tensor, old: Tensor) -> Tensor:
    """The new value of the examples whose step is present, and the old one of the others."""
    for _ in range((new.static_shape.rank or 1) - 1):
        present = shaping.expand_dims(present, -1)
    return selection.where_v2(present, new, old)


def _kept_states(layer: Layer, cell: Cell, batch: int | None) -> list[ResourceVariable]:
    """The variables of a layer that goes on in each call where the last one ended."""
    if batch is None:
        raise UnsupportedLayer("it keeps its state between calls (stateful=True), and its batch size is not known")
    return [
        ResourceVariable(np.zeros([batch, *sizes], np.float32), name=f"state_{number}", trainable=False)
        for number, sizes in enumerate(cell.states)
    ]


def _units(layer: Layer) -> int:
    return int(layer.array("recurrent_kernel").shape[0])


def _product(x: Tensor, weights: Tensor, offset: Tensor | None) -> Tensor:
    y = matrix_products.matmul(x, weights)
    return y if offset is None else bias.bias_add(y, offset)


def _activations(layer: Layer) -> tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]:
    if layer.class_name.startswith("CuDNN"):
        settings = layer.part(layer.class_name, {"activation": "tanh", "recurrent_activation": "sigmoid"})
    else:
        settings = layer
    return settings.activation, lambda x: settings.activation(x, "recurrent_activation")


def _simple(layer: Layer) -> Cell:
    weights = np.concatenate([layer.array("kernel"), layer.array("recurrent_kernel")])
    both = constants.constant(weights, name="kernel")
    offset = layer.weight("bias") if layer.config.get("use_bias", True) else None
    units = _units(layer)

    def step(x: Tensor, states: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        y = layer.activation(_product(joining.concat([x, states[0]], 1), both, offset))
        return y, [y]

    return Cell([[units]], [units], step)


def _lstm(layer: Layer) -> Cell:
    units = _units(layer)
    activation, recurrent = _activations(layer)
    kernel = np.concatenate([layer.array("kernel"), layer.array("recurrent_kernel")])
    if layer.class_name == "CuDNNLSTM":
        offset = layer.array("bias").reshape(2, -1).sum(0)
    else:
        offset = layer.array("bias") if layer.config.get("use_bias", True) else np.zeros(4 * units, np.float32)
    # Keras orders the gates as input, forget, new, output. In the order below, the converter recognizes TFLite's LSTM.
    order = [0, 2, 1, 3]
    weights = constants.constant(_gates(kernel, units, order), name="kernel")
    added = constants.constant(_gates(offset, units, order), name="bias")

    def step(x: Tensor, states: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        output, cell = states
        gates = _product(joining.concat([x, output], 1), weights, added)
        enter, new, forget, leave = joining.split(gates, 4, axis=1)
        cell = cell * recurrent(forget) + recurrent(enter) * activation(new)
        output = activation(cell) * recurrent(leave)
        return output, [output, cell]

    return Cell([[units], [units]], [units], step)


def _gates(values: np.ndarray, units: int, order: list[int]) -> np.ndarray:
    return np.concatenate([values[..., n * units : (n + 1) * units] for n in order], -1)


def _gru(layer: Layer) -> Cell:
    units = _units(layer)
    activation, recurrent = _activations(layer)
    fused = layer.class_name == "CuDNNGRU"
    kernel, inner = layer.array("kernel"), layer.array("recurrent_kernel")
    after = fused or bool(layer.config.get("reset_after", False))
    if fused or layer.config.get("use_bias", True):
        offsets = layer.array("bias").reshape(2, -1) if after else np.stack([layer.array("bias")] * 2)
    else:
        offsets = np.zeros([2, 3 * units], np.float32)
    if not after:
        offsets = np.stack([offsets[0], np.zeros_like(offsets[0])])
    # The two gates take the input and the state together.
    gates = constants.constant(np.concatenate([kernel[:, : 2 * units], inner[:, : 2 * units]]), name="gates")
    gate_offset = constants.constant(offsets[:, : 2 * units].sum(0), name="gate_bias")
    new, new_offset = (constants.constant(each) for each in (kernel[:, 2 * units :], offsets[0, 2 * units :]))
    old, old_offset = (constants.constant(each) for each in (inner[:, 2 * units :], offsets[1, 2 * units :]))

    def step(x: Tensor, states: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        (state,) = states
        both = recurrent(_product(joining.concat([x, state], 1), gates, gate_offset))
        update, reset = joining.split(both, 2, axis=1)
        if after:
            remembered = reset * _product(state, old, old_offset)
        else:
            remembered = _product(reset * state, old, None)
        candidate = activation(_product(x, new, new_offset) + remembered)
        y = update * state + (1.0 - update) * candidate
        return y, [y]

    return Cell([[units]], [units], step)


def _stacked(layer: Layer) -> Cell:
    """Several cells, each of which takes the output of the one before. They have their own weights, by their names or by their classes."""
    cells, counts = [], dict[str, int]()
    for each in layer.config["cells"]:
        kind, config = each["class_name"], each["config"]
        snake = snake_case(kind)
        number = counts[snake] = counts.get(snake, -1) + 1
        names = {config.get("name", snake), f"{snake}_{number}" if number else snake}
        arrays = {path: value for path, value in layer.arrays.items() if names & set(path.split("/"))}
        arrays = arrays or _numbered(layer.arrays, len(cells))
        cells.append(_cell(replace(layer, class_name=kind, config=config, arrays=arrays)))

    def step(x: Tensor, states: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        following: list[Tensor] = []
        for cell in cells:
            first = len(following)
            x, made = cell.step(x, states[first : first + len(cell.states)])
            following += made
        return x, following

    shapes = [sizes for cell in cells for sizes in cell.states]
    return Cell(shapes, cells[-1].output, step, len(shapes) - len(cells[-1].states) + cells[-1].place)


def _numbered(arrays: dict[str, np.ndarray], number: int) -> dict[str, np.ndarray]:
    """The weights of a cell in the oldest files, which only number them: "kernel", "kernel_1"."""
    end = f"_{number}" if number else ""
    plain = {f"{name}{end}": name for name in ("kernel", "recurrent_kernel", "bias")}
    last = {path: path.rpartition("/")[2] for path in arrays}
    return {plain[last[path]]: value for path, value in arrays.items() if last[path] in plain}


_CELLS: dict[str, Callable[[Layer], Cell]] = {
    "SimpleRNN": _simple,
    "SimpleRNNCell": _simple,
    **dict.fromkeys(("LSTM", "LSTMCell", "CuDNNLSTM"), _lstm),
    **dict.fromkeys(("GRU", "GRUCell", "CuDNNGRU"), _gru),
    "StackedRNNCells": _stacked,
}


def _cell(layer: Layer) -> Cell:
    if layer.class_name not in _CELLS:
        raise UnsupportedLayer(f"its cell has the class {layer.class_name}")
    return _CELLS[layer.class_name](layer)


@builds("SimpleRNN", "LSTM", "CuDNNLSTM", "GRU", "CuDNNGRU")
def recurrent_layer(layer: Layer, inputs: Any) -> Any:
    return _run(layer, inputs, _cell(layer))


@builds("RNN")
def rnn(layer: Layer, inputs: Any) -> Any:
    cell = layer.config["cell"]
    if isinstance(cell, list):
        cell = {"class_name": "StackedRNNCells", "config": {"cells": cell}}
    return _run(layer, inputs, _cell(layer.part(cell["class_name"], cell["config"])))


@builds("ConvLSTM2D")
def conv_lstm(layer: Layer, inputs: Any) -> Any:
    """The cell is that of `tf.keras`."""
    x = inputs[0] if isinstance(inputs, list) else inputs
    made: Any = configurations.layer_of(layer.class_name, layer.config, layer.version, layer.functions)
    cell = made.cell
    with weights_of(layer.arrays):
        cell.build([x.static_shape[0], *(static(x, axis) for axis in range(2, 5))])
    shape = cell.output_size.as_list()
    return _run(layer, inputs, Cell([shape, shape], shape, cell.call))


@builds("Bidirectional")
def bidirectional(layer: Layer, inputs: Any) -> Any:
    config = layer.config
    inner = config["layer"]
    kind = inner["class_name"]
    if kind not in ("LSTM", "GRU", "SimpleRNN", "RNN", "CuDNNLSTM", "CuDNNGRU"):
        raise UnsupportedLayer(f"it runs a layer of the class {kind} both ways")
    settings = dict(inner["config"])
    # Keras clears the outputs of padding, so that both directions agree about it.
    settings["zero_output_for_mask"] = bool(settings.get("return_sequences"))
    back = dict((config.get("backward_layer") or inner)["config"])
    back["zero_output_for_mask"] = settings["zero_output_for_mask"]
    if not config.get("backward_layer"):
        back["go_backwards"] = not settings.get("go_backwards", False)
    x, *given = inputs if isinstance(inputs, list) else [inputs]
    given = flat(layer.call.kwargs.get("initial_state") or []) or given
    half = len(given) // 2
    rest = {key: value for key, value in layer.call.kwargs.items() if key != "initial_state"}
    layer = replace(layer, call=Call(layer.call.args, rest))
    forward = LAYERS[kind](layer.part(kind, settings, "forward_"), [x, *given[:half]])
    backward = LAYERS[kind](layer.part(kind, back, "backward_"), [x, *given[half:]])
    states: list[Tensor] = []
    if settings.get("return_state"):
        forward, *first = forward
        backward, *second = backward
        states = [*first, *second]
    if settings.get("return_sequences"):
        backward = selection.reverse(backward, [1])
    mode = config.get("merge_mode", "concat")
    if mode is None:
        return [forward, backward, *states]
    merge: Callable[[], Tensor] = {
        "concat": lambda: joining.concat([forward, backward], -1),
        "sum": lambda: forward + backward,
        "mul": lambda: forward * backward,
        "ave": lambda: (forward + backward) * 0.5,
    }[mode]
    return [merge(), *states] if states else merge()
