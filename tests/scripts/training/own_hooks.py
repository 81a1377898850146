"""Hooks of the library by themselves: feeding, waiting, logging, counting, profiling; a session that is lost and made again."""

import argparse
import glob
import json
import logging
import os
import re
import sys
import tempfile

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--logdir", default=None)
FLAGS = parser.parse_args()


class Loses(tf.train.SessionRunHook):
    """Raises errors of a lost worker at some runs."""

    def __init__(self, errors):
        self._errors, self._runs = errors, 0

    def after_create_session(self, session, coord):
        print("session created, coordinator stopped: %s" % coord.should_stop())

    def after_run(self, run_context, run_values):
        self._runs += 1
        if self._runs in self._errors:
            raise self._errors[self._runs]

    def end(self, session):
        print("ended after %d runs" % self._runs)


def logged():
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(logging.Formatter("%(message)s"))
    handler.addFilter(
        lambda record: not re.search("deprecated|removed in|global_step/sec|Saving|Restoring", record.getMessage())
    )
    tf.get_logger().handlers[:] = [handler]
    tf.logging.set_verbosity(tf.logging.INFO)


class WithoutTimes(logging.Filter):
    def filter(self, record):
        record.msg = re.sub(r" \([\d.]+ sec\)", "", record.getMessage())
        record.args = ()
        return True


def main():
    logged()
    tf.get_logger().handlers[0].addFilter(WithoutTimes())
    logdir = FLAGS.logdir or tempfile.mkdtemp()
    rng = np.random.RandomState(5)
    x = tf.placeholder(tf.float32, [4, 3], name="x")
    w = tf.get_variable("w", initializer=tf.constant([[1.0], [2.0], [3.0]]))
    loss = tf.reduce_mean(tf.matmul(x, w) ** 2, name="loss")
    step = tf.train.get_or_create_global_step()
    train_op = tf.train.FtrlOptimizer(0.5, l1_regularization_strength=0.01).minimize(loss, step)
    summaries = [tf.summary.scalar("loss_value", loss), tf.summary.histogram("w_value", w)]
    batches = [rng.rand(4, 3) for _ in range(20)]
    fed = iter(batches)
    errors = {
        4: tf.errors.AbortedError(None, None, "worker lost"),
        7: tf.errors.UnavailableError(None, None, "network down"),
    }
    saving = os.path.join(logdir, "model")
    writer = tf.summary.FileWriterCache.get(os.path.join(logdir, "own"))
    final = tf.train.FinalOpsHook(final_ops=[w, step], final_ops_feed_dict=None)
    hooks = [
        tf.train.FeedFnHook(lambda: {"x:0": next(fed)}),
        tf.train.LoggingTensorHook(
            ["loss", w],
            every_n_iter=4,
            formatter=lambda values: "values %s" % [np.round(v, 4).tolist() for v in values.values()],
        ),
        tf.train.LoggingTensorHook({"rounded": tf.round(100 * w)}, every_n_iter=3, at_end=True),
        tf.train.CheckpointSaverHook(saving, save_steps=2, saver=tf.train.Saver()),
        tf.train.SummarySaverHook(save_steps=3, output_dir=os.path.join(logdir, "summaries"), summary_op=summaries),
        tf.train.StepCounterHook(every_n_steps=4, summary_writer=writer),
        tf.train.StopAtStepHook(last_step=10),
        tf.train.GlobalStepWaiterHook(0),
        tf.train.ProfilerHook(save_steps=5, output_dir=os.path.join(logdir, "traces"), show_memory=True),
        Loses(errors),
        final,
    ]
    creator = tf.train.ChiefSessionCreator(checkpoint_dir=saving)
    with tf.train.MonitoredSession(session_creator=creator, hooks=hooks) as session:
        while not session.should_stop():
            value, _ = session.run([loss, train_op])
            print("loss %.5f" % value)
    print("final", np.round(final.final_ops_values[0], 4).tolist(), final.final_ops_values[1])
    tf.summary.FileWriterCache.clear()
    for path in sorted(glob.glob(os.path.join(logdir, "traces", "*"))):
        with open(path) as file:
            trace = json.load(file)
        print(os.path.basename(path), sorted(trace), {event["ph"] for event in trace["traceEvents"]} >= {"X", "M"})
        names = {event["args"]["name"].split(":")[0] for event in trace["traceEvents"] if event["ph"] == "X"}
        print("traced", "MatMul" in names, {event["ph"] for event in trace["traceEvents"]} >= set("NODC"))
    timer = tf.train.SecondOrStepTimer(every_steps=3)
    print(
        [timer.should_trigger_for_step(i) and timer.update_last_triggered_step(i) is not None for i in range(8)],
        timer.last_triggered_step(),
    )
    for build in [
        lambda: tf.train.StopAtStepHook(),
        lambda: tf.train.StopAtStepHook(1, 2),
        lambda: tf.train.LoggingTensorHook({}, 1, 1),
        lambda: tf.train.LoggingTensorHook({}, every_n_iter=0),
        lambda: tf.train.CheckpointSaverHook(logdir),
        lambda: tf.train.CheckpointSaverHook(logdir, save_steps=1, saver=1, scaffold=1),
        lambda: tf.train.SummarySaverHook(save_steps=1),
        lambda: tf.train.SecondOrStepTimer(),
        lambda: tf.train.SecondOrStepTimer(1, 1),
        lambda: tf.train.StepCounterHook(1, 1),
        lambda: tf.train.SecondOrStepTimer(0.1, None).update_last_triggered_step(1) and 1,
    ]:
        try:
            build()
            print("no error")
        except Exception as error:
            print(type(error).__name__, error)


if __name__ == "__main__":
    main()
