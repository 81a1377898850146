/* Functions of float32 for small ops: the loops of programs (loops.h), which round like these. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("fp-contract=fast")
#endif

#include "../../base/native/blas.h"
#include "functions32.h"

typedef int32_t integer __attribute__((may_alias));
typedef uint32_t bits;

#include "loops.h"
#include "small_floats.h"

enum { MOST_OWN_PRODUCTS = 1 << 8 }; /* multiplications beyond which BLAS is faster */

/* out[m, n] = a[m, k] b[k, n]. Returns 0 if there is no BLAS. */
static int product(float *out, const float *a, const float *b, int64_t m, int64_t k, int64_t n, int transpose_a, int transpose_b) {
    if (m * k * n <= MOST_OWN_PRODUCTS && !transpose_b)
        loop_matmul(out, a, b, m, k, n, transpose_a ? 1 : k, transpose_a ? m : 1);
    else if (blas_sgemm != NULL)
        blas_matmul(out, a, b, m, k, n, transpose_a, transpose_b);
    else
        return 0;
    return 1;
}

const Floats floats = {
    .exp = loop_exp,
    .log = loop_log,
    .log1p = loop_log1p,
    .tanh = loop_tanh,
    .sigmoid = loop_sigmoid,
    .rsqrt = loop_rsqrt,
    .reciprocal = loop_reciprocal,
    .relu = loop_relu,
    .tanh_grad = loop_tanh_grad,
    .sigmoid_grad = loop_sigmoid_grad,
    .relu_grad = loop_relu_grad,
    .sqrt_grad = loop_sqrt_grad,
    .rsqrt_grad = loop_rsqrt_grad,
    .reciprocal_grad = loop_reciprocal_grad,
    .square_difference = loop_square_difference,
    .leaky_relu = loop_leaky_relu,
    .softmax = loop_softmax,
    .sum = loop_sum,
    .product = product,
    .set_gemm = set_sgemm,
};
