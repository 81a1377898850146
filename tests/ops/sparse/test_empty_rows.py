"""SparseFillEmptyRows in native loops gives what the kernel in Python gives."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker._src.base.errors import InvalidArgumentError
from stoker._src.ops.sparse import sparse_reductions


def _filled(indices, values, rows, native):
    kept, sparse_reductions._native = sparse_reductions._native, native
    try:
        shape = torch.tensor([rows, 50, 3][: indices.shape[1]])
        return sparse_reductions.sparse_fill_empty_rows_kernel(indices, values, shape, torch.tensor(-7.0))
    finally:
        sparse_reductions._native = kept


@pytest.mark.skipif(sparse_reductions._native is None, reason="built without the C extension")
@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 11), max_size=30), st.integers(1, 3), st.booleans())
def test_rows_in_any_order(rows, rank, ascending):
    """Elements move to their rows and keep their order there; empty rows get the default; the map leads back."""
    rows = sorted(rows) if ascending else rows
    indices = torch.tensor([[row, 5, 2][:rank] for row in rows], dtype=torch.int64).reshape(len(rows), rank)
    values = torch.arange(float(len(rows)))
    found = _filled(indices, values, 12, sparse_reductions._native)
    for one, other in zip(found, _filled(indices, values, 12, None), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


@pytest.mark.skipif(sparse_reductions._native is None, reason="built without the C extension")
@pytest.mark.parametrize("bad", [-1, 12, 2**62])
def test_rows_out_of_bounds_are_refused(bad):
    """The error names the coordinate, and nothing outside of the results is written."""
    indices = torch.tensor([[0, 0], [bad, 1]])
    with pytest.raises(InvalidArgumentError, match=r"indices\(1, 0\) is invalid"):
        _filled(indices, torch.zeros(2), 12, sparse_reductions._native)


@pytest.mark.skipif(sparse_reductions._native is None, reason="built without the C extension")
def test_indices_that_changed_are_noticed():
    """The second pass trusts nothing that the first one counted."""
    native = sparse_reductions._native
    indices, places = torch.tensor([[0, 0], [2, 1]]), torch.empty(3, dtype=torch.int64)
    assert native.empty_rows(indices, 2, 2, 3, places) == 1
    indices[1, 0] = 0
    filled, order, back = (
        torch.empty(3, 2, dtype=torch.int64),
        torch.empty(3, dtype=torch.int64),
        torch.empty(2, dtype=torch.int64),
    )
    assert not native.fill_rows(indices, 2, 2, 3, places, 3, filled, order, back, torch.empty(3, dtype=torch.bool))
