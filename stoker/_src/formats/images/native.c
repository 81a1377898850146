/* Applies and reverses PNG's row filters. The NumPy version in filters.py gives the same bytes and describes the types. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

static inline uint8_t nearest(int a, int b, int c) {
    int pa = b - c, pb = a - c, pc = pa + pb;
    pa = pa < 0 ? -pa : pa;
    pb = pb < 0 ? -pb : pb;
    pc = pc < 0 ? -pc : pc;
    /* Branch-free, because in photographs the selected neighbour is unpredictable. */
    int best = pb < pa ? b : a;
    int distance = pb < pa ? pb : pa;
    return (uint8_t)(pc < distance ? c : best);
}

static inline void paeth_row(uint8_t *out, const uint8_t *in, const uint8_t *above, Py_ssize_t size, Py_ssize_t step) {
    for (Py_ssize_t i = 0; i < step && i < size; i++) out[i] = (uint8_t)(in[i] + above[i]);
    for (Py_ssize_t i = step; i < size; i++) out[i] = (uint8_t)(in[i] + nearest(out[i - step], above[i], above[i - step]));
}

static void unfilter_row(int type, uint8_t *out, const uint8_t *in, const uint8_t *above, Py_ssize_t size, Py_ssize_t step) {
    Py_ssize_t head = step < size ? step : size;
    switch (type) {
    case 1:
        memcpy(out, in, head);
        for (Py_ssize_t i = step; i < size; i++) out[i] = (uint8_t)(in[i] + out[i - step]);
        break;
    case 2:
        for (Py_ssize_t i = 0; i < size; i++) out[i] = (uint8_t)(in[i] + above[i]);
        break;
    case 3:
        for (Py_ssize_t i = 0; i < head; i++) out[i] = (uint8_t)(in[i] + (above[i] >> 1));
        for (Py_ssize_t i = step; i < size; i++) out[i] = (uint8_t)(in[i] + ((out[i - step] + above[i]) >> 1));
        break;
    case 4: /* a constant step lets the compiler keep the neighbours in registers */
        if (step == 1) paeth_row(out, in, above, size, 1);
        else if (step == 3) paeth_row(out, in, above, size, 3);
        else if (step == 4) paeth_row(out, in, above, size, 4);
        else paeth_row(out, in, above, size, step);
        break;
    default:
        memcpy(out, in, size);
    }
}

static PyObject *unfilter(PyObject *self, PyObject *args) {
    Py_buffer in, out;
    Py_ssize_t row_bytes, step;
    if (!PyArg_ParseTuple(args, "y*w*nn", &in, &out, &row_bytes, &step)) return NULL;
    int fits = row_bytes > 0 && step > 0 && out.len % row_bytes == 0 && in.len == out.len / row_bytes * (row_bytes + 1);
    uint8_t *zeros = fits ? PyMem_Calloc(row_bytes, 1) : NULL;
    if (!fits || !zeros) {
        PyBuffer_Release(&in);
        PyBuffer_Release(&out);
        return fits ? PyErr_NoMemory() : (PyErr_SetString(PyExc_ValueError, "unfilter: sizes do not fit"), NULL);
    }
    Py_BEGIN_ALLOW_THREADS
    const uint8_t *source = in.buf, *above = zeros;
    uint8_t *target = out.buf;
    for (Py_ssize_t rows = out.len / row_bytes; rows > 0; rows--) {
        unfilter_row(source[0], target, source + 1, above, row_bytes, step);
        above = target;
        target += row_bytes;
        source += row_bytes + 1;
    }
    Py_END_ALLOW_THREADS
    PyMem_Free(zeros);
    PyBuffer_Release(&in);
    PyBuffer_Release(&out);
    Py_RETURN_NONE;
}

/* Predictions of type `type` are subtracted from a row. Returns the sum of the absolute differences, taken as signed bytes. */
static int64_t filter_row(int type, uint8_t *restrict out, const uint8_t *row, const uint8_t *above, Py_ssize_t size, Py_ssize_t step) {
    Py_ssize_t head = step < size ? step : size;
    int64_t cost = 0;
    for (Py_ssize_t i = 0; i < head; i++) /* there is nothing on the left: the nearest neighbour is the one above */
        out[i] = (uint8_t)(row[i] - (type == 2 || type == 4 ? above[i] : type == 3 ? above[i] >> 1 : 0));
    switch (type) {
    case 0:
        for (Py_ssize_t i = head; i < size; i++) out[i] = row[i];
        break;
    case 1:
        for (Py_ssize_t i = head; i < size; i++) out[i] = (uint8_t)(row[i] - row[i - step]);
        break;
    case 2:
        for (Py_ssize_t i = head; i < size; i++) out[i] = (uint8_t)(row[i] - above[i]);
        break;
    case 3:
        for (Py_ssize_t i = head; i < size; i++) out[i] = (uint8_t)(row[i] - ((row[i - step] + above[i]) >> 1));
        break;
    default:
        for (Py_ssize_t i = head; i < size; i++) out[i] = (uint8_t)(row[i] - nearest(row[i - step], above[i], above[i - step]));
    }
    for (Py_ssize_t i = 0; i < size; i++) cost += out[i] < 128 ? out[i] : 256 - out[i];
    return cost;
}

static PyObject *filter(PyObject *self, PyObject *args) {
    Py_buffer in, out;
    Py_ssize_t row_bytes, step;
    if (!PyArg_ParseTuple(args, "y*w*nn", &in, &out, &row_bytes, &step)) return NULL;
    int fits = row_bytes > 0 && step > 0 && in.len % row_bytes == 0 && out.len == in.len / row_bytes * (row_bytes + 1);
    uint8_t *room = fits ? PyMem_Calloc(row_bytes, 2) : NULL; /* zeros, and a row that is tried */
    if (!fits || !room) {
        PyBuffer_Release(&in);
        PyBuffer_Release(&out);
        return fits ? PyErr_NoMemory() : (PyErr_SetString(PyExc_ValueError, "filter: sizes do not fit"), NULL);
    }
    Py_BEGIN_ALLOW_THREADS
    const uint8_t *source = in.buf, *above = room;
    uint8_t *target = out.buf, *tried = room + row_bytes;
    for (Py_ssize_t rows = in.len / row_bytes; rows > 0; rows--) {
        int64_t best = INT64_MAX;
        for (int type = 0; type < 5; type++) {
            int64_t cost = filter_row(type, tried, source, above, row_bytes, step);
            if (cost < best) {
                best = cost;
                target[0] = (uint8_t)type;
                memcpy(target + 1, tried, row_bytes);
            }
        }
        above = source;
        source += row_bytes;
        target += row_bytes + 1;
    }
    Py_END_ALLOW_THREADS
    PyMem_Free(room);
    PyBuffer_Release(&in);
    PyBuffer_Release(&out);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"filter", filter, METH_VARARGS, "filter(lines, out, row_bytes, step): applies the filter with the smallest differences to each row."},
    {"unfilter", unfilter, METH_VARARGS, "unfilter(raw, out, row_bytes, step): undoes PNG's row filters into out."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_native", NULL, 0, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__native(void) { return PyModule_Create(&module); }
