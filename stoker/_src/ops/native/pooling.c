/* Max and average pooling of channels-last float32 images and volumes, and their gradients, on torch's threads.
 *
 * The gradient of images goes to the first maximum of each window, the one of volumes to every element that equals it, as in TensorFlow.
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
    long long images, depth, height, width, channels; /* of the input; flat images have a depth of one */
    long long sheets, rows, columns;                   /* of the output */
    long long deep, tall, wide;                        /* windows: sizes */
    long long inward, down, across;                    /* strides */
    long long front, above, before;                    /* padding in front, at the top and on the left */
} pooling;

/* The part of a window that is inside of the image. */
typedef struct {
    int64_t front, back, top, bottom, left, right;
} window;

static inline int64_t at_least(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t at_most(int64_t a, int64_t b) { return a < b ? a : b; }

/* `row` counts the rows of all sheets. */
static inline window window_at(const pooling *p, int64_t row, int64_t column) {
    int64_t z = row / p->rows * p->inward - p->front, y = row % p->rows * p->down - p->above, x = column * p->across - p->before;
    window w = {at_least(z, 0), at_most(z + p->deep, p->depth), at_least(y, 0), at_most(y + p->tall, p->height),
                at_least(x, 0), at_most(x + p->wide, p->width)};
    return w;
}

/* Runs the statement behind it for each pixel of a window, with `at` as the index of its first channel. */
#define FOR_PIXELS(p, w)                                       \
    for (int64_t z = (w).front; z < (w).back; z++)             \
        for (int64_t y = (w).top; y < (w).bottom; y++)         \
            for (int64_t x = (w).left, at = ((z * (p)->height + y) * (p)->width + x) * (p)->channels; x < (w).right; x++, at += (p)->channels)

/* Whether every element is in exactly one window. */
static int is_tiled(const pooling *p) {
    return p->deep == p->inward && p->tall == p->down && p->wide == p->across && !p->front && !p->above && !p->before &&
           p->sheets * p->inward == p->depth && p->rows * p->down == p->height && p->columns * p->across == p->width;
}

static int64_t image_size(const pooling *p) { return p->depth * p->height * p->width * p->channels; }
static int64_t rows_of(const pooling *p) { return p->sheets * p->rows; }
static int64_t result_size(const pooling *p) { return rows_of(p) * p->columns * p->channels; }

/* The first of equal elements wins, and NaN is greater than everything. */
#define GREATER(x, best) (((x) > (best)) | ((x) != (x)))

#define INLINE static inline __attribute__((always_inline))

/* A loop over `count` channels. The compiler would unroll a short one of known length instead of vectorising it. */
#define EACH(c, count) _Pragma("GCC unroll 1") for (int c = 0; c < (count); c++)

/* A number that the compiler shall not know. */
INLINE int hidden(int number) {
    __asm__("" : "+r"(number));
    return number;
}

/* Calls WORK(c, count, skip) for all channels: `count` of them from `c` on, the first `skip` of which were in the call before. All of a remainder
 * fills vectors, for which its last channels are taken together with some before them. */
#define BY_CHANNELS(all, WORK)                                               \
    int64_t c = 0;                                                           \
    for (; c + LANES <= all; c += LANES) WORK(c, LANES, 0);                  \
    if (all < FEW) WORK(c, hidden((int)all), 0);                             \
    if (all >= FEW && c + LANES / 2 <= all) {                                \
        WORK(c, LANES / 2, 0);                                               \
        c += LANES / 2;                                                      \
    }                                                                        \
    if (all >= FEW && c + FEW <= all) {                                      \
        WORK(c, FEW, 0);                                                     \
        c += FEW;                                                            \
    }                                                                        \
    if (all >= FEW && c < all) WORK(all - FEW, FEW, (int)(FEW - (all - c)));

/* The maxima of one window, for `count` channels, and their positions in the window if `placed`. */
INLINE void pool_window(const pooling *p, window w, int placed, float *restrict out, uint8_t *restrict places, const float *restrict image, int count) {
    float best[LANES];
    int32_t place[LANES], number = 0;
    const float *corner = image + ((w.front * p->height + w.top) * p->width + w.left) * p->channels;
    EACH(c, count) best[c] = corner[c], place[c] = 0;
    FOR_PIXELS(p, w) {
        EACH(c, count) {
            int greater = GREATER(image[at + c], best[c]);
            best[c] = greater ? image[at + c] : best[c];
            if (placed) place[c] = greater ? number : place[c];
        }
        number++;
    }
    EACH(c, count) out[c] = best[c];
    if (placed)
        EACH(c, count) places[c] = (uint8_t)place[c];
}

VECTORISED static void pool_row(const pooling *p, float *out, uint8_t *places, const float *image, int64_t row) {
    for (int64_t column = 0; column < p->columns; column++, out += p->channels, places += p->channels) {
        window w = window_at(p, row, column);
#define POOL(c, count, skip) pool_window(p, w, 1, out + (c), places + (c), image + (c), count)
        BY_CHANNELS(p->channels, POOL)
#undef POOL
    }
}

VECTORISED static void pool_values(const pooling *p, float *out, const float *image, int64_t row) {
    for (int64_t column = 0; column < p->columns; column++, out += p->channels) {
        window w = window_at(p, row, column);
#define POOL(c, count, skip) pool_window(p, w, 0, out + (c), NULL, image + (c), count)
        BY_CHANNELS(p->channels, POOL)
#undef POOL
    }
}

/* Adds the gradient of one window's maxima at their positions, except that the first `skip` channels have been added. */
INLINE void spread_window(const pooling *p, window w, int tiled, float *restrict out, const uint8_t *restrict places,
                          const float *restrict grad, int count, int skip) {
    int32_t place[LANES], number = 0;
    EACH(c, count) place[c] = places[c];
    if (!tiled)
        EACH(c, skip) place[c] = -1;
    FOR_PIXELS(p, w) {
        if (tiled)
            EACH(c, count) out[at + c] = place[c] == number ? grad[c] : 0.0f;
        else
            EACH(c, count) out[at + c] += place[c] == number ? grad[c] : 0.0f;
        number++;
    }
}

VECTORISED static void spread_image(const pooling *p, float *out, const uint8_t *places, const float *grad) {
    int tiled = is_tiled(p);
    if (!tiled) memset(out, 0, (size_t)image_size(p) * sizeof(float));
    for (int64_t row = 0; row < rows_of(p); row++)
        for (int64_t column = 0; column < p->columns; column++, grad += p->channels, places += p->channels) {
            window w = window_at(p, row, column);
#define SPREAD(c, count, skip) spread_window(p, w, tiled, out + (c), places + (c), grad + (c), count, skip)
            BY_CHANNELS(p->channels, SPREAD)
#undef SPREAD
        }
}

/* Adds the gradient of one window's maximum to all elements that equal it. */
INLINE void spread_to_equals(const pooling *p, window w, int tiled, float *restrict out, const float *restrict image, const float *restrict grad,
                             int count, int skip) {
    float best[LANES], share[LANES];
    pool_window(p, w, 0, best, NULL, image, count);
    EACH(c, count) share[c] = grad[c];
    if (!tiled)
        EACH(c, skip) share[c] = 0.0f;
    FOR_PIXELS(p, w) {
        if (tiled)
            EACH(c, count) out[at + c] = image[at + c] == best[c] ? share[c] : 0.0f;
        else
            EACH(c, count) out[at + c] += image[at + c] == best[c] ? share[c] : 0.0f;
    }
}

VECTORISED static void spread_image_to_equals(const pooling *p, float *out, const float *image, const float *grad) {
    int tiled = is_tiled(p);
    if (!tiled) memset(out, 0, (size_t)image_size(p) * sizeof(float));
    for (int64_t row = 0; row < rows_of(p); row++)
        for (int64_t column = 0; column < p->columns; column++, grad += p->channels) {
            window w = window_at(p, row, column);
#define SPREAD(c, count, skip) spread_to_equals(p, w, tiled, out + (c), image + (c), grad + (c), count, skip)
            BY_CHANNELS(p->channels, SPREAD)
#undef SPREAD
        }
}

static inline float elements_of(window w) { return (float)((w.back - w.front) * (w.bottom - w.top) * (w.right - w.left)); }

/* The mean of one window's elements. */
INLINE void average_window(const pooling *p, window w, float *restrict out, const float *restrict image, int count) {
    float sum[LANES], all = elements_of(w);
    EACH(c, count) sum[c] = 0.0f;
    FOR_PIXELS(p, w)
        EACH(c, count) sum[c] += image[at + c];
    EACH(c, count) out[c] = sum[c] / all;
}

VECTORISED static void average_row(const pooling *p, float *out, const float *image, int64_t row) {
    for (int64_t column = 0; column < p->columns; column++, out += p->channels) {
        window w = window_at(p, row, column);
#define AVERAGE(c, count, skip) average_window(p, w, out + (c), image + (c), count)
        BY_CHANNELS(p->channels, AVERAGE)
#undef AVERAGE
    }
}

/* Adds the gradient of one window's mean to its elements, except that the first `skip` channels have been added. */
INLINE void share_window(const pooling *p, window w, int tiled, float *restrict out, const float *restrict grad, int count, int skip) {
    float share[LANES], all = elements_of(w);
    EACH(c, count) share[c] = grad[c] / all;
    if (!tiled)
        EACH(c, skip) share[c] = 0.0f;
    FOR_PIXELS(p, w) {
        if (tiled)
            EACH(c, count) out[at + c] = share[c];
        else
            EACH(c, count) out[at + c] += share[c];
    }
}

VECTORISED static void share_image(const pooling *p, float *out, const float *grad) {
    int tiled = is_tiled(p);
    if (!tiled) memset(out, 0, (size_t)image_size(p) * sizeof(float));
    for (int64_t row = 0; row < rows_of(p); row++)
        for (int64_t column = 0; column < p->columns; column++, grad += p->channels) {
            window w = window_at(p, row, column);
#define SHARE(c, count, skip) share_window(p, w, tiled, out + (c), grad + (c), count, skip)
            BY_CHANNELS(p->channels, SHARE)
#undef SHARE
        }
}

/* ---- from Python -------------------------------------------------------------------------------------------------------- */

#define SIZES "(LLLLL)(LLL)(LLL)(LLL)(LLL)i"
#define SIZE_ADDRESSES                                                                                                                 \
    &p.images, &p.depth, &p.height, &p.width, &p.channels, &p.sheets, &p.rows, &p.columns, &p.deep, &p.tall, &p.wide, &p.inward, &p.down, \
        &p.across, &p.front, &p.above, &p.before, &threads
#define ROW(array, kind, row) ((kind *)(array).buf + (row) * p.columns * p.channels)
#define RESULT(array, kind, i) ((kind *)(array).buf + (i) * result_size(&p))
#define IMAGE(array, kind, i) ((kind *)(array).buf + (i) * image_size(&p))

/* A method with two or three arrays, which must have the sizes that FITS says, and LOOP for `count` images or rows. */
#define METHOD(name, format, parse, FITS, count, LOOP)                                      \
    static PyObject *name(PyObject *self, PyObject *args) {                                 \
        Py_buffer out = {0}, first = {0}, second = {0};                                     \
        pooling p;                                                                          \
        int threads;                                                                        \
        (void)self;                                                                         \
        if (!PyArg_ParseTuple(args, format SIZES, parse, SIZE_ADDRESSES)) return NULL;      \
        int64_t images = p.images * image_size(&p) * 4, results = p.images * result_size(&p) * 4; \
        int fits = FITS;                                                                    \
        if (fits) {                                                                         \
            Py_BEGIN_ALLOW_THREADS;                                                         \
            _Pragma("omp parallel for num_threads(threads)") for (int64_t i = 0; i < (count); i++) LOOP; \
            Py_END_ALLOW_THREADS;                                                           \
        }                                                                                   \
        PyBuffer_Release(&out);                                                             \
        PyBuffer_Release(&first);                                                           \
        if (second.buf != NULL) PyBuffer_Release(&second);                                  \
        if (fits) Py_RETURN_NONE;                                                           \
        PyErr_SetString(PyExc_ValueError, "the arrays do not have the sizes given");        \
        return NULL;                                                                        \
    }
#define THREE &out, &first, &second
#define TWO &out, &first

METHOD(max_pool, "w*w*y*", THREE, second.len == images && first.len * 4 == results && out.len == results, p.images * rows_of(&p),
       pool_row(&p, ROW(out, float, i), ROW(first, uint8_t, i), IMAGE(second, const float, i / rows_of(&p)), i % rows_of(&p)))
METHOD(max_pool_grad, "w*y*y*", THREE, out.len == images && first.len * 4 == results && second.len == results, p.images,
       spread_image(&p, IMAGE(out, float, i), RESULT(first, const uint8_t, i), RESULT(second, const float, i)))
METHOD(maxima, "w*y*", TWO, first.len == images && out.len == results, p.images * rows_of(&p),
       pool_values(&p, ROW(out, float, i), IMAGE(first, const float, i / rows_of(&p)), i % rows_of(&p)))
METHOD(maxima_grad, "w*y*y*", THREE, out.len == images && first.len == images && second.len == results, p.images,
       spread_image_to_equals(&p, IMAGE(out, float, i), IMAGE(first, const float, i), RESULT(second, const float, i)))
METHOD(avg_pool, "w*y*", TWO, first.len == images && out.len == results, p.images * rows_of(&p),
       average_row(&p, ROW(out, float, i), IMAGE(first, const float, i / rows_of(&p)), i % rows_of(&p)))
METHOD(avg_pool_grad, "w*y*", TWO, out.len == images && first.len == results, p.images,
       share_image(&p, IMAGE(out, float, i), RESULT(first, const float, i)))

static PyMethodDef METHODS[] = {
    {"max_pool", max_pool, METH_VARARGS,
     "max_pool(out, places, in, (images, depth, height, width, channels), (sheets, rows, columns), window, strides, padding before, threads)"},
    {"max_pool_grad", max_pool_grad, METH_VARARGS, "max_pool_grad(out, places, grad, ...): the gradient of the input, sizes as in max_pool."},
    {"maxima", maxima, METH_VARARGS, "maxima(out, in, ...): the maxima without their places."},
    {"maxima_grad", maxima_grad, METH_VARARGS, "maxima_grad(out, in, grad, ...): the gradient goes to all elements that equal a maximum."},
    {"avg_pool", avg_pool, METH_VARARGS, "avg_pool(out, in, ...): the means of the elements that are inside of the image."},
    {"avg_pool_grad", avg_pool_grad, METH_VARARGS, "avg_pool_grad(out, grad, ...): the gradient of the input."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "pooling", "Pooling of float32 images and volumes, channels last.", -1, METHODS, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_pooling(void) { return PyModule_Create(&MODULE); }
