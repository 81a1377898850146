"""Small networks, trained for twenty steps: variable names, initial values and loss curves, for TensorFlow and stoker."""

import numpy as np

STEPS = 20
_random = np.random.RandomState(9)
ROWS = _random.randn(16, 6).astype(np.float32)
IMAGES = _random.randn(8, 8, 8, 3).astype(np.float32)
SEQUENCES = _random.randn(8, 9, 4).astype(np.float32)
VOLUMES = _random.randn(3, 5, 5, 5, 2).astype(np.float32)
CLASSES = _random.randint(0, 3, 16)


def _classified(tf, logits, count):
    return tf.losses.sparse_softmax_cross_entropy(CLASSES[:count], logits)


def perceptron(tf):
    x = tf.layers.dense(ROWS, 8, activation=tf.nn.relu)
    x = tf.layers.batch_normalization(x, training=True)
    x = tf.layers.dense(x, 5, activation=tf.tanh, kernel_regularizer=tf.keras.regularizers.l2(0.01), name="hidden")
    x = tf.layers.dense(x, 3, kernel_initializer=tf.truncated_normal_initializer(stddev=0.3), use_bias=False)
    _classified(tf, x, 16)
    return tf.losses.get_total_loss(), tf.train.AdamOptimizer(0.05)


def images(tf):
    x = tf.layers.conv2d(IMAGES, 4, 3, padding="same", activation=tf.nn.relu)
    x = tf.layers.batch_normalization(x, training=True, momentum=0.9)
    x = tf.layers.max_pooling2d(x, 2, 2)
    x = tf.layers.separable_conv2d(x, 5, 3, depth_multiplier=2, activation=tf.nn.relu)
    x = tf.layers.conv2d_transpose(x, 4, 3, strides=2, padding="same")
    x = tf.layers.average_pooling2d(x, 2, 1, "same")
    logits = tf.layers.dense(tf.layers.flatten(x), 3)
    return _classified(tf, logits, 8), tf.train.MomentumOptimizer(0.02, 0.9)


def sequences(tf):
    x = tf.layers.conv1d(SEQUENCES, 6, 3, activation=tf.nn.elu)
    x = tf.layers.separable_conv1d(x, 5, 2)
    x = tf.layers.max_pooling1d(x, 2, 1)
    x = tf.layers.conv1d(x, 4, 2, dilation_rate=2)
    x = tf.layers.average_pooling1d(x, 2, 2)
    logits = tf.layers.dense(tf.layers.flatten(x), 3)
    return _classified(tf, logits, 8), tf.train.GradientDescentOptimizer(0.1)


def volumes(tf):
    x = tf.layers.conv3d(VOLUMES, 3, 2, activation=tf.nn.relu)
    x = tf.layers.max_pooling3d(x, 2, 1)
    x = tf.layers.conv3d_transpose(x, 2, 2)
    x = tf.layers.average_pooling3d(x, 2, 2)
    logits = tf.layers.dense(tf.layers.flatten(x), 3)
    return _classified(tf, logits, 3), tf.train.GradientDescentOptimizer(0.1)


def deep_rows(tf):
    x = tf.layers.dense(SEQUENCES, 5, activation=tf.nn.sigmoid)
    x = tf.layers.batch_normalization(x, axis=1, training=True)
    with tf.variable_scope("shared"):
        x = tf.layers.dense(x, 5, name="again")
    with tf.variable_scope("shared", reuse=True):
        x = tf.layers.dense(x, 5, name="again")
    logits = tf.layers.dense(tf.layers.flatten(x), 3)
    return _classified(tf, logits, 8), tf.train.AdagradOptimizer(0.1)


def dropped(tf):
    x = tf.layers.dropout(ROWS, 0.3, training=True, seed=5)
    x = tf.layers.dense(x, 8, activation=tf.nn.relu)
    logits = tf.layers.dense(tf.layers.dropout(x, 0.5), 3)
    return _classified(tf, logits, 16), tf.train.GradientDescentOptimizer(0.1)


def embedded(tf):
    table = tf.get_variable("table", [10, 4], use_resource=True)
    x = tf.gather(table, np.arange(32).reshape(16, 2) % 7)
    logits = tf.layers.dense(tf.reshape(x, [16, 8]), 3)
    return _classified(tf, logits, 16), tf.train.AdamOptimizer(0.1)


LENGTHS = np.array([9, 1, 4, 9, 7, 2, 3, 5], np.int32)


def dynamic_lstm(tf):
    cell = tf.nn.rnn_cell.BasicLSTMCell(5)
    outputs, state = tf.nn.dynamic_rnn(cell, tf.constant(SEQUENCES), sequence_length=LENGTHS, dtype=tf.float32)
    logits = tf.layers.dense(tf.reduce_sum(outputs, 1) + state.h, 3)
    return _classified(tf, logits, 8), tf.train.AdamOptimizer(0.05)


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
    logits = tf.layers.dense(outputs[-1] + state[2].h, 3)
    return _classified(tf, logits, 8), tf.train.GradientDescentOptimizer(0.02)


def both_ways(tf):
    cells = tf.nn.rnn_cell
    outputs, states = tf.nn.bidirectional_dynamic_rnn(
        cells.GRUCell(3), cells.LSTMCell(4), tf.constant(SEQUENCES), sequence_length=LENGTHS, dtype=tf.float32
    )
    features = tf.concat([tf.reduce_max(tf.concat(outputs, 2), 1), states[0], states[1].c], 1)
    return _classified(tf, tf.layers.dense(features, 3), 8), tf.train.GradientDescentOptimizer(0.2)


def unrolled(tf):
    cells = tf.nn.rnn_cell
    steps = tf.unstack(SEQUENCES, axis=1)
    # Dropout in a loop is left out: TensorFlow draws the masks of its iterations in any order.
    flat = cells.DropoutWrapper(cells.LSTMCell(4, state_is_tuple=False), 0.8, 0.7, 0.9, seed=3)
    outputs, state = tf.nn.static_rnn(flat, steps, dtype=tf.float32, sequence_length=LENGTHS)
    joined, _, _ = tf.nn.static_bidirectional_rnn(
        cells.BasicRNNCell(2), cells.GRUCell(3), outputs, dtype=tf.float32, sequence_length=LENGTHS
    )
    logits = tf.layers.dense(tf.concat([joined[2], state], 1), 3)
    return _classified(tf, logits, 8), tf.train.GradientDescentOptimizer(0.2)


def raw_loop(tf):
    cell = tf.nn.rnn_cell.GRUCell(4)
    steps = tf.constant(SEQUENCES.transpose(1, 0, 2))

    def following(time, output, state, loop_state):
        state = cell.zero_state(8, tf.float32) if state is None else state
        finished = time >= LENGTHS
        inputs = steps[tf.minimum(time, 8)]
        return finished, inputs, state, output, None

    outputs, state, _ = tf.nn.raw_rnn(cell, following)
    logits = tf.layers.dense(tf.reduce_sum(outputs.stack(), 0) + state, 3)
    return _classified(tf, logits, 8), tf.train.GradientDescentOptimizer(0.2)


NETWORKS = {
    each.__name__: each
    for each in (
        perceptron,
        images,
        sequences,
        volumes,
        deep_rows,
        dropped,
        embedded,
        dynamic_lstm,
        dynamic_stack,
        both_ways,
        unrolled,
        raw_loop,
    )
}


def train(tf, build):
    """Names and initial values of all variables, the losses of twenty steps, and the values afterwards."""
    with tf.Graph().as_default():
        tf.set_random_seed(21)
        loss, optimizer = build(tf)
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            step = optimizer.minimize(loss)
        variables = tf.global_variables()
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            initial = session.run(variables)
            losses = [session.run([loss, step])[0] for _ in range(STEPS)]
            final = session.run(variables)
    names = [variable.name for variable in variables]
    return names, [np.array(v) for v in initial], np.array(losses), [np.array(v) for v in final]
