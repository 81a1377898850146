"""Gradient descent: plain, proximal, and with momentum."""

from __future__ import annotations

from typing import Any

from stoker._src.base.export import export
from stoker._src.ops.math import arithmetic, unary_functions
from stoker._src.ops.training.rules import GRADIENT_DESCENT, MOMENTUM, PROXIMAL_GRADIENT_DESCENT
from stoker._src.ops.training.updates import UpdateOps
from stoker._src.ops.variables import scatter_ops
from stoker._src.train.optimizers.rule_optimizer import Number, RuleOptimizer


@export(v1="train.GradientDescentOptimizer")
class GradientDescentOptimizer(RuleOptimizer):
    """Gradient descent: var -= learning_rate * g. It has no slots.

    Args:
        learning_rate: a number, a tensor, or a function that returns one.
        use_locking: see `Optimizer`.
        name: the name of the training op.
    """

    _hyperparameters = (Number("_learning_rate", "learning_rate", "_learning_rate_tensor"),)
    _before = ("_learning_rate_tensor",)

    def __init__(self, learning_rate: Any, use_locking: bool = False, name: str = "GradientDescent") -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._learning_rate_tensor: Any = None

    def _rule(self) -> UpdateOps:
        return GRADIENT_DESCENT

    # Scatter-add is correct for repeated rows, so they are not summed first.

    def _apply_sparse_duplicate_indices(self, grad: Any, var: Any) -> Any:
        delta = arithmetic.multiply(grad.values, *self._numbers(var, self._before), name="mul")
        return scatter_ops.SCATTERS["Sub"][0](var.handle, grad.indices, delta, use_locking=self._use_locking).op

    def _resource_apply_sparse_duplicate_indices(self, grad: Any, handle: Any, indices: Any) -> Any:
        delta = arithmetic.multiply(unary_functions.negative(grad), *self._numbers(handle, self._before), name="mul")
        return scatter_ops.SCATTERS["Add"][1](handle.handle, indices, delta)


@export(v1="train.ProximalGradientDescentOptimizer")
class ProximalGradientDescentOptimizer(RuleOptimizer):
    """Gradient descent with L1 and L2 shrinkage (Duchi and Singer, 2009). It has no slots.

    p = var - learning_rate * g
    var = sign(p) * max(|p| - learning_rate * l1, 0) / (1 + learning_rate * l2)

    Args:
        learning_rate: a number or a tensor.
        l1_regularization_strength, l2_regularization_strength: l1 and l2, at least zero.
        use_locking: see `Optimizer`.
        name: the name of the training op.
    """

    _hyperparameters = (
        Number("_learning_rate", "learning_rate", "_learning_rate_tensor"),
        Number("_l1_regularization_strength", "l1_regularization_strength", "_l1_regularization_strength_tensor"),
        Number("_l2_regularization_strength", "l2_regularization_strength", "_l2_regularization_strength_tensor"),
    )
    _before = tuple(each.tensor for each in _hyperparameters)

    def __init__(
        self,
        learning_rate: Any,
        l1_regularization_strength: Any = 0.0,
        l2_regularization_strength: Any = 0.0,
        use_locking: bool = False,
        name: str = "ProximalGradientDescent",
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._l1_regularization_strength = l1_regularization_strength
        self._l2_regularization_strength = l2_regularization_strength

    def _rule(self) -> UpdateOps:
        return PROXIMAL_GRADIENT_DESCENT


@export(v1="train.MomentumOptimizer")
class MomentumOptimizer(RuleOptimizer):
    """Gradient descent with momentum.

    accumulation = momentum * accumulation + g
    var -= learning_rate * accumulation                        or, with Nesterov momentum,
    var -= learning_rate * (g + momentum * accumulation)

    Rows that a sparse gradient does not contain keep their value and their accumulation. Slot, as named in
    checkpoints: `<var>/Momentum` (`momentum`).

    Args:
        learning_rate: a number, a tensor, or a function that returns one.
        momentum: a number, a tensor, or a function that returns one.
        use_locking: see `Optimizer`.
        name: the name of the training op and of the slots.
        use_nesterov: whether to use Nesterov momentum (Sutskever et al., 2013). Gradients are taken at the current values of
            the variables, which correspond to the paper's values after the look-ahead step.
    """

    _slot_names = ("momentum",)
    _hyperparameters = (
        Number("_learning_rate", "learning_rate", "_learning_rate_tensor"),
        Number("_momentum", "momentum", "_momentum_tensor"),
    )
    _before = ("_learning_rate_tensor",)
    _after = ("_momentum_tensor",)

    def __init__(
        self,
        learning_rate: Any,
        momentum: Any,
        use_locking: bool = False,
        name: str = "Momentum",
        use_nesterov: bool = False,
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._momentum = momentum
        self._use_nesterov = use_nesterov

    def _rule(self) -> UpdateOps:
        return MOMENTUM

    def _attributes(self) -> dict[str, Any]:
        return {"use_nesterov": self._use_nesterov}
