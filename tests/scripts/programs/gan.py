"""Two networks against each other: shared scopes, two optimizers over two lists of variables."""

import numpy as np
import tensorflow as tf

tf.set_random_seed(2)


def layer(x, size, name, seed):
    w = tf.get_variable(
        name + "/w", [int(x.shape[1]), size], initializer=tf.random_normal_initializer(0, 0.3, seed=seed)
    )
    b = tf.get_variable(name + "/b", [size], initializer=tf.zeros_initializer())
    return tf.matmul(x, w) + b


def generator(z):
    with tf.variable_scope("generator"):
        return layer(tf.nn.relu(layer(z, 16, "h", 1)), 2, "out", 2)


def discriminator(x, reuse=None):
    with tf.variable_scope("discriminator", reuse=reuse):
        return layer(tf.nn.leaky_relu(layer(x, 16, "h", 3)), 1, "out", 4)


z = tf.placeholder(tf.float32, [None, 4])
real = tf.placeholder(tf.float32, [None, 2])
fake = generator(z)
real_logits, fake_logits = discriminator(real), discriminator(fake, reuse=True)
xent = tf.nn.sigmoid_cross_entropy_with_logits
d_loss = tf.reduce_mean(xent(labels=tf.ones_like(real_logits), logits=real_logits)) + tf.reduce_mean(
    xent(labels=tf.zeros_like(fake_logits), logits=fake_logits)
)
g_loss = tf.reduce_mean(xent(labels=tf.ones_like(fake_logits), logits=fake_logits))
d_vars = [v for v in tf.trainable_variables() if v.name.startswith("discriminator")]
g_vars = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope="generator")
d_train = tf.train.AdamOptimizer(1e-2, beta1=0.5).minimize(d_loss, var_list=d_vars)
g_train = tf.train.RMSPropOptimizer(1e-2).minimize(g_loss, var_list=g_vars)

rng = np.random.RandomState(9)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for i in range(60):
        noise = rng.uniform(-1, 1, [32, 4]).astype(np.float32)
        points = (rng.randn(32, 2) * 0.1 + [1.0, -1.0]).astype(np.float32)
        _, d = sess.run([d_train, d_loss], {z: noise, real: points})
        _, g = sess.run([g_train, g_loss], {z: noise})
        if i % 20 == 19:
            print("step %d d %.4f g %.4f" % (i, d, g))
