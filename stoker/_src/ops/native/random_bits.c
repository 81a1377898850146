/* Fast random numbers: the C version of stoker/_src/ops/random/bits. The Python version gives the same bits.
 *
 * Every function fills a writable buffer from a Philox stream (key, low and high halves of the counter) with the
 * interpreter lock released. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "candidates.h"
#include "fills.h"
#include "rejection.h"

typedef struct {
    Py_buffer out;
    Stream stream;
    unsigned long long option;
    Py_ssize_t run;           /* outputs that follow each other in the stream; 0 for all */
    unsigned long long apart; /* blocks from the start of one run to the start of the next */
} Fill;

static int parse_fill(PyObject *args, Fill *fill, Py_ssize_t item) {
    unsigned long long key, low, high;
    fill->option = fill->apart = 0, fill->run = 0;
    if (!PyArg_ParseTuple(args, "w*KKK|KnK", &fill->out, &key, &low, &high, &fill->option, &fill->run, &fill->apart)) return 0;
    fill->stream.key = key, fill->stream.low = low, fill->stream.high = high;
    if (fill->out.len % item != 0 || (uintptr_t)fill->out.buf % (uintptr_t)item != 0) {
        PyBuffer_Release(&fill->out);
        PyErr_Format(PyExc_ValueError, "the buffer must hold aligned elements of %zd bytes", item);
        return 0;
    }
    return 1;
}

/* `count` outputs from `stream` to `out`. Whole chunks are written directly. An incomplete last chunk is copied from a scratch array. */
#define BY_CHUNKS(TYPE, PER_BLOCK, CALL)                                      \
    for (; count >= LANES * PER_BLOCK; count -= LANES * PER_BLOCK) {          \
        CALL(out);                                                            \
        out += LANES * PER_BLOCK;                                             \
        stream = stream_at(stream, LANES);                                    \
    }                                                                         \
    if (count > 0) {                                                          \
        TYPE scratch[LANES * PER_BLOCK];                                      \
        CALL(scratch);                                                        \
        memcpy(out, scratch, (size_t)count * sizeof(TYPE));                   \
    }

/* The same for groups that have blocks of their own. */
#define BY_GROUPS(TYPE, PER_GROUP, CALL)                                                            \
    for (Py_ssize_t first = 0; first < count; first += PER_GROUP) {                                 \
        TYPE group[PER_GROUP];                                                                      \
        Py_ssize_t left = count - first;                                                            \
        CALL(stream_at(stream, (uint64_t)(first / PER_GROUP) * (PER_GROUP * 64)), group);           \
        memcpy(out + first, group, sizeof(TYPE) * (size_t)(left < PER_GROUP ? left : PER_GROUP));   \
    }

#define DEFINE_FILL(NAME, TYPE, HOW, PER, CALL)                                            \
    static PyObject *NAME(PyObject *self, PyObject *args) {                                \
        Fill fill;                                                                         \
        (void)self;                                                                        \
        if (!parse_fill(args, &fill, sizeof(TYPE))) return NULL;                           \
        Py_BEGIN_ALLOW_THREADS;                                                            \
        Py_ssize_t all = fill.out.len / (Py_ssize_t)sizeof(TYPE);                          \
        Py_ssize_t run = fill.run > 0 ? fill.run : all;                                    \
        for (Py_ssize_t done = 0; done < all; done += run) {                               \
            TYPE *out = (TYPE *)fill.out.buf + done;                                       \
            Py_ssize_t count = all - done < run ? all - done : run;                        \
            Stream stream = fill.stream;                                                   \
            HOW(TYPE, PER, CALL)                                                           \
            fill.stream = stream_at(fill.stream, fill.apart);                              \
        }                                                                                  \
        Py_END_ALLOW_THREADS;                                                              \
        PyBuffer_Release(&fill.out);                                                       \
        Py_RETURN_NONE;                                                                    \
    }

#define BITS(target) bits_chunk(stream, target)
#define UNIFORM_FLOAT(target) uniform_float_chunk(stream, (uint32_t)fill.option % 24u, target)
#define UNIFORM_DOUBLE(target) uniform_double_chunk(stream, target)
#define NORMAL_FLOAT(target) normal_float_chunk(stream, target)
#define NORMAL_DOUBLE(target) normal_double_chunk(stream, target)

DEFINE_FILL(fill_bits, uint32_t, BY_CHUNKS, 4, BITS)
DEFINE_FILL(fill_uniform_float, float, BY_CHUNKS, 4, UNIFORM_FLOAT)
DEFINE_FILL(fill_uniform_double, double, BY_CHUNKS, 2, UNIFORM_DOUBLE)
DEFINE_FILL(fill_normal_float, float, BY_CHUNKS, 4, NORMAL_FLOAT)
DEFINE_FILL(fill_normal_double, double, BY_CHUNKS, 2, NORMAL_DOUBLE)
DEFINE_FILL(fill_truncated_float, float, BY_GROUPS, 4, truncated_float_group)
DEFINE_FILL(fill_truncated_double, double, BY_GROUPS, 2, truncated_double_group)

enum { MOST_PARAMETERS = 3 };

/* One number per output: out[i] is output `first + i`, and its parameters are at index (first + i) / samples. */
typedef struct {
    Py_buffer out, parameters[MOST_PARAMETERS];
    Stream stream;
    uint64_t samples, first;
} PerOutput;

static void release_per_output(PerOutput *job) {
    PyBuffer_Release(&job->out);
    for (int i = 0; i < MOST_PARAMETERS; i++)
        if (job->parameters[i].obj) PyBuffer_Release(&job->parameters[i]);
}

static int parse_per_output(PyObject *args, PerOutput *job, int parameters) {
    static const char *const FORMATS[] = {"w*KKKKKy*", "w*KKKKKy*y*", "w*KKKKKy*y*y*"};
    unsigned long long key, low, high, samples, first;
    memset(job, 0, sizeof *job);
    if (!PyArg_ParseTuple(args, FORMATS[parameters - 1], &job->out, &key, &low, &high, &samples, &first,
                          &job->parameters[0], &job->parameters[1], &job->parameters[2]))
        return 0;
    job->stream.key = key, job->stream.low = low, job->stream.high = high;
    job->samples = samples, job->first = first;
    uint64_t outputs = (uint64_t)job->out.len / sizeof(double);
    int enough = 1;
    for (int i = 0; i < parameters && outputs > 0; i++)
        enough &= samples > 0 &&
                  (first + outputs - 1) / samples < (uint64_t)job->parameters[i].len / sizeof(double);
    if (!enough) {
        release_per_output(job);
        PyErr_SetString(PyExc_ValueError, "more outputs than the parameters and the number of samples allow");
        return 0;
    }
    return 1;
}

#define DEFINE_PER_OUTPUT(NAME, PARAMETERS, EXPRESSION)                       \
    static PyObject *NAME(PyObject *self, PyObject *args) {                \
        PerOutput job;                                                     \
        (void)self;                                                        \
        if (!parse_per_output(args, &job, PARAMETERS)) return NULL;           \
        Py_BEGIN_ALLOW_THREADS;                                            \
        double *out = job.out.buf;                                         \
        const double *a = job.parameters[0].buf, *b = job.parameters[1].buf, *c = job.parameters[2].buf; \
        uint64_t count = (uint64_t)job.out.len / sizeof(double);           \
        (void)b, (void)c;                                                           \
        for (uint64_t i = 0; i < count; i++) {                             \
            uint64_t index = job.first + i, at = index / job.samples;      \
            out[i] = EXPRESSION;                                           \
        }                                                                  \
        Py_END_ALLOW_THREADS;                                              \
        release_per_output(&job);                                          \
        Py_RETURN_NONE;                                                    \
    }

DEFINE_PER_OUTPUT(fill_gamma, 1, gamma_number(stream_at(job.stream, index * 256), a[at]))
DEFINE_PER_OUTPUT(fill_poisson, 1, poisson_number(stream_at(job.stream, index * 256), a[at]))
DEFINE_PER_OUTPUT(fill_binomial, 3, binomial_number(job.stream, index, a[at], b[at], c[at]))

static PyObject *shuffle(PyObject *self, PyObject *args) {
    Py_buffer order, words;
    (void)self;
    if (!PyArg_ParseTuple(args, "w*y*", &order, &words)) return NULL;
    uint64_t size = (uint64_t)order.len / sizeof(int64_t);
    int enough = size < 2 || (uint64_t)words.len / sizeof(uint32_t) >= size - 1;
    if (enough) {
        Py_BEGIN_ALLOW_THREADS;
        int64_t *at = order.buf;
        const uint32_t *word = words.buf;
        for (uint64_t i = 0; i + 1 < size; i++) {
            uint64_t j = i + word[i] % (size - i);
            int64_t kept = at[i];
            at[i] = at[j];
            at[j] = kept;
        }
        Py_END_ALLOW_THREADS;
    }
    PyBuffer_Release(&order);
    PyBuffer_Release(&words);
    if (!enough) {
        PyErr_SetString(PyExc_ValueError, "one word per swap is needed");
        return NULL;
    }
    Py_RETURN_NONE;
}

static void categorical_row(const double *scores, Py_ssize_t classes, double *sums, Words *words, int64_t *out,
                            Py_ssize_t samples) {
    double largest = -INFINITY, total = 0.0;
    for (Py_ssize_t j = 0; j < classes; j++)
        if (isfinite(scores[j]) && scores[j] > largest) largest = scores[j];
    for (Py_ssize_t j = 0; j < classes; j++) {
        if (isfinite(scores[j])) total += exp(scores[j] - largest);
        sums[j] = total;
    }
    for (Py_ssize_t i = 0; i < samples; i++) {
        uint32_t first = next_word(words), second = next_word(words);
        double sought = unit_double(first, second) * total;
        Py_ssize_t begin = 0, end = classes; /* binary search for the first sum above the number */
        while (begin < end) {
            Py_ssize_t middle = begin + (end - begin) / 2;
            if (sums[middle] > sought)
                end = middle;
            else
                begin = middle + 1;
        }
        out[i] = begin;
    }
}

static PyObject *fill_categorical(PyObject *self, PyObject *args) {
    Py_buffer out, scores;
    unsigned long long key, low, high;
    Py_ssize_t classes;
    int skip_one;
    double *sums = NULL;
    (void)self;
    if (!PyArg_ParseTuple(args, "w*KKKy*np", &out, &key, &low, &high, &scores, &classes, &skip_one)) return NULL;
    Py_ssize_t outputs = out.len / (Py_ssize_t)sizeof(int64_t);
    Py_ssize_t batch = classes > 0 ? scores.len / (Py_ssize_t)sizeof(double) / classes : 0;
    if (outputs > 0 && (batch <= 0 || outputs % batch != 0)) {
        PyErr_SetString(PyExc_ValueError, "outputs do not divide among the rows");
    } else if (outputs > 0 && (sums = PyMem_Malloc((size_t)classes * sizeof(double))) == NULL) {
        PyErr_NoMemory();
    } else if (outputs > 0) {
        Stream stream = {key, low, high};
        Py_BEGIN_ALLOW_THREADS;
        Words words = words_from(stream);
        if (skip_one) next_word(&words), next_word(&words);
        Py_ssize_t samples = outputs / batch;
        for (Py_ssize_t row = 0; row < batch; row++)
            categorical_row((const double *)scores.buf + row * classes, classes, sums, &words,
                            (int64_t *)out.buf + row * samples, samples);
        Py_END_ALLOW_THREADS;
    }
    PyMem_Free(sums);
    PyBuffer_Release(&out);
    PyBuffer_Release(&scores);
    if (PyErr_Occurred()) return NULL;
    Py_RETURN_NONE;
}

/* The probability that a sample of `tries` draws contains a class, 1 - (1 - p)^tries, with the C library's float32 functions. */
static PyObject *fill_expected_counts(PyObject *self, PyObject *args) {
    Py_buffer out, probabilities;
    float tries;
    (void)self;
    if (!PyArg_ParseTuple(args, "w*y*f", &out, &probabilities, &tries)) return NULL;
    Py_ssize_t count = probabilities.len / (Py_ssize_t)sizeof(float);
    int fits = out.len >= probabilities.len;
    for (Py_ssize_t i = 0; fits && i < count; i++)
        ((float *)out.buf)[i] = -expm1f(tries * log1pf(-((const float *)probabilities.buf)[i]));
    PyBuffer_Release(&out);
    PyBuffer_Release(&probabilities);
    if (!fits) return PyErr_Format(PyExc_ValueError, "one count per probability is needed");
    Py_RETURN_NONE;
}

static PyMethodDef METHODS[] = {
    {"sample_candidates", sample_candidates, METH_VARARGS,
     "sample_candidates(sampled, sampled_counts, targets, target_counts, key, low, high, unique, range, log_range): the place of a target "
     "outside of the range, with nothing drawn; or -1."},
    {"find_hits", find_hits, METH_VARARGS, "find_hits(rows, places, targets, width, sampled): the number of hits."},
    {"fill_expected_counts", fill_expected_counts, METH_VARARGS, "fill_expected_counts(out, probabilities, tries): float32."},
    {"fill_bits", fill_bits, METH_VARARGS, "fill_bits(out, key, low, high): raw 32-bit words. Every `run` outputs begin `apart` blocks later."},
    {"fill_uniform_float", fill_uniform_float, METH_VARARGS,
     "fill_uniform_float(out, key, low, high, mantissa_bits, run, apart): float32 in [0, 1)."},
    {"fill_uniform_double", fill_uniform_double, METH_VARARGS, "fill_uniform_double(out, key, low, high, 0, run, apart)"},
    {"fill_normal_float", fill_normal_float, METH_VARARGS, "fill_normal_float(out, key, low, high, 0, run, apart)"},
    {"fill_normal_double", fill_normal_double, METH_VARARGS, "fill_normal_double(out, key, low, high, 0, run, apart)"},
    {"fill_truncated_float", fill_truncated_float, METH_VARARGS, "fill_truncated_float(out, key, low, high, 0, run, apart)"},
    {"fill_truncated_double", fill_truncated_double, METH_VARARGS, "fill_truncated_double(out, key, low, high, 0, run, apart)"},
    {"fill_gamma", fill_gamma, METH_VARARGS, "fill_gamma(out, key, low, high, samples, first, alpha)"},
    {"fill_poisson", fill_poisson, METH_VARARGS, "fill_poisson(out, key, low, high, samples, first, rate)"},
    {"fill_binomial", fill_binomial, METH_VARARGS,
     "fill_binomial(out, key, low, high, samples, first, counts, probs, means)"},
    {"shuffle", shuffle, METH_VARARGS, "shuffle(order, words): Fisher-Yates on int64, in place."},
    {"fill_categorical", fill_categorical, METH_VARARGS,
     "fill_categorical(out, key, low, high, scores, classes, skip_one): the first float64 may be skipped."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "random_bits", "Compiled twin of stoker._src.ops.random_bits.", -1, METHODS,
    NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_random_bits(void) { return PyModule_Create(&MODULE); }
