/* Factorizations of small matrices and solutions of equations with them, as parts of programs.
 *
 * Matrices are row-major, and every inner loop goes along rows, so that the compiler can vectorise it.
 */
#ifndef STOKER_DENSE_H
#define STOKER_DENSE_H

#include <stdint.h>
#include <string.h>
#include <tgmath.h>

#include "../../base/native/vectorised.h"

/* out -= the sum of `count` rows, row k times the factor at k * step. Four rows at a time, so that `out` is loaded less often. */
VECTORISED static void subtract_rows(real *restrict out, const real *factors, int64_t step, const real *row, int64_t width, int64_t count,
                                     int64_t columns) {
    int64_t k = 0;
    for (; k + 4 <= count; k += 4, row += 4 * width, factors += 4 * step) {
        real f0 = factors[0], f1 = factors[step], f2 = factors[2 * step], f3 = factors[3 * step];
        const real *r0 = row, *r1 = row + width, *r2 = r1 + width, *r3 = r2 + width;
        for (int64_t j = 0; j < columns; j++) out[j] = out[j] - f0 * r0[j] - f1 * r1[j] - f2 * r2[j] - f3 * r3[j];
    }
    for (; k < count; k++, row += width, factors += step)
        for (int64_t j = 0; j < columns; j++) out[j] -= *factors * row[j];
}

static void divide_row(real *row, real divisor, int64_t columns) {
    for (int64_t j = 0; j < columns; j++) row[j] /= divisor;
}

/* Solves a x = b, or a^T x = b, in place in `x`, for a triangular matrix `a`; its diagonal counts as ones if `is_unit`. */
static void solve_triangular(const real *a, real *x, int64_t n, int64_t columns, int lower, int adjoint, int is_unit) {
    int forward = lower != adjoint;
    for (int64_t step = 0; step < n; step++) {
        int64_t i = forward ? step : n - 1 - step, first = forward ? 0 : i + 1;
        const real *factors = adjoint ? a + first * n + i : a + i * n + first;
        subtract_rows(x + i * columns, factors, adjoint ? n : 1, x + first * columns, columns, step, columns);
        if (!is_unit) divide_row(x + i * columns, a[i * n + i], columns);
    }
}

static void swap_rows(real *one, real *other, int64_t columns) {
    for (int64_t j = 0; j < columns; j++) {
        real kept = one[j];
        one[j] = other[j];
        other[j] = kept;
    }
}

/* Factors `a` into triangular matrices with partial pivoting, and exchanges the rows of `x` (which may have no columns) like those of `a`.
 * Returns the sign of the permutation; 0 if a pivot is zero or not a number. */
static int factorize(real *a, real *x, int64_t n, int64_t columns) {
    int sign = 1;
    for (int64_t k = 0; k < n; k++) {
        int64_t pivot = k;
        for (int64_t i = k + 1; i < n; i++)
            if (fabs(a[i * n + k]) > fabs(a[pivot * n + k])) pivot = i;
        real divisor = a[pivot * n + k];
        if (!(fabs(divisor) > 0.0f)) return 0;
        if (pivot != k) {
            swap_rows(a + k * n, a + pivot * n, n);
            swap_rows(x + k * columns, x + pivot * columns, columns);
            sign = -sign;
        }
        for (int64_t i = k + 1; i < n; i++) {
            a[i * n + k] /= divisor;
            subtract_rows(a + i * n + k + 1, a + i * n + k, 1, a + k * n + k + 1, n, 1, n - k - 1);
        }
    }
    return sign;
}

static void take_matrix(real *to, const real *from, int64_t n, int transposed) {
    if (!transposed)
        memcpy(to, from, (size_t)(n * n) * sizeof(real));
    else
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++) to[i * n + j] = from[j * n + i];
}

/* Solves a x = b in place in `x`. Returns 0 if the matrix is singular or holds NaN. `room` has the size of `a`. */
static int solve_general(const real *a, real *x, real *room, int64_t n, int64_t columns, int adjoint) {
    take_matrix(room, a, n, adjoint);
    if (!factorize(room, x, n, columns)) return 0;
    solve_triangular(room, x, n, columns, 1, 0, 1);
    solve_triangular(room, x, n, columns, 0, 0, 0);
    return 1;
}

static int invert(real *out, const real *a, real *room, int64_t n, int adjoint) {
    memset(out, 0, (size_t)(n * n) * sizeof(real));
    for (int64_t i = 0; i < n; i++) out[i * n + i] = 1.0f;
    return solve_general(a, out, room, n, n, adjoint);
}

/* Returns 0 for a matrix whose determinant the factors do not tell. */
static int determinant(real *out, const real *a, real *room, int64_t n) {
    take_matrix(room, a, n, 0);
    int sign = factorize(room, NULL, n, 0);
    if (sign == 0) return 0;
    real product = (real)sign;
    for (int64_t i = 0; i < n; i++) product *= room[i * n + i];
    *out = product;
    return 1;
}

/* The lower triangular factor of a positive definite matrix, of which only the lower triangle is read. Its rows are computed as the columns of
 * `room`. Returns 0 for other matrices. */
static int cholesky(real *out, const real *a, real *room, int64_t n) {
    take_matrix(room, a, n, 1);
    for (int64_t i = 0; i < n; i++) {
        real *row = room + i * n + i;
        subtract_rows(row, room + i, n, room + i, n, i, n - i);
        if (!(*row > 0.0f)) return 0;
        divide_row(row, sqrt(*row), n - i);
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) out[i * n + j] = j <= i ? room[j * n + i] : 0.0f;
    return 1;
}

/* The elements of matrices between the diagonals `low` below and `high` above the main one; zeros elsewhere. */
static void loop_band(real *out, const real *a, int64_t outer, int64_t rows, int64_t columns, int64_t low, int64_t high) {
    for (int64_t i = 0; i < outer * rows; i++, a += columns, out += columns) {
        int64_t at = i % rows, first = at - low < 0 ? 0 : at - low, last = at + high + 1 < columns ? at + high + 1 : columns;
        memset(out, 0, (size_t)columns * sizeof(real));
        if (first < last) memcpy(out + first, a + first, (size_t)(last - first) * sizeof(real));
    }
}

enum { INVERSE, DETERMINANT, CHOLESKY, SOLVE, TRIANGULAR };
static const char *DENSE_NAMES[] = {"inverse", "determinant", "cholesky", "solve", "triangular"};

/* One kind of computation for `count` matrices of n rows. `b` holds right sides with `columns` columns for SOLVE and TRIANGULAR. Returns 0 if a matrix is
 * not one for which there is a result. */
static int loop_dense(int64_t kind, real *out, const real *a, const real *b, real *room, int64_t count, int64_t n, int64_t columns,
                      int adjoint, int lower) {
    int64_t result = kind == DETERMINANT ? 1 : n * columns;
    int fine = 1;
    for (int64_t i = 0; fine && i < count; i++, a += n * n, b += n * columns, out += result) {
        if (kind == SOLVE || kind == TRIANGULAR) memcpy(out, b, (size_t)result * sizeof(real));
        switch (kind) {
        case INVERSE:
            fine = invert(out, a, room, n, adjoint);
            break;
        case DETERMINANT:
            fine = determinant(out, a, room, n);
            break;
        case CHOLESKY:
            fine = cholesky(out, a, room, n);
            break;
        case SOLVE:
            fine = solve_general(a, out, room, n, columns, adjoint);
            break;
        default:
            solve_triangular(a, out, n, columns, lower, adjoint, 0);
        }
    }
    return fine;
}

#endif
