/* Small ops on rows: lookups, distinct numbers, partitions, segments and sparse coordinates. An index is read once, where it is checked. */
#ifndef STOKER_SMALL_ROWS_H
#define STOKER_SMALL_ROWS_H

#include "../../ops/native/segment_rows.h"
#include "small_numbers.h"

static void copy_row(char *to, const char *from, int64_t bytes) {
    if (bytes == 4)
        memcpy(to, from, 4);
    else if (bytes == 8)
        memcpy(to, from, 8);
    else
        memcpy(to, from, (size_t)bytes);
}

static int op_gather(Call *c, const Entry *e) {
    Value *table = input(c, e, 0, 0), *at = input(c, e, 1, 0), *out;
    int64_t axis, dims[MOST_RANK], outer = 1, inner = 1;
    if (table == NULL || at == NULL || numbers_of(c, e, 2, &axis, 1) != 1) return refused();
    int along = axis_in(axis, table->rank);
    if (!of_integers(at) || along < 0 || table->rank - 1 + at->rank > MOST_RANK) return REFUSED;
    int rank = 0;
    for (int i = 0; i < along; i++) outer *= dims[rank++] = table->dims[i];
    for (int i = 0; i < at->rank; i++) dims[rank++] = at->dims[i];
    for (int i = along + 1; i < table->rank; i++) inner *= dims[rank++] = table->dims[i];
    if ((out = make(c, e, 0, rank, dims)) == NULL) return refused();
    int64_t size = table->dims[along], bytes = inner * kind_bytes[table->kind], fine = 1;
    PyThreadState *saved = let_others(out->count);
    char *to = out->data;
    for (int64_t o = 0; o < outer && fine; o++) {
        const char *rows = table->data + o * size * bytes;
        for (int64_t i = 0; i < at->count; i++, to += bytes) {
            int64_t row = integer_at(at, i);
            if (row < 0 || row >= size) {
                fine = 0;
                break;
            }
            copy_row(to, rows + row * bytes, bytes);
        }
    }
    back(saved);
    return fine ? DONE : REFUSED;
}

/* The place that coordinates lead to within sizes, or -1. */
static int64_t place_in(const Value *coordinates, int64_t row, int depth, const int64_t *sizes) {
    int64_t place = 0;
    for (int d = 0; d < depth; d++) {
        int64_t at = integer_at(coordinates, row * depth + d);
        if (at < 0 || at >= sizes[d]) return -1;
        place = place * sizes[d] + at;
    }
    return place;
}

static int op_gather_nd(Call *c, const Entry *e) {
    Value *table = input(c, e, 0, 0), *at = input(c, e, 1, 0), *out;
    if (table == NULL || at == NULL) return refused();
    if (!of_integers(at) || at->rank == 0 || at->dims[at->rank - 1] > table->rank) return REFUSED;
    int depth = (int)at->dims[at->rank - 1], rank = 0;
    int64_t dims[MOST_RANK], count = 1, bytes = kind_bytes[table->kind];
    if (at->rank - 1 + table->rank - depth > MOST_RANK) return REFUSED;
    for (int i = 0; i < at->rank - 1; i++) count *= dims[rank++] = at->dims[i];
    for (int i = depth; i < table->rank; i++) bytes *= dims[rank++] = table->dims[i];
    if ((out = make(c, e, 0, rank, dims)) == NULL) return refused();
    for (int64_t i = 0; i < count; i++) {
        int64_t place = place_in(at, i, depth, table->dims);
        if (place < 0) return REFUSED;
        copy_row(out->data + i * bytes, table->data + place * bytes, bytes);
    }
    return DONE;
}

static void add_row(int kind, char *to, const char *from, int64_t count) {
    static const Pairs loops[] = {OF_NUMBERS(add)};
    loops[kind](to, to, 1, from, 1, count);
}

static int op_scatter_nd(Call *c, const Entry *e) {
    Value *at = input(c, e, 0, 0), *rows = input(c, e, 1, 0), *out;
    int64_t dims[MOST_RANK], count = 1, width = 1;
    int rank = at == NULL || rows == NULL ? -1 : numbers_of(c, e, 2, dims, MOST_RANK);
    if (rank < 0) return refused();
    if (!of_integers(at) || at->rank == 0 || at->dims[at->rank - 1] > rank || rows->kind == BOOL) return REFUSED;
    int depth = (int)at->dims[at->rank - 1];
    if (rows->rank != at->rank - 1 + rank - depth) return REFUSED;
    for (int i = 0; i < rows->rank; i++) {
        if (rows->dims[i] != (i < at->rank - 1 ? at->dims[i] : dims[i - (at->rank - 1) + depth])) return REFUSED;
        *(i < at->rank - 1 ? &count : &width) *= rows->dims[i];
    }
    if ((out = make(c, e, 0, rank, dims)) == NULL) return refused();
    int64_t bytes = width * kind_bytes[out->kind];
    memset(out->data, 0, (size_t)(out->count * kind_bytes[out->kind]));
    for (int64_t i = 0; i < count; i++) {
        int64_t place = place_in(at, i, depth, dims);
        if (place < 0) return REFUSED;
        add_row(out->kind, out->data + place * bytes, rows->data + i * bytes, width);
    }
    return DONE;
}

/* ---- distinct numbers, parts ---- */

/* The distinct elements in order of appearance, the place of each element among them, and perhaps how often each occurs. */
static int op_unique(Call *c, const Entry *e) {
    Value *x = input(c, e, 0, 0), *found, *places, *counts = NULL;
    if (x == NULL) return refused();
    if (!of_integers(x) || x->rank != 1) return REFUSED;
    if ((places = make(c, e, 1, 1, x->dims)) == NULL) return refused();
    int64_t room = 16, total = 0;
    int shift = 60; /* the upper bits of the product depend on all bits of a number */
    for (; room < x->count * 2; room *= 2) shift--;
    int64_t *distinct_numbers = (int64_t *)room_for(c, x->count * 8), *often = (int64_t *)room_for(c, x->count * 8);
    int32_t *slots = (int32_t *)room_for(c, room * 4);
    if (distinct_numbers == NULL || often == NULL || slots == NULL) return FAILED;
    memset(slots, 0xff, (size_t)room * sizeof *slots);
    PyThreadState *saved = let_others(x->count);
    for (int64_t i = 0; i < x->count; i++) {
        int64_t number = integer_at(x, i);
        uint64_t at = (uint64_t)number * 0x9E3779B97F4A7C15u >> shift;
        while (slots[at] >= 0 && distinct_numbers[slots[at]] != number) at = (at + 1) & (uint64_t)(room - 1);
        if (slots[at] < 0) {
            slots[at] = (int32_t)total;
            often[total] = 0;
            distinct_numbers[total++] = number;
        }
        often[slots[at]]++;
        put_integer(places, i, slots[at]);
    }
    back(saved);
    if ((found = make(c, e, 0, 1, &total)) == NULL) return refused();
    for (int64_t i = 0; i < total; i++) put_integer(found, i, distinct_numbers[i]);
    if (e->outputs < 3) return DONE;
    if ((counts = make(c, e, 2, 1, &total)) == NULL) return refused();
    for (int64_t i = 0; i < total; i++) put_integer(counts, i, often[i]);
    return DONE;
}

static int begins_with(const Value *x, const Value *prefix) {
    return x->rank >= prefix->rank && !memcmp(x->dims, prefix->dims, (size_t)prefix->rank * sizeof *x->dims);
}

static int op_partition(Call *c, const Entry *e) {
    Value *rows = input(c, e, 0, 0), *at = input(c, e, 1, 0);
    if (rows == NULL || at == NULL) return refused();
    if (at->kind != I32 || !begins_with(rows, at)) return REFUSED;
    int64_t parts = e->outputs, dims[MOST_RANK], bytes = kind_bytes[rows->kind];
    int rank = rows->rank - at->rank + 1;
    if (rank > MOST_RANK) return REFUSED;
    for (int i = at->rank; i < rows->rank; i++) bytes *= dims[i - at->rank + 1] = rows->dims[i];
    int64_t *counts = (int64_t *)room_for(c, parts * 8);
    int32_t *given = (int32_t *)room_for(c, at->count * 4);
    char **to = (char **)room_for(c, parts * (int64_t)sizeof *to);
    if (counts == NULL || given == NULL || to == NULL) return FAILED;
    memset(counts, 0, (size_t)parts * sizeof *counts);
    for (int64_t i = 0; i < at->count; i++) {
        given[i] = ((const int32_t *)at->data)[i];
        if (given[i] < 0 || given[i] >= parts) return REFUSED;
        counts[given[i]]++;
    }
    for (int64_t k = 0; k < parts; k++) {
        dims[0] = counts[k];
        Value *out = make(c, e, (int)k, rank, dims);
        if (out == NULL) return refused();
        to[k] = out->data;
    }
    for (int64_t i = 0; i < at->count; i++, to[given[i - 1]] += bytes) copy_row(to[given[i]], rows->data + i * bytes, bytes);
    return DONE;
}

static int op_stitch(Call *c, const Entry *e) {
    int64_t many = inputs_of(e, 0), size = 0, dims[MOST_RANK], bytes = 0;
    int rank = 0;
    for (int64_t k = 0; k < many; k++) {
        Value *at = input(c, e, 0, k), *rows = input(c, e, 1, k);
        if (at == NULL || rows == NULL) return refused();
        if (at->kind != I32 || !begins_with(rows, at) || rows->rank - at->rank + 1 > MOST_RANK) return REFUSED;
        if (k == 0) {
            rank = rows->rank - at->rank + 1;
            bytes = kind_bytes[rows->kind];
            for (int i = 1; i < rank; i++) bytes *= dims[i] = rows->dims[at->rank + i - 1];
        } else if (rows->rank - at->rank + 1 != rank || memcmp(dims + 1, rows->dims + at->rank, (size_t)(rank - 1) * sizeof *dims))
            return REFUSED;
        for (int64_t i = 0; i < at->count; i++) {
            int64_t place = ((const int32_t *)at->data)[i];
            if (place < 0) return REFUSED;
            size = place + 1 > size ? place + 1 : size;
        }
    }
    if (size > MOST_BYTES) return REFUSED;
    dims[0] = size;
    Value *out = make(c, e, 0, rank, dims);
    if (out == NULL) return refused();
    memset(out->data, 0, (size_t)(out->count * kind_bytes[out->kind]));
    for (int64_t k = 0; k < many; k++) {
        Value *at = input(c, e, 0, k), *rows = input(c, e, 1, k);
        for (int64_t i = 0; i < at->count; i++) {
            int64_t place = ((const int32_t *)at->data)[i];
            if (place < 0 || place >= size) return REFUSED; /* a fed array has changed */
            copy_row(out->data + place * bytes, rows->data + i * bytes, bytes);
        }
    }
    return DONE;
}

/* ---- segments ---- */

static int64_t width_of(const Value *x) {
    int64_t width = 1;
    for (int i = 1; i < x->rank; i++) width *= x->dims[i];
    return width;
}

/* A vector of integers as int32, all in [0, size); NULL if one is not, or with an exception set. */
static int32_t *narrowed(Call *c, const Value *x, int64_t size) {
    if (x->rank != 1 || !of_integers(x) || size < 0) return NULL;
    int32_t *to = (int32_t *)room_for(c, x->count * 4);
    numbers from = {x->data, x->kind == I64, 1};
    return to != NULL && narrow(to, &from, x->count, size) ? to : NULL;
}

/* Rows of a table combined by segment. The number says how; the number of segments may be given. */
static int op_sparse_segments(Call *c, const Entry *e) {
    Value *table = input(c, e, 0, 0), *at = input(c, e, 1, 0), *ids = input(c, e, 2, 0), *out;
    if (table == NULL || at == NULL || ids == NULL) return refused();
    if (table->rank == 0 || table->kind > F64 || at->rank != 1 || ids->rank != 1 || at->count != ids->count || !of_integers(ids)) return REFUSED;
    int64_t count = at->count, segments = count ? integer_at(ids, count - 1) + 1 : 0, width = width_of(table);
    if (e->arguments > 3 && numbers_of(c, e, 3, &segments, 1) != 1) return refused();
    int32_t *rows = narrowed(c, at, table->dims[0]), *places = rows == NULL ? NULL : narrowed(c, ids, segments);
    if (places == NULL || count * width > MOST_WORK) return refused();
    if (!ascending(places, count)) return REFUSED;
    int64_t dims[MOST_RANK];
    memcpy(dims, table->dims, sizeof dims);
    dims[0] = segments;
    if ((out = make(c, e, 0, table->rank, dims)) == NULL) return refused();
    PyThreadState *saved = let_others(count * width);
    if (out->kind == F64)
        combine_doubles((double *)out->data, (const double *)table->data, rows, places, count, width, 0, segments, (int)e->number[0]);
    else
        combine_floats((float *)out->data, (const float *)table->data, rows, places, count, width, 0, segments, (int)e->number[0]);
    back(saved);
    return DONE;
}

/* The gradient of `op_sparse_segments`: of a whole table, or with two outputs only the rows that can be nonzero and their indices. */
static int op_sparse_segments_grad(Call *c, const Entry *e) {
    Value *grad = input(c, e, 0, 0), *at = input(c, e, 1, 0), *ids = input(c, e, 2, 0), *out, *found;
    int64_t size, dims[MOST_RANK];
    if (grad == NULL || at == NULL || ids == NULL || numbers_of(c, e, 3, &size, 1) != 1) return refused();
    if (grad->rank == 0 || grad->kind > F64 || at->rank != 1 || ids->rank != 1 || at->count != ids->count || size <= 0 || !of_integers(at)) return REFUSED;
    int64_t count = at->count, width = width_of(grad), total = 0;
    if (count * width > MOST_WORK) return REFUSED;
    int32_t *rows = (int32_t *)room_for(c, count * 4), *places = (int32_t *)room_for(c, count * 4);
    if (rows == NULL || places == NULL) return FAILED;
    int32_t *segment = narrowed(c, ids, grad->dims[0]), *given = segment == NULL ? NULL : narrowed(c, at, size);
    if (given == NULL) return refused();
    double *factors = NULL;
    int how = (int)e->number[0];
    if (how != SUM) {
        if ((factors = (double *)room_for(c, grad->dims[0] * 8)) == NULL) return FAILED;
        memset(factors, 0, (size_t)grad->dims[0] * sizeof *factors);
        for (int64_t i = 0; i < count; i++) factors[segment[i]] += 1;
        for (int64_t s = 0; s < grad->dims[0]; s++) factors[s] = factor(how, (int64_t)factors[s]);
    }
    memcpy(dims, grad->dims, sizeof dims);
    if (e->outputs == 2) {
        total = distinct(given, count, size, rows, places);
        if (total < 0) return REFUSED;
        if ((found = make(c, e, 1, 1, &total)) == NULL) return refused();
        for (int64_t i = 0; i < total; i++) put_integer(found, i, rows[i]);
        dims[0] = total;
    } else {
        places = given;
        dims[0] = size;
    }
    if ((out = make(c, e, 0, grad->rank, dims)) == NULL) return refused();
    PyThreadState *saved = let_others(count * width);
    memset(out->data, 0, (size_t)(out->count * kind_bytes[out->kind]));
    if (out->kind == F64)
        spread_doubles((double *)out->data, (const double *)grad->data, places, segment, factors, count, width, 0, 1);
    else
        spread_floats((float *)out->data, (const float *)grad->data, places, segment, factors, count, width, 0, 1);
    back(saved);
    return DONE;
}

/* Sums of rows by segment. The number says whether the ids ascend; otherwise the number of segments is given, and negative ids have none. */
static int op_segment_sum(Call *c, const Entry *e) {
    Value *rows = input(c, e, 0, 0), *ids = input(c, e, 1, 0), *out;
    if (rows == NULL || ids == NULL) return refused();
    if (!of_integers(ids) || rows->kind == BOOL || !begins_with(rows, ids) || (e->number[0] && ids->rank != 1) || rows->rank == 0) return REFUSED;
    int64_t segments = ids->count ? integer_at(ids, ids->count - 1) + 1 : 0, dims[MOST_RANK], width = 1, last = 0;
    if (!e->number[0] && numbers_of(c, e, 2, &segments, 1) != 1) return refused();
    int rank = rows->rank - ids->rank + 1;
    if (rank > MOST_RANK || rows->count > MOST_WORK) return REFUSED;
    dims[0] = segments;
    for (int i = 1; i < rank; i++) width *= dims[i] = rows->dims[ids->rank + i - 1];
    if ((out = make(c, e, 0, rank, dims)) == NULL) return refused();
    int64_t bytes = width * kind_bytes[rows->kind];
    memset(out->data, 0, (size_t)(out->count * kind_bytes[out->kind]));
    for (int64_t i = 0; i < ids->count; i++) {
        int64_t id = integer_at(ids, i);
        if (id >= segments || (e->number[0] && id < last)) return REFUSED;
        if (id < 0) continue;
        add_row(out->kind, out->data + id * bytes, rows->data + i * bytes, width);
        last = id;
    }
    return DONE;
}

/* Means of rows by ascending segment. */
static int op_segment_mean(Call *c, const Entry *e) {
    static const int64_t one = 1;
    Entry sum = *e;
    sum.number = &one;
    Value *rows = input(c, e, 0, 0), *ids = input(c, e, 1, 0);
    if (rows == NULL || ids == NULL || rows->kind != F32) return refused();
    int done = op_segment_sum(c, &sum);
    if (done != DONE) return done;
    Value *out = &c->values[e->output[0]];
    int64_t width = out->dims[0] ? out->count / out->dims[0] : 0, at = 0;
    for (int64_t s = 0; s < out->dims[0]; s++) {
        int64_t first = at;
        while (at < ids->count && integer_at(ids, at) == s) at++;
        float count = (float)(at - first > 1 ? at - first : 1), *row = (float *)out->data + s * width;
        for (int64_t j = 0; j < width; j++) row[j] /= count;
    }
    return DONE;
}

/* The largest of the rows by segment. The numbers say whether the ids ascend, and the bits of what an empty segment has, as a float. */
static int op_segment_max(Call *c, const Entry *e) {
    Value *rows = input(c, e, 0, 0), *ids = input(c, e, 1, 0), *out;
    if (rows == NULL || ids == NULL) return refused();
    if (!of_integers(ids) || rows->kind != F32 || ids->rank != 1 || rows->rank == 0 || rows->dims[0] != ids->count || rows->count > MOST_WORK)
        return REFUSED;
    int64_t segments = ids->count ? integer_at(ids, ids->count - 1) + 1 : 0, dims[MOST_RANK], width = width_of(rows), last = 0;
    if (!e->number[0] && numbers_of(c, e, 2, &segments, 1) != 1) return refused();
    memcpy(dims, rows->dims, sizeof dims);
    dims[0] = segments;
    if ((out = make(c, e, 0, rows->rank, dims)) == NULL) return refused();
    char *seen = room_for(c, segments);
    if (seen == NULL) return FAILED;
    memset(seen, 0, (size_t)segments);
    int32_t bits = (int32_t)e->number[1];
    copy_steps(out->data, (const char *)&bits, 4, 1, &out->count, (int64_t[]){1}, (int64_t[]){0});
    for (int64_t i = 0; i < ids->count; i++) {
        int64_t id = integer_at(ids, i);
        if (id >= segments || (e->number[0] && id < last)) return REFUSED;
        if (id < 0) continue;
        char *to = out->data + id * width * 4, *from = rows->data + i * width * 4;
        if (seen[id] || !e->number[0])
            max_f32(to, to, 1, from, 1, width);
        else
            memcpy(to, from, (size_t)width * 4);
        seen[id] = 1;
        last = id;
    }
    return DONE;
}

/* ---- sparse tensors ---- */

static int op_fill_empty_rows(Call *c, const Entry *e) {
    Value *at = input(c, e, 0, 0), *values = input(c, e, 1, 0), *shape = input(c, e, 2, 0), *usual = input(c, e, 3, 0);
    if (at == NULL || values == NULL || shape == NULL || usual == NULL) return refused();
    if (at->kind != I64 || at->rank != 2 || values->rank != 1 || values->count != at->dims[0] || shape->kind != I64 || shape->rank != 1) return REFUSED;
    int64_t count = at->dims[0], depth = at->dims[1], size = kind_bytes[values->kind];
    if (depth == 0 || shape->count != depth || usual->rank || usual->kind != values->kind) return REFUSED;
    int64_t rows = integer_at(shape, 0), empty = 0, next = 0;
    if (rows < 0 || rows > MOST_BYTES / 8) return REFUSED;
    const int64_t *from = (const int64_t *)at->data;
    int64_t *places = (int64_t *)room_for(c, rows * 8), *given = (int64_t *)room_for(c, count * 8);
    if (places == NULL || given == NULL) return FAILED;
    memset(places, 0, (size_t)rows * sizeof *places);
    for (int64_t i = 0; i < count; i++) {
        given[i] = from[i * depth];
        if (given[i] < 0 || given[i] >= rows) return REFUSED;
        places[given[i]]++;
    }
    for (int64_t r = 0; r < rows; r++) empty += places[r] == 0;
    Value *filled = make(c, e, 0, 2, (int64_t[]){count + empty, depth}), *all = filled ? make(c, e, 1, 1, (int64_t[]){count + empty}) : NULL;
    Value *is_empty = all ? make(c, e, 2, 1, &rows) : NULL, *reverse = is_empty ? make(c, e, 3, 1, &count) : NULL;
    if (reverse == NULL) return refused();
    int64_t *to = (int64_t *)filled->data, *moved = (int64_t *)reverse->data;
    for (int64_t r = 0; r < rows; r++) {
        int64_t here = places[r];
        places[r] = next;
        is_empty->data[r] = here == 0;
        if (here == 0) {
            memset(to + next * depth, 0, (size_t)depth * sizeof *to);
            to[next * depth] = r;
            memcpy(all->data + next * size, usual->data, (size_t)size);
            next++;
        } else
            next += here;
    }
    for (int64_t i = 0; i < count; i++) {
        int64_t place = places[given[i]]++;
        memcpy(to + place * depth, from + i * depth, (size_t)depth * sizeof *to);
        to[place * depth] = given[i];
        memcpy(all->data + place * size, values->data + i * size, (size_t)size);
        moved[i] = place;
    }
    return DONE;
}

static int op_sparse_reshape(Call *c, const Entry *e) {
    Value *at = input(c, e, 0, 0), *out, *shape;
    int64_t sizes[MOST_RANK], wanted[MOST_RANK], known = 1;
    int depth = at == NULL ? -1 : numbers_of(c, e, 1, sizes, MOST_RANK), rank = depth < 0 ? -1 : numbers_of(c, e, 2, wanted, MOST_RANK), open = -1;
    if (rank < 0) return refused();
    int64_t total = product(sizes, depth);
    if (at->kind != I64 || at->rank != 2 || at->dims[1] != depth || total < 0) return REFUSED;
    for (int i = 0; i < rank; i++) {
        if (wanted[i] == -1 && open < 0)
            open = i;
        else if (wanted[i] < 0 || __builtin_mul_overflow(known, wanted[i], &known))
            return REFUSED;
    }
    if (open >= 0) {
        if (known == 0 || total % known) return REFUSED;
        wanted[open] = total / known;
    } else if (known != total)
        return REFUSED;
    if (total == 0 && at->count) return REFUSED;
    if ((out = make(c, e, 0, 2, (int64_t[]){at->dims[0], rank})) == NULL) return refused();
    if ((shape = make(c, e, 1, 1, (int64_t[]){rank})) == NULL) return refused();
    for (int i = 0; i < rank; i++) put_integer(shape, i, wanted[i]);
    for (int64_t row = 0; row < at->dims[0]; row++) {
        int64_t place = place_in(at, row, depth, sizes), *to = (int64_t *)out->data + row * rank;
        if (place < 0) return REFUSED;
        for (int d = rank - 1; d >= 0; d--) {
            to[d] = place % wanted[d];
            place /= wanted[d];
        }
    }
    return DONE;
}

/* The number says whether the coordinates must ascend. */
static int op_sparse_to_dense(Call *c, const Entry *e) {
    Value *at = input(c, e, 0, 0), *values = input(c, e, 2, 0), *usual = input(c, e, 3, 0), *out;
    int64_t dims[MOST_RANK], before = -1;
    int rank = at == NULL || values == NULL || usual == NULL ? -1 : numbers_of(c, e, 1, dims, MOST_RANK);
    if (rank < 0) return refused();
    int64_t count = at->rank == 0 ? 1 : at->dims[0], depth = at->rank == 2 ? at->dims[1] : 1;
    if (!of_integers(at) || at->rank > 2 || depth != rank || usual->rank || values->kind != usual->kind) return REFUSED;
    if (values->rank > 1 || (values->rank == 1 && values->count != count)) return REFUSED;
    if ((out = make(c, e, 0, rank, dims)) == NULL) return refused();
    int64_t size = kind_bytes[out->kind];
    copy_steps(out->data, usual->data, size, 1, &out->count, (int64_t[]){1}, (int64_t[]){0});
    for (int64_t i = 0; i < count; i++) {
        int64_t place = place_in(at, i, rank, dims);
        if (place < 0 || (e->number[0] && place <= before)) return REFUSED;
        memcpy(out->data + place * size, values->data + (values->rank ? i * size : 0), (size_t)size);
        before = place;
    }
    return DONE;
}

#endif
