"""Rewrites operators that have no integer kernels to equal ones that have, before ranges are observed."""

from __future__ import annotations

import math

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from stoker._src.lite.model import TYPE_CODES, Model, Operator, Subgraph, Tensor
from stoker._src.lite.quantization.calibration import Ranges
from stoker._src.lite.quantization.schemes import INT8, INT16, Scheme


def use_integer_forms(model: Model, scheme: Scheme, trained: bool, strict: bool = False) -> None:
    """Replaces operators by forms with integer kernels, in all subgraphs.

    Args:
        model: the float model.
        scheme: the number formats.
        trained: whether ranges come from training, which knows no tensors between two operators.
        strict: whether floating point is not allowed, so that forms that lose precision are better than none.
    """
    for subgraph in model.subgraphs:
        _leave_out_finiteness(subgraph)
        producers, consumers = subgraph.producers(), subgraph.consumers()
        made: list[Operator] = []
        for operator in subgraph.operators:
            if not all(each is None or each.type == "FLOAT32" for each in (*operator.inputs[:1], *operator.outputs)):
                if operator.code == "EMBEDDING_LOOKUP" and operator.outputs[0].type == "FLOAT32":
                    operator.code, operator.inputs = "GATHER", operator.inputs[1::-1]
                    operator.options = schema.GatherOptionsT()
            elif operator.code == "SQUARE":
                _become_product(operator, operator.inputs[0], operator.inputs[0])
            elif operator.code == "NEG":
                _become_product(operator, operator.inputs[0], _scalar(-1.0, "minus_one"))
            elif operator.code == "DIV":
                root = producers.get(operator.inputs[1])  # type: ignore[arg-type]
                if root is not None and root.code == "SQRT" and is_private(subgraph, consumers, root.outputs[0]):
                    root.code = "RSQRT"
                    activation = operator.options.fusedActivationFunction
                    _become_product(operator, *operator.inputs[:2], activation=activation)
            elif operator.code == "ZEROS_LIKE":
                shape = operator.outputs[0].shape
                found = Tensor(f"{operator.outputs[0].name}/shape", "INT32", None if shape is None else (len(shape),))
                made.append(
                    Operator("SHAPE", operator.inputs, [found], schema.ShapeOptionsT(outType=TYPE_CODES["INT32"]))
                )
                operator.code, operator.inputs = "FILL", [found, _scalar(0.0, "zero")]
                operator.options = schema.FillOptionsT()
            elif operator.code == "SQUARED_DIFFERENCE" and not trained:
                # Its kernel for integers takes many times as long as those of the two.
                (result,) = operator.outputs
                difference = Tensor(f"{result.name}/difference", "FLOAT32", result.shape)
                made.append(Operator("SUB", operator.inputs, [difference], schema.SubOptionsT()))
                _become_product(operator, difference, difference)
            elif operator.code == "RELU_0_TO_1" and scheme is INT16:
                (result,) = operator.outputs
                above = Tensor(f"{result.name}/above", "FLOAT32", result.shape)
                made.append(Operator("RELU", operator.inputs, [above]))
                operator.code, operator.inputs = "MINIMUM", [above, _scalar(1.0, "one")]
                operator.options = schema.MaximumMinimumOptionsT()
            elif operator.code == "ADD_N" and strict and not trained:
                made.extend(_sums(operator))
                continue
            elif operator.code in _STRICT_FORMS and strict and not trained and scheme is INT8:
                made.extend(_STRICT_FORMS[operator.code](operator) or [operator])
                continue
            elif operator.code == "PRELU" and scheme is INT16:
                # The kernel for 16 bits takes the slopes for smaller numbers than they are.
                made.extend(_relus(operator))
                continue
            made.append(operator)
        subgraph.operators = made


# The largest quotient of the bounds of a divisor whose reciprocal has steps enough.
_WIDEST = 256.0


def use_reciprocals(model: Model, ranges: Ranges) -> None:
    """Replaces x / y by x * exp(-log(y)), which has integer kernels, where y is positive in all samples. (Those of RSQRT are slower.)"""
    for subgraph in model.subgraphs:
        made: list[Operator] = []
        for operator in subgraph.operators:
            divisor = operator.inputs[1] if operator.code == "DIV" else None
            if divisor is not None and divisor.type == "FLOAT32" and not divisor.is_constant:
                low, high = ranges.get(divisor, (0.0, 0.0))
                if low > 0 and high <= _WIDEST * low:
                    logarithm, negated, inverse = (
                        Tensor(f"{operator.outputs[0].name}/{name}", "FLOAT32", divisor.shape)
                        for name in ("logarithm", "negated", "reciprocal")
                    )
                    ranges[logarithm] = (math.log(low), math.log(high))
                    ranges[negated] = (-math.log(high), -math.log(low))
                    ranges[inverse] = (1 / high, 1 / low)
                    made.append(Operator("LOG", [divisor], [logarithm]))
                    minus = _scalar(-1.0, "minus_one")
                    made.append(Operator("MUL", [logarithm, minus], [negated], schema.MulOptionsT()))
                    made.append(Operator("EXP", [negated], [inverse], schema.ExpOptionsT()))
                    activation = operator.options.fusedActivationFunction
                    _become_product(operator, operator.inputs[0], inverse, activation=activation)
            made.append(operator)
        subgraph.operators = made


def _leave_out_finiteness(subgraph: Subgraph) -> None:
    """Drops choices by whether numbers are finite, as in the logarithm of a sum of exponentials: quantized numbers are."""
    producers = subgraph.producers()
    chosen: dict[Tensor, Tensor] = {}
    for operator in subgraph.operators:
        operator.inputs = [each if each is None else chosen.get(each, each) for each in operator.inputs]
        if operator.code not in ("SELECT", "SELECT_V2"):
            continue
        condition, value, _ = operator.inputs
        (result,) = operator.outputs
        test = None if condition is None else producers.get(condition)
        bound = test.inputs[1] if test is not None and test.code == "LESS" else None
        if bound is None or bound.data is None or not np.isposinf(bound.data).all() or result in subgraph.outputs:
            continue
        if value is not None and value.shape == result.shape and value.type == "FLOAT32":
            chosen[result] = value
    needed = set(subgraph.outputs)
    kept = []
    for operator in reversed(subgraph.operators):
        if operator.code in ("SELECT", "SELECT_V2", "LESS", "ABS") and needed.isdisjoint(operator.outputs):
            continue
        kept.append(operator)
        needed.update(each for each in operator.inputs if each is not None)
    subgraph.operators = kept[::-1]


def _sums(operator: Operator) -> list[Operator]:
    """x + y + z, one after the other."""
    (result,) = operator.outputs
    first, *others = operator.inputs
    made = []
    for place, each in enumerate(others, 1):
        last = place == len(others)
        total = result if last else Tensor(f"{result.name}/sum_{place}", "FLOAT32", result.shape)
        made.append(Operator("ADD", [first, each], [total], schema.AddOptionsT()))
        first = total
    return made


def _signs(operator: Operator) -> list[Operator]:
    """(x > 0) - (x < 0)."""
    (x,), (result,) = operator.inputs, operator.outputs
    made, signs = [], []
    for code, name, options in (
        ("GREATER", "above", schema.GreaterOptionsT()),
        ("LESS", "below", schema.LessOptionsT()),
    ):
        truth = Tensor(f"{result.name}/is_{name}", "BOOL", result.shape)
        sign = Tensor(f"{result.name}/{name}", "FLOAT32", result.shape)
        made += [
            Operator(code, [x, _scalar(0.0, "zero")], [truth], options),
            Operator("CAST", [truth], [sign], schema.CastOptionsT()),
        ]
        signs.append(sign)
    return [*made, Operator("SUB", signs, [result], schema.SubOptionsT())]


def _normalized_by_channels(operator: Operator) -> list[Operator]:
    """x * exp(-beta * log(bias + alpha * sums)), where a convolution adds the squares of neighbouring channels. Empty if their number is not known."""
    (x,), (result,), options = operator.inputs, operator.outputs, operator.options
    if x is None or x.shape is None or len(x.shape) != 4 or x.shape[3] < 1 or options.bias <= 0:
        return []
    count = x.shape[3]
    places = np.arange(count)
    near = np.abs(places[:, None] - places) <= options.radius
    weights = (options.alpha * near).astype(np.float32).reshape(count, 1, 1, count)
    names = ("squares", "sums", "logarithm", "exponent", "factor")
    squares, sums, logarithm, exponent, factor = (Tensor(f"{result.name}/{name}", "FLOAT32", x.shape) for name in names)
    filters = Tensor(f"{result.name}/neighbours", "FLOAT32", weights.shape, weights)
    bias = Tensor(f"{result.name}/bias", "FLOAT32", (count,), np.full(count, options.bias, np.float32))
    convolution = schema.Conv2DOptionsT(strideH=1, strideW=1, dilationHFactor=1, dilationWFactor=1)
    return [
        Operator("MUL", [x, x], [squares], schema.MulOptionsT()),
        Operator("CONV_2D", [squares, filters, bias], [sums], convolution),
        Operator("LOG", [sums], [logarithm]),
        Operator("MUL", [logarithm, _scalar(-options.beta, "minus_beta")], [exponent], schema.MulOptionsT()),
        Operator("EXP", [exponent], [factor], schema.ExpOptionsT()),
        Operator("MUL", [x, factor], [result], schema.MulOptionsT()),
    ]


# Where floating point is not allowed, these are better than none.
_STRICT_FORMS = {"SIGN": _signs, "LOCAL_RESPONSE_NORMALIZATION": _normalized_by_channels}


def is_private(subgraph: Subgraph, consumers: dict[Tensor, list[Operator]], tensor: Tensor) -> bool:
    """Whether one operator reads a tensor, and nothing else."""
    return len(consumers[tensor]) == 1 and tensor not in subgraph.outputs


def _become_product(operator: Operator, left: Tensor | None, right: Tensor | None, activation: int = 0) -> None:
    operator.code, operator.inputs = "MUL", [left, right]
    operator.options = schema.MulOptionsT(fusedActivationFunction=activation)


def _scalar(value: float, name: str) -> Tensor:
    return Tensor(name, "FLOAT32", (), np.array(value, np.float32))


def _relus(operator: Operator) -> list[Operator]:
    """max(x, 0) + slope * min(x, 0)."""
    x, slope = operator.inputs
    (result,) = operator.outputs
    above, below, scaled = (
        Tensor(f"{result.name}/{name}", "FLOAT32", result.shape) for name in ("above", "below", "scaled")
    )
    return [
        Operator("RELU", [x], [above]),
        Operator("MINIMUM", [x, _scalar(0.0, "zero")], [below], schema.MaximumMinimumOptionsT()),
        Operator("MUL", [below, slope], [scaled], schema.MulOptionsT()),
        Operator("ADD", [above, scaled], [result], schema.AddOptionsT()),
    ]
