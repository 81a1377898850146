"""The size limit of decoded images and the error for exceeding it."""

from __future__ import annotations

from stoker._src.base.errors import InvalidArgumentError

MAX_DECODED_BYTES = 1 << 30
"""The size limit of a decoded image in bytes (all frames of a GIF together). TensorFlow uses it for BMP."""


def invalid(message: str) -> InvalidArgumentError:
    """Creates the error that all decoders raise. It has no op; the op's kernel adds that."""
    return InvalidArgumentError(None, None, message)


def check_size(words: str, *sizes: int) -> None:
    """Rejects an image whose decoded size in bytes, the product of `sizes`, reaches the limit. Call it before allocating memory."""
    total = 1
    for size in sizes:
        total *= size
    if total >= MAX_DECODED_BYTES:
        shape = " x ".join(map(str, sizes))
        raise invalid(f"{words}: {shape} = {total} bytes; at most {MAX_DECODED_BYTES} are decoded")
