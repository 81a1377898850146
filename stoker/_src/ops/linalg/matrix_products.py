"""Matrix products."""

from __future__ import annotations

from typing import Any

import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import COMPLEX, FLOATS, DType, as_dtype
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.shapes import Shape
from stoker._src.base.shapes import broadcast as broadcast_shapes
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import define, one_of
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import broadcasting, casting, joining, ranges, shaping
from stoker._src.ops.math import arithmetic, reductions, unary_functions
from stoker._src.ops.support import blas
from stoker._src.ops.support.unsigned import modular_binary
from stoker._src.ops.support.values import torch_dtype


def _check_inner(op: str, inner_a: Any, inner_b: Any, a: Shape, b: Shape, details: str) -> None:
    if None not in (inner_a, inner_b) and inner_a != inner_b:
        raise InvalidArgumentError(
            None,
            None,
            f"Dimensions must be equal, but are {inner_a} and {inner_b} for {op}: a is {a}, b is {b}, {details}.",
        )


_matmul = modular_binary(torch.matmul)

_UNSIGNED = (dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64)
_PLAIN = (*FLOATS, dtypes.int32, dtypes.int64, *COMPLEX)
_NARROW = (*FLOATS, dtypes.uint8, dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64, *COMPLEX)

# ---- MatMul -----------------------------------------------------------------------------------------------------

MATMUL = define(
    "MatMul(a: T, b: T) -> (product: T)",
    T=(*_PLAIN, *_UNSIGNED),
    transpose_a=False,
    transpose_b=False,
    grad_a=False,
    grad_b=False,
)
MATMUL.small("matmul", lambda op: [int(op.attrs["transpose_a"]), int(op.attrs["transpose_b"])])


@MATMUL.kernel
def matmul_kernel(a: torch.Tensor, b: torch.Tensor, *, transpose_a: bool, transpose_b: bool) -> torch.Tensor:
    if a.ndim != 2 or b.ndim != 2:
        found = (a if a.ndim != 2 else b).shape
        raise InvalidArgumentError(None, None, f"MatMul multiplies matrices, but an operand has shape {list(found)}.")
    if blas.is_slow(a):
        return matmul_kernel(a.float(), b.float(), transpose_a=transpose_a, transpose_b=transpose_b).half()
    found = blas.matmul(a, b, transpose_a, transpose_b)
    if found is not None:
        return found
    a, b = a.t() if transpose_a else a, b.t() if transpose_b else b
    if a.shape[1] != b.shape[0]:
        _check_inner("MatMul", a.shape[1], b.shape[0], Shape(a.shape), Shape(b.shape), "after transposing")
    return _matmul(a, b)


@MATMUL.lower
def matmul_lower(build: Any, op: Operation, a: Any, b: Any) -> Any:
    return build.matmul(a, b, transpose_a=op.attr("transpose_a"), transpose_b=op.attr("transpose_b"))


MATMUL.vanishing(0, 1).planning.lowers_large_inputs = True


@MATMUL.sums_over_steps
def matmul_sums_over_steps(op: Operation) -> Any:
    """The gradient of a weight: the sum of `a^T b` over all iterations is one product of the stacked rows."""
    transposed = op.attr("transpose_a") and not op.attr("transpose_b") and op.attr("T") in _SUMMED
    return stacked_product if transposed else None


_SUMMED = (dtypes.float32, dtypes.float64)


def stacked_product(a: list[torch.Tensor], b: list[torch.Tensor]) -> torch.Tensor:
    return own_ta(a[0], b[0]) if len(a) == 1 else own_ta(torch.cat(a), torch.cat(b))


def rows_of_matmul(op: Operation) -> Any:
    """What computes some rows of a product; None for dtypes that are rounded in between."""
    if op.attr("T") not in _SUMMED:
        return None
    product: Any = plain_matmul(op)
    transposed = op.attr("transpose_a")

    def rows(a: torch.Tensor, b: torch.Tensor, begin: int, end: int) -> torch.Tensor:
        return product((a[:, begin:end] if transposed else a[begin:end]).contiguous(), b)

    return rows


MATMUL.planning.rows_of_product = rows_of_matmul


@MATMUL.specialize
def plain_matmul(op: Operation) -> Any:
    """Floating point matrices go directly to torch. If torch fails, the shape rule explains why."""
    if not op.attr("T").is_floating or op.attr("T") is dtypes.float16:
        return None
    transposed = op.attr("transpose_a"), op.attr("transpose_b")
    if op.attr("T") is dtypes.float32 and blas.is_own:
        return _OWN_PRODUCTS[transposed]
    return _PRODUCTS[transposed]


def mm_ta(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.mm(a.t(), b)


def mm_tb(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.mm(a, b.t())


def mm_ta_tb(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.mm(a.t(), b.t())


_PRODUCTS = {(False, False): torch.mm, (True, False): mm_ta, (False, True): mm_tb, (True, True): mm_ta_tb}


def own(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    found = blas.matmul(a, b, False, False)
    return torch.mm(a, b) if found is None else found


def own_ta(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    found = blas.matmul(a, b, True, False)
    return mm_ta(a, b) if found is None else found


def own_tb(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    found = blas.matmul(a, b, False, True)
    return mm_tb(a, b) if found is None else found


def own_ta_tb(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    found = blas.matmul(a, b, True, True)
    return mm_ta_tb(a, b) if found is None else found


_OWN_PRODUCTS = {(False, False): own, (True, False): own_ta, (False, True): own_tb, (True, True): own_ta_tb}


@MATMUL.shape
def matmul_shape(a: Shape, b: Shape, *, transpose_a: bool, transpose_b: bool) -> Shape:
    rows, inner_a = a.of_rank(2).mT if transpose_a else a.of_rank(2)
    inner_b, cols = b.of_rank(2).mT if transpose_b else b.of_rank(2)
    _check_inner("MatMul", inner_a, inner_b, a, b, f"transpose_a={transpose_a}, transpose_b={transpose_b}")
    return Shape((rows, cols))


@MATMUL.grad
def matmul_grad(op: Operation, g: Tensor) -> tuple[Tensor, Tensor]:
    # Transposes are folded into the two products, so no transposed copy is made. The hints grad_a and grad_b stay unset,
    # because they do not change any value and TensorFlow 1.15 does not know them.
    a, b = unary_functions.conj(op.inputs[0]), unary_functions.conj(op.inputs[1])
    ta, tb = op.attr("transpose_a"), op.attr("transpose_b")
    if ta:
        da = MATMUL(b, g, transpose_a=tb, transpose_b=True)
    else:
        da = MATMUL(g, b, transpose_b=not tb)
    if tb:
        db = MATMUL(g, a, transpose_a=True, transpose_b=ta)
    else:
        db = MATMUL(a, g, transpose_a=not ta)
    return da, db


# ---- BatchMatMul ------------------------------------------------------------------------------------------------


def _adjoint(x: torch.Tensor) -> torch.Tensor:
    return x.mT.conj() if x.is_complex() else x.mT


def _batch_product(x: torch.Tensor, y: torch.Tensor, adj_x: bool, adj_y: bool) -> torch.Tensor:
    if blas.is_slow(x):
        return _batch_product(x.float(), y.float(), adj_x, adj_y).half()
    batch = x.shape[:-2]
    if len(batch) > 1 and batch == y.shape[:-2] and 0 not in batch:
        # Merge the batch axes before transposing. torch.matmul would merge them afterwards, with a slow copy.
        return _batch_product(x.flatten(0, -3), y.flatten(0, -3), adj_x, adj_y).unflatten(0, batch)
    found = blas.matmul(x, y, adj_x, adj_y)
    if found is not None:
        return found
    x, y = _adjoint(x) if adj_x else x, _adjoint(y) if adj_y else y
    if x.shape[-1] != y.shape[-2]:
        _check_inner("BatchMatMul", x.shape[-1], y.shape[-2], Shape(x.shape), Shape(y.shape), "after transposing")
    return _matmul(x, y)


def _matrix_sizes(x: Shape, y: Shape, adj_x: bool, adj_y: bool) -> tuple[Any, Any]:
    left, right = x.at_least(2)[-2:], y.at_least(2)[-2:]
    rows, inner_x = left.of_rank(2).mT if adj_x else left.of_rank(2)
    inner_y, cols = right.of_rank(2).mT if adj_y else right.of_rank(2)
    _check_inner("BatchMatMul", inner_x, inner_y, x, y, f"adj_x={adj_x}, adj_y={adj_y}")
    return rows, cols


def batch_matmul_shape(x: Shape, y: Shape, *, adj_x: bool, adj_y: bool) -> Shape:
    rows, cols = _matrix_sizes(x, y, adj_x, adj_y)
    return broadcast_shapes(x[:-2], y[:-2]).concat(Shape((rows, cols)))


BATCH_MATMUL = define(
    "BatchMatMul(x: rank>1 T, y: rank>1 T) -> (output: T)",
    T=_PLAIN,
    adj_x=False,
    adj_y=False,
    grad_x=False,
    grad_y=False,
)
BATCH_MATMUL_V2 = define(
    "BatchMatMulV2(x: rank>1 T, y: rank>1 T) -> (output: T)",
    T=(*_PLAIN, dtypes.int16, *_UNSIGNED),
    adj_x=False,
    adj_y=False,
    grad_x=False,
    grad_y=False,
)
BATCH_MATMUL_V2.shape(batch_matmul_shape)
for _product in (BATCH_MATMUL, BATCH_MATMUL_V2):
    _product.small("matmul", lambda op: [int(op.attrs["adj_x"]), int(op.attrs["adj_y"])])


@BATCH_MATMUL.shape
def plain_batch_matmul_shape(x: Shape, y: Shape, *, adj_x: bool, adj_y: bool) -> Shape:
    rows, cols = _matrix_sizes(x, y, adj_x, adj_y)
    return x[:-2].merge(y[:-2]).concat(Shape((rows, cols)))


@BATCH_MATMUL.kernel
def plain_batch_matmul_kernel(x: torch.Tensor, y: torch.Tensor, *, adj_x: bool, adj_y: bool) -> torch.Tensor:
    if x.shape[:-2] != y.shape[:-2]:
        raise InvalidArgumentError(
            None,
            None,
            f"In[0] and In[1] must have compatible batch dimensions: {Shape(x.shape)} vs. {Shape(y.shape)}",
        )
    return _batch_product(x, y, adj_x, adj_y)


@BATCH_MATMUL_V2.kernel
def batch_matmul_kernel(x: torch.Tensor, y: torch.Tensor, *, adj_x: bool, adj_y: bool) -> torch.Tensor:
    return _batch_product(x, y, adj_x, adj_y)


def batch_matmul_lower(build: Any, op: Operation, x: Any, y: Any) -> Any:
    return build.matmul(x, y, transpose_a=op.attr("adj_x"), transpose_b=op.attr("adj_y"))


BATCH_MATMUL.lower(batch_matmul_lower)
BATCH_MATMUL_V2.lower(batch_matmul_lower)


BATCH_MATMUL_V3 = define(
    "BatchMatMulV3(x: rank>1 Ta, y: rank>1 Tb) -> (output: Tout)",
    Ta=_NARROW,
    Tb=_NARROW,
    Tout=(*_PLAIN, dtypes.int16),
    adj_x=False,
    adj_y=False,
    grad_x=False,
    grad_y=False,
)
BATCH_MATMUL_V3.shape(batch_matmul_shape)


@BATCH_MATMUL_V3.kernel
def batch_matmul_v3_kernel(x: torch.Tensor, y: torch.Tensor, *, adj_x: bool, adj_y: bool, Tout: DType) -> torch.Tensor:
    # Narrow integers are accumulated in the output's dtype.
    wanted = torch_dtype(Tout)
    return _batch_product(x.to(wanted), y.to(wanted), adj_x, adj_y)


def _batch_gradients(op: Operation, g: Tensor) -> tuple[Tensor, Tensor]:
    x, y = op.inputs
    adj_x, adj_y = op.attr("adj_x"), op.attr("adj_y")
    product = BATCH_MATMUL_V2
    if adj_x:
        dx = product(y, g, adj_x=adj_y, adj_y=True)
    else:
        dx = product(g, y, adj_y=not adj_y)
    if adj_y:
        dy = product(g, x, adj_x=True, adj_y=adj_x)
    else:
        dy = product(x, g, adj_x=not adj_x)
    return dx, dy


BATCH_MATMUL.grad(_batch_gradients)


@BATCH_MATMUL_V2.grad
@BATCH_MATMUL_V3.grad
def batch_matmul_v2_grad(op: Operation, g: Tensor) -> tuple[Tensor, Tensor]:
    x, y = op.inputs
    dx, dy = _batch_gradients(op, g)
    batch_x, batch_y = x.static_shape[:-2], y.static_shape[:-2]
    if batch_x.known and batch_x.dims == batch_y.dims:
        return dx, dy
    axes_x, axes_y = broadcasting.stretched(batch_x, batch_y), broadcasting.stretched(batch_y, batch_x)
    if axes_x is None or axes_y is None:
        sizes_x, sizes_y = shaping.shape(x), shaping.shape(y)
        axes_x, axes_y = broadcasting.BROADCAST_GRADIENT_ARGS(sizes_x[:-2], sizes_y[:-2])
        return shaping.reshape(reductions.SUM(dx, axes_x), sizes_x), shaping.reshape(
            reductions.SUM(dy, axes_y), sizes_y
        )
    if axes_x:
        dx = shaping.reshape(reductions.reduce_sum(dx, axes_x), shaping.shape(x))
    if axes_y:
        dy = shaping.reshape(reductions.reduce_sum(dy, axes_y), shaping.shape(y))
    return dx, dy


# ---- SparseMatMul -----------------------------------------------------------------------------------------------

_SPARSE_TYPES = one_of(dtypes.float32, dtypes.bfloat16, default=dtypes.float32)
SPARSE_MATMUL = define(
    "SparseMatMul(a: Ta, b: Tb) -> (product: float32)",
    transpose_a=False,
    transpose_b=False,
    a_is_sparse=False,
    b_is_sparse=False,
    Ta=_SPARSE_TYPES,
    Tb=_SPARSE_TYPES,
)
SPARSE_MATMUL.shape(matmul_shape)


@SPARSE_MATMUL.kernel
def sparse_matmul_kernel(a: torch.Tensor, b: torch.Tensor, *, transpose_a: bool, transpose_b: bool) -> torch.Tensor:
    # The flags say that an operand has many zeros. The dense product is as fast and gives the same numbers.
    return matmul_kernel(a.float(), b.float(), transpose_a=transpose_a, transpose_b=transpose_b)


@SPARSE_MATMUL.grad
def sparse_matmul_grad(op: Operation, g: Tensor) -> tuple[Tensor, Tensor]:
    a, b = op.inputs
    ta, tb = op.attr("transpose_a"), op.attr("transpose_b")
    wide_a, wide_b = casting.cast(a, dtypes.float32), casting.cast(b, dtypes.float32)
    da = MATMUL(wide_b, g, transpose_a=tb, transpose_b=True) if ta else MATMUL(g, wide_b, transpose_b=not tb)
    db = MATMUL(g, wide_a, transpose_a=True, transpose_b=ta) if tb else MATMUL(wide_a, g, transpose_a=not ta)
    return casting.cast(da, a.dtype.base_dtype), casting.cast(db, b.dtype.base_dtype)


@export(v1="sparse_matmul")
def sparse_matmul(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """Multiplies matrices. One or both may contain many zeros."""
    return SPARSE_MATMUL(
        a,
        b,
        transpose_a=transpose_a,
        transpose_b=transpose_b,
        a_is_sparse=a_is_sparse,
        b_is_sparse=b_is_sparse,
        name=name,
    )


# ---- tf.matmul --------------------------------------------------------------------------------------------------


def _multiply(
    a: Tensor,
    b: Tensor,
    transposes: tuple[bool, bool, bool, bool],
    sparse: tuple[bool, bool],
    output_type: DType | None,
    hints: tuple[bool, bool],
    scope: str,
) -> Tensor:
    transpose_a, transpose_b, adjoint_a, adjoint_b = transposes
    rank_a, rank_b = a.static_shape.rank, b.static_shape.rank
    wider = output_type is not None and output_type is not a.dtype.base_dtype
    by_zeros = any(sparse) and {a.dtype.base_dtype, b.dtype.base_dtype} <= {dtypes.float32, dtypes.bfloat16}
    batches = rank_a is None or rank_a > 2 or rank_b is None or rank_b > 2
    if not by_zeros and (batches or wider or a.dtype != b.dtype):
        # The batch op conjugates when it transposes. For a plain transpose, conjugate beforehand to undo that.
        if transpose_a:
            a, adjoint_a = unary_functions.conj(a), True
        if transpose_b:
            b, adjoint_b = unary_functions.conj(b), True
        flags = {"adj_x": adjoint_a, "adj_y": adjoint_b, "grad_x": hints[0], "grad_y": hints[1]}
        if wider or a.dtype.base_dtype is not b.dtype.base_dtype:
            return BATCH_MATMUL_V3(a, b, Tout=output_type or a.dtype.base_dtype, name=scope, **flags)
        return BATCH_MATMUL_V2(a, b, name=scope, **flags)
    if adjoint_a:
        a, transpose_a = unary_functions.conj(a), True
    if adjoint_b:
        b, transpose_b = unary_functions.conj(b), True
    if by_zeros:
        product = SPARSE_MATMUL(
            a,
            b,
            transpose_a=transpose_a,
            transpose_b=transpose_b,
            a_is_sparse=sparse[0],
            b_is_sparse=sparse[1],
            name=scope,
        )
        if a.dtype.base_dtype is dtypes.bfloat16 and b.dtype.base_dtype is dtypes.bfloat16:
            return casting.cast(product, dtypes.bfloat16)
        return product
    return MATMUL(a, b, transpose_a=transpose_a, transpose_b=transpose_b, grad_a=hints[0], grad_b=hints[1], name=scope)


@export("matmul", "linalg.matmul")
def matmul(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    output_type: Any = None,
    grad_a: bool = False,
    grad_b: bool = False,
    name: str | None = None,
) -> Tensor:
    """Multiplies the matrices in the last two dimensions of `a` and `b`. Leading dimensions broadcast.

    Args:
        a: A tensor of rank 2 or more.
        b: A tensor of the same dtype.
        transpose_a: Whether to transpose `a` before multiplication.
        transpose_b: Whether to transpose `b` before multiplication.
        adjoint_a: Whether to transpose and conjugate `a` before multiplication.
        adjoint_b: Whether to transpose and conjugate `b` before multiplication.
        a_is_sparse: A hint that `a` contains many zeros.
        b_is_sparse: A hint that `b` contains many zeros.
        output_type: The dtype of the sums and of the result, for narrow integers.
        grad_a: A hint that `a` is a gradient. It does not change any value.
        grad_b: A hint that `b` is a gradient. It does not change any value.
        name: A name for the op.

    Raises:
        ValueError: both a transpose and an adjoint of one operand are requested, or the shapes are incompatible.
    """
    with name_scope(name, "MatMul", [a, b]) as scope:
        for transpose, adjoint, which in ((transpose_a, adjoint_a, "a"), (transpose_b, adjoint_b, "b")):
            if transpose and adjoint:
                raise ValueError(f"Only one of `transpose_{which}` and `adjoint_{which}` can be True.")
        a = convert_to_tensor(a, name="a")
        b = convert_to_tensor(b, name="b", dtype_hint=a.dtype.base_dtype)
        kinds = {a.dtype.base_dtype, b.dtype.base_dtype}
        by_zeros = (a_is_sparse or b_is_sparse) and kinds <= {dtypes.float32, dtypes.bfloat16}
        mixed = by_zeros or output_type is not None
        if not mixed and a.dtype.base_dtype is not b.dtype.base_dtype:
            return MATMUL(a, b, name=scope)  # which refuses the operands
        for hint, which in ((a_is_sparse, "a"), (b_is_sparse, "b")):
            if hint is not None and not isinstance(hint, bool):
                raise TypeError(f"Expected bool for argument '{which}_is_sparse' not {hint!r}.")
        return _multiply(
            a,
            b,
            (transpose_a, transpose_b, adjoint_a, adjoint_b),
            (a_is_sparse, b_is_sparse),
            None if output_type is None else as_dtype(output_type).base_dtype,
            (grad_a, grad_b),
            scope,
        )


@export(v1="batch_matmul")
def batch_matmul(x: Any, y: Any, adj_x: bool = False, adj_y: bool = False, name: str | None = None) -> Tensor:
    """Multiplies two batches of matrices, under the name of TensorFlow 0.12."""
    return BATCH_MATMUL_V2(x, y, adj_x=adj_x, adj_y=adj_y, name=name)


# ---- products in other forms ------------------------------------------------------------------------------------


def transposed(x: Tensor) -> Tensor:
    """Swaps the last two dimensions."""
    return matrix_transpose(x)


@export("linalg.matrix_transpose", v1=("matrix_transpose", "linalg.transpose"))
def matrix_transpose(a: Any, name: str = "matrix_transpose", conjugate: bool = False) -> Tensor:
    """Transposes the last two dimensions. With `conjugate`, complex values are conjugated.

    Raises:
        ValueError: the tensor has rank 0 or 1.
    """
    with name_scope(name, "matrix_transpose", [a]):
        a = convert_to_tensor(a, name="a")
        rank = a.static_shape.rank
        if rank is not None:
            if rank < 2:
                raise ValueError(
                    f"Argument `a` should be a (batch) matrix with rank >= 2. Received `a` = {a} with shape: {a.shape}"
                )
            order: Any = [*range(rank - 2), rank - 1, rank - 2]
        else:
            count = ranges.rank(a)
            order = joining.concat(
                [
                    ranges.range(0, arithmetic.subtract(count, 2)),
                    joining.PACK([arithmetic.subtract(count, 1), arithmetic.subtract(count, 2)]),
                ],
                0,
            )
        return shaping.transpose(a, order, conjugate=conjugate)


@export("linalg.adjoint")
def adjoint(matrix: Any, name: str | None = None) -> Tensor:
    """The conjugate transpose of each matrix."""
    with name_scope(name, "adjoint", [matrix]):
        return matrix_transpose(convert_to_tensor(matrix, name="matrix"), conjugate=True)


@export("linalg.matvec")
def matvec(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    adjoint_a: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """Multiplies matrices by vectors: [..., n, m] times [..., m]."""
    with name_scope(name, "MatVec", [a, b]):
        b = convert_to_tensor(b, name="b")
        column = shaping.expand_dims(b, -1)
        product = matmul(
            a, column, transpose_a=transpose_a, adjoint_a=adjoint_a, a_is_sparse=a_is_sparse, b_is_sparse=b_is_sparse
        )
        return shaping.squeeze(product, [-1])
