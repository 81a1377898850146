"""Placement on a machine with or without a GPU."""

from __future__ import annotations

import pytest

import stoker.compat.v1 as tf


def test_a_device_that_is_not_there():
    """An op on a GPU that does not exist cannot be placed; soft placement puts it where it can run."""
    with tf.device("/gpu:99"):
        y = tf.constant(1.0) + 1.0
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="available devices are"):
        session.run(y)
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
        assert session.run(y) == 2.0


def test_another_job_is_refused():
    """A session of this process has no parameter server."""
    with tf.device("/job:ps/task:0"):
        y = tf.constant(1.0) + 1.0
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="/job:ps/task:0"):
        session.run(y)


def test_as_many_cpus_as_the_config_says():
    """Programs that name CPU 1 run on the one there is, if they asked for two."""
    with tf.device("/cpu:1"):
        y = tf.constant(1.0) + 1.0
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as session:
        assert session.run(y) == 2.0
        assert [device.device_type for device in session.list_devices()] == ["CPU", "CPU"]
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="CPU:1"):
        session.run(y)
