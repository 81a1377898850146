"""Nodes that a model for inference does not need: identities, checks, dropout."""

from __future__ import annotations

from typing import Any

from stoker._src.graph.tensor import Operation
from stoker._src.graph.tensor import Tensor as GraphTensor
from stoker._src.lite.lowering import Scope, Unsupported, lowers


@lowers(
    "Identity",
    "StopGradient",
    "PreventGradient",
    "Snapshot",
    "CheckNumerics",
    "CheckNumericsV2",
    "EnsureShape",
    "PlaceholderWithDefault",
    "Print",
    "DeepCopy",
    "DebugGradientIdentity",
    "_EagerConst",
)
def passed(scope: Scope, op: Operation) -> Any:
    return scope.values.get(op.inputs[0])


@lowers("IdentityN")
def passed_all(scope: Scope, op: Operation) -> Any:
    return [scope.values.get(tensor) for tensor in op.inputs]


@lowers("Placeholder", "PlaceholderV2")
def fed(scope: Scope, op: Operation) -> Any:
    raise Unsupported(
        "the outputs need it, and it is not among the inputs of the model", "name it among the inputs of the conversion"
    )


@lowers("NoOp", "Assert", "PrintV2", "ControlTrigger")
def left_out(scope: Scope, op: Operation) -> Any:
    return None


def without_dropout(op: Operation) -> GraphTensor | None:
    """The input of a dropout, if `op` is the last node of a dropout with random numbers.

    The two forms are x / keep_prob * cast(random >= rate), and where(random >= rate, x / keep_prob, 0). Dropout scales the remaining values
    during training, so inference uses x itself.
    """
    if op.type == "Mul":
        for scaled, mask in (op.inputs, op.inputs[::-1]):
            if mask.op.type == "Cast" and _is_mask(mask.op.inputs[0].op):
                return _unscaled(scaled.op)
    if (
        op.type in ("SelectV2", "Select")
        and _is_mask(op.inputs[0].op)
        and op.inputs[2].op.type in ("Const", "Fill", "ZerosLike")
    ):
        return _unscaled(op.inputs[1].op)
    return None


def _is_mask(op: Operation) -> bool:
    return op.type == "GreaterEqual" and _source(op.inputs[0]).type in ("RandomUniform", "StatelessRandomUniformV2")


def _source(tensor: GraphTensor) -> Operation:
    """The op before the arithmetic that maps uniform numbers to a range."""
    op = tensor.op
    while op.type in ("AddV2", "Add", "Mul", "Identity") and op.inputs:
        op = op.inputs[0].op
    return op


def _unscaled(op: Operation) -> GraphTensor | None:
    if op.type in ("Mul", "RealDiv") and op.inputs[1].static_shape.rank == 0:
        return op.inputs[0]
    return None
