"""Convolutions as products over windows equal torch's convolutions."""

from unittest import mock

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker._src.ops.nn import conv_kernels, conv_patches

pytestmark = pytest.mark.skipif(conv_patches._native is None, reason="the extension was not built")


@st.composite
def convolutions(draw):
    sizes = [draw(st.integers(1, 3)), draw(st.integers(3, 9)), draw(st.integers(3, 9)), draw(st.integers(1, 9))]
    filter_sizes = [draw(st.integers(1, 4)), draw(st.integers(1, 4)), sizes[3], draw(st.integers(1, 5))]
    strides = (1, draw(st.integers(1, 3)), draw(st.integers(1, 3)), 1)
    dilations = (1, draw(st.integers(1, 2)), draw(st.integers(1, 2)), 1)
    padding = draw(st.sampled_from(["SAME", "EXPLICIT"]))
    explicit = (0, 0, *[draw(st.integers(2, 5)) for _ in range(4)], 0, 0) if padding == "EXPLICIT" else ()
    return sizes, filter_sizes, strides, padding, explicit, dilations, draw(st.integers(0, 1000))


@settings(deadline=None, max_examples=60)
@given(convolutions())
def test_products_over_windows_equal_torchs_convolutions(case):
    """Forward, gradient of the input and gradient of the filter agree, for any stride, dilation and padding."""
    sizes, filter_sizes, strides, padding, explicit, dilations, seed = case
    random = np.random.RandomState(seed)
    x, w = (torch.from_numpy(random.randn(*each).astype("f")) for each in (sizes, filter_sizes))
    more = (strides, padding, explicit, "NHWC", dilations)

    def run():
        y = conv_kernels.conv_forward(x, w, *more)
        g = torch.from_numpy(np.random.RandomState(seed + 1).randn(*y.shape).astype("f"))
        return (
            y,
            conv_kernels.conv_backprop_input(sizes, w, g, *more),
            conv_kernels.conv_backprop_filter(x, filter_sizes, g, *more),
        )

    with mock.patch.object(conv_patches, "_FEW_CHANNELS", 100):
        found = run()
    with mock.patch.object(conv_patches, "_native", None):
        expected = run()
    for one, other in zip(found, expected):
        assert one.shape == other.shape and one.is_contiguous()
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-4)
