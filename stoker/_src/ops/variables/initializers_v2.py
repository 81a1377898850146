"""The initializers of 2.x, called with a shape and a dtype. With a seed they return the same numbers at every call."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stoker._src.base import dtypes
from stoker._src.base.dtypes import as_dtype
from stoker._src.base.export import export
from stoker._src.base.shapes import as_shape
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import constants, shaping
from stoker._src.ops.linalg import diagonals
from stoker._src.ops.math import arithmetic
from stoker._src.ops.random import stateless_random, uniform_normal
from stoker._src.ops.variables.initializers import Initializer, fans, orthogonal_columns


class InitializerV2(Initializer):
    """The base of initializers, called with a shape and a dtype. `partition_shape` and `partition_offset` select a slice."""

    def __call__(self, shape: Any, dtype: Any = None, **kwargs: Any) -> Any:
        raise NotImplementedError

    @staticmethod
    def _slice(shape: Any, kwargs: dict[str, Any]) -> Any:
        """The shape to create: that of the slice, if one is requested.

        Raises:
            TypeError: there are unknown keyword arguments.
        """
        unknown = set(kwargs) - {"partition_shape", "partition_offset", "layout"}
        if unknown:
            raise TypeError(f"Unknown keyword arguments: {', '.join(sorted(unknown))}.")
        part = kwargs.get("partition_shape")
        return shape if part is None else part


export(v2=("initializers.Initializer", "keras.initializers.Initializer"))(InitializerV2)


def _numeric(dtype: Any) -> Any:
    kind = dtypes.float32 if dtype is None else as_dtype(dtype)
    if kind is dtypes.string or not (kind.is_numeric or kind is dtypes.bool_):
        raise ValueError(f"Argument `dtype` expected to be numeric or boolean. Received {kind!r}.")
    return kind


def _floating(dtype: Any) -> Any:
    kind = dtypes.float32 if dtype is None else as_dtype(dtype)
    if not kind.is_floating:
        raise ValueError(f"Argument `dtype` expected to be a floating point type. Received {kind!r}.")
    return kind


def _names(camel: str, snake: str) -> tuple[str, ...]:
    return tuple(f"{room}initializers.{name}" for room in ("", "keras.") for name in (camel, snake))


@export(v2=("zeros_initializer", *_names("Zeros", "zeros")))
class ZerosV2(InitializerV2):
    """Zeros."""

    def __call__(self, shape: Any, dtype: Any = dtypes.float32, **kwargs: Any) -> Tensor:
        return shaping.zeros(self._slice(shape, kwargs), _numeric(dtype))


@export(v2=("ones_initializer", *_names("Ones", "ones")))
class OnesV2(InitializerV2):
    """Ones."""

    def __call__(self, shape: Any, dtype: Any = dtypes.float32, **kwargs: Any) -> Tensor:
        return shaping.ones(self._slice(shape, kwargs), _numeric(dtype))


@export(v2=("constant_initializer", *_names("Constant", "constant")))
class ConstantV2(InitializerV2):
    """A constant: one number for every element, or one number per element."""

    def __init__(self, value: Any = 0, support_partition: bool = False) -> None:
        if not (np.isscalar(value) or isinstance(value, (list, tuple, np.ndarray))):
            raise TypeError(f"Invalid type for initial value: {type(value)}. Expected Python scalar, list or tuple of values, or numpy.ndarray.")  # fmt: skip
        self.value = value
        self.support_partition = support_partition

    def __call__(self, shape: Any, dtype: Any = None, **kwargs: Any) -> Tensor:
        sizes = list(as_shape(self._slice(shape, kwargs)))
        elements = math.prod(sizes)  # type: ignore[arg-type]
        if np.size(self.value) not in (1, elements):
            raise TypeError(
                f"Eager execution of tf.constant with unsupported shape. Tensor {self.value} has {np.size(self.value)} elements, but got `shape` {sizes} with {elements} elements."
            )
        return constants.constant(self.value, None if dtype is None else as_dtype(dtype), sizes)

    def get_config(self) -> dict[str, Any]:
        return {"value": self.value}


class _Seeded(InitializerV2):
    """With a seed, the numbers are stateless random numbers of the seed (seed, 0), the same at every call."""

    seed: int | None

    def _uniform(self, shape: Any, low: Any, high: Any, kind: Any) -> Tensor:
        if self.seed is None:
            return uniform_normal.random_uniform(shape, low, high, kind)
        return stateless_random.stateless_uniform(shape, [self.seed, 0], low, high, kind)

    def _normal(self, shape: Any, mean: Any, stddev: Any, kind: Any) -> Tensor:
        if self.seed is None:
            return uniform_normal.random_normal(shape, mean, stddev, kind)
        return stateless_random.stateless_normal(shape, [self.seed, 0], mean, stddev, kind)

    def _truncated(self, shape: Any, mean: Any, stddev: Any, kind: Any) -> Tensor:
        if self.seed is None:
            return uniform_normal.truncated_normal(shape, mean, stddev, kind)
        return stateless_random.stateless_truncated_normal(shape, [self.seed, 0], mean, stddev, kind)


@export(v2=("random_uniform_initializer", *_names("RandomUniform", "random_uniform")))
class RandomUniformV2(_Seeded):
    """Uniform random numbers in [minval, maxval)."""

    def __init__(self, minval: Any = -0.05, maxval: Any = 0.05, seed: int | None = None) -> None:
        self.minval, self.maxval, self.seed = minval, maxval, seed

    def __call__(self, shape: Any, dtype: Any = dtypes.float32, **kwargs: Any) -> Tensor:
        kind = dtypes.float32 if dtype is None else as_dtype(dtype)
        if not (kind.is_floating or kind.is_integer):
            raise ValueError(f"Argument `dtype` expected to be numeric. Received {kind!r}.")
        return self._uniform(self._slice(shape, kwargs), self.minval, self.maxval, kind)

    def get_config(self) -> dict[str, Any]:
        return {"minval": self.minval, "maxval": self.maxval, "seed": self.seed}


@export(v2=("random_normal_initializer", *_names("RandomNormal", "random_normal")))
class RandomNormalV2(_Seeded):
    """Normal random numbers."""

    def __init__(self, mean: Any = 0.0, stddev: Any = 0.05, seed: int | None = None) -> None:
        self.mean, self.stddev, self.seed = mean, stddev, seed

    def __call__(self, shape: Any, dtype: Any = dtypes.float32, **kwargs: Any) -> Tensor:
        return self._normal(self._slice(shape, kwargs), self.mean, self.stddev, _floating(dtype))

    def get_config(self) -> dict[str, Any]:
        return {"mean": self.mean, "stddev": self.stddev, "seed": self.seed}


@export(v2=_names("TruncatedNormal", "truncated_normal"))
class TruncatedNormalV2(RandomNormalV2):
    """Normal random numbers within two standard deviations of the mean."""

    def __call__(self, shape: Any, dtype: Any = dtypes.float32, **kwargs: Any) -> Tensor:
        return self._truncated(self._slice(shape, kwargs), self.mean, self.stddev, _floating(dtype))


@export(v2=_names("VarianceScaling", "variance_scaling"))
class VarianceScalingV2(_Seeded):
    """Random numbers with variance scale / n, where n is the number of inputs, of outputs, or their mean."""

    def __init__(
        self,
        scale: float = 1.0,
        mode: str = "fan_in",
        distribution: str = "truncated_normal",
        seed: int | None = None,
    ) -> None:
        if scale <= 0.0:
            raise ValueError(f"`scale` must be positive float. Received: scale={scale}.")
        if mode not in ("fan_in", "fan_out", "fan_avg"):
            raise ValueError(f"Invalid `mode` argument: {mode}. Please use one of ('fan_in', 'fan_out', 'fan_avg').")
        distribution = distribution.lower()
        if distribution == "normal":
            distribution = "truncated_normal"
        if distribution not in ("uniform", "truncated_normal", "untruncated_normal"):
            raise ValueError(f"Invalid `distribution` argument: {distribution}.")
        self.scale, self.mode, self.distribution, self.seed = scale, mode, distribution, seed

    def __call__(self, shape: Any, dtype: Any = dtypes.float32, **kwargs: Any) -> Tensor:
        kind = _floating(dtype)
        inputs, outputs = fans(shape)
        count = {"fan_in": inputs, "fan_out": outputs, "fan_avg": (inputs + outputs) / 2.0}[self.mode]
        variance = self.scale / max(1.0, count)
        made = self._slice(shape, kwargs)
        if self.distribution == "truncated_normal":
            # Truncation at two standard deviations reduces the variance. This factor is the standard deviation that remains.
            return self._truncated(made, 0.0, math.sqrt(variance) / 0.87962566103423978, kind)
        if self.distribution == "untruncated_normal":
            return self._normal(made, 0.0, math.sqrt(variance), kind)
        bound = math.sqrt(3.0 * variance)
        return self._uniform(made, -bound, bound, kind)

    def get_config(self) -> dict[str, Any]:
        return {"scale": self.scale, "mode": self.mode, "distribution": self.distribution, "seed": self.seed}


class _Named(VarianceScalingV2):
    """A named preset of VarianceScaling. Only the seed is configurable."""

    setting: tuple[float, str, str]

    def __init__(self, seed: int | None = None) -> None:
        super().__init__(*self.setting, seed)

    def get_config(self) -> dict[str, Any]:
        return {"seed": self.seed}


@export(v2=_names("GlorotUniform", "glorot_uniform"))
class GlorotUniformV2(_Named):
    """Uniform with variance 2 / (inputs + outputs) (Glorot and Bengio, 2010)."""

    setting = (1.0, "fan_avg", "uniform")


@export(v2=_names("GlorotNormal", "glorot_normal"))
class GlorotNormalV2(_Named):
    """Truncated normal with variance 2 / (inputs + outputs) (Glorot and Bengio, 2010)."""

    setting = (1.0, "fan_avg", "truncated_normal")


@export(v2=_names("HeNormal", "he_normal"))
class HeNormalV2(_Named):
    """Truncated normal with variance 2 / inputs (He et al., 2015)."""

    setting = (2.0, "fan_in", "truncated_normal")


@export(v2=_names("HeUniform", "he_uniform"))
class HeUniformV2(_Named):
    """Uniform with variance 2 / inputs (He et al., 2015)."""

    setting = (2.0, "fan_in", "uniform")


@export(v2=_names("LecunNormal", "lecun_normal"))
class LecunNormalV2(_Named):
    """Truncated normal with variance 1 / inputs."""

    setting = (1.0, "fan_in", "truncated_normal")


@export(v2=_names("LecunUniform", "lecun_uniform"))
class LecunUniformV2(_Named):
    """Uniform with variance 1 / inputs."""

    setting = (1.0, "fan_in", "uniform")


@export(v2=_names("Orthogonal", "orthogonal"))
class OrthogonalV2(_Seeded):
    """A matrix with orthogonal rows or columns (Saxe et al., 2013), times `gain`. Leading dimensions are merged into rows."""

    def __init__(self, gain: float = 1.0, seed: int | None = None) -> None:
        self.gain, self.seed = gain, seed

    def __call__(self, shape: Any, dtype: Any = dtypes.float32, **kwargs: Any) -> Tensor:
        sizes: list[int] = list(as_shape(self._slice(shape, kwargs)))  # type: ignore[arg-type]
        if len(sizes) < 2:
            raise ValueError(f"The tensor to initialize must be at least two-dimensional. Received: shape={shape} of rank {len(sizes)}.")  # fmt: skip
        rows, columns = math.prod(sizes[:-1]), sizes[-1]
        drawn = self._normal([max(rows, columns), min(rows, columns)], 0.0, 1.0, _floating(dtype))
        basis = orthogonal_columns(drawn)
        if rows < columns:
            basis = shaping.transpose(basis)
        return arithmetic.multiply(shaping.reshape(basis, sizes), self.gain)

    def get_config(self) -> dict[str, Any]:
        return {"gain": self.gain, "seed": self.seed}


@export(v2=_names("Identity", "identity"))
class IdentityV2(InitializerV2):
    """The identity matrix, times `gain`."""

    def __init__(self, gain: float = 1.0) -> None:
        self.gain = gain

    def __call__(self, shape: Any, dtype: Any = dtypes.float32, **kwargs: Any) -> Tensor:
        sizes: list[int] = list(as_shape(self._slice(shape, kwargs)))  # type: ignore[arg-type]
        if len(sizes) != 2:
            raise ValueError(f"Identity matrix initializer can only be used for 2D matrices. Received: shape={shape} of rank {len(sizes)}.")  # fmt: skip
        return self.gain * diagonals.eye(sizes[0], sizes[1], dtype=_floating(dtype))

    def get_config(self) -> dict[str, Any]:
        return {"gain": self.gain}
