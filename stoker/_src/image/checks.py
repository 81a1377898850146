"""Checks of the shapes of images. Known shapes are checked when a function is called, others by assertions in the graph."""

from __future__ import annotations

from typing import Any

from stoker._src.graph.static_values import constant_value
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import joining, ranges, shaping
from stoker._src.ops.control_flow import assertions, debugging, grouping
from stoker._src.ops.math import reductions


def static_sizes(image: Tensor) -> list[int | None] | None:
    """Returns the static sizes, None for those that are unknown; None for an unknown rank."""
    dims = image.static_shape.dims
    return None if dims is None else list(dims)


def sizes(image: Tensor, rank: int) -> list[Any]:
    """Returns the sizes of an image of known rank: integers if they are known, otherwise tensors."""
    known: Any = static_sizes(image) or [None] * rank
    if None not in known:
        return known
    dynamic = joining.unstack(shaping.shape(image), num=rank)
    return [dynamic[i] if size is None else size for i, size in enumerate(known)]


def is_tensor(value: Any) -> bool:
    return isinstance(value, Tensor) or getattr(value, "is_eager", False)


def requirement(condition: Any, text: str) -> list[Any]:
    """Raises ValueError if `condition` is known to be false. Returns the assertions for conditions that are only known at run time.

    A condition is a bool or a tensor.
    """
    if is_tensor(condition):
        known = constant_value(condition)
        if known is None:
            return [assertions.assert_op(condition, [text])]
        condition = bool(known)
    if not condition:
        raise ValueError(text)
    return []


def after(requirements: list[Any], tensor: Tensor) -> Tensor:
    """Returns the tensor with the assertions as control dependencies. Like TensorFlow, adds a node even without assertions."""
    return grouping.with_dependencies([each for each in requirements if each is not None], tensor)


def at_least_3d(image: Tensor) -> Tensor:
    """Checks that an image or a batch has at least three dimensions and that the last three are not empty.

    Raises:
        ValueError: The static shape is wrong. If it is unknown, running the result raises InvalidArgumentError.
    """
    known = static_sizes(image)
    if known is not None and len(known) < 3:
        raise ValueError(f"'image' (shape {image.shape}) must be at least three-dimensional.")
    if known is not None and 0 in known[-3:]:
        raise ValueError(f"inner 3 dims of 'image.shape' must be > 0: {image.shape}")
    if known is not None and None not in known[-3:]:
        return after([], image)
    return after(
        [
            debugging.assert_positive(shaping.shape(image)[-3:], ["inner 3 dims of 'image.shape' must be > 0."]),
            debugging.assert_greater_equal(
                ranges.rank(image), 3, message="'image' must be at least three-dimensional."
            ),
        ],
        image,
    )


def rank_3_or_4(image: Tensor, *, space: str = " ") -> int | None:
    """Returns the rank, or None if it is unknown.

    Raises:
        ValueError: The rank is neither 3 nor 4.
    """
    rank = image.static_shape.rank
    if rank not in (None, 3, 4):
        raise ValueError(f"'image' (shape {image.shape}){space}must have either 3 or 4 dimensions.")
    return rank


def asserted(conditions: Tensor, data: list[Any]) -> Any:
    """Returns the assertion that all `conditions` hold. In eager mode it is checked immediately."""
    return assertions.assert_op(reductions.reduce_all(conditions), data, summarize=1000)


def same(size: Any, wanted: int, text: str) -> Any:
    """Returns the assertion that a size has the expected value."""
    return debugging.assert_equal(size, wanted, message=text)
