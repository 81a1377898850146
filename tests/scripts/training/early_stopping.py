"""Hooks of a program's own in a MonitoredTrainingSession: a learning rate that is fed, early stopping, averages that are swapped in for evaluation."""

import argparse
import os
import tempfile

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--logdir", default=None)
FLAGS = parser.parse_args()


class LearningRateHook(tf.train.SessionRunHook):
    """Feeds a rate that halves every few steps."""

    def __init__(self, rate, initial, steps):
        self._rate, self._value, self._steps = rate, initial, steps

    def begin(self):
        self._count = 0

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(fetches=[tf.train.get_global_step()], feed_dict={self._rate: self._value})

    def after_run(self, run_context, run_values):
        self._count += 1
        if self._count % self._steps == 0:
            self._value /= 2
            print("rate", self._value, "fetched", len(run_values.results))


class EarlyStoppingHook(tf.train.SessionRunHook):
    """Evaluates at every few steps with the averaged weights and stops when that gets worse."""

    def __init__(self, loss, averages, every, patience):
        self._loss, self._averages, self._patience = loss, averages, patience
        self._timer = tf.train.SecondOrStepTimer(every_steps=every)
        self._best, self._bad = np.inf, 0

    def begin(self):
        self._step = tf.train.get_global_step()
        self._backups = [
            tf.Variable(v.initialized_value(), trainable=False, name="backup") for v in tf.trainable_variables()
        ]
        pairs = list(zip(tf.trainable_variables(), self._backups))
        self._keep = tf.group(*[backup.assign(var) for var, backup in pairs])
        self._swap = tf.group(*[var.assign(self._averages.average(var)) for var, _ in pairs])
        self._back = tf.group(*[var.assign(backup) for var, backup in pairs])

    def after_run(self, run_context, run_values):
        session = run_context.session
        step = session.run(self._step)
        if not self._timer.should_trigger_for_step(step):
            return
        self._timer.update_last_triggered_step(step)
        session.run(self._keep)
        session.run(self._swap)
        value = session.run(self._loss)
        session.run(self._back)
        print("validation at %d: %.5f" % (step, value))
        if value < self._best:
            self._best, self._bad = value, 0
        else:
            self._bad += 1
            if self._bad >= self._patience:
                print("stopping at", step, "last", self._timer.last_triggered_step())
                run_context.request_stop()


def network(x, reuse=None):
    with tf.variable_scope("net", reuse=reuse):
        hidden = tf.layers.dense(x, 6, tf.nn.tanh, kernel_initializer=tf.random_normal_initializer(0.0, 0.5, seed=2))
        return tf.layers.dense(hidden, 1, kernel_initializer=tf.random_normal_initializer(0.0, 0.5, seed=3))


def build():
    rng = np.random.RandomState(8)
    inputs = rng.uniform(-1, 1, [60, 2]).astype(np.float32)
    labels = (np.sin(3 * inputs[:, :1]) + 0.3 * rng.randn(60, 1)).astype(np.float32)
    x, y = tf.train.slice_input_producer([inputs[:40], labels[:40]], shuffle=False, capacity=64)
    x, y = tf.train.batch([x, y], 10, capacity=40)
    loss = tf.losses.mean_squared_error(y, network(x))
    valid = tf.losses.mean_squared_error(
        labels[40:], network(tf.constant(inputs[40:]), reuse=True), loss_collection=None
    )
    rate = tf.placeholder_with_default(np.float32(0.01), [], name="rate")
    step = tf.train.create_global_step()
    _, update_mean = tf.metrics.mean(loss, name="mean_loss")
    averages = tf.train.ExponentialMovingAverage(0.8)
    tf.summary.scalar("rate", rate)
    tf.summary.scalar("loss", loss)
    with tf.control_dependencies([tf.summary.merge_all(), update_mean]):
        train_op = tf.train.AdamOptimizer(rate).minimize(loss, step)
    with tf.control_dependencies([train_op]):
        train_op = averages.apply(tf.trainable_variables())
    return rate, loss, valid, averages, train_op


def train(logdir):
    with tf.Graph().as_default():
        tf.set_random_seed(4)
        rate, loss, valid, averages, train_op = build()
        scaffold = tf.train.Scaffold(saver=tf.train.Saver(tf.trainable_variables() + [tf.train.get_global_step()]))
        hooks = [LearningRateHook(rate, 0.2, 10), EarlyStoppingHook(valid, averages, 3, 3)]
        with tf.train.MonitoredTrainingSession(
            checkpoint_dir=logdir,
            scaffold=scaffold,
            hooks=hooks,
            save_checkpoint_steps=10,
            save_summaries_steps=None,
            save_summaries_secs=None,
            log_step_count_steps=None,
        ) as session:
            while not session.should_stop():
                value, _ = session.run([loss, train_op])
            print("last loss %.5f" % value)
            try:
                session.run(loss)
            except RuntimeError as error:
                print("RuntimeError", error)
        print(scaffold.ready_op is not None, scaffold.summary_op is not None, tf.get_default_graph().finalized)


def evaluate(logdir):
    path = tf.train.latest_checkpoint(logdir)
    print("evaluates", os.path.basename(path).startswith("model.ckpt-"))
    with tf.Graph().as_default():
        _, loss, valid, _, _ = build()
        variables = tf.trainable_variables() + [tf.train.get_global_step()]
        final = tf.train.FinalOpsHook([valid, tf.train.get_global_step()])
        ready = tf.report_uninitialized_variables(variables)
        scaffold = tf.train.Scaffold(saver=tf.train.Saver(variables), ready_op=ready, ready_for_local_init_op=ready)
        creator = tf.train.ChiefSessionCreator(scaffold=scaffold, checkpoint_filename_with_path=path)
        with tf.train.MonitoredSession(creator, hooks=[final]) as session:
            values = [session.run(loss) for _ in range(3)]
        print(["%.4f" % value for value in values], "%.4f" % final.final_ops_values[0])
    with tf.Graph().as_default():
        build()
        try:
            with tf.train.SingularMonitoredSession(checkpoint_filename_with_path=path):
                pass
        except tf.errors.NotFoundError as error:
            print("NotFoundError", "not found in checkpoint" in str(error))


if __name__ == "__main__":
    directory = FLAGS.logdir or tempfile.mkdtemp()
    train(directory)
    evaluate(directory)
