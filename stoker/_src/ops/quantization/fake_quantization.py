"""Fake quantization: rounds values to a few bits, with straight-through gradients."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from stoker._src.base.dtypes import FLOATS
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.shapes import Shape
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import INT32, STRING, define, unchanged
from stoker._src.graph.tensor import Operation, Tensor

_BITS = {"num_bits": 8, "narrow_range": False}
_RANGE = {"min": -6.0, "max": 6.0, **_BITS}


def _levels(num_bits: int, narrow_range: bool) -> tuple[float, float]:
    if not 2 <= num_bits <= 16:
        raise InvalidArgumentError(None, None, f"num_bits is out of range: {num_bits} with op range [2, 16]")
    return (1.0 if narrow_range else 0.0), float((1 << num_bits) - 1)


def _nudged(
    low: torch.Tensor, high: torch.Tensor, lowest: float, highest: float
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Shifts the range so that zero is exactly a level. Returns the range and the distance between levels."""
    scale = (high - low) / (highest - lowest)
    zero = lowest - low / scale
    zero = torch.where(zero < lowest, lowest, torch.where(zero > highest, highest, torch.floor(zero + 0.5)))
    return (lowest - zero) * scale, (highest - zero) * scale, scale


def _quantized(
    x: torch.Tensor, low: torch.Tensor, high: torch.Tensor, num_bits: int, narrow_range: bool
) -> torch.Tensor:
    start, end, scale = _nudged(low, high, *_levels(num_bits, narrow_range))
    # The order matters: if the range is reversed, its start takes precedence.
    is_one = x.is_cpu and not low.ndim
    if is_one and not low and not high:
        return torch.zeros_like(x)
    result = torch.maximum(torch.minimum(x, end), start).sub_(start)
    result = result.div_(scale).add_(0.5).floor_().mul_(scale).add_(start)
    return result if is_one else torch.where((low == 0) & (high == 0), torch.zeros_like(result), result)


def _lowered(build: Any, x: Any, low: Any, high: Any, num_bits: int, narrow_range: bool) -> Any:
    """`_quantized` as fused loops."""
    lowest, highest = map(build.scalar, _levels(num_bits, narrow_range))
    zero, half = build.scalar(0.0), build.scalar(0.5)
    everything = build.binary("mul", build.binary("equal", low, zero), build.binary("equal", high, zero))
    scale = build.binary("div", build.binary("sub", high, low), build.binary("sub", highest, lowest))
    scale = build.binary("add", scale, everything)  # not zero; the result is zero because its range is
    level = build.binary("sub", lowest, build.binary("div", low, scale))
    level = build.binary("max", build.unary("floor", build.binary("add", level, half)), lowest)
    level = build.binary("min", level, highest)
    start, end = (
        build.binary("mul", build.binary("sub", bound, level), build.binary("sub", scale, everything))
        for bound in (lowest, highest)
    )
    clamped = build.binary("sub", build.binary("max", build.binary("min", x, end), start), start)
    steps = build.unary("floor", build.binary("add", build.binary("div", clamped, scale), half))
    return build.binary("add", build.binary("mul", steps, scale), start)


def _masks(
    x: torch.Tensor, low: torch.Tensor, high: torch.Tensor, num_bits: int, narrow_range: bool
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Whether each value is in the range, below, and above it. One that is not a number is none of these."""
    start, end, _ = _nudged(low, high, *_levels(num_bits, narrow_range))
    everything = (low == 0) & (high == 0)
    below, above = x < torch.where(everything, -torch.inf, start), x > torch.where(everything, torch.inf, end)
    return ((x >= start) & (x <= end)) | everything, below, above


def _next(number: float, towards: float) -> float:
    """The next number of float32. (Beside zero these are subnormal, which count as zero.)"""
    if number == 0:
        return float(np.copysign(np.finfo(np.float32).tiny, towards))
    return float(np.nextafter(np.float32(number), np.float32(towards)))


def _divided(
    gradients: torch.Tensor,
    x: torch.Tensor,
    low: torch.Tensor,
    high: torch.Tensor,
    num_bits: int,
    narrow_range: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The gradients where values are in the range, and the sums of those where they are below and above, without masks.

    The range is not reversed, and the values are finite.
    """
    if not low and not high:
        return gradients.clone(), torch.zeros_like(low), torch.zeros_like(high)
    start, end, _ = _nudged(low, high, *_levels(num_bits, narrow_range))
    before, behind = _next(float(start), -np.inf), _next(float(end), np.inf)
    not_below = torch.ops.aten.threshold_backward(gradients, x, before)
    inside = torch.ops.aten.hardtanh_backward(gradients, x, before, behind)
    return inside, (gradients - not_below).sum(), (not_below - inside).sum()


# ---- FakeQuantWithMinMaxArgs ------------------------------------------------------------------------------------

FAKE_QUANT_ARGS = define("FakeQuantWithMinMaxArgs(inputs: float32) -> (outputs: float32)", **_RANGE)
FAKE_QUANT_ARGS_GRADIENT = (
    define("FakeQuantWithMinMaxArgsGradient(gradients: float32, inputs: float32) -> (backprops: float32)", **_RANGE)
    .not_differentiable()
    .alike()
    .late()
)
FAKE_QUANT_ARGS.shape(unchanged)


def _bounds(x: torch.Tensor, low: float, high: float) -> tuple[torch.Tensor, torch.Tensor]:
    if not low < high:
        raise InvalidArgumentError(None, None, f"min has to be smaller than max, was: {low} >= {high}")
    return x.new_tensor(low), x.new_tensor(high)


@FAKE_QUANT_ARGS.kernel
def fake_quant_args_kernel(
    inputs: torch.Tensor, *, min: float, max: float, num_bits: int, narrow_range: bool
) -> torch.Tensor:
    return _quantized(inputs, *_bounds(inputs, min, max), num_bits, narrow_range)


@FAKE_QUANT_ARGS_GRADIENT.kernel
def fake_quant_args_gradient_kernel(
    gradients: torch.Tensor, inputs: torch.Tensor, *, min: float, max: float, num_bits: int, narrow_range: bool
) -> torch.Tensor:
    if gradients.shape != inputs.shape:
        raise InvalidArgumentError(
            None, None, f"gradient and input must be the same size: {Shape(gradients.shape)} and {Shape(inputs.shape)}"
        )
    inside, _, _ = _masks(inputs, *_bounds(inputs, min, max), num_bits, narrow_range)
    return gradients * inside


@FAKE_QUANT_ARGS.grad
def fake_quant_args_grad(op: Operation, g: Tensor) -> Tensor:
    return FAKE_QUANT_ARGS_GRADIENT(g, op.inputs[0], **{name: op.attr(name) for name in _RANGE})


# ---- FakeQuantWithMinMaxVars, ...PerChannel ---------------------------------------------------------------------


def _with_variables(name: str, *, per_channel: bool) -> tuple[Any, Any]:
    forward = define(f"{name}(inputs: float32, min: float32, max: float32) -> (outputs: float32)", **_BITS)
    backward = define(
        f"{name}Gradient(gradients: float32, inputs: float32, min: float32, max: float32) -> "
        "(backprops_wrt_input: float32, backprop_wrt_min: float32, backprop_wrt_max: float32)",
        **_BITS,
    ).not_differentiable()

    def check(inputs: torch.Tensor, low: torch.Tensor, high: torch.Tensor) -> None:
        wanted = (inputs.shape[-1],) if per_channel and inputs.ndim else ()
        for label, bound in (("min", low), ("max", high)):
            if tuple(bound.shape) != wanted:
                raise InvalidArgumentError(
                    None, None, f"{label} has incorrect shape {Shape(bound.shape)}, expected {Shape(wanted)}"
                )

    @forward.kernel
    def forward_kernel(
        inputs: torch.Tensor, min: torch.Tensor, max: torch.Tensor, *, num_bits: int, narrow_range: bool
    ) -> torch.Tensor:
        check(inputs, min, max)
        return _quantized(inputs, min, max, num_bits, narrow_range)

    @forward.lower
    def forward_lower(build: Any, op: Operation, inputs: Any, min: Any, max: Any) -> Any:
        wanted = inputs.shape[-1:] if per_channel else ()
        if min.shape != wanted or max.shape != wanted or (per_channel and not inputs.shape):
            return None
        return _lowered(build, inputs, min, max, op.attr("num_bits"), op.attr("narrow_range"))

    @backward.kernel
    def backward_kernel(
        gradients: torch.Tensor,
        inputs: torch.Tensor,
        min: torch.Tensor,
        max: torch.Tensor,
        *,
        num_bits: int,
        narrow_range: bool,
    ) -> Any:
        if gradients.shape != inputs.shape:
            raise InvalidArgumentError(
                None,
                None,
                f"gradient and input must be the same size: {Shape(gradients.shape)} != {Shape(inputs.shape)}",
            )
        check(inputs, min, max)
        if inputs.is_cpu and not per_channel and min <= max and math.isfinite(inputs.sum()):
            return _divided(gradients, inputs, min, max, num_bits, narrow_range)
        inside, below, above = _masks(inputs, min, max, num_bits, narrow_range)
        axes = list(range(inputs.ndim - 1)) if per_channel else list(range(inputs.ndim))

        def summed(mask: torch.Tensor) -> torch.Tensor:
            picked = gradients * mask
            return picked.sum(axes) if axes else picked

        return gradients * inside, summed(below), summed(above)

    @forward.shape
    def forward_shape(inputs: Shape, min: Shape, max: Shape) -> Shape:
        _bounds_shape(inputs, min, max)
        return inputs

    def _bounds_shape(inputs: Shape, min: Shape, max: Shape) -> Shape:
        if not per_channel:
            return min.of_rank(0).merge(max)
        channels = Shape((inputs.at_least(1)[-1],)) if inputs.dims is not None else Shape((None,))
        return channels.merge(min).merge(max)

    @backward.shape
    def backward_shape(gradients: Shape, inputs: Shape, min: Shape, max: Shape) -> Any:
        inputs = gradients.merge(inputs)
        bounds = _bounds_shape(inputs, min, max)
        return inputs, bounds, bounds

    @forward.grad
    def gradient(op: Operation, g: Tensor) -> Any:
        return tuple(backward(g, *op.inputs, num_bits=op.attr("num_bits"), narrow_range=op.attr("narrow_range")))

    return forward, backward


FAKE_QUANT_VARS, FAKE_QUANT_VARS_GRADIENT = _with_variables("FakeQuantWithMinMaxVars", per_channel=False)
FAKE_QUANT_CHANNELS, FAKE_QUANT_CHANNELS_GRADIENT = _with_variables(
    "FakeQuantWithMinMaxVarsPerChannel", per_channel=True
)


@export("quantization.fake_quant_with_min_max_args", v1="fake_quant_with_min_max_args")
def fake_quant_with_min_max_args(
    inputs: Any, min: float = -6, max: float = 6, num_bits: int = 8, narrow_range: bool = False, name: str | None = None
) -> Tensor:
    """Rounds values to one of 2**num_bits levels between `min` and `max`. Zero is always a level."""
    return FAKE_QUANT_ARGS(inputs, min=min, max=max, num_bits=num_bits, narrow_range=narrow_range, name=name)


@export("quantization.fake_quant_with_min_max_args_gradient", v1="fake_quant_with_min_max_args_gradient")
def fake_quant_with_min_max_args_gradient(
    gradients: Any,
    inputs: Any,
    min: float = -6,
    max: float = 6,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:
    """The gradient of `fake_quant_with_min_max_args`: it passes through if the input is in the range, and is zero elsewhere."""
    return FAKE_QUANT_ARGS_GRADIENT(
        gradients, inputs, min=min, max=max, num_bits=num_bits, narrow_range=narrow_range, name=name
    )


@export("quantization.fake_quant_with_min_max_vars", v1="fake_quant_with_min_max_vars")
def fake_quant_with_min_max_vars(
    inputs: Any, min: Any, max: Any, num_bits: int = 8, narrow_range: bool = False, name: str | None = None
) -> Tensor:
    """`fake_quant_with_min_max_args` with a trainable range."""
    return FAKE_QUANT_VARS(inputs, min, max, num_bits=num_bits, narrow_range=narrow_range, name=name)


@export("quantization.fake_quant_with_min_max_vars_gradient", v1="fake_quant_with_min_max_vars_gradient")
def fake_quant_with_min_max_vars_gradient(
    gradients: Any,
    inputs: Any,
    min: Any,
    max: Any,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Any:
    """The gradients of `fake_quant_with_min_max_vars` with respect to its input and its range."""
    return FAKE_QUANT_VARS_GRADIENT(
        gradients, inputs, min, max, num_bits=num_bits, narrow_range=narrow_range, name=name
    )


@export("quantization.fake_quant_with_min_max_vars_per_channel", v1="fake_quant_with_min_max_vars_per_channel")
def fake_quant_with_min_max_vars_per_channel(
    inputs: Any, min: Any, max: Any, num_bits: int = 8, narrow_range: bool = False, name: str | None = None
) -> Tensor:
    """`fake_quant_with_min_max_vars` with a range for each channel (the last dimension)."""
    return FAKE_QUANT_CHANNELS(inputs, min, max, num_bits=num_bits, narrow_range=narrow_range, name=name)


@export(
    "quantization.fake_quant_with_min_max_vars_per_channel_gradient",
    v1="fake_quant_with_min_max_vars_per_channel_gradient",
)
def fake_quant_with_min_max_vars_per_channel_gradient(
    gradients: Any,
    inputs: Any,
    min: Any,
    max: Any,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Any:
    """The gradients of `fake_quant_with_min_max_vars_per_channel` with respect to its input and its ranges."""
    return FAKE_QUANT_CHANNELS_GRADIENT(
        gradients, inputs, min, max, num_bits=num_bits, narrow_range=narrow_range, name=name
    )


# ---- QuantizeAndDequantize --------------------------------------------------------------------------------------

_ROUND = STRING("HALF_TO_EVEN", allowed=("HALF_TO_EVEN", "HALF_UP"))


def _round_trip(
    x: torch.Tensor,
    low: Any,
    high: Any,
    signed_input: bool,
    num_bits: int,
    range_given: bool,
    round_mode: str,
    narrow_range: bool,
    axis: int,
) -> torch.Tensor:
    """Rounds values to `num_bits` integers on a scale that covers the range, and converts them back."""
    if not -1 <= axis < x.ndim:
        raise InvalidArgumentError(None, None, f"Axis should be at least -1 and below the rank {x.ndim}, got {axis}")
    if not 1 <= num_bits < (62 if signed_input else 63):
        raise InvalidArgumentError(None, None, f"num_bits is out of range: {num_bits} with signed_input {signed_input}")
    others = [i for i in range(x.ndim) if i != axis] if axis != -1 else list(range(x.ndim))
    form = [-1 if i == axis else 1 for i in range(x.ndim)] if axis != -1 else []
    if range_given:
        wanted = () if axis == -1 else (x.shape[axis],)
        for label, bound in (("input_min", low), ("input_max", high)):
            if tuple(bound.shape) != wanted:
                raise InvalidArgumentError(
                    None, None, f"{label} must have shape {Shape(wanted)}, but has {Shape(bound.shape)}"
                )
        if not bool((low <= high).all()):
            raise InvalidArgumentError(
                None, None, f"Invalid range: input_min {low.tolist()} > input_max {high.tolist()}"
            )
        least, most = low.reshape(form), high.reshape(form)
    elif others and x.numel():
        least, most = x.amin(others).reshape(form), x.amax(others).reshape(form)
    else:
        least, most = x, x
    top = float((1 << (num_bits - 1)) - 1 if signed_input else (1 << num_bits) - 1)
    bottom = (-top if narrow_range else -top - 1) if signed_input else 0.0
    limit = torch.finfo(x.dtype).max
    by_least = torch.where(bottom * least > 0, bottom / least, limit)
    by_most = torch.where(top * most > 0, top / most, limit)
    # The side that needs the coarser scale determines the scale and the other end of the range.
    chosen = by_least < by_most
    scale = torch.where(chosen, by_least, by_most)
    step = torch.where(chosen, least / bottom if bottom else least, most / top)
    start, end = torch.where(chosen, least, bottom * step), torch.where(chosen, top * step, most)
    # A range taken from the input needs no clamping. TensorFlow omits it even for unsigned integers, which would need it.
    scaled = (torch.minimum(torch.maximum(x, start), end) if range_given else x) * scale
    rounded = torch.round(scaled) if round_mode == "HALF_TO_EVEN" else torch.floor(scaled + 0.5)
    return (rounded * step).to(x.dtype)


_ATTRS = {"signed_input": True, "num_bits": 8, "range_given": False, "T": FLOATS}
QUANTIZE_AND_DEQUANTIZE = define(
    "QuantizeAndDequantize(input: T) -> (output: T)", **{**_ATTRS, "input_min": 0.0, "input_max": 0.0}
)
QUANTIZE_AND_DEQUANTIZE.rows(lambda op, inputs: None)  # the range may depend on all elements
QUANTIZE_AND_DEQUANTIZE_V2, QUANTIZE_AND_DEQUANTIZE_V4 = (
    define(
        f"QuantizeAndDequantize{version}(input: T, input_min: T, input_max: T) -> (output: T)",
        **{**_ATTRS, "round_mode": _ROUND, "narrow_range": False, "axis": INT32(-1)},
    )
    for version in ("V2", "V4")
)
QUANTIZE_AND_DEQUANTIZE_V3 = define(
    "QuantizeAndDequantizeV3(input: T, input_min: T, input_max: T, num_bits: scalar host int32) -> (output: T)",
    signed_input=True,
    range_given=True,
    T=FLOATS,
    narrow_range=False,
    axis=INT32(-1),
)
QUANTIZE_AND_DEQUANTIZE_V4_GRAD = define(
    "QuantizeAndDequantizeV4Grad(gradients: T, input: T, input_min: T, input_max: T) -> "
    "(input_backprop: T, input_min_backprop: T, input_max_backprop: T)",
    T=FLOATS,
    axis=INT32(-1),
).not_differentiable()
QUANTIZE_AND_DEQUANTIZE.shape(unchanged)


def range_rule(input: Shape, input_min: Shape, input_max: Shape, axis: int) -> Shape:
    """The shape of the bounds: a scalar, or one bound for each slice of `input` along `axis`."""
    if axis < -1:
        raise InvalidArgumentError(None, None, f"axis should be at least -1, got {axis}")
    if axis >= 2**31 - 1:
        raise InvalidArgumentError(None, None, f"Axis cannot be >= 2**31 - 1, got {axis}")
    bounds = input_min.of_rank(0 if axis == -1 else 1).merge(input_max)
    if axis != -1 and input.rank is not None:
        bounds = bounds.merge(Shape((input.at_least(axis + 1)[axis],)))
    return bounds


@QUANTIZE_AND_DEQUANTIZE_V2.shape
@QUANTIZE_AND_DEQUANTIZE_V4.shape
def quantize_and_dequantize_v2_shape(input: Shape, input_min: Shape, input_max: Shape, *, axis: int) -> Shape:
    range_rule(input, input_min, input_max, axis)
    return input


@QUANTIZE_AND_DEQUANTIZE_V3.shape
def quantize_and_dequantize_v3_shape(
    input: Shape, input_min: Shape, input_max: Shape, num_bits: Shape, *, axis: int
) -> Shape:
    range_rule(input, input_min, input_max, axis)
    return input


@QUANTIZE_AND_DEQUANTIZE.kernel
def quantize_and_dequantize_kernel(
    input: torch.Tensor, *, signed_input: bool, num_bits: int, range_given: bool, input_min: float, input_max: float
) -> torch.Tensor:
    low, high = input.new_tensor(input_min), input.new_tensor(input_max)
    return _round_trip(input, low, high, signed_input, num_bits, range_given, "HALF_TO_EVEN", False, -1)


@QUANTIZE_AND_DEQUANTIZE_V2.kernel
@QUANTIZE_AND_DEQUANTIZE_V4.kernel
def quantize_and_dequantize_v2_kernel(
    input: torch.Tensor, input_min: torch.Tensor, input_max: torch.Tensor,
    *, signed_input: bool, num_bits: int, range_given: bool, round_mode: str, narrow_range: bool, axis: int,
) -> torch.Tensor:  # fmt: skip
    return _round_trip(input, input_min, input_max, signed_input, num_bits, range_given, round_mode, narrow_range, axis)


@QUANTIZE_AND_DEQUANTIZE_V3.kernel
def quantize_and_dequantize_v3_kernel(
    input: torch.Tensor, input_min: torch.Tensor, input_max: torch.Tensor, num_bits: int,
    *, signed_input: bool, range_given: bool, narrow_range: bool, axis: int,
) -> torch.Tensor:  # fmt: skip
    if not input.ndim:
        raise InvalidArgumentError(
            None, None, f"Axis requested is larger than input dimensions. Axis: {axis} Input Dimensions: 0"
        )
    return _round_trip(
        input, input_min, input_max, signed_input, num_bits, range_given, "HALF_TO_EVEN", narrow_range, axis
    )


@QUANTIZE_AND_DEQUANTIZE_V4_GRAD.kernel
def quantize_and_dequantize_v4_grad_kernel(
    gradients: torch.Tensor, input: torch.Tensor, input_min: torch.Tensor, input_max: torch.Tensor, *, axis: int
) -> Any:
    if gradients.shape != input.shape:
        raise InvalidArgumentError(
            None, None, f"gradient and input must be the same size: {Shape(gradients.shape)} != {Shape(input.shape)}"
        )
    if not -1 <= axis < input.ndim:
        raise InvalidArgumentError(
            None, None, f"Axis should be -1 or 0 or a positive value less than {input.ndim}, got {axis}"
        )
    wanted = () if axis == -1 else (input.shape[axis],)
    for label, bound in (("min", input_min), ("max", input_max)):
        if tuple(bound.shape) != wanted:
            raise InvalidArgumentError(
                None,
                None,
                f"input_{label} must have shape {Shape(wanted)} for axis {axis}, but has {Shape(bound.shape)}",
            )
    form = [-1 if i == axis else 1 for i in range(input.ndim)] if axis != -1 else []
    inside = (input >= input_min.reshape(form)) & (input <= input_max.reshape(form))
    return gradients * inside, torch.zeros_like(input_min), torch.zeros_like(input_max)


@QUANTIZE_AND_DEQUANTIZE_V4_GRAD.shape
def quantize_and_dequantize_v4_grad_shape(
    gradients: Shape, input: Shape, input_min: Shape, input_max: Shape, *, axis: int
) -> Any:
    bounds = range_rule(input, input_min, input_max, axis)
    return gradients.merge(input), bounds, bounds


@QUANTIZE_AND_DEQUANTIZE.grad
def quantize_and_dequantize_grad(op: Operation, g: Tensor) -> Tensor:
    return g


@QUANTIZE_AND_DEQUANTIZE_V2.grad
def quantize_and_dequantize_v2_grad(op: Operation, g: Tensor) -> Any:
    return g, None, None


@QUANTIZE_AND_DEQUANTIZE_V3.grad
def quantize_and_dequantize_v3_grad(op: Operation, g: Tensor) -> Any:
    return g, None, None, None


@QUANTIZE_AND_DEQUANTIZE_V4.grad
def quantize_and_dequantize_v4_grad(op: Operation, g: Tensor) -> Any:
    return tuple(QUANTIZE_AND_DEQUANTIZE_V4_GRAD(g, *op.inputs, axis=op.attr("axis")))


def _quantize_and_dequantize(
    definition: Any, input: Any, input_min: Any, input_max: Any, signed_input: bool, num_bits: int,
    range_given: bool, round_mode: str, name: str | None, narrow_range: bool, axis: int | None,
) -> Tensor:  # fmt: skip
    at = -1 if axis is None else axis
    if at < -1:
        rank = convert_to_tensor(input).static_shape.rank
        if rank is None:
            raise ValueError(f"input should have known rank to use negative axis, got axis {axis}.")
        at += rank
    return definition(
        input,
        input_min,
        input_max,
        signed_input=signed_input,
        num_bits=num_bits,
        range_given=range_given,
        round_mode=round_mode,
        narrow_range=narrow_range,
        axis=at,
        name=name,
    )


@export("quantization.quantize_and_dequantize")
def quantize_and_dequantize(
    input: Any, input_min: Any, input_max: Any, signed_input: bool = True, num_bits: int = 8, range_given: bool = False,
    round_mode: str = "HALF_TO_EVEN", name: str | None = None, narrow_range: bool = False, axis: int | None = None,
) -> Tensor:  # fmt: skip
    """Rounds values to the levels of `num_bits` integers. The gradient passes through unchanged.

    Args:
        input: floating point values.
        input_min: the smallest value to represent, if `range_given`; one value for each slice along `axis`.
        input_max: the largest value to represent, in the same form.
        signed_input: whether the integers are signed.
        num_bits: the number of bits of the integers.
        range_given: whether to use the given range instead of the input's range.
        round_mode: "HALF_TO_EVEN" or "HALF_UP".
        name: the op's name.
        narrow_range: whether to omit the most negative integer.
        axis: the dimension along which each slice has its own range.
    """
    return _quantize_and_dequantize(
        QUANTIZE_AND_DEQUANTIZE_V2, input, input_min, input_max, signed_input, num_bits, range_given, round_mode, name, narrow_range, axis
    )  # fmt: skip


@export("quantization.quantize_and_dequantize_v2")
def quantize_and_dequantize_v2(
    input: Any, input_min: Any, input_max: Any, signed_input: bool = True, num_bits: int = 8, range_given: bool = False,
    round_mode: str = "HALF_TO_EVEN", name: str | None = None, narrow_range: bool = False, axis: int | None = None,
) -> Tensor:  # fmt: skip
    """`quantize_and_dequantize` with a zero gradient outside the range."""
    return _quantize_and_dequantize(
        QUANTIZE_AND_DEQUANTIZE_V4, input, input_min, input_max, signed_input, num_bits, range_given, round_mode, name, narrow_range, axis
    )  # fmt: skip
