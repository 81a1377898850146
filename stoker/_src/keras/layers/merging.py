"""Layers that combine several inputs, and the functions that apply them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.export import export
from stoker._src.base.shapes import TensorShape
from stoker._src.keras.base import Layer
from stoker._src.layers.base import dims
from stoker._src.ops.array import joining, shaping
from stoker._src.ops.linalg import einsum, matrix_products
from stoker._src.ops.math import arithmetic, comparison, reductions
from stoker._src.ops.nn import moments


class _Merge(Layer):
    """The base of element-wise combinations. Inputs of lower rank are broadcast."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True

    def build(self, input_shape: Any) -> None:
        if not isinstance(input_shape, (list, tuple)) or isinstance(input_shape, TensorShape) or len(input_shape) < 2:
            raise ValueError(
                f"A merge layer should be called on a list of at least 2 inputs. Got {input_shape if isinstance(input_shape, TensorShape) else len(input_shape)}."
            )
        self.built = True

    def _combined(self, inputs: list[Any]) -> Any:
        raise NotImplementedError

    def call(self, inputs: Any) -> Any:
        if not isinstance(inputs, (list, tuple)):
            raise ValueError("A merge layer should be called on a list of inputs.")
        ranks = [each.static_shape.rank for each in inputs]
        most = max(ranks)
        grown = []
        for each, rank in zip(inputs, ranks):
            for _ in range(most - rank):  # examples stay apart: new dimensions come after the batch
                each = shaping.expand_dims(each, 1)
            grown.append(each)
        return self._combined(grown)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        if mask is None or any(each is None for each in mask):
            return None
        return functools.reduce(comparison.logical_and, mask)


@export("keras.layers.Add")
class Add(_Merge):
    """The sum of the inputs."""

    def _combined(self, inputs: list[Any]) -> Any:
        return functools.reduce(lambda a, b: a + b, inputs)


@export("keras.layers.Subtract")
class Subtract(_Merge):
    """The difference of two inputs."""

    def _combined(self, inputs: list[Any]) -> Any:
        if len(inputs) != 2:
            raise ValueError("A `Subtract` layer should be called on exactly 2 inputs")
        return inputs[0] - inputs[1]


@export("keras.layers.Multiply")
class Multiply(_Merge):
    """The product of the inputs."""

    def _combined(self, inputs: list[Any]) -> Any:
        return functools.reduce(lambda a, b: a * b, inputs)


@export("keras.layers.Average")
class Average(_Merge):
    """The mean of the inputs."""

    def _combined(self, inputs: list[Any]) -> Any:
        return functools.reduce(lambda a, b: a + b, inputs) / len(inputs)


@export("keras.layers.Maximum")
class Maximum(_Merge):
    """The largest of the inputs."""

    def _combined(self, inputs: list[Any]) -> Any:
        return functools.reduce(arithmetic.maximum, inputs)


@export("keras.layers.Minimum")
class Minimum(_Merge):
    """The smallest of the inputs."""

    def _combined(self, inputs: list[Any]) -> Any:
        return functools.reduce(arithmetic.minimum, inputs)


@export("keras.layers.Concatenate")
class Concatenate(_Merge):
    """The inputs one after the other along `axis`."""

    def __init__(self, axis: int = -1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.axis = axis

    def build(self, input_shape: Any) -> None:
        super().build(input_shape)
        rest = []
        for shape in input_shape:
            sizes = dims(shape)
            del sizes[self.axis]
            rest.append(sizes)
        for each in rest[1:]:
            if len(each) != len(rest[0]) or any(None not in pair and pair[0] != pair[1] for pair in zip(each, rest[0])):
                raise ValueError(
                    f"A `Concatenate` layer requires inputs with matching shapes except for the concat axis. Got inputs shapes: {[tuple(dims(shape)) for shape in input_shape]}"
                )

    def call(self, inputs: Any) -> Any:
        return joining.concat(list(inputs), self.axis)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        if mask is None or all(each is None for each in mask):
            return None
        masks = []
        for each, one in zip(inputs, mask):
            if one is None:
                masks.append(shaping.ones_like(each, dtype=dtypes.bool_))
            else:
                masks.append(shaping.expand_dims(one, -1) if one.static_shape.rank < each.static_shape.rank else one)
        return reductions.reduce_all(joining.concat(masks, self.axis), axis=-1)


@export("keras.layers.Dot")
class Dot(_Merge):
    """Products of two inputs, example by example, along `axes`."""

    def __init__(self, axes: Any, normalize: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not isinstance(axes, int) and (not isinstance(axes, (list, tuple)) or len(axes) != 2):
            raise TypeError(f"Invalid type for `axes` - should be a list of 2 elements or an int. Got {axes}")
        self.axes, self.normalize = axes if isinstance(axes, int) else tuple(axes), normalize

    def call(self, inputs: Any) -> Any:
        if len(inputs) != 2:
            raise ValueError("A `Dot` layer should be called on exactly 2 inputs")
        a, b = inputs
        ranks = a.static_shape.rank, b.static_shape.rank
        chosen = (self.axes, self.axes) if isinstance(self.axes, int) else self.axes
        axes = [axis % rank for axis, rank in zip(chosen, ranks)]
        if self.normalize:
            a, b = moments.l2_normalize(a, axis=axes[0]), moments.l2_normalize(b, axis=axes[1])
        return batch_dot(a, b, axes)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        return None


def batch_dot(x: Any, y: Any, axes: Any = None) -> Any:
    """The product of x and y for each example, summed over `axes` (one of each). Other dimensions follow one another."""
    ranks = x.static_shape.rank, y.static_shape.rank
    if axes is None:
        axes = [ranks[0] - 1, ranks[1] - 2 if ranks[1] > 2 else ranks[1] - 1]
    elif isinstance(axes, int):
        axes = [axes, axes]
    first, second = (axis % rank for axis, rank in zip(axes, ranks))
    if ranks == (2, 2) and first == second == 1:
        return reductions.reduce_sum(x * y, axis=1, keepdims=True)
    if ranks == (3, 3) and first and second:
        return matrix_products.matmul(x, y, transpose_a=first == 1, transpose_b=second == 2)
    letters = "abcdefghijklmnopqrstuvwxyz"
    left = ["z", *letters[: ranks[0] - 1]]
    right = ["z", *letters[ranks[0] - 1 : ranks[0] + ranks[1] - 2]]
    right[second] = left[first]
    kept = [each for i, each in enumerate(left) if i != first] + [
        each for i, each in enumerate(right) if i not in (0, second)
    ]
    product = einsum.einsum(f"{''.join(left)},{''.join(right)}->{''.join(kept)}", x, y)
    return shaping.expand_dims(product, 1) if len(kept) == 1 else product


def _function(layer: type[_Merge], name: str) -> Callable[..., Any]:
    def merge(inputs: Any, **kwargs: Any) -> Any:
        return layer(**kwargs)(inputs)

    merge.__name__ = merge.__qualname__ = name
    merge.__doc__ = f"Applies a new `{layer.__name__}` layer."
    return export(f"keras.layers.{name}")(merge)


add = _function(Add, "add")
subtract = _function(Subtract, "subtract")
multiply = _function(Multiply, "multiply")
average = _function(Average, "average")
maximum = _function(Maximum, "maximum")
minimum = _function(Minimum, "minimum")


@export("keras.layers.concatenate")
def concatenate(inputs: Any, axis: int = -1, **kwargs: Any) -> Any:
    """Applies a new `Concatenate` layer."""
    return Concatenate(axis=axis, **kwargs)(inputs)


@export("keras.layers.dot")
def dot(inputs: Any, axes: Any, normalize: bool = False, **kwargs: Any) -> Any:
    """Applies a new `Dot` layer."""
    return Dot(axes=axes, normalize=normalize, **kwargs)(inputs)
