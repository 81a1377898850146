"""Summaries that a program puts together itself, as code for reinforcement learning does: values, pictures, gradients by layer, run metadata."""

import argparse
import os
import tempfile

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--logdir", default=None)
FLAGS = parser.parse_args()


class Logger:
    def __init__(self, logdir):
        with tf.Graph().as_default():
            self.pixels = tf.placeholder(tf.uint8, [None, None, 3])
            self.png = tf.image.encode_png(self.pixels)
            self.session = tf.Session()
        self.writer = tf.summary.FileWriter(logdir, max_queue=2, flush_secs=60, filename_suffix=".agent")

    def scalar(self, tag, value, step):
        self.writer.add_summary(tf.Summary(value=[tf.Summary.Value(tag=tag, simple_value=value)]), step)

    def image(self, tag, images, step):
        values = []
        for i, image in enumerate(images):
            png = self.session.run(self.png, {self.pixels: image})
            picture = tf.Summary.Image(encoded_image_string=png, height=image.shape[0], width=image.shape[1])
            picture.colorspace = 3
            values.append(tf.Summary.Value(tag="%s/%d" % (tag, i), image=picture))
        self.writer.add_summary(tf.Summary(value=values), step)

    def histogram(self, tag, values, step, bins=10):
        counts, edges = np.histogram(values, bins=bins)
        hist = tf.HistogramProto()
        hist.min, hist.max = float(np.min(values)), float(np.max(values))
        hist.num, hist.sum = int(np.prod(values.shape)), float(np.sum(values))
        hist.sum_squares = float(np.sum(values**2))
        for edge in edges[1:]:
            hist.bucket_limit.append(edge)
        for count in counts:
            hist.bucket.append(count)
        self.writer.add_summary(tf.Summary(value=[tf.Summary.Value(tag=tag, histo=hist)]), step)


def policy(states):
    hidden = tf.layers.dense(
        states, 8, tf.nn.relu, name="hidden", kernel_initializer=tf.glorot_uniform_initializer(seed=1)
    )
    return tf.layers.dense(hidden, 3, name="logits", kernel_initializer=tf.glorot_uniform_initializer(seed=2))


def main():
    logdir = FLAGS.logdir or tempfile.mkdtemp()
    rng = np.random.RandomState(3)
    states = tf.placeholder(tf.float32, [None, 4], name="states")
    actions = tf.placeholder(tf.int32, [None], name="actions")
    returns = tf.placeholder(tf.float32, [None], name="returns")
    logits = policy(states)
    log_prob = -tf.nn.sparse_softmax_cross_entropy_with_logits(labels=actions, logits=logits)
    entropy = -tf.reduce_sum(tf.nn.softmax(logits) * tf.nn.log_softmax(logits), 1)
    loss = -tf.reduce_mean(log_prob * returns) - 0.01 * tf.reduce_mean(entropy)
    optimizer = tf.train.RMSPropOptimizer(0.01, decay=0.9, epsilon=1e-5)
    grads, norm = tf.clip_by_global_norm([grad for grad, _ in optimizer.compute_gradients(loss)], 0.5)
    variables = tf.trainable_variables()
    for grad, var in zip(grads, variables):
        with tf.name_scope(var.op.name.replace("/", "_")):
            tf.summary.scalar("norm", tf.norm(grad))
            tf.summary.histogram("gradient", grad)
            tf.summary.histogram("ratio", tf.abs(grad) / (tf.abs(var) + 1e-3), family="ratios")
    tf.summary.scalar("loss", loss, family="losses")
    tf.summary.scalar("norm", norm, collections=["other"])
    tf.summary.text("note", tf.as_string(tf.shape(states)))
    tf.summary.tensor_summary("policy", tf.nn.softmax(logits)[0], summary_description="the first state's")
    merged = tf.summary.merge_all()
    other = tf.summary.merge_all("other")
    print(tf.summary.merge_all("nothing"), len(tf.get_collection(tf.GraphKeys.SUMMARIES)))
    step = tf.train.get_or_create_global_step()
    with tf.control_dependencies([merged, other]):
        train_op = optimizer.apply_gradients(zip(grads, variables), step)
    logger = Logger(os.path.join(logdir, "agent"))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        logger.writer.add_graph(sess.graph)
        logger.writer.add_session_log(tf.SessionLog(status=tf.SessionLog.START), 0)
        for number in range(6):
            feed = {states: rng.randn(5, 4), actions: rng.randint(0, 3, 5), returns: rng.randn(5)}
            options, metadata = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), tf.RunMetadata()
            traced = number % 3 == 2
            kwargs = {"options": options, "run_metadata": metadata} if traced else {}
            summary, more, value, _ = sess.run([merged, other, loss, train_op], feed, **kwargs)
            print("%d %.5f" % (tf.train.global_step(sess, step), value))
            if traced:
                logger.writer.add_run_metadata(metadata, "step%03d" % number)
            logger.writer.add_summary(summary, number)
            logger.writer.add_summary(more, number)
            logger.scalar("episode/reward", float(feed[returns].sum()), number)
            if number % 2 == 0:
                logger.histogram("episode/returns", feed[returns], number)
                logger.image("screen", (rng.rand(2, 6, 5, 3) * 255).astype(np.uint8), number)
        try:
            logger.writer.add_run_metadata(metadata, "step002")
        except ValueError as error:
            print("ValueError", error)
    logger.writer.flush()
    logger.writer.close()
    logger.writer.reopen()
    logger.scalar("episode/reward", 1.5, 6)
    logger.writer.add_event(
        tf.Event(wall_time=1.0, step=7, summary=tf.Summary(value=[tf.Summary.Value(tag="own", simple_value=2.0)]))
    )
    logger.writer.close()
    print(os.path.basename(logger.writer.get_logdir()), len(os.listdir(os.path.join(logdir, "agent"))) in (1, 2))
    cached = tf.summary.FileWriterCache.get(logdir)
    print(cached is tf.summary.FileWriterCache.get(logdir))
    cached.add_summary(tf.Summary(value=[tf.Summary.Value(tag="cached", simple_value=3.0)]), 1)
    tf.summary.FileWriterCache.clear()
    print(cached is tf.summary.FileWriterCache.get(logdir))
    tf.summary.FileWriterCache.clear()


if __name__ == "__main__":
    main()
