"""`tf.distribute` in a process on its own, and cluster resolvers. Several processes: test_replicas.py."""

from __future__ import annotations

import json

import numpy as np
import pytest

import stoker as tf2
import stoker.compat.v1 as tf
from stoker._src.ops.collective import groups
from tests.running import run, run_initialized


def test_outside_of_all_scopes():
    """Outside of scopes there is a default strategy with one replica, and code is inside of it."""
    strategy = tf.distribute.get_strategy()
    assert not tf.distribute.has_strategy() and not tf.distribute.in_cross_replica_context()
    assert strategy.num_replicas_in_sync == 1 and strategy.run(lambda x: x + 1, (1,)) == 2
    context = tf.distribute.get_replica_context()
    assert context.strategy is strategy and run(context.replica_id_in_sync_group) == 0


@pytest.mark.parametrize(
    "make",
    [
        tf.distribute.MirroredStrategy,
        lambda: tf.distribute.MirroredStrategy(["/cpu:0"]),
        lambda: tf.distribute.OneDeviceStrategy("/cpu:0"),
        tf.distribute.experimental.MultiWorkerMirroredStrategy,
        tf.distribute.experimental.CentralStorageStrategy,
        tf2.distribute.MultiWorkerMirroredStrategy,
    ],
)
def test_scope_and_run(make):
    """In its scope a strategy is the current one; a function that it runs is inside of a replica, and can leave it for a moment."""
    strategy = make()
    with strategy.scope():
        assert tf.distribute.get_strategy() is strategy and tf.distribute.in_cross_replica_context()
        assert tf.distribute.get_replica_context() is None
        variable = tf.get_variable("v", initializer=2.0)
    assert strategy.extended.variable_created_in_scope(variable) and not tf.distribute.has_strategy()

    def replica(x):
        context = tf.distribute.get_replica_context()
        assert context.strategy is strategy and context.num_replicas_in_sync == 1
        merged = context.merge_call(lambda same, y: y if tf.distribute.in_cross_replica_context() else None, (x,))
        return merged + variable

    total = strategy.run(replica, (tf.constant(1.0),))
    assert run_initialized(total) == 3.0
    assert strategy.experimental_local_results(total) == (total,)


def test_reductions():
    """With one replica, a sum and a mean are the value, or that of its axis."""
    strategy = tf.distribute.MirroredStrategy()
    x = tf.constant([1.0, 5.0])
    values = [strategy.reduce("SUM", x), strategy.reduce(tf.distribute.ReduceOp.MEAN, x, axis=0), strategy.gather(x, 0)]
    assert [np.asarray(value).tolist() for value in run(values)] == [[1, 5], 3, [1, 5]]
    with pytest.raises(ValueError, match="'BAD' is not a valid ReduceOp"):
        strategy.reduce("bad", x)


def test_optimizers_apply_inside_of_replicas():
    """An optimizer refuses to apply gradients in a scope outside of a replica, and works inside of one."""
    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        w = tf.get_variable("w", initializer=1.0)
        optimizer = tf.train.GradientDescentOptimizer(0.5)
        with pytest.raises(RuntimeError, match="in a cross-replica context"):
            optimizer.minimize(w * w)
        train = strategy.experimental_run_v2(lambda: optimizer.minimize(w * w))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)
        assert session.run(w) == 0.0


def test_strategies_do_not_nest():
    """A scope inside of another strategy's scope is an error; the same strategy's is not."""
    first, second = tf.distribute.MirroredStrategy(), tf.distribute.OneDeviceStrategy("/cpu:0")
    with first.scope(), first.scope():
        with pytest.raises(RuntimeError, match=r"Mixing different tf.distribute.Strategy objects"), second.scope():
            pass
        with pytest.raises(RuntimeError, match="cannot be called inside of a scope"):
            tf.distribute.experimental_set_strategy(second)
    tf.distribute.experimental_set_strategy(second)
    try:
        assert tf.distribute.get_strategy() is second
    finally:
        tf.distribute.experimental_set_strategy(None)
    assert not tf.distribute.has_strategy()


def test_several_replicas_in_one_process_are_refused():
    """A strategy over several devices of one process says how to start several processes."""
    with pytest.raises(NotImplementedError, match="stoker launch --workers 2"):
        tf.distribute.MirroredStrategy(["/gpu:0", "/gpu:1"])


def test_input_functions():
    """An input function learns which part it shall produce; it may return a function that gives the next input."""
    strategy = tf.distribute.MirroredStrategy()
    seen = []

    def input_fn(context):
        seen.append((context.num_input_pipelines, context.input_pipeline_id, context.get_per_replica_batch_size(8)))
        return lambda: tf.constant([1.0, 2.0])

    iterator = strategy.make_input_fn_iterator(input_fn)
    assert seen == [(1, 0, 8)]
    run(iterator.initialize())
    assert run(strategy.experimental_run(lambda x: x * 2.0, iterator)).tolist() == [2, 4]
    with pytest.raises(ValueError, match="9 is not divisible by `num_replicas_in_sync` 2"):
        tf.distribute.InputContext(2, 0, 2).get_per_replica_batch_size(9)


def process(monkeypatch, rank, size):
    monkeypatch.setattr(groups, "_joined", groups._Membership(rank, size, "env://"))
    return tf.distribute.MirroredStrategy()


@pytest.mark.parametrize("drop_remainder", [False, True])
def test_batches_are_divided_among_processes(monkeypatch, drop_remainder):
    """The processes have the rows of each batch between them, in their order, whatever the structure of an element."""
    rows = np.arange(11)
    sparse = tf.SparseTensorValue([[0, 1], [4, 0], [5, 2], [10, 1]], [1, 2, 3, 4], [11, 3])
    found = []
    for rank in range(3):
        strategy = process(monkeypatch, rank, 3)
        with tf.Graph().as_default(), tf.Session() as session:
            data = tf.data.Dataset.from_tensor_slices({"x": (rows, rows * 2.0), "sparse": sparse})
            iterator = strategy.make_dataset_iterator(data.batch(6, drop_remainder))
            session.run(iterator.initialize())
            element = iterator.get_next()
            assert element["x"][0].shape.as_list() == [2 if drop_remainder else None]
            element["dense"] = tf.sparse.to_dense(element.pop("sparse"))
            found.append([session.run(element) for _ in range(1 if drop_remainder else 2)])
    dense = np.zeros((11, 3), int)
    dense[tuple(np.transpose(sparse.indices))] = sparse.values
    for step, start in enumerate((0, 6)[: len(found[0])]):
        parts = [each[step] for each in found]
        batch = slice(start, start + 6)
        np.testing.assert_array_equal(np.concatenate([part["x"][0] for part in parts]), rows[batch])
        np.testing.assert_array_equal(np.concatenate([part["x"][1] for part in parts]), rows[batch] * 2.0)
        np.testing.assert_array_equal(np.concatenate([part["dense"] for part in parts]), dense[batch])


def test_ragged_batches_are_divided(monkeypatch):
    """A batch of rows of different lengths is divided by rows."""
    found = []
    for rank in range(2):
        strategy = process(monkeypatch, rank, 2)
        with tf.Graph().as_default(), tf.Session() as session:
            ragged = tf.data.Dataset.from_tensor_slices(tf.ragged.constant([[1], [2, 3], [], [4, 5, 6], [7]]))
            made = tf.data.make_one_shot_iterator(strategy.experimental_distribute_dataset(ragged.batch(5)))
            found.append(session.run(made.get_next()).to_list())
    assert found == [[[1], [2, 3]], [[], [4, 5, 6], [7]]]


def test_only_batches_are_divided(monkeypatch):
    """Elements without rows cannot be divided among several processes."""
    with pytest.raises(ValueError, match="among 2 processes; call `batch` first"):
        process(monkeypatch, 1, 2).experimental_distribute_dataset(tf.data.Dataset.range(4))


def test_a_dataset_of_arrays():
    """experimental_make_numpy_dataset gives the rows of a structure of arrays, as eager iterators do."""
    strategy = tf.distribute.MirroredStrategy()
    with tf.Graph().as_default(), tf.Session() as session:
        data = strategy.experimental_make_numpy_dataset((np.arange(4), np.eye(4)), session)
        iterator = strategy.make_dataset_iterator(data.batch(2))
        session.run(iterator.initializer)
        numbers, rows = session.run(iterator.get_next())
    assert numbers.tolist() == [0, 1]
    assert rows.tolist() == [[1, 0, 0, 0], [0, 1, 0, 0]]


# -- clusters ----------------------------------------------------------------------------------------------------

CLUSTER = {"worker": ["a:1", "b:2"], "ps": ["c:3"]}


def test_tf_config(monkeypatch):
    """TF_CONFIG names the cluster and the task; arguments override the task."""
    config = {"cluster": CLUSTER, "task": {"type": "worker", "index": 1}, "rpc_layer": "grpc"}
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    assert resolver.cluster_spec().as_dict() == CLUSTER
    assert (resolver.task_type, resolver.task_id, resolver.rpc_layer) == ("worker", 1, "grpc")
    assert resolver.master() == "grpc://b:2" and resolver.master("ps", 0) == "grpc://c:3"
    other = tf.distribute.cluster_resolver.TFConfigClusterResolver(task_type="ps", task_id=0, rpc_layer="q")
    assert other.master() == "q://c:3"


@pytest.mark.parametrize("config", [None, "{}", '{"cluster": {"worker": ["a:1"]}}'])
def test_without_a_cluster_there_is_no_target(monkeypatch, config):
    """Without TF_CONFIG, or with a single task, sessions run in the process."""
    monkeypatch.delenv("TF_CONFIG", raising=False) if config is None else monkeypatch.setenv("TF_CONFIG", config)
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    assert resolver.master() == "" and resolver.task_type is None and resolver.task_id is None


def test_workers_of_a_cluster_form_a_group(monkeypatch):
    """A multi-worker strategy takes the processes from TF_CONFIG: the chief comes first, and the first one listens."""
    monkeypatch.setattr(groups, "_joined", None)
    cluster = {"chief": ["c:1"], "worker": ["a:1", "b:2"], "ps": ["p:1"]}
    config = {"cluster": cluster, "task": {"type": "worker", "index": 1}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))
    strategy = tf.distribute.experimental.MultiWorkerMirroredStrategy()
    assert strategy.num_replicas_in_sync == 3 and tf2.distribute.rank() == 2
    assert groups._joined.init_method == "tcp://c:1"
    monkeypatch.setattr(groups, "_joined", None)
    monkeypatch.setenv("TF_CONFIG", json.dumps({**config, "task": {"type": "ps", "index": 0}}))
    with pytest.raises(ValueError, match="3 workers, but its task ps:0 is none of them"):
        tf.distribute.experimental.MultiWorkerMirroredStrategy()


def test_simple_resolver():
    """A resolver for a known cluster gives the targets of its tasks."""
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
        tf.train.ClusterSpec(CLUSTER), "a:1", "worker", 0, rpc_layer="grpc"
    )
    assert resolver.master() == "grpc://a:1" and resolver.master("worker", 1) == "grpc://b:2"
    with pytest.raises(TypeError, match=r"must be a `tf.train.ClusterSpec`"):
        tf.distribute.cluster_resolver.SimpleClusterResolver(CLUSTER)


def test_resolver_of_tpus():
    """Programs can import the resolver of TPUs; only constructing one says that there are none."""
    for resolver in (tf.contrib.cluster_resolver.TPUClusterResolver, tf.distribute.cluster_resolver.TPUClusterResolver):
        with pytest.raises(NotImplementedError, match=r"TPUClusterResolver\('mine'\): stoker runs on CPUs and GPUs"):
            resolver("mine", zone="here")


def test_synchronous_replicas_need_all_processes(monkeypatch):
    """In launched processes, SyncReplicasOptimizer for another number of replicas is refused."""
    monkeypatch.setattr(groups, "_joined", groups._Membership(0, 2, "env://"))
    w = tf.get_variable("w", initializer=1.0)
    optimizer = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(1.0), 3)
    with pytest.raises(ValueError, match="for 3 of 3 replicas, in one of 2 launched processes"):
        optimizer.minimize(w * w, global_step=tf.train.get_or_create_global_step())


def test_wrap_takes_optimizers():
    """Alone, a wrapped optimizer is the optimizer; anything else cannot be wrapped."""
    w = tf.get_variable("w", initializer=4.0)
    optimizer = tf2.distribute.wrap(tf.train.MomentumOptimizer(0.5, 0.9))
    train = optimizer.minimize(w)
    assert optimizer.get_slot_names() == ["momentum"] and optimizer.get_slot(w, "momentum") in optimizer.variables()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(tf2.distribute.broadcast_variables())
        session.run(train)
        assert session.run(w) == 3.5
    with pytest.raises(TypeError, match=r"takes a tf.train.Optimizer"):
        tf2.distribute.wrap(3)
