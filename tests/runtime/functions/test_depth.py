"""Functions that nest deeply, and that are called from many places."""

from __future__ import annotations

import sys

import numpy as np
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


def test_gradients_go_through_functions_that_fan_out():
    """Each of 10 functions calls the next twice: the gradient of each is traced once and holds for all calls of it."""
    x = tf.placeholder(tf.float32, [])
    function = tf2.function(lambda v: v * v)
    for _ in range(10):
        function = (lambda inner: tf2.function(lambda v: inner(v) + inner(v) * 0.5))(function)
        function.get_concrete_function(tf2.TensorSpec([], tf.float32))
    y = function(x)
    dx = tf.gradients(y, x)[0]
    with tf.Session() as session:
        assert session.run(dx, {x: 2.0}) == 4.0 * 1.5**10
    library = tf.get_default_graph().as_graph_def().library
    assert len(library.function) < 80


def test_calls_of_one_function_have_gradients_of_their_own():
    """Two calls share the gradient function, but not the values that it takes; one of them may be differentiated alone."""
    x, w = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
    function = tf2.function(lambda a, b: (a * tf.exp(b), b * b))
    first, second = function(x, w), function(w, x)
    dx = tf.gradients(first[0] * 2.0 + second[1], x)[0]
    dw = tf.gradients([first[0], second[0]], w)[0]
    with tf.Session() as session:
        got = session.run([dx, dw, first, second], {x: 0.5, w: 0.25})
    e = np.exp
    want = [2 * e(0.25) + 1.0, 0.5 * e(0.25) + e(0.5), (0.5 * e(0.25), 0.0625), (0.25 * e(0.5), 0.25)]
    for ours, expected in zip(got, want):
        np.testing.assert_allclose(ours, expected, rtol=1e-6)


def test_gradients_go_through_functions_nested_100_deep():
    """Functions inside of functions are differentiated, and Python's limit of frames is as before."""
    limit = sys.getrecursionlimit()
    x, y = nested_calls(100, 1)
    dx = tf.gradients(y * y, x)[0]
    assert sys.getrecursionlimit() == limit
    with tf.Session() as session:
        assert session.run(dx, {x: 1.0}) == 204.0


def test_gradients_go_through_nested_loops():
    """Loops inside of loops, 12 deep, are differentiated."""

    def nest(level, v):
        if not level:
            return v * v
        return tf.while_loop(lambda i, _: i < 1, lambda i, v: (i + 1, nest(level - 1, v * 2.0)), [0, v])[1]

    x = tf.placeholder(tf.float32, [])
    y = nest(12, x)
    dx = tf.gradients(y, x)[0]
    with tf.Session() as session:
        assert session.run([y, dx], {x: 0.5}) == [0.25 * 4.0**12, 4.0**12]


@pytest.mark.parametrize("kind", ["conds", "calls", "nodes"])
def test_long_chains_need_no_deep_stack(kind):
    """A chain of many branches, calls or nodes is differentiated, exported, imported and run within Python's usual frames."""
    function = tf2.function(lambda v: v * 1.0 + 1.0)

    def one(v):
        if kind == "conds":
            return tf.cond(v > 0.0, lambda: v + 1.0, lambda: v)
        return function(v) if kind == "calls" else v + 1.0

    count = 200 if kind == "conds" else 400 if kind == "calls" else 3000
    with tf.Graph().as_default() as graph:
        x = h = tf.placeholder(tf.float32, [], name="x")
        for _ in range(count):
            h = one(h)
        dx = tf.gradients(h, x)[0]
        names = [tf.identity(h, name="y").name, tf.identity(dx, name="dx").name]
    limit = sys.getrecursionlimit()
    with tf.Graph().as_default():
        tf.import_graph_def(graph.as_graph_def(), name="")
        with tf.Session() as session:
            assert session.run(names, {"x:0": 1.0}) == [count + 1.0, 1.0]
    assert sys.getrecursionlimit() == limit


def test_sources_inside_of_a_chain():
    """Gradients of many tensors that depend on each other count every path once."""
    x = h = tf.placeholder(tf.float32, [])
    sources = [x]
    for _ in range(50):
        h = h * 2.0 + x
        sources.append(h)
    found = tf.gradients(h, sources)
    with tf.Session() as session:
        got = session.run(found, {x: 1.0})
    assert got == [2.0**51 - 1.0] + [2.0**k for k in range(49, -1, -1)]
