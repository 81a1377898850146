"""Complex numbers and Fourier transforms."""

from __future__ import annotations

from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from stoker._src.graph.tensor import Operation
from stoker._src.lite.builtins.arrays import reshaped
from stoker._src.lite.lowering import Scope, Unsupported, lowers

PARTS = {"Real": "REAL", "Imag": "IMAG", "ComplexAbs": "COMPLEX_ABS"}


@lowers(*PARTS)
def part(scope: Scope, op: Operation) -> Any:
    return scope.emit(PARTS[op.type], scope.inputs(op), scope.result(op))


@lowers("RFFT2D")
def rfft2d(scope: Scope, op: Operation) -> Any:
    length = scope.required(op.inputs[1], "the length")
    if any(size & (size - 1) for size in length.tolist()):
        raise Unsupported(
            f"TFLite transforms lengths that are powers of two, not {length.tolist()}", "pad to a power of two"
        )
    return scope.emit(
        "RFFT2D", [scope.tensor(op.inputs[0]), scope.int32(op, op.inputs[1])], scope.result(op), schema.Rfft2dOptionsT()
    )


@lowers("RFFT")
def rfft(scope: Scope, op: Operation) -> Any:
    """Transforms rows by the transform of matrices with one row."""
    x, result = scope.tensor(op.inputs[0]), scope.result(op)
    length = int(scope.required(op.inputs[1], "the length")[0])
    if length & (length - 1):
        raise Unsupported(f"TFLite transforms lengths that are powers of two, not {length}", "pad to a power of two")
    if x.shape is None or sum(size < 0 for size in x.shape) > 1 or result.shape is None:
        raise Unsupported(
            "the input's rank must be known, and at most one of its sizes not", "give the input a static shape"
        )
    rows = reshaped(scope, x, scope.temporary(op, x.type, (*x.shape[:-1], 1, x.shape[-1])))
    sizes = scope.constant([1, length], "fft_length", np.int32)
    spectrum = scope.temporary(op, result.type, (*result.shape[:-1], 1, result.shape[-1]))
    scope.emit("RFFT2D", [rows, sizes], spectrum, schema.Rfft2dOptionsT())
    # RESHAPE has no complex kernel, SQUEEZE copies any type.
    return scope.emit(
        "SQUEEZE", [spectrum], result, schema.SqueezeOptionsT(squeezeDims=np.array([len(result.shape) - 1], np.int32))
    )
