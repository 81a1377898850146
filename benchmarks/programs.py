"""Programs as people write them: whole training steps in TensorFlow 1 style, made of the parts real repositories use.

Run with `run.py --module programs`. Each takes the v1 module and returns (steps per second, "steps/s"). They are samples of a
kind, not the kind itself: speed that holds only for these is worth nothing.
"""

import numpy as np
from workloads import _rate

R = np.random.RandomState


def _steps(tf, build, seconds=3.0, runs=1):
    """Steps per second of work(session), which `build()` returns."""
    with tf.Graph().as_default():
        tf.set_random_seed(7)
        work = build()
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            return _rate(lambda: work(session), runs, seconds), "steps/s"


def word2vec(tf):
    """Skip-gram with nce_loss: sampled rows of two large tables, plain descent."""

    def build():
        center, context = tf.placeholder(tf.int32, [128]), tf.placeholder(tf.int32, [128, 1])
        table = tf.Variable(tf.random_uniform([50000, 128], -1.0, 1.0))
        weights, biases = tf.Variable(tf.truncated_normal([50000, 128], stddev=0.09)), tf.Variable(tf.zeros([50000]))
        loss = tf.reduce_mean(
            tf.nn.nce_loss(weights, biases, context, tf.nn.embedding_lookup(table, center), 64, 50000)
        )
        train = tf.train.GradientDescentOptimizer(1.0).minimize(loss)
        feed = {center: R(0).randint(0, 50000, 128), context: R(1).randint(0, 50000, (128, 1))}
        return lambda session: session.run([loss, train], feed)

    return _steps(tf, build)


def dynamic_rnn(tf):
    """Two LSTM layers over sequences of different lengths, then a classifier, with Adam."""

    def build():
        x, lengths, labels = (
            tf.placeholder(tf.float32, [None, 40, 64]),
            tf.placeholder(tf.int32, [None]),
            tf.placeholder(tf.int32, [None]),
        )
        cells = tf.nn.rnn_cell.MultiRNNCell([tf.nn.rnn_cell.LSTMCell(128) for _ in range(2)])
        outputs, _ = tf.nn.dynamic_rnn(cells, x, sequence_length=lengths, dtype=tf.float32)
        w = tf.get_variable("w", [128, 10])
        loss = tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(
                labels=labels, logits=tf.matmul(tf.reduce_mean(outputs, 1), w)
            )
        )
        train = tf.train.AdamOptimizer(1e-3).minimize(loss)
        feed = {
            x: R(0).randn(32, 40, 64).astype("f"),
            lengths: R(1).randint(5, 41, 32),
            labels: R(2).randint(0, 10, 32),
        }
        return lambda session: session.run([loss, train], feed)

    return _steps(tf, build)


def _dense(tf, name, x, units, activation=None):
    with tf.variable_scope(name):
        w = tf.get_variable("w", [int(x.shape[-1]), units], initializer=tf.random_normal_initializer(stddev=0.05))
        y = tf.nn.xw_plus_b(x, w, tf.get_variable("b", [units], initializer=tf.zeros_initializer()))
        return y if activation is None else activation(y)


def vae(tf):
    """A variational autoencoder: random numbers inside of the step."""

    def build():
        x = tf.placeholder(tf.float32, [None, 784])
        h = _dense(tf, "h", x, 256, tf.nn.relu)
        mean, log_scale = _dense(tf, "mean", h, 32), _dense(tf, "scale", h, 32)
        z = mean + tf.exp(log_scale) * tf.random_normal(tf.shape(mean))
        logits = _dense(tf, "out", _dense(tf, "d", z, 256, tf.nn.relu), 784)
        likelihood = tf.reduce_sum(tf.nn.sigmoid_cross_entropy_with_logits(labels=x, logits=logits), 1)
        loss = tf.reduce_mean(likelihood - 0.5 * tf.reduce_sum(1 + 2 * log_scale - mean**2 - tf.exp(2 * log_scale), 1))
        train = tf.train.AdamOptimizer(1e-3).minimize(loss)
        feed = {x: R(0).rand(64, 784).astype("f")}
        return lambda session: session.run([loss, train], feed)

    return _steps(tf, build)


def gan(tf):
    """Transposed convolutions, dropout and two optimizers that take turns."""

    def build():
        images = tf.placeholder(tf.float32, [16, 28, 28, 1])

        def generator(z):
            with tf.variable_scope("g"):
                h = tf.reshape(_dense(tf, "in", z, 7 * 7 * 32, tf.nn.relu), [16, 7, 7, 32])
                h = tf.nn.relu(
                    tf.nn.conv2d_transpose(h, tf.get_variable("k1", [5, 5, 16, 32]), [16, 14, 14, 16], [1, 2, 2, 1])
                )
                return tf.sigmoid(
                    tf.nn.conv2d_transpose(h, tf.get_variable("k2", [5, 5, 1, 16]), [16, 28, 28, 1], [1, 2, 2, 1])
                )

        def discriminator(x):
            with tf.variable_scope("d", reuse=tf.AUTO_REUSE):
                h = tf.nn.leaky_relu(tf.nn.conv2d(x, tf.get_variable("k1", [5, 5, 1, 16]), [1, 2, 2, 1], "SAME"))
                h = tf.nn.leaky_relu(tf.nn.conv2d(h, tf.get_variable("k2", [5, 5, 16, 32]), [1, 2, 2, 1], "SAME"))
                return _dense(tf, "out", tf.nn.dropout(tf.reshape(h, [16, 7 * 7 * 32]), 0.7), 1)

        real, fake = discriminator(images), discriminator(generator(tf.random_uniform([16, 64], -1, 1)))
        entropy = tf.nn.sigmoid_cross_entropy_with_logits
        d_loss = tf.reduce_mean(
            entropy(labels=tf.ones_like(real), logits=real) + entropy(labels=tf.zeros_like(fake), logits=fake)
        )
        g_loss = tf.reduce_mean(entropy(labels=tf.ones_like(fake), logits=fake))
        d_train = tf.train.AdamOptimizer(2e-4, 0.5).minimize(d_loss, var_list=tf.trainable_variables("d"))
        g_train = tf.train.AdamOptimizer(2e-4, 0.5).minimize(g_loss, var_list=tf.trainable_variables("g"))
        feed = {images: R(0).rand(16, 28, 28, 1).astype("f")}

        def work(session):
            session.run([d_loss, d_train], feed)
            session.run([g_loss, g_train])

        return work

    return _steps(tf, build)


def wide_linear(tf):
    """Sparse features of a wide linear model with Ftrl."""

    def build():
        ids, weights, labels = (
            tf.sparse_placeholder(tf.int64),
            tf.sparse_placeholder(tf.float32),
            tf.placeholder(tf.float32, [None, 1]),
        )
        table = tf.get_variable("t", [200000, 1], initializer=tf.zeros_initializer())
        logits = tf.nn.embedding_lookup_sparse(table, ids, weights, combiner="sum") + tf.get_variable("b", [1])
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))
        train = tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01).minimize(loss)
        rows = np.stack([np.repeat(np.arange(256), 20), np.tile(np.arange(20), 256)], 1)
        feed = {
            ids: (rows, R(0).randint(0, 200000, 5120), [256, 20]),
            weights: (rows, R(1).rand(5120).astype("f"), [256, 20]),
            labels: R(2).randint(0, 2, (256, 1)).astype("f"),
        }
        return lambda session: session.run([loss, train], feed)

    return _steps(tf, build)


def policy_gradient(tf):
    """Reinforcement learning: 50 tiny runs with one observation, then one update."""

    def build():
        observation, action, reward = (
            tf.placeholder(tf.float32, [None, 8]),
            tf.placeholder(tf.int32, [None]),
            tf.placeholder(tf.float32, [None]),
        )
        logits = _dense(tf, "out", _dense(tf, "h", observation, 64, tf.tanh), 4)
        sample = tf.squeeze(tf.multinomial(logits, 1), 1)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=action, logits=logits) * reward)
        train = tf.train.AdamOptimizer(1e-2).minimize(loss)
        seen, done, earned = R(0).randn(50, 8).astype("f"), R(1).randint(0, 4, 50), R(2).randn(50).astype("f")

        def work(session):
            for row in seen:
                session.run(sample, {observation: row[None]})
            session.run([loss, train], {observation: seen, action: done, reward: earned})

        return work

    return _steps(tf, build)


def gradient_penalty(tf):
    """A critic with a penalty on the norm of its gradient: second derivatives."""

    def build():
        real = tf.placeholder(tf.float32, [64, 128])

        def critic(x):
            with tf.variable_scope("c", reuse=tf.AUTO_REUSE):
                return _dense(
                    tf, "out", _dense(tf, "h2", _dense(tf, "h1", x, 256, tf.nn.leaky_relu), 256, tf.nn.leaky_relu), 1
                )

        fake = tf.random_normal([64, 128])
        mixed = real + tf.random_uniform([64, 1]) * (fake - real)
        slope = tf.sqrt(tf.reduce_sum(tf.square(tf.gradients(critic(mixed), mixed)[0]), 1) + 1e-12)
        loss = (
            tf.reduce_mean(critic(fake)) - tf.reduce_mean(critic(real)) + 10.0 * tf.reduce_mean(tf.square(slope - 1.0))
        )
        train = tf.train.RMSPropOptimizer(5e-5).minimize(loss)
        feed = {real: R(0).randn(64, 128).astype("f")}
        return lambda session: session.run([loss, train], feed)

    return _steps(tf, build)


def eager_tape(tf):
    """Eager mode: a small network trained with GradientTape, op by op."""
    tf.enable_eager_execution()
    shapes = [(64, 64), (64,), (64, 10), (10,)]
    variables = [tf.Variable(R(i).randn(*shape).astype("f") * 0.1, use_resource=True) for i, shape in enumerate(shapes)]
    x, labels = tf.constant(R(0).randn(32, 64).astype("f")), tf.constant(R(1).randint(0, 10, 32))
    optimizer = tf.train.AdamOptimizer(1e-3)

    def work():
        with tf.GradientTape() as tape:
            w1, b1, w2, b2 = variables
            logits = tf.matmul(tf.nn.relu(tf.matmul(x, w1) + b1), w2) + b2
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return float(loss)

    return _rate(work, 1, 3.0), "steps/s"


ALL = {
    name: fn
    for name, fn in list(globals().items())
    if callable(fn) and not name.startswith("_") and getattr(fn, "__module__", None) == __name__
}
