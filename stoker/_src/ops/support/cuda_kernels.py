"""CUDA kernels of stoker's own, which NVRTC compiles at run time."""

from __future__ import annotations

import functools
from typing import Any

import torch


@functools.cache
def compiled(source: str, name: str) -> Any:
    """Returns a kernel, which is called with (grid, block, arguments); None if torch cannot compile CUDA code at run time."""
    compile_kernel = getattr(torch.cuda, "_compile_kernel", None)
    if compile_kernel is None or torch.version.cuda is None:
        return None
    try:
        return compile_kernel(source, name)
    except (RuntimeError, OSError, AttributeError):
        return None
