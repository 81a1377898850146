"""Uniform, normal and categorical numbers made on a GPU, from the same Philox streams as on the CPU.

The position in the stream is a tensor on the device, and each call advances it there. A recorded step (runtime/plan/gpu/cuda_graphs.py) therefore
draws new numbers whenever it is replayed. The uniform numbers are TensorFlow's bits. The normal numbers are computed with CUDA's
logarithm, sine and cosine, so their last digits differ from the CPU's.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import torch

from stoker._src.ops.random.bits import choices
from stoker._src.ops.random.bits.philox import RESERVED_PER_OUTPUT, PhiloxState, sides
from stoker._src.ops.support import cuda_kernels
from stoker._src.ops.support.moving import recording

_THREADS = 256
_MOST = 1 << 30  # elements of one call; their number is passed as an int
_PER_THREAD = {"uniform": 4, "normal": 4, "doubles": 2}  # numbers of a block of the stream

_SOURCE = r"""
typedef unsigned int u32;
typedef unsigned long long u64;

/* Philox-4x32-10 (Salmon, Moraes, Dror and Shaw, 2011). */
__device__ void philox(const u64 *state, u64 block, u32 out[4]) {
    u64 low = state[1] + block, high = state[2] + (low < state[1]);
    u32 c0 = (u32)low, c1 = (u32)(low >> 32), c2 = (u32)high, c3 = (u32)(high >> 32);
    u32 k0 = (u32)state[0], k1 = (u32)(state[0] >> 32);
    for (int round = 0; round < 10; round++) {
        u64 p0 = (u64)c0 * 0xD2511F53u, p1 = (u64)c2 * 0xCD9E8D57u;
        c0 = (u32)(p1 >> 32) ^ c1 ^ k0;
        c1 = (u32)p1;
        c2 = (u32)(p0 >> 32) ^ c3 ^ k1;
        c3 = (u32)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0, out[1] = c1, out[2] = c2, out[3] = c3;
}

__device__ float unit(u32 word) { return __uint_as_float((word & 0x7fffffu) | 0x3f800000u) - 1.0f; }

extern "C" __global__ void uniform(float *out, const u64 *state, int count) {
    int first = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
    if (first >= count) return;
    u32 words[4];
    philox(state, first / 4, words);
    for (int i = 0; i < 4 && first + i < count; i++) out[first + i] = unit(words[i]);
}

extern "C" __global__ void normal(float *out, const u64 *state, int count) {
    int first = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
    if (first >= count) return;
    u32 words[4];
    float made[4];
    philox(state, first / 4, words);
    for (int i = 0; i < 4; i += 2) { /* the Box-Muller transform */
        float radius = sqrtf(-2.0f * logf(fmaxf(unit(words[i]), 1.0e-7f)));
        float sine, cosine;
        sincosf((float)(6.28318530717958647692 * (double)unit(words[i + 1])), &sine, &cosine);
        made[i] = sine * radius, made[i + 1] = cosine * radius;
    }
    for (int i = 0; i < 4 && first + i < count; i++) out[first + i] = made[i];
}

/* Two to a block: 20 bits of one word above 32 of the next. */
extern "C" __global__ void doubles(double *out, const u64 *state, int count) {
    int first = 2 * (blockIdx.x * blockDim.x + threadIdx.x);
    if (first >= count) return;
    u32 words[4];
    philox(state, first / 2, words);
    for (int i = 0; i < 2 && first + i < count; i++) {
        u64 mantissa = (u64)(words[2 * i] & 0xfffffu) << 32 | words[2 * i + 1];
        out[first + i] = __longlong_as_double((long long)(mantissa | 1023ull << 52)) - 1.0;
    }
}

extern "C" __global__ void advance(u64 *state, int count) {
    u64 before = state[1];
    state[1] += (u64)count * RESERVED;
    state[2] += state[1] < before;
}
"""


@functools.cache
def _kernels() -> dict[str, Any] | None:
    """Returns the compiled kernels; None if torch cannot compile CUDA code at run time."""
    source = _SOURCE.replace("RESERVED", str(RESERVED_PER_OUTPUT))
    made = {name: cuda_kernels.compiled(source, name) for name in (*_PER_THREAD, "advance")}
    return None if None in made.values() else made


def can_fill(dtype: torch.dtype) -> bool:
    """Whether numbers of a dtype can be made on the GPU."""
    return dtype is torch.float32 and _kernels() is not None


def filled(name: str, state: PhiloxState, shape: list[int], device: torch.device) -> torch.Tensor:
    """Returns "uniform" or "normal" float32 numbers, and advances the state as the CPU would."""
    return _drawn(name, state, torch.empty(shape, device=device), math.prod(shape))


def categorical(state: PhiloxState, logits: torch.Tensor, samples: int) -> torch.Tensor:
    """Returns `samples` classes for each row of `logits`, and advances the state, as `choices.categorical` does."""
    batch = logits.shape[0]
    uniforms = torch.empty((batch, samples), dtype=torch.float64, device=logits.device)
    _drawn("doubles", state, uniforms, choices.categorical_reserve(batch, samples) // RESERVED_PER_OUTPUT)
    scores = logits.double()
    finite = torch.isfinite(scores)
    largest = scores.masked_fill(~finite, -math.inf).amax(1, keepdim=True)
    sums = (scores - largest).exp().masked_fill(~finite, 0.0).cumsum(1)
    return torch.searchsorted(sums, uniforms * sums[:, -1:], right=True)


def _drawn(name: str, state: PhiloxState, out: torch.Tensor, reserved: int) -> torch.Tensor:
    """Fills `out`, and advances the state by what so many outputs reserve."""
    kernels = _kernels()
    count = out.numel()
    assert kernels is not None and max(count, reserved) < _MOST
    if not count:
        return out
    blocks = -(-count // (_PER_THREAD[name] * _THREADS))
    with sides:
        words = state.on_device(functools.partial(_moved, out.device))
        kernels[name]((blocks, 1, 1), (_THREADS, 1, 1), (out, words, count))
        kernels["advance"]((1, 1, 1), (1, 1, 1), (words, reserved))
    generators = getattr(recording, "generators", None)
    if generators is not None:
        generators[id(state)] = state
    return out


def _moved(device: torch.device, words: tuple[int, int, int]) -> torch.Tensor:
    signed = [word - (1 << 64) if word >> 63 else word for word in words]
    # The host need not wait: a branch may draw its first numbers in a run that looks for such waits.
    return torch.tensor(signed, dtype=torch.int64, pin_memory=True).to(device, non_blocking=True)
