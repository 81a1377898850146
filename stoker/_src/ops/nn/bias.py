"""BiasAdd and small compositions around it."""

from __future__ import annotations

from typing import Any

import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import NUMERIC
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.shapes import Shape, merge_dims
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import STRING, define
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import casting, joining, ranges, shaping
from stoker._src.ops.linalg import matrix_products
from stoker._src.ops.math import arithmetic, comparison, reductions
from stoker._src.ops.nn.activations import relu
from stoker._src.ops.support.unsigned import SIGNED_TWIN

# ---- BiasAdd ----------------------------------------------------------------------------------------------------

_DTYPES = (*NUMERIC, dtypes.qint8, dtypes.quint8, dtypes.qint32, dtypes.qint16, dtypes.quint16)
_FORMAT = STRING("NHWC", allowed=("NHWC", "NCHW"))
BIAS_ADD = define("BiasAdd(value: rank>1 T, bias: vector T) -> (output: T)", T=_DTYPES, data_format=_FORMAT)
BIAS_ADD.small("bias_add", lambda op: [] if op.attrs["data_format"] == "NHWC" else None)
BIAS_ADD_V1 = define("BiasAddV1(value: rank>1 T, bias: vector T) -> (output: T)", T=_DTYPES)
BIAS_ADD_GRAD = define("BiasAddGrad(out_backprop: rank>1 T) -> (output: T)", T=_DTYPES, data_format=_FORMAT)
BIAS_ADD_GRAD.small("bias_add_grad", lambda op: [] if op.attrs["data_format"] == "NHWC" else None)


BIAS_ADD_GRAD.vanishing(0)


def _bias_axis(rank: int, data_format: str) -> int:
    return 1 if data_format == "NCHW" else rank - 1


@BIAS_ADD.kernel
def bias_add_kernel(value: torch.Tensor, bias: torch.Tensor, *, data_format: str) -> torch.Tensor:
    _check_sizes(value, bias, data_format)
    if data_format == "NCHW" and value.dim() > 2:
        bias = bias.reshape(-1, *(1,) * (value.dim() - 2))
    return _add(value, bias)


def _check_sizes(value: torch.Tensor, bias: torch.Tensor, data_format: str) -> None:
    if value.shape[_bias_axis(value.dim(), data_format)] != bias.shape[0]:  # torch would repeat a single number
        _biased_shape(Shape(value.shape), Shape(bias.shape), data_format)


def _add(value: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    signed = SIGNED_TWIN.get(value.dtype)  # sums wrap around, so the sign does not matter
    if signed is not None:
        return torch.add(value.view(signed), bias.view(signed)).view(value.dtype)
    return torch.add(value, bias)


@BIAS_ADD.lower
def bias_add_lower(build: Any, op: Operation, value: Any, bias: Any) -> Any:
    if op.attr("data_format") == "NCHW" and len(value.shape) > 2:
        bias = build.reshape(bias, (*bias.shape, *(1,) * (len(value.shape) - 2)))
    return build.binary("add", value, bias)


@BIAS_ADD_GRAD.lower
def bias_add_grad_lower(build: Any, op: Operation, out_backprop: Any) -> Any:
    rank = len(out_backprop.shape)
    kept = _bias_axis(rank, op.attr("data_format"))
    return build.sum(out_backprop, [axis for axis in range(rank) if axis != kept], keep_dims=False)


@BIAS_ADD_GRAD.sums_over_steps
def bias_add_grad_sums_over_steps(op: Operation) -> Any:
    fits = op.inputs[0].static_shape.rank == 2 and op.attr("T") in (dtypes.float32, dtypes.float64)
    return stacked_sum if fits else None


def stacked_sum(out_backprop: list[torch.Tensor]) -> torch.Tensor:
    return (out_backprop[0] if len(out_backprop) == 1 else torch.cat(out_backprop)).sum(0)


@BIAS_ADD_V1.kernel
def bias_add_v1_kernel(value: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    _check_sizes(value, bias, "NHWC")
    return _add(value, bias)


def _biased_shape(value: Shape, bias: Shape, data_format: str) -> Shape:
    value, bias = value.at_least(2), bias.of_rank(1)
    if value.dims is None:
        return value
    axis = _bias_axis(len(value), data_format)
    size, wanted = bias[0], value[axis]
    if size is not None and wanted is not None and size != wanted:
        raise InvalidArgumentError(
            None,
            None,
            f"Dimensions must be equal, but are {wanted} and {size} for BiasAdd: value is {value}, bias is {bias}, "
            f"data_format={data_format}.",
        )
    dims = list(value.dims)
    dims[axis] = merge_dims(wanted, size)
    return Shape(dims)


@BIAS_ADD.shape
def bias_add_shape(value: Shape, bias: Shape, *, data_format: str) -> Shape:
    return _biased_shape(value, bias, data_format)


@BIAS_ADD_V1.shape
def bias_add_v1_shape(value: Shape, bias: Shape) -> Shape:
    return _biased_shape(value, bias, "NHWC")


@BIAS_ADD_GRAD.kernel
def bias_add_grad_kernel(out_backprop: torch.Tensor, *, data_format: str) -> torch.Tensor:
    axis = _bias_axis(out_backprop.dim(), data_format)
    others = [i for i in range(out_backprop.dim()) if i != axis]
    signed = SIGNED_TWIN.get(out_backprop.dtype)
    if signed is not None:
        return torch.sum(out_backprop.view(signed), others, dtype=signed).view(out_backprop.dtype)
    return torch.sum(out_backprop, others, dtype=out_backprop.dtype)


@BIAS_ADD_GRAD.shape
def bias_add_grad_shape(out_backprop: Shape, *, data_format: str) -> Shape:
    value = out_backprop.at_least(2)
    return Shape((None if value.dims is None else value[_bias_axis(len(value), data_format)],))


@BIAS_ADD.grad
def bias_add_gradient(op: Operation, g: Tensor) -> tuple[Tensor, Tensor]:
    return g, BIAS_ADD_GRAD(g, data_format=op.attr("data_format"))


@BIAS_ADD_V1.grad
def bias_add_v1_gradient(op: Operation, g: Tensor) -> tuple[Tensor, Tensor]:
    return g, BIAS_ADD_GRAD(g)


@BIAS_ADD_GRAD.grad
def bias_add_grad_gradient(op: Operation, g: Tensor) -> Tensor:
    """The bias gradient is a sum, so its own gradient is broadcast."""
    x = op.inputs[0]
    if op.attr("data_format") == "NCHW":
        rank = x.static_shape.rank
        if rank is None:
            trailing = shaping.FILL(ranges.rank(x) - 2, 1)
            g = shaping.reshape(g, joining.concat([shaping.shape(g), trailing], 0))
        else:
            g = shaping.reshape(g, [-1] + [1] * (rank - 2))
    return ranges.broadcast_to(g, shaping.shape(x))


def _bias_format(data_format: str | None) -> str:
    if data_format is None:
        return "NHWC"
    if data_format.startswith("NC"):
        return "NCHW"
    if data_format.startswith("N") and data_format.endswith("C"):
        return "NHWC"
    raise ValueError(f"`data_format` must be of the form `N...C` or `NC...`. Received: data_format={data_format}")


@export("nn.bias_add")
def bias_add(value: Any, bias: Any, data_format: str | None = None, name: str | None = None) -> Tensor:
    """Adds the vector `bias` along the channels of `value`.

    Raises:
        ValueError: the data format is neither `N...C` nor `NC...`, or the sizes differ.
    """
    with name_scope(name, "BiasAdd", [value, bias]) as scope:
        layout = _bias_format(data_format)
        if not context.executing_eagerly():
            value = convert_to_tensor(value, name="input")
            bias = convert_to_tensor(bias, value.dtype.base_dtype, name="bias")
        return BIAS_ADD(value, bias, data_format=layout, name=scope)


@export(v1="nn.xw_plus_b")
def xw_plus_b(x: Any, weights: Any, biases: Any, name: str | None = None) -> Tensor:
    """matmul(x, weights) + biases."""
    with name_scope(name, "xw_plus_b", [x, weights, biases]) as scope:
        x = convert_to_tensor(x, name="x")
        weights = convert_to_tensor(weights, name="weights")
        biases = convert_to_tensor(biases, name="biases")
        return bias_add(matrix_products.matmul(x, weights), biases, name=scope)


@export(v1="nn.relu_layer")
def relu_layer(x: Any, weights: Any, biases: Any, name: str | None = None) -> Tensor:
    """relu(matmul(x, weights) + biases)."""
    with name_scope(name, "relu_layer", [x, weights, biases]) as scope:
        x = convert_to_tensor(x, name="x")
        weights = convert_to_tensor(weights, name="weights")
        biases = convert_to_tensor(biases, name="biases")
        return relu(bias_add(matrix_products.matmul(x, weights), biases), name=scope)


# ---- zero_fraction ----------------------------------------------------------------------------------------------


def _count_nonzero(value: Tensor) -> Tensor:
    nonzero = comparison.NOT_EQUAL(value, shaping.zeros([], value.dtype.base_dtype))
    return reductions.reduce_sum(casting.cast(nonzero, dtypes.int64))


@export("nn.zero_fraction", "math.zero_fraction")
def zero_fraction(value: Any, name: str | None = None) -> Tensor:
    """The fraction of zeros in `value` as float32; NaN for an empty tensor."""
    with name_scope(name, "zero_fraction", [value]):
        value = convert_to_tensor(value, name="value")
        count = casting.cast(ranges.size(value, out_type=dtypes.int64), dtypes.float32)
        nonzero = casting.cast(_count_nonzero(value), dtypes.float32)
        return shaping.identity(arithmetic.realdiv(arithmetic.subtract(count, nonzero), count), name="fraction")
