"""PNG's row filters. The C extension is quick; the NumPy versions here give the same bytes.

A filtered byte is the difference from a prediction based on three decoded neighbours: the pixel on the left (a), the one above
(b) and the one above left (c). Types: 0 none, 1 a, 2 b, 3 (a + b) // 2, 4 whichever of a, b, c is nearest to a + b - c.
"""

from __future__ import annotations

import numpy as np

from stoker._src.base.extensions import extension
from stoker._src.formats.images.limits import invalid

_native = extension("stoker._src.formats.images._native")


def unfilter_rows(raw: bytes, height: int, row_bytes: int, step: int, words: str) -> np.ndarray:
    """Reverses the filters of `height` rows, each of which is a type byte and `row_bytes` data bytes.

    Args:
        raw: exactly height * (row_bytes + 1) bytes.
        height: number of rows.
        row_bytes: bytes per row, without the type byte.
        step: bytes per pixel (1 if pixels are smaller than a byte).
        words: the start of error messages.

    Returns:
        uint8 [height, row_bytes].
    """
    types = np.frombuffer(raw, np.uint8)[:: row_bytes + 1]
    if types.max() > 4:
        row = int(np.argmax(types > 4))
        raise invalid(f"{words}: row {row} has filter type {types[row]}")
    if _native is not None:
        out = np.empty((height, row_bytes), np.uint8)
        _native.unfilter(raw, out, row_bytes, step)
        return out
    return unfilter_rows_numpy(raw, height, row_bytes, step)


def unfilter_rows_numpy(raw: bytes, height: int, row_bytes: int, step: int) -> np.ndarray:
    """NumPy version of `unfilter_rows`. It processes the image as a wavefront, one pixel of every row at a time.

    Pixel x of row y is decoded in step x + y, when its three neighbours are known. Each step is therefore a single vector
    operation over all rows that have a pixel in it.
    """
    lines = np.frombuffer(raw, np.uint8).reshape(height, row_bytes + 1)
    kinds = lines[:, 0].astype(np.intp)
    pixels = -(-row_bytes // step)
    padded = np.zeros((height, pixels * step), np.int16)
    padded[:, :row_bytes] = lines[:, 1:]
    # A border of zeros above and on the left replaces the missing neighbours.
    done = np.zeros((height + 1, pixels + 1, step), np.int16)
    source = padded.reshape(height, pixels, step)
    for wave in range(pixels + height - 1):
        rows = np.arange(max(0, wave - pixels + 1), min(height, wave + 1))
        columns = wave - rows
        left, above, corner = done[rows + 1, columns], done[rows, columns + 1], done[rows, columns]
        to_left, to_above = np.abs(above - corner), np.abs(left - corner)
        to_corner = np.abs(left + above - 2 * corner)
        nearest = np.where(
            (to_left <= to_above) & (to_left <= to_corner), left, np.where(to_above <= to_corner, above, corner)
        )
        guesses = np.stack([np.zeros_like(left), left, above, (left + above) >> 1, nearest])
        guess = guesses[kinds[rows], np.arange(len(rows))]
        done[rows + 1, columns + 1] = (source[rows, columns] + guess) & 255
    return done[1:, 1:].reshape(height, -1)[:, :row_bytes].astype(np.uint8)


def filter_rows(lines: np.ndarray, step: int, adaptive: bool) -> bytes:
    """Filters rows for compression. Each row gets the type with the smallest sum of absolute differences, taken as signed bytes.

    Args:
        lines: uint8 [height, row bytes].
        step: bytes per pixel.
        adaptive: if False, all rows are left unfiltered (type 0).
    """
    height, row_bytes = lines.shape
    out = np.zeros((height, row_bytes + 1), np.uint8)
    if not adaptive:
        out[:, 1:] = lines
    elif _native is not None:
        _native.filter(np.ascontiguousarray(lines), out, row_bytes, step)
    else:
        return filter_rows_numpy(lines, step)
    return out.tobytes()


def filter_rows_numpy(lines: np.ndarray, step: int) -> bytes:
    """NumPy version of `filter_rows`."""
    height, row_bytes = lines.shape
    out = np.zeros((height, row_bytes + 1), np.uint8)
    wide = lines.astype(np.int16)
    left, above, corner = np.zeros_like(wide), np.zeros_like(wide), np.zeros_like(wide)
    left[:, step:] = wide[:, :-step]
    above[1:] = wide[:-1]
    corner[1:, step:] = wide[:-1, :-step]
    to_left, to_above, to_corner = np.abs(above - corner), np.abs(left - corner), np.abs(left + above - 2 * corner)
    nearest = np.where(
        (to_left <= to_above) & (to_left <= to_corner), left, np.where(to_above <= to_corner, above, corner)
    )
    best = np.full(height, np.iinfo(np.int64).max)
    for kind, guess in enumerate((np.zeros_like(wide), left, above, (left + above) >> 1, nearest)):
        difference = (wide - guess).astype(np.uint8)
        cost = np.abs(difference.view(np.int8).astype(np.int16)).sum(axis=1, dtype=np.int64)
        better = cost < best
        best[better] = cost[better]
        out[better, 0] = kind
        out[better, 1:] = difference[better]
    return out.tobytes()
