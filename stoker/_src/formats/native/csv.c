/* Parses simple CSV records into columns: the fast path.
 *
 *   record  := field (delim field)*          exactly one field per column
 *   field   := one or more bytes other than delim, '"', CR, LF
 *   integer := [+-]? digit{1,18}             in the column's range
 *   float   := [0-9.eE+-]{1,63}, if Python's own conversion accepts all of it
 *
 * For anything else (quotes, empty fields, spaces around numbers, hexadecimal ...) the result is None, and csv.py
 * handles the records. It implements the whole format.
 */
#include "native.h"

typedef enum { TEXT = 0, INT32 = 1, INT64 = 2, FLOAT32 = 3, FLOAT64 = 4 } Type;

static const Py_ssize_t item_sizes[] = {0, 4, 8, 4, 8};

static int take_integer(const char *at, Py_ssize_t size, Type type, char *to) {
  int negative = *at == '-';
  if (*at == '-' || *at == '+') at++, size--;
  if (size < 1 || size > 18) return 0; /* 18 digits cannot overflow */
  int64_t value = 0;
  for (; size; at++, size--) {
    if (*at < '0' || *at > '9') return 0;
    value = 10 * value + (*at - '0');
  }
  if (negative) value = -value;
  if (type == INT64) {
    memcpy(to, &value, sizeof value);
  } else {
    if (value < INT32_MIN || value > INT32_MAX) return 0;
    int32_t narrow = (int32_t)value;
    memcpy(to, &narrow, sizeof narrow);
  }
  return 1;
}

static int take_float(const char *at, Py_ssize_t size, Type type, char *to) {
  char text[64], *end;
  if (size < 1 || size > 63) return 0;
  for (Py_ssize_t i = 0; i < size; i++) {
    char c = at[i];
    if (!((c >= '0' && c <= '9') || c == '.' || c == 'e' || c == 'E' || c == '+' || c == '-')) return 0;
    text[i] = c;
  }
  text[size] = 0;
  double value = PyOS_string_to_double(text, &end, NULL); /* overflows to infinity */
  if (PyErr_Occurred()) {
    PyErr_Clear();
    return 0;
  }
  if (end != text + size) return 0;
  if (type == FLOAT64) {
    memcpy(to, &value, sizeof value);
  } else {
    float narrow = (float)value;
    memcpy(to, &narrow, sizeof narrow);
  }
  return 1;
}

/* Returns 1 on success, 0 if the record is not simple, -1 if an exception is set. */
static int take_record(PyObject *record, Py_ssize_t row, char delim, const Type *types, PyObject **columns,
                       Py_ssize_t count) {
  const char *at = PyBytes_AS_STRING(record), *end = at + PyBytes_GET_SIZE(record);
  for (Py_ssize_t k = 0; k < count; k++) {
    const char *start = at;
    for (; at < end && *at != delim; at++)
      if (*at == '"' || *at == '\r' || *at == '\n') return 0;
    if (at == start || (at == end) != (k == count - 1)) return 0;
    if (types[k] == TEXT) {
      PyObject *field = PyBytes_FromStringAndSize(start, at - start);
      if (!field) return -1;
      PyList_SET_ITEM(columns[k], row, field);
    } else {
      char *to = PyByteArray_AS_STRING(columns[k]) + row * item_sizes[types[k]];
      int ok = types[k] <= INT64 ? take_integer(start, at - start, types[k], to)
                                 : take_float(start, at - start, types[k], to);
      if (!ok) return 0;
    }
    at++; /* skip the delimiter; after the last field this is past the end, but is not read */
  }
  return 1;
}

/* plain_csv(records, types, delim) -> list of columns, or None
 *
 * records: tuple of bytes. types: tuple of 0 (bytes), 1 (int32), 2 (int64), 3 (float32), 4 (float64), at least one.
 * delim: the delimiter byte as a number. A column is a list of bytes or a bytearray of numbers. */
PyObject *native_plain_csv(PyObject *module, PyObject *args) {
  PyObject *records, *type_numbers, *result = NULL;
  unsigned char delim;
  if (!PyArg_ParseTuple(args, "O!O!b", &PyTuple_Type, &records, &PyTuple_Type, &type_numbers, &delim)) return NULL;
  Py_ssize_t rows = PyTuple_GET_SIZE(records), count = PyTuple_GET_SIZE(type_numbers);
  Type *types = calloc((size_t)count + 1, sizeof *types);
  PyObject **columns = calloc((size_t)count + 1, sizeof *columns);
  int state = 1;
  if (!types || !columns) {
    PyErr_NoMemory();
    goto done;
  }
  for (Py_ssize_t k = 0; k < count; k++) {
    long type = PyLong_AsLong(PyTuple_GET_ITEM(type_numbers, k));
    if (type == -1 && PyErr_Occurred()) goto done;
    if (type < TEXT || type > FLOAT64) {
      PyErr_SetString(PyExc_ValueError, "types must be from 0 to 4");
      goto done;
    }
    types[k] = (Type)type;
    columns[k] = type == TEXT ? PyList_New(rows) : PyByteArray_FromStringAndSize(NULL, rows * item_sizes[type]);
    if (!columns[k]) goto done;
  }
  for (Py_ssize_t r = 0; state == 1 && r < rows; r++) {
    PyObject *record = PyTuple_GET_ITEM(records, r);
    state = count && PyBytes_Check(record) ? take_record(record, r, (char)delim, types, columns, count) : 0;
  }
  if (state == 0) {
    result = Py_NewRef(Py_None);
  } else if (state == 1) {
    result = PyList_New(count);
    for (Py_ssize_t k = 0; result && k < count; k++) PyList_SET_ITEM(result, k, Py_NewRef(columns[k]));
  }
done:
  for (Py_ssize_t k = 0; columns && k < count; k++) Py_XDECREF(columns[k]);
  free(columns);
  free(types);
  return result;
}
