"""Slices, gathers, scatters, and positions."""

from __future__ import annotations

from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from stoker._src.graph.tensor import Operation
from stoker._src.lite.builtins.arrays import reshaped
from stoker._src.lite.lowering import Scope, Unsupported, lowers
from stoker._src.lite.model import TYPE_CODES, Tensor, numpy_dtype


@lowers("Slice")
def slice_(scope: Scope, op: Operation) -> Any:
    inputs = [scope.tensor(op.inputs[0]), scope.int32(op, op.inputs[1]), scope.int32(op, op.inputs[2])]
    return scope.emit("SLICE", inputs, scope.result(op), schema.SliceOptionsT())


@lowers("StridedSlice")
def strided_slice(scope: Scope, op: Operation) -> Any:
    masks = {name: int(op.attr(f"{name}_mask")) for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")}
    bounds = [scope.known(tensor) for tensor in op.inputs[1:]]
    x = scope.tensor(op.inputs[0])
    if bounds[0] is None and not masks["ellipsis"] and not masks["new_axis"]:
        picked = _picked(scope, op, masks)
        if picked is not None:
            axis, index = picked
            return scope.emit("GATHER", [x, scope.int32(op, index)], scope.result(op), schema.GatherOptionsT(axis=axis))
    given = [scope.int32(op, tensor) for tensor in op.inputs[1:]]
    if masks["ellipsis"] or masks["new_axis"]:
        # TFLite's kernel supports neither for every rank, so the slice is given for every dimension.
        if bounds[2] is None or x.shape is None:
            raise Unsupported(
                "an ellipsis or a new axis needs constant strides and a known rank",
                "use tf.expand_dims, and name every dimension",
            )
        return _written_out(scope, op, x, masks, given)
    if x.shape is not None and all(each.is_constant for each in given):
        # The interpreter of 1.15 reads the bounds of every dimension, even of dimensions that are not named.
        named = int(given[0].data.size)  # type: ignore[union-attr]
        added = range(named, len(x.shape))
        given = [
            scope.constant(np.append(bound.data, [value] * len(added)), dtype=np.int32)  # type: ignore[arg-type]
            for bound, value in zip(given, (0, 0, 1), strict=True)
        ]
        for position in added:
            masks["begin"] |= 1 << position
            masks["end"] |= 1 << position
    options = schema.StridedSliceOptionsT(
        beginMask=masks["begin"], endMask=masks["end"], shrinkAxisMask=masks["shrink_axis"]
    )
    return scope.emit("STRIDED_SLICE", [x, *given], scope.result(op), options)


def _picked(scope: Scope, op: Operation, masks: dict[str, int]) -> tuple[int, Any] | None:
    """The axis and the position of a slice such as x[:, i] that takes all of the other dimensions. A GATHER has a result of known size."""
    begin, strides = op.inputs[1].op, scope.known(op.inputs[3])
    shrunk = masks["shrink_axis"]
    if begin.type != "Pack" or strides is None or (strides != 1).any() or shrunk.bit_count() != 1:
        return None
    axis = shrunk.bit_length() - 1
    for position in range(strides.size):
        if position != axis and not (masks["begin"] >> position & 1 and masks["end"] >> position & 1):
            return None
    index = begin.inputs[axis]
    return None if scope.known(index) is not None else (axis, index)


def _written_out(scope: Scope, op: Operation, x: Tensor, masks: dict[str, int], bounds: list[Tensor]) -> Any:
    """A slice with an ellipsis or new axes, as a plain slice and a reshape."""
    steps = bounds[2].data
    assert x.shape is not None and steps is not None
    count = steps.size
    used = sum(not (masks["new_axis"] >> i & 1 or masks["ellipsis"] >> i & 1) for i in range(count))
    named: list[int | None] = []  # for each dimension of the plain slice, its place in the bounds; None takes all of it
    begin_mask = end_mask = shrink_mask = 0
    kept: list[int | None] = []  # a dimension of the slice, or None for a new one
    for i in range(count):
        if masks["ellipsis"] >> i & 1:
            for _ in range(len(x.shape) - used):
                axis = len(named)
                begin_mask |= 1 << axis
                end_mask |= 1 << axis
                kept.append(axis)
                named.append(None)
        elif masks["new_axis"] >> i & 1:
            kept.append(None)
        else:
            axis = len(named)
            begin_mask |= (masks["begin"] >> i & 1) << axis
            end_mask |= (masks["end"] >> i & 1) << axis
            if masks["shrink_axis"] >> i & 1:
                shrink_mask |= 1 << axis
            else:
                kept.append(axis)
            named.append(i)
    result = scope.result(op)
    options = schema.StridedSliceOptionsT(beginMask=begin_mask, endMask=end_mask, shrinkAxisMask=shrink_mask)
    arguments = [_renamed(scope, op, each, named, rest) for each, rest in zip(bounds, (0, 0, 1), strict=True)]
    if None not in kept:
        return scope.emit("STRIDED_SLICE", [x, *arguments], result, options)
    taken = [each for each in named if each is not None]
    full = begin_mask.bit_count() == end_mask.bit_count() == len(named) and bool((steps[taken] == 1).all())
    if not full:
        shape = None
        if result.shape is not None:
            tail = list(x.shape[len(named) :])
            sizes = list(result.shape)
            shape = tuple(sizes[position] for position, each in enumerate(kept) if each is not None) + tuple(tail)
        x = scope.emit("STRIDED_SLICE", [x, *arguments], scope.temporary(op, x.type, shape), options)
    if result.shape is None or -1 in result.shape:
        # A shape with the unknown size would state the others, and with them a batch that may change.
        for position, each in enumerate(kept):
            if each is None:
                after = scope.temporary(op, x.type, None)
                x = scope.emit(
                    "EXPAND_DIMS", [x, scope.constant(position, dtype=np.int32)], after, schema.ExpandDimsOptionsT()
                )
        x.shape = result.shape
        return x
    return reshaped(scope, x, result, op=op)


def _renamed(scope: Scope, op: Operation, bound: Tensor, named: list[int | None], rest: int) -> Tensor:
    """The numbers of a bound, one for each dimension of the plain slice. Nothing reads those of dimensions without a name but their stride, `rest`."""
    if bound.data is not None:
        return scope.constant([rest if each is None else bound.data[each] for each in named], dtype=np.int32)
    places = scope.constant([each or 0 for each in named], dtype=np.int32)
    return scope.emit("GATHER", [bound, places], scope.temporary(op, "INT32", (len(named),)), schema.GatherOptionsT())


@lowers("GatherV2", "Gather")
def gather(scope: Scope, op: Operation) -> Any:
    axis = int(scope.required(op.inputs[2], "the axis")) if op.type == "GatherV2" else 0
    batch_dims = op.attrs.get("batch_dims", 0)
    if axis < 0:
        rank = scope.shape_of(op.inputs[0]).rank
        if rank is None:
            raise Unsupported("a negative axis needs a known rank", "give a positive axis")
        axis += rank
    if batch_dims < 0:
        rank = scope.shape_of(op.inputs[1]).rank
        if rank is None:
            raise Unsupported("a negative batch_dims needs a known rank", "give a positive number")
        batch_dims += rank
    params, indices = scope.tensor(op.inputs[0]), scope.tensor(op.inputs[1])
    if indices.type not in ("INT32", "INT64", "INT16"):
        indices = scope.cast(op, indices, "INT32")
    if (
        params.is_constant
        and axis == 0
        and batch_dims == 0
        and params.type == "FLOAT32"
        and len(params.shape or ()) >= 2
    ):
        if indices.type == "INT32" and indices.shape is not None and len(indices.shape) == 1:
            return scope.emit("EMBEDDING_LOOKUP", [indices, params], scope.result(op))
    options = schema.GatherOptionsT(axis=axis, batchDims=batch_dims)
    return scope.emit("GATHER", [params, indices], scope.result(op), options)


@lowers("GatherNd")
def gather_nd(scope: Scope, op: Operation) -> Any:
    return scope.emit("GATHER_ND", scope.inputs(op), scope.result(op), schema.GatherNdOptionsT())


@lowers("ScatterNd")
def scatter_nd(scope: Scope, op: Operation) -> Any:
    inputs = [scope.int32(op, op.inputs[0]), scope.tensor(op.inputs[1]), scope.int32(op, op.inputs[2])]
    return scope.emit("SCATTER_ND", inputs, scope.result(op), schema.ScatterNdOptionsT())


@lowers("TensorScatterAdd", "TensorScatterUpdate")
def tensor_scatter(scope: Scope, op: Operation) -> Any:
    base, updates = scope.tensor(op.inputs[0]), scope.tensor(op.inputs[2])
    indices = scope.int32(op, op.inputs[1])
    if base.shape is None or -1 in base.shape:
        raise Unsupported("TFLite scatters into a tensor of a known shape", "give the tensor a static shape")
    shape = scope.constant(base.shape, "shape", np.int32)
    spread = scope.emit(
        "SCATTER_ND", [indices, updates, shape], scope.temporary(op, base.type, base.shape), schema.ScatterNdOptionsT()
    )
    if op.type == "TensorScatterAdd":
        return scope.emit("ADD", [base, spread], scope.result(op), schema.AddOptionsT())
    if updates.shape is not None and -1 not in updates.shape:
        marks = scope.constant(np.ones(updates.shape, bool), "marks")
    else:
        marks = scope.emit(
            "FILL", [_shape_of(scope, op, updates), scope.constant(True)], scope.temporary(op, "BOOL", updates.shape)
        )
    mask = scope.emit(
        "SCATTER_ND", [indices, marks, shape], scope.temporary(op, "BOOL", base.shape), schema.ScatterNdOptionsT()
    )
    return scope.emit("SELECT", [mask, spread, base], scope.result(op), schema.SelectOptionsT())


def _shape_of(scope: Scope, op: Operation, tensor: Tensor) -> Tensor:
    if tensor.shape is not None and -1 not in tensor.shape:
        return scope.constant(tensor.shape, "shape", np.int32)
    rank = -1 if tensor.shape is None else len(tensor.shape)
    return scope.emit(
        "SHAPE", [tensor], scope.temporary(op, "INT32", (rank,)), schema.ShapeOptionsT(outType=TYPE_CODES["INT32"])
    )


@lowers("OneHot")
def one_hot(scope: Scope, op: Operation) -> Any:
    indices, depth, on, off = op.inputs
    inputs = [scope.tensor(indices), scope.int32(op, depth), scope.tensor(on), scope.tensor(off)]
    if inputs[0].type not in ("INT32", "INT64"):
        inputs[0] = scope.cast(op, inputs[0], "INT32")
    return scope.emit("ONE_HOT", inputs, scope.result(op), schema.OneHotOptionsT(axis=op.attr("axis")))


@lowers("Where")
def where(scope: Scope, op: Operation) -> Any:
    return scope.emit("WHERE", scope.inputs(op), scope.result(op), schema.WhereOptionsT())


@lowers("Unique")
def unique(scope: Scope, op: Operation) -> Any:
    outputs = scope.results(op)
    return scope.emit(
        "UNIQUE", scope.inputs(op), outputs, schema.UniqueOptionsT(idxOutType=TYPE_CODES[outputs[1].type])
    )


@lowers("SparseToDense")
def sparse_to_dense(scope: Scope, op: Operation) -> Any:
    options = schema.SparseToDenseOptionsT(validateIndices=op.attr("validate_indices"))
    return scope.emit("SPARSE_TO_DENSE", scope.inputs(op), scope.result(op), options)


@lowers("Bucketize")
def bucketize(scope: Scope, op: Operation) -> Any:
    boundaries = np.array(op.attr("boundaries"), np.float32)
    return scope.emit("BUCKETIZE", scope.inputs(op), scope.result(op), schema.BucketizeOptionsT(boundaries=boundaries))


@lowers("InvertPermutation")
def invert_permutation(scope: Scope, op: Operation) -> Any:
    x, result = scope.tensor(op.inputs[0]), scope.result(op)
    if x.shape is None or -1 in x.shape:
        raise Unsupported("the permutation's length must be known", "give it a static shape")
    (count,) = x.shape
    rows = reshaped(scope, x, scope.temporary(op, x.type, (count, 1)))
    rows = scope.cast(op, rows, "INT32")
    positions = scope.constant(np.arange(count), "positions", numpy_dtype(result.type))
    return scope.emit(
        "SCATTER_ND", [rows, positions, scope.constant([count], "shape", np.int32)], result, schema.ScatterNdOptionsT()
    )
