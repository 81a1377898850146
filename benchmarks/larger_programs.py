"""Programs at the sizes that training has, where products and memory decide. Run with `run.py --module larger_programs`."""

import numpy as np
from programs import R, _steps


def _f(seed, *shape):
    return R(seed).randn(*shape).astype("f")


def _cross_entropy(tf, labels, logits):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


def language_model(tf):
    """Two layers of LSTM with dropout over words, a softmax over all words, clipped gradients."""

    def build():
        B, T, V, H = 20, 20, 5000, 400
        x, y = tf.placeholder(tf.int32, [B, T]), tf.placeholder(tf.int32, [B, T])
        table = tf.get_variable("table", [V, H])
        inputs = tf.nn.dropout(tf.nn.embedding_lookup(table, x), keep_prob=0.5)
        cells = [tf.nn.rnn_cell.DropoutWrapper(tf.nn.rnn_cell.LSTMCell(H), output_keep_prob=0.5) for _ in range(2)]
        outputs, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.MultiRNNCell(cells), inputs, dtype=tf.float32)
        loss = _cross_entropy(tf, tf.reshape(y, [-1]), tf.layers.dense(tf.reshape(outputs, [-1, H]), V))
        variables = tf.trainable_variables()
        gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 5.0)
        train = tf.train.GradientDescentOptimizer(1.0).apply_gradients(zip(gradients, variables, strict=True))
        feed = {x: R(0).randint(0, V, (B, T)), y: R(1).randint(0, V, (B, T))}
        return lambda s: s.run([loss, train], feed)

    return _steps(tf, build)


def wide_batches(tf):
    """A classifier of three wide layers over large batches."""

    def build():
        x, y = tf.placeholder(tf.float32, [None, 784]), tf.placeholder(tf.int32, [None])
        h = x
        for units in (1024, 512):
            h = tf.nn.dropout(tf.layers.dense(h, units, tf.nn.relu), keep_prob=0.8)
        loss = _cross_entropy(tf, y, tf.layers.dense(h, 10))
        train = tf.train.AdamOptimizer(1e-3).minimize(loss)
        feed = {x: _f(0, 256, 784), y: R(1).randint(0, 10, 256)}
        return lambda s: s.run([loss, train], feed)

    return _steps(tf, build)


def residual_network(tf):
    """Residual blocks over images of 32 by 32, trained with momentum and weight decay."""

    def build():
        x, y = tf.placeholder(tf.float32, [None, 32, 32, 3]), tf.placeholder(tf.int32, [None])

        def conv(h, units, stride=1):
            h = tf.layers.conv2d(h, units, 3, stride, "same", use_bias=False)
            return tf.layers.batch_normalization(h, training=True)

        h = tf.nn.relu(conv(x, 16))
        for units, stride in ((16, 1), (32, 2), (64, 2)):
            straight = h if stride == 1 else tf.layers.conv2d(h, units, 1, stride, use_bias=False)
            h = tf.nn.relu(straight + conv(tf.nn.relu(conv(h, units, stride)), units))
        decay = tf.add_n([tf.nn.l2_loss(v) for v in tf.trainable_variables()])
        loss = _cross_entropy(tf, y, tf.layers.dense(tf.reduce_mean(h, [1, 2]), 10)) + 1e-4 * decay
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            train = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss)
        feed = {x: _f(0, 64, 32, 32, 3), y: R(1).randint(0, 10, 64)}
        return lambda s: s.run([loss, train], feed)

    return _steps(tf, build)


def image_classifier(tf):
    """Convolutions of five pixels, pooling and response normalization over images of 24 by 24, as in the CIFAR-10 tutorial."""

    def build():
        x, y = tf.placeholder(tf.float32, [None, 24, 24, 3]), tf.placeholder(tf.int32, [None])
        h = tf.layers.conv2d(x, 64, 5, padding="same", activation=tf.nn.relu)
        h = tf.nn.lrn(tf.nn.max_pool(h, [1, 3, 3, 1], [1, 2, 2, 1], "SAME"), 4, bias=1.0, alpha=0.001 / 9, beta=0.75)
        h = tf.nn.lrn(
            tf.layers.conv2d(h, 64, 5, padding="same", activation=tf.nn.relu), 4, bias=1.0, alpha=0.001 / 9, beta=0.75
        )
        h = tf.layers.flatten(tf.nn.max_pool(h, [1, 3, 3, 1], [1, 2, 2, 1], "SAME"))
        h = tf.layers.dense(tf.layers.dense(h, 384, tf.nn.relu), 192, tf.nn.relu)
        loss = _cross_entropy(tf, y, tf.layers.dense(h, 10))
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        averages = tf.train.ExponentialMovingAverage(0.99)
        with tf.control_dependencies([train]):
            train = averages.apply(tf.trainable_variables())
        feed = {x: _f(0, 32, 24, 24, 3), y: R(1).randint(0, 10, 32)}
        return lambda s: s.run([loss, train], feed)

    return _steps(tf, build)


def transformer_model(tf):
    """Two layers of a decoder-only transformer over words with a tied softmax."""

    def build():
        B, T, V, D, heads = 8, 64, 2000, 128, 4
        x, y = tf.placeholder(tf.int32, [B, T]), tf.placeholder(tf.int32, [B, T])
        table = tf.get_variable("table", [V, D], initializer=tf.random_normal_initializer(stddev=0.02))

        def normalized(h, name):
            with tf.variable_scope(name):
                gain, shift = (
                    tf.get_variable("gain", [D], initializer=tf.ones_initializer()),
                    tf.get_variable("shift", [D]),
                )
            mean, variance = tf.nn.moments(h, [-1], keep_dims=True)
            return (h - mean) * tf.rsqrt(variance + 1e-6) * gain + shift

        def split(h):
            return tf.transpose(tf.reshape(h, [B, T, heads, D // heads]), [0, 2, 1, 3])

        h = tf.gather(table, x) * D**0.5
        mask = tf.matrix_band_part(tf.ones([T, T]), -1, 0)
        for layer in range(2):
            a = normalized(h, "attention%d" % layer)
            q, k, v = (split(tf.layers.dense(a, D, use_bias=False)) for _ in range(3))
            scores = tf.matmul(q, k, transpose_b=True) * (D // heads) ** -0.5 - 1e9 * (1 - mask)
            joined = tf.reshape(tf.transpose(tf.matmul(tf.nn.softmax(scores), v), [0, 2, 1, 3]), [B, T, D])
            h += tf.nn.dropout(tf.layers.dense(joined, D, use_bias=False), keep_prob=0.9)
            f = tf.layers.dense(normalized(h, "forward%d" % layer), 4 * D, tf.nn.relu)
            h += tf.nn.dropout(tf.layers.dense(f, D), keep_prob=0.9)
        logits = tf.matmul(tf.reshape(normalized(h, "last"), [-1, D]), table, transpose_b=True)
        loss = _cross_entropy(tf, tf.reshape(y, [-1]), logits)
        train = tf.train.AdamOptimizer(1e-3, beta2=0.98).minimize(loss)
        feed = {x: R(0).randint(0, V, (B, T)), y: R(1).randint(0, V, (B, T))}
        return lambda s: s.run([loss, train], feed)

    return _steps(tf, build)


def convolutional_lstm(tf):
    """A cell whose products are convolutions, over short films."""

    def build():
        B, T, S, C = 8, 6, 16, 16
        x, y = tf.placeholder(tf.float32, [B, T, S, S, 1]), tf.placeholder(tf.float32, [B, S, S, 1])

        class Cell(tf.nn.rnn_cell.RNNCell):
            state_size = output_size = None

            def __call__(self, inputs, state, scope=None):
                with tf.variable_scope(scope or "cell"):
                    c, h = state
                    gates = tf.layers.conv2d(tf.concat([inputs, h], 3), 4 * C, 3, padding="same")
                i, j, f, o = tf.split(gates, 4, 3)
                c = c * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(j)
                return tf.tanh(c) * tf.sigmoid(o), (c, tf.tanh(c) * tf.sigmoid(o))

        cell, state = Cell(), (tf.zeros([B, S, S, C]), tf.zeros([B, S, S, C]))
        with tf.variable_scope("film", reuse=tf.AUTO_REUSE):
            for t in range(T):
                h, state = cell(x[:, t], state)
        loss = tf.reduce_mean(tf.square(tf.layers.conv2d(h, 1, 1) - y))
        train = tf.train.AdamOptimizer(1e-3).minimize(loss)
        feed = {x: _f(0, B, T, S, S, 1), y: _f(1, B, S, S, 1)}
        return lambda s: s.run([loss, train], feed)

    return _steps(tf, build)


def click_model(tf):
    """A deep part over many embedded features beside a linear one, with tables of a hundred thousand rows."""

    def build():
        B, F, V, D = 512, 20, 100000, 16
        x, y = tf.placeholder(tf.int32, [B, F]), tf.placeholder(tf.float32, [B])
        table, weights = tf.get_variable("table", [V, D]), tf.get_variable("weights", [V, 1])
        h = tf.reshape(tf.nn.embedding_lookup(table, x), [B, F * D])
        for units in (256, 128):
            h = tf.layers.batch_normalization(tf.layers.dense(h, units, tf.nn.relu), training=True)
        logits = tf.squeeze(tf.layers.dense(h, 1), 1) + tf.reduce_sum(tf.nn.embedding_lookup(weights, x), [1, 2])
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=logits))
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            train = tf.train.AdagradOptimizer(0.05).minimize(loss)
        feed = {x: R(0).zipf(1.2, (B, F)) % V, y: R(1).randint(0, 2, B).astype("f")}
        return lambda s: s.run([loss, train], feed)

    return _steps(tf, build)


def sentence_pairs(tf):
    """Two sentences through one bidirectional GRU with lengths, compared by a small network; Adam on the table of words."""

    def build():
        B, T, V, D, H = 64, 20, 10000, 100, 100
        x, y = tf.placeholder(tf.int32, [2 * B, T]), tf.placeholder(tf.int32, [B])
        lengths = tf.placeholder(tf.int32, [2 * B])
        inputs = tf.nn.embedding_lookup(tf.get_variable("table", [V, D]), x)
        cells = [tf.nn.rnn_cell.GRUCell(H) for _ in range(2)]
        _, states = tf.nn.bidirectional_dynamic_rnn(*cells, inputs, lengths, dtype=tf.float32)
        left, right = tf.split(tf.concat(states, 1), 2)
        h = tf.concat([left, right, tf.abs(left - right), left * right], 1)
        loss = _cross_entropy(tf, y, tf.layers.dense(tf.layers.dense(h, 128, tf.nn.relu), 3))
        train = tf.train.AdamOptimizer(1e-3).minimize(loss)
        feed = {x: R(0).randint(0, V, (2 * B, T)), y: R(1).randint(0, 3, B), lengths: R(2).randint(5, T + 1, 2 * B)}
        return lambda s: s.run([loss, train], feed)

    return _steps(tf, build)


def adversarial_images(tf):
    """A generator of transposed convolutions against a discriminator with batch normalization, on images of 32 by 32."""

    def build():
        B = 32
        images, z = tf.placeholder(tf.float32, [B, 32, 32, 3]), tf.random_normal([B, 64])

        def generator():
            h = tf.nn.relu(tf.reshape(tf.layers.dense(z, 4 * 4 * 128), [-1, 4, 4, 128]))
            for units in (64, 32):
                h = tf.layers.conv2d_transpose(h, units, 5, 2, "same")
                h = tf.nn.relu(tf.layers.batch_normalization(h, training=True))
            return tf.tanh(tf.layers.conv2d_transpose(h, 3, 5, 2, "same"))

        def discriminator(h):
            for units in (32, 64, 128):
                h = tf.layers.batch_normalization(tf.layers.conv2d(h, units, 5, 2, "same"), training=True)
                h = tf.nn.leaky_relu(h)
            return tf.layers.dense(tf.layers.flatten(h), 1)

        with tf.variable_scope("generator"):
            fake = generator()
        with tf.variable_scope("discriminator", reuse=tf.AUTO_REUSE):
            on_real, on_fake = discriminator(images), discriminator(fake)

        def entropy(logits, value):
            labels = tf.ones_like(logits) * value
            return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))

        d_loss, g_loss = entropy(on_real, 1.0) + entropy(on_fake, 0.0), entropy(on_fake, 1.0)
        trains = [
            tf.train.AdamOptimizer(2e-4, beta1=0.5).minimize(loss, var_list=tf.trainable_variables(scope))
            for loss, scope in ((d_loss, "discriminator"), (g_loss, "generator"))
        ]
        feed = {images: np.tanh(_f(0, B, 32, 32, 3))}
        return lambda s: s.run([d_loss, g_loss, *trains], feed)

    return _steps(tf, build)


def translation_decoder(tf):
    """An encoder and a decoder that feeds its own words back where the given ones end, written with raw_rnn."""

    def build():
        B, T, V, H = 32, 16, 2000, 128
        x, y = tf.placeholder(tf.int32, [B, T]), tf.placeholder(tf.int32, [B, T])
        table = tf.get_variable("table", [V, H])
        with tf.variable_scope("encoder"):
            _, state = tf.nn.dynamic_rnn(tf.nn.rnn_cell.LSTMCell(H), tf.nn.embedding_lookup(table, x), dtype=tf.float32)
        weights, bias = (
            tf.get_variable("weights", [H, V]),
            tf.get_variable("bias", [V], initializer=tf.zeros_initializer()),
        )
        lengths = tf.fill([B], T)

        def step(time, output, cell_state, _):
            if output is None:
                return time >= lengths, tf.zeros([B, H]), state, tf.zeros([H]), None
            finished = time >= lengths

            def next_input():
                return tf.nn.embedding_lookup(table, tf.argmax(tf.matmul(output, weights) + bias, 1))

            following = tf.cond(tf.reduce_all(finished), lambda: tf.zeros([B, H]), next_input)
            return finished, following, cell_state, output, None

        with tf.variable_scope("decoder"):
            outputs, _, _ = tf.nn.raw_rnn(tf.nn.rnn_cell.LSTMCell(H), step)
        outputs = tf.reshape(tf.transpose(outputs.stack(), [1, 0, 2]), [-1, H])
        loss = _cross_entropy(tf, tf.reshape(y, [-1]), tf.matmul(outputs, weights) + bias)
        train = tf.train.AdamOptimizer(1e-3).minimize(loss)
        feed = {x: R(0).randint(0, V, (B, T)), y: R(1).randint(0, V, (B, T))}
        return lambda s: s.run([loss, train], feed)

    return _steps(tf, build)


ALL = {
    function.__name__: function
    for function in (
        language_model, wide_batches, residual_network, image_classifier, transformer_model,
        convolutional_lstm, click_model, sentence_pairs, adversarial_images, translation_decoder,
    )
}  # fmt: skip
