"""Checks that pass a value through: ensure_shape and check_numerics."""

from __future__ import annotations

from typing import Any

import torch

from stoker._src.base.dtypes import FLOATS
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.shapes import Shape, as_shape
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import ANY, SHAPE, STATEFUL, STRING, VIEW, OpDefinition, define, unchanged
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.support.device_checks import require
from stoker._src.ops.support.dispatching import elementwise


def static_axis(x: Tensor, axis: int) -> int:
    """`axis` of a tensor of known rank as a non-negative number.

    Raises:
        ValueError: the axis is out of range (InvalidArgumentError in eager mode).
    """
    try:
        return x.static_shape.normalize_axis(axis)
    except InvalidArgumentError as error:
        raise context.invalid(error.message) from None


# ---- EnsureShape ------------------------------------------------------------------------------------------------

ENSURE_SHAPE = define("EnsureShape(input: T) -> (output: T)", VIEW, shape=SHAPE, T=ANY)


@ENSURE_SHAPE.kernel
def ensure_shape_kernel(input: Any, *, shape: Shape) -> Any:
    dims = shape.dims
    if dims is not None and dims != input.shape and not shape.compatible(Shape(input.shape)):
        raise InvalidArgumentError(
            None, None, f"Shape of tensor input {Shape(input.shape)} is not compatible with expected shape {shape}."
        )
    return input


@ENSURE_SHAPE.shape
def ensure_shape_shape(input: Shape, *, shape: Shape) -> Shape:
    return input.merge(shape)


@ENSURE_SHAPE.grad
def ensure_shape_grad(op: Operation, g: Tensor) -> Tensor:
    return g


@export("ensure_shape")
def ensure_shape(x: Any, shape: Any, name: str | None = None) -> Tensor:
    """Sets the static shape of `x` and checks it in every run. Unknown sizes in `shape` are None."""
    return ENSURE_SHAPE(convert_to_tensor(x), shape=as_shape(shape), name=name)


# ---- CheckNumerics ----------------------------------------------------------------------------------------------

CHECK_NUMERICS = define("CheckNumerics(tensor: T) -> (output: T)", VIEW | STATEFUL, T=FLOATS, message=STRING)
CHECK_NUMERICS_V2 = define("CheckNumericsV2(tensor: T) -> (output: T)", VIEW | STATEFUL, T=FLOATS, message=STRING)


def _check(tensor: torch.Tensor, message: str, signs: bool) -> torch.Tensor:
    def refusal() -> InvalidArgumentError:
        found = []
        if signs:
            found += ["-Inf"] if bool(torch.isneginf(tensor).any()) else []
            found += ["+Inf"] if bool(torch.isposinf(tensor).any()) else []
        else:
            found += ["Inf"] if bool(torch.isinf(tensor).any()) else []
        found += ["NaN"] if bool(torch.isnan(tensor).any()) else []
        listed = " and ".join(found) if len(found) < 3 else f"{', '.join(found[:-1])}, and {found[-1]}"
        return InvalidArgumentError(None, None, f"{message} : Tensor had {listed} values")

    require(torch.isfinite(tensor), refusal)
    return tensor


@CHECK_NUMERICS.kernel
def check_numerics_kernel(tensor: torch.Tensor, *, message: str) -> torch.Tensor:
    return _check(tensor, message, signs=False)


@CHECK_NUMERICS_V2.kernel
def check_numerics_v2_kernel(tensor: torch.Tensor, *, message: str) -> torch.Tensor:
    return _check(tensor, message, signs=True)


def _with_gradient(definition: OpDefinition) -> None:
    definition.shape(unchanged)
    definition.planning.refuses = True

    @definition.grad
    def gradient(op: Operation, g: Tensor) -> Tensor:
        # The gradient is checked too, so that a non-finite gradient is reported where it first appears.
        text = f"Not a number (NaN) or infinity (Inf) values detected in gradient. {op.attr('message')}"
        return definition(g, message=text)


_with_gradient(CHECK_NUMERICS)
_with_gradient(CHECK_NUMERICS_V2)


@export("debugging.check_numerics", v1="check_numerics")
@elementwise
def check_numerics(tensor: Any, message: str, name: str | None = None) -> Tensor:
    """Returns `tensor` if all elements are finite, else raises InvalidArgumentError with `message`."""
    return CHECK_NUMERICS(tensor, message=message, name=name)
