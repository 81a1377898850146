/* Elementary functions of float32, for functions that are compiled for several instruction sets (vectorised.h) to inline. */
#ifndef STOKER_FUNCTIONS32_H
#define STOKER_FUNCTIONS32_H

#include <math.h>

#include "../../base/native/exponentials.h"
#include "doubles.h"

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

#define MOST_RADIANS 500000.0f /* for the two functions that follow */

INLINE float sine_after(float x, uint64_t quarters) {
    /* sin(x + quarters pi/2), in double arithmetic: the rest after n quarters of a turn, and the polynomials of float_math.h. */
    double rounding = 6755399441055744.0, wide = x;
    double shifted = wide * 6.36619772367581382433e-01 + rounding;
    double n = shifted - rounding;
    double r = wide - n * 1.57079632673412561417;
    r -= n * 6.07710050650619224932e-11;
    uint64_t quadrant;
    memcpy(&quadrant, &shifted, 8);
    quadrant += quarters;
    double r2 = r * r, r3 = r * r2, r4 = r2 * r2;
    double sine = (r + r3 * -0x1.555545995a603p-3) + (r3 * r2) * (0x1.1107605230bc4p-7 + r2 * -0x1.994eb3774cf24p-13);
    double cosine = (1.0 + r2 * -0x1.ffffffd0c621cp-2 + r4 * 0x1.55553e1068f19p-5) + (r4 * r2) * (-0x1.6c087e89a359dp-10 + r2 * 0x1.99343027bf8c3p-16);
    double result = (quadrant & 1) ? cosine : sine;
    return (float)((quadrant & 2) ? -result : result);
}

INLINE float digamma_of(float x) { return (float)digamma_of_positive(x); }
INLINE float any_digamma(float x) { return (float)digamma_anywhere(x); }

INLINE float trigamma_of(float x) { return (float)trigamma_of_positive(x); }
INLINE float any_trigamma(float x) { return (float)trigamma_anywhere(x); }

INLINE float sin_of(float x) { return x == 0.0f ? x : sine_after(x, 0); }
INLINE float cos_of(float x) { return sine_after(x, 1); }

#endif
