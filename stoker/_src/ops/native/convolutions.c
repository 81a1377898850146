/* Convolutions of float32 images (channels last) as tiles of matrix products that read the images where they lie.
 *
 * The windows of one row of results are rows of a matrix whose elements lie in the image: the window one to the right begins `across` pixels
 * later. So nothing but the border of zeros around an image is copied. Sums are taken in the order of the filter's elements (of the pixels for
 * the gradient of the filter), so results do not depend on the number of threads. See ops/nn/conv_patches.py, which also says when the windows are
 * copied instead (patches.c). Callers check dtypes, layouts and sizes.
 */
#include "filters.h"

#include <stdlib.h>
#include <string.h>

#include "../../base/native/teams.h"

#ifdef HAS_TILES
enum { STEPS = 384 }; /* pixels whose products are summed before the next filter element takes its turn */

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

/* Where results are written: how far images, rows and pixels are apart. */
typedef struct {
    float *first;
    int64_t image, row, pixel;
} target;

/* Rows `first` to `last` of the results of one image. `room` is for the image's lines with their border, NULL if there is none. */
static void convolve_rows(const windows *p, const target *to, int64_t number, const float *image, const float *panels, const int64_t *starts,
                          int64_t runs, int64_t length, int64_t first, int64_t last, float *room) {
    int64_t inner = runs * length, line = room != NULL ? p->inner_width : p->width, packed = p->outputs > 3 * LANES;
    const float *from = image + first * p->down * line * p->channels;
    if (room != NULL) {
        surround(p, room, image, first * p->down, (last - 1) * p->down + (p->tall - 1) * p->apart + 1);
        from = room;
    }
    for (int64_t row = first; row < last; row++) {
        const float *b = panels, *a = from + (row - first) * p->down * line * p->channels;
        float *out = to->first + number * to->image + row * to->row;
        /* Window elements above and below the image are left out, except that one remains. */
        int64_t top = row * p->down - p->above, skipped = top < 0 ? at_most((p->apart - 1 - top) / p->apart, p->tall - 1) : 0;
        int64_t reached = top < p->height ? at_least((p->height - top + p->apart - 1) / p->apart, skipped + 1) : skipped + 1;
        int64_t each = runs / p->tall, taps = at_most(reached, p->tall) - skipped;
        for (int64_t j = 0, vectors; j < p->outputs; j += LANES * vectors) {
            vectors = vectors_of(p->outputs - j, p->columns);
            int64_t b_row = packed ? LANES * vectors : p->outputs;
            multiply_panel(out + j, a, starts + skipped * each, taps * each, b + skipped * each * length * b_row, length, p->across * p->channels, 1,
                           b_row, to->pixel, p->columns, (int)vectors, at_most(p->outputs - j, LANES * vectors), 0);
            b += packed ? inner * LANES * vectors : LANES * vectors;
        }
    }
}

/* Returns 0 if there is not enough memory. */
static int convolve_to(const windows *p, const target *to, const float *images, const float *filter, int threads) {
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
                    convolve_rows(p, to, i, images + i * p->height * p->width * p->channels,
                                  packed ? panels : filter, starts, runs, length, p->rows * strip / strips, p->rows * (strip + 1) / strips,
                                  bordered ? room + thread * each : NULL);
                }
        } else {
            for (int64_t i = 0; i < p->images; i++)
                convolve_rows(p, to, i, images + i * p->height * p->width * p->channels,
                              packed ? panels : filter, starts, runs, length, 0, p->rows, room);
        }
    }
    free(starts);
    free(panels);
    free(room);
    return enough;
}

/* out[images, rows, columns, outputs]. Returns 0 if there is not enough memory. */
static int convolve(const windows *p, float *out, const float *images, const float *filter, int threads) {
    target to = {out, p->rows * p->columns * p->outputs, p->columns * p->outputs, p->outputs};
    return convolve_to(p, &to, images, filter, threads);
}

/* In one dimension, the pixels that meet the elements `phase`, `phase` + `step`, ... of windows: every `step`th one from `first` on. The first
 * window that reaches the first of them with its first such element is number `moved`. */
typedef struct {
    int64_t first, pixels, taps, moved;
} share;

static share share_of(int64_t phase, int64_t step, int64_t size, int64_t window, int64_t padding) {
    int64_t moved = padding > phase ? (padding - phase + step - 1) / step : 0, first = phase - padding + moved * step;
    return (share){first, first < size ? (size - first + step - 1) / step : 0, window > phase ? (window - phase + step - 1) / step : 0, moved};
}

/* The gradient of the images: for each share of the pixels a convolution of the results' gradient. Windows have no gaps, unless they move by one. */
static int to_images(const windows *p, float *out, const float *gradient, const float *filter, int threads) {
    int64_t tap = p->channels * p->outputs;
    float *other = malloc((size_t)(p->tall * p->wide * tap) * sizeof(float));
    int enough = other != NULL;
    for (int64_t i = 0; i < p->down && enough; i++)
        for (int64_t j = 0; j < p->across && enough; j++) {
            share y = share_of(i, p->down, p->height, p->tall, p->above), x = share_of(j, p->across, p->width, p->wide, p->before);
            target to = {out + (y.first * p->width + x.first) * p->channels, p->height * p->width * p->channels, p->down * p->width * p->channels,
                         p->across * p->channels};
            if (!y.pixels || !x.pixels) continue;
            if (!y.taps || !x.taps) {
                for (int64_t line = 0; line < p->images * y.pixels; line++)
                    for (int64_t column = 0; column < x.pixels; column++)
                        memset(to.first + line / y.pixels * to.image + line % y.pixels * to.row + column * to.pixel, 0,
                               (size_t)p->channels * sizeof(float));
                continue;
            }
            for (int64_t a = 0; a < y.taps; a++) /* the last window element first */
                for (int64_t b = 0; b < x.taps; b++)
                    turn(other + (a * x.taps + b) * tap, filter + ((i + (y.taps - 1 - a) * p->down) * p->wide + j + (x.taps - 1 - b) * p->across) * tap,
                         1, p->channels, p->outputs);
            windows part = {p->images, p->rows, p->columns, p->outputs, y.pixels, x.pixels, y.taps, x.taps, 1, 1, p->apart, p->aside,
                            (y.taps - 1) * p->apart - y.moved, (x.taps - 1) * p->aside - x.moved, p->channels, 0, 0};
            reach(&part);
            enough = convolve_to(&part, &to, gradient, other, threads);
        }
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
    {"to_input", to_input, METH_VARARGS, "to_input(images, gradient, filter, outputs, ...): the gradient of the images, for strides or dilations of one and narrow borders."},
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
