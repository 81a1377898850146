"""A model that starts from parts of another one's checkpoint: init_from_checkpoint with scopes, warm_start with vocabularies."""

import argparse
import os
import tempfile

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--logdir", default=None)
FLAGS = parser.parse_args()


def network(ids, targets, words, prefix="encoder"):
    with tf.variable_scope(prefix):
        table = tf.get_variable("table", [words, 3], initializer=tf.random_uniform_initializer(-1, 1, seed=4))
        x = tf.reduce_mean(tf.nn.embedding_lookup(table, ids), axis=1)
        w = tf.get_variable("w", [3, 2], initializer=tf.random_normal_initializer(seed=6))
    with tf.variable_scope("head"):
        out = tf.get_variable("out", [2, 1], initializer=tf.ones_initializer())
    return tf.losses.mean_squared_error(targets, tf.matmul(tf.tanh(tf.matmul(x, w)), out))


def train(loss, steps, **session):
    step = tf.train.get_or_create_global_step()
    train_op = tf.train.AdadeltaOptimizer(5.0, 0.9).minimize(loss, step)
    with tf.train.MonitoredTrainingSession(hooks=[tf.train.StopAtStepHook(last_step=steps)], **session) as sess:
        losses = []
        while not sess.should_stop():
            losses.append(sess.run([loss, train_op])[0])
    return " ".join("%.5f" % value for value in losses)


def main():
    logdir = FLAGS.logdir or tempfile.mkdtemp()
    rng = np.random.RandomState(3)
    ids, targets = rng.randint(0, 5, [16, 4]), rng.rand(16, 1).astype(np.float32)
    old_words, new_words = os.path.join(logdir, "old.txt"), os.path.join(logdir, "new.txt")
    with open(old_words, "w") as file:
        file.write("a\nb\nc\nd\ne\n")
    with open(new_words, "w") as file:
        file.write("c\nx\na\nb\ne\nd\n")
    first = os.path.join(logdir, "first")
    with tf.Graph().as_default():
        loss = network(tf.constant(ids), targets, 5)
        print("first", train(loss, 5, checkpoint_dir=first, save_summaries_steps=None, save_summaries_secs=None))
    with tf.Graph().as_default():
        loss = network(tf.constant(ids), targets, 5, prefix="copied")
        tf.train.init_from_checkpoint(first, {"encoder/": "copied/", "head/out": "head/out"})
        print("scopes", train(loss, 3))
    with tf.Graph().as_default():
        loss = network(tf.constant(ids), targets, 5, prefix="copied")
        head = [v for v in tf.global_variables() if v.op.name.startswith("head")]
        tf.train.init_from_checkpoint(tf.train.latest_checkpoint(first), {"encoder/w": "copied/w", "head/out": head[0]})
        print("names", train(loss, 3))
    with tf.Graph().as_default():
        loss = network(tf.constant(ids), targets, 6)
        info = tf.train.VocabInfo(
            new_vocab=new_words,
            new_vocab_size=6,
            num_oov_buckets=0,
            old_vocab=old_words,
            old_vocab_size=5,
            backup_initializer=tf.random_uniform_initializer(-1.0, 1.0, seed=12),
        )
        tf.train.warm_start(first, vars_to_warm_start=".*(table|out).*", var_name_to_vocab_info={"encoder/table": info})
        table = tf.global_variables()[0]
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            old = tf.train.load_variable(first, "encoder/table")
            fresh = sess.run(table)
            print(
                "rows",
                [
                    int(np.argmin(np.abs(old - row).sum(1))) if np.abs(old - row).sum(1).min() < 1e-6 else "new"
                    for row in fresh
                ],
                "%.4f" % fresh[1].sum(),
            )
        print("vocabulary", train(loss, 3))
    with tf.Graph().as_default():
        loss = network(tf.constant(ids), targets, 5, prefix="renamed")
        tf.train.warm_start(
            first,
            vars_to_warm_start=["renamed/w", "renamed/table"],
            var_name_to_prev_var_name={"renamed/w": "encoder/w", "renamed/table": "encoder/table"},
        )
        print("renamed", train(loss, 3))
    with tf.Graph().as_default():
        network(tf.constant(ids), targets, 7)
        for arguments in [{"encoder/": "nowhere/"}, {"absent": "encoder/w"}, {"encoder/table": "encoder/table"}]:
            try:
                tf.train.init_from_checkpoint(first, arguments)
            except ValueError as error:
                print("ValueError", str(error).split(first)[0][:80].rstrip())


if __name__ == "__main__":
    main()
