"""Quantization of real numbers to integers on the scale of a range, and back."""

from __future__ import annotations

from typing import Any

import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import DType, as_dtype
from stoker._src.base.errors import InvalidArgumentError, UnimplementedError
from stoker._src.base.export import export
from stoker._src.base.shapes import Shape
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import INT32, STRING, define, one_of
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.quantization import fake_quantization
from stoker._src.ops.support.values import torch_dtype

_QUANTIZED = (dtypes.qint8, dtypes.quint8, dtypes.qint32, dtypes.qint16, dtypes.quint16)
_MODE = STRING("MIN_COMBINED", allowed=("MIN_COMBINED", "MIN_FIRST", "SCALED"))
_ROUND = STRING("HALF_AWAY_FROM_ZERO", allowed=("HALF_AWAY_FROM_ZERO", "HALF_TO_EVEN"))
_LARGEST = torch.finfo(torch.float32).max


def _away_from_zero(x: torch.Tensor) -> torch.Tensor:
    """Rounds to the nearest integer, with halves away from zero."""
    whole = torch.trunc(x)
    return torch.where(torch.abs(x - whole) >= 0.5, whole + torch.sign(x), whole)


def _limits(kind: DType, narrow_range: bool) -> tuple[int, int]:
    lowest, highest = int(kind.min), int(kind.max)
    return (lowest + 1 if narrow_range else lowest), highest


def _along(bound: torch.Tensor, input: torch.Tensor, axis: int, label: str) -> torch.Tensor:
    """Reshapes a bound (one for all elements, or one for each slice along `axis`) so that it broadcasts with `input`.

    Raises:
        InvalidArgumentError: the number of bounds differs from the number of slices.
    """
    if axis == -1:
        if bound.numel() != 1:
            raise InvalidArgumentError(None, None, f"{label} must hold one number, got shape {Shape(bound.shape)}")
        return bound.reshape(())
    if not 0 <= axis < input.ndim:
        raise InvalidArgumentError(None, None, f"Axis must be less than input dimension({input.ndim}), got {axis}")
    if bound.ndim != 1 or len(bound) != input.shape[axis]:
        raise InvalidArgumentError(
            None, None, f"{label} must have {input.shape[axis]} elements, got shape {Shape(bound.shape)}"
        )
    return bound.reshape([-1 if i == axis else 1 for i in range(input.ndim)])


def _as_integers(x: torch.Tensor, kind: DType) -> torch.Tensor:
    """Converts whole numbers to `kind`. Numbers beyond the largest wrap around, as in TensorFlow's conversion of floats."""
    return x.to(torch.int64).to(torch_dtype(kind))


def _quotient(number: int, x: torch.Tensor) -> torch.Tensor:
    """number / x, rounded once. torch's operator multiplies by the reciprocal, which rounds twice."""
    return torch.full_like(x, number) / x


# ---- QuantizeV2 -------------------------------------------------------------------------------------------------

QUANTIZE_V2 = define(
    "QuantizeV2(input: float32, min_range: float32, max_range: float32) -> "
    "(output: T, output_min: float32, output_max: float32)",
    T=_QUANTIZED,
    mode=_MODE,
    round_mode=_ROUND,
    narrow_range=False,
    axis=INT32(-1),
    ensure_minimum_range=0.01,
)


@QUANTIZE_V2.kernel
def quantize_v2_kernel(
    input: torch.Tensor, min_range: torch.Tensor, max_range: torch.Tensor,
    *, T: DType, mode: str, round_mode: str, narrow_range: bool, axis: int, ensure_minimum_range: float,
) -> Any:  # fmt: skip
    if round_mode == "HALF_TO_EVEN" and mode != "SCALED":
        raise InvalidArgumentError(
            None, None, f"Round mode 'HALF_TO_EVEN' only supported for mode 'SCALED', but mode is '{mode}'."
        )
    if mode == "MIN_FIRST" and axis != -1:
        raise UnimplementedError(None, None, "MIN_FIRST mode is not implemented for Quantize with axis != -1.")
    if bool((min_range > max_range).any()):
        raise InvalidArgumentError(
            None,
            None,
            f"input_max_range must be larger than input_min_range: {min_range.tolist()} > {max_range.tolist()}",
        )
    if axis == -1:
        min_range, max_range = (
            _along(*each) for each in ((min_range, input, -1, "min_range"), (max_range, input, -1, "max_range"))
        )
    # The range includes zero, and has at least the requested width in proportion to its larger end. The comparisons are
    # written so that NaN is replaced.
    low = torch.where(min_range < 0, min_range, 0.0)
    larger = torch.where(min_range.abs() < max_range.abs(), max_range.abs(), min_range.abs())
    enough = low + torch.where(larger > 1, larger, 1.0) * ensure_minimum_range
    high = torch.where(max_range < enough, enough, max_range)
    high = torch.where(high > 0, high, 0.0)
    if mode == "SCALED":
        low, high, scale = _scaled(low, high, T, narrow_range)
    start, end = (_along(each, input, axis, label) for each, label in ((low, "min_range"), (high, "max_range")))
    lowest, highest = int(T.min), int(T.max)
    inside = torch.minimum(torch.maximum(input, start), end)
    if mode == "SCALED":
        grown = inside * _along(scale, input, axis, "min_range")
        rounded = torch.round(grown) if round_mode == "HALF_TO_EVEN" else _away_from_zero(grown)
        return _as_integers(rounded, T), low.clone(), high.clone()
    if mode == "MIN_COMBINED":
        grown = (inside - start) * _quotient(highest - lowest, end - start)
        if lowest < 0:
            grown = grown - (highest - lowest + 1) / 2
        return _as_integers(_away_from_zero(grown), T), low.clone(), high.clone()
    steps = highest - lowest + 1
    scale = steps / ((end - start).double() * (steps / (steps - 1)))
    if steps > 1 << 16:  # TensorFlow uses float32 for 32-bit integers and float64 for the others
        scale = scale.float()
    places = _away_from_zero(inside * scale) - (_away_from_zero(start * scale) - lowest)
    # float32 has no numbers between 2**31 - 128 and 2**31.
    most = highest if steps <= 1 << 16 else highest - 127
    return _as_integers(torch.clamp(places, lowest, most), T), low.clone(), high.clone()


def _scaled(
    low: torch.Tensor, high: torch.Tensor, kind: DType, narrow_range: bool
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The range for a scale without offset. The side that needs the coarser scale determines it."""
    lowest, highest = _limits(kind, narrow_range)
    by_low = torch.where(lowest * low > 0, _quotient(lowest, low), _LARGEST)
    by_high = torch.where(highest * high > 0, _quotient(highest, high), _LARGEST)
    scale = torch.minimum(by_low, by_high)
    return _quotient(lowest, scale), _quotient(highest, scale), scale


@QUANTIZE_V2.shape
def quantize_v2_shape(input: Shape, min_range: Shape, max_range: Shape, *, axis: int) -> Any:
    bounds = fake_quantization.range_rule(input, min_range, max_range, axis)
    return input, bounds, bounds


# ---- Dequantize -------------------------------------------------------------------------------------------------

DEQUANTIZE = define(
    "Dequantize(input: T, min_range: float32, max_range: float32) -> (output: dtype)",
    T=_QUANTIZED,
    mode=_MODE,
    narrow_range=False,
    axis=INT32(-1),
    dtype=one_of(dtypes.bfloat16, dtypes.float32, default=dtypes.float32),
)


@DEQUANTIZE.kernel
def dequantize_kernel(
    input: torch.Tensor, min_range: torch.Tensor, max_range: torch.Tensor,
    *, T: DType, mode: str, narrow_range: bool, axis: int, dtype: DType,
) -> torch.Tensor:  # fmt: skip
    if mode == "MIN_FIRST" and axis != -1:
        raise UnimplementedError(None, None, "MIN_FIRST mode is not implemented for Dequantize with axis != -1.")
    start, end = (_along(each, input, axis, at) for each, at in ((min_range, "min_range"), (max_range, "max_range")))
    lowest, highest = int(T.min), int(T.max)
    whole = input.to(torch.float32)
    if mode == "SCALED":
        bottom, top = _limits(T, narrow_range)
        scale = end / top if bottom >= 0 else torch.maximum(start / bottom, end / top)
        result = whole * scale
    elif mode == "MIN_COMBINED":
        half = (highest - lowest + 1) / 2 if lowest < 0 else 0.0
        result = (whole + half) * ((end - start) / float(highest - lowest)) + start
    else:
        scale = (end - start) / float(highest - lowest)
        # The start of the range is rounded to a step too.
        result = whole * scale + (_away_from_zero(start / scale) * scale - lowest * scale)
    return result.to(torch_dtype(dtype))


@DEQUANTIZE.shape
def dequantize_shape(input: Shape, min_range: Shape, max_range: Shape) -> Shape:
    return input


# ---- functions --------------------------------------------------------------------------------------------------


def _settled(axis: int | None, input: Tensor) -> int:
    if axis is None:
        return -1
    if axis >= 0:
        return axis
    rank = input.static_shape.rank
    if rank is None:
        raise ValueError(f"input should have known rank to use negative axis, got axis {axis}.")
    return axis + rank


@export("quantization.quantize", v1="quantize")
def quantize(
    input: Any, min_range: Any, max_range: Any, T: Any, mode: str = "MIN_COMBINED",
    round_mode: str = "HALF_AWAY_FROM_ZERO", name: str | None = None, narrow_range: bool = False,
    axis: int | None = None, ensure_minimum_range: float = 0.01,
) -> Any:  # fmt: skip
    """Quantizes values to integers of dtype `T`. Also returns the range that they represent.

    Args:
        input: float32 values.
        min_range: the value that the smallest integer represents; one for each slice along `axis`.
        max_range: the value that the largest integer represents, in the same form.
        T: qint8, quint8, qint16, quint16 or qint32.
        mode: "MIN_COMBINED" (scale, then shift), "MIN_FIRST" (shift by whole steps) or "SCALED" (zero stays zero).
        round_mode: "HALF_AWAY_FROM_ZERO", or with SCALED also "HALF_TO_EVEN".
        name: the op's name.
        narrow_range: whether SCALED omits the most negative integer.
        axis: the dimension along which each slice has its own range.
        ensure_minimum_range: the minimum width of the range, in proportion to its larger end (at least 1).

    Returns:
        (output, output_min, output_max): the integers and the actual range.
    """
    x = input if isinstance(input, Tensor) else convert_to_tensor(input, dtypes.float32, name="input")
    return QUANTIZE_V2(
        x, min_range, max_range, T=as_dtype(T), mode=mode, round_mode=round_mode, narrow_range=narrow_range,
        axis=_settled(axis, x), ensure_minimum_range=ensure_minimum_range, name=name,
    )  # fmt: skip


@export(v1="quantize_v2")
def quantize_v2(
    input: Any, min_range: Any, max_range: Any, T: Any, mode: str = "MIN_COMBINED", name: str | None = None,
    round_mode: str = "HALF_AWAY_FROM_ZERO", narrow_range: bool = False, axis: int | None = None,
    ensure_minimum_range: float = 0.01,
) -> Any:  # fmt: skip
    """`quantize` with an older argument order."""
    return quantize(
        input, min_range, max_range, T, mode, round_mode, name, narrow_range, axis, ensure_minimum_range
    )  # fmt: skip


@export("quantization.dequantize", v1="dequantize")
def dequantize(
    input: Any, min_range: Any, max_range: Any, mode: str = "MIN_COMBINED", name: str | None = None,
    axis: int | None = None, narrow_range: bool = False, dtype: Any = dtypes.float32,
) -> Tensor:  # fmt: skip
    """Converts quantized integers back to float32 or bfloat16. See `quantize`."""
    x = convert_to_tensor(input, name="input")
    return DEQUANTIZE(
        x, min_range, max_range, mode=mode, narrow_range=narrow_range, axis=_settled(axis, x), dtype=dtype, name=name
    )  # fmt: skip
