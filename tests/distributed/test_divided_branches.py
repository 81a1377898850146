"""Branches and loops that TensorFlow's master divides over its own task and a stoker task. The test plays TensorFlow's side of the protocol.

The parts of graphs are those that TensorFlow 1.15 sends for a `tf.cond` or `tf.while_loop` on a worker whose ops are in part on a parameter server.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest

import stoker.compat.v1 as tf
from stoker._src.distributed.frames import Frame
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
        *_, edge, place = protos.RecvTensorRequest.FromString(data).rendezvous_key.split(";")
        value = self.values[edge if place == "0:0" else (edge, place)]
        response = protos.RecvTensorResponse(is_dead=value is DEAD)
        if value is not DEAD:
            response.tensor.CopyFrom(tf.make_tensor_proto(value))
        return response.SerializeToString()

    def _call(self, name, request, response):
        data = self._channel.unary_unary(f"/tensorflow.WorkerService/{name}")(request.SerializeToString(), timeout=120)
        return response.FromString(data)

    def register(self, *nodes, version="1.15"):
        request = protos.RegisterGraphRequest(session_handle="s", create_worker_session_called=True)
        request.graph_def.versions.producer = 134
        request.graph_def.node.extend(nodes)
        if version != "1.15":
            request.MergeFromString(b"\x42\x00")  # a field that only TensorFlow 2 sends
        return self._call("RegisterGraph", request, protos.RegisterGraphResponse).graph_handle

    def run(self, graph, sends, values):
        """Runs a part. Returns the values of the edges `sends`, DEAD for those that are dead. In a loop an edge is a pair: (name, frame:iteration)."""
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
        name, place = edge if isinstance(edge, tuple) else (edge, "0:0")
        key = f"{PS};{self.incarnation:016x};{WORKER};{name};{place}"
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


FRAME = "while/while_context"
NUMBERS = {
    "1.15": 1496156560211570566,
    "2.21": 18186195969791715286,
}  # of FRAME, as they stand in the keys of these versions


def entering(name, op, source, *, constant, frame=FRAME):
    made = node(name, op, source, T=FLOAT)
    made.attr["frame_name"].s = frame.encode()
    made.attr["is_constant"].b = constant
    return made


def merging(name, *inputs):
    made = node(name, "Merge", *inputs, T=FLOAT)
    made.attr["N"].i = 2
    return made


def loop(peer):
    """`while_loop(lambda t: p, lambda t: t + v.assign_add(x), [start])` whose predicate and x are on the worker."""
    return (
        entering("v/RefEnter", "RefEnter", "v", constant=True),
        entering("Enter", "Enter", "start", constant=False),
        merging("Merge", "Enter", "NextIteration"),
        peer.transfer("_Recv", "p", BOOL, "^Merge"),
        node("Switch", "Switch", "Merge", "p/_Recv", T=FLOAT),
        peer.transfer("_Recv", "x", FLOAT, "^Merge"),
        node("AssignAdd", "AssignAdd", "v/RefEnter", "x/_Recv", T=FLOAT),
        peer.transfer("_Send", "added", FLOAT, "AssignAdd"),
        node("add", "AddV2", "Switch:1", "AssignAdd", T=FLOAT),
        node("NextIteration", "NextIteration", "add", T=FLOAT),
        node("Exit", "Exit", "Switch", T=FLOAT),
        peer.transfer("_Send", "last", FLOAT, "Exit"),
    )


@pytest.mark.parametrize("version", NUMBERS)
def test_a_share_of_a_loop(peer, version):
    """Values of an iteration travel under its number. The loop ends where the predicate is false, and its value leaves it."""
    number = NUMBERS[version]
    v = variable("v")
    start = peer.register(v, constant("one", 1.0), node("v/Assign", "Assign", "v", "one", T=FLOAT))
    part = peer.register(v, constant("start", 100.0), *loop(peer), version=version)
    peer.run(start, [], {})
    values = {}
    for i, (predicate, x) in enumerate([(True, 2.0), (True, 3.0), (False, DEAD)]):
        values["p", f"{number}:{i}"], values["x", f"{number}:{i}"] = predicate, x
    sends = [*(("added", f"{number}:{i}") for i in range(3)), "last"]
    assert peer.run(part, sends, values) == [3.0, 6.0, DEAD, 109.0]


def test_a_loop_in_a_branch_that_is_not_taken(peer):
    """What enters the loop is dead, and the first iteration passes that on: nothing is updated, and all values are dead."""
    number = NUMBERS["1.15"]
    v = variable("v")
    start = peer.register(v, constant("one", 1.0), node("v/Assign", "Assign", "v", "one", T=FLOAT))
    part = peer.register(
        v,
        constant("hundred", 100.0),
        peer.transfer("_Recv", "taken", BOOL),
        node("start", "Identity", "choice:1", T=FLOAT),
        node("choice", "Switch", "hundred", "taken/_Recv", T=FLOAT),
        *loop(peer),
    )
    read = peer.register(v, node("v/read", "Identity", "v", T=FLOAT), peer.transfer("_Send", "v", FLOAT, "v/read"))
    peer.run(start, [], {})
    values = {"taken": False, ("p", f"{number}:0"): DEAD, ("x", f"{number}:0"): DEAD}
    assert peer.run(part, [("added", f"{number}:0"), "last"], values) == [DEAD, DEAD]
    assert peer.run(read, ["v"], {}) == [1.0]
    values = {"taken": True, ("p", f"{number}:0"): False, ("x", f"{number}:0"): DEAD}
    assert peer.run(part, [("added", f"{number}:0"), "last"], values) == [DEAD, 100.0]


def test_a_loop_in_a_loop(peer):
    """In the last iteration of the outer loop what enters the inner one is dead, and so is its predicate. The outer loop ends."""
    part = peer.register(
        constant("start", 100.0),
        entering("Enter", "Enter", "start", constant=False, frame="outer"),
        merging("Merge", "Enter", "NextIteration"),
        peer.transfer("_Recv", "p", BOOL, "^Merge"),
        node("Switch", "Switch", "Merge", "p/_Recv", T=FLOAT),
        entering("inner/Enter", "Enter", "Switch:1", constant=False, frame="inner"),
        merging("inner/Merge", "inner/Enter", "inner/NextIteration"),
        peer.transfer("_Recv", "q", BOOL, "^inner/Merge"),
        node("inner/Switch", "Switch", "inner/Merge", "q/_Recv", T=FLOAT),
        node("double", "AddV2", "inner/Switch:1", "inner/Switch:1", T=FLOAT),
        node("inner/NextIteration", "NextIteration", "double", T=FLOAT),
        node("inner/Exit", "Exit", "inner/Switch", T=FLOAT),
        node("NextIteration", "NextIteration", "inner/Exit", T=FLOAT),
        node("Exit", "Exit", "Switch", T=FLOAT),
        peer.transfer("_Send", "last", FLOAT, "Exit"),
    )
    outer, values = Frame().inner(0, "outer", combined=False), {}
    for i, inner_predicates in enumerate([[True, False], [True, True, False], [DEAD]]):
        values["p", f"{outer.number}:{i}"] = i < 2
        inner = outer.inner(i, "inner", combined=False)
        values.update({("q", f"{inner.number}:{j}"): predicate for j, predicate in enumerate(inner_predicates)})
    assert peer.run(part, ["last"], values) == [800.0]


@pytest.mark.parametrize("inputs", [(), ("^start",)])
def test_a_loop_without_an_input_is_refused(peer, inputs):
    """An Enter node that nothing enters through is named."""
    enter = entering("Enter", "Enter", "start", constant=False)
    enter.input[:] = inputs
    with pytest.raises(grpc.RpcError, match=r"Node 'Enter' \(op Enter\) has no input") as error:
        peer.register(constant("start", 1.0), enter, *loop(peer)[2:])
    assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT


def test_a_loop_that_carries_a_reference_is_refused(peer):
    """TensorFlow's loops of references have no counterpart. The error names the node."""
    merge = merging("Merge", "Enter", "NextIteration")
    merge.op = "RefMerge"
    nodes = (
        variable("v"),
        entering("Enter", "RefEnter", "v", constant=False),
        merge,
        peer.transfer("_Recv", "p", BOOL, "^Merge"),
        node("Switch", "RefSwitch", "Merge", "p/_Recv", T=FLOAT),
        node("NextIteration", "RefNextIteration", "Switch:1", T=FLOAT),
    )
    with pytest.raises(grpc.RpcError) as error:
        peer.register(*nodes)
    assert error.value.code() == grpc.StatusCode.UNIMPLEMENTED
    assert "'Merge'" in str(error.value.details())
