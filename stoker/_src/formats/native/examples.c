/* Parses batches of serialized Examples into columns.
 *
 *   Example  := (0x0a chunk(Features) | unknown field)*       several Features are merged
 *   Features := (0x0a chunk(Entry))*
 *   Entry    := two of: 0x0a chunk (key), 0x12 chunk(Feature)  if both are alike, the later is used
 *
 * If an Entry has two keys, its Feature is empty; if it has two Features, its key is empty.
 * If a name occurs twice, the later entry is used. An empty Feature is ignored, unless the column says that it hides
 * earlier entries. TensorFlow ignores it for dense features, and lets it hide entries for sparse and ragged ones.
 * Features that are not requested are skipped without being parsed.
 */
#include "farmhash.h"
#include "features.h"

enum { WORTH_A_THREAD = 1 << 17 }; /* bytes of rows per thread */

typedef struct {
  Kind kind;
  Py_ssize_t size;         /* values per row, or -1 for any number */
  int empty_hides;         /* variable size only */
  PyObject *fallback;      /* fixed size: default if missing, as bytes (numbers) or a tuple of bytes, or None */
  PyObject *fixed;         /* bytearray for numbers of a fixed size, else NULL */
  Vector values;           /* all other values; a Span with a NULL start represents a fallback value */
  int64_t *counts;         /* variable size: values per row */
} Column;

static Problem walk_features(Span features, Names *names, const Column *columns, Span *found,
                             Py_ssize_t *at_fault) {
  Py_ssize_t k = -1;
  while (features.at != features.end) {
    Span entry;
    if (!take_tag(&features, TAG_1_CHUNK) || !enter_chunk(&features, &entry)) return MALFORMED;
    Span key = {entry.at, entry.at}, value = key;
    for (int i = 0; i < 2; i++) {
      uint64_t tag;
      if (!read_varint(&entry, &tag)) return MALFORMED;
      if ((uint32_t)tag != TAG_1_CHUNK && (uint32_t)tag != TAG_2_CHUNK) return MALFORMED;
      if (!read_chunk(&entry, (uint32_t)tag == TAG_1_CHUNK ? &key : &value)) return MALFORMED;
    }
    if (entry.at != entry.end) return MALFORMED;
    k = names_find_after(names, k, key);
    if (k < 0) continue;
    if (value.at == value.end) {
      if (columns[k].empty_hides) found[k] = value;
      continue;
    }
    /* This is an error even if a later entry replaces it, but it is reported only if the rest of the row is valid. */
    if (*value.at != TAG_1_CHUNK && *value.at != TAG_2_CHUNK && *value.at != TAG_3_CHUNK) *at_fault = k;
    found[k] = value;
  }
  return FINE;
}

/* Finds the position of each requested Feature of a row; the start is NULL if it is missing. */
static Problem find_features(Span row, Names *names, const Column *columns, Span *found, Py_ssize_t *at_fault) {
  memset(found, 0, (size_t)names->count * sizeof *found);
  *at_fault = -1;
  while (row.at != row.end) {
    uint64_t tag;
    Span features;
    if (take_tag(&row, TAG_1_CHUNK)) {
      if (!enter_chunk(&row, &features)) return MALFORMED;
      Problem problem = walk_features(features, names, columns, found, at_fault);
      if (problem) return problem;
    } else if (!read_varint(&row, &tag) || !skip_payload(&row, (uint32_t)tag)) {
      return MALFORMED;
    }
  }
  return *at_fault < 0 ? FINE : UNSUPPORTED;
}

static Problem take_missing(Column *column, Py_ssize_t row) {
  if (column->size < 0) {
    column->counts[row] = 0;
    return FINE;
  }
  if (column->fallback == Py_None) return MISSING;
  size_t size = (size_t)column->size;
  if (column->kind == BYTES) {
    if (!vector_reserve(&column->values, size, sizeof(Span))) return NO_MEMORY;
    if (size) memset((Span *)column->values.data + column->values.count, 0, size * sizeof(Span));
    column->values.count += size;
  } else if (size) {
    size_t bytes = size * item_size(column->kind);
    memcpy(PyByteArray_AS_STRING(column->fixed) + (size_t)row * bytes, PyBytes_AS_STRING(column->fallback), bytes);
  }
  return FINE;
}

static Problem take_feature(Column *column, Py_ssize_t row, Span feature, long long *detail) {
  Span list;
  Kind found;
  Problem problem = feature_list(feature, column->kind, &list, &found);
  if (problem) {
    *detail = problem == WRONG_KIND ? found : 0;
    return problem;
  }
  size_t count, size = (size_t)column->size;
  if (column->fixed) {
    char *to = PyByteArray_AS_STRING(column->fixed) + (size_t)row * size * item_size(column->kind);
    problem = column->kind == FLOATS ? decode_floats(list, false, (float *)to, size, &count)
                                     : decode_ints(list, (int64_t *)to, size, &count);
  } else {
    size_t before = column->values.count;
    problem = append_values(list, column->kind, false, &column->values);
    count = column->values.count - before;
  }
  if (problem) return problem;
  if (column->size < 0) {
    column->counts[row] = (int64_t)count;
  } else if (count != size) {
    *detail = (long long)count;
    return WRONG_COUNT;
  }
  return FINE;
}

static void take_rows(const Span *rows, Py_ssize_t first, Py_ssize_t last, Names *names, Span *found, Column *columns,
                      Failure *failure) {
  for (Py_ssize_t r = first; r < last; r++) {
    Py_ssize_t k = -1;
    long long detail = 0;
    Problem problem = find_features(rows[r], names, columns, found, &k);
    if (!problem) {
      for (k = 0; k < names->count; k++) {
        problem = found[k].at != found[k].end ? take_feature(&columns[k], r, found[k], &detail) : take_missing(&columns[k], r);
        if (problem) break;
      }
    }
    if (problem) {
      *failure = (Failure){problem, r, problem == MALFORMED ? -1 : k, -1, detail};
      return;
    }
  }
}

/* Puts bytes objects into a list, using the fallback's values where a start is NULL. */
static bool bytes_to_list(PyObject *list, Py_ssize_t at, const Column *column) {
  const Span *spans = (const Span *)column->values.data;
  for (size_t i = 0; i < column->values.count; i++) {
    PyObject *value;
    if (spans[i].at) {
      value = PyBytes_FromStringAndSize((const char *)spans[i].at, (Py_ssize_t)span_size(spans[i]));
    } else {
      value = PyTuple_GET_ITEM(column->fallback, (Py_ssize_t)(i % (size_t)column->size));
      Py_INCREF(value);
    }
    if (!value) return false;
    PyList_SET_ITEM(list, at + (Py_ssize_t)i, value);
  }
  return true;
}

/* The values that the parts of the rows have of one column, as a bytearray (numbers) or list (bytes). Part p of column k is
 * columns[p * count + k]. */
static PyObject *joined_values(const Column *columns, Py_ssize_t count, Py_ssize_t parts) {
  size_t total = 0, item = item_size(columns->kind);
  for (Py_ssize_t p = 0; p < parts; p++) total += columns[p * count].values.count;
  bool is_bytes = columns->kind == BYTES;
  PyObject *joined =
      is_bytes ? PyList_New((Py_ssize_t)total) : PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)(total * item));
  size_t at = 0;
  for (Py_ssize_t p = 0; joined && p < parts; p++) {
    const Column *part = &columns[p * count];
    if (is_bytes) {
      if (!bytes_to_list(joined, (Py_ssize_t)at, part)) Py_CLEAR(joined);
    } else if (part->values.count) {
      memcpy(PyByteArray_AS_STRING(joined) + at * item, part->values.data, part->values.count * item);
    }
    at += part->values.count;
  }
  return joined;
}

static PyObject *column_to_python(const Column *column, Py_ssize_t count, Py_ssize_t parts, Py_ssize_t row_count) {
  if (column->fixed) return Py_NewRef(column->fixed);
  PyObject *values = joined_values(column, count, parts);
  if (column->size >= 0) return values;
  PyObject *counts =
      PyByteArray_FromStringAndSize((const char *)column->counts, row_count * (Py_ssize_t)sizeof(int64_t));
  PyObject *pair = values && counts ? PyTuple_Pack(2, values, counts) : NULL;
  Py_XDECREF(values);
  Py_XDECREF(counts);
  return pair;
}

/* ---- forms of variable-size columns ---- */

enum { INDICES = 1, ROWS = 2, VALUES = 4 };

/* What the caller wants of a column, and where that starts in the buffers of int64 and float numbers. */
typedef struct {
  int wanted;
  PyObject *buckets; /* tuple: one hashed column of the strings for each number of buckets */
  size_t total, ints_at, floats_at;
} Form;

static uint64_t bucket_count(const Form *form, Py_ssize_t i) {
  return PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(form->buckets, i));
}

static bool form_make(Form *form, PyObject *given, const Column *column) {
  if (given == Py_None) {
    form->buckets = NULL;
    return true;
  }
  if (!PyArg_ParseTuple(given, "iO!", &form->wanted, &PyTuple_Type, &form->buckets)) return false;
  bool fits = column->size < 0 && (column->kind == BYTES || !PyTuple_GET_SIZE(form->buckets));
  for (Py_ssize_t i = 0; fits && i < PyTuple_GET_SIZE(form->buckets); i++) fits = bucket_count(form, i) > 0 && !PyErr_Occurred();
  if (!fits && !PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "a form needs a column of variable size, and buckets strings");
  return fits;
}

/* Adds up how many numbers the forms take. */
static void forms_place(Form *forms, const Column *columns, Py_ssize_t count, Py_ssize_t parts, size_t *ints, size_t *floats) {
  *ints = *floats = 0;
  for (Py_ssize_t k = 0; k < count; k++) {
    Form *form = &forms[k];
    if (!form->buckets) continue;
    form->total = 0;
    for (Py_ssize_t p = 0; p < parts; p++) form->total += columns[p * count + k].values.count;
    form->ints_at = *ints;
    form->floats_at = *floats;
    Kind kind = columns[k].kind;
    size_t vectors = (form->wanted & INDICES ? 2 : 0) + (form->wanted & ROWS ? 1 : 0) +
                     (form->wanted & VALUES && kind == INTS ? 1 : 0) + (size_t)PyTuple_GET_SIZE(form->buckets);
    *ints += vectors * form->total;
    if (form->wanted & VALUES && kind == FLOATS) *floats += form->total;
  }
}

static void write_rows(int64_t *to, const int64_t *counts, Py_ssize_t row_count) {
  for (Py_ssize_t r = 0; r < row_count; r++)
    for (int64_t i = 0; i < counts[r]; i++) *to++ = r;
}

static void write_indices(int64_t *to, const int64_t *counts, Py_ssize_t row_count) {
  for (Py_ssize_t r = 0; r < row_count; r++)
    for (int64_t i = 0; i < counts[r]; i++) {
      *to++ = r;
      *to++ = i;
    }
}

/* Writes the forms of one column. Does not need the GIL: `buckets` has as many numbers as the form. */
static void form_write(const Form *form, const uint64_t *buckets, Py_ssize_t bucket_total, const Column *columns, Py_ssize_t count,
                       Py_ssize_t parts, Py_ssize_t row_count, int64_t *ints, float *floats) {
  int64_t *to = ints + form->ints_at;
  if (form->wanted & INDICES) {
    write_indices(to, columns->counts, row_count);
    to += 2 * form->total;
  }
  if (form->wanted & ROWS) {
    write_rows(to, columns->counts, row_count);
    to += form->total;
  }
  if (form->wanted & VALUES && columns->kind != BYTES) {
    char *at = columns->kind == INTS ? (char *)to : (char *)(floats + form->floats_at);
    for (Py_ssize_t p = 0; p < parts; p++) {
      const Vector *values = &columns[p * count].values;
      if (values->count) memcpy(at, values->data, values->count * item_size(columns->kind));
      at += values->count * item_size(columns->kind);
    }
    if (columns->kind == INTS) to += form->total;
  }
  for (Py_ssize_t b = 0; b < bucket_total; b++)
    for (Py_ssize_t p = 0; p < parts; p++) {
      const Vector *values = &columns[p * count].values;
      const Span *spans = (const Span *)values->data;
      for (size_t i = 0; i < values->count; i++)
        *to++ = (int64_t)(fingerprint64(spans[i].at, span_size(spans[i])) % buckets[b]);
    }
}

/* (number of values, longest row, list of bytes or None) */
static PyObject *form_to_python(const Form *form, const Column *columns, Py_ssize_t count, Py_ssize_t parts, Py_ssize_t row_count) {
  int64_t longest = 0;
  for (Py_ssize_t r = 0; r < row_count; r++) longest = columns->counts[r] > longest ? columns->counts[r] : longest;
  bool strings = columns->kind == BYTES && form->wanted & VALUES;
  PyObject *values = strings ? joined_values(columns, count, parts) : Py_NewRef(Py_None);
  return values ? Py_BuildValue("(nLN)", (Py_ssize_t)form->total, (long long)longest, values) : NULL;
}

/* Writes the forms of all columns. Returns (ints, floats) or NULL with an exception set. */
static PyObject *forms_write(Form *forms, const Column *columns, Py_ssize_t count, Py_ssize_t parts, Py_ssize_t row_count) {
  size_t ints, floats, bucket_total = 0;
  forms_place(forms, columns, count, parts, &ints, &floats);
  for (Py_ssize_t k = 0; k < count; k++) bucket_total += forms[k].buckets ? (size_t)PyTuple_GET_SIZE(forms[k].buckets) : 0;
  uint64_t *buckets = malloc((bucket_total + 1) * sizeof *buckets);
  Py_ssize_t *starts = malloc(((size_t)count + 1) * sizeof *starts), at = 0;
  PyObject *int_bytes = NULL, *float_bytes = NULL, *result = NULL;
  if (!buckets || !starts || ints > PY_SSIZE_T_MAX / sizeof(int64_t)) {
    PyErr_NoMemory();
    goto done;
  }
  for (Py_ssize_t k = 0; k < count; k++) {
    starts[k] = at;
    for (Py_ssize_t i = 0; forms[k].buckets && i < PyTuple_GET_SIZE(forms[k].buckets); i++) buckets[at++] = bucket_count(&forms[k], i);
  }
  starts[count] = at;
  int_bytes = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)(ints * sizeof(int64_t)));
  float_bytes = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)(floats * sizeof(float)));
  if (!int_bytes || !float_bytes) goto done;
  int64_t *int_to = (int64_t *)PyByteArray_AS_STRING(int_bytes);
  float *float_to = (float *)PyByteArray_AS_STRING(float_bytes);
  Py_BEGIN_ALLOW_THREADS
#pragma omp parallel for schedule(dynamic, 4) num_threads((int)parts) if (parts > 1)
  for (Py_ssize_t k = 0; k < count; k++)
    if (forms[k].buckets)
      form_write(&forms[k], buckets + starts[k], starts[k + 1] - starts[k], &columns[k], count, parts, row_count, int_to, float_to);
  Py_END_ALLOW_THREADS
  result = PyTuple_Pack(2, int_bytes, float_bytes);
done:
  Py_XDECREF(int_bytes);
  Py_XDECREF(float_bytes);
  free(buckets);
  free(starts);
  return result;
}

/* Validates one (key, kind, size, fallback, empty_hides) of the caller, so that later code can rely on it. */
static bool column_make(Column *column, PyObject *feature, Py_ssize_t row_count, PyObject **key) {
  int kind;
  if (!PyArg_ParseTuple(feature, "SinOp", key, &kind, &column->size, &column->fallback, &column->empty_hides))
    return false;
  if (kind < BYTES || kind > INTS || column->size < -1 || (column->size >= 0 && column->empty_hides)) {
    PyErr_SetString(PyExc_ValueError, "kind must be 1, 2 or 3, size at least -1, and empty_hides false where it is not -1");
    return false;
  }
  column->kind = (Kind)kind;
  if (column->size < 0) {
    column->counts = calloc((size_t)(row_count ? row_count : 1), sizeof(int64_t));
    if (!column->counts) PyErr_NoMemory();
    return column->counts != NULL;
  }
  Py_ssize_t item = (Py_ssize_t)item_size(column->kind);
  if (column->size > PY_SSIZE_T_MAX / 2 / item / (row_count + 1)) {
    PyErr_NoMemory();
    return false;
  }
  if (column->fallback != Py_None) {
    bool fits = column->kind == BYTES ? PyTuple_Check(column->fallback) && PyTuple_GET_SIZE(column->fallback) == column->size
                                      : PyBytes_Check(column->fallback) &&
                                            PyBytes_GET_SIZE(column->fallback) == column->size * item;
    if (!fits) {
      PyErr_SetString(PyExc_ValueError, "fallback must be None or hold exactly one row");
      return false;
    }
  }
  if (column->kind != BYTES) {
    column->fixed = PyByteArray_FromStringAndSize(NULL, row_count * column->size * item);
    return column->fixed != NULL;
  }
  return true;
}

/* How many threads share the rows. */
static Py_ssize_t parts_of(const Span *rows, Py_ssize_t row_count, int threads) {
  size_t bytes = 0;
  for (Py_ssize_t r = 0; r < row_count; r++) bytes += span_size(rows[r]);
  Py_ssize_t worthwhile = (Py_ssize_t)(bytes / WORTH_A_THREAD);
  Py_ssize_t parts = worthwhile < threads ? worthwhile : threads;
  return parts < 1 ? 1 : parts < row_count ? parts : row_count ? row_count : 1;
}

/* parse_examples(rows, features, threads=1, forms=None) -> (failure, columns[, numbers])
 *
 * rows: tuple of bytes. features: tuple of (key, kind, size, fallback, empty_hides) with distinct keys.
 * failure: None, or (problem, row, feature, step, detail) of the first row that fails; columns is then None.
 * columns: one per feature. Fixed size: bytearray of numbers or list of bytes, row by row.
 *          Variable size: (values in the same form, bytearray of int64 counts per row).
 *
 * forms: tuple with (wanted, buckets) or None for each feature; only features of variable size have a form. Such a column is (number of
 * values, longest row, list of bytes or None), and its numbers are in `numbers`, a bytearray of int64 and one of floats: one after the other
 * for each column what is wanted of the indices [n, 2], the rows [n], the values [n] (if they are numbers), and the hashes of the
 * strings modulo each of the buckets [n].
 */
PyObject *native_parse_examples(PyObject *module, PyObject *args) {
  PyObject *rows, *features, *given = Py_None, *result = NULL, *lists = NULL, *problem = NULL, *numbers = NULL;
  int threads = 1;
  if (!PyArg_ParseTuple(args, "O!O!|iO", &PyTuple_Type, &rows, &PyTuple_Type, &features, &threads, &given)) return NULL;
  Py_ssize_t row_count = PyTuple_GET_SIZE(rows), count = PyTuple_GET_SIZE(features);
  if (given != Py_None && (!PyTuple_Check(given) || PyTuple_GET_SIZE(given) != count)) {
    PyErr_SetString(PyExc_ValueError, "there must be a form or None for each feature");
    return NULL;
  }
  Names names = {0};
  Span *spans = rows_make(rows);
  if (!spans) return NULL;
  Py_ssize_t parts = parts_of(spans, row_count, threads);
  Column *columns = calloc((size_t)(count * parts) + 1, sizeof *columns);
  PyObject **keys = calloc((size_t)count + 1, sizeof *keys);
  Span *found = calloc((size_t)(count * parts) + 1, sizeof *found);
  Py_ssize_t *orders = calloc((size_t)((count + 1) * parts), sizeof *orders);
  Failure *failures = calloc((size_t)parts, sizeof *failures), *failure = failures;
  Form *forms = calloc((size_t)count + 1, sizeof *forms);
  if (!columns || !keys || !found || !orders || !failures || !forms) {
    PyErr_NoMemory();
    goto done;
  }
  for (Py_ssize_t k = 0; k < count; k++)
    if (!column_make(&columns[k], PyTuple_GET_ITEM(features, k), row_count, &keys[k]) ||
        !form_make(&forms[k], given == Py_None ? Py_None : PyTuple_GET_ITEM(given, k), &columns[k]))
      goto done;
  for (Py_ssize_t p = 1; p < parts; p++)
    memcpy(&columns[p * count], columns, (size_t)count * sizeof *columns);
  if (!names_make(&names, keys, count)) {
    PyErr_NoMemory();
    goto done;
  }

  /* The tuples hold references to all objects that are read, and bytes are immutable, so the GIL is not needed. */
  Py_BEGIN_ALLOW_THREADS
#pragma omp parallel for num_threads((int)parts) if (parts > 1)
  for (Py_ssize_t p = 0; p < parts; p++) {
    Names own = names;
    own.next = orders + p * (count + 1);
    memcpy(own.next, names.next, (size_t)(count + 1) * sizeof *own.next);
    failures[p] = (Failure){FINE, -1, -1, -1, 0};
    take_rows(spans, row_count * p / parts, row_count * (p + 1) / parts, &own, found + p * count, columns + p * count,
              &failures[p]);
  }
  Py_END_ALLOW_THREADS

  while (failure < failures + parts - 1 && !failure->problem) failure++;
  problem = failure_to_python(failure);
  if (!problem) goto done;
  if (failure->problem) {
    result = PyTuple_Pack(2, problem, Py_None);
    goto done;
  }
  if (given != Py_None && !(numbers = forms_write(forms, columns, count, parts, row_count))) goto done;
  lists = PyList_New(count);
  if (!lists) goto done;
  for (Py_ssize_t k = 0; k < count; k++) {
    PyObject *column = forms[k].buckets ? form_to_python(&forms[k], &columns[k], count, parts, row_count)
                                        : column_to_python(&columns[k], count, parts, row_count);
    if (!column) goto done;
    PyList_SET_ITEM(lists, k, column);
  }
  result = numbers ? PyTuple_Pack(3, problem, lists, numbers) : PyTuple_Pack(2, problem, lists);
done:
  Py_XDECREF(numbers);
  Py_XDECREF(problem);
  Py_XDECREF(lists);
  for (Py_ssize_t k = 0; columns && k < count * parts; k++) {
    vector_free(&columns[k].values);
    if (k >= count) continue;
    free(columns[k].counts);
    Py_XDECREF(columns[k].fixed);
  }
  names_free(&names);
  free(forms);
  free(failures);
  free(orders);
  free(found);
  free(keys);
  free(columns);
  free(spans);
  return result;
}

/* sparse_indices(counts) -> (indices, longest)
 *
 * counts: buffer of int64, none negative. indices: bytearray of int64 [total, 2] with (row, position in the row) of each value;
 * longest: the largest count.
 */
PyObject *native_sparse_indices(PyObject *module, PyObject *counts) {
  Py_buffer given;
  if (PyObject_GetBuffer(counts, &given, PyBUF_SIMPLE) < 0) return NULL;
  const int64_t *count = given.buf;
  Py_ssize_t rows = given.len / (Py_ssize_t)sizeof(int64_t);
  int64_t total = 0, longest = 0;
  bool fits = true;
  for (Py_ssize_t r = 0; r < rows && fits; r++) {
    fits = count[r] >= 0 && count[r] <= PY_SSIZE_T_MAX / 16 - total;
    if (fits) total += count[r];
    longest = count[r] > longest ? count[r] : longest;
  }
  PyObject *indices = NULL, *result = NULL;
  if (!fits)
    PyErr_SetString(PyExc_ValueError, "a count is negative, or there are too many values");
  else
    indices = PyByteArray_FromStringAndSize(NULL, total * 16);
  if (indices) {
    int64_t *to = (int64_t *)PyByteArray_AS_STRING(indices);
    for (Py_ssize_t r = 0; r < rows; r++)
      for (int64_t i = 0; i < count[r]; i++) {
        *to++ = r;
        *to++ = i;
      }
    result = Py_BuildValue("(NL)", indices, (long long)longest);
  }
  PyBuffer_Release(&given);
  return result;
}
