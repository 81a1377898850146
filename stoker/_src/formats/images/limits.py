"""What no picture may exceed, and the error that says so."""

from __future__ import annotations

from stoker._src.base.errors import InvalidArgumentError

MAX_DECODED_BYTES = 1 << 30
"""The most bytes one decoded picture (all frames of a GIF together) may take. TensorFlow's own limit for BMP."""


def invalid(message: str) -> InvalidArgumentError:
    """The error of every decoder: it carries no op, which the op's kernel adds."""
    return InvalidArgumentError(None, None, message)


def check_size(words: str, *sizes: int) -> None:
    """Refuses a picture whose decoded bytes, the product of `sizes`, pass the limit, before anything is allocated."""
    total = 1
    for size in sizes:
        total *= size
    if total >= MAX_DECODED_BYTES:
        shape = " x ".join(map(str, sizes))
        raise invalid(f"{words}: {shape} = {total} bytes; at most {MAX_DECODED_BYTES} are decoded")
