"""The gradient of max pooled rectified images is zeroed before it is spread, where nobody can notice."""

import numpy as np
import pytest

import stoker.compat.v1 as tf


def gradient_plan(ksize, strides, padding, data_format="NHWC"):
    """(plan, found, expected): the gradient by one run, and from the gradients of the two steps run apart."""
    random = np.random.RandomState(0)
    image = random.randn(2, 7, 6, 5).astype("f")
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, image.shape)
        rectified = tf.nn.relu(x - 0.2)
        y = tf.nn.max_pool(rectified, ksize, strides, padding, data_format=data_format)
        weights = random.randn(*y.shape.as_list()).astype("f")
        spread = tf.gradients(y, rectified, weights)[0]
        whole = tf.gradients(y, x, weights)[0]
        found = session.run(whole, {x: image})
        apart = session.run(spread, {x: image}) * (image > 0.2)
        return session.explain(whole, [x]), found, apart


@pytest.mark.parametrize(
    ("ksize", "strides", "padding"),
    [([1, 2, 2, 1], [1, 2, 2, 1], "SAME"), ([1, 3, 3, 1], [1, 1, 2, 1], "VALID"), ([1, 3, 2, 1], [1, 2, 1, 1], "SAME")],
)
def test_the_gradient_of_a_pooled_rectified_image(ksize, strides, padding):
    """Windows that touch, overlap and reach over the edge: the same gradient, zeroed while it is small."""
    plan, found, expected = gradient_plan(ksize, strides, padding)
    assert plan.index("ReluGrad_1 =") < plan.index("MaxPoolGrad_1 =")
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_both_steps_may_be_fetched():
    """Where the spread gradient is wanted too it is what it should be."""
    image = np.array([[-1.0, 2.0], [3.0, -4.0]], "f").reshape(1, 2, 2, 1)
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, image.shape)
        rectified = tf.nn.relu(x)
        y = tf.nn.max_pool(rectified, [1, 1, 2, 1], [1, 1, 2, 1], "VALID")
        spread = tf.gradients(y, rectified)[0]
        zeroed = tf.raw_ops.ReluGrad(gradients=spread, features=rectified)
        one, other = session.run([spread, zeroed], {x: -np.abs(image)})
        np.testing.assert_array_equal(one.ravel(), [1, 0, 1, 0])
        np.testing.assert_array_equal(other.ravel(), [0, 0, 0, 0])


def test_maxima_may_be_fed():
    """What is fed for the maxima says nothing of the image."""
    image = np.array([1.0, 2.0], "f").reshape(1, 1, 2, 1)
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, image.shape)
        y = tf.nn.max_pool(tf.nn.relu(x), [1, 1, 2, 1], [1, 1, 2, 1], "VALID")
        gradient = tf.gradients(y, x)[0]
        np.testing.assert_array_equal(session.run(gradient, {x: image, y: [[[[-1.0]]]]}).ravel(), [0, 1])


def test_maxima_of_another_pooling_are_not_trusted():
    """The gradient op takes any tensor for the maxima: positions come from the image alone."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.nn.relu(tf.constant(np.array([[1.0, 2.0], [3.0, 4.0]], "f").reshape(1, 2, 2, 1)))
        spread = tf.raw_ops.MaxPoolGrad(
            orig_input=x,
            orig_output=-tf.ones([1, 1, 1, 1]),
            grad=tf.ones([1, 1, 1, 1]),
            ksize=[1, 2, 2, 1],
            strides=[1, 2, 2, 1],
            padding="VALID",
        )
        zeroed = tf.raw_ops.ReluGrad(gradients=spread, features=x)
        np.testing.assert_array_equal(session.run(zeroed).ravel(), [0, 0, 0, 1])
