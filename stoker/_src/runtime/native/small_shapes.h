/* Small ops that move elements: shapes, slices, joined and repeated tensors. */
#ifndef STOKER_SMALL_SHAPES_H
#define STOKER_SMALL_SHAPES_H

#include "small_values.h"

/* Copies elements of `size` bytes between places that are `to_steps` and `from_steps` elements apart in each dimension. */
static void copy_steps(char *to, const char *from, int64_t size, int rank, const int64_t *dims, const int64_t *to_steps,
                       const int64_t *from_steps) {
    if (rank == 0) {
        memcpy(to, from, (size_t)size);
        return;
    }
    if (rank > 1) {
        for (int64_t i = 0; i < dims[0]; i++)
            copy_steps(to + i * to_steps[0] * size, from + i * from_steps[0] * size, size, rank - 1, dims + 1, to_steps + 1, from_steps + 1);
        return;
    }
    int64_t count = dims[0], t = to_steps[0], f = from_steps[0];
    if (t == 1 && f == 1)
        memcpy(to, from, (size_t)(count * size));
    else if (size == 4)
        for (int64_t i = 0; i < count; i++) ((uint32_t *)to)[i * t] = ((const uint32_t *)from)[i * f];
    else if (size == 8)
        for (int64_t i = 0; i < count; i++) ((uint64_t *)to)[i * t] = ((const uint64_t *)from)[i * f];
    else
        for (int64_t i = 0; i < count; i++) to[i * t] = from[i * f];
}

static void put_integer(Value *v, int64_t i, int64_t number) {
    if (v->kind == I64)
        ((int64_t *)v->data)[i] = number;
    else
        ((int32_t *)v->data)[i] = (int32_t)number;
}

/* An axis of `rank` dimensions as a non-negative number, or -1. */
static int axis_in(int64_t axis, int rank) {
    if (axis < 0) axis += rank;
    return axis >= 0 && axis < rank ? (int)axis : -1;
}

static int op_shape(Call *c, const Entry *e) {
    Value *x = input(c, e, 0, 0), *out;
    if (x == NULL || (out = make(c, e, 0, 1, (int64_t[]){x->rank})) == NULL) return refused();
    for (int i = 0; i < x->rank; i++) put_integer(out, i, x->dims[i]);
    return DONE;
}

static int op_size(Call *c, const Entry *e) {
    Value *x = input(c, e, 0, 0), *out;
    if (x == NULL || (out = make(c, e, 0, 0, NULL)) == NULL) return refused();
    put_integer(out, 0, x->count);
    return DONE;
}

static int op_rank(Call *c, const Entry *e) {
    Value *x = input(c, e, 0, 0), *out;
    if (x == NULL || (out = make(c, e, 0, 0, NULL)) == NULL) return refused();
    put_integer(out, 0, x->rank);
    return DONE;
}

static int op_reshape(Call *c, const Entry *e) {
    Value *x = input(c, e, 0, 0);
    int64_t dims[MOST_RANK], known = 1;
    int rank = x == NULL ? -1 : numbers_of(c, e, 1, dims, MOST_RANK), open = -1;
    if (rank < 0) return refused();
    for (int i = 0; i < rank; i++) {
        if (dims[i] == -1 && open < 0)
            open = i;
        else if (dims[i] < 0 || __builtin_mul_overflow(known, dims[i], &known))
            return REFUSED;
    }
    if (open >= 0) {
        if (known == 0 || x->count % known) return REFUSED;
        dims[open] = x->count / known;
    }
    return share(c, e, x, rank, dims);
}

static int op_expand_dims(Call *c, const Entry *e) {
    Value *x = input(c, e, 0, 0);
    int64_t axis, dims[MOST_RANK];
    if (x == NULL || x->rank == MOST_RANK || numbers_of(c, e, 1, &axis, 1) != 1) return refused();
    int at = axis_in(axis, x->rank + 1);
    if (at < 0) return REFUSED;
    for (int i = 0; i <= x->rank; i++) dims[i] = i < at ? x->dims[i] : i == at ? 1 : x->dims[i - 1];
    return share(c, e, x, x->rank + 1, dims);
}

static int op_squeeze(Call *c, const Entry *e) {
    Value *x = input(c, e, 0, 0);
    if (x == NULL) return refused();
    int64_t dims[MOST_RANK];
    int drop[MOST_RANK] = {0}, rank = 0;
    for (int i = 0; i < e->numbers; i++) {
        int at = axis_in(e->number[i], x->rank);
        if (at < 0 || x->dims[at] != 1) return REFUSED;
        drop[at] = 1;
    }
    for (int i = 0; i < x->rank; i++)
        if (e->numbers ? !drop[i] : x->dims[i] != 1) dims[rank++] = x->dims[i];
    return share(c, e, x, rank, dims);
}

static int op_transpose(Call *c, const Entry *e) {
    Value *x = input(c, e, 0, 0), *out;
    int64_t perm[MOST_RANK], dims[MOST_RANK], own[MOST_RANK], from[MOST_RANK], to[MOST_RANK];
    if (x == NULL || numbers_of(c, e, 1, perm, MOST_RANK) != x->rank) return refused();
    int seen = 0;
    row_major(x->rank, x->dims, own);
    for (int i = 0; i < x->rank; i++) {
        if (perm[i] < 0 || perm[i] >= x->rank || seen >> perm[i] & 1) return REFUSED;
        seen |= 1 << perm[i];
        dims[i] = x->dims[perm[i]];
        from[i] = own[perm[i]];
    }
    if ((out = make(c, e, 0, x->rank, dims)) == NULL) return refused();
    row_major(x->rank, dims, to);
    if (out->count) copy_steps(out->data, x->data, kind_bytes[x->kind], x->rank, dims, to, from);
    return DONE;
}

/* Joins values along a dimension; with `is_new` the dimension is added. */
static int joined(Call *c, const Entry *e, int64_t axis, int is_new) {
    Value *first = input(c, e, 0, 0), *out;
    int64_t many = inputs_of(e, 0), dims[MOST_RANK], inner = 1, outer = 1, total = 0;
    if (first == NULL || (is_new && first->rank == MOST_RANK)) return refused();
    int rank = first->rank + is_new, at = axis_in(axis, rank);
    if (at < 0) return REFUSED;
    for (int64_t k = 0; k < many; k++) {
        Value *x = input(c, e, 0, k);
        if (x == NULL) return refused();
        if (x->rank != first->rank || x->kind != first->kind) return REFUSED;
        for (int i = 0; i < x->rank; i++)
            if (x->dims[i] != first->dims[i] && (is_new || i != at)) return REFUSED;
        total += is_new ? 1 : x->dims[at];
    }
    for (int i = 0; i < rank; i++) dims[i] = i == at ? total : first->dims[is_new && i > at ? i - 1 : i];
    for (int i = 0; i < at; i++) outer *= dims[i];
    for (int i = at + 1; i < rank; i++) inner *= dims[i];
    if ((out = make(c, e, 0, rank, dims)) == NULL) return refused();
    char *to = out->data;
    if (is_new && inner == 1) {
        for (int64_t k = 0; k < many; k++)
            copy_steps(to + k * kind_bytes[first->kind], input(c, e, 0, k)->data, kind_bytes[first->kind], 1, &outer, &many, (int64_t[]){1});
        return DONE;
    }
    for (int64_t o = 0; o < outer; o++)
        for (int64_t k = 0; k < many; k++) {
            Value *x = input(c, e, 0, k);
            size_t bytes = (size_t)((is_new ? 1 : x->dims[at]) * inner * kind_bytes[x->kind]);
            memcpy(to, x->data + (size_t)o * bytes, bytes);
            to += bytes;
        }
    return DONE;
}

static int op_pack(Call *c, const Entry *e) { return joined(c, e, e->number[0], 1); }

static int op_concat(Call *c, const Entry *e) {
    int64_t axis;
    return numbers_of(c, e, 1, &axis, 1) == 1 ? joined(c, e, axis, 0) : refused();
}

/* What a strided slice takes of each dimension: where it begins, the step, and how many. */
typedef struct {
    int64_t begin[MOST_RANK], step[MOST_RANK], count[MOST_RANK], dims[MOST_RANK];
    int rank; /* of the result, whose sizes are `dims` */
} Part;

static int64_t clipped(int64_t place, int64_t size, int64_t low, int64_t high) {
    if (place < 0) place = place < -size ? low : place + size;
    return place < low ? low : place > high ? high : place;
}

/* Reads begin, end and strides, which start at an argument, for a tensor. Returns 0 if there is no such part. */
static int part_of(Call *c, const Entry *e, int argument, int rank, const int64_t *dims, Part *part) {
    enum { MOST = 2 * MOST_RANK };
    int64_t begin[MOST], end[MOST], step[MOST], begin_mask = e->number[0], end_mask = e->number[1], dots = e->number[2], added = e->number[3],
                                                shrunk = e->number[4];
    int length = numbers_of(c, e, argument, begin, MOST), used = 0, at = 0;
    if (length < 0 || numbers_of(c, e, argument + 1, end, MOST) != length || numbers_of(c, e, argument + 2, step, MOST) != length) return 0;
    if (dots & (dots - 1)) return 0;
    for (int i = 0; i < length; i++) used += !(dots >> i & 1) && !(added >> i & 1);
    if (used > rank) return 0;
    part->rank = 0;
    for (int i = 0; i <= length; i++) {
        int is_rest = i == length, is_dots = !is_rest && dots >> i & 1;
        if (is_rest || is_dots) {
            int last = is_rest ? rank : at + rank - used;
            for (; at < last; at++) {
                part->begin[at] = 0;
                part->step[at] = 1;
                part->count[at] = dims[at];
                if (part->rank == MOST_RANK) return 0;
                part->dims[part->rank++] = dims[at];
            }
            continue;
        }
        if (added >> i & 1) {
            if (part->rank == MOST_RANK) return 0;
            part->dims[part->rank++] = 1;
            continue;
        }
        int64_t size = dims[at], first, last, by = step[i];
        if (shrunk >> i & 1) {
            first = begin[i] < 0 ? begin[i] + size : begin[i];
            if (by <= 0 || first < 0 || first >= size) return 0;
            part->begin[at] = first;
            part->step[at] = 1;
            part->count[at++] = 1;
            continue;
        }
        if (by == 0 || by == INT64_MIN) return 0;
        int64_t low = by > 0 ? 0 : -1, high = by > 0 ? size : size - 1;
        first = begin_mask >> i & 1 ? (by > 0 ? low : high) : clipped(begin[i], size, low, high);
        last = end_mask >> i & 1 ? (by > 0 ? high : low) : clipped(end[i], size, low, high);
        int64_t span = by > 0 ? last - first : first - last, width = by > 0 ? by : -by;
        part->begin[at] = first;
        part->step[at] = by;
        part->count[at] = span > 0 ? (span - 1) / width + 1 : 0;
        if (part->rank == MOST_RANK) return 0;
        part->dims[part->rank++] = part->count[at++];
    }
    return 1;
}

/* The steps through a tensor of `dims` that a part takes. Returns the element it begins with. */
static int64_t part_steps(const Part *part, int rank, const int64_t *dims, int64_t *steps) {
    int64_t begin = 0;
    row_major(rank, dims, steps);
    for (int i = 0; i < rank; i++) {
        begin += part->begin[i] * steps[i];
        steps[i] *= part->step[i];
    }
    return begin;
}

static int taken_part(Call *c, const Entry *e, const Value *x, const Part *part) {
    int64_t from[MOST_RANK], to[MOST_RANK];
    Value *out = make(c, e, 0, part->rank, part->dims);
    if (out == NULL) return refused();
    if (!out->count) return DONE;
    int64_t begin = part_steps(part, x->rank, x->dims, from), size = kind_bytes[x->kind];
    row_major(x->rank, part->count, to);
    copy_steps(out->data, x->data + begin * size, size, x->rank, part->count, to, from);
    return DONE;
}

static int op_strided_slice(Call *c, const Entry *e) {
    Value *x = input(c, e, 0, 0);
    Part part;
    if (x == NULL || !part_of(c, e, 1, x->rank, x->dims, &part)) return refused();
    return taken_part(c, e, x, &part);
}

static int op_strided_slice_grad(Call *c, const Entry *e) {
    int64_t dims[MOST_RANK], from[MOST_RANK], to[MOST_RANK];
    int rank = numbers_of(c, e, 0, dims, MOST_RANK);
    Value *dy = input(c, e, 4, 0), *out;
    Part part;
    if (rank < 0 || dy == NULL || product(dims, rank) < 0 || !part_of(c, e, 1, rank, dims, &part)) return refused();
    if (dy->rank != part.rank || memcmp(dy->dims, part.dims, (size_t)part.rank * sizeof *dims)) return REFUSED;
    if ((out = make(c, e, 0, rank, dims)) == NULL) return refused();
    int64_t size = kind_bytes[out->kind];
    memset(out->data, 0, (size_t)(out->count * size));
    if (!dy->count) return DONE;
    int64_t begin = part_steps(&part, rank, dims, to);
    row_major(rank, part.count, from);
    copy_steps(out->data + begin * size, dy->data, size, rank, part.count, to, from);
    return DONE;
}

static int op_slice(Call *c, const Entry *e) {
    Value *x = input(c, e, 0, 0);
    Part part;
    if (x == NULL || numbers_of(c, e, 1, part.begin, MOST_RANK) != x->rank || numbers_of(c, e, 2, part.count, MOST_RANK) != x->rank)
        return refused();
    for (int i = 0; i < x->rank; i++) {
        if (part.begin[i] < 0 || part.begin[i] > x->dims[i]) return REFUSED;
        if (part.count[i] == -1) part.count[i] = x->dims[i] - part.begin[i];
        if (part.count[i] < 0 || part.count[i] > x->dims[i] - part.begin[i]) return REFUSED;
        part.step[i] = 1;
        part.dims[i] = part.count[i];
    }
    part.rank = x->rank;
    return taken_part(c, e, x, &part);
}

/* Steps through a value that is repeated to fill a shape. Returns 0 if it does not fit. */
static int steps_within(const Value *x, int rank, const int64_t *dims, int64_t *steps) {
    int64_t own[MOST_RANK];
    if (x->rank > rank) return 0;
    row_major(x->rank, x->dims, own);
    for (int i = 0; i < rank; i++) {
        int at = i - (rank - x->rank);
        if (at >= 0 && x->dims[at] != dims[i] && x->dims[at] != 1) return 0;
        steps[i] = at < 0 || x->dims[at] == 1 ? 0 : own[at];
    }
    return 1;
}

static int op_broadcast_to(Call *c, const Entry *e) {
    Value *x = input(c, e, 0, 0), *out;
    int64_t dims[MOST_RANK], from[MOST_RANK], to[MOST_RANK];
    int rank = x == NULL ? -1 : numbers_of(c, e, 1, dims, MOST_RANK);
    if (rank < 0 || !steps_within(x, rank, dims, from) || (out = make(c, e, 0, rank, dims)) == NULL) return refused();
    row_major(rank, dims, to);
    if (out->count) copy_steps(out->data, x->data, kind_bytes[x->kind], rank, dims, to, from);
    return DONE;
}

static int op_fill(Call *c, const Entry *e) {
    int64_t dims[MOST_RANK];
    Value *x = input(c, e, 1, 0), *out;
    int rank = x == NULL || x->rank ? -1 : numbers_of(c, e, 0, dims, MOST_RANK);
    if (rank < 0 || (out = make(c, e, 0, rank, dims)) == NULL) return refused();
    copy_steps(out->data, x->data, kind_bytes[x->kind], 1, &out->count, (int64_t[]){1}, (int64_t[]){0});
    return DONE;
}

static int op_zeros_like(Call *c, const Entry *e) {
    Value *x = input(c, e, 0, 0), *out;
    if (x == NULL || (out = make(c, e, 0, x->rank, x->dims)) == NULL) return refused();
    memset(out->data, 0, (size_t)(out->count * kind_bytes[out->kind]));
    return DONE;
}

static int op_ones_like(Call *c, const Entry *e) {
    static const float narrow = 1;
    static const double wide = 1;
    static const int64_t integer = 1; /* its first bytes are those of smaller integers */
    Value *x = input(c, e, 0, 0), *out;
    if (x == NULL || (out = make(c, e, 0, x->rank, x->dims)) == NULL) return refused();
    const void *one = out->kind == F32 ? (const void *)&narrow : out->kind == F64 ? (const void *)&wide : &integer;
    copy_steps(out->data, one, kind_bytes[out->kind], 1, &out->count, (int64_t[]){1}, (int64_t[]){0});
    return DONE;
}

static int op_tile(Call *c, const Entry *e) {
    Value *x = input(c, e, 0, 0), *out;
    int64_t times[MOST_RANK], dims[2 * MOST_RANK], to[2 * MOST_RANK], from[2 * MOST_RANK], own[MOST_RANK], whole[MOST_RANK];
    int rank = x == NULL ? -1 : numbers_of(c, e, 1, times, MOST_RANK);
    if (rank < 0 || rank != x->rank) return refused();
    for (int i = 0; i < rank; i++)
        if (times[i] < 0 || (x->dims[i] && times[i] > MOST_BYTES / x->dims[i])) return REFUSED;
    for (int i = 0; i < rank; i++) whole[i] = x->dims[i] * times[i];
    if ((out = make(c, e, 0, rank, whole)) == NULL) return refused();
    row_major(rank, whole, to);
    row_major(rank, x->dims, own);
    for (int i = rank - 1; i >= 0; i--) { /* each dimension is gone through as repetitions of its elements */
        int64_t step = to[i];
        dims[2 * i] = times[i];
        dims[2 * i + 1] = x->dims[i];
        to[2 * i] = step * x->dims[i];
        to[2 * i + 1] = step;
        from[2 * i] = 0;
        from[2 * i + 1] = own[i];
    }
    if (out->count) copy_steps(out->data, x->data, kind_bytes[x->kind], 2 * rank, dims, to, from);
    return DONE;
}

/* Paddings are pairs of numbers, for each dimension. */
static int op_pad(Call *c, const Entry *e) {
    Value *x = input(c, e, 0, 0), *pads = input(c, e, 1, 0), *out;
    int64_t dims[MOST_RANK], to[MOST_RANK], from[MOST_RANK], begin = 0;
    if (x == NULL || pads == NULL || !of_integers(pads) || pads->rank != 2 || pads->dims[0] != x->rank || pads->dims[1] != 2) return refused();
    for (int i = 0; i < x->rank; i++) {
        int64_t before = integer_at(pads, 2 * i), behind = integer_at(pads, 2 * i + 1);
        if (before < 0 || behind < 0 || before > MOST_BYTES || behind > MOST_BYTES) return REFUSED;
        dims[i] = x->dims[i] + before + behind;
    }
    if ((out = make(c, e, 0, x->rank, dims)) == NULL) return refused();
    row_major(x->rank, dims, to);
    row_major(x->rank, x->dims, from);
    for (int i = 0; i < x->rank; i++) begin += integer_at(pads, 2 * i) * to[i];
    int64_t size = kind_bytes[x->kind];
    memset(out->data, 0, (size_t)(out->count * size));
    if (x->count) copy_steps(out->data + begin * size, x->data, size, x->rank, x->dims, to, from);
    return DONE;
}

/* Cuts a value along a dimension into parts of these sizes, which are its outputs; `is_gone` says whether the dimension is left out. */
static int cut(Call *c, const Entry *e, const Value *x, int at, const int64_t *sizes, int is_gone) {
    int64_t dims[MOST_RANK], outer = 1, inner = kind_bytes[x->kind], whole, first = 0;
    for (int i = 0; i < at; i++) outer *= x->dims[i];
    for (int i = at + 1; i < x->rank; i++) inner *= x->dims[i];
    whole = x->dims[at] * inner;
    for (int k = 0; k < e->outputs; k++) {
        int rank = 0;
        for (int i = 0; i < x->rank; i++)
            if (i != at || !is_gone) dims[rank++] = i == at ? sizes[k] : x->dims[i];
        Value *out = make(c, e, k, rank, dims);
        if (out == NULL) return refused();
        for (int64_t o = 0; o < outer; o++) memcpy(out->data + o * sizes[k] * inner, x->data + o * whole + first * inner, (size_t)(sizes[k] * inner));
        first += sizes[k];
    }
    return DONE;
}

static int cut_equally(Call *c, const Entry *e, const Value *x, int64_t axis, int is_gone) {
    int at = axis_in(axis, x->rank);
    if (at < 0 || e->outputs == 0 || x->dims[at] % e->outputs || (is_gone && x->dims[at] != e->outputs)) return REFUSED;
    int64_t *sizes = (int64_t *)room_for(c, e->outputs * 8);
    if (sizes == NULL) return FAILED;
    for (int k = 0; k < e->outputs; k++) sizes[k] = x->dims[at] / e->outputs;
    return cut(c, e, x, at, sizes, is_gone);
}

static int op_split(Call *c, const Entry *e) {
    int64_t axis;
    Value *x = input(c, e, 1, 0);
    return x == NULL || numbers_of(c, e, 0, &axis, 1) != 1 ? refused() : cut_equally(c, e, x, axis, 0);
}

static int op_unpack(Call *c, const Entry *e) {
    Value *x = input(c, e, 0, 0);
    return x == NULL ? refused() : cut_equally(c, e, x, e->number[0], 1);
}

static int op_split_sizes(Call *c, const Entry *e) {
    Value *x = input(c, e, 0, 0);
    int64_t axis, total = 0, *sizes = (int64_t *)room_for(c, e->outputs * 8 + 16);
    if (sizes == NULL) return FAILED;
    if (x == NULL || numbers_of(c, e, 1, sizes, e->outputs + 1) != e->outputs || numbers_of(c, e, 2, &axis, 1) != 1) return refused();
    int at = axis_in(axis, x->rank);
    if (at < 0) return REFUSED;
    for (int k = 0; k < e->outputs; k++) {
        if (sizes[k] < 0 || sizes[k] > x->dims[at]) return REFUSED;
        total += sizes[k];
    }
    return total == x->dims[at] ? cut(c, e, x, at, sizes, 0) : REFUSED;
}

static int op_shapes(Call *c, const Entry *e) {
    for (int k = 0; k < e->outputs; k++) {
        Value *x = input(c, e, 0, k), *out;
        if (x == NULL || (out = make(c, e, k, 1, (int64_t[]){x->rank})) == NULL) return refused();
        for (int i = 0; i < x->rank; i++) put_integer(out, i, x->dims[i]);
    }
    return DONE;
}

/* Where each of several shapes begins in their concatenation. */
static int op_concat_offset(Call *c, const Entry *e) {
    int64_t axis, first = 0;
    Value *like = input(c, e, 1, 0);
    if (like == NULL || numbers_of(c, e, 0, &axis, 1) != 1) return refused();
    int at = like->rank == 1 && like->count <= MOST_RANK ? axis_in(axis, (int)like->count) : -1;
    if (at < 0) return REFUSED;
    for (int k = 0; k < e->outputs; k++) {
        Value *x = input(c, e, 1, k), *out;
        if (x == NULL) return refused();
        if (!of_integers(x) || x->rank != 1 || x->count != like->count) return REFUSED;
        for (int i = 0; i < x->count; i++)
            if (i != at && integer_at(x, i) != integer_at(like, i)) return REFUSED;
        if ((out = make(c, e, k, 1, x->dims)) == NULL) return refused();
        for (int i = 0; i < x->count; i++) put_integer(out, i, i == at ? first : 0);
        first += integer_at(x, at);
    }
    return DONE;
}

static int op_range(Call *c, const Entry *e) {
    int64_t first, last, step;
    Value *out;
    if (numbers_of(c, e, 0, &first, 1) != 1 || numbers_of(c, e, 1, &last, 1) != 1 || numbers_of(c, e, 2, &step, 1) != 1) return refused();
    if (first < INT32_MIN || first > INT32_MAX || last < INT32_MIN || last > INT32_MAX || step < INT32_MIN || step > INT32_MAX) return REFUSED;
    if (step == 0 || (step > 0 ? first > last : first < last)) return REFUSED;
    int64_t count = step > 0 ? (last - first + step - 1) / step : (first - last - step - 1) / -step;
    if ((out = make(c, e, 0, 1, &count)) == NULL) return refused();
    for (int64_t i = 0; i < count; i++) put_integer(out, i, first + i * step);
    return DONE;
}

/* Depth, the value of hits and that of all others follow the indices. The new dimension is the last one. */
static int op_one_hot(Call *c, const Entry *e) {
    Value *at = input(c, e, 0, 0), *on = input(c, e, 2, 0), *off = input(c, e, 3, 0), *out;
    int64_t depth, dims[MOST_RANK];
    if (at == NULL || on == NULL || off == NULL || numbers_of(c, e, 1, &depth, 1) != 1) return refused();
    if (!of_integers(at) || on->rank || off->rank || on->kind != off->kind || at->rank == MOST_RANK) return REFUSED;
    memcpy(dims, at->dims, sizeof dims);
    dims[at->rank] = depth;
    if ((out = make(c, e, 0, at->rank + 1, dims)) == NULL) return refused();
    int64_t size = kind_bytes[out->kind];
    copy_steps(out->data, off->data, size, 1, &out->count, (int64_t[]){1}, (int64_t[]){0});
    for (int64_t i = 0; i < at->count; i++) {
        int64_t hit = integer_at(at, i);
        if (hit >= 0 && hit < depth) memcpy(out->data + (i * depth + hit) * size, on->data, (size_t)size);
    }
    return DONE;
}

#endif
