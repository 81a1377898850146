"""A third set of programs as people write them. Run with `run.py --module further_programs`."""

import numpy as np
from programs import R, _steps


def seq2seq_attention(tf):
    """An encoder and a decoder with additive attention in a while_loop, clipped gradients."""

    def build():
        B, T, U, V, E, H = 16, 12, 10, 200, 32, 48
        src, dst, tgt = (
            tf.placeholder(tf.int32, [None, T]),
            tf.placeholder(tf.int32, [None, U]),
            tf.placeholder(tf.int32, [None, U]),
        )
        lens, tlens = tf.placeholder(tf.int32, [None]), tf.placeholder(tf.int32, [None])
        emb = tf.get_variable("emb", [V, E], initializer=tf.random_uniform_initializer(-1, 1))
        enc_cell = tf.nn.rnn_cell.GRUCell(H)
        enc, state = tf.nn.dynamic_rnn(
            enc_cell, tf.nn.embedding_lookup(emb, src), sequence_length=lens, dtype=tf.float32, scope="enc"
        )
        keys = tf.layers.dense(enc, H, use_bias=False, name="memory")
        mask = tf.sequence_mask(lens, T, tf.float32)
        dec_in = tf.transpose(tf.nn.embedding_lookup(emb, dst), [1, 0, 2])
        ta_in = tf.TensorArray(tf.float32, U).unstack(dec_in)
        ta_out = tf.TensorArray(tf.float32, U)
        cell = tf.nn.rnn_cell.GRUCell(H)
        v = tf.get_variable("v", [H])
        wq = tf.get_variable("wq", [H, H])
        with tf.variable_scope("dec"):
            cell.build([None, E + H])

        def body(t, s, ctx, out):
            x = tf.concat([ta_in.read(t), ctx], 1)
            o, s = cell(x, s)
            q = tf.expand_dims(tf.matmul(o, wq), 1)
            score = tf.reduce_sum(v * tf.tanh(keys + q), 2)
            score = score * mask + (1.0 - mask) * -1e9
            a = tf.nn.softmax(score)
            ctx = tf.reduce_sum(tf.expand_dims(a, 2) * enc, 1)
            return t + 1, s, ctx, out.write(t, tf.concat([o, ctx], 1))

        ctx0 = tf.zeros_like(state)
        _, _, _, outs = tf.while_loop(lambda t, *_: t < U, body, [0, state, ctx0, ta_out])
        logits = tf.layers.dense(tf.transpose(outs.stack(), [1, 0, 2]), V)
        ce = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tgt, logits=logits)
        w = tf.sequence_mask(tlens, U, tf.float32)
        loss = tf.reduce_sum(ce * w) / tf.reduce_sum(w)
        opt = tf.train.AdamOptimizer(1e-3)
        gv = opt.compute_gradients(loss)
        train = opt.apply_gradients([(tf.clip_by_norm(g, 5.0), v) for g, v in gv if g is not None])
        feed = {
            src: R(0).randint(0, V, (B, T)),
            dst: R(1).randint(0, V, (B, U)),
            tgt: R(2).randint(0, V, (B, U)),
            lens: R(3).randint(3, T + 1, B),
            tlens: R(4).randint(3, U + 1, B),
        }
        return lambda s: s.run([loss, train], feed)

    return _steps(tf, build)


def lm_bptt(tf):
    """A language model of words: two LSTM layers with dropout, unrolled, whose state is fed from run to run."""

    def build():
        B, T, V, H = 20, 15, 1000, 100
        x, y = tf.placeholder(tf.int32, [B, T]), tf.placeholder(tf.int32, [B, T])
        keep = tf.placeholder_with_default(0.7, [])

        def make():
            return tf.nn.rnn_cell.DropoutWrapper(
                tf.nn.rnn_cell.BasicLSTMCell(H, forget_bias=0.0), output_keep_prob=keep
            )

        cell = tf.nn.rnn_cell.MultiRNNCell([make() for _ in range(2)])
        init = cell.zero_state(B, tf.float32)
        emb = tf.get_variable("emb", [V, H])
        inputs = tf.nn.dropout(tf.nn.embedding_lookup(emb, x), keep)
        outs = []
        state = init
        with tf.variable_scope("RNN"):
            for t in range(T):
                if t > 0:
                    tf.get_variable_scope().reuse_variables()
                o, state = cell(inputs[:, t, :], state)
                outs.append(o)
        out = tf.reshape(tf.concat(outs, 1), [-1, H])
        w, b = tf.get_variable("w", [H, V]), tf.get_variable("b", [V])
        logits = tf.nn.xw_plus_b(out, w, b)
        ce = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.reshape(y, [-1]), logits=logits)
        loss = tf.reduce_sum(ce) / B
        lr = tf.Variable(1.0, trainable=False)
        tv = tf.trainable_variables()
        g, _ = tf.clip_by_global_norm(tf.gradients(loss, tv), 5)
        train = tf.train.GradientDescentOptimizer(lr).apply_gradients(
            zip(g, tv), global_step=tf.train.get_or_create_global_step()
        )
        held = []

        def work(s):
            feed = {x: R(0).randint(0, V, (B, T)), y: R(1).randint(0, V, (B, T))}
            if held:
                for i, (c, h) in enumerate(init):
                    feed[c], feed[h] = held[0][i].c, held[0][i].h
            _, st, _ = s.run([loss, state, train], feed)
            held[:] = [st]

        return work

    return _steps(tf, build)


def ctc_stacked(tf):
    """Speech: two LSTM layers, CTC loss, greedy decoding and edit distance."""

    def build():
        B, T, F, C = 8, 40, 26, 28
        x = tf.placeholder(tf.float32, [None, None, F])
        lens = tf.placeholder(tf.int32, [None])
        target = tf.sparse_placeholder(tf.int32)
        cells = [tf.nn.rnn_cell.LSTMCell(48, state_is_tuple=True) for _ in range(2)]
        out, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.MultiRNNCell(cells), x, lens, dtype=tf.float32)
        shape = tf.shape(x)
        W = tf.Variable(tf.truncated_normal([48, C], stddev=0.1))
        b = tf.Variable(tf.constant(0.0, shape=[C]))
        logits = tf.reshape(tf.matmul(tf.reshape(out, [-1, 48]), W) + b, [shape[0], -1, C])
        logits = tf.transpose(logits, (1, 0, 2))
        loss = tf.nn.ctc_loss(target, logits, lens)
        cost = tf.reduce_mean(loss)
        train = tf.train.MomentumOptimizer(1e-2, 0.9).minimize(cost)
        decoded, _ = tf.nn.ctc_greedy_decoder(logits, lens)
        ler = tf.reduce_mean(tf.edit_distance(tf.cast(decoded[0], tf.int32), target))
        labels = [R(i).randint(0, 27, 5 + i) for i in range(B)]
        idx = np.array([(i, j) for i, l in enumerate(labels) for j in range(len(l))], np.int64)
        val = np.concatenate(labels).astype(np.int32)
        feed = {
            x: R(0).randn(B, T, F).astype("f"),
            lens: R(1).randint(26, T + 1, B),
            target: tf.SparseTensorValue(idx, val, np.array([B, 12], np.int64)),
        }
        return lambda s: s.run([cost, ler, train], feed)

    return _steps(tf, build)


def deepfm_sparse(tf):
    """A factorization machine and a network over weighted sparse features, Adagrad."""

    def build():
        B, V, K, F = 128, 20000, 8, 20
        ids, vals = tf.sparse_placeholder(tf.int64), tf.sparse_placeholder(tf.float32)
        y = tf.placeholder(tf.float32, [None, 1])
        w = tf.get_variable("w", [V, 1], initializer=tf.zeros_initializer())
        e = tf.get_variable("e", [V, K], initializer=tf.random_normal_initializer(stddev=0.01))
        linear = tf.nn.embedding_lookup_sparse(w, ids, vals, combiner="sum")
        s1 = tf.square(tf.nn.embedding_lookup_sparse(e, ids, vals, combiner="sum"))
        sq = tf.SparseTensor(vals.indices, tf.square(vals.values), vals.dense_shape)
        s2 = tf.nn.embedding_lookup_sparse(tf.square(e), ids, sq, combiner="sum")
        fm = 0.5 * tf.reduce_sum(s1 - s2, 1, keepdims=True)
        deep = tf.nn.embedding_lookup_sparse(e, ids, vals, combiner="mean")
        for n in (64, 32):
            deep = tf.layers.dense(deep, n, tf.nn.relu)
        logits = linear + fm + tf.layers.dense(deep, 1)
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=logits))
        train = tf.train.AdagradOptimizer(0.05).minimize(loss)
        idx = np.array([(i, j) for i in range(B) for j in range(F)], np.int64)
        feed = {
            ids: tf.SparseTensorValue(idx, R(0).randint(0, V, B * F).astype(np.int64), [B, F]),
            vals: tf.SparseTensorValue(idx, R(1).rand(B * F).astype("f"), [B, F]),
            y: R(2).randint(0, 2, (B, 1)).astype("f"),
        }
        return lambda s: s.run([loss, train], feed)

    return _steps(tf, build)


def deepfm_sparse_plain(tf):
    """A linear model and a network over sparse features, Adam, streaming AUC."""

    def build():
        B, V, K, F = 128, 20000, 8, 20
        ids = tf.sparse_placeholder(tf.int64)
        y = tf.placeholder(tf.float32, [None, 1])
        w = tf.get_variable("w", [V, 1], initializer=tf.zeros_initializer())
        e = tf.get_variable("e", [V, K], initializer=tf.random_normal_initializer(stddev=0.01))
        linear = tf.nn.embedding_lookup_sparse(w, ids, None, combiner="sum")
        deep = tf.nn.embedding_lookup_sparse(e, ids, None, combiner="mean")
        for n in (64, 32):
            deep = tf.layers.dense(deep, n, tf.nn.relu)
        logits = linear + tf.layers.dense(deep, 1)
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=logits))
        train = tf.train.AdamOptimizer(0.01).minimize(loss)
        _, up = tf.metrics.auc(y, tf.sigmoid(logits))
        idx = np.array([(i, j) for i in range(B) for j in range(F)], np.int64)
        feed = {
            ids: tf.SparseTensorValue(idx, R(0).randint(0, V, B * F).astype(np.int64), [B, F]),
            y: R(2).randint(0, 2, (B, 1)).astype("f"),
        }

        def work(s):
            if not work.done:
                s.run(tf.local_variables_initializer())
                work.done = True
            s.run([loss, train, up], feed)

        work.done = False
        return work

    return _steps(tf, build)


def dqn_cond(tf):
    """Double Q-learning from images; the target network is copied under tf.cond."""

    def build():
        obs, nxt = tf.placeholder(tf.uint8, [None, 20, 20, 4]), tf.placeholder(tf.uint8, [None, 20, 20, 4])
        a, r, d = (
            tf.placeholder(tf.int32, [None]),
            tf.placeholder(tf.float32, [None]),
            tf.placeholder(tf.float32, [None]),
        )

        def net(x, scope, reuse=False):
            with tf.variable_scope(scope, reuse=reuse):
                h = tf.cast(x, tf.float32) / 255.0
                h = tf.layers.conv2d(h, 16, 4, 2, activation=tf.nn.relu, name="c1")
                h = tf.layers.conv2d(h, 32, 3, 2, activation=tf.nn.relu, name="c2")
                h = tf.layers.dense(tf.layers.flatten(h), 128, tf.nn.relu, name="d1")
                adv = tf.layers.dense(h, 4, name="adv")
                val = tf.layers.dense(h, 1, name="val")
                return val + adv - tf.reduce_mean(adv, 1, keepdims=True)

        q = net(obs, "q")
        qt = net(nxt, "t")
        qn = net(nxt, "q", True)
        best = tf.argmax(qn, 1)
        tgt = r + 0.99 * (1 - d) * tf.reduce_sum(qt * tf.one_hot(best, 4), 1)
        td = tf.reduce_sum(q * tf.one_hot(a, 4), 1) - tf.stop_gradient(tgt)
        err = tf.where(tf.abs(td) < 1.0, tf.square(td) * 0.5, tf.abs(td) - 0.5)
        loss = tf.reduce_mean(err)
        opt = tf.train.AdamOptimizer(1e-4)
        qv, tv = tf.trainable_variables("q"), tf.trainable_variables("t")
        gs = [(tf.clip_by_norm(g, 10), v) for g, v in opt.compute_gradients(loss, qv)]
        step = tf.train.get_or_create_global_step()
        tr = opt.apply_gradients(gs, global_step=step)
        with tf.control_dependencies([tr]):
            up = tf.cond(
                tf.equal(tf.mod(step, 20), 0),
                lambda: tf.group(*[t.assign(v) for v, t in zip(qv, tv)]),
                lambda: tf.no_op(),
            )
        act = tf.argmax(q, 1)
        one = R(0).randint(0, 255, (1, 20, 20, 4)).astype(np.uint8)
        feed = {
            obs: R(0).randint(0, 255, (32, 20, 20, 4)),
            nxt: R(1).randint(0, 255, (32, 20, 20, 4)),
            a: R(2).randint(0, 4, 32),
            r: R(3).randn(32),
            d: R(4).randint(0, 2, 32),
        }

        def work(s):
            for _ in range(4):
                s.run(act, {obs: one})
            s.run([loss, up], feed)

        return work

    return _steps(tf, build)


def wavenet(tf):
    """Dilated causal convolutions with gates, skips and moving averages of the weights."""

    def build():
        x = tf.placeholder(tf.int32, [None, 128])
        h = tf.one_hot(x[:, :-1], 64)

        def conv(h, w, dil):
            return tf.nn.convolution(tf.pad(h, [[0, 0], [dil, 0], [0, 0]]), w, "VALID", dilation_rate=[dil])

        h = tf.nn.conv1d(h, tf.get_variable("in", [1, 64, 32]), 1, "SAME")
        skips = []
        for i in range(5):
            with tf.variable_scope("l%d" % i):
                f, g = tf.get_variable("f", [2, 32, 32]), tf.get_variable("g", [2, 32, 32])
                z = tf.tanh(conv(h, f, 2**i)) * tf.sigmoid(conv(h, g, 2**i))
                skips.append(tf.nn.conv1d(z, tf.get_variable("s", [1, 32, 64]), 1, "SAME"))
                h = h + tf.nn.conv1d(z, tf.get_variable("r", [1, 32, 32]), 1, "SAME")
        o = tf.nn.relu(tf.add_n(skips))
        o = tf.nn.conv1d(o, tf.get_variable("o", [1, 64, 64]), 1, "SAME")
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=x[:, 1:], logits=o))
        step = tf.train.get_or_create_global_step()
        tr = tf.train.AdamOptimizer(1e-3).minimize(loss, global_step=step)
        ema = tf.train.ExponentialMovingAverage(0.999, step)
        with tf.control_dependencies([tr]):
            train = ema.apply(tf.trainable_variables())
        feed = {x: R(0).randint(0, 64, (4, 128))}
        return lambda s: s.run([loss, train], feed)

    return _steps(tf, build)


def ppo_categorical(tf):
    """PPO: sampled actions, then several updates of policy and value."""

    def build():
        ob = tf.placeholder(tf.float32, [None, 17])
        act = tf.placeholder(tf.int32, [None])
        adv = tf.placeholder(tf.float32, [None])
        ret = tf.placeholder(tf.float32, [None])
        old = tf.placeholder(tf.float32, [None])

        def mlp(x, out, scope):
            with tf.variable_scope(scope):
                for n in (64, 64):
                    x = tf.layers.dense(x, n, tf.tanh)
                return tf.layers.dense(x, out)

        logits = mlp(ob, 6, "pi")
        v = tf.squeeze(mlp(ob, 1, "v"), 1)
        lp = tf.nn.log_softmax(logits)
        pi = tf.squeeze(tf.multinomial(logits, 1), 1)
        logp_pi = tf.reduce_sum(tf.one_hot(pi, 6) * lp, 1)
        logp = tf.reduce_sum(tf.one_hot(act, 6) * lp, 1)
        ratio = tf.exp(logp - old)
        minadv = tf.where(adv > 0, 1.2 * adv, 0.8 * adv)
        pl = -tf.reduce_mean(tf.minimum(ratio * adv, minadv))
        vl = tf.reduce_mean((ret - v) ** 2)
        kl = tf.reduce_mean(old - logp)
        ent = tf.reduce_mean(-logp)
        tp = tf.train.AdamOptimizer(3e-4).minimize(pl)
        tv = tf.train.AdamOptimizer(1e-3).minimize(vl)
        o1 = R(0).randn(1, 17)
        feed = {
            ob: R(1).randn(256, 17),
            act: R(2).randint(0, 6, 256),
            adv: R(3).randn(256),
            ret: R(4).randn(256),
            old: -np.abs(R(5).randn(256)),
        }

        def work(s):
            for _ in range(10):
                s.run([pi, v, logp_pi], {ob: o1})
            for _ in range(3):
                s.run([tp, kl], feed)
                s.run(tv, feed)
            s.run([pl, vl, kl, ent], feed)

        return work

    return _steps(tf, build)


def unet(tf):
    """A U-Net with batch normalization and transposed convolutions."""

    def build():
        x, y = tf.placeholder(tf.float32, [None, 32, 32, 3]), tf.placeholder(tf.float32, [None, 32, 32, 1])
        training = tf.placeholder(tf.bool, [])

        def block(h, n):
            for _ in range(2):
                h = tf.layers.conv2d(h, n, 3, padding="same")
                h = tf.nn.relu(tf.layers.batch_normalization(h, training=training))
            return h

        d1 = block(x, 8)
        d2 = block(tf.layers.max_pooling2d(d1, 2, 2), 16)
        m = block(tf.layers.max_pooling2d(d2, 2, 2), 32)
        u2 = block(tf.concat([tf.layers.conv2d_transpose(m, 16, 2, 2), d2], 3), 16)
        u1 = block(tf.concat([tf.layers.conv2d_transpose(u2, 8, 2, 2), d1], 3), 8)
        logits = tf.layers.conv2d(u1, 1, 1)
        p = tf.sigmoid(logits)
        dice = 1 - (2 * tf.reduce_sum(p * y) + 1) / (tf.reduce_sum(p) + tf.reduce_sum(y) + 1)
        loss = dice + tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=logits))
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            train = tf.train.AdamOptimizer(1e-3).minimize(loss)
        feed = {
            x: R(0).rand(4, 32, 32, 3).astype("f"),
            y: R(1).randint(0, 2, (4, 32, 32, 1)).astype("f"),
            training: True,
        }
        return lambda s: s.run([loss, train], feed)

    return _steps(tf, build)


def gru_variational(tf):
    """A GRU with variational dropout over batches of different lengths."""

    def build():
        x, lens, y = (
            tf.placeholder(tf.int32, [None, None]),
            tf.placeholder(tf.int32, [None]),
            tf.placeholder(tf.int32, [None]),
        )
        emb = tf.get_variable("emb", [2000, 40])
        e = tf.nn.embedding_lookup(emb, x)
        cell = tf.nn.rnn_cell.DropoutWrapper(
            tf.nn.rnn_cell.GRUCell(64), 0.8, 0.8, 0.8, variational_recurrent=True, input_size=40, dtype=tf.float32
        )
        out, st = tf.nn.dynamic_rnn(cell, e, sequence_length=lens, dtype=tf.float32)
        pooled = tf.reduce_max(out, 1)
        logits = tf.layers.dense(tf.concat([pooled, st], 1), 5)
        loss = tf.losses.sparse_softmax_cross_entropy(y, logits)
        train = tf.train.RMSPropOptimizer(1e-3).minimize(loss)
        feeds = [
            {x: R(i).randint(0, 2000, (16, T)), lens: R(i).randint(3, T + 1, 16), y: R(i).randint(0, 5, 16)}
            for i, T in enumerate((20, 24, 30))
        ]
        n = [0]

        def work(s):
            n[0] += 1
            s.run([loss, train], feeds[n[0] % 3])

        return work

    return _steps(tf, build)


def bn_convnet(tf):
    """A convolutional classifier with batch normalization, weight decay and a stepped rate."""

    def build():
        x, y = tf.placeholder(tf.float32, [None, 24, 24, 3]), tf.placeholder(tf.int64, [None])
        h = x
        for n, st in ((16, 1), (32, 2), (32, 1), (64, 2)):
            h = tf.layers.conv2d(
                h, n, 3, st, padding="same", use_bias=False, kernel_regularizer=lambda w: 1e-4 * tf.nn.l2_loss(w)
            )
            h = tf.nn.relu(tf.layers.batch_normalization(h, training=True))
        h = tf.reduce_mean(h, [1, 2])
        logits = tf.layers.dense(tf.layers.dropout(h, 0.3, training=True), 10)
        loss = tf.losses.sparse_softmax_cross_entropy(y, logits) + tf.losses.get_regularization_loss()
        acc = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), y), tf.float32))
        step = tf.train.get_or_create_global_step()
        lr = tf.train.piecewise_constant(step, [1000, 2000], [0.1, 0.01, 0.001])
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            train = tf.train.MomentumOptimizer(lr, 0.9).minimize(loss, global_step=step)
        feed = {x: R(0).rand(16, 24, 24, 3).astype("f"), y: R(1).randint(0, 10, 16)}
        return lambda s: s.run([loss, acc, train], feed)

    return _steps(tf, build)


def layer_norm_lstm(tf):
    """An LSTM cell with layer normalization, written as an RNNCell."""

    def build():
        B, T, D, H = 16, 20, 24, 48
        x, y = tf.placeholder(tf.float32, [None, T, D]), tf.placeholder(tf.float32, [None, T, 1])
        W = tf.get_variable("W", [D + H, 4 * H])
        gs = [tf.get_variable("g%d" % i, [H], initializer=tf.ones_initializer()) for i in range(5)]
        bs = [tf.get_variable("b%d" % i, [H], initializer=tf.zeros_initializer()) for i in range(5)]

        def ln(v, i):
            m, var = tf.nn.moments(v, [1], keep_dims=True)
            return (v - m) * tf.rsqrt(var + 1e-5) * gs[i] + bs[i]

        class Cell(tf.nn.rnn_cell.RNNCell):
            @property
            def state_size(self):
                return tf.nn.rnn_cell.LSTMStateTuple(H, H)

            @property
            def output_size(self):
                return H

            def __call__(self, inp, state, scope=None):
                c, h = state
                z = tf.matmul(tf.concat([inp, h], 1), W)
                i, j, f, o = tf.split(z, 4, 1)
                i, j, f, o = ln(i, 0), ln(j, 1), ln(f, 2), ln(o, 3)
                c = c * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(j)
                h = tf.tanh(ln(c, 4)) * tf.sigmoid(o)
                return h, tf.nn.rnn_cell.LSTMStateTuple(c, h)

        out, _ = tf.nn.dynamic_rnn(Cell(), x, dtype=tf.float32)
        p = tf.layers.dense(out, 1)
        loss = tf.losses.mean_squared_error(y, p)
        train = tf.train.AdamOptimizer(1e-3).minimize(loss)
        feed = {x: R(0).randn(B, T, D), y: R(1).randn(B, T, 1)}
        return lambda s: s.run([loss, train], feed)

    return _steps(tf, build)


def metrics_eval(tf):
    """Evaluation with eight streaming metrics."""

    def build():
        x, y = tf.placeholder(tf.float32, [None, 30]), tf.placeholder(tf.int64, [None])
        logits = tf.layers.dense(tf.layers.dense(x, 64, tf.nn.relu), 8)
        pred = tf.argmax(logits, 1)
        ms = [
            tf.metrics.accuracy(y, pred),
            tf.metrics.precision(y > 3, pred > 3),
            tf.metrics.recall(y > 3, pred > 3),
            tf.metrics.mean_per_class_accuracy(y, pred, 8),
            tf.metrics.mean_iou(y, pred, 8),
            tf.metrics.recall_at_k(y, logits, 3),
            tf.metrics.mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)),
            tf.metrics.false_positives(y > 2, pred > 2),
        ]
        ups = [m[1] for m in ms]
        vals = [m[0] for m in ms]
        feed = {x: R(0).randn(128, 30), y: R(1).randint(0, 8, 128)}
        n = [0]

        def work(s):
            if n[0] % 50 == 0:
                s.run(tf.local_variables_initializer()) if not n[0] else s.run(vals)
            n[0] += 1
            s.run(ups, feed)

        return work

    return _steps(tf, build)


def scan_map(tf):
    """A recurrence by tf.scan, tf.map_fn over examples and tf.foldl."""

    def build():
        x = tf.placeholder(tf.float32, [None, 30, 8])
        y = tf.placeholder(tf.float32, [None, 8])
        w, u, b = (
            tf.get_variable("w", [8, 24]),
            tf.get_variable("u", [24, 24]),
            tf.get_variable("b", [24], initializer=tf.zeros_initializer()),
        )
        xs = tf.transpose(x, [1, 0, 2])
        hs = tf.scan(lambda h, e: tf.tanh(tf.matmul(e, w) + tf.matmul(h, u) + b), xs, initializer=tf.zeros([16, 24]))
        cov = tf.map_fn(lambda m: tf.matmul(m, m, transpose_a=True), x)
        tot = tf.foldl(lambda a, e: 0.9 * a + e, xs, initializer=tf.zeros([16, 8]))
        p = tf.layers.dense(hs[-1], 8) + 0.01 * tf.reduce_mean(cov, 1) + tot
        loss = tf.reduce_mean(tf.square(p - y))
        train = tf.train.AdamOptimizer(1e-3).minimize(loss)
        feed = {x: R(0).randn(16, 30, 8), y: R(1).randn(16, 8)}
        return lambda s: s.run([loss, train], feed)

    return _steps(tf, build)


def word_cnn(tf):
    """Convolutions of three widths over embedded words, maximum over time."""

    def build():
        x, y = tf.placeholder(tf.int32, [None, 56]), tf.placeholder(tf.float32, [None, 2])
        keep = tf.placeholder(tf.float32)
        W = tf.Variable(tf.random_uniform([5000, 64], -1.0, 1.0))
        e = tf.expand_dims(tf.nn.embedding_lookup(W, x), -1)
        pools = []
        l2 = tf.constant(0.0)
        for fs in (3, 4, 5):
            w = tf.Variable(tf.truncated_normal([fs, 64, 1, 32], stddev=0.1))
            b = tf.Variable(tf.constant(0.1, shape=[32]))
            c = tf.nn.conv2d(e, w, strides=[1, 1, 1, 1], padding="VALID")
            h = tf.nn.relu(tf.nn.bias_add(c, b))
            pools.append(tf.nn.max_pool(h, ksize=[1, 56 - fs + 1, 1, 1], strides=[1, 1, 1, 1], padding="VALID"))
        h = tf.nn.dropout(tf.reshape(tf.concat(pools, 3), [-1, 96]), keep)
        w = tf.get_variable("w", [96, 2])
        b = tf.Variable(tf.constant(0.1, shape=[2]))
        l2 += tf.nn.l2_loss(w) + tf.nn.l2_loss(b)
        scores = tf.nn.xw_plus_b(h, w, b)
        loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(logits=scores, labels=y)) + 0.1 * l2
        acc = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(scores, 1), tf.argmax(y, 1)), "float"))
        step = tf.Variable(0, trainable=False)
        opt = tf.train.AdamOptimizer(1e-3)
        gv = opt.compute_gradients(loss)
        train = opt.apply_gradients(gv, global_step=step)
        ss = []
        for g, v in gv:
            ss.append(tf.summary.histogram(v.op.name + "/g", g))
            ss.append(tf.summary.scalar(v.op.name + "/s", tf.nn.zero_fraction(g)))
        feed = {x: R(0).randint(0, 5000, (32, 56)), y: np.eye(2)[R(1).randint(0, 2, 32)], keep: 0.5}
        return lambda s: s.run([train, step, loss, acc], feed)

    return _steps(tf, build)


def bilstm_attention(tf):
    """A bidirectional LSTM with attention over its outputs."""

    def build():
        x, lens, y = (
            tf.placeholder(tf.int32, [None, 25]),
            tf.placeholder(tf.int32, [None]),
            tf.placeholder(tf.int32, [None]),
        )
        emb = tf.get_variable("emb", [3000, 50])
        e = tf.nn.dropout(tf.nn.embedding_lookup(emb, x), 0.7)
        (f, b), _ = tf.nn.bidirectional_dynamic_rnn(
            tf.nn.rnn_cell.BasicLSTMCell(32),
            tf.nn.rnn_cell.BasicLSTMCell(32),
            e,
            sequence_length=lens,
            dtype=tf.float32,
        )
        H = f + b
        w = tf.Variable(tf.random_normal([32], stddev=0.1))
        M = tf.tanh(H)
        al = tf.nn.softmax(tf.reshape(tf.matmul(tf.reshape(M, [-1, 32]), tf.reshape(w, [-1, 1])), (-1, 25)))
        r = tf.squeeze(tf.matmul(tf.transpose(H, [0, 2, 1]), tf.reshape(al, [-1, 25, 1])), 2)
        logits = tf.layers.dense(tf.nn.dropout(tf.tanh(r), 0.5), 4)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
        train = tf.train.AdamOptimizer(1e-3).minimize(loss)
        feed = {x: R(0).randint(0, 3000, (16, 25)), lens: R(1).randint(5, 26, 16), y: R(2).randint(0, 4, 16)}
        return lambda s: s.run([loss, train], feed)

    return _steps(tf, build)


def autoencoder_conv(tf):
    """A convolutional autoencoder that enlarges by nearest neighbours."""

    def build():
        x = tf.placeholder(tf.float32, [None, 784])
        im = tf.reshape(x, [-1, 28, 28, 1])
        h = tf.layers.conv2d(im, 16, 3, 2, "same", activation=tf.nn.relu)
        h = tf.layers.conv2d(h, 8, 3, 2, "same", activation=tf.nn.relu)
        z = tf.layers.dense(tf.layers.flatten(h), 20)
        h = tf.reshape(tf.layers.dense(z, 7 * 7 * 8, tf.nn.relu), [-1, 7, 7, 8])
        h = tf.image.resize_nearest_neighbor(h, [14, 14])
        h = tf.layers.conv2d(h, 8, 3, padding="same", activation=tf.nn.relu)
        h = tf.image.resize_nearest_neighbor(h, [28, 28])
        o = tf.layers.conv2d(h, 1, 3, padding="same")
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=im, logits=o))
        train = tf.train.AdamOptimizer(1e-3).minimize(loss)
        feed = {x: R(0).rand(32, 784)}
        return lambda s: s.run([loss, train], feed)

    return _steps(tf, build)


def mnist_dataset(tf):
    """A tf.data pipeline, a small network, and summaries now and then."""

    def build():
        xs, ys = R(0).rand(2000, 100).astype("f"), R(1).randint(0, 10, 2000)
        ds = (
            tf.data.Dataset.from_tensor_slices((xs, ys))
            .shuffle(500)
            .repeat()
            .map(lambda a, b: (a * 2 - 1, b))
            .batch(64)
            .prefetch(1)
        )
        x, y = tf.data.make_one_shot_iterator(ds).get_next()
        h = tf.layers.dense(x, 128, tf.nn.relu)
        loss = tf.losses.sparse_softmax_cross_entropy(y, tf.layers.dense(h, 10))
        tf.summary.scalar("loss", loss)
        tf.summary.histogram("h", h)
        m = tf.summary.merge_all()
        train = tf.train.AdamOptimizer(1e-3).minimize(loss, global_step=tf.train.get_or_create_global_step())
        n = [0]

        def work(s):
            n[0] += 1
            s.run([train, loss, m] if n[0] % 10 == 0 else [train, loss])

        return work

    return _steps(tf, build)


def kernel_ranking(tf):
    """Ranking by kernels over a matrix of similarities, with a hinge loss."""

    def build():
        q, p, n = (
            tf.placeholder(tf.int32, [None, 8]),
            tf.placeholder(tf.int32, [None, 20]),
            tf.placeholder(tf.int32, [None, 20]),
        )
        emb = tf.get_variable("emb", [4000, 48])
        mus = np.linspace(-0.9, 1.0, 11).astype("f")

        def knrm(d):
            a = tf.nn.l2_normalize(tf.nn.embedding_lookup(emb, q), 2)
            b = tf.nn.l2_normalize(tf.nn.embedding_lookup(emb, d), 2)
            m = tf.expand_dims(tf.matmul(a, b, transpose_b=True), 3)
            k = tf.reduce_sum(tf.exp(-tf.square(m - mus) / 0.02), 2)
            f = tf.reduce_sum(tf.log(tf.maximum(k, 1e-10)) * 0.01, 1)
            with tf.variable_scope("o", reuse=tf.AUTO_REUSE):
                return tf.squeeze(tf.layers.dense(f, 1, tf.tanh), 1)

        loss = tf.reduce_mean(tf.maximum(0.0, 1 - knrm(p) + knrm(n)))
        train = tf.train.AdamOptimizer(1e-3).minimize(loss)
        feed = {
            q: R(0).randint(0, 4000, (16, 8)),
            p: R(1).randint(0, 4000, (16, 20)),
            n: R(2).randint(0, 4000, (16, 20)),
        }
        return lambda s: s.run([loss, train], feed)

    return _steps(tf, build)


def bert_like(tf):
    """Two transformer layers with an Adam that is written out, with weight decay."""

    def build():
        B, T, H, L, N = 4, 32, 64, 2, 4
        ids, mask, y = (
            tf.placeholder(tf.int32, [None, T]),
            tf.placeholder(tf.int32, [None, T]),
            tf.placeholder(tf.int32, [None]),
        )
        emb, pos = tf.get_variable("emb", [1000, H]), tf.get_variable("pos", [64, H])
        h = tf.nn.embedding_lookup(emb, ids) + tf.slice(pos, [0, 0], [T, -1])

        def ln(x, name):
            g, b = (
                tf.get_variable(name + "g", [H], initializer=tf.ones_initializer()),
                tf.get_variable(name + "b", [H], initializer=tf.zeros_initializer()),
            )
            m, v = tf.nn.moments(x, [-1], keep_dims=True)
            return tf.nn.batch_normalization(x, m, v, b, g, 1e-12)

        def gelu(x):
            return x * 0.5 * (1.0 + tf.erf(x / np.sqrt(2.0).astype("f")))

        h = tf.nn.dropout(ln(h, "e"), 0.9)
        adder = (1.0 - tf.cast(tf.reshape(mask, [-1, 1, 1, T]), tf.float32)) * -10000.0
        h = tf.reshape(h, [-1, H])
        for l in range(L):
            with tf.variable_scope("l%d" % l):

                def heads(t):
                    return tf.transpose(tf.reshape(t, [-1, T, N, H // N]), [0, 2, 1, 3])

                q, k, v = [heads(tf.layers.dense(h, H)) for _ in range(3)]
                s = tf.multiply(tf.matmul(q, k, transpose_b=True), 1.0 / np.sqrt(H // N)) + adder
                p = tf.nn.dropout(tf.nn.softmax(s), 0.9)
                c = tf.reshape(tf.transpose(tf.matmul(p, v), [0, 2, 1, 3]), [-1, H])
                h = ln(tf.nn.dropout(tf.layers.dense(c, H), 0.9) + h, "a")
                m = tf.layers.dense(h, 4 * H, gelu)
                h = ln(tf.nn.dropout(tf.layers.dense(m, H), 0.9) + h, "b")
        first = tf.squeeze(tf.reshape(h, [-1, T, H])[:, 0:1, :], axis=1)
        logits = tf.layers.dense(tf.layers.dense(first, H, tf.tanh), 2)
        loss = tf.reduce_mean(-tf.reduce_sum(tf.one_hot(y, 2) * tf.nn.log_softmax(logits), -1))
        step = tf.train.get_or_create_global_step()
        lr = tf.train.polynomial_decay(1e-4, step, 1000, 0.0)
        tv = tf.trainable_variables()
        g, _ = tf.clip_by_global_norm(tf.gradients(loss, tv), 1.0)
        ups = []
        for gr, v in zip(g, tv):  # AdamWeightDecay written out
            if gr is None:
                continue
            n = v.op.name
            m_, v_ = (
                tf.get_variable(n + "/m", v.shape, trainable=False, initializer=tf.zeros_initializer()),
                tf.get_variable(n + "/v", v.shape, trainable=False, initializer=tf.zeros_initializer()),
            )
            nm = tf.multiply(0.9, m_) + tf.multiply(0.1, gr)
            nv = tf.multiply(0.999, v_) + tf.multiply(0.001, tf.square(gr))
            u = nm / (tf.sqrt(nv) + 1e-6) + 0.01 * v
            ups += [v.assign(v - lr * u), m_.assign(nm), v_.assign(nv)]
        train = tf.group(*ups, step.assign(step + 1))
        feed = {ids: R(0).randint(0, 1000, (B, T)), mask: (R(1).rand(B, T) > 0.2), y: R(2).randint(0, 2, B)}
        return lambda s: s.run([loss, train], feed)

    return _steps(tf, build)


ALL = {
    n: f
    for n, f in list(globals().items())
    if callable(f) and not n.startswith("_") and getattr(f, "__module__", None) == __name__
}
