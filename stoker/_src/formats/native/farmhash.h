/* FarmHash's 64-bit fingerprint, and the loads and rotations that other hashes share. */
#ifndef STOKER_FARMHASH_H
#define STOKER_FARMHASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t load64(const uint8_t *bytes) {
    uint64_t word = 0;
    for (int i = 7; i >= 0; i--) word = (word << 8) | bytes[i];
    return word;
}

static inline uint64_t load32(const uint8_t *bytes) {
    return (uint64_t)bytes[0] | (uint64_t)bytes[1] << 8 | (uint64_t)bytes[2] << 16 | (uint64_t)bytes[3] << 24;
}

static inline uint64_t rotate_right(uint64_t word, int by) { return (word >> by) | (word << (64 - by)); }

#define K0 0xc3a5c85c97cb3127ull
#define K1 0xb492b66fbe98f273ull
#define K2 0x9ae16a3b2f90404full

static inline uint64_t fold(uint64_t word) { return word ^ (word >> 47); }

static inline uint64_t mix(uint64_t u, uint64_t v, uint64_t multiplier) {
    uint64_t a = fold((u ^ v) * multiplier);
    return fold((v ^ a) * multiplier) * multiplier;
}

static uint64_t fingerprint_short(const uint8_t *s, size_t n) {
    uint64_t multiplier = K2 + 2 * (uint64_t)n;
    if (n >= 8) {
        uint64_t a = load64(s) + K2, b = load64(s + n - 8);
        return mix(rotate_right(b, 37) * multiplier + a, (rotate_right(a, 25) + b) * multiplier, multiplier);
    }
    if (n >= 4) return mix(n + (load32(s) << 3), load32(s + n - 4), multiplier);
    if (n > 0) {
        uint32_t y = (uint32_t)s[0] + ((uint32_t)s[n >> 1] << 8);
        uint32_t z = (uint32_t)n + ((uint32_t)s[n - 1] << 2);
        return fold(y * K2 ^ z * K0) * K2;
    }
    return K2;
}

static uint64_t fingerprint_middle(const uint8_t *s, size_t n) {
    uint64_t multiplier = K2 + 2 * (uint64_t)n;
    uint64_t a = load64(s) * (n <= 32 ? K1 : K2), b = load64(s + 8);
    uint64_t c = load64(s + n - 8) * multiplier, d = load64(s + n - 16) * K2;
    uint64_t y = rotate_right(a + b, 43) + rotate_right(c, 30) + d;
    uint64_t z = mix(y, a + rotate_right(b + K2, 18) + c, multiplier);
    if (n <= 32) return z;
    uint64_t e = load64(s + 16) * multiplier, f = load64(s + 24);
    uint64_t g = (y + load64(s + n - 32)) * multiplier, h = (z + load64(s + n - 24)) * multiplier;
    return mix(rotate_right(e + f, 43) + rotate_right(g, 30) + h, e + rotate_right(f + a, 18) + g, multiplier);
}

typedef struct {
    uint64_t first, second;
} Pair;

static inline Pair absorb32(const uint8_t *s, uint64_t a, uint64_t b) {
    a += load64(s);
    b = rotate_right(b + a + load64(s + 24), 21);
    uint64_t c = a;
    a += load64(s + 8) + load64(s + 16);
    b += rotate_right(a, 44);
    Pair pair = {a + load64(s + 24), b + c};
    return pair;
}

static inline uint64_t fingerprint64(const uint8_t *s, size_t n) {
    if (n <= 16) return fingerprint_short(s, n);
    if (n <= 64) return fingerprint_middle(s, n);
    uint64_t x = 81, y = 81 * K1 + 113, z = fold(y * K2 + 113) * K2, swapped;
    Pair v = {0, 0}, w = {0, 0};
    const uint8_t *end = s + (n - 1) / 64 * 64, *tail = s + n - 64;
    x = x * K2 + load64(s);
    for (; s != end; s += 64) {
        x = rotate_right(x + y + v.first + load64(s + 8), 37) * K1;
        y = rotate_right(y + v.second + load64(s + 48), 42) * K1;
        x ^= w.second;
        y += v.first + load64(s + 40);
        z = rotate_right(z + w.first, 33) * K1;
        v = absorb32(s, v.second * K1, x + w.first);
        w = absorb32(s + 32, z + w.second, y + load64(s + 16));
        swapped = z, z = x, x = swapped;
    }
    uint64_t multiplier = K1 + ((z & 0xff) << 1);
    s = tail;
    w.first += (n - 1) & 63;
    v.first += w.first;
    w.first += v.first;
    x = rotate_right(x + y + v.first + load64(s + 8), 37) * multiplier;
    y = rotate_right(y + v.second + load64(s + 48), 42) * multiplier;
    x ^= w.second * 9;
    y += v.first * 9 + load64(s + 40);
    z = rotate_right(z + w.first, 33) * multiplier;
    v = absorb32(s, v.second * multiplier, x + w.first);
    w = absorb32(s + 32, z + w.second, y + load64(s + 16));
    swapped = z, z = x, x = swapped;
    return mix(mix(v.first, w.first, multiplier) + fold(y) * K0 + z, mix(v.second, w.second, multiplier) + x, multiplier);
}

#endif
