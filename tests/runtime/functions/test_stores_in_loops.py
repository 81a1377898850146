"""Loops that change variables: they run natively, and leave what single iterations leave."""

from __future__ import annotations

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies

import stoker.compat.v1 as tf
from stoker._src.runtime.functions import native_loops
from stoker._src.runtime.plan import fused_loops

pytestmark = pytest.mark.skipif(native_loops.native is None, reason="needs the C extension")

HOWS = ("assign", "assign_add", "assign_sub")
VALUES = {
    "scaled": lambda old, other, h: 0.5 * old,
    "averaged": lambda old, other, h: 0.5 * old + 0.1 * tf.tanh(other) * h,
    "by_first_row": lambda old, other, h: 0.5 * h - old[0:1] * 0.1,
    "by_product": lambda old, other, h: tf.tanh(0.2 * tf.matmul(old, tf.matmul(other, h, transpose_a=True))),
    "reversed": lambda old, other, h: 0.2 * tf.reverse(old, [0]) + h,
    "reshaped": lambda old, other, h: tf.reshape(tf.sin(tf.reshape(old, [-1])), [3, 3]) - h,
}
STEPS = strategies.tuples(
    strategies.sampled_from(HOWS), strategies.sampled_from(sorted(VALUES)), strategies.booleans(), strategies.booleans()
)


@pytest.fixture
def executions(monkeypatch):
    """Records for each execution of a loop whether it ran natively."""
    seen: list[bool] = []
    run = native_loops.NativeLoop.run

    def recorded(self, values, state):
        results = run(self, values, state)
        seen.append(results is not None)
        return results

    monkeypatch.setattr(native_loops.NativeLoop, "run", recorded)
    return seen


def _variables(use_resource):
    return [
        tf.get_variable(name, initializer=np.random.RandomState(i).randn(3, 3).astype("f"), use_resource=use_resource)
        for i, name in enumerate("ab")
    ]


def _outcome(program, use_resource, trips):
    """The results of a loop whose iterations run the updates of `program` in order, over two runs, and the variables after them."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [3, 3])
        pair = _variables(use_resource)

        def body(i, h, total):
            stale = [tf.tanh(tf.identity(each)) for each in pair]
            before = []
            for how, value, swap, is_stale in program:
                with tf.control_dependencies(before):
                    changed, other = reversed(pair) if swap else pair
                    old = stale[swap] if is_stale else tf.identity(changed)
                    made = VALUES[value](old + 0.0, tf.identity(other), h)
                    before = [getattr(changed, how)(made).op]
                    h = tf.tanh(h + made)
            with tf.control_dependencies(before):
                return i + 1, h, total + tf.reduce_sum(tf.identity(pair[0]))

        loop = tf.while_loop(lambda i, h, total: i < trips, body, [0, x, 0.0])
        session.run(tf.global_variables_initializer())
        feed = {x: np.random.RandomState(5).randn(3, 3).astype("f")}
        found = [session.run(loop, feed) for _ in range(2)]
        return [each for run in found for each in run] + session.run(pair)


@hypothesis.settings(max_examples=40, deadline=None)
@hypothesis.given(
    program=strategies.lists(STEPS, min_size=1, max_size=4),
    use_resource=strategies.booleans(),
    trips=strategies.integers(0, 4),
)
def test_variables_and_results_are_those_of_single_ops(program, use_resource, trips):
    """Whatever the updates of a loop read, of which variables and when, results and variables are those of ops that run one by one."""
    found = _outcome(program, use_resource, trips)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fused_loops, "native", None)
        patch.setattr(native_loops, "native", None)
        expected = _outcome(program, use_resource, trips)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3)  # the products magnify roundings


def test_gradient_descent_in_a_function(executions):
    """Steps of gradient descent in a loop of a tf.function run natively, and give those of NumPy."""
    x, y = np.random.RandomState(0).randn(8, 3).astype("f"), np.random.RandomState(1).randn(8, 1).astype("f")
    with tf.Graph().as_default(), tf.Session() as session:
        w = tf.get_variable("w", initializer=np.zeros([3, 1], "f"), use_resource=True)
        b = tf.get_variable("b", initializer=0.0, use_resource=True)

        @tf.function
        def train():
            total = 0.0
            for _ in tf.range(5):
                with tf.GradientTape() as tape:
                    loss = tf.reduce_mean(tf.square(tf.matmul(x, w) + b - y))
                dw, db = tape.gradient(loss, [w, b])
                w.assign_sub(0.1 * dw)
                b.assign_sub(0.1 * db)
                total += loss
            return total

        made = train()
        session.run(tf.global_variables_initializer())
        found = [session.run(made) for _ in range(2)]
        left = session.run([w, b])
    weights, bias, expected = np.zeros([3, 1]), np.zeros([]), np.zeros(2)
    for run in range(2):
        for _ in range(5):
            wrong = x @ weights + bias - y
            expected[run] += np.mean(wrong**2)
            weights, bias = weights - 0.1 * 2 / 8 * x.T @ wrong, bias - 0.1 * 2 * np.mean(wrong)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    np.testing.assert_allclose(left[0], weights, rtol=1e-5)
    np.testing.assert_allclose(left[1], bias, rtol=1e-5)
    assert executions == [True, True]


def test_a_variable_that_is_only_read(executions):
    """The value of a resource variable that the body reads does not keep a loop from running natively."""
    weights, start = np.array([[0.5, 1.0], [0.0, 2.0]], "f"), np.array([[1, 2]], "f")
    expected = start
    with tf.Graph().as_default(), tf.Session() as session:
        w = tf.get_variable("w", initializer=weights, use_resource=True)
        x = tf.placeholder(tf.float32, [1, 2])
        _, h = tf.while_loop(lambda i, h: i < 3, lambda i, h: (i + 1, tf.matmul(h, w) + 1.0), [0, x])
        session.run(w.initializer)
        for _ in range(3):
            expected = expected @ weights + 1
        np.testing.assert_allclose(session.run(h, {x: start}), expected)
    assert executions == [True]


@pytest.mark.parametrize("last", [3, 9])
def test_updates_before_an_index_that_is_refused(last, executions):
    """If an iteration cannot run natively, every iteration has updated the variable once: all up to the one that fails, or all."""
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.get_variable("v", initializer=np.zeros(3, "f"), use_resource=True)
        x = tf.placeholder(tf.float32, [4, 3])
        order = tf.TensorArray(tf.int32, 4, element_shape=[2]).unstack(tf.constant([[0, 1], [1, 1], [2, 0], [last, 0]]))

        def body(i, total):
            chosen = tf.gather(x * 2.0, order.read(i))
            update = v.assign_add(tf.reduce_sum(chosen, 0))
            with tf.control_dependencies([update]):
                return i + 1, total + tf.reduce_sum(tf.tanh(chosen))

        loop = tf.while_loop(lambda i, total: i < 4, body, [0, 0.0])
        session.run(v.initializer)
        rows = np.arange(12, dtype="f").reshape(4, 3)
        chosen = [rows[0] + rows[1], rows[1] * 2, rows[2] + rows[0], rows[3] + rows[0]]
        if last == 3:
            session.run(loop, {x: rows})
            np.testing.assert_allclose(session.run(v), 2 * sum(chosen))
        else:
            with pytest.raises(tf.errors.InvalidArgumentError):
                session.run(loop, {x: rows})
            np.testing.assert_allclose(session.run(v), 2 * sum(chosen[:3]))
    assert executions == [last == 3]
