"""Recurrent layers, as loops over time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stoker._src.graph.tensor import Tensor
from stoker._src.lite.keras.layers import LAYERS, Layer, UnsupportedLayer, builds
from stoker._src.ops.array import constants, gathering, joining, selection, shaping
from stoker._src.ops.control_flow import branches_and_loops
from stoker._src.ops.control_flow.tensor_array import TensorArray
from stoker._src.ops.linalg import matrix_products
from stoker._src.ops.nn import bias

Step = Callable[[Tensor, list[Tensor]], list[Tensor]]


def _run(layer: Layer, inputs: Any, units: int, count: int, step: Step) -> Any:
    """Applies `step` to each time step. It maps the input and the states to the next states, the first of which is the output."""
    config = layer.config
    if config.get("stateful"):
        raise UnsupportedLayer("it keeps its state between calls (stateful=True)")
    if config.get("time_major"):
        raise UnsupportedLayer("its input has the time first (time_major=True)")
    x, *given = inputs if isinstance(inputs, list) else [inputs]
    if x.static_shape.rank != 3:
        raise UnsupportedLayer(f"its input has the shape {x.shape} in place of [batch, time, features]")
    batch, steps = x.static_shape[0], x.static_shape[1]
    rows: Any = shaping.shape(x)[0] if batch is None else batch
    length: Any = shaping.shape(x)[1] if steps is None else steps
    x = shaping.transpose(x, [1, 0, 2])
    if config.get("go_backwards"):
        x = selection.reverse(x, [0])
    states = given or [shaping.zeros(joining.stack([rows, units])) for _ in range(count)]
    for each in states:
        each.set_shape([batch, units])
    sequences = bool(config.get("return_sequences"))
    loop: list[Any] = [0, *states]
    if sequences:
        loop.append(TensorArray(x.dtype, size=length, element_shape=[batch, units]))

    def body(time: Any, *now: Any) -> list[Any]:
        following = step(gathering.gather(x, time), list(now[:count]))
        return [time + 1, *following, *([now[count].write(time, following[0])] if sequences else [])]

    done = branches_and_loops.while_loop(lambda time, *_: time < length, body, loop)
    last = list(done[1 : count + 1])
    output = last[0]
    if sequences:
        output = shaping.transpose(done[-1].stack(), [1, 0, 2])
        output.set_shape([batch, steps, units])
    return [output, *last] if config.get("return_state") else output


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


@builds("SimpleRNN")
def simple_rnn(layer: Layer, inputs: Any) -> Any:
    weights = np.concatenate([layer.array("kernel"), layer.array("recurrent_kernel")])
    both = constants.constant(weights, name="kernel")
    offset = layer.weight("bias") if layer.config.get("use_bias", True) else None

    def step(x: Tensor, states: list[Tensor]) -> list[Tensor]:
        return [layer.activation(_product(joining.concat([x, states[0]], 1), both, offset))]

    return _run(layer, inputs, _units(layer), 1, step)


@builds("LSTM", "CuDNNLSTM")
def lstm(layer: Layer, inputs: Any) -> Any:
    units = _units(layer)
    activation, recurrent = _activations(layer)
    kernel = np.concatenate([layer.array("kernel"), layer.array("recurrent_kernel")])
    fused = layer.class_name == "CuDNNLSTM"
    if fused:
        offset = layer.array("bias").reshape(2, -1).sum(0)
    else:
        offset = layer.array("bias") if layer.config.get("use_bias", True) else np.zeros(4 * units, np.float32)
    # Keras orders the gates as input, forget, new, output. In the order below, the converter recognizes TFLite's LSTM.
    order = [0, 2, 1, 3]
    weights = constants.constant(_gates(kernel, units, order), name="kernel")
    added = constants.constant(_gates(offset, units, order), name="bias")

    def step(x: Tensor, states: list[Tensor]) -> list[Tensor]:
        output, cell = states
        gates = _product(joining.concat([x, output], 1), weights, added)
        enter, new, forget, leave = joining.split(gates, 4, axis=1)
        cell = cell * recurrent(forget) + recurrent(enter) * activation(new)
        return [activation(cell) * recurrent(leave), cell]

    return _run(layer, inputs, units, 2, step)


def _gates(values: np.ndarray, units: int, order: list[int]) -> np.ndarray:
    return np.concatenate([values[..., n * units : (n + 1) * units] for n in order], -1)


@builds("GRU", "CuDNNGRU")
def gru(layer: Layer, inputs: Any) -> Any:
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

    def step(x: Tensor, states: list[Tensor]) -> list[Tensor]:
        (state,) = states
        both = recurrent(_product(joining.concat([x, state], 1), gates, gate_offset))
        update, reset = joining.split(both, 2, axis=1)
        if after:
            remembered = reset * _product(state, old, old_offset)
        else:
            remembered = _product(reset * state, old, None)
        candidate = activation(_product(x, new, new_offset) + remembered)
        return [update * state + (1.0 - update) * candidate]

    return _run(layer, inputs, units, 1, step)


@builds("Bidirectional")
def bidirectional(layer: Layer, inputs: Any) -> Any:
    config = layer.config
    inner = config["layer"]
    kind = inner["class_name"]
    if kind not in ("LSTM", "GRU", "SimpleRNN", "CuDNNLSTM", "CuDNNGRU"):
        raise UnsupportedLayer(f"it runs a layer of the class {kind} both ways")
    settings = dict(inner["config"])
    back = dict((config.get("backward_layer") or inner)["config"])
    if not config.get("backward_layer"):
        back["go_backwards"] = not settings.get("go_backwards", False)
    forward = LAYERS[kind](layer.part(kind, settings, "forward_"), inputs)
    backward = LAYERS[kind](layer.part(kind, back, "backward_"), inputs)
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
