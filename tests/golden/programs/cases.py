"""Training programs with fed batches: weights shared, partitioned, regularized, averaged; cells with lengths that vary; loops.

Each builder takes the module `tf` (TensorFlow's or stoker's) and returns (loss, optimizer, feeds, metrics): feeds are arrays whose
first dimension counts steps, metrics are (value, update) pairs by name.
"""

import numpy as np

STEPS = 20
_random = np.random.RandomState(77)
ROWS = _random.randn(STEPS, 12, 10).astype(np.float32)
IMAGES = _random.rand(STEPS, 4, 9, 7, 3).astype(np.float32)
SEQUENCES = _random.randn(STEPS, 5, 7, 6).astype(np.float32)
CLASSES = _random.randint(0, 4, (STEPS, 12))
WORDS = _random.randint(0, 15, (STEPS, 5, 7))
LENGTHS = _random.randint(1, 8, (STEPS, 5)).astype(np.int32)
WEIGHTS = _random.rand(STEPS, 6).astype(np.float32)


def _fed(tf, values):
    return tf.placeholder(tf.as_dtype(values.dtype), [None, *values.shape[2:]])


def shared_towers(tf):
    """Two towers of one set of weights, which a custom getter scales; clipped gradients; a decayed rate."""
    a, b, same = _fed(tf, ROWS), _fed(tf, ROWS), tf.placeholder(tf.float32, [None])

    def scaled(getter, name, *args, **kwargs):
        variable = getter(name, *args, **kwargs)
        return tf.identity(variable * 0.9, name="scaled") if "kernel" in name else variable

    def tower(x):
        with tf.variable_scope("tower", reuse=tf.AUTO_REUSE, custom_getter=scaled):
            hidden = tf.layers.dense(x, 8, tf.nn.selu, kernel_initializer=tf.initializers.lecun_normal(), name="first")
            return tf.layers.dense(hidden, 4, bias_initializer=tf.random_normal_initializer(stddev=0.1), name="second")

    distance = tf.reduce_sum(tf.squared_difference(tower(a), tower(b)), -1)
    apart = tf.square(tf.maximum(0.0, 2.0 - tf.sqrt(distance + 1e-6)))
    loss = tf.reduce_mean(same * distance + (1 - same) * apart)
    rate = tf.train.exponential_decay(0.1, tf.train.get_or_create_global_step(), 5, 0.8, staircase=True)
    feeds = {a: ROWS, b: ROWS[::-1], same: (CLASSES % 2).astype(np.float32)}
    return loss, tf.train.MomentumOptimizer(rate, 0.8), feeds, {"distance": tf.metrics.mean(distance)}


def partitioned(tf):
    """Tables in parts, looked up by either strategy; regularization by scope."""
    words, labels = _fed(tf, WORDS), tf.placeholder(tf.int64, [None])
    small = tf.keras.regularizers.l2(0.02)
    with tf.variable_scope("tables", partitioner=tf.fixed_size_partitioner(3), regularizer=small):
        table = tf.get_variable("table", [16, 5], initializer=tf.truncated_normal_initializer(stddev=0.5, seed=3))
        other = tf.get_variable("other", [17, 3], partitioner=tf.variable_axis_size_partitioner(60))
    first = tf.nn.embedding_lookup(table, words, partition_strategy="div")
    second = tf.nn.embedding_lookup(other, words, partition_strategy="mod", max_norm=0.7)
    with tf.variable_scope("out", regularizer=small):
        logits = tf.layers.dense(tf.reshape(tf.concat([first, second], -1), [-1, 56]), 4)
    tf.losses.sparse_softmax_cross_entropy(labels, logits, weights=2.0)
    metrics = {"by_class": tf.metrics.mean_per_class_accuracy(labels, tf.argmax(logits, 1), 4)}
    feeds = {words: WORDS, labels: CLASSES[:, :5]}
    return tf.losses.get_total_loss(), tf.train.AdagradOptimizer(0.3), feeds, metrics


def averaged_images(tf):
    """Batch normalization by a fed flag, weights of activity and kernels, and moving averages of the weights."""
    images, labels = _fed(tf, IMAGES), tf.placeholder(tf.int32, [None])
    training = tf.placeholder_with_default(True, [])
    x = tf.layers.conv2d(
        images, 6, (3, 2), (2, 1), "same", activity_regularizer=tf.keras.regularizers.l2(0.003), name="first"
    )
    scales = tf.random_uniform_initializer(0.5, 1.5)
    x = tf.layers.batch_normalization(x, training=training, momentum=0.7, epsilon=1e-2, gamma_initializer=scales)
    x = tf.layers.conv2d(tf.nn.relu(x), 5, 3, padding="same", dilation_rate=(2, 1), use_bias=False)
    x = tf.layers.batch_normalization(x, training=training, scale=False, fused=True)
    x = tf.layers.average_pooling2d(tf.nn.elu(x), (2, 3), (1, 2), padding="same")
    x = tf.layers.conv2d(tf.reduce_mean(x, [1, 2], keep_dims=True), 4, 1, name="logits")
    logits = tf.squeeze(x, [1, 2])
    tf.losses.softmax_cross_entropy(tf.one_hot(labels, 4), logits, label_smoothing=0.2)
    averages = tf.train.ExponentialMovingAverage(0.9, num_updates=tf.train.get_or_create_global_step())
    tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, averages.apply(tf.trainable_variables()))
    feeds = {images: IMAGES, labels: CLASSES[:, :4].astype(np.int32)}
    return tf.losses.get_total_loss(), tf.train.AdamOptimizer(0.01, epsilon=1e-2), feeds, {}


def _over_time(tf, cell):
    """A cell over sequences whose longest is another at every step."""
    x, lengths, labels = _fed(tf, SEQUENCES), tf.placeholder(tf.int32, [None]), tf.placeholder(tf.int64, [None])
    # One iteration at a time: among parallel ones TensorFlow draws the masks in any order.
    outputs, state = tf.nn.dynamic_rnn(cell, x, lengths, dtype=tf.float32, scope="over", parallel_iterations=1)
    features = tf.concat([outputs[:, -1], tf.reduce_mean(outputs, 1), *tf.nest.flatten(state)], -1)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, tf.layers.dense(features, 4))
    feeds = {x: SEQUENCES, lengths: LENGTHS, labels: CLASSES[:, :5]}
    return loss, tf.train.GradientDescentOptimizer(0.3), feeds, {}


def dropped_residual(tf):
    cells = tf.nn.rnn_cell
    gru = cells.GRUCell(6, kernel_initializer=tf.glorot_normal_initializer(), bias_initializer=tf.ones_initializer())
    return _over_time(tf, cells.ResidualWrapper(cells.DropoutWrapper(gru, output_keep_prob=0.7, seed=9)))


def visited_states(tf):
    cells = tf.nn.rnn_cell

    def visitor(state):
        return cells.LSTMStateTuple(True, False) if isinstance(state, cells.LSTMStateTuple) else True

    wrapped = cells.DropoutWrapper(cells.LSTMCell(4), state_keep_prob=0.6, seed=4, dropout_state_filter_visitor=visitor)
    return _over_time(tf, wrapped)


def mixed_stack(tf):
    cells = tf.nn.rnn_cell
    variational = cells.DropoutWrapper(
        cells.LSTMCell(3, use_peepholes=True, cell_clip=1.5, num_proj=2),
        0.8, 0.9, 0.7, variational_recurrent=True, input_size=tf.TensorShape([4]), dtype=tf.float32,
    )  # fmt: skip
    joined = cells.ResidualWrapper(cells.BasicRNNCell(4), residual_fn=lambda i, o: i[:, :4] * 0.5 + o)
    return _over_time(tf, cells.MultiRNNCell([joined, cells.BasicLSTMCell(4, activation=tf.nn.softsign), variational]))


def unrolled_both_ways(tf):
    cells = tf.nn.rnn_cell
    x, lengths = tf.placeholder(tf.float32, [5, 7, 6]), tf.placeholder(tf.int64, [5])
    stack = cells.MultiRNNCell(
        [
            cells.DropoutWrapper(cells.GRUCell(4), 0.9, 0.8, seed=2),
            cells.DropoutWrapper(cells.LSTMCell(3, use_peepholes=True), state_keep_prob=0.8),
        ]
    )
    steps, state = tf.nn.static_rnn(stack, tf.unstack(x, axis=1), dtype=tf.float32, sequence_length=lengths)
    joined, forward, _ = tf.nn.static_bidirectional_rnn(
        cells.BasicRNNCell(2), cells.BasicLSTMCell(2), steps, dtype=tf.float32, sequence_length=lengths
    )
    loss = tf.add_n([tf.reduce_mean(tf.square(step)) for step in joined]) + tf.reduce_mean(tf.abs(state[1].c - 0.3))
    feeds = {x: SEQUENCES, lengths: LENGTHS}
    return loss + tf.reduce_sum(forward) * 0.1, tf.train.GradientDescentOptimizer(0.3), feeds, {}


def sparse_features(tf):
    """Lookups that pass over bad ids, in every combination of parts, weights and norms."""
    places = np.array([[0, 0], [0, 1], [1, 0], [3, 0], [3, 2], [3, 3]])
    flags = tf.placeholder(tf.float32, [None, 1])
    ids, weights = tf.placeholder(tf.int64, [None]), tf.placeholder(tf.float32, [None])
    features, weighted = tf.SparseTensor(places, ids - 2, [5, 4]), tf.SparseTensor(places, weights - 0.2, [5, 4])
    table = tf.get_variable("table", [13, 3], partitioner=tf.min_max_variable_partitioner(4, 0, 64))
    plain = tf.get_variable("plain", [15, 2], use_resource=True)
    filled = tf.sparse.fill_empty_rows(tf.SparseTensor(places, ids, [5, 4]), 0)[0]
    found = [
        tf.nn.safe_embedding_lookup_sparse(table, features, weighted, combiner="sqrtn", default_id=2),
        tf.nn.safe_embedding_lookup_sparse(table, features, weighted, combiner="sum"),
        tf.nn.safe_embedding_lookup_sparse(table, features, None, "mean", max_norm=0.8),
        tf.nn.embedding_lookup_sparse(plain, filled, None, combiner="sum"),
    ]
    logits = tf.layers.dense(tf.concat(found, 1), 1, bias_initializer=tf.constant_initializer(0.3))
    loss = tf.losses.sigmoid_cross_entropy(flags, logits, reduction=tf.losses.Reduction.SUM)
    metrics = {"auc": tf.metrics.auc(flags, tf.sigmoid(logits), num_thresholds=10, curve="PR")}
    feeds = {ids: WORDS[:, 0, :6] % 13, weights: WEIGHTS, flags: (CLASSES[:, :5, None] % 2).astype(np.float32)}
    return loss, tf.train.AdagradOptimizer(0.3), feeds, metrics


def sampled_classes(tf):
    """Classes drawn by what the targets were, by given weights and by the default; weights in parts."""
    x, labels = _fed(tf, ROWS), tf.placeholder(tf.int64, [None, 1])
    hidden = tf.layers.dense(x, 6, tf.nn.crelu)
    weights = tf.get_variable("weights", [30, 12], partitioner=tf.fixed_size_partitioner(2))
    biases = tf.get_variable("biases", [30], initializer=tf.zeros_initializer())
    learned = tf.nn.learned_unigram_candidate_sampler(labels, 1, 4, True, 30, seed=5)
    given = [float(i + 1) for i in range(30)]
    fixed = tf.nn.fixed_unigram_candidate_sampler(labels, 1, 5, True, 30, unigrams=given, distortion=0.75, seed=6)
    losses = [
        tf.nn.nce_loss(list(weights), biases, labels, hidden, 7, 30, remove_accidental_hits=True),
        tf.nn.nce_loss(weights, biases, labels, hidden, 4, 30, sampled_values=learned, partition_strategy="div"),
        tf.nn.sampled_softmax_loss(weights, biases, labels, hidden, 5, 30, sampled_values=fixed),
    ]
    loss = tf.add_n([tf.reduce_mean(each) for each in losses])
    return loss, tf.train.GradientDescentOptimizer(0.05), {x: ROWS, labels: CLASSES[:, :, None] * 7}, {}


def loop_with_branches(tf):
    """A loop of a fed number of steps around a branch with a layer in it, and a TensorArray of all states."""
    x, count = _fed(tf, ROWS), tf.placeholder(tf.int32, [])
    matrix = tf.get_variable("matrix", [10, 10], initializer=tf.glorot_uniform_initializer())

    def body(i, state, states):
        state = tf.tanh(tf.matmul(state, matrix)) + 0.1 * x
        state = tf.cond(
            tf.equal(i % 2, 0),
            lambda: state * 0.5,
            lambda: state + tf.layers.dense(state, 10, name="inner", reuse=tf.AUTO_REUSE),
        )
        return i + 1, state, states.write(i, state)

    states = tf.TensorArray(tf.float32, size=count, clear_after_read=False)
    shapes = [tf.TensorShape([]), tf.TensorShape([None, 10]), tf.TensorShape(None)]
    _, state, states = tf.while_loop(lambda i, *_: i < count, body, [0, x, states], shape_invariants=shapes)
    loss = tf.reduce_mean(tf.square(state)) + tf.reduce_mean(tf.reduce_max(states.stack(), 0))
    feeds = {x: ROWS, count: np.arange(STEPS) % 4 + 1}
    return loss, tf.train.MomentumOptimizer(0.1, 0.5, use_nesterov=True), feeds, {}


def penalized_gradient(tf):
    """A loss on the length of a gradient, so that training takes second derivatives."""
    images = _fed(tf, IMAGES)

    def critic(x):
        with tf.variable_scope("critic", reuse=tf.AUTO_REUSE):
            x = tf.layers.conv2d(x, 4, 3, 2, "same", activation=lambda t: tf.nn.leaky_relu(t, 0.3), name="first")
            mean, variance = tf.nn.moments(x, [1, 2, 3], keep_dims=True)
            x = tf.nn.batch_normalization(x, mean, variance, None, None, 1e-3)
            x = tf.layers.conv2d(x, 3, 3, activation=tf.nn.softplus, name="second")
            return tf.layers.dense(tf.layers.flatten(tf.layers.max_pooling2d(x, 2, 1)), 1, name="third")

    share = tf.random_uniform([tf.shape(images)[0], 1, 1, 1], seed=3)
    between = share * images + (1 - share) * tf.reverse(images, [2])
    gradient = tf.layers.flatten(tf.gradients(critic(between), between)[0])
    penalty = tf.reduce_mean((tf.norm(gradient, axis=1) - 1.0) ** 2)
    loss = tf.reduce_mean(critic(images)) - tf.reduce_mean(critic(-images)) + 10 * penalty
    return loss, tf.train.GradientDescentOptimizer(0.01), {images: IMAGES}, {"penalty": tf.metrics.mean(penalty)}


PROGRAMS = {
    each.__name__: each
    for each in (
        shared_towers,
        partitioned,
        averaged_images,
        dropped_residual,
        visited_states,
        mixed_stack,
        unrolled_both_ways,
        sparse_features,
        sampled_classes,
        loop_with_branches,
        penalized_gradient,
    )
}


def _along(value, seed):
    """A number for an array: its length along a fixed direction."""
    value = np.asarray(value, np.float64).reshape(-1)
    direction = np.random.RandomState(seed).randn(value.size)
    return float(value @ direction / np.linalg.norm(direction)) if value.size else 0.0


def train(tf, build):
    """{name: array} of twenty steps: names, initial and final variables along directions, losses, gradients, metrics."""
    with tf.Graph().as_default():
        tf.set_random_seed(21)
        loss, optimizer, feeds, metrics = build(tf)
        pairs = [(g, v) for g, v in optimizer.compute_gradients(loss) if g is not None]
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            step = optimizer.apply_gradients(pairs, global_step=tf.train.get_or_create_global_step())
        gradients = [tf.convert_to_tensor(g) for g, _ in pairs]
        variables = tf.global_variables()
        with tf.Session() as session:
            session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
            initial = session.run(variables)
            updates = {name: update for name, (_, update) in metrics.items()}
            steps = [
                session.run([loss, gradients, updates, step], {key: values[i] for key, values in feeds.items()})
                for i in range(STEPS)
            ]
            final = session.run(variables)
    found = {
        "names": np.array([variable.name for variable in variables]),
        "initial": np.array([_along(value, i) for i, value in enumerate(initial)]),
        "final": np.array([_along(value, i) for i, value in enumerate(final)]),
        "losses": np.array([each[0] for each in steps]),
        "gradients": np.array([[_along(g, i) for i, g in enumerate(each[1])] for each in steps]),
    }
    found.update({f"metric {name}": np.array([each[2][name] for each in steps]) for name in updates})
    return found
