"""tf.losses: values and gradients as TensorFlow's, the collection, and bad arguments."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import stoker.compat.v1 as tf

GOLDEN = Path(__file__).parents[1] / "golden" / "losses"
_spec = importlib.util.spec_from_file_location("loss_cases", GOLDEN / "cases.py")
assert _spec is not None and _spec.loader is not None
cases = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(cases)


def test_values_and_gradients():
    """Every loss, with every reduction and kind of weights, has TensorFlow's value and gradient."""
    found = cases.values(tf)
    with np.load(GOLDEN / "values.npz") as expected:
        assert {name.replace("/", "@") for name in found} == set(expected.files)
        for name, value in found.items():
            np.testing.assert_allclose(value, expected[name.replace("/", "@")], rtol=2e-5, atol=1e-6, err_msg=name)


def test_losses_are_collected():
    """Losses join LOSSES (or another collection, or none), and get_total_loss adds the regularization losses."""
    first = tf.losses.mean_squared_error([1.0], [2.0])
    with tf.name_scope("part"):
        second = tf.losses.absolute_difference([1.0], [3.0])
    tf.losses.absolute_difference([1.0], [3.0], loss_collection=None)
    third = tf.losses.absolute_difference([1.0], [3.0], loss_collection="mine")
    tf.get_variable("w", initializer=[2.0], regularizer=tf.contrib.layers.l2_regularizer(1.0))
    assert tf.losses.get_losses() == [first, second] and tf.losses.get_losses("part") == [second]
    assert tf.losses.get_losses(loss_collection="mine") == [third]
    assert first.op.name == "mean_squared_error/value" and second.op.name == "part/absolute_difference/value"
    total, plain = tf.losses.get_total_loss(), tf.losses.get_total_loss(add_regularization_losses=False)
    assert total.op.name == "total_loss"
    penalty = tf.losses.get_regularization_loss()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run([total, plain, penalty]) == [5.0, 3.0, 2.0]


def test_no_regularization_loss_is_zero():
    """Without regularizers the regularization loss is 0."""
    with tf.Session() as session:
        assert session.run(tf.losses.get_regularization_loss()) == 0
    assert tf.losses.get_regularization_losses() == []


def test_labels_with_an_extra_dimension():
    """Sparse labels and weights of shape [batch, 1] lose their last dimension."""
    logits = np.random.RandomState(0).rand(3, 4).astype(np.float32)
    flat = tf.losses.sparse_softmax_cross_entropy([0, 1, 2], logits, weights=[1.0, 0.0, 2.0])
    extra = tf.losses.sparse_softmax_cross_entropy([[0], [1], [2]], logits, weights=[[1.0], [0.0], [2.0]])
    with tf.Session() as session:
        np.testing.assert_allclose(*session.run([flat, extra]))


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: tf.losses.mean_squared_error(np.zeros([2, 3]), np.zeros([2, 3]), weights=np.zeros([2])), "can not be broadcast"),
        (lambda: tf.losses.mean_squared_error(np.zeros([2, 3]), np.zeros([2, 3]), weights=np.zeros([3, 1])), "can not be broadcast"),
        (lambda: tf.losses.mean_squared_error(np.zeros([2, 3]), np.zeros([3, 2])), "incompatible"),
        (lambda: tf.losses.mean_squared_error(None, [1.0]), "labels must not be None"),
        (lambda: tf.losses.log_loss([1.0], None), "predictions must not be None"),
        (lambda: tf.losses.hinge_loss([1.0], None), "logits must not be None"),
        (lambda: tf.losses.absolute_difference([1.0], [1.0], reduction="other"), "Invalid Reduction"),
        (lambda: tf.losses.cosine_distance([1.0], [1.0]), "axis"),
        (lambda: tf.losses.cosine_distance([1.0], [1.0], axis=0, dim=0), "both"),
    ],
)  # fmt: skip
def test_bad_arguments_are_refused(make, text):
    """Arguments that do not fit raise ValueError when the loss is made."""
    with pytest.raises(ValueError, match=text):
        make()


def test_weights_are_checked_when_run():
    """Weights whose size turns out wrong raise InvalidArgumentError."""
    predictions = tf.placeholder(tf.float32, [None, 2])
    weights = tf.placeholder(tf.float32, [None, 1])
    loss = tf.losses.mean_squared_error(tf.zeros_like(predictions), predictions, weights=weights)
    with tf.Session() as session:
        assert session.run(loss, {predictions: np.ones([3, 2]), weights: np.ones([3, 1])}) == 1
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(loss, {predictions: np.ones([3, 2]), weights: np.ones([2, 1])})
