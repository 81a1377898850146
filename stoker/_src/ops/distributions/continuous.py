"""Distributions of real numbers: normal, Laplace, Student's t, uniform, gamma, exponential and beta."""

from __future__ import annotations

import math as numbers
from typing import Any

import numpy as np

from stoker._src.base import dtypes
from stoker._src.base.export import export
from stoker._src.base.shapes import SCALAR, Shape
from stoker._src.base.shapes import broadcast as broadcast_shapes
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import joining, ranges, shaping
from stoker._src.ops.distributions.base import (
    FULLY_REPARAMETERIZED,
    Distribution,
    derived_seed,
    keeps_arguments,
    number,
    positive,
    same_dtype,
    where,
)
from stoker._src.ops.distributions.checks import checked
from stoker._src.ops.distributions.divergence import RegisterKL
from stoker._src.ops.math import arithmetic, comparison, special, unary_functions
from stoker._src.ops.random import sampling, uniform_normal


def _sizes_together(*tensors: Tensor) -> Tensor:
    """The broadcast shape of tensors, as a vector."""
    result = shaping.shape(tensors[0])
    for tensor in tensors[1:]:
        result = ranges.broadcast_dynamic_shape(result, shaping.shape(tensor))
    return result


class Scalars(Distribution):
    """A distribution over scalars whose parameters are broadcast."""

    _tensors: tuple[Tensor, ...]

    def _start(self, *tensors: Tensor, name: str, validate_args: bool, allow_nan_stats: bool) -> None:
        same_dtype(*tensors)
        self._tensors = tensors
        super().__init__(
            tensors[0].dtype.base_dtype,
            FULLY_REPARAMETERIZED,
            validate_args,
            allow_nan_stats,
            graph_parents=list(tensors),
            name=name,
        )

    def _batch_shape_tensor(self) -> Tensor:
        return _sizes_together(*self._tensors)

    def _batch_shape(self) -> Shape:
        result = SCALAR
        for tensor in self._tensors:
            result = broadcast_shapes(result, tensor.static_shape)
        return result

    def _event_shape_tensor(self) -> Tensor:
        return convert_to_tensor(np.zeros(0, np.int32))

    def _event_shape(self) -> Shape:
        return SCALAR

    def _draw_shape(self, n: Any) -> Tensor:
        return joining.concat([[n], self.batch_shape_tensor()], 0)

    def _full(self, value: Tensor) -> Tensor:
        """Broadcasts a statistic that does not depend on all parameters to the batch shape."""
        return value * shaping.ones(self.batch_shape_tensor(), self.dtype)


class LocationScale(Scalars):
    """A distribution with a location and a scale."""

    def __init__(self, loc: Any, scale: Any, validate_args: bool, allow_nan_stats: bool, name: str) -> None:
        with name_scope(name, None, [loc, scale]) as scope:
            self._loc = shaping.identity(loc, name="loc")
            if validate_args:
                scale = convert_to_tensor(scale, name="scale")
                scale = checked(scale, [positive(scale)])
            self._scale = shaping.identity(scale, name="scale")
        self._start(
            self._loc,
            self._scale,
            name=scope,
            validate_args=validate_args,
            allow_nan_stats=allow_nan_stats,
        )

    @staticmethod
    def _param_shapes(sample_shape: Any) -> dict[str, Tensor]:
        shape = convert_to_tensor(sample_shape, dtypes.int32)
        return {"loc": shape, "scale": shape}

    @property
    def loc(self) -> Tensor:
        return self._loc

    @property
    def scale(self) -> Tensor:
        return self._scale

    def _z(self, x: Any) -> Tensor:
        return (x - self._loc) / self._scale

    def _mean(self) -> Tensor:
        return self._full(self._loc)

    def _mode(self) -> Tensor:
        return self._mean()


# ---- Normal -----------------------------------------------------------------------------------------------------

_HALF_LOG_TAU = 0.5 * numbers.log(2 * numbers.pi)
_FAR = {"float64": -20.0}  # below this, the asymptotic series of the tail is more accurate than the logarithm


def normal_cdf(x: Tensor) -> Tensor:
    return number(0.5, x) * special.erfc(x * number(-numbers.sqrt(0.5), x))


def log_normal_cdf(x: Tensor) -> Tensor:
    """The logarithm of the normal distribution function, accurate in both tails."""
    far = _FAR.get(x.dtype.base_dtype.name, -10.0)
    low = arithmetic.minimum(x, number(far, x))
    squared = unary_functions.square(low)
    series = number(1, x) - number(1, x) / squared + number(3, x) / unary_functions.square(squared)
    tail = (
        number(-0.5, x) * squared
        - unary_functions.log(-1.0 * low)
        - number(_HALF_LOG_TAU, x)
        + unary_functions.log(series)
    )
    middle = unary_functions.log(normal_cdf(arithmetic.maximum(x, number(far, x))))
    upper = -1.0 * normal_cdf(-1.0 * x)
    return where(x > number(5, x), upper, where(x > number(far, x), middle, tail))


@export(v1="distributions.Normal")
class Normal(LocationScale):
    """The normal distribution with mean `loc` and standard deviation `scale`."""

    @keeps_arguments
    def __init__(
        self, loc: Any, scale: Any, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Normal"
    ) -> None:
        super().__init__(loc, scale, validate_args, allow_nan_stats, name)

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        drawn = uniform_normal.random_normal(self._draw_shape(n), 0.0, 1.0, self.dtype, seed=seed)
        return drawn * self._scale + self._loc

    def _log_prob(self, x: Tensor) -> Tensor:
        return -0.5 * unary_functions.square(self._z(x)) - (
            number(_HALF_LOG_TAU, self._scale) + unary_functions.log(self._scale)
        )

    def _log_cdf(self, x: Tensor) -> Tensor:
        return log_normal_cdf(self._z(x))

    def _cdf(self, x: Tensor) -> Tensor:
        return normal_cdf(self._z(x))

    def _log_survival_function(self, x: Tensor) -> Tensor:
        return log_normal_cdf(-1.0 * self._z(x))

    def _survival_function(self, x: Tensor) -> Tensor:
        return normal_cdf(-1.0 * self._z(x))

    def _entropy(self) -> Tensor:
        return self._full(number(_HALF_LOG_TAU + 0.5, self._scale) + unary_functions.log(self._scale))

    def _quantile(self, p: Tensor) -> Tensor:
        return special.ndtri(p) * self._scale + self._loc

    def _stddev(self) -> Tensor:
        return self._full(self._scale)


@RegisterKL(Normal, Normal)
def _normal_divergence(a: Normal, b: Normal, name: str | None = None) -> Tensor:
    with name_scope(name, "kl_normal_normal", [a.loc, b.loc]):
        variance, other = unary_functions.square(a.scale), unary_functions.square(b.scale)
        ratio = variance / other
        return unary_functions.square(a.loc - b.loc) / (2.0 * other) + 0.5 * (ratio - 1.0 - unary_functions.log(ratio))


# ---- Laplace ----------------------------------------------------------------------------------------------------


@export(v1="distributions.Laplace")
class Laplace(LocationScale):
    """The Laplace distribution: density exp(-|x - loc| / scale) / (2 scale)."""

    @keeps_arguments
    def __init__(
        self, loc: Any, scale: Any, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Laplace"
    ) -> None:
        super().__init__(loc, scale, validate_args, allow_nan_stats, name)

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        kind = self.dtype.as_numpy_dtype
        least = np.nextafter(kind(-1.0), kind(0.0))
        u = uniform_normal.random_uniform(self._draw_shape(n), least, 1.0, self.dtype, seed=seed)
        return self._loc - self._scale * unary_functions.sign(u) * unary_functions.log1p(-1.0 * unary_functions.abs(u))

    def _log_prob(self, x: Tensor) -> Tensor:
        return -1.0 * unary_functions.abs(self._z(x)) - (numbers.log(2.0) + unary_functions.log(self._scale))

    def _cdf(self, x: Tensor) -> Tensor:
        z = self._z(x)
        return 0.5 + 0.5 * unary_functions.sign(z) * (1.0 - unary_functions.exp(-1.0 * unary_functions.abs(z)))

    def _log_cdf(self, x: Tensor) -> Tensor:
        return _log_laplace_cdf(self._z(x))

    def _log_survival_function(self, x: Tensor) -> Tensor:
        return _log_laplace_cdf(-1.0 * self._z(x))

    def _entropy(self) -> Tensor:
        return self._full(numbers.log(2.0) + 1.0 + unary_functions.log(self._scale))

    def _stddev(self) -> Tensor:
        return self._full(numbers.sqrt(2.0) * self._scale)


def _log_laplace_cdf(z: Tensor) -> Tensor:
    lower = z - numbers.log(2.0)
    upper = unary_functions.log1p(-0.5 * unary_functions.exp(-1.0 * arithmetic.maximum(z, number(0, z))))
    return where(z < number(0, z), lower, upper)


# ---- StudentT ---------------------------------------------------------------------------------------------------


@export(v1="distributions.StudentT")
class StudentT(Scalars):
    """Student's t distribution with `df` degrees of freedom, location `loc` and scale `scale`."""

    @keeps_arguments
    def __init__(
        self,
        df: Any,
        loc: Any,
        scale: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "StudentT",
    ) -> None:
        with name_scope(name, None, [df, loc, scale]) as scope:
            df = convert_to_tensor(df, name="df")
            if validate_args:
                df = checked(df, [positive(df)])
            self._df = shaping.identity(df, name="df")
            self._loc = shaping.identity(convert_to_tensor(loc, self._df.dtype.base_dtype), name="loc")
            self._scale = shaping.identity(convert_to_tensor(scale, self._df.dtype.base_dtype), name="scale")
        self._start(
            self._df,
            self._loc,
            self._scale,
            name=scope,
            validate_args=validate_args,
            allow_nan_stats=allow_nan_stats,
        )

    @property
    def df(self) -> Tensor:
        return self._df

    @property
    def loc(self) -> Tensor:
        return self._loc

    @property
    def scale(self) -> Tensor:
        return self._scale

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        normal = uniform_normal.random_normal(self._draw_shape(n), 0.0, 1.0, self.dtype, seed=seed)
        df = self._full(self._df)
        gamma = sampling.random_gamma([n], 0.5 * df, 0.5, self.dtype, derived_seed(seed, "student_t"))
        return normal * unary_functions.rsqrt(gamma / df) * self._scale + self._loc

    def _log_normalization(self) -> Tensor:
        df = self._df
        return (
            unary_functions.log(unary_functions.abs(self._scale)) + 0.5 * unary_functions.log(df) + 0.5 * numbers.log(numbers.pi)
            + special.lgamma(0.5 * df) - special.lgamma(0.5 * (df + 1.0))
        )  # fmt: skip

    def _log_prob(self, x: Tensor) -> Tensor:
        z = (x - self._loc) / self._scale
        return -0.5 * (self._df + 1.0) * unary_functions.log1p(z * z / self._df) - self._log_normalization()

    def _cdf(self, x: Tensor) -> Tensor:
        z = (x - self._loc) / unary_functions.abs(self._scale)
        inner = self._df / (z * z + self._df)
        half = number(0.5, inner) * shaping.ones_like(inner)
        tail = 0.5 * special.betainc(0.5 * self._df * shaping.ones_like(inner), half, inner)
        return where(z < number(0, z), tail, 1.0 - tail)

    def _entropy(self) -> Tensor:
        v = shaping.ones(self.batch_shape_tensor(), self.dtype)[..., None]
        df = self._df[..., None] * v
        parts = joining.concat([v, df], -1) / 2.0
        lbeta = special.lbeta(parts)
        return (
            unary_functions.log(unary_functions.abs(self._scale)) + 0.5 * unary_functions.log(self._df) + lbeta
            + 0.5 * (self._df + 1.0) * (special.digamma(0.5 * (self._df + 1.0)) - special.digamma(0.5 * self._df))
        )  # fmt: skip

    def _mean(self) -> Tensor:
        defined = self._df > number(1, self._df)
        return self._or_nan(defined, self._full(self._loc), "mean not defined for components of df <= 1")

    def _variance(self) -> Tensor:
        two = number(2, self._df)
        finite = self._df > two
        safe = where(finite, self._df - two, shaping.ones_like(self._df))
        value = self._full(unary_functions.square(self._scale) * self._df / safe)
        value = where(finite, value, number(np.inf, value))
        defined = self._df > number(1, self._df)
        return self._or_nan(defined, value, "variance not defined for components of df <= 1")

    def _mode(self) -> Tensor:
        return shaping.identity(self._full(self._loc))


# ---- Uniform ----------------------------------------------------------------------------------------------------


@export(v1="distributions.Uniform")
class Uniform(Scalars):
    """The uniform distribution on [low, high)."""

    @keeps_arguments
    def __init__(
        self,
        low: Any = 0.0,
        high: Any = 1.0,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Uniform",
    ) -> None:
        with name_scope(name, None, [low, high]) as scope:
            if validate_args:
                low, high = convert_to_tensor(low, name="low"), convert_to_tensor(high, name="high")
                same_dtype(low, high)
                low = checked(low, [(comparison.less(low, high), "uniform not defined when low >= high.")])
            self._low, self._high = shaping.identity(low, name="low"), shaping.identity(high, name="high")
        self._start(self._low, self._high, name=scope, validate_args=validate_args, allow_nan_stats=allow_nan_stats)

    @staticmethod
    def _param_shapes(sample_shape: Any) -> dict[str, Tensor]:
        shape = convert_to_tensor(sample_shape, dtypes.int32)
        return {"low": shape, "high": shape}

    @property
    def low(self) -> Tensor:
        return self._low

    @property
    def high(self) -> Tensor:
        return self._high

    def range(self, name: str = "range") -> Tensor:
        """`high - low`."""
        with self._scope(name):
            return self._high - self._low

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        drawn = uniform_normal.random_uniform(self._draw_shape(n), 0, None, self.dtype, seed=seed)
        return self._low + self.range() * drawn

    def _prob(self, x: Tensor) -> Tensor:
        spread = x * shaping.ones(self.batch_shape_tensor(), self.dtype)
        outside = (spread < self._low) | (spread >= self._high)
        inside = shaping.ones_like(spread) / self.range()
        return where(unary_functions.is_nan(spread), spread, where(outside, shaping.zeros_like(spread), inside))

    def _cdf(self, x: Tensor) -> Tensor:
        shape = ranges.broadcast_dynamic_shape(shaping.shape(x), self.batch_shape_tensor())
        zeros, ones = shaping.zeros(shape, self.dtype), shaping.ones(shape, self.dtype)
        within = where(x >= self._high, ones, (x - self._low) / self.range())
        return where(x < self._low, zeros, within)

    def _entropy(self) -> Tensor:
        return unary_functions.log(self.range())

    def _mean(self) -> Tensor:
        return (self._low + self._high) / 2.0

    def _variance(self) -> Tensor:
        return unary_functions.square(self.range()) / 12.0

    def _stddev(self) -> Tensor:
        return self.range() / numbers.sqrt(12.0)


# ---- Gamma and Exponential --------------------------------------------------------------------------------------


@export(v1="distributions.Gamma")
class Gamma(Scalars):
    """The gamma distribution with shape `concentration` and inverse scale `rate`."""

    @keeps_arguments
    def __init__(
        self,
        concentration: Any,
        rate: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Gamma",
    ) -> None:
        with name_scope(name, None, [concentration, rate]) as scope:
            if validate_args:
                tensors = map(convert_to_tensor, (concentration, rate))
                concentration, rate = (checked(each, [positive(each)]) for each in tensors)
            self._concentration = shaping.identity(concentration, name="concentration")
            self._rate = shaping.identity(rate, name="rate")
        self._start(
            self._concentration,
            self._rate,
            name=scope,
            validate_args=validate_args,
            allow_nan_stats=allow_nan_stats,
        )

    @staticmethod
    def _param_shapes(sample_shape: Any) -> dict[str, Tensor]:
        shape = convert_to_tensor(sample_shape, dtypes.int32)
        return {"concentration": shape, "rate": shape}

    @property
    def concentration(self) -> Tensor:
        return self._concentration

    @property
    def rate(self) -> Tensor:
        return self._rate

    def _positive(self, x: Tensor) -> Tensor:
        return checked(x, [positive(x)]) if self.validate_args else x

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        return sampling.random_gamma([n], self._concentration, self._rate, self.dtype, seed)

    def _log_prob(self, x: Tensor) -> Tensor:
        x = self._positive(x)
        normalization = special.lgamma(self._concentration) - self._concentration * unary_functions.log(self._rate)
        return special.xlogy(self._concentration - 1.0, x) - self._rate * x - normalization

    def _cdf(self, x: Tensor) -> Tensor:
        return special.igamma(self._concentration, self._rate * self._positive(x))

    def _entropy(self) -> Tensor:
        k = self._concentration
        return k - unary_functions.log(self._rate) + special.lgamma(k) + (1.0 - k) * special.digamma(k)

    def _mean(self) -> Tensor:
        return self._concentration / self._rate

    def _variance(self) -> Tensor:
        return self._concentration / unary_functions.square(self._rate)

    def _stddev(self) -> Tensor:
        return unary_functions.sqrt(self._concentration) / self._rate

    def _mode(self) -> Tensor:
        defined = self._concentration > number(1, self._concentration)
        value = (self._concentration - 1.0) / self._rate
        return self._or_nan(defined, value, "mode not defined when any concentration <= 1")


@RegisterKL(Gamma, Gamma)
def _gamma_divergence(a: Gamma, b: Gamma, name: str | None = None) -> Tensor:
    with name_scope(name, "kl_gamma_gamma", [a.concentration, b.concentration]):
        return (
            (a.concentration - b.concentration) * special.digamma(a.concentration)
            + special.lgamma(b.concentration) - special.lgamma(a.concentration)
            + b.concentration * (unary_functions.log(a.rate) - unary_functions.log(b.rate))
            + a.concentration * (b.rate / a.rate - 1.0)
        )  # fmt: skip


@export(v1="distributions.Exponential")
class Exponential(Gamma):
    """The exponential distribution: density rate * exp(-rate * x)."""

    @keeps_arguments
    def __init__(
        self, rate: Any, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Exponential"
    ) -> None:
        with name_scope(name, None, [rate]) as scope:
            rate = convert_to_tensor(rate, name="rate")
        super().__init__(shaping.ones([], rate.dtype.base_dtype), rate, validate_args, allow_nan_stats, scope)

    @staticmethod
    def _param_shapes(sample_shape: Any) -> dict[str, Tensor]:
        return {"rate": convert_to_tensor(sample_shape, dtypes.int32)}

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        shape = joining.concat([[n], shaping.shape(self._rate)], 0)
        tiny = np.finfo(self.dtype.as_numpy_dtype).tiny
        drawn = uniform_normal.random_uniform(shape, tiny, 1.0, self.dtype, seed=seed)
        return -1.0 * unary_functions.log(drawn) / self._rate

    def _log_survival_function(self, x: Tensor) -> Tensor:
        return -1.0 * self._positive(x) * self._rate


# ---- Beta -------------------------------------------------------------------------------------------------------


@export(v1="distributions.Beta")
class Beta(Scalars):
    """The beta distribution on (0, 1): density x^(concentration1 - 1) (1 - x)^(concentration0 - 1) / B."""

    @keeps_arguments
    def __init__(
        self,
        concentration1: Any = None,
        concentration0: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Beta",
    ) -> None:
        with name_scope(name, None, [concentration1, concentration0]) as scope:
            parts = []
            for each, label in ((concentration1, "concentration1"), (concentration0, "concentration0")):
                tensor = convert_to_tensor(each, name=label)
                if validate_args:
                    tensor = checked(tensor, [positive(tensor, "Concentration parameter must be positive.")])
                parts.append(tensor)
            same_dtype(*parts)
            self._concentration1, self._concentration0 = parts
            self._total_concentration = parts[0] + parts[1]
        self._start(*parts, name=scope, validate_args=validate_args, allow_nan_stats=allow_nan_stats)

    @staticmethod
    def _param_shapes(sample_shape: Any) -> dict[str, Tensor]:
        shape = convert_to_tensor(sample_shape, dtypes.int32)
        return {"concentration1": shape, "concentration0": shape}

    @property
    def concentration1(self) -> Tensor:
        return self._concentration1

    @property
    def concentration0(self) -> Tensor:
        return self._concentration0

    @property
    def total_concentration(self) -> Tensor:
        return self._total_concentration

    def _within(self, x: Tensor) -> Tensor:
        if not self.validate_args:
            return x
        one = number(1, x)
        return checked(
            x, [positive(x, "sample must be positive"), (comparison.less(x, one), "sample must be less than `1`.")]
        )

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        ones = shaping.ones_like(self._total_concentration)
        first = sampling.random_gamma([n], ones * self._concentration1, None, self.dtype, seed)
        second = sampling.random_gamma(
            [n], ones * self._concentration0, None, self.dtype, derived_seed(seed, "beta")
        )  # fmt: skip
        return first / (first + second)

    def _log_normalization(self) -> Tensor:
        return (
            special.lgamma(self._concentration1) + special.lgamma(self._concentration0)
            - special.lgamma(self._total_concentration)
        )  # fmt: skip

    def _log_prob(self, x: Tensor) -> Tensor:
        x = self._within(x)
        return (
            special.xlogy(self._concentration1 - 1.0, x) + (self._concentration0 - 1.0) * unary_functions.log1p(-1.0 * x)
            - self._log_normalization()
        )  # fmt: skip

    def _cdf(self, x: Tensor) -> Tensor:
        ones = shaping.ones_like(self._total_concentration) * shaping.ones_like(x)
        return special.betainc(ones * self._concentration1, ones * self._concentration0, ones * self._within(x))

    def _entropy(self) -> Tensor:
        a, b, total = self._concentration1, self._concentration0, self._total_concentration
        return (
            self._log_normalization() - (a - 1.0) * special.digamma(a) - (b - 1.0) * special.digamma(b)
            + (total - 2.0) * special.digamma(total)
        )  # fmt: skip

    def _mean(self) -> Tensor:
        return self._concentration1 / self._total_concentration

    def _variance(self) -> Tensor:
        mean = self._mean()
        return mean * (1.0 - mean) / (1.0 + self._total_concentration)

    def _mode(self) -> Tensor:
        a, b = self._concentration1, self._concentration0
        value = (a - 1.0) / (self._total_concentration - 2.0)
        defined = (a > number(1, a)) & (b > number(1, b))
        return self._or_nan(defined, value, "Mode undefined for concentration1 <= 1 or concentration0 <= 1.")


@RegisterKL(Beta, Beta)
def _beta_divergence(a: Beta, b: Beta, name: str | None = None) -> Tensor:
    with name_scope(name, "kl_beta_beta", [a.concentration1, b.concentration1]):
        total = b.total_concentration - a.total_concentration
        return (
            (b._log_normalization() - a._log_normalization())
            - special.digamma(a.concentration1) * (b.concentration1 - a.concentration1)
            - special.digamma(a.concentration0) * (b.concentration0 - a.concentration0)
            + special.digamma(a.total_concentration) * total
        )  # fmt: skip
