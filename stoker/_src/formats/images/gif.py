"""GIF, also animated, composed as TensorFlow does.

Every frame begins as the frame before it (the first one black), and what the frame covers is painted over it;
transparent pixels keep what was there. How a frame asks to be disposed of has no effect. The canvas is as large as the
largest frame, not as the screen that the header names.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np

from stoker._src.formats.images.limits import check_size, invalid


class _Frame(NamedTuple):
    left: int
    top: int
    width: int
    height: int
    interlaced: bool
    transparent: int | None
    palette: np.ndarray | None
    code_size: int
    data: bytes  # LZW codes in sub-blocks, with their length bytes


class _Truncated(Exception):
    """The file ends inside a block."""


class _Reader:
    def __init__(self, contents: bytes) -> None:
        self._contents = contents
        self._at = 0

    def take(self, count: int) -> bytes:
        part = self._contents[self._at : self._at + count]
        if len(part) < count:
            raise _Truncated
        self._at += count
        return part

    def byte(self) -> int:
        return self.take(1)[0]

    def sub_blocks(self) -> bytes:
        """A chain of sub-blocks, with the length bytes and the closing zero."""
        start = self._at
        while length := self.byte():
            self.take(length)
        return self._contents[start : self._at]

    def palette(self, flags: int) -> np.ndarray | None:
        if not flags & 0x80:
            return None
        size = 2 << (flags & 7)
        return np.frombuffer(self.take(3 * size), np.uint8).reshape(size, 3)


def _frames(contents: bytes, at_most: int | None) -> list[_Frame]:
    """Every complete frame; a file cut short gives those before the cut, if there is one."""
    words = f"Invalid GIF data (size {len(contents)})"
    reader = _Reader(contents)
    try:
        reader.take(6)
        flags = struct.unpack("<4xBBB", reader.take(7))[0]
        shared = reader.palette(flags)
    except _Truncated:
        raise invalid(f"{words}, failed to open gif file: No screen descriptor detected") from None
    found: list[_Frame] = []
    transparent = None
    reason = "Failed to read from given file"
    try:
        while at_most is None or len(found) < at_most:
            kind = reader.byte()
            if kind == 0x3B:
                reason = "No Image Descriptor detected"
                break
            if kind == 0x21:
                label = reader.byte()
                body = reader.sub_blocks()
                if label == 0xF9 and len(body) >= 5:
                    transparent = body[4] if body[1] & 1 else None
            elif kind == 0x2C:
                left, top, width, height, flags = struct.unpack("<HHHHB", reader.take(9))
                own = reader.palette(flags)
                code_size = reader.byte()
                palette = shared if own is None else own
                interlaced = bool(flags & 0x40)
                data = reader.sub_blocks()
                found.append(_Frame(left, top, width, height, interlaced, transparent, palette, code_size, data))
                transparent = None
            else:
                reason = "Wrong record type detected"
                break
    except _Truncated:
        pass
    if not found:
        raise invalid(f"{words}, failed to slurp gif file: {reason}")
    return found


def _indices(frame: _Frame, words: str) -> np.ndarray:
    from PIL import Image  # importing stoker must not import Pillow

    if not 1 <= frame.code_size <= 11:
        raise invalid(f"{words}, failed to slurp gif file: LZW code size {frame.code_size}")
    try:
        decoded = Image.frombytes(
            "L", (frame.width, frame.height), frame.data, "gif", frame.code_size, int(frame.interlaced)
        )
    except (ValueError, OSError) as error:
        raise invalid(f"{words}, failed to slurp gif file: {error}") from error
    return np.asarray(decoded)


def decode_gif(contents: bytes, expand_animations: bool = True) -> np.ndarray:
    """Decodes a GIF file into uint8 [frames, height, width, 3], or only its first frame as [height, width, 3].

    Raises:
        InvalidArgumentError: no complete frame, a frame without colours, or a colour index outside them.
    """
    words = f"Invalid GIF data (size {len(contents)})"
    frames = _frames(contents, None)
    width, height = max(frame.width for frame in frames), max(frame.height for frame in frames)
    if width == 0 or height == 0:
        raise invalid(f"{words}, a frame is {width} pixels wide and {height} high")
    if not expand_animations:
        frames = frames[:1]
    check_size(words, len(frames), height, width, 3)
    canvas = np.zeros((len(frames), height, width, 3), np.uint8)
    for number, frame in enumerate(frames):
        if frame.palette is None:
            raise invalid(f"{words}, missing color map for frame {number}")
        if number:
            canvas[number] = canvas[number - 1]
        if not frame.width or not frame.height:
            continue
        visible = _indices(frame, words)[: max(0, height - frame.top), : max(0, width - frame.left)]
        target = canvas[number, frame.top : frame.top + frame.height, frame.left : frame.left + frame.width]
        painted = visible != frame.transparent if frame.transparent is not None else np.ones(visible.shape, bool)
        used = visible[painted]
        if used.size and int(used.max()) >= len(frame.palette):
            first = int(used[used >= len(frame.palette)][0])
            raise invalid(f"{words}, found color index {first} outside of color map range {len(frame.palette)}")
        target[painted] = frame.palette[used]
    return canvas if expand_animations else canvas[0]
