"""Sums over processes of one machine, in memory that they share.

Each process has a segment that all can read: a file without a name (memfd), which exists as long as a process has it open, so nothing is left behind
however a process ends. A process writes its part of a sum into its own segment and announces it. Whoever needs the sum waits until all have announced
their part, and adds the parts in the order of the ranks: everybody gets the same bits. Nobody waits for anybody else to compute. A part stays until
all have taken the sum.

A segment begins with two numbers, each with one writer: how many parts were announced, and how many sums, in the order of the announcements, were taken. A table
says where each part is and of what kind. A process holds a lock on its segment, which the kernel releases when the process ends: so the others learn of it.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import secrets
import stat
import struct
import time
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from stoker._src.base import forking
from stoker._src.base.errors import (
    DeadlineExceededError,
    InvalidArgumentError,
    ResourceExhaustedError,
)
from stoker._src.base.extensions import extension
from stoker._src.ops.collective.replicas import LostReplicaError

_native: Any = extension("stoker._src.ops.native.shared")
_MOST_PROCESSES = 8  # each reads the parts of all: beyond this, sending parts around a ring is less work
_KINDS = (torch.float32, torch.float64, torch.int32, torch.int64)  # in the order of native/shared.c
_LOOK_EVERY = 50  # ms between two looks at whether the others live

_ANNOUNCED, _TAKEN, _TOKEN, _TABLE, _PARTS = 0, 64, 128, 4096, 4096 + (1 << 21)
_ENTRY = struct.Struct("=QQQQ")  # the number of the part, its offset, elements, kind
_ENTRIES = (_PARTS - _TABLE) // _ENTRY.size
_PAGE = 4096


class _Segment:
    """The memory of a process, in this process."""

    def __init__(self, file: int, nbytes: int, *, own: bool) -> None:
        self.file = file
        self.memory = mmap.mmap(file, nbytes, prot=mmap.PROT_READ | (mmap.PROT_WRITE if own else 0))
        self.address = int(np.frombuffer(self.memory, np.uint8, 1).ctypes.data)

    def is_left(self) -> bool:
        """Whether the process whose segment this is has ended."""
        try:
            fcntl.lockf(self.file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return False
        return True


class _Room:
    """A place in the own segment."""

    def __init__(self, offset: int, nbytes: int) -> None:
        self.offset, self.nbytes = offset, nbytes
        self.part: int | None = -1  # the last part that was in it; None while one is being written


class Part:
    """What this process contributes to a sum: `tensor` is to be filled, then announced, then the sum can be taken."""

    def __init__(self, owner: Neighbours, room: _Room, size: int, dtype: torch.dtype) -> None:
        self.tensor = torch.frombuffer(owner.own.memory, dtype=dtype, count=size, offset=room.offset)
        self._owner, self._room = owner, room
        self._number: int | None = None

    def announce(self) -> None:
        """Shows the part to the other processes."""
        self._number = self._owner.announce(self._room, self.tensor)

    def total(self, timeout: float) -> torch.Tensor:
        """Waits for the parts of all processes, and returns their sum.

        Raises:
            DeadlineExceededError: they did not come within `timeout` seconds.
            LostReplicaError: a process has ended.
            InvalidArgumentError: another process adds another number of elements, or another dtype.
        """
        assert self._number is not None
        return self._owner.total(self._number, self.tensor, timeout)

    def __del__(self) -> None:
        # A step that failed takes no sum, and the others need not keep their parts for it.
        self._room.part = -1 if self._number is None else self._number
        if self._number is not None:
            self._owner.take(self._number)


class Neighbours:
    """The processes of this machine that train together."""

    def __init__(self, rank: int, segments: list[_Segment]) -> None:
        self.rank, self.segments, self.own = rank, segments, segments[rank]
        self._lock = forking.rlock()
        self._announced = self._taken = 0
        self._taken_early: set[int] = set()  # sums that were taken before those that precede them
        self._rooms: list[_Room] = []
        self._end = _PARTS

    def adds(self, size: int, dtype: torch.dtype, device: torch.device) -> bool:
        """Whether tensors of this kind are added in shared memory."""
        return size > 0 and dtype in _KINDS and device.type == "cpu"

    def part(self, size: int, dtype: torch.dtype) -> Part:
        """Returns room for a contribution of `size` elements to the next sum.

        Raises:
            ResourceExhaustedError: there is none.
        """
        nbytes = max(_PAGE, -(-size * dtype.itemsize // _PAGE) * _PAGE)
        with self._lock:
            kept = max(map(self._kept, self.segments))
            over = self._announced - kept  # parts before this number are of no use to anybody
            if kept >= _ENTRIES:
                raise ResourceExhaustedError(None, None, f"{_ENTRIES} sums over processes were started and not taken.")
            free = [
                room
                for room in self._rooms
                if room.part is not None and room.part < over and nbytes <= room.nbytes <= 2 * nbytes
            ]
            room = min(free, key=lambda room: room.nbytes, default=None)
            if room is None:
                if self._end + nbytes > len(self.own.memory):
                    raise ResourceExhaustedError(
                        None, None, f"No {nbytes} bytes are left in the memory that processes share."
                    )
                room = _Room(self._end, nbytes)
                self._end += nbytes
                self._rooms.append(room)
            room.part = None
        return Part(self, room, size, dtype)

    def announce(self, room: _Room, tensor: torch.Tensor) -> int:
        with self._lock:
            number = self._announced
            entry = _TABLE + number % _ENTRIES * _ENTRY.size
            _ENTRY.pack_into(self.own.memory, entry, number, room.offset, tensor.numel(), _KINDS.index(tensor.dtype))
            self._announced += 1
            _native.publish(self.own.address + _ANNOUNCED, self._announced & 0xFFFFFFFF)
        return number

    def total(self, number: int, tensor: torch.Tensor, timeout: float) -> torch.Tensor:
        kind = _KINDS.index(tensor.dtype)
        deadline = time.monotonic() + timeout
        terms = []
        for rank, each in enumerate(self.segments):
            self._await(rank, number + 1, deadline)
            found, offset, size, its_kind = _ENTRY.unpack_from(each.memory, _TABLE + number % _ENTRIES * _ENTRY.size)
            if (found, size, its_kind) != (number, tensor.numel(), kind):
                raise InvalidArgumentError(
                    None,
                    None,
                    f"CollectiveReduce: process {self.rank} adds {tensor.numel()} elements of {_KINDS[kind]}, and process {rank} "
                    f"{size} of {_KINDS[its_kind]}. All processes must run the same collective ops in the same order.",
                )
            terms.append(each.address + offset)
        result = torch.empty_like(tensor)
        _native.add(result, tuple(terms), tensor.numel(), kind, torch.get_num_threads())
        return result

    def take(self, number: int) -> None:
        """Lets the others use the room of their parts of a sum for something else."""
        with self._lock:
            self._taken_early.add(number)
            while self._taken in self._taken_early:
                self._taken_early.remove(self._taken)
                self._taken += 1
            _native.publish(self.own.address + _TAKEN, self._taken & 0xFFFFFFFF)

    def _await(self, rank: int, announced: int, deadline: float) -> None:
        other = self.segments[rank]
        address, least = other.address + _ANNOUNCED, announced & 0xFFFFFFFF
        while not _native.await_number(address, least, _LOOK_EVERY):
            # What a process announced before it ended counts.
            if other.is_left() and not _native.await_number(address, least, 0):
                raise LostReplicaError(
                    None, None, f"CollectiveReduce failed in process {self.rank}: process {rank} has ended."
                )
            if time.monotonic() > deadline:
                raise DeadlineExceededError(
                    None, None, f"CollectiveReduce timed out in process {self.rank}: process {rank} did not take part."
                )

    def _kept(self, segment: _Segment) -> int:
        """How many of the announced parts a process has not taken the sums of."""
        taken = int.from_bytes(segment.memory[_TAKEN : _TAKEN + 4], "little")
        ahead = (self._announced - taken) & 0xFFFFFFFF
        # A process whose steps failed may have given up sums that this one has not announced.
        return ahead if ahead < 1 << 31 else 0


def connect(rank: int, size: int) -> Neighbours | None:
    """Shares memory with the other processes, if all are on this machine and can. Every process must call it; all get the same answer."""
    token = secrets.randbits(62)
    own, nbytes = None, 0
    wanted = os.environ.get("STOKER_SHARED_MEMORY") != "0" and size <= _MOST_PROCESSES
    if wanted and _native is not None and hasattr(os, "memfd_create"):
        own, nbytes = _create(token)
    mine = torch.tensor([*_machine(), os.getpid(), -1 if own is None else own.file, nbytes, token])
    rows = [torch.empty_like(mine) for _ in range(size)]
    dist.all_gather(rows, mine)
    segments: list[_Segment | None] = []
    for number, row in enumerate(rows):
        there = row.tolist()
        opened = own if number == rank else _open(*there[2:]) if own and there[:2] == mine.tolist()[:2] else None
        segments.append(opened)
    agreed = torch.tensor([int(all(each is not None for each in segments))])
    dist.all_reduce(agreed, dist.ReduceOp.MIN)
    if agreed.item():
        return Neighbours(rank, [each for each in segments if each is not None])
    for each in segments:
        if each is not None:
            each.memory.close()
            os.close(each.file)
    return None


def _machine() -> tuple[int, int]:
    """Numbers that are equal for processes that can see each other in /proc."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            boot = int(file.read().replace("-", "")[:15], 16)
        return boot, os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return 0, 0


def _create(token: int) -> tuple[_Segment | None, int]:
    # Pages come into being when they are written, so the size is only a bound.
    nbytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    file = -1
    try:
        file = os.memfd_create("stoker", os.MFD_CLOEXEC)
        os.ftruncate(file, nbytes)
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        segment = _Segment(file, nbytes, own=True)
    except (OSError, ValueError):
        if file >= 0:
            os.close(file)
        return None, 0
    struct.pack_into("=q", segment.memory, _TOKEN, token)
    return segment, nbytes


def _open(pid: int, number: int, nbytes: int, token: int) -> _Segment | None:
    file = -1
    try:
        file = os.open(f"/proc/{pid}/fd/{number}", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        about = os.fstat(file)
        if stat.S_ISREG(about.st_mode) and about.st_size == nbytes > _PARTS:
            segment = _Segment(file, nbytes, own=False)
            if struct.unpack_from("=q", segment.memory, _TOKEN)[0] == token:
                return segment
            segment.memory.close()
    except (OSError, ValueError):
        pass
    if file >= 0:
        os.close(file)
    return None
