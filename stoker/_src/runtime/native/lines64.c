/* The lines of programs of float64 numbers. Integers have 64 bits there. */
#include "lines.h"

#include "functions64.h"

#define REAL_MAX 1.7976931348623157e+308
typedef int64_t integer __attribute__((may_alias));
typedef uint64_t bits;

/* Fortran's dgemm. */
typedef void (*dgemm_function)(const char *, const char *, const int *, const int *, const int *, const double *, const double *, const int *,
                               const double *, const int *, const double *, double *, const int *);
static dgemm_function blas_dgemm = NULL;

/* out[m, n] = a[m, k] b[k, n]. BLAS has column-major matrices, so it computes the transposed product. */
static void blas_product(double *out, const double *a, const double *b, int64_t m, int64_t k, int64_t n, int transpose_a, int transpose_b) {
    int rows = (int)m, inner = (int)k, columns = (int)n;
    int a_step = transpose_a ? rows : inner, b_step = transpose_b ? inner : columns;
    double one = 1.0, zero = 0.0;
    blas_dgemm(transpose_b ? "T" : "N", transpose_a ? "T" : "N", &columns, &rows, &inner, &one, b, &b_step, a, &a_step, &zero, out, &columns);
}

static PyObject *set_gemm(PyObject *m, PyObject *args) {
    (void)m;
    Py_ssize_t address;
    if (!PyArg_ParseTuple(args, "n", &address)) return NULL;
    blas_dgemm = (dgemm_function)(intptr_t)address;
    Py_RETURN_NONE;
}

#include "execution.h"

const Lines lines64 = LINES;
