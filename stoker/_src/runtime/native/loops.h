/* The loops that program.c fuses: float32, contiguous, of sizes known in advance.
 *
 * Each is written so that the compiler can vectorise it.
 */
#ifndef STOKER_LOOPS_H
#define STOKER_LOOPS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "../../base/native/exponentials.h"
#include "../../base/native/vectorised.h"

INLINE float tanh_of(float x) {
    /* Near zero a fitted odd polynomial (relative error 4e-9), because the quotient loses precision there; elsewhere 1 - 2 / (exp(2|x|) + 1). */
    float size = fabsf(x);
    float square = x * x;
    float p = -0.00571477832f;
    p = p * square + 0.0206486527f;
    p = p * square - 0.0537429377f;
    p = p * square + 0.133314848f;
    p = p * square - 0.333332837f;
    float near = p * square * x + x;
    float bounded = size > 10.0f ? 10.0f : size;
    float far = 1.0f - 2.0f / (exp_of(2.0f * bounded) + 1.0f);
    far = copysignf(far, x);
    return size < 0.625f ? near : (x == x ? far : x);
}

INLINE float log_of(float x) {
    /* log(m 2^e) with m in [sqrt(1/2), sqrt(2)): the polynomial of the Cephes library for log(m), plus e log(2) in two parts. */
    int tiny = x < 1.17549435e-38f; /* subnormal, zero or negative */
    float scaled = tiny ? x * 8388608.0f : x;
    uint32_t bits;
    memcpy(&bits, &scaled, 4);
    int32_t e = (int32_t)(bits >> 23) - 126 - (tiny ? 23 : 0);
    bits = (bits & 0x007fffffu) | 0x3f000000u;
    float m;
    memcpy(&m, &bits, 4);
    int low = m < 0.707106781f;
    e -= low;
    float z = low ? m + m - 1.0f : m - 1.0f;
    float p = 7.0376836292e-2f;
    p = p * z - 1.1514610310e-1f;
    p = p * z + 1.1676998740e-1f;
    p = p * z - 1.2420140846e-1f;
    p = p * z + 1.4249322787e-1f;
    p = p * z - 1.6668057665e-1f;
    p = p * z + 2.0000714765e-1f;
    p = p * z - 2.4999993993e-1f;
    p = p * z + 3.3333331174e-1f;
    float square = z * z, y = p * z * square;
    y += (float)e * -2.12194440e-4f;
    y -= 0.5f * square;
    float result = z + y + (float)e * 0.693359375f;
    result = x < 3.40282347e+38f ? result : x; /* infinity and NaN stay */
    return x > 0.0f ? result : (x == 0.0f ? -INFINITY : NAN);
}

INLINE float log1p_of(float x) {
    float sum = 1.0f + x;
    float lost = sum - 1.0f - x; /* what rounding added to 1 + x */
    float correction = lost / sum;
    correction = sum > 0.0f ? correction : 0.0f; /* at the ends, log_of(sum) is right as it is */
    correction = sum < 3.40282347e+38f ? correction : 0.0f;
    float result = log_of(sum) - correction;
    return sum == 1.0f ? x : result;
}

INLINE float expm1_of(float x) {
    /* Near zero the Taylor series of degree 8, because exp(x) - 1 loses precision there. */
    float p = 1.0f / 40320.0f;
    p = p * x + 1.0f / 5040.0f;
    p = p * x + 1.0f / 720.0f;
    p = p * x + 1.0f / 120.0f;
    p = p * x + 1.0f / 24.0f;
    p = p * x + 1.0f / 6.0f;
    p = p * x + 0.5f;
    float near = p * x * x + x;
    float far = exp_of(x) - 1.0f;
    return fabsf(x) < 0.5f ? near : far;
}

INLINE float erf_of(float x) {
    /* Near zero x plus a fitted odd polynomial, elsewhere 1 - exp(-|x| p(|x|)) with a fitted p. The error is at most 1.3 units in the last place. */
    float size = fabsf(x), square = x * x;
    float p = -0.000590463926f;
    p = p * square + 0.00497608958f;
    p = p * square - 0.0267548542f;
    p = p * square + 0.112814888f;
    p = p * square - 0.37612462f;
    p = p * square + 0.128379151f;
    float near = p * x + x;
    float bounded = size > 4.0f ? 4.0f : size;
    float q = 1.11919262e-05f;
    q = q * bounded - 0.00032213112f;
    q = q * bounded + 0.00363858137f;
    q = q * bounded - 0.0237514507f;
    q = q * bounded + 0.106221795f;
    q = q * bounded + 0.635162055f;
    q = q * bounded + 1.12864542f;
    float far = copysignf(1.0f - exp_of(-q * bounded), x);
    return size < 0.9375f ? near : (x == x ? far : x);
}

INLINE float sigmoid_of(float x) { return 1.0f / (1.0f + exp_of(-x)); }

/* -- element by element ----------------------------------------------------------------------------------------- */

#define UNARY(name, expression)                                                \
    VECTORISED static void name(float *restrict out, const float *a, int64_t n) {  \
        for (int64_t i = 0; i < n; i++) {                                      \
            float x = a[i];                                                    \
            out[i] = (expression);                                             \
        }                                                                      \
    }

UNARY(loop_neg, -x)
UNARY(loop_square, x * x)
UNARY(loop_sqrt, sqrtf(x))
UNARY(loop_rsqrt, 1.0f / sqrtf(x))
UNARY(loop_reciprocal, 1.0f / x)
UNARY(loop_abs, fabsf(x))
UNARY(loop_exp, exp_of(x))
UNARY(loop_log, log_of(x))
UNARY(loop_log1p, log1p_of(x))
UNARY(loop_tanh, tanh_of(x))
UNARY(loop_sigmoid, sigmoid_of(x))
UNARY(loop_is_finite, x - x == 0.0f ? 1.0f : 0.0f)
UNARY(loop_floor, floorf(x))
UNARY(loop_ceil, ceilf(x))
UNARY(loop_rint, rintf(x))
UNARY(loop_sign, x > 0.0f ? 1.0f : (x < 0.0f ? -1.0f : x))
UNARY(loop_erf, erf_of(x))
UNARY(loop_expm1, expm1_of(x))
UNARY(loop_elu, x < 0.0f ? expm1_of(x) : x)
UNARY(loop_relu, x > 0.0f ? x : (x == x ? 0.0f : x))

/* One row of a broadcast: the steps of `a` and `b` are 0 or 1. */
#define BINARY(name, expression) BINARY_OF(name, float, float, expression)
#define BINARY_OF(name, IN, OUT, expression)                                                                 \
    VECTORISED static void name(float *restrict made, const float *first, const float *second, int64_t n, int sa, int sb) { \
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
BINARY(loop_relu_grad, y > 0.0f ? x : 0.0f)
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

/* Integers have 32 bits, as many as the other elements of buffers. Sums wrap around. Divisors are positive. */
typedef int32_t integer __attribute__((may_alias));
BINARY_OF(loop_int_add, integer, integer, (integer)((uint32_t)x + (uint32_t)y))
BINARY_OF(loop_int_sub, integer, integer, (integer)((uint32_t)x - (uint32_t)y))
BINARY_OF(loop_int_mul, integer, integer, (integer)((uint32_t)x * (uint32_t)y))
BINARY_OF(loop_int_max, integer, integer, x > y ? x : y)
BINARY_OF(loop_int_min, integer, integer, x < y ? x : y)
BINARY_OF(loop_int_floor_div, integer, integer, x / y - (x % y < 0))
BINARY_OF(loop_int_floor_mod, integer, integer, x % y + (x % y < 0 ? y : 0))
BINARY_OF(loop_int_less, integer, float, x < y ? 1.0f : 0.0f)
BINARY_OF(loop_int_less_equal, integer, float, x <= y ? 1.0f : 0.0f)
BINARY_OF(loop_int_greater, integer, float, x > y ? 1.0f : 0.0f)
BINARY_OF(loop_int_greater_equal, integer, float, x >= y ? 1.0f : 0.0f)
BINARY_OF(loop_int_equal, integer, float, x == y ? 1.0f : 0.0f)
BINARY_OF(loop_int_not_equal, integer, float, x != y ? 1.0f : 0.0f)

VECTORISED static void loop_float_of_int(float *restrict out, const float *a, int64_t n) {
    for (int64_t i = 0; i < n; i++) out[i] = (float)((const integer *)a)[i];
}

/* Of numbers that integers can hold, such as booleans. */
VECTORISED static void loop_int_of_float(float *restrict out, const float *a, int64_t n) {
    for (int64_t i = 0; i < n; i++) ((integer *)out)[i] = (integer)a[i];
}

/* One row of a selection: the step of the mask is 0 or 1. */
VECTORISED static void loop_select(float *restrict out, const float *mask, const float *t, const float *e, int64_t n, int step) {
    if (step)
        for (int64_t i = 0; i < n; i++) out[i] = mask[i] != 0.0f ? t[i] : e[i];
    else
        memcpy(out, *mask != 0.0f ? t : e, (size_t)n * sizeof(float));
}

typedef void (*unary_loop)(float *restrict, const float *, int64_t);
typedef void (*binary_loop)(float *restrict, const float *, const float *, int64_t, int, int);

/* -- products ---------------------------------------------------------------------------------------------------- */

/* Four rows and WIDTH columns of a product: each loaded row of `b` is used four times. */
#define TILE(WIDTH)                                                                                          \
    for (; j + WIDTH <= n; j += WIDTH) {                                                                     \
        float s0[WIDTH] = {0}, s1[WIDTH] = {0}, s2[WIDTH] = {0}, s3[WIDTH] = {0};                            \
        for (int64_t p = 0; p < k; p++) {                                                                    \
            const float *row = b + p * n + j;                                                                \
            float x0 = a0[p * a_column], x1 = a1[p * a_column], x2 = a2[p * a_column], x3 = a3[p * a_column]; \
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
VECTORISED static void loop_matmul(float *restrict out, const float *a, const float *b, int64_t m, int64_t k, int64_t n,
                               int64_t a_row, int64_t a_column) {
    int64_t i = 0;
    for (; i + 4 <= m; i += 4) {
        const float *a0 = a + i * a_row, *a1 = a0 + a_row, *a2 = a1 + a_row, *a3 = a2 + a_row;
        int64_t j = 0;
        TILE(16)
        TILE(8)
        TILE(4)
        TILE(1)
    }
    for (; i < m; i++) {
        float *row_out = out + i * n;
        for (int64_t j = 0; j < n; j++) row_out[j] = 0.0f;
        for (int64_t p = 0; p < k; p++) {
            float x = a[i * a_row + p * a_column];
            for (int64_t j = 0; j < n; j++) row_out[j] += x * b[p * n + j];
        }
    }
}

/* out[rows, columns] = the transpose of a[columns, rows]. */
static void loop_transpose(float *restrict out, const float *a, int64_t rows, int64_t columns) {
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) out[i * columns + j] = a[j * rows + i];
}

/* -- softmax ----------------------------------------------------------------------------------------------------- */

VECTORISED static void loop_softmax(float *restrict out, const float *a, int64_t rows, int64_t columns) {
    float largest[ROWS_AT_ONCE], totals[ROWS_AT_ONCE];
    for (int64_t i = 0; i < rows && columns < FEW; i += ROWS_AT_ONCE) {
        int64_t some = rows - i < ROWS_AT_ONCE ? rows - i : ROWS_AT_ONCE;
        exponentials_of_few(out, largest, totals, a, some, columns);
        for (int64_t k = 0; k < some; k++, a += columns, out += columns) {
            float scale = 1.0f / totals[k];
            for (int64_t j = 0; j < columns; j++) out[j] *= scale;
        }
    }
    for (int64_t i = 0; i < rows && columns >= FEW; i++, a += columns, out += columns) {
        float scale = 1.0f / exponentials(out, a, largest_of(a, columns), columns);
        for (int64_t j = 0; j < columns; j++) out[j] *= scale;
    }
}

/* -- sums -------------------------------------------------------------------------------------------------------- */

/* out[outer, inner] = the largest over the middle of a[outer, middle, inner]; a NaN where there is one. */
VECTORISED static void loop_largest(float *restrict out, const float *a, int64_t outer, int64_t middle, int64_t inner) {
    for (int64_t i = 0; i < outer; i++) {
        if (inner == 1) {
            out[i] = largest_of(a + i * middle, middle);
            continue;
        }
        float *largest = out + i * inner;
        memcpy(largest, a + i * middle * inner, (size_t)inner * sizeof(float));
        for (int64_t p = 1; p < middle; p++) {
            const float *row = a + (i * middle + p) * inner;
            for (int64_t j = 0; j < inner; j++)
                largest[j] = row[j] > largest[j] || row[j] != row[j] ? row[j] : largest[j];
        }
    }
}

/* out[outer, inner] = scale * the sum over the middle of a[outer, middle, inner]. */
VECTORISED static void loop_sum(float *restrict out, const float *a, int64_t outer, int64_t middle, int64_t inner, float divisor) {
    if (inner == 1 && middle < 8) { /* too short for lanes */
        for (int64_t i = 0; i < outer; i++, a += middle) {
            float sum = a[0];
            for (int64_t j = 1; j < middle; j++) sum += a[j];
            out[i] = sum / divisor;
        }
        return;
    }
    if (inner == 1) {
        for (int64_t i = 0; i < outer; i++) {
            float lanes[16] = {0};
            const float *row = a + i * middle;
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
        float *sum = out + i * inner;
        for (int64_t j = 0; j < inner; j++) sum[j] = 0.0f;
        for (int64_t p = 0; p < middle; p++) {
            const float *row = a + (i * middle + p) * inner;
            for (int64_t j = 0; j < inner; j++) sum[j] += row[j];
        }
        if (divisor != 1.0f)
            for (int64_t j = 0; j < inner; j++) sum[j] /= divisor;
    }
}

#endif
