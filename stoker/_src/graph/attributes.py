"""Attributes of ops: their kinds, allowed values, and the conversion of given values."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from stoker._src.base.dtypes import DType, DTypeSet, as_dtype
from stoker._src.base.shapes import Shape, as_shape

MISSING: Any = object()


class DTypeNotAllowedError(TypeError):
    """A dtype that an op does not support. In eager mode it is an InvalidArgumentError."""


class ValueNotAllowedError(ValueError):
    """A value that an attribute does not allow. In eager mode it is an InvalidArgumentError."""


@dataclass(frozen=True)
class AttrSpec:
    """The kind of an attribute, its allowed values, and its default (MISSING if it is required).

    Kinds are GraphDef's: int, float, bool, string, type, shape, tensor, func and list(...) of them.
    """

    kind: str
    default: Any = MISSING
    allowed: tuple[Any, ...] = ()
    minimum: int | None = None
    int32: bool = False  # TensorFlow's kernel stores the integer in 32 bits
    wide_in_shape: bool = False  # TensorFlow's shape function uses all 64 bits
    derive: Callable[[Any], Any] | None = None  # derives the function to call from the function that a node names

    def __call__(
        self,
        default: Any = MISSING,
        *,
        allowed: Sequence[Any] = (),
        minimum: int | None = None,
        wide_in_shape: bool = False,
        derive: Callable[[Any], Any] | None = None,
    ) -> AttrSpec:
        return replace(
            self, default=default, allowed=tuple(allowed), minimum=minimum, wide_in_shape=wide_in_shape, derive=derive
        )

    def check(self, op: str, name: str, value: Any) -> Any:
        """Converts `value` to the canonical value of attribute `name`.

        Raises:
            TypeError: the value is of the wrong kind.
            ValueError: the value is not allowed.
        """
        if self.kind.startswith("list("):
            if not isinstance(value, (list, tuple)):
                raise TypeError(f"Expected list for '{name}' argument to '{op}' Op, not {value!r}.")
            checked = tuple(self._converted(op, name, self.kind[5:-1], item) for item in value)
            for item in checked:
                self._check_allowed(op, name, item)
            if self.minimum is not None and len(checked) < self.minimum:
                raise ValueNotAllowedError(
                    f"Attr '{name}' of '{op}' Op passed list of length {len(checked)} less than minimum {self.minimum}."
                )
            return checked
        checked = self._converted(op, name, self.kind, value)
        self._check_allowed(op, name, checked)
        if self.minimum is not None and checked < self.minimum:
            raise ValueNotAllowedError(f"Attr '{name}' of '{op}' Op passed {checked} less than minimum {self.minimum}.")
        return checked

    def _converted(self, op: str, name: str, kind: str, value: Any) -> Any:
        if kind in _PLAIN_KINDS:
            try:
                return _PLAIN_KINDS[kind](value)
            except (TypeError, ValueError, OverflowError) as error:
                if isinstance(error, _OutOfRangeError):
                    raise ValueError(f"{error} for argument '{name}' of '{op}'.") from None
                raise TypeError(f"Expected {kind} for argument '{name}' of '{op}' not {value!r}.") from None
        if kind == "func":
            ref = getattr(value, "function_ref", value)
            if not hasattr(ref, "target"):
                raise TypeError(f"Don't know how to convert {value!r} to a func for argument '{name}' of '{op}'.")
            return ref if self.derive is None else replace(ref, target=self.derive(ref.target))
        convert = _OTHER_KINDS.get(kind)
        if convert is None:
            return value
        try:
            converted = convert(value)
        except (TypeError, ValueError) as error:
            raise type(error)(f"Attr '{name}' of '{op}': {error}") from None
        if kind == "shape" and converted.known and math.prod(converted.dims) >= 2**63:
            raise ValueNotAllowedError(
                f"Shape {converted} is too large (more than 2**63 - 1 entries) for attr '{name}' of '{op}'"
            )
        return converted

    def _check_allowed(self, op: str, name: str, value: Any) -> None:
        if not self.allowed or value in self.allowed:
            return
        if isinstance(value, DType):
            allowed = ", ".join(dtype.name for dtype in self.allowed)
            raise DTypeNotAllowedError(
                f"Value passed to parameter '{name}' of '{op}' has DataType {value.name} "
                f"not in list of allowed values: {allowed}"
            )
        allowed = ", ".join(repr(item) for item in self.allowed)
        raise ValueNotAllowedError(
            f"Value for attr '{name}' of {value!r} is not in the list of allowed values: {allowed} ({op})"
        )


INT, FLOAT, BOOL, STRING = AttrSpec("int"), AttrSpec("float"), AttrSpec("bool"), AttrSpec("string")
TYPE, SHAPE, TENSOR, FUNC = AttrSpec("type"), AttrSpec("shape"), AttrSpec("tensor"), AttrSpec("func")
INTS, FLOATS_LIST, BOOLS, STRINGS = (AttrSpec(f"list({kind})") for kind in ("int", "float", "bool", "string"))
TYPES, SHAPES, FUNCS = (AttrSpec(f"list({kind})") for kind in ("type", "shape", "func"))
INT32, INT32S = AttrSpec("int", int32=True), AttrSpec("list(int)", int32=True)
ANY: tuple[DType, ...] = ()


def one_of(*dtypes: DType, default: DType | None = None) -> DTypeSet:
    """A type attribute that allows `dtypes`, with a default."""
    return DTypeSet(dtypes, default)


def attr_spec(value: Any) -> AttrSpec:
    """The spec for a definition's argument: a spec, the dtypes that a type attribute allows, or a default value."""
    if isinstance(value, AttrSpec):
        return value
    if isinstance(value, DTypeSet):
        return AttrSpec("type", MISSING if value.default is None else value.default, tuple(value))
    if isinstance(value, tuple):
        return AttrSpec("type", MISSING, value)
    if isinstance(value, DType):
        return AttrSpec("type", value)
    for kind, types in (("bool", bool), ("int", int), ("float", float), ("string", (str, bytes)), ("shape", Shape)):
        if isinstance(value, types):
            return AttrSpec(kind, value)
    raise TypeError(f"{value!r} does not tell the kind of an attribute; use INT, SHAPE, INTS, ...")


def too_wide(value: Any) -> int | None:
    """The first number of an integer attribute (or list) that does not fit in 32 bits."""
    numbers = value if isinstance(value, tuple) else (value,)
    return next((number for number in numbers if not -(2**31) <= number < 2**31), None)


# -- one value of each kind --------------------------------------------------------------------------------------


class _OutOfRangeError(ValueError):
    """An integer that does not fit in 64 bits."""


def _as_int(value: Any) -> int:
    """Truncates any number to an integer, as TensorFlow does."""
    if isinstance(value, (str, bytes)) or getattr(value, "ndim", 0):
        raise TypeError
    number = int(value)
    if not -(2**63) <= number < 2**63:
        raise _OutOfRangeError(f"Value out of range: {number}")
    return number


def _as_float(value: Any) -> float:
    """Float attributes are single precision, in files and in TensorFlow's kernels of every dtype."""
    if not isinstance(value, (int, float, np.generic)):
        raise TypeError
    with np.errstate(over="ignore"):
        return float(np.float32(value))


def _as_bool(value: Any) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError
    return bool(value)


def _as_text(value: Any) -> str | bytes:
    """Attribute strings are text in Python. Bytes that are not UTF-8 stay bytes."""
    if isinstance(value, str):
        return value
    if not isinstance(value, bytes):
        raise TypeError
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


_PLAIN_KINDS: dict[str, Callable[[Any], Any]] = {
    "int": _as_int,
    "float": _as_float,
    "bool": _as_bool,
    "string": _as_text,
}
_OTHER_KINDS: dict[str, Callable[[Any], Any]] = {"type": as_dtype, "shape": as_shape}
