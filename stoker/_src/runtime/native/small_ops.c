/* Small ops: many ops on small tensors in one call, whatever the sizes turn out to be.
 *
 * runtime/plan/small_ops.py builds a Chain. What one op passes to the next is memory of the call, not a tensor. An op that has no result here (its inputs
 * are large, of other types, or wrong) runs by its own kernel. */
#include "small_functions.h"

#include <stddef.h>

typedef int (*Run)(Call *, const Entry *);

#define OPS(X)                                                                                                                          \
    X(shape) X(size) X(rank) X(reshape) X(expand_dims) X(squeeze) X(transpose) X(pack) X(concat) X(strided_slice) X(strided_slice_grad) \
    X(slice) X(broadcast_to) X(fill) X(zeros_like) X(range) X(one_hot) X(add) X(sub) X(mul) X(max) X(min) X(div) X(div_no_nan) X(less)   \
    X(less_equal) X(greater) X(greater_equal) X(equal) X(not_equal) X(and) X(or) X(floor_div) X(floor_mod) X(neg) X(square) X(abs)       \
    X(sqrt) X(not) X(cast) X(add_n) X(select) X(where) X(sum) X(mean) X(all) X(any) X(reduce_max) X(reduce_min) X(prod)                  \
    X(gradient_axes) X(bucketize) X(assert) X(gather) X(gather_nd) X(scatter_nd) X(unique) X(partition) X(stitch) X(sparse_segments)     \
    X(sparse_segments_grad) X(segment_sum) X(segment_mean) X(segment_max) X(fill_empty_rows) X(sparse_reshape) X(sparse_to_dense) X(exp) X(log) X(log1p) X(tanh)     \
    X(sigmoid) X(rsqrt) X(reciprocal) X(relu) X(tanh_grad) X(sigmoid_grad) X(relu_grad) X(sqrt_grad) X(rsqrt_grad) X(reciprocal_grad)    \
    X(square_difference) X(leaky_relu) X(leaky_relu_grad) X(matmul) X(bias_add) X(bias_add_grad) X(softmax) X(l2_loss) X(tile) X(pad)    \
    X(split) X(split_sizes) X(unpack) X(shapes) X(concat_offset) X(ones_like)
#define NAMED(NAME) {#NAME, op_##NAME},

static const struct {
    const char *name;
    Run run;
} ops[] = {OPS(NAMED)};
enum { OP_COUNT = sizeof ops / sizeof *ops };

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    Torch torch;
    PyObject *constants, *kernels, *code, *results, *wanted, *kinds; /* tuples of tensors and of functions; bytes of int64, of int64, of flags and of types */
    Entry *entries;
    Py_ssize_t inputs, constant_count, entry_count, result_count, value_count;
    Value *known; /* the values of constants */
} Chain;

/* The op by its own kernel. */
static int run_kernel(const Chain *self, Call *c, Py_ssize_t at) {
    const Entry *e = &self->entries[at];
    int done = FAILED;
    PyObject **given = PyMem_Malloc(((size_t)e->given + 1) * sizeof *given), *results = NULL;
    if (given == NULL) {
        PyErr_NoMemory();
        return FAILED;
    }
    for (int k = 0; k < e->outputs; k++) empty_value(&c->values[e->output[k]]);
    for (int64_t i = 0; i < e->given; i++)
        if ((given[i] = as_object(c, &c->values[e->inputs[i]])) == NULL) goto done;
    results = PyObject_Vectorcall(PyTuple_GET_ITEM(self->kernels, at), given, (size_t)e->given, NULL);
    if (results == NULL) goto done;
    if (!PyTuple_Check(results) || PyTuple_GET_SIZE(results) != e->outputs) {
        PyErr_SetString(PyExc_SystemError, "a kernel has another number of results than its op");
        goto done;
    }
    for (int k = 0; k < e->outputs; k++) {
        Value *v = &c->values[e->output[k]];
        v->object = Py_NewRef(PyTuple_GET_ITEM(results, k));
        v->state = UNSEEN;
    }
    done = DONE;
done:
    PyMem_Free(given);
    Py_XDECREF(results);
    return done;
}

static PyObject *call(PyObject *callable, PyObject *const *args, size_t flags, PyObject *keywords) {
    Chain *self = (Chain *)callable;
    if (PyVectorcall_NARGS(flags) != self->inputs || keywords != NULL) {
        PyErr_Format(PyExc_TypeError, "small ops with %zd inputs were given %zd", self->inputs, PyVectorcall_NARGS(flags));
        return NULL;
    }
    Call c = {&self->torch, PyBytes_AS_STRING(self->wanted), PyBytes_AS_STRING(self->kinds), NULL, NULL, NULL, 0};
    PyObject *results = NULL;
    c.values = PyMem_Calloc((size_t)self->value_count + 1, sizeof *c.values);
    if (c.values == NULL) return PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < self->inputs; i++) {
        c.values[i].object = Py_NewRef(args[i]);
        c.values[i].state = UNSEEN;
    }
    for (Py_ssize_t i = 0; i < self->constant_count; i++) {
        Value *v = &c.values[self->inputs + i];
        *v = self->known[i];
        Py_XINCREF(v->object);
        Py_XINCREF(v->holder);
    }
    for (Py_ssize_t at = 0; at < self->entry_count; at++) {
        const Entry *e = &self->entries[at];
        int done = ops[e->op].run(&c, e);
        if (done == REFUSED) done = run_kernel(self, &c, at);
        if (done == FAILED) goto done;
        for (int i = 0; i < e->freed; i++) empty_value(&c.values[e->free[i]]);
    }
    const int64_t *wanted = (const int64_t *)PyBytes_AS_STRING(self->results);
    results = PyTuple_New(self->result_count);
    for (Py_ssize_t i = 0; results != NULL && i < self->result_count; i++) {
        PyObject *made = as_object(&c, &c.values[wanted[i]]);
        if (made == NULL)
            Py_CLEAR(results);
        else
            PyTuple_SET_ITEM(results, i, Py_NewRef(made));
    }
done:
    for (Py_ssize_t i = 0; i < self->value_count; i++) empty_value(&c.values[i]);
    PyMem_Free(c.values);
    while (c.chunks != NULL) {
        Chunk *next = c.chunks->next;
        PyMem_RawFree(c.chunks);
        c.chunks = next;
    }
    return results;
}

/* ---- making one ---- */

/* Takes `many` numbers of the code, and checks that each `step`-th of them names a value. Returns NULL with an exception set if that is not so. */
static const int64_t *taken(const int64_t **code, const int64_t *end, int64_t many, int64_t step, int64_t values) {
    const int64_t *first = *code;
    int fine = many >= 0 && many <= end - first;
    for (int64_t i = 0; fine && step && i < many; i += step) fine = first[i] >= 0 && first[i] < values;
    if (!fine) {
        PyErr_SetString(PyExc_ValueError, "the code of small ops is not well formed");
        return NULL;
    }
    *code += many;
    return first;
}

static int read_entry(Entry *e, const int64_t **code, const int64_t *end, int64_t values) {
    const int64_t *head = taken(code, end, 6, 0, values);
    if (head == NULL) return 0;
    int fine = head[0] >= 0 && head[0] < OP_COUNT;
    for (int i = 1; i < 6; i++) fine &= head[i] >= 0 && head[i] < 1 << 20;
    if (!fine) {
        PyErr_SetString(PyExc_ValueError, "the code of small ops is not well formed");
        return 0;
    }
    *e = (Entry){(int)head[0], (int)head[1], (int)head[3], (int)head[4], (int)head[5], NULL, NULL, NULL, NULL, NULL, head[2]};
    if ((e->argument = taken(code, end, 3 * head[1], 0, values)) == NULL) return 0;
    if ((e->inputs = taken(code, end, head[2], 1, values)) == NULL) return 0;
    if ((e->output = taken(code, end, head[3], 1, values)) == NULL) return 0;
    if ((e->number = taken(code, end, head[4], 0, values)) == NULL) return 0;
    if ((e->free = taken(code, end, head[5], 1, values)) == NULL) return 0;
    for (int i = 0; i < e->arguments; i++) {
        const int64_t *range = e->argument + 3 * i;
        if (range[0] < 0 || range[1] < 0 || range[0] > e->given || range[1] > e->given - range[0]) {
            PyErr_SetString(PyExc_ValueError, "the code of small ops is not well formed");
            return 0;
        }
    }
    return 1;
}

static int chain_clear(Chain *self) {
    for (Py_ssize_t i = 0; self->known != NULL && i < self->constant_count; i++) empty_value(&self->known[i]);
    Py_CLEAR(self->constants);
    Py_CLEAR(self->kernels);
    Py_CLEAR(self->torch.tensor_type);
    Py_CLEAR(self->torch.empty);
    Py_CLEAR(self->torch.names);
    for (int i = 0; i < KINDS; i++) Py_CLEAR(self->torch.dtypes[i]);
    return 0;
}

static int chain_traverse(Chain *self, visitproc visit, void *arg) {
    Py_VISIT(self->constants);
    Py_VISIT(self->kernels);
    Py_VISIT(self->torch.tensor_type);
    Py_VISIT(self->torch.empty);
    Py_VISIT(self->torch.names);
    for (int i = 0; i < KINDS; i++) Py_VISIT(self->torch.dtypes[i]);
    for (Py_ssize_t i = 0; self->known != NULL && i < self->constant_count; i++) {
        Py_VISIT(self->known[i].object);
        Py_VISIT(self->known[i].holder);
    }
    return 0;
}

static void chain_dealloc(Chain *self) {
    PyObject_GC_UnTrack(self);
    chain_clear(self);
    Py_CLEAR(self->code);
    Py_CLEAR(self->results);
    Py_CLEAR(self->wanted);
    Py_CLEAR(self->kinds);
    PyMem_Free(self->entries);
    PyMem_Free(self->known);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *chain_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    static char *names[] = {"inputs", "values", "constants", "kernels", "code", "results", "wanted", "kinds", "torch", "dtypes", NULL};
    Py_ssize_t inputs, values;
    PyObject *constants, *kernels, *code, *results, *wanted, *kinds, *torch, *dtypes;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "nnO!O!SSSSO!O!", names, &inputs, &values, &PyTuple_Type, &constants, &PyTuple_Type, &kernels,
                                     &code, &results, &wanted, &kinds, &PyTuple_Type, &torch, &PyTuple_Type, &dtypes))
        return NULL;
    Py_ssize_t known = PyTuple_GET_SIZE(constants), entries = PyTuple_GET_SIZE(kernels);
    if (inputs < 0 || values < 0 || inputs > values || known > values - inputs || PyBytes_GET_SIZE(wanted) != values || PyBytes_GET_SIZE(kinds) != values ||
        PyBytes_GET_SIZE(results) % 8 || PyBytes_GET_SIZE(code) % 8 || PyTuple_GET_SIZE(dtypes) != KINDS || PyTuple_GET_SIZE(torch) != 2) {
        PyErr_SetString(PyExc_ValueError, "the parts of small ops do not fit each other");
        return NULL;
    }
    for (Py_ssize_t i = 0; i < values; i++)
        if (PyBytes_AS_STRING(kinds)[i] < 0 || PyBytes_AS_STRING(kinds)[i] > KINDS) {
            PyErr_SetString(PyExc_ValueError, "a value is of no known type");
            return NULL;
        }
    Chain *self = (Chain *)type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    self->vectorcall = call;
    self->inputs = inputs;
    self->value_count = values;
    self->constant_count = known;
    self->result_count = PyBytes_GET_SIZE(results) / 8;
    self->constants = Py_NewRef(constants);
    self->kernels = Py_NewRef(kernels);
    self->code = Py_NewRef(code);
    self->results = Py_NewRef(results);
    self->wanted = Py_NewRef(wanted);
    self->kinds = Py_NewRef(kinds);
    self->torch.tensor_type = Py_NewRef(PyTuple_GET_ITEM(torch, 0));
    self->torch.empty = Py_NewRef(PyTuple_GET_ITEM(torch, 1));
    for (int i = 0; i < KINDS; i++) self->torch.dtypes[i] = Py_NewRef(PyTuple_GET_ITEM(dtypes, i));
    self->torch.names = Py_BuildValue("(s)", "dtype");
    self->entries = PyMem_Calloc((size_t)entries + 1, sizeof *self->entries);
    self->known = PyMem_Calloc((size_t)known + 1, sizeof *self->known);
    if (self->torch.names == NULL) goto failed;
    if (self->entries == NULL || self->known == NULL) {
        PyErr_NoMemory();
        goto failed;
    }
    const int64_t *at = (const int64_t *)PyBytes_AS_STRING(code), *end = at + PyBytes_GET_SIZE(code) / 8;
    for (self->entry_count = 0; self->entry_count < entries; self->entry_count++)
        if (!read_entry(&self->entries[self->entry_count], &at, end, values)) goto failed;
    at = (const int64_t *)PyBytes_AS_STRING(results);
    if (taken(&at, at + self->result_count, self->result_count, 1, values) == NULL) goto failed;
    Call c = {&self->torch, NULL, PyBytes_AS_STRING(kinds) + inputs, self->known, NULL, NULL, 0};
    for (Py_ssize_t i = 0; i < known; i++) {
        self->known[i].object = Py_NewRef(PyTuple_GET_ITEM(constants, i));
        if (!look(&c, &self->known[i])) goto failed;
    }
    return (PyObject *)self;
failed:
    Py_DECREF(self);
    return NULL;
}

static PyTypeObject ChainType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "stoker._src.runtime.native.small_ops.Chain",
    .tp_doc = "Ops on small tensors: called with its inputs, it returns a tuple of what leaves it.",
    .tp_basicsize = sizeof(Chain),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_HAVE_GC,
    .tp_vectorcall_offset = offsetof(Chain, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_new = chain_new,
    .tp_traverse = (traverseproc)chain_traverse,
    .tp_clear = (inquiry)chain_clear,
    .tp_dealloc = (destructor)chain_dealloc,
};

static PyObject *set_sgemm(PyObject *m, PyObject *args) { return floats.set_gemm(m, args); }

static PyMethodDef functions[] = {
    {"set_sgemm", set_sgemm, METH_VARARGS,
     "Takes the address of sgemm_, that of the product for small matrices (or 0), and whether the first is fast for a few columns."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "small_ops", "Many ops on small tensors in one call.", -1, functions, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_small_ops(void) {
    str_shape = PyUnicode_InternFromString("shape");
    str_dtype = PyUnicode_InternFromString("dtype");
    str_is_contiguous = PyUnicode_InternFromString("is_contiguous");
    str_contiguous = PyUnicode_InternFromString("contiguous");
    str_data = PyUnicode_InternFromString("data_ptr");
    PyObject *m, *table = PyDict_New();
    for (int i = 0; table != NULL && i < OP_COUNT; i++) {
        PyObject *number = PyLong_FromLong(i);
        if (number == NULL || PyDict_SetItemString(table, ops[i].name, number) < 0) Py_CLEAR(table);
        Py_XDECREF(number);
    }
    if (table == NULL || PyType_Ready(&ChainType) < 0 || (m = PyModule_Create(&module)) == NULL) return NULL;
    if (PyModule_AddObjectRef(m, "Chain", (PyObject *)&ChainType) < 0 || PyModule_AddObjectRef(m, "OPS", table) < 0) {
        Py_DECREF(m);
        return NULL;
    }
    Py_DECREF(table);
    return m;
}
