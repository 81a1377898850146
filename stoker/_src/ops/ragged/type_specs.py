"""Specs of ragged tensors, TensorArrays, variables, optionals and nothing; and `Optional`, a value or none."""

from __future__ import annotations

from typing import Any

from stoker._src.base import dtypes, nest
from stoker._src.base.dtypes import DType, as_dtype
from stoker._src.base.export import export
from stoker._src.base.shapes import Shape, TensorShape, as_shape
from stoker._src.graph.tensor import Tensor
from stoker._src.graph.tensor_spec import ShapedSpec, TensorSpec
from stoker._src.graph.type_spec import CompositeSpec, TypeSpec, dtype_of, register_type_spec, type_spec_from_value
from stoker._src.ops.control_flow import optionals, tensor_array
from stoker._src.ops.ragged.ragged_tensor import RaggedTensor
from stoker._src.ops.ragged.ragged_value import RaggedTensorValue
from stoker._src.ops.variables import variables


@export("RaggedTensorSpec")
class RaggedTensorSpec(ShapedSpec):
    """Describes RaggedTensors.

    Args:
        shape: with None where rows differ in length.
        dtype: of the values.
        ragged_rank: how many partitions there are; by default all dimensions but the first are ragged.
        row_splits_dtype: int32 or int64.
        flat_values_spec: the spec of the flat values, where they are no plain tensor.

    Raises:
        ValueError: a ragged rank that the shape does not have room for, or neither rank nor ragged rank.
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
        return cls(value.static_shape, value.dtype, value.ragged_rank, dtype_of(value.row_splits))

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
        """Of the flat values, then of the splits from the outermost on."""
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


@export("TensorArraySpec")
class TensorArraySpec(CompositeSpec):
    """Describes TensorArrays by their elements."""

    __slots__ = ("_dtype", "_dynamic_size", "_element_shape", "_infer_shape")

    def __init__(
        self,
        element_shape: Any = None,
        dtype: Any = dtypes.float32,
        dynamic_size: bool = False,
        infer_shape: bool = True,
    ) -> None:
        self._element_shape = TensorShape(as_shape(element_shape))
        self._dtype = as_dtype(dtype)
        self._dynamic_size, self._infer_shape = dynamic_size, infer_shape

    @staticmethod
    def from_value(value: Any) -> TensorArraySpec:
        """The spec of a TensorArray.

        Raises:
            TypeError: something else.
        """
        if not isinstance(value, tensor_array.TensorArray):
            raise TypeError(f"Expected value to be a TensorArray, but got: `{type(value)}`")
        return TensorArraySpec(value.element_shape, value.dtype, value.dynamic_size, value._infer_shape)

    @property
    def value_type(self) -> Any:
        return tensor_array.TensorArray

    def _serialize(self) -> tuple[Any, ...]:
        return self._element_shape, self._dtype, self._dynamic_size, self._infer_shape

    @property
    def _component_specs(self) -> list[TensorSpec]:
        return [TensorSpec([], dtypes.variant)]

    def _to_components(self, value: Any) -> list[Any]:
        return [value.flow]

    def _from_components(self, components: Any) -> Any:
        return tensor_array.TensorArray(
            self._dtype,
            flow=components[0],
            dynamic_size=self._dynamic_size,
            infer_shape=self._infer_shape,
            element_shape=self._element_shape,
        )


class VariableSpec(TensorSpec):
    """Describes variables. (TensorFlow keeps this one under `tf.types`' internals too.)"""

    __slots__ = ("alias_id", "trainable")

    def __init__(
        self, shape: Any, dtype: Any = dtypes.float32, trainable: bool = True, alias_id: int | None = None
    ) -> None:
        super().__init__(shape, dtype)
        self.trainable, self.alias_id = trainable, alias_id

    @property
    def value_type(self) -> Any:
        return variables.Variable

    def _serialize(self) -> tuple[Any, ...]:
        return self.shape, self._dtype, self.trainable, self.alias_id

    def is_compatible_with(self, spec_or_tensor: Any) -> bool:
        """Whether a variable or spec has this dtype, shape and `trainable`."""
        other = spec_or_tensor
        if isinstance(other, variables.Variable):
            other = _variable_spec(other)
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


def _variable_spec(variable: Any) -> VariableSpec:
    return VariableSpec(variable.shape, variable.dtype.base_dtype, bool(variable.trainable))


@export("NoneTensorSpec")
class NoneTensorSpec(TypeSpec):
    """The spec of None."""

    __slots__ = ()

    @staticmethod
    def from_value(value: Any) -> NoneTensorSpec:
        return NoneTensorSpec()

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


# -- optionals ---------------------------------------------------------------------------------------------------


@export("experimental.Optional")
class Optional:
    """A structure of tensors, or nothing, which is known when the op runs."""

    def __init__(self, variant_tensor: Tensor, element_spec: Any) -> None:
        self._variant_tensor, self._element_spec = variant_tensor, element_spec

    @staticmethod
    def empty(element_spec: Any) -> Optional:
        """An optional without a value, of the type of those that have `element_spec`."""
        return Optional(optionals.OPTIONAL_NONE(), element_spec)

    @staticmethod
    def from_value(value: Any) -> Optional:
        """An optional that has `value`, a structure of tensors."""
        spec = nest.map_structure(type_spec_from_value, value)
        parts = [
            part
            for each, leaf in zip(nest.flatten(spec), nest.flatten(value))
            for part in nest.flatten(each._to_components(leaf))
        ]
        return Optional(optionals.OPTIONAL_FROM_VALUE(parts), spec)

    @property
    def element_spec(self) -> Any:
        return self._element_spec

    def has_value(self, name: str | None = None) -> Tensor:
        """A boolean scalar: whether there is a value."""
        return optionals.OPTIONAL_HAS_VALUE(self._variant_tensor, name=name)

    def get_value(self, name: str | None = None) -> Any:
        """The value; running it raises InvalidArgumentError where there is none."""
        flat = nest.flatten(self._element_spec, expand_composites=True)
        parts = optionals.OPTIONAL_GET_VALUE(
            self._variant_tensor,
            output_types=[spec.dtype for spec in flat],
            output_shapes=[spec.static_shape for spec in flat],
            name=name,
        )
        return nest.pack_sequence_as(self._element_spec, list(parts), expand_composites=True)


@export("OptionalSpec")
class OptionalSpec(CompositeSpec):
    """Describes optionals by the spec of their value."""

    __slots__ = ("_element_spec",)

    def __init__(self, element_spec: Any) -> None:
        self._element_spec = element_spec

    @staticmethod
    def from_value(value: Optional) -> OptionalSpec:
        return OptionalSpec(value.element_spec)

    @property
    def value_type(self) -> Any:
        return Optional

    def _serialize(self) -> tuple[Any, ...]:
        return (self._element_spec,)

    @property
    def _component_specs(self) -> list[TensorSpec]:
        return [TensorSpec([], dtypes.variant)]

    def _to_components(self, value: Optional) -> list[Any]:
        return [value._variant_tensor]

    def _from_components(self, components: Any) -> Optional:
        return Optional(components[0], self._element_spec)


nest.register_composite(
    Optional,
    lambda optional: [optional._variant_tensor],
    lambda optional, parts: Optional(parts[0], optional.element_spec),
)
register_type_spec((RaggedTensor, RaggedTensorValue), RaggedTensorSpec.from_value)  # type: ignore[arg-type]
register_type_spec(tensor_array.TensorArray, TensorArraySpec.from_value)
register_type_spec(variables.Variable, _variable_spec)
register_type_spec(Optional, OptionalSpec.from_value)
register_type_spec(type(None), NoneTensorSpec.from_value)
