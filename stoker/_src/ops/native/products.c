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

#include "../../base/native/tiles.h"

#include <stdlib.h>
#include <string.h>

typedef void (*sgemm_function)(const char *, const char *, const int *, const int *, const int *, const float *, const float *, const int *,
                               const float *, const int *, const float *, float *, const int *);
enum { WORTH_SHARING = 1 << 18 };          /* multiplications that are worth a second thread */
static sgemm_function chosen_sgemm = NULL;
static sgemm_function other_sgemm = NULL; /* for what the product here does not do, and if memory is short */

#ifdef HAS_TILES
#ifdef _OPENMP
#include <omp.h>
#endif

enum { ROWS = 28 };             /* that are multiplied by all panels of a block, one after the other */
enum { STEPS = 384, COLUMNS = 256 }; /* of a packed block of `b` */
enum { SMALL = 1 << 13 };     /* floats of panels that fit on the stack */
enum { FEW = 4 };             /* rows of `a` below which copying a transposed `b` does not pay */
enum { WORTH_PACKING = 96 }; /* rows of `a` that make copies of `b`'s panels worth their time */
enum { FAR = 1 << 21 };       /* floats of a `b` that is likely to come from memory */
enum { WORTH_FETCHING = 4 };  /* rows of `a` that make copies of such a `b` worth their time, because its rows can be fetched ahead */
enum { AHEAD = 8 };           /* how many rows */

typedef struct {
    float *out;
    const float *a, *b;
    int64_t m, k, n, a_row, a_step, b_row, out_row; /* element (i, p) of `a` is a[i * a_row + p * a_step] */
    int transpose_b;                                /* element (p, j) of `b` is b[p * b_row + j], or b[j * b_row + p] */
} product;

/* Copies the panels of columns `block` to `next` of `b`, row by row, from the inner step `first` on. What is behind the columns stays undefined. */
static void pack_rows(float *to, const product *p, int64_t first, int64_t steps, int64_t block, int64_t next, int64_t right, int64_t depth) {
    for (int64_t s = 0; s < steps; s++) {
        const float *from = p->b + (first + s) * p->b_row;
        if (s + AHEAD < steps)
            for (int64_t j = block; j < next; j += LANES) _mm_prefetch((const char *)(from + AHEAD * p->b_row + j), _MM_HINT_T0);
        for (int64_t j = block, width; j < next; j += width) {
            width = LANES * vectors_of(right - j, p->m);
            int64_t columns = right - j < width ? right - j : width;
            memcpy(to + (j - block) * depth + s * width, from + j, (size_t)columns * sizeof(float));
        }
    }
}

/* Copies a panel of `columns` columns of a transposed `b`: to[steps, width]. */
static void pack(float *to, const product *p, int64_t first, int64_t steps, int64_t column, int64_t columns, int64_t width) {
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
            if (room != NULL && !p->transpose_b) pack_rows(room, p, first, steps, block, next, right, depth);
            for (int64_t j = block, vectors; room != NULL && p->transpose_b && j < next; j += LANES * vectors) {
                vectors = vectors_of(right - j, p->m);
                int64_t columns = right - j < LANES * vectors ? right - j : LANES * vectors;
                pack(room + (j - block) * depth, p, first, steps, j, columns, LANES * vectors);
            }
            for (int64_t i = top, rows; i < bottom; i += rows) {
                rows = bottom - i < 2 * ROWS ? bottom - i : ROWS;
                for (int64_t j = block, vectors; j < next; j += LANES * vectors) {
                    vectors = vectors_of(right - j, p->m);
                    int64_t columns = right - j < LANES * vectors ? right - j : LANES * vectors, start = 0;
                    const float *b = room != NULL ? room + (j - block) * depth : p->b + first * p->b_row + j;
                    multiply_panel(p->out + i * p->out_row + j, p->a + i * p->a_row + first * p->a_step, &start, 1, b, steps, p->a_row, p->a_step,
                                   room != NULL ? LANES * vectors : p->b_row, p->out_row, rows, (int)vectors, columns, first > 0);
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
    int packs = p->transpose_b || p->m >= (p->k * p->n >= FAR ? WORTH_FETCHING : WORTH_PACKING);
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

AVX512 static float dot(const float *x, const float *y, int64_t n) {
    __m512 s = _mm512_setzero_ps(), t = s;
    int64_t i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        s = _mm512_fmadd_ps(_mm512_loadu_ps(x + i), _mm512_loadu_ps(y + i), s);
        t = _mm512_fmadd_ps(_mm512_loadu_ps(x + i + LANES), _mm512_loadu_ps(y + i + LANES), t);
    }
    for (; i < n; i += LANES) {
        __mmask16 mask = n - i < LANES ? (__mmask16)(0xffff >> (LANES - (n - i))) : (__mmask16)0xffff;
        s = _mm512_fmadd_ps(_mm512_maskz_loadu_ps(mask, x + i), _mm512_maskz_loadu_ps(mask, y + i), s);
    }
    return _mm512_reduce_add_ps(_mm512_add_ps(s, t));
}

/* Sums along the rows of `a` and of a transposed `b`, whose elements are used too few times to be worth a copy. */
static void multiply_rows(const product *p) {
    int shared = p->m * p->k * p->n >= 16 * WORTH_SHARING; /* it is memory that they wait for */
#ifdef _OPENMP
    shared = shared && omp_get_level() == 0 && omp_get_max_threads() > 1;
#endif
    int64_t all = p->m * p->n;
    if (shared) {
#pragma omp parallel for schedule(static)
        for (int64_t e = 0; e < all; e++)
            p->out[e / p->n * p->out_row + e % p->n] = dot(p->a + e / p->n * p->a_row, p->b + e % p->n * p->b_row, p->k);
    } else {
        for (int64_t i = 0; i < p->m; i++)
            for (int64_t j = 0; j < p->n; j++) p->out[i * p->out_row + j] = dot(p->a + i * p->a_row, p->b + j * p->b_row, p->k);
    }
}

/* Fortran's sgemm for alpha = 1 and beta = 0. Its matrices are column-major, so it computes the transposed row-major product. */
static void sgemm(const char *transpose_b, const char *transpose_a, const int *n, const int *m, const int *k, const float *alpha, const float *b,
                  const int *b_row, const float *a, const int *a_row, const float *beta, float *out, const int *out_row) {
    int turned = *transpose_a == 'T';
    product p = {out, a, b, *m, *k, *n, turned ? 1 : *a_row, turned ? *a_row : 1, *b_row, *out_row, *transpose_b == 'T'};
    int is_plain = *k > 0 && *alpha == 1.0f && *beta == 0.0f;
    if (*n == 1 && turned && p.out_row == 1) { /* sums of the rows of `a`: the transposed product has many columns */
        product other = {out, b, a, 1, *k, *m, 0, p.transpose_b ? 1 : p.b_row, *a_row, *m, 0};
        p = other;
    }
    if (is_plain && p.a_step == 1 && ((p.transpose_b && p.m < FEW) || (p.n == 1 && (p.transpose_b || p.b_row == 1)))) {
        multiply_rows(&p);
        return;
    }
    if (!is_plain || !multiply(&p))
        other_sgemm(transpose_b, transpose_a, n, m, k, alpha, b, b_row, a, a_row, beta, out, out_row);
}

#else
static const sgemm_function sgemm = NULL;
#endif

static PyObject *set_sgemm(PyObject *module, PyObject *pointer) {
    (void)module;
    void *found = PyLong_AsVoidPtr(pointer);
    if (PyErr_Occurred()) return NULL;
    other_sgemm = (sgemm_function)found;
    chosen_sgemm = mkl_is_wide() ? other_sgemm : sgemm;
    return PyLong_FromVoidPtr((void *)chosen_sgemm);
}

/* MKL takes 50 to 70 ns to begin. The product here takes less, so it is the faster one for small matrices on Intel's processors, too. */
static PyObject *small_sgemm(PyObject *module, PyObject *none) {
    (void)module, (void)none;
    return PyLong_FromVoidPtr(runs_tiles() && other_sgemm != NULL ? (void *)sgemm : NULL);
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
    {"small_sgemm", small_sgemm, METH_NOARGS, "The address of the product to use for small matrices, 0 if it is BLAS's."},
    {"matmul", matmul, METH_VARARGS, 
     "matmul(out, a, b, count, m, k, n, transpose_a, transpose_b): out[count, m, n] = a[count, m, k] b[count, k, n], all contiguous."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "products", "Products of float32 matrices.", -1, METHODS, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_products(void) { return tensors_ready() ? PyModule_Create(&MODULE) : NULL; }
