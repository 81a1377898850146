/* Row operations on large tables in one pass: unique, gather, scatter-add, products of sparse matrices, partition and stitch. Each function checks every index
 * before it writes.
 *
 * Indices are int32 or int64, distinguished by their item size. Only one thread updates a row, in the order of the indices, so
 * that results do not depend on the number of threads. */
#include "tensors.h"

#include "../../base/native/teams.h"

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
static inline int64_t place_of(table *seen, void *found, int wide, int64_t *total, int64_t value) {
    uint64_t hash = (uint64_t)value * 0x9E3779B97F4A7C15u;
    uint64_t slot = (hash >> 20) & seen->mask;
    for (;; slot = (slot + 1) & seen->mask) {
        int64_t place = seen->slots[slot];
        if (place < 0) {
            seen->slots[slot] = *total;
            if (wide)
                ((int64_t *)found)[*total] = value;
            else
                ((int32_t *)found)[*total] = (int32_t)value;
            return (*total)++;
        }
        if (index_at(found, wide, place) == value) return place;
    }
}

static PyObject *unique(PyObject *self, PyObject *args) {
    void *values, *places, *found, *counts;
    int wide, wide_places;
    long long count;
    int64_t total = 0;
    (void)self;
    if (!PyArg_ParseTuple(args, "O&LpO&pO&O&", to_address, &values, &count, &wide, to_address, &places, &wide_places, to_address, &found,
                          to_address_or_null, &counts))
        return NULL;
    table seen = {NULL, 0};
    if (count < 0 || !make_table(&seen, count)) return PyErr_NoMemory();
    Py_BEGIN_ALLOW_THREADS;
    for (int64_t i = 0; i < count; i++) {
        int64_t before = total, place = place_of(&seen, found, wide, &total, index_at(values, wide, i));
        if (wide_places) {
            ((int64_t *)places)[i] = place;
            if (counts != NULL) ((int64_t *)counts)[place] = total > before ? 1 : ((int64_t *)counts)[place] + 1;
        } else {
            ((int32_t *)places)[i] = (int32_t)place;
            if (counts != NULL) ((int32_t *)counts)[place] = total > before ? 1 : ((int32_t *)counts)[place] + 1;
        }
    }
    Py_END_ALLOW_THREADS;
    free(seen.slots);
    return PyLong_FromLongLong(total);
}

/* -1 if all indices are distinct and in [0, size), -2 if some repeat, -3 if there is no memory, else the position of one outside. */
static int64_t distinct_or_outside(const void *indices, int wide, int64_t count, int64_t size) {
    int64_t outside = first_outside(indices, wide, count, size, 0), total = 0;
    if (outside >= 0) return outside;
    table seen = {NULL, 0};
    int64_t *found = malloc((size_t)(count ? count : 1) * sizeof(int64_t));
    int made = found != NULL && make_table(&seen, count);
    for (int64_t i = 0; made && i < count && total == i; i++) place_of(&seen, found, 1, &total, index_at(indices, wide, i));
    free(seen.slots);
    free(found);
    return !made ? -3 : total == count ? -1 : -2;
}

static PyObject *check_distinct(PyObject *self, PyObject *args) {
    void *indices;
    int wide;
    long long count, size;
    (void)self;
    if (!PyArg_ParseTuple(args, "O&LpL", to_address, &indices, &count, &wide, &size)) return NULL;
    int64_t found;
    Py_BEGIN_ALLOW_THREADS;
    found = distinct_or_outside(indices, wide, count, size);
    Py_END_ALLOW_THREADS;
    if (found == -3) return PyErr_NoMemory();
    return PyLong_FromLongLong(found);
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
    void *out, *rows, *indices;
    int wide, threads;
    long long count, size, bytes;
    (void)self;
    if (!PyArg_ParseTuple(args, "O&O&O&LpLLi", to_address, &out, to_address, &rows, to_address, &indices, &count, &wide, &size, &bytes, &threads))
        return NULL;
    int64_t outside;
    Py_BEGIN_ALLOW_THREADS;
    outside = first_outside(indices, wide, count, size, 0);
    if (outside < 0) {
        int64_t share = count * bytes / 4 / WORTH_A_THREAD;
        int used = threads_for(share, threads);
        int64_t step = (count + used - 1) / used;
#pragma omp parallel for num_threads(team_for(used)) if (used > 1)
        for (int part = 0; part < used; part++) {
            int64_t first = part * step, last = first + step < count ? first + step : count;
            copy_rows(out, rows, indices, wide, first, last, bytes);
        }
    }
    Py_END_ALLOW_THREADS;
    return PyLong_FromLongLong(outside);
}

static inline void copy_row(char *to, const char *from, int64_t bytes) {
    if (bytes == 4)
        memcpy(to, from, 4);
    else if (bytes == 8)
        memcpy(to, from, 8);
    else
        memcpy(to, from, (size_t)bytes);
}

/* Each `run` of indices chooses among the `size` rows of a table of its own. */
static PyObject *gather_batched(PyObject *self, PyObject *args) {
    char *out, *rows;
    void *indices;
    int wide;
    long long count, run, size, bytes;
    (void)self;
    if (!PyArg_ParseTuple(args, "O&O&O&LpLLL", to_address, &out, to_address, &rows, to_address, &indices, &count, &wide, &run, &size, &bytes))
        return NULL;
    int64_t outside = -1;
    Py_BEGIN_ALLOW_THREADS;
    for (int64_t i = 0; i < count && outside < 0; i += run, rows += size * bytes)
        for (int64_t j = i; j < i + run && j < count; j++, out += bytes) {
            int64_t at = index_at(indices, wide, j);
            if (at < 0 || at >= size) {
                outside = j;
                break;
            }
            copy_row(out, rows + at * bytes, bytes);
        }
    Py_END_ALLOW_THREADS;
    return PyLong_FromLongLong(outside);
}

enum { DIMENSIONS = 8 };

/* Each index has a coordinate for each of the leading dimensions of the table. */
static PyObject *gather_nd(PyObject *self, PyObject *args) {
    char *out, *rows;
    void *indices;
    int wide;
    long long count, bytes;
    PyObject *shape;
    (void)self;
    if (!PyArg_ParseTuple(args, "O&O&O&LpO!L", to_address, &out, to_address, &rows, to_address, &indices, &count, &wide, &PyTuple_Type, &shape,
                          &bytes))
        return NULL;
    int64_t sizes[DIMENSIONS], outside = -1;
    int depth = (int)PyTuple_GET_SIZE(shape);
    if (depth > DIMENSIONS) return PyErr_Format(PyExc_ValueError, "%d coordinates", depth);
    for (int axis = 0; axis < depth; axis++) {
        sizes[axis] = PyLong_AsLongLong(PyTuple_GET_ITEM(shape, axis));
        if (sizes[axis] == -1 && PyErr_Occurred()) return NULL;
    }
    Py_BEGIN_ALLOW_THREADS;
    for (int64_t i = 0; i < count && outside < 0; i++, out += bytes) {
        int64_t row = 0;
        for (int axis = 0; axis < depth; axis++) {
            int64_t at = index_at(indices, wide, i * depth + axis);
            if (at < 0 || at >= sizes[axis]) {
                outside = i;
                break;
            }
            row = row * sizes[axis] + at;
        }
        if (outside < 0) copy_row(out, rows + row * bytes, bytes);
    }
    Py_END_ALLOW_THREADS;
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
    void *into, *rows, *indices;
    int wide, doubles, subtract, negatives, threads;
    long long count, size, width;
    (void)self;
    if (!PyArg_ParseTuple(args, "O&O&O&LpLLpppi", to_address, &into, to_address, &rows, to_address, &indices, &count, &wide, &size, &width,
                          &doubles, &subtract, &negatives, &threads))
        return NULL;
    int64_t outside;
    Py_BEGIN_ALLOW_THREADS;
    outside = first_outside(indices, wide, count, size, negatives);
    if (outside < 0) {
        int64_t share = count * width / WORTH_A_THREAD;
        int used = threads_for(share, threads);
#pragma omp parallel for num_threads(team_for(used)) if (used > 1)
        for (int part = 0; part < used; part++) {
            if (doubles)
                add_doubles(into, rows, indices, wide, count, width, subtract ? -1 : 1, part, used);
            else
                add_floats(into, rows, indices, wide, count, width, subtract ? -1 : 1, part, used);
        }
    }
    Py_END_ALLOW_THREADS;
    return PyLong_FromLongLong(outside);
}

/* ---- a sparse matrix times a dense one ---- */

#define DEFINE_MULTIPLY(NAME, TYPE)                                                                                              \
    VECTORISED static void NAME(TYPE *restrict out, const TYPE *restrict values, const void *indices, int wide, int64_t count,   \
                                const TYPE *restrict dense, int64_t width, int row, int part, int parts) {                       \
        for (int64_t i = 0; i < count; i++) {                                                                                    \
            int64_t to = index_at(indices, wide, 2 * i + row), from = index_at(indices, wide, 2 * i + 1 - row);                  \
            if (parts > 1 && to % parts != part) continue;                                                                       \
            TYPE *restrict target = out + to * width;                                                                            \
            const TYPE *restrict source = dense + from * width;                                                                  \
            TYPE factor = values[i];                                                                                             \
            for (int64_t j = 0; j < width; j++) target[j] += factor * source[j];                                                 \
        }                                                                                                                        \
    }

DEFINE_MULTIPLY(multiply_floats, float)
DEFINE_MULTIPLY(multiply_doubles, double)

static PyObject *multiply(PyObject *self, PyObject *args) {
    void *out, *values, *indices, *dense;
    int wide, doubles, row, threads;
    long long count, rows, inner, width;
    (void)self;
    if (!PyArg_ParseTuple(args, "O&O&O&LpO&LLLipi", to_address, &out, to_address, &values, to_address, &indices, &count, &wide, to_address,
                          &dense, &rows, &inner, &width, &row, &doubles, &threads))
        return NULL;
    int fine = 1;
    Py_BEGIN_ALLOW_THREADS;
    for (int64_t i = 0; i < count; i++) {
        int64_t to = index_at(indices, wide, 2 * i + row), from = index_at(indices, wide, 2 * i + 1 - row);
        fine &= to >= 0 && to < rows && from >= 0 && from < inner;
    }
    if (fine) {
        int64_t share = count * width / WORTH_A_THREAD;
        int used = threads_for(share, threads);
        memset(out, 0, (size_t)(rows * width) * (doubles ? sizeof(double) : sizeof(float)));
#pragma omp parallel for num_threads(team_for(used)) if (used > 1)
        for (int part = 0; part < used; part++) {
            if (doubles)
                multiply_doubles(out, values, indices, wide, count, dense, width, row, part, used);
            else
                multiply_floats(out, values, indices, wide, count, dense, width, row, part, used);
        }
    }
    Py_END_ALLOW_THREADS;
    return PyBool_FromLong(fine);
}

/* ---- coordinates ---- */

typedef struct {
    int64_t sizes[8];
    int depth;
} extents;

/* For PyArg_ParseTuple's "O&": the sizes of an array. */
static int to_extents(PyObject *sizes, void *address) {
    extents *read = address;
    if (!PyTuple_Check(sizes) || PyTuple_GET_SIZE(sizes) < 1 || PyTuple_GET_SIZE(sizes) > 8) {
        PyErr_SetString(PyExc_ValueError, "the sizes are not a tuple of 1 to 8 numbers");
        return 0;
    }
    read->depth = (int)PyTuple_GET_SIZE(sizes);
    for (int d = 0; d < read->depth; d++) {
        read->sizes[d] = PyLong_AsLongLong(PyTuple_GET_ITEM(sizes, d));
        if (read->sizes[d] == -1 && PyErr_Occurred()) return 0;
    }
    return 1;
}

/* Where a row of coordinates is in an array. `fine` becomes 0 if it is outside. */
static inline int64_t flat_place(const void *coordinates, int wide, int64_t row, const extents *of, int *fine) {
    int64_t place = 0;
    for (int d = 0; d < of->depth; d++) {
        int64_t at = index_at(coordinates, wide, row * of->depth + d);
        *fine &= at >= 0 && at < of->sizes[d];
        place = (int64_t)((uint64_t)place * (uint64_t)of->sizes[d] + (uint64_t)at);
    }
    return place;
}

static PyObject *flatten(PyObject *self, PyObject *args) {
    void *out, *coordinates;
    int wide, fine = 1;
    long long count;
    extents of;
    (void)self;
    if (!PyArg_ParseTuple(args, "O&O&pLO&", to_address, &out, to_address, &coordinates, &wide, &count, to_extents, &of)) return NULL;
    Py_BEGIN_ALLOW_THREADS;
    for (int64_t i = 0; i < count; i++) ((int64_t *)out)[i] = flat_place(coordinates, wide, i, &of, &fine);
    Py_END_ALLOW_THREADS;
    return PyBool_FromLong(fine);
}

#define DEFINE_PLACE(NAME, TYPE)                                                                                                   \
    static int NAME(TYPE *out, int64_t total, const void *coordinates, int wide, int64_t count, const extents *of, const TYPE *values, \
                    int64_t step, TYPE usual, int ascending) {                                                                     \
        int fine = 1;                                                                                                              \
        for (int64_t i = 0; i < total; i++) out[i] = usual;                                                                        \
        for (int64_t i = 0, before = -1; i < count; i++) {                                                                         \
            int64_t place = flat_place(coordinates, wide, i, of, &fine);                                                           \
            if (!fine || (ascending && place <= before)) return 0;                                                                 \
            out[place] = values[i * step];                                                                                         \
            before = place;                                                                                                        \
        }                                                                                                                          \
        return 1;                                                                                                                  \
    }

DEFINE_PLACE(place_4, uint32_t)
DEFINE_PLACE(place_8, uint64_t)

static PyObject *place(PyObject *self, PyObject *args) {
    void *out, *coordinates, *values, *usual;
    int wide, bytes, ascending, fine;
    long long total, count, step;
    extents of;
    (void)self;
    if (!PyArg_ParseTuple(args, "O&LO&pLO&O&LO&ip", to_address, &out, &total, to_address, &coordinates, &wide, &count, to_extents, &of,
                          to_address, &values, &step, to_address, &usual, &bytes, &ascending))
        return NULL;
    if (bytes != 4 && bytes != 8) return PyErr_Format(PyExc_ValueError, "elements have 4 or 8 bytes, not %d", bytes);
    Py_BEGIN_ALLOW_THREADS;
    if (bytes == 4)
        fine = place_4(out, total, coordinates, wide, count, &of, values, step, *(const uint32_t *)usual, ascending);
    else
        fine = place_8(out, total, coordinates, wide, count, &of, values, step, *(const uint64_t *)usual, ascending);
    Py_END_ALLOW_THREADS;
    return PyBool_FromLong(fine);
}

/* ---- the rows of many tables ---- */

typedef struct {
    const void *indices;
    int64_t count, size, width, start; /* of the indices, of the table in rows, of a row and of the flat copy in bytes */
} selection;

/* Whether the indices are without repetition and in [0, size). False also if there is no memory to find out. */
static int is_distinct(const selection *chosen, int wide) {
    int64_t before = -1;
    int ascending = 1;
    for (int64_t i = 0; i < chosen->count; i++) {
        int64_t at = index_at(chosen->indices, wide, i);
        ascending &= at > before;
        before = at;
    }
    if (ascending) return before < chosen->size;
    return distinct_or_outside(chosen->indices, wide, chosen->count, chosen->size) == -1;
}

static void put_rows(char *table, const char *copies, const void *indices, int wide, int64_t count, int64_t bytes) {
    if (bytes == 4) {
        for (int64_t i = 0; i < count; i++) ((uint32_t *)table)[index_at(indices, wide, i)] = ((const uint32_t *)copies)[i];
    } else {
        for (int64_t i = 0; i < count; i++) memcpy(table + index_at(indices, wide, i) * bytes, copies + i * bytes, (size_t)bytes);
    }
}

static void move_rows(char *flat, char *table, const selection *chosen, int wide, int back) {
    if (back)
        put_rows(table, flat + chosen->start, chosen->indices, wide, chosen->count, chosen->width);
    else
        copy_rows(flat + chosen->start, table, chosen->indices, wide, 0, chosen->count, chosen->width);
}

/* Reads the selections and the addresses of flats and tables. Returns 0 with an exception set on failure. */
static int read_selections(selection *chosen, char **addresses, PyObject *flats, PyObject *tables, PyObject *indices, PyObject *sizes) {
    Py_ssize_t copies = PyList_GET_SIZE(flats), members = PyList_GET_SIZE(indices);
    int64_t start = 0;
    if (PyList_GET_SIZE(tables) != copies || PyList_GET_SIZE(sizes) != members) goto misfit;
    for (Py_ssize_t m = 0; m < members; m++) {
        long long count, size, width;
        PyObject *numbers = PyList_GET_ITEM(sizes, m);
        if (!PyTuple_Check(numbers) || !PyArg_ParseTuple(numbers, "LLL", &count, &size, &width)) goto misfit;
        if (!tensor_data(PyList_GET_ITEM(indices, m), &chosen[m].indices)) return 0;
        chosen[m].count = count, chosen[m].size = size, chosen[m].width = width, chosen[m].start = start;
        start += count * width;
    }
    for (Py_ssize_t c = 0; c < copies; c++) {
        PyObject *of = PyList_GET_ITEM(tables, c);
        if (!PyList_Check(of) || PyList_GET_SIZE(of) != members) goto misfit;
        if (!tensor_data(PyList_GET_ITEM(flats, c), &addresses[c * (members + 1)])) return 0;
        for (Py_ssize_t m = 0; m < members; m++)
            if (!tensor_data(PyList_GET_ITEM(of, m), &addresses[c * (members + 1) + 1 + m])) return 0;
    }
    return 1;
misfit:
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "the lists do not have one entry for each table");
    return 0;
}

static PyObject *exchange(PyObject *self, PyObject *args) {
    PyObject *flats, *tables, *indices, *sizes;
    int wide, back, threads, fine = 1;
    (void)self;
    if (!PyArg_ParseTuple(args, "O!O!O!O!ppi", &PyList_Type, &flats, &PyList_Type, &tables, &PyList_Type, &indices, &PyList_Type, &sizes,
                          &wide, &back, &threads))
        return NULL;
    Py_ssize_t copies = PyList_GET_SIZE(flats), members = PyList_GET_SIZE(indices);
    selection *chosen = calloc((size_t)members + 1, sizeof *chosen);
    char **addresses = calloc((size_t)(copies * (members + 1) + 1), sizeof *addresses);
    int read = chosen != NULL && addresses != NULL && read_selections(chosen, addresses, flats, tables, indices, sizes);
    if (read) {
        Py_BEGIN_ALLOW_THREADS;
        int64_t bytes = 0;
        for (Py_ssize_t m = 0; m < members; m++) {
            if (!back) fine = fine && is_distinct(&chosen[m], wide);
            bytes += chosen[m].count * chosen[m].width;
        }
        if (fine) {
            int64_t tasks = copies * members, share = bytes * copies / 4 / WORTH_A_THREAD;
            int used = threads_for(share, threads);
#pragma omp parallel for num_threads(team_for(used)) schedule(dynamic) if (used > 1)
            for (int64_t task = 0; task < tasks; task++) {
                int64_t c = task / members, m = task % members;
                move_rows(addresses[c * (members + 1)], addresses[c * (members + 1) + 1 + m], &chosen[m], wide, back);
            }
        }
        Py_END_ALLOW_THREADS;
    } else if (!PyErr_Occurred()) {
        PyErr_NoMemory();
    }
    free(chosen);
    free(addresses);
    return read ? PyBool_FromLong(fine) : NULL;
}

/* ---- partition and stitch ---- */

static PyObject *partition(PyObject *self, PyObject *args) {
    void *out, *rows, *numbers;
    long long count, bytes, parts;
    (void)self;
    if (!PyArg_ParseTuple(args, "O&O&O&LLL", to_address, &out, to_address, &rows, to_address, &numbers, &count, &bytes, &parts)) return NULL;
    if (count < 0 || bytes < 0 || parts < 1 || parts > INT32_MAX) return PyErr_Format(PyExc_ValueError, "negative sizes");
    int64_t *ends = calloc((size_t)parts, sizeof *ends), outside = -1;
    if (ends == NULL) return PyErr_NoMemory();
    const int32_t *number = numbers;
    Py_BEGIN_ALLOW_THREADS;
    for (int64_t i = 0; i < count && outside < 0; i++) {
        if (number[i] < 0 || number[i] >= parts)
            outside = i;
        else
            ends[number[i]]++;
    }
    if (outside < 0) {
        for (int64_t k = 0, start = 0; k < parts; k++) {
            int64_t size = ends[k];
            ends[k] = start;
            start += size;
        }
        for (int64_t i = 0; i < count; i++) copy_row((char *)out + ends[number[i]]++ * bytes, (const char *)rows + i * bytes, bytes);
    }
    Py_END_ALLOW_THREADS;
    PyObject *result = outside < 0 ? PyList_New((Py_ssize_t)parts) : PyLong_FromLongLong(outside);
    for (int64_t k = 0; outside < 0 && result != NULL && k < parts; k++) {
        PyObject *size = PyLong_FromLongLong(ends[k] - (k ? ends[k - 1] : 0));
        if (size == NULL)
            Py_CLEAR(result);
        else
            PyList_SET_ITEM(result, (Py_ssize_t)k, size);
    }
    free(ends);
    return result;
}

/* ---- sequences ---- */

static PyObject *reverse(PyObject *self, PyObject *args) {
    void *out, *in, *lengths;
    int wide, steps_first, fine = 1;
    long long outer, first, middle, second, bytes;
    (void)self;
    if (!PyArg_ParseTuple(args, "O&O&O&pLLLLLp", to_address, &out, to_address, &in, to_address, &lengths, &wide, &outer, &first, &middle, &second,
                          &bytes, &steps_first))
        return NULL;
    int64_t batch = steps_first ? second : first, steps = steps_first ? first : second;
    Py_BEGIN_ALLOW_THREADS;
    for (int64_t b = 0; b < batch; b++) {
        int64_t length = index_at(lengths, wide, b);
        fine &= length >= 0 && length <= steps;
    }
    for (int64_t o = 0; fine && o < outer; o++)
        for (int64_t f = 0; f < first; f++)
            for (int64_t m = 0; m < middle; m++)
                for (int64_t s = 0; s < second; s++) {
                    int64_t length = index_at(lengths, wide, steps_first ? s : f), t = steps_first ? f : s;
                    int64_t from = t < length ? length - 1 - t : t;
                    int64_t row = ((o * first + f) * middle + m) * second + s;
                    int64_t source = steps_first ? ((o * first + from) * middle + m) * second + s : row - s + from;
                    copy_row((char *)out + row * bytes, (const char *)in + source * bytes, bytes);
                }
    Py_END_ALLOW_THREADS;
    return PyBool_FromLong(fine);
}

typedef struct {
    const int32_t *indices;
    const char *rows;
    int64_t count;
} piece;

/* Reads the addresses of indices and rows. Returns NULL with an exception set on failure; the caller frees the result. */
static piece *read_pieces(PyObject *indices, PyObject *rows, PyObject *counts) {
    Py_ssize_t total = PyList_GET_SIZE(indices);
    if (PyList_GET_SIZE(counts) != total || (rows != NULL && PyList_GET_SIZE(rows) != total)) {
        PyErr_SetString(PyExc_ValueError, "the lists have different lengths");
        return NULL;
    }
    piece *pieces = calloc((size_t)total + 1, sizeof *pieces);
    if (pieces == NULL) return (piece *)PyErr_NoMemory();
    for (Py_ssize_t k = 0; k < total; k++) {
        pieces[k].count = PyLong_AsLongLong(PyList_GET_ITEM(counts, k));
        if (PyErr_Occurred() || !tensor_data(PyList_GET_ITEM(indices, k), &pieces[k].indices) ||
            (rows != NULL && !tensor_data(PyList_GET_ITEM(rows, k), &pieces[k].rows))) {
            free(pieces);
            return NULL;
        }
    }
    return pieces;
}

static PyObject *index_bounds(PyObject *self, PyObject *args) {
    PyObject *indices, *counts;
    (void)self;
    if (!PyArg_ParseTuple(args, "O!O!", &PyList_Type, &indices, &PyList_Type, &counts)) return NULL;
    piece *pieces = read_pieces(indices, NULL, counts);
    if (pieces == NULL) return NULL;
    int32_t lowest = 0, highest = -1;
    Py_ssize_t total = PyList_GET_SIZE(indices);
    Py_BEGIN_ALLOW_THREADS;
    for (Py_ssize_t k = 0; k < total; k++)
        for (int64_t i = 0; i < pieces[k].count; i++) {
            int32_t at = pieces[k].indices[i];
            lowest = at < lowest ? at : lowest;
            highest = at > highest ? at : highest;
        }
    Py_END_ALLOW_THREADS;
    free(pieces);
    return Py_BuildValue("ii", (int)lowest, (int)highest);
}

static PyObject *stitch(PyObject *self, PyObject *args) {
    void *out;
    PyObject *indices, *rows, *counts;
    long long size, bytes;
    (void)self;
    if (!PyArg_ParseTuple(args, "O&O!O!O!LL", to_address, &out, &PyList_Type, &indices, &PyList_Type, &rows, &PyList_Type, &counts, &size, &bytes))
        return NULL;
    piece *pieces = read_pieces(indices, rows, counts);
    if (pieces == NULL) return NULL;
    char *filled = calloc((size_t)(size > 0 ? size : 1), 1);
    Py_ssize_t total = PyList_GET_SIZE(indices);
    int64_t distinct = 0, fine = filled != NULL;
    Py_BEGIN_ALLOW_THREADS;
    for (Py_ssize_t k = 0; k < total && fine; k++)
        for (int64_t i = 0; i < pieces[k].count && fine; i++) {
            int32_t at = pieces[k].indices[i];
            fine = at >= 0 && at < size;
            if (!fine) break;
            distinct += !filled[at];
            filled[at] = 1;
            copy_row((char *)out + at * bytes, pieces[k].rows + i * bytes, bytes);
        }
    for (int64_t at = 0; at < size && fine && distinct < size; at++)
        if (!filled[at]) memset((char *)out + at * bytes, 0, (size_t)bytes);
    Py_END_ALLOW_THREADS;
    int made = filled != NULL;
    free(filled);
    free(pieces);
    if (!made) return PyErr_NoMemory();
    return PyBool_FromLong((long)fine);
}

/* ---- parts of rows ---- */

static PyObject *copy_parts(PyObject *self, PyObject *args) {
    Py_buffer out, places, values, starts, lengths;
    long long bytes;
    (void)self;
    if (!PyArg_ParseTuple(args, "w*y*y*y*y*L", &out, &places, &values, &starts, &lengths, &bytes)) return NULL;
    Py_ssize_t count = lengths.len / 8;
    const int64_t *to = places.buf, *from = starts.buf, *sizes = lengths.buf;
    int fits = bytes > 0 && places.len == lengths.len && starts.len == lengths.len;
    if (fits) {
        int64_t room = out.len / bytes, given = values.len / bytes;
        Py_BEGIN_ALLOW_THREADS;
        for (Py_ssize_t i = 0; fits && i < count; i++) {
            fits = sizes[i] >= 0 && to[i] >= 0 && from[i] >= 0 && to[i] <= room && sizes[i] <= room - to[i] && from[i] <= given &&
                   sizes[i] <= given - from[i];
            if (fits) memcpy((char *)out.buf + to[i] * bytes, (const char *)values.buf + from[i] * bytes, (size_t)(sizes[i] * bytes));
        }
        Py_END_ALLOW_THREADS;
    }
    PyBuffer_Release(&out);
    PyBuffer_Release(&places);
    PyBuffer_Release(&values);
    PyBuffer_Release(&starts);
    PyBuffer_Release(&lengths);
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "copy_parts: a part is outside");
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyMethodDef METHODS[] = {
    {"unique", unique, METH_VARARGS,
     "unique(values, count, wide, places, wide_places, found, counts or None): fills the last three, returns how many are distinct."},
    {"check_distinct", check_distinct, METH_VARARGS,
     "check_distinct(indices, count, wide, size): -1 if they are, -2 if some repeat, else the position of one outside of [0, size)."},
    {"gather_batched", gather_batched, METH_VARARGS,
     "gather_batched(out, rows, indices, count, wide, run, size, bytes) -> the first index outside of its table, or -1."},
    {"gather_nd", gather_nd, METH_VARARGS,
     "gather_nd(out, rows, indices, count, wide, sizes, bytes) -> the first index with a coordinate outside of `sizes`, or -1."},
    {"gather", gather, METH_VARARGS,
     "gather(out, rows, indices, count, wide, size, bytes, threads): -1, or the position of an index outside; nothing is written then."},
    {"add", add, METH_VARARGS,
     "add(into, rows, indices, count, wide, size, width, doubles, subtract, negatives, threads): as gather; negatives may be skipped."},
    {"multiply", multiply, METH_VARARGS,
     "multiply(out, values, indices, count, wide, dense, rows, inner, width, row, doubles, threads): out[rows, width] = the matrix with\n"
     "values[i] at indices[i], whose row is indices[i][row], times dense[inner, width]. False if an index is out of range."},
    {"flatten", flatten, METH_VARARGS,
     "flatten(out, coordinates, wide, count, sizes): the place of each row of coordinates in an array of these sizes; False if one is outside."},
    {"place", place, METH_VARARGS,
     "place(out, total, coordinates, wide, count, sizes, values, step, usual, bytes, ascending): fills `out` with the usual value, and then "
     "places each value at its coordinates. False if coordinates are outside or, where they have to be, not ascending."},
    {"exchange", exchange, METH_VARARGS,
     "exchange(flats, tables, indices, sizes, wide, back, threads): copies the selected rows of each table to the flat arrays, or back. "
     "sizes has (number of indices, rows of the table, bytes of a row) for each. False if indices repeat or are out of range."},
    {"partition", partition, METH_VARARGS,
     "partition(out, rows, numbers, count, bytes, parts): copies rows to `out`, ordered by number. Returns how many have each number, or the "
     "position of a number outside of [0, parts)."},
    {"copy_parts", copy_parts, METH_VARARGS,
     "copy_parts(out, places, values, starts, lengths, bytes): copies values[starts[i] : starts[i] + lengths[i]] to out[places[i]] and what follows."},
    {"reverse", reverse, METH_VARARGS,
     "reverse(out, in, lengths, wide, outer, first, middle, second, bytes, steps_first): reverses the first elements of each sequence. Of the "
     "dimensions `first` and `second`, one has the steps of the sequences, the other the sequences. False if a length is outside."},
    {"index_bounds", index_bounds, METH_VARARGS, "index_bounds(indices, counts): the lowest index, but at most 0, and the highest, but at least -1."},
    {"stitch", stitch, METH_VARARGS,
     "stitch(out, indices, rows, counts, size, bytes): copies each row to its place; the last one wins, and places without a row become 0. "
     "False if an index is outside of [0, size)."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "rows", "Rows of large tables in one pass.", -1, METHODS, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_rows(void) { return tensors_ready() ? PyModule_Create(&MODULE) : NULL; }
