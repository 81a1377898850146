"""Small ops: many ops on tensors whose sizes depend on data, as one native call."""

import re
import threading

import numpy as np
import pytest

import stoker.compat.v1 as tf
from stoker._src.runtime.plan import small_ops

needs_native = pytest.mark.skipif(small_ops.native is None, reason="the C extension is missing")


def words(*numbers):
    """Strings whose hashes are in no fused loop."""
    return [str(number) for number in numbers]


def numbers_of(text, dtype=tf.int32):
    """Fed numbers whose count is not known when a plan is compiled: those of the strings that are not empty."""
    return tf.string_to_number(tf.boolean_mask(text, tf.not_equal(text, "")), dtype)


@needs_native
def test_a_plan_says_which_ops_are_small():
    """Ops behind a size that depends on data are one call, and `explain` names them."""
    with tf.Graph().as_default(), tf.Session() as session:
        text = tf.placeholder(tf.string, [None])
        ids, places = tf.unique(numbers_of(text))
        plan = session.explain([ids * 2, places + 1], {text: words(1, 1)})
    assert re.search(r"small ops: \d calls run \d ops: AddV2, .*Mul, .*Unique", plan)


@pytest.mark.parametrize("resource", [False, True])
def test_lookups_of_changing_numbers_of_ids(resource):
    """A partitioned lookup, means by row and the update of the rows in use, for a new number of ids at each step."""
    random = np.random.RandomState(0)
    start = random.randn(20, 3).astype(np.float32)
    with tf.Graph().as_default(), tf.Session() as session:
        table = [
            tf.get_variable(f"part_{i}", initializer=part, use_resource=resource)
            for i, part in enumerate(np.split(start, 4))
        ]
        rows, columns, ids = (
            tf.placeholder(tf.int64, [None]),
            tf.placeholder(tf.int64, [None]),
            tf.placeholder(tf.int64, [None]),
        )
        sparse = tf.SparseTensor(tf.stack([rows, columns], 1), ids, [4, 5])
        found = tf.nn.safe_embedding_lookup_sparse(table, sparse, combiner="mean", partition_strategy="div")
        step = tf.train.GradientDescentOptimizer(0.5).minimize(tf.reduce_sum(found))
        session.run(tf.global_variables_initializer())
        expected = start.copy()
        for count in (7, 3, 12, 3, 1):
            at = np.sort(random.choice(20, count, replace=False))
            chosen = random.randint(0, 20, count)
            by_row = [chosen[at // 5 == row] for row in range(4)]
            wanted = [expected[each].mean(0) if len(each) else np.zeros(3) for each in by_row]
            got = session.run([found, step], {rows: at // 5, columns: at % 5, ids: chosen})[0]
            np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)
            for each in by_row:
                np.subtract.at(expected, each, 0.5 / max(len(each), 1))
        np.testing.assert_allclose(np.concatenate(session.run(table)), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("count", [0, 1, 5, 40000])
def test_sizes_from_none_to_many(count):
    """No elements, one, a few, and more than small ops take."""
    random = np.random.RandomState(count)
    numbers, segments = random.randint(-50, 50, count), np.sort(random.randint(0, 9, count))
    with tf.Graph().as_default(), tf.Session() as session:
        text, ids = tf.placeholder(tf.string, [None]), tf.placeholder(tf.int64, [None])
        x = numbers_of(text, tf.int64)
        wide = tf.tile(tf.expand_dims(x, 1), [1, 4])
        fetched = {
            "where": tf.where(tf.greater(x, 0)),
            "sums": tf.unsorted_segment_sum(wide, ids, 9),
            "quotient": x // 7,
            "rest": tf.floormod(x, 7),
            "root": tf.sqrt(tf.cast(x * x, tf.float64)),
            "chosen": tf.where(tf.less(wide, 3), wide, -wide),
            "parts": tf.dynamic_partition(x, tf.cast(ids, tf.int32), 9),
            "joined": tf.concat([wide[:, 1:3], tf.reverse(wide, [0])], 1),
            "total": tf.reduce_sum(wide, 0),
        }
        found = session.run(fetched, {text: words(*numbers), ids: segments})
    wide = np.repeat(numbers[:, None], 4, 1)
    sums = np.zeros((9, 4), np.int64)
    np.add.at(sums, segments, wide)
    expected = {
        "where": np.argwhere(numbers > 0),
        "sums": sums,
        "quotient": numbers // 7,
        "rest": numbers % 7,
        "root": np.sqrt(numbers.astype(np.float64) ** 2),
        "chosen": np.where(wide < 3, wide, -wide),
        "joined": np.concatenate([wide[:, 1:3], wide[::-1]], 1),
        "total": wide.sum(0),
    }
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)
    for i, part in enumerate(found["parts"]):
        np.testing.assert_array_equal(part, numbers[segments == i])


FUNCTIONS = [
    tf.exp, tf.log1p, tf.tanh, tf.sigmoid, tf.math.rsqrt, tf.math.reciprocal, tf.nn.relu, tf.nn.softmax, tf.nn.l2_loss, tf.nn.leaky_relu,
    lambda x: tf.matmul(x, x, transpose_a=True), lambda x: tf.nn.bias_add(x, [1.0, 2.0, 3.0]), lambda x: tf.split(x, [1, 2], 1)[1],
    lambda x: tf.unstack(x, axis=1)[2], lambda x: tf.pad(x, [[1, 2], [0, 1]]), lambda x: tf.one_hot(tf.cast(x[:, 0], tf.int32), 3),
    lambda x: tf.segment_mean(x, tf.cast(x[:, 0] * 0, tf.int32)), lambda x: tf.segment_max(x, tf.cast(x[:, 0] * 0, tf.int32)),
    lambda x: tf.math.unsorted_segment_max(x, tf.cast(x[:, 0] * 0, tf.int32), 2), lambda x: tf.linalg.transpose(x)[::-2],
    lambda x: tf.reduce_max(x, 0) - tf.reduce_min(x) + tf.reduce_mean(x, 1, keepdims=True),
]  # fmt: skip


@pytest.mark.parametrize("dtype", [tf.float32, tf.float64])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_functions_and_their_gradients(function, dtype):
    """Each function of small tensors, and its gradient, are those that eager kernels compute."""

    def results(x):
        x = tf.reshape(x, [-1, 3])
        made = function(x)
        slope = tf.gradients(made, x)[0] if made.dtype.is_floating else None
        return [made, tf.zeros_like(x) if slope is None else slope]

    with tf.Graph().as_default(), tf.Session() as session:
        text, whole = tf.placeholder(tf.string, [None]), tf.placeholder(dtype, [None])
        small, plain = results(numbers_of(text, dtype)), results(whole)
        for count in (3, 12, 6):
            given = np.linspace(0.5, 2.5, count)
            found, expected = session.run(small, {text: words(*given)}), session.run(plain, {whole: given})
            for one, other in zip(found, expected):
                np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_an_index_out_of_range_is_reported_by_its_op():
    """An error within small ops names the node, and the step after it works."""
    with tf.Graph().as_default(), tf.Session() as session:
        ids = numbers_of(text := tf.placeholder(tf.string, [None]))
        found = tf.gather(tf.constant([[1, 2], [3, 4]]), tf.unique(ids)[0], name="lookup") * 2
        with pytest.raises(tf.errors.InvalidArgumentError, match="lookup"):
            session.run(found, {text: words(1, 5)})
        assert session.run(found, {text: words(1, 1)}).tolist() == [[6, 8]]


def test_a_check_among_small_ops_fails_before_what_relies_on_it():
    """The message is that of the assertion, not of the lookup that would fail."""
    with tf.Graph().as_default(), tf.Session() as session:
        ids = numbers_of(text := tf.placeholder(tf.string, [None]))
        with tf.control_dependencies([tf.assert_less(ids, 2, message="too large")]):
            found = tf.gather([5, 6], tf.identity(ids) + 0) + 1
        with pytest.raises(tf.errors.InvalidArgumentError, match="too large"):
            session.run(found, {text: words(1, 5)})
        assert session.run(found, {text: words(1, 0)}).tolist() == [7, 6]


def test_results_do_not_change_with_the_variable_that_they_were_read_from():
    """A part of a variable that small ops take is what the variable held then."""
    with tf.Graph().as_default(), tf.Session() as session:
        variable = tf.Variable([[1, 2], [3, 4]])
        text = tf.placeholder(tf.string, [None])
        before = tf.reshape(tf.gather(variable, tf.unique(numbers_of(text))[0]), [-1])
        whole = tf.reshape(variable, [-1])
        with tf.control_dependencies([before, whole]):
            step = variable.assign_add([[10, 10], [10, 10]])
        session.run(tf.global_variables_initializer())
        first = session.run([before, whole, step], {text: words(1, 1)})
        session.run(step, {text: words(0)})
    assert [each.tolist() for each in first[:2]] == [[3, 4], [1, 2, 3, 4]]


def test_threads_share_a_plan():
    """Several threads run the same small ops at once, each with its own sizes."""
    with tf.Graph().as_default(), tf.Session() as session:
        text = tf.placeholder(tf.string, [None])
        ids, places, counts = tf.unique_with_counts(numbers_of(text))
        restored = tf.gather(ids, places) - tf.reduce_sum(counts)
        wrong = []

        def run(count):
            given = np.arange(count) % 5
            for _ in range(20):
                if session.run(restored, {text: words(*given)}).tolist() != (given - count).tolist():
                    wrong.append(count)

        threads = [threading.Thread(target=run, args=(count,)) for count in (1, 9, 200, 3000)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong


@needs_native
@pytest.mark.parametrize(
    ("code", "results"),
    [([0, 1, 1], []), ([0, 1, 1, 1, 0, 0, 0, 1, 0, 9, 1], []), ([999, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1], []), ([], [7])],
)
def test_code_that_names_no_value_is_refused(code, results):
    """The native object checks the code that it is given."""
    import torch

    kinds = (torch.float32, torch.float64, torch.int32, torch.int64, torch.bool)
    with pytest.raises(ValueError, match=r"well formed"):
        small_ops.native.Chain(
            inputs=1, values=2, constants=(), kernels=(len,) if code else (), code=np.asarray(code, np.int64).tobytes(),
            results=np.asarray(results, np.int64).tobytes(), wanted=bytes(2), kinds=bytes(2), torch=(torch.Tensor, torch.empty), dtypes=kinds,
        )  # fmt: skip
