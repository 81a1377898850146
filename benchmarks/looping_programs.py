"""An eighth set of programs: what stands around the networks of public repositories. Python code within steps, many small fetches,
summaries and hooks, feature columns, copies of networks, generated batches. Run with `run.py --module looping_programs`."""

import tempfile

import numpy as np
from programs import R, _steps
from workloads import _rate


def _f(seed, *shape):
    return R(seed).randn(*shape).astype("f")


def _cross_entropy(tf, labels, logits):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


def pointer_network(tf):
    """An encoder over points, and a decoder that points at one of them after the other, with masks over those it has chosen."""

    def build():
        B, N, H = 32, 10, 64
        points, order = tf.placeholder(tf.float32, [B, N, 2]), tf.placeholder(tf.int32, [B, N])
        with tf.variable_scope("encoder"):
            encoded, state = tf.nn.dynamic_rnn(tf.nn.rnn_cell.LSTMCell(H), tf.layers.dense(points, H), dtype=tf.float32)
        cell = tf.nn.rnn_cell.LSTMCell(H)
        keys, v = tf.layers.dense(encoded, H, use_bias=False), tf.get_variable("v", [H])
        step, mask, losses, chosen = tf.zeros([B, H]), tf.zeros([B, N]), [], []
        for i in range(N):
            with tf.variable_scope("decoder", reuse=tf.AUTO_REUSE):
                h, state = cell(step, state)
                query = tf.expand_dims(tf.layers.dense(h, H, name="query"), 1)
            logits = tf.reduce_sum(v * tf.tanh(keys + query), 2) - 1e6 * mask
            losses.append(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=order[:, i], logits=logits))
            chosen.append(tf.argmax(logits, 1))
            mask += tf.one_hot(order[:, i], N)
            step = tf.gather_nd(encoded, tf.stack([tf.range(B), order[:, i]], 1))
        loss = tf.reduce_mean(tf.add_n(losses))
        optimizer = tf.train.AdamOptimizer(1e-3)
        grads, variables = zip(*optimizer.compute_gradients(loss))
        train = optimizer.apply_gradients(zip(tf.clip_by_global_norm(grads, 2.0)[0], variables))
        tour = tf.stack(chosen, 1)
        feed = {points: R(0).rand(B, N, 2), order: np.array([R(i).permutation(N) for i in range(B)])}
        return lambda s: s.run([loss, tour, train], feed)

    return _steps(tf, build)


def highway(tf):
    """Ten highway layers with dropout, a polynomial rate, Nesterov's momentum and gradients that are clipped by value."""

    def build():
        x, y, keep = (
            tf.placeholder(tf.float32, [None, 784]),
            tf.placeholder(tf.int64, [None]),
            tf.placeholder(tf.float32),
        )
        h = tf.layers.dense(x, 50, tf.nn.relu)
        for _ in range(10):
            gate = tf.layers.dense(h, 50, tf.sigmoid, bias_initializer=tf.constant_initializer(-1.0))
            h = tf.nn.dropout(tf.layers.dense(h, 50, tf.nn.relu) * gate + h * (1.0 - gate), keep)
        logits = tf.layers.dense(h, 10)
        loss = _cross_entropy(tf, y, logits)
        accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), y), tf.float32))
        step = tf.train.get_or_create_global_step()
        rate = tf.train.polynomial_decay(0.1, step, 1000, 0.001, power=2.0)
        optimizer = tf.train.MomentumOptimizer(rate, 0.9, use_nesterov=True)
        pairs = [(tf.clip_by_value(g, -1.0, 1.0), v) for g, v in optimizer.compute_gradients(loss)]
        train = optimizer.apply_gradients(pairs, step)
        feed = {x: R(0).rand(64, 784), y: R(1).randint(0, 10, 64), keep: 0.8}
        return lambda s: s.run([train, loss, accuracy, rate], feed)

    return _steps(tf, build)


def worker_and_global_network(tf):
    """A3C: a worker copies the global network, acts five times, and applies its own clipped gradients to the global variables."""

    def build():
        def network(scope):
            with tf.variable_scope(scope):
                state = tf.placeholder(tf.float32, [None, 8])
                h = tf.layers.dense(state, 64, tf.nn.relu6)
                policy, value = tf.layers.dense(h, 4, tf.nn.softmax), tf.squeeze(tf.layers.dense(h, 1), 1)
            return state, policy, value, tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope)

        *_, shared = network("global")
        state, policy, value, own = network("worker")
        actions, target = tf.placeholder(tf.int32, [None]), tf.placeholder(tf.float32, [None])
        advantage = target - value
        taken = tf.log(tf.reduce_sum(policy * tf.one_hot(actions, 4), 1) + 1e-10)
        entropy = -tf.reduce_sum(policy * tf.log(policy + 1e-10), 1)
        loss = tf.reduce_mean(-taken * tf.stop_gradient(advantage) - 0.01 * entropy + 0.5 * tf.square(advantage))
        grads, norm = tf.clip_by_global_norm(tf.gradients(loss, own), 40.0)
        push = tf.train.RMSPropOptimizer(1e-3, 0.99).apply_gradients(zip(grads, shared))
        pull = [mine.assign(theirs) for mine, theirs in zip(own, shared)]
        states = _f(0, 5, 8)

        def work(s):
            s.run(pull)
            chosen = []
            for each in states:
                p = s.run(policy, {state: each[None]})
                chosen.append(int(p[0].argmax()))
            last = s.run(value, {state: states[-1:]})[0]
            targets = [last * 0.9**i for i in range(5, 0, -1)]
            return s.run([push, loss, norm], {state: states, actions: chosen, target: targets})[1]

        return work

    return _steps(tf, build)


def hooks_and_summaries(tf):
    """A MonitoredTrainingSession with hooks that look at the loss, and summaries of scalars and histograms every ten steps."""
    with tf.Graph().as_default(), tempfile.TemporaryDirectory() as folder:
        tf.set_random_seed(7)
        x, y = tf.placeholder(tf.float32, [32, 20]), tf.placeholder(tf.float32, [32, 1])
        h = tf.layers.dense(tf.layers.dense(x, 64, tf.nn.elu), 32, tf.nn.elu)
        loss = tf.losses.huber_loss(y, tf.layers.dense(h, 1))
        step = tf.train.get_or_create_global_step()
        train = tf.train.AdagradOptimizer(0.05).minimize(loss, step)
        tf.summary.scalar("loss", loss)
        tf.summary.histogram("hidden", h)
        for variable in tf.trainable_variables():
            tf.summary.histogram(variable.op.name, variable)

        class Watch(tf.train.SessionRunHook):
            seen = 0.0

            def before_run(self, run_context):
                return tf.train.SessionRunArgs([loss, step])

            def after_run(self, run_context, run_values):
                self.seen += run_values.results[0]

        hooks = [
            Watch(),
            tf.train.NanTensorHook(loss),
            tf.train.StepCounterHook(100, output_dir=folder),
            tf.train.SummarySaverHook(10, output_dir=folder, summary_op=tf.summary.merge_all()),
        ]
        feed = {x: _f(0, 32, 20), y: _f(1, 32, 1)}
        with tf.train.MonitoredTrainingSession(hooks=hooks) as session:
            return _rate(lambda: session.run([train, loss], feed), 1, 3.0), "steps/s"


def census_columns(tf):
    """Feature columns of every kind over strings and numbers: vocabularies, hashes, buckets, crosses, embeddings, indicators."""

    def build():
        column = tf.feature_column
        jobs = ["tech", "craft", "sales", "farm", "other"]
        raw = {
            "age": tf.placeholder(tf.float32, [None]),
            "hours": tf.placeholder(tf.float32, [None]),
            "job": tf.placeholder(tf.string, [None]),
            "city": tf.placeholder(tf.string, [None]),
        }
        y = tf.placeholder(tf.float32, [None, 1])
        age = column.numeric_column("age", normalizer_fn=lambda v: (v - 40.0) / 15.0)
        hours = column.bucketized_column(column.numeric_column("hours"), [10.0, 20.0, 35.0, 45.0])
        job = column.categorical_column_with_vocabulary_list("job", jobs)
        city = column.categorical_column_with_hash_bucket("city", 1000)
        crossed = column.crossed_column(["job", "city"], 5000)
        deep = [
            age,
            hours,
            column.indicator_column(job),
            column.embedding_column(city, 16),
            column.embedding_column(crossed, 8),
        ]
        h = column.input_layer(raw, deep)
        for units in (64, 32):
            h = tf.layers.dense(h, units, tf.nn.relu)
        logits = tf.layers.dense(h, 1) + column.linear_model(raw, [job, city, crossed, hours])
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=logits))
        train = tf.train.AdagradOptimizer(0.05).minimize(loss)
        filled, ready = tf.tables_initializer(), []
        feed = {
            raw["age"]: R(0).randint(17, 80, 128),
            raw["hours"]: R(1).randint(5, 60, 128),
            raw["job"]: R(2).choice(jobs, 128),
            raw["city"]: ["city%d" % i for i in R(3).randint(0, 300, 128)],
            y: R(4).randint(0, 2, (128, 1)),
        }

        def work(s):
            if not ready:
                ready.append(s.run(filled))
            return s.run([loss, train], feed)[0]

        return work

    return _steps(tf, build)


def quasi_recurrent(tf):
    """QRNN: masked convolutions of two words make the gates, a scan pools them; two layers, zoneout."""

    def build():
        B, T, D = 16, 30, 48
        words, y = tf.placeholder(tf.int32, [B, T]), tf.placeholder(tf.int32, [B])
        h = tf.nn.embedding_lookup(tf.get_variable("words", [2000, D]), words)
        for layer in range(2):
            before = tf.pad(h, [[0, 0], [1, 0], [0, 0]])
            gates = tf.layers.conv1d(before, 3 * D, 2, name="gates%d" % layer)
            z, f, o = tf.split(tf.transpose(gates, [1, 0, 2]), 3, 2)
            f = tf.sigmoid(f)
            f = 1.0 - tf.nn.dropout(1.0 - f, 0.9) * 0.9
            pooled = tf.scan(
                lambda c, zf: zf[1] * c + (1.0 - zf[1]) * zf[0], (tf.tanh(z), f), initializer=tf.zeros([B, D])
            )
            h = tf.transpose(tf.sigmoid(o) * pooled, [1, 0, 2])
        loss = _cross_entropy(tf, y, tf.layers.dense(h[:, -1], 5))
        loss += 1e-4 * tf.add_n([tf.nn.l2_loss(v) for v in tf.trainable_variables() if "kernel" in v.name])
        train = tf.train.RMSPropOptimizer(1e-3).minimize(loss)
        feed = {words: R(0).randint(0, 2000, (B, T)), y: R(1).randint(0, 5, B)}
        return lambda s: s.run([loss, train], feed)[0]

    return _steps(tf, build)


def cycle_of_domains(tf):
    """Two generators and two critics of dense layers, with cycle and identity losses, and pools of older fakes that Python keeps."""

    def build():
        D = 64
        a, b, old_a, old_b = (tf.placeholder(tf.float32, [None, D]) for _ in range(4))

        def net(name, x, out, act=None):
            with tf.variable_scope(name, reuse=tf.AUTO_REUSE):
                h = tf.nn.leaky_relu(tf.layers.dense(x, 128, name="h0"))
                h = tf.nn.leaky_relu(
                    tf.layers.batch_normalization(tf.layers.dense(h, 128, name="h1"), training=True, name="n")
                )
                return tf.layers.dense(h, out, act, name="out")

        fake_b, fake_a = net("g_ab", a, D, tf.tanh), net("g_ba", b, D, tf.tanh)
        cycle = tf.reduce_mean(tf.abs(net("g_ba", fake_b, D, tf.tanh) - a)) + tf.reduce_mean(
            tf.abs(net("g_ab", fake_a, D, tf.tanh) - b)
        )
        same = tf.reduce_mean(tf.abs(net("g_ab", b, D, tf.tanh) - b) + tf.abs(net("g_ba", a, D, tf.tanh) - a))
        fooled = tf.reduce_mean(tf.square(net("d_b", fake_b, 1) - 1.0) + tf.square(net("d_a", fake_a, 1) - 1.0))
        g_loss = fooled + 10.0 * cycle + 5.0 * same
        d_loss = sum(
            tf.reduce_mean(tf.square(net(d, real, 1) - 1.0)) + tf.reduce_mean(tf.square(net(d, fake, 1)))
            for d, real, fake in (("d_a", a, old_a), ("d_b", b, old_b))
        )
        mine = {name: [v for v in tf.trainable_variables() if v.name.startswith(name)] for name in ("g_", "d_")}
        g_train = tf.train.AdamOptimizer(2e-4, beta1=0.5).minimize(g_loss, var_list=mine["g_"])
        d_train = tf.train.AdamOptimizer(2e-4, beta1=0.5).minimize(d_loss, var_list=mine["d_"])
        images = {a: np.tanh(_f(0, 32, D)), b: np.tanh(_f(1, 32, D))}
        pool = []

        def work(s):
            _, fakes_a, fakes_b, first = s.run([g_train, fake_a, fake_b, g_loss], images)
            pool.append((fakes_a, fakes_b))
            kept_a, kept_b = pool.pop(0) if len(pool) > 5 else pool[-1]
            return first, s.run([d_train, d_loss], {**images, old_a: kept_a, old_b: kept_b})[1]

        return work

    return _steps(tf, build)


def python_rewards(tf):
    """A sequence sampled word by word, rewards that NumPy computes inside of the step (tf.py_func), and a baseline by moving averages."""

    def build():
        B, T, V, H = 32, 8, 50, 48
        start, wanted = tf.placeholder(tf.int32, [B]), tf.placeholder(tf.int32, [B, T])
        table, cell = tf.get_variable("table", [V, H]), tf.nn.rnn_cell.GRUCell(H)
        words, state, sampled, logs = start, tf.zeros([B, H]), [], []
        for _ in range(T):
            with tf.variable_scope("step", reuse=tf.AUTO_REUSE):
                h, state = cell(tf.nn.embedding_lookup(table, words), state)
                logits = tf.layers.dense(h, V, name="out")
            words = tf.cast(tf.squeeze(tf.multinomial(logits, 1), 1), tf.int32)
            logs.append(-tf.nn.sparse_softmax_cross_entropy_with_logits(labels=words, logits=logits))
            sampled.append(words)
        found = tf.stack(sampled, 1)

        def overlap(guesses, truths):
            return np.array(
                [len(set(g) & set(t)) / len(set(t)) for g, t in zip(guesses.tolist(), truths.tolist())], "f"
            )

        reward = tf.py_func(overlap, [found, wanted], tf.float32)
        reward.set_shape([B])
        baseline = tf.Variable(0.0, trainable=False)
        loss = -tf.reduce_mean((reward - baseline) * tf.add_n(logs))
        train = tf.train.AdamOptimizer(1e-3).minimize(loss)
        with tf.control_dependencies([train]):
            train = baseline.assign(0.9 * baseline + 0.1 * tf.reduce_mean(reward))
        feed = {start: np.zeros(B), wanted: R(0).randint(0, V, (B, T))}
        return lambda s: s.run([loss, reward, train], feed)[:2]

    return _steps(tf, build)


def curriculum(tf):
    """The step decides: tf.case for the noise, tf.cond for the loss, piecewise rates, moving averages behind control dependencies."""

    def build():
        x, y = tf.placeholder(tf.float32, [64, 32]), tf.placeholder(tf.int32, [64])
        step = tf.train.get_or_create_global_step()
        noise = tf.case(
            [(step < 50, lambda: tf.zeros_like(x)), (step < 500, lambda: tf.random_normal([64, 32], stddev=0.1))],
            default=lambda: tf.random_uniform([64, 32], -0.3, 0.3),
        )
        h = tf.layers.dense(tf.layers.dense(x + noise, 64, tf.nn.selu), 64, tf.nn.selu)
        logits = tf.layers.dense(h, 10)
        each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
        loss = tf.cond(step % 2 > 0, lambda: tf.reduce_mean(tf.nn.top_k(each, 16)[0]), lambda: tf.reduce_mean(each))
        rate = tf.train.piecewise_constant(step, [100, 1000], [0.1, 0.05, 0.01])
        train = tf.train.GradientDescentOptimizer(rate).minimize(loss, step)
        averages = tf.train.ExponentialMovingAverage(0.99, step)
        with tf.control_dependencies([train]):
            follow = averages.apply([*tf.trainable_variables(), loss])
        feed = {x: _f(0, 64, 32), y: R(1).randint(0, 10, 64)}
        return lambda s: s.run([follow, loss, rate, averages.average(loss)], feed)[1:]

    return _steps(tf, build)


def many_fetches(tf):
    """Forty small runs with other fetches and feeds each: states, single values, assigns of placeholders, lists and dictionaries."""

    def build():
        x = tf.placeholder(tf.float32, [None, 4])
        w, count = tf.get_variable("w", [4, 8]), tf.get_variable("count", [], initializer=tf.zeros_initializer())
        table, value, place = (
            tf.get_variable("table", [16, 8]),
            tf.placeholder(tf.float32, [8]),
            tf.placeholder(tf.int32, []),
        )
        h = tf.matmul(x, w)
        best, probability = tf.argmax(h, 1), tf.nn.softmax(h)
        put, more = tf.scatter_update(table, [place], [value]), count.assign_add(1.0)
        seen = {"best": best, "most": tf.reduce_max(h), "of": [probability, tf.shape(h)]}

        def work(s):
            for i in range(8):
                one = {x: np.full([1 + i % 3, 4], i, "f")}
                found = s.run(seen, one)
                row = s.run(h, one)[0]
                s.run(put, {value: row, place: i})
                s.run([more, best], one)
                if s.run(count) > 1e6:
                    s.run(count.initializer)
            return found["most"], s.run(table[:8])

        return work

    return _steps(tf, build)


def generated_batches(tf):
    """Sequences of a Python generator, filtered, padded in batches and repeated; a GRU over them with their lengths."""

    def build():
        def sequences():
            for i in range(500):
                yield {"ids": R(i).randint(1, 300, 3 + i % 12).astype("i"), "label": i % 4}

        types, shapes = {"ids": tf.int32, "label": tf.int32}, {"ids": [None], "label": []}
        records = tf.data.Dataset.from_generator(sequences, types, shapes).cache().repeat()
        records = records.filter(lambda r: tf.size(r["ids"]) > 3).map(lambda r: {**r, "length": tf.size(r["ids"])})
        batches = records.padded_batch(32, {"ids": [None], "label": [], "length": []}).prefetch(2)
        batch = tf.data.make_one_shot_iterator(batches).get_next()
        words = tf.nn.embedding_lookup(tf.get_variable("words", [300, 24]), batch["ids"])
        _, last = tf.nn.dynamic_rnn(tf.nn.rnn_cell.GRUCell(32), words, batch["length"], dtype=tf.float32)
        loss = _cross_entropy(tf, batch["label"], tf.layers.dense(last, 4))
        train = tf.train.AdamOptimizer(1e-3).minimize(loss)
        return lambda s: s.run([loss, train])[0]

    return _steps(tf, build)


def two_views(tf):
    """Contrastive learning: random masks and noise make two views of a batch; a loss over all pairs; LARS-like scaled gradients."""

    def build():
        B, D = 64, 96
        x = tf.placeholder(tf.float32, [B, D])

        def view(x):
            kept = tf.cast(tf.random_uniform([B, D]) > 0.2, tf.float32)
            return x * kept + tf.random_normal([B, D], stddev=0.05)

        both = tf.concat([view(x), view(x)], 0)
        h = tf.nn.relu(tf.layers.batch_normalization(tf.layers.dense(both, 128), training=True))
        z = tf.nn.l2_normalize(tf.layers.dense(tf.layers.dense(h, 128, tf.nn.relu), 64), 1)
        similar = tf.matmul(z, z, transpose_b=True) / 0.5 - 1e9 * tf.eye(2 * B)
        labels = tf.concat([tf.range(B, 2 * B), tf.range(B)], 0)
        loss = _cross_entropy(tf, labels, similar)
        optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
        pairs = []
        for g, v in optimizer.compute_gradients(loss):
            w_norm, g_norm = tf.norm(v), tf.norm(g)
            trust = tf.where(w_norm * g_norm > 0.0, 0.001 * w_norm / (g_norm + 1e-9), tf.ones_like(w_norm))
            pairs.append((g * trust, v))
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            train = optimizer.apply_gradients(pairs)
        hits = tf.reduce_mean(tf.cast(tf.nn.in_top_k(similar, labels, 5), tf.float32))
        feed = {x: _f(0, B, D)}
        return lambda s: s.run([loss, hits, train], feed)[:2]

    return _steps(tf, build)


def mapped_losses(tf):
    """tf.map_fn over examples of different lengths: soft alignments of two sequences, each cut to its length inside of the loop."""

    def build():
        B, T, D = 12, 16, 24
        a, b = tf.placeholder(tf.float32, [B, T, 8]), tf.placeholder(tf.float32, [B, T, 8])
        of_a, of_b = tf.placeholder(tf.int32, [B]), tf.placeholder(tf.int32, [B])
        with tf.variable_scope("shared", reuse=tf.AUTO_REUSE):
            ea, eb = (tf.layers.dense(tf.layers.dense(v, D, tf.tanh, name="one"), D, name="two") for v in (a, b))

        def aligned(each):
            x, y, n, m = each
            x, y = x[:n], y[:m]
            costs = tf.reduce_sum(tf.square(x[:, None] - y[None]), 2)
            forward = tf.reduce_sum(tf.nn.softmax(-costs, 1) * costs, 1)
            back = tf.reduce_sum(tf.nn.softmax(-costs, 0) * costs, 0)
            return tf.reduce_mean(forward) + tf.reduce_mean(back)

        losses = tf.map_fn(aligned, (ea, eb, of_a, of_b), dtype=tf.float32)
        loss = tf.reduce_mean(losses)
        train = tf.train.AdamOptimizer(1e-3).minimize(loss)
        lengths = {of_a: R(0).randint(4, T, B), of_b: R(1).randint(4, T, B)}
        feed = {a: _f(0, B, T, 8), b: _f(1, B, T, 8), **lengths}
        return lambda s: s.run([loss, losses, train], feed)[:2]

    return _steps(tf, build)


ALL = {
    name: fn
    for name, fn in list(globals().items())
    if callable(fn) and not name.startswith("_") and getattr(fn, "__module__", None) == __name__
}
