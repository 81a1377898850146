"""Sums over processes of one machine in memory that they share."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
import torch

from stoker._src.base.errors import (
    DeadlineExceededError,
    InvalidArgumentError,
    ResourceExhaustedError,
    UnavailableError,
)
from stoker._src.ops.collective import shared_memory
from tests.distributed.ports import free_ports
from tests.distributed.test_replicas import ROOT, launch

pytestmark = pytest.mark.skipif(shared_memory._native is None, reason="needs the C extension")


@pytest.fixture
def neighbours():
    """Three processes' views of their common memory. Here they are in one process."""
    segments = [segment for segment, _ in map(shared_memory._create, range(3)) if segment is not None]
    yield [shared_memory.Neighbours(rank, segments) for rank in range(3)]
    for segment in segments:
        os.close(segment.file)


def contribute(neighbour, values):
    part = neighbour.part(len(values), values.dtype)
    part.tensor.copy_(values)
    part.announce()
    return part


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
@pytest.mark.parametrize("size", [1, 2049, 300_000])
def test_parts_are_added_in_the_order_of_the_ranks(neighbours, dtype, size):
    """Everybody gets the same bits, those of a + b + c from left to right."""
    values = [(np.random.RandomState(rank).standard_normal(size) * 1e6).astype(dtype) for rank in range(3)]
    expected = values[0] + values[1] + values[2]
    parts = [contribute(*pair) for pair in zip(neighbours, map(torch.from_numpy, values))]
    for part in parts:
        assert part.total(60).numpy().tobytes() == expected.tobytes()


def test_integers_wrap_around(neighbours):
    """Sums of integers that do not fit wrap around, as torch's do."""
    parts = [contribute(each, torch.tensor([2**31 - 1], dtype=torch.int32)) for each in neighbours]
    assert parts[0].total(60).item() == 2**31 - 3


def test_memory_is_used_again(neighbours):
    """A part's room is free when all have taken the sum, whatever the order in which they take several."""
    ends = []
    for _ in range(5):
        steps = [[contribute(each, torch.full((5000,), float(number))) for each in neighbours] for number in range(3)]
        for number in (2, 0, 1):
            assert steps[number][0].total(60)[0] == 3.0 * number
        del steps
        ends.append([each._end for each in neighbours])
    assert ends == [ends[0]] * 5


def test_a_part_stays_until_all_have_taken_the_sum(neighbours):
    """A fast process may be steps ahead of a slow one and does not overwrite what that one has yet to read."""
    late = [contribute(neighbours[0], torch.full((100,), float(step))) for step in range(4)]
    for rank in (1, 2):
        for step in range(4):
            assert neighbours[rank]._announced == step
            contribute(neighbours[rank], torch.full((100,), 10.0 * step))
    assert [part.total(60)[99].item() for part in late] == [21.0 * step for step in range(4)]


def test_a_step_that_fails_holds_no_memory(neighbours):
    """Parts that were not announced, and sums that were not taken because a step failed, leave their room to others."""
    for _ in range(20):
        neighbours[0].part(5000, torch.float32)
        for each in neighbours:
            contribute(each, torch.ones(5000))
    assert len(neighbours[0]._rooms) == 1


def test_numbers_wrap_around(neighbours):
    """Nothing changes when more than 2**32 sums were taken."""
    for each in neighbours:
        each._announced = each._taken = 2**32 - 2
        for offset in (shared_memory._ANNOUNCED, shared_memory._TAKEN):
            shared_memory._native.publish(each.own.address + offset, 2**32 - 2)
    for step in range(5):
        parts = [contribute(each, torch.full((10,), float(step))) for each in neighbours]
        assert [part.total(60)[0].item() for part in parts] == [3.0 * step] * 3
    del parts
    assert len(neighbours[0]._rooms) <= 2


def test_a_sum_waits_for_all_parts(neighbours):
    """A process that comes first waits until the last part is there."""
    parts = [contribute(each, torch.ones(3)) for each in neighbours[:2]]
    found = []
    lock = shared_memory._Segment.is_left
    shared_memory._Segment.is_left = lambda self: False
    try:
        waiter = threading.Thread(target=lambda: found.append(parts[0].total(60)))
        waiter.start()
        last = contribute(neighbours[2], torch.ones(3))
        waiter.join()
    finally:
        shared_memory._Segment.is_left = lock
    assert found[0].tolist() == last.total(60).tolist() == [3, 3, 3]


def test_processes_that_do_not_take_part(neighbours, monkeypatch):
    """One that has ended is UnavailableError, one that lives and does not come DeadlineExceededError."""
    part = contribute(neighbours[0], torch.ones(3))
    with pytest.raises(UnavailableError, match="process 1 has ended"):  # a process does not see its own locks
        part.total(60)
    monkeypatch.setattr(shared_memory._Segment, "is_left", lambda self: False)
    with pytest.raises(DeadlineExceededError, match="process 1 did not take part"):
        part.total(0.01)


@pytest.mark.parametrize("other", [torch.ones(4), torch.ones(3, dtype=torch.float64)])
def test_different_sums_are_refused(neighbours, other):
    """Processes that add tensors of different sizes or dtypes do not run the same program."""
    parts = [contribute(*pair) for pair in zip(neighbours, (torch.ones(3), other, torch.ones(3)))]
    with pytest.raises(InvalidArgumentError, match=r"process 0 adds 3 elements of torch\.float32, and process 1"):
        parts[0].total(60)


def test_no_memory_is_left(neighbours):
    """More than the machine's memory is refused."""
    with pytest.raises(ResourceExhaustedError, match="bytes are left"):
        neighbours[0].part(1 << 50, torch.float32)


PROGRAM = """
import json, os, signal, sys
import numpy as np
import stoker
import stoker.compat.v1 as tf
from stoker._src.ops.collective import collectives, groups
from stoker._src.base import dtypes

rank = stoker.distribute.rank()
x = tf.placeholder(tf.float32, [None])
total, largest = collectives.all_reduce(x), collectives.all_reduce(x, "Max")
with tf.Session() as session:
    first = session.run([total, largest], {x: np.float32([rank, 1])})
    shares = groups._joined.neighbours is not None
    found = {"total": first[0].tolist(), "largest": first[1].tolist(), "shares": shares}
    if sys.argv[2] == "kill":
        if rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            session.run(total, {x: np.ones(2, np.float32)})
        except tf.errors.UnavailableError as error:
            found["error"] = error.message
with open(f"{sys.argv[1]}/{rank}.json", "w") as file:
    json.dump(found, file)
"""


@pytest.mark.parametrize("shared", ["1", "0"])
def test_launched_processes(tmp_path, monkeypatch, shared):
    """Launched processes share memory unless they are told not to. Extremes always take the other way."""
    monkeypatch.setenv("STOKER_SHARED_MEMORY", shared)
    (tmp_path / "program.py").write_text(PROGRAM)
    status, output = launch("--workers", 3, tmp_path / "program.py", tmp_path, "end")
    assert status == 0, output
    for rank in range(3):
        expected = {"total": [3, 3], "largest": [2, 1], "shares": shared == "1"}
        assert json.loads((tmp_path / f"{rank}.json").read_text()) == expected


def test_a_killed_process_is_noticed(tmp_path):
    """Who waits for a process that was killed learns of it long before the timeout."""
    (tmp_path / "program.py").write_text(PROGRAM)
    (port,) = free_ports(1)
    about = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(tmp_path / "program.py"), str(tmp_path), "kill"]
    processes = [subprocess.Popen(command, env={**os.environ, **about, "RANK": str(rank)}) for rank in range(2)]
    try:
        assert [process.wait(200) for process in processes] == [0, -signal.SIGKILL]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    assert "process 1 has ended" in json.loads((tmp_path / "0.json").read_text())["error"]
