"""Decodes Windows bitmaps: 8-bit (indices as stored), 24-bit and 32-bit, uncompressed, bottom-up or top-down."""

from __future__ import annotations

import struct

import numpy as np

from stoker._src.formats.images.limits import check_size, invalid

_HEADER = 32  # bytes up to and including the bit depth


def decode_bmp(contents: bytes, channels: int = 0) -> np.ndarray:
    """Decodes a BMP file into uint8 [height, width, channels].

    Args:
        contents: the file.
        channels: 0 (as stored), 3 or 4. Gray becomes three equal channels, and a missing alpha channel becomes 255.

    Raises:
        InvalidArgumentError: the file is damaged or of a kind that TensorFlow does not read.
    """
    if channels not in (0, 3, 4):
        raise invalid(f"`channels` must be 0, 3 or 4 for BMP, but got {channels}")
    if len(contents) < _HEADER:
        raise invalid(
            f"Incomplete bmp content, requires at least {_HEADER} bytes to find the header size, width, height, and "
            f"bpp, got {len(contents)} bytes"
        )
    offset, width, height, bits = struct.unpack("<10xi4xii2xH", contents[:30])
    stored = bits // 8
    if stored not in (1, 3, 4):
        raise invalid(f"Number of channels inherent in the image must be 1, 3 or 4, was {stored}")
    if width <= 0:
        raise invalid(f"Width must be positive, was {width}")
    if height == 0:
        raise invalid("Height must be nonzero")
    if offset < 0:
        raise invalid(f"Pixel offset must not be negative, was {offset}")
    rows = abs(height)
    check_size("Total possible pixel bytes must be less than 2^30", rows, width, max(stored, channels))
    stride = (width * stored + 3) // 4 * 4
    surplus = len(contents) - (offset + stride * rows)
    if surplus != 0:
        raise invalid(f"Input size should match (header_size + row_size * abs_height) but they differ by {surplus}")
    lines = np.frombuffer(contents, np.uint8, stride * rows, offset).reshape(rows, stride)
    pixels = lines[:: -1 if height > 0 else 1, : width * stored].reshape(rows, width, stored)
    if stored == 1:
        if channels == 0:
            return np.ascontiguousarray(pixels)
        colors = np.repeat(pixels, 3, axis=2)
    else:
        colors = pixels[:, :, 2::-1]  # the file stores blue first
    if (channels or stored) != 4:
        return np.ascontiguousarray(colors)
    alpha = pixels[:, :, 3:] if stored == 4 else np.full((rows, width, 1), 255, np.uint8)
    return np.concatenate([colors, alpha], axis=2)
