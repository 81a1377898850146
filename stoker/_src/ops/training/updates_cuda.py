"""Updates of rows on a GPU: one kernel applies a rule to the rows of a variable and its slots where they are.

It has the rules of native/updates.c. With torch's ops, a rule takes some twenty kernels, each of which does next to nothing for a few hundred rows.
"""

from __future__ import annotations

import struct
from typing import Any

import torch

from stoker._src.ops.support import cuda_kernels, table_rows

_THREADS = 256
_INTEGERS = (torch.int32, torch.int64)
_MOST = 2**31 - 1
_ADAGRAD, _MOMENTUM, _RMS_PROP, _FTRL = range(4)

# A thread updates one element of a row. Rows are distinct; those out of range are skipped. Numbers come as the bits of floats, because
# versions of torch differ in how they pass a float; the rate may be on the device.
SOURCE = r"""
typedef long long i64;

extern "C" __global__ void rows(float* var, float* first, float* second, const float* grad, const int* narrow, const i64* wide, const float* rate,
                                int is_wide, int count, int size, int width, int rule, int rate_on_device, int a, int b, int c, int d, int e) {
    i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= (i64)count * width) return;
    i64 row = is_wide ? wide[i / width] : narrow[i / width];
    if (row < 0 || row >= size) return;
    i64 at = row * width + i % width;
    float lr = rate_on_device ? *rate : __int_as_float(a), g = grad[i];
    float second_number = __int_as_float(b), third = __int_as_float(c), fourth = __int_as_float(d), fifth = __int_as_float(e);
    if (rule == 0) { /* Adagrad */
        float total = first[at] + g * g;
        first[at] = total;
        var[at] -= lr * g / sqrtf(total);
    } else if (rule == 1) { /* momentum, Nesterov's if `third` is not 0 */
        float moved = first[at] * second_number + g;
        first[at] = moved;
        var[at] -= lr * (third != 0.0f ? g + second_number * moved : moved);
    } else if (rule == 2) { /* RMSProp: rho, 1 - rho, momentum, epsilon */
        float square = first[at] * second_number + third * g * g;
        float change = second[at] * fourth + lr * g / sqrtf(square + fifth);
        first[at] = square;
        second[at] = change;
        var[at] -= change;
    } else { /* Ftrl: scale, divide, shrinkage, limit, ridge */
        float scale = lr, divide = second_number, limit = fourth;
        float before = sqrtf(first[at]), total = first[at] + g * g, after = sqrtf(total);
        float pull = third != 0.0f ? g + var[at] * third : g;
        float pulled = second[at] + (pull * scale - (after - before) / divide * var[at]);
        float clamped = pulled < -limit ? -limit : pulled > limit ? limit : pulled; /* keeps NaN */
        first[at] = total;
        second[at] = pulled;
        var[at] = (clamped - pulled) / (after / divide + fifth);
    }
}
"""


def update(
    rule: int,
    numbers: tuple[Any, ...],
    rate: torch.Tensor | None,
    tables: list[torch.Tensor],
    grad: torch.Tensor,
    indices: torch.Tensor,
) -> bool:
    """Applies a rule of native/updates.c, with its numbers, to distinct rows. `rate`, a number on the device, replaces the first number.

    Returns whether it did.
    """
    given = (grad, indices, *tables)
    if not all(each.is_contiguous() for each in given) or not all(each.is_cuda for each in given):
        return False
    floats = (grad, *tables) if rate is None else (grad, *tables, rate)
    if any(each.dtype is not torch.float32 for each in floats) or indices.dtype not in _INTEGERS:
        return False
    if max(tables[0].shape[0], grad.numel()) > _MOST or (rate is not None and not rate.is_cuda):
        return False
    run = cuda_kernels.compiled(SOURCE, "rows")
    if run is None:
        return False
    launch(run, rule, numbers, rate, tables, grad, indices)
    return True


def launch(
    run: Any,
    rule: int,
    numbers: tuple[Any, ...],
    rate: torch.Tensor | None,
    tables: list[torch.Tensor],
    grad: torch.Tensor,
    indices: torch.Tensor,
) -> None:
    """Starts the kernel `run`. There must be something to do."""
    native = table_rows.updates
    order = (native.ADAGRAD, native.MOMENTUM, native.RMS_PROP, native.FTRL)
    which = order.index(rule)
    if which == _RMS_PROP:
        lr, rho, momentum, epsilon = numbers
        numbers = (lr, rho, 1 - rho, momentum, epsilon)
    bits = [struct.unpack("i", struct.pack("f", number))[0] for number in (*numbers, 0, 0, 0, 0)[:5]]
    var, first, *more = tables
    second = more[0] if more else first
    count, size = indices.numel(), var.shape[0]
    width = grad.numel() // count
    settings = (int(indices.dtype is torch.int64), count, size, width, which, int(rate is not None))
    given = (var, first, second, grad, indices, indices, var if rate is None else rate, *settings, *bits)
    run((-(-grad.numel() // _THREADS), 1, 1), (_THREADS, 1, 1), given)
