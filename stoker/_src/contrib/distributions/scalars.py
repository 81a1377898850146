"""More distributions over numbers and classes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stoker._src.base import dtypes
from stoker._src.base.export import export
from stoker._src.base.shapes import SCALAR, Shape
from stoker._src.contrib.distributions.bijectors import Exp, Sigmoid
from stoker._src.contrib.distributions.composed import TransformedDistribution
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import casting, joining, ranges, selection, shaping
from stoker._src.ops.distributions.base import (
    FULLY_REPARAMETERIZED,
    NOT_REPARAMETERIZED,
    Distribution,
    keeps_arguments,
    number,
    probabilities,
    where,
)
from stoker._src.ops.distributions.continuous import Gamma, LocationScale, Normal, Scalars
from stoker._src.ops.distributions.divergence import RegisterKL
from stoker._src.ops.linalg import diagonals
from stoker._src.ops.math import arithmetic, comparison, reductions, scans, special, unary_functions
from stoker._src.ops.nn import activations, cross_entropy, softmax
from stoker._src.ops.random import sampling, uniform_normal


def _uniform(shape: Any, dtype: Any, seed: int | None) -> Tensor:
    """Numbers above 0 and below 1: zero is left out, since its logarithm is wanted."""
    tiny = np.finfo(dtype.as_numpy_dtype).tiny
    return uniform_normal.random_uniform(shape, tiny, 1.0, dtype, seed=seed)


@export(v1="contrib.distributions.Logistic")
class Logistic(LocationScale):
    """The logistic distribution, with the distribution function sigmoid((x - loc) / scale)."""

    @keeps_arguments
    def __init__(
        self, loc: Any, scale: Any, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Logistic"
    ) -> None:
        super().__init__(loc, scale, validate_args, allow_nan_stats, name)

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        u = _uniform(self._draw_shape(n), self.dtype, seed)
        return (unary_functions.log(u) - unary_functions.log1p(-1.0 * u)) * self._scale + self._loc

    def _log_prob(self, x: Tensor) -> Tensor:
        z = self._z(x)
        return -z - 2.0 * activations.softplus(-z) - unary_functions.log(self._scale)

    def _cdf(self, x: Tensor) -> Tensor:
        return unary_functions.sigmoid(self._z(x))

    def _log_cdf(self, x: Tensor) -> Tensor:
        return -activations.softplus(-self._z(x))

    def _survival_function(self, x: Tensor) -> Tensor:
        return unary_functions.sigmoid(-self._z(x))

    def _log_survival_function(self, x: Tensor) -> Tensor:
        return -activations.softplus(self._z(x))

    def _entropy(self) -> Tensor:
        return self._full(2.0 + unary_functions.log(self._scale))

    def _stddev(self) -> Tensor:
        return self._full(self._scale * number(math.pi / math.sqrt(3), self._scale))


@export(v1="contrib.distributions.Cauchy")
class Cauchy(LocationScale):
    """The Cauchy distribution, whose mean and variance do not exist."""

    @keeps_arguments
    def __init__(
        self, loc: Any, scale: Any, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Cauchy"
    ) -> None:
        super().__init__(loc, scale, validate_args, allow_nan_stats, name)

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        return self._quantile(uniform_normal.random_uniform(self._draw_shape(n), 0.0, 1.0, self.dtype, seed=seed))

    def _log_prob(self, x: Tensor) -> Tensor:
        z = self._z(x)
        return -unary_functions.log1p(unary_functions.square(z)) - (
            number(math.log(math.pi), z) + unary_functions.log(self._scale)
        )

    def _cdf(self, x: Tensor) -> Tensor:
        return unary_functions.atan(self._z(x)) / math.pi + 0.5

    def _quantile(self, p: Tensor) -> Tensor:
        return self._loc + self._scale * unary_functions.tan(math.pi * (p - 0.5))

    def _entropy(self) -> Tensor:
        return self._full(number(math.log(4 * math.pi), self._scale) + unary_functions.log(self._scale))

    def _undefined(self, what: str) -> Tensor:
        nothing = self._full(number(np.nan, self._scale))
        return self._or_nan(
            unary_functions.is_finite(nothing), nothing, f"{what} is undefined for the Cauchy distribution."
        )

    def _mean(self) -> Tensor:
        return self._undefined("mean")

    def _stddev(self) -> Tensor:
        return self._undefined("stddev")

    def _mode(self) -> Tensor:
        return self._full(self._loc)


@export(v1="contrib.distributions.NormalWithSoftplusScale")
class NormalWithSoftplusScale(Normal):
    """A normal distribution with the standard deviation softplus(scale)."""

    @keeps_arguments
    def __init__(
        self,
        loc: Any,
        scale: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "NormalWithSoftplusScale",
    ) -> None:
        with name_scope(name, None, [scale]) as scope:
            soft = activations.softplus(convert_to_tensor(scale), name="softplus_scale")
        super().__init__(loc, soft, validate_args, allow_nan_stats, scope)


@export(v1="contrib.distributions.Chi2")
class Chi2(Gamma):
    """The chi-squared distribution with `df` degrees of freedom."""

    @keeps_arguments
    def __init__(self, df: Any, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Chi2") -> None:
        with name_scope(name, None, [df]) as scope:
            self._df = convert_to_tensor(df, name="df")
            half = number(0.5, self._df)
        super().__init__(half * self._df, half, validate_args, allow_nan_stats, scope)

    @property
    def df(self) -> Tensor:
        return self._df


@export(v1="contrib.distributions.HalfNormal")
class HalfNormal(Scalars):
    """The distribution of the absolute value of a normal number with mean 0 and standard deviation `scale`."""

    @keeps_arguments
    def __init__(
        self, scale: Any, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "HalfNormal"
    ) -> None:
        with name_scope(name, None, [scale]) as scope:
            self._scale = shaping.identity(scale, name="scale")
        self._start(self._scale, name=scope, validate_args=validate_args, allow_nan_stats=allow_nan_stats)

    @property
    def scale(self) -> Tensor:
        return self._scale

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        drawn = uniform_normal.random_normal(self._draw_shape(n), 0.0, 1.0, self.dtype, seed=seed)
        return unary_functions.abs(drawn * self._scale)

    def _prob(self, x: Tensor) -> Tensor:
        height = math.sqrt(2 / math.pi) / self._scale
        density = height * unary_functions.exp(-0.5 * unary_functions.square(x / self._scale))
        return density * casting.cast(x >= 0, self.dtype)

    def _cdf(self, x: Tensor) -> Tensor:
        positive = arithmetic.maximum(x, number(0, x))
        return special.erf(positive / self._scale / math.sqrt(2.0))

    def _entropy(self) -> Tensor:
        return 0.5 * unary_functions.log(math.pi * unary_functions.square(self._scale) / 2.0) + 0.5

    def _mean(self) -> Tensor:
        return self._scale * math.sqrt(2.0) / math.sqrt(math.pi)

    def _mode(self) -> Tensor:
        return shaping.zeros(self.batch_shape_tensor(), self.dtype)

    def _variance(self) -> Tensor:
        return unary_functions.square(self._scale) * (1.0 - 2.0 / math.pi)


@export(v1="contrib.distributions.Poisson")
class Poisson(Scalars):
    """The Poisson distribution of counts, with mean `rate` or exp(`log_rate`)."""

    @keeps_arguments
    def __init__(
        self,
        rate: Any = None,
        log_rate: Any = None,
        interpolate_nondiscrete: bool = True,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Poisson",
    ) -> None:
        if (rate is None) == (log_rate is None):
            raise ValueError("Must specify exactly one of `rate` and `log_rate`.")
        with name_scope(name, None, [rate]) as scope:
            given = convert_to_tensor(log_rate if rate is None else rate)
            self._rate = unary_functions.exp(given) if rate is None else given
            self._log_rate = given if rate is None else unary_functions.log(given)
            self._between = interpolate_nondiscrete
        self._start(self._rate, name=scope, validate_args=validate_args, allow_nan_stats=allow_nan_stats)
        self._reparameterization_type = NOT_REPARAMETERIZED

    @property
    def rate(self) -> Tensor:
        return self._rate

    @property
    def log_rate(self) -> Tensor:
        return self._log_rate

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        return sampling.random_poisson(self._rate, [n], dtype=self.dtype, seed=seed)

    def _log_prob(self, x: Tensor) -> Tensor:
        found = arithmetic.multiply(self._log_rate, x) - special.lgamma(1.0 + x) - self._rate
        if self._between:
            return found
        whole = comparison.equal(x, unary_functions.floor(x))
        return where(whole, found, number(-np.inf, found))

    def _cdf(self, x: Tensor) -> Tensor:
        return special.igammac(1.0 + (x if self._between else unary_functions.floor(x)), self._rate)

    def _mean(self) -> Tensor:
        return shaping.identity(self._rate)

    def _variance(self) -> Tensor:
        return shaping.identity(self._rate)

    def _mode(self) -> Tensor:
        return unary_functions.floor(self._rate)


@export(v1="contrib.distributions.Binomial")
class Binomial(Scalars):
    """The number of successes in `total_count` trials of probability `probs` (or given by `logits`)."""

    @keeps_arguments
    def __init__(
        self,
        total_count: Any,
        logits: Any = None,
        probs: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Binomial",
    ) -> None:
        with name_scope(name, None, [total_count, logits, probs]) as scope:
            self._total_count = convert_to_tensor(total_count, name="total_count")
            self._logits, self._probs = probabilities(
                logits, probs, multidimensional=False, validate_args=validate_args, name=name
            )
        self._start(
            self._total_count, self._probs, name=scope, validate_args=validate_args, allow_nan_stats=allow_nan_stats
        )
        self._reparameterization_type = NOT_REPARAMETERIZED

    @property
    def total_count(self) -> Tensor:
        return self._total_count

    @property
    def logits(self) -> Tensor:
        return self._logits

    @property
    def probs(self) -> Tensor:
        return self._probs

    def _log_prob(self, counts: Tensor) -> Tensor:
        rest = self._total_count - counts
        ways = special.lgamma(1.0 + self._total_count) - special.lgamma(1.0 + counts) - special.lgamma(1.0 + rest)
        return counts * unary_functions.log(self._probs) + rest * unary_functions.log1p(-1.0 * self._probs) + ways

    def _mean(self) -> Tensor:
        return self._total_count * self._probs

    def _variance(self) -> Tensor:
        return self._mean() * (1.0 - self._probs)

    def _mode(self) -> Tensor:
        return unary_functions.floor((1.0 + self._total_count) * self._probs)


class _Classes(Distribution):
    """Vectors with an element for each of k classes, whose `logits` or `probs` are along the last dimension."""

    _logits: Tensor
    _probs: Tensor

    @property
    def logits(self) -> Tensor:
        return self._logits

    @property
    def probs(self) -> Tensor:
        return self._probs

    def _batch_shape(self) -> Shape:
        whole = self._logits.static_shape
        return whole if whole.rank is None else Shape(tuple(whole)[:-1])

    def _event_shape(self) -> Shape:
        whole = self._logits.static_shape
        return Shape((None,)) if whole.rank is None else Shape(tuple(whole)[-1:])

    def _batch_shape_tensor(self) -> Tensor:
        return shaping.shape(self._logits)[:-1]

    def _event_shape_tensor(self) -> Tensor:
        return shaping.shape(self._logits)[-1:]


@export(v1="contrib.distributions.OneHotCategorical")
class OneHotCategorical(_Classes):
    """The categorical distribution, whose samples are one-hot vectors."""

    @keeps_arguments
    def __init__(
        self,
        logits: Any = None,
        probs: Any = None,
        dtype: Any = dtypes.int32,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "OneHotCategorical",
    ) -> None:
        with name_scope(name, None, [logits, probs]) as scope:
            self._logits, self._probs = probabilities(
                logits, probs, multidimensional=True, validate_args=validate_args, name=name
            )
        super().__init__(dtype, NOT_REPARAMETERIZED, validate_args, allow_nan_stats, name=scope)

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        size = self.event_shape_tensor()[0]
        rows = shaping.reshape(self._logits, joining.stack([-1, size]))
        drawn = shaping.transpose(sampling.multinomial(rows, n, seed=seed))
        shape = joining.concat([[n], self.batch_shape_tensor(), self.event_shape_tensor()], 0)
        return shaping.reshape(selection.one_hot(drawn, size, dtype=self.dtype), shape)

    def _log_prob(self, x: Tensor) -> Tensor:
        x = casting.cast(x, self._logits.dtype.base_dtype)
        sizes = ranges.broadcast_dynamic_shape(shaping.shape(x), shaping.shape(self._logits))
        labels, logits = ranges.broadcast_to(x, sizes), ranges.broadcast_to(self._logits, sizes)
        return -cross_entropy.softmax_cross_entropy_with_logits_v2(labels=labels, logits=logits)

    def _entropy(self) -> Tensor:
        return -reductions.reduce_sum(softmax.log_softmax(self._logits) * self._probs, -1)

    def _mean(self) -> Tensor:
        return shaping.identity(self._probs)

    def _mode(self) -> Tensor:
        best = scans.argmax(self._logits, -1)
        return selection.one_hot(best, self.event_shape_tensor()[0], dtype=self.dtype)

    def _variance(self) -> Tensor:
        return self._probs * (1.0 - self._probs)


@RegisterKL(OneHotCategorical, OneHotCategorical)
def _kl_one_hot(a: OneHotCategorical, b: OneHotCategorical, name: str | None = None) -> Tensor:
    with name_scope(name, "kl_categorical_categorical"):
        apart = softmax.log_softmax(a.logits) - softmax.log_softmax(b.logits)
        return reductions.reduce_sum(softmax.softmax(a.logits) * apart, -1)


@export(v1="contrib.distributions.ExpRelaxedOneHotCategorical")
class ExpRelaxedOneHotCategorical(_Classes):
    """The logarithms of `RelaxedOneHotCategorical`'s samples (Maddison, Mnih and Teh, 2016, appendix C)."""

    @keeps_arguments
    def __init__(
        self,
        temperature: Any,
        logits: Any = None,
        probs: Any = None,
        dtype: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "ExpRelaxedOneHotCategorical",
    ) -> None:
        with name_scope(name, None, [logits, probs, temperature]) as scope:
            self._logits, self._probs = probabilities(
                logits, probs, multidimensional=True, validate_args=validate_args, name=name
            )
            kind = dtype or self._logits.dtype.base_dtype
            self._temperature = convert_to_tensor(temperature, dtype=kind, name="temperature")
            self._warm = (
                shaping.expand_dims(self._temperature, -1) if self._temperature.shape.ndims else self._temperature
            )
        super().__init__(kind, FULLY_REPARAMETERIZED, validate_args, allow_nan_stats, name=scope)

    @property
    def temperature(self) -> Tensor:
        return self._temperature

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        shape = joining.concat([[n], shaping.shape(self._logits)], 0)
        noise = -unary_functions.log(-unary_functions.log(_uniform(shape, self.dtype, seed)))
        return softmax.log_softmax((noise + self._logits) / self._warm)

    def _log_prob(self, x: Tensor) -> Tensor:
        size = casting.cast(self.event_shape_tensor()[0], self.dtype)
        scale = special.lgamma(size) + (size - 1.0) * unary_functions.log(self._temperature)
        scores = softmax.log_softmax(self._logits - x * self._warm)
        return reductions.reduce_sum(scores, -1) + scale


@export(v1="contrib.distributions.RelaxedOneHotCategorical")
class RelaxedOneHotCategorical(TransformedDistribution):
    """Vectors near one-hot ones, differentiable in `logits` (the Gumbel-softmax of Jang, Gu and Poole, 2016).

    Args:
        temperature: how far from one-hot they are; 0 would be one-hot.
        logits, probs: of the classes, along the last dimension.
    """

    @keeps_arguments
    def __init__(
        self,
        temperature: Any,
        logits: Any = None,
        probs: Any = None,
        dtype: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "RelaxedOneHotCategorical",
    ) -> None:
        inner = ExpRelaxedOneHotCategorical(temperature, logits, probs, dtype, validate_args, allow_nan_stats)
        super().__init__(inner, Exp(validate_args=validate_args), name=name)

    @property
    def temperature(self) -> Tensor:
        return self.distribution.temperature  # pyright: ignore[reportAttributeAccessIssue]

    @property
    def logits(self) -> Tensor:
        return self.distribution.logits  # pyright: ignore[reportAttributeAccessIssue]

    @property
    def probs(self) -> Tensor:
        return self.distribution.probs  # pyright: ignore[reportAttributeAccessIssue]


@export(v1="contrib.distributions.RelaxedBernoulli")
class RelaxedBernoulli(TransformedDistribution):
    """Numbers near 0 or 1, differentiable in `logits` (Maddison, Mnih and Teh, 2016)."""

    @keeps_arguments
    def __init__(
        self,
        temperature: Any,
        logits: Any = None,
        probs: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "RelaxedBernoulli",
    ) -> None:
        with name_scope(name, None, [logits, probs, temperature]) as scope:
            self._temperature = convert_to_tensor(temperature, name="temperature")
            self._logits, self._probs = probabilities(
                logits, probs, multidimensional=False, validate_args=validate_args, name=name
            )
            inner = Logistic(
                self._logits / self._temperature,
                1.0 / self._temperature,
                validate_args,
                allow_nan_stats,
                scope + "Logistic",
            )
        super().__init__(inner, Sigmoid(validate_args=validate_args), name=name)

    @property
    def temperature(self) -> Tensor:
        return self._temperature

    @property
    def logits(self) -> Tensor:
        return self._logits

    @property
    def probs(self) -> Tensor:
        return self._probs


@export(v1="contrib.distributions.Deterministic")
class Deterministic(Scalars):
    """All probability is at `loc`; values within `atol + rtol |loc|` count as equal to it."""

    @keeps_arguments
    def __init__(
        self,
        loc: Any,
        atol: Any = None,
        rtol: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Deterministic",
    ) -> None:
        with name_scope(name, None, [loc, atol, rtol]) as scope:
            self._loc = convert_to_tensor(loc, name="loc")
            zero = shaping.zeros_like(self._loc)
            slack = zero if atol is None else zero + atol
            self._slack = slack if rtol is None else slack + rtol * unary_functions.abs(self._loc)
        self._tensors = (self._loc,)
        Distribution.__init__(
            self, self._loc.dtype.base_dtype, NOT_REPARAMETERIZED, validate_args, allow_nan_stats, name=scope
        )

    @property
    def loc(self) -> Tensor:
        return self._loc

    def _event_shape(self) -> Shape:
        return SCALAR

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        return ranges.broadcast_to(self._loc, joining.concat([[n], shaping.shape(self._loc)], 0))

    def _prob(self, x: Tensor) -> Tensor:
        return casting.cast(unary_functions.abs(x - self._loc) <= self._slack, self.dtype)

    def _cdf(self, x: Tensor) -> Tensor:
        return casting.cast(x >= self._loc - self._slack, self.dtype)

    def _entropy(self) -> Tensor:
        return shaping.zeros(self.batch_shape_tensor(), self.dtype)

    def _mean(self) -> Tensor:
        return shaping.identity(self._loc)

    def _variance(self) -> Tensor:
        return shaping.zeros_like(self._loc)

    def _mode(self) -> Tensor:
        return self.mean()


@export(v1="contrib.distributions.fill_triangular")
def fill_triangular(x: Any, upper: bool = False, name: str | None = None) -> Tensor:
    """A triangular matrix [..., n, n] of the n (n + 1) / 2 numbers in the last dimension, filled along a spiral.

    Raises:
        ValueError: their number is unknown, or is none of a triangle's.
    """
    with name_scope(name, "fill_triangular", [x]):
        x = convert_to_tensor(x, name="x")
        count = x.shape.as_list()[-1] if x.shape.ndims else None
        if count is None:
            raise NotImplementedError("fill_triangular: the size of the last dimension must be known.")
        size = int(math.sqrt(0.25 + 2.0 * count) - 0.5)
        if size * (size + 1) // 2 != count:
            raise ValueError(f"Input right-most shape ({count}) does not correspond to a triangular matrix.")
        rest = x[..., size:]
        parts = [x, rest[..., ::-1]] if upper else [rest, x[..., ::-1]]
        shape = joining.concat([shaping.shape(x)[:-1], [size, size]], 0)
        square = shaping.reshape(joining.concat(parts, -1), shape)
        return diagonals.matrix_band_part(square, 0 if upper else -1, -1 if upper else 0)
