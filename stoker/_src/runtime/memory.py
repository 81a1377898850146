"""Keeps freed memory in the process.

Every step allocates and frees the same large tensors. glibc returns blocks of that size to the system immediately, and each new
block costs a page fault per 4 KiB, which is more than many kernels cost. Raising two allocator thresholds makes glibc keep them.
`STOKER_MALLOC=default` leaves the allocator unchanged.
"""

from __future__ import annotations

import ctypes
import os
import sys

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_LARGEST_MMAP_THRESHOLD = 32 << 20  # the maximum that glibc accepts
_KEEP = (1 << 31) - 1

_done = False


def keep_freed_memory() -> None:
    """Sets the allocator's thresholds, once. This is a no-op if the C library does not have them."""
    global _done
    if _done or not sys.platform.startswith("linux") or os.environ.get("STOKER_MALLOC") == "default":
        return
    _done = True
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _LARGEST_MMAP_THRESHOLD)
        mallopt(_M_TRIM_THRESHOLD, _KEEP)
