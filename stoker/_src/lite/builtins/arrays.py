"""Shapes, joining and splitting, padding, filling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from stoker._src.graph.static_values import constant_value
from stoker._src.graph.tensor import Operation
from stoker._src.graph.tensor import Tensor as GraphTensor
from stoker._src.lite.lowering import Scope, Unsupported, lowers
from stoker._src.lite.model import TYPE_CODES, Tensor, numpy_dtype


def reshaped(
    scope: Scope,
    tensor: Tensor,
    result: Tensor,
    shape: Tensor | None = None,
    op: Operation | None = None,
    inferred: Sequence[int] = (),
) -> Tensor:
    """Emits a RESHAPE to the result's shape, or to a shape that is computed.

    With `op`, the size that its graph leaves open is inferred. `inferred` are the places of such sizes, if the caller knows: a single one is inferred.
    """
    if shape is None:
        sizes = np.array(result.shape, np.int32)
        if op is not None:
            inferred = _open_size(scope, op, result)
        if len(inferred) == 1 and -1 not in sizes and 0 not in sizes:
            sizes[inferred[0]] = -1
        shape = scope.constant(sizes, "shape")
        return scope.emit("RESHAPE", [tensor, shape], result, schema.ReshapeOptionsT(newShape=sizes))
    return scope.emit("RESHAPE", [tensor, shape], result)


def _open_size(scope: Scope, op: Operation, result: Tensor) -> list[int]:
    """The position of the size that the graph does not know, and the conversion does: that of the batch.

    The interpreter may change the batch, if the model does not state it.
    """
    static, shape = op.outputs[0].static_shape, result.shape
    if shape is None or -1 in shape or 0 in shape or static.rank != len(shape):
        return []
    places = [place for place, size in enumerate(static) if size is None]
    stated = _stated_sizes(op.inputs[1]) if op.type == "Reshape" else []
    if len(stated) == len(shape):
        places = [place for place in places if stated[place] is None] or places
    return places if len(places) == 1 else []


def _stated_sizes(tensor: GraphTensor) -> list[int | None]:
    """The elements of a number or list of sizes that do not depend on those that the graph leaves open, which are None. Empty if nothing is known.

    `tf.tensordot`, and layers that use it, compute the shapes of their reshapes in this way.
    """
    value, op = constant_value(tensor), tensor.op
    if value is not None:
        return [int(each) for each in value.reshape(-1)]
    if op.type == "Shape":
        return list(op.inputs[0].static_shape.dims or ())
    if op.type in ("Identity", "Cast"):
        return _stated_sizes(op.inputs[0])
    if op.type in ("Pack", "ConcatV2"):
        parts = [_stated_sizes(each) for each in (op.inputs if op.type == "Pack" else op.inputs[:-1])]
        return [size for part in parts for size in part] if all(parts) else []
    if op.type in ("Gather", "GatherV2", "Prod"):
        sizes, positions = _stated_sizes(op.inputs[0]), constant_value(op.inputs[1])
        if not sizes or positions is None:
            return []
        if op.type == "Prod":
            return [None if None in sizes else math.prod(size for size in sizes if size is not None)]
        return [sizes[each] for each in positions.reshape(-1)]
    return [None] if tensor.static_shape.rank == 0 else []


@lowers("Reshape")
def reshape(scope: Scope, op: Operation) -> Any:
    x, result = scope.tensor(op.inputs[0]), scope.result(op)
    if result.shape is not None and sum(size < 0 for size in result.shape) > 1:
        result.shape = _kept_size(scope, op, x) or result.shape
    # The builtin can infer one unknown size, so the arithmetic that computes it is not needed.
    if result.shape is not None and sum(size < 0 for size in result.shape) <= 1 and 0 not in result.shape:
        if x.shape == result.shape and -1 not in result.shape:
            return x
        return reshaped(scope, x, result, op=op)
    return reshaped(scope, x, result, scope.int32(op, op.inputs[1]))


def _kept_size(scope: Scope, op: Operation, x: Tensor) -> tuple[int, ...] | None:
    """The shape of reshape(x, [shape(x)[0], ..., -1]). If one size of x is unknown and kept, the other one can be computed."""
    pack = op.inputs[1].op
    if pack.type != "Pack" or x.shape is None or sum(size < 0 for size in x.shape) != 1:
        return None
    sizes: list[int | None] = []
    for element in pack.inputs:
        known = scope.known(element)
        if known is None and not _is_size_of(scope, element.op, op.inputs[0], x.shape.index(-1)):
            return None
        sizes.append(None if known is None else int(known))
    if sizes.count(None) != 1 or sizes.count(-1) > 1:
        return None
    rest = math.prod(size for size in sizes if size not in (None, -1))
    total = -math.prod(x.shape)
    if rest <= 0 or total % rest:
        return None
    return tuple(-1 if size is None else total // rest if size == -1 else size for size in sizes)


def _is_size_of(scope: Scope, op: Operation, tensor: Any, axis: int) -> bool:
    """Whether `op` is shape(tensor)[axis]."""
    if op.type != "StridedSlice" or op.inputs[0].op.type != "Shape" or op.inputs[0].op.inputs[0] is not tensor:
        return False
    begin = scope.known(op.inputs[1])
    return begin is not None and begin.tolist() == [axis] and op.attr("shrink_axis_mask") == 1


@lowers("Squeeze")
def squeeze(scope: Scope, op: Operation) -> Any:
    x, result = scope.tensor(op.inputs[0]), scope.result(op)
    if result.shape is not None and sum(size < 0 for size in result.shape) <= 1 and 0 not in result.shape:
        return reshaped(scope, x, result, op=op)
    dims = [int(each) for each in op.attr("squeeze_dims")]
    return scope.emit("SQUEEZE", [x], result, schema.SqueezeOptionsT(squeezeDims=np.array(dims, np.int32)))


@lowers("ExpandDims")
def expand_dims(scope: Scope, op: Operation) -> Any:
    x, result = scope.tensor(op.inputs[0]), scope.result(op)
    if result.shape is not None and sum(size < 0 for size in result.shape) <= 1 and 0 not in result.shape:
        return reshaped(scope, x, result, op=op)
    return scope.emit("EXPAND_DIMS", [x, scope.int32(op, op.inputs[1])], result, schema.ExpandDimsOptionsT())


def transposed(scope: Scope, tensor: Tensor, permutation: Any, result: Tensor) -> Tensor:
    order = scope.constant(np.asarray(permutation, np.int32), "perm")
    return scope.emit("TRANSPOSE", [tensor, order], result, schema.TransposeOptionsT())


@lowers("Transpose")
def transpose(scope: Scope, op: Operation) -> Any:
    order = scope.known(op.inputs[1])
    if order is not None and (order == np.arange(order.size)).all():
        return scope.values[op.inputs[0]]
    return scope.emit(
        "TRANSPOSE",
        [scope.tensor(op.inputs[0]), scope.int32(op, op.inputs[1])],
        scope.result(op),
        schema.TransposeOptionsT(),
    )


@lowers("ConcatV2", "Concat")
def concat(scope: Scope, op: Operation) -> Any:
    values, axis = (op.inputs[:-1], op.inputs[-1]) if op.type == "ConcatV2" else (op.inputs[1:], op.inputs[0])
    given = [tensor for tensor in values if scope.shape_of(tensor).size != 0] or list(values)
    if len(given) == 1:
        return scope.values[given[0]]
    position = int(scope.required(axis, "the axis"))
    return scope.emit(
        "CONCATENATION",
        [scope.tensor(each) for each in given],
        scope.result(op),
        schema.ConcatenationOptionsT(axis=position),
    )


@lowers("Pack")
def pack(scope: Scope, op: Operation) -> Any:
    options = schema.PackOptionsT(valuesCount=len(op.inputs), axis=op.attr("axis"))
    return scope.emit("PACK", scope.inputs(op), scope.result(op), options)


@lowers("Unpack")
def unpack(scope: Scope, op: Operation) -> Any:
    options = schema.UnpackOptionsT(num=len(op.outputs), axis=op.attr("axis"))
    return scope.emit("UNPACK", scope.inputs(op), scope.results(op), options)


@lowers("Split")
def split(scope: Scope, op: Operation) -> Any:
    inputs = [scope.int32(op, op.inputs[0]), scope.tensor(op.inputs[1])]
    return scope.emit("SPLIT", inputs, scope.results(op), schema.SplitOptionsT(numSplits=len(op.outputs)))


@lowers("SplitV")
def split_v(scope: Scope, op: Operation) -> Any:
    inputs = [scope.tensor(op.inputs[0]), scope.int32(op, op.inputs[1]), scope.int32(op, op.inputs[2])]
    return scope.emit("SPLIT_V", inputs, scope.results(op), schema.SplitVOptionsT(numSplits=len(op.outputs)))


@lowers("Tile")
def tile(scope: Scope, op: Operation) -> Any:
    return scope.emit(
        "TILE", [scope.tensor(op.inputs[0]), scope.int32(op, op.inputs[1])], scope.result(op), schema.TileOptionsT()
    )


@lowers("Fill")
def fill(scope: Scope, op: Operation) -> Any:
    return scope.emit(
        "FILL", [scope.int32(op, op.inputs[0]), scope.tensor(op.inputs[1])], scope.result(op), schema.FillOptionsT()
    )


@lowers("BroadcastTo")
def broadcast_to(scope: Scope, op: Operation) -> Any:
    inputs = [scope.tensor(op.inputs[0]), scope.int32(op, op.inputs[1])]
    return scope.emit("BROADCAST_TO", inputs, scope.result(op), schema.BroadcastToOptionsT())


@lowers("BroadcastArgs")
def broadcast_args(scope: Scope, op: Operation) -> Any:
    return scope.emit("BROADCAST_ARGS", scope.inputs(op), scope.result(op))


@lowers("Range")
def range_(scope: Scope, op: Operation) -> Any:
    return scope.emit("RANGE", scope.inputs(op), scope.result(op), schema.RangeOptionsT())


@lowers("LinSpace")
def linspace(scope: Scope, op: Operation) -> Any:
    count = int(scope.required(op.inputs[2], "the number of values"))
    start, stop = scope.tensor(op.inputs[0]), scope.tensor(op.inputs[1])
    steps = scope.constant(np.linspace(0, 1, count), "steps", numpy_dtype(start.type))
    distance = scope.emit("SUB", [stop, start], scope.temporary(op, start.type, ()), schema.SubOptionsT())
    moved = scope.emit("MUL", [distance, steps], scope.temporary(op, start.type, (count,)), schema.MulOptionsT())
    return scope.emit("ADD", [moved, start], scope.result(op), schema.AddOptionsT())


@lowers("Pad")
def pad(scope: Scope, op: Operation) -> Any:
    return scope.emit(
        "PAD", [scope.tensor(op.inputs[0]), scope.int32(op, op.inputs[1])], scope.result(op), schema.PadOptionsT()
    )


@lowers("PadV2")
def pad_v2(scope: Scope, op: Operation) -> Any:
    inputs = [scope.tensor(op.inputs[0]), scope.int32(op, op.inputs[1]), scope.tensor(op.inputs[2])]
    return scope.emit("PADV2", inputs, scope.result(op), schema.PadV2OptionsT())


@lowers("MirrorPad")
def mirror_pad(scope: Scope, op: Operation) -> Any:
    mode = getattr(schema.MirrorPadMode, op.attr("mode"))
    inputs = [scope.tensor(op.inputs[0]), scope.int32(op, op.inputs[1])]
    return scope.emit("MIRROR_PAD", inputs, scope.result(op), schema.MirrorPadOptionsT(mode=mode))


@lowers("Shape")
def shape(scope: Scope, op: Operation) -> Any:
    return _shape(scope, scope.tensor(op.inputs[0]), scope.result(op))


def _shape(scope: Scope, tensor: Tensor, result: Tensor) -> Tensor:
    return scope.emit("SHAPE", [tensor], result, schema.ShapeOptionsT(outType=TYPE_CODES[result.type]))


@lowers("ShapeN")
def shape_n(scope: Scope, op: Operation) -> Any:
    return [_shape(scope, scope.tensor(tensor), scope.result(op, i)) for i, tensor in enumerate(op.inputs)]


@lowers("Size")
def size(scope: Scope, op: Operation) -> Any:
    x, result = scope.tensor(op.inputs[0]), scope.result(op)
    rank = -1 if x.shape is None else len(x.shape)
    sizes = _shape(scope, x, scope.temporary(op, result.type, (rank,)))
    return scope.emit("REDUCE_PROD", [sizes, scope.constant([0], "axis", np.int32)], result, schema.ReducerOptionsT())


@lowers("Rank")
def rank(scope: Scope, op: Operation) -> Any:
    return scope.emit("RANK", scope.inputs(op), scope.result(op), schema.RankOptionsT())


@lowers("ReverseV2")
def reverse(scope: Scope, op: Operation) -> Any:
    axes = scope.known(op.inputs[1])
    if axes is None:
        axis = scope.int32(op, op.inputs[1])
        return scope.emit(
            "REVERSE_V2", [scope.tensor(op.inputs[0]), axis], scope.result(op), schema.ReverseV2OptionsT()
        )
    if axes.size == 0:
        return scope.values[op.inputs[0]]
    # One op for each axis: kernels of several need neighbouring axes, and old ones reverse the first alone.
    value, result = scope.tensor(op.inputs[0]), scope.result(op)
    for position, axis in enumerate(axes.reshape(-1)):
        made = result if position == axes.size - 1 else scope.temporary(op, result.type, result.shape)
        # Kernels of 1.x refuse negative axes.
        axis = int(axis) % len(result.shape) if result.shape else int(axis)
        value = scope.emit(
            "REVERSE_V2", [value, scope.constant(np.array([axis], np.int32), "axis")], made, schema.ReverseV2OptionsT()
        )
    return value


@lowers("ReverseSequence")
def reverse_sequence(scope: Scope, op: Operation) -> Any:
    options = schema.ReverseSequenceOptionsT(seqDim=op.attr("seq_dim"), batchDim=op.attr("batch_dim"))
    return scope.emit("REVERSE_SEQUENCE", scope.inputs(op), scope.result(op), options)


@lowers("SpaceToBatchND", "BatchToSpaceND")
def between_space_and_batch(scope: Scope, op: Operation) -> Any:
    if scope.shape_of(op.inputs[0]).rank not in (3, 4):
        raise Unsupported(
            "TFLite moves blocks between space and batch for 3 or 4 dimensions", "reshape the input to 4 dimensions"
        )
    inputs = [scope.tensor(op.inputs[0]), scope.int32(op, op.inputs[1]), scope.int32(op, op.inputs[2])]
    if op.type == "SpaceToBatchND":
        return scope.emit("SPACE_TO_BATCH_ND", inputs, scope.result(op), schema.SpaceToBatchNDOptionsT())
    return scope.emit("BATCH_TO_SPACE_ND", inputs, scope.result(op), schema.BatchToSpaceNDOptionsT())


@lowers("SpaceToDepth", "DepthToSpace")
def between_space_and_depth(scope: Scope, op: Operation) -> Any:
    if op.attr("data_format") != "NHWC":
        raise Unsupported(
            f"TFLite has this op for NHWC only, not {op.attr('data_format')}", "transpose its input and output"
        )
    block = op.attr("block_size")
    if op.type == "SpaceToDepth":
        return scope.emit(
            "SPACE_TO_DEPTH", scope.inputs(op), scope.result(op), schema.SpaceToDepthOptionsT(blockSize=block)
        )
    return scope.emit(
        "DEPTH_TO_SPACE", scope.inputs(op), scope.result(op), schema.DepthToSpaceOptionsT(blockSize=block)
    )


@lowers("MatrixDiag", "MatrixDiagV2", "MatrixDiagV3")
def matrix_diag(scope: Scope, op: Operation) -> Any:
    if op.type != "MatrixDiag":
        _main_diagonal_only(scope, op, first=1)
        if any(scope.required(tensor, "the matrix's size") not in (-1,) for tensor in op.inputs[2:4]):
            raise Unsupported("TFLite makes square matrices from their main diagonal", "pad the diagonal")
        if scope.required(op.inputs[4], "the padding value") != 0:
            raise Unsupported("TFLite fills the rest of the matrix with zeros", "add the padding afterwards")
    return scope.emit("MATRIX_DIAG", [scope.tensor(op.inputs[0])], scope.result(op), schema.MatrixDiagOptionsT())


@lowers("MatrixSetDiag", "MatrixSetDiagV2", "MatrixSetDiagV3")
def matrix_set_diag(scope: Scope, op: Operation) -> Any:
    if op.type != "MatrixSetDiag":
        _main_diagonal_only(scope, op, first=2)
    inputs = [scope.tensor(op.inputs[0]), scope.tensor(op.inputs[1])]
    return scope.emit("MATRIX_SET_DIAG", inputs, scope.result(op), schema.MatrixSetDiagOptionsT())


def _main_diagonal_only(scope: Scope, op: Operation, first: int) -> None:
    if np.any(scope.required(op.inputs[first], "the diagonal's number") != 0):
        raise Unsupported("TFLite sets the main diagonal only", "build other diagonals with tf.pad")
