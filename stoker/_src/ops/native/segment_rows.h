/* Rows of segments: sums, means and scaled sums of gathered rows, and the distinct rows of their gradients. */
#ifndef STOKER_SEGMENT_ROWS_H
#define STOKER_SEGMENT_ROWS_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../base/native/vectorised.h"

enum { SUM, MEAN, SQRT_N };

/* Numbers as they are passed: int32 or int64 (`wide`), `step` apart. */
typedef struct {
    const void *at;
    int wide;
    int64_t step;
} numbers;

#define DEFINE_NARROW(NAME, TYPE)                                                                                      \
    VECTORISED static int NAME(int32_t *restrict to, const TYPE *restrict from, int64_t step, int64_t count, int64_t size) { \
        TYPE lowest = 0, highest = 0;                                                                                  \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            TYPE n = from[i * step];                                                                                   \
            lowest = n < lowest ? n : lowest;                                                                          \
            highest = n > highest ? n : highest;                                                                       \
            to[i] = (int32_t)n;                                                                                        \
        }                                                                                                              \
        return lowest >= 0 && (count == 0 || highest < size);                                                          \
    }

DEFINE_NARROW(narrow_wide, int64_t)
DEFINE_NARROW(narrow_plain, int32_t)

/* Copies numbers as int32. Returns whether all are in [0, size). */
static int narrow(int32_t *to, const numbers *from, int64_t count, int64_t size) {
    if (size > INT32_MAX) return 0;
    return from->wide ? narrow_wide(to, from->at, from->step, count, size) : narrow_plain(to, from->at, from->step, count, size);
}

VECTORISED static int ascending(const int32_t *numbers, int64_t count) {
    int falls = 0;
    for (int64_t i = 1; i < count; i++) falls |= numbers[i - 1] > numbers[i];
    return !falls;
}

/* The first position whose id is not below `id`. */
static int64_t lower_bound(const int32_t *ids, int64_t count, int64_t id) {
    int64_t low = 0, high = count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (ids[middle] < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static inline double factor(int how, int64_t count) {
    return how == SUM || count < 2 ? 1.0 : how == MEAN ? 1.0 / (double)count : 1.0 / sqrt((double)count);
}

#define DEFINE_COMBINE(NAME, TYPE)                                                                                      \
    VECTORISED static void NAME(TYPE *restrict out, const TYPE *restrict table, const int32_t *indices,              \
                                const int32_t *ids, int64_t count, int64_t width, int64_t first, int64_t last, int how) {                   \
        int64_t i = lower_bound(ids, count, first);                                                                     \
        for (int64_t id = first; id < last; id++) {                                                                     \
            TYPE *restrict to = out + id * width;                                                                       \
            int64_t begin = i;                                                                                          \
            if (width == 1) {                                                                                           \
                TYPE sum = 0;                                                                                           \
                for (; i < count && ids[i] == id; i++) sum += table[indices[i]];                      \
                *to = sum;                                                                                              \
            } else {                                                                                                    \
                memset(to, 0, (size_t)width * sizeof(TYPE));                                                            \
                for (; i < count && ids[i] == id; i++) {                                                       \
                    const TYPE *restrict row = table + indices[i] * width;                                     \
                    for (int64_t j = 0; j < width; j++) to[j] += row[j];                                                \
                }                                                                                                       \
            }                                                                                                           \
            if (how != SUM && i - begin > 1) {                                                                          \
                TYPE by = (TYPE)factor(how, i - begin);                                                                 \
                for (int64_t j = 0; j < width; j++) to[j] *= by;                                                        \
            }                                                                                                           \
        }                                                                                                               \
    }

DEFINE_COMBINE(combine_floats, float)
DEFINE_COMBINE(combine_doubles, double)

/* ---- gradients ---- */

/* Sorts `values` by radix, using `other` as scratch memory of the same size. Returns the array that holds the result. */
static int32_t *sorted(int32_t *values, int32_t *other, int64_t count, int32_t highest) {
    for (int shift = 0; shift < 32 && highest >> shift; shift += 11) {
        int64_t starts[1 << 11] = {0}, total = 0;
        for (int64_t i = 0; i < count; i++) starts[(values[i] >> shift) & 2047]++;
        for (int digit = 0; digit < 1 << 11; digit++) {
            int64_t many = starts[digit];
            starts[digit] = total;
            total += many;
        }
        for (int64_t i = 0; i < count; i++) other[starts[(values[i] >> shift) & 2047]++] = values[i];
        int32_t *swapped = values;
        values = other;
        other = swapped;
    }
    return values;
}

/* As `distinct`, with a bit for every possible number. */
VECTORISED static int64_t distinct_by_bits(const int32_t *numbers, int64_t count, int64_t words, int32_t *found, int32_t *places) {
    uint64_t *bits = calloc((size_t)words, sizeof *bits);
    int32_t *before = malloc((size_t)words * sizeof *before), total = 0; /* how many numbers are below those of a word */
    if (bits != NULL && before != NULL) {
        for (int64_t i = 0; i < count; i++) bits[numbers[i] >> 6] |= UINT64_C(1) << (numbers[i] & 63);
        for (int64_t w = 0; w < words; w++) {
            before[w] = total;
            for (uint64_t rest = bits[w]; rest; rest &= rest - 1) found[total++] = (int32_t)(w * 64 + __builtin_ctzll(rest));
        }
        for (int64_t i = 0; i < count; i++) {
            uint64_t lower = bits[numbers[i] >> 6] & ((UINT64_C(1) << (numbers[i] & 63)) - 1);
            places[i] = before[numbers[i] >> 6] + __builtin_popcountll(lower);
        }
    } else {
        total = -1;
    }
    free(bits);
    free(before);
    return total;
}

typedef struct {
    int32_t number, place; /* the number is -1 if the slot is empty */
} slot;

static inline slot *slot_of(slot *slots, uint64_t room, int32_t number) {
    uint64_t at = ((uint64_t)number * 0x9E3779B97F4A7C15u >> 20) & (room - 1);
    while (slots[at].number != number && slots[at].number >= 0) at = (at + 1) & (room - 1);
    return &slots[at];
}

/* As `distinct`, with a hash table. */
static int64_t distinct_by_hash(const int32_t *numbers, int64_t count, int32_t *found, int32_t *places) {
    uint64_t room = 16;
    while (room < (uint64_t)count * 2) room *= 2;
    slot *slots = malloc(room * sizeof *slots);
    int32_t *scratch = malloc((size_t)count * 2 * sizeof *scratch), highest = 0;
    int64_t total = slots == NULL || scratch == NULL ? -1 : 0;
    if (total == 0) {
        memset(slots, 0xff, room * sizeof *slots);
        for (int64_t i = 0; i < count; i++) {
            slot *at = slot_of(slots, room, numbers[i]);
            if (at->number >= 0) continue;
            at->number = scratch[total++] = numbers[i];
            highest = numbers[i] > highest ? numbers[i] : highest;
        }
        memcpy(found, sorted(scratch, scratch + count, total, highest), (size_t)total * sizeof *found);
        for (int64_t p = 0; p < total; p++) slot_of(slots, room, found[p])->place = (int32_t)p;
        for (int64_t i = 0; i < count; i++) places[i] = slot_of(slots, room, numbers[i])->place;
    }
    free(slots);
    free(scratch);
    return total;
}

/* Fills `found` with the distinct numbers in ascending order and `places` with the position of each number there. Returns how many
 * are distinct, or -1 if memory runs out. All numbers are in [0, size). */
static int64_t distinct(const int32_t *numbers, int64_t count, int64_t size, int32_t *found, int32_t *places) {
    int64_t words = size / 64 + 1;
    if (count == 0) return 0;
    if (words <= 4 * count + 1024) return distinct_by_bits(numbers, count, words, found, places);
    return distinct_by_hash(numbers, count, found, places);
}

#define DEFINE_SPREAD(NAME, TYPE)                                                                                      \
    VECTORISED static void NAME(TYPE *restrict out, const TYPE *restrict grad, const int32_t *places,                 \
                                const int32_t *ids, const double *factors, int64_t count, int64_t width, int part, int parts) { \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            if (parts > 1 && places[i] % parts != part) continue;                                                      \
            int64_t id = ids[i];                                                                              \
            TYPE *restrict to = out + places[i] * width;                                                               \
            const TYPE *restrict row = grad + id * width;                                                              \
            if (factors == NULL) {                                                                                     \
                for (int64_t j = 0; j < width; j++) to[j] += row[j];                                                   \
            } else {                                                                                                   \
                TYPE by = (TYPE)factors[id];                                                                           \
                for (int64_t j = 0; j < width; j++) to[j] += row[j] * by;                                              \
            }                                                                                                          \
        }                                                                                                              \
    }

DEFINE_SPREAD(spread_floats, float)
DEFINE_SPREAD(spread_doubles, double)

#endif
