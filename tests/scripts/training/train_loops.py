"""basic_train_loop under a Supervisor, LooperThread by itself, and coordinators that meet exceptions."""

import argparse
import os
import sys
import tempfile
import threading

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--logdir", default=None)
FLAGS = parser.parse_args()


def loop(logdir):
    rng = np.random.RandomState(1)
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [None, 2])
        w = tf.get_variable("w", [2, 1], initializer=tf.constant_initializer([[3.0], [-3.0]]))
        loss = tf.reduce_sum(tf.nn.l2_loss(tf.matmul(x, w)))
        step = tf.Variable(0, name="global_step", trainable=False, dtype=tf.int64)
        train_op = tf.train.ProximalGradientDescentOptimizer(0.05, l1_regularization_strength=0.01).minimize(loss, step)
        tf.summary.scalar("loss", loss)
        sv = tf.train.Supervisor(logdir=logdir, save_model_secs=0, save_summaries_secs=0, summary_op=None)

        def train_step(sess, batch, verbose=False):
            _, value, number = sess.run([train_op, loss, step], {x: rng.rand(batch, 2)})
            if verbose:
                print("step %d loss %.5f" % (number, value))
            if number == 6:
                sv.saver.save(sess, sv.save_path, global_step=step)
                sv.request_stop()

        tf.train.basic_train_loop(sv, train_step, args=(8,), kwargs={"verbose": True})
        print("stopped", sv.should_stop(), os.path.basename(tf.train.latest_checkpoint(logdir)))
        print([v.op.name for v in tf.global_variables()], sv.saver is not None, sv.ready_op.name, sv.init_op.name)

    def failing_step(sess):
        raise KeyError("in the middle")

    with tf.Graph().as_default():
        tf.get_variable("v", initializer=1.0)
        sv = tf.train.Supervisor(logdir="", save_model_secs=0)
        print(sv.summary_writer, sv.save_path, sv.global_step)
        try:
            tf.train.basic_train_loop(sv, failing_step)
        except KeyError as error:
            print("KeyError", error)


def coordinators():
    coord = tf.train.Coordinator()
    calls = []
    thread = tf.train.LooperThread.loop(coord, None, calls.append, args=(1,))
    while len(calls) < 3:
        pass
    coord.request_stop()
    coord.join([thread])
    print("looper", len(calls) >= 3, thread.is_alive(), coord.joined)

    def fail(message):
        raise ValueError(message)

    coord = tf.train.Coordinator()
    tf.train.LooperThread.loop(coord, 0.0, fail, kwargs={"message": "from a looper"})
    try:
        print("waited", coord.wait_for_stop(60))
        coord.join()
    except ValueError as error:
        print("ValueError", error)
    try:
        coord.raise_requested_exception()
    except ValueError as error:
        print("again", error)
    coord.clear_stop()
    coord.raise_requested_exception()
    print("cleared", coord.should_stop(), coord.joined)

    coord = tf.train.Coordinator(clean_stop_exception_types=(KeyError,))
    try:
        raise KeyError("fine")
    except KeyError:
        coord.request_stop(sys.exc_info())
    coord.join([])
    print("clean", coord.should_stop())

    coord = tf.train.Coordinator()
    release = threading.Event()
    stuck = threading.Thread(target=release.wait, name="stuck", daemon=True)
    stuck.start()
    coord.register_thread(stuck)
    coord.request_stop()
    try:
        coord.join(stop_grace_period_secs=0.2)
    except RuntimeError as error:
        print("RuntimeError", error)
    coord.join(stop_grace_period_secs=0.1, ignore_live_threads=True)
    release.set()
    stuck.join()
    for arguments in [(None, 1), ("coord", None)]:
        try:
            tf.train.LooperThread(*arguments)
        except ValueError as error:
            print("ValueError", str(error)[:50])
    try:
        tf.train.LooperThread(coord, None, args=(1,))
    except ValueError as error:
        print("ValueError", error)


if __name__ == "__main__":
    loop(FLAGS.logdir or tempfile.mkdtemp())
    coordinators()
