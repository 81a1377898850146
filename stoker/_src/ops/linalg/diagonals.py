"""Diagonals and bands of matrices, identity matrices and traces."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import COMPLEX, FLOATS, INDEX, as_dtype
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.shapes import UNKNOWN_SHAPE, Shape
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import ANY, STRING, define, one_of
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import casting, constants, joining, shaping
from stoker._src.ops.math import arithmetic, reductions
from stoker._src.ops.support.movement import allocatable
from stoker._src.ops.support.unsigned import modular

_MAIN = (0, [0], [0, 0])  # forms of `k` that mean the main diagonal
ALIGN = STRING("RIGHT_LEFT", allowed=("LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT"))

# ---- MatrixBandPart ---------------------------------------------------------------------------------------------

MATRIX_BAND_PART = define(
    "MatrixBandPart(input: T, num_lower: host Tindex, num_upper: host Tindex) -> (band: T)",
    T=ANY,
    Tindex=one_of(*INDEX, default=dtypes.int64),
).late()


@MATRIX_BAND_PART.kernel
@modular
def matrix_band_part_kernel(input: torch.Tensor, num_lower: int, num_upper: int) -> torch.Tensor:
    if input.ndim < 2:
        raise InvalidArgumentError(None, None, f"input must be at least 2-dim, received shape: {list(input.shape)}")
    rows, cols = input.shape[-2:]
    if num_lower > rows or num_upper > cols:
        raise InvalidArgumentError(
            None,
            None,
            f"num_lower and num_upper must be at most the sizes {rows} and {cols}, got {num_lower} and {num_upper}.",
        )
    result = input
    if num_lower >= 0:
        result = torch.triu(result, -num_lower)
    if num_upper >= 0:
        result = torch.tril(result, num_upper)
    return input.clone() if result is input else result


@MATRIX_BAND_PART.lower
def matrix_band_part_lower(build: Any, op: Operation, input: Any, num_lower: int, num_upper: int) -> Any:
    return build.band(input, num_lower, num_upper)


@MATRIX_BAND_PART.shape
def matrix_band_part_shape(input: Shape, num_lower: Shape, num_upper: Shape) -> Shape:
    return input.at_least(2)


@MATRIX_BAND_PART.grad
def matrix_band_part_grad(op: Operation, g: Tensor) -> Any:
    return MATRIX_BAND_PART(g, op.inputs[1], op.inputs[2]), None, None


@export("linalg.band_part", v1="matrix_band_part")
def matrix_band_part(input: Any, num_lower: Any, num_upper: Any, name: str | None = None) -> Tensor:
    """Sets elements outside the band of `num_lower` and `num_upper` diagonals to zero (-1 keeps all diagonals)."""
    return MATRIX_BAND_PART(input, num_lower, num_upper, name=name)


# ---- Diag, DiagPart ---------------------------------------------------------------------------------------------

_DIAG_TYPES = (*FLOATS, *INDEX, *COMPLEX)
DIAG = define("Diag(diagonal: rank>0 T) -> (output: T)", T=_DIAG_TYPES)
DIAG_PART = define("DiagPart(input: T) -> (diagonal: T)", T=_DIAG_TYPES)


@DIAG.kernel
def diag_kernel(diagonal: torch.Tensor) -> torch.Tensor:
    return torch.diag_embed(diagonal.reshape(-1)).reshape(*diagonal.shape, *diagonal.shape)


@DIAG.lower
def diag_lower(build: Any, op: Operation, diagonal: Any) -> Any:
    return build.with_diagonal(None, diagonal, diagonal.shape * 2) if len(diagonal.shape) == 1 else None


@DIAG.shape
def diag_shape(diagonal: Shape) -> Shape:
    return diagonal.concat(diagonal)


@DIAG.grad
def diag_grad(op: Operation, g: Tensor) -> Tensor:
    return DIAG_PART(g)


@DIAG_PART.kernel
def diag_part_kernel(input: torch.Tensor) -> torch.Tensor:
    if input.ndim == 0:  # a graph refuses it if the rank is statically known
        return input.clone()
    half = diag_part_shape(Shape(input.shape))
    count = half.size or 0
    return torch.diagonal(input.reshape(count, count)).reshape(list(half)).clone()  # type: ignore[arg-type]


def diag_part_shape(input: Shape) -> Shape:
    if input.dims is None:
        return UNKNOWN_SHAPE
    if not input.dims or len(input) % 2:
        raise InvalidArgumentError(None, None, f"Input must have even and non-zero rank, but its shape is {input}.")
    half = len(input) // 2
    return input[:half].merge(input[half:])


DIAG_PART.shape(diag_part_shape)


@DIAG_PART.lower
def diag_part_lower(build: Any, op: Operation, input: Any) -> Any:
    return matrix_diag_part_lower(build, op, input) if len(input.shape) == 2 else None


@DIAG_PART.grad
def diag_part_grad(op: Operation, g: Tensor) -> Tensor:
    return DIAG(g)


@export("linalg.tensor_diag", v1="diag")
def tensor_diag(diagonal: Any, name: str | None = None) -> Tensor:
    """A tensor of twice the rank, with `diagonal` where both halves of the index are equal and zeros elsewhere."""
    return DIAG(diagonal, name=name)


@export("linalg.tensor_diag_part", v1="diag_part")
def tensor_diag_part(input: Any, name: str | None = None) -> Tensor:
    """The elements at which both halves of the index are equal."""
    return DIAG_PART(input, name=name)


# ---- layout of several diagonals --------------------------------------------------------------------------------


def _band(k: Any) -> tuple[int, int]:
    """The lowest and highest diagonal named by `k`, a number or a pair."""
    if isinstance(k, (int, np.integer)):
        return int(k), int(k)
    numbers = [int(each) for each in np.ravel(k)]
    if len(numbers) not in (1, 2) or numbers[0] > numbers[-1]:
        raise InvalidArgumentError(
            None, None, f"diag_index must be a scalar or a vector of one or two sorted elements, received {numbers}."
        )
    return numbers[0], numbers[-1]


def _longest(rows: int, cols: int, low: int, high: int) -> int:
    return min(rows + min(high, 0), cols - max(low, 0))


def _check_band(rows: int, cols: int, low: int, high: int) -> None:
    for each in (low, high):
        if not (-rows < each < cols or each == 0):
            raise InvalidArgumentError(
                None, None, f"Diagonal {each} is out of bound: it must be between {-rows} and {cols}, exclusive."
            )


def _start(offset: int, length: int, longest: int, align: str) -> int:
    """The position of a diagonal in its row. Rows are as long as the longest diagonal and aligned left or right."""
    above, below = align.split("_")
    return longest - length if (above if offset >= 0 else below) == "RIGHT" else 0


def _length(rows: int, cols: int, offset: int) -> int:
    return min(rows + min(offset, 0), cols - max(offset, 0))


# ---- MatrixDiagPart ---------------------------------------------------------------------------------------------


def _diag_part(input: torch.Tensor, k: Any, padding: torch.Tensor, align: str) -> torch.Tensor:
    if input.ndim < 2:
        raise InvalidArgumentError(None, None, f"input must be at least 2-dim, received shape: {list(input.shape)}")
    low, high = _band(k)
    rows, cols = input.shape[-2:]
    _check_band(rows, cols, low, high)
    if low == high:
        return torch.diagonal(input, low, -2, -1).clone()
    if padding.numel() != 1:
        raise InvalidArgumentError(None, None, f"Padding must be scalar, found the shape {list(padding.shape)}.")
    padding = padding.reshape(())
    longest = _longest(rows, cols, low, high)
    parts = []
    for offset in range(high, low - 1, -1):
        row = padding.expand(*input.shape[:-2], longest).clone()
        length = _length(rows, cols, offset)
        begin = _start(offset, length, longest, align)
        row[..., begin : begin + length] = torch.diagonal(input, offset, -2, -1)
        parts.append(row)
    return torch.stack(parts, -2)


def _diag_part_shape(input: Shape, k: Any) -> Shape:
    if input.at_least(2).dims is None or k is None:
        return UNKNOWN_SHAPE
    low, high = _band(k)
    rows, cols = input[-2], input[-1]
    longest = None
    if rows is not None and cols is not None:
        _check_band(rows, cols, low, high)
        longest = _longest(rows, cols, low, high)
    return input[:-2].concat(Shape((longest,)) if low == high else Shape((high - low + 1, longest)))


MATRIX_DIAG_PART = define("MatrixDiagPart(input: T) -> (diagonal: T)", T=ANY)
MATRIX_DIAG_PART_V2 = define(
    "MatrixDiagPartV2(input: T, k: rank<2 host int32, padding_value: scalar/one T) -> (diagonal: T)", T=ANY
)
MATRIX_DIAG_PART_V3 = define(
    "MatrixDiagPartV3(input: T, k: rank<2 host int32, padding_value: scalar/one T) -> (diagonal: T)",
    T=ANY,
    align=ALIGN,
)


@MATRIX_DIAG_PART.kernel
def matrix_diag_part_kernel(input: torch.Tensor) -> torch.Tensor:
    return _diag_part(input, 0, input, "LEFT_LEFT")


@MATRIX_DIAG_PART_V2.kernel
def matrix_diag_part_v2_kernel(input: torch.Tensor, k: Any, padding_value: torch.Tensor) -> torch.Tensor:
    return _diag_part(input, k, padding_value, "LEFT_LEFT")


@MATRIX_DIAG_PART_V3.kernel
def matrix_diag_part_v3_kernel(input: torch.Tensor, k: Any, padding_value: torch.Tensor, *, align: str) -> torch.Tensor:
    return _diag_part(input, k, padding_value, align)


def matrix_diag_part_lower(build: Any, op: Operation, input: Any, k: Any = 0, padding_value: Any = None) -> Any:
    """The elements of the main diagonal, each of which is a row and a column behind the one before."""
    *outer, rows, columns = input.shape
    if k not in _MAIN:
        return None
    steps = [math.prod(input.shape[axis + 1 :]) for axis in range(len(outer))]
    return build.copy(input, (*outer, min(rows, columns)), [*steps, columns + 1])


for _definition in (MATRIX_DIAG_PART, MATRIX_DIAG_PART_V2, MATRIX_DIAG_PART_V3):
    _definition.lower(matrix_diag_part_lower)


@MATRIX_DIAG_PART.shape
def matrix_diag_part_shape(input: Shape) -> Shape:
    return _diag_part_shape(input, 0)


@MATRIX_DIAG_PART_V2.shape(values=["k"])
@MATRIX_DIAG_PART_V3.shape(values=["k"])
def matrix_diag_part_v3_shape(input: Shape, k: Any, padding_value: Shape) -> Shape:
    return _diag_part_shape(input, k)


@MATRIX_DIAG_PART.grad
def matrix_diag_part_grad(op: Operation, g: Tensor) -> Tensor:
    return MATRIX_SET_DIAG(shaping.zeros_like(op.inputs[0]), g)


@MATRIX_DIAG_PART_V2.grad
def matrix_diag_part_v2_grad(op: Operation, g: Tensor) -> Any:
    return MATRIX_SET_DIAG_V2(shaping.zeros_like(op.inputs[0]), g, op.inputs[1]), None, None


@MATRIX_DIAG_PART_V3.grad
def matrix_diag_part_v3_grad(op: Operation, g: Tensor) -> Any:
    x, k = op.inputs[0], op.inputs[1]
    return MATRIX_SET_DIAG_V3(shaping.zeros_like(x), g, k, align=op.attr("align")), None, None


@export("linalg.diag_part", v1="matrix_diag_part")
def matrix_diag_part(
    input: Any, name: str = "diag_part", k: Any = 0, padding_value: Any = 0, align: str = "RIGHT_LEFT"
) -> Tensor:
    """The diagonal `k` of each matrix, or the diagonals in the range k = (lowest, highest), highest first.

    Shorter diagonals are padded with `padding_value`. `align` says on which side, above and below the main diagonal.
    """
    if hasattr(input, "dtype") and as_dtype(input.dtype) == dtypes.bool_:
        padding_value = bool(padding_value)
    return MATRIX_DIAG_PART_V3(input, k, padding_value, align=align, name=name)


# ---- MatrixDiag -------------------------------------------------------------------------------------------------


def _diag_sizes(longest: int, low: int, high: int, rows: int, cols: int) -> tuple[int, int]:
    """The numbers of rows and columns. A number that is not given (-1) is the smallest that holds the diagonals."""
    least_rows = longest - min(high, 0)
    least_cols = longest + max(low, 0)
    if rows == -1 and cols == -1:
        size = max(least_rows, least_cols)
        return size, size
    rows = least_rows if rows == -1 else rows
    cols = least_cols if cols == -1 else cols
    if rows < least_rows or cols < least_cols:
        raise InvalidArgumentError(
            None,
            None,
            f"Diagonals of length {longest} need {least_rows} rows and {least_cols} columns, got {rows} and {cols}.",
        )
    if rows != least_rows and cols != least_cols:
        raise InvalidArgumentError(
            None,
            None,
            f"The number of rows or columns is not consistent with the specified diagonals: {rows} by {cols}.",
        )
    return rows, cols


def _place(result: torch.Tensor, diagonal: torch.Tensor, low: int, high: int, align: str) -> torch.Tensor:
    """Writes diagonals into matrices, in place."""
    rows, cols = result.shape[-2:]
    if low == high:
        torch.diagonal(result, low, -2, -1).copy_(diagonal[..., : _length(rows, cols, low)])
        return result
    longest = diagonal.shape[-1]
    for i, offset in enumerate(range(high, low - 1, -1)):
        length = _length(rows, cols, offset)
        begin = _start(offset, length, longest, align)
        torch.diagonal(result, offset, -2, -1).copy_(diagonal[..., i, begin : begin + length])
    return result


def _diag(
    diagonal: torch.Tensor, k: Any, rows: int, cols: int, padding: torch.Tensor | None, align: str
) -> torch.Tensor:
    low, high = _band(k)
    if diagonal.ndim < 1 or (low != high and (diagonal.ndim < 2 or diagonal.shape[-2] != high - low + 1)):
        raise InvalidArgumentError(
            None,
            None,
            f"The number of diagonals provided in the input does not match [{low}, {high}]: shape {list(diagonal.shape)}.",
        )
    batch = diagonal.shape[:-1] if low == high else diagonal.shape[:-2]
    rows, cols = _diag_sizes(diagonal.shape[-1], low, high, rows, cols)
    allocatable([*batch, rows, cols], diagonal.element_size())
    if padding is None:
        result = torch.zeros((*batch, rows, cols), dtype=diagonal.dtype, device=diagonal.device)
    else:
        result = padding.expand(*batch, rows, cols).clone()
    return _place(result, diagonal, low, high, align)


def _diag_shape(diagonal: Shape, k: Any, rows: Any, cols: Any) -> Shape:
    if diagonal.at_least(1).dims is None or k is None:
        return UNKNOWN_SHAPE
    low, high = _band(k)
    batch = diagonal[:-1] if low == high else diagonal.at_least(2)[:-2]
    if diagonal[-1] is None or rows is None or cols is None:
        return batch.concat(Shape((None, None)))
    return batch.concat(Shape(_diag_sizes(diagonal[-1], low, high, int(rows), int(cols))))


MATRIX_DIAG = define("MatrixDiag(diagonal: T) -> (output: T)", T=ANY)
_DIAG_INPUTS = "diagonal: T, k: rank<2 host int32, num_rows: scalar host int32, num_cols: scalar host int32, padding_value: scalar T"
MATRIX_DIAG_V2 = define(f"MatrixDiagV2({_DIAG_INPUTS}) -> (output: T)", T=ANY)
MATRIX_DIAG_V3 = define(f"MatrixDiagV3({_DIAG_INPUTS}) -> (output: T)", T=ANY, align=ALIGN)


@MATRIX_DIAG.kernel
def matrix_diag_kernel(diagonal: torch.Tensor) -> torch.Tensor:
    return _diag(diagonal, 0, -1, -1, None, "LEFT_LEFT")


@MATRIX_DIAG_V2.kernel
def matrix_diag_v2_kernel(
    diagonal: torch.Tensor, k: Any, num_rows: int, num_cols: int, padding_value: torch.Tensor
) -> torch.Tensor:
    return _diag(diagonal, k, num_rows, num_cols, padding_value, "LEFT_LEFT")


@MATRIX_DIAG_V3.kernel
def matrix_diag_v3_kernel(
    diagonal: torch.Tensor, k: Any, num_rows: int, num_cols: int, padding_value: torch.Tensor, *, align: str
) -> torch.Tensor:
    return _diag(diagonal, k, num_rows, num_cols, padding_value, align)


def matrix_diag_lower(
    build: Any,
    op: Operation,
    diagonal: Any,
    k: Any = 0,
    num_rows: int = -1,
    num_cols: int = -1,
    padding_value: Any = None,
) -> Any:
    if k not in _MAIN or (padding_value is not None and build.number(padding_value) != 0.0):
        return None
    return build.with_diagonal(None, diagonal, build.shape_of(op.outputs[0]).dims)


for _definition in (MATRIX_DIAG, MATRIX_DIAG_V2, MATRIX_DIAG_V3):
    _definition.lower(matrix_diag_lower)


@MATRIX_DIAG.shape
def matrix_diag_shape(diagonal: Shape) -> Shape:
    return _diag_shape(diagonal, 0, -1, -1) if diagonal[-1] is not None else _diag_shape(diagonal, 0, None, None)


@MATRIX_DIAG_V2.shape(values=["k", "num_rows", "num_cols"])
@MATRIX_DIAG_V3.shape(values=["k", "num_rows", "num_cols"])
def matrix_diag_v3_shape(diagonal: Shape, k: Any, num_rows: Any, num_cols: Any, padding_value: Shape) -> Shape:
    return _diag_shape(diagonal, k, num_rows, num_cols)


@MATRIX_DIAG.grad
def matrix_diag_grad(op: Operation, g: Tensor) -> Tensor:
    return MATRIX_DIAG_PART(g)


@MATRIX_DIAG_V2.grad
def matrix_diag_v2_grad(op: Operation, g: Tensor) -> Any:
    return MATRIX_DIAG_PART_V2(g, op.inputs[1], constants.number(0, g)), None, None, None, None


@MATRIX_DIAG_V3.grad
def matrix_diag_v3_grad(op: Operation, g: Tensor) -> Any:
    return MATRIX_DIAG_PART_V3(g, op.inputs[1], constants.number(0, g), align=op.attr("align")), None, None, None, None


@export("linalg.diag", v1="matrix_diag")
def matrix_diag(
    diagonal: Any,
    name: str = "diag",
    k: Any = 0,
    num_rows: Any = -1,
    num_cols: Any = -1,
    padding_value: Any = 0,
    align: str = "RIGHT_LEFT",
) -> Tensor:
    """Matrices with the given diagonal(s) `k` and `padding_value` elsewhere. They are as small as possible unless sizes are given."""
    if hasattr(diagonal, "dtype") and as_dtype(diagonal.dtype) == dtypes.bool_:
        padding_value = bool(padding_value)
    return MATRIX_DIAG_V3(diagonal, k, num_rows, num_cols, padding_value, align=align, name=name)


# ---- MatrixSetDiag ----------------------------------------------------------------------------------------------


def _set_diag(input: torch.Tensor, diagonal: torch.Tensor, k: Any, align: str) -> torch.Tensor:
    low, high = _band(k)
    rows, cols = input.shape[-2:]
    _check_band(rows, cols, low, high)
    expected = _diag_part_shape(Shape(input.shape), k)
    if tuple(diagonal.shape) != expected.dims:
        raise InvalidArgumentError(
            None,
            None,
            f"Either the diagonal has shape {list(diagonal.shape)} or the matrices {list(input.shape)}: expected {expected}.",
        )
    return _place(input.clone(), diagonal, low, high, align)


MATRIX_SET_DIAG = define("MatrixSetDiag(input: T, diagonal: rank>0 T) -> (output: T)", T=ANY)
MATRIX_SET_DIAG_V2 = define("MatrixSetDiagV2(input: T, diagonal: rank>0 T, k: rank<2 host int32) -> (output: T)", T=ANY)
MATRIX_SET_DIAG_V3 = define(
    "MatrixSetDiagV3(input: T, diagonal: rank>0 T, k: rank<2 host int32) -> (output: T)", T=ANY, align=ALIGN
)


@MATRIX_SET_DIAG.kernel
def matrix_set_diag_kernel(input: torch.Tensor, diagonal: torch.Tensor) -> torch.Tensor:
    return _set_diag(input, diagonal, 0, "LEFT_LEFT")


@MATRIX_SET_DIAG_V2.kernel
def matrix_set_diag_v2_kernel(input: torch.Tensor, diagonal: torch.Tensor, k: Any) -> torch.Tensor:
    return _set_diag(input, diagonal, k, "LEFT_LEFT")


@MATRIX_SET_DIAG_V3.kernel
def matrix_set_diag_v3_kernel(input: torch.Tensor, diagonal: torch.Tensor, k: Any, *, align: str) -> torch.Tensor:
    return _set_diag(input, diagonal, k, align)


def matrix_set_diag_lower(build: Any, op: Operation, input: Any, diagonal: Any, k: Any = 0) -> Any:
    return build.with_diagonal(input, diagonal, input.shape) if k in _MAIN else None


for _definition in (MATRIX_SET_DIAG, MATRIX_SET_DIAG_V2, MATRIX_SET_DIAG_V3):
    _definition.lower(matrix_set_diag_lower)


@MATRIX_SET_DIAG.shape
def matrix_set_diag_shape(input: Shape, diagonal: Shape) -> Shape:
    _diag_part_shape(input, 0).merge(diagonal)
    return input


@MATRIX_SET_DIAG_V2.shape(values=["k"])
@MATRIX_SET_DIAG_V3.shape(values=["k"])
def matrix_set_diag_v3_shape(input: Shape, diagonal: Shape, k: Any) -> Shape:
    _diag_part_shape(input, k).merge(diagonal)
    return input


@MATRIX_SET_DIAG.grad
def matrix_set_diag_grad(op: Operation, g: Tensor) -> Any:
    return MATRIX_SET_DIAG(g, shaping.zeros_like(op.inputs[1])), MATRIX_DIAG_PART(g)


@MATRIX_SET_DIAG_V2.grad
def matrix_set_diag_v2_grad(op: Operation, g: Tensor) -> Any:
    k = op.inputs[2]
    return (
        MATRIX_SET_DIAG_V2(g, shaping.zeros_like(op.inputs[1]), k),
        MATRIX_DIAG_PART_V2(g, k, constants.number(0, g)),
        None,
    )


@MATRIX_SET_DIAG_V3.grad
def matrix_set_diag_v3_grad(op: Operation, g: Tensor) -> Any:
    k, align = op.inputs[2], op.attr("align")
    kept = MATRIX_SET_DIAG_V3(g, shaping.zeros_like(op.inputs[1]), k, align=align)
    return kept, MATRIX_DIAG_PART_V3(g, k, constants.number(0, g), align=align), None


@export("linalg.set_diag", v1="matrix_set_diag")
def matrix_set_diag(input: Any, diagonal: Any, name: str = "set_diag", k: Any = 0, align: str = "RIGHT_LEFT") -> Tensor:
    """Replaces the diagonal(s) `k` of each matrix by `diagonal`."""
    return MATRIX_SET_DIAG_V3(input, diagonal, k, align=align, name=name)


# ---- eye, trace -------------------------------------------------------------------------------------------------


@export("eye", "linalg.eye")
def eye(
    num_rows: Any,
    num_columns: Any = None,
    batch_shape: Any = None,
    dtype: Any = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Identity matrices of size `num_rows` by `num_columns` (square for None), one for each element of `batch_shape`."""
    with name_scope(name, "eye", [num_rows, num_columns, batch_shape]):
        is_square = num_columns is None
        columns = num_rows if is_square else num_columns
        kind = as_dtype(dtype)
        if not any(isinstance(size, Tensor) for size in (num_rows, columns)):
            if not all(isinstance(size, (int, np.integer)) for size in (num_rows, columns)):
                raise TypeError(
                    "Arguments `num_rows` and `num_columns` must be positive integer values. "
                    f"Received: num_rows={num_rows}, num_columns={num_columns}"
                )
            num_rows, columns = int(num_rows), int(columns)
        plain = isinstance(num_rows, int) and isinstance(columns, int)
        least = min(num_rows, columns) if plain else arithmetic.minimum(num_rows, columns)

        def shape(*sizes: Any) -> Any:
            if plain and not isinstance(batch_shape, Tensor):
                return [*front, *sizes]
            ints = [size if isinstance(size, int) else casting.cast(size, dtypes.int32) for size in sizes]
            return joining.concat([front, ints], 0)

        front = [] if batch_shape is None else batch_shape
        if not plain or isinstance(batch_shape, Tensor):
            front = convert_to_tensor(front, dtypes.int32, name="shape")
        length, full = shape(least), None if is_square else shape(num_rows, columns)
        ones = shaping.ones(length, dtype=kind)
        return matrix_diag(ones) if full is None else matrix_set_diag(shaping.zeros(full, dtype=kind), ones)


@export("linalg.trace", v1="trace")
def trace(x: Any, name: str | None = None) -> Tensor:
    """The sum of the main diagonal of each matrix."""
    with name_scope(name, "Trace", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        return reductions.reduce_sum(matrix_diag_part(x), [-1], name=scope)


# ---- the names of old graphs ------------------------------------------------------------------------------------

BATCH_MATRIX_BAND_PART = define(
    "BatchMatrixBandPart(input: T, num_lower: host int64, num_upper: host int64) -> (band: T)", T=ANY
)
BATCH_MATRIX_DIAG = define("BatchMatrixDiag(diagonal: T) -> (output: T)", T=ANY)
BATCH_MATRIX_DIAG_PART = define("BatchMatrixDiagPart(input: T) -> (diagonal: T)", T=ANY)
BATCH_MATRIX_SET_DIAG = define("BatchMatrixSetDiag(input: T, diagonal: T) -> (output: T)", T=ANY)
for _old, _same in (
    (BATCH_MATRIX_BAND_PART, MATRIX_BAND_PART),
    (BATCH_MATRIX_DIAG, MATRIX_DIAG),
    (BATCH_MATRIX_DIAG_PART, MATRIX_DIAG_PART),
    (BATCH_MATRIX_SET_DIAG, MATRIX_SET_DIAG),
):
    _old.same_as(_same)
