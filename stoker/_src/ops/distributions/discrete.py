"""Discrete distributions and their priors: Bernoulli, categorical, multinomial, Dirichlet and Dirichlet-multinomial."""

from __future__ import annotations

from typing import Any

import numpy as np

from stoker._src.base import dtypes
from stoker._src.base.dtypes import as_dtype
from stoker._src.base.export import export
from stoker._src.base.shapes import SCALAR, Shape, as_shape
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import casting, joining, ranges, selection, shaping
from stoker._src.ops.control_flow import functional_loops
from stoker._src.ops.distributions.base import (
    FULLY_REPARAMETERIZED,
    NOT_REPARAMETERIZED,
    Distribution,
    derived_seed,
    keeps_arguments,
    number,
    positive,
    probabilities,
)
from stoker._src.ops.distributions.checks import checked
from stoker._src.ops.distributions.divergence import RegisterKL
from stoker._src.ops.linalg import diagonals, matrix_products
from stoker._src.ops.math import comparison, reductions, scans, special, unary_functions
from stoker._src.ops.nn import activations, cross_entropy, softmax
from stoker._src.ops.random import sampling, uniform_normal


class _OfClasses(Distribution):
    """A distribution given by `logits` or `probs`."""

    _logits: Tensor
    _probs: Tensor

    @property
    def logits(self) -> Tensor:
        return self._logits

    @property
    def probs(self) -> Tensor:
        return self._probs


# ---- Bernoulli --------------------------------------------------------------------------------------------------


@export(v1="distributions.Bernoulli")
class Bernoulli(_OfClasses):
    """The Bernoulli distribution: 1 with probability `probs` (or given by `logits`), else 0."""

    @keeps_arguments
    def __init__(
        self,
        logits: Any = None,
        probs: Any = None,
        dtype: Any = dtypes.int32,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Bernoulli",
    ) -> None:
        with name_scope(name) as scope:
            self._logits, self._probs = probabilities(
                logits, probs, multidimensional=False, validate_args=validate_args, name=scope
            )
        super().__init__(
            as_dtype(dtype),
            NOT_REPARAMETERIZED,
            validate_args,
            allow_nan_stats,
            graph_parents=[self._logits, self._probs],
            name=scope,
        )

    @staticmethod
    def _param_shapes(sample_shape: Any) -> dict[str, Tensor]:
        return {"logits": convert_to_tensor(sample_shape, dtypes.int32)}

    def _batch_shape_tensor(self) -> Tensor:
        return shaping.shape(self._logits)

    def _batch_shape(self) -> Shape:
        return self._logits.static_shape

    def _event_shape_tensor(self) -> Tensor:
        return convert_to_tensor(np.zeros(0, np.int32))

    def _event_shape(self) -> Shape:
        return SCALAR

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        shape = joining.concat([[n], self.batch_shape_tensor()], 0)
        uniform = uniform_normal.random_uniform(shape, 0, None, self._probs.dtype.base_dtype, seed=seed)
        return casting.cast(comparison.less(uniform, self._probs), self.dtype)

    def _log_prob(self, event: Tensor) -> Tensor:
        if self.validate_args:
            rules = [
                (comparison.greater_equal(event, number(0, event)), "Elements must be non-negative."),
                (comparison.less_equal(event, number(1, event)), "Elements cannot exceed 1."),
            ]
            event = checked(event, rules)
        event = casting.cast(event, self._logits.dtype.base_dtype)
        logits = self._logits
        if not logits.static_shape.known or logits.static_shape.dims != event.static_shape.dims:
            shape = ranges.broadcast_dynamic_shape(shaping.shape(event), shaping.shape(logits))
            event, logits = ranges.broadcast_to(event, shape), ranges.broadcast_to(logits, shape)
        return unary_functions.negative(cross_entropy.sigmoid_cross_entropy_with_logits_v2(labels=event, logits=logits))

    def _entropy(self) -> Tensor:
        return -1.0 * self._logits * (unary_functions.sigmoid(self._logits) - 1.0) + activations.softplus(
            -1.0 * self._logits
        )

    def _mean(self) -> Tensor:
        return shaping.identity(self._probs)

    def _variance(self) -> Tensor:
        return self._probs * (1.0 - self._probs)

    def _mode(self) -> Tensor:
        return casting.cast(comparison.greater(self._probs, number(0.5, self._probs)), self.dtype)


@RegisterKL(Bernoulli, Bernoulli)
def _bernoulli_divergence(a: Bernoulli, b: Bernoulli, name: str | None = None) -> Tensor:
    with name_scope(name, "kl_bernoulli_bernoulli", [a.logits, b.logits]):
        zero = activations.softplus(-1.0 * b.logits) - activations.softplus(-1.0 * a.logits)
        one = activations.softplus(b.logits) - activations.softplus(a.logits)
        return unary_functions.sigmoid(a.logits) * zero + unary_functions.sigmoid(-1.0 * a.logits) * one


# ---- Categorical ------------------------------------------------------------------------------------------------


@export(v1="distributions.Categorical")
class Categorical(_OfClasses):
    """The categorical distribution over classes 0 to k - 1, with probabilities along the last dimension of `probs` (or `logits`)."""

    @keeps_arguments
    def __init__(
        self,
        logits: Any = None,
        probs: Any = None,
        dtype: Any = dtypes.int32,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Categorical",
    ) -> None:
        with name_scope(name) as scope:
            self._logits, self._probs = probabilities(
                logits, probs, multidimensional=True, validate_args=validate_args, name=scope
            )
            known = self._logits.static_shape.at_least(1)
            last = None if known.dims is None else known.dims[-1]
            self._event_size = (
                convert_to_tensor(last, dtypes.int32, name="event_size")
                if last is not None
                else shaping.shape(self._logits)[-1]
            )
        super().__init__(
            as_dtype(dtype),
            NOT_REPARAMETERIZED,
            validate_args,
            allow_nan_stats,
            graph_parents=[self._logits, self._probs],
            name=scope,
        )

    @property
    def event_size(self) -> Tensor:
        """The number of classes."""
        return self._event_size

    def _batch_shape_tensor(self) -> Tensor:
        return shaping.shape(self._logits)[:-1]

    def _batch_shape(self) -> Shape:
        dims = self._logits.static_shape.dims
        return Shape(None) if dims is None else Shape(dims[:-1])

    def _event_shape_tensor(self) -> Tensor:
        return convert_to_tensor(np.zeros(0, np.int32))

    def _event_shape(self) -> Shape:
        return SCALAR

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        rows = shaping.reshape(self._logits, joining.PACK([-1, self._event_size]))
        kind = dtypes.int64 if self.dtype.size > 4 else dtypes.int32
        drawn = sampling.multinomial(rows, n, seed=seed, output_dtype=kind)
        shape = joining.concat([[n], self.batch_shape_tensor()], 0)
        return casting.cast(shaping.reshape(shaping.transpose(drawn), shape), self.dtype)

    def _spread(self, k: Tensor, over: Tensor) -> tuple[Tensor, Tensor]:
        """Broadcasts classes and the rows of `over` to one batch shape."""
        k = casting.cast(k, self.dtype if self.dtype.is_integer else dtypes.int32)
        batch = as_shape(self._batch_shape())
        if batch.known and batch.dims == k.static_shape.dims:
            return k, over
        shape = ranges.broadcast_dynamic_shape(shaping.shape(k), self.batch_shape_tensor())
        whole = joining.concat([shape, shaping.reshape(self._event_size, [1])], 0)
        return ranges.broadcast_to(k, shape), ranges.broadcast_to(over, whole)

    def _log_prob(self, k: Tensor) -> Tensor:
        if self.validate_args:
            limit = casting.cast(self._event_size, k.dtype.base_dtype)
            k = checked(
                k,
                [
                    (comparison.greater_equal(k, number(0, k)), "Elements must be non-negative."),
                    (comparison.less(k, limit), "Elements must be less than the number of classes."),
                ],
            )
        k, logits = self._spread(k, self._logits)
        return unary_functions.negative(
            cross_entropy.sparse_softmax_cross_entropy_with_logits_v2(labels=k, logits=logits)
        )

    def _cdf(self, k: Tensor) -> Tensor:
        k, probs = self._spread(k, self._probs)
        sums = scans.cumsum(probs, axis=-1)
        hot = selection.one_hot(k, self._event_size, dtype=sums.dtype.base_dtype)
        return reductions.reduce_sum(sums * hot, -1) - _own(probs, hot)

    def _entropy(self) -> Tensor:
        return -1.0 * reductions.reduce_sum(softmax.log_softmax_v2(self._logits) * self._probs, -1)

    def _mode(self) -> Tensor:
        return casting.cast(scans.argmax_v2(self._logits, -1), self.dtype)


def _own(probs: Tensor, hot: Tensor) -> Tensor:
    return reductions.reduce_sum(probs * hot, -1)


@RegisterKL(Categorical, Categorical)
def _categorical_divergence(a: Categorical, b: Categorical, name: str | None = None) -> Tensor:
    with name_scope(name, "kl_categorical_categorical", [a.logits, b.logits]):
        apart = softmax.log_softmax_v2(a.logits) - softmax.log_softmax_v2(b.logits)
        return reductions.reduce_sum(softmax.softmax(a.logits) * apart, -1)


# ---- Multinomial ------------------------------------------------------------------------------------------------


class _Vectors(Distribution):
    """A distribution over vectors with one number for each of k classes."""

    _sizes_from: Tensor  # [batch, k]

    def _batch_shape_tensor(self) -> Tensor:
        return shaping.shape(self._sizes_from)[:-1]

    def _batch_shape(self) -> Shape:
        dims = self._sizes_from.static_shape.at_least(1).dims
        return Shape(None) if dims is None else Shape(dims[:-1])

    def _event_shape_tensor(self) -> Tensor:
        return shaping.shape(self._sizes_from)[-1:]

    def _event_shape(self) -> Shape:
        dims = self._sizes_from.static_shape.at_least(1).dims
        return Shape((None,)) if dims is None else Shape(dims[-1:])


class _Counts(_Vectors):
    """A distribution over the counts of k classes in `total_count` trials."""

    _total_count: Tensor

    @property
    def total_count(self) -> Tensor:
        return self._total_count

    def _whole_count(self, total_count: Any, kind: Any, validate_args: bool) -> Tensor:
        total = convert_to_tensor(total_count, kind, name="total_count")
        if validate_args:
            total = checked(
                total,
                [
                    (comparison.greater_equal(total, number(0, total)), "total_count must be non-negative."),
                    (
                        comparison.equal(total, unary_functions.floor(total)),
                        "total_count cannot contain fractional components.",
                    ),
                ],
            )
        return total

    def _checked_counts(self, counts: Tensor) -> Tensor:
        if not self.validate_args:
            return counts
        return checked(
            counts,
            [
                (comparison.greater_equal(counts, number(0, counts)), "counts must be non-negative."),
                (
                    comparison.equal(self._total_count, reductions.reduce_sum(counts, -1)),
                    "counts must sum to `self.total_count`",
                ),
            ],
        )

    def _log_combinations(self, counts: Tensor) -> Tensor:
        """The logarithm of the number of orders in which the counts can occur (the multinomial coefficient)."""
        return special.lgamma(self._total_count + 1.0) - reductions.reduce_sum(special.lgamma(counts + 1.0), -1)


@export(v1="distributions.Multinomial")
class Multinomial(_Counts, _OfClasses):
    """The multinomial distribution: the counts of each class in `total_count` independent trials."""

    @keeps_arguments
    def __init__(
        self,
        total_count: Any,
        logits: Any = None,
        probs: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Multinomial",
    ) -> None:
        with name_scope(name, None, [total_count, logits, probs]) as scope:
            self._logits, self._probs = probabilities(
                logits, probs, multidimensional=True, validate_args=validate_args, name=scope
            )
            self._total_count = self._whole_count(total_count, self._logits.dtype.base_dtype, validate_args)
            self._mean_val = self._total_count[..., None] * self._probs
            self._sizes_from = self._mean_val
        super().__init__(
            self._probs.dtype.base_dtype, NOT_REPARAMETERIZED, validate_args, allow_nan_stats,
            graph_parents=[self._total_count, self._logits, self._probs], name=scope,
        )  # fmt: skip

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        classes = self.event_shape_tensor()[0]
        logits = ranges.broadcast_to(self._logits, shaping.shape(self._sizes_from))
        rows = shaping.reshape(logits, joining.PACK([-1, classes]))
        trials = ranges.broadcast_to(casting.cast(self._total_count, dtypes.int32), self.batch_shape_tensor())
        trials = shaping.reshape(trials, [-1])
        # Each member of the batch draws separately, because the numbers of trials may differ.
        drawn = _each_row(rows, trials, n, classes, seed, self.dtype)
        final = joining.concat([[n], self.batch_shape_tensor(), [classes]], 0)
        return shaping.reshape(shaping.transpose(drawn, [1, 0, 2]), final)

    def _log_prob(self, counts: Tensor) -> Tensor:
        counts = self._checked_counts(counts)
        weighted = reductions.reduce_sum(counts * softmax.log_softmax_v2(self._logits), -1)
        return weighted + self._log_combinations(counts)

    def _mean(self) -> Tensor:
        return shaping.identity(self._mean_val)

    def _variance(self) -> Tensor:
        return self._mean_val - self._mean_val * self._probs

    def _covariance(self) -> Tensor:
        p = self._probs * shaping.ones_like(self._total_count)[..., None]
        outer = matrix_products.matmul(self._mean_val[..., None], p[..., None, :])
        return diagonals.matrix_set_diag(-1.0 * outer, self._variance())


def _each_row(rows: Tensor, trials: Tensor, n: Any, classes: Tensor, seed: int | None, dtype: Any) -> Tensor:
    """The counts of `trials` draws from each row of logits: [batch, n, classes]."""

    def counts(row: tuple[Tensor, Tensor]) -> Tensor:
        logits, count = row
        drawn = sampling.multinomial(logits[None], count * n, seed=seed)
        drawn = shaping.reshape(drawn, joining.PACK([n, -1]))
        return reductions.reduce_sum(selection.one_hot(drawn, classes, dtype=dtype), -2)

    return functional_loops.map_fn(counts, (rows, trials), dtype=dtype)


# ---- Dirichlet --------------------------------------------------------------------------------------------------


def _concentration(value: Any, validate_args: bool) -> Tensor:
    tensor = convert_to_tensor(value, name="concentration")
    if tensor.static_shape.rank == 0:
        raise ValueError("Concentration parameter must be have at least one dimension.")
    if validate_args:
        tensor = checked(tensor, [positive(tensor, "Concentration parameter must be positive.")])
    return tensor


class _Concentrated(_Vectors):
    """A distribution parameterized by the concentration of each of k classes."""

    _concentration: Tensor
    _total_concentration: Tensor

    @property
    def concentration(self) -> Tensor:
        return self._concentration

    @property
    def total_concentration(self) -> Tensor:
        return self._total_concentration

    def _scale(self) -> Tensor:
        raise NotImplementedError

    def _covariance(self) -> Tensor:
        x = self._scale() * self._mean()  # type: ignore[operator]
        outer = matrix_products.matmul(x[..., None], x[..., None, :])
        return diagonals.matrix_set_diag(-1.0 * outer, self._variance())  # type: ignore[operator]


@export(v1="distributions.Dirichlet")
class Dirichlet(_Concentrated):
    """The Dirichlet distribution over probabilities of k classes: the density is proportional to the product of x_i^(concentration_i - 1)."""

    @keeps_arguments
    def __init__(
        self, concentration: Any, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Dirichlet"
    ) -> None:
        with name_scope(name, None, [concentration]) as scope:
            self._concentration = self._sizes_from = _concentration(concentration, validate_args)
            self._total_concentration = reductions.reduce_sum(self._concentration, -1)
        super().__init__(
            self._concentration.dtype.base_dtype, FULLY_REPARAMETERIZED, validate_args, allow_nan_stats,
            graph_parents=[self._concentration, self._total_concentration], name=scope,
        )  # fmt: skip

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        gamma = sampling.random_gamma([n], self._concentration, None, self.dtype, seed)
        return gamma / reductions.reduce_sum(gamma, -1, keepdims=True)

    def _log_prob(self, x: Tensor) -> Tensor:
        if self.validate_args:
            off = unary_functions.abs(reductions.reduce_sum(x, -1) - number(1, x))
            x = checked(
                x,
                [
                    positive(x, "samples must be positive"),
                    (comparison.less(off, number(1e-5, x)), "sample last-dimension must sum to `1`"),
                ],
            )
        weighted = reductions.reduce_sum(special.xlogy(self._concentration - 1.0, x), -1)
        return weighted - special.lbeta(self._concentration)

    def _entropy(self) -> Tensor:
        c, total, k = (
            self._concentration,
            self._total_concentration,
            casting.cast(self.event_shape_tensor()[0], self.dtype),
        )
        return (
            special.lbeta(c) + (total - k) * special.digamma(total)
            - reductions.reduce_sum((c - 1.0) * special.digamma(c), -1)
        )  # fmt: skip

    def _mean(self) -> Tensor:
        return self._concentration / self._total_concentration[..., None]

    def _scale(self) -> Tensor:
        return unary_functions.rsqrt(1.0 + self._total_concentration[..., None])

    def _variance(self) -> Tensor:
        scale = self._scale()
        x = scale * self._mean()
        return x * (scale - x)

    def _mode(self) -> Tensor:
        k = casting.cast(self.event_shape_tensor()[0], self.dtype)
        value = (self._concentration - 1.0) / (self._total_concentration[..., None] - k)
        defined = reductions.reduce_all(self._concentration > number(1, value), -1, keepdims=True)
        return self._or_nan(defined, value, "Mode undefined when any concentration <= 1")


@RegisterKL(Dirichlet, Dirichlet)
def _dirichlet_divergence(a: Dirichlet, b: Dirichlet, name: str | None = None) -> Tensor:
    with name_scope(name, "kl_dirichlet_dirichlet", [a.concentration, b.concentration]):
        digamma = special.digamma(a.concentration) - special.digamma(a.total_concentration[..., None])
        return (
            reductions.reduce_sum((a.concentration - b.concentration) * digamma, -1)
            - special.lbeta(a.concentration) + special.lbeta(b.concentration)
        )  # fmt: skip


@export(v1="distributions.DirichletMultinomial")
class DirichletMultinomial(_Counts, _Concentrated):
    """A multinomial distribution whose probabilities are drawn from a Dirichlet distribution."""

    @keeps_arguments
    def __init__(
        self,
        total_count: Any,
        concentration: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "DirichletMultinomial",
    ) -> None:
        with name_scope(name, None, [total_count, concentration]) as scope:
            self._concentration = self._sizes_from = _concentration(concentration, validate_args)
            self._total_count = self._whole_count(total_count, self._concentration.dtype.base_dtype, validate_args)
            self._total_concentration = reductions.reduce_sum(self._concentration, -1)
        super().__init__(
            self._concentration.dtype.base_dtype, NOT_REPARAMETERIZED, validate_args, allow_nan_stats,
            graph_parents=[self._total_count, self._concentration], name=scope,
        )  # fmt: skip

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        classes = self.event_shape_tensor()[0]
        gamma = sampling.random_gamma([n], self._concentration, None, self.dtype, seed)
        rows = shaping.reshape(unary_functions.log(gamma), joining.PACK([-1, classes]))
        drawn = sampling.multinomial(
            rows, casting.cast(self._total_count, dtypes.int32), seed=derived_seed(seed, "dirichlet_multinomial")
        )
        counts = reductions.reduce_sum(selection.one_hot(drawn, classes, dtype=self.dtype), -2)
        return shaping.reshape(counts, joining.concat([[n], self.batch_shape_tensor(), [classes]], 0))

    def _log_prob(self, counts: Tensor) -> Tensor:
        counts = self._checked_counts(counts)
        ordered = special.lbeta(self._concentration + counts) - special.lbeta(self._concentration)
        return ordered + self._log_combinations(counts)

    def _mean(self) -> Tensor:
        return self._total_count * (self._concentration / self._total_concentration[..., None])

    def _scale(self) -> Tensor:
        total = self._total_concentration[..., None]
        return unary_functions.sqrt((1.0 + total / self._total_count[..., None]) / (1.0 + total))

    def _variance(self) -> Tensor:
        scale = self._scale()
        x = scale * self._mean()
        return x * (self._total_count * scale - x)
