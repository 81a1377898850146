"""`tf.keras.constraints`: projections of weights, applied after each update."""

from __future__ import annotations

from typing import Any

from stoker._src.base.export import export, export_constant
from stoker._src.keras.serialization import deserialize as _deserialize
from stoker._src.keras.serialization import instance_of
from stoker._src.keras.serialization import serialize as _serialize
from stoker._src.ops.array import casting
from stoker._src.ops.math import arithmetic, comparison, reductions, unary_functions

_EPSILON = 1e-7


@export("keras.constraints.Constraint")
class Constraint:
    """The base of constraints, called with a weight."""

    def __call__(self, w: Any) -> Any:
        raise NotImplementedError

    def get_config(self) -> dict[str, Any]:
        return {}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        return cls(**config)


def _norms(w: Any, axis: Any) -> Any:
    return unary_functions.sqrt(reductions.reduce_sum(unary_functions.square(w), axis=axis, keepdims=True))


def _clipped(x: Any, least: float, most: float) -> Any:
    return arithmetic.minimum(arithmetic.maximum(x, least), most)


@export("keras.constraints.MaxNorm")
class MaxNorm(Constraint):
    """Norms along `axis` are at most `max_value`."""

    def __init__(self, max_value: float = 2, axis: Any = 0) -> None:
        self.max_value, self.axis = max_value, axis

    def __call__(self, w: Any) -> Any:
        norms = _norms(w, self.axis)
        return w * (_clipped(norms, 0.0, float(self.max_value)) / (_EPSILON + norms))

    def get_config(self) -> dict[str, Any]:
        return {"max_value": self.max_value, "axis": self.axis}


@export("keras.constraints.NonNeg")
class NonNeg(Constraint):
    """Weights are not negative."""

    def __call__(self, w: Any) -> Any:
        return w * casting.cast(comparison.greater_equal(w, 0.0), w.dtype.base_dtype)


@export("keras.constraints.UnitNorm")
class UnitNorm(Constraint):
    """Norms along `axis` are 1."""

    def __init__(self, axis: Any = 0) -> None:
        self.axis = axis

    def __call__(self, w: Any) -> Any:
        return w / (_EPSILON + _norms(w, self.axis))

    def get_config(self) -> dict[str, Any]:
        return {"axis": self.axis}


@export("keras.constraints.MinMaxNorm")
class MinMaxNorm(Constraint):
    """Norms along `axis` lie between `min_value` and `max_value`; `rate` is how far each update moves there."""

    def __init__(self, min_value: float = 0.0, max_value: float = 1.0, rate: float = 1.0, axis: Any = 0) -> None:
        self.min_value, self.max_value, self.rate, self.axis = min_value, max_value, rate, axis

    def __call__(self, w: Any) -> Any:
        norms = _norms(w, self.axis)
        wanted = self.rate * _clipped(norms, self.min_value, self.max_value) + (1 - self.rate) * norms
        return w * (wanted / (_EPSILON + norms))

    def get_config(self) -> dict[str, Any]:
        return {"min_value": self.min_value, "max_value": self.max_value, "rate": self.rate, "axis": self.axis}


for _class, _snake in (
    (MaxNorm, "max_norm"),
    (NonNeg, "non_neg"),
    (UnitNorm, "unit_norm"),
    (MinMaxNorm, "min_max_norm"),
):
    export_constant(__name__, _class.__name__, f"keras.constraints.{_snake}")


@export("keras.constraints.serialize")
def serialize(constraint: Any) -> Any:
    """The configuration of a constraint."""
    return _serialize(constraint)


@export("keras.constraints.deserialize")
def deserialize(config: Any, custom_objects: Any = None) -> Any:
    """The constraint that a configuration describes."""
    return _deserialize(config, "constraints", custom_objects)


@export("keras.constraints.get")
def get(identifier: Any) -> Any:
    """A constraint from an object, a class, a name or a configuration; None for None."""
    return instance_of(identifier, "constraints")
