"""Fuzz targets for the services of distributed sessions: what a stranger may send to a server's port."""

from __future__ import annotations

import functools
import io
import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from google.protobuf.message import DecodeError

from stoker._src.base.errors import OpError
from stoker._src.distributed import links, messages
from stoker._src.distributed.frames import Frame
from stoker._src.distributed.service import MASTER_METHODS, WORKER_METHODS, Call, Service
from stoker._src.distributed.wire_graph import WireGraph
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


def _node(name: str, op: str, *inputs: str, **attrs: Any) -> Any:
    node = protos.NodeDef(name=name, op=op, input=inputs)
    for key, value in attrs.items():
        if key in ("T", "dtype", "tensor_type"):
            node.attr[key].type = value
        elif isinstance(value, bool):
            node.attr[key].b = value
        elif isinstance(value, int):
            node.attr[key].i = value
        else:
            node.attr[key].s = value
    return node


def _loop(*, nested: bool = False) -> Any:
    """A part with a share of a loop whose predicate comes from another task, and with a loop inside of it."""
    here = dict.fromkeys(("send_device", "recv_device"), b"/job:local/replica:0/task:0/device:CPU:0")

    def nodes(frame: str, start: str, *, outer: str = "") -> list[Any]:
        waiting = [f"^{outer}merge"] if outer else []
        return [
            _node(f"{frame}enter", "Enter", start, *waiting, T=1, frame_name=frame.encode()),
            _node(f"{frame}merge", "Merge", f"{frame}enter", f"{frame}next", T=1, N=2),
            _node(f"{frame}p", "_Recv", f"^{frame}merge", tensor_type=10, tensor_name=frame.encode(), **here),
            _node(f"{frame}switch", "Switch", f"{frame}merge", f"{frame}p", T=1),
            _node(f"{frame}send", "_Send", f"{frame}switch:1", T=1, tensor_name=b"v" + frame.encode(), **here),
            _node(f"{frame}exit", "Exit", f"{frame}switch", T=1),
        ]

    start = _node("start", "Const", dtype=1)
    start.attr["value"].tensor.CopyFrom(protos.TensorProto(dtype=1, float_val=[1.0]))
    made = [start, *nodes("a", "start")]
    if nested:
        made += [*nodes("b", "aswitch:1", outer="a"), _node("bnext", "NextIteration", "bswitch:1", T=1)]
    made.append(_node("anext", "NextIteration", "bexit" if nested else "aswitch:1", T=1))
    return protos.GraphDef(node=[*made, _node("last", "_Send", "aexit", T=1, tensor_name=b"last", **here)])


_LOOP_OPS = {node.op for node in _loop().node} | {"Identity", "RefEnter", "RefMerge", "RefNextIteration", "RefExit"}
_LOOP_STEPS = itertools.count(1000)


def _values(wire: WireGraph, frame: Frame, depth: int, *, combined: bool) -> dict[str, Any]:
    """A value for each key under which a part may wait: two iterations of each loop, then the end of it."""
    found = {}
    for iteration in range(3 if depth else 1):
        for edge in wire.receives:
            if edge.key.count(";") >= 4 and edge.torch_dtype is not None:
                value = torch.full((), iteration < 2).to(edge.torch_dtype)
                found[frame.key(edge.key, iteration)] = value
        for name, (_, inner) in wire.shares.items():
            inside = frame.inner(iteration, name, combined=combined)
            found |= _values(inner, inside, depth + 1, combined=combined) if depth < 3 else {}
    return found


@target(
    b"\0" + _loop().SerializeToString(),
    b"\1" + _loop(nested=True).SerializeToString(),
    refused=(OpError, DecodeError),
)
def loop_shares(data: bytes) -> None:
    """A part with shares of divided loops, from its GraphDef to its run. Only the ops of loops take part, so a run touches nothing else."""
    option, rest = either(data)
    graph_def = protos.GraphDef.FromString(rest)
    if any(node.op not in _LOOP_OPS for node in graph_def.node) or graph_def.library.function:
        return
    task, combined = _service().task, bool(option % 2)
    step = next(_LOOP_STEPS)
    handle = task.register_graph("h", graph_def, combined=combined)
    try:
        part = task.part("h", handle)
        task.deliver(step, _values(part.wire, Frame(), 0, combined=combined))
        part.run(step, {}, [], timeout_in_ms=100)
    finally:
        task.deregister_graph("h", handle)
        task.cleanup_graph(step)


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
