"""A tagger with a bidirectional LSTM and a conditional random field."""

import numpy as np
import tensorflow as tf
from tensorflow.contrib.crf import crf_log_likelihood, viterbi_decode
from tensorflow.contrib.layers.python.layers import initializers


class Model(object):
    def __init__(self, n_words, n_tags):
        self.initializer = initializers.xavier_initializer(seed=3)
        self.word = tf.placeholder(tf.int32, [None, None], name="ChatInputs")
        self.tags = tf.placeholder(tf.int32, [None, None], name="Targets")
        self.dropout = tf.placeholder(tf.float32, name="Dropout")
        used = tf.sign(tf.abs(self.word))
        self.lengths = tf.cast(tf.reduce_sum(used, reduction_indices=1), tf.int32)
        self.batch_size, self.num_steps = tf.shape(self.word)[0], tf.shape(self.word)[-1]
        with tf.variable_scope("char_embedding"), tf.device("/cpu:0"):
            emb = tf.get_variable("char_embedding", [n_words, 8], initializer=self.initializer)
            x = tf.nn.dropout(tf.nn.embedding_lookup(emb, self.word), self.dropout, seed=1)
        with tf.variable_scope("char_BiLSTM"):
            cell = {}
            for d in ("forward", "backward"):
                with tf.variable_scope(d):
                    cell[d] = tf.nn.rnn_cell.LSTMCell(
                        6, use_peepholes=True, initializer=self.initializer, state_is_tuple=True
                    )
            outputs, _ = tf.nn.bidirectional_dynamic_rnn(
                cell["forward"], cell["backward"], x, dtype=tf.float32, sequence_length=self.lengths
            )
        h = tf.concat(outputs, axis=2)
        with tf.variable_scope("project"):
            W = tf.get_variable("W", shape=[12, n_tags], dtype=tf.float32, initializer=self.initializer)
            b = tf.get_variable("b", shape=[n_tags], dtype=tf.float32, initializer=tf.zeros_initializer())
            pred = tf.nn.xw_plus_b(tf.reshape(h, [-1, 12]), W, b)
            self.logits = tf.reshape(pred, [-1, self.num_steps, n_tags])
        with tf.variable_scope("crf_loss"):
            small = -1000.0
            start = tf.concat(
                [small * tf.ones(shape=[self.batch_size, 1, n_tags]), tf.zeros(shape=[self.batch_size, 1, 1])], axis=-1
            )
            pad = tf.cast(small * tf.ones([self.batch_size, self.num_steps, 1]), tf.float32)
            logits = tf.concat([start, tf.concat([self.logits, pad], axis=-1)], axis=1)
            targets = tf.concat([tf.cast(n_tags * tf.ones([self.batch_size, 1]), tf.int32), self.tags], axis=-1)
            self.trans = tf.get_variable("transitions", shape=[n_tags + 1, n_tags + 1], initializer=self.initializer)
            ll, self.trans = crf_log_likelihood(
                inputs=logits, tag_indices=targets, transition_params=self.trans, sequence_lengths=self.lengths + 1
            )
            self.loss = tf.reduce_mean(-ll)
        self.global_step = tf.Variable(0, trainable=False)
        opt = tf.train.AdamOptimizer(0.05)
        grads = opt.compute_gradients(self.loss)
        capped = [[tf.clip_by_value(g, -5, 5), v] for g, v in grads]
        self.train_op = opt.apply_gradients(capped, self.global_step)
        self.saver = tf.train.Saver(tf.global_variables(), max_to_keep=5)


rng = np.random.RandomState(0)
m = Model(12, 3)
print([v.name for v in tf.trainable_variables()])
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for i in range(15):
        w = rng.randint(1, 12, (4, 6))
        w[0, 4:] = 0
        t = (w % 3) * (w > 0)
        step, loss, _ = sess.run([m.global_step, m.loss, m.train_op], {m.word: w, m.tags: t, m.dropout: 0.9})
        if i % 5 == 4:
            print(step, "%.4f" % loss)
    lens, logits, trans = sess.run([m.lengths, m.logits, m.trans], {m.word: w, m.dropout: 1.0})
    for l, s in zip(lens, logits):
        s = np.concatenate([s[:l], -1000.0 * np.ones([l, 1])], 1)
        s = np.concatenate([[[-1000.0] * 3 + [0]], s], 0)
        path, score = viterbi_decode(s, trans)
        print(path[1:], "%.3f" % score)
