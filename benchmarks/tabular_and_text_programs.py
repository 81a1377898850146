"""Models of recommenders, tables and text, in the sizes of their repositories. Run with `run.py --module tabular_and_text_programs`."""

import numpy as np
from programs import R, _steps
from workloads import _rate


def _f(seed, *shape):
    return R(seed).randn(*shape).astype("f")


def _i(seed, high, *shape):
    return R(seed).randint(0, high, shape)


def _ce(tf, labels, logits):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


def _sig(tf, y, logits):
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=logits))


def deep_cross(tf):
    """DCN: cross layers by tensordot, batch norm, moving average of weights, exponential decay, auc in the fetches."""

    def build():
        B, F, D, V, N = (256, 20, 12, 60000, 13)
        ids, num, y = (
            tf.placeholder(tf.int64, [None, F]),
            tf.placeholder(tf.float32, [None, N]),
            tf.placeholder(tf.float32, [None]),
        )
        part = tf.fixed_size_partitioner(4)
        table = tf.get_variable(
            "emb", [V, D], partitioner=part, initializer=tf.random_normal_initializer(stddev=0.02, seed=1)
        )
        e = tf.nn.embedding_lookup(table, ids, partition_strategy="div")
        x0 = tf.concat([tf.reshape(e, [-1, F * D]), tf.log1p(num)], 1)
        d = F * D + N
        x = x0
        for i in range(3):
            w = tf.get_variable("cw%d" % i, [d, 1], initializer=tf.glorot_normal_initializer(seed=i))
            b = tf.get_variable("cb%d" % i, [d, 1], initializer=tf.zeros_initializer())
            x = (
                tf.squeeze(tf.matmul(tf.expand_dims(x0, 2), tf.expand_dims(tf.matmul(x, w), 1)), 2)
                + tf.transpose(b)
                + x
            )
        h = x0
        for u in (128, 64):
            h = tf.layers.dense(h, u)
            h = tf.nn.relu(tf.layers.batch_normalization(h, training=True, momentum=0.9))
        logit = tf.squeeze(tf.layers.dense(tf.concat([x, h], 1), 1), 1)
        pred = tf.sigmoid(logit)
        loss = _sig(tf, y, logit) + 0.0001 * tf.add_n(
            [tf.nn.l2_loss(v) for v in tf.trainable_variables() if "cw" in v.name]
        )
        _, auc = tf.metrics.auc(tf.cast(y, tf.bool), pred)
        gs = tf.train.get_or_create_global_step()
        lr = tf.train.exponential_decay(0.001, gs, 1000, 0.96, staircase=True)
        opt = tf.train.AdamOptimizer(lr)
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            apply = opt.minimize(loss, global_step=gs)
        ema = tf.train.ExponentialMovingAverage(0.99, gs)
        with tf.control_dependencies([apply]):
            train = ema.apply([v for v in tf.trainable_variables() if "dense" in v.name])
        feed = {ids: _i(0, V, B, F), num: R(1).rand(B, N), y: _i(1, 2, B)}
        done = []

        def work(s):
            if not done:
                s.run(tf.local_variables_initializer())
                done.append(1)
            return s.run([loss, auc, train, gs], feed)[:2]

        return work

    return _steps(tf, build)


def self_attentive_recommender(tf):
    """Self-attentive sequential recommendation (Kyubyong-style multihead attention)."""

    def build():
        B, T, D, V = (128, 50, 50, 12000)
        u, seq, pos, neg = (tf.placeholder(tf.int32, (None,)), *(tf.placeholder(tf.int32, (None, T)) for _ in range(3)))
        training = tf.placeholder(tf.bool, ())
        mask = tf.expand_dims(tf.to_float(tf.not_equal(seq, 0)), -1)

        def embedding(inputs, vocab, dim, zero_pad, scale, scope, with_t=False):
            with tf.variable_scope(scope):
                t = tf.get_variable("lookup_table", [vocab, dim], regularizer=tf.keras.regularizers.l2(0.0))
                if zero_pad:
                    t = tf.concat((tf.zeros([1, dim]), t[1:, :]), 0)
                o = tf.nn.embedding_lookup(t, inputs)
                if scale:
                    o = o * dim**0.5
            return (o, t) if with_t else o

        def normalize(x, scope):
            with tf.variable_scope(scope):
                mean, var = tf.nn.moments(x, [-1], keep_dims=True)
                beta, gamma = (tf.Variable(tf.zeros(x.shape[-1:])), tf.Variable(tf.ones(x.shape[-1:])))
                return gamma * ((x - mean) / (var + 1e-08) ** 0.5) + beta

        def mha(queries, keys, scope):
            with tf.variable_scope(scope):
                Q, K, Vv = (tf.layers.dense(queries, D), tf.layers.dense(keys, D), tf.layers.dense(keys, D))
                Q_, K_, V_ = (tf.concat(tf.split(t, 1, 2), 0) for t in (Q, K, Vv))
                o = tf.matmul(Q_, tf.transpose(K_, [0, 2, 1])) / D**0.5
                km = tf.tile(tf.sign(tf.reduce_sum(tf.abs(keys), -1)), [1, 1])
                km = tf.tile(tf.expand_dims(km, 1), [1, tf.shape(queries)[1], 1])
                pad = tf.ones_like(o) * (-(2**32) + 1)
                o = tf.where(tf.equal(km, 0), pad, o)
                tril = tf.linalg.LinearOperatorLowerTriangular(tf.ones_like(o[0])).to_dense()
                o = tf.where(tf.equal(tf.tile(tf.expand_dims(tril, 0), [tf.shape(o)[0], 1, 1]), 0), pad, o)
                o = tf.nn.softmax(o)
                qm = tf.tile(tf.expand_dims(tf.sign(tf.reduce_sum(tf.abs(queries), -1)), -1), [1, 1, tf.shape(keys)[1]])
                o = tf.layers.dropout(o * qm, 0.2, training=training, seed=3)
                return tf.matmul(o, V_) + queries

        x, table = embedding(seq, V + 1, D, True, True, "items", True)
        t = embedding(
            tf.tile(tf.expand_dims(tf.range(tf.shape(seq)[1]), 0), [tf.shape(seq)[0], 1]), T, D, False, False, "pos"
        )
        x = tf.layers.dropout(x + t, 0.2, training=training, seed=4) * mask
        for i in range(2):
            with tf.variable_scope("block_%d" % i):
                x = mha(normalize(x, "ln1"), x, "att")
                h = normalize(x, "ln2")
                o = tf.layers.dropout(tf.layers.conv1d(h, D, 1, activation=tf.nn.relu), 0.2, training=training, seed=6)
                x = (tf.layers.dropout(tf.layers.conv1d(o, D, 1), 0.2, training=training, seed=7) + h) * mask
        x = normalize(x, "ln")
        pos_, neg_ = (tf.reshape(pos, [-1]), tf.reshape(neg, [-1]))
        pe, ne, se = (tf.nn.embedding_lookup(table, pos_), tf.nn.embedding_lookup(table, neg_), tf.reshape(x, [-1, D]))
        pl, nl = (tf.reduce_sum(pe * se, -1), tf.reduce_sum(ne * se, -1))
        it = tf.reshape(tf.to_float(tf.not_equal(pos_, 0)), [-1])
        loss = tf.reduce_sum(
            -tf.log(tf.sigmoid(pl) + 1e-24) * it - tf.log(1 - tf.sigmoid(nl) + 1e-24) * it
        ) / tf.reduce_sum(it)
        loss += sum(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES))
        auc = tf.reduce_sum((tf.sign(pl - nl) + 1) / 2 * it) / tf.reduce_sum(it)
        tf.summary.scalar("loss", loss)
        tf.summary.scalar("auc", auc)
        gs = tf.Variable(0, name="global_step", trainable=False)
        train = tf.train.AdamOptimizer(0.001, beta2=0.98).minimize(loss, global_step=gs)
        merged = tf.summary.merge_all()
        s_ = _i(0, V, B, T) + 1
        s_[R(5).rand(B, T) < 0.1] = 0
        s_[:, :5] = 0
        feed = {
            u: _i(4, 100, B),
            seq: s_,
            pos: (_i(1, V, B, T) + 1) * (s_ > 0),
            neg: _i(2, V, B, T) + 1,
            training: True,
        }
        return lambda s: s.run([auc, loss, train, merged], feed)[:2]

    return _steps(tf, build)


def two_tasks(tf):
    """Multi-gate mixture of experts for two tasks, census-like inputs."""

    def build():
        B, D, E, U = (256, 300, 8, 64)
        x, y1, y2 = (
            tf.placeholder(tf.float32, [None, D]),
            tf.placeholder(tf.float32, [None, 1]),
            tf.placeholder(tf.float32, [None, 1]),
        )
        ek = tf.get_variable("expert_kernels", [D, U, E], initializer=tf.variance_scaling_initializer(seed=1))
        eb = tf.get_variable("expert_bias", [U, E], initializer=tf.zeros_initializer())
        experts = tf.nn.relu(tf.tensordot(x, ek, axes=1) + eb)
        losses, preds = ([], [])
        for t, y in enumerate((y1, y2)):
            with tf.variable_scope("task%d" % t):
                gk = tf.get_variable("gate", [D, E], initializer=tf.variance_scaling_initializer(seed=4 + t))
                g = tf.nn.softmax(tf.matmul(x, gk))
                g = tf.tile(tf.expand_dims(g, 1), [1, U, 1])
                o = tf.reduce_sum(experts * g, 2)
                h = tf.layers.dense(o, 32, tf.nn.relu)
                l = tf.layers.dense(h, 1)
                preds.append(tf.sigmoid(l))
                losses.append(_sig(tf, y, l))
        s1, s2 = (
            tf.get_variable("s1", [], initializer=tf.zeros_initializer()),
            tf.get_variable("s2", [], initializer=tf.zeros_initializer()),
        )
        loss = tf.exp(-s1) * losses[0] + s1 + tf.exp(-s2) * losses[1] + s2
        train = tf.train.RMSPropOptimizer(0.001, momentum=0.5, centered=True).minimize(loss)
        feed = {x: _f(0, B, D), y1: _i(1, 2, B, 1), y2: _i(2, 2, B, 1)}
        return lambda s: s.run([loss, losses, preds, train], feed)[:2]

    return _steps(tf, build)


def sampled_neighbours(tf):
    """GraphSAGE: sampled neighbours by gather and shuffled columns, mean aggregators, affinity with negative samples."""

    def build():
        N, D, B = (10000, 50, 256)
        feats = tf.Variable(tf.constant(_f(0, N, D)), trainable=False)
        adj = tf.Variable(tf.constant(_i(1, N, N, 25), tf.int32), trainable=False, name="adj_info")
        b1, b2 = (tf.placeholder(tf.int32, [None]), tf.placeholder(tf.int32, [None]))
        bs = tf.placeholder(tf.int32, [])
        degs = np.arange(1, N + 1)[::-1].tolist()
        neg, _, _ = tf.nn.fixed_unigram_candidate_sampler(
            tf.reshape(tf.cast(b2, tf.int64), [bs, 1]), 1, 20, False, N, distortion=0.75, unigrams=degs, seed=3
        )

        def sample(ids, num):
            l = tf.nn.embedding_lookup(adj, ids)
            l = tf.transpose(tf.random_shuffle(tf.transpose(l), seed=4))
            return tf.slice(l, [0, 0], [-1, num])

        weights = {}

        def glorot(shape, name):
            if name not in weights:
                r = np.sqrt(6.0 / sum(shape))
                weights[name] = tf.Variable(tf.random_uniform(shape, -r, r, seed=len(weights)), name=name)
            return weights[name]

        def agg(self_v, neigh_v, layer, din, act):
            m = tf.reduce_mean(tf.nn.dropout(neigh_v, 1.0), 1)
            o = tf.concat(
                [
                    tf.matmul(self_v, glorot([din, 64], "self%d" % layer)),
                    tf.matmul(m, glorot([din, 64], "neigh%d" % layer)),
                ],
                1,
            )
            return act(o)

        def embed(ids, n):
            s1 = tf.reshape(sample(ids, 10), [-1])
            s2 = tf.reshape(sample(s1, 5), [-1])
            h = [tf.nn.embedding_lookup(feats, t) for t in (ids, s1, s2)]
            h0 = agg(h[0], tf.reshape(h[1], [n, 10, D]), 0, D, tf.nn.relu)
            h1 = agg(h[1], tf.reshape(h[2], [n * 10, 5, D]), 0, D, tf.nn.relu)
            return tf.nn.l2_normalize(agg(h0, tf.reshape(h1, [n, 10, 128]), 1, 128, lambda t: t), 1)

        o1, o2, on = (embed(b1, bs), embed(b2, bs), embed(tf.cast(neg, tf.int32), 20))
        aff = tf.reduce_sum(o1 * o2, 1)
        na = tf.matmul(o1, tf.transpose(on))
        xe = tf.nn.sigmoid_cross_entropy_with_logits
        loss = tf.reduce_sum(xe(labels=tf.ones_like(aff), logits=aff)) + tf.reduce_sum(
            xe(labels=tf.zeros_like(na), logits=na)
        )
        loss = loss / tf.cast(bs, tf.float32)
        for v in weights.values():
            loss += 1e-05 * tf.nn.l2_loss(v)
        opt = tf.train.AdamOptimizer(0.0001)
        gv = [(tf.clip_by_value(g, -5.0, 5.0) if g is not None else None, v) for g, v in opt.compute_gradients(loss)]
        train = opt.apply_gradients(gv)
        all_aff = tf.concat([na, tf.expand_dims(aff, 1)], 1)
        size = tf.shape(all_aff)[1]
        _, ir = tf.nn.top_k(all_aff, k=size)
        _, ranks = tf.nn.top_k(-ir, k=size)
        mrr = tf.reduce_mean(tf.div(1.0, tf.cast(ranks[:, -1] + 1, tf.float32)))
        feed = {b1: _i(5, N, B), b2: _i(6, N, B), bs: B}
        return lambda s: s.run([train, loss, ranks, aff, mrr], feed)[1]

    return _steps(tf, build)


def masked_ratings(tf):
    """AutoRec with masks, L2, RMSProp with decays and gradient clipping by value."""

    def build():
        I, B, H = (3000, 128, 300)
        r, m = (tf.placeholder(tf.float32, [None, I]), tf.placeholder(tf.float32, [None, I]))
        V = tf.get_variable("V", [I, H], initializer=tf.truncated_normal_initializer(stddev=0.03, seed=1))
        W = tf.get_variable("W", [H, I], initializer=tf.truncated_normal_initializer(stddev=0.03, seed=2))
        mu, b = (
            tf.get_variable("mu", [H], initializer=tf.zeros_initializer()),
            tf.get_variable("b", [I], initializer=tf.zeros_initializer()),
        )
        enc = tf.nn.sigmoid(tf.matmul(r, V) + mu)
        dec = tf.identity(tf.matmul(enc, W) + b)
        rec = tf.square(tf.norm(tf.multiply(r - dec, m)))
        reg = tf.square(tf.norm(W)) + tf.square(tf.norm(V))
        cost = rec + 0.5 * reg
        gs = tf.Variable(0, trainable=False)
        lr = tf.train.exponential_decay(0.001, gs, 50, 0.96, staircase=True)
        opt = tf.train.RMSPropOptimizer(lr)
        gvs = opt.compute_gradients(cost, var_list=tf.trainable_variables())
        train = opt.apply_gradients([(tf.clip_by_value(g, -5.0, 5.0), v) for g, v in gvs], global_step=gs)
        mk = (R(0).rand(B, I) > 0.95).astype("f")
        feed = {r: mk * (_i(1, 5, B, I) + 1), m: mk}
        return lambda s: s.run([train, cost, dec, gs], feed)[1]

    return _steps(tf, build)


def session_graphs(tf):
    """Session graphs: gated GNN with adjacency matrices per session, soft attention, softmax over all items."""

    def build():
        B, N, H, V = (100, 16, 100, 3000)
        adj_in, adj_out = (tf.placeholder(tf.float32, [B, None, None]), tf.placeholder(tf.float32, [B, None, None]))
        item, alias, mask, tar = (
            tf.placeholder(tf.int32, [B, None]),
            tf.placeholder(tf.int32, [B, None]),
            tf.placeholder(tf.float32, [B, None]),
            tf.placeholder(tf.int32),
        )
        u = tf.random_uniform_initializer(-0.1, 0.1, seed=1)
        emb = tf.get_variable("embedding", [V, H], initializer=u)
        W_in, b_in = (tf.get_variable("W_in", [H, H], initializer=u), tf.get_variable("b_in", [H], initializer=u))
        W_out, b_out = (tf.get_variable("W_out", [H, H], initializer=u), tf.get_variable("b_out", [H], initializer=u))
        fin = tf.nn.embedding_lookup(emb, item)
        cell = tf.nn.rnn_cell.GRUCell(H)
        with tf.variable_scope("gru"):
            for _ in range(1):
                fin = tf.reshape(fin, [B, -1, H])
                si = tf.reshape(tf.matmul(tf.reshape(fin, [-1, H]), W_in) + b_in, [B, -1, H])
                so = tf.reshape(tf.matmul(tf.reshape(fin, [-1, H]), W_out) + b_out, [B, -1, H])
                av = tf.concat([tf.matmul(adj_in, si), tf.matmul(adj_out, so)], -1)
                _, fin = tf.nn.dynamic_rnn(
                    cell, tf.expand_dims(tf.reshape(av, [-1, 2 * H]), 1), initial_state=tf.reshape(fin, [-1, H])
                )
        rm = tf.reduce_sum(mask, 1)
        last_id = tf.gather_nd(alias, tf.stack([tf.range(B), tf.to_int32(rm) - 1], 1))
        re = tf.reshape(fin, [B, -1, H])
        last_h = tf.gather_nd(re, tf.stack([tf.range(B), last_id], 1))
        seq_h = tf.stack([tf.nn.embedding_lookup(re[i], alias[i]) for i in range(B)], 0)
        w1, w2, v = (
            tf.get_variable("nasr_w1", [H, H], initializer=u),
            tf.get_variable("nasr_w2", [H, H], initializer=u),
            tf.get_variable("nasrv", [1, H], initializer=u),
        )
        last = tf.reshape(tf.matmul(last_h, w1), [B, 1, -1])
        seq = tf.matmul(tf.reshape(seq_h, [-1, H]), w2)
        m = tf.nn.sigmoid(
            last + tf.reshape(seq, [B, -1, H]) + tf.get_variable("nasr_b", [H], initializer=tf.zeros_initializer())
        )
        coef = tf.matmul(tf.reshape(m, [-1, H]), v, transpose_b=True) * tf.reshape(mask, [-1, 1])
        ma = tf.concat([tf.reduce_sum(tf.reshape(coef, [B, -1, 1]) * seq_h, 1), tf.reshape(last_h, [-1, H])], -1)
        B_ = tf.get_variable("B", [2 * H, H], initializer=u)
        logits = tf.matmul(tf.matmul(ma, B_), emb[1:], transpose_b=True)
        loss = _ce(tf, tar - 1, logits)
        vars_ = tf.trainable_variables()
        loss = (
            loss
            + tf.add_n([tf.nn.l2_loss(t) for t in vars_ if t.name not in ["bias", "gamma", "b", "g", "beta"]]) * 1e-05
        )
        gs = tf.Variable(0)
        lr = tf.train.exponential_decay(0.001, global_step=gs, decay_steps=300, decay_rate=0.1, staircase=True)
        opt = tf.train.AdamOptimizer(lr).minimize(loss, global_step=gs)
        mk = np.arange(N)[None] < R(3).randint(3, N, B)[:, None]
        feed = {
            adj_in: R(0).rand(B, N, N) * 0.1,
            adj_out: R(1).rand(B, N, N) * 0.1,
            item: _i(2, V, B, N),
            alias: _i(4, N, B, N),
            mask: mk,
            tar: _i(5, V - 1, B) + 1,
        }
        return lambda s: s.run([opt, loss, logits, gs], feed)[1]

    return _steps(tf, build)


def characters_of_words(tf):
    """Character CNN with highway, two directions of LSTMP stacks, sampled softmax, Adagrad."""

    def build():
        B, T, W, V, P = (16, 12, 20, 10000, 64)
        tok, tokr = (tf.placeholder(tf.int32, [B, T, W]), tf.placeholder(tf.int32, [B, T, W]))
        nxt, nxtr = (tf.placeholder(tf.int32, [B, T]), tf.placeholder(tf.int32, [B, T]))
        with tf.device("/cpu:0"):
            ce = tf.get_variable("char_embed", [261, 16], initializer=tf.random_uniform_initializer(-1.0, 1.0, seed=1))

        def embed(t):
            e = tf.nn.embedding_lookup(ce, t)
            cs = []
            with tf.variable_scope("CNN", reuse=tf.AUTO_REUSE):
                for i, (w, n) in enumerate([[1, 16], [2, 16], [3, 32], [4, 64]]):
                    k = tf.get_variable(
                        "W_cnn_%d" % i, [1, w, 16, n], initializer=tf.random_uniform_initializer(-0.05, 0.05, seed=i)
                    )
                    c = tf.nn.conv2d(e, k, [1, 1, 1, 1], "VALID") + tf.get_variable(
                        "b_cnn_%d" % i, [n], initializer=tf.zeros_initializer()
                    )
                    c = tf.nn.relu(tf.nn.max_pool(c, [1, 1, W - w + 1, 1], [1, 1, 1, 1], "VALID"))
                    cs.append(tf.squeeze(c, [2]))
                e = tf.reshape(tf.concat(cs, 2), [-1, 128])
                wc = tf.get_variable("Wc", [128, 128])
                bc = tf.get_variable("bc", [128], initializer=tf.constant_initializer(-2.0))
                wt = tf.get_variable("Wt", [128, 128])
                bt = tf.get_variable("bt", [128], initializer=tf.zeros_initializer())
                g = tf.nn.sigmoid(tf.matmul(e, wc) + bc)
                e = g * tf.nn.relu(tf.matmul(e, wt) + bt) + (1 - g) * e
                e = tf.matmul(e, tf.get_variable("Wp", [128, P])) + tf.get_variable(
                    "bp", [P], initializer=tf.zeros_initializer()
                )
            return tf.reshape(e, [B, T, P])

        outs, states, finals = ([], [], [])
        for d, t in enumerate((tok, tokr)):
            x = embed(t)
            cells = []
            for i in range(2):
                c = tf.nn.rnn_cell.LSTMCell(256, num_proj=P, cell_clip=3.0, proj_clip=3.0)
                if i > 0:
                    c = tf.nn.rnn_cell.ResidualWrapper(c)
                cells.append(tf.nn.rnn_cell.DropoutWrapper(c, input_keep_prob=0.9, seed=i))
            cell = tf.nn.rnn_cell.MultiRNNCell(cells)
            init = cell.zero_state(B, tf.float32)
            states.append(init)
            with tf.variable_scope("RNN_%d" % d):
                o, f = tf.nn.static_rnn(cell, tf.unstack(x, axis=1), initial_state=init)
            finals.append(f)
            outs.append(tf.nn.dropout(tf.reshape(tf.stack(o, 1), [-1, P]), 0.9, seed=6))
        sw = tf.get_variable("sw", [V, P], initializer=tf.random_normal_initializer(0, 0.1, seed=8))
        sb = tf.get_variable("sb", [V], initializer=tf.zeros_initializer())
        losses = [
            tf.reduce_mean(tf.nn.sampled_softmax_loss(sw, sb, tf.reshape(n, [-1, 1]), o, 256, V, seed=10))
            for o, n in zip(outs, (nxt, nxtr))
        ]
        loss = 0.5 * sum(losses)
        gs = tf.train.get_or_create_global_step()
        opt = tf.train.AdagradOptimizer(0.2, initial_accumulator_value=1.0)
        gv = opt.compute_gradients(loss * 20)
        g, n = tf.clip_by_global_norm([g for g, _ in gv], 10.0)
        train = opt.apply_gradients(zip(g, [v for _, v in gv]), gs)
        feed = {tok: _i(0, 261, B, T, W), tokr: _i(1, 261, B, T, W), nxt: _i(2, V, B, T), nxtr: _i(3, V, B, T)}
        return lambda s: s.run([train, loss, n], feed)[1]

    return _steps(tf, build)


def keras_text_batches(tf):
    """Functional model: Embedding, Conv1D, LSTM, shared input; train_on_batch."""
    with tf.Graph().as_default(), tf.Session() as s:
        tf.set_random_seed(3)
        k = tf.keras
        k.backend.set_session(s)
        x, z = (k.Input((40,)), k.Input((8,)))
        h = k.layers.Embedding(5000, 64)(x)
        h = k.layers.MaxPooling1D(2)(k.layers.Conv1D(64, 3, padding="same", activation="relu")(h))
        h = k.layers.LSTM(64)(h)
        h = k.layers.concatenate([h, k.layers.Dense(16, activation="relu")(z)])
        o = k.layers.Dense(5, activation="softmax")(h)
        m = k.Model([x, z], o)
        m.compile("rmsprop", "sparse_categorical_crossentropy", metrics=["acc"])
        X, Z, y = (_i(0, 5000, 64, 40), _f(1, 64, 8), _i(2, 5, 64))
        s.run(tf.global_variables_initializer())
        return (_rate(lambda: m.train_on_batch([X, Z], y), 1, 3.0), "steps/s")


def shared_columns(tf):
    """Shared embedding columns over sparse fed strings, weighted categories, sequence-like histories, linear_model with partitions."""

    def build():
        fc = tf.feature_column
        B = 128
        click, hist, price, w = (
            tf.placeholder(tf.int64, [None, 1]),
            tf.sparse_placeholder(tf.int64),
            tf.placeholder(tf.float32, [None, 2]),
            tf.sparse_placeholder(tf.float32),
        )
        y = tf.placeholder(tf.float32, [None, 1])
        a, b = (fc.categorical_column_with_identity("click", 5000), fc.categorical_column_with_identity("hist", 5000))
        cols = (
            fc.shared_embeddings([a, b], 16)
            if not hasattr(fc, "shared_embedding_columns")
            else fc.shared_embedding_columns([a, b], 16)
        )
        wc = fc.weighted_categorical_column(b, "w")
        pr = fc.numeric_column("price", shape=(2,))
        bp = fc.bucketized_column(fc.numeric_column("p0"), [0.1, 0.3, 0.5, 0.7])
        feats = {"click": click, "hist": hist, "price": price, "p0": price[:, :1], "w": w}
        with tf.variable_scope("deep", partitioner=tf.min_max_variable_partitioner(4, min_slice_size=64 << 10)):
            h = fc.input_layer(
                feats, list(cols) + [pr, fc.embedding_column(wc, 8, combiner="sqrtn"), fc.indicator_column(bp)]
            )
        for n in (64, 32):
            h = tf.layers.dense(h, n, tf.nn.relu)
        lg = tf.layers.dense(h, 1) + fc.linear_model(feats, [a, bp, fc.crossed_column([bp, a], 1000)])
        loss = _sig(tf, y, lg)
        dv = [v for v in tf.trainable_variables() if "linear" not in v.name]
        lv = [v for v in tf.trainable_variables() if "linear" in v.name]
        train = tf.group(
            tf.train.AdagradOptimizer(0.05).minimize(loss, var_list=dv),
            tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01).minimize(loss, var_list=lv),
        )
        n = R(1).randint(1, 15, B)
        ind = np.array([(i, j) for i, k in enumerate(n) for j in range(k)])
        feed = {
            click: _i(2, 5000, B, 1),
            hist: tf.SparseTensorValue(ind, _i(3, 5000, len(ind)), [B, 15]),
            w: tf.SparseTensorValue(ind, R(5).rand(len(ind)), [B, 15]),
            price: R(4).rand(B, 2),
            y: _i(6, 2, B, 1),
        }
        return lambda s: s.run([loss, train], feed)[0]

    return _steps(tf, build)


ALL = {
    program.__name__: program
    for program in (
        deep_cross, self_attentive_recommender, two_tasks, sampled_neighbours, masked_ratings, session_graphs, characters_of_words,
        keras_text_batches, shared_columns,
    )
}  # fmt: skip
