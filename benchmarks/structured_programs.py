"""A fifth set of programs: graphs, sequences, pipelines and matrices decide what is computed. Run with `run.py --module structured_programs`."""

import numpy as np
from programs import R, _steps


def _f(seed, *shape):
    return R(seed).randn(*shape).astype("f")


def _cross_entropy(tf, labels, logits):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


def mobile_net(tf):
    """Depthwise convolutions with batch normalization and relu6, trained with RMSProp."""

    def build():
        x, y = tf.placeholder(tf.float32, [None, 32, 32, 3]), tf.placeholder(tf.int32, [None])

        def normalized(h):
            return tf.nn.relu6(tf.layers.batch_normalization(h, training=True))

        h = normalized(tf.layers.conv2d(x, 16, 3, 2, "same", use_bias=False))
        for i, (units, stride) in enumerate(((24, 1), (32, 2), (32, 1), (48, 2))):
            depthwise = tf.get_variable("depthwise%d" % i, [3, 3, int(h.shape[-1]), 1])
            h = normalized(tf.nn.depthwise_conv2d(h, depthwise, [1, stride, stride, 1], "SAME"))
            h = normalized(tf.layers.conv2d(h, units, 1, use_bias=False))
        loss = _cross_entropy(tf, y, tf.layers.dense(tf.reduce_mean(h, [1, 2]), 10))
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            train = tf.train.RMSPropOptimizer(1e-3, momentum=0.9).minimize(loss)
        feed = {x: _f(0, 16, 32, 32, 3), y: R(1).randint(0, 10, 16)}
        return lambda s: s.run([loss, train], feed)

    return _steps(tf, build)


def inception(tf):
    """Branches of several window sizes, joined, with dropout and weight decay."""

    def build():
        x, y = tf.placeholder(tf.float32, [None, 14, 14, 16]), tf.placeholder(tf.int32, [None])

        def conv(h, units, size):
            return tf.layers.conv2d(h, units, size, padding="same", activation=tf.nn.relu)

        h = x
        for _ in range(2):
            pooled = tf.layers.max_pooling2d(h, 3, 1, "same")
            branches = [conv(h, 8, 1), conv(conv(h, 8, 1), 12, 3), conv(conv(h, 4, 1), 8, 5), conv(pooled, 8, 1)]
            h = tf.concat(branches, 3)
        h = tf.nn.dropout(tf.reduce_mean(h, [1, 2]), keep_prob=0.5)
        decay = tf.add_n([tf.nn.l2_loss(v) for v in tf.trainable_variables()])
        loss = _cross_entropy(tf, y, tf.layers.dense(h, 10)) + 1e-4 * decay
        train = tf.train.RMSPropOptimizer(1e-3).minimize(loss)
        feed = {x: _f(0, 32, 14, 14, 16), y: R(1).randint(0, 10, 32)}
        return lambda s: s.run([loss, train], feed)

    return _steps(tf, build)


def dense_net(tf):
    """Layers that take the channels of all layers before them."""

    def build():
        x, y = tf.placeholder(tf.float32, [None, 16, 16, 8]), tf.placeholder(tf.int32, [None])
        h = x
        for _ in range(5):
            b = tf.nn.relu(tf.layers.batch_normalization(h, training=True))
            b = tf.nn.relu(tf.layers.batch_normalization(tf.layers.conv2d(b, 16, 1, use_bias=False), training=True))
            h = tf.concat([h, tf.layers.conv2d(b, 8, 3, padding="same", use_bias=False)], 3)
        loss = _cross_entropy(tf, y, tf.layers.dense(tf.reduce_mean(h, [1, 2]), 10))
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            train = tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True).minimize(loss)
        feed = {x: _f(0, 16, 16, 16, 8), y: R(1).randint(0, 10, 16)}
        return lambda s: s.run([loss, train], feed)

    return _steps(tf, build)


def volumes(tf):
    """Convolutions and pooling over volumes."""

    def build():
        x, y = tf.placeholder(tf.float32, [None, 8, 16, 16, 3]), tf.placeholder(tf.int32, [None])
        h = tf.layers.conv3d(x, 8, 3, padding="same", activation=tf.nn.relu)
        h = tf.layers.max_pooling3d(h, 2, 2)
        h = tf.layers.conv3d(h, 16, 3, padding="same", activation=tf.nn.relu)
        h = tf.layers.average_pooling3d(h, 2, 2)
        loss = _cross_entropy(tf, y, tf.layers.dense(tf.layers.flatten(h), 10))
        train = tf.train.AdamOptimizer(1e-3).minimize(loss)
        feed = {x: _f(0, 8, 8, 16, 16, 3), y: R(1).randint(0, 10, 8)}
        return lambda s: s.run([loss, train], feed)

    return _steps(tf, build)


def spatial_transformer(tf):
    """A learned affine transformation: bilinear sampling by gather_nd, then a convolution."""

    def build():
        B, H, W, C = 8, 20, 20, 3
        x, y = tf.placeholder(tf.float32, [B, H, W, C]), tf.placeholder(tf.int32, [B])
        unchanged = tf.constant_initializer([1, 0, 0, 0, 1, 0])
        theta = tf.reshape(tf.layers.dense(tf.layers.flatten(x), 6, bias_initializer=unchanged), [B, 2, 3])
        across, down = tf.meshgrid(tf.linspace(-1.0, 1.0, W), tf.linspace(-1.0, 1.0, H))
        grid = tf.stack([tf.reshape(across, [-1]), tf.reshape(down, [-1]), tf.ones([H * W])])
        source = tf.matmul(theta, tf.tile(grid[None], [B, 1, 1]))
        xs, ys = (source[:, 0] + 1) * (W - 1) / 2, (source[:, 1] + 1) * (H - 1) / 2
        left, top = tf.cast(tf.floor(xs), tf.int32), tf.cast(tf.floor(ys), tf.int32)
        image = tf.tile(tf.range(B)[:, None], [1, H * W])

        def pixels(row, column):
            row, column = tf.clip_by_value(row, 0, H - 1), tf.clip_by_value(column, 0, W - 1)
            return tf.gather_nd(x, tf.stack([image, row, column], 2))

        right, low = xs - tf.cast(left, tf.float32), ys - tf.cast(top, tf.float32)
        sampled = (
            pixels(top, left) * ((1 - right) * (1 - low))[..., None]
            + pixels(top, left + 1) * (right * (1 - low))[..., None]
            + pixels(top + 1, left) * ((1 - right) * low)[..., None]
            + pixels(top + 1, left + 1) * (right * low)[..., None]
        )
        h = tf.layers.conv2d(tf.reshape(sampled, [B, H, W, C]), 8, 5, 2, activation=tf.nn.relu)
        loss = _cross_entropy(tf, y, tf.layers.dense(tf.layers.flatten(h), 10))
        train = tf.train.AdamOptimizer(1e-3).minimize(loss)
        feed = {x: _f(0, B, H, W, C), y: R(1).randint(0, 10, B)}
        return lambda s: s.run([loss, train], feed)

    return _steps(tf, build)


def mined_boxes(tf):
    """The loss of a single-shot detector: boxes of objects, and the hardest of the others by top_k."""

    def build():
        B, N = 4, 400
        features, boxes = tf.placeholder(tf.float32, [B, N, 24]), tf.placeholder(tf.float32, [B, N, 4])
        labels = tf.placeholder(tf.int32, [B, N])
        logits, found = tf.layers.dense(features, 6), tf.layers.dense(features, 4)
        there = labels > 0
        count = tf.reduce_sum(tf.cast(there, tf.int32))
        far = tf.abs(found - boxes)
        smooth = tf.reduce_sum(tf.where(far < 1, 0.5 * far * far, far - 0.5), 2)
        entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        others = tf.reshape(tf.where(there, tf.zeros_like(entropy), entropy), [-1])
        hardest, _ = tf.nn.top_k(others, tf.minimum(3 * count, B * N - 1))
        total = tf.reduce_sum(tf.boolean_mask(smooth + entropy, there)) + tf.reduce_sum(hardest)
        loss = total / tf.cast(tf.maximum(count, 1), tf.float32)
        train = tf.train.MomentumOptimizer(1e-3, 0.9).minimize(loss)
        labels_value = np.maximum(R(2).randint(-40, 6, [B, N]), 0)
        feed = {features: _f(0, B, N, 24), boxes: _f(1, B, N, 4), labels: labels_value}
        return lambda s: s.run([loss, train], feed)

    return _steps(tf, build)


def graph_attention(tf):
    """Attention over the edges of a graph: softmaxes and sums of segments, two layers of two heads."""

    def build():
        N, E = 150, 900
        x, y = tf.placeholder(tf.float32, [N, 16]), tf.placeholder(tf.int32, [N])
        source, target = tf.placeholder(tf.int32, [None]), tf.placeholder(tf.int32, [None])
        h = x
        for _ in range(2):
            heads = []
            for _ in range(2):
                z = tf.layers.dense(h, 8, use_bias=False)
                score = tf.gather(tf.layers.dense(z, 1), source) + tf.gather(tf.layers.dense(z, 1), target)
                score = tf.nn.leaky_relu(score)
                score = tf.exp(score - tf.gather(tf.unsorted_segment_max(score, target, N), target))
                score /= tf.gather(tf.unsorted_segment_sum(score, target, N), target) + 1e-9
                heads.append(tf.unsorted_segment_sum(score * tf.gather(z, source), target, N))
            h = tf.nn.elu(tf.concat(heads, 1))
        loss = _cross_entropy(tf, y, tf.layers.dense(h, 4))
        train = tf.train.AdamOptimizer(5e-3).minimize(loss)
        feed = {
            x: _f(0, N, 16),
            source: R(1).randint(0, N, E),
            target: R(2).randint(0, N, E),
            y: R(3).randint(0, 4, N),
        }
        return lambda s: s.run([loss, train], feed)

    return _steps(tf, build)


def message_passing(tf):
    """Messages along the edges of many small graphs, pooled by graph."""

    def build():
        x, y = tf.placeholder(tf.float32, [None, 16]), tf.placeholder(tf.float32, [20])
        source, target, graph = (tf.placeholder(tf.int32, [None]) for _ in range(3))
        h = x
        for _ in range(3):
            ends = tf.concat([tf.gather(h, source), tf.gather(h, target)], 1)
            messages = tf.layers.dense(ends, 32, tf.nn.relu)
            sums = tf.unsorted_segment_sum(messages, target, tf.shape(h)[0])
            h = tf.layers.dense(tf.concat([h, sums], 1), 16, tf.nn.relu)
        pooled = tf.concat([tf.segment_mean(h, graph), tf.segment_max(h, graph)], 1)
        loss = tf.reduce_mean(tf.square(tf.layers.dense(pooled, 1)[:, 0] - y))
        train = tf.train.AdamOptimizer(1e-3).minimize(loss)
        feed = {
            x: _f(0, 200, 16),
            graph: np.repeat(np.arange(20), 10),
            source: R(1).randint(0, 200, 800),
            target: R(2).randint(0, 200, 800),
            y: _f(3, 20),
        }
        return lambda s: s.run([loss, train], feed)

    return _steps(tf, build)


def viterbi(tf):
    """The best paths through tags: scans with maxima and the places they come from, then the way back."""

    def build():
        x = tf.placeholder(tf.float32, [None, None, 7])
        moves = tf.get_variable("moves", [7, 7])
        scores = tf.transpose(x, [1, 0, 2])

        def forward(before, score):
            reached = tf.expand_dims(before[0], 2) + moves
            return tf.reduce_max(reached, 1) + score, tf.cast(tf.argmax(reached, 1), tf.int32)

        start = scores[0], tf.zeros_like(scores[0], tf.int32)
        best, came_from = tf.scan(forward, scores[1:], start)
        last = tf.argmax(best[-1], 1, output_type=tf.int32)

        def back(tag, places):
            return tf.gather_nd(places, tf.stack([tf.range(tf.shape(tag)[0]), tag], 1))

        path = tf.scan(back, came_from, last, reverse=True)
        return lambda s: s.run([path, last], {x: _f(0, 8, 20, 7)})

    return _steps(tf, build)


def greedy_decoder(tf):
    """Decoding word by word until all sentences have ended: the loop's condition depends on the words."""

    def build():
        H, V, T = 48, 80, 20
        encoded = tf.placeholder(tf.float32, [16, H])
        emb, w = tf.get_variable("emb", [V, 24]), tf.get_variable("w", [H, V])
        cell = tf.nn.rnn_cell.LSTMCell(H)
        cell.build([None, 24])

        def body(t, c, h, words, ended, out):
            _, (c, h) = cell(tf.nn.embedding_lookup(emb, words), tf.nn.rnn_cell.LSTMStateTuple(c, h))
            words = tf.argmax(tf.matmul(h, w), 1, output_type=tf.int32)
            words = tf.where(ended, tf.zeros_like(words), words)
            return t + 1, c, h, words, tf.logical_or(ended, tf.equal(words, 1)), out.write(t, words)

        def goes_on(t, c, h, words, ended, out):
            return tf.logical_and(t < T, tf.logical_not(tf.reduce_all(ended)))

        none, start = tf.zeros([16], tf.bool), tf.zeros([16], tf.int32)
        first = [0, encoded, encoded, start, none, tf.TensorArray(tf.int32, T, clear_after_read=False)]
        sentences = tf.while_loop(goes_on, body, first)[5].stack()
        return lambda s: s.run(sentences, {encoded: _f(0, 16, H)})

    return _steps(tf, build)


def least_squares(tf):
    """Regularized normal equations, solved, with the eigenvalues of their matrix."""

    def build():
        x, y = tf.placeholder(tf.float32, [None, 10]), tf.placeholder(tf.float32, [None, 1])
        normal = tf.matmul(x, x, transpose_a=True) + 0.1 * tf.eye(10)
        w = tf.matrix_solve(normal, tf.matmul(x, y, transpose_a=True))
        values, _ = tf.self_adjoint_eig(normal)
        error = tf.reduce_mean(tf.square(tf.matmul(x, w) - y))
        feed = {x: _f(0, 100, 10), y: _f(1, 100, 1)}
        return lambda s: s.run([w, error, values], feed)

    return _steps(tf, build)


def augmented_records(tf):
    """A tf.data pipeline that crops, mirrors and brightens images one by one."""

    def build():
        images = R(0).randint(0, 255, [300, 32, 32, 3]).astype("u1")
        labels = R(1).randint(0, 10, 300).astype("i")

        def augmented(x, y):
            x = tf.random_crop(tf.image.resize_image_with_crop_or_pad(x, 36, 36), [32, 32, 3])
            x = tf.cast(tf.image.random_flip_left_right(x), tf.float32) / 255.0
            return tf.image.per_image_standardization(tf.image.random_brightness(x, 0.2)), y

        records = tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(100).repeat()
        batches = records.map(augmented, num_parallel_calls=2).batch(32).prefetch(1)
        x, y = tf.data.make_one_shot_iterator(batches).get_next()
        h = tf.layers.flatten(tf.layers.average_pooling2d(x, 4, 4))
        loss = _cross_entropy(tf, y, tf.layers.dense(h, 10))
        train = tf.train.GradientDescentOptimizer(0.01).minimize(loss)
        return lambda s: s.run([loss, train])

    return _steps(tf, build)


def sentences(tf):
    """A tf.data pipeline that splits lines, looks words up in a table and pads batches; embeddings are averaged."""

    def build():
        lines = np.array([" ".join("w%d" % k for k in R(i).randint(0, 600, 4 + i % 9)) for i in range(400)])
        words = tf.constant(["w%d" % i for i in range(500)])
        numbers = tf.lookup.KeyValueTensorInitializer(words, tf.constant(np.arange(500), tf.int64))
        table = tf.lookup.StaticHashTable(numbers, 500)

        def parsed(line):
            ids = table.lookup(tf.string_split([line]).values)
            return ids, tf.size(ids)

        records = tf.data.Dataset.from_tensor_slices(lines).repeat().map(parsed)
        iterator = tf.data.make_initializable_iterator(records.padded_batch(32, ([None], [])).prefetch(1))
        ids, lengths = iterator.get_next()
        embedded = tf.nn.embedding_lookup(tf.get_variable("emb", [501, 16]), ids)
        mask = tf.expand_dims(tf.sequence_mask(lengths, dtype=tf.float32), 2)
        loss = tf.reduce_mean(tf.square(tf.layers.dense(tf.reduce_sum(embedded * mask, 1), 1)))
        train = tf.train.AdamOptimizer().minimize(loss)
        starts = [tf.tables_initializer(), iterator.initializer]

        def work(s):
            while starts:
                s.run(starts.pop(0))
            s.run([loss, train])

        return work

    return _steps(tf, build)


ALL = {
    program.__name__: program
    for program in (
        mobile_net,
        inception,
        dense_net,
        volumes,
        spatial_transformer,
        mined_boxes,
        graph_attention,
        message_passing,
        viterbi,
        greedy_decoder,
        least_squares,
        augmented_records,
        sentences,
    )
}
