/* Elementary functions of float32, for functions that are compiled for several instruction sets (vectorised.h) to inline. */
#ifndef STOKER_FUNCTIONS32_H
#define STOKER_FUNCTIONS32_H

#include <math.h>

#include "../../base/native/exponentials.h"

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

#endif
