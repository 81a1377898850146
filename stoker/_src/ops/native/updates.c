/* Variable updates in one pass over memory, on torch's threads. The rules in ops/training/rules.py need a pass per operation. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <stdint.h>

#include "../../base/native/vectorised.h"

enum { BLOCK = 1 << 14 }; /* elements per unit of work */

/* A rule for `count` elements: `numbers` is the rule's own struct of hyperparameters. */
typedef void (*rule)(float *var, float *first_slot, float *second_slot, const float *grad, int64_t count, const void *numbers);

/* Applies `block` to a variable, its two slots and the gradient, then releases the four buffers. */
static PyObject *apply(Py_buffer arrays[4], rule block, const void *numbers, int threads) {
    Py_ssize_t length = arrays[0].len;
    int fits = length % (Py_ssize_t)sizeof(float) == 0;
    for (int i = 1; i < 4; i++) fits = fits && arrays[i].len == length;
    if (fits) {
        float *var = arrays[0].buf, *first = arrays[1].buf, *second = arrays[2].buf;
        const float *grad = arrays[3].buf;
        int64_t size = length / (int64_t)sizeof(float);
        Py_BEGIN_ALLOW_THREADS;
#pragma omp parallel for num_threads(threads) if (size > BLOCK)
        for (int64_t at = 0; at < size; at += BLOCK)
            block(var + at, first + at, second + at, grad + at, size - at < BLOCK ? size - at : BLOCK, numbers);
        Py_END_ALLOW_THREADS;
    } else {
        PyErr_SetString(PyExc_ValueError, "the arrays have different sizes");
    }
    for (int i = 0; i < 4; i++) PyBuffer_Release(&arrays[i]);
    if (!fits) return NULL;
    Py_RETURN_NONE;
}

typedef struct {
    float lr, rho, rest, momentum, epsilon;
} rms_prop_numbers;

/* ms = rho * ms + (1 - rho) * g^2;  mom = momentum * mom + lr * g / sqrt(ms + epsilon);  var -= mom */
VECTORISED static void rms_prop_block(float *restrict var, float *restrict ms, float *restrict mom, const float *restrict grad,
                                  int64_t count, const void *numbers) {
    const rms_prop_numbers n = *(const rms_prop_numbers *)numbers;
    for (int64_t i = 0; i < count; i++) {
        float g = grad[i];
        float square = ms[i] * n.rho + n.rest * g * g;
        float change = mom[i] * n.momentum + n.lr * g / sqrtf(square + n.epsilon);
        ms[i] = square;
        mom[i] = change;
        var[i] -= change;
    }
}

static PyObject *rms_prop(PyObject *self, PyObject *args) {
    Py_buffer arrays[4];
    double lr, rho, momentum, epsilon;
    int threads;
    (void)self;
    if (!PyArg_ParseTuple(args, "w*w*w*y*ddddi", &arrays[0], &arrays[1], &arrays[2], &arrays[3], &lr, &rho, &momentum, &epsilon,
                          &threads))
        return NULL;
    rms_prop_numbers n = {(float)lr, (float)rho, (float)(1 - rho), (float)momentum, (float)epsilon};
    return apply(arrays, rms_prop_block, &n, threads);
}

typedef struct {
    float scale, divide, shrinkage, limit, ridge;
    int rows;
} ftrl_numbers;

/* The rule in rules.py, rounded after every operation. A NaN in the linear slot gives NaN for rows, and 0 for whole variables. */
VECTORISED static void ftrl_block(float *restrict var, float *restrict accum, float *restrict linear, const float *restrict grad,
                                  int64_t count, const void *numbers) {
    const ftrl_numbers n = *(const ftrl_numbers *)numbers;
    for (int64_t i = 0; i < count; i++) {
        float g = grad[i], before = sqrtf(accum[i]), square = g * g, total = accum[i] + square, after = sqrtf(total);
        float pull = n.shrinkage != 0.0f ? g + var[i] * n.shrinkage : g;
        float slope = (after - before) / n.divide * var[i];
        float pulled = linear[i] + (pull * n.scale - slope), below = after / n.divide + n.ridge;
        float clamped = pulled < -n.limit ? -n.limit : pulled > n.limit ? n.limit : pulled; /* keeps NaN */
        float bound = pulled > 0.0f ? n.limit : pulled < 0.0f ? -n.limit : 0.0f; /* not a clamp: the limit may be negative */
        float value = ((n.rows ? clamped : bound) - pulled) / below;
        accum[i] = total;
        linear[i] = pulled;
        var[i] = n.rows || fabsf(pulled) > n.limit ? value : 0.0f;
    }
}

static PyObject *ftrl(PyObject *self, PyObject *args) {
    Py_buffer arrays[4];
    double scale, divide, shrinkage, limit, ridge;
    int rows, threads;
    (void)self;
    if (!PyArg_ParseTuple(args, "w*w*w*y*dddddpi", &arrays[0], &arrays[1], &arrays[2], &arrays[3], &scale, &divide,
                          &shrinkage, &limit, &ridge, &rows, &threads))
        return NULL;
    ftrl_numbers n = {(float)scale, (float)divide, (float)shrinkage, (float)limit, (float)ridge, rows};
    return apply(arrays, ftrl_block, &n, threads);
}

typedef struct {
    float rate, beta1, rest1, rest2, epsilon;
    int nesterov;
} adam_numbers;

/* m += (g - m) * (1 - beta1);  v += (g^2 - v) * (1 - beta2);  var -= rate * m / (sqrt(v) + epsilon), rounded after every operation.
 * With Nesterov momentum, the last m is (1 - beta1) * g + beta1 * m. */
VECTORISED static void adam_block(float *restrict var, float *restrict m, float *restrict v, const float *restrict grad,
                                  int64_t count, const void *numbers) {
    const adam_numbers n = *(const adam_numbers *)numbers;
    for (int64_t i = 0; i < count; i++) {
        float g = grad[i];
        float first = m[i] + (g - m[i]) * n.rest1, second = v[i] + (g * g - v[i]) * n.rest2;
        float ahead = n.nesterov ? g * n.rest1 + first * n.beta1 : first;
        m[i] = first;
        v[i] = second;
        var[i] -= ahead * n.rate / (sqrtf(second) + n.epsilon);
    }
}

static PyObject *adam(PyObject *self, PyObject *args) {
    Py_buffer arrays[4];
    double rate, beta1, rest1, rest2, epsilon;
    int nesterov, threads;
    (void)self;
    if (!PyArg_ParseTuple(args, "w*w*w*y*dddddpi", &arrays[0], &arrays[1], &arrays[2], &arrays[3], &rate, &beta1,
                          &rest1, &rest2, &epsilon, &nesterov, &threads))
        return NULL;
    adam_numbers n = {(float)rate, (float)beta1, (float)rest1, (float)rest2, (float)epsilon, nesterov};
    return apply(arrays, adam_block, &n, threads);
}

static PyMethodDef METHODS[] = {
    {"adam", adam, METH_VARARGS,
     "adam(var, m, v, grad, rate, beta1, 1 - beta1, 1 - beta2, epsilon, nesterov, threads): of float32 arrays."},
    {"ftrl", ftrl, METH_VARARGS,
     "ftrl(var, accum, linear, grad, scale, divide, 2 * l2_shrinkage, limit, 2 * l2 * scale, rows, threads): of float32 arrays."},
    {"rms_prop", rms_prop, METH_VARARGS, "rms_prop(var, ms, mom, grad, lr, rho, momentum, epsilon, threads): of float32 arrays."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "updates", "Updates of variables in one pass.", -1, METHODS, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_updates(void) { return PyModule_Create(&MODULE); }
