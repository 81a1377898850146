"""MonitoredTrainingSession with a Scaffold of its own pieces and hooks that print their calls; resumed once, with a step function."""

import argparse
import os
import tempfile

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--logdir", default=None)
FLAGS = parser.parse_args()


class Narrator(tf.train.SessionRunHook):
    def __init__(self, name, fetch=None, feed=None):
        self._name, self._fetch, self._feed, self._runs = name, fetch, feed, 0

    def begin(self):
        print(self._name, "begin, finalized", tf.get_default_graph().finalized)

    def after_create_session(self, session, coord):
        print(self._name, "after_create_session, finalized", session.graph.finalized, coord.should_stop())

    def before_run(self, run_context):
        args = run_context.original_args
        if self._runs == 0:
            print(
                self._name,
                "before_run",
                type(args).__name__,
                args._fields,
                sorted(args.fetches) if isinstance(args.fetches, dict) else args.fetches.name,
            )
        return (
            tf.train.SessionRunArgs(self._fetch, feed_dict=self._feed)
            if self._fetch is not None or self._feed
            else None
        )

    def after_run(self, run_context, run_values):
        self._runs += 1
        if self._runs <= 2:
            print(
                self._name,
                "after_run",
                "None" if run_values.results is None else np.round(run_values.results, 4).tolist(),
            )

    def end(self, session):
        print(self._name, "end after", self._runs, "runs")


class Keeper(tf.train.CheckpointSaverListener):
    def begin(self):
        print("listener begin")

    def before_save(self, session, global_step_value):
        print("listener before_save", global_step_value)

    def after_save(self, session, global_step_value):
        print("listener after_save", global_step_value)
        return global_step_value >= 12  # asks for a stop

    def end(self, session, global_step_value):
        print("listener end", global_step_value)


def model():
    rng = np.random.RandomState(4)
    x = tf.constant(rng.randn(32, 5).astype(np.float32))
    start = tf.placeholder(tf.float32, [5, 1], name="start")
    w = tf.get_variable("w", initializer=start)
    noise = tf.placeholder_with_default(np.float32(0.0), [], name="noise")
    seen = tf.get_variable(
        "seen", [], tf.int32, tf.zeros_initializer(), trainable=False, collections=[tf.GraphKeys.LOCAL_VARIABLES]
    )
    loss = tf.reduce_mean(tf.abs(tf.matmul(x, w) - 1.0)) + noise
    tf.summary.scalar("loss", loss, collections=["rare"])
    with tf.control_dependencies([tf.assign_add(seen, 1)]):
        train_op = tf.train.RMSPropOptimizer(0.01, momentum=0.5).minimize(loss, tf.train.get_or_create_global_step())
    return start, w, noise, seen, loss, train_op


def train(logdir, steps):
    with tf.Graph().as_default():
        start, w, noise, seen, loss, train_op = model()
        halve, part = tf.assign(w, w / 2), w[1, 0]
        scaffold = tf.train.Scaffold(
            init_feed_dict={start: np.arange(5, dtype=np.float32)[:, None]},
            init_fn=lambda scaffold, session: session.run(halve),
            local_init_op=tf.group(tf.variables_initializer([seen]), tf.tables_initializer()),
            summary_op=tf.summary.merge_all("rare"),
            saver=tf.train.Saver(max_to_keep=3, name="keeper"),
        )
        hooks = [
            Narrator("first", noise),
            Narrator("second", feed={noise: 0.25}),
            tf.train.StopAtStepHook(num_steps=steps),
            tf.train.NanTensorHook(loss, fail_on_nan_loss=False),
        ]
        chief = [
            tf.train.CheckpointSaverHook(
                logdir, save_steps=3, scaffold=scaffold, checkpoint_basename="m", listeners=[Keeper()]
            ),
            Narrator("chief"),
        ]
        with tf.train.MonitoredTrainingSession(
            master="",
            is_chief=True,
            checkpoint_dir=logdir,
            scaffold=scaffold,
            hooks=hooks,
            chief_only_hooks=chief,
            save_checkpoint_secs=None,
            save_summaries_steps=2,
            save_summaries_secs=None,
            log_step_count_steps=4,
            config=tf.ConfigProto(allow_soft_placement=True),
            stop_grace_period_secs=30,
        ) as session:

            def step_fn(step_context):
                values = step_context.session.run([part, seen])
                step_context.run_with_hooks(train_op)
                return values

            print("step function: %.4f %d" % tuple(session.run_step_fn(step_fn)))
            while not session.should_stop():
                result = session.run({"loss": loss, "train": train_op, "seen": seen})
                print("loss %.5f seen %d" % (result["loss"], result["seen"]), result["train"])
        print("should_stop", session.should_stop())


def main():
    logdir = FLAGS.logdir or tempfile.mkdtemp()
    train(logdir, 7)
    train(logdir, 40)
    print(sorted(name for name in os.listdir(logdir) if "tfevents" not in name))
    state = tf.train.get_checkpoint_state(logdir)
    print(
        os.path.basename(state.model_checkpoint_path),
        [os.path.basename(path) for path in state.all_model_checkpoint_paths],
    )
    for name, shape in tf.train.list_variables(logdir):
        print(name, shape, "%.4f" % np.sum(tf.train.load_variable(logdir, name)))


if __name__ == "__main__":
    main()
