/* Shared declarations of the extension. Each .c file defines some of its functions, and module.c lists them all. */
#ifndef STOKER_NATIVE_H
#define STOKER_NATIVE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* crc32c.c */
uint32_t crc32c_extend(uint32_t crc, const uint8_t *data, size_t size);
PyObject *native_crc32c(PyObject *module, PyObject *args);

/* records.c */
PyObject *native_frame(PyObject *module, PyObject *record);
PyObject *native_split(PyObject *module, PyObject *args);

/* examples.c */
PyObject *native_parse_examples(PyObject *module, PyObject *args);
PyObject *native_sparse_indices(PyObject *module, PyObject *counts);

/* sequences.c */
PyObject *native_parse_sequence_examples(PyObject *module, PyObject *args);

/* csv.c */
PyObject *native_plain_csv(PyObject *module, PyObject *args);

/* bundles.c */
PyObject *native_write_table(PyObject *module, PyObject *args);
PyObject *native_block_entries(PyObject *module, PyObject *block);
PyObject *native_encode_entries(PyObject *module, PyObject *args);
PyObject *native_decode_entry(PyObject *module, PyObject *entry);
PyObject *native_first_damaged(PyObject *module, PyObject *args);

/* files.c */
PyObject *native_read_files(PyObject *module, PyObject *paths);

#endif
