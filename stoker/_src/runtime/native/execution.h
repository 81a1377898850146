/* What the lines of a program do, for buffers of `real` numbers. lines32.c and lines64.c define that type and those that belong to it, and include this file. */
#include "choices.h"
#include "dense.h"
#include "lines.h"
#include "loops.h"

static const unary_loop UNARY_LOOPS[] = {loop_neg, loop_square, loop_sqrt, loop_rsqrt, loop_reciprocal,
                                         loop_abs, loop_exp, loop_log, loop_log1p, loop_tanh, loop_sigmoid, loop_relu, loop_relu6, loop_expm1, loop_elu, loop_is_finite, loop_floor, loop_ceil, loop_rint, loop_sign,
                                         loop_erf, loop_sin, loop_cos, loop_digamma, loop_trigamma, loop_float_of_int, loop_int_of_float};
static const char *UNARY_NAMES[] = {"neg", "square", "sqrt", "rsqrt", "reciprocal", "abs", "exp", "log", "log1p", "tanh", "sigmoid", "relu", "relu6", "expm1", "elu", "is_finite", "floor", "ceil", "rint", "sign", "erf", "sin", "cos", "digamma", "trigamma", "float_of_int", "int_of_float"};
static const binary_loop BINARY_LOOPS[] = {loop_add, loop_sub, loop_mul, loop_div, loop_max, loop_min,
                                           loop_square_difference, loop_tanh_grad, loop_sigmoid_grad, loop_relu_grad, loop_relu6_grad,
                                           loop_sqrt_grad, loop_rsqrt_grad, loop_reciprocal_grad, loop_leaky_relu,
                                           loop_less, loop_less_equal, loop_greater, loop_greater_equal, loop_equal, loop_not_equal, loop_elu_grad,
                                           loop_int_add, loop_int_sub, loop_int_mul, loop_int_max, loop_int_min, loop_int_floor_div, loop_int_floor_mod,
                                           loop_int_less, loop_int_less_equal, loop_int_greater, loop_int_greater_equal, loop_int_equal, loop_int_not_equal};
static const char *BINARY_NAMES[] = {"add", "sub", "mul", "div", "max", "min",
                                     "square_difference", "tanh_grad", "sigmoid_grad", "relu_grad", "relu6_grad",
                                     "sqrt_grad", "rsqrt_grad", "reciprocal_grad", "leaky_relu",
                                     "less", "less_equal", "greater", "greater_equal", "equal", "not_equal", "elu_grad",
                                     "int_add", "int_sub", "int_mul", "int_max", "int_min", "int_floor_div", "int_floor_mod",
                                     "int_less", "int_less_equal", "int_greater", "int_greater_equal", "int_equal", "int_not_equal"};
enum { UNARIES = sizeof UNARY_LOOPS / sizeof *UNARY_LOOPS, BINARIES = sizeof BINARY_LOOPS / sizeof *BINARY_LOOPS };

static void rows(const int64_t *w, const binary_loop loop, real *out, const real *a, const real *b) {
    /* w: sizes of three outer dimensions and the inner one, then the four steps of a and of b */
    int64_t d0 = w[0], d1 = w[1], d2 = w[2], n = w[3];
    for (int64_t i = 0; i < d0; i++)
        for (int64_t j = 0; j < d1; j++)
            for (int64_t k = 0; k < d2; k++, out += n)
                loop(out, a + i * w[4] + j * w[5] + k * w[6], b + i * w[8] + j * w[9] + k * w[10], n, (int)w[7], (int)w[11]);
}

static void copy(const int64_t *w, real *out, const real *a) {
    /* w: four sizes, then the four steps of out and of a */
    for (int64_t i = 0; i < w[0]; i++)
        for (int64_t j = 0; j < w[1]; j++)
            for (int64_t k = 0; k < w[2]; k++) {
                real *to = out + i * w[4] + j * w[5] + k * w[6];
                const real *from = a + i * w[8] + j * w[9] + k * w[10];
                if (w[7] == 1 && w[11] == 1)
                    memcpy(to, from, (size_t)w[3] * sizeof(real));
                else if (w[7] == 1 && w[11] == 0)
                    for (int64_t q = 0; q < w[3]; q++) to[q] = *from;
                else
                    for (int64_t q = 0; q < w[3]; q++) to[q * w[7]] = from[q * w[11]];
            }
}

static void choose(const int64_t *w, real *out, const real *mask, const real *t, const real *e) {
    /* w: four sizes, then the four steps of the mask; the others are walked in row-major order */
    int64_t n = w[3];
    for (int64_t i = 0; i < w[0]; i++)
        for (int64_t j = 0; j < w[1]; j++)
            for (int64_t k = 0; k < w[2]; k++, out += n, t += n, e += n)
                loop_select(out, mask + i * w[4] + j * w[5] + k * w[6], t, e, n, (int)w[7]);
}

/* Matrix products number `from` to `to` of one instruction.
 *
 * w: the kind, out, a, b, m, k, n, transpose a, transpose b, room for the transposes of b, whether BLAS is faster, how many products */
static void products(const int64_t *w, real **buffers, int64_t from, int64_t to) {
    int64_t m = w[4], k = w[5], n = w[6];
    for (int64_t i = from; i < to; i++) {
        real *out = buffers[w[1]] + i * m * n;
        const real *a = buffers[w[2]] + i * m * k, *b = buffers[w[3]] + i * k * n;
        if (w[10]) {
            blas_product(out, a, b, m, k, n, (int)w[7], (int)w[8]);
            continue;
        }
        if (w[8]) {
            real *room = buffers[w[9]] + i * k * n;
            loop_transpose(room, b, k, n);
            b = room;
        }
        loop_matmul(out, a, b, m, k, n, w[7] ? 1 : k, w[7] ? m : 1);
    }
}

/* Returns 0 if the ops' own kernels must run instead. */
static int execute(const int64_t *w, const int64_t *end, void **given) {
    real **buffers = (real **)given;
    for (; w < end; w += WORDS) {
        switch (w[0]) {
        case UNARY_LOOP: /* loop, out, a, n */
            UNARY_LOOPS[w[1]](buffers[w[2]], buffers[w[3]], w[4]);
            break;
        case BINARY_LOOP: /* loop, out, a, b, sizes, steps */
            rows(w + 5, BINARY_LOOPS[w[1]], buffers[w[2]], buffers[w[3]], buffers[w[4]]);
            break;
        case MATMUL:
            products(w, buffers, 0, w[11]);
            break;
        case SUM: /* out, a, outer, middle, inner, divisor */
            loop_sum(buffers[w[1]], buffers[w[2]], w[3], w[4], w[5], (real)w[6]);
            break;
        case MAX: /* out, a, outer, middle, inner */
            loop_largest(buffers[w[1]], buffers[w[2]], w[3], w[4], w[5]);
            break;
        case SOFTMAX: /* out, a, rows, columns */
            loop_softmax(buffers[w[1]], buffers[w[2]], w[3], w[4]);
            break;
        case COPY: /* out, a, where to begin in out, in a, sizes, steps */
            copy(w + 5, buffers[w[1]] + w[3], buffers[w[2]] + w[4]);
            break;
        case SELECT: /* out, mask, t, e, sizes, steps */
            choose(w + 5, buffers[w[1]], buffers[w[2]], buffers[w[3]], buffers[w[4]]);
            break;
        case DENSE: /* out, a, b, room, kind, count, rows, columns of b, adjoint, lower */
            if (!loop_dense(w[5], buffers[w[1]], buffers[w[2]], buffers[w[3]], buffers[w[4]], w[6], w[7], w[8], (int)w[9], (int)w[10])) return 0;
            break;
        case BAND: /* out, a, outer, rows, columns, diagonals below and above */
            loop_band(buffers[w[1]], buffers[w[2]], w[3], w[4], w[5], w[6], w[7]);
            break;
        case GATHER: /* out, table, indices, count, width, numbers of an index, sizes of the table's dimensions that they choose from */
            if (!loop_gather(buffers[w[1]], buffers[w[2]], buffers[w[3]], w[4], w[5], w[6], w + 7)) return 0;
            break;
        case SEGMENTS: /* out, data, ids, count, width, segments, kind */
            if (!loop_segments(buffers[w[1]], buffers[w[2]], buffers[w[3]], w[4], w[5], w[6], w[7])) return 0;
            break;
        case PLACE: /* out, a, outer, middle, inner, whether of the least */
            loop_place(buffers[w[1]], buffers[w[2]], w[3], w[4], w[5], (int)w[6]);
            break;
        case TOP: /* out, places, a, rows, columns, k */
            if (!loop_top(buffers[w[1]], buffers[w[2]], buffers[w[3]], w[4], w[5], w[6])) return 0;
            break;
        }
    }
    return 1;
}

/* Restricts a loop (four sizes, then the four strides of two buffers) to rows `from` to `to`. `first` and `second` become the offsets of
 * those rows in the two buffers. */
static void restrict_walk(int64_t *walk, int64_t rows, int64_t from, int64_t to, int64_t *first, int64_t *second) {
    int outermost = 0;
    while (outermost < 3 && walk[outermost] == 1) outermost++;
    int64_t each = walk[outermost] / rows;
    *first = from * each * walk[4 + outermost];
    *second = from * each * walk[8 + outermost];
    walk[outermost] = each * (to - from);
}

/* `execute` for rows `from` to `to` only. The rows are independent of each other, which those of matrices are not. */
static void execute_rows(const int64_t *w, const int64_t *end, void **given, int64_t all, int64_t from, int64_t to) {
    real **buffers = (real **)given;
    int64_t walk[12], a, b;
    for (; w < end; w += WORDS) {
        if (w[0] == UNARY_LOOP) {
            int64_t each = w[4] / all;
            UNARY_LOOPS[w[1]](buffers[w[2]] + from * each, buffers[w[3]] + from * each, (to - from) * each);
            continue;
        }
        if (w[0] == SUM) {
            int64_t outer = w[3] / all;
            loop_sum(buffers[w[1]] + from * outer * w[5], buffers[w[2]] + from * outer * w[4] * w[5], (to - from) * outer, w[4], w[5],
                     (real)w[6]);
            continue;
        }
        if (w[0] == MAX) {
            int64_t outer = w[3] / all;
            loop_largest(buffers[w[1]] + from * outer * w[5], buffers[w[2]] + from * outer * w[4] * w[5], (to - from) * outer, w[4], w[5]);
            continue;
        }
        if (w[0] == MATMUL) {
            products(w, buffers, from * (w[11] / all), to * (w[11] / all));
            continue;
        }
        if (w[0] == SOFTMAX) {
            int64_t each = w[3] / all;
            loop_softmax(buffers[w[1]] + from * each * w[4], buffers[w[2]] + from * each * w[4], (to - from) * each, w[4]);
            continue;
        }
        memcpy(walk, w + 5, sizeof walk);
        int64_t each = walk[0] * walk[1] * walk[2] * walk[3] / all;
        restrict_walk(walk, all, from, to, &a, &b);
        if (w[0] == BINARY_LOOP)
            rows(walk, BINARY_LOOPS[w[1]], buffers[w[2]] + from * each, buffers[w[3]] + a, buffers[w[4]] + b);
        else if (w[0] == SELECT)
            choose(walk, buffers[w[1]] + from * each, buffers[w[2]] + a, buffers[w[3]] + b, buffers[w[4]] + b);
        else
            copy(walk, buffers[w[1]] + w[3] + a, buffers[w[2]] + w[4] + b);
    }
}

/* Converts booleans to 1 and 0, or (negative `narrow`) integers of 64 bits to 32. Returns 0 if one does not fit. */
static int take_narrow(void *room, const void *from, int64_t narrow) {
    real *to = room;
    for (int64_t j = 0; j < narrow; j++) to[j] = ((const uint8_t *)from)[j];
    for (int64_t j = 0; j < -narrow; j++) {
        int64_t number = ((const int64_t *)from)[j];
        if (number != (integer)number) return 0;
        ((integer *)room)[j] = (integer)number;
    }
    return 1;
}

/* Converts integers of 32 bits, which are in the first half of their memory, to 64 where they are. */
static void widen(void *numbers, int64_t count) {
    for (int64_t j = count - 1; j >= 0; j--) {
        int64_t number = ((const integer *)numbers)[j];
        memcpy((int64_t *)numbers + j, &number, sizeof number);
    }
}


/* The table of the file that includes this one. */
#define LINES {                                                                                                              \
    sizeof(real), execute, execute_rows, take_narrow, widen, set_gemm, UNARY_NAMES, BINARY_NAMES, DENSE_NAMES, UNARIES,      \
    BINARIES, sizeof DENSE_NAMES / sizeof *DENSE_NAMES                                                                       \
}
