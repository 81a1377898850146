"""Runs fused kernels without a GPU: a C++ compiler translates their source, and threads run one after the other."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import re
import shutil
import subprocess
import tempfile

import torch

COMPILER = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")

_SHIM = """
#include <cmath>
#include <cstring>
#define __global__
#define __device__ static
#define __shared__ static
#define __restrict__
#define __launch_bounds__(threads)
static inline void __syncthreads() {}
static inline float __int_as_float(unsigned bits) { float x; memcpy(&x, &bits, 4); return x; }
static inline float __uint_as_float(unsigned bits) { return __int_as_float(bits); }
static inline double __longlong_as_double(long long bits) { double x; memcpy(&x, &bits, 8); return x; }
static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
struct Three { unsigned x; };
static Three blockIdx, threadIdx, blockDim;
"""
_ENTRY = """
extern "C" void run(unsigned blocks, unsigned threads, void **arguments) {
    blockDim.x = threads;
    for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++)
        for (threadIdx.x = 0; threadIdx.x < threads; threadIdx.x++) %s(%s);
}
"""


@functools.cache
def _folder() -> tempfile.TemporaryDirectory:
    return tempfile.TemporaryDirectory()  # removed when the process ends


@functools.cache
def compiled(source: str, entry: str = "fused"):
    """Compiles a kernel, as `fused_kernels.compiled` does. One whose threads wait for each other must be run with one thread."""
    assert COMPILER is not None
    parameters = re.split(r",\s*", re.search(rf"void.* {entry}\(([^)]*)\)", source).group(1))
    kinds = [re.sub(r"\w+$", "", each).replace("__restrict__", "").strip() for each in parameters]
    given = [
        f"({kind})arguments[{i}]" if kind.endswith("*") else f"*({kind} *)arguments[{i}]"
        for i, kind in enumerate(kinds)
    ]
    name = os.path.join(_folder().name, hashlib.sha1((source + entry).encode()).hexdigest())
    with open(name + ".cc", "w", encoding="utf-8") as file:
        file.write(_SHIM + source + _ENTRY % (entry, ", ".join(given)))
    # Names of kernels may also be names in the C library.
    flags = ["-shared", "-fPIC", "-Wl,-Bsymbolic", "-O1", "-ffp-contract=off", "-w"]
    subprocess.run([COMPILER, *flags, name + ".cc", "-o", name + ".so"], check=True, timeout=120)
    run = ctypes.CDLL(name + ".so").run

    def call(grid, block, arguments):
        kept = [
            each
            if isinstance(each, torch.Tensor)
            else ctypes.c_double(each)
            if isinstance(each, float)
            else ctypes.c_int(each)
            for each in arguments
        ]
        pointers = [each.data_ptr() if isinstance(each, torch.Tensor) else ctypes.addressof(each) for each in kept]
        run(grid[0], block[0], (ctypes.c_void_p * len(kept))(*pointers))

    return call
