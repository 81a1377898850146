"""Image codecs: conversion between bytes and NumPy arrays, with TensorFlow's pixel values and errors.

As in TensorFlow's ops, every decoder except `decode_bmp` also accepts other formats. The first bytes determine the format.
Pillow is imported only when an image needs it. No decoded image takes more than `MAX_DECODED_BYTES`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from stoker._src.formats.images import bmp, gif, jpeg, png, webp
from stoker._src.formats.images.jpeg import encode_jpeg as encode_jpeg
from stoker._src.formats.images.jpeg import extract_jpeg_shape as extract_jpeg_shape
from stoker._src.formats.images.jpeg import is_jpeg as is_jpeg
from stoker._src.formats.images.limits import MAX_DECODED_BYTES as MAX_DECODED_BYTES
from stoker._src.formats.images.limits import invalid
from stoker._src.formats.images.png import encode_png as encode_png

_NAMES = {"jpeg": "JPEG", "png": "PNG", "gif": "GIF", "bmp": "BMP", "webp": "WebP"}


def detect_format(contents: bytes) -> str:
    """Returns "jpeg", "png", "gif", "bmp" or "webp", depending on the first bytes.

    Raises:
        InvalidArgumentError: the format is none of these.
    """
    if not contents:
        raise invalid("Input is empty.")
    if contents.startswith(b"\xff\xd8\xff"):
        return "jpeg"
    if contents.startswith(b"\x89PNG\r\n\x1a\n"):
        return "png"
    if contents.startswith(b"GIF8"):
        return "gif"
    if contents.startswith(b"BM"):
        return "bmp"
    if contents.startswith(b"RIFF") and contents[8:12] == b"WEBP":
        return "webp"
    raise invalid("Unknown image file format. One of JPEG, PNG, GIF, BMP, WebP required.")


def _check_channels(channels: int) -> None:
    if channels not in (0, 1, 3, 4):
        raise invalid(f"`channels` must be 0, 1, 3 or 4 but got {channels}")


def _refuse_others(kind: str, op: str) -> None:
    if kind == "bmp":
        raise invalid(
            f"Trying to decode BMP format using a wrong op. Use `decode_bmp` or `decode_image` instead. Op used: {op}"
        )


def _jpeg(contents: bytes, channels: int, **options: Any) -> np.ndarray:
    if channels == 4:
        raise invalid("JPEG does not support 4 channels")
    return jpeg.decode_jpeg(contents, channels, **options)


def _still_gif(contents: bytes, channels: int) -> np.ndarray:
    if channels not in (0, 3):
        raise invalid(f"channels must be 0 or 3 for GIF, got {channels}")
    frames = gif.decode_gif(contents)
    if len(frames) != 1:
        raise invalid(
            f"Got {len(frames)} frames, but animated gifs can only be decoded by tf.io.decode_gif or tf.io.decode_image"
        )
    return frames[0]


def _webp(contents: bytes, channels: int, dtype: type) -> np.ndarray:
    if channels != 1 and dtype != np.uint8:
        raise invalid("WebP only supports uint8 for dtype")
    return webp.decode_webp(contents, channels)


def decode_jpeg(
    contents: bytes,
    channels: int = 0,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    acceptable_fraction: float = 1.0,
    dct_method: str = "",
) -> np.ndarray:
    """`DecodeJpeg`: decodes a JPEG, PNG or still GIF file to uint8 [height, width, channels]; see `jpeg.decode_jpeg`."""
    _check_channels(channels)
    jpeg.check_options(ratio, dct_method)  # checked for every format
    kind = detect_format(contents)
    _refuse_others(kind, "DecodeJpeg")
    if kind == "webp":
        return webp.decode_webp(contents, channels)
    if kind == "png":
        return png.decode_png(contents, channels)
    if kind == "gif":
        return _still_gif(contents, channels)
    return _jpeg(
        contents,
        channels,
        ratio=ratio,
        fancy_upscaling=fancy_upscaling,
        try_recover_truncated=try_recover_truncated,
        acceptable_fraction=acceptable_fraction,
        dct_method=dct_method,
    )


def decode_and_crop_jpeg(
    contents: bytes,
    crop_window: Any,
    channels: int = 0,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    acceptable_fraction: float = 1.0,
    dct_method: str = "",
) -> np.ndarray:
    """`DecodeAndCropJpeg`: returns the window [y, x, height, width] of the result of `decode_jpeg`; JPEG only."""
    _check_channels(channels)
    kind = detect_format(contents)
    if kind == "webp":
        return webp.decode_webp(contents, channels)  # without cropping
    if kind != "jpeg":
        raise invalid(f"DecodeAndCropJpeg operation can run on JPEG only, but detected {_NAMES[kind]}.")
    return _jpeg(
        contents,
        channels,
        ratio=ratio,
        fancy_upscaling=fancy_upscaling,
        try_recover_truncated=try_recover_truncated,
        acceptable_fraction=acceptable_fraction,
        dct_method=dct_method,
        crop_window=crop_window,
    )


def _to_uint16(image: np.ndarray) -> np.ndarray:
    # As TensorFlow does for 8-bit formats, shift instead of scaling, so that 255 becomes 65280.
    return image.astype(np.uint16) << np.uint16(8)


def decode_png(contents: bytes, channels: int = 0, dtype: type = np.uint8) -> np.ndarray:
    """`DecodePng`: decodes a PNG, JPEG or still GIF file to uint8 or uint16 [height, width, channels]."""
    _check_channels(channels)
    kind = detect_format(contents)
    _refuse_others(kind, "DecodePng")
    if kind == "webp":
        return _webp(contents, channels, dtype)
    if kind == "png":
        return png.decode_png(contents, channels, dtype)
    image = _jpeg(contents, channels) if kind == "jpeg" else _still_gif(contents, channels)
    return _to_uint16(image) if dtype == np.uint16 else image


def decode_pngs(files: Sequence[bytes], channels: int = 0, dtype: type = np.uint8, threads: int = 1) -> np.ndarray:
    """`decode_png` for files with pictures of one size: [files, height, width, channels]. At most `threads` threads share them.

    Raises:
        InvalidArgumentError: a file is damaged, or the sizes differ.
    """
    if dtype == np.uint8 and channels in (0, 1, 3, 4) and all(each.startswith(png.SIGNATURE) for each in files):
        found = png.decode_plain(files, channels, threads)
        if found is not None:
            return found
    return together(decode_png(each, channels, dtype) for each in files)


def together(pictures: Iterable[np.ndarray]) -> np.ndarray:
    """Joins pictures of one size.

    Raises:
        InvalidArgumentError: the sizes differ.
    """
    found: list[np.ndarray] = []
    for each in pictures:
        if found and each.shape != found[0].shape:
            raise invalid(f"The pictures differ in size: {found[0].shape} and {each.shape}")
        found.append(each)
    return np.stack(found)


def decode_gif(contents: bytes) -> np.ndarray:
    """`DecodeGif`: decodes a GIF, JPEG or PNG file to uint8 [frames, height, width, 3]."""
    kind = detect_format(contents)
    _refuse_others(kind, "DecodeGif")
    if kind == "webp":
        return webp.decode_webp(contents, 3)
    if kind == "gif":
        return gif.decode_gif(contents)
    return (_jpeg(contents, 3) if kind == "jpeg" else png.decode_png(contents, 3))[None]


def decode_bmp(contents: bytes, channels: int = 0) -> np.ndarray:
    """`DecodeBmp`: decodes a BMP file to uint8 [height, width, channels], or a WebP file to [frames, ...]. Rejects other formats."""
    _check_channels(channels)
    kind = detect_format(contents)
    if kind == "webp":
        return webp.decode_webp(contents, channels)
    if kind != "bmp":
        raise invalid(
            f"Trying to decode {_NAMES[kind]} format using DecodeBmp op. Use `decode_{kind}` or `decode_image` instead."
        )
    return bmp.decode_bmp(contents, channels)


def decode_image(
    contents: bytes, channels: int = 0, dtype: type = np.uint8, expand_animations: bool = True
) -> np.ndarray:
    """`DecodeImage`: decodes a file of any supported format to uint8, uint16 or float32 (0 to 1); WebP to uint8 only.

    Args:
        contents: the file.
        channels: 0 (as stored), 1, 3 or 4, as far as the format supports it.
        dtype: uint8, uint16 or float32.
        expand_animations: if True, GIF and WebP give [frames, height, width, channels]. If False, they give the first frame, without
            that axis.

    Raises:
        InvalidArgumentError: the contents are damaged, or the format does not support the number of channels.
    """
    _check_channels(channels)
    kind = detect_format(contents)
    if kind == "png":
        image = png.decode_png(contents, channels, np.uint8 if dtype == np.uint8 else np.uint16)
        return image * np.float32(1 / 65535) if dtype == np.float32 else image
    if kind == "webp":
        frames = _webp(contents, channels, dtype)
        return frames if expand_animations else frames[0].copy()
    if kind == "jpeg":
        image = _jpeg(contents, channels)
    elif kind == "bmp":
        image = bmp.decode_bmp(contents, channels)
    elif channels not in (0, 3):
        raise invalid(f"channels must be 0 or 3 for GIF, got {channels}")
    else:
        image = gif.decode_gif(contents, expand_animations)
    if dtype == np.float32:
        return image * np.float32(1 / 255)
    return _to_uint16(image) if dtype == np.uint16 else image
