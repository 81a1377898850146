"""Depthwise convolutions and their gradients have the values of sums in float64, with and without the extension."""

from unittest import mock

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import stoker.compat.v1 as tf
from stoker._src.ops.nn import conv_kernels, conv_patches
from tests.ops.nn.references import output_sizes, paddings

native = pytest.mark.skipif(conv_patches._depthwise is None, reason="the extension was not built")


class Reference:
    """A depthwise convolution tap by tap: each element of the filter multiplies one regular pattern of padded pixels."""

    def __init__(self, sizes, filter_sizes, strides, padding, rates):
        self.sizes, self.filter_sizes, self.strides, self.rates = sizes, filter_sizes, strides, rates
        self.pads = paddings(sizes[1:3], filter_sizes[:2], strides, rates, padding)
        self.outputs = output_sizes(sizes[1:3], filter_sizes[:2], strides, rates, self.pads)

    def taps(self):
        """(row, column, the pixels of a padded image that this element of the filter multiplies)."""
        for i, j in np.ndindex(*self.filter_sizes[:2]):
            starts = (i * self.rates[0], j * self.rates[1])
            taken = (
                slice(start, start + (count - 1) * step + 1, step)
                for start, count, step in zip(starts, self.outputs, self.strides)
            )
            yield i, j, (slice(None), *taken)

    def padded(self):
        (above, below), (before, behind) = self.pads
        images, height, width, channels = self.sizes
        return np.zeros((images, above + height + below, before + width + behind, channels))

    def inside(self, padded):
        (above, _), (before, _) = self.pads
        return padded[:, above : above + self.sizes[1], before : before + self.sizes[2]]

    def forward(self, x, w):
        padded = self.padded()
        self.inside(padded)[:] = x
        total = sum(padded[taken][..., None] * w[i, j] for i, j, taken in self.taps())
        return np.reshape(total, (self.sizes[0], *self.outputs, -1))

    def gradients(self, x, w, g):
        """Of the images and of the filter."""
        padded, to_padded, to_filter = self.padded(), self.padded(), np.zeros(self.filter_sizes)
        self.inside(padded)[:] = x
        g = np.reshape(g, (self.sizes[0], *self.outputs, *self.filter_sizes[2:]))
        for i, j, taken in self.taps():
            to_padded[taken] += np.sum(g * w[i, j], -1)
            to_filter[i, j] = np.einsum("nhwc,nhwcm->cm", padded[taken], g)
        return self.inside(to_padded), to_filter


@st.composite
def cases(draw):
    channels = draw(st.one_of(st.integers(1, 9), st.sampled_from((16, 19, 24, 31, 40))))
    sizes = [draw(st.integers(1, 3)), draw(st.integers(1, 9)), draw(st.integers(1, 40)), channels]
    filter_sizes = [draw(st.integers(1, 4)), draw(st.integers(1, 7)), channels, draw(st.sampled_from((1, 1, 2, 3)))]
    strides = [draw(st.integers(1, 3)), draw(st.integers(1, 3))]
    rates = [draw(st.integers(1, 3)), draw(st.integers(1, 3))]
    explicit = st.tuples(st.integers(0, 5), st.integers(0, 5))
    padding = draw(st.one_of(st.sampled_from(("SAME", "VALID")), st.tuples(explicit, explicit)))
    pads = paddings(sizes[1:3], filter_sizes[:2], strides, rates, padding)
    for size, window, rate, pad in zip(sizes[1:3], filter_sizes, rates, pads):
        assume(size + sum(pad) > (window - 1) * rate)  # a window must fit into the padded image
    return sizes, filter_sizes, strides, padding, rates, draw(st.integers(0, 1000))


def _kernels(x, w, g, strides, padding, rates):
    """The result and both gradients by the kernels."""
    explicit = () if isinstance(padding, str) else (0, 0, *padding[0], *padding[1], 0, 0)
    more = (1, *strides, 1), padding if isinstance(padding, str) else "EXPLICIT", explicit, "NHWC", (1, *rates, 1)
    grouped = conv_kernels.grouped_filter(w)
    to_filter = conv_kernels.conv_backprop_filter(x, grouped.shape, g, *more)
    return (
        conv_kernels.conv_forward(x, grouped, *more, op="DepthwiseConv2dNative"),
        conv_kernels.conv_backprop_input(tuple(x.shape), grouped, g, *more),
        to_filter.reshape(w.shape),
    )


def _tensors(seed, *sizes):
    random = np.random.RandomState(seed)
    return [random.randn(*each).astype("f") for each in sizes]


@pytest.mark.parametrize("extension", [pytest.param(True, marks=native), False], ids=["native", "twin"])
@settings(deadline=None, max_examples=120)
@given(case=cases())
def test_values_and_gradients_equal_sums_in_float64(extension, case):
    """Any sizes, strides, dilations, paddings and numbers of filters for a channel."""
    sizes, filter_sizes, strides, padding, rates, seed = case
    reference = Reference(sizes, filter_sizes, strides, padding, rates)
    result = (sizes[0], *reference.outputs, filter_sizes[2] * filter_sizes[3])
    x, w, g = _tensors(seed, sizes, filter_sizes, result)
    used = mock.patch.object(conv_patches, "_depthwise", conv_patches._depthwise if extension else None)
    image, filters, gradient = map(torch.from_numpy, (x, w, g))
    with used, mock.patch.object(conv_kernels, "_routes", {}):
        found = _kernels(image, filters, gradient, strides, padding, rates)
    x, w, g = (each.astype("d") for each in (x, w, g))
    for one, other in zip(found, (reference.forward(x, w), *reference.gradients(x, w, g))):
        assert one.shape == other.shape and one.is_contiguous()
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5)


@native
@pytest.mark.parametrize("channels", [3, 24])
def test_the_number_of_threads_changes_no_bit(channels):
    """One, two and three threads give the same results, forward and in both gradients."""
    x, w, g = map(torch.from_numpy, _tensors(0, (3, 13, 17, channels), (3, 3, channels, 2), (3, 7, 9, 2 * channels)))
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            found.append(_kernels(x, w, g, [2, 2], "SAME", [1, 1]))
    finally:
        torch.set_num_threads(before)
    for others in found[1:]:
        assert all(torch.equal(one, other) for one, other in zip(found[0], others))


def test_convolutions_with_a_group_for_each_channel():
    """`tf.nn.conv2d` with a filter of one input channel is a depthwise convolution, also in its gradients."""
    x, w, g = _tensors(1, (2, 6, 7, 10), (3, 3, 1, 20), (2, 3, 4, 20))
    with tf.Graph().as_default(), tf.Session() as session:
        image, filters = tf.placeholder(tf.float32, x.shape), tf.placeholder(tf.float32, w.shape)
        y = tf.nn.conv2d(image, filters, [1, 2, 2, 1], "SAME")
        found = session.run([y, *tf.gradients(y, [image, filters], g)], {image: x, filters: w})
    reference = Reference(x.shape, (3, 3, 10, 2), (2, 2), "SAME", (1, 1))
    x, w, g = x.astype("d"), w.astype("d").reshape(3, 3, 10, 2), g.astype("d")
    to_image, to_filter = reference.gradients(x, w, g)
    for one, other in zip(found, (reference.forward(x, w), to_image, to_filter.reshape(3, 3, 1, 20))):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5)
