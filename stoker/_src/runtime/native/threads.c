/* Chooses by measurement how many threads share the work of a piece of code that runs again and again.
 *
 * A Tuner belongs to one step of a program. `begin` and `end` surround each run of it. From time to time the tuner runs the step with
 * other numbers of threads for some milliseconds, and then keeps the smallest number whose mean time is about the lowest. Threads cost time if there
 * is little work to share, and much more if another process keeps one of them from running: the others wait for it at the end of
 * each op. Both vary by program, machine and hour, so they are measured and not predicted. See runtime/plan/threads.py.
 *
 * A run that may wait, for a queue or for Python code, calls `pause` and `resume` around each wait. The time in between does not count, and
 * whatever runs meanwhile has the number of threads that the caller allows.
 *
 * The number of threads is a setting of the calling thread, in OpenMP as in MKL. All functions are called with the GIL held.
 *
 * During a run, results that would be subnormal are zero, as in TensorFlow: Intel's processors take more than a hundred times as long for
 * them. What Python code computes while the run waits for it is as exact as outside of runs.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <time.h>
#ifdef _OPENMP
#include <omp.h>
#else
static int omp_get_max_threads(void) { return 1; }
static void omp_set_num_threads(int n) { (void)n; }
#endif

#ifdef __SSE__
#include <xmmintrin.h>
#endif

#include "waiting.h"

enum { MOST = 12 };                           /* most numbers of threads to choose from: 1, 2, 4, ... */
static const int WARM_UP = 2;                 /* runs before anything is measured: they compile and allocate */
static const int ROUNDS = 2;                  /* blocks of each number of threads in one comparison */
static const int64_t BLOCK = 6000000;         /* ns of one block; it has at least FEWEST runs, or one run that is longer than this */
static const int FEWEST = 4;
static const int64_t FIRST_HOLD = 300000000;  /* ns until the next comparison; doubles while the choice stays the same */
static const int64_t LONGEST_HOLD = 5000000000;
static const int64_t WINDOW = 60000000;       /* ns over which a choice is observed */
static const double WORSE = 1.5;              /* slowdown of a window that brings the next comparison forward */
static const double BETTER = 0.95;            /* part of the time that more threads must save */
static const double HOPELESS = 1.4;           /* how many times slower than another a number is not tried again */
static const double FAR_BEHIND = 2.5;         /* how many times slower after FEWEST runs a block ends at once */
static const int64_t SHARE = 30;              /* a comparison may cost one part in SHARE of the time until the next */
static const int64_t TINY = 15000;            /* ns below which a step is not worth measuring */

typedef int (*mkl_setter)(int);
static mkl_setter set_mkl = NULL; /* mkl_set_num_threads_local, if torch was built with MKL */

/* The run of this thread, and the runs that wait for it: while a run waits, Python code may start others. */
enum { LEVELS = 16 };
typedef struct {
    int depth, outer, chosen;  /* runs inside of each other; the numbers of threads that the caller allows and that the run has */
    int64_t waited, paused_at; /* ns */
    int was_flushing, flushes; /* whether subnormal results were zero before the run; whether they are in the run */
} run;
static __thread run runs[LEVELS];
static __thread int level = 0, beyond = 0; /* beyond: waits that found no level */

typedef struct {
    PyObject_HEAD
    int base;              /* the number of threads that the caller allows */
    int counts[MOST], known; /* the numbers to choose from, in ascending order */
    int current;           /* index of the number in use */
    int64_t runs;
    int comparing;         /* whether a comparison is under way */
    int tried[MOST], trials, at, round; /* indices to compare, and where the comparison is */
    int64_t spent[MOST], times[MOST];   /* nanoseconds and runs of each number in the comparison */
    int64_t block_spent, block_runs;
    int64_t hold, until, window_spent, window_runs;
    double reference;      /* mean time of the chosen number when it was chosen */
    int tiny, set_aside;   /* set_aside: the next run is not counted, since the number of threads has just changed */
} Tuner;

/* In a forked child, runs that began in the parent go on with one thread: the threads of the parent do not exist. */
#if defined(_OPENMP) && defined(__linux__)
static void keep_one_thread(void) {
    for (int i = 0; i < LEVELS; i++) runs[i].outer = runs[i].chosen = 1;
}
#endif

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

#ifdef __SSE__
/* Lets subnormal results of this thread be zero, or not. Returns whether they were. Subnormal operands are taken as they are. */
static int flush(int wanted) {
    unsigned found = _mm_getcsr();
    if (wanted)
        _mm_setcsr(found | _MM_FLUSH_ZERO_ON);
    else
        _mm_setcsr(found & ~(unsigned)_MM_FLUSH_ZERO_ON);
    return (found & _MM_FLUSH_ZERO_ON) != 0;
}
#else
static int flush(int wanted) {
    (void)wanted;
    return 0;
}
#endif

/* The same for a team of OpenMP's threads. They take the setting over from the thread that starts them, which may do so between two runs, so each
 * run of several threads sets it anew. */
static void flush_team(int n) {
    (void)n;
#ifdef _OPENMP
    if (n > 1) {
#pragma omp parallel num_threads(n)
        flush(1);
    }
#endif
}

static void use_threads(int n) {
    omp_set_num_threads(n);
    if (set_mkl != NULL) set_mkl(n);
}

static void compare(Tuner *self, int all) {
    self->trials = 0;
    for (int i = 0; i < self->known; i++) { /* one thread first: it cannot wait for another */
        int near = i == self->current || i == self->current - 1 || i == self->current + 1;
        if (all || near || i == 0) self->tried[self->trials++] = i;
        self->spent[i] = self->times[i] = 0;
    }
    self->comparing = 1;
    self->at = self->round = 0;
    self->block_spent = self->block_runs = 0;
    self->set_aside = 1;
}

static void restart(Tuner *self, int base) {
    self->base = base;
    self->known = 0;
    for (int n = 1; n < base && self->known < MOST - 1; n *= 2) self->counts[self->known++] = n;
    self->counts[self->known++] = base;
    self->current = self->known - 1;
    self->hold = FIRST_HOLD;
    self->tiny = 0;
    compare(self, 1);
}

static double mean_of(const Tuner *self, int i) { return (double)self->spent[i] / (double)(self->times[i] ? self->times[i] : 1); }

/* Whether a number of threads has already cost so many times what another costs that it is not worth trying in this comparison. */
static int is_hopeless(const Tuner *self, int i, double times) {
    if (!self->times[i]) return 0;
    for (int t = 0; t < self->trials; t++) {
        int j = self->tried[t];
        if (self->times[j] && mean_of(self, i) > times * mean_of(self, j)) return 1;
    }
    return 0;
}

/* Ends a comparison: chooses, and says when to compare again. */
static void choose(Tuner *self, int64_t time) {
    double best = mean_of(self, self->current);
    for (int t = 0; t < self->trials; t++)
        if (self->times[self->tried[t]] && mean_of(self, self->tried[t]) < best) best = mean_of(self, self->tried[t]);
    /* The fewest threads that are about as fast as any: what more threads gain beyond that is noise, what they cost others is not. */
    int chosen = self->current;
    for (int t = self->trials - 1; t >= 0; t--)
        if (self->times[self->tried[t]] && mean_of(self, self->tried[t]) * BETTER <= best) chosen = self->tried[t];
    int64_t lost = 0; /* what the comparison cost */
    self->reference = mean_of(self, chosen);
    for (int t = 0; t < self->trials; t++) {
        int i = self->tried[t];
        double more = (mean_of(self, i) - self->reference) * (double)self->times[i];
        if (more > 0) lost += (int64_t)more;
    }
    self->tiny = self->reference < TINY;
    self->hold = chosen == self->current ? self->hold * 2 : FIRST_HOLD;
    if (self->hold > LONGEST_HOLD) self->hold = LONGEST_HOLD;
    self->current = chosen;
    self->comparing = 0;
    self->until = time + (self->hold > lost * SHARE ? self->hold : lost * SHARE);
    self->window_spent = self->window_runs = 0;
}

static void measured(Tuner *self, int64_t spent, int64_t time) {
    if (!self->comparing) {
        self->window_spent += spent;
        self->window_runs++;
        if (time >= self->until) {
            compare(self, 0);
        } else if (self->window_spent >= WINDOW) {
            double mean = (double)self->window_spent / (double)self->window_runs;
            if (self->window_runs >= 2 && mean > self->reference * WORSE) {
                self->reference = mean; /* one early comparison for one change */
                compare(self, 0);
            }
            self->window_spent = self->window_runs = 0;
        }
        return;
    }
    int i = self->tried[self->at];
    if (self->set_aside && spent < BLOCK) {
        self->set_aside = 0;
        return;
    }
    self->set_aside = 0;
    self->spent[i] += spent;
    self->times[i]++;
    self->block_spent += spent;
    self->block_runs++;
    int is_over = self->block_spent >= BLOCK && (self->block_runs >= FEWEST || self->block_spent >= 2 * BLOCK);
    if (!is_over && (self->block_runs < FEWEST || !is_hopeless(self, i, FAR_BEHIND))) return;
    self->block_spent = self->block_runs = 0;
    self->set_aside = 1;
    do {
        if (++self->at == self->trials) {
            self->at = 0;
            if (++self->round == ROUNDS) {
                choose(self, time);
                return;
            }
        }
    } while (is_hopeless(self, self->tried[self->at], HOPELESS));
}

static PyObject *begin(PyObject *object, PyObject *unused) {
    Tuner *self = (Tuner *)object;
    (void)unused;
    run *mine = &runs[level];
    if (mine->depth++) return PyLong_FromLong(0); /* inside another run, which has chosen */
    int base = omp_get_max_threads();
    mine->was_flushing = flush(1);
    mine->outer = mine->chosen = base;
    mine->waited = 0;
    if (base == 1 || self->runs++ < WARM_UP) {
        flush_team(base);
        return PyLong_FromLong(0);
    }
    if (base != self->base) restart(self, base);
    int wanted = self->counts[self->comparing ? self->tried[self->at] : self->current];
    if (wanted != base) use_threads(mine->chosen = wanted);
    flush_team(wanted);
    int64_t time = now();
    look(time);
    return PyLong_FromLongLong(time);
}

static PyObject *end(PyObject *object, PyObject *began) {
    Tuner *self = (Tuner *)object;
    run *mine = &runs[level];
    if (mine->depth > 0 && --mine->depth == 0) {
        long long start = PyLong_AsLongLong(began);
        if (start == -1 && PyErr_Occurred()) return NULL;
        if (omp_get_max_threads() != mine->outer) use_threads(mine->outer);
        flush(mine->was_flushing);
        if (start) {
            int64_t time = now(), spent = time - start - mine->waited;
            measured(self, spent > 0 ? spent : 0, time);
        }
    }
    Py_RETURN_NONE;
}

static PyObject *pause_run(PyObject *m, PyObject *unused) {
    (void)m;
    (void)unused;
    run *mine = &runs[level];
    if (level + 1 == LEVELS) {
        beyond++;
        Py_RETURN_NONE;
    }
    if (mine->depth && mine->chosen != mine->outer) use_threads(mine->outer);
    mine->paused_at = now();
    mine->flushes = flush(0);
    runs[++level] = (run){0};
    Py_RETURN_NONE;
}

static PyObject *resume_run(PyObject *m, PyObject *unused) {
    (void)m;
    (void)unused;
    if (beyond) {
        beyond--;
    } else if (level) {
        run *mine = &runs[--level];
        mine->waited += now() - mine->paused_at;
        flush(mine->flushes);
        if (mine->depth && mine->chosen != mine->outer) use_threads(mine->chosen);
        if (mine->flushes) flush_team(mine->chosen);
    }
    Py_RETURN_NONE;
}

static PyObject *get_threads(PyObject *object, void *unused) {
    Tuner *self = (Tuner *)object;
    (void)unused;
    if (!self->known || (self->comparing && !self->reference)) Py_RETURN_NONE;
    return PyLong_FromLong(self->counts[self->current]);
}

static PyObject *get_tiny(PyObject *object, void *unused) {
    (void)unused;
    return PyBool_FromLong(((Tuner *)object)->tiny);
}

static PyObject *get_comparing(PyObject *object, void *unused) {
    (void)unused;
    return PyBool_FromLong(((Tuner *)object)->comparing);
}

static PyObject *tuner_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    static char *names[] = {NULL};
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "", names)) return NULL;
    return type->tp_alloc(type, 0);
}

static PyMethodDef methods[] = {
    {"begin", begin, METH_NOARGS, "Sets the number of threads for one run. Returns what `end` must be given."},
    {"end", end, METH_O, "Ends a run: restores the number of threads and learns from the time."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef attributes[] = {
    {"threads", get_threads, NULL, "The number of threads in use; None before the first comparison has ended.", NULL},
    {"comparing", get_comparing, NULL, "Whether other numbers of threads are being tried.", NULL},
    {"tiny", get_tiny, NULL, "Whether a run is too short for threads to matter.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyTypeObject TunerType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "stoker._src.runtime.native.threads.Tuner",
    .tp_doc = "Finds the number of threads with which repeated runs take the least time.",
    .tp_basicsize = sizeof(Tuner),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = tuner_new,
    .tp_methods = methods,
    .tp_getset = attributes,
};

static PyObject *set_setter(PyObject *m, PyObject *address) {
    (void)m;
    void *pointer = PyLong_AsVoidPtr(address);
    if (PyErr_Occurred()) return NULL;
    set_mkl = (mkl_setter)pointer;
    Py_RETURN_NONE;
}

static PyObject *begin_small(PyObject *m, PyObject *unused) {
    (void)m;
    (void)unused;
    return PyBool_FromLong(flush(1));
}

static PyObject *begin_fixed(PyObject *m, PyObject *unused) {
    (void)m;
    (void)unused;
    int was = flush(1);
    flush_team(omp_get_max_threads());
    return PyBool_FromLong(was);
}

static PyObject *end_untuned(PyObject *m, PyObject *was) {
    (void)m;
    flush(was == Py_True);
    Py_RETURN_NONE;
}

static PyObject *set_polling(PyObject *m, PyObject *wanted) {
    (void)m;
    int is_true = PyObject_IsTrue(wanted);
    return is_true < 0 ? NULL : PyBool_FromLong(poll_long(is_true));
}

static PyMethodDef functions[] = {
    {"begin_small", begin_small, METH_NOARGS, "Before a run that uses only this thread. Returns what `end_untuned` takes."},
    {"begin_fixed", begin_fixed, METH_NOARGS, "Before a run that may use all threads. Returns what `end_untuned` takes."},
    {"end_untuned", end_untuned, METH_O, "After a run without a tuner."},
    {"pause", pause_run, METH_NOARGS, "Before a wait of a run of this thread."},
    {"resume", resume_run, METH_NOARGS, "After the wait. There is one call for each of `pause`, also if waiting has failed."},
    {"set_polling", set_polling, METH_O, "Lets threads without work poll for long (True) or sleep soon. Returns whether they poll."},
    {"set_setter", set_setter, METH_O, "Takes the address of MKL's mkl_set_num_threads_local."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "threads", "The number of threads of repeated runs, by measurement.", -1, functions, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_threads(void) {
    if (PyType_Ready(&TunerType) < 0) return NULL;
#if defined(_OPENMP) && defined(__linux__)
    if (pthread_atfork(NULL, NULL, keep_one_thread)) return PyErr_NoMemory();
#endif
    PyObject *m = PyModule_Create(&module);
    if (m != NULL && PyModule_AddObjectRef(m, "Tuner", (PyObject *)&TunerType) < 0) Py_CLEAR(m);
    return m;
}
