/* Arrays of uniforms and normals, four (two for 64-bit types) per Philox block.
 * LANES blocks are generated at a time, with one array per word, so that the compiler can vectorise every loop. */
#ifndef STOKER_FILLS_H
#define STOKER_FILLS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "float_math.h"
#include "philox.h"
#include "../../base/native/vectorised.h"

enum { LANES = 64 };
#define TWO_PI 6.28318530717958647692

typedef uint32_t Block[4][LANES];

static inline __attribute__((always_inline)) void philox_lanes(Stream stream, Block out) {
    uint32_t c0[LANES], c1[LANES], c2[LANES], c3[LANES];
    for (int i = 0; i < LANES; i++) {
        uint64_t low = stream.low + (uint64_t)i;
        uint64_t high = stream.high + (low < stream.low);
        c0[i] = (uint32_t)low, c1[i] = (uint32_t)(low >> 32);
        c2[i] = (uint32_t)high, c3[i] = (uint32_t)(high >> 32);
    }
    for (int i = 0; i < LANES; i++) {
        uint32_t k0 = (uint32_t)stream.key, k1 = (uint32_t)(stream.key >> 32);
        uint32_t a = c0[i], b = c1[i], c = c2[i], d = c3[i];
        for (int round = 0; round < 10; round++) {
            uint64_t p0 = (uint64_t)a * 0xD2511F53u;
            uint64_t p1 = (uint64_t)c * 0xCD9E8D57u;
            a = (uint32_t)(p1 >> 32) ^ b ^ k0;
            b = (uint32_t)p1;
            c = (uint32_t)(p0 >> 32) ^ d ^ k1;
            d = (uint32_t)p0;
            k0 += 0x9E3779B9u;
            k1 += 0xBB67AE85u;
        }
        out[0][i] = a, out[1][i] = b, out[2][i] = c, out[3][i] = d;
    }
}

/* A uniform in [0, 1): the low bits of a word become the mantissa of a float in [1, 2), minus one. */
static inline float unit_float(uint32_t word) { return float_of_bits((word & 0x7fffffu) | 0x3f800000u) - 1.0f; }

static inline double unit_double(uint32_t first, uint32_t second) {
    uint64_t bits = ((uint64_t)1023 << 52) | ((uint64_t)(first & 0xfffffu) << 32) | second;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value - 1.0;
}

/* The Box-Muller transform (1958) of two uniforms to two independent standard normals. */
static inline void box_muller_float(uint32_t first, uint32_t second, float *sine, float *cosine) {
    float u = unit_float(first);
    u = u < 1.0e-7f ? 1.0e-7f : u;
    float s, c;
    sincos_float((float)(TWO_PI * (double)unit_float(second)), &s, &c);
    float radius = sqrtf(-2.0f * log_of_bits(bits_of_float(u)));
    *sine = s * radius;
    *cosine = c * radius;
}

static inline void box_muller_double(const uint32_t words[4], double *sine, double *cosine) {
    double u = unit_double(words[0], words[1]);
    if (u < 1.0e-7) u = 1.0e-7;
    double angle = TWO_PI * unit_double(words[2], words[3]);
    double radius = sqrt(-2.0 * log(u));
    *sine = sin(angle) * radius;
    *cosine = cos(angle) * radius;
}

VECTORISED static void bits_chunk(Stream stream, uint32_t *out) {
    Block block;
    philox_lanes(stream, block);
    for (int i = 0; i < LANES; i++)
        for (int word = 0; word < 4; word++) out[4 * i + word] = block[word][i];
}

VECTORISED static void uniform_float_chunk(Stream stream, uint32_t mantissa_bits, float *out) {
    Block block;
    philox_lanes(stream, block);
    uint32_t mask = (1u << mantissa_bits) - 1u, shift = 23u - mantissa_bits;
    for (int i = 0; i < LANES; i++)
        for (int word = 0; word < 4; word++)
            out[4 * i + word] = float_of_bits(((block[word][i] & mask) << shift) | 0x3f800000u) - 1.0f;
}

VECTORISED static void uniform_double_chunk(Stream stream, double *out) {
    Block block;
    philox_lanes(stream, block);
    for (int i = 0; i < LANES; i++) {
        out[2 * i] = unit_double(block[0][i], block[1][i]);
        out[2 * i + 1] = unit_double(block[2][i], block[3][i]);
    }
}

/* `box_muller_float` for all lanes, in separate loops, because GCC does not vectorise a single one. */
VECTORISED static void normal_float_chunk(Stream stream, float *out) {
    Block block;
    uint32_t uniform[LANES]; /* the bits of a float */
    float radius[LANES], sine[LANES], cosine[LANES];
    philox_lanes(stream, block);
    for (int pair = 0; pair < 4; pair += 2) {
        for (int i = 0; i < LANES; i++) {
            float u = unit_float(block[pair][i]);
            uniform[i] = bits_of_float(u < 1.0e-7f ? 1.0e-7f : u);
        }
        for (int i = 0; i < LANES; i++) radius[i] = sqrtf(-2.0f * log_of_bits(uniform[i]));
        for (int i = 0; i < LANES; i++)
            sincos_float((float)(TWO_PI * (double)unit_float(block[pair + 1][i])), &sine[i], &cosine[i]);
        for (int i = 0; i < LANES; i++) {
            out[4 * i + pair] = sine[i] * radius[i];
            out[4 * i + pair + 1] = cosine[i] * radius[i];
        }
    }
}

static void normal_double_chunk(Stream stream, double *out) {
    uint32_t words[4];
    for (int i = 0; i < LANES; i++) {
        philox_block(stream_at(stream, (uint64_t)i), words);
        box_muller_double(words, &out[2 * i], &out[2 * i + 1]);
    }
}

/* Each group of outputs has its own 256 words per output, and draws normals from them until enough are in (-2, 2). */
static void truncated_float_group(Stream stream, float out[4]) {
    Words words = words_from(stream);
    int filled = 0;
    while (filled < 4) {
        uint32_t first = next_word(&words), second = next_word(&words);
        float pair[2];
        box_muller_float(first, second, &pair[0], &pair[1]);
        for (int i = 0; i < 2 && filled < 4; i++)
            if (fabsf(pair[i]) < 2.0f) out[filled++] = pair[i];
    }
}

static void truncated_double_group(Stream stream, double out[2]) {
    uint32_t words[4];
    int filled = 0;
    for (uint64_t block = 0; filled < 2; block++) {
        double pair[2];
        philox_block(stream_at(stream, block), words);
        box_muller_double(words, &pair[0], &pair[1]);
        for (int i = 0; i < 2 && filled < 2; i++)
            if (fabs(pair[i]) < 2.0) out[filled++] = pair[i];
    }
}

#endif
