"""Fake quantization that stands between a product and what can be folded into it: it is moved behind.

The numbers are then rounded elsewhere than in training, so this is done only where the caller asks for it (`reorder_across_fake_quant`).
"""

from __future__ import annotations

import copy

from stoker._src.lite.model import Operator, Tensor
from stoker._src.lite.passes.editing import Editor, Rule
from stoker._src.lite.passes.fusion import ACTIVATIONS, WEIGHTS

_ARITHMETIC = ("ADD", "SUB", "MUL", "DIV")
_BOUNDS = {"RELU": (0.0, None), "RELU6": (0.0, 6.0), "RELU_N1_TO_1": (-1.0, 1.0)}


def moved_behind(editor: Editor, operator: Operator) -> bool:
    """fold(fake_quant(product(x))) is fake_quant(fold(product(x))), with the range that the fold makes of the old one."""
    source, result = operator.inputs[0], operator.outputs[0]
    if source is None or not _from_product(editor, source) or len(editor.consumers.get(result, [])) != 1:
        return False
    (following,) = editor.consumers[result]
    if result in editor.outputs or not editor.is_private(source, operator):
        return False
    bounds = _range_after(following, result, float(operator.options.min), float(operator.options.max))
    if bounds is None:
        return False
    (last,) = following.outputs
    readers = editor.consumers.get(last, [])
    if last not in editor.outputs and readers and all(each.code == "FAKE_QUANT" for each in readers):
        return editor.bypass(operator, source)
    # The two trade places, which keeps the order of the operators.
    options = copy.copy(operator.options)
    options.min, options.max = bounds
    middle = Tensor(f"{last.name}/before", last.type, last.shape)
    inputs = [source if each is result else each for each in following.inputs]
    code, arguments = following.code, following.options
    editor.change(operator, code, inputs=inputs, outputs=[middle], options=arguments)
    editor.change(following, "FAKE_QUANT", inputs=[middle], options=options)
    return True


def _from_product(editor: Editor, tensor: Tensor) -> bool:
    """Whether a tensor is made by a product, or by steps behind one that can be folded into it."""
    producer = editor.producer(tensor)
    while producer is not None and producer.code in _ARITHMETIC:
        given = [each for each in producer.inputs if each is not None and not each.is_constant]
        if len(given) != 1 or not editor.is_private(given[0], producer):
            return False
        producer = editor.producer(given[0])
    return producer is not None and producer.code in WEIGHTS


def _range_after(operator: Operator, value: Tensor, low: float, high: float) -> tuple[float, float] | None:
    """The range of an operator's result, if it can be folded into what makes `value`."""
    if operator.code in ACTIVATIONS:
        least, most = _BOUNDS[operator.code]
        return max(low, least), high if most is None else min(high, most)
    if operator.code not in _ARITHMETIC or operator.inputs.count(value) != 1:
        return None
    first = operator.inputs[0] is value
    other = operator.inputs[1 if first else 0]
    if other is None or other.data is None or other.type != "FLOAT32" or not other.data.size:
        return None
    least, most = float(other.data.min()), float(other.data.max())
    if operator.code == "ADD":
        found = [low + least, high + most]
    elif operator.code == "SUB":
        found = [low - most, high - least] if first else [least - high, most - low]
    elif operator.code == "MUL":
        found = [a * b for a in (low, high) for b in (least, most)]
    elif first and (least > 0 or most < 0):
        found = [a / b for a in (low, high) for b in (least, most)]
    else:
        return None
    return min(0.0, *found), max(0.0, *found)


REORDERING: dict[str, list[Rule]] = {"FAKE_QUANT": [moved_behind]}
