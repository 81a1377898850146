"""Hash functions whose values TensorFlow programs depend on, in bucket numbers and vocabularies.

- `fingerprint64`: FarmHash's platform-independent 64-bit fingerprint (Pike and Alakuijala, the farmhash "na" variant,
  descended from CityHash): `tf.strings.to_hash_bucket_fast`, `tf.fingerprint`, hashed feature columns.
- `fingerprint_cat64`: combines two fingerprints, as crossed features do in a chain.
- `siphash64`: SipHash-2-4 (Aumasson and Bernstein, 2012): `tf.strings.to_hash_bucket_strong`.
- `hash64`: MurmurHash64A (Appleby) under a fixed seed: the old `tf.strings.to_hash_bucket`.

The `*_many` functions hash a sequence of bytes into a uint64 array. They use `native/hashing.c` where it is built; the
scalar functions are the Python implementation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from stoker._src.base.extensions import extension

_compiled = extension("stoker._src.formats.native.hashing")

_MASK = 0xFFFFFFFFFFFFFFFF
_K0 = 0xC3A5C85C97CB3127
_K1 = 0xB492B66FBE98F273
_K2 = 0x9AE16A3B2F90404F

_47 = np.uint64(47)
_CAT_MULTIPLIER = np.uint64(0xC6A4A7935BD1E995)

# The default hash key of SparseCross and `crossed_column`.
CROSS_HASH_KEY = 0xDECAFCAFFE


def fingerprint64(data: bytes) -> int:
    """Returns FarmHash's 64-bit fingerprint of `data`."""
    size = len(data)
    if size <= 16:
        return _fingerprint_short(data, size)
    if size <= 64:
        return _fingerprint_middle(data, size)
    return _fingerprint_long(data, size)


def fingerprint_cat64(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Combines two fingerprints (uint64 arrays that broadcast) into one; the order matters. This is a step of MurmurHash64A."""
    with np.errstate(over="ignore"):  # arithmetic modulo 2**64
        step = second * _CAT_MULTIPLIER
        result = first ^ _CAT_MULTIPLIER ^ (step ^ (step >> _47)) * _CAT_MULTIPLIER
        result = result * _CAT_MULTIPLIER
        result = (result ^ (result >> _47)) * _CAT_MULTIPLIER
        return result ^ (result >> _47)


def cross_buckets(parts: Sequence[np.ndarray], num_buckets: int, hash_key: int = CROSS_HASH_KEY) -> np.ndarray:
    """Returns the bucket of each crossed feature, with the numbering of `crossed_column` and of SparseCross with hashed output.

    Args:
        parts: one uint64 array for each crossed column, in order: the fingerprints of strings, or integers unchanged (two's
            complement). They broadcast, and corresponding elements are crossed.
        num_buckets: the number of buckets. Zero means the whole range of int64, as in the op.
        hash_key: the start value of the chain of `fingerprint_cat64`.

    Raises:
        ValueError: `num_buckets` is negative.
    """
    if num_buckets < 0:
        raise ValueError(f"num_buckets must not be negative, got {num_buckets}")
    hashed = np.array(hash_key & _MASK, np.uint64)
    for part in parts:
        hashed = fingerprint_cat64(hashed, part)
    return buckets(hashed, num_buckets or 2**63 - 1)


def hash64(data: bytes) -> int:
    """Returns the MurmurHash64A of `data` with TensorFlow's seed."""
    m = 0xC6A4A7935BD1E995
    size = len(data)
    h = 0xDECAFCAFFE ^ ((size * m) & _MASK)
    whole = size - size % 8
    for at in range(0, whole, 8):
        k = (_word(data, at) * m) & _MASK
        h = ((h ^ (((k ^ (k >> 47)) * m) & _MASK)) * m) & _MASK
    if whole < size:
        h = ((h ^ int.from_bytes(data[whole:], "little")) * m) & _MASK
    h = ((h ^ (h >> 47)) * m) & _MASK
    return h ^ (h >> 47)


def siphash64(data: bytes, key: Sequence[int]) -> int:
    """Returns the SipHash-2-4 of `data` with a key of two 64-bit numbers."""
    k0, k1 = _key_words(key)
    v = (k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573)
    size = len(data)
    whole = size - size % 8
    last = ((size & 0xFF) << 56) | int.from_bytes(data[whole:], "little")
    for word in [_word(data, at) for at in range(0, whole, 8)] + [last]:
        v = _sip_round(_sip_round((v[0], v[1], v[2], v[3] ^ word)))
        v = (v[0] ^ word, v[1], v[2], v[3])
    v = (v[0], v[1], v[2] ^ 0xFF, v[3])
    for _ in range(4):
        v = _sip_round(v)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def fingerprint64_many(strings: Sequence[bytes]) -> np.ndarray:
    """Returns `fingerprint64` of each string, as uint64."""
    return _many(strings, fingerprint64, "fingerprints")


def fingerprint_rows(values: np.ndarray) -> np.ndarray:
    """`tf.fingerprint`: returns a fingerprint for each row (first dimension), as uint8 of shape [rows, 8], low byte first.

    A row of numbers is hashed as its bytes. A row that is a single string is hashed directly. A row of several strings
    (an object array of rank two or more) is hashed as the concatenated fingerprints of its strings.

    Raises:
        ValueError: `values` is a scalar.
    """
    if values.ndim == 0:
        raise ValueError("Data must be at least a vector, got a scalar")
    if values.dtype == object:
        rows = values.reshape(-1).tolist()
        if values.ndim > 1:
            rows = _row_bytes(fingerprint64_many(rows).astype("<u8").reshape(values.shape))
    else:
        rows = _row_bytes(values)
    return fingerprint64_many(rows).astype("<u8").view(np.uint8).reshape(len(rows), 8)


def _row_bytes(values: np.ndarray) -> list[bytes]:
    return [np.ascontiguousarray(row).tobytes() for row in values]


def hash64_many(strings: Sequence[bytes]) -> np.ndarray:
    """Returns `hash64` of each string, as uint64."""
    return _many(strings, hash64, "hashes")


def siphash64_many(strings: Sequence[bytes], key: Sequence[int]) -> np.ndarray:
    """Returns `siphash64` of each string, as uint64."""
    words = _key_words(key)
    return _many(strings, lambda data: siphash64(data, words), "siphashes", *words)


def buckets(hashes: np.ndarray, num_buckets: int) -> np.ndarray:
    """Returns the unsigned hash modulo the number of buckets, as int64, as all to_hash_bucket ops do.

    Raises:
        ValueError: `num_buckets` is not positive.
    """
    if num_buckets < 1:
        raise ValueError(f"num_buckets must be at least 1, got {num_buckets}")
    return (hashes % np.uint64(num_buckets)).view(np.int64)


def _many(strings: Sequence[bytes], one: Callable[[bytes], int], compiled_name: str, *key: int) -> np.ndarray:
    if _compiled is None:
        for text in strings:
            if not isinstance(text, bytes):
                raise TypeError(f"expected bytes, {type(text).__name__} found")
        return np.array([one(text) for text in strings], np.uint64)
    out = np.empty(len(strings), np.uint64)
    getattr(_compiled, compiled_name)(strings, out, *key)
    return out


def _key_words(key: Sequence[int]) -> tuple[int, int]:
    if len(key) != 2:
        raise ValueError(f"Key must have 2 elements, got {len(key)}")
    return int(key[0]) & _MASK, int(key[1]) & _MASK


def _word(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 8], "little")


def _rotate(word: int, by: int) -> int:
    """Rotates a 64-bit word to the right; `word` may have bits above the 64th."""
    word &= _MASK
    return (word >> by) | ((word << (64 - by)) & _MASK)


def _sip_round(v: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    v0, v1, v2, v3 = v
    v0 = (v0 + v1) & _MASK
    v1 = _rotate(v1, 51) ^ v0
    v0 = _rotate(v0, 32)
    v2 = (v2 + v3) & _MASK
    v3 = _rotate(v3, 48) ^ v2
    v0 = (v0 + v3) & _MASK
    v3 = _rotate(v3, 43) ^ v0
    v2 = (v2 + v1) & _MASK
    v1 = _rotate(v1, 47) ^ v2
    return v0, v1, _rotate(v2, 32), v3


def _fold(word: int) -> int:
    return word ^ (word >> 47)


def _mix(u: int, v: int, multiplier: int) -> int:
    v &= _MASK
    a = _fold((((u & _MASK) ^ v) * multiplier) & _MASK)
    return (_fold(((v ^ a) * multiplier) & _MASK) * multiplier) & _MASK


def _fingerprint_short(data: bytes, size: int) -> int:
    multiplier = _K2 + 2 * size
    if size >= 8:
        a, b = _word(data, 0) + _K2, _word(data, size - 8)
        return _mix(_rotate(b, 37) * multiplier + a, (_rotate(a, 25) + b) * multiplier, multiplier)
    if size >= 4:
        first, last = int.from_bytes(data[:4], "little"), int.from_bytes(data[-4:], "little")
        return _mix(size + (first << 3), last, multiplier)
    if size > 0:
        y = data[0] + (data[size >> 1] << 8)
        z = size + (data[-1] << 2)
        return (_fold((y * _K2 ^ z * _K0) & _MASK) * _K2) & _MASK
    return _K2


def _fingerprint_middle(data: bytes, size: int) -> int:
    multiplier = _K2 + 2 * size
    a, b = _word(data, 0) * (_K1 if size <= 32 else _K2), _word(data, 8)
    c, d = _word(data, size - 8) * multiplier, _word(data, size - 16) * _K2
    y = _rotate(a + b, 43) + _rotate(c, 30) + d
    z = _mix(y, a + _rotate(b + _K2, 18) + c, multiplier)
    if size <= 32:
        return z
    e, f = _word(data, 16) * multiplier, _word(data, 24)
    g, h = (y + _word(data, size - 32)) * multiplier, (z + _word(data, size - 24)) * multiplier
    return _mix(_rotate(e + f, 43) + _rotate(g, 30) + h, e + _rotate(f + a, 18) + g, multiplier)


def _absorb(data: bytes, at: int, a: int, b: int) -> tuple[int, int]:
    """Mixes 32 bytes into a pair of accumulators."""
    w, x, y, z = (_word(data, at + step) for step in (0, 8, 16, 24))
    a += w
    b = _rotate(b + a + z, 21)
    c = a
    a += x + y
    b += _rotate(a, 44)
    return (a + z) & _MASK, (b + c) & _MASK


def _fingerprint_long(data: bytes, size: int) -> int:
    x, y = 81, (81 * _K1 + 113) & _MASK
    z = _fold((y * _K2 + 113) & _MASK) * _K2
    v, w = (0, 0), (0, 0)
    x = x * _K2 + _word(data, 0)
    for at in range(0, (size - 1) // 64 * 64, 64):
        x, y, z, v, w = _absorb64(data, at, x, y, z, v, w, _K1, 1)
    multiplier = _K1 + ((z & 0xFF) << 1)
    w_first = w[0] + ((size - 1) & 63)
    v_first = v[0] + w_first
    v, w = (v_first, v[1]), (w_first + v_first, w[1])
    x, y, z, v, w = _absorb64(data, size - 64, x, y, z, v, w, multiplier, 9)
    return _mix(
        _mix(v[0], w[0], multiplier) + _fold(y) * _K0 + z,
        _mix(v[1], w[1], multiplier) + x,
        multiplier,
    )


def _absorb64(
    data: bytes, at: int, x: int, y: int, z: int, v: tuple[int, int], w: tuple[int, int], multiplier: int, weight: int
) -> tuple[int, int, int, tuple[int, int], tuple[int, int]]:
    """Mixes 64 bytes into the whole state. The last call uses a different multiplier and a weight of nine."""
    x = _rotate(x + y + v[0] + _word(data, at + 8), 37) * multiplier
    y = _rotate(y + v[1] + _word(data, at + 48), 42) * multiplier
    x = (x & _MASK) ^ ((w[1] * weight) & _MASK)
    y = (y + v[0] * weight + _word(data, at + 40)) & _MASK
    z = (_rotate(z + w[0], 33) * multiplier) & _MASK
    v_next = _absorb(data, at, v[1] * multiplier, x + w[0])
    w_next = _absorb(data, at + 32, z + w[1], y + _word(data, at + 16))
    return z, y, x, v_next, w_next
