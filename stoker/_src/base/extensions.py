"""Optional C extensions."""

from __future__ import annotations

import importlib
import os
from typing import Any


def extension(name: str) -> Any:
    """An extension module, or None if it was not built or `STOKER_NO_NATIVE` is set.

    Every caller has a slower Python implementation as a fallback, against which the extension is tested.
    """
    if os.environ.get("STOKER_NO_NATIVE"):
        return None
    try:
        return importlib.import_module(name)
    except ImportError:
        return None
