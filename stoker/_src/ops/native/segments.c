/* Segment reductions of gathered rows in one pass, and their gradients for the touched rows.
 *
 * Row r of the result combines the rows table[indices[i]] with ids[i] == r. Rows are added in order, starting from zero, and the
 * results do not depend on the number of threads. Every index and id is checked before anything is written. */
#include "tensors.h"

#include "../../base/native/teams.h"
#include "segment_rows.h"

enum { WORTH_A_THREAD = 1 << 15 }; /* elements per thread */

static PyObject *combine(PyObject *self, PyObject *args) {
    void *out, *table;
    numbers indices = {NULL, 0, 1}, ids = {NULL, 0, 1};
    long long step, count, size, width, segments;
    int how, doubles, threads;
    (void)self;
    if (!PyArg_ParseTuple(args, "O&O&O&pO&pLLLLLipi", to_address, &out, to_address, &table, to_address, &indices.at, &indices.wide,
                          to_address, &ids.at, &ids.wide, &step, &count, &size, &width, &segments, &how, &doubles, &threads))
        return NULL;
    ids.step = step;
    int fine = 0;
    int32_t *rows = malloc((size_t)(count ? count : 1) * 2 * sizeof *rows), *places = rows + count;
    if (rows == NULL) return PyErr_NoMemory();
    Py_BEGIN_ALLOW_THREADS;
    fine = narrow(rows, &indices, count, size) && narrow(places, &ids, count, segments) && ascending(places, count);
    if (fine) {
        int used = threads_for(count * width / WORTH_A_THREAD, threads);
#pragma omp parallel for num_threads(team_for(used)) if (used > 1)
        for (int part = 0; part < used; part++) {
            int64_t first = segments * part / used, last = segments * (part + 1) / used;
            if (doubles)
                combine_doubles(out, table, rows, places, count, width, first, last, how);
            else
                combine_floats(out, table, rows, places, count, width, first, last, how);
        }
    }
    Py_END_ALLOW_THREADS;
    free(rows);
    return PyBool_FromLong(fine);
}

/* ---- many at once ---- */

/* One of many reductions, or of their gradients. */
typedef struct {
    const void *table; /* or the gradient of the result */
    numbers indices, ids;
    int64_t count, size, width, segments, out_at, found_at;
    int64_t total; /* rows of the gradient, or what went wrong */
} task;

/* Reads (table, indices, wide, ids, wide, step of ids, count, size, segments). Returns 0 with an exception set on failure. */
static int task_read(task *to, PyObject *given) {
    long long step, count, size, segments;
    if (!PyArg_ParseTuple(given, "O&O&pO&pLLLL", to_address, &to->table, to_address, &to->indices.at, &to->indices.wide, to_address,
                          &to->ids.at, &to->ids.wide, &step, &count, &size, &segments))
        return 0;
    to->indices.step = 1;
    to->ids.step = step;
    to->count = count;
    to->size = size;
    to->segments = segments;
    return 1;
}

static task *tasks_read(PyObject *list, int64_t width) {
    Py_ssize_t many = PyList_GET_SIZE(list);
    task *tasks = malloc((size_t)(many ? many : 1) * sizeof *tasks);
    if (tasks == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    int64_t out_at = 0, found_at = 0;
    for (Py_ssize_t i = 0; i < many; i++) {
        if (!task_read(&tasks[i], PyList_GET_ITEM(list, i))) {
            free(tasks);
            return NULL;
        }
        tasks[i].width = width;
        tasks[i].out_at = out_at;
        tasks[i].found_at = found_at;
        out_at += tasks[i].segments;
        found_at += tasks[i].count < tasks[i].size ? tasks[i].count : tasks[i].size;
    }
    return tasks;
}

static int threads_for_all(const task *tasks, Py_ssize_t many, int threads) {
    int64_t elements = 0;
    for (Py_ssize_t i = 0; i < many; i++) elements += tasks[i].count * (tasks[i].width + 4); /* checks and narrowing count, too */
    return threads_for(elements / WORTH_A_THREAD, threads);
}

static void combine_task(task *each, void *out, int how, int doubles) {
    int32_t *rows = malloc((size_t)(each->count ? each->count : 1) * 2 * sizeof *rows), *places = rows + each->count;
    each->total = rows != NULL && narrow(rows, &each->indices, each->count, each->size) &&
                  narrow(places, &each->ids, each->count, each->segments) && ascending(places, each->count);
    if (each->total) {
        if (doubles)
            combine_doubles((double *)out + each->out_at * each->width, each->table, rows, places, each->count, each->width, 0,
                            each->segments, how);
        else
            combine_floats((float *)out + each->out_at * each->width, each->table, rows, places, each->count, each->width, 0,
                           each->segments, how);
    }
    free(rows);
}

static PyObject *combine_many(PyObject *self, PyObject *args) {
    void *out;
    PyObject *list;
    long long width;
    int how, doubles, threads, fine = 1;
    (void)self;
    if (!PyArg_ParseTuple(args, "O&O!Lipi", to_address, &out, &PyList_Type, &list, &width, &how, &doubles, &threads)) return NULL;
    Py_ssize_t many = PyList_GET_SIZE(list);
    task *tasks = tasks_read(list, width);
    if (tasks == NULL) return NULL;
    Py_BEGIN_ALLOW_THREADS;
    int used = threads_for_all(tasks, many, threads);
#pragma omp parallel for schedule(dynamic) num_threads(team_for(used)) if (used > 1)
    for (Py_ssize_t i = 0; i < many; i++) combine_task(&tasks[i], out, how, doubles);
    for (Py_ssize_t i = 0; i < many; i++) fine &= tasks[i].total != 0;
    Py_END_ALLOW_THREADS;
    free(tasks);
    return PyBool_FromLong(fine);
}

/* ---- the rows of a gradient ---- */

/* The gradient of a combination: fills `found` with the distinct indices in ascending order and `out` with their rows. Returns how many there are,
 * -1 if memory runs out, or -2 if a number is out of range. */
static int64_t spread(void *out, void *found, const void *grad, const numbers *indices, const numbers *ids, int64_t count, int64_t size,
                      int64_t width, int64_t segments, int how, int doubles, int threads) {
    int32_t *given = malloc((size_t)(count ? count : 1) * 4 * sizeof *given);
    if (given == NULL) return -1;
    int32_t *segment = given + count, *rows = segment + count, *places = rows + count;
    if (!narrow(given, indices, count, size) || !narrow(segment, ids, count, segments)) {
        free(given);
        return -2;
    }
    double *factors = how == SUM ? NULL : calloc((size_t)(segments ? segments : 1), sizeof *factors);
    int64_t total = how != SUM && factors == NULL ? -1 : distinct(given, count, size, rows, places);
    if (total >= 0) {
        for (int64_t p = 0; p < total; p++) {
            if (indices->wide)
                ((int64_t *)found)[p] = rows[p];
            else
                ((int32_t *)found)[p] = rows[p];
        }
        if (factors != NULL) {
            for (int64_t i = 0; i < count; i++) factors[segment[i]] += 1;
            for (int64_t s = 0; s < segments; s++) factors[s] = factor(how, (int64_t)factors[s]);
        }
        memset(out, 0, (size_t)(total * width) * (doubles ? sizeof(double) : sizeof(float)));
        int used = threads_for(count * width / WORTH_A_THREAD, threads);
#pragma omp parallel for num_threads(team_for(used)) if (used > 1)
        for (int part = 0; part < used; part++) {
            if (doubles)
                spread_doubles(out, grad, places, segment, factors, count, width, part, used);
            else
                spread_floats(out, grad, places, segment, factors, count, width, part, used);
        }
    }
    free(given);
    free(factors);
    return total;
}

static PyObject *combine_grad(PyObject *self, PyObject *args) {
    void *out, *found, *grad;
    numbers indices = {NULL, 0, 1}, ids = {NULL, 0, 1};
    long long step, count, size, width, segments;
    int how, doubles, threads;
    (void)self;
    if (!PyArg_ParseTuple(args, "O&O&O&O&pO&pLLLLLipi", to_address, &out, to_address, &found, to_address, &grad, to_address, &indices.at,
                          &indices.wide, to_address, &ids.at, &ids.wide, &step, &count, &size, &width, &segments, &how, &doubles,
                          &threads))
        return NULL;
    ids.step = step;
    int64_t total;
    Py_BEGIN_ALLOW_THREADS;
    total = spread(out, found, grad, &indices, &ids, count, size, width, segments, how, doubles, threads);
    Py_END_ALLOW_THREADS;
    if (total == -1) return PyErr_NoMemory();
    return PyLong_FromLongLong(total);
}

static PyObject *combine_grad_many(PyObject *self, PyObject *args) {
    void *out, *found;
    PyObject *list;
    long long width;
    int how, doubles, threads;
    (void)self;
    if (!PyArg_ParseTuple(args, "O&O&O!Lipi", to_address, &out, to_address, &found, &PyList_Type, &list, &width, &how, &doubles, &threads))
        return NULL;
    Py_ssize_t many = PyList_GET_SIZE(list);
    task *tasks = tasks_read(list, width);
    if (tasks == NULL) return NULL;
    Py_BEGIN_ALLOW_THREADS;
    int used = threads_for_all(tasks, many, threads);
#pragma omp parallel for schedule(dynamic) num_threads(team_for(used)) if (used > 1)
    for (Py_ssize_t i = 0; i < many; i++) {
        task *each = &tasks[i];
        each->total = spread((char *)out + each->found_at * width * (int64_t)(doubles ? sizeof(double) : sizeof(float)),
                             (char *)found + each->found_at * (int64_t)(each->indices.wide ? sizeof(int64_t) : sizeof(int32_t)), each->table,
                             &each->indices, &each->ids, each->count, each->size, width, each->segments, how, doubles, 1);
    }
    Py_END_ALLOW_THREADS;
    PyObject *totals = PyList_New(many);
    for (Py_ssize_t i = 0; totals != NULL && i < many; i++) {
        PyObject *total = PyLong_FromLongLong(tasks[i].total);
        if (total == NULL)
            Py_CLEAR(totals);
        else
            PyList_SET_ITEM(totals, i, total);
    }
    free(tasks);
    return totals;
}

static PyMethodDef METHODS[] = {
    {"combine_many", combine_many, METH_VARARGS,
     "combine_many(out, tasks, width, how, doubles, threads): `combine` for each (table, indices, wide, ids, wide, step of ids, count, size, "
     "segments). The results follow each other in `out`. False if one of them cannot be computed."},
    {"combine_grad_many", combine_grad_many, METH_VARARGS,
     "combine_grad_many(out, found, tasks, width, how, doubles, threads): `combine_grad` for each task as in `combine_many`, with the gradient "
     "instead of the table. Each has room for min(count, size) rows. The number of distinct indices of each, or a negative number."},
    {"combine", combine, METH_VARARGS,
     "combine(out, table, indices, wide, ids, wide, step of ids, count, size, width, segments, how, doubles, threads): False, with nothing "
     "written, if an index or id is out of range or the ids are not ascending."},
    {"combine_grad", combine_grad, METH_VARARGS,
     "combine_grad(out, found, grad, indices, wide, ids, wide, step of ids, count, size, width, segments, how, doubles, threads): the "
     "number of distinct indices, or -2, with nothing written, if an index or id is out of range."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "segments", "Segment reductions of gathered rows.", -1, METHODS, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_segments(void) { return tensors_ready() ? PyModule_Create(&MODULE) : NULL; }
