"""More programs as people write them, of other kinds than those in programs.py. Run with `run.py --module more_programs`."""

import numpy as np
from programs import R, _dense, _steps
from workloads import _rate


def dqn(tf):
    """Deep Q-learning: single observations, updates with a target network that is copied now and then."""

    def build():
        state, after = tf.placeholder(tf.float32, [None, 16]), tf.placeholder(tf.float32, [None, 16])
        action, reward, done = (
            tf.placeholder(tf.int32, [None]),
            tf.placeholder(tf.float32, [None]),
            tf.placeholder(tf.float32, [None]),
        )

        def network(name, x):
            with tf.variable_scope(name):
                return _dense(tf, "q", _dense(tf, "h2", _dense(tf, "h1", x, 64, tf.nn.relu), 64, tf.nn.relu), 6)

        q, target = network("online", state), network("target", after)
        chosen = tf.argmax(q, 1)
        goal = reward + 0.99 * (1.0 - done) * tf.reduce_max(target, 1)
        value = tf.reduce_sum(q * tf.one_hot(action, 6), 1)
        loss = tf.reduce_mean(tf.losses.huber_loss(tf.stop_gradient(goal), value))
        online, other = tf.trainable_variables("online"), tf.trainable_variables("target")
        train = tf.train.RMSPropOptimizer(2.5e-4, 0.95, epsilon=0.01).minimize(loss, var_list=online)
        copy = tf.group(*[tf.assign(b, a) for a, b in zip(online, other)])
        single = R(0).randn(4, 1, 16).astype("f")
        feed = {state: R(1).randn(32, 16), after: R(2).randn(32, 16), action: R(3).randint(0, 6, 32)}
        feed.update({reward: R(4).randn(32), done: R(5).randint(0, 2, 32)})
        count = [0]

        def work(session):
            for each in single:
                session.run(chosen, {state: each})
            session.run([loss, train], feed)
            count[0] += 1
            if count[0] % 10 == 0:
                session.run(copy)

        return work

    return _steps(tf, build)


def char_rnn(tf):
    """A language model of characters: two LSTM layers whose state is fed from run to run, clipped gradients."""

    def build():
        x, y = tf.placeholder(tf.int32, [16, 25]), tf.placeholder(tf.int32, [16, 25])
        cells = tf.nn.rnn_cell.MultiRNNCell([tf.nn.rnn_cell.BasicLSTMCell(96) for _ in range(2)])
        start = cells.zero_state(16, tf.float32)
        table = tf.get_variable("table", [65, 96])
        outputs, last = tf.nn.dynamic_rnn(cells, tf.nn.embedding_lookup(table, x), initial_state=start)
        logits = _dense(tf, "out", tf.reshape(outputs, [-1, 96]), 65)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.reshape(y, [-1]), logits=logits))
        v = tf.trainable_variables()
        g, _ = tf.clip_by_global_norm(tf.gradients(loss, v), 5.0)
        train = tf.train.AdamOptimizer(2e-3).apply_gradients(zip(g, v))
        kept = []

        def work(session):
            feed = {x: R(0).randint(0, 65, (16, 25)), y: R(1).randint(0, 65, (16, 25))}
            for given, held in zip(start, kept[0] if kept else ()):
                feed[given.c], feed[given.h] = held.c, held.h
            _, state, _ = session.run([loss, last, train], feed)
            kept[:] = [state]

        return work

    return _steps(tf, build)


def sampled_softmax(tf):
    """A language model's output layer with sampled_softmax_loss, Adagrad on sparse rows."""

    def build():
        words, labels = tf.placeholder(tf.int32, [64, 4]), tf.placeholder(tf.int32, [64, 1])
        table = tf.get_variable("table", [20000, 64], initializer=tf.random_uniform_initializer(-0.1, 0.1))
        w = tf.get_variable("w", [20000, 64], initializer=tf.truncated_normal_initializer(stddev=0.1))
        b = tf.get_variable("b", [20000], initializer=tf.zeros_initializer())
        h = tf.reduce_mean(tf.nn.embedding_lookup(table, words), 1)
        loss = tf.reduce_mean(tf.nn.sampled_softmax_loss(w, b, labels, h, 64, 20000))
        train = tf.train.AdagradOptimizer(0.5).minimize(loss)
        feed = {words: R(0).randint(0, 20000, (64, 4)), labels: R(1).randint(0, 20000, (64, 1))}
        return lambda session: session.run([loss, train], feed)

    return _steps(tf, build)


def denoising_autoencoder(tf):
    """A convolutional autoencoder with dropout on its input, of tf.layers."""

    def build():
        x = tf.placeholder(tf.float32, [None, 16, 16, 1])
        h = tf.nn.dropout(x, 0.8)
        h = tf.layers.conv2d(h, 16, 3, 2, "same", activation=tf.nn.elu)
        h = tf.layers.conv2d(h, 32, 3, 2, "same", activation=tf.nn.elu)
        code = tf.layers.dense(tf.layers.flatten(h), 32)
        h = tf.reshape(tf.layers.dense(code, 4 * 4 * 32, activation=tf.nn.elu), [-1, 4, 4, 32])
        h = tf.layers.conv2d_transpose(h, 16, 3, 2, "same", activation=tf.nn.elu)
        loss = tf.losses.mean_squared_error(x, tf.layers.conv2d_transpose(h, 1, 3, 2, "same"))
        train = tf.train.AdamOptimizer(1e-3).minimize(loss)
        feed = {x: R(0).rand(16, 16, 16, 1).astype("f")}
        return lambda session: session.run([loss, train], feed)

    return _steps(tf, build)


def crf_tagger(tf):
    """A linear-chain CRF over a bidirectional LSTM: the forward algorithm and decoding as scans."""

    def build():
        words, tags, lengths = (
            tf.placeholder(tf.int32, [8, 15]),
            tf.placeholder(tf.int32, [8, 15]),
            tf.placeholder(tf.int32, [8]),
        )
        table = tf.get_variable("table", [1000, 32])
        (forward, backward), _ = tf.nn.bidirectional_dynamic_rnn(
            tf.nn.rnn_cell.LSTMCell(32),
            tf.nn.rnn_cell.LSTMCell(32),
            tf.nn.embedding_lookup(table, words),
            sequence_length=lengths,
            dtype=tf.float32,
        )
        scores = tf.reshape(_dense(tf, "out", tf.reshape(tf.concat([forward, backward], 2), [-1, 64]), 9), [8, 15, 9])
        moves = tf.get_variable("moves", [9, 9])
        mask = tf.sequence_mask(lengths, 15, tf.float32)
        by_time = tf.transpose(scores, [1, 0, 2])

        def forward_step(alpha, item):
            score, valid = item
            grown = tf.reduce_logsumexp(tf.expand_dims(alpha, 2) + moves, 1) + score
            return valid * grown + (1.0 - valid) * alpha

        valid = tf.expand_dims(tf.transpose(mask), 2)
        alphas = tf.scan(forward_step, [by_time[1:], valid[1:]], by_time[0])
        total = tf.reduce_logsumexp(alphas[-1], 1)
        unary = tf.reduce_sum(tf.reduce_sum(scores * tf.one_hot(tags, 9), 2) * mask, 1)
        pairs = tf.gather_nd(moves, tf.stack([tags[:, :-1], tags[:, 1:]], 2))
        loss = tf.reduce_mean(total - unary - tf.reduce_sum(pairs * mask[:, 1:], 1))
        train = tf.train.AdamOptimizer(1e-3).minimize(loss)
        feed = {words: R(0).randint(0, 1000, (8, 15)), tags: R(1).randint(0, 9, (8, 15))}
        feed[lengths] = R(2).randint(4, 16, 8)
        return lambda session: session.run([loss, train], feed)

    return _steps(tf, build)


def triplet(tf):
    """A siamese network with normalized embeddings and a triplet loss."""

    def build():
        images = [tf.placeholder(tf.float32, [None, 128]) for _ in range(3)]

        def embed(x):
            with tf.variable_scope("e", reuse=tf.AUTO_REUSE):
                return tf.nn.l2_normalize(_dense(tf, "out", _dense(tf, "h", x, 128, tf.nn.relu), 32), 1)

        anchor, same, other = map(embed, images)
        near, far = (tf.reduce_sum(tf.square(anchor - each), 1) for each in (same, other))
        loss = tf.reduce_mean(tf.maximum(near - far + 0.2, 0.0))
        step = tf.Variable(0, trainable=False)
        rate = tf.train.exponential_decay(1e-2, step, 100, 0.96)
        train = tf.train.MomentumOptimizer(rate, 0.9).minimize(loss, global_step=step)
        feed = {each: R(i).randn(48, 128).astype("f") for i, each in enumerate(images)}
        return lambda session: session.run([loss, train, step], feed)

    return _steps(tf, build)


def attention_decoder(tf):
    """Translation: an encoder, then a loop of cells with additive attention that reads its own words."""

    def build():
        source, target = tf.placeholder(tf.int32, [None, 12]), tf.placeholder(tf.int32, [None, 10])
        table = tf.get_variable("table", [500, 32])
        memory, state = tf.nn.dynamic_rnn(
            tf.nn.rnn_cell.GRUCell(32), tf.nn.embedding_lookup(table, source), dtype=tf.float32, scope="enc"
        )
        keys = tf.layers.dense(memory, 32, use_bias=False)
        cell, batch = tf.nn.rnn_cell.GRUCell(32), tf.shape(source)[0]
        query, v = tf.get_variable("query", [32, 32]), tf.get_variable("v", [32])
        words = tf.TensorArray(tf.float32, 10).unstack(tf.transpose(tf.nn.embedding_lookup(table, target), [1, 0, 2]))

        def body(i, state, outputs):
            scores = tf.reduce_sum(v * tf.tanh(keys + tf.expand_dims(tf.matmul(state, query), 1)), 2)
            context = tf.reduce_sum(memory * tf.expand_dims(tf.nn.softmax(scores), 2), 1)
            output, state = cell(tf.concat([words.read(i), context], 1), state)
            return i + 1, state, outputs.write(i, output)

        _, _, outputs = tf.while_loop(lambda i, *_: i < 10, body, [0, state, tf.TensorArray(tf.float32, 10)])
        logits = _dense(tf, "out", tf.reshape(outputs.stack(), [-1, 32]), 500)
        labels = tf.reshape(tf.transpose(target), [-1])
        loss = tf.reduce_sum(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
        loss /= tf.cast(batch, tf.float32)
        train = tf.train.AdamOptimizer(1e-3).minimize(loss)
        feed = {source: R(0).randint(0, 500, (16, 12)), target: R(1).randint(0, 500, (16, 10))}
        return lambda session: session.run([loss, train], feed)

    return _steps(tf, build)


def text_cnn(tf):
    """Sentence classification: convolutions of several widths over embeddings, max over time, dropout."""

    def build():
        words, labels = tf.placeholder(tf.int32, [None, 30]), tf.placeholder(tf.int32, [None])
        keep = tf.placeholder(tf.float32, [])
        x = tf.expand_dims(tf.nn.embedding_lookup(tf.get_variable("table", [5000, 48]), words), 3)
        pooled = []
        for width in (3, 4, 5):
            k = tf.get_variable("k%d" % width, [width, 48, 1, 32])
            h = tf.nn.relu(
                tf.nn.bias_add(tf.nn.conv2d(x, k, [1, 1, 1, 1], "VALID"), tf.get_variable("b%d" % width, [32]))
            )
            pooled.append(tf.nn.max_pool(h, [1, 31 - width, 1, 1], [1, 1, 1, 1], "VALID"))
        h = tf.nn.dropout(tf.reshape(tf.concat(pooled, 3), [-1, 96]), keep)
        loss = tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=_dense(tf, "out", h, 2))
        )
        train = tf.train.AdamOptimizer(1e-3).minimize(loss)
        feed = {words: R(0).randint(0, 5000, (32, 30)), labels: R(1).randint(0, 2, 32), keep: 0.5}
        return lambda session: session.run([loss, train], feed)

    return _steps(tf, build)


def batch_norm_network(tf):
    """Dense layers with tf.layers.batch_normalization, a fed training flag and update ops."""

    def build():
        x, labels = tf.placeholder(tf.float32, [None, 64]), tf.placeholder(tf.int32, [None])
        training = tf.placeholder(tf.bool, [])
        h = x
        for _ in range(3):
            h = tf.nn.relu(tf.layers.batch_normalization(tf.layers.dense(h, 128), training=training))
        loss = tf.losses.sparse_softmax_cross_entropy(labels, tf.layers.dense(h, 10))
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            train = tf.train.AdamOptimizer(1e-3).minimize(loss)
        feed = {x: R(0).randn(64, 64).astype("f"), labels: R(1).randint(0, 10, 64)}

        def work(session):
            session.run([loss, train], {**feed, training: True})
            session.run(loss, {**feed, training: False})

        return work

    return _steps(tf, build)


def transformer_block(tf):
    """Two blocks of multi-head attention with layer normalization and dropout, written by hand."""

    def build():
        words, labels = tf.placeholder(tf.int32, [None, 20]), tf.placeholder(tf.int32, [None])
        x = tf.nn.embedding_lookup(tf.get_variable("table", [1000, 64]), words)

        def norm(name, h):
            mean, variance = tf.nn.moments(h, [-1], keep_dims=True)
            with tf.variable_scope(name):
                scale = tf.get_variable("scale", [64], initializer=tf.ones_initializer())
                return (h - mean) * tf.rsqrt(variance + 1e-6) * scale + tf.get_variable("shift", [64])

        def heads(h):
            return tf.transpose(tf.reshape(h, [-1, 20, 4, 16]), [0, 2, 1, 3])

        for i in range(2):
            with tf.variable_scope("block%d" % i):
                q, k, v = (heads(tf.layers.dense(x, 64, use_bias=False)) for _ in range(3))
                weights = tf.nn.dropout(tf.nn.softmax(tf.matmul(q, k, transpose_b=True) / 4.0), 0.9)
                mixed = tf.reshape(tf.transpose(tf.matmul(weights, v), [0, 2, 1, 3]), [-1, 20, 64])
                x = norm("n1", x + tf.layers.dense(mixed, 64))
                x = norm("n2", x + tf.layers.dense(tf.layers.dense(x, 128, activation=tf.nn.relu), 64))
        logits = tf.layers.dense(tf.reduce_mean(x, 1), 5)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        train = tf.train.AdamOptimizer(1e-3).minimize(loss)
        feed = {words: R(0).randint(0, 1000, (16, 20)), labels: R(1).randint(0, 5, 16)}
        return lambda session: session.run([loss, train], feed)

    return _steps(tf, build)


def char_cnn(tf):
    """A character-level CNN: one-hot characters, temporal convolutions with pooling, dense layers with dropout."""

    def build():
        chars, labels = tf.placeholder(tf.int32, [None, 64]), tf.placeholder(tf.int32, [None])
        h = tf.one_hot(chars, 40)
        for units, width in ((48, 7), (48, 3)):
            h = tf.layers.max_pooling1d(tf.layers.conv1d(h, units, width, padding="same", activation=tf.nn.relu), 2, 2)
        h = tf.nn.dropout(tf.layers.dense(tf.layers.flatten(h), 128, activation=tf.nn.relu), 0.5)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, tf.layers.dense(h, 4))
        train = tf.train.MomentumOptimizer(0.01, 0.9).minimize(loss)
        feed = {chars: R(0).randint(0, 40, (16, 64)), labels: R(1).randint(0, 4, 16)}
        return lambda session: session.run([loss, train], feed)

    return _steps(tf, build)


def mixture_density(tf):
    """A mixture density network: a mixture of Gaussians whose parameters a network computes, by log-sum-exp."""

    def build():
        x, y = tf.placeholder(tf.float32, [None, 1]), tf.placeholder(tf.float32, [None, 1])
        out = _dense(tf, "out", _dense(tf, "h2", _dense(tf, "h1", x, 32, tf.tanh), 32, tf.tanh), 60)
        weights, means, log_scales = tf.split(out, 3, 1)
        log_parts = tf.nn.log_softmax(weights) - log_scales - 0.5 * tf.square((y - means) * tf.exp(-log_scales))
        loss = tf.reduce_mean(-tf.reduce_logsumexp(log_parts, 1)) + 0.9189385
        step = tf.train.get_or_create_global_step()
        rate = tf.train.polynomial_decay(1e-2, step, 1000, 1e-4)
        train = tf.train.AdamOptimizer(rate).minimize(loss, global_step=step)
        feed = {x: R(0).randn(128, 1).astype("f"), y: R(1).randn(128, 1).astype("f")}
        return lambda session: session.run([loss, train], feed)

    return _steps(tf, build)


def dcgan(tf):
    """A convolutional GAN with batch normalization in both networks and update ops."""

    def build():
        images = tf.placeholder(tf.float32, [16, 16, 16, 3])

        def norm(h):
            return tf.layers.batch_normalization(h, training=True, momentum=0.9)

        def generator(z):
            with tf.variable_scope("g"):
                h = tf.nn.relu(norm(tf.reshape(tf.layers.dense(z, 4 * 4 * 32), [-1, 4, 4, 32])))
                h = tf.nn.relu(norm(tf.layers.conv2d_transpose(h, 16, 5, 2, "same")))
                return tf.tanh(tf.layers.conv2d_transpose(h, 3, 5, 2, "same"))

        def discriminator(x):
            with tf.variable_scope("d", reuse=tf.AUTO_REUSE):
                h = tf.nn.leaky_relu(tf.layers.conv2d(x, 16, 5, 2, "same", name="c1"))
                h = tf.layers.conv2d(h, 32, 5, 2, "same", name="c2")
                h = tf.nn.leaky_relu(tf.layers.batch_normalization(h, training=True, name="n"))
                return tf.layers.dense(tf.layers.flatten(h), 1, name="out")

        real, fake = discriminator(images), discriminator(generator(tf.random_normal([16, 32])))
        entropy = tf.losses.sigmoid_cross_entropy
        d_loss = entropy(tf.ones_like(real), real, label_smoothing=0.1) + entropy(tf.zeros_like(fake), fake)
        g_loss = entropy(tf.ones_like(fake), fake)
        trains = []
        for scope, loss in (("d", d_loss), ("g", g_loss)):
            with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS, scope)):
                optimizer = tf.train.AdamOptimizer(2e-4, 0.5)
                trains.append(optimizer.minimize(loss, var_list=tf.trainable_variables(scope)))
        feed = {images: R(0).rand(16, 16, 16, 3).astype("f") * 2 - 1}

        def work(session):
            session.run([d_loss, trains[0]], feed)
            session.run([g_loss, trains[1]], feed)

        return work

    return _steps(tf, build)


def deep_fm(tf):
    """A factorization machine beside a network, over fields of sparse features."""

    def build():
        ids, labels = tf.placeholder(tf.int32, [None, 12]), tf.placeholder(tf.float32, [None])
        first = tf.get_variable("first", [10000, 1], initializer=tf.zeros_initializer())
        table = tf.get_variable("table", [10000, 8], initializer=tf.random_normal_initializer(stddev=0.01))
        linear = tf.reduce_sum(tf.squeeze(tf.nn.embedding_lookup(first, ids), 2), 1)
        fields = tf.nn.embedding_lookup(table, ids)
        pairs = tf.square(tf.reduce_sum(fields, 1)) - tf.reduce_sum(tf.square(fields), 1)
        h = tf.reshape(fields, [-1, 96])
        for i in range(2):
            h = tf.nn.dropout(_dense(tf, "h%d" % i, h, 64, tf.nn.relu), 0.8)
        logits = linear + 0.5 * tf.reduce_sum(pairs, 1) + tf.squeeze(_dense(tf, "out", h, 1), 1)
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))
        loss += 1e-5 * (tf.nn.l2_loss(fields) + tf.nn.l2_loss(linear))
        train = tf.train.AdagradOptimizer(0.05).minimize(loss)
        feed = {ids: R(0).randint(0, 10000, (64, 12)), labels: R(1).randint(0, 2, 64).astype("f")}
        return lambda session: session.run([loss, train], feed)

    return _steps(tf, build)


def actor_critic(tf):
    """A2C: single actions, then an update of policy and value with an entropy bonus and clipped gradients."""

    def build():
        state, action = tf.placeholder(tf.float32, [None, 12]), tf.placeholder(tf.int32, [None])
        returns = tf.placeholder(tf.float32, [None])
        h = _dense(tf, "h2", _dense(tf, "h1", state, 64, tf.nn.relu), 64, tf.nn.relu)
        logits, value = _dense(tf, "pi", h, 5), tf.squeeze(_dense(tf, "v", h, 1), 1)
        noise = tf.random_uniform(tf.shape(logits))
        sample = tf.argmax(logits - tf.log(-tf.log(noise)), 1)
        log_p = tf.nn.log_softmax(logits)
        entropy = -tf.reduce_sum(tf.exp(log_p) * log_p, 1)
        chosen = tf.reduce_sum(log_p * tf.one_hot(action, 5), 1)
        advantage = tf.stop_gradient(returns - value)
        loss = tf.reduce_mean(-chosen * advantage + 0.5 * tf.square(returns - value) - 0.01 * entropy)
        v = tf.trainable_variables()
        g, norm = tf.clip_by_global_norm(tf.gradients(loss, v), 0.5)
        train = tf.train.RMSPropOptimizer(7e-4, 0.99, epsilon=1e-5).apply_gradients(zip(g, v))
        single = R(0).randn(5, 8, 12).astype("f")
        feed = {state: R(1).randn(40, 12), action: R(2).randint(0, 5, 40), returns: R(3).randn(40)}

        def work(session):
            for each in single:
                session.run([sample, value], {state: each})
            session.run([loss, norm, train], feed)

        return work

    return _steps(tf, build)


def capsules(tf):
    """Capsules: routing by agreement in three rounds, a margin loss."""

    def build():
        x, labels = tf.placeholder(tf.float32, [None, 48, 8]), tf.placeholder(tf.int32, [None])
        w = tf.get_variable("w", [1, 48, 10, 8, 16], initializer=tf.random_normal_initializer(stddev=0.1))
        votes = tf.reduce_sum(tf.expand_dims(tf.expand_dims(x, 2), 4) * w, 3)
        fixed = tf.stop_gradient(votes)
        b = tf.zeros_like(votes[:, :, :, 0])

        def squash(s):
            squared = tf.reduce_sum(tf.square(s), -1, keep_dims=True)
            return s * squared / (1.0 + squared) / tf.sqrt(squared + 1e-9)

        for i in range(3):
            c = tf.expand_dims(tf.nn.softmax(b, axis=2), 3)
            out = squash(tf.reduce_sum(c * (votes if i == 2 else fixed), 1))
            b += tf.reduce_sum(fixed * tf.expand_dims(out, 1), 3)
        lengths = tf.sqrt(tf.reduce_sum(tf.square(out), 2) + 1e-9)
        t = tf.one_hot(labels, 10)
        margins = t * tf.square(tf.maximum(0.9 - lengths, 0.0))
        margins += 0.5 * (1.0 - t) * tf.square(tf.maximum(lengths - 0.1, 0.0))
        loss = tf.reduce_mean(tf.reduce_sum(margins, 1))
        train = tf.train.AdamOptimizer(1e-3).minimize(loss)
        feed = {x: R(0).randn(8, 48, 8).astype("f"), labels: R(1).randint(0, 10, 8)}
        return lambda session: session.run([loss, train], feed)

    return _steps(tf, build)


def dilated_causal(tf):
    """A WaveNet-like stack: causal convolutions with growing dilation, gated activations, residuals and skips."""

    def build():
        x, labels = tf.placeholder(tf.int32, [None, 64]), tf.placeholder(tf.int32, [None, 64])
        h = tf.nn.embedding_lookup(tf.get_variable("table", [64, 24]), x)
        skips = 0.0
        for i in range(4):
            padded = tf.pad(h, [[0, 0], [2**i, 0], [0, 0]])
            gates = tf.layers.conv1d(padded, 48, 2, dilation_rate=2**i)
            filtered, gate = tf.split(gates, 2, 2)
            z = tf.tanh(filtered) * tf.sigmoid(gate)
            skips += tf.layers.conv1d(z, 32, 1)
            h += tf.layers.conv1d(z, 24, 1)
        logits = tf.layers.conv1d(tf.nn.relu(skips), 64, 1)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
        train = tf.train.AdamOptimizer(1e-3).minimize(loss)
        feed = {x: R(0).randint(0, 64, (8, 64)), labels: R(1).randint(0, 64, (8, 64))}
        return lambda session: session.run([loss, train], feed)

    return _steps(tf, build)


def memory_network(tf):
    """An end-to-end memory network: bags of words, three hops of attention, annealed noise on the gradients."""

    def build():
        story, query = tf.placeholder(tf.int32, [None, 10, 6]), tf.placeholder(tf.int32, [None, 6])
        answer = tf.placeholder(tf.int32, [None])
        a, b, c = (tf.get_variable(name, [60, 20]) for name in "abc")
        look = tf.nn.embedding_lookup
        u = tf.reduce_sum(look(b, query), 1)
        keys, values = tf.reduce_sum(look(a, story), 2), tf.reduce_sum(look(c, story), 2)
        h = tf.get_variable("h", [20, 20])
        for _ in range(3):
            p = tf.nn.softmax(tf.reduce_sum(keys * tf.expand_dims(u, 1), 2))
            u = tf.matmul(u, h) + tf.reduce_sum(values * tf.expand_dims(p, 2), 1)
        logits = tf.matmul(u, tf.get_variable("w", [20, 60]))
        loss = tf.reduce_sum(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=answer, logits=logits))
        optimizer = tf.train.GradientDescentOptimizer(0.01)
        pairs = [(tf.clip_by_norm(g, 40.0), v) for g, v in optimizer.compute_gradients(loss)]
        train = optimizer.apply_gradients([(g + tf.random_normal(tf.shape(g), stddev=1e-3), v) for g, v in pairs])
        feed = {story: R(0).randint(0, 60, (32, 10, 6)), query: R(1).randint(0, 60, (32, 6))}
        feed[answer] = R(2).randint(0, 60, 32)
        return lambda session: session.run([loss, train], feed)

    return _steps(tf, build)


def function_loop(tf):
    """tf.function: ten steps of gradient descent in a loop over a tensor, called eagerly."""
    tf.enable_eager_execution()
    w, b = tf.Variable(np.zeros([32, 1], "f"), use_resource=True), tf.Variable(0.0, use_resource=True)
    x, y = tf.constant(R(0).randn(64, 32).astype("f")), tf.constant(R(1).randn(64, 1).astype("f"))

    @tf.function
    def train():
        total = 0.0
        for _ in tf.range(10):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(tf.matmul(x, w) + b - y))
            dw, db = tape.gradient(loss, [w, b])
            w.assign_sub(0.01 * dw)
            b.assign_sub(0.01 * db)
            total += loss
        return total

    return _rate(lambda: float(train()), 1, 3.0), "steps/s"


ALL = {
    name: fn
    for name, fn in list(globals().items())
    if callable(fn) and not name.startswith("_") and getattr(fn, "__module__", None) == __name__
}
