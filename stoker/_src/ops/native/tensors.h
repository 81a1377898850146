/* Access to the memory of torch tensors. Callers check dtype, device, layout and size before they pass a tensor. */
#ifndef STOKER_TENSORS_H
#define STOKER_TENSORS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

static PyObject *str_data_ptr; /* set by tensors_ready */

static int tensors_ready(void) {
    str_data_ptr = PyUnicode_InternFromString("data_ptr");
    return str_data_ptr != NULL;
}

/* Stores the address of a tensor's elements. Returns 0 with an exception set on failure. */
static int tensor_data(PyObject *tensor, void *address) {
    PyObject *number = PyObject_CallMethodNoArgs(tensor, str_data_ptr);
    if (number == NULL) return 0;
    *(void **)address = PyLong_AsVoidPtr(number);
    Py_DECREF(number);
    return !PyErr_Occurred();
}

/* For PyArg_ParseTuple's "O&": a tensor's address. */
static inline int to_address(PyObject *tensor, void *address) { return tensor_data(tensor, address); }

/* The same, or NULL for None. */
static inline int to_address_or_null(PyObject *tensor, void *address) {
    if (tensor != Py_None) return tensor_data(tensor, address);
    *(void **)address = NULL;
    return 1;
}

#endif
