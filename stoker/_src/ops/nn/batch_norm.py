"""Fused batch normalization: FusedBatchNorm (three versions), and the older op with global statistics.

In training, y = scale * (x - mean) / sqrt(variance + epsilon) + offset with the mean and (biased) variance of the batch.
The outputs `batch_mean` and `batch_variance` (unbiased) feed the moving averages. The reserve spaces hold what
the gradient needs: the mean and the biased variance, as in TensorFlow's CPU kernel.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import NUMERIC
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.extensions import extension
from stoker._src.base.shapes import Shape
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import BOOL, FLOAT, STRING, OpDefinition, define
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import casting, shaping
from stoker._src.ops.array.constants import constant
from stoker._src.ops.math import reductions, unary_functions
from stoker._src.ops.nn.conv_kernels import channels_first, from_channels_first
from stoker._src.ops.nn.windows import channel_axis

_native: Any = extension("stoker._src.ops.native.batch_norm")

_FORMAT_2D = STRING("NHWC", allowed=("NHWC", "NCHW"))
_FORMAT_ANY = STRING("NHWC", allowed=("NHWC", "NCHW", "NDHWC", "NCDHW"))
_LOW = (dtypes.float16, dtypes.bfloat16, dtypes.float32)
_FORWARD_ATTRS: dict[str, Any] = {"epsilon": 0.0001, "exponential_avg_factor": 1.0, "is_training": True}
_BACKWARD_ATTRS: dict[str, Any] = {"epsilon": 0.0001, "is_training": True}

# float64 is allowed in addition to TensorFlow's float32, so that gradients can be checked by finite differences.
_SINGLE = (dtypes.float32, dtypes.float64)

FUSED_BATCH_NORM = define(
    "FusedBatchNorm(x: T, scale: T, offset: T, mean: T, variance: T) -> "
    "(y: T, batch_mean: T, batch_variance: T, reserve_space_1: T, reserve_space_2: T)",
    T=_SINGLE,
    data_format=_FORMAT_2D,
    **_FORWARD_ATTRS,
)
FUSED_BATCH_NORM_GRAD = define(
    "FusedBatchNormGrad(y_backprop: T, x: T, scale: T, reserve_space_1: vector T, reserve_space_2: vector T) -> "
    "(x_backprop: T, scale_backprop: T, offset_backprop: T, reserve_space_3: T, reserve_space_4: T)",
    T=_SINGLE,
    data_format=_FORMAT_2D,
    **_BACKWARD_ATTRS,
)
FUSED_BATCH_NORM_V2 = define(
    "FusedBatchNormV2(x: T, scale: U, offset: U, mean: U, variance: U) -> "
    "(y: T, batch_mean: U, batch_variance: U, reserve_space_1: U, reserve_space_2: U)",
    T=_LOW,
    U=(dtypes.float32,),
    data_format=_FORMAT_2D,
    **_FORWARD_ATTRS,
)
FUSED_BATCH_NORM_GRAD_V2 = define(
    "FusedBatchNormGradV2(y_backprop: T, x: T, scale: float32, reserve_space_1: vector U, reserve_space_2: vector U) -> "
    "(x_backprop: T, scale_backprop: U, offset_backprop: U, reserve_space_3: U, reserve_space_4: U)",
    T=_LOW,
    U=(dtypes.float32,),
    data_format=_FORMAT_2D,
    **_BACKWARD_ATTRS,
)
FUSED_BATCH_NORM_V3 = define(
    "FusedBatchNormV3(x: T, scale: U, offset: U, mean: vector U, variance: vector U) -> "
    "(y: T, batch_mean: U, batch_variance: U, reserve_space_1: U, reserve_space_2: U, reserve_space_3: U)",
    T=_LOW,
    U=(dtypes.bfloat16, dtypes.float32),
    data_format=_FORMAT_ANY,
    **_FORWARD_ATTRS,
)
FUSED_BATCH_NORM_GRAD_V3 = define(
    "FusedBatchNormGradV3(y_backprop: T, x: T, scale: float32, reserve_space_1: vector U, reserve_space_2: vector U, "
    "reserve_space_3: U) -> "
    "(x_backprop: T, scale_backprop: U, offset_backprop: U, reserve_space_4: U, reserve_space_5: U)",
    T=_LOW,
    U=(dtypes.float32,),
    data_format=_FORMAT_ANY,
    **_BACKWARD_ATTRS,
)

Tensors = tuple[torch.Tensor, ...]


def _is_native(data_format: str, *tensors: torch.Tensor) -> bool:
    """Whether the native loops run: for float32 tensors on the host with the channels in the last dimension."""
    return (
        _native is not None
        and not data_format.startswith("NC")
        and tensors[0].numel() > 0
        and all(each.dtype is torch.float32 and each.is_cpu for each in tensors)
    )


def _native_batch_norm(
    x: torch.Tensor,
    scale: torch.Tensor,
    offset: torch.Tensor,
    mean: torch.Tensor,
    variance: torch.Tensor,
    epsilon: float,
    is_training: bool,
) -> Tensors:
    """(y, mean, biased variance, unbiased variance) of the batch; or y and the given statistics."""
    y, channels = torch.empty(x.shape), x.shape[-1]
    unbiased = None
    if is_training:
        mean, variance, unbiased = torch.empty((3, channels)).unbind(0)
    given = x.contiguous(), scale.contiguous(), offset.contiguous(), mean.contiguous(), variance.contiguous()
    sizes = x.numel() // channels, channels
    _native.forward(y, *given, unbiased, *sizes, epsilon, is_training, torch.get_num_threads())
    return (y, mean, variance) if unbiased is None else (y, mean, variance, unbiased)


def _batch_norm(
    x: torch.Tensor,
    scale: torch.Tensor,
    offset: torch.Tensor,
    mean: torch.Tensor,
    variance: torch.Tensor,
    epsilon: float,
    exponential_avg_factor: float,
    data_format: str,
    is_training: bool,
) -> Tensors:
    """(y, batch_mean, batch_variance, reserve 1, reserve 2)."""
    if x.ndim not in (4, 5):
        raise InvalidArgumentError(None, None, f"input must be 4 or 5-dimensional, found {list(x.shape)}")
    for name, vector in (("estimated_mean", mean), ("estimated_variance", variance)):
        if vector.ndim != 1:
            raise InvalidArgumentError(None, None, f"{name} must be 1-dimensional, found {list(vector.shape)}")
    fresh = is_training and exponential_avg_factor == 1.0  # the previous averages are not used
    channels = x.shape[channel_axis(data_format)]
    if scale.shape != (channels,) or offset.shape != (channels,):
        raise InvalidArgumentError(
            None,
            None,
            f"scale and offset must have one element for each of the {channels} channels, "
            f"found {list(scale.shape)} and {list(offset.shape)}",
        )
    if not fresh and (mean.shape != (channels,) or variance.shape != (channels,)):
        raise InvalidArgumentError(
            None,
            None,
            f"mean and variance must have one element for each of the {channels} channels, "
            f"found {list(mean.shape)} and {list(variance.shape)}",
        )
    count = x.numel() // channels if channels else 0
    if _is_native(data_format, x, scale, offset, mean, variance):
        y, found, biased, *rest = _native_batch_norm(x, scale, offset, mean, variance, epsilon, is_training)
        if not is_training:
            return y, mean.clone(), variance.clone(), mean.clone(), variance.clone()
        if fresh:
            return y, found.clone(), rest[0], found, biased
        shown = torch.lerp(mean, found, exponential_avg_factor), torch.lerp(variance, rest[0], exponential_avg_factor)
        return y, *shown, found, biased
    precise = channels_first(x, data_format).to(scale.dtype)
    if not is_training and count:
        y = torch.native_batch_norm(precise, scale, offset, mean, variance, False, 0.0, epsilon)[0]
        return (
            from_channels_first(y.to(x.dtype), data_format),
            mean.clone(),
            variance.clone(),
            mean.clone(),
            variance.clone(),
        )
    if not count:
        nan = scale.new_full((channels,), float("nan"))
        return torch.empty_like(x), nan, nan.clone(), torch.zeros_like(scale), torch.zeros_like(scale)
    # Moving averages with momentum 1 are the statistics of this batch, which torch computes anyway.
    batch_mean, unbiased = torch.zeros_like(scale), torch.ones_like(scale)
    y = torch.native_batch_norm(precise, scale, offset, batch_mean, unbiased, True, 1.0, epsilon)[0]
    if count == 1:
        unbiased = torch.zeros_like(scale)
    biased = unbiased * ((count - 1) / count)
    shown_mean, shown_variance = batch_mean, unbiased
    if exponential_avg_factor != 1.0:
        shown_mean = torch.lerp(mean, batch_mean, exponential_avg_factor)
        shown_variance = torch.lerp(variance, unbiased, exponential_avg_factor)
    else:
        shown_mean = batch_mean.clone()
    return from_channels_first(y.to(x.dtype), data_format), shown_mean, shown_variance, batch_mean, biased


def _batch_norm_grad(
    y_backprop: torch.Tensor,
    x: torch.Tensor,
    scale: torch.Tensor,
    mean: torch.Tensor,
    variance: torch.Tensor,
    epsilon: float,
    data_format: str,
    is_training: bool,
) -> Tensors:
    """(x_backprop, scale_backprop, offset_backprop, nothing, nothing)."""
    if x.shape != y_backprop.shape:
        raise InvalidArgumentError(
            None,
            None,
            f"x and y_backprop must have same shape, but x has shape {list(x.shape)} and y_backprop has shape {list(y_backprop.shape)}",
        )
    # torch does not check these sizes and would read out of bounds.
    channels = x.shape[channel_axis(data_format)]
    for name, vector in (("scale", scale), ("reserve_space_1", mean), ("reserve_space_2", variance)):
        if vector.shape != (channels,):
            raise InvalidArgumentError(
                None,
                None,
                f"{name} must have one element for each of the {channels} channels, found {list(vector.shape)}",
            )
    nothing = scale.new_empty((0,))
    if x.numel() == 0:
        return torch.zeros_like(x), torch.zeros_like(scale), torch.zeros_like(scale), nothing, nothing.clone()
    if _is_native(data_format, x, y_backprop, scale, mean, variance):
        dx, (dscale, doffset) = torch.empty(x.shape), torch.empty((2, channels)).unbind(0)
        given = [each.contiguous() for each in (y_backprop, x, scale, mean, variance)]
        sizes = x.numel() // channels, channels
        _native.backward(dx, dscale, doffset, *given, *sizes, epsilon, is_training, torch.get_num_threads())
        return dx, dscale, doffset, nothing, nothing.clone()
    g = channels_first(y_backprop, data_format).to(scale.dtype)
    image = channels_first(x, data_format).to(scale.dtype)
    inverse = torch.rsqrt(variance + epsilon)
    result = torch.ops.aten.native_batch_norm_backward(
        g, image, scale, mean, variance, mean, inverse, is_training, epsilon, [True, True, True]
    )
    return from_channels_first(result[0].to(x.dtype), data_format), result[1], result[2], nothing, nothing.clone()


def _register(forward: OpDefinition, backward: OpDefinition, third_reserve: bool) -> None:
    """Registers kernels, shapes and gradients of one version. Version 3 has a third reserve space, which is empty here."""

    @forward.kernel
    def fused_batch_norm_kernel(
        x: torch.Tensor,
        scale: torch.Tensor,
        offset: torch.Tensor,
        mean: torch.Tensor,
        variance: torch.Tensor,
        *,
        epsilon: float,
        exponential_avg_factor: float,
        data_format: str,
        is_training: bool,
    ) -> Tensors:
        results = _batch_norm(
            x, scale, offset, mean, variance, epsilon, exponential_avg_factor, data_format, is_training
        )
        return (*results, scale.new_empty((0,))) if third_reserve else results

    @forward.shape
    def fused_batch_norm_shape(
        x: Shape,
        scale: Shape,
        offset: Shape,
        mean: Shape,
        variance: Shape,
        *,
        data_format: str,
        is_training: bool,
        exponential_avg_factor: float,
    ) -> tuple[Shape, ...]:
        x = x.of_rank(len(data_format))
        axis = channel_axis(data_format)
        vector = Shape((x[axis],)).merge(scale.of_rank(1)).merge(offset.of_rank(1))
        if not is_training or exponential_avg_factor != 1.0:
            vector = vector.merge(mean.of_rank(1)).merge(variance.of_rank(1))
        dims = list(x)
        dims[axis] = vector[0]
        shapes = (Shape(dims), *(vector,) * 4)
        return (*shapes, Shape((0,))) if third_reserve else shapes

    @backward.shape
    def fused_batch_norm_grad_shape(
        y_backprop: Shape, x: Shape, scale: Shape, *reserves: Shape, data_format: str
    ) -> tuple[Shape, ...]:
        x = x.of_rank(len(data_format))
        axis = channel_axis(data_format)
        vector = Shape((x[axis],)).merge(Shape((y_backprop.of_rank(len(data_format))[axis],))).merge(scale.of_rank(1))
        for reserve in reserves[:2]:
            vector = vector.merge(reserve.of_rank(1))
        like_x = Shape((*x[:axis], vector[0], *x[axis + 1 :]))
        # Empty here and in TensorFlow 2; TensorFlow 1.15 wrote other sizes for inference.
        return (like_x, vector, vector, Shape((None,)), Shape((None,)))

    @forward.grad
    def fused_batch_norm_gradient(op: Operation, *gradients: Tensor) -> list[Tensor | None]:
        x, scale, _, mean, variance = op.inputs
        training = op.attr("is_training")
        reserves = list(op.outputs[3:]) if training else [mean, variance, *op.outputs[5:]]
        attrs = {name: op.attr(name) for name in ("epsilon", "data_format", "is_training")}
        results = backward(gradients[0], x, scale, *reserves, **attrs)
        return [results[0], results[1], results[2], None, None]

    backward.grad(_second_derivative)


for _forward, _backward in (
    (FUSED_BATCH_NORM, FUSED_BATCH_NORM_GRAD),
    (FUSED_BATCH_NORM_V2, FUSED_BATCH_NORM_GRAD_V2),
):

    @_backward.kernel
    def fused_batch_norm_grad_kernel(
        y_backprop: torch.Tensor,
        x: torch.Tensor,
        scale: torch.Tensor,
        reserve_space_1: torch.Tensor,
        reserve_space_2: torch.Tensor,
        *,
        epsilon: float,
        data_format: str,
        is_training: bool,
    ) -> Tensors:
        return _batch_norm_grad(
            y_backprop, x, scale, reserve_space_1, reserve_space_2, epsilon, data_format, is_training
        )


@FUSED_BATCH_NORM_GRAD_V3.kernel
def fused_batch_norm_grad_v3_kernel(
    y_backprop: torch.Tensor,
    x: torch.Tensor,
    scale: torch.Tensor,
    reserve_space_1: torch.Tensor,
    reserve_space_2: torch.Tensor,
    reserve_space_3: torch.Tensor,
    *,
    epsilon: float,
    data_format: str,
    is_training: bool,
) -> Tensors:
    return _batch_norm_grad(y_backprop, x, scale, reserve_space_1, reserve_space_2, epsilon, data_format, is_training)


def _second_derivative(op: Operation, *gradients: Tensor) -> list[Tensor | None]:
    """The gradient of the gradient op.

    With h = (x - mean) * r, r = 1 / sqrt(variance + epsilon) and, in training, P(v) = v - mean(v) - h * mean(v * h),
    the op computes dx = scale * r * P(g), dscale = sum(g * h), doffset = sum(g); dh = r * P(.) is linear and symmetric.
    """
    wide = op.inputs[2].dtype.base_dtype
    g, x = casting.cast(op.inputs[0], wide), casting.cast(op.inputs[1], wide)
    scale, reserved_mean, reserved_variance = op.inputs[2], op.inputs[3], op.inputs[4]
    on_x, on_scale, on_offset = casting.cast(gradients[0], wide), gradients[1], gradients[2]
    data_format, training = op.attr("data_format"), op.attr("is_training")
    axis = channel_axis(data_format)
    others = [i for i in range(len(data_format)) if i != axis]

    def spread(vector: Tensor) -> Tensor:
        return vector if axis != 1 else shaping.reshape(vector, [-1] + [1] * (len(data_format) - 2))

    def average(value: Tensor) -> Tensor:
        return spread(reductions.reduce_mean(value, others))

    def project(value: Tensor) -> Tensor:
        return value - average(value) - h * average(value * h)

    if training:
        # Computed from x, not from the reserve spaces, so that third derivatives exist.
        centered = x - average(x)
        variance = average(centered * centered)
    else:
        centered, variance = x - spread(reserved_mean), spread(reserved_variance)
    r = unary_functions.RSQRT(variance + convert_to_tensor(op.attr("epsilon"), wide))
    h = centered * r
    factor, wide_scale, wide_offset = spread(scale) * r, spread(on_scale), spread(on_offset)
    if training:
        to_g = factor * project(on_x) + wide_scale * h + wide_offset
        along, across = average(on_x * h), average(g * h)
        covariance = average(on_x * g) - average(on_x) * average(g) - along * across
        to_x = wide_scale * r * project(g) - factor * r * (h * covariance + across * project(on_x) + along * project(g))
        to_scale = reductions.reduce_sum(on_x * r * project(g), others)
    else:
        to_g = factor * on_x + wide_scale * h + wide_offset
        to_x = wide_scale * g * r
        to_scale = reductions.reduce_sum(on_x * g * r, others)
    narrow = op.inputs[1].dtype.base_dtype
    rest: list[Tensor | None] = [None] * (len(op.inputs) - 3)
    return [casting.cast(to_g, narrow), casting.cast(to_x, narrow), to_scale, *rest]


_register(FUSED_BATCH_NORM, FUSED_BATCH_NORM_GRAD, False)
_register(FUSED_BATCH_NORM_V2, FUSED_BATCH_NORM_GRAD_V2, False)
_register(FUSED_BATCH_NORM_V3, FUSED_BATCH_NORM_GRAD_V3, True)


@export(v1="nn.fused_batch_norm")
def fused_batch_norm(
    x: Any,
    scale: Any,
    offset: Any,
    mean: Any = None,
    variance: Any = None,
    epsilon: float = 0.001,
    data_format: str = "NHWC",
    is_training: bool = True,
    name: str | None = None,
    exponential_avg_factor: float = 1.0,
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns (normalized x, batch mean, batch variance). If `is_training` is False, the given statistics are used.

    Raises:
        ValueError: `mean` and `variance` are missing for inference or a moving average.
    """
    if (not is_training or exponential_avg_factor != 1.0) and (mean is None or variance is None):
        raise ValueError(
            "Both `mean` and `variance` must be a 1D tensor when `is_training` is False or "
            f"`exponential_avg_factor` != 1.0. Received: `mean` {mean!r} and `variance` {variance!r}"
        )
    x = convert_to_tensor(x, name="input")
    scale = convert_to_tensor(scale, name="scale")
    offset = convert_to_tensor(offset, name="offset")
    mean = constant([], scale.dtype.base_dtype, shape=[0]) if mean is None else mean
    variance = constant([], scale.dtype.base_dtype, shape=[0]) if variance is None else variance
    # cuDNN's smallest epsilon. TensorFlow raises smaller values to it on every device.
    if isinstance(epsilon, (int, float, np.number)):
        epsilon = max(float(epsilon), 1.001e-5)
    version = FUSED_BATCH_NORM if x.dtype.base_dtype is dtypes.float64 else FUSED_BATCH_NORM_V3
    results = version(
        x,
        scale,
        offset,
        mean,
        variance,
        epsilon=epsilon,
        exponential_avg_factor=exponential_avg_factor,
        data_format=data_format,
        is_training=is_training,
        name=name,
    )
    return results.y, results.batch_mean, results.batch_variance


# ---- BatchNormWithGlobalNormalization ---------------------------------------------------------------------------

_GLOBAL_DTYPES = (*NUMERIC, dtypes.qint8, dtypes.quint8, dtypes.qint32, dtypes.qint16, dtypes.quint16)
GLOBAL_BATCH_NORM = define(
    "BatchNormWithGlobalNormalization(t: T, m: T, v: T, beta: T, gamma: T) -> (result: T)",
    T=_GLOBAL_DTYPES,
    variance_epsilon=FLOAT,
    scale_after_normalization=BOOL,
)
GLOBAL_BATCH_NORM_GRAD = define(
    "BatchNormWithGlobalNormalizationGrad(t: T, m: T, v: T, gamma: T, backprop: T) -> (dx: T, dm: T, dv: T, db: T, dg: T)",
    T=_GLOBAL_DTYPES,
    variance_epsilon=FLOAT,
    scale_after_normalization=BOOL,
)


@GLOBAL_BATCH_NORM.kernel
def global_batch_norm_kernel(
    t: torch.Tensor,
    m: torch.Tensor,
    v: torch.Tensor,
    beta: torch.Tensor,
    gamma: torch.Tensor,
    *,
    variance_epsilon: float,
    scale_after_normalization: bool,
) -> torch.Tensor:
    inverse = torch.rsqrt(v + variance_epsilon)
    if scale_after_normalization:
        inverse = inverse * gamma
    return torch.addcmul(beta - m * inverse, t, inverse)


@GLOBAL_BATCH_NORM.shape
def global_batch_norm_shape(t: Shape, m: Shape, v: Shape, beta: Shape, gamma: Shape) -> Shape:
    t = t.of_rank(4)
    channels = Shape((t[3],))
    for each in (m, v, beta, gamma):
        channels = channels.merge(each.of_rank(1))
    return Shape((*t[:3], channels[0]))


@GLOBAL_BATCH_NORM.grad
def global_batch_norm_gradient(op: Operation, g: Tensor) -> tuple[Tensor, ...]:
    t, m, v, _, gamma = op.inputs
    attrs = {name: op.attr(name) for name in ("variance_epsilon", "scale_after_normalization")}
    return tuple(GLOBAL_BATCH_NORM_GRAD(t, m, v, gamma, g, **attrs))


@GLOBAL_BATCH_NORM_GRAD.kernel
def global_batch_norm_grad_kernel(
    t: torch.Tensor,
    m: torch.Tensor,
    v: torch.Tensor,
    gamma: torch.Tensor,
    backprop: torch.Tensor,
    *,
    variance_epsilon: float,
    scale_after_normalization: bool,
) -> Tensors:
    inverse = torch.rsqrt(v + variance_epsilon)
    scale = inverse * gamma if scale_after_normalization else inverse
    total = backprop.sum((0, 1, 2))
    spread = (backprop * (t - m)).sum((0, 1, 2))
    per_variance = spread * inverse * inverse * inverse * -0.5
    if scale_after_normalization:
        per_variance, per_gamma = per_variance * gamma, spread * inverse
    else:
        per_gamma = torch.zeros_like(gamma)
    return backprop * scale, -total * scale, per_variance, total, per_gamma


@GLOBAL_BATCH_NORM_GRAD.shape
def global_batch_norm_grad_shape(t: Shape, m: Shape, v: Shape, gamma: Shape, backprop: Shape) -> tuple[Shape, ...]:
    vector = Shape((t.of_rank(4)[3],)).merge(m.of_rank(1))
    return t.merge(backprop), vector, vector, vector, vector
