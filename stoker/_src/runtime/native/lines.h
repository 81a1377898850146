/* The lines of a program, and who runs them: one table of functions for float32, and one for float64. */
#ifndef STOKER_LINES_H
#define STOKER_LINES_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

enum { WORDS = 20 }; /* length of a line: its kind and the operands of that kind, see `execute` */
enum { UNARY_LOOP, BINARY_LOOP, MATMUL, SUM, SOFTMAX, COPY, SELECT, MAX, DENSE, BAND, GATHER, SEGMENTS, PLACE, TOP };

typedef struct {
    size_t size; /* bytes of an element */
    /* Runs lines. Returns 0 if the ops' own kernels must run instead. */
    int (*execute)(const int64_t *line, const int64_t *end, void **buffers);
    /* The same for rows `from` to `to` of `all`, which are independent of each other. */
    void (*execute_rows)(const int64_t *line, const int64_t *end, void **buffers, int64_t all, int64_t from, int64_t to);
    /* Converts the elements of an input that the loops hold in another form. Returns 0 if one does not fit. */
    int (*take_narrow)(void *to, const void *from, int64_t narrow);
    /* Converts an output where it is. */
    void (*widen)(void *numbers, int64_t count);
    /* A function of the module that takes the address of BLAS's product, and whether that is fast for a few columns. */
    PyObject *(*set_gemm)(PyObject *module, PyObject *arguments);
    const char **unary_names, **binary_names, **dense_names;
    int unaries, binaries, dense_kinds;
} Lines;

#if defined(__GNUC__)
#pragma GCC visibility push(hidden)
#endif
extern const Lines lines32, lines64;
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#endif
