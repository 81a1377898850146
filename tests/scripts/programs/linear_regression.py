"""A line through points, with flags and tf.app.run."""

import numpy as np
import tensorflow as tf

flags = tf.app.flags
FLAGS = flags.FLAGS
flags.DEFINE_integer("steps", 40, "Number of steps.")
flags.DEFINE_float("learning_rate", 0.1, "Learning rate.")


def main(_):
    rng = np.random.RandomState(0)
    xs = rng.rand(50, 1).astype(np.float32)
    ys = 3.0 * xs + 2.0 + 0.1 * rng.randn(50, 1).astype(np.float32)

    tf.set_random_seed(1)
    x = tf.placeholder(tf.float32, [None, 1], name="x")
    y = tf.placeholder(tf.float32, [None, 1], name="y")
    w = tf.Variable(tf.random_normal([1, 1], seed=1), name="w")
    b = tf.Variable(tf.zeros([1]), name="b")
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w) + b - y))
    train = tf.train.GradientDescentOptimizer(FLAGS.learning_rate).minimize(loss)

    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for step in range(FLAGS.steps):
            _, value = sess.run([train, loss], feed_dict={x: xs, y: ys})
            if step % 10 == 0:
                print("step %d loss %.5f" % (step, value))
        print("w %.4f b %.4f" % (sess.run(w)[0, 0], sess.run(b)[0]))


if __name__ == "__main__":
    tf.app.run()
