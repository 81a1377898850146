"""All hooks in one MonitoredTrainingSession whose session is lost twice: a step is repeated in a session that the last checkpoint restores."""

import argparse
import json
import os
import tempfile

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--logdir", default=None)
FLAGS = parser.parse_args()


class Loss(tf.train.SessionRunHook):
    """Loses the session in the given steps: once before a run, once after one."""

    def __init__(self, before, after):
        self._before, self._after, self._sessions = before, after, 0

    def begin(self):
        self._step = tf.train.get_global_step()

    def after_create_session(self, session, coord):
        self._sessions += 1
        print("session", self._sessions, "starts at step", session.run(self._step))

    def before_run(self, run_context):
        if run_context.session.run(self._step) == self._before:
            self._before = None
            raise tf.errors.AbortedError(None, None, "worker lost before a step")

    def after_run(self, run_context, run_values):
        if run_context.session.run(self._step) == self._after:
            self._after = None
            raise tf.errors.UnavailableError(None, None, "worker lost after a step")

    def end(self, session):
        print("the end at step", session.run(self._step))


class Watch(tf.train.CheckpointSaverListener):
    def after_save(self, session, global_step_value):
        print("saved", global_step_value)


def batches():
    rng = np.random.RandomState(3)
    while True:
        x = rng.randn(16, 4).astype(np.float32)
        yield x, x.dot([[1.0], [2.0], [3.0], [4.0]])


def train(logdir, resource):
    traces, source = os.path.join(logdir, "traces"), batches()
    os.makedirs(traces)
    with tf.Graph().as_default(), tf.variable_scope("", use_resource=resource):
        x = tf.placeholder(tf.float32, [None, 4], name="x")
        y = tf.placeholder(tf.float32, [None, 1], name="y")
        w = tf.get_variable("w", [4, 1], initializer=tf.zeros_initializer())
        loss = tf.losses.mean_squared_error(y, tf.matmul(x, w))
        step = tf.train.get_or_create_global_step()
        tf.summary.scalar("loss", loss)
        tf.summary.histogram("w", w)
        summaries = tf.summary.merge_all()
        # What hooks read in a run is read before its update: a hook makes the tensor that all hooks read the step from.
        tf.train.StopAtStepHook(last_step=1).begin()
        with tf.control_dependencies([summaries] + tf.get_collection("global_step_read_op_cache")):
            train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, step)
        final = tf.train.FinalOpsHook({"w": w, "step": step})
        hooks = [
            tf.train.FeedFnHook(lambda: dict(zip([x, y], next(source)))),
            tf.train.LoggingTensorHook({"loss": loss}, every_n_iter=4),
            tf.train.NanTensorHook(loss),
            tf.train.StopAtStepHook(last_step=17),
            tf.train.GlobalStepWaiterHook(0),
            tf.train.ProfilerHook(save_steps=3, output_dir=traces),
            tf.train.SummarySaverHook(save_steps=2, output_dir=traces, summary_op=summaries),
            final,
            Loss(before=7, after=13),
        ]
        saver = tf.train.CheckpointSaverHook(logdir, save_steps=5, saver=tf.train.Saver(), listeners=[Watch()])
        with tf.train.MonitoredTrainingSession(
            checkpoint_dir=logdir,
            hooks=hooks,
            chief_only_hooks=[saver],
            save_checkpoint_secs=None,
            save_summaries_steps=4,
            log_step_count_steps=3,
        ) as session:
            while not session.should_stop():
                value, _ = session.run([loss, train_op])
                print("loss %.5f" % value)
        print("final", final.final_ops_values["step"], np.round(final.final_ops_values["w"].ravel(), 4).tolist())
    print(sorted(name for name in os.listdir(traces) if "tfevents" not in name))
    for name in sorted(os.listdir(traces)):
        if name.endswith(".json"):
            with open(os.path.join(traces, name)) as file:
                events = json.load(file)["traceEvents"]
            assert any(event["ph"] == "X" for event in events)
    print(sorted(name for name in os.listdir(logdir) if "tfevents" not in name))


if __name__ == "__main__":
    directory = FLAGS.logdir or tempfile.mkdtemp()
    for resource in (False, True):
        print("resource variables" if resource else "reference variables")
        train(os.path.join(directory, "resource" if resource else "reference"), resource)
