"""Updates by small values run as one call, with the values and errors of single updates."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stoker.compat.v1 as tf

KINDS = {"add": tf.assign_add, "sub": tf.assign_sub, "set": tf.assign}


@given(
    st.lists(
        st.tuples(st.sampled_from(sorted(KINDS)), st.integers(0, 3), st.integers(0, 3)),
        min_size=1,
        max_size=12,
    ),
    st.booleans(),
)
@settings(deadline=None, max_examples=60)
def test_updates_have_the_values_of_a_program_in_order(program, use_resource):
    """Each update adds to, subtracts from or sets a variable by the value of another. Those that must wait for the one before see its result."""
    start = np.arange(12.0, dtype=np.float32).reshape(4, 3)
    expected, seen = start.copy(), []
    with tf.Graph().as_default(), tf.Session() as session:
        variables = [tf.Variable(row, use_resource=use_resource) for row in start]
        session.run(tf.global_variables_initializer())
        last = tf.no_op()
        for kind, target, source in program:
            with tf.control_dependencies([last]):
                value = tf.identity(variables[source]) * 0.5 + 1.0
                with tf.control_dependencies([value]):
                    last = tf.convert_to_tensor(KINDS[kind](variables[target], value)).op
                with tf.control_dependencies([last]):
                    seen.append(tf.identity(variables[target]))
                    last = seen[-1].op
        found = session.run(seen)
        after = session.run(variables)
    for (kind, target, source), each in zip(program, found):
        value = expected[source] * np.float32(0.5) + np.float32(1.0)
        base = expected[target] if kind != "set" else 0
        expected[target] = base - value if kind == "sub" else base + value
        np.testing.assert_array_equal(each, expected[target])
    np.testing.assert_array_equal(after, expected)


@pytest.mark.parametrize("use_resource", [False, True])
def test_independent_updates_are_one_call(use_resource):
    """The moving averages of many variables are updated by one line of the plan."""
    with tf.Graph().as_default(), tf.Session() as session:
        variables = [tf.Variable(np.full([2 + i], float(i), np.float32), use_resource=use_resource) for i in range(5)]
        averages = tf.train.ExponentialMovingAverage(0.75)
        update = averages.apply(variables)
        session.run(tf.global_variables_initializer())
        session.run([tf.assign(variable, variable + 4.0) for variable in variables])
        session.run(update)
        found = session.run([averages.average(variable) for variable in variables])
        plan = session.explain(update)
    for i, each in enumerate(found):
        np.testing.assert_array_equal(each, np.full([2 + i], i + 1.0))
    assert sum("AssignSub" in line and "_batch(" in line for line in plan.splitlines()) == 1


@pytest.mark.parametrize("use_resource", [False, True])
def test_an_uninitialized_variable_among_others_is_named(use_resource):
    """An update of several names the variable without a value, and changes none of the others."""
    with tf.Graph().as_default(), tf.Session() as session:
        first = tf.Variable([1.0], use_resource=use_resource, name="first")
        second = tf.Variable([1.0], use_resource=use_resource, name="second")
        session.run(first.initializer)
        updates = tf.group(tf.assign_add(first, [1.0]), tf.assign_add(second, [1.0]))
        with pytest.raises(tf.errors.FailedPreconditionError, match="second"):
            session.run(updates)
        assert session.run(first).tolist() == [1.0]


def test_two_updates_of_one_variable_both_count():
    """A variable that is updated twice has both updates."""
    with tf.Graph().as_default(), tf.Session() as session:
        total, other = tf.Variable([1.0, 2.0]), tf.Variable([5.0])
        updates = tf.group(
            tf.assign_add(total, [1.0, 1.0]), tf.assign_add(other, [1.0]), tf.assign_add(total, [10.0, 10.0])
        )
        session.run(tf.global_variables_initializer())
        session.run(updates)
        assert session.run(total).tolist() == [12.0, 13.0]
        assert session.run(other).tolist() == [6.0]
