"""Grayscale morphology: dilation (the maximum of input plus filter over each window) and erosion."""

from __future__ import annotations

from typing import Any

import torch

from stoker._src.base.dtypes import REAL
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.shapes import Shape
from stoker._src.graph.definition import INT32S, STRING, define
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import selection
from stoker._src.ops.math import unary_functions
from stoker._src.ops.nn.arguments import either
from stoker._src.ops.nn.pool_kernels import scattered
from stoker._src.ops.nn.windows import Windows, check_window_attr, check_window_sizes, window_shape, windows

_ATTRS: dict[str, Any] = {
    "strides": INT32S(minimum=4),
    "rates": INT32S(minimum=4),
    "padding": STRING(allowed=("SAME", "VALID")),
}
DILATION2D = define("Dilation2D(input: T, filter: T) -> (output: T)", T=REAL, **_ATTRS)
DILATION2D_BACKPROP_INPUT = define(
    "Dilation2DBackpropInput(input: T, filter: T, out_backprop: T) -> (in_backprop: T)", T=REAL, **_ATTRS
)
DILATION2D_BACKPROP_FILTER = define(
    "Dilation2DBackpropFilter(input: T, filter: T, out_backprop: T) -> (filter_backprop: T)", T=REAL, **_ATTRS
)


@DILATION2D.shape
def dilation2d_shape(
    input: Shape, filter: Shape, *, strides: tuple[int, ...], rates: tuple[int, ...], padding: str
) -> Shape:
    check_window_sizes("strides", strides, "NHWC", "Dilation2D")
    check_window_sizes("rates", rates, "NHWC", "Dilation2D")
    input, filter = input.of_rank(4), filter.of_rank(3)
    channels = Shape((input[3],)).merge(Shape((filter[2],)))[0]
    return window_shape(input, filter.dims[:2], strides[1:3], rates[1:3], padding, (), "NHWC", channels)  # type: ignore[index]


DILATION2D_BACKPROP_INPUT.late().shape(lambda input, filter, out_backprop: input.of_rank(4))
DILATION2D_BACKPROP_FILTER.late().shape(lambda input, filter, out_backprop: filter.of_rank(3))


def _candidates(
    input: torch.Tensor, filter: torch.Tensor, strides: tuple[int, ...], rates: tuple[int, ...], padding: str
) -> tuple[torch.Tensor, Windows]:
    """input + filter for every offset of the window, offsets first: [offsets, batch, rows, columns, channels].

    Positions outside the input have the lowest value, which is never selected.
    """
    check_window_attr("strides", strides, "NHWC", "Dilation2D")
    check_window_attr("rates", rates, "NHWC", "Dilation2D")
    if input.shape[3] != filter.shape[2]:
        raise InvalidArgumentError(
            None, None, f"input and filter must have the same depth: {input.shape[3]} vs {filter.shape[2]}"
        )
    kernel = (filter.shape[0], filter.shape[1])
    found = windows(tuple(input.shape[1:3]), kernel, strides[1:3], rates[1:3], padding)
    wide = input if input.dtype.is_floating_point else input.to(torch.float64)
    padded = torch.nn.functional.pad(
        wide, (0, 0, found.before[1], found.after[1], found.before[0], found.after[0]), value=float("-inf")
    )
    rows, columns = found.outputs
    parts = []
    for i in range(kernel[0]):
        for j in range(kernel[1]):
            top, left = i * rates[1], j * rates[2]
            shifted = padded[
                :,
                top : top + (rows - 1) * strides[1] + 1 : strides[1],
                left : left + (columns - 1) * strides[2] + 1 : strides[2],
            ]
            parts.append(shifted + filter[i, j])
    if not parts:  # an empty window
        limits = torch.finfo if input.dtype.is_floating_point else torch.iinfo
        parts.append(wide.new_full((input.shape[0], rows, columns, input.shape[3]), limits(input.dtype).min))
    return torch.stack(parts), found


@DILATION2D.kernel
def dilation2d_kernel(
    input: torch.Tensor, filter: torch.Tensor, *, strides: tuple[int, ...], rates: tuple[int, ...], padding: str
) -> torch.Tensor:
    largest = _candidates(input, filter, strides, rates, padding)[0].amax(0).to(input.dtype)
    # For a window outside the input, TensorFlow gives the lowest finite number.
    return largest.clamp(min=torch.finfo(input.dtype).min) if input.dtype.is_floating_point else largest


def _flat_targets(
    input: torch.Tensor, filter: torch.Tensor, found: Windows, chosen: torch.Tensor, strides: Any, rates: Any
) -> torch.Tensor:
    """The flat position of the selected input element of each output."""
    batch, height, width, channels = input.shape
    rows, columns = found.outputs
    device = input.device
    i, j = chosen // filter.shape[1], chosen % filter.shape[1]
    y = torch.arange(rows, device=device).reshape(1, -1, 1, 1) * strides[1] - found.before[0] + i * rates[1]
    x = torch.arange(columns, device=device).reshape(1, 1, -1, 1) * strides[2] - found.before[1] + j * rates[2]
    b = torch.arange(batch, device=device).reshape(-1, 1, 1, 1)
    return ((b * height + y) * width + x) * channels + torch.arange(channels, device=device)


def _check_out_backprop(out_backprop: torch.Tensor, values: torch.Tensor) -> None:
    if out_backprop.shape != values.shape[1:]:
        raise InvalidArgumentError(
            None,
            None,
            f"out_backprop has incompatible size: expected {Shape(values.shape[1:])}, found {Shape(out_backprop.shape)}",
        )


@DILATION2D_BACKPROP_INPUT.kernel
def dilation2d_backprop_input_kernel(
    input: torch.Tensor,
    filter: torch.Tensor,
    out_backprop: torch.Tensor,
    *,
    strides: tuple[int, ...],
    rates: tuple[int, ...],
    padding: str,
) -> torch.Tensor:
    values, found = _candidates(input, filter, strides, rates, padding)
    _check_out_backprop(out_backprop, values)
    targets = _flat_targets(input, filter, found, values.argmax(0), strides, rates)
    return scattered(input, targets, out_backprop)


@DILATION2D_BACKPROP_FILTER.kernel
def dilation2d_backprop_filter_kernel(
    input: torch.Tensor,
    filter: torch.Tensor,
    out_backprop: torch.Tensor,
    *,
    strides: tuple[int, ...],
    rates: tuple[int, ...],
    padding: str,
) -> torch.Tensor:
    values, _ = _candidates(input, filter, strides, rates, padding)
    _check_out_backprop(out_backprop, values)
    channels = input.shape[3]
    targets = values.argmax(0) * channels + torch.arange(channels, device=input.device)
    return scattered(filter, targets, out_backprop)


@DILATION2D.grad
def dilation2d_gradient(op: Operation, g: Tensor) -> tuple[Tensor, Tensor]:
    attrs = {name: op.attr(name) for name in _ATTRS}
    x, filter = op.inputs
    return DILATION2D_BACKPROP_INPUT(x, filter, g, **attrs), DILATION2D_BACKPROP_FILTER(x, filter, g, **attrs)


@export(v1="nn.dilation2d")
def dilation2d(
    input: Any,
    filter: Any = None,
    strides: Any = None,
    rates: Any = None,
    padding: Any = None,
    name: str | None = None,
    filters: Any = None,
    dilations: Any = None,
) -> Tensor:
    """The maximum over each window of input + filter, per channel. Filters are [height, width, channels]."""
    filter = either(filter, "filter", filters, "filters")
    rates = either(rates, "rates", dilations, "dilations")
    return DILATION2D(input, filter, strides=strides, rates=rates, padding=padding, name=name)


@export(v2="nn.dilation2d")
def dilation2d_v2(
    input: Any, filters: Any, strides: Any, padding: str, data_format: str, dilations: Any, name: str | None = None
) -> Tensor:
    """The maximum over each window of input + filter, per channel. Filters are [height, width, channels]."""
    if data_format != "NHWC":
        raise ValueError(
            f"`data_format` values other than 'NHWC' are not supported. Received: data_format={data_format}"
        )
    return DILATION2D(input, filters, strides=strides, rates=dilations, padding=padding, name=name)


@export(v1="nn.erosion2d")
def erosion2d(value: Any, kernel: Any, strides: Any, rates: Any, padding: str, name: str | None = None) -> Tensor:
    """The minimum over each window of value - kernel, per channel: the dual of `dilation2d`."""
    with name_scope(name, "erosion2d", [value, kernel]) as scope:
        mirrored = selection.REVERSE_V2(kernel, [0, 1])
        return unary_functions.negative(
            DILATION2D(
                unary_functions.negative(value), mirrored, strides=strides, rates=rates, padding=padding, name=scope
            )
        )


@export(v2="nn.erosion2d")
def erosion2d_v2(
    value: Any, filters: Any, strides: Any, padding: str, data_format: str, dilations: Any, name: str | None = None
) -> Tensor:
    """The minimum over each window of value - filters, per channel: the dual of `dilation2d`."""
    if data_format != "NHWC":
        raise ValueError(
            f"`data_format` values other than 'NHWC' are not supported. Received: data_format={data_format}"
        )
    return erosion2d(value, filters, strides, dilations, padding, name)
