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
    """Transforms rows by the transform of matrices with one row.

    TFLite transforms powers of two only. A row with another length is first multiplied by a matrix, which gives the longer row whose spectrum
    starts with the one that is wanted. (Such a row exists for any spectrum; the map is linear.)
    """
    x, result = scope.tensor(op.inputs[0]), scope.result(op)
    length = int(scope.required(op.inputs[1], "the length")[0])
    if x.shape is None or result.shape is None:
        raise Unsupported("the input's rank must be known", "give the input a static shape")
    if not length & (length - 1):
        return _spectrum(scope, op, x, length, result)
    if length > _LONGEST or x.shape[-1] < 0:
        raise Unsupported(
            f"TFLite transforms lengths that are powers of two, not {length}. Rows of a known size and up to {_LONGEST} are "
            "transformed by a product",
            "pad to a power of two",
        )
    longer = 1 << length.bit_length()
    rows = scope.temporary(op, x.type, (*x.shape[:-1], longer))
    weights = scope.constant(_spectrum_matrix(x.shape[-1], length, longer), "spectrum")
    options = schema.FullyConnectedOptionsT(keepNumDims=True)
    scope.emit("FULLY_CONNECTED", [x, weights, None], rows, options)
    whole = scope.temporary(op, result.type, (*result.shape[:-1], longer // 2 + 1))
    _spectrum(scope, op, rows, longer, whole)
    start = scope.constant([0] * len(result.shape), "start", np.int32)
    size = scope.constant([*[-1] * (len(result.shape) - 1), length // 2 + 1], "size", np.int32)
    return scope.emit("SLICE", [whole, start, size], result, schema.SliceOptionsT())


_LONGEST = 4096  # the matrix of a longer row has more than 128 MB


def _spectrum(scope: Scope, op: Operation, x: Any, length: int, result: Any) -> Any:
    """The transform of rows whose length is a power of two."""
    rows = scope.temporary(op, x.type, (*x.shape[:-1], 1, x.shape[-1]))
    if sum(size < 0 for size in x.shape) > 1:
        axis = scope.constant(len(x.shape) - 1, "axis", np.int32)
        scope.emit("EXPAND_DIMS", [x, axis], rows, schema.ExpandDimsOptionsT())
    else:
        reshaped(scope, x, rows)
    sizes = scope.constant([1, length], "fft_length", np.int32)
    spectrum = scope.temporary(op, result.type, (*result.shape[:-1], 1, result.shape[-1]))
    scope.emit("RFFT2D", [rows, sizes], spectrum, schema.Rfft2dOptionsT())
    # RESHAPE has no complex kernel, SQUEEZE copies any type.
    return scope.emit(
        "SQUEEZE", [spectrum], result, schema.SqueezeOptionsT(squeezeDims=np.array([len(result.shape) - 1], np.int32))
    )


def _spectrum_matrix(size: int, length: int, longer: int) -> np.ndarray:
    """The map from rows of `size` numbers to rows of `longer` numbers whose spectrum starts with that of `length` of the former."""
    spectra = np.fft.rfft(np.eye(size), length)
    padded = np.pad(spectra, ((0, 0), (0, longer // 2 + 1 - spectra.shape[1])))
    return np.fft.irfft(padded, longer).T.astype(np.float32)
