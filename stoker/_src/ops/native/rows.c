/* Row operations on large tables in one pass: unique, gather and scatter-add. Each function checks every index before it writes.
 *
 * Indices are int32 or int64, distinguished by their item size. Only one thread updates a row, in the order of the indices, so
 * that results do not depend on the number of threads. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../base/native/vectorised.h"

enum { WORTH_A_THREAD = 1 << 15 }; /* elements per thread */

static inline int64_t index_at(const void *indices, int wide, int64_t i) {
    return wide ? ((const int64_t *)indices)[i] : ((const int32_t *)indices)[i];
}

/* The position of the first index outside [0, size), or -1. Negative indices may be allowed; they are skipped later. */
static int64_t first_outside(const void *indices, int wide, int64_t count, int64_t size, int negatives) {
    int64_t lowest = 0, highest = -1;
    for (int64_t i = 0; i < count; i++) {
        int64_t at = index_at(indices, wide, i);
        lowest = at < lowest ? at : lowest;
        highest = at > highest ? at : highest;
    }
    if ((lowest >= 0 || negatives) && highest < size) return -1;
    for (int64_t i = 0; i < count; i++) {
        int64_t at = index_at(indices, wide, i);
        if (at >= size || (at < 0 && !negatives)) return i;
    }
    return -1;
}

/* ---- unique: an open-addressing hash table of positions in the list of distinct numbers ---- */

typedef struct {
    int64_t *slots; /* -1 if empty */
    uint64_t mask;
} table;

static int make_table(table *made, int64_t count) {
    uint64_t size = 16;
    while (size < (uint64_t)count * 2) size *= 2;
    made->slots = malloc(size * sizeof(int64_t));
    made->mask = size - 1;
    if (made->slots == NULL) return 0;
    memset(made->slots, 0xff, size * sizeof(int64_t));
    return 1;
}

/* The position of `value` in `found`. A value that is not there yet is appended. */
static inline int64_t place_of(table *seen, int64_t *found, int64_t *total, int64_t value) {
    uint64_t hash = (uint64_t)value * 0x9E3779B97F4A7C15u;
    uint64_t slot = (hash >> 20) & seen->mask;
    for (;; slot = (slot + 1) & seen->mask) {
        int64_t place = seen->slots[slot];
        if (place < 0) {
            seen->slots[slot] = *total;
            found[*total] = value;
            return (*total)++;
        }
        if (found[place] == value) return place;
    }
}

static PyObject *unique(PyObject *self, PyObject *args) {
    Py_buffer values, places, found, counts;
    int wide, wide_places;
    (void)self;
    if (!PyArg_ParseTuple(args, "y*pw*pw*w*", &values, &wide, &places, &wide_places, &found, &counts)) return NULL;
    int64_t count = values.len / (wide ? 8 : 4), total = 0;
    int fits = places.len / (wide_places ? 8 : 4) >= count && found.len / 8 >= count && counts.len / 8 >= count;
    table seen = {NULL, 0};
    int made = fits && make_table(&seen, count);
    if (made) {
        Py_BEGIN_ALLOW_THREADS;
        int64_t *often = counts.buf;
        for (int64_t i = 0; i < count; i++) {
            int64_t before = total, place = place_of(&seen, found.buf, &total, index_at(values.buf, wide, i));
            if (total > before) often[place] = 0;
            often[place]++;
            if (wide_places)
                ((int64_t *)places.buf)[i] = place;
            else
                ((int32_t *)places.buf)[i] = (int32_t)place;
        }
        Py_END_ALLOW_THREADS;
    }
    free(seen.slots);
    PyBuffer_Release(&values);
    PyBuffer_Release(&places);
    PyBuffer_Release(&found);
    PyBuffer_Release(&counts);
    if (!fits) return PyErr_Format(PyExc_ValueError, "the results need as many elements as there are values");
    if (!made) return PyErr_NoMemory();
    return PyLong_FromLongLong(total);
}

static PyObject *check_distinct(PyObject *self, PyObject *args) {
    Py_buffer indices;
    int wide;
    long long size;
    (void)self;
    if (!PyArg_ParseTuple(args, "y*pL", &indices, &wide, &size)) return NULL;
    int64_t count = indices.len / (wide ? 8 : 4), outside = -1, total = 0;
    table seen = {NULL, 0};
    int64_t *found = malloc((size_t)(count ? count : 1) * sizeof(int64_t));
    int made = found != NULL && make_table(&seen, count);
    if (made) {
        Py_BEGIN_ALLOW_THREADS;
        outside = first_outside(indices.buf, wide, count, size, 0);
        for (int64_t i = 0; i < count && outside < 0; i++) {
            place_of(&seen, found, &total, index_at(indices.buf, wide, i));
            if (total <= i) outside = -2;
            if (outside == -2) break;
        }
        Py_END_ALLOW_THREADS;
    }
    free(seen.slots);
    free(found);
    PyBuffer_Release(&indices);
    if (!made) return PyErr_NoMemory();
    return PyLong_FromLongLong(outside);
}

/* ---- gathering ---- */

static void copy_rows(char *out, const char *table, const void *indices, int wide, int64_t first, int64_t last, int64_t bytes) {
    if (bytes == 4) {
        for (int64_t i = first; i < last; i++) ((uint32_t *)out)[i] = ((const uint32_t *)table)[index_at(indices, wide, i)];
    } else if (bytes == 8) {
        for (int64_t i = first; i < last; i++) ((uint64_t *)out)[i] = ((const uint64_t *)table)[index_at(indices, wide, i)];
    } else {
        for (int64_t i = first; i < last; i++) memcpy(out + i * bytes, table + index_at(indices, wide, i) * bytes, (size_t)bytes);
    }
}

static PyObject *gather(PyObject *self, PyObject *args) {
    Py_buffer out, rows, indices;
    int wide, threads;
    long long size, bytes;
    (void)self;
    if (!PyArg_ParseTuple(args, "w*y*y*pLLi", &out, &rows, &indices, &wide, &size, &bytes, &threads)) return NULL;
    int64_t count = indices.len / (wide ? 8 : 4), outside = -1;
    int fits = bytes > 0 && size >= 0 && rows.len / bytes >= size && out.len / bytes >= count;
    if (fits) {
        Py_BEGIN_ALLOW_THREADS;
        outside = first_outside(indices.buf, wide, count, size, 0);
        if (outside < 0) {
            int64_t share = count * bytes / 4 / WORTH_A_THREAD;
            int used = share < 1 ? 1 : share < threads ? (int)share : threads;
            int64_t step = (count + used - 1) / used;
#pragma omp parallel for num_threads(used) if (used > 1)
            for (int part = 0; part < used; part++) {
                int64_t first = part * step, last = first + step < count ? first + step : count;
                copy_rows(out.buf, rows.buf, indices.buf, wide, first, last, bytes);
            }
        }
        Py_END_ALLOW_THREADS;
    }
    PyBuffer_Release(&out);
    PyBuffer_Release(&rows);
    PyBuffer_Release(&indices);
    if (!fits) return PyErr_Format(PyExc_ValueError, "the buffers are smaller than the rows they are said to hold");
    return PyLong_FromLongLong(outside);
}

/* ---- adding ---- */

#define DEFINE_ADD(NAME, TYPE)                                                                                     \
    VECTORISED static void NAME(TYPE *restrict into, const TYPE *restrict rows, const void *indices, int wide,    \
                                int64_t count, int64_t width, TYPE factor, int part, int parts) {                 \
        for (int64_t i = 0; i < count; i++) {                                                                      \
            int64_t at = index_at(indices, wide, i);                                                               \
            if (at < 0 || (parts > 1 && at % parts != part)) continue;                                            \
            TYPE *restrict target = into + at * width;                                                             \
            const TYPE *restrict row = rows + i * width;                                                           \
            if (factor == 1)                                                                                       \
                for (int64_t j = 0; j < width; j++) target[j] += row[j];                                           \
            else                                                                                                   \
                for (int64_t j = 0; j < width; j++) target[j] -= row[j];                                           \
        }                                                                                                          \
    }

DEFINE_ADD(add_floats, float)
DEFINE_ADD(add_doubles, double)

static PyObject *add(PyObject *self, PyObject *args) {
    Py_buffer into, rows, indices;
    int wide, doubles, subtract, negatives, threads;
    long long size, width;
    (void)self;
    if (!PyArg_ParseTuple(args, "w*y*y*pLLpppi", &into, &rows, &indices, &wide, &size, &width, &doubles, &subtract, &negatives,
                          &threads))
        return NULL;
    int64_t count = indices.len / (wide ? 8 : 4), outside = -1, item = doubles ? 8 : 4;
    int fits = width > 0 && size >= 0 && into.len / item / width >= size && rows.len / item / width >= count;
    if (fits) {
        Py_BEGIN_ALLOW_THREADS;
        outside = first_outside(indices.buf, wide, count, size, negatives);
        if (outside < 0) {
            int64_t share = count * width / WORTH_A_THREAD;
            int used = share < 1 ? 1 : share < threads ? (int)share : threads;
#pragma omp parallel for num_threads(used) if (used > 1)
            for (int part = 0; part < used; part++) {
                if (doubles)
                    add_doubles(into.buf, rows.buf, indices.buf, wide, count, width, subtract ? -1 : 1, part, used);
                else
                    add_floats(into.buf, rows.buf, indices.buf, wide, count, width, subtract ? -1 : 1, part, used);
            }
        }
        Py_END_ALLOW_THREADS;
    }
    PyBuffer_Release(&into);
    PyBuffer_Release(&rows);
    PyBuffer_Release(&indices);
    if (!fits) return PyErr_Format(PyExc_ValueError, "the buffers are smaller than the rows they are said to hold");
    return PyLong_FromLongLong(outside);
}

static PyMethodDef METHODS[] = {
    {"unique", unique, METH_VARARGS,
     "unique(values, wide, places, wide_places, found, counts): fills the last three, returns how many are distinct."},
    {"check_distinct", check_distinct, METH_VARARGS,
     "check_distinct(indices, wide, size): -1 if they are, -2 if some repeat, else the position of one outside of [0, size)."},
    {"gather", gather, METH_VARARGS,
     "gather(out, rows, indices, wide, size, bytes, threads): -1, or the position of an index outside; nothing is written then."},
    {"add", add, METH_VARARGS,
     "add(into, rows, indices, wide, size, width, doubles, subtract, negatives, threads): as gather; negatives may be skipped."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "rows", "Rows of large tables in one pass.", -1, METHODS, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_rows(void) { return PyModule_Create(&MODULE); }
