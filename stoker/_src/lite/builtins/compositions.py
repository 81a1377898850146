"""Ops that several builtins compute together, where sizes and positions are constant."""

from __future__ import annotations

from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from stoker._src.graph.tensor import Operation
from stoker._src.lite.builtins.elementwise import Expression, composed
from stoker._src.lite.lowering import Scope, Unsupported, lowers
from stoker._src.lite.model import TYPE_CODES, Tensor

# ---- functions of each element ------------------------------------------------------------------------------------


@composed("Asinh")
def asinh(e: Expression, x: Tensor) -> Tensor:
    size = e.of("ABS", x)
    root = e.of("SQRT", e.of("ADD", e.of("SQUARE", x), e.number(1, x)))
    return e.last("MUL", e.of("SIGN", x), e.of("LOG", e.of("ADD", size, root)))


@composed("Acosh")
def acosh(e: Expression, x: Tensor) -> Tensor:
    root = e.of("SQRT", e.of("SUB", e.of("SQUARE", x), e.number(1, x)))
    return e.last("LOG", e.of("ADD", x, root))


@composed("Atanh")
def atanh(e: Expression, x: Tensor) -> Tensor:
    one = e.number(1, x)
    quotient = e.of("DIV", e.of("ADD", one, x), e.of("SUB", one, x))
    return e.last("MUL", e.of("LOG", quotient), e.number(0.5, x))


@composed("Xlog1py")
def xlog1py(e: Expression, x: Tensor, y: Tensor) -> Tensor:
    zero = e.number(0, x)
    logarithm = e.of("LOG", e.of("ADD", y, e.number(1, y), shape=y.shape), shape=y.shape)
    is_zero = e.of("EQUAL", x, zero, type_name="BOOL", shape=x.shape)
    return e.last("SELECT_V2", is_zero, zero, e.of("MUL", x, logarithm))


# ---- matrices -----------------------------------------------------------------------------------------------------


def _matrix(scope: Scope, op: Operation) -> tuple[Tensor, int, int]:
    """The argument of an op on matrices, and their numbers of rows and columns."""
    x = scope.tensor(op.inputs[0])
    if x.shape is None or len(x.shape) < 2 or min(x.shape[-2:]) < 0:
        raise Unsupported("the matrix's size must be known", "give the input a static shape")
    return x, x.shape[-2], x.shape[-1]


@lowers("MatrixBandPart", "BatchMatrixBandPart")
def band_part(scope: Scope, op: Operation) -> Any:
    x = scope.tensor(op.inputs[0])
    lower, upper = (int(scope.required(tensor, "the width of the band")) for tensor in op.inputs[1:])
    if lower < 0 and upper < 0:
        return x
    if x.shape is None or min(x.shape[-2:]) < 0:
        kept = _band_of_any_size(scope, op, x, lower, upper)
    else:
        below = np.arange(x.shape[-2])[:, None] - np.arange(x.shape[-1])[None, :]
        inside = ((lower < 0) | (below <= lower)) & ((upper < 0) | (-below <= upper))
        kept = scope.constant(inside, f"{op.name}/band")
    inputs = [kept, x, scope.constant(0, dtype=op.outputs[0].dtype.as_numpy_dtype)]
    return scope.emit("SELECT_V2", inputs, scope.result(op), schema.SelectV2OptionsT())


def _band_of_any_size(scope: Scope, op: Operation, x: Tensor, lower: int, upper: int) -> Tensor:
    """Where the matrices of `x`, whose size is unknown, keep their elements."""
    rank = scope.shape_of(op.inputs[0]).rank
    if rank is None:
        raise Unsupported("the rank of its input must be known", "give the input a static shape")

    def number(value: int) -> Tensor:
        return scope.constant(value, dtype=np.int32)

    def emit(code: str, inputs: list[Tensor], shape: tuple[int, ...], options: Any, type_name: str = "INT32") -> Tensor:
        return scope.emit(code, inputs, scope.temporary(op, type_name, shape), options)

    sizes = emit("SHAPE", [x], (rank,), schema.ShapeOptionsT(outType=TYPE_CODES["INT32"]))
    places = []
    for axis in (1, 2):
        size = emit("GATHER", [sizes, number(rank - 3 + axis)], (), schema.GatherOptionsT())
        along = emit("RANGE", [number(0), size, number(1)], (-1,), schema.RangeOptionsT())
        places.append(along)
    rows = emit("EXPAND_DIMS", [places[0], number(1)], (-1, 1), schema.ExpandDimsOptionsT())
    below = emit("SUB", [rows, places[1]], (-1, -1), schema.SubOptionsT())
    tests = []
    if lower >= 0:
        tests.append(emit("LESS_EQUAL", [below, number(lower)], (-1, -1), schema.LessEqualOptionsT(), "BOOL"))
    if upper >= 0:
        tests.append(emit("GREATER_EQUAL", [below, number(-upper)], (-1, -1), schema.GreaterEqualOptionsT(), "BOOL"))
    return tests[0] if len(tests) == 1 else emit("LOGICAL_AND", tests, (-1, -1), schema.LogicalAndOptionsT(), "BOOL")


@lowers("MatrixDiagPart", "MatrixDiagPartV2", "MatrixDiagPartV3")
def diag_part(scope: Scope, op: Operation) -> Any:
    x, rows, columns = _matrix(scope, op)
    if op.type != "MatrixDiagPart" and np.any(scope.required(op.inputs[1], "the diagonal") != 0):
        raise Unsupported("only the main diagonal is taken out of matrices", "tf.gather_nd with constant indices")
    assert x.shape is not None
    return _picked(scope, op, x, (*x.shape[:-2], rows * columns), np.arange(min(rows, columns)) * (columns + 1))


def _picked(scope: Scope, op: Operation, x: Tensor, shape: tuple[int, ...], places: np.ndarray) -> Tensor:
    """Elements of the last dimension of `x` in another shape."""
    if sum(size < 0 for size in shape) > 1:
        raise Unsupported("more than one size of its input is unknown", "give the input a static shape")
    new = scope.constant(np.array(shape, np.int32), "shape")
    flat = scope.emit("RESHAPE", [x, new], scope.temporary(op, x.type, shape), schema.ReshapeOptionsT(list(shape)))
    options = schema.GatherOptionsT(axis=len(shape) - 1)
    return scope.emit("GATHER", [flat, scope.constant(places.astype(np.int32))], scope.result(op), options)


@lowers("Diag")
def diag(scope: Scope, op: Operation) -> Any:
    if scope.shape_of(op.inputs[0]).rank != 1:
        raise Unsupported("only vectors become diagonal matrices", "reshape the input to a vector")
    return scope.emit("MATRIX_DIAG", scope.inputs(op), scope.result(op), schema.MatrixDiagOptionsT())


# ---- other orders -------------------------------------------------------------------------------------------------


@lowers("Roll")
def roll(scope: Scope, op: Operation) -> Any:
    shifts = np.atleast_1d(scope.required(op.inputs[1], "the shift"))
    axes = np.atleast_1d(scope.required(op.inputs[2], "the axis"))
    value, result = scope.tensor(op.inputs[0]), scope.result(op)
    sizes = value.shape
    if sizes is None:
        raise Unsupported("the rank of its input must be known", "give the input a static shape")
    moves: dict[int, int] = {}
    for shift, axis in zip(shifts, axes, strict=True):
        moves[int(axis) % len(sizes)] = moves.get(int(axis) % len(sizes), 0) + int(shift)
    if not moves:
        return value
    for number, (axis, shift) in enumerate(moves.items(), 1):
        size = sizes[axis]
        if size < 0:
            raise Unsupported(f"the size of dimension {axis} must be known", "give the input a static shape")
        order = np.roll(np.arange(size), shift).astype(np.int32)
        made = result if number == len(moves) else scope.temporary(op, value.type, sizes)
        value = scope.emit("GATHER", [value, scope.constant(order, "order")], made, schema.GatherOptionsT(axis=axis))
    return value


@lowers("DynamicStitch", "ParallelDynamicStitch")
def dynamic_stitch(scope: Scope, op: Operation) -> Any:
    count = len(op.inputs) // 2
    indices = [scope.required(tensor, "the positions") for tensor in op.inputs[:count]]
    data = [scope.tensor(tensor) for tensor in op.inputs[count:]]
    rest = _row_shape(data[0], indices[0].ndim)
    rows = []
    for where, values in zip(indices, data, strict=True):
        shape = (where.size, *rest)
        new = scope.constant(np.array(shape, np.int32), "shape")
        made = scope.temporary(op, values.type, shape)
        rows.append(scope.emit("RESHAPE", [values, new], made, schema.ReshapeOptionsT(list(shape))))
    flat = np.concatenate([where.ravel() for where in indices])
    order = np.zeros(int(flat.max(initial=-1)) + 1, np.int32)
    if len(set(flat.tolist())) < len(order):
        raise Unsupported("it leaves rows without a value", "give every row a value")
    order[flat] = np.arange(len(flat), dtype=np.int32)
    joined = rows[0]
    if len(rows) > 1:
        options = schema.ConcatenationOptionsT(axis=0)
        joined = scope.emit("CONCATENATION", rows, scope.temporary(op, joined.type, (len(flat), *rest)), options)
    return scope.emit("GATHER", [joined, scope.constant(order, "order")], scope.result(op), schema.GatherOptionsT())


def _row_shape(values: Tensor, rank: int) -> tuple[int, ...]:
    """The sizes behind the first `rank` dimensions."""
    if values.shape is None or min(values.shape[rank:], default=0) < 0:
        raise Unsupported("the sizes of the rows must be known", "give the inputs static shapes")
    return tuple(values.shape[rank:])


@lowers("ParallelConcat")
def parallel_concat(scope: Scope, op: Operation) -> Any:
    return scope.emit("CONCATENATION", scope.inputs(op), scope.result(op), schema.ConcatenationOptionsT(axis=0))


# ---- losses and pictures ------------------------------------------------------------------------------------------


@lowers("SoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits")
def cross_entropy(scope: Scope, op: Operation) -> Any:
    """The loss of each row, and its gradient."""
    logits, labels = scope.inputs(op)
    if logits.shape is None or len(logits.shape) != 2 or logits.shape[1] < 0:
        raise Unsupported("the number of classes must be known", "give the logits a static shape")
    if op.type.startswith("Sparse"):
        given = [labels, scope.constant(logits.shape[1], dtype=np.int32)]
        given += [scope.constant(number, dtype=np.float32) for number in (1, 0)]
        made = scope.temporary(op, logits.type, logits.shape)
        labels = scope.emit("ONE_HOT", given, made, schema.OneHotOptionsT(axis=-1))

    def like(code: str, *inputs: Tensor, options: Any) -> Tensor:
        return scope.emit(code, inputs, scope.temporary(op, logits.type, logits.shape), options)

    weighted = like(
        "MUL", labels, like("LOG_SOFTMAX", logits, options=schema.LogSoftmaxOptionsT()), options=schema.MulOptionsT()
    )
    loss, slope = scope.results(op)
    total = scope.emit(
        "SUM",
        [weighted, scope.constant([1], "axis", np.int32)],
        scope.temporary(op, loss.type, loss.shape),
        schema.ReducerOptionsT(),
    )
    scope.emit("NEG", [total], loss, schema.NegOptionsT())
    scope.emit(
        "SUB", [like("SOFTMAX", logits, options=schema.SoftmaxOptionsT(beta=1.0)), labels], slope, schema.SubOptionsT()
    )
    return loss, slope


@lowers("AdjustContrastv2")
def adjust_contrast(scope: Scope, op: Operation) -> Any:
    """(x - mean) * factor + mean, with the mean over each picture and channel."""
    images, factor = scope.inputs(op)
    if images.shape is None:
        raise Unsupported("the rank of its input must be known", "give the input a static shape")
    rank = len(images.shape)
    single = (*images.shape[:-3], 1, 1, images.shape[-1])
    axes = scope.constant([rank - 3, rank - 2], "axes", np.int32)
    mean = scope.emit(
        "MEAN", [images, axes], scope.temporary(op, images.type, single), schema.ReducerOptionsT(keepDims=True)
    )
    away = scope.emit("SUB", [images, mean], scope.temporary(op, images.type, images.shape), schema.SubOptionsT())
    scaled = scope.emit("MUL", [away, factor], scope.temporary(op, images.type, images.shape), schema.MulOptionsT())
    return scope.emit("ADD", [scaled, mean], scope.result(op), schema.AddOptionsT())
