"""Decodes and encodes PNG (ISO/IEC 15948): all colour types and depths, interlaced or not, as 8 or 16 bits.

zlib inflates an image to exactly as many bytes as the header declares, which protects against decompression bombs.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from stoker._src.base.errors import InternalError
from stoker._src.base.extensions import extension
from stoker._src.formats.images.filters import filter_rows, unfilter_rows
from stoker._src.formats.images.limits import check_size, invalid

_native = extension("stoker._src.formats.images._native")
SIGNATURE = b"\x89PNG\r\n\x1a\n"
_SAMPLES = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}  # by colour type
_DEPTHS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
_COLOR_TYPE = {1: 0, 2: 4, 3: 2, 4: 6}  # by number of channels
# Adam7: first row, first column, step between rows, step between columns.
_PASSES = ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1))

_LUMA_WEIGHTS = np.array([9797, 19234, 3737], np.uint32)


class _Header(NamedTuple):
    width: int
    height: int
    depth: int
    color: int
    interlaced: bool


def _read_header(contents: bytes) -> _Header:
    words = "Invalid PNG. Failed to initialize decoder."
    if len(contents) < 33 or contents[8:16] != b"\0\0\0\rIHDR":
        raise invalid(f"{words} No header in {len(contents)} bytes")
    if struct.unpack(">I", contents[29:33])[0] != zlib.crc32(contents[12:29]):
        raise invalid(f"{words} The header's checksum is wrong")
    width, height, depth, color, compression, filtering, interlacing = struct.unpack(">IIBBBBB", contents[16:29])
    if not 0 < width < 2**31 or not 0 < height < 2**31:
        raise invalid(f"{words} Size {width} x {height}")
    if depth not in _DEPTHS.get(color, ()) or compression or filtering or interlacing > 1:
        raise invalid(
            f"{words} Colour type {color}, depth {depth}, compression {compression}, filter {filtering}, "
            f"interlace {interlacing}"
        )
    return _Header(width, height, depth, color, bool(interlacing))


class _Chunks(NamedTuple):
    data: list[memoryview]
    palette: bytes | None
    transparency: bytes | None
    gamma: float | None  # None if it is too close to 1 for libpng to apply it


def _read_chunks(contents: bytes, header: _Header) -> _Chunks:
    words = f"Invalid PNG data, size {len(contents)}"
    view = memoryview(contents)
    at, data, palette, transparency, gamma, over = 33, [], None, None, None, False
    while True:
        if at + 12 > len(contents):
            raise invalid(f"{words}: it ends without an IEND chunk")
        length, kind = struct.unpack_from(">I4s", contents, at)
        if length > len(contents) - at - 12:
            raise invalid(f"{words}: chunk {kind!r} of {length} bytes at {at} passes the end")
        body = view[at + 8 : at + 8 + length]
        over = over or (bool(data) and kind != b"IDAT")  # only consecutive IDAT chunks hold pixels
        if not kind.isalpha():
            raise invalid(f"{words}: chunk {kind!r} at {at} has no name of letters")
        critical = not kind[0] & 0x20
        if zlib.crc32(view[at + 4 : at + 8 + length]) != struct.unpack_from(">I", contents, at + 8 + length)[0]:
            if critical:
                raise invalid(f"{words}: the checksum of chunk {kind!r} at {at} is wrong")
            at += 12 + length  # libpng skips it
            continue
        if kind == b"IDAT":
            if header.color == 3 and palette is None:
                raise invalid("Invalid PNG. Failed to initialize decoder. There is no palette")
            if not over:
                data.append(body)
        elif kind == b"PLTE":
            if length % 3 or not 0 < length <= 768 or palette is not None:
                again = "" if palette is None else " second"
                raise invalid(f"Invalid PNG. Failed to initialize decoder. A{again} palette of {length} bytes")
            palette = bytes(body)
        elif kind in (b"tRNS", b"gAMA", b"sRGB") and data:
            pass  # ignored after the pixel data
        elif kind == b"tRNS":
            if header.color != 3 or palette is not None:  # also ignored before the palette
                transparency = bytes(body)
        elif kind == b"gAMA" and length == 4:
            gamma = int.from_bytes(body, "big") / 100000
        elif kind == b"sRGB":
            gamma = 0.45455
        elif kind == b"IEND":
            known = gamma is not None and 0.001 < gamma < 100 and abs(gamma - 1) >= 0.05
            return _Chunks(data, palette, transparency, gamma if known else None)
        elif critical:
            raise invalid(f"{words}: unknown critical chunk {kind!r}")
        at += 12 + length


def _inflate(parts: list[memoryview], expected: int, words: str) -> bytes:
    inflater = zlib.decompressobj()
    found: list[bytes] = []
    missing = expected
    try:
        for part in parts:
            found.append(inflater.decompress(part, missing))
            missing -= len(found[-1])
            if not missing:  # libpng ignores what follows, even a wrong checksum
                break
    except zlib.error as error:
        raise invalid(f"{words}: {error}") from error
    raw = found[0] if len(found) == 1 else b"".join(found)
    if len(raw) < expected:
        raise invalid(f"{words}: {len(raw)} bytes of pixels where the header promises {expected}")
    return raw


def _unpacked(rows: np.ndarray, width: int, samples: int, depth: int) -> np.ndarray:
    """Unpacks rows of bytes to [rows, width, samples]."""
    if depth == 8:
        return rows.reshape(len(rows), width, samples)
    if depth == 16:
        return rows.view(">u2").astype(np.uint16).reshape(len(rows), width, samples)
    bits = np.unpackbits(rows, axis=1).reshape(len(rows), -1, depth)
    values = np.packbits(bits, axis=2)[:, :width, 0] >> (8 - depth)
    return values.reshape(len(rows), width, samples)


def _row_bytes(width: int, header: _Header) -> int:
    return (width * _SAMPLES[header.color] * header.depth + 7) // 8


def _samples(header: _Header, parts: list[memoryview], words: str) -> np.ndarray:
    """Returns the stored samples [height, width, samples of the colour type]."""
    if not parts:
        raise invalid(f"{words}: there is no IDAT chunk")
    count = _SAMPLES[header.color]
    step = max(1, count * header.depth // 8)  # bytes per pixel
    if not header.interlaced:
        size = _row_bytes(header.width, header)
        raw = _inflate(parts, (size + 1) * header.height, words)
        return _unpacked(unfilter_rows(raw, header.height, size, step, words), header.width, count, header.depth)
    passes = []
    for y, x, down, right in _PASSES:
        rows, columns = -(-(header.height - y) // down), -(-(header.width - x) // right)
        if rows > 0 and columns > 0:
            passes.append((y, x, down, right, rows, columns, _row_bytes(columns, header)))
    raw = _inflate(parts, sum((size + 1) * rows for *_, rows, _, size in passes), words)
    image = np.empty((header.height, header.width, count), np.uint16 if header.depth == 16 else np.uint8)
    at = 0
    for y, x, down, right, rows, columns, size in passes:
        end = at + (size + 1) * rows
        lines = unfilter_rows(raw[at:end], rows, size, step, words)
        image[y::down, x::right] = _unpacked(lines, columns, count, header.depth)
        at = end
    return image


def _opened_palette(image: np.ndarray, palette: bytes, transparency: bytes | None) -> np.ndarray:
    """Converts colour indices to RGB, or to RGBA if the palette has alpha values. Indices past the palette become black."""
    table = np.zeros((256, 4), np.uint8)
    colors = np.frombuffer(palette, np.uint8).reshape(-1, 3)
    table[: len(colors), :3] = colors
    table[:, 3] = 255
    if transparency is None:
        return table[:, :3][image[:, :, 0]]
    alpha = np.frombuffer(transparency[:256], np.uint8)
    table[: len(alpha), 3] = alpha
    return table[image[:, :, 0]]


def _gray(colors: np.ndarray, gamma: float | None) -> np.ndarray:
    """Computes luma with libpng's 15-bit weights for 0.299, 0.587 and 0.114, in linear light if gamma is known.

    8-bit results match libpng exactly, and so do 16-bit ones without gamma.
    """
    top = np.iinfo(colors.dtype).max
    linear = colors
    if gamma is not None:
        linear = np.floor(top * (np.arange(top + 1) / top) ** (1 / gamma) + 0.5).astype(colors.dtype)[colors]
    rounding = 16384 if colors.dtype == np.uint16 or gamma is not None else 0
    luma = (linear.astype(np.uint32) @ _LUMA_WEIGHTS + np.uint32(rounding)) >> np.uint32(15)
    if gamma is not None:
        back = np.floor(top * (np.arange(top + 1) / top) ** gamma + 0.5).astype(colors.dtype)[luma]
        even = (colors[:, :, 0] == colors[:, :, 1]) & (colors[:, :, 1] == colors[:, :, 2])
        luma = np.where(even, colors[:, :, 0], back)
    return luma.astype(colors.dtype)[:, :, None]


def _with_channels(image: np.ndarray, channels: int, opaque: int) -> np.ndarray:
    """Converts gray (1 channel), gray and alpha (2), RGB (3) or RGBA (4) to 3 or 4 channels. One channel needs no conversion."""
    stored = image.shape[2]
    if channels in (0, stored):
        return image
    color, alpha = (image[:, :, :-1], image[:, :, -1:]) if stored in (2, 4) else (image, None)
    if color.shape[2] == 1:
        color = np.repeat(color, 3, axis=2)
    if channels == 3:
        return color
    if alpha is None:
        alpha = np.full((*image.shape[:2], 1), opaque, image.dtype)
    return np.concatenate([color, alpha], axis=2)


def decode_png(contents: bytes, channels: int = 0, dtype: type = np.uint8) -> np.ndarray:
    """Decodes a PNG file into [height, width, channels].

    Args:
        contents: the file.
        channels: 0 (as stored; a palette is expanded to its colours), 1, 3 or 4.
        dtype: uint8 (16-bit samples lose their low byte) or uint16 (8-bit samples are scaled to the full range).

    Raises:
        InvalidArgumentError: the file is damaged, or too large.
    """
    header = _read_header(contents)
    words = f"Invalid PNG data, size {len(contents)}"
    wide = 2 if dtype == np.uint16 or header.depth == 16 else 1
    check_size(words, header.height, header.width, max(channels, _SAMPLES[header.color], 3), wide)
    chunks = _read_chunks(contents, header)
    palette, transparency = chunks.palette, chunks.transparency
    image = _samples(header, chunks.data, words)
    key = None
    if header.color == 3:
        assert palette is not None
        image = _opened_palette(image, palette, transparency)
    elif (
        transparency is not None
        and header.color in (0, 2)
        and len(transparency) >= 2 * image.shape[2]
        and channels == 4
    ):
        # One colour means "transparent", which matters only if an alpha channel is requested.
        wanted = np.array(struct.unpack_from(f">{image.shape[2]}H", transparency), np.uint16)
        key = (image == wanted).all(axis=2)
    if header.color == 0 and header.depth < 8:
        image = image * np.uint8(255 // (2**header.depth - 1))
    if channels == 1 and image.shape[2] > 1:
        image = image[:, :, :1] if image.shape[2] == 2 else _gray(image[:, :, :3], chunks.gamma)
    if dtype == np.uint8 and image.dtype == np.uint16:
        image = (image >> 8).astype(np.uint8)
    elif dtype == np.uint16 and image.dtype == np.uint8:
        image = image.astype(np.uint16) * np.uint16(257)
    # TensorFlow adds an opaque alpha channel at the file's bit depth, so for depths of 1, 2 and 4 bits it is not 255.
    opaque = (255 if key is not None else 2 ** min(header.depth, 8) - 1) * (257 if dtype == np.uint16 else 1)
    image = _with_channels(image, channels, opaque)
    if key is not None:
        image[key, 3] = 0
    return image


def decode_plain(files: Sequence[bytes], channels: int, threads: int = 1) -> np.ndarray | None:
    """`decode_png` for files of one size, as uint8 [files, height, width, channels].

    Returns None if the sizes differ, or a file has to be looked at more closely.
    """
    if _native is None:
        return None
    header = _read_header(files[0])
    stored = 3 if header.color == 3 else _SAMPLES[header.color]
    words = f"Invalid PNG data, size {len(files[0])}"
    check_size(words, header.height, header.width, max(channels, stored, 3) * len(files), 1)
    out = np.empty((len(files), header.height, header.width, channels or stored), np.uint8)
    good = _native.decode_pngs(files, out, *out.shape[1:], not channels, threads)
    return out if good else None


_DATA_CHUNK = 8192  # bytes of image data per chunk, as in libpng


def encode_png(image: np.ndarray, compression: int = -1) -> bytes:
    """Encodes uint8 or uint16 [height, width, 1 to 4] as PNG.

    Args:
        image: 1 gray, 2 gray and alpha, 3 RGB, 4 RGBA.
        compression: zlib's level, 0 to 9; -1 for the default.

    Raises:
        InvalidArgumentError: the shape, dtype or level is invalid.
        InternalError: the image is empty, as in TensorFlow.
    """
    if image.ndim != 3:
        raise invalid(f"images must be at least rank 3, got {list(image.shape)}")
    height, width, channels = image.shape
    if channels not in _COLOR_TYPE:
        raise invalid(f"image must have 1, 2, 3, or 4 channels, got {channels}")
    if not -1 <= compression <= 9:
        raise invalid(f"compression should be in [-1,9], got {compression}")
    if image.dtype not in (np.uint8, np.uint16):
        raise invalid(f"image must be uint8 or uint16, got {image.dtype}")
    if not height or not width:
        raise InternalError(None, None, f"PNG encoding failed: the picture is {height} x {width}")
    depth = 8 * image.dtype.itemsize
    rows = image.astype(">u2").view(np.uint8) if depth == 16 else image
    lines = np.ascontiguousarray(rows).reshape(height, -1)
    filtered = filter_rows(lines, channels * depth // 8, adaptive=compression != 0)
    packer = zlib.compressobj(compression, zlib.DEFLATED, zlib.MAX_WBITS, 9, zlib.Z_FILTERED)
    data = _with_narrow_window(packer.compress(filtered) + packer.flush(), len(filtered))
    header = struct.pack(">IIBBBBB", width, height, depth, _COLOR_TYPE[channels], 0, 0, 0)
    pieces = [_chunk(b"IDAT", data[at : at + _DATA_CHUNK]) for at in range(0, len(data), _DATA_CHUNK)]
    return b"".join((SIGNATURE, _chunk(b"IHDR", header), *pieces, _chunk(b"IEND", b"")))


def _with_narrow_window(stream: bytes, size: int) -> bytes:
    """Returns the zlib stream with the smallest window in its header that suffices for `size` bytes, as libpng does."""
    bits = 15
    while bits > 8 and size <= 1 << (bits - 1):
        bits -= 1
    method, flags = (bits - 8) << 4 | 8, stream[1] & 0xE0
    flags += 31 - (method << 8 | flags) % 31
    return bytes((method, flags)) + stream[2:]


def _chunk(kind: bytes, body: bytes) -> bytes:
    return b"".join((struct.pack(">I", len(body)), kind, body, struct.pack(">I", zlib.crc32(body, zlib.crc32(kind)))))
