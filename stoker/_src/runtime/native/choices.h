/* Loops that choose elements by integers, or integers by elements: rows of tables, segments, places of the largest elements. */
#ifndef STOKER_CHOICES_H
#define STOKER_CHOICES_H


#include "loops.h"

/* The row of a table, which has `depth` dimensions of the given sizes before those of a row, at each of `count` indices of as many numbers. Returns 0 if
 * there is no such row. */
static int loop_gather(real *out, const real *table, const real *indices, int64_t count, int64_t width, int64_t depth, const int64_t *sizes) {
    const integer *index = (const integer *)indices;
    for (int64_t i = 0; i < count; i++, out += width) {
        int64_t row = 0;
        for (int64_t d = 0; d < depth; d++, index++) {
            if (*index < 0 || *index >= sizes[d]) return 0;
            row = row * sizes[d] + *index;
        }
        memcpy(out, table + row * width, (size_t)width * sizeof(real));
    }
    return 1;
}

enum { SEGMENT_SUM, SEGMENT_MAX, SEGMENT_MIN };

VECTORISED static void combine_row(real *restrict to, const real *from, int64_t width, int64_t kind) {
    if (kind == SEGMENT_SUM)
        for (int64_t j = 0; j < width; j++) to[j] += from[j];
    else if (kind == SEGMENT_MAX)
        for (int64_t j = 0; j < width; j++) to[j] = from[j] > to[j] || from[j] != from[j] ? from[j] : to[j];
    else
        for (int64_t j = 0; j < width; j++) to[j] = from[j] < to[j] || from[j] != from[j] ? from[j] : to[j];
}

/* Combines the rows of each segment; rows with negative ids are left out. Returns 0 if there is no such segment. */
static int loop_segments(real *out, const real *data, const real *ids, int64_t count, int64_t width, int64_t segments, int64_t kind) {
    const integer *id = (const integer *)ids;
    real start = kind == SEGMENT_SUM ? 0.0f : kind == SEGMENT_MAX ? -REAL_MAX : REAL_MAX;
    for (int64_t i = 0; i < segments * width; i++) out[i] = start;
    for (int64_t i = 0; i < count; i++, data += width) {
        if (id[i] >= segments) return 0;
        if (id[i] < 0) continue;
        real *to = out + id[i] * width;
        if (width >= 8)
            combine_row(to, data, width, kind);
        else if (kind == SEGMENT_SUM)
            for (int64_t j = 0; j < width; j++) to[j] += data[j];
        else
            for (int64_t j = 0; j < width; j++) {
                int better = kind == SEGMENT_MAX ? data[j] > to[j] : data[j] < to[j];
                to[j] = better || data[j] != data[j] ? data[j] : to[j];
            }
    }
    return 1;
}

/* The first place of the largest (or least) element over the middle of a[outer, middle, inner]. A NaN is chosen only if there is nothing else. */
static void loop_place(real *out, const real *a, int64_t outer, int64_t middle, int64_t inner, int least) {
    integer *place = (integer *)out;
    for (int64_t i = 0; i < outer; i++, a += middle * inner)
        for (int64_t j = 0; j < inner; j++, place++) {
            real best = -INFINITY;
            *place = 0;
            for (int64_t p = 0; p < middle; p++) {
                real x = least ? -a[p * inner + j] : a[p * inner + j];
                if (x > best) best = x, *place = (integer)p;
            }
        }
}

/* The k largest elements of each row and their places, in decreasing order; of equal elements the first comes first. Returns 0 if there is a NaN. */
static int loop_top(real *out, real *places, const real *a, int64_t rows, int64_t columns, int64_t k) {
    integer *place = (integer *)places;
    for (int64_t i = 0; i < rows; i++, a += columns, out += k, place += k) {
        int64_t found = 0;
        for (int64_t p = 0; p < columns; p++) {
            real x = a[p];
            if (x != x) return 0;
            if (found == k && !(x > out[k - 1])) continue;
            int64_t at = found < k ? found++ : k - 1;
            for (; at > 0 && x > out[at - 1]; at--) out[at] = out[at - 1], place[at] = place[at - 1];
            out[at] = x;
            place[at] = (integer)p;
        }
    }
    return 1;
}

#endif
