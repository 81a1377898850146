"""Counts the floating point operations of a node from static shapes, with the rules of TensorFlow's profiler."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

_UNARY = {"Reciprocal": 1, "Square": 1, "Rsqrt": 2, "Log": 1, "Neg": 1, "AssignSub": 1, "Softmax": 5}
_BINARY = {
    "Add": 1, "Sub": 1, "Mul": 1, "RealDiv": 1, "Maximum": 1, "Minimum": 1, "Pow": 1, "GreaterEqual": 1, "Greater": 1,
    "LessEqual": 1, "Less": 1, "Equal": 1, "NotEqual": 1, "SquaredDifference": 2, "RsqrtGrad": 4,
}  # fmt: skip
_REDUCTIONS = {"Mean": (1, 1), "Sum": (1, 0), "ArgMax": (1, 0), "ArgMin": (1, 0), "BiasAddGrad": (1, 0)}


def _sizes(tensor: Any) -> tuple[int, ...] | None:
    shape = tensor.static_shape
    return tuple(shape) if shape.known else None


def _elements(tensor: Any) -> int:
    sizes = _sizes(tensor)
    return 0 if sizes is None else math.prod(sizes)


def _matmul(op: Any) -> int:
    sizes = _sizes(op.inputs[0])
    if sizes is None:
        return 0
    inner = sizes[-2] if op.attrs.get("transpose_a") or op.attrs.get("adj_x") else sizes[-1]
    return 2 * inner * _elements(op.outputs[0])


def _convolution(op: Any) -> int:
    kernel = _sizes(op.inputs[1])
    return 0 if kernel is None else 2 * math.prod(kernel[:3]) * _elements(op.outputs[0])


def _convolution_gradient(op: Any) -> int:
    """The same as the convolution: for each element of its output, a product with each weight."""
    kernel = _sizes(op.inputs[1] if op.type == "Conv2DBackpropInput" else op.outputs[0])
    return 0 if kernel is None else 2 * math.prod(kernel[:3]) * _elements(op.inputs[2])


def _depthwise(op: Any) -> int:
    kernel = _sizes(op.inputs[1])
    return 0 if kernel is None else 2 * math.prod(kernel[:2]) * _elements(op.outputs[0])


def _pooling(op: Any) -> int:
    return math.prod(op.attrs["ksize"]) * _elements(op.outputs[0])


_OTHERS: dict[str, Callable[[Any], int]] = {
    "MatMul": _matmul,
    "Conv2D": _convolution,
    "Conv2DBackpropFilter": _convolution_gradient,
    "Conv2DBackpropInput": _convolution_gradient,
    "DepthwiseConv2dNative": _depthwise,
    "AvgPool": _pooling,
    "MaxPool": _pooling,
    "BiasAdd": lambda op: _elements(op.inputs[0]),
    "AddN": lambda op: _elements(op.outputs[0]) * (len(op.inputs) - 1),
    "L2Loss": lambda op: max(0, 3 * _elements(op.inputs[0]) - 1),
}


def float_operations(op: Any) -> int:
    """Returns the count for one run of an op; 0 if the op is not counted or a shape is unknown."""
    kind = op.type
    if kind in _UNARY:
        return _UNARY[kind] * _elements(op.inputs[0])
    if kind in _BINARY:
        return _BINARY[kind] * _elements(op.outputs[0])
    if kind in _REDUCTIONS:
        each, last = _REDUCTIONS[kind]
        count, results = _elements(op.inputs[0]), _elements(op.outputs[0])
        return count * each + results * (last - each) if count else 0
    return _OTHERS[kind](op) if kind in _OTHERS else 0
