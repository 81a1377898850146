"""Independent ops of one kind run in one call, and results and errors are those of single calls."""

import numpy as np
import pytest

import stoker.compat.v1 as tf
from stoker._src.runtime.plan import grouping

COUNT = 6
TABLE = np.arange(40, dtype=np.float32).reshape(20, 2)


def lookups(combiner, ids, segments):
    combine = getattr(tf, f"sparse_segment_{combiner}")
    return [
        combine(tf.constant(TABLE) * (i + 1.0), each, places, num_segments=5)
        for i, (each, places) in enumerate(zip(ids, segments))
    ]


@pytest.mark.parametrize("combiner", ["sum", "mean", "sqrt_n"])
def test_segment_reductions_run_together(combiner):
    """The rows of many tables are combined in one call, with the values of single calls."""
    rng = np.random.RandomState(0)
    places = [np.sort(rng.randint(0, 5, 12)) for _ in range(COUNT)]
    numbers = [rng.randint(0, 20, 12) for _ in range(COUNT)]
    with tf.Graph().as_default(), tf.Session() as session:
        ids = [tf.placeholder(tf.int64, [None]) for _ in range(COUNT)]
        segments = [tf.placeholder(tf.int64, [None]) for _ in range(COUNT)]
        found = lookups(combiner, ids, segments)
        feeds = dict(zip([*ids, *segments], [*numbers, *places]))
        together = session.run(found, feeds)
        alone = [session.run(each, feeds) for each in found]
        plan = session.explain(found, feeds)
    assert plan.count("= SparseSegment") == 1 and "_many_" in plan
    for one, other, at, chosen, i in zip(together, alone, places, numbers, range(COUNT)):
        np.testing.assert_array_equal(one, other)
        rows = TABLE[chosen] * (i + 1)
        sums = np.stack([rows[at == row].sum(0) for row in range(5)])
        counts = np.maximum([(at == row).sum() for row in range(5)], 1)[:, None]
        expected = {"sum": sums, "mean": sums / counts, "sqrt_n": sums / np.sqrt(counts)}[combiner]
        np.testing.assert_allclose(one, expected, rtol=1e-5)


def test_an_error_names_the_op_that_failed():
    """If one of the ops that run together fails, the error is its own."""
    with tf.Graph().as_default(), tf.Session() as session:
        ids = [tf.placeholder(tf.int64, [None], name=f"ids_{i}") for i in range(COUNT)]
        found = [
            tf.sparse_segment_sum(tf.constant(TABLE), each, each, num_segments=5, name=f"column_{i}")
            for i, each in enumerate(ids)
        ]
        feeds = {each: [0, 1] for each in ids}
        session.run(found, feeds)
        with pytest.raises(tf.errors.InvalidArgumentError, match="not below 5") as caught:
            session.run(found, {**feeds, ids[3]: [1, 4000]})
    assert caught.value.op.name == "column_3"


def test_a_check_comes_before_what_relies_on_it():
    """Ops that wait for an assertion do not move ahead of it."""
    with tf.Graph().as_default(), tf.Session() as session:
        ids = [tf.placeholder(tf.int64, [None]) for _ in range(COUNT)]
        found = []
        for each in ids:
            with tf.control_dependencies([tf.debugging.assert_less(each, np.int64(5), message="too large")]):
                found.append(tf.sparse_segment_sum(tf.constant(TABLE[:5]), tf.identity(each), each, num_segments=5))
        feeds = {each: [0, 1] for each in ids}
        session.run(found, feeds)
        with pytest.raises(tf.errors.InvalidArgumentError, match="too large"):
            session.run(found, {**feeds, ids[2]: [1, 7]})


def test_values_before_and_after_an_update():
    """Lookups on both sides of an update see the table before and after it."""
    with tf.Graph().as_default(), tf.Session() as session:
        table = tf.Variable(TABLE, use_resource=True)
        ids = [tf.placeholder(tf.int64, [None]) for _ in range(2 * COUNT)]
        before = [tf.sparse_segment_sum(table.read_value(), each, each, num_segments=3) for each in ids[:COUNT]]
        with tf.control_dependencies(before):
            update = table.assign_add(tf.ones_like(TABLE))
        with tf.control_dependencies([update]):
            after = [tf.sparse_segment_sum(table.read_value(), each, each, num_segments=3) for each in ids[COUNT:]]
        session.run(table.initializer)
        first, second = session.run([before, after], {each: [0, 2] for each in ids})
    for one, other in zip(first, second):
        np.testing.assert_array_equal(other - one, [[1, 1], [0, 0], [1, 1]])


def test_buckets_casts_slices_and_shapes_of_many_columns(monkeypatch):
    """The integer steps of bucketized columns run together, each with its own boundaries."""
    monkeypatch.setattr(grouping, "_FEWEST_SMALL", grouping._FEWEST)
    rng = np.random.RandomState(1)
    values = [rng.uniform(-1, 3, [7, 1]).astype(np.float32) for _ in range(COUNT)]
    values[2][3] = np.nan
    edges = [np.sort(rng.uniform(0, 2, 3 + 20 * i)).astype(np.float32) for i in range(COUNT)]
    with tf.Graph().as_default(), tf.Session() as session:
        given = [tf.placeholder(tf.float32, [None, 1]) for _ in range(COUNT)]
        bucketize = [tf.raw_ops.Bucketize(input=x, boundaries=list(map(float, edge))) for x, edge in zip(given, edges)]
        found = [tf.cast(tf.reshape(each, [-1]), tf.int64)[1] for each in bucketize]
        wanted = [found, bucketize]
        feeds = dict(zip(given, values))
        second, buckets = session.run(wanted, feeds)
        assert session.explain(wanted, feeds).count("_many_") >= 3
    for one, column, value, edge in zip(second, buckets, values, edges):
        np.testing.assert_array_equal(column, np.searchsorted(edge, value, side="right"))
        assert one == column[1, 0]


def test_plans_of_many_columns_are_explained_in_proportion():
    """The explanation of a plan with one long line is not padded to the length of that line for every op."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 3])
        parts = [tf.linalg.matrix_transpose(x + float(i))[:1] for i in range(150)]
        total = tf.concat(parts, 0)
        plan = session.explain(total, {x: np.ones([2, 3])})
    assert len(plan) < 3 * len("\n".join(line.rstrip() for line in plan.splitlines())) // 2
    assert len(plan) < 150 * 1000
