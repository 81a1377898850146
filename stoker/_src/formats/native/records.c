/* TFRecord framing.
 *
 *   file   := record*
 *   record := length  (8 bytes, little endian)
 *             masked CRC-32C of those 8 bytes  (4 bytes, little endian)
 *             data    (length bytes)
 *             masked CRC-32C of the data       (4 bytes, little endian)
 *
 * The mask (rotate right by 15, add 0xa282ead8) avoids the problems of computing a CRC over data that contains CRCs.
 */
#include "native.h"

enum { HEADER = 12, FOOTER = 4 };

/* The status that split() returns. framing.py defines the same numbers. */
enum { NEED_MORE = 0, BAD_LENGTH = 1, BAD_DATA = 2 };

/* Below this size, it is faster to keep the GIL than to release and reacquire it. */
enum { WORTH_UNLOCKING = 1 << 16 };

static uint32_t masked(const uint8_t *data, size_t size) {
  uint32_t crc = crc32c_extend(0, data, size);
  return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static void put32(uint8_t *to, uint32_t value) {
  for (int i = 0; i < 4; i++) to[i] = (uint8_t)(value >> 8 * i);
}

static uint32_t get32(const uint8_t *from) {
  return (uint32_t)from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 | (uint32_t)from[3] << 24;
}

static uint64_t get64(const uint8_t *from) { return get32(from) | (uint64_t)get32(from + 4) << 32; }

static void put_record(uint8_t *to, const uint8_t *data, size_t size) {
  for (int i = 0; i < 8; i++) to[i] = (uint8_t)((uint64_t)size >> 8 * i);
  put32(to + 8, masked(to, 8));
  memcpy(to + HEADER, data, size);
  put32(to + HEADER + size, masked(data, size));
}

/* frame(record) -> bytes: the record in its file format. */
PyObject *native_frame(PyObject *module, PyObject *record) {
  Py_buffer data;
  if (PyObject_GetBuffer(record, &data, PyBUF_SIMPLE)) return NULL;
  PyObject *framed = NULL;
  if (data.len > PY_SSIZE_T_MAX - HEADER - FOOTER - 64) {
    PyErr_NoMemory();
  } else {
    framed = PyBytes_FromStringAndSize(NULL, data.len + HEADER + FOOTER);
  }
  if (framed) {
    uint8_t *to = (uint8_t *)PyBytes_AS_STRING(framed);
    if (data.len < WORTH_UNLOCKING) {
      put_record(to, data.buf, (size_t)data.len);
    } else {
      Py_BEGIN_ALLOW_THREADS
      put_record(to, data.buf, (size_t)data.len);
      Py_END_ALLOW_THREADS
    }
  }
  PyBuffer_Release(&data);
  return framed;
}

/* split(buffer, start) -> (records, position, status)
 *
 * Extracts all complete records from buffer[start:]. `position` is the offset of the first byte after them, and
 * `status` is the reason for stopping there. NEED_MORE: the buffer ends before or inside the next record. BAD_LENGTH or
 * BAD_DATA: the checksum of its length or data is wrong.
 */
PyObject *native_split(PyObject *module, PyObject *args) {
  Py_buffer buffer;
  Py_ssize_t start;
  if (!PyArg_ParseTuple(args, "y*n", &buffer, &start)) return NULL;
  const uint8_t *bytes = buffer.buf;
  PyObject *records = NULL, *result = NULL;
  if (start < 0 || start > buffer.len) {
    PyErr_SetString(PyExc_ValueError, "start lies outside the buffer");
    goto done;
  }
  size_t size = (size_t)buffer.len, position = (size_t)start;
  int status = NEED_MORE;

  /* Verify checksums first, without the GIL. No memory is allocated for a record before it is known to be complete. */
  Py_BEGIN_ALLOW_THREADS
  while (size - position >= HEADER) {
    const uint8_t *record = bytes + position;
    if (masked(record, 8) != get32(record + 8)) {
      status = BAD_LENGTH;
      break;
    }
    uint64_t length = get64(record);
    size_t left = size - position - HEADER;
    if (left < FOOTER || length > left - FOOTER) break;
    if (masked(record + HEADER, (size_t)length) != get32(record + HEADER + length)) {
      status = BAD_DATA;
      break;
    }
    position += HEADER + (size_t)length + FOOTER;
  }
  Py_END_ALLOW_THREADS

  records = PyList_New(0);
  if (!records) goto done;
  for (size_t at = (size_t)start; at < position;) {
    size_t length = position - at < HEADER ? 0 : (size_t)get64(bytes + at);
    /* The buffer may be a bytearray that another thread has modified in the meantime, so check the length again. */
    if (position - at < HEADER + FOOTER || length > position - at - HEADER - FOOTER) {
      PyErr_SetString(PyExc_BufferError, "the buffer changed while it was read");
      goto done;
    }
    PyObject *record = PyBytes_FromStringAndSize((const char *)bytes + at + HEADER, (Py_ssize_t)length);
    if (!record) goto done;
    int failed = PyList_Append(records, record);
    Py_DECREF(record);
    if (failed) goto done;
    at += HEADER + length + FOOTER;
  }
  result = Py_BuildValue("(Oni)", records, (Py_ssize_t)position, status);
done:
  Py_XDECREF(records);
  PyBuffer_Release(&buffer);
  return result;
}
