/* Float32 logarithm, sine and cosine in double arithmetic, written so that a compiler can vectorise them.
 *
 * TensorFlow calls the C library's logf, sinf and cosf, which differ between platforms. The reference results
 * come from the table and polynomials of Arm's optimized routines (MIT licence), which glibc has used
 * since 2.28. The same constants are used here, so results do not depend on the platform's library.
 * The NumPy version is ops/random/bits/float_math.py. Compiling with -ffp-contract=off keeps the two equal.
 * The functions are valid for the callers' arguments: positive normal numbers for the logarithm, [0, 2 pi] for sine and cosine.
 */
#ifndef STOKER_FLOAT_MATH_H
#define STOKER_FLOAT_MATH_H

#include <stdint.h>
#include <string.h>

static const double LOG_INVERSE[16] = {
    0x1.661ec79f8f3bep+0, 0x1.571ed4aaf883dp+0, 0x1.49539f0f010bp+0,  0x1.3c995b0b80385p+0,
    0x1.30d190c8864a5p+0, 0x1.25e227b0b8eap+0,  0x1.1bb4a4a1a343fp+0, 0x1.12358f08ae5bap+0,
    0x1.0953f419900a7p+0, 0x1p+0,               0x1.e608cfd9a47acp-1, 0x1.ca4b31f026aap-1,
    0x1.b2036576afce6p-1, 0x1.9c2d163a1aa2dp-1, 0x1.886e6037841edp-1, 0x1.767dcf5534862p-1,
};
static const double LOG_CENTRE[16] = {
    -0x1.57bf7808caadep-2, -0x1.2bef0a7c06ddbp-2, -0x1.01eae7f513a67p-2, -0x1.b31d8a68224e9p-3,
    -0x1.6574f0ac07758p-3, -0x1.1aa2bc79c81p-3,   -0x1.a4e76ce8c0e5ep-4, -0x1.1973c5a611cccp-4,
    -0x1.252f438e10c1ep-5, 0x0p+0,                0x1.aa5aa5df25984p-5,  0x1.c5e53aa362eb4p-4,
    0x1.526e57720db08p-3,  0x1.bc2860d22477p-3,   0x1.1058bc8a07ee1p-2,  0x1.4043057b6ee09p-2,
};

static inline float float_of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t bits_of_float(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* The logarithm of a float given by its bits: log(x) = k ln 2 + log(c) + log1p(z/c - 1), where c is the centre of one of 16
 * intervals of the mantissa. */
static inline float log_of_bits(uint32_t bits) {
    uint32_t above = bits - 0x3f330000u;
    uint32_t entry = (above >> 19) & 15u;
    int32_t exponent = (int32_t)above >> 23;
    double z = (double)float_of_bits(bits - (above & 0xff800000u));
    double r = z * LOG_INVERSE[entry] - 1.0;
    double y0 = LOG_CENTRE[entry] + (double)exponent * 0x1.62e42fefa39efp-1;
    double r2 = r * r;
    double y = 0x1.5575b0be00b6ap-2 * r + -0x1.ffffef20a4123p-2;
    y = -0x1.00ea348b88334p-2 * r2 + y;
    y = y * r2 + (y0 + r);
    return (float)y;
}

/* Sine and cosine together: the argument is reduced to [-pi/4, pi/4] and a quadrant. */
static inline void sincos_float(float argument, float *sine, float *cosine) {
    double x = (double)argument;
    int32_t quadrant = (int32_t)(x * 0x1.45F306DC9C883p-1 + 0.5); /* not negative, so truncation is floor */
    double r = x - (double)quadrant * 0x1.921FB54442D18p0;
    double r2 = r * r;
    double r3 = r * r2;
    double s1 = 0x1.1107605230bc4p-7 + r2 * -0x1.994eb3774cf24p-13;
    double s = (r + r3 * -0x1.555545995a603p-3) + (r3 * r2) * s1;
    double r4 = r2 * r2;
    double c2 = -0x1.6c087e89a359dp-10 + r2 * 0x1.99343027bf8c3p-16;
    double c1 = 1.0 + r2 * -0x1.ffffffd0c621cp-2;
    double c = (c1 + r4 * 0x1.55553e1068f19p-5) + (r4 * r2) * c2;
    double sine_part = (quadrant & 1) ? c : s;
    double cosine_part = (quadrant & 1) ? s : c;
    *sine = (float)((quadrant & 2) ? -sine_part : sine_part);
    *cosine = (float)(((quadrant + 1) & 2) ? -cosine_part : cosine_part);
}

#endif
