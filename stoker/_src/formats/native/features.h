/* Feature messages and the values extracted from them.
 *
 *   Feature   := kind_tag chunk(List)        kind_tag = field 1 bytes, 2 floats, 3 integers; empty: no feature
 *   List      := (0x0a chunk)*               bytes: one chunk per value
 *              | 0x0a chunk(float*)          floats, packed
 *              | (0x0d float)*               floats, one by one
 *              | 0x0a chunk(varint*)         integers, packed
 *              | (0x08 varint)*              integers, one by one
 *
 * This intentionally differs from protobuf's grammar, because it matches TensorFlow's parser. The parser reads the
 * first list of a Feature and the first packed chunk of a list, and ignores what follows them. In a feature list, the
 * next step is assumed to start there.
 */
#ifndef STOKER_FEATURES_H
#define STOKER_FEATURES_H

#include "native.h"
#include "wire.h"

typedef enum { BYTES = 1, FLOATS = 2, INTS = 3 } Kind;

enum { TAG_1_CHUNK = 0x0a, TAG_2_CHUNK = 0x12, TAG_3_CHUNK = 0x1a, TAG_1_VARINT = 0x08, TAG_1_FIXED32 = 0x0d };

/* The reason for a failure. example.py defines the same numbers and the error messages. */
typedef enum {
  FINE = 0,
  MALFORMED = 1,   /* the message that contains the features is malformed */
  UNSUPPORTED = 2, /* a Feature has an unknown kind */
  WRONG_KIND = 3,  /* detail: the kind that was found, or 0 */
  BAD_LIST = 4,    /* a list is malformed */
  WRONG_COUNT = 5, /* detail: the number of values that were found */
  MISSING = 6,     /* a required feature is missing */
  NO_MEMORY = 7,   /* becomes MemoryError */
} Problem;

typedef struct {
  Problem problem;
  Py_ssize_t row, feature, step;
  long long detail;
} Failure;

/* The values of a feature: int64_t, float or Span, depending on its kind. The vector is outside Python's heap, so that
 * it can grow without the GIL. Its size is bounded, because every value takes at least one byte of input (a float
 * four, a Span two). */
typedef struct {
  char *data;
  size_t count, capacity; /* in items */
} Vector;

bool vector_reserve(Vector *vector, size_t more, size_t item);
void vector_free(Vector *vector);

static inline size_t item_size(Kind kind) {
  return kind == BYTES ? sizeof(Span) : kind == FLOATS ? sizeof(float) : sizeof(int64_t);
}

/* Finds the list of a Feature, which must not be empty. Returns FINE, UNSUPPORTED, BAD_LIST, or WRONG_KIND with *found
 * set. */
Problem feature_list(Span feature, Kind wanted, Span *list, Kind *found);

/* Appends a list's values. Returns FINE, BAD_LIST or NO_MEMORY. If `exact`, packed floats end at the end of the list at
 * the latest, and their size must be a multiple of four bytes. Otherwise the list must contain as many whole floats as
 * the chunk's length declares. */
Problem append_values(Span list, Kind kind, bool exact, Vector *values);

/* Decodes a list of numbers directly into the destination. *count is the number of values in the list; at most `room`
 * of them are written. */
Problem decode_floats(Span list, bool exact, float *to, size_t room, size_t *count);
Problem decode_ints(Span list, int64_t *to, size_t room, size_t *count);

/* The requested names, with a hash table that gives the index of each. */
typedef struct {
  Py_ssize_t count;
  PyObject **keys; /* borrowed bytes objects */
  Py_ssize_t *slots;
  size_t mask;
  Py_ssize_t *next; /* the name that last followed each name; first of all, the one that followed another or none */
} Names;

bool names_make(Names *names, PyObject **keys, Py_ssize_t count);
void names_free(Names *names);
Py_ssize_t names_find(const Names *names, Span key); /* -1 if it is not requested */

/* As names_find, where `before` is the name that was found before, or -1. Rows mostly have their features in one order, so the name
 * that followed last time is tried first. */
Py_ssize_t names_find_after(Names *names, Py_ssize_t before, Span key);

/* Converts a tuple of bytes objects to spans. Returns NULL with an exception set if an item is not bytes. */
Span *rows_make(PyObject *rows);

/* Converts a Vector to a bytearray (numbers) or list (bytes). The caller keeps ownership of the vector. */
PyObject *values_to_python(const Vector *values, Kind kind);

/* Converts a Failure to (problem, row, feature, step, detail), or to None if there is none. Returns NULL with
 * MemoryError set if memory runs out. */
PyObject *failure_to_python(const Failure *failure);

#endif
