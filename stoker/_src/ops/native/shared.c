/* Memory that processes share: numbers in it that say how far a process is, and sums of tensors that lie in it.
 *
 * A number has one writer. It grows by one at a time and may wrap around. Readers wait for it in the kernel (a futex), after a moment of polling.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../../base/native/teams.h"
#include "tensors.h"

static const int POLLS = 1000;          /* about 40 microseconds, less than it takes to wake a thread */
static const int64_t BLOCK = 2048;      /* elements that stay in the first cache while terms are added */
static const int64_t SHARE = 64 * 2048; /* elements that are worth a thread */

static PyObject *publish(PyObject *self, PyObject *args) {
    unsigned long long address;
    unsigned int value;
    (void)self;
    if (!PyArg_ParseTuple(args, "KI", &address, &value)) return NULL;
    uint32_t *number = (uint32_t *)(uintptr_t)address;
    __atomic_store_n(number, value, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, number, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
    Py_RETURN_NONE;
}

static int reached(const uint32_t *number, uint32_t least) { return (int32_t)(__atomic_load_n(number, __ATOMIC_SEQ_CST) - least) >= 0; }

static PyObject *await(PyObject *self, PyObject *args) {
    unsigned long long address;
    unsigned int least;
    int milliseconds, done;
    (void)self;
    if (!PyArg_ParseTuple(args, "KIi", &address, &least, &milliseconds)) return NULL;
    const uint32_t *number = (const uint32_t *)(uintptr_t)address;
    done = reached(number, least);
    if (!done && milliseconds > 0) {
        Py_BEGIN_ALLOW_THREADS;
        for (int i = 0; i < POLLS && !(done = reached(number, least)); i++) {
#if defined(__x86_64__)
            __builtin_ia32_pause();
#endif
        }
        struct timespec now, end, left;
        clock_gettime(CLOCK_MONOTONIC, &end);
        end.tv_sec += milliseconds / 1000;
        end.tv_nsec += milliseconds % 1000 * 1000000L;
        while (!done) {
            uint32_t seen = __atomic_load_n(number, __ATOMIC_SEQ_CST);
            if ((done = (int32_t)(seen - least) >= 0)) break;
            clock_gettime(CLOCK_MONOTONIC, &now);
            int64_t nanoseconds = (end.tv_sec - now.tv_sec) * 1000000000LL + end.tv_nsec - now.tv_nsec;
            if (nanoseconds <= 0) break;
            left.tv_sec = nanoseconds / 1000000000LL;
            left.tv_nsec = nanoseconds % 1000000000LL;
            if (syscall(SYS_futex, number, FUTEX_WAIT, seen, &left, NULL, 0) && errno == EINTR) break; /* the caller looks for signals */
        }
        Py_END_ALLOW_THREADS;
    }
    return PyBool_FromLong(done);
}

/* Adds the terms in their order, whatever the number of threads. */
#define DEFINE_ADD(type)                                                                                          \
    static void add_##type(void *result, void *const *terms, int64_t count, int64_t size, int threads) {          \
        type *out = result;                                                                                       \
        _Pragma("omp parallel for num_threads(threads)") for (int64_t at = 0; at < size; at += BLOCK) {           \
            int64_t end = at + BLOCK < size ? at + BLOCK : size;                                                  \
            const type *a = terms[0], *b = terms[1];                                                              \
            for (int64_t i = at; i < end; i++) out[i] = a[i] + b[i];                                              \
            for (int64_t k = 2; k < count; k++) {                                                                 \
                const type *term = terms[k];                                                                      \
                for (int64_t i = at; i < end; i++) out[i] += term[i];                                             \
            }                                                                                                     \
        }                                                                                                         \
    }

DEFINE_ADD(float)
DEFINE_ADD(double)
DEFINE_ADD(uint32_t) /* sums of integers wrap around */
DEFINE_ADD(uint64_t)

static void (*const ADD[])(void *, void *const *, int64_t, int64_t, int) = {add_float, add_double, add_uint32_t, add_uint64_t};

enum { MOST_TERMS = 64 };

static PyObject *add(PyObject *self, PyObject *args) {
    void *out, *terms[MOST_TERMS];
    PyObject *addresses;
    long long size;
    int kind, threads;
    (void)self;
    if (!PyArg_ParseTuple(args, "O&O!Lii", to_address, &out, &PyTuple_Type, &addresses, &size, &kind, &threads)) return NULL;
    Py_ssize_t count = PyTuple_GET_SIZE(addresses);
    if (count < 2 || count > MOST_TERMS || kind < 0 || kind >= (int)(sizeof(ADD) / sizeof(*ADD)))
        return PyErr_Format(PyExc_ValueError, "add: %zd terms of kind %d", count, kind);
    for (Py_ssize_t k = 0; k < count; k++) terms[k] = PyLong_AsVoidPtr(PyTuple_GET_ITEM(addresses, k));
    if (PyErr_Occurred()) return NULL;
    Py_BEGIN_ALLOW_THREADS;
    ADD[kind](out, terms, count, size, team_for(threads_for(size / SHARE, threads)));
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

static PyMethodDef METHODS[] = {
    {"publish", publish, METH_VARARGS, "publish(address, value): sets a number, and wakes who waits for it."},
    {"await_number", await, METH_VARARGS,
     "await_number(address, least, milliseconds): whether a number has reached a value within that time. A signal ends the waiting early."},
    {"add", add, METH_VARARGS,
     "add(out, addresses, size, kind, threads): adds tensors at the addresses, in this order. Kinds: float32, float64, int32, int64."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "shared", "Memory that processes share.", -1, METHODS, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_shared(void) { return tensors_ready() ? PyModule_Create(&MODULE) : NULL; }
