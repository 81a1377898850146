"""A conditional random field: the forward and Viterbi recursions as scans, marginals as gradients."""

import numpy as np
import tensorflow as tf

BATCH, LENGTH, TAGS = 4, 7, 5
x = tf.placeholder(tf.float32, [BATCH, LENGTH, 8])
tags = tf.placeholder(tf.int32, [BATCH, LENGTH])
lengths = tf.placeholder(tf.int32, [BATCH])
unary = tf.layers.dense(x, TAGS, kernel_initializer=tf.random_normal_initializer(0, 0.2, seed=1), name="unary")
moves = tf.get_variable("moves", [TAGS, TAGS], initializer=tf.random_uniform_initializer(-0.1, 0.1, seed=2))
mask = tf.sequence_mask(lengths, LENGTH, tf.float32)
steps = tf.transpose(unary[:, 1:], [1, 0, 2])


def forward(alpha, given):
    scores, inside = given
    following = tf.reduce_logsumexp(tf.expand_dims(alpha, 2) + moves, 1) + scores
    return tf.where(inside > 0, following, alpha)


def viterbi(carried, scores):
    totals = tf.expand_dims(carried[0], 2) + moves
    return tf.reduce_max(totals, 1) + scores, tf.argmax(totals, 1, output_type=tf.int32)


alphas = tf.scan(forward, (steps, tf.transpose(mask[:, 1:])), initializer=unary[:, 0])
normalizer = tf.reduce_logsumexp(alphas[-1], 1)
score = tf.reduce_sum(tf.reduce_sum(unary * tf.one_hot(tags, TAGS), 2) * mask, 1)
score += tf.reduce_sum(tf.gather_nd(moves, tf.stack([tags[:, :-1], tags[:, 1:]], 2)) * mask[:, 1:], 1)
loss = tf.reduce_mean(normalizer - score)
marginals = tf.gradients(normalizer, unary)[0]
train = tf.train.AdamOptimizer(0.05).minimize(loss)

totals, pointers = tf.scan(viterbi, steps, initializer=(unary[:, 0], tf.zeros([BATCH, TAGS], tf.int32)))
last = tf.argmax(totals[-1], 1, output_type=tf.int32)
path = tf.scan(lambda tag, back: tf.batch_gather(back, tag[:, None])[:, 0], tf.reverse(pointers, [0]), last)
path = tf.transpose(tf.concat([tf.reverse(path, [0]), last[None]], 0))

rng = np.random.RandomState(3)
feed = {x: rng.randn(BATCH, LENGTH, 8), tags: rng.randint(0, TAGS, (BATCH, LENGTH)), lengths: [7, 5, 6, 3]}
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for i in range(20):
        value, _ = sess.run([loss, train], feed)
        if i % 4 == 0:
            print("step %d loss %.4f" % (i, value))
    print(sess.run(path, feed).tolist())
    print(np.round(sess.run(marginals, feed)[0], 3))
print(alphas.shape, pointers.shape, path.shape)
