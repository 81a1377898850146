"""Ops behind a size that depends on data are compiled for the sizes that turn up, with the values of the ops one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stoker.compat.v1 as tf
from stoker._src.runtime.plan.late_shapes import LateStep


def _softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def _late_steps(session):
    return [
        instruction.kernel
        for plan in session._plans.values()
        for step in plan._steps()
        for instruction in step.planner.instructions
        if isinstance(instruction.kernel, LateStep)
    ]


@pytest.fixture(scope="module")
def masked():
    """A session, a mask and a table to feed, and (loss, gradient) of the rows that the mask selects."""
    with tf.Graph().as_default() as graph:
        mask, x = tf.placeholder(tf.bool, [12]), tf.placeholder(tf.float32, [12, 5])
        rows = tf.boolean_mask(x, mask)
        labels = tf.sigmoid(rows * 0.5)
        loss = tf.reduce_sum(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=rows))
        (gradient,) = tf.gradients(loss, [x])
    session = tf.Session(graph=graph)
    yield session, mask, x, [loss, gradient]
    session.close()


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.booleans(), min_size=12, max_size=12), min_size=1, max_size=4), st.integers(0, 1000))
def test_values_are_right_however_often_a_size_is_seen(masked, masks, seed):
    """The first, second and third run with some number of rows (none, too) agree with NumPy."""
    session, mask, x, fetches = masked
    table = np.random.RandomState(seed).randn(12, 5).astype(np.float32)
    for chosen in [each for each in masks for _ in range(3)]:
        loss, gradient = session.run(fetches, {mask: chosen, x: table})
        rows = table[np.array(chosen)].astype(np.float64)
        label = 1 / (1 + np.exp(-0.5 * rows))
        np.testing.assert_allclose(loss, (_softplus(rows) - rows * label).sum(), rtol=2e-5, atol=1e-5)
        expected = np.zeros((12, 5))
        expected[np.array(chosen)] = 1 / (1 + np.exp(-rows)) - label - rows * 0.5 * label * (1 - label)
        np.testing.assert_allclose(gradient, expected, rtol=2e-4, atol=2e-6)


def test_regions_form_and_are_compiled_for_a_size_that_repeats(masked):
    """The loss of selected rows is one late step, which has a compiled form for a size that was seen twice."""
    session, mask, x, fetches = masked
    feed = {mask: [True] * 7 + [False] * 5, x: np.ones((12, 5), np.float32)}
    for _ in range(3):
        session.run(fetches, feed)
    steps = _late_steps(session)
    assert steps and any(each._functions for each in steps)


def test_a_dequeued_batch_of_any_size_runs_as_a_late_step():
    """A model behind a queue of batches without a static size gives the same values as fed directly."""
    with tf.Graph().as_default(), tf.Session() as session:
        queue = tf.FIFOQueue(10, [tf.float32], shapes=None)
        given = tf.placeholder(tf.float32, [None, 6])
        w = tf.get_variable("w", [6, 3], initializer=tf.random_normal_initializer(seed=1))

        def model(x):
            x = tf.reshape(x, [tf.shape(x)[0], 6])
            h = tf.tanh(tf.matmul(x, w)) * 2.0 + tf.sqrt(tf.abs(tf.matmul(x, w)) + 1.0)
            return tf.reduce_mean(h / tf.cast(tf.shape(x)[0], tf.float32), 0)

        put, taken, direct = queue.enqueue([given]), model(queue.dequeue()), model(given)
        session.run(tf.global_variables_initializer())
        for size in (4, 4, 4, 9, 4, 9, 9, 1):
            x = np.random.RandomState(size).randn(size, 6).astype(np.float32)
            session.run(put, {given: x})
            np.testing.assert_allclose(session.run(taken), session.run(direct, {given: x}), rtol=1e-6)


def test_an_update_between_two_regions_is_seen_by_the_second():
    """A variable that is read before and after an update in one run has both values."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [8])
        v = tf.get_variable("v", [], initializer=tf.ones_initializer())
        kept = tf.boolean_mask(x, x > 0)
        before = tf.reduce_sum(tf.exp(kept * v) * 2.0 + v)
        with tf.control_dependencies([before]):
            update = tf.assign(v, 3.0)
        with tf.control_dependencies([update]):
            again = v.read_value()
            after = tf.reduce_sum(tf.exp(kept * again) * 2.0 + again)
        data = np.array([-1, 1, -1, 0.5, 0.25, -2, 0.125, -1], np.float32)
        rows = data[data > 0]
        for _ in range(4):
            session.run(tf.global_variables_initializer())
            first, second = session.run([before, after], {x: data})
            np.testing.assert_allclose(first, (np.exp(rows) * 2 + 1).sum(), rtol=1e-5)
            np.testing.assert_allclose(second, (np.exp(3 * rows) * 2 + 3).sum(), rtol=1e-5)


def test_a_fed_tensor_in_the_middle_of_a_region_is_used():
    """Feeding a result, or an identity of it, replaces it inside of a region."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [4])
        kept = tf.boolean_mask(x, x > 0)
        half = tf.exp(kept) * 0.5
        same = tf.identity(half)
        y = tf.sqrt(same + 1.0) * 2.0
        z = tf.sqrt(half + 1.0) * 3.0
        for _ in range(3):
            np.testing.assert_allclose(session.run(y, {x: [1, 2, -1, 3], same: [3.0, 3.0]}), [4, 4], rtol=1e-6)
            found = session.run([y, z], {x: [1, 2, -1, 3], same: [3.0, 8.0, 3.0]})
            np.testing.assert_allclose(found[0], [4, 6, 4], rtol=1e-6)
            np.testing.assert_allclose(found[1], 3 * np.sqrt(np.exp([1, 2, 3]) * 0.5 + 1), rtol=1e-5)


def test_an_error_inside_a_region_names_its_node():
    """Shapes that do not fit, found in a region at run time, are reported with the node's name, at every run."""
    with tf.Graph().as_default(), tf.Session() as session:
        x, y = tf.placeholder(tf.float32, [4]), tf.placeholder(tf.float32, [3])
        kept = tf.exp(tf.boolean_mask(x, x > 0)) * 2.0 + 1.0
        total = tf.reduce_sum(tf.sqrt(tf.add(kept, y, name="meet")))
        for _ in range(3):
            with pytest.raises(tf.errors.InvalidArgumentError, match="meet"):
                session.run(total, {x: [1, 1, -1, -1], y: [1, 2, 3]})
            assert session.run(total, {x: [1, 1, 1, -1], y: [1, 2, 3]}) > 0


@pytest.fixture(scope="module")
def divided():
    """A session, what to feed, and the loss of a small network for each part of some rows, with its gradients."""
    with tf.Graph().as_default() as graph:
        x, chosen = tf.placeholder(tf.float32, [12, 3]), tf.placeholder(tf.int32, [12])
        weights = [tf.placeholder(tf.float32, [3, 3]) for _ in range(3)]
        parts = tf.dynamic_partition(x, chosen, 3)
        places = tf.dynamic_partition(tf.range(12), chosen, 3)
        made = [tf.sigmoid(tf.matmul(part, each) * 2.0) for part, each in zip(parts, weights)]
        loss = tf.reduce_sum(tf.square(tf.dynamic_stitch(places, made) - 1.0))
        fetches = [loss, *tf.gradients(loss, weights)]
    session = tf.Session(graph=graph)
    yield session, x, chosen, weights, fetches
    session.close()


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(st.integers(0, 2), min_size=12, max_size=12), min_size=1, max_size=3), st.integers(0, 1000))
def test_parts_of_rows(divided, divisions, seed):
    """Networks for parts of rows of any sizes (none, too) and their gradients agree with NumPy, however often sizes are seen."""
    session, x, chosen, weights, fetches = divided
    random = np.random.RandomState(seed)
    rows = random.randn(12, 3).astype(np.float32)
    given = [random.randn(3, 3).astype(np.float32) for _ in weights]
    for division in [each for each in divisions for _ in range(3)]:
        loss, *gradients = session.run(fetches, {x: rows, chosen: division, **dict(zip(weights, given))})
        total = 0.0
        for i, gradient in enumerate(gradients):
            part = rows[np.array(division) == i].astype(np.float64)
            out = 1 / (1 + np.exp(-2 * part @ given[i]))
            total += np.sum((out - 1) ** 2)
            np.testing.assert_allclose(gradient, part.T @ (4 * (out - 1) * out * (1 - out)), rtol=2e-4, atol=2e-6)
        np.testing.assert_allclose(loss, total, rtol=2e-5)


def test_rows_that_are_divided_alike_meet_in_one_region(divided):
    """The gradient of a part takes rows and places that two ops have divided by the same numbers, and stays one late step for each part."""
    session, x, chosen, weights, fetches = divided
    feed = {x: np.ones((12, 3)), chosen: [0] * 5 + [1] * 4 + [2] * 3, **dict.fromkeys(weights, np.eye(3))}
    for _ in range(3):
        session.run(fetches, feed)
    plan = session.explain(fetches, feed)
    assert "MatMul(" not in plan and "not fused, the shape depends on data" not in plan


def _in_loops(session):
    """The instructions in the bodies of a session's loops, but not those in their late steps."""
    waiting = [step for plan in session._plans.values() for step in plan._steps()]
    found = []
    while waiting:
        for instruction in waiting.pop().planner.instructions:
            if not isinstance(instruction.kernel, LateStep):
                waiting += instruction.steps
                for step in instruction.steps:
                    found += step.planner.instructions
    return found


@pytest.fixture(scope="module")
def cut():
    """A session, how many rows of each of three tables count, the tables, and (losses, gradient) of a loop over the tables."""
    with tf.Graph().as_default() as graph:
        counts, x = tf.placeholder(tf.int32, [3, 2]), tf.placeholder(tf.float32, [3, 6, 4])

        def each(given):
            table, count = given
            first, second = table[: count[0]], table[6 - count[1] :]
            pairs = tf.sigmoid(first[:, None] - second[None])
            return tf.reduce_sum(pairs * tf.tanh(first)[:, None]) + tf.reduce_sum(tf.square(tf.sigmoid(second)))

        losses = tf.map_fn(each, (x, counts), dtype=tf.float32)
        (gradient,) = tf.gradients(losses, [x])
    session = tf.Session(graph=graph)
    yield session, counts, x, [losses, gradient]
    session.close()


def _cut_by_numpy(table, first, second):
    a, b = table[:first, None], table[None, 6 - second :]
    pairs, tanh, own = 1 / (1 + np.exp(b - a)), np.tanh(a), 1 / (1 + np.exp(-b[0]))
    gradient, slope = np.zeros_like(table), pairs * (1 - pairs) * tanh
    gradient[:first] += (slope + pairs * (1 - tanh**2)).sum(1)
    gradient[6 - second :] += 2 * own**2 * (1 - own) - slope.sum(0)
    return (pairs * tanh).sum() + (own**2).sum(), gradient


@settings(max_examples=20, deadline=None)
@given(st.lists(st.lists(st.integers(0, 6), min_size=6, max_size=6), min_size=1, max_size=3), st.integers(0, 1000))
def test_loops_over_parts_of_different_sizes(cut, sizes, seed):
    """A loop whose iterations work on different numbers of rows, and its gradient, agree with NumPy however often sizes are seen."""
    session, counts, x, fetches = cut
    tables = np.random.RandomState(seed).randn(3, 6, 4)
    for chosen in [np.reshape(each, [3, 2]) for each in sizes for _ in range(3)]:
        losses, gradient = session.run(fetches, {counts: chosen, x: tables})
        expected = [_cut_by_numpy(table, *pair) for table, pair in zip(tables, chosen)]
        np.testing.assert_allclose(losses, [loss for loss, _ in expected], rtol=2e-5, atol=1e-5)
        np.testing.assert_allclose(gradient, [slope for _, slope in expected], rtol=2e-4, atol=1e-5)


def test_the_gradient_of_an_iteration_is_one_region(cut):
    """What the iterations of a loop's gradient take from lists has sizes that belong together: the ops on it are one late step."""
    session, counts, x, fetches = cut
    for _ in range(3):
        session.run(fetches, {counts: [[2, 3], [4, 5], [1, 6]], x: np.ones((3, 6, 4))})
    inner = _in_loops(session)
    late = [each.kernel for each in inner if isinstance(each.kernel, LateStep)]
    assert len(late) == 2 and all(len(each._functions) >= 3 for each in late)  # of the body and of its gradient
    types = {each.op.type for each in inner if each.op is not None and not isinstance(each.kernel, LateStep)}
    assert not types & {"BroadcastTo", "BroadcastGradientArgs", "SigmoidGrad", "TanhGrad", "StridedSliceGrad"}


def test_sums_by_equal_ids_meet_in_one_region():
    """Two sums by ids that each computes again, combined with a gradient, leave no op for sizes outside of late steps; sizes may vary."""
    with tf.Graph().as_default(), tf.Session() as session:
        where, x = tf.placeholder(tf.int64, [None, 2]), tf.placeholder(tf.float32, [None, 3])
        first, second = (tf.segment_sum(each, tf.cast(where[:, 0], tf.int32)) for each in (x, tf.square(x)))
        loss = tf.reduce_sum(tf.sigmoid(first) * tf.tanh(second + first))
        (gradient,) = tf.gradients(loss, [x])
        values = np.random.RandomState(0).randn(6, 3).astype("f")
        for ids in ([0, 0, 1, 1, 2, 2], [0, 1, 1, 2, 3, 3]) * 3:
            fed = {where: np.stack([ids, np.zeros(6)], 1), x: values}
            found = session.run([loss, gradient], fed)
            a, b = (
                np.array([each[np.array(ids) == i].sum(0) for i in range(max(ids) + 1)]) for each in (values, values**2)
            )
            s, t = 1 / (1 + np.exp(-a)), np.tanh(a + b)
            np.testing.assert_allclose(found[0], (s * t).sum(), rtol=1e-5)
            da, db = s * (1 - s) * t + s * (1 - t * t), s * (1 - t * t)
            np.testing.assert_allclose(found[1], da[ids] + 2 * values * db[ids], rtol=1e-4, atol=1e-5)
        assert "BroadcastGradientArgs" not in session.explain([loss, gradient], fed)


def test_the_more_shapes_have_a_step_the_more_often_others_must_turn_up():
    """Of twelve sizes that take turns, eight have a step of their own after two rounds, and all after four."""
    with tf.Graph().as_default(), tf.Session() as session:
        mask, x = tf.placeholder(tf.bool, [12]), tf.placeholder(tf.float32, [12, 2])
        loss = tf.reduce_sum(tf.tanh(tf.square(tf.sigmoid(tf.boolean_mask(x, mask)))))
        compiled = []
        for _ in range(5):
            for count in range(1, 13):
                found = session.run(loss, {mask: np.arange(12) < count, x: np.zeros((12, 2))})
                np.testing.assert_allclose(found, 2 * count * np.tanh(0.25), rtol=1e-5)
            compiled.append([len(each._functions) for each in _late_steps(session)])
    assert compiled == [[0], [8], [8], [12], [12]]
