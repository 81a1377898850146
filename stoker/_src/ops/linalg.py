"""Matrix products."""

from __future__ import annotations

from typing import Any

import torch

from stoker._src.base.dtypes import NUMERIC
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.shapes import Shape
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import define
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.math import conj

# ---- MatMul -----------------------------------------------------------------------------------------------------

MATMUL = define("MatMul(a: T, b: T) -> (product: T)", T=NUMERIC, transpose_a=False, transpose_b=False)


@MATMUL.kernel
def matmul_kernel(a: torch.Tensor, b: torch.Tensor, *, transpose_a: bool, transpose_b: bool) -> torch.Tensor:
    return torch.mm(a.t() if transpose_a else a, b.t() if transpose_b else b)


@MATMUL.shape
def matmul_shape(a: Shape, b: Shape, *, transpose_a: bool, transpose_b: bool) -> Shape:
    rows, inner_a = a.of_rank(2).mT if transpose_a else a.of_rank(2)
    inner_b, cols = b.of_rank(2).mT if transpose_b else b.of_rank(2)
    if None not in (inner_a, inner_b) and inner_a != inner_b:
        raise InvalidArgumentError(
            None,
            None,
            f"Dimensions must be equal, but are {inner_a} and {inner_b} for MatMul: a is {a}, b is {b}, "
            f"transpose_a={transpose_a}, transpose_b={transpose_b}.",
        )
    return Shape((rows, cols))


@MATMUL.grad
def matmul_grad(op: Operation, g: Tensor) -> tuple[Tensor, Tensor]:
    # Transposes are folded into the two products, so no transposed copy is made.
    a, b = conj(op.inputs[0]), conj(op.inputs[1])
    ta, tb = op.attr("transpose_a"), op.attr("transpose_b")
    da = MATMUL(b, g, transpose_a=tb, transpose_b=True) if ta else MATMUL(g, b, transpose_b=not tb)
    db = MATMUL(g, a, transpose_a=True, transpose_b=ta) if tb else MATMUL(a, g, transpose_a=not ta)
    return da, db


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
    name: str | None = None,
) -> Tensor:
    """The matrix product of `a` and `b`, each transposed if asked."""
    with name_scope(name, "MatMul", [a, b]) as scope:
        a = convert_to_tensor(a, name="a")
        b = convert_to_tensor(b, a.dtype.base_dtype, name="b")
        return MATMUL(a, b, transpose_a=transpose_a, transpose_b=transpose_b, name=scope)
