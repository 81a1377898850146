"""The summaries of 2.x in a graph: writers as resources, steps given and implied, recording that depends on a condition."""

import argparse
import os
import tempfile

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--logdir", default=None)
FLAGS = parser.parse_args()
summary = tf.compat.v2.summary


def main():
    logdir = FLAGS.logdir or tempfile.mkdtemp()
    rng = np.random.RandomState(6)
    step = tf.train.get_or_create_global_step()
    x = tf.placeholder(tf.float32, [None, 4], name="x")
    w = tf.get_variable("w", initializer=tf.constant(rng.randn(4, 2).astype(np.float32)))
    loss = tf.nn.l2_loss(tf.matmul(x, w), name="loss")
    with tf.control_dependencies([tf.train.GradientDescentOptimizer(0.02).minimize(loss)]):
        train_op = tf.assign_add(step, 1)
    writer = summary.create_file_writer(
        os.path.join(logdir, "v2"), max_queue=3, flush_millis=1000, filename_suffix=".two"
    )
    with writer.as_default(), tf.name_scope("outer"):
        print("scalar", summary.scalar("loss", loss, step=step, description="of a batch").dtype.name)
        summary.histogram("weights", w, step=step, buckets=5)
        summary.image("pictures", tf.reshape(tf.clip_by_value(x, 0.0, 1.0), [-1, 2, 2, 1]), step=step, max_outputs=2)
        summary.audio("sound", tf.sin(tf.range(20, dtype=tf.float32))[None, :, None], 100, step=step, max_outputs=1)
        summary.text("words", tf.as_string(tf.cast(w[0], tf.int32)), step=step)
        with summary.record_if(tf.equal(step % 2, 1)):
            written = summary.scalar("odd", tf.reduce_max(w), step=step)
            summary.write("raw/values", w[:, 0], step=step)
        try:
            summary.scalar("nowhen", 1.0)
        except ValueError as error:
            print("ValueError", str(error)[:11])
    ops = tf.summary.all_v2_summary_ops()
    print("ops", len(ops))
    other = summary.create_file_writer(os.path.join(logdir, "other"))
    with other.as_default(), summary.record_if(False):
        never = summary.scalar("never", 1.0, step=0)
    noop = summary.create_noop_writer()
    with noop.as_default():
        print("noop", len(tf.summary.all_v2_summary_ops()), summary.scalar("nothing", 1.0, step=0).dtype.name)
    flush, close = writer.flush(), writer.close()
    with tf.Session() as sess:
        sess.run([writer.init(), other.init()])
        sess.run(tf.global_variables_initializer())
        print("never", sess.run(never))
        for _ in range(4):
            feed = {x: rng.rand(3, 4)}
            values = sess.run([written] + ops, feed)
            print(bool(values[0]), [bool(v) for v in values[1:]])
            value, _ = sess.run([loss, train_op], feed)
            print("%.5f" % value)
        sess.run(flush)
        sess.run(close)
        sess.run(other.close())


if __name__ == "__main__":
    main()
