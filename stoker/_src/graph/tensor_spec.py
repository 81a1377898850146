"""`TensorSpec`: the shape, dtype and name that a tensor must have."""

from __future__ import annotations

from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.dtypes import DType, as_dtype
from stoker._src.base.export import export
from stoker._src.base.shapes import TensorShape, as_shape
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.tensor import Tensor


@export("TensorSpec")
class TensorSpec:
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

    def is_compatible_with(self, spec_or_tensor: Any) -> bool:
        """Whether a tensor, spec or value fits."""
        other = spec_or_tensor
        if not isinstance(other, (TensorSpec, Tensor)):
            other = convert_to_tensor(other, dtype_hint=self._dtype)
        return other.dtype.base_dtype is self._dtype and self._shape.compatible(other.static_shape)

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
