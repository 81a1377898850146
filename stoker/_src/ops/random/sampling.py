"""Random ops with parameters: categorical, gamma, Poisson and truncated normal numbers; shuffles and crops."""

from __future__ import annotations

import math as numbers
from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import FLOATS, INDEX, REAL, DType, as_dtype
from stoker._src.base.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from stoker._src.base.export import export
from stoker._src.base.shapes import UNKNOWN_SHAPE, Shape, broadcast
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import ANY, STATEFUL, define, one_of, unchanged
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.static_values import constant_value
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import joining, ranges, shaping, slicing
from stoker._src.ops.math import arithmetic, reductions
from stoker._src.ops.math.gamma_derivative import gamma_derivative
from stoker._src.ops.random import uniform_normal
from stoker._src.ops.random.bits import bounded_normal, choices, cuda, rejection
from stoker._src.ops.random.bits.philox import bits
from stoker._src.ops.random.uniform_normal import checked_count, generator, op_seed_attrs
from stoker._src.ops.support.values import from_numpy, to_numpy, torch_dtype

HALF_TO_DOUBLE = (dtypes.float16, dtypes.float32, dtypes.float64)
COUNTS = (*HALF_TO_DOUBLE, *INDEX)


def placed(array_: np.ndarray, dtype: DType, like: torch.Tensor) -> torch.Tensor:
    """Converts an array to a tensor of `dtype` on the device of `like`."""
    return from_numpy(array_).to(dtype=torch_dtype(dtype), device=like.device)


def plain(parameters: torch.Tensor) -> np.ndarray:
    """Converts parameters to an array. float16 is kept; bfloat16 is widened to float32."""
    return to_numpy(parameters.float() if parameters.dtype == torch.bfloat16 else parameters)


# ---- Multinomial ------------------------------------------------------------------------------------------------

MULTINOMIAL = define(
    "Multinomial(logits: T, num_samples: scalar host int32) -> (output: output_dtype)",
    STATEFUL,
    seed=0,
    seed2=0,
    T=REAL,
    output_dtype=one_of(*INDEX, default=dtypes.int64),
).not_differentiable()


def check_categorical(logits: torch.Tensor, num_samples: int) -> None:
    if logits.ndim != 2:
        raise InvalidArgumentError(None, None, f"logits should be a matrix, got shape {Shape(logits.shape)}")
    if num_samples < 0:
        raise InvalidArgumentError(None, None, f"num_samples should be nonnegative, got {num_samples}")


@MULTINOMIAL.kernel
def multinomial_kernel(
    logits: torch.Tensor, num_samples: int, *, seed: int, seed2: int, output_dtype: DType, ctx: Any
) -> torch.Tensor:
    check_categorical(logits, num_samples)
    stream = generator(ctx, seed, seed2).reserve(choices.categorical_reserve(logits.shape[0], num_samples))
    return placed(choices.categorical(stream, plain(logits), num_samples), output_dtype, logits)


def _multinomial_on_gpu(
    logits: torch.Tensor,
    num_samples: int,
    *,
    seed: int,
    seed2: int,
    output_dtype: DType,
    ctx: Any,
    device: torch.device,
) -> torch.Tensor:
    check_categorical(logits, num_samples)
    if not logits.numel():
        raise InvalidArgumentError(None, None, f"num_classes should be positive, got {logits.shape[1]}")
    return cuda.categorical(generator(ctx, seed, seed2), logits.to(device), num_samples).to(torch_dtype(output_dtype))


MULTINOMIAL.planning.on_gpu = lambda op: _multinomial_on_gpu if cuda.can_fill(torch.float32) else None


@MULTINOMIAL.shape(values=["num_samples"])
def multinomial_shape(logits: Shape, num_samples: np.ndarray | None) -> Shape:
    rows, _ = logits.of_rank(2)
    if num_samples is not None and num_samples < 0:
        raise InvalidArgumentError(None, None, f"num_samples should be nonnegative, got {num_samples}")
    return Shape((rows, None if num_samples is None else int(num_samples)))


# ---- RandomShuffle ----------------------------------------------------------------------------------------------

RANDOM_SHUFFLE = define("RandomShuffle(value: T) -> (output: T)", STATEFUL, seed=0, seed2=0, T=ANY).not_differentiable()
RANDOM_SHUFFLE.shape(unchanged)


@RANDOM_SHUFFLE.kernel
def random_shuffle_kernel(value: Any, *, seed: int, seed2: int, ctx: Any) -> Any:
    size = value.shape[0] if value.ndim else 1
    stream = generator(ctx, seed, seed2).reserve(choices.permutation_reserve(size))
    return in_order(value, choices.permutation(stream, size))


def in_order(value: Any, order: np.ndarray) -> Any:
    """A copy of the rows of `value` in `order`."""
    if isinstance(value, np.ndarray):
        return value[order] if value.ndim else value.copy()
    return value[torch.from_numpy(order).to(value.device)] if value.ndim else value.clone()


# ---- RandomGamma ------------------------------------------------------------------------------------------------

RANDOM_GAMMA = define(
    "RandomGamma(shape: host S, alpha: T) -> (output: T)", STATEFUL, seed=0, seed2=0, S=INDEX, T=HALF_TO_DOUBLE
)


@RANDOM_GAMMA.kernel
def random_gamma_kernel(shape: list[int], alpha: torch.Tensor, *, seed: int, seed2: int, ctx: Any) -> torch.Tensor:
    samples = checked_count([*shape, *alpha.shape]) // max(1, alpha.numel())
    stream = generator(ctx, seed, seed2).reserve_outputs(samples * alpha.numel())
    drawn = from_numpy(rejection.gamma(stream, samples, plain(alpha)))
    return drawn.to(alpha.device).reshape([*shape, *alpha.shape])


def _joined_shape(shape: Shape, parameters: Shape) -> Shape:
    if shape.dims is None or parameters.dims is None:
        return UNKNOWN_SHAPE
    return Shape((*shape.dims, *parameters.dims))


RANDOM_GAMMA.shape(_joined_shape, as_shapes=["shape"])


@RANDOM_GAMMA.grad
def random_gamma_grad(op: Operation, g: Tensor) -> Any:
    """Differentiates through the samples (Figurnov, Mohamed and Mnih, "Implicit reparameterization gradients", 2018)."""
    shape, alpha = op.inputs
    sample = op.outputs[0]
    ones = shaping.ones([ranges.size(shape)], dtypes.int32)
    spread = shaping.reshape(alpha, joining.concat([ones, shaping.shape(alpha)], 0))
    partial = RANDOM_GAMMA_GRAD(spread, sample)
    return None, reductions.reduce_sum(arithmetic.multiply(g, partial), axis=ranges.range(ranges.size(shape)))


RANDOM_GAMMA_GRAD = define("RandomGammaGrad(alpha: T, sample: T) -> (output: T)", T=(dtypes.float32, dtypes.float64))


@RANDOM_GAMMA_GRAD.kernel
def random_gamma_grad_kernel(alpha: torch.Tensor, sample: torch.Tensor) -> torch.Tensor:
    return gamma_derivative(alpha.double(), sample.double()).to(alpha.dtype)


@RANDOM_GAMMA_GRAD.shape
def random_gamma_grad_shape(alpha: Shape, sample: Shape) -> Shape:
    return broadcast(alpha, sample)


# ---- RandomPoisson ----------------------------------------------------------------------------------------------

RANDOM_POISSON = define(
    "RandomPoisson(shape: host S, rate: dtype) -> (output: dtype)",
    STATEFUL,
    seed=0,
    seed2=0,
    S=INDEX,
    dtype=HALF_TO_DOUBLE,
)
RANDOM_POISSON.shape(_joined_shape, as_shapes=["shape"])
RANDOM_POISSON_V2 = define(
    "RandomPoissonV2(shape: host S, rate: R) -> (output: dtype)",
    STATEFUL,
    seed=0,
    seed2=0,
    S=INDEX,
    R=one_of(*COUNTS, default=dtypes.float64),
    dtype=one_of(*COUNTS, default=dtypes.int64),
)
RANDOM_POISSON_V2.shape(_joined_shape, as_shapes=["shape"])


@RANDOM_POISSON.kernel
@RANDOM_POISSON_V2.kernel
def random_poisson_kernel(
    shape: list[int], rate: torch.Tensor, *, seed: int, seed2: int, dtype: DType, ctx: Any
) -> torch.Tensor:
    samples = checked_count([*shape, *rate.shape]) // max(1, rate.numel())
    stream = generator(ctx, seed, seed2).reserve_outputs(samples * rate.numel())
    return placed(rejection.poisson(stream, samples, plain(rate)), dtype, rate).reshape([*shape, *rate.shape])


# ---- ParameterizedTruncatedNormal -------------------------------------------------------------------------------

PARAMETERIZED_TRUNCATED_NORMAL = define(
    "ParameterizedTruncatedNormal(shape: host T, means: rank<2 dtype, stdevs: rank<2 dtype, minvals: rank<2 dtype, maxvals: rank<2 dtype) "
    "-> (output: dtype)",
    STATEFUL,
    seed=0,
    seed2=0,
    dtype=FLOATS,
    T=INDEX,
).not_differentiable()
PARAMETERIZED_TRUNCATED_NORMAL.shape(lambda shape, *_: shape, as_shapes=["shape"])


@PARAMETERIZED_TRUNCATED_NORMAL.kernel
def parameterized_truncated_normal_kernel(
    shape: list[int],
    means: torch.Tensor,
    stdevs: torch.Tensor,
    minvals: torch.Tensor,
    maxvals: torch.Tensor,
    *,
    seed: int,
    seed2: int,
    dtype: DType,
    ctx: Any,
) -> torch.Tensor:
    count = checked_count(shape)
    if not shape:
        raise InvalidArgumentError(None, None, "Input shape should have at least one dimension, got shape []")
    batches, samples = shape[0], numbers.prod(shape[1:])
    if all(parameter.ndim == 0 for parameter in (means, stdevs, minvals, maxvals)):
        # With one parameter set for all numbers, they are drawn in batches of 100, regardless of the shape.
        batches, samples = -(-count // 100), 100
    for label, parameter in (("means", means), ("stdevs", stdevs), ("minvals", minvals), ("maxvals", maxvals)):
        if parameter.ndim > 1 or parameter.numel() not in (1, batches):
            raise InvalidArgumentError(
                None, None, f"Input {label} should have length 1 or shape[0], got shape: {Shape(parameter.shape)}"
            )
    stream = generator(ctx, seed, seed2).reserve(bounded_normal.bounded_reserve(batches, samples))
    parameters = [bounded_parameter(p, dtype) for p in (means, stdevs, minvals, maxvals)]
    drawn = bounded_normal.bounded_normal(stream, batches, samples, *parameters)
    return placed(drawn.reshape(-1)[:count], dtype, means).reshape(shape)


def bounded_parameter(parameter: torch.Tensor, dtype: DType) -> np.ndarray:
    """Converts a parameter of a bounded normal to an array.

    Raises:
        NotFoundError: the dtype is bfloat16, which the op allows but for which TensorFlow has no kernel.
    """
    if dtype is dtypes.bfloat16:
        raise NotFoundError(None, None, "There is no kernel for bounded normals of bfloat16.")
    return to_numpy(parameter).reshape(-1)


# ---- functions --------------------------------------------------------------------------------------------------


@export(v1=("multinomial", "random.multinomial"))
def multinomial(
    logits: Any, num_samples: Any, seed: int | None = None, name: str | None = None, output_dtype: Any = None
) -> Tensor:
    """Draws `num_samples` class indices for each row of unnormalized log-probabilities [batch, classes]."""
    with name_scope(name, "multinomial", [logits]):
        return _categorical(logits, num_samples, output_dtype, seed)


@export("random.categorical")
def categorical(
    logits: Any, num_samples: Any, dtype: Any = None, seed: int | None = None, name: str | None = None
) -> Tensor:
    """Draws `num_samples` class indices for each row of unnormalized log-probabilities [batch, classes]."""
    with name_scope(name, "categorical", [logits]):
        return _categorical(logits, num_samples, dtype, seed)


def _categorical(logits: Any, num_samples: Any, dtype: Any, seed: int | None) -> Tensor:
    logits = convert_to_tensor(logits, name="logits")
    return MULTINOMIAL(logits, num_samples, output_dtype=class_dtype(dtype), **op_seed_attrs(seed))


def class_dtype(dtype: Any) -> DType:
    """The dtype of drawn classes.

    Raises:
        ValueError: `dtype` is neither int32 nor int64.
    """
    kind = dtypes.int64 if dtype is None else as_dtype(dtype)
    if kind not in INDEX:
        raise ValueError(f"Argument `dtype` got invalid value {kind!r}. Accepted dtypes are (tf.int32, tf.int64).")
    return kind


@export("random.shuffle", v1="random_shuffle")
def random_shuffle(value: Any, seed: int | None = None, name: str | None = None) -> Tensor:
    """Shuffles the rows of `value`."""
    return RANDOM_SHUFFLE(value, name=name, **op_seed_attrs(seed))


@export("random.gamma", v1="random_gamma")
def random_gamma(
    shape: Any,
    alpha: Any,
    beta: Any = None,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Draws gamma random numbers with shape `alpha` and rate `beta`: [*shape, *broadcast(alpha, beta)]."""
    with name_scope(name, "random_gamma", [shape, alpha, beta]):
        sizes = convert_to_tensor(shape, dtypes.int32, "shape")
        alpha, beta = gamma_parameters(alpha, beta, dtype)
        return scaled_gamma(RANDOM_GAMMA(sizes, alpha, **op_seed_attrs(seed)), beta)


def gamma_parameters(alpha: Any, beta: Any, dtype: Any) -> tuple[Tensor, Tensor]:
    """Converts both parameters to tensors and broadcasts alpha with beta."""
    dtype = None if dtype is None else as_dtype(dtype)
    alpha = convert_to_tensor(alpha, dtype, "alpha")
    beta = convert_to_tensor(1 if beta is None else beta, dtype or alpha.dtype.base_dtype, "beta")
    if alpha.static_shape.known and beta.static_shape.known and not _clash(alpha.static_shape, beta.static_shape):
        whole = broadcast(alpha.static_shape, beta.static_shape)
        return ranges.broadcast_to(alpha, np.array(list(whole), np.int32)), beta
    return arithmetic.multiply(alpha, shaping.ones_like(beta)), beta


def _clash(one: Shape, other: Shape) -> bool:
    """Whether two shapes cannot be broadcast."""
    return any(a != b and 1 not in (a, b) for a, b in zip(reversed(list(one)), reversed(list(other))))


def scaled_gamma(drawn: Tensor, beta: Tensor) -> Tensor:
    """Divides numbers of rate 1 by the rate. The result is kept above zero, so that its logarithm is finite."""
    smallest = np.finfo(drawn.dtype.as_numpy_dtype).tiny
    return arithmetic.maximum(smallest, arithmetic.realdiv(drawn, beta))


@export(v1=("random_poisson", "random.poisson"))
def random_poisson(
    lam: Any, shape: Any, dtype: Any = dtypes.float32, seed: int | None = None, name: str | None = None
) -> Tensor:
    """Draws Poisson random numbers with rates `lam`: [*shape, *lam.shape]."""
    return random_poisson_v2(shape, lam, dtype, seed, name)


@export(v2="random.poisson")
def random_poisson_v2(
    shape: Any, lam: Any, dtype: Any = dtypes.float32, seed: int | None = None, name: str | None = None
) -> Tensor:
    """Draws Poisson random numbers with rates `lam`: [*shape, *lam.shape]."""
    with name_scope(name, "random_poisson", [lam, shape]):
        return RANDOM_POISSON_V2(
            convert_to_tensor(shape, dtypes.int32, "shape"), lam, dtype=dtype, **op_seed_attrs(seed)
        )


# ---- RandomCrop -------------------------------------------------------------------------------------------------

RANDOM_CROP = define(
    "RandomCrop(image: rank=3 T, size: vector host int64) -> (output: T)",
    STATEFUL,
    T=(dtypes.uint8, dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64),
    seed=0,
    seed2=0,
).not_differentiable()


@RANDOM_CROP.kernel
def random_crop_kernel(image: torch.Tensor, size: list[int], *, seed: int, seed2: int, ctx: Any) -> torch.Tensor:
    """The op in GraphDefs before version 8. It draws the column first, and draws only if there is more than one choice."""
    if len(size) != 2 or min(size) < 0:
        raise InvalidArgumentError(None, None, f"size must have two elements that are not negative, got {size}")
    words = iter(bits(generator(ctx, seed, seed2).reserve(1), 4).tolist())
    begin = [0, 0]
    for axis, label in ((1, "width"), (0, "height")):
        room = image.shape[axis] - size[axis]
        if room < 0:
            raise FailedPreconditionError(
                None,
                None,
                f"{label} must be >= target_{label}: {label} = {image.shape[axis]}, target_{label} = {size[axis]}",
            )
        if room:
            begin[axis] = next(words) % (room + 1)
    return image[begin[0] : begin[0] + size[0], begin[1] : begin[1] + size[1]].clone()


@RANDOM_CROP.shape(values=["size"])
def random_crop_shape(image: Shape, size: Any) -> Shape:
    height, width = (None, None) if size is None or len(size) != 2 else (int(each) for each in size)
    return Shape((height, width, image.of_rank(3)[2]))


@export("image.random_crop", v1="random_crop")
def random_crop(value: Any, size: Any, seed: int | None = None, name: str | None = None) -> Tensor:
    """A slice of shape `size` at a random position in `value`.

    Raises:
        ValueError: `value` is statically known to be smaller than `size`.
        InvalidArgumentError: (at run time) `value` is smaller than `size`.
    """
    with name_scope(name, "random_crop", [value, size]) as scope:
        value = convert_to_tensor(value, name="value")
        size = convert_to_tensor(size, dtypes.int32, "size")
        shape = shaping.shape(value)
        whole, part = value.static_shape, constant_value(size)
        if whole.known and part is not None and part.shape == (len(whole),) and np.any(np.array(whole) < part):
            raise context.invalid(f"Need value.shape >= size, got {whole} and {part.tolist()}")
        limit = arithmetic.add(arithmetic.subtract(shape, size), 1)
        offset = arithmetic.floormod(
            uniform_normal.random_uniform(shaping.shape(shape), maxval=dtypes.int32.max, dtype=dtypes.int32, seed=seed),
            limit,
        )
        return slicing.slice(value, offset, size, name=scope)
