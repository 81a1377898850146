"""`IndexedSlices`: rows of a larger tensor, as gradients of lookups come."""

from __future__ import annotations

from typing import Any, NamedTuple

from stoker._src.base import nest
from stoker._src.base.dtypes import DType
from stoker._src.base.export import export
from stoker._src.base.shapes import TensorShape
from stoker._src.graph import type_spec
from stoker._src.graph.static_values import public_constant_value_as_shape
from stoker._src.graph.tensor import Operation, Tensor


@export("IndexedSlices")
class IndexedSlices:
    """`values[i]` belongs at row `indices[i]` of a tensor of shape `dense_shape` (None when nobody needs it).

    A row may be named more than once: its values then add up.
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
    """What a session gives for IndexedSlices: arrays."""

    values: Any
    indices: Any
    dense_shape: Any


def _parts(slices: IndexedSlices) -> list[Any]:
    shape = slices.dense_shape
    return [slices.values, slices.indices, *([] if shape is None else [shape])]


nest.register_composite(IndexedSlices, _parts, lambda slices, parts: IndexedSlices(*parts), type_spec.alike)
