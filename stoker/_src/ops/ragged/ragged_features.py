"""Ragged tensors as features: crosses of columns, filling of empty rows, and encoding as variants."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import INDEX, DType
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.shapes import SCALAR, UNKNOWN_SHAPE, Shape
from stoker._src.formats import hashing
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import ANY, BOOL, INT, STRING, TYPE, TYPES, define, one_of
from stoker._src.graph.sparse_tensor import SparseTensor, is_sparse
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import casting, shaping
from stoker._src.ops.control_flow.tensor_list_values import on_one_device
from stoker._src.ops.ragged.ragged_tensor import RaggedTensor
from stoker._src.ops.sparse import sparse_reductions
from stoker._src.ops.sparse.sparse_features import crossed, joined_features, rows_of_dense, rows_of_sparse
from stoker._src.ops.sparse.sparse_functions import as_sparse
from stoker._src.ops.support.values import torch_dtype

_FEATURES = (dtypes.int64, dtypes.string)


def _invalid(message: str) -> InvalidArgumentError:
    return InvalidArgumentError(None, None, message)


# ---- RaggedCross ------------------------------------------------------------------------------------------------

RAGGED_CROSS = define(
    "RaggedCross(ragged_values: [ragged_values_types], ragged_row_splits: [ragged_splits_types], "
    "sparse_indices: Nsparse * int64, sparse_values: [sparse_values_types], sparse_shape: Nsparse * int64, "
    "dense_inputs: [dense_types]) -> (output_values: out_values_type, output_row_splits: out_row_splits_type)",
    Nsparse=INT(minimum=0),
    input_order=STRING,
    hashed_output=BOOL,
    num_buckets=INT(minimum=0),
    hash_key=INT,
    ragged_values_types=TYPES(allowed=_FEATURES, minimum=0),
    ragged_splits_types=TYPES(allowed=INDEX, minimum=0),
    sparse_values_types=TYPES(allowed=_FEATURES, minimum=0),
    dense_types=TYPES(allowed=_FEATURES, minimum=0),
    out_values_type=_FEATURES,
    out_row_splits_type=INDEX,
)


def _rows_of_ragged(values: Any, row_splits: torch.Tensor) -> list[list[Any]]:
    cuts, items = row_splits.tolist(), values.tolist()
    if not cuts or cuts[0] != 0 or cuts[-1] != len(items) or any(a > b for a, b in zip(cuts, cuts[1:])):  # noqa: RUF007
        raise _invalid(f"Invalid row splits {cuts} for {len(items)} values.")
    return [items[start:stop] for start, stop in zip(cuts, cuts[1:])]  # noqa: RUF007


@RAGGED_CROSS.kernel
def ragged_cross_kernel(
    ragged_values: list[Any], ragged_row_splits: list[torch.Tensor], sparse_indices: list[torch.Tensor],
    sparse_values: list[Any], sparse_shape: list[torch.Tensor], dense_inputs: list[Any],
    *, input_order: str, hashed_output: bool, num_buckets: int, hash_key: int, out_row_splits_type: DType,
) -> Any:  # fmt: skip
    columns = {
        "R": [_rows_of_ragged(*parts) for parts in zip(ragged_values, ragged_row_splits, strict=True)],
        "S": [rows_of_sparse(*parts) for parts in zip(sparse_indices, sparse_values, sparse_shape, strict=True)],
        "D": [rows_of_dense(each) for each in dense_inputs],
    }
    given = "".join(sorted(input_order))
    if given != "".join(sorted("".join(kind * len(found) for kind, found in columns.items()))):
        raise _invalid(f"input_order {input_order!r} does not name each input once.")
    sources = {kind: iter(found) for kind, found in columns.items()}
    ordered = [next(sources[kind]) for kind in input_order]
    if len({len(column) for column in ordered}) > 1:
        raise _invalid("inputs must all have the same batch dimension size.")
    places, combinations, _ = crossed(ordered)
    counts = torch.bincount(places[:, 0], minlength=len(ordered[0]) if ordered else 0)
    splits = torch.cat([counts.new_zeros(1), counts.cumsum(0)]).to(torch_dtype(out_row_splits_type))
    if not hashed_output:
        return joined_features(combinations, b"_X_"), splits
    if not combinations:
        return torch.zeros(0, dtype=torch.int64), splits
    parts = [
        hashing.fingerprint64_many(list(column)) if isinstance(column[0], bytes) else np.array(column, np.int64).view(np.uint64)
        for column in zip(*combinations)
    ]  # fmt: skip
    return torch.from_numpy(hashing.cross_buckets(parts, num_buckets, hash_key)), splits


@RAGGED_CROSS.shape
def ragged_cross_shape(*inputs: Any) -> tuple[Shape, Shape]:
    values, splits, _, sparse_values, sparse_shape, dense = inputs
    if len(values) != len(splits):
        raise _invalid("ragged values and splits must have the same length.")
    if len(sparse_values) != len(sparse_shape):
        raise _invalid("sparse indices, values, and shapes must have the same length.")
    lengths = [each.of_rank(1)[0] for each in splits]
    rows = {length - 1 for length in lengths if length is not None}
    rows |= {count for count in (each.of_rank(2)[0] for each in dense) if count is not None}
    if len(rows) > 1:
        raise _invalid("inputs must all have the same batch dimension size.")
    return Shape((None,)), Shape((rows.pop() + 1 if rows else None,))


def _cross(inputs: Any, name: str | None, **how: Any) -> RaggedTensor:
    """Crosses columns that may be ragged, sparse or dense.

    Raises:
        TypeError: `inputs` is not a list.
        ValueError: a column is not a matrix.
    """
    if not isinstance(inputs, (tuple, list)):
        raise TypeError("Inputs must be a list")
    order = ""
    ragged: list[RaggedTensor] = []
    sparse: list[SparseTensor] = []
    dense: list[Tensor] = []
    for each in inputs:
        if isinstance(each, RaggedTensor):
            if each.ragged_rank != 1 or each.static_shape.rank not in (None, 2):
                raise ValueError("tf.ragged.cross only supports inputs with rank=2")
            ragged.append(each)
            order += "R"
        elif is_sparse(each):
            sparse.append(as_sparse(each))
            order += "S"
        else:
            dense.append(convert_to_tensor(each))
            if dense[-1].static_shape.rank not in (None, 2):
                raise ValueError("tf.ragged.cross only supports inputs with rank=2")
            order += "D"

    def feature(tensor: Any) -> Any:
        if not (tensor.dtype.is_integer or tensor.dtype.base_dtype is dtypes.string):
            raise ValueError(f"Unexpected dtype for inputs: {tensor.dtype!r}")
        return tensor if tensor.dtype.base_dtype is dtypes.string else casting.cast(tensor, dtypes.int64)

    splits = [each.row_splits for each in ragged]
    wide = not splits or any(each.dtype.base_dtype is dtypes.int64 for each in splits)
    out = dtypes.int64 if wide else dtypes.int32
    values, cuts = RAGGED_CROSS(
        [feature(each.values) for each in ragged],
        splits,
        [each.indices for each in sparse],
        [feature(each.values) for each in sparse],
        [each.dense_shape for each in sparse],
        [feature(each) for each in dense],
        input_order=order,
        out_row_splits_type=out,
        name=name,
        **how,
    )
    return RaggedTensor._make(values, cuts)


@export("ragged.cross")
def cross(inputs: Any, name: str | None = None) -> RaggedTensor:
    """Crosses features: all combinations of one feature from each column (ragged, sparse or dense), joined by "_X_"."""
    return _cross(inputs, name, hashed_output=False, num_buckets=0, hash_key=0, out_values_type=dtypes.string)


@export("ragged.cross_hashed")
def cross_hashed(
    inputs: Any, num_buckets: int = 0, hash_key: int | None = None, name: str | None = None
) -> RaggedTensor:
    """Crosses features: all combinations of one feature from each column, hashed to a bucket (any int64 if there are no buckets)."""
    key = hashing.CROSS_HASH_KEY if hash_key is None else hash_key
    return _cross(inputs, name, hashed_output=True, num_buckets=num_buckets, hash_key=key, out_values_type=dtypes.int64)


# ---- RaggedFillEmptyRows ----------------------------------------------------------------------------------------

RAGGED_FILL_EMPTY_ROWS = define(
    "RaggedFillEmptyRows(value_rowids: vector int64, values: vector T, nrows: scalar host int64, default_value: scalar T) -> "
    "(output_value_rowids: int64, output_values: T, empty_row_indicator: bool, reverse_index_map: int64)",
    T=ANY,
)


@RAGGED_FILL_EMPTY_ROWS.kernel
def ragged_fill_empty_rows_kernel(value_rowids: torch.Tensor, values: Any, nrows: int, default_value: Any) -> Any:
    if len(value_rowids) != len(values):
        raise _invalid(
            f"The length of `values` ({len(values)}) must match the first dimension of `value_rowids` ({len(value_rowids)})."
        )
    if nrows < 0 or (nrows == 0 and len(values)):
        raise _invalid(f"Received SparseTensor with dense_shape[0] = {nrows} but indices.shape[0] = {len(values)}")
    rows, filled, empty, back = sparse_reductions.sparse_fill_empty_rows_kernel(
        value_rowids[:, None], values, torch.tensor([nrows]), default_value
    )
    return rows[:, 0].clone(), filled, empty, back


@RAGGED_FILL_EMPTY_ROWS.shape(values=["nrows"])
def ragged_fill_empty_rows_shape(value_rowids: Shape, values: Shape, nrows: Any, default_value: Shape) -> Any:
    count = value_rowids.of_rank(1).merge(values.of_rank(1))
    return Shape((None,)), Shape((None,)), Shape((None if nrows is None else int(nrows),)), count


RAGGED_FILL_EMPTY_ROWS_GRAD = define(
    "RaggedFillEmptyRowsGrad(reverse_index_map: vector int64, grad_values: vector T) -> (d_values: T, d_default_value: T)",
    T=ANY,
)
RAGGED_FILL_EMPTY_ROWS_GRAD.kernel(sparse_reductions.sparse_fill_empty_rows_grad_kernel)
RAGGED_FILL_EMPTY_ROWS_GRAD.shape(sparse_reductions.sparse_fill_empty_rows_grad_shape)


@RAGGED_FILL_EMPTY_ROWS.grad
def ragged_fill_empty_rows_grad(op: Operation, _rows: Any, g: Tensor, *_: Any) -> Any:
    of_values, of_default = RAGGED_FILL_EMPTY_ROWS_GRAD(op.outputs[3], g)
    return None, of_values, None, of_default


# ---- ragged tensors as variants ---------------------------------------------------------------------------------


class RaggedVariant:
    """The components of a ragged tensor as one value. A plain tensor has no splits."""

    __slots__ = ("splits", "values")

    def __init__(self, splits: list[torch.Tensor], values: Any) -> None:
        self.splits, self.values = splits, values


def _variants(items: list[RaggedVariant]) -> np.ndarray:
    result = np.empty(len(items), dtype=object)
    result[:] = items
    return result


_PARTS = {"Tvalues": ANY, "Tsplits": one_of(*INDEX, default=dtypes.int64)}
RAGGED_TENSOR_TO_VARIANT = define(
    "RaggedTensorToVariant(rt_nested_splits: RAGGED_RANK * Tsplits, rt_dense_values: Tvalues) -> (encoded_ragged: variant)",
    RAGGED_RANK=INT(minimum=0),
    **_PARTS,
    batched_input=BOOL,
)


def _row(splits: list[torch.Tensor], values: Any, row: int) -> RaggedVariant:
    """Row `row` of a ragged tensor, with splits that start at zero."""
    if not splits:
        return RaggedVariant([], _copied(values[row]))
    start, stop = int(splits[0][row]), int(splits[0][row + 1])
    inner = []
    for cuts in splits[1:]:
        part = cuts[start : stop + 1]
        start, stop = int(part[0]), int(part[-1])
        inner.append(part - start)
    return RaggedVariant(inner, _copied(values[start:stop]))


def _copied(values: Any) -> Any:
    return values.clone() if isinstance(values, torch.Tensor) else np.array(values, dtype=object)


@RAGGED_TENSOR_TO_VARIANT.kernel
def ragged_tensor_to_variant_kernel(
    rt_nested_splits: list[torch.Tensor], rt_dense_values: Any, *, batched_input: bool
) -> Any:
    if not batched_input:
        return RaggedVariant([splits.clone() for splits in rt_nested_splits], _copied(rt_dense_values))
    if not rt_nested_splits:
        if not rt_dense_values.ndim:
            raise _invalid("A batch of tensors needs values with at least one dimension.")
        return _variants([_row([], rt_dense_values, row) for row in range(rt_dense_values.shape[0])])
    rows = len(rt_nested_splits[0]) - 1
    return _variants([_row(rt_nested_splits, rt_dense_values, row) for row in range(rows)])


@RAGGED_TENSOR_TO_VARIANT.shape
def ragged_tensor_to_variant_shape(
    rt_nested_splits: list[Shape], rt_dense_values: Shape, *, batched_input: bool
) -> Shape:
    if not batched_input:
        return SCALAR
    if not rt_nested_splits:
        return Shape(rt_dense_values.at_least(1).dims[:1]) if rt_dense_values.dims is not None else Shape((None,))  # type: ignore[index]
    size = rt_nested_splits[0].of_rank(1)[0]
    return Shape((None if size is None else size - 1,))


RAGGED_TENSOR_FROM_VARIANT = define(
    "RaggedTensorFromVariant(encoded_ragged: variant) -> "
    "(output_nested_splits: output_ragged_rank * Tsplits, output_dense_values: Tvalues)",
    input_ragged_rank=INT(minimum=-1),
    output_ragged_rank=INT(minimum=0),
    Tvalues=TYPE,
    Tsplits=one_of(*INDEX, default=dtypes.int64),
)


def _stacked_rows(items: list[RaggedVariant], ragged_rank: int, Tvalues: DType, Tsplits: DType) -> RaggedVariant:
    """Stacks ragged tensors (or tensors) as the rows of a ragged tensor with one more partition."""
    kind = torch_dtype(Tsplits)
    if not items:
        nothing: Any = np.empty(0, object) if Tvalues is dtypes.string else torch.zeros(0, dtype=torch_dtype(Tvalues))
        return RaggedVariant([torch.zeros(1, dtype=kind) for _ in range(ragged_rank + 1)], nothing)
    sizes = [len(item.splits[0]) - 1 if item.splits else item.values.shape[0] for item in items]
    outer = torch.tensor([0, *np.cumsum(sizes).tolist()], dtype=kind)
    inner = []
    for level in range(ragged_rank):
        parts, base = [torch.zeros(1, dtype=kind)], 0
        for item in items:
            parts.append(item.splits[level][1:].to(kind) + base)
            base += int(item.splits[level][-1])
        inner.append(torch.cat(on_one_device(parts)))
    values = [item.values for item in items]
    joined = torch.cat(on_one_device(values)) if isinstance(values[0], torch.Tensor) else np.concatenate(values)
    return RaggedVariant([outer, *inner], joined)


@RAGGED_TENSOR_FROM_VARIANT.kernel
def ragged_tensor_from_variant_kernel(
    encoded_ragged: Any, *, input_ragged_rank: int, output_ragged_rank: int, Tvalues: DType, Tsplits: DType
) -> Any:
    encoded = encoded_ragged if isinstance(encoded_ragged, np.ndarray) else np.array(encoded_ragged, dtype=object)
    rank = encoded.ndim
    inner = output_ragged_rank - rank if input_ragged_rank == -1 else input_ragged_rank
    if inner < 0:
        raise _invalid(f"output_ragged_rank {output_ragged_rank} is less than the rank {rank} of encoded_ragged.")
    if inner + rank != output_ragged_rank:
        raise _invalid(
            f"output_ragged_rank must be equal to input_ragged_rank + encoded_ragged.dims(); output_ragged_rank: {output_ragged_rank}, input_ragged_rank: {inner}, encoded_ragged.dims(): {rank}"
        )
    for item in encoded.reshape(-1).tolist():
        if not isinstance(item, RaggedVariant):
            raise _invalid("encoded_ragged holds something else than ragged tensors.")
        if len(item.splits) != inner:
            raise _invalid(
                f"Encoded input RaggedTensorVariant has ragged_rank={len(item.splits)}.  Expected ragged_rank={inner}."
            )

    def joined(part: np.ndarray, depth: int) -> RaggedVariant:
        if part.ndim == 0:
            return part.item()
        return _stacked_rows(
            [joined(np.asarray(row, dtype=object), depth - 1) for row in part], inner + depth - 1, Tvalues, Tsplits
        )

    result = joined(encoded, rank)
    return [splits.to(torch_dtype(Tsplits)) for splits in result.splits], _copied(result.values)


@RAGGED_TENSOR_FROM_VARIANT.shape
def ragged_tensor_from_variant_shape(encoded_ragged: Shape, *, output_ragged_rank: int) -> Any:
    return [Shape((None,))] * output_ragged_rank, UNKNOWN_SHAPE


RAGGED_TENSOR_TO_VARIANT_GRADIENT = define(
    "RaggedTensorToVariantGradient(encoded_ragged_grad: variant, row_splits: vector Tsplits, dense_values_shape: vector host int32) -> "
    "(dense_values_grad: Tvalues)",
    Tvalues=TYPE,
    Tsplits=one_of(*INDEX, default=dtypes.int64),
)


@RAGGED_TENSOR_TO_VARIANT_GRADIENT.kernel
def ragged_tensor_to_variant_gradient_kernel(
    encoded_ragged_grad: Any, row_splits: torch.Tensor, dense_values_shape: list[int], *, Tvalues: DType
) -> torch.Tensor:
    encoded = encoded_ragged_grad
    items = encoded.reshape(-1).tolist() if isinstance(encoded, np.ndarray) else [encoded]
    values = [item.values for item in items]
    if not values:
        return torch.zeros(dense_values_shape, dtype=torch_dtype(Tvalues))
    stacked = torch.stack(values) if not len(row_splits) and isinstance(encoded, np.ndarray) else torch.cat(values)
    return stacked.reshape(dense_values_shape)


RAGGED_TENSOR_TO_VARIANT_GRADIENT.shape(
    lambda encoded_ragged_grad, row_splits, dense_values_shape: dense_values_shape, as_shapes=["dense_values_shape"]
)


@RAGGED_TENSOR_TO_VARIANT.grad
def ragged_tensor_to_variant_grad(op: Operation, g: Tensor) -> Any:
    """The incoming gradient is a variant of the same form. Its concatenated values are the gradient of the values."""
    values, splits = op.inputs[-1], op.inputs[:-1]
    cuts = splits[0] if splits else convert_to_tensor(np.zeros(0, np.int32))
    of_values = RAGGED_TENSOR_TO_VARIANT_GRADIENT(g, cuts, shaping.shape(values), Tvalues=values.dtype.base_dtype)
    return [*[None] * len(splits), of_values]


@RAGGED_TENSOR_FROM_VARIANT.grad
def ragged_tensor_from_variant_grad(op: Operation, *gradients: Any) -> Any:
    """The gradient is a variant (or one variant for each row) of the gradients of the values."""
    *_, g = gradients
    rank = op.inputs[0].static_shape.rank
    if rank not in (0, 1):
        raise NotImplementedError(
            f"The gradient of RaggedTensorFromVariant is known for variants of rank 0 and 1, not {rank}."
        )
    return RAGGED_TENSOR_TO_VARIANT(list(op.outputs[:-1]), g, batched_input=rank == 1)
