"""Window functions, and the mel scale."""

from __future__ import annotations

import math as numbers
from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.dtypes import as_dtype
from stoker._src.base.export import export
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.static_values import constant_value
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import casting, constants, joining, pads, ranges, selection, shaping
from stoker._src.ops.math import arithmetic, comparison, scans, sequences, special, unary_functions


def _length(window_length: Any, name: str) -> Tensor:
    length = convert_to_tensor(window_length, dtypes.int32, name="window_length")
    if length.static_shape.rank not in (0, None):
        raise ValueError(f"{name}: window_length must be a scalar, but its shape is {length.shape}.")
    return length


def _raised_cosine(
    name: str | None, default: str, window_length: Any, periodic: Any, dtype: Any, a: float, b: float
) -> Tensor:
    """a - b cos(2 pi k / n), over n = length - 1, or n = length for periodic windows of even length."""
    kind = as_dtype(dtype)
    if not kind.is_floating:
        raise ValueError(f"dtype must be a floating point type. Found {kind}")
    with name_scope(name, default, [window_length, periodic]):
        length = _length(window_length, default)
        turns = convert_to_tensor(periodic, dtypes.bool_, name="periodic")
        turns.shape.with_rank(0)
        whole = casting.cast(turns, dtypes.int32)
        even = arithmetic.subtract(1, arithmetic.floormod(length, 2))
        span = casting.cast(arithmetic.subtract(arithmetic.add(length, arithmetic.multiply(whole, even)), 1), kind)
        # A window of length 1 is 1. This avoids the division by zero; the value is selected at the end.
        span = arithmetic.maximum(span, constants.number(1, span))
        count = casting.cast(ranges.range(0, length), kind)
        angle = arithmetic.realdiv(arithmetic.multiply(count, constants.number(2 * numbers.pi, count)), span)
        wave = arithmetic.multiply(constants.number(b, angle), unary_functions.cos(angle))
        window = arithmetic.subtract(constants.number(a, angle), wave, name="sub_2")
        if constant_value(length) not in (None, 1):
            return window
        return selection.SELECT_V2(comparison.equal(length, 1), shaping.ones_like(window), window)


@export("signal.hann_window")
def hann_window(
    window_length: Any, periodic: Any = True, dtype: Any = dtypes.float32, name: str | None = None
) -> Tensor:
    """The Hann window, 0.5 - 0.5 cos."""
    return _raised_cosine(name, "hann_window", window_length, periodic, dtype, 0.5, 0.5)


@export("signal.hamming_window")
def hamming_window(
    window_length: Any, periodic: Any = True, dtype: Any = dtypes.float32, name: str | None = None
) -> Tensor:
    """The Hamming window, 0.54 - 0.46 cos."""
    return _raised_cosine(name, "hamming_window", window_length, periodic, dtype, 0.54, 0.46)


@export("signal.vorbis_window")
def vorbis_window(window_length: Any, dtype: Any = dtypes.float32, name: str | None = None) -> Tensor:
    """The power-complementary window of the Vorbis codec."""
    with name_scope(name, "vorbis_window"):
        length = _length(window_length, "vorbis_window")
        place = casting.cast(ranges.range(0, length), as_dtype(dtype))
        width = casting.cast(length, place.dtype.base_dtype)
        half = constants.number(0.5, place)
        inner = unary_functions.sin(
            arithmetic.realdiv(
                arithmetic.multiply(constants.number(numbers.pi, place), arithmetic.add(place, half)), width
            )
        )
        return unary_functions.sin(
            arithmetic.multiply(constants.number(numbers.pi / 2, place), unary_functions.square(inner))
        )


@export("signal.kaiser_window")
def kaiser_window(window_length: Any, beta: Any = 12.0, dtype: Any = dtypes.float32, name: str | None = None) -> Tensor:
    """The Kaiser window of shape `beta`."""
    with name_scope(name, "kaiser_window"):
        length = _length(window_length, "kaiser_window")
        kind = as_dtype(dtype)
        half = arithmetic.realdiv(
            arithmetic.subtract(casting.cast(length, kind), constants.number(1, casting.cast(length, kind))), 2.0
        )
        place = arithmetic.subtract(casting.cast(ranges.range(0, length), kind), half)
        shape = casting.cast(convert_to_tensor(beta), kind)
        inner = arithmetic.subtract(
            constants.number(1, place), unary_functions.square(arithmetic.DIV_NO_NAN(place, half))
        )
        root = arithmetic.multiply(shape, unary_functions.sqrt(arithmetic.maximum(inner, constants.number(0, inner))))
        # Both Bessel functions are scaled, so that a large beta does not overflow.
        ratio = arithmetic.realdiv(special.bessel_i0e(root), special.bessel_i0e(shape))
        return arithmetic.multiply(unary_functions.exp(arithmetic.subtract(root, shape)), ratio)


@export("signal.kaiser_bessel_derived_window")
def kaiser_bessel_derived_window(
    window_length: Any, beta: Any = 12.0, dtype: Any = dtypes.float32, name: str | None = None
) -> Tensor:
    """The power-complementary window made of cumulative sums of a Kaiser window."""
    with name_scope(name, "kaiser_bessel_derived_window"):
        length = _length(window_length, "kaiser_bessel_derived_window")
        half = arithmetic.FLOOR_DIV(length, 2)
        kaiser = kaiser_window(arithmetic.add(half, 1), beta, dtype)
        total = scans.cumsum(kaiser)
        rising = unary_functions.sqrt(arithmetic.realdiv(total[:-1], total[-1]))
        return joining.concat([rising, rising[::-1]], 0)


def _mel(frequency: Tensor) -> Tensor:
    """Converts Hertz to mel: 1127 ln(1 + f / 700)."""
    one = constants.number(1, frequency)
    scaled = arithmetic.add(one, arithmetic.realdiv(frequency, constants.number(700.0, frequency)))
    return arithmetic.multiply(constants.number(1127.0, frequency), unary_functions.log(scaled))


@export("signal.linear_to_mel_weight_matrix")
def linear_to_mel_weight_matrix(
    num_mel_bins: Any = 20,
    num_spectrogram_bins: Any = 129,
    sample_rate: Any = 8000,
    lower_edge_hertz: Any = 125.0,
    upper_edge_hertz: Any = 3800.0,
    dtype: Any = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """A matrix that converts linear spectrograms to mel spectrograms: triangles of equal width on the mel scale.

    Raises:
        ValueError: the edges or sizes are invalid.
    """
    # These are Python comparisons, so incomparable values and tensors without a static value raise TypeError.
    if num_mel_bins <= 0:
        raise ValueError(f"num_mel_bins must be positive. Got: {num_mel_bins}")
    if lower_edge_hertz < 0.0:
        raise ValueError(f"lower_edge_hertz must be non-negative. Got: {lower_edge_hertz}")
    if lower_edge_hertz >= upper_edge_hertz:
        raise ValueError(f"lower_edge_hertz {lower_edge_hertz} >= upper_edge_hertz {upper_edge_hertz}")
    rate: Any = sample_rate
    if isinstance(sample_rate, Tensor):
        known = constant_value(sample_rate)
        rate = numbers.inf if known is None else known
    if rate <= 0.0:
        raise ValueError(f"sample_rate must be positive. Got: {sample_rate}")
    if upper_edge_hertz > rate / 2:
        raise ValueError(
            f"upper_edge_hertz must not be larger than the Nyquist frequency (sample_rate / 2). "
            f"Got {upper_edge_hertz} for sample_rate: {sample_rate}"
        )
    if not as_dtype(dtype).is_floating:
        raise ValueError(f"dtype must be a floating point type. Got: {dtype}")
    with name_scope(name, "linear_to_mel_weight_matrix") as scope:
        kind = as_dtype(dtype)
        whole = casting.cast(convert_to_tensor(sample_rate, name="sample_rate"), kind)
        nyquist = arithmetic.realdiv(whole, constants.number(2.0, whole))
        # The first bin, at frequency zero, belongs to no band.
        linear = sequences.linspace(constants.number(0.0, whole), nyquist, num_spectrogram_bins)[1:]
        bins = shaping.expand_dims(_mel(linear), 1)
        start, end = (_mel(convert_to_tensor(each, kind)) for each in (lower_edge_hertz, upper_edge_hertz))
        edges = sequences.linspace(start, end, arithmetic.add(convert_to_tensor(num_mel_bins), 2))
        left, centre, right = (shaping.expand_dims(part, 0) for part in (edges[:-2], edges[1:-1], edges[2:]))
        rising = arithmetic.realdiv(arithmetic.subtract(bins, left), arithmetic.subtract(centre, left))
        falling = arithmetic.realdiv(arithmetic.subtract(right, bins), arithmetic.subtract(right, centre))
        weights = arithmetic.maximum(constants.number(0, rising), arithmetic.minimum(rising, falling))
        return pads.pad(weights, [[1, 0], [0, 0]], name=scope)
