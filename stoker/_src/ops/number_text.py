"""Floating point numbers as TensorFlow prints them."""

from __future__ import annotations

import numpy as np


def float_text(value: float, *, double: bool = False) -> str:
    """The six (for doubles fifteen) significant digits a type always keeps, if they spell the number; else nine (seventeen)."""
    if double:
        short = f"{value:.15g}"
        return short if float(short) == value or value != value else f"{value:.17g}"
    short = f"{value:.6g}"
    return short if np.float32(short) == np.float32(value) or value != value else f"{value:.9g}"


def question_marks(count: int, limit: int) -> str:
    """What TensorFlow shows of `count` elements that it does not spell (complex ones): at most `limit`, all for -1."""
    shown = count if limit < 0 else min(limit, count)
    return " ".join("?" * shown) + ("..." if shown < count else "")
