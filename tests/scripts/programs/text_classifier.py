"""A convolutional network for texts, with a VocabularyProcessor."""

import os
import tempfile

import numpy as np
import tensorflow as tf
from tensorflow.contrib import learn

folder = tempfile.TemporaryDirectory()
os.chdir(folder.name)

texts = [
    "the movie was good fun",
    "bad bad film",
    "good film and great fun",
    "terrible movie, so bad!",
    "it's not that great",
]
y = np.eye(2)[[1, 0, 1, 0, 0]]
vocab_processor = learn.preprocessing.VocabularyProcessor(6)
x = np.array(list(vocab_processor.fit_transform(texts)))
print(x.tolist(), len(vocab_processor.vocabulary_))
vocab_processor.save("vocab")
again = learn.preprocessing.VocabularyProcessor.restore("vocab")
print(list(again.transform(["good unknown film"]))[0].tolist(), list(again.reverse([x[0]])))


class TextCNN(object):
    def __init__(self, length, classes, vocab, size, filters, n, l2=0.0):
        self.input_x = tf.placeholder(tf.int32, [None, length], name="input_x")
        self.input_y = tf.placeholder(tf.float32, [None, classes], name="input_y")
        self.keep = tf.placeholder(tf.float32, name="dropout_keep_prob")
        l2_loss = tf.constant(0.0)
        with tf.device("/cpu:0"), tf.name_scope("embedding"):
            self.W = tf.Variable(tf.random_uniform([vocab, size], -1.0, 1.0, seed=1), name="W")
            self.emb = tf.expand_dims(tf.nn.embedding_lookup(self.W, self.input_x), -1)
        pooled = []
        for i, f in enumerate(filters):
            with tf.name_scope("conv-maxpool-%s" % f):
                W = tf.Variable(tf.truncated_normal([f, size, 1, n], stddev=0.1, seed=i), name="W")
                b = tf.Variable(tf.constant(0.1, shape=[n]), name="b")
                conv = tf.nn.conv2d(self.emb, W, strides=[1, 1, 1, 1], padding="VALID", name="conv")
                h = tf.nn.relu(tf.nn.bias_add(conv, b), name="relu")
                pooled.append(
                    tf.nn.max_pool(
                        h, ksize=[1, length - f + 1, 1, 1], strides=[1, 1, 1, 1], padding="VALID", name="pool"
                    )
                )
        total = n * len(filters)
        flat = tf.reshape(tf.concat(pooled, 3), [-1, total])
        with tf.name_scope("dropout"):
            drop = tf.nn.dropout(flat, self.keep, seed=4)
        with tf.name_scope("output"):
            W = tf.get_variable("W", shape=[total, classes], initializer=tf.contrib.layers.xavier_initializer(seed=5))
            b = tf.Variable(tf.constant(0.1, shape=[classes]), name="b")
            l2_loss += tf.nn.l2_loss(W) + tf.nn.l2_loss(b)
            self.scores = tf.nn.xw_plus_b(drop, W, b, name="scores")
            self.predictions = tf.argmax(self.scores, 1, name="predictions")
        self.loss = (
            tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(logits=self.scores, labels=self.input_y))
            + l2 * l2_loss
        )
        self.accuracy = tf.reduce_mean(
            tf.cast(tf.equal(self.predictions, tf.argmax(self.input_y, 1)), "float"), name="accuracy"
        )


cnn = TextCNN(x.shape[1], 2, len(vocab_processor.vocabulary_), 5, [2, 3], 4, 0.01)
global_step = tf.Variable(0, name="global_step", trainable=False)
opt = tf.train.AdamOptimizer(1e-2)
gv = opt.compute_gradients(cnn.loss)
train_op = opt.apply_gradients(gv, global_step=global_step)
summ = tf.summary.merge(
    [tf.summary.histogram("{}/grad/hist".format(v.name), g) for g, v in gv if g is not None]
    + [tf.summary.scalar("{}/grad/sparsity".format(v.name), tf.nn.zero_fraction(g)) for g, v in gv]
)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for i in range(8):
        _, step, l, a, s = sess.run(
            [train_op, global_step, cnn.loss, cnn.accuracy, summ], {cnn.input_x: x, cnn.input_y: y, cnn.keep: 0.8}
        )
        print(step, "%.4f" % l, a)
    print([v.tag for v in tf.Summary.FromString(s).value][:3])
