/* Edit distances of many pairs of sequences (ops/sparse/sparse_features.py). */
#include "tensors.h"

#include <stdlib.h>

/* Insertions, deletions and substitutions that turn one sequence into the other. `row` has room for one more number than `second` has. */
static int64_t distance(const int64_t *first, int64_t rows, const int64_t *second, int64_t columns, int64_t *row) {
    for (int64_t j = 0; j <= columns; j++) row[j] = j;
    for (int64_t i = 0; i < rows; i++) {
        int64_t diagonal = row[0], before = row[0] = i + 1;
        for (int64_t j = 0; j < columns; j++) {
            int64_t changed = diagonal + (first[i] != second[j]), above = row[j + 1];
            int64_t least = (above < before ? above : before) + 1;
            diagonal = above;
            before = row[j + 1] = changed < least ? changed : least;
        }
    }
    return row[columns];
}

static PyObject *distances(PyObject *self, PyObject *args) {
    const int64_t *first, *first_starts, *second, *second_starts;
    int64_t *out;
    Py_ssize_t pairs;
    (void)self;
    if (!PyArg_ParseTuple(args, "O&O&O&O&O&n", to_address, &out, to_address, &first, to_address, &first_starts, to_address, &second,
                          to_address, &second_starts, &pairs))
        return NULL;
    int64_t longest = 0;
    for (Py_ssize_t i = 0; i < pairs; i++)
        if (second_starts[i + 1] - second_starts[i] > longest) longest = second_starts[i + 1] - second_starts[i];
    int64_t *row = malloc((size_t)(longest + 1) * sizeof *row);
    if (row == NULL) return PyErr_NoMemory();
    Py_BEGIN_ALLOW_THREADS;
    for (Py_ssize_t i = 0; i < pairs; i++)
        out[i] = distance(first + first_starts[i], first_starts[i + 1] - first_starts[i], second + second_starts[i],
                          second_starts[i + 1] - second_starts[i], row);
    Py_END_ALLOW_THREADS;
    free(row);
    Py_RETURN_NONE;
}

static PyMethodDef METHODS[] = {
    {"distances", distances, METH_VARARGS,
     "distances(out, first, first_starts, second, second_starts, pairs): pair i has the elements from start i to start i + 1, all int64."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "distances", "Edit distances of many pairs of sequences.", -1, METHODS, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_distances(void) { return tensors_ready() ? PyModule_Create(&MODULE) : NULL; }
