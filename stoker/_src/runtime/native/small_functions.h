/* Small ops of float32: elementary functions, products of matrices, biases and softmax. */
#ifndef STOKER_SMALL_FUNCTIONS_H
#define STOKER_SMALL_FUNCTIONS_H

#include "small_floats.h"
#include "small_rows.h"

enum { MOST_PRODUCTS = 1 << 21 }; /* multiplications that threads should share */

static int each_float(Call *c, const Entry *e, FloatLoop loop) {
    Value *x = input(c, e, 0, 0), *out;
    if (x == NULL || x->kind != F32 || (out = make(c, e, 0, x->rank, x->dims)) == NULL) return refused();
    PyThreadState *saved = let_others(x->count);
    loop((float *)out->data, (const float *)x->data, x->count);
    back(saved);
    return DONE;
}

#define DEFINE_FUNCTION(NAME) \
    static int op_##NAME(Call *c, const Entry *e) { return each_float(c, e, floats.NAME); }

DEFINE_FUNCTION(exp)
DEFINE_FUNCTION(log)
DEFINE_FUNCTION(log1p)
DEFINE_FUNCTION(tanh)
DEFINE_FUNCTION(sigmoid)
DEFINE_FUNCTION(rsqrt)
DEFINE_FUNCTION(reciprocal)
DEFINE_FUNCTION(relu)

static int same_shape(const Value *x, const Value *y) {
    return x->kind == y->kind && x->rank == y->rank && !memcmp(x->dims, y->dims, (size_t)x->rank * sizeof *x->dims);
}

static int paired_floats(Call *c, const Entry *e, FloatPairs loop) {
    Value *x = input(c, e, 0, 0), *y = input(c, e, 1, 0), *out;
    if (x == NULL || y == NULL) return refused();
    if (x->kind != F32 || !same_shape(x, y)) return REFUSED;
    if ((out = make(c, e, 0, x->rank, x->dims)) == NULL) return refused();
    loop((float *)out->data, (const float *)x->data, (const float *)y->data, x->count, 1, 1);
    return DONE;
}

#define DEFINE_SLOPE(NAME) \
    static int op_##NAME(Call *c, const Entry *e) { return paired_floats(c, e, floats.NAME); }

DEFINE_SLOPE(tanh_grad)
DEFINE_SLOPE(sigmoid_grad)
DEFINE_SLOPE(relu_grad)
DEFINE_SLOPE(sqrt_grad)
DEFINE_SLOPE(rsqrt_grad)
DEFINE_SLOPE(reciprocal_grad)
DEFINE_SLOPE(square_difference)

/* The number is the bits of the slope below zero, as a double. */
static float slope_of(const Entry *e) {
    double slope;
    memcpy(&slope, e->number, sizeof slope);
    return (float)slope;
}

static int op_leaky_relu(Call *c, const Entry *e) {
    Value *x = input(c, e, 0, 0), *out;
    if (x == NULL || x->kind != F32 || (out = make(c, e, 0, x->rank, x->dims)) == NULL) return refused();
    float slope = slope_of(e);
    floats.leaky_relu((float *)out->data, (const float *)x->data, &slope, x->count, 1, 0);
    return DONE;
}

static int op_leaky_relu_grad(Call *c, const Entry *e) {
    Value *g = input(c, e, 0, 0), *x = input(c, e, 1, 0), *out;
    if (g == NULL || x == NULL) return refused();
    if (g->kind != F32 || !same_shape(g, x)) return REFUSED;
    if ((out = make(c, e, 0, x->rank, x->dims)) == NULL) return refused();
    float slope = slope_of(e);
    for (int64_t i = 0; i < x->count; i++) {
        float gradient = ((const float *)g->data)[i];
        ((float *)out->data)[i] = ((const float *)x->data)[i] > 0 ? gradient : gradient * slope;
    }
    return DONE;
}

/* Products of two matrices, or of as many pairs as the outer dimensions have elements. The numbers say which are transposed. */
static int op_matmul(Call *c, const Entry *e) {
    Value *a = input(c, e, 0, 0), *b = input(c, e, 1, 0), *out;
    if (a == NULL || b == NULL) return refused();
    if (a->kind != F32 || b->kind != F32 || a->rank != b->rank || a->rank < 2) return REFUSED;
    int64_t count = 1, dims[MOST_RANK];
    int rank = a->rank;
    for (int i = 0; i < rank - 2; i++) {
        if (a->dims[i] != b->dims[i]) return REFUSED;
        count *= dims[i] = a->dims[i];
    }
    int turned_a = (int)e->number[0], turned_b = (int)e->number[1];
    int64_t m = a->dims[rank - 2 + turned_a], k = a->dims[rank - 1 - turned_a], n = b->dims[rank - 1 - turned_b];
    if (b->dims[rank - 2 + turned_b] != k || m * n * k == 0 || a->count > MOST_PRODUCTS || b->count > MOST_PRODUCTS) return REFUSED;
    if (m * k > MOST_PRODUCTS / n || count > MOST_PRODUCTS / (m * k * n)) return REFUSED;
    dims[rank - 2] = m;
    dims[rank - 1] = n;
    if ((out = make(c, e, 0, rank, dims)) == NULL) return refused();
    int fine = 1;
    PyThreadState *saved = let_others(m * k * n * count / 8);
    for (int64_t i = 0; fine && i < count; i++)
        fine = floats.product((float *)out->data + i * m * n, (const float *)a->data + i * m * k, (const float *)b->data + i * k * n, m, k, n, turned_a,
                              turned_b);
    back(saved);
    return fine ? DONE : REFUSED;
}

static int op_bias_add(Call *c, const Entry *e) {
    Value *x = input(c, e, 0, 0), *bias = input(c, e, 1, 0), *out;
    if (x == NULL || bias == NULL) return refused();
    if (x->kind != F32 || bias->kind != F32 || x->rank < 2 || bias->rank != 1 || bias->count != x->dims[x->rank - 1]) return REFUSED;
    if ((out = make(c, e, 0, x->rank, x->dims)) == NULL) return refused();
    int64_t width = bias->count;
    for (int64_t at = 0; width && at < x->count; at += width)
        add_f32(out->data + at * 4, x->data + at * 4, 1, bias->data, 1, width);
    return DONE;
}

static int op_bias_add_grad(Call *c, const Entry *e) {
    Value *g = input(c, e, 0, 0), *out;
    if (g == NULL || g->kind != F32 || g->rank < 2) return refused();
    int64_t width = g->dims[g->rank - 1];
    if (width == 0 || g->count == 0 || g->count / width > 1 << 15 || (out = make(c, e, 0, 1, &width)) == NULL) return refused();
    floats.sum((float *)out->data, (const float *)g->data, 1, g->count / width, width, 1.0f);
    return DONE;
}

static int op_softmax(Call *c, const Entry *e) {
    Value *x = input(c, e, 0, 0), *out;
    if (x == NULL || x->kind != F32 || x->rank == 0 || x->count == 0 || x->count > MOST_WORK) return refused();
    if ((out = make(c, e, 0, x->rank, x->dims)) == NULL) return refused();
    int64_t columns = x->dims[x->rank - 1];
    floats.softmax((float *)out->data, (const float *)x->data, x->count / columns, columns);
    return DONE;
}

static int op_l2_loss(Call *c, const Entry *e) {
    Value *x = input(c, e, 0, 0), *out;
    if (x == NULL || x->kind != F32 || x->count > MOST_WORK || (out = make(c, e, 0, 0, NULL)) == NULL) return refused();
    float lanes[16] = {0}, sum = 0;
    const float *from = (const float *)x->data;
    for (int64_t i = 0; i < x->count; i++) lanes[i & 15] += from[i] * from[i];
    for (int i = 0; i < 16; i++) sum += lanes[i];
    *(float *)out->data = sum * 0.5f;
    return DONE;
}

#endif
