"""`VariableSpec`: the type of variables, which structures treat as leaves."""

from __future__ import annotations

from typing import Any

from stoker._src.base import dtypes
from stoker._src.graph.tensor_spec import TensorSpec
from stoker._src.graph.type_spec import describes
from stoker._src.ops.variables.variables import Variable


@describes(plain=(Variable,))
class VariableSpec(TensorSpec):
    """Describes variables."""

    __slots__ = ("alias_id", "trainable")

    def __init__(
        self, shape: Any, dtype: Any = dtypes.float32, trainable: bool = True, alias_id: int | None = None
    ) -> None:
        super().__init__(shape, dtype)
        self.trainable, self.alias_id = trainable, alias_id

    @classmethod
    def _of(cls, value: Any) -> VariableSpec:
        return VariableSpec(value.shape, value.dtype.base_dtype, bool(value.trainable))

    @property
    def value_type(self) -> Any:
        return Variable

    def _serialize(self) -> tuple[Any, ...]:
        return self.shape, self._dtype, self.trainable, self.alias_id

    def is_compatible_with(self, spec_or_tensor: Any) -> bool:
        """Whether a variable or spec has this dtype, shape and `trainable` flag."""
        other = spec_or_tensor
        if isinstance(other, Variable):
            other = VariableSpec._of(other)
        if not isinstance(other, VariableSpec) or other.trainable != self.trainable:
            return False
        return other.dtype is self._dtype and self._shape.compatible(other.static_shape)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VariableSpec) and self._serialize() == other._serialize()

    def __hash__(self) -> int:
        return hash((self._shape, self._dtype, self.trainable))

    def __repr__(self) -> str:
        return (
            f"VariableSpec(shape={self.shape}, dtype={self._dtype!r}, trainable={self.trainable!r}, "
            f"alias_id={self.alias_id!r})"
        )
