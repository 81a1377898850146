"""A sixth set of programs: the classics of tutorials and papers of 2016 to 2019. Run with `run.py --module classic_programs`."""

import numpy as np
from programs import R, _steps


def _f(seed, *shape):
    return R(seed).randn(*shape).astype("f")


def _cross_entropy(tf, labels, logits):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


def single_samples(tf):
    """Linear regression, an example at a time, and the cost of all of them now and then."""

    def build():
        xs, ys = _f(0, 17), _f(1, 17)
        x, y = tf.placeholder("float"), tf.placeholder("float")
        w, b = tf.Variable(0.3, name="weight"), tf.Variable(-0.1, name="bias")
        cost = tf.reduce_sum(tf.pow(tf.add(tf.multiply(x, w), b) - y, 2)) / (2 * 17)
        train = tf.train.GradientDescentOptimizer(0.01).minimize(cost)

        def work(s):
            for one, other in zip(xs, ys, strict=True):
                s.run(train, {x: one, y: other})
            s.run(cost, {x: xs, y: ys})

        return work

    return _steps(tf, build)


def nearest_neighbour(tf):
    """Distances of one picture to all others, and the place of the least."""

    def build():
        x, one = tf.placeholder("float", [None, 784]), tf.placeholder("float", [784])
        distance = tf.reduce_sum(tf.abs(tf.add(x, tf.negative(one))), axis=1)
        nearest = tf.argmin(distance, 0)
        pictures = _f(0, 2000, 784)
        return lambda s: s.run(nearest, {x: pictures, one: pictures[7]})

    return _steps(tf, build)


def k_means(tf):
    """Assignment to centers, and means of segments."""

    def build():
        points = tf.placeholder(tf.float32, [None, 16])
        centers = tf.Variable(_f(1, 25, 16))
        distances = tf.reduce_sum(tf.square(tf.expand_dims(points, 1) - tf.expand_dims(centers, 0)), 2)
        nearest = tf.argmin(distances, 1)
        sums = tf.unsorted_segment_sum(points, nearest, 25)
        counts = tf.unsorted_segment_sum(tf.ones_like(nearest, tf.float32), nearest, 25)
        means = sums / tf.maximum(tf.expand_dims(counts, 1), 1.0)
        update = centers.assign(tf.where(counts > 0, means, centers))
        score = tf.reduce_mean(tf.reduce_min(distances, 1))
        feed = {points: _f(0, 1000, 16)}
        return lambda s: s.run([update, score], feed)

    return _steps(tf, build)


def boltzmann_machine(tf):
    """Contrastive divergence: Gibbs samples, and updates by assign_add."""

    def build():
        v, n = tf.placeholder(tf.float32, [None, 784]), 128
        w = tf.Variable(tf.truncated_normal([784, n], stddev=0.01))
        a, b = tf.Variable(tf.zeros([784])), tf.Variable(tf.zeros([n]))

        def sample(p):
            return tf.nn.relu(tf.sign(p - tf.random_uniform(tf.shape(p))))

        h0 = tf.nn.sigmoid(tf.matmul(v, w) + b)
        h = sample(h0)
        for _ in range(2):
            x = sample(tf.nn.sigmoid(tf.matmul(h, w, transpose_b=True) + a))
            h1 = tf.nn.sigmoid(tf.matmul(x, w) + b)
            h = sample(h1)
        batch = tf.to_float(tf.shape(v)[0])
        positive, negative = tf.matmul(v, h0, transpose_a=True), tf.matmul(x, h1, transpose_a=True)
        updates = [
            w.assign_add(0.01 * (positive - negative) / batch),
            a.assign_add(0.01 * tf.reduce_mean(v - x, 0)),
            b.assign_add(0.01 * tf.reduce_mean(h0 - h1, 0)),
        ]
        error = tf.reduce_mean(tf.square(v - x))
        feed = {v: (R(0).rand(64, 784) > 0.7).astype("f")}
        return lambda s: s.run([error, *updates], feed)

    return _steps(tf, build)


def self_organizing_map(tf):
    """The best matching unit and its neighbours move towards each sample."""

    def build():
        places = np.array([[i, j] for i in range(20) for j in range(20)], "i")
        x, step = tf.placeholder(tf.float32, [3]), tf.placeholder(tf.float32)
        weights, where = tf.Variable(tf.random_normal([400, 3])), tf.constant(places)
        best = tf.argmin(tf.sqrt(tf.reduce_sum(tf.pow(weights - tf.stack([x] * 400), 2), 1)), 0)
        place = tf.reshape(tf.slice(where, tf.pad(tf.reshape(best, [1]), [[0, 1]]), tf.constant([1, 2], tf.int64)), [2])
        rate = 1.0 - step / 100.0
        distances = tf.reduce_sum(tf.pow(where - tf.stack([place] * 400), 2), 1)
        near = tf.exp(tf.negative(tf.cast(distances, tf.float32) / tf.pow(10.0 * rate, 2)))
        factors = tf.stack([tf.tile(tf.slice(0.3 * rate * near, [i], [1]), [3]) for i in range(400)])
        train = tf.assign(weights, weights + factors * (tf.stack([x] * 400) - weights))
        samples = _f(0, 10, 3)

        def work(s):
            for k, sample in enumerate(samples):
                s.run(train, {x: sample, step: float(k)})

        return work

    return _steps(tf, build)


def hierarchical_attention(tf):
    """Words to sentences to documents, each level a bidirectional GRU with lengths and attention."""

    def build():
        B, S, W, V, D, H = 8, 6, 12, 2000, 50, 32
        x, y = tf.placeholder(tf.int32, [None, None, None]), tf.placeholder(tf.int32, [None])
        words, sentences = tf.placeholder(tf.int32, [None, None]), tf.placeholder(tf.int32, [None])
        embedded = tf.nn.embedding_lookup(tf.get_variable("embeddings", [V, D]), x)

        def level(name, inputs, lengths):
            with tf.variable_scope(name):
                cells = [tf.nn.rnn_cell.GRUCell(H) for _ in range(2)]
                both, _ = tf.nn.bidirectional_dynamic_rnn(*cells, inputs, lengths, dtype=tf.float32)
                outputs = tf.concat(both, 2)
                projected = tf.layers.dense(outputs, H, tf.tanh)
                scores = tf.tensordot(projected, tf.get_variable("context", [H]), 1)
                weights = tf.expand_dims(tf.nn.softmax(scores), -1)
                return tf.layers.dropout(tf.reduce_sum(outputs * weights, 1), 0.5, training=True)

        shape = tf.shape(x)
        flat = tf.reshape(embedded, [shape[0] * shape[1], shape[2], D])
        encoded = tf.reshape(level("words", flat, tf.reshape(words, [-1])), [shape[0], shape[1], 2 * H])
        loss = _cross_entropy(tf, y, tf.layers.dense(level("sentences", encoded, sentences), 5))
        variables = tf.trainable_variables()
        gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 5.0)
        train = tf.train.AdamOptimizer(1e-3).apply_gradients(zip(gradients, variables, strict=True))
        feeds = []
        for i, (s, w) in enumerate(((S, W), (S - 1, W + 3), (S, W))):
            lengths = {words: R(i).randint(1, w + 1, (B, s)), sentences: R(i).randint(1, s + 1, B)}
            feeds.append({x: R(i).randint(0, V, (B, s, w)), y: R(i).randint(0, 5, B), **lengths})
        return lambda s: [s.run([train, loss], feed) for feed in feeds]

    return _steps(tf, build)


def knowledge_graph(tf):
    """Translations in the space of entities (TransE): rows of normalized tables, a margin, Adagrad."""

    def build():
        E, D, B = 15000, 100, 500
        positive, negative = tf.placeholder(tf.int32, [None, 3]), tf.placeholder(tf.int32, [None, 3])
        entities = tf.nn.l2_normalize(tf.get_variable("entities", [E, D]), 1)
        relations = tf.nn.l2_normalize(tf.get_variable("relations", [200, D]), 1)

        def distance(triple):
            head, relation, tail = tf.split(triple, 3, 1)
            h, t = tf.nn.embedding_lookup(entities, head), tf.nn.embedding_lookup(entities, tail)
            return tf.reduce_sum(tf.abs(h + tf.nn.embedding_lookup(relations, relation) - t), 2)

        loss = tf.reduce_sum(tf.maximum(distance(positive) - distance(negative) + 1.0, 0))
        train = tf.train.AdagradOptimizer(0.01).minimize(loss)

        def triples(seed):
            heads, kinds, tails = R(seed).randint(0, E, B), R(seed + 1).randint(0, 200, B), R(seed + 2).randint(0, E, B)
            return np.stack([heads, kinds, tails], 1)

        feed = {positive: triples(0), negative: triples(3)}
        return lambda s: s.run([train, loss], feed)

    return _steps(tf, build)


def word_vectors(tf):
    """GloVe: four tables, a weighted squared error, Adagrad."""

    def build():
        V, D, B = 20000, 100, 512
        i, j, count = (
            tf.placeholder(tf.int32, [None]),
            tf.placeholder(tf.int32, [None]),
            tf.placeholder(tf.float32, [None]),
        )
        tables = [tf.Variable(tf.random_uniform([V, D], -1, 1)) for _ in range(2)]
        biases = [tf.Variable(tf.random_uniform([V], -1, 1)) for _ in range(2)]
        focal, context = (tf.nn.embedding_lookup([table], at) for table, at in zip(tables, (i, j), strict=True))
        shifts = [tf.nn.embedding_lookup([bias], at) for bias, at in zip(biases, (i, j), strict=True)]
        weighting = tf.minimum(1.0, tf.pow(tf.div(count, 100.0), 0.75))
        products = tf.reduce_sum(tf.multiply(focal, context), 1)
        distance = tf.square(tf.add_n([products, *shifts, tf.negative(tf.log(tf.to_float(count)))]))
        loss = tf.reduce_sum(tf.multiply(weighting, distance))
        train = tf.train.AdagradOptimizer(0.05).minimize(loss)
        feed = {i: R(0).zipf(1.3, B) % V, j: R(1).zipf(1.3, B) % V, count: R(2).rand(B).astype("f") * 50 + 1}
        return lambda s: s.run([train, loss], feed)

    return _steps(tf, build)


def factorization_machine(tf):
    """Sparse features fed as a SparseTensor: products with a sparse matrix, squares of them, Ftrl and Adam."""

    def build():
        V, K, B, N = 20000, 16, 256, 30
        x, y = tf.sparse_placeholder(tf.float32, [None, V]), tf.placeholder(tf.float32, [None, 1])
        w, v = (
            tf.get_variable("w", [V, 1]),
            tf.get_variable("v", [V, K], initializer=tf.random_normal_initializer(stddev=0.01)),
        )
        b = tf.get_variable("b", [1], initializer=tf.zeros_initializer())
        squares = tf.SparseTensor(x.indices, tf.square(x.values), x.dense_shape)
        linear = tf.sparse_tensor_dense_matmul(x, w) + b
        pairs = tf.square(tf.sparse_tensor_dense_matmul(x, v)) - tf.sparse_tensor_dense_matmul(squares, tf.square(v))
        logits = linear + 0.5 * tf.reduce_sum(pairs, 1, keep_dims=True)
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=logits))
        loss += 1e-5 * (tf.nn.l2_loss(w) + tf.nn.l2_loss(v))
        train = tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.001).minimize(loss)
        columns = np.sort(R(0).randint(0, V, (B, N)), 1)
        indices = np.stack([np.repeat(np.arange(B), N), columns.reshape(-1)], 1)
        value = tf.SparseTensorValue(indices, np.ones(B * N, "f"), (B, V))
        feed = {x: value, y: R(1).randint(0, 2, (B, 1)).astype("f")}
        return lambda s: s.run([train, loss], feed)

    return _steps(tf, build)


def session_recommender(tf):
    """One step of a GRU over parallel sessions whose state is fed back, with losses over the other sessions' items (GRU4Rec)."""

    def build():
        B, V, H = 50, 10000, 100
        x, y, fed = tf.placeholder(tf.int32, [B]), tf.placeholder(tf.int32, [B]), tf.placeholder(tf.float32, [B, H])
        table, weights = tf.get_variable("table", [V, H]), tf.get_variable("weights", [V, H])
        bias = tf.get_variable("bias", [V], initializer=tf.zeros_initializer())
        cell = tf.nn.rnn_cell.DropoutWrapper(tf.nn.rnn_cell.GRUCell(H), output_keep_prob=0.8)
        output, state = cell(tf.nn.embedding_lookup(table, x), fed)
        sampled = tf.nn.embedding_lookup(weights, y), tf.nn.embedding_lookup(bias, y)
        scores = tf.nn.softmax(tf.matmul(output, sampled[0], transpose_b=True) + sampled[1])
        loss = tf.reduce_mean(-tf.log(tf.diag_part(scores) + 1e-24))
        optimizer = tf.train.AdamOptimizer(1e-3)
        capped = [
            (tf.clip_by_norm(g, 5.0) if isinstance(g, tf.Tensor) else g, v)
            for g, v in optimizer.compute_gradients(loss)
        ]
        train = optimizer.apply_gradients(capped)
        kept, items = [np.zeros((B, H), "f")], (R(0).randint(0, V, B), R(1).randint(0, V, B))

        def work(s):
            _, kept[0], _ = s.run([loss, state, train], {x: items[0], y: items[1], fed: kept[0]})

        return work

    return _steps(tf, build)


def improved_wgan(tf):
    """A critic of convolutions whose gradient is penalized, five updates for one of the generator."""

    def build():
        B = 16
        images = tf.placeholder(tf.float32, [B, 16, 16, 1])

        def generator(z):
            with tf.variable_scope("generator", reuse=tf.AUTO_REUSE):
                h = tf.reshape(tf.layers.dense(z, 4 * 4 * 32, tf.nn.relu), [-1, 4, 4, 32])
                h = tf.layers.conv2d_transpose(h, 16, 5, 2, "same", activation=tf.nn.relu)
                return tf.sigmoid(tf.layers.conv2d_transpose(h, 1, 5, 2, "same"))

        def critic(x):
            with tf.variable_scope("critic", reuse=tf.AUTO_REUSE):
                h = tf.nn.leaky_relu(tf.layers.conv2d(x, 16, 5, 2, "same"))
                h = tf.nn.leaky_relu(tf.layers.conv2d(h, 32, 5, 2, "same"))
                return tf.layers.dense(tf.reshape(h, [-1, 4 * 4 * 32]), 1)

        fake = generator(tf.random_normal([B, 32]))
        alpha = tf.random_uniform([B, 1, 1, 1])
        between = images + alpha * (fake - images)
        gradients = tf.gradients(critic(between), [between])[0]
        slopes = tf.sqrt(tf.reduce_sum(tf.square(gradients), [1, 2, 3]) + 1e-12)
        c_loss = (
            tf.reduce_mean(critic(fake)) - tf.reduce_mean(critic(images)) + 10 * tf.reduce_mean((slopes - 1.0) ** 2)
        )
        g_loss = -tf.reduce_mean(critic(fake))
        c_train, g_train = (
            tf.train.AdamOptimizer(1e-4, beta1=0.5, beta2=0.9).minimize(loss, var_list=tf.trainable_variables(scope))
            for loss, scope in ((c_loss, "critic"), (g_loss, "generator"))
        )
        feed = {images: R(0).rand(B, 16, 16, 1).astype("f")}

        def work(s):
            for _ in range(5):
                s.run([c_loss, c_train], feed)
            s.run(g_train)

        return work

    return _steps(tf, build)


def draw(tf):
    """Reads and writes pictures through a grid of Gaussian filters, unrolled over eight steps (DRAW)."""

    def build():
        A, B, N, T, H, Z = 28, 28, 5, 8, 64, 10
        x = tf.placeholder(tf.float32, [32, A * B])
        encode, decode = tf.nn.rnn_cell.LSTMCell(H), tf.nn.rnn_cell.LSTMCell(H)

        def filters(gx, gy, sigma, delta):
            grid = tf.reshape(tf.cast(tf.range(N), tf.float32), [1, -1])
            mx, my = (g + (grid - N / 2 - 0.5) * delta for g in (gx, gy))
            out = []
            for mean, size in ((mx, A), (my, B)):
                at = tf.reshape(tf.cast(tf.range(size), tf.float32), [1, 1, -1])
                f = tf.exp(-tf.square((at - tf.reshape(mean, [-1, N, 1])) / (2 * tf.reshape(sigma, [-1, 1, 1]))))
                out.append(f / tf.maximum(tf.reduce_sum(f, 2, keep_dims=True), 1e-8))
            return out

        def window(name, h):
            with tf.variable_scope(name):
                gx, gy, logs, logd, logg = tf.split(tf.layers.dense(h, 5), 5, 1)
            gx, gy, delta = (A + 1) / 2 * (gx + 1), (B + 1) / 2 * (gy + 1), (A - 1) / (N - 1) * tf.exp(logd)
            return [*filters(gx, gy, tf.exp(logs / 2), delta), tf.exp(logg)]

        canvas, losses = tf.zeros([32, A * B]), []
        e_state, d_state = encode.zero_state(32, tf.float32), decode.zero_state(32, tf.float32)
        h = tf.zeros([32, H])
        for t in range(T):
            with tf.variable_scope("draw", reuse=t > 0):
                error = x - tf.sigmoid(canvas)
                fx, fy, gamma = window("read", h)

                def glimpse(image, fx=fx, fy=fy, gamma=gamma):
                    image = tf.reshape(image, [-1, B, A])
                    seen = tf.matmul(fy, tf.matmul(image, tf.transpose(fx, [0, 2, 1])))
                    return tf.reshape(seen, [-1, N * N]) * gamma

                with tf.variable_scope("encoder"):
                    e, e_state = encode(tf.concat([glimpse(x), glimpse(error), h], 1), e_state)
                mean, logs = tf.split(tf.layers.dense(e, 2 * Z, name="z"), 2, 1)
                losses.append(0.5 * tf.reduce_sum(mean**2 + tf.exp(2 * logs) - 2 * logs - 1, 1))
                with tf.variable_scope("decoder"):
                    h, d_state = decode(mean + tf.exp(logs) * tf.random_normal([32, Z]), d_state)
                patch = tf.reshape(tf.layers.dense(h, N * N, name="patch"), [-1, N, N])
                fx, fy, gamma = window("write", h)
                written = tf.matmul(tf.transpose(fy, [0, 2, 1]), tf.matmul(patch, fx))
                canvas += tf.reshape(written, [-1, A * B]) / gamma
        error = tf.reduce_sum(tf.nn.sigmoid_cross_entropy_with_logits(labels=x, logits=canvas), 1)
        loss = tf.reduce_mean(error + tf.add_n(losses))
        optimizer = tf.train.AdamOptimizer(1e-3, beta1=0.5)
        pairs = [(tf.clip_by_norm(g, 5), v) for g, v in optimizer.compute_gradients(loss) if g is not None]
        train = optimizer.apply_gradients(pairs)
        feed = {x: R(0).rand(32, A * B).astype("f")}
        return lambda s: s.run([loss, train], feed)

    return _steps(tf, build)


def masked_pixels(tf):
    """Gated convolutions with masked filters (PixelCNN)."""

    def build():
        x = tf.placeholder(tf.float32, [None, 16, 16, 1])

        def masked(name, h, units, size, first):
            with tf.variable_scope(name):
                inputs = int(h.shape[-1])
                mask = np.ones((size, size, inputs, units), "f")
                mask[size // 2, size // 2 + (0 if first else 1) :] = 0
                mask[size // 2 + 1 :] = 0
                w = tf.get_variable("w", mask.shape) * mask
                return tf.nn.bias_add(tf.nn.conv2d(h, w, [1] * 4, "SAME"), tf.get_variable("b", [units]))

        h = masked("first", x, 32, 7, True)
        for i in range(3):
            a, b = tf.split(masked("layer%d" % i, h, 64, 3, False), 2, 3)
            h += masked("out%d" % i, tf.tanh(a) * tf.sigmoid(b), 32, 1, False)
        logits = masked("logits", tf.nn.relu(h), 1, 1, False)
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=x, logits=logits))
        optimizer = tf.train.RMSPropOptimizer(1e-3)
        train = optimizer.apply_gradients(
            [(tf.clip_by_value(g, -1, 1), v) for g, v in optimizer.compute_gradients(loss)]
        )
        feed = {x: (R(0).rand(16, 16, 16, 1) > 0.5).astype("f")}
        return lambda s: s.run([loss, train], feed)

    return _steps(tf, build)


def coupling_flow(tf):
    """Affine couplings with their log-determinants (RealNVP)."""

    def build():
        x = tf.placeholder(tf.float32, [None, 8])
        h, logdet = x, tf.zeros([tf.shape(x)[0]])
        for i in range(6):
            with tf.variable_scope("layer%d" % i):
                a, b = tf.split(h if i % 2 else tf.reverse(h, [1]), 2, 1)
                net = tf.layers.dense(tf.layers.dense(a, 64, tf.nn.relu), 64, tf.nn.relu)
                scale, shift = tf.tanh(tf.layers.dense(net, 4)), tf.layers.dense(net, 4)
                h = tf.concat([a, b * tf.exp(scale) + shift], 1)
                logdet += tf.reduce_sum(scale, 1)
        loss = -tf.reduce_mean(-0.5 * tf.reduce_sum(tf.square(h), 1) - 4 * np.log(2 * np.pi) + logdet)
        train = tf.train.AdamOptimizer(1e-4).minimize(loss)
        feed = {x: _f(0, 256, 8)}
        return lambda s: s.run([loss, train], feed)

    return _steps(tf, build)


def meta_learning(tf):
    """Losses after a step of descent, for a batch of tasks by map_fn; the outer gradient goes through the inner one (MAML)."""

    def build():
        shape = [4, 10, 1]
        xa, ya, xb, yb = (tf.placeholder(tf.float32, shape) for _ in range(4))
        sizes = [(1, 40), (40, 40), (40, 1)]
        weights = {}
        for i, size in enumerate(sizes):
            weights["w%d" % i] = tf.Variable(tf.truncated_normal(size, stddev=0.1))
            weights["b%d" % i] = tf.Variable(tf.zeros(size[1:]))

        def forward(x, w):
            for i in range(3):
                x = tf.matmul(x, w["w%d" % i]) + w["b%d" % i]
                x = tf.nn.relu(x) if i < 2 else x
            return x

        def task(data):
            a, b, c, d = data
            fast, losses = weights, []
            for _ in range(2):
                loss = tf.reduce_mean(tf.square(forward(a, fast) - b))
                gradients = dict(zip(fast, tf.gradients(loss, list(fast.values())), strict=True))
                fast = {key: fast[key] - 0.01 * gradients[key] for key in fast}
                losses.append(tf.reduce_mean(tf.square(forward(c, fast) - d)))
            return losses

        losses = tf.map_fn(task, (xa, ya, xb, yb), dtype=[tf.float32] * 2, parallel_iterations=4)
        total = tf.reduce_mean(losses[-1])
        optimizer = tf.train.AdamOptimizer(1e-3)
        pairs = [(tf.clip_by_value(g, -10, 10), v) for g, v in optimizer.compute_gradients(total)]
        train = optimizer.apply_gradients(pairs)
        feed = {each: _f(i, *shape) for i, each in enumerate((xa, ya, xb, yb))}
        return lambda s: s.run([total, train], feed)

    return _steps(tf, build)


def runge_kutta(tf):
    """A differential equation with a network as its right side, solved by a while_loop, and the gradient through it."""

    def build():
        start, end = tf.placeholder(tf.float32, [None, 2]), tf.placeholder(tf.float32, [None, 2])
        w1, b1 = tf.get_variable("w1", [2, 32]), tf.get_variable("b1", [32])
        w2, b2 = tf.get_variable("w2", [32, 2]), tf.get_variable("b2", [2])

        def slope(y):
            return tf.matmul(tf.tanh(tf.matmul(y**3, w1) + b1), w2) + b2

        def step(i, y):
            k1 = slope(y)
            k2 = slope(y + 0.025 * k1)
            k3 = slope(y + 0.025 * k2)
            k4 = slope(y + 0.05 * k3)
            return i + 1, y + 0.05 / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

        _, y = tf.while_loop(lambda i, y: i < 20, step, [0, start])
        loss = tf.reduce_mean(tf.abs(y - end))
        train = tf.train.RMSPropOptimizer(1e-3).minimize(loss)
        feed = {start: _f(0, 20, 2), end: _f(1, 20, 2)}
        return lambda s: s.run([loss, train], feed)

    return _steps(tf, build)


def recurrent_actor(tf):
    """An agent of convolutions and an LSTM whose state is fed: twenty single actions, then one update over them (A3C)."""

    def build():
        x, a, r = (
            tf.placeholder(tf.float32, [None, 40, 40, 1]),
            tf.placeholder(tf.int32, [None]),
            tf.placeholder(tf.float32, [None]),
        )
        c, h = tf.placeholder(tf.float32, [1, 64]), tf.placeholder(tf.float32, [1, 64])
        net = tf.layers.conv2d(tf.layers.conv2d(x, 16, 8, 4, activation=tf.nn.elu), 32, 4, 2, activation=tf.nn.elu)
        net = tf.expand_dims(tf.layers.dense(tf.layers.flatten(net), 64, tf.nn.elu), [0])
        cell, state = tf.nn.rnn_cell.LSTMCell(64), tf.nn.rnn_cell.LSTMStateTuple(c, h)
        outputs, state = tf.nn.dynamic_rnn(cell, net, tf.shape(x)[:1], state)
        output = tf.reshape(outputs, [-1, 64])
        policy, value = tf.layers.dense(output, 4, tf.nn.softmax), tf.squeeze(tf.layers.dense(output, 1), 1)
        chosen = tf.reduce_sum(policy * tf.one_hot(a, 4), 1)
        entropy = -tf.reduce_sum(policy * tf.log(policy + 1e-8))
        advantage = tf.stop_gradient(r - value)
        loss = (
            0.5 * tf.reduce_sum(tf.square(r - value))
            - tf.reduce_sum(tf.log(chosen + 1e-8) * advantage)
            - 0.01 * entropy
        )
        variables = tf.trainable_variables()
        gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 40.0)
        train = tf.train.AdamOptimizer(1e-4).apply_gradients(zip(gradients, variables, strict=True))
        frames, zero = _f(0, 20, 40, 40, 1), np.zeros((1, 64), "f")

        def work(s):
            now = (zero, zero)
            for frame in frames:
                _, _, now = s.run([policy, value, state], {x: frame[None], c: now[0], h: now[1]})
            s.run([loss, train], {x: frames, a: R(1).randint(0, 4, 20), r: _f(2, 20), c: zero, h: zero})

        return work

    return _steps(tf, build)


def unrolled_words(tf):
    """A language model of static_rnn over 20 steps whose last state is kept in variables, with a decayed rate."""

    def build():
        B, T, V, H = 20, 20, 1000, 100
        x, y = tf.placeholder(tf.int32, [B, T]), tf.placeholder(tf.int32, [B, T])
        kept = [[tf.Variable(tf.zeros([B, H]), trainable=False) for _ in range(2)] for _ in range(2)]
        inputs = tf.nn.dropout(tf.nn.embedding_lookup(tf.get_variable("embedding", [V, H]), x), keep_prob=0.8)
        cell = tf.nn.rnn_cell.MultiRNNCell([tf.nn.rnn_cell.BasicLSTMCell(H) for _ in range(2)])
        start = tuple(tf.nn.rnn_cell.LSTMStateTuple(*pair) for pair in kept)
        outputs, last = tf.nn.static_rnn(cell, tf.unstack(inputs, axis=1), start)
        logits = tf.layers.dense(tf.reshape(tf.stack(outputs, 1), [-1, H]), V)
        loss = _cross_entropy(tf, tf.reshape(y, [-1]), logits) * T
        variables, rate = (
            tf.trainable_variables(),
            tf.train.exponential_decay(1.0, tf.train.create_global_step(), 100, 0.9),
        )
        gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 5.0)
        optimizer = tf.train.GradientDescentOptimizer(rate)
        train = optimizer.apply_gradients(zip(gradients, variables, strict=True), tf.train.get_global_step())
        with tf.control_dependencies([train]):
            keep = [
                v.assign(new) for pair, news in zip(kept, last, strict=True) for v, new in zip(pair, news, strict=True)
            ]
        feed = {x: R(0).randint(0, V, (B, T)), y: R(1).randint(0, V, (B, T))}
        return lambda s: s.run([loss, train, *keep], feed)

    return _steps(tf, build)


def siamese_sentences(tf):
    """The last relevant outputs of a shared LSTM over two batches of sentences, gathered by their lengths, and a contrastive loss."""

    def build():
        B, T, V, H = 64, 15, 5000, 50
        xs = [tf.placeholder(tf.int32, [None, T]) for _ in range(2)]
        ns = [tf.placeholder(tf.int32, [None]) for _ in range(2)]
        y = tf.placeholder(tf.float32, [None])
        table, ends = tf.get_variable("table", [V, H]), []
        for x, n in zip(xs, ns, strict=True):
            with tf.variable_scope("side", reuse=tf.AUTO_REUSE):
                cell = tf.nn.rnn_cell.DropoutWrapper(tf.nn.rnn_cell.BasicLSTMCell(H), output_keep_prob=0.8)
                outputs, _ = tf.nn.dynamic_rnn(cell, tf.nn.embedding_lookup(table, x), n, dtype=tf.float32)
            at = tf.range(tf.shape(outputs)[0]) * T + (n - 1)
            ends.append(tf.gather(tf.reshape(outputs, [-1, H]), at))
        distance = tf.sqrt(tf.reduce_sum(tf.square(ends[0] - ends[1]), 1) + 1e-9)
        norms = tf.add(*(tf.sqrt(tf.reduce_sum(tf.square(end), 1) + 1e-9) for end in ends))
        distance = tf.div(distance, norms)
        loss = tf.reduce_mean(y * tf.square(distance) + (1 - y) * tf.square(tf.maximum(1 - distance, 0)))
        train = tf.train.AdamOptimizer(1e-3).minimize(loss)
        feed = {y: R(9).randint(0, 2, B).astype("f")}
        for i in range(2):
            feed.update({xs[i]: R(i).randint(0, V, (B, T)), ns[i]: R(i).randint(1, T + 1, B)})
        return lambda s: s.run([loss, train], feed)

    return _steps(tf, build)


def hyperbolic_embeddings(tf):
    """Distances in the Poincare ball; scaled gradients of rows, applied by scatter_sub and projected back."""

    def build():
        V, D, B, N = 5000, 10, 50, 10
        u, v = tf.placeholder(tf.int32, [None]), tf.placeholder(tf.int32, [None, N])
        table = tf.Variable(tf.random_uniform([V, D], -1e-3, 1e-3))

        def distance(a, b):
            difference = tf.reduce_sum(tf.square(a - b), -1)
            room = (1 - tf.reduce_sum(tf.square(a), -1)) * (1 - tf.reduce_sum(tf.square(b), -1))
            z = 1 + 2 * difference / tf.maximum(room, 1e-5)
            return tf.log(z + tf.sqrt(tf.square(z) - 1 + 1e-7))

        d = distance(tf.expand_dims(tf.nn.embedding_lookup(table, u), 1), tf.nn.embedding_lookup(table, v))
        loss = tf.reduce_mean(d[:, 0] + tf.log(tf.reduce_sum(tf.exp(-d), 1)))
        gradient = tf.gradients(loss, [table])[0]
        rows, at = tf.unique(gradient.indices)
        sums = tf.unsorted_segment_sum(gradient.values, at, tf.shape(rows)[0])
        old = tf.gather(table, rows)
        scale = tf.square(1 - tf.reduce_sum(tf.square(old), 1, keep_dims=True)) / 4
        moved = tf.clip_by_norm(old - 0.1 * scale * sums, 1 - 1e-5, axes=[1])
        train = tf.scatter_update(table, rows, moved)
        feed = {u: R(0).randint(0, V, B), v: R(1).randint(0, V, (B, N))}
        return lambda s: s.run([loss, train.op], feed)

    return _steps(tf, build)


def deep_dream(tf):
    """Ascent on a picture: the gradient of a layer's response, and a resized copy."""

    def build():
        x = tf.placeholder(tf.float32, [None, None, 3])
        h = tf.expand_dims(x, 0)
        for i, units in enumerate((16, 32, 32)):
            h = tf.layers.conv2d(h, units, 3, padding="same", activation=tf.nn.relu)
            h = tf.nn.max_pool(h, [1, 2, 2, 1], [1, 2, 2, 1], "SAME") if i < 2 else h
        score = tf.reduce_mean(h[..., 5])
        gradient = tf.gradients(score, x)[0]
        better = x + gradient * (1.5 / (tf.reduce_mean(tf.abs(gradient)) + 1e-7))
        smaller = tf.image.resize_bilinear(tf.expand_dims(better, 0), tf.to_int32(tf.to_float(tf.shape(x)[:2]) / 1.4))[
            0
        ]
        pictures = [_f(i, size, size, 3) for i, size in enumerate((64, 45))]
        return lambda s: [s.run([better, smaller], {x: picture}) for picture in pictures]

    return _steps(tf, build)


ALL = {
    function.__name__: function
    for function in (
        single_samples, nearest_neighbour, k_means, boltzmann_machine, self_organizing_map, hierarchical_attention, knowledge_graph,
        word_vectors, factorization_machine, session_recommender, improved_wgan, draw, masked_pixels, coupling_flow, meta_learning,
        runge_kutta, recurrent_actor, unrolled_words, siamese_sentences, hyperbolic_embeddings, deep_dream,
    )
}  # fmt: skip
