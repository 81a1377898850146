"""`TypeSpec`: what is known of a value's type. Specs of tensors and of what is made of several of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stoker._src.base import nest
from stoker._src.base.dtypes import DType
from stoker._src.base.export import export
from stoker._src.base.shapes import TensorShape


@export("TypeSpec")
class TypeSpec:
    """The type of a value, such as the shape and dtype of a tensor.

    A subclass states `value_type`, `_serialize` (what makes up the type, a tuple of shapes, dtypes, specs and plain values) and,
    where values are made of tensors, `_component_specs`, `_to_components` and `_from_components`.
    """

    __slots__ = ()

    @property
    def value_type(self) -> Any:
        """The Python type of values of this type."""
        raise NotImplementedError(f"{type(self).__name__}.value_type")

    def _serialize(self) -> tuple[Any, ...]:
        raise NotImplementedError(f"{type(self).__name__}._serialize")

    @property
    def _component_specs(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__}._component_specs")

    def _to_components(self, value: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__}._to_components")

    def _from_components(self, components: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__}._from_components")

    @classmethod
    def _deserialize(cls, serialization: tuple[Any, ...]) -> TypeSpec:
        return cls(*serialization)

    def is_compatible_with(self, spec_or_value: Any) -> bool:
        """Whether a value (or every value of some of those of another spec) has this type."""
        other = spec_or_value
        if not isinstance(other, TypeSpec):
            try:
                other = type_spec_from_value(other)
            except (TypeError, ValueError):
                return False
        return type(self) is type(other) and _compatible(self._serialize(), other._serialize())

    def is_subtype_of(self, other: TypeSpec) -> bool:
        """Whether every value of this type is of type `other`."""
        return type(self) is type(other) and _below(self._serialize(), other._serialize())

    def most_specific_common_supertype(self, others: Sequence[TypeSpec]) -> TypeSpec | None:
        """The narrowest type that has the values of this one and of all `others`; None if there is none."""
        parts = self._serialize()
        for other in others:
            if type(other) is not type(self):
                return None
            try:
                parts = _joined(parts, other._serialize())
            except ValueError:
                return None
        return self._deserialize(parts)

    def most_specific_compatible_type(self, other: TypeSpec) -> TypeSpec:
        """As `most_specific_common_supertype` of two.

        Raises:
            ValueError: there is none.
        """
        found = self.most_specific_common_supertype([other])
        if found is None:
            raise ValueError(f"No TypeSpec is compatible with both {self} and {other}")
        return found

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._serialize() == other._serialize()  # type: ignore[attr-defined]

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((type(self), repr(self._serialize())))

    def __reduce__(self) -> Any:
        return type(self)._deserialize, (self._serialize(),)

    def __repr__(self) -> str:
        return f"{type(self).__name__}{self._serialize()!r}"


def _paired(a: Any, b: Any) -> list[tuple[Any, Any]] | None:
    """The items of two lists, tuples or dictionaries of one form; None for other things, and ValueError for other forms."""
    if isinstance(a, (list, tuple)):
        if type(a) is not type(b) or len(a) != len(b):
            raise ValueError
        return list(zip(a, b))
    if isinstance(a, dict):
        if not isinstance(b, dict) or a.keys() != b.keys():
            raise ValueError
        return [(a[key], b[key]) for key in a]
    return None


def _compatible(a: Any, b: Any) -> bool:
    return _related(a, b, lambda x, y: x.is_compatible_with(y))


def _below(a: Any, b: Any) -> bool:
    return _related(a, b, lambda x, y: x.is_subtype_of(y))


def _related(a: Any, b: Any, holds: Callable[[Any, Any], bool]) -> bool:
    """Whether `holds` is true of all shapes and specs in two structures, and the rest is equal."""
    try:
        pairs = _paired(a, b)
    except ValueError:
        return False
    if pairs is not None:
        return all(_related(x, y, holds) for x, y in pairs)
    if isinstance(a, (TensorShape, TypeSpec)):
        return type(a) is type(b) and holds(a, b)
    return a == b


def _joined(a: Any, b: Any) -> Any:
    """What both have in common; ValueError where they have nothing."""
    pairs = _paired(a, b)
    if pairs is not None:
        joined = [_joined(x, y) for x, y in pairs]
        return dict(zip(a, joined)) if isinstance(a, dict) else type(a)(joined)
    if isinstance(a, TensorShape):
        return a.most_specific_compatible_shape(b)
    if isinstance(a, TypeSpec):
        return a.most_specific_compatible_type(b)
    if a != b:
        raise ValueError
    return a


class CompositeSpec(TypeSpec):
    """The spec of values made of tensors: structures with `expand_composites` see the specs of the parts."""

    __slots__ = ()


def _rebuild(spec: CompositeSpec, parts: Sequence[Any]) -> Any:
    """The spec itself of specs; of tensors, the value that they make."""
    if all(isinstance(part, TypeSpec) for part in nest.flatten(parts)):
        return spec
    return spec._from_components(parts)


nest.register_composite(CompositeSpec, lambda spec: spec._component_specs, _rebuild, compatible=None)

# -- specs of values -----------------------------------------------------------------------------------------------

_MAKERS: list[tuple[type, Any]] = []


def register_type_spec(kind: type, make: Any) -> None:
    """Lets `type_spec_from_value` give `make(value)` for values of `kind`; later registrations come first."""
    _MAKERS.insert(0, (kind, make))


@export("type_spec_from_value")
def type_spec_from_value(value: Any) -> TypeSpec:
    """The spec of a tensor, composite, variable, array or plain value.

    Raises:
        TypeError: a value that has none.
    """
    for kind, make in _MAKERS:
        if isinstance(value, kind):
            found = make(value)
            if found is not None:
                return found
    raise TypeError(f"Could not build a TypeSpec for {value!r} of unsupported type {type(value)}.")


def alike(first: Any, second: Any) -> bool:
    """Whether two composites, or a composite and a spec, are of one type, whatever their shapes."""
    a, b = (value if isinstance(value, TypeSpec) else type_spec_from_value(value) for value in (first, second))
    return _same_but_for_shapes(a, b)


def _same_but_for_shapes(a: Any, b: Any) -> bool:
    if isinstance(a, TensorShape):
        return True
    return type(a) is type(b) and _related(a._serialize(), b._serialize(), _same_but_for_shapes)


def dtype_of(value: Any) -> DType:
    return value.dtype.base_dtype
