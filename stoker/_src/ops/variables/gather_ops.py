"""Lookups in variables: ResourceGather and ResourceGatherNd, which read only the rows that they need."""

from __future__ import annotations

from typing import Any

import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import INDEX
from stoker._src.base.shapes import UNKNOWN_SHAPE, Shape
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import READS, STATEFUL, TYPE, define
from stoker._src.graph.indexed_slices import IndexedSlices
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import joining, scattering, shaping
from stoker._src.ops.array.gathering import _size_dtype, _take_batched, gather_nd_kernel, gather_nd_shape, take
from stoker._src.ops.support.handles import handle_shape, variable_sizes
from stoker._src.ops.variables.state_ops import VariableState

RESOURCE_GATHER = define(
    "ResourceGather(resource: resource, indices: Tindices) -> (output: dtype)",
    READS | STATEFUL,
    batch_dims=0,
    validate_indices=True,
    dtype=TYPE,
    Tindices=INDEX,
)


RESOURCE_GATHER_ND = define(
    "ResourceGatherNd(resource: resource, indices: Tindices) -> (output: dtype)",
    READS | STATEFUL,
    dtype=TYPE,
    Tindices=INDEX,
)


@RESOURCE_GATHER.kernel
def resource_gather_kernel(resource: VariableState, indices: torch.Tensor, *, batch_dims: int) -> Any:
    params = resource.read()
    return _take_batched(params, indices, batch_dims, batch_dims) if batch_dims else take(params, indices, 0)


@RESOURCE_GATHER_ND.kernel
def resource_gather_nd_kernel(resource: VariableState, indices: torch.Tensor) -> Any:
    return gather_nd_kernel(resource.read(), indices, bad_indices_policy="")


@RESOURCE_GATHER.shape
def resource_gather_shape(resource: Shape, indices: Shape, *, batch_dims: int, op: Operation) -> Shape:
    params = handle_shape(op._inputs[0])
    if params.dims is None or indices.dims is None:
        return UNKNOWN_SHAPE
    batch = Shape(params.dims[:batch_dims]).merge(Shape(indices.dims[:batch_dims]))
    return Shape((*batch, *indices.dims[batch_dims:], *params.dims[batch_dims + 1 :]))


@RESOURCE_GATHER_ND.shape
def resource_gather_nd_shape(resource: Shape, indices: Shape, *, op: Operation) -> Shape:
    return gather_nd_shape(handle_shape(op._inputs[0]), indices)


@RESOURCE_GATHER.grad
def resource_gather_grad(op: Operation, g: Tensor) -> Any:
    if op.attr("batch_dims"):
        raise NotImplementedError("The gradient of ResourceGather with batch_dims is not supported.")
    sizes = convert_to_tensor(variable_sizes(op.inputs[0], dtypes.int32))
    values_shape = joining.concat([[-1], sizes[1:]], 0)
    rows = shaping.reshape(g, values_shape)
    return IndexedSlices(rows, shaping.reshape(op.inputs[1], [-1]), sizes), None


@RESOURCE_GATHER_ND.grad
def resource_gather_nd_grad(op: Operation, g: Tensor) -> Any:
    indices = op.inputs[1]
    if indices.static_shape.rank == 2 and indices.static_shape[-1] == 1:
        sizes = convert_to_tensor(variable_sizes(op.inputs[0], _size_dtype(indices)))
        return IndexedSlices(convert_to_tensor(g), shaping.squeeze(indices, [-1]), sizes), None
    sizes = convert_to_tensor(variable_sizes(op.inputs[0], indices.dtype.base_dtype))
    return scattering.SCATTER_ND(indices, g, sizes), None
