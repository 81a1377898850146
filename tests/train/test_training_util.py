"""The global step."""

from __future__ import annotations

import logging

import pytest

import stoker.compat.v1 as tf


def test_create():
    """The step is an int64 scalar that is not trained, in GLOBAL_VARIABLES and GLOBAL_STEP, and starts at 0."""
    step = tf.train.create_global_step()
    assert step.op.name == "global_step" and step.dtype.base_dtype == tf.int64 and step.shape == ()
    assert not step.trainable
    assert tf.global_variables() == [step] and tf.get_collection(tf.GraphKeys.GLOBAL_STEP) == [step]
    assert next(op.name for op in step.graph.get_operations()) == "global_step/Initializer/zeros"
    with tf.Session() as session:
        session.run(step.initializer)
        value = tf.train.global_step(session, step)
        assert value == 0 and type(value) is int
        session.run(step.assign_add(3))
        assert tf.train.global_step(session, "global_step:0") == 3


def test_create_ignores_name_scopes():
    """The name is `global_step` wherever it is made."""
    with tf.name_scope("inner"):
        assert tf.train.create_global_step().op.name == "global_step"


def test_create_twice():
    """A graph has one step."""
    tf.train.create_global_step()
    with pytest.raises(ValueError, match='"global_step" already exists'):
        tf.train.create_global_step()


def test_get_or_create():
    """It is made when there is none, in the graph that was asked for."""
    other = tf.Graph()
    assert tf.train.get_global_step() is None
    step = tf.train.get_or_create_global_step()
    assert tf.train.get_or_create_global_step() is step is tf.train.get_global_step()
    theirs = tf.train.get_or_create_global_step(other)
    assert theirs.graph is other and tf.train.get_global_step(other) is theirs


def test_get_by_name():
    """Without a collection the tensor called global_step:0 is taken."""
    made = tf.constant(1, name="global_step")
    assert tf.train.get_global_step() is made


@pytest.mark.parametrize("value", [1.0, [1], b"x"])
def test_not_a_step(value):
    """A step is a scalar integer."""
    tf.Variable(value, name="global_step")
    with pytest.raises(TypeError, match='Existing "global_step"'):
        tf.train.get_global_step()


def test_not_a_variable():
    """What was put into the collection must be a variable or a tensor."""
    tf.add_to_collection(tf.GraphKeys.GLOBAL_STEP, "step")
    with pytest.raises(TypeError, match="must be a Variable or Tensor"):
        tf.train.get_global_step()


def test_several(caplog):
    """With several in the collection nobody knows which; that is logged, and None returned."""
    for _ in range(2):
        tf.add_to_collection(tf.GraphKeys.GLOBAL_STEP, tf.Variable(1))
    with caplog.at_level(logging.ERROR):
        assert tf.train.get_global_step() is None
    assert "Multiple tensors in global_step collection" in caplog.text


def test_assert_global_step():
    """Variables and tensors pass, also of unknown shape; other things do not."""
    tf.train.assert_global_step(tf.Variable(1))
    tf.train.assert_global_step(tf.constant(1))
    tf.train.assert_global_step(tf.placeholder(tf.int32))
    for bad in ("global_step", 3, None):
        with pytest.raises(TypeError, match="must be a Variable or Tensor"):
            tf.train.assert_global_step(bad)
    with pytest.raises(TypeError, match="does not have integer type"):
        tf.train.assert_global_step(tf.constant(1.0))
    with pytest.raises(TypeError, match="is not scalar"):
        tf.train.assert_global_step(tf.Variable([1]))


@pytest.mark.usefixtures("eager")
def test_eager():
    """There is a step in eager mode too."""
    step = tf.train.get_or_create_global_step()
    assert tf.train.get_or_create_global_step() is step
    step.assign_add(2)
    assert tf.train.global_step(None, step) == 2
