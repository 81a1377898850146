/* The k largest elements of each row of a float32 matrix, in descending order; of equal elements the first comes first. For a small k. */
#include "tensors.h"

static int largest_of_row(float *values, int64_t *places, const float *row, int64_t columns, int64_t k) {
    int64_t found = 0;
    for (int64_t j = 0; j < columns; j++) {
        float x = row[j];
        if (x != x) return 0; /* where a NaN belongs is torch's decision */
        if (found == k && !(x > values[k - 1])) continue;
        int64_t at = found < k ? found++ : k - 1;
        for (; at > 0 && values[at - 1] < x; at--) {
            values[at] = values[at - 1];
            places[at] = places[at - 1];
        }
        values[at] = x;
        places[at] = j;
    }
    return 1;
}

static PyObject *top_k(PyObject *self, PyObject *args) {
    float *values;
    int64_t *places;
    const float *input;
    long long rows, columns, k;
    (void)self;
    if (!PyArg_ParseTuple(args, "O&O&O&LLL", to_address, &values, to_address, &places, to_address, &input, &rows, &columns, &k)) return NULL;
    int fine = 1;
    Py_BEGIN_ALLOW_THREADS;
    for (int64_t i = 0; fine && i < rows; i++) fine = largest_of_row(values + i * k, places + i * k, input + i * columns, columns, k);
    Py_END_ALLOW_THREADS;
    return PyBool_FromLong(fine);
}

static PyMethodDef METHODS[] = {
    {"top_k", top_k, METH_VARARGS, "top_k(values, places, input, rows, columns, k): False if there is a NaN. `places` is int64; k <= columns."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "largest", "The largest elements of rows.", -1, METHODS, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_largest(void) { return tensors_ready() ? PyModule_Create(&MODULE) : NULL; }
