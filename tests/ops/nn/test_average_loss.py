"""Average losses of weighted examples."""

from __future__ import annotations

import numpy as np
import pytest

import stoker as tf2
import stoker.compat.v1 as tf


def test_average_loss(eager):
    """The weighted sum over the global batch size; 0 for an empty batch."""
    losses = np.array([1.0, 2.0, 3.0], np.float32)
    assert tf2.nn.compute_average_loss(losses).numpy() == 2.0
    assert tf2.nn.compute_average_loss(losses, [1.0, 2.0, 3.0], 7).numpy() == 2.0
    assert tf2.nn.compute_average_loss(np.ones((2, 3), np.float32), [1.0, 2.0]).numpy() == 4.5
    assert tf2.nn.compute_average_loss(losses, np.ones((3, 1), np.float32)).numpy() == 2.0
    assert tf2.nn.compute_average_loss(np.array([1j, 3j], np.complex64)).numpy() == 2j
    assert tf2.nn.compute_average_loss(losses, global_batch_size=0).numpy() == 0.0
    assert tf2.nn.scale_regularization_loss(losses).numpy() == 6.0
    with pytest.raises(ValueError, match="rank 1"):
        tf2.nn.compute_average_loss(3.0)
    with pytest.raises(TypeError, match="integer"):
        tf2.nn.compute_average_loss(losses, global_batch_size=2.0)
    with pytest.raises(tf.errors.InvalidArgumentError, match="non-negative"):
        tf2.nn.compute_average_loss(losses, global_batch_size=-1)


def test_average_loss_of_unknown_ranks():
    """Weights whose rank is not known lose or gain a last dimension when they run."""
    with tf.Graph().as_default(), tf.Session() as session:
        losses, weights = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
        mean = tf2.nn.compute_average_loss(losses, weights)
        for shape in ((3,), (3, 1), ()):
            assert session.run(mean, {losses: [1.0, 2.0, 3.0], weights: np.ones(shape)}) == 2.0
        assert session.run(mean, {losses: np.ones((2, 3)), weights: [1.0, 2.0]}) == 4.5
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(mean, {losses: 1.0, weights: 1.0})
