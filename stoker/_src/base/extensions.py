"""What was written in C, where it was built."""

from __future__ import annotations

import importlib
import os
from typing import Any


def extension(name: str) -> Any:
    """An extension module, or None where there was no compiler to build it or `STOKER_NO_NATIVE` is set.

    Whoever asks has the same in Python, slower: that is what runs without it, and what it is tested against.
    """
    if os.environ.get("STOKER_NO_NATIVE"):
        return None
    try:
        return importlib.import_module(name)
    except ImportError:
        return None
