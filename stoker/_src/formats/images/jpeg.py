"""Decodes and encodes JPEG. Decoding uses libjpeg-turbo, through simplejpeg if it is installed and otherwise through Pillow.

By default, TensorFlow decodes with libjpeg-turbo's fast integer transform and smooth chroma upsampling.
simplejpeg supports this combination, so its pixels equal TensorFlow's. Pillow supports only (accurate, smooth) and (fast,
plain). If chroma is subsampled and another combination is requested, the nearest one is used, and pixels differ by a few
levels. For gray images, images without subsampling and reduced sizes (`ratio`), the pixels equal TensorFlow's in both cases.
"""

from __future__ import annotations

import io
import struct
from typing import Any, NamedTuple

import numpy as np

from stoker._src.base.errors import InternalError
from stoker._src.base.extensions import extension
from stoker._src.formats.images.limits import check_size, invalid

_native = extension("stoker._src.formats.images._native")
FAILED = "jpeg::Uncompress failed. Invalid JPEG data or crop window."
_XMP_NAMESPACE = b"http://ns.adobe.com/xap/1.0/\0"
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_LUMA_WEIGHTS = np.array([19595, 38470, 7471], np.uint32)  # 0.299, 0.587, 0.114 in 16 bits
_BARE = frozenset((0x01, *range(0xD0, 0xD9)))  # markers without a length
_PLAIN = np.isin(np.arange(256), (0x00, 0x01, *range(0xD0, 0xD8), 0xFF))  # bytes that may follow 0xFF in pixel data
_WARNINGS = (  # libjpeg warnings; it still decodes such files
    "Application transferred too many scanlines",
    "Corrupt JPEG data",
    "Inconsistent progression sequence",
    "Invalid SOS parameters for sequential JPEG",
    "Premature end of JPEG file",
    "Unknown Adobe color transform code",
    "Warning: unknown JFIF revision number",
)
_NOTES = frozenset((*range(0xE0, 0xF0), 0xFE))  # segments with arbitrary content
_SEGMENTS = _NOTES | frozenset((0xC4, 0xCC, 0xDA, 0xDB, 0xDC, 0xDD))  # allowed between scans


class Header(NamedTuple):
    """The contents of a JPEG file's frame header."""

    height: int
    width: int
    components: int
    sampling: tuple[int, int]  # luma samples per chroma sample, across and down
    progressive: bool
    adobe: bool
    rgb: bool  # the three components are red, green and blue, not luma and chroma
    scan: int  # start of the first scan


def read_header(contents: bytes, words: str = FAILED) -> Header:
    """Reads the file up to the first scan.

    Raises:
        InvalidArgumentError: the file ends or is invalid before it; the message starts with `words`.
    """
    if contents[:2] != b"\xff\xd8":
        raise invalid(f"{words}: it does not begin with a start marker")
    at, size, adobe, rgb, components = 2, None, False, False, b""
    while at + 4 <= len(contents):
        if contents[at] != 0xFF:
            at += 1  # libjpeg skips bytes between segments
            continue
        marker = contents[at + 1]
        if marker == 0xFF:
            at += 1
            continue
        if marker in _BARE or marker == 0:
            at += 2
            continue
        length = struct.unpack_from(">H", contents, at + 2)[0]
        if length < 2 and marker in _NOTES:
            at += 4
            continue
        if length < 2 or marker == 0xD9:
            break
        body = contents[at + 4 : at + 2 + length]
        if marker == 0xDA and size is not None:
            _check_scan(body, length, components, words)
            return Header(*size, adobe, rgb and size[2] == 3, at)
        if len(body) < length - 2:
            break
        if marker not in _FRAMES | _SEGMENTS or not _fits(marker, body):
            raise invalid(f"{words}: bad segment {marker:#04x} at byte {at}")
        if marker in _FRAMES:
            if size is not None or len(body) < 6 or len(body) != 6 + 3 * body[5]:
                break
            precision, height, width, count = struct.unpack_from(">BHHB", body)
            if precision != 8 or not height or not width or count not in (1, 3, 4):
                raise invalid(f"{words}: {count} components of {precision} bits, {width} x {height}")
            across = [body[7 + 3 * k] >> 4 for k in range(count)]
            down = [body[7 + 3 * k] & 15 for k in range(count)]
            if not all(1 <= factor <= 4 for factor in (*across, *down)):
                raise invalid(f"{words}: sampling factors {across}, {down}")
            sampling = (max(across) // min(across), max(down) // min(down))
            size = (height, width, count, sampling, marker == 0xC2)
            components = body[6::3]
        elif marker == 0xEE and body.startswith(b"Adobe"):
            adobe = True
            rgb = len(body) >= 12 and body[11] == 0
        at += 2 + length
    raise invalid(f"{words}: no complete header in {len(contents)} bytes")


def _outline(contents: bytes) -> tuple[Header, bool | None]:
    """Returns the header, and whether the end marker follows the scans if that is known.

    Raises:
        InvalidArgumentError: see `read_header`.
    """
    found = None if _native is None else _native.jpeg_header(contents)
    if found is None:
        return read_header(contents), None
    height, width, components, across, down, progressive, adobe, rgb, scan, complete = found
    return Header(height, width, components, (across, down), progressive, adobe, rgb, scan), complete


def _check_scan(body: bytes, length: int, components: bytes, words: str) -> None:
    """Rejects a scan header that does not match the frame's components. A truncated header is checked as far as it goes."""
    if not body:
        return
    count = body[0]
    named = body[1 : 1 + 2 * count : 2]
    if not 1 <= count <= 4 or length != 6 + 2 * count or not set(named) <= set(components):
        raise invalid(f"{words}: a scan of {count} components {list(named)} of {list(components)}, {length} bytes long")


def _fits(marker: int, body: bytes) -> bool:
    """Returns whether libjpeg accepts a table segment: Huffman codes, quantization, restart interval."""
    at = 0
    if marker == 0xC4:
        while len(body) - at > 16:
            table, count = body[at], sum(body[at + 1 : at + 17])
            at += 17 + count
            if table & ~0x10 >= 4 or count > 256:
                return False
        return at == len(body)
    if marker == 0xDB:
        while at < len(body):
            if body[at] & 15 >= 4:
                return False
            at += 129 if body[at] >> 4 else 65
        return at == len(body)
    return marker != 0xDD or len(body) == 2


def _is_complete(contents: bytes, header: Header) -> bool:
    """Returns whether the end marker follows the scans.

    Raises:
        InvalidArgumentError: there is a marker that libjpeg rejects.
    """
    data = np.frombuffer(contents, np.uint8, offset=header.scan)
    places = np.flatnonzero(data[:-1] == 0xFF)
    markers = places[~_PLAIN[data[places + 1]]] + header.scan
    at = header.scan
    for place in markers.tolist():
        if place < at:
            continue
        marker = contents[place + 1]
        if marker == 0xD9:
            return True
        if marker not in _SEGMENTS:
            raise invalid(f"{FAILED} Unsupported marker type {marker:#04x} at byte {place}")
        at = place + 2 + int.from_bytes(contents[place + 2 : place + 4], "big")
    return False


def _tidied(contents: bytes, header: Header) -> bytes:
    """Removes what libjpeg only warns about before the first scan, because simplejpeg rejects it."""
    kept, at = [b"\xff\xd8"], 2
    while at < header.scan:
        if contents[at] != 0xFF or contents[at + 1] in (0x00, 0xFF, *_BARE):
            at += 1
            continue
        marker, length = struct.unpack_from(">BH", contents, at + 1)
        end = at + 2 + max(2, length)
        segment = bytearray(contents[at:end] if length >= 2 else b"")
        if marker == 0xE0 and segment[4:9] == b"JFIF\0" and len(segment) > 9:
            segment[9] = 1  # the version
        elif marker == 0xEE and segment[4:9] == b"Adobe" and len(segment) > 15 and segment[15] > 2:
            segment[15] = 1 if header.components == 3 else 2  # treat an unknown transform as the usual one
        kept.append(bytes(segment))
        at = end
    return b"".join((*kept, contents[header.scan :]))


def is_jpeg(contents: bytes) -> bool:
    """Returns whether the bytes start like a JPEG file."""
    return contents[:3] == b"\xff\xd8\xff"


def extract_jpeg_shape(contents: bytes, dtype: type = np.int32) -> np.ndarray:
    """Returns [height, width, channels] from the headers, up to and including that of the first scan."""
    words = f"Invalid JPEG data, size {len(contents)}"
    header = read_header(contents, words)
    if header.scan + 2 + struct.unpack_from(">H", contents, header.scan + 2)[0] > len(contents):
        raise invalid(f"{words}: the header of the first scan is cut short")
    return np.array([header.height, header.width, header.components], dtype)


def _simplejpeg() -> Any:
    try:
        import simplejpeg
    except ImportError:
        return None
    return simplejpeg


def _pillow_decode(contents: bytes, header: Header, mode: str, ratio: int, plain_and_fast: bool) -> np.ndarray:
    from PIL import Image  # importing stoker must not import Pillow

    size = (-(-header.width // ratio), -(-header.height // ratio))
    return np.asarray(Image.frombytes(mode, size, contents, "jpeg", mode, "", ratio, int(plain_and_fast)))


def _decode(contents: bytes, header: Header, gray: bool, ratio: int, fast: bool, fancy: bool) -> np.ndarray:
    """Decodes a file that has its end marker to [height, width] or [height, width, 3 or 4 (CMYK)]."""
    # A ratio above 1 first cancels the subsampling of the chroma planes: if they are halved both ways, they need no upsampling.
    upsampled = header.sampling != (1, 1) and not (header.sampling == (2, 2) and ratio > 1)
    plain_and_fast = not fancy if upsampled else fast
    try:
        if header.components == 4:
            return _pillow_decode(contents, header, "CMYK", ratio, plain_and_fast)
        library = _simplejpeg() if ratio == 1 else None  # simplejpeg selects scales by size, not by ratio
        if library is not None:
            space = "GRAY" if gray or header.components == 1 else "RGB"
            options = {"fastdct": fast, "fastupsample": not fancy}
            try:
                image = library.decode_jpeg(contents, space, **options)
            except ValueError as error:
                # Non-strict mode treats errors as warnings and returns uninitialized memory, so it is the last resort.
                if not str(error).startswith(_WARNINGS):
                    raise
                contents = _tidied(contents, header)
                try:
                    image = library.decode_jpeg(contents, space, **options)
                except ValueError as another:
                    if not str(another).startswith(_WARNINGS):
                        raise
                    image = library.decode_jpeg(contents, space, strict=False, **options)
            return image[:, :, 0] if space == "GRAY" else image
        if header.components == 1:
            return _pillow_decode(contents, header, "L", ratio, fast)
        if gray and header.rgb:
            colors = _pillow_decode(contents, header, "RGB", ratio, plain_and_fast).astype(np.uint32)
            return ((colors @ _LUMA_WEIGHTS + 32768) >> 16).astype(np.uint8)
        if gray:
            # The luma plane as stored, which chroma upsampling does not affect.
            return _pillow_decode(contents, header, "YCbCr", ratio, fast)[:, :, 0]
        return _pillow_decode(contents, header, "RGB", ratio, plain_and_fast)
    except (ValueError, OSError) as error:
        raise invalid(f"{FAILED} {error}") from error


def _rgb_of_cmyk(image: np.ndarray, adobe: bool) -> np.ndarray:
    # Adobe software stores inks inverted.
    inks = image.astype(np.uint16) if adobe else 255 - image.astype(np.uint16)
    return (inks[:, :, :3] * inks[:, :, 3:] // 255).astype(np.uint8)


def _rows_before_the_cut(contents: bytes, header: Header, ratio: int, fancy: bool) -> int:
    """Returns the number of rows that can be decoded from a truncated file."""
    from PIL import Image

    size = (-(-header.width // ratio), -(-header.height // ratio))
    mode = {1: "L", 3: "RGB", 4: "CMYK"}[header.components]
    # The decoder does not write rows that it does not reach, so these differ between two canvases with different fill values.
    rows = []
    for filling in (0, 255):
        canvas = Image.new(mode, size, filling if mode == "L" else (filling,) * len(mode))
        decoder = Image._getdecoder(mode, "jpeg", (mode, "", ratio, int(not fancy)))
        decoder.setimage(canvas.im, (0, 0, *size))
        decoder.decode(contents)
        rows.append(np.asarray(canvas).reshape(size[1], -1))
    same = (rows[0] == rows[1]).all(axis=1)
    return int(np.argmin(same)) if not same.all() else size[1]


def check_options(ratio: int, dct_method: str) -> None:
    if ratio not in (1, 2, 4, 8):
        raise invalid(f"ratio must be 1, 2, 4, or 8, got {ratio}")
    if dct_method not in ("", "INTEGER_FAST", "INTEGER_ACCURATE"):
        raise invalid("dct_method must be one of {'', 'INTEGER_FAST', 'INTEGER_ACCURATE'}, got " + repr(dct_method))


def decode_jpeg(
    contents: bytes,
    channels: int = 0,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    acceptable_fraction: float = 1.0,
    dct_method: str = "",
    crop_window: Any = None,
) -> np.ndarray:
    """Decodes a JPEG file into uint8 [height, width, channels].

    Args:
        contents: the file.
        channels: 0 (as stored; CMYK becomes RGB), 1 (the stored luma) or 3.
        ratio: 1, 2, 4 or 8; the size is divided by it, rounded up.
        fancy_upscaling: whether to smooth the chroma planes when they are enlarged.
        try_recover_truncated: whether to decode a truncated file; libjpeg fills in the missing data.
        acceptable_fraction: the fraction of rows that a truncated file must contain to be accepted;
            the other rows are black.
        dct_method: "" or "INTEGER_FAST", or "INTEGER_ACCURATE".
        crop_window: [y, x, height, width] to crop to, in pixels of the result.

    Raises:
        InvalidArgumentError: an argument is invalid, the contents are damaged, or the window is not inside the image.
    """
    if channels not in (0, 1, 3):
        raise invalid(f"`channels` must be 0, 1, 3 or 4 but got {channels}")
    check_options(ratio, dct_method)
    header, complete = _outline(contents)
    if header.components == 4 and channels == 1:
        raise invalid(f"{FAILED} A CMYK picture has no luma channel")
    check_size(FAILED, -(-header.height // ratio), -(-header.width // ratio), 4)
    rows = None
    if crop_window is not None:  # the data after it is not checked
        complete = contents.find(b"\xff\xd9", header.scan) >= 0
    elif complete is None:
        complete = _is_complete(contents, header)
    if not complete:
        if not try_recover_truncated:
            rows = 0 if header.progressive else _rows_before_the_cut(contents, header, ratio, fancy_upscaling)
            total = -(-header.height // ratio)
            if crop_window is not None and np.shape(crop_window) == (4,):
                enough = rows >= crop_window[0] + crop_window[2]
            else:
                enough = acceptable_fraction < 1 and rows >= total * acceptable_fraction
            if not enough or header.progressive:
                raise invalid(f"{FAILED} The file is cut short: {rows} of {total} rows can be read")
        contents += b"\xff\xd9" * 8  # enough to complete a scan header, which may be truncated too
    image = _decode(contents, header, channels == 1, ratio, dct_method != "INTEGER_ACCURATE", fancy_upscaling)
    if image.ndim == 3 and image.shape[2] == 4:
        image = _rgb_of_cmyk(image, header.adobe)
    if image.ndim == 2:
        image = np.repeat(image[:, :, None], 3, axis=2) if channels == 3 else image[:, :, None]
    if rows is not None:
        image = np.concatenate([image[:rows], np.zeros_like(image[rows:])])
    if crop_window is not None:
        image = _cropped(image, crop_window)
    return image


def _cropped(image: np.ndarray, crop_window: Any) -> np.ndarray:
    window = np.asarray(crop_window)
    if window.shape != (4,):
        raise invalid(f"crop_size must have four elements {list(window.shape)}")
    y, x, height, width = (int(each) for each in window)
    rows, columns = image.shape[:2]
    if y < 0 or x < 0 or height <= 0 or width <= 0 or y + height > rows or x + width > columns:
        raise invalid(f"{FAILED} Window [y={y}, x={x}, height={height}, width={width}] in a {rows} x {columns} picture")
    return np.ascontiguousarray(image[y : y + height, x : x + width])


def encode_jpeg(
    image: np.ndarray,
    format: str = "",
    quality: int = 95,
    progressive: bool = False,
    optimize_size: bool = False,
    chroma_downsampling: bool = True,
    density_unit: str = "in",
    x_density: int = 300,
    y_density: int = 300,
    xmp_metadata: bytes = b"",
) -> bytes:
    """Encodes uint8 [height, width, 1 or 3] as JPEG.

    Args:
        image: the pixels.
        format: "grayscale" or "rgb", which must match the channels; "" selects the one that matches.
        quality: 0 to 100.
        progressive: whether to write several scans of increasing detail.
        optimize_size: whether to compute Huffman tables for the image.
        chroma_downsampling: whether to store chroma at half the size.
        density_unit: the unit of the densities, "in" or "cm".
        x_density: horizontal pixels per unit, stored modulo 2**16.
        y_density: vertical pixels per unit.
        xmp_metadata: an XMP packet for an APP1 segment.

    Raises:
        InvalidArgumentError: an argument is invalid.
        InternalError: the image is empty, or the metadata does not fit into one segment.
    """
    if image.ndim != 3:
        raise invalid(f"image must be 3-dimensional, got {list(image.shape)}")
    if image.dtype != np.uint8:
        raise invalid(f"image must be uint8, got {image.dtype}")
    if not 0 <= quality <= 100:
        raise invalid(f"quality must be in [0,100], got {quality}")
    if format not in ("", "grayscale", "rgb"):
        raise invalid(
            f'Value for attr \'format\' of "{format}" is not in the list of allowed values: "", "grayscale", "rgb"'
        )
    if density_unit not in ("in", "cm"):
        raise invalid(
            f'Value for attr \'density_unit\' of "{density_unit}" is not in the list of allowed values: "in", "cm"'
        )
    height, width, channels = image.shape
    expected = {"": channels, "grayscale": 1, "rgb": 3}[format]
    if channels != expected:
        raise invalid(f"format {format} expects {expected} channels, got {list(image.shape)}")
    if channels not in (1, 3):
        raise invalid(f"image must have 1 or 3 channels, got {list(image.shape)}")
    if not 0 < height < 65536 or not 0 < width < 65536:
        raise InternalError(None, None, f"JPEG encoding failed: the picture is {height} x {width}")
    if len(xmp_metadata) + len(_XMP_NAMESPACE) > 65533:
        raise InternalError(None, None, f"JPEG encoding failed: {len(xmp_metadata)} bytes of XMP metadata")
    from PIL import Image

    picture = Image.fromarray(np.ascontiguousarray(image[:, :, 0] if channels == 1 else image))
    sink = io.BytesIO()
    picture.save(
        sink,
        "JPEG",
        # Pillow treats 0 as its default; libjpeg treats 0 and 1 alike.
        quality=max(1, quality),
        progressive=progressive,
        optimize=optimize_size,
        subsampling=-1 if channels == 1 else 2 if chroma_downsampling else 0,
    )
    data = bytearray(sink.getvalue())
    if data[2:4] != b"\xff\xe0" or data[6:11] != b"JFIF\0":
        raise InternalError(None, None, "JPEG encoding failed: the file has no JFIF header")
    data[13:18] = struct.pack(">BHH", 1 if density_unit == "in" else 2, x_density & 0xFFFF, y_density & 0xFFFF)
    if xmp_metadata:
        end = 4 + struct.unpack_from(">H", data, 4)[0]
        segment = _XMP_NAMESPACE + xmp_metadata
        data[end:end] = b"\xff\xe1" + struct.pack(">H", len(segment) + 2) + segment
    return bytes(data)
