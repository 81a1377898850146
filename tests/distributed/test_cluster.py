"""Graphs over several tasks: one parameter server and two workers, in this process, connected through gRPC."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import stoker.compat.v1 as tf
from tests.distributed.clusters import far, servers

PS, WORKER, OTHER = "/job:ps/task:0", "/job:worker/task:0", "/job:worker/task:1"


@pytest.fixture(scope="module")
def cluster():
    with servers(ps=1, worker=2) as started:
        yield started


@pytest.fixture
def target(cluster):
    with tf.Graph().as_default():
        yield cluster["worker", 0].target
        tf.Session.reset(cluster["worker", 0].target)


def _model(ps, worker, optimizer):
    """A small network whose variables are on `ps`, and ten losses of its training."""
    random = np.random.RandomState(0)
    features, labels = random.rand(32, 8).astype("f"), random.rand(32, 1).astype("f")
    with tf.device(ps):
        w1 = tf.get_variable("w1", initializer=random.randn(8, 16).astype("f") * 0.3, use_resource=True)
        b1 = tf.get_variable("b1", [16], initializer=tf.zeros_initializer())
        w2 = tf.get_variable("w2", initializer=random.randn(16, 1).astype("f") * 0.3)
        step = tf.train.get_or_create_global_step()
    with tf.device(worker):
        x, t = tf.placeholder(tf.float32, [None, 8]), tf.placeholder(tf.float32, [None, 1])
        loss = tf.reduce_mean(tf.square(tf.matmul(tf.nn.relu(tf.matmul(x, w1) + b1), w2) - t))
    train = optimizer.minimize(loss, global_step=step)

    def losses(session):
        session.run(tf.global_variables_initializer())
        return [session.run([loss, train], {x: features, t: labels})[0] for _ in range(10)] + [session.run(step)]

    return losses


@pytest.mark.parametrize(
    "make", [lambda: tf.train.AdamOptimizer(0.05), lambda: tf.train.GradientDescentOptimizer(0.05)]
)
def test_training_on_a_cluster_equals_training_at_home(target, make):
    """With variables on a parameter server and the rest on a worker, the losses are bit for bit those of one process."""
    losses = _model(PS, WORKER, make())
    with tf.Session(target) as session:
        found = losses(session)
    with tf.Graph().as_default(), tf.Session() as session:
        expected = _model("", "", make())(session)
    assert found == expected


def test_a_client_elsewhere(cluster):
    """A client that is not a task of the cluster can train, too: all goes through the master that it names."""
    with far(), tf.Graph().as_default():
        losses = _model(PS, OTHER, tf.train.AdamOptimizer(0.05))
        with tf.Session(cluster["worker", 0].target) as session:
            found = losses(session)
    assert found[-1] == 10
    assert found[-2] < found[0]
    tf.Session.reset(cluster["ps", 0].target)


def test_masters_share_the_variables_of_a_task(cluster, target):
    """A variable on a parameter server is the same from every worker's master."""
    with tf.device(PS):
        v = tf.get_variable("v", [2], initializer=tf.zeros_initializer())
    add = v.assign_add([1.0, 2.0])
    with tf.Session(target) as one, tf.Session(cluster["worker", 1].target) as other:
        one.run(v.initializer)
        other.run(add)
        one.run(add)
        np.testing.assert_array_equal(other.run(v), [2, 4])


def test_values_of_every_dtype_travel(target):
    """Numbers, booleans, complex numbers, strings, empty and large tensors arrive unchanged."""
    values = [
        np.arange(6, dtype=dtype).reshape(2, 3)
        for dtype in ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "c8", "c16")
    ]
    values += [np.array([True, False]), np.array([b"", b"text"], object), np.zeros((0, 3), "f"), np.float32(3)]
    values += [np.arange(3 << 20, dtype="f")]  # is streamed
    feeds = [tf.placeholder(tf.as_dtype(value.dtype)) for value in values]
    with tf.device(PS):
        here = [tf.identity(feed) for feed in feeds] + [tf.constant(2.0, tf.bfloat16)]
    with tf.device(OTHER):
        there = [tf.stack([value, value]) for value in here]
    with tf.Session(target) as session:
        found = session.run(there, dict(zip(feeds, values)))
    for value, result in zip([*values, np.float32(2)], found):
        np.testing.assert_array_equal(result.astype(value.dtype), np.stack([value, value]))


def test_control_dependencies_and_blocking_ops_across_tasks(target):
    """An op waits for an op of another task. A dequeue and the enqueue that feeds it may be in one run, on two tasks."""
    with tf.device(PS):
        v = tf.get_variable("v", [], initializer=tf.zeros_initializer(), use_resource=True)
        queue = tf.FIFOQueue(1, tf.float32)
        add = v.assign_add(1.0)
    with tf.device(WORKER), tf.control_dependencies([add]):
        here = tf.constant(5.0) * 2
    with tf.device(OTHER):
        enqueue = queue.enqueue(here + 1)
    with tf.device(PS):
        taken = queue.dequeue()
        with tf.control_dependencies([here]):
            after = v.read_value()
    with tf.device(WORKER):
        doubled = taken * 2
    with tf.Session(target, config=tf.ConfigProto(operation_timeout_in_ms=60_000)) as session:
        session.run(v.initializer)
        assert session.run([doubled, after, enqueue]) == [22, 1, None]
        assert session.run([enqueue, after, doubled]) == [None, 2, 22]


def test_control_flow_reads_values_of_other_tasks(target):
    """A branch and a loop run on one task; what they read comes from others. With a resource variable they run beside it."""
    with tf.device(PS):
        plain = tf.get_variable("plain", [], initializer=tf.ones_initializer(), use_resource=False)
        handle = tf.get_variable("handle", [], initializer=tf.ones_initializer(), use_resource=True)
    with tf.device(WORKER):
        x = tf.placeholder(tf.float32, [])
        branch = tf.cond(x > 0, lambda: x * (plain + 2), lambda: x - handle)
        _, loop = tf.while_loop(lambda i, a: i < 4, lambda i, a: (i + 1, a * (x + plain)), [0, 1.0])
    with tf.Session(target) as session:
        session.run(tf.global_variables_initializer())
        assert session.run([branch, loop], {x: 2.0}) == [6, 81]
        assert session.run(branch, {x: -2.0}) == -3


def test_placement(cluster, target):
    """Devices that do not exist are errors, unless placement is soft; ops without a device are on the master's task."""
    with tf.device("/job:ps/task:7"):
        lost = tf.constant(1.0) + tf.placeholder_with_default(1.0, [])
    with tf.device("/job:worker/task:1/device:GPU:7"):
        soft = tf.constant(1.0) + tf.placeholder_with_default(1.0, [])
    free = tf.placeholder_with_default(2.0, []) * 3
    with tf.Session(target) as session:
        with pytest.raises(
            tf.errors.InvalidArgumentError, match="explicitly assigned to /job:ps/task:7 but available dev"
        ):
            session.run(lost)
        with pytest.raises(tf.errors.InvalidArgumentError, match="Cannot assign a device for operation"):
            session.run(soft)
        metadata = tf.RunMetadata()
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, output_partition_graphs=True)
        assert session.run(free, options=options, run_metadata=metadata) == 6
        assert {node.device for node in metadata.partition_graphs[0].node} == {
            "/job:worker/replica:0/task:0/device:CPU:0"
        }
        assert [each.device for each in metadata.step_stats.dev_stats] == ["/job:worker/replica:0/task:0/device:CPU:0"]
        assert len(session.list_devices()) >= 3
    with tf.Session(target, config=tf.ConfigProto(allow_soft_placement=True)) as session:
        assert session.run(soft) == 2


def test_device_filters(cluster, target):
    """A session sees only the tasks that its filters name, and its own."""
    config = tf.ConfigProto(device_filters=["/job:ps"])
    with tf.Session(target, config=config) as session:
        tasks = {device.name.partition("/device:")[0] for device in session.list_devices()}
        assert tasks == {"/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0"}
        with tf.device(OTHER):
            x = tf.placeholder_with_default(1.0, []) * 2
        with pytest.raises(tf.errors.InvalidArgumentError, match="Cannot assign a device"):
            session.run(x)


def test_an_error_of_one_task_ends_the_step_everywhere(target):
    """A failure names its op, and the parts of the step on other tasks do not wait for ever."""
    with tf.device(PS):
        x = tf.placeholder(tf.float32, [None])
        wrong = tf.reshape(x, [3], name="wrong")
    with tf.device(OTHER):
        y = wrong * 2
    with tf.Session(target) as session:
        for _ in range(3):
            with pytest.raises(tf.errors.InvalidArgumentError) as error:
                session.run(y, {x: [1, 2]})
            assert error.value.op is wrong.op
        np.testing.assert_array_equal(session.run(y, {x: [1, 2, 3]}), [2, 4, 6])


def test_a_waiting_step_on_another_task_is_cancelled(target):
    """Closing a session ends a dequeue that waits on a parameter server; a deadline does so, too."""
    with tf.device(PS):
        queue = tf.FIFOQueue(1, tf.float32)
        value = queue.dequeue()
    with tf.device(WORKER):
        more = value + 1
    session = tf.Session(target)
    with pytest.raises(tf.errors.DeadlineExceededError):
        session.run(more, options=tf.RunOptions(timeout_in_ms=200))
    found = []

    def wait():
        try:
            session.run(more)
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    session.close()
    thread.join()
    assert isinstance(found[0], (tf.errors.CancelledError, RuntimeError)), found


def test_lost_tasks():
    """A task that goes away makes steps fail with UnavailableError; its successor does not know the session: AbortedError."""
    with servers(ps=1, worker=1) as started, tf.Graph().as_default():
        with tf.device(PS):
            x = tf.placeholder_with_default(1.0, []) * 2
        with tf.device(WORKER):
            y = x + 1
        with tf.Session(started["worker", 0].target) as session:
            assert session.run(y) == 3
            definition = started["ps", 0].server_def
            started["ps", 0]._stop()
            with pytest.raises((tf.errors.UnavailableError, tf.errors.CancelledError)):
                session.run(y)
            started["ps", 0] = tf.train.Server(definition)
            errors = []
            while not errors or isinstance(errors[-1], tf.errors.UnavailableError):  # until it is connected again
                with pytest.raises(tf.errors.OpError) as error:
                    session.run(y)
                errors.append(error.value)
            assert isinstance(errors[-1], tf.errors.AbortedError)
        with tf.Session(started["worker", 0].target) as session:
            assert session.run(y) == 3


def test_embeddings_stay_on_their_task(target):
    """A lookup sends only the rows, and its gradient updates only the rows."""
    with tf.device(PS):
        table = tf.get_variable("table", [1000, 4], initializer=tf.ones_initializer(), use_resource=True)
    with tf.device(WORKER):
        ids = tf.placeholder(tf.int64, [None])
        rows = tf.nn.embedding_lookup(table, ids)
        loss = tf.reduce_sum(tf.square(rows))
    train = tf.train.GradientDescentOptimizer(0.25).minimize(loss)
    with tf.Session(target) as session:
        session.run(tf.global_variables_initializer())
        session.run(train, {ids: [3, 5]})
        np.testing.assert_array_equal(session.run(tf.gather(table, [2, 3, 5])), [[1] * 4, [0.5] * 4, [0.5] * 4])
        sent = [line for line in session.explain(train, [ids]).splitlines() if "_Send(" in line]
        assert not any("table" in line for line in sent), sent


def test_a_branch_that_reads_a_variable_runs_where_it_is(target):
    """A moving average starts with the initialized value of its variable on another task, even if both are initialized by one run."""
    with tf.device(OTHER):
        weights = tf.get_variable("weights", [2], initializer=tf.ones_initializer())
    with tf.device(PS):
        first = tf.Variable(weights.initialized_value() * 2.0, name="first")
    with tf.Session(target) as session:
        session.run(tf.global_variables_initializer())
        np.testing.assert_array_equal(session.run(first), [2.0, 2.0])


def test_a_branch_updates_variables_of_two_tasks(target):
    """Each update runs on the task of its variable, and what waits for both reads both."""
    flag, other = tf.placeholder(tf.bool, []), tf.placeholder(tf.bool, [])
    with tf.device(PS):
        here = tf.Variable(1.0, name="here")
    with tf.device(OTHER):
        there = tf.Variable(1.0, name="there")

    def update(*variables):
        with tf.control_dependencies([each.assign_add(1.0) for each in variables]):
            return here.read_value() + there.read_value()

    one = tf.cond(flag, lambda: update(there), lambda: tf.constant(0.0))
    both = tf.cond(other, lambda: update(here, there), lambda: tf.constant(0.0))
    with tf.Session(target) as session:
        session.run(tf.global_variables_initializer())
        assert session.run(one, {flag: True}) == 3.0
        assert session.run(both, {other: True}) == 5.0
        assert session.run(both, {other: False}) == 0.0


def test_what_follows_an_update_reads_the_updated_variable(target):
    """A reference variable that is sent to a worker first is read again by ops that wait for its update."""
    with tf.device(PS):
        value = tf.Variable(1.0, name="value")
    with tf.device(WORKER):
        doubled = value * 2.0
    with tf.device(PS):
        update = value.assign_add(doubled)
        with tf.control_dependencies([update]):
            after = value + 10.0
    with tf.Session(target) as session:
        session.run(value.initializer)
        assert session.run(after) == 13.0
        assert session.run([after, value])[0] == 19.0
