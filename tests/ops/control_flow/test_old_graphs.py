"""Ops of older and of rewritten graphs."""

import numpy as np
import pytest

import stoker.compat.v1 as tf


def test_reference_passes():
    """A reference that passes through RefIdentity is still the variable: it can be assigned to, after what it waits for."""
    with tf.Graph().as_default(), tf.Session() as session:
        variable = tf.Variable(3.0, use_resource=False)
        with tf.control_dependencies([tf.assign_add(variable, 1.0)]):
            passed = tf.raw_ops.RefIdentity(input=variable.op.outputs[0])
        assert passed.dtype.name == "float32_ref"
        added = tf.assign_add(passed, 10.0)
        session.run(variable.initializer)
        assert session.run(added) == 14
        assert session.run(variable) == 14
        assert session.run(passed) == 15


def test_placeholder():
    """The second version of the placeholder is fed like the first, and must be."""
    with tf.Graph().as_default(), tf.Session() as session:
        placeholder = tf.raw_ops.PlaceholderV2(dtype=tf.float32, shape=[2])
        np.testing.assert_array_equal(session.run(placeholder * 2, {placeholder: [1, 2]}), [2, 4])
        with pytest.raises(tf.errors.InvalidArgumentError, match="must feed"):
            session.run(placeholder)


def test_abort():
    """Abort ends the run."""
    with tf.Graph().as_default(), tf.Session() as session:
        with pytest.raises(tf.errors.AbortedError, match="enough"):
            session.run(tf.raw_ops.Abort(error_msg="enough"))
        session.run(tf.raw_ops.Abort(exit_without_error=True))
