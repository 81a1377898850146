"""Public names of the base and graph rooms that need no function of their own."""

from __future__ import annotations

from typing import Any

from stoker._src.base import dtypes, errors, shapes
from stoker._src.base.export import export, export_constant
from stoker._src.graph import context, conversion, static_values
from stoker._src.graph.function_graph import FuncGraph
from stoker._src.graph.tensor import Tensor

for _name in (
    "float16 half float32 float64 double bfloat16 complex64 complex128 int8 int16 int32 int64 uint8 uint16 uint32 uint64 "
    "string resource variant qint8 quint8 qint16 quint16 qint32"
).split():
    export_constant(dtypes.__name__, _name, _name, f"dtypes.{_name}")
export_constant(dtypes.__name__, "bool_", "bool", "dtypes.bool")
export_constant(dtypes.__name__, "DType", "DType", "dtypes.DType")
export_constant(dtypes.__name__, "as_dtype", "as_dtype", "dtypes.as_dtype")
export_constant(dtypes.__name__, "QUANTIZED_DTYPES", "dtypes.QUANTIZED_DTYPES", v1="QUANTIZED_DTYPES")

for _name in dir(errors):
    _value = getattr(errors, _name)
    if _name.isupper() and isinstance(_value, int):
        export_constant(errors.__name__, _name, f"errors.{_name}")
    elif isinstance(_value, type) and issubclass(_value, errors.OpError) and not _name.startswith("_"):
        export_constant(errors.__name__, _name, f"errors.{_name}", v1=f"{_name}" if _name == "OpError" else ())
export_constant(errors.__name__, "exception_type_from_error_code", v1="errors.exception_type_from_error_code")
export_constant(errors.__name__, "error_code_from_exception_type", v1="errors.error_code_from_exception_type")
export_constant(errors.__name__, "raise_exception_on_not_ok_status", v1="errors.raise_exception_on_not_ok_status")

export_constant(shapes.__name__, "TensorShape", "TensorShape")
export_constant(shapes.__name__, "Dimension", v1="Dimension")
export_constant(shapes.__name__, "dimension_value", "compat.dimension_value", v1="dimension_value")
export_constant(shapes.__name__, "dimension_at_index", "compat.dimension_at_index", v1="dimension_at_index")
export_constant(errors.__name__, "OperatorNotAllowedInGraphError", v2="errors.OperatorNotAllowedInGraphError")
export_constant("stoker._src.base.devices", "DeviceSpec", "DeviceSpec")
export_constant("stoker._src.graph.graph", "Graph", "Graph")
export_constant("stoker._src.graph.tensor", "Operation", "Operation")
export_constant("stoker._src.graph.tensor", "Tensor", "Tensor")
export_constant(context.__name__, "get_default_graph", v1="get_default_graph")
export_constant(context.__name__, "reset_default_graph", v1="reset_default_graph")
export_constant(conversion.__name__, "convert_to_tensor", v1="convert_to_tensor")
export_constant(conversion.__name__, "register_tensor_conversion_function", "register_tensor_conversion_function")
export_constant(conversion.__name__, "is_tensor", "is_tensor", v1="contrib.framework.is_tensor")

newaxis = None
export_constant(__name__, "newaxis", "newaxis")


@export(v2="convert_to_tensor")
def convert_to_tensor_v2(value: Any, dtype: Any = None, dtype_hint: Any = None, name: str | None = None) -> Any:
    """Converts `value` to a tensor."""
    return conversion.convert_to_tensor(value, dtype, name, dtype_hint=dtype_hint)


@export("get_static_value", v1="contrib.util.constant_value")
def get_static_value(tensor: Any, partial: bool = False) -> Any:
    """The static value of a tensor, or None. Values that are not tensors are returned unchanged.

    Args:
        tensor: an eager tensor (the result is that of `numpy()`) or a symbolic one (the result is an array).
        partial: for a partly known stack, whether to return an object array with None for unknown elements.
    """
    if getattr(tensor, "is_eager", False):
        return tensor.numpy()
    if isinstance(tensor, Tensor):
        return static_values.constant_value(tensor, partial)
    return None if hasattr(tensor, "read_value") else tensor  # a variable's value may change


@export("is_symbolic_tensor")
def is_symbolic_tensor(tensor: Any) -> bool:
    """Whether this is a symbolic tensor, without a value."""
    return isinstance(tensor, Tensor) and not getattr(tensor, "is_eager", False)


@export(v2="inside_function")
def inside_function() -> bool:
    """Whether a function (of tf.function, or a branch or body) is being traced."""
    return not context.executing_eagerly() and isinstance(context.target(), FuncGraph)


@export(v2="get_current_name_scope")
def get_current_name_scope() -> str:
    """The current name scope without a trailing slash; empty at the top level."""
    return context.target().get_name_scope()


@export(v1="add_to_collection")
def add_to_collection(name: Any, value: Any) -> None:
    """Stores `value` in a collection of the default graph."""
    context.get_default_graph().add_to_collection(name, value)


@export(v1="add_to_collections")
def add_to_collections(names: Any, value: Any) -> None:
    """Stores `value` in each of several collections of the default graph."""
    context.get_default_graph().add_to_collections(names, value)


@export(v1="get_collection")
def get_collection(key: Any, scope: str | None = None) -> list[Any]:
    """A copy of a collection of the default graph, filtered by `scope` if given."""
    return context.get_default_graph().get_collection(key, scope)


@export(v1="get_collection_ref")
def get_collection_ref(key: Any) -> list[Any]:
    """A collection of the default graph itself: changing the list changes the collection."""
    return context.get_default_graph().get_collection_ref(key)
