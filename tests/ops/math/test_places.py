"""ArgMax and ArgMin along the last axis in native loops give what the kernel of torch's ops gives."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker._src.base import dtypes
from stoker._src.ops.math import scans


@pytest.mark.skipif(scans._native is None, reason="built without the C extension")
@settings(max_examples=80, deadline=None)
@given(
    st.integers(1, 200),
    st.lists(st.tuples(st.integers(0, 1000), st.sampled_from([np.nan, np.inf, -np.inf, 2.0, 0.0])), max_size=5),
    st.sampled_from(["ArgMax", "ArgMin"]),
    st.booleans(),
    st.integers(0, 100),
)
def test_places_in_rows(columns, placed, name, constant, seed):
    """The first of the largest or least elements, in rows of every length; a NaN only if there is nothing else."""
    rows = np.random.RandomState(seed).randint(-3, 3, (3, columns)).astype("f")
    if constant:
        rows[0] = np.nan
        rows[1] = -np.inf if name == "ArgMax" else np.inf
    for place, value in placed:
        rows.flat[place % rows.size] = value
    definition = scans.ARG_MAX if name == "ArgMax" else scans.ARG_MIN
    worst = -np.inf if name == "ArgMax" else np.inf
    clean = np.where(np.isnan(rows), worst, rows)
    expected = clean.argmax(1) if name == "ArgMax" else clean.argmin(1)
    assert definition.kernel_fn is not None
    found = definition.kernel_fn(torch.from_numpy(rows), 1, output_type=dtypes.int64)
    np.testing.assert_array_equal(found, expected)
