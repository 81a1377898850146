"""Programs on a GPU. Skipped where there is none."""

from __future__ import annotations

import gc
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import stoker.compat.v1 as tf

pytestmark = [pytest.mark.cuda, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")]


@pytest.fixture(autouse=True)
def on_the_gpu(monkeypatch):
    """Small steps stay on the GPU, however fast the host is."""
    monkeypatch.setenv("STOKER_RUNS_ON_HOST", "0")


def _network(device=None):
    with tf.device(device):
        x = tf.placeholder(tf.float32, [None, 8])
        w = tf.get_variable("w", [8, 4], initializer=tf.random_normal_initializer(seed=1))
        b = tf.get_variable("b", [4], initializer=tf.zeros_initializer())
        loss = tf.reduce_mean(tf.square(tf.nn.relu(tf.matmul(x, w) + b) - 1.0))
        return x, loss, tf.train.AdamOptimizer(0.01).minimize(loss)


def _losses(device=None, steps=20):
    with tf.Graph().as_default(), tf.Session() as session:
        x, loss, train = _network(device)
        session.run(tf.global_variables_initializer())
        batch = np.random.RandomState(0).randn(16, 8).astype("f")
        return [session.run([loss, train], {x: batch})[0] for _ in range(steps)]


def test_losses_equal_those_of_the_cpu():
    """The same program learns the same on both devices, as closely as TF32 products allow."""
    np.testing.assert_allclose(_losses(), _losses("/cpu:0"), rtol=2e-3)


def test_without_tf32_losses_equal_those_of_the_cpu_closely():
    """TF32 can be switched off, and then the devices agree to 1e-4 over twenty steps."""
    assert tf.config.experimental.tensor_float_32_execution_enabled()
    tf.config.experimental.enable_tensor_float_32_execution(False)
    try:
        assert not torch.backends.cuda.matmul.allow_tf32
        np.testing.assert_allclose(_losses(), _losses("/cpu:0"), rtol=1e-4)
    finally:
        tf.config.experimental.enable_tensor_float_32_execution(True)


def test_variables_and_float_work_are_on_the_gpu():
    """Without tf.device, a variable's value lives on GPU 0."""
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.Variable(np.ones(3, "f"))
        session.run(v.initializer)
        state = session._runner.resources.of_kind("variable") + session._runner.resources.of_kind("resource_variable")
        assert state[0].value.is_cuda


def test_a_missing_gpu_is_refused_without_soft_placement():
    """GPU 99 is nowhere."""
    with tf.Graph().as_default():
        with tf.device("/gpu:99"):
            y = tf.constant(1.0) + 1.0
        with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="available devices"):
            session.run(y)
        with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
            assert session.run(y) == 2.0


def test_average_pooling_with_padding_has_the_cpus_gradient():
    """Channels last and SAME padding: a case that torch's own CUDA kernel gets wrong."""
    images = np.random.RandomState(0).randn(2, 5, 4, 3).astype("f")
    found = []
    for device in ("/gpu:0", "/cpu:0"):
        with tf.Graph().as_default(), tf.Session() as session, tf.device(device):
            x = tf.constant(images)
            y = tf.nn.avg_pool(x, [1, 3, 3, 1], [1, 2, 2, 1], "SAME")
            found.append(session.run(tf.gradients(y * y, x)[0]))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-5)


def _repetition(session):
    return next(reversed(session._plans.values())).repeated


def _train(steps, *, recorded, monkeypatch, optimizer=None, batches=(16,)):
    monkeypatch.setenv("STOKER_CUDA_GRAPHS", "1" if recorded else "0")
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 8])
        labels = tf.placeholder(tf.int64, [None])
        w = tf.get_variable("w", [8, 4], initializer=tf.random_normal_initializer(seed=1))
        logits = tf.matmul(x, w)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
        count = tf.train.get_or_create_global_step()
        made = optimizer() if optimizer else tf.train.MomentumOptimizer(0.1, 0.9)
        train = made.minimize(loss, global_step=count)
        session.run(tf.global_variables_initializer())
        random = np.random.RandomState(0)
        losses = []
        for step in range(steps):
            size = batches[step % len(batches)]
            feed = {x: random.randn(size, 8), labels: random.randint(0, 4, size)}
            losses.append(session.run([loss, train], feed)[0])
        repetition = _repetition(session)
        seen = SimpleNamespace(obstacle=repetition.obstacle, recordings=list(repetition.recordings))
        return losses, session.run(count), seen


@pytest.mark.parametrize(
    "optimizer", [None, lambda: tf.train.AdamOptimizer(0.01), lambda: tf.train.RMSPropOptimizer(0.01)]
)
def test_a_repeated_step_is_recorded_and_learns_the_same(monkeypatch, optimizer):
    """Replayed steps give the losses that steps run one by one give, and the counter on the host goes on."""
    recorded, count, repetition = _train(12, recorded=True, monkeypatch=monkeypatch, optimizer=optimizer)
    assert repetition.obstacle is None and len(repetition.recordings) == 1
    plain, _, nothing = _train(12, recorded=False, monkeypatch=monkeypatch, optimizer=optimizer)
    assert not nothing.recordings and count == 12
    np.testing.assert_allclose(recorded, plain, rtol=1e-5)


def test_every_batch_size_has_a_recording(monkeypatch):
    """Feeds of another shape are another recording."""
    recorded, _, repetition = _train(16, recorded=True, monkeypatch=monkeypatch, batches=(16, 5))
    assert len(repetition.recordings) == 2
    plain, _, _ = _train(16, recorded=False, monkeypatch=monkeypatch, batches=(16, 5))
    np.testing.assert_allclose(recorded, plain, rtol=1e-5)


def test_results_of_a_replay_stay_what_they_are():
    """What one run returned does not change with the next; a variable that is set is seen."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [3])
        v = tf.get_variable("v", initializer=np.ones(3, "f"))
        y = tf.tanh(tf.square(x * v) + x) * 2.0 - x
        session.run(tf.global_variables_initializer())
        feeds = [np.full(3, i, "f") for i in range(8)]
        found = [session.run(y, {x: feed}) for feed in feeds]
        assert len(_repetition(session).recordings) == 1
        for feed, got in zip(feeds, found):
            np.testing.assert_allclose(got, np.tanh(feed**2 + feed) * 2 - feed, rtol=1e-5)
        v.load(np.zeros(3, "f"), session)
        np.testing.assert_allclose(session.run(y, {x: feeds[2]}), np.tanh(feeds[2]) * 2 - feeds[2], rtol=1e-5)


def test_a_loop_is_recorded_with_its_gradient():
    """A loop counted on the host is recorded as what its iterations do."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [4])
        _, y = tf.while_loop(lambda i, y: i < 5, lambda i, y: (i + 1, tf.tanh(y) + x), [0, x])
        gradient = tf.gradients(y, x)[0]
        feeds = [np.full(4, i / 10, "f") for i in range(8)]
        found = [session.run(gradient, {x: feed}) for feed in feeds]
        assert _repetition(session).obstacle is None
    with tf.Graph().as_default(), tf.Session(config=tf.ConfigProto(device_count={"GPU": 0})) as session:
        x = tf.placeholder(tf.float32, [4])
        _, y = tf.while_loop(lambda i, y: i < 5, lambda i, y: (i + 1, tf.tanh(y) + x), [0, x])
        gradient = tf.gradients(y, x)[0]
        np.testing.assert_allclose(found, [session.run(gradient, {x: feed}) for feed in feeds], rtol=1e-5)


def test_an_update_by_as_many_rows_as_the_data_tells_is_not_recorded():
    """A size that the device computes makes the host wait: such a step is run as it is."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [4])
        v = tf.get_variable("v", [], initializer=tf.ones_initializer())
        y = tf.reduce_sum(tf.boolean_mask(x * v, x * v > 0.0) * 2.0 + 1.0)
        update = tf.assign_add(v, y * 0.0)
        session.run(v.initializer)
        for i in range(8):
            found = session.run([y, update], {x: np.array([i, -1, 1, -i], "f")})
            assert found == [(2.0 * i + 1.0 if i else 0.0) + 3.0, 1.0]
        assert not _repetition(session).recordings


def _on_both(build, runs=12, **tolerance):
    """Runs a program on the GPU, where it is recorded, and on the CPU. Returns the remarks about recording."""
    found = []
    for gpus in ({}, {"GPU": 0}):
        with tf.Graph().as_default(), tf.Session(config=tf.ConfigProto(device_count=gpus)) as session:
            tf.set_random_seed(3)
            fetches, feeds = build()
            session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
            found.append([session.run(fetches, feeds(i)) for i in range(runs)])
            if not gpus:
                remarks = [line for line in session.explain(fetches, feeds(0)).splitlines() if "CUDA graph" in line]
    for ours, theirs in zip(*found):
        for one, other in zip(ours, theirs):
            if isinstance(one, bytes):
                assert len(one) == len(other)
            elif one is not None:
                np.testing.assert_allclose(one, other, **{"rtol": 2e-3, "atol": 1e-5, **tolerance})
    return remarks


def _batch(*shape):
    return lambda i: np.random.RandomState(i).randn(*shape).astype("f")


def test_random_numbers_are_those_of_the_cpu_in_every_run():
    """A recorded step draws new numbers at each replay: the ones that the CPU draws."""

    def build():
        drawn = tf.random_uniform([5, 3], seed=1) * 2.0 + 1.0
        normal = tf.random_normal([7], seed=2)
        return [drawn, normal, tf.tanh(normal) - 1.0, tf.truncated_normal([3], seed=4)], lambda i: {}

    assert "recorded 1 times" in _on_both(build, rtol=1e-5)[0]


def test_random_numbers_go_on_while_steps_change_sides(monkeypatch):
    """Steps of the host and of the device draw from one stream, and train one set of variables, whoever runs a step."""
    sides, used = {}, set()

    def run(self, on_gpu, holding, values):
        sides[self] = not sides.get(self, False)
        used.add(sides[self])
        return self.on_host(holding, values) if sides[self] else on_gpu()

    def losses():
        with tf.Graph().as_default(), tf.Session() as session:
            w = tf.get_variable("w", [4, 4], initializer=tf.ones_initializer())
            drawn = tf.random_uniform([4], seed=1)
            loss = tf.reduce_sum(tf.square(tf.tensordot(w, drawn, 1) - 1.0))
            train = tf.train.AdamOptimizer(0.1).minimize(loss)
            session.run(tf.global_variables_initializer())
            return [session.run([drawn, loss, train] if i % 3 else [drawn, loss])[:2] for i in range(40)]

    monkeypatch.delenv("STOKER_RUNS_ON_HOST")
    monkeypatch.setattr("stoker._src.runtime.plan.gpu.on_host.Choice.run", run)
    changing = losses()
    assert used == {False, True}
    with monkeypatch.context() as alone:
        alone.setattr("stoker._src.runtime.devices.usable_gpus", lambda: 0)
        expected = losses()
    for (drawn, loss), (wanted, other) in zip(changing, expected):
        np.testing.assert_array_equal(drawn, wanted)
        np.testing.assert_allclose(loss, other, rtol=1e-3)


def test_counters_and_decayed_rates_are_no_obstacle():
    """The host counts steps before the device's part, which takes the counter as a tensor."""

    def build():
        x = tf.placeholder(tf.float32, [8, 16])
        w = tf.get_variable("w", [16, 4], initializer=tf.random_normal_initializer(seed=1))
        count = tf.train.get_or_create_global_step()
        loss = tf.reduce_mean(tf.square(tf.matmul(tf.nn.dropout(x, 0.7, seed=5), w)))
        rate = tf.train.exponential_decay(0.1, count, 3, 0.9)
        return [loss, tf.train.MomentumOptimizer(rate, 0.9).minimize(loss, count), count], lambda i: {x: batch(i)}

    batch = _batch(8, 16)
    assert "recorded 1 times" in _on_both(build)[0]


def test_sequences_with_lengths_are_recorded_for_each_number_of_steps():
    """The longest length decides how often the loop runs; the lengths themselves are data."""

    def build():
        x, lengths = tf.placeholder(tf.float32, [None, 9, 4]), tf.placeholder(tf.int32, [None])
        with tf.variable_scope("rnn", initializer=tf.random_uniform_initializer(-0.3, 0.3, seed=4)):
            cells = tf.nn.rnn_cell.GRUCell(6), tf.nn.rnn_cell.LSTMCell(5)
            outputs, _ = tf.nn.bidirectional_dynamic_rnn(*cells, x, lengths, dtype=tf.float32)
        loss = sum(tf.reduce_mean(each**2) for each in outputs)
        train = tf.train.AdamOptimizer(0.01).minimize(loss)
        return [loss, train], lambda i: {x: batch(i), lengths: [9, 3 + i % 3, 2 + i % 4] if i % 2 else [6, 3, 5]}

    batch = _batch(3, 9, 4)
    assert "recorded 2 times" in _on_both(build)[0]


def test_branches_are_recorded_separately():
    """A fed boolean decides which branch runs."""

    def build():
        x, chosen = tf.placeholder(tf.float32, [4, 3]), tf.placeholder(tf.bool, [])
        v = tf.get_variable("v", [3], initializer=tf.ones_initializer())
        y = tf.cond(chosen, lambda: tf.reduce_sum(tf.tanh(x * v)), lambda: tf.reduce_sum(tf.exp(x * v)))
        train = tf.train.GradientDescentOptimizer(0.01).minimize(y)
        return [y, train], lambda i: {x: batch(i), chosen: i % 3 > 0}

    batch = _batch(4, 3)
    assert "recorded 2 times" in _on_both(build)[0]


def test_summaries_and_assertions_run_after_the_replay():
    """What the host makes of the device's results waits for them."""

    def build():
        x = tf.placeholder(tf.float32, [4, 3])
        v = tf.get_variable("v", [3], initializer=tf.ones_initializer())
        y = tf.reduce_mean(tf.tanh(x * v) * 2.0 - tf.square(x))
        tf.summary.scalar("y", y)
        with tf.control_dependencies([tf.Assert(y < 100.0, [y])]):
            z = y + 1.0
        train = tf.train.GradientDescentOptimizer(0.01).minimize(y)
        return [z, tf.summary.merge_all(), train], lambda i: {x: batch(i)}

    batch = _batch(4, 3)
    assert "recorded 1 times" in _on_both(build)[0]


def test_the_device_goes_on_with_what_the_host_makes_of_its_results():
    """A Python function in the middle of a training step lies between two recordings."""

    def build():
        x, wanted = tf.placeholder(tf.float32, [8, 3]), tf.placeholder(tf.int32, [8])
        h = tf.layers.dense(tf.layers.dense(x, 16, tf.tanh), 4, tf.tanh)
        reward = tf.py_func(
            lambda a, b: (a == b).astype("f") - 0.5, [tf.argmax(h, 1, output_type=tf.int32), wanted], tf.float32
        )
        reward.set_shape([8])
        loss = tf.reduce_mean(tf.reduce_max(h, 1) * reward)
        return [loss, reward, tf.train.AdamOptimizer(0.01).minimize(loss)], lambda i: {
            x: batch(i),
            wanted: np.arange(8) % 4,
        }

    batch = _batch(8, 3)
    remarks = _on_both(build)
    assert [remark.split(" ", 4)[:4] for remark in remarks if "recorded 1 times" in remark] == [
        ["#", "recorded", "1", "times"]
    ] * 2


def test_a_failed_assertion_is_raised_from_a_recorded_step():
    """The error is that of a step that is not recorded."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [3])
        with tf.control_dependencies([tf.Assert(tf.reduce_max(x) < 5.0, ["too large", x])]):
            y = tf.tanh(x) * 2.0 - x
        for i in range(6):
            session.run(y, {x: [i / 2.0] * 3})
        with pytest.raises(tf.errors.InvalidArgumentError, match="too large"):
            session.run(y, {x: [1.0, 6.0, 2.0]})


def test_batches_from_a_queue_are_recorded():
    """The host dequeues before the device's part."""
    with tf.Graph().as_default(), tf.Session() as session:
        queue = tf.FIFOQueue(100, tf.float32, [[3]])
        rows = np.arange(30.0, dtype="f").reshape(10, 3) / 10
        session.run(queue.enqueue_many(rows))
        x = queue.dequeue()
        y = tf.tanh(x * 2.0) - tf.square(x)
        for row in rows:
            np.testing.assert_allclose(session.run(y), np.tanh(row * 2) - row**2, rtol=1e-5, atol=1e-6)
        assert "recorded 1 times" in session.explain(y)


def test_metrics_are_recorded():
    """Streaming metrics keep their totals on the device."""

    def build():
        x, labels = tf.placeholder(tf.float32, [16, 4]), tf.placeholder(tf.int64, [16])
        p = tf.sigmoid(tf.reduce_sum(x, 1))
        updates = [tf.metrics.auc(labels, p)[1], tf.metrics.accuracy(labels, p > 0.5)[1], tf.metrics.mean(p)[1]]
        return updates, lambda i: {x: batch(i), labels: np.random.RandomState(i).randint(0, 2, 16)}

    batch = _batch(16, 4)
    assert "recorded 1 times" in _on_both(build)[0]


def test_mixed_precision_multiplies_in_float16():
    """The rewrite's products run in float16 on the GPU, and the loss stays close."""
    results = []
    for on in (False, True):
        config = tf.ConfigProto()
        config.graph_options.rewrite_options.auto_mixed_precision = 1 if on else 2
        with tf.Graph().as_default(), tf.Session(config=config) as session:
            x = tf.placeholder(tf.float32, [16, 8])
            w = tf.get_variable("w", [8, 4], initializer=tf.random_normal_initializer(seed=1))
            loss = tf.reduce_mean(tf.square(tf.nn.relu(tf.matmul(x, w)) - 1.0))
            train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
            session.run(tf.global_variables_initializer())
            batch = np.random.RandomState(0).randn(16, 8).astype("f")
            results.append([session.run([loss, train], {x: batch})[0] for _ in range(8)])
            source = next(reversed(session._plans.values())).step.source
            assert ("Cast" in source) == on
    np.testing.assert_allclose(*results, rtol=2e-2)
    assert not np.array_equal(*results)


def test_sequences_shorter_than_the_batch_allows():
    """Rows of a TensorArray that no step wrote are zeros beside those that were written, on the same device."""
    inputs = np.random.RandomState(0).randn(2, 5, 3).astype("f")
    outputs = []
    for device in (None, "/cpu:0"):
        scope = tf.variable_scope("rnn", initializer=tf.random_normal_initializer(seed=1))
        with tf.Graph().as_default(), tf.device(device), tf.Session() as session, scope:
            cell = tf.nn.rnn_cell.BasicRNNCell(4)
            output, _ = tf.nn.dynamic_rnn(cell, tf.constant(inputs), [2, 3], dtype=tf.float32)
            session.run(tf.global_variables_initializer())
            outputs.append(session.run(output))
    np.testing.assert_allclose(*outputs, rtol=2e-3, atol=2e-3)
    assert not outputs[0][:, 3:].any()


def test_a_recording_keeps_the_constants_that_it_reads():
    """They stay where they were when the step was recorded, whatever is made and freed meanwhile."""
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.Variable(np.ones((2, 5), "f"), use_resource=False)
        chosen = tf.where([True, False], tf.matmul(v, tf.eye(5) * 2.0), tf.zeros([2, 5]))
        result = tf.reduce_sum(tf.tanh(chosen) * chosen - tf.sin(chosen) * tf.cos(chosen))
        session.run(v.initializer)
        expected = session.run(result)
        for _ in range(20):
            gc.collect()
            noise = [torch.randn(size, device="cuda") for size in ((2, 5), (5, 5)) for _ in range(100)]
            assert session.run(result) == expected
            del noise
        assert _repetition(session).recordings


@pytest.mark.parametrize("optimizer", ["Adagrad", "Adam", "Momentum", "Ftrl"])
@pytest.mark.parametrize("resource", [False, True])
def test_sparse_gradients_are_recorded_once(optimizer, resource):
    """The number of distinct rows differs from step to step, and the recording does not depend on it."""

    def build():
        ids = tf.placeholder(tf.int64, [None])
        start = tf.random_normal_initializer(seed=1)
        table = tf.get_variable("table", [50, 4], initializer=start, use_resource=resource)
        loss = tf.reduce_sum(tf.nn.embedding_lookup(table, ids) ** 2)
        momentum = (0.9,) if optimizer == "Momentum" else ()
        train = getattr(tf.train, f"{optimizer}Optimizer")(0.01, *momentum).minimize(loss)
        return [loss, train], lambda i: {ids: np.random.RandomState(i).randint(0, 50, 20)}

    assert "recorded 1 times" in _on_both(build)[0]


def test_a_queue_keeps_what_is_fed_on_the_host():
    """Elements of a queue may be fed, or computed on the GPU, in any order; they come out as they went in."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 2])
        v = tf.get_variable("v", [2], initializer=tf.ones_initializer())
        for queue in (tf.FIFOQueue(100, tf.float32, [[2]]), tf.FIFOQueue(100, tf.float32)):
            one = tf.placeholder(tf.float32, [2])
            puts = [queue.enqueue(one), queue.enqueue(one * v)]
            if queue.shapes[0].is_fully_defined():
                puts += [queue.enqueue_many(x), queue.enqueue_many(x * v)]
            session.run(v.initializer)
            for i, put in enumerate(puts * 2):
                session.run(put, {one: [i, i]} if i % len(puts) < 2 else {x: [[i, i], [i, i]]})
            batch = queue.dequeue_many(3) if queue.shapes[0].is_fully_defined() else queue.dequeue()
            expected = [[0, 0], [1, 1], [2, 2]] if queue.shapes[0].is_fully_defined() else [0, 0]
            np.testing.assert_allclose(session.run(batch * v), expected)


@pytest.mark.parametrize(
    "make",
    [
        lambda: tf.train.AdagradOptimizer(0.5),
        lambda: tf.train.MomentumOptimizer(
            tf.train.exponential_decay(0.1, tf.train.get_or_create_global_step(), 2, 0.9), 0.9
        ),
        lambda: tf.train.RMSPropOptimizer(0.01, momentum=0.5),
        lambda: tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01, l2_regularization_strength=0.1),
    ],
    ids=["adagrad", "momentum", "rmsprop", "ftrl"],
)
def test_rows_of_tables_are_updated_as_on_the_cpu(make):
    """Repeated ids, ids that the device computes, and a rate that changes give the tables of the CPU."""
    found = []
    for device in ("/gpu:0", "/cpu:0"):
        with tf.Graph().as_default(), tf.device(device), tf.Session() as session:
            ids = tf.placeholder(tf.int32, [40])
            table = tf.get_variable("t", [50, 5], initializer=tf.random_uniform_initializer(seed=1))
            thin = tf.get_variable("thin", [50, 1], initializer=tf.random_uniform_initializer(seed=2))
            both = tf.nn.embedding_lookup(table, ids) * tf.nn.embedding_lookup(thin, (ids * 7) % 50)
            step = tf.train.get_or_create_global_step()
            loss = tf.reduce_sum(tf.square(both - 0.3))
            train = make().minimize(loss, step)
            session.run(tf.global_variables_initializer())
            for i in range(8):
                session.run([train, loss], {ids: np.random.RandomState(i).randint(0, 50, 40)})
            found.append(session.run([table, thin]))
    for one, other in zip(*found):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
