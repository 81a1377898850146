"""The messages that carry tensors, between kernel values and bytes (`formats/wire_tensors.py`)."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from stoker._src.base.errors import InvalidArgumentError, ResourceExhaustedError
from stoker._src.formats import wire_tensors as wire
from stoker._src.formats.protos import ExecutorOpts
from stoker._src.formats.varints import encode_varint
from stoker._src.ops.control_flow.switches import DEAD
from stoker._src.ops.support.values import from_numpy, to_numpy
from stoker._src.runtime.memory import empty_bytes
from stoker._src.runtime.plan.emit import copied


def _array(value: Any) -> np.ndarray:
    array = to_numpy(value)
    if not isinstance(array, np.ndarray):
        raise InvalidArgumentError(None, None, f"A {type(value).__name__} cannot be sent to another process.")
    return array


class _Writer:
    """Collects the chunks of a message."""

    def __init__(self, *chunks: bytes) -> None:
        self._chunks: list[wire.Chunk] = list(chunks)
        self._size = wire.size_of(self._chunks)

    def add(self, *chunks: wire.Chunk) -> None:
        self._chunks += chunks
        self._size += wire.size_of(list(chunks))

    def named(self, number: int, name: str, value: Any) -> None:
        self.add(*wire.named_tensor_chunks(number, name, _array(value), self._size))

    def tensor(self, number: int, value: Any) -> None:
        self.add(*wire.tensor_field_chunks(number, _array(value), self._size))

    def message(self, number: int, data: bytes) -> None:
        self.add(wire.tag(number), encode_varint(len(data)), data)

    def bytes(self) -> bytes:
        return b"".join(self._chunks)


@dataclass
class Response:
    """A response with tensors, or with an error."""

    values: dict[str, Any] = field(default_factory=dict)
    code: int = 0
    message: str = ""
    metadata: bytes = b""
    step_stats: bytes = b""


# -- RunStep -----------------------------------------------------------------------------------------------------


class StepNames:
    """The names of a kind of run, and the start of its requests."""

    def __init__(self, handle: str, feeds: list[str], fetches: list[str], targets: list[str]) -> None:
        self.feeds, self.fetches = feeds, fetches
        self.start = b"".join(
            (
                wire.text_field(1, handle),
                *(wire.text_field(3, name) for name in fetches),
                *(wire.text_field(4, name) for name in targets),
                wire.int_field(7, 1),  # errors in the body, where they are not limited in size
            )
        )


def run_step_request(names: StepNames, values: list[Any], options: Any, partial_run: str = "") -> bytes:
    writer = _Writer(names.start)
    if options is not None:
        writer.message(5, options.SerializeToString())
    if partial_run:
        writer.add(wire.text_field(6, partial_run))
    for name, value in zip(names.feeds, values):
        writer.named(2, name, value)
    return writer.bytes()


@dataclass
class RunStep:
    """A RunStepRequest."""

    handle: str = ""
    feeds: list[str] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)
    fetches: list[str] = field(default_factory=list)
    targets: list[str] = field(default_factory=list)
    options: bytes = b""
    partial_run: str = ""
    errors_in_body: bool = False


def read_run_step_request(data: bytes) -> RunStep:
    found = RunStep()
    for number, kind, at, end in wire.fields(data):
        if kind == 0:
            if number == 7:
                found.errors_in_body = bool(at)
        elif number == 1:
            found.handle = wire.read_text(data, at, end)
        elif number == 2:
            name, array = wire.read_named_tensor(data, at, end)
            found.feeds.append(name)
            found.values.append(from_numpy(array))
        elif number == 3:
            found.fetches.append(wire.read_text(data, at, end))
        elif number == 4:
            found.targets.append(wire.read_text(data, at, end))
        elif number == 5:
            found.options = data[at:end]
        elif number == 6:
            found.partial_run = wire.read_text(data, at, end)
    return found


def run_step_response(names: list[str], values: list[Any], metadata: Any = None) -> bytes:
    writer = _Writer()
    if metadata is not None:
        writer.message(2, metadata.SerializeToString())
    for name, value in zip(names, values):
        writer.named(1, name, value)
    return writer.bytes()


def run_step_error(code: int, message: str) -> bytes:
    return wire.int_field(3, code) + wire.text_field(4, message)


def read_run_step_response(data: bytes) -> Response:
    found = Response()
    for number, kind, at, end in wire.fields(data):
        if kind == 0:
            if number == 3:
                found.code = at
        elif number == 1:
            name, array = wire.read_named_tensor(data, at, end)
            found.values[name] = from_numpy(array)
        elif number == 2:
            found.metadata = data[at:end]
        elif number == 4:
            found.message = wire.read_text(data, at, end)
    return found


# -- RunCallable -------------------------------------------------------------------------------------------------


def read_run_callable_request(data: bytes) -> tuple[str, int, list[Any]]:
    handle, number_of, values = "", 0, []
    for number, kind, at, end in wire.fields(data):
        if kind == 0:
            if number == 2:
                number_of = at
        elif number == 1:
            handle = wire.read_text(data, at, end)
        elif number == 3:
            values.append(from_numpy(wire.read_tensor(data, at, end)))
    return handle, number_of, values


def run_callable_response(values: list[Any], metadata: Any = None) -> bytes:
    writer = _Writer()
    if metadata is not None:
        writer.message(2, metadata.SerializeToString())
    for value in values:
        writer.tensor(1, value)
    return writer.bytes()


# -- RunGraph ----------------------------------------------------------------------------------------------------


@dataclass
class RunGraph:
    """A RunGraphRequest."""

    handle: str = ""
    created: bool = False
    graph_handle: str = ""
    step_id: int = 0
    options: bytes = b""
    feeds: dict[str, Any] = field(default_factory=dict)
    fetches: list[str] = field(default_factory=list)
    is_partial: bool = False
    errors_in_body: bool = False


def run_graph_request(
    handle: str, graph_handle: str, step_id: int, feeds: dict[str, Any], fetches: list[str], *, traced: bool
) -> bytes:
    writer = _Writer(
        wire.text_field(8, handle),
        wire.int_field(10, 1),
        wire.text_field(1, graph_handle),
        wire.int_field(2, step_id),
        wire.int_field(9, 1),
        *(wire.text_field(4, key) for key in fetches),
    )
    if traced:
        writer.message(5, ExecutorOpts(record_timeline=True).SerializeToString())
    for key, value in feeds.items():
        writer.named(3, key, value)
    return writer.bytes()


def read_run_graph_request(data: bytes) -> RunGraph:
    found = RunGraph()
    for number, kind, at, end in wire.fields(data):
        if kind == 0:
            if number == 2:
                found.step_id = at - (1 << 64) if at >> 63 else at
            elif number == 6:
                found.is_partial = bool(at)
            elif number == 9:
                found.errors_in_body = bool(at)
            elif number == 10:
                found.created = bool(at)
        elif number == 1:
            found.graph_handle = wire.read_text(data, at, end)
        elif number == 3:
            key, array = wire.read_named_tensor(data, at, end)
            found.feeds[key] = from_numpy(array)
        elif number == 4:
            found.fetches.append(wire.read_text(data, at, end))
        elif number == 5:
            found.options = data[at:end]
        elif number == 8:
            found.handle = wire.read_text(data, at, end)
    return found


def run_graph_response(keys: list[str], values: list[Any], step_stats: Any = None) -> bytes:
    writer = _Writer()
    if step_stats is not None:
        writer.message(2, step_stats.SerializeToString())
    for key, value in zip(keys, values):
        writer.named(1, key, value)
    return writer.bytes()


def run_graph_error(code: int, message: str) -> bytes:
    return wire.int_field(5, code) + wire.text_field(6, message)


def has_error(data: bytes) -> bool:
    """Whether a RunGraphResponse has an error instead of values."""
    return any(number == 5 and kind == 0 and at for number, kind, at, _ in wire.fields(data))


def read_run_graph_response(data: bytes) -> Response:
    found = Response()
    for number, kind, at, end in wire.fields(data):
        if kind == 0:
            if number == 5:
                found.code = at
        elif number == 1:
            key, array = wire.read_named_tensor(data, at, end)
            found.values[key] = from_numpy(array)
        elif number == 2:
            found.step_stats = data[at:end]
        elif number == 6:
            found.message = wire.read_text(data, at, end)
    return found


# -- values between workers --------------------------------------------------------------------------------------


def recv_tensor_response(value: Any) -> bytes:
    if value is DEAD:
        return wire.int_field(2, 1)
    writer = _Writer()
    writer.tensor(1, value)
    return writer.bytes()


def read_recv_tensor_response(data: bytes) -> Any:
    """Returns the value; DEAD if it belongs to a branch that was not taken."""
    value, is_dead = None, False
    for number, kind, at, end in wire.fields(data):
        if number == 1 and kind == 2:
            value = (at, end)
        elif number == 2 and kind == 0:
            is_dead = bool(at)
    if is_dead:
        return DEAD
    if value is None:
        raise InvalidArgumentError(None, None, "Malformed message: a RecvTensorResponse without a tensor.")
    return from_numpy(wire.read_tensor(data, *value))


CHUNK_BYTES = 1 << 20
"""The size of the messages that carry a large value. The allocator recycles blocks of this size, and copies of them stay in the cache."""
_LARGE = 4 << 20  # bytes from which a value is streamed


def is_streamed(value: Any) -> bool:
    """Whether gRPC carries a value in many messages instead of one."""
    return isinstance(value, torch.Tensor) and value.nbytes >= _LARGE and value.dtype != torch.bool


def streamed(key: str, value: torch.Tensor) -> Iterator[bytes]:
    """Yields the messages of a value: what it is, then its elements."""
    array = np.ascontiguousarray(to_numpy(value))
    yield wire.text_field(1, key) + wire.header(array)
    data = array.reshape(-1).view(np.uint8).data
    for at in range(0, len(data), CHUNK_BYTES):
        yield bytes(data[at : at + CHUNK_BYTES])


def detached(value: Any) -> Any:
    """Returns a copy of a value that is to leave this task, which does not share the memory of a variable."""
    if not isinstance(value, torch.Tensor) or not value.is_cpu or not is_streamed(value):
        return copied(value)
    return empty_bytes(value.nbytes).view(value.dtype).view(value.shape).copy_(value)


def stream_start(step_id: int) -> bytes:
    return wire.int_field(1, step_id) or b"\x08\x00"


def read_stream_start(data: bytes) -> int:
    for number, kind, at, _ in wire.fields(data):
        if number == 1 and kind == 0:
            return at - (1 << 64) if at >> 63 else at
    raise InvalidArgumentError(None, None, "Malformed message: a stream of tensors without a step.")


def read_streamed(first: bytes, chunks: Iterator[bytes], most_bytes: int) -> tuple[str, Any]:
    """Returns the key and the value whose first message is `first`, with the elements from `chunks`.

    Raises:
        InvalidArgumentError: the messages are malformed, or end early.
        ResourceExhaustedError: the value is larger than `most_bytes`, if that is positive, or than the memory.
    """
    key, dtype, dims = wire.read_header(first)
    size = math.prod(dims) * dtype.itemsize
    if 0 < most_bytes < size:
        raise ResourceExhaustedError(
            None, None, f"The value of {key:.200} has {size} bytes; this server accepts at most {most_bytes}."
        )
    try:
        buffer = empty_bytes(size)  # pages are claimed as they are filled, not when they are asked for
    except MemoryError:
        raise ResourceExhaustedError(None, None, f"There is no memory for {size} bytes of {key:.200}.") from None
    view = buffer.numpy().data
    at = 0
    while at < size:
        chunk = next(chunks, None)
        if not chunk or len(chunk) > size - at:
            raise InvalidArgumentError(
                None, None, f"Malformed message: the elements of {key:.200} do not fit its shape."
            )
        view[at : at + len(chunk)] = chunk
        at += len(chunk)
    return key, from_numpy(buffer.numpy().view(dtype).reshape(dims))


def send_tensors_request(step_id: int, values: dict[str, Any]) -> bytes:
    writer = _Writer(wire.int_field(1, step_id))
    for key, value in values.items():
        writer.named(2, key, value)
    return writer.bytes()


def read_send_tensors_request(data: bytes) -> tuple[int, dict[str, Any]]:
    step_id, values = 0, {}
    for number, kind, at, end in wire.fields(data):
        if number == 1 and kind == 0:
            step_id = at - (1 << 64) if at >> 63 else at
        elif number == 2 and kind == 2:
            key, array = wire.read_named_tensor(data, at, end)
            values[key] = from_numpy(array)
    return step_id, values


# -- links -------------------------------------------------------------------------------------------------------


def link_response(port: int, token: bytes) -> bytes:
    return wire.int_field(1, port) + wire.tag(2) + encode_varint(len(token)) + token


def read_link_response(data: bytes) -> tuple[int, bytes]:
    port, token = 0, b""
    for number, kind, at, end in wire.fields(data):
        if number == 1 and kind == 0:
            port = at & 0xFFFF
        elif number == 2 and kind == 2:
            token = data[at:end]
    return port, token


@functools.lru_cache(maxsize=1024)
def link_run_head(
    handle: str, graph_handle: str, master: str, fetches: tuple[str, ...], timeout_in_ms: int, traced: bool
) -> bytes:
    """Returns the head of a request to run a part."""
    return b"".join(
        (
            wire.text_field(8, handle),
            wire.text_field(1, graph_handle),
            wire.text_field(7, master),
            *(wire.text_field(4, key) for key in fetches),
            wire.int_field(9, timeout_in_ms),
            wire.int_field(10, int(traced)),
        )
    )


def link_result_head(step_stats: Any = None) -> bytes:
    if step_stats is None:
        return b""
    data = step_stats.SerializeToString()
    return wire.tag(2) + encode_varint(len(data)) + data


def link_error_head(code: int, message: str) -> bytes:
    data = message.encode()
    return wire.int_field(5, code) + wire.tag(6) + encode_varint(len(data)) + data
