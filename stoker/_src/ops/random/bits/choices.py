"""Random permutations and draws from categories.

Each function documents how many blocks its stateful op reserves. The given stream is the start of that reservation.
"""

from __future__ import annotations

import math

import numpy as np

from stoker._src.base.errors import InvalidArgumentError
from stoker._src.ops.random.bits import native
from stoker._src.ops.random.bits.fills import unit_doubles
from stoker._src.ops.random.bits.philox import RESERVED_PER_OUTPUT, Stream, bits, philox_blocks

# The number of samples and classes in a thread's rows, in total, from which another thread pays off.
_WORK_PER_THREAD = 1 << 14


def permutation_reserve(size: int) -> int:
    """The number of blocks by which RandomShuffle advances its generator: one word per swap, so 0 for at most one element."""
    return -(-max(size - 1, 0) // 4)


def permutation(stream: Stream, size: int) -> np.ndarray:
    """The order into which RandomShuffle puts `size` rows: output row i is input row result[i].

    This is the Fisher-Yates shuffle from the front: element i is swapped with i + (word i modulo the number remaining).
    """
    order = np.arange(size, dtype=np.int64)
    if size < 2:
        return order
    words = bits(stream, size - 1)
    if native.compiled is not None:
        native.compiled.shuffle(order, words)
        return order
    shuffled = order.tolist()
    for i, word in enumerate(words.tolist()):
        j = i + word % (size - i)
        shuffled[i], shuffled[j] = shuffled[j], shuffled[i]
    return np.array(shuffled, np.int64)


def categorical_reserve(batch: int, samples: int) -> int:
    """The number of blocks by which Multinomial advances its generator: samples, rounded up to a multiple of four, doubled."""
    return batch * (samples + -samples % 4) * 2 * RESERVED_PER_OUTPUT


def categorical(stream: Stream, logits: np.ndarray, samples: int) -> np.ndarray:
    """`samples` classes for each row of `logits` ([batch, classes]): int64 of shape [batch, samples].

    Sample (row, i) takes float64 number row * samples + i of the stream (two to a block), multiplies it by the row's total, and
    searches it in the cumulative sums of exp(logit - largest). Logits that are not finite have no weight. A row without
    finite logits gives the number of classes, as in TensorFlow. For large outputs, TensorFlow with several threads restarts
    the stream at rows that depend on the number of threads; this function gives the numbers of one thread.

    Raises:
        InvalidArgumentError: there are no classes.
    """
    batch, classes = logits.shape
    if classes == 0 and batch * samples > 0:
        raise InvalidArgumentError(None, None, f"num_classes should be positive, got {classes}")
    out = np.empty((batch, samples), np.int64)
    scores = np.ascontiguousarray(logits, np.float64)
    if native.compiled is not None:

        def fill_rows(first: int, last: int) -> None:
            blocks, odd = divmod(first * samples, 2)
            words = stream.skip(blocks).words
            native.compiled.fill_categorical(out[first:last], *words, scores[first:last], classes, odd)

        native.share(fill_rows, batch, per_thread=max(1, _WORK_PER_THREAD // (samples + classes + 1)))
        return out
    uniforms = unit_doubles(philox_blocks(stream, -(-batch * samples // 2))).reshape(-1)[: batch * samples]
    for row, draws in enumerate(uniforms.reshape(batch, samples)):
        finite = scores[row][np.isfinite(scores[row])]
        largest = finite.max() if finite.size else 0.0
        weights = [math.exp(score - largest) if math.isfinite(score) else 0.0 for score in scores[row].tolist()]
        sums = np.cumsum(np.array(weights))
        out[row] = np.searchsorted(sums, draws * sums[-1], side="right")
    return out
