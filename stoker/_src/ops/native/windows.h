/* The windows of a convolution over images (channels last), as its three products take them from Python. */
#ifndef STOKER_WINDOWS_H
#define STOKER_WINDOWS_H

#include "tensors.h"

typedef struct {
    long long images, height, width, channels;         /* of the images */
    long long rows, columns;                            /* of the results */
    long long tall, wide, down, across, apart, aside; /* windows: sizes, strides, dilations */
    long long above, before;                            /* padding at the top and on the left */
    long long outputs;                                  /* channels of the results */
    int64_t inner_height, inner_width;                  /* of an image with its border, as far as windows reach */
} windows;

static void reach(windows *p) {
    p->inner_height = (p->rows - 1) * p->down + (p->tall - 1) * p->apart + 1;
    p->inner_width = (p->columns - 1) * p->across + (p->wide - 1) * p->aside + 1;
}

/* (out, first, second, outputs, (images, height, width, channels), (rows, columns), window, strides, dilations, padding before, threads) */
static int parse_windows(PyObject *args, float **out, float **first, float **second, windows *p, int *threads) {
    if (!PyArg_ParseTuple(args, "O&O&O&L(LLLL)(LL)(LL)(LL)(LL)(LL)i", to_address, out, to_address, first, to_address, second, &p->outputs,
                          &p->images, &p->height, &p->width, &p->channels, &p->rows, &p->columns, &p->tall, &p->wide, &p->down, &p->across,
                          &p->apart, &p->aside, &p->above, &p->before, threads))
        return 0;
    reach(p);
    return 1;
}

enum { FORWARD, TO_INPUT, TO_FILTER };

/* The three products of a module as methods, from a function PRODUCT(args, which). */
#define PRODUCT_METHODS(PRODUCT)                                                                                                            \
    static PyObject *forward(PyObject *m, PyObject *args) { return (void)m, PRODUCT(args, FORWARD); }                                       \
    static PyObject *to_input(PyObject *m, PyObject *args) { return (void)m, PRODUCT(args, TO_INPUT); }                                     \
    static PyObject *to_filter(PyObject *m, PyObject *args) { return (void)m, PRODUCT(args, TO_FILTER); }

#define PRODUCT_METHOD_TABLE                                                                                                                \
    {"forward", forward, METH_VARARGS,                                                                                                      \
     "forward(out, images, filter, outputs, (images, height, width, channels), (rows, columns), window, strides, dilations, padding before, " \
     "threads)"},                                                                                                                           \
        {"to_input", to_input, METH_VARARGS, "to_input(images, gradient, filter, outputs, ...): the gradient of the images."},              \
        {"to_filter", to_filter, METH_VARARGS, "to_filter(filter, images, gradient, outputs, ...): the gradient of the filter."}

#endif
