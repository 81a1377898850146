/* Choosing between two tensors by booleans, and the places of those that are true (ops/array/selection.py). torch.where branches at each
 * element, which takes about five nanoseconds if the booleans are irregular, as those of dropout are; torch.nonzero takes half of that. */
#include "tensors.h"

#include "../../base/native/teams.h"

#include <string.h>

#include "../../base/native/vectorised.h"

enum { WORTH_A_THREAD = 1 << 15 }; /* elements per thread */

/* Both sides are read at every element, so that the loop has no branch. A step of 0 repeats a single number. */
#define DEFINE_CHOOSE(NAME, TYPE)                                                                                                  \
    VECTORISED static void NAME(TYPE *restrict out, const uint8_t *restrict condition, const TYPE *restrict t, int64_t t_step,     \
                                const TYPE *restrict e, int64_t e_step, int64_t count) {                                           \
        if (t_step && e_step)                                                                                                      \
            for (int64_t i = 0; i < count; i++) {                                                                                  \
                TYPE x = t[i], y = e[i];                                                                                           \
                out[i] = condition[i] ? x : y;                                                                                     \
            }                                                                                                                      \
        else if (t_step)                                                                                                           \
            for (int64_t i = 0; i < count; i++) {                                                                                  \
                TYPE x = t[i], y = *e;                                                                                             \
                out[i] = condition[i] ? x : y;                                                                                     \
            }                                                                                                                      \
        else if (e_step)                                                                                                           \
            for (int64_t i = 0; i < count; i++) {                                                                                  \
                TYPE x = *t, y = e[i];                                                                                             \
                out[i] = condition[i] ? x : y;                                                                                     \
            }                                                                                                                      \
        else                                                                                                                       \
            for (int64_t i = 0; i < count; i++) {                                                                                  \
                TYPE x = *t, y = *e;                                                                                               \
                out[i] = condition[i] ? x : y;                                                                                     \
            }                                                                                                                      \
    }                                                                                                                              \
    static void NAME##_runs(TYPE *restrict out, const uint8_t *condition, const TYPE *t, int64_t t_step, const TYPE *e,            \
                            int64_t e_step, int64_t first, int64_t last, int64_t run) {                                            \
        if (run == 1) {                                                                                                            \
            NAME(out + first, condition + first, t + first * t_step, t_step, e + first * e_step, e_step, last - first);            \
            return;                                                                                                                \
        }                                                                                                                          \
        for (int64_t i = first; i < last; i++) {                                                                                   \
            const TYPE *from = condition[i] ? t : e;                                                                               \
            TYPE *to = out + i * run;                                                                                              \
            if (condition[i] ? t_step : e_step)                                                                                    \
                memcpy(to, from + i * run, (size_t)run * sizeof(TYPE));                                                            \
            else                                                                                                                   \
                for (int64_t j = 0; j < run; j++) to[j] = *from;                                                                   \
        }                                                                                                                          \
    }

DEFINE_CHOOSE(choose_8, uint8_t)
DEFINE_CHOOSE(choose_16, uint16_t)
DEFINE_CHOOSE(choose_32, uint32_t)
DEFINE_CHOOSE(choose_64, uint64_t)

static PyObject *select_elements(PyObject *self, PyObject *args) {
    void *out, *condition, *t, *e;
    int t_step, e_step, size, threads;
    long long count, run;
    (void)self;
    if (!PyArg_ParseTuple(args, "O&O&O&pO&pLLii", to_address, &out, to_address, &condition, to_address, &t, &t_step, to_address, &e, &e_step,
                          &count, &run, &size, &threads))
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    int64_t share = count * run / WORTH_A_THREAD;
    int used = threads_for(share, threads);
#pragma omp parallel for num_threads(team_for(used)) if (used > 1)
    for (int part = 0; part < used; part++) {
        int64_t first = count * part / used, last = count * (part + 1) / used;
        switch (size) {
            case 1: choose_8_runs(out, condition, t, t_step, e, e_step, first, last, run); break;
            case 2: choose_16_runs(out, condition, t, t_step, e, e_step, first, last, run); break;
            case 4: choose_32_runs(out, condition, t, t_step, e, e_step, first, last, run); break;
            default: choose_64_runs(out, condition, t, t_step, e, e_step, first, last, run);
        }
    }
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

VECTORISED static int64_t count_true(const uint8_t *condition, int64_t count) {
    int64_t total = 0;
    for (int64_t from = 0; from < count; from += 128) { /* as many as a byte can count */
        int64_t to = from + 128 < count ? from + 128 : count;
        uint8_t some = 0;
        for (int64_t i = from; i < to; i++) some += condition[i] != 0;
        total += some;
    }
    return total;
}

static PyObject *count_elements(PyObject *self, PyObject *args) {
    const uint8_t *condition;
    long long count, total;
    (void)self;
    if (!PyArg_ParseTuple(args, "O&L", to_address, &condition, &count)) return NULL;
    Py_BEGIN_ALLOW_THREADS;
    total = count_true(condition, count);
    Py_END_ALLOW_THREADS;
    return PyLong_FromLongLong(total);
}

enum { DIMENSIONS = 8 };

/* Stores the coordinates of the true elements of a row, whose leading coordinates are in `at`. The place of the next result is written at every
 * element, and kept only for a true one, so that irregular booleans cost no branches; `limit` guards the end of the results. */
static int64_t *row_places(int64_t *out, const int64_t *limit, const uint8_t *condition, int64_t size, const int64_t *at, int64_t rank) {
    int64_t *next = out + rank - 1;
    for (int64_t j = 0; j < size && next < limit;) {
        uint64_t eight;
        if (j + 8 <= size && (memcpy(&eight, condition + j, 8), eight == 0)) {
            j += 8;
            continue;
        }
        for (int64_t end = j + 8 < size ? j + 8 : size; j < end && next < limit; j++) {
            *next = j;
            next += rank & -(int64_t)(condition[j] != 0);
        }
    }
    for (int64_t *end = next - (rank - 1); out < end; out += rank)
        for (int64_t axis = 0; axis < rank - 1; axis++) out[axis] = at[axis];
    return out;
}

static PyObject *true_places(PyObject *self, PyObject *args) {
    int64_t *out, sizes[DIMENSIONS], at[DIMENSIONS] = {0};
    const uint8_t *condition;
    long long found;
    PyObject *shape;
    (void)self;
    if (!PyArg_ParseTuple(args, "O&LO&O!", to_address, &out, &found, to_address, &condition, &PyTuple_Type, &shape)) return NULL;
    int rank = (int)PyTuple_GET_SIZE(shape);
    if (rank < 1 || rank > DIMENSIONS) return PyErr_Format(PyExc_ValueError, "%d dimensions", rank);
    int64_t rows = 1;
    for (int axis = 0; axis < rank; axis++) {
        sizes[axis] = PyLong_AsLongLong(PyTuple_GET_ITEM(shape, axis));
        if (sizes[axis] == -1 && PyErr_Occurred()) return NULL;
        if (axis < rank - 1) rows *= sizes[axis];
    }
    Py_BEGIN_ALLOW_THREADS;
    const int64_t *limit = out + found * rank;
    for (int64_t row = 0; row < rows; row++, condition += sizes[rank - 1]) {
        out = row_places(out, limit, condition, sizes[rank - 1], at, rank);
        for (int axis = rank - 2; axis >= 0 && ++at[axis] == sizes[axis]; axis--) at[axis] = 0;
    }
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

/* Of `depth` runs of elements of `size` bytes for each `run` of indices, those at the indices are set. Indices outside of [0, depth) set none. */
static PyObject *set_hot(PyObject *self, PyObject *args) {
    char *out;
    const char *on;
    const void *indices;
    int wide, size;
    long long count, depth, run;
    (void)self;
    if (!PyArg_ParseTuple(args, "O&O&LpLLO&i", to_address, &out, to_address, &indices, &count, &wide, &depth, &run, to_address, &on, &size))
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    for (int64_t i = 0; i < count; i += run, out += depth * run * size)
        for (int64_t j = 0; j < run && i + j < count; j++) {
            int64_t at = wide ? ((const int64_t *)indices)[i + j] : ((const int32_t *)indices)[i + j];
            if (at < 0 || at >= depth) continue;
            char *to = out + (at * run + j) * size;
            if (size == 4)
                memcpy(to, on, 4);
            else
                memcpy(to, on, (size_t)size);
        }
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

static PyMethodDef METHODS[] = {
    {"hot", set_hot, METH_VARARGS, "hot(out, indices, count, wide, depth, run, on, size): one-hot rows, where `out` has the other elements already."},
    {"count", count_elements, METH_VARARGS, "count(condition, count): how many of the booleans are true."},
    {"places", true_places, METH_VARARGS,
     "places(out, found, condition, shape): the coordinates of the first `found` true elements, as rows of int64."},
    {"select", select_elements, METH_VARARGS,
     "select(out, condition, t, t_steps, e, e_steps, count, run, size, threads): each of the `count` booleans decides about `run` elements\n"
     "of `size` bytes. A side that does not step is a single number."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "selection", "Choosing between tensors by booleans.", -1, METHODS, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_selection(void) { return tensors_ready() ? PyModule_Create(&MODULE) : NULL; }
