"""StructuredValue messages: how a SavedModel writes the arguments and results of functions.

A structure consists of lists, tuples, named tuples and dictionaries. Its leaves are specs of tensors and composites, shapes, dtypes,
arrays and plain values. Names in a message never become code: a named tuple is rebuilt with `collections.namedtuple`, which checks them.
"""

from __future__ import annotations

import collections
import functools
import keyword
from collections.abc import Mapping
from typing import Any

import numpy as np

from stoker._src.base.dtypes import DType, as_dtype
from stoker._src.base.errors import DataLossError
from stoker._src.base.shapes import Shape, TensorShape, as_shape
from stoker._src.formats.protos import StructuredValue, TypeSpecProto
from stoker._src.formats.tensor_proto import from_tensor_proto, to_tensor_proto
from stoker._src.graph.indexed_slices import IndexedSlicesSpec
from stoker._src.graph.sparse_tensor import SparseTensorSpec
from stoker._src.graph.tensor import Tensor
from stoker._src.graph.tensor_spec import TensorSpec
from stoker._src.graph.type_spec import TypeSpec
from stoker._src.ops.control_flow.tensor_array import TensorArraySpec
from stoker._src.ops.ragged.ragged_spec import RaggedTensorSpec

_DEEPEST = 100  # protobuf itself refuses messages that are nested much deeper

_CLASSES: dict[int, type[TypeSpec]] = {
    TypeSpecProto.SPARSE_TENSOR_SPEC: SparseTensorSpec,
    TypeSpecProto.INDEXED_SLICES_SPEC: IndexedSlicesSpec,
    TypeSpecProto.RAGGED_TENSOR_SPEC: RaggedTensorSpec,
    TypeSpecProto.TENSOR_ARRAY_SPEC: TensorArraySpec,
}
_NUMBERS = {kind: number for number, kind in _CLASSES.items()}


class NotEncodableError(ValueError):
    """Raised for a value that a SavedModel cannot hold."""


def encoded(value: Any) -> StructuredValue:
    """Returns the message of a structure.

    Raises:
        NotEncodableError: a leaf is of a type that SavedModels do not support.
    """
    proto = StructuredValue()
    _encode(value, proto)
    return proto


def _encode(value: Any, proto: StructuredValue) -> None:
    if value is None:
        proto.none_value.SetInParent()
    elif isinstance(value, bool):
        proto.bool_value = value
    elif isinstance(value, str):
        proto.string_value = value
    elif isinstance(value, (int, np.integer)) and not isinstance(value, np.generic):
        if not -(1 << 63) <= value < 1 << 63:
            raise NotEncodableError(f"The integer {value} does not fit into 64 bits.")
        proto.int64_value = value
    elif isinstance(value, float) and not isinstance(value, np.generic):
        proto.float64_value = value
    elif isinstance(value, TensorSpec):
        proto.tensor_spec_value.CopyFrom(value.experimental_as_proto())
    elif isinstance(value, TypeSpec):
        _encode_spec(value, proto.type_spec_value)
    elif isinstance(value, (TensorShape, Shape)):
        proto.tensor_shape_value.CopyFrom(TensorShape(value).as_proto())
    elif isinstance(value, DType):
        proto.tensor_dtype_value = value.as_datatype_enum
    elif isinstance(value, Tensor) and getattr(value, "is_eager", False):
        array = value.static_array()  # pyright: ignore[reportAttributeAccessIssue]
        proto.tensor_value.CopyFrom(to_tensor_proto(array, value.dtype))
    elif isinstance(value, (np.ndarray, np.generic)):
        array = np.asarray(value)
        proto.numpy_value.CopyFrom(to_tensor_proto(array, as_dtype(array.dtype)))
    else:
        _encode_container(value, proto)


def _encode_container(value: Any, proto: StructuredValue) -> None:
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        proto.named_tuple_value.name = type(value).__name__
        fields: tuple[str, ...] = value._fields  # pyright: ignore[reportAttributeAccessIssue]
        for name, item in zip(fields, value):
            _encode(item, proto.named_tuple_value.values.add(key=name).value)
    elif isinstance(value, (list, tuple)):
        into = proto.list_value if isinstance(value, list) else proto.tuple_value
        into.SetInParent()
        for item in value:
            _encode(item, into.values.add())
    elif isinstance(value, Mapping):
        proto.dict_value.SetInParent()
        for key, item in value.items():
            if not isinstance(key, str):
                raise NotEncodableError(f"A dictionary in a SavedModel has strings as keys, found {key!r}.")
            _encode(item, proto.dict_value.fields[key])
    else:
        raise NotEncodableError(f"No encoder for object {value!r} of type {type(value)}.")


def _encode_spec(spec: TypeSpec, proto: Any) -> None:
    number = _NUMBERS.get(type(spec))
    if number is None:
        raise NotEncodableError(f"No encoder for object {spec!r} of type {type(spec)}.")
    proto.type_spec_class = number
    proto.type_spec_class_name = type(spec).__name__
    _encode(spec._serialize(), proto.type_state)
    proto.num_flat_components = 1 if isinstance(spec, TensorArraySpec) else len(spec._component_specs)


def decoded(proto: Any, depth: int = 0) -> Any:
    """Returns the structure that a message holds.

    Raises:
        DataLossError: the message is damaged.
        NotImplementedError: it holds a spec of a type that does not exist here.
    """
    if depth > _DEEPEST:
        raise DataLossError(None, None, f"a structure is nested more than {_DEEPEST} deep")
    kind = proto.WhichOneof("kind")
    if kind is None or kind == "none_value":
        return None
    value = getattr(proto, kind)
    below = functools.partial(decoded, depth=depth + 1)
    try:
        if kind == "list_value":
            return [below(item) for item in value.values]
        if kind == "tuple_value":
            return tuple(below(item) for item in value.values)
        if kind == "dict_value":
            return {key: below(value.fields[key]) for key in sorted(value.fields)}
        if kind == "named_tuple_value":
            return _named_tuple(value.name, [(pair.key, below(pair.value)) for pair in value.values])
        if kind == "type_spec_value":
            return _decoded_spec(value, below(value.type_state))
        if kind == "tensor_spec_value":
            return TensorSpec(as_shape(value.shape), as_dtype(value.dtype), value.name or None)
        if kind == "bounded_tensor_spec_value":
            raise NotImplementedError("Bounded tensor specs are not supported.")
        if kind == "tensor_shape_value":
            return TensorShape(as_shape(value))
        if kind == "tensor_dtype_value":
            return as_dtype(value)
        if kind in ("tensor_value", "numpy_value"):
            return from_tensor_proto(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataLossError(None, None, f"a structure is damaged: {error}") from error
    return value


@functools.lru_cache(maxsize=256)
def _tuple_class(name: str, fields: tuple[str, ...]) -> type:
    # `namedtuple` inserts the names into source code. It accepts identifiers only, which this check makes explicit.
    for each in (name, *fields):
        if not each.isidentifier() or keyword.iskeyword(each):
            raise ValueError(f"{each!r:.100} is not a name")
    return collections.namedtuple(name, fields)


def _named_tuple(name: str, items: list[tuple[str, Any]]) -> Any:
    return _tuple_class(name, tuple(key for key, _ in items))(*[item for _, item in items])


def _decoded_spec(proto: Any, state: Any) -> TypeSpec:
    kind = _CLASSES.get(proto.type_spec_class)
    if kind is None:
        raise NotImplementedError(
            f"A function of the SavedModel has an argument or result of type {proto.type_spec_class_name!r:.100}, which is not supported."
        )
    if not isinstance(state, tuple):
        raise ValueError(f"the state of a {kind.__name__} is not a tuple")
    return kind._deserialize(state)
