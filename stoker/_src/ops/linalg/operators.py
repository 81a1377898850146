"""The operators of Tensor, and the op for each of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stoker._src.base import dtypes, settings
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import OpDefinition
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import casting
from stoker._src.ops.linalg import matrix_products
from stoker._src.ops.math import arithmetic, bitwise, comparison, unary_functions

# Operators that refuse fractions next to integers in eager mode. The others leave the error to their ops.
_EXACT = frozenset(("sub", "mul", "floordiv", "mod", "pow", "and", "or", "xor"))


def _operator(name: str, function: Callable[..., Any]) -> None:
    """Implements `x OP y`, and `y OP x` for a plain value y, by the op `function` in a scope named `name`."""

    def forward(self: Any, other: Any) -> Any:
        with name_scope(None, name, [self, other]) as scope:
            self = convert_to_tensor(self)
            if type(other) is float and self.dtype.is_integer and name in _EXACT and context.executing_eagerly():
                raise TypeError(f"Cannot convert {other} to EagerTensor of dtype {self.dtype.name}")
            try:
                other = convert_to_tensor(other, dtype_hint=self.dtype.base_dtype, name="y")
            except (TypeError, ValueError):
                # The other operand may know how to handle a tensor on its left. Plain numbers and arrays do not.
                kind = type(other)
                if kind.__module__ not in ("builtins", "numpy") and hasattr(kind, f"__r{name}__"):
                    return NotImplemented
                raise
            return function(self, other, name=scope)

    def reflected(self: Any, other: Any) -> Any:
        with name_scope(None, name, [other, self]) as scope:
            self = convert_to_tensor(self)
            other = convert_to_tensor(other, self.dtype.base_dtype, name="x")
            return function(other, self, name=scope)

    setattr(Tensor, f"__{name}__", forward)
    setattr(Tensor, f"__r{name}__", reflected)
    Tensor.OVERLOADABLE_OPERATORS |= {f"__{name}__", f"__r{name}__"}


def _sum_or_join(x: Tensor, y: Tensor, name: str | None = None) -> Tensor:
    return (arithmetic.ADD if x.dtype.base_dtype is dtypes.string else arithmetic.ADD_V2)(x, y, name=name)


def _logical_or_bitwise(name: str) -> Callable[..., Tensor]:
    """`&`, `|` and `^`: logical ops for booleans, bitwise ops for integers."""

    def apply(x: Tensor, y: Tensor, name: str | None = None) -> Tensor:
        if x.dtype.base_dtype is dtypes.bool_:
            return logical(x, y, name=name)
        with name_scope(name):
            return bits(x, y)

    logical = getattr(comparison, f"logical_{name}")
    bits = getattr(bitwise, f"bitwise_{name}")
    return apply


def _product(x: Tensor, y: Tensor, name: str | None = None) -> Tensor:
    """The product of booleans is computed in numbers and cast back to bool."""
    if x.dtype.base_dtype is not dtypes.bool_:
        return arithmetic.MUL(x, y, name=name)
    with name_scope(name, "mul", [x, y]) as scope:
        product = arithmetic.MUL(casting.cast(x, dtypes.int32), casting.cast(y, dtypes.int32), name=scope)
        return casting.cast(product, dtypes.bool_)


def _matmul(x: Tensor, y: Tensor, name: str | None = None) -> Tensor:
    return matrix_products.matmul(x, y, name=name)


for _name, _function in (
    ("add", _sum_or_join),
    ("sub", arithmetic.SUB),
    ("mul", _product),
    ("truediv", arithmetic.truediv),
    ("div", arithmetic.div),
    ("floordiv", arithmetic.FLOOR_DIV),
    ("mod", arithmetic.FLOOR_MOD),
    ("pow", arithmetic.POW),
    ("matmul", _matmul),
    ("and", _logical_or_bitwise("and")),
    ("or", _logical_or_bitwise("or")),
    ("xor", _logical_or_bitwise("xor")),
):
    _operator(_name, _function)


def _comparison_operator(dunder: str, definition: OpDefinition) -> None:
    def compare(self: Any, other: Any) -> Any:
        return definition(self, other)

    setattr(Tensor, dunder, compare)
    Tensor.OVERLOADABLE_OPERATORS |= {dunder}


for _dunder, _definition in (
    ("__lt__", comparison.LESS),
    ("__le__", comparison.LESS_EQUAL),
    ("__gt__", comparison.GREATER),
    ("__ge__", comparison.GREATER_EQUAL),
):
    _comparison_operator(_dunder, _definition)


def _compared(self: Any, other: Any, definition: OpDefinition, identical: bool) -> Any:
    """`==` and `!=`: compare values for eager tensors, and inside functions with 2.x behaviour; else compare identity."""
    if other is None:
        return not identical
    if not settings.tensor_equality or not (getattr(self, "is_eager", False) or self.graph.building_function):
        return (self is other) if identical else (self is not other)
    if context.executing_eagerly():
        return definition(self, other, incompatible_shape_error=False)
    try:
        other = convert_to_tensor(other, dtype_hint=self.dtype.base_dtype)
        if other.dtype.base_dtype is not self.dtype.base_dtype:
            return not identical
        return definition(self, other, incompatible_shape_error=False)
    except (TypeError, ValueError):
        return not identical


def _invert(self: Any) -> Tensor:
    if self.dtype.base_dtype is dtypes.bool_:
        return comparison.logical_not(self)
    return bitwise.invert(self)


def _abs(self: Any) -> Tensor:
    return unary_functions.abs(self)


_unary_operators: dict[str, Any] = {
    "__neg__": lambda self: unary_functions.negative(self),
    "__abs__": _abs,
    "__invert__": _invert,
    "__eq__": lambda self, other: _compared(self, other, comparison.EQUAL, True),
    "__ne__": lambda self, other: _compared(self, other, comparison.NOT_EQUAL, False),
}
for _dunder, _function in _unary_operators.items():
    setattr(Tensor, _dunder, _function)
    Tensor.OVERLOADABLE_OPERATORS |= {_dunder}
