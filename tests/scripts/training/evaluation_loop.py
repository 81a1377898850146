"""Training that keeps checkpoints with moving averages, and evaluation of each of them with metrics, FinalOpsHook and a SingularMonitoredSession."""

import os
import tempfile

import numpy as np
import tensorflow as tf

tf.app.flags.DEFINE_string("logdir", "", "Where checkpoints and events go.")
tf.app.flags.DEFINE_integer("steps", 20, "Steps of training.")
FLAGS = tf.app.flags.FLAGS


def data(seed, count):
    rng = np.random.RandomState(seed)
    x = rng.randn(count, 4).astype(np.float32)
    return x, (x[:, 0] + 0.5 * x[:, 1] ** 2 > 0.3).astype(np.int64)


def logits_of(x):
    with tf.variable_scope("net", initializer=tf.glorot_normal_initializer(seed=3)):
        hidden = tf.layers.dense(x, 10, tf.nn.elu, name="hidden")
        hidden = tf.layers.batch_normalization(hidden, training=False, name="norm")
        return tf.layers.dense(hidden, 2, name="out")


def train(logdir):
    with tf.Graph().as_default():
        x, y = data(0, 128)
        loss = tf.losses.sparse_softmax_cross_entropy(tf.constant(y), logits_of(tf.constant(x)))
        tf.summary.scalar("loss", loss)
        step = tf.train.get_or_create_global_step()
        rate = tf.train.exponential_decay(0.5, step, 5, 0.9, staircase=True)
        tf.summary.scalar("learning_rate", rate)
        apply_op = tf.train.GradientDescentOptimizer(rate).minimize(loss, step)
        average = tf.train.ExponentialMovingAverage(0.9, step)
        with tf.control_dependencies([apply_op]):
            train_op = average.apply(tf.trainable_variables())
        hooks = [tf.train.StopAtStepHook(last_step=FLAGS.steps)]
        with tf.train.MonitoredTrainingSession(
            checkpoint_dir=logdir,
            hooks=hooks,
            save_checkpoint_steps=8,
            save_checkpoint_secs=None,
            save_summaries_steps=5,
            log_step_count_steps=None,
        ) as session:
            while not session.should_stop():
                print("loss %.5f" % session.run([loss, train_op])[0])


def evaluate(path, directory):
    with tf.Graph().as_default():
        x, y = data(1, 60)
        images, labels = tf.train.slice_input_producer([x, y], num_epochs=1, shuffle=False)
        images, labels = tf.train.batch([images, labels], 16, allow_smaller_final_batch=True)
        logits = logits_of(images)
        predictions = tf.argmax(logits, 1)
        accuracy, accuracy_update = tf.metrics.accuracy(labels, predictions)
        auc, auc_update = tf.metrics.auc(labels, tf.nn.softmax(logits)[:, 1], num_thresholds=20)
        mean, mean_update = tf.metrics.mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        )
        tf.summary.scalar("accuracy", accuracy)
        tf.summary.scalar("auc", auc)
        step = tf.train.get_or_create_global_step()
        average = tf.train.ExponentialMovingAverage(0.9)
        saver = tf.train.Saver(average.variables_to_restore())
        final = tf.train.FinalOpsHook(
            {"accuracy": accuracy, "auc": auc, "loss": mean, "step": step, "summary": tf.summary.merge_all()}
        )
        scaffold = tf.train.Scaffold(saver=saver, summary_op=tf.no_op())
        batches = 0
        with tf.train.SingularMonitoredSession(
            hooks=[final], scaffold=scaffold, checkpoint_filename_with_path=path
        ) as session:
            print("raw session", type(session.raw_session()).__name__)
            while not session.should_stop():
                session.run([accuracy_update, auc_update, mean_update])
                batches += 1
        values = final.final_ops_values
        print(
            "step %d: %d batches, accuracy %.4f, auc %.4f, loss %.4f"
            % (values["step"], batches, values["accuracy"], values["auc"], values["loss"])
        )
        writer = tf.summary.FileWriterCache.get(directory)
        writer.add_summary(values["summary"], values["step"])
        own = tf.Summary()
        own.value.add(tag="batches", simple_value=batches)
        writer.add_summary(own, values["step"])
        writer.flush()


def main(_):
    logdir = FLAGS.logdir or tempfile.mkdtemp()
    train(os.path.join(logdir, "train"))
    for path in tf.train.get_checkpoint_state(os.path.join(logdir, "train")).all_model_checkpoint_paths:
        evaluate(path, os.path.join(logdir, "eval"))
    for path in tf.train.checkpoints_iterator(os.path.join(logdir, "train"), timeout=0):
        print("newest", os.path.basename(path))
    tf.summary.FileWriterCache.clear()


if __name__ == "__main__":
    tf.app.run()
