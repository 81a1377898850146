"""A character model: stacked LSTM cells, dynamic_rnn, clipped gradients."""

import numpy as np
import tensorflow as tf

text = "hello world, this is a small text for a small network. " * 8
chars = sorted(set(text))
encoded = np.array([chars.index(c) for c in text], np.int32)
batch, length, size = 4, 16, len(chars)
count = (len(encoded) - 1) // (batch * length)
xs = encoded[: count * batch * length].reshape(batch, -1)
ys = encoded[1 : count * batch * length + 1].reshape(batch, -1)

tf.set_random_seed(7)
inputs = tf.placeholder(tf.int32, [batch, length])
targets = tf.placeholder(tf.int32, [batch, length])
init = tf.random_uniform_initializer(-0.2, 0.2, seed=1)
with tf.variable_scope("model", initializer=init):
    cell = tf.nn.rnn_cell.MultiRNNCell([tf.nn.rnn_cell.BasicLSTMCell(24) for _ in range(2)])
    state = cell.zero_state(batch, tf.float32)
    embedding = tf.get_variable("embedding", [size, 12])
    outputs, last = tf.nn.dynamic_rnn(cell, tf.nn.embedding_lookup(embedding, inputs), initial_state=state)
    w = tf.get_variable("w", [24, size])
    b = tf.get_variable("b", [size], initializer=tf.zeros_initializer())
logits = tf.nn.bias_add(tf.matmul(tf.reshape(outputs, [-1, 24]), w), b)
loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.reshape(targets, [-1]), logits=logits))
tvars = tf.trainable_variables()
grads, norm = tf.clip_by_global_norm(tf.gradients(loss, tvars), 1.0)
train = tf.train.AdamOptimizer(0.02).apply_gradients(zip(grads, tvars))

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for epoch in range(3):
        current = sess.run(state)
        for i in range(count):
            part = slice(i * length, (i + 1) * length)
            feed = {inputs: xs[:, part], targets: ys[:, part]}
            for (c, h), value in zip(state, current):
                feed[c], feed[h] = value
            value, current, _ = sess.run([loss, last, train], feed)
        print("epoch %d loss %.4f" % (epoch, value))
    print([v.name for v in tvars])
