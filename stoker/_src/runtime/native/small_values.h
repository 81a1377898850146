/* The values of small ops: tensors, and results that are not tensors yet.
 *
 * A result that only later small ops take has a place in the memory of the call; it becomes a tensor if something else takes it. */
#ifndef STOKER_SMALL_VALUES_H
#define STOKER_SMALL_VALUES_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { F32, F64, I32, I64, BOOL, KINDS };
enum { MOST_RANK = 8, MOST_BYTES = 1 << 19, SMALL_BYTES = 1 << 14, CHUNK_BYTES = 1 << 16, MOST_WORK = 1 << 17, LONG_WORK = 1 << 13 };
enum { EMPTY, UNSEEN, SEEN, OTHER };      /* what is known of a value: nothing, that there is an object, its elements, that it is no such tensor */
enum { FAILED = -1, REFUSED = 0, DONE = 1 }; /* how an op ended: with an exception, without a result, with its results */

static const int64_t kind_bytes[KINDS] = {4, 8, 4, 8, 1};

typedef struct {
    PyObject *object; /* the tensor, or NULL if there is none yet */
    PyObject *holder; /* the tensor whose memory this value shares, or NULL */
    char *data;
    int64_t dims[MOST_RANK], count;
    int rank, kind, state;
} Value;

/* One op. Its arguments are ranges of `inputs`: (first, how many, whether they are the numbers of one vector). */
typedef struct {
    int op, arguments, outputs, numbers, freed;
    const int64_t *argument, *inputs, *output, *number, *free;
    int64_t given; /* inputs in all */
} Entry;

typedef struct chunk {
    struct chunk *next;
} Chunk;

typedef struct {
    PyObject *tensor_type, *empty, *names; /* torch.Tensor, torch.empty, ("dtype",) */
    PyObject *dtypes[KINDS];
} Torch;

typedef struct {
    const Torch *torch;
    const char *wanted; /* of each value: whether it leaves as a tensor */
    const char *kinds;  /* of each value: the type of its elements; KINDS for other types */
    Value *values;
    Chunk *chunks;
    char *room;
    int64_t left;
} Call;

static PyObject *str_shape, *str_dtype, *str_is_contiguous, *str_contiguous, *str_data;

static char nothing[16]; /* what an empty value points to */

/* Memory until the end of the call; NULL with an exception set if there is none. */
static char *room_for(Call *c, int64_t bytes) {
    bytes = bytes > 0 ? (bytes + 15) / 16 * 16 : 16;
    if (bytes > c->left) {
        int64_t size = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;
        Chunk *made = PyMem_RawMalloc((size_t)size + 16);
        if (made == NULL) {
            PyErr_NoMemory();
            return NULL;
        }
        made->next = c->chunks;
        c->chunks = made;
        c->room = (char *)made + 16;
        c->left = size;
    }
    char *room = c->room;
    c->room += bytes;
    c->left -= bytes;
    return room;
}

static void empty_value(Value *v) {
    Py_CLEAR(v->object);
    Py_CLEAR(v->holder);
    v->state = EMPTY;
}

static int to_pointer(PyObject *tensor, char **data) {
    PyObject *number = PyObject_CallMethodNoArgs(tensor, str_data);
    if (number == NULL) return 0;
    *data = PyLong_AsVoidPtr(number);
    Py_DECREF(number);
    if (*data == NULL) *data = nothing;
    return !PyErr_Occurred();
}

/* Looks at an object. Returns 0 with an exception set on failure. */
static int look(Call *c, Value *v) {
    v->state = OTHER;
    if (!Py_IS_TYPE(v->object, (PyTypeObject *)c->torch->tensor_type)) return 1;
    PyObject *dtype = PyObject_GetAttr(v->object, str_dtype);
    if (dtype == NULL) return 0;
    int kind = 0;
    while (kind < KINDS && dtype != c->torch->dtypes[kind]) kind++;
    Py_DECREF(dtype);
    if (kind == KINDS || kind != c->kinds[v - c->values]) return 1;
    PyObject *contiguous = PyObject_CallMethodNoArgs(v->object, str_is_contiguous);
    if (contiguous == NULL) return 0;
    int is_contiguous = contiguous == Py_True;
    Py_DECREF(contiguous);
    if (!is_contiguous) {
        v->holder = PyObject_CallMethodNoArgs(v->object, str_contiguous);
        if (v->holder == NULL) return 0;
    }
    PyObject *shape = PyObject_GetAttr(v->object, str_shape);
    if (shape == NULL) return 0;
    Py_ssize_t rank = PyTuple_Check(shape) ? PyTuple_GET_SIZE(shape) : MOST_RANK + 1;
    int64_t count = 1;
    for (Py_ssize_t i = 0; i < rank && rank <= MOST_RANK; i++) count *= v->dims[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(shape, i));
    Py_DECREF(shape);
    if (PyErr_Occurred()) return 0;
    if (rank > MOST_RANK) return 1;
    if (!to_pointer(is_contiguous ? v->object : v->holder, &v->data)) return 0;
    v->rank = (int)rank;
    v->kind = kind;
    v->count = count;
    v->state = SEEN;
    return 1;
}

/* An input of an op; NULL if it is no tensor that small ops take, or with an exception set. */
static Value *input(Call *c, const Entry *e, int argument, int64_t k) {
    const int64_t *range = e->argument + 3 * argument;
    if (argument >= e->arguments || k >= range[1]) return NULL;
    Value *v = &c->values[e->inputs[range[0] + k]];
    if (v->state == UNSEEN && !look(c, v)) return NULL;
    return v->state == SEEN ? v : NULL;
}

static int64_t inputs_of(const Entry *e, int argument) { return e->argument[3 * argument + 1]; }

/* What an op without a result returns. */
static int refused(void) { return PyErr_Occurred() ? FAILED : REFUSED; }

static PyObject *new_tensor(Call *c, int kind, int rank, const int64_t *dims) {
    PyObject *sizes = PyTuple_New(rank);
    if (sizes == NULL) return NULL;
    for (int i = 0; i < rank; i++) {
        PyObject *size = PyLong_FromLongLong(dims[i]);
        if (size == NULL) {
            Py_DECREF(sizes);
            return NULL;
        }
        PyTuple_SET_ITEM(sizes, i, size);
    }
    PyObject *given[] = {sizes, c->torch->dtypes[kind]};
    PyObject *made = PyObject_Vectorcall(c->torch->empty, given, 1, c->torch->names);
    Py_DECREF(sizes);
    return made;
}

/* The product of sizes; -1 if it is too large, or one of them negative. */
static int64_t product(const int64_t *dims, int rank) {
    int64_t count = 1;
    for (int i = 0; i < rank; i++)
        if (dims[i] < 0 || __builtin_mul_overflow(count, dims[i], &count)) return -1;
    return count;
}

/* Makes output k of an op, with any elements. NULL if it is too large for small ops, or with an exception set. */
static Value *make(Call *c, const Entry *e, int k, int rank, const int64_t *dims) {
    int64_t count = rank > MOST_RANK || k >= e->outputs ? -1 : product(dims, rank);
    if (count < 0) return NULL;
    int64_t at = e->output[k];
    int kind = c->kinds[at];
    if (kind == KINDS || count > MOST_BYTES / kind_bytes[kind]) return NULL;
    int64_t bytes = count * kind_bytes[kind];
    Value *v = &c->values[at];
    if (c->wanted[at] || bytes > SMALL_BYTES) {
        v->object = new_tensor(c, kind, rank, dims);
        if (v->object == NULL || !to_pointer(v->object, &v->data)) return NULL;
    } else if ((v->data = room_for(c, bytes)) == NULL)
        return NULL;
    if (rank) memmove(v->dims, dims, (size_t)rank * sizeof *dims);
    v->rank = rank;
    v->kind = kind;
    v->count = count;
    v->state = SEEN;
    return v;
}

/* Makes output 0 share the memory of a value, with another shape. A value that leaves as a tensor has memory of its own. */
static int share(Call *c, const Entry *e, const Value *from, int rank, const int64_t *dims) {
    if (e->outputs != 1 || c->kinds[e->output[0]] != from->kind || rank > MOST_RANK || product(dims, rank) != from->count) return REFUSED;
    int64_t at = e->output[0];
    if (c->wanted[at]) {
        Value *made = make(c, e, 0, rank, dims);
        if (made == NULL) return refused();
        memcpy(made->data, from->data, (size_t)(from->count * kind_bytes[from->kind]));
        return DONE;
    }
    Value *v = &c->values[at];
    v->holder = Py_XNewRef(from->holder != NULL ? from->holder : from->object);
    v->data = from->data;
    if (rank) memmove(v->dims, dims, (size_t)rank * sizeof *dims);
    v->rank = rank;
    v->kind = from->kind;
    v->count = from->count;
    v->state = SEEN;
    return DONE;
}

/* The value as an object (borrowed); NULL with an exception set on failure. */
static PyObject *as_object(Call *c, Value *v) {
    if (v->object != NULL) return v->object;
    if (v->state != SEEN) {
        PyErr_SetString(PyExc_SystemError, "a small op takes a value that was not computed");
        return NULL;
    }
    char *data;
    PyObject *made = new_tensor(c, v->kind, v->rank, v->dims);
    if (made == NULL || !to_pointer(made, &data)) {
        Py_XDECREF(made);
        return NULL;
    }
    memcpy(data, v->data, (size_t)(v->count * kind_bytes[v->kind]));
    Py_CLEAR(v->holder);
    v->data = data;
    return v->object = made;
}

static int64_t integer_at(const Value *v, int64_t i) {
    return v->kind == I64 ? ((const int64_t *)v->data)[i] : ((const int32_t *)v->data)[i];
}

static int of_integers(const Value *v) { return v->kind == I32 || v->kind == I64; }

/* Reads the integers of an argument: a vector, or a scalar if there may be only one. Returns how many there are, or -1. */
static int numbers_of(Call *c, const Entry *e, int argument, int64_t *to, int most) {
    int64_t count = inputs_of(e, argument);
    if (e->argument[3 * argument + 2]) {
        if (count > most) return -1;
        for (int64_t i = 0; i < count; i++) {
            Value *v = input(c, e, argument, i);
            if (v == NULL || !of_integers(v) || v->count != 1) return -1;
            to[i] = integer_at(v, 0);
        }
        return (int)count;
    }
    Value *v = input(c, e, argument, 0);
    if (v == NULL || !of_integers(v) || v->rank != (most > 1) || v->count > most) return -1;
    for (int64_t i = 0; i < v->count; i++) to[i] = integer_at(v, i);
    return (int)v->count;
}

static void row_major(int rank, const int64_t *dims, int64_t *steps) {
    int64_t step = 1;
    for (int i = rank - 1; i >= 0; i--) {
        steps[i] = step;
        step *= dims[i];
    }
}

/* Other threads may run Python while an op has much to do. */
static PyThreadState *let_others(int64_t work) { return work > LONG_WORK ? PyEval_SaveThread() : NULL; }

static void back(PyThreadState *saved) {
    if (saved != NULL) PyEval_RestoreThread(saved);
}

#endif
