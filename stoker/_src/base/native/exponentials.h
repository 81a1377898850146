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

/* The largest of at least one number; a NaN where there is one. */
INLINE float largest_of(const float *a, int64_t count) {
    float lanes[16], largest = a[0];
    int64_t whole = count / 16 * 16;
    for (int q = 0; q < 16; q++) lanes[q] = a[0];
    for (int64_t j = 0; j < whole; j += 16)
        for (int q = 0; q < 16; q++) lanes[q] = a[j + q] > lanes[q] || a[j + q] != a[j + q] ? a[j + q] : lanes[q];
    for (int64_t j = whole; j < count; j++) largest = a[j] > largest || a[j] != a[j] ? a[j] : largest;
    for (int q = 0; q < 16; q++) largest = lanes[q] > largest || lanes[q] != lanes[q] ? lanes[q] : largest;
    return largest;
}

/* out = exp(a - shift), and their sum. */
INLINE float exponentials(float *restrict out, const float *a, float shift, int64_t count) {
    float lanes[16] = {0}, total = 0;
    int64_t whole = count / 16 * 16;
    for (int64_t j = 0; j < count; j++) out[j] = exp_of(a[j] - shift);
    for (int64_t j = 0; j < whole; j += 16)
        for (int q = 0; q < 16; q++) lanes[q] += out[j + q];
    for (int64_t j = whole; j < count; j++) total += out[j];
    for (int q = 0; q < 16; q++) total += lanes[q];
    return total;
}

enum { FEW = 16, ROWS_AT_ONCE = 64 }; /* numbers of a row that are too few for vectors of their own, and such rows that share them */

/* For at most ROWS_AT_ONCE rows of fewer than FEW numbers: `largest_of` each row, out = exp(a - largest), and their sums, as `exponentials` has them. */
INLINE void exponentials_of_few(float *restrict out, float *restrict largest, float *restrict totals, const float *a, int64_t rows, int64_t count) {
    for (int64_t i = 0; i < rows; i++) {
        const float *row = a + i * count;
        float most = row[0];
        for (int64_t j = 1; j < count; j++) most = row[j] > most || row[j] != row[j] ? row[j] : most;
        largest[i] = most;
        for (int64_t j = 0; j < count; j++) out[i * count + j] = row[j] - most;
    }
    for (int64_t k = 0; k < rows * count; k++) out[k] = exp_of(out[k]);
    for (int64_t i = 0; i < rows; i++) {
        float total = 0.0f;
        for (int64_t j = 0; j < count; j++) total += out[i * count + j];
        totals[i] = total;
    }
}

#endif
