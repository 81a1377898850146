"""Choosing between tensors natively gives what NumPy gives, whatever the shapes, dtypes and sides."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import stoker.compat.v1 as tf
from stoker._src.ops.array import selection

DTYPES = [np.float32, np.float64, np.int32, np.int64, np.float16, np.uint8, np.bool_, np.complex64, np.complex128]
WHOLE, SINGLE, FLAT, ROW = "whole", "single", "flat", "row"


@given(
    st.lists(st.integers(0, 6), min_size=1, max_size=4),
    st.integers(0, 4),
    st.sampled_from([WHOLE, SINGLE, FLAT, ROW]),
    st.sampled_from([WHOLE, SINGLE, FLAT, ROW]),
    st.sampled_from(DTYPES),
    st.integers(0, 100),
)
@settings(deadline=None, max_examples=200)
def test_select_is_where(shape, leading, of_t, of_e, dtype, seed):
    """`tf.where_v2` of booleans for the first dimensions, and of sides that are whole tensors, numbers or rows, is NumPy's `where`."""
    random = np.random.RandomState(seed)

    def side(kind):
        sizes = {WHOLE: shape, SINGLE: [], FLAT: [1] * len(shape), ROW: shape[-1:]}[kind]
        return random.randint(0, 5, sizes).astype(dtype)

    condition = random.rand(*shape[:leading], *[1] * (len(shape) - leading)) < 0.5
    t, e = side(of_t), side(of_e)
    before, selection._WORTH_A_CALL = selection._WORTH_A_CALL, 1
    try:
        with tf.Graph().as_default(), tf.Session() as session:
            found = session.run(tf.where_v2(*[tf.placeholder_with_default(x, None) for x in (condition, t, e)]))
    finally:
        selection._WORTH_A_CALL = before
    expected = np.where(condition, t, e)
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == expected.dtype


@pytest.mark.skipif(selection._native is None, reason="the extension is not built")
@pytest.mark.parametrize("threads", [1, 3])
def test_large_tensors_are_chosen_natively(threads):
    """A tensor that several threads share is chosen from both sides, NaN and signed zeros included."""
    generator = np.random.default_rng(0)
    condition = torch.from_numpy(generator.random((700, 401)) < 0.5)
    t = torch.from_numpy(generator.standard_normal((700, 401)).astype(np.float32))
    t[::7], t[::5] = float("nan"), -0.0
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(threads)
        found = selection._selected(condition, t, torch.tensor(0.0))
    finally:
        torch.set_num_threads(before)
    assert found is not None
    assert found.view(torch.int32).equal(torch.where(condition, t, torch.tensor(0.0)).view(torch.int32))


@given(
    st.lists(st.integers(0, 20), min_size=1, max_size=4),
    st.sampled_from([0.0, 0.01, 0.5, 1.0]),
    st.booleans(),
    st.integers(0, 100),
)
@settings(deadline=None, max_examples=100)
def test_where_finds_all_places(shape, density, transposed, seed):
    """`tf.where` of booleans gives the places of the true ones in row-major order, for any number of dimensions and any layout."""
    condition = np.random.RandomState(seed).rand(*shape) < density
    before, selection._WORTH_A_CALL = selection._WORTH_A_CALL, 1
    try:
        with tf.Graph().as_default(), tf.Session() as session:
            fed = tf.placeholder(tf.bool, None)
            found = session.run(tf.where(tf.transpose(fed) if transposed else fed), {fed: condition})
    finally:
        selection._WORTH_A_CALL = before
    np.testing.assert_array_equal(found, np.argwhere(condition.T if transposed else condition))
    assert found.dtype == np.int64


@pytest.mark.parametrize("density", [0.003, 0.4, 1.0])
def test_many_places(density):
    """The places of the true elements of a large mask, and the elements that it keeps, are NumPy's."""
    random = np.random.RandomState(0)
    mask, values = random.rand(211, 307) < density, random.rand(211, 307)
    with tf.Graph().as_default(), tf.Session() as session:
        places, kept = session.run([tf.where(mask), tf.boolean_mask(tf.constant(values), mask)])
    np.testing.assert_array_equal(places, np.argwhere(mask))
    np.testing.assert_array_equal(kept, values[mask])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.complex128, np.bool_, np.uint8])
@pytest.mark.parametrize("kind", [np.int32, np.int64, np.uint8])
@pytest.mark.parametrize("axis", [-1, 0, 1, 2])
def test_large_one_hot_tensors(dtype, kind, axis):
    """One-hot values stand at the indices along any axis; an index that is no place gives values that are all off."""
    indices = np.random.RandomState(0).randint(0, 40, (30, 25)).astype(kind)
    if kind is not np.uint8:
        indices[::3, ::4] = -1
    on, off = dtype(3), dtype(1)
    with tf.Graph().as_default(), tf.Session() as session:
        found = session.run(tf.one_hot(tf.constant(indices), 37, tf.constant(on), tf.constant(off), axis=axis))
    expected = np.where(indices[..., None].astype(np.int64) == np.arange(37), on, off)
    np.testing.assert_array_equal(found, np.moveaxis(expected, -1, axis))
    assert found.dtype == dtype
