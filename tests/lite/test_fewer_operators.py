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


@pytest.mark.parametrize(
    ("build", "array", "codes"),
    [
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
