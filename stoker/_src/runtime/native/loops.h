/* The loops that programs consist of: contiguous elements, `real` numbers (lines.h says which), of sizes known in advance.
 *
 * Each is written so that the compiler can vectorise it.
 */
#ifndef STOKER_LOOPS_H
#define STOKER_LOOPS_H

#include <stdint.h>
#include <string.h>
#include <tgmath.h>

#include "../../base/native/vectorised.h"

INLINE real sigmoid_of(real x) { return 1.0f / (1.0f + exp_of(-x)); }

/* -- element by element ----------------------------------------------------------------------------------------- */

#define UNARY(name, expression)                                                \
    VECTORISED static void name(real *restrict out, const real *a, int64_t n) {  \
        for (int64_t i = 0; i < n; i++) {                                      \
            real x = a[i];                                                    \
            out[i] = (expression);                                             \
        }                                                                      \
    }

UNARY(loop_neg, -x)
UNARY(loop_square, x * x)
UNARY(loop_sqrt, sqrt(x))
UNARY(loop_rsqrt, 1.0f / sqrt(x))
UNARY(loop_reciprocal, 1.0f / x)
UNARY(loop_abs, fabs(x))
UNARY(loop_exp, exp_of(x))
UNARY(loop_log, log_of(x))
UNARY(loop_log1p, log1p_of(x))
UNARY(loop_tanh, tanh_of(x))
UNARY(loop_sigmoid, sigmoid_of(x))
UNARY(loop_is_finite, x - x == 0.0f ? 1.0f : 0.0f)
UNARY(loop_floor, floor(x))
UNARY(loop_ceil, ceil(x))
UNARY(loop_rint, rint(x))
UNARY(loop_sign, x > 0.0f ? 1.0f : (x < 0.0f ? -1.0f : x))
UNARY(loop_erf, erf_of(x))
UNARY(loop_expm1, expm1_of(x))
UNARY(loop_elu, x < 0.0f ? expm1_of(x) : x)
UNARY(loop_relu, x > 0.0f ? x : (x == x ? 0.0f : x))
UNARY(loop_relu6, x > 0.0f ? (x < 6.0f ? x : 6.0f) : (x == x ? 0.0f : x))

/* One row of a broadcast: the steps of `a` and `b` are 0 or 1. */
#define BINARY(name, expression) BINARY_OF(name, real, real, expression)
#define BINARY_OF(name, IN, OUT, expression)                                                                 \
    VECTORISED static void name(real *restrict made, const real *first, const real *second, int64_t n, int sa, int sb) { \
        OUT *restrict out = (OUT *)made;                                                                     \
        const IN *a = (const IN *)first, *b = (const IN *)second;                                            \
        if (sa && sb) {                                                                                      \
            for (int64_t i = 0; i < n; i++) {                                                                \
                IN x = a[i], y = b[i];                                                                       \
                out[i] = (expression);                                                                       \
            }                                                                                                \
        } else if (sa) {                                                                                     \
            IN y = *b;                                                                                       \
            for (int64_t i = 0; i < n; i++) {                                                                \
                IN x = a[i];                                                                                 \
                out[i] = (expression);                                                                       \
            }                                                                                                \
        } else {                                                                                             \
            IN x = *a;                                                                                       \
            for (int64_t i = 0; i < n; i++) {                                                                \
                IN y = b[sb ? i : 0];                                                                        \
                out[i] = (expression);                                                                       \
            }                                                                                                \
        }                                                                                                    \
    }

BINARY(loop_add, x + y)
BINARY(loop_sub, x - y)
BINARY(loop_mul, x * y)
BINARY(loop_div, x / y)
BINARY(loop_max, (x > y || x != x) ? x : y)
BINARY(loop_min, (x < y || x != x) ? x : y)
BINARY(loop_square_difference, (x - y) * (x - y))
BINARY(loop_tanh_grad, y * (1.0f - x * x))
BINARY(loop_sigmoid_grad, y * x * (1.0f - x))
BINARY(loop_elu_grad, y < 0.0f ? (y + 1.0f) * x : x)
BINARY(loop_relu_grad, y <= 0.0f ? 0.0f : x) /* passes where y is NaN */
BINARY(loop_relu6_grad, x * (y > 0.0f && y < 6.0f ? 1.0f : 0.0f))
/* Where the incoming gradient y is 0 the result is 0, even if the derivative is infinite. */
BINARY(loop_sqrt_grad, y == 0.0f ? y : y * (0.5f / x))
BINARY(loop_rsqrt_grad, y == 0.0f ? y : y * -0.5f * x * (x * x))
BINARY(loop_reciprocal_grad, y == 0.0f ? y : -y * (x * x))

BINARY(loop_leaky_relu, x > 0.0f ? x : x * y)
/* Booleans are 1 and 0. */
BINARY(loop_less, x < y ? 1.0f : 0.0f)
BINARY(loop_less_equal, x <= y ? 1.0f : 0.0f)
BINARY(loop_greater, x > y ? 1.0f : 0.0f)
BINARY(loop_greater_equal, x >= y ? 1.0f : 0.0f)

BINARY(loop_equal, x == y ? 1.0f : 0.0f)
BINARY(loop_not_equal, x != y ? 1.0f : 0.0f)

/* Integers have as many bits as the other elements of buffers. Sums wrap around. Divisors are positive. */
BINARY_OF(loop_int_add, integer, integer, (integer)((bits)x + (bits)y))
BINARY_OF(loop_int_sub, integer, integer, (integer)((bits)x - (bits)y))
BINARY_OF(loop_int_mul, integer, integer, (integer)((bits)x * (bits)y))
BINARY_OF(loop_int_max, integer, integer, x > y ? x : y)
BINARY_OF(loop_int_min, integer, integer, x < y ? x : y)
BINARY_OF(loop_int_floor_div, integer, integer, x / y - (x % y < 0))
BINARY_OF(loop_int_floor_mod, integer, integer, x % y + (x % y < 0 ? y : 0))
BINARY_OF(loop_int_less, integer, real, x < y ? 1.0f : 0.0f)
BINARY_OF(loop_int_less_equal, integer, real, x <= y ? 1.0f : 0.0f)
BINARY_OF(loop_int_greater, integer, real, x > y ? 1.0f : 0.0f)
BINARY_OF(loop_int_greater_equal, integer, real, x >= y ? 1.0f : 0.0f)
BINARY_OF(loop_int_equal, integer, real, x == y ? 1.0f : 0.0f)
BINARY_OF(loop_int_not_equal, integer, real, x != y ? 1.0f : 0.0f)

VECTORISED static void loop_float_of_int(real *restrict out, const real *a, int64_t n) {
    for (int64_t i = 0; i < n; i++) out[i] = (real)((const integer *)a)[i];
}

/* Of numbers that integers can hold, such as booleans. */
VECTORISED static void loop_int_of_float(real *restrict out, const real *a, int64_t n) {
    for (int64_t i = 0; i < n; i++) ((integer *)out)[i] = (integer)a[i];
}

/* One row of a selection: the step of the mask is 0 or 1. */
VECTORISED static void loop_select(real *restrict out, const real *mask, const real *t, const real *e, int64_t n, int step) {
    if (step)
        for (int64_t i = 0; i < n; i++) out[i] = mask[i] != 0.0f ? t[i] : e[i];
    else
        memcpy(out, *mask != 0.0f ? t : e, (size_t)n * sizeof(real));
}

typedef void (*unary_loop)(real *restrict, const real *, int64_t);
typedef void (*binary_loop)(real *restrict, const real *, const real *, int64_t, int, int);

/* -- products ---------------------------------------------------------------------------------------------------- */

/* Four rows and WIDTH columns of a product: each loaded row of `b` is used four times. */
#define TILE(WIDTH)                                                                                          \
    for (; j + WIDTH <= n; j += WIDTH) {                                                                     \
        real s0[WIDTH] = {0}, s1[WIDTH] = {0}, s2[WIDTH] = {0}, s3[WIDTH] = {0};                            \
        for (int64_t p = 0; p < k; p++) {                                                                    \
            const real *row = b + p * n + j;                                                                \
            real x0 = a0[p * a_column], x1 = a1[p * a_column], x2 = a2[p * a_column], x3 = a3[p * a_column]; \
            for (int64_t q = 0; q < WIDTH; q++) {                                                            \
                s0[q] += x0 * row[q];                                                                        \
                s1[q] += x1 * row[q];                                                                        \
                s2[q] += x2 * row[q];                                                                        \
                s3[q] += x3 * row[q];                                                                        \
            }                                                                                                \
        }                                                                                                    \
        memcpy(out + i * n + j, s0, sizeof s0);                                                              \
        memcpy(out + (i + 1) * n + j, s1, sizeof s1);                                                        \
        memcpy(out + (i + 2) * n + j, s2, sizeof s2);                                                        \
        memcpy(out + (i + 3) * n + j, s3, sizeof s3);                                                        \
    }

/* out[m, n] = a[m, k] b[k, n], four rows at a time. */
VECTORISED static void loop_matmul(real *restrict out, const real *a, const real *b, int64_t m, int64_t k, int64_t n,
                               int64_t a_row, int64_t a_column) {
    int64_t i = 0;
    for (; i + 4 <= m; i += 4) {
        const real *a0 = a + i * a_row, *a1 = a0 + a_row, *a2 = a1 + a_row, *a3 = a2 + a_row;
        int64_t j = 0;
        TILE(16)
        TILE(8)
        TILE(4)
        TILE(1)
    }
    for (; i < m; i++) {
        real *row_out = out + i * n;
        for (int64_t j = 0; j < n; j++) row_out[j] = 0.0f;
        for (int64_t p = 0; p < k; p++) {
            real x = a[i * a_row + p * a_column];
            for (int64_t j = 0; j < n; j++) row_out[j] += x * b[p * n + j];
        }
    }
}

/* out[rows, columns] = the transpose of a[columns, rows]. */
static void loop_transpose(real *restrict out, const real *a, int64_t rows, int64_t columns) {
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) out[i * columns + j] = a[j * rows + i];
}

/* -- softmax ----------------------------------------------------------------------------------------------------- */

VECTORISED static void loop_softmax(real *restrict out, const real *a, int64_t rows, int64_t columns) {
    real largest[ROWS_AT_ONCE], totals[ROWS_AT_ONCE];
    const int64_t most = rows_at_once(columns);
    for (int64_t i = 0; i < rows && columns < SHORT; i += most) {
        int64_t some = rows - i < most ? rows - i : most;
        exponentials_of_few(out, largest, totals, a, some, columns);
        for (int64_t k = 0; k < some; k++, a += columns, out += columns) {
            real scale = 1.0f / totals[k];
            for (int64_t j = 0; j < columns; j++) out[j] *= scale;
        }
    }
    for (int64_t i = 0; i < rows && columns >= SHORT; i++, a += columns, out += columns) {
        real scale = 1.0f / exponentials(out, a, largest_of(a, columns), columns);
        for (int64_t j = 0; j < columns; j++) out[j] *= scale;
    }
}

/* -- sums -------------------------------------------------------------------------------------------------------- */

/* out[outer, inner] = the largest over the middle of a[outer, middle, inner]; a NaN where there is one. */
VECTORISED static void loop_largest(real *restrict out, const real *a, int64_t outer, int64_t middle, int64_t inner) {
    for (int64_t i = 0; i < outer; i++) {
        if (inner == 1) {
            out[i] = largest_of(a + i * middle, middle);
            continue;
        }
        real *largest = out + i * inner;
        memcpy(largest, a + i * middle * inner, (size_t)inner * sizeof(real));
        for (int64_t p = 1; p < middle; p++) {
            const real *row = a + (i * middle + p) * inner;
            for (int64_t j = 0; j < inner; j++)
                largest[j] = row[j] > largest[j] || row[j] != row[j] ? row[j] : largest[j];
        }
    }
}

/* out[outer, inner] = scale * the sum over the middle of a[outer, middle, inner]. */
VECTORISED static void loop_sum(real *restrict out, const real *a, int64_t outer, int64_t middle, int64_t inner, real divisor) {
    if (inner == 1 && middle < 8) { /* too short for lanes */
        for (int64_t i = 0; i < outer; i++, a += middle) {
            real sum = a[0];
            for (int64_t j = 1; j < middle; j++) sum += a[j];
            out[i] = sum / divisor;
        }
        return;
    }
    if (inner == 1) {
        for (int64_t i = 0; i < outer; i++) {
            real lanes[16] = {0};
            const real *row = a + i * middle;
            int64_t j = 0;
            for (; j + 16 <= middle; j += 16)
                for (int q = 0; q < 16; q++) lanes[q] += row[j + q];
            for (int q = 0; j + q < middle; q++) lanes[q] += row[j + q];
            for (int width = 8; width; width /= 2)
                for (int q = 0; q < width; q++) lanes[q] += lanes[q + width];
            out[i] = lanes[0] / divisor;
        }
        return;
    }
    for (int64_t i = 0; i < outer; i++) {
        real *sum = out + i * inner;
        for (int64_t j = 0; j < inner; j++) sum[j] = 0.0f;
        for (int64_t p = 0; p < middle; p++) {
            const real *row = a + (i * middle + p) * inner;
            for (int64_t j = 0; j < inner; j++) sum[j] += row[j];
        }
        if (divisor != 1.0f)
            for (int64_t j = 0; j < inner; j++) sum[j] /= divisor;
    }
}

#endif
