/* Choosing between two tensors by booleans (ops/array/selection.py). torch.where branches at each element, which takes about five
 * nanoseconds if the booleans are irregular, as those of dropout are. */
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

static PyMethodDef METHODS[] = {
    {"select", select_elements, METH_VARARGS,
     "select(out, condition, t, t_steps, e, e_steps, count, run, size, threads): each of the `count` booleans decides about `run` elements\n"
     "of `size` bytes. A side that does not step is a single number."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "selection", "Choosing between tensors by booleans.", -1, METHODS, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_selection(void) { return tensors_ready() ? PyModule_Create(&MODULE) : NULL; }
