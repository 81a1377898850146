"""Ops of a sparse and a dense tensor: products, sums and element-wise ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import INDEX, NUMERIC
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.shapes import Shape, merge_dims
from stoker._src.graph.definition import OpDefinition, define, one_of
from stoker._src.graph.planning import Prepared
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import gathering, ranges, scattering, shaping
from stoker._src.ops.math import arithmetic, reductions, unary_functions
from stoker._src.ops.sparse.sparse_ops import check_parts, flat_positions, sizes_of
from stoker._src.ops.support import table_rows
from stoker._src.ops.support.movement import allocatable, itemsize, signed
from stoker._src.ops.support.unsigned import modular_binary

_MATRIX, _VECTOR = Shape((None, None)), Shape((None,))

# ---- with dense matrices ----------------------------------------------------------------------------------------

SPARSE_TENSOR_DENSE_MAT_MUL = define(
    "SparseTensorDenseMatMul(a_indices: matrix Tindices, a_values: vector T, a_shape: int64, b: T) -> (product: T)",
    T=NUMERIC,
    Tindices=one_of(*INDEX, default=dtypes.int64),
    adjoint_a=False,
    adjoint_b=False,
)


@SPARSE_TENSOR_DENSE_MAT_MUL.kernel
def sparse_tensor_dense_mat_mul_kernel(
    a_indices: torch.Tensor,
    a_values: torch.Tensor,
    a_shape: torch.Tensor,
    b: torch.Tensor,
    *,
    adjoint_a: bool,
    adjoint_b: bool,
) -> torch.Tensor:
    sizes = a_shape.tolist()
    if len(sizes) != 2 or b.ndim != 2:
        raise InvalidArgumentError(
            None, None, f"SparseTensorDenseMatMul needs two matrices, got {Shape(sizes)} and {Shape(b.shape)}"
        )
    check_parts(a_indices, a_values, sizes)
    if adjoint_a:
        sizes, a_values = sizes[::-1], a_values.conj()
    right = b.mH if adjoint_b else b
    _check_inner(sizes, right)
    wanted = allocatable([sizes[0], right.shape[1]], itemsize(a_values))
    if 0 in wanted:
        return right.new_zeros(wanted)
    product = table_rows.sparse_product(a_indices, a_values, right.contiguous(), sizes[0], transposed=adjoint_a)
    if product is not None:
        return product
    return _summed_products(*_places(a_indices, sizes, adjoint_a), a_values, right, sizes[0])


def _check_inner(sizes: list[int], right: torch.Tensor) -> None:
    if right.shape[0] != sizes[1]:
        raise InvalidArgumentError(
            None,
            None,
            f"Cannot multiply A and B because inner dimension does not match: {sizes[1]} vs. {right.shape[0]}. Did you forget a transpose? Dimensions of A: {Shape(sizes)}. Dimensions of B: {Shape(right.shape)}",
        )


def _places(a_indices: torch.Tensor, sizes: list[int], adjoint_a: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """The rows and columns of A's elements, checked against its sizes."""
    rows, columns = a_indices[:, 0].long(), a_indices[:, 1].long()
    if adjoint_a:
        rows, columns = columns, rows
    for label, places, size, column in (("k", columns, sizes[1], 1), ("m", rows, sizes[0], 0)):
        if places.numel() and (int(places.max()) >= size or int(places.min()) < 0):
            at = int(torch.nonzero((places >= size) | (places < 0))[0])
            raise InvalidArgumentError(
                None, None, f"{label} ({int(places[at])}) from index[{at},{column}] out of bounds (>={size})"
            )
    return rows, columns


def _summed_products(
    rows: torch.Tensor, columns: torch.Tensor, a_values: torch.Tensor, right: torch.Tensor, count: int
) -> torch.Tensor:
    products = right.index_select(0, columns) * a_values.unsqueeze(1)
    return products.new_zeros((count, right.shape[1])).index_add_(0, rows, products)


def _prepared_product(op: Operation, shape_of: Any) -> Prepared | None:
    """The host looks at the positions and sizes of A; the device takes rows and columns, and as many numbers as the result has rows."""
    adjoint_a, adjoint_b = op.attrs["adjoint_a"], op.attrs["adjoint_b"]

    def prepare(a_indices: torch.Tensor, a_shape: torch.Tensor) -> tuple[torch.Tensor, ...]:
        sizes = a_shape.tolist()
        if len(sizes) != 2 or a_indices.ndim != 2 or a_indices.shape[1] != 2:
            raise InvalidArgumentError(
                None,
                None,
                f"SparseTensorDenseMatMul needs a matrix, got {Shape(sizes)} with indices {Shape(a_indices.shape)}",
            )
        sizes = sizes[::-1] if adjoint_a else sizes
        allocatable(sizes[:1], 1)
        rows, columns = _places(a_indices, sizes, adjoint_a)
        return rows, columns, torch.empty((*sizes, 0))

    def kernel(
        a_values: torch.Tensor,
        b: torch.Tensor,
        rows: torch.Tensor,
        columns: torch.Tensor,
        sizes: torch.Tensor,
        **attributes: Any,
    ) -> torch.Tensor:
        right = b.mH if adjoint_b else b
        _check_inner(list(sizes.shape), right)
        values = a_values.conj() if adjoint_a else a_values
        return _summed_products(rows, columns, values, right, sizes.shape[0])

    return Prepared(("a_indices", "a_shape"), prepare, 3, ("a_values", "b"), kernel)


SPARSE_TENSOR_DENSE_MAT_MUL.planning.prepares = _prepared_product


@SPARSE_TENSOR_DENSE_MAT_MUL.shape(as_shapes=["a_shape"])
def sparse_tensor_dense_mat_mul_shape(
    a_indices: Shape, a_values: Shape, a_shape: Shape, b: Shape, *, adjoint_a: bool, adjoint_b: bool
) -> Shape:
    a, right = a_shape.of_rank(2), b.of_rank(2)
    merge_dims(a[0 if adjoint_a else 1], right[1 if adjoint_b else 0], a, right)
    return Shape((a[1 if adjoint_a else 0], right[0 if adjoint_b else 1]))


@SPARSE_TENSOR_DENSE_MAT_MUL.grad
def sparse_tensor_dense_mat_mul_grad(op: Operation, g: Tensor) -> Any:
    indices, values, shape, b = op.inputs
    adjoint_a, adjoint_b = op.attr("adjoint_a"), op.attr("adjoint_b")
    of_b = SPARSE_TENSOR_DENSE_MAT_MUL(indices, values, shape, g, adjoint_a=not adjoint_a)
    if adjoint_b:
        of_b = shaping.transpose(of_b, [1, 0], conjugate=True)
    rows, columns = indices[:, 0], indices[:, 1]
    if adjoint_a:
        rows, columns = columns, rows
    right = shaping.transpose(b, [1, 0], conjugate=True) if adjoint_b else b
    of_rows, of_columns = gathering.gather(g, rows), gathering.gather(right, columns)
    product = reductions.reduce_sum(arithmetic.multiply(of_rows, unary_functions.conj(of_columns)), 1)
    return None, unary_functions.conj(product) if adjoint_a else product, None, of_b


SPARSE_TENSOR_DENSE_ADD = define(
    "SparseTensorDenseAdd(a_indices: Tindices, a_values: T, a_shape: Tindices, b: T) -> (output: T)",
    T=NUMERIC,
    Tindices=INDEX,
)


@SPARSE_TENSOR_DENSE_ADD.kernel
def sparse_tensor_dense_add_kernel(
    a_indices: torch.Tensor, a_values: torch.Tensor, a_shape: torch.Tensor, b: torch.Tensor
) -> torch.Tensor:
    if a_shape.tolist() != list(b.shape):
        raise InvalidArgumentError(
            None,
            None,
            f"Dimensions of the operands do not match: {Shape(a_shape.tolist())} (sparse side) vs {Shape(b.shape)} (dense side)",
        )
    result = b.clone(memory_format=torch.contiguous_format)
    signed(result).reshape(-1).index_add_(0, flat_positions(a_indices, list(b.shape)), signed(a_values))
    return result


@SPARSE_TENSOR_DENSE_ADD.shape
def sparse_tensor_dense_add_shape(a_indices: Shape, a_values: Shape, a_shape: Shape, b: Shape) -> Shape:
    return b


@SPARSE_TENSOR_DENSE_ADD.grad
def sparse_tensor_dense_add_grad(op: Operation, g: Tensor) -> Any:
    return None, gathering.GATHER_ND(g, op.inputs[0]), None, g


# ---- element-wise ops with a dense tensor -----------------------------------------------------------------------


def _dense_counterparts(sp_indices: torch.Tensor, sp_shape: torch.Tensor, dense: torch.Tensor) -> torch.Tensor:
    """The elements of the broadcast `dense` at the coordinates of the sparse tensor."""
    sizes = sp_shape.tolist()
    lead = len(sizes) - dense.ndim
    if lead < 0 or any(own not in (1, size) for own, size in zip(dense.shape, sizes[lead:])):
        raise InvalidArgumentError(
            None,
            None,
            f"SparseDenseBinaryOpShared broadcasts dense to sparse only; got incompatible shapes: {Shape(sizes)} vs. {Shape(dense.shape)}",
        )
    return (
        signed(dense).expand(sizes)[tuple(sp_indices.unbind(1))].view(dense.dtype)
        if len(sizes)
        else dense.expand(sp_indices.shape[0])
    )


def _cwise(name: str, kernel: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> OpDefinition:
    definition = define(
        f"SparseDenseCwise{name}(sp_indices: matrix int64, sp_values: any/vector T, sp_shape: any/vector int64, dense: T) -> (output: T)",
        T=NUMERIC,
    )

    @definition.kernel
    def cwise_kernel(
        sp_indices: torch.Tensor, sp_values: torch.Tensor, sp_shape: torch.Tensor, dense: torch.Tensor
    ) -> torch.Tensor:
        sizes = sizes_of(sp_shape)
        check_parts(sp_indices, sp_values, sizes)
        flat_positions(sp_indices, sizes)
        return kernel(sp_values, _dense_counterparts(sp_indices, sp_shape, dense)).to(sp_values.dtype)

    @definition.shape
    def cwise_shape(sp_indices: Shape, sp_values: Shape, sp_shape: Shape, dense: Shape) -> Shape:
        return Shape((sp_indices.of_rank(2)[0],))

    return definition


def _divide(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if x.dtype.is_floating_point or x.dtype.is_complex:
        return x / y
    if not bool(y.all()):
        raise InvalidArgumentError(None, None, "Integer division by zero")
    return arithmetic.TRUNCATE_DIV.kernel_fn(x, y)  # type: ignore[misc]


SPARSE_DENSE_CWISE_ADD = _cwise("Add", modular_binary(torch.add))
SPARSE_DENSE_CWISE_MUL = _cwise("Mul", modular_binary(torch.mul))
SPARSE_DENSE_CWISE_DIV = _cwise("Div", _divide)


def _cwise_grad(
    op: Operation, g: Tensor, of_sparse: Callable[[Tensor], Tensor], of_dense: Callable[[Tensor], Tensor]
) -> Any:
    """The gradients of the values and of the dense operand, computed from the dense elements that were used."""
    indices, _, shape, dense = op.inputs
    own = shaping.shape(dense, out_type=dtypes.int64)
    outer = arithmetic.subtract(ranges.size(shape), ranges.size(own))
    whole, inner = shape[outer:], indices[:, outer:]
    scaled = arithmetic.floordiv(inner, arithmetic.floordiv(whole, own))
    elements = gathering.GATHER_ND(dense, scaled)
    return None, of_sparse(elements), None, scattering.SCATTER_ND(scaled, of_dense(elements), own)


@SPARSE_DENSE_CWISE_ADD.grad
def sparse_dense_cwise_add_grad(op: Operation, g: Tensor) -> Any:
    raise NotImplementedError("Gradient for SparseDenseCwiseAdd is not implemented.")  # TensorFlow has none either


@SPARSE_DENSE_CWISE_MUL.grad
def sparse_dense_cwise_mul_grad(op: Operation, g: Tensor) -> Any:
    return _cwise_grad(
        op, g, lambda dense: arithmetic.multiply(g, dense), lambda dense: arithmetic.multiply(g, op.inputs[1])
    )


@SPARSE_DENSE_CWISE_DIV.grad
def sparse_dense_cwise_div_grad(op: Operation, g: Tensor) -> Any:
    x = op.inputs[1]
    return _cwise_grad(
        op,
        g,
        lambda dense: arithmetic.realdiv(g, dense),
        lambda dense: arithmetic.multiply(
            g, arithmetic.realdiv(arithmetic.realdiv(unary_functions.negative(x), dense), dense)
        ),
    )
