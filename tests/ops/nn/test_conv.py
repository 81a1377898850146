"""Convolutions against loops over output positions."""

import numpy as np
import pytest

import stoker.compat.v1 as tf
from stoker._src.base.errors import InvalidArgumentError, UnimplementedError
from stoker._src.ops.nn import conv_kernels
from tests.ops.nn.references import convolution, depthwise, to_back, to_front
from tests.ops.samples import WHEN_BUILT, Sample, check_sample, f32, f64, i32, samples

ONES = [1, 1, 1, 1]


def conv(strides, padding, rates=None):
    return lambda x, w: convolution(x, w, strides, padding, rates)


SAMPLES = [
    Sample("Conv2D", [f64(2, 5, 4, 2), f64(3, 3, 2, 3)], {"strides": ONES, "padding": "SAME"}, conv([1, 1], "SAME")),
    Sample("Conv2D", [f64(1, 5, 6, 2), f64(3, 2, 2, 3)], {"strides": ONES, "padding": "VALID"}, conv([1, 1], "VALID")),
    Sample(
        "Conv2D", [f64(1, 5, 6, 2), f64(3, 3, 2, 2)], {"strides": [1, 2, 2, 1], "padding": "SAME"}, conv([2, 2], "SAME")
    ),
    Sample(
        "Conv2D", [f64(1, 6, 6, 1), f64(2, 2, 1, 2)], {"strides": [1, 1, 3, 1], "padding": "SAME"}, conv([1, 3], "SAME")
    ),
    Sample(
        "Conv2D", [f64(1, 6, 6, 1), f64(1, 1, 1, 2)], {"strides": [1, 2, 2, 1], "padding": "SAME"}, conv([2, 2], "SAME")
    ),
    Sample(
        "Conv2D",
        [f64(1, 6, 7, 1), f64(2, 3, 1, 2)],
        {"strides": ONES, "padding": "SAME", "dilations": [1, 2, 3, 1]},
        conv([1, 1], "SAME", [2, 3]),
    ),
    Sample(
        "Conv2D",
        [f64(1, 4, 4, 1), f64(2, 2, 1, 1)],
        {"strides": [1, 2, 1, 1], "padding": "EXPLICIT", "explicit_paddings": [0, 0, 1, 0, 2, 3, 0, 0]},
        conv([2, 1], [(1, 0), (2, 3)]),
    ),
    Sample("Conv2D", [f64(1, 4, 4, 4), f64(2, 2, 2, 4)], {"strides": ONES, "padding": "SAME"}, conv([1, 1], "SAME")),
    Sample(
        "Conv2D",
        [f64(2, 2, 5, 4), f64(3, 3, 2, 3)],
        {"strides": [1, 1, 2, 2], "padding": "SAME", "data_format": "NCHW"},
        lambda x, w: to_front(convolution(to_back(x), w, [2, 2], "SAME")),
    ),
    Sample(
        "Conv2D",
        [f32(2, 5, 4, 3), f32(3, 3, 3, 4)],
        {"strides": ONES, "padding": "SAME"},
        conv([1, 1], "SAME"),
        atol=1e-5,
    ),
    Sample(
        "Conv2D",
        [i32(1, 4, 4, 2), i32(2, 2, 2, 3)],
        {"strides": ONES, "padding": "VALID"},
        conv([1, 1], "VALID"),
        gradient=False,
    ),
    Sample("Conv2D", [f64(0, 5, 4, 2), f64(3, 3, 2, 3)], {"strides": ONES, "padding": "SAME"}, conv([1, 1], "SAME")),
    Sample(
        "Conv2D",
        [f32(1, 4, 4, 3), f32(2, 2, 2, 4)],
        {"strides": ONES, "padding": "SAME"},
        raises=(InvalidArgumentError, "3.*2"),
    ),
    Sample(
        "Conv2D",
        [f32(1, 2, 2, 1), f32(4, 4, 1, 1)],
        {"strides": ONES, "padding": "VALID"},
        raises=(InvalidArgumentError, "negative|Negative"),
    ),
    Sample(
        "Conv2D",
        [f32(1, 2, 2, 1), f32(1, 1, 1, 1)],
        {"strides": [2, 1, 1, 1], "padding": "VALID"},
        raises=(UnimplementedError, "batch and depth"),
    ),
    Sample(
        "Conv2D",
        [f32(1, 2, 2, 1), f32(1, 1, 1, 1)],
        {"strides": ONES, "padding": "EXPLICIT", "explicit_paddings": [1, 0]},
        raises=(WHEN_BUILT, "must contain 8 values, but got: 2"),
    ),
    Sample(
        "Conv2DBackpropInput",
        [[1, 5, 4, 2], f64(3, 3, 2, 3), f64(1, 3, 2, 3)],
        {"strides": [1, 2, 2, 1], "padding": "SAME"},
    ),
    Sample(
        "Conv2DBackpropInput",
        [[1, 4, 6, 1], f64(3, 2, 1, 2), f64(1, 2, 2, 2)],
        {"strides": [1, 2, 3, 1], "padding": "SAME"},
    ),
    Sample(
        "Conv2DBackpropInput",
        [[1, 1, 4, 4], f64(2, 2, 1, 2), f64(1, 2, 4, 4)],
        {"strides": ONES, "padding": "SAME", "data_format": "NCHW"},
    ),
    Sample(
        "Conv2DBackpropInput",
        [[1, 5, 5, 2], f32(3, 3, 2, 3), f32(1, 4, 4, 3)],
        {"strides": ONES, "padding": "VALID"},
        raises=(InvalidArgumentError, "out_backprop"),
    ),
    Sample(
        "Conv2DBackpropFilter",
        [f64(2, 5, 4, 2), [3, 3, 2, 2], f64(2, 3, 2, 2)],
        {"strides": [1, 2, 2, 1], "padding": "SAME"},
    ),
    Sample(
        "Conv2DBackpropFilter", [f64(1, 4, 4, 4), [2, 2, 2, 2], f64(1, 4, 4, 2)], {"strides": ONES, "padding": "SAME"}
    ),
    Sample(
        "DepthwiseConv2dNative",
        [f64(1, 4, 5, 2), f64(3, 2, 2, 2)],
        {"strides": ONES, "padding": "SAME"},
        lambda x, w: depthwise(x, w, [1, 1], "SAME"),
    ),
    Sample(
        "DepthwiseConv2dNative",
        [f64(1, 3, 5, 5), f64(2, 2, 3, 1)],
        {"strides": [1, 1, 2, 2], "padding": "SAME", "data_format": "NCHW"},
        lambda x, w: to_front(depthwise(to_back(x), w, [2, 2], "SAME")),
    ),
    Sample(
        "DepthwiseConv2dNative",
        [f32(1, 4, 5, 2), f32(3, 2, 3, 2)],
        {"strides": ONES, "padding": "SAME"},
        raises=(InvalidArgumentError, "2 vs 3"),
    ),
    Sample(
        "DepthwiseConv2dNativeBackpropInput",
        [[1, 4, 4, 2], f64(2, 2, 2, 2), f64(1, 4, 4, 4)],
        {"strides": ONES, "padding": "SAME"},
    ),
    Sample(
        "DepthwiseConv2dNativeBackpropFilter",
        [f64(1, 4, 4, 2), [2, 2, 2, 2], f64(1, 4, 4, 4)],
        {"strides": ONES, "padding": "SAME"},
    ),
    Sample(
        "Conv3D",
        [f64(1, 3, 4, 3, 2), f64(2, 3, 2, 2, 2)],
        {"strides": [1, 1, 2, 1, 1], "padding": "SAME"},
        conv([1, 2, 1], "SAME"),
    ),
    Sample(
        "Conv3D",
        [f64(1, 2, 3, 4, 3), f64(2, 2, 2, 2, 1)],
        {"strides": [1] * 5, "padding": "VALID", "data_format": "NCDHW"},
        lambda x, w: to_front(convolution(to_back(x), w, [1, 1, 1], "VALID")),
    ),
    Sample(
        "Conv3DBackpropInputV2",
        [[1, 3, 3, 3, 1], f64(2, 2, 2, 1, 2), f64(1, 3, 3, 3, 2)],
        {"strides": [1] * 5, "padding": "SAME"},
    ),
    Sample(
        "Conv3DBackpropFilterV2",
        [f64(1, 3, 3, 3, 1), [2, 2, 2, 1, 2], f64(1, 2, 2, 2, 2)],
        {"strides": [1] * 5, "padding": "VALID"},
    ),
    Sample(
        "Conv3DBackpropInput",
        [f64(1, 3, 3, 3, 1), f64(2, 2, 2, 1, 2), f64(1, 3, 3, 3, 2)],
        {"strides": [1] * 5, "padding": "SAME"},
        gradient=(1, 2),
    ),
    Sample(
        "Conv3DBackpropFilter",
        [f64(1, 3, 3, 3, 1), f64(2, 2, 2, 1, 2), f64(1, 2, 2, 2, 2)],
        {"strides": [1] * 5, "padding": "VALID"},
        gradient=(0, 2),
    ),
]


@samples(SAMPLES)
def test_sample(sample: Sample) -> None:
    """The op does what its reference does, in every mode; the gradients of the gradient ops are right too."""
    check_sample(sample)


def test_backprop_input_is_the_transposed_convolution() -> None:
    """<conv(x), g> equals <x, backprop_input(g)> for every x and g: the one is the other's transpose."""
    x, w, g = f64(2, 7, 6, 3), f64(3, 3, 3, 4), f64(2, 4, 3, 4)
    with tf.Graph().as_default(), tf.Session() as session:
        y = tf.nn.conv2d(tf.constant(x), tf.constant(w), [1, 2, 2, 1], "SAME")
        back = tf.nn.conv2d_backprop_input(x.shape, tf.constant(w), tf.constant(g), [1, 2, 2, 1], "SAME")
        forward, backward = session.run([y, back])
    np.testing.assert_allclose((forward * g).sum(), (x * backward).sum())


def test_windows_far_apart() -> None:
    """Strides far beyond the window leave zeros between: each output element is spread by its own filter."""
    g, w = f64(1, 2, 3, 1), f64(2, 1, 1, 1)
    for padding, rows, first in (("SAME", 80, 0), ("VALID", 80, 0), ("SAME", 41, 0)):
        with tf.Graph().as_default(), tf.Session() as session:
            found = session.run(tf.nn.conv2d_transpose(g, w, [1, rows, 60, 1], [1, 40, 20, 1], padding))
        expected = np.zeros((1, rows + 1, 60, 1))
        for row in range(2):
            expected[:, first + 40 * row : first + 40 * row + 2, ::20] += (
                g[:, row : row + 1] * w[None, :, :, 0, 0, None]
            )
        np.testing.assert_allclose(found, expected[:, :rows])


@pytest.mark.parametrize("native", [True, False])
def test_images_of_one_channel_whose_rows_give_one_result(monkeypatch, native) -> None:
    """A filter as wide as the images, with a stride, is applied to each row once, by the native kernels and by torch's."""
    if not native:
        monkeypatch.setattr(conv_kernels, "_by_route", lambda *_: None)
        monkeypatch.setattr(conv_kernels, "_by_known_route", lambda *_: None)
    x, w = f32(13, 20, 4, 1), f32(1, 3, 1, 32)
    volumes, filters = x.reshape(13, 4, 5, 4, 1), w[None]
    with tf.Graph().as_default(), tf.Session() as session:
        fed, fed_volumes = (tf.placeholder(tf.float32, [None, *each.shape[1:]]) for each in (x, volumes))
        found = session.run(
            [tf.nn.conv2d(fed, w, [1, 1, 2, 1], "VALID"), tf.nn.conv3d(fed_volumes, filters, [1, 1, 1, 2, 1], "VALID")],
            {fed: x, fed_volumes: volumes},
        )
    expected = np.einsum("bhwi,wio->bho", x[:, :, :3], w[0])[:, :, None]
    np.testing.assert_allclose(found[0], expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found[1], expected.reshape(13, 4, 5, 1, 32), rtol=1e-5, atol=1e-5)


def test_gradients_of_filters_of_one_element_with_strides() -> None:
    """The gradient of a 1 x 1 filter sums over the elements at the strides, in float32, also with explicit padding."""
    x, g = f32(2, 6, 6, 4), f32(2, 4, 4, 8)
    padded = np.pad(x, [(0, 0), (1, 1), (1, 1), (0, 0)])
    with tf.Graph().as_default(), tf.Session() as session:
        strides, pads = [1, 2, 2, 1], [[0, 0], [1, 1], [1, 1], [0, 0]]
        plain = tf.nn.conv2d_backprop_filter(x, [1, 1, 4, 8], tf.constant(g[:, :3, :3]), strides, "SAME")
        explicit = tf.nn.conv2d_backprop_filter(x, [1, 1, 4, 8], tf.constant(g), strides, pads)
        found = session.run([plain, explicit])
    expected = [
        np.einsum("bhwi,bhwo->io", x[:, ::2, ::2], g[:, :3, :3]),
        np.einsum("bhwi,bhwo->io", padded[:, ::2, ::2], g),
    ]
    for value, reference in zip(found, expected):
        np.testing.assert_allclose(value[0, 0], reference, rtol=1e-5, atol=1e-5)
