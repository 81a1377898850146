"""`TensorSpec`: the shape, dtype and name that a tensor must have; `ShapedSpec`, from which specs of composites derive; `NoneTensorSpec`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stoker._src.base import dtypes, nest
from stoker._src.base.dtypes import DType, as_dtype
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.shapes import Shape, TensorShape, as_shape
from stoker._src.formats import protos
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.late_binding import ops
from stoker._src.graph.tensor import Tensor
from stoker._src.graph.type_spec import BatchableTypeSpec, Column, Hold, Reader, TypeSpec, describes

_PLAIN = (str, bytes, bool, int, float, complex, list, tuple, np.ndarray, np.generic)


@export("TensorSpec")
@describes(plain=(Tensor, *_PLAIN))
class TensorSpec(BatchableTypeSpec):
    """Describes tensors: it matches every tensor with a compatible shape and the same dtype."""

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

    @classmethod
    def _of(cls, value: Any) -> TensorSpec | None:
        """Of a plain value the spec of the tensor that it becomes."""
        try:
            tensor = value if isinstance(value, Tensor) else convert_to_tensor(value)
        except (TypeError, ValueError):
            return None
        return TensorSpec(tensor.static_shape, tensor.dtype)

    # -- rows

    def _batch(self, batch_size: int | None) -> TensorSpec:
        dims = self._shape.dims
        return TensorSpec(None if dims is None else (batch_size, *dims), self._dtype, self._name)

    def _unbatch(self) -> TensorSpec:
        dims = self._shape.dims
        return TensorSpec(None if dims is None else dims[1:], self._dtype, self._name)

    @classmethod
    def _static_rows(cls, value: Any) -> Shape:
        return value.static_shape

    @classmethod
    def _row_count(cls, value: Any) -> Any:
        return ops.shape(value)[0]

    @classmethod
    def _row_reader(cls, value: Any, hold: Hold) -> Reader:
        return hold(value)

    def _checked_row(self, value: Any) -> Tensor:
        value = convert_to_tensor(value, dtype_hint=self._dtype)
        if value.dtype.base_dtype is not self._dtype:
            raise InvalidArgumentError(
                None,
                None,
                f"fn_output_signature says {self._dtype.name} but fn returned {value.dtype.base_dtype.name}: pass "
                "`fn_output_signature` (or `dtype`) when fn changes the dtype.",
            )
        return value

    def _row_columns(self) -> list[Column]:
        return [Column(self._dtype, None if self._shape.dims is None else self._shape)]

    def _to_columns(self, row: Tensor) -> list[Any]:
        return [row]

    def _from_columns(self, columns: Sequence[Any]) -> Any:
        return columns[0]

    def is_compatible_with(self, spec_or_tensor: Any) -> bool:
        """Whether a tensor or spec has this dtype and a compatible shape."""
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


nest.register_leaf(TensorSpec)


class ShapedSpec(BatchableTypeSpec):
    """A spec of composites that have one shape and one dtype, and whose rows are of the same kind."""

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

    @classmethod
    def _static_rows(cls, value: Any) -> Shape:
        return as_shape(value.shape)


@export("NoneTensorSpec")
@describes(plain=(type(None),))
class NoneTensorSpec(TypeSpec):
    """The spec of None."""

    __slots__ = ()

    @staticmethod
    def from_value(value: Any) -> NoneTensorSpec:
        return NoneTensorSpec()

    @classmethod
    def _of(cls, value: Any) -> NoneTensorSpec:
        return cls.from_value(value)

    @property
    def value_type(self) -> Any:
        return type(None)

    def _serialize(self) -> tuple[Any, ...]:
        return ()

    @property
    def _component_specs(self) -> list[Any]:
        return []

    def _to_components(self, value: None) -> list[Any]:
        return []

    def _from_components(self, components: Any) -> None:
        return None

    def most_specific_compatible_shape(self, other: NoneTensorSpec) -> NoneTensorSpec:
        """Nothing but None has this type.

        Raises:
            ValueError: another spec.
        """
        if type(other) is not NoneTensorSpec:
            raise ValueError(f"No `TypeSpec` is compatible with both {self} and {other}")
        return self
