"""What images must look like: refused when a call is made where that is known, by assertions of the graph where it is not."""

from __future__ import annotations

from typing import Any

from stoker._src.graph.static_values import constant_value
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import joining, ranges, shaping
from stoker._src.ops.control_flow import assertions, debugging, grouping
from stoker._src.ops.math import reductions


def static_sizes(image: Tensor) -> list[int | None] | None:
    """The sizes as far as they are known; None for an unknown rank."""
    dims = image.static_shape.dims
    return None if dims is None else list(dims)


def sizes(image: Tensor, rank: int) -> list[Any]:
    """The sizes of an image of a known rank: numbers where they are known, tensors where not."""
    known: Any = static_sizes(image) or [None] * rank
    if None not in known:
        return known
    dynamic = joining.unstack(shaping.shape(image), num=rank)
    return [dynamic[i] if size is None else size for i, size in enumerate(known)]


def is_tensor(value: Any) -> bool:
    return isinstance(value, Tensor) or getattr(value, "is_eager", False)


def requirement(condition: Any, text: str) -> list[Any]:
    """Raises ValueError where `condition` is known to be false; the assertions to run before the result is used where it is not known.

    A condition is a Python truth or a tensor.
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
    """The tensor, once the assertions hold. As in TensorFlow, there is a node for it even where there are none."""
    return grouping.with_dependencies([each for each in requirements if each is not None], tensor)


def at_least_3d(image: Tensor) -> Tensor:
    """An image, or images, of three dimensions or more, the last three of them not empty.

    Raises:
        ValueError: where another shape is known; InvalidArgumentError when run where it is not.
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
    """The rank, None where it is unknown.

    Raises:
        ValueError: a rank that is neither.
    """
    rank = image.static_shape.rank
    if rank not in (None, 3, 4):
        raise ValueError(f"'image' (shape {image.shape}){space}must have either 3 or 4 dimensions.")
    return rank


def asserted(conditions: Tensor, data: list[Any]) -> Any:
    """The assertion that all `conditions` hold; it is made in eager mode at once."""
    return assertions.assert_op(reductions.reduce_all(conditions), data, summarize=1000)


def same(size: Any, wanted: int, text: str) -> Any:
    """The assertion that a size is what it must be."""
    return debugging.assert_equal(size, wanted, message=text)
