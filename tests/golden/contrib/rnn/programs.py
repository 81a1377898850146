"""Two whole programs: a translator with attention and beam search, and a tagger with a conditional random field.

Each trains for 20 steps from given weights, and returns the losses and what it predicts in the end.
"""

import numpy as np

STEPS = 20


def _initialized(tf, session, value_of):
    session.run(tf.global_variables_initializer())
    for each in tf.trainable_variables():
        each.load(value_of(each.op.name, each.shape.as_list()), session)


def translator(tf, value_of):
    seq2seq = tf.contrib.seq2seq
    drawn = np.random.RandomState(0)
    words, units, width, batch = 12, 8, 3, 4
    source = drawn.randint(2, words, (batch, 6))
    source_lengths = np.array([6, 4, 5, 3])
    target = np.concatenate([source[:, ::-1][:, :5], np.ones((batch, 1), int)], 1)
    target_lengths = np.array([6, 5, 6, 4])
    with tf.Graph().as_default():
        x, lengths = tf.placeholder(tf.int32, [None, None]), tf.placeholder(tf.int32, [None])
        table = tf.get_variable("embedding", [words, units])
        cell = tf.contrib.rnn.MultiRNNCell([tf.contrib.rnn.GRUCell(units) for _ in range(2)])
        outputs, state = tf.nn.dynamic_rnn(cell, tf.nn.embedding_lookup(table, x), lengths, dtype=tf.float32)
        projection = tf.layers.Dense(words, use_bias=False, name="projection")

        def decoder_cell(memory, memory_lengths):
            mechanism = seq2seq.LuongAttention(units, memory, memory_lengths, scale=True)
            inner = tf.contrib.rnn.MultiRNNCell([tf.contrib.rnn.GRUCell(units) for _ in range(2)])
            return seq2seq.AttentionWrapper(inner, mechanism, attention_layer_size=units)

        y, y_lengths = tf.placeholder(tf.int32, [None, None]), tf.placeholder(tf.int32, [None])
        with tf.variable_scope("decoding"):
            wrapped = decoder_cell(outputs, lengths)
            first = wrapped.zero_state(tf.shape(x)[0], tf.float32).clone(cell_state=state)
            shifted = tf.concat([tf.zeros_like(y[:, :1]), y[:, :-1]], 1)
            helper = seq2seq.TrainingHelper(tf.nn.embedding_lookup(table, shifted), y_lengths)
            decoded, _, _ = seq2seq.dynamic_decode(seq2seq.BasicDecoder(wrapped, helper, first, projection))
            weights = tf.sequence_mask(y_lengths, tf.shape(y)[1], tf.float32)
            loss = seq2seq.sequence_loss(decoded.rnn_output, y, weights)
        with tf.variable_scope("decoding", reuse=True):
            memory, tiled = seq2seq.tile_batch(outputs, width), seq2seq.tile_batch(lengths, width)
            searched = decoder_cell(memory, tiled)
            first = searched.zero_state(tf.shape(x)[0] * width, tf.float32).clone(
                cell_state=seq2seq.tile_batch(state, width)
            )
            search = seq2seq.BeamSearchDecoder(
                searched, table, tf.fill([tf.shape(x)[0]], 0), 1, first, width, projection, length_penalty_weight=0.8
            )
            best, _, _ = seq2seq.dynamic_decode(search, maximum_iterations=8)
        optimizer = tf.train.AdamOptimizer(0.02)
        gradients, trained = zip(*optimizer.compute_gradients(loss))
        clipped, _ = tf.clip_by_global_norm(gradients, 1.0)
        train = optimizer.apply_gradients(zip(clipped, trained))
        with tf.Session() as session:
            _initialized(tf, session, value_of)
            feeds = {x: source, lengths: source_lengths, y: target, y_lengths: target_lengths}
            losses = [session.run([loss, train], feeds)[0] for _ in range(STEPS)]
            found = session.run(best.predicted_ids, {x: source, lengths: source_lengths})
            names = [each.op.name for each in tf.trainable_variables()]
    return {"losses": np.array(losses), "predicted": found, "names": np.array(names)}


def tagger(tf, value_of):
    drawn = np.random.RandomState(1)
    words, tags, units, batch, steps = 15, 5, 6, 4, 7
    sentences = drawn.randint(0, words, (batch, steps))
    labels = sentences % tags
    lengths = np.array([7, 5, 3, 6])
    with tf.Graph().as_default():
        x, y = tf.placeholder(tf.int32, [None, None]), tf.placeholder(tf.int32, [None, None])
        n = tf.placeholder(tf.int32, [None])
        table = tf.get_variable("embedding", [words, units])
        cells = [tf.contrib.rnn.LSTMCell(units) for _ in range(2)]
        outputs, _ = tf.nn.bidirectional_dynamic_rnn(*cells, tf.nn.embedding_lookup(table, x), n, dtype=tf.float32)
        scores = tf.layers.dense(tf.concat(outputs, -1), tags)
        likelihood, transitions = tf.contrib.crf.crf_log_likelihood(scores, y, n)
        loss = tf.reduce_mean(-likelihood)
        best, score = tf.contrib.crf.crf_decode(scores, transitions, n)
        train = tf.train.GradientDescentOptimizer(0.3).minimize(loss)
        with tf.Session() as session:
            _initialized(tf, session, value_of)
            feeds = {x: sentences, y: labels, n: lengths}
            losses = [session.run([loss, train], feeds)[0] for _ in range(STEPS)]
            found, final, matrix, rows = session.run([best, score, transitions, scores], feeds)
            decoded, _ = tf.contrib.crf.viterbi_decode(rows[0, : lengths[0]], matrix)
            names = [each.op.name for each in tf.trainable_variables()]
    return {
        "losses": np.array(losses),
        "predicted": found,
        "score": final,
        "one": np.array(decoded),
        "names": np.array(names),
    }


PROGRAMS = {"translator": translator, "tagger": tagger}
