/* The windows of float32 images (channels last) as rows of a matrix, and the sum of such rows back into images.
 *
 * A convolution is then one matrix product, with TensorFlow's filter as it lies in memory. See ops/nn/conv_patches.py.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#include "../../base/native/vectorised.h"

typedef struct {
    long long images, height, width, channels, rows, columns, tall, wide, down, across, apart, aside, above, before;
} windows;

/* The windows of one row of results: out[columns, tall, wide, channels]. */
static void take_row(const windows *p, float *out, const float *image, int64_t row) {
    int64_t pixel = p->channels, line = p->width * pixel;
    for (int64_t column = 0; column < p->columns; column++) {
        int64_t left = column * p->across - p->before;
        for (int64_t i = 0; i < p->tall; i++, out += p->wide * pixel) {
            int64_t y = row * p->down - p->above + i * p->apart;
            if (y < 0 || y >= p->height) {
                memset(out, 0, (size_t)(p->wide * pixel) * sizeof(float));
                continue;
            }
            const float *from = image + y * line;
            if (p->aside == 1 && left >= 0 && left + p->wide <= p->width) {
                memcpy(out, from + left * pixel, (size_t)(p->wide * pixel) * sizeof(float));
                continue;
            }
            for (int64_t j = 0; j < p->wide; j++) {
                int64_t x = left + j * p->aside;
                if (x < 0 || x >= p->width)
                    memset(out + j * pixel, 0, (size_t)pixel * sizeof(float));
                else
                    memcpy(out + j * pixel, from + x * pixel, (size_t)pixel * sizeof(float));
            }
        }
    }
}

VECTORISED static void add_run(float *restrict to, const float *restrict from, int64_t count) {
    for (int64_t i = 0; i < count; i++) to[i] += from[i];
}

/* Adds the windows of one image, in[rows, columns, tall, wide, channels], where they came from. */
static void spread_image(const windows *p, float *image, const float *in) {
    int64_t pixel = p->channels, line = p->width * pixel;
    memset(image, 0, (size_t)(p->height * line) * sizeof(float));
    for (int64_t row = 0; row < p->rows; row++)
        for (int64_t column = 0; column < p->columns; column++) {
            int64_t left = column * p->across - p->before;
            for (int64_t i = 0; i < p->tall; i++, in += p->wide * pixel) {
                int64_t y = row * p->down - p->above + i * p->apart;
                if (y < 0 || y >= p->height) continue;
                float *to = image + y * line;
                if (p->aside == 1) {
                    int64_t first = left < 0 ? -left : 0, last = left + p->wide > p->width ? p->width - left : p->wide;
                    if (last > first) add_run(to + (left + first) * pixel, in + first * pixel, (last - first) * pixel);
                    continue;
                }
                for (int64_t j = 0; j < p->wide; j++) {
                    int64_t x = left + j * p->aside;
                    if (x >= 0 && x < p->width) add_run(to + x * pixel, in + j * pixel, pixel);
                }
            }
        }
}

#define SIZES "(LLLL)(LL)(LL)(LL)(LL)(LL)i"
#define SIZE_ADDRESSES                                                                                                              \
    &p.images, &p.height, &p.width, &p.channels, &p.rows, &p.columns, &p.tall, &p.wide, &p.down, &p.across, &p.apart, &p.aside,   \
        &p.above, &p.before, &threads

static int64_t image_size(const windows *p) { return p->height * p->width * p->channels; }
static int64_t windows_size(const windows *p) { return p->rows * p->columns * p->tall * p->wide * p->channels; }

static PyObject *checked(int fits) {
    if (fits) Py_RETURN_NONE;
    PyErr_SetString(PyExc_ValueError, "the arrays do not have the sizes given");
    return NULL;
}

static PyObject *take(PyObject *self, PyObject *args) {
    Py_buffer out, in;
    windows p;
    int threads;
    (void)self;
    if (!PyArg_ParseTuple(args, "w*y*" SIZES, &out, &in, SIZE_ADDRESSES)) return NULL;
    int fits = in.len == p.images * image_size(&p) * 4 && out.len == p.images * windows_size(&p) * 4;
    if (fits) {
        Py_BEGIN_ALLOW_THREADS;
#pragma omp parallel for num_threads(threads) if (threads > 1)
        for (int64_t row = 0; row < p.images * p.rows; row++)
            take_row(&p, (float *)out.buf + row * (windows_size(&p) / p.rows), (const float *)in.buf + row / p.rows * image_size(&p),
                     row % p.rows);
        Py_END_ALLOW_THREADS;
    }
    PyBuffer_Release(&out);
    PyBuffer_Release(&in);
    return checked(fits);
}

static PyObject *spread(PyObject *self, PyObject *args) {
    Py_buffer out, in;
    windows p;
    int threads;
    (void)self;
    if (!PyArg_ParseTuple(args, "w*y*" SIZES, &out, &in, SIZE_ADDRESSES)) return NULL;
    int fits = out.len == p.images * image_size(&p) * 4 && in.len == p.images * windows_size(&p) * 4;
    if (fits) {
        Py_BEGIN_ALLOW_THREADS;
#pragma omp parallel for num_threads(threads) if (threads > 1)
        for (int64_t i = 0; i < p.images; i++)
            spread_image(&p, (float *)out.buf + i * image_size(&p), (const float *)in.buf + i * windows_size(&p));
        Py_END_ALLOW_THREADS;
    }
    PyBuffer_Release(&out);
    PyBuffer_Release(&in);
    return checked(fits);
}

static PyMethodDef METHODS[] = {
    {"take", take, METH_VARARGS,
     "take(out, images, (images, height, width, channels), (rows, columns), window, strides, dilations, padding before, threads)"},
    {"spread", spread, METH_VARARGS, "spread(images, windows, ...): adds windows where they came from, sizes as in take."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "patches", "The windows of float32 images, channels last, as a matrix.", -1, METHODS, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_patches(void) { return PyModule_Create(&MODULE); }
