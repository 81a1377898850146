"""One model on three parts of a batch: towers that share variables, averaged gradients, a step fetched beside its update."""

import numpy as np
import tensorflow as tf


def variable(name, shape, seed=None, decay=None):
    start = tf.zeros_initializer() if seed is None else tf.truncated_normal_initializer(stddev=0.3, seed=seed)
    with tf.device("/cpu:0"):
        made = tf.get_variable(name, shape, initializer=start)
    if decay:
        tf.add_to_collection("losses", tf.multiply(tf.nn.l2_loss(made), decay, name="weight_loss"))
    return made


def tower(scope, x, y):
    for layer, units in (("hidden", 16), ("output", 3)):
        with tf.variable_scope(layer) as inner:
            weights = variable("weights", [x.shape[1].value, units], seed=units, decay=0.01)
            x = tf.nn.xw_plus_b(x, weights, variable("biases", [units]), name=inner.name)
            x = tf.tanh(x) if layer == "hidden" else x
    entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=x)
    tf.add_to_collection("losses", tf.reduce_mean(entropy, name="entropy"))
    losses = tf.get_collection("losses", scope)
    print(scope, [loss.op.name for loss in losses])
    return tf.add_n(losses, name="total")


with tf.Graph().as_default(), tf.device("/cpu:0"):
    step = tf.get_variable("global_step", [], initializer=tf.constant_initializer(0), trainable=False)
    optimizer = tf.train.GradientDescentOptimizer(tf.train.exponential_decay(0.2, step, 5, 0.5, staircase=True))
    features, labels = tf.placeholder(tf.float32, [None, 8]), tf.placeholder(tf.int64, [None])
    all_grads = []
    with tf.variable_scope(tf.get_variable_scope()):
        for i, (x, y) in enumerate(zip(tf.split(features, 3), tf.split(labels, 3))):
            with tf.name_scope("tower_%d" % i) as scope:
                x.set_shape([None, 8])
                loss = tower(scope, x, y)
                tf.get_variable_scope().reuse_variables()
                all_grads.append(optimizer.compute_gradients(loss))
    averaged = [(tf.reduce_mean(tf.stack([g for g, _ in pairs]), 0), pairs[0][1]) for pairs in zip(*all_grads)]
    apply = optimizer.apply_gradients(averaged, global_step=step)
    averages = tf.train.ExponentialMovingAverage(0.99, step)
    with tf.control_dependencies([apply]):
        train = averages.apply(tf.trainable_variables())
    print([g.name for g, _ in all_grads[1]])
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:
        sess.run(tf.global_variables_initializer())
        rng = np.random.RandomState(0)
        for _ in range(12):
            x = rng.randn(24, 8)
            count, value, _ = sess.run(
                [step, loss, train], {features: x, labels: (x[:, 0] > 0).astype(int) + (x[:, 1] > 0)}
            )
            print("step %d loss %.4f" % (count, value))
        for name, shadow in sorted(averages.variables_to_restore().items()):
            print(name, shadow.device, "%.4f" % np.abs(sess.run(shadow)).mean())
