/* Exponentials of float32, for functions that are compiled for several instruction sets (vectorised.h) to inline. */
#ifndef STOKER_EXPONENTIALS_H
#define STOKER_EXPONENTIALS_H

#include <stdint.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

INLINE float exp_of(float x) {
    /* exp(x) = 2^n exp(r), |r| <= ln(2)/2, by the Taylor series of degree 7. Past the ends 2^n is made of two factors. */
    float bounded = x < -104.0f ? -104.0f : x;
    bounded = bounded > 89.0f ? 89.0f : bounded; /* a NaN compares false twice and stays */
    float n = bounded * 1.44269504f + 12582912.0f; /* rounds to an integer in the low bits */
    n -= 12582912.0f;
    float r = bounded - n * 0.693359375f;
    r -= n * -2.12194440e-4f;
    float p = 1.0f / 5040.0f;
    p = p * r + 1.0f / 720.0f;
    p = p * r + 1.0f / 120.0f;
    p = p * r + 1.0f / 24.0f;
    p = p * r + 1.0f / 6.0f;
    p = p * r + 0.5f;
    p = p * r * r + r + 1.0f;
    int32_t whole = (int32_t)(n == n ? n : 0.0f);
    int32_t half = whole >> 1;
    uint32_t low = (uint32_t)(half + 127) << 23, high = (uint32_t)(whole - half + 127) << 23;
    float first, second;
    memcpy(&first, &low, 4);
    memcpy(&second, &high, 4);
    return p * first * second;
}

typedef float real;
#include "row_exponentials.h"

#endif
