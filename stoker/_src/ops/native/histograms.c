/* Histograms of summaries (ops/summary/messages.py). NumPy's binary search takes some twenty nanoseconds for each number. */
#include "tensors.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { CELLS = 1 << 16 }; /* numbers whose upper 16 bits are the same */

typedef struct {
    double least, most, sum, squares;
    int has_nan, has_infinity;
} totals;

/* Adds one number to its bucket, the first whose limit is above it. `starts` has the bucket of the least number of each cell. */
static inline void count_one(totals *of, double x, const double *limits, Py_ssize_t last, const int32_t *starts, double *counts) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (!isfinite(x)) {
        if (isnan(x)) of->has_nan = 1;
        else of->has_infinity = 1;
        return;
    }
    if (x < of->least) of->least = x;
    if (x > of->most) of->most = x;
    of->sum += x;
    of->squares += x * x;
    Py_ssize_t bucket = starts[bits >> 48];
    while (bucket < last && x >= limits[bucket]) bucket++;
    counts[bucket] += 1.0;
}

static int append(PyObject *list, double number) {
    PyObject *made = PyFloat_FromDouble(number);
    int failed = made == NULL || PyList_Append(list, made) < 0;
    Py_XDECREF(made);
    return !failed;
}

static PyObject *histogram(PyObject *self, PyObject *args) {
    void *data;
    Py_ssize_t count;
    int is_double;
    Py_buffer limits, starts, counts;
    (void)self;
    if (!PyArg_ParseTuple(args, "O&npy*y*w*", to_address, &data, &count, &is_double, &limits, &starts, &counts)) return NULL;
    Py_ssize_t buckets = limits.len / (Py_ssize_t)sizeof(double);
    PyObject *kept = NULL, *ends = NULL, *result = NULL;
    if (buckets == 0 || counts.len != limits.len || starts.len != CELLS * (Py_ssize_t)sizeof(int32_t)) {
        PyErr_SetString(PyExc_ValueError, "one count per limit and one start per cell are needed");
        goto done;
    }
    totals of = {.least = DBL_MAX, .most = -DBL_MAX};
    const double *limit = limits.buf;
    double *counted = counts.buf;
    Py_BEGIN_ALLOW_THREADS;
    memset(counted, 0, (size_t)counts.len);
    for (Py_ssize_t i = 0; i < count; i++)
        count_one(&of, is_double ? ((const double *)data)[i] : (double)((const float *)data)[i], limit, buckets - 1, starts.buf, counted);
    Py_END_ALLOW_THREADS;
    if ((kept = PyList_New(0)) == NULL || (ends = PyList_New(0)) == NULL) goto done;
    for (Py_ssize_t i = 0; i < buckets; i++) /* each bucket that is not empty, and the last of every run of empty ones */
        if (counted[i] > 0 || i + 1 == buckets || counted[i + 1] > 0)
            if (!append(ends, limit[i]) || !append(kept, counted[i])) goto done;
    result = Py_BuildValue("(iiddddOO)", of.has_nan, of.has_infinity, of.least, of.most, of.sum, of.squares, ends, kept);
done:
    Py_XDECREF(kept);
    Py_XDECREF(ends);
    PyBuffer_Release(&limits);
    PyBuffer_Release(&starts);
    PyBuffer_Release(&counts);
    return result;
}

static PyMethodDef METHODS[] = {
    {"histogram", histogram, METH_VARARGS,
     "histogram(numbers, count, is_double, limits, starts, counts): whether there are NaNs and infinities, the least and the largest number, "
     "the sums of the numbers and of their squares, and the limits and counts of the buckets."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "histograms", "Histograms of summaries.", -1, METHODS, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_histograms(void) { return tensors_ready() ? PyModule_Create(&MODULE) : NULL; }
