"""Products of sparse and dense matrices in one pass over the entries."""

from unittest import mock

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker._src.base.errors import InvalidArgumentError
from stoker._src.ops.sparse import sparse_with_dense

pytestmark = pytest.mark.skipif(sparse_with_dense._native is None, reason="the extension was not built")
_kernel = sparse_with_dense.sparse_tensor_dense_mat_mul_kernel


@settings(deadline=None, max_examples=80)
@given(*[st.integers(1, 12)] * 2, st.integers(1, 40), st.integers(0, 50), *[st.booleans()] * 3, st.integers(0, 1000))
def test_one_pass_equals_a_dense_product(rows, inner, width, count, adjoint_a, adjoint_b, wide, seed):
    """The value is NumPy's product of the same matrices; entries at one place add up, in any order and transposition."""
    random = np.random.RandomState(seed)
    sizes = (inner, rows) if adjoint_a else (rows, inner)
    places = np.stack([random.randint(0, size, count) for size in sizes], 1).astype(np.int64 if wide else np.int32)
    values, b = random.randn(count).astype("f"), random.randn(inner, width).astype("f")
    dense = np.zeros(sizes)
    np.add.at(dense, (places[:, 0], places[:, 1]), values)
    given_b = torch.from_numpy(b.T.copy() if adjoint_b else b)
    found = _kernel(
        torch.from_numpy(places), torch.from_numpy(values), torch.tensor(sizes), given_b,
        adjoint_a=adjoint_a, adjoint_b=adjoint_b,
    )  # fmt: skip
    np.testing.assert_allclose(found, (dense.T if adjoint_a else dense) @ b, rtol=1e-4, atol=1e-4)


def test_threads_do_not_change_the_result():
    """Many entries give the same bits with one, two and three threads, and the same as torch's ops."""
    random = np.random.RandomState(0)
    places = torch.from_numpy(random.randint(0, 50, (5000, 2)))
    values, b = torch.from_numpy(random.randn(5000).astype("f")), torch.from_numpy(random.randn(50, 75).astype("f"))
    before, found = torch.get_num_threads(), []

    def run():
        return _kernel(places, values, torch.tensor([50, 50]), b, adjoint_a=False, adjoint_b=False)

    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            found.append(run())
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(found[0], other) for other in found[1:])
    with mock.patch.object(sparse_with_dense, "_native", None):
        np.testing.assert_allclose(found[0], run(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("place", [(0, 3), (2, 0), (-1, 0)])
def test_an_entry_outside_is_an_error(place):
    """An index out of range is refused with its number, and nothing is written."""
    with pytest.raises(InvalidArgumentError, match="out of bounds"):
        _kernel(
            torch.tensor([place]),
            torch.ones(1),
            torch.tensor([2, 3]),
            torch.ones(3, 4),
            adjoint_a=False,
            adjoint_b=False,
        )
