"""Legal calls that programs make now and then, and edges of their values: the numbers are TensorFlow 2.21's."""

import pytest

import stoker.compat.v1 as tf


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as opened:
        yield opened


def test_names_of_penalties(session):
    """Penalties add up from zero, which decides the names of their nodes."""
    regularizers = tf.keras.regularizers
    for name, regularizer in (
        ("add_1", regularizers.l1_l2(0.1, 0.2)),
        ("add", regularizers.l1_l2(0.1, 0.0)),
        ("Const", regularizers.l1_l2(0.0, 0.0)),
        ("mul", regularizers.l1(0.1)),
        ("mul", regularizers.l2(0.1)),
    ):
        with tf.Graph().as_default():
            tf.layers.dense(tf.zeros([2, 3]), 2, kernel_regularizer=regularizer, name="d")
            assert [each.name for each in tf.losses.get_regularization_losses()] == [f"d/kernel/Regularizer/{name}:0"]
    assert regularizers.l1(0.5).get_config() == {"l1": 0.5}
    assert regularizers.l2(0.5).get_config() == {"l2": 0.5}
