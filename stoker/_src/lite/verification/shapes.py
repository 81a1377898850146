"""How many numbers an operator makes of its arguments, to be compared with what a file declares.

LiteRT resizes the results by the arguments and ignores what is declared. A damaged size or constant would then ask for gigabytes and minutes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

Shape = list[int]
Constant = Callable[[int], "list[int] | None"]
_LARGE = 2**24
_FREE = 2**16
_SAME_PADDING = 0

# Results of these have as many elements as the first argument.
KEPT = frozenset(
    (
        "ABS CAST CEIL COS CUMSUM DEPTH_TO_SPACE DEQUANTIZE ELU EXP EXPAND_DIMS FAKE_QUANT FLOOR GELU HARD_SWISH L2_NORMALIZATION "
        "LEAKY_RELU LOCAL_RESPONSE_NORMALIZATION LOG LOGICAL_NOT LOGISTIC LOG_SOFTMAX NEG QUANTIZE RELU RELU6 RELU_0_TO_1 RELU_N1_TO_1 "
        "REVERSE_SEQUENCE REVERSE_V2 ROUND RSQRT SIGN SIN SOFTMAX SPACE_TO_DEPTH SQRT SQUARE SQUEEZE TANH TRANSPOSE ZEROS_LIKE"
    ).split()
)
BROADCAST = frozenset(
    (
        "ADD ATAN2 BITWISE_XOR DIV EQUAL FLOOR_DIV FLOOR_MOD GREATER GREATER_EQUAL LESS LESS_EQUAL LOGICAL_AND LOGICAL_OR MAXIMUM MINIMUM MUL "
        "NOT_EQUAL POW PRELU RIGHT_SHIFT SELECT_V2 SQUARED_DIFFERENCE SUB"
    ).split()
)
_STATED = frozenset("BROADCAST_TO FILL RANDOM_STANDARD_NORMAL RANDOM_UNIFORM".split())
"""The result has the shape that an argument states."""
_REDUCED = frozenset("ARG_MAX ARG_MIN MEAN REDUCE_ALL REDUCE_ANY REDUCE_MAX REDUCE_MIN REDUCE_PROD SUM".split())
_WINDOWS = frozenset("AVERAGE_POOL_2D CONV_2D DEPTHWISE_CONV_2D L2_POOL_2D MAX_POOL_2D".split())


def disagreement(
    name: str, shapes: list[Shape], constant: Constant, options: Any, declared: Shape, is_open: bool
) -> str:
    """Why a result cannot be what the file declares, or "". Small differences cost nothing, unless the shape of the result is stated twice.

    Args:
        name: the builtin.
        shapes: the shapes of the arguments.
        constant: gives the value of an argument that is a constant of integers, or None.
        options: the options of the operator.
        declared: the declared shape of the first result.
        is_open: whether some sizes of the arguments or the result are open. What is declared for them means nothing.
    """
    found = _by_constants(name, shapes, constant)
    if found is None and not is_open and declared:
        found = _by_shapes(name, shapes, constant, options)
    if found is None or found == math.prod(declared):
        return ""
    is_stated = name in _STATED and not is_open and declared
    if not is_stated and max(found, *map(math.prod, (declared, *shapes))) <= _LARGE:
        return ""
    return f"of arguments of the shapes {shapes} it makes {found} numbers, and its result is declared as {declared}"


def combination_problem(name: str, shapes: list[Shape]) -> str:
    """Why the kernel would read what is not there, or "". Other kernels compare the sizes of their arguments themselves."""
    if len(shapes) != 2 or not all(shapes):
        return ""
    x, second = shapes
    fits = second == [*x[:-2], min(x[-2:])] if name == "MATRIX_SET_DIAG" else x == second or name != "ATAN2"
    return "" if fits else f"it cannot combine arguments of the shapes {shapes}"


def open_size_problem(shape: Shape, signature: Shape) -> str:
    """Why an input cannot have this shape, or "". Sizes that the caller chooses have a small number in their place."""
    if len(signature) == len(shape) and math.prod(shape) > _LARGE:
        for size, free in zip(shape, signature, strict=True):
            if free == -1 and size > _FREE:
                return f"a size that the caller chooses is declared to be {size}"
    return ""


def _by_constants(name: str, shapes: list[Shape], constant: Constant) -> int | None:
    """The number of elements that constants ask for. None for other operators and invalid combinations."""
    # The size of the result depends on the first argument of some operators and on the second of others.
    value = constant(0 if name in ("FILL", "RANDOM_UNIFORM", "RANDOM_STANDARD_NORMAL", "TRANSPOSE_CONV") else 1)
    if value is None or not shapes:
        return None
    shape = shapes[0]
    if name in ("PAD", "PADV2", "MIRROR_PAD") and len(value) == 2 * len(shape):
        return _product(size + value[2 * n] + value[2 * n + 1] for n, size in enumerate(shape))
    if name == "TILE" and len(value) == len(shape):
        return _product(size * times for size, times in zip(shape, value, strict=True))
    if name in _STATED or name == "TRANSPOSE_CONV":
        return _product(value)
    if name in ("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR") and len(shape) == 4 and len(value) == 2:
        return _product((shape[0], *value, shape[3]))
    if name == "ONE_HOT" and len(value) == 1:
        return math.prod(shape) * max(0, value[0])
    if name == "RANGE":
        start, step = constant(0), constant(2)
        if start and step and step[0] and value:
            return max(0, -((start[0] - value[0]) // step[0]))
    return None


def _by_shapes(name: str, shapes: list[Shape], constant: Constant, options: Any) -> int | None:
    """The number of elements that follows from the shapes of arguments. None for other operators and invalid combinations."""
    if not shapes:
        return None
    x, second = shapes[0], shapes[1] if len(shapes) > 1 else []
    # Kernels take the options of another operator for zeros.
    option = {} if options is None else options.fields
    count = math.prod(x)
    if name in KEPT:
        return count
    if name in BROADCAST:
        return _broadcast(shapes)
    if name in ("SELECT", "SPLIT"):
        return math.prod(second) // option.get("NumSplits", 1)
    if name in _REDUCED:
        axes = constant(1)
        if axes is None or any(not -len(x) <= axis < len(x) for axis in axes):
            return None
        return math.prod(size for n, size in enumerate(x) if n not in axes and n - len(x) not in axes)
    if name in _WINDOWS and len(x) == 4:
        return _windows(name, x, second, option)
    if name == "FULLY_CONNECTED" and len(second) == 2 and second[1]:
        return count // second[1] * second[0]
    if name == "BATCH_MATMUL" and len(x) > 1 and len(second) > 1:
        rows = x[-1 if option.get("AdjX") else -2]
        columns = second[-2 if option.get("AdjY") else -1]
        return _broadcast([x[:-2], second[:-2]]) * rows * columns
    if name == "EMBEDDING_LOOKUP":
        return count * math.prod(second[1:])
    if name == "CONCATENATION":
        return sum(map(math.prod, shapes))
    if name == "PACK":
        return count * len(shapes)
    if name == "UNPACK" and option.get("Num"):
        return count // option["Num"]
    if name == "GATHER" and not option.get("BatchDims"):
        axis = option.get("Axis", 0)
        return math.prod(second) * math.prod(x[:axis]) * math.prod(x[axis:][1:]) if -len(x) <= axis < len(x) else None
    if name == "UNIDIRECTIONAL_SEQUENCE_RNN" and x and x[-1] and second:
        return count // x[-1] * second[0]
    if name == "UNIDIRECTIONAL_SEQUENCE_LSTM" and x and x[-1] and len(shapes) > 6 and len(shapes[6]) == 2:
        return count // x[-1] * shapes[6][1]
    return None


def _product(sizes: Any) -> int:
    return math.prod(max(0, size) for size in sizes)


def _broadcast(shapes: list[Shape]) -> int:
    rank = max(map(len, shapes))
    aligned = [[1] * (rank - len(shape)) + shape for shape in shapes]
    return math.prod(0 if 0 in sizes else max(sizes) for sizes in zip(*aligned, strict=True))


def _windows(name: str, x: Shape, filters: Shape, option: dict[str, Any]) -> int | None:
    if name.endswith("POOL_2D"):
        windows, channels = (option["FilterHeight"], option["FilterWidth"]), x[3]
    elif len(filters) == 4:
        windows, channels = (filters[1], filters[2]), filters[0 if name == "CONV_2D" else 3]
    else:
        return None
    dilations = option.get("DilationHFactor", 1), option.get("DilationWFactor", 1)
    count = x[0] * channels
    for size, window, stride, dilation in zip(
        x[1:3], windows, (option["StrideH"], option["StrideW"]), dilations, strict=True
    ):
        covered = size if option["Padding"] == _SAME_PADDING else size - (window - 1) * dilation
        count *= max(0, -(-covered // stride))
    return count
