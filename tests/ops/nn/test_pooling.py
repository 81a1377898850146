"""Pooling against loops over windows."""

import numpy as np
import pytest

import stoker.compat.v1 as tf
from stoker._src.base.errors import InvalidArgumentError, UnimplementedError
from tests.ops.nn.references import pooling, to_back, to_front
from tests.ops.samples import Sample, check_sample, f32, f64, i32, samples


def window(k, s, padding, **attrs):
    spread = lambda n: [1, n, n, 1] if isinstance(n, int) else n  # noqa: E731
    return {"ksize": spread(k), "strides": spread(s), "padding": padding, **attrs}


def highest(k, s, padding):
    return lambda x: pooling(x, k, s, padding, np.max)


def average(k, s, padding):
    return lambda x: pooling(x, k, s, padding, np.mean)


ARANGED = np.random.RandomState(4).permutation(2 * 5 * 4 * 3).reshape(2, 5, 4, 3).astype("f8") / 50

SAMPLES = [
    Sample("MaxPool", [ARANGED], window(2, 2, "VALID"), highest([2, 2], [2, 2], "VALID")),
    Sample("MaxPool", [ARANGED], window(2, 2, "SAME"), highest([2, 2], [2, 2], "SAME")),
    Sample("MaxPool", [ARANGED], window(3, 2, "SAME"), highest([3, 3], [2, 2], "SAME")),
    Sample("MaxPool", [ARANGED], window(2, 1, "SAME"), highest([2, 2], [1, 1], "SAME")),
    Sample("MaxPool", [ARANGED], window([1, 4, 3, 1], [1, 3, 2, 1], "SAME"), highest([4, 3], [3, 2], "SAME")),
    Sample(
        "MaxPool",
        [ARANGED],
        window(3, 2, "EXPLICIT", explicit_paddings=[0, 0, 2, 1, 0, 2, 0, 0]),
        highest([3, 3], [2, 2], [(2, 1), (0, 2)]),
    ),
    Sample(
        "MaxPool",
        [to_front(ARANGED).copy()],
        window([1, 1, 3, 2], [1, 1, 2, 2], "SAME", data_format="NCHW"),
        lambda x: to_front(pooling(to_back(x), [3, 2], [2, 2], "SAME", np.max)),
    ),
    Sample("MaxPool", [i32(1, 4, 4, 2)], window(2, 2, "SAME"), highest([2, 2], [2, 2], "SAME"), gradient=False),
    Sample(
        "MaxPool", [i32(1, 4, 4, 2).astype("u1")], window(3, 2, "SAME"), highest([3, 3], [2, 2], "SAME"), gradient=False
    ),
    Sample(
        "MaxPool",
        [f64(1, 2, 2, 6)],
        window([1, 1, 1, 3], [1, 1, 1, 3], "SAME"),
        lambda x: x.reshape(1, 2, 2, 2, 3).max(-1),
    ),
    Sample("MaxPool", [f64(0, 4, 4, 2)], window(2, 2, "SAME"), lambda x: np.zeros((0, 2, 2, 2))),
    Sample(
        "MaxPool", [f32(1, 4, 4, 1)], window([2, 2, 2, 1], 1, "SAME"), raises=(UnimplementedError, "batch dimension")
    ),
    Sample("MaxPool", [f32(1, 4, 4, 1)], window(7, 1, "VALID"), raises=(InvalidArgumentError, "negative|Negative")),
    Sample(
        "MaxPoolV2",
        [ARANGED, [1, 2, 2, 1], [1, 2, 2, 1]],
        {"padding": "SAME"},
        lambda x, k, s: pooling(x, [2, 2], [2, 2], "SAME", np.max),
    ),
    Sample("MaxPoolGrad", [ARANGED, f64(2, 3, 2, 3), f64(2, 3, 2, 3)], window(3, 2, "SAME"), gradient=(2,)),
    Sample("MaxPoolGrad", [ARANGED, f64(2, 5, 4, 3), f64(2, 5, 4, 3)], window(2, 1, "SAME"), gradient=(2,)),
    Sample("MaxPoolGradGrad", [ARANGED, f64(2, 3, 2, 3), f64(2, 5, 4, 3)], window(3, 2, "SAME"), gradient=(2,)),
    Sample(
        "MaxPoolGradV2",
        [ARANGED, f64(2, 3, 2, 3), f64(2, 3, 2, 3), [1, 3, 3, 1], [1, 2, 2, 1]],
        {"padding": "SAME"},
        gradient=(2,),
    ),
    Sample("AvgPool", [ARANGED], window(2, 2, "VALID"), average([2, 2], [2, 2], "VALID")),
    Sample("AvgPool", [ARANGED], window(3, 2, "SAME"), average([3, 3], [2, 2], "SAME")),
    Sample("AvgPool", [ARANGED], window(2, 1, "SAME"), average([2, 2], [1, 1], "SAME")),
    Sample("AvgPool", [ARANGED], window([1, 4, 2, 1], [1, 1, 2, 1], "SAME"), average([4, 2], [1, 2], "SAME")),
    Sample(
        "AvgPool",
        [to_front(ARANGED).copy()],
        window([1, 1, 2, 2], [1, 1, 1, 2], "SAME", data_format="NCHW"),
        lambda x: to_front(pooling(to_back(x), [2, 2], [1, 2], "SAME", np.mean)),
    ),
    Sample("AvgPool", [f32(1, 4, 4, 2)], window([1, 1, 1, 2], 1, "SAME"), raises=(UnimplementedError, "depth")),
    Sample("AvgPoolGrad", [[2, 5, 4, 3], f64(2, 5, 4, 3)], window(2, 1, "SAME")),
    Sample("AvgPoolGrad", [[2, 5, 4, 3], f64(2, 3, 2, 3)], window(3, 2, "SAME")),
    Sample(
        "MaxPool3D",
        [ARANGED.reshape(2, 5, 2, 2, 3)],
        window([1, 2, 2, 1, 1], [1, 2, 1, 1, 1], "SAME"),
        highest([2, 2, 1], [2, 1, 1], "SAME"),
    ),
    Sample(
        "AvgPool3D",
        [ARANGED.reshape(2, 5, 2, 2, 3)],
        window([1, 2, 2, 1, 1], [1, 2, 1, 1, 1], "SAME"),
        average([2, 2, 1], [2, 1, 1], "SAME"),
    ),
    Sample(
        "AvgPool3D",
        [to_front(ARANGED.reshape(2, 5, 2, 2, 3)).copy()],
        window([1, 1, 3, 2, 1], [1, 1, 2, 1, 1], "VALID", data_format="NCDHW"),
        lambda x: to_front(pooling(to_back(x), [3, 2, 1], [2, 1, 1], "VALID", np.mean)),
    ),
    Sample(
        "MaxPool3DGrad",
        [ARANGED.reshape(2, 5, 2, 2, 3), f64(2, 3, 2, 2, 3), f64(2, 3, 2, 2, 3)],
        window([1, 2, 2, 1, 1], [1, 2, 1, 1, 1], "SAME"),
        gradient=(2,),
    ),
    Sample("AvgPool3DGrad", [[2, 5, 2, 2, 3], f64(2, 3, 2, 2, 3)], window([1, 2, 2, 1, 1], [1, 2, 1, 1, 1], "SAME")),
]


@samples(SAMPLES)
def test_sample(sample: Sample) -> None:
    """The op does what its reference does, in every mode; the gradients of the gradient ops are right too."""
    check_sample(sample)


def test_windows_without_elements_are_refused() -> None:
    """A window of size 0 is refused by `max_pool` when the graph is built, by the ops when they run."""
    x = tf.zeros([1, 4, 4, 1])
    with pytest.raises(ValueError, match="`ksize` cannot be zero"):
        tf.nn.max_pool(x, [1, 0, 2, 1], [1, 1, 1, 1], "VALID")
    pooled = tf.nn.max_pool2d(x, 0, 1, "SAME")
    with tf.Session() as session, pytest.raises(InvalidArgumentError, match="Sliding window ksize"):
        session.run(pooled)


def test_ties_go_to_the_first_element() -> None:
    """Equal maxima of a window: the gradient flows to the first one, row by row, as in TensorFlow."""
    x = tf.constant(np.ones((1, 4, 4, 1), "f"))
    y = tf.nn.max_pool(x, 2, 2, "VALID")
    with tf.Session() as session:
        gradient = session.run(tf.gradients(y, x)[0])[0, :, :, 0]
    np.testing.assert_array_equal(gradient, [[1, 0, 1, 0], [0, 0, 0, 0], [1, 0, 1, 0], [0, 0, 0, 0]])


def test_argmax_counts_over_the_flattened_image_or_batch() -> None:
    """Positions are ((b * height + y) * width + x) * channels + c, the batch counted only if asked for."""
    x = ARANGED
    for padding in ("VALID", "SAME"):
        for batch in (False, True):
            with tf.Graph().as_default(), tf.Session() as session:
                found = session.run(
                    tf.nn.max_pool_with_argmax(
                        tf.constant(x), [1, 2, 2, 1], [1, 1, 1, 1], padding, include_batch_in_index=batch
                    )
                )
            flat = x.reshape(-1) if batch else x.reshape(2, -1)
            values, positions = found
            picked = flat[positions] if batch else np.stack([flat[i][positions[i]] for i in range(2)])
            np.testing.assert_array_equal(picked, values)
            np.testing.assert_array_equal(values, pooling(x, [2, 2], [1, 1], padding, np.max))


def test_argmax_gradient() -> None:
    """The gradient of MaxPoolWithArgmax is that of MaxPool."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant(ARANGED)
        first = tf.nn.max_pool_with_argmax(x, [1, 3, 3, 1], [1, 1, 1, 1], "SAME")[0]
        second = tf.nn.max_pool(x, 3, 1, "SAME")
        a, b = session.run([tf.gradients(tf.square(first), x)[0], tf.gradients(tf.square(second), x)[0]])
    np.testing.assert_allclose(a, b)


def test_second_derivative_of_max_pooling() -> None:
    """d/dx of the gradient of sum(max_pool(x)**2) is 2 at the maxima."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant(ARANGED)
        y = tf.nn.max_pool(x, 2, 2, "SAME")
        once = tf.gradients(tf.square(y), x)[0]
        twice = session.run(tf.gradients(once, x)[0])
        marks = session.run(tf.gradients(y, x)[0])
    np.testing.assert_allclose(twice, 2 * marks)
