/* Products of row-major float32 matrices: with the BLAS that torch contains, and of a few columns without it. */
#ifndef STOKER_BLAS_H
#define STOKER_BLAS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "vectorised.h"

/* Fortran's sgemm; NULL if it is not known. */
typedef void (*sgemm_function)(const char *, const char *, const int *, const int *, const int *, const float *, const float *, const int *,
                               const float *, const int *, const float *, float *, const int *);
static sgemm_function blas_sgemm = NULL;
static int blas_takes_narrow = 0; /* whether it is also fast for a few columns */
static sgemm_function small_sgemm = NULL; /* the same for small matrices; NULL if BLAS's is to be used */
enum { SMALL_PRODUCT = 1 << 18 };         /* multiplications below which `small_sgemm` is faster */

/* -- few columns --------------------------------------------------------------------------------------------------
 *
 * BLAS takes up to five times as long for a result of less than 16 columns as for one of 16. Here each element of `a` is multiplied with
 * a whole row of `b`, padded to 8 or 16 elements, while the sums of several rows stay in registers.
 */
enum { NARROW = 16, NARROW_ROWS = 8, NARROW_STEPS = 256 };
typedef float narrow_8 __attribute__((vector_size(32), aligned(4)));
typedef float narrow_16 __attribute__((vector_size(64), aligned(4)));

/* Adds to eight rows of `sums` the products of the eight rows of `a`, from the inner step `first` to `last`, with the rows of `b`. */
#define NARROW_TILE(name, lanes, width)                                                                                          \
    VECTORISED static void name(float *sums, const float *a, const float *b, int64_t first, int64_t last, int64_t row, int64_t step) { \
        lanes s[NARROW_ROWS];                                                                                                    \
        memcpy(s, sums, sizeof s);                                                                                               \
        for (int64_t p = first; p < last; p++) {                                                                                 \
            lanes x = *(const lanes *)(b + p * width);                                                                           \
            const float *each = a + p * step;                                                                                    \
            s[0] += each[0] * x;                                                                                                 \
            s[1] += each[row] * x;                                                                                               \
            s[2] += each[2 * row] * x;                                                                                           \
            s[3] += each[3 * row] * x;                                                                                           \
            s[4] += each[4 * row] * x;                                                                                           \
            s[5] += each[5 * row] * x;                                                                                           \
            s[6] += each[6 * row] * x;                                                                                           \
            s[7] += each[7 * row] * x;                                                                                           \
        }                                                                                                                        \
        memcpy(sums, s, sizeof s);                                                                                               \
    }

NARROW_TILE(narrow_tile_8, narrow_8, 8)
NARROW_TILE(narrow_tile_16, narrow_16, 16)

/* The rest of a product, fewer than eight rows. */
static void narrow_rest(float *sums, const float *a, const float *b, int64_t rows, int64_t first, int64_t last, int64_t row, int64_t step,
                        int64_t width) {
    for (int64_t i = 0; i < rows; i++)
        for (int64_t p = first; p < last; p++)
            for (int64_t q = 0; q < width; q++) sums[i * width + q] += a[i * row + p * step] * b[p * width + q];
}

/* out[m, n] = a b[k, n] for n < 16, where element (i, p) of `a` is a[i * row + p * step]. Returns 0 if there is not enough memory. */
static int narrow_matmul(float *out, const float *a, const float *b, int64_t m, int64_t k, int64_t n, int64_t row, int64_t step) {
    int64_t width = n <= 8 ? 8 : 16;
    float *padded = NULL, *sums = calloc((size_t)(m * width), sizeof(float));
    if (n != width) padded = calloc((size_t)(k * width), sizeof(float));
    if (sums == NULL || (n != width && padded == NULL)) {
        free(sums);
        free(padded);
        return 0;
    }
    for (int64_t p = 0; padded != NULL && p < k; p++) memcpy(padded + p * width, b + p * n, (size_t)n * sizeof(float));
    const float *right = padded != NULL ? padded : b;
    int64_t tiles = (m + NARROW_ROWS - 1) / NARROW_ROWS;
    /* Where the steps of `a` are far apart, a part of them is used for all rows before the next, so that it stays in the cache. */
    int64_t part = step == 1 ? k : NARROW_STEPS;
#pragma omp parallel if (m * k * n > 1 << 19)
    for (int64_t first = 0; first < k; first += part) {
        int64_t last = first + part < k ? first + part : k;
#pragma omp for schedule(static) nowait
        for (int64_t tile = 0; tile < tiles; tile++) {
            int64_t i = tile * NARROW_ROWS;
            if (i + NARROW_ROWS > m)
                narrow_rest(sums + i * width, a + i * row, right, m - i, first, last, row, step, width);
            else if (width == 8)
                narrow_tile_8(sums + i * width, a + i * row, right, first, last, row, step);
            else
                narrow_tile_16(sums + i * width, a + i * row, right, first, last, row, step);
        }
    }
    for (int64_t i = 0; i < m; i++) memcpy(out + i * n, sums + i * width, (size_t)n * sizeof(float));
    free(sums);
    free(padded);
    return 1;
}

/* out[m, n] = a[m, k] b[k, n]. BLAS has column-major matrices, so it computes the transposed product. */
static void blas_matmul(float *out, const float *a, const float *b, int64_t m, int64_t k, int64_t n, int transpose_a, int transpose_b) {
    sgemm_function sgemm = small_sgemm != NULL && m * k * n < SMALL_PRODUCT ? small_sgemm : blas_sgemm;
    if (sgemm != small_sgemm && !blas_takes_narrow && n > 1 && n < NARROW && m >= NARROW_ROWS && !transpose_b &&
        narrow_matmul(out, a, b, m, k, n, transpose_a ? 1 : k, transpose_a ? m : 1))
        return;
    int rows = (int)m, inner = (int)k, columns = (int)n;
    int a_step = transpose_a ? rows : inner, b_step = transpose_b ? inner : columns;
    float one = 1.0f, zero = 0.0f;
    sgemm(transpose_b ? "T" : "N", transpose_a ? "T" : "N", &columns, &rows, &inner, &one, b, &b_step, a, &a_step, &zero, out, &columns);
}

static PyObject *set_sgemm(PyObject *m, PyObject *args) {
    (void)m;
    Py_ssize_t address, small;
    int takes_narrow;
    if (!PyArg_ParseTuple(args, "nnp", &address, &small, &takes_narrow)) return NULL;
    blas_sgemm = (sgemm_function)(intptr_t)address;
    small_sgemm = (sgemm_function)(intptr_t)small;
    blas_takes_narrow = takes_narrow;
    Py_RETURN_NONE;
}

#endif
