"""Lazy names of public packages: importing is fast, and features that need no op (flags, logging) never load torch."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from typing import Any


def names_on_first_use(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package whose names are those of its module `_names`.

    A public submodule is imported separately. Any other name loads all names as ordinary attributes.
    """

    def fill() -> dict[str, Any]:
        names = importlib.import_module(f"{package}._names")
        module = vars(sys.modules[package])
        for name, value in vars(names).items():
            module.setdefault(name, value)
        return module

    def getattr_(name: str) -> Any:
        if not name.startswith("_") and importlib.util.find_spec(f"{package}.{name}") is not None:
            return importlib.import_module(f"{package}.{name}")
        module = fill()
        if name not in module:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name, obj=sys.modules[package])
        return module[name]

    def dir_() -> list[str]:
        return sorted(name for name in fill() if name not in ("__getattr__", "__dir__"))

    return getattr_, dir_
