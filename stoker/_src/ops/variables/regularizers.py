"""Regularizers of `tf.contrib.layers` and `tf.keras.regularizers`, and the initializers of contrib."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.dtypes import as_dtype
from stoker._src.base.export import export
from stoker._src.base.shapes import as_shape
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.keys import GraphKeys
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import constants
from stoker._src.ops.math import arithmetic, reductions, unary_functions
from stoker._src.ops.random import uniform_normal

Regularizer = Callable[[Any], Any]

# ---- tf.contrib.layers ------------------------------------------------------------------------------------------


def _checked(scale: Any) -> Any:
    if isinstance(scale, numbers.Integral):
        raise ValueError(f"scale cannot be an integer: {scale}")
    if isinstance(scale, numbers.Real) and scale < 0.0:
        raise ValueError(f"Setting a scale less than 0 on a regularizer: {scale}.")
    return scale


def _nothing(_: Any) -> None:
    return None


@export(v1=("contrib.layers.l1_regularizer", "contrib.slim.l1_regularizer"))
def l1_regularizer(scale: Any, scope: str | None = None) -> Regularizer:
    """A regularizer: `scale` times the sum of absolute values. If `scale` is 0, it returns None.

    Raises:
        ValueError: the scale is an integer or negative.
    """
    if _checked(scale) == 0.0:
        return _nothing

    def l1(weights: Any, name: str | None = None) -> Tensor:
        with name_scope(scope if name is None else name, "l1_regularizer", [weights]) as opened:
            weights = convert_to_tensor(weights)
            factor = convert_to_tensor(scale, weights.dtype.base_dtype, "scale")
            return arithmetic.multiply(factor, reductions.reduce_sum(unary_functions.abs(weights)), name=opened)

    return l1


@export(v1=("contrib.layers.l2_regularizer", "contrib.slim.l2_regularizer"))
def l2_regularizer(scale: Any, scope: str | None = None) -> Regularizer:
    """A regularizer: `scale` times half the sum of squares. If `scale` is 0, it returns None.

    Raises:
        ValueError: the scale is an integer or negative.
    """
    if _checked(scale) == 0.0:
        return _nothing

    def l2(weights: Any) -> Tensor:
        with name_scope(scope, "l2_regularizer", [weights]) as opened:
            weights = convert_to_tensor(weights)
            factor = convert_to_tensor(scale, weights.dtype.base_dtype, "scale")
            return arithmetic.multiply(factor, reductions.l2_loss(weights), name=opened)

    return l2


@export(v1=("contrib.layers.l1_l2_regularizer", "contrib.slim.l1_l2_regularizer"))
def l1_l2_regularizer(scale_l1: Any = 1.0, scale_l2: Any = 1.0, scope: str | None = None) -> Regularizer:
    """The sum of an L1 and an L2 regularizer."""
    for scale in (scale_l1, scale_l2):
        if isinstance(scale, numbers.Integral):
            raise ValueError(f"scale cannot be an integer: {scale}")
    if scale_l1 == 0.0:
        return l2_regularizer(scale_l2, scope)
    if scale_l2 == 0.0:
        return l1_regularizer(scale_l1, scope)
    return sum_regularizer([l1_regularizer(scale_l1), l2_regularizer(scale_l2)], scope or "l1_l2_regularizer")


@export(v1=("contrib.layers.sum_regularizer", "contrib.slim.sum_regularizer"))
def sum_regularizer(regularizer_list: Any, scope: str | None = None) -> Any:
    """The sum of several regularizers; None if there are none."""
    chosen = [each for each in regularizer_list if each is not None]
    if not chosen:
        return None

    def total(weights: Any) -> Any:
        with name_scope(scope, "sum_regularizer", [weights]) as opened:
            penalties = [found for each in chosen if (found := each(weights)) is not None]
            return arithmetic.add_n(penalties, name=opened) if penalties else None

    return total


@export(v1=("contrib.layers.apply_regularization", "contrib.slim.apply_regularization"))
def apply_regularization(regularizer: Regularizer, weights_list: Any = None) -> Tensor:
    """Sums the penalties of `weights_list` (by default the collection WEIGHTS), and adds each to a collection.

    Raises:
        ValueError: the regularizer does not return a scalar.
    """
    graph = context.get_default_graph()
    chosen = graph.get_collection(GraphKeys.WEIGHTS) if weights_list is None else weights_list
    with name_scope("get_regularization_penalty", None, chosen) as scope:
        penalties = [regularizer(weights) for weights in chosen]
        penalties = [constants.constant(0.0) if each is None else each for each in penalties]
        if any(each.static_shape.rank != 0 for each in penalties):
            raise ValueError("regularizer must return a scalar Tensor.")
        total = arithmetic.add_n(penalties, name=scope) if penalties else constants.constant(0.0)
        for each in penalties:
            graph.add_to_collection(GraphKeys.REGULARIZATION_LOSSES, each)
        return total


# ---- tf.keras.regularizers --------------------------------------------------------------------------------------


@export("keras.regularizers.Regularizer")
class KerasRegularizer:
    """The base of regularizers. Calling one with a variable returns a scalar penalty."""

    def __call__(self, x: Any) -> Any:
        raise NotImplementedError

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        return cls(**config)

    def get_config(self) -> dict[str, Any]:
        """The arguments to create an equal regularizer."""
        return {}


@export("keras.regularizers.L1L2")
class L1L2(KerasRegularizer):
    """l1 * sum(|x|) + l2 * sum(x * x)."""

    def __init__(self, l1: float = 0.0, l2: float = 0.0) -> None:
        self.l1, self.l2 = float(l1 or 0.0), float(l2 or 0.0)

    def __call__(self, x: Any) -> Any:
        # The sum starts at zero, as in TensorFlow, because node names depend on it.
        total = constants.constant(0.0, convert_to_tensor(x).dtype.base_dtype)
        if self.l1:
            total = total + self.l1 * reductions.reduce_sum(unary_functions.abs(x))
        if self.l2:
            total = total + 2.0 * self.l2 * reductions.l2_loss(x)
        return total

    def get_config(self) -> dict[str, Any]:
        return {"l1": self.l1, "l2": self.l2}


@export("keras.regularizers.l1", "keras.regularizers.L1")
class L1(KerasRegularizer):
    """l1 * sum(|x|)."""

    def __init__(self, l1: float = 0.01) -> None:
        self.l1 = float(l1)

    def __call__(self, x: Any) -> Any:
        return self.l1 * reductions.reduce_sum(unary_functions.abs(x))

    def get_config(self) -> dict[str, Any]:
        return {"l1": self.l1}


@export("keras.regularizers.l2", "keras.regularizers.L2")
class L2(KerasRegularizer):
    """l2 * sum(x * x), which is twice the penalty of `tf.contrib.layers.l2_regularizer`."""

    def __init__(self, l2: float = 0.01) -> None:
        self.l2 = float(l2)

    def __call__(self, x: Any) -> Any:
        return 2.0 * self.l2 * reductions.l2_loss(x)

    def get_config(self) -> dict[str, Any]:
        return {"l2": self.l2}


@export("keras.regularizers.l1_l2")
def l1_l2(l1: float = 0.01, l2: float = 0.01) -> L1L2:
    """l1 * sum(|x|) + l2 * sum(x * x)."""
    return L1L2(l1, l2)


# ---- initializers of tf.contrib.layers --------------------------------------------------------------------------


@export(v1=("contrib.layers.variance_scaling_initializer", "contrib.slim.variance_scaling_initializer"))
def variance_scaling_initializer(
    factor: float = 2.0,
    mode: str = "FAN_IN",
    uniform: bool = False,
    seed: int | None = None,
    dtype: Any = dtypes.float32,
) -> Callable[..., Tensor]:
    """An initializer, a function of (shape, dtype, partition_info), with variance factor / n.

    n is the number of inputs, of outputs, or their mean. Normal numbers are truncated at two standard deviations,
    and their variance is multiplied by 1.3 to compensate.

    Raises:
        TypeError: the dtype is not floating point, or the mode is unknown.
    """
    if not as_dtype(dtype).is_floating:
        raise TypeError("Cannot create initializer for non-floating point type.")
    if mode not in ("FAN_IN", "FAN_OUT", "FAN_AVG"):
        raise TypeError(f"Unknown mode {mode} [FAN_IN, FAN_OUT, FAN_AVG]")

    def initializer(shape: Any, dtype: Any = dtype, partition_info: Any = None) -> Tensor:
        if not as_dtype(dtype).is_floating:
            raise TypeError("Cannot create initializer for non-floating point type.")
        sizes: list[Any] = list(as_shape(shape))
        inputs = float(sizes[-2]) if len(sizes) > 1 else float(sizes[-1]) if sizes else 1.0
        outputs = float(sizes[-1]) if sizes else 1.0
        field = math.prod(sizes[:-2])
        inputs, outputs = inputs * field, outputs * field
        count = {"FAN_IN": inputs, "FAN_OUT": outputs, "FAN_AVG": (inputs + outputs) / 2.0}[mode]
        if uniform:
            bound = math.sqrt(3.0 * factor / count)
            return uniform_normal.random_uniform(shape, -bound, bound, dtype, seed=seed)
        return uniform_normal.truncated_normal(shape, 0.0, math.sqrt(1.3 * factor / count), dtype, seed=seed)

    return initializer


@export(v1=[f"contrib.{room}.xavier_initializer{kind}" for room in ("layers", "slim") for kind in ("", "_conv2d")])
def xavier_initializer(
    uniform: bool = True, seed: int | None = None, dtype: Any = dtypes.float32
) -> Callable[..., Tensor]:
    """An initializer with variance 1 / mean(inputs, outputs) (Glorot and Bengio, 2010)."""
    return variance_scaling_initializer(1.0, "FAN_AVG", uniform, seed, dtype)
