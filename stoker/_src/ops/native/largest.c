/* Choices among numbers: the few largest elements of each row of a float32 matrix, in descending order (of equal elements the first comes first),
 * the place of the largest or least one, and boxes that do not overlap better ones. */
#include "tensors.h"

#include <math.h>

#include "../../base/native/vectorised.h"

enum { FEW = 16 }; /* elements that are kept in order from the start */

/* Restores a heap of n elements below `at`. Its root is the worst: the smallest, and of equal elements the last. */
static void sink(float *values, int64_t *places, int64_t n, int64_t at) {
    float x = values[at];
    int64_t place = places[at];
    for (int64_t below; (below = 2 * at + 1) < n; at = below) {
        if (below + 1 < n && (values[below + 1] < values[below] || (values[below + 1] == values[below] && places[below + 1] > places[below])))
            below++;
        if (values[below] > x || (values[below] == x && places[below] < place)) break;
        values[at] = values[below];
        places[at] = places[below];
    }
    values[at] = x;
    places[at] = place;
}

static int many_largest_of_row(float *values, int64_t *places, const float *row, int64_t columns, int64_t k) {
    for (int64_t j = 0; j < columns; j++) {
        float x = row[j];
        if (x != x) return 0; /* where a NaN belongs is torch's decision */
        if (j < k) {
            values[j] = x;
            places[j] = j;
            if (j == k - 1)
                for (int64_t at = k / 2; at-- > 0;) sink(values, places, k, at);
        } else if (x > values[0]) {
            values[0] = x;
            places[0] = j;
            sink(values, places, k, 0);
        }
    }
    for (int64_t n = k - 1; n > 0; n--) { /* the worst of those that are left goes to the end */
        float x = values[0];
        int64_t place = places[0];
        values[0] = values[n];
        places[0] = places[n];
        values[n] = x;
        places[n] = place;
        sink(values, places, n, 0);
    }
    return 1;
}

static int largest_of_row(float *values, int64_t *places, const float *row, int64_t columns, int64_t k) {
    if (k > FEW) return many_largest_of_row(values, places, row, columns, k);
    int64_t found = 0;
    for (int64_t j = 0; j < columns; j++) {
        float x = row[j];
        if (x != x) return 0; /* where a NaN belongs is torch's decision */
        if (found == k && !(x > values[k - 1])) continue;
        int64_t at = found < k ? found++ : k - 1;
        for (; at > 0 && values[at - 1] < x; at--) {
            values[at] = values[at - 1];
            places[at] = places[at - 1];
        }
        values[at] = x;
        places[at] = j;
    }
    return 1;
}

static PyObject *top_k(PyObject *self, PyObject *args) {
    float *values;
    int64_t *places;
    const float *input;
    long long rows, columns, k;
    (void)self;
    if (!PyArg_ParseTuple(args, "O&O&O&LLL", to_address, &values, to_address, &places, to_address, &input, &rows, &columns, &k)) return NULL;
    int fine = 1;
    Py_BEGIN_ALLOW_THREADS;
    for (int64_t i = 0; fine && i < rows; i++) fine = largest_of_row(values + i * k, places + i * k, input + i * columns, columns, k);
    Py_END_ALLOW_THREADS;
    return PyBool_FromLong(fine);
}

enum { LANES = 64 };

/* The first place of sign times the largest element; a NaN is chosen only if there is nothing else. */
VECTORISED static int64_t place_of_largest(const float *row, int64_t columns, float sign) {
    float lanes[LANES], best = -INFINITY;
    int64_t j = 0;
    for (int q = 0; q < LANES; q++) lanes[q] = -INFINITY;
    for (; j + LANES <= columns; j += LANES)
        for (int q = 0; q < LANES; q++) {
            float x = sign * row[j + q];
            lanes[q] = x > lanes[q] ? x : lanes[q];
        }
    for (; j < columns; j++) best = sign * row[j] > best ? sign * row[j] : best;
    for (int q = 0; q < LANES; q++) best = lanes[q] > best ? lanes[q] : best;
    if (best == -INFINITY) return 0;
    for (j = 0; j + LANES <= columns; j += LANES) {
        int there = 0;
        for (int q = 0; q < LANES; q++) there |= sign * row[j + q] == best;
        if (there) break;
    }
    while (j < columns - 1 && sign * row[j] != best) j++;
    return j;
}

static PyObject *places(PyObject *self, PyObject *args) {
    int64_t *out;
    const float *input;
    long long rows, columns;
    int least;
    (void)self;
    if (!PyArg_ParseTuple(args, "O&O&LLp", to_address, &out, to_address, &input, &rows, &columns, &least)) return NULL;
    Py_BEGIN_ALLOW_THREADS;
    for (int64_t i = 0; i < rows; i++) out[i] = place_of_largest(input + i * columns, columns, least ? -1.0f : 1.0f);
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

/* The intersection over union of two boxes (top, left, bottom, right, area), 0 if one has no area. */
static inline float overlap(const float *a, const float *b) {
    float tall = (a[2] < b[2] ? a[2] : b[2]) - (a[0] > b[0] ? a[0] : b[0]), wide = (a[3] < b[3] ? a[3] : b[3]) - (a[1] > b[1] ? a[1] : b[1]);
    float shared = (tall > 0 ? tall : 0) * (wide > 0 ? wide : 0);
    return a[4] > 0 && b[4] > 0 ? shared / (a[4] + b[4] - shared) : 0;
}

static PyObject *suppress(PyObject *self, PyObject *args) {
    Py_buffer chosen, boxes, order;
    long long most;
    float threshold;
    (void)self;
    if (!PyArg_ParseTuple(args, "w*y*y*Lf", &chosen, &boxes, &order, &most, &threshold)) return NULL;
    int64_t count = order.len / (int64_t)sizeof(int64_t), all = boxes.len / (int64_t)(5 * sizeof(float)), found = 0;
    const int64_t *ranked = order.buf;
    const float *box = boxes.buf;
    int64_t *taken = chosen.buf;
    int fits = chosen.len >= (int64_t)sizeof(int64_t) * (most < count ? most : count);
    for (int64_t i = 0; fits && i < count; i++) fits = ranked[i] >= 0 && ranked[i] < all;
    if (fits) {
        Py_BEGIN_ALLOW_THREADS;
        for (int64_t i = 0; i < count && found < most; i++) {
            int64_t j = 0;
            while (j < found && !(overlap(box + 5 * taken[j], box + 5 * ranked[i]) > threshold)) j++;
            if (j == found) taken[found++] = ranked[i];
        }
        Py_END_ALLOW_THREADS;
    }
    PyBuffer_Release(&chosen);
    PyBuffer_Release(&boxes);
    PyBuffer_Release(&order);
    return fits ? PyLong_FromLongLong(found) : PyErr_Format(PyExc_ValueError, "the arrays do not have the sizes given");
}

static PyMethodDef METHODS[] = {
    {"suppress", suppress, METH_VARARGS,
     "suppress(chosen, boxes, order, most, threshold): how many boxes (top, left, bottom, right, area) were chosen, in `order`, of which none "
     "overlaps one before it by more than the threshold."},
    {"places", places, METH_VARARGS, "places(out, input, rows, columns, least): the place of the largest or least element of each row."},
    {"top_k", top_k, METH_VARARGS, "top_k(values, places, input, rows, columns, k): False if there is a NaN. `places` is int64; k <= columns."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "largest", "The largest elements of rows.", -1, METHODS, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_largest(void) { return tensors_ready() ? PyModule_Create(&MODULE) : NULL; }
