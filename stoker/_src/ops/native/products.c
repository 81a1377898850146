/* Products of float32 matrices with AVX-512, for processors on which torch's BLAS does not use it.
 *
 * MKL computes with 256 bits on processors that are not Intel's, even if they have registers of 512: half the rate of multiplications. The
 * product here has the signature of BLAS's sgemm, so that every extension that multiplies matrices can take either (ops/support/blas.py).
 *
 * The result is divided into tiles of up to 14 rows and 1 to 4 vectors of columns, whose sums stay in registers. A tile reads `a` element by
 * element where it lies, and rows of `b`: where they lie, or as copied panels if `b` is transposed or is used often enough. Each sum is taken
 * in the order of the inner dimension, in parts of STEPS, so results do not depend on the number of threads, nor on other rows and columns.
 */
#include "tensors.h"

#include <stdlib.h>
#include <string.h>

typedef void (*sgemm_function)(const char *, const char *, const int *, const int *, const int *, const float *, const float *, const int *,
                               const float *, const int *, const float *, float *, const int *);
enum { WORTH_SHARING = 1 << 18 };          /* multiplications that are worth a second thread */
static sgemm_function chosen_sgemm = NULL;
static sgemm_function other_sgemm = NULL; /* for what the product here does not do: memory is short, or there is one column */

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#include <immintrin.h>
#ifdef _OPENMP
#include <omp.h>
#endif

enum { LANES = 16, MOST_ROWS = 14, STEPS = 384, COLUMNS = 256, FEW_ROWS = 6 };
enum { SMALL = 1 << 13 };     /* floats of panels that fit on the stack */
enum { FEW = 4 };             /* rows of `a` below which copying a transposed `b` does not pay */
enum { WORTH_PACKING = 96 }; /* rows of `a` that make copies of `b`'s panels worth their time */

typedef struct {
    float *out;
    const float *a, *b;
    int64_t m, k, n, a_row, a_step, b_row, out_row; /* element (i, p) of `a` is a[i * a_row + p * a_step] */
    int transpose_b;                                /* element (p, j) of `b` is b[p * b_row + j], or b[j * b_row + p] */
} product;

/* out[ROWS, 16 VECTORS] = or += a b. The columns of the last vector are those of `mask`. */
typedef void (*tile_function)(float *out, const float *a, const float *b, int64_t steps, int64_t a_row, int64_t a_step, int64_t b_row,
                              int64_t out_row, __mmask16 mask, int adds);

#define AVX512 __attribute__((target("avx512f,avx512vl,avx512dq,avx512bw,fma,avx2")))
#define UNROLL _Pragma("GCC unroll 16")

/* Three rows of `a` are addressed from one pointer, so that all pointers of a tile have registers. */
#define TILE(ROWS, VECTORS)                                                                                                       \
    AVX512 static void tile_##VECTORS##_##ROWS(float *out, const float *a, const float *b, int64_t steps, int64_t a_row,          \
                                               int64_t a_step, int64_t b_row, int64_t out_row, __mmask16 mask, int adds) {        \
        __m512 sums[ROWS][VECTORS];                                                                                               \
        const float *at[(ROWS + 2) / 3];                                                                                          \
        UNROLL for (int i = 0; i < ROWS; i++) UNROLL for (int v = 0; v < VECTORS; v++) sums[i][v] = _mm512_setzero_ps();          \
        UNROLL for (int i = 0; i < (ROWS + 2) / 3; i++) at[i] = a + 3 * i * a_row;                                                \
        for (int64_t p = 0; p < steps; p++, b += b_row) {                                                                         \
            __m512 y[VECTORS];                                                                                                    \
            UNROLL for (int v = 0; v < VECTORS - 1; v++) y[v] = _mm512_loadu_ps(b + LANES * v);                                   \
            y[VECTORS - 1] = _mm512_maskz_loadu_ps(mask, b + LANES * (VECTORS - 1));                                              \
            UNROLL for (int i = 0; i < ROWS; i++) {                                                                               \
                __m512 x = _mm512_set1_ps(at[i / 3][i % 3 * a_row]);                                                              \
                UNROLL for (int v = 0; v < VECTORS; v++) sums[i][v] = _mm512_fmadd_ps(x, y[v], sums[i][v]);                       \
            }                                                                                                                     \
            UNROLL for (int i = 0; i < (ROWS + 2) / 3; i++) at[i] += a_step;                                                      \
        }                                                                                                                         \
        UNROLL for (int i = 0; i < ROWS; i++) {                                                                                   \
            float *row = out + i * out_row;                                                                                       \
            UNROLL for (int v = 0; v < VECTORS; v++) {                                                                            \
                __mmask16 kept = v == VECTORS - 1 ? mask : (__mmask16)0xffff;                                                     \
                if (adds) sums[i][v] = _mm512_add_ps(sums[i][v], _mm512_maskz_loadu_ps(kept, row + LANES * v));                   \
                _mm512_mask_storeu_ps(row + LANES * v, kept, sums[i][v]);                                                         \
            }                                                                                                                     \
        }                                                                                                                         \
    }

#define TILES_OF_FEW(VECTORS) TILE(1, VECTORS) TILE(2, VECTORS) TILE(3, VECTORS) TILE(4, VECTORS) TILE(5, VECTORS) TILE(6, VECTORS)
#define TILES_OF_NINE(VECTORS) TILES_OF_FEW(VECTORS) TILE(7, VECTORS) TILE(8, VECTORS) TILE(9, VECTORS)
#define TILES(VECTORS) TILES_OF_NINE(VECTORS) TILE(10, VECTORS) TILE(11, VECTORS) TILE(12, VECTORS) TILE(13, VECTORS) TILE(14, VECTORS)
TILES(1)
TILES(2)
TILES_OF_NINE(3)
TILES_OF_FEW(4)

#define NAMES_OF_FEW(V) NULL, tile_##V##_1, tile_##V##_2, tile_##V##_3, tile_##V##_4, tile_##V##_5, tile_##V##_6
#define NAMES_OF_NINE(V) NAMES_OF_FEW(V), tile_##V##_7, tile_##V##_8, tile_##V##_9
#define NAMES(V) NAMES_OF_NINE(V), tile_##V##_10, tile_##V##_11, tile_##V##_12, tile_##V##_13, tile_##V##_14
static const tile_function TILE_OF[5][MOST_ROWS + 1] = {{NULL}, {NAMES(1)}, {NAMES(2)}, {NAMES_OF_NINE(3)}, {NAMES_OF_FEW(4)}};
static const int ROWS_OF[5] = {0, 14, 14, 9, 6}; /* rows of the largest tile with that many vectors */

/* How many vectors the panel of columns has that starts where `columns` are left. */
static int vectors_of(int64_t columns, int64_t m) {
    int64_t left = (columns + LANES - 1) / LANES;
    if (m <= FEW_ROWS) return left < 4 ? (int)left : 4; /* few rows: more columns, so that enough sums are under way */
    return left <= 3 ? (int)left : 2;
}

/* 16 rows of 16 elements become columns. */
AVX512 static void transpose_16(float *out, int64_t out_row, const float *in, int64_t in_row) {
    __m512 r[16], t[16];
    UNROLL for (int i = 0; i < 16; i++) r[i] = _mm512_loadu_ps(in + i * in_row);
    UNROLL for (int i = 0; i < 8; i++) {
        t[2 * i] = _mm512_unpacklo_ps(r[2 * i], r[2 * i + 1]);
        t[2 * i + 1] = _mm512_unpackhi_ps(r[2 * i], r[2 * i + 1]);
    }
    UNROLL for (int i = 0; i < 4; i++) {
        __m512d a = _mm512_castps_pd(t[4 * i]), b = _mm512_castps_pd(t[4 * i + 1]), c = _mm512_castps_pd(t[4 * i + 2]),
                d = _mm512_castps_pd(t[4 * i + 3]);
        r[4 * i] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, c));
        r[4 * i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, c));
        r[4 * i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(b, d));
        r[4 * i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(b, d));
    }
    UNROLL for (int i = 0; i < 4; i++) {
        t[i] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0x88);
        t[i + 4] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0xdd);
        t[i + 8] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0x88);
        t[i + 12] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0xdd);
    }
    UNROLL for (int i = 0; i < 4; i++) {
        _mm512_storeu_ps(out + i * out_row, _mm512_shuffle_f32x4(t[i], t[i + 8], 0x88));
        _mm512_storeu_ps(out + (i + 4) * out_row, _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0x88));
        _mm512_storeu_ps(out + (i + 8) * out_row, _mm512_shuffle_f32x4(t[i], t[i + 8], 0xdd));
        _mm512_storeu_ps(out + (i + 12) * out_row, _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0xdd));
    }
}

/* Copies a panel of `columns` columns of `b`, from the inner step `first` on: to[steps, width]. What is behind the columns stays undefined. */
static void pack(float *to, const product *p, int64_t first, int64_t steps, int64_t column, int64_t columns, int64_t width) {
    if (!p->transpose_b) {
        const float *from = p->b + first * p->b_row + column;
        for (int64_t s = 0; s < steps; s++) memcpy(to + s * width, from + s * p->b_row, (size_t)columns * sizeof(float));
        return;
    }
    const float *from = p->b + column * p->b_row + first;
    for (int64_t j = 0; j < columns; j += LANES)
        for (int64_t s = 0; s < steps; s += LANES)
            if (j + LANES <= columns && s + LANES <= steps)
                transpose_16(to + s * width + j, width, from + j * p->b_row + s, p->b_row);
            else
                for (int64_t y = s; y < steps && y < s + LANES; y++)
                    for (int64_t x = j; x < columns && x < j + LANES; x++) to[y * width + x] = from[x * p->b_row + y];
}

/* How many floats the packed panels of a block of columns need. */
static int64_t room_of(const product *p) {
    int64_t steps = p->k < STEPS ? p->k : STEPS, columns = (p->n + LANES - 1) / LANES * LANES;
    return steps * (columns < COLUMNS + 4 * LANES ? columns : COLUMNS + 4 * LANES);
}

/* The part of the result with the given rows and columns. `room` is for packed panels of `b`, NULL if `b` is read where it lies. */
static void part(const product *p, int64_t top, int64_t bottom, int64_t left, int64_t right, float *room) {
    int64_t depth = p->k < STEPS ? p->k : STEPS;
    for (int64_t block = left, next; block < right; block = next) {
        next = block;
        while (next < right && (room == NULL || next - block < COLUMNS)) next += LANES * vectors_of(right - next, p->m);
        if (next > right) next = right;
        for (int64_t first = 0; first < p->k; first += STEPS) {
            int64_t steps = p->k - first < STEPS ? p->k - first : STEPS;
            for (int64_t j = block, vectors; room != NULL && j < next; j += LANES * vectors) {
                vectors = vectors_of(right - j, p->m);
                int64_t columns = right - j < LANES * vectors ? right - j : LANES * vectors;
                pack(room + (j - block) * depth, p, first, steps, j, columns, LANES * vectors);
            }
            for (int64_t j = block, vectors; j < next; j += LANES * vectors) {
                vectors = vectors_of(right - j, p->m);
                int64_t columns = right - j < LANES * vectors ? right - j : LANES * vectors, most = ROWS_OF[vectors];
                __mmask16 mask = (__mmask16)(0xffff >> (LANES * vectors - columns));
                const float *b = room != NULL ? room + (j - block) * depth : p->b + first * p->b_row + j;
                int64_t b_row = room != NULL ? LANES * vectors : p->b_row;
                int64_t tiles = (bottom - top + most - 1) / most;
                for (int64_t t = 0; t < tiles; t++) { /* of about the same number of rows */
                    int64_t i = top + (bottom - top) * t / tiles, rows = top + (bottom - top) * (t + 1) / tiles - i;
                    TILE_OF[vectors][rows](p->out + i * p->out_row + j, p->a + i * p->a_row + first * p->a_step, b, steps, p->a_row, p->a_step,
                                           b_row, p->out_row, mask, first > 0);
                }
            }
        }
    }
}

/* Returns 0 if there is not enough memory. */
static int multiply(const product *p) {
    int threads = 1;
#ifdef _OPENMP
    if (p->m * p->k * p->n >= WORTH_SHARING && omp_get_level() == 0) threads = omp_get_max_threads();
#endif
    int packs = p->transpose_b || p->m >= WORTH_PACKING;
    float near[SMALL], *room = NULL;
    int64_t each = packs ? room_of(p) : 0;
    if (packs) {
        room = each * threads <= SMALL ? near : malloc((size_t)(each * threads) * sizeof(float));
        if (room == NULL) return 0;
    }
    if (threads == 1) {
        part(p, 0, p->m, 0, p->n, room);
    } else {
        /* Threads share the columns, in panels, or the rows if there are too few panels. */
        int64_t panels = (p->n + 2 * LANES - 1) / (2 * LANES), across = panels < threads ? 1 : threads, down = threads / across;
#pragma omp parallel for num_threads(threads) schedule(static)
        for (int64_t cell = 0; cell < across * down; cell++) {
            int64_t x = cell % across, y = cell / across;
            int64_t left = panels * x / across * 2 * LANES, right = x + 1 == across ? p->n : panels * (x + 1) / across * 2 * LANES;
            part(p, p->m * y / down, p->m * (y + 1) / down, left, right, room == NULL ? NULL : room + each * cell);
        }
    }
    if (room != near) free(room);
    return 1;
}

/* Fortran's sgemm for alpha = 1 and beta = 0. Its matrices are column-major, so it computes the transposed row-major product. */
static void sgemm(const char *transpose_b, const char *transpose_a, const int *n, const int *m, const int *k, const float *alpha, const float *b,
                  const int *b_row, const float *a, const int *a_row, const float *beta, float *out, const int *out_row) {
    int turned = *transpose_a == 'T';
    product p = {out, a, b, *m, *k, *n, turned ? 1 : *a_row, turned ? *a_row : 1, *b_row, *out_row, *transpose_b == 'T'};
    /* Sums along the rows of a matrix, each used once or a few times, are BLAS's. */
    int along_rows = (*n == 1 && !turned) || (p.transpose_b && *m < FEW);
    if (along_rows || *k == 0 || *alpha != 1.0f || *beta != 0.0f || !multiply(&p))
        other_sgemm(transpose_b, transpose_a, n, m, k, alpha, b, b_row, a, a_row, beta, out, out_row);
}

/* Whether the processor has AVX-512 and is not Intel's. */
static int is_worthwhile(void) {
    unsigned largest, b, c, d;
    if (!__get_cpuid(0, &largest, &b, &c, &d) || b == signature_INTEL_ebx) return 0;
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw");
}
#else
static int is_worthwhile(void) { return 0; }
static const sgemm_function sgemm = NULL;
#endif

static PyObject *set_sgemm(PyObject *module, PyObject *pointer) {
    (void)module;
    void *found = PyLong_AsVoidPtr(pointer);
    if (PyErr_Occurred()) return NULL;
    other_sgemm = (sgemm_function)found;
    chosen_sgemm = is_worthwhile() ? sgemm : other_sgemm;
    return PyLong_FromVoidPtr((void *)chosen_sgemm);
}

/* Product number `i` of pairs of matrices that lie one behind the other. */
static void one_of_many(float *out, const float *a, const float *b, int i, int m, int k, int n, int transpose_a, int transpose_b) {
    const float one = 1.0f, zero = 0.0f;
    chosen_sgemm(transpose_b ? "T" : "N", transpose_a ? "T" : "N", &n, &m, &k, &one, b + (int64_t)i * k * n, transpose_b ? &k : &n,
                 a + (int64_t)i * m * k, transpose_a ? &m : &k, &zero, out + (int64_t)i * m * n, &n);
}

static PyObject *matmul(PyObject *module, PyObject *args) {
    (void)module;
    float *out, *a, *b;
    int count, m, k, n, transpose_a, transpose_b;
    if (!PyArg_ParseTuple(args, "O&O&O&iiiipp", to_address, &out, to_address, &a, to_address, &b, &count, &m, &k, &n, &transpose_a, &transpose_b))
        return NULL;
    if (chosen_sgemm == NULL) return PyErr_Format(PyExc_RuntimeError, "there is no BLAS");
    int64_t size = (int64_t)m * k * n;
    Py_BEGIN_ALLOW_THREADS;
    if (count > 1 && size < WORTH_SHARING && size * count >= WORTH_SHARING) {
#pragma omp parallel for schedule(static)
        for (int i = 0; i < count; i++) one_of_many(out, a, b, i, m, k, n, transpose_a, transpose_b);
    } else { /* not in a region of one thread: the threads of a region inside of it would be made anew each time */
        for (int i = 0; i < count; i++) one_of_many(out, a, b, i, m, k, n, transpose_a, transpose_b);
    }
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

static PyMethodDef METHODS[] = {
    {"set_sgemm", set_sgemm, METH_O, "Takes the address of BLAS's sgemm_. Returns the address of the product to use on this processor."},
    {"matmul", matmul, METH_VARARGS, 
     "matmul(out, a, b, count, m, k, n, transpose_a, transpose_b): out[count, m, n] = a[count, m, k] b[count, k, n], all contiguous."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "products", "Products of float32 matrices.", -1, METHODS, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_products(void) { return tensors_ready() ? PyModule_Create(&MODULE) : NULL; }
