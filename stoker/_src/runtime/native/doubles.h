/* Functions in double arithmetic that programs of float32 and of float64 numbers have in common. */
#ifndef STOKER_DOUBLES_H
#define STOKER_DOUBLES_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#ifndef INLINE
#define INLINE static inline __attribute__((always_inline))
#endif

/* log(2) in two parts, of which the first has so few bits that its products with exponents are exact. */
#define LOG_2_HIGH 6.93147180369123816490e-01
#define LOG_2_LOW 1.90821492927058770002e-10

INLINE double logarithm(double x) {
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

INLINE double digamma_of_positive(double x) {
    /* Below 10, digamma(x + 10) less the sum of 1 / (x + i) for i < 10, which is one quotient. From there on the asymptotic series with Bernoulli's
     * numbers. Infinity stays. */
    int64_t low = x < 10.0;
    double numerator = 1.0, denominator = x;
    for (int i = 1; i < 10; i++) {
        numerator = numerator * (x + i) + denominator;
        denominator *= x + i;
    }
    double y = low ? x + 10.0 : x, z = 1.0 / (y * y);
    double p = 1.0 / 12.0;
    p = p * z - 691.0 / 32760.0;
    p = p * z + 1.0 / 132.0;
    p = p * z - 1.0 / 240.0;
    p = p * z + 1.0 / 252.0;
    p = p * z - 1.0 / 120.0;
    p = p * z + 1.0 / 12.0;
    return logarithm(y) - 0.5 / y - p * z - (low ? numerator / denominator : 0.0);
}

/* For negative numbers by reflection, with the angle measured from the nearest integer. At the poles it is NaN. */
static inline double digamma_anywhere(double x) {
    if (x > 0.0) return digamma_of_positive(x);
    if (!(x < 0.0) || x == rint(x)) return NAN;
    return digamma_of_positive(1.0 - x) - M_PI / tan(M_PI * (x - rint(x)));
}

INLINE double trigamma_of_positive(double x) {
    /* The derivative of the above. */
    int64_t low = x < 10.0;
    double numerator = 1.0, denominator = x * x;
    for (int i = 1; i < 10; i++) {
        double square = (x + i) * (x + i);
        numerator = numerator * square + denominator;
        denominator *= square;
    }
    double y = low ? x + 10.0 : x, u = 1.0 / y, z = u * u;
    double p = 7.0 / 6.0;
    p = p * z - 691.0 / 2730.0;
    p = p * z + 5.0 / 66.0;
    p = p * z - 1.0 / 30.0;
    p = p * z + 1.0 / 42.0;
    p = p * z - 1.0 / 30.0;
    p = p * z + 1.0 / 6.0;
    return u + 0.5 * z + p * z * u + (low ? numerator / denominator : 0.0);
}

/* For negative numbers by reflection. At the poles it is infinite. */
static inline double trigamma_anywhere(double x) {
    if (x > 0.0) return trigamma_of_positive(x);
    if (!(x <= 0.0)) return NAN;
    if (x == rint(x)) return INFINITY;
    double height = sin(M_PI * (x - rint(x))) / M_PI;
    return 1.0 / (height * height) - trigamma_of_positive(1.0 - x);
}

#endif
