/* Variable updates in one pass over memory, on torch's threads. The rules in ops/training/rules.py need a pass per operation.
 *
 * Rows of a large table are updated where they are: the rule is applied to the rows of the variable and of its slots one after the other, in
 * the order of the indices. Callers check dtypes, layouts and sizes; indices are checked here, before anything is written. */
#include "tensors.h"

#include "../../base/native/teams.h"

#include <math.h>

#include "../../base/native/vectorised.h"

enum { BLOCK = 1 << 14 };        /* elements per unit of work */
enum { MOST_ARRAYS = 5, MOST_NUMBERS = 6 };
enum { WORTH_A_THREAD = 1 << 14 }; /* elements of rows per thread */

#define REAL float
#define NAME(rule) rule##_of_floats
#define ROOT sqrtf
#define MAGNITUDE fabsf
#include "update_rules.h"
#undef REAL
#undef NAME
#undef ROOT
#undef MAGNITUDE
#define REAL double
#define NAME(rule) rule##_of_doubles
#define ROOT sqrt
#define MAGNITUDE fabs
#include "update_rules.h"

/* A rule for `count` elements of a variable, its slots and the gradient. */
typedef void (*block)(void *const *arrays, int64_t count, const double *numbers);

typedef struct {
    block of_floats, of_doubles;
    int arrays, numbers;
} rule;

enum { ADAGRAD, MOMENTUM, RMS_PROP, FTRL, ADAM, CENTERED_RMS_PROP, ADADELTA, RULES };
static const rule rules[RULES] = {
    {adagrad_of_floats, adagrad_of_doubles, 3, 1},
    {momentum_of_floats, momentum_of_doubles, 3, 3},
    {rms_prop_of_floats, rms_prop_of_doubles, 4, 4},
    {ftrl_of_floats, ftrl_of_doubles, 4, 6},
    {adam_of_floats, adam_of_doubles, 4, 6},
    {centered_rms_prop_of_floats, centered_rms_prop_of_doubles, 5, 4},
    {adadelta_of_floats, adadelta_of_doubles, 4, 3},
};

static int parsed_numbers(PyObject *tuple, double *numbers, Py_ssize_t wanted) {
    if (PyTuple_GET_SIZE(tuple) != wanted) {
        PyErr_Format(PyExc_ValueError, "the rule has %zd numbers, not %zd", wanted, PyTuple_GET_SIZE(tuple));
        return 0;
    }
    for (Py_ssize_t i = 0; i < wanted; i++)
        if ((numbers[i] = PyFloat_AsDouble(PyTuple_GET_ITEM(tuple, i))) == -1.0 && PyErr_Occurred()) return 0;
    return 1;
}

static PyObject *whole(PyObject *self, PyObject *args) {
    int which, wide, threads;
    long long size;
    PyObject *tensors, *tuple;
    char *arrays[MOST_ARRAYS];
    double numbers[MOST_NUMBERS];
    (void)self;
    if (!PyArg_ParseTuple(args, "iO!LpO!i", &which, &PyTuple_Type, &tensors, &size, &wide, &PyTuple_Type, &tuple, &threads)) return NULL;
    if (which < 0 || which >= RULES) return PyErr_Format(PyExc_ValueError, "there is no rule %d", which);
    const rule *chosen = &rules[which];
    if (PyTuple_GET_SIZE(tensors) != chosen->arrays)
        return PyErr_Format(PyExc_ValueError, "the rule has %d arrays, not %zd", chosen->arrays, PyTuple_GET_SIZE(tensors));
    for (int k = 0; k < chosen->arrays; k++)
        if (!to_address(PyTuple_GET_ITEM(tensors, k), &arrays[k])) return NULL;
    if (!parsed_numbers(tuple, numbers, chosen->numbers)) return NULL;
    const block change = wide ? chosen->of_doubles : chosen->of_floats;
    const int64_t item = wide ? sizeof(double) : sizeof(float);
    Py_BEGIN_ALLOW_THREADS;
#pragma omp parallel for num_threads(threads) if (size > BLOCK)
    for (int64_t at = 0; at < size; at += BLOCK) {
        void *here[MOST_ARRAYS];
        for (int k = 0; k < chosen->arrays; k++) here[k] = arrays[k] + at * item;
        change(here, size - at < BLOCK ? size - at : BLOCK, numbers);
    }
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

/* ---- rows ---- */

static inline int64_t index_at(const void *indices, int wide, int64_t i) {
    return wide ? ((const int64_t *)indices)[i] : ((const int32_t *)indices)[i];
}

static PyObject *rows(PyObject *self, PyObject *args) {
    int which, wide, threads;
    float *var, *first, *second, *grad;
    void *indices;
    PyObject *tuple;
    long long count, size, width;
    double numbers[MOST_NUMBERS];
    (void)self;
    if (!PyArg_ParseTuple(args, "iO&O&O&O&O&LpLLiO!", &which, to_address, &var, to_address, &first, to_address_or_null, &second, to_address,
                          &grad, to_address, &indices, &count, &wide, &size, &width, &threads, &PyTuple_Type, &tuple))
        return NULL;
    if (which < 0 || which >= RULES || rules[which].arrays != (second == NULL ? 3 : 4))
        return PyErr_Format(PyExc_ValueError, "there is no rule %d for rows with this many slots", which);
    if (!parsed_numbers(tuple, numbers, rules[which].numbers)) return NULL;
    const block change = rules[which].of_floats;
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
                if (used > 1 && at % used != part) continue;
                float *update = grad + i * width;
                void *here[4] = {var + start, first + start, second == NULL ? update : second + start, update};
                change(here, width, numbers);
            }
    }
    Py_END_ALLOW_THREADS;
    return PyBool_FromLong(fine);
}

static PyMethodDef METHODS[] = {
    {"whole", whole, METH_VARARGS,
     "whole(rule, (var, slots ..., grad), size, are float64, numbers, threads): updates a variable in place."},
    {"rows", rows, METH_VARARGS,
     "rows(rule, var, slot, slot or None, grad, indices, count, wide, size, width, threads, numbers): updates rows of float32 tables in place. "
     "False, with nothing done, if an index is outside of [0, size)."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "updates", "Updates of variables in one pass.", -1, METHODS, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_updates(void) {
    PyObject *m = tensors_ready() ? PyModule_Create(&MODULE) : NULL;
    static const char *const names[RULES] = {"ADAGRAD", "MOMENTUM", "RMS_PROP", "FTRL", "ADAM", "CENTERED_RMS_PROP", "ADADELTA"};
    for (int k = 0; m != NULL && k < RULES; k++)
        if (PyModule_AddIntConstant(m, names[k], k) < 0) Py_CLEAR(m);
    return m;
}
