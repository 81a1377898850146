"""Softmax regression on synthetic digits, with mini batches, accuracy and an interactive session."""

import numpy as np
import tensorflow as tf

rng = np.random.RandomState(3)
prototypes = rng.rand(10, 64).astype(np.float32)
labels = rng.randint(0, 10, size=600)
images = (prototypes[labels] + 0.3 * rng.randn(600, 64)).astype(np.float32)
one_hot = np.eye(10, dtype=np.float32)[labels]

sess = tf.InteractiveSession()
x = tf.placeholder(tf.float32, shape=[None, 64])
y_ = tf.placeholder(tf.float32, shape=[None, 10])
W = tf.Variable(tf.zeros([64, 10]))
b = tf.Variable(tf.zeros([10]))
y = tf.matmul(x, W) + b
cross_entropy = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=y_, logits=y))
train_step = tf.train.GradientDescentOptimizer(0.5).minimize(cross_entropy)
correct = tf.equal(tf.argmax(y, 1), tf.argmax(y_, 1))
accuracy = tf.reduce_mean(tf.cast(correct, tf.float32))
tf.initialize_all_variables().run()

for epoch in range(3):
    for start in range(0, 500, 100):
        batch = slice(start, start + 100)
        train_step.run(feed_dict={x: images[batch], y_: one_hot[batch]})
    print(
        "epoch %d loss %.4f accuracy %.3f"
        % (
            epoch,
            cross_entropy.eval(feed_dict={x: images[500:], y_: one_hot[500:]}),
            accuracy.eval(feed_dict={x: images[500:], y_: one_hot[500:]}),
        )
    )
