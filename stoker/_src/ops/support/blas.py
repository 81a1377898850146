"""The BLAS that torch contains, for native loops that multiply matrices."""

from __future__ import annotations

import ctypes
import os
from typing import Any

import torch


def connect(native: Any) -> bool:
    """Passes the address of torch's `sgemm` to an extension. Returns whether there is one."""
    if native is None:
        return False
    library = os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_cpu.so")
    try:
        found = ctypes.CDLL(library).sgemm_
    except (OSError, AttributeError):
        return False
    native.set_sgemm(ctypes.cast(found, ctypes.c_void_p).value)
    return True
