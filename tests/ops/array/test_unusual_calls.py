"""Legal calls that programs make now and then, and edges of their values: the numbers are TensorFlow 2.21's."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import stoker as tf2
import stoker.compat.v1 as tf
from stoker._src.graph import context
from stoker._src.graph.definition import find_definition
from tests.running import run


def run_op(op: str, *inputs: Any, **attrs: Any) -> Any:
    definition = find_definition(op)
    assert definition is not None
    with context.enter_eager():
        result = definition(*[tf.convert_to_tensor(each) for each in inputs], **attrs)
        return [each.numpy() for each in result] if isinstance(result, tuple) else result.numpy()


X = np.random.RandomState(0).randn(2, 3, 4).astype(np.float32)


def test_a_bfloat16_scalar_stays_a_scalar() -> None:
    """Conversion of a 0-d bfloat16 array keeps its rank."""
    assert run_op("Exp", np.array(0, ml_dtypes.bfloat16)).shape == ()


def test_broadcast_args_keeps_its_dtype() -> None:
    """Shapes given as int64 give an int64 shape."""
    assert run_op("BroadcastArgs", np.array([2, 3]), np.array([1])).dtype == np.int64


def test_float_attributes_are_single_precision() -> None:
    """An attribute is a float32 whatever the dtype of the tensors."""
    assert run_op("LeakyRelu", np.array([-1.0]), alpha=0.3).tolist() == [-float(np.float32(0.3))]


def test_empty_inputs_give_empty_outputs() -> None:
    """Bitcast, GatherNd, PopulationCount and UniqueWithCountsV2 take tensors without elements."""
    assert run_op("Bitcast", np.zeros((0, 2), np.int32), type=tf.int64).shape == (0,)
    assert run_op("GatherNd", np.zeros((0, 2)), np.zeros((0, 1), np.int32)).shape == (0, 2)
    assert run_op("PopulationCount", np.zeros(0, np.int32)).shape == (0,)
    values, places, counts = run_op("UniqueWithCountsV2", np.zeros((0, 3), np.int32), np.array([1]))
    assert (values.shape, places.tolist(), counts.tolist()) == ((0, 1), [0, 0, 0], [3])


@pytest.mark.parametrize("shape", [None, [None] * 3, [2, 3, 4]])
@pytest.mark.parametrize(("axis", "batch_dims"), [(1, 0), (2, 0), (-1, 1), (1, 1), (2, -1)])
def test_gradients_of_lookups_need_no_rank(shape, axis, batch_dims):
    """What was looked up twice gets both gradients, along any axis, whatever is known when the graph is built."""
    x = tf.placeholder_with_default(X, shape)
    indices = np.array([[0, 2, 2], [1, 0, 1]])
    found = tf.gather(x, indices, axis=axis, batch_dims=batch_dims)
    weights = np.random.RandomState(1).randn(*run(tf.shape(found)))
    gradient = run(tf.gradients(found * weights.astype(np.float32), x)[0])
    step = np.zeros_like(X)
    step[1, 2, 1] = 1.0
    with tf.Session() as session:
        moved, plain = (session.run(found, {x: value}) for value in (X + step, X))
    np.testing.assert_allclose(gradient[1, 2, 1], ((moved - plain) * weights).sum(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [None, []])
def test_evenly_spaced_numbers_have_a_gradient(shape):
    """Both ends of linspace get their share of each number's gradient."""
    start, stop = (tf.placeholder_with_default(np.float32(value), shape) for value in (1, 3))
    numbers = tf.linspace(start, stop, 5)
    values, gradients = run([numbers, tf.gradients(numbers * [1.0, 10.0, 100.0, 1000.0, 10000.0], [start, stop])])
    np.testing.assert_allclose(values, [1, 1.5, 2, 2.5, 3])
    np.testing.assert_allclose(gradients, [308.5, 10802.5])


def test_evenly_spaced_columns():
    """Ends of different shapes broadcast before the numbers get a dimension of their own."""
    found = run(tf.linspace(tf.zeros([2, 3]), [1.0, 2.0, 4.0], 3, axis=1))
    np.testing.assert_array_equal(found, np.tile([[0, 0, 0], [0.5, 1, 2], [1, 2, 4]], (2, 1, 1)))


def test_linspace_of_integers(eager):
    """Whole ends give float64."""
    found = tf2.linspace(1, 5, 3)
    assert found.dtype == tf2.float64 and found.numpy().tolist() == [1, 3, 5]


@pytest.mark.parametrize(
    "make",
    [
        lambda x: tf.boolean_mask(x, [True, False, True]),
        lambda x: tf.repeat(x, [1, 0, 2], axis=0),
        lambda x: tf.signal.frame(x, 2, 1),
    ],
    ids=["boolean_mask", "repeat", "frame"],
)
def test_selections_have_dense_gradients(make):
    """They are tensors, not slices, so that programs can compute with them."""
    x = tf.placeholder(tf.float32, [3])
    (gradient,) = tf.gradients(make(x), x)
    assert isinstance(gradient, tf.Tensor)
    assert run(gradient, {x: [1.0, 2.0, 3.0]}).shape == (3,)
