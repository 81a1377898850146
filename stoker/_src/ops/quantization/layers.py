"""Layers on quantized numbers, for graphs that target small devices. A range of floats determines the scale of the integers.

A number q of a dtype with n bits and range [low, high] represents low + (q - lowest) * (high - low) / (2^n - 1), where low is
rounded to the nearest step. Products are qint32, with a range such that one step is the product of the operands' steps.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import DType
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.shapes import SCALAR, Shape
from stoker._src.base.shapes import broadcast as broadcast_shapes
from stoker._src.graph.definition import ANY, INT, INT32S, STRING, OpDefinition, define, one_of
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import joining, shaping
from stoker._src.ops.nn import conv, conv_kernels, pool_kernels, pooling
from stoker._src.ops.support.values import torch_dtype

_QUANTIZED = (dtypes.qint8, dtypes.quint8, dtypes.qint32, dtypes.qint16, dtypes.quint16)
_TO_INT32 = one_of(*_QUANTIZED, default=dtypes.qint32)
_TO_UINT8 = one_of(*_QUANTIZED, default=dtypes.quint8)
_PADDING = STRING(allowed=("SAME", "VALID"))
_BITS = {dtypes.qint8: 8, dtypes.quint8: 8, dtypes.qint16: 16, dtypes.quint16: 16, dtypes.qint32: 32}
_SUMS = 1 << 17  # the range of a sum with a bias, as a multiple of the largest operand
_ADDED = 1 << 14  # the range of a sum of two tensors, as a multiple of the largest operand
F32, F64 = torch.float32, torch.float64
_CONV_SHAPE: Any = conv.CONV2D.shape_rule.function
_MAX_POOL_SHAPE: Any = pooling.MAX_POOL.shape_rule.function
_CONCAT_SHAPE: Any = joining.CONCAT_V2.shape_rule.function
_RESHAPE_SHAPE: Any = shaping.RESHAPE.shape_rule.function


def _invalid(message: str) -> InvalidArgumentError:
    return InvalidArgumentError(None, None, message)


def _away_from_zero(x: torch.Tensor) -> torch.Tensor:
    return torch.trunc(x + torch.copysign(torch.full_like(x, 0.5), x))


def _bound(value: torch.Tensor, name: str) -> float:
    if value.numel() != 1:
        raise _invalid(f"{name} must be a scalar, got shape {list(value.shape)}")
    return float(value.reshape(()))


def _range(low: torch.Tensor, high: torch.Tensor, what: str) -> tuple[float, float]:
    return _bound(low, f"min_{what}"), _bound(high, f"max_{what}")


def _step(low: float, high: float, kind: DType) -> float:
    """The float value of one step."""
    return (high - low) / (2 ** _BITS[kind] - 1)


def to_float(q: torch.Tensor, low: float, high: float, kind: DType) -> torch.Tensor:
    """Converts quantized numbers to float32."""
    if low == high:
        return torch.full(q.shape, low, dtype=F32)
    start = torch.tensor(low, dtype=F32)
    step = (high - start) / (2 ** _BITS[kind] - 1)
    return _away_from_zero(start / step) * step + (q.to(F64) - int(kind.min)).to(F32) * step


def to_quantized(
    x: torch.Tensor, low: float, high: float, kind: DType, *, clamp: bool = True, precision: torch.dtype = F32
) -> torch.Tensor:
    """Converts floats to quantized numbers, as int64."""
    if low == high:
        return torch.zeros(x.shape, dtype=torch.int64)
    start = torch.tensor(low, dtype=precision)
    scale = (2 ** _BITS[kind] - 1) / (high - start)
    parts = (_away_from_zero(part * scale).to(torch.int64) for part in (x.to(precision), start))
    found = next(parts) - next(parts) + int(kind.min)
    return found.clamp(int(kind.min), int(kind.max)) if clamp else found


def _zero(low: float, high: float, kind: DType) -> int:
    """The quantized number that represents zero."""
    return int(to_quantized(torch.zeros(()), low, high, kind, clamp=False))


def _single_step(low: float, high: float, kind: DType) -> float:
    """As `_step`, but signed dtypes omit their lowest number, whose negative is out of range."""
    lowest = int(kind.min) + (1 if int(kind.min) < 0 else 0)
    return (high - low) / (int(kind.max) - lowest)


def _product_range(a: tuple[float, float], ka: DType, b: tuple[float, float], kb: DType, out: DType) -> tuple[Any, Any]:
    step = torch.tensor(_single_step(*a, ka), dtype=torch.float32) * torch.tensor(
        _single_step(*b, kb), dtype=torch.float32
    )
    lowest = int(out.min) + (1 if int(out.min) < 0 else 0)
    return step * float(lowest), step * float(int(out.max))


def _results(q: torch.Tensor, low: Any, high: Any, kind: DType) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The three outputs of an op. Sums that overflow wrap around."""
    bounds = (torch.as_tensor(bound, dtype=torch.float32).clone() for bound in (low, high))
    return (q.to(torch.int64).to(torch_dtype(kind)), *bounds)  # type: ignore[return-value]


# ---- products ---------------------------------------------------------------------------------------------------

QUANTIZED_MATMUL = define(
    "QuantizedMatMul(a: matrix T1, b: matrix T2, min_a: scalar float32, max_a: scalar float32, min_b: scalar float32, max_b: scalar float32) -> "
    "(out: Toutput, min_out: float32, max_out: float32)",
    T1=_QUANTIZED, T2=_QUANTIZED, Toutput=_TO_INT32, transpose_a=False, transpose_b=False, Tactivation=_TO_UINT8,
)  # fmt: skip


@QUANTIZED_MATMUL.kernel
def quantized_matmul_kernel(
    a: torch.Tensor, b: torch.Tensor, min_a: Any, max_a: Any, min_b: Any, max_b: Any,
    *, T1: DType, T2: DType, Toutput: DType, transpose_a: bool, transpose_b: bool,
) -> Any:  # fmt: skip
    of_a, of_b = _range(min_a, max_a, "a"), _range(min_b, max_b, "b")
    left, right = a.t() if transpose_a else a, b.t() if transpose_b else b
    if left.shape[1] != right.shape[0]:
        raise _invalid(f"Matrix size-compatible: In[0]: {list(a.shape)}, In[1]: {list(b.shape)}")
    # Integers of these sizes are exact in float64.
    product = (left.to(F64) - _zero(*of_a, T1)) @ (right.to(F64) - _zero(*of_b, T2))
    return _results(product, *_product_range(of_a, T1, of_b, T2, Toutput), Toutput)


@QUANTIZED_MATMUL.shape
def quantized_matmul_shape(a: Shape, b: Shape, *_: Shape, transpose_a: bool, transpose_b: bool) -> Any:
    a, b = a.of_rank(2), b.of_rank(2)
    rows, inner = (a[1], a[0]) if transpose_a else (a[0], a[1])
    outer, columns = (b[1], b[0]) if transpose_b else (b[0], b[1])
    Shape((inner,)).merge(Shape((outer,)))
    return Shape((rows, columns)), SCALAR, SCALAR


QUANTIZED_CONV2D = define(
    "QuantizedConv2D(input: rank=4 Tinput, filter: rank=4 Tfilter, min_input: scalar float32, max_input: scalar float32, "
    "min_filter: scalar float32, max_filter: scalar float32) -> (output: out_type, min_output: float32, max_output: float32)",
    Tinput=_QUANTIZED, Tfilter=_QUANTIZED, out_type=_TO_INT32, strides=INT32S, padding=_PADDING, dilations=INT32S((1, 1, 1, 1)),
)  # fmt: skip


@QUANTIZED_CONV2D.kernel
def quantized_conv2d_kernel(
    input: torch.Tensor, filter: torch.Tensor, min_input: Any, max_input: Any, min_filter: Any, max_filter: Any,
    *, Tinput: DType, Tfilter: DType, out_type: DType, strides: Any, padding: str, dilations: Any,
) -> Any:  # fmt: skip
    of_input, of_filter = _range(min_input, max_input, "input"), _range(min_filter, max_filter, "filter")
    if tuple(dilations) != (1, 1, 1, 1):
        raise _invalid(f"QuantizedConv2D knows no dilations, got {list(dilations)}")
    # Signed filters have a symmetric scale, regardless of their range.
    middle = 0 if Tfilter is dtypes.qint8 else _zero(*of_filter, Tfilter)
    x, w = input.to(F64) - _zero(*of_input, Tinput), filter.to(F64) - middle
    product = conv_kernels.conv_forward(x, w, strides, padding, (), "NHWC", dilations)
    low, high = _product_range(of_input, Tinput, of_filter, Tfilter, out_type)
    return _results(product.round(), low, high, out_type)


@QUANTIZED_CONV2D.shape
def quantized_conv2d_shape(input: Shape, filter: Shape, *_: Shape, strides: Any, padding: str, dilations: Any) -> Any:
    shape = _CONV_SHAPE(
        input, filter, strides=strides, padding=padding, explicit_paddings=(), data_format="NHWC", dilations=dilations
    )
    return shape, SCALAR, SCALAR


# ---- sums -------------------------------------------------------------------------------------------------------


def _pair(name: str, letters: str, default_out: bool) -> OpDefinition:
    x, y, z = letters.split()
    low, high = ("out", "out") if z == "output" else (z, z)
    out = "out_type" if z == "output" else "Toutput"
    rank = "any/scalar" if name == "QuantizedMul" else "scalar"
    bounds = ", ".join(f"{end}_{each}: {rank} float32" for each in (x, y) for end in ("min", "max"))
    return define(
        f"{name}({x}: T1, {y}: T2, {bounds}) -> "
        f"({z}: {out}, min_{low}: float32, max_{high}: float32)",
        T1=_QUANTIZED, T2=_QUANTIZED, **{out: _TO_INT32 if default_out else _QUANTIZED},
    )  # fmt: skip


QUANTIZED_BIAS_ADD = _pair("QuantizedBiasAdd", "input bias output", False)
QUANTIZED_ADD = _pair("QuantizedAdd", "x y z", True)
QUANTIZED_MUL = _pair("QuantizedMul", "x y z", True)


def _sum(
    x: torch.Tensor,
    y: torch.Tensor,
    of_x: Any,
    of_y: Any,
    kx: DType,
    ky: DType,
    out: DType,
    spread: int,
    *,
    whole: bool,
) -> Any:
    """The sum, on a scale set by the largest operand.

    With `whole`, a step of an operand is a whole number of steps of the sum, except for an operand with a single element.
    """
    largest = max(abs(bound) for bound in (*of_x, *of_y)) * spread
    alone = next((number for number, each in enumerate((x, y)) if each.numel() == 1), None)
    terms = []
    for q, bounds, kind in ((x, of_x, kx), (y, of_y, ky)):
        by_steps = whole and len(terms) != alone
        known = torch.tensor([0, 1]) + int(kind.min) if by_steps else q
        term = to_quantized(to_float(known, bounds[0], bounds[1], kind), -largest, largest, out, precision=F64)
        terms.append(term[0] + (q.to(torch.int64) - int(kind.min)) * (term[1] - term[0]) if by_steps else term)
    return _results(terms[0] + terms[1], -largest, largest, out)


@QUANTIZED_BIAS_ADD.kernel
def quantized_bias_add_kernel(
    input: torch.Tensor, bias: torch.Tensor, min_input: Any, max_input: Any, min_bias: Any, max_bias: Any,
    *, T1: DType, T2: DType, out_type: DType,
) -> Any:  # fmt: skip
    if input.ndim < 2 or bias.ndim != 1 or bias.shape[0] != input.shape[-1]:
        raise _invalid(
            f"Must provide as many biases as the last dimension of the input tensor: {list(bias.shape)} vs. {list(input.shape)}"
        )
    of_input, of_bias = _range(min_input, max_input, "input"), _range(min_bias, max_bias, "bias")
    return _sum(input, bias, of_input, of_bias, T1, T2, out_type, _SUMS, whole=False)


QUANTIZED_BIAS_ADD.shape(lambda input, *_: (input, SCALAR, SCALAR))


@QUANTIZED_ADD.kernel
def quantized_add_kernel(
    x: torch.Tensor, y: torch.Tensor, min_x: Any, max_x: Any, min_y: Any, max_y: Any,
    *, T1: DType, T2: DType, Toutput: DType,
) -> Any:  # fmt: skip
    return _sum(x, y, _range(min_x, max_x, "x"), _range(min_y, max_y, "y"), T1, T2, Toutput, _ADDED, whole=True)


@QUANTIZED_MUL.kernel
def quantized_mul_kernel(
    x: torch.Tensor, y: torch.Tensor, min_x: Any, max_x: Any, min_y: Any, max_y: Any,
    *, T1: DType, T2: DType, Toutput: DType,
) -> Any:  # fmt: skip
    of_x, of_y = _range(min_x, max_x, "x"), _range(min_y, max_y, "y")
    product = (x.to(torch.int64) - _zero(*of_x, T1)) * (y.to(torch.int64) - _zero(*of_y, T2))
    return _results(product, *_product_range(of_x, T1, of_y, T2, Toutput), Toutput)


for _definition in (QUANTIZED_ADD, QUANTIZED_MUL):
    _definition.shape(lambda x, y, *_: (broadcast_shapes(x, y), SCALAR, SCALAR))

# ---- requantization ---------------------------------------------------------------------------------------------


def _moved(q: torch.Tensor, low: float, high: float, kind: DType, new_low: float, new_high: float, out: DType) -> Any:
    """Converts quantized numbers to another scale, in fixed point with 16 fractional bits. Signed zero is the middle of the range."""
    if new_low == new_high:
        return torch.zeros(q.shape, dtype=torch.int64)
    fine = 2**16 / _step(new_low, new_high, out)
    if int(kind.min) < 0:
        offset, steps = (low + high) / 2, torch.floor(q.to(F64) * int((high - low) * fine) / 2 ** _BITS[kind])
    else:
        offset, steps = low, torch.floor(q.to(F64) * (_step(low, high, kind) * fine))
    start = math.floor(offset * fine + 0.5) - math.floor(new_low * fine + 0.5)
    found = torch.floor((steps + start + 2**15) / 2**16) + int(out.min)
    return found.clamp(int(out.min), int(out.max)).to(torch.int64)


REQUANTIZE = define(
    "Requantize(input: Tinput, input_min: scalar float32, input_max: scalar float32, requested_output_min: scalar float32, "
    "requested_output_max: scalar float32) -> (output: out_type, output_min: float32, output_max: float32)",
    Tinput=_QUANTIZED, out_type=_QUANTIZED,
)  # fmt: skip
REQUANTIZE.shape(lambda input, *_: (input, SCALAR, SCALAR))


@REQUANTIZE.kernel
def requantize_kernel(
    input: torch.Tensor, input_min: Any, input_max: Any, requested_output_min: Any, requested_output_max: Any,
    *, Tinput: DType, out_type: DType,
) -> Any:  # fmt: skip
    low, high = _range(requested_output_min, requested_output_max, "output")
    if low > 0:
        raise _invalid(f"requested_output_min must be <= 0, but got {low}")
    if high < low:
        raise _invalid(f"requested_output_max must be >= requested_output_min, but got {high} and {low}")
    return _results(
        _moved(input, *_range(input_min, input_max, "input"), Tinput, low, high, out_type), low, high, out_type
    )


REQUANTIZATION_RANGE = define(
    "RequantizationRange(input: Tinput, input_min: scalar float32, input_max: scalar float32) -> "
    "(output_min: float32, output_max: float32)",
    Tinput=_QUANTIZED,
)
REQUANTIZATION_RANGE.shape(lambda input, *_: (SCALAR, SCALAR))


def _used_range(input: torch.Tensor, low: float, high: float, kind: DType) -> tuple[float, float]:
    if not input.numel():
        raise _invalid("input must not be empty")
    ends = [low + (int(end) - int(kind.min)) * _step(low, high, kind) for end in (input.min(), input.max())]
    least, most = torch.tensor(ends, dtype=torch.float32).tolist()
    return min(0.0, least), most


@REQUANTIZATION_RANGE.kernel
def requantization_range_kernel(input: torch.Tensor, input_min: Any, input_max: Any, *, Tinput: DType) -> Any:
    low, high = _used_range(input, *_range(input_min, input_max, "input"), Tinput)
    return torch.tensor(low, dtype=torch.float32), torch.tensor(high, dtype=torch.float32)


QUANTIZE_DOWN = define(
    "QuantizeDownAndShrinkRange(input: Tinput, input_min: scalar float32, input_max: scalar float32) -> "
    "(output: out_type, output_min: float32, output_max: float32)",
    Tinput=_QUANTIZED,
    out_type=_QUANTIZED,
)
QUANTIZE_DOWN.shape(lambda input, *_: (input, SCALAR, SCALAR))


@QUANTIZE_DOWN.kernel
def quantize_down_kernel(input: torch.Tensor, input_min: Any, input_max: Any, *, Tinput: DType, out_type: DType) -> Any:
    of_input = _range(input_min, input_max, "input")
    low, high = _used_range(input, *of_input, Tinput)
    return _results(_moved(input, *of_input, Tinput, low, high, out_type), low, high, out_type)


# ---- activations ------------------------------------------------------------------------------------------------


def _activation(name: str, ceiling: float | None, *, given: bool = False) -> OpDefinition:
    """Defines the op max(x, 0), optionally limited by a constant or by an input."""
    more = "max_value: scalar float32, " if given else ""
    definition = define(
        f"{name}(features: Tinput, {more}min_features: scalar float32, max_features: scalar float32) -> "
        "(activations: out_type, min_activations: float32, max_activations: float32)",
        Tinput=_QUANTIZED,
        out_type=_TO_UINT8,
    )

    def kernel(features: torch.Tensor, *bounds: Any, Tinput: DType, out_type: DType) -> Any:
        top = _bound(bounds[0], "max_value") if given else ceiling
        of_input = _range(bounds[-2], bounds[-1], "features")
        least = int(to_quantized(torch.zeros(()), *of_input, Tinput))
        most = int(Tinput.max) if top is None else int(to_quantized(torch.tensor(top), *of_input, Tinput))
        return _results(features.to(torch.int64).clamp(least, most), *of_input, out_type)

    definition.kernel(kernel)
    definition.shape(lambda features, *_: (features, SCALAR, SCALAR))
    return definition


QUANTIZED_RELU = _activation("QuantizedRelu", None)
QUANTIZED_RELU6 = _activation("QuantizedRelu6", 6.0)
QUANTIZED_RELU_X = _activation("QuantizedReluX", None, given=True)

# ---- pooling ----------------------------------------------------------------------------------------------------


def _pool(name: str, function: Any) -> OpDefinition:
    definition = define(
        f"{name}(input: rank=4 T, min_input: scalar float32, max_input: scalar float32) -> "
        "(output: T, min_output: float32, max_output: float32)",
        T=_QUANTIZED,
        ksize=INT32S,
        strides=INT32S,
        padding=_PADDING,
    )

    def kernel(
        input: torch.Tensor, min_input: Any, max_input: Any, *, T: DType, ksize: Any, strides: Any, padding: str
    ) -> Any:
        found = function(input.to(F64), ksize, strides, padding)
        return _results(found, *_range(min_input, max_input, "input"), T)

    definition.kernel(kernel)
    definition.shape(
        lambda input, *_, ksize, strides, padding: (_pool_shape(input, ksize, strides, padding), SCALAR, SCALAR)
    )
    return definition


def _pool_shape(input: Shape, ksize: Any, strides: Any, padding: str) -> Shape:
    return _MAX_POOL_SHAPE(
        input, ksize=ksize, strides=strides, padding=padding, explicit_paddings=(), data_format="NHWC"
    )


QUANTIZED_MAX_POOL = _pool(
    "QuantizedMaxPool", lambda x, ksize, strides, padding: pool_kernels.max_pool(x, ksize, strides, padding, (), "NHWC")
)
QUANTIZED_AVG_POOL = _pool(
    "QuantizedAvgPool",
    lambda x, ksize, strides, padding: torch.trunc(pool_kernels.avg_pool(x, ksize, strides, padding, "NHWC")),
)

# ---- forms ------------------------------------------------------------------------------------------------------

QUANTIZED_RESHAPE = define(
    "QuantizedReshape(tensor: T, shape: vector host Tshape, input_min: scalar float32, input_max: scalar float32) -> "
    "(output: T, output_min: float32, output_max: float32)",
    T=ANY,
    Tshape=one_of(dtypes.int32, dtypes.int64, default=dtypes.int32),
)
QUANTIZED_RESHAPE.shape(
    lambda tensor, shape, *_: (_RESHAPE_SHAPE(tensor, shape), SCALAR, SCALAR),
    as_shapes=["shape"],
)


@QUANTIZED_RESHAPE.kernel
def quantized_reshape_kernel(
    tensor: torch.Tensor, shape: list[int], input_min: torch.Tensor, input_max: torch.Tensor
) -> Any:
    return shaping.reshape_kernel(tensor, shape).clone(), input_min.clone(), input_max.clone()


QUANTIZED_CONCAT = define(
    "QuantizedConcat(concat_dim: scalar host int32, values: N * T, input_mins: N * float32, input_maxes: N * float32) -> "
    "(output: T, output_min: float32, output_max: float32)",
    N=INT(minimum=2),
    T=ANY,
)


@QUANTIZED_CONCAT.kernel
def quantized_concat_kernel(
    concat_dim: int, values: list[torch.Tensor], input_mins: list[Any], input_maxes: list[Any], *, T: DType
) -> Any:
    ranges = [_range(low, high, "input") for low, high in zip(input_mins, input_maxes)]
    low, high = min(each[0] for each in ranges), max(each[1] for each in ranges)
    if int(T.min) < 0:  # signed numbers have a symmetric range
        high = max(abs(low), abs(high))
        low = -high
    if not 0 <= concat_dim < values[0].ndim:
        raise _invalid(
            f"ConcatOp : Expected concatenating dimensions in the range [0, {values[0].ndim}), but got {concat_dim}"
        )
    parts = [
        value.to(torch.int64) if each == (low, high) else to_quantized(to_float(value, *each, T), low, high, T)
        for value, each in zip(values, ranges)
    ]
    return _results(torch.cat(parts, concat_dim), low, high, T)


@QUANTIZED_CONCAT.shape(values=["concat_dim"])
def quantized_concat_shape(concat_dim: Any, values: list[Shape], *_: Any) -> Any:
    return _CONCAT_SHAPE(values, concat_dim), SCALAR, SCALAR


# ---- public names -----------------------------------------------------------------------------------------------


@export(v1="nn.quantized_conv2d")
def quantized_conv2d(
    input: Any,
    filter: Any,
    min_input: Any,
    max_input: Any,
    min_filter: Any,
    max_filter: Any,
    strides: Any,
    padding: str,
    out_type: Any = dtypes.qint32,
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
) -> Any:
    """Convolves quantized images [batch, height, width, channels]. Returns (output, min_output, max_output)."""
    return QUANTIZED_CONV2D(
        input, filter, min_input, max_input, min_filter, max_filter,
        strides=strides, padding=padding, out_type=out_type, dilations=dilations, name=name,
    )  # fmt: skip


@export(v1="nn.quantized_max_pool")
def quantized_max_pool(
    input: Any, min_input: Any, max_input: Any, ksize: Any, strides: Any, padding: str, name: str | None = None
) -> Any:
    """Max pooling of quantized images. Returns (output, min_output, max_output)."""
    return QUANTIZED_MAX_POOL(input, min_input, max_input, ksize=ksize, strides=strides, padding=padding, name=name)


@export(v1="nn.quantized_avg_pool")
def quantized_avg_pool(
    input: Any, min_input: Any, max_input: Any, ksize: Any, strides: Any, padding: str, name: str | None = None
) -> Any:
    """Average pooling of quantized images. Returns (output, min_output, max_output)."""
    return QUANTIZED_AVG_POOL(input, min_input, max_input, ksize=ksize, strides=strides, padding=padding, name=name)


@export(v1="nn.quantized_relu_x")
def quantized_relu_x(
    features: Any,
    max_value: Any,
    min_features: Any,
    max_features: Any,
    out_type: Any = dtypes.quint8,
    name: str | None = None,
) -> Any:
    """min(max(x, 0), max_value) of quantized numbers. Returns (activations, min_activations, max_activations)."""
    return QUANTIZED_RELU_X(features, max_value, min_features, max_features, out_type=out_type, name=name)


@export("quantization.quantized_concat", v1="quantized_concat")
def quantized_concat(
    concat_dim: Any, values: Any, input_mins: Any, input_maxes: Any, name: str | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Concatenates quantized tensors on a common scale. Returns (output, output_min, output_max)."""
    return QUANTIZED_CONCAT(concat_dim, values, input_mins, input_maxes, name=name)
