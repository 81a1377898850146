"""Small networks, trained for twenty steps: names and initial values of variables, losses, gradients and metrics.

Each builder takes the module `tf` (TensorFlow's or stoker's) and returns (loss, optimizer, metrics), metrics being a dict
of (value, update) pairs. Among them stand every recurrent cell, kind of convolution, normalization, loss and metric.
"""

import numpy as np

STEPS = 20
_random = np.random.RandomState(9)
ROWS = _random.randn(16, 6).astype(np.float32)
IMAGES = _random.randn(8, 8, 8, 3).astype(np.float32)
SEQUENCES = _random.randn(8, 9, 4).astype(np.float32)
VOLUMES = _random.randn(3, 5, 5, 5, 2).astype(np.float32)
CLASSES = _random.randint(0, 3, 16)
TARGETS = _random.randn(16, 3).astype(np.float32)
FLAGS = _random.randint(0, 2, (16, 3)).astype(np.float32)
PART = _random.rand(16, 1).astype(np.float32)
LENGTHS = np.array([9, 1, 4, 9, 7, 2, 3, 5], np.int32)


def _classified(tf, logits):
    """Loss and metrics of a classification into three."""
    count = logits.shape[0]
    labels = tf.constant(CLASSES[:count])
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    guess = tf.argmax(logits, 1)
    metrics = tf.metrics
    return loss, {
        "accuracy": metrics.accuracy(labels, guess),
        "mean": metrics.mean(logits, weights=PART[:count].astype(logits.dtype.as_numpy_dtype)),
        "mean_iou": metrics.mean_iou(labels, guess, 3),
        "mean_per_class_accuracy": metrics.mean_per_class_accuracy(labels, guess, 3),
        "average_precision_at_k": metrics.average_precision_at_k(labels, logits, 2),
        "precision_at_k": metrics.precision_at_k(labels, logits, 1, class_id=1),
        "recall_at_k": metrics.recall_at_k(labels, logits, 2),
        "precision_at_top_k": metrics.precision_at_top_k(labels, tf.nn.top_k(logits, 2)[1], 2),
        "recall_at_top_k": metrics.recall_at_top_k(labels, tf.nn.top_k(logits, 2)[1], 2),
        "mean_tensor": metrics.mean_tensor(tf.nn.softmax(logits)),
    }


def _judged(tf, logits):
    """Metrics of yes-or-no predictions."""
    count = logits.shape[0]
    likely = tf.sigmoid(logits)
    flags, guess = tf.constant(FLAGS[:count]), tf.round(likely)
    metrics = tf.metrics
    thresholds = [0.3, 0.5, 0.7]
    counted = {
        kind: getattr(metrics, kind)(flags, guess)
        for kind in ("true_positives", "true_negatives", "false_positives", "false_negatives", "precision", "recall")
    }
    graded = {
        kind: getattr(metrics, kind)(flags, likely, thresholds)
        for kind in (
            "true_positives_at_thresholds",
            "true_negatives_at_thresholds",
            "false_positives_at_thresholds",
            "false_negatives_at_thresholds",
            "precision_at_thresholds",
            "recall_at_thresholds",
        )
    }
    return {
        **counted,
        **graded,
        "auc": metrics.auc(flags, likely, weights=PART[:count], num_thresholds=50),
        "auc_pr": metrics.auc(flags, likely, curve="PR", summation_method="careful_interpolation", num_thresholds=50),
        "sensitivity_at_specificity": metrics.sensitivity_at_specificity(flags, likely, 0.4, num_thresholds=50),
        "specificity_at_sensitivity": metrics.specificity_at_sensitivity(flags, likely, 0.4, num_thresholds=50),
    }


def _measured(tf, found):
    """Metrics of predicted numbers."""
    count = found.shape[0]
    targets = tf.constant(TARGETS[:count])
    metrics = tf.metrics
    return {
        "mean_absolute_error": metrics.mean_absolute_error(targets, found, weights=PART[:count]),
        "mean_squared_error": metrics.mean_squared_error(targets, found),
        "root_mean_squared_error": metrics.root_mean_squared_error(targets, found),
        "mean_relative_error": metrics.mean_relative_error(targets, found, tf.abs(targets)),
        "mean_cosine_distance": metrics.mean_cosine_distance(
            tf.nn.l2_normalize(targets, 1), tf.nn.l2_normalize(found, 1), 1
        ),
        "percentage_below": metrics.percentage_below(found, 0.1),
    }


def perceptron(tf, rows=ROWS):
    x = tf.layers.dense(rows, 8, activation=tf.nn.relu)
    x = tf.layers.batch_normalization(x, training=True)
    x = tf.layers.dense(x, 5, activation=tf.tanh, kernel_regularizer=tf.keras.regularizers.l2(0.01), name="hidden")
    x = tf.layers.dense(x, 3, kernel_initializer=tf.truncated_normal_initializer(stddev=0.3), use_bias=False)
    _, metrics = _classified(tf, x)
    return tf.losses.get_total_loss(), tf.train.AdamOptimizer(0.05), metrics


def exact_perceptron(tf):
    """Adam divides by the size of a gradient, so its steps magnify the rounding of one near zero: not so in float64."""
    return perceptron(tf, ROWS.astype(np.float64))


def images(tf):
    x = tf.layers.conv2d(IMAGES, 4, 3, padding="same", activation=tf.nn.relu)
    x = tf.layers.batch_normalization(x, training=True, momentum=0.9, fused=True)
    x = tf.layers.max_pooling2d(x, 2, 2)
    x = tf.layers.separable_conv2d(x, 5, 3, depth_multiplier=2, activation=tf.nn.relu)
    x = tf.layers.conv2d_transpose(x, 4, 3, strides=2, padding="same")
    x = tf.layers.average_pooling2d(x, 2, 1, "same")
    loss, metrics = _classified(tf, tf.layers.dense(tf.layers.flatten(x), 3))
    return loss, tf.train.MomentumOptimizer(0.02, 0.9), metrics


def unfused_images(tf):
    x = tf.layers.conv2d(IMAGES, 4, 3, strides=2, padding="same", use_bias=False)
    x = tf.nn.relu(tf.layers.batch_normalization(x, training=True, momentum=0.9, fused=False))
    x = tf.layers.conv2d(x, 4, 2, activation=tf.nn.leaky_relu)
    x = tf.layers.batch_normalization(x, training=True, renorm=True, renorm_clipping={"rmax": 2.0, "dmax": 1.0})
    logits = tf.layers.dense(tf.layers.flatten(x), 3)
    loss = tf.losses.sigmoid_cross_entropy(FLAGS[:8], logits, label_smoothing=0.1)
    return loss, tf.train.GradientDescentOptimizer(0.1), _judged(tf, logits)


def normalized_images(tf):
    x = tf.nn.lrn(IMAGES, depth_radius=1, bias=1.5, alpha=0.4, beta=0.6)
    filters = tf.get_variable("filters", [3, 3, 3, 2], initializer=tf.glorot_normal_initializer())
    x = tf.nn.depthwise_conv2d(x, filters, [1, 2, 2, 1], "SAME")
    x = tf.nn.lrn(tf.nn.elu(x), alpha=0.5)
    x = tf.nn.l2_normalize(x, [1, 2])
    x = tf.layers.dense(tf.layers.flatten(x), 3, activation=tf.sigmoid)
    loss = tf.losses.log_loss(FLAGS[:8], x, weights=PART[:8])
    return loss, tf.train.GradientDescentOptimizer(0.5), _measured(tf, x)


def atrous_images(tf):
    first = tf.get_variable("first", [3, 3, 3, 4], initializer=tf.variance_scaling_initializer())
    second = tf.get_variable("second", [2, 2, 4, 3], initializer=tf.orthogonal_initializer())
    x = tf.nn.selu(tf.nn.atrous_conv2d(IMAGES, first, 2, "SAME"))
    x = tf.nn.softplus(tf.nn.convolution(x, second, "VALID", dilation_rate=[3, 2]))
    x = tf.layers.conv2d(x, 3, 2, dilation_rate=2, activation=tf.nn.softsign)
    found = tf.reduce_mean(x, [1, 2])
    loss = tf.losses.absolute_difference(TARGETS[:8], found)
    return loss, tf.train.GradientDescentOptimizer(0.05), _measured(tf, found)


def transposed_images(tf):
    x = tf.layers.conv2d(IMAGES, 3, 3, 2, padding="same", activation=tf.nn.relu6)
    filters = tf.get_variable("filters", [4, 4, 2, 3], initializer=tf.initializers.he_normal())
    x = tf.nn.conv2d_transpose(x, filters, [8, 8, 8, 2], [1, 2, 2, 1], "SAME")
    x = tf.layers.max_pooling2d(tf.tanh(x), 3, 2, "same")
    found = tf.layers.dense(tf.layers.flatten(x), 3, kernel_initializer=tf.initializers.lecun_uniform(seed=4))
    loss = tf.losses.mean_pairwise_squared_error(TARGETS[:8], found)
    return loss, tf.train.RMSPropOptimizer(0.01), _measured(tf, found)


def sequences(tf):
    x = tf.layers.conv1d(SEQUENCES, 6, 3, activation=tf.nn.elu)
    x = tf.layers.separable_conv1d(x, 5, 2)
    x = tf.layers.max_pooling1d(x, 2, 1)
    x = tf.layers.conv1d(x, 4, 2, dilation_rate=2)
    x = tf.layers.average_pooling1d(x, 2, 2)
    loss, metrics = _classified(tf, tf.layers.dense(tf.layers.flatten(x), 3))
    return loss, tf.train.GradientDescentOptimizer(0.1), metrics


def volumes(tf):
    x = tf.layers.conv3d(VOLUMES, 3, 2, activation=tf.nn.relu)
    x = tf.layers.max_pooling3d(x, 2, 1)
    x = tf.layers.conv3d_transpose(x, 2, 2)
    x = tf.layers.average_pooling3d(x, 2, 2)
    logits = tf.layers.dense(tf.layers.flatten(x), 3)
    loss = tf.losses.hinge_loss(FLAGS[:3], logits)
    return loss, tf.train.GradientDescentOptimizer(0.02), _judged(tf, logits)


def deep_rows(tf):
    x = tf.layers.dense(SEQUENCES, 5, activation=tf.nn.sigmoid)
    x = tf.layers.batch_normalization(x, axis=1, training=True)
    with tf.variable_scope("shared"):
        x = tf.layers.dense(x, 5, name="again")
    with tf.variable_scope("shared", reuse=True):
        x = tf.layers.dense(x, 5, name="again")
    loss, metrics = _classified(tf, tf.layers.dense(tf.layers.flatten(x), 3))
    return loss, tf.train.AdagradOptimizer(0.1), metrics


def dropped(tf):
    x = tf.layers.dropout(ROWS, 0.3, training=True, seed=5)
    x = tf.layers.dense(x, 8, activation=tf.nn.relu)
    x = tf.nn.dropout(x, keep_prob=0.6, noise_shape=[16, 1])
    loss, metrics = _classified(tf, tf.layers.dense(tf.layers.dropout(x, 0.5, training=True), 3))
    return loss, tf.train.GradientDescentOptimizer(0.5), metrics


def embedded(tf):
    table = tf.get_variable("table", [10, 4], use_resource=True)
    x = tf.reshape(tf.nn.embedding_lookup(table, np.arange(32).reshape(16, 2) % 7), [16, 8])
    loss = tf.losses.softmax_cross_entropy(
        np.eye(3)[CLASSES], tf.layers.dense(x, 3), weights=PART[:, 0], label_smoothing=0.1
    )
    _, metrics = _classified(tf, tf.layers.dense(x, 3, name="other"))
    return loss, tf.train.AdamOptimizer(0.1), metrics


def sampled(tf):
    x = tf.layers.dense(ROWS, 4, activation=tf.tanh)
    weights = tf.get_variable("weights", [20, 4])
    biases = tf.get_variable("biases", [20], initializer=tf.random_uniform_initializer(-0.5, 0.5))
    labels = tf.constant(np.arange(16).reshape(16, 1) % 20)
    nce = tf.nn.nce_loss(weights, biases, labels, x, 5, 20)
    softmax = tf.nn.sampled_softmax_loss(weights, biases, labels, x, 6, 20, seed=3)
    loss = tf.reduce_mean(nce) + tf.reduce_mean(softmax)
    return loss, tf.train.GradientDescentOptimizer(0.1), {}


def transcribed(tf):
    cell = tf.nn.rnn_cell.BasicRNNCell(5)
    outputs, _ = tf.nn.dynamic_rnn(cell, tf.constant(SEQUENCES), dtype=tf.float32)
    logits = tf.transpose(tf.layers.dense(outputs, 4), [1, 0, 2])
    labels = tf.SparseTensor([[i, j] for i in range(8) for j in range(2)], CLASSES.astype(np.int32), [8, 2])
    loss = tf.reduce_mean(tf.nn.ctc_loss(labels, logits, np.full(8, 9, np.int32)))
    return loss, tf.train.MomentumOptimizer(0.05, 0.9, use_nesterov=True), {}


def basic_rnn(tf):
    cell = tf.nn.rnn_cell.BasicRNNCell(5)
    outputs, state = tf.nn.dynamic_rnn(cell, tf.constant(SEQUENCES), sequence_length=LENGTHS, dtype=tf.float32)
    found = tf.layers.dense(tf.reduce_sum(outputs, 1) + state, 3)
    loss = tf.losses.mean_squared_error(TARGETS[:8], found)
    return loss, tf.train.GradientDescentOptimizer(0.05), _measured(tf, found)


def gru(tf):
    cell = tf.nn.rnn_cell.GRUCell(5, activation=tf.nn.relu)
    outputs, state = tf.nn.dynamic_rnn(cell, tf.constant(SEQUENCES), sequence_length=LENGTHS, dtype=tf.float32)
    found = tf.layers.dense(tf.reduce_max(outputs, 1) + state, 3)
    loss = tf.losses.huber_loss(TARGETS[:8], found, delta=0.7)
    return loss, tf.train.AdadeltaOptimizer(1.0), _measured(tf, found)


def dynamic_lstm(tf):
    cell = tf.nn.rnn_cell.BasicLSTMCell(5)
    outputs, state = tf.nn.dynamic_rnn(cell, tf.constant(SEQUENCES), sequence_length=LENGTHS, dtype=tf.float32)
    loss, metrics = _classified(tf, tf.layers.dense(tf.reduce_sum(outputs, 1) + state.h, 3))
    return loss, tf.train.AdamOptimizer(0.05), metrics


def dynamic_stack(tf):
    cells = tf.nn.rnn_cell
    stack = cells.MultiRNNCell(
        [
            cells.GRUCell(4),
            cells.ResidualWrapper(cells.BasicRNNCell(4)),
            cells.LSTMCell(5, use_peepholes=True, num_proj=3, cell_clip=0.8, proj_clip=0.5),
        ]
    )
    outputs, state = tf.nn.dynamic_rnn(
        stack, tf.constant(SEQUENCES.transpose(1, 0, 2)), dtype=tf.float32, time_major=True
    )
    # Away from zero, where a direction is ill-conditioned.
    found = tf.layers.dense(outputs[-1] + state[2].h, 3) + ROWS[:8, :3]
    targets = tf.nn.l2_normalize(tf.constant(TARGETS[:8]), 1)
    loss = tf.losses.cosine_distance(targets, tf.nn.l2_normalize(found, 1), axis=1)
    return loss, tf.train.GradientDescentOptimizer(0.1), _measured(tf, found)


def exact_stack(tf):
    """The same cells under Adam. In float32 one last bit of the input moves TensorFlow's own losses by 1e-3 in 20 steps."""
    cells = tf.nn.rnn_cell
    stack = cells.MultiRNNCell(
        [
            cells.GRUCell(4),
            cells.ResidualWrapper(cells.BasicRNNCell(4)),
            cells.LSTMCell(5, use_peepholes=True, num_proj=3, cell_clip=0.8, proj_clip=0.5),
        ]
    )
    steps = tf.constant(SEQUENCES.transpose(1, 0, 2).astype(np.float64))
    outputs, state = tf.nn.dynamic_rnn(stack, steps, dtype=tf.float64, time_major=True)
    found = tf.layers.dense(outputs[-1] + state[2].h, 3)
    targets = tf.nn.l2_normalize(tf.constant(TARGETS[:8].astype(np.float64)), 1)
    loss = tf.losses.cosine_distance(targets, tf.nn.l2_normalize(found, 1), axis=1)
    return loss, tf.train.AdamOptimizer(0.05), _measured(tf, tf.cast(found, tf.float32))


def wrapped(tf):
    cells = tf.nn.rnn_cell
    stack = cells.MultiRNNCell(
        [
            cells.DeviceWrapper(cells.GRUCell(4), "/cpu:0"),
            cells.ResidualWrapper(cells.DeviceWrapper(cells.BasicLSTMCell(4, forget_bias=0.5), "/cpu:0")),
            cells.LSTMCell(
                3, initializer=tf.random_uniform_initializer(-0.4, 0.4), forget_bias=1.5, activation=tf.sigmoid
            ),
        ]
    )
    outputs, state = tf.nn.dynamic_rnn(stack, tf.constant(SEQUENCES), sequence_length=LENGTHS, dtype=tf.float32)
    loss, metrics = _classified(tf, tf.layers.dense(tf.reduce_sum(outputs, 1) + state[2].c, 3))
    return loss, tf.train.RMSPropOptimizer(0.005, momentum=0.5, centered=True, epsilon=0.01), metrics


def normalized_rows(tf):
    """Normalization over features (as layer normalization), over the batch with weights, and to unit length."""
    x = tf.layers.dense(ROWS, 7)
    mean, variance = tf.nn.moments(x, [1], keep_dims=True)
    scale, offset = tf.get_variable("scale", [7]), tf.get_variable("offset", [7], initializer=tf.zeros_initializer())
    x = tf.nn.relu(tf.nn.batch_normalization(x, mean, variance, offset, scale, 1e-3))
    mean, variance = tf.nn.weighted_moments(x, [0], PART)
    x = tf.nn.l2_normalize(tf.nn.batch_normalization(x, mean, variance, None, scale, 1e-2), 1, epsilon=1e-6)
    logits = tf.layers.dense(x, 3)
    likely = tf.nn.softmax(tf.constant(TARGETS))
    loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(labels=likely, logits=logits))
    return loss + 1e-2 * tf.nn.l2_loss(scale), tf.train.GradientDescentOptimizer(0.3), _classified(tf, logits)[1]


def crossed(tf):
    """The cross entropies of tf.nn, side by side."""
    x = tf.layers.dense(ROWS, 6, activation=tf.nn.swish)
    logits = tf.layers.dense(x, 3)
    losses = [
        tf.nn.sigmoid_cross_entropy_with_logits(labels=FLAGS, logits=logits),
        tf.nn.weighted_cross_entropy_with_logits(labels=FLAGS, logits=logits, pos_weight=2.5),
        tf.nn.log_poisson_loss(np.abs(TARGETS), logits, compute_full_loss=True),
        tf.nn.softmax_cross_entropy_with_logits(labels=np.eye(3, dtype=np.float32)[CLASSES], logits=logits),
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=CLASSES, logits=logits),
    ]
    loss = tf.add_n([tf.reduce_mean(each) for each in losses])
    return loss, tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.001), _judged(tf, logits)


def separable_images(tf):
    depthwise = tf.get_variable("depthwise", [3, 3, 3, 2])
    pointwise = tf.get_variable("pointwise", [1, 1, 6, 4])
    thin = tf.get_variable("thin", [2, 3, 4, 1])
    x = tf.nn.separable_conv2d(IMAGES, depthwise, pointwise, [1, 1, 1, 1], "SAME", rate=[2, 2])
    x = tf.nn.depthwise_conv2d(tf.nn.relu(x), thin, [1, 1, 1, 1], "VALID", rate=[1, 2])
    x = tf.nn.max_pool_with_argmax(x, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")[0]
    x = tf.nn.dilation2d(x, tf.get_variable("raised", [2, 2, 4]), [1, 1, 1, 1], [1, 1, 1, 1], "SAME")
    logits = tf.layers.dense(tf.layers.flatten(x), 3)
    loss = tf.losses.sigmoid_cross_entropy(FLAGS[:8], logits, weights=PART[:8], reduction=tf.losses.Reduction.MEAN)
    return loss, tf.train.GradientDescentOptimizer(0.1), _judged(tf, logits)


def transposed_sequences(tf):
    filters = tf.get_variable("filters", [3, 5, 4])
    x = tf.nn.conv1d_transpose(SEQUENCES, filters, [8, 18, 5], 2)
    x = tf.nn.conv1d(tf.nn.crelu(x), tf.get_variable("second", [4, 10, 3]), 3, "SAME")
    x = tf.reduce_mean(x, 1)
    loss = tf.losses.mean_squared_error(TARGETS[:8], x, reduction=tf.losses.Reduction.SUM_OVER_BATCH_SIZE)
    return loss, tf.train.ProximalAdagradOptimizer(0.1), _measured(tf, x)


def dropped_sequences(tf):
    cells = tf.nn.rnn_cell
    stack = cells.MultiRNNCell(
        [
            cells.DropoutWrapper(cells.GRUCell(4), input_keep_prob=0.8, output_keep_prob=0.7, seed=3),
            cells.DropoutWrapper(cells.LSTMCell(4), state_keep_prob=0.9),
            cells.DropoutWrapper(
                cells.BasicRNNCell(4), 0.8, 0.7, 0.9, variational_recurrent=True, input_size=4, dtype=tf.float32, seed=6
            ),
        ]
    )
    # One iteration at a time: among parallel ones TensorFlow draws the masks in any order.
    outputs, state = tf.nn.dynamic_rnn(
        stack, tf.constant(SEQUENCES), sequence_length=LENGTHS, dtype=tf.float32, parallel_iterations=1
    )
    loss, metrics = _classified(tf, tf.layers.dense(outputs[:, 2] + state[1].h, 3))
    return loss, tf.train.GradientDescentOptimizer(0.2), metrics


def both_ways(tf):
    cells = tf.nn.rnn_cell
    outputs, states = tf.nn.bidirectional_dynamic_rnn(
        cells.GRUCell(3), cells.LSTMCell(4), tf.constant(SEQUENCES), sequence_length=LENGTHS, dtype=tf.float32
    )
    features = tf.concat([tf.reduce_max(tf.concat(outputs, 2), 1), states[0], states[1].c], 1)
    loss, metrics = _classified(tf, tf.layers.dense(features, 3))
    return loss, tf.train.GradientDescentOptimizer(0.2), metrics


def unrolled(tf):
    cells = tf.nn.rnn_cell
    steps = tf.unstack(SEQUENCES, axis=1)
    flat = cells.DropoutWrapper(cells.LSTMCell(4, state_is_tuple=False), 0.8, 0.7, 0.9, seed=3)
    outputs, state = tf.nn.static_rnn(flat, steps, dtype=tf.float32, sequence_length=LENGTHS)
    joined, _, _ = tf.nn.static_bidirectional_rnn(
        cells.BasicRNNCell(2), cells.GRUCell(3), outputs, dtype=tf.float32, sequence_length=LENGTHS
    )
    loss, metrics = _classified(tf, tf.layers.dense(tf.concat([joined[2], state], 1), 3))
    return loss, tf.train.GradientDescentOptimizer(0.2), metrics


def raw_loop(tf):
    cell = tf.nn.rnn_cell.GRUCell(4)
    steps = tf.constant(SEQUENCES.transpose(1, 0, 2))

    def following(time, output, state, loop_state):
        state = cell.zero_state(8, tf.float32) if state is None else state
        finished = time >= LENGTHS
        inputs = tf.cond(tf.reduce_all(finished), lambda: tf.zeros([8, 4]), lambda: steps[tf.minimum(time, 8)] * 0.9)
        return finished, inputs, state, output, None

    outputs, state, _ = tf.nn.raw_rnn(cell, following)
    loss, metrics = _classified(tf, tf.layers.dense(tf.reduce_sum(outputs.stack(), 0) + state, 3))
    return loss, tf.train.GradientDescentOptimizer(0.2), metrics


NETWORKS = {
    each.__name__: each
    for each in (
        perceptron,
        exact_perceptron,
        images,
        unfused_images,
        normalized_images,
        atrous_images,
        transposed_images,
        sequences,
        volumes,
        deep_rows,
        dropped,
        embedded,
        sampled,
        transcribed,
        basic_rnn,
        gru,
        dynamic_lstm,
        dynamic_stack,
        exact_stack,
        wrapped,
        normalized_rows,
        crossed,
        separable_images,
        transposed_sequences,
        dropped_sequences,
        both_ways,
        unrolled,
        raw_loop,
    )
}


def train(tf, build):
    """{name: array}: names and initial values of variables, then twenty steps' losses, gradients and metrics.

    Gradients of the first and the last step are kept whole; of every step, their lengths along two fixed directions.
    """
    with tf.Graph().as_default():
        tf.set_random_seed(21)
        loss, optimizer, metrics = build(tf)
        pairs = [(tf.convert_to_tensor(g), v) for g, v in optimizer.compute_gradients(loss) if g is not None]
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            step = optimizer.apply_gradients(pairs)
        variables = tf.global_variables()
        with tf.Session() as session:
            session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
            found = {"names": np.array([variable.name for variable in variables])}
            for variable, value in zip(variables, session.run(variables)):
                found[f"initial|{variable.name}"] = np.array(value)
            updates = {name: update for name, (_, update) in metrics.items()}
            fetches = [loss, [g for g, _ in pairs], updates, step]
            steps = [session.run(fetches)[:3] for _ in range(STEPS)]
            for name, value in session.run({name: value for name, (value, _) in metrics.items()}).items():
                found[f"metric|{name}|value"] = np.array(value)
            for variable, value in zip(variables, session.run(variables)):
                found[f"final|{variable.name}"] = np.array(value)
    found["losses"] = np.array([each[0] for each in steps])
    for name in updates:
        found[f"metric|{name}"] = np.array([each[2][name] for each in steps])
    for i, (_, variable) in enumerate(pairs):
        gradients = np.array([each[1][i] for each in steps])
        directions = np.random.RandomState(i).randn(2, gradients[0].size)
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        found[f"gradient|{variable.name}|first"], found[f"gradient|{variable.name}|last"] = gradients[0], gradients[-1]
        found[f"gradient|{variable.name}|along"] = gradients.reshape(STEPS, -1) @ directions.T
    return found
