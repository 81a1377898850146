"""Element-wise ops: functions of one tensor, arithmetic, comparisons, choices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from stoker._src.graph.tensor import Operation
from stoker._src.lite.builtins.passing import without_dropout
from stoker._src.lite.lowering import Scope, Unsupported, lowers
from stoker._src.lite.model import TYPE_CODES, Tensor, numpy_dtype, type_of

# ---- one builtin each ---------------------------------------------------------------------------------------------

# op -> builtin, class of options
UNARY: dict[str, tuple[str, Any]] = {
    "Abs": ("ABS", schema.AbsOptionsT),
    "Ceil": ("CEIL", None),
    "Cos": ("COS", schema.CosOptionsT),
    "Elu": ("ELU", None),
    "Exp": ("EXP", schema.ExpOptionsT),
    "Floor": ("FLOOR", None),
    "Log": ("LOG", None),
    "LogicalNot": ("LOGICAL_NOT", schema.LogicalNotOptionsT),
    "Neg": ("NEG", schema.NegOptionsT),
    "Relu": ("RELU", None),
    "Relu6": ("RELU6", None),
    "Rint": ("ROUND", None),
    "Round": ("ROUND", None),
    "Rsqrt": ("RSQRT", None),
    "Sigmoid": ("LOGISTIC", None),
    "Sign": ("SIGN", schema.SignOptionsT),
    "Sin": ("SIN", None),
    "Sqrt": ("SQRT", None),
    "Square": ("SQUARE", schema.SquareOptionsT),
    "Tanh": ("TANH", None),
    "ZerosLike": ("ZEROS_LIKE", schema.ZerosLikeOptionsT),
}
BINARY: dict[str, tuple[str, Any]] = {
    "Atan2": ("ATAN2", schema.ATan2OptionsT),
    "BitwiseXor": ("BITWISE_XOR", schema.BitwiseXorOptionsT),
    "Equal": ("EQUAL", schema.EqualOptionsT),
    "FloorDiv": ("FLOOR_DIV", schema.FloorDivOptionsT),
    "FloorMod": ("FLOOR_MOD", schema.FloorModOptionsT),
    "Greater": ("GREATER", schema.GreaterOptionsT),
    "GreaterEqual": ("GREATER_EQUAL", schema.GreaterEqualOptionsT),
    "Less": ("LESS", schema.LessOptionsT),
    "LessEqual": ("LESS_EQUAL", schema.LessEqualOptionsT),
    "LogicalAnd": ("LOGICAL_AND", schema.LogicalAndOptionsT),
    "LogicalOr": ("LOGICAL_OR", schema.LogicalOrOptionsT),
    "Maximum": ("MAXIMUM", schema.MaximumMinimumOptionsT),
    "Minimum": ("MINIMUM", schema.MaximumMinimumOptionsT),
    "NotEqual": ("NOT_EQUAL", schema.NotEqualOptionsT),
    "Pow": ("POW", schema.PowOptionsT),
    "RightShift": ("RIGHT_SHIFT", schema.RightShiftOptionsT),
    "SquaredDifference": ("SQUARED_DIFFERENCE", schema.SquaredDifferenceOptionsT),
}
# Ops that an activation can be fused into.
ARITHMETIC: dict[str, tuple[str, Any]] = {
    "Add": ("ADD", schema.AddOptionsT),
    "AddV2": ("ADD", schema.AddOptionsT),
    "Div": ("DIV", schema.DivOptionsT),
    "RealDiv": ("DIV", schema.DivOptionsT),
    "Sub": ("SUB", schema.SubOptionsT),
    "TruncateDiv": ("DIV", schema.DivOptionsT),
}


# The limits of clamps, whose kernels take floating point only.
_CLAMPS = {"Relu": (("MAXIMUM", 0),), "Relu6": (("MAXIMUM", 0), ("MINIMUM", 6))}


def _unary(scope: Scope, op: Operation) -> Any:
    code, options = UNARY[op.type]
    if op.type == "Square" and op.outputs[0].dtype.is_integer:
        # The kernel takes floating point only.
        x = scope.tensor(op.inputs[0])
        return scope.emit("MUL", [x, x], scope.result(op), schema.MulOptionsT())
    if op.type in _CLAMPS and op.outputs[0].dtype.is_integer:
        x = scope.tensor(op.inputs[0])
        for code, limit in _CLAMPS[op.type]:
            bound = scope.constant(limit, dtype=op.outputs[0].dtype.as_numpy_dtype)
            x = scope.emit(code, [x, bound], scope.temporary(op, x.type, x.shape), schema.MaximumMinimumOptionsT())
        return x
    return scope.emit(code, scope.inputs(op), scope.result(op), options and options())


def _binary(scope: Scope, op: Operation) -> Any:
    code, options = BINARY[op.type]
    if op.type in ("Equal", "NotEqual") and not op.attrs.get("incompatible_shape_error", True):
        raise Unsupported("it compares tensors of shapes that may not fit (incompatible_shape_error=False)")
    return scope.emit(code, scope.inputs(op), scope.result(op), options())


def _arithmetic(scope: Scope, op: Operation) -> Any:
    code, options = ARITHMETIC[op.type]
    if op.type in ("Add", "AddV2") and type_of(op.outputs[0].dtype) == "STRING":
        raise Unsupported("TFLite does not join strings", "join them before the model")
    return scope.emit(code, scope.inputs(op), scope.result(op), options())


lowers(*UNARY)(_unary)
lowers(*BINARY)(_binary)
lowers(*ARITHMETIC)(_arithmetic)


@lowers("Mul")
def mul(scope: Scope, op: Operation) -> Any:
    kept = without_dropout(op)
    if kept is not None and kept in scope.values:
        return scope.values[kept]
    return scope.emit("MUL", scope.inputs(op), scope.result(op), schema.MulOptionsT())


@lowers("LeakyRelu")
def leaky_relu(scope: Scope, op: Operation) -> Any:
    return scope.emit(
        "LEAKY_RELU", scope.inputs(op), scope.result(op), schema.LeakyReluOptionsT(alpha=op.attr("alpha"))
    )


@lowers("AddN", "AccumulateNV2")
def add_n(scope: Scope, op: Operation) -> Any:
    inputs = scope.inputs(op)
    if len(inputs) == 1:
        return inputs[0]
    if len(inputs) == 2:
        return scope.emit("ADD", inputs, scope.result(op), schema.AddOptionsT())
    return scope.emit("ADD_N", inputs, scope.result(op), schema.AddNOptionsT())


@lowers("Cast")
def cast(scope: Scope, op: Operation) -> Any:
    source, result = scope.tensor(op.inputs[0]), scope.result(op)
    if source.type == result.type:
        return source
    options = schema.CastOptionsT(inDataType=TYPE_CODES[source.type], outDataType=TYPE_CODES[result.type])
    return scope.emit("CAST", [source], result, options)


@lowers("Bitcast")
def bitcast(scope: Scope, op: Operation) -> Any:
    return scope.emit("BITCAST", scope.inputs(op), scope.result(op), schema.BitcastOptionsT())


@lowers("Select")
def select(scope: Scope, op: Operation) -> Any:
    kept = without_dropout(op)
    if kept is not None and kept in scope.values:
        return scope.values[kept]
    return scope.emit("SELECT", scope.inputs(op), scope.result(op), schema.SelectOptionsT())


@lowers("SelectV2")
def select_v2(scope: Scope, op: Operation) -> Any:
    kept = without_dropout(op)
    if kept is not None and kept in scope.values:
        return scope.values[kept]
    return scope.emit("SELECT_V2", scope.inputs(op), scope.result(op), schema.SelectV2OptionsT())


@lowers("ClipByValue")
def clip_by_value(scope: Scope, op: Operation) -> Any:
    value, low, high = scope.inputs(op)
    below = scope.emit(
        "MINIMUM", [value, high], scope.temporary(op, value.type, value.shape), schema.MaximumMinimumOptionsT()
    )
    return scope.emit("MAXIMUM", [below, low], scope.result(op), schema.MaximumMinimumOptionsT())


@lowers("OnesLike")
def ones_like(scope: Scope, op: Operation) -> Any:
    value = scope.tensor(op.inputs[0])
    zeros = scope.emit("ZEROS_LIKE", [value], scope.temporary(op, value.type, value.shape), schema.ZerosLikeOptionsT())
    return scope.emit(
        "ADD", [zeros, scope.constant(1, dtype=numpy_dtype(value.type))], scope.result(op), schema.AddOptionsT()
    )


# ---- composed -----------------------------------------------------------------------------------------------------


class Expression:
    """Arithmetic for ops that are composed of several builtins."""

    def __init__(self, scope: Scope, op: Operation) -> None:
        self.scope, self.op = scope, op
        self.shape = scope.result(op).shape

    def number(self, value: float, like: Tensor) -> Tensor:
        return self.scope.constant(value, dtype=numpy_dtype(like.type))

    def of(self, code: str, *inputs: Tensor, type_name: str | None = None, shape: Any = None) -> Tensor:
        options = OPTIONS.get(code)
        made = self.scope.temporary(self.op, type_name or inputs[0].type, self.shape if shape is None else shape)
        return self.scope.emit(code, inputs, made, options and options())

    def last(self, code: str, *inputs: Tensor) -> Tensor:
        options = OPTIONS.get(code)
        return self.scope.emit(code, inputs, self.scope.result(self.op), options and options())


OPTIONS: dict[str, Any] = {code: options for table in (UNARY, BINARY, ARITHMETIC) for code, options in table.values()}
OPTIONS |= {"MUL": schema.MulOptionsT, "SELECT_V2": schema.SelectV2OptionsT, "SELECT": schema.SelectOptionsT}

Composition = Callable[..., Any]


def composed(*types: str) -> Callable[[Composition], Composition]:
    def attach(function: Composition) -> Composition:
        def lowering(scope: Scope, op: Operation) -> Any:
            return function(Expression(scope, op), *scope.inputs(op))

        lowers(*types)(lowering)
        return function

    return attach


@composed("Reciprocal", "Inv")
def reciprocal(e: Expression, x: Tensor) -> Tensor:
    return e.last("DIV", e.number(1, x), x)


@composed("Expm1")
def expm1(e: Expression, x: Tensor) -> Tensor:
    return e.last("SUB", e.of("EXP", x), e.number(1, x))


@composed("Log1p")
def log1p(e: Expression, x: Tensor) -> Tensor:
    return e.last("LOG", e.of("ADD", x, e.number(1, x)))


@composed("Softplus")
def softplus(e: Expression, x: Tensor) -> Tensor:
    # log(1 + exp(x)) = relu(x) - log(sigmoid(|x|)), which neither overflows nor takes the logarithm of a small number.
    return e.last("SUB", e.of("RELU", x), e.of("LOG", e.of("LOGISTIC", e.of("ABS", x))))


@composed("Softsign")
def softsign(e: Expression, x: Tensor) -> Tensor:
    return e.last("DIV", x, e.of("ADD", e.of("ABS", x), e.number(1, x)))


@composed("Selu")
def selu(e: Expression, x: Tensor) -> Tensor:
    scale, alpha = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717
    below = e.of("MUL", e.of("ELU", e.of("MINIMUM", x, e.number(0, x))), e.number(scale * alpha, x))
    return e.last("ADD", e.of("MUL", e.of("RELU", x), e.number(scale, x)), below)


@composed("Tan")
def tan(e: Expression, x: Tensor) -> Tensor:
    return e.last("DIV", e.of("SIN", x), e.of("COS", x))


@composed("Sinh")
def sinh(e: Expression, x: Tensor) -> Tensor:
    difference = e.of("SUB", e.of("EXP", x), e.of("EXP", e.of("NEG", x)))
    return e.last("MUL", difference, e.number(0.5, x))


@composed("Cosh")
def cosh(e: Expression, x: Tensor) -> Tensor:
    return e.last("MUL", e.of("ADD", e.of("EXP", x), e.of("EXP", e.of("NEG", x))), e.number(0.5, x))


@composed("Atan")
def atan(e: Expression, x: Tensor) -> Tensor:
    # Both arguments have the same shape.
    return e.last("ATAN2", x, e.of("ADD", e.of("ZEROS_LIKE", x), e.number(1, x)))


@composed("Asin")
def asin(e: Expression, x: Tensor) -> Tensor:
    return e.last("ATAN2", x, e.of("SQRT", e.of("SUB", e.number(1, x), e.of("SQUARE", x))))


@composed("Acos")
def acos(e: Expression, x: Tensor) -> Tensor:
    return e.last("ATAN2", e.of("SQRT", e.of("SUB", e.number(1, x), e.of("SQUARE", x))), x)


@composed("IsNan")
def is_nan(e: Expression, x: Tensor) -> Tensor:
    return e.last("NOT_EQUAL", x, x)


@composed("IsInf")
def is_inf(e: Expression, x: Tensor) -> Tensor:
    return e.last("EQUAL", e.of("ABS", x), e.number(np.inf, x))


@composed("IsFinite")
def is_finite(e: Expression, x: Tensor) -> Tensor:
    return e.last("LESS", e.of("ABS", x), e.number(np.inf, x))


@composed("LogicalXor")
def logical_xor(e: Expression, x: Tensor, y: Tensor) -> Tensor:
    return e.last("NOT_EQUAL", x, y)


@composed("DivNoNan")
def div_no_nan(e: Expression, x: Tensor, y: Tensor) -> Tensor:
    if y.data is not None and y.data.all():
        return e.last("DIV", x, y)
    zero = e.number(0, x)
    return e.last("SELECT_V2", e.of("EQUAL", y, zero, type_name="BOOL", shape=y.shape), zero, e.of("DIV", x, y))


@composed("MulNoNan")
def mul_no_nan(e: Expression, x: Tensor, y: Tensor) -> Tensor:
    zero = e.number(0, x)
    return e.last("SELECT_V2", e.of("EQUAL", y, zero, type_name="BOOL", shape=y.shape), zero, e.of("MUL", x, y))


@composed("Xlogy")
def xlogy(e: Expression, x: Tensor, y: Tensor) -> Tensor:
    zero = e.number(0, x)
    product = e.of("MUL", x, e.of("LOG", y, shape=y.shape))
    return e.last("SELECT_V2", e.of("EQUAL", x, zero, type_name="BOOL", shape=x.shape), zero, product)


@composed("Xdivy")
def xdivy(e: Expression, x: Tensor, y: Tensor) -> Tensor:
    zero = e.number(0, x)
    return e.last("SELECT_V2", e.of("EQUAL", x, zero, type_name="BOOL", shape=x.shape), zero, e.of("DIV", x, y))


@composed("ReluGrad")
def relu_grad(e: Expression, gradient: Tensor, features: Tensor) -> Tensor:
    zero = e.number(0, gradient)
    above = e.of("GREATER", features, zero, type_name="BOOL", shape=features.shape)
    return e.last("SELECT_V2", above, gradient, zero)


@composed("SigmoidGrad")
def sigmoid_grad(e: Expression, y: Tensor, gradient: Tensor) -> Tensor:
    return e.last("MUL", e.of("MUL", gradient, y), e.of("SUB", e.number(1, y), y))


@composed("TanhGrad")
def tanh_grad(e: Expression, y: Tensor, gradient: Tensor) -> Tensor:
    return e.last("MUL", gradient, e.of("SUB", e.number(1, y), e.of("SQUARE", y)))


@composed("TruncateMod", "Mod")
def truncate_mod(e: Expression, x: Tensor, y: Tensor) -> Tensor:
    if x.type != "INT32":
        raise Unsupported(f"TFLite divides {x.type} without a remainder towards zero", "use tf.math.floormod")
    quotient = e.of("DIV", x, y)
    return e.last("SUB", x, e.of("MUL", quotient, y))
