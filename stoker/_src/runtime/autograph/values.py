"""Converts values of a program to tensors of the graph that is being built."""

from __future__ import annotations

from typing import Any

from stoker._src.base import dtypes, nest
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import shaping
from stoker._src.ops.array.constants import constant
from stoker._src.ops.control_flow import tensor_array, tensor_lists
from stoker._src.ops.ragged.ragged_tensor import RaggedTensor
from stoker._src.ops.variables import variables
from stoker._src.runtime.autograph.state import UNDEFINED


def in_graph(value: Any) -> bool:
    """Whether `value` is known only when the graph under construction runs."""
    return isinstance(value, (Tensor, variables.Variable, RaggedTensor)) and not context.executing_eagerly()


def as_condition(value: Any, what: str) -> Tensor:
    """Returns the condition as a tensor.

    Raises:
        ValueError: it is not a bool scalar.
    """
    tensor = convert_to_tensor(value)
    boolean, scalar = tensor.dtype.base_dtype is dtypes.bool_, tensor.static_shape.rank in (0, None)
    if boolean and scalar:
        return tensor
    hint = "" if boolean else " to use as boolean Tensor, use `tf.cast`;"
    raise ValueError(
        f"{what} expected to be `tf.bool` scalar, got {tensor};{hint} to check for None, use `is not None`"
    )


def as_tensors(value: Any) -> Any:
    """Converts a variable's value to a structure of tensors for the graph. None and UNDEFINED stay unchanged."""
    if value is UNDEFINED or value is None:
        return value
    return nest.map_structure(
        lambda leaf: leaf if leaf is None else convert_to_tensor(leaf), value, expand_composites=True
    )


def made_up(value: Any) -> Any:
    """Returns dummy tensors with the structure of `value`. Unknown dimensions become zero."""

    def empty(leaf: Any) -> Any:
        if isinstance(leaf, tensor_array.TensorArray):
            return tensor_array.TensorArray(leaf.dtype, size=0, dynamic_size=True, element_shape=leaf.element_shape)
        if not isinstance(leaf, Tensor):
            return nest.map_structure(empty, leaf, expand_composites=True) if nest.is_nested(leaf) else leaf
        if leaf.dtype.base_dtype is dtypes.variant:
            return tensor_lists.TENSOR_LIST_RESERVE(
                constant([], dtypes.int32), constant(0), element_dtype=dtypes.float32
            )
        dtype = leaf.dtype.base_dtype
        sizes = [size or 0 for size in leaf.static_shape.dims or ()]
        return shaping.fill(sizes, constant("" if dtype is dtypes.string else dtype.as_numpy_dtype(), dtype))

    return nest.map_structure(empty, value)


def length(value: Any) -> Tensor:
    """Returns the number of rows.

    Raises:
        ValueError: `value` is a scalar.
    """
    if isinstance(value, RaggedTensor):
        return value.nrows(dtypes.int32)
    tensor = convert_to_tensor(value)
    if tensor.static_shape.rank == 0:
        raise ValueError(f"len requires a non-scalar tensor, got one of shape {tensor.shape}")
    if tensor.static_shape.rank is not None and tensor.static_shape[0] is not None:
        return constant(tensor.static_shape[0], dtypes.int32)
    return shaping.shape(tensor)[0]
