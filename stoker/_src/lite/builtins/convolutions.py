"""Convolutions and pooling.

TensorFlow and TFLite both keep images as batch, height, width, channels. Filters differ: TensorFlow's are height, width, in, out, TFLite's out, height,
width, in. The filter of a depthwise convolution is 1, height, width, out. Channels-first graphs (NCHW) get transposes around the op; adjacent ones cancel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from stoker._src.graph.tensor import Operation
from stoker._src.graph.tensor import Tensor as GraphTensor
from stoker._src.lite.builtins.arrays import reshaped, transposed
from stoker._src.lite.lowering import Scope, Unsupported, constant_name, lowers
from stoker._src.lite.model import TYPE_CODES, Tensor

PADDING = {"SAME": schema.Padding.SAME, "VALID": schema.Padding.VALID}


def spatial(op: Operation, name: str) -> tuple[int, int]:
    """The values for height and width of an attribute that has one value per dimension."""
    values = [int(each) for each in op.attrs.get(name) or (1, 1, 1, 1)]
    batch, depth, *others = (
        (values[0], values[3], *values[1:3])
        if op.attrs.get("data_format", "NHWC") == "NHWC"
        else (*values[:2], *values[2:])
    )
    if batch != 1 or depth != 1:
        raise Unsupported(f"{name} of {values} reach over the batch or the channels", "keep both at 1")
    return others[0], others[1]


def channels_last(scope: Scope, op: Operation, tensor: Tensor, make: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """Applies `make(input, result)` to channels-last images, between transposes if the op has channels first."""
    data_format = op.attrs.get("data_format", "NHWC")
    result = scope.result(op)
    if data_format == "NHWC":
        return make(tensor, result)
    if data_format != "NCHW":
        raise Unsupported(f"TFLite has no images of format {data_format}", "use NHWC")
    last = transposed(scope, tensor, (0, 2, 3, 1), scope.temporary(op, tensor.type, _moved(tensor.shape)))
    made = make(last, scope.temporary(op, result.type, _moved(result.shape)))
    return transposed(scope, made, (0, 3, 1, 2), result)


def _moved(shape: tuple[int, ...] | None) -> tuple[int, ...] | None:
    return None if shape is None else (shape[0], shape[2], shape[3], shape[1])


def rearranged(
    scope: Scope,
    op: Operation,
    tensor: GraphTensor,
    permutation: Sequence[int],
    fold: Callable[[np.ndarray], np.ndarray],
) -> Tensor:
    """A filter in TFLite's layout: rearranged at once if it is constant, otherwise by a TRANSPOSE."""
    known = scope.known(tensor)
    if known is not None:
        return scope.constant(fold(known.transpose(permutation)), constant_name(tensor))
    filters = scope.tensor(tensor)
    shape = None if filters.shape is None else tuple(filters.shape[axis] for axis in permutation)
    return transposed(scope, filters, permutation, scope.temporary(op, filters.type, shape))


def zeros(scope: Scope, count: int) -> Tensor:
    return scope.constant(np.zeros(count, np.float32), "bias")


def _padding(scope: Scope, op: Operation, x: Tensor, value: float = 0) -> tuple[Tensor, int]:
    """The input and the padding of the builtin. Explicit paddings become a separate PAD."""
    padding = op.attr("padding")
    if padding != "EXPLICIT":
        return x, PADDING[padding]
    pairs = np.array(op.attr("explicit_paddings"), np.int32).reshape(4, 2)
    if op.attrs.get("data_format", "NHWC") == "NCHW":
        pairs = pairs[[0, 2, 3, 1]]
    shape = None
    if x.shape is not None:
        shape = tuple(size if size < 0 else size + int(pair.sum()) for size, pair in zip(x.shape, pairs, strict=True))
    given = [x, scope.constant(pairs, "paddings")]
    if value:
        padded = scope.temporary(op, x.type, shape)
        scope.emit("PADV2", [*given, scope.constant(value, dtype=np.float32)], padded, schema.PadV2OptionsT())
    else:
        padded = scope.emit("PAD", given, scope.temporary(op, x.type, shape), schema.PadOptionsT())
    return padded, PADDING["VALID"]


def _float_only(op: Operation) -> None:
    if op.outputs[0].dtype.name != "float32":
        raise Unsupported(f"TFLite computes {op.type} of float32, not {op.outputs[0].dtype.name}", "cast to float32")


@lowers("Conv2D")
def conv_2d(scope: Scope, op: Operation) -> Any:
    _float_only(op)
    strides, dilations = spatial(op, "strides"), spatial(op, "dilations")
    filters = scope.shape_of(op.inputs[1])
    if filters.rank != 4 or filters[3] is None:
        raise Unsupported("the filter's number of outputs must be known", "give the filter a static shape")
    channels = scope.shape_of(op.inputs[0]).of_rank(4)[3 if op.attr("data_format") == "NHWC" else 1]

    def make(x: Tensor, result: Tensor) -> Tensor:
        x, padding = _padding(scope, op, x)
        if (
            filters[2] == 1
            and channels not in (1, None)
            and scope.known(op.inputs[1]) is not None
            and filters[3] % channels == 0
        ):
            # A convolution with one group per channel is a depthwise convolution.
            weights = rearranged(scope, op, op.inputs[1], (2, 0, 1, 3), lambda array: array)
            options = schema.DepthwiseConv2DOptionsT(
                padding=padding,
                strideH=strides[0],
                strideW=strides[1],
                dilationHFactor=dilations[0],
                dilationWFactor=dilations[1],
                depthMultiplier=filters[3] // channels,
            )
            return scope.emit("DEPTHWISE_CONV_2D", [x, weights, zeros(scope, filters[3])], result, options)
        weights = rearranged(scope, op, op.inputs[1], (3, 0, 1, 2), lambda array: array)
        options = schema.Conv2DOptionsT(
            padding=padding,
            strideH=strides[0],
            strideW=strides[1],
            dilationHFactor=dilations[0],
            dilationWFactor=dilations[1],
        )
        return scope.emit("CONV_2D", [x, weights, zeros(scope, filters[3])], result, options)

    return channels_last(scope, op, scope.tensor(op.inputs[0]), make)


@lowers("DepthwiseConv2dNative")
def depthwise_conv_2d(scope: Scope, op: Operation) -> Any:
    _float_only(op)
    strides, dilations = spatial(op, "strides"), spatial(op, "dilations")
    filters = scope.required(op.inputs[1], "the filter of a depthwise convolution")
    height, width, channels, multiplier = filters.shape
    weights = scope.constant(filters.reshape(1, height, width, channels * multiplier), constant_name(op.inputs[1]))

    def make(x: Tensor, result: Tensor) -> Tensor:
        x, padding = _padding(scope, op, x)
        options = schema.DepthwiseConv2DOptionsT(
            padding=padding,
            strideH=strides[0],
            strideW=strides[1],
            dilationHFactor=dilations[0],
            dilationWFactor=dilations[1],
            depthMultiplier=multiplier,
        )
        return scope.emit("DEPTHWISE_CONV_2D", [x, weights, zeros(scope, channels * multiplier)], result, options)

    return channels_last(scope, op, scope.tensor(op.inputs[0]), make)


@lowers("Conv2DBackpropInput")
def transpose_conv(scope: Scope, op: Operation) -> Any:
    _float_only(op)
    if spatial(op, "dilations") != (1, 1):
        raise Unsupported("TFLite's transposed convolution has no dilations", "dilate the filter with zeros")
    if op.attr("padding") not in PADDING:
        raise Unsupported(
            "TFLite's transposed convolution has no explicit paddings", "use SAME or VALID and slice the result"
        )
    strides = spatial(op, "strides")
    weights = rearranged(scope, op, op.inputs[1], (2, 0, 1, 3), lambda array: array)
    options = schema.TransposeConvOptionsT(padding=PADDING[op.attr("padding")], strideH=strides[0], strideW=strides[1])

    def make(x: Tensor, result: Tensor) -> Tensor:
        if result.shape is not None and -1 not in result.shape:
            if _better_computed(scope, op, result.shape[3]):
                sizes = _with_batch_of(scope, op, x, result.shape)
            else:
                sizes = scope.constant(result.shape, "output_shape", np.int32)
        else:
            sizes = scope.int32(op, op.inputs[0])
            if op.attr("data_format") == "NCHW":
                order = scope.constant([0, 2, 3, 1], dtype=np.int32)
                sizes = scope.emit(
                    "GATHER", [sizes, order], scope.temporary(op, "INT32", (4,)), schema.GatherOptionsT()
                )
        return scope.emit("TRANSPOSE_CONV", [sizes, weights, x], result, options)

    return channels_last(scope, op, scope.tensor(op.inputs[2]), make)


def _better_computed(scope: Scope, op: Operation, outputs: int) -> bool:
    """Whether a shape that is known is nevertheless computed, from a batch that the graph leaves open.

    XNNPACK takes a transposed convolution only if its shape is a constant. On the processor that this was measured on (x86 with AMX), one of integers
    with strides takes it the same time for one channel of the result as for 64: six times that of the plain kernel for 8, as much as that for about 32.
    """
    inputs = scope.shape_of(op.inputs[1]).of_rank(4)[3]
    is_slow = outputs <= 16 or (outputs <= 32 and inputs is not None and inputs <= 32)
    return scope.conversion.rules.to_bytes and spatial(op, "strides") != (1, 1) and is_slow and _open_batch(op)


def _open_batch(op: Operation) -> bool:
    shape = op.outputs[0].static_shape
    return shape.rank is not None and shape[0] is None


def _with_batch_of(scope: Scope, op: Operation, x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The shape with the size of x as its first one."""
    sizes = scope.emit(
        "SHAPE", [x], scope.temporary(op, "INT32", (4,)), schema.ShapeOptionsT(outType=TYPE_CODES["INT32"])
    )
    bounds = [scope.constant([each], dtype=np.int32) for each in (0, 1, 1)]
    batch = scope.emit(
        "STRIDED_SLICE", [sizes, *bounds], scope.temporary(op, "INT32", (1,)), schema.StridedSliceOptionsT()
    )
    rest = scope.constant(shape[1:], "output_shape", np.int32)
    whole = scope.temporary(op, "INT32", (4,))
    return scope.emit("CONCATENATION", [batch, rest], whole, schema.ConcatenationOptionsT(axis=0))


def _volumes(op: Operation, options: type, name: str = "data_format") -> Any:
    if op.attrs.get(name, "NDHWC") != "NDHWC":
        raise Unsupported(f"TFLite has no volumes of format {op.attrs[name]}", "use NDHWC")
    if op.attr("padding") not in PADDING:
        raise Unsupported("TFLite's 3D convolution has no explicit paddings", "use tf.pad")
    strides, dilations = op.attr("strides"), op.attrs.get("dilations") or (1,) * 5
    return options(
        padding=PADDING[op.attr("padding")],
        strideD=strides[1],
        strideH=strides[2],
        strideW=strides[3],
        dilationDFactor=dilations[1],
        dilationHFactor=dilations[2],
        dilationWFactor=dilations[3],
    )


@lowers("Conv3D")
def conv_3d(scope: Scope, op: Operation) -> Any:
    _float_only(op)
    return scope.emit("CONV_3D", scope.inputs(op), scope.result(op), _volumes(op, schema.Conv3DOptionsT))


@lowers("Conv3DBackpropInputV2")
def conv_3d_transpose(scope: Scope, op: Operation) -> Any:
    _float_only(op)
    inputs = [scope.int32(op, op.inputs[0]), scope.tensor(op.inputs[1]), scope.tensor(op.inputs[2])]
    return scope.emit("CONV_3D_TRANSPOSE", inputs, scope.result(op), _volumes(op, schema.Conv3DOptionsT))


@lowers("MaxPool", "AvgPool", "MaxPoolV2")
def pool(scope: Scope, op: Operation) -> Any:
    if op.type == "MaxPoolV2":
        window, steps = (scope.required(tensor, "the window").tolist() for tensor in op.inputs[1:])
        if op.attr("data_format") != "NHWC":
            raise Unsupported("TFLite pools channels-last images", "use NHWC")
        size, strides = (window[1], window[2]), (steps[1], steps[2])
    else:
        size, strides = spatial(op, "ksize"), spatial(op, "strides")
    code = "AVERAGE_POOL_2D" if op.type == "AvgPool" else "MAX_POOL_2D"

    def make(x: Tensor, result: Tensor) -> Tensor:
        x, padding = _padding(scope, op, x, value=-np.inf if code == "MAX_POOL_2D" else 0)
        options = schema.Pool2DOptionsT(
            padding=padding, strideH=strides[0], strideW=strides[1], filterHeight=size[0], filterWidth=size[1]
        )
        return scope.emit(code, [x], result, options)

    return channels_last(scope, op, scope.tensor(op.inputs[0]), make)


@lowers("MaxPool3D", "AvgPool3D")
def pool_3d(scope: Scope, op: Operation) -> Any:
    """Pools height and width with depth in the batch, then depth with height and width as one dimension."""
    if op.attr("data_format") != "NDHWC":
        raise Unsupported(f"TFLite has no volumes of format {op.attr('data_format')}", "use NDHWC")
    window, strides = op.attr("ksize"), op.attr("strides")
    code = "AVERAGE_POOL_2D" if op.type == "AvgPool3D" else "MAX_POOL_2D"
    x, result = scope.tensor(op.inputs[0]), scope.result(op)
    if x.shape is None or result.shape is None or -1 in x.shape[1:] or -1 in result.shape[1:]:
        raise Unsupported("the depth, height, width and channels of volumes must be known")
    batch, depth, height, width, channels = x.shape
    _, less_depth, less_height, less_width, _ = result.shape

    def pooled(x: Tensor, shape: tuple[int, ...], size: tuple[int, int], step: tuple[int, int]) -> Tensor:
        options = schema.Pool2DOptionsT(
            padding=PADDING[op.attr("padding")],
            strideH=step[0],
            strideW=step[1],
            filterHeight=size[0],
            filterWidth=size[1],
        )
        return scope.emit(code, [x], scope.temporary(op, x.type, shape), options)

    images = batch * depth if batch > 0 else -1
    inferred = [0] if _open_batch(op) else []
    slices = reshaped(scope, x, scope.temporary(op, x.type, (images, height, width, channels)), inferred=inferred)
    small = pooled(slices, (images, less_height, less_width, channels), window[2:4], strides[2:4])
    columns = (batch, depth, less_height * less_width, channels)
    rows = reshaped(scope, small, scope.temporary(op, x.type, columns), inferred=inferred)
    flat = (batch, less_depth, less_height * less_width, channels)
    return reshaped(scope, pooled(rows, flat, (window[1], 1), (strides[1], 1)), result, inferred=inferred)
