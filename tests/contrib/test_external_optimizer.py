"""`tf.contrib.opt.ExternalOptimizerInterface` and `ScipyOptimizerInterface`: what an algorithm is given, and what variables become."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import stoker.compat.v1 as tf


class Descent(tf.contrib.opt.ExternalOptimizerInterface):
    """Two steps of gradient descent, and a record of what was given."""

    def _minimize(self, initial_val, loss_grad_func, **given):
        self.given, self.losses = given, []
        vector = initial_val
        for _ in range(2):
            loss, gradient = loss_grad_func(vector)
            self.losses.append(float(loss))
            vector = vector - 0.25 * gradient
            given["step_callback"](vector)
        kinds = ("equality_funcs", "equality_grad_funcs", "inequality_funcs", "inequality_grad_funcs")
        self.constraints = [[np.asarray(each(vector)).tolist() for each in given[kind]] for kind in kinds]
        return vector


def _problem(use_resource=False):
    """(a - [1, 2])² + (b - 3)² from [7, 7] and 1: the gradient halves the distance with each step of a quarter."""
    a = tf.Variable([7.0, 7.0], use_resource=use_resource)
    b = tf.Variable(1.0, use_resource=use_resource)
    return a, b, tf.reduce_sum(tf.square(a - [1.0, 2.0])) + tf.square(b - 3.0)


@pytest.mark.parametrize("use_resource", [False, True])
def test_what_an_algorithm_is_given(use_resource):
    """One vector for all variables, with losses, gradients, constraints and bounds; at the end the variables have the result."""
    a, b, loss = _problem(use_resource)
    optimizer = Descent(
        loss, options={"x": 1}, equalities=[a[0] - 1.0], inequalities=[b], var_to_bounds={a: (0.0, [3.0, 4.0])}
    )
    steps, losses = [], []
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        optimizer.minimize(session, fetches=[loss], step_callback=steps.append, loss_callback=losses.append)
        found = session.run([a, b])
    np.testing.assert_allclose(steps, [[4.0, 4.5, 2.0], [2.5, 3.25, 2.5]])
    assert losses == optimizer.losses == [65.0, 16.25]
    assert optimizer.constraints == [[[1.5]], [[[1.0, 0.0, 0.0]]], [[2.5]], [[[0.0, 0.0, 1.0]]]]
    assert optimizer.given["packed_bounds"] == [(0.0, 3.0), (0.0, 4.0), (-np.inf, np.inf)]
    assert optimizer.given["optimizer_kwargs"] == {"options": {"x": 1}}
    np.testing.assert_allclose(found[0], [2.5, 3.25])
    assert found[1] == 2.5


def test_some_variables_and_feeds():
    """Only the listed variables change, and each evaluation feeds what the caller feeds; the session is the default one."""
    a, b, loss = _problem()
    scale = tf.placeholder(tf.float32, [])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        Descent(loss * scale, var_list=[b]).minimize(feed_dict={scale: 2.0})
        np.testing.assert_allclose(session.run(a), [7.0, 7.0])
        assert session.run(b) == 3.0


def test_minimized_by_scipy():
    """L-BFGS-B finds the minimum of a parabola, within bounds where there are some."""
    pytest.importorskip("scipy")
    a, b, loss = _problem()
    optimizer = tf.contrib.opt.ScipyOptimizerInterface(loss, options={"maxiter": 50}, var_to_bounds={b: (-5.0, 2.0)})
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        optimizer.minimize(session)
        np.testing.assert_allclose(session.run(a), [1.0, 2.0], atol=1e-4)
        assert session.run(b) == 2.0


def test_constraints_by_scipy():
    """SLSQP holds an equality and an inequality: the nearest point to (1, 2) on x + y = 0 with y >= 1 is (-1, 1)."""
    pytest.importorskip("scipy")
    a, _, loss = _problem()
    optimizer = tf.contrib.opt.ScipyOptimizerInterface(
        loss, var_list=[a], equalities=[a[0] + a[1]], inequalities=[a[1] - 1.0], method="SLSQP"
    )
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        optimizer.minimize(session)
        np.testing.assert_allclose(session.run(a), [-1.0, 1.0], atol=1e-3)


def test_errors(monkeypatch):
    """The base class has no algorithm; arguments computed from the graph are refused; without SciPy the error says so."""
    _, _, loss = _problem()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        with pytest.raises(NotImplementedError, match="_minimize"):
            tf.contrib.opt.ExternalOptimizerInterface(loss).minimize(session)
        with pytest.raises(ValueError, match="sets bounds itself"):
            tf.contrib.opt.ScipyOptimizerInterface(loss, bounds=[(0, 1)]).minimize(session)
        monkeypatch.setitem(sys.modules, "scipy.optimize", None)
        with pytest.raises(ImportError, match="needs SciPy"):
            tf.contrib.opt.ScipyOptimizerInterface(loss).minimize(session)
