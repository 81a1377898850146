"""Learning to learn sine waves: gradients inside of map_fn, differentiated again."""

import numpy as np
import tensorflow as tf

INNER_RATE, UPDATES, SHOTS = 0.05, 2, 10

weights = {
    "w1": tf.Variable(tf.truncated_normal([1, 12], stddev=0.5, seed=1), name="w1"),
    "b1": tf.Variable(tf.zeros([12]), name="b1"),
    "w2": tf.Variable(tf.truncated_normal([12, 1], stddev=0.5, seed=2), name="w2"),
    "b2": tf.Variable(tf.zeros([1]), name="b2"),
}


def forward(x, w):
    return tf.matmul(tf.nn.tanh(tf.matmul(x, w["w1"]) + w["b1"]), w["w2"]) + w["b2"]


def error(x, y, w):
    return tf.reduce_mean(tf.square(forward(x, w) - y))


def task(shots):
    x, y, test_x, test_y = shots
    fast, before = weights, error(x, y, weights)
    for _ in range(UPDATES):
        grads = dict(zip(fast, tf.gradients(error(x, y, fast), list(fast.values()))))
        fast = {key: fast[key] - INNER_RATE * grads[key] for key in fast}
    return before, error(test_x, test_y, fast)


batch = [tf.placeholder(tf.float32, [None, SHOTS, 1]) for _ in range(4)]
before, after = tf.map_fn(task, tuple(batch), dtype=(tf.float32, tf.float32))
loss = tf.reduce_mean(after)
optimizer = tf.train.AdamOptimizer(0.01)
train = optimizer.apply_gradients([(tf.clip_by_value(g, -10, 10), v) for g, v in optimizer.compute_gradients(loss)])

rng = np.random.RandomState(0)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for step in range(10):
        x = rng.uniform(-5, 5, (4, 2 * SHOTS, 1))
        y = rng.uniform(0.1, 5, (4, 1, 1)) * np.sin(x + rng.uniform(0, 3, (4, 1, 1)))
        values = [x[:, :SHOTS], y[:, :SHOTS], x[:, SHOTS:], y[:, SHOTS:]]
        first, last, _ = sess.run([tf.reduce_mean(before), loss, train], dict(zip(batch, values)))
        print("step %d before %.4f after %.4f" % (step, first, last))
