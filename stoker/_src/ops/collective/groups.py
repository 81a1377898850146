"""The group of processes that train together, on torch.distributed.

A process belongs to a group if its environment says so, as `stoker launch` and `torchrun` arrange it (RANK, WORLD_SIZE, MASTER_ADDR,
MASTER_PORT), or if a strategy was given a cluster. The connections are made when the first collective op needs them.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from stoker._src.base import forking
from stoker._src.base.errors import DeadlineExceededError, UnimplementedError
from stoker._src.base.export import export
from stoker._src.ops.collective import shared_memory
from stoker._src.ops.collective.replicas import LostReplicaError

_NEEDED = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
_TIMEOUT_SECS = 600.0  # how long a process waits for the others in one collective op


class _Membership:
    """Which process of how many this is, and where the first one listens."""

    def __init__(self, rank: int, size: int, init_method: str) -> None:
        self.rank, self.size, self.init_method = rank, size, init_method
        self.connected = False
        self.neighbours: shared_memory.Neighbours | None = None


_lock = forking.lock()
_joined: _Membership | None = None


def _membership() -> _Membership | None:
    global _joined
    if _joined is None and all(name in os.environ for name in _NEEDED):
        with _lock:
            if _joined is None:
                _joined = _Membership(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), "env://")
    return _joined


def join(rank: int, size: int, address: str) -> None:
    """Makes this process number `rank` of `size`. The first one listens at `address`, `host:port`.

    Raises:
        RuntimeError: the process belongs to another group already.
    """
    global _joined
    known = _membership()
    if known is not None:
        if (known.rank, known.size) != (rank, size):
            raise RuntimeError(
                f"This process is number {known.rank} of {known.size} already; it cannot become {rank} of {size}."
            )
        return
    with _lock:
        _joined = _Membership(rank, size, f"tcp://{address}")


@export("distribute.rank")
def rank() -> int:
    """The number of this process in its group: 0 for the first one, and for a process on its own."""
    known = _membership()
    return 0 if known is None else known.rank


@export("distribute.size")
def size() -> int:
    """The number of processes that train together; 1 for a process on its own."""
    known = _membership()
    return 1 if known is None else known.size


def timeout(seconds: float = 0.0) -> float:
    """How many seconds a process waits for the others in a collective op that says so, or, with 0, does not."""
    return seconds if seconds > 0 else float(os.environ.get("STOKER_COLLECTIVE_TIMEOUT_SECS", _TIMEOUT_SECS))


def connect() -> None:
    """Connects to the other processes, once."""
    known = _membership()
    if known is None or known.connected:
        return
    with _lock:
        if known.connected:
            return
        if not dist.is_initialized():
            if os.environ.get("LOCAL_WORLD_SIZE") == str(known.size) and sys.platform == "linux":
                # All processes are on this machine: they need not look up its name, and nobody else can connect.
                os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
            backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() and dist.is_nccl_available() else "gloo"
            with failures("Connecting to the other processes"):
                # torchrun keeps its store when it restarts processes. They must not find the addresses of those before them.
                limit = timedelta(seconds=timeout())
                store, _, _ = next(dist.rendezvous(known.init_method, known.rank, known.size, timeout=limit))  # pyright: ignore[reportPrivateImportUsage]
                attempt = dist.PrefixStore(f"attempt {os.environ.get('TORCHELASTIC_RESTART_COUNT', 0)}", store)  # pyright: ignore[reportPrivateImportUsage]
                dist.init_process_group(backend, store=attempt, rank=known.rank, world_size=known.size, timeout=limit)
                known.neighbours = shared_memory.connect(known.rank, known.size)
            atexit.register(_leave)
        known.connected = True


def part(size: int, dtype: torch.dtype, device: torch.device) -> shared_memory.Part | None:
    """What this process contributes to a sum in the memory that the processes share; None if they share none, or not for such tensors."""
    neighbours = None if _joined is None else _joined.neighbours
    return neighbours.part(size, dtype) if neighbours is not None and neighbours.adds(size, dtype, device) else None


def _leave() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()


def check_size(group_size: int) -> None:
    """Checks that an op is for all processes, or for one.

    Raises:
        UnimplementedError: it is for some of them.
    """
    if group_size not in (1, size()):
        raise UnimplementedError(
            None,
            None,
            f"A collective op for {group_size} of {size()} processes: only ops for all of them, or for one, are implemented.",
        )


@contextmanager
def failures(what: str) -> Iterator[None]:
    """Raises what torch.distributed reports as errors of TensorFlow's kinds.

    Raises:
        DeadlineExceededError: the other processes did not take part in time.
        LostReplicaError: a connection broke.
    """
    try:
        yield
    except RuntimeError as error:  # torch's DistError is one
        text = f"{what} failed in process {rank()} of {size()}: {error}"
        kind = DeadlineExceededError if "imed out" in str(error) else LostReplicaError
        raise kind(None, None, text) from error


def wait(work: Any, timeout_seconds: float) -> None:
    """Waits until a collective op that was started has ended."""
    with failures("A collective op"):
        if timeout_seconds > 0:
            work.wait(timedelta(seconds=timeout_seconds))
        else:
            work.wait()
