/* Transposition of large float32 matrices on torch's threads (both share one OpenMP runtime). torch itself uses one thread. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdint.h>
#include <string.h>

#include "../../base/native/vectorised.h"

enum { TILE = 16 }; /* a cache line of floats */

/* Transposes TILE columns of the input into rows of the output. */
VECTORISED static void transpose_strip(float *restrict to, const float *restrict from, int64_t rows, int64_t cols, int64_t strip) {
    int64_t first = strip * TILE, width = cols - first < TILE ? cols - first : TILE, i = 0;
    from += first, to += first * rows;
    if (width == TILE)
        for (; i + TILE <= rows; i += TILE) {
            float tile[TILE][TILE];
            for (int r = 0; r < TILE; r++)
                for (int c = 0; c < TILE; c++) tile[c][r] = from[(i + r) * cols + c];
            for (int c = 0; c < TILE; c++) memcpy(to + c * rows + i, tile[c], sizeof tile[c]);
        }
    for (; i < rows; i++)
        for (int64_t c = 0; c < width; c++) to[c * rows + i] = from[i * cols + c];
}

static PyObject *transpose(PyObject *self, PyObject *args) {
    Py_buffer to, from;
    long long rows, cols;
    int threads;
    (void)self;
    if (!PyArg_ParseTuple(args, "w*y*LLi", &to, &from, &rows, &cols, &threads)) return NULL;
    int fits = rows >= 0 && cols >= 0 && from.len == to.len && from.len == rows * cols * (Py_ssize_t)sizeof(float);
    if (fits) {
        int64_t strips = (cols + TILE - 1) / TILE;
        Py_BEGIN_ALLOW_THREADS;
#pragma omp parallel for num_threads(threads)
        for (int64_t strip = 0; strip < strips; strip++) transpose_strip(to.buf, from.buf, rows, cols, strip);
        Py_END_ALLOW_THREADS;
    } else {
        PyErr_SetString(PyExc_ValueError, "the arrays do not have the sizes given");
    }
    PyBuffer_Release(&to);
    PyBuffer_Release(&from);
    if (!fits) return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef METHODS[] = {
    {"transpose", transpose, METH_VARARGS, "transpose(to, from, rows, cols, threads): of rows x cols floats."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "transposition", "Transposition on several threads.", -1, METHODS, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_transposition(void) { return PyModule_Create(&MODULE); }
