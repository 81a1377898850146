"""Maxima and softmaxes of rows in fused loops: of every length, with infinities and NaNs anywhere."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stoker.compat.v1 as tf


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 300),
    st.sampled_from([np.float32, np.float64]),
    st.lists(st.tuples(st.integers(0, 1000), st.sampled_from([np.nan, np.inf, -np.inf, 5.0])), max_size=4),
    st.integers(0, 100),
)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_maxima_of_rows(columns, kind, placed, seed):
    """The largest element of each row, and NaN where the row has one; the softmax is that of NumPy."""
    rows = np.random.RandomState(seed).randn(5, columns).astype(kind) - 3
    for place, value in placed:
        rows.flat[place % rows.size] = value
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(rows.dtype, rows.shape)
        shifted = x * 1.0 + 0.0
        largest, shares = session.run([tf.reduce_max(shifted, 1), tf.nn.softmax(shifted)], {x: rows})
    np.testing.assert_array_equal(largest, rows.max(1))
    with np.errstate(invalid="ignore"):
        exponentials = np.exp(rows - rows.max(1, keepdims=True))
        expected = exponentials / exponentials.sum(1, keepdims=True)
    np.testing.assert_allclose(shares, expected, rtol=1e-5 if kind is np.float32 else 1e-12)
