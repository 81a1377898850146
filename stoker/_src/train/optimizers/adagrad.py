"""Adagrad and related optimizers: each element has its own learning rate, which depends on its past gradients."""

from __future__ import annotations

from typing import Any

from stoker._src.base.export import export
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.ops.array import casting, constants, shaping
from stoker._src.ops.math import arithmetic
from stoker._src.ops.training.rules import ADADELTA, ADAGRAD, ADAGRAD_DA, PROXIMAL_ADAGRAD
from stoker._src.ops.training.updates import UpdateOps
from stoker._src.ops.variables import initializers
from stoker._src.train.optimizers import slot_creator
from stoker._src.train.optimizers.optimizer import Optimizer, beside
from stoker._src.train.optimizers.rule_optimizer import Number, RuleOptimizer


def constant_slot(optimizer: Optimizer, var: Any, number: float, slot_name: str, op_name: str) -> None:
    """Creates a slot of `var` that is initialized to `number`, from a constant on the variable's device."""
    with beside(var):
        initial = constants.constant(number, var.dtype.base_dtype, shape=var.static_shape)
    optimizer._get_or_make_slot(var, initial, slot_name, op_name)


@export(v1="train.AdagradOptimizer")
class AdagradOptimizer(RuleOptimizer):
    """Adagrad (Duchi, Hazan and Singer, 2011).

    accumulator += g^2
    var -= learning_rate * g / sqrt(accumulator)

    Slot, as named in checkpoints: `<var>/Adagrad` (`accumulator`).

    Args:
        learning_rate: a number, a tensor, or a function that returns one.
        initial_accumulator_value: the initial value of the accumulator.
        use_locking: see `Optimizer`.
        name: the name of the training op and of the slots.

    Raises:
        ValueError: `initial_accumulator_value` is not positive.
    """

    _slot_names = ("accumulator",)
    _hyperparameters = (Number("_learning_rate", "learning_rate", "_learning_rate_tensor"),)
    _before = ("_learning_rate_tensor",)

    def __init__(
        self,
        learning_rate: Any,
        initial_accumulator_value: float = 0.1,
        use_locking: bool = False,
        name: str = "Adagrad",
    ) -> None:
        if initial_accumulator_value <= 0.0:
            raise ValueError(f"initial_accumulator_value must be positive: {initial_accumulator_value}")
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._initial_accumulator_value = initial_accumulator_value
        self._learning_rate_tensor: Any = None

    def _rule(self) -> UpdateOps:
        return ADAGRAD

    def _create_slots(self, var_list: list[Any]) -> None:
        for var in var_list:
            dtype = var.dtype.base_dtype
            number = self._initial_accumulator_value
            initializer = slot_creator.filled_with(number, var, initializers.Constant(number, dtype=dtype))
            self._get_or_make_slot_with_initializer(
                var, initializer, var.static_shape, dtype, "accumulator", self._name
            )


@export(v1="train.ProximalAdagradOptimizer")
class ProximalAdagradOptimizer(RuleOptimizer):
    """Adagrad with L1 and L2 shrinkage (Duchi and Singer, 2009).

    accumulator += g^2;  r = learning_rate / sqrt(accumulator);  p = var - r * g
    var = sign(p) * max(|p| - r * l1, 0) / (1 + r * l2)

    Slot, as named in checkpoints: `<var>/ProximalAdagrad` (`accumulator`).

    Args:
        learning_rate: a number or a tensor.
        initial_accumulator_value: the initial value of the accumulator.
        l1_regularization_strength, l2_regularization_strength: l1 and l2, at least zero.
        use_locking: see `Optimizer`.
        name: the name of the training op and of the slots.

    Raises:
        ValueError: `initial_accumulator_value` is not positive.
    """

    _slot_names = ("accumulator",)
    _hyperparameters = (
        Number("_learning_rate", "learning_rate", "_learning_rate_tensor"),
        Number("_l1_regularization_strength", "l1_regularization_strength", "_l1_regularization_strength_tensor"),
        Number("_l2_regularization_strength", "l2_regularization_strength", "_l2_regularization_strength_tensor"),
    )
    _before = tuple(each.tensor for each in _hyperparameters)

    def __init__(
        self,
        learning_rate: Any,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: Any = 0.0,
        l2_regularization_strength: Any = 0.0,
        use_locking: bool = False,
        name: str = "ProximalAdagrad",
    ) -> None:
        if initial_accumulator_value <= 0.0:
            raise ValueError(f"initial_accumulator_value must be positive: {initial_accumulator_value}")
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._initial_accumulator_value = initial_accumulator_value
        self._l1_regularization_strength = l1_regularization_strength
        self._l2_regularization_strength = l2_regularization_strength

    def _rule(self) -> UpdateOps:
        return PROXIMAL_ADAGRAD

    def _create_slots(self, var_list: list[Any]) -> None:
        for var in var_list:
            constant_slot(self, var, self._initial_accumulator_value, "accumulator", self._name)


@export(v1="train.AdagradDAOptimizer")
class AdagradDAOptimizer(RuleOptimizer):
    """Adagrad with dual averaging (Duchi, Hazan and Singer, 2011), which gives sparse linear models.

    G += g;  H += g^2;  t = global_step + 1
    var = -learning_rate * sign(G) * max(|G| - l1 * t, 0) / (l2 * t * learning_rate + sqrt(H))

    A row that is missing in some sparse gradients is later as if it had been updated in every step. Slots, as
    named in checkpoints: `<var>/AdagradDA` (G, `gradient_accumulator`) and `<var>/AdagradDA_1` (H,
    `gradient_squared_accumulator`).

    Args:
        learning_rate: a number or a tensor.
        global_step: the variable that counts steps.
        initial_gradient_squared_accumulator_value: the initial value of H.
        l1_regularization_strength, l2_regularization_strength: l1 and l2, at least zero.
        use_locking: see `Optimizer`.
        name: the name of the training op and of the slots.

    Raises:
        ValueError: `initial_gradient_squared_accumulator_value` is not positive.
    """

    _slot_names = ("gradient_accumulator", "gradient_squared_accumulator")
    _hyperparameters = (Number("_learning_rate", "learning_rate", "_learning_rate_tensor"),)

    def __init__(
        self,
        learning_rate: Any,
        global_step: Any,
        initial_gradient_squared_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "AdagradDA",
    ) -> None:
        if initial_gradient_squared_accumulator_value <= 0.0:
            raise ValueError(
                "initial_gradient_squared_accumulator_value must be positive: "
                f"{initial_gradient_squared_accumulator_value}"
            )
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._initial_gradient_squared_accumulator_value = initial_gradient_squared_accumulator_value
        self._l1_regularization_strength = l1_regularization_strength
        self._l2_regularization_strength = l2_regularization_strength
        self._global_step = global_step

    def _rule(self) -> UpdateOps:
        return ADAGRAD_DA

    def _create_slots(self, var_list: list[Any]) -> None:
        for var in var_list:
            starts = (0.0, self._initial_gradient_squared_accumulator_value)
            for slot_name, start in zip(self._slot_names, starts):
                constant_slot(self, var, start, slot_name, self._name)

    def _prepare(self) -> None:
        super()._prepare()
        # The number of the current step. The counter holds the number of finished steps.
        step = shaping.identity(self._global_step)
        self._step = casting.cast(
            arithmetic.ADD_V2(step, convert_to_tensor(1, step.dtype.base_dtype), name="add"), "int64"
        )

    def _call(self, op: Any, var: Any, *gradient: Any) -> Any:
        slots = [self.get_slot(var, name) for name in self._slot_names]
        dtype = var.dtype.base_dtype
        step = shaping.identity(self._step)
        return op(
            *[each.handle for each in (var, *slots)],
            *gradient,
            casting.cast(self._learning_rate_tensor, dtype),  # type: ignore[attr-defined]
            casting.cast(self._l1_regularization_strength, dtype),
            casting.cast(self._l2_regularization_strength, dtype),
            step,
            use_locking=self._use_locking,
        )


@export(v1="train.AdadeltaOptimizer")
class AdadeltaOptimizer(RuleOptimizer):
    """Adadelta (Zeiler, 2012). With a learning rate of 1, this is the paper's form.

    accum = rho * accum + (1 - rho) * g^2
    update = sqrt(accum_update + epsilon) / sqrt(accum + epsilon) * g
    accum_update = rho * accum_update + (1 - rho) * update^2
    var -= learning_rate * update

    Slots, as named in checkpoints: `<var>/Adadelta` (`accum`) and `<var>/Adadelta_1` (`accum_update`).

    Args:
        learning_rate, rho, epsilon: numbers, tensors, or functions that return one.
        use_locking: see `Optimizer`.
        name: the name of the training op and of the slots.
    """

    _slot_names = ("accum", "accum_update")
    _hyperparameters = (
        Number("_lr", "lr", "_lr_t"),
        Number("_rho", "rho", "_rho_t"),
        Number("_epsilon", "epsilon", "_epsilon_t"),
    )
    _before = ("_lr_t", "_rho_t", "_epsilon_t")

    def __init__(
        self,
        learning_rate: Any = 0.001,
        rho: Any = 0.95,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "Adadelta",
    ) -> None:
        super().__init__(use_locking, name)
        self._lr, self._rho, self._epsilon = learning_rate, rho, epsilon

    def _rule(self) -> UpdateOps:
        return ADADELTA
