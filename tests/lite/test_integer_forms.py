"""Ops without integer kernels of their own become ones that have them, in 8 and in 16 bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import stoker.compat.v1 as tf
from stoker._src.lite.flatbuffer import read_model
from tests.lite.running import run_model

INT16 = tf.lite.OpsSet.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8


def _integers(build: Any, array: np.ndarray, ops: list[Any]) -> tuple[bytes, Any]:
    """The converted model, and what the session computes."""
    graph = tf.Graph()
    with graph.as_default(), tf.Session(graph=graph) as session:
        x = tf.placeholder(array.dtype, array.shape)
        y = build(x)
        converter = tf.lite.TFLiteConverter.from_session(session, [x], tf.nest.flatten(y))
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = lambda: iter([[array]])
        converter.target_spec.supported_ops = ops
        return converter.convert(), session.run(y, {x: array})


RANDOM = np.random.RandomState(3)
IMAGE = RANDOM.randn(1, 6, 6, 4).astype(np.float32)
FILTERS = RANDOM.randn(2, 2, 3, 4).astype(np.float32)
SLOPES = np.array([0.1, 0.5, 0.2, 0.9], np.float32)


@pytest.mark.parametrize("ops", [[tf.lite.OpsSet.TFLITE_BUILTINS_INT8], [INT16]], ids=["INT8", "INT16"])
@pytest.mark.parametrize(
    "build",
    [
        lambda x: tf.nn.relu(tf.nn.conv2d_transpose(x, FILTERS, [1, 12, 12, 3], [1, 2, 2, 1])),
        lambda x: tf.nn.relu(x) - SLOPES * tf.nn.relu(-x),
        lambda x: tf.nn.leaky_relu(x, 0.3),
        lambda x: tf.reduce_sum(x, [1, 2]),
        lambda x: tf.square(x) - tf.negative(x),
        lambda x: x / tf.sqrt(tf.abs(x) + 1.0),
        lambda x: tf.nn.moments(x, [1, 2])[1],
        lambda x: tf.clip_by_value(tf.nn.conv2d(x, 0.2 * FILTERS.transpose(0, 1, 3, 2), 1, "SAME"), 0.0, 1.0),
        lambda x: tf.sqrt(tf.math.log(tf.abs(x) + 2.0)),
        lambda x: x / (tf.abs(x) + 1.0),
        lambda x: 3.0 / (tf.reduce_sum(tf.square(x), -1) + 1.0),
        lambda x: tf.add_n([x, tf.nn.relu(x), 0.5 * x]),
        lambda x: tf.reduce_logsumexp(x, -1),
    ],
    ids=[
        "relu after transposed",
        "prelu",
        "leaky relu",
        "sum",
        "square and negation",
        "division by a root",
        "variance",
        "clip",
        "root and logarithm",
        "division by positive numbers",
        "reciprocal",
        "sum of three",
        "logarithm of a sum of exponentials",
    ],
)
def test_whole_models_in_integers(build, ops):
    """Where floating point is not allowed, these are computed in integers, close to the float model."""
    model, expected = _integers(build, IMAGE, ops)
    (found,) = run_model(model, [IMAGE])
    np.testing.assert_allclose(found, expected, atol=0.03 * float(np.abs(expected).max()))
    kept = {operator.code for operator in read_model(model).main.operators}
    assert not kept & {"SQUARE", "NEG", "DIV", "SQUARED_DIFFERENCE", "ADD_N"}


def test_a_quotient_without_a_positive_divisor_is_refused():
    """A divisor that is negative or zero in a sample has no logarithm: where floating point is not allowed, the division is named."""
    with pytest.raises(ValueError, match="DIV 'truediv"):
        _integers(lambda x: 1.0 / x, IMAGE, [tf.lite.OpsSet.TFLITE_BUILTINS_INT8])


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_masks_of_integers_in_whole_models(dtype):
    """Small integers are numbers as they are where floating point is not allowed, as the masks of language models are; large ones are refused."""
    mask = np.array([[1, 1, 0, 1, 0, 0]], dtype)

    def build(x):
        return tf.nn.softmax((1.0 - tf.cast(x, tf.float32)) * -10000.0)

    model, expected = _integers(build, mask, [tf.lite.OpsSet.TFLITE_BUILTINS_INT8])
    np.testing.assert_allclose(run_model(model, [mask])[0], expected, atol=1 / 128)
    with pytest.raises(ValueError, match=r"CAST .* takes numbers from one kind to another"):
        _integers(build, mask * 200, [tf.lite.OpsSet.TFLITE_BUILTINS_INT8])


def test_truth_values_are_the_integers_zero_and_one():
    """A cast of comparisons to floating point becomes one to integers, whose scale is one."""
    model, expected = _integers(
        lambda x: x + 3.0 * tf.cast(tf.abs(x) > 0.5, tf.float32), IMAGE, [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    )
    codes = [operator.code for operator in read_model(model).main.operators]
    assert codes == ["QUANTIZE", "ABS", "GREATER", "CAST", "MUL", "ADD", "DEQUANTIZE"]
    np.testing.assert_allclose(run_model(model, [IMAGE])[0], expected, atol=0.05)


@pytest.mark.parametrize("subtracted", [False, True])
def test_masks_before_a_softmax_become_integers(subtracted):
    """Large negative numbers, made of truth values, leave the positions that count their steps, and the masked ones nothing, also where a row is all masked."""
    array = RANDOM.uniform(-3, 3, [4, 8]).astype(np.float32)

    def build(x: Any) -> Any:
        hidden = tf.cast(tf.abs(x[:, ::-1]) > 1.5, tf.float32)
        hidden = tf.concat([hidden[:3], tf.ones([1, 8])], 0)
        return tf.nn.softmax(x * 0.5 - 1e9 * hidden if subtracted else x * 0.5 + hidden * -1e9)[:3]

    model, expected = _integers(build, array, [tf.lite.OpsSet.TFLITE_BUILTINS_INT8])
    kinds = {each.type for operator in read_model(model).main.operators[1:-1] for each in operator.outputs}
    assert kinds == {"INT8", "BOOL"}
    (found,) = run_model(model, [array])
    np.testing.assert_allclose(found, expected, atol=0.03)
    assert not found[expected == 0].any()


def test_a_concatenation_takes_its_scale_to_those_that_only_it_reads():
    """Results of ops are stored in the scale of the concatenation that reads them, without a conversion between."""

    def build(x: Any) -> Any:
        return tf.concat([tf.nn.conv2d(x, FILTERS.transpose(0, 1, 3, 2) * factor, 1, "SAME") for factor in (1, 9)], 3)

    model, expected = _integers(build, IMAGE, [tf.lite.OpsSet.TFLITE_BUILTINS_INT8])
    codes = [operator.code for operator in read_model(model).main.operators]
    assert codes == ["QUANTIZE", "CONV_2D", "CONV_2D", "CONCATENATION", "DEQUANTIZE"]
    np.testing.assert_allclose(run_model(model, [IMAGE])[0], expected, atol=0.02 * float(np.abs(expected).max()))


@pytest.mark.parametrize("kind", [np.uint8, np.int8])
def test_pictures_in_bytes(kind):
    """Bytes are numbers with a scale of one, so a network that scales them works on integers throughout."""
    limits = np.iinfo(kind)
    pictures = RANDOM.randint(limits.min, limits.max + 1, [1, 6, 6, 3]).astype(kind)

    def build(x: Any) -> Any:
        scaled = tf.cast(x, tf.float32) / 127.5
        return tf.nn.relu(tf.nn.conv2d(scaled, FILTERS.transpose(0, 1, 3, 2)[:, :, :3], 1, "SAME"))

    two, values = _integers(lambda x: (tf.cast(x, tf.float32), tf.cast(x, tf.float32)), pictures, [])
    for found in run_model(two, [pictures]):
        np.testing.assert_array_equal(found, values[0])
    content, expected = _integers(build, pictures, [tf.lite.OpsSet.TFLITE_BUILTINS_INT8])
    codes = [operator.code for operator in read_model(content).main.operators]
    assert codes == ["QUANTIZE", "CONV_2D", "DEQUANTIZE"]
    found = run_model(content, [pictures])[0]
    np.testing.assert_allclose(found, expected, atol=0.01 * float(expected.max()))


def test_bytes_that_others_read_stay_integers_without_a_scale():
    """A comparison of bytes reads them as they are."""
    pictures = RANDOM.randint(0, 256, [1, 6, 6, 3]).astype(np.uint8)

    def build(x: Any) -> Any:
        y = tf.nn.conv2d(tf.cast(x, tf.float32), FILTERS.transpose(0, 1, 3, 2)[:, :, :3], 1, "SAME")
        return tf.where(tf.cast(tf.reduce_max(x, 3, keepdims=True), tf.int32) > tf.fill([3], 150), y, -y)

    content, expected = _integers(build, pictures, [tf.lite.OpsSet.TFLITE_BUILTINS])
    assert all(each.quantization is None for each in read_model(content).main.inputs)
    np.testing.assert_allclose(run_model(content, [pictures])[0], expected, atol=0.02 * np.abs(expected).max())


@pytest.mark.parametrize("first", [[], [INT16]], ids=["INT8", "INT16"])
def test_a_softplus_is_rounded_once(first):
    """Its logarithm is floating point, and so is the rest of it: nothing between its argument and its result is rounded."""
    array = np.linspace(-6, 6, 24, dtype=np.float32).reshape(1, 24)
    ops = [*first, tf.lite.OpsSet.TFLITE_BUILTINS]
    model, expected = _integers(lambda x: tf.nn.relu(tf.nn.softplus(x) - 1.0), array, ops)
    codes = [operator.code for operator in read_model(model).main.operators]
    assert codes[:6] == ["RELU", "ABS", "LOGISTIC", "LOG", "SUB", "QUANTIZE"]
    (found,) = run_model(model, [array])
    np.testing.assert_allclose(found, expected, atol=0.05)


@pytest.mark.parametrize(
    ("build", "tolerance"),
    [
        (tf.nn.lrn, 0.03),
        (lambda x: tf.nn.lrn(x, 1, 2.0, 0.1, 0.75), 0.03),
        (tf.sign, 0.005),
    ],
    ids=["default", "as in AlexNet", "sign"],
)
def test_forms_where_floating_point_is_not_allowed(build, tolerance):
    """Normalization by neighbouring channels and signs have no integer kernels, but operators that have make the same of them."""
    array = np.round(IMAGE * 2) / 2
    model, expected = _integers(build, array, [tf.lite.OpsSet.TFLITE_BUILTINS_INT8])
    (found,) = run_model(model, [array])
    np.testing.assert_allclose(found, expected, atol=tolerance * np.abs(expected).max())
