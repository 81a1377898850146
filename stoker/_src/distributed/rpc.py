"""gRPC as distributed sessions use it: channels, errors, and the calls to masters and workers."""

from __future__ import annotations

import math
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

os.environ.setdefault("GRPC_VERBOSITY", "ERROR")  # gRPC logs every connection that ends

import grpc

from stoker._src.base import tf_logging
from stoker._src.base.errors import (
    CancelledError,
    DeadlineExceededError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    UnavailableError,
    UnimplementedError,
)
from stoker._src.distributed import links, messages
from stoker._src.distributed.links import Link, LinkCall
from stoker._src.distributed.rendezvous import StepTable
from stoker._src.distributed.statuses import error_of
from stoker._src.formats import protos

MASTER, WORKER, PEER = "tensorflow.MasterService", "tensorflow.WorkerService", "stoker.PeerService"
SERVER_KIND = ("x-stoker", "1")
"""The metadata by which a client of a master recognizes stoker's server."""
_CONNECT_SECS = 60.0
_OPTIONS = [
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 10_000),  # the time that an attempt to connect may take
    ("grpc.max_reconnect_backoff_ms", 2000),
    ("grpc.enable_http_proxy", 0),
]
# TensorFlow's servers end a connection that pings more often than every five minutes while nothing else is sent.
_SLOW_PINGS = [("grpc.keepalive_time_ms", 310_000), ("grpc.keepalive_timeout_ms", 20_000)]
_FAST_PINGS = [
    ("grpc.keepalive_time_ms", links.SECONDS_UNTIL_LOST * 500),
    ("grpc.keepalive_timeout_ms", links.SECONDS_UNTIL_LOST * 500),
    ("grpc.http2.max_pings_without_data", 0),
]
_SECONDS_TO_ANSWER = 10.0
_SECONDS_WITHOUT_LINK = 60.0  # after one could not be opened


# -- errors ------------------------------------------------------------------------------------------------------


def from_rpc_error(error: Any, where: str) -> OpError:
    """Returns the error that a call ended with."""
    if isinstance(error, grpc.FutureCancelledError):
        return CancelledError(None, None, f"The call to {where} was cancelled.")
    code = error.code()
    details = error.details() or ""
    if code == grpc.StatusCode.UNAVAILABLE:
        details = f"{details} ({where} does not respond)"
    return error_of(code.value[0], details)


# -- channels ----------------------------------------------------------------------------------------------------


def tls_files() -> dict[str, bytes | None]:
    """Returns the contents of the files that STOKER_TLS_CERT, STOKER_TLS_KEY and STOKER_TLS_CA name."""
    found: dict[str, bytes | None] = {}
    for name in ("CERT", "KEY", "CA"):
        path = os.environ.get(f"STOKER_TLS_{name}")
        if path is None:
            found[name] = None
            continue
        try:
            with open(path, "rb") as file:
                found[name] = file.read()
        except OSError as error:
            raise NotFoundError(None, None, f"STOKER_TLS_{name}: {path}: {error.strerror}") from error
    return found


def open_channel(address: str, protocol: str, *, is_stoker: bool = False) -> Any:
    """Opens a channel. A peer that vanishes during a call is noticed sooner if it is known to be stoker's."""
    options = [*_OPTIONS, *(_FAST_PINGS if is_stoker else _SLOW_PINGS)]
    if protocol == "grpc+tls":
        files = tls_files()
        credentials = grpc.ssl_channel_credentials(files["CA"], files["KEY"], files["CERT"])
        return grpc.secure_channel(address, credentials, options=options)
    return grpc.insecure_channel(address, options=options)


class Connection:
    """A channel to one server, and its methods by name. Requests and responses are bytes."""

    def __init__(self, address: str, protocol: str = "grpc") -> None:
        self.address, self._protocol = address, protocol
        self._channel = open_channel(address, protocol)
        self._channels = [self._channel]
        self._methods: dict[str, Any] = {}

    def recognize(self) -> None:
        """Is told that the server is stoker's. Calls from here on notice sooner when it vanishes."""
        if len(self._channels) == 1:
            self._channel = open_channel(self.address, self._protocol, is_stoker=True)
            self._channels.append(self._channel)  # calls may be under way on the first
            self._methods = {}

    def method(self, service: str, name: str) -> Any:
        found = self._methods.get(name)
        if found is None:
            found = self._methods[name] = self._channel.unary_unary(f"/{service}/{name}")
        return found

    def call(self, service: str, name: str, request: bytes, timeout: float | None = None) -> bytes:
        try:
            return self.method(service, name)(request, timeout=timeout)
        except grpc.RpcError as error:
            raise from_rpc_error(error, self.address) from None

    def first_call(self, service: str, name: str, request: bytes, timeout: float | None) -> tuple[bytes, bool]:
        """Returns the response, and whether the server says that it is stoker's."""
        try:
            response, call = self.method(service, name).with_call(request, timeout=timeout)
        except grpc.RpcError as error:
            raise from_rpc_error(error, self.address) from None
        return response, any(key == SERVER_KIND[0] for key, _ in call.trailing_metadata() or ())

    def future(self, service: str, name: str, request: bytes, timeout: float | None = None) -> Any:
        return self.method(service, name).future(request, timeout=timeout)

    def stream(self, name: str, requests: Iterator[bytes]) -> Any:
        return self._channel.stream_unary(f"/{PEER}/{name}").future(requests)

    def close(self) -> None:
        for channel in self._channels:
            channel.close()


def _streamed(step_id: int, values: dict[str, Any]) -> Iterator[bytes]:
    yield messages.stream_start(step_id)
    for key, value in values.items():
        yield from messages.streamed(key, value)


# -- workers -----------------------------------------------------------------------------------------------------


class GraphCall:
    """A RunGraph on its way."""

    def __init__(self, future: Any, where: str, keys: list[str], trace: Any) -> None:
        self._future, self._where, self._keys, self._trace = future, where, keys, trace

    def cancel(self, error: OpError | None = None) -> None:
        self._future.cancel()

    def result(self) -> list[Any]:
        try:
            data = self._future.result()
        except (grpc.RpcError, grpc.FutureCancelledError) as error:
            raise from_rpc_error(error, self._where) from None
        response = messages.read_run_graph_response(data)
        if response.code:
            raise error_of(response.code, f"From {self._where}:\n{response.message}")
        if self._trace is not None and response.step_stats:
            self._trace.MergeFromString(response.step_stats)
        missing = [key for key in self._keys if key not in response.values]
        if missing:
            raise InternalError(None, None, f"{self._where} did not return the value of {missing[0]}")
        return [response.values[key] for key in self._keys]


class StatusCall:
    """Asks a server for its devices, as long as it takes until the server is there."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._future = self._ask()

    def _ask(self) -> Any:
        return self._connection.method(WORKER, "GetStatus").future(b"", timeout=60.0, wait_for_ready=True)

    def poll(self, seconds: float) -> list[Any] | None:
        """Returns the DeviceAttributes, or None if the server has not responded after that time."""
        try:
            return list(protos.GetStatusResponse.FromString(self._future.result(timeout=seconds)).device_attributes)
        except grpc.FutureTimeoutError:
            return None
        except (grpc.RpcError, grpc.FutureCancelledError) as error:
            problem = from_rpc_error(error, self._connection.address)
            if not isinstance(problem, (UnavailableError, DeadlineExceededError)):
                raise problem from None
            self._future = self._ask()
            return None

    def cancel(self) -> None:
        self._future.cancel()


class WorkerConnection:
    """The calls of a master to a worker in another process. Each returns a function that waits for the result."""

    def __init__(self, task: str, connection: Connection, peers: Peers) -> None:
        self.task, self.connection, self._peers = task, connection, peers
        self._guard = threading.Lock()
        self._link: Link | None = None
        self._links_from = 0.0 if links.offered() else math.inf  # the time from which a link may be opened

    def link(self) -> Link | None:
        """Returns the link to a stoker task. It is opened if there is none; None if that is not possible.

        Raises:
            UnavailableError: the task does not respond.
        """
        link = self._link
        if link is not None and not link.closed:
            return link
        with self._guard:
            link = self._link
            if (link is None or link.closed) and time.monotonic() >= self._links_from:
                link = self._link = self._open_link()
        return link if link is not None and not link.closed else None

    def _open_link(self) -> Link | None:
        try:
            port, token = messages.read_link_response(self.connection.call(PEER, "Link", b"", _SECONDS_TO_ANSWER))
        except UnimplementedError:
            self._links_from = math.inf
            return None
        except DeadlineExceededError:  # the task is busy, or cut off, which the calls over gRPC notice
            self._links_from = time.monotonic() + _SECONDS_WITHOUT_LINK
            return None
        host = self.connection.address.rpartition(":")[0].strip("[]")
        peers = self._peers
        try:
            return links.open_link(
                host, port, token, self.task, most_bytes=-1, on_values=peers.on_values, on_refused=peers.on_refused
            )
        except OSError as error:
            tf_logging.info("No link to %s at %s:%d (%s): steps use gRPC.", self.task, host, port, error)
            self._links_from = time.monotonic() + _SECONDS_WITHOUT_LINK
            return None

    def close(self) -> None:
        with self._guard:
            link, self._link, self._links_from = self._link, None, math.inf
        if link is not None:
            link.close()
        self.connection.close()

    def _start(self, name: str, request: Any, timeout: float | None = None) -> Callable[[], bytes]:
        data = request if isinstance(request, bytes) else request.SerializeToString()
        future = self.connection.future(WORKER, name, data, timeout)

        def wait() -> bytes:
            try:
                return future.result()
            except (grpc.RpcError, grpc.FutureCancelledError) as error:
                raise from_rpc_error(error, self.task) from None

        return wait

    def get_status(self) -> StatusCall:
        return StatusCall(self.connection)

    def create_worker_session(self, handle: str, isolated: bool) -> Callable[[], Any]:
        return self._start(
            "CreateWorkerSession",
            protos.CreateWorkerSessionRequest(session_handle=handle, isolate_session_state=isolated),
        )

    def delete_worker_session(self, handle: str) -> None:
        self._start("DeleteWorkerSession", protos.DeleteWorkerSessionRequest(session_handle=handle))

    def register_graph(self, handle: str, graph_def: Any, options: Any) -> Callable[[], str]:
        wait = self._start(
            "RegisterGraph",
            protos.RegisterGraphRequest(
                session_handle=handle,
                create_worker_session_called=True,
                graph_def=graph_def,
                graph_options=options,
            ),
        )
        return lambda: protos.RegisterGraphResponse.FromString(wait()).graph_handle

    def deregister_graph(self, handle: str, graph_handle: str) -> None:
        self._start(
            "DeregisterGraph",
            protos.DeregisterGraphRequest(
                session_handle=handle, create_worker_session_called=True, graph_handle=graph_handle
            ),
        )

    def run_graph(
        self,
        handle: str,
        graph_handle: str,
        step_id: int,
        feeds: dict[str, Any],
        fetches: list[str],
        timeout_in_ms: int,
        trace: Any,
        on_error: Callable[[OpError], None],
        link: Link | None = None,
        *,
        held: bool = False,
    ) -> GraphCall | LinkCall:
        if link is not None:
            head = messages.link_run_head(
                handle, graph_handle, self._peers.own, tuple(fetches), timeout_in_ms, trace is not None
            )
            return link.run(step_id, head, feeds, fetches, timeout_in_ms, trace, on_error, held=held)
        request = messages.run_graph_request(handle, graph_handle, step_id, feeds, fetches, traced=trace is not None)
        future = self.connection.future(WORKER, "RunGraph", request, timeout_in_ms / 1000 or None)
        call = GraphCall(future, self.task, fetches, trace)

        def ended(done: Any) -> None:
            # A failed part must stop the others at once, also while the master waits for one of them.
            if done.cancelled():
                return
            error = done.exception()
            if error is not None:
                on_error(from_rpc_error(error, self.task))
            elif messages.has_error(done.result()):
                try:
                    call.result()
                except OpError as problem:
                    on_error(problem)

        future.add_done_callback(ended)
        return call

    def cleanup_graph(self, step_id: int) -> None:
        self._start("CleanupGraph", protos.CleanupGraphRequest(step_id=step_id))

    def cleanup_all(self, containers: list[str]) -> Callable[[], Any]:
        return self._start("CleanupAll", protos.CleanupAllRequest(container=containers))


class Peers:
    """Connections of one task to the others, opened when they are needed."""

    def __init__(self, own: str, addresses: dict[str, str], protocol: str) -> None:
        """`own` is the task whose connections these are."""
        self.own, self._addresses, self._protocol = own, addresses, protocol
        # What links do with values that arrive: set by the owner of the rendezvous.
        self.on_values: Callable[[int, dict[str, Any]], None] = lambda step_id, values: None
        self.on_refused: Callable[[int, OpError], None] = lambda step_id, error: None
        self._guard = threading.Lock()
        self._connections: dict[str, WorkerConnection] = {}

    def connect(self, task: str) -> WorkerConnection:
        with self._guard:
            found = self._connections.get(task)
            if found is None:
                address = self._addresses.get(task)
                if address is None:
                    raise InvalidArgumentError(None, None, f"There is no task {task} in the cluster.")
                found = self._connections[task] = WorkerConnection(task, Connection(address, self._protocol), self)
            return found

    def push(self, task: str, step_id: int, values: dict[str, Any], table: StepTable) -> Callable[[], None]:
        """Sends values to a stoker task. Returns a function that waits until they have arrived.

        They go over a link if there is one. Over gRPC, small ones are one message, and large ones a stream.
        """
        worker = self.connect(task)
        link = worker.link()
        if link is not None:
            receipt = link.deliver(step_id, values, table.abort)
            table.on_abort(receipt.end)
            return receipt.wait
        connection = worker.connection
        connection.recognize()
        small = {key: value for key, value in values.items() if not messages.is_streamed(value)}
        large = {key: value for key, value in values.items() if messages.is_streamed(value)}
        waits = []
        if small:
            request = messages.send_tensors_request(step_id, small)
            waits.append(self._watched(connection.future(PEER, "SendTensors", request), task, table))
        if large:
            waits.append(self._watched(connection.stream("StreamTensors", _streamed(step_id, large)), task, table))

        def wait() -> None:
            for each in waits:
                each()

        return wait

    def _watched(self, future: Any, task: str, table: StepTable) -> Callable[[], None]:

        def ended(done: Any) -> None:
            if not done.cancelled() and done.exception() is not None:
                table.abort(from_rpc_error(done.exception(), task))

        def wait() -> None:
            try:
                future.result()
            except (grpc.RpcError, grpc.FutureCancelledError) as error:
                raise from_rpc_error(error, task) from None

        future.add_done_callback(ended)
        table.on_abort(lambda error: future.cancel())
        return wait

    def ask(self, task: str, step_id: int, key: str, table: StepTable) -> None:
        """Asks a task for a value. It is put into `table` when it arrives."""
        request = protos.RecvTensorRequest(step_id=step_id, rendezvous_key=key)
        future = self.connect(task).connection.future(WORKER, "RecvTensor", request.SerializeToString())

        def ended(done: Any) -> None:
            if done.cancelled():
                return
            error = done.exception()
            if error is not None:
                table.abort(from_rpc_error(error, task))
                return
            try:
                table.put({key: messages.read_recv_tensor_response(done.result())})
            except OpError as problem:
                table.abort(problem)

        future.add_done_callback(ended)
        table.on_abort(lambda error: future.cancel())

    def close(self) -> None:
        with self._guard:
            connections, self._connections = list(self._connections.values()), {}
        for each in connections:
            each.close()


# -- masters -----------------------------------------------------------------------------------------------------


def _wait_for_listener(address: str, timeout: float | None) -> None:
    """Waits while a server has not been started yet: clients and servers of a cluster start in any order."""
    limit = float(os.environ.get("STOKER_CONNECT_TIMEOUT_SECS", _CONNECT_SECS))
    deadline = time.monotonic() + (limit if timeout is None else min(limit, timeout))
    host, _, port = address.rpartition(":")
    while port.isdigit():
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=1.0).close()
            return
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                return  # the call fails, and says why
            time.sleep(0.1)
        except OSError:
            return


class MasterConnection:
    """A session at a master in another process."""

    def __init__(self, target: str, graph_def: Any, config: Any) -> None:
        protocol, _, address = target.partition("://")
        self._target = target
        self._connection = Connection(address, protocol)
        self._timeout = config.operation_timeout_in_ms / 1000 or None
        request = protos.CreateSessionRequest(graph_def=graph_def, config=config, target=target)
        _wait_for_listener(address, self._timeout)
        try:
            data, is_stoker = self._connection.first_call(
                MASTER, "CreateSession", request.SerializeToString(), self._timeout
            )
        except OpError:
            self._connection.close()
            raise
        if is_stoker:
            self._connection.recognize()
        response = protos.CreateSessionResponse.FromString(data)
        self._handle, self._version = response.session_handle, response.graph_version
        self._guard = threading.Lock()
        self._running: set[Any] = set()
        self._closed = False

    def _call(self, name: str, request: bytes) -> bytes:
        return self._connection.call(MASTER, name, request, self._timeout)

    def extend(self, graph_def: Any) -> None:
        request = protos.ExtendSessionRequest(
            session_handle=self._handle, graph_def=graph_def, current_graph_version=self._version
        )
        data = self._call("ExtendSession", request.SerializeToString())
        self._version = protos.ExtendSessionResponse.FromString(data).new_graph_version

    def prepare(self, feeds: list[str], fetches: list[str], targets: list[str]) -> messages.StepNames:
        return messages.StepNames(self._handle, feeds, fetches, targets)

    def partial_run_setup(self, feeds: list[str], fetches: list[str], targets: list[str]) -> str:
        request = protos.PartialRunSetupRequest(session_handle=self._handle, feed=feeds, fetch=fetches, target=targets)
        data = self._call("PartialRunSetup", request.SerializeToString())
        return protos.PartialRunSetupResponse.FromString(data).partial_run_handle

    def partial_run(
        self, handle: str, feeds: list[str], fetches: list[str], targets: list[str], values: list[Any]
    ) -> list[Any]:
        return self.run(self.prepare(feeds, fetches, targets), values, None, None, partial_run=handle)

    def run(
        self, prepared: messages.StepNames, values: list[Any], options: Any, metadata: Any, *, partial_run: str = ""
    ) -> list[Any]:
        request = messages.run_step_request(prepared, values, options, partial_run)
        timeout = self._timeout
        if options is not None and options.timeout_in_ms:
            timeout = options.timeout_in_ms / 1000
        future = self._connection.future(MASTER, "RunStep", request, timeout)
        with self._guard:
            self._running.add(future)
            if self._closed:
                future.cancel()
        try:
            data = future.result()
        except grpc.FutureCancelledError:
            raise CancelledError(None, None, "Session has been closed.") from None
        except grpc.RpcError as error:
            raise from_rpc_error(error, self._target) from None
        finally:
            with self._guard:
                self._running.discard(future)
        response = messages.read_run_step_response(data)
        if response.code:
            raise error_of(response.code, response.message)
        if metadata is not None and response.metadata:
            metadata.MergeFromString(response.metadata)
        missing = [name for name in prepared.fetches if name not in response.values]
        if missing:
            raise InternalError(None, None, f"{self._target} did not return the value of {missing[0]}")
        return [response.values[name] for name in prepared.fetches]

    def devices(self) -> list[Any]:
        request = protos.ListDevicesRequest(session_handle=self._handle)
        response = protos.ListDevicesResponse.FromString(self._call("ListDevices", request.SerializeToString()))
        return [*response.local_device, *response.remote_device]

    def close(self) -> None:
        with self._guard:
            self._closed = True
            running = list(self._running)
        for future in running:
            future.cancel()
        request = protos.CloseSessionRequest(session_handle=self._handle)
        with suppress(OpError):  # a server that does not respond, or does not know the session any more, has closed it
            self._connection.call(MASTER, "CloseSession", request.SerializeToString(), self._timeout or 10.0)
        self._connection.close()

    @staticmethod
    def reset(target: str, containers: list[str], filters: list[str]) -> None:
        protocol, _, address = target.partition("://")
        connection = Connection(address, protocol)
        request = protos.ResetRequest(container=containers, device_filters=filters)
        try:
            connection.call(MASTER, "Reset", request.SerializeToString())
        finally:
            connection.close()
