/* Convolutions of float32 images (channels last) as tiles of matrix products that read the images where they lie.
 *
 * The windows of one row of results are rows of a matrix whose elements lie in the image: the window one to the right begins `across` pixels
 * later. So nothing but the border of zeros around an image is copied. Sums are taken in the order of the filter's elements (of the pixels for
 * the gradient of the filter), so results do not depend on the number of threads. See ops/nn/conv_patches.py, which also says when the windows are
 * copied instead (patches.c). Callers check dtypes, layouts and sizes.
 */
#include "windows.h"

#include <stdlib.h>
#include <string.h>

#include "../../base/native/teams.h"
#include "../../base/native/tiles.h"

#ifdef HAS_TILES
enum { STEPS = 384 }; /* pixels whose products are summed before the next filter element takes its turn */

static int64_t at_least(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t at_most(int64_t a, int64_t b) { return a < b ? a : b; }

static int has_border(const windows *p) {
    return p->above || p->before || p->inner_height > p->height || p->inner_width > p->width;
}

/* Lines `first` to `last` of an image with its border. */
static void surround(const windows *p, float *to, const float *image, int64_t first, int64_t last) {
    int64_t pixel = p->channels, left = at_most(p->before, p->inner_width);
    int64_t filled = at_least(at_most(p->width, p->inner_width - p->before), 0), right = p->inner_width - left - filled;
    for (int64_t line = first; line < last; line++, to += p->inner_width * pixel) {
        int64_t y = line - p->above;
        if (y < 0 || y >= p->height) {
            memset(to, 0, (size_t)(p->inner_width * pixel) * sizeof(float));
            continue;
        }
        memset(to, 0, (size_t)(left * pixel) * sizeof(float));
        memcpy(to + left * pixel, image + y * p->width * pixel, (size_t)(filled * pixel) * sizeof(float));
        memset(to + (left + filled) * pixel, 0, (size_t)(right * pixel) * sizeof(float));
    }
}

/* Where the runs of a window's elements that lie one behind the other begin, in an image of `line` pixels a line. Returns how many there are. */
static int64_t runs_of(const windows *p, int64_t *starts, int64_t line, int64_t *length) {
    int64_t joined = p->aside == 1 || p->wide == 1, count = 0;
    *length = joined ? p->wide * p->channels : p->channels;
    for (int64_t i = 0; i < p->tall; i++)
        for (int64_t j = 0; j < (joined ? 1 : p->wide); j++) starts[count++] = (i * p->apart * line + j * p->aside) * p->channels;
    return count;
}

/* The filter's panels of columns, each of them contiguous: to[panels][inner][16 vectors]. */
static void pack_panels(const windows *p, float *to, const float *filter, int64_t inner) {
    for (int64_t j = 0, vectors; j < p->outputs; j += LANES * vectors, to += inner * LANES * vectors) {
        vectors = vectors_of(p->outputs - j, p->columns);
        int64_t columns = at_most(p->outputs - j, LANES * vectors);
        for (int64_t k = 0; k < inner; k++) memcpy(to + k * LANES * vectors, filter + k * p->outputs + j, (size_t)columns * sizeof(float));
    }
}

/* Rows `first` to `last` of the results of one image. `room` is for the image's lines with their border, NULL if there is none. */
static void convolve_rows(const windows *p, float *out, const float *image, const float *panels, const int64_t *starts, int64_t runs, int64_t length,
                          int64_t first, int64_t last, float *room) {
    int64_t inner = runs * length, line = room != NULL ? p->inner_width : p->width, packed = p->outputs > 3 * LANES;
    const float *from = image + first * p->down * line * p->channels;
    if (room != NULL) {
        surround(p, room, image, first * p->down, (last - 1) * p->down + (p->tall - 1) * p->apart + 1);
        from = room;
    }
    for (int64_t row = first; row < last; row++) {
        const float *b = panels, *a = from + (row - first) * p->down * line * p->channels;
        float *to = out + row * p->columns * p->outputs;
        for (int64_t j = 0, vectors; j < p->outputs; j += LANES * vectors) {
            vectors = vectors_of(p->outputs - j, p->columns);
            multiply_panel(to + j, a, starts, runs, b, length, p->across * p->channels, 1, packed ? LANES * vectors : p->outputs, p->outputs,
                           p->columns, (int)vectors, at_most(p->outputs - j, LANES * vectors), 0);
            b += packed ? inner * LANES * vectors : LANES * vectors;
        }
    }
}

/* out[images, rows, columns, outputs]. Returns 0 if there is not enough memory. */
static int convolve(const windows *p, float *out, const float *images, const float *filter, int threads) {
    int64_t bordered = has_border(p), length, starts_count = p->tall * p->wide, inner = starts_count * p->channels;
    int64_t strips = at_most(at_least((threads + p->images - 1) / p->images, 1), p->rows), packed = p->outputs > 3 * LANES;
    int64_t lines = ((p->rows + strips - 1) / strips - 1) * p->down + (p->tall - 1) * p->apart + 1;
    int64_t each = bordered ? lines * p->inner_width * p->channels : 0;
    int64_t *starts = malloc((size_t)starts_count * sizeof *starts);
    float *panels = packed ? malloc((size_t)(inner * ((p->outputs + LANES - 1) / LANES * LANES)) * sizeof(float)) : NULL;
    float *room = bordered ? malloc((size_t)(each * threads) * sizeof(float)) : NULL;
    int enough = starts != NULL && (!packed || panels != NULL) && (!bordered || room != NULL);
    if (enough) {
        int64_t runs = runs_of(p, starts, bordered ? p->inner_width : p->width, &length), tasks = p->images * strips;
        if (packed) pack_panels(p, panels, filter, inner);
        if (threads > 1) {
#pragma omp parallel for num_threads(team_for(threads)) schedule(static)
            for (int64_t thread = 0; thread < threads; thread++)
                for (int64_t t = tasks * thread / threads; t < tasks * (thread + 1) / threads; t++) {
                    int64_t i = t / strips, strip = t % strips;
                    convolve_rows(p, out + i * p->rows * p->columns * p->outputs, images + i * p->height * p->width * p->channels,
                                  packed ? panels : filter, starts, runs, length, p->rows * strip / strips, p->rows * (strip + 1) / strips,
                                  bordered ? room + thread * each : NULL);
                }
        } else {
            for (int64_t i = 0; i < p->images; i++)
                convolve_rows(p, out + i * p->rows * p->columns * p->outputs, images + i * p->height * p->width * p->channels,
                              packed ? panels : filter, starts, runs, length, 0, p->rows, room);
        }
    }
    free(starts);
    free(panels);
    free(room);
    return enough;
}

/* The filter with which the gradient of the results is convolved: to[tall, wide, outputs, channels], the last window element first. */
static void turn(float *to, const float *filter, int64_t taps, int64_t channels, int64_t outputs) {
    for (int64_t t = 0; t < taps; t++) {
        const float *from = filter + (taps - 1 - t) * channels * outputs;
        float *each = to + t * channels * outputs;
        for (int64_t c = 0; c < channels; c += LANES)
            for (int64_t o = 0; o < outputs; o += LANES)
                if (c + LANES <= channels && o + LANES <= outputs)
                    transpose_16(each + o * channels + c, channels, from + c * outputs + o, outputs);
                else
                    for (int64_t x = c; x < at_most(channels, c + LANES); x++)
                        for (int64_t y = o; y < at_most(outputs, o + LANES); y++) each[y * channels + x] = from[x * outputs + y];
    }
}

/* The gradient of the images, for windows that move by one pixel: a convolution of the results' gradient. */
static int to_images(const windows *p, float *out, const float *gradient, const float *filter, int threads) {
    windows turned = {p->images, p->rows, p->columns, p->outputs, p->height, p->width, p->tall, p->wide, 1, 1, p->apart, p->aside,
                      (p->tall - 1) * p->apart - p->above, (p->wide - 1) * p->aside - p->before, p->channels, 0, 0};
    float *other = malloc((size_t)(p->tall * p->wide * p->channels * p->outputs) * sizeof(float));
    if (other == NULL) return 0;
    reach(&turned);
    turn(other, filter, p->tall * p->wide, p->channels, p->outputs);
    int enough = convolve(&turned, out, gradient, other, threads);
    free(other);
    return enough;
}

/* The gradient of the filter: out[tall, wide, channels, outputs]. */
static int to_filter_of(const windows *p, float *out, const float *images, const float *gradient, int threads) {
    int64_t bordered = has_border(p), length, line = bordered ? p->inner_width : p->width, lines = bordered ? p->inner_height : p->height;
    int64_t all = p->images * p->rows, each = lines * line * p->channels, taps = p->tall * p->wide;
    int64_t *starts = malloc((size_t)taps * sizeof *starts), *pixels = malloc((size_t)all * sizeof *pixels);
    float *room = bordered ? malloc((size_t)(p->images * each) * sizeof(float)) : NULL;
    int enough = starts != NULL && pixels != NULL && (!bordered || room != NULL);
    if (enough) {
        int64_t runs = runs_of(p, starts, line, &length), group = at_least(STEPS / p->columns, 1);
        for (int64_t i = 0; i < all; i++) pixels[i] = i / p->rows * each + i % p->rows * p->down * line * p->channels;
        if (bordered) {
#pragma omp parallel for num_threads(team_for(threads)) if (threads > 1)
            for (int64_t i = 0; i < p->images; i++) surround(p, room + i * each, images + i * p->height * p->width * p->channels, 0, lines);
        }
        const float *from = bordered ? room : images;
        /* Threads share the rows of the result; those of one run have one start. */
        int64_t blocks = (length + 13) / 14;
#pragma omp parallel for num_threads(team_for(threads)) if (threads > 1)
        for (int64_t thread = 0; thread < threads; thread++)
            for (int64_t first = 0; first < all; first += group)
                for (int64_t b = runs * blocks * thread / threads; b < runs * blocks * (thread + 1) / threads; b++) {
                    int64_t run = b / blocks, top = length * (b % blocks) / blocks, bottom = length * (b % blocks + 1) / blocks;
                    for (int64_t j = 0, vectors; j < p->outputs; j += LANES * vectors) {
                        vectors = vectors_of(p->outputs - j, bottom - top);
                        multiply_panel(out + (run * length + top) * p->outputs + j, from + starts[run] + top, pixels + first,
                                       at_most(group, all - first), gradient + first * p->columns * p->outputs + j, p->columns, 1,
                                       p->across * p->channels, p->outputs, p->outputs, bottom - top, (int)vectors,
                                       at_most(p->outputs - j, LANES * vectors), first > 0);
                    }
                }
    }
    free(starts);
    free(pixels);
    free(room);
    return enough;
}

typedef int (*direction)(const windows *, float *, const float *, const float *, int);

static PyObject *run(PyObject *args, direction way) {
    float *out, *first, *second;
    windows p;
    int threads, enough;
    if (!parse_windows(args, &out, &first, &second, &p, &threads)) return NULL;
    Py_BEGIN_ALLOW_THREADS;
    enough = way(&p, out, first, second, threads);
    Py_END_ALLOW_THREADS;
    if (!enough) return PyErr_NoMemory();
    Py_RETURN_NONE;
}

static PyObject *forward(PyObject *m, PyObject *args) {
    (void)m;
    return run(args, convolve);
}

static PyObject *to_input(PyObject *m, PyObject *args) {
    (void)m;
    return run(args, to_images);
}

static PyObject *to_filter(PyObject *m, PyObject *args) {
    (void)m;
    return run(args, to_filter_of);
}

static PyMethodDef METHODS[] = {
    {"forward", forward, METH_VARARGS,
     "forward(out, images, filter, outputs, (images, height, width, channels), (rows, columns), window, strides, dilations, padding before, "
     "threads)"},
    {"to_input", to_input, METH_VARARGS, "to_input(images, gradient, filter, outputs, ...): the gradient of the images, for strides of one."},
    {"to_filter", to_filter, METH_VARARGS, "to_filter(filter, images, gradient, outputs, ...): the gradient of the filter."},
    {NULL, NULL, 0, NULL},
};
#else
static PyMethodDef METHODS[] = {{NULL, NULL, 0, NULL}};
#endif

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "convolutions", "Convolutions of float32 images, channels last.", -1, METHODS, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_convolutions(void) {
    PyObject *m = tensors_ready() ? PyModule_Create(&MODULE) : NULL;
    if (m != NULL && PyModule_AddObjectRef(m, "is_worthwhile", is_worthwhile() ? Py_True : Py_False) < 0) Py_CLEAR(m);
    return m;
}
