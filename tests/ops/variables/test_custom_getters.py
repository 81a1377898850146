"""Custom getters: functions around the creation of variables."""

from __future__ import annotations

import stoker.compat.v1 as tf


def stored_in_32_bits(getter, name, shape=None, dtype=None, initializer=None, *args, **kwargs):
    """A getter as programs for mixed precision have it."""
    stored = tf.float32 if kwargs["trainable"] else dtype
    made = getter(name, shape, stored, initializer, *args, **kwargs)
    return made if made.dtype.base_dtype == dtype else tf.cast(made, dtype)


def by_position(getter, name, shape, **kwargs):
    """Passes on almost everything by position."""
    names = "dtype initializer regularizer reuse trainable collections caching_device partitioner".split()
    return getter(name, shape, *(kwargs.pop(each) for each in names), **kwargs)


def test_a_getter_may_pass_arguments_by_position():
    """They have TensorFlow's order."""
    with tf.variable_scope("net", dtype=tf.float16, custom_getter=stored_in_32_bits):
        cast = tf.get_variable("w", [2, 3], initializer=tf.ones_initializer(), regularizer=tf.nn.l2_loss)
    with tf.variable_scope("in", custom_getter=by_position, partitioner=tf.fixed_size_partitioner(2)):
        tf.get_variable("parts", [4], tf.float16, trainable=False)
    assert cast.dtype == tf.float16
    assert [(v.name, v.dtype.base_dtype) for v in tf.global_variables()] == [
        ("net/w:0", tf.float32),
        ("in/parts/part_0:0", tf.float16),
        ("in/parts/part_1:0", tf.float16),
    ]
    assert tf.trainable_variables() == tf.global_variables()[:1]
    assert len(tf.losses.get_regularization_losses()) == 1
