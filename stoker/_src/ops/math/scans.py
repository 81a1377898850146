"""Cumulative sums and products along a dimension, argmax and argmin."""

from __future__ import annotations

import math as numbers
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import FLOATS, INDEX, NUMERIC, REAL, DType
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.extensions import extension
from stoker._src.base.shapes import UNKNOWN_SHAPE, Shape
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor, dtype_of
from stoker._src.graph.definition import OpDefinition, define, one_of
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import constants
from stoker._src.ops.math import arithmetic, comparison, unary_functions
from stoker._src.ops.support import rows
from stoker._src.ops.support.unsigned import SIGNED_TWIN, flipped, modular
from stoker._src.ops.support.values import torch_dtype

_native: Any = extension("stoker._src.ops.native.largest")

# ---- Cumsum, Cumprod, CumulativeLogsumexp -----------------------------------------------------------------------


def scan_shape(x: Shape, axis: np.ndarray | None) -> Shape:
    if axis is not None and axis.ndim == 0 and x.dims is not None:
        x.normalize_axis(int(axis))
    return x


def _scan(name: str, function: Callable[..., torch.Tensor], neutral: float, allowed: tuple[DType, ...]) -> OpDefinition:
    """Defines a cumulative op along `axis`, forward or reverse, inclusive or exclusive."""

    def kernel(x: torch.Tensor, axis: int, *, exclusive: bool, reverse: bool) -> torch.Tensor:
        if isinstance(axis, list):
            raise InvalidArgumentError(None, None, f"{name}: axis must be a scalar, not {axis}")
        if not -x.ndim <= axis < x.ndim:
            raise InvalidArgumentError(
                None, None, f"{name}: expected scan axis in the range [{-x.ndim}, {x.ndim}), but got {axis}."
            )
        if reverse:
            x = torch.flip(x, [axis])
        if exclusive and x.shape[axis]:
            edge = list(x.shape)
            edge[axis] = 1
            first = torch.full(edge, neutral, dtype=x.dtype, device=x.device)
            result = torch.cat([first, function(x.narrow(axis, 0, x.shape[axis] - 1), axis)], axis)
        else:
            result = function(x, axis)
        return torch.flip(result, [axis]) if reverse else result

    kernel.__name__ = kernel.__qualname__ = f"{name.lower()}_kernel"
    definition = define(
        f"{name}(x: T, axis: host Tidx) -> (out: T)",
        exclusive=False,
        reverse=False,
        T=allowed,
        Tidx=one_of(*INDEX, default=dtypes.int32),
    ).late()
    definition.kernel(modular(kernel))
    definition.shape(scan_shape, values=["axis"])
    return definition


CUMSUM = _scan("Cumsum", lambda x, axis: torch.cumsum(x, axis, dtype=x.dtype), 0, NUMERIC)
CUMPROD = _scan("Cumprod", lambda x, axis: torch.cumprod(x, axis, dtype=x.dtype), 1, NUMERIC)
CUMULATIVE_LOGSUMEXP = _scan("CumulativeLogsumexp", torch.logcumsumexp, float("-inf"), FLOATS)


@CUMSUM.grad
def cumsum_grad(op: Operation, g: Tensor) -> Any:
    return CUMSUM(g, op.inputs[1], exclusive=op.attr("exclusive"), reverse=not op.attr("reverse")), None


@CUMPROD.grad
def cumprod_grad(op: Operation, g: Tensor) -> Any:
    """As in TensorFlow: the cumulative sum of product times gradient, divided by the element (0 if the element is zero)."""
    x, axis = op.inputs
    exclusive, reverse = op.attr("exclusive"), op.attr("reverse")
    product = CUMPROD(x, axis, exclusive=exclusive, reverse=reverse)
    total = CUMSUM(arithmetic.multiply(product, g), axis, exclusive=exclusive, reverse=not reverse)
    return arithmetic.DIV_NO_NAN(total, x), None


@CUMULATIVE_LOGSUMEXP.grad
def cumulative_logsumexp_grad(op: Operation, g: Tensor) -> Any:
    """exp(x) times the cumulative sum of g exp(-y), computed in logarithms separately for the two signs of g."""
    x, axis = op.inputs
    y = op.outputs[0]
    lowest = constants.number(g.dtype.base_dtype.min, g)  # finite, so that the second derivative is finite

    def part(signed: Tensor) -> Tensor:
        positive = comparison.greater(signed, constants.number(0, g))
        logs = arithmetic.select(positive, unary_functions.log(signed), lowest)
        running = CUMULATIVE_LOGSUMEXP(
            arithmetic.subtract(logs, y), axis, exclusive=op.attr("exclusive"), reverse=not op.attr("reverse")
        )
        return unary_functions.exp(arithmetic.add(running, x))

    return arithmetic.subtract(part(g), part(unary_functions.negative(g))), None


@export("cumsum", "math.cumsum")
def cumsum(x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None) -> Tensor:
    """Cumulative sum along `axis`. `exclusive` omits the element itself; `reverse` starts from the end."""
    with name_scope(name, "Cumsum", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        return CUMSUM(x, axis, exclusive=exclusive, reverse=reverse, name=scope)


@export("math.cumprod", v1="cumprod")
def cumprod(x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None) -> Tensor:
    """Cumulative product along `axis`. `exclusive` omits the element itself; `reverse` starts from the end."""
    with name_scope(name, "Cumprod", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        return CUMPROD(x, axis, exclusive=exclusive, reverse=reverse, name=scope)


@export("math.cumulative_logsumexp")
def cumulative_logsumexp(
    x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Tensor:
    """Cumulative log(sum(exp(x))) along `axis`, without overflow."""
    with name_scope(name, "CumulativeLogsumexp", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        return CUMULATIVE_LOGSUMEXP(x, axis, exclusive=exclusive, reverse=reverse, name=scope)


# ---- ArgMax, ArgMin ---------------------------------------------------------------------------------------------


def place_shape(input: Shape, dimension: np.ndarray | None) -> Shape:
    if input.dims is None:
        return UNKNOWN_SHAPE
    if dimension is None:
        return Shape((None,) * (len(input) - 1))
    if len(input) < 2:
        return Shape(())  # a dimension out of range is reported at run time
    axis = input.normalize_axis(int(dimension))
    return Shape(input.dims[:axis] + input.dims[axis + 1 :])


def _place_rows(op: Operation, inputs: list[rows.Input]) -> list[Tensor] | None:
    rank, axis = inputs[0].rank, rows.numbers(inputs[1])
    if rank is None or axis is None or not -rank <= axis < rank or not inputs[0].stacked:
        return None
    return rows.again(op, [inputs[0].tensor, convert_to_tensor(axis % rank + 1, inputs[1].tensor.dtype)])


def _place(
    name: str, function: Callable[..., torch.Tensor], worst: float, axis_types: Any, results: Any
) -> OpDefinition:
    def kernel(input: torch.Tensor, dimension: int, *, output_type: DType) -> torch.Tensor:
        if not -input.ndim <= dimension < input.ndim:
            raise InvalidArgumentError(
                None, None, f"Expected dimension in the range [{-input.ndim}, {input.ndim}), but got {dimension}"
            )
        if input.shape[dimension] == 0:
            raise InvalidArgumentError(None, None, f"Reduction axis {dimension} is empty in shape {list(input.shape)}")
        if _native is not None and input.dtype is torch.float32 and dimension in (-1, input.ndim - 1):
            if input.device.type == "cpu" and input.is_contiguous():
                places = torch.empty(input.shape[:-1], dtype=torch.int64)
                least = function is torch.argmin
                _native.places(places, input, places.numel(), input.shape[-1], least)
                return places.to(torch_dtype(output_type))
        if input.dtype == torch.bool:
            input = input.to(torch.uint8)
        elif input.dtype in SIGNED_TWIN:
            input = flipped(input)
        elif input.dtype.is_floating_point:
            # NaN is selected only if there is nothing else.
            input = torch.nan_to_num(input, worst, numbers.inf, -numbers.inf)
        return function(input, dimension).to(torch_dtype(output_type))

    kernel.__name__ = kernel.__qualname__ = f"{name.lower()}_kernel"
    definition = define(
        f"{name}(input: T, dimension: scalar host Tidx) -> (output: output_type)",
        T=(*REAL, dtypes.bool_),
        Tidx=axis_types,
        output_type=results,
    ).not_differentiable()
    definition.kernel(kernel)
    definition.shape(place_shape, values=["dimension"])
    definition.rows(_place_rows)
    return definition.lower(
        lambda build, op, input, dimension: build.place(
            input, dimension, op.attr("output_type").name, least=function is torch.argmin
        )
    )


ARG_MAX = _place(
    "ArgMax",
    torch.argmax,
    -numbers.inf,
    one_of(dtypes.int16, *INDEX, default=dtypes.int32),
    one_of(dtypes.int16, dtypes.uint16, *INDEX, default=dtypes.int64),
)
ARG_MIN = _place(
    "ArgMin", torch.argmin, numbers.inf, one_of(*INDEX, default=dtypes.int32), one_of(*INDEX, default=dtypes.int64)
)


def _older_axis(axis: Any, dimension: Any) -> Any:
    if dimension is not None:
        if axis is not None:
            raise ValueError("Cannot specify both 'axis' and 'dimension'.")
        axis = dimension
    return 0 if axis is None else axis


@export(v1=("argmax", "math.argmax"))
def argmax(
    input: Any, axis: Any = None, name: str | None = None, dimension: Any = None, output_type: Any = dtypes.int64
) -> Tensor:
    """The index of the largest element along `axis` (0 for None), the first one if several are equal. `dimension` is an older name."""
    axis = _older_axis(axis, dimension)
    kind = dtype_of(axis)
    is_whole = isinstance(axis, int) if kind is None else kind.is_integer
    if isinstance(axis, (list, tuple)) or (context.executing_eagerly() and not is_whole):
        raise TypeError(f"axis must be int or Tensor with integer datatype, not {axis!r}")
    return ARG_MAX(input, axis, output_type=output_type, name=name)


@export(v1=("argmin", "math.argmin"))
def argmin(
    input: Any, axis: Any = None, name: str | None = None, dimension: Any = None, output_type: Any = dtypes.int64
) -> Tensor:
    """The index of the smallest element along `axis` (0 for None), the first one if several are equal. `dimension` is an older name."""
    return ARG_MIN(input, _older_axis(axis, dimension), output_type=output_type, name=name)


@export(v1="arg_max")
def arg_max(input: Any, dimension: Any, output_type: Any = dtypes.int64, name: str | None = None) -> Tensor:
    """The index of the largest element along `dimension`; see `argmax`."""
    return ARG_MAX(input, dimension, output_type=output_type, name=name)


@export(v1="arg_min")
def arg_min(input: Any, dimension: Any, output_type: Any = dtypes.int64, name: str | None = None) -> Tensor:
    """The index of the smallest element along `dimension`; see `argmin`."""
    return ARG_MIN(input, dimension, output_type=output_type, name=name)


@export(v2=("argmax", "math.argmax"))
def argmax_v2(input: Any, axis: Any = None, output_type: Any = dtypes.int64, name: str | None = None) -> Tensor:
    """The index of the largest element along `axis` (0 for None), the first one if several are equal."""
    return argmax(input, axis, name, output_type=output_type)


@export(v2=("argmin", "math.argmin"))
def argmin_v2(input: Any, axis: Any = None, output_type: Any = dtypes.int64, name: str | None = None) -> Tensor:
    """The index of the smallest element along `axis` (0 for None), the first one if several are equal."""
    return argmin(input, axis, name, output_type=output_type)
