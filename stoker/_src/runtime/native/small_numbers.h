/* Small ops that compute: element-wise ones, conversions, choices and reductions. Each result is rounded once, as by the ops' own kernels. */
#ifndef STOKER_SMALL_NUMBERS_H
#define STOKER_SMALL_NUMBERS_H

#include <math.h>

#include "../../base/native/vectorised.h"
#include "small_floats.h"
#include "small_shapes.h"

/* ---- element by element ---- */

typedef void (*Pairs)(void *to, const void *from, int64_t x, const void *other, int64_t y, int64_t count);

/* The loop of two operands whose elements are each at a step of 0 or 1, or further apart. */
#define DEFINE_PAIRS(NAME, OUT, TYPE, RESULT)                                                                             \
    VECTORISED static void NAME(void *to, const void *from, int64_t xs, const void *other, int64_t ys, int64_t count) {   \
        OUT *out = to;                                                                                                    \
        const TYPE *a = from, *b = other;                                                                                 \
        if (xs == 1 && ys == 1) {                                                                                         \
            for (int64_t i = 0; i < count; i++) {                                                                         \
                TYPE x = a[i], y = b[i];                                                                                  \
                out[i] = (OUT)(RESULT);                                                                                   \
            }                                                                                                             \
        } else if (xs == 1 && ys == 0) {                                                                                  \
            TYPE y = b[0];                                                                                                \
            for (int64_t i = 0; i < count; i++) {                                                                         \
                TYPE x = a[i];                                                                                            \
                out[i] = (OUT)(RESULT);                                                                                   \
            }                                                                                                             \
        } else {                                                                                                          \
            for (int64_t i = 0; i < count; i++) {                                                                         \
                TYPE x = a[i * xs], y = b[i * ys];                                                                        \
                out[i] = (OUT)(RESULT);                                                                                   \
            }                                                                                                             \
        }                                                                                                                 \
    }

#define DEFINE_FOR_FLOATS(NAME, RESULT)             \
    DEFINE_PAIRS(NAME##_f32, float, float, RESULT)  \
    DEFINE_PAIRS(NAME##_f64, double, double, RESULT)
#define DEFINE_FOR_INTEGERS(NAME, RESULT)                                       \
    DEFINE_PAIRS(NAME##_i32, int32_t, int32_t, (uint32_t)(RESULT))              \
    DEFINE_PAIRS(NAME##_i64, int64_t, int64_t, (uint64_t)(RESULT))
/* Sums and products of integers wrap around, which is only defined for unsigned ones. */
#define DEFINE_WRAPPING(NAME, OPERATOR)                                                       \
    DEFINE_FOR_FLOATS(NAME, x OPERATOR y)                                                     \
    DEFINE_PAIRS(NAME##_i32, int32_t, int32_t, (uint32_t)x OPERATOR(uint32_t) y)              \
    DEFINE_PAIRS(NAME##_i64, int64_t, int64_t, (uint64_t)x OPERATOR(uint64_t) y)
#define DEFINE_COMPARISON(NAME, RESULT)              \
    DEFINE_PAIRS(NAME##_f32, uint8_t, float, RESULT) \
    DEFINE_PAIRS(NAME##_f64, uint8_t, double, RESULT) \
    DEFINE_PAIRS(NAME##_i32, uint8_t, int32_t, RESULT) \
    DEFINE_PAIRS(NAME##_i64, uint8_t, int64_t, RESULT)

DEFINE_WRAPPING(add, +)
DEFINE_WRAPPING(sub, -)
DEFINE_WRAPPING(mul, *)
DEFINE_FOR_FLOATS(max, x != x ? x : y != y ? y : x > y ? x : y)
DEFINE_FOR_INTEGERS(max, x > y ? x : y)
DEFINE_FOR_FLOATS(min, x != x ? x : y != y ? y : x < y ? x : y)
DEFINE_FOR_INTEGERS(min, x < y ? x : y)
DEFINE_FOR_FLOATS(div, x / y)
DEFINE_FOR_FLOATS(div_no_nan, y == 0 ? 0 : x / y)
/* The divisors of integers are positive. */
DEFINE_FOR_INTEGERS(floor_div, x / y - (x % y < 0))
DEFINE_FOR_INTEGERS(floor_mod, x % y + (x % y < 0 ? y : 0))
DEFINE_COMPARISON(less, x < y)
DEFINE_COMPARISON(less_equal, x <= y)
DEFINE_COMPARISON(greater, x > y)
DEFINE_COMPARISON(greater_equal, x >= y)
DEFINE_COMPARISON(equal, x == y)
DEFINE_COMPARISON(not_equal, x != y)
DEFINE_PAIRS(equal_b, uint8_t, uint8_t, x == y)
DEFINE_PAIRS(not_equal_b, uint8_t, uint8_t, x != y)
DEFINE_PAIRS(and_b, uint8_t, uint8_t, x & y)
DEFINE_PAIRS(or_b, uint8_t, uint8_t, x | y)

/* The shape that two shapes broadcast to. Returns its rank, or -1. */
static int broadcast(const Value *x, const Value *y, int64_t *dims) {
    int rank = x->rank > y->rank ? x->rank : y->rank;
    for (int i = 0; i < rank; i++) {
        int a = i - (rank - x->rank), b = i - (rank - y->rank);
        int64_t first = a < 0 ? 1 : x->dims[a], second = b < 0 ? 1 : y->dims[b];
        if (first != second && first != 1 && second != 1) return -1;
        dims[i] = first == 1 ? second : first;
    }
    return rank;
}

/* Dimensions that all operands go through like one are made one. Returns how many are left. */
static int merged(int rank, int64_t *dims, int operands, int64_t (*steps)[MOST_RANK]) {
    int at = 0;
    for (int i = 0; i < rank; i++) {
        if (dims[i] == 1) continue;
        int fits = at > 0;
        for (int k = 0; fits && k < operands; k++) fits = steps[k][at - 1] == steps[k][i] * dims[i];
        if (fits)
            dims[--at] *= dims[i];
        else
            dims[at] = dims[i];
        for (int k = 0; k < operands; k++) steps[k][at] = steps[k][i];
        at++;
    }
    return at;
}

typedef struct {
    Pairs loop;
    int64_t to, x, y; /* bytes of an element */
} Walk;

static void walk(const Walk *w, char *to, const char *x, const char *y, int rank, const int64_t *dims, int64_t (*steps)[MOST_RANK], int at) {
    if (rank == 0) {
        w->loop(to, x, 0, y, 0, 1);
        return;
    }
    if (at == rank - 1) {
        if (steps[0][at] == 1)
            w->loop(to, x, steps[1][at], y, steps[2][at], dims[at]);
        else /* into one element again and again */
            for (int64_t i = 0; i < dims[at]; i++)
                w->loop(to + i * steps[0][at] * w->to, x + i * steps[1][at] * w->x, 0, y + i * steps[2][at] * w->y, 0, 1);
        return;
    }
    for (int64_t i = 0; i < dims[at]; i++)
        walk(w, to + i * steps[0][at] * w->to, x + i * steps[1][at] * w->x, y + i * steps[2][at] * w->y, rank, dims, steps, at + 1);
}

static int paired(Call *c, const Entry *e, const Pairs *loops, int kinds) {
    Value *x = input(c, e, 0, 0), *y = input(c, e, 1, 0), *out;
    if (x == NULL || y == NULL) return refused();
    if (x->kind != y->kind || x->kind >= kinds || loops[x->kind] == NULL) return REFUSED;
    int64_t dims[MOST_RANK], steps[3][MOST_RANK];
    int rank = broadcast(x, y, dims);
    if (rank < 0 || (out = make(c, e, 0, rank, dims)) == NULL) return refused();
    if (!out->count) return DONE;
    row_major(rank, dims, steps[0]);
    steps_within(x, rank, out->dims, steps[1]);
    steps_within(y, rank, out->dims, steps[2]);
    rank = merged(rank, dims, 3, steps);
    Walk w = {loops[x->kind], kind_bytes[out->kind], kind_bytes[x->kind], kind_bytes[y->kind]};
    walk(&w, out->data, x->data, y->data, rank, dims, steps, 0);
    return DONE;
}

#define DEFINE_PAIRED(NAME, ...)                                                          \
    static int op_##NAME(Call *c, const Entry *e) {                                       \
        static const Pairs loops[] = {__VA_ARGS__};                                       \
        return paired(c, e, loops, (int)(sizeof loops / sizeof *loops));                  \
    }
#define OF_NUMBERS(NAME) NAME##_f32, NAME##_f64, NAME##_i32, NAME##_i64

DEFINE_PAIRED(add, OF_NUMBERS(add))
DEFINE_PAIRED(sub, OF_NUMBERS(sub))
DEFINE_PAIRED(mul, OF_NUMBERS(mul))
DEFINE_PAIRED(max, OF_NUMBERS(max))
DEFINE_PAIRED(min, OF_NUMBERS(min))
DEFINE_PAIRED(div, div_f32, div_f64)
DEFINE_PAIRED(div_no_nan, div_no_nan_f32, div_no_nan_f64)
DEFINE_PAIRED(less, OF_NUMBERS(less))
DEFINE_PAIRED(less_equal, OF_NUMBERS(less_equal))
DEFINE_PAIRED(greater, OF_NUMBERS(greater))
DEFINE_PAIRED(greater_equal, OF_NUMBERS(greater_equal))
DEFINE_PAIRED(equal, OF_NUMBERS(equal), equal_b)
DEFINE_PAIRED(not_equal, OF_NUMBERS(not_equal), not_equal_b)
DEFINE_PAIRED(and, NULL, NULL, NULL, NULL, and_b)
DEFINE_PAIRED(or, NULL, NULL, NULL, NULL, or_b)

static int has_positive_divisors(Call *c, const Entry *e) {
    Value *y = input(c, e, 1, 0);
    if (y == NULL || !of_integers(y)) return 0;
    for (int64_t i = 0; i < y->count; i++)
        if (integer_at(y, i) <= 0) return 0;
    return 1;
}

static int op_floor_div(Call *c, const Entry *e) {
    static const Pairs loops[] = {NULL, NULL, floor_div_i32, floor_div_i64};
    return has_positive_divisors(c, e) ? paired(c, e, loops, 4) : refused();
}

static int op_floor_mod(Call *c, const Entry *e) {
    static const Pairs loops[] = {NULL, NULL, floor_mod_i32, floor_mod_i64};
    return has_positive_divisors(c, e) ? paired(c, e, loops, 4) : refused();
}

#define DEFINE_EACH(NAME, ...)                                                                                  \
    static int op_##NAME(Call *c, const Entry *e) {                                                             \
        Value *x = input(c, e, 0, 0), *out;                                                                     \
        if (x == NULL || (out = make(c, e, 0, x->rank, x->dims)) == NULL) return refused();                     \
        if (x->kind != out->kind) return REFUSED;                                                               \
        switch (x->kind) {                                                                                      \
            __VA_ARGS__                                                                                         \
        default: return REFUSED;                                                                                \
        }                                                                                                       \
        return DONE;                                                                                            \
    }
#define EACH(KIND, TYPE, RESULT)                                                                    \
    case KIND:                                                                                      \
        for (int64_t i = 0; i < x->count; i++) {                                                    \
            TYPE a = ((const TYPE *)x->data)[i];                                                    \
            ((TYPE *)out->data)[i] = (TYPE)(RESULT);                                                \
        }                                                                                           \
        break;

DEFINE_EACH(neg, EACH(F32, float, -a) EACH(F64, double, -a) EACH(I32, int32_t, 0u - (uint32_t)a) EACH(I64, int64_t, 0u - (uint64_t)a))
DEFINE_EACH(square, EACH(F32, float, a * a) EACH(F64, double, a * a) EACH(I32, int32_t, (uint32_t)a * (uint32_t)a)
                        EACH(I64, int64_t, (uint64_t)a * (uint64_t)a))
DEFINE_EACH(abs, EACH(F32, float, fabsf(a)) EACH(F64, double, fabs(a)) EACH(I32, int32_t, a < 0 ? 0u - (uint32_t)a : (uint32_t)a)
                     EACH(I64, int64_t, a < 0 ? 0u - (uint64_t)a : (uint64_t)a))
DEFINE_EACH(sqrt, EACH(F32, float, sqrtf(a)) EACH(F64, double, sqrt(a)))
DEFINE_EACH(not, EACH(BOOL, uint8_t, !a))

#define CONVERTED(FROM, TO, RESULT)                                                                                 \
    for (int64_t i = 0; i < x->count; i++) {                                                                        \
        FROM a = ((const FROM *)x->data)[i];                                                                        \
        ((TO *)out->data)[i] = (TO)(RESULT);                                                                        \
    }                                                                                                               \
    return DONE;
#define CONVERSIONS(FROM)                                     \
    switch (out->kind) {                                      \
    case F32: CONVERTED(FROM, float, a)                       \
    case F64: CONVERTED(FROM, double, a)                      \
    case I32: CONVERTED(FROM, int32_t, (uint32_t)(int64_t)a)  \
    case I64: CONVERTED(FROM, int64_t, a)                     \
    default: CONVERTED(FROM, uint8_t, a != 0)                 \
    }

/* Whether all floats are in the range of an integer type, outside of which a conversion has no defined result. */
static int within(const Value *x, double least, double most) {
    for (int64_t i = 0; i < x->count; i++) {
        double a = x->kind == F32 ? (double)((const float *)x->data)[i] : ((const double *)x->data)[i];
        if (!(a >= least && a <= most)) return 0;
    }
    return 1;
}

static int op_cast(Call *c, const Entry *e) {
    Value *x = input(c, e, 0, 0), *out;
    if (x == NULL || (out = make(c, e, 0, x->rank, x->dims)) == NULL) return refused();
    int is_float = x->kind == F32 || x->kind == F64;
    if (is_float && out->kind == I32 && !within(x, INT32_MIN, INT32_MAX)) return REFUSED;
    if (is_float && out->kind == I64 && !within(x, -9.2e18, 9.2e18)) return REFUSED;
    switch (x->kind) {
    case F32: CONVERSIONS(float)
    case F64: CONVERSIONS(double)
    case I32: CONVERSIONS(int32_t)
    case I64: CONVERSIONS(int64_t)
    default: CONVERSIONS(uint8_t)
    }
}

static int op_add_n(Call *c, const Entry *e) {
    int64_t many = inputs_of(e, 0);
    Value *first = input(c, e, 0, 0), *out;
    if (first == NULL) return refused();
    for (int64_t k = 1; k < many; k++) {
        Value *x = input(c, e, 0, k);
        if (x == NULL) return refused();
        if (x->kind != first->kind || x->rank != first->rank || memcmp(x->dims, first->dims, (size_t)x->rank * sizeof *x->dims)) return REFUSED;
    }
    static const Pairs loops[] = {OF_NUMBERS(add)};
    if (first->kind >= BOOL || (out = make(c, e, 0, first->rank, first->dims)) == NULL) return refused();
    memcpy(out->data, first->data, (size_t)(first->count * kind_bytes[first->kind]));
    for (int64_t k = 1; k < many; k++) loops[out->kind](out->data, out->data, 1, input(c, e, 0, k)->data, 1, out->count);
    return DONE;
}

/* ---- choices ---- */

static void choose(char *to, const uint8_t *condition, const char *x, const char *y, int64_t size, int rank, const int64_t *dims,
                   int64_t (*steps)[MOST_RANK], int at) {
    if (at < rank - 1) {
        for (int64_t i = 0; i < dims[at]; i++)
            choose(to + i * steps[0][at] * size, condition + i * steps[1][at], x + i * steps[2][at] * size, y + i * steps[3][at] * size, size,
                   rank, dims, steps, at + 1);
        return;
    }
    int64_t count = rank ? dims[at] : 1, cs = rank ? steps[1][at] : 0, xs = rank ? steps[2][at] : 0, ys = rank ? steps[3][at] : 0;
    if (size == 4)
        for (int64_t i = 0; i < count; i++) ((uint32_t *)to)[i] = condition[i * cs] ? ((const uint32_t *)x)[i * xs] : ((const uint32_t *)y)[i * ys];
    else if (size == 8)
        for (int64_t i = 0; i < count; i++) ((uint64_t *)to)[i] = condition[i * cs] ? ((const uint64_t *)x)[i * xs] : ((const uint64_t *)y)[i * ys];
    else
        for (int64_t i = 0; i < count; i++) to[i] = condition[i * cs] ? x[i * xs] : y[i * ys];
}

/* The number says whether a vector of conditions chooses rows, as in the first version of the op. */
static int op_select(Call *c, const Entry *e) {
    Value *given = input(c, e, 0, 0), *x = input(c, e, 1, 0), *y = input(c, e, 2, 0), *out;
    if (given == NULL || x == NULL || y == NULL) return refused();
    if (given->kind != BOOL || x->kind != y->kind) return REFUSED;
    int64_t dims[MOST_RANK], steps[4][MOST_RANK];
    Value condition = *given, sides = *x;
    if (e->number[0]) {
        if (x->rank != y->rank || memcmp(x->dims, y->dims, (size_t)x->rank * sizeof *dims)) return REFUSED;
        if (condition.rank != x->rank || memcmp(condition.dims, x->dims, (size_t)x->rank * sizeof *dims)) {
            if (condition.rank > 1 || (condition.rank == 1 && (x->rank == 0 || condition.dims[0] != x->dims[0]))) return REFUSED;
            if (condition.rank)
                for (; condition.rank < x->rank; condition.rank++) condition.dims[condition.rank] = 1;
        }
    }
    sides.rank = broadcast(x, y, sides.dims);
    if (sides.rank < 0) return REFUSED;
    int rank = broadcast(&sides, &condition, dims);
    if (rank < 0 || (out = make(c, e, 0, rank, dims)) == NULL) return refused();
    if (!out->count) return DONE;
    row_major(rank, dims, steps[0]);
    steps_within(&condition, rank, out->dims, steps[1]);
    steps_within(x, rank, out->dims, steps[2]);
    steps_within(y, rank, out->dims, steps[3]);
    rank = merged(rank, dims, 4, steps);
    choose(out->data, (const uint8_t *)given->data, x->data, y->data, kind_bytes[x->kind], rank, dims, steps, 0);
    return DONE;
}

/* The places of what is not zero. */
static int op_where(Call *c, const Entry *e) {
    Value *x = input(c, e, 0, 0), *out;
    if (x == NULL || x->rank == 0) return refused();
    char *hits = room_for(c, x->count);
    if (hits == NULL) return FAILED;
    int64_t total = 0, inner[MOST_RANK];
    for (int64_t i = 0; i < x->count; i++) {
        switch (x->kind) {
        case F32: hits[i] = ((const float *)x->data)[i] != 0; break;
        case F64: hits[i] = ((const double *)x->data)[i] != 0; break;
        case BOOL: hits[i] = x->data[i] != 0; break;
        default: hits[i] = integer_at(x, i) != 0;
        }
        total += hits[i];
    }
    if ((out = make(c, e, 0, 2, (int64_t[]){total, x->rank})) == NULL) return refused();
    int64_t *to = (int64_t *)out->data;
    row_major(x->rank, x->dims, inner);
    for (int64_t i = 0; i < x->count; i++) {
        if (!hits[i]) continue;
        int64_t rest = i;
        for (int d = 0; d < x->rank - 1; d++) {
            *to++ = rest / inner[d];
            rest %= inner[d];
        }
        *to++ = rest;
    }
    return DONE;
}

/* ---- reductions ---- */

enum { MOST_LONE = 1 << 9 }; /* elements that may be added to others one by one */

/* Reduces over axes by a loop that takes the result so far as its first operand. `first` is what an element begins with; without it, there must be
 * elements. */
static Value *reduced(Call *c, const Entry *e, const Pairs *loops, int kinds, const void *first, int64_t *each) {
    Value *x = input(c, e, 0, 0), *out;
    int64_t axes[MOST_RANK], dims[MOST_RANK], all[MOST_RANK], steps[3][MOST_RANK], kept[MOST_RANK];
    Value *given = input(c, e, 1, 0);
    int count = x == NULL ? -1 : numbers_of(c, e, 1, axes, given != NULL && given->rank == 0 ? 1 : MOST_RANK), rank = 0, gone = 0;
    if (count < 0 || x->kind >= kinds || loops[x->kind] == NULL) return NULL;
    *each = 1;
    for (int i = 0; i < count; i++) {
        int at = axis_in(axes[i], x->rank);
        if (at < 0 || gone >> at & 1) return NULL;
        gone |= 1 << at;
        *each *= x->dims[at];
    }
    if (*each == 0 && first == NULL) return NULL;
    for (int i = 0; i < x->rank; i++) {
        all[i] = x->dims[i];
        kept[i] = gone >> i & 1 ? 1 : x->dims[i];
        if (!(gone >> i & 1))
            dims[rank++] = x->dims[i];
        else if (e->number[0])
            dims[rank++] = 1;
    }
    if (*each > 1 << 15 || (out = make(c, e, 0, rank, dims)) == NULL) return NULL;
    if (out->kind != x->kind) return NULL;
    int64_t size = kind_bytes[x->kind];
    row_major(x->rank, kept, steps[0]);
    row_major(x->rank, x->dims, steps[2]);
    int64_t held[MOST_RANK];
    for (int i = 0; i < x->rank; i++) {
        if (gone >> i & 1) steps[0][i] = 0;
        held[i] = kept[i];
    }
    if (first != NULL)
        copy_steps(out->data, first, size, 1, &out->count, (int64_t[]){1}, (int64_t[]){0});
    else /* the first of the elements that are reduced to one */
        copy_steps(out->data, x->data, size, x->rank, held, steps[0], steps[2]);
    if (!x->count) return out;
    memcpy(steps[1], steps[0], sizeof steps[1]);
    int left = merged(x->rank, all, 3, steps);
    if (left && steps[0][left - 1] == 0 && left <= 2 && loops[x->kind] == add_f32) { /* numbers that follow each other */
        floats.sum((float *)out->data, (const float *)x->data, left == 2 ? all[0] : 1, all[left - 1], 1, 1.0f);
        return out;
    }
    if (left && steps[0][left - 1] == 0 && x->count > MOST_LONE) return NULL;
    Walk w = {loops[x->kind], size, size, size};
    walk(&w, out->data, out->data, x->data, left, all, steps, 0);
    return out;
}

static int op_sum(Call *c, const Entry *e) {
    static const Pairs loops[] = {OF_NUMBERS(add)};
    static const int64_t zero = 0;
    int64_t each;
    return reduced(c, e, loops, 4, &zero, &each) != NULL ? DONE : refused();
}

static int op_mean(Call *c, const Entry *e) {
    static const Pairs loops[] = {add_f32, add_f64};
    static const int64_t zero = 0;
    int64_t each;
    Value *out = reduced(c, e, loops, 2, &zero, &each);
    if (out == NULL || each == 0) return refused();
    for (int64_t i = 0; i < out->count; i++) {
        if (out->kind == F32)
            ((float *)out->data)[i] /= (float)each;
        else
            ((double *)out->data)[i] /= (double)each;
    }
    return DONE;
}

static int op_all(Call *c, const Entry *e) {
    static const Pairs loops[] = {NULL, NULL, NULL, NULL, and_b};
    static const uint8_t first = 1;
    int64_t each;
    return reduced(c, e, loops, 5, &first, &each) != NULL ? DONE : refused();
}

static int op_any(Call *c, const Entry *e) {
    static const Pairs loops[] = {NULL, NULL, NULL, NULL, or_b};
    static const uint8_t first = 0;
    int64_t each;
    return reduced(c, e, loops, 5, &first, &each) != NULL ? DONE : refused();
}

static int op_reduce_max(Call *c, const Entry *e) {
    static const Pairs loops[] = {OF_NUMBERS(max)};
    int64_t each;
    return reduced(c, e, loops, 4, NULL, &each) != NULL ? DONE : refused();
}

static int op_reduce_min(Call *c, const Entry *e) {
    static const Pairs loops[] = {OF_NUMBERS(min)};
    int64_t each;
    return reduced(c, e, loops, 4, NULL, &each) != NULL ? DONE : refused();
}

static int op_prod(Call *c, const Entry *e) {
    static const Pairs loops[] = {NULL, NULL, mul_i32, mul_i64};
    static const int32_t narrow = 1;
    static const int64_t wide = 1;
    Value *x = input(c, e, 0, 0);
    int64_t each;
    if (x == NULL) return refused();
    return reduced(c, e, loops, 4, x->kind == I64 ? (const void *)&wide : &narrow, &each) != NULL ? DONE : refused();
}

/* ---- others ---- */

/* The axes along which a gradient is summed for each of two shapes. */
static int op_gradient_axes(Call *c, const Entry *e) {
    int64_t a[MOST_RANK], b[MOST_RANK], found[2][MOST_RANK], many[2] = {0, 0};
    int x = numbers_of(c, e, 0, a, MOST_RANK), y = numbers_of(c, e, 1, b, MOST_RANK), rank = x > y ? x : y;
    if (x < 0 || y < 0) return refused();
    for (int i = 0; i < rank; i++) {
        int64_t first = i < rank - x ? 1 : a[i - (rank - x)], second = i < rank - y ? 1 : b[i - (rank - y)];
        if (first != second && first != 1 && second != 1) return REFUSED;
        if (first == 1) found[0][many[0]++] = i;
        if (second == 1) found[1][many[1]++] = i;
    }
    for (int k = 0; k < 2; k++) {
        Value *out = make(c, e, k, 1, &many[k]);
        if (out == NULL) return refused();
        for (int64_t i = 0; i < many[k]; i++) put_integer(out, i, found[k][i]);
    }
    return DONE;
}

/* The numbers are the bits of the edges, as doubles. They are compared as numbers of the input's type; integers as doubles. */
static int op_bucketize(Call *c, const Entry *e) {
    Value *x = input(c, e, 0, 0), *out;
    if (x == NULL || x->kind == BOOL || (out = make(c, e, 0, x->rank, x->dims)) == NULL) return refused();
    const double *edges = (const double *)e->number;
    for (int64_t i = 0; i < x->count; i++) {
        double number = x->kind == F32 ? (double)((const float *)x->data)[i] : x->kind == F64 ? ((const double *)x->data)[i] : (double)integer_at(x, i);
        int low = 0, high = e->numbers;
        while (low < high) {
            int middle = low + (high - low) / 2;
            if (number < edges[middle])
                high = middle;
            else
                low = middle + 1;
        }
        ((int32_t *)out->data)[i] = low;
    }
    return DONE;
}

/* A condition that holds has no result; one that does not is left to the op's own kernel, which raises the error. */
static int op_assert(Call *c, const Entry *e) {
    Value *condition = input(c, e, 0, 0);
    if (condition == NULL) return refused();
    return condition->kind == BOOL && condition->rank == 0 && condition->data[0] ? DONE : REFUSED;
}

#endif
