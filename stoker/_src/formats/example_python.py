"""The parsers of `native/examples.c` and `native/sequences.c` in Python, for installations without the extension.

Arguments, results and failures are the same. The C files document the grammar and the reasons for it. tests/formats compares
the two implementations on random and malformed input.
"""

from __future__ import annotations

import struct
from array import array
from typing import Any

import numpy as np

from stoker._src.formats.hashing import fingerprint64
from stoker._src.formats.varints import decode_varint

BYTES, FLOATS, INTS = 1, 2, 3
INDICES, ROWS, VALUES = 1, 2, 4  # forms of a column of variable size
MALFORMED, UNSUPPORTED, WRONG_KIND, BAD_LIST, WRONG_COUNT, MISSING = range(1, 7)

_KIND_OF_TAG = {0x0A: BYTES, 0x12: FLOATS, 0x1A: INTS}

Failure = tuple[int, int, int, int, int]
Span = tuple[int, int]  # [start, end) in the row's bytes


class _Refused(Exception):
    """Raised for bytes that do not follow the grammar; args: problem, detail."""


def _bad_list() -> _Refused:
    return _Refused(BAD_LIST)


def _varint(row: bytes, at: int, end: int) -> tuple[int, int]:
    return decode_varint(row, at, end, _bad_list)


def _chunk(row: bytes, at: int, end: int) -> Span:
    """Returns the span of a length-prefixed chunk; the next item starts at its end."""
    length, at = _varint(row, at, end)
    length &= 0xFFFF_FFFF
    if length > end - at:
        raise _Refused(BAD_LIST)
    return at, at + length


def _entered(row: bytes, at: int, end: int) -> Span:
    """Like `_chunk`, but a chunk whose length exceeds the remaining bytes ends at the end of its container."""
    length, at = _varint(row, at, end)
    length &= 0xFFFF_FFFF
    return (at, end) if length > 0x7FFF_FFFF or length > end - at else (at, at + length)


def _filled(row: bytes, at: int, end: int) -> Span:
    """Like `_entered`, but a chunk with a nonzero length must not be empty."""
    start, stop = _entered(row, at, end)
    if start == stop and _varint(row, at, end)[0] & 0xFFFF_FFFF:
        raise _Refused(BAD_LIST)
    return start, stop


def _tag(row: bytes, at: int, end: int, tag: int) -> int:
    """Returns the position after a one-byte tag, which must be `tag`."""
    if at >= end or row[at] != tag:
        raise _Refused(BAD_LIST)
    return at + 1


def _tagged_chunk(row: bytes, at: int, end: int, tag: int) -> Span:
    return _chunk(row, _tag(row, at, end, tag), end)


def _skip(row: bytes, at: int, end: int, tag: int) -> int:
    wire_type = tag & 7
    if wire_type == 0:
        return _varint(row, at, end)[1]
    if wire_type == 2:
        return _entered(row, at, end)[1]
    size = {1: 8, 5: 4}.get(wire_type)
    if size is None or size > end - at:
        raise _Refused(BAD_LIST)
    return at + size


def _top_level(row: bytes, fields: tuple[int, ...]) -> list[tuple[int, Span]]:
    """Yields (tag, chunk) for the requested fields of a message and skips the others."""
    found = []
    at, end = 0, len(row)
    while at < end:
        if row[at] in fields:
            chunk = _entered(row, at + 1, end)
            found.append((row[at], chunk))
            at = chunk[1]
        else:
            tag, at = _varint(row, at, end)
            at = _skip(row, at, end, tag)
    return found


def _entries(row: bytes, span: Span, any_order: bool) -> list[tuple[bytes, Span]]:
    """Yields (key, value) for each entry of a map."""
    found = []
    at, end = span
    while at < end:
        inner, at = _entered(row, _tag(row, at, end, 0x0A), end)
        if any_order:
            parts = {0x0A: (inner, inner), 0x12: (inner, inner)}
            for _ in range(2):
                tag, inner = _varint(row, inner, at)
                tag &= 0xFFFF_FFFF
                if tag not in parts:
                    raise _Refused(BAD_LIST)
                parts[tag] = _chunk(row, inner, at)
                inner = parts[tag][1]
            key, value = parts[0x0A], parts[0x12]
        else:
            key = _tagged_chunk(row, inner, at, 0x0A)
            value = _tagged_chunk(row, key[1], at, 0x12)
            inner = value[1]
        if inner != at:
            raise _Refused(BAD_LIST)
        found.append((row[key[0] : key[1]], value))
    return found


def _list_span(row: bytes, feature: Span, wanted: int) -> Span:
    at, end = feature
    kind = _KIND_OF_TAG.get(row[at])
    if kind is None:
        raise _Refused(UNSUPPORTED)
    if kind != wanted:
        raise _Refused(WRONG_KIND, kind)
    return _entered(row, at + 1, end)


def _values(row: bytes, span: Span, kind: int, exact: bool) -> list[Any]:
    """Returns the values of a list."""
    at, end = span
    values: list[Any] = []
    if kind == BYTES:
        while at < end:
            start, at = _tagged_chunk(row, at, end, 0x0A)
            values.append(row[start:at])
        return values
    packed = at < end and row[at] == 0x0A
    if packed:
        start, stop = _entered(row, at + 1, end)
        if kind == FLOATS:
            length = stop - start if exact else _varint(row, at + 1, end)[0] & 0xFFFF_FFFF
            if length // 4 > (end - start) // 4 or (exact and length % 4):
                raise _Refused(BAD_LIST)
            # Raw words preserve the bits of a NaN.
            return list(struct.unpack_from(f"<{length // 4}I", row, start))
        at, end = start, stop
    while at < end:
        if not packed:
            if row[at] != (0x0D if kind == FLOATS else 0x08):
                raise _Refused(BAD_LIST)
            at += 1
        if kind == FLOATS:
            if end - at < 4:
                raise _Refused(BAD_LIST)
            values += struct.unpack_from("<I", row, at)
            at += 4
        else:
            value, at = _varint(row, at, end)
            values.append(value - (1 << 64) if value >> 63 else value)
    return values


def _to_columns(values: list[Any], kind: int) -> bytearray | list[bytes]:
    if kind == BYTES:
        return values
    return bytearray(array("I" if kind == FLOATS else "q", values).tobytes())


def _counts(values: list[int]) -> bytearray:
    return bytearray(array("q", values).tobytes())


def _find_features(row: bytes, names: dict[bytes, tuple[int, bool]]) -> tuple[dict[int, Span], Failure | None]:
    try:
        entries = [entry for _, span in _top_level(row, (0x0A,)) for entry in _entries(row, span, True)]
    except _Refused:
        raise _Refused(MALFORMED) from None
    found: dict[int, Span] = {}
    unsupported = None
    for key, value in entries:
        feature, empty_hides = names.get(key, (-1, False))
        if feature < 0 or (value[0] == value[1] and not empty_hides):
            continue
        if value[0] < value[1] and row[value[0]] not in _KIND_OF_TAG:
            unsupported = (UNSUPPORTED, -1, feature, -1, 0)
        found[feature] = value
    return found, unsupported


def parse_examples(
    rows: tuple[bytes, ...],
    features: tuple[tuple[bytes, int, int, Any, bool], ...],
    threads: int = 1,
    forms: tuple[tuple[int, tuple[int, ...]] | None, ...] | None = None,
) -> Any:
    """See `native_parse_examples` in native/examples.c. Python runs in one thread, whatever `threads` says."""
    names = {key: (k, empty_hides) for k, (key, _, _, _, empty_hides) in enumerate(features)}
    values: list[list[Any]] = [[] for _ in features]
    counts: list[list[int]] = [[] for _ in features]
    fallbacks: list[Any] = [
        list(struct.unpack(f"<{size}{'I' if kind == FLOATS else 'q'}", fallback))
        if kind != BYTES and size >= 0 and fallback is not None
        else fallback
        for _, kind, size, fallback, _ in features
    ]
    for r, row in enumerate(rows):
        try:
            found, unsupported = _find_features(row, names)
        except _Refused as refused:
            return (refused.args[0], r, -1, -1, 0), None
        if unsupported is not None:
            return (UNSUPPORTED, r, unsupported[2], -1, 0), None
        for k, (_, kind, size, _, _) in enumerate(features):
            if k in found and found[k][0] < found[k][1]:
                try:
                    new = _values(row, _list_span(row, found[k], kind), kind, False)
                except _Refused as refused:
                    problem, *detail = refused.args
                    return (problem, r, k, -1, detail[0] if detail else 0), None
                if size >= 0 and len(new) != size:
                    return (WRONG_COUNT, r, k, -1, len(new)), None
            elif size < 0:
                new = []
            elif fallbacks[k] is None:
                return (MISSING, r, k, -1, 0), None
            else:
                new = fallbacks[k]
            values[k] += new
            counts[k].append(len(new))
    columns = []
    for k, (_, kind, size, _, _) in enumerate(features):
        column = _to_columns(values[k], kind)
        columns.append(column if size >= 0 else (column, _counts(counts[k])))
    return (None, columns) if forms is None else (None, *_in_forms(columns, features, forms))


def _in_forms(columns: list[Any], features: Any, forms: Any) -> tuple[list[Any], tuple[bytearray, bytearray]]:
    ints, floats, found = bytearray(), bytearray(), []
    for column, (_, kind, *_), form in zip(columns, features, forms):
        if form is None:
            found.append(column)
            continue
        (values, counts), (wanted, buckets) = column, form
        indices, longest = sparse_indices(np.frombuffer(counts, np.int64))
        rows = np.frombuffer(indices, np.int64)[::2]
        if wanted & INDICES:
            ints += indices
        if wanted & ROWS:
            ints += rows.tobytes()
        if wanted & VALUES and kind == INTS:
            ints += values
        elif wanted & VALUES and kind == FLOATS:
            floats += values
        for count in buckets:
            ints += array("q", [fingerprint64(value) % count for value in values]).tobytes()
        found.append((len(rows), longest, values if wanted & VALUES and kind == BYTES else None))
    return found, (ints, floats)


def sparse_indices(counts: np.ndarray) -> tuple[bytearray, int]:
    """See `native_sparse_indices` in native/examples.c."""
    starts = np.cumsum(counts) - counts
    indices = np.empty((int(counts.sum()), 2), np.int64)
    indices[:, 0] = np.repeat(np.arange(len(counts)), counts)
    indices[:, 1] = np.arange(len(indices)) - np.repeat(starts, counts)
    return bytearray(indices.tobytes()), int(counts.max(initial=0))


def parse_sequence_examples(
    rows: tuple[bytes, ...], context: tuple[tuple[bytes, int], ...], lists: tuple[tuple[bytes, int], ...]
) -> tuple[Failure | None, list[Any] | None, list[Any] | None]:
    """See `native_parse_sequence_examples` in native/sequences.c."""
    groups = (context, lists)
    names = [{key: k for k, (key, _) in enumerate(group)} for group in groups]
    gathered = [[([], [], [], bytearray()) for _ in group] for group in groups]  # values, steps, counts, presence
    for r, row in enumerate(rows):
        found: list[dict[int, Span]] = [{}, {}]
        try:
            for tag, span in _top_level(row, (0x0A, 0x12)):
                group = 0 if tag == 0x0A else 1
                for key, value in _entries(row, span, False):
                    if key in names[group]:
                        found[group][names[group][key]] = value
        except _Refused:
            return (MALFORMED, r, -1, -1, 0), None, None
        for group, features in enumerate(groups):
            for k, (_, kind) in enumerate(features):
                values, steps, counts, presence = gathered[group][k]
                presence.append(k in found[group])
                if k not in found[group]:
                    counts.append(0)
                    continue
                before = len(steps)
                step = -1
                try:
                    if group == 0:
                        new, _ = _feature_values(row, found[0][k], kind, in_step=False)
                        values += new
                        counts.append(len(new))
                        continue
                    at, end = found[1][k]
                    while at < end:
                        step += 1
                        feature_span = _filled(row, _tag(row, at, end, 0x0A), end)
                        new, at = _feature_values(row, feature_span, kind, in_step=True)
                        values += new
                        steps.append(len(new))
                    counts.append(len(steps) - before)
                except _Refused as refused:
                    problem, *detail = refused.args
                    feature = k if group == 0 else k + len(context)
                    return (problem, r, feature, step, detail[0] if detail else 0), None, None
    columns = [
        [
            (_to_columns(values, kind), _counts(steps), _counts(counts), presence)
            for (values, steps, counts, presence), (_, kind) in zip(gathered[group], features)
        ]
        for group, features in enumerate(groups)
    ]
    return None, columns[0], columns[1]


def _feature_values(row: bytes, feature: Span, kind: int, *, in_step: bool) -> tuple[list[Any], int]:
    """Returns the values of a Feature in a SequenceExample, and the end of the bytes that were read.

    An unknown kind counts as a wrong kind here, and an empty Feature has no values.
    """
    if feature[0] == feature[1]:
        return [], feature[0]
    try:
        at, end = _list_span(row, feature, kind)
        claimed = _varint(row, feature[0] + 1, feature[1])[0] & 0xFFFF_FFFF
        if at == end and claimed and (kind != BYTES or (in_step and claimed <= 0x7FFF_FFFF)):
            raise _Refused(BAD_LIST)
        if kind != BYTES and at < end and row[at] == 0x0A:
            end = _entered(row, at + 1, end)[1]
        return _values(row, (at, end), kind, True), end
    except _Refused as refused:
        if refused.args[0] == UNSUPPORTED:
            raise _Refused(WRONG_KIND, 0) from None
        raise
