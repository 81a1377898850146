"""A link: a TCP connection between two stoker tasks, for the calls and values of a step.

A gRPC call from Python costs as much as the arithmetic of a small step. A step that goes over a link needs four frames for each task: the
request to run a part with its feeds, the values that the part sends to the master's own part, those that come back, and the result. Values between
two tasks that are not the master's go over a link of the sender, and are confirmed, so that the sender's part does not end before they have
arrived. Everything else, and every call to TensorFlow's tasks, goes over gRPC.

A link is opened after the first contact over gRPC, which tells its port and a token. It has no encryption, so a server with TLS offers none. If
it cannot be opened, gRPC is used. The end of a link fails the calls that are under way on it. A peer that vanishes without a
word is noticed by TCP's keepalive within `SECONDS_UNTIL_LOST`.
"""

from __future__ import annotations

import hmac
import os
import queue
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import numpy as np

from stoker._src.base import tf_logging
from stoker._src.base.errors import (
    CancelledError,
    DeadlineExceededError,
    InternalError,
    InvalidArgumentError,
    OpError,
    ResourceExhaustedError,
    UnavailableError,
)
from stoker._src.distributed.statuses import error_of
from stoker._src.formats import link_frames as frames
from stoker._src.formats import wire_tensors as wire
from stoker._src.formats.link_frames import (
    ASKS_FOR_RECEIPT,
    CANCEL,
    MOST_HEAD_BYTES,
    PREFIX,
    RECEIPT,
    RESULT,
    RUN,
    VALUES,
    Head,
)
from stoker._src.ops.support.values import from_numpy, to_numpy
from stoker._src.runtime.memory import empty_bytes

SECONDS_UNTIL_LOST = 30
_SECONDS_TO_OPEN = 10.0
_GREETING = b"stoker link 2\n"
_TOKEN_BYTES = 32
_WELCOME = b"\x01"
_BUFFER_BYTES = 1 << 16
_MOST_CHUNKS = 512  # per system call
_DISCARDED_BYTES = 1 << 20
_ASKING = wire.int_field(ASKS_FOR_RECEIPT, 1)


def offered() -> bool:
    """Whether this process uses links: STOKER_LINKS=0 turns them off."""
    return os.environ.get("STOKER_LINKS", "1") != "0"


def _tune(connection: socket.socket) -> None:
    connection.settimeout(None)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", SECONDS_UNTIL_LOST // 3),
        ("TCP_KEEPINTVL", SECONDS_UNTIL_LOST // 6),
        ("TCP_KEEPCNT", 4),
        ("TCP_USER_TIMEOUT", SECONDS_UNTIL_LOST * 1000),
    ):
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


# -- calls -------------------------------------------------------------------------------------------------------


class LinkCall:
    """A request to run a part, on its way over a link."""

    def __init__(
        self,
        link: Link,
        step: int,
        keys: list[str],
        timeout_in_ms: int,
        trace: Any,
        on_error: Callable[[OpError], None],
    ) -> None:
        self.link = link
        self._step, self._keys, self._trace, self._on_error = step, keys, trace, on_error
        self._timeout_in_ms = timeout_in_ms
        self._deadline = time.monotonic() + timeout_in_ms / 1000 if timeout_in_ms else None
        self._done = threading.Lock()
        self._done.acquire()
        self._guard = threading.Lock()
        self._ended = False
        self._values: dict[str, Any] = {}
        self.error: OpError | None = None

    def end(self, values: dict[str, Any], error: OpError | None = None) -> bool:
        """Ends the call. Returns whether it had not ended before."""
        with self._guard:
            if self._ended:
                return False
            self._ended = True
            self._values, self.error = values, error
        self._done.release()
        return True

    def fail(self, error: OpError) -> None:
        if self.end({}, error):
            self._on_error(error)

    def received(self, head: Head, values: dict[str, Any]) -> None:
        code = head.numbers.get(5, 0)
        if code:
            # A failed part must stop the others at once, also while the master waits for one of them.
            self.fail(error_of(code, f"From {self.link.where}:\n{head.text(6)}"))
            return
        missing = [key for key in self._keys if key not in values]
        if missing:
            self.fail(InternalError(None, None, f"{self.link.where} did not return the value of {missing[0]}"))
            return
        if self._trace is not None and 2 in head.raw:
            self._trace.MergeFromString(head.raw[2])
        self.end(values)

    def cancel(self, error: OpError | None = None) -> None:
        if self.end({}, CancelledError(None, None, f"The call to {self.link.where} was cancelled.")):
            self.link.cancel(self._step)

    def result(self) -> list[Any]:
        left = -1.0 if self._deadline is None else max(0.0, self._deadline - time.monotonic())
        if not self._done.acquire(timeout=left):
            late = DeadlineExceededError(
                None, None, f"{self.link.where} did not finish in {self._timeout_in_ms} ms (timeout_in_ms)"
            )
            if self.end({}, late):
                self.link.cancel(self._step)
        if self.error is not None:
            raise self.error
        return [self._values[key] for key in self._keys]


class Receipt:
    """Waits until values that were sent have arrived."""

    def __init__(self, on_error: Callable[[OpError], None]) -> None:
        self._on_error = on_error
        self._guard = threading.Lock()
        self._done = threading.Event()
        self._error: OpError | None = None

    def end(self, error: OpError | None = None) -> None:
        with self._guard:
            if self._done.is_set():
                return
            self._error = error
            self._done.set()
        if error is not None:
            self._on_error(error)

    def wait(self) -> None:
        """Raises:
        OpError: the link or the step ended before.
        """
        self._done.wait()
        if self._error is not None:
            raise self._error


class Running:
    """A request that is being run for the other side."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._abort: Callable[[OpError], None] | None = None
        self._error: OpError | None = None

    def watch(self, abort: Callable[[OpError], None]) -> None:
        with self._guard:
            self._abort, error = abort, self._error
        if error is not None:
            abort(error)

    def cancel(self, error: OpError) -> None:
        with self._guard:
            self._error, abort = error, self._abort
        if abort is not None:
            abort(error)


# -- links -------------------------------------------------------------------------------------------------------


class _Input:
    """Reads a socket through a buffer, so that a small frame takes one system call."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._buffer = memoryview(bytearray(_BUFFER_BYTES))
        self._at = self._end = 0

    def take(self, size: int) -> bytes:
        """Returns the next bytes.

        Raises:
            ConnectionError: the connection ended.
        """
        if size > _BUFFER_BYTES:
            data = bytearray(size)
            self.fill(memoryview(data))
            return bytes(data)
        if self._end - self._at < size:
            rest = self._end - self._at
            self._buffer[:rest] = self._buffer[self._at : self._end]
            self._at, self._end = 0, rest
            while self._end < size:
                count = self._connection.recv_into(self._buffer[self._end :])
                if not count:
                    raise ConnectionError("the connection was closed")
                self._end += count
        data = bytes(self._buffer[self._at : self._at + size])
        self._at += size
        return data

    def fill(self, block: memoryview) -> None:
        """Reads the next bytes into a block."""
        buffered = min(len(block), self._end - self._at)
        block[:buffered] = self._buffer[self._at : self._at + buffered]
        self._at += buffered
        while buffered < len(block):
            count = self._connection.recv_into(block[buffered:], 0, socket.MSG_WAITALL)
            if not count:
                raise ConnectionError("the connection was closed")
            buffered += count

    def skip(self, size: int) -> None:
        block = memoryview(bytearray(min(size, _DISCARDED_BYTES)))
        while size:
            part = min(size, len(block))
            self.fill(block[:part])
            size -= part


class FrameReader:
    """Reads frames from a socket."""

    def __init__(self, connection: socket.socket, most_bytes: int) -> None:
        self._input = _Input(connection)
        self._heads = frames.Heads()
        self._most_bytes = most_bytes

    def next(self) -> tuple[int, int, Head, dict[str, Any], OpError | None]:
        """Returns kind, step, head and values of the next frame, or the error with which its values are refused.

        Raises:
            ConnectionError: the connection ended.
            InvalidArgumentError: the frame is malformed.
            ResourceExhaustedError: there is no memory for it.
        """
        kind, step, head_size, body_size = PREFIX.unpack(self._input.take(PREFIX.size))
        if head_size > MOST_HEAD_BYTES:
            raise InvalidArgumentError(None, None, f"Malformed frame: a head of {head_size} bytes.")
        head = self._heads.read(self._input.take(head_size)) if head_size else _NO_HEAD
        if head.size != body_size:
            raise InvalidArgumentError(
                None, None, f"Malformed frame: a body of {body_size} bytes for values of {head.size} bytes."
            )
        if 0 < self._most_bytes < body_size:
            self._input.skip(body_size)
            refused = ResourceExhaustedError(
                None,
                None,
                f"Received message larger than max ({body_size} vs. {self._most_bytes}): the values of a step.",
            )
            return kind, step, head, {}, refused
        return kind, step, head, self._values(head) if head.places else {}, None

    def _values(self, head: Head) -> dict[str, Any]:
        small = self._block(head.small)
        large = (self._block(place.size) for place in head.places if place.is_large)
        return {key: from_numpy(array) for key, array in frames.arrays(head, small, large).items()}

    def _block(self, size: int) -> memoryview:
        try:
            # Pages are claimed as they are filled, not when they are asked for.
            block = empty_bytes(size).numpy().data if size >= frames.LARGE else memoryview(bytearray(size))
        except MemoryError:
            raise ResourceExhaustedError(None, None, f"There is no memory for a value of {size} bytes.") from None
        self._input.fill(block)
        return block


_NO_HEAD = Head()


class Link:
    """One end of a link. Any thread may send; one thread at a time reads, and passes that on before it runs a request."""

    def __init__(
        self,
        connection: socket.socket,
        where: str,
        *,
        most_bytes: int,
        on_values: Callable[[int, dict[str, Any]], None],
        on_refused: Callable[[int, OpError], None],
        on_run: Callable[[Link, int, Head, dict[str, Any], Running, OpError | None], None] | None = None,
    ) -> None:
        """Args:
        connection: the connected socket, which belongs to the link.
        where: the other side, in error messages.
        most_bytes: the largest body that is accepted, or -1.
        on_values: takes the values of a step.
        on_refused: is told that values of a step were refused.
        on_run: runs a request; None if the other side may not request anything.
        """
        _tune(connection)
        self._connection, self.where = connection, where
        self._on_values, self._on_refused, self._on_run = on_values, on_refused, on_run
        self._reader = FrameReader(connection, most_bytes)
        self._sending = threading.Lock()
        self._guard = threading.Lock()
        self._calls: dict[int, LinkCall] = {}
        self._receipts: dict[int, list[Receipt]] = {}  # by step, in the order of the values
        self._held: dict[int, list[wire.Chunk]] = {}  # requests that leave with the first values of their step
        self._running: dict[int, Running] = {}
        self._idle = 0  # threads that wait for their turn to read
        self._turns: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self.on_close: Callable[[Link], None] | None = None
        self.closed = False
        self._start_reader()

    # -- sending -------------------------------------------------------------------------------------------------

    def _send(self, chunks: list[wire.Chunk]) -> None:
        """Raises:
        UnavailableError: the link has ended.
        """
        with self._sending:
            failed = self._sent(chunks)
        if failed is not None:
            self.close(self._lost(failed))
            raise self._lost(failed) from None

    def _sent(self, chunks: list[wire.Chunk]) -> OSError | None:
        """Writes chunks to the socket. Returns the error that ended it."""
        try:
            while chunks:
                sent = self._connection.sendmsg(chunks[:_MOST_CHUNKS])
                chunks = _unsent(chunks, sent)
        except OSError as error:
            return error
        return None

    def _lost(self, error: Exception) -> UnavailableError:
        reason = getattr(error, "strerror", None) or str(error)
        return UnavailableError(None, None, f"Lost the connection to {self.where}: {reason}")

    def send_values(self, step: int, values: dict[str, Any]) -> None:
        """Sends values of a step to the other side's part, and the request to run it if that was held back."""
        chunks = frames.encode(VALUES, step, b"", _contents(values.items()))
        self._send(chunks + self._taken(step) if self._held else chunks)

    def deliver(self, step: int, values: dict[str, Any], on_error: Callable[[OpError], None]) -> Receipt:
        """Sends values of a step. `on_error` is called if the link ends before they have arrived."""
        receipt = Receipt(on_error)
        chunks = frames.encode(VALUES, step, _ASKING, _contents(values.items()))
        with self._sending:  # the order of receipts is that of the frames
            with self._guard:
                if self.closed:
                    raise UnavailableError(None, None, f"Lost the connection to {self.where}.")
                self._receipts.setdefault(step, []).append(receipt)
            failed = self._sent(chunks)
        if failed is not None:
            self.close(self._lost(failed))  # ends the receipt
        return receipt

    def _taken(self, step: int) -> list[wire.Chunk]:
        with self._guard:
            return self._held.pop(step, [])

    def release(self, step: int) -> None:
        """Sends the request to run a part if it is still held back."""
        chunks = self._taken(step)
        if chunks:
            self._send(chunks)

    def run(
        self,
        step: int,
        head: bytes,
        feeds: dict[str, Any],
        keys: list[str],
        timeout_in_ms: int,
        trace: Any,
        on_error: Callable[[OpError], None],
        *,
        held: bool = False,
    ) -> LinkCall:
        """Requests that the other side runs a part. A request that is `held` leaves with the first values of its step, or by `release`."""
        call = LinkCall(self, step, keys, timeout_in_ms, trace, on_error)
        with self._guard:
            if self.closed:
                raise UnavailableError(None, None, f"Lost the connection to {self.where}.")
            self._calls[step] = call
        chunks = frames.encode(RUN, step, head, _contents(feeds.items()))
        if held:
            with self._guard:
                self._held[step] = chunks
        else:
            self._send(chunks)
        return call

    def cancel(self, step: int) -> None:
        with self._guard:
            self._calls.pop(step, None)
            if self._held.pop(step, None) is not None:
                return  # the other side does not know of it
        with suppress(UnavailableError):
            self._send(frames.encode(CANCEL, step, b""))

    def respond(
        self, step: int, head: bytes, keys: list[str], values: list[Any], sent: dict[str, Any] | None = None
    ) -> None:
        """Sends the result of a request, after values that the other side's part waits for, unless the other side is gone."""
        with suppress(UnavailableError):
            chunks = frames.encode(VALUES, step, b"", _contents(sent.items())) if sent else []
            self._send(chunks + frames.encode(RESULT, step, head, _contents(zip(keys, values))))

    # -- reading -------------------------------------------------------------------------------------------------

    def _start_reader(self) -> None:
        threading.Thread(target=self._read, daemon=True, name=f"link to {self.where}").start()

    def _read(self) -> None:
        while True:
            try:
                if not self._read_frame():
                    continue
            except (OSError, OpError) as error:
                self.close(error if isinstance(error, OpError) else self._lost(error))
                return
            # A request was run. Another thread has been reading since, so this one waits for its turn.
            with self._guard:
                if self.closed:
                    return
                self._idle += 1
            if not self._turns.get():
                return

    def _pass_on(self) -> None:
        """Lets another thread go on reading."""
        with self._guard:
            if self._idle:
                self._idle -= 1
                self._turns.put(True)
                return
        self._start_reader()

    def _read_frame(self) -> bool:
        """Handles the next frame. Returns whether this thread has passed on the reading."""
        kind, step, head, values, refused = self._reader.next()
        if kind == VALUES:
            if refused is None:
                self._on_values(step, values)
            else:
                self._on_refused(step, refused)
            if ASKS_FOR_RECEIPT in head.numbers:
                self._send(frames.encode(RECEIPT, step, b""))
        elif kind == RECEIPT:
            with self._guard:
                waiting = self._receipts.get(step, [])
                receipt = waiting.pop(0) if waiting else None
                if not waiting:
                    self._receipts.pop(step, None)
            if receipt is not None:
                receipt.end()
        elif kind == RESULT:
            with self._guard:
                call = self._calls.pop(step, None)
            if call is not None and refused is None:
                call.received(head, values)
            elif call is not None and refused is not None:
                call.fail(refused)
        elif kind == CANCEL:
            running = self._running.get(step)
            if running is not None:
                running.cancel(CancelledError(None, None, "RunGraph was cancelled."))
        elif kind == RUN and self._on_run is not None:
            self._run(self._on_run, step, head, values, refused)
            return True
        else:
            raise InvalidArgumentError(None, None, f"Malformed frame: kind {kind}.")
        return False

    def _run(
        self,
        handler: Callable[[Link, int, Head, dict[str, Any], Running, OpError | None], None],
        step: int,
        head: Head,
        values: dict[str, Any],
        refused: OpError | None,
    ) -> None:
        running = Running()
        with self._guard:
            self._running[step] = running
        self._pass_on()
        try:
            handler(self, step, head, values, running, refused)
        finally:
            with self._guard:
                self._running.pop(step, None)

    # -- the end -------------------------------------------------------------------------------------------------

    def close(self, error: OpError | None = None) -> None:
        """Ends the link, the calls on it and the requests that are being run for the other side."""
        with self._guard:
            if self.closed:
                return
            self.closed = True
            calls, self._calls = list(self._calls.values()), {}
            receipts = [receipt for waiting in self._receipts.values() for receipt in waiting]
            self._receipts.clear()
            self._held.clear()
            running = list(self._running.values())
            for _ in range(self._idle):
                self._turns.put(False)
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()
        if self.on_close is not None:
            self.on_close(self)
        for receipt in receipts:
            receipt.end(error or CancelledError(None, None, f"The connection to {self.where} was closed."))
        for call in calls:
            call.fail(error or CancelledError(None, None, f"The connection to {self.where} was closed."))
        for each in running:
            each.cancel(CancelledError(None, None, f"The connection to {self.where}, which asked for it, ended."))


def _unsent(chunks: list[wire.Chunk], sent: int) -> list[wire.Chunk]:
    for index, chunk in enumerate(chunks):
        if sent < len(chunk):
            return [memoryview(chunk)[sent:], *chunks[index + 1 :]] if sent else chunks[index:]
        sent -= len(chunk)
    return []


def _contents(values: Iterable[tuple[str, Any]]) -> list[frames.Value]:
    found: list[frames.Value] = []
    for key, value in values:
        array = to_numpy(value)
        if not isinstance(array, np.ndarray):
            raise InvalidArgumentError(None, None, f"A {type(value).__name__} cannot be sent to another process.")
        found.append(frames.value_of(key, array))
    return found


# -- opening -----------------------------------------------------------------------------------------------------


def open_link(host: str, port: int, token: bytes, where: str, **handlers: Any) -> Link:
    """Connects to a listener.

    Raises:
        OSError: it cannot be reached, or does not accept the token.
    """
    connection = socket.create_connection((host, port), timeout=_SECONDS_TO_OPEN)
    try:
        connection.sendall(_GREETING + token)
        if connection.recv(1) != _WELCOME:
            raise ConnectionError("the other side does not accept the link")
        return Link(connection, where, **handlers)
    except BaseException:
        connection.close()
        raise


class LinkListener:
    """Accepts links at a port of its own, on the address of the server."""

    def __init__(self, host: str, accept: Callable[[socket.socket, str], Link]) -> None:
        """`accept` makes the link of a connection.

        Raises:
            OSError: there is no port.
        """
        self._accept = accept
        self.token = secrets.token_bytes(_TOKEN_BYTES)
        family, kind, protocol, _, address = socket.getaddrinfo(
            host.strip("[]"), 0, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        self._socket = socket.socket(family, kind, protocol)
        try:
            self._socket.bind(address)
            self._socket.listen(128)
        except OSError:
            self._socket.close()
            raise
        self.port: int = self._socket.getsockname()[1]
        self._guard = threading.Lock()
        self._links: set[Link] = set()
        self._closed = False
        threading.Thread(target=self._serve, daemon=True, name="links").start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError as error:
                if self._closed:
                    return
                tf_logging.warning("Accepting a link failed: %s", error)
                continue
            threading.Thread(target=self._greet, args=(connection,), daemon=True, name="link greeting").start()

    def _greet(self, connection: socket.socket) -> None:
        """Accepts a connection that knows the token, and closes any other."""
        with suppress(OSError):
            connection.settimeout(_SECONDS_TO_OPEN)
            expected = _GREETING + self.token
            greeting = connection.recv(len(expected), socket.MSG_WAITALL)
            if hmac.compare_digest(greeting, expected):
                connection.sendall(_WELCOME)
                host, port = connection.getpeername()[:2]
                link = self._accept(connection, f"{host}:{port}")
                link.on_close = self._forget
                with self._guard:
                    if not self._closed and not link.closed:
                        self._links.add(link)
                        return
                link.close()
                return
        connection.close()

    def _forget(self, link: Link) -> None:
        with self._guard:
            self._links.discard(link)

    def close(self) -> None:
        with self._guard:
            if self._closed:
                return
            self._closed = True
            links = list(self._links)
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes `accept`
        self._socket.close()
        for link in links:
            link.close()
