/* Applies and reverses PNG's row filters. The NumPy version in filters.py gives the same bytes and describes the types.
 * Whole files are in pngs.c and jpegs.c. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include "codecs.h"
#include "unfilter.h"

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
    {"decode_pngs", native_decode_pngs, METH_VARARGS,
     "decode_pngs(files, out, height, width, channels, as_stored, threads): decodes into out; whether all are plain files of this size."},
    {"filter", filter, METH_VARARGS, "filter(lines, out, row_bytes, step): applies the filter with the smallest differences to each row."},
    {"unfilter", unfilter, METH_VARARGS, "unfilter(raw, out, row_bytes, step): undoes PNG's row filters into out."},
    {"jpeg_header", native_jpeg_header, METH_O,
     "jpeg_header(file): (height, width, components, across, down, progressive, adobe, rgb, scan, complete), or None."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_native", NULL, 0, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__native(void) { return PyModule_Create(&module); }
