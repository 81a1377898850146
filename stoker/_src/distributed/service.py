"""`Service`: a task and a master behind a gRPC port, with TensorFlow's MasterService and WorkerService."""

from __future__ import annotations

import os
import queue
import socket
import sys
import threading
from collections.abc import Callable
from concurrent import futures
from typing import Any

import grpc
from google.protobuf.unknown_fields import UnknownFieldSet

from stoker._src.base import tf_logging
from stoker._src.base.errors import (
    CancelledError,
    InvalidArgumentError,
    OpError,
    UnimplementedError,
    UnknownError,
)
from stoker._src.distributed import links, messages
from stoker._src.distributed.client import local_masters
from stoker._src.distributed.cluster_spec import ClusterSpec
from stoker._src.distributed.links import Link, LinkListener, Running
from stoker._src.distributed.master import Master
from stoker._src.distributed.partial_runs import PartialRuns
from stoker._src.distributed.rpc import MASTER, PEER, SERVER_KIND, WORKER, Peers, tls_files
from stoker._src.distributed.statuses import described
from stoker._src.distributed.task import Task
from stoker._src.formats import protos
from stoker._src.formats.link_frames import Head
from stoker._src.formats.protos import RunMetadata, RunOptions, StepStats
from stoker._src.formats.wire_tensors import read_message
from stoker._src.ops.support.waiting import RunState, running
from stoker._src.runtime.memory import keep_freed_memory

_SECONDS_BETWEEN_SWITCHES = 0.0002  # between threads that run Python, in a process with a server
_LONGEST_DETAILS = 3000  # characters: gRPC limits the size of the trailer in which an error travels
_CODES = {code.value[0]: code for code in grpc.StatusCode}
_UNSUPPORTED = ("RecvBuf", "GetStepSequence", "CompleteGroup", "CompleteInstance")


def _most_bytes() -> int:
    """Returns the size of the largest message that a server accepts: STOKER_MAX_MESSAGE_BYTES, or any."""
    text = os.environ.get("STOKER_MAX_MESSAGE_BYTES", "-1")
    try:
        return int(text)
    except ValueError:
        raise InvalidArgumentError(None, None, f"STOKER_MAX_MESSAGE_BYTES is not a number: {text}") from None


class _Threads(futures.Executor):
    """Threads for calls, as many as there are calls at a time: a call may wait for a queue for ever.

    The threads are daemons, so that a call that waits does not keep the process from ending.
    """

    _SECONDS_IDLE = 30.0

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._work: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._idle = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> futures.Future[Any]:
        future: futures.Future[Any] = futures.Future()
        with self._guard:
            if self._idle:
                self._idle -= 1
                self._work.put((future, fn, args, kwargs))
                return future
        threading.Thread(target=self._serve, args=((future, fn, args, kwargs),), daemon=True, name="grpc call").start()
        return future

    def _serve(self, item: Any) -> None:
        while True:
            future, fn, args, kwargs = item
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as error:
                future.set_exception(error)
            del future, fn, args, kwargs, item
            with self._guard:
                self._idle += 1
            try:
                item = self._work.get(timeout=self._SECONDS_IDLE)
            except queue.Empty:
                with self._guard:
                    if not self._idle:  # a call is on its way to this thread
                        item = self._work.get()
                        continue
                    self._idle -= 1
                return


_CONFIG_PROTO = 8  # a field of RegisterGraphRequest that only TensorFlow 2 sends


class Call:
    """One call that a server handles: its state is cancelled when the caller gives up."""

    def __init__(self, context: Any) -> None:
        self._context = context
        remaining = context.time_remaining()
        self.timeout_in_ms = max(1, int(remaining * 1000)) if remaining is not None and remaining < 1e8 else 0
        self.state = RunState(self.timeout_in_ms)
        self._ended = False
        if not context.add_callback(self._terminated):
            self.state.cancel()

    def say(self, metadata: tuple[str, str]) -> None:
        """Sends metadata with the response."""
        self._context.set_trailing_metadata((metadata,))

    def _terminated(self) -> None:
        if not self._ended:
            self.state.cancel()

    def end(self) -> None:
        self._ended = True


class Service(grpc.GenericRpcHandler):
    """One server: `start`, `stop`, and the methods that it serves."""

    def __init__(self, server_def: Any) -> None:
        """Binds the port, so that `target` is known before the server starts.

        Raises:
            UnknownError: the address is in use, or not one of this machine.
        """
        cluster = ClusterSpec(server_def.cluster)
        job, index, protocol = server_def.job_name, server_def.task_index, server_def.protocol
        self._config = server_def.default_session_config
        self._protocol = protocol
        host, _, port = cluster.task_address(job, index).rpartition(":")
        if not host or not port.isdigit():
            raise InvalidArgumentError(
                None, None, f"Could not interpret {cluster.task_address(job, index)!r} as host:port."
            )
        self._most_bytes = _most_bytes()
        options = [
            ("grpc.so_reuseport", 0),
            ("grpc.max_send_message_length", -1),
            ("grpc.max_receive_message_length", self._most_bytes),
            ("grpc.http2.min_ping_interval_without_data_ms", 1000),
            # A client or master that vanished is noticed, and what it had asked for is cancelled.
            ("grpc.keepalive_time_ms", links.SECONDS_UNTIL_LOST * 500),
            ("grpc.keepalive_timeout_ms", links.SECONDS_UNTIL_LOST * 500),
        ]
        keep_freed_memory()
        # A call passes through several threads. With Python's default, each may wait 5 ms for one that computes.
        sys.setswitchinterval(min(sys.getswitchinterval(), _SECONDS_BETWEEN_SWITCHES))
        self._server = grpc.server(_Threads(), handlers=[self], options=options)  # type: ignore[arg-type]
        bound = self._bind(os.environ.get("STOKER_BIND_ADDRESS", host), port)
        self.address = f"{host}:{bound}"
        self.target = f"{protocol}://{self.address}"
        addresses = {
            f"/job:{name}/replica:0/task:{i}": cluster.task_address(name, i)
            for name in cluster.jobs
            for i in cluster.task_indices(name)
        }
        own = f"/job:{job}/replica:0/task:{index}"
        addresses[own] = self.address
        self.peers = Peers(own, addresses, protocol)
        self.task = Task(own, self._config, self.peers)
        self.peers.on_values, self.peers.on_refused = self.task.deliver, self.task.refuse
        self.master = Master(self.task, addresses, self._config)
        self._partial_runs = PartialRuns(self.master)
        self._bind_host = os.environ.get("STOKER_BIND_ADDRESS", host)
        self._listener: LinkListener | None = None
        self._started = self._stopped = False
        self._guard = threading.Lock()
        self._handlers = {
            f"/{service}/{name}": handler
            for service, prefix, names in (
                (MASTER, "_master_", MASTER_METHODS),
                (WORKER, "_worker_", WORKER_METHODS),
                (PEER, "_peer_", PEER_METHODS),
            )
            for name in names
            for handler in (grpc.unary_unary_rpc_method_handler(self._handling(getattr(self, prefix + _snake(name)))),)
        }
        self._handlers[f"/{PEER}/StreamTensors"] = grpc.stream_unary_rpc_method_handler(
            self._handling(self._peer_stream_tensors)
        )
        for name in _UNSUPPORTED:
            self._handlers[f"/{WORKER}/{name}"] = grpc.unary_unary_rpc_method_handler(
                self._handling(lambda data, call, name=name: self._unsupported(name))
            )

    def _bind(self, host: str, port: str) -> int:
        try:
            if self._protocol == "grpc+tls":
                files = tls_files()
                if files["CERT"] is None or files["KEY"] is None:
                    raise InvalidArgumentError(
                        None, None, "A server with TLS needs the files that STOKER_TLS_CERT and STOKER_TLS_KEY name."
                    )
                credentials = grpc.ssl_server_credentials(
                    [(files["KEY"], files["CERT"])], files["CA"], require_client_auth=files["CA"] is not None
                )
                bound = self._server.add_secure_port(f"{host}:{port}", credentials)
            else:
                bound = self._server.add_insecure_port(f"{host}:{port}")
        except RuntimeError:
            bound = 0
        if not bound:
            raise UnknownError(None, None, f"Could not start gRPC server: the address {host}:{port} cannot be bound.")
        return bound

    def start(self) -> None:
        with self._guard:
            if self._stopped:
                raise CancelledError(None, None, f"The server {self.target} was stopped.")
            if self._started:
                return
            self._started = True
        self._server.start()
        local_masters[self.target] = self.master
        tf_logging.info("Started server with target: %s", self.target)

    def wait(self) -> None:
        self._server.wait_for_termination()

    def stop(self) -> None:
        with self._guard:
            if self._stopped:
                return
            self._stopped = True
        if local_masters.get(self.target) is self.master:
            del local_masters[self.target]
        with self._guard:
            listener, self._listener = self._listener, None
        self.master.close()
        self.task.close()
        if listener is not None:
            listener.close()
        self._server.stop(None).wait(5)
        self.peers.close()

    # -- handling ------------------------------------------------------------------------------------------------

    def service(self, handler_call_details: Any) -> Any:
        return self._handlers.get(handler_call_details.method)

    def _handling(self, method: Callable[[Any, Call], Any]) -> Callable[[Any, Any], bytes]:
        def handle(data: Any, context: Any) -> bytes:
            call = Call(context)
            try:
                with running(call.state):
                    response = method(data, call)
                return response if isinstance(response, bytes) else response.SerializeToString()
            except Exception as error:
                code, message = described(error)
                if not isinstance(error, OpError):
                    tf_logging.error("%s", message, exc_info=error)
            finally:
                call.end()
            context.set_code(_CODES.get(code, grpc.StatusCode.UNKNOWN))
            context.set_details(message[:_LONGEST_DETAILS])
            return b""

        return handle

    def _unsupported(self, name: str) -> Any:
        raise UnimplementedError(None, None, f"{name}: collective ops across servers go through torch.distributed.")

    # -- MasterService -------------------------------------------------------------------------------------------

    def _master_create_session(self, data: bytes, call: Call) -> Any:
        request = read_message(protos.CreateSessionRequest, data)
        call.say(SERVER_KIND)
        session = self.master.create_session(request.graph_def, request.config, trusted=False, state=call.state)
        return protos.CreateSessionResponse(session_handle=session.handle, graph_version=session.version)

    def _master_extend_session(self, data: bytes, call: Call) -> Any:
        request = read_message(protos.ExtendSessionRequest, data)
        session = self.master.session(request.session_handle)
        version = session.extend(request.graph_def, request.current_graph_version)
        return protos.ExtendSessionResponse(new_graph_version=version)

    def _master_partial_run_setup(self, data: bytes, call: Call) -> Any:
        request = read_message(protos.PartialRunSetupRequest, data)
        handle = self._partial_runs.set_up(
            request.session_handle, list(request.feed), list(request.fetch), list(request.target)
        )
        return protos.PartialRunSetupResponse(partial_run_handle=handle)

    def _master_run_step(self, data: bytes, call: Call) -> bytes:
        request = messages.read_run_step_request(data)
        try:
            if request.partial_run:
                feeds = dict(zip(request.feeds, request.values))
                values = self._partial_runs.go_on(
                    request.partial_run, request.handle, feeds, request.fetches, request.targets
                )
                return messages.run_step_response(request.fetches, values)
            divided = self.master.session(request.handle).divided(
                tuple(request.feeds), tuple(request.fetches), tuple(request.targets)
            )
            options = read_message(RunOptions, request.options)
            values, metadata = self._run(divided, request.values, options, call)
            return messages.run_step_response(request.fetches, values, metadata)
        except Exception as error:
            if not request.errors_in_body:
                raise
            return messages.run_step_error(*described(error))

    def _run(self, divided: Any, values: list[Any], options: Any, call: Call) -> tuple[list[Any], Any]:
        trace = StepStats() if options.trace_level >= RunOptions.SOFTWARE_TRACE else None
        timeouts = [each for each in (options.timeout_in_ms, call.timeout_in_ms) if each]
        results = divided.run(values, timeout_in_ms=min(timeouts, default=0), trace=trace, state=call.state)
        if trace is None and not options.output_partition_graphs:
            return results, None
        metadata = RunMetadata()
        if trace is not None:
            metadata.step_stats.CopyFrom(trace)
        if options.output_partition_graphs:
            metadata.partition_graphs.extend(part.graph_def for part in divided.parts)
        return results, metadata

    def _master_close_session(self, data: bytes, call: Call) -> Any:
        request = read_message(protos.CloseSessionRequest, data)
        self._partial_runs.forget(request.session_handle)
        self.master.close_session(request.session_handle)
        return protos.CloseSessionResponse()

    def _master_list_devices(self, data: bytes, call: Call) -> Any:
        request = read_message(protos.ListDevicesRequest, data)
        if request.session_handle:
            found = self.master.session(request.session_handle).devices()
        else:
            found = [device for devices in self.master.devices(state=call.state).values() for device in devices]
        near = self.task.name + "/"
        return protos.ListDevicesResponse(
            local_device=[device for device in found if device.name.startswith(near)],
            remote_device=[device for device in found if not device.name.startswith(near)],
        )

    def _master_reset(self, data: bytes, call: Call) -> Any:
        request = read_message(protos.ResetRequest, data)
        self.master.reset(list(request.container), list(request.device_filters))
        return protos.ResetResponse()

    def _master_make_callable(self, data: bytes, call: Call) -> Any:
        request = read_message(protos.MakeCallableRequest, data)
        number = self.master.session(request.session_handle).make_callable(request.options)
        return protos.MakeCallableResponse(handle=number)

    def _master_run_callable(self, data: bytes, call: Call) -> bytes:
        handle, number, values = messages.read_run_callable_request(data)
        session = self.master.session(handle)
        options = session.callable(number)
        if len(values) != len(options.feed):
            raise InvalidArgumentError(
                None, None, f"The callable takes {len(options.feed)} values, but {len(values)} were given."
            )
        divided = session.divided(tuple(options.feed), tuple(options.fetch), tuple(options.target))
        results, metadata = self._run(divided, values, options.run_options, call)
        return messages.run_callable_response(results, metadata)

    def _master_release_callable(self, data: bytes, call: Call) -> Any:
        request = read_message(protos.ReleaseCallableRequest, data)
        self.master.session(request.session_handle).release_callable(request.handle)
        return protos.ReleaseCallableResponse()

    # -- WorkerService -------------------------------------------------------------------------------------------

    def _worker_get_status(self, data: bytes, call: Call) -> Any:
        return protos.GetStatusResponse(device_attributes=self.task.devices())

    def _worker_create_worker_session(self, data: bytes, call: Call) -> Any:
        request = read_message(protos.CreateWorkerSessionRequest, data)
        config = protos.ConfigProto()
        config.CopyFrom(self._config)
        if request.HasField("server_def"):
            config.MergeFrom(request.server_def.default_session_config)
        self.task.create_worker_session(request.session_handle, isolated=request.isolate_session_state, config=config)
        return protos.CreateWorkerSessionResponse()

    def _worker_delete_worker_session(self, data: bytes, call: Call) -> Any:
        self.task.delete_worker_session(read_message(protos.DeleteWorkerSessionRequest, data).session_handle)
        return protos.DeleteWorkerSessionResponse()

    def _worker_register_graph(self, data: bytes, call: Call) -> Any:
        request = read_message(protos.RegisterGraphRequest, data)
        handle = self.task.register_graph(
            request.session_handle,
            request.graph_def,
            created=request.create_worker_session_called,
            combined=any(field.field_number == _CONFIG_PROTO for field in UnknownFieldSet(request)),
        )
        return protos.RegisterGraphResponse(graph_handle=handle)

    def _worker_deregister_graph(self, data: bytes, call: Call) -> Any:
        request = read_message(protos.DeregisterGraphRequest, data)
        self.task.deregister_graph(
            request.session_handle, request.graph_handle, created=request.create_worker_session_called
        )
        return protos.DeregisterGraphResponse()

    def _worker_run_graph(self, data: bytes, call: Call) -> bytes:
        request = messages.read_run_graph_request(data)
        try:
            if request.is_partial:
                raise UnimplementedError(
                    None, None, "A stoker worker does not take part in partial runs of a TensorFlow master."
                )
            part = self.task.part(request.handle, request.graph_handle, created=request.created)
            traced = read_message(protos.ExecutorOpts, request.options).record_timeline
            trace = StepStats() if traced else None

            def watch(abort: Callable[[OpError], None]) -> None:
                call.state.on_cancel(lambda: abort(CancelledError(None, None, "RunGraph was cancelled.")))

            values = part.run(
                request.step_id,
                request.feeds,
                request.fetches,
                timeout_in_ms=call.timeout_in_ms,
                trace=trace,
                watch=watch,
            )
            if part.ends_itself:
                self.task.cleanup_graph(request.step_id)
            return messages.run_graph_response(request.fetches, values, trace)
        except Exception as error:
            if not request.errors_in_body:
                raise
            return messages.run_graph_error(*described(error))

    def _worker_cleanup_graph(self, data: bytes, call: Call) -> Any:
        self.task.cleanup_graph(read_message(protos.CleanupGraphRequest, data).step_id)
        return protos.CleanupGraphResponse()

    def _worker_cleanup_all(self, data: bytes, call: Call) -> Any:
        self.task.cleanup_all(list(read_message(protos.CleanupAllRequest, data).container))
        return protos.CleanupAllResponse()

    def _worker_recv_tensor(self, data: bytes, call: Call) -> bytes:
        request = read_message(protos.RecvTensorRequest, data)
        return messages.recv_tensor_response(self.task.take(request.step_id, request.rendezvous_key))

    def _worker_logging(self, data: bytes, call: Call) -> Any:
        request = read_message(protos.LoggingRequest, data)
        if request.enable_rpc_logging:
            raise UnimplementedError(
                None, None, "Logging of calls is not supported; RunOptions.trace_level times a step."
            )
        return protos.LoggingResponse()

    def _worker_tracing(self, data: bytes, call: Call) -> Any:
        read_message(protos.TracingRequest, data)
        raise UnimplementedError(
            None, None, "Tracing by duration is not supported; RunOptions.trace_level times a step."
        )

    # -- PeerService ---------------------------------------------------------------------------------------------

    def _peer_send_tensors(self, data: bytes, call: Call) -> bytes:
        self.task.deliver(*messages.read_send_tensors_request(data))
        return b""

    def _peer_stream_tensors(self, data: Any, call: Call) -> bytes:
        step_id = messages.read_stream_start(next(data, b""))
        for first in data:
            key, value = messages.read_streamed(first, data, self._most_bytes)
            self.task.deliver(step_id, {key: value})
        return b""

    def _peer_link(self, data: bytes, call: Call) -> bytes:
        """Tells where links are accepted. The first call opens the port."""
        if self._protocol != "grpc" or not links.offered():
            raise UnimplementedError(None, None, "This server offers no links.")
        with self._guard:
            if self._stopped:
                raise CancelledError(None, None, f"The server {self.target} was stopped.")
            if self._listener is None:
                try:
                    self._listener = LinkListener(self._bind_host, self._accept_link)
                except OSError as error:
                    raise UnimplementedError(None, None, f"There is no port for links: {error}") from None
            listener = self._listener
        return messages.link_response(listener.port, listener.token)

    # -- links ---------------------------------------------------------------------------------------------------

    def _accept_link(self, connection: socket.socket, where: str) -> Link:
        return Link(
            connection,
            where,
            most_bytes=self._most_bytes,
            on_values=self.task.deliver,
            on_refused=self.task.refuse,
            on_run=self._run_for_link,
        )

    def _run_for_link(
        self, link: Link, step_id: int, head: Head, feeds: dict[str, Any], running: Running, refused: OpError | None
    ) -> None:
        """Runs a part for a master, as RunGraph does."""
        fetches = head.texts.get(4, [])
        sent: dict[str, Any] = {}
        try:
            if refused is not None:
                raise refused
            part = self.task.part(head.text(8), head.text(1))
            trace = StepStats() if head.numbers.get(10) else None
            values = part.run(
                step_id,
                feeds,
                fetches,
                timeout_in_ms=head.numbers.get(9, 0),
                trace=trace,
                watch=running.watch,
                routes={head.text(7): link},
                with_result=sent,
            )
            if part.ends_itself:
                self.task.cleanup_graph(step_id)
            link.respond(step_id, messages.link_result_head(trace), fetches, values, sent)
        except Exception as error:
            if not isinstance(error, OpError):
                tf_logging.error("A part failed: %s", error, exc_info=error)
            link.respond(step_id, messages.link_error_head(*described(error)), [], [])


MASTER_METHODS = (
    "CreateSession",
    "ExtendSession",
    "PartialRunSetup",
    "RunStep",
    "CloseSession",
    "ListDevices",
    "Reset",
    "MakeCallable",
    "RunCallable",
    "ReleaseCallable",
)
PEER_METHODS = ("SendTensors", "Link")
WORKER_METHODS = (
    "GetStatus",
    "CreateWorkerSession",
    "DeleteWorkerSession",
    "RegisterGraph",
    "DeregisterGraph",
    "RunGraph",
    "CleanupGraph",
    "CleanupAll",
    "RecvTensor",
    "Logging",
    "Tracing",
)


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")
