/* Arrays of strings: splitting, joining, hashes of joined strings, places in a table. The Python versions are the kernels in
 * ops/strings/string_ops.py and ops/resources/table_ops.py. An array is a contiguous NumPy array of objects. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "../../formats/native/farmhash.h"

#include <stdlib.h>
#include <string.h>

static PyObject **objects_of(PyObject *array, Py_buffer *view, int writable, Py_ssize_t *count) {
    if (PyObject_GetBuffer(array, view, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS | (writable ? PyBUF_WRITABLE : 0)) < 0) return NULL;
    if (view->format == NULL || strcmp(view->format, "O") != 0 || view->itemsize != sizeof(PyObject *)) {
        PyBuffer_Release(view);
        PyErr_SetString(PyExc_TypeError, "an array of objects is needed");
        return NULL;
    }
    *count = view->len / view->itemsize;
    return view->buf;
}

static int bytes_of(PyObject *object, const char **text, Py_ssize_t *size) {
    if (object == NULL || !PyBytes_Check(object)) {
        PyErr_Format(PyExc_TypeError, "expected bytes, %s found", object == NULL ? "nothing" : Py_TYPE(object)->tp_name);
        return 0;
    }
    *text = PyBytes_AS_STRING(object);
    *size = PyBytes_GET_SIZE(object);
    return 1;
}

/* ---- splitting ---- */

typedef struct {
    char is_mark[256];
    int skips_empty, keeps_nothing; /* keeps_nothing: an empty text has no parts, instead of an empty one */
} splitter;

static int read_splitter(splitter *by, const char *marks, Py_ssize_t count) {
    memset(by->is_mark, 0, sizeof by->is_mark);
    for (Py_ssize_t i = 0; i < count; i++) by->is_mark[(unsigned char)marks[i]] = 1;
    return count > 0;
}

/* The next part of a text; 0 at its end. `at` starts as 0 and is above `size` after the last part. */
static inline int next_part(const splitter *by, const char *text, Py_ssize_t size, Py_ssize_t *at, Py_ssize_t *begin, Py_ssize_t *end) {
    if (size == 0 && by->keeps_nothing) return 0;
    while (*at <= size) {
        Py_ssize_t stop = *begin = *at;
        while (stop < size && !by->is_mark[(unsigned char)text[stop]]) stop++;
        *at = stop + 1;
        *end = stop;
        if (stop > *begin || !by->skips_empty) return 1;
    }
    return 0;
}

static PyObject *split_lengths(PyObject *self, PyObject *args) {
    PyObject *array, *result = NULL;
    Py_buffer texts, out;
    const char *marks;
    Py_ssize_t mark_count, count;
    splitter by;
    (void)self;
    if (!PyArg_ParseTuple(args, "Oy#ppw*", &array, &marks, &mark_count, &by.skips_empty, &by.keeps_nothing, &out)) return NULL;
    PyObject **items = objects_of(array, &texts, 0, &count);
    if (items == NULL) {
        PyBuffer_Release(&out);
        return NULL;
    }
    int64_t *lengths = out.buf, total = 0;
    if (!read_splitter(&by, marks, mark_count) || out.len != count * (Py_ssize_t)sizeof *lengths) {
        PyErr_SetString(PyExc_ValueError, "there are no marks, or not as many lengths as texts");
        goto done;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        const char *text;
        Py_ssize_t size, at = 0, begin, end, found = 0;
        if (!bytes_of(items[i], &text, &size)) goto done;
        while (next_part(&by, text, size, &at, &begin, &end)) found++;
        lengths[i] = found;
        total += found;
    }
    result = PyLong_FromLongLong(total);
done:
    PyBuffer_Release(&texts);
    PyBuffer_Release(&out);
    return result;
}

static PyObject *split_into(PyObject *self, PyObject *args) {
    PyObject *array, *target, *result = NULL;
    Py_buffer texts, values, out;
    const char *marks;
    Py_ssize_t mark_count, count, room, made = 0;
    splitter by;
    (void)self;
    if (!PyArg_ParseTuple(args, "Oy#ppOw*", &array, &marks, &mark_count, &by.skips_empty, &by.keeps_nothing, &target, &out)) return NULL;
    PyObject **items = objects_of(array, &texts, 0, &count);
    if (items == NULL) {
        PyBuffer_Release(&out);
        return NULL;
    }
    PyObject **to = objects_of(target, &values, 1, &room);
    if (to == NULL) {
        PyBuffer_Release(&texts);
        PyBuffer_Release(&out);
        return NULL;
    }
    int64_t *indices = out.buf;
    int fits = read_splitter(&by, marks, mark_count) && out.len == room * 2 * (Py_ssize_t)sizeof *indices;
    for (Py_ssize_t i = 0; fits && i < count; i++) {
        const char *text;
        Py_ssize_t size, at = 0, begin, end, column = 0;
        if (!bytes_of(items[i], &text, &size)) goto done;
        while (next_part(&by, text, size, &at, &begin, &end)) {
            if (made == room) {
                fits = 0;
                break;
            }
            PyObject *part = PyBytes_FromStringAndSize(text + begin, end - begin);
            if (part == NULL) goto done;
            Py_XSETREF(to[made], part);
            indices[2 * made] = i;
            indices[2 * made + 1] = column++;
            made++;
        }
    }
    if (!fits || made != room) {
        PyErr_SetString(PyExc_ValueError, "the arrays do not have the size of the parts");
        goto done;
    }
    result = Py_NewRef(Py_None);
done:
    PyBuffer_Release(&texts);
    PyBuffer_Release(&values);
    PyBuffer_Release(&out);
    return result;
}

/* ---- joining ---- */

typedef struct {
    Py_buffer view;
    PyObject **items;
    Py_ssize_t count;
} column;

static void release_columns(column *columns, Py_ssize_t count) {
    for (Py_ssize_t k = 0; k < count; k++) PyBuffer_Release(&columns[k].view);
    PyMem_Free(columns);
}

/* The arrays of a list. Each has `count` strings or one. */
static column *read_columns(PyObject *list, Py_ssize_t count) {
    Py_ssize_t width = PyList_GET_SIZE(list);
    column *columns = PyMem_Calloc((size_t)width + 1, sizeof *columns);
    if (columns == NULL) return (column *)PyErr_NoMemory();
    for (Py_ssize_t k = 0; k < width; k++) {
        column *each = &columns[k];
        each->items = objects_of(PyList_GET_ITEM(list, k), &each->view, 0, &each->count);
        if (each->items != NULL && each->count != count && each->count != 1) {
            PyBuffer_Release(&each->view);
            each->items = NULL;
            PyErr_SetString(PyExc_ValueError, "the arrays differ in size");
        }
        if (each->items == NULL) {
            release_columns(columns, k);
            return NULL;
        }
    }
    return columns;
}

/* The size of the joined strings of row `i`; -1 with an exception. */
static Py_ssize_t joined_size(const column *columns, Py_ssize_t width, Py_ssize_t i, Py_ssize_t between) {
    Py_ssize_t total = 0;
    for (Py_ssize_t k = 0; k < width; k++) {
        const char *text;
        Py_ssize_t size;
        if (!bytes_of(columns[k].items[columns[k].count == 1 ? 0 : i], &text, &size)) return -1;
        if (__builtin_add_overflow(total, size + (k ? between : 0), &total)) {
            PyErr_NoMemory();
            return -1;
        }
    }
    return total;
}

static void write_joined(char *to, const column *columns, Py_ssize_t width, Py_ssize_t i, const char *glue, Py_ssize_t between) {
    for (Py_ssize_t k = 0; k < width; k++) {
        PyObject *item = columns[k].items[columns[k].count == 1 ? 0 : i];
        if (k) {
            memcpy(to, glue, (size_t)between);
            to += between;
        }
        memcpy(to, PyBytes_AS_STRING(item), (size_t)PyBytes_GET_SIZE(item));
        to += PyBytes_GET_SIZE(item);
    }
}

static PyObject *join(PyObject *self, PyObject *args) {
    PyObject *list, *target, *result = NULL;
    Py_buffer values;
    const char *glue;
    Py_ssize_t between, count;
    (void)self;
    if (!PyArg_ParseTuple(args, "O!y#O", &PyList_Type, &list, &glue, &between, &target)) return NULL;
    PyObject **to = objects_of(target, &values, 1, &count);
    if (to == NULL) return NULL;
    Py_ssize_t width = PyList_GET_SIZE(list);
    column *columns = read_columns(list, count);
    for (Py_ssize_t i = 0; columns != NULL && i <= count; i++) {
        if (i == count) {
            result = Py_NewRef(Py_None);
            break;
        }
        Py_ssize_t size = joined_size(columns, width, i, between);
        PyObject *made = size < 0 ? NULL : PyBytes_FromStringAndSize(NULL, size);
        if (made == NULL) break;
        if (size) write_joined(PyBytes_AS_STRING(made), columns, width, i, glue, between);
        Py_XSETREF(to[i], made);
    }
    if (columns != NULL) release_columns(columns, width);
    PyBuffer_Release(&values);
    return result;
}

static PyObject *joined_fingerprints(PyObject *self, PyObject *args) {
    PyObject *list, *result = NULL;
    Py_buffer out;
    const char *glue;
    Py_ssize_t between, room = 0;
    char *text = NULL;
    (void)self;
    if (!PyArg_ParseTuple(args, "O!y#w*", &PyList_Type, &list, &glue, &between, &out)) return NULL;
    Py_ssize_t width = PyList_GET_SIZE(list), count = out.len / (Py_ssize_t)sizeof(uint64_t);
    uint64_t *hashes = out.buf;
    column *columns = read_columns(list, count);
    for (Py_ssize_t i = 0; columns != NULL && i <= count; i++) {
        if (i == count) {
            result = Py_NewRef(Py_None);
            break;
        }
        Py_ssize_t size = joined_size(columns, width, i, between);
        if (size < 0) break;
        if (size > room || text == NULL) {
            char *larger = size > PY_SSIZE_T_MAX / 2 - 64 ? NULL : PyMem_Realloc(text, (size_t)(2 * size + 64));
            if (larger == NULL) {
                PyErr_NoMemory();
                break;
            }
            text = larger;
            room = 2 * size + 64;
        }
        write_joined(text, columns, width, i, glue, between);
        hashes[i] = fingerprint64((const uint8_t *)text, (size_t)size);
    }
    PyMem_Free(text);
    if (columns != NULL) release_columns(columns, width);
    PyBuffer_Release(&out);
    return result;
}

static PyObject *fingerprints(PyObject *self, PyObject *args) {
    PyObject *array, *result = NULL;
    Py_buffer texts, out;
    Py_ssize_t count;
    (void)self;
    if (!PyArg_ParseTuple(args, "Ow*", &array, &out)) return NULL;
    PyObject **items = objects_of(array, &texts, 0, &count);
    uint64_t *hashes = out.buf;
    if (items != NULL) {
        if (out.len != count * (Py_ssize_t)sizeof *hashes)
            PyErr_SetString(PyExc_ValueError, "there are not as many hashes as texts");
        else
            result = Py_NewRef(Py_None);
        for (Py_ssize_t i = 0; result != NULL && i < count; i++) {
            const char *text;
            Py_ssize_t size;
            if (bytes_of(items[i], &text, &size))
                hashes[i] = fingerprint64((const uint8_t *)text, (size_t)size);
            else
                Py_CLEAR(result);
        }
        PyBuffer_Release(&texts);
    }
    PyBuffer_Release(&out);
    return result;
}

/* ---- sparse matrices ---- */

static PyObject *place(PyObject *self, PyObject *args) {
    PyObject *array, *filling, *target;
    Py_buffer indices, values, dense;
    long long rows, width;
    Py_ssize_t given, room;
    (void)self;
    if (!PyArg_ParseTuple(args, "y*LLOOO", &indices, &rows, &width, &array, &filling, &target)) return NULL;
    PyObject **from = objects_of(array, &values, 0, &given);
    PyObject **to = from == NULL ? NULL : objects_of(target, &dense, 1, &room);
    const int64_t *at = indices.buf;
    int64_t size, last = -1;
    int fine = to != NULL && rows >= 0 && width >= 0 && !__builtin_mul_overflow(rows, width, &size) && size == room &&
               indices.len == given * 2 * (Py_ssize_t)sizeof *at;
    for (Py_ssize_t i = 0; fine && i < given; i++) {
        int64_t row = at[2 * i], column = at[2 * i + 1];
        fine = row >= 0 && row < rows && column >= 0 && column < width && row * width + column > last;
        last = row * width + column;
    }
    if (fine) {
        Py_ssize_t next = 0;
        for (Py_ssize_t i = 0; i < given; i++) {
            Py_ssize_t stop = (Py_ssize_t)(at[2 * i] * width + at[2 * i + 1]);
            for (; next < stop; next++) Py_XSETREF(to[next], Py_NewRef(filling));
            Py_XSETREF(to[next], Py_XNewRef(from[i]));
            next++;
        }
        for (; next < room; next++) Py_XSETREF(to[next], Py_NewRef(filling));
    }
    if (to != NULL) PyBuffer_Release(&dense);
    if (from != NULL) PyBuffer_Release(&values);
    PyBuffer_Release(&indices);
    return to == NULL ? NULL : PyBool_FromLong(fine);
}

/* ---- single strings ---- */

enum { MOST_DIMENSIONS = 8 };

static PyObject *gather(PyObject *self, PyObject *args) {
    PyObject *array, *shape, *target;
    Py_buffer indices, values, made;
    Py_ssize_t given, room, sizes[MOST_DIMENSIONS], total = 1;
    (void)self;
    if (!PyArg_ParseTuple(args, "OO!y*O", &array, &PyTuple_Type, &shape, &indices, &target)) return NULL;
    Py_ssize_t depth = PyTuple_GET_SIZE(shape);
    int fine = depth > 0 && depth <= MOST_DIMENSIONS;
    for (Py_ssize_t k = 0; fine && k < depth; k++) {
        sizes[k] = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, k));
        fine = sizes[k] >= 0 && !__builtin_mul_overflow(total, sizes[k], &total);
    }
    PyObject **from = PyErr_Occurred() ? NULL : objects_of(array, &values, 0, &given);
    PyObject **to = from == NULL ? NULL : objects_of(target, &made, 1, &room);
    fine = fine && to != NULL && given == total && indices.len == room * depth * (Py_ssize_t)sizeof(int64_t);
    const int64_t *at = indices.buf;
    for (Py_ssize_t i = 0; fine && i < room; i++) {
        Py_ssize_t flat = 0;
        for (Py_ssize_t k = 0; fine && k < depth; k++, at++) {
            fine = *at >= 0 && *at < sizes[k];
            flat = flat * sizes[k] + (Py_ssize_t)*at;
        }
        if (fine) Py_XSETREF(to[i], Py_XNewRef(from[flat]));
    }
    int failed = PyErr_Occurred() != NULL;
    if (to != NULL) PyBuffer_Release(&made);
    if (from != NULL) PyBuffer_Release(&values);
    PyBuffer_Release(&indices);
    return failed ? NULL : PyBool_FromLong(fine);
}

/* ---- tables ---- */

static PyObject *places(PyObject *self, PyObject *args) {
    PyObject *table, *array;
    Py_buffer keys, out;
    Py_ssize_t count;
    long long missing = 0;
    (void)self;
    if (!PyArg_ParseTuple(args, "O!Ow*", &PyDict_Type, &table, &array, &out)) return NULL;
    PyObject **items = objects_of(array, &keys, 0, &count);
    if (items == NULL) {
        PyBuffer_Release(&out);
        return NULL;
    }
    int64_t *to = out.buf;
    int fine = out.len == count * (Py_ssize_t)sizeof *to;
    if (!fine) PyErr_SetString(PyExc_ValueError, "there are not as many places as keys");
    for (Py_ssize_t i = 0; fine && i < count; i++) {
        const char *text;
        Py_ssize_t size;
        fine = bytes_of(items[i], &text, &size);
        if (!fine) break;
        PyObject *found = PyDict_GetItemWithError(table, items[i]);
        if (found == NULL) {
            fine = !PyErr_Occurred();
            to[i] = -1;
            missing++;
        } else {
            to[i] = PyLong_AsLongLong(found);
            fine = to[i] != -1 || !PyErr_Occurred();
        }
    }
    PyBuffer_Release(&keys);
    PyBuffer_Release(&out);
    return fine ? PyLong_FromLongLong(missing) : NULL;
}

static PyMethodDef METHODS[] = {
    {"split_lengths", split_lengths, METH_VARARGS,
     "split_lengths(texts, marks, skip_empty, keep_nothing, lengths): how many parts each text has between any of the marks (int64), and "
     "how many there are."},
    {"split_into", split_into, METH_VARARGS,
     "split_into(texts, marks, skip_empty, keep_nothing, values, indices): the parts, and the text and position of each (int64 [n, 2])."},
    {"join", join, METH_VARARGS, "join(arrays, separator, values): the strings of each row of the arrays, joined."},
    {"joined_fingerprints", joined_fingerprints, METH_VARARGS,
     "joined_fingerprints(arrays, separator, hashes): FarmHash fingerprints (uint64) of what `join` would make."},
    {"fingerprints", fingerprints, METH_VARARGS, "fingerprints(texts, hashes): FarmHash fingerprints (uint64)."},
    {"place", place, METH_VARARGS,
     "place(indices, rows, width, values, filling, dense): a dense matrix of the values at ascending indices (int64 [n, 2]); False if they "
     "do not ascend or fit."},
    {"gather", gather, METH_VARARGS,
     "gather(values, shape, indices, made): the values at places (int64 [n, len(shape)]) of an array; False if a place is outside of it."},
    {"places", places, METH_VARARGS,
     "places(table, keys, places): what a dict from bytes to int has for each key (int64; -1: nothing), and how many keys it lacks."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "strings", "Arrays of strings.", -1, METHODS, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_strings(void) { return PyModule_Create(&MODULE); }
