/* The cross entropies of float32 logits and class indices or probabilities, with their gradients, in one pass on torch's threads. */
#include "tensors.h"

#include <math.h>

#include "../../base/native/exponentials.h"
#include "../../base/native/vectorised.h"

enum { SHARED = 1 << 14 }; /* the number of logits from which several threads are used */

/* loss = log(sum(exp(logits))) - logits[label];  gradient = softmax(logits) - one_hot(label) */
VECTORISED static void rows_loss(float *restrict loss, float *restrict gradient, const float *logits, const int64_t *labels, int64_t rows,
                                 int64_t classes) {
    float largests[ROWS_AT_ONCE], totals[ROWS_AT_ONCE];
    const int64_t most = rows_at_once(classes);
    for (int64_t i = 0; i < rows && classes < SHORT; i += most) {
        int64_t some = rows - i < most ? rows - i : most;
        exponentials_of_few(gradient, largests, totals, logits, some, classes);
        for (int64_t k = 0; k < some; k++, logits += classes, gradient += classes) {
            float scale = 1.0f / totals[k];
            for (int64_t j = 0; j < classes; j++) gradient[j] *= scale;
            gradient[labels[i + k]] -= 1.0f;
            loss[i + k] = logf(totals[k]) - (logits[labels[i + k]] - largests[k]);
        }
    }
    for (int64_t i = 0; i < rows && classes >= SHORT; i++, logits += classes, gradient += classes) {
        float largest = largest_of(logits, classes);
        float total = exponentials(gradient, logits, largest, classes), scale = 1.0f / total;
        for (int64_t j = 0; j < classes; j++) gradient[j] *= scale;
        gradient[labels[i]] -= 1.0f;
        loss[i] = logf(total) - (logits[labels[i]] - largest);
    }
}

/* loss = sum(labels * (log(sum(exp(logits))) - logits));  gradient = softmax(logits) - labels */
VECTORISED static void dense_rows_loss(float *restrict loss, float *restrict gradient, const float *logits, const float *restrict labels,
                                       int64_t rows, int64_t classes) {
    float largests[ROWS_AT_ONCE], totals[ROWS_AT_ONCE];
    for (int64_t i = 0; i < rows && classes < FEW; i += ROWS_AT_ONCE) {
        int64_t some = rows - i < ROWS_AT_ONCE ? rows - i : ROWS_AT_ONCE;
        exponentials_of_few(gradient, largests, totals, logits, some, classes);
        for (int64_t k = 0; k < some; k++, logits += classes, gradient += classes, labels += classes) {
            float scale = 1.0f / totals[k], part = logf(totals[k]), sum = 0.0f;
            for (int64_t j = 0; j < classes; j++) {
                gradient[j] = gradient[j] * scale - labels[j];
                sum += labels[j] * (part - (logits[j] - largests[k]));
            }
            loss[i + k] = sum;
        }
    }
    for (int64_t i = 0; i < rows && classes >= FEW; i++, logits += classes, gradient += classes, labels += classes) {
        float largest = largest_of(logits, classes);
        float total = exponentials(gradient, logits, largest, classes), scale = 1.0f / total, part = logf(total);
        float sums[16] = {0};
        int64_t j = 0;
        for (; j + 16 <= classes; j += 16)
            for (int k = 0; k < 16; k++) {
                gradient[j + k] = gradient[j + k] * scale - labels[j + k];
                sums[k] += labels[j + k] * (part - (logits[j + k] - largest));
            }
        for (int k = 0; j < classes; j++, k++) {
            gradient[j] = gradient[j] * scale - labels[j];
            sums[k] += labels[j] * (part - (logits[j] - largest));
        }
        float sum = 0.0f;
        for (int k = 0; k < 16; k++) sum += sums[k];
        loss[i] = sum;
    }
}

static PyObject *sparse(PyObject *self, PyObject *args) {
    float *loss, *gradient, *logits;
    int64_t *labels;
    long long rows, classes;
    int threads;
    (void)self;
    if (!PyArg_ParseTuple(args, "O&O&O&O&LLi", to_address, &loss, to_address, &gradient, to_address, &logits, to_address, &labels, &rows,
                          &classes, &threads))
        return NULL;
    int64_t bad = -1;
    for (int64_t i = 0; i < rows && bad < 0; i++)
        if (labels[i] < 0 || labels[i] >= classes) bad = i;
    if (bad < 0) {
        int parts = rows * classes < SHARED ? 1 : threads;
        Py_BEGIN_ALLOW_THREADS;
#pragma omp parallel for num_threads(parts) if (parts > 1)
        for (int part = 0; part < parts; part++) {
            int64_t from = rows * part / parts, to = rows * (part + 1) / parts;
            rows_loss(loss + from, gradient + from * classes, logits + from * classes, labels + from, to - from, classes);
        }
        Py_END_ALLOW_THREADS;
    }
    return PyLong_FromLongLong(bad);
}

static PyObject *dense(PyObject *self, PyObject *args) {
    float *loss, *gradient, *logits, *labels;
    long long rows, classes;
    int threads;
    (void)self;
    if (!PyArg_ParseTuple(args, "O&O&O&O&LLi", to_address, &loss, to_address, &gradient, to_address, &logits, to_address, &labels, &rows,
                          &classes, &threads))
        return NULL;
    int parts = rows * classes < SHARED ? 1 : threads;
    Py_BEGIN_ALLOW_THREADS;
#pragma omp parallel for num_threads(parts) if (parts > 1)
    for (int part = 0; part < parts; part++) {
        int64_t from = rows * part / parts, to = rows * (part + 1) / parts, first = from * classes;
        dense_rows_loss(loss + from, gradient + first, logits + first, labels + first, to - from, classes);
    }
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

static PyMethodDef METHODS[] = {
    {"sparse", sparse, METH_VARARGS,
     "sparse(loss, gradient, logits, labels, rows, classes, threads): where the first label lies that is not a class, with nothing computed; or -1."},
    {"dense", dense, METH_VARARGS, "dense(loss, gradient, logits, labels, rows, classes, threads): of a matrix of labels."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "cross_entropy", "Cross entropies of float32 logits.", -1, METHODS, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_cross_entropy(void) { return tensors_ready() ? PyModule_Create(&MODULE) : NULL; }
