"""What tf.image refuses, and how."""

import numpy as np
import pytest

import stoker as tf
import stoker.compat.v1 as tf1


def z(*shape):
    return np.zeros(shape, np.float32)


REFUSED = [
    (lambda: tf.image.flip_left_right(z(2, 3)), "at least three-dimensional"),
    (lambda: tf.image.flip_up_down(z(1, 1, 2, 2, 3)), "either 3 or 4 dimensions"),
    (lambda: tf.image.flip_left_right(z(0, 2, 3)), "inner 3 dims of .*image.shape.* must be > 0"),
    (lambda: tf.image.rot90(z(2, 2, 3), [1]), "rank 0"),
    (lambda: tf.image.transpose(z(1, 1, 2, 2, 3)), "either 3 or 4 dimensions"),
    (lambda: tf.image.random_flip_left_right(z(2, 3)), "at least three-dimensional"),
    (lambda: tf.image.per_image_standardization(z(2, 3)), "at least three-dimensional"),
    (lambda: tf.image.central_crop(z(5, 6, 3), 0.0), r"central_fraction must be within \(0, 1\]"),
    (lambda: tf.image.central_crop(z(5, 6, 3), 1.1), r"central_fraction must be within \(0, 1\]"),
    (lambda: tf.image.central_crop(z(5, 6), 0.5), "at least three-dimensional"),
    (lambda: tf.image.crop_to_bounding_box(z(5, 6, 3), -1, 0, 2, 2), "offset_height must be >= 0"),
    (lambda: tf.image.crop_to_bounding_box(z(5, 6, 3), 0, -1, 2, 2), "offset_width must be >= 0"),
    (lambda: tf.image.crop_to_bounding_box(z(5, 6, 3), 0, 0, 0, 2), "target_height must be > 0"),
    (lambda: tf.image.crop_to_bounding_box(z(5, 6, 3), 4, 0, 2, 2), "height must be >= target . offset"),
    (lambda: tf.image.crop_to_bounding_box(z(5, 6, 3), 0, 5, 2, 2), "width must be >= target . offset"),
    (lambda: tf.image.crop_to_bounding_box(z(5, 6), 0, 0, 1, 1), "either 3 or 4 dimensions"),
    (lambda: tf.image.pad_to_bounding_box(z(5, 6, 3), -1, 0, 9, 9), "offset_height must be >= 0"),
    (lambda: tf.image.pad_to_bounding_box(z(5, 6, 3), 5, 0, 9, 9), "height must be <= target - offset"),
    (lambda: tf.image.pad_to_bounding_box(z(5, 6, 3), 0, 4, 9, 9), "width must be <= target - offset"),
    (lambda: tf.image.resize_with_crop_or_pad(z(5, 6, 3), 0, 2), "target_height must be > 0"),
    (lambda: tf.image.resize_with_crop_or_pad(z(5, 6, 3), 2, -1), "target_width must be > 0"),
    (lambda: tf.image.resize_with_pad(z(5, 6, 3), 0, 2), "target_height must be > 0"),
    (lambda: tf.image.resize(z(5, 6, 3), [1, 2, 3]), "1-D Tensor of 2 elements"),
    (lambda: tf.image.resize(z(5, 6, 3), 3), "1-D Tensor of 2 elements"),
    (lambda: tf.image.resize(z(5, 6, 3), [1.5, 2]), "1-D int32 Tensor"),
    (lambda: tf.image.resize(z(5, 6), [2, 2]), "either 3 or 4 dimensions"),
    (lambda: tf.image.resize(z(5, 6, 3), [2, 2], method="x"), "Resize method is not implemented: x"),
    (lambda: tf.image.resize(z(5, 6, 3), [2, 2], method=0), "Resize method is not implemented: 0"),
    (lambda: tf1.image.resize_images(z(5, 6, 3), [2, 2], method=9), "Resize method is not implemented: 9"),
    (lambda: tf.image.adjust_gamma(z(2, 2, 3), -1), "Gamma should be a non-negative real number"),
    (lambda: tf.image.random_brightness(z(2, 2, 3), -1), "max_delta must be non-negative"),
    (lambda: tf.image.random_contrast(z(2, 2, 3), 1, 1), "upper must be > lower"),
    (lambda: tf.image.random_contrast(z(2, 2, 3), -1, 1), "lower must be non-negative"),
    (lambda: tf.image.random_hue(z(2, 2, 3), 0.6), "max_delta must be <= 0.5"),
    (lambda: tf.image.random_hue(z(2, 2, 3), -0.1), "max_delta must be non-negative"),
    (lambda: tf.image.random_saturation(z(2, 2, 3), 1, 0.5), "upper must be > lower"),
    (lambda: tf.image.random_jpeg_quality(z(8, 8, 3), -1, 5), "between 0 and 100"),
    (lambda: tf.image.random_jpeg_quality(z(8, 8, 3), 7, 5), "must be less than"),
    (lambda: tf.image.ssim(z(15, 15, 3), z(15, 16, 3), 1.0), "incompatible"),
    (lambda: tf.image.ssim(z(15, 15), z(15, 15), 1.0), "rank at least 3"),
    (lambda: tf.image.image_gradients(z(5, 5, 3)), "expects a 4D tensor"),
    (lambda: tf.image.total_variation(z(5, 5)), "either 3 or 4-dimensional"),
    (lambda: tf.image.grayscale_to_rgb(z(5, 5, 3)), "should be size 1"),
    (lambda: tf1.image.crop_and_resize(z(1, 5, 5, 3), z(1, 4), [0], (2, 2), box_indices=[0]), "both"),
    (lambda: tf.image.non_max_suppression_padded(z(2, 5, 4), z(2, 5), 3), "must be True for batched input"),
]  # fmt: skip


@pytest.mark.parametrize("call, text", REFUSED, ids=[text for _, text in REFUSED])
@pytest.mark.parametrize("mode", ["graph", "eager"])
def test_refused(request, mode, call, text):
    """A bad call is a ValueError with TensorFlow's words, in graphs and eagerly."""
    if mode == "eager":
        request.getfixturevalue("eager")
    with tf1.Graph().as_default() if mode == "graph" else tf1.name_scope("x"), pytest.raises(ValueError, match=text):
        call()


@pytest.mark.parametrize("dtype", [tf.complex64, tf.string, tf.bool])
def test_pixels_are_numbers(dtype):
    """Images are converted to integers and floats only."""
    with tf1.Graph().as_default(), pytest.raises(AttributeError, match="either floating point or integer"):
        tf.image.convert_image_dtype(z(2, 2, 3), dtype)


def test_hue_beyond_a_turn_is_refused_eagerly(eager):
    """Eager mode knows the turn, and takes one of -1 to 1."""
    with pytest.raises(ValueError, match=r"interval \[-1, 1\]"):
        tf.image.adjust_hue(z(2, 2, 3), 2.0)


UNKNOWN = [
    (lambda x: tf.image.crop_to_bounding_box(x, 1, 1, 4, 4), z(3, 9, 3), "height must be >= target . offset"),
    (lambda x: tf.image.pad_to_bounding_box(x, 1, 1, 4, 4), z(3, 9, 3), "width must be <= target - offset"),
    (lambda x: tf.image.flip_left_right(x), z(0, 9, 3), "inner 3 dims of .*image.shape.* must be > 0"),
    (lambda x: tf.image.resize_with_crop_or_pad(x, 4, 4), z(3, 0, 3), "inner 3 dims of .*image.shape.* must be > 0"),
    (lambda x: tf.image.ssim(x, x, 1.0), z(3, 9, 3), "11"),
    (lambda x: tf.image.stateless_random_crop(x, [5, 5, 3], (1, 2)), z(3, 9, 3), "Need value.shape >= size"),
]  # fmt: skip


@pytest.mark.parametrize("call, value, text", UNKNOWN, ids=[text for _, _, text in UNKNOWN])
def test_sizes_found_when_run(call, value, text):
    """Where sizes are not known when the graph is built, running it says what was wrong."""
    with tf1.Graph().as_default(), tf1.Session() as session:
        image = tf1.placeholder(tf.float32, [None, None, 3])
        result = call(image)
        with pytest.raises(tf.errors.InvalidArgumentError, match=text):
            session.run(result, {image: value})
