"""`tf.flags`: absl's flags, parsed from the command line when a value is first read."""

from __future__ import annotations

import functools
import logging
import sys
from collections.abc import Callable
from typing import Any

from absl import flags as _absl

from stoker._src.base.export import export_constant

# Older names of the parameters of DEFINE_*.
_SPELLINGS = {"flag_name": "name", "default_value": "default", "docstring": "help"}


def _with_older_spellings(define: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(define)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if any(key in _SPELLINGS for key in kwargs):
            logging.getLogger().warning(
                "Use of the keyword argument names (flag_name, default_value, docstring) is deprecated, please use "
                "(name, default, help) instead."
            )
            kwargs = {_SPELLINGS.get(key, key): value for key, value in kwargs.items()}
        return define(*args, **kwargs)

    return wrapper


class _ParsedWhenRead:
    """absl's FLAGS, which parses `sys.argv` when a flag is first read, because 1.x programs read flags before `app.run`."""

    __slots__ = ("_values",)

    def __init__(self, values: Any) -> None:
        object.__setattr__(self, "_values", values)

    def __getattr__(self, name: str) -> Any:
        if not hasattr(type(self._values), name):
            self._parse_flags()
        return getattr(self._values, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._values, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._values, name)

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __setitem__(self, name: str, flag: Any) -> None:
        self._values[name] = flag

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def __iter__(self) -> Any:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __dir__(self) -> list[str]:
        return dir(self._values)

    def __call__(self, argv: Any, known_only: bool = False) -> Any:
        return self._values(argv, known_only=known_only)

    def _parse_flags(self, args: Any = None) -> None:
        """Parses the command line unless it was parsed before. Programs of early 1.x call this name."""
        if not self._values.is_parsed():
            self._values(sys.argv if args is None else [sys.argv[0], *args])


# A flag belongs to the module that defines it (as `--help` shows), not to these wrappers.
_absl.disclaim_key_flags()

FLAGS = _ParsedWhenRead(_absl.FLAGS)

_REPLACED: dict[str, Any] = {
    "FLAGS": FLAGS,
    **{
        name: _with_older_spellings(getattr(_absl, name))
        for name in ("DEFINE_string", "DEFINE_boolean", "DEFINE_bool", "DEFINE_float", "DEFINE_integer")
    },
}
for _name in dir(_absl):
    if not _name.startswith("_") and _name != "sys":
        globals()[_name] = _REPLACED.get(_name, getattr(_absl, _name))
        export_constant(__name__, _name, v1=(f"flags.{_name}", f"app.flags.{_name}"))
