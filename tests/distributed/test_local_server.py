"""`tf.train.Server` with one task, and sessions on it: near (in this process) and far (through gRPC)."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import stoker.compat.v1 as tf
from tests.distributed.clusters import far
from tests.distributed.ports import free_ports


@pytest.fixture(scope="module")
def server():
    server = tf.train.Server.create_local_server()
    yield server
    server._stop()


@pytest.fixture(params=["near", "far"])
def target(server, request):
    """The target of the server, for sessions that call it directly or through gRPC."""
    with tf.Graph().as_default():
        if request.param == "near":
            yield server.target
        else:
            with far():
                yield server.target
        tf.Session.reset(server.target)


def test_a_local_server_is_the_task_of_a_job_of_its_own(server):
    """create_local_server makes job "local" with one task, on a free port."""
    definition = server.server_def
    assert (definition.job_name, definition.task_index, definition.protocol) == ("local", 0, "grpc")
    assert server.target.startswith("grpc://localhost:")
    assert int(server.target.rsplit(":", 1)[1]) > 0
    server.start()  # again, without effect


def test_definitions_that_do_not_fit():
    """The job and the task must be stated unless there is only one, and must exist."""
    two = {"w": ["localhost:0", "localhost:0"]}
    for cluster, arguments, error, words in [
        (3, {}, TypeError, "Could not convert"),
        (two, {}, ValueError, "explicit `task_index`"),
        ({**two, "p": ["localhost:0"]}, {}, ValueError, "explicit `job_name`"),
        (two, {"job_name": "x"}, ValueError, "No such job in cluster: 'x'"),
        (two, {"job_name": "x", "task_index": 0}, tf.errors.InternalError, 'Job "x" was not defined in cluster'),
        (two, {"job_name": "w", "task_index": 2}, tf.errors.InvalidArgumentError, "Task 2 was not defined"),
        (two, {"task_index": 0, "protocol": "x"}, tf.errors.NotFoundError, "No server factory"),
        ({"w": ["localhost"]}, {}, tf.errors.InvalidArgumentError, "host:port"),
    ]:
        with pytest.raises(error, match=words):
            tf.train.Server(cluster, **arguments)


def test_explicit_arguments_override_the_definition():
    """Job, task, protocol and config given to Server take precedence over the ServerDef."""
    cluster = tf.train.ClusterSpec({"w": ["localhost:0", "localhost:0"], "p": ["localhost:0"]})
    given = tf.train.ServerDef(cluster=cluster.as_cluster_def(), job_name="p", task_index=0, protocol="grpc")
    server = tf.train.Server(given, "w", 1, config=tf.ConfigProto(allow_soft_placement=True), start=False)
    try:
        assert (server.server_def.job_name, server.server_def.task_index) == ("w", 1)
        assert server.server_def.default_session_config.allow_soft_placement
        assert given.job_name == "p"
    finally:
        server._stop()


def test_an_address_in_use(server):
    """A second server on the same port cannot be started."""
    with pytest.raises(tf.errors.UnknownError, match="Could not start gRPC server"):
        tf.train.Server({"local": [server.target.removeprefix("grpc://")]})


def test_a_session_on_a_server_runs_its_graph(target):
    """Feeds, fetches of every kind, variables, and nodes added after the first run."""
    x = tf.placeholder(tf.float32, [None])
    plain = tf.Variable([1.0, 2.0], use_resource=False)
    handle = tf.Variable([3, 4], use_resource=True)
    text = tf.string_join([tf.constant(["a", "b"]), "c"])
    with tf.Session(target) as session:
        session.run(tf.global_variables_initializer())
        values = session.run({"y": [x * plain, handle], "s": text, "op": tf.no_op(), "x": x}, {x: [5, 6]})
        np.testing.assert_array_equal(values["y"][0], [5, 12])
        np.testing.assert_array_equal(values["y"][1], [3, 4])
        assert values["s"].tolist() == [b"ac", b"bc"]
        assert values["op"] is None
        np.testing.assert_array_equal(values["x"], [5, 6])
        assert session.run(tf.reduce_sum(plain.assign_add([1.0, 1.0]))) == 5.0
        values["y"][0][0] = 7  # what is fetched belongs to the caller


def test_sessions_share_variables_and_queues_by_name(target):
    """Two sessions on one server, with graphs of their own, see each other's variables, queues and tables."""
    runs = []
    for _ in range(2):
        with tf.Graph().as_default() as graph:
            v = tf.get_variable("v", [], initializer=tf.zeros_initializer())
            queue = tf.FIFOQueue(3, tf.int32, shared_name="queue")
            runs.append((graph, v, v.assign_add(1.0), queue.enqueue(7), queue.dequeue(), v.initializer))
    (graph, v, _, enqueue, _, init), (other_graph, w, add, _, dequeue, _) = runs
    with tf.Session(target, graph=graph) as session:
        session.run([init, enqueue])
        with tf.Session(target, graph=other_graph) as other:
            assert other.run(add) == 1.0
            assert other.run(dequeue) == 7
        assert session.run(v) == 1.0
    with tf.Session(target, graph=other_graph) as other:
        assert other.run(w) == 1.0
        isolated = tf.ConfigProto(isolate_session_state=True)
        with (
            tf.Session(target, graph=other_graph, config=isolated) as apart,
            pytest.raises(tf.errors.FailedPreconditionError),
        ):
            apart.run(w)


def test_reset_drops_variables_by_container(target):
    """Session.reset drops the resources of the containers it names, or of all."""
    with tf.container("kept"):
        kept = tf.Variable(1.0, name="kept")
    with tf.container("dropped"):
        dropped = tf.Variable(2.0, name="dropped")
    init = tf.global_variables_initializer()
    with tf.Session(target) as session:
        session.run(init)
    tf.Session.reset(target, ["dropped"])
    with tf.Session(target) as session:
        assert session.run(kept) == 1.0
        with pytest.raises(tf.errors.FailedPreconditionError):
            session.run(dropped)
    tf.Session.reset(target)
    with tf.Session(target) as session, pytest.raises(tf.errors.FailedPreconditionError):
        session.run(kept)


def test_reset_ends_the_sessions_of_a_server(target):
    """After Session.reset the other sessions of the server raise AbortedError, which monitored sessions recover from, and close quietly."""
    total = tf.Variable(1.0, name="total")
    fetch = total + 1.0
    with tf.Session(target) as session:
        session.run(total.initializer)
        tf.Session.reset(target)
        for _ in range(2):
            with pytest.raises(tf.errors.AbortedError, match=r"is not found\. Possibly, this master has restarted"):
                session.run(fetch)
    with tf.train.SessionManager().prepare_session(target, total.initializer) as session:
        assert session.run(fetch) == 2.0


def test_random_numbers_go_on_over_runs_of_different_fetches(target):
    """A random op keeps its state in the session: another set of fetches continues its numbers, a new session starts again."""
    numbers = tf.random.uniform([2], seed=3)
    double = numbers * 2
    with tf.Session(target) as session:
        first, second = session.run(numbers), session.run(double) / 2
    assert not np.array_equal(first, second)
    with tf.Session(target) as session:
        np.testing.assert_array_equal(session.run(numbers), first)
        np.testing.assert_array_equal(session.run(numbers), second)


def test_errors_name_the_op_of_the_client(target):
    """A failure on the server is an error of the same class in the client, with the client's own op."""
    x = tf.placeholder(tf.float32, [None])
    wrong = tf.reshape(x, [3], name="wrong")
    with tf.Session(target) as session:
        with pytest.raises(tf.errors.InvalidArgumentError) as error:
            session.run(wrong, {x: [1, 2]})
        assert error.value.op is wrong.op
        with tf.device("/job:elsewhere"):
            z = x + 1
        with pytest.raises(
            tf.errors.InvalidArgumentError, match="was explicitly assigned to /job:elsewhere but available"
        ):
            session.run(z, {x: [1, 2]})


def test_partial_runs_and_callables(target):
    """Partial runs keep what was computed; a callable takes its feeds by position."""
    a, b = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
    counter = tf.get_variable("counter", [], initializer=tf.zeros_initializer(), use_resource=True)
    with tf.control_dependencies([counter.assign_add(1.0)]):
        half = a * 2
    whole = half + b
    with tf.Session(target) as session:
        session.run(counter.initializer)
        handle = session.partial_run_setup([half, whole], [a, b])
        assert session.partial_run(handle, half, {a: 3}) == 6
        assert session.partial_run(handle, whole, {b: 1}) == 7
        assert session.run(counter) == 1
        assert session.make_callable(whole, [b, a])(1.0, 2.0) == 5


def test_devices(target):
    """list_devices has the server's devices under the name of its task."""
    with tf.Session(target) as session:
        names = [device.name for device in session.list_devices()]
    assert "/job:local/replica:0/task:0/device:CPU:0" in names


def test_closing_cancels_and_deadlines_expire(target):
    """A waiting run ends with DeadlineExceededError at its deadline, and with CancelledError when its session closes."""
    queue = tf.FIFOQueue(1, tf.float32)
    dequeue = queue.dequeue()
    with (
        pytest.raises(tf.errors.DeadlineExceededError),  # a busy machine may need that time to open the session
        tf.Session(target, config=tf.ConfigProto(operation_timeout_in_ms=200)) as session,
    ):
        session.run(dequeue)
    session = tf.Session(target)
    session.run(queue.size())
    with pytest.raises(tf.errors.DeadlineExceededError):
        session.run(dequeue, options=tf.RunOptions(timeout_in_ms=200))
    found = []
    started = threading.Event()

    def wait() -> None:
        started.set()
        try:
            session.run(dequeue)
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    started.wait()
    session.close()
    thread.join()
    assert isinstance(found[0], (tf.errors.CancelledError, RuntimeError))
    with pytest.raises(RuntimeError, match="closed Session"):
        session.run(dequeue)


def test_python_functions_run_only_in_their_own_process(server):
    """A py_func runs for a session of the same process, and is refused when it comes from the network."""
    with tf.Graph().as_default():
        y = tf.py_func(lambda: np.float32(3), [], tf.float32)
        with tf.Session(server.target) as session:
            assert session.run(y) == 3
        with far(), tf.Session(server.target) as session, pytest.raises(tf.errors.PermissionDeniedError):
            session.run(y)


def test_nobody_at_the_target(monkeypatch):
    """A session on a port that nobody serves fails at its first run, after it has waited for a server to start."""
    monkeypatch.setenv("STOKER_CONNECT_TIMEOUT_SECS", "0.3")
    with tf.Graph().as_default():
        one = tf.constant(1.0)
        with tf.Session("grpc://127.0.0.1:1") as session, pytest.raises(tf.errors.UnavailableError):
            session.run(one)


def test_a_client_may_start_before_the_server():
    """A session waits for a server that is not there yet."""
    (port,) = free_ports(1)
    found = []
    with tf.Graph().as_default(), tf.Session(f"grpc://127.0.0.1:{port}") as session, far():
        one = tf.constant(1.0)
        client = threading.Thread(target=lambda: found.append(session.run(one)))
        client.start()
        server = tf.train.Server({"local": [f"127.0.0.1:{port}"]})
        client.join(60)
    server._stop()
    assert found == [1.0]


def test_the_cluster_of_a_session_is_that_of_its_server():
    """ConfigProto.cluster_def may repeat the server's cluster; another one is refused."""
    server = tf.train.Server.create_local_server()
    try:
        own = tf.train.ClusterSpec(server.server_def.cluster).as_cluster_def()
        other = tf.train.ClusterSpec({"local": ["127.0.0.1:1"], "ps": ["127.0.0.1:2"]}).as_cluster_def()
        with tf.Graph().as_default():
            one = tf.constant(1.0)
            with tf.Session(server.target, config=tf.ConfigProto(cluster_def=own)) as session:
                assert session.run(one) == 1
            with (
                tf.Session(server.target, config=tf.ConfigProto(cluster_def=other)) as session,
                pytest.raises(tf.errors.InvalidArgumentError, match="another cluster"),
            ):
                session.run(one)
    finally:
        server._stop()
