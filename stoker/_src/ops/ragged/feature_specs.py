"""`parse_example` and related functions: conversion between dictionaries of feature specifications and parsing ops.

Features go to the op sorted by name, sparse ones first, as TensorFlow orders them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from stoker._src.base import dtypes
from stoker._src.base.dtypes import DType, as_dtype
from stoker._src.base.export import export
from stoker._src.base.shapes import Shape, as_shape
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import constants, shaping
from stoker._src.ops.io import parsing
from stoker._src.ops.ragged import parsed_features


@export("io.VarLenFeature", v1="VarLenFeature")
class VarLenFeature(NamedTuple):
    """A feature with any number of values, parsed into a SparseTensor.

    Attributes:
        dtype: float32, int64 or string.
    """

    dtype: Any


@export("io.SparseFeature", v1="SparseFeature")
class SparseFeature(NamedTuple):
    """A sparse tensor that an Example stores as lists of indices and values.

    Attributes:
        index_key: the name of the int64 feature with the indices, or a list of names, one for each dimension.
        value_key: the name of the feature with the values.
        dtype: the dtype of the values.
        size: the size of the dimension, or a list like `index_key`.
        already_sorted: whether the indices are already sorted.
    """

    index_key: Any
    value_key: Any
    dtype: Any
    size: Any
    already_sorted: bool = False


@export("io.FixedLenFeature", v1="FixedLenFeature")
class FixedLenFeature(NamedTuple):
    """A feature with the same number of values in every Example, parsed into a tensor of shape (batch,) + shape.

    Attributes:
        shape: the shape of one Example's values.
        dtype: float32, int64 or string.
        default_value: the value of a missing feature. Without it, a missing feature is an error.
    """

    shape: Any
    dtype: Any
    default_value: Any = None


@export("io.FixedLenSequenceFeature", v1="FixedLenSequenceFeature")
class FixedLenSequenceFeature(NamedTuple):
    """A feature with any number of steps of one shape, parsed into a tensor that is padded to the longest.

    Attributes:
        shape: the shape of one step.
        dtype: float32, int64 or string.
        allow_missing: whether a missing feature counts as no steps. (`parse_example` requires True.)
        default_value: the padding value; 0 or "" by default.
    """

    shape: Any
    dtype: Any
    allow_missing: bool = False
    default_value: Any = None


class RowSplits(NamedTuple):
    key: str


class RowLengths(NamedTuple):
    key: str


class RowStarts(NamedTuple):
    key: str


class RowLimits(NamedTuple):
    key: str


class ValueRowIds(NamedTuple):
    key: str


class UniformRowLength(NamedTuple):
    length: int


class _RaggedFields(NamedTuple):
    dtype: DType
    value_key: str | None
    partitions: tuple[Any, ...]
    row_splits_dtype: DType
    validate: bool


@export("io.RaggedFeature")
class RaggedFeature(_RaggedFields):
    """A feature parsed into a RaggedTensor.

    Attributes:
        dtype: float32, int64 or string.
        value_key: the name of the feature with the values; by default the key in the dictionary.
        partitions: further levels, each a `RaggedFeature.RowSplits(key)`, `RowLengths`, `RowStarts`, `RowLimits`,
            `ValueRowIds` or `UniformRowLength(length)`.
        row_splits_dtype: int32 or int64.
        validate: whether to check the partitions at run time.
    """

    __slots__ = ()

    RowSplits = RowSplits
    RowLengths = RowLengths
    RowStarts = RowStarts
    RowLimits = RowLimits
    ValueRowIds = ValueRowIds
    UniformRowLength = UniformRowLength

    def __new__(
        cls,
        dtype: Any,
        value_key: str | None = None,
        partitions: Any = (),
        row_splits_dtype: Any = dtypes.int32,
        validate: bool = False,
    ) -> RaggedFeature:
        kind, splits = as_dtype(dtype), as_dtype(row_splits_dtype)
        if kind not in parsing.LIST_TYPES:
            raise ValueError(f"Argument `dtype` must be int64, float32, or bytes; got {kind!r}")
        if splits not in (dtypes.int32, dtypes.int64):
            raise ValueError(f"Argument `row_splits_dtype` must be int32 or int64; got {splits!r}")
        if not isinstance(partitions, (list, tuple)):
            raise TypeError("Argument `partitions` must be a list or tuple")
        known = (RowSplits, RowLengths, RowStarts, RowLimits, ValueRowIds, UniformRowLength)
        for each in partitions:
            if not isinstance(each, known):
                raise TypeError(f"Argument `partitions` must be a list of partition objects; got {each!r}")
        if not isinstance(validate, bool):
            raise TypeError("Argument `validate` must be a bool")
        return super().__new__(cls, kind, value_key, tuple(partitions), splits, validate)


# ---- from specifications to op inputs ---------------------------------------------------------------------------


class _Wanted:
    """The arguments of a parsing op: keys, types, shapes and defaults, gathered from a dictionary of features."""

    def __init__(self) -> None:
        self.sparse: dict[Any, DType] = {}
        self.dense: dict[Any, DType] = {}
        self.shapes: dict[Any, Shape] = {}
        self.defaults: dict[Any, Any] = {}
        self.ragged: dict[Any, tuple[DType, DType]] = {}
        self.may_be_missing: dict[Any, bool] = {}

    def add_sparse(self, key: Any, dtype: Any) -> None:
        dtype = as_dtype(dtype)
        found = self.sparse.setdefault(key, dtype)
        if found is not dtype:
            raise ValueError(f"Conflicting type {found!r} vs {dtype!r} for feature {key}.")

    def add_dense(self, key: Any, dtype: Any, shape: Shape, default: Any, may_be_missing: bool = False) -> None:
        self.dense[key], self.shapes[key], self.defaults[key] = as_dtype(dtype), shape, default
        self.may_be_missing[key] = may_be_missing

    def add_ragged(self, key: Any, dtype: DType, splits: DType) -> None:
        found = self.ragged.setdefault(key, (dtype, splits))
        if found != (dtype, splits):
            what, first, second = (
                ("type", found[0], dtype) if found[0] is not dtype else ("partition type", found[1], splits)
            )
            raise ValueError(f"Conflicting {what} {first!r} vs {second!r} for feature {key}.")

    def check_keys(self) -> None:
        groups = (("Dense", self.dense), ("sparse", self.sparse), ("ragged", self.ragged))
        for i, (first_name, first) in enumerate(groups):
            for second_name, second in groups[i + 1 :]:
                shared = set(first) & set(second)
                if shared:
                    raise ValueError(
                        f"{first_name} and {second_name} keys must not intersect; "
                        f"{first_name.lower()}_keys: {list(first)}, {second_name}_keys: {list(second)}, "
                        f"intersection: {shared}"
                    )

    def default_tensors(self) -> list[Tensor]:
        """A default for each dense feature: empty if it is required, a scalar padding value if the number of steps varies."""
        return [self._default(key) for key in self.dense]

    def _default(self, key: Any) -> Tensor:
        dtype, shape, default = self.dense[key], self.shapes[key], self.defaults[key]
        padded = bool(shape.rank) and shape[0] is None
        if default is None:
            if not padded:
                return constants.constant([], dtype)
            return constants.constant("" if dtype is dtypes.string else 0, dtype)
        text = key.decode(errors="replace") if isinstance(key, bytes) else str(key)
        name = _valid_name(f"{'padding' if padded else 'key'}_{text}")
        tensor = convert_to_tensor(default, dtype, name)
        return shaping.reshape(tensor, [] if padded else [size for size in shape if size is not None])


def _valid_name(name: str) -> str:
    return "".join(c if c.isascii() and (c.isalnum() or c in "_.\\-/") else "_" for c in name)


def _missing_type(key: Any, feature: Any) -> ValueError:
    return ValueError(f"Missing type for feature {key}. Received feature={feature}.")


def _fixed_shape(key: Any, feature: Any) -> Shape:
    if feature.shape is None:
        raise ValueError(f"Missing shape for feature {key}. Received feature={feature}.")
    shape = as_shape([feature.shape] if isinstance(feature.shape, int) else feature.shape)
    if shape.rank and shape[0] is None and isinstance(feature, FixedLenFeature):
        raise ValueError(
            f"First dimension of shape for feature {key} unknown. Consider using FixedLenSequenceFeature. "
            f"Received feature={feature}."
        )
    if not shape.known:
        raise ValueError(f"All dimensions of shape for feature {key} need to be known but received {feature.shape!s}.")
    return shape


def _gather(features: Mapping[Any, Any], allowed: tuple[type, ...], *, lists: bool = False) -> _Wanted:
    """Collects the arguments of the parsing op from `features`.

    Raises:
        ValueError: a feature is not of an allowed class, has no dtype or shape, or conflicts with another.
    """
    wanted = _Wanted()
    for key in sorted(features, key=_as_text):
        feature = features[key]
        if not isinstance(feature, allowed):
            raise ValueError(f"Unsupported {type(feature).__name__} {feature} for key '{_as_text(key)}'")
        if isinstance(feature, VarLenFeature):
            if not feature.dtype:
                raise ValueError(f"Missing type for feature {key}. Received feature={feature}")
            wanted.add_sparse(key, feature.dtype)
        elif isinstance(feature, SparseFeature):
            _gather_sparse(wanted, key, feature)
        elif isinstance(feature, FixedLenFeature):
            if not feature.dtype:
                raise _missing_type(key, feature)
            wanted.add_dense(key, feature.dtype, _fixed_shape(key, feature), feature.default_value)
        elif isinstance(feature, FixedLenSequenceFeature):
            _gather_steps(wanted, key, feature, lists)
        else:
            value_key = key if feature.value_key is None else feature.value_key
            wanted.add_ragged(value_key, feature.dtype, feature.row_splits_dtype)
            for partition in feature.partitions:
                if not isinstance(partition, UniformRowLength):
                    wanted.add_ragged(partition.key, dtypes.int64, feature.row_splits_dtype)
    wanted.check_keys()
    return wanted


def _as_text(key: Any) -> str:
    return key.decode(errors="surrogateescape") if isinstance(key, bytes) else str(key)


def _index_keys(feature: SparseFeature) -> list[Any]:
    return [feature.index_key] if isinstance(feature.index_key, (str, bytes)) else list(feature.index_key or [])


def _gather_sparse(wanted: _Wanted, key: Any, feature: SparseFeature) -> None:
    if not feature.index_key:
        raise ValueError(f"Missing index_key for SparseFeature {feature}.")
    if not feature.value_key:
        raise ValueError(f"Missing value_key for SparseFeature {feature}.")
    if not feature.dtype:
        raise _missing_type(key, feature)
    for index_key in sorted(_index_keys(feature)):
        wanted.add_sparse(index_key, dtypes.int64)
    wanted.add_sparse(feature.value_key, feature.dtype)


def _gather_steps(wanted: _Wanted, key: Any, feature: FixedLenSequenceFeature, lists: bool) -> None:
    if not lists and not feature.allow_missing:
        raise ValueError("Unsupported: FixedLenSequenceFeature requires allow_missing to be True.")
    if not feature.dtype:
        raise _missing_type(key, feature)
    shape = _fixed_shape(key, feature)
    if lists:
        if feature.default_value is not None:
            raise ValueError(f"Value feature_list.dense_defaults[{key}] must be None")
        wanted.add_dense(key, feature.dtype, shape, None, feature.allow_missing)
    else:
        wanted.add_dense(key, feature.dtype, Shape((None, *shape)), feature.default_value)


def _strings(group: Mapping[Any, Any]) -> Any:
    return [key.encode() if isinstance(key, str) else key for key in group]


# ---- from op outputs to a dictionary ----------------------------------------------------------------------------


def _results(wanted: _Wanted, sparse: Any, dense: Any, ragged: Mapping[Any, Any]) -> dict[Any, Any]:
    found: dict[Any, Any] = dict(zip(wanted.sparse, sparse))
    found.update(zip(wanted.dense, dense))
    found.update(ragged)
    return found


def _built(features: Mapping[Any, Any], found: Mapping[Any, Any], *, batched: bool) -> dict[Any, Any]:
    """Builds the caller's dictionary. Composed features are assembled; features parsed only for them are omitted."""
    built: dict[Any, Any] = {key: found[key] for key in found if key in features and not _composed(features[key])}
    for key in sorted(features, key=_as_text):
        feature = features[key]
        if isinstance(feature, SparseFeature):
            built[key] = _put_together(feature, found)
        elif isinstance(feature, RaggedFeature):
            built[key] = parsed_features.ragged_feature(key, feature, found, batched=batched)
    return built


def _has_batch(serialized: Tensor, *wanted: _Wanted) -> bool:
    rank = serialized.static_shape.rank
    if rank is None and any(each.ragged for each in wanted):
        raise ValueError("serialized must have statically-known rank to parse ragged features.")
    return rank != 0


def _composed(feature: Any) -> bool:
    return isinstance(feature, (SparseFeature, RaggedFeature))


def _put_together(feature: SparseFeature, found: Mapping[Any, Any]) -> Any:
    ids = [found[key] for key in _index_keys(feature)]
    values = found[feature.value_key]
    if isinstance(feature.index_key, (str, bytes)) and isinstance(feature.size, (list, tuple)):
        raise TypeError(f"vocab_size has to be a Tensor or Python int. Found {type(feature.size)}")
    return parsed_features.merged_sparse(ids, values, feature.size, already_sorted=feature.already_sorted)


# ---- Examples ---------------------------------------------------------------------------------------------------

_EXAMPLE_FEATURES = (VarLenFeature, SparseFeature, FixedLenFeature, FixedLenSequenceFeature, RaggedFeature)


def _parse(serialized: Any, features: Mapping[Any, Any], names: Any, name: str | None) -> dict[Any, Any]:
    features = dict(features)
    wanted = _gather(features, _EXAMPLE_FEATURES)
    with name_scope(name, "ParseExample", [serialized]):
        serialized = convert_to_tensor(serialized, dtypes.string, "serialized")
        batched = _has_batch(serialized, wanted)
        parsed = parsing.PARSE_EXAMPLE_V2(
            serialized,
            constants.constant([], dtypes.string, name="ParseExampleV2/names") if names is None else names,
            _strings(wanted.sparse),
            _strings(wanted.dense),
            _strings(wanted.ragged),
            wanted.default_tensors(),
            Tdense=list(wanted.dense.values()),
            num_sparse=len(wanted.sparse),
            sparse_types=list(wanted.sparse.values()),
            ragged_value_types=[pair[0] for pair in wanted.ragged.values()],
            ragged_split_types=[pair[1] for pair in wanted.ragged.values()],
            dense_shapes=list(wanted.shapes.values()),
            name=name or "ParseExampleV2",
        )
    sparse = parsed_features.sparse_tensors(parsed.sparse_indices, parsed.sparse_values, parsed.sparse_shapes)
    ragged = {
        key: (values, (splits,) if batched else ())
        for key, values, splits in zip(wanted.ragged, parsed.ragged_values, parsed.ragged_row_splits)
    }
    return _built(features, _results(wanted, sparse, parsed.dense_values, ragged), batched=batched)


def parse_example_for_serving(serialized: Any, features: Mapping[Any, Any], name: str | None = None) -> dict[Any, Any]:
    """Parses a vector of serialized Examples with the op that TensorFlow 1.15 knows, too, unless there are ragged features."""
    features = dict(features)
    wanted = _gather(features, _EXAMPLE_FEATURES)
    if wanted.ragged:
        return _parse(serialized, features, None, name)
    with name_scope(name, "ParseExample", [serialized]):
        serialized = convert_to_tensor(serialized, dtypes.string, "serialized")
        parsed = parsing.PARSE_EXAMPLE(
            serialized,
            constants.constant([], dtypes.string, name="ParseExample/names"),
            [constants.constant(key, dtypes.string) for key in wanted.sparse],
            [constants.constant(key, dtypes.string) for key in wanted.dense],
            wanted.default_tensors(),
            sparse_types=list(wanted.sparse.values()),
            Tdense=list(wanted.dense.values()),
            dense_shapes=list(wanted.shapes.values()),
            name=name or "ParseExample",
        )
    sparse = parsed_features.sparse_tensors(parsed.sparse_indices, parsed.sparse_values, parsed.sparse_shapes)
    return _built(features, _results(wanted, sparse, parsed.dense_values, {}), batched=True)


@export(v2="io.parse_example")
def parse_example(serialized: Any, features: Any, example_names: Any = None, name: str | None = None) -> dict[Any, Any]:
    """Parses serialized Examples into a dictionary of tensors.

    Args:
        serialized: a vector of strings, or a scalar for results without the batch dimension.
        features: a dict from names to FixedLenFeature, VarLenFeature, SparseFeature, FixedLenSequenceFeature or RaggedFeature.
        example_names: the names of the Examples for error messages, one for each.
        name: a prefix for the names of the ops.

    Returns:
        A dict from the names to a Tensor, SparseTensor or RaggedTensor.

    Raises:
        ValueError: there are no features, or one is incomplete or conflicts with another.
    """
    if not features:
        raise ValueError(f"Argument `features` cannot be None or falsy. Got {features}")
    return _parse(serialized, features, example_names, name)


@export(v1=("parse_example", "io.parse_example"))
def parse_example_v1(
    serialized: Any, features: Any, name: str | None = None, example_names: Any = None
) -> dict[Any, Any]:
    """Parses serialized Examples. See the 2.x form, which has another order of the last arguments."""
    return parse_example(serialized, features, example_names, name)


@export(v2="io.parse_single_example")
def parse_single_example(
    serialized: Any, features: Any, example_names: Any = None, name: str | None = None
) -> dict[Any, Any]:
    """Parses one serialized Example, a scalar, into tensors without a batch dimension.

    Raises:
        ValueError: there are no features, one is incomplete, or `serialized` is not a scalar.
    """
    if not features:
        raise ValueError(f"Invalid argument: features cannot be {'None' if features is None else 'empty'}.")
    with name_scope(name, "ParseSingleExample", [serialized]):
        serialized = _as_scalar(convert_to_tensor(serialized, dtypes.string, "serialized"), "serialized")
        return _parse(serialized, features, example_names, name)


@export(v1=("parse_single_example", "io.parse_single_example"))
def parse_single_example_v1(
    serialized: Any, features: Any, name: str | None = None, example_names: Any = None
) -> dict[Any, Any]:
    """Parses one serialized Example. See the 2.x form, which has another order of the last arguments."""
    return parse_single_example(serialized, features, example_names, name)


def _as_scalar(tensor: Tensor, what: str) -> Tensor:
    """A scalar tensor. If the rank is not static, it is checked at run time."""
    rank = tensor.static_shape.rank
    if rank is None:
        return shaping.reshape(tensor, [], name=f"{what}Dependencies")
    if rank:
        raise ValueError(f"Input {what} must be a scalar")
    return tensor


# ---- SequenceExamples -------------------------------------------------------------------------------------------

_CONTEXT_FEATURES = (VarLenFeature, FixedLenFeature, RaggedFeature)
_LIST_FEATURES = (VarLenFeature, FixedLenSequenceFeature, RaggedFeature)


def _parse_sequences(
    serialized: Any, context_features: Any, sequence_features: Any, names: Any, name: str | None
) -> tuple[dict[Any, Any], dict[Any, Any], dict[Any, Any]]:
    context = _gather(context_features or {}, _CONTEXT_FEATURES)
    lists = _gather(sequence_features or {}, _LIST_FEATURES, lists=True)
    with name_scope(name, "ParseSequenceExample", [serialized]):
        serialized = convert_to_tensor(serialized, dtypes.string, "serialized")
        batched = _has_batch(serialized, context, lists)
        parsed = parsing.PARSE_SEQUENCE_EXAMPLE_V2(
            serialized,
            constants.constant([], dtypes.string, name="ParseSequenceExampleV2/debug_name") if names is None else names,
            _strings(context.sparse),
            _strings(context.dense),
            _strings(context.ragged),
            _strings(lists.sparse),
            _strings(lists.dense),
            _strings(lists.ragged),
            [lists.may_be_missing[key] for key in lists.dense] or constants.constant([], dtypes.bool_),
            context.default_tensors(),
            Ncontext_sparse=len(context.sparse),
            Tcontext_dense=list(context.dense.values()),
            context_sparse_types=list(context.sparse.values()),
            context_ragged_value_types=[pair[0] for pair in context.ragged.values()],
            context_ragged_split_types=[pair[1] for pair in context.ragged.values()],
            context_dense_shapes=list(context.shapes.values()),
            Nfeature_list_sparse=len(lists.sparse),
            Nfeature_list_dense=len(lists.dense),
            feature_list_dense_types=list(lists.dense.values()),
            feature_list_sparse_types=list(lists.sparse.values()),
            feature_list_ragged_value_types=[pair[0] for pair in lists.ragged.values()],
            feature_list_ragged_split_types=[pair[1] for pair in lists.ragged.values()],
            feature_list_dense_shapes=list(lists.shapes.values()),
            name=name or "ParseSequenceExampleV2",
        )
    found = _results(
        context,
        parsed_features.sparse_tensors(
            parsed.context_sparse_indices, parsed.context_sparse_values, parsed.context_sparse_shapes
        ),
        parsed.context_dense_values,
        {
            key: (values, (splits,) if batched else ())
            for key, values, splits in zip(
                context.ragged, parsed.context_ragged_values, parsed.context_ragged_row_splits
            )
        },
    )
    steps = _results(
        lists,
        parsed_features.sparse_tensors(
            parsed.feature_list_sparse_indices, parsed.feature_list_sparse_values, parsed.feature_list_sparse_shapes
        ),
        parsed.feature_list_dense_values,
        {
            key: (values, (outer, inner) if batched else (inner,))
            for key, values, outer, inner in zip(
                lists.ragged,
                parsed.feature_list_ragged_values,
                parsed.feature_list_ragged_outer_splits,
                parsed.feature_list_ragged_inner_splits,
            )
        },
    )
    lengths = dict(zip(lists.dense, parsed.feature_list_dense_lengths))
    return (
        _built(context_features or {}, found, batched=batched),
        _built(sequence_features or {}, steps, batched=batched),
        lengths,
    )


@export("io.parse_sequence_example")
def parse_sequence_example(
    serialized: Any,
    context_features: Any = None,
    sequence_features: Any = None,
    example_names: Any = None,
    name: str | None = None,
) -> tuple[dict[Any, Any], dict[Any, Any], dict[Any, Any]]:
    """Parses serialized SequenceExamples.

    Args:
        serialized: a vector of strings.
        context_features: a dict from names to FixedLenFeature, VarLenFeature or RaggedFeature.
        sequence_features: a dict from names to FixedLenSequenceFeature, VarLenFeature or RaggedFeature.
        example_names: the names of the examples for error messages.
        name: a prefix for the names of the ops.

    Returns:
        (context, sequences, lengths): three dictionaries. Dense sequences are padded to the longest with 0 or "", and
        `lengths` has the number of steps of each row.

    Raises:
        ValueError: there are no features, or one is incomplete.
    """
    if not (context_features or sequence_features):
        raise ValueError(
            "Both `context_features` and `sequence_features` argument are None, but at least one should have values."
        )
    with name_scope(name, "ParseSequenceExample", [serialized]):
        return _parse_sequences(serialized, context_features, sequence_features, example_names, name)


@export("io.parse_single_sequence_example", v1="parse_single_sequence_example")
def parse_single_sequence_example(
    serialized: Any,
    context_features: Any = None,
    sequence_features: Any = None,
    example_name: Any = None,
    name: str | None = None,
) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """Parses one serialized SequenceExample, a scalar.

    Returns:
        (context, sequences): dense sequences are tensors of (steps,) + shape, sparse ones have indices [time, index].

    Raises:
        ValueError: there are no features, one is incomplete, or `serialized` is not a scalar.
    """
    if not (context_features or sequence_features):
        raise ValueError("Both context_features and sequence_features are None, but at least one should have values.")
    with name_scope(name, "ParseSingleSequenceExample", [serialized]):
        with name_scope(name, "ParseSingleExample", [serialized]):
            tensor = _as_scalar(convert_to_tensor(serialized, dtypes.string, "serialized"), "serialized")
        return _parse_sequences(tensor, context_features, sequence_features, example_name, name)[:2]
