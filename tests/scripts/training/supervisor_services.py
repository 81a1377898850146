"""A Supervisor with services of its own: a looper that reads the step, a queue fed by a thread, an init function and a second writer."""

import argparse
import os
import tempfile
import threading

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--logdir", default=None)
FLAGS = parser.parse_args()


class StepReporter(tf.train.LooperThread):
    """Counts its calls and remembers the largest step it saw."""

    def __init__(self, coord, sess, global_step, seen):
        super().__init__(coord, timer_interval_secs=0.01)
        self._sess, self._global_step, self._seen = sess, global_step, seen
        self.largest, self.phases = -1, []

    def start_loop(self):
        self.phases.append("start")

    def run_loop(self):
        self.largest = max(self.largest, tf.train.global_step(self._sess, self._global_step))
        if "run" not in self.phases:
            self.phases.append("run")
        self._seen.set()

    def stop_loop(self):
        self.phases.append("stop")


def build():
    rng = np.random.RandomState(0)
    data = rng.randn(40, 3).astype(np.float32)
    targets = data.dot(np.array([[1.0], [-2.0], [0.5]], np.float32))
    queue = tf.FIFOQueue(64, [tf.float32, tf.float32], [[3], [1]], name="input_queue")
    x, y = tf.placeholder(tf.float32, [3]), tf.placeholder(tf.float32, [1])
    enqueue, close = queue.enqueue([x, y]), queue.close()
    xs, ys = queue.dequeue_many(8)
    w = tf.get_variable("w", [3, 1], initializer=tf.zeros_initializer())
    scale = tf.get_variable("scale", [], initializer=tf.constant_initializer(7.0))
    global_step = tf.train.create_global_step()
    loss = tf.losses.mean_squared_error(ys, tf.matmul(xs, w) * scale)
    tf.summary.scalar("loss", loss)
    tf.summary.scalar("scale", scale)
    tf.summary.histogram("w", w)
    summary_op = tf.summary.merge_all()
    with tf.control_dependencies([summary_op]):  # the weights before the step
        train_op = tf.train.AdagradOptimizer(0.3).minimize(loss, global_step, var_list=[w])

    def feed(sess, coord):
        with coord.stop_on_exception():
            for row, target in zip(data, targets):
                sess.run(enqueue, {x: row, y: target})
            sess.run(close)

    return loss, train_op, global_step, scale, summary_op, feed


def train(logdir):
    with tf.Graph().as_default():
        loss, train_op, global_step, scale, summary_op, feed = build()
        reset = tf.assign(scale, 1.0)
        writer = tf.summary.FileWriter(os.path.join(logdir, "own"), filename_suffix=".own")

        def init_fn(sess):
            print("init_fn: scale was %.1f" % sess.run(scale))
            sess.run(reset)

        sv = tf.train.Supervisor(
            logdir=os.path.join(logdir, "train"),
            init_fn=init_fn,
            summary_op=None,
            summary_writer=writer,
            saver=tf.train.Saver([v for v in tf.global_variables() if "Adagrad" not in v.name], max_to_keep=2),
            checkpoint_basename="linear",
            save_summaries_secs=0,
            save_model_secs=0,
        )
        print(
            sv.is_chief, os.path.relpath(sv.save_path, logdir), sv.summary_op, sv.save_model_secs, sv.global_step.name
        )
        sess = sv.prepare_or_wait_for_session(start_standard_services=False)
        seen = threading.Event()
        reporter = StepReporter(sv.coord, sess, global_step, seen)
        reporter.start()
        feeder = threading.Thread(target=feed, args=(sess, sv.coord))
        feeder.start()
        counted = []
        looper = sv.loop(None, counted.append, args=(1,))
        seen.wait(60)
        losses = []
        try:
            while not sv.should_stop():
                value, summary, _ = sess.run([loss, summary_op, train_op])
                losses.append(value)
                sv.summary_computed(sess, summary, global_step=len(losses))
                sv.saver.save(sess, sv.save_path, global_step=global_step)
        except tf.errors.OutOfRangeError as error:
            print("input ended:", "insufficient elements" in error.message)
            sv.request_stop()
        sv.stop([reporter, feeder, looper], close_summary_writer=False)
        writer.close()
        print("losses", " ".join("%.5f" % value for value in losses))
        print("reporter", reporter.phases, reporter.largest >= 0, "looper called", len(counted) > 0)
        print("stopped", sv.should_stop(), sv.coord.joined)
        print("session still runs: scale %.1f" % sess.run(scale))
        sess.close()
        print(sorted(os.listdir(os.path.join(logdir, "train"))))


if __name__ == "__main__":
    train(FLAGS.logdir or tempfile.mkdtemp())
