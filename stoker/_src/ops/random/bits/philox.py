"""The Philox-4x32-10 counter-based generator, and the state a random op keeps between executions.

Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from stoker._src.base import forking
from stoker._src.ops.random.bits import native

_MASK_32 = 0xFFFFFFFF
_MASK_64 = 0xFFFFFFFFFFFFFFFF
_MASK_128 = (1 << 128) - 1

_ALONE, _TOGETHER = 8, 32  # executions that draw for themselves, and that draw at once from then on

# Every output reserves this many blocks of the counter, so that samplers with rejection can draw again.
RESERVED_PER_OUTPUT = 256


class Stream(NamedTuple):
    """A position in one of Philox's 2**64 sequences. Block n depends only on the key and on `counter + n`."""

    key: int
    counter: int

    @classmethod
    def from_seeds(cls, seed: int, seed2: int) -> Stream:
        """The start of the stream of an op with these two seeds: `seed` is the key, `seed2` the upper half of the counter."""
        return cls(seed & _MASK_64, (seed2 & _MASK_64) << 64)

    @classmethod
    def from_key_counter(cls, key: int, counter_low: int, counter_high: int) -> Stream:
        """The stream for the 64-bit words in the `key` and `counter` inputs of stateless V2 ops."""
        return cls(key & _MASK_64, (counter_low & _MASK_64) | ((counter_high & _MASK_64) << 64))

    def skip(self, blocks: int) -> Stream:
        """The stream advanced by `blocks` blocks of four 32-bit words."""
        return Stream(self.key, (self.counter + blocks) & _MASK_128)

    @property
    def words(self) -> tuple[int, int, int]:
        """The key and the lower and upper half of the counter, in the form that the compiled functions take."""
        return self.key, self.counter & _MASK_64, self.counter >> 64


def philox_blocks(stream: Stream, count: int) -> np.ndarray:
    """The next `count` blocks as uint32 of shape [count, 4], computed with NumPy."""
    low_start, high_start = np.uint64(stream.counter & _MASK_64), np.uint64(stream.counter >> 64)
    with np.errstate(over="ignore"):  # counters wrap around
        low = low_start + np.arange(count, dtype=np.uint64)
        high = high_start + (low < low_start).astype(np.uint64)
    mask, shift = np.uint64(_MASK_32), np.uint64(32)
    c0, c1, c2, c3 = low & mask, low >> shift, high & mask, high >> shift
    k0, k1 = stream.key & _MASK_32, stream.key >> 32
    for _ in range(10):
        p0, p1 = c0 * np.uint64(0xD2511F53), c2 * np.uint64(0xCD9E8D57)
        c0, c1, c2, c3 = (p1 >> shift) ^ c1 ^ np.uint64(k0), p1 & mask, (p0 >> shift) ^ c3 ^ np.uint64(k1), p0 & mask
        k0, k1 = (k0 + 0x9E3779B9) & _MASK_32, (k1 + 0xBB67AE85) & _MASK_32
    return np.stack([c0, c1, c2, c3], axis=-1).astype(np.uint32)


def bits(stream: Stream, count: int) -> np.ndarray:
    """The next `count` 32-bit words. Consumes ceil(count / 4) blocks."""
    if native.compiled is None:
        return philox_blocks(stream, -(-count // 4)).reshape(-1)[:count]
    out = np.empty(count, np.uint32)
    native.fill(native.compiled.fill_bits, out, stream, outputs_per_group=4, blocks_per_group=1)
    return out


def bits_of_runs(stream: Stream, count: int, times: int, apart: int) -> np.ndarray:
    """Rows of `count` 32-bit words. Each begins `apart` blocks after the one before it."""
    if native.compiled is None:
        return np.stack([bits(stream.skip(i * apart), count) for i in range(times)])
    out = np.empty((times, count), np.uint32)
    native.compiled.fill_bits(out, *stream.words, 0, count, apart)
    return out


sides = forking.rlock()
"""Held while a device takes positions from the host's memory and draws, or the host takes them from a device's."""


class PhiloxState:
    """The state of one stateful random op: its position in the stream of (seed, seed2).

    Each execution reserves a run of blocks. The next execution starts after it, even if not all blocks were used.
    If both seeds are zero, the operating system provides the seed. Thread-safe. On a GPU, the position is a tensor there from the first
    numbers on that the device makes itself; it moves when the other side draws.
    """

    def __init__(self, seed: int, seed2: int) -> None:
        if seed == 0 and seed2 == 0:
            seed, seed2 = (int.from_bytes(os.urandom(8), "little") for _ in range(2))
        self._next = Stream.from_seeds(seed, seed2)
        self._lock = forking.lock()
        self._on_device: Any = None  # the words of the stream, as int64
        self._is_ahead = False  # whether the host has drawn since the device has
        self._drawn: list[Any] = []  # what the next executions return, the last of them first
        self._drawn_for: Any = None
        self._drawn_from: Stream | None = None  # the position of the first of them
        self._executions = 0

    def on_device(self, move: Callable[[tuple[int, int, int]], Any]) -> Any:
        """Returns the tensor that holds the position. `move(words)` makes it on the first call."""
        with sides:
            if self._on_device is None:
                with self._lock:
                    self._on_device = move(self._next.words)
            self.settle()
            return self._on_device

    def settle(self) -> None:
        """Moves the position to the device if the host has drawn. The caller holds `sides` until the device has its work."""
        with self._lock:
            if self._is_ahead:  # recorded steps know the tensor's address, so it stays the same
                words = np.array(self._next.words, np.uint64).view(np.int64)
                self._on_device.copy_(self._on_device.new_tensor(words.tolist(), device="cpu"))
                self._is_ahead = False

    def mark(self) -> Any:
        """Returns the position, for `back_to`."""
        with self._lock:
            return self._next, self._executions

    def back_to(self, mark: Any) -> None:
        """Takes back what was drawn since `mark()`."""
        with self._lock:
            self._next, self._executions = mark

    def reserve(self, blocks: int) -> Stream:
        """Returns the stream for this execution, and advances the state by `blocks` blocks."""
        while True:
            with self._lock:
                if self._on_device is None or self._is_ahead:
                    stream = self._next
                    self._next = stream.skip(blocks)
                    return stream
            with sides, self._lock:
                if not self._is_ahead:
                    self._next = Stream.from_key_counter(*self._on_device.tolist())
                    self._is_ahead = True

    def reserve_outputs(self, outputs: int) -> Stream:
        """`reserve` for ops that reserve 256 blocks per output element: all except shuffle and multinomial."""
        return self.reserve(outputs * RESERVED_PER_OUTPUT)

    def few(self, key: Any, outputs: int, draw: Callable[[Stream, int], Any]) -> Any:
        """Returns the numbers of this execution, which has few outputs, and advances the state as `reserve_outputs` does.

        `draw(stream, times)` returns a tensor with what so many executions from there on return. `key` is equal for equal `draw`. Many
        executions in a row draw together: nearly all of the time that a few numbers take does not depend on how many they are.
        """
        with self._lock:
            self._executions += 1
            if self._executions > _ALONE and self._on_device is None:
                if not self._drawn or self._drawn_from is not self._next or self._drawn_for != key:
                    self._drawn = list(draw(self._next, _TOGETHER).unbind(0))[::-1]
                    self._drawn_for = key
                self._next = self._drawn_from = self._next.skip(outputs * RESERVED_PER_OUTPUT)
                return self._drawn.pop()
        return draw(self.reserve_outputs(outputs), 1)[0]
