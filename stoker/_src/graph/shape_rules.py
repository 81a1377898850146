"""Static shape rules that many ops share."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from stoker._src.base.shapes import SCALAR, UNKNOWN_SHAPE, Shape
from stoker._src.base.shapes import broadcast as broadcast_shapes


def unchanged(x: Shape, *_: Shape) -> Shape:
    """The shape of the first input."""
    return x


def merged(*shapes: Shape) -> Shape:
    """The shape that all inputs have."""
    return functools.reduce(lambda found, shape: found.merge(shape), shapes)


def all_merged(inputs: Sequence[Shape]) -> Shape:
    """One list input whose shapes must all agree."""
    return merged(UNKNOWN_SHAPE, *inputs)


def broadcasting(x: Shape, y: Shape) -> Shape:
    return broadcast_shapes(x, y)


def scalar(*_: Shape) -> Shape:
    return SCALAR


def unknown(*_: Any) -> Shape:
    return UNKNOWN_SHAPE
