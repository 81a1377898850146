"""Decodes WebP through Pillow: lossy or lossless, with or without alpha, still or animated."""

from __future__ import annotations

import io

import numpy as np

from stoker._src.formats.images.limits import check_size, invalid

_MAX_PIXELS = 1 << 26  # per frame; Pillow warns about images that are slightly larger


def _check_canvas(contents: bytes, words: str) -> None:
    """Rejects an image that is too large according to its header, before Pillow reads it."""
    kind, number = contents[12:16], int.from_bytes
    if kind == b"VP8X":
        width, height = 1 + number(contents[24:27], "little"), 1 + number(contents[27:30], "little")
    elif kind == b"VP8L":
        bits = number(contents[21:25], "little")
        width, height = 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    else:
        width, height = number(contents[26:28], "little") & 0x3FFF, number(contents[28:30], "little") & 0x3FFF
    if width * height > _MAX_PIXELS:
        raise invalid(f"{words}: {height} x {width} pixels; at most {_MAX_PIXELS} are decoded")


def decode_webp(contents: bytes, channels: int = 0) -> np.ndarray:
    """Decodes a WebP file into uint8 [frames, height, width, channels]; a still image is one frame.

    Args:
        contents: the file.
        channels: 0, or the stored number: 3, or 4 with alpha.

    Raises:
        InvalidArgumentError: the contents are damaged, or the number of channels differs from the stored one.
    """
    from PIL import Image, UnidentifiedImageError  # importing stoker must not import Pillow

    if channels not in (0, 3, 4):
        raise invalid("WebP only supports 3 or 4 channels")
    words = f"Failed to decode WebP data (size {len(contents)})"
    _check_canvas(contents, words)
    try:
        with Image.open(io.BytesIO(contents), formats=["WEBP"]) as picture:
            stored = len(picture.getbands())
            if channels not in (0, stored):
                raise invalid("Number of channels requested does not match input")
            count = getattr(picture, "n_frames", 1)
            check_size(words, count, picture.height, picture.width, stored)
            frames = np.empty((count, picture.height, picture.width, stored), np.uint8)
            for number in range(count):
                picture.seek(number)
                frames[number] = np.asarray(picture)
    except (UnidentifiedImageError, OSError, ValueError, EOFError, SyntaxError) as error:
        raise invalid(f"{words}: {error}") from error
    return frames
