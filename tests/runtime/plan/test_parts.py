"""Sums of the gradients of slices."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import stoker.compat.v1 as tf
from stoker._src.runtime.plan import parts


def _kernels(session, fetches, feed):
    plan = session._plan(fetches, feed, None)
    return [
        each.kernel.args
        for step in plan._steps()
        for each in step.planner.instructions
        if getattr(each.kernel, "func", None) is parts.sum_of_parts
    ]


def _gradient(make, shape, dtype=np.float32):
    """The gradient of a sum of functions of parts of x, with parts and without them, and what the plan has of them."""
    value = np.random.RandomState(0).randn(*shape).astype(dtype)
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(dtype, [None, *shape[1:]])
        found = tf.gradients(make(x), x)[0]
        ours = session.run(found, {x: value})
        kernels = _kernels(session, found, {x: value})
    return value, ours, kernels


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_slices_of_an_unrolled_loop(dtype):
    """Each step's gradient is written to its place, without zeros and without a sum, if the steps take all of the input."""

    def make(x):
        return tf.add_n([tf.reduce_sum(tf.square(x[:, t]) * float(t)) for t in range(12)])

    value, found, kernels = _gradient(make, (16, 12, 32), dtype)
    np.testing.assert_allclose(found, 2 * value * np.arange(12.0)[:, None], rtol=1e-6)
    ((_, places, cover),) = kernels
    assert cover and len(places) == 12


def test_slices_that_overlap_and_whole_tensors():
    """Terms are added in the order of the program; what is taken twice is counted twice, and what is not taken is zero."""

    def make(x):
        terms = [tf.reduce_sum(tf.square(x[:, t : t + 3])) for t in range(0, 8, 2)]
        terms += [tf.reduce_sum(tf.square(x[0, ..., 4:8])), tf.reduce_sum(tf.square(tf.slice(x, [1, 2, 3], [2, 4, 5])))]
        terms += [tf.reduce_sum(x[:, ::-2] * 7.0), tf.reduce_sum(x * 3.0)]
        return tf.add_n(terms)

    value, found, kernels = _gradient(make, (32, 12, 32))
    wanted = np.full_like(value, 3.0)
    for t in range(0, 8, 2):
        wanted[:, t : t + 3] += 2 * value[:, t : t + 3]
    wanted[0, ..., 4:8] += 2 * value[0, ..., 4:8]
    wanted[1:3, 2:6, 3:8] += 2 * value[1:3, 2:6, 3:8]
    wanted[:, ::-2] += 7.0
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    ((_, places, cover),) = kernels
    assert not cover and sum(place is None for place in places) == 2


def test_few_or_small_parts_are_left_to_fused_loops():
    """Small sums cost less together with what is around them."""
    assert not _gradient(lambda x: tf.add_n([tf.reduce_sum(x[:, t] ** 2) for t in range(6)]), (4, 6, 8))[2]
    assert not _gradient(lambda x: tf.reduce_sum(x[:, 0] ** 2) + tf.reduce_sum(x[:, 1:] ** 2), (64, 12, 64))[2]


def test_a_gradient_that_is_used_elsewhere_stays():
    """A slice's gradient that the program fetches is computed as it is."""
    value = np.random.RandomState(0).randn(16, 12, 32).astype("f")
    with tf.Graph().as_default() as graph, tf.Session() as session:
        x = tf.placeholder(tf.float32, [16, 12, 32])
        total = tf.gradients(tf.add_n([tf.reduce_sum(tf.square(x[:, t])) for t in range(12)]), x)[0]
        one = next(op.outputs[0] for op in graph.get_operations() if op.type == "StridedSliceGrad")
        found, part = session.run([total, one], {x: value})
    np.testing.assert_allclose(found, 2 * value, rtol=1e-6)
    assert np.count_nonzero(part.any((0, 2))) == 1


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(1, 5), st.booleans()), min_size=4, max_size=9))
def test_any_parts_equal_the_sum_of_whole_tensors(slices):
    """Bit for bit, whatever is sliced."""
    rng = np.random.RandomState(1)
    places, terms, whole = [], [], np.zeros((7, 3), "f")
    for i, (begin, size, is_whole) in enumerate(slices):
        place = slice(begin, begin + size)
        full = np.zeros((7, 3), "f")
        term = rng.randn(*full[place].shape).astype("f")
        full[place] = term
        whole = whole + full if i else full
        places.append(None if is_whole else (place,))
        terms.append(torch.from_numpy(full if is_whole else term))
    cover = parts._cover([7, 3], places)
    (found,) = parts.sum_of_parts([7, 3], places, cover, terms)
    np.testing.assert_array_equal(found.numpy(), whole)
