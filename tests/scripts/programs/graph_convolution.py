"""A graph convolutional network on sparse features, with dropout of sparse values."""

import numpy as np
import tensorflow as tf

flags = tf.app.flags
flags.DEFINE_float("learning_rate", 0.05, "of Adam")
flags.DEFINE_integer("hidden", 8, "units of the first layer")
flags.DEFINE_float("dropout", 0.5, "share of values to drop")
FLAGS = flags.FLAGS
NODES, FEATURES, CLASSES = 20, 12, 3


def sparse(matrix):
    places = np.argwhere(matrix)
    return places, matrix[tuple(places.T)], np.array(matrix.shape)


def sparse_dropout(x, keep, count):
    kept = tf.cast(tf.floor(keep + tf.random_uniform(count, seed=4)), tf.bool)
    return tf.sparse_retain(x, kept) * (1.0 / keep)


def weights(rows, columns, seed):
    limit = np.sqrt(6.0 / (rows + columns))
    return tf.Variable(tf.random_uniform([rows, columns], -limit, limit, seed=seed), name="weights")


def main(_):
    tf.set_random_seed(123)
    adjacency = tf.sparse_placeholder(tf.float32)
    features = tf.sparse_placeholder(tf.float32, shape=tf.constant([NODES, FEATURES], tf.int64))
    labels, mask = tf.placeholder(tf.float32, [None, CLASSES]), tf.placeholder(tf.float32)
    rate, count = tf.placeholder_with_default(0.0, []), tf.placeholder(tf.int32, [1])
    with tf.variable_scope("first"):
        first = weights(FEATURES, FLAGS.hidden, 1)
        x = tf.sparse_tensor_dense_matmul(sparse_dropout(features, 1 - rate, count), first)
        x = tf.nn.relu(tf.sparse_tensor_dense_matmul(adjacency, x))
    with tf.variable_scope("second"):
        x = tf.matmul(tf.nn.dropout(x, 1 - rate, seed=6), weights(FLAGS.hidden, CLASSES, 2))
        logits = tf.sparse_tensor_dense_matmul(adjacency, x)
    entropy = tf.nn.softmax_cross_entropy_with_logits(logits=logits, labels=labels)
    loss = tf.reduce_mean(entropy * mask / tf.reduce_mean(mask)) + 5e-4 * tf.nn.l2_loss(first)
    train = tf.train.AdamOptimizer(FLAGS.learning_rate).minimize(loss)

    rng = np.random.RandomState(1)
    edges = (rng.rand(NODES, NODES) < 0.2) | np.eye(NODES, dtype=bool)
    edges = (edges | edges.T) * 1.0
    edges /= np.sqrt(edges.sum(0) * edges.sum(1)[:, None])
    given = sparse((rng.rand(NODES, FEATURES) < 0.4) * 1.0)
    feed = {adjacency: sparse(edges), features: given, count: given[1].shape}
    feed.update({labels: np.eye(CLASSES)[rng.randint(0, CLASSES, NODES)], mask: rng.rand(NODES) < 0.5})
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for epoch in range(12):
            trained, _ = sess.run([loss, train], {**feed, rate: FLAGS.dropout})
            print("epoch %d train %.4f plain %.4f" % (epoch, trained, sess.run(loss, feed)))
    print(logits.name, [v.name for v in tf.trainable_variables()])


if __name__ == "__main__":
    tf.app.run()
