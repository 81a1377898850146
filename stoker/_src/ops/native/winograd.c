/* Convolutions of float32 images (channels last) with filters of three by three or five by five pixels that move by one, with fewer multiplications.
 *
 * Winograd's algorithms F(2x2, 3x3) and F(2x2, 5x5) (Lavin and Gray, 2015): four results in a square take 16 multiplications for each pair of
 * channels instead of 36, or 36 instead of 100. The square of four by four (six by six) pixels that they depend on, and the filter, are transformed
 * by additions (and a few constants), the products of the elements are sums over the channels, thus 16 (36) products of matrices, and the results are
 * sums of these. The gradient of the filter is F(3x3, 2x2) or F(5x5, 2x2) with the same transformation of the images.
 *
 * Sums cancel here that do not occur in the definition, so rounding errors are about twice as large (three times for five by five pixels, whose
 * transformations also divide by six), and a number that is not finite reaches neighbours. So the functions say whether all results are finite; if
 * not, the definition has to be computed (convolutions.c). Squares are taken in blocks, whose size depends only on the numbers of channels, so results
 * do not depend on the number of threads.
 */
#include "filters.h"

#include <stdlib.h>
#include <string.h>

#include "../../base/native/teams.h"

#ifdef HAS_TILES
enum { MOST_SIDE = 6 };                                            /* of the squares of pixels: that of the filter plus one */
enum { ROOM = 1 << 17, FEWEST_SQUARES = 56, MOST_SQUARES = 224 }; /* floats of a block, and squares */

#define FOR_CHANNELS(c, mask, channels)                                                                        \
    __mmask16 mask;                                                                                            \
    for (int64_t c = 0; c < (channels) && (mask = (__mmask16)((channels) - c < LANES ? 0xffff >> (LANES - ((channels) - c)) : 0xffff), 1); c += LANES)

typedef struct {
    windows of;
    int64_t side, elements;           /* of a square of pixels */
    int64_t down, across, all, block; /* squares of an image, of all images, and of a block */
} squares;

static squares squares_of(const windows *p) {
    squares s = {.of = *p, .side = p->wide + 1, .elements = (p->wide + 1) * (p->wide + 1), .down = (p->rows + 1) / 2, .across = (p->columns + 1) / 2};
    s.all = p->images * s.down * s.across;
    int64_t fitting = ROOM / (s.elements * (p->channels + p->outputs)) / MOST_ROWS * MOST_ROWS;
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
    __mmask16 rows[MOST_SIDE], columns[MOST_SIDE]; /* all ones for those of the image, else zero */
    int inside;                          /* whether all are */
} pixels;

static inline pixels pixels_of(const float *image, int64_t height, int64_t width, int64_t channels, int64_t top, int64_t left, int64_t side) {
    pixels found = {.first = image + (top * width + left) * channels, .line = width * channels, .pixel = channels};
    found.inside = top >= 0 && left >= 0 && top + side <= height && left + side <= width;
    for (int64_t i = 0; i < side; i++) {
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

#define INLINE AVX512 static inline __attribute__((always_inline))
#define ADD _mm512_add_ps
#define SUB _mm512_sub_ps
#define TIMES(factor, x) _mm512_mul_ps(_mm512_set1_ps(factor), x)
#define PLUS(x, factor, y) _mm512_fmadd_ps(_mm512_set1_ps(factor), y, x) /* x + factor y */

/* The transformations of rows and columns, for squares of `side` pixels. Those of six take 0, 1, -1, 2, -2 and infinity as the points at which
 * polynomials are evaluated. */
INLINE void of_pixels(__m512 *t, const __m512 *x, int side) {
    if (side == 4) {
        t[0] = SUB(x[0], x[2]), t[1] = ADD(x[1], x[2]), t[2] = SUB(x[2], x[1]), t[3] = SUB(x[1], x[3]);
        return;
    }
    __m512 even = PLUS(x[4], -4.0f, x[2]), odd = PLUS(x[3], -4.0f, x[1]), near = SUB(x[4], x[2]), twice = TIMES(2.0f, SUB(x[3], x[1]));
    t[0] = PLUS(PLUS(x[4], -5.0f, x[2]), 4.0f, x[0]), t[5] = PLUS(PLUS(x[5], -5.0f, x[3]), 4.0f, x[1]);
    t[1] = ADD(even, odd), t[2] = SUB(even, odd), t[3] = ADD(near, twice), t[4] = SUB(near, twice);
}

INLINE void of_filter(__m512 *t, const __m512 *x, int side) {
    if (side == 4) {
        __m512 both = ADD(x[0], x[2]);
        t[0] = x[0], t[1] = TIMES(0.5f, ADD(both, x[1])), t[2] = TIMES(0.5f, SUB(both, x[1])), t[3] = x[2];
        return;
    }
    __m512 even = ADD(ADD(x[0], x[2]), x[4]), odd = ADD(x[1], x[3]);
    __m512 far = PLUS(PLUS(x[0], 4.0f, x[2]), 16.0f, x[4]), twice = PLUS(TIMES(2.0f, x[1]), 8.0f, x[3]);
    t[0] = TIMES(0.25f, x[0]), t[1] = TIMES(-1.0f / 6, ADD(even, odd)), t[2] = TIMES(-1.0f / 6, SUB(even, odd));
    t[3] = TIMES(1.0f / 24, ADD(far, twice)), t[4] = TIMES(1.0f / 24, SUB(far, twice)), t[5] = x[4];
}

/* From products to two results. */
INLINE void to_results(__m512 *y, const __m512 *m, int side) {
    __m512 sum = ADD(m[1], m[2]), difference = SUB(m[1], m[2]);
    if (side == 4)
        y[0] = ADD(m[0], sum), y[1] = SUB(difference, m[3]);
    else
        y[0] = ADD(ADD(m[0], sum), ADD(m[3], m[4])), y[1] = ADD(PLUS(difference, 2.0f, SUB(m[3], m[4])), m[5]);
}

/* The gradients of two results, but for what is left to `to_filter`. */
INLINE void of_gradients(__m512 *t, const __m512 *g, int side) {
    t[0] = g[0], t[1] = ADD(g[0], g[1]), t[2] = SUB(g[0], g[1]), t[side - 1] = g[1];
    if (side == 6) t[3] = PLUS(g[0], 2.0f, g[1]), t[4] = PLUS(g[0], -2.0f, g[1]);
}

/* From products to the gradient of a filter. */
INLINE void to_filter_side(__m512 *w, const __m512 *m, int side) {
    if (side == 4) {
        __m512 both = TIMES(0.5f, ADD(m[1], m[2]));
        w[0] = ADD(m[0], both), w[1] = TIMES(0.5f, SUB(m[1], m[2])), w[2] = SUB(both, m[3]);
        return;
    }
    __m512 even = TIMES(-1.0f / 6, ADD(m[1], m[2])), odd = TIMES(-1.0f / 6, SUB(m[1], m[2])), far = ADD(m[3], m[4]), twice = SUB(m[3], m[4]);
    w[0] = PLUS(PLUS(even, 1.0f / 24, far), 0.25f, m[0]), w[1] = PLUS(odd, 1.0f / 12, twice), w[2] = PLUS(even, 1.0f / 6, far);
    w[3] = PLUS(odd, 1.0f / 3, twice), w[4] = ADD(PLUS(even, 2.0f / 3, far), m[5]);
}

/* Compiles FUNCTION, whose first argument is the side of squares, for both. */
#define FOR_SIDE(s, FUNCTION, ...) ((s)->side == 4 ? FUNCTION(4, __VA_ARGS__) : FUNCTION(6, __VA_ARGS__))

/* One square of the images, transformed: its elements are `apart`. */
INLINE void transform_square(int side, float *to, const pixels *at, int64_t apart, int inside) {
    FOR_CHANNELS(c, mask, at->pixel) {
        __m512 d[MOST_SIDE][MOST_SIDE];
        UNROLL for (int j = 0; j < side; j++) {
            __m512 x[MOST_SIDE], t[MOST_SIDE];
            UNROLL for (int i = 0; i < side; i++) x[i] = PIXEL(at, i, j, c, mask, inside);
            of_pixels(t, x, side);
            UNROLL for (int i = 0; i < side; i++) d[i][j] = t[i];
        }
        float *out = to + c;
        UNROLL for (int i = 0; i < side; i++) {
            __m512 t[MOST_SIDE];
            of_pixels(t, d[i], side);
            UNROLL for (int j = 0; j < side; j++, out += apart) _mm512_mask_storeu_ps(out, mask, t[j]);
        }
    }
}

/* Fetches the pixels that the square below has besides those of this one. An address beyond the images is not read. */
INLINE void fetch_ahead(const pixels *at, int64_t channels, int side) {
    uintptr_t line = (uintptr_t)at->first + (uintptr_t)(side * at->line * (int64_t)sizeof(float));
    for (int i = 0; i < 2; i++, line += (uintptr_t)(at->line * (int64_t)sizeof(float)))
        for (int64_t c = 0; c < 2 * channels; c += LANES) _mm_prefetch((const char *)(line + (uintptr_t)(c * (int64_t)sizeof(float))), _MM_HINT_T0);
}

INLINE void transform_images_of(int side, const squares *s, float *to, const float *images, int64_t first, int64_t begin, int64_t end, int64_t count) {
    const windows *p = &s->of;
    place at = place_of(s, first + begin);
    for (int64_t t = begin; t < end; t++, advance(s, &at)) {
        pixels from = pixels_of(images + at.image * p->height * p->width * p->channels, p->height, p->width, p->channels, at.row - p->above,
                                at.column - p->before, side);
        fetch_ahead(&from, p->channels, side);
        if (from.inside)
            transform_square(side, to + t * p->channels, &from, apart_of(count, p->channels), 1);
        else
            transform_square(side, to + t * p->channels, &from, apart_of(count, p->channels), 0);
    }
}

/* to[elements][count][channels]: squares `begin` to `end` of a block that begins with square `first`, transformed. */
AVX512 static void transform_images(const squares *s, float *to, const float *images, int64_t first, int64_t begin, int64_t end, int64_t count) {
    FOR_SIDE(s, transform_images_of, s, to, images, first, begin, end, count);
}

INLINE void transform_gradients_of(int side, const squares *s, float *to, const float *gradients, int64_t first, int64_t begin, int64_t end,
                                   int64_t count) {
    const windows *p = &s->of;
    int64_t apart = apart_of(count, p->outputs);
    place place = place_of(s, first + begin);
    for (int64_t t = begin; t < end; t++, advance(s, &place)) {
        pixels at = pixels_of(gradients + place.image * p->rows * p->columns * p->outputs, p->rows, p->columns, p->outputs, place.row, place.column, 2);
        FOR_CHANNELS(c, mask, p->outputs) {
            __m512 d[MOST_SIDE][2];
            UNROLL for (int j = 0; j < 2; j++) {
                __m512 g[2] = {PIXEL(&at, 0, j, c, mask, 0), PIXEL(&at, 1, j, c, mask, 0)}, found[MOST_SIDE];
                of_gradients(found, g, side);
                UNROLL for (int i = 0; i < side; i++) d[i][j] = found[i];
            }
            float *out = to + t * p->outputs + c;
            UNROLL for (int i = 0; i < side; i++) {
                __m512 found[MOST_SIDE];
                of_gradients(found, d[i], side);
                UNROLL for (int j = 0; j < side; j++, out += apart) _mm512_mask_storeu_ps(out, mask, found[j]);
            }
        }
    }
}

/* to[elements][count][outputs]: the squares of two by two gradients, transformed. */
AVX512 static void transform_gradients(const squares *s, float *to, const float *gradients, int64_t first, int64_t begin, int64_t end, int64_t count) {
    FOR_SIDE(s, transform_gradients_of, s, to, gradients, first, begin, end, count);
}

/* The columns of one element of the transformed filter: panels[outputs / 16 vectors][channels][16 vectors]. */
static int64_t panels_size(const windows *p) { return p->channels * ((p->outputs + LANES - 1) / LANES * LANES); }

INLINE void transform_filter_of(int side, const squares *s, float *to, const float *filter) {
    const windows *p = &s->of;
    int64_t tap = p->channels * p->outputs, size = panels_size(p);
    for (int64_t j = 0, vectors; j < p->outputs; j += LANES * vectors, to += p->channels * LANES * vectors) {
        vectors = vectors_of(p->outputs - j, s->block);
        int64_t columns = at_most(p->outputs - j, LANES * vectors);
        for (int64_t k = 0; k < p->channels; k++) {
            FOR_CHANNELS(c, mask, columns) {
                const float *from = filter + k * p->outputs + j + c;
                float *out = to + k * LANES * vectors + c;
                __m512 g[MOST_SIDE][MOST_SIDE];
                UNROLL for (int x = 0; x < side - 1; x++) {
                    __m512 w[MOST_SIDE], t[MOST_SIDE];
                    UNROLL for (int y = 0; y < side - 1; y++) w[y] = _mm512_maskz_loadu_ps(mask, from + ((side - 1) * y + x) * tap);
                    of_filter(t, w, side);
                    UNROLL for (int y = 0; y < side; y++) g[y][x] = t[y];
                }
                UNROLL for (int y = 0; y < side; y++) {
                    __m512 t[MOST_SIDE];
                    of_filter(t, g[y], side);
                    UNROLL for (int x = 0; x < side; x++, out += size) _mm512_storeu_ps(out, t[x]);
                }
            }
        }
    }
}

/* to[elements][panels]: the filter, transformed. */
AVX512 static void transform_filter(const squares *s, float *to, const float *filter) { FOR_SIDE(s, transform_filter_of, s, to, filter); }

INLINE int finish_of(int side, const squares *s, float *out, const float *products, int64_t first, int64_t count) {
    const windows *p = &s->of;
    int64_t apart = apart_of(count, p->outputs), line = p->columns * p->outputs;
    __m512 vanishing = _mm512_setzero_ps(), zero = vanishing;
    place at = place_of(s, first);
    for (int64_t t = 0; t < count; t++, advance(s, &at)) {
        float *to = out + ((at.image * p->rows + at.row) * p->columns + at.column) * p->outputs;
        int below = at.row + 1 < p->rows, beside = at.column + 1 < p->columns;
        FOR_CHANNELS(c, mask, p->outputs) {
            const float *from = products + t * p->outputs + c;
            __m512 m[2][MOST_SIDE];
            UNROLL for (int j = 0; j < side; j++) {
                __m512 x[MOST_SIDE], y[2];
                UNROLL for (int i = 0; i < side; i++) x[i] = _mm512_maskz_loadu_ps(mask, from + (side * i + j) * apart);
                to_results(y, x, side);
                m[0][j] = y[0], m[1][j] = y[1];
            }
            UNROLL for (int i = 0; i < 2; i++) {
                __m512 y[2];
                to_results(y, m[i], side);
                vanishing = _mm512_fmadd_ps(y[0], zero, vanishing), vanishing = _mm512_fmadd_ps(y[1], zero, vanishing);
                if (i && !below) break;
                _mm512_mask_storeu_ps(to + i * line + c, mask, y[0]);
                if (beside) _mm512_mask_storeu_ps(to + i * line + p->outputs + c, mask, y[1]);
            }
        }
    }
    return _mm512_reduce_add_ps(vanishing) == 0.0f;
}

/* The results of a block from the products[elements][count][outputs]. Returns whether they are finite. */
AVX512 static int finish(const squares *s, float *out, const float *products, int64_t first, int64_t count) {
    return FOR_SIDE(s, finish_of, s, out, products, first, count);
}

INLINE int finish_filter_of(int side, const squares *s, float *out, const float *sums) {
    int64_t tap = s->of.channels * s->of.outputs;
    const __m512 zero = _mm512_setzero_ps();
    __m512 vanishing = zero;
    FOR_CHANNELS(c, mask, tap) {
        __m512 m[MOST_SIDE][MOST_SIDE];
        UNROLL for (int j = 0; j < side; j++) {
            __m512 x[MOST_SIDE], w[MOST_SIDE];
            UNROLL for (int i = 0; i < side; i++) x[i] = _mm512_maskz_loadu_ps(mask, sums + (side * i + j) * tap + c);
            to_filter_side(w, x, side);
            UNROLL for (int i = 0; i < side - 1; i++) m[i][j] = w[i];
        }
        UNROLL for (int i = 0; i < side - 1; i++) {
            __m512 found[MOST_SIDE];
            to_filter_side(found, m[i], side);
            UNROLL for (int j = 0; j < side - 1; j++) {
                vanishing = _mm512_fmadd_ps(found[j], zero, vanishing);
                _mm512_mask_storeu_ps(out + ((side - 1) * i + j) * tap + c, mask, found[j]);
            }
        }
    }
    return _mm512_reduce_add_ps(vanishing) == 0.0f;
}

/* The gradient of the filter from its transformed sums[elements][channels, outputs]. Returns whether it is finite. */
AVX512 static int finish_filter(const squares *s, float *out, const float *sums) { return FOR_SIDE(s, finish_filter_of, s, out, sums); }

enum { NO_MEMORY = -1, NOT_FINITE, FINITE };

/* How many floats the squares and the products of a block need. */
static int64_t room_of(const squares *s) { return s->elements * (apart_of(s->block, s->of.channels) + apart_of(s->block, s->of.outputs)); }

/* A block of results. */
static int convolve_block(const squares *s, float *out, const float *images, const float *filter, int64_t first, float *room) {
    const windows *p = &s->of;
    int64_t count = at_most(s->block, s->all - first), start = 0, size = panels_size(p);
    int64_t apart = apart_of(count, p->channels), products_apart = apart_of(count, p->outputs);
    float *products = room + s->elements * apart;
    transform_images(s, room, images, first, 0, count, count);
    for (int64_t e = 0; e < s->elements; e++) {
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
    float *transformed = malloc((size_t)(s.elements * panels_size(p)) * sizeof(float)), *room = malloc((size_t)(each * threads) * sizeof(float));
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
                           .columns = p->width, .tall = p->tall, .wide = p->wide, .above = p->tall - 1 - p->above,
                           .before = p->wide - 1 - p->before, .outputs = p->channels};
    float *other = malloc((size_t)(p->tall * p->wide * p->channels * p->outputs) * sizeof(float));
    if (other == NULL) return NO_MEMORY;
    turn(other, filter, p->tall * p->wide, p->channels, p->outputs);
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

/* The gradient of the filter: out[tall, wide, channels, outputs]. */
static int to_filter_of(const windows *p, float *out, const float *images, const float *gradient, int threads) {
    squares s = squares_of(p);
    float *sums = malloc((size_t)(s.elements * p->channels * p->outputs) * sizeof(float));
    float *room = malloc((size_t)room_of(&s) * sizeof(float));
    int found = sums != NULL && room != NULL ? FINITE : NO_MEMORY;
    if (found == FINITE) {
        int64_t parts = (threads + s.elements - 1) / s.elements; /* of the rows of an element */
#pragma omp parallel num_threads(team_for(threads)) if (threads > 1)
        for (int64_t first = 0; first < s.all; first += s.block) {
            int64_t count = at_most(s.block, s.all - first);
            float *gradients = room + s.elements * apart_of(count, p->channels);
#pragma omp for schedule(static)
            for (int64_t thread = 0; thread < threads; thread++) {
                int64_t begin = count * thread / threads, end = count * (thread + 1) / threads;
                transform_images(&s, room, images, first, begin, end, count);
                transform_gradients(&s, gradients, gradient, first, begin, end, count);
            }
#pragma omp for schedule(static)
            for (int64_t share = 0; share < s.elements * parts; share++) {
                int64_t e = share / parts, part = share % parts;
                sum_block(p, sums + e * p->channels * p->outputs, room + e * apart_of(count, p->channels), gradients + e * apart_of(count, p->outputs), count,
                          p->channels * part / parts, p->channels * (part + 1) / parts, first > 0);
            }
        }
        found = finish_filter(&s, out, sums);
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
    PyModuleDef_HEAD_INIT, "winograd", "Convolutions with filters of three by three or five by five pixels. The functions return whether the results are finite.",
    -1, METHODS, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_winograd(void) { return tensors_ready() ? PyModule_Create(&MODULE) : NULL; }
