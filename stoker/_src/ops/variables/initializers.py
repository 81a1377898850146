"""Initializers of variables (1.x)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stoker._src.base import dtypes
from stoker._src.base.dtypes import DType, as_dtype
from stoker._src.base.export import export
from stoker._src.base.shapes import as_shape
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import constants, scattering, shaping
from stoker._src.ops.linalg import decompositions, diagonals
from stoker._src.ops.math import arithmetic, unary_functions
from stoker._src.ops.random import uniform_normal


class Initializer:
    """The base of initializers, called with a shape, a dtype and (for slices of variables) a `partition_info`."""

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        raise NotImplementedError

    def get_config(self) -> dict[str, Any]:
        """The arguments to create an equal initializer."""
        return {}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Initializer:
        config = dict(config)
        return cls(**config)


export(v1=("keras.initializers.Initializer",))(Initializer)


def _float_dtype(dtype: Any) -> DType:
    dtype = as_dtype(dtype)
    if not dtype.is_floating:
        raise TypeError(f"Cannot create initializer for non-floating point type {dtype.name}.")
    return dtype


def _sizes(shape: Any) -> list[int]:
    return list(as_shape(shape))  # type: ignore[arg-type]


@export(v1=("zeros_initializer", "initializers.zeros"))
class Zeros(Initializer):
    """Zeros (False, or empty strings)."""

    def __init__(self, dtype: Any = dtypes.float32) -> None:
        self.dtype = as_dtype(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        return shaping.zeros(shape, self.dtype if dtype is None else dtype)

    def get_config(self) -> dict[str, Any]:
        return {"dtype": self.dtype.name}


@export(v1=("ones_initializer", "initializers.ones"))
class Ones(Initializer):
    """Ones."""

    def __init__(self, dtype: Any = dtypes.float32) -> None:
        self.dtype = as_dtype(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        return shaping.ones(shape, self.dtype if dtype is None else dtype)

    def get_config(self) -> dict[str, Any]:
        return {"dtype": self.dtype.name}


@export(v1=("constant_initializer", "initializers.constant"))
class Constant(Initializer):
    """A constant: one number for every element, or a list. If the list is too short, its last element is repeated."""

    def __init__(self, value: Any = 0, dtype: Any = dtypes.float32, verify_shape: bool = False) -> None:
        if not (np.isscalar(value) or isinstance(value, (list, tuple, np.ndarray))):
            raise TypeError(
                f"Invalid type for initial value: {type(value)}. Expected Python scalar, list or tuple of values, or numpy.ndarray."
            )
        self.value = value
        self.dtype = as_dtype(dtype)
        self._verify_shape = verify_shape

    def __call__(
        self, shape: Any, dtype: Any = None, partition_info: Any = None, verify_shape: bool | None = None
    ) -> Tensor:
        verify = self._verify_shape if verify_shape is None else verify_shape
        kind = self.dtype if dtype is None else dtype
        sizes = shape if isinstance(shape, (list, tuple)) else [shape]
        if np.isscalar(self.value) and any(isinstance(size, Tensor) for size in sizes):
            # Rows that `warm_start` does not find in a checkpoint are counted when the program runs.
            return shaping.fill(shape, constants.constant(self.value, kind))
        return constants.constant(self.value, kind, shape, verify_shape=verify)

    def get_config(self) -> dict[str, Any]:
        return {"value": self.value, "dtype": self.dtype.name}


@export(v1=("random_uniform_initializer", "initializers.random_uniform"))
class RandomUniform(Initializer):
    """Uniform random numbers in [minval, maxval)."""

    def __init__(
        self, minval: Any = 0.0, maxval: Any = None, seed: int | None = None, dtype: Any = dtypes.float32
    ) -> None:
        self.minval, self.maxval, self.seed, self.dtype = minval, maxval, seed, as_dtype(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        kind = self.dtype if dtype is None else as_dtype(dtype)
        return uniform_normal.random_uniform(shape, self.minval, self.maxval, kind, seed=self.seed)

    def get_config(self) -> dict[str, Any]:
        return {"minval": self.minval, "maxval": self.maxval, "seed": self.seed, "dtype": self.dtype.name}


@export(v1=("random_normal_initializer", "initializers.random_normal"))
class RandomNormal(Initializer):
    """Normal random numbers."""

    def __init__(
        self, mean: Any = 0.0, stddev: Any = 1.0, seed: int | None = None, dtype: Any = dtypes.float32
    ) -> None:
        self.mean, self.stddev, self.seed, self.dtype = mean, stddev, seed, _float_dtype(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        return uniform_normal.random_normal(
            shape, self.mean, self.stddev, self.dtype if dtype is None else dtype, seed=self.seed
        )

    def get_config(self) -> dict[str, Any]:
        return {"mean": self.mean, "stddev": self.stddev, "seed": self.seed, "dtype": self.dtype.name}


@export(v1=("truncated_normal_initializer", "initializers.truncated_normal"))
class TruncatedNormal(Initializer):
    """Normal random numbers within two standard deviations of the mean."""

    def __init__(
        self, mean: Any = 0.0, stddev: Any = 1.0, seed: int | None = None, dtype: Any = dtypes.float32
    ) -> None:
        self.mean, self.stddev, self.seed, self.dtype = mean, stddev, seed, _float_dtype(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        return uniform_normal.truncated_normal(
            shape, self.mean, self.stddev, self.dtype if dtype is None else dtype, seed=self.seed
        )

    def get_config(self) -> dict[str, Any]:
        return {"mean": self.mean, "stddev": self.stddev, "seed": self.seed, "dtype": self.dtype.name}


@export(v1=("uniform_unit_scaling_initializer", "initializers.uniform_unit_scaling"))
class UniformUnitScaling(Initializer):
    """Uniform random numbers in ±sqrt(3 / inputs) * factor, which preserves the scale of a layer's input."""

    def __init__(self, factor: float = 1.0, seed: int | None = None, dtype: Any = dtypes.float32) -> None:
        self.factor, self.seed, self.dtype = factor, seed, _float_dtype(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        whole = shape if partition_info is None else partition_info.full_shape
        inputs = max(1.0, float(math.prod(_sizes(whole)[:-1])))
        bound = math.sqrt(3 / inputs) * self.factor
        return uniform_normal.random_uniform(
            shape, -bound, bound, self.dtype if dtype is None else dtype, seed=self.seed
        )

    def get_config(self) -> dict[str, Any]:
        return {"factor": self.factor, "seed": self.seed, "dtype": self.dtype.name}


def fans(shape: Any) -> tuple[float, float]:
    """The numbers of inputs and outputs of a layer with weights of that shape (the last two sizes, times the others)."""
    sizes = _sizes(shape)
    if not sizes:
        return 1.0, 1.0
    if len(sizes) == 1:
        return float(sizes[0]), float(sizes[0])
    field = math.prod(sizes[:-2])
    return float(sizes[-2] * field), float(sizes[-1] * field)


@export(v1=("variance_scaling_initializer", "initializers.variance_scaling"))
class VarianceScaling(Initializer):
    """Random numbers with variance scale / n, where n is the number of inputs, of outputs, or their mean."""

    def __init__(
        self,
        scale: float = 1.0,
        mode: str = "fan_in",
        distribution: str = "truncated_normal",
        seed: int | None = None,
        dtype: Any = dtypes.float32,
    ) -> None:
        if scale <= 0.0:
            raise ValueError(f"Argument `scale` must be a positive float. Received: {scale}")
        if mode not in ("fan_in", "fan_out", "fan_avg"):
            raise ValueError(f"Argument `mode` should be one of ('fan_in', 'fan_out', 'fan_avg'). Received: {mode}")
        distribution = distribution.lower()
        if distribution not in ("normal", "uniform", "truncated_normal", "untruncated_normal"):
            raise ValueError(
                f"Argument `distribution` should be one of ('normal', 'uniform', 'truncated_normal', 'untruncated_normal'). Received: {distribution}"
            )
        self.scale, self.mode, self.distribution, self.seed, self.dtype = (
            scale,
            mode,
            distribution,
            seed,
            _float_dtype(dtype),
        )

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        kind = self.dtype if dtype is None else dtype
        inputs, outputs = fans(shape if partition_info is None else partition_info.full_shape)
        count = {"fan_in": inputs, "fan_out": outputs, "fan_avg": (inputs + outputs) / 2.0}[self.mode]
        variance = self.scale / max(1.0, count)
        if self.distribution in ("normal", "truncated_normal"):
            # Truncation at two standard deviations reduces the variance. This factor is the standard deviation that remains.
            return uniform_normal.truncated_normal(
                shape, 0.0, math.sqrt(variance) / 0.87962566103423978, kind, seed=self.seed
            )
        if self.distribution == "untruncated_normal":
            return uniform_normal.random_normal(shape, 0.0, math.sqrt(variance), kind, seed=self.seed)
        bound = math.sqrt(3.0 * variance)
        return uniform_normal.random_uniform(shape, -bound, bound, kind, seed=self.seed)

    def get_config(self) -> dict[str, Any]:
        return {
            "scale": self.scale,
            "mode": self.mode,
            "distribution": self.distribution,
            "seed": self.seed,
            "dtype": self.dtype.name,
        }


@export(v1=("glorot_uniform_initializer", "initializers.glorot_uniform"))
class GlorotUniform(VarianceScaling):
    """Uniform with variance 2 / (inputs + outputs) (Glorot and Bengio, 2010)."""

    def __init__(self, seed: int | None = None, dtype: Any = dtypes.float32) -> None:
        super().__init__(1.0, "fan_avg", "uniform", seed, dtype)

    def get_config(self) -> dict[str, Any]:
        return {"seed": self.seed, "dtype": self.dtype.name}


@export(v1=("glorot_normal_initializer", "initializers.glorot_normal"))
class GlorotNormal(VarianceScaling):
    """Truncated normal with variance 2 / (inputs + outputs) (Glorot and Bengio, 2010)."""

    def __init__(self, seed: int | None = None, dtype: Any = dtypes.float32) -> None:
        super().__init__(1.0, "fan_avg", "truncated_normal", seed, dtype)

    def get_config(self) -> dict[str, Any]:
        return {"seed": self.seed, "dtype": self.dtype.name}


def _scaled(scale: float, distribution: str, seed: int | None) -> VarianceScaling:
    return VarianceScaling(scale, "fan_in", distribution, seed)


@export(v1="initializers.lecun_normal")
def lecun_normal(seed: int | None = None) -> VarianceScaling:
    """Truncated normal with variance 1 / inputs."""
    return _scaled(1.0, "truncated_normal", seed)


@export(v1="initializers.lecun_uniform")
def lecun_uniform(seed: int | None = None) -> VarianceScaling:
    """Uniform with variance 1 / inputs."""
    return _scaled(1.0, "uniform", seed)


@export(v1="initializers.he_normal")
def he_normal(seed: int | None = None) -> VarianceScaling:
    """Truncated normal with variance 2 / inputs (He et al., 2015)."""
    return _scaled(2.0, "truncated_normal", seed)


@export(v1="initializers.he_uniform")
def he_uniform(seed: int | None = None) -> VarianceScaling:
    """Uniform with variance 2 / inputs (He et al., 2015)."""
    return _scaled(2.0, "uniform", seed)


def orthogonal_columns(drawn: Tensor) -> Tensor:
    """An orthonormal basis of the columns of a tall matrix. It is uniformly distributed if the matrix is normal."""
    q, r = decompositions.QR(drawn, full_matrices=False)
    return arithmetic.multiply(q, unary_functions.sign(diagonals.DIAG_PART(r)))


def _flat_shape(shape: Any) -> tuple[list[int], tuple[int, int]]:
    """The shape, and the shape of the matrix with its last dimension as columns.

    Raises:
        ValueError: the shape has fewer than two dimensions.
    """
    sizes = _sizes(shape)
    if len(sizes) < 2:
        raise ValueError(
            f"The tensor to initialize, specified by argument `shape` must be at least two-dimensional. Received shape={shape}"
        )
    return sizes, (math.prod(sizes[:-1]), sizes[-1])


@export(v1=("orthogonal_initializer", "initializers.orthogonal", "keras.initializers.Orthogonal"))
class Orthogonal(Initializer):
    """A matrix with orthogonal rows or columns (Saxe et al., 2013), times `gain`. Leading dimensions are merged into rows."""

    def __init__(self, gain: float = 1.0, seed: int | None = None, dtype: Any = dtypes.float32) -> None:
        self.gain, self.seed, self.dtype = gain, seed, _float_dtype(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        kind = self.dtype if dtype is None else as_dtype(dtype)
        sizes, (rows, columns) = _flat_shape(shape)
        # The decomposition needs a tall matrix.
        drawn = uniform_normal.random_normal([max(rows, columns), min(rows, columns)], dtype=kind, seed=self.seed)
        basis = orthogonal_columns(drawn)
        if rows < columns:
            basis = shaping.transpose(basis)
        return self.gain * shaping.reshape(basis, sizes)

    def get_config(self) -> dict[str, Any]:
        return {"gain": self.gain, "seed": self.seed, "dtype": self.dtype.name}


@export(v1="contrib.framework.convolutional_delta_orthogonal")
class ConvolutionDeltaOrthogonal(Initializer):
    """A convolution kernel with an orthogonal matrix at its centre and zeros elsewhere (Xiao et al., 2018)."""

    def __init__(self, gain: float = 1.0, seed: int | None = None, dtype: Any = dtypes.float32) -> None:
        self.gain, self.seed, self.dtype = gain, seed, _float_dtype(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        kind = self.dtype if dtype is None else as_dtype(dtype)
        sizes = _sizes(shape)
        if not 3 <= len(sizes) <= 5:
            raise ValueError(
                f"The tensor to initialize must be at least three-dimensional and at most five-dimensional. Received shape={shape}"
            )
        if sizes[-2] > sizes[-1]:
            raise ValueError(f"In_filters cannot be greater than out_filters. Received shape={shape}")
        basis = orthogonal_columns(uniform_normal.random_normal([sizes[-1], sizes[-1]], dtype=kind, seed=self.seed))
        rows = arithmetic.multiply(basis[: sizes[-2], :], self.gain)
        centre = [(size - 1) // 2 for size in sizes[:-2]]
        return scattering.scatter_nd([centre], shaping.expand_dims(rows, 0), sizes)

    def get_config(self) -> dict[str, Any]:
        return {"gain": self.gain, "seed": self.seed, "dtype": self.dtype.name}


@export(v1="initializers.identity")
class Identity(Initializer):
    """The identity matrix, times `gain`."""

    def __init__(self, gain: float = 1.0, dtype: Any = dtypes.float32) -> None:
        self.gain, self.dtype = gain, _float_dtype(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        whole = _sizes(shape if partition_info is None else partition_info.full_shape)
        if len(whole) != 2:
            raise ValueError(
                f"The tensor to initialize, specified by argument `shape` must be at least two-dimensional. Received shape={shape}"
            )
        kind = self.dtype if dtype is None else as_dtype(dtype)
        matrix = diagonals.eye(whole[0], whole[1], dtype=kind)
        if partition_info is not None:
            rows, columns = (slice(o, o + n) for o, n in zip(partition_info.var_offset, _sizes(shape)))
            matrix = matrix[rows, columns]
        return self.gain * matrix

    def get_config(self) -> dict[str, Any]:
        return {"gain": self.gain, "dtype": self.dtype.name}
