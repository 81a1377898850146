"""Sessions: fetches and feeds of every structure, misuse, threads, cancelling, traces."""

from __future__ import annotations

import collections
import json
import threading

import numpy as np
import pytest

import stoker.compat.v1 as tf
from stoker._src.runtime import session as session_module
from stoker._src.runtime.trace import Timeline

Pair = collections.namedtuple("Pair", "first second")


def test_fetches_of_every_structure():
    """The answer has the structure of the fetches; operations give None, repeats are computed once."""
    a, b = tf.constant(1.0, name="a"), tf.constant([2, 3], name="b")
    with tf.Session() as session:
        assert session.run(a) == 1.0 and type(session.run(a)) is np.float32
        assert session.run("a:0") == 1.0 and session.run("a") is None and session.run(a.op) is None
        found = session.run({"x": [a, (b, a)], "y": Pair(a, {"z": b}), "o": collections.OrderedDict(k=a.op)})
        assert found["x"][0] == 1.0 and isinstance(found["x"][1], tuple)
        assert isinstance(found["y"], Pair) and found["y"].second["z"].tolist() == [2, 3]
        assert isinstance(found["o"], collections.OrderedDict) and found["o"]["k"] is None
        assert session.run([]) == [] and session.run(()) == () and session.run({}) == {}
        assert session.run([a, a]) == [1.0, 1.0]


def test_structures_that_are_equal_are_told_apart():
    """A named tuple equals a plain one, but what is returned has the kind that was asked for."""
    a, b = tf.constant(1.0), tf.constant(2.0)
    pair = collections.namedtuple("pair", "x y")
    with tf.Session() as session:
        for _ in range(2):
            for fetches in ((a, b), pair(a, b), [(a, b)], [pair(a, b)], [[a, b]], (pair(a, b), a)):
                fetched = session.run(fetches)
                assert type(fetched) is type(fetches)
                assert type(fetched[0]) is (np.float32 if fetches[0] is a else type(fetches[0]))


def test_fetches_of_composite_values():
    """SparseTensor, IndexedSlices and variables are fetched whole."""
    sparse = tf.SparseTensor([[0, 1]], [5.0], [2, 3])
    slices = tf.IndexedSlices(tf.constant([[1.0]]), tf.constant([4]), tf.constant([9, 1]))
    variable = tf.Variable(3.0)
    with tf.Session() as session:
        session.run(variable.initializer)
        found, rows, value = session.run([sparse, slices, variable])
    assert isinstance(found, tf.SparseTensorValue) and found.dense_shape.tolist() == [2, 3]
    assert isinstance(rows, tf.IndexedSlicesValue) and rows.indices.tolist() == [4] and value == 3.0


def test_feeds_by_tensor_name_and_composite():
    """Keys are tensors, names or sparse placeholders; any tensor that may be fed can be."""
    x = tf.placeholder(tf.float32, [None], name="x")
    middle = x * 2.0
    y = middle + 1.0
    sparse = tf.SparseTensor(tf.placeholder(tf.int64), tf.placeholder(tf.float32), tf.placeholder(tf.int64))
    dense = tf.scatter_nd(sparse.indices, sparse.values, sparse.dense_shape)
    with tf.Session() as session:
        assert session.run(y, {"x:0": [1, 2]}).tolist() == [3, 5]
        assert session.run(y, {middle: [10.0]}).tolist() == [11]
        value = tf.SparseTensorValue(np.array([[0, 1]]), np.array([7.0], np.float32), np.array([1, 2]))
        assert session.run(dense, {sparse: value}).tolist() == [[0, 7]]
        assert session.run(dense, {sparse: tuple(value)}).tolist() == [[0, 7]]
        assert session.run(x, {x: np.arange(4)[::-1]}).tolist() == [3, 2, 1, 0]


def test_wrong_fetches():
    """None and things that are no part of the graph are refused by kind."""
    a = tf.constant(1.0)
    with tf.Graph().as_default():
        foreign = tf.constant(2.0)
    with tf.Session() as session:
        for bad in (None, [a, None], 3, [object()]):
            with pytest.raises(TypeError):
                session.run(bad)
        for bad in ("nope", "nope:0", foreign, foreign.op):
            with pytest.raises(ValueError, match="cannot be interpreted as a Tensor"):
                session.run(bad)


def test_wrong_feeds():
    """Keys, shapes and values of feeds are checked before anything runs."""
    x = tf.placeholder(tf.float32, [2], name="x")
    i = tf.placeholder(tf.int32, [], name="i")
    with tf.Graph().as_default():
        foreign = tf.placeholder(tf.float32)
    with tf.Session() as session:
        for key in ("nope:0", 3, x.op, foreign):
            with pytest.raises(TypeError, match="Cannot interpret feed_dict key as Tensor"):
                session.run(x, {key: [1, 2]})
        with pytest.raises(ValueError, match=r"Cannot feed value of shape \(3,\) for Tensor"):
            session.run(x, {x: [1, 2, 3]})
        with pytest.raises(TypeError, match=r"value of a feed cannot be a tf\.Tensor"):
            session.run(x, {x: tf.constant([1.0, 2.0])})
        with pytest.raises(ValueError, match="abc"):
            session.run(x, {x: "abc"})
        with pytest.raises(ValueError):
            session.run(x, {x: [[1], [1, 2]]})
        with pytest.raises(TypeError, match="not compatible with Tensor type"):
            session.run(i, {i: 2**40})
        with pytest.raises(TypeError, match="dictionary"):
            session.run(i, [i])
        with pytest.raises(ValueError, match="fed twice"):
            session.run(i, {i: 1, "i:0": 2})


def test_what_may_not_be_fed_or_fetched():
    """prevent_feeding and prevent_fetching hold also for runs that were made before."""
    x = tf.placeholder(tf.float32, [], name="x")
    y = tf.identity(x, name="y")
    graph = tf.get_default_graph()
    with tf.Session() as session:
        assert session.run(y, {x: 1.0}) == 1.0
        graph.prevent_feeding(x)
        with pytest.raises(ValueError, match="x:0 may not be fed"):
            session.run(y, {x: 1.0})
        graph.prevent_fetching(y.op)
        for fetch in (y, y.op):
            with pytest.raises(ValueError, match="not fetchable"):
                session.run(fetch)
        assert not graph.is_feedable(x) and not graph.is_fetchable(y)


def test_closed_sessions_and_empty_graphs():
    """RuntimeError for both; closing twice is not an error."""
    a = tf.constant(1.0)
    session = tf.Session()
    call = session.make_callable(a)
    session.run(a)
    session.close()
    session.close()
    for attempt in (lambda: session.run(a), call, lambda: session.partial_run_setup([a])):
        with pytest.raises(RuntimeError, match="closed"):
            attempt()
    with pytest.raises(RuntimeError, match="empty"):
        tf.Session(graph=tf.Graph()).run(a)


def test_arguments_of_a_session():
    """A graph, target or config of another kind is a TypeError; so are options and metadata of a run."""
    for arguments in ({"graph": 3}, {"config": 3}, {"target": 3}):
        with pytest.raises(TypeError, match=next(iter(arguments))):
            tf.Session(**arguments)
    a = tf.constant(1.0)
    with tf.Session() as session:
        for name in ("options", "run_metadata"):
            with pytest.raises(TypeError, match=name):
                session.run(a, **{name: 3})


def test_default_sessions():
    """eval and run use the session of the innermost `with`; without one they say what to do."""
    a = tf.constant(1.0)
    with pytest.raises(ValueError, match="No default session is registered"):
        a.eval()
    with pytest.raises(ValueError, match="No default session is registered"):
        a.op.run()
    with tf.Session() as outer:
        assert a.eval() == 1.0 and tf.get_default_session() is outer
        with tf.Session() as inner:
            assert tf.get_default_session() is inner
        assert tf.get_default_session() is outer
        with tf.Graph().as_default(), pytest.raises(ValueError, match="graph is different"):
            tf.constant(2.0).eval()
    assert tf.get_default_session() is None


def test_interactive_session():
    """It is the default session until it is closed."""
    a = tf.constant(2.0)
    session = tf.InteractiveSession()
    assert a.eval() == 2.0 and tf.get_default_session() is session
    session.close()
    assert tf.get_default_session() is None


def test_callables():
    """make_callable takes values in the order of its feed list, and options when asked to."""
    x, y = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
    with tf.Session() as session:
        minus = session.make_callable({"d": x - y}, [x, y])
        assert minus(5.0, 3.0) == {"d": 2.0}
        with pytest.raises(TypeError, match="2 values, but 1"):
            minus(5.0)
        with pytest.raises(TypeError, match="feed_list"):
            session.make_callable(x, x)
        traced = session.make_callable(x, [x], accept_options=True)
        metadata = tf.RunMetadata()
        traced(1.0, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=metadata)
        assert metadata.HasField("step_stats")


def test_partial_runs():
    """A run in pieces computes nothing twice and takes each feed once."""
    x, y = tf.placeholder(tf.float32, [], name="x"), tf.placeholder(tf.float32, [], name="y")
    count = tf.Variable(0.0)
    counted = tf.assign_add(count, 1.0)
    with tf.control_dependencies([counted]):
        first = x + 1.0
    second = first * y
    with tf.Session() as session:
        session.run(count.initializer)
        handle = session.partial_run_setup([first, second], [x, y])
        assert session.partial_run(handle, first, {x: 2.0}) == 3.0
        assert session.partial_run(handle, second, {y: 10.0}) == 30.0
        assert session.run(count) == 1.0
        for problem, arguments in {
            "already fed": (handle, second, {x: 1.0}),
            "handle": ("nope", second),
            "not among the fetches": (handle, counted),
            "has ended": (handle, second),
        }.items():
            with pytest.raises(tf.errors.InvalidArgumentError, match=problem):
                session.partial_run(*arguments)
        with pytest.raises(tf.errors.InvalidArgumentError, match="something to fetch"):
            session.partial_run_setup([], [x])


def test_a_piece_of_a_partial_run_that_failed_feeds_nothing():
    """What a failed piece was given must be given again with the next."""
    a, b = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
    total = a + b
    with tf.Session() as session:
        handle = session.partial_run_setup([total], [a, b])
        for feed in ({a: 1.0}, {b: 2.0}):
            with pytest.raises(tf.errors.InvalidArgumentError):
                session.partial_run(handle, total, feed)
        assert session.partial_run(handle, total, {a: 1.0, b: 2.0}) == 3.0


def test_queue_ops_of_other_components_are_refused_before_they_wait():
    """Components whose number or dtypes are not the queue's are an InvalidArgumentError, not a wait without end."""
    queue = tf.FIFOQueue(3, [tf.int32, tf.float32])
    bad = [
        tf.raw_ops.QueueEnqueueV2(handle=queue.queue_ref, components=[tf.constant(1)]),
        tf.raw_ops.QueueEnqueueV2(handle=queue.queue_ref, components=[tf.constant(1), tf.constant(1)]),
        tf.raw_ops.QueueDequeueV2(handle=queue.queue_ref, component_types=[tf.int32]),
        tf.raw_ops.QueueDequeueManyV2(handle=queue.queue_ref, n=1, component_types=[tf.float32, tf.float32]),
    ]
    with tf.Session() as session:
        for step in bad:
            with pytest.raises(tf.errors.InvalidArgumentError, match=r"those of queue .* \(int32, float32\)"):
                session.run(step)


def test_devices_are_listed():
    """list_devices gives names and types; the CPU is always there."""
    with tf.Session() as session:
        devices = session.list_devices()
    assert ("/job:localhost/replica:0/task:0/device:CPU:0", "CPU") in [(d.name, d.device_type) for d in devices]


def test_full_trace_and_timeline():
    """FULL_TRACE reports every op with its time; Timeline makes a Chrome trace of it."""
    x = tf.placeholder(tf.float32, [8, 8], name="x")
    y = tf.reduce_sum(tf.matmul(x, x, name="product"), name="total")
    metadata = tf.RunMetadata()
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    with tf.Session() as session:
        session.run(y, {x: np.ones((8, 8))}, options=options, run_metadata=metadata)
    names = {node.node_name for device in metadata.step_stats.dev_stats for node in device.node_stats}
    assert {"product", "total"} <= names
    trace = json.loads(Timeline(metadata.step_stats).generate_chrome_trace_format())
    events = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert {event["args"]["name"] for event in events} >= {"product", "total"}
    assert all(event["dur"] > 0 for event in events)


def _in_threads(count, work):
    """Runs work(i) in threads and joins them; what they raised."""
    raised = []

    def guarded(i):
        try:
            work(i)
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=guarded, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    return raised


def test_twenty_threads_on_one_session():
    """Updates of shared variables are whole: 20 threads with 100 runs each lose none."""
    x = tf.placeholder(tf.float32, [])
    old = tf.Variable(0.0, use_resource=False)
    new = tf.Variable(np.zeros(16, np.float32), use_resource=True)
    bump = tf.group(tf.assign_add(old, x, use_locking=True), new.assign_add(tf.fill([16], x)))
    look = new.read_value()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())

        def work(i):
            for k in range(100):
                if k % 4:
                    session.run(bump, {x: 1.0})
                else:
                    seen = session.run(look)
                    assert (seen == seen[0]).all()  # never half of an update

        assert _in_threads(20, work) == []
        assert session.run(old) == 20 * 75
        assert session.run(new).tolist() == [20 * 75] * 16


def test_enqueue_and_dequeue_of_one_run_need_each_other():
    """A full queue's enqueue and its dequeue in one run do not wait for each other forever."""
    queue = tf.FIFOQueue(1, [tf.int32])
    put, take = queue.enqueue(7), queue.dequeue()
    with tf.Session() as session:
        for _ in range(20):
            assert session.run([take, put])[0] == 7
        session.run(put)
        assert session.run([put, take])[1] == 7
        assert session.run(queue.size()) == 1


def test_producers_and_consumers_in_threads():
    """Every element that is put in comes out once."""
    queue = tf.FIFOQueue(3, [tf.int32])
    value = tf.placeholder(tf.int32, [])
    put, take, close = queue.enqueue(value), queue.dequeue(), queue.close()
    found: list[int] = []
    lock = threading.Lock()
    with tf.Session() as session:

        def work(i):
            if i < 4:
                for k in range(25):
                    session.run(put, {value: i * 25 + k})
            else:
                for _ in range(25):
                    item = int(session.run(take))
                    with lock:
                        found.append(item)

        assert _in_threads(8, work) == []
        session.run(close)
    assert sorted(found) == list(range(100))


def test_close_cancels_a_blocked_run():
    """Closing the session ends a run that waits, with CancelledError."""
    queue = tf.FIFOQueue(1, [tf.float32], name="queue")
    take = queue.dequeue()
    session = tf.Session()
    entered, raised = threading.Event(), []

    def wait():
        entered.set()
        try:
            session.run(take)
        except tf.errors.CancelledError as error:
            raised.append(error)
        except RuntimeError as error:  # the close came before the run began
            raised.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    assert entered.wait(30)
    session.close()
    thread.join(30)
    assert not thread.is_alive() and len(raised) == 1


def test_queue_close_cancels_pending_enqueues():
    """close(cancel_pending_enqueues=True) ends an enqueue that waits for room."""
    queue = tf.FIFOQueue(1, [tf.float32])
    put, close = queue.enqueue(1.0), queue.close(cancel_pending_enqueues=True)
    with tf.Session() as session:
        session.run(put)
        raised = []

        def wait():
            try:
                session.run(put)
            except tf.errors.CancelledError as error:
                raised.append(error)

        thread = threading.Thread(target=wait)
        thread.start()
        session.run(close)
        thread.join(30)
        assert not thread.is_alive() and len(raised) == 1


def test_many_sessions_of_one_graph_have_their_own_variables():
    """Variables live in the session, not in the graph."""
    variable = tf.Variable(0.0)
    with tf.Session() as one, tf.Session() as other:
        one.run(variable.initializer)
        one.run(variable.assign_add(5.0))
        with pytest.raises(tf.errors.FailedPreconditionError):
            other.run(variable)
        assert one.run(variable) == 5.0


def test_the_graph_may_grow_between_runs():
    """A session sees ops that were added after it was made, until the graph is finalized."""
    a = tf.constant(1.0)
    with tf.Session() as session:
        assert session.run(a) == 1.0
        b = a + 1.0
        assert session.run(b) == 2.0
        tf.get_default_graph().finalize()
        with pytest.raises(RuntimeError, match="finalized"):
            tf.constant(3.0)
        assert session.run([a, b]) == [1.0, 2.0]


def test_nested_feeds():
    """A key may be a structure of tensors, as an LSTM's state; its value is nested alike. Also in repeated runs."""
    a, b = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.float32, [])
    total = tf.reduce_sum(a) + b
    with tf.Session() as session:
        for start in (1.0, 5.0):
            assert session.run(total, {Pair(a, (b,)): Pair(np.array([start, 2.0]), (3.0,))}) == start + 5
            assert session.run(total, {(a,): (np.array([start, 2.0]),), b: 1.0}) == start + 3
        with pytest.raises(ValueError, match="Key had 2 elements, but value had 1 elements"):
            session.run(total, {(a, b): (3.0,)})
        assert "feed" in session.explain(total, [(a, b)])


def test_partial_runs_are_told_apart_and_end():
    """Every setup has a handle of its own; when all is fetched the run is over."""
    x = tf.placeholder(tf.float32, [])
    y = x * 2.0
    with tf.Session() as session:
        handles = [session.partial_run_setup([y], [x]) for _ in range(3)]
        assert len(set(handles)) == 3
        assert [session.partial_run(handle, y, {x: i}) for i, handle in enumerate(handles)] == [0.0, 2.0, 4.0]
        with pytest.raises(tf.errors.InvalidArgumentError, match="has ended"):
            session.partial_run(handles[0], y)


def test_plans_of_ever_other_fetches_are_bounded(monkeypatch):
    """A session forgets the plans that have not run for longest, and makes them again when they are wanted."""
    monkeypatch.setattr(session_module, "_MOST_PLANS", 3)
    tensors = [tf.constant(float(i)) + 1.0 for i in range(20)]
    made = []
    with tf.Session() as session:
        plan = session._runner.plan
        monkeypatch.setattr(session._runner, "plan", lambda *args: made.append(args) or plan(*args))
        for i, tensor in enumerate(tensors):
            assert session.run(tensor) == i + 1.0
            assert session.run([tensors[0]]) == [1.0]  # stays, because it runs all the time
            assert len(session._plans) + len(session._older_plans) <= 6
        assert len(made) == 21
        assert session.run(tensors[1]) == 2.0
        assert len(made) == 22
