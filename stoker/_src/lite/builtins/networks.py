"""Bias, normalization, softmax and fake quantization."""

from __future__ import annotations

from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from stoker._src.graph.runtime_hooks import hooks
from stoker._src.graph.tensor import Operation
from stoker._src.lite.builtins.arrays import reshaped
from stoker._src.lite.lowering import Scope, Unsupported, constant_name, lowers
from stoker._src.lite.model import Tensor


@lowers("BiasAdd", "BiasAddV1")
def bias_add(scope: Scope, op: Operation) -> Any:
    value = scope.tensor(op.inputs[0])
    bias = along_channels(scope, op, op.inputs[1], value)
    return scope.emit("ADD", [value, bias], scope.result(op), schema.AddOptionsT())


def along_channels(scope: Scope, op: Operation, tensor: Any, beside: Tensor) -> Tensor:
    """A vector with one element per channel, in a shape that broadcasts against the images."""
    if not op.attrs.get("data_format", "NHWC").startswith("NC"):
        return scope.tensor(tensor)
    rank = scope.shape_of(op.inputs[0]).rank
    if rank is None:
        raise Unsupported("the rank of channels-first images must be known", "give them a static shape")
    known = scope.known(tensor)
    ones = (1,) * (rank - 2)
    if known is not None:
        return scope.constant(known.reshape(-1, *ones), constant_name(tensor))
    vector = scope.tensor(tensor)
    return reshaped(scope, vector, scope.temporary(op, vector.type, (*(vector.shape or (-1,)), *ones)))


@lowers("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def batch_norm(scope: Scope, op: Operation) -> Any:
    x = scope.tensor(op.inputs[0])
    result = scope.result(op)
    epsilon = np.float32(op.attr("epsilon"))
    numbers = [scope.known(tensor) for tensor in op.inputs[1:5]]
    if not op.attr("is_training") and all(each is not None for each in numbers):
        scale, offset, mean, variance = (np.asarray(each, np.float32) for each in numbers)
        factor = (scale / np.sqrt(variance.astype(np.float64) + epsilon)).astype(np.float32)
        addend = (offset - mean.astype(np.float64) * factor).astype(np.float32)
        if op.attr("data_format") == "NCHW":
            factor, addend = factor.reshape(-1, 1, 1), addend.reshape(-1, 1, 1)
        scaled = scope.temporary(op, x.type, x.shape)
        scope.emit("MUL", [x, scope.constant(factor, f"{op.name}/scale")], scaled, schema.MulOptionsT())
        scope.emit("ADD", [scaled, scope.constant(addend, f"{op.name}/offset")], result, schema.AddOptionsT())
        return [result, *[None] * (len(op.outputs) - 1)]
    return _batch_norm_composed(scope, op, x, result, epsilon)


def _batch_norm_composed(scope: Scope, op: Operation, x: Tensor, result: Tensor, epsilon: Any) -> Any:
    """Batch normalization with computed statistics: those of the batch in training, or the results of other nodes."""
    scale, offset = (along_channels(scope, op, tensor, x) for tensor in op.inputs[1:3])
    if op.attr("is_training"):
        channel = 1 if op.attr("data_format") == "NCHW" else 3
        axes = scope.constant([axis for axis in range(4) if axis != channel], "axes", np.int32)
        shape = None if x.shape is None else tuple(size if axis == channel else 1 for axis, size in enumerate(x.shape))
        mean = scope.emit("MEAN", [x, axes], scope.temporary(op, x.type, shape), schema.ReducerOptionsT(keepDims=True))
        squares = scope.temporary(op, x.type, x.shape)
        scope.emit("SQUARED_DIFFERENCE", [x, mean], squares, schema.SquaredDifferenceOptionsT())
        variance = scope.emit(
            "MEAN", [squares, axes], scope.temporary(op, x.type, shape), schema.ReducerOptionsT(keepDims=True)
        )
    else:
        mean, variance = (along_channels(scope, op, tensor, x) for tensor in op.inputs[3:5])
    small = scope.constant(epsilon, dtype=np.float32)
    wide = scope.emit("ADD", [variance, small], scope.temporary(op, x.type, variance.shape), schema.AddOptionsT())
    inverse = scope.emit("RSQRT", [wide], scope.temporary(op, x.type, variance.shape))
    factor = scope.emit("MUL", [inverse, scale], scope.temporary(op, x.type, variance.shape), schema.MulOptionsT())
    centred = scope.emit("SUB", [x, mean], scope.temporary(op, x.type, x.shape), schema.SubOptionsT())
    scaled = scope.emit("MUL", [centred, factor], scope.temporary(op, x.type, x.shape), schema.MulOptionsT())
    scope.emit("ADD", [scaled, offset], result, schema.AddOptionsT())
    return [result, *[None] * (len(op.outputs) - 1)]


@lowers("Softmax")
def softmax(scope: Scope, op: Operation) -> Any:
    return scope.emit("SOFTMAX", scope.inputs(op), scope.result(op), schema.SoftmaxOptionsT(beta=1.0))


@lowers("LogSoftmax")
def log_softmax(scope: Scope, op: Operation) -> Any:
    return scope.emit("LOG_SOFTMAX", scope.inputs(op), scope.result(op), schema.LogSoftmaxOptionsT())


@lowers("LRN")
def local_response_normalization(scope: Scope, op: Operation) -> Any:
    options = schema.LocalResponseNormalizationOptionsT(
        radius=op.attr("depth_radius"), bias=op.attr("bias"), alpha=op.attr("alpha"), beta=op.attr("beta")
    )
    return scope.emit("LOCAL_RESPONSE_NORMALIZATION", scope.inputs(op), scope.result(op), options)


@lowers("L2Loss")
def l2_loss(scope: Scope, op: Operation) -> Any:
    x = scope.tensor(op.inputs[0])
    if x.shape is None:
        raise Unsupported("the input's rank must be known", "give it a static shape")
    squares = scope.emit("SQUARE", [x], scope.temporary(op, x.type, x.shape), schema.SquareOptionsT())
    axes = scope.constant(np.arange(len(x.shape)), "axes", np.int32)
    total = scope.emit("SUM", [squares, axes], scope.temporary(op, x.type, ()), schema.ReducerOptionsT())
    return scope.emit("MUL", [total, scope.constant(0.5, dtype=np.float32)], scope.result(op), schema.MulOptionsT())


def _fake_quant(scope: Scope, op: Operation, low: float, high: float) -> Any:
    if scope.known(op.inputs[0]) is not None:
        # Weights are rounded here. Quantization recovers their range from the grid of their values.
        scope.conversion.model.weight_ranges.append((low, high, op.attr("num_bits"), bool(op.attr("narrow_range"))))
        return _rounded(scope, op)
    options = schema.FakeQuantOptionsT(
        min=low, max=high, numBits=op.attr("num_bits"), narrowRange=op.attr("narrow_range")
    )
    return scope.emit("FAKE_QUANT", [scope.tensor(op.inputs[0])], scope.result(op), options)


def _rounded(scope: Scope, op: Operation) -> Any:
    arrays = [scope.required(tensor, "the range") for tensor in op.inputs]
    found = hooks.evaluate(op, arrays)
    if found is None:
        raise Unsupported("its constant cannot be rounded")
    return found[0]


@lowers("FakeQuantWithMinMaxVarsPerChannel")
def fake_quant_channels(scope: Scope, op: Operation) -> Any:
    if scope.known(op.inputs[0]) is None:
        raise Unsupported("results have one range for all channels", "use FakeQuantWithMinMaxVars")
    return _rounded(scope, op)


@lowers("FakeQuantWithMinMaxArgs")
def fake_quant_args(scope: Scope, op: Operation) -> Any:
    return _fake_quant(scope, op, op.attr("min"), op.attr("max"))


@lowers("FakeQuantWithMinMaxVars")
def fake_quant_vars(scope: Scope, op: Operation) -> Any:
    low, high = (float(scope.required(tensor, "the range")) for tensor in op.inputs[1:3])
    return _fake_quant(scope, op, low, high)
