"""Matrix products."""

from __future__ import annotations

import math
import string
from collections.abc import Sequence
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from stoker._src.graph.tensor import Operation
from stoker._src.lite.builtins.arrays import reshaped, transposed
from stoker._src.lite.lowering import Scope, Unsupported, constant_name, lowers
from stoker._src.lite.model import Tensor


def _batch_matmul(
    scope: Scope, a: Tensor, b: Tensor, result: Tensor, adj_x: bool = False, adj_y: bool = False
) -> Tensor:
    if result.type not in ("FLOAT32", "INT32", "INT8", "INT16"):
        raise Unsupported(f"TFLite multiplies matrices of float32, not {result.type.lower()}", "cast to float32")
    return scope.emit("BATCH_MATMUL", [a, b], result, schema.BatchMatMulOptionsT(adjX=adj_x, adjY=adj_y))


@lowers("MatMul")
def matmul(scope: Scope, op: Operation) -> Any:
    a, b = op.inputs
    transpose_a, transpose_b = op.attr("transpose_a"), op.attr("transpose_b")
    weights, result = scope.known(b), scope.result(op)
    if weights is None or result.type != "FLOAT32":
        return _batch_matmul(scope, scope.tensor(a), scope.tensor(b), result, transpose_a, transpose_b)
    left = scope.tensor(a)
    if transpose_a:
        shape = None if left.shape is None else left.shape[::-1]
        left = transposed(scope, left, (1, 0), scope.temporary(op, left.type, shape))
    rows = weights if transpose_b else weights.T
    return scope.emit(
        "FULLY_CONNECTED", [left, scope.constant(rows, constant_name(b)), None], result, schema.FullyConnectedOptionsT()
    )


@lowers("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
def batch_matmul(scope: Scope, op: Operation) -> Any:
    a, b = op.inputs
    adj_x, adj_y = op.attr("adj_x"), op.attr("adj_y")
    weights, result = scope.known(b), scope.result(op)
    if (
        weights is not None
        and weights.ndim == 2
        and not adj_x
        and result.type == "FLOAT32"
        and scope.shape_of(a).rank is not None
    ):
        rows = weights if adj_y else weights.T
        options = schema.FullyConnectedOptionsT(keepNumDims=True)
        return scope.emit(
            "FULLY_CONNECTED", [scope.tensor(a), scope.constant(rows, constant_name(b)), None], result, options
        )
    return _batch_matmul(scope, scope.tensor(a), scope.tensor(b), result, adj_x, adj_y)


class _Sizes(dict[str, int]):
    """The sizes of labels."""

    def __init__(self) -> None:
        super().__init__()
        self.open: set[str] = set()
        """The labels whose sizes the graph leaves open, such as the batch. The interpreter may change them."""

    def inferred(self, groups: Sequence[Sequence[str]]) -> list[int]:
        """The places of the dimensions that consist of labels with an open size."""
        return [place for place, labels in enumerate(groups) if self.open.intersection(labels)]


@lowers("Einsum")
def einsum(scope: Scope, op: Operation) -> Any:
    """An einsum of one or two tensors: transposes turn it into a matrix product, and reshapes merge and split dimensions."""
    given = scope.inputs(op)
    shapes = [tensor.shape for tensor in given if tensor.shape is not None]
    if len(shapes) < len(given):
        raise Unsupported("the ranks must be known", "give the inputs static shapes")
    equation = op.attr("equation").replace(" ", "")
    terms, _, out = _with_labels(equation, shapes).partition("->")
    labels = terms.split(",")
    if any(len(set(term)) != len(term) for term in (*labels, out)) or len(labels) > 2:
        raise Unsupported(f"the equation {equation} repeats a label", "write it with tf.matmul and tf.transpose")
    sizes = _Sizes()
    for tensor, term in zip(op.inputs, labels, strict=True):
        static = tensor.static_shape
        if static.rank == len(term):
            sizes.open.update(label for label, size in zip(term, static, strict=True) if size is None)
    for term, shape in zip(labels, shapes, strict=True):
        for label, size in zip(term, shape, strict=True):
            if 1 in (size, sizes.get(label, size)) and size != sizes.get(label, size):
                raise Unsupported("dimensions of an ellipsis differ in size", "repeat them with tf.broadcast_to")
            sizes[label] = max(size, sizes.get(label, -1))
    summed = [
        _summed(scope, op, tensor, term, set("".join(labels[:i] + labels[i + 1 :])) | set(out))
        for i, (tensor, term) in enumerate(zip(given, labels, strict=True))
    ]
    if len(summed) == 1:
        tensor, term = summed[0]
        return _ordered(scope, op, tensor, term, out, scope.result(op), sizes)
    (a, left), (b, right) = summed
    batch = [label for label in left if label in right and label in out]
    inner = [label for label in left if label in right and label not in out]
    rows = [label for label in left if label not in right]
    columns = [label for label in right if label not in left]
    weights = scope.known(op.inputs[1])
    if weights is not None and right == labels[1] and not batch and rows and inner and a.type == "FLOAT32":
        matrix = weights.transpose([right.index(each) for each in (*columns, *inner)])
        matrix = matrix.reshape(-1, math.prod(sizes[each] for each in inner))
        return _with_weights(scope, op, a, left, (rows, inner, columns), matrix, out, sizes)
    a = _matrix(scope, op, a, left, (batch, rows, inner), sizes)
    b = _matrix(scope, op, b, right, (batch, inner, columns), sizes)
    product_labels = "".join((*batch, *rows, *columns))
    merged = (*[sizes[each] for each in batch], _merged(rows, sizes), _merged(columns, sizes))
    result = scope.result(op)
    direct = product_labels == out and len(rows) == len(columns) == 1
    product = _batch_matmul(scope, a, b, result if direct else scope.temporary(op, result.type, merged))
    if direct:
        return product
    is_merged = len(rows) != 1 or len(columns) != 1
    return _split(scope, op, product, is_merged, product_labels, out, result, sizes)


def _with_labels(equation: str, shapes: list[tuple[int, ...]]) -> str:
    """The equation with labels in place of an ellipsis, the same for the last dimensions that it stands for in each term."""
    if "..." not in equation:
        return equation
    free = [label for label in string.ascii_letters if label not in equation]
    terms, _, out = equation.partition("->")
    counts = [len(shape) - len(term.replace("...", "")) for term, shape in zip(terms.split(","), shapes, strict=True)]
    named = "".join(free[: max(counts)])
    written = [
        term.replace("...", named[len(named) - count :]) for term, count in zip(terms.split(","), counts, strict=True)
    ]
    return f"{','.join(written)}->{out.replace('...', named)}"


def _with_weights(
    scope: Scope,
    op: Operation,
    tensor: Tensor,
    term: str,
    groups: tuple[list[str], list[str], list[str]],
    weights: np.ndarray,
    out: str,
    sizes: _Sizes,
) -> Tensor:
    """The product with a constant, whose rows are the columns of the result: it keeps the dimensions before the last one."""
    rows, inner, columns = groups
    tensor = _arranged(scope, op, tensor, term, [*rows, *inner], sizes)
    kept = tuple(sizes[each] for each in rows)
    if len(inner) != 1:
        tensor = _merge(scope, op, tensor, (*kept, weights.shape[1]), sizes.inferred([*rows, inner]))
    labels, result = "".join((*rows, *columns)), scope.result(op)
    direct = labels == out and len(columns) == 1
    product = scope.emit(
        "FULLY_CONNECTED",
        [tensor, scope.constant(weights, op.inputs[1].op.name), None],
        result if direct else scope.temporary(op, result.type, (*kept, weights.shape[0])),
        schema.FullyConnectedOptionsT(keepNumDims=True),
    )
    return product if direct else _split(scope, op, product, len(columns) != 1, labels, out, result, sizes)


def _split(
    scope: Scope,
    op: Operation,
    product: Tensor,
    is_merged: bool,
    labels: str,
    out: str,
    result: Tensor,
    sizes: _Sizes,
) -> Tensor:
    """Divides merged dimensions again, and puts all into the order of the result."""
    if is_merged:
        full = tuple(sizes[each] for each in labels)
        if sum(size < 0 for size in full) > 1:
            raise Unsupported("more than one size of its result is unknown", "give the inputs static shapes")
        last = labels == out
        whole = result if last else scope.temporary(op, result.type, full)
        product = reshaped(scope, product, whole, inferred=sizes.inferred(labels))
        if last:
            return product
    return _ordered(scope, op, product, labels, out, result, sizes)


def _merged(labels: list[str], sizes: _Sizes) -> int:
    values = [sizes[each] for each in labels]
    return -1 if any(size < 0 for size in values) else math.prod(values)


def _summed(scope: Scope, op: Operation, tensor: Tensor, term: str, wanted: set[str]) -> tuple[Tensor, str]:
    """Sums over the labels that occur nowhere else."""
    axes = [position for position, label in enumerate(term) if label not in wanted]
    if not axes:
        return tensor, term
    assert tensor.shape is not None
    shape = tuple(size for position, size in enumerate(tensor.shape) if position not in axes)
    inputs = [tensor, scope.constant(axes, "axis", np.int32)]
    total = scope.emit("SUM", inputs, scope.temporary(op, tensor.type, shape), schema.ReducerOptionsT())
    return total, "".join(label for label in term if label in wanted)


def _matrix(
    scope: Scope, op: Operation, tensor: Tensor, term: str, groups: tuple[list[str], ...], sizes: _Sizes
) -> Tensor:
    """The tensor with its dimensions in three groups. The dimensions of each of the last two are merged into one."""
    tensor = _arranged(scope, op, tensor, term, [label for group in groups for label in group], sizes)
    if len(groups[1]) == len(groups[2]) == 1:
        return tensor
    shape = (*[sizes[each] for each in groups[0]], _merged(groups[1], sizes), _merged(groups[2], sizes))
    return _merge(scope, op, tensor, shape, sizes.inferred([*groups[0], groups[1], groups[2]]))


def _arranged(scope: Scope, op: Operation, tensor: Tensor, term: str, order: list[str], sizes: _Sizes) -> Tensor:
    if "".join(order) == term:
        return tensor
    shape = tuple(sizes[each] for each in order)
    return transposed(scope, tensor, [term.index(each) for each in order], scope.temporary(op, tensor.type, shape))


def _merge(scope: Scope, op: Operation, tensor: Tensor, shape: tuple[int, ...], inferred: list[int]) -> Tensor:
    if sum(size < 0 for size in shape) > 1:
        raise Unsupported("more than one size of an input is unknown", "give the inputs static shapes")
    return reshaped(scope, tensor, scope.temporary(op, tensor.type, shape), inferred=inferred)


def _ordered(scope: Scope, op: Operation, tensor: Tensor, term: str, out: str, result: Tensor, sizes: _Sizes) -> Tensor:
    if term == out:
        return tensor
    return transposed(scope, tensor, [term.index(each) for each in out], result)
