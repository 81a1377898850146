/* The extension module stoker._src.formats._native. Its functions have twins in Python with the same results:
 * framing.py (frame, split), example_python.py (parse_examples, parse_sequence_examples) and csv.py (plain_csv). */
#include "native.h"

void crc32c_choose(int allow_instruction);

static PyMethodDef functions[] = {
    {"crc32c", native_crc32c, METH_VARARGS, "crc32c(data, crc=0, by_table=False): CRC-32C of data, continued from crc."},
    {"frame", native_frame, METH_O, "frame(record): the record with its length and checksums."},
    {"split", native_split, METH_VARARGS, "split(buffer, start): (whole records, position, status)."},
    {"parse_examples", native_parse_examples, METH_VARARGS, "parse_examples(rows, features): (failure, columns)."},
    {"parse_sequence_examples", native_parse_sequence_examples, METH_VARARGS,
     "parse_sequence_examples(rows, context, lists): (failure, context columns, list columns)."},
    {"plain_csv", native_plain_csv, METH_VARARGS, "plain_csv(records, types, delim): columns, or None."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_native", "Record framing and Example parsing at speed.", -1, functions, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__native(void) {
  crc32c_choose(1);
  return PyModule_Create(&definition);
}
