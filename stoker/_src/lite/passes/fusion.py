"""Fuses arithmetic and activations into neighbouring operators.

A constant factor or addend per channel is folded into the weights and the bias of the preceding convolution or product. This is how
batch normalization disappears. An activation is fused into the operator that produces its input.
"""

from __future__ import annotations

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from stoker._src.lite.model import Operator, Tensor
from stoker._src.lite.passes.editing import Editor, Rule, is_float, plain, scalar, sizes

# The axis of the weights that belongs to the output's channels.
CHANNEL_AXIS = {"CONV_2D": 0, "DEPTHWISE_CONV_2D": 3, "FULLY_CONNECTED": 0, "TRANSPOSE_CONV": 0, "CONV_3D": 4}
# The positions of the weights and of the bias.
WEIGHTS = {
    "CONV_2D": (1, 2),
    "DEPTHWISE_CONV_2D": (1, 2),
    "FULLY_CONNECTED": (1, 2),
    "TRANSPOSE_CONV": (1, 3),
    "CONV_3D": (1, 2),
}
ACTIVATIONS = {
    "RELU": schema.ActivationFunctionType.RELU,
    "RELU6": schema.ActivationFunctionType.RELU6,
    "RELU_N1_TO_1": schema.ActivationFunctionType.RELU_N1_TO_1,
}
TAKES_ACTIVATION = (
    "ADD",
    "AVERAGE_POOL_2D",
    "CONV_2D",
    "CONV_3D",
    "DEPTHWISE_CONV_2D",
    "DIV",
    "FULLY_CONNECTED",
    "MAX_POOL_2D",
    "MUL",
    "SUB",
    "TRANSPOSE_CONV",
)


def _per_channel(tensor: Tensor | None, channels: int, rank: int | None) -> np.ndarray | None:
    """A constant with one value per channel, or one value for all, as a vector."""
    if tensor is None or tensor.data is None or tensor.type != "FLOAT32":
        return None
    data = tensor.data
    if data.size == 1 and (rank is None or data.ndim <= rank):
        return np.full(channels, data.reshape(-1)[0], np.float32)
    if data.ndim and data.shape[-1] == channels and data.size == channels and (rank is None or data.ndim <= rank):
        return data.reshape(-1)
    return None


def _product_before(editor: Editor, operator: Operator) -> tuple[Operator, Tensor | None, int] | None:
    """The convolution or product whose result only `operator` reads, the other input, and the position of that result among the inputs."""
    for position, (value, other) in enumerate((operator.inputs, operator.inputs[::-1])):
        before = editor.made_by(value, *WEIGHTS)
        if before is None or value is None or not plain(before) or not editor.is_private(value, operator):
            continue
        weights = before.inputs[WEIGHTS[before.code][0]]
        if weights is not None and weights.data is not None and is_float(weights, operator.outputs[0]):
            return before, other, position
    return None


def _weights_and_bias(before: Operator) -> tuple[Tensor, Tensor | None, int, int]:
    at, bias_at = WEIGHTS[before.code]
    weights = before.inputs[at]
    assert weights is not None
    bias = before.inputs[bias_at] if len(before.inputs) > bias_at else None
    return weights, bias, at, bias_at


def folded_factor(editor: Editor, operator: Operator) -> bool:
    """Folds c of conv(x) * c into the weights and the bias."""
    found = _product_before(editor, operator)
    if found is None or (operator.code == "DIV" and found[2] == 1):
        return False
    before, other, _ = found
    weights, bias, at, bias_at = _weights_and_bias(before)
    axis = CHANNEL_AXIS[before.code]
    assert weights.data is not None
    channels = weights.data.shape[axis]
    shape = before.outputs[0].shape
    factor = _per_channel(other, channels, None if shape is None else len(shape))
    if factor is None or (bias is not None and bias.data is None) or operator.outputs[0].shape != shape:
        return False
    if operator.code == "DIV":
        factor = (1 / factor.astype(np.float64)).astype(np.float32)
    if not np.isfinite(factor).all():
        return False
    along = [1] * weights.data.ndim
    along[axis] = channels
    inputs = list(before.inputs)
    inputs[at] = editor.constant(weights.data * factor.reshape(along), weights, weights.name)
    if bias is not None:
        assert bias.data is not None
        inputs[bias_at] = editor.constant(bias.data * factor, bias, bias.name)
    editor.change(before, inputs=inputs)
    _take_over(editor, before, operator)
    return True


def before_reshape(editor: Editor, operator: Operator) -> bool:
    """reshape(product(x)) * constant becomes reshape(product(x) * constant), whose constant goes into the weights. The same holds for sums and the bias."""
    pairs = [operator.inputs] if operator.code in ("SUB", "DIV") else [operator.inputs, operator.inputs[::-1]]
    for value, other in pairs:
        reshape = editor.made_by(value, "RESHAPE")
        product = editor.made_by(reshape.inputs[0], *WEIGHTS) if reshape is not None else None
        if reshape is None or product is None or value is None or other is None or not plain(operator):
            continue
        inner = product.outputs[0]
        if not is_float(other, inner) or not plain(product) or value.shape != operator.outputs[0].shape:
            continue
        if not editor.is_private(inner, reshape) or not editor.is_private(value, operator):
            continue
        moved = _for_channels(other, value.shape, inner.shape)
        if moved is None:
            continue
        made = Tensor(f"{inner.name}/", inner.type, inner.shape)
        editor.insert(product, Operator(operator.code, [inner, moved], [made], operator.options))
        editor.change(reshape, inputs=[made, *reshape.inputs[1:]])
        editor.absorb(reshape, operator)
        return True
    return False


def _for_channels(constant: Tensor, shape: tuple[int, ...] | None, inner: tuple[int, ...] | None) -> Tensor | None:
    """A constant that meets a tensor of `shape`, for the form of the tensor with the shape `inner`: one number, or one for each of its channels."""
    if scalar(constant) is not None:
        return constant
    if constant.data is None or not shape or not inner or constant.data.size != inner[-1]:
        return None
    own = constant.data.shape
    while own and own[0] == 1:
        own = own[1:]
    if own != shape[len(shape) - len(own) :]:
        return None
    return Tensor(constant.name, constant.type, (inner[-1],), constant.data.reshape(-1))


def folded_addend(editor: Editor, operator: Operator) -> bool:
    """Folds c of conv(x) + c into the bias."""
    found = _product_before(editor, operator)
    if found is None or (operator.code == "SUB" and found[2] == 1):
        return False
    before, other, _ = found
    weights, bias, _, bias_at = _weights_and_bias(before)
    assert weights.data is not None
    channels = weights.data.shape[CHANNEL_AXIS[before.code]]
    shape = before.outputs[0].shape
    addend = _per_channel(other, channels, None if shape is None else len(shape))
    if addend is None or (bias is not None and bias.data is None) or operator.outputs[0].shape != shape:
        return False
    if operator.code == "SUB":
        addend = -addend
    total = addend if bias is None or bias.data is None else bias.data + addend
    inputs = [*before.inputs, *[None] * (bias_at + 1 - len(before.inputs))]
    # A constant that is used unchanged keeps its array, so that equal ones stay shared.
    inputs[bias_at] = editor.constant(
        np.ascontiguousarray(total, np.float32), None, other.name if other is not None else "bias"
    )
    editor.change(before, inputs=inputs)
    _take_over(editor, before, operator)
    return True


def _take_over(editor: Editor, before: Operator, operator: Operator) -> None:
    """Lets `before` produce the result of `operator`, with the activation of `operator`."""
    activation = getattr(operator.options, "fusedActivationFunction", 0)
    editor.absorb(before, operator)
    if activation:
        before.options.fusedActivationFunction = activation


def merged_constants(editor: Editor, operator: Operator) -> bool:
    """(x + a) + b becomes x + (a + b). The same holds for products."""
    if not plain(operator):
        return False
    for value, other in (operator.inputs, operator.inputs[::-1]):
        before = editor.made_by(value, operator.code)
        if before is None or other is None or other.data is None or value is None or other.type != "FLOAT32":
            continue
        if (
            not plain(before)
            or not editor.is_private(value, operator)
            or before.outputs[0].shape != operator.outputs[0].shape
        ):
            continue
        for kept, constant in (before.inputs, before.inputs[::-1]):
            if constant is not None and constant.data is not None and kept is not None and kept.data is None:
                together = constant.data + other.data if operator.code == "ADD" else constant.data * other.data
                if together.size > max(constant.data.size, other.data.size):
                    return False
                editor.change(
                    operator, inputs=[kept, editor.constant(np.asarray(together, np.float32), other, other.name)]
                )
                return True
    return False


def fused_activation(editor: Editor, operator: Operator) -> bool:
    """relu(conv(x)) becomes a convolution with a fused activation, also if a reshape is between the two."""
    (value,) = operator.inputs
    if value is None or not is_float(value) or not editor.is_private(value, operator):
        return False
    last = editor.made_by(value, "RESHAPE", *TAKES_ACTIVATION)
    before = last
    if last is not None and last.code == "RESHAPE":
        inner = last.inputs[0]
        before = editor.made_by(inner, *TAKES_ACTIVATION)
        if inner is None or not editor.is_private(inner, last):
            return False
    if last is None or before is None or not plain(before):
        return False
    activation = ACTIVATIONS[operator.code]
    editor.absorb(last, operator)
    before.options.fusedActivationFunction = activation
    return True


def clipped(editor: Editor, operator: Operator) -> bool:
    """min(max(x, 0), 6) and similar clamps become activations, and so does max(x, 0)."""
    for value, other in (operator.inputs, operator.inputs[::-1]):
        bound = scalar(other)
        if (
            bound is None
            or value is None
            or value.data is not None
            or not is_float(value)
            or value.shape != operator.outputs[0].shape
        ):
            continue
        inner_code = "MAXIMUM" if operator.code == "MINIMUM" else "MINIMUM"
        inner = editor.made_by(value, inner_code, "RELU")
        if inner is not None and editor.is_private(value, operator):
            inner_bound, x = _bound_of(inner)
            if inner_bound is not None and x is not None and x.shape == value.shape:
                low, high = (inner_bound, bound) if operator.code == "MINIMUM" else (bound, inner_bound)
                code = {(0.0, 6.0): "RELU6", (-1.0, 1.0): "RELU_N1_TO_1", (0.0, 1.0): "RELU_0_TO_1"}.get((low, high))
                if code is not None:
                    editor.change(operator, code, [x])
                    return True
        if operator.code == "MAXIMUM" and bound == 0:
            # An upper bound may follow, which gives one of the activations above.
            following = editor.consumers.get(operator.outputs[0], [])
            if not any(each.code == "MINIMUM" for each in following):
                editor.change(operator, "RELU", [value])
                return True
    return False


def _bound_of(operator: Operator) -> tuple[float | None, Tensor | None]:
    if operator.code == "RELU":
        return 0.0, operator.inputs[0]
    for value, other in (operator.inputs, operator.inputs[::-1]):
        bound = scalar(other)
        if bound is not None:
            return bound, value
    return None, None


def multiplied(editor: Editor, operator: Operator) -> bool:
    """x / c becomes x * (1 / c), which is faster."""
    divisor = operator.inputs[1]
    if divisor is None or divisor.data is None or not is_float(divisor, operator.outputs[0]):
        return False
    with np.errstate(divide="ignore"):
        factor = (1 / divisor.data.astype(np.float64)).astype(np.float32)
    if not np.isfinite(factor).all() or not factor.all():
        return False
    options = schema.MulOptionsT(fusedActivationFunction=operator.options.fusedActivationFunction)
    editor.change(
        operator, "MUL", [operator.inputs[0], editor.constant(factor, divisor, divisor.name)], options=options
    )
    return True


def folded_input(editor: Editor, operator: Operator) -> bool:
    """Folds c of product(x * c + d) into the weights and d into the bias, if all readers of the sum are products or convolutions.

    Pictures in bytes are scaled so. Margins of zeros stay zero when they are multiplied; with an addend, there must not be any.
    """
    x, weights = operator.inputs[0], operator.inputs[1]
    before = editor.made_by(x, "MUL", "ADD", "SUB")
    if (
        before is None
        or x is None
        or weights is None
        or weights.data is None
        or x in editor.outputs
        or not plain(before)
    ):
        return False
    if not is_float(x, weights) or not all(
        _reads_as_values(each, x, before.code != "MUL") for each in editor.consumers[x]
    ):
        return False
    pairs = [before.inputs] if before.code == "SUB" else [before.inputs, before.inputs[::-1]]
    for source, other in pairs:
        values = _per_channel(other, _input_channels(operator), None if x.shape is None else len(x.shape))
        if (
            values is None
            or source is None
            or source.data is not None
            or source.shape != x.shape
            or not np.isfinite(values).all()
        ):
            continue
        inputs = [source, weights, operator.inputs[2] if len(operator.inputs) > 2 else None]
        if operator.code == "DEPTHWISE_CONV_2D":
            values = np.repeat(values, operator.options.depthMultiplier)
        weighted = weights.data * (values if before.code != "SUB" else -values)
        if before.code == "MUL":
            inputs[1] = editor.constant(weighted, weights, weights.name)
        else:
            bias = inputs[2]
            kept = CHANNEL_AXIS[operator.code]
            added = weighted.sum(tuple(axis for axis in range(weighted.ndim) if axis != kept), np.float64)
            if bias is not None:
                assert bias.data is not None
                added = added + bias.data
            inputs[2] = editor.constant(added.astype(np.float32), bias, f"{operator.outputs[0].name}/bias")
        editor.change(operator, inputs=inputs)
        return True
    return False


def _input_channels(operator: Operator) -> int:
    """The number of channels that a product or a convolution reads."""
    weights = operator.inputs[1]
    assert weights is not None and weights.data is not None
    channels = weights.data.shape[-1]
    return channels // operator.options.depthMultiplier if operator.code == "DEPTHWISE_CONV_2D" else channels


def _reads_as_values(operator: Operator, tensor: Tensor, without_margins: bool) -> bool:
    """Whether a reader of a tensor is a product or a convolution that multiplies all its channels with constant weights and bias."""
    codes = ("FULLY_CONNECTED", "CONV_2D", "DEPTHWISE_CONV_2D")
    if operator.code not in codes or operator.inputs.count(tensor) != 1 or operator.inputs[0] is not tensor:
        return False
    if not all(each is None or each.data is not None for each in operator.inputs[1:]):
        return False
    if operator.code == "FULLY_CONNECTED":
        return True
    if without_margins and operator.options.padding != schema.Padding.VALID:
        return False
    return tensor.shape is not None and tensor.shape[-1] == _input_channels(operator)


def same_padding(editor: Editor, operator: Operator) -> bool:
    """Folds a PAD with zeros into the following convolution without padding, if the result is SAME padding."""
    x, weights = operator.inputs[0], operator.inputs[1]
    pad = editor.made_by(x, "PAD")
    options = operator.options
    if pad is None or options.padding != schema.Padding.VALID or weights is None or weights.shape is None:
        return False
    source, amounts = pad.inputs[0], pad.inputs[1]
    if source is None or source.shape is None or amounts is None or amounts.data is None or len(source.shape) != 4:
        return False
    pairs = amounts.data.tolist()
    if any(pairs[0]) or any(pairs[3]):
        return False
    for axis, stride, dilation in (
        (1, options.strideH, options.dilationHFactor),
        (2, options.strideW, options.dilationWFactor),
    ):
        size, kernel = source.shape[axis], (weights.shape[axis] - 1) * dilation + 1
        if size < 0 and stride != 1:
            return False
        total = max(kernel - 1, 0) if stride == 1 else max((-(-size // stride) - 1) * stride + kernel - size, 0)
        if pairs[axis] != [total // 2, total - total // 2]:
            return False
    options.padding = schema.Padding.SAME
    editor.change(operator, inputs=[source, *operator.inputs[1:]])
    return True


def dilated(editor: Editor, operator: Operator) -> bool:
    """A convolution between SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND becomes a dilated convolution."""
    conv = editor.made_by(operator.inputs[0], "CONV_2D", "DEPTHWISE_CONV_2D")
    before = editor.made_by(conv.inputs[0], "SPACE_TO_BATCH_ND") if conv is not None else None
    if conv is None or before is None or not editor.is_private(conv.outputs[0], operator):
        return False
    blocks, pads = (tensor.data if tensor is not None else None for tensor in before.inputs[1:])
    back, crops = (tensor.data if tensor is not None else None for tensor in operator.inputs[1:])
    options = conv.options
    if blocks is None or pads is None or back is None or crops is None or blocks.size != 2 or (blocks != back).any():
        return False
    if (options.strideH, options.strideW, options.dilationHFactor, options.dilationWFactor) != (1, 1, 1, 1):
        return False
    if options.padding != schema.Padding.VALID or not editor.is_private(before.outputs[0], conv):
        return False
    source, weights = before.inputs[0], conv.inputs[1]
    assert source is not None
    assert weights is not None
    assert weights.shape is not None
    reach = [(weights.shape[axis] - 1) * int(block) for axis, block in zip((1, 2), blocks, strict=True)]
    # The padding of the whole is the part of the paddings that is not cropped again.
    total = (pads - crops).tolist()
    if total == [[each // 2, each - each // 2] for each in reach]:
        padding = schema.Padding.SAME
    elif np.min(total) >= 0:
        padding = schema.Padding.VALID
    else:
        return False
    options.padding = padding
    options.dilationHFactor, options.dilationWFactor = int(blocks[0]), int(blocks[1])
    if padding == schema.Padding.SAME or not np.any(total):
        editor.change(conv, inputs=[source, *conv.inputs[1:]])
    else:
        padded = before.outputs[0]
        if source.shape is not None:
            added = (0, *(sum(each) for each in total), 0)
            padded.shape = tuple(
                size if size < 0 else size + more for size, more in zip(source.shape, added, strict=True)
            )
        amounts = sizes("paddings", [[0, 0], *total, [0, 0]])
        editor.change(before, "PAD", [source, amounts], options=schema.PadOptionsT())
    _take_over(editor, conv, operator)
    return True


def flattened_product(editor: Editor, operator: Operator) -> bool:
    """reshape(product(reshape(x))) that merges and splits leading dimensions becomes a product that keeps them."""
    product = editor.made_by(operator.inputs[0], "FULLY_CONNECTED")
    before = editor.made_by(product.inputs[0], "RESHAPE") if product is not None else None
    if (
        product is None
        or before is None
        or product.options.keepNumDims
        or not editor.is_private(product.outputs[0], operator)
    ):
        return False
    source, result, weights = before.inputs[0], operator.outputs[0], product.inputs[1]
    if source is None or source.shape is None or result.shape is None or weights is None or weights.shape is None:
        return False
    if len(result.shape) < 2 or result.shape[-1] != weights.shape[0]:
        return False
    wanted = (*result.shape[:-1], weights.shape[1])
    if sum(size < 0 for size in wanted) > 1 or not plain(product):
        return False
    inside = before.outputs[0]
    if source.shape == wanted:
        editor.change(product, inputs=[source, *product.inputs[1:]])
    elif editor.is_private(inside, product) and -1 not in wanted:
        # The reshape does more than prepare the product: it keeps the leading dimensions.
        inside.shape = wanted
        stated = operator.inputs[1].data if operator.inputs[1] is not None else None
        # A size that the last reshape infers, such as the batch, is inferred by the first one.
        shape = sizes("shape", wanted if stated is None else (*stated[:-1], wanted[-1]))
        editor.change(before, inputs=[source, shape])
        before.options = schema.ReshapeOptionsT(newShape=shape.data)
    else:
        return False
    product.options.keepNumDims = True
    editor.absorb(product, operator)
    return True


def flat_input(editor: Editor, operator: Operator) -> bool:
    """A product whose input was reshaped to rows of the same length reads the input itself: it takes the leading dimensions as rows."""
    before = editor.made_by(operator.inputs[0], "RESHAPE")
    weights = operator.inputs[1]
    if before is None or weights is None or weights.shape is None or operator.options.keepNumDims:
        return False
    source = before.inputs[0]
    if source is None or not source.shape or source.shape[-1] != weights.shape[-1] or weights.shape[-1] < 0:
        return False
    editor.change(operator, inputs=[source, *operator.inputs[1:]])
    return True


def dilated_rows(editor: Editor, operator: Operator) -> bool:
    """A convolution of sequences between SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND: the reshapes to images and back move outside of both.

    What remains inside is what `dilated` knows.
    """

    def as_image(each: Operator) -> list[Tensor]:
        """The constant block and margins of the rows, with a first dimension that is not divided."""
        block, margins = (None if tensor is None else tensor.data for tensor in each.inputs[1:])
        if block is None or margins is None:
            return []
        return [sizes("block_shape", [1, *block]), sizes("margins", [[0, 0], *margins])]

    after = editor.made_by(operator.inputs[0], "RESHAPE")
    conv = editor.made_by(after.inputs[0], "CONV_2D", "DEPTHWISE_CONV_2D") if after is not None else None
    before = editor.made_by(conv.inputs[0], "RESHAPE") if conv is not None else None
    divided = editor.made_by(before.inputs[0], "SPACE_TO_BATCH_ND") if before is not None else None
    if after is None or conv is None or before is None or divided is None:
        return False
    source, result = divided.inputs[0], operator.outputs[0]
    chain = ((divided, before), (before, conv), (conv, after), (after, operator))
    if not all(editor.is_private(one.outputs[0], other) for one, other in chain):
        return False
    images = [each.outputs[0].shape for each in (before, conv)]
    if source is None or source.shape is None or result.shape is None or len(source.shape) != 3:
        return False
    if any(shape is None or len(shape) != 4 or shape[1] != 1 for shape in images):
        return False
    if -1 in source.shape or -1 in result.shape:
        return False
    divisions = [as_image(each) for each in (divided, operator)]
    if not divisions[0] or not divisions[1]:
        return False
    image = (source.shape[0], 1, *source.shape[1:])
    whole = Tensor(f"{source.name}/image", source.type, image)
    joined = Tensor(f"{result.name}/image", result.type, (result.shape[0], 1, *result.shape[1:]))
    # The operators keep their places: reshape, divide, convolve, join, reshape.
    inside, outside = before.outputs[0], conv.outputs[0]
    shapes = [sizes("shape", image), sizes("shape", result.shape)]
    reshapes = [schema.ReshapeOptionsT(newShape=each.data) for each in shapes]
    editor.change(divided, "RESHAPE", [source, shapes[0]], [whole], reshapes[0])
    editor.change(before, "SPACE_TO_BATCH_ND", [whole, *divisions[0]], [inside], schema.SpaceToBatchNDOptionsT())
    editor.change(after, "BATCH_TO_SPACE_ND", [outside, *divisions[1]], [joined], schema.BatchToSpaceNDOptionsT())
    editor.change(operator, "RESHAPE", [joined, shapes[1]], [result], reshapes[1])
    return True


FOLDING: dict[str, list[Rule]] = {
    "MUL": [folded_factor, before_reshape, merged_constants],
    "DIV": [folded_factor, before_reshape, multiplied],
    "ADD": [folded_addend, before_reshape, merged_constants],
    "SUB": [folded_addend, before_reshape],
    "MINIMUM": [clipped],
    "MAXIMUM": [clipped],
    "FULLY_CONNECTED": [folded_input],
    "CONV_2D": [same_padding, folded_input],
    "DEPTHWISE_CONV_2D": [same_padding, folded_input],
    "BATCH_TO_SPACE_ND": [dilated, dilated_rows],
    "RESHAPE": [flattened_product],
}
FUSING: dict[str, list[Rule]] = {code: [fused_activation] for code in ACTIVATIONS} | {"FULLY_CONNECTED": [flat_input]}
