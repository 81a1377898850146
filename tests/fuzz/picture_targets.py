"""Fuzz targets for the image codecs. The first byte of an input picks the options, the rest is the file."""

from __future__ import annotations

import io
import struct
import zlib
from typing import Any

import numpy as np
from PIL import Image

import stoker as tf
from stoker._src.formats import images
from stoker._src.formats.images import filters, limits
from tests.fuzz.registry import either, target

_GRAY = np.arange(96, dtype=np.uint8).reshape(8, 12, 1)
_COLOR = np.repeat(_GRAY, 3, axis=2) ^ np.array([0, 77, 200], np.uint8)
_ALPHA = np.concatenate([_COLOR, _GRAY], axis=2)


def _saved(kind: str, **options: Any) -> bytes:
    file = io.BytesIO()
    picture = Image.fromarray(_COLOR)
    picture.save(file, kind, **options)
    return file.getvalue()


def _options(*files: bytes) -> list[bytes]:
    return [bytes([option]) + file for file in files for option in (0, 3)]


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def _png(header: bytes, rows: bytes) -> bytes:
    """A PNG file whose checksums are right."""
    return images.encode_png(_GRAY)[:8] + _chunk(b"IHDR", header) + _chunk(b"IDAT", rows) + _chunk(b"IEND", b"")


_JPEGS = (
    images.encode_jpeg(_COLOR),
    images.encode_jpeg(_GRAY),
    images.encode_jpeg(_COLOR, progressive=True),
    _saved("JPEG", subsampling=0, quality=20),
)
_PNGS = (
    images.encode_png(_COLOR),
    images.encode_png(_ALPHA),
    images.encode_png(_GRAY.astype(np.uint16) * 256),
    _png(struct.pack(">IIBBBBB", 3, 2, 1, 0, 0, 0, 1), zlib.compress(bytes(9))),
)
_GIFS = (_saved("GIF"), _saved("GIF", save_all=True, append_images=[Image.fromarray(255 - _COLOR)], duration=9))
_WEBPS = (_saved("WEBP"), _saved("WEBP", lossless=True))
_BMPS = (_saved("BMP"), b"BM" + bytes(60))


def _bounded(pixels: Any, *, size: int = 1) -> None:
    assert np.asarray(pixels).size * size < limits.MAX_DECODED_BYTES


@target(*_options(*_JPEGS, _PNGS[0], _WEBPS[0]))
def jpeg(data: bytes) -> None:
    option, contents = either(data)
    _bounded(
        tf.io.decode_jpeg(
            contents,
            channels=(0, 1, 3)[option % 3],
            ratio=(1, 2, 4, 8)[option >> 2 & 3],
            fancy_upscaling=not option & 16,
            try_recover_truncated=bool(option & 32),
            acceptable_fraction=0.5 if option & 64 else 1.0,
            dct_method="INTEGER_FAST" if option & 128 else "INTEGER_ACCURATE",
        )
    )


@target(*(b"\0\1\1\2\2" + file for file in _JPEGS))
def jpeg_crop(data: bytes) -> None:
    option, rest = either(data)
    window = [(value ^ 128) - 128 if option & 1 else value for value in rest[:4].ljust(4, b"\1")]
    _bounded(tf.io.decode_and_crop_jpeg(rest[4:], window, channels=(0, 1, 3)[option % 3], ratio=(1, 2, 4, 8)[option >> 2 & 3]))  # fmt: skip


@target(*_JPEGS)
def jpeg_header(data: bytes) -> None:
    assert tf.io.extract_jpeg_shape(data).shape == (3,)
    tf.io.is_jpeg(data)


@target(*_options(*_PNGS, _JPEGS[0], _WEBPS[0]))
def png(data: bytes) -> None:
    option, contents = either(data)
    _bounded(tf.io.decode_png(contents, channels=(0, 1, 3, 4)[option & 3], dtype=tf.uint16 if option & 4 else tf.uint8))


@target(struct.pack(">IIBBBBB", 2, 2, 8, 2, 0, 0, 0) + bytes([0, 1, 2, 3, 4, 5, 6, 4, 1, 2, 3, 4, 5, 6]))
def png_rows(data: bytes) -> None:
    """The bytes are a header and rows, in a file whose checksums are right."""
    contents = _png(data[:13], zlib.compress(data[13:]))
    _bounded(tf.io.decode_png(contents))
    step, rows = data[12] % 8 + 1, data[13:]
    width = data[3] % 16 + 1
    height = len(rows) // (width + 1)
    if height:
        raw = bytes(
            value % 5 if at % (width + 1) == 0 else value for at, value in enumerate(rows[: height * (width + 1)])
        )
        quick = filters.unfilter_rows(raw, height, width, step, "rows")
        assert np.array_equal(quick, filters.unfilter_rows_numpy(raw, height, width, step))


@target(*_GIFS, _PNGS[0], _WEBPS[0], b"GIF89a\1\0\1\0\0\0\0;")
def gif(data: bytes) -> None:
    _bounded(tf.io.decode_gif(data))


@target(*_options(*_BMPS))
def bmp(data: bytes) -> None:
    option, contents = either(data)
    _bounded(tf.io.decode_bmp(contents, channels=(0, 3, 4)[option % 3]))


@target(*_options(*_JPEGS, *_PNGS, *_GIFS, *_BMPS, *_WEBPS))
def picture(data: bytes) -> None:
    option, contents = either(data)
    dtype = (tf.uint8, tf.uint16, tf.float32)[option >> 2 & 3 if option >> 2 & 3 < 3 else 0]
    _bounded(tf.io.decode_image(contents, (0, 1, 3, 4)[option & 3], dtype, expand_animations=not option & 16))
