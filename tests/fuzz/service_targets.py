"""Fuzz targets for the services of distributed sessions: what a stranger may send to a server's port."""

from __future__ import annotations

import functools
import io
from types import SimpleNamespace
from typing import Any

import numpy as np

from stoker._src.base.errors import OpError
from stoker._src.distributed import links, messages
from stoker._src.distributed.service import MASTER_METHODS, WORKER_METHODS, Call, Service
from stoker._src.formats import link_frames, protos
from stoker._src.ops.support.waiting import running
from tests.fuzz.registry import either, target

_MASTER = tuple(name for name in MASTER_METHODS if name not in ("CloseSession", "Reset"))
_WORKER = tuple(name for name in WORKER_METHODS if name != "DeleteWorkerSession")
_NODE = protos.NodeDef(name="x", op="Placeholder", device="/job:local/replica:0/task:0/device:CPU:0")
_NODE.attr["dtype"].type = 1
_GRAPH = protos.GraphDef(node=[_NODE])


def _send() -> Any:
    node = protos.NodeDef(name="s", op="_Send", input=["x"])
    for name in ("tensor_name", "send_device", "recv_device"):
        node.attr[name].s = b"/job:local/replica:0/task:0/device:CPU:0"
    node.attr["T"].type = 1
    node.attr["client_terminated"].b = True
    return node


@functools.cache
def _service() -> Any:
    """A server that listens nowhere: its methods are called directly."""
    definition = protos.ServerDef(job_name="local", protocol="grpc")
    definition.cluster.job.add(name="local").tasks[0] = "127.0.0.1:0"
    service = Service(definition)
    session = service.master.create_session(_GRAPH, protos.ConfigProto(), trusted=False)
    session.handle = "h"
    service.master._sessions["h"] = session
    service.task.create_worker_session("h")
    part = service.task.register_graph("h", protos.GraphDef(node=[_NODE, _send()]))
    service.task._sessions["h"].parts["g"] = service.task._sessions["h"].parts[part]
    return service


def _call() -> Call:
    # A call that has been given up, so that nothing waits.
    return Call(
        SimpleNamespace(time_remaining=lambda: None, add_callback=lambda callback: False, set_trailing_metadata=bool)
    )


def _method(names: tuple[str, ...], prefix: str, option: int, data: bytes) -> None:
    name = names[option % len(names)]
    words = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")
    call = _call()
    with running(call.state):
        getattr(_service(), f"_{prefix}_{words}")(data, call)


def _seed(names: tuple[str, ...], name: str, message: Any) -> bytes:
    data = message if isinstance(message, bytes) else message.SerializeToString()
    return bytes((names.index(name),)) + data


_STEP = protos.RunStepRequest(session_handle="h", fetch=["x:0"], store_errors_in_response_body=True)
_STEP.feed.add(name="x:0").tensor.CopyFrom(protos.TensorProto(dtype=1, float_val=[1.0]))


@target(
    _seed(_MASTER, "ExtendSession", protos.ExtendSessionRequest(session_handle="h", graph_def=_GRAPH)),
    _seed(_MASTER, "RunStep", _STEP),
    _seed(_MASTER, "PartialRunSetup", protos.PartialRunSetupRequest(session_handle="h", fetch=["x:0"])),
    _seed(_MASTER, "ListDevices", protos.ListDevicesRequest(session_handle="h")),
    _seed(_MASTER, "RunCallable", protos.RunCallableRequest(session_handle="h", handle=1)),
    refused=(OpError,),
)
def master_service(data: bytes) -> None:
    option, rest = either(data)
    _method(_MASTER, "master", option, rest)


_RUN = messages.run_graph_request("h", "g", 7, {}, ["k"], traced=False)


def _branch() -> Any:
    """A part with a share of a branch."""
    receive = protos.NodeDef(name="r", op="_Recv")
    for name in ("tensor_name", "send_device", "recv_device"):
        receive.attr[name].s = b"/job:local/replica:0/task:0/device:CPU:0"
    receive.attr["tensor_type"].type = 10
    switch = protos.NodeDef(name="t", op="Switch", input=["x", "r"])
    merge = protos.NodeDef(name="m", op="Merge", input=["t", "t:1", "^x"])
    for node in (switch, merge):
        node.attr["T"].type = 1
    merge.attr["N"].i = 2
    send = _send()
    send.input[:] = ["m"]
    return protos.GraphDef(node=[_NODE, receive, switch, merge, send])


@target(
    _seed(_WORKER, "RegisterGraph", protos.RegisterGraphRequest(graph_def=protos.GraphDef(node=[_NODE, _send()]))),
    _seed(_WORKER, "RegisterGraph", protos.RegisterGraphRequest(graph_def=_branch())),
    _seed(_WORKER, "RunGraph", _RUN),
    _seed(_WORKER, "RecvTensor", protos.RecvTensorRequest(step_id=1, rendezvous_key="a;1;b;c;0:0")),
    refused=(OpError,),
)
def worker_service(data: bytes) -> None:
    option, rest = either(data)
    _method(_WORKER, "worker", option, rest)


@target(messages.run_graph_request("h", "g", 1, {}, ["k"], traced=True), refused=(OpError,))
def wire_messages(data: bytes) -> None:
    """Every reader of messages with tensors, of both sides."""
    for read in (
        messages.read_run_step_request,
        messages.read_run_step_response,
        messages.read_run_graph_request,
        messages.read_run_graph_response,
        messages.read_run_callable_request,
        messages.read_recv_tensor_response,
        messages.read_send_tensors_request,
        messages.read_stream_start,
        lambda data: messages.read_streamed(data, iter([data]), 1 << 20),
    ):
        try:
            read(bytes(data))
        except OpError:
            continue


_VALUES = [
    link_frames.value_of("numbers", np.arange(6, dtype=np.int16).reshape(2, 3)),
    link_frames.value_of("texts", np.array([b"a", b""], object)),
    link_frames.value_of("truths", np.array([True, False])),
]
_RUN_HEAD = messages.link_run_head("h", "g", "/job:worker/replica:0/task:0", ("k",), 5, False)


@target(
    b"".join(link_frames.encode(link_frames.RUN, 7, _RUN_HEAD, _VALUES)),
    b"".join(link_frames.encode(link_frames.VALUES, -1, b"", _VALUES[:1])),
    b"".join(
        link_frames.encode(link_frames.VALUES, 2, b"\x58\x01", _VALUES)
        + link_frames.encode(link_frames.RECEIPT, 2, b"")
    ),
    b"".join(link_frames.encode(link_frames.RESULT, 3, messages.link_error_head(3, "bad"))),
    refused=(OpError, ConnectionError),
)
def link(data: bytes) -> None:
    """Frames of a link, which end in the middle of one."""
    stream = io.BytesIO(data)
    connection: Any = SimpleNamespace(recv_into=lambda block, *_: stream.readinto(block))
    reader = links.FrameReader(connection, 1 << 20)
    while True:
        reader.next()
