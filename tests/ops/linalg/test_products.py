"""Products of float32 matrices by stoker's own loops, where they are faster than torch's BLAS."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker._src.ops.support import blas

pytestmark = pytest.mark.skipif(not blas.is_own, reason="torch's BLAS is used on this processor")

SIZES = st.one_of(st.integers(1, 40), st.sampled_from((47, 48, 49, 63, 64, 65, 97, 130, 385, 400)))


def _operands(count, m, k, n, transpose_a, transpose_b):
    random = np.random.RandomState(m * 1000 + n)
    outer = (count,) if count else ()
    a = random.standard_normal((*outer, *((k, m) if transpose_a else (m, k)))).astype(np.float32)
    b = random.standard_normal((*outer, *((n, k) if transpose_b else (k, n)))).astype(np.float32)
    return a, b


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 3), SIZES, SIZES, SIZES, st.booleans(), st.booleans())
def test_products_have_the_values_of_sums_in_float64(count, m, k, n, transpose_a, transpose_b):
    """Every element is within the rounding of k additions of the exact sum, for all sizes and both transpositions."""
    a, b = _operands(count, m, k, n, transpose_a, transpose_b)
    found = blas.matmul(torch.from_numpy(a), torch.from_numpy(b), transpose_a, transpose_b)
    left, right = (a.swapaxes(-1, -2) if transpose_a else a), (b.swapaxes(-1, -2) if transpose_b else b)
    assert found is not None
    bound = np.abs(left.astype(np.float64)) @ np.abs(right.astype(np.float64)) * (k + 1) * 2.0**-24
    assert np.all(np.abs(found.numpy() - left.astype(np.float64) @ right.astype(np.float64)) <= bound)


@pytest.mark.parametrize("count", [0, 3])
@pytest.mark.parametrize("views", [(True, False), (False, True), (True, True)])
def test_transposed_views_are_taken_as_they_lie(count, views):
    """The product of a view equals that of its copy, bit for bit."""
    a, b = map(torch.from_numpy, _operands(count, 30, 50, 40, *views))
    left, right = (each.mT if is_view else each for each, is_view in zip((a, b), views))
    found = blas.matmul(left, right, False, False)
    assert found is not None and torch.equal(found, blas.matmul(left.contiguous(), right.contiguous(), False, False))


@pytest.mark.parametrize(
    ("m", "k", "n"), [(100, 400, 130), (500, 100, 20), (7, 800, 200), (1000, 30, 33), (5, 800, 2700), (3, 800, 2700)]
)
@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
def test_products_do_not_depend_on_the_number_of_threads(m, k, n, transpose_a, transpose_b):
    """One, two and three threads give the same bits."""
    a, b = map(torch.from_numpy, _operands(0, m, k, n, transpose_a, transpose_b))
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            found.append(blas.matmul(a, b, transpose_a, transpose_b))
    finally:
        torch.set_num_threads(before)
    assert found[0] is not None
    assert all(torch.equal(found[0], other) for other in found[1:])


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (torch.ones(3, 4), torch.ones(5, 6)),
        (torch.ones(3, 0), torch.ones(0, 6)),
        (torch.ones(3, 4, dtype=torch.float64), torch.ones(4, 6, dtype=torch.float64)),
        (torch.ones(3, 8)[:, ::2], torch.ones(4, 6)),
        (torch.ones(2, 3, 4), torch.ones(1, 4, 6)),
    ],
    ids=["inner sizes differ", "empty", "float64", "not contiguous", "broadcast"],
)
def test_other_products_are_left_to_torch(a, b):
    """What the loops do not compute, torch computes or explains."""
    assert blas.matmul(a, b, False, False) is None


def test_numbers_that_are_not_finite_stay_where_they_are():
    """Infinity and NaN reach exactly the elements whose sums contain them."""
    a = torch.ones(40, 50)
    a[3, 7], a[20, 49] = float("inf"), float("nan")
    found = blas.matmul(a, torch.ones(50, 37), False, False)
    assert found is not None
    assert torch.isinf(found[3]).all()
    assert torch.isnan(found[20]).all()
    others = [i for i in range(40) if i not in (3, 20)]
    assert (found[others] == 50.0).all()
