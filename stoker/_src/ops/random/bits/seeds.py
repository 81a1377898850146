"""Derives the two seeds of an op from the global seed and its own seed.

The pair becomes the op's `seed` and `seed2` attributes. If both are zero, the op chooses a random stream, so
a program that requests zero gets (0, 2**31 - 1) instead.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable

DEFAULT_GRAPH_SEED = 87654321
_MODULUS = 2**31 - 1


def op_seeds(
    global_seed: int | None, op_seed: int | None, next_op_seed: Callable[[], int]
) -> tuple[int | None, int | None]:
    """`tf.compat.v1.get_seed`: (None, None) if neither seed is given.

    Args:
        global_seed: the seed of the graph (`tf.compat.v1.set_random_seed`), or of the eager context (`tf.random.set_seed`).
        op_seed: the op's `seed` argument.
        next_op_seed: called once if there is a global seed but no op seed. It returns:
            - in a graph, TensorFlow 2: the number of earlier calls for this graph (0, 1, ...; function bodies are graphs
              with their own counts);
            - in a graph, TensorFlow 1: the number of operations created in the graph so far;
            - in eager mode: `EagerSeeds.next_op_seed`.
    """
    if global_seed is None and op_seed is None:
        return None, None
    if isinstance(op_seed, (str, bytes)) or (isinstance(op_seed, float) and not math.isfinite(op_seed)):
        raise TypeError(f"Expected int for argument 'seed' not {op_seed}.")
    if global_seed is None:
        seeds = DEFAULT_GRAPH_SEED, int(op_seed) % _MODULUS  # type: ignore[arg-type]
    else:
        seeds = int(global_seed) % _MODULUS, (next_op_seed() if op_seed is None else int(op_seed)) % _MODULUS
    return (0, _MODULUS) if seeds == (0, 0) else seeds


class EagerSeeds:
    """The eager context's sequence of op seeds, which each `tf.random.set_seed` restarts.

    It uses Python's Mersenne Twister, as TensorFlow does. An eager op with given seeds keeps its `PhiloxState` between
    calls (a second call continues the stream). `tf.random.set_seed` also discards those states.
    """

    def __init__(self, global_seed: int) -> None:
        self._generator = random.Random(global_seed)

    def next_op_seed(self) -> int:
        return self._generator.randint(0, _MODULUS)
