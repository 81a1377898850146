"""Matrices as objects: `tf.linalg.LinearOperator` and its common kinds. Each keeps the numbers that define it, and acts as its matrix."""

from __future__ import annotations

from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.export import export
from stoker._src.base.shapes import TensorShape
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.static_values import constant_value
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import joining, ranges, shaping
from stoker._src.ops.linalg import decompositions, diagonals, matrix_products, solvers
from stoker._src.ops.math import arithmetic, reductions, unary_functions


@export("linalg.LinearOperator")
class LinearOperator:
    """A (batch of) matrices of shape [..., M, N] that is known by what it does.

    A subclass makes its matrix in `to_dense`, and overrides what its structure makes cheaper.
    """

    def __init__(
        self,
        dtype: Any,
        graph_parents: Any = None,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str | None = None,
    ) -> None:
        if is_positive_definite:
            if is_non_singular is False:
                raise ValueError("A positive definite matrix is always non-singular.")
            is_non_singular = True
        if is_non_singular:
            if is_square is False:
                raise ValueError("A non-singular matrix is always square.")
            is_square = True
        self.dtype = None if dtype is None else dtypes.as_dtype(dtype).base_dtype
        self.graph_parents = list(graph_parents or [])
        self.name = name or type(self).__name__
        self.is_non_singular, self.is_self_adjoint = is_non_singular, is_self_adjoint
        self.is_positive_definite, self._square = is_positive_definite, is_square

    # -- shapes --------------------------------------------------------------------------------------------------

    @property
    def shape(self) -> TensorShape:
        return self.to_dense().shape

    def shape_tensor(self, name: str = "shape_tensor") -> Tensor:
        """The shape as a tensor."""
        return shaping.shape(self.to_dense(), name=name)

    @property
    def batch_shape(self) -> TensorShape:
        return self.shape[:-2]

    def batch_shape_tensor(self, name: str = "batch_shape_tensor") -> Tensor:
        """The leading dimensions as a tensor."""
        return shaping.identity(self.shape_tensor()[:-2], name=name)

    @property
    def tensor_rank(self) -> int | None:
        return self.shape.ndims

    def tensor_rank_tensor(self, name: str = "tensor_rank_tensor") -> Tensor:
        """The number of dimensions as a tensor."""
        return ranges.rank(self.to_dense(), name=name)

    @property
    def domain_dimension(self) -> Any:
        return self.shape[-1]

    def domain_dimension_tensor(self, name: str = "domain_dimension_tensor") -> Tensor:
        """The number of columns as a tensor."""
        return shaping.identity(self.shape_tensor()[-1], name=name)

    @property
    def range_dimension(self) -> Any:
        return self.shape[-2]

    def range_dimension_tensor(self, name: str = "range_dimension_tensor") -> Tensor:
        """The number of rows as a tensor."""
        return shaping.identity(self.shape_tensor()[-2], name=name)

    @property
    def is_square(self) -> bool | None:
        rows, columns = self.shape[-2:]
        known = None if rows is None or columns is None else int(rows) == int(columns)
        return self._square if known is None else known

    def _need_square(self, what: str) -> None:
        if self.is_square is False:
            raise NotImplementedError(f"{what} needs a square matrix; {self.name} has the shape {self.shape}.")

    # -- values --------------------------------------------------------------------------------------------------

    def to_dense(self, name: str = "to_dense") -> Tensor:
        """The matrix."""
        raise NotImplementedError(f"{type(self).__name__} does not say what its matrix is.")

    def diag_part(self, name: str = "diag_part") -> Tensor:
        """The main diagonal."""
        return diagonals.matrix_diag_part(self.to_dense(), name=name)

    def trace(self, name: str = "trace") -> Tensor:
        """The sum of the main diagonal."""
        return reductions.reduce_sum(self.diag_part(), -1, name=name)

    def determinant(self, name: str = "det") -> Tensor:
        """The determinant of each matrix."""
        self._need_square("determinant")
        return decompositions.matrix_determinant(self.to_dense(), name=name)

    def log_abs_determinant(self, name: str = "log_abs_det") -> Tensor:
        """The logarithm of the determinant's absolute value."""
        self._need_square("log_abs_determinant")
        return decompositions.slogdet(self.to_dense(), name=name)[1]

    def matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "matmul") -> Any:
        """Multiplies the matrices by those of `x`; with `adjoint` and `adjoint_arg`, by the conjugate transposes."""
        with name_scope(name):
            if isinstance(x, LinearOperator):
                return LinearOperatorFullMatrix(self.matmul(x.to_dense(), adjoint, adjoint_arg))
            x = convert_to_tensor(x, self.dtype)
            return self._product(matrix_products.adjoint(x) if adjoint_arg else x, adjoint)

    def _product(self, x: Tensor, adjoint: bool) -> Tensor:
        return matrix_products.matmul(self.to_dense(), x, adjoint_a=adjoint)

    def __matmul__(self, other: Any) -> Any:
        return self.matmul(other)

    def matvec(self, x: Any, adjoint: bool = False, name: str = "matvec") -> Tensor:
        """Multiplies the matrices by vectors of shape [..., N]."""
        with name_scope(name):
            column = shaping.expand_dims(convert_to_tensor(x, self.dtype), -1)
            return shaping.squeeze(self._product(column, adjoint), [-1])

    def solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "solve") -> Any:
        """Solves `self @ x = rhs`."""
        self._need_square("solve")
        with name_scope(name):
            if isinstance(rhs, LinearOperator):
                return LinearOperatorFullMatrix(self.solve(rhs.to_dense(), adjoint, adjoint_arg))
            rhs = convert_to_tensor(rhs, self.dtype)
            return self._solution(matrix_products.adjoint(rhs) if adjoint_arg else rhs, adjoint)

    def _solution(self, rhs: Tensor, adjoint: bool) -> Tensor:
        matrix, rhs = _same_batch(self.to_dense(), rhs)
        return solvers.matrix_solve(matrix, rhs, adjoint=adjoint)

    def solvevec(self, rhs: Any, adjoint: bool = False, name: str = "solve") -> Tensor:
        """Solves for vectors of shape [..., N]."""
        self._need_square("solvevec")
        with name_scope(name):
            column = shaping.expand_dims(convert_to_tensor(rhs, self.dtype), -1)
            return shaping.squeeze(self._solution(column, adjoint), [-1])

    def add_to_tensor(self, x: Any, name: str = "add_to_tensor") -> Tensor:
        """The matrix plus `x`."""
        return arithmetic.add(self.to_dense(), convert_to_tensor(x, self.dtype), name=name)

    # -- other operators -----------------------------------------------------------------------------------------

    def adjoint(self, name: str = "adjoint") -> LinearOperator:
        """The operator of the conjugate transpose."""
        if self.is_self_adjoint:
            return self
        return LinearOperatorFullMatrix(matrix_products.adjoint(self.to_dense(), name=name), **self._hints())

    H = property(adjoint)

    def inverse(self, name: str = "inverse") -> LinearOperator:
        """The operator of the inverse."""
        self._need_square("inverse")
        return LinearOperatorFullMatrix(decompositions.matrix_inverse(self.to_dense(), name=name), **self._hints())

    def cholesky(self, name: str = "cholesky") -> LinearOperator:
        """The lower triangular factor of a positive definite operator that is its own adjoint."""
        if not (self.is_positive_definite and self.is_self_adjoint):
            raise ValueError("Cannot take the Cholesky decomposition: Not a positive definite self adjoint matrix.")
        return LinearOperatorLowerTriangular(
            decompositions.cholesky(self.to_dense(), name=name), is_non_singular=True, is_self_adjoint=False
        )

    def _hints(self) -> dict[str, Any]:
        return {
            "is_non_singular": self.is_non_singular,
            "is_self_adjoint": self.is_self_adjoint,
            "is_positive_definite": self.is_positive_definite,
        }


def _same_batch(matrix: Tensor, rhs: Tensor) -> tuple[Tensor, Tensor]:
    """Both with the leading dimensions that the two broadcast to."""
    ranks = matrix.static_shape.rank, rhs.static_shape.rank
    if ranks == (2, 2) or (None not in ranks and matrix.static_shape[:-2] == rhs.static_shape[:-2]):
        return matrix, rhs
    batch = ranges.broadcast_dynamic_shape(shaping.shape(matrix)[:-2], shaping.shape(rhs)[:-2])
    wide = [ranges.broadcast_to(each, joining.concat([batch, shaping.shape(each)[-2:]], 0)) for each in (matrix, rhs)]
    return wide[0], wide[1]


@export("linalg.LinearOperatorFullMatrix")
class LinearOperatorFullMatrix(LinearOperator):
    """A matrix without structure."""

    def __init__(
        self,
        matrix: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorFullMatrix",
    ) -> None:
        self._matrix = convert_to_tensor(matrix, name="matrix")
        super().__init__(
            self._matrix.dtype, [self._matrix], is_non_singular, is_self_adjoint, is_positive_definite, is_square, name
        )

    @property
    def matrix(self) -> Tensor:
        return self._matrix

    def to_dense(self, name: str = "to_dense") -> Tensor:
        """The matrix."""
        return self._matrix


@export("linalg.LinearOperatorLowerTriangular")
class LinearOperatorLowerTriangular(LinearOperator):
    """The lower triangle of `tril`; what is above its diagonal counts as zero."""

    def __init__(
        self,
        tril: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorLowerTriangular",
    ) -> None:
        if is_square is False:
            raise ValueError("Only square lower triangular operators supported at this time.")
        tril = convert_to_tensor(tril, name="tril")
        self._tril = diagonals.matrix_band_part(tril, -1, 0)
        super().__init__(self._tril.dtype, [tril], is_non_singular, is_self_adjoint, is_positive_definite, True, name)

    def to_dense(self, name: str = "to_dense") -> Tensor:
        """The matrix."""
        return self._tril

    def determinant(self, name: str = "det") -> Tensor:
        """The product of the diagonal."""
        return reductions.reduce_prod(self.diag_part(), -1, name=name)

    def log_abs_determinant(self, name: str = "log_abs_det") -> Tensor:
        """The sum of the logarithms of the diagonal's absolute values."""
        return reductions.reduce_sum(unary_functions.log(unary_functions.abs(self.diag_part())), -1, name=name)

    def _solution(self, rhs: Tensor, adjoint: bool) -> Tensor:
        matrix, rhs = _same_batch(self._tril, rhs)
        return solvers.matrix_triangular_solve(matrix, rhs, lower=True, adjoint=adjoint)


class _Diagonal(LinearOperator):
    """An operator that scales each row."""

    def diag_part(self, name: str = "diag_part") -> Tensor:
        raise NotImplementedError

    def to_dense(self, name: str = "to_dense") -> Tensor:
        """The matrix."""
        return diagonals.matrix_diag(self.diag_part(), name=name)

    def determinant(self, name: str = "det") -> Tensor:
        """The product of the diagonal."""
        return reductions.reduce_prod(self.diag_part(), -1, name=name)

    def log_abs_determinant(self, name: str = "log_abs_det") -> Tensor:
        """The sum of the logarithms of the diagonal's absolute values."""
        return reductions.reduce_sum(unary_functions.log(unary_functions.abs(self.diag_part())), -1, name=name)

    def _factors(self, adjoint: bool) -> Tensor:
        factors = self.diag_part()
        return shaping.expand_dims(unary_functions.conj(factors) if adjoint else factors, -1)

    def _product(self, x: Tensor, adjoint: bool) -> Tensor:
        return arithmetic.multiply(self._factors(adjoint), x)

    def _solution(self, rhs: Tensor, adjoint: bool) -> Tensor:
        return arithmetic.truediv(rhs, self._factors(adjoint))

    def adjoint(self, name: str = "adjoint") -> LinearOperator:
        """The operator of the conjugate transpose."""
        return LinearOperatorDiag(unary_functions.conj(self.diag_part(), name=name), **self._hints())

    H = property(adjoint)

    def inverse(self, name: str = "inverse") -> LinearOperator:
        """The operator of the inverse."""
        return LinearOperatorDiag(unary_functions.reciprocal(self.diag_part(), name=name), **self._hints())

    def cholesky(self, name: str = "cholesky") -> LinearOperator:
        """The operator of the diagonal's roots."""
        return LinearOperatorDiag(unary_functions.sqrt(self.diag_part(), name=name), is_non_singular=True)


@export("linalg.LinearOperatorDiag")
class LinearOperatorDiag(_Diagonal):
    """A square matrix that is zero beside its diagonal `diag`."""

    def __init__(
        self,
        diag: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorDiag",
    ) -> None:
        if is_square is False:
            raise ValueError("Only square diagonal operators currently supported.")
        self._diag = convert_to_tensor(diag, name="diag")
        if not self._diag.dtype.is_complex:
            is_self_adjoint = True
        super().__init__(
            self._diag.dtype, [self._diag], is_non_singular, is_self_adjoint, is_positive_definite, True, name
        )

    @property
    def diag(self) -> Tensor:
        return self._diag

    def diag_part(self, name: str = "diag_part") -> Tensor:
        """The main diagonal."""
        return self._diag


@export("linalg.LinearOperatorScaledIdentity")
class LinearOperatorScaledIdentity(_Diagonal):
    """The identity matrix of `num_rows` rows times each number of `multiplier`."""

    def __init__(
        self,
        num_rows: Any,
        multiplier: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = True,
        assert_proper_shapes: bool = False,
        name: str = "LinearOperatorScaledIdentity",
    ) -> None:
        if not is_square:
            raise ValueError("A ScaledIdentity operator is always square.")
        self._multiplier = convert_to_tensor(multiplier, name="multiplier")
        rows = constant_value(num_rows) if isinstance(num_rows, Tensor) else num_rows
        if rows is not None and int(rows) < 0:
            raise ValueError(f"num_rows must be non-negative.  Found: {num_rows}")
        self._rows = num_rows if rows is None else int(rows)
        if not self._multiplier.dtype.is_complex:
            is_self_adjoint = True
        parents = [self._multiplier]
        super().__init__(
            self._multiplier.dtype, parents, is_non_singular, is_self_adjoint, is_positive_definite, True, name
        )

    @property
    def multiplier(self) -> Tensor:
        return self._multiplier

    def diag_part(self, name: str = "diag_part") -> Tensor:
        """The main diagonal."""
        ones = shaping.ones([self._rows], self._multiplier.dtype)
        return arithmetic.multiply(shaping.expand_dims(self._multiplier, -1), ones, name=name)


@export("linalg.LinearOperatorIdentity")
class LinearOperatorIdentity(LinearOperatorScaledIdentity):
    """The identity matrix of `num_rows` rows, for each element of `batch_shape`."""

    def __init__(
        self,
        num_rows: Any,
        batch_shape: Any = None,
        dtype: Any = None,
        is_non_singular: bool | None = True,
        is_self_adjoint: bool | None = True,
        is_positive_definite: bool | None = True,
        is_square: bool | None = True,
        assert_proper_shapes: bool = False,
        name: str = "LinearOperatorIdentity",
    ) -> None:
        if not is_self_adjoint:
            raise ValueError("An identity operator is always self adjoint.")
        if not is_non_singular:
            raise ValueError("An identity operator is always non-singular.")
        if not is_positive_definite:
            raise ValueError("An identity operator is always positive-definite.")
        ones = shaping.ones([] if batch_shape is None else batch_shape, dtype or dtypes.float32)
        super().__init__(
            num_rows,
            ones,
            is_non_singular,
            is_self_adjoint,
            is_positive_definite,
            is_square,
            assert_proper_shapes,
            name,
        )
