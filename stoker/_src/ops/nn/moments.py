"""Means, variances, and the normalizations built on them."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from stoker._src.base import dtypes
from stoker._src.base.export import export
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import casting, gathering, shaping, value_checks
from stoker._src.ops.array.constants import constant
from stoker._src.ops.math import arithmetic, reductions, unary_functions
from stoker._src.ops.nn.softmax import merged_axis

_LOW = (dtypes.float16, dtypes.bfloat16)


def _keep(keepdims: Any, keep_dims: Any) -> bool:
    if keep_dims is not None:
        if keepdims is not None:
            raise ValueError("Cannot specify both 'keepdims' and 'keep_dims'.")
        return bool(keep_dims)
    return bool(keepdims)


def _squeezed(value: Tensor, axes: Any) -> Tensor:
    if axes is None:  # over all dimensions, which have size 1 here
        return shaping.SQUEEZE(value)
    if isinstance(axes, (int, np.integer, np.ndarray)):
        axes = np.ravel(axes).tolist()
    return shaping.SQUEEZE(value, squeeze_dims=axes)


@export(v1="nn.moments")
def moments(
    x: Any, axes: Any, shift: Any = None, name: str | None = None, keep_dims: Any = None, keepdims: Any = None
) -> tuple[Tensor, Tensor]:
    """Returns (mean, variance) over `axes`. `shift` has no effect, as in TensorFlow since 1.0. Half floats are summed in float32."""
    keep = _keep(keepdims, keep_dims)
    with name_scope(name, "moments", [x, axes]):
        x = convert_to_tensor(x, name="x")
        wide = casting.cast(x, dtypes.float32) if x.dtype.base_dtype in _LOW else x
        mean = reductions.reduce_mean(wide, axes, keepdims=True, name="mean")
        spread = arithmetic.SQUARED_DIFFERENCE(wide, shaping.stop_gradient(mean))
        variance = reductions.reduce_mean(spread, axes, keepdims=True, name="variance")
        if not keep:
            mean, variance = _squeezed(mean, axes), _squeezed(variance, axes)
        if wide is not x:
            mean, variance = casting.cast(mean, x.dtype.base_dtype), casting.cast(variance, x.dtype.base_dtype)
        return mean, variance


@export(v2="nn.moments")
def moments_v2(
    x: Any, axes: Any, shift: Any = None, keepdims: bool = False, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Returns (mean, variance) over `axes`. `shift` has no effect."""
    return moments(x, axes, shift, name, keepdims=keepdims)


@export(v1="nn.weighted_moments")
def weighted_moments(
    x: Any,
    axes: Any,
    frequency_weights: Any,
    name: str | None = None,
    keep_dims: Any = None,
    keepdims: Any = None,
) -> tuple[Tensor, Tensor]:
    """Returns (mean, variance) over `axes`, with each element weighted by its frequency."""
    keep = _keep(keepdims, keep_dims)
    with name_scope(name, "weighted_moments", [x, axes, frequency_weights]):
        x = convert_to_tensor(x, name="x")
        weights = convert_to_tensor(frequency_weights, name="frequency_weights")
        low = x.dtype.base_dtype in _LOW
        wide = casting.cast(x, dtypes.float32) if low else x
        weights = casting.cast(weights, wide.dtype.base_dtype)
        weighted = reductions.reduce_sum(
            arithmetic.multiply(weights, wide), axes, keepdims=True, name="weighted_input_sum"
        )
        # The weights are broadcast to the shape of the data before they are summed.
        total = reductions.reduce_sum(
            arithmetic.add(weights, shaping.zeros_like(wide)), axes, keepdims=True, name="sum_of_weights"
        )
        mean = arithmetic.divide_no_nan(weighted, total)
        distance = reductions.reduce_sum(
            arithmetic.multiply(weights, arithmetic.SQUARED_DIFFERENCE(wide, mean)),
            axes,
            keepdims=True,
            name="weighted_distsq",
        )
        variance = arithmetic.divide_no_nan(distance, total)
        if not keep:
            mean, variance = _squeezed(mean, axes), _squeezed(variance, axes)
        if low:
            mean, variance = casting.cast(mean, x.dtype.base_dtype), casting.cast(variance, x.dtype.base_dtype)
        return mean, variance


@export(v2="nn.weighted_moments")
def weighted_moments_v2(
    x: Any, axes: Any, frequency_weights: Any, keepdims: bool = False, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Returns (mean, variance) over `axes`, with each element weighted by its frequency."""
    return weighted_moments(x, axes, frequency_weights, name, keepdims=keepdims)


@export(v1="nn.sufficient_statistics")
def sufficient_statistics(
    x: Any, axes: Any, shift: Any = None, keep_dims: Any = None, name: str | None = None, keepdims: Any = None
) -> tuple[Tensor, Tensor, Tensor, Any]:
    """Returns (count, sum, sum of squares, shift) over `axes`. If there is a shift, the sums are of x - shift."""
    keep = _keep(keepdims, keep_dims)
    if isinstance(axes, Tensor):
        raise TypeError(f"The axes of sufficient statistics are a list of integers, not a tensor: {axes!r}")
    axes = list(dict.fromkeys(operator.index(axis) for axis in axes))
    with name_scope(name, "sufficient_statistics", [x, shift]):
        x = convert_to_tensor(x, name="x")
        if x.static_shape.rank is not None:
            axes = [value_checks.static_axis(x, axis) for axis in axes]
        shape = x.static_shape
        dtype = x.dtype.base_dtype
        sizes = None if shape.rank is None else [shape[axis] for axis in axes]
        if sizes is not None and None not in sizes:
            count = constant(float(np.prod([float(size) for size in sizes])), dtype)
        else:
            found = gathering.GATHER_V2(casting.cast(shaping.shape(x), dtype), axes, 0)
            count = reductions.PROD(found, [0], name="count")
        if shift is not None:
            shift = convert_to_tensor(shift, name="shift")
            sums, squares = arithmetic.subtract(x, shift), arithmetic.SQUARED_DIFFERENCE(x, shift)
        else:
            sums, squares = x, unary_functions.square(x)
        total = reductions.reduce_sum(sums, axes, keepdims=keep, name="mean_ss")
        spread = reductions.reduce_sum(squares, axes, keepdims=keep, name="var_ss")
        return count, total, spread, shift


@export(v2="nn.sufficient_statistics")
def sufficient_statistics_v2(
    x: Any, axes: Any, shift: Any = None, keepdims: bool = False, name: str | None = None
) -> tuple[Tensor, Tensor, Tensor, Any]:
    """Returns (count, sum, sum of squares, shift) over `axes`. If there is a shift, the sums are of x - shift."""
    return sufficient_statistics(x, axes, shift, None, name, keepdims)


@export("nn.normalize_moments")
def normalize_moments(
    counts: Any, mean_ss: Any, variance_ss: Any, shift: Any, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Returns (mean, variance) from the results of `sufficient_statistics`."""
    with name_scope(name, "normalize", [counts, mean_ss, variance_ss, shift]):
        divisor = unary_functions.RECIPROCAL(convert_to_tensor(counts), name="divisor")
        if shift is not None:
            shifted = arithmetic.multiply(mean_ss, divisor, name="shifted_mean")
            mean = arithmetic.add(shifted, shift, name="mean")
        else:
            shifted = mean = arithmetic.multiply(mean_ss, divisor, name="mean")
        variance = arithmetic.subtract(
            arithmetic.multiply(variance_ss, divisor), unary_functions.square(shifted), name="variance"
        )
        return mean, variance


@export("nn.batch_normalization")
def batch_normalization(
    x: Any, mean: Any, variance: Any, offset: Any, scale: Any, variance_epsilon: Any, name: str | None = None
) -> Tensor:
    """scale * (x - mean) / sqrt(variance + variance_epsilon) + offset. `scale` and `offset` may be None."""
    with name_scope(name, "batchnorm", [x, mean, variance, scale, offset]):
        x = convert_to_tensor(x)
        dtype = x.dtype.base_dtype
        inverse = unary_functions.RSQRT(variance + variance_epsilon)
        if scale is not None:
            inverse = inverse * scale
        scaled = x * casting.cast(inverse, dtype)
        moved = -mean * inverse if offset is None else offset - mean * inverse
        return scaled + casting.cast(moved, dtype)


@export(v2="nn.batch_norm_with_global_normalization")
def batch_norm_with_global_normalization_v2(
    input: Any,
    mean: Any,
    variance: Any,
    beta: Any,
    gamma: Any,
    variance_epsilon: Any,
    scale_after_normalization: bool,
    name: str | None = None,
) -> Tensor:
    """`batch_normalization`, scaled by `gamma` only if `scale_after_normalization` is set."""
    scale = gamma if scale_after_normalization else None
    return batch_normalization(input, mean, variance, beta, scale, variance_epsilon, name)


@export(v1="nn.batch_norm_with_global_normalization")
def batch_norm_with_global_normalization(
    t: Any = None,
    m: Any = None,
    v: Any = None,
    beta: Any = None,
    gamma: Any = None,
    variance_epsilon: Any = None,
    scale_after_normalization: Any = None,
    name: str | None = None,
    input: Any = None,
    mean: Any = None,
    variance: Any = None,
) -> Tensor:
    """`batch_normalization`, scaled by `gamma` only if `scale_after_normalization` is set."""
    return batch_norm_with_global_normalization_v2(
        t if input is None else input,
        m if mean is None else mean,
        v if variance is None else variance,
        beta,
        gamma,
        variance_epsilon,
        scale_after_normalization,
        name,
    )


@export(v1=("nn.l2_normalize", "math.l2_normalize", "linalg.l2_normalize"))
def l2_normalize(x: Any, axis: Any = None, epsilon: float = 1e-12, name: str | None = None, dim: Any = None) -> Tensor:
    """x / sqrt(max(sum(x ** 2), epsilon)) along `axis`."""
    axis = merged_axis(axis, dim)
    with name_scope(name, "l2_normalize", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        if x.dtype.is_complex:
            part = x.dtype.real_dtype
            real, imaginary = unary_functions.REAL_PART(x, Tout=part), unary_functions.IMAG_PART(x, Tout=part)
            inverse = _inverse_norm(
                arithmetic.add(unary_functions.square(real), unary_functions.square(imaginary)), axis, epsilon
            )
            return unary_functions.COMPLEX_OF(
                arithmetic.multiply(real, inverse), arithmetic.multiply(imaginary, inverse), Tout=x.dtype, name=scope
            )
        return arithmetic.multiply(x, _inverse_norm(unary_functions.square(x), axis, epsilon), name=scope)


def _inverse_norm(squares: Tensor, axis: Any, epsilon: float) -> Tensor:
    return unary_functions.RSQRT(arithmetic.maximum(reductions.reduce_sum(squares, axis, keepdims=True), epsilon))


@export(v2=("nn.l2_normalize", "math.l2_normalize", "linalg.l2_normalize"))
def l2_normalize_v2(
    x: Any, axis: Any = None, epsilon: float = 1e-12, name: str | None = None, dim: Any = None
) -> Tensor:
    """x / sqrt(max(sum(x ** 2), epsilon)) along `axis`."""
    return l2_normalize(x, axis, epsilon, name, dim)
