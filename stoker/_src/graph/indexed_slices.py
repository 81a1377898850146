"""`IndexedSlices`: rows of a larger tensor, as gradients of lookups come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from stoker._src.base import dtypes
from stoker._src.base.dtypes import DType, as_dtype
from stoker._src.base.export import export, export_constant
from stoker._src.base.shapes import Shape, TensorShape, as_shape
from stoker._src.graph.static_values import public_constant_value_as_shape
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.graph.tensor_spec import TensorSpec
from stoker._src.graph.type_spec import TypeSpec, describes, fed_parts


@export("IndexedSlices")
class IndexedSlices:
    """`values[i]` is the row `indices[i]` of a tensor of shape `dense_shape` (None if unknown).

    If a row occurs more than once, its values are summed.
    """

    is_tensor_like = True

    def __init__(self, values: Tensor, indices: Tensor, dense_shape: Tensor | None = None) -> None:
        self._values = values
        self._indices = indices
        self._dense_shape = dense_shape

    @property
    def values(self) -> Tensor:
        return self._values

    @property
    def indices(self) -> Tensor:
        return self._indices

    @property
    def dense_shape(self) -> Tensor | None:
        return self._dense_shape

    @property
    def shape(self) -> TensorShape:
        if self._dense_shape is None:
            return TensorShape(None)
        return public_constant_value_as_shape(self._dense_shape)

    @property
    def name(self) -> str:
        return self._values.name

    @property
    def device(self) -> str:
        return self._values.device

    @property
    def op(self) -> Operation:
        return self._values.op

    @property
    def dtype(self) -> DType:
        return self._values.dtype

    @property
    def graph(self) -> Any:
        return self._values.graph

    def consumers(self) -> list[Operation]:
        return self._values.consumers()

    def __neg__(self) -> IndexedSlices:
        return IndexedSlices(-self._values, self._indices, self._dense_shape)

    def __str__(self) -> str:
        shape = "" if self._dense_shape is None else f", dense_shape={self._dense_shape!s}"
        return f"IndexedSlices(indices={self._indices!s}, values={self._values!s}{shape})"


class IndexedSlicesValue(NamedTuple):
    """The value of IndexedSlices from a session, as arrays."""

    values: Any
    indices: Any
    dense_shape: Any


export_constant(__name__, "IndexedSlicesValue", v1="IndexedSlicesValue")


@export("IndexedSlicesSpec")
@describes(IndexedSlices)
class IndexedSlicesSpec(TypeSpec):
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

    @classmethod
    def _of(cls, value: IndexedSlices) -> IndexedSlicesSpec:
        sizes, rest = value.dense_shape, value.values.static_shape.dims
        if sizes is not None:
            shape: Any = value.shape
        else:
            shape = None if rest is None else (None, *rest[1:])
        dense = None if sizes is None else sizes.dtype.base_dtype
        return cls(shape, value.dtype, value.indices.dtype.base_dtype, dense, value.indices.static_shape)

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
        return self._parts(value)

    def _from_components(self, components: Any) -> IndexedSlices:
        return IndexedSlices(*components)

    @classmethod
    def _parts(cls, value: IndexedSlices) -> list[Any]:
        return [value.values, value.indices, *([] if value.dense_shape is None else [value.dense_shape])]

    @classmethod
    def _with_parts(cls, value: IndexedSlices, parts: Sequence[Any]) -> IndexedSlices:
        return IndexedSlices(*parts)

    @classmethod
    def _fed(cls, key: IndexedSlices, value: Any) -> Sequence[Any]:
        return fed_parts(key, IndexedSlicesValue._fields[: 2 if key.dense_shape is None else 3], value)

    @classmethod
    def _fetched(cls, value: IndexedSlices, arrays: Sequence[Any]) -> IndexedSlicesValue:
        return IndexedSlicesValue(*arrays, *([None] if value.dense_shape is None else []))

    @classmethod
    def _differentiated(cls, value: IndexedSlices) -> list[Any]:
        return [value.values]

    @classmethod
    def _gradient(cls, value: IndexedSlices, gradients: Sequence[Any]) -> Any:
        return gradients[0]  # of the values: nobody asks where they belong
