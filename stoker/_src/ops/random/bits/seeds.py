"""The two seeds of an op, from the global seed and its own.

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
    """`tf.compat.v1.get_seed`: (None, None) where neither seed is given.

    Args:
        global_seed: of the graph (`tf.compat.v1.set_random_seed`); in eager mode of the context (`tf.random.set_seed`).
        op_seed: the argument of the op.
        next_op_seed: asked, once, where there is a global seed and no op seed. What it answers:
            - a graph, TensorFlow 2: how often this graph has been asked before (0, 1, ...; function bodies, which are
              graphs, each count for themselves);
            - a graph, TensorFlow 1: how many operations have been made in the graph so far;
            - eager: `EagerSeeds.next_op_seed`.
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
    """The eager context's own sequence of op seeds, started anew by each `tf.random.set_seed`.

    TensorFlow uses Python's Mersenne twister for it, and so must we. An eager op with given seeds keeps its
    `PhiloxState` from call to call (a second call continues the stream); `tf.random.set_seed` also forgets those.
    """

    def __init__(self, global_seed: int) -> None:
        self._generator = random.Random(global_seed)

    def next_op_seed(self) -> int:
        return self._generator.randint(0, _MODULUS)
