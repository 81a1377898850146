"""Tensors that a session keeps between runs, and their handles."""

from __future__ import annotations

import numpy as np
import pytest

import stoker.compat.v1 as tf


def _handle(session, value):
    return session.run(tf.get_session_handle(tf.constant(value)))


def test_a_kept_tensor_is_read_by_handle_and_feeds_any_tensor():
    """A handle evaluates to the tensor, feeds it in place of a value, and its text feeds get_session_tensor."""
    with tf.Graph().as_default(), tf.Session() as session:
        handle = _handle(session, [1.0, 2.0])
        assert str(handle) == handle.handle and handle.handle.startswith("GetSessionHandle;")
        np.testing.assert_array_equal(handle.eval(), [1.0, 2.0])
        x = tf.placeholder(tf.float32, [2])
        np.testing.assert_array_equal(session.run(x * 2.0, {x: handle}), [2.0, 4.0])
        holder, kept = tf.get_session_tensor(handle.handle, tf.float32)
        np.testing.assert_array_equal(session.run(kept, {holder: handle.handle}), [1.0, 2.0])


def test_what_is_kept_cannot_be_changed_through_what_is_read():
    """Values read from the store are the caller's own."""
    with tf.Graph().as_default(), tf.Session() as session:
        handle = _handle(session, [1.0, 2.0])
        handle.eval()[:] = 9
        holder, kept = tf.get_session_tensor(handle.handle, tf.float32)
        session.run(kept, {holder: handle.handle})[:] = 9
        np.testing.assert_array_equal(handle.eval(), [1.0, 2.0])


def test_a_deleted_tensor_is_gone():
    """Deleting by op or by method forgets the tensor; using it afterwards says so."""
    with tf.Graph().as_default(), tf.Session() as session:
        handle = _handle(session, 3)
        holder, delete = tf.delete_session_tensor(handle.handle)
        session.run(delete, {holder: handle.handle})
        with pytest.raises(tf.errors.InvalidArgumentError, match="not in the session store"):
            handle.eval()
        other = _handle(session, 4)
        other.delete()
        with pytest.raises(TypeError, match="may have already been deleted"):
            other.eval()


def test_the_tensor_goes_with_its_handle_unless_the_text_was_taken_over():
    """A handle object owns its tensor; after get_raw_handle the tensor stays until it is deleted."""
    with tf.Graph().as_default(), tf.Session() as session:
        text = _handle(session, 5).handle  # the object is gone at once
        raw = _handle(session, 6).get_raw_handle()
        holder, kept = tf.get_session_tensor(raw, tf.int32)
        assert session.run(kept, {holder: raw}) == 6
        with pytest.raises(tf.errors.InvalidArgumentError, match="not in the session store"):
            session.run(kept, {holder: text})


def test_bad_uses_of_handles():
    """No tensor, another dtype, a text that is not a handle and a closed session each have their error."""
    with tf.Graph().as_default():
        session = tf.Session()
        with pytest.raises(TypeError, match="must be of type Tensor"):
            tf.get_session_handle([1, 2])
        handle = _handle(session, 7)
        holder, kept = tf.get_session_tensor(handle.handle, tf.float32)
        with pytest.raises(tf.errors.InternalError, match="int32 does not match declared output type float32"):
            session.run(kept, {holder: handle.handle})
        with pytest.raises(tf.errors.InvalidArgumentError, match="expects string"):
            session.run(kept, {holder: handle})
        with pytest.raises(ValueError, match="nonsense"):
            tf.get_session_tensor("nonsense", tf.float32)
        session.close()
        with pytest.raises(RuntimeError, match="closed Session"):
            handle.eval()


def test_user_ops():
    """tf.user_ops holds TensorFlow's example op."""
    with tf.Graph().as_default(), tf.Session() as session:
        assert session.run(tf.user_ops.my_fact()) == b"0! == 1"
