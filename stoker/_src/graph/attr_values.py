"""Conversion of attribute values between Python, GraphDef's AttrValue, and the results of `Operation.get_attr`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stoker._src.base.dtypes import DType, as_dtype
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.shapes import Shape, TensorShape, as_shape
from stoker._src.formats.protos import AttrValue, NameAttrList
from stoker._src.formats.tensor_proto import from_tensor_proto, to_tensor_proto


@dataclass(frozen=True)
class FunctionRef:
    """A function of the graph's library, by name, with the attributes it is instantiated with."""

    name: str
    attrs: dict[str, Any] = field(default_factory=dict, hash=False, compare=False)
    target: Any = field(default=None, hash=False, compare=False, repr=False)
    """The Function it names, once resolved."""


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


def _kind_of(value: Any) -> str:
    for kind, types in (
        ("bool", (bool, np.bool_)),
        ("int", (int, np.integer)),
        ("float", (float, np.floating)),
        ("string", (str, bytes)),
        ("type", DType),
        ("shape", (Shape, TensorShape)),
        ("tensor", np.ndarray),
        ("func", FunctionRef),
    ):
        if isinstance(value, types):
            return kind
    raise TypeError(f"{value!r} cannot be an attribute")


_FIELD = {"int": "i", "float": "f", "bool": "b", "string": "s", "type": "type"}


def to_attr_value(value: Any, kind: str | None = None, dtype: DType | None = None) -> Any:
    """Converts a Python value to an AttrValue. `kind` is that of the definition; without it (user attributes) it is guessed.

    `dtype` is the dtype of a tensor attribute, which quantized and string arrays do not determine.
    """
    proto = AttrValue()
    if isinstance(value, (list, tuple)):
        inner = kind[5:-1] if kind else (_kind_of(value[0]) if value else "string")
        target = proto.list
        target.SetInParent()
        if inner == "shape":
            target.shape.extend(TensorShape(item).as_proto() for item in value)
        elif inner == "func":
            target.func.extend(_function_proto(item) for item in value)
        elif inner == "tensor":
            target.tensor.extend(to_tensor_proto(item, as_dtype(item.dtype)) for item in value)
        else:
            getattr(target, _FIELD[inner]).extend(_scalar(item, inner) for item in value)
        return proto
    kind = kind or _kind_of(value)
    if kind == "shape":
        proto.shape.CopyFrom(TensorShape(value).as_proto())
    elif kind == "tensor":
        proto.tensor.CopyFrom(to_tensor_proto(value, dtype or as_dtype(value.dtype)))
    elif kind == "func":
        proto.func.CopyFrom(_function_proto(value))
    else:
        setattr(proto, _FIELD[kind], _scalar(value, kind))
    return proto


def _scalar(value: Any, kind: str) -> Any:
    if kind == "string":
        return _bytes(value)
    if kind == "type":
        return value.as_datatype_enum
    return value


def _function_proto(function: FunctionRef) -> Any:
    proto = NameAttrList(name=function.name)
    for key, value in function.attrs.items():
        proto.attr[key].CopyFrom(to_attr_value(value))
    return proto


def _text(value: bytes) -> str | bytes:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


def _function(proto: Any) -> FunctionRef:
    return FunctionRef(proto.name, {key: from_attr_value(value) for key, value in proto.attr.items()})


def _dtype(number: int) -> DType:
    try:
        return as_dtype(number)
    except TypeError:
        raise InvalidArgumentError(None, None, f"Attribute holds the unknown dtype number {number}.") from None


def from_attr_value(proto: Any) -> Any:
    """Converts an AttrValue to a Python value.

    Raises:
        InvalidArgumentError: it is empty, a placeholder, or malformed.
    """
    which = proto.WhichOneof("value")
    if which == "s":
        return _text(proto.s)
    if which in ("i", "f", "b"):
        return getattr(proto, which)
    if which == "type":
        return _dtype(proto.type)
    if which == "shape":
        return as_shape(proto.shape)
    if which == "tensor":
        return from_tensor_proto(proto.tensor)
    if which == "func":
        return _function(proto.func)
    if which == "list":
        return _from_list(proto.list)
    raise InvalidArgumentError(None, None, f"Attribute value {which or 'that is empty'} cannot be used.")


_FIELDS_OF_KINDS = {**_FIELD, "shape": "shape", "tensor": "tensor", "func": "func"}
_LIST_FIELDS = ("s", "i", "f", "b", "type", "shape", "tensor", "func")


def typed_attr_value(proto: Any, kind: str, name: str) -> Any:
    """Converts an AttrValue that must be of `kind` to a Python value.

    Raises:
        InvalidArgumentError: it is of another kind, or malformed.
    """
    which = proto.WhichOneof("value")
    expected = "list" if kind.startswith("list(") else _FIELDS_OF_KINDS[kind]
    found = which
    if which == "list":
        inner = _FIELDS_OF_KINDS[kind.removeprefix("list(").removesuffix(")")]
        others = [field for field in _LIST_FIELDS if field != inner and len(getattr(proto.list, field))]
        found = "list" if expected == "list" and not others else f"list of {others[0] if others else inner}"
    if which not in (None, "placeholder") and found != expected:
        raise InvalidArgumentError(
            None, None, f"AttrValue '{name}' had value with type '{found}' when '{kind}' expected."
        )
    for shape in [proto.shape] if which == "shape" else proto.list.shape if which == "list" else ():
        if any(dim.size < -1 for dim in shape.dim):
            sizes = [dim.size for dim in shape.dim]
            raise InvalidArgumentError(None, None, f"AttrValue '{name}' is a shape with sizes below -1: {sizes}.")
        if shape.unknown_rank and shape.dim:
            raise InvalidArgumentError(
                None, None, f"AttrValue '{name}' is a shape of unknown rank that has {len(shape.dim)} sizes."
            )
    for number in [proto.type] if which == "type" else proto.list.type if which == "list" else ():
        if _dtype(number)._is_ref_dtype:
            raise InvalidArgumentError(
                None, None, f"AttrValue '{name}' must not be of the reference type {_dtype(number).name}."
            )
    return from_attr_value(proto)


def _from_list(proto: Any) -> tuple[Any, ...]:
    for name, read in (
        ("s", _text),
        ("i", int),
        ("f", float),
        ("b", bool),
        ("type", _dtype),
        ("shape", as_shape),
        ("tensor", from_tensor_proto),
        ("func", _function),
    ):
        items = getattr(proto, name)
        if len(items):
            return tuple(read(item) for item in items)
    return ()


def public_value(value: Any) -> Any:
    """The value that `Operation.get_attr` returns: bytes for strings, protos for shapes, tensors and functions, and lists."""
    if isinstance(value, tuple):
        return [public_value(item) for item in value]
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, Shape):
        return TensorShape(value).as_proto()
    if isinstance(value, np.ndarray):
        return to_tensor_proto(value, as_dtype(value.dtype))
    if isinstance(value, FunctionRef):
        return _function_proto(value)
    return value
