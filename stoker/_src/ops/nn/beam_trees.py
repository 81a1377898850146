"""GatherTree: follows the beams of a beam search back to their beginning."""

from __future__ import annotations

import torch

from stoker._src.base import dtypes
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.shapes import Shape
from stoker._src.graph.definition import define

GATHER_TREE = define(
    "GatherTree(step_ids: T, parent_ids: T, max_sequence_lengths: int32, end_token: T) -> (beams: T)",
    T=(dtypes.int32,),
).not_differentiable()


@GATHER_TREE.kernel
def gather_tree_kernel(
    step_ids: torch.Tensor, parent_ids: torch.Tensor, max_sequence_lengths: torch.Tensor, end_token: torch.Tensor
) -> torch.Tensor:
    if step_ids.ndim != 3:
        raise InvalidArgumentError(None, None, f"step_ids must be a 3-tensor, saw shape: {Shape(step_ids.shape)}")
    if step_ids.shape != parent_ids.shape:
        raise InvalidArgumentError(
            None,
            None,
            f"step_ids.shape must match parent_ids.shape.  but shapes are: {Shape(step_ids.shape)} and {Shape(parent_ids.shape)}",
        )
    steps, batch, width = step_ids.shape
    if max_sequence_lengths.shape != (batch,):
        raise InvalidArgumentError(
            None,
            None,
            f"max_sequence_lengths must be a vector of {batch}, saw shape: {Shape(max_sequence_lengths.shape)}",
        )
    if end_token.ndim:
        raise InvalidArgumentError(None, None, f"end_token must be a scalar, saw shape: {Shape(end_token.shape)}")
    beams = torch.full_like(step_ids, 0) + end_token
    if not step_ids.numel():
        return beams
    last = max_sequence_lengths.clamp(max=steps).to(torch.int64)[:, None] - 1  # [batch, 1]
    own = torch.arange(width, device=step_ids.device).expand(batch, width)
    parent = own
    for t in reversed(range(steps)):
        at = torch.where(last > t, parent, own)
        inside = last >= t
        outside = inside & ((at < 0) | (at >= width))
        if bool(outside.any()):
            row, beam = (int(each) for each in outside.nonzero()[0])
            raise InvalidArgumentError(
                None, None, f"Saw invalid parent id {int(at[row, beam])} at (batch, time, beam) == ({row}, {t}, {beam})"
            )
        at = torch.where(inside, at, own)
        beams[t] = torch.where(inside, step_ids[t].gather(1, at), beams[t])
        parent = parent_ids[t].to(torch.int64).gather(1, at)
    # Behind the first end token there are only end tokens.
    ended = torch.zeros(batch, width, dtype=torch.bool, device=step_ids.device)
    for t in range(steps):
        beams[t] = torch.where(ended, end_token, beams[t])
        ended |= beams[t] == end_token
    return beams


@GATHER_TREE.shape
def gather_tree_shape(step_ids: Shape, parent_ids: Shape, max_sequence_lengths: Shape, end_token: Shape) -> Shape:
    max_sequence_lengths.of_rank(1)
    end_token.of_rank(0)
    return step_ids.of_rank(3).merge(parent_ids.of_rank(3))
