"""The Kullback-Leibler divergence between distributions, dispatched by type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stoker._src.base.export import export
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.distributions import checks
from stoker._src.ops.math import reductions, unary_functions

_FORMULAS: dict[tuple[type, type], Callable[..., Tensor]] = {}


def _formula(first: type, second: type) -> Callable[..., Tensor] | None:
    """The formula that is registered for the nearest ancestors of both types."""
    best: tuple[int, Callable[..., Tensor]] | None = None
    for i, a in enumerate(first.__mro__):
        for j, b in enumerate(second.__mro__):
            found = _FORMULAS.get((a, b))
            if found is not None and (best is None or i + j < best[0]):
                best = (i + j, found)
    return None if best is None else best[1]


@export(v1="distributions.kl_divergence")
def kl_divergence(
    distribution_a: Any, distribution_b: Any, allow_nan_stats: bool = True, name: str | None = None
) -> Tensor:
    """KL(a || b) for each member of the batch, in nats.

    Args:
        distribution_a: the distribution that samples come from.
        distribution_b: the distribution to compare with.
        allow_nan_stats: whether the result may be NaN; otherwise NaN raises an error at run time.
        name: the name scope.

    Raises:
        NotImplementedError: no formula is registered for these types.
    """
    formula = _formula(type(distribution_a), type(distribution_b))
    if formula is None:
        raise NotImplementedError(
            "No KL(distribution_a || distribution_b) registered for distribution_a type "
            f"{type(distribution_a).__name__} and distribution_b type {type(distribution_b).__name__}"
        )
    with name_scope("KullbackLeibler"):
        result = formula(distribution_a, distribution_b, name=name)
        if allow_nan_stats:
            return result
        fine = reductions.reduce_all(~unary_functions.is_nan(result))
        message = (
            f"KL calculation between {distribution_a.name} and {distribution_b.name} returned NaN values "
            "(and was called with allow_nan_stats=False)."
        )
        return checks.checked(result, [(fine, message)])


@export(v1="distributions.RegisterKL")
class RegisterKL:
    """Decorator that registers `f(a, b, name=None)` as the divergence between two types of distributions."""

    def __init__(self, dist_cls_a: type, dist_cls_b: type) -> None:
        self._key = (dist_cls_a, dist_cls_b)

    def __call__(self, kl_fn: Callable[..., Tensor]) -> Callable[..., Tensor]:
        """Registers `kl_fn`.

        Raises:
            TypeError: `kl_fn` is not callable.
            ValueError: a formula is already registered for the types.
        """
        if not callable(kl_fn):
            raise TypeError(f"kl_fn must be callable, received: {kl_fn}")
        if self._key in _FORMULAS:
            raise ValueError(
                f"KL({self._key[0].__name__} || {self._key[1].__name__}) has already been registered to: {_FORMULAS[self._key]}"
            )
        _FORMULAS[self._key] = kl_fn
        return kl_fn
