"""The C extension, if it was built, and the threads that share a large fill."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from stoker._src.base.extensions import extension

if TYPE_CHECKING:
    from stoker._src.ops.random.bits.philox import Stream

compiled = extension("stoker._src.ops.native.random_bits")

# Below this many outputs per thread, starting one costs more than it saves.
_OUTPUTS_PER_THREAD = 1 << 17


def fill(
    function: Callable[..., None],
    out: np.ndarray,
    stream: Stream,
    *options: Any,
    outputs_per_group: int,
    blocks_per_group: int,
) -> None:
    """Call a compiled fill on `out`, in pieces on several threads when it is large.

    A group is the smallest run of outputs with blocks of its own; pieces end on group boundaries, so the numbers do
    not depend on the number of threads.
    """

    def fill_piece(first: int, last: int) -> None:
        start = stream.skip(first // outputs_per_group * blocks_per_group)
        function(out[first:last], *start.words, *options)

    share(fill_piece, out.size, outputs_per_group)


def share(work: Callable[[int, int], None], size: int, granule: int = 1, per_thread: int = _OUTPUTS_PER_THREAD) -> None:
    """Run `work(first, last)` over [0, size), split among torch's intra-op threads where that pays."""
    pieces = min(torch.get_num_threads(), size // per_thread)
    if pieces <= 1:
        work(0, size)
        return
    step = -(-size // pieces)
    step += -step % granule
    mine, *others = [(first, min(first + step, size)) for first in range(0, size, step)]
    with ThreadPoolExecutor(pieces) as pool:
        started = []
        for piece in others:
            try:
                started.append(pool.submit(work, *piece))
            except RuntimeError:  # no thread can be had: the main one has ended, or memory is short
                work(*piece)
        work(*mine)
        for done in started:
            done.result()
