/* Max pooling of channels-last float32 images, and its gradient, on torch's threads.
 *
 * The position of a maximum in its window takes one byte. torch stores its position in the image in eight bytes, which is most of
 * its memory traffic.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#include "../../base/native/vectorised.h"

enum { LANES = 32, FEW = 8 }; /* channels processed together: in a loop of known length, and the fewest that fill a vector */

typedef struct {
    long long images, height, width, channels;         /* of the input */
    long long rows, columns;                            /* of the output */
    long long tall, wide, down, across, above, before; /* windows: sizes, strides, padding at the top and on the left */
} pooling;

typedef struct {
    int64_t top, bottom, left, right;
} window;

static inline window window_at(const pooling *p, int64_t row, int64_t column) {
    window w = {row * p->down - p->above, 0, column * p->across - p->before, 0};
    w.bottom = w.top + p->tall < p->height ? w.top + p->tall : p->height;
    w.right = w.left + p->wide < p->width ? w.left + p->wide : p->width;
    w.top = w.top < 0 ? 0 : w.top;
    w.left = w.left < 0 ? 0 : w.left;
    return w;
}

/* The first of equal elements wins, and NaN is greater than everything. */
#define GREATER(x, best) (((x) > (best)) | ((x) != (x)))

#define INLINE static inline __attribute__((always_inline))

/* A small number that the compiler shall not know: it unrolls short loops of known length instead of vectorising them. */
INLINE int hidden(int number) {
    __asm__("" : "+r"(number));
    return number;
}

/* Calls WORK(c, count, skip) for all channels: `count` of them from `c` on, the first `skip` of which were in the call before. All of a remainder
 * fills vectors, for which its last channels are taken together with some before them. */
#define BY_CHANNELS(all, WORK)                                                           \
    int64_t c = 0, rest;                                                                 \
    for (; c + LANES <= all; c += LANES) WORK(c, LANES, 0);                              \
    rest = all - c;                                                                      \
    if (all < FEW || rest % FEW == 0) {                                                  \
        if (rest) WORK(c, hidden((int)rest), 0);                                         \
    } else {                                                                             \
        if (rest >= FEW) WORK(c, hidden((int)(rest / FEW * FEW)), 0);                    \
        WORK(all - FEW, hidden(FEW), (int)(FEW - rest % FEW));                           \
    }

/* The maxima of one window and their positions, for `count` channels. */
INLINE void pool_window(const pooling *p, window w, float *restrict out, uint8_t *restrict places, const float *restrict image, int count) {
    float best[LANES];
    int32_t place[LANES], at = 0;
    const float *corner = image + (w.top * p->width + w.left) * p->channels;
    for (int c = 0; c < count; c++) best[c] = corner[c], place[c] = 0;
    for (int64_t y = w.top; y < w.bottom; y++)
        for (int64_t x = w.left; x < w.right; x++, at++) {
            const float *in = image + (y * p->width + x) * p->channels;
            for (int c = 0; c < count; c++) {
                int greater = GREATER(in[c], best[c]);
                best[c] = greater ? in[c] : best[c];
                place[c] = greater ? at : place[c];
            }
        }
    for (int c = 0; c < count; c++) out[c] = best[c];
    for (int c = 0; c < count; c++) places[c] = (uint8_t)place[c];
}

VECTORISED static void pool_row(const pooling *p, float *out, uint8_t *places, const float *image, int64_t row) {
    for (int64_t column = 0; column < p->columns; column++, out += p->channels, places += p->channels) {
        window w = window_at(p, row, column);
#define POOL(c, count, skip) pool_window(p, w, out + (c), places + (c), image + (c), count)
        BY_CHANNELS(p->channels, POOL)
#undef POOL
    }
}

/* Adds the gradient of one window's maxima at their positions, except that the first `skip` channels have been added. */
INLINE void spread_window(const pooling *p, window w, int tiled, float *restrict out, const uint8_t *restrict places,
                          const float *restrict grad, int count, int skip) {
    int32_t place[LANES], at = 0;
    for (int c = 0; c < count; c++) place[c] = places[c];
    if (!tiled)
        for (int c = 0; c < skip; c++) place[c] = -1;
    for (int64_t y = w.top; y < w.bottom; y++)
        for (int64_t x = w.left; x < w.right; x++, at++) {
            float *to = out + (y * p->width + x) * p->channels;
            if (tiled)
                for (int c = 0; c < count; c++) to[c] = place[c] == at ? grad[c] : 0.0f;
            else
                for (int c = 0; c < count; c++) to[c] += place[c] == at ? grad[c] : 0.0f;
        }
}

VECTORISED static void spread_image(const pooling *p, float *out, const uint8_t *places, const float *grad) {
    int tiled = p->tall == p->down && p->wide == p->across && !p->above && !p->before && p->rows * p->down == p->height &&
                p->columns * p->across == p->width; /* every element is in exactly one window */
    if (!tiled) memset(out, 0, (size_t)(p->height * p->width * p->channels) * sizeof(float));
    for (int64_t row = 0; row < p->rows; row++)
        for (int64_t column = 0; column < p->columns; column++, grad += p->channels, places += p->channels) {
            window w = window_at(p, row, column);
#define SPREAD(c, count, skip) spread_window(p, w, tiled, out + (c), places + (c), grad + (c), count, skip)
            BY_CHANNELS(p->channels, SPREAD)
#undef SPREAD
        }
}

#define SIZES "(LLLL)(LL)(LL)(LL)(LL)i"
#define SIZE_ADDRESSES                                                                                                             \
    &p.images, &p.height, &p.width, &p.channels, &p.rows, &p.columns, &p.tall, &p.wide, &p.down, &p.across, &p.above, &p.before, \
        &threads

static int64_t image_size(const pooling *p) { return p->height * p->width * p->channels; }
static int64_t result_size(const pooling *p) { return p->rows * p->columns * p->channels; }

static PyObject *checked(int fits) {
    if (fits) Py_RETURN_NONE;
    PyErr_SetString(PyExc_ValueError, "the arrays do not have the sizes given");
    return NULL;
}

static PyObject *max_pool(PyObject *self, PyObject *args) {
    Py_buffer out, places, in;
    pooling p;
    int threads;
    (void)self;
    if (!PyArg_ParseTuple(args, "w*w*y*" SIZES, &out, &places, &in, SIZE_ADDRESSES)) return NULL;
    int fits = in.len == p.images * image_size(&p) * 4 && places.len == p.images * result_size(&p) && out.len == places.len * 4;
    if (fits) {
        Py_BEGIN_ALLOW_THREADS;
#pragma omp parallel for num_threads(threads)
        for (int64_t row = 0; row < p.images * p.rows; row++) {
            int64_t at = row * p.columns * p.channels;
            pool_row(&p, (float *)out.buf + at, (uint8_t *)places.buf + at, (const float *)in.buf + row / p.rows * image_size(&p),
                     row % p.rows);
        }
        Py_END_ALLOW_THREADS;
    }
    PyBuffer_Release(&out);
    PyBuffer_Release(&places);
    PyBuffer_Release(&in);
    return checked(fits);
}

static PyObject *max_pool_grad(PyObject *self, PyObject *args) {
    Py_buffer out, places, grad;
    pooling p;
    int threads;
    (void)self;
    if (!PyArg_ParseTuple(args, "w*y*y*" SIZES, &out, &places, &grad, SIZE_ADDRESSES)) return NULL;
    int fits = out.len == p.images * image_size(&p) * 4 && places.len == p.images * result_size(&p) && grad.len == places.len * 4;
    if (fits) {
        Py_BEGIN_ALLOW_THREADS;
#pragma omp parallel for num_threads(threads)
        for (int64_t i = 0; i < p.images; i++)
            spread_image(&p, (float *)out.buf + i * image_size(&p), (const uint8_t *)places.buf + i * result_size(&p),
                         (const float *)grad.buf + i * result_size(&p));
        Py_END_ALLOW_THREADS;
    }
    PyBuffer_Release(&out);
    PyBuffer_Release(&places);
    PyBuffer_Release(&grad);
    return checked(fits);
}

static PyMethodDef METHODS[] = {
    {"max_pool", max_pool, METH_VARARGS,
     "max_pool(out, places, in, (images, height, width, channels), (rows, columns), window, strides, padding before, threads)"},
    {"max_pool_grad", max_pool_grad, METH_VARARGS, "max_pool_grad(out, places, grad, ...): the gradient of the input, sizes as in max_pool."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "pooling", "Max pooling of float32 images, channels last.", -1, METHODS, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_pooling(void) { return PyModule_Create(&MODULE); }
