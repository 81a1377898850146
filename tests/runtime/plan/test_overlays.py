"""Results of fused loops that take the place of large inputs: only of those that nobody else sees."""

from __future__ import annotations

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies

import stoker.compat.v1 as tf
from stoker._src.runtime.plan import fused_loops, memory
from stoker._src.runtime.plan.overlays import Overlaid

pytestmark = pytest.mark.skipif(fused_loops.native is None, reason="the C extension is missing")

SHAPE = [96, 640]
# Ops that fused loops do not run make tensors of their own, which later loops may overwrite.
STEPS = {
    "apart": lambda a, b: tf.cumsum(a, 1) * 0.01,
    "scaled": lambda a, b: tf.tanh(a * 2.0 - 1.0),
    "both": lambda a, b: tf.sigmoid(a) * b + a,
    "softmax": lambda a, b: tf.nn.softmax(a) + 0.1 * b,
    "centred": lambda a, b: a - tf.reduce_mean(a, 1, keepdims=True),
    "masked": lambda a, b: tf.where(tf.logical_or(b > 0, tf.is_nan(a)), tf.tanh(a), -b),
    "first_row": lambda a, b: tf.tanh(a) * a[0:1],
    "by_columns": lambda a, b: tf.tanh(a - tf.reduce_sum(b, 0) * 0.01),
    "reversed": lambda a, b: tf.tanh(tf.reverse(a, [0])) + a,
    "reshaped": lambda a, b: tf.reshape(tf.sin(tf.reshape(a, [640, 96])), SHAPE) + b,
    "transposed": lambda a, b: tf.tanh(tf.transpose(tf.reshape(a, [640, 96]))) + a,
}


def _plan_of(session):
    return [each for plan in session._plans.values() for step in plan._steps() for each in step.planner.instructions]


def _outcome(program, fetched):
    """The fetched values among those of a program's steps, over two runs. Each step takes the last value and an earlier one."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, SHAPE)
        v = tf.get_variable("v", initializer=np.random.RandomState(1).randn(*SHAPE).astype("f"))
        made = [tf.cumsum(x, 0), tf.cumsum(v, 0)]
        for name, back in program:
            made.append(STEPS[name](made[-1], made[-1 - back % len(made)]))
        session.run(v.initializer)
        wanted = [made[i % len(made)] for i in fetched] + [made[-1]]
        feed = np.random.RandomState(2).randn(*SHAPE).astype("f")
        found = [each for _ in range(2) for each in session.run(wanted, {x: feed})]
        count = sum(isinstance(each.kernel, Overlaid) for each in _plan_of(session))
        return [*found, session.run(v), feed], count


@hypothesis.settings(max_examples=60, deadline=None)
@hypothesis.given(
    program=strategies.lists(
        strategies.tuples(strategies.sampled_from(sorted(STEPS)), strategies.integers(0, 9)), min_size=1, max_size=7
    ),
    fetched=strategies.lists(strategies.integers(0, 9), max_size=2),
)
def test_nobody_notices(program, fetched):
    """Results, feeds and variables are, bit for bit, those of loops that write to memory of their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "_WORTH_OVERLAYING", 1 << 15)
        found, _ = _outcome(program, fetched)
        patch.setattr(memory, "_WORTH_OVERLAYING", 1 << 60)
        expected, count = _outcome(program, fetched)
        assert count == 0
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_an_input_that_dies_is_overwritten(monkeypatch):
    """tanh(2 x) of a sum that nothing else needs takes its place; if the sum is fetched, too, it stays."""
    monkeypatch.setattr(memory, "_WORTH_OVERLAYING", 1 << 15)
    assert _outcome([("scaled", 0)], [])[1] == 1
    assert _outcome([("scaled", 0)], [1])[1] == 0


def test_scaled_random_numbers_need_one_table():
    """The initial value of a variable is scaled where it was drawn, and has the same numbers as a small one."""
    with tf.Graph().as_default(), tf.Session() as session:
        numbers = tf.random_uniform([1024, 300], -1.0, 1.0, seed=4)
        v = tf.Variable(numbers)
        session.run(v.initializer)
        assert any(isinstance(each.kernel, Overlaid) for each in _plan_of(session))
        found = session.run(v)
    with tf.Graph().as_default(), tf.Session() as session:
        plain = session.run(tf.random_uniform([8, 300], -1.0, 1.0, seed=4))
    np.testing.assert_array_equal(found[:8], plain)
    assert -1.0 <= found.min() < -0.99 and 0.99 < found.max() < 1.0


def test_another_shape_than_the_plan_s(monkeypatch):
    """A value whose static shape was set wrongly by hand goes to the ops' own kernels."""
    monkeypatch.setattr(memory, "_WORTH_OVERLAYING", 1 << 15)
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, SHAPE)
        halves = tf.py_func(lambda value: value[:48], [x], tf.float32, stateful=False)
        halves.set_shape(SHAPE)
        y = tf.tanh(tf.cumsum(halves, 1) * 2.0 - 1.0)
        fed = np.random.RandomState(0).randn(*SHAPE).astype("f")
        found = session.run(y, {x: fed})
    np.testing.assert_allclose(found, np.tanh(np.cumsum(fed[:48], 1) * 2 - 1), rtol=1e-3, atol=1e-4)


def test_a_result_that_repeats_an_input_need_not_have_the_rows_of_its_neighbours():
    """A large tensor without its last dimension of one element has its elements, also beside loops over another number of rows."""
    rng = np.random.RandomState(0)
    given, other = rng.randn(8, 49, 128, 1).astype("f"), rng.randn(9, 128, 256).astype("f")
    with tf.Graph().as_default(), tf.Session() as session:
        x, y = tf.placeholder(tf.float32, given.shape), tf.placeholder(tf.float32, other.shape)
        fetched = [tf.add_n([y * 2.0, y]), tf.reduce_sum(x, -1)]
        for _ in range(3):
            total, same = session.run(fetched, {x: given, y: other})
            np.testing.assert_array_equal(same, given[..., 0])
            np.testing.assert_allclose(total, 3 * other, rtol=1e-6)
