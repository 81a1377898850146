/* Convolutions of float32 images and volumes (channels last) as one matrix product: the windows of the images become rows of a matrix, which is
 * multiplied with TensorFlow's filter as it lies in memory. See ops/nn/conv_patches.py. Callers check dtypes, layouts and sizes.
 */
#include "windows.h"

#include <stdlib.h>
#include <string.h>

#include "../../base/native/blas.h"
#include "../../base/native/vectorised.h"

static inline void copy_pixels(float *to, const float *from, int64_t count) {
    if (count >= 16)
        memcpy(to, from, (size_t)count * sizeof(float));
    else
        for (int64_t i = 0; i < count; i++) to[i] = from[i]; /* a call would take longer */
}

static inline void clear_pixels(float *to, int64_t count) {
    for (int64_t i = 0; i < count; i++) to[i] = 0.0f;
}

/* The windows of one row of results: out[columns, deep, tall, wide, channels]. */
static void take_row(const windows *p, float *out, const float *image, int64_t sheet, int64_t row) {
    int64_t pixel = p->channels, line = p->width * pixel;
    for (int64_t column = 0; column < p->columns; column++) {
        int64_t left = column * p->across - p->before;
        for (int64_t t = 0; t < p->deep * p->tall; t++, out += p->wide * pixel) {
            int64_t z = sheet * p->inward - p->front + t / p->tall * p->behind, y = row * p->down - p->above + t % p->tall * p->apart;
            if (z < 0 || z >= p->depth || y < 0 || y >= p->height) {
                clear_pixels(out, p->wide * pixel);
                continue;
            }
            const float *from = image + (z * p->height + y) * line;
            if (p->aside == 1 && left >= 0 && left + p->wide <= p->width) {
                copy_pixels(out, from + left * pixel, p->wide * pixel);
                continue;
            }
            for (int64_t j = 0; j < p->wide; j++) {
                int64_t x = left + j * p->aside;
                if (x < 0 || x >= p->width)
                    clear_pixels(out + j * pixel, pixel);
                else
                    copy_pixels(out + j * pixel, from + x * pixel, pixel);
            }
        }
    }
}

VECTORISED static void add_long_run(float *restrict to, const float *restrict from, int64_t count) {
    for (int64_t i = 0; i < count; i++) to[i] += from[i];
}

static inline void add_run(float *restrict to, const float *restrict from, int64_t count) {
    if (count >= 16)
        add_long_run(to, from, count);
    else
        for (int64_t i = 0; i < count; i++) to[i] += from[i];
}

static int64_t image_size(const windows *p) { return p->depth * p->height * p->width * p->channels; }
static int64_t rows_of(const windows *p) { return p->sheets * p->rows; }
static int64_t row_size(const windows *p) { return p->columns * p->deep * p->tall * p->wide * p->channels; }

/* Adds the windows of one image, in[sheets, rows, columns, deep, tall, wide, channels], where they came from. */
static void spread_image(const windows *p, float *image, const float *in) {
    int64_t pixel = p->channels, line = p->width * pixel;
    memset(image, 0, (size_t)image_size(p) * sizeof(float));
    for (int64_t row = 0; row < rows_of(p); row++)
        for (int64_t column = 0; column < p->columns; column++) {
            int64_t left = column * p->across - p->before;
            for (int64_t t = 0; t < p->deep * p->tall; t++, in += p->wide * pixel) {
                int64_t z = row / p->rows * p->inward - p->front + t / p->tall * p->behind;
                int64_t y = row % p->rows * p->down - p->above + t % p->tall * p->apart;
                if (z < 0 || z >= p->depth || y < 0 || y >= p->height) continue;
                float *to = image + (z * p->height + y) * line;
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

enum { ROOM = 1 << 18 }; /* elements of windows that are multiplied together, so that they stay in the cache */

/* The windows of images number `first` to `last`. */
static void take(const windows *p, float *out, const float *images, int64_t first, int64_t last, int threads) {
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t row = first * rows_of(p); row < last * rows_of(p); row++)
        take_row(p, out + (row - first * rows_of(p)) * row_size(p), images + row / rows_of(p) * image_size(p), row / p->rows % p->sheets, row % p->rows);
}

static void spread(const windows *p, float *images, const float *in, int64_t first, int64_t last, int threads) {
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t i = first; i < last; i++) spread_image(p, images + i * image_size(p), in + (i - first) * rows_of(p) * row_size(p));
}

/* One of the three products of a convolution. `out` is what the other two are multiplied to. */
static PyObject *convolve(PyObject *args, int which) {
    float *out, *first, *second;
    windows p;
    int threads;
    if (!parse_windows(args, &out, &first, &second, &p, &threads)) return NULL;
    if (blas_sgemm == NULL) return PyErr_Format(PyExc_RuntimeError, "there is no BLAS");
    int64_t count = rows_of(&p) * p.columns, inner = p.deep * p.tall * p.wide * p.channels, together = p.images; /* one sum over all images */
    if (which != TO_FILTER) together = ROOM / (count * inner) > threads ? ROOM / (count * inner) : threads;
    if (together > p.images) together = p.images;
    float *matrix = malloc((size_t)(together * count * inner + 1) * sizeof(float));
    if (matrix == NULL) return PyErr_NoMemory();
    Py_BEGIN_ALLOW_THREADS;
    for (int64_t i = 0; i < p.images; i += together) {
        int64_t last = i + together < p.images ? i + together : p.images, rows = (last - i) * count;
        if (which == FORWARD) { /* images, filter */
            take(&p, matrix, first, i, last, threads);
            blas_matmul(out + i * count * p.outputs, matrix, second, rows, inner, p.outputs, 0, 0);
        } else if (which == TO_FILTER) { /* images, gradient */
            take(&p, matrix, first, i, last, threads);
            blas_matmul(out, matrix, second, inner, rows, p.outputs, 1, 0);
        } else { /* gradient, filter */
            blas_matmul(matrix, first + i * count * p.outputs, second, rows, p.outputs, inner, 0, 1);
            spread(&p, out, matrix, i, last, threads);
        }
    }
    Py_END_ALLOW_THREADS;
    free(matrix);
    Py_RETURN_NONE;
}

PRODUCT_METHODS(convolve)

static PyMethodDef METHODS[] = {
    PRODUCT_METHOD_TABLE,
    {"set_sgemm", set_sgemm, METH_VARARGS, "Takes the address of sgemm_, that of the product for small matrices (or 0), and whether the first is fast for a few columns."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "patches", "Convolutions of float32 images and volumes, channels last, as a matrix product.", -1, METHODS, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_patches(void) { return tensors_ready() ? PyModule_Create(&MODULE) : NULL; }
