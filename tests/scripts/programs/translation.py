"""Translation: attention, training, greedy and beam search decoding, with checkpoints in between."""

import os
import tempfile

import numpy as np
import tensorflow as tf
from tensorflow.contrib import rnn, seq2seq
from tensorflow.python.layers.core import Dense
from tensorflow.python.ops import array_ops
from tensorflow.python.util import nest

folder = tempfile.TemporaryDirectory()
os.chdir(folder.name)

tf.set_random_seed(0)
VOCAB, EMB, HID, B, BEAM = 20, 8, 12, 4, 3
GO, EOS = 1, 2


def build(mode, graph):
    with graph.as_default(), tf.variable_scope("nmt", initializer=tf.random_uniform_initializer(-0.5, 0.5, seed=3)):
        src = tf.placeholder(tf.int32, [None, None], "src")
        src_len = tf.placeholder(tf.int32, [None], "src_len")
        tgt_in = tf.placeholder(tf.int32, [None, None], "tgt_in")
        tgt_out = tf.placeholder(tf.int32, [None, None], "tgt_out")
        tgt_len = tf.placeholder(tf.int32, [None], "tgt_len")
        embedding = tf.get_variable("embedding", [VOCAB, EMB])
        with tf.variable_scope("encoder"):
            fw, bw = rnn.GRUCell(HID), rnn.GRUCell(HID)
            (o1, o2), (s1, s2) = tf.nn.bidirectional_dynamic_rnn(
                fw, bw, tf.nn.embedding_lookup(embedding, src), src_len, dtype=tf.float32
            )
            memory = tf.concat([o1, o2], -1)
            state = tf.concat([s1, s2], -1)
        with tf.variable_scope("decoder"):
            batch = tf.shape(src)[0]
            if mode == "infer":
                memory = seq2seq.tile_batch(memory, BEAM)
                state = nest.map_structure(lambda s: seq2seq.tile_batch(s, BEAM), state)
                mem_len = seq2seq.tile_batch(src_len, BEAM)
            else:
                mem_len = src_len
            mech = seq2seq.BahdanauAttention(HID, memory, memory_sequence_length=mem_len, normalize=True)
            cell = rnn.MultiRNNCell(
                [
                    rnn.BasicLSTMCell(HID),
                    rnn.DropoutWrapper(
                        rnn.BasicLSTMCell(HID), output_keep_prob=0.9 if mode == "train" else 1.0, seed=4
                    ),
                ]
            )
            cell = seq2seq.AttentionWrapper(
                cell, mech, attention_layer_size=HID, alignment_history=(mode == "greedy"), name="attn"
            )
            size = batch * BEAM if mode == "infer" else batch
            init = cell.zero_state(size, tf.float32)
            lstm = rnn.LSTMStateTuple(tf.layers.dense(state, HID, name="c"), tf.layers.dense(state, HID, name="h"))
            init = init.clone(cell_state=(lstm, lstm))
            proj = Dense(VOCAB, use_bias=False, name="proj")
            if mode == "train":
                helper = seq2seq.TrainingHelper(tf.nn.embedding_lookup(embedding, tgt_in), tgt_len)
                dec = seq2seq.BasicDecoder(cell, helper, init, proj)
                out, fs, lens = seq2seq.dynamic_decode(
                    dec, impute_finished=True, maximum_iterations=tf.reduce_max(tgt_len)
                )
                w = tf.sequence_mask(tgt_len, dtype=tf.float32)
                loss = seq2seq.sequence_loss(out.rnn_output, tgt_out, w)
                opt = tf.train.AdamOptimizer(0.05)
                gv = opt.compute_gradients(loss)
                gv = [(tf.clip_by_norm(g, 1.0), v) for g, v in gv if g is not None]
                train = opt.apply_gradients(gv)
                return dict(
                    src=src,
                    src_len=src_len,
                    tgt_in=tgt_in,
                    tgt_out=tgt_out,
                    tgt_len=tgt_len,
                    loss=loss,
                    train=train,
                    init=tf.global_variables_initializer(),
                    saver=tf.train.Saver(),
                    names=[v.name for v in tf.trainable_variables()],
                )
            if mode == "greedy":
                helper = seq2seq.GreedyEmbeddingHelper(embedding, tf.fill([batch], GO), EOS)
                out, fs, lens = seq2seq.dynamic_decode(
                    seq2seq.BasicDecoder(cell, helper, init, proj), maximum_iterations=7
                )
                return dict(
                    src=src,
                    src_len=src_len,
                    ids=out.sample_id,
                    lens=lens,
                    align=fs.alignment_history.stack(),
                    saver=tf.train.Saver(),
                )
            dec = seq2seq.BeamSearchDecoder(
                cell, embedding, tf.fill([batch], GO), EOS, init, BEAM, proj, length_penalty_weight=0.6
            )
            out, fs, lens = seq2seq.dynamic_decode(dec, maximum_iterations=7)
            return dict(
                src=src,
                src_len=src_len,
                ids=out.predicted_ids,
                lens=lens,
                scores=out.beam_search_decoder_output.scores,
                log_probs=fs.log_probs,
                saver=tf.train.Saver(),
            )


rng = np.random.RandomState(0)


def batch():
    lens = rng.randint(2, 6, B)
    x = np.zeros((B, 5), np.int32)
    ti, to = np.full((B, 6), EOS, np.int32), np.full((B, 6), EOS, np.int32)
    for i, n in enumerate(lens):
        seq = rng.randint(3, VOCAB, n)
        x[i, :n] = seq
        ti[i, 0] = GO
        ti[i, 1 : n + 1] = seq
        to[i, :n] = seq
    n = lens.max() + 1
    return x, lens, ti[:, :n], to[:, :n], lens + 1


g = tf.Graph()
m = build("train", g)
print(m["names"])
with tf.Session(graph=g) as sess:
    sess.run(m["init"])
    for i in range(12):
        x, l, ti, to, tl = batch()
        loss, _ = sess.run(
            [m["loss"], m["train"]], {m["src"]: x, m["src_len"]: l, m["tgt_in"]: ti, m["tgt_out"]: to, m["tgt_len"]: tl}
        )
        print("%.4f" % loss)
    m["saver"].save(sess, "./nmt.ckpt")
for mode in ("greedy", "infer"):
    g = tf.Graph()
    m = build(mode, g)
    with tf.Session(graph=g) as sess:
        m["saver"].restore(sess, "./nmt.ckpt")
        x, l, _, _, _ = batch()
        for k in ("ids", "lens", "align", "scores", "log_probs"):
            if k in m:
                v = sess.run(m[k], {m["src"]: x, m["src_len"]: l})
                print(mode, k, v.shape, np.round(v, 3).ravel()[:40].tolist())
