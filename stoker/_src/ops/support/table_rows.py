"""Native operations on rows of large tables: unique, gather and scatter-add.

Each function returns None (or False) if the extension is missing or does not support the tensors. Callers then use torch.
"""

from __future__ import annotations

import torch

from stoker._src.base.extensions import extension

_native = extension("stoker._src.ops.native.rows")
_INTEGERS = (torch.int32, torch.int64)
_SUMMED = (torch.float32, torch.float64)


def _plain(*tensors: torch.Tensor) -> bool:
    return all(tensor.device.type == "cpu" and tensor.is_contiguous() for tensor in tensors)


def unique(x: torch.Tensor, kind: torch.dtype) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor] | None:
    """The distinct elements of an integer vector in order of appearance, the position of each element (dtype `kind`), and the counts."""
    if _native is None or x.dtype not in _INTEGERS or kind not in _INTEGERS or not _plain(x):
        return None
    places = torch.empty(x.numel(), dtype=kind)
    found, counts = torch.empty(2, x.numel(), dtype=torch.int64)
    wide = x.dtype is torch.int64
    total = _native.unique(x.numpy(), wide, places.numpy(), kind is torch.int64, found.numpy(), counts.numpy())
    return found[:total].to(x.dtype, copy=True), places, counts[:total].to(kind, copy=True)


def all_distinct(indices: torch.Tensor, size: int) -> bool:
    """Whether all indices are distinct and in [0, size). False also if this cannot be determined quickly."""
    if _native is None or indices.dtype not in _INTEGERS or not _plain(indices):
        return False
    return _native.check_distinct(indices.numpy(), indices.dtype is torch.int64, size) == -1


def gather(table: torch.Tensor, indices: torch.Tensor) -> torch.Tensor | None:
    """`table[indices]` for a vector of indices; None also if an index is out of range."""
    if _native is None or indices.dtype not in _INTEGERS or table.ndim == 0 or not _plain(table, indices):
        return None
    size = table.shape[0]
    out = torch.empty((indices.numel(), *table.shape[1:]), dtype=table.dtype)
    row = out.nbytes // len(out) if len(out) else 0
    if not row or table.dtype in (torch.bfloat16, torch.complex32):  # NumPy has no such dtype
        return None
    threads = torch.get_num_threads()
    outside = _native.gather(
        out.numpy(), table.numpy(), indices.numpy(), indices.dtype is torch.int64, size, row, threads
    )
    return out if outside < 0 else None


def add(
    table: torch.Tensor,
    indices: torch.Tensor,
    rows: torch.Tensor,
    *,
    subtract: bool = False,
    skip_negatives: bool = False,
) -> bool:
    """Adds (or subtracts) `rows[i]` to `table[indices[i]]` in place and in order. Returns whether it did."""
    if _native is None or table.dtype not in _SUMMED or rows.dtype is not table.dtype or not rows.numel():
        return False
    if indices.dtype not in _INTEGERS or not _plain(table, indices, rows):
        return False
    outside = _native.add(
        table.numpy(), rows.numpy(), indices.numpy(), indices.dtype is torch.int64, table.shape[0],
        rows.numel() // indices.numel(), table.dtype is torch.float64, subtract, skip_negatives, torch.get_num_threads(),
    )  # fmt: skip
    return outside < 0
