"""A Supervisor whose program writes its own summaries and checkpoints, with timers of its own; interrupted by an error and resumed."""

import argparse
import os
import tempfile
import threading

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--logdir", default=None)
FLAGS = parser.parse_args()


def build():
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    y = tf.placeholder(tf.float32, [None], name="y")
    with tf.variable_scope("linear"):
        w = tf.get_variable("w", [3, 1], initializer=tf.constant_initializer([[0.5], [-0.5], [0.25]]))
        b = tf.get_variable("b", [1], initializer=tf.zeros_initializer())
    prediction = tf.squeeze(tf.matmul(x, w) + b, 1, name="prediction")
    loss = tf.reduce_mean(tf.squared_difference(prediction, y), name="loss")
    global_step = tf.Variable(0, name="global_step", trainable=False)
    train_op = tf.train.MomentumOptimizer(0.05, 0.9).minimize(loss, global_step=global_step)
    tf.summary.scalar("loss", loss)
    tf.summary.histogram("w", w)
    return x, y, w, loss, global_step, train_op


def batches(seed):
    rng = np.random.RandomState(seed)
    while True:
        data = rng.randn(10, 3)
        yield data, data.dot([1.0, -2.0, 0.5]) + 0.3


def train(logdir, last_step, seed, fails_at=None):
    with tf.Graph().as_default():
        x, y, w, loss, global_step, train_op = build()
        summary_op = tf.summary.merge_all()
        total = tf.get_variable("total", [], initializer=tf.zeros_initializer(), collections=["local_variables"])
        count = tf.assign_add(total, loss)
        loaded = []
        sv = tf.train.Supervisor(
            logdir=logdir,
            is_chief=True,
            init_op=tf.global_variables_initializer(),
            local_init_op=tf.local_variables_initializer(),
            summary_op=None,
            saver=tf.train.Saver(max_to_keep=2),
            global_step=global_step,
            save_model_secs=0,
            checkpoint_basename="hand.ckpt",
            init_fn=lambda sess: loaded.append(float(sess.run(w)[0, 0])),
        )
        print(sv.is_chief, os.path.basename(sv.save_path), sv.save_model_secs, sv.save_summaries_secs, sv.summary_op)
        print(sv.global_step.op.name, sv.ready_op is not None, sv.init_feed_dict, type(sv.session_manager).__name__)
        ticks = threading.Event()
        source = batches(seed)
        try:
            with sv.managed_session() as sess:
                print("starts at", sess.run(global_step), "initialized by a function", loaded)
                sv.loop(None, ticks.set)
                assert ticks.wait(60)
                while not sv.should_stop():
                    data, labels = next(source)
                    feed = {x: data, y: labels}
                    summary = sess.run(summary_op, feed)
                    sess.run(count, feed)
                    value, _ = sess.run([loss, train_op], feed)
                    step = sess.run(global_step)
                    print("step %d loss %.5f" % (step, value))
                    if step % 2 == 0:
                        sv.summary_computed(sess, summary)
                    elif step % 3 == 0:
                        sv.summary_writer.add_summary(summary, step)
                    if step % 4 == 0:
                        sv.saver.save(sess, sv.save_path, global_step=global_step)
                    if step == fails_at:
                        raise ValueError("at step %d" % step)
                    if step >= last_step:
                        sv.summary_computed(
                            sess,
                            tf.Summary(value=[tf.Summary.Value(tag="total", simple_value=sess.run(total))]),
                            global_step=step,
                        )
                        sv.request_stop()
        except ValueError as error:
            print("ValueError", error)
        print("stopped", sv.should_stop(), sv.coord.joined)
    print(os.path.basename(tf.train.latest_checkpoint(logdir)))


def refusals():
    with tf.Graph().as_default():
        tf.Variable(1.0, name="v")
        init = tf.global_variables_initializer()
        sv = tf.train.Supervisor(logdir=None, summary_writer=None)
        with tf.Session() as sess:
            sess.run(init)
            for call in (
                lambda: sv.start_standard_services(sess),
                lambda: sv.summary_computed(sess, b"", 1),
            ):
                try:
                    print("returned", type(call()).__name__)
                except (RuntimeError, ValueError, TypeError) as error:
                    print(type(error).__name__, str(error)[:60])


if __name__ == "__main__":
    directory = FLAGS.logdir or tempfile.mkdtemp()
    train(directory, 20, 0, fails_at=10)
    train(directory, 13, 1)
    refusals()
