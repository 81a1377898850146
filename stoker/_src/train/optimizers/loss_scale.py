"""Loss scales: factors that keep 16-bit gradients from underflowing."""

from __future__ import annotations

import abc
from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.export import export
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.indexed_slices import IndexedSlices
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Tensor
from stoker._src.graph.trackable import Trackable
from stoker._src.ops.array import constants, joining, selection
from stoker._src.ops.control_flow import grouping
from stoker._src.ops.math import arithmetic, comparison, reductions, unary_functions
from stoker._src.ops.variables.variables import Variable
from stoker._src.train.optimizers.optimizer import variables_graph


@export(
    "train.experimental.LossScale",
    v1=("mixed_precision.LossScale", "mixed_precision.experimental.LossScale"),
)
class LossScale(Trackable, abc.ABC):
    """The base of loss scales. Calling one returns the scale, a float32 scalar."""

    def __init__(self) -> None:
        self._weights: dict[Any, Any] = {}

    @abc.abstractmethod
    def __call__(self) -> Any:
        """The current scale. It changes only when the op returned by `update` runs."""

    @abc.abstractmethod
    def update(self, grads: Any) -> tuple[Any, Any]:
        """Adjusts the scale to the gradients, which are already divided by it. None entries are ignored.

        Returns:
            (an op that updates the scale, or None in eager mode; whether to apply the gradients).
        """

    @abc.abstractmethod
    def get_config(self) -> dict[str, Any]:
        """The arguments of the constructor."""

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """Creates a loss scale from the result of `get_config`."""
        return cls(**config)

    def _add_weight(self, name: str, initial_value: Any, dtype: Any = None) -> Any:
        """Creates or returns a variable of the scale in the current graph (or in eager mode)."""
        key = (name, variables_graph())
        found = self._weights.get(key)
        if found is None:
            found = Variable(initial_value, name=name, dtype=dtype, trainable=False, use_resource=True)
            self._weights[key] = found
            self._handle_deferred_dependencies(name, found)
        return found

    def _trackable_children(self, save_type: str = "checkpoint", **kwargs: Any) -> dict[str, Any]:
        graph = variables_graph()
        own = {
            name: weight
            for (name, owner), weight in sorted(self._weights.items(), key=lambda each: each[0][0])
            if owner is graph
        }
        return {**super()._trackable_children(save_type, **kwargs), **own}


@export(
    "train.experimental.FixedLossScale",
    v1=("mixed_precision.FixedLossScale", "mixed_precision.experimental.FixedLossScale"),
)
class FixedLossScale(LossScale):
    """A constant scale.

    Args:
        loss_scale_value: a Python number, at least 1.

    Raises:
        ValueError: the value is below 1 or not a number.
    """

    def __init__(self, loss_scale_value: float) -> None:
        super().__init__()
        if not isinstance(loss_scale_value, (int, float)) or isinstance(loss_scale_value, bool):
            raise ValueError("loss_scale_value must be a Python int or float.")
        if loss_scale_value < 1:
            raise ValueError(f"loss_scale_value must be at least 1, not {loss_scale_value}.")
        self._loss_scale_value = float(loss_scale_value)

    def __call__(self) -> Any:
        return convert_to_tensor(self._loss_scale_value)

    def update(self, grads: Any) -> tuple[Any, Any]:
        """Does nothing. The gradients are always applied."""
        return None if context.executing_eagerly() else grouping.no_op(), True

    def get_config(self) -> dict[str, Any]:
        return {"loss_scale_value": self._loss_scale_value}

    def __repr__(self) -> str:
        return f"FixedLossScale({self._loss_scale_value})"


def _all_finite(grads: Any) -> Tensor:
    """Whether all elements of all gradients are finite."""
    checks = []
    for gradient in grads:
        if gradient is not None:
            values = gradient.values if isinstance(gradient, IndexedSlices) else gradient
            checks.append(reductions.reduce_all(unary_functions.IS_FINITE(values)))
    if not checks:
        return constants.constant(True)
    return reductions.reduce_all(joining.PACK(checks))


@export(
    "train.experimental.DynamicLossScale",
    v1=("mixed_precision.DynamicLossScale", "mixed_precision.experimental.DynamicLossScale"),
)
class DynamicLossScale(LossScale):
    """A scale that grows while gradients are finite, and shrinks when they are not.

    After `increment_period` consecutive steps with finite gradients, it is multiplied by `multiplier` if the result is finite. A
    gradient that is not finite divides it (down to 1), resets the count, and the gradients are not applied.

    Args:
        initial_loss_scale: the initial scale.
        increment_period: the number of steps between increases.
        multiplier: the factor.
    """

    def __init__(
        self, initial_loss_scale: float = 2**15, increment_period: int = 2000, multiplier: float = 2.0
    ) -> None:
        super().__init__()
        self._initial_loss_scale = float(initial_loss_scale)
        self._increment_period = int(increment_period)
        self._multiplier = float(multiplier)
        self._state()

    def _state(self) -> tuple[Any, Any]:
        return (
            self._add_weight("current_loss_scale", self._initial_loss_scale, dtypes.float32),
            self._add_weight("good_steps", 0, dtypes.int64),
        )

    @property
    def initial_loss_scale(self) -> float:
        return self._initial_loss_scale

    @property
    def increment_period(self) -> int:
        return self._increment_period

    @property
    def multiplier(self) -> float:
        return self._multiplier

    def __call__(self) -> Any:
        return self._state()[0].value()

    def update(self, grads: Any) -> tuple[Any, Any]:
        """Counts a good step or shrinks the scale. The gradients are applied if all are finite."""
        scale, good = self._state()
        finite = _all_finite(grads)
        with name_scope(None, "cond"):  # TensorFlow does this in a branch of that name
            select = selection.SELECT
            now: Any = scale.value()
            count = arithmetic.ADD_V2(good.value(), constants.constant(1, dtypes.int64))
            full = comparison.GREATER_EQUAL(count, constants.constant(self._increment_period, dtypes.int64))
            grown = now * self._multiplier
            grown = select(comparison.LOGICAL_AND(full, unary_functions.IS_FINITE(grown)), grown, now)
            shrunk = arithmetic.MAXIMUM(now / self._multiplier, constants.constant(1.0))
            zero = constants.constant(0, dtypes.int64)
            ops = [
                scale.assign(select(finite, grown, shrunk), read_value=False),
                good.assign(
                    select(comparison.LOGICAL_AND(finite, comparison.LOGICAL_NOT(full)), count, zero), read_value=False
                ),
            ]
        return (None if context.executing_eagerly() else grouping.group(*ops)), finite

    def get_config(self) -> dict[str, Any]:
        return {
            "initial_loss_scale": self._initial_loss_scale,
            "increment_period": self._increment_period,
            "multiplier": self._multiplier,
        }

    def __repr__(self) -> str:
        return (
            f"DynamicLossScale(initial_loss_scale={self._initial_loss_scale}, "
            f"increment_period={self._increment_period}, multiplier={self._multiplier})"
        )


def get(identifier: Any) -> LossScale:
    """Converts a number, "dynamic", or a loss scale to a loss scale.

    Raises:
        ValueError: the argument is of another type.
    """
    if isinstance(identifier, LossScale):
        return identifier
    if identifier == "dynamic":
        return DynamicLossScale()
    if isinstance(identifier, (int, float)) and not isinstance(identifier, bool):
        return FixedLossScale(identifier)
    raise ValueError(f"Could not interpret loss scale identifier: {identifier}")
