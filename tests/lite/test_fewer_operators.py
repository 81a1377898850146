"""Compositions that the converter writes with fewer operators: their codes, and values equal to the session's."""

from __future__ import annotations

import numpy as np
import pytest

import stoker.compat.v1 as tf
from stoker._src.lite.flatbuffer import read_model
from tests.lite.running import run_model

RANDOM = np.random.RandomState(7)


def _array(*shape: int) -> np.ndarray:
    return RANDOM.randn(*shape).astype(np.float32)


ROWS, SQUARE = _array(3, 4, 8), _array(2, 5, 5)
WEIGHTS, FILTERS, MASK = _array(8, 6), _array(2, 8, 6), np.tril(np.ones([20, 20])) > 0


def _dilated(x):
    divided = tf.space_to_batch_nd(x, [2], [[2, 0]])
    return tf.batch_to_space_nd(tf.nn.conv1d(divided, FILTERS, 1, "VALID"), [2], [[0, 0]])


def _normalized(x):
    mean, variance = tf.nn.moments(x, [2], keep_dims=True)
    return (x - mean) * tf.math.rsqrt(variance)


def _softmax(x):
    power = tf.exp(x - tf.reduce_max(x, 2, keepdims=True))
    return power / tf.reduce_sum(power, -1, keepdims=True)


def _bias_of_rows(x):
    """A bias that is added to rows after the dimension of the convolution is gone."""
    rows = tf.squeeze(tf.nn.conv2d(x[:, None], FILTERS[None], 1, "SAME"), [1])
    return tf.nn.relu(tf.nn.bias_add(rows, WEIGHTS[0]))


def _scaled_pictures(x):
    """Two convolutions of pictures that are scaled and moved per channel, one of them with margins of zeros."""
    scaled = x / 255.0 * SCALES
    one = tf.nn.conv2d(scaled, PICTURE_FILTERS, 2, "SAME")
    return one + tf.nn.depthwise_conv2d(scaled, DEPTHWISE, [1, 2, 2, 1], "SAME")


def _transposed(x):
    filters = np.ones([2, 2, 6, 3], np.float32) * SCALES
    return tf.nn.relu6(tf.nn.conv2d_transpose(x, filters, [2, 10, 8, 6], 2, "SAME") + WEIGHTS[0])


SCALES = np.array([0.5, 2.0, -1.0], np.float32)
PICTURES = RANDOM.randint(0, 256, [2, 5, 4, 3]).astype(np.float32)
PICTURE_FILTERS, DEPTHWISE = _array(3, 3, 3, 6), _array(3, 3, 3, 2)


@pytest.mark.parametrize(
    ("build", "array", "codes"),
    [
        (_softmax, ROWS, ["SOFTMAX"]),
        (lambda x: tf.math.log(tf.nn.softmax(x)), ROWS, ["LOG_SOFTMAX"]),
        (lambda x: tf.nn.l2_normalize(x, 2, epsilon=1e-10), ROWS, ["L2_NORMALIZATION"]),
        (_bias_of_rows, ROWS, ["RESHAPE", "CONV_2D", "RESHAPE"]),
        (
            lambda x: tf.reshape(tf.matmul(x, WEIGHTS), [4, 2, 3]) + np.arange(6, dtype=np.float32).reshape(1, 2, 3),
            _array(4, 8),
            ["FULLY_CONNECTED", "RESHAPE"],
        ),
        (_scaled_pictures, PICTURES, ["CONV_2D", "DEPTHWISE_CONV_2D", "ADD"]),
        (lambda x: tf.nn.conv2d(x - SCALES, PICTURE_FILTERS, 1, "VALID"), PICTURES, ["CONV_2D"]),
        (lambda x: tf.nn.conv2d(x - SCALES, PICTURE_FILTERS, 1, "SAME"), PICTURES, ["SUB", "CONV_2D"]),
        (_transposed, PICTURES, ["TRANSPOSE_CONV"]),
        (lambda x: tf.tanh(tf.transpose(x, [0, 2, 1])), _array(3, 1, 8), ["RESHAPE", "TANH"]),
        (tf.math.softplus, 50 * ROWS, ["RELU", "ABS", "LOGISTIC", "LOG", "SUB"]),
        (lambda x: tf.matmul(tf.reshape(x, [12, 8]), WEIGHTS), ROWS, ["FULLY_CONNECTED"]),
        (lambda x: 0.5 * tf.reshape(tf.tensordot(x, WEIGHTS, 1), [3, 4, 2, 3]), ROWS, ["FULLY_CONNECTED", "RESHAPE"]),
        (_dilated, ROWS, ["RESHAPE", "PAD", "CONV_2D", "RESHAPE"]),
        (lambda x: tf.square(x - tf.reduce_mean(x, 2, keepdims=True)), ROWS, ["MEAN", "SQUARED_DIFFERENCE"]),
        (lambda x: tf.matmul(x, tf.transpose(x, [0, 2, 1])), SQUARE, ["BATCH_MATMUL"]),
        (lambda x: tf.reshape(x, [6, 16]) * tf.reshape(tf.tanh(x), [6, 16]), ROWS, ["TANH", "MUL", "RESHAPE"]),
        (
            lambda x: tf.nn.conv1d(tf.tanh(tf.nn.conv1d(x, FILTERS, 1, "SAME")), FILTERS[:1, :6], 1, "SAME"),
            ROWS,
            ["RESHAPE", "CONV_2D", "TANH", "CONV_2D", "RESHAPE"],
        ),
        (lambda x: tf.stack([tf.tanh(x)]), ROWS, ["TANH", "RESHAPE"]),
        (_normalized, ROWS, ["MEAN", "SUB", "SQUARE", "MEAN", "RSQRT", "MUL"]),
        (lambda x: tf.tanh(x) + tf.sigmoid(x) * tf.zeros([8]), ROWS, ["TANH"]),
        (lambda x: tf.where(MASK, x, tf.fill([20, 20], -1e9)), _array(20, 20), ["SELECT_V2"]),
        (
            lambda x: tf.tensor_scatter_update(x, [[1], [0]], tf.ones([2, 4, 8])),
            ROWS,
            ["SCATTER_ND", "SCATTER_ND", "SELECT"],
        ),
    ],
    ids=[
        "softmax",
        "log_softmax",
        "l2_normalization",
        "bias",
        "squares",
        "pictures",
        "moved",
        "margins",
        "transposed_conv",
        "unmoved",
        "softplus",
        "rows",
        "scaled",
        "dilated",
        "difference",
        "transposed",
        "reshapes",
        "sequences",
        "alone",
        "normalized",
        "zero",
        "choice",
        "scatter",
    ],
)
def test_operators(build, array, codes):
    """What is left after folding, in order."""
    graph = tf.Graph()
    with graph.as_default(), tf.Session(graph=graph) as session:
        x = tf.placeholder(tf.float32, array.shape)
        y = build(x)
        expected = session.run(y, {x: array})
        model = tf.lite.TFLiteConverter.from_session(session, [x], [y]).convert()
    assert [operator.code for operator in read_model(model).main.operators] == codes
    np.testing.assert_allclose(run_model(model, [array])[0], expected, 1e-5, 1e-5)


def test_an_output_that_is_computed_elsewhere_keeps_its_name():
    """A value that is read inside and is an output, too, is computed once, under the name of the output."""
    graph = tf.Graph()
    with graph.as_default(), tf.Session(graph=graph) as session:
        x = tf.placeholder(tf.float32, [2, 3], name="x")
        inner = tf.exp(x) * 2.0
        y = tf.exp(x, name="y")
        model = tf.lite.TFLiteConverter.from_session(session, [x], [inner, y]).convert()
    main = read_model(model).main
    assert [operator.code for operator in main.operators] == ["EXP", "MUL"]
    assert main.outputs[1].name == "y"


@pytest.mark.parametrize(
    "build", [lambda x: tf.concat([x, x], 0), lambda x: tf.stack([x, x]), lambda x: tf.pad(x, [[1, 1]])]
)
def test_strings_without_a_kernel_are_reported(build):
    """LiteRT joins no strings. The model is not written, because it would not run."""
    graph = tf.Graph()
    with graph.as_default(), tf.Session(graph=graph) as session:
        x = tf.placeholder(tf.string, [3])
        y = build(x)
        with pytest.raises(Exception, match="has no kernel for STRING"):
            tf.lite.TFLiteConverter.from_session(session, [x], [y]).convert()
