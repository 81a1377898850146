"""Conversion between text and bytes (`tf.compat`), and forward compatibility dates."""

from __future__ import annotations

import datetime
import numbers
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from stoker._src.base.export import export, export_constant

bytes_or_text_types = (bytes, str)
integral_types = (numbers.Integral, np.integer)
real_types = (numbers.Real, np.integer, np.floating)
complex_types = (numbers.Complex, np.number)
for _name in ("bytes_or_text_types", "integral_types", "real_types", "complex_types"):
    export_constant(__name__, _name, f"compat.{_name}")


def _checked_encoding(encoding: str) -> str:
    # Raises LookupError for an unknown encoding even if nothing needs to be converted.
    return "".encode(encoding).decode(encoding) or encoding


@export("compat.as_bytes")
def as_bytes(bytes_or_text: Any, encoding: str = "utf-8") -> bytes:
    """Encodes text. Bytes (and byte arrays) are returned unchanged.

    Raises:
        TypeError: the argument is neither text nor bytes.
    """
    encoding = _checked_encoding(encoding)
    if isinstance(bytes_or_text, bytearray):
        return bytes(bytes_or_text)
    if isinstance(bytes_or_text, str):
        return bytes_or_text.encode(encoding)
    if isinstance(bytes_or_text, bytes):
        return bytes_or_text
    raise TypeError(f"Expected binary or unicode string, got {bytes_or_text!r}")


@export("compat.as_text", v1="compat.as_unicode")
def as_text(bytes_or_text: Any, encoding: str = "utf-8") -> str:
    """Decodes bytes. Text is returned unchanged.

    Raises:
        TypeError: the argument is neither text nor bytes.
    """
    encoding = _checked_encoding(encoding)
    if isinstance(bytes_or_text, str):
        return bytes_or_text
    if isinstance(bytes_or_text, bytes):
        return bytes_or_text.decode(encoding)
    raise TypeError(f"Expected binary or unicode string, got {bytes_or_text!r}")


@export("compat.as_str")
def as_str(bytes_or_text: Any, encoding: str = "utf-8") -> str:
    """The same as `as_text`, because Python's `str` is text."""
    return as_text(bytes_or_text, encoding)


@export("compat.as_str_any")
def as_str_any(value: Any, encoding: str = "utf-8") -> str:
    """Decodes bytes, and applies `str` to other values."""
    return as_str(value, encoding) if isinstance(value, bytes) else str(value)


@export("compat.path_to_str")
def path_to_str(path: Any) -> Any:
    """The string of an `os.PathLike` (decoded if it is bytes). Other values are returned unchanged."""
    return as_str_any(os.fspath(path)) if hasattr(path, "__fspath__") else path


# TensorFlow releases up to this date can read everything that this package writes.
_horizon = datetime.date(2026, 1, 1)


@export("compat.forward_compatible")
def forward_compatible(year: int, month: int, day: int) -> bool:
    """Whether files may use features that consumers released on that date understand."""
    return _horizon > datetime.date(year, month, day)


@export("compat.forward_compatibility_horizon")
@contextmanager
def forward_compatibility_horizon(year: int, month: int, day: int) -> Iterator[None]:
    """A context that changes the date used by `forward_compatible`."""
    global _horizon
    outer, _horizon = _horizon, datetime.date(year, month, day)
    try:
        yield
    finally:
        _horizon = outer
