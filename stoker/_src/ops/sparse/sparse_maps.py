"""Sparse tensors stored under int64 handles between ops, so that they can pass through queues."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes, forking
from stoker._src.base.dtypes import DType
from stoker._src.base.errors import InvalidArgumentError, NotFoundError
from stoker._src.base.shapes import SCALAR, Shape
from stoker._src.graph.definition import ANY, RETAINS, STATEFUL, TYPE, define
from stoker._src.ops.sparse import sparse_messages, sparse_ops

_NAMES = {"container": "", "shared_name": ""}
_PARTS = "(sparse_indices: matrix int64, sparse_values: vector T, sparse_shape: vector int64)"


class SparseMap:
    """A numbered collection of sparse tensors, each as (indices, values, shape)."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._lock = forking.lock()
        self._numbers = itertools.count()
        self._rows: dict[int, np.ndarray] = {}

    def add(self, rows: np.ndarray) -> list[int]:
        with self._lock:
            numbers = [next(self._numbers) for _ in rows]
            self._rows.update(zip(numbers, rows))
            return numbers

    def take(self, numbers: list[int]) -> np.ndarray:
        with self._lock:
            missing = [number for number in numbers if number not in self._rows]
            if missing:
                raise InvalidArgumentError(None, None, f"Unable to find SparseTensor: {missing[0]} in map: {self.name}")
            return np.stack([self._rows.pop(number) for number in numbers])


def _map(ctx: Any, container: str, shared_name: str) -> SparseMap:
    name = shared_name or ctx.name
    return ctx.resources.lookup_or_create(container, "sparse_map", name, lambda: SparseMap(name))


ADD_SPARSE = define(f"AddSparseToTensorsMap{_PARTS} -> (sparse_handle: int64)", STATEFUL | RETAINS, T=ANY, **_NAMES)
ADD_SPARSE.shape(lambda *_: SCALAR)


@ADD_SPARSE.kernel
def add_sparse_kernel(
    sparse_indices: torch.Tensor, sparse_values: Any, sparse_shape: torch.Tensor,
    *, T: DType, container: str, shared_name: str, ctx: Any,
) -> torch.Tensor:  # fmt: skip
    sparse_ops.check_parts(sparse_indices, sparse_values, sparse_ops.sizes_of(sparse_shape))
    row = sparse_messages.serialize_sparse_kernel(
        sparse_indices, sparse_values, sparse_shape, T=T, out_type=dtypes.variant
    )
    (number,) = _map(ctx, container, shared_name).add(row[None])
    return torch.tensor(number, dtype=torch.int64)


ADD_MANY_SPARSE = define(
    f"AddManySparseToTensorsMap{_PARTS} -> (sparse_handles: int64)", STATEFUL | RETAINS, T=ANY, **_NAMES
)
ADD_MANY_SPARSE.shape(lambda *_: Shape((None,)))


@ADD_MANY_SPARSE.kernel
def add_many_sparse_kernel(
    sparse_indices: torch.Tensor, sparse_values: Any, sparse_shape: torch.Tensor,
    *, T: DType, container: str, shared_name: str, ctx: Any,
) -> torch.Tensor:  # fmt: skip
    rows = sparse_messages.serialize_many_sparse_kernel(
        sparse_indices, sparse_values, sparse_shape, T=T, out_type=dtypes.variant
    )
    return torch.tensor(_map(ctx, container, shared_name).add(rows), dtype=torch.int64)


TAKE_MANY_SPARSE = define(
    "TakeManySparseFromTensorsMap(sparse_handles: vector host int64) -> "
    "(sparse_indices: int64, sparse_values: dtype, sparse_shape: int64)",
    STATEFUL,
    dtype=TYPE,
    **_NAMES,
)
TAKE_MANY_SPARSE.shape(lambda sparse_handles: (Shape((None, None)), Shape((None,)), Shape((None,))))


@TAKE_MANY_SPARSE.kernel
def take_many_sparse_kernel(
    sparse_handles: list[int], *, dtype: DType, container: str, shared_name: str, ctx: Any
) -> tuple[Any, Any, Any]:
    if not sparse_handles:
        raise InvalidArgumentError(
            None, None, "Must have at least 1 serialized SparseTensor, but input matrix has 0 rows"
        )
    name = shared_name or ctx.name
    found = ctx.resources.lookup(container, "sparse_map", name)
    if found is None:
        raise NotFoundError(None, None, f"Resource {container or 'localhost'}/{name} does not exist.")
    return sparse_messages.deserialize_sparse_kernel(
        found.take(sparse_handles), dtype=dtype, Tserialized=dtypes.variant
    )
