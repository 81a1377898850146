/* Convolutions of float32 images (channels last) with filters of three by three pixels that move by one, with fewer multiplications.
 *
 * Winograd's algorithm F(2x2, 3x3) (Lavin and Gray, 2015): four results in a square take 16 multiplications for each pair of channels instead of
 * 36. The square of four by four pixels that they depend on, and the filter, are transformed by additions (and halves), the products of the
 * 16 elements are sums over the channels, thus 16 products of matrices, and the results are sums of these. The gradient of the filter is
 * F(3x3, 2x2) with the same transformation of the images.
 *
 * Sums cancel here that do not occur in the definition, so rounding errors are about twice as large, and a number that is not finite reaches
 * neighbours. So the functions say whether all results are finite; if not, the definition has to be computed (convolutions.c).
 * Squares are taken in blocks, whose size depends only on the numbers of channels, so results do not depend on the number of threads.
 */
#include "filters.h"

#include <stdlib.h>
#include <string.h>

#include "../../base/native/teams.h"

#ifdef HAS_TILES
enum { SIDE = 4, ELEMENTS = 16 };                                     /* of the squares of pixels */
enum { ROOM = 1 << 17, FEWEST_SQUARES = 56, MOST_SQUARES = 224 }; /* floats of a block, and squares */

#define FOR_CHANNELS(c, mask, channels)                                                                        \
    __mmask16 mask;                                                                                            \
    for (int64_t c = 0; c < (channels) && (mask = (__mmask16)((channels) - c < LANES ? 0xffff >> (LANES - ((channels) - c)) : 0xffff), 1); c += LANES)

typedef struct {
    windows of;
    int64_t down, across, all, block; /* squares of an image, of all images, and of a block */
} squares;

static squares squares_of(const windows *p) {
    squares s = {.of = *p, .down = (p->rows + 1) / 2, .across = (p->columns + 1) / 2};
    s.all = p->images * s.down * s.across;
    int64_t fitting = ROOM / (ELEMENTS * (p->channels + p->outputs)) / MOST_ROWS * MOST_ROWS;
    s.block = at_most(at_most(at_least(fitting, FEWEST_SQUARES), MOST_SQUARES), s.all);
    return s;
}

typedef struct {
    int64_t image, row, column; /* of the first result of a square */
} place;

static inline place place_of(const squares *s, int64_t square) {
    int64_t each = s->down * s->across, in = square % each;
    return (place){square / each, in / s->across * 2, in % s->across * 2};
}

static inline void advance(const squares *s, place *at) {
    at->column += 2;
    if (at->column < s->of.columns) return;
    at->column = 0, at->row += 2;
    if (at->row >= s->of.rows) at->row = 0, at->image++;
}

typedef struct {
    const float *first; /* the pixel at the top left, which may be beyond the border */
    int64_t line, pixel;
    __mmask16 rows[SIDE], columns[SIDE]; /* all ones for those of the image, else zero */
    int inside;                          /* whether all are */
} pixels;

static inline pixels pixels_of(const float *image, int64_t height, int64_t width, int64_t channels, int64_t top, int64_t left, int64_t side) {
    pixels found = {.first = image + (top * width + left) * channels, .line = width * channels, .pixel = channels};
    found.inside = top >= 0 && left >= 0 && top + side <= height && left + side <= width;
    for (int64_t i = 0; i < SIDE; i++) {
        found.rows[i] = top + i >= 0 && top + i < height ? 0xffff : 0;
        found.columns[i] = left + i >= 0 && left + i < width ? 0xffff : 0;
    }
    return found;
}

/* 16 channels of a pixel; zeros beyond the border. */
#define PIXEL(at, i, j, c, mask, inside) \
    _mm512_maskz_loadu_ps((inside) ? (mask) : (__mmask16)((mask) & (at)->rows[i] & (at)->columns[j]), (at)->first + (i) * (at)->line + (j) * (at)->pixel + (c))

/* Where the next element of all squares of a block begins: not at a multiple of the distances at which caches keep few lines. */
static inline int64_t apart_of(int64_t count, int64_t channels) { return (count * channels + LANES - 1) / LANES / 2 * 2 * LANES + LANES; }

/* One square of the images, transformed: its elements are `apart`. */
AVX512 static inline __attribute__((always_inline)) void transform_square(float *to, const pixels *at, int64_t apart, int inside) {
    FOR_CHANNELS(c, mask, at->pixel) {
        __m512 d[SIDE][SIDE];
        UNROLL for (int j = 0; j < SIDE; j++) {
            __m512 a = PIXEL(at, 0, j, c, mask, inside), b = PIXEL(at, 1, j, c, mask, inside);
            __m512 e = PIXEL(at, 2, j, c, mask, inside), f = PIXEL(at, 3, j, c, mask, inside);
            d[0][j] = _mm512_sub_ps(a, e), d[1][j] = _mm512_add_ps(b, e), d[2][j] = _mm512_sub_ps(e, b), d[3][j] = _mm512_sub_ps(b, f);
        }
        float *out = to + c;
        UNROLL for (int i = 0; i < SIDE; i++, out += SIDE * apart) {
            _mm512_mask_storeu_ps(out, mask, _mm512_sub_ps(d[i][0], d[i][2]));
            _mm512_mask_storeu_ps(out + apart, mask, _mm512_add_ps(d[i][1], d[i][2]));
            _mm512_mask_storeu_ps(out + 2 * apart, mask, _mm512_sub_ps(d[i][2], d[i][1]));
            _mm512_mask_storeu_ps(out + 3 * apart, mask, _mm512_sub_ps(d[i][1], d[i][3]));
        }
    }
}

/* to[16][count][channels]: squares `begin` to `end` of a block that begins with square `first`, transformed. */
AVX512 static void transform_images(const squares *s, float *to, const float *images, int64_t first, int64_t begin, int64_t end, int64_t count) {
    const windows *p = &s->of;
    place at = place_of(s, first + begin);
    for (int64_t t = begin; t < end; t++, advance(s, &at)) {
        pixels from = pixels_of(images + at.image * p->height * p->width * p->channels, p->height, p->width, p->channels, at.row - p->above,
                                at.column - p->before, SIDE);
        if (from.inside)
            transform_square(to + t * p->channels, &from, apart_of(count, p->channels), 1);
        else
            transform_square(to + t * p->channels, &from, apart_of(count, p->channels), 0);
    }
}

/* to[16][count][outputs]: the squares of two by two gradients, transformed but for factors of a half. */
AVX512 static void transform_gradients(const squares *s, float *to, const float *gradients, int64_t first, int64_t begin, int64_t end, int64_t count) {
    const windows *p = &s->of;
    int64_t apart = apart_of(count, p->outputs);
    place place = place_of(s, first + begin);
    for (int64_t t = begin; t < end; t++, advance(s, &place)) {
        pixels at = pixels_of(gradients + place.image * p->rows * p->columns * p->outputs, p->rows, p->columns, p->outputs, place.row, place.column, 2);
        FOR_CHANNELS(c, mask, p->outputs) {
            __m512 d[SIDE][2];
            UNROLL for (int j = 0; j < 2; j++) {
                __m512 a = PIXEL(&at, 0, j, c, mask, 0), b = PIXEL(&at, 1, j, c, mask, 0);
                d[0][j] = a, d[1][j] = _mm512_add_ps(a, b), d[2][j] = _mm512_sub_ps(a, b), d[3][j] = b;
            }
            float *out = to + t * p->outputs + c;
            UNROLL for (int i = 0; i < SIDE; i++, out += SIDE * apart) {
                _mm512_mask_storeu_ps(out, mask, d[i][0]);
                _mm512_mask_storeu_ps(out + apart, mask, _mm512_add_ps(d[i][0], d[i][1]));
                _mm512_mask_storeu_ps(out + 2 * apart, mask, _mm512_sub_ps(d[i][0], d[i][1]));
                _mm512_mask_storeu_ps(out + 3 * apart, mask, d[i][1]);
            }
        }
    }
}

/* The columns of one element of the transformed filter: panels[outputs / 16 vectors][channels][16 vectors]. */
static int64_t panels_size(const windows *p) { return p->channels * ((p->outputs + LANES - 1) / LANES * LANES); }

/* to[16][panels]: the filter, transformed. */
AVX512 static void transform_filter(const squares *s, float *to, const float *filter) {
    const windows *p = &s->of;
    int64_t tap = p->channels * p->outputs, size = panels_size(p);
    const __m512 half = _mm512_set1_ps(0.5f);
    for (int64_t j = 0, vectors; j < p->outputs; j += LANES * vectors, to += p->channels * LANES * vectors) {
        vectors = vectors_of(p->outputs - j, s->block);
        int64_t columns = at_most(p->outputs - j, LANES * vectors);
        for (int64_t k = 0; k < p->channels; k++) {
            FOR_CHANNELS(c, mask, columns) {
                const float *from = filter + k * p->outputs + j + c;
                float *out = to + k * LANES * vectors + c;
                __m512 g[SIDE][3];
                UNROLL for (int x = 0; x < 3; x++) {
                    __m512 a = _mm512_maskz_loadu_ps(mask, from + x * tap), b = _mm512_maskz_loadu_ps(mask, from + (3 + x) * tap);
                    __m512 e = _mm512_maskz_loadu_ps(mask, from + (6 + x) * tap), both = _mm512_add_ps(a, e);
                    g[0][x] = a, g[3][x] = e;
                    g[1][x] = _mm512_mul_ps(half, _mm512_add_ps(both, b)), g[2][x] = _mm512_mul_ps(half, _mm512_sub_ps(both, b));
                }
                UNROLL for (int y = 0; y < SIDE; y++, out += SIDE * size) {
                    __m512 both = _mm512_add_ps(g[y][0], g[y][2]);
                    _mm512_storeu_ps(out, g[y][0]);
                    _mm512_storeu_ps(out + size, _mm512_mul_ps(half, _mm512_add_ps(both, g[y][1])));
                    _mm512_storeu_ps(out + 2 * size, _mm512_mul_ps(half, _mm512_sub_ps(both, g[y][1])));
                    _mm512_storeu_ps(out + 3 * size, g[y][2]);
                }
            }
        }
    }
}

/* The results of a block from the products[16][count][outputs]. Returns whether they are finite. */
AVX512 static int finish(const squares *s, float *out, const float *products, int64_t first, int64_t count) {
    const windows *p = &s->of;
    int64_t apart = apart_of(count, p->outputs), line = p->columns * p->outputs;
    __m512 vanishing = _mm512_setzero_ps(), zero = vanishing;
    place at = place_of(s, first);
    for (int64_t t = 0; t < count; t++, advance(s, &at)) {
        float *to = out + ((at.image * p->rows + at.row) * p->columns + at.column) * p->outputs;
        int below = at.row + 1 < p->rows, beside = at.column + 1 < p->columns;
        FOR_CHANNELS(c, mask, p->outputs) {
            const float *from = products + t * p->outputs + c;
            __m512 m[2][SIDE];
            UNROLL for (int j = 0; j < SIDE; j++) {
                __m512 a = _mm512_maskz_loadu_ps(mask, from + j * apart), b = _mm512_maskz_loadu_ps(mask, from + (SIDE + j) * apart);
                __m512 e = _mm512_maskz_loadu_ps(mask, from + (2 * SIDE + j) * apart), f = _mm512_maskz_loadu_ps(mask, from + (3 * SIDE + j) * apart);
                m[0][j] = _mm512_add_ps(a, _mm512_add_ps(b, e)), m[1][j] = _mm512_sub_ps(_mm512_sub_ps(b, e), f);
            }
            UNROLL for (int i = 0; i < 2; i++) {
                __m512 left = _mm512_add_ps(m[i][0], _mm512_add_ps(m[i][1], m[i][2]));
                __m512 right = _mm512_sub_ps(_mm512_sub_ps(m[i][1], m[i][2]), m[i][3]);
                vanishing = _mm512_fmadd_ps(left, zero, vanishing), vanishing = _mm512_fmadd_ps(right, zero, vanishing);
                if (i && !below) break;
                _mm512_mask_storeu_ps(to + i * line + c, mask, left);
                if (beside) _mm512_mask_storeu_ps(to + i * line + p->outputs + c, mask, right);
            }
        }
    }
    return _mm512_reduce_add_ps(vanishing) == 0.0f;
}

/* The gradient of the filter from its transformed sums[16][channels, outputs]. Returns whether it is finite. */
AVX512 static int finish_filter(const windows *p, float *out, const float *sums) {
    int64_t tap = p->channels * p->outputs;
    const __m512 half = _mm512_set1_ps(0.5f), zero = _mm512_setzero_ps();
    __m512 vanishing = zero;
    FOR_CHANNELS(c, mask, tap) {
        __m512 m[3][SIDE];
        UNROLL for (int j = 0; j < SIDE; j++) {
            __m512 a = _mm512_maskz_loadu_ps(mask, sums + j * tap + c), b = _mm512_maskz_loadu_ps(mask, sums + (SIDE + j) * tap + c);
            __m512 e = _mm512_maskz_loadu_ps(mask, sums + (2 * SIDE + j) * tap + c), f = _mm512_maskz_loadu_ps(mask, sums + (3 * SIDE + j) * tap + c);
            __m512 both = _mm512_mul_ps(half, _mm512_add_ps(b, e));
            m[0][j] = _mm512_add_ps(a, both), m[1][j] = _mm512_mul_ps(half, _mm512_sub_ps(b, e)), m[2][j] = _mm512_sub_ps(both, f);
        }
        UNROLL for (int i = 0; i < 3; i++) {
            __m512 both = _mm512_mul_ps(half, _mm512_add_ps(m[i][1], m[i][2]));
            __m512 found[3] = {_mm512_add_ps(m[i][0], both), _mm512_mul_ps(half, _mm512_sub_ps(m[i][1], m[i][2])), _mm512_sub_ps(both, m[i][3])};
            UNROLL for (int j = 0; j < 3; j++) {
                vanishing = _mm512_fmadd_ps(found[j], zero, vanishing);
                _mm512_mask_storeu_ps(out + (3 * i + j) * tap + c, mask, found[j]);
            }
        }
    }
    return _mm512_reduce_add_ps(vanishing) == 0.0f;
}

enum { NO_MEMORY = -1, NOT_FINITE, FINITE };

/* How many floats the squares and the products of a block need. */
static int64_t room_of(const squares *s) { return ELEMENTS * (apart_of(s->block, s->of.channels) + apart_of(s->block, s->of.outputs)); }

/* A block of results. */
static int convolve_block(const squares *s, float *out, const float *images, const float *filter, int64_t first, float *room) {
    const windows *p = &s->of;
    int64_t count = at_most(s->block, s->all - first), start = 0, size = panels_size(p);
    int64_t apart = apart_of(count, p->channels), products_apart = apart_of(count, p->outputs);
    float *products = room + ELEMENTS * apart;
    transform_images(s, room, images, first, 0, count, count);
    for (int64_t e = 0; e < ELEMENTS; e++) {
        const float *b = filter + e * size;
        for (int64_t j = 0, vectors; j < p->outputs; j += LANES * vectors, b += p->channels * LANES * vectors) {
            vectors = vectors_of(p->outputs - j, s->block);
            multiply_panel(products + e * products_apart + j, room + e * apart, &start, 1, b, p->channels, p->channels, 1,
                           LANES * vectors, p->outputs, count, (int)vectors, at_most(p->outputs - j, LANES * vectors), 0);
        }
    }
    return finish(s, out, products, first, count);
}

/* out[images, rows, columns, outputs] */
static int convolve(const windows *p, float *out, const float *images, const float *filter, int threads) {
    squares s = squares_of(p);
    int64_t blocks = (s.all + s.block - 1) / s.block, each = room_of(&s);
    threads = (int)at_most(threads, blocks);
    float *transformed = malloc((size_t)(ELEMENTS * panels_size(p)) * sizeof(float)), *room = malloc((size_t)(each * threads) * sizeof(float));
    int found = transformed != NULL && room != NULL ? FINITE : NO_MEMORY;
    if (found == FINITE) {
        transform_filter(&s, transformed, filter);
        if (threads > 1) {
#pragma omp parallel for num_threads(team_for(threads)) schedule(static) reduction(& : found)
            for (int64_t thread = 0; thread < threads; thread++)
                for (int64_t b = blocks * thread / threads; b < blocks * (thread + 1) / threads; b++)
                    found &= convolve_block(&s, out, images, transformed, b * s.block, room + thread * each);
        } else {
            for (int64_t b = 0; b < blocks; b++) found &= convolve_block(&s, out, images, transformed, b * s.block, room);
        }
    }
    free(transformed);
    free(room);
    return found;
}

static int to_images(const windows *p, float *out, const float *gradient, const float *filter, int threads) {
    windows of_gradient = {.images = p->images, .height = p->rows, .width = p->columns, .channels = p->outputs, .rows = p->height,
                           .columns = p->width, .above = 2 - p->above, .before = 2 - p->before, .outputs = p->channels};
    float *other = malloc((size_t)(9 * p->channels * p->outputs) * sizeof(float));
    if (other == NULL) return NO_MEMORY;
    turn(other, filter, 9, p->channels, p->outputs);
    int found = convolve(&of_gradient, out, gradient, other, threads);
    free(other);
    return found;
}

/* Adds a block to the sums of one element of the transformed gradient of the filter, in rows `top` to `bottom`. */
static void sum_block(const windows *p, float *sums, const float *squares, const float *gradients, int64_t count, int64_t top, int64_t bottom, int adds) {
    int64_t start = 0;
    for (int64_t j = 0, vectors; j < p->outputs; j += LANES * vectors) {
        vectors = vectors_of(p->outputs - j, p->channels);
        multiply_panel(sums + top * p->outputs + j, squares + top, &start, 1, gradients + j, count, 1, p->channels, p->outputs, p->outputs,
                       bottom - top, (int)vectors, at_most(p->outputs - j, LANES * vectors), adds);
    }
}

/* The gradient of the filter: out[3, 3, channels, outputs]. */
static int to_filter_of(const windows *p, float *out, const float *images, const float *gradient, int threads) {
    squares s = squares_of(p);
    float *sums = malloc((size_t)(ELEMENTS * p->channels * p->outputs) * sizeof(float));
    float *room = malloc((size_t)room_of(&s) * sizeof(float));
    int found = sums != NULL && room != NULL ? FINITE : NO_MEMORY;
    if (found == FINITE) {
        int64_t parts = (threads + ELEMENTS - 1) / ELEMENTS; /* of the rows of an element */
#pragma omp parallel num_threads(team_for(threads)) if (threads > 1)
        for (int64_t first = 0; first < s.all; first += s.block) {
            int64_t count = at_most(s.block, s.all - first);
            float *gradients = room + ELEMENTS * apart_of(count, p->channels);
#pragma omp for schedule(static)
            for (int64_t thread = 0; thread < threads; thread++) {
                int64_t begin = count * thread / threads, end = count * (thread + 1) / threads;
                transform_images(&s, room, images, first, begin, end, count);
                transform_gradients(&s, gradients, gradient, first, begin, end, count);
            }
#pragma omp for schedule(static)
            for (int64_t share = 0; share < ELEMENTS * parts; share++) {
                int64_t e = share / parts, part = share % parts;
                sum_block(p, sums + e * p->channels * p->outputs, room + e * apart_of(count, p->channels), gradients + e * apart_of(count, p->outputs), count,
                          p->channels * part / parts, p->channels * (part + 1) / parts, first > 0);
            }
        }
        found = finish_filter(p, out, sums);
    }
    free(sums);
    free(room);
    return found;
}

static PyObject *run(PyObject *args, int which) {
    float *out, *first, *second;
    windows p;
    int threads, found;
    if (!parse_windows(args, &out, &first, &second, &p, &threads)) return NULL;
    Py_BEGIN_ALLOW_THREADS;
    found = (which == FORWARD ? convolve : which == TO_INPUT ? to_images : to_filter_of)(&p, out, first, second, threads);
    Py_END_ALLOW_THREADS;
    if (found == NO_MEMORY) return PyErr_NoMemory();
    return PyBool_FromLong(found == FINITE);
}

PRODUCT_METHODS(run)
static PyMethodDef METHODS[] = {PRODUCT_METHOD_TABLE, {NULL, NULL, 0, NULL}};
#else
static PyMethodDef METHODS[] = {{NULL, NULL, 0, NULL}};
#endif

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "winograd", "Convolutions with filters of three by three pixels. The functions return whether the results are finite.",
    -1, METHODS, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_winograd(void) { return tensors_ready() ? PyModule_Create(&MODULE) : NULL; }
