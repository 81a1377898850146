"""Decodes still and animated GIFs, composed as in TensorFlow.

Every frame starts as a copy of the previous one (the first one starts black), and the frame's pixels are painted over it.
Transparent pixels leave the canvas unchanged. Disposal methods have no effect. The canvas has the size of the
largest frame, not of the screen in the header.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
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
    """Raised when the file ends inside a block."""


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
        """Reads a chain of sub-blocks, including the length bytes and the final zero."""
        start = self._at
        while length := self.byte():
            self.take(length)
        return self._contents[start : self._at]

    def palette(self, flags: int) -> np.ndarray | None:
        if not flags & 0x80:
            return None
        size = 2 << (flags & 7)
        return np.frombuffer(self.take(3 * size), np.uint8).reshape(size, 3)


def _frames(contents: bytes) -> list[_Frame]:
    """Returns all complete frames. A truncated or damaged file gives the frames before the damage and raises if there are none."""
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
        while True:
            kind = reader.byte()
            if kind == 0x3B:
                reason = "No Image Descriptor detected"
                break
            if kind == 0x21:
                label, first = reader.byte(), reader.take(reader.byte())
                reader.sub_blocks()  # even after an empty first one, as in giflib
                if label == 0xF9 and len(first) == 4:
                    transparent = first[3] if first[0] & 1 else None
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


def _indices(frame: _Frame) -> np.ndarray | None:
    """Returns the colour indices of a frame as [height, width], or None if it is damaged."""
    size = frame.width * frame.height
    # A code represents at most 4096 pixels. Check that the data can hold the frame before memory is allocated for it.
    if not 0 < size <= 4096 * len(frame.data) * 8 // (frame.code_size + 1) or frame.code_size > 8:
        return None
    check_size("Invalid GIF data", frame.height, frame.width)
    from PIL import Image  # importing stoker must not import Pillow

    if frame.code_size:
        canvas = Image.new("L", (frame.width, frame.height), 255)
        decoder = Image._getdecoder("L", "gif", (frame.code_size, int(frame.interlaced)))
        decoder.setimage(canvas.im, (0, 0, frame.width, frame.height))
        left, failure = decoder.decode(frame.data)
        found = np.asarray(canvas)
        # A row that is all 255 may not have been reached because the data ended early, so such a frame is decoded again below.
        if left < 0 and not failure and not (found == 255).all(axis=1).any():
            return found
    pixels = _unpacked(frame, size)
    if pixels is None:
        return None
    rows = np.frombuffer(pixels, np.uint8).reshape(frame.height, frame.width)
    if not frame.interlaced:
        return rows
    order = np.concatenate([np.arange(first, frame.height, step) for first, step in ((0, 8), (4, 8), (2, 4), (1, 2))])
    placed = np.empty_like(rows)
    placed[order] = rows
    return placed


def _unpacked(frame: _Frame, size: int) -> bytes | None:
    """Decodes `size` pixels of LZW codes, or returns None if they are damaged. Slow; used for data that Pillow rejects but giflib accepts.

    An undefined code represents the pixels of the previous code and one more pixel. If it is the next code to be defined, that
    pixel is the first one of the previous code; otherwise it is index 2, as in giflib.
    """
    clear = 1 << frame.code_size
    end = clear + 1
    book = _Book(clear)
    pixels = bytearray()
    last = None  # the previous code
    count, width = end + 1, frame.code_size + 1  # number of codes since the last clear, and their width in bits
    held = filled = at = 0
    data = b"".join(_blocks(frame.data))
    while len(pixels) < size:
        while filled < width:
            if at == len(data):
                return None
            held |= data[at] << filled
            filled, at = filled + 8, at + 1
        code, held, filled = held & ((1 << width) - 1), held >> width, filled - width
        if count < 4097:
            count += 1
            if count > 1 << width and width < 12:
                width += 1
        if code == end:
            return None
        if code == clear:
            book, last, count, width = _Book(clear), None, end + 1, frame.code_size + 1
            continue
        newest = count - 2
        known = code < clear or code in book.links
        text = book.text(code if known else last)
        if text is None:
            return None
        pixels += text
        if not known:
            pixels.append(book.first(last if code == newest else code))
        if last is not None and newest not in book.links:
            book.links[newest] = (last, book.first(last if code == newest else code))
        last = code
    return bytes(pixels[:size])


class _Book:
    """The code table. A code may extend one that is defined later."""

    def __init__(self, clear: int) -> None:
        self.links: dict[int, tuple[int, int]] = {}  # code -> the code it extends, and its last pixel
        self._clear = clear
        self._texts: dict[int, bytes] = {}

    def text(self, code: int | None) -> bytes | None:
        """Returns the pixels of a code, or None if it is undefined."""
        if code is None:
            return None
        tail, at = bytearray(), code
        while at > self._clear and at not in self._texts:
            if at not in self.links or len(tail) > 4095:  # longer chains are cycles
                return None
            at, pixel = self.links[at]
            tail.append(pixel)
        text = (self._texts[at] if at > self._clear else bytes([at])) + bytes(reversed(tail))
        if code > self._clear:
            self._texts[code] = text
        return text if len(text) < 4097 else None

    def first(self, code: int | None) -> int:
        text = self.text(code)
        return 2 if text is None else text[0]


def _blocks(data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data) and data[at]:
        yield data[at + 1 : at + 1 + data[at]]
        at += 1 + data[at]


def decode_gif(contents: bytes, expand_animations: bool = True) -> np.ndarray:
    """Decodes a GIF file into uint8 [frames, height, width, 3], or only its first frame as [height, width, 3].

    Frames from the first damaged one onwards are omitted.

    Raises:
        InvalidArgumentError: there is no complete frame, a frame has no palette, or a colour index is outside it.
    """
    words = f"Invalid GIF data (size {len(contents)})"
    frames = _frames(contents)
    pictures: list[np.ndarray] = []
    for frame in frames:
        picture = _indices(frame)
        if picture is None:
            break
        pictures.append(picture)
    if not pictures:
        raise invalid(f"{words}, failed to slurp gif file: Image is defective")
    frames = frames[: len(pictures)]
    width, height = max(frame.width for frame in frames), max(frame.height for frame in frames)
    if not expand_animations:
        frames = frames[:1]
    check_size(words, len(frames), height, width, 3)
    canvas = np.zeros((len(frames), height, width, 3), np.uint8)
    for number, (frame, picture) in enumerate(zip(frames, pictures)):
        if frame.palette is None:
            raise invalid(f"{words}, missing color map for frame {number}")
        if number:
            canvas[number] = canvas[number - 1]
        visible = picture[: max(0, height - frame.top), : max(0, width - frame.left)]
        target = canvas[number, frame.top : frame.top + frame.height, frame.left : frame.left + frame.width]
        painted = visible != frame.transparent if frame.transparent is not None else np.ones(visible.shape, bool)
        used = visible[painted]
        if used.size and int(used.max()) >= len(frame.palette):
            first = int(used[used >= len(frame.palette)][0])
            raise invalid(f"{words}, found color index {first} outside of color map range {len(frame.palette)}")
        target[painted] = frame.palette[used]
    return canvas if expand_animations else canvas[0]
