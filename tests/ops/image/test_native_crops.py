"""Crops that are resampled natively, and their gradient, equal those of torch's kernels."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import stoker.compat.v1 as tf
from stoker._src.ops.image import cropping


def _crops(image, boxes, places, size, method, gradient):
    with tf.Graph().as_default(), tf.Session() as session:
        given_image = tf.placeholder_with_default(image, None)
        made = tf.image.crop_and_resize(given_image, boxes, places, size, method=method, extrapolation_value=7.0)
        return session.run([made, tf.gradients(made, given_image, gradient)[0]])


@pytest.mark.skipif(cropping._native is None, reason="the extension is not built")
@given(
    st.tuples(st.integers(1, 3), st.integers(1, 9), st.integers(1, 9), st.integers(1, 20)),
    st.integers(1, 6),
    st.tuples(st.integers(1, 7), st.integers(1, 7)),
    st.sampled_from(["bilinear", "nearest"]),
    st.integers(0, 1000),
)
@settings(deadline=None, max_examples=60)
def test_native_crops_are_the_same(shape, count, size, method, seed):
    """Boxes inside, partly outside, turned over and of no extent: crops and gradients agree bit by bit with and without the extension."""
    random = np.random.RandomState(seed)
    image = random.randn(*shape).astype(np.float32)
    boxes = random.uniform(-0.3, 1.3, [count, 4]).astype(np.float32)
    boxes[random.rand(count) < 0.2] = 0.5
    places = random.randint(0, shape[0], count).astype(np.int32)
    gradient = random.randn(count, *size, shape[3]).astype(np.float32)
    found = _crops(image, boxes, places, size, method, gradient)
    native, cropping._native = cropping._native, None
    try:
        expected = _crops(image, boxes, places, size, method, gradient)
    finally:
        cropping._native = native
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_array_equal(found[1], expected[1])


@pytest.mark.skipif(cropping._native is None, reason="the extension is not built")
@pytest.mark.parametrize("threads", [1, 3])
def test_large_crops_do_not_depend_on_the_number_of_threads(threads):
    """Boxes are shared among threads, and for the gradient images."""
    random = np.random.RandomState(0)
    image, boxes = random.randn(5, 30, 40, 16).astype(np.float32), random.uniform(-0.1, 1.1, [40, 4]).astype(np.float32)
    places, gradient = random.randint(0, 5, 40).astype(np.int32), random.randn(40, 14, 14, 16).astype(np.float32)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        expected = _crops(image, boxes, places, (14, 14), "bilinear", gradient)
        torch.set_num_threads(threads)
        found = _crops(image, boxes, places, (14, 14), "bilinear", gradient)
    finally:
        torch.set_num_threads(before)
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_array_equal(found[1], expected[1])
