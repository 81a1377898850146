"""Dtypes: TensorFlow's names, enum numbers and NumPy counterparts. `ops/support/values.py` has torch's dtypes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import ml_dtypes
import numpy as np

REF_OFFSET = 100


class DType:
    """The dtype of a tensor. As in TensorFlow, it equals its enum number, its name and its NumPy dtype."""

    __slots__ = ("_enum", "_name", "_numpy", "__weakref__")

    _enum: int
    _name: str
    _numpy: Any

    def __new__(cls, type_enum: int, handle_data: Any = None) -> DType:
        # There is one object for each dtype, so dtypes can be compared with `is`.
        known = _BY_ENUM.get(int(type_enum))
        if known is None:
            raise TypeError(f"type_enum is not a valid types_pb2.DataType: {type_enum!r}")
        return known

    def __init__(self, type_enum: int, handle_data: Any = None) -> None:
        """Returns the dtype with an enum number.

        Raises:
            TypeError: the number is unknown, or handle data is given, which describes what a resource handle of TensorFlow's
                runtime refers to.
        """
        if handle_data is not None:
            raise TypeError(f"handle_data must be of the type HandleData, got {handle_data!r}")

    @property
    def name(self) -> str:
        return self._name

    @property
    def as_datatype_enum(self) -> int:
        return self._enum

    @property
    def as_numpy_dtype(self) -> Any:
        """The NumPy scalar type; `object` for strings, variants and resources, as in TensorFlow."""
        return self._numpy

    @property
    def _is_ref_dtype(self) -> bool:
        return self._enum > REF_OFFSET

    is_ref = _is_ref_dtype

    @property
    def _as_ref(self) -> DType:
        return self if self._is_ref_dtype else _BY_ENUM[self._enum + REF_OFFSET]

    @property
    def base_dtype(self) -> DType:
        return _BY_ENUM[self._enum - REF_OFFSET] if self._enum > REF_OFFSET else self

    @property
    def real_dtype(self) -> DType:
        base = self.base_dtype
        if base is complex64:
            return float32
        if base is complex128:
            return float64
        return self

    @property
    def is_numpy_compatible(self) -> bool:
        return self.base_dtype not in (resource, variant)

    @property
    def is_floating(self) -> bool:
        return self.base_dtype in _FLOATS

    @property
    def is_complex(self) -> bool:
        return self.base_dtype in (complex64, complex128)

    @property
    def is_integer(self) -> bool:
        return self.base_dtype in _INTEGERS

    @property
    def is_quantized(self) -> bool:
        return self.base_dtype in _QUANTIZED

    @property
    def is_bool(self) -> bool:
        return self.base_dtype is bool_

    @property
    def is_unsigned(self) -> bool:
        return self.base_dtype in _UNSIGNED

    @property
    def is_numeric(self) -> bool:
        return self.is_floating or self.is_integer or self.is_complex

    @property
    def size(self) -> int:
        base = self.base_dtype
        if base in (string, resource, variant):
            return 1
        return np.dtype(base._numpy).itemsize

    @property
    def min(self) -> Any:
        return self._limit("min")

    @property
    def max(self) -> Any:
        return self._limit("max")

    def _limit(self, which: str) -> Any:
        base = self.base_dtype
        if base is bool_:
            return which == "max"
        if base.is_integer or base.is_quantized:
            return getattr(np.iinfo(base._numpy), which)
        if base.is_floating:
            # numpy.finfo does not support bfloat16 and the float8 types.
            return getattr(ml_dtypes.finfo(base._numpy), which)
        raise TypeError(f"Cannot find {which}imum value of {self!r}.")

    @property
    def limits(self) -> tuple[Any, Any]:
        return (self.min, self.max)

    def is_compatible_with(self, other: Any) -> bool:
        other = as_dtype(other)
        return self._enum in (other._enum, other.base_dtype._enum)

    def __eq__(self, other: object) -> bool:
        if other is None:
            return False
        if type(other) is DType:
            return self._enum == other._enum
        try:
            return self._enum == as_dtype(other)._enum
        except TypeError:
            return False

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return self._enum

    def __int__(self) -> int:
        return self._enum

    def __repr__(self) -> str:
        return f"tf.{self._name}"

    def __str__(self) -> str:
        return f"<dtype: {self._name!r}>"

    def __reduce__(self) -> Any:
        return as_dtype, (self._name,)


_BY_ENUM: dict[int, DType] = {}
_BY_NAME: dict[str, DType] = {}


def _register(enum: int, name: str, numpy_type: Any) -> DType:
    for number, spelled in ((enum, name), (enum + REF_OFFSET, name + "_ref")):
        each = object.__new__(DType)
        each._enum, each._name, each._numpy = number, spelled, numpy_type
        _BY_ENUM[number] = _BY_NAME[spelled] = each
    return _BY_ENUM[enum]


float32 = _register(1, "float32", np.float32)
float64 = _register(2, "float64", np.float64)
int32 = _register(3, "int32", np.int32)
uint8 = _register(4, "uint8", np.uint8)
int16 = _register(5, "int16", np.int16)
int8 = _register(6, "int8", np.int8)
string = _register(7, "string", np.object_)
complex64 = _register(8, "complex64", np.complex64)
int64 = _register(9, "int64", np.int64)
bool_ = _register(10, "bool", np.bool_)
qint8 = _register(11, "qint8", np.int8)
quint8 = _register(12, "quint8", np.uint8)
qint32 = _register(13, "qint32", np.int32)
bfloat16 = _register(14, "bfloat16", ml_dtypes.bfloat16)
qint16 = _register(15, "qint16", np.int16)
quint16 = _register(16, "quint16", np.uint16)
uint16 = _register(17, "uint16", np.uint16)
complex128 = _register(18, "complex128", np.complex128)
float16 = _register(19, "float16", np.float16)
resource = _register(20, "resource", np.object_)
variant = _register(21, "variant", np.object_)
uint32 = _register(22, "uint32", np.uint32)
uint64 = _register(23, "uint64", np.uint64)

half = float16
double = float64

_FLOATS = frozenset((float16, bfloat16, float32, float64))
_QUANTIZED = frozenset((qint8, quint8, qint16, quint16, qint32))
_UNSIGNED = frozenset((uint8, uint16, uint32, uint64))
_INTEGERS = frozenset((int8, int16, int32, int64)) | _UNSIGNED

for _alias, _target in (("half", float16), ("float", float32), ("double", float64)):
    _BY_NAME[_alias] = _target
    _BY_NAME[_alias + "_ref"] = _target._as_ref

QUANTIZED_DTYPES = _QUANTIZED | {each._as_ref for each in _QUANTIZED}

# Sets of dtypes for the type attributes of op definitions.
FLOATS = (bfloat16, float16, float32, float64)
COMPLEX = (complex64, complex128)
SIGNED_INTS = (int8, int16, int32, int64)
INTS = (*SIGNED_INTS, uint8, uint16, uint32, uint64)
REAL = (*FLOATS, *INTS)
INEXACT = (*FLOATS, *COMPLEX)
NUMERIC = (*REAL, *COMPLEX)
INDEX = (int32, int64)

_BY_NUMPY: dict[Any, DType] = {
    np.dtype(each._numpy): each for each in (float16, bfloat16, float32, float64, *INTS, complex64, complex128, bool_)
}
_BY_PYTHON: dict[Any, DType] = {
    float: float32,
    bool: bool_,
    str: string,
    bytes: string,
    object: string,
    complex: complex128,
}


def as_dtype(type_value: Any) -> DType:
    """Converts `type_value` (a DType, enum number, name, NumPy or Python type) to a DType.

    Raises:
        TypeError: there is no such dtype.
    """
    if type(type_value) is DType:
        return type_value
    if isinstance(type_value, (int, np.integer)) and not isinstance(type_value, bool) and int(type_value) in _BY_ENUM:
        return _BY_ENUM[int(type_value)]
    if isinstance(type_value, str) and type_value in _BY_NAME:
        return _BY_NAME[type_value]
    if isinstance(type_value, type) and type_value in _BY_PYTHON:
        return _BY_PYTHON[type_value]
    if (
        type_value is not None and type_value is not int
    ):  # TensorFlow does not convert `int`, because its width is ambiguous
        known = getattr(type_value, "dtype", None)
        if isinstance(known, np.dtype):
            type_value = known
        elif type(known) is DType:  # tensors and variables have a dtype but are not dtypes
            raise TypeError(f"Cannot convert the argument `type_value`: {type_value!r} to a TensorFlow DType.")
        elif isinstance(type_value, type) and not issubclass(type_value, np.generic) and type_value is not object:
            # NumPy would accept any class as an object dtype.
            raise TypeError(f"Cannot convert the argument `type_value`: {type_value!r} to a TensorFlow DType.")
        try:
            numpy_type = np.dtype(type_value)  # pyright: ignore[reportCallIssue, reportArgumentType]
        except (TypeError, ValueError, SyntaxError):
            pass
        else:
            if numpy_type in _BY_NUMPY:
                return _BY_NUMPY[numpy_type]
            if numpy_type.kind in "SUO":
                return string
    raise TypeError(f"Cannot convert the argument `type_value`: {type_value!r} to a TensorFlow DType.")


class DTypeSet(tuple[DType, ...]):
    """The dtypes that a type attribute allows, and its default."""

    default: DType | None

    def __new__(cls, dtypes: Iterable[DType], default: DType | None = None) -> DTypeSet:
        self = super().__new__(cls, dtypes)
        self.default = default
        return self
