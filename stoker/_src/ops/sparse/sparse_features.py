"""Features from sparse tensors: crosses of columns, and edit distances of sequences."""

from __future__ import annotations

import itertools
import math as numbers
from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.errors import InternalError, InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.extensions import extension
from stoker._src.base.shapes import UNKNOWN_SHAPE, Shape
from stoker._src.formats import hashing
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import ANY, BOOL, INT, TYPES, define
from stoker._src.graph.sparse_tensor import SparseTensor, is_sparse
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import casting
from stoker._src.ops.sparse.sparse_functions import as_sparse
from stoker._src.ops.sparse.sparse_ops import flat_positions, sizes_of
from stoker._src.ops.support.movement import allocatable

_native = extension("stoker._src.ops.native.columns")
strings = extension("stoker._src.ops.native.strings")

# ---- SparseCross ------------------------------------------------------------------------------------------------

_FEATURES = (dtypes.int64, dtypes.string)
_KINDS = {"sparse_types": TYPES(allowed=_FEATURES, minimum=0), "dense_types": TYPES(allowed=_FEATURES, minimum=0)}
SPARSE_CROSS = define(
    "SparseCross(indices: N * int64, values: [sparse_types], shapes: N * int64, dense_inputs: [dense_types]) -> "
    "(output_indices: int64, output_values: out_type, output_shape: int64)",
    N=INT(minimum=0),
    hashed_output=BOOL,
    num_buckets=INT(minimum=0),
    hash_key=INT,
    **_KINDS,
    out_type=_FEATURES,
    internal_type=_FEATURES,
)
SPARSE_CROSS_V2 = define(
    "SparseCrossV2(indices: N * int64, values: [sparse_types], shapes: N * int64, dense_inputs: any/matrix [dense_types], sep: any/scalar string) -> "
    "(output_indices: int64, output_values: string, output_shape: int64)",
    N=INT(minimum=0),
    **_KINDS,
)


SPARSE_CROSS_HASHED = define(
    "SparseCrossHashed(indices: N * int64, values: [sparse_types], shapes: N * int64, dense_inputs: any/matrix [dense_types], "
    "num_buckets: any/scalar host int64, strong_hash: any/scalar host bool, salt: any/vector host int64) -> "
    "(output_indices: int64, output_values: int64, output_shape: int64)",
    N=INT(minimum=0),
    **_KINDS,
)


def _columns(
    indices: list[torch.Tensor], values: list[Any], shapes: list[torch.Tensor], dense_inputs: list[Any]
) -> list[list[list[Any]]]:
    """For each column, the features of each row. Sparse columns come first, then dense ones."""
    sizes = [int(shape[0]) for shape in shapes] + [each.shape[0] for each in dense_inputs]
    if len(set(sizes)) > 1:
        raise InvalidArgumentError(None, None, f"Expected batch size {sizes[0]} for every column, got {sizes}")
    return [*map(rows_of_sparse, indices, values, shapes), *map(rows_of_dense, dense_inputs)]


def rows_of_sparse(indices: torch.Tensor, values: Any, shape: torch.Tensor) -> list[list[Any]]:
    """The features of each row of a sparse column."""
    if len(values) != len(indices):
        raise InvalidArgumentError(None, None, f"Expected size of values to be {len(indices)} got {len(values)}")
    flat_positions(indices, sizes_of(shape))
    column: list[list[Any]] = [[] for _ in range(int(shape[0]))]
    for row, item in zip(indices[:, 0].tolist(), values.tolist()):
        column[row].append(item)
    return column


def rows_of_dense(values: Any) -> list[list[Any]]:
    """The features of each row of a dense column."""
    return values.tolist()


def crossed(columns: list[list[list[Any]]]) -> tuple[torch.Tensor, list[tuple[Any, ...]], torch.Tensor]:
    """All combinations of one feature from each column, for each row. The last column varies fastest."""
    rows = len(columns[0]) if columns else 0
    places: list[tuple[int, int]] = []
    combinations: list[tuple[Any, ...]] = []
    widest = 0
    for row in range(rows):
        found = list(itertools.product(*(column[row] for column in columns)))
        places.extend((row, i) for i in range(len(found)))
        combinations.extend(found)
        widest = max(widest, len(found))
    return (
        torch.tensor(places, dtype=torch.int64).reshape(-1, 2),
        combinations,
        torch.tensor([rows, widest], dtype=torch.int64),
    )


def _text(feature: Any) -> bytes:
    return feature if isinstance(feature, bytes) else str(feature).encode()


def joined_features(combinations: list[tuple[Any, ...]], separator: bytes) -> np.ndarray:
    values = np.empty(len(combinations), dtype=object)
    values[:] = [separator.join(_text(feature) for feature in combination) for combination in combinations]
    return values


def _hashed_cross(
    indices: list[torch.Tensor], values: list[Any], shapes: list[torch.Tensor], dense_inputs: list[Any],
    num_buckets: int, hash_key: int,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor] | None:  # fmt: skip
    """The result of a hashed cross in a native loop; None if that is not possible, also if the columns do not fit each other."""
    if _native is None:
        return None
    columns: list[tuple[torch.Tensor, torch.Tensor | None, int, int]] = []
    batches: set[int] = set()
    for places, column, shape in zip(indices, values, shapes):
        hashes, sizes = _hashes(column), shape.tolist()
        if len(sizes) != 2 or places.shape != (len(hashes), 2) or not places.is_contiguous() or not places.is_cpu:
            return None
        columns.append((hashes, places, len(hashes), sizes[1]))
        batches.add(sizes[0])
    for column in dense_inputs:
        if column.ndim != 2:
            return None
        columns.append(
            (_hashes(column), None, column.size if isinstance(column, np.ndarray) else column.numel(), column.shape[1])
        )
        batches.add(column.shape[0])
    if len(batches) != 1:
        return None
    (batch,) = batches
    found = _native.cross(columns, batch, num_buckets or 2**63 - 1, hash_key & 0xFFFFFFFFFFFFFFFF)
    if found is None:
        return None
    places, buckets = (torch.from_numpy(np.frombuffer(each, np.int64)) for each in found[:2])
    return places.view(-1, 2), buckets, torch.tensor([batch, found[2]])


def _hashes(column: Any) -> torch.Tensor:
    """Fingerprints of strings, or integers unchanged, as the bits of an int64 vector."""
    if isinstance(column, np.ndarray):
        hashes = np.empty(column.size, np.uint64)
        if strings is None:
            hashes[:] = hashing.fingerprint64_many(column.reshape(-1).tolist())
        else:
            strings.fingerprints(np.ascontiguousarray(column), hashes)
        return torch.from_numpy(hashes.view(np.int64))
    return column.reshape(-1).contiguous()


@SPARSE_CROSS.kernel
def sparse_cross_kernel(
    indices: list[torch.Tensor], values: list[Any], shapes: list[torch.Tensor], dense_inputs: list[Any],
    *, hashed_output: bool, num_buckets: int, hash_key: int,
) -> Any:  # fmt: skip
    if hashed_output:
        found = _hashed_cross(indices, values, shapes, dense_inputs, num_buckets, hash_key)
        if found is not None:
            return found
    columns = _columns(indices, values, shapes, dense_inputs)
    places, combinations, shape = crossed(columns)
    if not hashed_output:
        return places, joined_features(combinations, b"_X_"), shape
    if not combinations:
        return places, torch.zeros(0, dtype=torch.int64), shape
    parts = []
    for column in zip(*combinations):
        if isinstance(column[0], bytes):
            parts.append(hashing.fingerprint64_many(list(column)))
        else:
            parts.append(np.array(column, dtype=np.int64).astype(np.uint64))
    return places, torch.from_numpy(hashing.cross_buckets(parts, num_buckets, hash_key)), shape


@SPARSE_CROSS_V2.kernel
def sparse_cross_v2_kernel(
    indices: list[torch.Tensor], values: list[Any], shapes: list[torch.Tensor], dense_inputs: list[Any], sep: np.ndarray
) -> Any:
    places, combinations, shape = crossed(_columns(indices, values, shapes, dense_inputs))
    return places, joined_features(combinations, sep.item()), shape


@SPARSE_CROSS_HASHED.kernel
def sparse_cross_hashed_kernel(
    indices: list[torch.Tensor], values: list[Any], shapes: list[torch.Tensor], dense_inputs: list[Any],
    num_buckets: int, strong_hash: bool, salt: list[int],
) -> Any:  # fmt: skip
    if len(salt) != 2:
        raise InvalidArgumentError(None, None, f'Input "salt" must have length 2 but has length {len(salt)}')
    places, combinations, shape = crossed(_columns(indices, values, shapes, dense_inputs))
    if not combinations:
        return places, torch.zeros(0, dtype=torch.int64), shape
    parts = []
    for column in zip(*combinations):
        # TensorFlow hashes only the lower four bytes of integers.
        texts = [each if isinstance(each, bytes) else (each & 0xFFFFFFFF).to_bytes(4, "little") for each in column]
        parts.append(hashing.siphash64_many(texts, salt) if strong_hash else hashing.fingerprint64_many(texts))
    hashed = parts[0]
    for part in parts[1:]:
        hashed = hashing.fingerprint_cat64(hashed, part)
    return places, torch.from_numpy(hashing.buckets(hashed, num_buckets if num_buckets > 0 else 2**63 - 1)), shape


def _cross_shape(*_: Any) -> tuple[Shape, Shape, Shape]:
    return Shape((None, 2)), Shape((None,)), Shape((2,))


SPARSE_CROSS.shape(_cross_shape)
SPARSE_CROSS_V2.shape(_cross_shape)
SPARSE_CROSS_HASHED.shape(_cross_shape)


def _features(inputs: Any) -> tuple[list[Any], list[Any], list[Any], list[Any]]:
    """Converts columns to the op's inputs: the components of the sparse columns, and the dense columns."""
    if not isinstance(inputs, (list, tuple)):
        raise TypeError("Inputs must be a list")
    if not all(is_sparse(each) or isinstance(each, Tensor) for each in inputs):
        raise TypeError("All inputs must be Tensor or SparseTensor.")
    sparse = [as_sparse(each) for each in inputs if is_sparse(each)]
    dense = [convert_to_tensor(each) for each in inputs if not is_sparse(each)]

    def feature(tensor: Any) -> Any:
        return tensor if tensor.dtype.base_dtype is dtypes.string else casting.cast(tensor, dtypes.int64)

    return (
        [each.indices for each in sparse],
        [feature(each.values) for each in sparse],
        [each.dense_shape for each in sparse],
        [feature(each) for each in dense],
    )


@export("sparse.cross")
def cross(inputs: Any, name: str | None = None, separator: Any = None) -> SparseTensor:
    """Crosses features: all combinations of one feature from each column, joined by "_X_" (or `separator`)."""
    return SparseTensor(*SPARSE_CROSS_V2(*_features(inputs), "_X_" if separator is None else separator, name=name))


@export("sparse.cross_hashed")
def cross_hashed(
    inputs: Any, num_buckets: int = 0, hash_key: int | None = None, name: str | None = None
) -> SparseTensor:
    """Crosses features: all combinations of one feature from each column, hashed to a bucket (any int64 if there are no buckets)."""
    return SparseTensor(
        *SPARSE_CROSS(
            *_features(inputs),
            hashed_output=True,
            num_buckets=num_buckets,
            hash_key=hashing.CROSS_HASH_KEY if hash_key is None else hash_key,
            out_type=dtypes.int64,
            internal_type=dtypes.int64,
            name=name,
        )
    )


# ---- EditDistance -----------------------------------------------------------------------------------------------

_distance_loops: Any = extension("stoker._src.ops.native.distances")
_WHOLE = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.bool)
_FEW_GROUPS = 1 << 16  # of which most may have no sequence

EDIT_DISTANCE = define(
    "EditDistance(hypothesis_indices: matrix int64, hypothesis_values: vector T, hypothesis_shape: int64, "
    "truth_indices: matrix int64, truth_values: vector T, truth_shape: int64) -> (output: float32)",
    normalize=True,
    T=ANY,
).not_differentiable()


def _sequences(indices: torch.Tensor, values: Any, sizes: list[int]) -> dict[tuple[int, ...], list[Any]]:
    if len(indices) != len(values):
        raise InvalidArgumentError(
            None, None, f"Expected as many values as rows of indices, found {len(values)} and {list(indices.shape)}."
        )
    if indices.shape[1] != len(sizes):
        raise InvalidArgumentError(
            None, None, f"Index rank ({indices.shape[1]}) and shape rank ({len(sizes)}) do not match."
        )
    found: dict[tuple[int, ...], list[Any]] = {}
    for where, item in zip(indices.tolist(), values.tolist()):
        found.setdefault(tuple(where[:-1]), []).append(item)
    return found


def levenshtein(first: list[Any], second: list[Any]) -> int:
    """The number of insertions, deletions and substitutions that turn one sequence into the other."""
    previous = list(range(len(second) + 1))
    for i, a in enumerate(first, start=1):
        row = [i]
        for j, b in enumerate(second, start=1):
            row.append(min(previous[j] + 1, row[j - 1] + 1, previous[j - 1] + (a != b)))
        previous = row
    return previous[-1]


def _distances(
    groups: list[int], indices: torch.Tensor, values: Any, truth_indices: torch.Tensor, truth_values: Any
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor] | None:
    """The distance of each pair of sequences, and the lengths of the truths and hypotheses; None if they must be looked at one by one."""
    if (
        _distance_loops is None
        or isinstance(values, np.ndarray)
        or values.dtype not in _WHOLE
        or not numbers.prod(groups) > 0
    ):
        return None
    if numbers.prod(groups) > max(_FEW_GROUPS, len(values) + len(truth_values)):
        return None  # most have no sequence
    starts = [_starts(groups, *given) for given in ((indices, values), (truth_indices, truth_values))]
    if starts[0] is None or starts[1] is None:
        return None
    out = torch.empty(numbers.prod(groups), dtype=torch.int64)
    whole = [each.to(torch.int64).contiguous() for each in (truth_values, values)]
    _distance_loops.distances(out, whole[0], starts[1], whole[1], starts[0], len(out))
    return out, starts[1].diff(), starts[0].diff()


def _starts(groups: list[int], indices: torch.Tensor, values: torch.Tensor) -> torch.Tensor | None:
    """Where the values of each group begin; None if they are not in order, or not those of the groups."""
    if len(indices) != len(values) or indices.shape[1] != len(groups) + 1 or not indices.is_cpu:
        return None
    outer = indices[:, :-1]
    if len(outer) and bool(((outer < 0) | (outer >= torch.tensor(groups))).any()):
        return None
    strides = torch.tensor([numbers.prod(groups[i + 1 :]) for i in range(len(groups))])
    places = (outer * strides).sum(1)
    if bool((places[1:] < places[:-1]).any()):
        return None
    return torch.searchsorted(places, torch.arange(numbers.prod(groups) + 1))


@EDIT_DISTANCE.kernel
def edit_distance_kernel(
    hypothesis_indices: torch.Tensor, hypothesis_values: Any, hypothesis_shape: torch.Tensor,
    truth_indices: torch.Tensor, truth_values: Any, truth_shape: torch.Tensor, *, normalize: bool,
) -> torch.Tensor:  # fmt: skip
    sizes, truth_sizes = sizes_of(hypothesis_shape), sizes_of(truth_shape)
    if len(sizes) != len(truth_sizes) or len(sizes) < 2:
        raise InvalidArgumentError(
            None, None, f"truth_shape {truth_sizes} and hypothesis_shape {sizes} must have one rank of at least 2."
        )
    groups = [max(a, b) for a, b in zip(sizes[:-1], truth_sizes[:-1])]
    together = _distances(groups, hypothesis_indices, hypothesis_values, truth_indices, truth_values)
    if together is not None:
        distances, lengths, others = together
        if normalize:  # without a truth: infinite, unless there is no hypothesis either
            distances = torch.where((lengths == 0) & (others == 0), 0.0, distances.double() / lengths)
        return distances.to(torch.float32).reshape(groups)
    hypotheses = _sequences(hypothesis_indices, hypothesis_values, sizes)
    truths = _sequences(truth_indices, truth_values, truth_sizes)
    result = torch.zeros(allocatable(groups, 4), dtype=torch.float32)
    strides = [numbers.prod(groups[i + 1 :]) for i in range(len(groups))]
    flat = result.reshape(-1)
    for where in sorted({*hypotheses, *truths}):
        hypothesis, truth = hypotheses.get(where, []), truths.get(where, [])
        place = sum(position * stride for position, stride in zip(where, strides))
        if not 0 <= place < len(flat):
            raise InternalError(
                None,
                None,
                f"Got an inner product {place} which would require writing to outside of the buffer for the output "
                f"tensor (max elements {len(flat)})",
            )
        distance = float(levenshtein(truth, hypothesis))
        if normalize:
            distance = distance / len(truth) if truth else (numbers.inf if hypothesis else 0.0)
        flat[place] = distance
    return result


@EDIT_DISTANCE.shape(as_shapes=["hypothesis_shape", "truth_shape"])
def edit_distance_shape(
    hi: Shape, hv: Shape, hypothesis_shape: Shape, ti: Shape, tv: Shape, truth_shape: Shape
) -> Shape:
    for indices, values, sizes in ((hi, hv, hypothesis_shape), (ti, tv, truth_shape)):
        rows, count = indices.of_rank(2)[0], values.of_rank(1)[0]
        if indices.of_rank(2)[1] not in (None, sizes.rank) and sizes.rank is not None:
            raise InvalidArgumentError(
                None, None, f"Index rank ({indices.of_rank(2)[1]}) and shape rank ({sizes.rank}) do not match."
            )
        if rows is not None and count is not None and rows != count:
            raise InvalidArgumentError(
                None, None, f"Number of elements in index ({rows}) and values ({count}) do not match."
            )
    if hypothesis_shape.dims is None or truth_shape.dims is None or len(hypothesis_shape) != len(truth_shape):
        return UNKNOWN_SHAPE
    return Shape(
        None if a is None or b is None else max(a, b) for a, b in zip(hypothesis_shape.dims[:-1], truth_shape.dims[:-1])
    )


@export("edit_distance")
def edit_distance(hypothesis: Any, truth: Any, normalize: bool = True, name: str = "edit_distance") -> Tensor:
    """The Levenshtein distance between the sequences of `hypothesis` and `truth`. With `normalize`, divided by the length of the truth.

    Raises:
        TypeError: an argument is not sparse.
    """
    for label, given in (("Hypothesis", hypothesis), ("Truth", truth)):
        if not is_sparse(given):
            raise TypeError(f"{label} must be a SparseTensor.")
    a, b = as_sparse(hypothesis), as_sparse(truth)
    return EDIT_DISTANCE(
        a.indices, a.values, a.dense_shape, b.indices, b.values, b.dense_shape, normalize=normalize, name=name
    )
