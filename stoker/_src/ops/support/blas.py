"""Products of float32 matrices: the BLAS that torch contains, or stoker's own where that is faster (native/products.c)."""

from __future__ import annotations

import ctypes
import os
from typing import Any

import torch

from stoker._src.base.extensions import extension

_MOST = 2**31 - 1  # rows or columns of BLAS's matrices

_products: Any = extension("stoker._src.ops.native.products")


def _find() -> tuple[int | None, bool]:
    """The address of the `sgemm` to use, None if there is none, and whether it is stoker's own."""
    library = os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_cpu.so")
    try:
        found = ctypes.cast(ctypes.CDLL(library).sgemm_, ctypes.c_void_p).value
    except (OSError, AttributeError):
        return None, False
    if _products is None or found is None:
        return found, False
    chosen = _products.set_sgemm(found)
    return chosen, chosen != found


_sgemm, is_own = _find()


def connect(native: Any) -> bool:
    """Passes the address of `sgemm` to an extension. Returns whether there is one."""
    if native is None or _sgemm is None:
        return False
    native.set_sgemm(_sgemm, is_own)
    return True


def matmul(a: torch.Tensor, b: torch.Tensor, transpose_a: bool, transpose_b: bool) -> torch.Tensor | None:
    """The product of two matrices, or of as many pairs of matrices; None if torch must compute it (or raise its error)."""
    if not is_own or a.dtype is not torch.float32 or b.dtype is not torch.float32 or not (a.is_cpu and b.is_cpu):
        return None
    if a.ndim not in (2, 3) or b.ndim != a.ndim:
        return None
    *outer, m, k = a.shape
    *others, inner, n = b.shape
    m, k = (k, m) if transpose_a else (m, k)
    inner, n = (n, inner) if transpose_b else (inner, n)
    if inner != k or outer != others or 0 in a.shape or 0 in b.shape:
        return None
    if not (a.is_contiguous() and b.is_contiguous()) or max(*outer, m, k, n) > _MOST:
        return None
    out = torch.empty((*outer, m, n))
    _products.matmul(out, a, b, outer[0] if outer else 1, m, k, n, transpose_a, transpose_b)
    return out
