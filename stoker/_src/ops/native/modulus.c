/* The modulus of complex numbers of float32. Squares of float32 numbers are exact in float64 and neither overflow nor vanish there. */
#include "tensors.h"

#include <math.h>

#include "../../base/native/teams.h"
#include "../../base/native/vectorised.h"

enum { PART = 4096, WORTH_SHARING = 1 << 15 };

VECTORISED static void modulus_of(float *restrict out, const float *numbers, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        float real = numbers[2 * i], imaginary = numbers[2 * i + 1];
        double square = (double)real * real + (double)imaginary * imaginary;
        float size = (float)sqrt(square);
        int is_infinite = fabsf(real) == INFINITY || fabsf(imaginary) == INFINITY; /* whatever the other part is */
        out[i] = is_infinite ? INFINITY : size;
    }
}

static PyObject *modulus(PyObject *m, PyObject *args) {
    float *out;
    const float *numbers;
    long long count;
    int threads;
    (void)m;
    if (!PyArg_ParseTuple(args, "O&O&Li", to_address, &out, to_address, &numbers, &count, &threads)) return NULL;
    Py_BEGIN_ALLOW_THREADS;
#pragma omp parallel for num_threads(team_for(threads)) if (threads > 1 && count > WORTH_SHARING)
    for (int64_t first = 0; first < count; first += PART)
        modulus_of(out + first, numbers + 2 * first, first + PART < count ? PART : count - first);
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

static PyMethodDef METHODS[] = {
    {"modulus", modulus, METH_VARARGS, "modulus(out, numbers, count, threads): of contiguous complex64 numbers."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {PyModuleDef_HEAD_INIT, "modulus", "The modulus of complex numbers.", -1, METHODS, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_modulus(void) { return tensors_ready() ? PyModule_Create(&MODULE) : NULL; }
