"""The few largest elements of rows, found in one pass."""

from unittest import mock

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker._src.ops.math import sorting

pytestmark = pytest.mark.skipif(sorting._native is None, reason="the extension was not built")


@settings(deadline=None, max_examples=100)
@given(st.integers(0, 4), st.integers(2, 90), st.integers(1, 90), st.integers(1, 30), st.integers(0, 1000))
def test_one_pass_equals_a_stable_sort(rows, columns, k, different, seed):
    """Values and places are those of NumPy's stable sort in descending order: of equal elements, the first comes first."""
    k = min(k, columns)
    x = np.random.RandomState(seed).randint(-different, different, (rows, columns)).astype("f")
    values, places = sorting._largest(torch.from_numpy(x), k, torch.int32)
    expected = np.argsort(-x, axis=-1, kind="stable")[:, :k]
    np.testing.assert_array_equal(places.numpy(), expected)
    np.testing.assert_array_equal(values.numpy(), np.take_along_axis(x, expected, -1))


def test_rows_with_a_nan_are_sorted_as_without_the_extension():
    """A NaN, infinities and zeros of both signs give the same places as torch's sort."""
    x = torch.tensor([[1.0, float("nan"), 3.0, -0.0, 0.0], [float("inf"), -float("inf"), 2.0, 2.0, float("inf")]])
    for rows in (x, x[1:]):
        found = sorting._largest(rows, 4, torch.int64)
        with mock.patch.object(sorting, "_native", None):
            expected = sorting._largest(rows, 4, torch.int64)
        for one, other in zip(found, expected):
            np.testing.assert_array_equal(one, other)
