"""Models of a graph whose batch is open: it is 1 in the model, and an interpreter may change it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import stoker.compat.v1 as tf
from stoker._src.lite.flatbuffer import read_model

Converter = tf.lite.TFLiteConverter
RANDOM = np.random.RandomState(5)
WEIGHTS = RANDOM.randn(4, 3, 2).astype(np.float32)


def _experts(x: Any) -> Any:
    gates = tf.nn.softmax(tf.reduce_sum(x, 1))
    return tf.einsum("be,beo->bo", gates, tf.einsum("bi,eio->beo", x[:, 0, :3], WEIGHTS))


def _resized(model: bytes, array: np.ndarray) -> np.ndarray:
    interpreter = tf.lite.Interpreter(model_content=model)
    (detail,) = interpreter.get_input_details()
    assert detail["shape"][0] == 1
    interpreter.resize_tensor_input(detail["index"], array.shape)
    interpreter.allocate_tensors()
    interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


@pytest.mark.parametrize(
    "build",
    [
        lambda x: tf.einsum("bij,jhd->bhid", x, WEIGHTS),
        lambda x: tf.einsum("bij,bij->bi", x, x),
        lambda x: tf.einsum("bi,bj->bij", x[:, 0], x[:, 1]),
        lambda x: tf.einsum("bhij,bhik->bjk", *2 * [tf.reshape(x, [-1, 2, 1, 4])]),
        _experts,
        lambda x: tf.tensordot(x, WEIGHTS[:, 0], 1),
        lambda x: tf.tensordot(tf.reshape(x, [-1, 2, 2, 2]), WEIGHTS[:2, :2], [[2, 3], [0, 1]]),
        lambda x: tf.keras.layers.Dense(3)(x),
        lambda x: 1.0 + tf.transpose(tf.reduce_sum(tf.square(x), 2, keepdims=True), [0, 2, 1]),
        lambda x: tf.nn.max_pool3d(tf.reshape(x, [-1, 2, 2, 2, 1]), 2, 1, "SAME"),
    ],
    ids=[
        "einsum with weights",
        "einsum of rows",
        "einsum of all pairs",
        "einsum with merged dimensions",
        "mixture of experts",
        "tensordot",
        "tensordot of two dimensions",
        "dense layer of sequences",
        "transposed sums",
        "pooled volumes",
    ],
)
def test_the_batch_can_be_changed(build):
    """Reshapes of compositions, and those that stand for a transpose or layer, do not state the batch."""
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        x = tf.placeholder(tf.float32, [None, 2, 4])
        y = build(x)
        session.run(tf.global_variables_initializer())
        array = np.random.RandomState(0).randn(3, 2, 4).astype(np.float32)
        expected = session.run(y, {x: array})
        model = Converter.from_session(session, [x], [y]).convert()
    np.testing.assert_allclose(_resized(model, array), expected, rtol=1e-5, atol=1e-6)


def _upsampled(
    batch: int | None, channels: int, integers: bool, stride: int = 2
) -> tuple[bytes, np.ndarray, np.ndarray]:
    """The model of a transposed convolution, a batch of three and its result."""
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        x = tf.placeholder(tf.float32, [batch, 4, 4, 4])
        filters = tf.constant(np.random.RandomState(1).randn(2, 2, channels, 4).astype(np.float32))
        sizes = [batch or tf.shape(x)[0], 4 * stride, 4 * stride, channels]
        y = tf.nn.conv2d_transpose(x, filters, sizes, [1, stride, stride, 1])
        array = np.random.RandomState(0).randn(3, 4, 4, 4).astype(np.float32)
        expected = np.concatenate([session.run(y, {x: each[None]}) for each in array])
        converter = Converter.from_session(session, [x], [y])
        if integers:
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
            converter.representative_dataset = lambda: ([each[None]] for each in array)
        return converter.convert(), array, expected


@pytest.mark.parametrize("channels", [3, 16, 32])
def test_transposed_convolutions_to_few_channels_compute_their_shape(channels):
    """In integers this keeps them from XNNPACK, which takes the same time for few channels as for 64, and the batch can be changed."""
    model, array, expected = _upsampled(None, channels, integers=True)
    codes = [operator.code for operator in read_model(model).main.operators]
    assert "SHAPE" in codes
    np.testing.assert_allclose(_resized(model, array), expected, atol=0.02 * np.abs(expected).max())


@pytest.mark.parametrize(
    ("batch", "channels", "integers", "stride"),
    [(None, 64, True, 2), (None, 8, False, 2), (None, 8, True, 1), (1, 8, True, 2)],
    ids=["many channels", "floating point", "no stride", "closed batch"],
)
def test_other_transposed_convolutions_state_their_shape(batch, channels, integers, stride):
    """A constant shape lets XNNPACK compute those that it is faster at."""
    model, *_ = _upsampled(batch, channels, integers, stride)
    (operator,) = [each for each in read_model(model).main.operators if each.code == "TRANSPOSE_CONV"]
    sizes = operator.inputs[0]
    assert sizes is not None
    assert sizes.data is not None
