"""Keeps freed memory in the process, and gives large values huge pages.

Every step allocates and frees the same large tensors. glibc returns blocks of that size to the system immediately, and each new
block costs a page fault per 4 KiB, which is more than many kernels cost. Raising two allocator thresholds makes glibc keep them.
`STOKER_MALLOC=default` leaves the allocator unchanged.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys

import numpy as np
import torch

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
LARGEST_KEPT = 32 << 20  # bytes of a block that glibc keeps at most: the largest threshold that it accepts
_KEEP = (1 << 31) - 1

_HUGE = 4 << 20  # bytes from which a block has pages of its own
_ADVICE = getattr(mmap, "MADV_HUGEPAGE", None)

_done = False


def empty_bytes(size: int) -> torch.Tensor:
    """A vector of bytes for a value that is to be filled at once. A large one is on huge pages: a fault per 4 KiB would cost more than the copy.

    Raises:
        MemoryError: there is no memory.
    """
    try:
        if size < _HUGE or _ADVICE is None:
            return torch.empty(size, dtype=torch.uint8)
        block = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        block.madvise(_ADVICE)
        return torch.from_numpy(np.frombuffer(block, np.uint8))
    except (OSError, OverflowError, RuntimeError) as error:
        raise MemoryError(f"There is no memory for {size} bytes.") from error


def keep_freed_memory() -> None:
    """Sets the allocator's thresholds, once. This is a no-op if the C library does not have them."""
    global _done
    if _done or not sys.platform.startswith("linux") or os.environ.get("STOKER_MALLOC") == "default":
        return
    _done = True
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, LARGEST_KEPT)
        mallopt(_M_TRIM_THRESHOLD, _KEEP)
