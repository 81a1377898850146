"""Operators that broadcast more dimensions than their kernels do, as in group normalization.

TensorFlow's runtime ends the process where LiteRT does not, so dimensions that are broadcast alike become one before.
"""

from __future__ import annotations

import math

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from stoker._src.lite.model import Operator, Subgraph, Tensor
from stoker._src.lite.passes.editing import sizes

Shape = tuple[int, ...]
# The number of dimensions that these broadcast. All take more of the same shape.
_MOST = {
    **dict.fromkeys(("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL"), 4),
    **dict.fromkeys(("LOGICAL_AND", "LOGICAL_OR", "POW", "FLOOR_DIV", "FLOOR_MOD"), 4),
    "ATAN2": 0,
}


# The same for the kernels of older runtimes, some of which take no more of the same shape either.
MOST_OF_OLDER = {
    **_MOST,
    **dict.fromkeys(("ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE"), 4),
}


def narrow(subgraph: Subgraph, limits: dict[str, int] = _MOST) -> None:
    """Gives operators arguments of as few dimensions as their kernels broadcast, and vectors to L2_NORMALIZATION, which takes four."""
    made: list[Operator] = []
    for operator in subgraph.operators:
        (result, *_) = operator.outputs or [None]
        arguments = [each for each in operator.inputs if each is not None]
        shapes = [each.shape for each in arguments]
        if result is None or result.shape is None or any(shape is None for shape in shapes):
            forms = None
        elif (
            operator.code in limits
            and len(result.shape) > limits[operator.code]
            and not (limits is _MOST and shapes[0] == shapes[1])
        ):
            forms = _merged([shape or () for shape in shapes], result.shape, limits[operator.code])
        elif operator.code == "L2_NORMALIZATION" and len(result.shape) > 4:
            rows = math.prod(result.shape[:-1]) if -1 not in result.shape[:-1] else -1
            forms = [(rows, result.shape[-1])] * 2 if result.shape[-1] > 0 and result.shape.count(-1) < 2 else None
        else:
            forms = None
        if forms is None or result is None:
            made.append(operator)
            continue
        operator.inputs = [_in_shape(each, form, made) for each, form in zip(arguments, forms, strict=False)]
        made.append(operator)
        if forms[-1] != result.shape:
            operator.outputs = [Tensor(f"{result.name}/", result.type, forms[-1])]
            made.append(_reshape(operator.outputs[0], result))
    subgraph.operators = made


def _merged(shapes: list[Shape], result: Shape, most: int) -> list[Shape] | None:
    """Shapes for the arguments and the result with at most so many dimensions. None if sizes are not known that decide it."""
    rank = len(result)
    full = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    groups: list[list[int]] = []
    last: tuple[bool, ...] | None = None
    for axis in range(rank):
        column = [shape[axis] for shape in full]
        kind = tuple(size == 1 for size in column)
        # A size that is not known may be one. It decides nothing if the others are.
        is_open = -1 in column and sum(not each for each in kind) > 1
        if groups and (all(kind) or (not is_open and last in (None, kind))):
            groups[-1].append(axis)
        else:
            groups.append([axis])
            last = None
        if is_open or not all(kind):
            last = () if is_open else kind
    if len(groups) > most:
        return [result] * (len(shapes) + 1) if -1 not in result else None
    forms = [tuple(_product([shape[axis] for axis in group]) for group in groups) for shape in (*full, result)]
    return forms if all(form.count(-1) < 2 for form in forms) else None


def _product(extents: list[int]) -> int:
    return -1 if -1 in extents else math.prod(extents)


def _in_shape(tensor: Tensor, shape: Shape, made: list[Operator]) -> Tensor:
    """The tensor reshaped, or broadcast where it has other elements."""
    if tensor.shape == shape:
        return tensor
    before = () if tensor.shape is None else tensor.shape
    same = _product(list(before)) == _product(list(shape))
    if tensor.data is not None:
        data = tensor.data.reshape(shape) if same else np.broadcast_to(tensor.data, shape).copy()
        return Tensor(tensor.name, tensor.type, shape, data)
    changed = Tensor(f"{tensor.name}/", tensor.type, shape)
    if same:
        made.append(_reshape(tensor, changed))
    else:
        wanted = sizes("shape", shape)
        made.append(Operator("BROADCAST_TO", [tensor, wanted], [changed], schema.BroadcastToOptionsT()))
    return changed


def _reshape(tensor: Tensor, result: Tensor) -> Operator:
    wanted = sizes("shape", result.shape)
    return Operator("RESHAPE", [tensor, wanted], [result], schema.ReshapeOptionsT(newShape=wanted.data))
