"""Convolutions as products over windows equal torch's convolutions."""

from unittest import mock

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import stoker.compat.v1 as tf
from stoker._src.ops.nn import conv_kernels, conv_patches

pytestmark = pytest.mark.skipif(conv_patches._native is None, reason="the extension was not built")


_CHANNELS = st.one_of(st.integers(1, 9), st.sampled_from((16, 19, 33, 50, 70)))


@st.composite
def convolutions(draw):
    """Sizes and attributes of a convolution over images or volumes."""
    rank = draw(st.sampled_from((2, 3)))
    space = [draw(st.integers(3, 9)) for _ in range(rank - 1)] + [draw(st.integers(3, 18))]
    sizes = [draw(st.integers(1, 3)), *space, draw(_CHANNELS)]
    window = draw(st.sampled_from([(1,) * rank, None])) or [draw(st.integers(1, 4)) for _ in range(rank)]
    filter_sizes = [*window, sizes[-1], draw(_CHANNELS)]
    strides = (1, *(draw(st.integers(1, 3)) for _ in range(rank)), 1)
    dilations = (1, *(draw(st.integers(1, 2)) for _ in range(rank)), 1)
    padding = draw(st.sampled_from(["SAME", "EXPLICIT"] if rank == 2 else ["SAME", "VALID"]))
    explicit = (0, 0, *[draw(st.integers(0, 5)) for _ in range(4)], 0, 0) if padding == "EXPLICIT" else ()
    for i in range(rank) if padding != "SAME" else ():  # a window must fit into the padded image
        assume(space[i] + sum(explicit[2 * i + 2 : 2 * i + 4]) > (window[i] - 1) * dilations[i + 1])
    return sizes, filter_sizes, strides, padding, explicit, dilations, draw(st.integers(0, 1000))


@pytest.mark.parametrize("copied", [False, True], ids=["where they lie", "copied"])
@settings(deadline=None, max_examples=100)
@given(case=convolutions())
def test_products_over_windows_equal_torchs_convolutions(copied, case):
    """Forward, gradient of the input and gradient of the filter agree, for any stride, dilation and padding."""
    sizes, filter_sizes, strides, padding, explicit, dilations, seed = case
    random = np.random.RandomState(seed)
    x, w = (torch.from_numpy(random.randn(*each).astype("f")) for each in (sizes, filter_sizes))
    more = (strides, padding, explicit, "NHWC" if len(sizes) == 4 else "NDHWC", dilations)

    def run():
        y = conv_kernels.conv_forward(x, w, *more)
        g = torch.from_numpy(np.random.RandomState(seed + 1).randn(*y.shape).astype("f"))
        return (
            y,
            conv_kernels.conv_backprop_input(sizes, w, g, *more),
            conv_kernels.conv_backprop_filter(x, filter_sizes, g, *more),
        )

    direct = None if copied else conv_patches._direct
    with (
        mock.patch.object(conv_patches, "_FEW_CHANNELS", 100),
        mock.patch.object(conv_patches, "_direct", direct),
        mock.patch.object(conv_kernels, "_routes", {}),
    ):
        found = run()
    with mock.patch.object(conv_patches, "_native", None), mock.patch.object(conv_kernels, "_routes", {}):
        expected = run()
    for one, other in zip(found, expected):
        assert one.shape == other.shape and one.is_contiguous()
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("copied", [False, True], ids=["where they lie", "copied"])
@pytest.mark.parametrize(
    ("sizes", "filter_sizes", "rate", "padding"),
    [
        ((2, 9, 8, 20), (3, 3, 20, 1), 1, "SAME"),
        ((3, 7, 8, 33), (2, 5, 33, 3), 1, "VALID"),
        ((1, 9, 9, 40), (3, 2, 40, 7), 2, "SAME"),
        ((2, 4, 5, 6, 18), (3, 2, 3, 18, 2), 1, "SAME"),
        ((70, 14, 14, 32), (5, 5, 32, 2), 1, "SAME"),  # more windows than are multiplied together
    ],
)
def test_few_results_of_many_channels(sizes, filter_sizes, rate, padding, copied):
    """A convolution from many channels to few has torch's results, forward and for the filter."""
    random = np.random.RandomState(0)
    x, w = (torch.from_numpy(random.randn(*each).astype("f")) for each in (sizes, filter_sizes))
    rank = x.dim() - 2
    more = ((1,) * x.dim(), padding, (), "NHWC" if rank == 2 else "NDHWC", (1, *[rate] * rank, 1))
    product = mock.Mock(wraps=conv_patches._exchanged)

    def run():
        y = conv_kernels.conv_forward(x, w, *more)
        g = torch.from_numpy(np.random.RandomState(1).randn(*y.shape).astype("f"))
        return y, conv_kernels.conv_backprop_filter(x, filter_sizes, g, *more)

    direct = None if copied else conv_patches._direct
    with (
        mock.patch.object(conv_patches, "_direct", direct),
        mock.patch.object(conv_patches, "_exchanged", product),
        mock.patch.object(conv_kernels, "_routes", {}),
    ):
        found = run()
    assert product.call_count == 2
    with mock.patch.object(conv_patches, "_native", None), mock.patch.object(conv_kernels, "_routes", {}):
        expected = run()
    for one, other in zip(found, expected):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4 * float(other.abs().max()))


@pytest.mark.skipif(conv_patches._direct is None, reason="the libraries of torch compute convolutions without AVX-512")
@pytest.mark.parametrize("space", [(13, 17), (5, 13, 7)], ids=["flat", "volumes"])
@pytest.mark.parametrize("images", [1, 3, 8])
def test_convolutions_do_not_depend_on_the_number_of_threads(images, space):
    """With stoker's own products, one, two and three threads give the same bits, forward and in both gradients."""
    random = np.random.RandomState(0)
    x, w, g = (
        torch.from_numpy(random.randn(*each).astype("f"))
        for each in ((images, *space, 20), (*[3] * len(space), 20, 24), (images, *space, 24))
    )
    ones = (1,) * x.dim()
    more = (ones, "SAME", (), "NHWC" if len(space) == 2 else "NDHWC", ones)
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            found.append(
                (
                    conv_kernels.conv_forward(x, w, *more),
                    conv_kernels.conv_backprop_input(x.shape, w, g, *more),
                    conv_kernels.conv_backprop_filter(x, w.shape, g, *more),
                )
            )
    finally:
        torch.set_num_threads(before)
    for others in found[1:]:
        assert all(torch.equal(one, other) for one, other in zip(found[0], others))


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("strides", [1, 2])
def test_filters_of_one_pixel_are_matrix_products(padding, strides):
    """A convolution with a filter of one pixel and its gradients have NumPy's values, in a plan in which they are fused."""
    random = np.random.RandomState(0)
    x, w = random.randn(3, 6, 5, 4).astype("f"), random.randn(1, 1, 4, 7).astype("f")
    with tf.Graph().as_default(), tf.Session() as session:
        image, weights = tf.placeholder(tf.float32, x.shape), tf.placeholder(tf.float32, w.shape)
        y = tf.nn.conv2d(tf.tanh(image), weights, [1, strides, strides, 1], padding)
        z = tf.tanh(y)
        found = session.run([z, *tf.gradients(z, [image, weights])], {image: x, weights: w})
    taken = np.tanh(x)[:, ::strides, ::strides]
    expected = np.tanh(taken @ w[0, 0])
    grad = 1 - expected**2
    to_image = np.zeros_like(x)
    to_image[:, ::strides, ::strides] = grad @ w[0, 0].T * (1 - taken**2)
    to_weights = np.einsum("nhwc,nhwo->co", taken, grad)[None, None]
    for one, other in zip(found, (expected, to_image, to_weights)):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@settings(deadline=None, max_examples=30)
@given(st.integers(8, 40), st.integers(1, 300), st.integers(2, 17), st.booleans(), st.integers(0, 1000))
def test_products_with_few_columns(rows, inner, columns, transposed, seed):
    """Images of one row with a filter as wide as their windows: products with 2 to 17 columns equal those of NumPy."""
    random = np.random.RandomState(seed)
    a, b = random.randn(rows, inner).astype("f"), random.randn(inner, columns).astype("f")
    x, w = torch.from_numpy(a).view(rows, 1, inner, 1), torch.from_numpy(b).view(1, inner, 1, columns)
    more = ((1, 1, 2, 1), "VALID", (), "NHWC", (1, 1, 1, 1))
    if transposed:
        g = torch.from_numpy(random.randn(rows, columns).astype("f"))
        found = conv_kernels.conv_backprop_filter(x, list(w.shape), g.view(rows, 1, 1, columns), *more)
        np.testing.assert_allclose(found.view(inner, columns), a.T @ g.numpy(), rtol=1e-4, atol=1e-3)
    else:
        found = conv_kernels.conv_forward(x, w, *more)
        np.testing.assert_allclose(found.view(rows, columns), a @ b, rtol=1e-4, atol=1e-3)


def test_parts_of_joined_images():
    """Images that are channels of other images take the same route as copies of them, forward and in both gradients."""
    random = np.random.RandomState(0)
    x, w, g = (
        torch.from_numpy(random.randn(*each).astype("f")) for each in ((2, 6, 7, 12), (3, 3, 5, 4), (2, 6, 7, 9))
    )
    x, g = x[..., 4:9], g[..., 2:6]
    more = ((1, 1, 1, 1), "SAME", (), "NHWC", (1, 1, 1, 1))
    for i in range(2):  # the second time by the known route
        found, expected = (
            (
                conv_kernels.conv_forward(images, w, *more),
                conv_kernels.conv_backprop_input(tuple(images.shape), w, gradient, *more),
                conv_kernels.conv_backprop_filter(images, tuple(w.shape), gradient, *more),
            )
            for images, gradient in ((x, g), (x.contiguous(), g.contiguous()))
        )
        assert all(torch.equal(one, other) for one, other in zip(found, expected)), i
