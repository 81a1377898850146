/* Elementary functions of float64, for functions that are compiled for several instruction sets (vectorised.h) to inline. */
#ifndef STOKER_FUNCTIONS64_H
#define STOKER_FUNCTIONS64_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

typedef double real;

/* Adding this rounds to an integer, which is then in the low bits. */
#define ROUNDING 6755399441055744.0
/* log(2) in two parts, of which the first has so few bits that its products with exponents are exact. */
#define LOG_2_HIGH 6.93147180369123816490e-01
#define LOG_2_LOW 1.90821492927058770002e-10

/* 2^n for an integer n between -1022 and 1023. */
INLINE double power_of_two(double n) {
    double shifted = n + ROUNDING, rounding = ROUNDING, power;
    uint64_t one, other;
    memcpy(&one, &shifted, 8);
    memcpy(&other, &rounding, 8);
    one = (one - other + 1023) << 52;
    memcpy(&power, &one, 8);
    return power;
}

/* exp(r) - 1 - r for |r| <= log(2) / 2, by the Taylor series of degree 13. */
INLINE double exponential_rest(double r) {
    double p = 1.0 / 6227020800.0;
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    return p * r * r;
}

INLINE double exp_of(double x) {
    /* exp(x) = 2^n exp(r). Past the ends 2^n is made of two factors. */
    double bounded = x < -746.0 ? -746.0 : x;
    bounded = bounded > 710.0 ? 710.0 : bounded; /* a NaN compares false twice and stays */
    double n = bounded * 1.44269504088896340736 + ROUNDING;
    n -= ROUNDING;
    double r = bounded - n * LOG_2_HIGH;
    r -= n * LOG_2_LOW;
    double half = n * 0.5 + ROUNDING;
    half -= ROUNDING;
    return (exponential_rest(r) + r + 1.0) * power_of_two(half) * power_of_two(n - half);
}

INLINE double expm1_of(double x) {
    /* 2^n (exp(r) - 1) + (2^n - 1), halved in between because 2^1024 is no number. */
    double bounded = x < -40.0 ? -40.0 : x;
    bounded = bounded > 710.0 ? 710.0 : bounded;
    double n = bounded * 1.44269504088896340736 + ROUNDING;
    n -= ROUNDING;
    double r = bounded - n * LOG_2_HIGH;
    r -= n * LOG_2_LOW;
    double power = power_of_two(n - 1.0);
    double result = (power * (exponential_rest(r) + r) + (power - 0.5)) * 2.0;
    return x == 0.0 ? x : result;
}

INLINE double tanh_of(double x) {
    double size = fabs(x);
    double t = expm1_of(2.0 * (size > 20.0 ? 20.0 : size));
    double result = copysign(t / (t + 2.0), x);
    return x == x ? result : x;
}

INLINE double log_of(double x) {
    /* log(m 2^e) with m in [sqrt(1/2), sqrt(2)). With s = (m - 1) / (m + 1) it is 2 artanh(s); the polynomial is that of Sun's fdlibm. */
    int64_t tiny = x < 2.2250738585072014e-308; /* subnormal, zero or negative */
    double scaled = tiny ? x * 18014398509481984.0 : x;
    uint64_t bits;
    memcpy(&bits, &scaled, 8);
    uint64_t exponent = (bits >> 52) | 0x4330000000000000u; /* as the low bits of 2^52 */
    bits = (bits & 0x000fffffffffffffu) | 0x3fe0000000000000u;
    double m, e;
    memcpy(&m, &bits, 8);
    memcpy(&e, &exponent, 8);
    e -= 4503599627370496.0 + 1022.0;
    e = tiny ? e - 54.0 : e;
    int64_t low = m < 0.70710678118654752440;
    e = low ? e - 1.0 : e;
    double f = low ? m + m - 1.0 : m - 1.0;
    double s = f / (2.0 + f), z = s * s, half = 0.5 * f * f;
    double p = 1.479819860511658591e-01;
    p = p * z + 1.531383769920937332e-01;
    p = p * z + 1.818357216161805012e-01;
    p = p * z + 2.222219843214978396e-01;
    p = p * z + 2.857142874366239149e-01;
    p = p * z + 3.999999999940941908e-01;
    p = p * z + 6.666666666666735130e-01;
    p *= z;
    double result = e * LOG_2_HIGH - ((half - (s * (half + p) + e * LOG_2_LOW)) - f);
    result = x - x == 0.0 ? result : x; /* infinity and NaN stay */
    return x > 0.0 ? result : (x == 0.0 ? -INFINITY : NAN);
}

INLINE double log1p_of(double x) {
    double sum = 1.0 + x;
    double lost = sum - 1.0 - x; /* what rounding added to 1 + x */
    double correction = lost / sum;
    correction = sum > 0.0 ? correction : 0.0; /* at the ends, log_of(sum) is right as it is */
    correction = sum < 1.7976931348623157e+308 ? correction : 0.0;
    double result = log_of(sum) - correction;
    return sum == 1.0 ? x : result;
}

INLINE double erf_of(double x) { return erf(x); }

#define MOST_RADIANS 500000.0 /* for the two functions that follow */

INLINE double sine_after(double x, uint64_t quarters) {
    /* sin(x + quarters pi/2): the rest after n quarters of a turn, of which each is subtracted in three parts, and the polynomials of fdlibm. */
    double shifted = x * 6.36619772367581382433e-01 + ROUNDING;
    double n = shifted - ROUNDING;
    double most = x - n * 1.57079632673412561417e+00;
    double part = n * 6.07710050630396597660e-11;
    double less = most - part;
    part = n * 2.02226624879595063154e-21 - ((most - less) - part);
    double r = less - part, tail = (less - r) - part;
    uint64_t quadrant;
    memcpy(&quadrant, &shifted, 8);
    quadrant += quarters;
    double z = r * r, cube = z * r;
    double s = 1.58969099521155010221e-10;
    s = s * z - 2.50507602534068634195e-08;
    s = s * z + 2.75573137070700676789e-06;
    s = s * z - 1.98412698298579493134e-04;
    s = s * z + 8.33333333332248946124e-03;
    double sine = r - ((z * (0.5 * tail - cube * s) - tail) + cube * 1.66666666666666324348e-01);
    double c = -1.13596475577881948265e-11;
    c = c * z + 2.08757232129817482790e-09;
    c = c * z - 2.75573143513906633035e-07;
    c = c * z + 2.48015872894767294178e-05;
    c = c * z - 1.38888888888741095749e-03;
    c = c * z + 4.16666666666666019037e-02;
    double half = 0.5 * z, rest = 1.0 - half;
    double cosine = rest + (((1.0 - rest) - half) + (z * z * c - r * tail));
    double result = (quadrant & 1) ? cosine : sine;
    return (quadrant & 2) ? -result : result;
}

INLINE double sin_of(double x) { return x == 0.0 ? x : sine_after(x, 0); }
INLINE double cos_of(double x) { return sine_after(x, 1); }

#include "../../base/native/row_exponentials.h"

#endif
