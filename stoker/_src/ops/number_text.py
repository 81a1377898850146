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
