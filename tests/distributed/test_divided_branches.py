"""Branches that TensorFlow's master divides over its own task and a stoker task. The test plays TensorFlow's side of the protocol.

The parts of graphs are those that TensorFlow 1.15 sends for a `tf.cond` on a worker whose ops are in part on a parameter server.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest

import stoker.compat.v1 as tf
from stoker._src.formats import protos

PS, WORKER = (f"/job:{job}/replica:0/task:0/device:CPU:0" for job in ("ps", "worker"))
FLOAT, BOOL = 1, 10
DEAD = object()


class Peer:
    """TensorFlow's worker and master: it serves the values that the stoker task asks for, and calls the stoker task."""

    def __init__(self):
        self.values = {}
        self._pool = ThreadPoolExecutor(16)
        self._server = grpc.server(self._pool)
        receive = grpc.unary_unary_rpc_method_handler(self._serve)
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler("tensorflow.WorkerService", {"RecvTensor": receive}),)
        )
        port = self._server.add_insecure_port("127.0.0.1:0")
        self._server.start()
        cluster = {"ps": ["127.0.0.1:0"], "worker": [f"127.0.0.1:{port}"]}
        self.task = tf.train.Server(cluster, "ps", 0)
        self._channel = grpc.insecure_channel(self.task.target.removeprefix("grpc://"))
        status = self._call("GetStatus", protos.GetStatusRequest(), protos.GetStatusResponse)
        self.incarnation = status.device_attributes[0].incarnation
        self._step = 0
        self._call(
            "CreateWorkerSession",
            protos.CreateWorkerSessionRequest(session_handle="s"),
            protos.CreateWorkerSessionResponse,
        )

    def close(self):
        self.task._stop()
        self._channel.close()
        self._server.stop(None).wait()
        self._pool.shutdown()

    def _serve(self, data, context):
        edge = protos.RecvTensorRequest.FromString(data).rendezvous_key.split(";")[3]
        value = self.values[edge]
        response = protos.RecvTensorResponse(is_dead=value is DEAD)
        if value is not DEAD:
            response.tensor.CopyFrom(tf.make_tensor_proto(value))
        return response.SerializeToString()

    def _call(self, name, request, response):
        data = self._channel.unary_unary(f"/tensorflow.WorkerService/{name}")(request.SerializeToString(), timeout=120)
        return response.FromString(data)

    def register(self, *nodes):
        request = protos.RegisterGraphRequest(session_handle="s", create_worker_session_called=True)
        request.graph_def.versions.producer = 134
        request.graph_def.node.extend(nodes)
        return self._call("RegisterGraph", request, protos.RegisterGraphResponse).graph_handle

    def run(self, graph, sends, values):
        """Runs a part. Returns the values of the edges `sends`, DEAD for those that are dead."""
        self.values = values
        self._step += 1
        request = protos.RunGraphRequest(
            session_handle="s", create_worker_session_called=True, graph_handle=graph, step_id=self._step
        )
        calls = [self._pool.submit(self._receive, edge) for edge in sends]
        self._call("RunGraph", request, protos.RunGraphResponse)
        found = [call.result() for call in calls]
        self._call("CleanupGraph", protos.CleanupGraphRequest(step_id=self._step), protos.CleanupGraphResponse)
        return found

    def _receive(self, edge):
        key = f"{PS};{self.incarnation:016x};{WORKER};{edge};0:0"
        request = protos.RecvTensorRequest(step_id=self._step, rendezvous_key=key)
        response = self._call("RecvTensor", request, protos.RecvTensorResponse)
        return DEAD if response.is_dead else float(tf.make_ndarray(response.tensor))

    def transfer(self, op, edge, dtype, *inputs):
        source, destination = (PS, WORKER) if op == "_Send" else (WORKER, PS)
        made = node(f"{edge}/{op}", op, *inputs)
        made.attr["T" if op == "_Send" else "tensor_type"].type = dtype
        made.attr["tensor_name"].s = edge.encode()
        made.attr["send_device"].s, made.attr["recv_device"].s = source.encode(), destination.encode()
        incarnation = self.incarnation if op == "_Send" else 1
        made.attr["send_device_incarnation"].i = incarnation
        made.attr["client_terminated"].b = False
        return made


def node(name, op, *inputs, **types):
    made = protos.NodeDef(name=name, op=op, input=inputs, device=PS)
    for attr, value in types.items():
        made.attr[attr].type = value
    return made


def constant(name, value, *inputs):
    made = node(name, "Const", *inputs, dtype=FLOAT)
    made.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value, tf.float32))
    return made


def variable(name):
    made = node(name, "VariableV2", dtype=FLOAT)
    made.attr["shape"].shape.SetInParent()
    made.attr["shared_name"].s = name.encode()
    return made


@pytest.fixture(scope="module")
def peer():
    peer = Peer()
    yield peer
    peer.close()


def test_an_update_in_one_branch(peer):
    """`cond(p, lambda: v.assign_add(x), lambda: v)`: the variable changes only if that branch is taken, and the other value is dead."""
    v = variable("v")
    start = peer.register(v, constant("one", 1.0), node("v/Assign", "Assign", "v", "one", T=FLOAT))
    part = peer.register(
        v,
        node("v/read", "Identity", "v", T=FLOAT),
        peer.transfer("_Recv", "p", BOOL),
        node("AssignAdd/Switch", "RefSwitch", "v", "p/_Recv", T=FLOAT),
        node("Identity/Switch", "Switch", "v/read", "p/_Recv", T=FLOAT),
        peer.transfer("_Recv", "x", FLOAT),
        node("AssignAdd", "AssignAdd", "AssignAdd/Switch:1", "x/_Recv", T=FLOAT),
        peer.transfer("_Send", "read", FLOAT, "Identity/Switch"),
        peer.transfer("_Send", "added", FLOAT, "AssignAdd"),
    )
    peer.run(start, [], {})
    assert peer.run(part, ["read", "added"], {"p": True, "x": 3.0}) == [DEAD, 4.0]
    assert peer.run(part, ["read", "added"], {"p": False, "x": DEAD}) == [4.0, DEAD]
    assert peer.run(part, ["read", "added"], {"p": True, "x": 2.0}) == [DEAD, 6.0]


def test_both_branches_end_here(peer):
    """A Merge takes the branch that is alive, and knows which one that was. An update after it runs in either case."""
    total = variable("total")
    start = peer.register(total, constant("zero", 0.0), node("total/Assign", "Assign", "total", "zero", T=FLOAT))
    merge = node("Merge", "Merge", "near", "far/_Recv", T=FLOAT)
    merge.attr["N"].i = 2
    part = peer.register(
        total,
        peer.transfer("_Recv", "p", BOOL),
        node("Switch", "Switch", "p/_Recv", "p/_Recv", T=BOOL),
        node("switch_t", "Identity", "Switch:1", T=BOOL),
        constant("ten", 10.0, "^switch_t"),
        node("near", "Neg", "ten", T=FLOAT),
        peer.transfer("_Recv", "far", FLOAT),
        merge,
        node("index", "Cast", "Merge:1", SrcT=3, DstT=FLOAT),
        node("sum", "Add", "Merge", "index", T=FLOAT),
        node("AssignAdd", "AssignAdd", "total", "sum", T=FLOAT),
        peer.transfer("_Send", "sum", FLOAT, "AssignAdd"),
    )
    peer.run(start, [], {})
    assert peer.run(part, ["sum"], {"p": True, "far": DEAD}) == [-10.0]
    assert peer.run(part, ["sum"], {"p": False, "far": 20.0}) == [11.0]
    assert peer.run(part, ["sum"], {"p": DEAD, "far": DEAD}) == [DEAD]


def test_a_dead_value_without_branches(peer):
    """Ops without a Switch of their own do not run either if a value that they need, or wait for, is dead. All others do."""
    part = peer.register(
        peer.transfer("_Recv", "a", FLOAT),
        peer.transfer("_Recv", "b", FLOAT),
        constant("two", 2.0),
        node("double", "Mul", "a/_Recv", "two", T=FLOAT),
        node("sum", "Add", "double", "b/_Recv", T=FLOAT),
        constant("after", 7.0, "^a/_Recv"),
        node("negative", "Neg", "b/_Recv", T=FLOAT),
        *(peer.transfer("_Send", name, FLOAT, name) for name in ("double", "sum", "after", "negative")),
    )
    sends = ["double", "sum", "after", "negative"]
    assert peer.run(part, sends, {"a": 1.0, "b": 5.0}) == [2.0, 7.0, 7.0, -5.0]
    assert peer.run(part, sends, {"a": DEAD, "b": 5.0}) == [DEAD, DEAD, DEAD, -5.0]
    assert peer.run(part, sends, {"a": 1.0, "b": DEAD}) == [2.0, DEAD, 7.0, DEAD]


def test_a_share_of_a_loop_is_refused(peer):
    """A loop whose body is on several tasks gives an error that names the loop."""
    enter = node("enter", "Enter", "zero", T=FLOAT)
    enter.attr["frame_name"].s = b"loop"
    merge = node("merge", "Merge", "enter", "next", T=FLOAT)
    merge.attr["N"].i = 2
    nodes = (
        constant("zero", 0.0),
        enter,
        merge,
        peer.transfer("_Recv", "p", BOOL, "^merge"),
        node("switch", "Switch", "merge", "p/_Recv", T=FLOAT),
        node("next", "NextIteration", "switch:1", T=FLOAT),
    )
    with pytest.raises(grpc.RpcError) as error:
        peer.register(*nodes)
    assert error.value.code() == grpc.StatusCode.UNIMPLEMENTED
    assert "loop 'loop'" in str(error.value.details())
