/* The windows of a convolution over images and volumes (channels last), as its three products take them from Python. */
#ifndef STOKER_WINDOWS_H
#define STOKER_WINDOWS_H

#include "tensors.h"

typedef struct {
    long long images, depth, height, width, channels; /* of the images; flat ones have a depth of one */
    long long sheets, rows, columns;                   /* of the results */
    long long deep, tall, wide;                        /* windows: sizes */
    long long inward, down, across;                    /* strides */
    long long behind, apart, aside;                    /* dilations */
    long long front, above, before;                    /* padding in front, at the top and on the left */
    long long outputs;                                 /* channels of the results */
    int64_t inner_depth, inner_height, inner_width;    /* of an image with its border, as far as windows reach */
} windows;

static void reach(windows *p) {
    p->inner_depth = (p->sheets - 1) * p->inward + (p->deep - 1) * p->behind + 1;
    p->inner_height = (p->rows - 1) * p->down + (p->tall - 1) * p->apart + 1;
    p->inner_width = (p->columns - 1) * p->across + (p->wide - 1) * p->aside + 1;
}

/* (out, first, second, outputs, (images, depth, height, width, channels), (sheets, rows, columns), window, strides, dilations, padding before,
 * threads) */
static int parse_windows(PyObject *args, float **out, float **first, float **second, windows *p, int *threads) {
    if (!PyArg_ParseTuple(args, "O&O&O&L(LLLLL)(LLL)(LLL)(LLL)(LLL)(LLL)i", to_address, out, to_address, first, to_address, second, &p->outputs,
                          &p->images, &p->depth, &p->height, &p->width, &p->channels, &p->sheets, &p->rows, &p->columns, &p->deep, &p->tall,
                          &p->wide, &p->inward, &p->down, &p->across, &p->behind, &p->apart, &p->aside, &p->front, &p->above, &p->before,
                          threads))
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
     "forward(out, images, filter, outputs, (images, depth, height, width, channels), (sheets, rows, columns), window, strides, dilations, " \
     "padding before, threads)"},                                                                                                                           \
        {"to_input", to_input, METH_VARARGS, "to_input(images, gradient, filter, outputs, ...): the gradient of the images."},              \
        {"to_filter", to_filter, METH_VARARGS, "to_filter(filter, images, gradient, outputs, ...): the gradient of the filter."}

#endif
