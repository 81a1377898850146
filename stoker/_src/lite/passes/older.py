"""Operators for older runtimes: builtins that the target does not have, composed of builtins that it has.

A model for an older runtime (`TargetSpec.min_runtime_version`) goes through the same steps as any other. At the end, each operator that needs a younger
runtime is replaced, if there is a form for it here. The forms use builtins of TensorFlow 1.15.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from stoker._src.lite.model import TYPE_CODES, Model, Operator, Subgraph, Tensor, numpy_dtype, type_of
from stoker._src.lite.passes.editing import NO_ACTIVATION, Editor
from stoker._src.lite.passes.fusion import ACTIVATIONS
from stoker._src.lite.versions import is_available

Shape = tuple[int, ...]


class Unavailable(Exception):
    """There is no form for this operator."""


class Form:
    """The operators that take the place of one."""

    def __init__(self, name: str, model: Model) -> None:
        self.name, self.model = name, model
        self.made: list[Operator] = []

    def constant(self, value: Any, dtype: Any = np.float32) -> Tensor:
        array = np.asarray(value, dtype)
        return Tensor(f"{self.name}/constant", type_of(array.dtype), array.shape, array)

    def emit(
        self,
        code: str,
        inputs: Sequence[Tensor | None],
        shape: Shape | Tensor | None,
        options: Any = None,
        type_name: str = "",
    ) -> Tensor:
        """Adds an operator. `shape` is the shape of its result, or the result itself."""
        if isinstance(shape, Tensor):
            result = shape
        else:
            like = inputs[1 if code == "SELECT" else 0]
            assert like is not None
            result = Tensor(f"{self.name}/{len(self.made)}", type_name or like.type, shape)
        self.made.append(Operator(code, list(inputs), [result], options or _options(code)))
        return result

    def split(self, tensor: Tensor, count: int, shape: Shape, axis: int = 0) -> list[Tensor]:
        """Equal parts of a tensor, each of a shape."""
        parts = [Tensor(f"{self.name}/{len(self.made)}:{i}", tensor.type, shape) for i in range(count)]
        if count == 1:
            return [tensor]
        inputs: list[Tensor | None] = [self.constant(axis, np.int32), tensor]
        self.made.append(Operator("SPLIT", inputs, list(parts), schema.SplitOptionsT(numSplits=count)))
        return parts

    def reshape(self, tensor: Tensor, shape: Shape | Tensor) -> Tensor:
        sizes = np.array(shape.shape if isinstance(shape, Tensor) else shape, np.int32)
        options = schema.ReshapeOptionsT(newShape=sizes)
        return self.emit("RESHAPE", [tensor, self.constant(sizes, np.int32)], shape, options)

    def transpose(self, tensor: Tensor, order: Sequence[int], result: Tensor | None = None) -> Tensor:
        shape = tuple(known(tensor)[axis] for axis in order)
        return self.emit("TRANSPOSE", [tensor, self.constant(order, np.int32)], shape if result is None else result)

    def cast(self, tensor: Tensor, type_name: str) -> Tensor:
        options = schema.CastOptionsT(inDataType=TYPE_CODES[tensor.type], outDataType=TYPE_CODES[type_name])
        return self.emit("CAST", [tensor], tensor.shape, options, type_name)

    def broadcast(self, tensor: Tensor, shape: Shape, result: Tensor | None = None) -> Tensor:
        """The tensor in a larger shape."""
        if tensor.data is not None and result is None:
            return self.constant(np.broadcast_to(tensor.data, shape).copy(), tensor.data.dtype)
        if tensor.shape == shape and result is None:
            return tensor
        if tensor.type not in ("FLOAT32", "INT32", "INT64", "BOOL"):
            raise Unavailable(f"it broadcasts {tensor.type}")
        sizes = (*[1] * (len(shape) - len(known(tensor))), *known(tensor))
        if sizes != tensor.shape:
            tensor = self.reshape(tensor, sizes)
        times = [1 if size == wanted else wanted for size, wanted in zip(sizes, shape, strict=True)]
        return self.emit("TILE", [tensor, self.constant(times, np.int32)], result or shape)


_OPTIONS: dict[str, Any] = {
    "ADD": schema.AddOptionsT,
    "ARG_MAX": lambda: schema.ArgMaxOptionsT(outputType=TYPE_CODES["INT32"]),
    "DIV": schema.DivOptionsT,
    "EQUAL": schema.EqualOptionsT,
    "EXP": schema.ExpOptionsT,
    "FULLY_CONNECTED": schema.FullyConnectedOptionsT,
    "GATHER": schema.GatherOptionsT,
    "GREATER": schema.GreaterOptionsT,
    "LESS": schema.LessOptionsT,
    "LOGICAL_AND": schema.LogicalAndOptionsT,
    "LOGICAL_NOT": schema.LogicalNotOptionsT,
    "LOGICAL_OR": schema.LogicalOrOptionsT,
    "MAXIMUM": schema.MaximumMinimumOptionsT,
    "MINIMUM": schema.MaximumMinimumOptionsT,
    "MUL": schema.MulOptionsT,
    "NEG": schema.NegOptionsT,
    "NOT_EQUAL": schema.NotEqualOptionsT,
    "SELECT": schema.SelectOptionsT,
    "SQUARE": schema.SquareOptionsT,
    "SUB": schema.SubOptionsT,
    "TILE": schema.TileOptionsT,
    "TRANSPOSE": schema.TransposeOptionsT,
    "WHERE": schema.WhereOptionsT,
}


def _options(code: str) -> Any:
    make = _OPTIONS.get(code)
    return None if make is None else make()


def known(tensor: Tensor | None) -> Shape:
    """The shape, all of which must be known."""
    if tensor is None or tensor.shape is None or -1 in tensor.shape:
        raise Unavailable("a size is not known")
    return tensor.shape


def given(operator: Operator, position: int = 0) -> Tensor:
    found = operator.inputs[position]
    assert found is not None
    return found


# ---- functions of each element --------------------------------------------------------------------------------------

# log(p / (1 - p)) / x as a polynomial in x ** 2, where p is the normal distribution function of x. Fitted on [-6, 6], where x * p is
# approximated up to 6e-7; beyond, the polynomial stays constant.
_NORMAL = (
    1.5957685367691676,
    0.07266829820819892,
    -6.605333797392734e-05,
    -0.00011054680013339958,
    7.948145851368986e-06,
    -2.675666982681485e-07,
    3.6278618720242406e-09,
)


def _gelu(form: Form, operator: Operator) -> None:
    """x * p(x): the normal distribution function is a logistic function of a polynomial."""
    x, shape = given(operator), operator.outputs[0].shape
    if operator.options.approximate:
        # 0.5 * (1 + tanh(y)) is the logistic function of 2 * y.
        scale = 2 * math.sqrt(2 / math.pi)
        square = form.emit("SQUARE", [x], shape)
        curve = form.emit("MUL", [square, form.constant(0.044715 * scale)], shape)
        curve = form.emit("ADD", [curve, form.constant(scale)], shape)
    else:
        square = form.emit("MINIMUM", [form.emit("SQUARE", [x], shape), form.constant(36)], shape)
        curve = form.emit("MUL", [square, form.constant(_NORMAL[-1])], shape)
        for number in _NORMAL[-2:0:-1]:
            curve = form.emit("ADD", [curve, form.constant(number)], shape)
            curve = form.emit("MUL", [curve, square], shape)
        curve = form.emit("ADD", [curve, form.constant(_NORMAL[0])], shape)
    chance = form.emit("LOGISTIC", [form.emit("MUL", [curve, x], shape)], shape)
    form.emit("MUL", [chance, x], operator.outputs[0])


def _sign(form: Form, operator: Operator) -> None:
    x, result = given(operator), operator.outputs[0]
    zero = form.constant(0, numpy_dtype(x.type))
    above, below = (
        form.cast(form.emit(code, [x, zero], x.shape, type_name="BOOL"), x.type) for code in ("GREATER", "LESS")
    )
    form.emit("SUB", [above, below], result)


def _abs(form: Form, operator: Operator) -> None:
    x = given(operator)
    if x.type != "INT32":
        raise Unavailable(f"its elements are {x.type}")
    opposite = form.emit("SUB", [form.constant(0, np.int32), x], x.shape)
    form.emit("MAXIMUM", [x, opposite], operator.outputs[0])


def _relu_0_to_1(form: Form, operator: Operator) -> None:
    x = given(operator)
    form.emit("MINIMUM", [form.emit("RELU", [x], x.shape), form.constant(1)], operator.outputs[0])


def _select(form: Form, operator: Operator) -> None:
    """A choice between tensors of one shape. A scalar condition and scalar values are broadcast before."""
    result = operator.outputs[0]
    shape = known(result)
    form.emit("SELECT", [form.broadcast(given(operator, i), shape) for i in range(3)], result)


def _broadcast_to(form: Form, operator: Operator) -> None:
    result = operator.outputs[0]
    form.broadcast(given(operator), known(result), result)


def _reduce_all(form: Form, operator: Operator) -> None:
    x, result = given(operator), operator.outputs[0]
    wrong = form.emit("LOGICAL_NOT", [x], x.shape)
    found = form.emit("REDUCE_ANY", [wrong, operator.inputs[1]], result.shape, operator.options)
    form.emit("LOGICAL_NOT", [found], result)


def _where(form: Form, operator: Operator) -> None:
    x = given(operator)
    zero = form.constant(0, numpy_dtype(x.type))
    form.emit("WHERE", [form.emit("NOT_EQUAL", [x, zero], x.shape, type_name="BOOL")], operator.outputs[0])


# ---- products -------------------------------------------------------------------------------------------------------


def _batch_matmul(form: Form, operator: Operator) -> None:
    """One product for each pair of matrices. The builtin multiplies rows by rows, so a second matrix as it is written is transposed."""
    a, b, result = given(operator), given(operator, 1), operator.outputs[0]
    if result.type != "FLOAT32":
        raise Unavailable(f"its elements are {result.type}")
    shape = known(result)
    batch, (rows, columns) = shape[:-2], shape[-2:]
    count = math.prod(batch)
    if count > _MOST_PRODUCTS:
        raise Unavailable(f"it multiplies {count} pairs of matrices")
    a = _flipped(form, a) if operator.options.adjX else a
    b = b if operator.options.adjY else _flipped(form, b)
    inner = known(a)[-1]
    left, right = (
        _matrices(form, form.broadcast(each, (*batch, size, inner)), count, size, inner)
        for each, size in ((a, rows), (b, columns))
    )
    if count == 1 and len(shape) == 2:
        form.emit("FULLY_CONNECTED", [left[0], right[0], None], result)
        return
    products = [form.emit("FULLY_CONNECTED", [x, y, None], (rows, columns)) for x, y in zip(left, right, strict=True)]
    whole = products[0]
    if count > 1:
        options = schema.ConcatenationOptionsT(axis=0)
        whole = form.emit("CONCATENATION", products, (count * rows, columns), options)
    form.reshape(whole, result)


_MOST_PRODUCTS = 256


def _flipped(form: Form, tensor: Tensor) -> Tensor:
    """Matrices with rows and columns exchanged."""
    shape = known(tensor)
    rank = len(shape)
    if rank > 4:
        tensor = form.reshape(tensor, (math.prod(shape[:-2]), *shape[-2:]))
        flipped = form.transpose(tensor, (0, 2, 1))
        return form.reshape(flipped, (*shape[:-2], shape[-1], shape[-2]))
    return form.transpose(tensor, (*range(rank - 2), rank - 1, rank - 2))


def _matrices(form: Form, tensor: Tensor, count: int, rows: int, columns: int) -> list[Tensor]:
    if known(tensor) != (count * rows, columns):
        tensor = form.reshape(tensor, (count * rows, columns))
    return form.split(tensor, count, (rows, columns))


def _transpose_conv(form: Form, operator: Operator) -> None:
    """The bias and the activation have an operator of their own."""
    sizes, weights, x = (given(operator, i) for i in range(3))
    result = operator.outputs[0]
    options = copy.copy(operator.options)
    activation, options.fusedActivationFunction = options.fusedActivationFunction, NO_ACTIVATION
    product = form.emit("TRANSPOSE_CONV", [sizes, weights, x], result.shape, options, "FLOAT32")
    bias = operator.inputs[3] if len(operator.inputs) > 3 else None
    if bias is None:
        form.emit(next(code for code, number in ACTIVATIONS.items() if number == activation), [product], result)
    else:
        form.emit("ADD", [product, bias], result, schema.AddOptionsT(fusedActivationFunction=activation))


# ---- parts of tensors -----------------------------------------------------------------------------------------------


def _dynamic_update_slice(form: Form, operator: Operator) -> None:
    """A row of a list is replaced where the position equals the index."""
    values, row, start = (given(operator, i) for i in range(3))
    shape = known(values)
    count, rest = shape[0], shape[1:]
    if known(row) != (1, *rest):
        raise Unavailable("it replaces more than one row")
    index = start
    if rest:
        # The other positions are zero: the row has their whole extent.
        begin = form.constant([0], np.int32)
        index = form.emit("SLICE", [start, begin, form.constant([1], np.int32)], (1,), schema.SliceOptionsT())
    here = form.emit("EQUAL", [form.constant(np.arange(count), np.int32), index], (count,), type_name="BOOL")
    form.emit("SELECT", [here, form.broadcast(row, shape), values], operator.outputs[0])


def _resize_nearest(form: Form, operator: Operator) -> None:
    """Rows and columns at positions that are known."""
    x, result = given(operator), operator.outputs[0]
    for axis in (1, 2):
        size, wanted = known(x)[axis], known(result)[axis]
        places = np.floor((np.arange(wanted, dtype=np.float32) + np.float32(0.5)) * np.float32(size / wanted))
        shape = tuple(wanted if each == axis else extent for each, extent in enumerate(known(x)))
        inputs = [x, form.constant(np.minimum(places, size - 1), np.int32)]
        x = form.emit("GATHER", inputs, shape if axis == 1 else result, schema.GatherOptionsT(axis=axis))


def _resize_bilinear(form: Form, operator: Operator) -> None:
    """A product with the weights of the rows, then one with those of the columns."""
    x, result = given(operator), operator.outputs[0]
    images, _, columns, channels = known(x)
    _, tall, wide, _ = known(result)
    options = schema.FullyConnectedOptionsT(keepNumDims=True)
    x = form.transpose(x, (0, 3, 2, 1))
    x = form.emit("FULLY_CONNECTED", [x, _weights(form, x, tall), None], (images, channels, columns, tall), options)
    x = form.transpose(x, (0, 1, 3, 2))
    x = form.emit("FULLY_CONNECTED", [x, _weights(form, x, wide), None], (images, channels, tall, wide), options)
    form.transpose(x, (0, 2, 3, 1), result)


def _weights(form: Form, x: Tensor, wanted: int) -> Tensor:
    """What each of the old positions contributes to each of the `wanted` ones. Pixels are squares whose centres are compared."""
    size = known(x)[-1]
    centre = (np.arange(wanted) + 0.5) * (size / wanted) - 0.5
    low = np.floor(centre)
    found = np.zeros((wanted, size), np.float32)
    for place, weight in ((low, 1 - (centre - low)), (low + 1, centre - low)):
        np.add.at(found, (np.arange(wanted), np.clip(place, 0, size - 1).astype(int)), weight)
    return form.constant(found)


# ---- non-maximum suppression ----------------------------------------------------------------------------------------


def _suppression(form: Form, operator: Operator) -> None:
    """A loop that takes the best box, and the scores of all boxes that overlap it too much, until the room or the scores are used up."""
    boxes, scores, most, overlap, threshold = (given(operator, i) for i in range(5))
    with_scores = operator.code == "NON_MAX_SUPPRESSION_V5"
    if with_scores and (given(operator, 5).data is None or np.any(given(operator, 5).data != 0)):
        raise Unavailable("it weakens scores")
    if any(each.data is None for each in (most, overlap, threshold)):
        raise Unavailable("its limits are not constant")
    (count,), room = known(scores), int(most.data)  # type: ignore[arg-type]
    corners = form.transpose(boxes, (1, 0))
    edges = form.split(corners, 4, (1, count))
    sides = [form.reshape(each, (count,)) for each in edges]
    low_y, high_y = (form.emit(code, [sides[0], sides[2]], (count,)) for code in ("MINIMUM", "MAXIMUM"))
    low_x, high_x = (form.emit(code, [sides[1], sides[3]], (count,)) for code in ("MINIMUM", "MAXIMUM"))
    area = form.emit(
        "MUL", [form.emit("SUB", [high_y, low_y], (count,)), form.emit("SUB", [high_x, low_x], (count,))], (count,)
    )
    start = [form.constant(0, np.int32), scores, form.constant(np.zeros(room), np.int32)]
    operands = [*start, low_y, high_y, low_x, high_x, area]
    test, body = _more_boxes(form, operands, room, threshold), _next_box(form, operands, overlap)
    form.model.subgraphs.extend([test, body])
    indices, taken = operator.outputs[0], operator.outputs[-1]
    results = [Tensor(f"{form.name}/loop:{i}", each.type, each.shape) for i, each in enumerate(operands)]
    results[0], results[2] = taken, indices
    form.made.append(Operator("WHILE", list(operands), results, schema.WhileOptionsT(), subgraphs=[test, body]))
    if with_scores:
        all_found = form.emit("GATHER", [scores, indices], (room,))
        there = form.emit("LESS", [form.constant(np.arange(room), np.int32), taken], (room,), type_name="BOOL")
        form.emit("SELECT", [there, all_found, form.constant(np.zeros(room))], operator.outputs[1])


def _inside(form: Form, operands: list[Tensor], what: str) -> tuple[Form, list[Tensor]]:
    inner = Form(f"{form.name}/{what}", form.model)
    return inner, [Tensor(f"{inner.name}/in:{i}", each.type, each.shape) for i, each in enumerate(operands)]


def _more_boxes(form: Form, operands: list[Tensor], room: int, threshold: Tensor) -> Subgraph:
    inner, inputs = _inside(form, operands, "more")
    # REDUCE_MAX of 1.15 knows no number below the smallest finite one.
    place = inner.emit("ARG_MAX", [inputs[1], inner.constant(0, np.int32)], (), type_name="INT32")
    best = inner.emit("GATHER", [inputs[1], place], ())
    is_good = inner.emit("GREATER", [best, inner.constant(threshold.data)], (), type_name="BOOL")
    has_room = inner.emit("LESS", [inputs[0], inner.constant(room, np.int32)], (), type_name="BOOL")
    output = inner.emit("LOGICAL_AND", [is_good, has_room], (), type_name="BOOL")
    return Subgraph(inner.name, inputs, [output], inner.made)


def _next_box(form: Form, operands: list[Tensor], overlap: Tensor) -> Subgraph:
    inner, inputs = _inside(form, operands, "next")
    number, scores, indices, *box = inputs
    low_y, high_y, low_x, high_x, area = box
    shape, room = known(scores), known(indices)[0]
    best = inner.emit("ARG_MAX", [scores, inner.constant(0, np.int32)], (), type_name="INT32")
    chosen = [inner.emit("GATHER", [each, best], ()) for each in box]

    def common(low: Tensor, high: Tensor, chosen_low: Tensor, chosen_high: Tensor) -> Tensor:
        first = inner.emit("MAXIMUM", [low, chosen_low], shape)
        return inner.emit(
            "RELU", [inner.emit("SUB", [inner.emit("MINIMUM", [high, chosen_high], shape), first], shape)], shape
        )

    shared = inner.emit(
        "MUL", [common(low_y, high_y, chosen[0], chosen[1]), common(low_x, high_x, chosen[2], chosen[3])], shape
    )
    union = inner.emit("SUB", [inner.emit("ADD", [area, chosen[4]], shape), shared], shape)
    bound = inner.emit("MUL", [union, inner.constant(overlap.data)], shape)
    near = inner.emit("GREATER", [shared, bound], shape, type_name="BOOL")
    itself = inner.emit("EQUAL", [inner.constant(np.arange(shape[0]), np.int32), best], shape, type_name="BOOL")
    gone = inner.emit("LOGICAL_OR", [near, itself], shape)
    left = inner.emit("SELECT", [gone, inner.constant(np.full(shape, -np.inf)), scores], shape)
    here = inner.emit("EQUAL", [inner.constant(np.arange(room), np.int32), number], (room,), type_name="BOOL")
    filled = inner.broadcast(best, (room,))
    found = inner.emit("SELECT", [here, filled, indices], (room,))
    following = inner.emit("ADD", [number, inner.constant(1, np.int32)], ())
    return Subgraph(inner.name, inputs, [following, left, found, *box], inner.made)


FORMS: dict[str, Callable[[Form, Operator], None]] = {
    "ABS": _abs,
    "BATCH_MATMUL": _batch_matmul,
    "BROADCAST_TO": _broadcast_to,
    "DYNAMIC_UPDATE_SLICE": _dynamic_update_slice,
    "GELU": _gelu,
    "NON_MAX_SUPPRESSION_V4": _suppression,
    "NON_MAX_SUPPRESSION_V5": _suppression,
    "REDUCE_ALL": _reduce_all,
    "RELU_0_TO_1": _relu_0_to_1,
    "RESIZE_BILINEAR": _resize_bilinear,
    "RESIZE_NEAREST_NEIGHBOR": _resize_nearest,
    "SELECT_V2": _select,
    "SIGN": _sign,
    "TRANSPOSE_CONV": _transpose_conv,
    "WHERE": _where,
}


def one_channel(editor: Editor, operator: Operator) -> bool:
    """A convolution of pictures with one channel becomes a depthwise one, which is three times as fast without XNNPACK, and as fast with it."""
    weights, options = operator.inputs[1], operator.options
    if weights is None or weights.data is None or weights.data.shape[3] != 1 or given(operator).shape is None:
        return False
    if given(operator).shape[-1] != 1:  # type: ignore[index]
        return False
    made = schema.DepthwiseConv2DOptionsT(
        padding=options.padding,
        strideW=options.strideW,
        strideH=options.strideH,
        depthMultiplier=weights.data.shape[0],
        fusedActivationFunction=options.fusedActivationFunction,
        dilationWFactor=options.dilationWFactor,
        dilationHFactor=options.dilationHFactor,
    )
    turned = editor.constant(np.ascontiguousarray(weights.data.transpose(3, 1, 2, 0)), weights, weights.name)
    editor.change(operator, "DEPTHWISE_CONV_2D", [operator.inputs[0], turned, *operator.inputs[2:]], options=made)
    return True


_SHORT = 256
"""So many numbers of a list are replaced by a choice as fast as by a builtin for it, or nearly."""


def has_only_short_lists(model: Model, runtime: str) -> bool:
    """Whether a runtime lacks nothing but the builtin that replaces a row of a list, and the lists are short."""
    lacking = [each for each in model.operators() if each.code == "CUSTOM" or not is_available(each, runtime)]
    return bool(lacking) and all(
        each.code == "DYNAMIC_UPDATE_SLICE"
        and given(each).type == "FLOAT32"
        and each.outputs[0].shape is not None
        and -1 not in each.outputs[0].shape
        and math.prod(each.outputs[0].shape) <= _SHORT
        for each in lacking
    )


def lower_to_runtime(model: Model, runtime: str) -> dict[Operator, str]:
    """Replaces the operators that a runtime does not have.

    Returns:
      The operators that could not be replaced, with the reason.
    """
    left: dict[Operator, str] = {}
    for subgraph in list(model.subgraphs):
        operators = []
        for operator in subgraph.operators:
            made, reason = _replaced(model, operator, runtime)
            operators.extend(made)
            if reason:
                left[operator] = reason
        subgraph.operators = operators
    return left


def _replaced(model: Model, operator: Operator, runtime: str) -> tuple[list[Operator], str]:
    if operator.code == "CUSTOM" or is_available(operator, runtime):
        return [operator], ""
    if operator.code not in FORMS:
        return [operator], "it is younger than the runtime"
    form = Form(operator.outputs[0].name, model)
    try:
        FORMS[operator.code](form, operator)
    except Unavailable as problem:
        return [operator], str(problem)
    return form.made, ""
