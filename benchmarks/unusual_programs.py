"""A seventh set of programs: numerical ones, most in float64, and networks with unusual parts. Run with `run.py --module unusual_programs`."""

import itertools

import numpy as np
from programs import R, _steps


def _f(seed, *shape):
    return R(seed).randn(*shape).astype("f")


def _d(seed, *shape):
    return R(seed).randn(*shape)


def _cross_entropy(tf, labels, logits):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


def _uniform(tf, seed):
    return tf.glorot_uniform_initializer(seed=seed)


def mandelbrot(tf):
    """Complex numbers that are iterated by assigns, and counts where they diverge."""

    def build():
        Y, X = np.mgrid[-1.3:1.3:0.02, -2:1:0.02]
        Z = X + 1j * Y
        xs = tf.constant(Z.astype(np.complex64))
        zs, ns = tf.Variable(xs), tf.Variable(tf.zeros_like(xs, tf.float32))
        new = tf.where(tf.abs(zs) < 4, zs * zs + xs, zs)
        not_diverged = tf.abs(new) < 4
        step = tf.group(zs.assign(new), ns.assign_add(tf.cast(not_diverged, tf.float32)))

        def work(s):
            for _ in range(5):
                s.run(step)
            return s.run(ns)[::9, ::9]

        return work

    return _steps(tf, build)


def rain_drops(tf):
    """The wave equation of the tutorial: a Laplacian by convolution, tf.group of two assigns."""

    def build():
        kernel = np.array([[0.5, 1.0, 0.5], [1.0, -6.0, 1.0], [0.5, 1.0, 0.5]], "f").reshape(3, 3, 1, 1)
        eps, damping = tf.placeholder(tf.float32, ()), tf.placeholder(tf.float32, ())
        U, Ut = tf.Variable(_f(0, 100, 100)), tf.Variable(np.zeros([100, 100], "f"))
        x = tf.expand_dims(tf.expand_dims(U, 0), -1)
        lap = tf.nn.depthwise_conv2d(x, tf.constant(kernel), [1, 1, 1, 1], padding="SAME")[0, :, :, 0]
        U_, Ut_ = U + eps * Ut, Ut + eps * (lap - damping * Ut)
        step = tf.group(U.assign(U_), Ut.assign(Ut_))

        def work(s):
            for _ in range(10):
                step.run({eps: 0.03, damping: 0.04}, s)
            return U.eval(s)[::7, ::7]

        return work

    return _steps(tf, build)


def n_body(tf):
    """Pairwise forces in float64, a leapfrog inside a while_loop."""

    def build():
        n = 48
        position, velocity = tf.Variable(_d(0, n, 3)), tf.Variable(0.1 * _d(1, n, 3))
        mass = tf.constant(R(2).rand(n) + 0.1)

        def acceleration(p):
            d = tf.expand_dims(p, 0) - tf.expand_dims(p, 1)
            r2 = tf.reduce_sum(d * d, -1) + 0.01
            inverse = tf.pow(r2, -1.5)
            return tf.einsum("ij,ijk->ik", inverse * mass, d)

        def body(i, p, v):
            v = v + 0.005 * acceleration(p)
            p = p + 0.01 * v
            return i + 1, p, v + 0.005 * acceleration(p)

        _, p, v = tf.while_loop(lambda i, p, v: i < 10, body, [0, position, velocity])
        energy = tf.reduce_sum(mass * tf.reduce_sum(v * v, 1))
        step = tf.group(position.assign(p), velocity.assign(v))
        return lambda s: s.run([energy, step])[0]

    return _steps(tf, build)


def cavity_flow(tf):
    """Navier-Stokes in a cavity: a pressure solver as an inner loop of Jacobi steps, boundaries by concat and pad."""

    def build():
        n, dt, rho, nu = 41, 0.001, 1.0, 0.1
        dx = 2.0 / (n - 1)
        u, v, p = (tf.Variable(np.zeros([n, n]), dtype=tf.float64) for _ in range(3))

        def central(f):
            return (f[1:-1, 2:] - f[1:-1, :-2]) / (2 * dx), (f[2:, 1:-1] - f[:-2, 1:-1]) / (2 * dx)

        def laplace(f):
            return (f[1:-1, 2:] + f[1:-1, :-2] + f[2:, 1:-1] + f[:-2, 1:-1] - 4 * f[1:-1, 1:-1]) / dx**2

        ux, uy = central(u)
        vx, vy = central(v)
        b = rho * ((ux + vy) / dt - ux**2 - 2 * uy * vx - vy**2)

        def jacobi(i, p):
            inner = (p[1:-1, 2:] + p[1:-1, :-2] + p[2:, 1:-1] + p[:-2, 1:-1]) / 4 - dx**2 / 4 * b
            inner = tf.concat([inner[:1], inner], 0)
            inner = tf.concat([inner, tf.zeros([1, n - 2], tf.float64)], 0)
            return i + 1, tf.concat([inner[:, :1], inner, inner[:, -1:]], 1)

        _, pressure = tf.while_loop(lambda i, p: i < 30, jacobi, [0, p])
        px, py = central(pressure)
        ui, vi = u[1:-1, 1:-1], v[1:-1, 1:-1]
        un = ui - dt * (ui * ux + vi * uy) - dt / rho * px + nu * dt * laplace(u)
        vn = vi - dt * (ui * vx + vi * vy) - dt / rho * py + nu * dt * laplace(v)
        un = tf.concat([tf.pad(un, [[1, 0], [1, 1]]), tf.ones([1, n], tf.float64)], 0)
        vn = tf.pad(vn, [[1, 1], [1, 1]])
        step = tf.group(u.assign(un), v.assign(vn), p.assign(pressure))
        speed = tf.reduce_sum(un * un + vn * vn)
        return lambda s: s.run([speed, step])[0]

    return _steps(tf, build)


def physics_informed(tf):
    """A network in float64 that solves Burgers' equation: second derivatives with respect to its inputs."""

    def build():
        layers = [2, 20, 20, 20, 20, 1]
        ws = [tf.Variable(_d(i, a, b) / np.sqrt(a)) for i, (a, b) in enumerate(itertools.pairwise(layers))]
        bs = [tf.Variable(np.zeros([1, b])) for b in layers[1:]]
        l1 = tf.Variable([0.0], dtype=tf.float64)
        x, t, u = (tf.placeholder(tf.float64, [None, 1]) for _ in range(3))

        def net(x, t):
            h = 2.0 * (tf.concat([x, t], 1) + 1.0) / 2.0 - 1.0
            for w, b in zip(ws[:-1], bs[:-1]):
                h = tf.tanh(tf.add(tf.matmul(h, w), b))
            return tf.add(tf.matmul(h, ws[-1]), bs[-1])

        out = net(x, t)
        ut, ux = tf.gradients(out, t)[0], tf.gradients(out, x)[0]
        uxx = tf.gradients(ux, x)[0]
        f = ut + l1 * out * ux - 0.01 * uxx
        loss = tf.reduce_mean(tf.square(u - out)) + tf.reduce_mean(tf.square(f))
        train = tf.train.AdamOptimizer().minimize(loss)
        feed = {x: R(0).rand(200, 1), t: R(1).rand(200, 1), u: R(2).rand(200, 1)}
        return lambda s: s.run([loss, train], feed)[0]

    return _steps(tf, build)


def deep_bsde(tf):
    """A stochastic differential equation: a small normalized network for each time step, in float64."""

    def build():
        n, d = 12, 10
        dw, x = tf.placeholder(tf.float64, [None, d, n]), tf.placeholder(tf.float64, [None, d, n + 1])
        training = tf.placeholder(tf.bool)

        def normal(h, name):
            with tf.variable_scope(name):
                beta = tf.get_variable("b", h.shape[-1:], tf.float64, tf.random_normal_initializer(0.0, 0.1, seed=1))
                gamma = tf.get_variable("g", h.shape[-1:], tf.float64, tf.random_uniform_initializer(0.1, 0.5, seed=2))
                mm = tf.get_variable("m", h.shape[-1:], tf.float64, tf.zeros_initializer(), trainable=False)
                mv = tf.get_variable("v", h.shape[-1:], tf.float64, tf.ones_initializer(), trainable=False)
                mean, variance = tf.nn.moments(h, [0])
                updates.append(mm.assign(0.99 * mm + 0.01 * mean))
                updates.append(mv.assign(0.99 * mv + 0.01 * variance))
                mean, variance = tf.cond(training, lambda: (mean, variance), lambda: (mm + 0.0, mv + 0.0))
                return tf.nn.batch_normalization(h, mean, variance, beta, gamma, 1e-6)

        updates = []
        y = tf.Variable([1.0], dtype=tf.float64) * tf.ones([tf.shape(dw)[0], 1], tf.float64)
        z = tf.matmul(
            tf.ones([tf.shape(dw)[0], 1], tf.float64), tf.get_variable("z0", [1, d], tf.float64, tf.zeros_initializer())
        )
        for i in range(n - 1):
            y = (
                y
                - 0.05 * (-0.05 * tf.reduce_sum(tf.square(z), 1, keepdims=True))
                + tf.reduce_sum(z * dw[:, :, i], 1, keepdims=True)
            )
            with tf.variable_scope(f"t{i}"):
                h = normal(x[:, :, i + 1], "n0")
                for j, units in enumerate((d + 10, d + 10)):
                    w = tf.get_variable(
                        f"w{j}", [h.shape[-1], units], tf.float64, tf.random_normal_initializer(0, 0.2, seed=j)
                    )
                    h = tf.nn.relu(normal(tf.matmul(h, w), f"n{j + 1}"))
                w = tf.get_variable("w", [h.shape[-1], d], tf.float64, tf.random_normal_initializer(0, 0.2, seed=5))
                z = normal(tf.matmul(h, w), "out") / d
        delta = y - tf.log(0.5 * (1 + tf.reduce_sum(tf.square(x[:, :, -1]), 1, keepdims=True)))
        loss = tf.reduce_mean(tf.where(tf.abs(delta) < 50.0, tf.square(delta), 100.0 * tf.abs(delta) - 2500.0))
        step = tf.train.get_or_create_global_step()
        rate = tf.train.piecewise_constant(step, [100, 200], [1e-2, 1e-3, 1e-4])
        v = tf.trainable_variables()
        apply = tf.train.AdamOptimizer(rate).apply_gradients(
            zip(tf.gradients(loss, v, gate_gradients=True), v), global_step=step
        )
        train = tf.group(apply, *updates)
        feed = {dw: 0.2 * _d(0, 64, d, n), x: np.cumsum(0.2 * _d(1, 64, d, n + 1), 2), training: True}
        return lambda s: s.run([loss, train], feed)[0]

    return _steps(tf, build)


def hamiltonian_sampler(tf):
    """Hamiltonian Monte Carlo for logistic regression: gradients inside a loop, acceptance by where."""

    def build():
        X, y = _d(0, 100, 8), (R(1).rand(100) > 0.5).astype("d")
        state = tf.Variable(np.zeros([16, 8]))
        accepted = tf.Variable(0.0, dtype=tf.float64)

        def energy(w):
            logits = tf.matmul(w, tf.constant(X), transpose_b=True)
            nll = tf.reduce_sum(tf.nn.softplus(logits) - tf.constant(y) * logits, 1)
            return nll + 0.5 * tf.reduce_sum(w * w, 1)

        momentum = tf.random_normal([16, 8], dtype=tf.float64, seed=4)

        def leap(i, q, p):
            p = p - 0.025 * tf.gradients(energy(q), q)[0]
            q = q + 0.05 * p
            return i + 1, q, p - 0.025 * tf.gradients(energy(q), q)[0]

        _, q, p = tf.while_loop(lambda i, q, p: i < 8, leap, [0, state, momentum], back_prop=False)
        old, new = (energy(a) + 0.5 * tf.reduce_sum(b * b, 1) for a, b in ((state, momentum), (q, p)))
        accept = tf.log(tf.random_uniform([16], dtype=tf.float64, seed=5)) < old - new
        chosen = tf.where(tf.tile(accept[:, None], [1, 8]), q, tf.identity(state))
        step = state.assign(chosen)
        count = accepted.assign_add(tf.reduce_mean(tf.cast(accept, tf.float64)))
        return lambda s: s.run([step, count])

    return _steps(tf, build)


def mixture_by_em(tf):
    """Expectation and maximization of Gaussians with full covariances in float64, by assigns."""

    def build():
        n, k, d = 500, 6, 4
        data = tf.constant(_d(0, n, d) + R(5).randint(0, 3, (n, 1)) * 3.0)
        means = tf.Variable(_d(1, k, d))
        covs = tf.Variable(np.tile(np.eye(d), [k, 1, 1]))
        weights = tf.Variable(np.full(k, 1.0 / k))
        diff = data[:, None, :] - means[None]
        chol = tf.linalg.cholesky(covs + 1e-3 * tf.eye(d, dtype=tf.float64))
        white = tf.linalg.triangular_solve(chol, tf.transpose(diff, [1, 2, 0]))
        quad = tf.reduce_sum(tf.square(white), 1)
        logdet = tf.reduce_sum(tf.log(tf.matrix_diag_part(chol)), 1)
        logp = tf.transpose(-0.5 * quad - logdet[:, None] + tf.log(weights)[:, None])
        norm = tf.reduce_logsumexp(logp, 1, keepdims=True)
        gamma = tf.exp(logp - norm)
        sums = tf.reduce_sum(gamma, 0)
        mu = tf.matmul(gamma, data, transpose_a=True) / sums[:, None]
        centered = data[:, None, :] - mu[None]
        cov = tf.einsum("nk,nkd,nke->kde", gamma, centered, centered) / sums[:, None, None]
        step = tf.group(means.assign(mu), covs.assign(cov), weights.assign(sums / n))
        likelihood = tf.reduce_mean(norm)
        return lambda s: s.run([likelihood, step])[0]

    return _steps(tf, build)


def location_attention(tf):
    """A speech decoder: dropout before each step, attention with convolved alignments, a while_loop with three arrays."""

    def build():
        B, T, N, H, M = 8, 30, 20, 48, 20
        text, mel = tf.placeholder(tf.int32, [B, T]), tf.placeholder(tf.float32, [B, N, M])
        init = tf.random_uniform_initializer(-0.1, 0.1, seed=2)
        with tf.variable_scope("t", initializer=init):
            memory = tf.layers.conv1d(
                tf.nn.embedding_lookup(tf.get_variable("e", [60, H]), text), H, 5, padding="same", activation=tf.nn.relu
            )
            keys = tf.layers.dense(memory, H, use_bias=False)
            w1, w2, wq, wl, v = (
                tf.get_variable(n, s)
                for n, s in (("w1", [M, 32]), ("w2", [32, 32]), ("wq", [H, H]), ("wl", [8, H]), ("v", [H]))
            )
            filters = tf.get_variable("f", [7, 1, 8])
            wo, ws = tf.get_variable("wo", [2 * H, M]), tf.get_variable("ws", [2 * H, 1])
            cell = tf.nn.rnn_cell.MultiRNNCell([tf.nn.rnn_cell.GRUCell(H) for _ in range(2)])
            frames = tf.TensorArray(tf.float32, N).unstack(tf.transpose(mel, [1, 0, 2]))
            outs, stops, aligns = (
                tf.TensorArray(tf.float32, N),
                tf.TensorArray(tf.float32, N),
                tf.TensorArray(tf.float32, N),
            )
            zero = cell.zero_state(B, tf.float32)

            def body(i, frame, state, context, total, outs, stops, aligns):
                pre = tf.nn.dropout(tf.nn.relu(tf.matmul(frame, w1)), rate=0.5, seed=1)
                pre = tf.nn.dropout(tf.nn.relu(tf.matmul(pre, w2)), rate=0.5, seed=2)
                h, state = cell(tf.concat([pre, context], 1), state)
                location = tf.nn.conv1d(tf.expand_dims(total, 2), filters, 1, "SAME")
                location = tf.reshape(tf.matmul(tf.reshape(location, [-1, 8]), wl), [B, T, H])
                scores = tf.reduce_sum(v * tf.tanh(keys + tf.expand_dims(tf.matmul(h, wq), 1) + location), 2)
                alignment = tf.nn.softmax(scores)
                context = tf.reduce_sum(tf.expand_dims(alignment, 2) * memory, 1)
                both = tf.concat([h, context], 1)
                return (
                    i + 1,
                    frames.read(i),
                    state,
                    context,
                    total + alignment,
                    outs.write(i, tf.matmul(both, wo)),
                    stops.write(i, tf.matmul(both, ws)),
                    aligns.write(i, alignment),
                )

            start = (0, tf.zeros([B, M]), zero, tf.zeros([B, H]), tf.zeros([B, T]), outs, stops, aligns)
            end = tf.while_loop(lambda i, *_: i < N, body, start)
        out = tf.transpose(end[5].stack(), [1, 0, 2])
        stop = tf.transpose(tf.squeeze(end[6].stack(), 2))
        loss = tf.reduce_mean(tf.abs(out - mel)) + tf.reduce_mean(
            tf.nn.sigmoid_cross_entropy_with_logits(logits=stop, labels=tf.zeros_like(stop))
        )
        v = tf.trainable_variables()
        grads, _ = tf.clip_by_global_norm(tf.gradients(loss, v), 1.0)
        train = tf.train.AdamOptimizer(1e-3).apply_gradients(zip(grads, v))
        feed = {text: R(0).randint(0, 60, (B, T)), mel: _f(1, B, N, M)}
        return lambda s: s.run([loss, train], feed)[0]

    return _steps(tf, build)


def interest_network(tf):
    """Recommendation with attention over a history: masks, a learned activation with running moments, partitioned tables."""

    def build():
        B, T, D = 64, 20, 16
        user, item, cat = (tf.placeholder(tf.int32, [None]) for _ in range(3))
        hist, hist_cat, length, y = (
            tf.placeholder(tf.int32, [None, T]),
            tf.placeholder(tf.int32, [None, T]),
            tf.placeholder(tf.int32, [None]),
            tf.placeholder(tf.float32, [None]),
        )
        init = tf.random_uniform_initializer(-0.1, 0.1, seed=3)
        items = [tf.get_variable(f"items{i}", [1000, D], initializer=init) for i in range(3)]
        cats = tf.get_variable("cats", [100, D], initializer=init)
        users = tf.get_variable("users", [5000, D], initializer=init)
        bias = tf.get_variable("bias", [3000], initializer=tf.zeros_initializer())

        def of(i, c):
            return tf.concat(
                [tf.nn.embedding_lookup(items, i, partition_strategy="mod"), tf.nn.embedding_lookup(cats, c)], -1
            )

        def dice(h, name):
            alpha = tf.get_variable(name, h.shape[-1:], initializer=tf.zeros_initializer())
            normed = tf.layers.batch_normalization(h, center=False, scale=False, epsilon=1e-9, training=True)
            p = tf.sigmoid(normed)
            return alpha * (1.0 - p) * h + p * h

        query, keys = of(item, cat), of(hist, hist_cat)
        q = tf.tile(query[:, None], [1, T, 1])
        a = tf.concat([q, keys, q - keys, q * keys], 2)
        for units in (40, 20):
            a = tf.layers.dense(a, units, tf.nn.sigmoid, kernel_initializer=tf.glorot_uniform_initializer(seed=units))
        scores = tf.reshape(tf.layers.dense(a, 1), [-1, T])
        mask = tf.sequence_mask(length, T)
        scores = tf.where(mask, scores, tf.ones_like(scores) * (-(2.0**32) + 1))
        interest = tf.squeeze(tf.matmul(tf.nn.softmax(scores / np.sqrt(2 * D).astype("f"))[:, None], keys), 1)
        h = tf.concat([tf.nn.embedding_lookup(users, user), query, interest, query * interest], 1)
        h = tf.layers.batch_normalization(h, training=True)
        for i, units in enumerate((80, 40)):
            h = dice(tf.layers.dense(h, units, kernel_initializer=tf.glorot_uniform_initializer(seed=i)), f"alpha{i}")
        logits = tf.squeeze(tf.layers.dense(h, 1), 1) + tf.gather(bias, item)
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=logits))
        v = tf.trainable_variables()
        grads, _ = tf.clip_by_global_norm(tf.gradients(loss, v), 5.0)
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            train = tf.train.GradientDescentOptimizer(0.1).apply_gradients(zip(grads, v))
        feed = {
            user: R(0).randint(0, 5000, B),
            item: R(1).randint(0, 3000, B),
            cat: R(2).randint(0, 100, B),
            hist: R(3).randint(0, 3000, (B, T)),
            hist_cat: R(4).randint(0, 100, (B, T)),
            length: R(5).randint(1, T, B),
            y: R(6).randint(0, 2, B),
        }
        return lambda s: s.run([loss, train], feed)[0]

    return _steps(tf, build)


def hashed_ngrams(tf):
    """Sentences as strings: split, hashed words and pairs of words, means of embeddings, a table of labels."""

    def build():
        words = [f"word{i}" for i in range(300)]
        lines = [" ".join(R(i).choice(words, 4 + i % 9)) for i in range(64)]
        text, label = tf.placeholder(tf.string, [None]), tf.placeholder(tf.string, [None])
        tokens = tf.string_split(text, " ")
        hashed = tf.SparseTensor(
            tokens.indices, tf.strings.to_hash_bucket_fast(tokens.values, 2000), tokens.dense_shape
        )
        dense = tf.sparse_tensor_to_dense(tokens, default_value="")
        pairs = tf.strings.to_hash_bucket_fast(tf.strings.join([dense[:, :-1], dense[:, 1:]], " "), 5000)
        present = tf.cast(tf.not_equal(dense[:, 1:], ""), tf.float32)
        table = tf.get_variable("words", [2000, 32], initializer=tf.random_uniform_initializer(-0.1, 0.1, seed=1))
        bigrams = tf.get_variable("pairs", [5000, 32], initializer=tf.random_uniform_initializer(-0.1, 0.1, seed=2))
        h = tf.nn.embedding_lookup_sparse(table, hashed, None, combiner="mean")
        h += tf.reduce_sum(tf.nn.embedding_lookup(bigrams, pairs) * present[:, :, None], 1) / (
            1.0 + tf.reduce_sum(present, 1, keepdims=True)
        )
        names = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(["neg", "neu", "pos"], tf.constant([0, 1, 2], tf.int64)), -1
        )
        logits = tf.layers.dense(h, 3, kernel_initializer=tf.glorot_uniform_initializer(seed=1))
        loss = _cross_entropy(tf, names.lookup(label), logits)
        train = tf.train.AdagradOptimizer(0.1).minimize(loss)
        feed = {text: lines, label: [("neg", "neu", "pos")[i % 3] for i in range(64)]}
        filled, ready = tf.tables_initializer(), []

        def work(s):
            if not ready:
                ready.append(s.run(filled))
            return s.run([loss, train], feed)[0]

        return work

    return _steps(tf, build)


def relative_transformer(tf):
    """Segments with a memory: relative positions by a shift of padded scores, adaptive softmax in two clusters, a schedule with warm-up."""

    def build():
        B, T, M, D, H, V = 4, 16, 16, 48, 4, 1000
        x, y, memory = (
            tf.placeholder(tf.int32, [T, B]),
            tf.placeholder(tf.int32, [T, B]),
            tf.placeholder(tf.float32, [M, B, D]),
        )
        init = tf.random_normal_initializer(0, 0.05, seed=1)
        with tf.variable_scope("m", initializer=init):
            h = tf.nn.embedding_lookup(tf.get_variable("e", [V, D]), x) * np.sqrt(D)
            place = tf.range(T + M - 1, -1, -1.0)
            wave = place[:, None] / (10000 ** (tf.range(0, D, 2.0) / D))
            r = tf.concat([tf.sin(wave), tf.cos(wave)], 1)
            u, v = tf.get_variable("u", [H, D // H]), tf.get_variable("v", [H, D // H])
            new_memory = tf.stop_gradient(h)
            both = tf.concat([memory, h], 0)
            q, k, val = tf.split(tf.layers.dense(both, 3 * D, use_bias=False), 3, 2)
            q = tf.reshape(q[-T:], [T, B, H, -1])
            k, val = tf.reshape(k, [T + M, B, H, -1]), tf.reshape(val, [T + M, B, H, -1])
            rk = tf.reshape(tf.layers.dense(r, D, use_bias=False), [T + M, H, -1])
            ac, bd = tf.einsum("ibnd,jbnd->ijbn", q + u, k), tf.einsum("ibnd,jnd->ijbn", q + v, rk)
            size = tf.shape(bd)
            bd = tf.reshape(tf.pad(bd, [[0, 0], [1, 0], [0, 0], [0, 0]]), [size[1] + 1, size[0], size[2], size[3]])
            bd = tf.reshape(bd[1:], size)
            mask = tf.matrix_band_part(tf.ones([T, T]), 0, -1) - tf.matrix_band_part(tf.ones([T, T]), 0, 0)
            mask = tf.concat([tf.zeros([T, M]), mask], 1)[:, :, None, None]
            p = tf.nn.softmax((ac + bd) / np.sqrt(D // H) * (1 - mask) - 1e30 * mask, 1)
            out = tf.reshape(tf.einsum("ijbn,jbnd->ibnd", p, val), [T, B, D])
            h = h + tf.layers.dense(out, D, use_bias=False)
            mean, variance = tf.nn.moments(h, [-1], keep_dims=True)
            h = (h - mean) * tf.rsqrt(variance + 1e-6)
            h += tf.layers.dense(tf.layers.dense(h, 96, tf.nn.relu), D)
            flat, labels = tf.reshape(h, [-1, D]), tf.reshape(y, [-1])
            head = tf.nn.log_softmax(tf.layers.dense(flat, 101))
            tail = tf.nn.log_softmax(tf.layers.dense(tf.layers.dense(flat, 12, use_bias=False), V - 100))
            common = tf.cast(labels < 100, tf.float32)
            near = tf.reduce_sum(head * tf.one_hot(tf.minimum(labels, 100), 101), 1)
            far = tf.reduce_sum(tail * tf.one_hot(tf.maximum(labels - 100, 0), V - 100), 1)
            loss = -tf.reduce_mean(near + (1 - common) * far)
        step = tf.train.get_or_create_global_step()
        rate = tf.cond(
            step < 10, lambda: tf.to_float(step) / 10 * 1e-3, lambda: tf.train.cosine_decay(1e-3, step - 10, 1000, 0.1)
        )
        v = tf.trainable_variables()
        grads, norm = tf.clip_by_global_norm(tf.gradients(loss, v, gate_gradients=True), 0.25)
        train = tf.train.AdamOptimizer(rate).apply_gradients(zip(grads, v), step)
        state = [np.zeros([M, B, D], "f")]
        feed = {x: R(0).randint(0, V, (T, B)), y: R(1).randint(0, V, (T, B))}

        def work(s):
            feed[memory] = state[0]
            found, state[0], g, _ = s.run([loss, new_memory, norm, train], feed)
            return found, g

        return work

    return _steps(tf, build)


def tree_lstm(tf):
    """A recursive network: a while_loop over nodes that gathers the states of children from a TensorArray."""

    def build():
        N, H = 15, 32
        words, left, right, leaf = (tf.placeholder(t, [N]) for t in (tf.int32, tf.int32, tf.int32, tf.bool))
        y = tf.placeholder(tf.int32, [N])
        with tf.variable_scope("tree", initializer=tf.random_uniform_initializer(-0.1, 0.1, seed=1)):
            table, w, b = (
                tf.get_variable("e", [200, H]),
                tf.get_variable("w", [2 * H, 5 * H]),
                tf.get_variable("b", [5 * H]),
            )
            out = tf.get_variable("out", [H, 5])

        def body(i, hs, cs):
            def take():
                x = tf.expand_dims(tf.gather(table, words[i]), 0)
                return tf.tanh(x), x

            def compose():
                h = tf.concat([hs.read(left[i]), hs.read(right[i])], 1)
                g, k, l, r, o = tf.split(tf.matmul(h, w) + b, 5, 1)
                c = tf.tanh(g) * tf.sigmoid(k) + cs.read(left[i]) * tf.sigmoid(l) + cs.read(right[i]) * tf.sigmoid(r)
                return tf.tanh(c) * tf.sigmoid(o), c

            h, c = tf.cond(leaf[i], take, compose)
            return i + 1, hs.write(i, h), cs.write(i, c)

        arrays = [tf.TensorArray(tf.float32, N, clear_after_read=False, element_shape=[1, H]) for _ in range(2)]
        _, hs, _ = tf.while_loop(lambda i, *_: i < N, body, [0, *arrays])
        loss = _cross_entropy(tf, y, tf.matmul(hs.concat(), out)) + 1e-4 * tf.nn.l2_loss(w)
        train = tf.train.AdagradOptimizer(0.05).minimize(loss)
        l, r = [0] * 8 + [0, 2, 4, 6, 8, 10, 12], [0] * 8 + [1, 3, 5, 7, 9, 11, 13]
        feed = {
            words: R(0).randint(0, 200, N),
            left: l,
            right: r,
            leaf: [True] * 8 + [False] * 7,
            y: R(1).randint(0, 5, N),
        }
        return lambda s: s.run([loss, train], feed)[0]

    return _steps(tf, build)


def point_clouds(tf):
    """Points: nearest neighbours by top_k, features gathered by gather_nd, shared layers, a learned transform, three neighbours to interpolate."""

    def build():
        B, N, K = 4, 64, 8
        x, y = tf.placeholder(tf.float32, [B, N, 3]), tf.placeholder(tf.int32, [B])
        rows = tf.tile(tf.range(B)[:, None, None], [1, N, K])

        def edges(h, units, name):
            inner = tf.matmul(h, h, transpose_b=True)
            square = tf.reduce_sum(tf.square(h), 2, keepdims=True)
            near = tf.nn.top_k(-(square - 2 * inner + tf.transpose(square, [0, 2, 1])), K)[1]
            around = tf.gather_nd(h, tf.stack([rows, near], 3))
            centre = tf.tile(h[:, :, None], [1, 1, K, 1])
            e = tf.concat([centre, around - centre], 3)
            e = tf.layers.conv2d(e, units, 1, name=name, kernel_initializer=_uniform(tf, units))
            e = tf.nn.leaky_relu(tf.layers.batch_normalization(e, training=True, name=name + "b"))
            return tf.reduce_max(e, 2)

        t = tf.reduce_max(tf.layers.conv1d(x, 32, 1, activation=tf.nn.relu, kernel_initializer=_uniform(tf, 1)), 1)
        t = tf.reshape(tf.layers.dense(t, 9, kernel_initializer=tf.zeros_initializer()), [-1, 3, 3]) + tf.eye(3)
        a = edges(tf.matmul(x, t), 16, "a")
        b = edges(a, 32, "b")
        h = tf.reduce_max(tf.layers.conv1d(tf.concat([a, b], 2), 64, 1, kernel_initializer=_uniform(tf, 2)), 1)
        loss = _cross_entropy(tf, y, tf.layers.dense(tf.nn.relu(h), 10, kernel_initializer=_uniform(tf, 3)))
        loss += 1e-3 * tf.nn.l2_loss(tf.eye(3) - tf.matmul(t, t, transpose_b=True))
        train = tf.train.AdamOptimizer(1e-3).minimize(loss)
        feed = {x: _f(0, B, N, 3), y: R(1).randint(0, 10, B)}
        return lambda s: s.run([loss, train], feed)[0]

    return _steps(tf, build)


def restored_images(tf):
    """Super-resolution with depth_to_space, and a loss of structural similarity, edges and total variation."""

    def build():
        low, high = tf.placeholder(tf.float32, [None, 16, 16, 1]), tf.placeholder(tf.float32, [None, 32, 32, 1])
        h = low
        for i, (units, size) in enumerate(((16, 5), (16, 3), (4, 3))):
            h = tf.layers.conv2d(
                h,
                units,
                size,
                padding="same",
                activation=tf.nn.tanh if i < 2 else None,
                kernel_initializer=_uniform(tf, i),
            )
        out = tf.nn.sigmoid(tf.depth_to_space(h, 2))
        grid = np.exp(-np.square(np.arange(7) - 3.0) / 4.5)
        window = tf.constant((grid[:, None] * grid / np.square(grid.sum())).astype("f")[:, :, None, None])

        def blur(x):
            return tf.nn.depthwise_conv2d(x, window, [1, 1, 1, 1], "VALID")

        a, b = blur(out), blur(high)
        aa, bb, ab = blur(out * out) - a * a, blur(high * high) - b * b, blur(out * high) - a * b
        similar = tf.reduce_mean((2 * a * b + 1e-4) * (2 * ab + 9e-4) / ((a * a + b * b + 1e-4) * (aa + bb + 9e-4)))
        edges = tf.reduce_mean(tf.square(tf.image.sobel_edges(out) - tf.image.sobel_edges(high)))
        loss = 1.0 - similar + 0.1 * edges + 1e-4 * tf.reduce_mean(tf.image.total_variation(out))
        train = tf.train.AdamOptimizer(1e-3).minimize(loss)
        feed = {low: R(0).rand(4, 16, 16, 1), high: R(1).rand(4, 32, 32, 1)}
        return lambda s: s.run([loss, similar, train], feed)[:2]

    return _steps(tf, build)


ALL = {
    name: fn
    for name, fn in list(globals().items())
    if callable(fn) and not name.startswith("_") and getattr(fn, "__module__", None) == __name__
}
