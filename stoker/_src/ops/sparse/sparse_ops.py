"""Sparse ops: they take the three components of each operand and return the components of the result."""

from __future__ import annotations

import math as numbers
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from stoker._src.base.dtypes import INDEX, NUMERIC, REAL
from stoker._src.base.errors import InternalError, InvalidArgumentError
from stoker._src.base.extensions import extension
from stoker._src.base.shapes import Shape, merge_dims
from stoker._src.graph.definition import ANY, INT, OpDefinition, all_merged, define
from stoker._src.graph.planning import Prepared
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import gathering, ranges, shaping
from stoker._src.ops.array.uneven_rows import sparse_to_dense_of_rows
from stoker._src.ops.math import arithmetic, reductions
from stoker._src.ops.support import table_rows
from stoker._src.ops.support.movement import allocatable, checked_sizes, itemsize, signed

strings = extension("stoker._src.ops.native.strings")

_MATRIX, _VECTOR = Shape((None, None)), Shape((None,))

# ---- coordinates ------------------------------------------------------------------------------------------------


def sizes_of(shape: torch.Tensor) -> list[int]:
    return checked_sizes(shape.tolist())


def check_parts(indices: torch.Tensor, values: Any, sizes: list[int]) -> None:
    """Raises InvalidArgumentError if indices, values and shape do not form a sparse tensor."""
    if values.ndim != 1 or indices.ndim != 2 or indices.shape[0] != values.shape[0]:
        raise InvalidArgumentError(
            None,
            None,
            f"Number of elements in indices ({indices.shape[0] if indices.ndim else 0}) and values do not match: "
            f"indices {Shape(indices.shape)}, values {Shape(values.shape)}",
        )
    _check_rank(indices, sizes)


def _check_rank(indices: torch.Tensor, sizes: list[int]) -> None:
    if indices.ndim != 2 or indices.shape[1] != len(sizes):
        raise InvalidArgumentError(
            None,
            None,
            f"indices {Shape(indices.shape)} and shape do not match: indices must be [N, {len(sizes)}] for the shape {sizes}",
        )


def _outside(indices: torch.Tensor, sizes: list[int]) -> torch.Tensor:
    return ((indices < 0) | (indices >= torch.tensor(sizes, device=indices.device))).any(1)


def sort_keys(indices: torch.Tensor, sizes: list[int]) -> torch.Tensor:
    """Integer keys that sort like the coordinates; equal coordinates have equal keys. Coordinates may be out of bounds."""
    _check_rank(indices, sizes)
    if not len(sizes) or not len(indices):
        return indices.new_zeros(indices.shape[0])
    is_small = numbers.prod(map(abs, sizes)) < 2**63
    flat = table_rows.flatten(indices, sizes) if is_small else None
    if flat is not None:
        return flat
    if not is_small or bool(_outside(indices, sizes).any()):
        return torch.unique(indices, dim=0, return_inverse=True)[1]
    return _flat(indices, sizes)


def distinct(keys: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """For each distinct key, in sorted order, the position of one occurrence; and for each position, the rank of its key."""
    found, places = torch.unique(keys, return_inverse=True)
    one = places.new_empty(len(found)).scatter_(0, places, torch.arange(len(keys), device=keys.device))
    return one, places


def _flat(indices: torch.Tensor, sizes: list[int]) -> torch.Tensor:
    flat = indices[:, 0]
    for axis in range(1, len(sizes)):
        flat = flat * sizes[axis] + indices[:, axis]
    return flat


def flat_positions(indices: torch.Tensor, sizes: list[int]) -> torch.Tensor:
    """Converts coordinates to positions in the flat tensor.

    Raises:
        InvalidArgumentError: coordinates are out of bounds, or have another rank.
    """
    _check_rank(indices, sizes)
    if not len(sizes):
        return indices.new_zeros(indices.shape[0])
    flat = table_rows.flatten(indices, sizes)
    if flat is not None:
        return flat
    indices = indices.long()
    outside = _outside(indices, sizes)
    if bool(outside.any()):
        at = int(torch.nonzero(outside)[0])
        shown = ",".join(str(each) for each in indices[at].tolist())
        raise InvalidArgumentError(
            None, None, f"indices[{at}] = [{shown}] is out of bounds: need 0 <= index < {Shape(sizes)}"
        )
    return _flat(indices, sizes)


def coordinates(flat: torch.Tensor, sizes: list[int]) -> torch.Tensor:
    """Converts positions in the flat tensor to coordinates. Positions out of bounds follow the same arithmetic."""
    columns: list[torch.Tensor] = []
    for axis in range(len(sizes)):
        step = max(1, numbers.prod(sizes[axis + 1 :]))
        columns.append(torch.div(flat, step, rounding_mode="trunc"))
        flat = torch.fmod(flat, step)
    return torch.stack(columns, 1) if columns else flat.new_zeros((flat.shape[0], 0))


def check_order(flat: torch.Tensor, indices: torch.Tensor) -> None:
    if flat.numel() < 2 or bool((flat[1:] > flat[:-1]).all()):
        return
    steps = flat[1:] - flat[:-1]
    bad = torch.nonzero(steps <= 0).reshape(-1)
    if bad.numel():
        at = int(bad[0]) + 1
        shown = ",".join(str(each) for each in indices[at].tolist())
        if int(steps[at - 1]) == 0:
            raise InvalidArgumentError(None, None, f"indices[{at}] = [{shown}] is repeated")
        raise InvalidArgumentError(
            None,
            None,
            f"indices[{at}] = [{shown}] is out of order. Many sparse ops require sorted indices. Use `tf.sparse.reorder` to create a correctly ordered copy.",
        )


def pick(values: Any, order: torch.Tensor) -> Any:
    if isinstance(values, np.ndarray):
        return values[order.numpy()]
    return signed(values).index_select(0, order).view(values.dtype)


def _join(values: list[Any]) -> Any:
    return np.concatenate(values) if isinstance(values[0], np.ndarray) else torch.cat(values)


# ---- SparseToDense ----------------------------------------------------------------------------------------------

SPARSE_TO_DENSE = define(
    "SparseToDense(sparse_indices: Tindices, output_shape: vector host Tindices, sparse_values: T, default_value: any/scalar T) -> (dense: T)",
    validate_indices=True,
    T=ANY,
    Tindices=INDEX,
)
SPARSE_TO_DENSE.small("sparse_to_dense", lambda op: [int(op.attrs["validate_indices"])])


@SPARSE_TO_DENSE.kernel
def sparse_to_dense_kernel(
    sparse_indices: torch.Tensor,
    output_shape: list[int],
    sparse_values: Any,
    default_value: Any,
    *,
    validate_indices: bool,
) -> Any:
    sizes = allocatable(output_shape, itemsize(default_value))
    rows = sparse_indices
    if rows.ndim < 2:
        rows = rows.reshape(-1, 1)
    if isinstance(sparse_values, torch.Tensor):
        placed = table_rows.placed(rows, sizes, sparse_values, default_value, ascending=validate_indices)
        if placed is not None:
            return placed
    elif strings is not None and validate_indices and (len(sizes), sparse_values.ndim, default_value.size) == (2, 1, 1):
        result: Any = np.empty(sizes, dtype=object)
        at, values = rows.to(torch.int64).contiguous().numpy(), np.ascontiguousarray(sparse_values)
        if strings.place(at, *sizes, values, default_value.item(), result):
            return result
    flat = flat_positions(rows, sizes)
    if validate_indices:
        check_order(flat, rows)
    if sparse_values.ndim and sparse_values.shape[0] != flat.shape[0]:
        raise InvalidArgumentError(
            None,
            None,
            f"sparse_values has incorrect shape {Shape(sparse_values.shape)}, should be [] or [{flat.shape[0]}]",
        )
    total = numbers.prod(sizes)
    if isinstance(sparse_values, np.ndarray):
        result = np.broadcast_to(default_value, total).copy()
        result[flat.numpy()] = sparse_values if sparse_values.ndim else sparse_values[()]
        return result.reshape(sizes)
    result = default_value.expand(total).clone()
    signed(result)[flat] = signed(sparse_values)
    return result.reshape(sizes)


def _prepared_to_dense(op: Operation, shape_of: Any) -> Prepared | None:
    """The positions are computed and checked on the host; the device only writes the values."""
    if not (op.outputs[0].dtype.is_floating or op.outputs[0].dtype.is_complex):
        return None

    def prepare(indices: torch.Tensor, output_shape: list[int]) -> tuple[torch.Tensor]:
        rows = indices if indices.ndim == 2 else indices.reshape(-1, 1)
        flat = flat_positions(rows, allocatable(output_shape, 1))
        if op.attrs["validate_indices"]:
            check_order(flat, rows)
        return (flat,)

    def kernel(output_shape: list[int], values: Any, default_value: Any, flat: torch.Tensor, **attributes: Any) -> Any:
        if values.ndim and values.shape[0] != flat.shape[0]:
            raise InvalidArgumentError(
                None,
                None,
                f"sparse_values has incorrect shape {Shape(values.shape)}, should be [] or [{flat.shape[0]}]",
            )
        result = default_value.expand(numbers.prod(output_shape)).clone()
        return result.index_copy_(0, flat, values.expand(flat.shape)).reshape(output_shape)

    keeps = ("output_shape", "sparse_values", "default_value")
    return Prepared(("sparse_indices", "output_shape"), prepare, 1, keeps, kernel)


SPARSE_TO_DENSE.planning.prepares = _prepared_to_dense


SPARSE_TO_DENSE.ragged_rows(sparse_to_dense_of_rows)


@SPARSE_TO_DENSE.shape(as_shapes=["output_shape"])
def sparse_to_dense_shape(
    sparse_indices: Shape, output_shape: Shape, sparse_values: Shape, default_value: Shape
) -> Shape:
    return output_shape


@SPARSE_TO_DENSE.grad
def sparse_to_dense_grad(op: Operation, g: Tensor) -> Any:
    indices, _, values, _ = op.inputs
    rows = indices
    if indices.static_shape.rank is not None and indices.static_shape.rank < 2:
        rows = shaping.reshape(indices, [-1, 1])
    of_values = gathering.GATHER_ND(g, rows)
    of_default = arithmetic.subtract(reductions.reduce_sum(g), reductions.reduce_sum(of_values))
    if values.static_shape.rank == 0:
        of_values = reductions.reduce_sum(of_values)
    return None, None, of_values, of_default


# ---- SparseReorder, SparseReshape -------------------------------------------------------------------------------

SPARSE_REORDER = define(
    "SparseReorder(input_indices: matrix int64, input_values: vector T, input_shape: vector int64) -> (output_indices: int64, output_values: T)",
    T=ANY,
)


@SPARSE_REORDER.kernel
def sparse_reorder_kernel(input_indices: torch.Tensor, input_values: Any, input_shape: torch.Tensor) -> Any:
    sizes = input_shape.tolist()  # the order does not depend on the sizes
    check_parts(input_indices, input_values, sizes)
    order = torch.argsort(sort_keys(input_indices, sizes), stable=True)
    return input_indices.index_select(0, order), pick(input_values, order)


@SPARSE_REORDER.shape
def sparse_reorder_shape(input_indices: Shape, input_values: Shape, input_shape: Shape) -> Any:
    return input_indices.of_rank(2), input_values.of_rank(1)


@SPARSE_REORDER.grad
def sparse_reorder_grad(op: Operation, _: Any, g: Tensor) -> Any:
    indices, values, shape = op.inputs
    _, order = SPARSE_REORDER(indices, ranges.range(ranges.size(values)), shape)
    return None, gathering.gather(g, shaping.invert_permutation(order)), None


SPARSE_RESHAPE = define(
    "SparseReshape(input_indices: matrix int64, input_shape: vector int64, new_shape: int64) -> (output_indices: int64, output_shape: int64)"
)
SPARSE_RESHAPE.small("sparse_reshape")


@SPARSE_RESHAPE.kernel
def sparse_reshape_kernel(input_indices: torch.Tensor, input_shape: torch.Tensor, new_shape: torch.Tensor) -> Any:
    sizes, wanted = sizes_of(input_shape), new_shape.tolist()
    total, known = numbers.prod(sizes), numbers.prod(size for size in wanted if size != -1)
    if wanted.count(-1) > 1 or any(size < -1 for size in wanted):
        raise InvalidArgumentError(None, None, f"only one output dimension may be -1, and none less: {wanted}")
    if -1 in wanted:
        if known == 0 or total % known:
            raise InvalidArgumentError(
                None,
                None,
                f"Input to reshape is a SparseTensor with {total} dense values, but the requested shape requires a multiple of {known}. input_shape={Shape(sizes)} output_shape={Shape(wanted)}",
            )
        wanted[wanted.index(-1)] = total // known
    elif known != total:
        raise InvalidArgumentError(
            None,
            None,
            f"Input to reshape is a tensor with {total} dense values, but the requested shape has {known}. input_shape={Shape(sizes)} output_shape={Shape(wanted)}",
        )
    _check_rank(input_indices, sizes)
    if len(input_indices) and 0 in (*sizes, *wanted):
        raise InvalidArgumentError(
            None,
            None,
            f"Input tensor has {len(input_indices)} non zero elements but input shape ({Shape(sizes)}) or output shape "
            f"({Shape(wanted)}) is empty",
        )
    if wanted == sizes:
        return input_indices.clone(), torch.tensor(wanted, dtype=torch.int64)
    flat = _flat(input_indices, sizes) if sizes else input_indices.new_zeros(len(input_indices))
    moved = coordinates(flat, wanted)
    return moved, torch.tensor(wanted, dtype=torch.int64)


@SPARSE_RESHAPE.shape
def sparse_reshape_shape(input_indices: Shape, input_shape: Shape, new_shape: Shape) -> Any:
    rank = new_shape.of_rank(1)[0]
    return Shape((input_indices[0], rank)), Shape((rank,))


# ---- SparseConcat, SparseSplit, SparseSlice ---------------------------------------------------------------------

SPARSE_CONCAT = define(
    "SparseConcat(indices: N * int64, values: vector N * T, shapes: N * int64) -> (output_indices: int64, output_values: T, output_shape: int64)",
    concat_dim=INT,
    N=INT(minimum=2),
    T=ANY,
).not_differentiable()


@SPARSE_CONCAT.kernel
def sparse_concat_kernel(
    indices: list[torch.Tensor], values: list[Any], shapes: list[torch.Tensor], *, concat_dim: int
) -> Any:
    sizes = [sizes_of(shape) for shape in shapes]
    rank = len(sizes[0])
    if not -rank <= concat_dim < rank:
        raise InvalidArgumentError(None, None, f"Concat dimension must be in range [{-rank}, {rank}), got {concat_dim}")
    along = concat_dim % rank
    moved, offset = [], 0
    for i, (part, size) in enumerate(zip(indices, sizes)):
        check_parts(part, values[i], size)
        for axis in range(rank):
            if len(size) != rank or (axis != along and size[axis] != sizes[0][axis]):
                raise InvalidArgumentError(
                    None,
                    None,
                    f"Input shapes must match: expected {sizes[0][axis]} for dimension {axis} but got {size[axis] if len(size) == rank else size} at position {i}",
                )
        step = torch.zeros(rank, dtype=torch.int64, device=part.device)
        step[along] = offset
        moved.append(part + step)
        offset += size[along]
    total = list(sizes[0])
    total[along] = offset
    joined, together = torch.cat(moved), _join(values)
    if along:  # every row now has elements from all parts, so restore row-major order
        order = torch.argsort(flat_positions(joined, total), stable=True)
        joined, together = joined.index_select(0, order), pick(together, order)
    return joined, together, torch.tensor(total, dtype=torch.int64)


@SPARSE_CONCAT.shape
def sparse_concat_shape(indices: list[Shape], values: list[Shape], shapes: list[Shape]) -> Any:
    counts = [merge_dims(each.of_rank(2)[0], part.of_rank(1)[0]) for each, part in zip(indices, values)]
    known = [count for count in counts if count is not None]
    total = sum(known) if len(known) == len(counts) else None
    (rank,) = all_merged(shapes).of_rank(1)
    for each in indices:
        merge_dims(each.of_rank(2)[1], rank)
    return Shape((total, rank)), Shape((total,)), Shape((rank,))


SPARSE_SPLIT = define(
    "SparseSplit(split_dim: host int64, indices: int64, values: T, shape: any/vector int64) -> "
    "(output_indices: num_split * int64, output_values: num_split * T, output_shape: num_split * int64)",
    num_split=INT(minimum=1),
    T=ANY,
)


@SPARSE_SPLIT.kernel
def sparse_split_kernel(
    split_dim: int, indices: torch.Tensor, values: Any, shape: torch.Tensor, *, num_split: int
) -> Any:
    sizes = sizes_of(shape)
    if not -len(sizes) <= split_dim < len(sizes):
        raise InvalidArgumentError(
            None, None, f"Input split_dim should be between [{-len(sizes)}, {len(sizes)}), got {split_dim}"
        )
    along = split_dim % len(sizes)
    if num_split > sizes[along]:
        raise InvalidArgumentError(
            None,
            None,
            f"num_split must be no greater than the size {sizes[along]} of dimension {along}, got {num_split}",
        )
    check_parts(indices, values, sizes)
    flat_positions(indices, sizes)
    # If the size is not divisible, the first parts are one larger.
    base, extra = divmod(sizes[along], num_split)
    parts: tuple[list[Any], list[Any], list[Any]] = ([], [], [])
    start = 0
    for i in range(num_split):
        count = base + (i < extra)
        inside = torch.nonzero((indices[:, along] >= start) & (indices[:, along] < start + count)).reshape(-1)
        rows = indices.index_select(0, inside)
        rows[:, along] -= start
        size = list(sizes)
        size[along] = count
        for target, found in zip(parts, (rows, pick(values, inside), torch.tensor(size, dtype=torch.int64))):
            target.append(found)
        start += count
    return parts


@SPARSE_SPLIT.shape
def sparse_split_shape(split_dim: Shape, indices: Shape, values: Shape, shape: Shape, *, num_split: int) -> Any:
    rank = shape[0] if shape.rank == 1 else None
    return [Shape((None, rank))] * num_split, [_VECTOR] * num_split, [Shape((rank,))] * num_split


SPARSE_SLICE = define(
    "SparseSlice(indices: int64, values: T, shape: any/vector int64, start: int64, size: int64) -> "
    "(output_indices: int64, output_values: T, output_shape: int64)",
    T=ANY,
)


@SPARSE_SLICE.kernel
def sparse_slice_kernel(
    indices: torch.Tensor, values: Any, shape: torch.Tensor, start: torch.Tensor, size: torch.Tensor
) -> Any:
    if not len(shape) == len(start) == len(size):
        raise InvalidArgumentError(
            None,
            None,
            f"start {start.tolist()} and size {size.tolist()} must have one entry for each dimension of {shape.tolist()}",
        )
    check_parts(indices, values, sizes_of(shape))
    if bool((size < 0).any()):
        raise InvalidArgumentError(None, None, f"size {size.tolist()} must not be negative")
    end = torch.minimum(start + size, shape)
    inside = torch.nonzero(((indices >= start) & (indices < end)).all(1)).reshape(-1)
    rows = indices.index_select(0, inside) - start
    return rows, pick(values, inside), (end - start).clamp(min=0)


@SPARSE_SLICE.shape
def sparse_slice_shape(indices: Shape, values: Shape, shape: Shape, start: Shape, size: Shape) -> Any:
    rank = shape[0] if shape.rank == 1 else None
    return Shape((None, rank)), _VECTOR, Shape((rank,))


@SPARSE_SLICE.grad
def sparse_slice_gradient(op: Operation, _: Any, g: Tensor, __: Any) -> Any:
    return None, SPARSE_SLICE_GRAD(g, op.inputs[0], op.inputs[3], op.outputs[0]), None, None, None


SPARSE_SLICE_GRAD = define(
    "SparseSliceGrad(backprop_val_grad: any/vector T, input_indices: matrix int64, input_start: any/vector int64, output_indices: any/matrix int64) -> (val_grad: T)",
    T=NUMERIC,
)


def _matched(wanted: torch.Tensor, among: torch.Tensor) -> torch.Tensor:
    """For each coordinate of `wanted` its row in `among`, or -1. The rows of `among` are distinct."""
    if not wanted.shape[0] or not among.shape[0]:
        return wanted.new_full((wanted.shape[0],), -1)
    both = torch.cat([wanted, among])
    _, keys = torch.unique(both, dim=0, return_inverse=True) if both.shape[1] else (None, both.new_zeros(len(both)))
    count = int(keys.max()) + 1
    places = keys.new_full((count,), -1)
    places[keys[wanted.shape[0] :]] = torch.arange(among.shape[0], device=keys.device)
    return places[keys[: wanted.shape[0]]]


def _check_slice_grad(
    gradient: torch.Tensor, input_indices: torch.Tensor, input_start: torch.Tensor, output_indices: torch.Tensor
) -> None:
    rank = input_indices.shape[1]
    if output_indices.shape[1] != rank or input_start.shape[0] != rank:
        raise InvalidArgumentError(
            None,
            None,
            f"The input and output should have the same ndims: got {rank} and {output_indices.shape[1]}, and input_start has {input_start.shape[0]} elements",
        )
    if gradient.shape[0] != output_indices.shape[0]:
        raise InvalidArgumentError(
            None,
            None,
            f"# elements of backprop_val_grad and rows of output_indices should match: {gradient.shape[0]} vs {output_indices.shape[0]}",
        )


@SPARSE_SLICE_GRAD.kernel
def sparse_slice_grad_kernel(
    backprop_val_grad: torch.Tensor,
    input_indices: torch.Tensor,
    input_start: torch.Tensor,
    output_indices: torch.Tensor,
) -> torch.Tensor:
    _check_slice_grad(backprop_val_grad, input_indices, input_start, output_indices)
    places = _matched(output_indices + input_start, input_indices)
    used = int((places >= 0).sum())
    if used != len(places) or len(torch.unique(places)) != used:
        raise InternalError(
            None,
            None,
            f"Elements of backprop_val_grad aren't all propagated. Num elements:{len(places)}, used: {len(torch.unique(places[places >= 0]))}",
        )
    result = backprop_val_grad.new_zeros(input_indices.shape[0])
    signed(result)[places] = signed(backprop_val_grad)
    return result


@SPARSE_SLICE_GRAD.shape
def sparse_slice_grad_shape(
    backprop_val_grad: Shape, input_indices: Shape, input_start: Shape, output_indices: Shape
) -> Shape:
    return Shape((input_indices.of_rank(2)[0],))


# ---- SparseAdd --------------------------------------------------------------------------------------------------

_TWO, _TWO_AT_RUN = (
    ", ".join(f"{side}_indices: {late}matrix int64, {side}_values: {late}vector T, {side}_shape: {first}vector int64"
              for side, first in (("a", ""), ("b", late)))
    for late in ("", "any/")
)  # fmt: skip
SPARSE_ADD = define(
    f"SparseAdd({_TWO_AT_RUN}, thresh: any/scalar Treal) -> (sum_indices: int64, sum_values: T, sum_shape: int64)",
    T=NUMERIC,
    Treal=REAL,
)


def _same_sizes(a_shape: torch.Tensor, b_shape: torch.Tensor) -> list[int]:
    a, b = a_shape.tolist(), b_shape.tolist()
    for axis, (x, y) in enumerate(zip(a, b)):
        if x != y:
            raise InvalidArgumentError(
                None, None, f"Operands' shapes do not match: got {x} and {y} for dimension {axis}"
            )
    if len(a) != len(b):
        raise InvalidArgumentError(None, None, f"Operands' shapes do not match: {a} and {b}")
    return checked_sizes(a)


def _united(
    a_indices: torch.Tensor,
    a_values: Any,
    b_indices: torch.Tensor,
    b_values: Any,
    sizes: list[int],
    *,
    bounded: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The coordinates of both operands, the rows of the distinct ones in order, and the rank of each coordinate in that order."""
    check_parts(a_indices, a_values, sizes)
    check_parts(b_indices, b_values, sizes)
    if bounded:
        flat_positions(a_indices, sizes)
        flat_positions(b_indices, sizes)
    both = torch.cat([a_indices, b_indices])
    return both, *distinct(sort_keys(both, sizes))


@SPARSE_ADD.kernel
def sparse_add_kernel(
    a_indices: torch.Tensor, a_values: torch.Tensor, a_shape: torch.Tensor,
    b_indices: torch.Tensor, b_values: torch.Tensor, b_shape: torch.Tensor, thresh: torch.Tensor,
) -> Any:  # fmt: skip
    sizes = _same_sizes(a_shape, b_shape)
    both, one, places = _united(a_indices, a_values, b_indices, b_values, sizes, bounded=False)
    total = (
        signed(a_values.new_zeros(one.shape[0]))
        .index_add_(0, places, signed(torch.cat([a_values, b_values])))
        .view(a_values.dtype)
    )
    limit = thresh.item()
    if limit > 0:
        # As in TensorFlow, the threshold does not apply to elements that only one operand has.
        alone = torch.bincount(places, minlength=len(total)) == 1
        keep = torch.nonzero(alone | (total.abs() >= limit)).reshape(-1)
        one, total = one[keep], total[keep]
    return both.index_select(0, one), total, a_shape.clone()


@SPARSE_ADD.shape
def sparse_add_shape(a_indices: Shape, a_values: Shape, a_shape: Shape, *_: Shape) -> Any:
    rank = a_shape.of_rank(1)[0]
    return Shape((None, rank)), _VECTOR, Shape((rank,))


@SPARSE_ADD.grad
def sparse_add_gradient(op: Operation, _: Any, g: Tensor, __: Any) -> Any:
    of_a, of_b = SPARSE_ADD_GRAD(g, op.inputs[0], op.inputs[3], op.outputs[0])
    return None, of_a, None, None, of_b, None, None


SPARSE_ADD_GRAD = define(
    "SparseAddGrad(backprop_val_grad: any/vector T, a_indices: matrix int64, b_indices: matrix int64, sum_indices: any/matrix int64) -> (a_val_grad: T, b_val_grad: T)",
    T=NUMERIC,
).not_differentiable()


@SPARSE_ADD_GRAD.kernel
def sparse_add_grad_kernel(
    backprop_val_grad: torch.Tensor, a_indices: torch.Tensor, b_indices: torch.Tensor, sum_indices: torch.Tensor
) -> Any:
    if len(backprop_val_grad) != len(sum_indices):
        raise InvalidArgumentError(
            None,
            None,
            f"# elements of backprop_val_grad and # rows of sum_indices should match (#nnz of sum): got "
            f"{len(backprop_val_grad)} and {len(sum_indices)}",
        )

    def part(indices: torch.Tensor) -> torch.Tensor:
        places = _matched(indices, sum_indices)
        padded = torch.cat([signed(backprop_val_grad), signed(backprop_val_grad.new_zeros(1))])
        return padded[places].view(
            backprop_val_grad.dtype
        )  # -1, for elements dropped by the threshold, selects the zero at the end

    return part(a_indices), part(b_indices)


@SPARSE_ADD_GRAD.shape
def sparse_add_grad_shape(backprop_val_grad: Shape, a_indices: Shape, b_indices: Shape, sum_indices: Shape) -> Any:
    return Shape((a_indices.of_rank(2)[0],)), Shape((b_indices.of_rank(2)[0],))


# ---- two sparse tensors -----------------------------------------------------------------------------------------


def _extreme(name: str, kernel: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> OpDefinition:
    definition = define(
        f"SparseSparse{name}({_TWO}) -> (output_indices: int64, output_values: T)", T=REAL
    ).not_differentiable()

    @definition.kernel
    def extreme_kernel(
        a_indices: torch.Tensor, a_values: torch.Tensor, a_shape: torch.Tensor,
        b_indices: torch.Tensor, b_values: torch.Tensor, b_shape: torch.Tensor,
    ) -> Any:  # fmt: skip
        sizes = _same_sizes(a_shape, b_shape)
        both, one, places = _united(a_indices, a_values, b_indices, b_values, sizes, bounded=True)
        # An element that only one operand has is compared with zero.
        first, second = (signed(a_values.new_zeros(one.shape[0])) for _ in range(2))
        first[places[: a_values.shape[0]]] = signed(a_values)
        second[places[a_values.shape[0] :]] = signed(b_values)
        return both.index_select(0, one), kernel(first, second).view(a_values.dtype)

    @definition.shape
    def extreme_shape(a_indices: Shape, a_values: Shape, a_shape: Shape, *_: Shape) -> Any:
        return Shape((None, a_shape.of_rank(1)[0])), _VECTOR

    return definition


SPARSE_SPARSE_MAXIMUM = _extreme("Maximum", torch.maximum)
SPARSE_SPARSE_MINIMUM = _extreme("Minimum", torch.minimum)
