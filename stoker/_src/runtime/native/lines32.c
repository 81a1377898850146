/* The lines of programs of float32 numbers. Integers have 32 bits there. */
#include "../../base/native/blas.h"
#include "functions32.h"

#define REAL_MAX 3.40282347e+38f
typedef int32_t integer __attribute__((may_alias));
typedef uint32_t bits;
#define blas_product blas_matmul
#define set_gemm set_sgemm

#include "execution.h"

const Lines lines32 = LINES;
