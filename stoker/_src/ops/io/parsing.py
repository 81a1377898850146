"""Ops that parse serialized Examples and SequenceExamples. The parsers are in `formats/example.py`.

The keys and defaults of a node are constants in practice, so the node caches the parser built from them.
The public functions are in `feature_specs.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import DType
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.shapes import UNKNOWN_SHAPE, Dim, Shape
from stoker._src.formats import example
from stoker._src.formats.example import (
    ExampleParser,
    Feature,
    FixedLength,
    Padded,
    PaddedSteps,
    Ragged,
    RaggedColumn,
    Sparse,
)
from stoker._src.graph.definition import INT, SHAPES, STRINGS, TYPES, define
from stoker._src.ops.support.values import from_numpy

LIST_TYPES = (dtypes.float32, dtypes.int64, dtypes.string)
_SPLIT_TYPES = (dtypes.int32, dtypes.int64)
_VALUES = TYPES(allowed=LIST_TYPES, minimum=0)
_SPLITS = TYPES(allowed=_SPLIT_TYPES, minimum=0)
_OPTIONAL_VALUES = TYPES((), allowed=LIST_TYPES, minimum=0)
_OPTIONAL_SPLITS = TYPES((), allowed=_SPLIT_TYPES, minimum=0)
_COUNT = INT(0, minimum=0)


# ---- arguments of a node ----------------------------------------------------------------------------------------


def _sizes(shape: Shape) -> tuple[int, ...]:
    if shape.rank is None or any(size is None for size in shape):
        raise InvalidArgumentError(None, None, f"dense_shapes must be known but for the first size, got {shape}.")
    return tuple(int(size) for size in shape if size is not None)


def is_padded(shape: Shape) -> bool:
    return bool(shape.rank) and shape[0] is None


def _blank(default: Any) -> bool:
    return isinstance(default, list) and not default


def _dense(key: bytes, dtype: DType, shape: Shape, default: Any) -> Feature:
    """A dense feature of an Example. If its first size is unknown, it is padded with its default."""
    if is_padded(shape):
        return Padded(key, dtype, _sizes(shape[1:]), None if _blank(default) else default)
    return FixedLength(key, dtype, _sizes(shape), None if _blank(default) else default)


def _check_counts(what: str, **counts: int) -> None:
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{name} has {count}" for name, count in counts.items())
        raise InvalidArgumentError(None, None, f"{what} do not agree: {listed}.")


class _Kept:
    """The cached parser of a node, and the arguments it was built from."""

    __slots__ = ("made_from", "parser")

    def __init__(self, made_from: tuple[Any, ...], parser: Any) -> None:
        self.made_from = made_from
        self.parser = parser


def kept_parser(ctx: Any, made_from: tuple[Any, ...], make: Any) -> Any:
    """The node's parser, rebuilt if its keys or defaults differ from those of the last run."""
    state = ctx.state
    if state is None or state.made_from != made_from:
        state = ctx.state = _Kept(made_from, make())
    return state.parser


# ---- outputs ----------------------------------------------------------------------------------------------------


def _tensors(arrays: Sequence[np.ndarray]) -> list[Any]:
    return [from_numpy(array) for array in arrays]


def _sparse_outputs(columns: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
    return (
        _tensors([column.indices for column in columns]),
        _tensors([column.values for column in columns]),
        _tensors([column.dense_shape for column in columns]),
    )


def _splits(column: RaggedColumn, level: int, dtype: DType) -> Any:
    """The row splits of a level, counted from the innermost one. Empty for levels that a single row does not have."""
    if len(column.splits) <= level:
        return from_numpy(np.empty(0, dtype.as_numpy_dtype))
    return from_numpy(column.splits[len(column.splits) - 1 - level].astype(dtype.as_numpy_dtype))


def _row_shapes(serialized: Shape, count: int, extra: int) -> tuple[list[Shape], list[Shape], list[Shape]]:
    """Shapes of sparse indices, values and dense shapes. Their rank is the batch's rank plus `extra`."""
    rank = None if serialized.rank is None else serialized.rank + extra
    return [Shape((None, rank))] * count, [Shape((None,))] * count, [Shape((rank,))] * count


def _dense_shapes(serialized: Shape, shapes: Sequence[Shape]) -> list[Shape]:
    if serialized.rank is None:
        return [UNKNOWN_SHAPE] * len(shapes)
    return [Shape((*serialized, *shape)) for shape in shapes]


def _split_shape(serialized: Shape) -> Shape:
    if serialized.rank != 1:
        return Shape((None,))
    rows: Dim = serialized[0]
    return Shape((None if rows is None else rows + 1,))


# ---- ParseExample -----------------------------------------------------------------------------------------------


def example_parser(
    sparse_keys: Sequence[bytes],
    sparse_types: Sequence[DType],
    dense_keys: Sequence[bytes],
    dense_types: Sequence[DType],
    dense_shapes: Sequence[Shape],
    dense_defaults: Sequence[Any],
    ragged_keys: Sequence[bytes] = (),
    ragged_types: Sequence[DType] = (),
) -> ExampleParser:
    _check_counts("Sparse features", keys=len(sparse_keys), types=len(sparse_types))
    _check_counts(
        "Dense features",
        keys=len(dense_keys),
        types=len(dense_types),
        shapes=len(dense_shapes),
        defaults=len(dense_defaults),
    )
    _check_counts("Ragged features", keys=len(ragged_keys), types=len(ragged_types))
    features: list[Feature] = [Sparse(*pair) for pair in zip(sparse_keys, sparse_types)]
    features += [_dense(*item) for item in zip(dense_keys, dense_types, dense_shapes, dense_defaults)]
    features += [Ragged(*pair) for pair in zip(ragged_keys, ragged_types)]
    try:
        return ExampleParser(features)
    except ValueError as error:
        raise InvalidArgumentError(None, None, str(error)) from error


def row_labels(names: Any, serialized: np.ndarray) -> list[bytes] | None:
    """The names of the rows, if there are any."""
    labels = np.array(names, object)
    if labels.size and labels.shape != serialized.shape:
        raise InvalidArgumentError(
            None,
            None,
            f"Expected names have the same shape as serialized: name.shape={Shape(labels.shape)}, "
            f"serialized.shape={Shape(serialized.shape)}",
        )
    return labels.tolist() or None


def _parse_rows(parser: ExampleParser, serialized: np.ndarray, names: Any) -> list[Any]:
    labels = row_labels(names, serialized)
    if serialized.ndim == 0:
        return parser.parse_single(serialized.item())
    if serialized.ndim != 1:
        raise InvalidArgumentError(
            None, None, f"Expected serialized to be a scalar or vector, got shape: {list(serialized.shape)}"
        )
    return parser.parse(serialized, labels, torch.get_num_threads())


PARSE_EXAMPLE = define(
    "ParseExample(serialized: string, names: vector/flat host string, sparse_keys: host Nsparse * string, "
    "dense_keys: host Ndense * string, dense_defaults: host [Tdense]) -> "
    "(sparse_indices: Nsparse * int64, sparse_values: [sparse_types], sparse_shapes: Nsparse * int64, "
    "dense_values: [Tdense])",
    sparse_types=_VALUES, Tdense=_VALUES, dense_shapes=SHAPES(minimum=0),
)  # fmt: skip


@PARSE_EXAMPLE.kernel
def parse_example_kernel(
    serialized: np.ndarray,
    names: list[bytes],
    sparse_keys: list[bytes],
    dense_keys: list[bytes],
    dense_defaults: list[Any],
    *,
    sparse_types: Sequence[DType],
    Tdense: Sequence[DType],
    dense_shapes: Sequence[Shape],
    ctx: Any,
) -> tuple[list[Any], ...]:
    if serialized.ndim != 1:
        raise InvalidArgumentError(
            None, None, f"Expected serialized to be a vector, got shape: {list(serialized.shape)}"
        )
    parser = kept_parser(
        ctx,
        (sparse_keys, dense_keys, dense_defaults),
        lambda: example_parser(sparse_keys, sparse_types, dense_keys, Tdense, dense_shapes, dense_defaults),
    )
    columns = _parse_rows(parser, serialized, names)
    return *_sparse_outputs(columns[: len(sparse_keys)]), _tensors(columns[len(sparse_keys) :])


@PARSE_EXAMPLE.shape
def parse_example_shape(
    serialized: Shape,
    names: Shape,
    sparse_keys: Any,
    dense_keys: Any,
    dense_defaults: Any,
    *,
    Nsparse: int,
    sparse_types: Sequence[DType],
    Tdense: Sequence[DType],
    dense_shapes: Sequence[Shape],
) -> tuple[list[Shape], ...]:
    rows = serialized.of_rank(1)
    _check_counts("Sparse features", keys=Nsparse, types=len(sparse_types))
    _check_counts("Dense features", keys=len(dense_keys), types=len(Tdense), shapes=len(dense_shapes))
    return *_row_shapes(rows, Nsparse, 1), _dense_shapes(rows, dense_shapes)


PARSE_EXAMPLE_V2 = define(
    "ParseExampleV2(serialized: string, names: rank<2/any host string, sparse_keys: any/flat host string, "
    "dense_keys: any/flat host string, ragged_keys: any/flat host string, dense_defaults: host [Tdense]) -> "
    "(sparse_indices: num_sparse * int64, sparse_values: [sparse_types], sparse_shapes: num_sparse * int64, "
    "dense_values: [Tdense], ragged_values: [ragged_value_types], ragged_row_splits: [ragged_split_types])",
    Tdense=_VALUES, num_sparse=INT(minimum=0), sparse_types=_VALUES, ragged_value_types=_VALUES,
    ragged_split_types=_SPLITS, dense_shapes=SHAPES(minimum=0),
)  # fmt: skip


@PARSE_EXAMPLE_V2.kernel
def parse_example_v2_kernel(
    serialized: np.ndarray,
    names: list[bytes],
    sparse_keys: list[bytes],
    dense_keys: list[bytes],
    ragged_keys: list[bytes],
    dense_defaults: list[Any],
    *,
    Tdense: Sequence[DType],
    sparse_types: Sequence[DType],
    ragged_value_types: Sequence[DType],
    ragged_split_types: Sequence[DType],
    dense_shapes: Sequence[Shape],
    ctx: Any,
) -> tuple[list[Any], ...]:
    parser = kept_parser(
        ctx,
        (sparse_keys, dense_keys, ragged_keys, dense_defaults),
        lambda: example_parser(
            sparse_keys,
            sparse_types,
            dense_keys,
            Tdense,
            dense_shapes,
            dense_defaults,
            ragged_keys,
            ragged_value_types,
        ),
    )
    columns = _parse_rows(parser, serialized, names)
    sparse, dense = len(sparse_keys), len(sparse_keys) + len(dense_keys)
    ragged = columns[dense:]
    return (
        *_sparse_outputs(columns[:sparse]),
        _tensors(columns[sparse:dense]),
        _tensors([column.values for column in ragged]),
        [_splits(column, 0, dtype) for column, dtype in zip(ragged, ragged_split_types)],
    )


@PARSE_EXAMPLE_V2.shape(enforced=True)
def parse_example_v2_shape(
    serialized: Shape,
    names: Shape,
    sparse_keys: Shape,
    dense_keys: Shape,
    ragged_keys: Shape,
    dense_defaults: Any,
    *,
    num_sparse: int,
    sparse_types: Sequence[DType],
    dense_shapes: Sequence[Shape],
    ragged_value_types: Sequence[DType],
) -> tuple[list[Shape], ...]:
    rows = serialized.at_most(1)
    _check_counts("Sparse features", num_sparse=num_sparse, types=len(sparse_types))
    return (
        *_row_shapes(rows, num_sparse, 1),
        _dense_shapes(rows, dense_shapes),
        [Shape((None,))] * len(ragged_value_types),
        [_split_shape(rows)] * len(ragged_value_types),
    )


PARSE_SINGLE_EXAMPLE = define(
    "ParseSingleExample(serialized: string, dense_defaults: host [Tdense]) -> "
    "(sparse_indices: num_sparse * int64, sparse_values: [sparse_types], sparse_shapes: num_sparse * int64, "
    "dense_values: [Tdense])",
    num_sparse=INT(minimum=0), sparse_keys=STRINGS(minimum=0), dense_keys=STRINGS(minimum=0), sparse_types=_VALUES,
    Tdense=_VALUES, dense_shapes=SHAPES(minimum=0),
)  # fmt: skip


def _bytes(keys: Sequence[str | bytes]) -> list[bytes]:
    return [key.encode() if isinstance(key, str) else key for key in keys]


@PARSE_SINGLE_EXAMPLE.kernel
def parse_single_example_kernel(
    serialized: np.ndarray,
    dense_defaults: list[Any],
    *,
    sparse_keys: Sequence[str | bytes],
    dense_keys: Sequence[str | bytes],
    sparse_types: Sequence[DType],
    Tdense: Sequence[DType],
    dense_shapes: Sequence[Shape],
    ctx: Any,
) -> tuple[list[Any], ...]:
    if serialized.ndim:
        raise InvalidArgumentError(
            None, None, f"Expected serialized to be a scalar, got shape: {list(serialized.shape)}"
        )
    parser = kept_parser(
        ctx,
        (dense_defaults,),
        lambda: example_parser(
            _bytes(sparse_keys), sparse_types, _bytes(dense_keys), Tdense, dense_shapes, dense_defaults
        ),
    )
    columns = parser.parse_single(serialized.item())
    return *_sparse_outputs(columns[: len(sparse_keys)]), _tensors(columns[len(sparse_keys) :])


@PARSE_SINGLE_EXAMPLE.shape(enforced=True)
def parse_single_example_shape(
    serialized: Shape,
    dense_defaults: Any,
    *,
    num_sparse: int,
    sparse_keys: Sequence[str | bytes],
    sparse_types: Sequence[DType],
    dense_shapes: Sequence[Shape],
) -> tuple[list[Shape], ...]:
    row = serialized.of_rank(0)
    _check_counts("Sparse features", num_sparse=num_sparse, keys=len(sparse_keys), types=len(sparse_types))
    return *_row_shapes(row, num_sparse, 1), _dense_shapes(row, dense_shapes)


# ---- ParseSequenceExample ---------------------------------------------------------------------------------------


class _Sequences:
    """The features that a SequenceExample node parses, and their results in the order of the op's outputs."""

    def __init__(
        self,
        context: tuple[
            Sequence[bytes], Sequence[DType], Sequence[bytes], Sequence[DType], Sequence[Shape], Sequence[Any]
        ],
        context_ragged: tuple[Sequence[bytes], Sequence[DType]],
        lists: tuple[
            Sequence[bytes], Sequence[DType], Sequence[bytes], Sequence[DType], Sequence[Shape], Sequence[bool]
        ],
        list_ragged: tuple[Sequence[bytes], Sequence[DType]],
    ) -> None:
        sparse_keys, sparse_types, dense_keys, dense_types, dense_shapes, defaults = context
        _check_counts("Sparse context features", keys=len(sparse_keys), types=len(sparse_types))
        _check_counts(
            "Dense context features",
            keys=len(dense_keys),
            types=len(dense_types),
            shapes=len(dense_shapes),
            defaults=len(defaults),
        )
        self.context: list[Feature] = [Sparse(*pair) for pair in zip(sparse_keys, sparse_types)]
        for key, dtype, shape, default in zip(dense_keys, dense_types, dense_shapes, defaults):
            self.context.append(FixedLength(key, dtype, _sizes(shape), None if _blank(default) else default))
        _check_counts("Ragged context features", keys=len(context_ragged[0]), types=len(context_ragged[1]))
        self.context += [Ragged(*pair) for pair in zip(*context_ragged)]
        self.context_sparse, self.context_dense = len(sparse_keys), len(sparse_keys) + len(dense_keys)

        sparse_keys, sparse_types, dense_keys, dense_types, dense_shapes, may_be_missing = lists
        _check_counts("Sparse feature lists", keys=len(sparse_keys), types=len(sparse_types))
        _check_counts(
            "Dense feature lists",
            keys=len(dense_keys),
            types=len(dense_types),
            shapes=len(dense_shapes),
            missing=len(may_be_missing),
        )
        self.lists: list[Feature] = [Sparse(*pair) for pair in zip(sparse_keys, sparse_types)]
        for key, dtype, shape, missing in zip(dense_keys, dense_types, dense_shapes, may_be_missing):
            self.lists.append(Padded(key, dtype, _sizes(shape), None, required=not missing))
        _check_counts("Ragged feature lists", keys=len(list_ragged[0]), types=len(list_ragged[1]))
        self.lists += [Ragged(*pair) for pair in zip(*list_ragged)]
        self.list_sparse, self.list_dense = len(sparse_keys), len(sparse_keys) + len(dense_keys)

    def parse(self, serialized: np.ndarray, names: Any) -> tuple[list[Any], list[Any], list[Any]]:
        """Returns the context columns, the list columns, and the lengths of the dense lists."""
        if serialized.ndim > 1:
            raise InvalidArgumentError(
                None, None, f"Expected serialized to be a scalar or vector, got shape: {list(serialized.shape)}"
            )
        try:
            if serialized.ndim == 0:
                if isinstance(names, list) and len(names) > 1:
                    raise ValueError(f"Expected one debug_name for one example, got {len(names)}.")
                name = names if isinstance(names, bytes) else names[0] if names else None
                context, lists = example.parse_single_sequence_example(
                    serialized.item(), self.context, self.lists, name or None
                )
                dense = lists[self.list_sparse : self.list_dense]
                return context, lists, [np.array(len(column), np.int64) for column in dense]
            contexts, columns = example.parse_sequence_examples(serialized, self.context, self.lists, names or None)
        except ValueError as error:
            raise InvalidArgumentError(None, None, str(error)) from error
        lengths = [column.lengths for column in columns if isinstance(column, PaddedSteps)]
        return contexts, [c.values if isinstance(c, PaddedSteps) else c for c in columns], lengths

    def context_outputs(self, columns: list[Any]) -> tuple[list[Any], ...]:
        sparse, dense = self.context_sparse, self.context_dense
        return *_sparse_outputs(columns[:sparse]), _tensors(columns[sparse:dense])

    def list_outputs(self, columns: list[Any]) -> tuple[list[Any], ...]:
        sparse, dense = self.list_sparse, self.list_dense
        return *_sparse_outputs(columns[:sparse]), _tensors(columns[sparse:dense])


def _context_shapes(row: Shape, sparse: int, dense_shapes: Sequence[Shape]) -> tuple[list[Shape], ...]:
    return *_row_shapes(row, sparse, 1), _dense_shapes(row, dense_shapes)


def _list_shapes(row: Shape, sparse: int, dense_shapes: Sequence[Shape]) -> tuple[list[Shape], ...]:
    return *_row_shapes(row, sparse, 2), _dense_shapes(row, [Shape((None, *shape)) for shape in dense_shapes])


_CONTEXT_OUTPUTS = (
    "context_sparse_indices: Ncontext_sparse * int64, context_sparse_values: [context_sparse_types], "
    "context_sparse_shapes: Ncontext_sparse * int64, context_dense_values: [Tcontext_dense]"
)
_LIST_OUTPUTS = (
    "feature_list_sparse_indices: Nfeature_list_sparse * int64, feature_list_sparse_values: [feature_list_sparse_types], "
    "feature_list_sparse_shapes: Nfeature_list_sparse * int64, feature_list_dense_values: [feature_list_dense_types]"
)
_SEQUENCE_ATTRS: dict[str, Any] = {
    "Ncontext_sparse": _COUNT,
    "Nfeature_list_sparse": _COUNT,
    "Nfeature_list_dense": _COUNT,
    "context_sparse_types": _OPTIONAL_VALUES,
    "Tcontext_dense": _OPTIONAL_VALUES,
    "feature_list_dense_types": _OPTIONAL_VALUES,
    "context_dense_shapes": SHAPES((), minimum=0),
    "feature_list_sparse_types": _OPTIONAL_VALUES,
    "feature_list_dense_shapes": SHAPES((), minimum=0),
}

PARSE_SEQUENCE_EXAMPLE = define(
    "ParseSequenceExample(serialized: vector/rank<2 string, debug_name: vector/flat host string, context_dense_defaults: host [Tcontext_dense]) "
    f"-> ({_CONTEXT_OUTPUTS}, {_LIST_OUTPUTS}, feature_list_dense_lengths: Nfeature_list_dense * int64)",
    feature_list_dense_missing_assumed_empty=STRINGS(minimum=0), context_sparse_keys=STRINGS(minimum=0),
    context_dense_keys=STRINGS(minimum=0), feature_list_sparse_keys=STRINGS(minimum=0),
    feature_list_dense_keys=STRINGS(minimum=0), Ncontext_dense=_COUNT, **_SEQUENCE_ATTRS,
)  # fmt: skip


@PARSE_SEQUENCE_EXAMPLE.kernel
def parse_sequence_example_kernel(
    serialized: np.ndarray,
    debug_name: list[bytes],
    context_dense_defaults: list[Any],
    *,
    feature_list_dense_missing_assumed_empty: Sequence[str],
    context_sparse_keys: Sequence[str],
    context_dense_keys: Sequence[str],
    feature_list_sparse_keys: Sequence[str],
    feature_list_dense_keys: Sequence[str],
    context_sparse_types: Sequence[DType],
    Tcontext_dense: Sequence[DType],
    feature_list_dense_types: Sequence[DType],
    context_dense_shapes: Sequence[Shape],
    feature_list_sparse_types: Sequence[DType],
    feature_list_dense_shapes: Sequence[Shape],
    ctx: Any,
) -> tuple[list[Any], ...]:
    parser = kept_parser(
        ctx,
        (context_dense_defaults,),
        lambda: _Sequences(
            (
                _bytes(context_sparse_keys),
                context_sparse_types,
                _bytes(context_dense_keys),
                Tcontext_dense,
                context_dense_shapes,
                context_dense_defaults,
            ),
            ((), ()),
            (
                _bytes(feature_list_sparse_keys),
                feature_list_sparse_types,
                _bytes(feature_list_dense_keys),
                feature_list_dense_types,
                feature_list_dense_shapes,
                [key in feature_list_dense_missing_assumed_empty for key in feature_list_dense_keys],
            ),
            ((), ()),
        ),
    )
    context, lists, lengths = parser.parse(serialized, debug_name)
    return *parser.context_outputs(context), *parser.list_outputs(lists), _tensors(lengths)


@PARSE_SEQUENCE_EXAMPLE.shape(enforced=True)
def parse_sequence_example_shape(
    serialized: Shape,
    debug_name: Shape,
    context_dense_defaults: Any,
    *,
    Ncontext_sparse: int,
    Ncontext_dense: int,
    Nfeature_list_sparse: int,
    Nfeature_list_dense: int,
    context_sparse_keys: Sequence[str],
    context_dense_keys: Sequence[str],
    feature_list_sparse_keys: Sequence[str],
    feature_list_dense_keys: Sequence[str],
    context_dense_shapes: Sequence[Shape],
    feature_list_dense_shapes: Sequence[Shape],
) -> tuple[list[Shape], ...]:
    _check_counts("Sparse context features", num=Ncontext_sparse, keys=len(context_sparse_keys))
    _check_counts("Dense context features", num=Ncontext_dense, keys=len(context_dense_keys))
    _check_counts("Sparse feature lists", num=Nfeature_list_sparse, keys=len(feature_list_sparse_keys))
    _check_counts("Dense feature lists", num=Nfeature_list_dense, keys=len(feature_list_dense_keys))
    rows = serialized.at_most(1)
    return (
        *_context_shapes(rows, Ncontext_sparse, context_dense_shapes),
        *_list_shapes(rows, Nfeature_list_sparse, feature_list_dense_shapes),
        [rows] * Nfeature_list_dense,
    )


PARSE_SEQUENCE_EXAMPLE_V2 = define(
    "ParseSequenceExampleV2(serialized: string, debug_name: rank<2/any host string, context_sparse_keys: any/flat host string, "
    "context_dense_keys: any/flat host string, context_ragged_keys: any/flat host string, "
    "feature_list_sparse_keys: any/flat host string, feature_list_dense_keys: any/flat host string, "
    "feature_list_ragged_keys: any/flat host string, feature_list_dense_missing_assumed_empty: any/flat host bool, context_dense_defaults: host [Tcontext_dense]) -> "
    f"({_CONTEXT_OUTPUTS}, context_ragged_values: [context_ragged_value_types], "
    f"context_ragged_row_splits: [context_ragged_split_types], {_LIST_OUTPUTS}, "
    "feature_list_dense_lengths: Nfeature_list_dense * int64, "
    "feature_list_ragged_values: [feature_list_ragged_value_types], "
    "feature_list_ragged_outer_splits: [feature_list_ragged_split_types], "
    "feature_list_ragged_inner_splits: [feature_list_ragged_split_types])",
    context_ragged_value_types=_OPTIONAL_VALUES, context_ragged_split_types=_OPTIONAL_SPLITS,
    feature_list_ragged_value_types=_OPTIONAL_VALUES, feature_list_ragged_split_types=_OPTIONAL_SPLITS,
    **_SEQUENCE_ATTRS,
)  # fmt: skip


@PARSE_SEQUENCE_EXAMPLE_V2.kernel
def parse_sequence_example_v2_kernel(
    serialized: np.ndarray,
    debug_name: Any,
    context_sparse_keys: list[bytes],
    context_dense_keys: list[bytes],
    context_ragged_keys: list[bytes],
    feature_list_sparse_keys: list[bytes],
    feature_list_dense_keys: list[bytes],
    feature_list_ragged_keys: list[bytes],
    feature_list_dense_missing_assumed_empty: list[bool],
    context_dense_defaults: list[Any],
    *,
    context_sparse_types: Sequence[DType],
    Tcontext_dense: Sequence[DType],
    context_ragged_value_types: Sequence[DType],
    context_ragged_split_types: Sequence[DType],
    context_dense_shapes: Sequence[Shape],
    feature_list_sparse_types: Sequence[DType],
    feature_list_dense_types: Sequence[DType],
    feature_list_ragged_value_types: Sequence[DType],
    feature_list_ragged_split_types: Sequence[DType],
    feature_list_dense_shapes: Sequence[Shape],
    ctx: Any,
) -> tuple[list[Any], ...]:
    parser = kept_parser(
        ctx,
        (
            context_sparse_keys, context_dense_keys, context_ragged_keys, context_dense_defaults,
            feature_list_sparse_keys, feature_list_dense_keys, feature_list_ragged_keys,
            feature_list_dense_missing_assumed_empty,
        ),
        lambda: _Sequences(
            (
                context_sparse_keys, context_sparse_types, context_dense_keys, Tcontext_dense, context_dense_shapes,
                context_dense_defaults,
            ),
            (context_ragged_keys, context_ragged_value_types),
            (
                feature_list_sparse_keys, feature_list_sparse_types, feature_list_dense_keys, feature_list_dense_types,
                feature_list_dense_shapes, feature_list_dense_missing_assumed_empty,
            ),
            (feature_list_ragged_keys, feature_list_ragged_value_types),
        ),
    )  # fmt: skip
    context, lists, lengths = parser.parse(serialized, debug_name)
    context_ragged, list_ragged = context[parser.context_dense :], lists[parser.list_dense :]
    return (
        *parser.context_outputs(context),
        _tensors([column.values for column in context_ragged]),
        [_splits(column, 0, dtype) for column, dtype in zip(context_ragged, context_ragged_split_types)],
        *parser.list_outputs(lists),
        _tensors(lengths),
        _tensors([column.values for column in list_ragged]),
        [_splits(column, 1, dtype) for column, dtype in zip(list_ragged, feature_list_ragged_split_types)],
        [_splits(column, 0, dtype) for column, dtype in zip(list_ragged, feature_list_ragged_split_types)],
    )


@PARSE_SEQUENCE_EXAMPLE_V2.shape(enforced=True)
def parse_sequence_example_v2_shape(
    serialized: Shape,
    *_: Any,
    context_sparse_types: Sequence[DType],
    feature_list_sparse_types: Sequence[DType],
    feature_list_dense_types: Sequence[DType],
    Ncontext_sparse: int,
    Nfeature_list_sparse: int,
    Nfeature_list_dense: int,
    context_dense_shapes: Sequence[Shape],
    feature_list_dense_shapes: Sequence[Shape],
    context_ragged_value_types: Sequence[DType],
    feature_list_ragged_value_types: Sequence[DType],
) -> tuple[list[Shape], ...]:
    rows = serialized.at_most(1)
    _check_counts("Sparse context features", num=Ncontext_sparse, types=len(context_sparse_types))
    _check_counts("Sparse feature lists", num=Nfeature_list_sparse, types=len(feature_list_sparse_types))
    _check_counts("Dense feature lists", num=Nfeature_list_dense, types=len(feature_list_dense_types))
    contexts, lists = len(context_ragged_value_types), len(feature_list_ragged_value_types)
    lengths = rows if rows.rank is not None else UNKNOWN_SHAPE
    return (
        *_context_shapes(rows, Ncontext_sparse, context_dense_shapes),
        [Shape((None,))] * contexts,
        [_split_shape(rows)] * contexts,
        *_list_shapes(rows, Nfeature_list_sparse, feature_list_dense_shapes),
        [lengths] * Nfeature_list_dense,
        [Shape((None,))] * lists,
        [_split_shape(rows)] * lists,
        [Shape((None,))] * lists,
    )


PARSE_SINGLE_SEQUENCE_EXAMPLE = define(
    "ParseSingleSequenceExample(serialized: string, feature_list_dense_missing_assumed_empty: vector host string, "
    "context_sparse_keys: host Ncontext_sparse * string, context_dense_keys: host Ncontext_dense * string, "
    "feature_list_sparse_keys: host Nfeature_list_sparse * string, "
    "feature_list_dense_keys: host Nfeature_list_dense * string, context_dense_defaults: host [Tcontext_dense], "
    f"debug_name: any/scalar host string) -> ({_CONTEXT_OUTPUTS}, {_LIST_OUTPUTS})",
    Ncontext_dense=_COUNT, **_SEQUENCE_ATTRS,
)  # fmt: skip


@PARSE_SINGLE_SEQUENCE_EXAMPLE.kernel
def parse_single_sequence_example_kernel(
    serialized: np.ndarray,
    feature_list_dense_missing_assumed_empty: list[bytes],
    context_sparse_keys: list[bytes],
    context_dense_keys: list[bytes],
    feature_list_sparse_keys: list[bytes],
    feature_list_dense_keys: list[bytes],
    context_dense_defaults: list[Any],
    debug_name: Any,
    *,
    context_sparse_types: Sequence[DType],
    Tcontext_dense: Sequence[DType],
    feature_list_dense_types: Sequence[DType],
    context_dense_shapes: Sequence[Shape],
    feature_list_sparse_types: Sequence[DType],
    feature_list_dense_shapes: Sequence[Shape],
    ctx: Any,
) -> tuple[list[Any], ...]:
    if serialized.ndim:
        raise InvalidArgumentError(
            None, None, f"Expected serialized to be a scalar, got shape: {list(serialized.shape)}"
        )
    parser = kept_parser(
        ctx,
        (
            feature_list_dense_missing_assumed_empty, context_sparse_keys, context_dense_keys,
            feature_list_sparse_keys, feature_list_dense_keys, context_dense_defaults,
        ),
        lambda: _Sequences(
            (
                context_sparse_keys, context_sparse_types, context_dense_keys, Tcontext_dense, context_dense_shapes,
                context_dense_defaults,
            ),
            ((), ()),
            (
                feature_list_sparse_keys, feature_list_sparse_types, feature_list_dense_keys, feature_list_dense_types,
                feature_list_dense_shapes,
                [key in feature_list_dense_missing_assumed_empty for key in feature_list_dense_keys],
            ),
            ((), ()),
        ),
    )  # fmt: skip
    context, lists, _ = parser.parse(serialized, debug_name)
    return *parser.context_outputs(context), *parser.list_outputs(lists)


@PARSE_SINGLE_SEQUENCE_EXAMPLE.shape
def parse_single_sequence_example_shape(
    serialized: Shape,
    *_: Any,
    Ncontext_sparse: int,
    Ncontext_dense: int,
    Nfeature_list_sparse: int,
    Nfeature_list_dense: int,
    context_sparse_types: Sequence[DType],
    Tcontext_dense: Sequence[DType],
    feature_list_sparse_types: Sequence[DType],
    feature_list_dense_types: Sequence[DType],
    context_dense_shapes: Sequence[Shape],
    feature_list_dense_shapes: Sequence[Shape],
) -> tuple[list[Shape], ...]:
    row = serialized.of_rank(0)
    _check_counts("Sparse context features", keys=Ncontext_sparse, types=len(context_sparse_types))
    _check_counts("Dense context features", keys=Ncontext_dense, types=len(Tcontext_dense))
    _check_counts("Sparse feature lists", keys=Nfeature_list_sparse, types=len(feature_list_sparse_types))
    _check_counts("Dense feature lists", keys=Nfeature_list_dense, types=len(feature_list_dense_types))
    return (
        *_context_shapes(row, Ncontext_sparse, context_dense_shapes),
        *_list_shapes(row, Nfeature_list_sparse, feature_list_dense_shapes),
    )
