/* Elementary functions of float64, for functions that are compiled for several instruction sets (vectorised.h) to inline. */
#ifndef STOKER_FUNCTIONS64_H
#define STOKER_FUNCTIONS64_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "doubles.h"

typedef double real;

/* Adding this rounds to an integer, which is then in the low bits. */
#define ROUNDING 6755399441055744.0
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

INLINE double log_of(double x) { return logarithm(x); }

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

INLINE double digamma_of(double x) { return digamma_of_positive(x); }
INLINE double any_digamma(double x) { return digamma_anywhere(x); }

INLINE double trigamma_of(double x) { return trigamma_of_positive(x); }
INLINE double any_trigamma(double x) { return trigamma_anywhere(x); }

INLINE double sin_of(double x) { return x == 0.0 ? x : sine_after(x, 0); }
INLINE double cos_of(double x) { return sine_after(x, 1); }

#include "../../base/native/row_exponentials.h"

#endif
