"""Uniform and normal numbers, one Philox block per group of four outputs (two of 64 bits).

Consumption: a stateful op reserves `RESERVED_PER_OUTPUT` blocks per output element (`PhiloxState.reserve_outputs`)
and passes the stream. A stateless op passes the stream given by its key and counter. Output i uses words of block
i // 4 (i // 2 for 64-bit types), except in `truncated_normal`, where each group has its own blocks. All functions
return one-dimensional torch tensors on the CPU, which the caller reshapes. Those with an argument `times` draw the numbers of so many
executions of a stateful op, one after the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch

from stoker._src.base.errors import InvalidArgumentError
from stoker._src.ops.random.bits import native
from stoker._src.ops.random.bits.float_math import log_float, sincos_float
from stoker._src.ops.random.bits.philox import RESERVED_PER_OUTPUT, Stream, bits, bits_of_runs, philox_blocks

_MANTISSA_BITS = {torch.float16: 10, torch.bfloat16: 7, torch.float32: 23}
_FULL_INTS = {torch.int32: np.int32, torch.int64: np.int64, torch.uint32: np.uint32, torch.uint64: np.uint64}
_LEAST_UNIFORM = 1.0e-7  # keeps the logarithm in the Box-Muller transform finite
_TWO_PI = 2.0 * math.pi


def uniform(stream: Stream, count: int, dtype: torch.dtype, times: int = 1) -> torch.Tensor:
    """`count` numbers in [0, 1). The low bits of a word (10, 7 or 23; 52 bits of two words for float64) are the mantissa."""
    if dtype == torch.float64:
        return torch.from_numpy(_uniform_double(stream, count, times))
    return _as(torch.from_numpy(_uniform_float(stream, count, times, _mantissa_bits(dtype))), dtype)


def uniform_int(stream: Stream, count: int, low: int, high: int, dtype: torch.dtype) -> torch.Tensor:
    """`count` integers in [low, high): `low` plus a word (int64: two words, low first) modulo `high - low`.

    Raises:
        InvalidArgumentError: `low >= high` and `count` is positive.
    """
    if count == 0:
        return torch.empty(0, dtype=dtype)
    if low >= high:
        raise InvalidArgumentError(None, None, f"Need minval < maxval, got {low} >= {high}")
    return _between(bits(stream, count * _words_per_int(dtype)), low, high, dtype)


def _between(words: np.ndarray, low: int, high: int, dtype: torch.dtype) -> torch.Tensor:
    kind = _unsigned(dtype)
    words = words.view(kind)
    words %= kind(high - low)
    if low:  # low + remainder wraps around in two's complement
        words += kind(low & (1 << 8 * dtype.itemsize) - 1)
    return torch.from_numpy(words.view(_FULL_INTS[dtype]))


def uniform_int_of_runs(
    stream: Stream, count: int, low: int, high: int, dtype: torch.dtype, times: int
) -> torch.Tensor:
    """`uniform_int` of several executions, a row each. `count` is positive, and `low` less than `high`."""
    words = bits_of_runs(stream, count * _words_per_int(dtype), times, count * RESERVED_PER_OUTPUT)
    return _between(words, low, high, dtype)


def uniform_full_int(stream: Stream, count: int, dtype: torch.dtype) -> torch.Tensor:
    """`count` integers over the whole range of int32, int64, uint32 or uint64."""
    return torch.from_numpy(bits(stream, count * _words_per_int(dtype)).view(_FULL_INTS[dtype]))


def normal(stream: Stream, count: int, dtype: torch.dtype, times: int = 1) -> torch.Tensor:
    """`count` standard normals by the Box-Muller transform. 16-bit types are rounded from float32."""
    if dtype == torch.float64:
        return torch.from_numpy(_normal_double(stream, count, times))
    _mantissa_bits(dtype)
    return _as(torch.from_numpy(_normal_float(stream, count, times)), dtype)


def truncated_normal(stream: Stream, count: int, dtype: torch.dtype, times: int = 1) -> torch.Tensor:
    """`count` standard normals in (-2, 2). Others are rejected and drawn again.

    Each group of four outputs (two of float64) starts at its own block, 64 blocks per output after the previous group.
    """
    if dtype == torch.float64:
        return torch.from_numpy(_truncated(stream, count, times, np.float64))
    _mantissa_bits(dtype)
    return torch.from_numpy(_truncated(stream, count, times, np.float32)).to(dtype)


def _as(numbers: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return numbers if dtype is torch.float32 else numbers.to(dtype)


def _mantissa_bits(dtype: torch.dtype) -> int:
    if dtype not in _MANTISSA_BITS:
        raise InvalidArgumentError(None, None, f"Random numbers of type {dtype} are not defined; use a floating type.")
    return _MANTISSA_BITS[dtype]


def _words_per_int(dtype: torch.dtype) -> int:
    if dtype not in _FULL_INTS:
        raise InvalidArgumentError(None, None, f"Random integers of type {dtype} are not defined; use 32 or 64 bits.")
    return dtype.itemsize // 4


def _unsigned(dtype: torch.dtype) -> type[np.uint32] | type[np.uint64]:
    return np.uint32 if dtype.itemsize == 4 else np.uint64


def _runs(of_stream: Callable[[Stream], np.ndarray], stream: Stream, count: int, times: int) -> np.ndarray:
    """The numbers of several executions, each computed with NumPy."""
    if times == 1:
        return of_stream(stream)
    return np.concatenate([of_stream(stream.skip(i * count * RESERVED_PER_OUTPUT)) for i in range(times)])


def _compiled_runs(
    name: str, dtype: type, option: int, stream: Stream, count: int, times: int, group: int, spacing: int = 1
) -> np.ndarray:
    """The numbers of several executions. A group of them has `spacing` blocks."""
    out, apart = np.empty(times * count, dtype), count * RESERVED_PER_OUTPUT
    function = getattr(native.compiled, name)
    if times == 1:
        native.fill(function, out, stream, option, outputs_per_group=group, blocks_per_group=spacing)
    else:
        native.fill(function, out, stream, option, count, apart, outputs_per_group=count, blocks_per_group=apart)
    return out


def _uniform_float(stream: Stream, count: int, times: int, mantissa_bits: int) -> np.ndarray:
    if native.compiled is not None:
        return _compiled_runs("fill_uniform_float", np.float32, mantissa_bits, stream, count, times, 4)
    return _runs(lambda start: _unit_floats(bits(start, count), mantissa_bits), stream, count, times)


def _unit_floats(words: np.ndarray, mantissa_bits: int = 23) -> np.ndarray:
    mantissa = (words & np.uint32((1 << mantissa_bits) - 1)) << np.uint32(23 - mantissa_bits)
    return (mantissa | np.uint32(0x3F800000)).view(np.float32) - np.float32(1.0)


def _uniform_double(stream: Stream, count: int, times: int) -> np.ndarray:
    if native.compiled is not None:
        return _compiled_runs("fill_uniform_double", np.float64, 0, stream, count, times, 2)
    blocks = -(-count // 2)
    return _runs(lambda start: unit_doubles(philox_blocks(start, blocks)).reshape(-1)[:count], stream, count, times)


def unit_doubles(blocks: np.ndarray) -> np.ndarray:
    """Uniform float64 of shape [n, 2] from blocks of shape [n, 4]: 20 bits of one word above 32 of the next."""
    words = blocks.astype(np.uint64)
    mantissa = ((words[:, 0::2] & np.uint64(0xFFFFF)) << np.uint64(32)) | words[:, 1::2]
    return (mantissa | np.uint64(1023 << 52)).view(np.float64) - 1.0


def _box_muller_float(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    u = np.maximum(_unit_floats(first), np.float32(_LEAST_UNIFORM))
    sine, cosine = sincos_float((_TWO_PI * _unit_floats(second).astype(np.float64)).astype(np.float32))
    radius = np.sqrt(np.float32(-2.0) * log_float(u))
    return sine * radius, cosine * radius


def box_muller_double(u: float, v: float) -> tuple[float, float]:
    """Two standard normals. `math` uses the same C library as TensorFlow; NumPy's functions round differently."""
    radius = math.sqrt(-2.0 * math.log(max(u, _LEAST_UNIFORM)))
    angle = _TWO_PI * v
    return math.sin(angle) * radius, math.cos(angle) * radius


def _normal_float(stream: Stream, count: int, times: int) -> np.ndarray:
    if native.compiled is not None:
        return _compiled_runs("fill_normal_float", np.float32, 0, stream, count, times, 4)
    blocks = -(-count // 4)
    return _runs(lambda start: _normals_of(philox_blocks(start, blocks), np.float32)[:count], stream, count, times)


def _normal_double(stream: Stream, count: int, times: int) -> np.ndarray:
    if native.compiled is not None:
        return _compiled_runs("fill_normal_double", np.float64, 0, stream, count, times, 2)
    blocks = -(-count // 2)
    return _runs(lambda start: _normals_of(philox_blocks(start, blocks), np.float64)[:count], stream, count, times)


def _normals_of(blocks: np.ndarray, dtype: type) -> np.ndarray:
    """All normals of some blocks, as a flat array: four float32 or two float64 per block."""
    if dtype is np.float32:
        sine, cosine = _box_muller_float(blocks[:, 0::2].copy(), blocks[:, 1::2].copy())
        return np.stack([sine, cosine], axis=-1).reshape(-1)
    pairs = [box_muller_double(u, v) for u, v in unit_doubles(blocks).tolist()]
    return np.array(pairs, np.float64).reshape(-1)


def _truncated(stream: Stream, count: int, times: int, dtype: type) -> np.ndarray:
    per_group = 4 if dtype is np.float32 else 2
    spacing = per_group * RESERVED_PER_OUTPUT // 4  # 256 words per output, four to a block
    if native.compiled is not None:
        name = "fill_truncated_float" if dtype is np.float32 else "fill_truncated_double"
        return _compiled_runs(name, dtype, 0, stream, count, times, per_group, spacing)

    def one_run(start: Stream) -> np.ndarray:
        groups = [
            _truncated_group(start.skip(group * spacing), per_group, dtype) for group in range(-(-count // per_group))
        ]
        return np.concatenate(groups)[:count] if groups else np.empty(0, dtype)

    return _runs(one_run, stream, count, times)


def _truncated_group(stream: Stream, size: int, dtype: type) -> np.ndarray:
    blocks = 4
    while True:
        candidates = _normals_of(philox_blocks(stream, blocks), dtype)
        kept = candidates[np.abs(candidates) < 2.0]
        if kept.size >= size:
            return kept[:size]
        blocks *= 2
