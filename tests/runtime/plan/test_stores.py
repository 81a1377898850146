"""Updates of large variables that fused loops make where the variables are."""

from __future__ import annotations

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies

import stoker.compat.v1 as tf
from stoker._src.runtime.plan import fused_loops

pytestmark = pytest.mark.skipif(fused_loops.native is None, reason="the C extension is missing")

SHAPE = [64, 600]
HOWS = ("assign", "assign_add", "assign_sub")
VALUES = {
    "scaled": lambda old, other, x: 0.9 * old,
    "averaged": lambda old, other, x: 0.9 * old + 0.1 * tf.tanh(other),
    "by_rows": lambda old, other, x: x * tf.nn.softmax(old + other),
    "by_first_row": lambda old, other, x: 0.5 * x - old[0:1] * 0.1,
    "by_column_sums": lambda old, other, x: tf.tanh(x) - 0.001 * tf.reduce_sum(old, 0),
    "reversed": lambda old, other, x: 0.5 * tf.reverse(old, [0]) + x,
    "reshaped": lambda old, other, x: tf.reshape(tf.sin(tf.reshape(old, [-1])), SHAPE) + x,
}
steps = strategies.tuples(
    strategies.sampled_from(HOWS), strategies.sampled_from(sorted(VALUES)), strategies.booleans(), strategies.booleans()
)


def _outcome(program, use_resource):
    """Runs the steps of a program one after the other, twice. Returns what is fetched, and the variables."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, SHAPE)
        pair = [
            tf.get_variable(
                name, initializer=np.random.RandomState(i).randn(*SHAPE).astype("f"), use_resource=use_resource
            )
            for i, name in enumerate("ab")
        ]
        stale = [tf.tanh(each) for each in pair]
        fetches, before = [], []
        for how, value, swap, is_stale in program:
            with tf.control_dependencies(before):
                changed, other = reversed(pair) if swap else pair
                old = (stale[swap] if is_stale else tf.identity(changed)) + 0.0
                made = VALUES[value](old, tf.identity(other), x)
                before = [getattr(changed, how)(made).op]
                fetches.append(tf.reduce_sum(made))
        session.run(tf.global_variables_initializer())
        feed = {x: np.random.RandomState(5).randn(*SHAPE).astype("f")}
        found = [session.run([*fetches, before], feed)[:-1] for _ in range(2)]
        return found, session.run(pair), session.explain([*fetches, before], [x])


@hypothesis.settings(max_examples=40)
@hypothesis.given(program=strategies.lists(steps, min_size=1, max_size=5), use_resource=strategies.booleans())
def test_variables_and_results_are_those_of_single_ops(program, use_resource):
    """Whatever updates read, of which variables and when, the values are those of ops that run one by one."""
    fetched, variables, _ = _outcome(program, use_resource)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fused_loops, "native", None)
        expected, plain, _ = _outcome(program, use_resource)
    np.testing.assert_allclose(fetched, expected, rtol=1e-4, atol=1e-2)
    for one, other in zip(variables, plain, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)  # sums of values of about 10 may cancel


@pytest.mark.parametrize("use_resource", [False, True])
@pytest.mark.parametrize("how", HOWS)
def test_an_update_is_one_call(how, use_resource):
    """The loops that compute a value change the variable as well; no instruction for the update is left."""
    x = tf.placeholder(tf.float32, SHAPE)
    v = tf.get_variable("v", SHAPE, initializer=tf.ones_initializer(), use_resource=use_resource)
    update = getattr(v, how)(0.9 * v + 0.1 * x).op
    with tf.Session() as session:
        session.run(v.initializer)
        session.run(update, {x: np.full(SHAPE, 2.0, "f")})
        expected = {"assign": 1.1, "assign_add": 2.1, "assign_sub": -0.1}[how]
        np.testing.assert_allclose(session.run(v), np.full(SHAPE, expected), rtol=1e-5)
        plan = session.explain(update, [x])
        assert "fused_loops" in plan and "Assign" not in plan.split("# fused loops")[0].replace("# Assign", "")


def test_sparse_adam_decays_its_slots_in_place():
    """Each slot of a table is read and written once for its decay, and the table once; the numbers are those of a dense update."""
    rows = 1000
    ids = tf.placeholder(tf.int32, [None])
    tables = [tf.get_variable(name, [rows, 64], initializer=tf.ones_initializer()) for name in ("sparse", "dense")]
    one_hot = tf.matmul(tf.one_hot(ids, rows), tables[1])
    losses = [tf.reduce_sum(tf.square(tf.gather(tables[0], ids))), tf.reduce_sum(tf.square(one_hot))]
    trains = [
        tf.train.AdamOptimizer(0.1, name=table.op.name).minimize(loss, var_list=[table])
        for loss, table in zip(losses, tables, strict=True)
    ]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for step in range(4):
            session.run(trains, {ids: [1, 5 + step, 5, 999, 1]})
        sparse, dense = session.run(tables)
        np.testing.assert_allclose(sparse, dense, rtol=1e-5, atol=1e-6)
        plan = session.explain(trains[0], [ids]).split("# fused loops")[0].splitlines()
        assert not [line for line in plan if line.strip().startswith(("Assign(", "AssignSub("))]


def test_a_variable_without_a_value():
    """An update of a variable that lost its value fails as the op alone does, and names it."""
    x = tf.placeholder(tf.float32, SHAPE)
    v = tf.get_variable("v", SHAPE, initializer=tf.ones_initializer(), use_resource=True)
    update = v.assign_sub(tf.tanh(x) * 0.5).op
    with tf.Session() as session:
        session.run(v.initializer)
        session.run(update, {x: np.zeros(SHAPE, "f")})
        session.run(tf.raw_ops.DestroyResourceOp(resource=v.handle))
        with pytest.raises(tf.errors.FailedPreconditionError, match="uninitialized value v"):
            session.run(update, {x: np.zeros(SHAPE, "f")})
        session.run(v.initializer)
        session.run(update, {x: np.zeros(SHAPE, "f")})
        np.testing.assert_array_equal(session.run(v), np.ones(SHAPE))


def test_an_update_by_one_part_of_a_split_leaves_the_other_in_its_place():
    """The parts of a split may be used once each, one of them before the update that the other is for."""
    x = np.random.RandomState(0).randn(64, 1200).astype("f")
    given = tf.placeholder(tf.float32, x.shape)
    first, second = tf.split(given, 2, 1)
    v = tf.get_variable("v", initializer=np.ones(SHAPE, "f"), use_resource=True)
    sums = tf.cumsum(first)
    with tf.control_dependencies([v.assign_add(second * 2.0)]):
        after = v.read_value()
    with tf.Session() as session:
        session.run(v.initializer)
        found = session.run([sums, after], {given: x})
    np.testing.assert_allclose(found[0], np.cumsum(x[:, :600], 0), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(found[1], 1 + 2 * x[:, 600:], rtol=1e-6, atol=1e-6)
