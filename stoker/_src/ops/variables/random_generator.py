"""`tf.random.Generator`: random numbers whose state is a variable, and the ops that draw from it."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import FLOATS, INDEX, INTS, DType, as_dtype
from stoker._src.base.errors import InvalidArgumentError, UnimplementedError
from stoker._src.base.export import export
from stoker._src.base.shapes import Shape
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import READS, STATEFUL, WRITES, OpDefinition, define, one_of
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Tensor
from stoker._src.graph.tracked_structures import AutoTrackable
from stoker._src.ops.array import casting, constants, joining, ranges, shaping
from stoker._src.ops.math import arithmetic, reductions
from stoker._src.ops.random import stateless_random
from stoker._src.ops.random.bits import fills, rejection, stateless
from stoker._src.ops.random.bits.philox import Stream
from stoker._src.ops.random.sampling import COUNTS, placed, plain
from stoker._src.ops.random.stateless_random import algorithm_number, samples_of, uniform_ints
from stoker._src.ops.random.uniform_normal import checked_count, shape_tensor
from stoker._src.ops.support.values import from_numpy, to_numpy, torch_dtype
from stoker._src.ops.variables import variables
from stoker._src.ops.variables.state_ops import VariableState

_TRAITS = READS | WRITES | STATEFUL
_STATE_SIZE = 3
_ANY_INT = one_of(*INTS, default=dtypes.int64)


def _draw(variable: VariableState, algorithm: int, blocks: int) -> Stream:
    """The stream at the generator's position, which advances by `blocks`."""
    value = variable.read()
    if value.dtype != torch.int64:
        raise InvalidArgumentError(None, None, f"dtype of RNG state variable must be int64, not {value.dtype}")
    stream, moved = stateless.read_and_skip(to_numpy(value), algorithm, blocks)
    value.copy_(torch.from_numpy(moved))
    return stream


# ---- definitions ------------------------------------------------------------------------------------------------


def _stateful_fill(name: str, fill: Callable[..., torch.Tensor], kinds: Any) -> OpDefinition:
    definition = define(
        f"{name}(resource: resource, algorithm: scalar host int64, shape: host shape_dtype) -> (output: dtype)",
        _TRAITS,
        dtype=kinds,
        shape_dtype=_ANY_INT,
    )

    def kernel(resource: VariableState, algorithm: int, shape: list[int], *, dtype: DType) -> torch.Tensor:
        count = checked_count(shape)
        stream = _draw(resource, algorithm, stateless.generator_blocks(count))
        return fill(stream, count, torch_dtype(dtype)).reshape(shape)

    definition.kernel(kernel)
    definition.shape(lambda resource, algorithm, shape: shape, as_shapes=["shape"])
    return definition


_FLOAT = one_of(*FLOATS, default=dtypes.float32)
STATEFUL_NORMAL_V2 = _stateful_fill("StatefulStandardNormalV2", fills.normal, _FLOAT)
STATEFUL_TRUNCATED = _stateful_fill("StatefulTruncatedNormal", fills.truncated_normal, _FLOAT)
STATEFUL_UNIFORM = _stateful_fill("StatefulUniform", fills.uniform, _FLOAT)
STATEFUL_FULL_INT = _stateful_fill(
    "StatefulUniformFullInt",
    fills.uniform_full_int,
    one_of(*INDEX, dtypes.uint32, dtypes.uint64, default=dtypes.uint64),
)

STATEFUL_UNIFORM_INT = define(
    "StatefulUniformInt(resource: resource, algorithm: scalar host int64, shape: host shape_dtype, minval: scalar host dtype, "
    "maxval: scalar host dtype) -> (output: dtype)",
    _TRAITS,
    dtype=one_of(*INDEX, dtypes.uint32, dtypes.uint64, default=dtypes.int64),
    shape_dtype=_ANY_INT,
)
STATEFUL_UNIFORM_INT.shape(lambda resource, algorithm, shape, *_: shape, as_shapes=["shape"])


@STATEFUL_UNIFORM_INT.kernel
def stateful_uniform_int_kernel(
    resource: VariableState, algorithm: int, shape: list[int], minval: int, maxval: int, *, dtype: DType
) -> torch.Tensor:
    stream = _draw(resource, algorithm, stateless.generator_blocks(checked_count(shape)))
    return uniform_ints(stream, shape, minval, maxval, dtype)


STATEFUL_BINOMIAL = define(
    "StatefulRandomBinomial(resource: resource, algorithm: scalar host int64, shape: host S, counts: T, probs: T) "
    "-> (output: dtype)",
    _TRAITS,
    S=INDEX,
    T=one_of(*COUNTS, default=dtypes.float64),
    dtype=one_of(*COUNTS, default=dtypes.int64),
)
STATEFUL_BINOMIAL.shape(lambda resource, algorithm, shape, *_: shape, as_shapes=["shape"])


@STATEFUL_BINOMIAL.kernel
def stateful_binomial_kernel(
    resource: VariableState,
    algorithm: int,
    shape: list[int],
    counts: torch.Tensor,
    probs: torch.Tensor,
    *,
    dtype: DType,
) -> torch.Tensor:
    inner = np.broadcast_shapes(counts.shape, probs.shape)
    samples = samples_of(shape, inner)
    stream = _draw(resource, algorithm, rejection.binomial_reserve(samples, int(np.prod(inner))))
    return placed(rejection.binomial(stream, samples, plain(counts), plain(probs)), dtype, counts).reshape(shape)


RNG_SKIP = define("RngSkip(resource: resource, algorithm: scalar host int64, delta: scalar host int64) -> ()", _TRAITS)


@RNG_SKIP.kernel
def rng_skip_kernel(resource: VariableState, algorithm: int, delta: int) -> None:
    _draw(resource, algorithm, stateless.generator_blocks(delta))


RNG_READ_AND_SKIP = define(
    "RngReadAndSkip(resource: resource, alg: scalar host int32, delta: scalar host uint64) -> (value: int64)", _TRAITS
)


@RNG_READ_AND_SKIP.kernel
def rng_read_and_skip_kernel(resource: VariableState, alg: int, delta: int) -> torch.Tensor:
    before = resource.read().clone()
    _draw(resource, alg, stateless.generator_blocks(delta))
    return before


@RNG_READ_AND_SKIP.shape
def rng_read_and_skip_shape(resource: Shape, alg: Shape, delta: Shape) -> Shape:
    return Shape((_STATE_SIZE,))


NON_DETERMINISTIC_INTS = define(
    "NonDeterministicInts(shape: host shape_dtype) -> (output: dtype)",
    STATEFUL,
    dtype=one_of(*INDEX, dtypes.uint32, dtypes.uint64, default=dtypes.int64),
    shape_dtype=_ANY_INT,
)
NON_DETERMINISTIC_INTS.shape(lambda shape: shape, as_shapes=["shape"])


@NON_DETERMINISTIC_INTS.kernel
def non_deterministic_ints_kernel(shape: list[int], *, dtype: DType) -> torch.Tensor:
    kind = np.dtype(dtype.as_numpy_dtype)
    words = np.frombuffer(os.urandom(checked_count(shape) * kind.itemsize), kind)
    return from_numpy(words.copy()).reshape(shape)


# ---- the generator ----------------------------------------------------------------------------------------------


@export("random.create_rng_state", "random.experimental.create_rng_state")
def create_rng_state(seed: Any, alg: Any) -> Tensor:
    """The state of a generator that starts from `seed`: a number, or a list of words, of which the first three are used.

    Raises:
        UnimplementedError: the algorithm is ThreeFry, which TensorFlow supports only under XLA.
    """
    if algorithm_number(alg) == stateless_random.Algorithm.THREEFRY.value:
        raise UnimplementedError(None, None, "There is no ThreeFry outside of XLA: use 'philox' or 'auto_select'.")
    if isinstance(seed, int):
        return constants.constant(stateless.generator_state(seed), dtypes.int64)
    if isinstance(seed, (list, tuple)):
        flat = np.asarray(seed, dtype=object).ravel().tolist()
        if all(isinstance(each, (int, np.integer)) for each in flat):  # Python integers of any size
            return constants.constant(stateless.generator_state(flat), dtypes.int64)
    words = shaping.reshape(casting.cast(convert_to_tensor(seed), dtypes.int64), [-1])[:3]
    missing = arithmetic.subtract(3, ranges.size(words))
    return joining.concat([shaping.zeros(shaping.reshape(missing, [1]), dtypes.int64), words], 0)


@export("random.Generator", "random.experimental.Generator")
class Generator(AutoTrackable):
    """A random number generator whose state is kept in a variable.

    Args:
        copy_from: a generator to copy.
        state: three int64 words: the counter (low, high) and the key.
        alg: an `Algorithm`, its name or number.

    Raises:
        ValueError: the state has another shape, or the algorithm is unknown.
        TypeError: neither a generator to copy nor a state and an algorithm is given.
    """

    def __init__(self, copy_from: Generator | None = None, state: Any = None, alg: Any = None) -> None:
        if copy_from is not None:
            if state is not None or alg is not None:
                raise ValueError("copy_from goes without state and alg.")
            state, alg = copy_from.state.read_value(), copy_from.algorithm
        elif state is None or alg is None:
            raise TypeError("Generator needs copy_from, or both state and alg; see Generator.from_seed.")
        self._alg = algorithm_number(alg)
        if not isinstance(state, (Tensor, variables.Variable)):
            state = np.array([int(word) & 0xFFFFFFFFFFFFFFFF for word in state], np.uint64).view(np.int64)
        value = convert_to_tensor(state, dtypes.int64)
        if not value.static_shape.compatible(Shape((_STATE_SIZE,))):
            raise ValueError(f"Shapes {value.static_shape} and [{_STATE_SIZE}] are incompatible")
        self._state_var = variables.VariableV2Form(value, trainable=False, name="StateVar", dtype=dtypes.int64)

    @classmethod
    def from_seed(cls, seed: Any, alg: Any = None) -> Generator:
        """Creates a generator from a number or from up to three words."""
        alg = stateless_random.Algorithm.AUTO_SELECT if alg is None else alg
        return cls(state=create_rng_state(seed, alg), alg=_settled(alg))

    @classmethod
    def from_non_deterministic_state(cls, alg: Any = None) -> Generator:
        """Creates a generator with a random state."""
        alg = stateless_random.Algorithm.AUTO_SELECT if alg is None else alg
        return cls(state=NON_DETERMINISTIC_INTS([_STATE_SIZE], dtype=dtypes.int64), alg=_settled(alg))

    @classmethod
    def from_state(cls, state: Any, alg: Any) -> Generator:
        """Creates a generator with the given state."""
        return cls(state=state, alg=alg)

    @classmethod
    def from_key_counter(cls, key: Any, counter: Any, alg: Any) -> Generator:
        """Creates a generator with the given key and counter (low word, high word)."""
        return cls(state=_key_counter_state(key, counter), alg=alg)

    @property
    def algorithm(self) -> int:
        return self._alg

    @property
    def state(self) -> Any:
        return self._state_var

    @property
    def key(self) -> Tensor:
        return self._state_var.read_value()[2]

    def reset(self, state: Any) -> Any:
        """Sets the state."""
        return self._state_var.assign(convert_to_tensor(state, dtypes.int64))

    def reset_from_seed(self, seed: Any) -> Any:
        """Resets the state from a seed."""
        return self._state_var.assign(create_rng_state(seed, self._alg))

    def reset_from_key_counter(self, key: Any, counter: Any) -> Any:
        """Resets the state from a key and a counter."""
        return self._state_var.assign(_key_counter_state(key, counter))

    def skip(self, delta: Any) -> Tensor:
        """Advances the state as if `delta` numbers had been drawn. Returns the previous state."""
        return RNG_READ_AND_SKIP(self._state_var.handle, self._alg, casting.cast(delta, dtypes.uint64))

    def _position(self, shape: Tensor) -> tuple[Tensor, Tensor, int]:
        """The key and counter for a draw of `shape`. The state advances past it."""
        count = casting.cast(reductions.reduce_prod(shape), dtypes.uint64)
        state = RNG_READ_AND_SKIP(self._state_var.handle, self._alg, count)
        words = casting.bitcast(state, dtypes.uint64)
        return words[2:3], words[0:2], self._alg

    def _scaled(
        self, definition: OpDefinition, label: str, shape: Any, mean: Any, stddev: Any, dtype: Any, name: Any
    ) -> Tensor:
        with name_scope(name, label, [shape, mean, stddev]) as scope:
            sizes, kind = shape_tensor(shape), as_dtype(dtype)
            centre, width = convert_to_tensor(mean, kind, "mean"), convert_to_tensor(stddev, kind, "stddev")
            drawn = definition(sizes, *self._position(sizes), dtype=kind)
            return arithmetic.ADD_V2(arithmetic.multiply(drawn, width), centre, name=scope)

    def normal(
        self, shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = dtypes.float32, name: str | None = None
    ) -> Tensor:
        """Draws normal random numbers."""
        return self._scaled(stateless_random.NORMAL_V2, "stateful_normal", shape, mean, stddev, dtype, name)

    def truncated_normal(
        self, shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = dtypes.float32, name: str | None = None
    ) -> Tensor:
        """Draws normal random numbers within two standard deviations of the mean."""
        return self._scaled(stateless_random.TRUNCATED_V2, "truncated_normal", shape, mean, stddev, dtype, name)

    def uniform(
        self, shape: Any, minval: Any = 0, maxval: Any = None, dtype: Any = dtypes.float32, name: str | None = None
    ) -> Tensor:
        """Draws uniform random numbers in [minval, maxval), or all integers of the dtype if both are None.

        Raises:
            ValueError: only one bound is given for integers.
        """
        kind = as_dtype(dtype)
        if kind.is_integer:
            if (minval is None) != (maxval is None):
                raise ValueError(
                    f"For integer dtype {kind.name}, minval and maxval must be both `None` or both non-`None`; got minval={minval} and maxval={maxval}"
                )
        elif maxval is None:
            maxval = 1
        with name_scope(name, "stateful_uniform", [shape, minval, maxval]) as scope:
            sizes = shape_tensor(shape)
            if kind.is_integer and minval is None:
                return stateless_random.FULL_INT_V2(sizes, *self._position(sizes), dtype=kind, name=scope)
            low, high = convert_to_tensor(minval, kind, "min"), convert_to_tensor(maxval, kind, "max")
            key, counter, alg = self._position(sizes)
            if kind.is_integer:
                return stateless_random.UNIFORM_INT_V2(sizes, key, counter, alg, low, high, name=scope)
            drawn = stateless_random.UNIFORM_V2(sizes, key, counter, alg, dtype=kind)
            return arithmetic.ADD_V2(arithmetic.multiply(drawn, arithmetic.subtract(high, low)), low, name=scope)

    def uniform_full_int(self, shape: Any, dtype: Any = dtypes.uint64, name: str | None = None) -> Tensor:
        """Draws uniform random integers over the whole range of the dtype."""
        with name_scope(name, "stateful_uniform_full_int", [shape]) as scope:
            sizes = shape_tensor(shape)
            return stateless_random.FULL_INT_V2(sizes, *self._position(sizes), dtype=as_dtype(dtype), name=scope)

    def binomial(
        self, shape: Any, counts: Any, probs: Any, dtype: Any = dtypes.int32, name: str | None = None
    ) -> Tensor:
        """Draws binomial random numbers: successes in `counts` trials with probability `probs`. `shape` ends in their broadcast shape."""
        with name_scope(name, "binomial", [shape, counts, probs]) as scope:
            counts = convert_to_tensor(counts, name="counts")
            probs = convert_to_tensor(probs, name="probs")
            sizes = shape_tensor(shape)
            return STATEFUL_BINOMIAL(
                self._state_var.handle, self._alg, sizes, counts, probs, dtype=as_dtype(dtype), name=scope
            )

    def make_seeds(self, count: int = 1) -> Tensor:
        """`count` seeds for stateless ops: int64 of shape [2, count]."""
        keys = self.uniform_full_int([count], dtypes.int64)
        return joining.stack([keys, shaping.zeros_like(keys)])

    def split(self, count: int = 1) -> list[Generator]:
        """Creates `count` generators that are independent of this one and of each other.

        Raises:
            ValueError: `count` is too large.
        """
        if count > 2**20:
            raise ValueError(f"Number of outputs is too big: {count}")
        keys = self.uniform_full_int([count], dtypes.int64)
        zero = constants.constant([0, 0], dtypes.int64)
        return [
            Generator(state=joining.concat([zero, shaping.reshape(keys[i], [1])], 0), alg=self._alg)
            for i in range(count)
        ]


def _settled(alg: Any) -> Any:
    """The algorithm that "auto select" stands for here."""
    number = algorithm_number(alg)
    return stateless.PHILOX if number == stateless_random.Algorithm.AUTO_SELECT.value else number


def _key_counter_state(key: Any, counter: Any) -> Tensor:
    key = shaping.reshape(convert_to_tensor(key, dtypes.int64), [1])
    counter = shaping.reshape(convert_to_tensor(counter, dtypes.int64), [-1])
    return joining.concat([counter, key], 0)


class _Global:
    generator: Generator | None = None


@export("random.get_global_generator", "random.experimental.get_global_generator")
def get_global_generator() -> Generator:
    """The global generator. It is created on first use, with a random state unless `set_global_generator` was called."""
    if _Global.generator is None:
        _Global.generator = Generator.from_non_deterministic_state()
    return _Global.generator


@export("random.set_global_generator", "random.experimental.set_global_generator")
def set_global_generator(generator: Any) -> None:
    """Replaces the global generator by a Generator, or by one created from a seed."""
    _Global.generator = generator if isinstance(generator, Generator) else Generator.from_seed(generator)
