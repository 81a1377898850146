/* Variable updates in one pass over memory, on torch's threads. The rules in ops/training/rules.py need a pass per operation.
 *
 * Rows of a large table are updated where they are: the rule is applied to the rows of the variable and of its slots one after the other, in
 * the order of the indices. Callers check dtypes, layouts and sizes; indices are checked here, before anything is written. */
#include "tensors.h"

#include "../../base/native/teams.h"

#include <math.h>

#include "../../base/native/vectorised.h"

enum { BLOCK = 1 << 14 }; /* elements per unit of work */

/* A rule for `count` elements: `numbers` is the rule's own struct of hyperparameters. */
typedef void (*rule)(float *var, float *first_slot, float *second_slot, const float *grad, int64_t count, const void *numbers);

/* Applies `block` to a variable, its two slots and the gradient, of `size` elements each. */
static PyObject *apply(float *const arrays[4], int64_t size, rule block, const void *numbers, int threads) {
    float *var = arrays[0], *first = arrays[1], *second = arrays[2];
    const float *grad = arrays[3];
    Py_BEGIN_ALLOW_THREADS;
#pragma omp parallel for num_threads(threads) if (size > BLOCK)
    for (int64_t at = 0; at < size; at += BLOCK)
        block(var + at, first + at, second + at, grad + at, size - at < BLOCK ? size - at : BLOCK, numbers);
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

#define ARRAYS "O&O&O&O&L"
#define TO_ARRAYS to_address, &arrays[0], to_address, &arrays[1], to_address, &arrays[2], to_address, &arrays[3], &size

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
    float *arrays[4];
    long long size;
    double lr, rho, momentum, epsilon;
    int threads;
    (void)self;
    if (!PyArg_ParseTuple(args, ARRAYS "ddddi", TO_ARRAYS, &lr, &rho, &momentum, &epsilon, &threads)) return NULL;
    rms_prop_numbers n = {(float)lr, (float)rho, (float)(1 - rho), (float)momentum, (float)epsilon};
    return apply(arrays, size, rms_prop_block, &n, threads);
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
    float *arrays[4];
    long long size;
    double scale, divide, shrinkage, limit, ridge;
    int rows, threads;
    (void)self;
    if (!PyArg_ParseTuple(args, ARRAYS "dddddpi", TO_ARRAYS, &scale, &divide, &shrinkage, &limit, &ridge, &rows, &threads)) return NULL;
    ftrl_numbers n = {(float)scale, (float)divide, (float)shrinkage, (float)limit, (float)ridge, rows};
    return apply(arrays, size, ftrl_block, &n, threads);
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
    float *arrays[4];
    long long size;
    double rate, beta1, rest1, rest2, epsilon;
    int nesterov, threads;
    (void)self;
    if (!PyArg_ParseTuple(args, ARRAYS "dddddpi", TO_ARRAYS, &rate, &beta1, &rest1, &rest2, &epsilon, &nesterov, &threads)) return NULL;
    adam_numbers n = {(float)rate, (float)beta1, (float)rest1, (float)rest2, (float)epsilon, nesterov};
    return apply(arrays, size, adam_block, &n, threads);
}

/* ---- rows ---- */

typedef struct {
    float lr, momentum;
    int nesterov;
} descent_numbers;

/* accum += g^2;  var -= lr * g / sqrt(accum) */
VECTORISED static void adagrad_block(float *restrict var, float *restrict accum, float *unused, const float *restrict grad, int64_t count,
                                     const void *numbers) {
    const float lr = ((const descent_numbers *)numbers)->lr;
    (void)unused;
    for (int64_t i = 0; i < count; i++) {
        float total = accum[i] + grad[i] * grad[i];
        accum[i] = total;
        var[i] -= lr * grad[i] / sqrtf(total);
    }
}

/* accum = momentum * accum + g;  var -= lr * accum, or with Nesterov momentum lr * (g + momentum * accum) */
VECTORISED static void momentum_block(float *restrict var, float *restrict accum, float *unused, const float *restrict grad, int64_t count,
                                      const void *numbers) {
    const descent_numbers n = *(const descent_numbers *)numbers;
    (void)unused;
    for (int64_t i = 0; i < count; i++) {
        float moved = accum[i] * n.momentum + grad[i];
        accum[i] = moved;
        var[i] -= n.lr * (n.nesterov ? grad[i] + n.momentum * moved : moved);
    }
}

enum { ADAGRAD, MOMENTUM, RMS_PROP, FTRL, RULES };
static const rule row_rules[RULES] = {adagrad_block, momentum_block, rms_prop_block, ftrl_block};
enum { WORTH_A_THREAD = 1 << 14 }; /* elements per thread */

static inline int64_t index_at(const void *indices, int wide, int64_t i) {
    return wide ? ((const int64_t *)indices)[i] : ((const int32_t *)indices)[i];
}

static PyObject *rows(PyObject *self, PyObject *args) {
    int which, wide, threads;
    float *var, *first, *second, *grad;
    void *indices;
    long long count, size, width;
    double a, b, c, d, e;
    (void)self;
    if (!PyArg_ParseTuple(args, "iO&O&O&O&O&LpLLi(ddddd)", &which, to_address, &var, to_address, &first, to_address_or_null, &second, to_address,
                          &grad, to_address, &indices, &count, &wide, &size, &width, &threads, &a, &b, &c, &d, &e))
        return NULL;
    if (which < 0 || which >= RULES) return PyErr_Format(PyExc_ValueError, "there is no rule %d", which);
    descent_numbers descent = {(float)a, (float)b, c != 0.0};
    rms_prop_numbers rms = {(float)a, (float)b, (float)(1 - b), (float)c, (float)d};
    ftrl_numbers linear = {(float)a, (float)b, (float)c, (float)d, (float)e, 1};
    const void *numbers = which == RMS_PROP ? (const void *)&rms : which == FTRL ? (const void *)&linear : (const void *)&descent;
    const rule block = row_rules[which];
    int fine = 1;
    Py_BEGIN_ALLOW_THREADS;
    for (int64_t i = 0; i < count; i++) {
        int64_t at = index_at(indices, wide, i);
        fine &= at >= 0 && at < size;
    }
    if (fine) {
        int64_t share = count * width / WORTH_A_THREAD;
        int used = threads_for(share, threads);
#pragma omp parallel for num_threads(team_for(used)) if (used > 1)
        for (int part = 0; part < used; part++) /* a row belongs to one thread */
            for (int64_t i = 0; i < count; i++) {
                int64_t at = index_at(indices, wide, i), start = at * width;
                if (used == 1 || at % used == part)
                    block(var + start, first + start, second == NULL ? NULL : second + start, grad + i * width, width, numbers);
            }
    }
    Py_END_ALLOW_THREADS;
    return PyBool_FromLong(fine);
}

static PyMethodDef METHODS[] = {
    {"adam", adam, METH_VARARGS,
     "adam(var, m, v, grad, size, rate, beta1, 1 - beta1, 1 - beta2, epsilon, nesterov, threads): of float32 arrays."},
    {"ftrl", ftrl, METH_VARARGS,
     "ftrl(var, accum, linear, grad, size, scale, divide, 2 * l2_shrinkage, limit, 2 * l2 * scale, rows, threads): of float32 arrays."},
    {"rms_prop", rms_prop, METH_VARARGS, "rms_prop(var, ms, mom, grad, size, lr, rho, momentum, epsilon, threads): of float32 arrays."},
    {"rows", rows, METH_VARARGS,
     "rows(rule, var, slot, slot or None, grad, indices, count, wide, size, width, threads, five numbers): updates rows of float32 tables in place. "
     "False, with nothing done, if an index is outside of [0, size)."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "updates", "Updates of variables in one pass.", -1, METHODS, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_updates(void) {
    PyObject *m = tensors_ready() ? PyModule_Create(&MODULE) : NULL;
    if (m != NULL && (PyModule_AddIntConstant(m, "ADAGRAD", ADAGRAD) < 0 || PyModule_AddIntConstant(m, "MOMENTUM", MOMENTUM) < 0 ||
                      PyModule_AddIntConstant(m, "RMS_PROP", RMS_PROP) < 0 || PyModule_AddIntConstant(m, "FTRL", FTRL) < 0))
        Py_CLEAR(m);
    return m;
}
