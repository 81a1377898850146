/* The extension module stoker._src.formats._native. Its functions have Python versions with the same results:
 * framing.py (frame, split), example_python.py (parse_examples, parse_sequence_examples, sparse_indices), csv.py (plain_csv),
 * sstable.py (write_table, block_entries) and bundle_entries.py (encode_entries, decode_entry, first_damaged)
 * and gfile.py (read_files). */
#include "native.h"

void crc32c_choose(int allow_instruction);

static PyMethodDef functions[] = {
    {"crc32c", native_crc32c, METH_VARARGS, "crc32c(data, crc=0, by_table=False): CRC-32C of data, continued from crc."},
    {"frame", native_frame, METH_O, "frame(record): the record with its length and checksums."},
    {"split", native_split, METH_VARARGS, "split(buffer, start): (whole records, position, status)."},
    {"parse_examples", native_parse_examples, METH_VARARGS, "parse_examples(rows, features, threads=1): (failure, columns)."},
    {"parse_sequence_examples", native_parse_sequence_examples, METH_VARARGS,
     "parse_sequence_examples(rows, context, lists): (failure, context columns, list columns)."},
    {"sparse_indices", native_sparse_indices, METH_O, "sparse_indices(counts): (indices, longest)."},
    {"plain_csv", native_plain_csv, METH_VARARGS, "plain_csv(records, types, delim): columns, or None."},
    {"write_table", native_write_table, METH_VARARGS, "write_table(keys, values, block_size, interval, magic): the table."},
    {"block_entries", native_block_entries, METH_O, "block_entries(block): [(key, value)], or None."},
    {"encode_entries", native_encode_entries, METH_VARARGS, "encode_entries(arrays, kinds, offset): [entry]."},
    {"decode_entry", native_decode_entry, METH_O, "decode_entry(entry): (kind, shape, shard, offset, size, crc), or None."},
    {"first_damaged", native_first_damaged, METH_VARARGS, "first_damaged(buffer, begin, entries): a number, or -1."},
    {"read_files", native_read_files, METH_O, "read_files(paths): the contents of each, or None."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_native", "Record framing and Example parsing at speed.", -1, functions, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__native(void) {
  crc32c_choose(1);
  return PyModule_Create(&definition);
}
