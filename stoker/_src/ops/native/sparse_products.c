/* The product of a sparse and a dense float32 matrix: rows of the dense one, times a number each, are added to rows of the result.
 *
 * Entries are added in their order, and threads share the columns, so results do not depend on the number of threads. */
#include "tensors.h"

#include <string.h>

#include "../../base/native/teams.h"
#include "../../base/native/vectorised.h"

enum { WORTH_A_THREAD = 1 << 16 }; /* multiplications per thread */

static inline int64_t number_at(const void *indices, int wide, int64_t i) {
    return wide ? ((const int64_t *)indices)[i] : ((const int32_t *)indices)[i];
}

VECTORISED static void add_row(float *restrict to, const float *restrict from, float times, int64_t width) {
    for (int64_t j = 0; j < width; j++) to[j] += times * from[j];
}

static PyObject *multiply(PyObject *self, PyObject *args) {
    float *out;
    const float *values, *dense;
    const void *indices;
    long long count, rows, inner, width;
    int wide, adjoint, threads;
    (void)self;
    if (!PyArg_ParseTuple(args, "O&O&O&O&LLLLppi", to_address, &out, to_address, &indices, to_address, &values, to_address, &dense, &count, &rows,
                          &inner, &width, &wide, &adjoint, &threads))
        return NULL;
    int fine = 1;
    Py_BEGIN_ALLOW_THREADS;
    for (int64_t i = 0; i < count; i++) {
        int64_t row = number_at(indices, wide, 2 * i + adjoint), column = number_at(indices, wide, 2 * i + !adjoint);
        fine &= row >= 0 && row < rows && column >= 0 && column < inner;
    }
    if (fine) {
        int64_t share = count * width / WORTH_A_THREAD, lanes = width / 16;
        int used = share < 2 || lanes < 2 ? 1 : (int)(share < threads ? share : threads);
        if (used > lanes && lanes > 0) used = (int)lanes;
        memset(out, 0, (size_t)(rows * width) * sizeof(float));
#pragma omp parallel for num_threads(team_for(used)) if (used > 1)
        for (int part = 0; part < used; part++) {
            int64_t first = part ? lanes * part / used * 16 : 0, last = part + 1 == used ? width : lanes * (part + 1) / used * 16;
            for (int64_t i = 0; i < count; i++) {
                int64_t row = number_at(indices, wide, 2 * i + adjoint), column = number_at(indices, wide, 2 * i + !adjoint);
                add_row(out + row * width + first, dense + column * width + first, values[i], last - first);
            }
        }
    }
    Py_END_ALLOW_THREADS;
    return PyBool_FromLong(fine);
}

static PyMethodDef METHODS[] = {
    {"multiply", multiply, METH_VARARGS,
     "multiply(out, indices, values, dense, count, rows, inner, width, wide, adjoint, threads): out[rows, width] = the sparse matrix (or its "
     "transpose) times dense[inner, width]. False, with nothing written, if an index is out of range."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "sparse_products", "Products of sparse and dense matrices.", -1, METHODS, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_sparse_products(void) { return tensors_ready() ? PyModule_Create(&MODULE) : NULL; }
