"""Small networks, written against `tf` of 1.x: built by TensorFlow to record their results, by the tests to compare.

Each takes the module and a source of weights, and returns the tensor to compare. Weights are constants, so that no
initializer is involved.
"""

import numpy as np


class Weights:
    """Reproducible constants, remembered so that gradients can be taken with respect to them."""

    def __init__(self, tf, seed):
        self.tf, self.random, self.made = tf, np.random.RandomState(seed), []

    def __call__(self, *shape, scale=0.5):
        value = (self.random.randn(*shape) * scale).astype(np.float32)
        self.made.append(self.tf.constant(value))
        return self.made[-1]


def mlp(tf, w):
    h = tf.nn.relu(tf.nn.xw_plus_b(w(6, 5), w(5, 7), w(7)))
    h = tf.nn.relu_layer(h, w(7, 6), w(6))
    logits = tf.matmul(h, w(6, 4))
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[0, 1, 2, 3, 2, 1], logits=logits)


def lenet(tf, w):
    x = w(2, 9, 8, 2)
    h = tf.nn.max_pool(
        tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, w(3, 3, 2, 4), [1, 1, 1, 1], "SAME"), w(4))), 2, 2, "SAME"
    )
    h = tf.nn.max_pool(tf.nn.relu(tf.nn.conv2d(h, w(2, 2, 4, 5), [1, 1, 1, 1], "VALID")), 3, 2, "SAME")
    logits = tf.matmul(tf.reshape(h, [2, -1]), w(20, 3))
    return tf.nn.softmax_cross_entropy_with_logits_v2(labels=tf.nn.softmax(w(2, 3)), logits=logits)


def strided_with_batch_norm(tf, w):
    h = tf.nn.conv2d(w(3, 7, 7, 2), w(3, 3, 2, 4), [1, 2, 2, 1], "SAME")
    h, mean, variance = tf.nn.fused_batch_norm(h, w(4), w(4), epsilon=0.01)
    h = tf.nn.avg_pool(tf.nn.elu(h), 3, 2, "SAME")
    return tf.reduce_sum(tf.square(h)) + tf.reduce_sum(mean) * 0.0 + tf.reduce_sum(variance) * 0.0


def separable(tf, w):
    x = w(2, 6, 6, 3)
    h = tf.nn.relu6(tf.nn.depthwise_conv2d(x, w(3, 3, 3, 2, scale=2.0), [1, 2, 2, 1], "SAME"))
    h = tf.nn.separable_conv2d(h, w(2, 2, 6, 1), w(1, 1, 6, 4), [1, 1, 1, 1], "SAME")
    return tf.reduce_mean(tf.nn.softsign(h), [1, 2])


def dilated(tf, w):
    h = tf.nn.atrous_conv2d(w(1, 9, 9, 2), w(3, 3, 2, 3), 2, "SAME")
    h = tf.nn.convolution(tf.nn.selu(h), w(2, 2, 3, 2), "VALID", dilation_rate=[3, 2])
    return tf.nn.softplus(h)


def autoencoder(tf, w):
    x = w(2, 6, 6, 1)
    h = tf.nn.leaky_relu(tf.nn.conv2d(x, w(3, 3, 1, 3), [1, 2, 2, 1], "SAME"), 0.1)
    y = tf.nn.conv2d_transpose(h, w(4, 4, 1, 3), [2, 6, 6, 1], [1, 2, 2, 1], "SAME")
    return tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.sigmoid(x), logits=y)


def sequence(tf, w):
    h = tf.nn.crelu(tf.nn.conv1d(w(2, 9, 3), w(4, 3, 4), 2, "SAME"))
    h = tf.nn.pool(h, [3], "MAX", "SAME", strides=[2])
    h = tf.nn.conv1d_transpose(h, w(3, 2, 8), [2, 6, 2], 2)
    return tf.nn.log_softmax(tf.nn.avg_pool1d(h, 2, 1, "VALID"), axis=1)


def volume(tf, w):
    h = tf.nn.conv3d(w(1, 5, 4, 6, 2), w(2, 3, 3, 2, 3), [1, 1, 1, 2, 1], "SAME")
    h = tf.nn.avg_pool3d(tf.nn.max_pool3d(tf.nn.swish(h), 2, 1, "SAME"), 2, 2, "SAME")
    h = tf.nn.conv3d_transpose(h, w(2, 2, 2, 2, 3), [1, 5, 4, 3, 2], [1, 2, 2, 2, 1])
    return tf.nn.l2_normalize(h, axis=-1)


def normalized(tf, w):
    h = tf.nn.lrn(w(2, 4, 4, 5, scale=2.0), depth_radius=2, bias=1.5, alpha=0.3, beta=0.75)
    mean, variance = tf.nn.moments(h, [0, 1, 2])
    h = tf.nn.batch_normalization(h, mean, variance, w(5), w(5), 0.01)
    h, _ = tf.nn.max_pool_with_argmax(h, [1, 2, 2, 1], [1, 1, 1, 1], "SAME")
    return tf.nn.weighted_cross_entropy_with_logits(labels=tf.sigmoid(w(2, 4, 4, 5)), logits=h, pos_weight=2.5)


def morphology(tf, w):
    h = tf.nn.dilation2d(w(1, 6, 7, 2), w(3, 2, 2), [1, 2, 1, 1], [1, 1, 2, 1], "SAME")
    h = tf.nn.erosion2d(h, w(2, 2, 2), [1, 1, 1, 1], [1, 1, 1, 1], "VALID")
    return tf.nn.log_poisson_loss(tf.square(w(1, 2, 6, 2)), h, compute_full_loss=False) + tf.nn.l2_loss(h)


NETWORKS = [
    mlp,
    lenet,
    strided_with_batch_norm,
    separable,
    dilated,
    autoencoder,
    sequence,
    volume,
    normalized,
    morphology,
]


def results(tf, network, seed):
    """{name: array}: the network's output and the gradient of a weighted sum of it for each of its constants."""
    with tf.Graph().as_default(), tf.Session() as session:
        w = Weights(tf, seed)
        y = network(tf, w)
        shape = y.shape.as_list()
        factors = np.linspace(0.5, 1.5, int(np.prod(shape))).reshape(shape).astype(np.float32)
        gradients = tf.gradients(tf.reduce_sum(y * factors), w.made)
        values = session.run([y, *gradients])
        return {f"{network.__name__}/{i}": value for i, value in enumerate(values)}
