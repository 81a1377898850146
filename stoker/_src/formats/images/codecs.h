#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

PyObject *native_decode_pngs(PyObject *self, PyObject *args);
PyObject *native_jpeg_header(PyObject *self, PyObject *file);
