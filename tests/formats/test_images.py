"""Image codecs against the pixels and errors TensorFlow gave for the same files (tests/golden/images)."""

import io
import json
import pathlib
import struct
import subprocess
import sys
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from stoker._src.base import errors
from stoker._src.formats import images
from stoker._src.formats.images import filters, jpeg, png

GOLDEN = pathlib.Path(__file__).parent.parent / "golden" / "images"
INPUTS = {name: data.tobytes() for name, data in np.load(GOLDEN / "inputs.npz").items()}
EXPECTED = json.loads((GOLDEN / "expected.json").read_text())
PIXELS = dict(np.load(GOLDEN / "jpeg_pixels.npz").items())
EXACT_JPEG = jpeg._simplejpeg() is not None


def decode(key):
    name, kind, *rest = key.split("|")
    data = INPUTS[name]
    if kind == "png":
        return images.decode_png(data, int(rest[0]), getattr(np, rest[1]))
    if kind == "bmp":
        return images.decode_bmp(data, int(rest[0]))
    if kind == "gif":
        return images.decode_gif(data)
    if kind == "first":
        return images.decode_image(data, expand_animations=False)
    if kind == "image":
        return images.decode_image(data, int(rest[0]), getattr(np, rest[1]))
    if kind == "jpeg":
        channels, method, fancy, ratio = rest
        return images.decode_jpeg(data, int(channels), int(ratio), fancy_upscaling=fancy == "1", dct_method=method)
    if kind == "recovered":
        return images.decode_jpeg(data, try_recover_truncated=True)
    if kind == "accepted":
        return images.decode_jpeg(data, acceptable_fraction=0.1)
    return images.extract_jpeg_shape(data)


def groups(keys):
    found = {}
    for key in keys:
        found.setdefault(key.split("|")[0], []).append(key)
    return sorted(found.items())


def invented(key):
    """What libjpeg makes up for missing data changes from version to version."""
    return key in ("jpeg_cut|recovered", "jpeg_cut_420|recovered")


def inexact(key):
    """Whether Pillow alone cannot ask libjpeg for TensorFlow's transform and upsampling together."""
    name = key.split("|")[0]
    subsampled = name.startswith(("jpeg_420", "jpeg_422", "jpeg_progressive", "jpeg_restart", "jpeg_cut_420"))
    return subsampled and not EXACT_JPEG and "|shape" not in key


@pytest.mark.parametrize("name, keys", groups(EXPECTED["decoded"]))
def test_pixels_are_tensorflows(name, keys):
    """Every way of decoding a file gives TensorFlow's shape, dtype and pixels."""
    for key in keys:
        shape, dtype, digest = EXPECTED["decoded"][key]
        image = decode(key)
        assert (list(image.shape), image.dtype.name) == (shape, dtype), key
        if not invented(key) and not inexact(key):
            assert zlib.crc32(np.ascontiguousarray(image).tobytes()) == digest, key


@pytest.mark.parametrize("key", sorted(PIXELS))
def test_jpeg_pixels_are_near_in_every_case(key):
    """Whichever library decodes, no pixel is more than a few levels from TensorFlow's."""
    difference = np.abs(decode(key).astype(int) - PIXELS[key].astype(int))
    assert difference.max() <= (4 if inexact(key) else 0)


@pytest.mark.parametrize("name, keys", groups(EXPECTED["errors"]))
def test_errors_are_tensorflows(name, keys):
    """A file TensorFlow refuses is refused with the same class and the same first words."""
    for key in keys:
        error_class, message = EXPECTED["errors"][key]
        with pytest.raises(getattr(errors, error_class)) as caught:
            decode(key)
        assert caught.value.message.startswith(message.split(", JPEG XL")[0]), key


def test_top_down_bitmaps():
    """A negative height turns the rows around (TensorFlow itself dies of these files)."""
    for bits in (8, 24, 32):
        upright, flipped = INPUTS[f"bmp_{bits}"], INPUTS[f"bmp_{bits}_top_down"]
        offset = struct.unpack_from("<I", upright, 10)[0]
        as_upright = flipped[:22] + upright[22:26] + flipped[26:]
        assert offset == struct.unpack_from("<I", flipped, 10)[0]
        np.testing.assert_array_equal(images.decode_bmp(flipped), images.decode_bmp(as_upright)[::-1])


shapes = st.tuples(st.integers(1, 20), st.integers(1, 20), st.integers(1, 4))


@given(shapes, st.sampled_from([np.uint8, np.uint16]), st.integers(-1, 9), st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_png_round_trip(shape, dtype, compression, seed):
    """Every shape, depth and level is decoded to what was encoded."""
    image = np.random.default_rng(seed).integers(0, np.iinfo(dtype).max + 1, shape, dtype)
    np.testing.assert_array_equal(images.decode_png(images.encode_png(image, compression), 0, dtype), image)


@given(st.integers(1, 12), st.integers(1, 30), st.integers(1, 8), st.binary(min_size=12 * 31, max_size=12 * 31))
@settings(max_examples=60, deadline=None)
def test_both_unfilters_agree(height, row_bytes, step, noise):
    """The C extension and its NumPy twin give the same bytes for any rows."""
    raw = bytearray(noise[: height * (row_bytes + 1)])
    for row in range(height):
        raw[row * (row_bytes + 1)] %= 5
    twin = filters.unfilter_rows_numpy(bytes(raw), height, row_bytes, step)
    np.testing.assert_array_equal(filters.unfilter_rows(bytes(raw), height, row_bytes, step, ""), twin)
    if row_bytes % step == 0:
        refiltered = filters.filter_rows(twin, step, adaptive=True)
        assert refiltered == filters.filter_rows_numpy(twin, step)
        np.testing.assert_array_equal(filters.unfilter_rows_numpy(refiltered, height, row_bytes, step), twin)


@given(st.sampled_from(sorted(INPUTS)), st.integers(0, 10**6), st.integers(0, 255))
@settings(max_examples=150, deadline=None)
def test_damaged_files_are_refused_or_decoded(name, position, value):
    """Any changed byte gives a picture or InvalidArgumentError, nothing else."""
    data = bytearray(INPUTS[name] or b"x")
    data[position % len(data)] = value
    try:
        image = images.decode_image(bytes(data))
    except errors.InvalidArgumentError:
        return
    assert image.dtype == np.uint8


@given(st.sampled_from(sorted(INPUTS)), st.floats(0, 1))
@settings(max_examples=80, deadline=None)
def test_cut_files_are_refused_or_decoded(name, part):
    """A file cut anywhere gives a picture (GIF: the whole frames) or InvalidArgumentError."""
    data = INPUTS[name][: int(len(INPUTS[name]) * part)]
    try:
        images.decode_image(data)
    except errors.InvalidArgumentError:
        return


def test_bombs_are_refused_before_anything_is_allocated():
    """Headers that promise gigabytes are refused by their numbers alone."""
    header = struct.pack(">IIBBBBB", 60000, 60000, 8, 6, 0, 0, 0)
    bomb = png.SIGNATURE + png._chunk(b"IHDR", header) + png._chunk(b"IDAT", b"") + png._chunk(b"IEND", b"")
    with pytest.raises(errors.InvalidArgumentError, match="at most 1073741824 are decoded"):
        images.decode_png(bomb)
    picture = bytearray(INPUTS["jpeg_444_32x40"])
    frame = picture.index(b"\xff\xc0")
    picture[frame + 5 : frame + 9] = struct.pack(">HH", 65535, 65535)
    with pytest.raises(errors.InvalidArgumentError, match="at most 1073741824 are decoded"):
        images.decode_jpeg(bytes(picture))


def test_pixels_past_the_header_are_not_inflated():
    """A PNG whose data would inflate without end stops at the size its header names."""
    endless = zlib.compress(bytes(50_000_000), 9)
    header = struct.pack(">IIBBBBB", 2, 2, 8, 0, 0, 0, 0)
    data = png.SIGNATURE + png._chunk(b"IHDR", header) + png._chunk(b"IDAT", endless) + png._chunk(b"IEND", b"")
    np.testing.assert_array_equal(images.decode_png(data), np.zeros((2, 2, 1), np.uint8))


PICTURE = np.random.default_rng(0).integers(0, 256, (16, 24, 3), np.uint8)


def test_crop_is_decode_then_crop():
    """The window is cut out of what decode_jpeg gives; windows outside are refused."""
    data = INPUTS["jpeg_420_32x40"]
    whole = images.decode_jpeg(data)
    np.testing.assert_array_equal(images.decode_and_crop_jpeg(data, [3, 5, 20, 30]), whole[3:23, 5:35])
    for window in ([0, 0, 33, 40], [-1, 0, 2, 2], [0, 0, 0, 1], [32, 0, 1, 1]):
        with pytest.raises(errors.InvalidArgumentError, match=r"^jpeg::Uncompress failed\."):
            images.decode_and_crop_jpeg(data, window)
    with pytest.raises(errors.InvalidArgumentError, match="crop_size must have four elements"):
        images.decode_and_crop_jpeg(data, [0, 0, 4])
    with pytest.raises(errors.InvalidArgumentError, match="JPEG only, but detected PNG"):
        images.decode_and_crop_jpeg(INPUTS["png_c2_d8"], [0, 0, 1, 1])


@pytest.mark.parametrize(
    "options, message",
    [
        ({"ratio": 3}, "ratio must be 1, 2, 4, or 8, got 3"),
        ({"dct_method": "X"}, "dct_method must be one of"),
        ({"channels": 2}, "`channels` must be 0, 1, 3 or 4 but got 2"),
        ({"channels": 4}, "JPEG does not support 4 channels"),
    ],
)
def test_bad_jpeg_arguments(options, message):
    """Arguments outside their range are named in the error."""
    with pytest.raises(errors.InvalidArgumentError, match="^" + message):
        images.decode_jpeg(INPUTS["jpeg_444_32x40"], **options)


def test_encoded_jpeg_says_what_was_asked():
    """Density, unit, XMP packet, progressive scans and subsampling end up in the file."""
    data = images.encode_jpeg(PICTURE, density_unit="cm", x_density=3, y_density=-1, xmp_metadata=b"abc")
    assert data[6:18] == b"JFIF\0\x01\x01\x02\x00\x03\xff\xff"
    assert b"\xff\xe1\x00\x22http://ns.adobe.com/xap/1.0/\0abc" in data
    assert jpeg.read_header(data).sampling == (2, 2)
    assert jpeg.read_header(images.encode_jpeg(PICTURE, chroma_downsampling=False)).sampling == (1, 1)
    assert b"\xff\xc2" in images.encode_jpeg(PICTURE, progressive=True)
    assert len(images.encode_jpeg(PICTURE, optimize_size=True)) < len(images.encode_jpeg(PICTURE))
    assert images.extract_jpeg_shape(images.encode_jpeg(PICTURE[:, :, :1])).tolist() == [16, 24, 1]


def test_encoded_jpeg_is_tensorflows_byte_for_byte():
    """Quality, subsampling, scans and tables: the same options give the same file."""
    y, x, k = np.mgrid[0:48, 0:70, 0:3]
    gradient = ((x * (3 + k) + y * (5 - k) + x * y % 17) % 256).astype(np.uint8)
    for key, digest in EXPECTED["encoded_jpeg"].items():
        quality, downsampled, progressive, optimized, channels = map(int, key.split("|"))
        data = images.encode_jpeg(
            gradient[:, :, :channels],
            quality=quality,
            chroma_downsampling=bool(downsampled),
            progressive=bool(progressive),
            optimize_size=bool(optimized),
        )
        assert zlib.crc32(data) == digest, key


@pytest.mark.parametrize(
    "image, options, error, message",
    [
        (PICTURE[0], {}, errors.InvalidArgumentError, "image must be 3-dimensional"),
        (PICTURE[:, :, :2], {}, errors.InvalidArgumentError, "image must have 1 or 3 channels"),
        (PICTURE, {"quality": 101}, errors.InvalidArgumentError, r"quality must be in \[0,100\], got 101"),
        (PICTURE, {"format": "grayscale"}, errors.InvalidArgumentError, "format grayscale expects 1 channels"),
        (PICTURE, {"format": "x"}, errors.InvalidArgumentError, "Value for attr 'format'"),
        (PICTURE, {"density_unit": "mm"}, errors.InvalidArgumentError, "Value for attr 'density_unit'"),
        (PICTURE[:0], {}, errors.InternalError, "JPEG encoding failed"),
        (PICTURE, {"xmp_metadata": b"x" * 70000}, errors.InternalError, "JPEG encoding failed"),
    ],
)
def test_jpeg_that_cannot_be_encoded(image, options, error, message):
    """Each thing that cannot be encoded has its own error."""
    with pytest.raises(error, match="^" + message):
        images.encode_jpeg(image, **options)


@pytest.mark.parametrize(
    "image, options, error, message",
    [
        (PICTURE[0], {}, errors.InvalidArgumentError, "images must be at least rank 3"),
        (
            np.zeros((2, 2, 5), np.uint8),
            {},
            errors.InvalidArgumentError,
            "image must have 1, 2, 3, or 4 channels, got 5",
        ),
        (PICTURE, {"compression": 10}, errors.InvalidArgumentError, r"compression should be in \[-1,9\], got 10"),
        (PICTURE.astype(np.float32), {}, errors.InvalidArgumentError, "image must be uint8 or uint16"),
        (PICTURE[:0], {}, errors.InternalError, "PNG encoding failed"),
    ],
)
def test_png_that_cannot_be_encoded(image, options, error, message):
    """Each thing that cannot be encoded has its own error."""
    with pytest.raises(error, match="^" + message):
        images.encode_png(image, **options)


def test_is_jpeg():
    """Three bytes tell."""
    assert images.is_jpeg(b"\xff\xd8\xff")
    assert not images.is_jpeg(b"\xff\xd8")
    assert not images.is_jpeg(b"")
    assert not images.is_jpeg(INPUTS["png_c2_d8"])


def test_importing_the_codecs_imports_no_pillow():
    """Pillow is loaded when a picture needs it, not before."""
    code = "import sys, stoker._src.formats.images; assert 'PIL' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_other_ops_read_webp_too():
    """DecodeJpeg and its like give WebP's four dimensions, whole, as TensorFlow 2.21 does."""
    color = np.arange(4 * 6 * 3, dtype=np.uint8).reshape(4, 6, 3)
    sink = io.BytesIO()
    Image.fromarray(color).save(sink, "WEBP", lossless=True)
    contents = sink.getvalue()
    for found in (
        images.decode_jpeg(contents),
        images.decode_png(contents, 3),
        images.decode_gif(contents),
        images.decode_bmp(contents),
        images.decode_and_crop_jpeg(contents, [1, 1, 2, 2]),
    ):
        np.testing.assert_array_equal(found, color[None])
    with pytest.raises(errors.InvalidArgumentError, match="only supports uint8"):
        images.decode_png(contents, 3, np.uint16)
    with pytest.raises(errors.InvalidArgumentError, match="does not match input"):
        images.decode_jpeg(contents, 4)


def test_a_window_above_the_cut():
    """A window needs the rows down to its end only; a whole picture, and one in several passes, needs all of them."""
    color = (np.arange(64 * 80 * 3) * 7 % 251).astype(np.uint8).reshape(64, 80, 3)
    whole = images.encode_jpeg(color, chroma_downsampling=False)
    cut = whole[: len(whole) * 7 // 10]
    np.testing.assert_array_equal(
        images.decode_and_crop_jpeg(cut, [3, 5, 20, 17]), images.decode_jpeg(whole)[3:23, 5:22]
    )
    passes = images.encode_jpeg(color, progressive=True)
    for call in (
        lambda: images.decode_and_crop_jpeg(cut, [50, 5, 14, 17]),
        lambda: images.decode_jpeg(cut),
        lambda: images.decode_jpeg(passes[:-100], acceptable_fraction=0.0),
    ):
        with pytest.raises(errors.InvalidArgumentError, match="cut short"):
            call()


def test_an_unknown_marker_after_the_scan():
    """A marker that JPEG does not have ends decoding in an error."""
    contents = images.encode_jpeg(np.zeros((8, 8, 1), np.uint8))
    with pytest.raises(errors.InvalidArgumentError, match="Unsupported marker type 0x50"):
        images.decode_jpeg(contents[:-2] + b"\xff\x50" + contents[-2:])


def test_webp():
    """decode_image reads WebP as [frames, height, width, channels], as stored and as uint8 only."""
    color = np.arange(6 * 5 * 3, dtype=np.uint8).reshape(6, 5, 3)
    alpha = np.concatenate([color, color[:, :, :1] + 100], axis=2)

    def saved(pixels, **options):
        file = io.BytesIO()
        Image.fromarray(pixels).save(file, "WEBP", lossless=True, exact=True, **options)
        return file.getvalue()

    assert np.array_equal(images.decode_image(saved(color)), color[None])
    assert np.array_equal(images.decode_image(saved(color), expand_animations=False), color)
    assert np.array_equal(images.decode_image(saved(alpha), 4), alpha[None])
    moving = saved(color, save_all=True, append_images=[Image.fromarray(255 - color)], duration=10)
    assert np.array_equal(images.decode_image(moving), np.stack([color, 255 - color]))
    for contents, options, words in (
        (saved(color), {"channels": 4}, "does not match input"),
        (saved(color), {"channels": 1}, "3 or 4 channels"),
        (saved(color), {"dtype": np.float32}, "only supports uint8"),
        (saved(color)[:30], {}, "Failed to decode WebP"),
        (saved(color)[:21] + b"\xff" * 9, {}, "16384 x 16384 pixels"),
    ):
        with pytest.raises(errors.InvalidArgumentError, match=words):
            images.decode_image(contents, **options)


def test_what_libjpeg_only_warns_of():
    """Bytes between segments, odd versions and empty notes do not keep a JPEG file from being read; errors do."""
    whole = images.encode_jpeg((np.arange(16 * 16 * 3) % 251).astype(np.uint8).reshape(16, 16, 3))
    expected = images.decode_jpeg(whole)
    tables = whole.index(b"\xff\xdb")
    for odd in (
        whole[:tables] + b"??" + whole[tables:],
        whole[:11] + b"\x09" + whole[12:],
        whole[:tables] + b"\xff\xfe\0\0" + whole[tables:],
        whole[:-2] + b"?" + whole[-2:],
    ):
        np.testing.assert_array_equal(images.decode_jpeg(odd), expected)
    passes = images.encode_jpeg(np.zeros((16, 16, 3), np.uint8), progressive=True)
    scan = passes.rindex(b"\xff\xda")
    with pytest.raises(errors.InvalidArgumentError, match="Uncompress failed"):  # a scan of no component
        images.decode_jpeg(passes[: scan + 5] + b"\x9c" + passes[scan + 6 :])


def test_png_chunks_that_libpng_leaves_out_or_refuses():
    """An ancillary chunk of a wrong checksum is left out, a name that is not of letters refused; the pixels' own checksum
    is not asked for where it stands in a chunk of its own."""

    def chunk(kind, body, wrong=0):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body) ^ wrong)

    head = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 2, 1, 8, 3, 0, 0, 0))
    head += chunk(b"PLTE", bytes(range(6)))
    rows = zlib.compress(b"\0\0\1")
    tail = chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    plain = [[[0, 1, 2], [3, 4, 5]]]
    assert images.decode_png(head + chunk(b"tRNS", b"\7", wrong=1) + tail).tolist() == plain
    assert images.decode_png(head + chunk(b"tRNS", b"\7") + tail).shape == (1, 2, 4)
    with pytest.raises(errors.InvalidArgumentError, match="letters"):
        images.decode_png(head + chunk(b"tR^S", b"\7") + tail)
    apart = chunk(b"IDAT", rows[:-4]) + chunk(b"IDAT", b"\0\0\0\0") + chunk(b"IEND", b"")
    assert images.decode_png(head + apart).tolist() == plain


def test_damaged_gif_frames():
    """Frames in front of the first damaged one are given; a code without a meaning is not always damage."""
    colors = bytes(range(12))

    def frame(data, width=2, height=2):
        return b"," + struct.pack("<HHHHB", 0, 0, width, height, 0) + b"\2" + bytes([len(data)]) + data + b"\0"

    head = b"GIF89a" + struct.pack("<HHBBB", 2, 2, 0x81, 0, 0) + colors
    good = frame(_lzw([4, 0, 1, 4, 2, 3, 5]))
    pixels = images.decode_gif(head + good + b";")
    assert pixels[0, :, :, 0].tolist() == [[0, 3], [6, 9]]
    for bad in (frame(_lzw([4, 0, 5])), frame(_lzw([4, 7])), frame(_lzw([4, 0, 1, 4, 2, 3, 5]), height=0), b"?"):
        np.testing.assert_array_equal(images.decode_gif(head + good + bad + b";"), pixels)
        with pytest.raises(errors.InvalidArgumentError, match="failed to slurp"):
            images.decode_gif(head + bad + b";")
    assert images.decode_gif(head + frame(_lzw([4, 1, 7, 3])) + b";")[0, :, :, 0].tolist() == [[3, 3], [6, 9]]
    empty = b"!\x01\0\0"  # an extension whose first block is empty goes on
    np.testing.assert_array_equal(images.decode_gif(head + empty + good + b";"), pixels)


def _lzw(codes):
    """Codes of three bits each."""
    bits = sum(code << 3 * place for place, code in enumerate(codes))
    return bits.to_bytes((3 * len(codes) + 7) // 8, "little")


def test_png_chunks_out_of_place():
    """Chunks that come too late or too early say nothing, and pixels after another chunk are not read."""

    def file(*chunks):
        header = png._chunk(b"IHDR", struct.pack(">IIBBBBB", 2, 1, 8, 3, 0, 0, 0))
        return png.SIGNATURE + header + b"".join(chunks) + png._chunk(b"IEND", b"")

    palette, seen = png._chunk(b"PLTE", bytes(range(6))), png._chunk(b"tRNS", b"\7\10")
    data = zlib.compress(b"\0\0\1")
    pixels = png._chunk(b"IDAT", data)
    bare = [[[0, 1, 2], [3, 4, 5]]]
    assert images.decode_png(file(palette, seen, pixels)).tolist() == [[[0, 1, 2, 7], [3, 4, 5, 8]]]
    assert images.decode_png(file(palette, pixels, seen)).tolist() == bare
    assert images.decode_png(file(seen, palette, pixels)).tolist() == bare
    assert images.decode_png(file(palette, pixels, seen, png._chunk(b"IDAT", b"junk"))).tolist() == bare
    with pytest.raises(errors.InvalidArgumentError, match="Invalid PNG data"):
        images.decode_png(file(palette, png._chunk(b"IDAT", data[:4]), seen, png._chunk(b"IDAT", data[4:])))


@pytest.mark.parametrize(
    ("marker", "at", "value"),
    [
        (0xC4, 4, 0x8C),  # a Huffman table of a number there is none of
        (0xC4, 8, 0xCC),  # more codes than bytes
        (0xC4, 1, 0xB8),  # a marker nobody knows
        (0xDB, 4, 0x4F),  # a quantization table of a number there is none of
        (0xC0, 11, 0x9D),  # sampling factors beyond 4
        (0xC0, 10, 0x9E),  # a component that the scan does not name
        (0xDA, 2, 0x59),  # a scan header beyond the file
    ],
)
def test_a_shape_is_read_from_a_sound_header_only(marker, at, value):
    """extract_jpeg_shape refuses what libjpeg does in front of the first scan, tables included."""
    data = bytearray(images.encode_jpeg(PICTURE))
    assert images.extract_jpeg_shape(bytes(data)).tolist() == [16, 24, 3]
    data[data.index(bytes([0xFF, marker])) + at] = value
    with pytest.raises(errors.InvalidArgumentError, match="Invalid JPEG data"):
        images.extract_jpeg_shape(bytes(data))


def test_a_cut_in_the_header_of_the_scan():
    """A file that ends in the scan's header has no shape, but is decoded where cut files are."""
    data = images.encode_jpeg(PICTURE)
    cut = data[: data.index(b"\xff\xda") + 12]
    with pytest.raises(errors.InvalidArgumentError, match="cut short"):
        images.extract_jpeg_shape(cut)
    assert images.decode_jpeg(cut, try_recover_truncated=True).shape == (16, 24, 3)
