"""Formats numbers and strings as TensorFlow prints them."""

from __future__ import annotations

import re

import numpy as np

# Bytes from 128 on are kept.
_UNPRINTED = re.compile(rb"[\x00-\x1f\x7f\"'\\]")
_LETTERS = {b"\n": b"\\n", b"\r": b"\\r", b"\t": b"\\t", b'"': b'\\"', b"'": b"\\'", b"\\": b"\\\\"}


def float_text(value: float, *, double: bool = False) -> str:
    """Formats with six significant digits (doubles: fifteen) if they represent the number exactly, else with nine (seventeen)."""
    if double:
        short = f"{value:.15g}"
        return short if float(short) == value or value != value else f"{value:.17g}"
    short = f"{value:.6g}"
    return short if np.float32(short) == np.float32(value) or value != value else f"{value:.9g}"


def question_marks(count: int, limit: int) -> str:
    """TensorFlow's text for `count` elements that it cannot print (complex numbers): at most `limit` question marks, all for -1."""
    shown = count if limit < 0 else min(limit, count)
    return " ".join("?" * shown) + ("..." if shown < count else "")


def _escaped(found: re.Match[bytes]) -> bytes:
    return _LETTERS.get(found[0]) or b"\\%03o" % ord(found[0])


def string_text(value: bytes) -> str:
    """Escapes a string as in C. Bytes that are not UTF-8 become surrogates."""
    return _UNPRINTED.sub(_escaped, value).decode(errors="surrogateescape")
