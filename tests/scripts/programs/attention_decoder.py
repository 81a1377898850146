"""Reversing sequences: a bidirectional encoder, and a decoder with attention written as a while_loop."""

import numpy as np
import tensorflow as tf

BATCH, LENGTH, WORDS, UNITS = 8, 6, 12, 16
source = tf.placeholder(tf.int32, [None, None])
lengths = tf.placeholder(tf.int32, [None])
target = tf.placeholder(tf.int32, [None, None])

with tf.variable_scope("encoder", initializer=tf.glorot_uniform_initializer(seed=1)):
    words = tf.get_variable("words", [WORDS, UNITS])
    outputs, states = tf.nn.bidirectional_dynamic_rnn(
        tf.nn.rnn_cell.GRUCell(UNITS), tf.nn.rnn_cell.GRUCell(UNITS), tf.nn.embedding_lookup(words, source), lengths, dtype=tf.float32
    )  # fmt: skip
    memory = tf.concat(outputs, 2)
    start = tf.layers.dense(tf.concat(states, 1), UNITS, tf.tanh, name="bridge")

with tf.variable_scope("decoder", initializer=tf.glorot_uniform_initializer(seed=2), reuse=tf.AUTO_REUSE):
    cell = tf.nn.rnn_cell.GRUCell(UNITS)
    keys = tf.layers.dense(memory, UNITS, use_bias=False, name="keys")
    score = tf.get_variable("score", [UNITS])
    mask = tf.sequence_mask(lengths, tf.shape(source)[1], tf.float32)
    count = tf.shape(target)[1]
    shifted = tf.concat([tf.zeros_like(target[:, :1]), target[:, :-1]], 1)
    inputs = tf.TensorArray(tf.float32, count).unstack(tf.transpose(tf.nn.embedding_lookup(words, shifted), [1, 0, 2]))

    def attend(state):
        query = tf.layers.dense(state, UNITS, use_bias=False, name="query")
        energy = tf.reduce_sum(score * tf.tanh(keys + tf.expand_dims(query, 1)), 2)
        weights = tf.nn.softmax(energy - 1e9 * (1 - mask))
        return tf.reduce_sum(memory * tf.expand_dims(weights, 2), 1), weights

    def step(time, state, outputs, attention):
        context, weights = attend(state)
        output, state = cell(tf.concat([inputs.read(time), context], 1), state)
        logits = tf.layers.dense(output, WORDS, name="logits")
        return time + 1, state, outputs.write(time, logits), attention.write(time, weights)

    step(0, start, tf.TensorArray(tf.float32, count), tf.TensorArray(tf.float32, count))  # makes the variables
    loop = (0, start, tf.TensorArray(tf.float32, count), tf.TensorArray(tf.float32, count))
    _, _, outputs, attention = tf.while_loop(lambda time, *_: time < count, step, loop)

logits = tf.transpose(outputs.stack(), [1, 0, 2])
loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=target, logits=logits))
variables = tf.trainable_variables()
grads, norm = tf.clip_by_global_norm(tf.gradients(loss, variables), 1.0)
train = tf.train.AdamOptimizer(0.02).apply_gradients(zip(grads, variables))
print(logits.shape, [v.name for v in variables])

rng = np.random.RandomState(0)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for i in range(24):
        sizes = rng.randint(3, LENGTH + 1, BATCH)
        x = np.where(np.arange(LENGTH) < sizes[:, None], rng.randint(2, WORDS, (BATCH, LENGTH)), 1)
        feed = {source: x, lengths: sizes, target: x[:, ::-1]}
        value, size, _ = sess.run([loss, norm, train], feed)
        if i % 4 == 3:
            print("step %d loss %.4f norm %.4f" % (i, value, size))
    print(np.round(sess.run(attention.stack(), feed)[0, 0], 3))
