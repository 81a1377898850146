"""Framed signals: short-time Fourier transforms, cosine transforms, cepstral coefficients."""

from __future__ import annotations

import math as numbers
from typing import Any

import numpy as np

from stoker._src.base import dtypes
from stoker._src.base.export import export
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.static_values import constant_value
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import casting, constants, gathering, joining, pads, ranges, selection, shaping
from stoker._src.ops.math import arithmetic, comparison, reductions, segment_reductions, sequences, unary_functions
from stoker._src.ops.signal import fourier
from stoker._src.ops.signal.windows import hann_window, vorbis_window


def _last(x: Tensor) -> Any:
    """The size of the last dimension: a number if it is static, else a tensor."""
    size = x.static_shape[-1] if x.static_shape.rank else None
    return shaping.SHAPE_OP(x)[-1] if size is None else size


def _scalar(value: Any, name: str) -> Tensor:
    tensor = convert_to_tensor(value, name=name)
    tensor.shape.with_rank(0)
    return tensor


def _known(scalar: Tensor) -> Any:
    """A plain number if the value is static, else the tensor."""
    known = constant_value(scalar)
    return scalar if known is None else int(known)


def _whole(value: Any, name: str) -> Any:
    """A length as a plain number if it is static, else as a scalar tensor.

    Sizes are int32 and are divided by lengths. A length of another dtype fails with the error of that division.
    """
    tensor = _scalar(value, name)
    return _known(
        tensor if tensor.dtype.base_dtype is dtypes.int32 else arithmetic.FLOOR_DIV(tensor, convert_to_tensor(1))
    )


def _fft_length(value: Any) -> Any:
    """The length of a transform, which may have any numeric dtype."""
    return _known(casting.cast(_scalar(value, "fft_length"), dtypes.int32))


def _axis_of(x: Tensor, axis: Any) -> Any:
    """The index of an axis from the front: a number if it is static, else a scalar tensor.

    Raises:
        TypeError: `axis` is not an integer.
        ValueError: `axis` is not a scalar, or is out of range.
    """
    tensor = _scalar(axis, "axis")
    if not tensor.dtype.is_integer:
        raise TypeError(f"axis must be a whole number, got {axis!r}.")
    rank, known = x.static_shape.rank, _known(tensor)
    if isinstance(known, Tensor):
        place = casting.cast(known, dtypes.int32)
        return arithmetic.select(comparison.less(place, 0), arithmetic.add(place, ranges.rank(x)), place)
    if rank is not None and not -rank <= known < rank:
        raise ValueError(f"axis {known} is out of range for a signal of rank {rank}.")
    return known if rank is None else known % rank


# ---- frame, overlap_and_add -------------------------------------------------------------------------------------


@export("signal.frame")
def frame(
    signal: Any,
    frame_length: Any,
    frame_step: Any,
    pad_end: bool = False,
    pad_value: Any = 0,
    axis: int = -1,
    name: str | None = None,
) -> Tensor:
    """Splits `signal` into overlapping frames along `axis`, which becomes two dimensions, [frames, frame_length].

    Args:
        signal: A tensor.
        frame_length: The number of samples in a frame.
        frame_step: The number of samples from one frame to the next.
        pad_end: Whether to pad the end with `pad_value`, so that every sample is in a frame.
        pad_value: The padding value.
        axis: The dimension of samples.
        name: A name for the scope.

    Raises:
        ValueError: a length is not a scalar, or the axis is out of range.
    """
    with name_scope(name, "frame", [signal, frame_length, frame_step]):
        x = convert_to_tensor(signal, name="signal")
        width, step = _whole(frame_length, "frame_length"), _whole(frame_step, "frame_step")
        if isinstance(step, int) and step == 0:
            raise context.invalid("frame_step must not be 0.")
        rank, axis = x.static_shape.rank, _axis_of(x, axis)
        if rank is None or isinstance(axis, Tensor):
            return sequences.along_axis(x, axis, lambda flat: frame(flat, width, step, pad_end, pad_value, 1))
        length = x.static_shape[axis]
        total: Any = shaping.SHAPE_OP(x)[axis] if length is None else length
        if pad_end:
            count = -(-total // step)
            missing = (count - 1) * step + width - total
            missing = max(0, missing) if isinstance(missing, int) else arithmetic.maximum(missing, 0)
            paddings: Any = [[0, missing if i == axis else 0] for i in range(rank)]
            fill = convert_to_tensor(pad_value, x.dtype.base_dtype)
            fill.shape.with_rank(0)
            x = pads.pad(x, paddings, constant_values=fill)
        else:
            count = 1 + (total - width) // step
            count = max(0, count) if isinstance(count, int) else arithmetic.maximum(count, 0)
        starts = shaping.reshape(arithmetic.multiply(ranges.range(0, count), step), [-1, 1])
        places = arithmetic.add(starts, shaping.reshape(ranges.range(0, width), [1, -1]))
        x = shaping.reshape(x, shaping.shape(x))  # the reshape makes the gradient dense
        return gathering.GATHER_V2(x, places, axis)


@export("signal.overlap_and_add")
def overlap_and_add(signal: Any, frame_step: Any, name: str | None = None) -> Tensor:
    """Adds overlapping frames that are `frame_step` samples apart: [..., frames, length] becomes [..., samples].

    Raises:
        ValueError: the signal has a rank below 2, or the step is not an integer scalar.
    """
    with name_scope(name, "overlap_and_add", [signal, frame_step]):
        x = convert_to_tensor(signal, name="signal")
        rank = x.static_shape.rank
        step = _scalar(frame_step, "frame_step")
        if not step.dtype.is_integer:
            raise ValueError(f"frame_step must be an integer. Got {step.dtype}")
        step = _known(step)
        step = step if isinstance(step, int) else _whole(step, "frame_step")
        if isinstance(step, int) and step < 1:
            raise context.invalid(f"frame_step must be positive, got {step}.")
        sizes: Any = shaping.SHAPE_OP(x)
        if rank is None:
            outer = reductions.reduce_prod(sizes[:-2])
            added = overlap_and_add(shaping.reshape(x, joining.joined_sizes([outer, sizes[-2], sizes[-1]])), step)
            return shaping.reshape(added, joining.concat([sizes[:-2], shaping.SHAPE_OP(added)[-1:]], 0))
        if rank < 2:
            raise ValueError(f"signal must have at least 2 dimensions, but its shape is {x.shape}.")
        frames = sizes[-2] if x.static_shape[-2] is None else x.static_shape[-2]
        width = sizes[-1] if x.static_shape[-1] is None else x.static_shape[-1]
        total = (frames - 1) * step + width
        starts = shaping.reshape(arithmetic.multiply(ranges.range(0, frames), step), [-1, 1])
        places = arithmetic.add(starts, shaping.reshape(ranges.range(0, width), [1, -1]))
        if rank == 2:
            return segment_reductions.UNSORTED_SEGMENT_SUM(x, places, total)
        frames_first = shaping.transpose(x, [rank - 2, rank - 1, *range(rank - 2)])
        return shaping.transpose(
            segment_reductions.UNSORTED_SEGMENT_SUM(frames_first, places, total), [*range(1, rank - 1), 0]
        )


# ---- short-time Fourier transform -------------------------------------------------------------------------------


def _enclosing_power_of_two(length: Any) -> Any:
    if not isinstance(length, Tensor):
        return int(2 ** np.ceil(np.log2(length)))
    exponent = unary_functions.ceil(
        arithmetic.divide(unary_functions.log(casting.cast(length, dtypes.float64)), numbers.log(2.0))
    )
    return casting.cast(arithmetic.power(constants.number(2.0, exponent), exponent), dtypes.int32)


@export("signal.stft")
def stft(
    signals: Any,
    frame_length: Any,
    frame_step: Any,
    fft_length: Any = None,
    window_fn: Any = hann_window,
    pad_end: bool = False,
    name: str | None = None,
) -> Tensor:
    """Fourier transforms of windowed, overlapping frames: [..., samples] becomes [..., frames, frequencies]."""
    with name_scope(name, "stft", [signals, frame_length, frame_step]):
        x = convert_to_tensor(signals, name="signals")
        width = _whole(frame_length, "frame_length")
        size = _enclosing_power_of_two(width) if fft_length is None else _fft_length(fft_length)
        framed = frame(x, width, frame_step, pad_end=pad_end)
        if window_fn is not None:
            framed = arithmetic.multiply(framed, window_fn(width, dtype=framed.dtype))
        return fourier.rfft(framed, [size])


@export("signal.inverse_stft_window_fn")
def inverse_stft_window_fn(frame_step: Any, forward_window_fn: Any = hann_window, name: str | None = None) -> Any:
    """A window for `inverse_stft` that undoes `forward_window_fn`: it is divided by the sum of its overlapping squares."""

    def inverse_window(frame_length: Any, dtype: Any) -> Tensor:
        with name_scope(name, "inverse_stft_window_fn"):
            width, step = _whole(frame_length, "frame_length"), _whole(frame_step, "frame_step")
            forward = forward_window_fn(width, dtype=dtype)
            overlaps = -(-width // step)
            squares = pads.pad(unary_functions.square(forward), [[0, overlaps * step - width]])
            sums = _tiled_sum(shaping.reshape(squares, joining.PACK([overlaps, step])), overlaps)
            return arithmetic.realdiv(forward, sums[:width])

    return inverse_window


def _tiled_sum(rows: Tensor, times: Any) -> Tensor:
    """The sum of rows, repeated `times` times."""
    total = reductions.reduce_sum(rows, 0, True)
    return shaping.reshape(
        ranges.broadcast_to(
            total, joining.concat([shaping.reshape(convert_to_tensor(times), [1]), shaping.shape(rows)[1:]], 0)
        ),
        [-1],
    )


def _window_length(value: Any) -> Any:
    """A frame length that is not used in a division. A static value may have any integer dtype."""
    tensor = _scalar(value, "frame_length")
    if constant_value(tensor) is None:
        return _whole(tensor, "frame_length")
    if not tensor.dtype.is_integer:
        raise TypeError(f"frame_length must be a whole number, got {value!r}.")
    return _known(convert_to_tensor(tensor, dtypes.int32))


@export("signal.inverse_stft")
def inverse_stft(
    stfts: Any,
    frame_length: Any,
    frame_step: Any,
    fft_length: Any = None,
    window_fn: Any = hann_window,
    name: str | None = None,
) -> Tensor:
    """Reconstructs signals from short-time Fourier transforms: inverse transform, window, overlap and add."""
    with name_scope(name, "inverse_stft", [stfts]):
        spectra = convert_to_tensor(stfts, name="stfts")
        width, step = _window_length(frame_length), _scalar(frame_step, "frame_step")
        size = _enclosing_power_of_two(width) if fft_length is None else _fft_length(fft_length)
        frames = fourier.irfft(spectra, [size])
        frames = frames[..., :width]
        if isinstance(width, int) and isinstance(size, int) and width > size:
            frames = _sized(frames, width)
        if window_fn is not None:
            frames = arithmetic.multiply(frames, window_fn(width, dtype=frames.dtype))
        return overlap_and_add(frames, step)


# ---- cosine transforms ------------------------------------------------------------------------------------------


def _phase(count: Any, kind: Any, sign: float) -> Tensor:
    """2 exp(sign i pi k / (2 n))."""
    if isinstance(count, Tensor):
        places, length = (casting.cast(each, dtypes.float64) for each in (ranges.range(count), 2 * count))
        angles = arithmetic.divide(arithmetic.multiply(places, sign * np.pi), length)
        return casting.cast(
            unary_functions.complex(2 * unary_functions.cos(angles), 2 * unary_functions.sin(angles)), kind
        )
    angles = sign * np.pi * np.arange(count) / (2 * count)
    return convert_to_tensor((2 * np.exp(1j * angles)).astype(kind.as_numpy_dtype))


def _check_dct(type: int, n: Any, axis: Any, norm: Any) -> None:
    if axis != -1:
        raise NotImplementedError(f"axis must be -1. Got: {axis}")
    if n is not None and n < 1:
        raise ValueError("n should be a positive integer or None")
    if type not in (1, 2, 3, 4):
        raise ValueError("Types I, II, III and IV (I)DCT are supported.")
    if type == 1 and norm == "ortho":
        raise ValueError("Normalization is not supported for the Type-I DCT.")
    if norm not in (None, "ortho"):
        raise ValueError(f"Unknown normalization. Expected None or 'ortho', got: {norm}")


def _sized(x: Tensor, n: Any) -> Tensor:
    """Truncates x, or pads it with zeros, to `n` elements."""
    if n is None:
        return x
    have = _last(x)
    if isinstance(have, Tensor) or isinstance(n, Tensor):
        x = x[..., :n]
        lead = shaping.zeros([ranges.rank(x) - 1, 2], dtypes.int32)
        return pads.pad(x, joining.concat([lead, [[0, n - _last(x)]]], 0))
    if have >= n:
        return x[..., :n]
    return pads.pad(x, [[0, 0]] * (len(x.static_shape) - 1) + [[0, n - have]])


@export("signal.dct", v1="spectral.dct")
def dct(input: Any, type: int = 2, n: Any = None, axis: int = -1, norm: Any = None, name: str | None = None) -> Tensor:
    """The discrete cosine transform of type 1 to 4 over the last dimension.

    Raises:
        ValueError: the type or normalization is unknown.
        NotImplementedError: the axis is not the last one.
    """
    _check_dct(type, n, axis, norm)
    with name_scope(name, "dct", [input, type, n, axis, norm]):
        x = convert_to_tensor(input)
        if x.dtype.base_dtype not in (dtypes.float32, dtypes.float64) and type != 1:
            raise TypeError(f"dct takes float32 or float64, got {x.dtype.base_dtype.name}.")
        x.shape.with_rank_at_least(1)
        x = _sized(x, n)
        count = _last(x)
        if not isinstance(count, Tensor) and count == 0 and type != 1:
            return shaping.identity(x)
        kind = dtypes.complex128 if x.dtype.base_dtype is dtypes.float64 else dtypes.complex64
        if type == 1:
            if not isinstance(count, Tensor) and count < 2:
                raise ValueError("Type I DCT requires the dimension size to be greater than one.")
            mirrored = joining.concat([x, x[..., count - 2 : 0 : -1]], -1)
            return unary_functions.real(fourier.rfft(mirrored))
        if type == 2:
            spectrum = fourier.rfft(x, [2 * count])[..., :count]
            result = unary_functions.real(arithmetic.multiply(spectrum, _phase(count, kind, -1)))
            if norm == "ortho":
                first, rest = 0.5 / _root(count), _root(0.5) / _root(count)
                result = arithmetic.multiply(result, _weights(first, rest, count, result))
            return result
        if type == 3:
            if norm == "ortho":
                first, rest = _root(count), _root(count) / _root(2)
                x = arithmetic.multiply(x, _weights(first, rest, count, x))
            else:
                x = arithmetic.multiply(x, casting.cast(count, x.dtype.base_dtype))
            spectrum = arithmetic.multiply(casting.cast(x, kind), _phase(count, kind, 1))
            return fourier.irfft(spectrum, [2 * count])[..., :count]
        result = dct(_sized(x, 2 * count), 2)[..., 1::2]
        scale = _root(0.5) / _root(count)
        return arithmetic.multiply(result, casting.cast(scale, result.dtype.base_dtype)) if norm == "ortho" else result


def _root(value: Any) -> Any:
    return (
        unary_functions.sqrt(casting.cast(value, dtypes.float64)) if isinstance(value, Tensor) else numbers.sqrt(value)
    )


def _weights(first: Any, rest: Any, count: Any, like: Tensor) -> Tensor:
    if isinstance(count, Tensor):
        whole = joining.concat([shaping.reshape(first, [1]), shaping.fill(shaping.reshape(count - 1, [1]), rest)], 0)
        return casting.cast(whole, like.dtype.base_dtype)
    return convert_to_tensor(np.array([first] + [rest] * (count - 1), like.dtype.base_dtype.as_numpy_dtype))


@export("signal.idct", v1="spectral.idct")
def idct(input: Any, type: int = 2, n: Any = None, axis: int = -1, norm: Any = None, name: str | None = None) -> Tensor:
    """The inverse of `dct` of the same type. Without normalization, it is scaled by 2 n (2 (n - 1) for type 1)."""
    _check_dct(type, n, axis, norm)
    return dct(input, {1: 1, 2: 3, 3: 2, 4: 4}[type], n, axis, norm, name)


@export("signal.mfccs_from_log_mel_spectrograms")
def mfccs_from_log_mel_spectrograms(log_mel_spectrograms: Any, name: str | None = None) -> Tensor:
    """Mel-frequency cepstral coefficients: the scaled cosine transform (type 2) of log-mel spectrograms.

    Raises:
        ValueError: there are no mel bins.
    """
    with name_scope(name, "mfccs_from_log_mel_spectrograms", [log_mel_spectrograms]):
        x = convert_to_tensor(log_mel_spectrograms)
        x.shape.with_rank_at_least(1)
        count = _last(x)
        if not isinstance(count, Tensor) and count == 0:
            raise ValueError("num_mel_bins must be nonzero for MFCCs.")
        transformed = dct(x, 2)
        factor = casting.cast(_root(0.5) / _root(count), transformed.dtype.base_dtype)
        return arithmetic.multiply(transformed, factor, name="mul_1")


# ---- modified cosine transform ----------------------------------------------------------------------------------


def _half(frame_length: Any) -> Any:
    width = _scalar(frame_length, "frame_length")
    known = constant_value(width)
    if known is None:
        return _whole(width, "frame_length") // 2
    if width.dtype.is_floating or known % 4:
        raise ValueError(f"The frame length must be a multiple of 4, got {known}.")
    return _known(convert_to_tensor(width, dtypes.int32)) // 2


@export("signal.mdct")
def mdct(
    signals: Any,
    frame_length: Any,
    window_fn: Any = vorbis_window,
    pad_end: bool = False,
    norm: Any = None,
    name: str | None = None,
) -> Tensor:
    """The modified discrete cosine transform of half-overlapping windowed frames: [..., frames, length / 2]."""
    with name_scope(name, "mdct", [signals, frame_length]):
        half = _half(frame_length)
        framed = frame(signals, 2 * half, half, pad_end=pad_end)
        if not framed.dtype.is_floating:
            raise ValueError(f"dtype must be a floating point type. Found {framed.dtype}")
        window = (
            constants.number(numbers.sqrt(0.5), framed)
            if window_fn is None
            else window_fn(2 * half, dtype=framed.dtype)
        )
        framed = arithmetic.multiply(framed, window)
        quarter = half // 2
        a, b = framed[..., :quarter], framed[..., quarter:half]
        c, d = framed[..., half : half + quarter], framed[..., half + quarter :]
        folded = joining.concat(
            [arithmetic.subtract(unary_functions.negative(c[..., ::-1]), d), arithmetic.subtract(a, b[..., ::-1])], -1
        )
        return dct(folded, 4, norm=norm)


@export("signal.inverse_mdct")
def inverse_mdct(mdcts: Any, window_fn: Any = vorbis_window, norm: Any = None, name: str | None = None) -> Tensor:
    """The inverse of `mdct`. The window must satisfy the Princen-Bradley condition."""
    with name_scope(name, "inverse_mdct", [mdcts]):
        x = convert_to_tensor(mdcts, name="mdcts")
        x.shape.with_rank_at_least(2)
        half = _last(x)
        if not isinstance(half, Tensor) and half % 2:
            raise context.invalid(f"The last dimension of mdcts must be even, but is {half}.")
        result = idct(x, 4, norm=norm)
        quarter = half // 2
        first, second = result[..., :quarter], result[..., quarter:]
        unfolded = joining.concat(
            [
                second,
                unary_functions.negative(second[..., ::-1]),
                unary_functions.negative(first[..., ::-1]),
                unary_functions.negative(first),
            ],
            -1,
        )
        if norm is None:
            count = (
                casting.cast(convert_to_tensor(half), unfolded.dtype.base_dtype) if isinstance(half, Tensor) else half
            )
            scale = 0.5 / count if isinstance(count, Tensor) or count else 0.0
            unfolded = arithmetic.multiply(unfolded, convert_to_tensor(scale, unfolded.dtype.base_dtype))
        window = (
            constants.number(numbers.sqrt(0.5), unfolded)
            if window_fn is None
            else window_fn(2 * half, dtype=unfolded.dtype)
        )
        return overlap_and_add(arithmetic.multiply(unfolded, window), half)


# ---- shifts -----------------------------------------------------------------------------------------------------


def _shifted(x: Any, axes: Any, back: bool, name: str | None, default: str) -> Tensor:
    with name_scope(name, default) as scope:
        x = convert_to_tensor(x)
        rank = x.static_shape.rank
        if axes is None and rank is not None:
            axes = list(range(rank))
        if axes is None:
            axes = ranges.range(ranges.rank(x))
            shifts: Any = arithmetic.floordiv(shaping.SHAPE_OP(x), 2)
        elif isinstance(axes, int):
            shifts = _size_at(x, axes) // 2
        elif isinstance(axes, (list, tuple)) and all(_within(x, axis) for axis in axes):
            shifts = [_size_at(x, axis) // 2 for axis in axes] if axes else np.zeros(0, np.int32)
            axes = list(axes) if axes else shifts
        else:
            axes = convert_to_tensor(axes)
            places = arithmetic.select(comparison.less(axes, 0), arithmetic.add(axes, ranges.rank(x)), axes)
            shifts = arithmetic.floordiv(gathering.gather(shaping.SHAPE_OP(x), places), 2)
        if isinstance(shifts, list):
            shifts = [-shift for shift in shifts] if back else shifts
        elif back:
            shifts = -shifts
        return selection.roll(x, shifts, axes, name=scope)


def _within(x: Tensor, axis: Any) -> bool:
    """Whether `axis` is a number that is valid for x, as far as the rank is known."""
    rank = x.static_shape.rank
    return isinstance(axis, (int, np.integer)) and (rank is None or -rank <= int(axis) < rank)


def _size_at(x: Tensor, axis: int) -> Any:
    size = x.static_shape[int(axis)] if x.static_shape.rank is not None and _within(x, axis) else None
    return shaping.SHAPE_OP(x)[axis] if size is None else size


@export("signal.fftshift")
def fftshift(x: Any, axes: Any = None, name: str | None = None) -> Tensor:
    """Moves the zero frequency to the middle of `axes` (all for None)."""
    return _shifted(x, axes, False, name, "fftshift")


@export("signal.ifftshift")
def ifftshift(x: Any, axes: Any = None, name: str | None = None) -> Tensor:
    """The inverse of `fftshift`."""
    return _shifted(x, axes, True, name, "ifftshift")
