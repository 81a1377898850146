"""The 128-bit fingerprint of a string: CityHash128 (Pike and Alakuijala, 2011), which FarmHash also uses."""

from __future__ import annotations

_MASK = (1 << 64) - 1
_K0, _K1, _K2 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F
_MULTIPLIER = 0x9DDFEA08EB382D69


def _rotate(value: int, shift: int) -> int:
    return ((value >> shift) | (value << (64 - shift))) & _MASK if shift else value


def _shift_mix(value: int) -> int:
    return value ^ (value >> 47)


def _word(data: bytes, at: int, size: int = 8) -> int:
    return int.from_bytes(data[at : at + size], "little")


def _hash16(u: int, v: int, multiplier: int = _MULTIPLIER) -> int:
    a = _shift_mix(((u ^ v) * multiplier) & _MASK)
    b = _shift_mix(((v ^ a) * multiplier) & _MASK)
    return (b * multiplier) & _MASK


def _short(data: bytes) -> int:
    """Hashes up to 16 bytes."""
    size = len(data)
    if size >= 8:
        multiplier = (_K2 + size * 2) & _MASK
        a = (_word(data, 0) + _K2) & _MASK
        b = _word(data, size - 8)
        c = (_rotate(b, 37) * multiplier + a) & _MASK
        d = ((_rotate(a, 25) + b) * multiplier) & _MASK
        return _hash16(c, d, multiplier)
    if size >= 4:
        multiplier = (_K2 + size * 2) & _MASK
        return _hash16((size + (_word(data, 0, 4) << 3)) & _MASK, _word(data, size - 4, 4), multiplier)
    if size:
        y = data[0] + (data[size >> 1] << 8)
        z = size + (data[size - 1] << 2)
        return (_shift_mix((y * _K2 ^ z * _K0) & _MASK) * _K2) & _MASK
    return _K2


def _murmur(data: bytes, a: int, b: int) -> tuple[int, int]:
    """Hashes fewer than 128 bytes, with a seed of two words."""
    size = len(data)
    if size <= 16:
        a = (_shift_mix((a * _K1) & _MASK) * _K1) & _MASK
        c = (b * _K1 + _short(data)) & _MASK
        d = _shift_mix((a + (_word(data, 0) if size >= 8 else c)) & _MASK)
    else:
        c = _hash16((_word(data, size - 8) + _K1) & _MASK, a)
        d = _hash16((b + size) & _MASK, (c + _word(data, size - 16)) & _MASK)
        a = (a + d) & _MASK
        for at in range(0, size - 16, 16):
            a = ((a ^ (_shift_mix((_word(data, at) * _K1) & _MASK) * _K1)) * _K1) & _MASK
            b ^= a
            c = ((c ^ (_shift_mix((_word(data, at + 8) * _K1) & _MASK) * _K1)) * _K1) & _MASK
            d ^= c
    a = _hash16(a, c)
    b = _hash16(d, b)
    return a ^ b, _hash16(b, a)


def _weak(data: bytes, at: int, a: int, b: int) -> tuple[int, int]:
    """Mixes 32 bytes into a pair of words."""
    w, x, y, z = (_word(data, at + 8 * i) for i in range(4))
    a = (a + w) & _MASK
    b = _rotate((b + a + z) & _MASK, 21)
    c = a
    a = (a + x + y) & _MASK
    b = (b + _rotate(a, 44)) & _MASK
    return (a + z) & _MASK, (b + c) & _MASK


def _seeded(data: bytes, low: int, high: int) -> tuple[int, int]:
    size = len(data)
    if size < 128:
        return _murmur(data, low, high)
    x, y, z = low, high, (size * _K1) & _MASK
    v0 = (_rotate(y ^ _K1, 49) * _K1 + _word(data, 0)) & _MASK
    v1 = (_rotate(v0, 42) * _K1 + _word(data, 8)) & _MASK
    w0 = (_rotate((y + z) & _MASK, 35) * _K1 + x) & _MASK
    w1 = (_rotate((x + _word(data, 88)) & _MASK, 53) * _K1) & _MASK
    at, left = 0, size
    while left >= 128:
        for _ in range(2):
            x = (_rotate((x + y + v0 + _word(data, at + 8)) & _MASK, 37) * _K1) & _MASK
            y = (_rotate((y + v1 + _word(data, at + 48)) & _MASK, 42) * _K1) & _MASK
            x ^= w1
            y = (y + v0 + _word(data, at + 40)) & _MASK
            z = (_rotate((z + w0) & _MASK, 33) * _K1) & _MASK
            v0, v1 = _weak(data, at, (v1 * _K1) & _MASK, (x + w0) & _MASK)
            w0, w1 = _weak(data, at + 32, (z + w1) & _MASK, (y + _word(data, at + 16)) & _MASK)
            z, x = x, z
            at += 64
        left -= 128
    x = (x + _rotate((v0 + z) & _MASK, 49) * _K0) & _MASK
    y = (y * _K0 + _rotate(w1, 37)) & _MASK
    z = (z * _K0 + _rotate(w0, 27)) & _MASK
    w0 = (w0 * 9) & _MASK
    v0 = (v0 * _K0) & _MASK
    # The remaining bytes are mixed in from the end, in pieces of 32 bytes that may overlap bytes already processed.
    tail = 0
    while tail < left:
        tail += 32
        end = at + left
        y = (_rotate((x + y) & _MASK, 42) * _K0 + v1) & _MASK
        w0 = (w0 + _word(data, end - tail + 16)) & _MASK
        x = (x * _K0 + w0) & _MASK
        z = (z + w1 + _word(data, end - tail)) & _MASK
        w1 = (w1 + v0) & _MASK
        v0, v1 = _weak(data, end - tail, (v0 + z) & _MASK, v1)
        v0 = (v0 * _K0) & _MASK
    x = _hash16(x, v0)
    y = _hash16((y + z) & _MASK, w0)
    return (_hash16((x + v1) & _MASK, w1) + y) & _MASK, _hash16((x + w1) & _MASK, (y + v1) & _MASK)


def fingerprint128(data: bytes) -> tuple[int, int]:
    """Returns the low and the high word of the fingerprint, unsigned."""
    if len(data) >= 16:
        return _seeded(data[16:], _word(data, 0), (_word(data, 8) + _K0) & _MASK)
    return _seeded(data, _K0, _K1)
