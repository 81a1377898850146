/* Feature messages and the values taken from them.
 *
 *   Feature   := kind_tag chunk(List)        kind_tag = field 1 bytes, 2 floats, 3 integers; nothing at all: no feature
 *   List      := (0x0a chunk)*               bytes: one chunk per value
 *              | 0x0a chunk(float*)          floats, packed
 *              | (0x0d float)*               floats, one by one
 *              | 0x0a chunk(varint*)         integers, packed
 *              | (0x08 varint)*              integers, one by one
 *
 * This is narrower than protobuf's own reading and in places wider, on purpose: it is what TensorFlow's parser takes.
 * It looks at the first list of a Feature and at the first packed chunk of a list, and not at what follows them; in a
 * feature list the next step is taken to start there.
 */
#ifndef STOKER_FEATURES_H
#define STOKER_FEATURES_H

#include "native.h"
#include "wire.h"

typedef enum { BYTES = 1, FLOATS = 2, INTS = 3 } Kind;

enum { TAG_1_CHUNK = 0x0a, TAG_2_CHUNK = 0x12, TAG_3_CHUNK = 0x1a, TAG_1_VARINT = 0x08, TAG_1_FIXED32 = 0x0d };

/* Why a parse failed. example.py names the same numbers and words the messages. */
typedef enum {
  FINE = 0,
  MALFORMED = 1,   /* the message that holds the features does not follow its grammar */
  UNSUPPORTED = 2, /* a Feature is of no known kind */
  WRONG_KIND = 3,  /* detail: the kind that was found, or 0 */
  BAD_LIST = 4,    /* a list does not follow its grammar */
  WRONG_COUNT = 5, /* detail: how many values were found */
  MISSING = 6,     /* a required feature is not there */
  NO_MEMORY = 7,   /* becomes MemoryError */
} Problem;

typedef struct {
  Problem problem;
  Py_ssize_t row, feature, step;
  long long detail;
} Failure;

/* Values of one feature as they are found: int64_t, float or Span by its kind. Lives outside Python's heap, so that it
 * can grow without the interpreter's lock. Every value has cost at least one byte of input (a float four, a Span two),
 * which bounds it. */
typedef struct {
  char *data;
  size_t count, capacity; /* in items */
} Vector;

bool vector_reserve(Vector *vector, size_t more, size_t item);
void vector_free(Vector *vector);

static inline size_t item_size(Kind kind) {
  return kind == BYTES ? sizeof(Span) : kind == FLOATS ? sizeof(float) : sizeof(int64_t);
}

/* The list of a Feature, which must not be empty. FINE, UNSUPPORTED, BAD_LIST, or WRONG_KIND with *found set. */
Problem feature_list(Span feature, Kind wanted, Span *list, Kind *found);

/* Appends a list's values. FINE, BAD_LIST or NO_MEMORY. `exact`: packed floats end with the list if not
 * before, and must come in fours of bytes; else the list must hold as many whole ones as the chunk claims. */
Problem append_values(Span list, Kind kind, bool exact, Vector *values);

/* Decodes a list of numbers straight to where they belong. *count is how many the list holds; at most `room` are
 * written. */
Problem decode_floats(Span list, bool exact, float *to, size_t room, size_t *count);
Problem decode_ints(Span list, int64_t *to, size_t room, size_t *count);

/* The names to look for, and where each stands among them. */
typedef struct {
  Py_ssize_t count;
  PyObject **keys; /* borrowed bytes objects */
  Py_ssize_t *slots;
  size_t mask;
} Names;

bool names_make(Names *names, PyObject **keys, Py_ssize_t count);
void names_free(Names *names);
Py_ssize_t names_find(const Names *names, Span key); /* -1: not among them */

/* Rows: a tuple of bytes objects -> their spans. NULL with an exception set when something else is among them. */
Span *rows_make(PyObject *rows);

/* Vector -> bytearray (numbers) or list (bytes). Takes nothing; the vector stays. */
PyObject *values_to_python(const Vector *values, Kind kind);

/* Failure -> (problem, row, feature, step, detail), or None when there is none; NULL with MemoryError set. */
PyObject *failure_to_python(const Failure *failure);

#endif
