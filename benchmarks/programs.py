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


def matrix_factorization(tf):
    """Matrix factorization with biases: rows of two tables, Adam on sparse rows."""

    def build():
        users, items, ratings = (
            tf.placeholder(tf.int32, [None]),
            tf.placeholder(tf.int32, [None]),
            tf.placeholder(tf.float32, [None]),
        )
        u = tf.get_variable("u", [5000, 32], initializer=tf.random_normal_initializer(stddev=0.1))
        v = tf.get_variable("v", [2000, 32], initializer=tf.random_normal_initializer(stddev=0.1))
        bu, bv = tf.get_variable("bu", [5000]), tf.get_variable("bv", [2000])
        look = tf.nn.embedding_lookup
        p, q = look(u, users), look(v, items)
        predicted = tf.reduce_sum(p * q, 1) + look(bu, users) + look(bv, items) + 3.0
        loss = tf.reduce_mean(tf.square(predicted - ratings)) + 0.01 * (tf.nn.l2_loss(p) + tf.nn.l2_loss(q)) / 256
        train = tf.train.AdamOptimizer(1e-3).minimize(loss)
        feed = {
            users: R(0).randint(0, 5000, 256),
            items: R(1).randint(0, 2000, 256),
            ratings: R(2).rand(256).astype("f"),
        }
        return lambda session: session.run([loss, train], feed)

    return _steps(tf, build)


def small_resnet(tf):
    """Residual blocks with batch normalization in training mode, Momentum."""

    def build():
        x, labels = tf.placeholder(tf.float32, [None, 16, 16, 3]), tf.placeholder(tf.int32, [None])

        def conv(name, h, units, stride=1):
            return tf.nn.conv2d(
                h, tf.get_variable(name, [3, 3, int(h.shape[-1]), units]), [1, stride, stride, 1], "SAME"
            )

        def norm(name, h):
            c = int(h.shape[-1])
            with tf.variable_scope(name):
                mean, var = tf.nn.moments(h, [0, 1, 2])
                mm = tf.get_variable("mean", [c], initializer=tf.zeros_initializer(), trainable=False)
                tf.add_to_collection("updates", tf.assign_sub(mm, 0.1 * (mm - mean)))
                return tf.nn.batch_normalization(
                    h,
                    mean,
                    var,
                    tf.get_variable("beta", [c], initializer=tf.zeros_initializer()),
                    tf.get_variable("gamma", [c], initializer=tf.ones_initializer()),
                    1e-3,
                )

        h = tf.nn.relu(norm("n0", conv("c0", x, 16)))
        for i, units in enumerate((16, 32)):
            stride = 1 if units == 16 else 2
            short = h if stride == 1 else conv("s%d" % i, h, units, 2)
            y = tf.nn.relu(norm("a%d" % i, conv("ca%d" % i, h, units, stride)))
            h = tf.nn.relu(short + norm("b%d" % i, conv("cb%d" % i, y, units)))
        logits = _dense(tf, "out", tf.reduce_mean(h, [1, 2]), 10)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
        with tf.control_dependencies(tf.get_collection("updates")):
            train = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss)
        feed = {x: R(0).randn(16, 16, 16, 3).astype("f"), labels: R(1).randint(0, 10, 16)}
        return lambda session: session.run([loss, train], feed)

    return _steps(tf, build)


def bidirectional(tf):
    """A bidirectional GRU over sequences with lengths, dropout, clipped gradients."""

    def build():
        x, lengths, labels = (
            tf.placeholder(tf.float32, [None, 20, 32]),
            tf.placeholder(tf.int32, [None]),
            tf.placeholder(tf.int32, [None]),
        )
        cells = [tf.nn.rnn_cell.DropoutWrapper(tf.nn.rnn_cell.GRUCell(48), output_keep_prob=0.8) for _ in range(2)]
        _, states = tf.nn.bidirectional_dynamic_rnn(*cells, x, sequence_length=lengths, dtype=tf.float32)
        logits = _dense(tf, "out", tf.nn.dropout(tf.concat(states, 1), 0.5), 5)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
        v = tf.trainable_variables()
        g, _ = tf.clip_by_global_norm(tf.gradients(loss, v), 5.0)
        train = tf.train.AdamOptimizer(1e-3).apply_gradients(zip(g, v))
        feed = {x: R(0).randn(16, 20, 32).astype("f"), lengths: R(1).randint(3, 21, 16), labels: R(2).randint(0, 5, 16)}
        return lambda session: session.run([loss, train], feed)

    return _steps(tf, build)


def ctc(tf):
    """A recurrent network with a CTC loss."""

    def build():
        x, lengths, labels = (
            tf.placeholder(tf.float32, [None, 30, 26]),
            tf.placeholder(tf.int32, [None]),
            tf.sparse_placeholder(tf.int32),
        )
        h, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.BasicLSTMCell(64), x, sequence_length=lengths, dtype=tf.float32)
        logits = tf.reshape(_dense(tf, "out", tf.reshape(h, [-1, 64]), 20), [-1, 30, 20])
        loss = tf.reduce_mean(tf.nn.ctc_loss(labels, tf.transpose(logits, [1, 0, 2]), lengths))
        train = tf.train.MomentumOptimizer(0.01, 0.9).minimize(loss)
        idx = np.array([[b, i] for b in range(8) for i in range(5)])
        feed = {
            x: R(0).randn(8, 30, 26).astype("f"),
            lengths: R(1).randint(20, 31, 8),
            labels: (idx, R(2).randint(0, 19, 40), [8, 5]),
        }
        return lambda session: session.run([loss, train], feed)

    return _steps(tf, build)


def seq2seq(tf):
    """An encoder and a decoder with attention over the encoder's outputs, in a loop of cells written by hand."""

    def build():
        source, target = tf.placeholder(tf.int32, [None, 15]), tf.placeholder(tf.int32, [None, 12])
        table = tf.get_variable("table", [2000, 32])
        memory, state = tf.nn.dynamic_rnn(
            tf.nn.rnn_cell.GRUCell(48), tf.nn.embedding_lookup(table, source), dtype=tf.float32, scope="enc"
        )
        cell = tf.nn.rnn_cell.GRUCell(48)
        inputs = tf.unstack(tf.nn.embedding_lookup(table, target), axis=1)
        outputs = []
        with tf.variable_scope("dec", reuse=tf.AUTO_REUSE):
            w = tf.get_variable("w", [48, 48])
            for each in inputs:
                weights = tf.nn.softmax(tf.reduce_sum(memory * tf.expand_dims(tf.matmul(state, w), 1), 2))
                context = tf.reduce_sum(memory * tf.expand_dims(weights, 2), 1)
                output, state = cell(tf.concat([each, context], 1), state)
                outputs.append(output)
        logits = tf.reshape(_dense(tf, "out", tf.reshape(tf.stack(outputs, 1), [-1, 48]), 500), [-1, 12, 500])
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=target % 500, logits=logits))
        train = tf.train.AdamOptimizer(1e-3).minimize(loss)
        feed = {source: R(0).randint(0, 2000, (16, 15)), target: R(1).randint(0, 2000, (16, 12))}
        return lambda session: session.run([loss, train], feed)

    return _steps(tf, build)


def streaming_metrics(tf):
    """Evaluation with streaming accuracy, precision, recall, AUC and mean."""

    def build():
        x, labels = tf.placeholder(tf.float32, [None, 32]), tf.placeholder(tf.int64, [None])
        logits = _dense(tf, "out", _dense(tf, "h", x, 64, tf.nn.relu), 2)
        p = tf.nn.softmax(logits)[:, 1]
        predicted = tf.argmax(logits, 1)
        updates = [
            tf.metrics.accuracy(labels, predicted)[1],
            tf.metrics.precision(labels, predicted)[1],
            tf.metrics.recall(labels, predicted)[1],
            tf.metrics.auc(labels, p)[1],
            tf.metrics.mean(p)[1],
            tf.metrics.root_mean_squared_error(tf.cast(labels, tf.float32), p)[1],
        ]
        feed = {x: R(0).randn(128, 32).astype("f"), labels: R(1).randint(0, 2, 128)}
        started = []

        def work(session):
            if not started:
                session.run(tf.local_variables_initializer())
                started.append(1)
            session.run(updates, feed)

        return work

    return _steps(tf, build)


def dropout_mlp(tf):
    """A network with dropout at each layer, Adagrad, and weight decay."""

    def build():
        x, labels = tf.placeholder(tf.float32, [None, 256]), tf.placeholder(tf.int32, [None])
        h = x
        for i in range(3):
            h = tf.nn.dropout(_dense(tf, "h%d" % i, h, 256, tf.nn.elu), 0.8)
        loss = tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=_dense(tf, "out", h, 10))
        )
        loss += 1e-4 * tf.add_n([tf.nn.l2_loss(v) for v in tf.trainable_variables()])
        train = tf.train.AdagradOptimizer(0.01).minimize(loss)
        feed = {x: R(0).randn(64, 256).astype("f"), labels: R(1).randint(0, 10, 64)}
        return lambda session: session.run([loss, train], feed)

    return _steps(tf, build)


def queue_input(tf):
    """A model fed by a queue whose batches have no static size."""

    def build():
        given, wanted = tf.placeholder(tf.float32, [None, 64]), tf.placeholder(tf.int32, [None])
        queue = tf.FIFOQueue(32, [tf.float32, tf.int32], shapes=[[64], []])
        put = queue.enqueue_many([given, wanted])
        x, labels = queue.dequeue_up_to(32)
        h = x
        for i in range(3):
            h = _dense(tf, "h%d" % i, h, 64, tf.nn.tanh)
        loss = tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=_dense(tf, "out", h, 10))
        )
        train = tf.train.RMSPropOptimizer(0.01).minimize(loss)
        feed = {given: R(0).randn(32, 64).astype("f"), wanted: R(1).randint(0, 10, 32)}

        def work(session):
            session.run(put, feed)
            session.run([loss, train])

        return work

    return _steps(tf, build)


def hessian_vector(tf):
    """Products of the Hessian with a vector: second derivatives of a network."""

    def build():
        x = tf.placeholder(tf.float32, [None, 64])
        h = _dense(tf, "h2", _dense(tf, "h1", x, 128, tf.tanh), 64, tf.nn.softplus)
        loss = tf.reduce_mean(tf.square(_dense(tf, "out", h, 1)))
        v = tf.trainable_variables()
        g = tf.gradients(loss, v)
        direction = [tf.ones_like(each) for each in v]
        products = tf.gradients(tf.add_n([tf.reduce_sum(a * b) for a, b in zip(g, direction)]), v)
        train = tf.train.GradientDescentOptimizer(1e-3).apply_gradients(zip(products, v))
        feed = {x: R(0).randn(64, 64).astype("f")}
        return lambda session: session.run([loss, train], feed)

    return _steps(tf, build)


ALL = {
    name: fn
    for name, fn in list(globals().items())
    if callable(fn) and not name.startswith("_") and getattr(fn, "__module__", None) == __name__
}
