"""Scales that LiteRT's integer kernels abort the process with: the converter avoids them, and the interpreter refuses models that have them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema

import stoker.compat.v1 as tf
from stoker._src.lite.flatbuffer import read_model, write_model
from stoker._src.lite.model import Model, Operator, Quantization, Subgraph, Tensor
from stoker._src.lite.versions import assign_versions
from tests.lite.running import run_model


def _in_integers(build: Any, array: np.ndarray) -> bytes:
    graph = tf.Graph()
    with graph.as_default(), tf.Session(graph=graph) as session:
        x = tf.placeholder(tf.float32, array.shape)
        converter = tf.lite.TFLiteConverter.from_session(session, [x], [build(x)])
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = lambda: iter([[array]])
        return converter.convert()


@pytest.mark.parametrize(
    ("build", "array"),
    [
        (lambda x: tf.cond(tf.reduce_sum(x) > 0, lambda: x + 1.0, lambda: x * x), np.linspace(-1, 2, 6)),
        (lambda x: tf.cast(x > 100.0, tf.float32), np.linspace(0, 255, 6)),
        (lambda x: tf.cast(tf.equal(x, 0.0), tf.float32), np.array([0, 0, 1, 2])),
        (lambda x: tf.math.squared_difference(x, 10000.0), np.linspace(10000, 10001, 6)),
    ],
    ids=["branch", "pixels", "zeros", "offset"],
)
def test_numbers_that_no_kernel_compares(build, array):
    """Comparisons with zero and of pixels from 0 to 255, whose scale is 1, and differences of large numbers run in integers or in floating point."""
    array = array.astype(np.float32)
    with tf.Session() as session:
        expected = session.run(build(tf.constant(array)))
    (found,) = run_model(_in_integers(build, array), [array])
    np.testing.assert_allclose(found, expected, atol=0.02 * max(1.0, float(np.abs(expected).max())))


def test_logarithms_of_small_numbers():
    """Powers that are a millionth of the largest one are not rounded to zero before their logarithm is taken."""
    array = np.logspace(-3, 1, 40).astype(np.float32).reshape(4, 10)

    def build(x: Any) -> Any:
        return tf.math.log(tf.square(x) + 1e-9)

    with tf.Session() as session:
        expected = session.run(build(tf.constant(array)))
    (found,) = run_model(_in_integers(build, array), [array])
    np.testing.assert_allclose(found, expected, atol=0.02 * float(np.abs(expected).max()))


def test_a_maximum_does_not_clip_what_others_read():
    """A tensor keeps its range where a maximum, whose result has a smaller one, is not its only reader."""
    array = np.random.RandomState(0).randn(6, 4).astype(np.float32)
    weights = np.random.RandomState(1).randn(2, 4, 4).astype(np.float32)

    def build(x: Any) -> Any:
        above, below = tf.nn.relu(tf.matmul(x, weights[0])), tf.nn.elu(tf.matmul(x, weights[1]))
        return tf.concat([above * below, tf.maximum(above, below)], 1)

    with tf.Session() as session:
        expected = session.run(build(tf.constant(array)))
    (found,) = run_model(_in_integers(build, array), [array])
    np.testing.assert_allclose(found, expected, atol=0.03 * float(np.abs(expected).max()))


@pytest.mark.parametrize("depth", [-1e4, -1e9, -np.inf])
def test_masks_before_a_softmax_leave_the_steps_to_the_other_values(depth):
    """What a mask moves far below the largest of a row does not count for the range of a softmax's argument."""
    array = np.linspace(-1, 1, 12).reshape(3, 4).astype(np.float32)
    mask = np.where(np.arange(4) < 3, 0.0, depth).astype(np.float32)
    weights = np.random.RandomState(0).randn(4, 4).astype(np.float32)

    def build(x: Any) -> Any:
        return tf.nn.softmax(tf.matmul(tf.nn.relu(tf.matmul(x, weights)), weights) + mask)

    model = _in_integers(build, array)
    assert "INT8" in {tensor.type for tensor in read_model(model).main.tensors}
    with tf.Session() as session:
        expected = session.run(build(tf.constant(array)))
    np.testing.assert_allclose(run_model(model, [array])[0], expected, atol=0.03)


_KEPT = np.arange(4) < np.array([[2], [1], [2]])
_PRODUCTS = np.random.RandomState(0).randn(2, 4, 4).astype(np.float32)


@pytest.mark.parametrize(
    "use",
    [
        lambda x: tf.nn.softmax(tf.where(_KEPT, x, tf.fill([3, 4], -1e9))),
        lambda x: tf.nn.softmax(tf.where(_KEPT, x, x - 1e9)),
        lambda x: tf.nn.softmax(tf.where(_KEPT, x - 1e9, tf.where(_KEPT, x, x + 2.0))),
        lambda x: tf.reduce_max(tf.where(_KEPT, x, tf.fill([3, 4], -1e9)), 1),
        lambda x: tf.one_hot(tf.argmax(tf.where(_KEPT, x, x - 1e9), 1), 4),
        lambda x: tf.reduce_sum(tf.exp(tf.where(_KEPT, x, tf.fill([3, 4], -1e9))), 1),
    ],
)
def test_choices_that_mask_leave_the_steps_to_the_other_values(use):
    """Masks that are chosen instead of added do not count, either, also where the largest value is looked for."""
    array = np.linspace(-1, 1, 12).reshape(3, 4).astype(np.float32)

    def build(x: Any) -> Any:
        return use(0.2 * tf.matmul(tf.nn.relu(tf.matmul(x, _PRODUCTS[0])), _PRODUCTS[1]))

    model = _in_integers(build, array)
    assert "INT8" in {tensor.type for tensor in read_model(model).main.tensors}
    with tf.Session() as session:
        expected = session.run(build(tf.constant(array)))
    np.testing.assert_allclose(run_model(model, [array])[0], expected, atol=0.03 * np.abs(expected).max())


def test_large_numbers_that_a_choice_leaves_out():
    """A sum that samples do not choose has a scale of its own, which its arguments fit."""
    array = np.linspace(-1, 1, 12).reshape(3, 4).astype(np.float32)

    def build(x: Any) -> Any:
        y = tf.matmul(tf.nn.relu(tf.matmul(x, _PRODUCTS[0])), _PRODUCTS[1])
        return tf.where(tf.greater(y, -1e3), y, y - 1e9) * 2.0

    model = _in_integers(build, array)
    with tf.Session() as session:
        expected = session.run(build(tf.constant(array)))
    np.testing.assert_allclose(run_model(model, [array])[0], expected, atol=0.01 * np.abs(expected).max())


@pytest.mark.parametrize(
    ("code", "kind", "scales"),
    [
        ("EQUAL", "INT8", (0.5, 1.0, None)),
        ("GREATER", "UINT8", (1.0, 0.5, None)),
        ("LESS", "INT8", (0.5, None, None)),
        ("ADD", "INT8", (100.0, 0.1, 1e-6)),
        ("ADD", "INT16", (2.0**14, 1.0, 1.0)),
        ("SUB", "INT8", (0.1, None, 0.1)),
        ("SQUARED_DIFFERENCE", "INT8", (64.0, 32.0, 1.0)),
    ],
)
def test_models_with_such_scales_are_refused(code, kind, scales):
    """The interpreter says what is wrong instead of letting LiteRT end the process."""

    def tensor(name: str, type_name: str, scale: float | None) -> Tensor:
        numbers = None if scale is None else Quantization(np.array([scale], np.float32), np.array([0], np.int64))
        return Tensor(name, type_name, (3,), None, numbers)

    a, b = tensor("a", kind, scales[0]), tensor("b", kind, scales[1])
    result = tensor("c", "BOOL" if scales[2] is None else kind, scales[2])
    name = "".join(part.capitalize() for part in code.split("_")) + "OptionsT"
    options = getattr(schema, name)()
    if hasattr(options, "potScaleInt16"):
        options.potScaleInt16 = False
    model = Model([Subgraph("main", [a, b], [result], [Operator(code, [a, b], [result], options)])])
    assign_versions(model)
    with pytest.raises(ValueError, match=f"{code}.*scale"):
        tf.lite.Interpreter(model_content=write_model(model))


def test_infinite_values_stay_floating_point():
    """A tensor with infinite values that others than a softmax read has no range: it stays floating point, and the others are quantized."""
    array = np.linspace(-1, 1, 12).reshape(3, 4).astype(np.float32)
    mask = np.where(np.arange(4) < 3, 0.0, -np.inf).astype(np.float32)
    weights = np.random.RandomState(0).randn(4, 4).astype(np.float32)

    def build(x: Any) -> Any:
        return tf.reduce_max(tf.matmul(tf.nn.relu(tf.matmul(x, weights)), weights) + mask, 1)

    model = _in_integers(build, array)
    assert "INT8" in {tensor.type for tensor in read_model(model).main.tensors}
    with tf.Session() as session:
        expected = session.run(build(tf.constant(array)))
    np.testing.assert_allclose(run_model(model, [array])[0], expected, atol=0.05)
