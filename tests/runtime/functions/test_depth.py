"""Functions that nest deeply, and that are called from many places."""

from __future__ import annotations

import sys

import pytest

import stoker as tf2
import stoker.compat.v1 as tf


def nested_calls(levels, calls):
    """A function that adds 1, called by one that returns the sum of `calls` calls of it, and so on."""

    def around(inner):
        return tf2.function(lambda x: sum((inner(x) for _ in range(calls)), tf.constant(1.0)))

    function = tf2.function(lambda x: x + 1.0)
    x = tf.placeholder(tf.float32, [])
    for _ in range(levels):
        function = around(function)
        function.get_concrete_function(tf2.TensorSpec([], tf.float32))
    return x, function(x)


def test_functions_call_each_other_300_deep():
    """Calls nest as deep as in TensorFlow, and the limit of Python's frames is as before while nothing deep is planned."""
    limit = sys.getrecursionlimit()
    x, y = nested_calls(300, 1)
    assert sys.getrecursionlimit() == limit
    with tf.Session() as session:
        assert session.run(y, {x: 1.0}) == 302.0


def test_a_function_called_from_many_places_is_compiled_once():
    """Each of 16 functions calls the next twice: 65,536 calls are planned as 16 bodies."""
    x, y = nested_calls(16, 2)
    with tf.Session() as session:
        assert session.run(y, {x: 1.0}) == 2.0**16 * 2 + 2.0**16 - 1


def test_functions_nested_too_deep_are_refused_by_name():
    """Beyond 500 levels there is a ResourceExhaustedError, not an overflow of Python's stack."""

    def nest(level, x):
        return tf.cond(x > 0, lambda: nest(level - 1, x + 1.0), lambda: x) if level else x

    with pytest.raises(tf.errors.ResourceExhaustedError, match="nested more than 500 levels"):
        nest(501, tf.placeholder(tf.float32, []))


def test_gradients_go_through_many_nested_branches():
    """Branches inside of branches, 115 deep, are differentiated."""

    def nest(level, x):
        return tf.cond(x > 0, lambda: nest(level - 1, x + 1.0), lambda: x) if level else x * x

    x = tf.placeholder(tf.float32, [])
    dx = tf.gradients(nest(115, x), x)[0]
    with tf.Session() as session:
        assert session.run(dx, {x: 1.0}) == 232.0
