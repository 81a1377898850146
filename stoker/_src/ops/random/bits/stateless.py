"""Converts the inputs of stateless ops and of `tf.random.Generator` to Philox streams.

A stateless op with a `seed` input scrambles it (`key_counter`). Its V2 form uses its `key`, `counter` and `alg` inputs
unchanged. No state is kept between executions.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from stoker._src.base.errors import InvalidArgumentError, UnimplementedError
from stoker._src.ops.random.bits.fills import uniform_full_int
from stoker._src.ops.random.bits.philox import RESERVED_PER_OUTPUT, Stream, philox_blocks

PHILOX = 1
THREEFRY = 2
AUTO_SELECT = 3

_MASK_64 = 0xFFFFFFFFFFFFFFFF

# The key for scrambling seeds. It is the same for all seeds, so that neighbouring seeds give unrelated streams.
_SCRAMBLE_KEY = 0x02461E293EC8F720


def key_counter(seed: Sequence[int]) -> tuple[int, tuple[int, int]]:
    """StatelessRandomGetKeyCounter: the key and the counter's (low, high) words for a seed of two integers.

    The two numbers of the seed form a Philox counter. In the resulting block, the first half is the key and the second
    half is the upper word of the counter.

    Raises:
        InvalidArgumentError: the seed does not have two elements.
    """
    if len(seed) != 2:
        raise InvalidArgumentError(None, None, f"seed must have shape [2], not [{len(seed)}]")
    first, second = (int(number) & _MASK_64 for number in seed)
    words = philox_blocks(Stream.from_key_counter(_SCRAMBLE_KEY, first, second), 1)[0].tolist()
    return words[0] | (words[1] << 32), (0, words[2] | (words[3] << 32))


def stream_of_seed(seed: Sequence[int]) -> Stream:
    """The stream that a stateless op with this `seed` input draws from."""
    key, counter = key_counter(seed)
    return Stream.from_key_counter(key, *counter)


def algorithm_of_device() -> int:
    """StatelessRandomGetAlg: Philox, on every device."""
    return PHILOX


def stream_of_key_counter(key: Sequence[int], counter: Sequence[int], algorithm: int) -> Stream:
    """The stream that a stateless V2 op draws from.

    Raises:
        InvalidArgumentError: `key` does not have one element, `counter` has fewer than two, or the algorithm is not Philox
            (or "auto select", which means Philox here). TensorFlow supports ThreeFry only under XLA.
    """
    if len(key) != 1:
        raise InvalidArgumentError(None, None, f"key must have shape [1], not [{len(key)}]")
    if len(counter) < 2:
        raise InvalidArgumentError(
            None,
            None,
            f"counter must be a vector with length at least 2; got shape: [{len(counter)}]. "
            "(Note that batched counters are not supported yet.)",
        )
    if algorithm not in (PHILOX, AUTO_SELECT):
        raise InvalidArgumentError(None, None, f"Unsupported algorithm id: {algorithm}")
    return Stream.from_key_counter(int(key[0]), int(counter[0]), int(counter[1]))


def generator_state(seed: int | Sequence[int]) -> np.ndarray:
    """The state variable of `Generator.from_seed` for Philox: int64 [counter low, counter high, key].

    A single number is one wide integer, lowest word first. A sequence contains the words: the first three are used, and a
    shorter sequence is padded with zeros at the front.
    """
    if isinstance(seed, int):
        words = [(seed >> (64 * place)) & _MASK_64 for place in range(3)]
    else:
        given = [int(number) & _MASK_64 for number in seed][:3]
        words = [0] * (3 - len(given)) + given
    return np.array(words, np.uint64).view(np.int64)


def read_and_skip(state: np.ndarray, algorithm: int, blocks: int) -> tuple[Stream, np.ndarray]:
    """The stream at a generator's state, and the state `blocks` blocks later.

    RngReadAndSkip and RngSkip with `delta`, and every Stateful* op with `outputs` elements, advance the state by
    256 blocks per unit of delta or per element (`generator_blocks`). StatefulRandomBinomial uses `binomial_reserve`.

    Raises:
        InvalidArgumentError: the state is too short.
        UnimplementedError: the algorithm is ThreeFry, which TensorFlow supports only under XLA.
    """
    if algorithm == THREEFRY:
        raise UnimplementedError(None, None, "Non-XLA devices don't support the ThreeFry algorithm.")
    if algorithm not in (PHILOX, AUTO_SELECT):
        raise InvalidArgumentError(None, None, f"Unsupported algorithm id: {algorithm}")
    if state.ndim != 1 or state.size < 3:
        raise InvalidArgumentError(
            None, None, f"The state of a Philox generator needs at least 3 elements, got shape {list(state.shape)}"
        )
    low, high, key = (int(word) & _MASK_64 for word in state[:3])
    stream = Stream.from_key_counter(key, low, high)
    moved = state.copy()
    _, low, high = stream.skip(blocks).words
    moved[:2] = np.array([low, high], np.uint64).view(np.int64)
    return stream, moved


def generator_blocks(outputs: int) -> int:
    """The number of blocks by which an op with `outputs` elements (or a skip by `outputs`) advances a `tf.random.Generator`."""
    return outputs * RESERVED_PER_OUTPUT


def split(seed: Sequence[int], count: int, dtype: torch.dtype) -> torch.Tensor:
    """tf.random.split: derives `count` independent seeds of `dtype`, shape [count, 2], from the seed's stream."""
    return uniform_full_int(stream_of_seed(seed), 2 * count, dtype).reshape(count, 2)


def fold_in(seed: Sequence[int], data: int, dtype: torch.dtype) -> torch.Tensor:
    """tf.random.fold_in: a seed of `dtype` (that of `data`) that combines one number of the seed's stream with the data."""
    return torch.stack([uniform_full_int(stream_of_seed(seed), 1, dtype)[0], torch.tensor(data, dtype=dtype)])
