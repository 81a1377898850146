"""Complex numbers and Fourier transforms."""

from __future__ import annotations

from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from stoker._src.graph.tensor import Operation
from stoker._src.graph.tensor import Tensor as GraphTensor
from stoker._src.lite.builtins.arrays import reshaped
from stoker._src.lite.lowering import Scope, Unsupported, lowers

PARTS = {"Real": "REAL", "Imag": "IMAG", "ComplexAbs": "COMPLEX_ABS"}


@lowers(*PARTS)
def part(scope: Scope, op: Operation) -> Any:
    (z,) = op.inputs
    if op.type == "Real" and z.op.type == "Mul":
        for value, other in (z.op.inputs, z.op.inputs[::-1]):
            if other.op.type == "Conj" and other.op.inputs[0] is value:
                return _power(scope, op, value)
    found = _product(scope, z) if op.type != "ComplexAbs" and z.op.type != "RFFT" else None
    if found is not None:
        rows, matrix = found
        values = np.real(matrix.T) if op.type == "Real" else np.imag(matrix.T)
        weights = scope.constant(values, f"{op.name}/map", np.float32)
        options = schema.FullyConnectedOptionsT(keepNumDims=True)
        return scope.emit("FULLY_CONNECTED", [scope.tensor(rows), weights, None], scope.result(op), options)
    return scope.emit(PARTS[op.type], scope.inputs(op), scope.result(op))


def _power(scope: Scope, op: Operation, value: GraphTensor) -> Any:
    """The real part of z * conj(z), as the power of a spectrum is written."""
    result = scope.result(op)
    size = scope.emit("COMPLEX_ABS", [scope.tensor(value)], scope.temporary(op, result.type, result.shape))
    return scope.emit("MUL", [size, size], result, schema.MulOptionsT())


_LONGEST_PRODUCT = 256  # elements of a row; for longer ones a transform and what follows it are faster


def _product(scope: Scope, tensor: GraphTensor) -> tuple[GraphTensor, np.ndarray] | None:
    """Rows and a matrix whose product a tensor is, if it is made of elements of their Fourier transform times constants, as cosine transforms are.

    LiteRT has few kernels for complex numbers.
    """
    op = tensor.op
    if op.type == "RFFT":
        rows, length = op.inputs[0], scope.known(op.inputs[1])
        shorter = _padded(scope, rows.op)
        rows = rows if shorter is None else shorter
        size = None if scope.shape_of(rows).rank is None else scope.shape_of(rows)[-1]
        if length is None or size is None or not 0 < size <= length[0] <= 2 * _LONGEST_PRODUCT:
            return None
        return rows, np.fft.rfft(np.eye(size), int(length[0]))
    if op.type == "StridedSlice":
        found, chosen = _product(scope, op.inputs[0]), _chosen(scope, op)
        return None if found is None or chosen is None else (found[0], found[1][:, chosen])
    if op.type == "Mul":
        for value, other in (op.inputs, op.inputs[::-1]):
            factors = scope.known(other)
            found = None if factors is None else _product(scope, value)
            if factors is not None and found is not None and factors.size in (1, factors.shape[-1], found[1].shape[1]):
                same_for_rows = factors.ndim == 0 or factors.size == factors.shape[-1]
                return (found[0], found[1] * factors.reshape(-1)) if same_for_rows else None
    return None


def _padded(scope: Scope, op: Operation) -> GraphTensor | None:
    """The rows that a node appends zeros to."""
    paddings = scope.known(op.inputs[1]) if op.type == "Pad" else None
    return None if paddings is None or paddings[:-1].any() or paddings[-1, 0] else op.inputs[0]


def _chosen(scope: Scope, op: Operation) -> slice | None:
    """The elements of rows that a slice takes, if it takes all rows."""
    begin, end, strides = (scope.known(tensor) for tensor in op.inputs[1:])
    rank = scope.shape_of(op.inputs[0]).rank
    if begin is None or end is None or strides is None or op.attr("new_axis_mask") or op.attr("shrink_axis_mask"):
        return None
    whole = op.attr("begin_mask") & op.attr("end_mask") & ((strides == 1) << np.arange(strides.size)).sum()
    last = begin.size - 1
    if (whole | op.attr("ellipsis_mask")) & ((1 << last) - 1) != (1 << last) - 1 or op.attr("ellipsis_mask") >> last:
        return None
    if not op.attr("ellipsis_mask") and begin.size != rank:
        return None
    first = None if op.attr("begin_mask") >> last & 1 else int(begin[last])
    return slice(first, None if op.attr("end_mask") >> last & 1 else int(end[last]), int(strides[last]))


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
