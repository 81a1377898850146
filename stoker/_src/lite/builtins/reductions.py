"""Reductions, argmin and argmax."""

from __future__ import annotations

from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from stoker._src.graph.tensor import Operation
from stoker._src.lite.lowering import Scope, Unsupported, lowers
from stoker._src.lite.model import TYPE_CODES

REDUCTIONS = {
    "All": "REDUCE_ALL",
    "Any": "REDUCE_ANY",
    "Max": "REDUCE_MAX",
    "Mean": "MEAN",
    "Min": "REDUCE_MIN",
    "Prod": "REDUCE_PROD",
    "Sum": "SUM",
}


@lowers(*REDUCTIONS)
def reduction(scope: Scope, op: Operation) -> Any:
    axes = scope.known(op.inputs[1])
    given = scope.int32(op, op.inputs[1])
    if axes is not None:
        if axes.size == 0:
            return scope.values[op.inputs[0]]
        given = scope.constant(np.atleast_1d(axes).astype(np.int32), op.inputs[1].op.name)
    options = schema.ReducerOptionsT(keepDims=op.attr("keep_dims"))
    return scope.emit(REDUCTIONS[op.type], [scope.tensor(op.inputs[0]), given], scope.result(op), options)


@lowers("EuclideanNorm")
def euclidean_norm(scope: Scope, op: Operation) -> Any:
    x, result = scope.tensor(op.inputs[0]), scope.result(op)
    squares = scope.emit("SQUARE", [x], scope.temporary(op, x.type, x.shape), schema.SquareOptionsT())
    options = schema.ReducerOptionsT(keepDims=op.attr("keep_dims"))
    total = scope.emit(
        "SUM", [squares, scope.int32(op, op.inputs[1])], scope.temporary(op, x.type, result.shape), options
    )
    return scope.emit("SQRT", [total], result)


@lowers("ArgMax", "ArgMin")
def arg_extreme(scope: Scope, op: Operation) -> Any:
    result = scope.result(op)
    if result.type not in ("INT32", "INT64"):
        raise Unsupported(
            f"TFLite gives positions as int32 or int64, not as {op.outputs[0].dtype.name}", "use output_type=tf.int64"
        )
    code, options = ("ARG_MAX", schema.ArgMaxOptionsT) if op.type == "ArgMax" else ("ARG_MIN", schema.ArgMinOptionsT)
    inputs = [scope.tensor(op.inputs[0]), scope.int32(op, op.inputs[1])]
    if inputs[0].type == "BOOL":
        inputs[0] = scope.cast(op, inputs[0], "INT32")
    return scope.emit(code, inputs, result, options(outputType=TYPE_CODES[result.type]))


@lowers("TopKV2", "TopK")
def top_k(scope: Scope, op: Operation) -> Any:
    k = scope.constant(op.attr("k"), dtype=np.int32) if op.type == "TopK" else scope.int32(op, op.inputs[1])
    return scope.emit("TOPK_V2", [scope.tensor(op.inputs[0]), k], scope.results(op), schema.TopKV2OptionsT())


@lowers("Cumsum")
def cumsum(scope: Scope, op: Operation) -> Any:
    options = schema.CumsumOptionsT(exclusive=op.attr("exclusive"), reverse=op.attr("reverse"))
    return scope.emit("CUMSUM", [scope.tensor(op.inputs[0]), scope.int32(op, op.inputs[1])], scope.result(op), options)
