"""Functions of matrices: exponential, square root, logarithm."""

from __future__ import annotations

import math as numbers
from collections.abc import Callable
from typing import Any

import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import COMPLEX, DType
from stoker._src.base.export import export
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import define
from stoker._src.graph.late_binding import ops
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import casting, constants, shaping
from stoker._src.ops.linalg import diagonals, matrix_products, solvers
from stoker._src.ops.linalg.decompositions import (
    EIG,
    MATRIX_INVERSE,
    TYPES,
    as_column,
    as_columns,
    as_row,
    complex_of,
    product,
)
from stoker._src.ops.linalg.square_matrices import check_square, square, wide
from stoker._src.ops.math import arithmetic, comparison, reductions, unary_functions


def _matrix_function(name: str, function: Callable[[torch.Tensor], torch.Tensor], allowed: tuple[DType, ...]) -> Any:
    def kernel(input: torch.Tensor) -> torch.Tensor:
        check_square(input)
        if not bool(torch.isfinite(input).all()):  # torch's kernels would fail
            return torch.full_like(input, torch.nan)
        return function(wide(input)).to(input.dtype)

    kernel.__name__ = kernel.__qualname__ = f"{name.lower()}_kernel"
    definition = define(f"{name}(input: T) -> (output: T)", T=allowed)
    definition.kernel(kernel)
    definition.shape(square)
    return definition


MATRIX_EXPONENTIAL = _matrix_function("MatrixExponential", torch.linalg.matrix_exp, TYPES)


def _square_root(x: torch.Tensor) -> torch.Tensor:
    """By diagonalization. The root of a matrix that cannot be diagonalized is not exact."""
    values, vectors = torch.linalg.eig(x)
    root = vectors @ torch.diag_embed(torch.sqrt(values)) @ torch.linalg.inv(vectors)
    return root if x.is_complex() else root.real.contiguous()


MATRIX_SQUARE_ROOT = _matrix_function("MatrixSquareRoot", _square_root, TYPES)


def _logarithm(x: torch.Tensor) -> torch.Tensor:
    values, vectors = torch.linalg.eig(x)
    return vectors @ torch.diag_embed(torch.log(values)) @ torch.linalg.inv(vectors)


MATRIX_LOGARITHM = _matrix_function("MatrixLogarithm", _logarithm, COMPLEX)


@MATRIX_SQUARE_ROOT.grad
def matrix_square_root_grad(op: Operation, g: Tensor) -> Tensor:
    """The solution z of y^T z + z y^T = g in the eigenbasis of y. TensorFlow does not conjugate."""
    y = matrix_products.transposed(op.outputs[0])
    values, vectors = EIG(y, Tout=complex_of(y.dtype.base_dtype))
    inverse = MATRIX_INVERSE(vectors)
    turned = product(product(inverse, casting.cast(g, vectors.dtype.base_dtype)), vectors)
    solved = arithmetic.realdiv(turned, arithmetic.add(as_columns(values), as_row(values)))
    return casting.cast(product(product(vectors, solved), inverse), y.dtype.base_dtype)


@export("linalg.expm")
def matrix_exponential(input: Any, name: str | None = None) -> Tensor:
    """The exponential of each matrix, by Padé approximation with scaling and squaring (Higham, 2005).

    Raises:
        ValueError: the matrices are not square.
    """
    with name_scope(name, "matrix_exponential", [input]):
        x = convert_to_tensor(input, name="matrix")
        part = x.dtype.base_dtype.real_dtype
        # Each order, with the norm up to which it is accurate to the last bits of double or single precision.
        order, limit = (13, 5.371920351148152) if part is dtypes.float64 else (7, 3.925724783138660)
        norms = reductions.reduce_max(reductions.reduce_sum(unary_functions.abs(x), -2), -1)
        if not part.is_floating:
            raise ValueError(f"tf.linalg.expm does not support matrices of type {x.dtype.name}")
        ratio = arithmetic.realdiv(norms, constants.number(limit, norms))
        doublings = arithmetic.maximum(
            unary_functions.ceil(
                arithmetic.realdiv(unary_functions.log(ratio), constants.number(numbers.log(2), norms))
            ),
            constants.number(0, norms),
        )
        doublings = shaping.stop_gradient(doublings)
        scaled = arithmetic.realdiv(
            x, casting.cast(as_column(arithmetic.power(constants.number(2, norms), doublings)), x.dtype.base_dtype)
        )
        start = _pade(scaled, order)
        if x.static_shape.size == 0:
            return start
        times = reductions.reduce_max(doublings)

        def squared(i: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
            again = arithmetic.select(as_column(comparison.less(i, doublings)), product(y, y), y)
            again.set_shape(y.static_shape)
            return arithmetic.add(i, constants.number(1, i)), again

        zero = shaping.zeros_like(times)
        return ops.while_loop_v2(lambda i, y: comparison.less(i, times), squared, (zero, start))[1]


def _pade(x: Tensor, order: int) -> Tensor:
    """(v - u)^-1 (v + u), where v and u are the even and odd parts of the Padé numerator."""
    weights = [
        numbers.factorial(2 * order - j) / (numbers.factorial(order - j) * numbers.factorial(j))
        for j in range(order + 1)
    ]
    weights = [weight / weights[-1] for weight in weights]
    x2 = product(x, x)
    size = x.static_shape[-1]
    eye = diagonals.eye(size if size is not None else shaping.shape(x)[-1], dtype=x.dtype.base_dtype)
    even, odd = (arithmetic.multiply(constants.number(weights[j], x), eye) for j in (0, 1))
    power = x2
    for j in range(2, order + 1, 2):
        even = arithmetic.add(even, arithmetic.multiply(constants.number(weights[j], x), power))
        odd = arithmetic.add(odd, arithmetic.multiply(constants.number(weights[j + 1], x), power)) if j < order else odd
        power = product(power, x2) if j + 2 <= order else power
    odd = product(x, odd)
    return solvers.MATRIX_SOLVE(arithmetic.subtract(even, odd), arithmetic.add(even, odd))


@export("linalg.sqrtm", "matrix_square_root")
def matrix_square_root(input: Any, name: str | None = None) -> Tensor:
    """The principal square root of each matrix."""
    return MATRIX_SQUARE_ROOT(input, name=name)


@export("linalg.logm")
def matrix_logarithm(input: Any, name: str | None = None) -> Tensor:
    """The principal logarithm of each complex matrix."""
    return MATRIX_LOGARITHM(input, name=name)
