"""Local response normalization (Krizhevsky et al., 2012): divides each channel by the activity of its neighbours.

y[c] = x[c] * (bias + alpha * sum(x[c - depth_radius : c + depth_radius + 1] ** 2)) ** -beta
"""

from __future__ import annotations

from typing import Any

import torch

from stoker._src.base import dtypes
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.shapes import Shape
from stoker._src.graph.definition import INT32, define, one_of
from stoker._src.graph.tensor import Operation, Tensor

# float64 is allowed in addition to TensorFlow's dtypes, so that gradients can be checked by finite differences.
_DTYPES = one_of(dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64, default=dtypes.float32)
_ATTRS: dict[str, Any] = {"depth_radius": INT32(5), "bias": 1.0, "alpha": 1.0, "beta": 0.5}
LRN = define("LRN(input: rank=4 T) -> (output: T)", **_ATTRS, T=_DTYPES)
LRN_GRAD = define("LRNGrad(input_grads: rank=4 T, input_image: T, output_image: T) -> (output: T)", **_ATTRS, T=_DTYPES)


@LRN.shape
def lrn_shape(input: Shape) -> Shape:
    return input.of_rank(4)


@LRN_GRAD.shape
def lrn_grad_shape(input_grads: Shape, input_image: Shape, output_image: Shape) -> Shape:
    return input_grads.of_rank(4).merge(input_image).merge(output_image)


def _neighbourhood(x: torch.Tensor, radius: int) -> torch.Tensor:
    """The sum over each channel and the `radius` channels on both sides.

    Sums of 1, 2, 4, ... adjacent channels are added up, so that a sum contains no channel but its own, and roundings stay few.
    """
    channels = x.shape[-1]
    radius = min(radius, channels)  # there are no channels beyond
    sums = x.new_zeros((*x.shape[:-1], channels + 2 * radius))
    sums[..., radius : radius + channels].copy_(x)
    found, begin, size, left = None, 0, 1, 2 * radius + 1
    while True:
        if left % 2:
            part = sums[..., begin : begin + channels]
            found = part if found is None else found + part
            begin += size
        left //= 2
        if not left:
            assert found is not None
            return found
        sums = sums[..., :-size] + sums[..., size:]
        size *= 2


def _power(norm: torch.Tensor, beta: float) -> torch.Tensor:
    """norm ** -beta. Roots are much faster than powers."""
    if beta == 0.5:
        return norm.rsqrt()
    if beta == 0.75:
        root = norm.rsqrt()
        return root.sqrt().mul_(root)
    return norm.pow(-beta)


def _check_radius(depth_radius: int) -> None:
    if not 0 <= depth_radius < 2**31 - 1:
        raise InvalidArgumentError(None, None, f"depth_radius = {depth_radius} is negative or larger than int max")


def _activity(x: torch.Tensor, depth_radius: int, bias: float, alpha: float) -> torch.Tensor:
    wide = x.to(torch.float32) if x.dtype in (torch.float16, torch.bfloat16) else x
    return _neighbourhood(wide * wide, depth_radius) * alpha + bias


@LRN.kernel
def lrn_kernel(input: torch.Tensor, *, depth_radius: int, bias: float, alpha: float, beta: float) -> torch.Tensor:
    if input.numel() == 0:
        return input.clone()
    _check_radius(depth_radius)
    norm = _activity(input, depth_radius, bias, alpha)
    return (input * _power(norm, beta)).to(input.dtype)


@LRN_GRAD.kernel
def lrn_grad_kernel(
    input_grads: torch.Tensor,
    input_image: torch.Tensor,
    output_image: torch.Tensor,
    *,
    depth_radius: int,
    bias: float,
    alpha: float,
    beta: float,
) -> torch.Tensor:
    if not input_grads.shape == input_image.shape == output_image.shape:
        raise InvalidArgumentError(
            None,
            None,
            "input_grads, input_image, and out_image should have the same shape: "
            f"{Shape(input_grads.shape)}, {Shape(input_image.shape)}, {Shape(output_image.shape)}",
        )
    if input_image.numel() == 0:
        return input_grads.clone()
    _check_radius(depth_radius)
    norm = _activity(input_image, depth_radius, bias, alpha)
    shared = _neighbourhood((input_grads * output_image).to(norm.dtype) / norm, depth_radius)
    return (input_grads * _power(norm, beta) - input_image * shared * (2 * alpha * beta)).to(input_grads.dtype)


@LRN.grad
def lrn_gradient(op: Operation, g: Tensor) -> Tensor:
    attrs = {name: op.attr(name) for name in _ATTRS}
    return LRN_GRAD(g, op.inputs[0], op.outputs[0], **attrs)


@export("nn.local_response_normalization", "nn.lrn")
def local_response_normalization(
    input: Any,
    depth_radius: int = 5,
    bias: float = 1,
    alpha: float = 1,
    beta: float = 0.5,
    name: str | None = None,
) -> Tensor:
    """Local response normalization over the last dimension of a 4-D tensor."""
    return LRN(input, depth_radius=depth_radius, bias=bias, alpha=alpha, beta=beta, name=name)
