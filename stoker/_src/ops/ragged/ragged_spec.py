"""`RaggedTensorSpec`: the type of ragged tensors, and how they are fed, fetched, expanded and assembled by row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stoker._src.base import dtypes
from stoker._src.base.dtypes import DType, as_dtype
from stoker._src.base.export import export
from stoker._src.base.shapes import Shape, TensorShape, as_shape
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.tensor import Tensor
from stoker._src.graph.tensor_spec import ShapedSpec, TensorSpec
from stoker._src.graph.type_spec import Column, Hold, Reader, TypeSpec, describes
from stoker._src.ops.array import casting, constants, joining, shaping
from stoker._src.ops.math import scans
from stoker._src.ops.ragged.ragged_tensor import RaggedTensor
from stoker._src.ops.ragged.ragged_value import RaggedTensorValue


@export("RaggedTensorSpec")
@describes(RaggedTensor, plain=(RaggedTensorValue,))
class RaggedTensorSpec(ShapedSpec):
    """Describes RaggedTensors.

    Args:
        shape: the shape, with None for ragged dimensions.
        dtype: the dtype of the values.
        ragged_rank: the number of partitions; by default all dimensions except the first are ragged.
        row_splits_dtype: int32 or int64.
        flat_values_spec: the spec of the flat values, if they are not a plain tensor.

    Raises:
        ValueError: the ragged rank is too large for the shape, or neither rank nor ragged rank is given.
    """

    __slots__ = ("_flat_values_spec", "_ragged_rank", "_row_splits_dtype")

    def __init__(
        self,
        shape: Any = None,
        dtype: Any = dtypes.float32,
        ragged_rank: int | None = None,
        row_splits_dtype: Any = dtypes.int64,
        flat_values_spec: TypeSpec | None = None,
    ) -> None:
        self._shape = TensorShape(as_shape(shape))
        self._row_splits_dtype = as_dtype(row_splits_dtype)
        if flat_values_spec is not None:
            dtype = flat_values_spec.dtype if dtype is None else dtype  # type: ignore[attr-defined]
            if as_dtype(dtype) is not flat_values_spec.dtype:  # type: ignore[attr-defined]
                raise ValueError("dtype must be the same as flat_values_spec.dtype")
        elif dtype is None:
            raise ValueError("At least one of dtype or flat_values_spec must be provided")
        self._dtype = as_dtype(dtype)
        self._flat_values_spec = flat_values_spec
        rank = as_shape(shape).rank
        if ragged_rank is None:
            if rank is None:
                raise ValueError("Must specify ragged_rank or a shape with a known rank.")
            ragged_rank = rank - 1
        if not isinstance(ragged_rank, int):
            raise TypeError(f"Argument `ragged_rank` must be an int. Received {ragged_rank}.")
        if rank is not None and ragged_rank >= rank:
            raise ValueError(f"Argument `ragged_rank` ({ragged_rank}) must be less than rank ({rank}).")
        self._ragged_rank = ragged_rank

    @classmethod
    def from_value(cls, value: Any) -> RaggedTensorSpec:
        """The spec of a RaggedTensor or RaggedTensorValue."""
        if isinstance(value, RaggedTensorValue):
            splits = value.nested_row_splits
            sizes = [len(splits[0]) - 1, *[None] * len(splits), *value.flat_values.shape[1:]]
            return cls(sizes, as_dtype(value.flat_values.dtype), len(splits), as_dtype(splits[0].dtype))
        return cls(value.static_shape, value.dtype, value.ragged_rank, value.row_splits.dtype.base_dtype)

    _of = from_value

    @property
    def value_type(self) -> Any:
        return RaggedTensor if self._ragged_rank > 0 else Tensor

    @property
    def ragged_rank(self) -> int:
        return self._ragged_rank

    @property
    def row_splits_dtype(self) -> DType:
        return self._row_splits_dtype

    @property
    def flat_values_spec(self) -> TypeSpec | None:
        return self._flat_values_spec

    def _serialize(self) -> tuple[Any, ...]:
        parts = (self._shape, self._dtype, self._ragged_rank, self._row_splits_dtype)
        return parts if self._flat_values_spec is None else (*parts, self._flat_values_spec)

    @property
    def _component_specs(self) -> list[Any]:
        """The specs of the flat values, then of the splits from the outermost level on."""
        dims = self.static_shape.dims
        inner = Shape(None) if dims is None else Shape((None, *dims[self._ragged_rank + 1 :]))
        if self._ragged_rank == 0:
            return [TensorSpec(self._shape, self._dtype)]
        rows = None if dims is None or dims[0] is None else dims[0] + 1
        splits = [TensorSpec([rows], self._row_splits_dtype)]
        splits += [TensorSpec([None], self._row_splits_dtype)] * (self._ragged_rank - 1)
        return [self._flat_values_spec or TensorSpec(inner, self._dtype), *splits]

    def _to_components(self, value: Any) -> list[Any]:
        return value._parts() if isinstance(value, RaggedTensor) else [value]

    def _from_components(self, components: Any) -> Any:
        value, *splits = components
        for cuts in reversed(splits):
            value = RaggedTensor._make(value, cuts)
        return value

    @classmethod
    def _parts(cls, value: RaggedTensor) -> list[Any]:
        return value._parts()

    @classmethod
    def _with_parts(cls, value: RaggedTensor, parts: Sequence[Any]) -> Any:
        """Creates a RaggedTensorValue from arrays, or a RaggedTensor from tensors (or from the specs of its components)."""
        if all(isinstance(part, np.ndarray) for part in parts):
            return cls._fetched(value, parts)
        return value._with_parts(parts)

    @classmethod
    def _fed(cls, key: RaggedTensor, value: Any) -> Sequence[Any]:
        if not isinstance(value, RaggedTensorValue):
            raise TypeError(
                f"A RaggedTensor is fed a RaggedTensorValue, as tf.ragged.constant_value makes it, not {value!r:.200}."
            )
        if value.ragged_rank != key.ragged_rank:
            raise ValueError(
                f"A RaggedTensor of ragged rank {key.ragged_rank} is fed a value of ragged rank {value.ragged_rank}."
            )
        return [value.flat_values, *value.nested_row_splits]

    @classmethod
    def _fetched(cls, value: RaggedTensor, arrays: Sequence[Any]) -> RaggedTensorValue:
        result, *splits = arrays
        for cuts in reversed(splits):
            result = RaggedTensorValue(result, cuts)
        return result

    @classmethod
    def _differentiated(cls, value: RaggedTensor) -> list[Any]:
        return [value.flat_values]

    @classmethod
    def _gradient(cls, value: RaggedTensor, gradients: Sequence[Any]) -> Any:
        found = gradients[0]
        return None if found is None else value.with_flat_values(convert_to_tensor(found))

    # -- rows: ragged, or dense with a varying first dimension. Their values and row lengths are stored concatenated.

    def _batch(self, batch_size: int | None) -> RaggedTensorSpec:
        shape = TensorShape([batch_size]).concatenate(self._shape)
        return RaggedTensorSpec(shape, self._dtype, self._ragged_rank + 1, self._row_splits_dtype)

    def _unbatch(self) -> RaggedTensorSpec:
        # With one partition, rows are plain tensors.
        return RaggedTensorSpec(self._shape[1:], self._dtype, max(self._ragged_rank - 1, 0), self._row_splits_dtype)

    @classmethod
    def _row_count(cls, value: RaggedTensor) -> Any:
        return value.nrows(out_type=dtypes.int32)

    @classmethod
    def _row_reader(cls, value: RaggedTensor, hold: Hold) -> Reader:
        return lambda i: value[i]  # type: ignore[index]

    def _checked_row(self, value: Any) -> Any:
        if not isinstance(value, RaggedTensor):
            value = convert_to_tensor(value, dtype_hint=self._dtype)
        ragged_rank = value.ragged_rank if isinstance(value, RaggedTensor) else 0
        if value.dtype.base_dtype is not self._dtype or ragged_rank != self._ragged_rank:
            raise TypeError(
                f"fn_output_signature says {self} but fn returned {value.dtype.base_dtype.name} of ragged rank {ragged_rank}."
            )
        return value

    def _row_columns(self) -> list[Column]:
        dims = self._component_specs[0].static_shape.dims
        values = Column(self._dtype, None if dims is None else [None, *dims[1:]], joined=True)
        lengths = Column(self._row_splits_dtype, [None], joined=True)
        return [Column(self._row_splits_dtype, []), values, *[lengths] * self._ragged_rank]

    def _to_columns(self, row: Any) -> list[Any]:
        kind, lengths = self._row_splits_dtype, []
        if isinstance(row, RaggedTensor):
            count = row.nrows(out_type=kind)
        else:
            count = shaping.shape(row, out_type=kind)[0]
        while isinstance(row, RaggedTensor):
            lengths.append(casting.cast(row.row_lengths(), kind))
            row = row.values
        return [count, row, *lengths]

    def _from_columns(self, columns: Sequence[Any]) -> RaggedTensor:
        counts, result, *lengths = columns
        for each in (*reversed(lengths), counts):
            result = RaggedTensor._make(result, _splits(each))
        return result


def _splits(lengths: Tensor) -> Tensor:
    return joining.concat([constants.constant([0], lengths.dtype.base_dtype), scans.cumsum(lengths)], 0)
