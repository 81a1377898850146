"""A tenth set of programs: what showed something among programs that had not been tried before. Run with `run.py --module uncommon_programs`."""

import itertools
import math

import numpy as np
from programs import R, _steps


def _f(seed, *shape):
    return R(seed).randn(*shape).astype("f")


def _u(seed, *shape):
    return R(seed).rand(*shape).astype("f")


def _i(seed, n, *shape):
    return R(seed).randint(0, n, shape).astype("i")


def _ce(tf, labels, logits):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


def carried_states(tf):
    """A language model of unrolled cells with dropout, whose states the user hands on, and a learning rate that is assigned."""

    def build():
        B, T, H, V = (20, 20, 128, 2000)

        class Model:
            def __init__(self, training, steps):
                self.x, self.y = (tf.placeholder(tf.int32, [B, steps]), tf.placeholder(tf.int32, [B, steps]))

                def cell():
                    c = tf.nn.rnn_cell.BasicLSTMCell(
                        H, forget_bias=0.0, state_is_tuple=True, reuse=tf.get_variable_scope().reuse
                    )
                    return tf.nn.rnn_cell.DropoutWrapper(c, output_keep_prob=0.65) if training else c

                cells = tf.nn.rnn_cell.MultiRNNCell([cell() for _ in range(2)], state_is_tuple=True)
                self.initial = cells.zero_state(B, tf.float32)
                emb = tf.get_variable("embedding", [V, H])
                inputs = tf.nn.embedding_lookup(emb, self.x)
                if training:
                    inputs = tf.nn.dropout(inputs, 0.65)
                outputs, state = ([], self.initial)
                with tf.variable_scope("RNN"):
                    for t in range(steps):
                        if t > 0:
                            tf.get_variable_scope().reuse_variables()
                        out, state = cells(inputs[:, t, :], state)
                        outputs.append(out)
                output = tf.reshape(tf.concat(outputs, 1), [-1, H])
                w, b = (tf.get_variable("softmax_w", [H, V]), tf.get_variable("softmax_b", [V]))
                logits = tf.nn.xw_plus_b(output, w, b)
                ce = tf.nn.sparse_softmax_cross_entropy_with_logits(logits=logits, labels=tf.reshape(self.y, [-1]))
                self.cost = tf.reduce_sum(ce) / B
                self.final = state
                self.train = tf.no_op()
                if training:
                    self.lr = tf.Variable(0.0, trainable=False)
                    tv = tf.trainable_variables()
                    g, _ = tf.clip_by_global_norm(tf.gradients(self.cost, tv), 5)
                    self.train = tf.train.GradientDescentOptimizer(self.lr).apply_gradients(
                        zip(g, tv), global_step=tf.train.get_or_create_global_step()
                    )
                    self.new = tf.placeholder(tf.float32, [])
                    self.update = tf.assign(self.lr, self.new)

        with tf.variable_scope("model", initializer=tf.random_uniform_initializer(-0.1, 0.1)):
            m = Model(True, T)
        with tf.variable_scope("model", reuse=True):
            e = Model(False, T)
        data = _i(0, V, B, T * 40 + 1)
        state = {}
        pos = itertools.count()

        def work(s):
            i = next(pos)
            if i == 0:
                s.run(m.update, {m.new: 1.0})
            if "m" not in state:
                state["m"] = s.run(m.initial)
                state["e"] = s.run(e.initial)
            k = i % 40
            x, y = (data[:, k * T : (k + 1) * T], data[:, k * T + 1 : (k + 1) * T + 1])
            feed = {m.x: x, m.y: y}
            for (c, h), v in zip(m.initial, state["m"]):
                feed[c] = v.c
                feed[h] = v.h
            r = s.run({"cost": m.cost, "final": m.final, "op": m.train}, feed)
            state["m"] = r["final"]
            out = [r["cost"]]
            if i % 5 == 4:
                feed = {e.x: x, e.y: y}
                for (c, h), v in zip(e.initial, state["e"]):
                    feed[c] = v.c
                    feed[h] = v.h
                r = s.run({"cost": e.cost, "final": e.final}, feed)
                state["e"] = r["final"]
                out.append(r["cost"])
            return out

        return work

    return _steps(tf, build)


def beam_inference(tf):
    """A beam search written out: an LSTM with attention in a while_loop, states that follow their beams."""

    def build():
        B, K, T, H, V, S = (4, 5, 15, 64, 500, 12)
        src = tf.placeholder(tf.int32, [None, None])
        lens = tf.placeholder(tf.int32, [None])
        emb = tf.get_variable("emb", [V, H])
        (fw, bw), _ = tf.nn.bidirectional_dynamic_rnn(
            tf.nn.rnn_cell.LSTMCell(H // 2, name="f"),
            tf.nn.rnn_cell.LSTMCell(H // 2, name="b"),
            tf.nn.embedding_lookup(emb, src),
            lens,
            dtype=tf.float32,
        )
        mem = tf.concat([fw, bw], -1)
        b = tf.shape(src)[0]

        def tile(t):
            t = tf.expand_dims(t, 1)
            t = tf.tile(t, [1, K] + [1] * (t.shape.ndims - 2))
            return tf.reshape(t, tf.concat([[b * K], tf.shape(t)[2:]], 0))

        memk = tf.reshape(tile(mem), [b * K, -1, H])
        mask = tile(tf.sequence_mask(lens, tf.shape(src)[1], tf.float32))
        mask = tf.reshape(mask, [b * K, -1])
        cell = tf.nn.rnn_cell.LSTMCell(H, name="dec")
        wq = tf.layers.Dense(H, use_bias=False, name="q")
        wm = tf.layers.Dense(H, use_bias=False, name="m")
        v = tf.get_variable("v", [H])
        proj = tf.layers.Dense(V, name="p", kernel_initializer=tf.random_normal_initializer(stddev=0.5))
        keys = wm(memk)

        def body(t, ids, logp, fin, seqs, parents, c, h):
            e = tf.nn.embedding_lookup(emb, tf.reshape(ids, [-1]))
            out, st = cell(e, tf.nn.rnn_cell.LSTMStateTuple(c, h))
            sc = tf.reduce_sum(v * tf.tanh(keys + tf.expand_dims(wq(out), 1)), -1) + (1 - mask) * -1000000000.0
            al = tf.nn.softmax(sc)
            ctx = tf.reduce_sum(tf.expand_dims(al, -1) * memk, 1)
            lp = tf.nn.log_softmax(proj(tf.concat([out, ctx], -1)))
            lp = tf.reshape(lp, [b, K, V])
            eos = tf.one_hot([[1]], V, on_value=0.0, off_value=-1000000000.0)
            lp = tf.where(tf.tile(tf.expand_dims(fin, -1), [1, 1, V]), tf.tile(eos, [b, K, 1]), lp)
            total = tf.expand_dims(logp, -1) + lp
            total = tf.cond(tf.equal(t, 0), lambda: total[:, 0], lambda: tf.reshape(total, [b, K * V]))
            top, idx = tf.nn.top_k(total, K)
            par, word = (idx // V, idx % V)
            gidx = tf.stack([tf.tile(tf.expand_dims(tf.range(b), 1), [1, K]), par], -1)
            fin2 = tf.logical_or(tf.gather_nd(fin, gidx), tf.equal(word, 1))
            c2 = tf.reshape(tf.gather_nd(tf.reshape(st.c, [b, K, H]), gidx), [b * K, H])
            h2 = tf.reshape(tf.gather_nd(tf.reshape(st.h, [b, K, H]), gidx), [b * K, H])
            return (t + 1, word, top, fin2, seqs.write(t, word), parents.write(t, par), c2, h2)

        def cond(t, ids, logp, fin, *_):
            return tf.logical_and(t < T, tf.logical_not(tf.reduce_all(fin)))

        z = tf.zeros([b * K, H])

        def ta():
            return tf.TensorArray(tf.int32, size=0, dynamic_size=True, clear_after_read=False)

        r = tf.while_loop(
            cond,
            body,
            [
                tf.constant(0),
                tf.zeros([b, K], tf.int32) + 2,
                tf.zeros([b, K]),
                tf.zeros([b, K], tf.bool),
                ta(),
                ta(),
                z,
                z,
            ],
            shape_invariants=[tf.TensorShape([])]
            + [tf.TensorShape([None, K])] * 3
            + [tf.TensorShape(None)] * 2
            + [tf.TensorShape([None, H])] * 2,
            back_prop=False,
        )
        seq = tf.transpose(r[4].stack(), [1, 2, 0])
        par = r[5].stack()
        feed = {src: _i(0, V, B, S), lens: np.array([12, 9, 7, 12], "i")}
        return lambda s: s.run([r[2], seq, par, r[0]], feed)

    return _steps(tf, build)


def radiance_field(tf):
    """Volume rendering of rays: positional encodings, a skip network, exclusive products, second samples by inverse transform."""

    def build():
        N, S1, S2 = (64, 16, 16)
        ro, rd, target = (
            tf.placeholder(tf.float32, [N, 3]),
            tf.placeholder(tf.float32, [N, 3]),
            tf.placeholder(tf.float32, [N, 3]),
        )

        def enc(x, L):
            return tf.concat([x] + [f(x * 2.0**i) for i in range(L) for f in (tf.sin, tf.cos)], -1)

        def net(p, name):
            with tf.variable_scope(name, reuse=tf.AUTO_REUSE):
                e = enc(p, 6)
                h = e
                for i in range(4):
                    h = tf.layers.dense(h, 64, tf.nn.relu, name="d%d" % i)
                    if i == 2:
                        h = tf.concat([e, h], -1)
                return tf.layers.dense(h, 4, name="o")

        def render(raw, z):
            d = tf.concat([z[..., 1:] - z[..., :-1], tf.broadcast_to([10000000000.0], tf.shape(z[..., :1]))], -1)
            d = d * tf.norm(rd[..., None, :], axis=-1)
            rgb = tf.sigmoid(raw[..., :3])
            al = 1.0 - tf.exp(-tf.nn.relu(raw[..., 3]) * d)
            w = al * tf.cumprod(1 - al + 1e-10, axis=-1, exclusive=True)
            return (tf.reduce_sum(w[..., None] * rgb, -2), w)

        z = tf.linspace(2.0, 6.0, S1)
        z = tf.tile(z[None], [N, 1])
        mid = 0.5 * (z[:, 1:] + z[:, :-1])
        up, lo = (tf.concat([mid, z[:, -1:]], -1), tf.concat([z[:, :1], mid], -1))
        z = lo + (up - lo) * tf.random_uniform([N, S1], seed=1)
        c0, w = render(
            tf.reshape(net(tf.reshape(ro[:, None] + rd[:, None] * z[..., None], [-1, 3]), "c"), [N, S1, 4]), z
        )
        zm = 0.5 * (z[:, 1:] + z[:, :-1])
        ww = w[:, 1:-1] + 1e-05
        pdf = ww / tf.reduce_sum(ww, -1, keepdims=True)
        cdf = tf.cumsum(pdf, -1)
        cdf = tf.concat([tf.zeros_like(cdf[:, :1]), cdf], -1)
        u = tf.random_uniform([N, S2], seed=2)
        ind = tf.searchsorted(cdf, u, side="right")
        be, ab = (tf.maximum(0, ind - 1), tf.minimum(int(cdf.shape[-1]) - 1, ind))
        ig = tf.stack([be, ab], -1)
        cg = tf.gather(cdf, ig, axis=-1, batch_dims=1)
        bg = tf.gather(zm, ig, axis=-1, batch_dims=1)
        den = cg[..., 1] - cg[..., 0]
        den = tf.where(den < 1e-05, tf.ones_like(den), den)
        zs = tf.stop_gradient(bg[..., 0] + (u - cg[..., 0]) / den * (bg[..., 1] - bg[..., 0]))
        z2 = tf.sort(tf.concat([z, zs], -1), -1)
        c1, _w2 = render(
            tf.reshape(net(tf.reshape(ro[:, None] + rd[:, None] * z2[..., None], [-1, 3]), "f"), [N, S1 + S2, 4]), z2
        )
        loss = tf.reduce_mean((c1 - target) ** 2) + tf.reduce_mean((c0 - target) ** 2)
        psnr = -10.0 * tf.log(loss) / tf.log(10.0)
        train = tf.train.AdamOptimizer(0.0005).minimize(loss)
        d = _f(1, N, 3)
        d /= np.linalg.norm(d, axis=1, keepdims=True)
        feed = {ro: _f(0, N, 3) * 0.1, rd: d, target: _u(2, N, 3)}
        return lambda s: s.run([loss, psnr, train], feed)

    return _steps(tf, build)


def face_centers(tf):
    """Faces: PReLU networks, an angular margin, centers changed by scatter_sub, l2 normalized features."""

    def build():
        B, C, D = (32, 100, 32)
        x, y = (tf.placeholder(tf.float32, [None, 32, 32, 3]), tf.placeholder(tf.int64, [None]))

        def prelu(h, name):
            a = tf.get_variable(name, [int(h.shape[-1])], initializer=tf.constant_initializer(0.25))
            return tf.nn.relu(h) + tf.multiply(a, -tf.nn.relu(-h))

        h = x
        for i, n in enumerate((16, 32, 64)):
            h = prelu(tf.layers.conv2d(h, n, 3, padding="same"), "a%d" % i)
            h = tf.layers.max_pooling2d(h, 2, 2)
        f = prelu(tf.layers.dense(tf.layers.flatten(h), D), "af")
        fn = tf.nn.l2_normalize(f, 1)
        W = tf.get_variable("W", [D, C])
        wn = tf.nn.l2_normalize(W, 0)
        cos = tf.clip_by_value(tf.matmul(fn, wn), -1 + 1e-06, 1 - 1e-06)
        sin = tf.sqrt(1.0 - tf.square(cos))
        m = 0.5
        phi = cos * math.cos(m) - sin * math.sin(m)
        phi = tf.where(cos > math.cos(math.pi - m), phi, cos - m * math.sin(m))
        oh = tf.one_hot(y, C)
        logits = 30.0 * (oh * phi + (1 - oh) * cos)
        centers = tf.get_variable("centers", [C, D], initializer=tf.constant_initializer(0), trainable=False)
        cb = tf.gather(centers, y)
        diff = cb - f
        _, ui, cnt = tf.unique_with_counts(y)
        ap = tf.reshape(tf.gather(cnt, ui), [-1, 1])
        diff = 0.5 * diff / tf.cast(1 + ap, tf.float32)
        with tf.control_dependencies([diff, cb]):
            cu = tf.scatter_sub(centers, y, diff)
        cl = tf.nn.l2_loss(f - cb)
        loss = _ce(tf, y, logits) + 0.01 * cl
        acc = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(cos, 1), y), tf.float32))
        with tf.control_dependencies([cu]):
            train = tf.train.AdamOptimizer(0.001).minimize(loss)
        feed = {x: _f(0, B, 32, 32, 3), y: R(1).randint(0, C, B)}
        return lambda s: s.run([loss, cl, acc, train], feed)

    return _steps(tf, build)


def burgers(tf):
    """A physics-informed network for Burgers' equation with sine activations, second derivatives, boundary terms."""

    def build():
        N = 400
        xt, ub = (tf.placeholder(tf.float32, [None, 2]), tf.placeholder(tf.float32, [None, 1]))
        xf, tf_ = (tf.placeholder(tf.float32, [None, 1]), tf.placeholder(tf.float32, [None, 1]))
        sizes = [2, 20, 20, 20, 20, 1]
        Ws = [
            tf.Variable(tf.truncated_normal([a, b], stddev=np.sqrt(2 / (a + b)))) for a, b in itertools.pairwise(sizes)
        ]
        bs = [tf.Variable(tf.zeros([1, b])) for b in sizes[1:]]

        def net(X):
            h = 2 * X - 1
            for W, b in zip(Ws[:-1], bs[:-1]):
                h = tf.sin(tf.add(tf.matmul(h, W), b))
            return tf.add(tf.matmul(h, Ws[-1]), bs[-1])

        lam = tf.Variable(0.01, trainable=True)
        u = net(tf.concat([xf, tf_], 1))
        ut, ux = (tf.gradients(u, tf_)[0], tf.gradients(u, xf)[0])
        uxx = tf.gradients(ux, xf)[0]
        fr = ut + u * ux - lam * uxx
        loss = tf.reduce_mean(tf.square(net(xt) - ub)) + tf.reduce_mean(tf.square(fr))
        train = tf.train.AdamOptimizer(0.001).minimize(loss)
        P = _u(0, N, 2)
        feed = {xt: _u(1, 100, 2), ub: _f(2, 100, 1) * 0.5, xf: P[:, :1], tf_: P[:, 1:]}
        return lambda s: s.run([loss, lam, train], feed)

    return _steps(tf, build)


def ranked_lists(tf):
    """Documents of queries ranked by pairs: sorted gains, segment sums, masks, NDCG."""

    def build():
        Q, L, F = (8, 30, 40)
        x, rel = (tf.placeholder(tf.float32, [None, F]), tf.placeholder(tf.float32, [None]))
        qid = tf.placeholder(tf.int32, [None])
        h = tf.layers.dense(x, 64, tf.nn.relu)
        h = tf.layers.dense(h, 32, tf.nn.relu)
        s_ = tf.squeeze(tf.layers.dense(h, 1), 1)
        same = tf.equal(tf.expand_dims(qid, 1), tf.expand_dims(qid, 0))
        diff = tf.expand_dims(s_, 1) - tf.expand_dims(s_, 0)
        better = tf.logical_and(same, tf.expand_dims(rel, 1) > tf.expand_dims(rel, 0))
        gain = tf.pow(2.0, rel) - 1
        ideal = tf.segment_max(gain, qid)
        sm = tf.exp(s_ - tf.gather(tf.segment_max(s_, qid), qid))
        p = sm / tf.gather(tf.segment_sum(sm, qid), qid)
        listnet = -tf.reduce_mean(tf.segment_sum(p_true(tf, rel, qid) * tf.log(p + 1e-09), qid))
        w = tf.abs(tf.expand_dims(gain, 1) - tf.expand_dims(gain, 0)) / (1 + tf.expand_dims(tf.gather(ideal, qid), 1))
        pairs = tf.boolean_mask(w * tf.nn.softplus(-diff), better)
        loss = tf.reduce_mean(pairs) + 0.1 * listnet
        order = tf.argsort(tf.reshape(s_, [Q, L]), direction="DESCENDING")
        dcg = tf.reduce_sum(
            tf.batch_gather(tf.reshape(gain, [Q, L]), order)[:, :10] / (tf.log(tf.range(2.0, 12.0)) / np.log(2.0)), 1
        )
        ndcg = tf.reduce_mean(dcg)
        train = tf.train.AdamOptimizer(0.001).minimize(loss)
        feed = {x: _f(0, Q * L, F), rel: _i(1, 5, Q * L).astype("f"), qid: np.repeat(np.arange(Q), L)}
        return lambda s: s.run([loss, listnet, ndcg, train], feed)

    def p_true(tf, rel, qid):
        e = tf.exp(rel)
        return e / tf.gather(tf.segment_sum(e, qid), qid)

    return _steps(tf, build)


def quasi_newton(tf):
    """L-BFGS: a two-loop recursion in while_loops with a backtracking line search, on Rosenbrock's function and logistic regression."""

    def build():
        D, M, N = (20, 5, 200)
        X, y = (tf.constant(R(0).randn(N, D)), tf.constant((R(1).rand(N) > 0.5).astype("d") * 2 - 1))

        def f(w):
            return tf.reduce_mean(
                tf.nn.softplus(-y * tf.squeeze(tf.matmul(X, tf.expand_dims(w, 1)), 1))
            ) + 0.01 * tf.reduce_sum(w * w)

        w = tf.Variable(np.zeros(D))
        S, Yv = (tf.Variable(np.zeros([M, D])), tf.Variable(np.zeros([M, D])))
        n = tf.Variable(0)
        fw = f(w)
        g = tf.gradients(fw, w)[0]
        m = tf.minimum(n, M)

        def b1(i, q, al):
            s, yv = (S[i], Yv[i])
            a = tf.reduce_sum(s * q) / tf.reduce_sum(s * yv)
            return (i - 1, q - a * yv, al.write(i, a))

        _, q, al = tf.while_loop(
            lambda i, *_: i >= M - m,
            b1,
            (M - 1, g, tf.TensorArray(tf.float64, M, clear_after_read=False, element_shape=[])),
        )
        q = tf.cond(n > 0, lambda: q * tf.reduce_sum(S[-1] * Yv[-1]) / tf.reduce_sum(tf.square(Yv[-1])), lambda: q)

        def b2(i, r):
            s, yv = (S[i], Yv[i])
            b = tf.reduce_sum(yv * r) / tf.reduce_sum(s * yv)
            return (i + 1, r + s * (al.read(i) - b))

        d = -tf.while_loop(lambda i, *_: i < M, b2, (M - m, q))[1]
        gd = tf.reduce_sum(g * d)
        t = tf.while_loop(
            lambda t, k: tf.logical_and(f(w + t * d) > fw + 0.0001 * t * gd, k < 20),
            lambda t, k: (t * 0.5, k + 1),
            (tf.constant(1.0, tf.float64), 0),
        )[0]
        nw = w + t * d
        ng = tf.gradients(f(nw), nw)[0]
        sk, yk = (nw - w, ng - g)
        with tf.control_dependencies([sk, yk, fw, t]):
            up = tf.group(
                S.assign(tf.concat([S[1:], [sk]], 0)), Yv.assign(tf.concat([Yv[1:], [yk]], 0)), n.assign_add(1)
            )
            with tf.control_dependencies([up]):
                up = w.assign(nw)
        first = itertools.count()

        def work(s):
            if next(first) % 10 == 0:
                s.run(tf_init)
            return s.run([fw, t, up])[:2]

        tf_init = tf.global_variables_initializer()
        return work

    return _steps(tf, build)


def topics(tf):
    """Variational inference of topics: digamma in a loop until it converges, Dirichlet terms; prodLDA beside it."""

    def build():
        D, V, K = (40, 300, 8)
        n = tf.placeholder(tf.float32, [D, V])
        lam = tf.Variable(R(0).gamma(100.0, 0.01, (K, V)).astype("f"))
        eb = tf.exp(tf.digamma(lam) - tf.digamma(tf.reduce_sum(lam, 1, keepdims=True)))

        def body(i, g, ch):
            et = tf.exp(tf.digamma(g) - tf.digamma(tf.reduce_sum(g, 1, keepdims=True)))
            ph = tf.matmul(et, eb) + 1e-30
            ng = 0.1 + et * tf.matmul(n / ph, eb, transpose_b=True)
            return (i + 1, ng, tf.reduce_mean(tf.abs(ng - g)))

        _, g, _ = tf.while_loop(
            lambda i, g, ch: tf.logical_and(i < 50, ch > 0.01),
            body,
            (0, tf.constant(R(1).gamma(100.0, 0.01, (D, K)).astype("f")), tf.constant(1.0)),
        )
        et = tf.exp(tf.digamma(g) - tf.digamma(tf.reduce_sum(g, 1, keepdims=True)))
        ss = tf.matmul(et, n / (tf.matmul(et, eb) + 1e-30), transpose_a=True) * eb
        up = lam.assign(0.7 * lam + 0.3 * (0.01 + 5 * ss))
        bound = (
            tf.reduce_sum(n * tf.log(tf.matmul(et, eb) + 1e-30))
            + tf.reduce_sum(tf.lgamma(g))
            - tf.reduce_sum(tf.lgamma(tf.reduce_sum(g, 1)))
        )
        kl = tf.reduce_sum(tf.lbeta(g))

        def work(s):
            b, k = s.run([bound, kl], feed)
            s.run(up, feed)
            return [b, k]

        feed = {n: R(2).poisson(0.3, (D, V)).astype("f")}
        return work

    return _steps(tf, build)


def half_precision(tf):
    """Convolutions in float16 with master weights by a custom getter, a scaled loss, gradients checked for infinities."""

    def build():
        B = 8
        x, y = (tf.placeholder(tf.float32, [B, 24, 24, 3]), tf.placeholder(tf.int32, [B]))

        def getter(getter, name, shape=None, dtype=None, initializer=None, regularizer=None, trainable=True, *a, **k):
            v = getter(
                name,
                shape,
                *a,
                dtype=tf.float32 if trainable else dtype,
                initializer=initializer,
                regularizer=regularizer,
                trainable=trainable,
                **k,
            )
            return tf.cast(v, dtype) if trainable and dtype != tf.float32 else v

        with tf.variable_scope("m", custom_getter=getter):
            h = tf.cast(x, tf.float16)
            for i, n in enumerate((16, 32)):
                w = tf.get_variable(
                    "w%d" % i,
                    [3, 3, int(h.shape[-1]), n],
                    tf.float16,
                    initializer=tf.glorot_uniform_initializer(seed=i),
                )
                b = tf.get_variable("b%d" % i, [n], tf.float16, initializer=tf.zeros_initializer())
                h = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(h, w, [1, 2, 2, 1], "SAME"), b))
            h = tf.reshape(h, [B, -1])
            w = tf.get_variable(
                "wd", [int(h.shape[1]), 10], tf.float16, initializer=tf.glorot_uniform_initializer(seed=9)
            )
            logits = tf.cast(tf.matmul(h, w), tf.float32)
        loss = _ce(tf, y, logits)
        opt = tf.train.MomentumOptimizer(0.01, 0.9)
        gv = [(g / 128.0, v) for g, v in opt.compute_gradients(loss * 128.0)]
        ok = tf.reduce_all([tf.reduce_all(tf.is_finite(g)) for g, _ in gv])
        train = tf.cond(ok, lambda: opt.apply_gradients(gv), tf.no_op)
        feed = {x: _u(0, B, 24, 24, 3), y: _i(1, 10, B)}
        return lambda s: s.run([loss, train], feed)

    return _steps(tf, build)


def circular_correlation(tf):
    """Relations by circular correlation in the frequency domain, margins, normalized embeddings; a correlation filter."""

    def build():
        E, Rn, D, B = (500, 20, 64, 128)
        ent, rel = (
            tf.get_variable("e", [E, D], initializer=tf.random_normal_initializer(stddev=0.1)),
            tf.get_variable("r", [Rn, D], initializer=tf.random_normal_initializer(stddev=0.1)),
        )
        s_, r_, o_, n_ = (tf.placeholder(tf.int32, [B]) for _ in range(4))

        def corr(a, b):
            a, b = (tf.fft(tf.complex(a, 0.0)), tf.fft(tf.complex(b, 0.0)))
            return tf.real(tf.ifft(tf.conj(a) * b))

        def lk(t, i):
            return tf.nn.embedding_lookup(t, i, max_norm=1.0)

        def score(o):
            return tf.sigmoid(tf.reduce_sum(lk(rel, r_) * corr(lk(ent, s_), lk(ent, o)), 1))

        p, q = (score(o_), score(n_))
        loss = tf.reduce_sum(tf.maximum(0.2 + q - p, 0))
        train = tf.train.AdagradOptimizer(0.1).minimize(loss)
        feed = {s_: _i(0, E, B), r_: _i(1, Rn, B), o_: _i(2, E, B), n_: _i(3, E, B)}
        return lambda s: s.run([loss, train], feed)

    return _steps(tf, build)


def dirichlet_topics(tf):
    """Topics with implicitly differentiated gamma samples, Dirichlet terms through digamma and trigamma, tf.distributions."""

    def build():
        B, V, K = (32, 200, 10)
        x = tf.placeholder(tf.float32, [B, V])
        h = tf.layers.dense(tf.layers.dense(x, 64, tf.nn.softplus), 64, tf.nn.softplus)
        al = tf.nn.softplus(tf.layers.dense(h, K)) + 0.5
        e = tf.random_normal([B, K], seed=3)
        sm = (al + 4 - 1 / 3.0) * tf.pow(1 + e / tf.sqrt(9 * (al + 4) - 3), 3.0)
        z = sm / tf.reduce_sum(sm, 1, keepdims=True)
        beta = tf.get_variable("beta", [K, V], initializer=tf.glorot_uniform_initializer())
        rec = -tf.reduce_sum(x * tf.log(tf.matmul(z, tf.nn.softmax(beta)) + 1e-10), 1)
        q, p = (tf.distributions.Dirichlet(al), tf.distributions.Dirichlet(tf.fill([B, K], 0.7)))
        kl = tf.distributions.kl_divergence(q, p)
        loss = tf.reduce_mean(rec + kl) + 0.001 * tf.reduce_mean(tf.distributions.Gamma(al, tf.ones_like(al)).entropy())
        train = tf.train.AdamOptimizer(0.001, 0.95).minimize(loss)
        feed = {x: R(0).poisson(0.3, (B, V)).astype("f")}
        return lambda s: s.run([loss, kl, train], feed)

    return _steps(tf, build)


def captions(tf):
    """Captions with attention over image features, doubly stochastic penalties, deep output, masked losses, an unrolled loop with dropout."""

    def build():
        B, L, D, H, V, T = (8, 36, 64, 64, 500, 10)
        f, c, m = (
            tf.placeholder(tf.float32, [B, L, D]),
            tf.placeholder(tf.int32, [B, T]),
            tf.placeholder(tf.float32, [B, T]),
        )
        E = tf.get_variable("E", [V, 32])
        mean = tf.reduce_mean(f, 1)
        memory, output = (tf.layers.dense(mean, H, tf.tanh), tf.layers.dense(mean, H, tf.tanh))
        cell = tf.nn.rnn_cell.DropoutWrapper(
            tf.nn.rnn_cell.LSTMCell(H, initializer=tf.random_uniform_initializer(-0.08, 0.08)), 0.7, 0.7, 0.7, seed=5
        )
        state, word = ((memory, output), tf.zeros([B], tf.int32))
        al, ce, hits = ([], [], [])

        def reg(w):
            return 0.0001 * tf.nn.l2_loss(w)

        for t in range(T):
            with tf.variable_scope("step", reuse=t > 0):
                t1 = tf.layers.dense(tf.reshape(f, [-1, D]), 32, tf.tanh, name="f1", kernel_regularizer=reg)
                t2 = tf.layers.dense(output, 32, tf.tanh, name="f2", kernel_regularizer=reg)
                t2 = tf.reshape(tf.tile(t2[:, None], [1, L, 1]), [-1, 32])
                a = tf.nn.softmax(tf.reshape(tf.layers.dense(t1 + t2, 1, use_bias=False, name="a"), [-1, L]))
                ctx = tf.reduce_sum(f * a[:, :, None], 1)
                output, state = cell(tf.concat([ctx, tf.nn.embedding_lookup(E, word)], 1), state)
                logits = tf.layers.dense(
                    tf.layers.dense(
                        tf.concat([output, ctx, tf.nn.embedding_lookup(E, word)], 1), 64, tf.tanh, name="d1"
                    ),
                    V,
                    name="d2",
                )
            ce.append(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=c[:, t], logits=logits) * m[:, t])
            al.append(tf.tile(m[:, t : t + 1], [1, L]) * a)
            hits.append(
                tf.where(tf.equal(tf.cast(tf.argmax(logits, 1), tf.int32), c[:, t]), m[:, t], tf.zeros_like(m[:, t]))
            )
            word = c[:, t]
        xe = tf.reduce_sum(tf.stack(ce, 1)) / tf.reduce_sum(m)
        at = tf.reduce_sum(tf.stack(al, 1), 1)
        al_loss = 0.01 * tf.nn.l2_loss(1.0 - at) / (B * L)
        loss = xe + al_loss + tf.losses.get_regularization_loss()
        gs = tf.train.get_or_create_global_step()
        opt = tf.train.AdamOptimizer(tf.train.exponential_decay(0.0001, gs, 100, 0.9), 0.9, 0.999, 1e-06)
        gv = opt.compute_gradients(loss)
        g, v = zip(*gv)
        g, _ = tf.clip_by_global_norm(g, 5.0)
        train = opt.apply_gradients(zip(g, v), gs)
        M = np.ones([B, T], "f")
        M[::2, 7:] = 0
        feed = {f: _f(0, B, L, D), c: _i(1, V, B, T), m: M}
        return lambda s: s.run([loss, al_loss, hits, train], feed)[:2]

    return _steps(tf, build)


ALL = {
    name: fn
    for name, fn in list(globals().items())
    if callable(fn) and not name.startswith("_") and getattr(fn, "__module__", None) == __name__
}
