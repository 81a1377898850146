"""Programs that look rows of a table up inside of loops and branches, the same for TensorFlow and for the tests.

Each takes the 1.x module to build with and whether variables are resources, and returns a loss and what to differentiate it by.
The code keeps to Python 3.7, TensorFlow 1.15's newest.
"""

import numpy as np

TABLE = np.arange(1, 16, dtype=np.float32).reshape(5, 3) / 10
WEIGHTS = np.array([[1, 2, 3], [4, 5, 6], [7, 8, 10], [1, -1, 2]], np.float32)
IDS = np.array([[1, 2], [2, 0], [1, 1], [3, 1]], np.int32)


def _table(tf, resource, name="table", value=TABLE):
    return tf.get_variable(name, initializer=value, use_resource=resource)


def _loop(tf, term, start=0.0, times=4):
    """`start` and the terms of all iterations, added up."""
    return tf.while_loop(lambda i, _: i < times, lambda i, total: (i + 1, total + term(i)), [0, start])[1]


def _weighted(tf, table, ids):
    return lambda i: tf.reduce_sum(tf.gather(table, tf.constant(ids)[i]) * tf.constant(WEIGHTS)[i])


def one_row_in_each_iteration(tf, resource):
    table = _table(tf, resource)
    return _loop(tf, _weighted(tf, table, IDS[:, 0])), [table]


def several_rows(tf, resource):
    table = _table(tf, resource)
    return _loop(tf, _weighted(tf, table, np.stack([IDS, IDS[::-1]], 1).astype(np.int64))), [table]


def another_number_of_rows_each_time(tf, resource):
    table = _table(tf, resource)
    return _loop(tf, lambda i: tf.reduce_sum(tf.gather(table, tf.range(i)) * 2.0)), [table]


def two_lookups(tf, resource):
    table = _table(tf, resource)
    first, second = _weighted(tf, table, IDS[:, 0]), _weighted(tf, table, IDS)
    return _loop(tf, lambda i: first(i) + 2.0 * second(i)), [table]


def a_lookup_and_all_rows(tf, resource):
    table = _table(tf, resource)
    first = _weighted(tf, table, IDS[:, 0])
    return _loop(tf, lambda i: first(i) + tf.reduce_sum(table * table)), [table]


def looked_up_outside_too(tf, resource):
    table = _table(tf, resource)
    before = tf.reduce_sum(tf.gather(table, [4, 0]) * 3.0)
    total = _loop(tf, _weighted(tf, table, IDS[:, 0]), before)
    return total + tf.reduce_sum(tf.gather(table, [3]) * 5.0), [table]


def all_rows_outside(tf, resource):
    table = _table(tf, resource)
    return _loop(tf, _weighted(tf, table, IDS[:, 0])) + tf.reduce_sum(table * table), [table]


def loop_in_a_loop(tf, resource):
    table = _table(tf, resource)
    ids = tf.constant(IDS)

    def outer(i):
        inner = _loop(tf, lambda j: tf.reduce_sum(tf.gather(table, ids[i, j])), times=2)
        return inner + tf.reduce_sum(tf.gather(table, ids[i, 1]) * 2.0)

    return _loop(tf, outer), [table]


def two_loops(tf, resource):
    table = _table(tf, resource)
    first = _loop(tf, _weighted(tf, table, IDS[:, 0]))
    return _loop(tf, _weighted(tf, table, IDS[:, 1]), first * 0.5), [table]


def branch_in_a_loop(tf, resource):
    table = _table(tf, resource)
    chosen = _weighted(tf, table, IDS[:, 0])
    return _loop(tf, lambda i: tf.cond(tf.equal(i % 2, 0), lambda: chosen(i), lambda: 0.0)), [table]


def loop_in_a_branch(tf, resource):
    table = _table(tf, resource)
    taken = tf.constant(True)
    return tf.cond(taken, lambda: _loop(tf, _weighted(tf, table, IDS[:, 0])), lambda: 0.0), [table]


def carried_by_the_loop(tf, resource):
    table = _table(tf, resource)
    ids, weights = tf.constant(IDS[:, 0]), tf.constant(WEIGHTS)

    def body(i, total, rows):
        return i + 1, total + tf.reduce_sum(tf.gather(rows, ids[i]) * weights[i]), rows

    return tf.while_loop(lambda i, *_: i < 4, body, [0, 0.0, table])[1], [table]


def table_that_is_computed(tf, resource):
    table = _table(tf, resource)
    rows = table * 2.0
    return _loop(tf, _weighted(tf, rows, IDS[:, 0])), [rows, table]


def mapped(tf, resource):
    table = _table(tf, resource)
    ids = (tf.constant(IDS[:, 0]), tf.constant(IDS))
    one, two = tf.map_fn(lambda x: (tf.gather(table, x[0]), tf.gather(table, x[1])), ids, (tf.float32, tf.float32))
    return tf.reduce_sum(one * one) + tf.reduce_sum(two * two), [table]


def scanned(tf, resource):
    table = _table(tf, resource)
    ids = tf.constant(IDS[:, 0])
    made = tf.scan(lambda before, i: before * 0.5 + tf.gather(table, i), ids, initializer=tf.zeros([3]))
    return tf.reduce_sum(made * made), [table]


def beside_a_matrix(tf, resource):
    table, matrix = _table(tf, resource), _table(tf, resource, "matrix", WEIGHTS[:3])
    ids = tf.constant(IDS)

    def body(i, h):
        return i + 1, tf.tanh(tf.matmul(h, matrix) * 0.1 + tf.nn.embedding_lookup(table, ids[i]))

    h = tf.while_loop(lambda i, _: i < 4, body, [0, tf.zeros([2, 3])])[1]
    return tf.reduce_sum(h * h), [table, matrix]


def sequences(tf, resource):
    table = _table(tf, resource)

    class Cell(tf.nn.rnn_cell.RNNCell):
        state_size = 3
        output_size = 3

        def __call__(self, inputs, state, scope=None):
            made = tf.tanh(state * 0.3 + tf.nn.embedding_lookup(table, inputs[:, 0]))
            return made, made

    ids = np.concatenate([IDS, IDS[::-1]], 1)[:, :, None]
    made, _ = tf.nn.dynamic_rnn(Cell(), tf.constant(ids), sequence_length=[2, 1, 3, 0], dtype=tf.float32)
    return tf.reduce_sum(made * made), [table]


def fed_back(tf, resource):
    table, matrix = _table(tf, resource), _table(tf, resource, "matrix", TABLE.T.copy())
    cell = tf.nn.rnn_cell.BasicRNNCell(3)

    def next_step(time, output, state, _):
        done = time >= tf.constant([3, 2])
        if output is None:
            return done, tf.nn.embedding_lookup(table, [0, 1]), tf.zeros([2, 3]), tf.zeros([5]), None
        logits = tf.matmul(output, matrix)
        return done, tf.nn.embedding_lookup(table, tf.argmax(logits, 1)), state, logits, None

    with tf.variable_scope("rnn", initializer=tf.constant_initializer(0.1), use_resource=resource):
        made = tf.nn.raw_rnn(cell, next_step)[0].stack()
    return tf.reduce_sum(made * made), [table, matrix]


def _branches(tf, resource, taken, then, otherwise):
    table = _table(tf, resource)
    return tf.cond(tf.constant(taken), lambda: then(table), lambda: otherwise(table)), [table]


def branch_that_looks_up(tf, resource):
    return _branches(tf, resource, True, lambda t: tf.reduce_sum(tf.gather(t, [1, 2, 1]) * 2.0), lambda t: 0.0)


def branch_that_does_not(tf, resource):
    return _branches(tf, resource, False, lambda t: tf.reduce_sum(tf.gather(t, [1, 2, 1]) * 2.0), lambda t: 0.0)


def both_branches(tf, resource):
    def other(table):
        return tf.reduce_sum(tf.gather(table, [0, 4]))

    return _branches(tf, resource, False, lambda t: tf.reduce_sum(tf.gather(t, [1, 2, 1]) * 2.0), other)


def all_rows_in_the_other_branch(tf, resource):
    def other(table):
        return tf.reduce_sum(table * table)

    return _branches(tf, resource, False, lambda t: tf.reduce_sum(tf.gather(t, [1, 2, 1]) * 2.0), other)


def one_of_three(tf, resource):
    table = _table(tf, resource)
    branches = [lambda: tf.reduce_sum(tf.gather(table, [1, 2])), lambda: tf.reduce_sum(tf.gather(table, [3]) * 7.0)]
    return tf.switch_case(tf.constant(1), [*branches, lambda: 0.0]), [table]


def unused_output_of_a_loop(tf, resource):
    table, other = _table(tf, resource), _table(tf, resource, "other")

    def body(i, used, unused):
        return i + 1, used * 0.5 + tf.reduce_sum(tf.gather(table, i)), unused + tf.reduce_sum(tf.gather(other, i))

    return tf.while_loop(lambda i, *_: i < 3, body, [0, 0.0, 0.0])[1], [table, other]


def output_that_another_needs(tf, resource):
    table, other = _table(tf, resource), _table(tf, resource, "other")

    def body(i, used, needed):
        return i + 1, used * 0.5 + needed, needed + tf.reduce_sum(tf.gather(other, i)) + tf.reduce_sum(table * table)

    return tf.while_loop(lambda i, *_: i < 3, body, [0, 0.0, 0.0])[1], [table, other]


def unused_output_of_a_branch(tf, resource):
    table, other = _table(tf, resource), _table(tf, resource, "other")

    def branch(scale):
        return lambda: (tf.reduce_sum(tf.gather(table, [1, 2]) * scale), tf.reduce_sum(other * scale))

    return tf.cond(tf.constant(True), branch(1.0), branch(2.0))[0], [table, other]


CASES = {
    case.__name__: case
    for case in (
        one_row_in_each_iteration,
        several_rows,
        another_number_of_rows_each_time,
        two_lookups,
        a_lookup_and_all_rows,
        looked_up_outside_too,
        all_rows_outside,
        loop_in_a_loop,
        two_loops,
        branch_in_a_loop,
        loop_in_a_branch,
        carried_by_the_loop,
        table_that_is_computed,
        mapped,
        scanned,
        beside_a_matrix,
        sequences,
        fed_back,
        branch_that_looks_up,
        branch_that_does_not,
        both_branches,
        all_rows_in_the_other_branch,
        one_of_three,
        unused_output_of_a_loop,
        output_that_another_needs,
        unused_output_of_a_branch,
    )
}

OPTIMIZERS = {
    "sgd": lambda tf: tf.train.GradientDescentOptimizer(0.01),
    "momentum": lambda tf: tf.train.MomentumOptimizer(0.01, 0.9),
    "adagrad": lambda tf: tf.train.AdagradOptimizer(0.05),
    "adam": lambda tf: tf.train.AdamOptimizer(0.01),
}
TRAINED = (two_lookups, branch_in_a_loop, looked_up_outside_too, beside_a_matrix, sequences, fed_back, both_branches)
STEPS = 20


def gradients_of(tf, case, resource):
    """(global norm, for each source None, an array, or [indices, values]) of a case."""
    with tf.Graph().as_default():
        loss, sources = CASES[case](tf, resource)
        found = tf.gradients(loss, sources)
        flat = [[g.indices, g.values] if isinstance(g, tf.IndexedSlices) else g for g in found if g is not None]
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            norm, values = session.run([tf.global_norm(found), flat])
    values = iter(values)
    return norm, [None if g is None else next(values) for g in found]


def trained(tf, case, optimizer, resource):
    """Losses of STEPS steps with clipped gradients, and the table after them."""
    with tf.Graph().as_default():
        tf.set_random_seed(3)
        loss, sources = case(tf, resource)
        made = OPTIMIZERS[optimizer](tf)
        pairs = made.compute_gradients(loss)
        clipped = tf.clip_by_global_norm([g for g, _ in pairs], 1.0)[0]
        step = made.apply_gradients(list(zip(clipped, [v for _, v in pairs])))
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            losses = []
            for _ in range(STEPS):
                losses.append(session.run(loss))
                session.run(step)
            return np.array(losses), session.run(sources[0])
