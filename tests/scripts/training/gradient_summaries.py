"""Summaries of everything: gradients, activations, filters as images, sound, text, and records added by hand."""

import argparse
import os
import tempfile

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--logdir", default=None)
FLAGS = parser.parse_args()


def variable_summaries(var):
    """Attaches a lot of summaries to a tensor, as the tutorials do."""
    with tf.name_scope("summaries"):
        mean = tf.reduce_mean(var)
        tf.summary.scalar("mean", mean)
        with tf.name_scope("stddev"):
            stddev = tf.sqrt(tf.reduce_mean(tf.square(var - mean)))
        tf.summary.scalar("stddev", stddev)
        tf.summary.scalar("max", tf.reduce_max(var))
        tf.summary.scalar("min", tf.reduce_min(var))
        tf.summary.histogram("histogram", var)


def layer(x, size, name, act=tf.nn.relu):
    with tf.name_scope(name):
        with tf.name_scope("weights"):
            weights = tf.Variable(tf.truncated_normal([int(x.shape[1]), size], stddev=0.3, seed=5), name="w")
            variable_summaries(weights)
        with tf.name_scope("biases"):
            biases = tf.Variable(tf.constant(0.1, shape=[size]), name="b")
            variable_summaries(biases)
        pre = tf.nn.xw_plus_b(x, weights, biases, name="Wx_plus_b")
        tf.summary.histogram("pre_activations", pre)
        out = act(pre, name="activation")
        tf.summary.histogram("activations", out)
        tf.summary.scalar("sparsity", tf.nn.zero_fraction(out), family="sparse")
        return out


def main():
    logdir = FLAGS.logdir or tempfile.mkdtemp()
    rng = np.random.RandomState(2)
    x = tf.placeholder(tf.float32, [None, 36], name="x-input")
    y = tf.placeholder(tf.int64, [None], name="y-input")
    with tf.name_scope("input_reshape"):
        tf.summary.image("input", tf.reshape(x, [-1, 6, 6, 1]), 2)
    hidden = layer(x, 12, "layer1")
    with tf.name_scope("dropout"):
        keep = tf.placeholder(tf.float32, name="keep")
        tf.summary.scalar("dropout_keep_probability", keep)
        dropped = tf.nn.dropout(hidden, keep_prob=keep, seed=9)
    logits = layer(dropped, 3, "layer2", act=tf.identity)
    with tf.name_scope("cross_entropy"):
        entropy = tf.losses.sparse_softmax_cross_entropy(labels=y, logits=logits)
    tf.summary.scalar("cross_entropy", entropy)
    optimizer = tf.train.AdamOptimizer(0.01)
    grads = optimizer.compute_gradients(entropy)
    for grad, var in grads:
        tf.summary.histogram(var.op.name + "/gradients", grad)
        tf.summary.scalar(var.op.name + "/norm", tf.norm(grad))
    merged = tf.summary.merge_all()
    with tf.control_dependencies([merged]):  # summaries show the variables before the step
        train_op = optimizer.apply_gradients(grads)
    filters = tf.reshape(tf.transpose(tf.trainable_variables()[0]), [12, 6, 6, 1])
    rare = [
        tf.summary.image("filters", filters, max_outputs=1, collections=["rare"]),
        tf.summary.audio(
            "tone", tf.sin(tf.range(64, dtype=tf.float32) / 3)[None, :, None], 8000.0, collections=["rare"]
        ),
        tf.summary.text(
            "report", tf.as_string(tf.stack([entropy, tf.reduce_sum(entropy)]), precision=2), collections=["rare"]
        ),
        tf.summary.tensor_summary("raw", tf.cast(y, tf.int32)[:3], summary_description="labels", collections=["rare"]),
    ]
    rarely = tf.summary.merge(rare, name="rarely")
    print(
        [t.name for t in tf.get_collection("rare")],
        merged.name,
        rarely.name,
        len(tf.get_collection(tf.GraphKeys.SUMMARIES)),
    )
    with tf.Session() as sess:
        train_writer = tf.summary.FileWriter(os.path.join(logdir, "train"), sess.graph, max_queue=2, flush_secs=1)
        test_writer = tf.summary.FileWriter(os.path.join(logdir, "test"))
        sess.run(tf.global_variables_initializer())
        for i in range(12):
            images = rng.rand(20, 36).astype(np.float32)
            feed = {x: images, y: (images[:, :12].sum(1) // 3 % 3).astype(np.int64), keep: 0.8}
            if i % 5 == 4:
                feed[keep] = 1.0
                summary, value = sess.run([rarely, entropy], feed)
                test_writer.add_summary(summary, i)
                print("entropy at step %d: %.4f" % (i, value))
            elif i == 7:
                options, metadata = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), tf.RunMetadata()
                summary, _ = sess.run([merged, train_op], feed, options=options, run_metadata=metadata)
                train_writer.add_run_metadata(metadata, "step%03d" % i)
                train_writer.add_summary(summary, i)
                try:
                    train_writer.add_run_metadata(metadata, "step%03d" % i)
                except ValueError as error:
                    print("ValueError", error)
            else:
                summary, _, value = sess.run([merged, train_op, entropy], feed)
                print("%.4f" % value)
                train_writer.add_summary(summary, i)
        train_writer.add_session_log(tf.SessionLog(status=tf.SessionLog.CHECKPOINT, checkpoint_path="somewhere"), 12)
        train_writer.add_event(
            tf.Event(step=13, wall_time=1.0, summary=tf.Summary(value=[tf.Summary.Value(tag="own", simple_value=2.5)]))
        )
        train_writer.close()
        train_writer.reopen()
        train_writer.add_summary(tf.Summary(value=[tf.Summary.Value(tag="reopened", simple_value=0.125)]), 14)
        train_writer.close()
        test_writer.close()


if __name__ == "__main__":
    main()
