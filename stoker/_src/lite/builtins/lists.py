"""Lists of tensors and TensorArrays: one tensor with the elements along its first dimension.

A reserved list may have elements of unknown shape until the first one is set. It stays pending until then. A loop that sets its
elements determines their shape (`control_flow.py`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from stoker._src.graph.tensor import Operation
from stoker._src.graph.tensor import Tensor as GraphTensor
from stoker._src.lite.builtins.arrays import reshaped
from stoker._src.lite.lowering import PendingList, Scope, Unsupported, lite_shape, lowers
from stoker._src.lite.model import TYPE_CODES, Tensor, numpy_dtype, type_of


def reserved(
    scope: Scope, op: Operation, length: np.ndarray | Tensor, type_name: str, element: tuple[int, ...] | None
) -> PendingList | Tensor:
    """A list of `length` elements."""
    pending = PendingList(op.name, type_name, length, element)
    return zeros(scope, op, pending) if element is not None and -1 not in element else pending


def zeros(scope: Scope, op: Operation, pending: PendingList, sizes: Tensor | None = None) -> Tensor:
    """The elements of a reserved list, all zero. `sizes` is the shape of an element if it is not static."""
    count = -1 if isinstance(pending.length, Tensor) else int(pending.length)
    shape = None if pending.element is None else (count, *pending.element)
    zero = scope.constant(0, "zero", numpy_dtype(pending.type))
    if shape is not None and -1 not in shape and np.prod(shape, dtype=np.int64) <= 1024:
        return scope.constant(np.zeros(shape, numpy_dtype(pending.type)), pending.name)
    if sizes is None:
        assert pending.element is not None
        sizes = scope.constant(np.array(pending.element), "element_shape", np.int32)
    first = pending.length if isinstance(pending.length, Tensor) else scope.constant(pending.length, "length", np.int32)
    first = reshaped(scope, scope.cast(op, first, "INT32"), scope.temporary(op, "INT32", (1,)))
    if sizes.is_constant and first.is_constant:
        whole = scope.constant(shape, "shape", np.int32)
    else:
        whole = scope.temporary(op, "INT32", (-1 if shape is None else len(shape),))
        scope.emit("CONCATENATION", [first, sizes], whole, schema.ConcatenationOptionsT(axis=0))
    return scope.emit(
        "FILL", [whole, zero], Tensor(scope.unique(pending.name), pending.type, shape), schema.FillOptionsT()
    )


def _element_shape(scope: Scope, tensor: GraphTensor) -> tuple[int, ...] | None:
    known = scope.known(tensor)
    if known is None or known.ndim == 0:
        return None
    return tuple(int(size) for size in known)


@lowers("TensorListReserve")
def reserve(scope: Scope, op: Operation) -> Any:
    length = scope.values[op.inputs[1]]
    assert isinstance(length, (np.ndarray, Tensor))
    return reserved(scope, op, length, type_of(op.attr("element_dtype")), _element_shape(scope, op.inputs[0]))


@lowers("EmptyTensorList")
def empty(scope: Scope, op: Operation) -> Any:
    element = _element_shape(scope, op.inputs[0])
    return PendingList(op.name, type_of(op.attr("element_dtype")), np.array(0, np.int32), element)


@lowers("TensorListFromTensor")
def from_tensor(scope: Scope, op: Operation) -> Any:
    return scope.tensor(op.inputs[0])


def _grown(scope: Scope, op: Operation, values: Tensor, index: GraphTensor) -> Tensor:
    """The list with as many elements, which are zero, behind it as it needs to have one at `index`."""
    if not values.shape:
        raise Unsupported("the growing list has no value in TFLite", "give the TensorArray its size")
    (count, *element), known = values.shape, scope.known(index)
    if known is not None and 0 <= int(known) < count:
        return values
    if -1 in element:
        raise Unsupported("the shape of the growing list's elements is not known", "give the TensorArray its size")

    def number(code: str, inputs: list[Tensor], options: Any) -> Tensor:
        return scope.emit(code, inputs, scope.temporary(op, "INT32", (1,)), options)

    one, zero = (scope.constant([each], "number", np.int32) for each in (1, 0))
    position = reshaped(scope, scope.int32(op, index), scope.temporary(op, "INT32", (1,)))
    length = scope.constant([count], "length", np.int32)
    if count < 0:
        whole = scope.temporary(op, "INT32", (len(values.shape),))
        scope.emit("SHAPE", [values], whole, schema.ShapeOptionsT(outType=TYPE_CODES["INT32"]))
        length = number("SLICE", [whole, zero, one], schema.SliceOptionsT())
    missing = number("SUB", [number("ADD", [position, one], schema.AddOptionsT()), length], schema.SubOptionsT())
    sizes = number("MAXIMUM", [missing, zero], schema.MaximumMinimumOptionsT())
    if element:
        rest = scope.constant(element, "element_shape", np.int32)
        joined = scope.temporary(op, "INT32", (len(values.shape),))
        sizes = scope.emit("CONCATENATION", [sizes, rest], joined, schema.ConcatenationOptionsT(axis=0))
    nothing = scope.constant(0, "zero", numpy_dtype(values.type))
    grown = (-1, *element)
    behind = scope.emit("FILL", [sizes, nothing], scope.temporary(op, values.type, grown), schema.FillOptionsT())
    options = schema.ConcatenationOptionsT(axis=0)
    return scope.emit("CONCATENATION", [values, behind], scope.temporary(op, values.type, grown), options)


def set_item(
    scope: Scope, op: Operation, values: Any, index: GraphTensor, item: GraphTensor, grows: bool = False
) -> Any:
    """The list with one element replaced. One that grows may get an element behind its last one."""
    element = scope.tensor(item)
    if isinstance(values, PendingList):
        if element.shape is None or -1 in element.shape:
            raise Unsupported("the shape of the list's elements is not known", "give the TensorArray an element_shape")
        values.element = element.shape
        values = zeros(scope, op, values)
    if not isinstance(values, Tensor):
        raise Unsupported("the list has no value in TFLite")
    if element.shape is None:
        raise Unsupported("the rank of the list's elements is not known", "give the TensorArray an element_shape")
    if grows:
        values = _grown(scope, op, values, index)
    row = (
        reshaped(scope, element, scope.temporary(op, element.type, (1, *element.shape)))
        if sum(s < 0 for s in element.shape) <= 1
        else None
    )
    if row is None:
        axis = scope.constant(0, "axis", np.int32)
        row = scope.emit(
            "EXPAND_DIMS",
            [element, axis],
            scope.temporary(op, element.type, (1, *element.shape)),
            schema.ExpandDimsOptionsT(),
        )
    known = scope.known(index)
    rank = len(element.shape) + 1
    if known is not None:
        start = scope.constant([int(known), *[0] * (rank - 1)], "start", np.int32)
    else:
        position = reshaped(scope, scope.int32(op, index), scope.temporary(op, "INT32", (1,)))
        start = position
        if rank > 1:
            rest = scope.constant([0] * (rank - 1), "start", np.int32)
            start = scope.temporary(op, "INT32", (rank,))
            scope.emit("CONCATENATION", [position, rest], start, schema.ConcatenationOptionsT(axis=0))
    result = Tensor(scope.unique(op.name), values.type, values.shape)
    return scope.emit("DYNAMIC_UPDATE_SLICE", [values, row, start], result, schema.DynamicUpdateSliceOptionsT())


@lowers("TensorListSetItem")
def list_set_item(scope: Scope, op: Operation) -> Any:
    values = scope.values[op.inputs[0]]
    if isinstance(values, np.ndarray):
        values = scope.tensor(op.inputs[0])
    grows, known = bool(op.attrs.get("resize_if_index_out_of_bounds")), scope.known(op.inputs[1])
    if grows and known is not None and int(known) == _known_length(values):
        return _appended(scope, op, values, op.inputs[2])
    return set_item(scope, op, values, op.inputs[1], op.inputs[2], grows)


def _known_length(values: Any) -> int:
    """The number of elements of a list, or -1 if it is not known."""
    if isinstance(values, PendingList):
        return -1 if isinstance(values.length, Tensor) else int(values.length)
    return values.shape[0] if isinstance(values, Tensor) and values.shape else -1


@lowers("TensorListPushBack")
def push_back(scope: Scope, op: Operation) -> Any:
    return _appended(scope, op, scope.values[op.inputs[0]], op.inputs[1])


def _appended(scope: Scope, op: Operation, values: Any, item: GraphTensor) -> Any:
    """The list with one more element."""
    element = scope.tensor(item)
    if element.shape is None:
        raise Unsupported("the rank of the list's elements is not known", "give the TensorArray an element_shape")
    axis = scope.constant(0, "axis", np.int32)
    row = scope.emit(
        "EXPAND_DIMS",
        [element, axis],
        scope.temporary(op, element.type, (1, *element.shape)),
        schema.ExpandDimsOptionsT(),
    )
    if isinstance(values, PendingList):
        return row
    assert isinstance(values, Tensor)
    count = -1 if values.shape is None or values.shape[0] < 0 else values.shape[0] + 1
    result = Tensor(scope.unique(op.name), element.type, (count, *element.shape))
    return scope.emit("CONCATENATION", [values, row], result, schema.ConcatenationOptionsT(axis=0))


def gathered(scope: Scope, op: Operation, values: Any, indices: GraphTensor) -> Any:
    """The elements at some positions; the element at a position."""
    if not isinstance(values, Tensor):
        raise Unsupported("the list is read before it is written", "write its elements first")
    where, result = scope.int32(op, indices), scope.result(op)
    if values.shape is not None and where.shape is not None:
        result.shape = (*where.shape, *values.shape[1:])
    return scope.emit("GATHER", [values, where], result, schema.GatherOptionsT(axis=0))


def _list(scope: Scope, tensor: GraphTensor) -> Any:
    value = scope.values[tensor]
    return scope.tensor(tensor) if isinstance(value, np.ndarray) else value


@lowers("TensorListGetItem", "TensorListGather")
def get_item(scope: Scope, op: Operation) -> Any:
    return gathered(scope, op, _list(scope, op.inputs[0]), op.inputs[1])


@lowers("TensorListStack")
def stack(scope: Scope, op: Operation) -> Any:
    return stacked(scope, op, _list(scope, op.inputs[0]))


def stacked(scope: Scope, op: Operation, values: Any) -> Any:
    if isinstance(values, PendingList):
        shape = lite_shape(scope.shape_of(op.outputs[0]))
        if shape is None or -1 in shape[1:]:
            raise Unsupported("the shape of the list's elements is not known", "give the TensorArray an element_shape")
        values.element = shape[1:]
        return zeros(scope, op, values)
    return values


@lowers("TensorListLength")
def length(scope: Scope, op: Operation) -> Any:
    return _length(scope, op, _list(scope, op.inputs[0]))


def _length(scope: Scope, op: Operation, values: Any) -> Any:
    if isinstance(values, PendingList):
        return values.length
    if values.shape is not None and values.shape[0] >= 0:
        return np.array(values.shape[0], np.int32)
    rank = -1 if values.shape is None else len(values.shape)
    sizes = scope.emit(
        "SHAPE", [values], scope.temporary(op, "INT32", (rank,)), schema.ShapeOptionsT(outType=TYPE_CODES["INT32"])
    )
    return scope.emit("GATHER", [sizes, scope.constant(0, "axis", np.int32)], scope.result(op), schema.GatherOptionsT())


@lowers("TensorListConcat", "TensorListConcatV2")
def list_concat(scope: Scope, op: Operation) -> Any:
    return [_joined(scope, op, _list(scope, op.inputs[0])), None]


def _joined(scope: Scope, op: Operation, values: Any) -> Any:
    """The elements, concatenated along their first dimension. All have the same size."""
    result = scope.result(op)
    if not isinstance(values, Tensor) or values.shape is None or sum(size < 0 for size in values.shape[1:]) > 0:
        raise Unsupported("the shape of the list's elements is not known", "give the TensorArray an element_shape")
    result.shape = (-1 if values.shape[0] < 0 else values.shape[0] * values.shape[1], *values.shape[2:])
    return reshaped(scope, values, result)


# ---- TensorArray of 1.x: a handle, and a flow that carries the elements ---------------------------------------------


@lowers("TensorArrayV3")
def tensor_array(scope: Scope, op: Operation) -> Any:
    size = scope.values[op.inputs[0]]
    assert isinstance(size, (np.ndarray, Tensor))
    element = lite_shape(op.attr("element_shape"))
    if op.attr("dynamic_size") and isinstance(size, np.ndarray) and int(size) == 0:
        raise Unsupported("it grows from nothing", "give the TensorArray its size")
    return None, reserved(scope, op, size, type_of(op.attr("dtype")), element)


@lowers("TensorArrayWriteV3")
def tensor_array_write(scope: Scope, op: Operation) -> Any:
    return set_item(scope, op, scope.values[op.inputs[3]], op.inputs[1], op.inputs[2])


@lowers("TensorArrayReadV3", "TensorArrayGatherV3")
def tensor_array_read(scope: Scope, op: Operation) -> Any:
    values, indices = scope.values[op.inputs[2]], scope.known(op.inputs[1])
    if op.type == "TensorArrayGatherV3" and _is_whole(op, indices, values):
        return stacked(scope, op, values)
    return gathered(scope, op, values, op.inputs[1])


def _is_whole(op: Operation, indices: np.ndarray | None, values: Any) -> bool:
    """Whether all elements are requested in order: `stack` passes the range of the array's size."""
    if indices is not None:
        count = values.shape[0] if isinstance(values, Tensor) and values.shape else -1
        return (count < 0 or indices.size == count) and bool((indices == np.arange(indices.size)).all())
    source = op.inputs[1].op
    return source.type == "Range" and source.inputs[1].op.type == "TensorArraySizeV3"


@lowers("TensorArrayScatterV3")
def tensor_array_scatter(scope: Scope, op: Operation) -> Any:
    indices = scope.known(op.inputs[1])
    source = op.inputs[1].op
    if indices is None and source.type != "Range":
        raise Unsupported("a TensorArray is unstacked in order only", "use TensorArray.unstack")
    if indices is not None and (indices != np.arange(indices.size)).any():
        raise Unsupported("a TensorArray is unstacked in order only", "use TensorArray.unstack")
    return scope.tensor(op.inputs[2])


@lowers("TensorArraySizeV3")
def tensor_array_size(scope: Scope, op: Operation) -> Any:
    return _length(scope, op, scope.values[op.inputs[1]])


@lowers("TensorArrayConcatV3")
def tensor_array_concat(scope: Scope, op: Operation) -> Any:
    return [_joined(scope, op, scope.values[op.inputs[1]]), None]


@lowers("TensorArrayCloseV3")
def tensor_array_close(scope: Scope, op: Operation) -> Any:
    return None
