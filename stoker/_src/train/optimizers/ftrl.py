"""Ftrl-proximal."""

from __future__ import annotations

from typing import Any

from stoker._src.base.export import export
from stoker._src.ops.training.rules import FTRL, FTRL_V2
from stoker._src.ops.training.updates import UpdateOps
from stoker._src.train.optimizers.adagrad import constant_slot
from stoker._src.train.optimizers.rule_optimizer import Number, RuleOptimizer


@export(v1="train.FtrlOptimizer")
class FtrlOptimizer(RuleOptimizer):
    """Follow the regularized leader (McMahan et al., 2013), with additional L2 shrinkage.

    With p = learning_rate_power:
    n = accum + g^2;  s = (n^-p - accum^-p) / learning_rate
    linear += g + 2 * l2_shrinkage * var - s * var
    var = (sign(linear) * l1 - linear) / (n^-p / learning_rate + 2 * l2) where |linear| > l1, else 0;  accum = n

    The shrinkage penalizes large weights without changing the accumulator. For a sparse gradient it applies only to the rows
    of the gradient. Slots, as named in checkpoints: `<var>/Ftrl` (`accum`) and `<var>/Ftrl_1` (`linear`), or the given names.

    Args:
        learning_rate: a number, a tensor, or a function that returns one.
        learning_rate_power: zero or less; zero for a fixed learning rate.
        initial_accumulator_value: the initial value of the accumulator, at least zero.
        l1_regularization_strength, l2_regularization_strength: l1 and l2, zero or more.
        use_locking: see `Optimizer`.
        name: the name of the training op and of the slots.
        accum_name, linear_name: names for the variables of the slots.
        l2_shrinkage_regularization_strength: zero or more.

    Raises:
        ValueError: a number is out of range.
    """

    _slot_names = ("accum", "linear")
    _hyperparameters = (
        Number("_learning_rate", "learning_rate", "_learning_rate_tensor"),
        Number("_l1_regularization_strength", "l1_regularization_strength", "_l1_regularization_strength_tensor"),
        Number("_l2_regularization_strength", "l2_regularization_strength", "_l2_regularization_strength_tensor"),
        Number(
            "_l2_shrinkage_regularization_strength",
            "l2_shrinkage_regularization_strength",
            "_l2_shrinkage_regularization_strength_tensor",
        ),
        Number("_learning_rate_power", "learning_rate_power", "_learning_rate_power_tensor"),
    )

    def __init__(
        self,
        learning_rate: Any,
        learning_rate_power: float = -0.5,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "Ftrl",
        accum_name: str | None = None,
        linear_name: str | None = None,
        l2_shrinkage_regularization_strength: float = 0.0,
    ) -> None:
        super().__init__(use_locking, name)
        for label, number in (
            ("initial_accumulator_value", initial_accumulator_value),
            ("l1_regularization_strength", l1_regularization_strength),
            ("l2_regularization_strength", l2_regularization_strength),
            ("l2_shrinkage_regularization_strength", l2_shrinkage_regularization_strength),
        ):
            if number < 0.0:
                raise ValueError(f"{label} {number:f} needs to be positive or zero")
        if learning_rate_power > 0.0:
            raise ValueError(f"learning_rate_power {learning_rate_power:f} needs to be negative or zero")
        self._learning_rate = learning_rate
        self._learning_rate_power = learning_rate_power
        self._initial_accumulator_value = initial_accumulator_value
        self._l1_regularization_strength = l1_regularization_strength
        self._l2_regularization_strength = l2_regularization_strength
        self._l2_shrinkage_regularization_strength = l2_shrinkage_regularization_strength
        self._accum_name, self._linear_name = accum_name, linear_name

    def _shrinks(self) -> bool:
        return self._l2_shrinkage_regularization_strength > 0.0

    def _rule(self) -> UpdateOps:
        return FTRL_V2 if self._shrinks() else FTRL

    @property
    def _after(self) -> tuple[str, ...]:
        return tuple(
            each.tensor
            for each in self._hyperparameters
            if self._shrinks() or each.given != "_l2_shrinkage_regularization_strength"
        )

    def _create_slots(self, var_list: list[Any]) -> None:
        for var in var_list:
            constant_slot(self, var, self._initial_accumulator_value, "accum", self._accum_name or self._name)
            self._zeros_slot(var, "linear", self._linear_name or self._name)
