"""Stateless random ops: the numbers depend only on the seed (or on the key and counter)."""

from __future__ import annotations

import enum
import math as numbers
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import FLOATS, INDEX, REAL, DType, as_dtype
from stoker._src.base.errors import InvalidArgumentError, UnimplementedError
from stoker._src.base.export import export
from stoker._src.base.shapes import Shape
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import ANY, STATEFUL, OpDefinition, define, one_of, scalar, unchanged
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import broadcasting, constants, joining, ranges
from stoker._src.ops.math import arithmetic, reductions, special, unary_functions
from stoker._src.ops.random import sampling
from stoker._src.ops.random.bits import bounded_normal, choices, fills, rejection, stateless
from stoker._src.ops.random.bits.philox import Stream
from stoker._src.ops.random.sampling import COUNTS, HALF_TO_DOUBLE, in_order, placed, plain
from stoker._src.ops.random.uniform_normal import checked_count, shape_tensor
from stoker._src.ops.support.values import from_numpy, torch_dtype

_SEEDS = one_of(*INDEX, default=dtypes.int64)
_SIZES = one_of(*INDEX, default=dtypes.int32)
_FULL_INTS = (*INDEX, dtypes.uint32, dtypes.uint64)
_POSITION = "key: vector=1 host uint64, counter: vector host uint64, alg: scalar host int32"


@export("random.Algorithm", "random.experimental.Algorithm")
class Algorithm(enum.Enum):
    """Random bit generators. Only Philox is supported, and AUTO_SELECT means Philox."""

    PHILOX = 1
    THREEFRY = 2
    AUTO_SELECT = 3


# ---- seeds to positions -----------------------------------------------------------------------------------------

GET_KEY_COUNTER = define(
    "StatelessRandomGetKeyCounter(seed: host Tseed) -> (key: uint64, counter: uint64)", Tseed=_SEEDS
)
GET_ALG = define("StatelessRandomGetAlg() -> (alg: int32)", STATEFUL)
GET_ALG.shape(scalar)
GET_KEY_COUNTER_ALG = define(
    "StatelessRandomGetKeyCounterAlg(seed: host Tseed) -> (key: uint64, counter: uint64, alg: int32)", Tseed=_SEEDS
)


@GET_KEY_COUNTER.kernel
def get_key_counter_kernel(seed: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
    key, counter = stateless.key_counter(seed)
    return from_numpy(np.array([key], np.uint64)), from_numpy(np.array(counter, np.uint64))


@GET_ALG.kernel
def get_alg_kernel() -> torch.Tensor:
    return torch.tensor(stateless.algorithm_of_device(), dtype=torch.int32)


@GET_KEY_COUNTER_ALG.kernel
def get_key_counter_alg_kernel(seed: list[int]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return (*get_key_counter_kernel(seed), get_alg_kernel())


@GET_KEY_COUNTER.shape
def get_key_counter_shape(seed: Shape) -> tuple[Shape, Shape]:
    seed.merge(Shape((2,)))
    return Shape((1,)), Shape((2,))


@GET_KEY_COUNTER_ALG.shape
def get_key_counter_alg_shape(seed: Shape) -> tuple[Shape, Shape, Shape]:
    seed.merge(Shape((2,)))
    return Shape((1,)), Shape((2,)), Shape(())


# ---- fills ------------------------------------------------------------------------------------------------------


def _filled(name: str, fill: Callable[..., torch.Tensor], kinds: Any, seeds: Any) -> tuple[OpDefinition, OpDefinition]:
    """Defines the op that takes a seed, and its V2 form that takes a key and a counter."""
    by_seed = define(
        f"{name}(shape: host T, seed: vector=2 host Tseed) -> (output: dtype)", dtype=kinds, T=_SIZES, Tseed=seeds
    ).not_differentiable()

    def seed_kernel(shape: list[int], seed: list[int], *, dtype: DType) -> torch.Tensor:
        return fill(stateless.stream_of_seed(seed), checked_count(shape), torch_dtype(dtype)).reshape(shape)

    by_seed.kernel(seed_kernel)
    by_seed.shape(lambda shape, seed: shape, as_shapes=["shape"])
    by_position = define(
        f"{name}V2(shape: host Tshape, {_POSITION}) -> (output: dtype)", dtype=kinds, Tshape=_SIZES
    ).not_differentiable()

    def position_kernel(
        shape: list[int], key: list[int], counter: list[int], alg: int, *, dtype: DType
    ) -> torch.Tensor:
        stream = stateless.stream_of_key_counter(key, counter, alg)
        return fill(stream, checked_count(shape), torch_dtype(dtype)).reshape(shape)

    by_position.kernel(position_kernel)
    by_position.shape(lambda shape, *_: shape, as_shapes=["shape"])
    return by_seed, by_position


_FLOAT = one_of(*FLOATS, default=dtypes.float32)
UNIFORM, UNIFORM_V2 = _filled("StatelessRandomUniform", fills.uniform, _FLOAT, _SEEDS)
NORMAL, NORMAL_V2 = _filled("StatelessRandomNormal", fills.normal, _FLOAT, _SEEDS)
TRUNCATED, TRUNCATED_V2 = _filled("StatelessTruncatedNormal", fills.truncated_normal, _FLOAT, _SEEDS)
FULL_INT, FULL_INT_V2 = _filled(
    "StatelessRandomUniformFullInt",
    fills.uniform_full_int,
    one_of(*_FULL_INTS, default=dtypes.uint64),
    one_of(*_FULL_INTS, default=dtypes.int64),
)

UNIFORM_INT = define(
    "StatelessRandomUniformInt(shape: host T, seed: vector=2 host Tseed, minval: scalar host dtype, maxval: scalar host dtype) "
    "-> (output: dtype)",
    dtype=INDEX,
    T=INDEX,
    Tseed=_SEEDS,
).not_differentiable()
UNIFORM_INT_V2 = define(
    f"StatelessRandomUniformIntV2(shape: host Tshape, {_POSITION}, minval: scalar host dtype, maxval: scalar host dtype) "
    "-> (output: dtype)",
    dtype=_FULL_INTS,
    Tshape=_SIZES,
).not_differentiable()
UNIFORM_INT.shape(lambda shape, *_: shape, as_shapes=["shape"])
UNIFORM_INT_V2.shape(lambda shape, *_: shape, as_shapes=["shape"])


def uniform_ints(stream: Stream, shape: list[int], low: int, high: int, dtype: DType) -> torch.Tensor:
    """Uniform integers in [low, high).

    Raises:
        InvalidArgumentError: the range is empty.
    """
    if low >= high:
        raise InvalidArgumentError(None, None, f"Need minval < maxval, got {low} >= {high}")
    count = checked_count(shape)
    if dtype in INDEX:
        return fills.uniform_int(stream, count, low, high, torch_dtype(dtype)).reshape(shape)
    # Unsigned numbers are the lower bound plus the remainder of a full-range number.
    words = fills.uniform_full_int(stream, count, torch_dtype(dtype)).numpy()
    span = words.dtype.type(high - low)
    return from_numpy(words % span + words.dtype.type(low)).reshape(shape)


@UNIFORM_INT.kernel
def uniform_int_kernel(shape: list[int], seed: list[int], minval: int, maxval: int, *, dtype: DType) -> torch.Tensor:
    return uniform_ints(stateless.stream_of_seed(seed), shape, minval, maxval, dtype)


@UNIFORM_INT_V2.kernel
def uniform_int_v2_kernel(
    shape: list[int], key: list[int], counter: list[int], alg: int, minval: int, maxval: int, *, dtype: DType
) -> torch.Tensor:
    return uniform_ints(stateless.stream_of_key_counter(key, counter, alg), shape, minval, maxval, dtype)


# ---- choices ----------------------------------------------------------------------------------------------------

STATELESS_MULTINOMIAL = define(
    "StatelessMultinomial(logits: T, num_samples: scalar host int32, seed: vector=2 host Tseed) -> (output: output_dtype)",
    T=REAL,
    Tseed=_SEEDS,
    output_dtype=one_of(*INDEX, default=dtypes.int64),
).not_differentiable()


@STATELESS_MULTINOMIAL.kernel
def stateless_multinomial_kernel(
    logits: torch.Tensor, num_samples: int, seed: list[int], *, output_dtype: DType
) -> torch.Tensor:
    sampling.check_categorical(logits, num_samples)
    drawn = choices.categorical(stateless.stream_of_seed(seed), plain(logits), num_samples)
    return placed(drawn, output_dtype, logits)


@STATELESS_MULTINOMIAL.shape(values=["num_samples"])
def stateless_multinomial_shape(logits: Shape, num_samples: np.ndarray | None, seed: Shape) -> Shape:
    return sampling.multinomial_shape(logits, num_samples)


STATELESS_SHUFFLE = define(f"StatelessShuffle(value: T, {_POSITION}) -> (output: T)", T=ANY)
STATELESS_SHUFFLE.shape(unchanged)


@STATELESS_SHUFFLE.kernel
def stateless_shuffle_kernel(value: Any, key: list[int], counter: list[int], alg: int) -> Any:
    stream = stateless.stream_of_key_counter(key, counter, alg)
    return in_order(value, choices.permutation(stream, value.shape[0] if value.ndim else 1))


# ---- distributions with parameters ------------------------------------------------------------------------------


def samples_of(shape: list[int], parameters: Any) -> int:
    """The number of samples for each parameter in a tensor of `shape`, which must end in the parameters' shape."""
    inner = list(parameters)
    total = checked_count(shape)
    if not total:
        return 0
    if len(inner) > len(shape) or shape[len(shape) - len(inner) :] != inner:
        raise InvalidArgumentError(
            None,
            None,
            f"Shape passed in must end with broadcasted shape. Got shape {shape} and parameters of shape {inner}.",
        )
    return total // max(1, numbers.prod(inner))


GAMMA_V2 = define(
    "StatelessRandomGammaV2(shape: host T, seed: vector=2 host Tseed, alpha: dtype) -> (output: dtype)",
    dtype=HALF_TO_DOUBLE,
    T=INDEX,
    Tseed=_SEEDS,
)
GAMMA_V3 = define(
    f"StatelessRandomGammaV3(shape: host shape_dtype, {_POSITION}, alpha: dtype) -> (output: dtype)",
    dtype=HALF_TO_DOUBLE,
    shape_dtype=_SIZES,
)
GAMMA_V2.shape(lambda shape, *_: shape, as_shapes=["shape"])
GAMMA_V3.shape(lambda shape, *_: shape, as_shapes=["shape"])


def _gamma(stream: Stream, shape: list[int], alpha: torch.Tensor) -> torch.Tensor:
    drawn = rejection.gamma(stream, samples_of(shape, alpha.shape), plain(alpha))
    return from_numpy(drawn).to(alpha.device).reshape(shape)


@GAMMA_V2.kernel
def gamma_v2_kernel(shape: list[int], seed: list[int], alpha: torch.Tensor) -> torch.Tensor:
    return _gamma(stateless.stream_of_seed(seed), shape, alpha)


@GAMMA_V3.kernel
def gamma_v3_kernel(
    shape: list[int], key: list[int], counter: list[int], alg: int, alpha: torch.Tensor
) -> torch.Tensor:
    return _gamma(stateless.stream_of_key_counter(key, counter, alg), shape, alpha)


def _gamma_grad(op: Operation, g: Tensor) -> list[Any]:
    shape, alpha = op.inputs[0], op.inputs[-1]
    partial = sampling.RANDOM_GAMMA_GRAD(alpha, op.outputs[0])
    outer = arithmetic.subtract(ranges.size(shape), ranges.rank(alpha))
    summed = reductions.reduce_sum(arithmetic.multiply(g, partial), axis=ranges.range(outer))
    return [*[None] * (len(op.inputs) - 1), summed]


GAMMA_V2.grad(_gamma_grad)
GAMMA_V3.grad(_gamma_grad)

POISSON = define(
    "StatelessRandomPoisson(shape: host T, seed: vector=2 host Tseed, lam: Rtype) -> (output: dtype)",
    Rtype=COUNTS,
    dtype=COUNTS,
    T=INDEX,
    Tseed=_SEEDS,
).not_differentiable()
POISSON.shape(lambda shape, *_: shape, as_shapes=["shape"])


@POISSON.kernel
def poisson_kernel(shape: list[int], seed: list[int], lam: torch.Tensor, *, dtype: DType) -> torch.Tensor:
    drawn = rejection.poisson(stateless.stream_of_seed(seed), samples_of(shape, lam.shape), plain(lam))
    return placed(drawn, dtype, lam).reshape(shape)


BINOMIAL = define(
    "StatelessRandomBinomial(shape: host S, seed: vector=2 host Tseed, counts: T, probs: T) -> (output: dtype)",
    S=INDEX,
    Tseed=_SEEDS,
    T=one_of(*COUNTS, default=dtypes.float64),
    dtype=one_of(*COUNTS, default=dtypes.int64),
).not_differentiable()
BINOMIAL.shape(lambda shape, *_: shape, as_shapes=["shape"])


@BINOMIAL.kernel
def binomial_kernel(
    shape: list[int], seed: list[int], counts: torch.Tensor, probs: torch.Tensor, *, dtype: DType
) -> torch.Tensor:
    samples = samples_of(shape, np.broadcast_shapes(counts.shape, probs.shape))
    drawn = rejection.binomial(stateless.stream_of_seed(seed), samples, plain(counts), plain(probs))
    return placed(drawn, dtype, counts).reshape(shape)


STATELESS_BOUNDED = define(
    "StatelessParameterizedTruncatedNormal(shape: host S, seed: vector=2 host Tseed, means: dtype, stddevs: dtype, "
    "minvals: dtype, maxvals: dtype) -> (output: dtype)",
    S=INDEX,
    Tseed=_SEEDS,
    dtype=HALF_TO_DOUBLE,
)
STATELESS_BOUNDED.shape(lambda shape, *_: shape, as_shapes=["shape"])


@STATELESS_BOUNDED.kernel
def stateless_bounded_kernel(
    shape: list[int],
    seed: list[int],
    means: torch.Tensor,
    stddevs: torch.Tensor,
    minvals: torch.Tensor,
    maxvals: torch.Tensor,
    *,
    dtype: DType,
) -> torch.Tensor:
    parameters = torch.broadcast_tensors(means, stddevs, minvals, maxvals)
    batches, samples = parameters[0].numel(), samples_of(shape, parameters[0].shape)
    rows = [sampling.bounded_parameter(parameter, dtype) for parameter in parameters]
    drawn = bounded_normal.bounded_normal(stateless.stream_of_seed(seed), batches, samples, *rows)
    # Parameter sets are batches, but are the last dimensions of the output.
    return placed(np.ascontiguousarray(drawn.T), dtype, means).reshape(shape)


def _below(z: Tensor) -> Tensor:
    """The standard normal distribution function."""
    half = constants.number(0.5, z)
    return arithmetic.multiply(half, special.ERFC(arithmetic.multiply(constants.number(-numbers.sqrt(0.5), z), z)))


@STATELESS_BOUNDED.grad
def stateless_bounded_grad(op: Operation, g: Tensor) -> Any:
    """The sample's quantile u = F(x) is held fixed. With z = (x - mean) / stddev, and the bounds a, b standardized like it,
    dz = (1 - u) exp((z² - a²) / 2) da + u exp((z² - b²) / 2) db. Mean and stddev also act directly on x = mean + stddev z.
    """
    means, stddevs, low, high = op.inputs[2:]
    x = op.outputs[0]
    z, a, b = (arithmetic.realdiv(arithmetic.subtract(each, means), stddevs) for each in (x, low, high))
    start = _below(a)
    u = arithmetic.realdiv(arithmetic.subtract(_below(z), start), arithmetic.subtract(_below(b), start))

    def density(bound: Tensor) -> Tensor:
        return unary_functions.exp(
            arithmetic.multiply(
                constants.number(0.5, z), arithmetic.subtract(unary_functions.square(z), unary_functions.square(bound))
            )
        )

    to_low = arithmetic.multiply(arithmetic.subtract(constants.number(1, u), u), density(a))
    slopes = (
        g,
        arithmetic.multiply(g, z),
        arithmetic.multiply(g, to_low),
        arithmetic.multiply(g, arithmetic.multiply(u, density(b))),
    )
    reduced = [broadcasting.reduce_to_inputs(p, x, slope, None)[0] for p, slope in zip(op.inputs[2:], slopes)]
    return None, None, *reduced


# ---- functions --------------------------------------------------------------------------------------------------

_ALGORITHMS = {"philox": Algorithm.PHILOX, "threefry": Algorithm.THREEFRY, "auto_select": Algorithm.AUTO_SELECT}


def algorithm_number(alg: Any) -> int:
    """The number of an algorithm given as an `Algorithm`, a name or a number.

    Raises:
        ValueError: there is no algorithm with that name.
        TypeError: `alg` has another type.
    """
    if isinstance(alg, Algorithm):
        return alg.value
    if isinstance(alg, str):
        if alg.lower() not in _ALGORITHMS:
            raise ValueError(
                f"Argument `alg` got unsupported value {alg}. Supported values are philox for the Philox algorithm, "
                "threefry for the ThreeFry algorithm, and auto_select for auto-selection."
            )
        return _ALGORITHMS[alg.lower()].value
    if not hasattr(type(alg), "__index__"):
        raise TypeError(f"Can't convert argument `alg` (of value {alg} and type {type(alg)}) to int.")
    return operator.index(alg)


def _position(seed: Any, alg: Any) -> tuple[Tensor, Tensor, Any]:
    """The key, counter and algorithm for a seed.

    Raises:
        UnimplementedError: the algorithm is ThreeFry, which TensorFlow supports only under XLA.
    """
    number = algorithm_number(alg)
    if number == Algorithm.THREEFRY.value:
        raise UnimplementedError(None, None, "There is no ThreeFry outside of XLA: use 'philox' or 'auto_select'.")
    key, counter = GET_KEY_COUNTER(seed)
    return key, counter, number


@export("random.stateless_uniform")
def stateless_uniform(
    shape: Any,
    seed: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = dtypes.float32,
    name: str | None = None,
    alg: Any = "auto_select",
) -> Tensor:
    """Uniform random numbers in [minval, maxval), or over all integers of the dtype if both bounds are None.

    Raises:
        ValueError: the dtype is not supported, or only one bound is given for integers.
    """
    kind = as_dtype(dtype)
    if kind not in (*FLOATS, *_FULL_INTS):
        raise ValueError(f"Argument `dtype` got invalid value {kind.name}. Accepted dtypes are float16, bfloat16, float32, float64, int32, int64, uint32, uint64.")  # fmt: skip
    if kind.is_integer:
        if (minval is None) != (maxval is None):
            raise ValueError(
                f"For integer `dtype` argument {kind.name}, argument `minval` and `maxval` must be both None or not None. Got `minval`={minval} and `maxval`={maxval}."
            )
        if minval is not None and kind in (dtypes.uint32, dtypes.uint64):
            raise ValueError(f"Argument `dtype` got invalid value {kind.name} when argument `minval` is not None.")
    elif maxval is None:
        maxval = 1
    with name_scope(name, "stateless_random_uniform", [shape, seed, minval, maxval]) as scope:
        sizes = shape_tensor(shape)
        if kind.is_integer and minval is None:
            return FULL_INT_V2(sizes, *_position(seed, alg), dtype=kind, name=scope)
        low, high = convert_to_tensor(minval, kind, "min"), convert_to_tensor(maxval, kind, "max")
        if kind.is_integer:
            key, counter, number = _position(seed, alg)
            return UNIFORM_INT_V2(sizes, key, counter, number, low, high, name=scope)
        drawn = UNIFORM_V2(sizes, *_position(seed, alg), dtype=kind)
        return arithmetic.ADD_V2(arithmetic.multiply(drawn, arithmetic.subtract(high, low)), low, name=scope)


def _scaled(
    definition: OpDefinition, label: str, shape: Any, seed: Any, mean: Any, stddev: Any, dtype: Any, name: Any, alg: Any
) -> Tensor:
    with name_scope(name, label, [shape, seed, mean, stddev]) as scope:
        sizes, kind = shape_tensor(shape), as_dtype(dtype)
        centre, width = convert_to_tensor(mean, kind, "mean"), convert_to_tensor(stddev, kind, "stddev")
        drawn = definition(sizes, *_position(seed, alg), dtype=kind)
        return arithmetic.ADD_V2(arithmetic.multiply(drawn, width), centre, name=scope)


@export("random.stateless_normal")
def stateless_normal(
    shape: Any,
    seed: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = dtypes.float32,
    name: str | None = None,
    alg: Any = "auto_select",
) -> Tensor:
    """Normal random numbers that depend only on `seed`."""
    return _scaled(NORMAL_V2, "stateless_random_normal", shape, seed, mean, stddev, dtype, name, alg)


@export("random.stateless_truncated_normal")
def stateless_truncated_normal(
    shape: Any,
    seed: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = dtypes.float32,
    name: str | None = None,
    alg: Any = "auto_select",
) -> Tensor:
    """Normal random numbers within two standard deviations of the mean, which depend only on `seed`."""
    return _scaled(TRUNCATED_V2, "stateless_truncated_normal", shape, seed, mean, stddev, dtype, name, alg)


@export(v1="random.stateless_multinomial")
def stateless_multinomial(
    logits: Any, num_samples: Any, seed: Any, output_dtype: Any = dtypes.int64, name: str | None = None
) -> Tensor:
    """Draws `num_samples` class indices for each row of unnormalized log-probabilities."""
    with name_scope(name, "stateless_multinomial", [logits, seed]):
        return _classes(logits, num_samples, seed, output_dtype)


@export("random.stateless_categorical")
def stateless_categorical(
    logits: Any, num_samples: Any, seed: Any, dtype: Any = dtypes.int64, name: str | None = None
) -> Tensor:
    """Draws `num_samples` class indices for each row of unnormalized log-probabilities."""
    with name_scope(name, "stateless_categorical", [logits, seed]):
        return _classes(logits, num_samples, seed, dtype)


def _classes(logits: Any, num_samples: Any, seed: Any, dtype: Any) -> Tensor:
    logits = convert_to_tensor(logits, name="logits")
    return STATELESS_MULTINOMIAL(logits, num_samples, seed, output_dtype=sampling.class_dtype(dtype))


@export("random.stateless_binomial")
def stateless_binomial(
    shape: Any, seed: Any, counts: Any, probs: Any, output_dtype: Any = dtypes.int32, name: str | None = None
) -> Tensor:
    """Binomial random numbers: successes in `counts` trials with probability `probs`. `shape` ends in their broadcast shape."""
    with name_scope(name, "stateless_random_binomial", [shape, seed, counts, probs]):
        sizes = shape_tensor(shape)
        probs = convert_to_tensor(probs, dtype_hint=dtypes.float32, name="probs")
        counts = convert_to_tensor(counts, dtype_hint=probs.dtype.base_dtype, name="counts")
        return BINOMIAL(sizes, seed, counts, probs, dtype=output_dtype)


@export("random.stateless_gamma")
def stateless_gamma(
    shape: Any, seed: Any, alpha: Any, beta: Any = None, dtype: Any = dtypes.float32, name: str | None = None
) -> Tensor:
    """Gamma random numbers. `shape` ends in the broadcast shape of `alpha` and `beta`."""
    with name_scope(name, "stateless_random_gamma", [shape, seed, alpha, beta]):
        sizes = shape_tensor(shape)
        alpha, beta = sampling.gamma_parameters(alpha, beta, dtype)
        key, counter, number = _position(seed, "auto_select")
        return sampling.scaled_gamma(GAMMA_V3(sizes, key, counter, number, alpha), beta)


@export("random.stateless_poisson")
def stateless_poisson(shape: Any, seed: Any, lam: Any, dtype: Any = dtypes.int32, name: str | None = None) -> Tensor:
    """Poisson random numbers. `shape` ends in the shape of `lam`."""
    with name_scope(name, "stateless_random_poisson", [shape, seed, lam]):
        return POISSON(shape_tensor(shape), seed, lam, dtype=dtype)


@export("random.stateless_parameterized_truncated_normal")
def stateless_parameterized_truncated_normal(
    shape: Any,
    seed: Any,
    means: Any = 0.0,
    stddevs: Any = 1.0,
    minvals: Any = -2.0,
    maxvals: Any = 2.0,
    name: str | None = None,
) -> Tensor:
    """Truncated normal random numbers between two bounds. `shape` ends in the parameters' broadcast shape."""
    with name_scope(name, "stateless_parameterized_truncated_normal", [shape, seed, means, stddevs, minvals, maxvals]):
        sizes = shape_tensor(shape)
        named = ((means, "means"), (stddevs, "stddevs"), (minvals, "minvals"), (maxvals, "maxvals"))
        return STATELESS_BOUNDED(sizes, seed, *(convert_to_tensor(value, name=label) for value, label in named))


@export("random.experimental.stateless_shuffle")
def stateless_shuffle(value: Any, seed: Any, alg: Any = "auto_select", name: str | None = None) -> Tensor:
    """Shuffles the rows of `value` by `seed`."""
    with name_scope(name, "stateless_shuffle", [value, seed]):
        key, counter, number = _position(seed, alg)
        return STATELESS_SHUFFLE(value, key, counter, number)


@export("random.split", "random.experimental.stateless_split")
def split(seed: Any, num: Any = 2, alg: Any = "auto_select") -> Tensor:
    """Derives `num` independent seeds from one: shape [num, 2]."""
    seed = convert_to_tensor(seed)
    return stateless_uniform([num, 2], seed, None, None, seed.dtype.base_dtype, alg=alg)


@export("random.fold_in", "random.experimental.stateless_fold_in")
def fold_in(seed: Any, data: Any, alg: Any = "auto_select") -> Tensor:
    """Derives a seed from a seed and a number. Different numbers give independent seeds."""
    data = convert_to_tensor(data)
    first = stateless_uniform([], seed, None, None, data.dtype.base_dtype, alg=alg)
    return joining.stack([first, data])
