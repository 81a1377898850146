/* Gamma, Poisson and binomial numbers by rejection. All arithmetic is in double, for every output type.
 * The Python versions, with references, are in ops/random/bits/rejection.py. Keep the order of operations the same in both. */
#ifndef STOKER_REJECTION_H
#define STOKER_REJECTION_H

#include "fills.h"

/* Each block gives two doubles, and the second is used first. Uniforms and normals take their blocks from one stream. */
typedef struct {
    Stream stream;
    double uniforms[2], normals[2];
    int uniforms_left, normals_left;
} Doubles;

static inline Doubles doubles_from(Stream stream) {
    Doubles doubles = {stream, {0, 0}, {0, 0}, 0, 0};
    return doubles;
}

static inline void next_block(Doubles *doubles, uint32_t words[4]) {
    philox_block(doubles->stream, words);
    doubles->stream = stream_at(doubles->stream, 1);
}

static double next_uniform(Doubles *doubles) {
    if (doubles->uniforms_left == 0) {
        uint32_t words[4];
        next_block(doubles, words);
        doubles->uniforms[0] = unit_double(words[0], words[1]);
        doubles->uniforms[1] = unit_double(words[2], words[3]);
        doubles->uniforms_left = 2;
    }
    return doubles->uniforms[--doubles->uniforms_left];
}

static double next_normal(Doubles *doubles) {
    if (doubles->normals_left == 0) {
        uint32_t words[4];
        next_block(doubles, words);
        box_muller_double(words, &doubles->normals[0], &doubles->normals[1]);
        doubles->normals_left = 2;
    }
    return doubles->normals[--doubles->normals_left];
}

static double gamma_number(Stream stream, double alpha) {
    Doubles doubles = doubles_from(stream);
    if (alpha == 1.0) return -log1p(-next_uniform(&doubles));
    int boosted = alpha < 1.0;
    double d = alpha + (boosted ? 2.0 / 3 : -1.0 / 3);
    if (!(d > 0.0)) return NAN;
    if (isinf(d)) return d;
    double c = 1.0 / 3 / sqrt(d);
    for (;;) {
        double x = next_normal(&doubles);
        double v = 1.0 + c * x;
        if (v <= 0.0) continue;
        v = v * v * v;
        double u = next_uniform(&doubles);
        if (u < 1.0 - 0.0331 * (x * x) * (x * x) || log(u) < 0.5 * x * x + d * (1.0 - v + log(v))) {
            double result = d * v;
            if (boosted) result *= pow(next_uniform(&doubles), 1.0 / alpha);
            return result;
        }
    }
}

/* lgamma writes the sign to a global variable, which is not thread-safe, so lgamma_r is used where available. */
static inline double log_factorial(double k) {
#if defined(__GLIBC__)
    int sign;
    extern double lgamma_r(double, int *);
    return lgamma_r(k + 1.0, &sign);
#else
    return lgamma(k + 1.0);
#endif
}

static double poisson_number(Stream stream, double rate) {
    Doubles doubles = doubles_from(stream);
    if (!(rate > 0.0) || isinf(rate)) return rate <= 0.0 ? 0.0 : rate;
    if (rate < 10.0) {
        double limit = exp(-rate), product = 1.0, events = 0.0;
        for (;;) {
            product = product * next_uniform(&doubles);
            if (product <= limit) return events;
            events += 1.0;
        }
    }
    double log_rate = log(rate);
    double b = 0.931 + 2.53 * sqrt(rate);
    double a = -0.059 + 0.02483 * b;
    double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
    double easy = 0.9277 - 3.6224 / (b - 2.0);
    for (;;) {
        double u = next_uniform(&doubles) - 0.5;
        double v = next_uniform(&doubles);
        double us = 0.5 - fabs(u);
        if (us == 0.0) continue;
        double k = floor((2.0 * a / us + b) * u + rate + 0.43);
        if (us >= 0.07 && v <= easy) return k;
        if (k < 0.0 || (us < 0.013 && v > us)) continue;
        if (log(v * inverse_alpha / (a / (us * us) + b)) <= -rate + k * log_rate - log_factorial(k)) return k;
    }
}

static double stirling_tail(double k) {
    static const double SMALL[10] = {
        0.0810614667953272,  0.0413406959554092,  0.0276779256849983,  0.02079067210376509, 0.0166446911898211,
        0.0138761288230707,  0.0118967099458917,  0.0104112652619720,  0.00925546218271273, 0.00833056343336287,
    };
    if (k <= 9.0) return SMALL[(int)k];
    double square = (k + 1.0) * (k + 1.0);
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1.0);
}

static double binomial_small(Doubles *doubles, double count, double p) {
    double scale = log1p(-p), trials = 0.0, successes = 0.0;
    for (;;) {
        trials += ceil(log(next_uniform(doubles)) / scale);
        if (trials > count) return successes;
        successes += 1.0;
    }
}

static double binomial_large(Doubles *doubles, double count, double p) {
    double deviation = sqrt(count * p * (1.0 - p));
    double b = 1.15 + 2.53 * deviation;
    double a = -0.0873 + 0.0248 * b + 0.01 * p;
    double c = count * p + 0.5;
    double easy = 0.92 - 4.2 / b;
    double odds = p / (1.0 - p);
    double alpha = (2.83 + 5.1 / b) * deviation;
    double m = floor((count + 1.0) * p);
    for (;;) {
        double u = next_uniform(doubles) - 0.5;
        double v = next_uniform(doubles);
        double us = 0.5 - fabs(u);
        if (us == 0.0) continue;
        double k = floor((2.0 * a / us + b) * u + c);
        if (us >= 0.07 && v <= easy) return k;
        if (k < 0.0 || k > count) continue;
        v = log(v * alpha / (a / (us * us) + b));
        double bound = (m + 0.5) * log((m + 1.0) / (odds * (count - m + 1.0))) +
                       (count + 1.0) * log((count - m + 1.0) / (count - k + 1.0)) +
                       (k + 0.5) * log(odds * (count - k + 1.0) / (k + 1.0)) + stirling_tail(m) +
                       stirling_tail(count - m) - stirling_tail(k) - stirling_tail(count - k);
        if (v <= bound) return k;
    }
}

/* `mean` is count * min(p, 1 - p), rounded to the parameters' type. Outputs with a small mean are 42 blocks apart, others 256. */
static double binomial_number(Stream stream, uint64_t index, double count, double p, double mean) {
    if (isnan(count) || isnan(p)) return NAN;
    if (!(count > 0.0) || p <= 0.0) return 0.0;
    if (p >= 1.0 || isinf(count)) return count;
    int flipped = p > 0.5;
    double q = flipped ? 1.0 - p : p;
    double result;
    if (mean < 10.0) {
        Doubles doubles = doubles_from(stream_at(stream, index * 42));
        result = binomial_small(&doubles, count, q);
    } else {
        Doubles doubles = doubles_from(stream_at(stream, index * 256));
        result = binomial_large(&doubles, count, q);
    }
    return flipped ? count - result : result;
}

#endif
