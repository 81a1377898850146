"""Flips, rotations and transpositions of images."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.export import export
from stoker._src.base.shapes import Shape
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.static_values import constant_value
from stoker._src.graph.tensor import Tensor
from stoker._src.image import checks
from stoker._src.ops.array import casting, ranges, selection, shaping
from stoker._src.ops.control_flow import branches_and_loops
from stoker._src.ops.math import arithmetic, comparison, unary_functions
from stoker._src.ops.random import stateless_random, uniform_normal

_ROWS, _COLUMNS = 0, 1  # the axes of a single image; in a batch they are one higher


def with_shape(image: Tensor, shape: Shape) -> Tensor:
    """Returns the image with static shape information that its ops do not provide."""
    if not context.executing_eagerly():
        image.set_shape(shape)
    return image


def _by_rank(
    image: Tensor, single: Callable[[Tensor], Tensor], batch: Callable[[Tensor], Tensor], space: str = " "
) -> Tensor:
    """Applies one of two functions, for an image or for a batch. If the rank is unknown, this is decided at run time."""
    rank = checks.rank_3_or_4(image, space=space)
    if rank is not None:
        return (single if rank == 3 else batch)(image)
    return branches_and_loops.cond(comparison.equal(ranges.rank(image), 3), lambda: single(image), lambda: batch(image))


def _reversed(axis: int) -> Callable[[Tensor], Tensor]:
    return lambda image: selection.reverse(image, [axis])


def _flip(image: Any, axis: int, scope_name: str) -> Tensor:
    with name_scope(None, scope_name, [image]):
        image = checks.at_least_3d(convert_to_tensor(image, name="image"))
        shape = image.static_shape
        # TensorFlow's message lacks the space before "must".
        return with_shape(_by_rank(image, _reversed(axis), _reversed(axis + 1), space=""), shape)


@export("image.flip_left_right")
def flip_left_right(image: Any) -> Tensor:
    """Mirrors [height, width, channels], or each image of a batch: reverses the columns.

    Raises:
        ValueError: The rank is neither 3 nor 4.
    """
    return _flip(image, _COLUMNS, "flip_left_right")


@export("image.flip_up_down")
def flip_up_down(image: Any) -> Tensor:
    """Turns [height, width, channels], or each image of a batch, upside down: reverses the rows.

    Raises:
        ValueError: The rank is neither 3 nor 4.
    """
    return _flip(image, _ROWS, "flip_up_down")


def _random_flip(image: Any, axis: int, draw: Callable[..., Tensor], scope_name: str) -> Tensor:
    """Flips an image if a random number in [0, 1) is below 0.5. Each image of a batch has its own number."""

    def single(image: Tensor) -> Tensor:
        flips = comparison.less(draw(shape=[]), 0.5)
        return branches_and_loops.cond(flips, lambda: _reversed(axis)(image), lambda: image, name=scope_name)

    def batch(image: Tensor) -> Tensor:
        count = shaping.shape(image)[0]
        drawn = shaping.reshape(draw(shape=[count]), [count, 1, 1, 1])
        flips = unary_functions.round(drawn)
        flips = casting.cast(flips, image.dtype.base_dtype)
        flipped = _reversed(axis + 1)(image)
        return flips * flipped + (1 - flips) * image

    with name_scope(None, scope_name, [image]):
        image = checks.at_least_3d(convert_to_tensor(image, name="image"))
        shape = image.static_shape
        return with_shape(_by_rank(image, single, batch), shape)


@export("image.random_flip_left_right")
def random_flip_left_right(image: Any, seed: int | None = None) -> Tensor:
    """Applies `flip_left_right` with probability 0.5, independently to each image of a batch."""
    return _random_flip(
        image, _COLUMNS, functools.partial(uniform_normal.random_uniform, seed=seed), "random_flip_left_right"
    )


@export("image.random_flip_up_down")
def random_flip_up_down(image: Any, seed: int | None = None) -> Tensor:
    """Applies `flip_up_down` with probability 0.5, independently to each image of a batch."""
    return _random_flip(
        image, _ROWS, functools.partial(uniform_normal.random_uniform, seed=seed), "random_flip_up_down"
    )


@export(v2="image.stateless_random_flip_left_right")
def stateless_random_flip_left_right(image: Any, seed: Any) -> Tensor:
    """Like `random_flip_left_right`, but determined by the two numbers of `seed` alone."""
    draw = functools.partial(stateless_random.stateless_uniform, seed=seed)
    return _random_flip(image, _COLUMNS, draw, "stateless_random_flip_left_right")


@export(v2="image.stateless_random_flip_up_down")
def stateless_random_flip_up_down(image: Any, seed: Any) -> Tensor:
    """Like `random_flip_up_down`, but determined by the two numbers of `seed` alone."""
    draw = functools.partial(stateless_random.stateless_uniform, seed=seed)
    return _random_flip(image, _ROWS, draw, "stateless_random_flip_up_down")


def _transposed(image: Tensor, batch: bool, name: str = "transpose") -> Tensor:
    return shaping.transpose(image, [0, 2, 1, 3] if batch else [1, 0, 2], name=name)


@export("image.transpose", v1="image.transpose_image")
def transpose(image: Any, name: str | None = None) -> Tensor:
    """Transposes [height, width, channels], or each image of a batch: exchanges rows and columns.

    Raises:
        ValueError: The rank is neither 3 nor 4.
    """
    with name_scope(name, "transpose", [image]):
        image = checks.at_least_3d(convert_to_tensor(image, name="image"))
        return _by_rank(
            image,
            lambda image: _transposed(image, False),
            lambda image: _transposed(image, True),
        )


@export("image.rot90")
def rot90(image: Any, k: Any = 1, name: str | None = None) -> Tensor:
    """Rotates [height, width, channels], or each image of a batch, counter-clockwise by `k` times 90 degrees.

    Args:
        image: The image or images.
        k: The number of quarter turns, an integer or an integer tensor.
        name: A prefix of the ops' names.

    Raises:
        ValueError: The rank is neither 3 nor 4.
    """
    with name_scope(name, "rot90", [image, k]) as scope:
        image = checks.at_least_3d(convert_to_tensor(image, name="image"))
        k = convert_to_tensor(k, dtypes.int32, name="k")
        if k.static_shape.rank not in (None, 0):
            raise ValueError(f"Shape {k.shape} must have rank 0")
        turns = arithmetic.floormod(k, 4, name="mod")
        return _by_rank(
            image, lambda image: _turned(image, turns, False, scope), lambda image: _turned(image, turns, True, scope)
        )


def _turned(image: Tensor, turns: Tensor, batch: bool, scope: str) -> Tensor:
    rows, columns = (_ROWS + batch, _COLUMNS + batch)

    def once() -> Tensor:
        return _transposed(selection.reverse(image, [columns]), batch)

    def twice() -> Tensor:
        return selection.reverse(image, [rows, columns])

    def thrice() -> Tensor:
        return selection.reverse(_transposed(image, batch), [columns])

    known = constant_value(turns)
    if known is not None and context.executing_eagerly():
        return (lambda: image, once, twice, thrice)[int(known)]()
    choices = [
        (comparison.equal(turns, 1), once),
        (comparison.equal(turns, 2), twice),
        (comparison.equal(turns, 3), thrice),
    ]
    result = branches_and_loops.case(choices, default=lambda: image, exclusive=True, name=scope)
    shape = image.static_shape.of_rank(4 if batch else 3)
    turned = [None, None] if known is None else (shape[rows], shape[columns])[:: 1 if int(known) % 2 == 0 else -1]
    if known is None and shape[rows] == shape[columns]:
        turned = [shape[rows], shape[columns]]
    return with_shape(result, Shape((*shape[:rows], *turned, shape[-1])))
