"""`tf.keras.initializers` of 1.x. They are those of TensorFlow, except that three of them have other defaults."""

from __future__ import annotations

from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.export import EXPORTS, export, export_constant
from stoker._src.keras.serialization import deserialize as _deserialize
from stoker._src.keras.serialization import serialize as _serialize
from stoker._src.ops.variables import initializers


@export(v1=("keras.initializers.RandomNormal", "keras.initializers.random_normal", "keras.initializers.normal"))
class RandomNormal(initializers.RandomNormal):
    """Normal numbers, with a standard deviation of 0.05 by default."""

    def __init__(self, mean: float = 0.0, stddev: float = 0.05, seed: Any = None, dtype: Any = dtypes.float32) -> None:
        super().__init__(mean, stddev, seed, dtype)


@export(v1=("keras.initializers.RandomUniform", "keras.initializers.random_uniform", "keras.initializers.uniform"))
class RandomUniform(initializers.RandomUniform):
    """Uniform numbers, between -0.05 and 0.05 by default."""

    def __init__(
        self, minval: float = -0.05, maxval: float = 0.05, seed: Any = None, dtype: Any = dtypes.float32
    ) -> None:
        super().__init__(minval, maxval, seed, dtype)


@export(v1=("keras.initializers.TruncatedNormal", "keras.initializers.truncated_normal"))
class TruncatedNormal(initializers.TruncatedNormal):
    """Normal numbers within two standard deviations, which are 0.05 by default."""

    def __init__(self, mean: float = 0.0, stddev: float = 0.05, seed: Any = None, dtype: Any = dtypes.float32) -> None:
        super().__init__(mean, stddev, seed, dtype)


def _as_in_tensorflow() -> None:
    """Gives the initializers of TensorFlow their names here."""
    names = {
        "zeros": "Zeros",
        "ones": "Ones",
        "constant": "Constant",
        "identity": "Identity",
        "orthogonal": "Orthogonal",
        "variance_scaling": "VarianceScaling",
        "glorot_uniform": "GlorotUniform",
        "glorot_normal": "GlorotNormal",
        "he_normal": "he_normal",
        "he_uniform": "he_uniform",
        "lecun_normal": "lecun_normal",
        "lecun_uniform": "lecun_uniform",
    }
    for snake, camel in names.items():
        place = EXPORTS["v1"][f"initializers.{snake}"]
        export_constant(*place, v1=dict.fromkeys(f"keras.initializers.{name}" for name in (snake, camel)))


_as_in_tensorflow()


@export("keras.initializers.serialize")
def serialize(initializer: Any) -> Any:
    """The configuration of an initializer."""
    return _serialize(initializer)


@export("keras.initializers.deserialize")
def deserialize(config: Any, custom_objects: Any = None) -> Any:
    """The initializer that a configuration describes."""
    # 2.x has no public names for these two, but layers have them as defaults.
    old = {"uniform": "RandomUniform", "normal": "RandomNormal"}.get(config) if isinstance(config, str) else None
    return _deserialize(old or config, "initializers", custom_objects)


@export("keras.initializers.get")
def get(identifier: Any) -> Any:
    """An initializer from an object, a class, a name or a configuration; None for None.

    Raises:
        ValueError: it cannot be interpreted.
    """
    if identifier is None:
        return None
    found = deserialize(identifier) if isinstance(identifier, (str, dict)) else identifier
    if isinstance(found, type):
        return found()
    if isinstance(identifier, str) and getattr(found, "__module__", "") == initializers.__name__:
        return found()  # he_normal and others are functions that make an initializer
    if not callable(found):
        raise ValueError(f"Could not interpret initializer identifier: {identifier}")
    return found
