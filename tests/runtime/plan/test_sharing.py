"""Equal values are computed once, and what nothing uses is not computed."""

import re

import numpy as np
import pytest

import stoker.compat.v1 as tf

WORDS = np.array([b"a", b"b", b"", b"long word"], object)


def test_equal_ops_of_equal_inputs_run_once():
    """Two lookups of the same strings, and the slices of equal bounds, are one line each."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.string, [None])
        one, other = (tf.strings.to_hash_bucket_fast(x, 100)[1:3] for _ in range(2))
        total = one + other
        found = session.run(total, {x: WORDS})
        plan = session.explain(total, {x: WORDS})
        np.testing.assert_array_equal(found, 2 * session.run(one, {x: WORDS}))
    assert plan.count("= StringToHashBucketFast(") == 1
    assert plan.count("= StridedSlice(") == 1


def test_other_attributes_and_bounds_are_other_values():
    """Ops that differ in an attribute or in a constant input both run."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.string, [None])
        fine, coarse = (tf.strings.to_hash_bucket_fast(x, size) for size in (1000, 10))
        fetched = [tf.stack([fine, coarse]), tf.stack([fine[:1], fine[1:2]])]
        both, parts = session.run(fetched, {x: WORDS})
    np.testing.assert_array_equal(both[0] % 10, both[1])
    np.testing.assert_array_equal(parts.ravel(), both[0][:2])


def _inverses_computed(size, between):
    """How often a plan inverts a matrix whose inverse appears twice, with `between` computed from the first one before the second."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [size, size])
        first = tf.linalg.inv(x)
        total = between(first)
        with tf.control_dependencies([total]):
            last = tf.linalg.inv(x)
        total = total + tf.reduce_sum(last)
        fed = {x: 2 * np.eye(size)}
        assert session.run(total, fed) == size
        return session.explain(total, fed).count("= MatrixInverse(")


def test_many_floats_are_computed_again():
    """A program that recomputes an activation to save memory is taken at its word, but a small value is kept."""
    assert _inverses_computed(200, tf.reduce_sum) == 2
    assert _inverses_computed(120, tf.reduce_sum) == 1


def test_floats_in_use_are_shared():
    """Many floats that are computed again while they are still needed are not computed again."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [200, 200])
        total = tf.linalg.inv(x) - tf.linalg.inv(x)
        np.testing.assert_array_equal(session.run(total, {x: np.eye(200)}), np.zeros((200, 200)))
        assert session.explain(total, {x: np.eye(200)}).count("= MatrixInverse(") == 1


def test_floats_that_were_in_use_a_moment_ago_are_shared():
    """The gradient of a table that two ops look at is summed up once."""
    with tf.Graph().as_default(), tf.Session() as session:
        x, at = tf.placeholder(tf.float32, [400, 400]), tf.placeholder(tf.int32, [3])
        summed = [tf.tanh(tf.unsorted_segment_sum(x[:3], at, 400)) for _ in range(2)]
        total = tf.reduce_sum(summed[0] - summed[1])
        feed = {x: np.eye(400), at: [5, 7, 5]}
        assert session.run(total, feed) == 0
        assert session.explain(total, feed).count("= UnsortedSegmentSum(") == 1


def test_floats_of_different_signs_are_other_values():
    """0 and -0 are equal as numbers, but the quotients by them are not."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [2])
        up, down = (x / tf.constant(zero) for zero in (0.0, -0.0))
        assert session.run(up - down, {x: [1.0, 1.0]}).tolist() == [np.inf, np.inf]


def test_random_numbers_are_drawn_each_time():
    """Ops with an effect are never shared."""
    with tf.Graph().as_default(), tf.Session() as session:
        one, other = (tf.random.uniform([20], maxval=10**6, dtype=tf.int32) for _ in range(2))
        a, b = session.run([one * 1, other * 1])
    assert a.tolist() != b.tolist()


def test_fetched_values_are_separate_arrays():
    """A caller may change one of two equal results without changing the other."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.int64, [None])
        a, b = session.run([x + 1, x + 1], {x: np.arange(3)})
        a[:] = 7
        assert b.tolist() == [1, 2, 3]


def test_a_fed_value_is_not_replaced():
    """One of two equal ops may be fed."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.int64, [None])
        one, other = (tf.floormod(x, 3) for _ in range(2))
        found = session.run(one * 10 + other, {x: np.arange(4), other: np.full(4, 9)})
    assert found.tolist() == [9, 19, 29, 9]


def computed(plan, op):
    """How often a plan runs an op, alone or among small ops."""
    alone = len(re.findall(rf" = {op}(_\w+)?\(", plan)) - len(re.findall(rf" = {op}_many", plan))
    among = re.search(rf"small ops: .*?(\d+ |[:,] ){op}(?!\w)", plan)
    return alone + (0 if among is None else int(among[1]) if among[1].strip().isdigit() else 1)


def sparse_step(loss, resource):
    """(plan, variable after two steps) of Adagrad on `loss(variable)`."""
    with tf.Graph().as_default(), tf.Session() as session:
        start = np.arange(12, dtype=np.float32).reshape(6, 2)
        table = tf.get_variable("table", initializer=start, use_resource=resource)
        step = tf.train.AdagradOptimizer(0.5).minimize(loss(table))
        session.run(tf.global_variables_initializer())
        for _ in range(2):
            session.run(step)
        return session.explain(step), session.run(table)


@pytest.mark.parametrize("resource", [False, True])
def test_a_gradient_of_distinct_rows_is_not_searched_for_repeated_ones(resource):
    """A lookup's gradient names every row once, so that an optimizer has nothing to sum."""
    indices, ids = [1, 4, 1, 0], [0, 0, 1, 2]

    def lookup(table):
        return tf.reduce_sum(tf.sparse_segment_sum(table, indices, ids, sparse_gradient=True) ** 2)

    def gathered(table):
        return tf.reduce_sum(tf.segment_sum(tf.gather(table, indices), ids) ** 2)

    plan, found = sparse_step(lookup, resource)
    other_plan, expected = sparse_step(gathered, resource)
    assert computed(plan, "Unique") == computed(plan, "UnsortedSegmentSum") == 0
    assert computed(other_plan, "UnsortedSegmentSum") == 1
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_the_places_of_distinct_elements_may_be_fetched():
    """What a program asks for is computed, also where a plan would not need it."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.int64, [None])
        distinct, _ = tf.unique(x)
        again, places = tf.unique(distinct)
        assert session.run([again, places], {x: [5, 3, 5]})[1].tolist() == [0, 1]
        size = tf.shape(again)[0]
        sums = tf.unsorted_segment_sum(tf.constant([1.5, 2.5]), places, size)
        more = tf.unsorted_segment_sum(tf.constant([1.5, 2.5]), places, size + 1)
        found = session.run([again, sums, more], {x: [5, 3, 5]})
    assert [each.tolist() for each in found] == [[5, 3], [1.5, 2.5], [1.5, 2.5, 0.0]]


OPTIMIZERS = [
    tf.train.GradientDescentOptimizer(0.1),
    tf.train.MomentumOptimizer(0.1, 0.9),
    tf.train.AdagradOptimizer(0.1),
    tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01),
    tf.train.RMSPropOptimizer(0.1),
    tf.train.AdadeltaOptimizer(0.1),
]


@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=lambda each: each.get_name())
def test_sparse_updates_of_one_step_are_one_call(optimizer):
    """Many tables that are updated together end with the values that they have when updated one by one."""
    sizes = [(5, 1), (3, 4), (6, 2)]

    def trained(together):
        with tf.Graph().as_default(), tf.Session() as session:
            random = np.random.RandomState(1)
            tables = [
                tf.get_variable("t%d" % i, initializer=random.rand(*size).astype("f")) for i, size in enumerate(sizes)
            ]
            losses = [
                tf.reduce_sum(tf.sparse_segment_mean(table, [2, 0, 2], [0, 1, 1], sparse_gradient=True) ** 2)
                for table in tables
            ]
            made = type(optimizer)(**settings_of(optimizer))
            if together:
                steps = [made.minimize(tf.add_n(losses), var_list=tables)]
            else:
                steps = [made.minimize(loss, var_list=[table]) for loss, table in zip(losses, tables)]
            session.run(tf.global_variables_initializer())
            for _ in range(3):
                for step in steps:
                    session.run(step)
            return session.run(tables)

    for one, other in zip(trained(True), trained(False), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)  # torch rounds the ends of vectors differently


def settings_of(optimizer):
    """The arguments that make another optimizer like this."""
    settings = {"learning_rate": 0.1}
    if isinstance(optimizer, tf.train.MomentumOptimizer):
        settings["momentum"] = 0.9
    if isinstance(optimizer, tf.train.FtrlOptimizer):
        settings["l1_regularization_strength"] = 0.01
    return settings


def test_two_sparse_updates_of_one_variable_follow_each_other():
    """Updates of the same rows in one run both count."""
    with tf.Graph().as_default(), tf.Session() as session:
        table = tf.get_variable("table", initializer=np.zeros((3, 1), "f"))
        slices = tf.IndexedSlices(tf.ones([2, 1]), tf.constant([0, 2]), tf.constant([3, 1]))
        optimizer = tf.train.MomentumOptimizer(1.0, 0.0)
        steps = [optimizer.apply_gradients([(slices, table)]) for _ in range(2)]
        session.run(tf.global_variables_initializer())
        session.run(steps)
        assert session.run(table).ravel().tolist() == [-2.0, 0.0, -2.0]


@pytest.mark.parametrize("reduce", [tf.reduce_sum, tf.reduce_mean, tf.reduce_prod, tf.reduce_max, tf.reduce_min])
def test_a_reduction_over_no_axes_is_its_input(reduce):
    """The sum over the axes that a gradient finds not to be broadcast is not computed."""
    given = np.arange(12, dtype=np.float32).reshape(3, 4)
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 4])
        same = reduce(x, tf.zeros([0], tf.int32))
        doubled = same * 2.0
        np.testing.assert_array_equal(session.run(doubled, {x: given}), given * 2)
        np.testing.assert_array_equal(session.run(same, {x: given}), given)
        assert "Sum" not in session.explain(doubled, {x: given})
        norm = tf.raw_ops.EuclideanNorm(input=x, axis=tf.zeros([0], tf.int32))
        np.testing.assert_array_equal(session.run(norm, {x: -given}), given)


def test_products_and_sums_of_exchanged_operands_are_equal():
    """The two terms of the gradient of x * x are one product; a difference of exchanged operands is another value."""
    with tf.Graph().as_default(), tf.Session() as session:
        x, y = tf.placeholder(tf.string, [None]), tf.placeholder(tf.string, [None])
        a, b = (tf.strings.to_hash_bucket_fast(each, 100) for each in (x, y))
        total = tf.stack([a * b - b * a, (a + b) - (b + a), (a - b) + (b - a)])
        fed = {x: WORDS, y: WORDS[::-1]}
        np.testing.assert_array_equal(session.run(total, fed), np.zeros((3, 4)))
        plan = session.explain([a * b + b * a, a - b, b - a], fed)
    assert computed(plan, "Mul") == 1
    assert computed(plan, "Sub") == 2
