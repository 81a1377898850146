"""Dropout (Srivastava et al., 2014): sets random elements to zero and scales the others to keep the expected sum."""

from __future__ import annotations

from typing import Any

import numpy as np

from stoker._src.base.dtypes import as_dtype
from stoker._src.base.export import export
from stoker._src.base.shapes import as_shape
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.static_values import constant_value
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import selection, shaping
from stoker._src.ops.array.constants import constant
from stoker._src.ops.math import arithmetic, comparison
from stoker._src.ops.random import stateless_random, uniform_normal
from stoker._src.ops.support.dispatching import elementwise


def _noise_shape(x: Tensor, noise_shape: Any) -> Any:
    """The shape of the random mask: that of `x`, or the given one with None filled in from `x`."""
    if noise_shape is None:
        return shaping.shape(x)
    if isinstance(noise_shape, Tensor):
        return noise_shape
    try:
        wanted = as_shape(noise_shape)
    except (TypeError, ValueError):
        return noise_shape
    own = x.static_shape
    if wanted.rank is not None and own.rank == wanted.rank:
        return [mine if size is None else size for size, mine in zip(wanted, own)]
    return noise_shape


def _drop(x: Any, rate: Any, noise_shape: Any, sample: Any, name: str | None, default: str) -> Tensor:
    with name_scope(name, default, [x]):
        number = isinstance(rate, (int, float, np.number))
        if number and not 0 <= rate < 1:
            raise ValueError(f"`rate` must be a scalar tensor or a float in the range [0, 1). Received: rate={rate}")
        x = convert_to_tensor(x, name="x")
        dtype = x.dtype.base_dtype
        if not x.dtype.is_floating:
            raise ValueError(
                f"`x.dtype` must be a floating point tensor as `x` will be scaled. Received: x_dtype={dtype!r}"
            )
        if number and rate == 0:
            # No random numbers are drawn, but a seed is consumed, so that later ops have the same seeds.
            sample(None, dtype)
            return x
        if number:
            scaled = arithmetic.MUL(x, constant(1 / (1 - rate), dtype), name="Mul")
        else:
            if not hasattr(rate, "static_shape"):
                raise ValueError(f"`rate` must be a scalar or scalar tensor. Received: rate={rate}")
            rate = convert_to_tensor(rate, name="rate")
            if rate.static_shape.rank not in (0, None):
                raise ValueError(f"`rate` must be a scalar tensor. Received: rate={rate}")
            if rate.dtype.base_dtype != dtype:
                raise ValueError(
                    f"`x.dtype` must be compatible with `rate.dtype`. Received: x.dtype={dtype!r} and rate.dtype={rate.dtype!r}"
                )
            known = constant_value(rate)
            if known is not None and not 0 <= float(known) < 1:
                raise ValueError(
                    f"`rate` must be a scalar tensor or a float in the range [0, 1). Received: rate={known}"
                )
            scaled = arithmetic.REAL_DIV(x, arithmetic.SUB(constant(1, dtype), rate))
        drawn = sample(_noise_shape(x, noise_shape), dtype)
        keep = comparison.GREATER_EQUAL(drawn, rate)
        result = selection.SELECT_V2(keep, scaled, constant(0, dtype))
        result.set_shape(x.static_shape)
        return result


@export(v1="nn.dropout")
@elementwise
def dropout(
    x: Any,
    keep_prob: Any = None,
    noise_shape: Any = None,
    seed: Any = None,
    name: str | None = None,
    rate: Any = None,
) -> Tensor:
    """Sets elements of `x` to 0 with probability `rate` (or 1 - `keep_prob`), and divides the others by 1 - rate.

    Along dimensions of size 1 in `noise_shape`, all elements are kept or dropped together.

    Raises:
        ValueError: both or neither probability is given, one is out of range, or `x` holds integers.
    """
    if keep_prob is not None:
        if rate is not None:
            raise ValueError("Only one of 'keep_prob' and 'rate' may be given.")
        kind = getattr(keep_prob, "dtype", None)
        if not isinstance(keep_prob, (int, float, np.number)) and (kind is None or not as_dtype(kind).is_floating):
            raise ValueError(f"`keep_prob` must be a floating point number or Tensor. Received: keep_prob={keep_prob}")
        rate = 1 - keep_prob
    if rate is None:
        raise ValueError(f"`rate` must be provided. Received: rate={rate}")
    return dropout_v2(x, rate, noise_shape, seed, name)


@export(v2="nn.dropout")
@elementwise
def dropout_v2(x: Any, rate: Any, noise_shape: Any = None, seed: Any = None, name: str | None = None) -> Tensor:
    """Sets elements of `x` to 0 with probability `rate`, and divides the others by 1 - rate."""

    def sample(shape: Any, dtype: Any) -> Any:
        if shape is None and isinstance(seed, Tensor):
            return None
        first, second = uniform_normal.get_seed(seed)
        if shape is None:
            return None
        with name_scope(None, "random_uniform"):
            return uniform_normal.RANDOM_UNIFORM(shape, dtype=dtype, seed=first or 0, seed2=second or 0)

    return _drop(x, rate, noise_shape, sample, name, "dropout")


@export("nn.experimental.general_dropout")
def general_dropout(
    x: Any, rate: Any, uniform_sampler: Any, noise_shape: Any = None, name: str | None = None
) -> Tensor:
    """Dropout with random numbers from `uniform_sampler(shape=..., dtype=...)`."""

    def sample(shape: Any, dtype: Any) -> Any:
        return None if shape is None else uniform_sampler(shape=shape, dtype=dtype)

    return _drop(x, rate, noise_shape, sample, name, "general_dropout")


@export("nn.experimental.stateless_dropout")
def stateless_dropout(
    x: Any, rate: Any, seed: Any, rng_alg: Any = None, noise_shape: Any = None, name: str | None = None
) -> Tensor:
    """Dropout that is a function of `seed` (two integers): equal seeds drop the same elements."""

    def sample(shape: Any, dtype: Any) -> Any:
        if shape is None:
            return None
        algorithm = {} if rng_alg is None else {"alg": rng_alg}
        return stateless_random.stateless_uniform(shape=shape, seed=seed, dtype=dtype, **algorithm)

    return _drop(x, rate, noise_shape, sample, name, "stateless_dropout")
