"""`SyncReplicasOptimizer` in its forms: the graph it builds, and training with replicas that are threads."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import numpy as np
import pytest

import stoker.compat.v1 as tf
from tests.golden.distributed import cases

RECORDED = json.loads((Path(cases.__file__).parent / "values.json").read_text())
KINDS = {False: "reference", True: "resource"}


def _nodes(graph):
    # TensorFlow places the read that follows the assignment of a token on the parameter server, where the local step is not.
    return [tuple(map(str, node)) for node in graph["nodes"] if node[1] != "ReadVariableOp_2"]


def _compare_graphs(found, expected):
    assert _nodes(found) == _nodes(expected)
    assert found["names"] == expected["names"]
    assert found["collections"] == expected["collections"]


@pytest.mark.parametrize("resource", [False, True])
def test_graph_is_tensorflows(resource):
    """Nodes, devices, control dependencies, names and collections equal those of TensorFlow 1.15, also for fewer replicas than gradients."""
    kind = KINDS[resource]
    (tf.enable_resource_variables if resource else tf.disable_resource_variables)()
    try:
        found = cases.sync_graph(tf, resource, tf.train.replica_device_setter(ps_tasks=2))
        few = cases.sync_graph(tf, resource, None, replicas=3, total_num_replicas=1)
    finally:
        tf.disable_resource_variables()
    _compare_graphs(found, RECORDED["graph, " + kind])
    _compare_graphs(few, RECORDED["graph of few replicas, " + kind])


@pytest.mark.parametrize("resource", [False, True])
def test_losses_are_tensorflows(resource):
    """Three threads as replicas give TensorFlow's losses and variables, with dense and sparse gradients."""
    found, expected = cases.train(tf, resource), RECORDED["training, " + KINDS[resource]]
    np.testing.assert_allclose(found["losses"], expected["losses"], rtol=1e-5)
    for value, wanted in zip(found["final"], expected["final"]):
        np.testing.assert_allclose(value, wanted, rtol=1e-5)


class Program:
    """A model w with the loss mean(w * x), replicas that are threads, and the ops of the chief."""

    def __init__(self, replicas, make, averages=None, **kwargs):
        self.step = tf.train.get_or_create_global_step()
        self.x = tf.placeholder(tf.float32, [])
        self.w = tf.get_variable("w", initializer=[1.0, 2.0])
        self.loss = tf.reduce_sum(self.w * self.x)
        if averages is not None:
            kwargs.update(variable_averages=averages, variables_to_average=[self.w])
        self.optimizer = make(tf.train.GradientDescentOptimizer(1.0), replicas, **kwargs)
        self.train_op = self.optimizer.minimize(self.loss, global_step=self.step)

    def start(self, session, tokens=0):
        init = self.optimizer.get_init_tokens_op(tokens)
        runner = self.optimizer.get_chief_queue_runner()
        session.run(tf.global_variables_initializer())
        session.run(tf.local_variables_initializer())
        assert len(session.run(self.optimizer.ready_for_local_init_op)) == 0
        session.run(self.optimizer.chief_init_op)
        self.coordinator = tf.train.Coordinator()
        self.chief = runner.create_threads(session, self.coordinator, daemon=True, start=True)
        session.run(init)

    def stop(self, session):
        self.coordinator.request_stop()
        session.close()
        self.coordinator.join(self.chief, stop_grace_period_secs=60, ignore_live_threads=True)


def _together(*calls):
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)


def test_mean_of_the_gradients_is_applied():
    """Two replicas with gradients 1 and 3 move the variable by 2, and the global step by 1."""
    program = Program(2, tf.train.SyncReplicasOptimizerV2)
    with tf.Session() as session:
        program.start(session)
        _together(*(lambda x=x: session.run(program.train_op, {program.x: x}) for x in (1.0, 3.0)))
        np.testing.assert_allclose(session.run(program.w), [-1.0, 0.0])
        assert session.run(program.step) == 1
        program.stop(session)


def test_one_replica_computes_several_batches():
    """With one replica and three gradients per update, each token lets it compute one batch."""
    program = Program(3, tf.train.SyncReplicasOptimizer, total_num_replicas=1)
    token = tf.FIFOQueue(-1, tf.int64, shapes=(), shared_name="sync_token_q").dequeue()
    with tf.Session() as session:
        program.start(session, tokens=-1)
        for x in (1.0, 2.0, 6.0):
            session.run(program.train_op, {program.x: x})
        # Three tokens were there at the start. The next one comes with the update.
        assert session.run(token) == 1
        assert session.run(program.step) == 1
        np.testing.assert_allclose(session.run(program.w), [-2.0, -1.0])
        program.stop(session)


def test_stale_gradients_are_dropped():
    """A backup replica whose gradient belongs to an older step does not change the variable."""
    program = Program(1, tf.train.SyncReplicasOptimizer, total_num_replicas=2)
    local_step = tf.local_variables()[0]
    with tf.Session() as session:
        program.start(session)
        session.run(program.train_op, {program.x: 1.0})
        np.testing.assert_allclose(session.run(program.w), [0.0, 1.0])
        session.run(local_step.assign(0))  # this replica is one step behind
        session.run(program.train_op, {program.x: 100.0})  # dropped; it takes the second token of step 1
        np.testing.assert_allclose(session.run(program.w), [0.0, 1.0])
        assert session.run(local_step) == session.run(program.step) == 1
        program.stop(session)


def test_averages_follow_the_variables():
    """`variable_averages` are updated after the variables, by the chief."""
    averages = tf.train.ExponentialMovingAverage(0.5)
    program = Program(1, tf.train.SyncReplicasOptimizer, averages, total_num_replicas=1)
    with tf.Session() as session:
        program.start(session)
        session.run(program.train_op, {program.x: 1.0})
        # The chief's second step takes the second gradient only after the averages of the first step.
        session.run(program.train_op, {program.x: 0.0})
        session.run(program.train_op, {program.x: 0.0})
        np.testing.assert_allclose(session.run(program.w), [0.0, 1.0])
        shadow = session.run(averages.average(program.w))
        assert shadow[0] in (0.25, 0.125)  # two or three updates so far: (1 + 0) / 2, half of that, and again
        program.stop(session)


def test_hook_trains_in_a_monitored_session(tmp_path):
    """The hook initializes the steps, starts the chief's queue runner and puts the first tokens into the queue."""
    program = Program(1, tf.train.SyncReplicasOptimizer)
    hook = program.optimizer.make_session_run_hook(is_chief=True, num_tokens=0)
    with tf.train.MonitoredTrainingSession(hooks=[hook], checkpoint_dir=str(tmp_path)) as session:
        for _ in range(3):
            session.run(program.train_op, {program.x: 1.0})
        assert session.run(program.step) == 3
    assert tf.train.latest_checkpoint(str(tmp_path)).endswith("-3")


def test_hook_needs_apply_gradients():
    """A hook whose optimizer has not built its ops says so when the session begins."""
    optimizer = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(1.0), 2)
    with pytest.raises(ValueError, match="apply_gradient should be called before using the hook"):
        optimizer.make_session_run_hook(True).begin()


@pytest.mark.parametrize("method", ["get_chief_queue_runner", "get_init_tokens_op", "get_clean_up_op"])
def test_ops_of_the_chief_need_apply_gradients(method):
    """The chief's ops exist only after apply_gradients."""
    optimizer = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(1.0), 2)
    with pytest.raises(ValueError, match="after apply_gradients"):
        getattr(optimizer, method)()
    assert not hasattr(optimizer, "chief_init_op")


def test_bad_calls():
    """No pairs, no global step and too few tokens are errors."""
    optimizer = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(1.0), 5, total_num_replicas=2)
    with pytest.raises(ValueError, match="Must supply at least one variable"):
        optimizer.apply_gradients([])
    w = tf.get_variable("w", initializer=1.0)
    with pytest.raises(ValueError, match="Global step is required to check staleness"):
        optimizer.apply_gradients([(tf.constant(1.0), w)])
    optimizer.minimize(w * w, global_step=tf.train.get_or_create_global_step())
    with pytest.raises(ValueError, match=r"Too few tokens to finish the first step: 2 \(given\) vs 3 \(needed\)"):
        optimizer.get_init_tokens_op(2)


# -- the form of 0.12 --------------------------------------------------------------------------------------------


def test_queues_sum_the_gradients():
    """With `replica_id`, gradients of the replicas are summed."""
    program = Program(2, tf.train.SyncReplicasOptimizer, replica_id=0, total_num_replicas=2)
    with tf.Session() as session:
        program.start(session)
        _together(*(lambda x=x: session.run(program.train_op, {program.x: x}) for x in (1.0, 3.0)))
        np.testing.assert_allclose(session.run(program.w), [-3.0, -2.0])
        assert session.run(program.step) == 1
        program.stop(session)
    assert [v.op.name for v in tf.global_variables()][-2:] == ["sync_rep_local_step_0", "sync_rep_local_step_1"]


def test_queues_drop_and_clear_what_is_stale():
    """A replica whose local step differs from the global step pushes nothing, and what is left in the queues after an update is cleared."""
    program = Program(1, tf.train.SyncReplicasOptimizer, replica_id=1, total_num_replicas=2)
    local_step = tf.global_variables()[-1]
    with tf.Session() as session:
        program.start(session)
        session.run(program.train_op, {program.x: 1.0})
        session.run(local_step.assign(0))
        session.run(program.train_op, {program.x: 100.0})
        np.testing.assert_allclose(session.run(program.w), [0.0, 1.0])
        session.run(program.train_op, {program.x: 2.0})
        np.testing.assert_allclose(session.run(program.w), [-2.0, -1.0])
        program.stop(session)


def test_queues_collect_rows():
    """Sparse gradients go through the queues as rows, whose number may differ between replicas."""
    step = tf.train.get_or_create_global_step()
    ids = tf.placeholder(tf.int32, [None])
    table = tf.get_variable("table", initializer=np.zeros((4, 2), np.float32))
    optimizer = tf.train.SyncReplicasOptimizer(
        tf.train.GradientDescentOptimizer(1.0), 2, replica_id=0, total_num_replicas=2
    )
    program = Program.__new__(Program)
    program.optimizer = optimizer
    program.train_op = optimizer.minimize(tf.reduce_sum(tf.gather(table, ids)), global_step=step)
    with tf.Session() as session:
        program.start(session)
        _together(*(lambda rows=rows: session.run(program.train_op, {ids: rows}) for rows in ([1], [1, 3])))
        np.testing.assert_allclose(session.run(table), [[0, 0], [-2, -2], [0, 0], [-1, -1]])
        program.stop(session)


def test_arguments_in_the_order_of_0_12():
    """An ExponentialMovingAverage in the third place means the older order of arguments."""
    averages = tf.train.ExponentialMovingAverage(0.5)
    optimizer = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(1.0), 2, averages, [], 1, 3)
    assert (optimizer._replica_id, optimizer._total_num_replicas, optimizer._variable_averages) == (1, 3, averages)
    whole = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(1.0), 2, None, None, 0, 3, True, "mine")
    assert (whole._replica_id, whole._total_num_replicas, whole._use_locking, whole.get_name()) == (0, 3, True, "mine")
    with pytest.raises(ValueError, match=r"replica_id must be in \[0, total_num_replicas=2\), not 2"):
        tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(1.0), 2, replica_id=2)


def test_clean_up_op_ends_the_run():
    """The clean-up op raises in the run of the chief."""
    program = Program(1, tf.train.SyncReplicasOptimizer, replica_id=0, total_num_replicas=1)
    with tf.Session() as session, pytest.raises(tf.errors.AbortedError, match="From sync_replicas"):
        session.run(program.optimizer.get_clean_up_op())
