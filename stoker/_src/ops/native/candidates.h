/* Candidate samplers: classes drawn for sampled losses, with their expected counts, and the drawn classes that are also targets. */
#ifndef STOKER_CANDIDATES_H
#define STOKER_CANDIDATES_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fills.h"

/* A hash table with open addressing: for each class, a number that the caller gives it. */
typedef struct {
    int64_t *classes, *numbers; /* a number of -1 marks an empty slot */
    uint64_t mask;
} class_table;

static int make_classes(class_table *made, int64_t count) {
    uint64_t size = 16;
    while (size < (uint64_t)count * 2) size *= 2;
    made->mask = size - 1;
    made->classes = malloc(2 * size * sizeof(int64_t));
    if (made->classes == NULL) return 0;
    made->numbers = made->classes + size;
    memset(made->numbers, 0xff, size * sizeof(int64_t));
    return 1;
}

/* The slot of a class: its own, or the empty one in which it belongs. */
static inline uint64_t slot_of(const class_table *known, int64_t class) {
    uint64_t slot = (((uint64_t)class * 0x9E3779B97F4A7C15u) >> 20) & known->mask;
    while (known->numbers[slot] >= 0 && known->classes[slot] != class) slot = (slot + 1) & known->mask;
    return slot;
}

typedef struct {
    int64_t range;
    double log_range; /* 0 for equal probabilities */
} class_distribution;

/* One draw takes 64 bits. Zipf's law is drawn by inversion: P(k) = log((k + 2) / (k + 1)) / log(range + 1). */
static inline int64_t drawn_class(const class_distribution *of, Words *words) {
    uint32_t first = next_word(words), second = next_word(words);
    if (of->log_range == 0.0) return (int64_t)((((uint64_t)second << 32) | first) % (uint64_t)of->range);
    return ((int64_t)exp(unit_double(first, second) * of->log_range) - 1) % of->range;
}

/* Fills `out` with drawn classes, each of them once if `unique`. Returns the number of draws, or -1 if memory is short. */
static int64_t draw_classes(const class_distribution *of, Stream stream, int64_t *out, int64_t count, int unique) {
    Words words = words_from(stream);
    if (!unique) {
        for (int64_t i = 0; i < count; i++) out[i] = drawn_class(of, &words);
        return count;
    }
    class_table seen;
    if (!make_classes(&seen, count)) return -1;
    int64_t draws = 0;
    for (int64_t i = 0; i < count; draws++) {
        int64_t class = drawn_class(of, &words);
        uint64_t slot = slot_of(&seen, class);
        if (seen.numbers[slot] >= 0) continue;
        seen.classes[slot] = class, seen.numbers[slot] = i;
        out[i++] = class;
    }
    free(seen.classes);
    return draws;
}

/* How often a class is expected in the sample or, if draws were rejected, the probability that the sample contains it. The C library's
 * float32 functions give TensorFlow's bits. */
static void expected_counts(const class_distribution *of, const int64_t *classes, int64_t count, float *out, int64_t sampled, int64_t draws) {
    for (int64_t i = 0; i < count; i++) {
        double k = (double)classes[i];
        float p = of->log_range == 0.0 ? 1.0f / (float)of->range : (float)(log((k + 2.0) / (k + 1.0)) / of->log_range);
        out[i] = draws == sampled ? p * (float)sampled : -expm1f((float)draws * log1pf(-p));
    }
}

static PyObject *sample_candidates(PyObject *self, PyObject *args) {
    Py_buffer sampled, sampled_counts, targets, target_counts;
    unsigned long long key, low, high;
    long long range;
    double log_range;
    int unique;
    (void)self;
    if (!PyArg_ParseTuple(args, "w*w*y*w*KKKpLd", &sampled, &sampled_counts, &targets, &target_counts, &key, &low, &high, &unique, &range,
                          &log_range))
        return NULL;
    const int64_t item = sizeof(int64_t), count = sampled.len / item, known = targets.len / item;
    int fits = range > 0 && sampled_counts.len / (int64_t)sizeof(float) >= count && target_counts.len / (int64_t)sizeof(float) >= known;
    int64_t result = -1, outside = known;
    if (fits) {
        const int64_t *target = targets.buf;
        class_distribution of = {range, log_range};
        Stream stream = {key, low, high};
        Py_BEGIN_ALLOW_THREADS;
        for (int64_t i = 0; i < known && outside == known; i++)
            if (target[i] < 0 || target[i] >= range) outside = i;
        if (outside == known) result = draw_classes(&of, stream, sampled.buf, count, unique);
        if (result >= 0) {
            expected_counts(&of, sampled.buf, count, sampled_counts.buf, count, result);
            expected_counts(&of, target, known, target_counts.buf, count, result);
        }
        Py_END_ALLOW_THREADS;
    }
    PyBuffer_Release(&sampled);
    PyBuffer_Release(&sampled_counts);
    PyBuffer_Release(&targets);
    PyBuffer_Release(&target_counts);
    if (!fits) return PyErr_Format(PyExc_ValueError, "one count per class and at least one class are needed");
    if (outside < known) return PyLong_FromLongLong(outside);
    if (result < 0) return PyErr_NoMemory();
    return PyLong_FromLong(-1);
}

static PyObject *find_hits(PyObject *self, PyObject *args) {
    Py_buffer rows, places, targets, sampled;
    long long width;
    (void)self;
    if (!PyArg_ParseTuple(args, "w*w*y*Ly*", &rows, &places, &targets, &width, &sampled)) return NULL;
    const int64_t item = sizeof(int64_t), count = sampled.len / item, known = targets.len / item;
    int fits = width > 0 && rows.len / (int64_t)sizeof(int32_t) >= known && places.len / item >= known;
    int64_t found = 0;
    class_table drawn = {NULL, NULL, 0};
    int made = fits && make_classes(&drawn, count);
    if (made) {
        Py_BEGIN_ALLOW_THREADS;
        for (int64_t i = 0; i < count; i++) { /* of a class that was drawn twice, the last place counts */
            int64_t class = ((const int64_t *)sampled.buf)[i];
            uint64_t slot = slot_of(&drawn, class);
            drawn.classes[slot] = class, drawn.numbers[slot] = i;
        }
        for (int64_t i = 0; i < known; i++) {
            int64_t place = drawn.numbers[slot_of(&drawn, ((const int64_t *)targets.buf)[i])];
            if (place < 0) continue;
            ((int32_t *)rows.buf)[found] = (int32_t)(i / width);
            ((int64_t *)places.buf)[found++] = place;
        }
        Py_END_ALLOW_THREADS;
    }
    free(drawn.classes);
    PyBuffer_Release(&rows);
    PyBuffer_Release(&places);
    PyBuffer_Release(&targets);
    PyBuffer_Release(&sampled);
    if (!fits) return PyErr_Format(PyExc_ValueError, "one row and one place per class are needed");
    if (!made) return PyErr_NoMemory();
    return PyLong_FromLongLong(found);
}

#endif
