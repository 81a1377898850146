"""Defects of ours are told from mistakes of the user."""

from __future__ import annotations

import pytest
import torch

import stoker.compat.v1 as tf
from stoker._src.base import faults, settings
from stoker._src.graph import definition
from stoker._src.graph.definition import define

KINDS = [AttributeError, TypeError, KeyError, NameError, UnboundLocalError]


def defective(kind):
    """Fails as careless code does."""
    if kind is AttributeError:
        return None.shape
    if kind is TypeError:
        return None + 1
    if kind is KeyError:
        return {}["missing"]
    if kind is NameError:
        return not_there  # noqa: F821
    del kind
    return kind  # noqa: F821


@pytest.fixture
def broken(monkeypatch):
    """`broken(where, kind)` calls an op of which one facet is defective; this file counts as a part of stoker meanwhile."""
    monkeypatch.setattr(definition, "_REGISTRY", dict(definition._REGISTRY))
    monkeypatch.setattr(settings, "raise_faults", False)
    monkeypatch.setattr(faults, "_OURS", (*faults._OURS, __file__))
    op = define("BrokenForTest(x: float32) -> (y: float32)")

    def broken(where, kind):
        op.kernel(lambda x: defective(kind) if where == "kernel" else x + 1)
        op.shape(lambda x: defective(kind) if where == "shape" else x)
        op.grad(lambda op, g: defective(kind) if where == "grad" else g)
        x = tf.placeholder_with_default(tf.constant([1.0, 2.0]), [2])
        y = op(x, name="culprit")
        return tf.gradients(y, x) if where == "grad" else y

    return broken


def check(error, kind):
    text = str(error)
    assert "BrokenForTest 'culprit': " + kind.__name__ in text
    assert "test_faults.py:" in text and " in defective" in text and "defect of stoker" in text and "report" in text
    assert isinstance(error.__cause__, kind)


@pytest.mark.parametrize("kind", KINDS)
def test_a_defect_in_a_kernel_asks_for_a_report(broken, kind):
    """It is an InternalError with the op, the file and the line, not the user's InvalidArgumentError."""
    y = broken("kernel", kind)
    with tf.Session() as session, pytest.raises(tf.errors.InternalError) as caught:
        session.run(y)
    check(caught.value, kind)
    assert caught.value.op.name == "culprit"


@pytest.mark.parametrize(
    ("where", "kind"),
    [(where, kind) for where in ("shape", "grad") for kind in KINDS],
)
def test_a_defect_found_while_a_graph_is_built_asks_for_a_report(broken, where, kind):
    """Defects of shape rules and gradients are told from shapes that do not fit."""
    with pytest.raises(tf.errors.InternalError) as caught:
        broken(where, kind)
    check(caught.value, kind)


def test_our_tests_see_a_defect_as_it_is(broken, monkeypatch):
    """With the setting that our tests run under, the first error is raised unchanged."""
    monkeypatch.setattr(settings, "raise_faults", True)
    y = broken("kernel", AttributeError)
    with tf.Session() as session, pytest.raises(AttributeError, match="shape"):
        session.run(y)


def test_errors_raised_on_purpose_are_no_defects(broken):
    """A TypeError that a kernel raises about its inputs is the user's, as are torch's about shapes and arguments."""
    op = definition.find_definition("BrokenForTest")
    assert op is not None
    x = tf.placeholder_with_default(tf.constant([1.0, 2.0]), [2])

    def refuses(x):
        raise TypeError("not like this")

    for kernel in (refuses, lambda x: torch.matmul(x, torch.ones(3)), lambda x: torch.add(x, "text")):
        op.shape(lambda x: x)
        op.kernel(kernel)
        with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError):
            session.run(op(x))


def test_mistakes_in_callbacks_are_the_users(monkeypatch):
    """Python functions and gradients that the user registers fail with their own errors."""
    monkeypatch.setattr(settings, "raise_faults", False)

    def callback(value):
        return value.no_such_attribute

    called = tf.py_func(callback, [tf.constant(1.0)], tf.float32)
    with tf.Session() as session, pytest.raises(tf.errors.UnknownError, match="AttributeError"):
        session.run(called)

    @tf.custom_gradient
    def function(x):
        return x * 2.0, lambda g: None + g.no_such_attribute

    x = tf.constant(1.0)
    with pytest.raises(AttributeError, match="no_such_attribute"):
        tf.gradients(function(x), x)
