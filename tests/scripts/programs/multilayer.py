"""A multilayer perceptron: scopes, regularization, decay, averages and a feedable dropout."""

import numpy as np
import tensorflow as tf


def dense(inputs, units, name, activation=None):
    with tf.variable_scope(name):
        kernel = tf.get_variable(
            "kernel",
            [inputs.get_shape()[1].value, units],
            initializer=tf.truncated_normal_initializer(stddev=0.1, seed=units),
        )
        bias = tf.get_variable("bias", [units], initializer=tf.constant_initializer(0.1))
        tf.add_to_collection("decay", tf.nn.l2_loss(kernel))
        output = tf.nn.xw_plus_b(inputs, kernel, bias)
        return activation(output) if activation is not None else output


rng = np.random.RandomState(5)
data = rng.randn(256, 6).astype(np.float32)
target = (np.sin(data[:, :1]) + data[:, 1:2] * data[:, 2:3]).astype(np.float32)

tf.set_random_seed(11)
x = tf.placeholder(tf.float32, [None, 6])
y = tf.placeholder(tf.float32, [None, 1])
keep = tf.placeholder_with_default(1.0, [])
hidden = dense(x, 32, "hidden1", tf.nn.relu)
hidden = tf.nn.dropout(hidden, keep, seed=4)
hidden = dense(hidden, 16, "hidden2", tf.tanh)
out = dense(hidden, 1, "out")
error = tf.reduce_mean(tf.squared_difference(out, y))
loss = error + 1e-3 * tf.add_n(tf.get_collection("decay"))

global_step = tf.Variable(0, trainable=False, name="global_step")
rate = tf.train.exponential_decay(0.01, global_step, 20, 0.8, staircase=True)
step = tf.train.AdamOptimizer(rate).minimize(loss, global_step=global_step)
average = tf.train.ExponentialMovingAverage(0.9, global_step)
with tf.control_dependencies([step]):
    train = average.apply(tf.trainable_variables())

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for i in range(60):
        sess.run(train, {x: data, y: target, keep: 0.9})
        if i % 15 == 14:
            print(
                "step %d loss %.4f rate %.5f" % (sess.run(global_step), *sess.run([loss, rate], {x: data, y: target}))
            )
    shadow = average.average(tf.trainable_variables()[0])
    print("average %.4f" % np.abs(sess.run(shadow)).mean())
    print([v.name for v in tf.trainable_variables()])
