"""`TensorSpec`: the shape, dtype and name that a tensor must have; the specs of sparse tensors and of slices."""

from __future__ import annotations

from typing import Any

import numpy as np

from stoker._src.base import dtypes
from stoker._src.base.dtypes import DType, as_dtype
from stoker._src.base.export import export
from stoker._src.base.shapes import Shape, TensorShape, as_shape
from stoker._src.formats import protos
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.indexed_slices import IndexedSlices
from stoker._src.graph.sparse_tensor import SparseTensor, SparseTensorValue
from stoker._src.graph.tensor import Tensor
from stoker._src.graph.type_spec import CompositeSpec, TypeSpec, dtype_of, register_type_spec


@export("TensorSpec")
class TensorSpec(TypeSpec):
    """Describes tensors: every tensor of a compatible shape and the same dtype fits."""

    __slots__ = ("_dtype", "_name", "_shape")

    def __init__(self, shape: Any, dtype: Any = dtypes.float32, name: str | None = None) -> None:
        self._shape = as_shape(shape)
        self._dtype = as_dtype(dtype).base_dtype
        self._name = name

    @classmethod
    def from_tensor(cls, tensor: Any, name: str | None = None) -> TensorSpec:
        """The spec of a tensor (in graph mode with its name)."""
        if name is None and isinstance(tensor, Tensor) and not getattr(tensor, "is_eager", False):
            name = tensor.op.name
        return cls(tensor.static_shape, tensor.dtype, name)

    @classmethod
    def from_spec(cls, spec: Any, name: str | None = None) -> TensorSpec:
        return cls(spec.shape, spec.dtype, name or spec.name)

    @property
    def value_type(self) -> type[Tensor]:
        return Tensor

    @property
    def shape(self) -> TensorShape:
        return TensorShape(self._shape)

    @property
    def static_shape(self) -> Any:
        return self._shape

    @property
    def dtype(self) -> DType:
        return self._dtype

    @property
    def name(self) -> str | None:
        return self._name

    def _serialize(self) -> tuple[Any, ...]:
        return self.shape, self._dtype, self._name

    @property
    def _component_specs(self) -> TensorSpec:
        return self

    def _to_components(self, value: Any) -> Tensor:
        return convert_to_tensor(value, self._dtype)

    def _from_components(self, components: Any) -> Any:
        return components

    def is_compatible_with(self, spec_or_tensor: Any) -> bool:
        """Whether a tensor or spec has this dtype and a shape that may be this one."""
        other = spec_or_tensor
        if not isinstance(other, (TensorSpec, Tensor)):
            return False
        return other.dtype.base_dtype is self._dtype and self._shape.compatible(other.static_shape)

    def experimental_as_proto(self) -> Any:
        """The TensorSpecProto of this spec."""
        return protos.TensorSpecProto(name=self._name, shape=self.shape.as_proto(), dtype=self._dtype.as_datatype_enum)

    @classmethod
    def experimental_type_proto(cls) -> Any:
        return protos.TensorSpecProto

    @classmethod
    def experimental_from_proto(cls, proto: Any) -> TensorSpec:
        return cls(TensorShape(proto.shape), as_dtype(proto.dtype), proto.name or None)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorSpec) and (self._shape, self._dtype, self._name) == (
            other._shape,
            other._dtype,
            other._name,
        )

    def __hash__(self) -> int:
        return hash((self._shape, self._dtype))

    def __repr__(self) -> str:
        return f"TensorSpec(shape={self.shape}, dtype={self._dtype!r}, name={self._name!r})"


class ShapedSpec(CompositeSpec):
    """A spec of composites that have one shape and one dtype."""

    __slots__ = ("_dtype", "_shape")

    @property
    def shape(self) -> TensorShape:
        return self._shape

    @property
    def static_shape(self) -> Shape:
        return as_shape(self._shape)

    @property
    def dtype(self) -> DType:
        return self._dtype


@export("SparseTensorSpec")
class SparseTensorSpec(ShapedSpec):
    """Describes SparseTensors by their dense shape and the dtype of their values."""

    __slots__ = ()

    def __init__(self, shape: Any = None, dtype: Any = dtypes.float32) -> None:
        self._shape = TensorShape(as_shape(shape))
        self._dtype = as_dtype(dtype).base_dtype

    @classmethod
    def from_value(cls, value: Any) -> SparseTensorSpec:
        """The spec of a SparseTensor or SparseTensorValue.

        Raises:
            TypeError: something else.
        """
        if isinstance(value, SparseTensor):
            return cls(value.shape, value.dtype)
        if isinstance(value, SparseTensorValue):
            return cls([int(size) for size in np.asarray(value.dense_shape)], dtype_of(convert_to_tensor(value.values)))
        raise TypeError(f"Expected SparseTensor or SparseTensorValue. Received: {value!r}")

    @property
    def value_type(self) -> type[SparseTensor]:
        return SparseTensor

    def _serialize(self) -> tuple[Any, ...]:
        return self._shape, self._dtype

    @property
    def _component_specs(self) -> list[TensorSpec]:
        rank = self.static_shape.rank
        return [
            TensorSpec([None, rank], dtypes.int64),
            TensorSpec([None], self._dtype),
            TensorSpec([rank], dtypes.int64),
        ]

    def _to_components(self, value: Any) -> list[Any]:
        sparse = SparseTensor.from_value(value)
        return [sparse.indices, sparse.values, sparse.dense_shape]

    def _from_components(self, components: Any) -> SparseTensor:
        return SparseTensor(*components)


@export("IndexedSlicesSpec")
class IndexedSlicesSpec(CompositeSpec):
    """Describes IndexedSlices: the dense shape, the dtypes of the parts, and how many indices there are."""

    __slots__ = ("_dense_shape_dtype", "_indices_dtype", "_indices_shape", "_shape", "_values_dtype")

    def __init__(
        self,
        shape: Any = None,
        dtype: Any = dtypes.float32,
        indices_dtype: Any = dtypes.int64,
        dense_shape_dtype: Any = None,
        indices_shape: Any = None,
    ) -> None:
        self._shape = TensorShape(as_shape(shape))
        self._values_dtype = as_dtype(dtype).base_dtype
        self._indices_dtype = as_dtype(indices_dtype).base_dtype
        self._dense_shape_dtype = None if dense_shape_dtype is None else as_dtype(dense_shape_dtype).base_dtype
        self._indices_shape = TensorShape(as_shape(indices_shape).of_rank(1))

    @property
    def value_type(self) -> type[IndexedSlices]:
        return IndexedSlices

    def _serialize(self) -> tuple[Any, ...]:
        return self._shape, self._values_dtype, self._indices_dtype, self._dense_shape_dtype, self._indices_shape

    @property
    def _component_specs(self) -> tuple[TensorSpec, ...]:
        shape, count = as_shape(self._shape), as_shape(self._indices_shape)
        rows = Shape(None) if shape.dims is None else Shape((count[0], *shape.dims[1:]))
        specs = [TensorSpec(rows, self._values_dtype), TensorSpec(count, self._indices_dtype)]
        if self._dense_shape_dtype is not None:
            specs.append(TensorSpec([shape.rank], self._dense_shape_dtype))
        return tuple(specs)  # not a list, by which TensorFlow tells it from other specs

    def _to_components(self, value: IndexedSlices) -> list[Any]:
        return [value.values, value.indices, *([] if value.dense_shape is None else [value.dense_shape])]

    def _from_components(self, components: Any) -> IndexedSlices:
        return IndexedSlices(*components)


def _slices_spec(value: IndexedSlices) -> IndexedSlicesSpec:
    rest = value.values.static_shape.dims
    if value.dense_shape is not None:
        shape: Any = value.shape
    else:
        shape = None if rest is None else (None, *rest[1:])
    dense = None if value.dense_shape is None else dtype_of(value.dense_shape)
    return IndexedSlicesSpec(shape, value.dtype, dtype_of(value.indices), dense, value.indices.static_shape)


def _plain_spec(value: Any) -> TensorSpec | None:
    """The spec of the tensor that a plain value becomes; None where it becomes none."""
    try:
        tensor = convert_to_tensor(value)
    except (TypeError, ValueError):
        return None
    return TensorSpec(tensor.static_shape, tensor.dtype)


register_type_spec((str, bytes, bool, int, float, complex, list, tuple, np.ndarray, np.generic), _plain_spec)  # type: ignore[arg-type]
register_type_spec(Tensor, lambda tensor: TensorSpec(tensor.static_shape, tensor.dtype))
register_type_spec((SparseTensor, SparseTensorValue), SparseTensorSpec.from_value)  # type: ignore[arg-type]
register_type_spec(IndexedSlices, _slices_spec)
