/* Tiles of float32 matrix products with AVX-512, whose sums stay in registers. */
#ifndef STOKER_TILES_H
#define STOKER_TILES_H

#include <stdint.h>

#if defined(__x86_64__) && defined(__GNUC__)
#define HAS_TILES 1
#include <cpuid.h>
#include <immintrin.h>

enum { LANES = 16, MOST_ROWS = 14, FEW_ROWS = 6 };

/* out[ROWS, 16 VECTORS] = or += a b. The columns of the last vector are those of `mask`. The inner dimension consists of parts of `steps`
 * steps, which begin at `starts` in `a` and follow each other in `b`; element (i, p) of a part of `a` is at i * a_row + p * a_step. */
typedef void (*tile_function)(float *out, const float *a, const int64_t *starts, int64_t parts, const float *b, int64_t steps, int64_t a_row,
                              int64_t a_step, int64_t b_row, int64_t out_row, __mmask16 mask, int adds);

#define AVX512 __attribute__((target("avx512f,avx512vl,avx512dq,avx512bw,fma,avx2")))
#define UNROLL _Pragma("GCC unroll 16")

/* Three rows of `a` are addressed from one pointer, so that all pointers of a tile have registers. */
#define TILE(ROWS, VECTORS)                                                                                                          \
    AVX512 static void tile_##VECTORS##_##ROWS(float *out, const float *a, const int64_t *starts, int64_t parts, const float *b,     \
                                               int64_t steps, int64_t a_row, int64_t a_step, int64_t b_row, int64_t out_row,         \
                                               __mmask16 mask, int adds) {                                                           \
        __m512 sums[ROWS][VECTORS];                                                                                                  \
        const float *at[(ROWS + 2) / 3];                                                                                             \
        UNROLL for (int i = 0; i < ROWS; i++) UNROLL for (int v = 0; v < VECTORS; v++) sums[i][v] = _mm512_setzero_ps();             \
        for (int64_t part = 0; part < parts; part++) {                                                                               \
            UNROLL for (int i = 0; i < (ROWS + 2) / 3; i++) at[i] = a + starts[part] + 3 * i * a_row;                                \
            for (int64_t p = 0; p < steps; p++, b += b_row) {                                                                        \
                __m512 y[VECTORS];                                                                                                   \
                UNROLL for (int v = 0; v < VECTORS - 1; v++) y[v] = _mm512_loadu_ps(b + LANES * v);                                  \
                y[VECTORS - 1] = _mm512_maskz_loadu_ps(mask, b + LANES * (VECTORS - 1));                                             \
                UNROLL for (int i = 0; i < ROWS; i++) {                                                                              \
                    __m512 x = _mm512_set1_ps(at[i / 3][i % 3 * a_row]);                                                             \
                    UNROLL for (int v = 0; v < VECTORS; v++) sums[i][v] = _mm512_fmadd_ps(x, y[v], sums[i][v]);                      \
                }                                                                                                                    \
                UNROLL for (int i = 0; i < (ROWS + 2) / 3; i++) at[i] += a_step;                                                     \
            }                                                                                                                        \
        }                                                                                                                            \
        UNROLL for (int i = 0; i < ROWS; i++) {                                                                                      \
            float *row = out + i * out_row;                                                                                          \
            UNROLL for (int v = 0; v < VECTORS; v++) {                                                                               \
                __mmask16 kept = v == VECTORS - 1 ? mask : (__mmask16)0xffff;                                                        \
                if (adds) sums[i][v] = _mm512_add_ps(sums[i][v], _mm512_maskz_loadu_ps(kept, row + LANES * v));                      \
                _mm512_mask_storeu_ps(row + LANES * v, kept, sums[i][v]);                                                            \
            }                                                                                                                        \
        }                                                                                                                            \
    }

#define TILES_OF_FEW(VECTORS) TILE(1, VECTORS) TILE(2, VECTORS) TILE(3, VECTORS) TILE(4, VECTORS) TILE(5, VECTORS) TILE(6, VECTORS)
#define TILES_OF_NINE(VECTORS) TILES_OF_FEW(VECTORS) TILE(7, VECTORS) TILE(8, VECTORS) TILE(9, VECTORS)
#define TILES(VECTORS) TILES_OF_NINE(VECTORS) TILE(10, VECTORS) TILE(11, VECTORS) TILE(12, VECTORS) TILE(13, VECTORS) TILE(14, VECTORS)
TILES(1)
TILES(2)
TILES_OF_NINE(3)
TILES_OF_FEW(4)

#define NAMES_OF_FEW(V) NULL, tile_##V##_1, tile_##V##_2, tile_##V##_3, tile_##V##_4, tile_##V##_5, tile_##V##_6
#define NAMES_OF_NINE(V) NAMES_OF_FEW(V), tile_##V##_7, tile_##V##_8, tile_##V##_9
#define NAMES(V) NAMES_OF_NINE(V), tile_##V##_10, tile_##V##_11, tile_##V##_12, tile_##V##_13, tile_##V##_14
static const tile_function TILE_OF[5][MOST_ROWS + 1] = {{NULL}, {NAMES(1)}, {NAMES(2)}, {NAMES_OF_NINE(3)}, {NAMES_OF_FEW(4)}};
static const int ROWS_OF[5] = {0, 14, 14, 9, 6}; /* rows of the largest tile with that many vectors */

/* How many vectors the panel of columns has that starts where `columns` are left. */
static int vectors_of(int64_t columns, int64_t m) {
    int64_t left = (columns + LANES - 1) / LANES;
    if (m <= FEW_ROWS) return left < 4 ? (int)left : 4; /* few rows: more columns, so that enough sums are under way */
    return left <= 3 ? (int)left : 2;
}

/* 16 rows of 16 elements become columns. */
AVX512 static void transpose_16(float *out, int64_t out_row, const float *in, int64_t in_row) {
    __m512 r[16], t[16];
    UNROLL for (int i = 0; i < 16; i++) r[i] = _mm512_loadu_ps(in + i * in_row);
    UNROLL for (int i = 0; i < 8; i++) {
        t[2 * i] = _mm512_unpacklo_ps(r[2 * i], r[2 * i + 1]);
        t[2 * i + 1] = _mm512_unpackhi_ps(r[2 * i], r[2 * i + 1]);
    }
    UNROLL for (int i = 0; i < 4; i++) {
        __m512d a = _mm512_castps_pd(t[4 * i]), b = _mm512_castps_pd(t[4 * i + 1]), c = _mm512_castps_pd(t[4 * i + 2]),
                d = _mm512_castps_pd(t[4 * i + 3]);
        r[4 * i] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, c));
        r[4 * i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, c));
        r[4 * i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(b, d));
        r[4 * i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(b, d));
    }
    UNROLL for (int i = 0; i < 4; i++) {
        t[i] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0x88);
        t[i + 4] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0xdd);
        t[i + 8] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0x88);
        t[i + 12] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0xdd);
    }
    UNROLL for (int i = 0; i < 4; i++) {
        _mm512_storeu_ps(out + i * out_row, _mm512_shuffle_f32x4(t[i], t[i + 8], 0x88));
        _mm512_storeu_ps(out + (i + 4) * out_row, _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0x88));
        _mm512_storeu_ps(out + (i + 8) * out_row, _mm512_shuffle_f32x4(t[i], t[i + 8], 0xdd));
        _mm512_storeu_ps(out + (i + 12) * out_row, _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0xdd));
    }
}

/* All tiles of `rows` rows and one panel of columns; arguments as for a tile. */
static inline void multiply_panel(float *out, const float *a, const int64_t *starts, int64_t parts, const float *b, int64_t steps, int64_t a_row,
                                  int64_t a_step, int64_t b_row, int64_t out_row, int64_t rows, int vectors, int64_t columns, int adds) {
    __mmask16 mask = (__mmask16)(0xffff >> (LANES * vectors - columns));
    int64_t tiles = (rows + ROWS_OF[vectors] - 1) / ROWS_OF[vectors];
    for (int64_t t = 0; t < tiles; t++) { /* of about the same number of rows */
        int64_t i = rows * t / tiles, last = rows * (t + 1) / tiles;
        TILE_OF[vectors][last - i](out + i * out_row, a + i * a_row, starts, parts, b, steps, a_row, a_step, b_row, out_row, mask, adds);
    }
}

/* Whether the processor has the instructions of the tiles. */
static inline int runs_tiles(void) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw");
}

/* Whether MKL, the BLAS of torch, computes with vectors as wide as the processor has them. */
static inline int mkl_is_wide(void) {
    unsigned largest, b, c, d;
    return !runs_tiles() || (__get_cpuid(0, &largest, &b, &c, &d) && b == signature_INTEL_ebx);
}
#else
static inline int runs_tiles(void) { return 0; }
static inline int mkl_is_wide(void) { return 1; }
#endif

#endif
