/* Products of row-major float32 matrices with the BLAS that torch contains. */
#ifndef STOKER_BLAS_H
#define STOKER_BLAS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

/* Fortran's sgemm; NULL if it is not known. */
typedef void (*sgemm_function)(const char *, const char *, const int *, const int *, const int *, const float *, const float *, const int *,
                               const float *, const int *, const float *, float *, const int *);
static sgemm_function blas_sgemm = NULL;

/* out[m, n] = a[m, k] b[k, n]. BLAS has column-major matrices, so it computes the transposed product. */
static void blas_matmul(float *out, const float *a, const float *b, int64_t m, int64_t k, int64_t n, int transpose_a, int transpose_b) {
    int rows = (int)m, inner = (int)k, columns = (int)n;
    int a_step = transpose_a ? rows : inner, b_step = transpose_b ? inner : columns;
    float one = 1.0f, zero = 0.0f;
    blas_sgemm(transpose_b ? "T" : "N", transpose_a ? "T" : "N", &columns, &rows, &inner, &one, b, &b_step, a, &a_step, &zero, out, &columns);
}

static PyObject *set_sgemm(PyObject *m, PyObject *pointer) {
    (void)m;
    void *found = PyLong_AsVoidPtr(pointer);
    if (PyErr_Occurred()) return NULL;
    blas_sgemm = (sgemm_function)found;
    Py_RETURN_NONE;
}

#endif
