"""Approximate selection of the largest and smallest elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from stoker._src.base import dtypes
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export, named
from stoker._src.base.shapes import UNKNOWN_SHAPE, Shape
from stoker._src.graph.definition import INT32, define
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import joining, ranges, scattering, shaping
from stoker._src.ops.math import sequences, sorting

APPROX_TOP_K = define(
    "ApproxTopK(input: rank>0 T) -> (values: T, indices: int32)",
    k=INT32(minimum=0),
    reduction_dimension=-1,
    recall_target=0.95,
    is_max_k=True,
    reduction_input_size_override=-1,
    aggregate_to_topk=True,
    T=(dtypes.float16, dtypes.bfloat16, dtypes.float32),
)


@APPROX_TOP_K.kernel
def approx_top_k_kernel(
    input: torch.Tensor, *, k: int, reduction_dimension: int, is_max_k: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Examines all elements, so the recall is 1 regardless of `recall_target`."""
    if not -input.ndim <= reduction_dimension < input.ndim:
        raise InvalidArgumentError(
            None, None, f"reduction_dimension {reduction_dimension} is out of range for rank {input.ndim}"
        )
    moved = input.movedim(reduction_dimension, -1)
    if moved.shape[-1] < k:
        raise InvalidArgumentError(None, None, f"input must have at least k columns. Had {moved.shape[-1]}, needed {k}")
    values, indices = sorting.top_k_kernel(moved if is_max_k else -moved, k=k)
    values = values if is_max_k else -values
    return tuple(each.movedim(-1, reduction_dimension).contiguous() for each in (values, indices))


@APPROX_TOP_K.shape
def approx_top_k_shape(input: Shape, *, k: int, reduction_dimension: int, recall_target: float) -> tuple[Shape, Shape]:
    if recall_target <= 0 or recall_target > 1:
        raise InvalidArgumentError(None, None, f"recall_target must be in (0, 1], got {recall_target}")
    if input.dims is None:
        return UNKNOWN_SHAPE, UNKNOWN_SHAPE
    if not -len(input) <= reduction_dimension < len(input):
        raise InvalidArgumentError(
            None, None, f"reduction_dimension {reduction_dimension} is out of range for rank {len(input)}"
        )
    sizes = list(input.dims)
    if (size := sizes[reduction_dimension]) is not None and size < k:
        raise InvalidArgumentError(
            None, None, f"input must have dimension {reduction_dimension} >= k = {k} but it was {size}"
        )
    sizes[reduction_dimension] = k
    return Shape(sizes), Shape(sizes)


@APPROX_TOP_K.grad
def approx_top_k_grad(op: Operation, g: Tensor, _: Any) -> Tensor:
    """Scatters the gradient back to the positions of the selected values."""
    x, axis = op.inputs[0], op.attr("reduction_dimension")
    rank = x.static_shape.rank
    if rank is None:
        raise ValueError("The gradient of ApproxTopK needs an input of known rank.")
    axis %= rank
    grid = [ranges.range(shaping.shape(op.outputs[1])[i]) for i in range(rank)]
    places = sequences.meshgrid(*grid, indexing="ij")
    places[axis] = op.outputs[1]
    where = joining.PACK(places, axis=-1)
    return scattering.scatter_nd(where, g, shaping.shape(x))


def _approximate(name: str, which: str, is_max_k: bool) -> Callable[..., Any]:
    @export(f"math.{name}", f"nn.{name}")
    @named(
        name, f"The `k` {which} elements along a dimension, and their places. All of them are found: the recall is 1."
    )
    def top(
        operand: Any,
        k: int,
        reduction_dimension: int = -1,
        recall_target: float = 0.95,
        reduction_input_size_override: int = -1,
        aggregate_to_topk: bool = True,
        name: str | None = None,
    ) -> Any:
        return APPROX_TOP_K(
            operand, k=k, is_max_k=is_max_k, reduction_dimension=reduction_dimension, recall_target=recall_target,
            reduction_input_size_override=reduction_input_size_override, aggregate_to_topk=aggregate_to_topk, name=name,
        )  # fmt: skip

    return top


approx_max_k = _approximate("approx_max_k", "largest", True)


approx_min_k = _approximate("approx_min_k", "smallest", False)
