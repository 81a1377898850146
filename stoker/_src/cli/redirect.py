"""Makes `import tensorflow` return stoker: a finder for `tensorflow` and for the internal modules that programs import.

Public modules (`tensorflow.compat.v1`, `tensorflow.train`) are stoker's own module objects. Internal modules
(`tensorflow.python.ops.math_ops`) are thin. They look names up in the public namespaces, in the corresponding packages of
`_src`, and in the parent's siblings. About half of all programs import a few names from them.
"""

from __future__ import annotations

import functools
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from types import ModuleType
from typing import Any

from stoker._src.cli.internals.tables import AWAITED, MODULES, RENAMED

ROOT = "tensorflow"

# Parts of TensorFlow that stoker does not cover. Importing one raises an error that says so.
_NOT_HERE = {
    "contrib": "of tf.contrib stoker has what docs/contrib.md lists; the rest ended with TensorFlow 1.15.",
    "keras": "docs/keras.md lists what stoker has of tf.keras.",
    "python": "stoker serves the internal modules that programs import most; the names are in the public API where there is one.",
}


def _packages() -> set[str]:
    """Returns every package that contains an internal module."""
    found = {"python", "core", "examples"}
    for name in MODULES:
        parts = name.split(".")
        found.update(".".join(parts[:depth]) for depth in range(1, len(parts)))
    return found


_FOLDERS = _packages()


def in_full(place: str, api: str) -> str | None:
    """Returns the module for an entry of the tables; None for a public module that `api` or stoker does not have."""
    if place.partition(".")[0] in ("stoker", "tensorboard"):
        return place
    full = f"{api}.{place}".rstrip(".")
    return None if place in AWAITED or not _exists(full) else full


@functools.cache
def _exists(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # its parent is missing or is not a package
        return False


class _Internal(ModuleType):
    """An internal module. Its names are looked up in the public namespaces."""

    def __init__(self, name: str, places: tuple[str, ...], api: str) -> None:
        super().__init__(name)
        self.__dict__.update(_places=places, _api=api)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__"):
            inner = self.__name__.removeprefix(ROOT + ".")
            if (
                f"{inner}.{name}" in _FOLDERS or f"{inner}.{name}" in MODULES
            ):  # a module takes precedence over a public name
                return importlib.import_module(f"{self.__name__}.{name}")
            wanted = RENAMED.get((inner, name), name)
            found = self._look_up(wanted, self._api)
            stem, _, version = wanted.rpartition("_")
            if found is None and version in ("v1", "v2"):  # `gather_v2` is the 2.x tf.gather
                found = self._look_up(stem, "stoker.compat.v1" if version == "v1" else "stoker")
            if found is None:  # names that only one of the public APIs has
                found = self._look_up(wanted, "stoker" if self._api != "stoker" else "stoker.compat.v1")
            if found is not None:
                return found[0]
        raise AttributeError(
            f"module {self.__name__!r} has no attribute {name!r} (stoker looks in {', '.join(self._places) or 'tf'})"
        )

    def _look_up(self, name: str, api: str) -> tuple[Any] | None:
        for place in self._places:
            full = in_full(place, api)
            if full is not None and hasattr(module := importlib.import_module(full), name):
                return (getattr(module, name),)
        return None


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds `tensorflow` and everything below it."""

    def __init__(self, api: str) -> None:
        self._api = "stoker.compat.v1" if api == "v1" else "stoker"

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if fullname != ROOT and not fullname.startswith(ROOT + "."):
            return None
        inner = fullname.removeprefix(ROOT).lstrip(".")
        if inner in MODULES or inner in _FOLDERS or self._public(inner) is not None:
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        advice = _NOT_HERE.get(inner.partition(".")[0])
        if advice is not None:
            raise ModuleNotFoundError(f"No module named {fullname!r} ({advice})", name=fullname)
        return None

    def _public(self, inner: str) -> str | None:
        """Returns the public module for `tensorflow.<inner>`, if there is one."""
        if (inner + ".").startswith(("compat.v1.", "compat.v2.")):
            name = f"stoker.{inner}"
        else:
            name = f"{self._api}.{inner}".rstrip(".")
        try:
            return name if importlib.util.find_spec(name) is not None else None
        except ModuleNotFoundError:
            return None

    def create_module(self, spec: Any) -> ModuleType:
        inner = spec.name.removeprefix(ROOT).lstrip(".")
        public = self._public(inner)
        if public is not None and inner not in _FOLDERS:
            return _Public(spec.name, importlib.import_module(public))
        # A folder of internal modules that is a public module, too, such as `contrib`, has its names.
        places = MODULES.get(inner, ("",) if inner == "python" else () if public is None else (inner,))
        return _Internal(spec.name, places, self._api)

    def exec_module(self, module: ModuleType) -> None:
        return None


class _Public(ModuleType):
    """A public module under its TensorFlow name. Reading and setting attributes goes to stoker's module."""

    def __init__(self, name: str, real: ModuleType) -> None:
        super().__init__(name, real.__doc__)
        self.__dict__["_real"] = real

    def __getattr__(self, name: str) -> Any:
        try:
            return getattr(self.__dict__["_real"], name)
        except AttributeError:
            advice = f" ({_NOT_HERE[name]})" if name in _NOT_HERE and self.__name__ == ROOT else ""
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}{advice}") from None

    def __dir__(self) -> list[str]:
        return dir(self.__dict__["_real"])

    @property
    def __all__(self) -> list[str]:
        return [name for name in dir(self.__dict__["_real"]) if not name.startswith("_")]


def install(api: str) -> None:
    """Makes `import tensorflow` return stoker: its 1.x names for "v1", its 2.x names for "v2".

    Raises:
        RuntimeError: the real TensorFlow has already been imported.
    """
    if ROOT in sys.modules and not isinstance(sys.modules[ROOT], _Public):
        raise RuntimeError("TensorFlow itself is imported in this process already; start stoker first.")
    importlib.import_module("stoker.compat.v1" if api == "v1" else "stoker")
    sys.meta_path.insert(0, _Finder(api))
