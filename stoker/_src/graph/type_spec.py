"""`TypeSpec`: static type information about a value, for tensors and for composites of several tensors."""

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

    A subclass defines `value_type`, `_serialize` (a tuple of the shapes, dtypes, specs and plain values that make up the type) and,
    if its values consist of tensors, `_component_specs`, `_to_components` and `_from_components`. This is TensorFlow's
    protocol. `@describes(kind)` registers the values of `kind` as composites. The library handles them through
    the protocol, or through the hooks below where a composite needs special handling.
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

    # -- hooks for composites. They take the value, because most need no spec and creating one is slow. ---------------

    _runs: ClassVar[bool] = True  # whether sessions accept the values as fetches and as feed keys

    @classmethod
    def _of(cls, value: Any) -> TypeSpec | None:
        """Returns the spec of a value, or None if it has none."""
        return value._type_spec

    @classmethod
    def _parts(cls, value: Any) -> Sequence[Any]:
        """Returns the components of `value` as a flat sequence."""
        return nest.flatten(type_spec_from_value(value)._to_components(value))

    @classmethod
    def _with_parts(cls, value: Any, parts: Sequence[Any]) -> Any:
        """Returns a value of the same type as `value` that consists of `parts`: tensors, arrays, or other values in their place."""
        return type_spec_from_value(value)._packed(parts)

    @classmethod
    def _alike(cls, first: Any, second: Any) -> bool:
        """Returns whether two values, or a value and a spec, have the same type, ignoring shapes."""
        return alike(first, second)

    @classmethod
    def _fed(cls, key: Any, value: Any) -> Sequence[Any]:
        """Returns the values to feed for the parts of `key` when the caller feeds `value`, a composite or a structure of arrays.

        Raises:
            TypeError: `value` has neither form.
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
        """Builds the result of fetching `value` from the arrays of its parts."""
        return cls._with_parts(value, arrays)

    @classmethod
    def _differentiated(cls, value: Any) -> Sequence[Any]:
        """Returns the tensors whose gradients make up the gradient of `value`.

        Raises:
            ValueError: `value` has no gradient.
        """
        raise ValueError(f"Type {type(value).__name__} is not supported as a gradient source or gradient target.")

    @classmethod
    def _gradient(cls, value: Any, gradients: Sequence[Any]) -> Any:
        """Builds the gradient of `value` from the gradients of the tensors in `_differentiated`, some of which may be None."""
        raise NotImplementedError(f"{cls.__name__}._gradient")

    def _packed(self, parts: Sequence[Any]) -> Any:
        """Builds a value from `parts`, one for each leaf of the component specs."""
        return self._from_components(nest.pack_sequence_as(self._component_specs, list(parts)))

    def is_compatible_with(self, spec_or_value: Any) -> bool:
        """Returns whether a value has this type, or whether some value can have both this type and that of another spec."""
        other = spec_or_value
        if not isinstance(other, TypeSpec):
            try:
                other = type_spec_from_value(other)
            except (TypeError, ValueError):
                return False
        return type(self) is type(other) and _compatible(self._serialize(), other._serialize())

    def is_subtype_of(self, other: TypeSpec) -> bool:
        """Returns whether every value of this type also has the type `other`."""
        return type(self) is type(other) and _below(self._serialize(), other._serialize())

    def most_specific_common_supertype(self, others: Sequence[TypeSpec]) -> TypeSpec | None:
        """Returns the most specific type that includes this one and all `others`, or None if there is none."""
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
        """Returns the most specific common supertype of this type and `other`.

        Raises:
            ValueError: there is no common supertype.
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
    """Pairs the items of two lists, tuples or dictionaries. Returns None for other values; raises ValueError if the structures differ."""
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
    """Returns whether `holds` is true for all pairs of shapes and specs in two structures, and all other items are equal."""
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
    """Returns the most specific common generalization of both; raises ValueError if there is none."""
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
    """Tensors of one kind that store rows, one tensor per row.

    Attributes:
        dtype: the dtype of the tensors.
        shape: the static shape of each tensor.
        joined: whether the tensors differ in their first dimension and are therefore concatenated instead of stacked.
    """

    dtype: DType
    shape: Any
    joined: bool = False


class BatchableTypeSpec(TypeSpec):
    """The spec of values that consist of rows, which functions such as `map_fn` iterate over.

    A subclass adds `_batch` and `_unbatch` to the protocol. By default, a row consists of the rows of the components. Where this
    does not hold, the hooks define how a row is read, and which tensors store the rows until they are combined into a value.
    """

    __slots__ = ()

    def _batch(self, batch_size: int | None) -> TypeSpec:
        """Returns the spec of values with `batch_size` rows of this type."""
        raise NotImplementedError(f"{type(self).__name__}._batch")

    def _unbatch(self) -> TypeSpec:
        """Returns the spec of a row."""
        raise NotImplementedError(f"{type(self).__name__}._unbatch")

    @classmethod
    def _static_rows(cls, value: Any) -> Shape:
        """Returns the static shape whose first dimension is the number of rows."""
        first = cls._parts(value)[0]
        return rows_of(first)._static_rows(first)

    @classmethod
    def _row_count(cls, value: Any) -> Any:
        """Returns the number of rows, as an int32 scalar."""
        first = cls._parts(value)[0]
        return rows_of(first)._row_count(first)

    @classmethod
    def _row_reader(cls, value: Any, hold: Hold) -> Reader:
        """Returns a function from a row index to the row; `hold` creates such a function for a tensor."""
        readers = [rows_of(part)._row_reader(part, hold) for part in cls._parts(value)]
        row: Any = type_spec_from_value(value)
        row = row._unbatch()
        return lambda i: row._packed([read(i) for read in readers])

    def _checked_row(self, value: Any) -> Any:
        """Checks a function's result for a row of this type and returns it.

        Raises:
            TypeError, InvalidArgumentError: it has a different type.
        """
        if not isinstance(value, self.value_type):
            raise TypeError(f"fn_output_signature says {self} but fn returned {value}.")
        parts = nest.flatten(self._to_components(value))
        return self._packed([spec._checked_row(part) for spec, part in zip(self._row_specs(), parts)])

    def _row_columns(self) -> list[Column]:
        """Returns the columns that store a row of this type."""
        return [column for spec in self._row_specs() for column in spec._row_columns()]

    def _to_columns(self, row: Any) -> list[Any]:
        """Converts a row to the tensors of these columns."""
        parts = nest.flatten(self._to_components(row))
        return [tensor for spec, part in zip(self._row_specs(), parts) for tensor in spec._to_columns(part)]

    def _from_columns(self, columns: Sequence[Any]) -> Any:
        """Builds the value whose rows have this type from the stored columns."""
        rest = iter(columns)
        specs = self._row_specs()
        parts = [spec._from_columns([next(rest) for _ in spec._row_columns()]) for spec in specs]
        batched: Any = self._batch(None)
        return batched._packed(parts)

    def _row_specs(self) -> list[Any]:
        return nest.flatten(self._component_specs)


Reader = Callable[[Any], Any]
Hold = Callable[[Any], Reader]

# -- lookup of the spec of a value ---------------------------------------------------------------------------------

_SPECS: dict[type, type[TypeSpec]] = {}  # all types that have a spec
_COMPOSITES: dict[type, type[TypeSpec]] = {}  # types that are composites of tensors
_Spec = TypeVar("_Spec", bound=type[TypeSpec])


def describes(*kinds: type, plain: Sequence[type] = ()) -> Callable[[_Spec], _Spec]:
    """Registers a spec class as the description of composites. This is all that a new kind of composite needs.

    Args:
        *kinds: the types of the composites.
        plain: further types that have such specs but are not expanded as composites, such as `SparseTensorValue`.
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
    """Returns the spec class of a composite, or None for other values. No spec is created."""
    return _nearest(type(value), True)


def has_rows(value: Any) -> bool:
    """Returns whether a value is a composite with rows."""
    found = _nearest(type(value), True)
    return found is not None and issubclass(found, BatchableTypeSpec)


def rows_of(value: Any) -> Any:
    """Returns the spec class of a value that has rows.

    Raises:
        TypeError: the value has no rows.
    """
    found = _nearest(type(value), False)
    if found is None or not issubclass(found, BatchableTypeSpec):
        raise TypeError(f"map_fn can not consume {type(value).__name__} inputs: got {value}")
    return found


@export("type_spec_from_value")
def type_spec_from_value(value: Any) -> TypeSpec:
    """Returns the spec of a tensor, composite, variable, array or plain value.

    Raises:
        TypeError: the value has no spec.
    """
    described_by = _nearest(type(value), False)
    found = None if described_by is None else described_by._of(value)
    if found is None:
        raise TypeError(f"Could not build a TypeSpec for {value!r} of unsupported type {type(value)}.")
    return found


# -- specs in structures: `expand_composites` expands them into the specs of their parts -----------------------------


def _part_specs(spec: TypeSpec) -> Any:
    specs = spec._component_specs
    # `assert_same_structure` distinguishes lists from tuples; TensorFlow relies on that to tell IndexedSlicesSpec from the others.
    flat = isinstance(specs, (list, tuple)) and not any(map(nest.is_nested, specs))
    return specs if flat else nest.flatten(specs)


def _rebuild(spec: TypeSpec, parts: Sequence[Any]) -> Any:
    """Returns `spec` itself if the parts are specs, and the composite value if they are tensors."""
    if parts and all(isinstance(part, TypeSpec) for part in nest.flatten(parts)):
        return spec
    return spec._packed(parts)


nest.register_composite(TypeSpec, _part_specs, _rebuild, compatible=None)


def fed_parts(key: Any, names: Sequence[str], value: Any) -> Sequence[Any]:
    """Returns the parts of a value fed for `key`, in the order of `names`. The value has them as attributes or is a tuple of them.

    Raises:
        TypeError: the value has neither form.
    """
    if all(hasattr(value, name) for name in names):
        return [getattr(value, name) for name in names]
    if isinstance(value, tuple) and len(value) == len(names):
        return value
    kind = type(key).__name__
    raise TypeError(f"A {kind} is fed a {kind}Value or a tuple ({', '.join(names)}), not {value!r:.200}.")


def alike(first: Any, second: Any) -> bool:
    """Returns whether two composites, or a composite and a spec, have the same type, ignoring shapes."""
    a, b = (value if isinstance(value, TypeSpec) else type_spec_from_value(value) for value in (first, second))
    return _same_but_for_shapes(a, b)


def _same_but_for_shapes(a: Any, b: Any) -> bool:
    if isinstance(a, TensorShape):
        return True
    return type(a) is type(b) and _related(a._serialize(), b._serialize(), _same_but_for_shapes)


def kind_of(spec: TypeSpec) -> Any:
    """Returns the content of a spec without its shapes, as a hashable value."""
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
