/* The cross entropy of float32 logits and class indices, with its gradient, in one pass on torch's threads. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>

#include "../../base/native/exponentials.h"
#include "../../base/native/vectorised.h"

enum { SHARED = 1 << 14 }; /* the number of logits from which several threads are used */

/* loss = log(sum(exp(logits))) - logits[label];  gradient = softmax(logits) - one_hot(label) */
VECTORISED static void rows_loss(float *restrict loss, float *restrict gradient, const float *logits, const int64_t *labels, int64_t rows,
                                 int64_t classes) {
    for (int64_t i = 0; i < rows; i++, logits += classes, gradient += classes) {
        float largest = largest_of(logits, classes);
        float total = exponentials(gradient, logits, largest, classes), scale = 1.0f / total;
        for (int64_t j = 0; j < classes; j++) gradient[j] *= scale;
        gradient[labels[i]] -= 1.0f;
        loss[i] = logf(total) - (logits[labels[i]] - largest);
    }
}

static PyObject *sparse(PyObject *self, PyObject *args) {
    Py_buffer loss, gradient, logits, labels;
    long long classes;
    int threads;
    (void)self;
    if (!PyArg_ParseTuple(args, "w*w*y*y*Li", &loss, &gradient, &logits, &labels, &classes, &threads)) return NULL;
    int64_t rows = labels.len / (int64_t)sizeof(int64_t), bad = -1;
    int fits = classes > 0 && loss.len == rows * (int64_t)sizeof(float) && logits.len == loss.len * classes && gradient.len == logits.len;
    if (fits) {
        const int64_t *label = labels.buf;
        for (int64_t i = 0; i < rows && bad < 0; i++)
            if (label[i] < 0 || label[i] >= classes) bad = i;
        if (bad < 0) {
            int parts = rows * classes < SHARED ? 1 : threads;
            Py_BEGIN_ALLOW_THREADS;
#pragma omp parallel for num_threads(parts) if (parts > 1)
            for (int part = 0; part < parts; part++) {
                int64_t from = rows * part / parts, to = rows * (part + 1) / parts;
                rows_loss((float *)loss.buf + from, (float *)gradient.buf + from * classes, (const float *)logits.buf + from * classes,
                          label + from, to - from, classes);
            }
            Py_END_ALLOW_THREADS;
        }
    } else {
        PyErr_SetString(PyExc_ValueError, "the arrays do not have the sizes given");
    }
    PyBuffer_Release(&loss);
    PyBuffer_Release(&gradient);
    PyBuffer_Release(&logits);
    PyBuffer_Release(&labels);
    return fits ? PyLong_FromLongLong(bad) : NULL;
}

static PyMethodDef METHODS[] = {
    {"sparse", sparse, METH_VARARGS,
     "sparse(loss, gradient, logits, labels, classes, threads): where the first label lies that is not a class, with nothing computed; or -1."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "cross_entropy", "Cross entropies of float32 logits.", -1, METHODS, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_cross_entropy(void) { return PyModule_Create(&MODULE); }
