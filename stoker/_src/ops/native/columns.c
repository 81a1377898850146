/* The first steps of feature columns: buckets of numbers, hashed crosses of features, and elements for empty rows. The Python versions are the
 * kernels of Bucketize (ops/math/counting.py), SparseCross (ops/sparse/sparse_features.py) and SparseFillEmptyRows (ops/sparse/sparse_reductions.py). */
#include "tensors.h"

#include "../../base/native/teams.h"

#include <stdlib.h>
#include <string.h>

#include "../../base/native/vectorised.h"

enum { WORTH_A_THREAD = 1 << 15 }; /* numbers per thread */

/* ---- buckets ---- */

typedef struct {
    const float *from, *edges;
    int32_t *to;
    int64_t count, edge_count;
} search;

/* The number of edges that are not above each number; all of them for NaN. */
VECTORISED static void count_edges(int32_t *restrict to, const float *restrict from, int64_t count, const float *edges, int64_t edge_count) {
    memset(to, 0, (size_t)count * sizeof *to);
    for (int64_t e = 0; e < edge_count; e++) {
        float edge = edges[e];
        for (int64_t i = 0; i < count; i++) to[i] += !(from[i] < edge);
    }
}

static void halve_edges(int32_t *to, const float *from, int64_t count, const float *edges, int64_t edge_count) {
    for (int64_t i = 0; i < count; i++) {
        int64_t low = 0, high = edge_count;
        while (low < high) {
            int64_t middle = low + (high - low) / 2;
            if (from[i] < edges[middle])
                high = middle;
            else
                low = middle + 1;
        }
        to[i] = (int32_t)low;
    }
}

static PyObject *bucketize(PyObject *self, PyObject *args) {
    int32_t *out;
    PyObject *list;
    int threads;
    (void)self;
    if (!PyArg_ParseTuple(args, "O&O!i", to_address, &out, &PyList_Type, &list, &threads)) return NULL;
    Py_ssize_t many = PyList_GET_SIZE(list), viewed = 0;
    search *searches = calloc((size_t)many + 1, sizeof *searches);
    Py_buffer *views = calloc((size_t)many + 1, sizeof *views);
    int fine = searches != NULL && views != NULL;
    if (!fine) PyErr_NoMemory();
    int64_t at = 0;
    for (; fine && viewed < many; viewed++) {
        long long count;
        search *each = &searches[viewed];
        fine = PyArg_ParseTuple(PyList_GET_ITEM(list, viewed), "O&Ly*", to_address, &each->from, &count, &views[viewed]);
        if (!fine) break;
        each->count = count;
        each->edges = views[viewed].buf;
        each->edge_count = views[viewed].len / (int64_t)sizeof(float);
        each->to = out + at;
        at += count;
    }
    if (fine) {
        Py_BEGIN_ALLOW_THREADS;
        int64_t share = at / WORTH_A_THREAD;
        int used = threads_for(share, threads);
#pragma omp parallel for schedule(dynamic, 4) num_threads(team_for(used)) if (used > 1)
        for (Py_ssize_t i = 0; i < many; i++) {
            search *each = &searches[i];
            (each->edge_count <= 32 ? count_edges : halve_edges)(each->to, each->from, each->count, each->edges, each->edge_count);
        }
        Py_END_ALLOW_THREADS;
    }
    for (Py_ssize_t i = 0; i < viewed; i++) PyBuffer_Release(&views[i]);
    free(views);
    free(searches);
    if (!fine) return NULL;
    Py_RETURN_NONE;
}

/* ---- crosses ---- */

/* A crossed column: the hash of each feature, and either the indices [count, 2] of the features or how many each row has. */
typedef struct {
    const uint64_t *hashes;
    const int64_t *indices;
    int64_t count, width, longest; /* width: of a dense column; longest: the second size of a sparse one */
    int64_t at, here;              /* position and number of the features of the current row */
    int is_dense;                  /* not the same as no indices: those of an empty tensor may be NULL */
} part;

/* Moves to the features of a row. */
static void to_row(part *each, int64_t row) {
    each->at += each->here;
    if (each->is_dense) {
        each->here = each->width;
        return;
    }
    int64_t end = each->at;
    while (end < each->count && each->indices[2 * end] == row) end++;
    each->here = end - each->at;
}

/* Whether the indices are in the bounds and their rows ascend. */
static int is_in_order(const part *each, int64_t batch) {
    if (each->is_dense) return 1;
    int64_t last = 0;
    for (int64_t i = 0; i < each->count; i++) {
        int64_t row = each->indices[2 * i], column = each->indices[2 * i + 1];
        if (row < last || row >= batch || column < 0 || column >= each->longest) return 0;
        last = row;
    }
    return 1;
}

/* The number of combinations of all rows; -1 if there are too many. */
static int64_t count_combinations(part *parts, Py_ssize_t depth, int64_t batch, int64_t *widest) {
    int64_t total = 0;
    *widest = 0;
    for (int64_t row = 0; row < batch; row++) {
        int64_t here = depth > 0;
        for (Py_ssize_t k = 0; k < depth; k++) {
            to_row(&parts[k], row);
            if (__builtin_mul_overflow(here, parts[k].here, &here)) return -1;
        }
        if (__builtin_add_overflow(total, here, &total) || total > PY_SSIZE_T_MAX / 16) return -1;
        *widest = here > *widest ? here : *widest;
    }
    return total;
}

static inline uint64_t joined(uint64_t first, uint64_t second) {
    const uint64_t m = 0xc6a4a7935bd1e995ull;
    uint64_t step = second * m, result = (first ^ m ^ (step ^ (step >> 47)) * m) * m;
    result = (result ^ (result >> 47)) * m;
    return result ^ (result >> 47);
}

static void write_combinations(part *parts, Py_ssize_t depth, int64_t batch, uint64_t buckets, uint64_t key, int64_t *indices,
                               int64_t *values, int64_t *chosen, uint64_t *partial) {
    for (Py_ssize_t k = 0; k < depth; k++) parts[k].at = parts[k].here = 0;
    for (int64_t row = 0; row < batch; row++) {
        int empty = 0;
        for (Py_ssize_t k = 0; k < depth; k++) {
            to_row(&parts[k], row);
            empty |= parts[k].here == 0;
            chosen[k] = 0;
        }
        if (empty) continue;
        Py_ssize_t changed = 0; /* the first column whose choice changed: the hashes before it still hold */
        for (int64_t i = 0; changed >= 0; i++) {
            for (Py_ssize_t k = changed; k < depth; k++)
                partial[k] = joined(k ? partial[k - 1] : key, parts[k].hashes[parts[k].at + chosen[k]]);
            *indices++ = row;
            *indices++ = i;
            *values++ = (int64_t)(partial[depth - 1] % buckets);
            for (changed = depth - 1; changed >= 0 && ++chosen[changed] == parts[changed].here; changed--) chosen[changed] = 0;
        }
    }
}

static PyObject *cross(PyObject *self, PyObject *args) {
    PyObject *list, *indices = NULL, *values = NULL, *result = NULL;
    long long batch;
    unsigned long long buckets, key;
    (void)self;
    if (!PyArg_ParseTuple(args, "O!LKK", &PyList_Type, &list, &batch, &buckets, &key)) return NULL;
    Py_ssize_t depth = PyList_GET_SIZE(list);
    part *parts = calloc((size_t)depth + 1, sizeof *parts);
    int64_t *chosen = calloc((size_t)depth + 1, sizeof *chosen), total = 0, widest = 0;
    uint64_t *partial = calloc((size_t)depth + 1, sizeof *partial);
    int in_order = 1;
    if (parts == NULL || chosen == NULL || partial == NULL) {
        PyErr_NoMemory();
        goto done;
    }
    for (Py_ssize_t k = 0; k < depth; k++) {
        PyObject *given;
        long long count, width;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(list, k), "O&OLL", to_address, &parts[k].hashes, &given, &count, &width)) goto done;
        if (given != Py_None && !tensor_data(given, &parts[k].indices)) goto done;
        parts[k].count = count;
        parts[k].is_dense = given == Py_None;
        parts[k].width = parts[k].longest = width;
        in_order &= is_in_order(&parts[k], batch);
    }
    if (!in_order) {
        result = Py_NewRef(Py_None);
        goto done;
    }
    total = count_combinations(parts, depth, batch, &widest);
    if (total < 0) {
        PyErr_NoMemory();
        goto done;
    }
    indices = PyByteArray_FromStringAndSize(NULL, total * 16);
    values = PyByteArray_FromStringAndSize(NULL, total * 8);
    if (indices == NULL || values == NULL) goto done;
    if (depth)
        write_combinations(parts, depth, batch, buckets, key, (int64_t *)PyByteArray_AS_STRING(indices),
                           (int64_t *)PyByteArray_AS_STRING(values), chosen, partial);
    result = Py_BuildValue("(OOL)", indices, values, (long long)widest);
done:
    Py_XDECREF(indices);
    Py_XDECREF(values);
    free(parts);
    free(chosen);
    free(partial);
    return result;
}

/* ---- empty rows ---- */

/* Sets places[r] to how many of the coordinates are in row r. The number of empty rows, or -1 if a row is out of bounds. */
static int64_t count_rows(const int64_t *indices, int64_t count, int64_t rank, int64_t rows, int64_t *places) {
    memset(places, 0, (size_t)rows * sizeof *places);
    for (int64_t i = 0; i < count; i++) {
        int64_t row = indices[i * rank];
        if (row < 0 || row >= rows) return -1;
        places[row]++;
    }
    int64_t empty = 0;
    for (int64_t r = 0; r < rows; r++) empty += places[r] == 0;
    return empty;
}

static PyObject *empty_rows(PyObject *self, PyObject *args) {
    const int64_t *indices;
    int64_t *places;
    long long count, rank, rows;
    (void)self;
    if (!PyArg_ParseTuple(args, "O&LLLO&", to_address, &indices, &count, &rank, &rows, to_address, &places)) return NULL;
    return PyLong_FromLongLong(count_rows(indices, count, rank, rows, places));
}

static PyObject *fill_rows(PyObject *self, PyObject *args) {
    const int64_t *indices;
    int64_t *places, *filled, *order, *reverse;
    uint8_t *is_empty;
    long long count, rank, rows, total;
    (void)self;
    if (!PyArg_ParseTuple(args, "O&LLLO&LO&O&O&O&", to_address, &indices, &count, &rank, &rows, to_address, &places, &total, to_address, &filled,
                          to_address, &order, to_address, &reverse, to_address, &is_empty))
        return NULL;
    int64_t empty = count_rows(indices, count, rank, rows, places); /* again: a fed array may have changed */
    if (empty < 0 || empty + count != total) Py_RETURN_FALSE;
    int64_t next = 0;
    for (int64_t r = 0; r < rows; r++) {
        int64_t here = places[r];
        places[r] = next;
        is_empty[r] = here == 0;
        if (here == 0) {
            filled[next * rank] = r;
            for (int64_t k = 1; k < rank; k++) filled[next * rank + k] = 0;
            order[next++] = count;
        } else
            next += here;
    }
    for (int64_t i = 0; i < count; i++) {
        int64_t row = indices[i * rank];
        if (row < 0 || row >= rows || is_empty[row] || places[row] >= total) Py_RETURN_FALSE;
        int64_t at = places[row]++;
        memcpy(filled + at * rank, indices + i * rank, (size_t)rank * sizeof *filled);
        order[at] = i;
        reverse[i] = at;
    }
    Py_RETURN_TRUE;
}

static PyMethodDef METHODS[] = {
    {"bucketize", bucketize, METH_VARARGS,
     "bucketize(out, tasks, threads): for each (numbers, count, sorted float32 edges) the buckets, one after the other in `out`."},
    {"cross", cross, METH_VARARGS,
     "cross(columns, batch, buckets, key): (indices, values, widest) of all combinations of one feature from each (hashes, indices or None, "
     "count, width) in each row. None if indices are out of bounds or not in row order."},
    {"empty_rows", empty_rows, METH_VARARGS,
     "empty_rows(indices, count, rank, rows, places): the number of rows without coordinates, or -1 if one is out of bounds; the numbers of the "
     "others in `places`."},
    {"fill_rows", fill_rows, METH_VARARGS,
     "fill_rows(indices, count, rank, rows, places, total, filled, order, reverse, is_empty): the coordinates by row, with one for each empty row; "
     "which each one is (`count` for an added one); where each has gone. False if the indices are not what empty_rows saw."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "columns", "The first steps of feature columns.", -1, METHODS, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_columns(void) { return tensors_ready() ? PyModule_Create(&MODULE) : NULL; }
