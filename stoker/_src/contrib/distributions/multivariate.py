"""Normal distributions over vectors: an affine map of independent standard normal numbers."""

from __future__ import annotations

import math
from typing import Any

from stoker._src.base.export import export
from stoker._src.base.shapes import Shape, broadcast
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import casting, joining, ranges, shaping
from stoker._src.ops.distributions.base import FULLY_REPARAMETERIZED, Distribution, keeps_arguments, number
from stoker._src.ops.distributions.checks import checked
from stoker._src.ops.distributions.divergence import RegisterKL
from stoker._src.ops.linalg import decompositions, diagonals, matrix_products, solvers
from stoker._src.ops.math import comparison, reductions, unary_functions
from stoker._src.ops.nn import activations
from stoker._src.ops.random import uniform_normal


class Diagonal:
    """A scale whose matrix is diagonal: the numbers [..., k] on it."""

    def __init__(self, numbers: Tensor) -> None:
        self.numbers = numbers

    def sizes(self) -> Tensor:
        return shaping.shape(self.numbers)

    def known(self) -> Shape:
        return self.numbers.static_shape

    def apply(self, x: Tensor) -> Tensor:
        return x * self.numbers

    def undo(self, y: Tensor) -> Tensor:
        return y / self.numbers

    def log_determinant(self) -> Tensor:
        return reductions.reduce_sum(unary_functions.log(unary_functions.abs(self.numbers)), -1)

    def dense(self) -> Tensor:
        return diagonals.matrix_diag(self.numbers)

    def variance(self) -> Tensor:
        return unary_functions.square(self.numbers)


class LowerTriangle:
    """A scale that is a lower triangular matrix [..., k, k]."""

    def __init__(self, matrix: Tensor) -> None:
        self.matrix = diagonals.matrix_band_part(matrix, -1, 0)

    def sizes(self) -> Tensor:
        return shaping.shape(self.matrix)[:-1]

    def known(self) -> Shape:
        whole = self.matrix.static_shape
        return whole if whole.rank is None else Shape(tuple(whole)[:-1])

    def apply(self, x: Tensor) -> Tensor:
        # Written as a sum so that samples and matrices with different batch shapes are broadcast.
        return reductions.reduce_sum(self.matrix * shaping.expand_dims(x, -2), -1)

    def undo(self, y: Tensor) -> Tensor:
        column = shaping.expand_dims(y, -1)
        front = ranges.broadcast_dynamic_shape(shaping.shape(self.matrix)[:-2], shaping.shape(column)[:-2])
        matrix = ranges.broadcast_to(self.matrix, joining.concat([front, shaping.shape(self.matrix)[-2:]], 0))
        column = ranges.broadcast_to(column, joining.concat([front, shaping.shape(column)[-2:]], 0))
        return shaping.squeeze(solvers.matrix_triangular_solve(matrix, column), -1)

    def log_determinant(self) -> Tensor:
        return reductions.reduce_sum(
            unary_functions.log(unary_functions.abs(diagonals.matrix_diag_part(self.matrix))), -1
        )

    def dense(self) -> Tensor:
        return self.matrix

    def variance(self) -> Tensor:
        return reductions.reduce_sum(unary_functions.square(self.matrix), -1)


class MultivariateNormal(Distribution):
    """The distribution of `loc + scale z`, where z are independent standard normal numbers."""

    _spread: Diagonal | LowerTriangle
    _loc: Tensor | None

    def _start(
        self, loc: Any, spread: Any, validate_args: bool, allow_nan_stats: bool, parents: list[Any], name: str
    ) -> None:
        self._spread = spread
        self._loc = None if loc is None else convert_to_tensor(loc, name="loc")
        kind = spread.dense().dtype.base_dtype
        super().__init__(kind, FULLY_REPARAMETERIZED, validate_args, allow_nan_stats, graph_parents=parents, name=name)

    @property
    def loc(self) -> Tensor | None:
        return self._loc

    def _whole(self) -> Shape:
        found = self._spread.known()
        return found if self._loc is None else broadcast(found, self._loc.static_shape)

    def _sizes(self) -> Tensor:
        found = self._spread.sizes()
        return found if self._loc is None else ranges.broadcast_dynamic_shape(found, shaping.shape(self._loc))

    def _batch_shape(self) -> Shape:
        whole = self._whole()
        return whole if whole.rank is None else Shape(tuple(whole)[:-1])

    def _event_shape(self) -> Shape:
        whole = self._whole()
        return Shape((None,)) if whole.rank is None else Shape(tuple(whole)[-1:])

    def _batch_shape_tensor(self) -> Tensor:
        return self._sizes()[:-1]

    def _event_shape_tensor(self) -> Tensor:
        return self._sizes()[-1:]

    def _shifted(self, x: Tensor) -> Tensor:
        return x if self._loc is None else x + self._loc

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        shape = joining.concat([[n], self.batch_shape_tensor(), self.event_shape_tensor()], 0)
        drawn = uniform_normal.random_normal(shape, 0.0, 1.0, self.dtype, seed=seed)
        return self._shifted(self._spread.apply(drawn))

    def _log_prob(self, x: Tensor) -> Tensor:
        z = self._spread.undo(x if self._loc is None else x - self._loc)
        # Each of the k independent numbers has the density of a standard normal one.
        each = -0.5 * unary_functions.square(z) - number(0.5 * math.log(2 * math.pi), z)
        return reductions.reduce_sum(each, -1) - self._spread.log_determinant()

    def _entropy(self) -> Tensor:
        size = casting.cast(self.event_shape_tensor()[0], self.dtype)
        half = number(0.5 * (1 + math.log(2 * math.pi)), size)
        found = size * half + self._spread.log_determinant()
        return ranges.broadcast_to(found, self.batch_shape_tensor())

    def _mean(self) -> Tensor:
        return self._shifted(shaping.zeros(self._sizes(), self.dtype))

    def _mode(self) -> Tensor:
        return self._mean()

    def _variance(self) -> Tensor:
        return self._spread.variance()  # of the scale's batch: 1.15 does not broadcast it to that of the mean

    def _covariance(self) -> Tensor:
        matrix = self._spread.dense()
        return matrix_products.matmul(matrix, matrix, adjoint_b=True)


def _diagonal(loc: Any, diag: Any, multiplier: Any, validate_args: bool) -> Tensor:
    """The diagonal of a scale: `diag`, plus `multiplier` times the identity.

    Raises:
        ValueError: no size is known.
    """
    if diag is None and multiplier is None:
        if loc is None:
            raise ValueError("One of loc, scale_diag and scale_identity_multiplier must be given.")
        return shaping.ones_like(convert_to_tensor(loc))
    found = None if diag is None else convert_to_tensor(diag, name="scale_diag")
    if multiplier is not None:
        times = shaping.expand_dims(convert_to_tensor(multiplier, name="scale_identity_multiplier"), -1)
        if found is None:
            if loc is None:
                raise ValueError(
                    "scale_identity_multiplier needs loc or scale_diag, which have the size of the events."
                )
            found = times * shaping.ones_like(convert_to_tensor(loc))
        else:
            found = found + times
    assert found is not None
    if validate_args:
        fine = comparison.not_equal(found, number(0, found))
        found = checked(found, [(fine, "Singular operator: a diagonal element is zero.")])
    return found


@export(v1="contrib.distributions.MultivariateNormalDiag")
class MultivariateNormalDiag(MultivariateNormal):
    """A normal distribution over vectors with independent elements.

    Args:
        loc: the mean, [..., k]; None for zero.
        scale_diag: the standard deviations, [..., k]; None for one.
        scale_identity_multiplier: a number to add to all of them, or the standard deviation if there is no `scale_diag`.
    """

    @keeps_arguments
    def __init__(
        self,
        loc: Any = None,
        scale_diag: Any = None,
        scale_identity_multiplier: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MultivariateNormalDiag",
    ) -> None:
        with name_scope(name) as scope:
            diagonal = _diagonal(loc, scale_diag, scale_identity_multiplier, validate_args)
            self._start(loc, Diagonal(diagonal), validate_args, allow_nan_stats, [diagonal], scope)


@export(v1="contrib.distributions.MultivariateNormalDiagWithSoftplusScale")
class MultivariateNormalDiagWithSoftplusScale(MultivariateNormalDiag):
    """`MultivariateNormalDiag` whose standard deviations are softplus(scale_diag)."""

    @keeps_arguments
    def __init__(
        self,
        loc: Any,
        scale_diag: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MultivariateNormalDiagWithSoftplusScale",
    ) -> None:
        with name_scope(name) as scope:
            soft = activations.softplus(convert_to_tensor(scale_diag))
        super().__init__(loc, soft, None, validate_args, allow_nan_stats, scope)


@export(v1="contrib.distributions.MultivariateNormalTriL")
class MultivariateNormalTriL(MultivariateNormal):
    """A normal distribution over vectors with the covariance `scale_tril @ scale_tril^T`.

    Args:
        loc: the mean, [..., k]; None for zero.
        scale_tril: a lower triangular matrix, [..., k, k]; None for the identity.
    """

    @keeps_arguments
    def __init__(
        self,
        loc: Any = None,
        scale_tril: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MultivariateNormalTriL",
    ) -> None:
        with name_scope(name) as scope:
            if scale_tril is None:
                spread: Any = Diagonal(_diagonal(loc, None, None, validate_args))
            else:
                matrix = convert_to_tensor(scale_tril, name="scale_tril")
                if validate_args:
                    diagonal = diagonals.matrix_diag_part(matrix)
                    fine = comparison.not_equal(diagonal, number(0, diagonal))
                    matrix = checked(matrix, [(fine, "Singular operator: a diagonal element is zero.")])
                spread = LowerTriangle(matrix)
            self._start(loc, spread, validate_args, allow_nan_stats, [spread.dense()], scope)


@export(v1="contrib.distributions.MultivariateNormalFullCovariance")
class MultivariateNormalFullCovariance(MultivariateNormalTriL):
    """A normal distribution over vectors with mean `loc` and the matrix `covariance_matrix`, [..., k, k]."""

    @keeps_arguments
    def __init__(
        self,
        loc: Any = None,
        covariance_matrix: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MultivariateNormalFullCovariance",
    ) -> None:
        with name_scope(name) as scope:
            lower = None
            if covariance_matrix is not None:
                matrix = convert_to_tensor(covariance_matrix, name="covariance_matrix")
                if validate_args:
                    same = comparison.equal(matrix, matrix_products.matrix_transpose(matrix))
                    matrix = checked(matrix, [(same, "Matrix was not symmetric.")])
                lower = decompositions.cholesky(matrix)
        super().__init__(loc, lower, validate_args, allow_nan_stats, scope)


@RegisterKL(MultivariateNormal, MultivariateNormal)
def _kl_normal_normal(a: MultivariateNormal, b: MultivariateNormal, name: str | None = None) -> Tensor:
    with name_scope(name, "kl_mvn"):
        if isinstance(a._spread, Diagonal) and isinstance(b._spread, Diagonal):
            squares = reductions.reduce_sum(unary_functions.square(a._spread.numbers / b._spread.numbers), -1)
        else:
            # |B^-1 A|^2 of the matrices, column by column of A.
            columns = matrix_products.matrix_transpose(a._spread.dense())
            spread = b._spread
            if isinstance(spread, Diagonal):
                solved = columns / shaping.expand_dims(spread.numbers, -2)
            else:
                solved = LowerTriangle(shaping.expand_dims(spread.matrix, -3)).undo(columns)
            squares = reductions.reduce_sum(unary_functions.square(solved), [-2, -1])
        apart = b._spread.undo(b.mean() - a.mean())
        size = casting.cast(a.event_shape_tensor()[0], a.dtype)
        return (
            b._spread.log_determinant()
            - a._spread.log_determinant()
            + 0.5 * (squares - size + reductions.reduce_sum(unary_functions.square(apart), -1))
        )
