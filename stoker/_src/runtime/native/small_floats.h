/* The loops of float32 that small ops share with programs. Their functions would have the names of others in one file. */
#ifndef STOKER_SMALL_FLOATS_H
#define STOKER_SMALL_FLOATS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

typedef void (*FloatLoop)(float *restrict, const float *, int64_t);
typedef void (*FloatPairs)(float *restrict, const float *, const float *, int64_t, int, int); /* with the steps of both operands */

typedef struct {
    FloatLoop exp, log, log1p, tanh, sigmoid, rsqrt, reciprocal, relu;
    FloatPairs tanh_grad, sigmoid_grad, relu_grad, sqrt_grad, rsqrt_grad, reciprocal_grad, square_difference, leaky_relu;
    void (*softmax)(float *restrict, const float *, int64_t, int64_t);
    void (*sum)(float *restrict, const float *, int64_t, int64_t, int64_t, float); /* over the middle one of three dimensions, divided */
    int (*product)(float *, const float *, const float *, int64_t, int64_t, int64_t, int, int);
    PyObject *(*set_gemm)(PyObject *, PyObject *);
} Floats;

#if defined(__GNUC__)
#pragma GCC visibility push(hidden)
#endif
extern const Floats floats;
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#endif
