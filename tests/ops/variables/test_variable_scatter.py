"""Scattering into variables."""

from __future__ import annotations

import numpy as np
import pytest

import stoker.compat.v1 as tf

START = np.arange(12, dtype=np.float32).reshape(4, 3)
INDICES = np.array([3, 1, 3], np.int32)
UPDATES = np.array([[1, 2, 3], [4, 5, 6], [7, 8, 20]], np.float32)

CHANGES = {
    "update": lambda row, update: update,
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "min": np.minimum,
    "max": np.maximum,
}


def _one_by_one(change, updates):
    value = START.copy()
    for index, update in zip(INDICES, updates):
        value[index] = change(value[index], update)
    return value


@pytest.mark.parametrize("resource", [False, True])
@pytest.mark.parametrize("kind", CHANGES)
def test_rows_are_changed_one_after_the_other(kind, resource):
    """A row that is named twice is changed twice; rows that are not named stay."""
    variable = tf.Variable(START, use_resource=resource)
    changed = getattr(tf, f"scatter_{kind}")(variable, INDICES, UPDATES)
    with tf.Session() as session:
        session.run(variable.initializer)
        expected = _one_by_one(CHANGES[kind], UPDATES)
        np.testing.assert_allclose(session.run(changed), expected, rtol=1e-6)
        np.testing.assert_allclose(session.run(variable), expected, rtol=1e-6)


@pytest.mark.parametrize("resource", [False, True])
def test_one_number_for_all_rows(resource):
    """A scalar update applies to every row that is named, and indices may have any shape."""
    variable = tf.Variable(START, use_resource=resource)
    changed = tf.scatter_add(variable, INDICES.reshape(1, 3), 2.0)
    with tf.Session() as session:
        session.run(variable.initializer)
        np.testing.assert_array_equal(session.run(changed), _one_by_one(np.add, [2.0] * 3))


def test_strings_can_be_replaced():
    """Variables of strings take updates too."""
    variable = tf.Variable([b"a", b"b", b"c"])
    with tf.Session() as session:
        session.run(variable.initializer)
        assert session.run(tf.scatter_update(variable, [2, 0], [b"x", b"y"])).tolist() == [b"y", b"b", b"x"]


@pytest.mark.parametrize("resource", [False, True])
@pytest.mark.parametrize(("kind", "expected"), [("update", 9.0), ("add", 14.0), ("sub", -4.0)])
def test_elements_by_coordinates(kind, expected, resource):
    """`scatter_nd_*` change single elements (or slices) at coordinates."""
    variable = tf.Variable(START, use_resource=resource)
    changed = getattr(tf, f"scatter_nd_{kind}")(variable, [[1, 2]], [9.0])
    wanted = START.copy()
    wanted[1, 2] = expected
    with tf.Session() as session:
        session.run(variable.initializer)
        np.testing.assert_array_equal(session.run(changed), wanted)


@pytest.mark.parametrize("resource", [False, True])
@pytest.mark.parametrize("bad", [4, -1])
def test_an_index_out_of_range(bad, resource):
    """An index that names no row is an error that says which, and nothing is changed."""
    variable = tf.Variable(START, use_resource=resource)
    index = tf.placeholder(tf.int32, [2])
    with tf.Session() as session:
        session.run(variable.initializer)
        for function in (tf.scatter_add, tf.scatter_update):
            with pytest.raises(tf.errors.InvalidArgumentError, match=rf"= {bad} is not in \[0, 4\)"):
                session.run(function(variable, index, UPDATES[:2]), {index: [0, bad]})
        np.testing.assert_array_equal(session.run(variable), START)


def test_updates_of_another_shape():
    """Updates must be a row for each index."""
    variable = tf.Variable(START)
    with pytest.raises(ValueError):
        tf.scatter_add(variable, [0, 1], np.ones([2, 4], np.float32))
    updates = tf.placeholder(tf.float32)
    with tf.Session() as session:
        session.run(variable.initializer)
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"Must have updates\.shape"):
            session.run(tf.scatter_add(variable, [0, 1], updates), {updates: np.ones([3, 3])})


@pytest.mark.usefixtures("eager")
def test_eager():
    """In eager mode the variable is changed at once."""
    variable = tf.Variable(START)
    tf.scatter_sub(variable, INDICES, UPDATES)
    np.testing.assert_array_equal(variable.numpy(), _one_by_one(np.subtract, UPDATES))
