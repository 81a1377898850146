"""Whole models for the TFLite converter. `build(tf, *inputs)` works with stoker's 1.x names and with TensorFlow's; `width` scales the channels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Network(NamedTuple):
    """A model: what builds it from its inputs, and a batch of inputs."""

    build: Callable[..., Any]
    inputs: Callable[[], list[np.ndarray]]
    builtins: set[str]
    """Every builtin of the converted model: more would be something that was not folded."""


def _f32(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.RandomState(seed).randn(*shape).astype(np.float32)


class _Layers:
    """Convolutions with batch normalization whose numbers are not the initial ones."""

    def __init__(self, tf: Any) -> None:
        self.tf = tf
        self.count = 0
        self.random = np.random.RandomState(1)

    def variable(self, *shape: int, around: float = 0.0) -> Any:
        self.count += 1
        fan = max(int(np.prod(shape[:-1])), 1)
        value = (around + self.random.randn(*shape) * (0.3 if around else fan**-0.5)).astype(np.float32)
        return self.tf.get_variable(f"v{self.count}", initializer=value)

    def conv(self, x: Any, channels: int, size: int = 3, stride: int = 1, padding: str = "SAME") -> Any:
        filters = self.variable(size, size, int(x.shape[-1]), channels)
        return self.tf.nn.conv2d(x, filters, [1, stride, stride, 1], padding)

    def depthwise(self, x: Any, stride: int = 1) -> Any:
        return self.tf.nn.depthwise_conv2d(x, self.variable(3, 3, int(x.shape[-1]), 1), [1, stride, stride, 1], "SAME")

    def norm(self, x: Any) -> Any:
        channels = int(x.shape[-1])
        scale, offset = self.variable(channels, around=1.0), self.variable(channels)
        mean, variance = self.variable(channels), self.tf.abs(self.variable(channels, around=1.0)) + 0.1
        return self.tf.nn.fused_batch_norm(x, scale, offset, mean, variance, is_training=False)[0]

    def dense(self, x: Any, units: int) -> Any:
        return self.tf.matmul(x, self.variable(int(x.shape[-1]), units)) + self.variable(units)

    def layer_norm(self, x: Any) -> Any:
        tf, channels = self.tf, int(x.shape[-1])
        mean, variance = tf.nn.moments(x, [-1], keep_dims=True)
        return (x - mean) * tf.math.rsqrt(variance + 1e-6) * self.variable(channels, around=1.0) + self.variable(
            channels
        )


def mobilenet_v1(tf: Any, x: Any, width: int = 4) -> Any:
    layers = _Layers(tf)
    x = tf.nn.relu6(layers.norm(layers.conv(x, 2 * width, stride=2)))
    for channels, stride in ((2, 1), (4, 2), (4, 1), (8, 2)):
        x = tf.nn.relu6(layers.norm(layers.depthwise(x, stride)))
        x = tf.nn.relu6(layers.norm(layers.conv(x, channels * width, 1)))
    x = tf.nn.avg_pool(x, [1, int(x.shape[1]), int(x.shape[2]), 1], [1, 1, 1, 1], "VALID")
    x = tf.squeeze(tf.nn.bias_add(layers.conv(x, 10, 1), layers.variable(10)), [1, 2])
    return tf.nn.softmax(x)


def mobilenet_v2(tf: Any, x: Any, width: int = 4) -> Any:
    layers = _Layers(tf)
    x = tf.nn.relu6(layers.norm(layers.conv(x, 2 * width, stride=2)))
    for channels, stride in ((2, 1), (3, 2), (3, 1)):
        inside = tf.nn.relu6(layers.norm(layers.conv(x, int(x.shape[-1]) * 4, 1)))
        inside = tf.nn.relu6(layers.norm(layers.depthwise(inside, stride)))
        inside = layers.norm(layers.conv(inside, channels * width, 1))
        x = x + inside if stride == 1 and int(x.shape[-1]) == channels * width else inside
    return layers.dense(tf.reduce_mean(x, [1, 2]), 10)


def resnet(tf: Any, x: Any, width: int = 4) -> Any:
    layers = _Layers(tf)
    x = tf.pad(x, [[0, 0], [3, 3], [3, 3], [0, 0]])
    x = tf.nn.relu(layers.norm(layers.conv(x, 2 * width, 7, 2, "VALID")))
    x = tf.nn.max_pool(x, [1, 3, 3, 1], [1, 2, 2, 1], "SAME")
    for channels, stride in ((2, 1), (4, 2)):
        shortcut = x if stride == 1 else layers.norm(layers.conv(x, channels * width, 1, stride))
        inside = tf.nn.relu(layers.norm(layers.conv(x, channels * width, 3, stride)))
        x = tf.nn.relu(shortcut + layers.norm(layers.conv(inside, channels * width)))
    return layers.dense(tf.reduce_mean(x, [1, 2]), 10)


def gru(tf: Any, x: Any, width: int = 4) -> Any:
    layers = _Layers(tf)
    units, steps = 2 * width, int(x.shape[1])
    gates, gate_bias = layers.variable(int(x.shape[2]) + units, 2 * units), layers.variable(2 * units)
    candidate, bias = layers.variable(int(x.shape[2]) + units, units), layers.variable(units)
    outputs = tf.TensorArray(tf.float32, size=steps, element_shape=[int(x.shape[0]), units])

    def step(i: Any, state: Any, outputs: Any) -> Any:
        now = x[:, i]
        r, u = tf.split(tf.sigmoid(tf.matmul(tf.concat([now, state], 1), gates) + gate_bias), 2, axis=1)
        c = tf.tanh(tf.matmul(tf.concat([now, r * state], 1), candidate) + bias)
        state = u * state + (1.0 - u) * c
        return i + 1, state, outputs.write(i, state)

    _, state, outputs = tf.while_loop(lambda i, *_: i < steps, step, [0, tf.zeros([int(x.shape[0]), units]), outputs])
    return outputs.stack(), layers.dense(state, 3)


def transformer(tf: Any, x: Any, width: int = 4) -> Any:
    layers = _Layers(tf)
    batch, length, channels = (int(size) for size in x.shape)
    heads = 2

    def split(values: Any) -> Any:
        return tf.transpose(tf.reshape(values, [batch, length, heads, channels // heads]), [0, 2, 1, 3])

    def dense(values: Any, units: int) -> Any:
        return tf.tensordot(values, layers.variable(int(values.shape[-1]), units), 1) + layers.variable(units)

    normed = layers.layer_norm(x)
    query, key, value = (split(dense(normed, channels)) for _ in range(3))
    weights = tf.nn.softmax(tf.matmul(query, key, transpose_b=True) / np.float32(np.sqrt(channels // heads)))
    mixed = tf.reshape(tf.transpose(tf.matmul(weights, value), [0, 2, 1, 3]), [batch, length, channels])
    x = x + dense(mixed, channels)
    inside = dense(layers.layer_norm(x), 4 * channels)
    inside = inside * 0.5 * (1.0 + tf.math.erf(inside / np.float32(np.sqrt(2.0))))
    return x + dense(inside, channels)


def wide_and_deep(tf: Any, ids: Any, numbers: Any, width: int = 4) -> Any:
    layers = _Layers(tf)
    wide = tf.gather(layers.variable(50, 1), ids[:, 0])
    embedded = [tf.nn.embedding_lookup(layers.variable(50, width), ids[:, column]) for column in range(3)]
    deep = tf.concat([*embedded, numbers], 1)
    for units in (4 * width, 2 * width):
        deep = tf.nn.relu(layers.dense(deep, units))
    return tf.sigmoid(layers.dense(deep, 1) + wide)


def detection_boxes(tf: Any, x: Any, width: int = 4) -> Any:
    """The box and the score of each place of each image."""
    layers = _Layers(tf)
    x = tf.nn.relu6(layers.norm(layers.conv(x, 2 * width, stride=2)))
    images, rows, columns = (int(size) for size in x.shape[:3])
    places = tf.reshape(layers.conv(x, 4), [images * rows * columns, 4])
    scores = tf.sigmoid(tf.reshape(layers.conv(x, 1), [images * rows * columns]))
    centres = np.stack(np.meshgrid(np.linspace(0, 1, rows), np.linspace(0, 1, columns), indexing="ij"), -1)
    centres = np.tile(centres.reshape(-1, 2), [images, 1]).astype(np.float32)
    middle = centres + 0.1 * places[:, :2]
    size = 0.2 * tf.exp(0.1 * places[:, 2:])
    return tf.concat([middle - size / 2, middle + size / 2], 1), scores


def detection(tf: Any, x: Any, width: int = 4) -> Any:
    boxes, scores = detection_boxes(tf, x, width)
    chosen = tf.image.non_max_suppression(boxes, scores, 5, 0.4)
    return tf.gather(boxes, chosen), tf.gather(scores, chosen)


def unet(tf: Any, x: Any, width: int = 4) -> Any:
    layers = _Layers(tf)
    skips = []
    for level in (1, 2):
        x = tf.nn.relu(layers.norm(layers.conv(x, width * level)))
        skips.append(x)
        x = tf.nn.max_pool(x, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    x = tf.nn.relu(layers.norm(layers.conv(x, 4 * width)))
    for level, skip in zip((2, 1), reversed(skips), strict=True):
        shape = [int(size) for size in skip.shape[:3]] + [width * level]
        x = tf.nn.conv2d_transpose(
            x, layers.variable(2, 2, width * level, int(x.shape[-1])), shape, [1, 2, 2, 1], "SAME"
        )
        x = tf.nn.relu(layers.norm(layers.conv(tf.concat([x, skip], 3), width * level)))
    return tf.nn.softmax(layers.conv(x, 3, 1))


def speech(tf: Any, spectrum: Any, width: int = 4) -> Any:
    layers = _Layers(tf)
    x = tf.reshape(spectrum, [-1, 20, 10, 1])
    x = tf.nn.relu(tf.nn.bias_add(layers.conv(x, 2 * width, 8), layers.variable(2 * width)))
    x = tf.nn.dropout(x, rate=0.0)
    x = tf.nn.max_pool(x, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    x = tf.nn.relu(tf.nn.bias_add(layers.conv(x, 2 * width, 4), layers.variable(2 * width)))
    return tf.nn.softmax(layers.dense(tf.reshape(x, [-1, int(np.prod([int(size) for size in x.shape[1:]]))]), 4))


def super_resolution(tf: Any, x: Any, width: int = 4) -> Any:
    layers = _Layers(tf)
    first = x = tf.nn.bias_add(layers.conv(x, 2 * width), layers.variable(2 * width))
    for _ in range(2):
        inside = tf.nn.relu(tf.nn.bias_add(layers.conv(x, 2 * width), layers.variable(2 * width)))
        x = x + 0.1 * layers.conv(inside, 2 * width)
    x = tf.depth_to_space(layers.conv(x + first, 12), 2)
    return tf.clip_by_value(x, -1.0, 1.0)


def text_cnn(tf: Any, ids: Any, width: int = 4) -> Any:
    layers = _Layers(tf)
    embedded = tf.expand_dims(tf.nn.embedding_lookup(layers.variable(100, 2 * width), ids), 1)
    pooled = []
    for size in (2, 3):
        filters = layers.variable(1, size, 2 * width, width)
        x = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(embedded, filters, [1, 1, 1, 1], "VALID"), layers.variable(width)))
        pooled.append(tf.reduce_max(x, [1, 2]))
    return tf.nn.softmax(layers.dense(tf.concat(pooled, 1), 3))


def lstm(tf: Any, x: Any, width: int = 4) -> Any:
    layers = _Layers(tf)
    units, steps = 2 * width, int(x.shape[1])
    kernel, bias = layers.variable(int(x.shape[2]) + units, 4 * units), layers.variable(4 * units)

    def step(i: Any, cell: Any, state: Any) -> Any:
        gates = tf.matmul(tf.concat([x[:, i], state], 1), kernel) + bias
        enter, new, forget, out = tf.split(gates, 4, axis=1)
        cell = cell * tf.sigmoid(forget + 1.0) + tf.sigmoid(enter) * tf.tanh(new)
        return i + 1, cell, tf.tanh(cell) * tf.sigmoid(out)

    zeros = tf.zeros([int(x.shape[0]), units])
    return layers.dense(tf.while_loop(lambda i, *_: i < steps, step, [0, zeros, zeros])[2], 3)


def _ids(*shape: int, below: int = 50) -> np.ndarray:
    return np.random.RandomState(3).randint(0, below, shape).astype(np.int32)


_LOOP = {"WHILE", "LESS", "ADD", "CONCATENATION", "FULLY_CONNECTED"}
NETWORKS = {
    "mobilenet_v1": Network(
        mobilenet_v1,
        lambda: [_f32(1, 32, 32, 3)],
        {"CONV_2D", "DEPTHWISE_CONV_2D", "AVERAGE_POOL_2D", "RESHAPE", "SOFTMAX"},
    ),
    "mobilenet_v2": Network(
        mobilenet_v2, lambda: [_f32(1, 32, 32, 3)], {"CONV_2D", "DEPTHWISE_CONV_2D", "ADD", "MEAN", "FULLY_CONNECTED"}
    ),
    "resnet": Network(
        resnet, lambda: [_f32(1, 32, 32, 3)], {"PAD", "CONV_2D", "MAX_POOL_2D", "ADD", "MEAN", "FULLY_CONNECTED"}
    ),
    "gru": Network(
        gru,
        lambda: [_f32(2, 6, 4)],
        _LOOP
        | {
            "GATHER",
            "LOGISTIC",
            "SPLIT",
            "MUL",
            "TANH",
            "SUB",
            "RESHAPE",
            "EQUAL",
            "TILE",
            "SELECT",
        },
    ),
    "lstm": Network(lstm, lambda: [_f32(2, 6, 4)], _LOOP | {"GATHER", "LSTM"}),
    "transformer": Network(
        transformer,
        lambda: [_f32(2, 6, 8)],
        {
            "MEAN",
            "SQUARE",
            "SUB",
            "ADD",
            "RSQRT",
            "MUL",
            "FULLY_CONNECTED",
            "RESHAPE",
            "TRANSPOSE",
            "BATCH_MATMUL",
            "SOFTMAX",
            "GELU",
        },
    ),
    "wide_and_deep": Network(
        wide_and_deep,
        lambda: [_ids(4, 3), _f32(4, 5)],
        {"STRIDED_SLICE", "EMBEDDING_LOOKUP", "CONCATENATION", "FULLY_CONNECTED", "ADD", "LOGISTIC"},
    ),
    "detection": Network(
        detection,
        lambda: [_f32(1, 16, 16, 3)],
        {
            "CONV_2D",
            "RESHAPE",
            "LOGISTIC",
            "STRIDED_SLICE",
            "MUL",
            "ADD",
            "EXP",
            "SUB",
            "CONCATENATION",
            "NON_MAX_SUPPRESSION_V4",
            "SLICE",
            "GATHER",
        },
    ),
    "unet": Network(
        unet, lambda: [_f32(1, 16, 16, 3)], {"CONV_2D", "MAX_POOL_2D", "TRANSPOSE_CONV", "CONCATENATION", "SOFTMAX"}
    ),
    "speech": Network(
        speech, lambda: [_f32(1, 200)], {"RESHAPE", "CONV_2D", "MAX_POOL_2D", "FULLY_CONNECTED", "SOFTMAX"}
    ),
    "super_resolution": Network(
        super_resolution, lambda: [_f32(1, 8, 8, 3)], {"CONV_2D", "ADD", "DEPTH_TO_SPACE", "RELU_N1_TO_1"}
    ),
    "text_cnn": Network(
        text_cnn,
        lambda: [_ids(2, 12, below=100)],
        {"GATHER", "RESHAPE", "CONV_2D", "REDUCE_MAX", "CONCATENATION", "FULLY_CONNECTED", "SOFTMAX"},
    ),
}
