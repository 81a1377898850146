"""Parses batches of serialized Examples and SequenceExamples into NumPy arrays.

These are the cores of TensorFlow's ParseExampleV2 and ParseSequenceExampleV2: pure functions from bytes and a list of
features to arrays. They treat unusual messages as TensorFlow does, with the same error messages. The accepted grammar
is documented in native/features.h, examples.c and sequences.c. Any input gives a result or InvalidArgumentError,
in time and memory proportional to its size (for padded columns, to the number of rows times the longest row).

    columns = parse_examples(batch, [FixedLength("x", float32, (64,)), Sparse("tags", string)])
    columns[0]          # float32 [batch, 64]
    columns[1].indices  # int64 [n, 2]

Dtypes are float32, int64 and string, the three kinds of list that a Feature can hold. Strings are object arrays of
bytes. The arrays are newly allocated, writable and C-contiguous.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from stoker._src.base.dtypes import DType, float32, int64, string
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.extensions import extension
from stoker._src.formats import example_python
from stoker._src.formats.example_python import BAD_LIST, MALFORMED, MISSING, UNSUPPORTED, WRONG_COUNT, WRONG_KIND

native = extension("stoker._src.formats._native") or example_python

INDICES, ROWS, VALUES = example_python.INDICES, example_python.ROWS, example_python.VALUES
_KINDS = {string: example_python.BYTES, float32: example_python.FLOATS, int64: example_python.INTS}
_KIND_NAMES = {1: "string", 2: "float", 3: "int64"}
_VALUE_NAMES = {1: "bytes", 2: "float", 3: "int64"}


@dataclass(frozen=True)
class FixedLength:
    """A dense feature with the same number of values in every row: an array of shape [batch, *shape].

    Attributes:
        key: name in the Example.
        dtype: float32, int64 or string.
        shape: the shape of a row, fully defined.
        default: the row, of shape `shape`, that replaces a missing feature. None (or, as in TensorFlow, an empty array) makes
            the feature required.
    """

    key: str | bytes
    dtype: DType
    shape: tuple[int, ...] = ()
    default: Any = None


@dataclass(frozen=True)
class Padded:
    """A dense feature with any number of steps of `shape` values: [batch, longest, *shape], padded with `default`.

    Attributes:
        key: name in the Example (or among the feature lists of a SequenceExample).
        dtype: float32, int64 or string.
        shape: the shape of a step, fully defined.
        default: the scalar to pad with; None means zero or the empty string.
        required: whether a SequenceExample must have this list. In an Example, the feature is always optional.
    """

    key: str | bytes
    dtype: DType
    shape: tuple[int, ...] = ()
    default: Any = None
    required: bool = False


@dataclass(frozen=True)
class Sparse:
    """A feature with any number of values per row, in coordinate form: a SparseColumn."""

    key: str | bytes
    dtype: DType


@dataclass(frozen=True)
class Ragged:
    """A feature with any number of values per row, as row splits: a RaggedColumn."""

    key: str | bytes
    dtype: DType


class SparseColumn(NamedTuple):
    """indices: int64 [n, rank] in row-major order; values: [n]; dense_shape: int64 [rank].

    The rank is 2 (row, position), or 3 (row, step, position) for a feature list.
    """

    indices: np.ndarray
    values: np.ndarray
    dense_shape: np.ndarray


class RaggedColumn(NamedTuple):
    """values: [n]; splits: int64 row splits, outermost first: ([batch + 1],), or ([batch + 1], [steps + 1])
    for a feature list."""

    values: np.ndarray
    splits: tuple[np.ndarray, ...]


class PaddedSteps(NamedTuple):
    """A padded feature list: values [batch, longest, *shape], and the number of steps of each row as int64 [batch]."""

    values: np.ndarray
    lengths: np.ndarray


Feature = FixedLength | Padded | Sparse | Ragged
Column = np.ndarray | SparseColumn | RaggedColumn


def parse_examples(
    serialized: Sequence[bytes] | np.ndarray, features: Sequence[Feature], names: Sequence[bytes] | None = None
) -> list[Column]:
    """Parses a batch of Examples.

    A feature is missing if its name does not occur or its Feature is empty. A Feature with an empty list is present
    and has no values. If a name occurs twice, the later entry is used. FixedLength and Padded ignore an empty Feature;
    for Sparse and Ragged it replaces earlier entries.

    Args:
        serialized: bytes of each Example: a sequence or a one-dimensional object array.
        features: the features to extract, with distinct keys.
        names: names of the rows, used in messages only.

    Returns:
        For each feature in order: an array (FixedLength, Padded), SparseColumn or RaggedColumn.

    Raises:
        InvalidArgumentError: a row is malformed, lacks a required feature, or has the wrong kind or number of values.
        ValueError: the features are invalid (a duplicate key, a dtype without a list kind, a default of the wrong
            shape).
    """
    return ExampleParser(features).parse(serialized, names)


def parse_single_example(serialized: bytes, features: Sequence[Feature]) -> list[Column]:
    """Parses one Example into columns without the batch dimension.

    FixedLength gives `shape`, Padded gives [steps, *shape], Sparse gives rank-1 coordinates, and Ragged gives its values without splits.
    Raises the same errors as `parse_examples`, with TensorFlow's messages for a scalar input.
    """
    return ExampleParser(features).parse_single(serialized)


def parse_sequence_examples(
    serialized: Sequence[bytes] | np.ndarray,
    context: Sequence[Feature],
    lists: Sequence[Feature],
    names: Sequence[bytes] | None = None,
) -> tuple[list[Column], list[PaddedSteps | SparseColumn | RaggedColumn]]:
    """Parses a batch of SequenceExamples.

    Args:
        serialized: bytes of each SequenceExample.
        context: features of the context: FixedLength, Sparse or Ragged.
        lists: feature lists: Padded (each step holds exactly `shape`), Sparse or Ragged.
        names: names of the rows, used in messages only.

    Returns:
        (context columns, list columns), each in the requested order. A Padded list is a PaddedSteps, a Sparse one has
        rank 3, and a Ragged one has two splits.

    Raises:
        InvalidArgumentError: as for `parse_examples`. As in TensorFlow, a FixedLength context feature without a default
            rejects an empty batch.
        ValueError: the features are invalid.
    """
    rows = _rows(serialized)
    _check_names(names, rows)
    context_keys = _distinct_keys(context, (FixedLength, Sparse, Ragged))
    list_keys = _distinct_keys(lists, (Padded, Sparse, Ragged))
    wanted = [tuple((key, _kind(each)) for key, each in zip(keys, group)) for keys, group in
              ((context_keys, context), (list_keys, lists))]  # fmt: skip
    failure, found_context, found_lists = native.parse_sequence_examples(rows, wanted[0], wanted[1])
    if failure is not None:
        raise InvalidArgumentError(None, None, _sequence_message(failure, wanted[0] + wanted[1], len(wanted[0]), names))
    assert found_context is not None and found_lists is not None
    return (
        [_context_column(each, found, names) for each, found in zip(context, found_context)],
        [_list_column(each, found, names) for each, found in zip(lists, found_lists)],
    )


def parse_single_sequence_example(
    serialized: bytes, context: Sequence[Feature], lists: Sequence[Feature], name: bytes | None = None
) -> tuple[list[Column], list[Column]]:
    """Parses one SequenceExample into columns without the batch dimension; a Padded list is then an array."""
    contexts, sequences = parse_sequence_examples([serialized], context, lists, None if name is None else [name])
    return (
        [_drop_batch(column) for column in contexts],
        [_drop_batch(column.values if isinstance(column, PaddedSteps) else column) for column in sequences],
    )


class ExampleParser:
    """`parse_examples` and `parse_single_example` for a fixed set of features.

    The features are validated once, which saves time when the same ones are parsed repeatedly. The parser has no mutable state, so
    any number of threads may use it concurrently.
    """

    def __init__(self, features: Sequence[Feature]) -> None:
        self._features = tuple(features)
        keys = _distinct_keys(features, (FixedLength, Padded, Sparse, Ragged))
        for each in features:
            if isinstance(each, Padded):
                _stride(each)  # rejects steps without values

        def wanted(single: bool) -> tuple[tuple[bytes, int, int, Any, bool], ...]:
            return tuple(
                (key, _kind(each), _size(each.shape), _fallback(each), False)
                if isinstance(each, FixedLength)
                else (key, _kind(each), -1, None, not single and not isinstance(each, Padded))
                for key, each in zip(keys, features)
            )

        self._wanted = wanted(single=False)
        self._wanted_single = wanted(single=True)

    def parse(
        self, serialized: Sequence[bytes] | np.ndarray, names: Sequence[bytes] | None = None, threads: int = 1
    ) -> list[Column]:
        """See `parse_examples`. At most `threads` threads share the rows of a large batch."""
        rows = _rows(serialized)
        _check_names(names, rows)
        failure, columns = native.parse_examples(rows, self._wanted, threads)
        if failure is not None:
            message = _example_message(failure, rows, self._features, names, single=False)
            raise InvalidArgumentError(None, None, message)
        assert columns is not None
        return [
            _example_column(each, column, len(rows), names, single=False)
            for each, column in zip(self._features, columns)
        ]

    def parse_forms(
        self,
        serialized: Sequence[bytes] | np.ndarray,
        names: Sequence[bytes] | None,
        threads: int,
        forms: tuple[Any, ...],
    ) -> tuple[list[Any], np.ndarray, np.ndarray]:
        """Parses a batch into the wanted forms of its sparse features, without making what is not wanted.

        Args:
            serialized: bytes of each Example.
            names: names of the rows, used in messages only.
            threads: most threads that share the work.
            forms: for each feature None or, for a Sparse one, (flags, buckets): INDICES | ROWS | VALUES, and numbers of buckets into
                which the strings are hashed as `fingerprint64(string) % buckets`.

        Returns:
            (columns, ints, floats). The column of a feature with a form is (number of values n, longest row, list of strings or None);
            others are as in `parse`. `ints` holds for each of those columns in order the wanted ones of: indices [n, 2], rows [n],
            integer values [n], and hashes [n] for each number of buckets. `floats` holds the float values.
        """
        rows = _rows(serialized)
        _check_names(names, rows)
        failure, columns, *numbers = native.parse_examples(rows, self._wanted, threads, forms)
        if failure is not None:
            message = _example_message(failure, rows, self._features, names, single=False)
            raise InvalidArgumentError(None, None, message)
        assert columns is not None
        found = [
            column if form is not None else _example_column(each, column, len(rows), names, single=False)
            for each, column, form in zip(self._features, columns, forms)
        ]
        ints, floats = numbers[0]
        return found, np.frombuffer(ints, np.int64), np.frombuffer(floats, np.float32)

    def parse_single(self, serialized: bytes) -> list[Column]:
        """See `parse_single_example`."""
        rows = (serialized,)
        failure, columns = native.parse_examples(rows, self._wanted_single)
        if failure is not None:
            message = _example_message(failure, rows, self._features, None, single=True)
            raise InvalidArgumentError(None, None, message)
        assert columns is not None
        result: list[Column] = []
        for each, column in zip(self._features, columns):
            if isinstance(each, FixedLength):
                result.append(_array(column, each.dtype).reshape(each.shape))
            else:
                result.append(_drop_batch(_example_column(each, column, 1, None, single=True)))
        return result


# The requested features.


def _rows(serialized: Sequence[bytes] | np.ndarray) -> tuple[bytes, ...]:
    if isinstance(serialized, np.ndarray):
        if serialized.ndim != 1:
            raise InvalidArgumentError(None, None, f"Expected serialized to be a vector, got shape {serialized.shape}.")
        return tuple(serialized.tolist())
    return tuple(serialized)


def _check_names(names: Sequence[bytes] | None, rows: tuple[bytes, ...]) -> None:
    if names is not None and len(names) not in (0, len(rows)):
        raise InvalidArgumentError(
            None,
            None,
            f"Expected names have the same shape as serialized: name.shape=[{len(names)}], "
            f"serialized.shape=[{len(rows)}]",
        )


def _distinct_keys(features: Sequence[Feature], allowed: tuple[type, ...]) -> list[bytes]:
    keys = []
    for each in features:
        if not isinstance(each, allowed):
            raise ValueError(f"{type(each).__name__} cannot be asked for here: {each}.")
        keys.append(each.key.encode() if isinstance(each.key, str) else each.key)
    if len(set(keys)) != len(keys):
        raise ValueError(f"A feature is asked for twice: {sorted(key for key in set(keys) if keys.count(key) > 1)}.")
    return keys


def _kind(feature: Feature) -> int:
    kind = _KINDS.get(feature.dtype)
    if kind is None:
        raise ValueError(
            f"Feature {_text(feature.key)} has dtype {feature.dtype!r}; lists hold float32, int64 or string."
        )
    return kind


def _size(shape: tuple[int, ...]) -> int:
    size = 1
    for dim in shape:
        if dim < 0:
            raise ValueError(f"A size of the shape {shape} is negative.")
        size *= dim
    return size


def _stride(feature: Padded) -> int:
    stride = _size(feature.shape)
    if stride == 0:
        raise InvalidArgumentError(
            None, None, f"Key: {_text(feature.key)}.  A step of shape {list(feature.shape)} holds no values."
        )
    return stride


def _fallback(feature: FixedLength) -> bytes | tuple[bytes, ...] | None:
    if feature.default is None:
        return None
    numeric = None if feature.dtype is string else feature.dtype.as_numpy_dtype
    default = np.asarray(feature.default, dtype=numeric if numeric is not None else object)
    if default.size == 0:
        return None
    if default.size != _size(feature.shape):
        raise ValueError(
            f"The default of feature {_text(feature.key)} has shape {default.shape}, not {tuple(feature.shape)}."
        )
    return tuple(default.ravel().tolist()) if numeric is None else default.tobytes()


# Conversion of the parser's columns to arrays.


def _array(values: bytearray | list[bytes], dtype: DType) -> np.ndarray:
    if isinstance(values, list):
        array = np.empty(len(values), object)
        array[:] = values
        return array
    return np.frombuffer(values, dtype.as_numpy_dtype)


def _counts(counts: bytearray) -> np.ndarray:
    return np.frombuffer(counts, np.int64)


def _splits(counts: np.ndarray) -> np.ndarray:
    splits = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=splits[1:])
    return splits


def _positions(counts: np.ndarray, splits: np.ndarray) -> np.ndarray:
    """Returns 0, 1, ... within each run of `counts`."""
    return np.arange(splits[-1]) - np.repeat(splits[:-1], counts)


def _longest(counts: np.ndarray) -> int:
    return int(counts.max(initial=0))


def _padded(values: np.ndarray, counts: np.ndarray, feature: Padded) -> np.ndarray:
    """Returns rows of `counts` steps each, padded to the longest."""
    longest = _longest(counts)
    default = feature.default
    if default is None:
        default = b"" if feature.dtype is string else 0
    else:
        default = np.asarray(default, object if feature.dtype is string else None).reshape(())[()]
    steps = values.reshape(-1, *feature.shape)
    if len(steps) == longest * len(counts):
        return steps.reshape(len(counts), longest, *feature.shape)
    result = np.full((len(counts), longest, *feature.shape), default, dtype=values.dtype)
    result[np.arange(longest) < counts[:, None]] = steps
    return result


def _sparse(values: np.ndarray, counts: np.ndarray) -> SparseColumn:
    indices, longest = native.sparse_indices(counts)
    return SparseColumn(
        np.frombuffer(indices, np.int64).reshape(-1, 2), values, np.array([len(counts), longest], np.int64)
    )


def _example_column(
    feature: Feature, column: Any, rows: int, names: Sequence[bytes] | None, single: bool
) -> np.ndarray | SparseColumn | RaggedColumn:
    if isinstance(feature, FixedLength):
        return _array(column, feature.dtype).reshape(rows, *feature.shape)
    values, counts = _array(column[0], feature.dtype), _counts(column[1])
    if isinstance(feature, Sparse):
        return _sparse(values, counts)
    if isinstance(feature, Ragged):
        return RaggedColumn(values, (_splits(counts),))
    stride = _stride(feature)
    uneven = np.flatnonzero(counts % stride)
    if uneven.size:
        row, key = int(uneven[0]), _text(feature.key)
        raise InvalidArgumentError(
            None,
            None,
            f"Error while parsing feature with key {key}: number of elements should be divisible by {stride}, "
            f"found {counts[row]} instead"
            if single
            else f"Name: {_name(names, row)}, Key: {key}, Index: {row}.  "
            f"Number of {_VALUE_NAMES[_kind(feature)]} values is not a multiple of stride length. "
            f"Saw {counts[row]} values but output shape is: {_shape_text(feature.shape, '?,')}",
        )
    return _padded(values, counts // stride, feature)


def _context_column(feature: Feature, found: Any, names: Sequence[bytes] | None) -> Column:
    values, counts, present = _array(found[0], feature.dtype), _counts(found[2]), np.frombuffer(found[3], np.bool_)
    if isinstance(feature, Sparse):
        return _sparse(values, counts)
    if isinstance(feature, Ragged):
        return RaggedColumn(values, (_splits(counts),))
    assert isinstance(feature, FixedLength)
    size, fallback, key = _size(feature.shape), _fallback(feature), _text(feature.key)
    # TensorFlow first checks the largest row, or the size of the default if that is larger.
    largest = max(_longest(counts), 0 if fallback is None else size)
    if largest != size:
        raise InvalidArgumentError(
            None, None, f"Inconsistent max number of elements for feature {key}: expected {size}, but found {largest}"
        )
    for row in np.flatnonzero((counts != size) | ~present):
        if present[row]:
            raise InvalidArgumentError(None, None, f"Unexpected number of elements in example {_name(names, int(row))}")
        if fallback is None:
            raise InvalidArgumentError(
                None,
                None,
                f"Feature: {key} (data type: {_KIND_NAMES[_kind(feature)]}) is required but could not be found.",
            )
    if fallback is None or present.all():
        return values.reshape(len(counts), *feature.shape)
    result = np.empty((len(counts), size), values.dtype)
    result[present] = values.reshape(-1, size)
    result[~present] = np.asarray(feature.default, dtype=values.dtype).reshape(1, size)
    return result.reshape(len(counts), *feature.shape)


def _list_column(
    feature: Feature, found: Any, names: Sequence[bytes] | None
) -> PaddedSteps | SparseColumn | RaggedColumn:
    values, per_step, steps = _array(found[0], feature.dtype), _counts(found[1]), _counts(found[2])
    row_splits = _splits(steps)
    if isinstance(feature, Ragged):
        return RaggedColumn(values, (row_splits, _splits(per_step)))
    if isinstance(feature, Sparse):
        indices = np.empty((len(values), 3), np.int64)
        indices[:, 0] = np.repeat(np.repeat(np.arange(len(steps)), steps), per_step)
        indices[:, 1] = np.repeat(_positions(steps, row_splits), per_step)
        indices[:, 2] = _positions(per_step, _splits(per_step))
        shape = np.array([len(steps), _longest(steps), _longest(per_step)], np.int64)
        return SparseColumn(indices, values, shape)
    assert isinstance(feature, Padded)
    key, stride = _text(feature.key), _stride(feature)
    present = np.frombuffer(found[3], np.bool_)
    if feature.required and not present.all():
        row = int(np.flatnonzero(~present)[0])
        raise InvalidArgumentError(
            None,
            None,
            f"Name: {_name(names, row)}, Feature list '{key}' is required but could not be found.  Did you mean to "
            "include it in feature_list_dense_missing_assumed_empty or feature_list_dense_defaults?",
        )
    uneven = np.flatnonzero(per_step != stride)
    if uneven.size:
        step = int(uneven[0])
        row = int(np.searchsorted(row_splits, step, side="right")) - 1
        raise InvalidArgumentError(
            None,
            None,
            f"Name: {_name(names, row)}, Key: {key}, Index: {step - row_splits[row]}.  Number of values != expected.  "
            f"values size: {per_step[step]} but output shape: {_shape_text(feature.shape)}",
        )
    return PaddedSteps(_padded(values, steps, feature), steps)


def _drop_batch(column: Column) -> Column:
    if isinstance(column, SparseColumn):
        return SparseColumn(column.indices[:, 1:].copy(), column.values, column.dense_shape[1:])
    if isinstance(column, RaggedColumn):
        return RaggedColumn(column.values, column.splits[1:])
    return column.reshape(column.shape[1:])  # one row: always an array, even for a scalar


# Error messages, in TensorFlow's wording.


def _text(key: str | bytes) -> str:
    return key if isinstance(key, str) else key.decode(errors="backslashreplace")


def _name(names: Sequence[bytes] | None, row: int) -> str:
    return _text(names[row]) if names else "<unknown>"


def _shape_text(shape: tuple[int, ...], lead: str = "") -> str:
    return f"[{lead}{','.join(map(str, shape))}]" if shape else f"[{lead.rstrip(',')}]"


def _example_message(
    failure: example_python.Failure,
    rows: tuple[bytes, ...],
    features: Sequence[Feature],
    names: Sequence[bytes] | None,
    single: bool,
) -> str:
    problem, row, index, _, detail = failure
    if problem == MALFORMED:
        return f"Could not parse example input, value: '{_text(rows[row])}'"
    if problem == UNSUPPORTED:
        return "Unsupported datatype."
    feature = features[index]
    key, kind = _text(feature.key), _kind(feature)
    if problem == MISSING:
        where = "" if single else f"Name: {_name(names, row)}, "
        return f"{where}Feature: {key} (data type: {_KIND_NAMES[kind]}) is required but could not be found."
    where = f"Key: {key}.  " if single else f"Name: {_name(names, row)}, Key: {key}, Index: {row}.  "
    if problem == WRONG_KIND:
        expected, actual = _KIND_NAMES[kind], _KIND_NAMES[detail]
        if isinstance(feature, (Sparse, Ragged)):
            return f"{where}Data types don't match. Expected type: {expected}, Actual type: {actual}"
        return f"{where}Data types don't match. Data type: {actual} but expected type: {expected}"
    values = _VALUE_NAMES[kind]
    if problem == WRONG_COUNT:
        assert isinstance(feature, FixedLength)
        if single:
            return f"{where}Can't parse serialized Example: Some {values}_list slice was not parsed."
        return (
            f"{where}Number of {values} values != expected.  "
            f"Values size: {detail} but output shape: {_shape_text(tuple(feature.shape))}"
        )
    assert problem == BAD_LIST, problem
    return f"{where}Can't parse serialized Example" + (f": Parsing {values}_list failed." if single else ".")


def _sequence_message(
    failure: example_python.Failure,
    features: tuple[tuple[bytes, int], ...],
    contexts: int,
    names: Sequence[bytes] | None,
) -> str:
    problem, row, index, step, _ = failure
    name = _name(names, row)
    if problem == MALFORMED:
        return f"Invalid protocol message input, example id: {name}"
    key, kind = features[index]
    expected = f"Data types don't match. Expected type: {_KIND_NAMES[kind]}"
    if index < contexts:
        return f"Name: {name}, Context feature: {_text(key)}.  {expected}"
    if problem == WRONG_KIND:
        return f"Name: {name}, Feature list: {_text(key)}, Index: {step}.  {expected}"
    return f"Error in sequence feature {_text(key)} in example {name}"
