/* Fast paths for checkpoints of many tensors: index entries (BundleEntryProto) and the table that contains them.
 * Python versions: sstable.py (write_table, block_entries) and bundle_entries.py (encode_entries, decode_entry). */
#include "native.h"

#include <string.h>

/* A growable byte buffer. */
typedef struct {
  uint8_t *data;
  size_t size, capacity;
} Bytes;

static int reserve(Bytes *out, size_t more) {
  if (out->size + more <= out->capacity) return 1;
  size_t capacity = out->capacity ? out->capacity : 256;
  while (capacity < out->size + more) capacity *= 2;
  uint8_t *data = PyMem_Realloc(out->data, capacity);
  if (!data) {
    PyErr_NoMemory();
    return 0;
  }
  out->data = data;
  out->capacity = capacity;
  return 1;
}

static int put(Bytes *out, const void *data, size_t size) {
  if (!reserve(out, size)) return 0;
  memcpy(out->data + out->size, data, size);
  out->size += size;
  return 1;
}

static size_t varint(uint8_t *into, uint64_t value) {
  size_t size = 0;
  for (; value > 0x7f; value >>= 7) into[size++] = (uint8_t)(value & 0x7f) | 0x80;
  into[size++] = (uint8_t)value;
  return size;
}

static int put_varint(Bytes *out, uint64_t value) {
  uint8_t text[10];
  return put(out, text, varint(text, value));
}

static int put_fixed32(Bytes *out, uint32_t value) {
  uint8_t text[4] = {value, value >> 8, value >> 16, value >> 24};
  return put(out, text, 4);
}

static uint32_t masked(uint32_t crc) { return (crc >> 15 | crc << 17) + 0xa282ead8u; }

/* Returns the value. Sets *at to -1 if the data is truncated or the value has more than 64 bits. */
static uint64_t read_varint(const uint8_t *data, Py_ssize_t size, Py_ssize_t *at) {
  uint64_t value = 0;
  for (int shift = 0; *at >= 0 && *at < size && shift < 64; shift += 7) {
    uint8_t byte = data[(*at)++];
    value |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  *at = -1;
  return 0;
}

/* ---- tables ---- */

typedef struct {
  Bytes data, restarts;
  uint32_t count, since;
  const uint8_t *last;
  size_t last_size;
} Block;

static int block_start(Block *block) {
  block->data.size = block->restarts.size = 0;
  block->count = 1;
  block->since = 0;
  block->last = NULL;
  block->last_size = 0;
  return put_fixed32(&block->restarts, 0);
}

static int block_add(Block *block, uint32_t interval, const uint8_t *key, size_t key_size, const uint8_t *value, size_t size) {
  size_t shared = 0;
  if (block->since < interval) {
    size_t limit = key_size < block->last_size ? key_size : block->last_size;
    while (shared < limit && key[shared] == block->last[shared]) shared++;
  } else {
    if (!put_fixed32(&block->restarts, (uint32_t)block->data.size)) return 0;
    block->count++;
    block->since = 0;
  }
  block->last = key;
  block->last_size = key_size;
  block->since++;
  return put_varint(&block->data, shared) && put_varint(&block->data, key_size - shared) && put_varint(&block->data, size) &&
         put(&block->data, key + shared, key_size - shared) && put(&block->data, value, size);
}

/* Appends the block with its trailer and stores its handle in `handle`. */
static int block_write(Block *block, Bytes *out, Bytes *handle) {
  size_t start = out->size;
  if (!put(out, block->data.data, block->data.size) || !put(out, block->restarts.data, block->restarts.size) ||
      !put_fixed32(out, block->count) || !put(out, "\0", 1))
    return 0;
  uint32_t crc = masked(crc32c_extend(0, out->data + start, out->size - start));
  handle->size = 0;
  return put_varint(handle, start) && put_varint(handle, out->size - start - 1) && put_fixed32(out, crc);
}

/* Returns a short key at or after `before` and, if `after` is given, before `after`. */
static int separator(Bytes *out, const uint8_t *before, size_t before_size, const uint8_t *after, size_t after_size) {
  out->size = 0;
  if (!put(out, before, before_size)) return 0;
  size_t at = 0, limit = before_size < after_size ? before_size : after_size;
  if (after) {
    while (at < limit && before[at] == after[at]) at++;
    if (at >= limit || before[at] == 0xff || before[at] + 1 >= after[at]) return 1;
  } else {
    while (at < before_size && before[at] == 0xff) at++;
    if (at == before_size) return 1;
  }
  out->data[at]++;
  out->size = at + 1;
  return 1;
}

static void block_free(Block *block) {
  PyMem_Free(block->data.data);
  PyMem_Free(block->restarts.data);
}

/* write_table(keys, values, block_size, interval, magic) -> bytes, or None if the keys are not strictly increasing. */
PyObject *native_write_table(PyObject *module, PyObject *args) {
  PyObject *keys, *values;
  Py_ssize_t block_size;
  unsigned int interval;
  Py_buffer magic;
  if (!PyArg_ParseTuple(args, "O!O!nIy*", &PyList_Type, &keys, &PyList_Type, &values, &block_size, &interval, &magic)) return NULL;
  Bytes out = {0}, handle = {0}, key = {0}, metaindex = {0};
  Block block = {{0}}, index = {{0}};
  PyObject *result = NULL;
  Py_ssize_t count = PyList_GET_SIZE(keys), pending = -1;
  if (PyList_GET_SIZE(values) != count) {
    PyErr_SetString(PyExc_ValueError, "as many values as keys");
    goto done;
  }
  if (!block_start(&block) || !block_start(&index)) goto done;
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject *name = PyList_GET_ITEM(keys, i), *value = PyList_GET_ITEM(values, i);
    if (!PyBytes_Check(name) || !PyBytes_Check(value)) {
      PyErr_SetString(PyExc_TypeError, "keys and values are bytes");
      goto done;
    }
    const uint8_t *text = (const uint8_t *)PyBytes_AS_STRING(name);
    size_t size = (size_t)PyBytes_GET_SIZE(name);
    if (i) {
      PyObject *before = PyList_GET_ITEM(keys, i - 1);
      size_t other = (size_t)PyBytes_GET_SIZE(before);
      int order = memcmp(PyBytes_AS_STRING(before), text, size < other ? size : other);
      if (order > 0 || (order == 0 && other >= size)) {
        result = Py_NewRef(Py_None);
        goto done;
      }
    }
    if (pending >= 0) {
      PyObject *last = PyList_GET_ITEM(keys, pending);
      if (!separator(&key, (const uint8_t *)PyBytes_AS_STRING(last), (size_t)PyBytes_GET_SIZE(last), text, size)) goto done;
      if (!block_add(&index, 1, key.data, key.size, handle.data, handle.size)) goto done;
      pending = -1;
    }
    if (!block_add(&block, interval, text, size, (const uint8_t *)PyBytes_AS_STRING(value), (size_t)PyBytes_GET_SIZE(value)))
      goto done;
    if ((Py_ssize_t)(block.data.size + block.restarts.size + 4) >= block_size) {
      if (!block_write(&block, &out, &handle) || !block_start(&block)) goto done;
      pending = i;
    }
  }
  if (block.data.size) {
    if (!block_write(&block, &out, &handle) || !block_start(&block)) goto done;
    pending = count - 1;
  }
  if (!block_write(&block, &out, &metaindex)) goto done;
  if (pending >= 0) {
    PyObject *last = PyList_GET_ITEM(keys, pending);
    if (!separator(&key, (const uint8_t *)PyBytes_AS_STRING(last), (size_t)PyBytes_GET_SIZE(last), NULL, 0)) goto done;
    if (!block_add(&index, 1, key.data, key.size, handle.data, handle.size)) goto done;
  }
  if (!block_write(&index, &out, &handle) || !put(&metaindex, handle.data, handle.size)) goto done;
  static const uint8_t zeros[40] = {0};
  if (metaindex.size > 40 || !put(&metaindex, zeros, 40 - metaindex.size) || !put(&out, metaindex.data, 40) ||
      !put(&out, magic.buf, (size_t)magic.len))
    goto done;
  result = PyBytes_FromStringAndSize((const char *)out.data, (Py_ssize_t)out.size);
done:
  PyBuffer_Release(&magic);
  block_free(&block);
  block_free(&index);
  PyMem_Free(out.data);
  PyMem_Free(handle.data);
  PyMem_Free(key.data);
  PyMem_Free(metaindex.data);
  return result;
}

/* block_entries(block) -> [(key, value)], or None if the block is damaged. */
PyObject *native_block_entries(PyObject *module, PyObject *block) {
  char *text;
  Py_ssize_t size;
  if (PyBytes_AsStringAndSize(block, &text, &size) < 0) return NULL;
  const uint8_t *data = (const uint8_t *)text;
  if (size < 4) Py_RETURN_NONE;
  uint32_t restarts;
  memcpy(&restarts, data + size - 4, 4);
  Py_ssize_t end = size - 4 - 4 * (Py_ssize_t)restarts, at = 0;
  if (end < 0) Py_RETURN_NONE;
  PyObject *found = PyList_New(0), *before = NULL;
  if (!found) return NULL;
  while (at < end) {
    uint64_t shared = read_varint(data, end, &at), unshared = read_varint(data, end, &at), length = read_varint(data, end, &at);
    uint64_t known = before ? (uint64_t)PyBytes_GET_SIZE(before) : 0;
    if (at < 0 || shared > known || unshared > (uint64_t)(end - at) || length > (uint64_t)(end - at) - unshared) {
      Py_DECREF(found);
      Py_RETURN_NONE;
    }
    PyObject *key = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(shared + unshared));
    PyObject *value = key ? PyBytes_FromStringAndSize((const char *)data + at + unshared, (Py_ssize_t)length) : NULL;
    PyObject *pair = value ? PyTuple_Pack(2, key, value) : NULL;
    int failed = !pair;
    if (pair) {
      if (shared) memcpy(PyBytes_AS_STRING(key), PyBytes_AS_STRING(before), (size_t)shared);
      memcpy(PyBytes_AS_STRING(key) + shared, data + at, (size_t)unshared);
      failed = PyList_Append(found, pair) < 0;
    }
    before = key; /* the list holds a reference */
    Py_XDECREF(key);
    Py_XDECREF(value);
    Py_XDECREF(pair);
    if (failed) {
      Py_DECREF(found);
      return NULL;
    }
    at += (Py_ssize_t)(unshared + length);
  }
  return found;
}

/* ---- index entries ---- */

static int put_entry(Bytes *out, uint64_t kind, const Py_buffer *view, uint64_t offset, uint32_t crc) {
  uint8_t dim[12], shape[16 * 64];
  size_t shape_size = 0;
  if (view->ndim > 64) return 0;
  for (int i = 0; i < view->ndim; i++) {
    size_t size = 0;
    if (view->shape[i]) {
      dim[size++] = 0x08;
      size += varint(dim + size, (uint64_t)view->shape[i]);
    }
    shape[shape_size++] = 0x12;
    shape[shape_size++] = (uint8_t)size;
    memcpy(shape + shape_size, dim, size);
    shape_size += size;
  }
  out->size = 0;
  return put(out, "\x08", 1) && put_varint(out, kind) && put(out, "\x12", 1) && put_varint(out, shape_size) &&
         put(out, shape, shape_size) && (!offset || (put(out, "\x20", 1) && put_varint(out, offset))) &&
         (!view->len || (put(out, "\x28", 1) && put_varint(out, (uint64_t)view->len))) &&
         (!crc || (put(out, "\x35", 1) && put_fixed32(out, crc)));
}

/* encode_entries(arrays, kinds, offset) -> [entry]: arrays are C-contiguous buffers, kinds are their dtype numbers. */
PyObject *native_encode_entries(PyObject *module, PyObject *args) {
  PyObject *arrays;
  Py_buffer kinds;
  unsigned long long offset;
  if (!PyArg_ParseTuple(args, "O!y*K", &PyList_Type, &arrays, &kinds, &offset)) return NULL;
  Py_ssize_t count = PyList_GET_SIZE(arrays);
  PyObject *found = kinds.len == count ? PyList_New(count) : NULL;
  if (kinds.len != count) PyErr_SetString(PyExc_ValueError, "as many kinds as arrays");
  Bytes out = {0};
  for (Py_ssize_t i = 0; found && i < count; i++) {
    Py_buffer view;
    if (PyObject_GetBuffer(PyList_GET_ITEM(arrays, i), &view, PyBUF_ND | PyBUF_C_CONTIGUOUS) < 0) {
      Py_CLEAR(found);
      break;
    }
    uint32_t crc;
    if (view.len > 1 << 16) {
      Py_BEGIN_ALLOW_THREADS
      crc = crc32c_extend(0, view.buf, (size_t)view.len);
      Py_END_ALLOW_THREADS
    } else {
      crc = crc32c_extend(0, view.buf, (size_t)view.len);
    }
    int done = put_entry(&out, ((const uint8_t *)kinds.buf)[i], &view, offset, masked(crc));
    offset += (unsigned long long)view.len;
    PyBuffer_Release(&view);
    PyObject *entry = done ? PyBytes_FromStringAndSize((const char *)out.data, (Py_ssize_t)out.size) : NULL;
    if (!entry) {
      if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "more than 64 dimensions");
      Py_CLEAR(found);
      break;
    }
    PyList_SET_ITEM(found, i, entry);
  }
  PyMem_Free(out.data);
  PyBuffer_Release(&kinds);
  return found;
}

/* Returns the sizes of a TensorShapeProto, or NULL without an exception if it contains anything else. */
static PyObject *shape_of(const uint8_t *data, Py_ssize_t size) {
  int64_t sizes[64];
  int rank = 0;
  Py_ssize_t at = 0;
  while (at < size) {
    if (data[at++] != 0x12 || rank == 64) return NULL;
    uint64_t length = read_varint(data, size, &at);
    if (at < 0 || length > (uint64_t)(size - at)) return NULL;
    Py_ssize_t end = at + (Py_ssize_t)length;
    int64_t value = 0;
    if (length) {
      if (data[at++] != 0x08) return NULL;
      value = (int64_t)read_varint(data, end, &at);
      if (at != end) return NULL;
    }
    sizes[rank++] = value;
  }
  PyObject *shape = PyTuple_New(rank);
  for (int i = 0; shape && i < rank; i++) {
    PyObject *number = PyLong_FromLongLong(sizes[i]);
    if (!number) Py_CLEAR(shape);
    else PyTuple_SET_ITEM(shape, i, number);
  }
  return shape;
}

/* decode_entry(entry) -> (kind, shape, shard, offset, size, crc), or None if it is invalid or has other fields. */
PyObject *native_decode_entry(PyObject *module, PyObject *entry) {
  char *text;
  Py_ssize_t size, at = 0;
  if (PyBytes_AsStringAndSize(entry, &text, &size) < 0) return NULL;
  const uint8_t *data = (const uint8_t *)text;
  uint64_t kind = 0, shard = 0, offset = 0, bytes = 0;
  uint32_t crc = 0;
  PyObject *shape = NULL;
  while (at < size) {
    uint8_t tag = data[at++];
    if (tag == 0x08) kind = read_varint(data, size, &at);
    else if (tag == 0x18) shard = read_varint(data, size, &at);
    else if (tag == 0x20) offset = read_varint(data, size, &at);
    else if (tag == 0x28) bytes = read_varint(data, size, &at);
    else if (tag == 0x35 && size - at >= 4) {
      memcpy(&crc, data + at, 4);
      at += 4;
    } else if (tag == 0x12 && !shape) {
      uint64_t length = read_varint(data, size, &at);
      if (at < 0 || length > (uint64_t)(size - at)) break;
      shape = shape_of(data + at, (Py_ssize_t)length);
      if (!shape) {
        if (PyErr_Occurred()) return NULL;
        Py_RETURN_NONE;
      }
      at += (Py_ssize_t)length;
    } else {
      at = -1;
    }
    if (at < 0) break;
  }
  if (at != size || (kind | shard | offset | bytes) >> 62) {
    Py_XDECREF(shape);
    Py_RETURN_NONE;
  }
  if (!shape) shape = PyTuple_New(0);
  return shape ? Py_BuildValue("KNKKKI", kind, shape, shard, offset, bytes, crc) : NULL;
}

/* first_damaged(buffer, begin, entries) -> index of the first entry with a wrong checksum, or -1.
 * `begin` is the file offset of the buffer, and entries have the form that decode_entry returns. */
PyObject *native_first_damaged(PyObject *module, PyObject *args) {
  Py_buffer buffer;
  unsigned long long begin;
  PyObject *entries;
  if (!PyArg_ParseTuple(args, "y*KO!", &buffer, &begin, &PyList_Type, &entries)) return NULL;
  Py_ssize_t damaged = -1;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(entries) && damaged < 0 && !PyErr_Occurred(); i++) {
    PyObject *entry = PyList_GET_ITEM(entries, i);
    if (!PyTuple_Check(entry) || PyTuple_GET_SIZE(entry) != 6) {
      PyErr_SetString(PyExc_TypeError, "entries are tuples of six");
      break;
    }
    unsigned long long offset = PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(entry, 3));
    unsigned long long size = PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(entry, 4));
    unsigned long long crc = PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(entry, 5));
    if (PyErr_Occurred()) break;
    if (offset < begin || offset - begin > (unsigned long long)buffer.len || size > (unsigned long long)buffer.len - (offset - begin)) {
      PyErr_SetString(PyExc_ValueError, "an entry lies outside of the buffer");
      break;
    }
    const uint8_t *data = (const uint8_t *)buffer.buf + (offset - begin);
    if (masked(crc32c_extend(0, data, (size_t)size)) != (uint32_t)crc) damaged = i;
  }
  PyBuffer_Release(&buffer);
  return PyErr_Occurred() ? NULL : PyLong_FromSsize_t(damaged);
}
