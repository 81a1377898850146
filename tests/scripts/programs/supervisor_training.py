"""Training under a Supervisor, stopped and resumed, with summaries computed by hand."""

import glob
import os
import shutil
import tempfile

import numpy as np
import tensorflow as tf


def build():
    x = tf.placeholder(tf.float32, [None, 4], name="x")
    y = tf.placeholder(tf.float32, [None, 1], name="y")
    w = tf.get_variable("w", [4, 1], initializer=tf.constant_initializer(0.1))
    b = tf.get_variable("b", [1], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w) + b - y), name="loss")
    global_step = tf.Variable(0, name="global_step", trainable=False)
    train_op = tf.train.MomentumOptimizer(0.05, 0.9).minimize(loss, global_step=global_step)
    tf.summary.scalar("loss", loss)
    return x, y, loss, train_op, global_step


def train(logdir, steps):
    rng = np.random.RandomState(3)
    with tf.Graph().as_default():
        x, y, loss, train_op, global_step = build()
        summary_op = tf.summary.merge_all()
        sv = tf.train.Supervisor(logdir=logdir, summary_op=None, save_model_secs=0, save_summaries_secs=0)
        with sv.managed_session() as sess:
            first = sess.run(global_step)
            print("starting at", first)
            while not sv.should_stop():
                xs = rng.rand(16, 4).astype(np.float32)
                ys = xs.sum(1, keepdims=True)
                _, value, step = sess.run([train_op, loss, global_step], {x: xs, y: ys})
                if step % 5 == 0:
                    print("step %d loss %.5f" % (step, value))
                    sv.summary_computed(sess, sess.run(summary_op, {x: xs, y: ys}))
                if step - first >= steps:
                    sv.request_stop()
            sv.saver.save(sess, sv.save_path, global_step=sv.global_step)
        print("stopped:", sv.should_stop())


def main():
    logdir = tempfile.mkdtemp()
    train(logdir, 10)
    train(logdir, 10)
    print(sorted(name for name in os.listdir(logdir) if not name.startswith("events")))
    for path in sorted(glob.glob(os.path.join(logdir, "events*")))[-1:]:
        for event in tf.train.summary_iterator(path):
            kind = event.WhichOneof("what")
            if kind == "summary":
                print(event.step, event.summary.value[0].tag, "%.5f" % event.summary.value[0].simple_value)
            elif kind == "session_log":
                print(event.step, "session log", event.session_log.status)
            else:
                print(event.step, kind)
    shutil.rmtree(logdir)


if __name__ == "__main__":
    main()
