"""`TypeSpec`: what is known of a value's type. Specs of tensors and of what is made of several of them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from typing import Any, ClassVar, NamedTuple, TypeVar

from stoker._src.base import nest
from stoker._src.base.dtypes import DType
from stoker._src.base.export import export
from stoker._src.base.shapes import Shape, TensorShape


@export("TypeSpec")
class TypeSpec:
    """The type of a value, such as the shape and dtype of a tensor.

    A subclass states `value_type`, `_serialize` (what makes up the type, a tuple of shapes, dtypes, specs and plain values) and,
    where values are made of tensors, `_component_specs`, `_to_components` and `_from_components`. That is TensorFlow's
    protocol. `@describes(kind)` makes the values of `kind` composites; what the library does with them then follows from
    the protocol, or from one of the hooks below where a composite has a form of its own.
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

    # -- hooks for composites. They take the value: most need no spec of it, and making one costs time. -------------

    _runs: ClassVar[bool] = True  # whether a session takes the values as fetches and as keys of feeds

    @classmethod
    def _of(cls, value: Any) -> TypeSpec | None:
        """The spec of a value; None for a value that has none."""
        return value._type_spec

    @classmethod
    def _parts(cls, value: Any) -> Sequence[Any]:
        """The components of `value`, one after the other."""
        return nest.flatten(type_spec_from_value(value)._to_components(value))

    @classmethod
    def _with_parts(cls, value: Any, parts: Sequence[Any]) -> Any:
        """A value of the same type as `value` that is made of `parts`: tensors, arrays, or what else stands for them."""
        return type_spec_from_value(value)._packed(parts)

    @classmethod
    def _alike(cls, first: Any, second: Any) -> bool:
        """Whether two values, or a value and a spec, are of one type, whatever their shapes."""
        return alike(first, second)

    @classmethod
    def _fed(cls, key: Any, value: Any) -> Sequence[Any]:
        """What is fed for each of the parts of `key` when a caller feeds `value`: a value of arrays, or a structure of them.

        Raises:
            TypeError: `value` is neither.
        """
        spec = type_spec_from_value(key)
        given = spec._to_components(value) if isinstance(value, spec.value_type) else value
        form = spec._component_specs
        if isinstance(form, (list, tuple)) and isinstance(given, (list, tuple)):
            fits = len(form) == len(given)
        else:
            fits = isinstance(form, dict) and isinstance(given, dict) and form.keys() == given.keys()
        if not fits:
            raise TypeError(f"A {type(key).__name__} is fed one, or its components as in {form}, not {value!r:.200}.")
        return nest.flatten_up_to(form, given, check_types=False)

    @classmethod
    def _fetched(cls, value: Any, arrays: Sequence[Any]) -> Any:
        """What a caller gets who fetches `value`, from the arrays of its parts."""
        return cls._with_parts(value, arrays)

    @classmethod
    def _differentiated(cls, value: Any) -> Sequence[Any]:
        """The tensors of `value` whose gradients are that of `value`.

        Raises:
            ValueError: it has no gradient.
        """
        raise ValueError(f"Type {type(value).__name__} is not supported as a gradient source or gradient target.")

    @classmethod
    def _gradient(cls, value: Any, gradients: Sequence[Any]) -> Any:
        """The gradient of `value` from the gradients of what `_differentiated` gave, some of which may be None."""
        raise NotImplementedError(f"{cls.__name__}._gradient")

    def _packed(self, parts: Sequence[Any]) -> Any:
        """The value that `parts`, one for each leaf of the component specs, make."""
        return self._from_components(nest.pack_sequence_as(self._component_specs, list(parts)))

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


class Column(NamedTuple):
    """Tensors of one kind that rows are kept in: one for each row.

    Attributes:
        dtype: of the tensors.
        shape: what is known of each of them.
        joined: they differ in their first size, and are put end to end instead of on top of each other.
    """

    dtype: DType
    shape: Any
    joined: bool = False


class BatchableTypeSpec(TypeSpec):
    """The spec of values that have rows, over which `map_fn` and its like go.

    A subclass adds `_batch` and `_unbatch` to the protocol. By default a row has the rows of the components; where that
    is not so, the hooks say how a row is read, and in which tensors rows are kept until they make a value again.
    """

    __slots__ = ()

    def _batch(self, batch_size: int | None) -> TypeSpec:
        """The spec of values with `batch_size` rows of this type."""
        raise NotImplementedError(f"{type(self).__name__}._batch")

    def _unbatch(self) -> TypeSpec:
        """The spec of a row."""
        raise NotImplementedError(f"{type(self).__name__}._unbatch")

    @classmethod
    def _static_rows(cls, value: Any) -> Shape:
        """The static shape whose first size is the number of rows."""
        first = cls._parts(value)[0]
        return rows_of(first)._static_rows(first)

    @classmethod
    def _row_count(cls, value: Any) -> Any:
        """How many rows there are, as an int32 scalar."""
        first = cls._parts(value)[0]
        return rows_of(first)._row_count(first)

    @classmethod
    def _row_reader(cls, value: Any, hold: Hold) -> Reader:
        """A function from a row's number to the row; `hold` makes one from a tensor."""
        readers = [rows_of(part)._row_reader(part, hold) for part in cls._parts(value)]
        row: Any = type_spec_from_value(value)
        row = row._unbatch()
        return lambda i: row._packed([read(i) for read in readers])

    def _checked_row(self, value: Any) -> Any:
        """What a function returned for a row of this type.

        Raises:
            TypeError, InvalidArgumentError: it is of another type.
        """
        if not isinstance(value, self.value_type):
            raise TypeError(f"fn_output_signature says {self} but fn returned {value}.")
        parts = nest.flatten(self._to_components(value))
        return self._packed([spec._checked_row(part) for spec, part in zip(self._row_specs(), parts)])

    def _row_columns(self) -> list[Column]:
        """In which tensors a row of this type is kept."""
        return [column for spec in self._row_specs() for column in spec._row_columns()]

    def _to_columns(self, row: Any) -> list[Any]:
        """A row as these tensors."""
        parts = nest.flatten(self._to_components(row))
        return [tensor for spec, part in zip(self._row_specs(), parts) for tensor in spec._to_columns(part)]

    def _from_columns(self, columns: Sequence[Any]) -> Any:
        """The value whose rows are of this type, from what was kept of all of them."""
        rest = iter(columns)
        specs = self._row_specs()
        parts = [spec._from_columns([next(rest) for _ in spec._row_columns()]) for spec in specs]
        batched: Any = self._batch(None)
        return batched._packed(parts)

    def _row_specs(self) -> list[Any]:
        return nest.flatten(self._component_specs)


Reader = Callable[[Any], Any]
Hold = Callable[[Any], Reader]

# -- which spec describes a value ----------------------------------------------------------------------------------

_SPECS: dict[type, type[TypeSpec]] = {}  # of everything that has a spec
_COMPOSITES: dict[type, type[TypeSpec]] = {}  # of what is made of tensors
_Spec = TypeVar("_Spec", bound=type[TypeSpec])


def describes(*kinds: type, plain: Sequence[type] = ()) -> Callable[[_Spec], _Spec]:
    """Makes a spec class the description of composites: nothing else is needed to add one.

    Args:
        *kinds: the types of the composites.
        plain: further types that have such specs but are not opened as composites, as `SparseTensorValue`.
    """

    def register(spec: _Spec) -> _Spec:
        for kind in kinds:
            _COMPOSITES[kind] = spec
            nest.register_composite(kind, spec._parts, spec._with_parts, spec._alike)
        _SPECS.update(dict.fromkeys((*kinds, *plain), spec))
        _nearest.cache_clear()
        return spec

    return register


@functools.lru_cache(maxsize=4096)
def _nearest(kind: type, composite: bool) -> type[TypeSpec] | None:
    table = _COMPOSITES if composite else _SPECS
    return next((table[base] for base in kind.__mro__ if base in table), None)


def composite_spec(value: Any) -> Any:
    """The spec class that describes a composite; None for everything else. No spec is made."""
    return _nearest(type(value), True)


def has_rows(value: Any) -> bool:
    """Whether a value is a composite with rows."""
    found = _nearest(type(value), True)
    return found is not None and issubclass(found, BatchableTypeSpec)


def rows_of(value: Any) -> Any:
    """The spec class of a value that has rows.

    Raises:
        TypeError: it has none.
    """
    found = _nearest(type(value), False)
    if found is None or not issubclass(found, BatchableTypeSpec):
        raise TypeError(f"map_fn can not consume {type(value).__name__} inputs: got {value}")
    return found


@export("type_spec_from_value")
def type_spec_from_value(value: Any) -> TypeSpec:
    """The spec of a tensor, composite, variable, array or plain value.

    Raises:
        TypeError: a value that has none.
    """
    described_by = _nearest(type(value), False)
    found = None if described_by is None else described_by._of(value)
    if found is None:
        raise TypeError(f"Could not build a TypeSpec for {value!r} of unsupported type {type(value)}.")
    return found


# -- specs in structures: with `expand_composites` they open into the specs of the parts -----------------------------


def _part_specs(spec: TypeSpec) -> Any:
    specs = spec._component_specs
    # A list and a tuple differ in `assert_same_structure`, by which TensorFlow tells IndexedSlicesSpec from the others.
    flat = isinstance(specs, (list, tuple)) and not any(map(nest.is_nested, specs))
    return specs if flat else nest.flatten(specs)


def _rebuild(spec: TypeSpec, parts: Sequence[Any]) -> Any:
    """The spec itself of specs; of tensors, the value that they make."""
    if parts and all(isinstance(part, TypeSpec) for part in nest.flatten(parts)):
        return spec
    return spec._packed(parts)


nest.register_composite(TypeSpec, _part_specs, _rebuild, compatible=None)


def fed_parts(key: Any, names: Sequence[str], value: Any) -> Sequence[Any]:
    """The parts of a value fed for `key`, in the order of `names`: attributes of a value of arrays, or a tuple.

    Raises:
        TypeError: it is neither.
    """
    if all(hasattr(value, name) for name in names):
        return [getattr(value, name) for name in names]
    if isinstance(value, tuple) and len(value) == len(names):
        return value
    kind = type(key).__name__
    raise TypeError(f"A {kind} is fed a {kind}Value or a tuple ({', '.join(names)}), not {value!r:.200}.")


def alike(first: Any, second: Any) -> bool:
    """Whether two composites, or a composite and a spec, are of one type, whatever their shapes."""
    a, b = (value if isinstance(value, TypeSpec) else type_spec_from_value(value) for value in (first, second))
    return _same_but_for_shapes(a, b)


def _same_but_for_shapes(a: Any, b: Any) -> bool:
    if isinstance(a, TensorShape):
        return True
    return type(a) is type(b) and _related(a._serialize(), b._serialize(), _same_but_for_shapes)


def kind_of(spec: TypeSpec) -> Any:
    """All that a spec says but shapes, as a hashable value."""
    return type(spec), *map(_kind, spec._serialize())


def _kind(part: Any) -> Any:
    if isinstance(part, TypeSpec):
        return kind_of(part)
    if isinstance(part, TensorShape):
        return None
    if isinstance(part, (list, tuple)):
        return type(part), *map(_kind, part)
    if isinstance(part, dict):
        return dict, *((key, _kind(part[key])) for key in part)
    return part if isinstance(part, Hashable) else repr(part)
