"""Convolutions with filters of three by three and five by five pixels, whose images and filters are transformed, equal those that are not."""

from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker._src.ops.nn import conv_kernels, conv_patches

pytestmark = pytest.mark.skipif(
    conv_patches._winograd is None, reason="this processor has no use for it, or it was not built"
)

_CHANNELS = st.integers(8, 70)


@st.composite
def convolutions(draw, sides=(3, 5)):
    sizes = (draw(st.integers(1, 3)), draw(st.integers(2, 19)), draw(st.integers(2, 23)), draw(_CHANNELS))
    side = draw(st.sampled_from(sides))
    explicit = tuple(draw(st.integers(0, side - 1)) for _ in range(4))
    fits = all(sizes[i + 1] + explicit[2 * i] + explicit[2 * i + 1] > side for i in (0, 1))
    padding = draw(st.sampled_from(["SAME", "EXPLICIT"])) if fits else "SAME"
    return (
        sizes,
        (side, side, sizes[-1], draw(_CHANNELS)),
        padding,
        (0, 0, *explicit, 0, 0) if padding == "EXPLICIT" else (),
    )


def _run(sizes, filter_sizes, padding, explicit, tensors, double=False, without=()):
    """(results, gradient of the images, gradient of the filter)"""
    x, w, g = (torch.from_numpy(each.astype("d" if double else "f")) for each in tensors)
    more = ((1, 1, 1, 1), padding, explicit, "NHWC", (1, 1, 1, 1))
    with (
        mock.patch.multiple(conv_patches, _FEWEST_CHANNELS=0, _FEWEST_SQUARES=0, **dict.fromkeys(without)),
        mock.patch.object(conv_kernels, "_routes", {}),
    ):
        y = conv_kernels.conv_forward(x, w, *more)
        g = g.view(-1)[: y.numel()].view(y.shape)
        return (
            y,
            conv_kernels.conv_backprop_input(sizes, w, g, *more),
            conv_kernels.conv_backprop_filter(x, filter_sizes, g, *more),
        )


def _tensors(draw, sizes, filter_sizes):
    results = sizes[0] * (sizes[1] + 8) * (sizes[2] + 8) * filter_sizes[-1]
    return draw(*sizes), draw(*filter_sizes), draw(results)


@settings(deadline=None, max_examples=60)
@given(case=convolutions(), seed=st.integers(0, 1000))
def test_results_are_as_near_as_those_of_the_definition(case: Any, seed):
    """Against float64, errors are within 1e-5 of a typical sum's size (1e-4 for five by five pixels), forward and in both gradients, for any
    padding and odd sizes."""
    tensors = _tensors(np.random.RandomState(seed).randn, *case[:2])
    found, expected = _run(*case, tensors), _run(*case, tensors, double=True)
    side = case[1][0]
    terms = side**2 * case[0][-1], side**2 * case[1][-1], found[0].numel() // case[1][-1]
    for one, other, count in zip(found, expected, terms):
        assert one.shape == other.shape and one.is_contiguous() and one.dtype is torch.float32
        assert (one - other).abs().max().item() <= (1e-5 if side == 3 else 1e-4) * count**0.5


@settings(deadline=None, max_examples=30)
@given(case=convolutions(sides=(3,)), seed=st.integers(0, 1000))
def test_small_integers_are_exact(case: Any, seed):
    """Sums of products of small integers and three by three pixels are those integers, as without the transformations."""
    random = np.random.RandomState(seed)
    tensors = _tensors(lambda *sizes: random.randint(-4, 5, sizes), *case[:2])
    for one, other in zip(_run(*case, tensors), _run(*case, tensors, without=["_winograd"])):
        assert torch.equal(one, other)


@pytest.mark.parametrize("side", [3, 5])
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 3e38])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_numbers_that_are_not_finite_stay_where_they_belong(place, value, side):
    """An infinity, a NaN or an overflow reaches the results that the definition says, and no others."""
    case: Any = (2, 9, 10, 16), (side, side, 16, 20), "SAME", ()
    tensors = _tensors(np.random.RandomState(0).randn, *case[:2])
    tensors[place].reshape(-1)[1234] = value
    found, expected = _run(*case, tensors), _run(*case, tensors, without=["_winograd"])
    for one, other in zip(found, expected):
        assert torch.equal(torch.isfinite(one), torch.isfinite(other))
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("side", [3, 5])
@pytest.mark.parametrize("channels", [(20, 24), (64, 70)])
def test_results_do_not_depend_on_the_number_of_threads(channels, side):
    """One, two, three and seventeen threads give the same bits, forward and in both gradients."""
    case: Any = (5, 17, 18, channels[0]), (side, side, *channels), "SAME", ()
    tensors = _tensors(np.random.RandomState(0).randn, *case[:2])
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3, 17):
            torch.set_num_threads(threads)
            found.append(_run(*case, tensors))
    finally:
        torch.set_num_threads(before)
    for others in found[1:]:
        assert all(torch.equal(one, other) for one, other in zip(found[0], others))
