"""Functions that attention is made of: hardmax, products that stay differentiable, monotonic attention (Raffel et al., 2017)."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from stoker._src.base.export import export
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import joining, selection, shaping
from stoker._src.ops.control_flow import functional_loops
from stoker._src.ops.math import clipping, scans, unary_functions

_SMALLEST_PRODUCT = 1e-10


@export(v1="contrib.seq2seq.hardmax")
def hardmax(logits: Any, name: str | None = None) -> Tensor:
    """One-hot vectors of the largest logit, along the last dimension."""
    with name_scope(name or "Hardmax"):
        logits = convert_to_tensor(logits, name="logits")
        dims = logits.static_shape.dims
        depth = dims[-1] if dims and dims[-1] is not None else shaping.shape(logits)[-1]
        return selection.one_hot(scans.argmax(logits, -1), depth, dtype=logits.dtype.base_dtype)


@export(v1="contrib.seq2seq.safe_cumprod")
def safe_cumprod(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """The cumulative product of numbers in [0, 1] as exp(cumsum(log(x))), whose gradient has no division by 0.

    The arguments behind `x` are those of `tf.cumsum`.
    """
    with name_scope("SafeCumprod"):
        x = convert_to_tensor(x, name="x")
        tiny = np.finfo(x.dtype.as_numpy_dtype).tiny if x.dtype.is_floating else sys.float_info.min
        return unary_functions.exp(
            scans.cumsum(unary_functions.log(clipping.clip_by_value(x, tiny, 1)), *args, **kwargs)
        )


@export(v1="contrib.seq2seq.monotonic_attention")
def monotonic_attention(p_choose_i: Any, previous_attention: Any, mode: str) -> Tensor:
    """The distribution of monotonic attention, for the probabilities of choosing each memory item.

    Args:
        p_choose_i: [batch, items], the probability that an item is chosen once it is looked at.
        previous_attention: [batch, items], the distribution of the step before.
        mode: "recursive" (exact, item by item), "parallel" (by cumulative products; inexact if probabilities are close to 0 or
            1), or "hard" (both arguments are 0 or 1).

    Raises:
        ValueError: the mode is none of these.
    """
    p = convert_to_tensor(p_choose_i, name="p_choose_i")
    previous = convert_to_tensor(previous_attention, name="previous_attention")
    if mode == "recursive":
        known = p.static_shape.of_rank(2)[0]
        batch = shaping.shape(p)[0] if known is None else known
        ones = shaping.ones(joining.stack([batch, 1]), p.dtype)
        passed = joining.concat([ones, 1 - p[:, :-1]], 1)
        scanned = functional_loops.scan(
            lambda total, step: shaping.reshape(step[0] * total + step[1], [batch]),
            [shaping.transpose(passed), shaping.transpose(previous)],
            shaping.zeros([batch] if known is not None else joining.stack([batch]), p.dtype),
        )
        return p * shaping.transpose(scanned)
    if mode == "parallel":
        left = safe_cumprod(1 - p, axis=1, exclusive=True)
        return p * left * scans.cumsum(previous / clipping.clip_by_value(left, _SMALLEST_PRODUCT, 1.0), axis=1)
    if mode == "hard":
        p = p * scans.cumsum(previous, axis=1)
        return p * scans.cumprod(1 - p, axis=1, exclusive=True)
    raise ValueError("mode must be 'recursive', 'parallel', or 'hard'.")
