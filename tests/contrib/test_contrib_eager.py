"""`tf.contrib.eager`: metrics that are called with batches, and variables kept by name."""

from __future__ import annotations

import numpy as np
import pytest

import stoker.compat.v1 as tf
from stoker._src.graph import context

tfe = tf.contrib.eager
metrics = tfe.metrics


@pytest.fixture
def eager():
    with context.enter_eager():
        yield


def test_metrics_add_up_batches(eager):
    """Calls add batches, `result` is the value so far, `init_variables` starts again."""
    mean, accuracy = metrics.Mean("loss"), metrics.Accuracy()
    for values in ([1.0, 2.0], 6.0):
        mean(values)
    accuracy(tf.constant([1, 2]), tf.constant([1, 3]))
    accuracy(tf.constant([1, 2]), tf.constant([1, 3]), tf.constant([0.0, 1.0]))
    assert mean.result().numpy() == 3.0 and mean.result().dtype == tf.float64
    assert accuracy.result().numpy() == pytest.approx(1 / 3)  # as TensorFlow 1.15 prints
    assert [v.name for v in accuracy.variables] == ["Accuracy/numer:0", "Accuracy/denom:0"]
    mean.init_variables()
    assert np.isnan(mean.result().numpy())
    mean(5)
    assert mean.result().numpy() == 5.0


def test_accuracies_of_rows(eager):
    """Labels may be rows, numbers above or below a threshold, or indices."""
    rows = tf.constant([[0.1, 0.9], [0.2, 0.8]])
    for metric, labels, predictions in (
        (metrics.CategoricalAccuracy(), [[0.0, 1.0], [1.0, 0.0]], rows),
        (metrics.BinaryAccuracy(0.5), [[0.0], [1.0]], [[0.4], [0.3]]),
        (metrics.SparseAccuracy(), [1, 0], rows),
    ):
        metric(tf.constant(labels), tf.constant(predictions))
        assert metric.result().numpy() == 0.5 and metric.name == type(metric).__name__


def test_mistakes_with_metrics(eager):
    """Other shapes, a value before the first batch and a class without `build` are refused."""
    accuracy = metrics.Accuracy()
    with pytest.raises(ValueError, match="Accuracy has no value: call it"):
        accuracy.result()
    with pytest.raises(tf.errors.InvalidArgumentError, match="Shapes of labels and predictions are unequal"):
        accuracy(tf.constant([1, 2]), tf.constant([1]))
    with pytest.raises(NotImplementedError, match="must define a build"):
        metrics.Metric()(1)


class Largest(metrics.Metric):
    """The largest number in any batch."""

    def build(self, values):
        self.largest = self.add_variable("largest", (), tf.float32, tf.constant_initializer(-1.0))

    def call(self, values):
        self.largest.assign(tf.maximum(self.largest, tf.reduce_max(values)))
        return values

    def result(self):
        return self.largest.read_value()


def test_metrics_of_ones_own(eager, tmp_path):
    """`build` makes variables with initializers, to which `init_variables` returns; checkpoints have them by name."""
    metric = Largest("top score!")
    metric(tf.constant([1.0, 4.0]))
    metric(tf.constant([2.0]))
    assert metric.result().numpy() == 4.0 and metric.variables[0].name == "topscore/largest:0"
    path = tf.train.Checkpoint(metric=metric).save(str(tmp_path / "ck"))
    metric.init_variables()
    assert metric.result().numpy() == -1.0
    with pytest.raises(RuntimeError, match="build"):
        metric.add_variable("late")
    later = Largest()
    tf.train.Checkpoint(metric=later).restore(path)
    later(tf.constant([3.0]))
    assert later.result().numpy() == 4.0


def test_a_metric_in_a_graph():
    """A call returns tensors that update the variables when they run; these are local variables."""
    labels, mean = tf.placeholder(tf.int64, [None]), metrics.Mean(use_global_variables=True)
    accuracy = metrics.Accuracy()
    update, average, result = accuracy(labels, tf.constant([1, 3], tf.int64)), mean(2.0), accuracy.value()
    assert tf.local_variables() == accuracy.variables and tf.global_variables() == mean.variables
    with tf.Session() as session:
        session.run([accuracy.init_variables(), mean.init_variables()])
        for _ in range(2):
            first, second = session.run(update, {labels: [1, 2]})
            assert first.tolist() == [1, 2] and second.tolist() == [1, 3]
        session.run(average)
        assert session.run([result, mean.result()]) == [0.5, 2.0]


def test_variables_are_kept_by_name(eager):
    """In a block of an EagerVariableStore functions such as tf.layers.dense find the variables of their last call."""
    store = tfe.EagerVariableStore()
    for _ in range(2):
        with store.as_default():
            y = tf.layers.dense(tf.ones([1, 3]), 2, name="d", kernel_initializer=tf.ones_initializer())
            tf.get_variable("q", [2], trainable=False)
    assert [v.name for v in store.variables()] == ["d/bias:0", "d/kernel:0", "q:0"]
    assert [v.name for v in store.trainable_variables()] == ["d/bias:0", "d/kernel:0"]
    assert [v.name for v in store.non_trainable_variables()] == ["q:0"]
    store.variables()[1].assign(tf.zeros([3, 2]))
    with store.as_default():
        y = tf.layers.dense(tf.ones([1, 3]), 2, name="d")
    assert y.numpy().tolist() == [[0.0, 0.0]]
    with store.as_default(), pytest.raises(ValueError, match="Trying to share variable q"):
        tf.get_variable("q", [3])
    optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
    optimizer.minimize(lambda: tf.reduce_sum(store.variables()[0] ** 2))
    assert [v.name for v in tfe.get_optimizer_variables(optimizer)] == ["d/bias/Momentum:0"]


def test_a_store_needs_eager_mode_and_devices_have_names():
    """Graphs keep their variables by themselves. Every machine has a CPU."""
    with pytest.raises(RuntimeError, match="graphs keep variables"):
        tfe.EagerVariableStore()
    names = tfe.list_devices()
    assert names[0] == "/job:localhost/replica:0/task:0/device:CPU:0"
    assert tfe.num_gpus() == sum("GPU" in name for name in names)
