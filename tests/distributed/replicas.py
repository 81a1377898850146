"""A program that test_replicas.py runs in one process, and in several by `stoker launch`. Results are written as one JSON file per process."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

import stoker
import stoker.compat.v1 as tf
from stoker._src.ops.collective import collectives

BATCH, EXAMPLES = 12, 48
_data = np.random.RandomState(0)
X = _data.standard_normal((EXAMPLES, 5)).astype(np.float32)
Y = np.tanh(X @ _data.standard_normal((5, 2))).astype(np.float32)
IDS = _data.randint(0, 7, EXAMPLES)
KINDS = ("wrap", "clip", "sync", "strategy")


def shares(step):
    """The examples of one step for this process. The whole batch is the same for any number of processes."""
    batch = np.arange(step * BATCH, (step + 1) * BATCH) % EXAMPLES
    return np.array_split(batch, stoker.distribute.size())[stoker.distribute.rank()]


def model():
    x, y = tf.placeholder(tf.float32, [None, 5]), tf.placeholder(tf.float32, [None, 2])
    ids = tf.placeholder(tf.int64, [None])
    table = tf.get_variable("table", [7, 3], initializer=tf.random_normal_initializer())
    rows = tf.concat([x, tf.nn.embedding_lookup(table, ids)], 1)
    w = tf.get_variable("w", [8, 16], initializer=tf.random_normal_initializer())
    v = tf.get_variable("v", [16, 2], initializer=tf.random_normal_initializer())
    loss = tf.reduce_mean(tf.square(tf.matmul(tf.nn.tanh(tf.matmul(rows, w)), v) - y))
    return loss, lambda step: {x: X[shares(step)], y: Y[shares(step)], ids: IDS[shares(step)]}


def train_op(kind, loss):
    """The training op, and the hooks that it needs."""
    step = tf.train.get_or_create_global_step()
    optimizer = tf.train.AdamOptimizer(0.01)
    if kind == "sync" and stoker.distribute.size() > 1:
        optimizer = tf.train.SyncReplicasOptimizer(optimizer, stoker.distribute.size())
        made = optimizer.minimize(loss, global_step=step)
        return made, [optimizer.make_session_run_hook(stoker.distribute.rank() == 0)]
    if kind == "strategy":
        strategy = tf.distribute.MirroredStrategy()
        mean = loss / strategy.num_replicas_in_sync  # a strategy sums gradients
        return strategy.run(lambda: optimizer.minimize(mean, global_step=step)), []
    optimizer = stoker.distribute.wrap(optimizer)
    pairs = optimizer.compute_gradients(loss)
    if kind == "clip":
        clipped, _ = tf.clip_by_global_norm([gradient for gradient, _ in pairs], 0.1)
        pairs = list(zip(clipped, [variable for _, variable in pairs]))
    return optimizer.apply_gradients(pairs, global_step=step), []


def train(kind, steps, folder=None, seed=1):
    """The loss of the whole batch at each step from where the checkpoint is to `steps`."""
    with tf.Graph().as_default():
        tf.set_random_seed(seed)
        loss, feed = model()
        step = tf.train.get_or_create_global_step()
        train, hooks = train_op(kind, loss)
        whole = collectives.all_reduce(loss, "Add", "Div")
        losses = {}
        with tf.train.MonitoredTrainingSession(
            checkpoint_dir=None if folder is None else str(folder),
            hooks=hooks,
            is_chief=stoker.distribute.rank() == 0,
            save_checkpoint_steps=100,
            save_summaries_steps=None,
            log_step_count_steps=None,
        ) as session:
            for at in range(int(session.run(step)), steps):
                losses[str(at)] = float(session.run([whole, train], feed(at))[0])
        return losses


def collective_ops():
    """What the collective ops give in this process, as graph nodes and in eager mode."""
    rank = stoker.distribute.rank()

    def values():
        mine = tf.constant([1.0, 2.0, 4.0]) * (rank + 1)
        return {
            "sum": collectives.all_reduce(mine),
            "mean": collectives.all_reduce(mine, "Add", "Div"),
            "min": collectives.all_reduce(mine, "Min"),
            "max": collectives.all_reduce(mine, "Max"),
            "product": collectives.all_reduce(mine, "Mul"),
            "integer mean": collectives.all_reduce(tf.constant(7) * (rank + 1), "Add", "Div"),
            "rows": collectives.all_gather(tf.fill([rank + 1, 2], float(rank))),
            "no rows": collectives.all_gather(tf.fill([2 * rank], rank)),
            "first": collectives.broadcast(tf.constant([rank + 5, rank])),
        }

    with tf.Graph().as_default():
        named = values()
        x = tf.constant([[1.0], [2.0]]) * (rank + 1)
        gathered, reduced = collectives.all_gather(x), collectives.all_reduce(x, "Add", "Div")
        named["gradient of gather"] = tf.gradients(gathered * [[1.0], [2.0], [3.0], [4.0]], x)[0]
        named["gradient of mean"] = tf.gradients(reduced * (rank + 1.0), x)[0]
        with tf.Session() as session:
            of_graph = session.run(named)
    with stoker._src.graph.context.enter_eager():
        of_eager = {name: value.numpy() for name, value in values().items()}
    return [{name: np.asarray(value).tolist() for name, value in each.items()} for each in (of_graph, of_eager)]


def strategy_values():
    """What a strategy says and computes in this process."""
    strategy = tf.distribute.experimental.MultiWorkerMirroredStrategy()
    rank = stoker.distribute.rank()
    with tf.Graph().as_default():
        with strategy.scope():
            variable = tf.get_variable("v", initializer=[float(rank + 3)])
        mine = tf.constant([1.0, 3.0]) * (rank + 1)

        def replica(value):
            context = tf.distribute.get_replica_context()
            return context.all_reduce("SUM", value), context.all_gather(value, 0)

        total, rows = strategy.run(replica, (mine,))
        fetches = {
            "reduce": strategy.reduce("SUM", mine, axis=None),
            "mean over the axis": strategy.reduce("MEAN", tf.fill([rank + 1], float(rank)), axis=0),
            "all_reduce": total,
            "all_gather": rows,
            "variable": variable,
        }
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            found = {name: np.asarray(value).tolist() for name, value in session.run(fetches).items()}
    found["replicas"] = strategy.num_replicas_in_sync
    return found


def dataset_losses():
    """Losses of a custom loop over a dataset, which the strategy divides among the processes."""
    strategy = tf.distribute.MirroredStrategy()
    with tf.Graph().as_default(), strategy.scope():
        w = tf.get_variable("w", [5, 2], initializer=tf.glorot_uniform_initializer(seed=1))
        iterator = strategy.make_dataset_iterator(tf.data.Dataset.from_tensor_slices((X, Y)).repeat().batch(13))

        def step(inputs):
            x, y = inputs
            loss = tf.reduce_sum(tf.square(tf.matmul(x, w) - y)) / 13
            with tf.control_dependencies([tf.train.GradientDescentOptimizer(0.05).minimize(loss)]):
                return tf.identity(loss)

        loss = strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.experimental_run(step, iterator))
        with tf.Session() as session:
            session.run([iterator.initialize(), tf.global_variables_initializer()])
            return [float(session.run(loss)) for _ in range(5)]


def estimator_losses(folder):
    """Losses of an Estimator whose input function gives each process its part."""
    strategy = tf.distribute.MirroredStrategy()
    losses = []

    class Recorder(tf.train.SessionRunHook):
        def before_run(self, run_context):
            return tf.train.SessionRunArgs(tf.get_collection(tf.GraphKeys.LOSSES)[-1])

        def after_run(self, run_context, run_values):
            losses.append(float(run_values.results))

    def model_fn(features, labels, mode):
        w = tf.get_variable("w", [5, 2], initializer=tf.glorot_uniform_initializer(seed=1))
        loss = tf.losses.mean_squared_error(labels, tf.matmul(features, w))
        train_op = tf.train.AdamOptimizer(0.05).minimize(loss, tf.train.get_or_create_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    def input_fn(input_context):
        data = tf.data.Dataset.from_tensor_slices((X, Y))
        data = data.shard(input_context.num_input_pipelines, input_context.input_pipeline_id)
        return data.repeat().batch(input_context.get_per_replica_batch_size(12))

    config = tf.estimator.RunConfig(train_distribute=strategy)
    tf.estimator.Estimator(model_fn, str(folder), config).train(input_fn, [Recorder()], steps=5)
    return losses


def keras_losses(seed):
    """Losses and weights of a Keras model with uneven batches, metrics, penalties and moving averages."""
    with tf.Graph().as_default():
        tf.set_random_seed(seed)
        np.random.seed(1)  # of the order of examples
        with tf.distribute.MirroredStrategy().scope():
            layers = tf.keras.layers
            model = tf.keras.Sequential(
                [
                    layers.Dense(4, "tanh", input_shape=(5,), kernel_regularizer=tf.keras.regularizers.l2(0.01)),
                    layers.Dense(2),
                ]
            )
            model.compile(tf.keras.optimizers.Adam(0.05, clipnorm=0.1), "mse", metrics=["mae"])
        weights = np.linspace(0.5, 1.5, EXAMPLES).astype(np.float32)
        history = model.fit(X, Y, 11, epochs=2, verbose=0, sample_weight=weights, validation_data=(X[:7], Y[:7]))
        found = {**history.history, "weights": [np.sum(np.abs(each)) for each in model.get_weights()]}
        return {name: np.asarray(values, np.float64).tolist() for name, values in found.items()}


def main(folder):
    folder = Path(folder)
    rank = stoker.distribute.rank()
    result = {
        "size": stoker.distribute.size(),
        "ops": collective_ops(),
        "losses": {kind: train(kind, 5) for kind in KINDS},
        # Without a common seed, the variables of the first process count.
        "checkpointed": train("wrap", 4, folder / "checkpoints", seed=rank + 10),
        "strategy": strategy_values(),
        "dataset": dataset_losses(),
        "estimator": estimator_losses(folder / "estimator"),
        "keras": keras_losses(rank + 1),
    }
    (folder / f"{rank}.json").write_text(json.dumps(result))


if __name__ == "__main__":
    main(sys.argv[1])
