"""Fake quantization: values rounded as a few bits would hold them, with straight-through gradients."""

from __future__ import annotations

from typing import Any

import torch

from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.shapes import Shape
from stoker._src.graph.definition import define, unchanged
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
    """The range moved so that zero is exactly a level, and the distance between levels."""
    scale = (high - low) / (highest - lowest)
    zero = lowest - low / scale
    zero = torch.where(zero < lowest, lowest, torch.where(zero > highest, highest, torch.floor(zero + 0.5)))
    return (lowest - zero) * scale, (highest - zero) * scale, scale


def _quantized(
    x: torch.Tensor, low: torch.Tensor, high: torch.Tensor, num_bits: int, narrow_range: bool
) -> torch.Tensor:
    start, end, scale = _nudged(low, high, *_levels(num_bits, narrow_range))
    clamped = torch.minimum(torch.maximum(x, start), end) - start
    result = torch.floor(clamped / scale + 0.5) * scale + start
    return torch.where((low == 0) & (high == 0), torch.zeros_like(result), result)


def _inside(
    x: torch.Tensor, low: torch.Tensor, high: torch.Tensor, num_bits: int, narrow_range: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Where values lie below and above the range."""
    start, end, _ = _nudged(low, high, *_levels(num_bits, narrow_range))
    everything = (low == 0) & (high == 0)
    return (x < start) & ~everything, (x > end) & ~everything


# ---- FakeQuantWithMinMaxArgs ------------------------------------------------------------------------------------

FAKE_QUANT_ARGS = define("FakeQuantWithMinMaxArgs(inputs: float32) -> (outputs: float32)", **_RANGE)
FAKE_QUANT_ARGS_GRADIENT = define(
    "FakeQuantWithMinMaxArgsGradient(gradients: float32, inputs: float32) -> (backprops: float32)", **_RANGE
).not_differentiable()
FAKE_QUANT_ARGS.shape(unchanged)
FAKE_QUANT_ARGS_GRADIENT.shape(unchanged)


def _bounds(x: torch.Tensor, low: float, high: float) -> tuple[torch.Tensor, torch.Tensor]:
    if low >= high:
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
    below, above = _inside(inputs, *_bounds(inputs, min, max), num_bits, narrow_range)
    return gradients.masked_fill(below | above, 0.0)


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
        check(inputs, min, max)
        below, above = _inside(inputs, min, max, num_bits, narrow_range)
        axes = list(range(inputs.ndim - 1)) if per_channel else list(range(inputs.ndim))

        def summed(mask: torch.Tensor) -> torch.Tensor:
            picked = torch.where(mask, gradients, 0.0)
            return picked.sum(axes) if axes else picked

        return gradients.masked_fill(below | above, 0.0), summed(below), summed(above)

    @forward.shape
    def forward_shape(inputs: Shape, min: Shape, max: Shape) -> Shape:
        return inputs

    @backward.shape
    def backward_shape(gradients: Shape, inputs: Shape, min: Shape, max: Shape) -> Any:
        return inputs, min, max

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
    """Values rounded to one of 2**num_bits levels between `min` and `max`, of which zero is one."""
    return FAKE_QUANT_ARGS(
        inputs, min=float(min), max=float(max), num_bits=num_bits, narrow_range=narrow_range, name=name
    )


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
    """The gradient of `fake_quant_with_min_max_args`: that of its result where the input lies in the range."""
    return FAKE_QUANT_ARGS_GRADIENT(
        gradients, inputs, min=float(min), max=float(max), num_bits=num_bits, narrow_range=narrow_range, name=name
    )


@export("quantization.fake_quant_with_min_max_vars", v1="fake_quant_with_min_max_vars")
def fake_quant_with_min_max_vars(
    inputs: Any, min: Any, max: Any, num_bits: int = 8, narrow_range: bool = False, name: str | None = None
) -> Tensor:
    """`fake_quant_with_min_max_args` with a range that can be learned."""
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
    """`fake_quant_with_min_max_vars` with a range for each channel, the last dimension."""
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
