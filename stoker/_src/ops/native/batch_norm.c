/* Batch normalization of float32 tensors whose last dimension are the channels: a matrix with a column for each channel.
 *
 * Sums over a column are sums of blocks of rows. The blocks do not depend on the number of threads, so neither do the results. Rows of few
 * channels are taken several at a time (a "line"), so that the loops over a line are long enough to be vectorised.
 */
#include "tensors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../base/native/vectorised.h"

enum { LINE = 32, BLOCK = 1 << 14, SHARED = 1 << 15 }; /* elements of a line, of a block of rows, and of what several threads share */

typedef struct {
    int64_t rows, channels, repeats, width; /* `repeats` rows are a line of `width` elements */
    int64_t lines, blocks, each;            /* full lines, and how many of them are a block */
    int threads;
} shape;

static shape shape_of(long long rows, long long channels, int threads) {
    shape s = {.rows = rows, .channels = channels};
    s.repeats = channels < LINE ? LINE / channels : 1;
    s.width = s.repeats * channels;
    s.lines = rows / s.repeats;
    s.each = BLOCK / s.width + 1;
    s.blocks = (s.lines + s.each - 1) / s.each;
    s.threads = rows * channels < SHARED ? 1 : threads;
    return s;
}

/* Repeats the numbers of the channels over a line. */
static void repeat(const shape *s, float *line, const float *numbers) {
    for (int64_t i = 0; i < s->repeats; i++) memcpy(line + i * s->channels, numbers, (size_t)s->channels * sizeof(float));
}

/* -- sums of lines ----------------------------------------------------------------------------------------------- */

VECTORISED static void add_lines(float *restrict sum, const float *x, int64_t lines, int64_t width) {
    int64_t i = 0;
    for (; i + 4 <= lines; i += 4, x += 4 * width)
        for (int64_t j = 0; j < width; j++) sum[j] += (x[j] + x[width + j]) + (x[2 * width + j] + x[3 * width + j]);
    for (; i < lines; i++, x += width)
        for (int64_t j = 0; j < width; j++) sum[j] += x[j];
}

VECTORISED static void add_squares(float *restrict sum, const float *x, const float *mean, int64_t lines, int64_t width) {
    int64_t i = 0;
    for (; i + 2 <= lines; i += 2, x += 2 * width)
        for (int64_t j = 0; j < width; j++) {
            float a = x[j] - mean[j], b = x[width + j] - mean[j];
            sum[j] += a * a + b * b;
        }
    for (; i < lines; i++, x += width)
        for (int64_t j = 0; j < width; j++) sum[j] += (x[j] - mean[j]) * (x[j] - mean[j]);
}

VECTORISED static void add_gradients(float *restrict sum, float *restrict along, const float *g, const float *x, const float *mean,
                                     int64_t lines, int64_t width) {
    int64_t i = 0;
    for (; i + 2 <= lines; i += 2, x += 2 * width, g += 2 * width)
        for (int64_t j = 0; j < width; j++) {
            sum[j] += g[j] + g[width + j];
            along[j] += g[j] * (x[j] - mean[j]) + g[width + j] * (x[width + j] - mean[j]);
        }
    for (; i < lines; i++, x += width, g += width)
        for (int64_t j = 0; j < width; j++) {
            sum[j] += g[j];
            along[j] += g[j] * (x[j] - mean[j]);
        }
}

/* -- lines from lines -------------------------------------------------------------------------------------------- */

/* y = (x - mean) * factor + offset */
VECTORISED static void normalize(float *restrict y, const float *x, const float *mean, const float *factor, const float *offset, int64_t lines,
                                 int64_t width) {
    for (int64_t i = 0; i < lines; i++, x += width, y += width)
        for (int64_t j = 0; j < width; j++) y[j] = (x[j] - mean[j]) * factor[j] + offset[j];
}

/* dx = g * factor + (x - mean) * slope + shift */
VECTORISED static void go_back(float *restrict dx, const float *g, const float *x, const float *mean, const float *factor, const float *slope,
                               const float *shift, int64_t lines, int64_t width) {
    for (int64_t i = 0; i < lines; i++, x += width, g += width, dx += width)
        for (int64_t j = 0; j < width; j++) dx[j] = g[j] * factor[j] + (x[j] - mean[j]) * slope[j] + shift[j];
}

/* -- over all rows ----------------------------------------------------------------------------------------------- */

enum { PLAIN, SQUARES, GRADIENTS };

/* The sums of the columns in double precision: of x, of the squares of x - mean, or of g and of g * (x - mean). Returns 0 without memory. */
static int sums(const shape *s, int kind, double *total, double *along, const float *g, const float *x, const float *mean) {
    int64_t width = s->width;
    float *parts = calloc((size_t)((s->blocks + 1) * width * 2), sizeof(float));
    if (parts == NULL) return 0;
#pragma omp parallel for num_threads(s->threads) if (s->threads > 1)
    for (int64_t b = 0; b <= s->blocks; b++) { /* the last one are the rows that fill no line */
        int64_t first = b * s->each, lines = b < s->blocks ? (first + s->each < s->lines ? s->each : s->lines - first) : s->rows - s->lines * s->repeats;
        int64_t across = b < s->blocks ? width : s->channels, at = b < s->blocks ? first * width : s->lines * width;
        float *sum = parts + 2 * b * width;
        if (kind == PLAIN)
            add_lines(sum, x + at, lines, across);
        else if (kind == SQUARES)
            add_squares(sum, x + at, mean, lines, across);
        else
            add_gradients(sum, sum + width, g + at, x + at, mean, lines, across);
    }
    memset(total, 0, (size_t)s->channels * sizeof(double));
    if (along != NULL) memset(along, 0, (size_t)s->channels * sizeof(double));
    for (int64_t b = 0; b <= s->blocks; b++)
        for (int64_t r = 0; r < s->repeats; r++)
            for (int64_t c = 0; c < s->channels; c++) {
                total[c] += parts[2 * b * width + r * s->channels + c];
                if (along != NULL) along[c] += parts[(2 * b + 1) * width + r * s->channels + c];
            }
    free(parts);
    return 1;
}

#define FOR_EACH_BLOCK(call)                                                                             \
    _Pragma("omp parallel for num_threads(s.threads) if (s.threads > 1)") for (int64_t b = 0; b <= s.blocks; b++) { \
        int64_t first = b * s.each, at = b < s.blocks ? first * s.width : s.lines * s.width;              \
        int64_t lines = b < s.blocks ? (first + s.each < s.lines ? s.each : s.lines - first) : s.rows - s.lines * s.repeats; \
        int64_t across = b < s.blocks ? s.width : s.channels;                                             \
        call;                                                                                             \
    }

/* forward(y, x, scale, offset, mean, biased variance, unbiased variance, rows, channels, epsilon, training, threads): if `training` is not 0,
 * the statistics are results, else `mean` and `biased variance` are given. */
static PyObject *forward(PyObject *self, PyObject *args) {
    float *y, *x, *scale, *offset, *mean, *biased, *unbiased;
    long long rows, channels;
    double epsilon;
    int training, threads;
    (void)self;
    if (!PyArg_ParseTuple(args, "O&O&O&O&O&O&O&LLdii", to_address, &y, to_address, &x, to_address, &scale, to_address, &offset, to_address,
                          &mean, to_address, &biased, to_address_or_null, &unbiased, &rows, &channels, &epsilon, &training, &threads))
        return NULL;
    shape s = shape_of(rows, channels, threads);
    float *room = malloc((size_t)(4 * s.width) * sizeof(float));
    double *total = malloc((size_t)channels * sizeof(double));
    int enough = room != NULL && total != NULL;
    Py_BEGIN_ALLOW_THREADS;
    float *centre = room, *factor = room + s.width, *shift = room + 2 * s.width, *numbers = room + 3 * s.width;
    if (enough && training) {
        enough = sums(&s, PLAIN, total, NULL, NULL, x, NULL);
        for (int64_t c = 0; c < channels; c++) mean[c] = (float)(total[c] / (double)rows);
        repeat(&s, centre, mean);
        enough = enough && sums(&s, SQUARES, total, NULL, NULL, x, centre);
        for (int64_t c = 0; c < channels; c++) {
            biased[c] = (float)(total[c] / (double)rows);
            unbiased[c] = rows > 1 ? (float)(total[c] / (double)(rows - 1)) : 0.0f;
        }
    }
    if (enough) {
        for (int64_t c = 0; c < channels; c++) numbers[c] = (float)(scale[c] / sqrt((double)biased[c] + epsilon));
        repeat(&s, centre, mean);
        repeat(&s, factor, numbers);
        repeat(&s, shift, offset);
        FOR_EACH_BLOCK(normalize(y + at, x + at, centre, factor, shift, lines, across))
    }
    Py_END_ALLOW_THREADS;
    free(room);
    free(total);
    if (!enough) return PyErr_NoMemory();
    Py_RETURN_NONE;
}

/* backward(dx, dscale, doffset, g, x, scale, mean, variance, rows, channels, epsilon, training, threads) */
static PyObject *backward(PyObject *self, PyObject *args) {
    float *dx, *dscale, *doffset, *g, *x, *scale, *mean, *variance;
    long long rows, channels;
    double epsilon;
    int training, threads;
    (void)self;
    if (!PyArg_ParseTuple(args, "O&O&O&O&O&O&O&O&LLdii", to_address, &dx, to_address, &dscale, to_address, &doffset, to_address, &g, to_address,
                          &x, to_address, &scale, to_address, &mean, to_address, &variance, &rows, &channels, &epsilon, &training, &threads))
        return NULL;
    shape s = shape_of(rows, channels, threads);
    float *room = malloc((size_t)(7 * s.width) * sizeof(float));
    double *total = malloc((size_t)(2 * channels) * sizeof(double));
    int enough = room != NULL && total != NULL;
    Py_BEGIN_ALLOW_THREADS;
    float *centre = room, *factor = room + s.width, *slope = room + 2 * s.width, *shift = room + 3 * s.width;
    float *numbers = room + 4 * s.width, *slopes = room + 5 * s.width, *shifts = room + 6 * s.width;
    if (enough) {
        repeat(&s, centre, mean);
        enough = sums(&s, GRADIENTS, total, total + channels, g, x, centre);
    }
    if (enough) {
        for (int64_t c = 0; c < channels; c++) {
            double inverse = 1.0 / sqrt((double)variance[c] + epsilon), along = total[channels + c] * inverse;
            dscale[c] = (float)along;
            doffset[c] = (float)total[c];
            numbers[c] = (float)(scale[c] * inverse);
            slopes[c] = training ? (float)(-scale[c] * inverse * inverse * along / (double)rows) : 0.0f;
            shifts[c] = training ? (float)(-scale[c] * inverse * total[c] / (double)rows) : 0.0f;
        }
        repeat(&s, factor, numbers);
        repeat(&s, slope, slopes);
        repeat(&s, shift, shifts);
        FOR_EACH_BLOCK(go_back(dx + at, g + at, x + at, centre, factor, slope, shift, lines, across))
    }
    Py_END_ALLOW_THREADS;
    free(room);
    free(total);
    if (!enough) return PyErr_NoMemory();
    Py_RETURN_NONE;
}

static PyMethodDef METHODS[] = {
    {"forward", forward, METH_VARARGS,
     "forward(y, x, scale, offset, mean, biased variance, unbiased variance or None, rows, channels, epsilon, training, threads)"},
    {"backward", backward, METH_VARARGS,
     "backward(dx, dscale, doffset, g, x, scale, mean, variance, rows, channels, epsilon, training, threads)"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "batch_norm", "Batch normalization of float32 tensors, channels last.", -1, METHODS, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_batch_norm(void) { return tensors_ready() ? PyModule_Create(&MODULE) : NULL; }
