"""Compositions for which TFLite has a builtin: gelu, hard swish, softmax, l2 normalization and pooling, leaky and parametric relu, LSTM cells."""

from __future__ import annotations

import math

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from stoker._src.lite.model import Operator, Tensor
from stoker._src.lite.passes.editing import Editor, Rule, is_float, plain, scalar

_SQRT_HALF = math.sqrt(0.5)


def near(value: float | None, wanted: float) -> bool:
    """Whether a constant equals a number up to float32 rounding, or up to the few digits that papers print."""
    return value is not None and abs(value - wanted) <= 1e-4 * abs(wanted)


def factors(editor: Editor, operator: Operator, most: int = 8) -> tuple[float, list[Tensor]]:
    """The factors of a product: all constants multiplied into one number, and the tensors. A divisor n counts as the factor 1 / n."""
    number, tensors = 1.0, []
    waiting: list[Tensor] = [operator.outputs[0]]
    first = True
    while waiting:
        tensor = waiting.pop()
        value = scalar(tensor)
        maker = editor.made_by(tensor, "MUL", "DIV", "NEG")
        inside = maker is not None and plain(maker) and (first or len(editor.consumers.get(tensor, ())) == 1)
        first = False
        if value is not None:
            number *= value
        elif maker is not None and inside and len(tensors) + len(waiting) < most:
            a, b = maker.inputs[0], maker.inputs[-1]
            assert a is not None
            assert b is not None
            if maker.code == "NEG":
                number = -number
                waiting.append(a)
                continue
            if maker.code == "MUL":
                waiting.extend((b, a))
                continue
            divisor = scalar(b)
            if divisor is None or divisor == 0:
                tensors.append(tensor)
            else:
                number /= divisor
                waiting.append(a)
        else:
            tensors.append(tensor)
    return number, tensors


def terms(operator: Operator | None) -> tuple[float, Tensor] | None:
    """The number and the tensor of `number + tensor`."""
    if operator is None or operator.code != "ADD" or not plain(operator):
        return None
    for value, other in (operator.inputs, operator.inputs[::-1]):
        number = scalar(other)
        if number is not None and value is not None:
            return number, value
    return None


def _scaled(editor: Editor, tensor: Tensor | None) -> tuple[float, list[Tensor]]:
    maker = editor.made_by(tensor, "MUL", "DIV", "NEG")
    if maker is not None:
        return factors(editor, maker)
    return 1.0, [] if tensor is None else [tensor]


def gelu(editor: Editor, operator: Operator) -> bool:
    """0.5 * x * (1 + erf(x / sqrt(2))), 0.5 * x * erfc(-x / sqrt(2)), or the first with tanh(sqrt(2 / pi) * (x + 0.044715 * x ** 3)) in place of erf."""
    if not is_float(operator.outputs[0]) or not plain(operator):
        return False
    number, tensors = factors(editor, operator)
    if not near(number, 0.5) or len(tensors) != 2:
        return False
    for x, other in (tensors, tensors[::-1]):
        tail = editor.producer(other)
        if tail is not None and tail.kind == "Erfc" and x.shape == operator.outputs[0].shape:
            scale, inner = _scaled(editor, tail.inputs[0])
            if near(scale, -_SQRT_HALF) and inner == [x]:
                editor.change(operator, "GELU", [x], options=schema.GeluOptionsT(approximate=False))
                return True
        sum_ = terms(tail)
        if sum_ is None or not near(sum_[0], 1) or x.shape != operator.outputs[0].shape:
            continue
        curve = editor.producer(sum_[1])
        if curve is None:
            continue
        scale, inner = _scaled(editor, curve.inputs[0])
        if curve.kind == "Erf" and near(scale, _SQRT_HALF) and inner == [x]:
            editor.change(operator, "GELU", [x], options=schema.GeluOptionsT(approximate=False))
            return True
        if (
            curve.code == "TANH"
            and near(scale, math.sqrt(2 / math.pi))
            and len(inner) == 1
            and _is_cubic(editor, inner[0], x)
        ):
            editor.change(operator, "GELU", [x], options=schema.GeluOptionsT(approximate=True))
            return True
    return False


def _is_cubic(editor: Editor, tensor: Tensor, x: Tensor) -> bool:
    """x + 0.044715 * x ** 3, or x * (1 + 0.044715 * x ** 2)."""
    total = editor.made_by(tensor, "ADD")
    if total is None or not plain(total):
        return False
    for value, other in (total.inputs, total.inputs[::-1]):
        if value is x and other is not None:
            number, tensors = _scaled(editor, other)
            if near(number, 0.044715) and _degree(editor, tensors, x) == 3:
                return True
    return False


def _degree(editor: Editor, tensors: list[Tensor], x: Tensor) -> float:
    """The power of x that equals the product of the tensors, or nan if there is none."""
    degree = 0.0
    for tensor in tensors:
        maker = editor.producer(tensor)
        if tensor is x:
            degree += 1
        elif maker is not None and maker.code == "SQUARE" and maker.inputs[0] is x:
            degree += 2
        elif maker is not None and maker.code == "POW" and maker.inputs[0] is x:
            degree += scalar(maker.inputs[1]) or math.nan
        else:
            return math.nan
    return degree


def hard_swish(editor: Editor, operator: Operator) -> bool:
    """x * relu6(x + 3) / 6."""
    if not is_float(operator.outputs[0]) or not plain(operator):
        return False
    number, tensors = factors(editor, operator)
    if not near(number, 1 / 6) or len(tensors) != 2:
        return False
    for x, other in (tensors, tensors[::-1]):
        gate = editor.made_by(other, "RELU6")
        sum_ = terms(editor.producer(gate.inputs[0])) if gate is not None else None
        if sum_ is not None and near(sum_[0], 3) and sum_[1] is x and x.shape == operator.outputs[0].shape:
            editor.change(operator, "HARD_SWISH", [x], options=schema.HardSwishOptionsT())
            return True
    return False


def l2_normalization(editor: Editor, operator: Operator) -> bool:
    """x * rsqrt(max(sum(x ** 2), 1e-12)) along the last dimension, with a bound of up to 1e-10."""
    if operator.code != "MUL" or not plain(operator):
        return False
    for x, other in (operator.inputs, operator.inputs[::-1]):
        root = editor.made_by(other, "RSQRT")
        bound = editor.made_by(root.inputs[0], "MAXIMUM") if root is not None else None
        if bound is None or x is None or x.shape is None or not is_float(x):
            continue
        for sum_tensor, smallest in (bound.inputs, bound.inputs[::-1]):
            total = editor.made_by(sum_tensor, "SUM")
            # The builtin's own lower bound is 1e-6 of the norm. One of 1e-5, as embeddings of faces have it, is as good as that.
            if total is None or scalar(smallest) is None or not 0 < (scalar(smallest) or 0) <= 1.01e-10:
                continue
            square = editor.made_by(total.inputs[0], "SQUARE")
            axes = None if total.inputs[1] is None else total.inputs[1].data
            if square is None or square.inputs[0] is not x or axes is None or not total.options.keepDims:
                continue
            if axes.reshape(-1).tolist() in ([-1], [len(x.shape) - 1]):
                editor.change(operator, "L2_NORMALIZATION", [x], options=schema.L2NormOptionsT())
                return True
    return False


def l2_pool(editor: Editor, operator: Operator) -> bool:
    """sqrt(average_pool(x ** 2)). The pooling must not include padding."""
    pool = editor.made_by(operator.inputs[0], "AVERAGE_POOL_2D")
    square = editor.made_by(pool.inputs[0], "SQUARE") if pool is not None else None
    if pool is None or square is None or not plain(pool) or not editor.is_private(pool.outputs[0], operator):
        return False
    editor.change(operator, "L2_POOL_2D", [square.inputs[0]], options=pool.options)
    return True


def softmax(editor: Editor, operator: Operator) -> bool:
    """exp(x) / sum(exp(x)) along the last dimension."""
    numerator, denominator = operator.inputs
    power, total = editor.made_by(numerator, "EXP"), editor.made_by(denominator, "SUM")
    if power is None or total is None or not plain(operator) or total.inputs[0] is not numerator:
        return False
    x, axes = power.inputs[0], None if total.inputs[1] is None else total.inputs[1].data
    if x is None or not x.shape or not is_float(x) or axes is None or not total.options.keepDims:
        return False
    if axes.reshape(-1).tolist() not in ([-1], [len(x.shape) - 1]):
        return False
    editor.change(operator, "SOFTMAX", [x], options=schema.SoftmaxOptionsT(beta=1.0))
    return True


def shifted_softmax(editor: Editor, operator: Operator) -> bool:
    """softmax(x - c) with one c for each row, such as its maximum, is softmax(x)."""
    before = editor.made_by(operator.inputs[0], "SUB")
    if before is None or not plain(before):
        return False
    x, shift = before.inputs
    if x is None or shift is None or x.shape is None or x.shape != before.outputs[0].shape or x.data is not None:
        return False
    if shift.shape is None or (shift.shape and shift.shape[-1] != 1):
        return False
    editor.change(operator, inputs=[x])
    return True


def log_softmax(editor: Editor, operator: Operator) -> bool:
    """log(softmax(x)), which is minus infinity where the probability is too small for a number."""
    before = editor.made_by(operator.inputs[0], "SOFTMAX")
    if before is None or before.options.beta != 1:
        return False
    editor.change(operator, "LOG_SOFTMAX", [before.inputs[0]], options=schema.LogSoftmaxOptionsT())
    return True


def leaky_maximum(editor: Editor, operator: Operator) -> bool:
    """max(x, alpha * x) for a small alpha."""
    for x, other in (operator.inputs, operator.inputs[::-1]):
        product = editor.made_by(other, "MUL")
        if product is None or x is None or not is_float(x) or not plain(product):
            continue
        for value, number in (product.inputs, product.inputs[::-1]):
            alpha = scalar(number)
            if value is x and alpha is not None and 0 <= alpha <= 1 and x.shape == operator.outputs[0].shape:
                editor.change(operator, "LEAKY_RELU", [x], options=schema.LeakyReluOptionsT(alpha=alpha))
                return True
    return False


def prelu(editor: Editor, operator: Operator) -> bool:
    """relu(x) - alpha * relu(-x), with a constant alpha for each channel."""
    if operator.code not in ("ADD", "SUB") or not plain(operator) or not is_float(operator.outputs[0]):
        return False
    pairs = [operator.inputs] if operator.code == "SUB" else [operator.inputs, operator.inputs[::-1]]
    for first, second in pairs:
        above = editor.made_by(first, "RELU")
        below = editor.made_by(second, "MUL")
        if above is None or below is None or not plain(below):
            continue
        x = above.inputs[0]
        for value, alpha in (below.inputs, below.inputs[::-1]):
            if x is None or alpha is None or alpha.data is None or x.shape is None:
                continue
            gate = editor.made_by(value, "RELU", "MINIMUM")
            if gate is None:
                continue
            sign = -1.0 if operator.code == "ADD" else 1.0
            if gate.code == "RELU":
                negation = editor.made_by(gate.inputs[0], "NEG")
                if negation is None or negation.inputs[0] is not x:
                    continue
            elif x in gate.inputs and any(scalar(each) == 0 for each in gate.inputs):
                sign = -sign
            else:
                continue
            slope = np.asarray(sign * alpha.data, np.float32)
            slope = (
                slope.reshape((1,) * (len(x.shape) - 1 - slope.ndim) + slope.shape)
                if slope.ndim < len(x.shape) - 1
                else slope
            )
            if slope.ndim >= len(x.shape) and slope.shape[0] == 1:
                slope = slope.reshape(slope.shape[1:])
            if slope.size == 1:
                alpha_value = float(slope.reshape(-1)[0])
                editor.change(operator, "LEAKY_RELU", [x], options=schema.LeakyReluOptionsT(alpha=alpha_value))
            else:
                editor.change(operator, "PRELU", [x, editor.constant(slope, alpha, alpha.name)])
            return True
    return False


def lstm_cell(editor: Editor, operator: Operator) -> bool:
    """One step of an LSTM: the product of [input, state] with all weights, split into the four gates.

    h = tanh(c) * sigmoid(o), with c = c_before * sigmoid(f + forget_bias) + sigmoid(i) * tanh(g).
    """
    if not plain(operator) or not is_float(operator.outputs[0]):
        return False
    found = _gates(editor, operator.inputs, "TANH", "LOGISTIC")
    if found is None:
        return False
    cell, out_gate = found
    total = editor.made_by(cell, "ADD")
    if total is None or not plain(total):
        return False
    for kept, added in (total.inputs, total.inputs[::-1]):
        kept_product, new_product = editor.made_by(kept, "MUL"), editor.made_by(added, "MUL")
        if kept_product is None or new_product is None:
            continue
        new = _gates(editor, new_product.inputs, "TANH", "LOGISTIC")
        if new is None:
            continue
        for before, gate in (kept_product.inputs, kept_product.inputs[::-1]):
            forget = editor.made_by(gate, "LOGISTIC")
            if forget is None or before is None:
                continue
            bias, forget_gate = 0.0, forget.inputs[0]
            shifted = terms(editor.producer(forget_gate))
            if shifted is not None:
                bias, forget_gate = shifted
            if forget_gate is not None and _fused_cell(
                editor, operator, total, before, (new[1], new[0], forget_gate, out_gate), bias
            ):
                return True
    return False


def _gates(editor: Editor, inputs: list[Tensor | None], *codes: str) -> list[Tensor] | None:
    """The arguments of the functions `codes` in the two factors, in the order of `codes`."""
    found: list[Tensor] = []
    for code in codes:
        makers = [editor.made_by(tensor, code) for tensor in inputs]
        maker = next((each for each in makers if each is not None), None)
        if maker is None or maker.inputs[0] is None:
            return None
        found.append(maker.inputs[0])
    return found


def _fused_cell(
    editor: Editor, operator: Operator, total: Operator, before: Tensor, gates: tuple[Tensor, ...], forget_bias: float
) -> bool:
    split = editor.made_by(gates[0], "SPLIT")
    if split is None or split.outputs != list(gates):
        return False
    product = editor.made_by(split.inputs[1], "FULLY_CONNECTED")
    joined = editor.made_by(product.inputs[0], "CONCATENATION") if product is not None else None
    if product is None or joined is None or len(joined.inputs) != 2 or not plain(product) or not plain(joined):
        return False
    x, state = joined.inputs
    weights, bias = product.inputs[1], product.inputs[2] if len(product.inputs) > 2 else None
    if x is None or state is None or weights is None or weights.data is None or x.shape is None or len(x.shape) != 2:
        return False
    units = weights.data.shape[0] // 4
    if state.shape is None or state.shape[-1] != units or x.shape[-1] < 0 or joined.options.axis not in (1, -1):
        return False
    biases = np.zeros(4 * units, np.float32) if bias is None else bias.data
    if biases is None:
        return False
    biases = biases.copy()
    biases[2 * units : 3 * units] += np.float32(forget_bias)
    cell = total.outputs[0]
    hidden = operator.outputs[0]
    # The builtin also returns its scratch buffer.
    rows = hidden.shape[0] if hidden.shape is not None else -1
    scratch = [
        Tensor(f"{hidden.name}/concat", "FLOAT32", (rows, x.shape[-1] + units)),
        Tensor(f"{hidden.name}/gates", "FLOAT32", (rows, 4 * units)),
    ]
    if any(
        each is not operator and each.code != "TANH" and _before(editor, each, operator)
        for each in editor.consumers.get(cell, ())
    ):
        return False
    # The builtin overwrites its input states, so they must have no other readers and cannot be constants.
    if any(each.data is not None or each in editor.outputs for each in (state, before)):
        return False
    if editor.consumers.get(state) != [joined] or len(editor.consumers.get(before, ())) != 1:
        return False
    if any(_sized_late(each) for each in editor.subgraph.operators if each not in editor.removed):
        return False
    inputs = [x, state, weights, editor.constant(biases, bias, f"{hidden.name}/bias"), before]
    options = schema.LSTMOptionsT(
        fusedActivationFunction=schema.ActivationFunctionType.TANH, kernelType=schema.LSTMKernelType.BASIC
    )
    editor.change(operator, "LSTM", inputs, [hidden, cell, *scratch], options)
    editor.remove(total)
    return True


# Builtins whose result size depends on the values of inputs after the first.
_SIZED_BY_VALUE = frozenset(
    (
        "BROADCAST_TO",
        "FILL",
        "ONE_HOT",
        "PAD",
        "PADV2",
        "RESHAPE",
        "RESIZE_BILINEAR",
        "SLICE",
        "SPLIT_V",
        "STRIDED_SLICE",
        "TILE",
    )
)


def _sized_late(operator: Operator) -> bool:
    """Whether LiteRT knows the size of a result only after running the operator.

    It then prepares the rest of the subgraph late, and an LSTM prepared late loses its input states.
    """
    if operator.code in _SIZED_BY_VALUE and any(each is not None and each.data is None for each in operator.inputs[1:]):
        return True
    return any(tensor.shape is None or -1 in tensor.shape for tensor in operator.outputs)


def _before(editor: Editor, first: Operator, second: Operator) -> bool:
    """Whether an operator precedes another, so that it would read the cell before the fused operator writes it."""
    for operator in editor.subgraph.operators:
        if operator is second:
            return False
        if operator is first:
            return True
    return False


PATTERNS: dict[str, list[Rule]] = {
    "MUL": [gelu, hard_swish, l2_normalization],
    "DIV": [hard_swish, softmax],
    "SOFTMAX": [shifted_softmax],
    "LOG": [log_softmax],
    "SQRT": [l2_pool],
    "MAXIMUM": [leaky_maximum],
    "ADD": [prelu],
    "SUB": [prelu],
}
