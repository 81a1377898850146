"""Several image files at once, and the extension against its twins."""

import pathlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker._src.base import errors
from stoker._src.formats import gfile, images
from stoker._src.formats.images import jpeg, png

GOLDEN = pathlib.Path(__file__).parent.parent / "golden" / "images"
INPUTS = {name: data.tobytes() for name, data in np.load(GOLDEN / "inputs.npz").items()}
PNGS = sorted(name for name, data in INPUTS.items() if data.startswith(png.SIGNATURE))
JPEGS = sorted(name for name, data in INPUTS.items() if data.startswith(b"\xff\xd8"))
TWINS = png._native is not None


def outcome(function, *args):
    try:
        return function(*args)
    except errors.OpError as error:
        return type(error), error.message


def assert_same(found, expected):
    if isinstance(expected, tuple):
        assert found == expected
    else:
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


def assert_pngs_alike(file, channels):
    """Two copies of a file give what the file gives twice."""
    single = outcome(images.decode_png, file, channels)
    expected = single if isinstance(single, tuple) else np.stack([single, single])
    assert_same(outcome(images.decode_pngs, [file, file], channels), expected)


@given(st.sampled_from(PNGS), st.sampled_from([0, 1, 3, 4]), st.integers(0, 10**6), st.integers(0, 255), st.booleans())
@settings(max_examples=400, deadline=None)
def test_several_pngs_are_those_of_single_calls(name, channels, position, value, damaged):
    """All kinds of PNG files, sound and damaged, give the same pixels or the same error together as alone."""
    file = bytearray(INPUTS[name])
    if damaged:
        file[position % len(file)] = value
    assert_pngs_alike(bytes(file), channels)


@given(
    st.integers(1, 40),
    st.integers(1, 300),
    st.sampled_from([1, 2, 3, 4]),
    st.sampled_from([0, 1, 3, 4]),
    st.integers(-1, 9),
    st.sampled_from(["noise", "blocks", "slope", "flat"]),
    st.integers(0, 1000),
)
@settings(max_examples=120, deadline=None)
def test_every_stream_is_inflated(height, width, samples, channels, compression, kind, seed):
    """Stored, fixed and dynamic blocks, near and far repetitions, one part and several: the pixels are those that were encoded."""
    random = np.random.RandomState(seed)
    pixels = {
        "noise": lambda: random.randint(0, 256, [height, width, samples]),
        "blocks": lambda: random.randint(0, 256, [height, -(-width // 4), samples]).repeat(4, 1)[:, :width],
        "slope": lambda: np.add.outer(np.arange(height), np.arange(width))[:, :, None] + random.randint(0, 3, samples),
        "flat": lambda: np.full([height, width, samples], seed % 256),
    }[kind]().astype(np.uint8)
    file = images.encode_png(pixels, compression)
    if channels in (0, samples):
        found = images.decode_pngs([file, file, file], channels)
        np.testing.assert_array_equal(found, np.stack([pixels] * 3))
    assert_pngs_alike(file, channels)


@pytest.mark.skipif(not TWINS, reason="the extension was not built")
def test_plain_files_take_the_extension():
    """It takes the files that most encoders write: several parts, and all conversions that need no transparency."""
    pixels = np.random.RandomState(0).randint(0, 256, [60, 70, 4]).astype(np.uint8)  # more than one IDAT chunk
    for samples, channels in ((1, 0), (1, 3), (1, 4), (2, 1), (2, 3), (2, 4), (3, 0), (3, 3), (3, 4), (4, 3), (4, 4)):
        file = images.encode_png(pixels[:, :, :samples])
        assert file.count(b"IDAT") > 1 or samples < 3
        found = png.decode_plain([file, file], channels, threads=2)
        assert found is not None
        np.testing.assert_array_equal(found[1], images.decode_png(file, channels))


def test_pictures_of_different_sizes_have_no_stack():
    """They raise an error, whichever is larger."""
    files = [images.encode_png(np.zeros([size, 5, 3], np.uint8)) for size in (4, 6)]
    for order in (files, files[::-1]):
        with pytest.raises(errors.InvalidArgumentError, match="differ in size"):
            images.decode_pngs(order)


@given(st.sampled_from(JPEGS), st.integers(0, 10**6), st.integers(0, 255), st.floats(0, 1), st.booleans())
@settings(max_examples=300, deadline=None)
def test_both_readers_of_jpeg_headers_agree(name, position, value, part, cut):
    """What the extension reads from sound, damaged and truncated files is what its twin reads; it may leave files to its twin."""
    file = bytearray(INPUTS[name])
    file[position % min(len(file), 700)] = value
    contents = bytes(file[: int(part * len(file))] if cut else file)
    found = None if jpeg._native is None else jpeg._native.jpeg_header(contents)
    if found is None:
        return
    header = jpeg.read_header(contents)
    height, width, components, across, down, progressive, adobe, rgb, scan, complete = found
    assert jpeg.Header(height, width, components, (across, down), progressive, adobe, rgb, scan) == header
    assert jpeg._is_complete(contents, header) is complete


@pytest.mark.skipif(not TWINS, reason="the extension was not built")
def test_ordinary_jpeg_headers_take_the_extension():
    """Baseline and progressive files, in gray and in colour, need no second look."""
    pixels = np.zeros([20, 30, 3], np.uint8)
    for file in (
        images.encode_jpeg(pixels),
        images.encode_jpeg(pixels[:, :, :1]),
        images.encode_jpeg(pixels, progressive=True, chroma_downsampling=False),
    ):
        assert jpeg._native.jpeg_header(file)[:2] == (20, 30)


def test_several_files(tmp_path):
    """Files of all sizes are read in order; a name that is no file raises the error of a single read."""
    names = []
    for i in range(150):
        path = tmp_path / f"{i}"
        path.write_bytes(bytes([i]) * (i * 40))
        names.append(str(path) if i % 2 else f"file://{path}")
    assert gfile.read_files(names) == [bytes([i]) * (i * 40) for i in range(150)]
    with pytest.raises(errors.NotFoundError, match="missing"):
        gfile.read_files([*names, str(tmp_path / "missing")])
    with pytest.raises(errors.FailedPreconditionError):
        gfile.read_files([str(tmp_path)])
    with pytest.raises(errors.InvalidArgumentError):
        gfile.read_files([f"{tmp_path}/0\0"])
