"""Element-wise ops at the edges of their types, against TensorFlow's own values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import stoker.compat.v1 as tf
from stoker._src.graph.definition import find_definition
from tests.golden.math.cases import BINARY, CASTS, UNARY, castable, numbers, pairs

VALUES = np.load(Path(__file__).parents[2] / "golden" / "math" / "values.npz")
TOLERANCE = {"float32": 2e-5, "float64": 1e-10, "complex64": 1e-4, "complex128": 1e-9}


def compare(key: str, found: np.ndarray, inputs: list[np.ndarray]) -> None:
    expected = VALUES[key]
    assert found.dtype == expected.dtype and found.shape == expected.shape, key
    if expected.dtype.kind not in "fc":
        same = found == expected
    else:
        close = TOLERANCE[expected.dtype.name]
        with np.errstate(all="ignore"):
            same = np.isclose(found, expected, rtol=close, atol=close * 1e-2, equal_nan=True)
        if expected.dtype.kind == "c":  # which part of an infinite complex number is NaN is nobody's promise
            same |= ~np.isfinite(found) & ~np.isfinite(expected)
    wrong = [tuple(x[i] for x in inputs) + (found[i], expected[i]) for i in np.flatnonzero(~same)]
    assert not wrong, f"{key}: (inputs, found, TensorFlow's) {wrong[:5]}"


@pytest.mark.parametrize("name", UNARY)
def test_unary(name, eager) -> None:
    """Zeros, halves, ends of ranges, infinities and NaN give TensorFlow's values."""
    for dtype in UNARY[name]:
        x = numbers(dtype)
        compare(f"{name}-{dtype}", find_definition(name)(tf.constant(x)).numpy(), [x])


@pytest.mark.parametrize("name", BINARY)
def test_binary(name, eager) -> None:
    """Every number with every other gives TensorFlow's value."""
    for dtype in BINARY[name]:
        x, y = pairs(name, dtype)
        compare(f"{name}-{dtype}", find_definition(name)(tf.constant(x), tf.constant(y)).numpy(), [x, y])


def test_casts(eager) -> None:
    """Numbers that the target can hold (and integers of any size) are converted as TensorFlow converts them."""
    for source, target in CASTS:
        x = castable(source, target)
        compare(f"Cast-{source}-{target}", tf.cast(tf.constant(x), target).numpy(), [x])
