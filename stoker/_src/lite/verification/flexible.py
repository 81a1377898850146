"""Checks of FlexBuffers, which hold the options of custom operators. The kernels of LiteRT follow their offsets unchecked.

A value is stored as a number, or as the distance back to what it refers to. The last bytes are the root's value, its type and its width. A map is
a vector of values with a byte for the type of each behind it, and before it its length, and the width and the distance of the vector of its keys.
"""

from __future__ import annotations

# Kinds of values: the upper six bits of a type. The lower two are the logarithm of the width of what is referred to.
_INLINE = frozenset((0, 1, 2, 3, 26))  # null, integers, float, bool
_INTEGER = 1
_KEY, _STRING, _MAP, _VECTOR, _BLOB = 4, 5, 9, 10, 25
_INDIRECT = frozenset((6, 7, 8))
_NUMBERS = frozenset((11, 12, 13, 36))  # vectors of integers, floats and bools
# Vectors of two to four numbers without a length.
_FIXED = {kind: 2 + (kind - 16) // 3 for kind in range(16, 25)}
_DEPTH, _MOST = 8, 1 << 20


def options_problem(data: bytes) -> str:
    """Why bytes are not a map of values within them, or "". Integers are counts: none is negative or above a million."""
    if len(data) < 3:
        return "they are too short"
    kind, width = data[-2], data[-1]
    if width not in (1, 2, 4, 8) or len(data) < 2 + width:
        return "their root has no width"
    if kind >> 2 != _MAP:
        return "they are not a map"
    try:
        _check(data, len(data) - 2 - width, width, kind, 0)
    except _DamageError as error:
        return str(error)
    return ""


class _DamageError(Exception):
    pass


def _number(data: bytes, at: int, width: int) -> int:
    if at < 0 or at + width > len(data):
        raise _DamageError("a value lies outside of them")
    return int.from_bytes(data[at : at + width], "little")


def _target(data: bytes, at: int, width: int) -> int:
    distance = _number(data, at, width)
    if not 0 < distance <= at:
        raise _DamageError("a reference leads outside of them")
    return at - distance


def _text_end(data: bytes, at: int) -> None:
    if data.find(b"\0", at) < 0:
        raise _DamageError("a text has no end")


def _check(data: bytes, at: int, width: int, type_: int, depth: int) -> None:
    kind, inner = type_ >> 2, 1 << (type_ & 3)
    if kind in _INLINE:
        if _number(data, at, width) > min(_MOST, (1 << 8 * width - 1) - 1) and kind == _INTEGER:
            raise _DamageError("a count is negative or too large")
        return
    target = _target(data, at, width)
    if depth > _DEPTH:
        raise _DamageError("they are nested too deeply")
    if kind == _KEY:
        _text_end(data, target)
    elif kind in _INDIRECT:
        _number(data, target, inner)
    elif kind in _FIXED:
        _number(data, target + inner * (_FIXED[kind] - 1), inner)
    elif kind in (_STRING, _BLOB) or kind in _NUMBERS:
        size = _number(data, target - inner, inner) * (inner if kind in _NUMBERS else 1)
        if target + size + (kind == _STRING) > len(data):
            raise _DamageError("a vector ends outside of them")
    elif kind in (_MAP, _VECTOR):
        size = _number(data, target - inner, inner)
        types = target + size * inner
        if types + size > len(data):
            raise _DamageError("a vector ends outside of them")
        if kind == _MAP:
            _check_keys(data, target, inner, size)
        for place in range(size):
            _check(data, target + place * inner, inner, data[types + place], depth + 1)
    else:
        raise _DamageError(f"a value has the unknown type {kind}")


def _check_keys(data: bytes, at: int, width: int, count: int) -> None:
    """The keys of a map are sorted, so that kernels find them by halving."""
    inner = _number(data, at - 2 * width, width)
    if inner not in (1, 2, 4, 8):
        raise _DamageError("the keys have no width")
    keys = _target(data, at - 3 * width, width)
    if _number(data, keys - inner, inner) != count or keys + count * inner > len(data):
        raise _DamageError("the numbers of keys and values differ")
    for place in range(count):
        _text_end(data, _target(data, keys + place * inner, inner))
