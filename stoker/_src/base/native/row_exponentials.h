/* The largest element of a row, and the exponentials of a row. Whoever includes this has defined `real`, its `exp_of`, and INLINE. */
#ifndef STOKER_ROW_EXPONENTIALS_H
#define STOKER_ROW_EXPONENTIALS_H

#include <stdint.h>

/* Takes the next numbers LANES at a time. NaNs are kept apart, so that each lane waits for one comparison only. */
#define LARGEST_BY(LANES)                                              \
    if (count - j >= LANES) {                                          \
        real most[LANES], odd[LANES];                                  \
        for (int q = 0; q < LANES; q++) most[q] = odd[q] = a[j + q];   \
        for (j += LANES; j + LANES <= count; j += LANES)               \
            for (int q = 0; q < LANES; q++) {                          \
                real x = a[j + q];                                     \
                most[q] = x > most[q] ? x : most[q];                   \
                odd[q] = x != x ? x : odd[q];                          \
            }                                                          \
        for (int q = 0; q < LANES; q++) {                              \
            real x = odd[q] != odd[q] ? odd[q] : most[q];              \
            largest = x > largest || x != x ? x : largest;             \
        }                                                              \
    }

/* The largest of at least one number; a NaN where there is one. */
INLINE real largest_of(const real *a, int64_t count) {
    real largest = a[0];
    int64_t j = 0;
    LARGEST_BY(64)
    LARGEST_BY(16)
    for (; j < count; j++) largest = a[j] > largest || a[j] != a[j] ? a[j] : largest;
    return largest;
}

#undef LARGEST_BY

/* out = exp(a - shift), and their sum. */
INLINE real exponentials(real *restrict out, const real *a, real shift, int64_t count) {
    real lanes[16] = {0}, total = 0;
    int64_t whole = count / 16 * 16;
    for (int64_t j = 0; j < count; j++) out[j] = exp_of(a[j] - shift);
    for (int64_t j = 0; j < whole; j += 16)
        for (int q = 0; q < 16; q++) lanes[q] += out[j + q];
    for (int64_t j = whole; j < count; j++) total += out[j];
    for (int q = 0; q < 16; q++) total += lanes[q];
    return total;
}

enum { FEW = 16, SHORT = 256, ROWS_AT_ONCE = 64 }; /* numbers of a row that are too few for vectors of their own, and too few for loops of their own */

/* How many rows of `count` numbers share a loop over their exponentials. */
INLINE int64_t rows_at_once(int64_t count) { return count < 32 ? ROWS_AT_ONCE : count < 2048 ? 2048 / count : 1; }

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wpsabi" /* of inlined functions only */
enum { WIDTH = 32 / sizeof(real) };
typedef real several __attribute__((vector_size(32)));
typedef __typeof__((several){0} > (several){0}) places;

INLINE several several_at(const real *a) {
    several x;
    memcpy(&x, a, sizeof x);
    return x;
}

INLINE several chosen(places mask, several x, several y) { return (several)(((places)x & mask) | ((places)y & ~mask)); }

INLINE places counted(void) {
    places order;
    for (int q = 0; q < WIDTH; q++) order[q] = q;
    return order;
}

/* `largest_of` at least WIDTH numbers. The last ones may be looked at twice. */
INLINE real largest_of_row(const real *a, int64_t count) {
    const places order = counted();
    several most = several_at(a), odd = most;
    for (int64_t j = WIDTH; j < count; j += WIDTH) {
        several x = several_at(a + (j + WIDTH <= count ? j : count - WIDTH));
        most = chosen(x > most, x, most);
        odd = chosen(x != x, x, odd);
    }
    most = chosen(odd != odd, odd, most);
    for (int half = WIDTH / 2; half; half /= 2) {
        several x = __builtin_shuffle(most, order ^ half);
        most = chosen((x > most) | (x != x), x, most);
    }
    return most[0];
}

INLINE real sum_of_row(const real *a, int64_t count) {
    const places order = counted();
    several total = several_at(a);
    int64_t j = WIDTH;
    for (; j + WIDTH <= count; j += WIDTH) total += several_at(a + j);
    if (j < count) total += (several)((places)several_at(a + count - WIDTH) & (order >= (int)(WIDTH - (count - j))));
    for (int half = WIDTH / 2; half; half /= 2) total += __builtin_shuffle(total, order ^ half);
    return total[0];
}
#else
enum { WIDTH = SHORT };
INLINE real largest_of_row(const real *a, int64_t count) { return largest_of(a, count); }
INLINE real sum_of_row(const real *a, int64_t count) { return count ? a[0] : 0; }
#endif

/* For at most ROWS_AT_ONCE rows of fewer than SHORT numbers: `largest_of` each row, out = exp(a - largest), and their sums, as `exponentials` has them. */
INLINE void exponentials_of_few(real *restrict out, real *restrict largest, real *restrict totals, const real *a, int64_t rows, int64_t count) {
    for (int64_t i = 0; i < rows; i++) {
        const real *row = a + i * count;
        real most = row[0];
        if (count >= WIDTH)
            most = largest_of_row(row, count);
        else
            for (int64_t j = 1; j < count; j++) most = row[j] > most || row[j] != row[j] ? row[j] : most;
        largest[i] = most;
        for (int64_t j = 0; j < count; j++) out[i * count + j] = row[j] - most;
    }
    for (int64_t k = 0; k < rows * count; k++) out[k] = exp_of(out[k]);
    for (int64_t i = 0; i < rows; i++) {
        real total = 0;
        if (count >= WIDTH)
            total = sum_of_row(out + i * count, count);
        else
            for (int64_t j = 0; j < count; j++) total += out[i * count + j];
        totals[i] = total;
    }
}

#endif
