"""RMSProp, plain and centered."""

from __future__ import annotations

from typing import Any

from stoker._src.base.export import export
from stoker._src.ops.training.rules import CENTERED_RMS_PROP, RMS_PROP
from stoker._src.ops.training.updates import UpdateOps
from stoker._src.ops.variables import initializers
from stoker._src.train.optimizers import slot_creator
from stoker._src.train.optimizers.rule_optimizer import Number, RuleOptimizer


@export(v1="train.RMSPropOptimizer")
class RMSPropOptimizer(RuleOptimizer):
    """RMSProp (Tieleman and Hinton, 2012): divides by the root of a moving mean square.

    rms = decay * rms + (1 - decay) * g^2                      (rms starts at 1)
    mom = momentum * mom + learning_rate * g / sqrt(rms + epsilon)
    var -= mom

    If centered, it also keeps mg = decay * mg + (1 - decay) * g and divides by sqrt(rms - mg^2 + epsilon), an estimate of the
    standard deviation. Rows that a sparse gradient does not contain, and their slots, are not changed.

    Slots, as named in checkpoints: `<var>/RMSProp` (`rms`); if centered, `<var>/RMSProp_1` (`mg`); and last
    `<var>/RMSProp_1` or `_2` (`momentum`).

    Args:
        learning_rate, decay, momentum, epsilon: numbers, tensors, or functions that return one.
        use_locking: see `Optimizer`.
        centered: whether to subtract the square of the mean gradient.
        name: the name of the training op and of the slots.
    """

    _hyperparameters = (
        Number("_learning_rate", "learning_rate", "_learning_rate_tensor"),
        Number("_decay", "decay", "_decay_tensor"),
        Number("_momentum", "momentum", "_momentum_tensor"),
        Number("_epsilon", "epsilon", "_epsilon_tensor"),
    )
    _before = tuple(each.tensor for each in _hyperparameters)

    def __init__(
        self,
        learning_rate: Any,
        decay: Any = 0.9,
        momentum: Any = 0.0,
        epsilon: Any = 1e-10,
        use_locking: bool = False,
        centered: bool = False,
        name: str = "RMSProp",
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate, self._decay, self._momentum, self._epsilon = learning_rate, decay, momentum, epsilon
        self._centered = centered

    @property
    def _slot_names(self) -> tuple[str, ...]:
        return ("mg", "rms", "momentum") if self._centered else ("rms", "momentum")

    def _rule(self) -> UpdateOps:
        return CENTERED_RMS_PROP if self._centered else RMS_PROP

    def _create_slots(self, var_list: list[Any]) -> None:
        for var in var_list:
            dtype = var.dtype.base_dtype
            ones = slot_creator.filled_with(1.0, var, initializers.Ones(dtype=dtype))
            self._get_or_make_slot_with_initializer(var, ones, var.static_shape, dtype, "rms", self._name)
            if self._centered:
                self._zeros_slot(var, "mg", self._name)
            self._zeros_slot(var, "momentum", self._name)
