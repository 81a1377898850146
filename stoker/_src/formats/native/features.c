/* Decodes the lists of Features, looks up feature names, and passes values to Python. See features.h. */
#include "features.h"

/* Packed floats are copied unchanged, which requires a little-endian machine. On other machines the build fails here,
 * and the package uses the Python version. */
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "big-endian machines use the Python twin"
#endif

bool vector_reserve(Vector *vector, size_t more, size_t item) {
  if (vector->capacity - vector->count >= more) return true;
  size_t limit = (size_t)PY_SSIZE_T_MAX / item;
  if (more > limit - vector->count) return false;
  size_t wanted = vector->count + more;
  if (vector->capacity < limit / 2 && wanted < 2 * vector->capacity) wanted = 2 * vector->capacity;
  if (wanted < 64) wanted = 64;
  char *data = realloc(vector->data, wanted * item);
  if (!data) return false;
  vector->data = data;
  vector->capacity = wanted;
  return true;
}

void vector_free(Vector *vector) { free(vector->data); }

Problem feature_list(Span feature, Kind wanted, Span *list, Kind *found) {
  switch (*feature.at) {
    case TAG_1_CHUNK: *found = BYTES; break;
    case TAG_2_CHUNK: *found = FLOATS; break;
    case TAG_3_CHUNK: *found = INTS; break;
    default: return UNSUPPORTED;
  }
  if (*found != wanted) return WRONG_KIND;
  feature.at++;
  return enter_chunk(&feature, list) ? FINE : BAD_LIST;
}

Problem decode_floats(Span list, bool exact, float *to, size_t room, size_t *count) {
  *count = 0;
  if (list.at == list.end) return FINE;
  if (*list.at == TAG_1_CHUNK) {
    uint64_t length;
    Span peek, packed;
    list.at++;
    peek = list;
    if (!read_varint(&peek, &length) || !enter_chunk(&list, &packed)) return BAD_LIST;
    list = peek;
    length = exact ? span_size(packed) : length & UINT32_MAX;
    size_t found = length / sizeof(float); /* the trailing bytes of a partial float are ignored and may be missing */
    if (found > span_size(list) / sizeof(float) || (exact && length % sizeof(float))) return BAD_LIST;
    if (found && room) memcpy(to, list.at, (found < room ? found : room) * sizeof(float));
    *count = found;
    return FINE;
  }
  while (list.at != list.end) {
    if (*list.at++ != TAG_1_FIXED32 || span_size(list) < sizeof(float)) return BAD_LIST;
    if (*count < room) memcpy(to + *count, list.at, sizeof(float));
    list.at += sizeof(float);
    ++*count;
  }
  return FINE;
}

Problem decode_ints(Span list, int64_t *to, size_t room, size_t *count) {
  *count = 0;
  if (list.at == list.end) return FINE;
  bool packed = *list.at == TAG_1_CHUNK;
  Span in = list;
  if (packed) {
    list.at++;
    if (!enter_chunk(&list, &in)) return BAD_LIST;
  }
  while (in.at != in.end) {
    uint64_t value;
    if (!packed && *in.at++ != TAG_1_VARINT) return BAD_LIST;
    if (!read_varint(&in, &value)) return BAD_LIST;
    if (*count < room) to[*count] = (int64_t)value;
    ++*count;
  }
  return FINE;
}

Problem append_values(Span list, Kind kind, bool exact, Vector *values) {
  /* Reserve space for as many values as the bytes can hold, so that the decoders need no check per value. */
  size_t item = item_size(kind), size = span_size(list), found = 0;
  size_t most = kind == INTS ? size : kind == FLOATS ? size / sizeof(float) : 0;
  if (!vector_reserve(values, most, item)) return NO_MEMORY;
  char *to = most ? values->data + values->count * item : NULL;
  Problem problem = FINE;
  if (kind == FLOATS) {
    problem = decode_floats(list, exact, (float *)to, most, &found);
  } else if (kind == INTS) {
    problem = decode_ints(list, (int64_t *)to, most, &found);
  } else {
    while (list.at != list.end) {
      Span value;
      if (!read_tagged_chunk(&list, TAG_1_CHUNK, &value)) return BAD_LIST;
      if (!vector_reserve(values, 1, item)) return NO_MEMORY;
      ((Span *)values->data)[values->count++] = value;
    }
  }
  values->count += found;
  return problem;
}

/* FNV-1a, which is fast for short names. */
static uint64_t hash_bytes(const uint8_t *at, size_t size) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (size_t i = 0; i < size; i++) hash = (hash ^ at[i]) * 0x100000001b3u;
  return hash ^ hash >> 32;
}

bool names_make(Names *names, PyObject **keys, Py_ssize_t count) {
  size_t size = 4;
  while (size < 2 * (size_t)count) size *= 2;
  names->count = count;
  names->keys = keys;
  names->mask = size - 1;
  names->slots = malloc(size * sizeof *names->slots);
  names->next = malloc(((size_t)count + 1) * sizeof *names->next);
  if (!names->slots || !names->next) return false;
  for (Py_ssize_t k = 0; k <= count; k++) names->next[k] = -1;
  for (size_t i = 0; i < size; i++) names->slots[i] = -1;
  for (Py_ssize_t k = 0; k < count; k++) {
    size_t slot = hash_bytes((uint8_t *)PyBytes_AS_STRING(keys[k]), (size_t)PyBytes_GET_SIZE(keys[k])) & names->mask;
    while (names->slots[slot] >= 0) slot = (slot + 1) & names->mask;
    names->slots[slot] = k;
  }
  return true;
}

void names_free(Names *names) {
  free(names->slots);
  free(names->next);
}

static bool is_name(const Names *names, Py_ssize_t k, Span key) {
  PyObject *name = names->keys[k];
  size_t size = span_size(key);
  return (size_t)PyBytes_GET_SIZE(name) == size && !memcmp(PyBytes_AS_STRING(name), key.at, size);
}

Py_ssize_t names_find(const Names *names, Span key) {
  size_t size = span_size(key);
  for (size_t slot = hash_bytes(key.at, size) & names->mask;; slot = (slot + 1) & names->mask) {
    Py_ssize_t k = names->slots[slot];
    if (k < 0) return -1;
    if (is_name(names, k, key)) return k;
  }
}

Py_ssize_t names_find_after(Names *names, Py_ssize_t before, Span key) {
  Py_ssize_t *next = &names->next[before + 1];
  if (*next >= 0 && is_name(names, *next, key)) return *next;
  Py_ssize_t k = names_find(names, key);
  if (k >= 0) *next = k;
  return k;
}

Span *rows_make(PyObject *rows) {
  Py_ssize_t count = PyTuple_GET_SIZE(rows);
  Span *spans = malloc((size_t)(count ? count : 1) * sizeof *spans);
  if (!spans) {
    PyErr_NoMemory();
    return NULL;
  }
  for (Py_ssize_t r = 0; r < count; r++) {
    PyObject *row = PyTuple_GET_ITEM(rows, r);
    if (!PyBytes_Check(row)) {
      PyErr_Format(PyExc_TypeError, "row %zd is %.100s, not bytes", r, Py_TYPE(row)->tp_name);
      free(spans);
      return NULL;
    }
    spans[r].at = (const uint8_t *)PyBytes_AS_STRING(row);
    spans[r].end = spans[r].at + PyBytes_GET_SIZE(row);
  }
  return spans;
}

PyObject *values_to_python(const Vector *values, Kind kind) {
  if (kind != BYTES) return PyByteArray_FromStringAndSize(values->data, (Py_ssize_t)(values->count * item_size(kind)));
  PyObject *list = PyList_New((Py_ssize_t)values->count);
  if (!list) return NULL;
  for (size_t i = 0; i < values->count; i++) {
    Span span = ((const Span *)values->data)[i];
    PyObject *value = PyBytes_FromStringAndSize((const char *)span.at, (Py_ssize_t)span_size(span));
    if (!value) {
      Py_DECREF(list);
      return NULL;
    }
    PyList_SET_ITEM(list, (Py_ssize_t)i, value);
  }
  return list;
}

PyObject *failure_to_python(const Failure *failure) {
  if (failure->problem == FINE) Py_RETURN_NONE;
  if (failure->problem == NO_MEMORY) return PyErr_NoMemory();
  return Py_BuildValue("(innnL)", (int)failure->problem, failure->row, failure->feature, failure->step, failure->detail);
}
