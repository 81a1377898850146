"""Pseudorandom permutations of indices. Each index is permuted on its own, without a table."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.shapes import Shape
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import define
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import pads
from stoker._src.ops.support.values import from_numpy, to_numpy

_INDICES = (dtypes.int32, dtypes.uint32, dtypes.int64, dtypes.uint64)
RANDOM_INDEX_SHUFFLE = define(
    "RandomIndexShuffle(index: rank<2 dtype, seed: Tseed, max_index: rank<2 dtype) -> (output: dtype)",
    rounds=4,
    dtype=_INDICES,
    Tseed=_INDICES,
).not_differentiable()

# The sequence z2 of the Simon family of ciphers (Beaulieu et al., 2013), with one bit for each derived round key.
_Z2 = "10101111011100000011010010011000101000010001111110010110110011"
_SMALLEST_BLOCK = 16


def _turned(x: int, by: int, width: int) -> int:
    """Rotates the `width`-bit number `x` to the left."""
    by %= width
    return ((x << by) | (x >> (width - by))) & ((1 << width) - 1)


def _round_keys(seed: list[int], rounds: int, width: int) -> list[int]:
    """The three words of the key, followed by the words of Simon's key schedule for three words."""
    mask = (1 << width) - 1
    keys = [word & mask for word in seed]
    for i in range(3, rounds):
        mixed = _turned(keys[i - 1], -3, width)
        mixed ^= _turned(mixed, -1, width)
        keys.append(~keys[i - 3] & mask ^ mixed ^ int(_Z2[(i - 3) % 62]) ^ 3)
    return keys


def _shuffled(index: int, seed: list[int], most: int, rounds: int) -> int:
    """The position of `index` in a permutation of 0 ... `most`: encrypts it repeatedly until the result is in that range."""
    if most == 0:
        return 0
    width = max(_SMALLEST_BLOCK, (most - 1).bit_length() + (most - 1).bit_length() % 2) // 2
    mask = (1 << width) - 1
    keys = _round_keys(seed, rounds, width)
    while True:
        right, left = (index >> width) & mask, index & mask
        for key in keys:
            mixed = (_turned(left, 1, width) & _turned(left, 8, width)) ^ _turned(left, 2, width)
            left, right = right ^ mixed ^ key, left
        index = (right << width) | left
        if index <= most:
            return index


@RANDOM_INDEX_SHUFFLE.kernel
def random_index_shuffle_kernel(
    index: torch.Tensor, seed: torch.Tensor, max_index: torch.Tensor, *, rounds: int
) -> torch.Tensor:
    if rounds < 4 or rounds % 2:
        raise InvalidArgumentError(None, None, f"rounds must be even and at least 4, got {rounds}")
    count = max((each.shape[0] for each in (index, max_index) if each.ndim), default=1)
    if seed.ndim == 2 and index.ndim == max_index.ndim == 0:
        count = seed.shape[0]
    if not (seed.shape == (3,) or seed.shape == (count, 3)):
        raise InvalidArgumentError(
            None,
            None,
            f"Seed must be a vector of size [3] or a matrix of size [{count}, 3] but got {Shape(seed.shape)}.",
        )
    if any(each.ndim and each.shape[0] != count for each in (index, max_index)):
        raise InvalidArgumentError(
            None,
            None,
            f"index and max_index must be scalars or of one size, got {Shape(index.shape)} and {Shape(max_index.shape)}.",
        )
    indices, limits = (np.broadcast_to(to_numpy(each), (count,)).tolist() for each in (index, max_index))
    seeds = np.broadcast_to(to_numpy(seed), (count, 3)).tolist()
    for at, most in zip(indices, limits):
        if at < 0:
            raise InvalidArgumentError(None, None, f"index must be >= 0 but was {at}")
        if most < 0:
            raise InvalidArgumentError(None, None, f"max_index must be >= 0 but was {most}")
        if most < at:
            raise InvalidArgumentError(None, None, f"max_index must be >= index, but {most} < {at}")
    found = [
        _shuffled(at, [word & 0xFFFFFFFF for word in words], most, rounds)
        for at, words, most in zip(indices, seeds, limits)
    ]
    result = np.array(found, to_numpy(index).dtype)
    single = index.ndim == max_index.ndim == 0 and seed.ndim == 1
    return from_numpy(result[0:1].reshape(()) if single else result)


@RANDOM_INDEX_SHUFFLE.shape
def random_index_shuffle_shape(index: Shape, seed: Shape, max_index: Shape) -> Shape:
    if seed.dims is not None and (len(seed) not in (1, 2) or seed[-1] not in (3, None)):
        raise InvalidArgumentError(None, None, f"Seed must have shape [3] or [n, 3] but got {seed}.")
    ranks = [index.rank, max_index.rank, None if seed.rank is None else seed.rank - 1]
    if None in ranks:
        return Shape((None,)) if 1 in ranks else Shape(None)
    batched = [each[0] for each, rank in zip((index, max_index, seed), ranks) if rank]
    return Shape((next((size for size in batched if size is not None), None),)) if batched else Shape(())


@export("random.experimental.index_shuffle")
def index_shuffle(index: Any, seed: Any, max_index: Any) -> Tensor:
    """The position of `index` in a pseudorandom permutation of 0 ... `max_index`, which is determined by `seed`.

    Args:
        index: A scalar or vector of integers.
        seed: Two integers for all indices, or [n, 2] for one seed each.
        max_index: The largest index, a scalar or vector.

    Returns:
        The new indices. For one seed, different indices have different new indices.
    """
    words = convert_to_tensor(seed)
    # A seed has two words elsewhere. The third word that the cipher needs is fixed.
    rank = words.static_shape.rank
    if rank is None:
        raise ValueError("`seed` must have a known rank.")
    margins = [[0, 0]] * (rank - 1) + [[1, 0]]
    filler = convert_to_tensor(_FIRST_WORD, words.dtype.base_dtype)
    return RANDOM_INDEX_SHUFFLE(index, pads.PAD_V2(words, margins, filler), max_index)


_FIRST_WORD = 498247692
