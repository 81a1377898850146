"""Branches that a fed truth value chooses are part of the step, with the results of branches that are called."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import stoker.compat.v1 as tf
from stoker._src.runtime.plan import compiled


def _source(session):
    return next(reversed(session._plans.values())).explain()


def _call_branches(monkeypatch):
    monkeypatch.setattr(compiled, "flags_of", lambda *_: [])


@pytest.fixture(params=["known", "called"])
def how(request, monkeypatch):
    """Fed truth values are known when a step is compiled, or the branches are called."""
    if request.param == "called":
        _call_branches(monkeypatch)


def _trained(resource, *, called):
    """The losses, and the moving averages after each run, of a network with a fed flag."""
    with tf.Graph().as_default(), tf.Session(config=tf.ConfigProto(device_count={"GPU": 0})) as session:
        tf.set_random_seed(1)
        with tf.variable_scope("net", use_resource=resource):
            x, training = tf.placeholder(tf.float32, [None, 4]), tf.placeholder(tf.bool, [])
            h = tf.layers.batch_normalization(tf.layers.dense(x, 5), training=training, momentum=0.5)
            h = tf.layers.dropout(h, 0.5, training=tf.logical_not(tf.logical_not(training)))
            h = tf.cond(training, lambda: h * 2.0, lambda: h)
            loss = tf.reduce_mean(tf.square(h - 1.0))
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        session.run(tf.global_variables_initializer())
        feed = {x: np.random.RandomState(0).randn(6, 4)}
        moving = tf.global_variables("net/batch_normalization/moving_mean")[0]
        losses, averages = [], []
        for flag in (True, False, np.True_, np.array(False), True):
            fetches = [loss, train] if flag else [loss]
            losses.append(session.run(fetches, {**feed, training: flag})[0])
            assert ("If(" in _source(session)) == called
            averages.append(session.run(moving))
        return losses, averages


@pytest.mark.parametrize("resource", [False, True])
def test_a_network_that_is_trained_and_evaluated(resource, monkeypatch):
    """Batch normalization, dropout and a branch by hand follow the fed flag as branches that are called do; only training changes averages."""
    losses, averages = _trained(resource, called=False)
    _call_branches(monkeypatch)
    expected_losses, expected = _trained(resource, called=True)
    np.testing.assert_allclose(losses, expected_losses, rtol=1e-6)
    np.testing.assert_allclose(averages, expected, rtol=1e-6)
    same = [np.array_equal(one, other) for one, other in itertools.pairwise(averages)]
    assert same == [True, False, True, False]


@pytest.mark.usefixtures("how")
def test_branches_of_branches_and_cases():
    """All combinations of three flags give the numbers of Python's own branches, also those beyond the steps that a plan keeps."""
    with tf.Graph().as_default(), tf.Session(config=tf.ConfigProto(device_count={"GPU": 0})) as session:
        flags = [tf.placeholder(tf.bool, []) for _ in range(4)]
        a, b, c, d = flags
        inner = tf.cond(a, lambda: tf.cond(b, lambda: 1.0, lambda: 2.0), lambda: tf.cond(b, lambda: 3.0, lambda: 4.0))
        case = tf.switch_case(tf.cast(c, tf.int32), [lambda: inner * 10.0, lambda: inner * 100.0])
        total = tf.cond(tf.logical_and(a, d), lambda: case + 0.5, lambda: case)
        for values in itertools.product((False, True), repeat=4):
            p, q, r, s = values
            expected = (1.0 if q else 2.0) if p else (3.0 if q else 4.0)
            expected = expected * (100.0 if r else 10.0) + (0.5 if p and s else 0.0)
            assert session.run(total, dict(zip(flags, values))) == expected


@pytest.mark.usefixtures("how")
def test_effects_of_branches_keep_their_order():
    """An update in a branch is seen by what waits for it, and only there; a fetched input of the branch keeps its value."""
    with tf.Graph().as_default(), tf.Session(config=tf.ConfigProto(device_count={"GPU": 0})) as session:
        flag = tf.placeholder(tf.bool, [])
        v = tf.Variable(1.0)
        before = v + 0.0
        with tf.control_dependencies([before]):
            changed = tf.cond(flag, lambda: tf.assign_add(v, 10.0), lambda: tf.assign_sub(v, 1.0))
        with tf.control_dependencies([changed]):
            after = v + 0.0
        session.run(v.initializer)
        assert session.run([before, changed, after], {flag: True}) == [1.0, 11.0, 11.0]
        assert session.run([before, changed, after], {flag: False}) == [11.0, 10.0, 10.0]
        assert session.run(v) == 10.0


@pytest.mark.usefixtures("how")
def test_a_failing_branch_names_its_node():
    """Only the branch that runs can fail, and the error names its node."""
    with tf.Graph().as_default(), tf.Session(config=tf.ConfigProto(device_count={"GPU": 0})) as session:
        flag, x = tf.placeholder(tf.bool, []), tf.placeholder(tf.float32, [None])
        y = tf.cond(flag, lambda: tf.reshape(x, [2, 2], name="into_squares"), lambda: tf.zeros([2, 2]))
        assert session.run(y, {flag: False, x: [1.0, 2.0, 3.0]}).sum() == 0.0
        with pytest.raises(tf.errors.InvalidArgumentError, match="into_squares"):
            session.run(y, {flag: True, x: [1.0, 2.0, 3.0]})


@pytest.mark.usefixtures("how")
def test_a_flag_of_the_graph_may_be_fed_or_not():
    """A flag with a default value chooses by that value unless it is fed, and can be fetched beside the branch."""
    with tf.Graph().as_default(), tf.Session(config=tf.ConfigProto(device_count={"GPU": 0})) as session:
        flag = tf.placeholder_with_default(True, [])
        y = tf.cond(flag, lambda: 1.0, lambda: 2.0)
        assert session.run([y, flag]) == [1.0, True]
        assert session.run([y, flag], {flag: False}) == [2.0, False]
        assert session.run([y, flag], {flag: True}) == [1.0, True]
