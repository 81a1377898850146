/* Convolutions of float32 images and volumes (channels last) as tiles of matrix products that read the images where they lie.
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
enum {
    STEPS = 384,   /* pixels whose products are summed before the next filter element takes its turn */
    ROOM = 1 << 17 /* elements of a volume's part with its border */
};

static int has_border(const windows *p) {
    return p->front || p->above || p->before || p->inner_depth > p->depth || p->inner_height > p->height || p->inner_width > p->width;
}

/* A part of an image with its border: from sheet and line `first` to `last`. */
typedef struct {
    int64_t first_sheet, last_sheet, first_line, last_line;
} part;

static void surround(const windows *p, float *to, const float *image, part inside) {
    int64_t pixel = p->channels, left = at_most(p->before, p->inner_width), sheet = (inside.last_line - inside.first_line) * p->inner_width * pixel;
    int64_t filled = at_least(at_most(p->width, p->inner_width - p->before), 0), right = p->inner_width - left - filled;
    for (int64_t z = inside.first_sheet - p->front; z < inside.last_sheet - p->front; z++) {
        if (z < 0 || z >= p->depth) {
            memset(to, 0, (size_t)sheet * sizeof(float));
            to += sheet;
            continue;
        }
        for (int64_t y = inside.first_line - p->above; y < inside.last_line - p->above; y++, to += p->inner_width * pixel) {
            if (y < 0 || y >= p->height) {
                memset(to, 0, (size_t)(p->inner_width * pixel) * sizeof(float));
                continue;
            }
            memset(to, 0, (size_t)(left * pixel) * sizeof(float));
            memcpy(to + left * pixel, image + (z * p->height + y) * p->width * pixel, (size_t)(filled * pixel) * sizeof(float));
            memset(to + (left + filled) * pixel, 0, (size_t)(right * pixel) * sizeof(float));
        }
    }
}

/* Where the runs of a window's elements that lie one behind the other begin, in an image of `line` pixels a line and `sheet` pixels a sheet.
 * Returns how many there are. */
static int64_t runs_of(const windows *p, int64_t *starts, int64_t sheet, int64_t line, int64_t *length) {
    int64_t joined = p->aside == 1 || p->wide == 1, count = 0;
    *length = joined ? p->wide * p->channels : p->channels;
    for (int64_t d = 0; d < p->deep; d++)
        for (int64_t i = 0; i < p->tall; i++)
            for (int64_t j = 0; j < (joined ? 1 : p->wide); j++)
                starts[count++] = (d * p->behind * sheet + i * p->apart * line + j * p->aside) * p->channels;
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

/* One strip of the results of an image: a volume is divided into sheets, a flat image into rows. */
typedef struct {
    int64_t first_sheet, last_sheet, first_row, last_row;
} strip;

static strip strip_of(const windows *p, int64_t number, int64_t strips) {
    if (p->deep > 1 || p->sheets > 1) return (strip){p->sheets * number / strips, p->sheets * (number + 1) / strips, 0, p->rows};
    return (strip){0, 1, p->rows * number / strips, p->rows * (number + 1) / strips};
}

static part reached_by(const windows *p, strip s) {
    return (part){s.first_sheet * p->inward, (s.last_sheet - 1) * p->inward + (p->deep - 1) * p->behind + 1, s.first_row * p->down,
                  (s.last_row - 1) * p->down + (p->tall - 1) * p->apart + 1};
}

/* Where results are written: how far images, sheets, rows and pixels are apart. */
typedef struct {
    float *first;
    int64_t image, sheet, row, pixel;
} target;

/* The elements of a window in one dimension that meet an image of `size` if the window begins at `begin`; one if there are none. */
typedef struct {
    int64_t first, count;
} span;

static span met(int64_t begin, int64_t rate, int64_t window, int64_t size) {
    int64_t first = begin < 0 ? at_most((rate - 1 - begin) / rate, window - 1) : 0;
    int64_t end = begin < size ? at_least((size - begin + rate - 1) / rate, first + 1) : first + 1;
    return (span){first, at_most(end, window) - first};
}

/* `room` is for the strip's part of the image with its border, NULL if there is none. */
static void convolve_strip(const windows *p, const target *to, int64_t number, const float *image, const float *panels, const int64_t *starts,
                           int64_t runs, int64_t length, strip s, float *room) {
    int64_t inner = runs * length, line = (room != NULL ? p->inner_width : p->width) * p->channels, packed = p->outputs > 3 * LANES;
    part reached = reached_by(p, s);
    int64_t sheet = (room != NULL ? reached.last_line - reached.first_line : p->height) * line;
    const float *from = image + reached.first_sheet * sheet + reached.first_line * line;
    if (room != NULL) {
        surround(p, room, image, reached);
        from = room;
    }
    for (int64_t z = s.first_sheet; z < s.last_sheet; z++)
        for (int64_t row = s.first_row; row < s.last_row; row++) {
            const float *b = panels, *a = from + (z - s.first_sheet) * p->inward * sheet + (row - s.first_row) * p->down * line;
            float *out = to->first + number * to->image + z * to->sheet + row * to->row;
            /* Sheets of the window outside of a volume, or lines outside of a flat image, are left out. */
            span taps = p->deep > 1 ? met(z * p->inward - p->front, p->behind, p->deep, p->depth) : met(row * p->down - p->above, p->apart, p->tall, p->height);
            int64_t each = runs / (p->deep > 1 ? p->deep : p->tall);
            for (int64_t j = 0, vectors; j < p->outputs; j += LANES * vectors) {
                vectors = vectors_of(p->outputs - j, p->columns);
                int64_t b_row = packed ? LANES * vectors : p->outputs;
                multiply_panel(out + j, a, starts + taps.first * each, taps.count * each, b + taps.first * each * length * b_row, length,
                               p->across * p->channels, 1, b_row, to->pixel, p->columns, (int)vectors, at_most(p->outputs - j, LANES * vectors), 0);
                b += packed ? inner * LANES * vectors : LANES * vectors;
            }
        }
}

/* How many strips an image has: enough for all threads, and of a volume so many that a part with its border stays in the cache. */
static int64_t strips_of(const windows *p, int threads) {
    int64_t wanted = at_least((threads + p->images - 1) / p->images, 1), volume = p->deep > 1 || p->sheets > 1;
    if (volume && has_border(p)) wanted = at_least(wanted, p->inner_depth * p->inner_height * p->inner_width * p->channels / ROOM);
    return at_most(wanted, volume ? p->sheets : p->rows);
}

/* Returns 0 if there is not enough memory. */
static int convolve_to(const windows *p, const target *to, const float *images, const float *filter, int threads) {
    int64_t bordered = has_border(p), length, taps = p->deep * p->tall * p->wide, inner = taps * p->channels, packed = p->outputs > 3 * LANES;
    int64_t strips = strips_of(p, threads), each = 0, tasks = p->images * strips;
    for (int64_t i = 0; bordered && i < strips; i++) {
        part r = reached_by(p, strip_of(p, i, strips));
        each = at_least(each, (r.last_sheet - r.first_sheet) * (r.last_line - r.first_line) * p->inner_width * p->channels);
    }
    int64_t *starts = malloc((size_t)taps * sizeof *starts);
    float *panels = packed ? malloc((size_t)(inner * ((p->outputs + LANES - 1) / LANES * LANES)) * sizeof(float)) : NULL;
    float *room = bordered ? malloc((size_t)(each * threads) * sizeof(float)) : NULL;
    int enough = starts != NULL && (!packed || panels != NULL) && (!bordered || room != NULL);
    if (enough) {
        int64_t line = bordered ? p->inner_width : p->width, runs = runs_of(p, starts, line * (bordered ? p->inner_height : p->height), line, &length);
        if (packed) pack_panels(p, panels, filter, inner);
#pragma omp parallel for num_threads(team_for(threads)) schedule(static) if (threads > 1)
        for (int64_t thread = 0; thread < threads; thread++)
            for (int64_t t = tasks * thread / threads; t < tasks * (thread + 1) / threads; t++) {
                int64_t i = t / strips;
                convolve_strip(p, to, i, images + i * p->depth * p->height * p->width * p->channels, packed ? panels : filter, starts, runs, length,
                               strip_of(p, t % strips, strips), bordered ? room + thread * each : NULL);
            }
    }
    free(starts);
    free(panels);
    free(room);
    return enough;
}

/* out[images, sheets, rows, columns, outputs]. Returns 0 if there is not enough memory. */
static int convolve(const windows *p, float *out, const float *images, const float *filter, int threads) {
    int64_t row = p->columns * p->outputs;
    target to = {out, p->sheets * p->rows * row, p->rows * row, row, p->outputs};
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

static void clear(const windows *p, const target *to, share z, share y, share x) {
    for (int64_t i = 0; i < p->images * z.pixels * y.pixels * x.pixels; i++) {
        int64_t line = i / x.pixels, sheet = line / y.pixels;
        memset(to->first + sheet / z.pixels * to->image + sheet % z.pixels * to->sheet + line % y.pixels * to->row + i % x.pixels * to->pixel, 0,
               (size_t)p->channels * sizeof(float));
    }
}

/* The gradient of one share of the pixels: those that meet the window elements from (d, i, j) on, a stride apart. */
static int to_share(const windows *p, float *out, const float *gradient, const float *filter, float *turned, int64_t d, int64_t i, int64_t j, int threads) {
    share z = share_of(d, p->inward, p->depth, p->deep, p->front), y = share_of(i, p->down, p->height, p->tall, p->above);
    share x = share_of(j, p->across, p->width, p->wide, p->before);
    int64_t pixel = p->channels, line = p->width * pixel, sheet = p->height * line, tap = p->channels * p->outputs;
    target to = {out + z.first * sheet + y.first * line + x.first * pixel, p->depth * sheet, p->inward * sheet, p->down * line, p->across * pixel};
    if (!z.pixels || !y.pixels || !x.pixels) return 1;
    if (!z.taps || !y.taps || !x.taps) {
        clear(p, &to, z, y, x);
        return 1;
    }
    float *next = turned;
    for (int64_t a = z.taps - 1; a >= 0; a--) /* the last window element first */
        for (int64_t b = y.taps - 1; b >= 0; b--)
            for (int64_t c = x.taps - 1; c >= 0; c--, next += tap)
                turn(next, filter + (((d + a * p->inward) * p->tall + i + b * p->down) * p->wide + j + c * p->across) * tap, 1, p->channels, p->outputs);
    windows part = {.images = p->images, .depth = p->sheets, .height = p->rows, .width = p->columns, .channels = p->outputs,
                    .sheets = z.pixels, .rows = y.pixels, .columns = x.pixels, .deep = z.taps, .tall = y.taps, .wide = x.taps,
                    .inward = 1, .down = 1, .across = 1, .behind = p->behind, .apart = p->apart, .aside = p->aside,
                    .front = (z.taps - 1) * p->behind - z.moved, .above = (y.taps - 1) * p->apart - y.moved,
                    .before = (x.taps - 1) * p->aside - x.moved, .outputs = p->channels};
    reach(&part);
    return convolve_to(&part, &to, gradient, turned, threads);
}

/* The gradient of the images: for each share of the pixels a convolution of the results' gradient. Windows have no gaps, unless they move by one. */
static int to_images(const windows *p, float *out, const float *gradient, const float *filter, int threads) {
    float *turned = malloc((size_t)(p->deep * p->tall * p->wide * p->channels * p->outputs) * sizeof(float));
    int enough = turned != NULL;
    for (int64_t d = 0; d < p->inward; d++)
        for (int64_t i = 0; i < p->down; i++)
            for (int64_t j = 0; j < p->across && enough; j++) enough = to_share(p, out, gradient, filter, turned, d, i, j, threads);
    free(turned);
    return enough;
}

/* The gradient of the filter: out[deep, tall, wide, channels, outputs]. */
static int to_filter_of(const windows *p, float *out, const float *images, const float *gradient, int threads) {
    int64_t bordered = has_border(p), length, line = bordered ? p->inner_width : p->width;
    int64_t sheet = line * (bordered ? p->inner_height : p->height), each = sheet * (bordered ? p->inner_depth : p->depth) * p->channels;
    int64_t all = p->images * p->sheets * p->rows, taps = p->deep * p->tall * p->wide;
    int64_t *starts = malloc((size_t)taps * sizeof *starts), *pixels = malloc((size_t)all * sizeof *pixels);
    float *room = bordered ? malloc((size_t)(p->images * each) * sizeof(float)) : NULL;
    int enough = starts != NULL && pixels != NULL && (!bordered || room != NULL);
    if (enough) {
        int64_t runs = runs_of(p, starts, sheet, line, &length), group = at_least(STEPS / p->columns, 1);
        for (int64_t i = 0; i < all; i++)
            pixels[i] = i / p->rows / p->sheets * each + (i / p->rows % p->sheets * p->inward * sheet + i % p->rows * p->down * line) * p->channels;
        if (bordered) {
#pragma omp parallel for num_threads(team_for(threads)) if (threads > 1)
            for (int64_t i = 0; i < p->images; i++) surround(p, room + i * each, images + i * p->depth * p->height * p->width * p->channels, (part){0, p->inner_depth, 0, p->inner_height});
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
     "forward(out, images, filter, outputs, (images, depth, height, width, channels), (sheets, rows, columns), window, strides, dilations, "
     "padding before, threads)"},
    {"to_input", to_input, METH_VARARGS, "to_input(images, gradient, filter, outputs, ...): the gradient of the images, for strides or dilations of one and narrow borders."},
    {"to_filter", to_filter, METH_VARARGS, "to_filter(filter, images, gradient, outputs, ...): the gradient of the filter."},
    {NULL, NULL, 0, NULL},
};
#else
static PyMethodDef METHODS[] = {{NULL, NULL, 0, NULL}};
#endif

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "convolutions", "Convolutions of float32 images and volumes, channels last.", -1, METHODS, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_convolutions(void) {
    PyObject *m = tensors_ready() ? PyModule_Create(&MODULE) : NULL;
    if (m != NULL && PyModule_AddObjectRef(m, "runs_here", runs_tiles() ? Py_True : Py_False) < 0) Py_CLEAR(m);
    return m;
}
