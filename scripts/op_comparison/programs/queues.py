"""Queues and readers."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from . import Run, program

ROWS = np.arange(12, dtype=np.float32).reshape(4, 3)
WORDS = np.array([b"w", b"", b"xyz", b"\x00"], object)


def _fill_and_empty(run: Run, queue: Any, suffix: str) -> None:
    """One element, many, up to many; sizes; the end."""
    raw, tf = run.raw, run.tf
    types = {"component_types": [tf.float32, tf.string]}
    op = {
        name: getattr(raw, f"Queue{name}{suffix}")
        for name in ("Enqueue", "EnqueueMany", "Dequeue", "DequeueMany", "DequeueUpTo", "Size", "IsClosed", "Close")
    }
    size = op["Size"](handle=queue)
    run.get(size)
    run.do(op["Enqueue"](handle=queue, components=[ROWS[0], WORDS[0]]))
    run.do(op["EnqueueMany"](handle=queue, components=[ROWS, WORDS]))
    run.get(size)
    run.get(op["Dequeue"](handle=queue, **types))
    run.get(op["DequeueMany"](handle=queue, n=np.int32(2), **types))
    run.get(op["DequeueMany"](handle=queue, n=np.int32(0), **types))
    run.get(size)
    run.fails(lambda: op["Enqueue"](handle=queue, components=[ROWS[0, :2], WORDS[0]]))
    run.fails(lambda: op["Enqueue"](handle=queue, components=[ROWS[0]]))
    run.fails(lambda: op["DequeueMany"](handle=queue, n=np.int32(-1), **types))
    run.get(op["IsClosed"](handle=queue))
    run.do(op["Close"](handle=queue))
    run.get(op["IsClosed"](handle=queue))
    run.fails(lambda: op["Enqueue"](handle=queue, components=[ROWS[0], WORDS[0]]))
    run.fails(lambda: op["DequeueMany"](handle=queue, n=np.int32(9), **types))
    run.get(op["DequeueUpTo"](handle=queue, n=np.int32(9), **types))
    run.get(size)
    run.fails(lambda: op["Dequeue"](handle=queue, **types))


_ALL = ("Enqueue", "EnqueueMany", "Dequeue", "DequeueMany", "DequeueUpTo", "Size", "IsClosed", "Close")


@program("FIFOQueueV2", *(f"Queue{name}V2" for name in _ALL))
def fifo_queue(run: Run) -> None:
    types = [run.tf.float32, run.tf.string]
    _fill_and_empty(run, run.raw.FIFOQueueV2(component_types=types, shapes=[[3], []], capacity=9), "V2")


@program("FIFOQueue", *(f"Queue{name}" for name in _ALL))
def fifo_queue_by_reference(run: Run) -> None:
    types = [run.tf.float32, run.tf.string]
    _fill_and_empty(run, run.raw.FIFOQueue(component_types=types, shapes=[[3], []], capacity=9), "")


def _padded(run: Run, make: Any, suffix: str) -> None:
    raw, tf = run.raw, run.tf
    types = [tf.int32, tf.string]
    queue = make(component_types=types, shapes=[[None, 2], [None]], capacity=9)
    enqueue, many = getattr(raw, f"QueueEnqueue{suffix}"), getattr(raw, f"QueueDequeueMany{suffix}")
    for rows in (2, 0, 3, 1):
        values = np.arange(rows * 2, dtype=np.int32).reshape(rows, 2) + 1
        run.do(enqueue(handle=queue, components=[values, WORDS[:rows]]))
    run.get(many(handle=queue, n=np.int32(3), component_types=types))
    run.get(getattr(raw, f"QueueDequeue{suffix}")(handle=queue, component_types=types))
    run.fails(lambda: enqueue(handle=queue, components=[np.zeros((2, 3), np.int32), WORDS]))


@program("PaddingFIFOQueueV2")
def padding_queue(run: Run) -> None:
    _padded(run, run.raw.PaddingFIFOQueueV2, "V2")


@program("PaddingFIFOQueue")
def padding_queue_by_reference(run: Run) -> None:
    _padded(run, run.raw.PaddingFIFOQueue, "")


def _by_priority(run: Run, make: Any, suffix: str) -> None:
    raw, tf = run.raw, run.tf
    queue = make(component_types=[tf.string], shapes=[[]], capacity=9)
    ranks = np.array([5, -2, 9, 0], np.int64)
    many = getattr(raw, f"QueueEnqueueMany{suffix}")
    run.do(many(handle=queue, components=[ranks, WORDS]))
    run.do(getattr(raw, f"QueueEnqueue{suffix}")(handle=queue, components=[np.int64(1), b"one"]))
    types = [tf.int64, tf.string]
    run.get(getattr(raw, f"QueueDequeue{suffix}")(handle=queue, component_types=types))
    run.get(getattr(raw, f"QueueDequeueMany{suffix}")(handle=queue, n=np.int32(4), component_types=types))


@program("PriorityQueueV2")
def priority_queue(run: Run) -> None:
    _by_priority(run, run.raw.PriorityQueueV2, "V2")


@program("PriorityQueue")
def priority_queue_by_reference(run: Run) -> None:
    _by_priority(run, run.raw.PriorityQueue, "")


def _shuffled(run: Run, make: Any, suffix: str) -> None:
    """The order is free: the elements are compared, sorted."""
    raw, tf = run.raw, run.tf
    queue = make(component_types=[tf.int32], shapes=[[]], capacity=20, min_after_dequeue=3, seed=4, seed2=5)
    numbers = np.arange(10, dtype=np.int32)
    run.do(getattr(raw, f"QueueEnqueueMany{suffix}")(handle=queue, components=[numbers]))
    many, size = getattr(raw, f"QueueDequeueMany{suffix}"), getattr(raw, f"QueueSize{suffix}")
    first = run.do(many(handle=queue, n=np.int32(7), component_types=[tf.int32]))
    run.get(size(handle=queue))
    run.do(getattr(raw, f"QueueClose{suffix}")(handle=queue))
    rest = run.do(many(handle=queue, n=np.int32(3), component_types=[tf.int32]))  # closed: the rest may go
    run.note(np.sort(np.concatenate([np.ravel(first), np.ravel(rest)])))
    run.fails(lambda: many(handle=queue, n=np.int32(1), component_types=[tf.int32]))


@program("RandomShuffleQueueV2")
def shuffle_queue(run: Run) -> None:
    _shuffled(run, run.raw.RandomShuffleQueueV2, "V2")


@program("RandomShuffleQueue")
def shuffle_queue_by_reference(run: Run) -> None:
    _shuffled(run, run.raw.RandomShuffleQueue, "")


# -- readers -----------------------------------------------------------------------------------------------------


def _record(data: bytes) -> bytes:
    """One TFRecord, with the checksums the format defines."""
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", _masked(length)) + data + struct.pack("<I", _masked(data))


def _masked(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _read(run: Run, reader: Any, files: list[str], suffix: str) -> None:
    """Every record, one by one and several at once; counts; state; the end."""
    raw, tf = run.raw, run.tf
    make = raw.FIFOQueueV2 if suffix else raw.FIFOQueue
    queue = make(component_types=[tf.string], shapes=[[]], capacity=9)
    run.do(getattr(raw, f"QueueEnqueueMany{suffix}")(handle=queue, components=[np.array(files, object)]))
    op = {
        name: getattr(raw, f"Reader{name}{suffix}")
        for name in ("Read", "ReadUpTo", "NumRecordsProduced", "NumWorkUnitsCompleted", "SerializeState", "RestoreState", "Reset")
    }  # fmt: skip
    counts = [op["NumRecordsProduced"](reader_handle=reader), op["NumWorkUnitsCompleted"](reader_handle=reader)]

    def note(pair: Any) -> None:
        keys, values = pair  # keys begin with the file's path, which is each side's own
        run.note(np.char.replace(np.asarray(keys, "S"), str(run.folder).encode(), b"").astype(object))
        run.note(values)

    run.get(counts)
    note(run.do(op["Read"](reader_handle=reader, queue_handle=queue)))
    run.get(counts)
    note(run.do(op["ReadUpTo"](reader_handle=reader, queue_handle=queue, num_records=np.int64(2))))
    run.get(counts)
    run.fails(lambda: op["RestoreState"](reader_handle=reader, state=b"garbage"))
    # Which readers can tell their state, and what it is worth.
    run.fails(lambda: op["RestoreState"](reader_handle=reader, state=op["SerializeState"](reader_handle=reader)))
    run.do(getattr(raw, f"QueueClose{suffix}")(handle=queue))
    note(run.do(op["ReadUpTo"](reader_handle=reader, queue_handle=queue, num_records=np.int64(50))))
    for _ in range(4):
        run.fails(lambda: op["Read"](reader_handle=reader, queue_handle=queue))
    run.get(counts)
    run.do(op["Reset"](reader_handle=reader))
    run.get(counts)


_READS = ("Read", "ReadUpTo", "NumRecordsProduced", "NumWorkUnitsCompleted", "SerializeState", "RestoreState", "Reset")


def _text_files(run: Run) -> list[str]:
    return [run.file("one", b"head\nalpha\n\nbeta\r\ngamma"), run.file("two", b"head\nlast\n"), run.file("none", b"")]


@program("TextLineReaderV2", *(f"Reader{name}V2" for name in _READS))
def text_reader(run: Run) -> None:
    _read(run, run.raw.TextLineReaderV2(skip_header_lines=1), _text_files(run), "V2")


@program("TextLineReader", *(f"Reader{name}" for name in _READS), producer=25)
def text_reader_by_reference(run: Run) -> None:
    _read(run, run.raw.TextLineReader(), _text_files(run), "")


@program("WholeFileReaderV2")
def file_reader(run: Run) -> None:
    _read(run, run.raw.WholeFileReaderV2(), _text_files(run) * 2, "V2")


@program("WholeFileReader", producer=25)
def file_reader_by_reference(run: Run) -> None:
    _read(run, run.raw.WholeFileReader(), _text_files(run) * 2, "")


@program("IdentityReaderV2")
def identity_reader(run: Run) -> None:
    _read(run, run.raw.IdentityReaderV2(), ["work", "", "more", "and more", "end"], "V2")


@program("IdentityReader", producer=25)
def identity_reader_by_reference(run: Run) -> None:
    _read(run, run.raw.IdentityReader(), ["work", "", "more", "and more", "end"], "")


def _record_files(run: Run) -> list[str]:
    return [run.file("one", _record(b"abc") + _record(b"")), run.file("two", _record(b"z" * 300) * 3)]


@program("TFRecordReaderV2")
def record_reader(run: Run) -> None:
    _read(run, run.raw.TFRecordReaderV2(), _record_files(run), "V2")


@program("TFRecordReader", producer=25)
def record_reader_by_reference(run: Run) -> None:
    _read(run, run.raw.TFRecordReader(), _record_files(run), "")


_FIXED = {"header_bytes": 2, "record_bytes": 3, "footer_bytes": 1}


def _fixed_files(run: Run) -> list[str]:
    return [run.file("one", b"hhabcdef\x00\xffg1"), run.file("two", b"HHxyz?")]


@program("FixedLengthRecordReaderV2")
def fixed_reader(run: Run) -> None:
    _read(run, run.raw.FixedLengthRecordReaderV2(**_FIXED), _fixed_files(run), "V2")
