"""MonitoredTrainingSession with hooks of all kinds; the event file and the checkpoints it leaves."""

import glob
import logging
import os
import re
import shutil
import sys
import tempfile

import numpy as np
import tensorflow as tf


class LearningRateHook(tf.train.SessionRunHook):
    """Changes the learning rate by the global step, through a feed."""

    def __init__(self, rate):
        self._rate = rate

    def begin(self):
        self._step = -1
        self._global_step = tf.train.get_or_create_global_step()

    def before_run(self, run_context):
        self._step += 1
        return tf.train.SessionRunArgs(self._global_step, feed_dict={self._rate: 0.1 if self._step < 6 else 0.01})

    def after_run(self, run_context, run_values):
        if self._step % 4 == 0:
            print("hook saw run %d" % self._step)

    def end(self, session):
        print("hook ends after run %d" % self._step)


class GradientNormHook(tf.train.SessionRunHook):
    def __init__(self, norm, limit):
        self._norm, self._limit = norm, limit

    def before_run(self, run_context):
        return tf.train.SessionRunArgs({"norm": self._norm})

    def after_run(self, run_context, run_values):
        if run_values.results["norm"] > self._limit:
            print("norm %.4f is large" % run_values.results["norm"])


class SaveListener(tf.train.CheckpointSaverListener):
    def after_save(self, session, global_step_value):
        print("saved at", global_step_value)


def model():
    rng = np.random.RandomState(0)
    features = tf.constant(rng.randn(64, 6).astype(np.float32))
    labels = tf.constant((rng.rand(64) > 0.5).astype(np.int64))
    hidden = tf.layers.dense(
        features, 8, tf.nn.relu, kernel_initializer=tf.glorot_uniform_initializer(seed=1), name="hidden"
    )
    logits = tf.layers.dense(hidden, 2, kernel_initializer=tf.glorot_uniform_initializer(seed=2), name="logits")
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    rate = tf.placeholder_with_default(0.1, [], name="rate")
    optimizer = tf.train.GradientDescentOptimizer(rate)
    grads = optimizer.compute_gradients(loss)
    for grad, var in grads:
        tf.summary.histogram(var.op.name + "/gradient", grad)
    tf.summary.scalar("loss", loss)
    norm = tf.global_norm([grad for grad, _ in grads])
    train_op = optimizer.apply_gradients(grads, global_step=tf.train.get_or_create_global_step())
    return loss, norm, rate, train_op


def main():
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(logging.Formatter("%(message)s"))
    handler.addFilter(lambda record: not re.search("deprecated|sec|removed in", record.getMessage()))
    tf.get_logger().handlers[:] = [handler]
    tf.logging.set_verbosity(tf.logging.INFO)
    directory = tempfile.mkdtemp()
    os.chdir(directory)
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        loss, norm, rate, train_op = model()
        scaffold = tf.train.Scaffold()
        hooks = [
            tf.train.StopAtStepHook(last_step=10),
            tf.train.LoggingTensorHook({"loss": loss}, every_n_iter=100),
            tf.train.NanTensorHook(loss),
            LearningRateHook(rate),
            GradientNormHook(norm, 0.2),
        ]
        saver = tf.train.CheckpointSaverHook("model", save_steps=5, scaffold=scaffold, listeners=[SaveListener()])
        with tf.train.MonitoredTrainingSession(
            checkpoint_dir="model",
            scaffold=scaffold,
            hooks=hooks,
            chief_only_hooks=[saver],
            save_checkpoint_secs=None,
            save_summaries_steps=1,
            log_step_count_steps=None,
        ) as session:
            while not session.should_stop():
                _, value = session.run([train_op, loss])
                print("loss %.5f" % value)
    print(sorted(name for name in os.listdir("model") if not name.startswith("events")))
    tf.summary.FileWriterCache.clear()
    for path in glob.glob("model/events*"):
        for event in tf.train.summary_iterator(path):
            for value in event.summary.value:
                if value.tag == "loss":
                    print(event.step, value.tag, "%.4f" % value.simple_value)
                else:
                    print(event.step, value.tag, int(value.histo.num), "%.4f" % value.histo.sum_squares)
            if event.HasField("session_log"):
                print(event.step, event.session_log.status, event.session_log.checkpoint_path)
    reader = tf.train.NewCheckpointReader(tf.train.latest_checkpoint("model"))
    for name in sorted(reader.get_variable_to_shape_map()):
        print(name, "%.4f" % np.sum(reader.get_tensor(name)))
    os.chdir("/")
    shutil.rmtree(directory)


if __name__ == "__main__":
    main()
