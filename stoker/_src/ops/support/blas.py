"""Products of float32 matrices: the BLAS that torch contains, or stoker's own where that is faster (native/products.c)."""

from __future__ import annotations

import ctypes
import os
from typing import Any

import torch

from stoker._src.base.extensions import extension

_MOST = 2**31 - 1  # rows or columns of BLAS's matrices

_products: Any = extension("stoker._src.ops.native.products")


def _of_torch(name: str) -> int | None:
    """The address of a function of torch's BLAS."""
    library = os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_cpu.so")
    try:
        return ctypes.cast(getattr(ctypes.CDLL(library), name), ctypes.c_void_p).value
    except (OSError, AttributeError):
        return None


def _find() -> tuple[int | None, bool]:
    """The address of the `sgemm` to use, None if there is none, and whether it is stoker's own."""
    found = _of_torch("sgemm_")
    if _products is None or found is None:
        return found, False
    chosen = _products.set_sgemm(found)
    return chosen, chosen != found


_sgemm, is_own = _find()
_small: int = 0 if _products is None or _sgemm is None else _products.small_sgemm()
small_is_own = bool(_small)  # whether the products of small matrices are stoker's own


def connect(native: Any, *, with_small: bool = False) -> bool:
    """Passes the address of `sgemm` to an extension. Returns whether there is one.

    Args:
        native: the extension.
        with_small: whether to pass that for small matrices, too. The two round differently, so this is for those who multiply the same
            matrices with every number of threads.
    """
    if native is None or _sgemm is None:
        return False
    native.set_sgemm(_sgemm, _small if with_small else 0, is_own)
    return True


def is_slow(x: torch.Tensor) -> bool:
    """Whether products of tensors like this one are better computed in float32 and rounded: torch takes 10 to 30 times as long for float16 on a CPU."""
    return x.dtype is torch.float16 and x.is_cpu


def connect_double(native: Any) -> bool:
    """The same for `dgemm`, the products of float64."""
    found = _of_torch("dgemm_")
    if native is None or found is None:
        return False
    native.set_dgemm(found)
    return True


def matmul(a: torch.Tensor, b: torch.Tensor, transpose_a: bool, transpose_b: bool) -> torch.Tensor | None:
    """The product of two matrices, or of as many pairs of matrices; None if torch must compute it (or raise its error)."""
    if not is_own or a.dtype is not torch.float32 or b.dtype is not torch.float32 or not (a.is_cpu and b.is_cpu):
        return None
    if a.ndim != b.ndim or a.ndim not in (2, 3):
        return None
    if not a.is_contiguous():  # a transposed view is taken as it lies
        a, transpose_a = a.mT, not transpose_a
    if not b.is_contiguous():
        b, transpose_b = b.mT, not transpose_b
    if not (a.is_contiguous() and b.is_contiguous()):
        return None
    *counts, m, k = a.shape
    *others, inner, n = b.shape
    if counts != others:
        return None
    count = counts[0] if counts else 1
    if transpose_a:
        m, k = k, m
    if transpose_b:
        inner, n = n, inner
    if inner != k or not (0 < m <= _MOST and 0 < n <= _MOST and 0 < k <= _MOST and 0 < count <= _MOST):
        return None
    out = torch.empty((*counts, m, n))
    _products.matmul(out, a, b, count, m, k, n, transpose_a, transpose_b)
    return out
