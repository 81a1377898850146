"""Pictures from inside a run. (The codecs themselves are tested in tests/formats.)"""

import numpy as np
import pytest

import stoker as tf2
import stoker.compat.v1 as tf

PICTURE = (np.indices((6, 8)).sum(0)[..., None] * np.array([10, 5, 3])).astype(np.uint8)


def test_png_keeps_every_pixel():
    """Encoded and decoded as PNG, the pixels are the same; channels may be asked for."""
    with tf.Session() as session:
        data = tf.image.encode_png(PICTURE)
        assert data.shape.as_list() == []
        image = tf.image.decode_png(data, channels=3)
        assert image.shape.as_list() == [None, None, 3]
        np.testing.assert_array_equal(session.run(image), PICTURE)
        assert session.run(tf.image.decode_png(data, channels=4)).shape == (6, 8, 4)
        wide = session.run(tf.image.decode_png(tf.image.encode_png(PICTURE.astype(np.uint16) * 256), dtype=tf.uint16))
        np.testing.assert_array_equal(wide, PICTURE.astype(np.uint16) * 256)


def test_png_of_a_batch(eager):
    """A batch of pictures gives a string for each."""
    files = tf2.io.encode_png(np.stack([PICTURE, PICTURE]))
    assert files.shape == (2,)
    np.testing.assert_array_equal(tf2.io.decode_png(files.numpy()[1]).numpy(), PICTURE)


def test_jpeg_is_close_and_crops_alike(eager):
    """JPEG loses little; a window decoded is the window of the whole."""
    data = tf2.io.encode_jpeg(PICTURE, quality=100, chroma_downsampling=False)
    whole = tf2.io.decode_jpeg(data).numpy()
    assert np.abs(whole.astype(int) - PICTURE).max() < 8
    np.testing.assert_array_equal(tf2.io.decode_and_crop_jpeg(data, [1, 2, 3, 4]).numpy(), whole[1:4, 2:6])
    assert tf2.io.extract_jpeg_shape(data).numpy().tolist() == [6, 8, 3]
    assert tf2.io.extract_jpeg_shape(data, tf2.int64).dtype == tf2.int64


def test_static_shapes():
    """The crop window and the channels tell what they can."""
    contents = tf.placeholder(tf.string, [])
    assert tf.io.decode_and_crop_jpeg(contents, [0, 0, 4, 5], channels=3).shape.as_list() == [4, 5, 3]
    assert tf.io.decode_gif(contents).shape.as_list() == [None, None, None, 3]
    assert tf.io.decode_image(contents).shape.ndims is None
    assert tf.io.decode_image(contents, channels=3, expand_animations=False).shape.as_list() == [None, None, 3]
    assert tf.io.extract_jpeg_shape(contents).shape.as_list() == [3]
    with pytest.raises(ValueError, match="rank 0"):
        tf.io.decode_jpeg(tf.placeholder(tf.string, [2]))
    with pytest.raises(ValueError, match="rank 3"):
        tf.io.encode_jpeg(np.zeros((1, 2, 3, 3), np.uint8))


@pytest.mark.parametrize("options", [{"ratio": 3}, {"dct_method": "X"}])
def test_decode_jpeg_checks_its_options_whatever_the_format(eager, options):
    """A ratio or DCT that there is not is refused even where a PNG is decoded."""
    data = tf2.io.encode_png(PICTURE)
    with pytest.raises(tf.errors.InvalidArgumentError, match=next(iter(options))):
        tf2.io.decode_jpeg(data, **options)


def test_decode_image_tells_the_format(eager):
    """PNG and JPEG under one function, in the dtype asked for."""
    data = tf2.io.encode_png(PICTURE)
    np.testing.assert_array_equal(tf2.io.decode_image(data).numpy(), PICTURE)
    np.testing.assert_allclose(tf2.io.decode_image(data, dtype=tf2.float32).numpy(), PICTURE / 255, rtol=1e-6)
    np.testing.assert_allclose(tf2.io.decode_image(data, dtype=tf2.float64).numpy(), PICTURE / 255, rtol=1e-6)
    np.testing.assert_array_equal(
        tf2.io.decode_image(data, dtype=tf2.int32).numpy(), PICTURE.astype(np.int32) * 257 << 15
    )
    np.testing.assert_array_equal(tf2.io.decode_image(data, dtype=tf2.int8).numpy(), PICTURE // 2)
    with pytest.raises(tf.errors.InvalidArgumentError, match="channels"):
        tf2.io.decode_image(data, channels=7)


def test_is_jpeg(eager):
    """The first three bytes decide."""
    found = tf2.io.is_jpeg([tf2.io.encode_jpeg(PICTURE).numpy(), tf2.io.encode_png(PICTURE).numpy(), b""])
    assert found.numpy().tolist() == [True, False, False]


@pytest.mark.parametrize(
    ("decode", "message"),
    [
        (lambda: tf2.io.decode_jpeg(b"abc"), "Unknown image file format"),
        (lambda: tf2.io.decode_png([b"abc"]), "must be scalar"),
        (lambda: tf2.io.decode_bmp(tf2.io.encode_png(PICTURE)), "PNG format using DecodeBmp"),
        (lambda: tf2.io.encode_jpeg(PICTURE, quality=101), "quality"),
        (lambda: tf2.io.encode_jpeg(PICTURE[..., :2]), "1 or 3 channels"),
        (lambda: tf2.io.encode_png(PICTURE[..., 0]), "rank 3"),
    ],
)
def test_bad_pictures_are_refused(eager, decode, message):
    """Damaged files and arguments out of range are invalid arguments."""
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        decode()


def test_attributes_are_checked_at_once():
    """A format that there is not is refused when the op is made."""
    with pytest.raises(ValueError, match="allowed values"):
        tf.io.encode_jpeg(PICTURE, format="cmyk")
