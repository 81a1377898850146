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

# With fewer outputs per thread, starting a thread costs more than it saves.
_OUTPUTS_PER_THREAD = 1 << 17


def fill(
    function: Callable[..., None],
    out: np.ndarray,
    stream: Stream,
    *options: Any,
    outputs_per_group: int,
    blocks_per_group: int,
) -> None:
    """Calls a compiled fill on `out`. A large fill is divided among several threads.

    A group is the smallest run of outputs with its own blocks. Pieces end on group boundaries, so the numbers do
    not depend on the number of threads.
    """
    if out.size < 2 * _OUTPUTS_PER_THREAD:  # the usual case, in which every microsecond counts
        function(out, *stream.words, *options)
        return

    def fill_piece(first: int, last: int) -> None:
        start = stream.skip(first // outputs_per_group * blocks_per_group)
        function(out[first:last], *start.words, *options)

    share(fill_piece, out.size, outputs_per_group)


def share(work: Callable[[int, int], None], size: int, granule: int = 1, per_thread: int = _OUTPUTS_PER_THREAD) -> None:
    """Calls `work(first, last)` over [0, size), divided among torch's intra-op threads if that pays off."""
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
            except RuntimeError:  # no thread can be started: the main thread has ended, or memory is short
                work(*piece)
        work(*mine)
        for done in started:
            done.result()
