/* Variable updates in one pass over memory, on torch's threads. The rules in ops/training/rules.py need a pass per operation. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <stdint.h>

#include "../../base/native/vectorised.h"

enum { BLOCK = 1 << 14 }; /* elements per unit of work */

typedef struct {
    float lr, rho, rest, momentum, epsilon;
} rms_prop_numbers;

/* ms = rho * ms + (1 - rho) * g^2;  mom = momentum * mom + lr * g / sqrt(ms + epsilon);  var -= mom */
VECTORISED static void rms_prop_block(float *restrict var, float *restrict ms, float *restrict mom, const float *restrict grad,
                                  int64_t count, const rms_prop_numbers *given) {
    const rms_prop_numbers n = *given;
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
    Py_buffer var, ms, mom, grad;
    double lr, rho, momentum, epsilon;
    int threads;
    (void)self;
    if (!PyArg_ParseTuple(args, "w*w*w*y*ddddi", &var, &ms, &mom, &grad, &lr, &rho, &momentum, &epsilon, &threads)) return NULL;
    int fits = var.len == ms.len && var.len == mom.len && var.len == grad.len && var.len % (Py_ssize_t)sizeof(float) == 0;
    if (fits) {
        rms_prop_numbers n = {(float)lr, (float)rho, (float)(1 - rho), (float)momentum, (float)epsilon};
        int64_t size = var.len / (int64_t)sizeof(float);
        Py_BEGIN_ALLOW_THREADS;
#pragma omp parallel for num_threads(threads) if (size > BLOCK)
        for (int64_t at = 0; at < size; at += BLOCK) {
            int64_t count = size - at < BLOCK ? size - at : BLOCK;
            rms_prop_block((float *)var.buf + at, (float *)ms.buf + at, (float *)mom.buf + at, (const float *)grad.buf + at, count, &n);
        }
        Py_END_ALLOW_THREADS;
    } else {
        PyErr_SetString(PyExc_ValueError, "the arrays have different sizes");
    }
    PyBuffer_Release(&var);
    PyBuffer_Release(&ms);
    PyBuffer_Release(&mom);
    PyBuffer_Release(&grad);
    if (!fits) return NULL;
    Py_RETURN_NONE;
}

typedef struct {
    float scale, divide, shrinkage, limit, ridge;
    int rows;
} ftrl_numbers;

/* The rule in rules.py, rounded after every operation. A NaN in the linear slot gives NaN for rows, and 0 for whole variables. */
VECTORISED static void ftrl_block(float *restrict var, float *restrict accum, float *restrict linear, const float *restrict grad,
                                  int64_t count, const ftrl_numbers *given) {
    const ftrl_numbers n = *given;
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
    Py_buffer var, accum, linear, grad;
    double scale, divide, shrinkage, limit, ridge;
    int rows, threads;
    (void)self;
    if (!PyArg_ParseTuple(args, "w*w*w*y*dddddpi", &var, &accum, &linear, &grad, &scale, &divide, &shrinkage, &limit, &ridge, &rows,
                          &threads))
        return NULL;
    int fits = var.len == accum.len && var.len == linear.len && var.len == grad.len && var.len % (Py_ssize_t)sizeof(float) == 0;
    if (fits) {
        ftrl_numbers n = {(float)scale, (float)divide, (float)shrinkage, (float)limit, (float)ridge, rows};
        int64_t size = var.len / (int64_t)sizeof(float);
        Py_BEGIN_ALLOW_THREADS;
#pragma omp parallel for num_threads(threads) if (size > BLOCK)
        for (int64_t at = 0; at < size; at += BLOCK) {
            int64_t count = size - at < BLOCK ? size - at : BLOCK;
            ftrl_block((float *)var.buf + at, (float *)accum.buf + at, (float *)linear.buf + at, (const float *)grad.buf + at, count, &n);
        }
        Py_END_ALLOW_THREADS;
    } else {
        PyErr_SetString(PyExc_ValueError, "the arrays have different sizes");
    }
    PyBuffer_Release(&var);
    PyBuffer_Release(&accum);
    PyBuffer_Release(&linear);
    PyBuffer_Release(&grad);
    if (!fits) return NULL;
    Py_RETURN_NONE;
}

typedef struct {
    float rate, beta1, rest1, rest2, epsilon;
    int nesterov;
} adam_numbers;

/* m += (g - m) * (1 - beta1);  v += (g^2 - v) * (1 - beta2);  var -= rate * m / (sqrt(v) + epsilon), rounded after every operation.
 * With Nesterov momentum, the last m is (1 - beta1) * g + beta1 * m. */
VECTORISED static void adam_block(float *restrict var, float *restrict m, float *restrict v, const float *restrict grad, int64_t count,
                                  const adam_numbers *given) {
    const adam_numbers n = *given;
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
    Py_buffer var, m, v, grad;
    double rate, beta1, rest1, rest2, epsilon;
    int nesterov, threads;
    (void)self;
    if (!PyArg_ParseTuple(args, "w*w*w*y*dddddpi", &var, &m, &v, &grad, &rate, &beta1, &rest1, &rest2, &epsilon, &nesterov, &threads))
        return NULL;
    int fits = var.len == m.len && var.len == v.len && var.len == grad.len && var.len % (Py_ssize_t)sizeof(float) == 0;
    if (fits) {
        adam_numbers n = {(float)rate, (float)beta1, (float)rest1, (float)rest2, (float)epsilon, nesterov};
        int64_t size = var.len / (int64_t)sizeof(float);
        Py_BEGIN_ALLOW_THREADS;
#pragma omp parallel for num_threads(threads) if (size > BLOCK)
        for (int64_t at = 0; at < size; at += BLOCK) {
            int64_t count = size - at < BLOCK ? size - at : BLOCK;
            adam_block((float *)var.buf + at, (float *)m.buf + at, (float *)v.buf + at, (const float *)grad.buf + at, count, &n);
        }
        Py_END_ALLOW_THREADS;
    } else {
        PyErr_SetString(PyExc_ValueError, "the arrays have different sizes");
    }
    PyBuffer_Release(&var);
    PyBuffer_Release(&m);
    PyBuffer_Release(&v);
    PyBuffer_Release(&grad);
    if (!fits) return NULL;
    Py_RETURN_NONE;
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
