/* Depthwise convolutions of float32 images (channels last): every channel has filters of its own, so that nothing is summed over channels and
 * the channels of a pixel are the lanes of a vector.
 *
 * With several filters for a channel (`outputs` > `channels`), the channels are repeated first. Sums are taken in a fixed order, so results do not
 * depend on the number of threads. See ops/nn/conv_patches.py. Callers check dtypes, layouts and sizes.
 */
#include "windows.h"

#include <stdlib.h>
#include <string.h>

#include "../../base/native/teams.h"
#include "../../base/native/vectorised.h"

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 8")

/* Channels that are computed together, and numbers that need not be aligned. */
typedef float sixteen __attribute__((vector_size(64), aligned(4), may_alias));
typedef float eight __attribute__((vector_size(32), aligned(4), may_alias));
typedef float four __attribute__((vector_size(16), aligned(4), may_alias));
typedef float one;
static int64_t widest = 4; /* how many floats the machine's vectors have; compilers do badly with vectors of more */

enum { PIXELS = 6, TAPS = 4, SHARES = 8 };

static int64_t at_least(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t at_most(int64_t a, int64_t b) { return a < b ? a : b; }

/* The first of the steps 0, `step`, 2 `step`, ... that reaches `from`, at most `most`: how many steps come before it. */
static int64_t steps_to(int64_t from, int64_t step, int64_t most) { return from <= 0 ? 0 : at_most((from + step - 1) / step, most); }

/* Rows of a window at `top`, or columns at its left, that are inside of an image: from `first` to before `last`. */
static void inside(int64_t start, int64_t rate, int64_t size, int64_t taps, int64_t *first, int64_t *last) {
    *first = steps_to(-start, rate, taps);
    *last = at_least(steps_to(size - start, rate, taps), *first);
}

/* COUNT results side by side, whose windows have rows `top` to `bottom` and columns `left` to `right` inside of the image. `image` is where the first
 * window begins, which may be outside. */
#define SUM_WINDOWS(TYPE, COUNT)                                                                                                        \
    INLINE void sum_##TYPE##_##COUNT(const windows *p, float *out, const float *image, const float *filter, int64_t top, int64_t bottom, \
                                     int64_t left, int64_t right) {                                                                     \
        TYPE sums[COUNT];                                                                                                               \
        UNROLL for (int q = 0; q < COUNT; q++) sums[q] = (TYPE){0};                                                                     \
        for (int64_t i = top; i < bottom; i++)                                                                                          \
            for (int64_t j = left; j < right; j++) {                                                                                    \
                const float *from = image + (i * p->apart * p->width + j * p->aside) * p->channels;                                     \
                TYPE f = *(const TYPE *)(filter + (i * p->wide + j) * p->channels);                                                     \
                UNROLL for (int q = 0; q < COUNT; q++) sums[q] += *(const TYPE *)(from + q * p->across * p->channels) * f;               \
            }                                                                                                                           \
        UNROLL for (int q = 0; q < COUNT; q++) *(TYPE *)(out + q * p->channels) = sums[q];                                              \
    }
/* Results from `low` to `high` have windows that are inside of the image from left to right. */
#define SUM_ROW(TYPE)                                                                                                                   \
    SUM_WINDOWS(TYPE, 1)                                                                                                                \
    SUM_WINDOWS(TYPE, 3)                                                                                                                \
    SUM_WINDOWS(TYPE, PIXELS)                                                                                                           \
    INLINE void row_##TYPE(const windows *p, float *out, const float *image, const float *filter, int64_t top, int64_t bottom, int64_t low, \
                           int64_t high) {                                                                                              \
        for (int64_t x = 0, left, right, count; x < p->columns; x += count) {                                                           \
            const float *from = image + (x * p->across - p->before) * p->channels;                                                      \
            float *to = out + x * p->channels;                                                                                          \
            count = x < low ? 0 : x + PIXELS <= high ? PIXELS : x + 3 <= high ? 3 : x < high;                                           \
            if (count == PIXELS)                                                                                                        \
                sum_##TYPE##_PIXELS(p, to, from, filter, top, bottom, 0, p->wide);                                                      \
            else if (count == 3)                                                                                                        \
                sum_##TYPE##_3(p, to, from, filter, top, bottom, 0, p->wide);                                                           \
            else if (count == 1)                                                                                                        \
                sum_##TYPE##_1(p, to, from, filter, top, bottom, 0, p->wide);                                                           \
            else {                                                                                                                      \
                inside(x * p->across - p->before, p->aside, p->width, p->wide, &left, &right);                                          \
                sum_##TYPE##_1(p, to, from, filter, top, bottom, left, right);                                                          \
                count = 1;                                                                                                              \
            }                                                                                                                           \
        }                                                                                                                               \
    }
SUM_ROW(sixteen)
SUM_ROW(eight)
SUM_ROW(four)
SUM_ROW(one)

/* Row `row` of the results of one image. */
VECTORISED static void convolve_row(const windows *p, float *out, const float *image, const float *filter, int64_t row, int64_t low, int64_t high) {
    int64_t start = row * p->down - p->above, top, bottom, c = 0;
    inside(start, p->apart, p->height, p->tall, &top, &bottom);
    image += start * p->width * p->channels;
    for (; widest >= 16 && c + 16 <= p->channels; c += 16) row_sixteen(p, out + c, image + c, filter + c, top, bottom, low, high);
    for (; widest >= 8 && c + 8 <= p->channels; c += 8) row_eight(p, out + c, image + c, filter + c, top, bottom, low, high);
    for (; c + 4 <= p->channels; c += 4) row_four(p, out + c, image + c, filter + c, top, bottom, low, high);
    for (; c < p->channels; c++) row_one(p, out + c, image + c, filter + c, top, bottom, low, high);
}

/* ---- few channels ----
 *
 * Windows that move by one pixel read pixels side by side, so that pixels, too, can be the lanes of a vector. Each element of the filter is repeated for
 * as many lanes as a vector has, from any channel on.
 */
enum { FEW = 4, LANES = 16 };

static float *for_lanes(const windows *p, const float *filter) {
    int64_t taps = p->tall * p->wide, c = p->channels;
    float *lanes = malloc((size_t)(taps * (LANES + c)) * sizeof(float));
    if (lanes != NULL)
        for (int64_t t = 0; t < taps; t++)
            for (int64_t k = 0; k < LANES + c; k++) lanes[t * (LANES + c) + k] = filter[t * c + k % c];
    return lanes;
}

/* Elements `from` to `to` of a row of results, whose windows are inside of the image from left to right. `image` is where the window of the first pixel
 * begins. */
VECTORISED static void flat_row(const windows *p, float *out, const float *image, const float *lanes, int64_t top, int64_t bottom, int64_t from,
                                int64_t to) {
    int64_t c = p->channels, next = LANES + c;
    for (int64_t k = from; k < to; k += LANES) {
        int64_t count = at_most(LANES, to - k);
        float sums[LANES] = {0};
        for (int64_t i = top; i < bottom; i++) {
            const float *f = lanes + i * p->wide * next + k % c, *line = image + i * p->apart * p->width * c + k;
            for (int64_t j = 0; j < p->wide; j++, f += next, line += p->aside * c) {
                if (count == LANES)
                    for (int64_t q = 0; q < LANES; q++) sums[q] += line[q] * f[q];
                else
                    for (int64_t q = 0; q < count; q++) sums[q] += line[q] * f[q];
            }
        }
        memcpy(out + k, sums, (size_t)count * sizeof(float));
    }
}

/* `convolve_row` by pixels. The first and the last pixels of the row have windows of which a part is outside. */
static void few_row(const windows *p, float *out, const float *image, const float *filter, const float *lanes, int64_t row, int64_t low, int64_t high) {
    int64_t start = row - p->above, top, bottom, left, right, c = p->channels;
    inside(start, p->apart, p->height, p->tall, &top, &bottom);
    image += (start * p->width - p->before) * c;
    flat_row(p, out, image, lanes, top, bottom, low * c, high * c);
    for (int64_t x = 0; x < p->columns; x++) {
        if (x == low && low < high) x = high;
        if (x >= p->columns) break;
        inside(x - p->before, p->aside, p->width, p->wide, &left, &right);
        for (int64_t k = 0; k < c; k++) sum_one_1(p, out + x * c + k, image + x * c + k, filter + k, top, bottom, left, right);
    }
}

static void convolve(const windows *p, float *out, const float *images, const float *filter, int threads) {
    int64_t image = p->height * p->width * p->channels, row = p->columns * p->channels;
    int64_t low = steps_to(p->before, p->across, p->columns);
    int64_t high = steps_to(p->width + p->before - (p->wide - 1) * p->aside, p->across, p->columns);
    float *lanes = p->channels < FEW && p->down == 1 && p->across == 1 ? for_lanes(p, filter) : NULL;
#pragma omp parallel for num_threads(team_for(threads)) if (threads > 1)
    for (int64_t i = 0; i < p->images * p->rows; i++)
        if (lanes != NULL)
            few_row(p, out + i * row, images + i / p->rows * image, filter, lanes, i % p->rows, low, high);
        else
            convolve_row(p, out + i * row, images + i / p->rows * image, filter, i % p->rows, low, high);
    free(lanes);
}

/* Which rows (columns) of the results the lines (pixels) of an image take part in, through which rows (columns) of the window. */
typedef struct {
    int64_t *first, *tap, *result; /* those of line y: from first[y] to before first[y + 1] */
} parts;

static int find_parts(parts *l, int64_t size, int64_t before, int64_t taps, int64_t rate, int64_t step, int64_t results) {
    int64_t *room = malloc((size_t)(size + 1 + 2 * size * taps) * sizeof *room), count = 0;
    *l = (parts){room, room + size + 1, room + size + 1 + size * taps};
    if (room == NULL) return 0;
    for (int64_t y = 0; y < size; y++) {
        l->first[y] = count;
        for (int64_t i = 0, at = y + before; i < taps; i++, at -= rate)
            if (at >= 0 && at % step == 0 && at / step < results) l->tap[count] = i, l->result[count++] = at / step;
    }
    l->first[size] = count;
    return 1;
}

/* The gradient of line `y` of an image, for windows that move by more than a pixel. */
#define SPREAD(TYPE)                                                                                                                    \
    INLINE void line_##TYPE(const windows *p, const parts *l, const parts *r, float *out, const float *gradient, const float *filter,   \
                            int64_t y) {                                                                                                \
        for (int64_t x = 0; x < p->width; x++) {                                                                                        \
            TYPE sum = (TYPE){0};                                                                                                       \
            for (int64_t i = l->first[y]; i < l->first[y + 1]; i++)                                                                     \
                for (int64_t j = r->first[x]; j < r->first[x + 1]; j++)                                                                 \
                    sum += *(const TYPE *)(gradient + (l->result[i] * p->columns + r->result[j]) * p->channels) *                       \
                           *(const TYPE *)(filter + (l->tap[i] * p->wide + r->tap[j]) * p->channels);                                   \
            *(TYPE *)(out + x * p->channels) = sum;                                                                                     \
        }                                                                                                                               \
    }
SPREAD(sixteen)
SPREAD(eight)
SPREAD(four)
SPREAD(one)

VECTORISED static void spread_line(const windows *p, const parts *l, const parts *r, float *out, const float *gradient, const float *filter,
                                   int64_t y) {
    int64_t c = 0;
    for (; widest >= 16 && c + 16 <= p->channels; c += 16) line_sixteen(p, l, r, out + c, gradient + c, filter + c, y);
    for (; widest >= 8 && c + 8 <= p->channels; c += 8) line_eight(p, l, r, out + c, gradient + c, filter + c, y);
    for (; c + 4 <= p->channels; c += 4) line_four(p, l, r, out + c, gradient + c, filter + c, y);
    for (; c < p->channels; c++) line_one(p, l, r, out + c, gradient + c, filter + c, y);
}

static int spread(const windows *p, float *out, const float *gradient, const float *filter, int threads) {
    parts l = {0}, r = {0};
    int64_t line = p->width * p->channels, result = p->rows * p->columns * p->channels;
    int enough = find_parts(&l, p->height, p->above, p->tall, p->apart, p->down, p->rows) &&
                 find_parts(&r, p->width, p->before, p->wide, p->aside, p->across, p->columns);
    if (enough) {
#pragma omp parallel for num_threads(team_for(threads)) if (threads > 1)
        for (int64_t i = 0; i < p->images * p->height; i++)
            spread_line(p, &l, &r, out + i * line, gradient + i / p->height * result, filter, i % p->height);
    }
    free(l.first);
    free(r.first);
    return enough;
}

/* The gradient of the images. If windows move by one pixel, it is a convolution of the results' gradient with the filter turned around. */
static int to_images(const windows *p, float *out, const float *gradient, const float *filter, int threads) {
    if (p->down != 1 || p->across != 1) return spread(p, out, gradient, filter, threads);
    windows turned = *p;
    int64_t taps = p->tall * p->wide;
    float *other = malloc((size_t)(taps * p->channels) * sizeof(float));
    if (other == NULL) return 0;
    turned.height = p->rows, turned.width = p->columns, turned.rows = p->height, turned.columns = p->width;
    turned.above = (p->tall - 1) * p->apart - p->above, turned.before = (p->wide - 1) * p->aside - p->before;
    for (int64_t t = 0; t < taps; t++)
        memcpy(other + t * p->channels, filter + (taps - 1 - t) * p->channels, (size_t)p->channels * sizeof(float));
    convolve(&turned, out, gradient, other, threads);
    free(other);
    return 1;
}

/* Adds the products of rows `first` to `last` of one image to the gradient of COUNT elements of the filter, which begin at (i, j). */
#define ADD_TAPS(TYPE, COUNT)                                                                                                           \
    INLINE void add_##TYPE##_##COUNT(const windows *p, float *out, const float *image, const float *gradient, int64_t first, int64_t last, \
                                     int64_t i, int64_t j) {                                                                            \
        TYPE sums[COUNT], more[COUNT]; /* of every second pixel, so that more sums are under way */                                     \
        int64_t low[COUNT], high[COUNT], left = 0, right = p->columns, pixel = p->across * p->channels;                                 \
        UNROLL for (int t = 0; t < COUNT; t++) {                                                                                        \
            sums[t] = more[t] = (TYPE){0};                                                                                              \
            inside((j + t) * p->aside - p->before, p->across, p->width, p->columns, &low[t], &high[t]);                                 \
            left = at_least(left, low[t]), right = at_most(right, high[t]);                                                             \
        }                                                                                                                               \
        right = at_least(left, right);                                                                                                  \
        for (int64_t row = first; row < last; row++) {                                                                                  \
            int64_t y = row * p->down - p->above + i * p->apart;                                                                        \
            if (y < 0 || y >= p->height) continue;                                                                                      \
            const float *g = gradient + row * p->columns * p->channels, *line = image + (y * p->width - p->before) * p->channels;       \
            UNROLL for (int t = 0; t < COUNT; t++) {                                                                                    \
                const float *from = line + (j + t) * p->aside * p->channels;                                                            \
                for (int64_t x = low[t]; x < at_most(left, high[t]); x++)                                                               \
                    sums[t] += *(const TYPE *)(from + x * pixel) * *(const TYPE *)(g + x * p->channels);                                \
                for (int64_t x = at_least(right, low[t]); x < high[t]; x++)                                                             \
                    sums[t] += *(const TYPE *)(from + x * pixel) * *(const TYPE *)(g + x * p->channels);                                \
            }                                                                                                                           \
            const float *from = line + (left * p->across + j * p->aside) * p->channels;                                                 \
            g += left * p->channels;                                                                                                    \
            int64_t x = left;                                                                                                           \
            for (; x + 2 <= right; x += 2, from += 2 * pixel, g += 2 * p->channels)                                                     \
                UNROLL for (int t = 0; t < COUNT; t++) {                                                                                \
                    const float *at = from + t * p->aside * p->channels;                                                                \
                    sums[t] += *(const TYPE *)at * *(const TYPE *)g;                                                                    \
                    more[t] += *(const TYPE *)(at + pixel) * *(const TYPE *)(g + p->channels);                                          \
                }                                                                                                                       \
            if (x < right)                                                                                                              \
                UNROLL for (int t = 0; t < COUNT; t++)                                                                                  \
                    sums[t] += *(const TYPE *)(from + t * p->aside * p->channels) * *(const TYPE *)g;                                   \
        }                                                                                                                               \
        out += (i * p->wide + j) * p->channels;                                                                                         \
        UNROLL for (int t = 0; t < COUNT; t++) *(TYPE *)(out + t * p->channels) += sums[t] + more[t];                                   \
    }
#define ADD_ROWS(TYPE)                                                                                                                  \
    ADD_TAPS(TYPE, 1)                                                                                                                   \
    ADD_TAPS(TYPE, 3)                                                                                                                   \
    ADD_TAPS(TYPE, TAPS)                                                                                                                \
    INLINE void add_##TYPE(const windows *p, float *out, const float *image, const float *gradient, int64_t first, int64_t last) {      \
        for (int64_t i = 0; i < p->tall; i++)                                                                                           \
            for (int64_t j = 0; j < p->wide;) {                                                                                         \
                int64_t left = p->wide - j;                                                                                             \
                if (left >= TAPS && left != 6) {                                                                                        \
                    add_##TYPE##_TAPS(p, out, image, gradient, first, last, i, j);                                                      \
                    j += TAPS;                                                                                                          \
                } else if (left >= 3) {                                                                                                 \
                    add_##TYPE##_3(p, out, image, gradient, first, last, i, j);                                                         \
                    j += 3;                                                                                                             \
                } else {                                                                                                                \
                    add_##TYPE##_1(p, out, image, gradient, first, last, i, j);                                                         \
                    j++;                                                                                                                \
                }                                                                                                                       \
            }                                                                                                                           \
    }
ADD_ROWS(sixteen)
ADD_ROWS(eight)
ADD_ROWS(four)
ADD_ROWS(one)

VECTORISED static void add_rows(const windows *p, float *out, const float *image, const float *gradient, int64_t first, int64_t last) {
    int64_t c = 0;
    for (; widest >= 16 && c + 16 <= p->channels; c += 16) add_sixteen(p, out + c, image + c, gradient + c, first, last);
    for (; widest >= 8 && c + 8 <= p->channels; c += 8) add_eight(p, out + c, image + c, gradient + c, first, last);
    for (; c + 4 <= p->channels; c += 4) add_four(p, out + c, image + c, gradient + c, first, last);
    for (; c < p->channels; c++) add_one(p, out + c, image + c, gradient + c, first, last);
}

/* The gradient of the filter. The rows of all results are divided into shares, whatever the number of threads, and the sums of the shares are added
 * in their order. */
static int to_filter_of(const windows *p, float *out, const float *images, const float *gradient, int threads) {
    int64_t size = p->tall * p->wide * p->channels, all = p->images * p->rows, shares = at_most(SHARES, all);
    float *sums = calloc((size_t)(shares * size), sizeof(float));
    if (sums == NULL) return 0;
#pragma omp parallel for num_threads(team_for(threads)) if (threads > 1)
    for (int64_t share = 0; share < shares; share++)
        for (int64_t at = all * share / shares, end = all * (share + 1) / shares, next; at < end; at = next) {
            int64_t i = at / p->rows;
            next = at_most(end, (i + 1) * p->rows);
            add_rows(p, sums + share * size, images + i * p->height * p->width * p->channels, gradient + i * p->rows * p->columns * p->channels,
                     at - i * p->rows, next - i * p->rows);
        }
    for (int64_t k = 0; k < size; k++) {
        float sum = sums[k];
        for (int64_t share = 1; share < shares; share++) sum += sums[share * size + k];
        out[k] = sum;
    }
    free(sums);
    return 1;
}

/* ---- several filters for a channel ---- */

static float *repeated(const float *from, int64_t count, int64_t times) {
    float *to = malloc((size_t)(count * times) * sizeof(float));
    if (to != NULL)
        for (int64_t k = 0; k < count; k++)
            for (int64_t t = 0; t < times; t++) to[k * times + t] = from[k];
    return to;
}

static void summed(float *to, const float *from, int64_t count, int64_t times) {
    for (int64_t k = 0; k < count; k++) {
        float sum = 0.0f;
        for (int64_t t = 0; t < times; t++) sum += from[k * times + t];
        to[k] = sum;
    }
}

static int product(windows *p, int which, float *out, const float *first, const float *second, int threads) {
    int64_t times = p->outputs / p->channels, size = p->images * p->height * p->width * p->channels;
    float *many = NULL;
    int enough = 1;
    p->channels = p->outputs;
    if (which == TO_INPUT) {
        if (times == 1) return to_images(p, out, first, second, threads);
        many = malloc((size_t)(size * times) * sizeof(float));
        enough = many != NULL && to_images(p, many, first, second, threads);
        if (enough) summed(out, many, size, times);
    } else {
        if (times > 1) {
            first = many = repeated(first, size, times);
            if (many == NULL) return 0;
        }
        if (which == FORWARD)
            convolve(p, out, first, second, threads);
        else
            enough = to_filter_of(p, out, first, second, threads);
    }
    free(many);
    return enough;
}

static PyObject *run(PyObject *args, int which) {
    float *out, *first, *second;
    windows p;
    int threads, enough;
    if (!parse_windows(args, &out, &first, &second, &p, &threads)) return NULL;
    Py_BEGIN_ALLOW_THREADS;
    enough = product(&p, which, out, first, second, threads);
    Py_END_ALLOW_THREADS;
    if (!enough) return PyErr_NoMemory();
    Py_RETURN_NONE;
}

PRODUCT_METHODS(run)

static PyMethodDef METHODS[] = {
    PRODUCT_METHOD_TABLE,
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "depthwise", "Depthwise convolutions of float32 images, channels last.", -1, METHODS, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_depthwise(void) {
#ifdef __x86_64__
    widest = __builtin_cpu_supports("avx512f") ? 16 : __builtin_cpu_supports("avx2") ? 8 : 4;
#endif
    return tensors_ready() ? PyModule_Create(&MODULE) : NULL;
}
