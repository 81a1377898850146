"""`tf.sets`: sets along the last dimension of tensors. Results are SparseTensors with sorted members."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.shapes import UNKNOWN_SHAPE, Shape
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import STRING, define
from stoker._src.graph.sparse_tensor import SparseTensor, SparseTensorValue
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.sparse import sparse_ops
from stoker._src.ops.support.values import from_numpy

_TYPES = (
    dtypes.int8,
    dtypes.int16,
    dtypes.int32,
    dtypes.int64,
    dtypes.uint8,
    dtypes.uint16,
    dtypes.string,
)
_RESULT = "(result_indices: int64, result_values: T, result_shape: int64)"

DENSE_TO_DENSE = define(
    f"DenseToDenseSetOperation(set1: T, set2: T) -> {_RESULT}", set_operation=STRING, validate_indices=True, T=_TYPES
).not_differentiable()
DENSE_TO_SPARSE = define(
    f"DenseToSparseSetOperation(set1: T, set2_indices: int64, set2_values: T, set2_shape: int64) -> {_RESULT}",
    set_operation=STRING,
    validate_indices=True,
    T=_TYPES,
).not_differentiable()
SPARSE_TO_SPARSE = define(
    "SparseToSparseSetOperation(set1_indices: int64, set1_values: T, set1_shape: int64, set2_indices: int64, "
    f"set2_values: T, set2_shape: int64) -> {_RESULT}",
    set_operation=STRING,
    validate_indices=True,
    T=_TYPES,
).not_differentiable()
SET_SIZE = define(
    "SetSize(set_indices: any/matrix int64, set_values: any/vector T, set_shape: any/vector int64) -> (size: int32)",
    validate_indices=True,
    T=_TYPES,
).not_differentiable()

# The sets of a tensor: the set number of each member, the members' values, and the sizes of all dimensions except the last.
Members = tuple[np.ndarray, np.ndarray, list[int]]


def _of_dense(tensor: Any) -> Members:
    sizes = list(tensor.shape)
    if len(sizes) < 2:
        raise InvalidArgumentError(None, None, f"Shape {Shape(sizes)} has rank {len(sizes)} < 2")
    values = tensor if isinstance(tensor, np.ndarray) else tensor.numpy()
    return np.repeat(np.arange(int(np.prod(sizes[:-1]))), sizes[-1]), values.reshape(-1), sizes[:-1]


def _of_sparse(indices: torch.Tensor, values: Any, shape: torch.Tensor, validate: bool) -> Members:
    sizes = sparse_ops.sizes_of(shape)
    if len(sizes) < 2:
        raise InvalidArgumentError(None, None, f"Invalid rank {len(sizes)}.")
    sparse_ops.check_parts(indices, values, sizes)
    flat = sparse_ops.flat_positions(indices, sizes)
    if validate:
        sparse_ops.check_order(flat, indices)
    groups = sparse_ops.flat_positions(indices[:, :-1], sizes[:-1])
    return groups.numpy(), values if isinstance(values, np.ndarray) else values.numpy(), sizes[:-1]


def _combined(first: Members, second: Members, operation: str) -> tuple[torch.Tensor, Any, torch.Tensor]:
    if first[2] != second[2]:
        raise InvalidArgumentError(None, None, f"Mismatched shapes {Shape(first[2])} vs {Shape(second[2])}")
    members, codes = np.unique(np.concatenate([first[1], second[1]]), return_inverse=True)
    many = max(len(members), 1)
    keys = np.concatenate([first[0], second[0]]) * many + codes
    a, b = keys[: len(first[0])], keys[len(first[0]) :]
    functions = {
        "a-b": lambda: np.setdiff1d(a, b),
        "b-a": lambda: np.setdiff1d(b, a),
        "intersection": lambda: np.intersect1d(a, b),
        "union": lambda: np.union1d(a, b),
    }
    if operation.lower() not in functions:
        raise InvalidArgumentError(None, None, f"Invalid set_operation {operation}.")
    found = functions[operation.lower()]()
    groups = found // many
    places = np.arange(len(found)) - np.searchsorted(groups, groups)  # the position of each member in its set
    sizes = first[2]
    indices = np.stack([*np.unravel_index(groups, sizes), places], 1) if len(found) else np.zeros((0, len(sizes) + 1))
    widest = int(places.max()) + 1 if len(found) else 0
    shape = np.array([*sizes, widest], np.int64)
    values = members[found % many] if len(members) else members[:0]
    if values.dtype != object:
        values = from_numpy(np.ascontiguousarray(values))
    return torch.from_numpy(indices.astype(np.int64)), values, torch.from_numpy(shape)


@DENSE_TO_DENSE.kernel
def dense_to_dense_kernel(set1: Any, set2: Any, *, set_operation: str) -> Any:
    return _combined(_of_dense(set1), _of_dense(set2), set_operation)


@DENSE_TO_SPARSE.kernel
def dense_to_sparse_kernel(
    set1: Any,
    set2_indices: torch.Tensor,
    set2_values: Any,
    set2_shape: torch.Tensor,
    *,
    set_operation: str,
    validate_indices: bool,
) -> Any:
    second = _of_sparse(set2_indices, set2_values, set2_shape, validate_indices)
    return _combined(_of_dense(set1), second, set_operation)


@SPARSE_TO_SPARSE.kernel
def sparse_to_sparse_kernel(
    set1_indices: torch.Tensor,
    set1_values: Any,
    set1_shape: torch.Tensor,
    set2_indices: torch.Tensor,
    set2_values: Any,
    set2_shape: torch.Tensor,
    *,
    set_operation: str,
    validate_indices: bool,
) -> Any:
    first = _of_sparse(set1_indices, set1_values, set1_shape, validate_indices)
    return _combined(first, _of_sparse(set2_indices, set2_values, set2_shape, validate_indices), set_operation)


@SET_SIZE.kernel
def set_size_kernel(
    set_indices: torch.Tensor, set_values: Any, set_shape: torch.Tensor, *, validate_indices: bool
) -> torch.Tensor:
    groups, values, sizes = _of_sparse(set_indices, set_values, set_shape, validate_indices)
    codes = np.unique(values, return_inverse=True)[1]
    keys = np.unique(groups * max(len(values), 1) + codes)
    counts = np.bincount(keys // max(len(values), 1), minlength=int(np.prod(sizes)))
    return torch.from_numpy(counts.astype(np.int32)).reshape(sizes)


def _result_shapes(rank: int | None) -> tuple[Shape, Shape, Shape]:
    return Shape((None, rank)), Shape((None,)), Shape((rank,))


def _sparse_rule(indices: Shape, values: Shape, shape: Shape) -> Shape:
    """The shape of the component `shape`, after checking that the three components are consistent."""
    rows, rank = indices.of_rank(2)
    values.of_rank(1).merge(Shape((rows,)))
    return shape.of_rank(1).merge(Shape((rank,)))


@DENSE_TO_DENSE.shape
def dense_to_dense_shape(set1: Shape, set2: Shape) -> tuple[Shape, Shape, Shape]:
    if set1.dims is not None and set2.dims is not None:
        set1.at_least(2)[:-1].merge(set2.at_least(2)[:-1])
    known = set1 if set1.dims is not None else set2
    return _result_shapes(None if known.at_least(2).dims is None else len(known))


@DENSE_TO_SPARSE.shape
def dense_to_sparse_shape(set1: Shape, indices: Shape, values: Shape, shape: Shape) -> tuple[Shape, Shape, Shape]:
    sizes = _sparse_rule(indices, values, shape)
    if set1.dims is not None:
        sizes = sizes.merge(Shape((len(set1.at_least(2)),)))
    return _result_shapes(sizes[0])


@SPARSE_TO_SPARSE.shape
def sparse_to_sparse_shape(*inputs: Shape) -> tuple[Shape, Shape, Shape]:
    first, second = (_sparse_rule(*inputs[at : at + 3]) for at in (0, 3))
    return _result_shapes(first.merge(second)[0])


@SET_SIZE.shape
def set_size_shape(*_: Shape) -> Shape:
    return UNKNOWN_SHAPE


def _as_set(value: Any, what: str) -> Any:
    if isinstance(value, SparseTensorValue):
        return SparseTensor.from_value(value)
    return value if isinstance(value, SparseTensor) else convert_to_tensor(value, name=what)


def _check_dtype(value: Any, what: str) -> None:
    if value.dtype.base_dtype not in _TYPES:
        allowed = ", ".join(dtype.name for dtype in _TYPES)
        raise TypeError(f"'{what}' has invalid dtype {value.dtype!r} not in supported dtypes: {allowed}.")


def _apply(a: Any, b: Any, operation: str, validate_indices: bool) -> SparseTensor:
    a, b = _as_set(a, "a"), _as_set(b, "b")
    _check_dtype(a, "a")
    if a.dtype.base_dtype is not b.dtype.base_dtype:
        raise TypeError(f"Types don't match, {a.dtype!r} vs {b.dtype!r}.")
    attrs = {"set_operation": operation, "validate_indices": validate_indices}
    if isinstance(a, SparseTensor) and not isinstance(b, SparseTensor):
        # The op expects the dense operand first.
        turned = {"a-b": "b-a", "b-a": "a-b"}.get(operation, operation)
        return _apply(b, a, turned, validate_indices)
    if isinstance(a, SparseTensor):
        found = SPARSE_TO_SPARSE(a.indices, a.values, a.dense_shape, b.indices, b.values, b.dense_shape, **attrs)
    elif isinstance(b, SparseTensor):
        found = DENSE_TO_SPARSE(a, b.indices, b.values, b.dense_shape, **attrs)
    else:
        found = DENSE_TO_DENSE(a, b, **attrs)
    return SparseTensor(*found)


@export("sets.intersection", v1="sets.set_intersection")
def set_intersection(a: Any, b: Any, validate_indices: bool = True) -> SparseTensor:
    """The intersection of each pair of sets along the last dimension of `a` and `b`.

    Args:
        a: a Tensor or SparseTensor of integers or strings, of rank 2 or more.
        b: a tensor of the same dtype, with the same sizes except for the last.
        validate_indices: whether to check the order of a SparseTensor's indices.

    Returns:
        A SparseTensor of the same rank, with sorted members.

    Raises:
        TypeError: the dtypes differ or are not supported.
    """
    return _apply(a, b, "intersection", validate_indices)


@export("sets.difference", v1="sets.set_difference")
def set_difference(a: Any, b: Any, aminusb: bool = True, validate_indices: bool = True) -> SparseTensor:
    """The difference of each pair of sets: a - b, or b - a if `aminusb` is False. See `intersection`."""
    return _apply(a, b, "a-b" if aminusb else "b-a", validate_indices)


@export("sets.union", v1="sets.set_union")
def set_union(a: Any, b: Any, validate_indices: bool = True) -> SparseTensor:
    """The union of each pair of sets. See `intersection`."""
    return _apply(a, b, "union", validate_indices)


@export("sets.size", v1="sets.set_size")
def set_size(a: Any, validate_indices: bool = True) -> Tensor:
    """The number of distinct members of each set along the last dimension of a SparseTensor.

    Raises:
        TypeError: `a` is not sparse, or its dtype is not supported.
    """
    a = _as_set(a, "a")
    if not isinstance(a, SparseTensor):
        raise TypeError(f"Expected `SparseTensor`, got {a}.")
    _check_dtype(a, "a")
    return SET_SIZE(a.indices, a.values, a.dense_shape, validate_indices=validate_indices)
