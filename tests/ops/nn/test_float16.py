"""Products of float16 on a CPU are those of float32, rounded once."""

import numpy as np
import pytest

import stoker.compat.v1 as tf
from stoker._src.base.errors import InvalidArgumentError


def _both(build, *arrays):
    """What `build` makes of the arrays as float16, and of the same numbers as float32."""
    found = []
    for dtype in (tf.float16, tf.float32):
        with tf.Graph().as_default(), tf.Session() as session:
            operands = [tf.cast(tf.constant(array.astype(np.float16)), dtype) for array in arrays]
            found.append(session.run(build(*operands)))
    return found


def _check(build, *arrays):
    for half, single in zip(*_both(build, *arrays)):
        assert half.dtype == np.float16
        np.testing.assert_array_max_ulp(half, single.astype(np.float16), 1)


def _with_gradients(product):
    def build(*operands):
        made = product(*operands)
        weights = tf.cast(tf.reshape(tf.range(tf.size(made)) % 7, tf.shape(made)), made.dtype)
        return [made, *tf.gradients(made, list(operands), weights)]

    return build


@pytest.mark.parametrize("transpose_a, transpose_b", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("batch", [(), (3,)])
def test_matrices(batch, transpose_a, transpose_b):
    """Products of matrices and of batches of them, transposed or not, and their gradients."""
    random = np.random.RandomState(0)
    a = random.randn(*batch, *((9, 5) if transpose_a else (5, 9)))
    b = random.randn(*batch, *((4, 9) if transpose_b else (9, 4)))
    _check(_with_gradients(lambda a, b: tf.matmul(a, b, transpose_a=transpose_a, transpose_b=transpose_b)), a, b)


@pytest.mark.parametrize("strides, padding, dilations", [(1, "SAME", 1), (2, "VALID", 1), (1, "SAME", 2)])
def test_convolutions(strides, padding, dilations):
    """Convolutions of images, and the gradients for images and filters."""
    random = np.random.RandomState(0)
    _check(
        _with_gradients(lambda x, w: tf.nn.conv2d(x, w, strides=strides, padding=padding, dilations=dilations)),
        random.randn(2, 9, 8, 3),
        random.randn(3, 3, 3, 4),
    )


def test_convolutions_of_each_channel_and_of_volumes():
    """Depthwise and transposed convolutions, and those of volumes."""
    random = np.random.RandomState(0)
    image, volume = random.randn(2, 6, 7, 3), random.randn(1, 4, 5, 6, 2)
    _check(
        _with_gradients(lambda x, w: tf.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "SAME")),
        image,
        random.randn(3, 3, 3, 2),
    )
    _check(lambda x, w: [tf.nn.conv2d_transpose(x, w, [2, 12, 14, 4], [1, 2, 2, 1])], image, random.randn(3, 3, 4, 3))
    _check(lambda x, w: [tf.nn.conv3d(x, w, [1, 1, 1, 1, 1], "SAME")], volume, random.randn(2, 2, 2, 2, 3))


def test_what_float16_cannot_hold():
    """A product beyond the largest float16 is infinite, and one of infinity and zero is NaN."""
    a = np.array([[300.0, 0.0], [np.inf, 1.0], [-400.0, 0.0]])
    b = np.array([[300.0, 0.0], [0.0, 1.0]])
    ((half,), _) = _both(lambda a, b: [tf.matmul(a, b)], a, b)
    np.testing.assert_array_equal(half, np.array([[np.inf, 0], [np.inf, np.nan], [-np.inf, 0]], np.float16))


def test_matrices_that_do_not_fit():
    """Matrices whose sizes do not agree are refused with both shapes."""
    with tf.Graph().as_default(), tf.Session() as session:
        a, b = (tf.placeholder_with_default(tf.ones(shape, tf.float16), None) for shape in ([2, 3], [2, 3]))
        with pytest.raises(InvalidArgumentError, match=r"\[2, ?3\]"):
            session.run(tf.matmul(a, b))
