/* Resampling of channels-last images, and adjustment of hue and saturation, on torch's threads.
 *
 * The torch code in ops/image does the same arithmetic in the same order, but with a pass over memory for each operation.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "../../base/native/teams.h"
#include "../../base/native/vectorised.h"

enum { WORTH_A_THREAD = 1 << 15 }; /* products, or elements of pixels, per thread */

#define INLINE static inline __attribute__((always_inline))

typedef struct {
    long long images, height, width, channels; /* of the input */
    long long rows, columns;                   /* of the output */
    int bytes;                                 /* whether the input's elements are bytes rather than floats */
} sizes;

#define SIZES "(LLLL)(LL)pi"
#define SIZE_ADDRESSES &s.images, &s.height, &s.width, &s.channels, &s.rows, &s.columns, &s.bytes, &threads

static const void *row_of(const sizes *s, const void *in, int64_t image, int64_t row) {
    int64_t at = (image * s->height + row) * s->width * s->channels;
    return s->bytes ? (const void *)((const uint8_t *)in + at) : (const void *)((const float *)in + at);
}

static int within(const int32_t *places, int64_t count, int64_t size) {
    for (int64_t i = 0; i < count; i++)
        if (places[i] < 0 || places[i] >= size) return 0;
    return 1;
}

/* ---- two neighbours along each dimension ---- */

#define ACROSS(T, C)                                                                                        \
    for (int64_t x = 0; x < s->columns; x++) {                                                              \
        const T *left = (const T *)in + (int64_t)low[x] * (C), *right = (const T *)in + (int64_t)high[x] * (C); \
        for (int64_t c = 0; c < (C); c++) {                                                                 \
            float l = (float)left[c], r = (float)right[c];                                                  \
            out[x * (C) + c] = l + (r - l) * lerp[x];                                                       \
        }                                                                                                   \
    }

/* Interpolates one row of the input horizontally. */
VECTORISED static void lerp_across(const sizes *s, float *restrict out, const void *in, const int32_t *low, const int32_t *high, const float *lerp) {
    if (s->bytes) {
        if (s->channels == 3) ACROSS(uint8_t, 3)
        else if (s->channels == 1) ACROSS(uint8_t, 1)
        else ACROSS(uint8_t, s->channels)
    } else {
        if (s->channels == 3) ACROSS(float, 3)
        else if (s->channels == 1) ACROSS(float, 1)
        else ACROSS(float, s->channels)
    }
}

VECTORISED static void lerp_down(float *restrict out, const float *restrict top, const float *restrict bottom, float lerp, int64_t count) {
    for (int64_t i = 0; i < count; i++) out[i] = top[i] + (bottom[i] - top[i]) * lerp;
}

static PyObject *finished(int fits, int allocated) {
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "the arrays do not have the sizes given");
        return NULL;
    }
    if (!allocated) return PyErr_NoMemory();
    Py_RETURN_NONE;
}

static PyObject *bilinear(PyObject *self, PyObject *args) {
    Py_buffer out, in, low_y, high_y, lerp_y, low_x, high_x, lerp_x;
    sizes s;
    int threads, allocated = 1;
    (void)self;
    if (!PyArg_ParseTuple(args, "w*y*y*y*y*y*y*y*" SIZES, &out, &in, &low_y, &high_y, &lerp_y, &low_x, &high_x, &lerp_x, SIZE_ADDRESSES))
        return NULL;
    int64_t wide = s.columns * s.channels;
    int fits = in.len == s.images * s.height * s.width * s.channels * (s.bytes ? 1 : 4) && out.len == s.images * s.rows * wide * 4 &&
               low_y.len == s.rows * 4 && high_y.len == s.rows * 4 && lerp_y.len == s.rows * 4 && low_x.len == s.columns * 4 &&
               high_x.len == s.columns * 4 && lerp_x.len == s.columns * 4 && within(low_y.buf, s.rows, s.height) &&
               within(high_y.buf, s.rows, s.height) && within(low_x.buf, s.columns, s.width) && within(high_x.buf, s.columns, s.width);
    if (fits) {
        threads = threads_for(s.images * s.rows * wide / WORTH_A_THREAD, threads);
        Py_BEGIN_ALLOW_THREADS;
#pragma omp parallel num_threads(team_for(threads)) if (threads > 1) reduction(&& : allocated)
        {
            float *kept[2] = {malloc((size_t)wide * 4 + 4), malloc((size_t)wide * 4 + 4)};
            int64_t held[2] = {-1, -1};
            allocated = kept[0] && kept[1];
#pragma omp for schedule(static)
            for (int64_t row = 0; row < s.images * s.rows; row++) {
                if (!allocated) continue;
                int64_t image = row / s.rows, y = row % s.rows;
                int64_t wanted[2] = {image * s.height + ((int32_t *)low_y.buf)[y], image * s.height + ((int32_t *)high_y.buf)[y]};
                if (held[1] == wanted[0] || held[0] == wanted[1]) {
                    float *other = kept[0];
                    int64_t place = held[0];
                    kept[0] = kept[1], held[0] = held[1];
                    kept[1] = other, held[1] = place;
                }
                for (int i = 0; i < 2; i++)
                    if (held[i] != wanted[i]) {
                        lerp_across(&s, kept[i], row_of(&s, in.buf, 0, wanted[i]), low_x.buf, high_x.buf, lerp_x.buf);
                        held[i] = wanted[i];
                    }
                lerp_down((float *)out.buf + row * wide, kept[0], kept[1], ((float *)lerp_y.buf)[y], wide);
            }
            free(kept[0]);
            free(kept[1]);
        }
        Py_END_ALLOW_THREADS;
    }
    Py_buffer *all[] = {&out, &in, &low_y, &high_y, &lerp_y, &low_x, &high_x, &lerp_x};
    for (int i = 0; i < 8; i++) PyBuffer_Release(all[i]);
    return finished(fits, allocated);
}

/* ---- any number of neighbours along each dimension ---- */

#define DOWN(T)                                                                                                        \
    for (int64_t i = 0; i < count; i++) out[i] = (float)((const T *)rows[0])[i] * weights[0];                          \
    int64_t tap = 1;                                                                                                   \
    for (; tap + 3 <= taps; tap += 3) {                                                                                \
        const T *restrict a = rows[tap], *restrict b = rows[tap + 1], *restrict c = rows[tap + 2];                     \
        float wa = weights[tap], wb = weights[tap + 1], wc = weights[tap + 2];                                         \
        for (int64_t i = 0; i < count; i++) out[i] = ((out[i] + (float)a[i] * wa) + (float)b[i] * wb) + (float)c[i] * wc; \
    }                                                                                                                  \
    for (; tap < taps; tap++) {                                                                                        \
        const T *restrict a = rows[tap];                                                                               \
        for (int64_t i = 0; i < count; i++) out[i] += (float)a[i] * weights[tap];                                      \
    }

VECTORISED static void weigh_down(float *restrict out, const void **rows, const float *weights, int64_t taps, int64_t count, int bytes) {
    if (bytes) {
        DOWN(uint8_t)
    } else {
        DOWN(float)
    }
}

#define COLUMNS(T, TAPS, C)                                                                              \
    for (int64_t x = 0; x < columns; x++)                                                                \
        for (int64_t c = 0; c < (C); c++) {                                                              \
            const int32_t *place = places + x * (TAPS);                                                  \
            const float *weight = weights + x * (TAPS);                                                  \
            float sum = (float)((const T *)in)[place[0] * (int64_t)(C) + c] * weight[0];                 \
            for (int64_t tap = 1; tap < (TAPS); tap++)                                                   \
                sum += (float)((const T *)in)[place[tap] * (int64_t)(C) + c] * weight[tap];              \
            out[x * (C) + c] = sum;                                                                      \
        }

VECTORISED static void weigh_across(float *restrict out, const void *restrict in, const int32_t *places, const float *weights, int64_t taps,
                                    int64_t columns, int64_t channels, int bytes) {
    if (bytes) {
        if (channels == 3) COLUMNS(uint8_t, taps, 3)
        else COLUMNS(uint8_t, taps, channels)
    } else {
        if (channels == 3 && taps == 4) COLUMNS(float, 4, 3)
        else if (channels == 3) COLUMNS(float, taps, 3)
        else COLUMNS(float, taps, channels)
    }
}

static PyObject *resample(PyObject *self, PyObject *args) {
    Py_buffer out, in, places_y, weights_y, places_x, weights_x;
    sizes s;
    int threads, across_first, allocated = 1;
    (void)self;
    if (!PyArg_ParseTuple(args, "w*y*y*y*y*y*" SIZES "p", &out, &in, &places_y, &weights_y, &places_x, &weights_x, SIZE_ADDRESSES, &across_first))
        return NULL;
    int64_t tall = s.rows ? places_y.len / 4 / s.rows : 0, wide = s.columns ? places_x.len / 4 / s.columns : 0;
    int64_t across = s.columns * s.channels, count = s.width * s.channels;
    int fits = in.len == s.images * s.height * count * (s.bytes ? 1 : 4) && out.len == s.images * s.rows * across * 4 && tall > 0 && wide > 0 &&
               places_y.len == s.rows * tall * 4 && weights_y.len == places_y.len && places_x.len == s.columns * wide * 4 &&
               weights_x.len == places_x.len && within(places_y.buf, s.rows * tall, s.height) && within(places_x.buf, s.columns * wide, s.width);
    if (fits) {
        threads = threads_for(s.images * s.rows * across * (tall + wide) / WORTH_A_THREAD, threads);
        Py_BEGIN_ALLOW_THREADS;
#pragma omp parallel num_threads(team_for(threads)) if (threads > 1) reduction(&& : allocated)
        {
            int64_t kept = across_first ? tall * across : count;
            float *summed = malloc((size_t)kept * 4 + 4);
            const void **rows = malloc((size_t)tall * sizeof(void *));
            allocated = summed && rows;
#pragma omp for schedule(static)
            for (int64_t row = 0; row < s.images * s.rows; row++) {
                if (!allocated) continue;
                int64_t image = row / s.rows, y = row % s.rows;
                for (int64_t tap = 0; tap < tall; tap++) rows[tap] = row_of(&s, in.buf, image, ((int32_t *)places_y.buf)[y * tall + tap]);
                const float *weights = (float *)weights_y.buf + y * tall;
                float *to = (float *)out.buf + row * across;
                if (across_first) {
                    for (int64_t tap = 0; tap < tall; tap++) {
                        weigh_across(summed + tap * across, rows[tap], places_x.buf, weights_x.buf, wide, s.columns, s.channels, s.bytes);
                        rows[tap] = summed + tap * across;
                    }
                    weigh_down(to, rows, weights, tall, across, 0);
                } else {
                    weigh_down(summed, rows, weights, tall, count, s.bytes);
                    weigh_across(to, summed, places_x.buf, weights_x.buf, wide, s.columns, s.channels, 0);
                }
            }
            free(summed);
            free(rows);
        }
        Py_END_ALLOW_THREADS;
    }
    Py_buffer *all[] = {&out, &in, &places_y, &weights_y, &places_x, &weights_x};
    for (int i = 0; i < 6; i++) PyBuffer_Release(all[i]);
    return finished(fits, allocated);
}

/* ---- hue and saturation ---- */

INLINE float smaller(float a, float b) { return a < b ? a : b; }
INLINE float larger(float a, float b) { return a > b ? a : b; }

/* NaN if a channel is NaN, else 0. Comparisons ignore NaN, so it is added to the result. */
INLINE float missing(float r, float g, float b) { return (r != r) | (g != g) | (b != b) ? NAN : 0.0f; }

/* The hue of a colour, from 0 to 6: red, yellow, green, cyan, blue, magenta and red again. */
INLINE float hue_of(float r, float g, float b, float most, float least) {
    float middle = larger(smaller(r, g), smaller(larger(r, g), b));
    float range = most - least;
    float ratio = (middle - least) / range;
    int red = r == most, green = !red & (g == most);
    /* The second brightest channel determines the side of the brightest one on which the hue lies. */
    float falling = red ? (g >= b ? 0.0f : 5.0f) : green ? (b > r ? 2.0f : 1.0f) : (r > g ? 4.0f : 3.0f);
    int odd = red ? g < b : green ? b <= r : r <= g;
    float hue = odd ? falling + (1.0f - ratio) : falling + ratio;
    return range > 0.0f ? hue : 0.0f;
}

/* The value of the channel with hue `own`, as a fraction of the range from the least to the largest channel. Hues are 0 to 6. */
INLINE float share(float hue, float own) {
    float away = own > 0.0f ? 2.0f - fabsf(hue - own) : fabsf(hue - 3.0f) - 1.0f;
    return smaller(larger(away, 0.0f), 1.0f);
}

VECTORISED static void turn_hue(float *restrict out, const float *restrict in, float turn, int64_t pixels) {
    for (int64_t i = 0; i < pixels; i++) {
        float r = in[3 * i], g = in[3 * i + 1], b = in[3 * i + 2];
        float most = larger(larger(r, g), b), least = smaller(smaller(r, g), b), range = most - least;
        float hue = hue_of(r, g, b, most, least) + turn;
        hue = hue >= 6.0f ? hue - 6.0f : hue;
        least += missing(r, g, b);
        out[3 * i] = least + range * share(hue, 0.0f);
        out[3 * i + 1] = least + range * share(hue, 2.0f);
        out[3 * i + 2] = least + range * share(hue, 4.0f);
    }
}

VECTORISED static void scale_saturation(float *restrict out, const float *restrict in, float scale, int64_t pixels) {
    for (int64_t i = 0; i < pixels; i++) {
        float r = in[3 * i], g = in[3 * i + 1], b = in[3 * i + 2];
        float most = larger(larger(r, g), b), least = smaller(smaller(r, g), b), range = most - least;
        float hue = hue_of(r, g, b, most, least);
        float saturation = most > 0.0f ? range / most : 0.0f;
        saturation = smaller(larger(saturation * scale, 0.0f), 1.0f);
        float spread = saturation * most, base = most - spread + missing(r, g, b);
        out[3 * i] = base + spread * share(hue, 0.0f);
        out[3 * i + 1] = base + spread * share(hue, 2.0f);
        out[3 * i + 2] = base + spread * share(hue, 4.0f);
    }
}

enum { PIXELS_AT_ONCE = 4096 };

static PyObject *by_pixel(PyObject *args, void (*change)(float *restrict, const float *restrict, float, int64_t)) {
    Py_buffer out, in;
    float amount;
    int threads;
    if (!PyArg_ParseTuple(args, "w*y*fi", &out, &in, &amount, &threads)) return NULL;
    int64_t pixels = in.len / 12;
    int fits = in.len == pixels * 12 && out.len == in.len;
    if (fits) {
        threads = threads_for(3 * pixels / WORTH_A_THREAD, threads);
        Py_BEGIN_ALLOW_THREADS;
#pragma omp parallel for num_threads(team_for(threads)) if (threads > 1)
        for (int64_t at = 0; at < pixels; at += PIXELS_AT_ONCE)
            change((float *)out.buf + 3 * at, (const float *)in.buf + 3 * at, amount, pixels - at < PIXELS_AT_ONCE ? pixels - at : PIXELS_AT_ONCE);
        Py_END_ALLOW_THREADS;
    }
    PyBuffer_Release(&out);
    PyBuffer_Release(&in);
    return finished(fits, 1);
}

static PyObject *adjust_hue(PyObject *self, PyObject *args) {
    (void)self;
    return by_pixel(args, turn_hue);
}

static PyObject *adjust_saturation(PyObject *self, PyObject *args) {
    (void)self;
    return by_pixel(args, scale_saturation);
}

static PyMethodDef METHODS[] = {
    {"bilinear", bilinear, METH_VARARGS,
     "bilinear(out, in, low_y, high_y, lerp_y, low_x, high_x, lerp_x, (images, height, width, channels), (rows, columns), bytes, threads)"},
    {"resample", resample, METH_VARARGS,
     "resample(out, in, places_y, weights_y, places_x, weights_x, (images, height, width, channels), (rows, columns), bytes, threads, across_first)"},
    {"adjust_hue", adjust_hue, METH_VARARGS, "adjust_hue(out, in, turn, threads): hues turned by 0 to 6 sixths of a circle."},
    {"adjust_saturation", adjust_saturation, METH_VARARGS, "adjust_saturation(out, in, scale, threads): saturations multiplied and clipped."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "images", "Resampling and colours of images, channels last.", -1, METHODS, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_images(void) { return PyModule_Create(&MODULE); }
