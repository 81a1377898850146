"""A fourth set of programs as people write them. Run with `run.py --module other_programs`."""

import numpy as np
from programs import R, _steps


def _f(seed, *shape):
    return R(seed).randn(*shape).astype("f")


def yolo_loss(tf):
    """A detector with one grid: boxes, objectness with masks by intersection over union, classes."""

    def build():
        B, S, A, C = 8, 7, 2, 5
        x = tf.placeholder(tf.float32, [None, 28, 28, 3])
        truth = tf.placeholder(tf.float32, [None, S, S, 5 + C])
        h = x
        for units, stride in ((16, 2), (32, 2), (32, 1)):
            h = tf.layers.conv2d(h, units, 3, stride, padding="same")
            h = tf.nn.leaky_relu(h, 0.1)
        out = tf.layers.conv2d(h, A * 5 + C, 1)
        boxes = tf.reshape(out[..., : A * 5], [-1, S, S, A, 5])
        classes = out[..., A * 5 :]
        there = truth[..., 0:1]
        target = tf.tile(tf.expand_dims(truth[..., 1:5], 3), [1, 1, 1, A, 1])
        low = tf.maximum(boxes[..., 1:3] - boxes[..., 3:5] / 2.0, target[..., :2] - target[..., 2:] / 2.0)
        high = tf.minimum(boxes[..., 1:3] + boxes[..., 3:5] / 2.0, target[..., :2] + target[..., 2:] / 2.0)
        common = tf.reduce_prod(tf.maximum(high - low, 0.0), -1)
        areas = tf.abs(boxes[..., 3] * boxes[..., 4]) + target[..., 2] * target[..., 3]
        iou = tf.clip_by_value(common / tf.maximum(areas - common, 1e-6), 0.0, 1.0)
        best = tf.cast(iou >= tf.reduce_max(iou, 3, keepdims=True), tf.float32) * there
        none = tf.ones_like(best) - best
        loss = (
            5.0
            * tf.reduce_mean(tf.reduce_sum(tf.expand_dims(best, -1) * tf.square(boxes[..., 1:] - target), [1, 2, 3, 4]))
            + tf.reduce_mean(tf.reduce_sum(best * tf.square(boxes[..., 0] - iou), [1, 2, 3]))
            + 0.5 * tf.reduce_mean(tf.reduce_sum(none * tf.square(boxes[..., 0]), [1, 2, 3]))
            + tf.reduce_mean(tf.reduce_sum(there * tf.square(classes - truth[..., 5:]), [1, 2, 3]))
        )
        step = tf.train.get_or_create_global_step()
        rate = tf.train.exponential_decay(1e-3, step, 100, 0.9, staircase=True)
        train = tf.train.MomentumOptimizer(rate, 0.9).minimize(loss, global_step=step)
        target_value = R(1).rand(B, S, S, 5 + C).astype("f")
        target_value[..., 0] = target_value[..., 0] > 0.8
        feed = {x: _f(0, B, 28, 28, 3), truth: target_value}
        return lambda s: s.run([loss, train], feed)

    return _steps(tf, build)


def roi_head(tf):
    """The second stage of a detector: non-maximum suppression, crops of a feature map, a head on them."""

    def build():
        x = tf.placeholder(tf.float32, [1, 48, 48, 3])
        boxes, scores = tf.placeholder(tf.float32, [None, 4]), tf.placeholder(tf.float32, [None])
        labels = tf.placeholder(tf.int32, [16])
        features = tf.layers.conv2d(x, 24, 3, 2, "same", activation=tf.nn.relu)
        features = tf.layers.conv2d(features, 24, 3, 2, "same", activation=tf.nn.relu)
        kept = tf.image.non_max_suppression(boxes, scores, 16, 0.7)
        kept = tf.pad(kept, [[0, 16 - tf.shape(kept)[0]]])
        crops = tf.image.crop_and_resize(features, tf.gather(boxes, kept), tf.zeros([16], tf.int32), [6, 6])
        h = tf.layers.flatten(tf.layers.max_pooling2d(crops, 2, 2))
        h = tf.layers.dense(h, 64, tf.nn.relu)
        loss = tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=tf.layers.dense(h, 6))
        ) + 0.1 * tf.reduce_mean(tf.square(tf.layers.dense(h, 4)))
        train = tf.train.AdamOptimizer(1e-3).minimize(loss)
        corner = R(0).rand(100, 2).astype("f") * 0.6
        feed = {
            x: _f(1, 1, 48, 48, 3),
            boxes: np.concatenate([corner, corner + 0.1 + 0.3 * R(2).rand(100, 2)], 1).astype("f"),
            scores: R(3).rand(100),
            labels: R(4).randint(0, 6, 16),
        }
        return lambda s: s.run([loss, train], feed)

    return _steps(tf, build)


def pix2pix(tf):
    """A conditional GAN on images: instance normalization, a generator with a skip, two optimizers over scopes."""

    def build():
        x, y = tf.placeholder(tf.float32, [None, 16, 16, 3]), tf.placeholder(tf.float32, [None, 16, 16, 3])

        def norm(h, name):
            with tf.variable_scope(name):
                mean, variance = tf.nn.moments(h, [1, 2], keep_dims=True)
                scale = tf.get_variable("scale", [h.shape[-1]], initializer=tf.ones_initializer())
                offset = tf.get_variable("offset", [h.shape[-1]], initializer=tf.zeros_initializer())
                return scale * (h - mean) * tf.rsqrt(variance + 1e-5) + offset

        def generator(h):
            with tf.variable_scope("generator"):
                a = tf.nn.relu(norm(tf.layers.conv2d(h, 16, 4, 2, "same"), "n1"))
                b = tf.nn.relu(norm(tf.layers.conv2d(a, 32, 4, 2, "same"), "n2"))
                c = tf.nn.relu(norm(tf.layers.conv2d_transpose(b, 16, 4, 2, "same"), "n3"))
                return tf.tanh(tf.layers.conv2d_transpose(tf.concat([c, a], 3), 3, 4, 2, "same"))

        def discriminator(h, reuse):
            with tf.variable_scope("discriminator", reuse=reuse):
                h = tf.nn.leaky_relu(tf.layers.conv2d(h, 16, 4, 2, "same", name="c1"))
                h = tf.nn.leaky_relu(norm(tf.layers.conv2d(h, 32, 4, 2, "same", name="c2"), "n"))
                return tf.layers.conv2d(h, 1, 3, 1, "same", name="c3")

        fake = generator(x)
        real_out = discriminator(tf.concat([x, y], 3), False)
        fake_out = discriminator(tf.concat([x, fake], 3), True)
        ce = tf.nn.sigmoid_cross_entropy_with_logits
        d_loss = tf.reduce_mean(ce(labels=tf.ones_like(real_out), logits=real_out)) + tf.reduce_mean(
            ce(labels=tf.zeros_like(fake_out), logits=fake_out)
        )
        g_loss = tf.reduce_mean(ce(labels=tf.ones_like(fake_out), logits=fake_out)) + 100.0 * tf.reduce_mean(
            tf.abs(y - fake)
        )
        both = [
            tf.train.AdamOptimizer(2e-4, 0.5).minimize(
                loss, var_list=[v for v in tf.trainable_variables() if v.name.startswith(scope)]
            )
            for loss, scope in ((d_loss, "discriminator"), (g_loss, "generator"))
        ]
        feed = {x: _f(0, 4, 16, 16, 3), y: _f(1, 4, 16, 16, 3)}

        def work(s):
            s.run([both[0], d_loss], feed)
            s.run([both[1], g_loss], feed)

        return work

    return _steps(tf, build)


def style_transfer(tf):
    """Descent on an image: Gram matrices of features at several layers, total variation."""

    def build():
        image = tf.get_variable("image", [1, 32, 32, 3])
        style = tf.placeholder(tf.float32, [1, 32, 32, 3])
        weights = [tf.constant(_f(i, 3, 3, a, b) * 0.1) for i, (a, b) in enumerate(((3, 16), (16, 32), (32, 32)))]

        def features(h):
            outs = []
            for w in weights:
                h = tf.nn.relu(tf.nn.conv2d(h, w, [1, 1, 1, 1], "SAME"))
                outs.append(h)
                h = tf.nn.avg_pool(h, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
            return outs

        def gram(h):
            flat = tf.reshape(h, [-1, h.shape[3]])
            return tf.matmul(flat, flat, transpose_a=True) / tf.cast(tf.size(flat), tf.float32)

        loss = tf.add_n([tf.nn.l2_loss(gram(a) - gram(b)) for a, b in zip(features(image), features(style))])
        loss += 1e-3 * tf.reduce_sum(tf.image.total_variation(image))
        train = tf.train.AdamOptimizer(1e-2).minimize(loss, var_list=[image])
        feed = {style: _f(9, 1, 32, 32, 3)}
        return lambda s: s.run([loss, train], feed)

    return _steps(tf, build)


def memory_machine(tf):
    """A neural Turing machine: an LSTM controller with content addressing and a written memory, unrolled."""

    def build():
        B, T, N, M, H = 8, 10, 16, 12, 32
        x, y = tf.placeholder(tf.float32, [B, T, 8]), tf.placeholder(tf.float32, [B, T, 8])
        cell = tf.nn.rnn_cell.BasicLSTMCell(H)
        state, memory, read = cell.zero_state(B, tf.float32), tf.fill([B, N, M], 0.1), tf.zeros([B, M])
        outs = []
        for t in range(T):
            with tf.variable_scope("machine", reuse=t > 0):
                h, state = cell(tf.concat([x[:, t], read], 1), state)
                key = tf.tanh(tf.layers.dense(h, M, name="key"))
                sharp = tf.nn.softplus(tf.layers.dense(h, 1, name="sharp"))
                similar = tf.squeeze(tf.matmul(memory, tf.expand_dims(key, 2)), 2) / (
                    tf.norm(memory, axis=2) * tf.norm(key, axis=1, keepdims=True) + 1e-6
                )
                w = tf.expand_dims(tf.nn.softmax(sharp * similar), 2)
                erase = tf.expand_dims(tf.sigmoid(tf.layers.dense(h, M, name="erase")), 1)
                add = tf.expand_dims(tf.tanh(tf.layers.dense(h, M, name="add")), 1)
                memory = memory * (1.0 - w * erase) + w * add
                read = tf.reduce_sum(w * memory, 1)
                outs.append(tf.layers.dense(tf.concat([h, read], 1), 8, name="out"))
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=tf.stack(outs, 1)))
        optimizer = tf.train.RMSPropOptimizer(1e-3, momentum=0.9)
        grads = [(tf.clip_by_value(g, -10.0, 10.0), v) for g, v in optimizer.compute_gradients(loss)]
        train = optimizer.apply_gradients(grads)
        feed = {x: R(0).randint(0, 2, (B, T, 8)).astype("f"), y: R(1).randint(0, 2, (B, T, 8)).astype("f")}
        return lambda s: s.run([loss, train], feed)

    return _steps(tf, build)


def beam_search(tf):
    """Decoding with a beam in a while_loop: a GRU step, top_k over beams times words, gathered states."""

    def build():
        K, V, H, T = 5, 100, 32, 12
        start = tf.placeholder(tf.float32, [1, H])
        emb = tf.get_variable("emb", [V, H])
        w = tf.get_variable("w", [H, V])
        cell = tf.nn.rnn_cell.GRUCell(H)
        with tf.variable_scope("decoder"):
            cell.build([None, H])

        def body(t, state, words, scores, history):
            _, state = cell(tf.nn.embedding_lookup(emb, words), state)
            logp = tf.nn.log_softmax(tf.matmul(state, w))
            total = tf.reshape(tf.expand_dims(scores, 1) + logp, [-1])
            scores, best = tf.nn.top_k(total, K)
            parents, words = best // V, best % V
            history = tf.concat([tf.gather(history, parents)[:, 1:], tf.expand_dims(words, 1)], 1)
            return t + 1, tf.gather(state, parents), words, scores, history

        first = tf.constant([0.0] + [-1e9] * (K - 1))
        loop = [0, tf.tile(start, [K, 1]), tf.zeros([K], tf.int32), first, tf.zeros([K, T], tf.int32)]
        out = tf.while_loop(lambda t, *_: t < T, body, loop)
        feed = {start: _f(0, 1, H)}
        return lambda s: s.run([out[3], out[4]], feed)

    return _steps(tf, build)


def graph_convolution(tf):
    """A graph convolution over a sparse adjacency matrix, with dropout, weight decay and a mask of labelled nodes."""

    def build():
        N, F, H, C = 400, 50, 16, 7
        adjacency = tf.sparse_placeholder(tf.float32, [N, N])
        x, labels = tf.placeholder(tf.float32, [N, F]), tf.placeholder(tf.float32, [N, C])
        mask = tf.placeholder(tf.float32, [N])
        w1, w2 = tf.get_variable("w1", [F, H]), tf.get_variable("w2", [H, C])
        h = tf.nn.relu(tf.sparse_tensor_dense_matmul(adjacency, tf.matmul(tf.nn.dropout(x, 0.5), w1)))
        logits = tf.sparse_tensor_dense_matmul(adjacency, tf.matmul(tf.nn.dropout(h, 0.5), w2))
        ce = tf.nn.softmax_cross_entropy_with_logits_v2(labels=labels, logits=logits)
        weights = mask / tf.reduce_mean(mask)
        loss = tf.reduce_mean(ce * weights) + 5e-4 * tf.nn.l2_loss(w1)
        right = tf.cast(tf.equal(tf.argmax(logits, 1), tf.argmax(labels, 1)), tf.float32)
        accuracy = tf.reduce_mean(right * weights)
        train = tf.train.AdamOptimizer(0.01).minimize(loss)
        edges = np.unique(R(0).randint(0, N, (2400, 2)), axis=0).astype(np.int64)
        feed = {
            adjacency: (edges, np.full(len(edges), 0.2, "f"), (N, N)),
            x: _f(1, N, F),
            labels: np.eye(C, dtype="f")[R(2).randint(0, C, N)],
            mask: (R(3).rand(N) > 0.6).astype("f"),
        }
        return lambda s: s.run([loss, accuracy, train], feed)

    return _steps(tf, build)


def collaborative_filtering(tf):
    """Neural collaborative filtering: four embeddings, a product and a tower, sampled negatives in the batch."""

    def build():
        users, items = tf.placeholder(tf.int32, [None]), tf.placeholder(tf.int32, [None])
        labels = tf.placeholder(tf.float32, [None])

        def table(name, rows, width):
            return tf.get_variable(name, [rows, width], initializer=tf.random_normal_initializer(stddev=0.01))

        gmf = tf.nn.embedding_lookup(table("ug", 3000, 8), users) * tf.nn.embedding_lookup(table("ig", 2000, 8), items)
        h = tf.concat(
            [
                tf.nn.embedding_lookup(table("um", 3000, 16), users),
                tf.nn.embedding_lookup(table("im", 2000, 16), items),
            ],
            1,
        )
        for units in (32, 16, 8):
            h = tf.layers.dense(h, units, tf.nn.relu, kernel_regularizer=tf.keras.regularizers.l2(1e-5))
        logits = tf.squeeze(tf.layers.dense(tf.concat([gmf, h], 1), 1), 1)
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))
        train = tf.train.AdagradOptimizer(0.05).minimize(loss)
        feed = {users: R(0).randint(0, 3000, 256), items: R(1).randint(0, 2000, 256), labels: R(2).randint(0, 2, 256)}
        return lambda s: s.run([loss, train], feed)

    return _steps(tf, build)


def ddpg(tf):
    """DDPG: an actor and a critic with target copies that follow by many small assignments."""

    def build():
        B, S, A = 64, 17, 6
        s0, s1 = tf.placeholder(tf.float32, [None, S]), tf.placeholder(tf.float32, [None, S])
        a0, r = tf.placeholder(tf.float32, [None, A]), tf.placeholder(tf.float32, [None, 1])

        def actor(x, scope):
            with tf.variable_scope(scope):
                h = tf.layers.dense(tf.layers.dense(x, 64, tf.nn.relu), 64, tf.nn.relu)
                return tf.layers.dense(h, A, tf.tanh)

        def critic(x, a, scope, reuse=False):
            with tf.variable_scope(scope, reuse=reuse):
                h = tf.layers.dense(x, 64, tf.nn.relu, name="h1")
                h = tf.layers.dense(tf.concat([h, a], 1), 64, tf.nn.relu, name="h2")
                return tf.layers.dense(h, 1, name="q")

        action = actor(s0, "actor")
        q, q_action = critic(s0, a0, "critic"), critic(s0, action, "critic", True)
        target = r + 0.99 * critic(s1, actor(s1, "actor_target"), "critic_target")
        q_loss = tf.reduce_mean(tf.square(tf.stop_gradient(target) - q))

        def of(scope):
            return [v for v in tf.global_variables() if v.name.startswith(scope + "/")]

        train_q = tf.train.AdamOptimizer(1e-3).minimize(q_loss, var_list=of("critic"))
        train_a = tf.train.AdamOptimizer(1e-4).minimize(-tf.reduce_mean(q_action), var_list=of("actor"))
        pairs = [p for n in ("actor", "critic") for p in zip(of(n + "_target"), of(n)) if "Adam" not in p[1].name]
        follow = tf.group(*[t.assign(0.995 * t + 0.005 * v) for t, v in pairs])
        feed = {s0: _f(0, B, S), s1: _f(1, B, S), a0: _f(2, B, A), r: _f(3, B, 1)}

        def work(s):
            s.run(action, {s0: feed[s0][:1]})
            s.run([train_q, q_loss], feed)
            s.run(train_a, feed)
            s.run(follow)

        return work

    return _steps(tf, build)


def natural_gradient(tf):
    """A natural gradient step: Fisher-vector products in conjugate gradients written in Python, then a line of assignments."""

    def build():
        x, y = tf.placeholder(tf.float32, [None, 10]), tf.placeholder(tf.int32, [None])
        logits = tf.layers.dense(tf.layers.dense(x, 24, tf.tanh), 4)
        variables = tf.trainable_variables()
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
        old = tf.stop_gradient(tf.nn.softmax(logits))
        kl = tf.reduce_mean(tf.reduce_sum(old * (tf.log(old + 1e-8) - tf.nn.log_softmax(logits)), 1))

        def flat(tensors):
            return tf.concat([tf.reshape(t, [-1]) for t in tensors], 0)

        gradient = flat(tf.gradients(loss, variables))
        size = int(sum(np.prod(v.shape.as_list()) for v in variables))
        vector = tf.placeholder(tf.float32, [size])
        product = (
            flat(tf.gradients(tf.reduce_sum(flat(tf.gradients(kl, variables)) * vector), variables)) + 0.1 * vector
        )
        sizes = [int(np.prod(v.shape.as_list())) for v in variables]
        parts = [tf.reshape(p, v.shape) for p, v in zip(tf.split(vector, sizes), variables)]
        move = tf.group(*[tf.assign_sub(v, 0.1 * p) for v, p in zip(variables, parts)])
        feed = {x: _f(0, 128, 10), y: R(1).randint(0, 4, 128)}

        def work(s):
            g = s.run(gradient, feed)
            p, r, d = np.zeros_like(g), g.copy(), g.copy()
            rr = r.dot(r)
            for _ in range(6):
                z = s.run(product, {**feed, vector: d})
                step = rr / d.dot(z)
                p, r = p + step * d, r - step * z
                rr, last = r.dot(r), rr
                d = r + rr / last * d
            s.run([move, loss], {**feed, vector: p})

        return work

    return _steps(tf, build)


def mixture_of_experts(tf):
    """Experts chosen by a gate: dynamic_partition, a dense layer for each part, dynamic_stitch."""

    def build():
        B, D, E = 128, 24, 4
        x, y = tf.placeholder(tf.float32, [B, D]), tf.placeholder(tf.float32, [B, 1])
        gates = tf.nn.softmax(tf.layers.dense(x, E))
        chosen = tf.cast(tf.argmax(gates, 1), tf.int32)
        parts = tf.dynamic_partition(x, chosen, E)
        places = tf.dynamic_partition(tf.range(B), chosen, E)
        outs = [tf.layers.dense(tf.layers.dense(p, 32, tf.nn.relu), 1) for p in parts]
        joined = tf.reshape(tf.dynamic_stitch(places, outs), [B, 1])
        weight = tf.reduce_sum(gates * tf.one_hot(chosen, E), 1, keepdims=True)
        balance = tf.reduce_sum(tf.square(tf.reduce_mean(gates, 0)))
        loss = tf.reduce_mean(tf.squared_difference(joined * weight, y)) + 0.01 * balance
        train = tf.train.AdamOptimizer(1e-3).minimize(loss)
        feed = {x: _f(0, B, D), y: _f(1, B, 1)}
        return lambda s: s.run([loss, train], feed)

    return _steps(tf, build)


def kalman_scan(tf):
    """A Kalman filter as tf.scan, whose likelihood is maximized."""

    def build():
        T, D, O = 20, 4, 2
        ys = tf.placeholder(tf.float32, [T, O])
        a = tf.get_variable("a", initializer=np.eye(D, dtype="f") * 0.9)
        c = tf.get_variable("c", initializer=_f(0, O, D) * 0.3)
        q, r = tf.exp(tf.get_variable("q", [D])), tf.exp(tf.get_variable("r", [O]))

        def step(before, y):
            mean, cov, _ = before
            mean = tf.matmul(a, mean)
            cov = tf.matmul(tf.matmul(a, cov), a, transpose_b=True) + tf.diag(q)
            s = tf.matmul(tf.matmul(c, cov), c, transpose_b=True) + tf.diag(r)
            inverse = tf.matrix_inverse(s)
            gain = tf.matmul(tf.matmul(cov, c, transpose_b=True), inverse)
            v = tf.expand_dims(y, 1) - tf.matmul(c, mean)
            ll = tf.log(tf.matrix_determinant(s)) + tf.squeeze(tf.matmul(tf.matmul(v, inverse, transpose_a=True), v))
            return mean + tf.matmul(gain, v), tf.matmul(tf.eye(D) - tf.matmul(gain, c), cov), ll

        _, _, ll = tf.scan(step, ys, (tf.zeros([D, 1]), tf.eye(D), 0.0))
        loss = 0.5 * tf.reduce_mean(ll)
        train = tf.train.AdamOptimizer(1e-3).minimize(loss)
        feed = {ys: _f(1, T, O)}
        return lambda s: s.run([loss, train], feed)

    return _steps(tf, build)


def parsed_records(tf):
    """Records of Examples through tf.data (parse, shuffle, batch), features normalized, logistic regression and metrics."""

    def build():
        rng = R(0)

        def example(i):
            return tf.train.Example(
                features=tf.train.Features(
                    feature={
                        "x": tf.train.Feature(float_list=tf.train.FloatList(value=rng.randn(20))),
                        "id": tf.train.Feature(int64_list=tf.train.Int64List(value=[i % 50])),
                        "y": tf.train.Feature(int64_list=tf.train.Int64List(value=[i % 2])),
                    }
                )
            ).SerializeToString()

        def parse(text):
            found = tf.parse_single_example(
                text,
                {
                    "x": tf.FixedLenFeature([20], tf.float32),
                    "id": tf.FixedLenFeature([], tf.int64),
                    "y": tf.FixedLenFeature([], tf.int64),
                },
            )
            return (found["x"] - 0.1) / 1.5, found["id"], found["y"]

        data = tf.data.Dataset.from_tensor_slices([example(i) for i in range(1000)])
        data = data.map(parse).shuffle(200, seed=1).repeat().batch(32).prefetch(2)
        x, ids, y = tf.data.make_one_shot_iterator(data).get_next()
        h = tf.concat([x, tf.one_hot(ids, 50)], 1)
        logits = tf.squeeze(tf.layers.dense(tf.layers.dense(h, 32, tf.nn.relu), 1), 1)
        labels = tf.cast(y, tf.float32)
        loss = tf.losses.sigmoid_cross_entropy(labels, logits)
        accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.cast(logits > 0, tf.int64), y), tf.float32))
        step = tf.train.get_or_create_global_step()
        train = tf.train.FtrlOptimizer(0.05).minimize(loss, global_step=step)
        return lambda s: s.run([loss, accuracy, train, step])

    return _steps(tf, build)


def averaged_network(tf):
    """A convolutional network with batch_normalization, update ops, weight decay, a decayed rate and averaged variables."""

    def build():
        x, y = tf.placeholder(tf.float32, [None, 24, 24, 3]), tf.placeholder(tf.int64, [None])
        h = x
        for units, stride in ((16, 1), (16, 2), (32, 1), (32, 2)):
            h = tf.layers.conv2d(
                h, units, 3, stride, "same", use_bias=False, kernel_initializer=tf.glorot_normal_initializer()
            )
            h = tf.nn.relu(tf.layers.batch_normalization(h, training=True, momentum=0.99, fused=True))
        logits = tf.layers.dense(tf.reduce_mean(h, [1, 2]), 10)
        decay = 1e-4 * tf.add_n([tf.nn.l2_loss(v) for v in tf.trainable_variables() if "kernel" in v.name])
        loss = tf.losses.sparse_softmax_cross_entropy(y, logits) + decay
        accuracy = tf.reduce_mean(tf.cast(tf.nn.in_top_k(logits, y, 3), tf.float32))
        step = tf.train.get_or_create_global_step()
        rate = tf.train.exponential_decay(0.1, step, 350, 0.94, staircase=True)
        averages = tf.train.ExponentialMovingAverage(0.999, step)
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            applied = tf.train.MomentumOptimizer(rate, 0.9, use_nesterov=True).minimize(loss, global_step=step)
        with tf.control_dependencies([applied]):
            train = averages.apply(tf.trainable_variables())
        feed = {x: _f(0, 8, 24, 24, 3), y: R(1).randint(0, 10, 8)}
        return lambda s: s.run([loss, accuracy, train], feed)

    return _steps(tf, build)


def spectral_gan(tf):
    """A critic with spectral normalization (a power iteration whose vectors are assigned at each step) and a hinge loss."""

    def build():
        x, z = tf.placeholder(tf.float32, [None, 40]), tf.placeholder(tf.float32, [None, 16])

        def normalized(name, a, b):
            w = tf.get_variable(name, [a, b])
            u = tf.get_variable(name + "_u", [1, b], trainable=False)
            v = tf.nn.l2_normalize(tf.matmul(u, w, transpose_b=True))
            after = tf.nn.l2_normalize(tf.matmul(v, w))
            sigma = tf.squeeze(tf.matmul(tf.matmul(v, w), after, transpose_b=True))
            with tf.control_dependencies([u.assign(after)]):
                return w / sigma

        def critic(h):
            with tf.variable_scope("critic", reuse=tf.AUTO_REUSE):
                for i, (a, b) in enumerate(((40, 64), (64, 64), (64, 1))):
                    h = tf.matmul(h, normalized("w%d" % i, a, b))
                    h = tf.nn.leaky_relu(h) if i < 2 else h
                return h

        with tf.variable_scope("generator"):
            fake = tf.layers.dense(tf.layers.dense(z, 64, tf.nn.relu), 40)
        real_out, fake_out = critic(x), critic(fake)
        c_loss = tf.reduce_mean(tf.nn.relu(1.0 - real_out)) + tf.reduce_mean(tf.nn.relu(1.0 + fake_out))
        g_loss = -tf.reduce_mean(fake_out)
        both = [
            tf.train.AdamOptimizer(2e-4, 0.0, 0.9).minimize(loss, var_list=tf.trainable_variables(scope))
            for loss, scope in ((c_loss, "critic"), (g_loss, "generator"))
        ]
        feed = {x: _f(0, 64, 40), z: _f(1, 64, 16)}

        def work(s):
            for train in both:
                s.run([train, c_loss], feed)

        return work

    return _steps(tf, build)


def gaussian_process(tf):
    """A Gaussian process: a kernel matrix, its Cholesky factor, the likelihood of its parameters."""

    def build():
        x, y = tf.placeholder(tf.float32, [80, 3]), tf.placeholder(tf.float32, [80, 1])
        scale, length, noise = (tf.exp(tf.get_variable(n, [], initializer=tf.zeros_initializer())) for n in "slo")
        norms = tf.reduce_sum(tf.square(x / length), 1, keepdims=True)
        distance = norms - 2.0 * tf.matmul(x / length, x / length, transpose_b=True) + tf.transpose(norms)
        kernel = scale * tf.exp(-0.5 * distance) + (noise + 1e-3) * tf.eye(80)
        factor = tf.cholesky(kernel)
        solved = tf.cholesky_solve(factor, y)
        loss = 0.5 * tf.reduce_sum(y * solved) + tf.reduce_sum(tf.log(tf.matrix_diag_part(factor)))
        train = tf.train.AdamOptimizer(0.01).minimize(loss)
        feed = {x: _f(0, 80, 3), y: _f(1, 80, 1)}
        return lambda s: s.run([loss, train], feed)

    return _steps(tf, build)


def newton_loop(tf):
    """Newton's iterations for many equations at once, in a while_loop that stops by the residual."""

    def build():
        x0, k = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.float32, [None])

        def body(i, x, _):
            value, slope = x - k * tf.sin(x) - 1.0, 1.0 - k * tf.cos(x)
            x = tf.where(tf.abs(slope) > 1e-3, x - value / slope, x)
            return i + 1, x, tf.reduce_max(tf.abs(x - k * tf.sin(x) - 1.0))

        _, x, rest = tf.while_loop(
            lambda i, x, rest: tf.logical_and(i < 30, rest > 1e-5), body, [0, x0, tf.constant(1.0)]
        )
        feed = {x0: R(0).rand(200).astype("f"), k: (0.5 * R(1).rand(200)).astype("f")}
        return lambda s: s.run([x, rest], feed)

    return _steps(tf, build)


ALL = {
    program.__name__: program
    for program in (
        yolo_loss,
        roi_head,
        pix2pix,
        style_transfer,
        memory_machine,
        beam_search,
        graph_convolution,
        collaborative_filtering,
        ddpg,
        natural_gradient,
        mixture_of_experts,
        kalman_scan,
        parsed_records,
        averaged_network,
        spectral_gan,
        gaussian_process,
        newton_loop,
    )
}
