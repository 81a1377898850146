"""Distributions made of others: independent ones as one event, mixtures, and transformed ones."""

from __future__ import annotations

from math import prod as product
from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.export import export
from stoker._src.base.shapes import Shape, as_shape
from stoker._src.contrib.distributions.bijectors import Bijector
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import joining, ranges, selection, shaping
from stoker._src.ops.array.constants import constant
from stoker._src.ops.distributions.base import (
    NOT_REPARAMETERIZED,
    Distribution,
    derived_seed,
    keeps_arguments,
    number,
    where,
)
from stoker._src.ops.distributions.discrete import Categorical
from stoker._src.ops.distributions.divergence import RegisterKL, kl_divergence
from stoker._src.ops.math import arithmetic, comparison, reductions, unary_functions
from stoker._src.ops.nn import softmax


def _known(shape: Any) -> Shape:
    return as_shape(shape)


@export(v1="contrib.distributions.Independent")
class Independent(Distribution):
    """A batch of distributions as one: the last dimensions of the batch become dimensions of the event.

    Args:
        distribution: the batch.
        reinterpreted_batch_ndims: how many dimensions; None for all but the first.
    """

    @keeps_arguments
    def __init__(
        self,
        distribution: Distribution,
        reinterpreted_batch_ndims: int | None = None,
        validate_args: bool = False,
        name: str | None = None,
    ) -> None:
        rank = distribution.batch_shape.ndims
        if reinterpreted_batch_ndims is None:
            if rank is None:
                raise ValueError("reinterpreted_batch_ndims must be given where the rank of the batch is unknown.")
            reinterpreted_batch_ndims = max(0, rank - 1)
        if rank is not None and reinterpreted_batch_ndims > rank:
            raise ValueError(
                f"reinterpreted_batch_ndims({reinterpreted_batch_ndims}) cannot exceed distribution.batch_ndims({rank})"
            )
        self.distribution = distribution
        self.reinterpreted_batch_ndims = int(reinterpreted_batch_ndims)
        super().__init__(
            distribution.dtype,
            distribution.reparameterization_type,
            validate_args,
            distribution.allow_nan_stats,
            name=name or "Independent" + distribution.name,
        )

    def _parts(self) -> tuple[Shape, Shape]:
        batch, event = _known(self.distribution.batch_shape), _known(self.distribution.event_shape)
        if batch.rank is None or event.rank is None:
            return Shape(None), Shape(None)
        cut = batch.rank - self.reinterpreted_batch_ndims
        return Shape(tuple(batch)[:cut]), Shape((*tuple(batch)[cut:], *event))

    def _batch_shape(self) -> Shape:
        return self._parts()[0]

    def _event_shape(self) -> Shape:
        return self._parts()[1]

    def _cut(self) -> Any:
        return ranges.size(self.distribution.batch_shape_tensor()) - self.reinterpreted_batch_ndims

    def _batch_shape_tensor(self) -> Tensor:
        return self.distribution.batch_shape_tensor()[: self._cut()]

    def _event_shape_tensor(self) -> Tensor:
        inner = self.distribution.batch_shape_tensor()[self._cut() :]
        return joining.concat([inner, self.distribution.event_shape_tensor()], 0)

    def _summed(self, values: Tensor) -> Tensor:
        axes = list(range(-self.reinterpreted_batch_ndims, 0))
        return reductions.reduce_sum(values, axes) if axes else values

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        return self.distribution.sample([n], seed=seed)

    def _log_prob(self, x: Tensor) -> Tensor:
        return self._summed(self.distribution.log_prob(x))

    def _entropy(self) -> Tensor:
        return self._summed(self.distribution.entropy())

    def _mean(self) -> Tensor:
        return self.distribution.mean()

    def _variance(self) -> Tensor:
        return self.distribution.variance()

    def _stddev(self) -> Tensor:
        return self.distribution.stddev()

    def _mode(self) -> Tensor:
        return self.distribution.mode()


@RegisterKL(Independent, Independent)
def _kl_independent(a: Independent, b: Independent, name: str | None = None) -> Tensor:
    if a.reinterpreted_batch_ndims != b.reinterpreted_batch_ndims:
        raise ValueError("Event shapes do not match.")
    with name_scope(name, "kl_independent"):
        return a._summed(kl_divergence(a.distribution, b.distribution))


class _OfComponents(Distribution):
    """A mixture: components along one dimension, with the log of their probabilities there."""

    def _log_weights(self) -> Tensor:
        """[batch, components]."""
        raise NotImplementedError

    def _each(self, statistic: str, *args: Any) -> Tensor:
        """A statistic of the components, [..., components, event]."""
        raise NotImplementedError

    def _event_rank(self) -> int:
        rank = self.event_shape.ndims
        if rank is None:
            raise ValueError("The rank of the events must be known.")
        return rank

    def _weights(self) -> Tensor:
        weights = unary_functions.exp(self._log_weights())
        for _ in range(self._event_rank()):
            weights = shaping.expand_dims(weights, -1)
        return weights

    def _log_prob(self, x: Tensor) -> Tensor:
        return reductions.reduce_logsumexp(self._each("log_prob", x) + self._log_weights(), -1)

    def _log_cdf(self, x: Tensor) -> Tensor:
        return reductions.reduce_logsumexp(self._each("log_cdf", x) + self._log_weights(), -1)

    def _mean(self) -> Tensor:
        return reductions.reduce_sum(self._weights() * self._each("mean"), -1 - self._event_rank())

    def _variance(self) -> Tensor:
        axis = -1 - self._event_rank()
        means = self._each("mean")
        inner = reductions.reduce_sum(self._weights() * self._each("variance"), axis)
        apart = means - reductions.reduce_sum(self._weights() * means, axis, keepdims=True)
        return inner + reductions.reduce_sum(self._weights() * unary_functions.square(apart), axis)


@export(v1="contrib.distributions.Mixture")
class Mixture(_OfComponents):
    """A mixture of distributions, which may be of different classes.

    Args:
        cat: a `Categorical` over the components.
        components: distributions with equal batch and event shapes.
    """

    @keeps_arguments
    def __init__(
        self,
        cat: Categorical,
        components: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        use_static_graph: bool = False,
        name: str = "Mixture",
    ) -> None:
        if not isinstance(cat, Categorical):
            raise TypeError(f"cat must be a Categorical distribution, but saw: {cat}")
        if not components:
            raise ValueError("components must be a non-empty list or tuple")
        kind = components[0].dtype
        if not all(each.dtype == kind for each in components):
            raise TypeError(
                "All components must have the same dtype, but saw dtypes: " + str([c.dtype for c in components])
            )
        self.cat, self.components = cat, list(components)
        if use_static_graph:
            raise NotImplementedError(
                "Mixture: use_static_graph=True is missing; samples are drawn from all components."
            )
        with name_scope(name) as scope:
            super().__init__(kind, NOT_REPARAMETERIZED, validate_args, allow_nan_stats, name=scope)

    @property
    def num_components(self) -> int:
        return len(self.components)

    def _batch_shape(self) -> Shape:
        return _known(self.components[0].batch_shape)

    def _event_shape(self) -> Shape:
        return _known(self.components[0].event_shape)

    def _batch_shape_tensor(self) -> Tensor:
        return self.cat.batch_shape_tensor()

    def _event_shape_tensor(self) -> Tensor:
        return self.components[0].event_shape_tensor()

    def _log_weights(self) -> Tensor:
        return softmax.log_softmax(self.cat.logits)

    def _each(self, statistic: str, *args: Any) -> Tensor:
        found = [getattr(each, statistic)(*args) for each in self.components]
        scalar = statistic in ("log_prob", "log_cdf")
        return joining.stack(found, -1 if scalar else -1 - self._event_rank())

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        chosen = self.cat.sample([n], seed=derived_seed(seed, "Mixture"))
        result: Any = None
        for i, each in enumerate(self.components):
            drawn = each.sample([n], seed=derived_seed(seed, f"Mixture{i}"))
            here = comparison.equal(chosen, constant(i, chosen.dtype.base_dtype))
            for _ in range(self._event_rank()):
                here = shaping.expand_dims(here, -1)
            result = drawn if result is None else where(here, drawn, result)
        return result


@export(v1="contrib.distributions.MixtureSameFamily")
class MixtureSameFamily(_OfComponents):
    """A mixture of the members of a batch.

    Args:
        mixture_distribution: a `Categorical` over the components.
        components_distribution: a distribution whose last batch dimension counts the components.
    """

    @keeps_arguments
    def __init__(
        self,
        mixture_distribution: Categorical,
        components_distribution: Distribution,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MixtureSameFamily",
    ) -> None:
        self.mixture_distribution, self.components_distribution = mixture_distribution, components_distribution
        with name_scope(name) as scope:
            super().__init__(
                components_distribution.dtype, NOT_REPARAMETERIZED, validate_args, allow_nan_stats, name=scope
            )

    def _batch_shape(self) -> Shape:
        whole = _known(self.components_distribution.batch_shape)
        return whole if whole.rank is None else Shape(tuple(whole)[:-1])

    def _event_shape(self) -> Shape:
        return _known(self.components_distribution.event_shape)

    def _batch_shape_tensor(self) -> Tensor:
        return self.components_distribution.batch_shape_tensor()[:-1]

    def _event_shape_tensor(self) -> Tensor:
        return self.components_distribution.event_shape_tensor()

    def _log_weights(self) -> Tensor:
        return softmax.log_softmax(self.mixture_distribution.logits)

    def _each(self, statistic: str, *args: Any) -> Tensor:
        # A value meets all components: it gets their dimension before those of the event.
        args = tuple(shaping.expand_dims(value, -1 - self._event_rank()) for value in args)
        return getattr(self.components_distribution, statistic)(*args)

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        drawn = self.components_distribution.sample([n], seed=seed)
        count = self.components_distribution.batch_shape_tensor()[-1]
        chosen = self.mixture_distribution.sample([n], seed=derived_seed(seed, "MixtureSameFamily"))
        mask = selection.one_hot(chosen, count, dtype=self.dtype)
        shape = joining.concat([[n], self.components_distribution.batch_shape_tensor()], 0)
        mask = ranges.broadcast_to(mask, shape)
        for _ in range(self._event_rank()):
            mask = shaping.expand_dims(mask, -1)
        return reductions.reduce_sum(drawn * mask, -1 - self._event_rank())


@export(v1="contrib.distributions.TransformedDistribution")
class TransformedDistribution(Distribution):
    """The distribution of g(x), where x comes from another distribution.

    Args:
        distribution: that of x.
        bijector: g.
        batch_shape, event_shape: shapes to use instead of those of a scalar `distribution`.
    """

    @keeps_arguments
    def __init__(
        self,
        distribution: Distribution,
        bijector: Bijector,
        batch_shape: Any = None,
        event_shape: Any = None,
        validate_args: bool = False,
        name: str | None = None,
    ) -> None:
        self.distribution, self.bijector = distribution, bijector
        self._more_batch = None if batch_shape is None else [int(n) for n in batch_shape]
        self._more_event = None if event_shape is None else [int(n) for n in event_shape]
        for wanted, found in ((batch_shape, distribution.batch_shape), (event_shape, distribution.event_shape)):
            if wanted is not None and found.ndims != 0:
                raise ValueError("Shapes can only be replaced where the distribution is scalar.")
        with name_scope(name or bijector.name + distribution.name) as scope:
            super().__init__(
                distribution.dtype,
                distribution.reparameterization_type,
                validate_args,
                distribution.allow_nan_stats,
                name=scope,
            )

    def _batch_shape(self) -> Shape:
        return _known(self.distribution.batch_shape) if self._more_batch is None else Shape(tuple(self._more_batch))

    def _event_shape(self) -> Shape:
        return _known(self.distribution.event_shape) if self._more_event is None else Shape(tuple(self._more_event))

    def _batch_shape_tensor(self) -> Tensor:
        return self.distribution.batch_shape_tensor()

    def _event_shape_tensor(self) -> Tensor:
        return self.distribution.event_shape_tensor()

    def _event_ndims(self) -> int:
        rank = self.event_shape.ndims
        if rank is None:
            raise ValueError("The rank of the events must be known.")
        return max(rank, self.bijector.inverse_min_event_ndims)

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        front = [n, *(self._more_batch or ()), *(self._more_event or ())]
        return self.bijector.forward(self.distribution.sample(front, seed=seed))

    def _log_prob(self, y: Tensor) -> Tensor:
        x = self.bijector.inverse(y)
        inner = self.distribution.log_prob(x)
        if self._more_event:
            inner = reductions.reduce_sum(inner, list(range(-len(self._more_event), 0)))
        return inner + self.bijector.inverse_log_det_jacobian(y, event_ndims=self._event_ndims())

    def _cdf(self, y: Tensor) -> Tensor:
        return self.distribution.cdf(self.bijector.inverse(y))

    def _log_cdf(self, y: Tensor) -> Tensor:
        return self.distribution.log_cdf(self.bijector.inverse(y))

    def _survival_function(self, y: Tensor) -> Tensor:
        return self.distribution.survival_function(self.bijector.inverse(y))

    def _quantile(self, value: Tensor) -> Tensor:
        return self.bijector.forward(self.distribution.quantile(value))

    def _constant_only(self, what: str) -> None:
        if not self.bijector.is_constant_jacobian:
            raise NotImplementedError(f"{what} is not implemented for non-affine bijectors")

    def _mean(self) -> Tensor:
        self._constant_only("mean")
        whole = joining.concat([self.batch_shape_tensor(), self.event_shape_tensor()], 0)
        return self.bijector.forward(ranges.broadcast_to(self.distribution.mean(), whole))

    def _entropy(self) -> Tensor:
        self._constant_only("entropy")
        x = shaping.zeros(joining.concat([self.batch_shape_tensor(), self.event_shape_tensor()], 0), self.dtype)
        jacobian = self.bijector.forward_log_det_jacobian(x, event_ndims=self._event_ndims())
        count = product(self._more_event or [])  # independent numbers with equal entropies
        return self.distribution.entropy() * float(count) + jacobian


@export(v1="contrib.distributions.QuantizedDistribution")
class QuantizedDistribution(Distribution):
    """The distribution of ceil(x), where x comes from another distribution; values beyond `low` and `high` are moved there."""

    @keeps_arguments
    def __init__(
        self,
        distribution: Distribution,
        low: Any = None,
        high: Any = None,
        validate_args: bool = False,
        name: str = "QuantizedDistribution",
    ) -> None:
        self.distribution = distribution
        with name_scope(name) as scope:
            self._low = None if low is None else number(low, _like(distribution))
            self._high = None if high is None else number(high, _like(distribution))
            super().__init__(
                distribution.dtype, NOT_REPARAMETERIZED, validate_args, distribution.allow_nan_stats, name=scope
            )

    def _batch_shape(self) -> Shape:
        return _known(self.distribution.batch_shape)

    def _event_shape(self) -> Shape:
        return _known(self.distribution.event_shape)

    def _batch_shape_tensor(self) -> Tensor:
        return self.distribution.batch_shape_tensor()

    def _event_shape_tensor(self) -> Tensor:
        return self.distribution.event_shape_tensor()

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        drawn = unary_functions.ceil(self.distribution.sample([n], seed=seed))
        drawn = drawn if self._low is None else arithmetic.maximum(drawn, self._low)
        return drawn if self._high is None else arithmetic.minimum(drawn, self._high)

    def _cdf(self, y: Tensor) -> Tensor:
        j = unary_functions.floor(y)
        found = self.distribution.cdf(j)
        if self._low is not None:
            found = where(j < self._low, shaping.zeros_like(found), found)
        return found if self._high is None else where(j >= self._high, shaping.ones_like(found), found)

    def _survival_function(self, y: Tensor) -> Tensor:
        j = unary_functions.ceil(y)
        found = self.distribution.survival_function(j)
        if self._low is not None:
            found = where(j < self._low, shaping.ones_like(found), found)
        return found if self._high is None else where(j >= self._high, shaping.zeros_like(found), found)

    def _prob(self, y: Tensor) -> Tensor:
        # In the upper tail differences of survival functions keep their digits.
        below, above = self._cdf(y) - self._cdf(y - 1), self._survival_function(y - 1) - self._survival_function(y)
        return where(self._survival_function(y) < self._cdf(y), above, below)


def _like(distribution: Distribution) -> Tensor:
    return constant(0, distribution.dtype or dtypes.float32)
