"""`tf.keras.optimizers.schedules`: learning rates as functions of the step."""

from __future__ import annotations

import math
from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.export import export
from stoker._src.keras.serialization import deserialize as _deserialize
from stoker._src.keras.serialization import serialize as _serialize
from stoker._src.ops.array import casting, constants, gathering
from stoker._src.ops.math import arithmetic, reductions, unary_functions


@export("keras.optimizers.schedules.LearningRateSchedule")
class LearningRateSchedule:
    """The base of schedules: called with the step, they return the rate."""

    def __call__(self, step: Any) -> Any:
        raise NotImplementedError("Learning rate schedule must override __call__")

    def get_config(self) -> dict[str, Any]:
        raise NotImplementedError("Learning rate schedule must override get_config")

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        return cls(**config)


class _Plain(LearningRateSchedule):
    """Schedules whose configuration is their arguments."""

    def __init__(self, arguments: dict[str, Any]) -> None:
        self._arguments = {key: value for key, value in arguments.items() if key not in ("self", "__class__")}
        self.__dict__.update(self._arguments)

    def get_config(self) -> dict[str, Any]:
        return dict(self._arguments)


@export("keras.optimizers.schedules.ExponentialDecay")
class ExponentialDecay(_Plain):
    """initial * rate ** (step / decay_steps)."""

    def __init__(
        self,
        initial_learning_rate: float,
        decay_steps: int,
        decay_rate: float,
        staircase: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(locals())

    def __call__(self, step: Any) -> Any:
        own: Any = self
        share = casting.cast(step, dtypes.float32) / float(own.decay_steps)
        return own.initial_learning_rate * arithmetic.power(
            float(own.decay_rate), unary_functions.floor(share) if own.staircase else share
        )


@export("keras.optimizers.schedules.PiecewiseConstantDecay")
class PiecewiseConstantDecay(_Plain):
    """A constant between two boundaries."""

    def __init__(self, boundaries: Any, values: Any, name: str | None = None) -> None:
        if len(boundaries) != len(values) - 1:
            raise ValueError("The length of boundaries should be 1 less than the length of values")
        super().__init__(locals())

    def __call__(self, step: Any) -> Any:
        own: Any = self
        position = reductions.reduce_sum(
            casting.cast(
                casting.cast(step, dtypes.float32) > constants.constant([float(each) for each in own.boundaries]),
                dtypes.int32,
            )
        )
        return gathering.gather(constants.constant([float(each) for each in own.values]), position)


@export("keras.optimizers.schedules.PolynomialDecay")
class PolynomialDecay(_Plain):
    """(initial - end) * (1 - step / decay_steps) ** power + end."""

    def __init__(
        self,
        initial_learning_rate: float,
        decay_steps: int,
        end_learning_rate: float = 0.0001,
        power: float = 1.0,
        cycle: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(locals())

    def __call__(self, step: Any) -> Any:
        own: Any = self
        now, whole = casting.cast(step, dtypes.float32), constants.constant(float(own.decay_steps))
        if own.cycle:
            times = arithmetic.maximum(unary_functions.ceil(now / whole), 1.0)
            whole = whole * times
        else:
            now = arithmetic.minimum(now, whole)
        return (own.initial_learning_rate - own.end_learning_rate) * arithmetic.power(
            1 - now / whole, own.power
        ) + own.end_learning_rate


@export("keras.optimizers.schedules.InverseTimeDecay")
class InverseTimeDecay(_Plain):
    """initial / (1 + rate * step / decay_steps)."""

    def __init__(
        self,
        initial_learning_rate: float,
        decay_steps: int,
        decay_rate: float,
        staircase: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(locals())

    def __call__(self, step: Any) -> Any:
        own: Any = self
        share = casting.cast(step, dtypes.float32) / float(own.decay_steps)
        return own.initial_learning_rate / (
            1 + own.decay_rate * (unary_functions.floor(share) if own.staircase else share)
        )


@export("keras.experimental.CosineDecay", v2="keras.optimizers.schedules.CosineDecay")
class CosineDecay(_Plain):
    """Half a cosine from the initial rate down to alpha times it."""

    def __init__(
        self, initial_learning_rate: float, decay_steps: int, alpha: float = 0.0, name: str | None = None
    ) -> None:
        super().__init__(locals())

    def __call__(self, step: Any) -> Any:
        own: Any = self
        share = arithmetic.minimum(casting.cast(step, dtypes.float32), float(own.decay_steps)) / float(own.decay_steps)
        wave = 0.5 * (1.0 + unary_functions.cos(math.pi * share))
        return own.initial_learning_rate * ((1 - own.alpha) * wave + own.alpha)


@export("keras.optimizers.schedules.serialize")
def serialize(learning_rate_schedule: Any) -> Any:
    """The configuration of a schedule."""
    return _serialize(learning_rate_schedule)


@export("keras.optimizers.schedules.deserialize")
def deserialize(config: Any, custom_objects: Any = None) -> Any:
    """The schedule that a configuration describes."""
    return _deserialize(config, "optimizers.schedules", custom_objects)
