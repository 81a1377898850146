"""Random numbers. LiteRT has its own generator, so the numbers differ from the graph's."""

from __future__ import annotations

from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from stoker._src.graph.tensor import Operation
from stoker._src.lite.lowering import Scope, Unsupported, lowers


@lowers("RandomUniform", "RandomStandardNormal")
def random(scope: Scope, op: Operation) -> Any:
    code = "RANDOM_UNIFORM" if op.type == "RandomUniform" else "RANDOM_STANDARD_NORMAL"
    result = scope.result(op)
    if result.type != "FLOAT32":
        raise Unsupported(f"TFLite draws float32, not {op.outputs[0].dtype.name}", "draw float32 and cast")
    options = schema.RandomOptionsT(seed=op.attr("seed"), seed2=op.attr("seed2"))
    return scope.emit(code, [scope.int32(op, op.inputs[0])], result, options)


@lowers("Multinomial")
def multinomial(scope: Scope, op: Operation) -> Any:
    options = schema.RandomOptionsT(seed=op.attr("seed"), seed2=op.attr("seed2"))
    return scope.emit(
        "MULTINOMIAL", [scope.tensor(op.inputs[0]), scope.int32(op, op.inputs[1])], scope.result(op), options
    )


@lowers("RandomUniformInt")
def random_uniform_int(scope: Scope, op: Operation) -> Any:
    low, high = (scope.required(tensor, "the range") for tensor in op.inputs[1:])
    result = scope.result(op)
    options = schema.RandomOptionsT(seed=op.attr("seed"), seed2=op.attr("seed2"))
    drawn = scope.emit(
        "RANDOM_UNIFORM", [scope.int32(op, op.inputs[0])], scope.temporary(op, "FLOAT32", result.shape), options
    )
    spread = scope.emit(
        "MUL",
        [drawn, scope.constant(high - low, dtype=np.float32)],
        scope.temporary(op, "FLOAT32", result.shape),
        schema.MulOptionsT(),
    )
    down = scope.emit("FLOOR", [spread], scope.temporary(op, "FLOAT32", result.shape))
    whole = scope.cast(op, down, result.type)
    low_constant = scope.constant(low, dtype=op.outputs[0].dtype.as_numpy_dtype)
    return scope.emit("ADD", [whole, low_constant], result, schema.AddOptionsT())
