"""A small residual network: batch normalization, its update ops, weight decay, a schedule, averaged weights."""

import numpy as np
import tensorflow as tf

training = tf.placeholder_with_default(False, [], name="training")
images = tf.placeholder(tf.float32, [None, 16, 16, 3])
labels = tf.placeholder(tf.int32, [None])
seeds = iter(range(100))


def norm_relu(x):
    return tf.nn.relu(tf.layers.batch_normalization(x, momentum=0.9, epsilon=1e-5, training=training, fused=True))


def conv(x, filters, size, stride):
    if stride > 1:
        x = tf.pad(x, [[0, 0], [(size - 1) // 2, size // 2], [(size - 1) // 2, size // 2], [0, 0]])
    start = tf.variance_scaling_initializer(seed=next(seeds))
    padding = "SAME" if stride == 1 else "VALID"
    return tf.layers.conv2d(x, filters, size, stride, padding, use_bias=False, kernel_initializer=start)


def block(x, filters, stride):
    shortcut, x = x, norm_relu(x)
    if stride > 1:
        shortcut = conv(x, filters, 1, stride)
    return conv(norm_relu(conv(x, filters, 3, stride)), filters, 3, 1) + shortcut


net = conv(images, 8, 3, 1)
for filters, stride in ((8, 1), (16, 2), (16, 1)):
    net = block(net, filters, stride)
net = tf.reduce_mean(norm_relu(net), [1, 2])
logits = tf.layers.dense(net, 5, kernel_initializer=tf.glorot_uniform_initializer(seed=99))
entropy = tf.losses.softmax_cross_entropy(tf.one_hot(labels, 5), logits, label_smoothing=0.1)
decay = tf.add_n([tf.nn.l2_loss(v) for v in tf.trainable_variables() if "batch_norm" not in v.name])

step = tf.train.get_or_create_global_step()
rate = tf.train.piecewise_constant(step, [4, 8], [0.1, 0.05, 0.01])
with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
    update = tf.train.MomentumOptimizer(rate, 0.9, use_nesterov=True).minimize(entropy + 2e-4 * decay, step)
averages = tf.train.ExponentialMovingAverage(0.9, step)
with tf.control_dependencies([update]):
    train = averages.apply(tf.trainable_variables())

rng = np.random.RandomState(0)
x, y = rng.randn(40, 16, 16, 3), rng.randint(0, 5, 40)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for i in range(10):
        part = slice(i % 5 * 8, i % 5 * 8 + 8)
        _, loss, count = sess.run([train, entropy, step], {images: x[part], labels: y[part], training: True})
        print("step %d loss %.4f rate %.2f" % (count, loss, sess.run(rate)))
    print("evaluated %.4f" % sess.run(entropy, {images: x, labels: y}))
    for variable in tf.global_variables():
        print(variable.name, variable.shape, "%.4f" % np.abs(sess.run(variable)).mean())
