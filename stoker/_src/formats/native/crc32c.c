/* CRC-32C (Castagnoli), reflected, polynomial 0x82f63b78: uses the processor's CRC instruction if it has one
 * (detected at run time), and otherwise tables that process eight bytes at a time. */
#include "native.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define HAVE_SSE42 1
#include <nmmintrin.h>
#endif

static uint32_t tables[8][256];
static int ready = 0;

static void make_tables(void) {
  for (uint32_t i = 0; i < 256; i++) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
    tables[0][i] = crc;
  }
  for (int k = 1; k < 8; k++)
    for (int i = 0; i < 256; i++) tables[k][i] = tables[k - 1][i] >> 8 ^ tables[0][tables[k - 1][i] & 0xff];
}

static uint32_t extend_by_table(uint32_t crc, const uint8_t *data, size_t size) {
  for (; size >= 8; data += 8, size -= 8) {
    crc ^= (uint32_t)data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16 | (uint32_t)data[3] << 24;
    crc = tables[7][crc & 0xff] ^ tables[6][crc >> 8 & 0xff] ^ tables[5][crc >> 16 & 0xff] ^ tables[4][crc >> 24] ^
          tables[3][data[4]] ^ tables[2][data[5]] ^ tables[1][data[6]] ^ tables[0][data[7]];
  }
  for (; size; data++, size--) crc = crc >> 8 ^ tables[0][(crc ^ *data) & 0xff];
  return crc;
}

#ifdef HAVE_SSE42
__attribute__((target("sse4.2"))) static uint32_t extend_by_instruction(uint32_t crc, const uint8_t *data, size_t size) {
  uint64_t wide = crc;
  for (; size >= 8; data += 8, size -= 8) {
    uint64_t word;
    memcpy(&word, data, 8);
    wide = _mm_crc32_u64(wide, word);
  }
  crc = (uint32_t)wide;
  for (; size; data++, size--) crc = _mm_crc32_u8(crc, *data);
  return crc;
}
#endif

static uint32_t (*extend)(uint32_t, const uint8_t *, size_t) = extend_by_table;

/* Called once, with the GIL held, before any checksum is computed. */
void crc32c_choose(int allow_instruction) {
  if (!ready) {
    make_tables();
    ready = 1;
  }
  extend = extend_by_table;
#ifdef HAVE_SSE42
  if (allow_instruction && __builtin_cpu_supports("sse4.2")) extend = extend_by_instruction;
#else
  (void)allow_instruction;
#endif
}

uint32_t crc32c_extend(uint32_t crc, const uint8_t *data, size_t size) { return ~extend(~crc, data, size); }

/* crc32c(data, crc=0, by_table=False) -> int */
PyObject *native_crc32c(PyObject *module, PyObject *args) {
  Py_buffer data;
  unsigned int crc = 0;
  int by_table = 0;
  if (!PyArg_ParseTuple(args, "y*|Ip", &data, &crc, &by_table)) return NULL;
  Py_BEGIN_ALLOW_THREADS
  crc = by_table ? ~extend_by_table(~crc, data.buf, (size_t)data.len) : crc32c_extend(crc, data.buf, (size_t)data.len);
  Py_END_ALLOW_THREADS
  PyBuffer_Release(&data);
  return PyLong_FromUnsignedLong(crc);
}
