"""A ninth set of programs: images, agents and equations at the sizes that repositories have. Run with `run.py --module vision_and_control_programs`."""

import itertools

import numpy as np
from programs import R, _steps


def _f(seed, *shape):
    return R(seed).randn(*shape).astype("f")


def _u(seed, *shape):
    return R(seed).rand(*shape).astype("f")


def _d(seed, *shape):
    return R(seed).randn(*shape)


def _ce(tf, labels, logits):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


def _conv(tf, h, n, k=3, s=1, training=True, act=True):
    h = tf.layers.conv2d(h, n, k, s, "same", use_bias=False)
    h = tf.layers.batch_normalization(h, training=training)
    return tf.nn.relu(h) if act else h


def _minimize(tf, opt, loss):
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        return opt.minimize(loss)


def deep_residual(tf):
    """Residual blocks of four widths over images of 112 pixels, a fed `training` flag, clipped gradients, Nesterov's momentum and moving averages."""

    def build():
        x, y = tf.placeholder(tf.float32, [None, 112, 112, 3]), tf.placeholder(tf.int32, [None])
        is_training = tf.placeholder(tf.bool, [])
        h = _conv(tf, x, 32, 7, 2, is_training)
        h = tf.layers.max_pooling2d(h, 3, 2, "same")
        for n, stride in ((32, 1), (32, 1), (64, 2), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1)):
            short = h
            if stride != 1 or h.shape[-1] != n:
                short = _conv(tf, h, n, 1, stride, is_training, act=False)
            h = _conv(tf, h, n, 3, stride, is_training)
            h = _conv(tf, h, n, 3, 1, is_training, act=False)
            h = tf.nn.relu(h + short)
        h = tf.reduce_mean(h, [1, 2])
        logits = tf.layers.dense(h, 100)
        l2 = tf.add_n([tf.nn.l2_loss(v) for v in tf.trainable_variables() if "batch_normalization" not in v.name])
        loss = _ce(tf, y, logits) + 1e-4 * l2
        gs = tf.train.get_or_create_global_step()
        lr = tf.train.piecewise_constant(gs, [100, 200], [0.01, 0.001, 0.0001])
        ema = tf.train.ExponentialMovingAverage(0.999, gs)
        opt = tf.train.MomentumOptimizer(lr, 0.9, use_nesterov=True)
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            gv = opt.compute_gradients(loss)
            gv = [(tf.clip_by_norm(g, 5.0), v) for g, v in gv]
            step = opt.apply_gradients(gv, gs)
        with tf.control_dependencies([step]):
            train = ema.apply(tf.trainable_variables())
        feed = {x: _f(0, 8, 112, 112, 3), y: R(1).randint(0, 100, 8), is_training: True}
        return lambda s: s.run([loss, train], feed)

    return _steps(tf, build)


def inverted_residuals(tf):
    """Wide and narrow convolutions of one pixel around depthwise ones, relu6, Adam."""

    def build():
        x, y = tf.placeholder(tf.float32, [None, 96, 96, 3]), tf.placeholder(tf.int32, [None])

        def dw(h, k, s):
            w = tf.get_variable("dw", [k, k, int(h.shape[-1]), 1])
            h = tf.nn.depthwise_conv2d(h, w, [1, s, s, 1], "SAME")
            return tf.nn.relu6(tf.layers.batch_normalization(h, training=True, momentum=0.997))

        h = tf.nn.relu6(_conv(tf, x, 16, 3, 2, act=False))
        for i, (t, c, s) in enumerate(
            (
                (1, 16, 1),
                (6, 24, 2),
                (6, 24, 1),
                (6, 32, 2),
                (6, 32, 1),
                (6, 64, 2),
                (6, 64, 1),
                (6, 96, 1),
                (6, 160, 2),
            )
        ):
            with tf.variable_scope("b%d" % i):
                inner = tf.nn.relu6(_conv(tf, h, t * int(h.shape[-1]), 1, act=False)) if t > 1 else h
                inner = dw(inner, 3, s)
                inner = _conv(tf, inner, c, 1, act=False)
                h = h + inner if s == 1 and int(h.shape[-1]) == c else inner
        h = tf.nn.relu6(_conv(tf, h, 320, 1, act=False))
        h = tf.nn.dropout(tf.reduce_mean(h, [1, 2], keepdims=True), keep_prob=1.0)
        logits = tf.squeeze(tf.layers.conv2d(h, 100, 1), [1, 2])
        loss = _ce(tf, y, logits)
        train = _minimize(tf, tf.train.AdamOptimizer(1e-4), loss)
        feed = {x: _f(0, 8, 96, 96, 3), y: R(1).randint(0, 100, 8)}
        return lambda s: s.run([loss, train], feed)

    return _steps(tf, build)


def video_volumes(tf):
    """Convolutions over short videos, weight decay."""

    def build():
        x, y = tf.placeholder(tf.float32, [None, 8, 32, 32, 3]), tf.placeholder(tf.int64, [None])
        h = x
        for i, (n, p) in enumerate(((16, 1), (32, 2), (64, 2))):
            with tf.variable_scope("c%d" % i):
                w = tf.get_variable(
                    "w", [3, 3, 3, int(h.shape[-1]), n], initializer=tf.truncated_normal_initializer(stddev=0.05)
                )
                b = tf.get_variable("b", [n], initializer=tf.zeros_initializer())
                h = tf.nn.relu(tf.nn.bias_add(tf.nn.conv3d(h, w, [1, 1, 1, 1, 1], "SAME"), b))
                h = tf.nn.max_pool3d(h, [1, p, 2, 2, 1], [1, p, 2, 2, 1], "SAME")
        h = tf.layers.dense(tf.reshape(h, [-1, 2 * 4 * 4 * 64]), 256, tf.nn.relu)
        logits = tf.layers.dense(tf.nn.dropout(h, rate=0.0), 20)
        loss = _ce(tf, y, logits) + 5e-4 * tf.add_n([tf.nn.l2_loss(v) for v in tf.trainable_variables()])
        train = tf.train.AdamOptimizer(1e-4).minimize(loss)
        feed = {x: _f(0, 8, 8, 32, 32, 3), y: R(1).randint(0, 20, 8)}
        return lambda s: s.run([loss, train], feed)

    return _steps(tf, build)


def quantized_training(tf):
    """A network whose weights and activations are rounded as if quantized, taught by another network."""

    def build():
        x, y = tf.placeholder(tf.float32, [None, 32, 32, 3]), tf.placeholder(tf.int64, [None])
        h = x
        for i, n in enumerate((32, 64, 64)):
            with tf.variable_scope("q%d" % i):
                w = tf.get_variable("w", [3, 3, int(h.shape[-1]), n])
                wq = tf.quantization.fake_quant_with_min_max_vars(
                    w,
                    tf.stop_gradient(tf.reduce_min(w)),
                    tf.stop_gradient(tf.reduce_max(w)),
                    num_bits=8,
                    narrow_range=True,
                )
                h = tf.nn.relu6(tf.layers.batch_normalization(tf.nn.conv2d(h, wq, [1, 2, 2, 1], "SAME"), training=True))
                lo = tf.get_variable("min", [], initializer=tf.zeros_initializer(), trainable=False)
                hi = tf.get_variable("max", [], initializer=tf.constant_initializer(6.0), trainable=False)
                up = [lo.assign(0.99 * lo + 0.01 * tf.reduce_min(h)), hi.assign(0.99 * hi + 0.01 * tf.reduce_max(h))]
                with tf.control_dependencies(up):
                    h = tf.quantization.fake_quant_with_min_max_vars(h, lo.read_value(), hi.read_value())
        h = tf.reduce_mean(h, [1, 2])
        logits = tf.layers.dense(h, 10)
        teacher = tf.stop_gradient(tf.layers.dense(tf.layers.flatten(x), 10, name="teacher"))
        T = 4.0
        soft = tf.reduce_mean(
            tf.nn.softmax_cross_entropy_with_logits_v2(labels=tf.nn.softmax(teacher / T), logits=logits / T)
        )
        loss = 0.3 * _ce(tf, y, logits) + 0.7 * T * T * soft
        train = _minimize(tf, tf.train.AdamOptimizer(1e-3), loss)
        feed = {x: _f(0, 32, 32, 32, 3), y: R(1).randint(0, 10, 32)}
        return lambda s: s.run([loss, train], feed)

    return _steps(tf, build)


def accumulated_gradients(tf):
    """Gradients of four batches that variables add up, group normalization, scaled losses."""

    def build():
        x, y = tf.placeholder(tf.float32, [None, 48, 48, 3]), tf.placeholder(tf.int64, [None])
        h = x
        for n in (32, 64, 128):
            h = tf.keras.layers.Conv2D(n, 3, padding="same", use_bias=False)(h)
            g = tf.reshape(h, [-1, int(h.shape[1]), int(h.shape[2]), 8, n // 8])
            mu, var = tf.nn.moments(g, [1, 2, 4], keepdims=True)
            g = (g - mu) / tf.sqrt(var + 1e-5)
            h = tf.reshape(g, tf.shape(h)) * tf.Variable(tf.ones([n])) + tf.Variable(tf.zeros([n]))
            h = tf.keras.layers.MaxPool2D()(tf.nn.relu(tf.reshape(h, [-1, int(g.shape[1]), int(g.shape[2]), n])))
        logits = tf.keras.layers.Dense(10)(tf.keras.layers.GlobalAveragePooling2D()(h))
        loss = _ce(tf, y, logits)
        scale = tf.Variable(1024.0, trainable=False)
        opt = tf.train.AdamOptimizer(1e-3)
        tv = tf.trainable_variables()
        acc = [tf.Variable(np.zeros(v.shape.as_list(), "f"), trainable=False) for v in tv]
        zero = [a.assign(tf.zeros_like(a)) for a in acc]
        gv = opt.compute_gradients(loss * scale, tv)
        add = [acc[i].assign_add(g / scale) for i, (g, _) in enumerate(gv)]
        finite = tf.reduce_all([tf.reduce_all(tf.is_finite(a)) for a in acc])
        train = tf.cond(finite, lambda: opt.apply_gradients([(a / 4.0, v) for a, v in zip(acc, tv)]), tf.no_op)
        feed = [{x: _f(i, 4, 48, 48, 3), y: R(i).randint(0, 10, 4)} for i in range(4)]

        def work(s):
            s.run(zero)
            out = [s.run([loss, add], f)[0] for f in feed]
            s.run(train)
            return out

        return work

    return _steps(tf, build)


def equilibrium_gan(tf):
    """A generator and an autoencoder that are kept in equilibrium, with elu, and merged summaries of images."""

    def build():
        x, z = tf.placeholder(tf.float32, [None, 32, 32, 3]), tf.placeholder(tf.float32, [None, 64])

        def dec(h, reuse, name):
            with tf.variable_scope(name, reuse=reuse):
                h = tf.reshape(tf.layers.dense(h, 8 * 8 * 32), [-1, 8, 8, 32])
                for i in range(3):
                    h = tf.nn.elu(tf.layers.conv2d(h, 32, 3, padding="same", name="a%d" % i))
                    h = tf.nn.elu(tf.layers.conv2d(h, 32, 3, padding="same", name="b%d" % i))
                    if i < 2:
                        s = tf.shape(h)
                        h = tf.image.resize_nearest_neighbor(h, [s[1] * 2, s[2] * 2])
                return tf.layers.conv2d(h, 3, 3, padding="same", name="o")

        def enc(h, reuse):
            with tf.variable_scope("E", reuse=reuse):
                for i in range(3):
                    h = tf.nn.elu(tf.layers.conv2d(h, 32 * (i + 1), 3, padding="same", name="a%d" % i))
                    h = tf.nn.elu(tf.layers.conv2d(h, 32 * (i + 1), 3, 2 if i < 2 else 1, "same", name="b%d" % i))
                return tf.layers.dense(tf.reshape(h, [-1, 8 * 8 * 96]), 64, name="o")

        k = tf.Variable(0.0, trainable=False, name="k_t")
        g = dec(z, False, "G")
        both = dec(enc(tf.concat([g, x], 0), False), False, "D")
        ag, ax = tf.split(both, 2)
        lx, lg = tf.reduce_mean(tf.abs(ax - x)), tf.reduce_mean(tf.abs(ag - g))
        ld = lx - k * lg
        tv = tf.trainable_variables()
        lr = tf.Variable(8e-5, trainable=False)
        dopt, gopt = tf.train.AdamOptimizer(lr), tf.train.AdamOptimizer(lr)
        dt = dopt.minimize(ld, var_list=[v for v in tv if v.name[0] in "DE"])
        gt = gopt.minimize(lg, var_list=[v for v in tv if v.name[0] == "G"])
        balance = 0.5 * lx - lg
        measure = lx + tf.abs(balance)
        with tf.control_dependencies([dt, gt]):
            kup = tf.assign(k, tf.clip_by_value(k + 0.001 * balance, 0, 1))
        summ = tf.summary.merge(
            [
                tf.summary.scalar("a", ld),
                tf.summary.scalar("b", measure),
                tf.summary.scalar("k", k),
                tf.summary.image("G", g),
            ]
        )
        feed = {x: _u(0, 16, 32, 32, 3), z: _f(1, 16, 64)}
        return lambda s: s.run([kup, measure, summ], feed)[:2]

    return _steps(tf, build)


def curiosity(tf):
    """Forward and inverse models of an agent's observations, with images in the summaries."""

    def build():
        x, x2 = tf.placeholder(tf.float32, [None, 42, 42, 4]), tf.placeholder(tf.float32, [None, 42, 42, 4])
        a = tf.placeholder(tf.int32, [None])

        def universe(x, reuse):
            with tf.variable_scope("f", reuse=reuse):
                for i in range(4):
                    x = tf.nn.elu(tf.layers.conv2d(x, 32, 3, 2, "same", name="l%d" % i))
                return tf.layers.flatten(x)

        p1, p2 = universe(x, False), universe(x2, True)
        oh = tf.one_hot(a, 6)
        g = tf.layers.dense(tf.layers.dense(tf.concat([p1, p2], 1), 256, tf.nn.relu), 6)
        inv = _ce(tf, a, g)
        f = tf.layers.dense(tf.concat([tf.layers.dense(tf.concat([p1, oh], 1), 256, tf.nn.relu), oh], 1), 288)
        fwd = 0.5 * tf.reduce_mean(tf.square(f - p2)) * 288.0
        bonus = 0.5 * tf.reduce_mean(tf.square(f - p2), 1)
        loss = 10 * (0.8 * inv + 0.2 * fwd)
        v = tf.trainable_variables()
        gr, n = tf.clip_by_global_norm(tf.gradients(loss, v), 40.0)
        train = tf.train.AdamOptimizer(1e-4).apply_gradients(zip(gr, v))
        tf.summary.scalar("model/grad_global_norm", n)
        tf.summary.scalar("model/var", tf.global_norm(v))
        tf.summary.image("state", x)
        merged = tf.summary.merge_all()
        feed = {x: _u(0, 20, 42, 42, 4), x2: _u(1, 20, 42, 42, 4), a: R(2).randint(0, 6, 20)}

        def work(s):
            out = s.run([bonus], feed)
            return out, s.run([merged, inv, fwd, train], feed)[1:]

        return work

    return _steps(tf, build)


def actor_learner(tf):
    """A residual network and an LSTM over unrolled steps of many actors, and V-trace as a scan."""

    def build():
        T, B, A = 20, 8, 9
        obs = tf.placeholder(tf.float32, [T + 1, B, 24, 24, 3])
        act, beh, rew, done = (
            tf.placeholder(tf.int32, [T, B]),
            tf.placeholder(tf.float32, [T, B, A]),
            tf.placeholder(tf.float32, [T, B]),
            tf.placeholder(tf.float32, [T + 1, B]),
        )
        h = tf.reshape(obs, [-1, 24, 24, 3])
        for n in (16, 32):
            h = tf.layers.conv2d(h, n, 3, padding="same")
            h = tf.nn.pool(h, [3, 3], "MAX", "SAME", strides=[2, 2])
            r = tf.layers.conv2d(tf.nn.relu(h), n, 3, padding="same")
            h = h + tf.layers.conv2d(tf.nn.relu(r), n, 3, padding="same")
        h = tf.reshape(tf.layers.dense(tf.layers.flatten(tf.nn.relu(h)), 128, tf.nn.relu), [T + 1, B, 128])
        core = tf.nn.rnn_cell.LSTMCell(128, name="core")
        init = core.zero_state(B, tf.float32)
        state, outs = init, []
        for inp, dn in zip(tf.unstack(h), tf.unstack(done)):
            state = tf.nn.rnn_cell.LSTMStateTuple(
                *[tf.where(tf.cast(dn, tf.bool), z, s_) for z, s_ in zip(init, state)]
            )
            o, state = core(inp, state)
            outs.append(o)
        out = tf.stack(outs)
        logits = tf.layers.dense(out, A)[:-1]
        base = tf.squeeze(tf.layers.dense(out, 1), -1)

        def lp(l):
            return -tf.nn.sparse_softmax_cross_entropy_with_logits(logits=l, labels=act)

        rho = tf.exp(tf.stop_gradient(lp(logits)) - lp(beh))
        crho, cs = tf.minimum(1.0, rho), tf.minimum(1.0, rho)
        gamma = (1 - done[1:]) * 0.99
        v, boot = tf.stop_gradient(base[:-1]), tf.stop_gradient(base[-1])
        v1 = tf.concat([v[1:], boot[None]], 0)
        deltas = crho * (rew + gamma * v1 - v)
        seq = tuple(tf.reverse(t, [0]) for t in (gamma, cs, deltas))
        acc = tf.scan(
            lambda acc, it: it[2] + it[0] * it[1] * acc,
            seq,
            initializer=tf.zeros_like(boot),
            parallel_iterations=1,
            back_prop=False,
        )
        vs = tf.reverse(acc, [0]) + v
        vs1 = tf.concat([vs[1:], boot[None]], 0)
        adv = tf.stop_gradient(crho * (rew + gamma * vs1 - v))
        pg = -tf.reduce_sum(lp(logits) * adv)
        bl = 0.5 * tf.reduce_sum(tf.square(tf.stop_gradient(vs) - base[:-1]))
        p = tf.nn.softmax(logits)
        ent = tf.reduce_sum(p * tf.nn.log_softmax(logits))
        loss = pg + 0.5 * bl + 0.00025 * ent
        gs = tf.train.get_or_create_global_step()
        lr = tf.train.polynomial_decay(0.00048, gs, 100000, 0)
        train = tf.train.RMSPropOptimizer(lr, 0.99, 0.0, 0.1).minimize(loss, global_step=gs)
        feed = {
            obs: _u(0, T + 1, B, 24, 24, 3),
            act: R(1).randint(0, A, (T, B)),
            beh: _f(2, T, B, A),
            rew: _f(3, T, B),
            done: (_u(4, T + 1, B) > 0.9).astype("f"),
        }
        return lambda s: s.run([pg, bl, ent, train], feed)

    return _steps(tf, build)


def poisson_equation(tf):
    """A network in float64 and the second derivatives of its result in both directions."""

    def build():
        x, y = tf.placeholder(tf.float64, [None, 1]), tf.placeholder(tf.float64, [None, 1])
        xb, ub = tf.placeholder(tf.float64, [None, 2]), tf.placeholder(tf.float64, [None, 1])
        sizes = [2, 50, 50, 50, 1]
        Ws = [
            tf.Variable(_d(i, a, b) * np.sqrt(2 / (a + b)), dtype=tf.float64)
            for i, (a, b) in enumerate(itertools.pairwise(sizes))
        ]
        Bs = [tf.Variable(np.zeros((1, b)), dtype=tf.float64) for b in sizes[1:]]

        def net(X):
            h = 2.0 * (X + 1.0) / 2.0 - 1.0
            for w, b in zip(Ws[:-1], Bs[:-1]):
                h = tf.tanh(tf.add(tf.matmul(h, w), b))
            return tf.add(tf.matmul(h, Ws[-1]), Bs[-1])

        u = net(tf.concat([x, y], 1))
        ux, uy = tf.gradients(u, x)[0], tf.gradients(u, y)[0]
        uxx, uyy = tf.gradients(ux, x)[0], tf.gradients(uy, y)[0]
        f = uxx + uyy + u * ux - tf.sin(np.pi * x) * tf.sin(np.pi * y)
        loss = tf.reduce_mean(tf.square(f)) + 10.0 * tf.reduce_mean(tf.square(net(xb) - ub))
        train = tf.train.AdamOptimizer(1e-3).minimize(loss)
        feed = {x: R(0).rand(1000, 1), y: R(1).rand(1000, 1), xb: R(2).rand(100, 2), ub: np.zeros((100, 1))}
        return lambda s: s.run([loss, train], feed)

    return _steps(tf, build)


def normalized_weights(tf):
    """Normalized filters, and group normalization with the channels first."""

    def build():
        x, y = tf.placeholder(tf.float32, [None, 32, 32, 3]), tf.placeholder(tf.int64, [None])

        def wn(h, n, name):
            with tf.variable_scope(name):
                V = tf.get_variable("V", [3, 3, int(h.shape[-1]), n], initializer=tf.random_normal_initializer(0, 0.05))
                g = tf.get_variable("g", [n], initializer=tf.constant_initializer(1.0))
                b = tf.get_variable("b", [n], initializer=tf.zeros_initializer())
                W = tf.reshape(g, [1, 1, 1, n]) * tf.nn.l2_normalize(V, [0, 1, 2])
                return tf.nn.bias_add(tf.nn.conv2d(h, W, [1, 1, 1, 1], "SAME"), b)

        def gn(h, name, G=8):
            with tf.variable_scope(name):
                H, W, C = int(h.shape[1]), int(h.shape[2]), int(h.shape[3])
                t = tf.transpose(h, [0, 3, 1, 2])
                t = tf.reshape(t, [-1, G, C // G, H, W])
                m, v = tf.nn.moments(t, [2, 3, 4], keepdims=True)
                t = (t - m) / tf.sqrt(v + 1e-5)
                gam = tf.get_variable("gamma", [1, C, 1, 1], initializer=tf.ones_initializer())
                bet = tf.get_variable("beta", [1, C, 1, 1], initializer=tf.zeros_initializer())
                return tf.transpose(tf.reshape(t, [-1, C, H, W]) * gam + bet, [0, 2, 3, 1])

        h = x
        for i, n in enumerate((32, 64, 64)):
            h = tf.nn.elu(gn(wn(h, n, "w%d" % i), "g%d" % i))
            h = tf.layers.average_pooling2d(h, 2, 2)
        h = tf.reduce_mean(h, [1, 2])
        W = tf.nn.softmax(tf.layers.dense(h, 10))
        loss = -tf.reduce_mean(tf.log(tf.clip_by_value(tf.reduce_sum(W * tf.one_hot(y, 10), 1), 1e-8, 1.0)))
        train = tf.train.AdamOptimizer(1e-3).minimize(loss)
        feed = {x: _f(0, 16, 32, 32, 3), y: R(1).randint(0, 10, 16)}
        return lambda s: s.run([loss, train], feed)

    return _steps(tf, build)


def wide_layers(tf):
    """Three layers of thousands of units with batch normalization, Adagrad."""

    def build():
        x, y = tf.placeholder(tf.float32, [None, 2048]), tf.placeholder(tf.float32, [None, 1000])
        h = x
        for n in (4096, 2048):
            h = tf.nn.relu(tf.layers.batch_normalization(tf.layers.dense(h, n, use_bias=False), training=True))
        logits = tf.layers.dense(h, 1000)
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=logits))
        train = _minimize(tf, tf.train.AdagradOptimizer(0.01), loss)
        feed = {x: _f(0, 64, 2048), y: (_u(1, 64, 1000) > 0.99).astype("f")}
        return lambda s: s.run([loss, train], feed)

    return _steps(tf, build)


def recomputed_blocks(tf):
    """Residual layers whose gradient functions compute them again."""

    def build():
        x, y = tf.placeholder(tf.float32, [64, 32]), tf.placeholder(tf.int64, [None])

        def block(name):
            @tf.custom_gradient
            def f(h, w1, w2):
                def fwd(h, w1, w2):
                    return h + tf.matmul(tf.nn.relu(tf.matmul(h, w1)), w2)

                out = fwd(h, w1, w2)

                def grad(dy):
                    with tf.control_dependencies([dy]):
                        hh, a, b = tf.identity(h), tf.identity(w1), tf.identity(w2)
                    return tf.gradients(fwd(hh, a, b), [hh, a, b], grad_ys=dy)

                return out, grad

            return f

        h = tf.layers.dense(x, 256)
        for i in range(6):
            w1 = tf.get_variable("w1_%d" % i, [256, 512], use_resource=True)
            w2 = tf.get_variable("w2_%d" % i, [512, 256], use_resource=True)
            h = block(i)(h, w1, w2)
            h = tf.keras.layers.LayerNormalization()(h)
        loss = _ce(tf, y, tf.layers.dense(h, 10))
        train = tf.train.AdamOptimizer(1e-4).minimize(loss)
        feed = {x: _f(0, 64, 32), y: R(1).randint(0, 10, 64)}
        return lambda s: s.run([loss, train], feed)

    return _steps(tf, build)


ALL = {
    name: fn
    for name, fn in list(globals().items())
    if callable(fn) and not name.startswith("_") and getattr(fn, "__module__", None) == __name__
}
