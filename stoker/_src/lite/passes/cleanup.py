"""Removes operators that do nothing, that cancel each other, or that compute the same value twice."""

from __future__ import annotations

from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from stoker._src.lite.model import Operator, Subgraph, Tensor
from stoker._src.lite.passes.editing import Editor, Rule, apply_rules, has_effect, is_float, plain, scalar, sizes

_UNARY = (
    "ABS",
    "CEIL",
    "COS",
    "ELU",
    "EXP",
    "FLOOR",
    "LEAKY_RELU",
    "LOG",
    "LOGISTIC",
    "NEG",
    "RELU",
    "RELU6",
    "RELU_N1_TO_1",
    "RELU_0_TO_1",
    "ROUND",
    "RSQRT",
    "SIN",
    "SQRT",
    "SQUARE",
    "TANH",
    "HARD_SWISH",
    "GELU",
    "CAST",
    "SIGN",
)
_BINARY = ("ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE")
_UNREPEATABLE = ("RANDOM_UNIFORM", "RANDOM_STANDARD_NORMAL", "MULTINOMIAL", "READ_VARIABLE", "IF", "WHILE", "CUSTOM")


def _known(shape: tuple[int, ...] | None) -> bool:
    return shape is not None and -1 not in shape


def merged_reshape(editor: Editor, operator: Operator) -> bool:
    """reshape(reshape(x)) is one reshape, and a reshape to the same shape is removed."""
    source, result = operator.inputs[0], operator.outputs[0]
    assert source is not None
    if source.shape == result.shape and _known(source.shape) and editor.bypass(operator, source):
        return True
    before = editor.made_by(source, "RESHAPE")
    if before is None or operator.inputs[1] is None or not operator.inputs[1].is_constant:
        return False
    editor.change(operator, inputs=[before.inputs[0], operator.inputs[1]])
    return True


def merged_transpose(editor: Editor, operator: Operator) -> bool:
    """transpose(transpose(x)) is one transpose, or none."""
    order = operator.inputs[1]
    assert order is not None
    if order.data is None:
        return False
    before = editor.made_by(operator.inputs[0], "TRANSPOSE")
    if before is None or before.inputs[1] is None or before.inputs[1].data is None:
        return False
    together = before.inputs[1].data[order.data]
    source = before.inputs[0]
    assert source is not None
    if (together == np.arange(together.size)).all():
        return editor.bypass(operator, source)
    editor.change(operator, inputs=[source, editor.constant(together, order, "perm")])
    return True


def unmoved_transpose(editor: Editor, operator: Operator) -> bool:
    """A transpose that moves only dimensions of one element is a reshape, which costs nothing."""
    source, order = operator.inputs
    (result,) = operator.outputs
    if source is None or order is None or order.data is None or source.shape is None or not _known(result.shape):
        return False
    moved = [axis for axis in order.data.tolist() if source.shape[axis] != 1]
    # Products of matrices transpose their operand themselves.
    if moved != sorted(moved) or any(each.code == "BATCH_MATMUL" for each in editor.consumers.get(result, ())):
        return False
    # A batch of one that stays the first dimension is not stated, because the interpreter may change it.
    keeps_batch = source.shape[:1] == (1,) and order.data[0] == 0 and 0 not in source.shape
    sized = list(result.shape or ())
    shape = sizes("shape", [-1, *sized[1:]] if keeps_batch else sized)
    editor.change(operator, "RESHAPE", [source, shape], options=schema.ReshapeOptionsT(newShape=shape.data))
    return True


def sunk_transpose(editor: Editor, operator: Operator) -> bool:
    """Rewrites f(transpose(x)) to transpose(f(x)), so that transposes from channels first to channels last and back meet and cancel.

    If f has two inputs, the other one must be a constant or have the same transpose.
    """
    made = [editor.made_by(tensor, "TRANSPOSE") for tensor in operator.inputs]
    first = next((each for each in made if each is not None), None)
    if first is None or operator.outputs[0].shape is None:
        return False
    order = first.inputs[1]
    assert order is not None
    if order.data is None or order.data.tolist() not in ([0, 3, 1, 2], [0, 2, 3, 1]):
        return False
    following = editor.consumers.get(operator.outputs[0], [])
    leads_on = [
        each
        for each in following
        if each.code in ("TRANSPOSE", "ADD", "MUL", "SUB", "MAXIMUM", "MINIMUM", "CONCATENATION", *_UNARY)
    ]
    if not following or len(leads_on) != len(following) or operator.outputs[0] in editor.outputs:
        return False
    inputs: list[Tensor | None] = []
    back = np.argsort(order.data)
    for tensor, maker in zip(operator.inputs, made, strict=True):
        assert tensor is not None
        if maker is not None:
            if maker.inputs[1] is None or maker.inputs[1].data is None or (maker.inputs[1].data != order.data).any():
                return False
            if not all(each is operator for each in editor.consumers[tensor]) or tensor in editor.outputs:
                return False
            inputs.append(maker.inputs[0])
        elif tensor.data is not None and tensor.data.ndim <= 4:
            full = tensor.data.reshape((1,) * (4 - tensor.data.ndim) + tensor.data.shape)
            inputs.append(editor.constant(np.ascontiguousarray(full.transpose(back)), tensor, tensor.name))
        else:
            return False
    result = operator.outputs[0]
    assert result.shape is not None
    before = Tensor(f"{result.name}/", result.type, tuple(result.shape[axis] for axis in back))
    # The transpose moves after f: the two operators swap places.
    editor.change(operator, inputs=inputs, outputs=[before])
    editor.insert(operator, Operator("TRANSPOSE", [before, order], [result], schema.TransposeOptionsT()))
    return True


def neutral(editor: Editor, operator: Operator) -> bool:
    """x + 0, x - 0, x * 1, x / 1 and x ** 1 become x if x has the shape of the result."""
    neutral_value = 0.0 if operator.code in ("ADD", "SUB") else 1.0
    pairs = [(operator.inputs[0], operator.inputs[1])]
    if operator.code in ("ADD", "MUL"):
        pairs.append((operator.inputs[1], operator.inputs[0]))
    for value, other in pairs:
        assert value is not None
        assert other is not None
        if other.data is None or value.data is not None or not plain(operator):
            continue
        if other.data.dtype == object or other.data.size > 4096 or not (other.data == neutral_value).all():
            continue
        same = value.shape == operator.outputs[0].shape and value.shape is not None
        if (same or other.data.ndim == 0) and editor.bypass(operator, value):
            return True
    return False


def transposed_operand(editor: Editor, operator: Operator) -> bool:
    """A product of matrices transposes its right operand itself. (For the left one this is slower than a transpose.)"""
    before = editor.made_by(operator.inputs[1], "TRANSPOSE")
    order = None if before is None or before.inputs[1] is None else before.inputs[1].data
    if before is None or order is None:
        return False
    *kept, row, column = range(order.size)
    if order.tolist() != [*kept, column, row]:
        return False
    options = schema.BatchMatMulOptionsT(adjX=operator.options.adjX, adjY=not operator.options.adjY)
    editor.change(operator, "BATCH_MATMUL", [operator.inputs[0], before.inputs[0]], options=options)
    return True


def sunk_reshape(editor: Editor, operator: Operator) -> bool:
    """f(reshape(x), reshape(y)) with x and y of the same shape becomes reshape(f(x, y))."""
    makers = [editor.made_by(each, "RESHAPE") for each in operator.inputs]
    first, second = makers
    result = operator.outputs[0]
    if first is None or second is None or first is second or result.shape is None or -1 in result.shape:
        return False
    sources = [first.inputs[0], second.inputs[0]]
    if sources[0] is None or sources[1] is None or sources[0].shape != sources[1].shape or not _known(sources[0].shape):
        return False
    inside = [first.outputs[0], second.outputs[0]]
    if not all(each.shape == result.shape and editor.is_private(each, operator) for each in inside):
        return False
    whole = Tensor(f"{result.name}/", result.type, sources[0].shape)
    moved = Operator("RESHAPE", [whole, second.inputs[1]], [result], second.options)
    editor.change(operator, inputs=sources, outputs=[whole])
    editor.insert(operator, moved)
    return True


def sunk_reshape_of_one(editor: Editor, operator: Operator) -> bool:
    """f(reshape(x)) becomes reshape(f(x)) where a reshape, or arithmetic that may take it on to one, follows."""
    before = editor.made_by(operator.inputs[0], "RESHAPE")
    (result,) = operator.outputs
    if before is None or not _known(result.shape) or result in editor.outputs:
        return False
    source, inside = before.inputs[0], before.outputs[0]
    if source is None or not _known(source.shape) or not editor.is_private(inside, operator):
        return False
    if not all(each.code in ("RESHAPE", *_UNARY, *_BINARY) for each in editor.consumers.get(result, ())):
        return False
    whole = Tensor(f"{result.name}/", result.type, source.shape)
    moved = Operator("RESHAPE", [whole, before.inputs[1]], [result], before.options)
    editor.change(operator, inputs=[source], outputs=[whole])
    editor.insert(operator, moved)
    return True


def empty_padding(editor: Editor, operator: Operator) -> bool:
    """A PAD by nothing, as transforms and convolutions of fitting sizes have it, is removed."""
    source, amounts = operator.inputs
    if source is None or amounts is None or amounts.data is None or amounts.data.any():
        return False
    return editor.bypass(operator, source)


def repacked(editor: Editor, operator: Operator) -> bool:
    """Packing all that an UNPACK gives is no change, or a transpose if it is along another dimension."""
    before = editor.made_by(operator.inputs[0], "UNPACK")
    (result,) = operator.outputs
    if before is None or operator.inputs != before.outputs or result.shape is None:
        return False
    source, rank = before.inputs[0], len(result.shape)
    assert source is not None
    come, go = before.options.axis % rank, operator.options.axis % rank
    if come == go:
        return editor.bypass(operator, source)
    if not is_float(source) or rank > 4:
        return False
    order = [axis for axis in range(rank) if axis != come]
    order.insert(go, come)
    editor.change(operator, "TRANSPOSE", [source, sizes("perm", order)], options=schema.TransposeOptionsT())
    return True


def packed_alone(editor: Editor, operator: Operator) -> bool:
    """A tensor stacked without others, as sizes are that an operator computes, is reshaped, which is faster."""
    (source, *others), (result,) = operator.inputs, operator.outputs
    if others or source is None or source.type == "STRING" or not _known(result.shape):
        return False
    shape = sizes("shape", result.shape)
    editor.change(operator, "RESHAPE", [source, shape], options=schema.ReshapeOptionsT(newShape=shape.data))
    return True


def first_part(editor: Editor, operator: Operator) -> bool:
    """A slice of joined vectors that is the first of them."""
    before = editor.made_by(operator.inputs[0], "CONCATENATION")
    first = None if before is None else before.inputs[0]
    begin, size = (None if each is None else each.data for each in operator.inputs[1:])
    if before is None or first is None or not plain(before) or begin is None or size is None:
        return False
    if first.shape != (int(size[0]),) or size.size != 1 or begin[0] != 0:
        return False
    return editor.bypass(operator, first)


def part_of_slice(editor: Editor, operator: Operator) -> bool:
    """The real part of a slice becomes a slice of the real parts: TensorFlow's runtime slices no complex numbers."""
    before = editor.made_by(operator.inputs[0], "SLICE")
    source = None if before is None else before.inputs[0]
    if before is None or source is None:
        return False
    (result,) = operator.outputs
    whole = Tensor(f"{result.name}/", result.type, source.shape)
    editor.change(operator, inputs=[source], outputs=[whole])
    editor.insert(operator, Operator("SLICE", [whole, *before.inputs[1:]], [result], schema.SliceOptionsT()))
    return True


# Functions whose results are finite whatever their arguments are, unless these are not numbers.
_BOUNDED = ("LOGISTIC", "TANH", "SOFTMAX", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1")


def vanishing(editor: Editor, operator: Operator) -> bool:
    """sigmoid(x) * 0, as in the first step of a recurrent cell, is 0."""
    (result,) = operator.outputs
    if result.shape is None or -1 in result.shape or result in editor.outputs or not plain(operator):
        return False
    for value, other in (operator.inputs, operator.inputs[::-1]):
        if editor.made_by(value, *_BOUNDED) is None or other is None or other.data is None or other.data.any():
            continue
        zeros = Tensor(result.name, result.type, result.shape, np.zeros(result.shape, np.float32))
        for reader in list(dict.fromkeys(editor.consumers.get(result, ()))):
            editor.change(reader, inputs=[zeros if each is result else each for each in reader.inputs])
        return True
    return False


def squared_difference(editor: Editor, operator: Operator) -> bool:
    """(x - y) ** 2 becomes SQUARED_DIFFERENCE."""
    (difference,) = operator.inputs
    before = editor.made_by(difference, "SUB")
    if before is None or difference is None or not plain(before) or not editor.is_private(difference, operator):
        return False
    # Kernels broadcast up to four dimensions fast.
    if difference.type != "FLOAT32" or difference.shape is None or len(difference.shape) > 4:
        return False
    editor.change(operator, "SQUARED_DIFFERENCE", before.inputs, options=schema.SquaredDifferenceOptionsT())
    return True


def squared_once(editor: Editor, operator: Operator) -> bool:
    """SQUARED_DIFFERENCE of numbers whose difference is computed anyway, as normalizations do, becomes the square of the difference."""
    first = operator.inputs[0]
    assert first is not None
    for reader in editor.consumers[first]:
        if reader.code == "SUB" and reader.inputs == operator.inputs and plain(reader) and is_float(first):
            operators = editor.subgraph.operators
            operators.remove(reader)
            operators.insert(operators.index(operator), reader)
            editor.change(operator, "SQUARE", reader.outputs, options=schema.SquareOptionsT())
            return True
    return False


def uniform_choice(editor: Editor, operator: Operator) -> bool:
    """A choice between values and many copies of one number stores the number once."""
    branches = []
    for branch in operator.inputs[1:]:
        assert branch is not None
        data = branch.data
        if data is not None and data.dtype != object and data.nbytes > _LARGE and (data == data.reshape(-1)[0]).all():
            branch = editor.constant(data.reshape(-1)[:1].reshape(()), branch, branch.name)
        branches.append(branch)
    condition, result = operator.inputs[0], operator.outputs[0]
    if branches == operator.inputs[1:] or condition is None or condition.shape != result.shape:
        return False
    editor.change(operator, "SELECT_V2", [condition, *branches], options=schema.SelectV2OptionsT())
    return True


_LARGE = 1024


def squared(editor: Editor, operator: Operator) -> bool:
    """x ** 2 and x * x become SQUARE, x ** 0.5 becomes SQRT."""
    x = operator.inputs[0]
    if operator.code == "MUL":
        if x is None or x is not operator.inputs[1] or x.type != "FLOAT32" or not plain(operator):
            return False
        editor.change(operator, "SQUARE", [x], options=schema.SquareOptionsT())
        return True
    power = scalar(operator.inputs[1])
    if x is None or x.type != "FLOAT32" or x.shape != operator.outputs[0].shape:
        return False
    if power == 2:
        editor.change(operator, "SQUARE", [x], options=schema.SquareOptionsT())
    elif power == 0.5:
        editor.change(operator, "SQRT", [x])
    elif power == -0.5:
        editor.change(operator, "RSQRT", [x])
    elif power == 1:
        return editor.bypass(operator, x)
    else:
        return False
    return True


def negated_sum(editor: Editor, operator: Operator) -> bool:
    """x + (-y) becomes x - y."""
    if not plain(operator):
        return False
    for value, other in (operator.inputs, operator.inputs[::-1]):
        negation = editor.made_by(other, "NEG")
        if negation is not None and value is not None and value.type == "FLOAT32":
            editor.change(operator, "SUB", [value, negation.inputs[0]], options=schema.SubOptionsT())
            return True
    return False


CLEANUP: dict[str, list[Rule]] = {
    "RESHAPE": [merged_reshape],
    "TRANSPOSE": [merged_transpose, unmoved_transpose],
    "ADD": [neutral, negated_sum, sunk_reshape],
    "SUB": [neutral, sunk_reshape],
    "MUL": [neutral, vanishing, squared, sunk_reshape],
    "DIV": [neutral],
    "POW": [squared],
    "SQUARE": [squared_difference],
    "SQUARED_DIFFERENCE": [squared_once],
    "SELECT": [uniform_choice],
    "BATCH_MATMUL": [transposed_operand],
    "PACK": [packed_alone, repacked],
    "PAD": [empty_padding],
    "SLICE": [first_part],
    **{code: [part_of_slice] for code in ("REAL", "IMAG", "COMPLEX_ABS")},
}
SINKING: dict[str, list[Rule]] = {code: [sunk_transpose] for code in (*_UNARY, *_BINARY)} | {
    "TRANSPOSE": [merged_transpose]
}


TIDYING: dict[str, list[Rule]] = {code: [sunk_reshape_of_one] for code in _UNARY} | CLEANUP


def clean(subgraph: Subgraph) -> None:
    apply_rules(subgraph, CLEANUP)
    if any(operator.code == "TRANSPOSE" for operator in subgraph.operators):
        apply_rules(subgraph, SINKING)


def tidy(subgraph: Subgraph) -> None:
    """Cleans again, after products have taken the reshapes around them."""
    clean(subgraph)
    apply_rules(subgraph, TIDYING)


def merge_duplicates(subgraph: Subgraph) -> None:
    """Merges operators that compute the same value, and constants with the same value."""
    seen: dict[Any, Operator] = {}
    replaced: dict[Tensor, Tensor] = {}
    outputs = set(subgraph.outputs)
    constants: dict[Any, Tensor] = {}
    kept = []
    for operator in subgraph.operators:
        operator.inputs = [_merged(each, replaced, constants) for each in operator.inputs]
        key = _key(operator)
        known = None if key is None else seen.get(key)
        if known is not None and (outputs.isdisjoint(operator.outputs) or outputs.isdisjoint(known.outputs)):
            for kept_result, result in zip(known.outputs, operator.outputs, strict=True):
                replaced[result] = kept_result
                if result in outputs:
                    # Outputs keep their names.
                    kept_result.name = result.name
            subgraph.outputs = [replaced.get(each, each) for each in subgraph.outputs]
            outputs = set(subgraph.outputs)
            continue
        if key is not None:
            seen.setdefault(key, operator)
        kept.append(operator)
    subgraph.operators = kept


def _merged(tensor: Tensor | None, replaced: dict[Tensor, Tensor], constants: dict[Any, Tensor]) -> Tensor | None:
    if tensor is None:
        return None
    if tensor.data is None or tensor.quantization is not None or tensor.is_variable:
        return replaced.get(tensor, tensor)
    if tensor.data.dtype == object or tensor.data.nbytes > 256:
        return tensor
    return constants.setdefault((tensor.type, tensor.data.shape, tensor.data.tobytes()), tensor)


def _key(operator: Operator) -> Any:
    if operator.code in _UNREPEATABLE or has_effect(operator) or not operator.outputs:
        return None
    options = operator.options
    fields = () if options is None else tuple((name, _hashable(value)) for name, value in sorted(vars(options).items()))
    return operator.code, tuple(operator.inputs), fields


def _hashable(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tobytes()
    return tuple(value) if isinstance(value, list) else value
