"""Rows of dense, ragged and sparse tensors, read one by one and put together again, for loops over first dimensions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.shapes import as_shape
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.late_binding import ops
from stoker._src.graph.sparse_tensor import SparseTensor
from stoker._src.graph.tensor import Tensor
from stoker._src.graph.tensor_spec import SparseTensorSpec, TensorSpec
from stoker._src.graph.type_spec import TypeSpec
from stoker._src.ops.array import casting, joining, shaping
from stoker._src.ops.array.constants import constant
from stoker._src.ops.control_flow import tensor_array
from stoker._src.ops.math import scans


def count(tensor: Any) -> Any:
    """How many rows there are, as an int32 scalar."""
    if isinstance(tensor, ops.RaggedTensor):
        return tensor.nrows(out_type=dtypes.int32)
    if isinstance(tensor, SparseTensor):
        return casting.cast(tensor.dense_shape[0], dtypes.int32)
    return shaping.shape(tensor)[0]


def reader(tensor: Any, rows: Any) -> Callable[[Any], Any]:
    """A function from a row's number to the row."""
    if isinstance(tensor, ops.RaggedTensor):
        return lambda i: tensor[i]
    if isinstance(tensor, SparseTensor):
        messages = ops.SerializeManySparse(tensor.indices, tensor.values, tensor.dense_shape, out_type=dtypes.variant)
        held = tensor_array.TensorArray(dtypes.variant, size=rows, clear_after_read=False).unstack(messages)
        dtype, rest = tensor.dtype.base_dtype, tensor.shape[1:]

        def read(i: Any) -> SparseTensor:
            parts = ops.DeserializeSparse(held.read(i), dtype=dtype)
            _tell_rank(parts, as_shape(rest).rank)
            return SparseTensor(*parts)

        return read
    held = tensor_array.TensorArray(tensor.dtype.base_dtype, size=rows, clear_after_read=False).unstack(tensor)
    return held.read


def _tell_rank(parts: Any, rank: int | None) -> None:
    parts[0].set_shape([None, rank])
    parts[2].set_shape([rank])


def row_spec(tensor: Any) -> TypeSpec:
    """The spec of the rows of a tensor."""
    if isinstance(tensor, ops.RaggedTensor):
        rest, splits = tensor.shape[1:], tensor.row_splits.dtype.base_dtype
        if tensor.ragged_rank == 1:
            return ops.RaggedTensorSpec(rest, tensor.dtype, 0, splits)
        return ops.RaggedTensorSpec(rest, tensor.dtype, tensor.ragged_rank - 1, splits)
    if isinstance(tensor, SparseTensor):
        return SparseTensorSpec(tensor.shape[1:], tensor.dtype)
    return TensorSpec(None, tensor.dtype.base_dtype)


def stacked(held: Any, static: int | None) -> Tensor:
    """The elements of a TensorArray as one tensor, whose first size is `static` where that is known."""
    result = held.stack()
    if result.static_shape.rank is not None or static is not None:
        rest = held._static.dims
        result.set_shape([static, *rest] if rest is not None else result.static_shape)
    return result


class DenseStack:
    """Rows that are tensors of one shape."""

    def __init__(self, spec: TensorSpec, rows: Any, infer_shape: bool) -> None:
        self._spec = spec
        shape = spec.static_shape if spec.static_shape.dims is not None else None
        self.arrays = [tensor_array.TensorArray(spec.dtype, size=rows, infer_shape=infer_shape, element_shape=shape)]

    def checked(self, value: Any) -> Tensor:
        """The value that the function returned.

        Raises:
            InvalidArgumentError: another dtype than stated.
        """
        value = convert_to_tensor(value, dtype_hint=self._spec.dtype)
        if value.dtype.base_dtype is not self._spec.dtype:
            raise InvalidArgumentError(
                None,
                None,
                f"fn_output_signature says {self._spec.dtype.name} but fn returned {value.dtype.base_dtype.name}: pass "
                "`fn_output_signature` (or `dtype`) when fn changes the dtype.",
            )
        return value

    def write(self, arrays: list[Any], i: Any, value: Any) -> list[Any]:
        return [arrays[0].write(i, value)]

    def collected(self, arrays: list[Any], static: int | None) -> Any:
        return stacked(arrays[0], static)


class RaggedStack:
    """Rows that are ragged, or dense with a first dimension that varies: their values and row lengths, end to end."""

    def __init__(self, spec: Any, rows: Any) -> None:
        self._spec = spec
        values, *_ = spec._component_specs

        def column(dtype: Any, shape: Any) -> Any:
            return tensor_array.TensorArray(dtype, size=rows, infer_shape=False, element_shape=shape)

        lengths = [column(spec.row_splits_dtype, [None]) for _ in range(spec.ragged_rank)]
        dims = values.static_shape.dims
        inner = None if dims is None else [None, *dims[1:]]
        self.arrays = [column(spec.row_splits_dtype, []), column(spec.dtype, inner), *lengths]

    def checked(self, value: Any) -> Any:
        """The value that the function returned.

        Raises:
            TypeError: no ragged tensor where one is stated, or another dtype or ragged rank.
        """
        spec = self._spec
        if not isinstance(value, ops.RaggedTensor):
            value = convert_to_tensor(value, dtype_hint=spec.dtype)
        ragged_rank = value.ragged_rank if isinstance(value, ops.RaggedTensor) else 0
        if value.dtype.base_dtype is not spec.dtype or ragged_rank != spec.ragged_rank:
            raise TypeError(
                f"fn_output_signature says {spec} but fn returned {value.dtype.base_dtype.name} of ragged rank {ragged_rank}."
            )
        return value

    def write(self, arrays: list[Any], i: Any, value: Any) -> list[Any]:
        splits_type = self._spec.row_splits_dtype
        if isinstance(value, ops.RaggedTensor):
            rows = value.nrows(out_type=splits_type)
            parts, flat = [], value
            while isinstance(flat, ops.RaggedTensor):
                parts.append(casting.cast(flat.row_lengths(), splits_type))
                flat = flat.values
        else:
            rows, flat, parts = shaping.shape(value, out_type=splits_type)[0], value, []
        return [held.write(i, part) for held, part in zip(arrays, [rows, flat, *parts])]

    def collected(self, arrays: list[Any], static: int | None) -> Any:
        rows, values, *lengths = arrays
        result: Any = values.concat()
        for held in reversed(lengths):
            result = ops.RaggedTensor._make(result, _splits(held.concat()))
        outer = rows.stack()
        outer.set_shape([static])
        return ops.RaggedTensor._make(result, _splits(outer))


def _splits(lengths: Tensor) -> Tensor:
    return joining.concat([constant([0], lengths.dtype.base_dtype), scans.cumsum(lengths)], 0)


class SparseStack:
    """Rows that are sparse; the result is as large as the largest of them."""

    def __init__(self, spec: SparseTensorSpec, rows: Any) -> None:
        self._spec = spec
        self.arrays = [tensor_array.TensorArray(dtypes.variant, size=rows, element_shape=[3])]

    def checked(self, value: Any) -> SparseTensor:
        """The value that the function returned.

        Raises:
            TypeError: no sparse tensor of the stated dtype.
        """
        if not isinstance(value, SparseTensor) or value.dtype.base_dtype is not self._spec.dtype:
            raise TypeError(f"fn_output_signature says {self._spec} but fn returned {value}.")
        return value

    def write(self, arrays: list[Any], i: Any, value: SparseTensor) -> list[Any]:
        message = ops.SerializeSparse(value.indices, value.values, value.dense_shape, out_type=dtypes.variant)
        return [arrays[0].write(i, message)]

    def collected(self, arrays: list[Any], static: int | None) -> SparseTensor:
        parts = ops.DeserializeSparse(arrays[0].stack(), dtype=self._spec.dtype)
        rank = self._spec.static_shape.rank
        _tell_rank(parts, None if rank is None else rank + 1)
        return SparseTensor(*parts)


def stack_of(spec: TypeSpec, rows: Any, infer_shape: bool) -> Any:
    """What collects rows of `spec`.

    Raises:
        ValueError: a spec whose values cannot be stacked.
    """
    if isinstance(spec, TensorSpec):
        return DenseStack(spec, rows, infer_shape)
    if isinstance(spec, ops.RaggedTensorSpec):
        return RaggedStack(spec, rows)
    if isinstance(spec, SparseTensorSpec):
        return SparseStack(spec, rows)
    raise ValueError(f"map_fn cannot stack values of {spec}.")
