"""Nested structures: `tf.nest`, and the helpers of 1.x's `nest` module that programs import.

A structure is a leaf, or a container of structures. Containers are lists, tuples, namedtuples, mappings, mapping
views, every other `collections.abc.Sequence` except str and bytes, attrs classes, and types with TensorFlow 2's
`__tf_flatten__`/`__tf_unflatten__`. Everything else, including NumPy arrays and sets, is a leaf. Mappings are visited in
sorted key order, regardless of insertion order.

How a type is flattened and rebuilt is determined once per type and cached (`_Layout`), because `Session.run` flattens its
fetches on every call. Composites (SparseTensor, IndexedSlices, RaggedTensor) are leaves unless `expand_composites=True`. This
module does not depend on tensors: `graph/type_spec.py` registers the composite types.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable, Iterator, Mapping, MappingView, MutableMapping, Sequence
from typing import Any, NamedTuple

_CACHE_LIMIT = 4096  # types; programs that create classes in a loop must not grow the tables forever


class _Layout(NamedTuple):
    """How one container type is flattened and rebuilt."""

    children: Callable[[Any], Iterable[Any]]
    items: Callable[[Any], Iterable[tuple[tuple[Any, ...], Any]]]  # (path steps, child), in the same order
    rebuild: Callable[[Any, list[Any]], Any]  # (instance of the type, one value per child)


class Composite(NamedTuple):
    """How a composite tensor type is flattened and rebuilt."""

    components: Callable[[Any], Sequence[Any]]
    rebuild: Callable[[Any, Sequence[Any]], Any]
    compatible: Callable[[Any, Any], bool] | None


_COMPOSITES: dict[type, Composite | None] = {}


def register_composite(
    cls: type,
    components: Callable[[Any], Sequence[Any]],
    rebuild: Callable[[Any, Sequence[Any]], Any],
    compatible: Callable[[Any, Any], bool] | None = lambda first, second: True,
) -> None:
    """Lets `expand_composites=True` expand instances of `cls` and its subclasses.

    Args:
        cls: the composite type.
        components: returns the components of an instance, in a fixed order. A component may be a structure.
        rebuild: takes an instance and the new components, and returns an instance with those components.
        compatible: whether an instance matches another instance or a spec in `assert_same_structure`
            (TensorFlow compares their dtypes). None for specs, which are compared by their components.
    """
    _COMPOSITES[cls] = Composite(components, rebuild, compatible)
    _PLAIN.clear()
    _EXPANDED.clear()


def register_leaf(cls: type) -> None:
    """Makes `cls` and its subclasses leaves even if a base class is a composite."""
    _COMPOSITES[cls] = None
    _PLAIN.clear()
    _EXPANDED.clear()


def _composite_of(cls: type) -> Composite | None:
    for base in cls.__mro__:
        if base in _COMPOSITES:
            return _COMPOSITES[base]
    return None


# ---- the layout of each kind of container ----


def _itself(value: Any) -> Any:
    return value


def _from_list(instance: Any, values: list[Any]) -> Any:
    return type(instance)(values)


def _sorted_keys(mapping: Mapping[Any, Any]) -> list[Any]:
    try:
        return sorted(mapping)
    except TypeError as error:
        kinds = sorted({type(key).__name__ for key in mapping})
        raise TypeError(
            f"nest only supports dicts with sortable keys. The keys are of types {kinds}: {error}"
        ) from error


def _mapping_children(mapping: Mapping[Any, Any]) -> list[Any]:
    return [mapping[key] for key in _sorted_keys(mapping)]


def _numbered(children: Iterable[Any]) -> Iterable[tuple[tuple[int], Any]]:
    return (((index,), child) for index, child in enumerate(children))


def _mapping_items(mapping: Mapping[Any, Any]) -> list[tuple[tuple[Any], Any]]:
    return [((key,), mapping[key]) for key in _sorted_keys(mapping)]


def _rebuild_dict(instance: Any, values: list[Any]) -> Any:
    by_key = dict(zip(_sorted_keys(instance), values))
    # The rebuilt mapping has the key order of the original, not sorted order.
    return {key: by_key[key] for key in instance}


def _rebuild_mapping(instance: Any, values: list[Any]) -> Any:
    ordered = _rebuild_dict(instance, values)
    cls = type(instance)
    if issubclass(cls, collections.defaultdict):
        return cls(instance.default_factory, ordered)
    if issubclass(cls, MutableMapping):
        result = cls()
        for key, value in ordered.items():
            result[key] = value
        return result
    try:
        return cls((key, value) for key, value in ordered.items())
    except TypeError as error:
        raise TypeError(
            f"Error creating an object of type {cls} like {instance}. It must accept one positional argument, an "
            f"iterable of key-value pairs. Cause: {error}"
        ) from error


def _namedtuple_items(instance: Any) -> Iterable[tuple[tuple[str], Any]]:
    return (((field,), child) for field, child in zip(instance._fields, instance))


def _attrs_children(instance: Any) -> list[Any]:
    return [getattr(instance, field.name) for field in type(instance).__attrs_attrs__]


def _attrs_items(instance: Any) -> list[tuple[tuple[str], Any]]:
    return [((field.name,), getattr(instance, field.name)) for field in type(instance).__attrs_attrs__]


def _from_arguments(instance: Any, values: list[Any]) -> Any:
    return type(instance)(*values)


def _protocol_children(instance: Any) -> list[Any]:
    return list(instance.__tf_flatten__()[1])


def _protocol_rebuild(instance: Any, values: list[Any]) -> Any:
    return type(instance).__tf_unflatten__(instance.__tf_flatten__()[0], tuple(values))


def _as_list(instance: Any, values: list[Any]) -> list[Any]:
    return values


_LIST = _Layout(_itself, _numbered, lambda instance, values: values)
_TUPLE = _Layout(_itself, _numbered, lambda instance, values: tuple(values))
_SEQUENCE = _Layout(_itself, _numbered, _from_list)
_LISTED = _Layout(
    _itself, _numbered, _as_list
)  # ranges and views cannot hold other values, so they are rebuilt as lists
_NAMEDTUPLE = _Layout(_itself, _namedtuple_items, _from_arguments)
_DICT = _Layout(_mapping_children, _mapping_items, _rebuild_dict)
_MAPPING = _Layout(_mapping_children, _mapping_items, _rebuild_mapping)
_ATTRS = _Layout(_attrs_children, _attrs_items, _from_arguments)
_PROTOCOL = _Layout(_protocol_children, lambda instance: _numbered(_protocol_children(instance)), _protocol_rebuild)


def _is_namedtuple_type(cls: type) -> bool:
    fields = getattr(cls, "_fields", None)
    return issubclass(cls, tuple) and isinstance(fields, tuple) and all(isinstance(field, str) for field in fields)


def _classify(cls: type) -> _Layout | None:
    if cls is list:
        return _LIST
    if cls is tuple:
        return _TUPLE
    if cls is dict:
        return _DICT
    if issubclass(cls, (str, bytes)):
        return None
    if hasattr(cls, "__tf_flatten__") and hasattr(cls, "__tf_unflatten__"):
        return _PROTOCOL
    if _is_namedtuple_type(cls):
        return _NAMEDTUPLE
    if issubclass(cls, Mapping):
        return _MAPPING
    if hasattr(cls, "__attrs_attrs__"):
        return _ATTRS
    if issubclass(cls, (range, MappingView)):
        return _LISTED
    if issubclass(cls, Sequence):
        return _SEQUENCE
    return None


class _Layouts(dict[type, "_Layout | None"]):
    """A cache from type to layout, None for leaves."""

    def __init__(self, expand_composites: bool) -> None:
        super().__init__()
        self._expand_composites = expand_composites

    def __missing__(self, cls: type) -> _Layout | None:
        layout = _classify(cls)
        composite = _composite_of(cls) if self._expand_composites else None
        if composite is not None:
            components, rebuild = composite.components, composite.rebuild
            name = cls.__name__  # TensorFlow puts it into the path before the component's number
            layout = _Layout(
                components,
                lambda value: (((name, index), part) for index, part in enumerate(components(value))),
                rebuild,
            )
        if len(self) >= _CACHE_LIMIT:
            self.clear()
        self[cls] = layout
        return layout


_PLAIN = _Layouts(expand_composites=False)
_EXPANDED = _Layouts(expand_composites=True)


def _layouts(expand_composites: bool) -> _Layouts:
    return _EXPANDED if expand_composites else _PLAIN


# ---- questions about one value ----


def is_nested(seq: Any) -> bool:
    """Whether `seq` is a container: a sequence (not a string), a mapping, or another container type of this module."""
    return _PLAIN[type(seq)] is not None


is_sequence = is_nested


def is_nested_or_composite(seq: Any) -> bool:
    """Like `is_nested`, but also true for composite tensors."""
    return _EXPANDED[type(seq)] is not None


is_sequence_or_composite = is_nested_or_composite


def is_mapping(obj: Any) -> bool:
    """Whether `obj` is a mapping."""
    return isinstance(obj, Mapping)


def is_attrs(obj: Any) -> bool:
    """Whether `obj` is an instance of an attrs class."""
    return hasattr(type(obj), "__attrs_attrs__")


def is_namedtuple(instance: Any, strict: bool = False) -> bool:
    """Whether `instance` is a namedtuple. With `strict`, its type must come from `namedtuple` directly."""
    cls = type(instance)
    return _is_namedtuple_type(cls) and (not strict or cls.__base__ is tuple)


def same_namedtuples(nest1: Any, nest2: Any) -> bool:
    """Whether two namedtuples have types of the same name with the same fields."""
    return type(nest1).__name__ == type(nest2).__name__ and nest1._fields == nest2._fields


# ---- flatten and pack ----


def _collect(children: Iterable[Any], layouts: _Layouts, leaves: list[Any]) -> None:
    for child in children:
        layout = layouts[type(child)]
        if layout is None:
            leaves.append(child)
        else:
            _collect(layout.children(child), layouts, leaves)


def flatten(structure: Any, expand_composites: bool = False) -> list[Any]:
    """The leaves of `structure`, depth first, mappings in sorted key order.

    Args:
        structure: any object. A leaf gives a list with itself.
        expand_composites: whether to expand SparseTensor, IndexedSlices and RaggedTensor as well.

    Raises:
        TypeError: a mapping's keys cannot be sorted.
    """
    layouts = _EXPANDED if expand_composites else _PLAIN
    layout = layouts[type(structure)]
    if layout is None:
        return [structure]
    leaves: list[Any] = []
    _collect(layout.children(structure), layouts, leaves)
    return leaves


def _pack(structure: Any, layouts: _Layouts, take: Callable[[], Any]) -> Any:
    layout = layouts[type(structure)]
    if layout is None:
        return take()
    return layout.rebuild(structure, [_pack(child, layouts, take) for child in layout.children(structure)])


def pack_sequence_as(structure: Any, flat_sequence: Any, expand_composites: bool = False) -> Any:
    """Packs the elements of `flat_sequence` into a structure like `structure`: the inverse of `flatten`.

    Raises:
        TypeError: `flat_sequence` is not a sequence, or a mapping's keys cannot be sorted.
        ValueError: the number of leaves differs from the number of elements.
    """
    layouts = _layouts(expand_composites)
    if _EXPANDED[type(flat_sequence)] is None or isinstance(flat_sequence, Mapping):
        raise TypeError(
            f"Attempted to pack value:\n  {flat_sequence}\ninto a structure, but found incompatible type "
            f"`{type(flat_sequence)}` instead: flat_sequence must be a sequence."
        )
    values = list(flat_sequence)
    if layouts[type(structure)] is None:
        if len(values) != 1:
            raise ValueError(
                f"The target structure is of type `{type(structure)}`\n  {_shown(structure)}\nHowever the input is a "
                f"sequence ({type(flat_sequence)}) of length {len(values)}.\n  {_shown(flat_sequence)}\nA leaf takes "
                "exactly one element."
            )
        return values[0]
    remaining = iter(values)
    try:
        packed = _pack(structure, layouts, remaining.__next__)
    except StopIteration:
        packed = _NOTHING
    if packed is _NOTHING or next(remaining, _NOTHING) is not _NOTHING:
        raise ValueError(
            f"Could not pack sequence. Structure had {len(flatten(structure, expand_composites))} atoms, but "
            f"flat_sequence had {len(values)} items.  Structure: {_shown(structure)}, "
            f"flat_sequence: {_shown(flat_sequence)}."
        )
    return packed


_NOTHING = object()


def _shown(value: Any, limit: int = 1000) -> str:
    text = str(value)
    return text if len(text) <= limit else text[:limit] + "..."


# ---- comparison ----


class _Mismatch(NamedTuple):
    error: type[Exception]
    reason: str


def _described(value: Any) -> str:
    return f"type={type(value).__name__} str={_shown(value)}"


def _types_differ(first: Any, second: Any) -> _Mismatch | None:
    """Whether two containers are of incompatible types. Called if they are not both lists or both tuples."""
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        if first.keys() != second.keys():
            return _Mismatch(
                ValueError,
                "The two dictionaries don't have the same set of keys. First structure has keys "
                f"{_shown(list(first))}, while second structure has keys {_shown(list(second))}",
            )
        return None
    if type(first) is type(second) or (isinstance(first, list) and isinstance(second, list)):
        return None
    if is_namedtuple(first) and is_namedtuple(second) and same_namedtuples(first, second):
        return None
    return _Mismatch(
        TypeError,
        f"The two structures don't have the same sequence type. First structure {_described(first)} has type "
        f"{type(first).__name__}, while second structure {_described(second)} has type {type(second).__name__}",
    )


def _compare(first: Any, second: Any, layouts: _Layouts, check_types: bool) -> _Mismatch | None:
    layout1, layout2 = layouts[type(first)], layouts[type(second)]
    if layout1 is None and layout2 is None:
        return None
    if layout1 is None or layout2 is None:
        container, leaf = (second, first) if layout1 is None else (first, second)
        return _Mismatch(
            ValueError,
            f'Substructure "{_described(container)}" is a sequence, while substructure "{_described(leaf)}" is not',
        )
    composite1, composite2 = (
        (_composite_of(type(first)), _composite_of(type(second))) if layouts is _EXPANDED else (None, None)
    )
    if composite1 is not None and composite2 is not None:
        compatible = composite1.compatible or composite2.compatible
        if compatible is None:
            return _compare(composite1.components(first), composite2.components(second), layouts, check_types)
        both_values = composite1.compatible is not None and composite2.compatible is not None
        if (both_values and composite1 is not composite2) or not compatible(first, second):
            return _incompatible(first, second)
    elif check_types and not (layout1 is layout2 and (layout1 is _LIST or layout1 is _TUPLE)):
        mismatch = _types_differ(first, second)
        if mismatch is not None:
            return mismatch
    elif composite1 is not None or composite2 is not None:
        return _incompatible(first, second)
    children1, children2 = iter(layout1.children(first)), iter(layout2.children(second))
    for child1 in children1:
        child2 = next(children2, _NOTHING)
        if child2 is _NOTHING:
            return _count_mismatch(first, second)
        if layouts[type(child1)] is not None or layouts[type(child2)] is not None:
            mismatch = _compare(child1, child2, layouts, check_types)
            if mismatch is not None:
                return mismatch
    if next(children2, _NOTHING) is not _NOTHING:
        return _count_mismatch(first, second)
    return None


def _incompatible(first: Any, second: Any) -> _Mismatch:
    return _Mismatch(
        ValueError, f"Incompatible CompositeTensor TypeSpecs: {_described(first)} vs. {_described(second)}"
    )


def _count_mismatch(first: Any, second: Any) -> _Mismatch:
    return _Mismatch(
        ValueError,
        "The two structures don't have the same number of elements. First structure: "
        f"{_described(first)}. Second structure: {_described(second)}",
    )


def assert_same_structure(nest1: Any, nest2: Any, check_types: bool = True, expand_composites: bool = False) -> None:
    """Checks that two structures have the same nesting.

    Namedtuples match if name and fields match. List subclasses match each other. Mappings match any mapping with the
    same keys. With `check_types=False`, only nesting and counts are compared, and mappings by sorted order. Expanded
    composites must be compatible in either case.

    Raises:
        ValueError: nesting, counts or keys differ.
        TypeError: container types differ, or a mapping's keys cannot be sorted.
    """
    mismatch = _compare(nest1, nest2, _layouts(expand_composites), check_types)
    if mismatch is None:
        return
    for structure in (nest1, nest2):
        flatten(structure, expand_composites)  # unsortable keys are reported first

    def outline(structure: Any) -> str:
        try:
            return _shown(map_structure(lambda leaf: _DOT, structure, expand_composites=expand_composites))
        except Exception:  # a type that refuses other leaves must not hide the mismatch
            return f"({type(structure).__name__})"

    raise mismatch.error(
        "The two structures don't have the same nested structure.\n\n"
        f"First structure: {_described(nest1)}\n\nSecond structure: {_described(nest2)}\n\n"
        f"More specifically: {mismatch.reason}\n"
        f"Entire first structure:\n{outline(nest1)}\nEntire second structure:\n{outline(nest2)}"
    )


class _Dot:
    def __repr__(self) -> str:
        return "."


_DOT = _Dot()


# ---- map ----


def _options(kwargs: dict[str, Any]) -> tuple[bool, bool]:
    check_types = kwargs.pop("check_types", True)
    expand_composites = kwargs.pop("expand_composites", False)
    if kwargs:
        raise ValueError(
            "Only valid keyword arguments are `check_types` and `expand_composites`, not: "
            f"`{'`, `'.join(sorted(kwargs))}`"
        )
    return check_types, expand_composites


def _map_one(func: Callable[[Any], Any], structure: Any, layouts: _Layouts) -> Any:
    layout = layouts[type(structure)]
    if layout is None:
        return func(structure)
    if layout is _LIST:
        return [func(x) if layouts[type(x)] is None else _map_one(func, x, layouts) for x in structure]
    return layout.rebuild(
        structure,
        [func(x) if layouts[type(x)] is None else _map_one(func, x, layouts) for x in layout.children(structure)],
    )


def map_structure(func: Callable[..., Any], *structure: Any, **kwargs: Any) -> Any:
    """Applies `func` to corresponding leaves of the structures.

    Args:
        func: a function with one argument per structure.
        *structure: structures of the same nesting.
        **kwargs: `check_types` (True) and `expand_composites` (False), as in `assert_same_structure`.

    Returns:
        The results, in the layout of the first structure.

    Raises:
        TypeError: `func` is not callable, or container types differ.
        ValueError: no structure is given, a keyword is unknown, or nesting differs.
    """
    if not callable(func):
        raise TypeError(f"func must be callable, got: {func}")
    if not structure:
        raise ValueError("Must provide at least one structure")
    check_types, expand_composites = _options(kwargs) if kwargs else (True, False)
    first = structure[0]
    if len(structure) == 1:
        return _map_one(func, first, _layouts(expand_composites))
    for other in structure[1:]:
        assert_same_structure(first, other, check_types=check_types, expand_composites=expand_composites)
    leaves = [flatten(each, expand_composites) for each in structure]
    return _pack(first, _layouts(expand_composites), map(func, *leaves).__next__)


# ---- paths ----


def _walk(structure: Any, layouts: _Layouts, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    layout = layouts[type(structure)]
    if layout is None:
        yield path, structure
        return
    for steps, child in layout.items(structure):
        yield from _walk(child, layouts, path + steps)


def yield_flat_paths(nest: Any, expand_composites: bool = False) -> Iterator[tuple[Any, ...]]:
    """The path (keys, field names and positions) of every leaf, in the order of `flatten`."""
    for path, _ in _walk(nest, _layouts(expand_composites), ()):
        yield path


def flatten_with_tuple_paths(structure: Any, expand_composites: bool = False) -> list[tuple[tuple[Any, ...], Any]]:
    """[(path, leaf), ...] in the order of `flatten`; the path of a lone leaf is ()."""
    return list(_walk(structure, _layouts(expand_composites), ()))


def _joined(path: tuple[Any, ...], separator: str = "/") -> str:
    return separator.join(map(str, path))


def flatten_with_joined_string_paths(
    structure: Any, separator: str = "/", expand_composites: bool = False
) -> list[tuple[str, Any]]:
    """[("a/0/x", leaf), ...] in the order of `flatten`."""
    pairs = _walk(structure, _layouts(expand_composites), ())
    return [(_joined(path, separator), leaf) for path, leaf in pairs]


def map_structure_with_tuple_paths(func: Callable[..., Any], *structure: Any, **kwargs: Any) -> Any:
    """Like `map_structure`, with each leaf's path as the first argument of `func`."""
    if not structure:
        raise ValueError("Must provide at least one structure")
    return map_structure_with_tuple_paths_up_to(structure[0], func, *structure, **kwargs)


def map_structure_with_paths(func: Callable[..., Any], *structure: Any, **kwargs: Any) -> Any:
    """Like `map_structure_with_tuple_paths`, with the path joined by slashes."""
    return map_structure_with_tuple_paths(lambda path, *leaves: func(_joined(path), *leaves), *structure, **kwargs)


# ---- up to a shallower structure ----


def _aligned(
    shallow: Any, tree: Any, layouts: _Layouts, check_types: bool, check_subtrees_length: bool
) -> list[tuple[tuple[Any, ...], Any, Any]]:
    """[(path steps, child of shallow, child of tree), ...] of two containers. Raises if they do not match."""
    layout, tree_layout = layouts[type(shallow)], layouts[type(tree)]
    assert layout is not None
    if tree_layout is None:
        raise TypeError(
            f"If shallow structure is a sequence, input must also be a sequence. Input has type: {type(tree)}."
        )
    if check_types and not isinstance(tree, type(shallow)):
        both_mappings = isinstance(shallow, Mapping) and isinstance(tree, Mapping)
        alike = is_namedtuple(shallow) and is_namedtuple(tree) and same_namedtuples(shallow, tree)
        if not both_mappings and not alike:
            raise TypeError(
                "The two structures don't have the same sequence type. Input structure has type "
                f"{type(tree)}, while shallow structure has type {type(shallow)}."
            )
    shallow_items, tree_children = list(layout.items(shallow)), list(tree_layout.children(tree))
    if check_subtrees_length and len(shallow_items) != len(tree_children):
        raise ValueError(
            "The two structures don't have the same sequence length. Input structure has length "
            f"{len(tree_children)}, while shallow structure has length {len(shallow_items)}."
        )
    if isinstance(shallow, Mapping):
        by_steps = dict(tree_layout.items(tree))
        missing = [steps[-1] for steps, _ in shallow_items if steps not in by_steps]
        if missing:
            raise ValueError(
                "The shallow_tree's keys are not a subset of the input_tree's keys. The shallow_tree has the "
                f"following keys that are not in the input_tree: {missing}."
            )
        return [(steps, child, by_steps[steps]) for steps, child in shallow_items]
    if len(shallow_items) > len(tree_children):
        raise ValueError(
            f"The shallow_tree has {len(shallow_items)} elements where the input_tree has only {len(tree_children)}."
        )
    return [(steps, child, value) for (steps, child), value in zip(shallow_items, tree_children)]


def _walk_up_to(
    shallow: Any,
    tree: Any,
    layouts: _Layouts,
    check_types: bool,
    check_subtrees_length: bool,
    path: tuple[Any, ...] = (),
) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if layouts[type(shallow)] is None:
        yield path, tree
        return
    for steps, child, value in _aligned(shallow, tree, layouts, check_types, check_subtrees_length):
        yield from _walk_up_to(child, value, layouts, check_types, check_subtrees_length, path + steps)


def assert_shallow_structure(
    shallow_tree: Any,
    input_tree: Any,
    check_types: bool = True,
    expand_composites: bool = False,
    check_subtrees_length: bool = True,
) -> None:
    """Checks that `input_tree` has the nesting of `shallow_tree`, up to the depth of the latter.

    Args:
        shallow_tree: the structure to follow. Its leaves match any subtree.
        input_tree: the structure to check.
        check_types: whether to compare container types as well.
        expand_composites: whether to expand composite tensors.
        check_subtrees_length: whether to require equal counts. If False, `input_tree` may have more children.

    Raises:
        TypeError: a leaf is found instead of a container or, with `check_types`, another container type.
        ValueError: counts or keys differ.
    """
    for _ in _walk_up_to(shallow_tree, input_tree, _layouts(expand_composites), check_types, check_subtrees_length):
        pass


def flatten_with_tuple_paths_up_to(
    shallow_tree: Any,
    input_tree: Any,
    check_types: bool = True,
    expand_composites: bool = False,
    check_subtrees_length: bool = True,
) -> list[tuple[tuple[Any, ...], Any]]:
    """[(path, subtree), ...] of the subtrees of `input_tree` at the leaves of `shallow_tree`."""
    layouts = _layouts(expand_composites)
    return list(_walk_up_to(shallow_tree, input_tree, layouts, check_types, check_subtrees_length))


def flatten_up_to(
    shallow_tree: Any,
    input_tree: Any,
    check_types: bool = True,
    expand_composites: bool = False,
    check_subtrees_length: bool = True,
) -> list[Any]:
    """The subtrees of `input_tree` at the leaves of `shallow_tree`. Raises like `assert_shallow_structure`."""
    layouts = _layouts(expand_composites)
    return [tree for _, tree in _walk_up_to(shallow_tree, input_tree, layouts, check_types, check_subtrees_length)]


def map_structure_with_tuple_paths_up_to(
    shallow_tree: Any, func: Callable[..., Any], *inputs: Any, **kwargs: Any
) -> Any:
    """Applies `func(path, *subtrees)` at every leaf of `shallow_tree`.

    Keywords are those of `assert_shallow_structure`. Others are passed to `func`.
    """
    if not inputs:
        raise ValueError("Cannot map over no sequences")
    check_types = kwargs.pop("check_types", True)
    expand_composites = kwargs.pop("expand_composites", False)
    check_subtrees_length = kwargs.pop("check_subtrees_length", True)
    layouts = _layouts(expand_composites)
    flat = [list(_walk_up_to(shallow_tree, tree, layouts, check_types, check_subtrees_length)) for tree in inputs]
    results = [func(column[0][0], *(tree for _, tree in column), **kwargs) for column in zip(*flat)]
    return _pack(shallow_tree, layouts, iter(results).__next__)


def map_structure_up_to(shallow_tree: Any, func: Callable[..., Any], *inputs: Any, **kwargs: Any) -> Any:
    """Applies `func` to the subtrees of the inputs at every leaf of `shallow_tree`. The result has the layout of `shallow_tree`."""
    return map_structure_with_tuple_paths_up_to(
        shallow_tree, lambda path, *trees, **options: func(*trees, **options), *inputs, **kwargs
    )


def get_traverse_shallow_structure(
    traverse_fn: Callable[[Any], Any], structure: Any, expand_composites: bool = False
) -> Any:
    """A shallow structure of bools for the `_up_to` functions, as deep as `traverse_fn` says.

    Args:
        traverse_fn: called with each substructure from the top. It returns a bool (whether to descend) or, for a container, a
            structure of bools of depth one (one for each child).
        structure: the structure to traverse.
        expand_composites: whether to descend into composite tensors.

    Raises:
        TypeError: `traverse_fn` returns something else.
    """
    layouts = _layouts(expand_composites)
    layout = layouts[type(structure)]
    answer = traverse_fn(structure)
    if layout is None:
        if not isinstance(answer, bool):
            raise TypeError(f"traverse_fn returned structure: {answer} for non-structure: {structure}")
        return answer
    if layouts[type(answer)] is None:
        if not isinstance(answer, bool):
            raise TypeError(f"traverse_fn returned a non-bool scalar: {answer} for input: {structure}")
        if not answer:
            return False
        below = [
            get_traverse_shallow_structure(traverse_fn, child, expand_composites)
            for child in layout.children(structure)
        ]
        return layout.rebuild(structure, below)
    below = []
    for _, wanted, child in _aligned(answer, structure, layouts, True, True):
        if not isinstance(wanted, bool):
            raise TypeError(
                f"traverse_fn didn't return a depth=1 structure of bools.  saw: {answer}  for structure: {structure}"
            )
        below.append(wanted and get_traverse_shallow_structure(traverse_fn, child, expand_composites))
    answer_layout = layouts[type(answer)]
    assert answer_layout is not None
    return answer_layout.rebuild(answer, below)


# ---- others ----


def flatten_dict_items(dictionary: Mapping[Any, Any]) -> dict[Any, Any]:
    """Flattens a dict with structured keys: {("a", "b"): (1, 2)} becomes {"a": 1, "b": 2}.

    Raises:
        TypeError: `dictionary` is not a mapping.
        ValueError: a key and its value have different nesting, or a key is repeated.
    """
    if not isinstance(dictionary, Mapping):
        raise TypeError(f"input must be a dictionary, got {type(dictionary).__name__}")
    opened: dict[Any, Any] = {}
    for key, value in dictionary.items():
        if not is_nested(key):
            keys, values = [key], [value]
        else:
            keys, values = flatten(key), flatten(value)
        if len(keys) != len(values):
            raise ValueError(
                f"Could not flatten dictionary. Key had {len(keys)} elements, but value had {len(values)} elements. "
                f"Key: {keys}, value: {values}."
            )
        for each, its_value in zip(keys, values):
            if each in opened:
                raise ValueError(f"Cannot flatten dict because this key is not unique: {each}")
            opened[each] = its_value
    return opened


def list_to_tuple(structure: Any) -> Any:
    """`structure` with every list replaced by a tuple."""
    layout = _PLAIN[type(structure)]
    if layout is None:
        return structure
    children = [list_to_tuple(child) for child in layout.children(structure)]
    return tuple(children) if isinstance(structure, list) else layout.rebuild(structure, children)
