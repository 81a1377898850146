/* Fused loops: many ops on tensors of float32 or of float64 in one call.
 *
 * A Program is a list of loops over buffers of fixed sizes. runtime/plan/fused_loops.py builds it and says when that pays. A call checks
 * the shape of each input and makes one allocation for each distinct shape among the outputs.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>
#include <stddef.h>
#include <stdlib.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include "lines.h"

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *input_shapes;  /* a tuple of tuples */
    PyObject *output_groups; /* a tuple of (how many, shape of all, elements of each, what makes a tensor of a shape) */
    PyObject *dtypes;        /* of the inputs and the outputs, for those who give addresses instead of tensors (run_loop) */
    PyObject *fallback;
    PyObject *code, *scratch, *constants, *places; /* bytes; kept alive here */
    PyObject *segments;                            /* bytes of int64: first and last line of each segment, and its rows or 0 */
    PyObject *narrow;  /* bytes of int64: the elements of each input that is boolean; as negative numbers those of 64-bit integers; 0 for the others */
    PyObject *widened; /* bytes of int64: the elements of each output that is of 64-bit integers, 0 for the others */
    Py_ssize_t inputs, outputs, scratch_count, constant_count, length, segment_count;
    const Lines *lines;   /* for the type of the elements */
    int64_t scratch_size; /* in elements; that of one row if `rows` is not 0 */
    int64_t rows, block;  /* number of rows that threads share (or 0), and number of rows in one block */
    char may_refuse;      /* whether there are inputs for which the loops have no result */
} Program;

static PyObject *str_shape, *str_is_contiguous, *str_contiguous, *str_data_ptr, *str_unbind;

/* Runs rows `from` to `to` one block at a time. A scratch buffer holds one block, so its base address is shifted back by the rows before
 * the block. */
static void execute_blocks(const Program *self, void **buffers, char *room, int64_t from, int64_t to) {
    const int64_t *code = (const int64_t *)PyBytes_AS_STRING(self->code), *scratch = (const int64_t *)PyBytes_AS_STRING(self->scratch);
    void **moved = buffers + self->inputs + self->outputs;
    for (int64_t first = from; first < to; first += self->block) {
        int64_t last = first + self->block < to ? first + self->block : to;
        for (Py_ssize_t i = 0; i < self->scratch_count; i++)
            moved[i] = room + (scratch[2 * i] * self->block - first * scratch[2 * i + 1]) * (int64_t)self->lines->size;
        self->lines->execute_rows(code, code + self->length * WORDS, buffers, self->rows, first, last);
    }
}

/* Shares the rows among torch's threads. Returns 0 if a thread cannot allocate its scratch memory. */
static int execute_shared(const Program *self, void **buffers) {
    int64_t total = self->inputs + self->outputs + self->scratch_count + self->constant_count;
    int enough = 1;
#pragma omp parallel
    {
#ifdef _OPENMP
        int64_t thread = omp_get_thread_num(), threads = omp_get_num_threads();
#else
        int64_t thread = 0, threads = 1;
#endif
        void **own = malloc((size_t)total * sizeof *own);
        char *room = malloc(((size_t)(self->scratch_size * self->block) + 1) * self->lines->size);
        if (own != NULL && room != NULL) {
            memcpy(own, buffers, (size_t)total * sizeof *own);
            execute_blocks(self, own, room, self->rows * thread / threads, self->rows * (thread + 1) / threads);
        } else {
#pragma omp atomic write
            enough = 0;
        }
        free(own);
        free(room);
    }
    return enough;
}

/* Runs the segments of a program of small tensors one after the other. Threads share the rows of those that have enough work. Returns 0 if the ops' own
 * kernels must run instead. */
static int execute_segments(const Program *self, void **buffers) {
    const int64_t *code = (const int64_t *)PyBytes_AS_STRING(self->code), *segment = (const int64_t *)PyBytes_AS_STRING(self->segments);
    for (Py_ssize_t i = 0; i < self->segment_count; i++, segment += 3) {
        const int64_t *first = code + segment[0] * WORDS, *last = code + segment[1] * WORDS;
        int64_t all = segment[2];
        if (!all) {
            if (!self->lines->execute(first, last, buffers)) return 0;
            continue;
        }
#pragma omp parallel
        {
#ifdef _OPENMP
            int64_t thread = omp_get_thread_num(), threads = omp_get_num_threads();
#else
            int64_t thread = 0, threads = 1;
#endif
            self->lines->execute_rows(first, last, buffers, all, all * thread / threads, all * (thread + 1) / threads);
        }
    }
    return 1;
}

/* The address of a tensor's elements; NULL with an exception set on failure. */
static void *address(PyObject *tensor) {
    PyObject *number = PyObject_CallMethodNoArgs(tensor, str_data_ptr);
    if (number == NULL) return NULL;
    void *pointer = PyLong_AsVoidPtr(number);
    Py_DECREF(number);
    return pointer;
}

/* 1 if the tensor has the expected shape, 0 if not, -1 with an exception set on failure. */
static int fits(PyObject *tensor, PyObject *shape) {
    PyObject *found = PyObject_GetAttr(tensor, str_shape);
    if (found == NULL) return -1;
    int equal = PyObject_RichCompareBool(found, shape, Py_EQ);
    Py_DECREF(found);
    return equal;
}

/* Puts new tensors into `results` and their addresses into `buffers`. */
static int allocate(Program *self, PyObject *results, void **buffers) {
    Py_ssize_t at = 0;
    for (Py_ssize_t g = 0; g < PyTuple_GET_SIZE(self->output_groups); g++) {
        PyObject *group = PyTuple_GET_ITEM(self->output_groups, g);
        Py_ssize_t count = PyLong_AsSsize_t(PyTuple_GET_ITEM(group, 0));
        Py_ssize_t elements = PyLong_AsSsize_t(PyTuple_GET_ITEM(group, 2));
        PyObject *made = PyObject_CallOneArg(PyTuple_GET_ITEM(group, 3), PyTuple_GET_ITEM(group, 1));
        if (made == NULL) return -1;
        char *first = address(made);
        if (PyErr_Occurred()) {
            Py_DECREF(made);
            return -1;
        }
        if (count == 1) {
            PyTuple_SET_ITEM(results, at, made);
            buffers[at++] = first;
            continue;
        }
        PyObject *each = PyObject_CallMethodNoArgs(made, str_unbind);
        Py_DECREF(made);
        if (each == NULL) return -1;
        for (Py_ssize_t i = 0; i < count; i++, at++) {
            PyTuple_SET_ITEM(results, at, Py_NewRef(PyTuple_GET_ITEM(each, i)));
            buffers[at] = first + i * elements * (Py_ssize_t)self->lines->size * (((const int64_t *)PyBytes_AS_STRING(self->widened))[at] ? 2 : 1);
        }
        Py_DECREF(each);
    }
    return 0;
}

/* How many numbers an input needs room for, which the loops hold in another form than its tensor. */
static int64_t room_of(int64_t narrow) { return narrow < 0 ? -narrow : narrow; }

static PyObject *call(PyObject *callable, PyObject *const *args, size_t flags, PyObject *keywords) {
    Program *self = (Program *)callable;
    if (PyVectorcall_NARGS(flags) != self->inputs || keywords != NULL) {
        PyErr_Format(PyExc_TypeError, "fused loops with %zd inputs were given %zd", self->inputs, PyVectorcall_NARGS(flags));
        return NULL;
    }
    Py_ssize_t total = self->inputs + self->outputs + self->scratch_count + self->constant_count;
    void **buffers = PyMem_Malloc(((size_t)total + 1) * sizeof *buffers);
    const int64_t *narrow = (const int64_t *)PyBytes_AS_STRING(self->narrow), *widened = (const int64_t *)PyBytes_AS_STRING(self->widened);
    int64_t converted = 0;
    for (Py_ssize_t i = 0; i < self->inputs; i++) converted += room_of(narrow[i]);
    int64_t size = (int64_t)self->lines->size;
    char *scratch = PyMem_RawMalloc(((size_t)(self->rows ? 0 : self->scratch_size) + (size_t)converted + 1) * self->lines->size);
    char *numbers = scratch + (self->rows ? 0 : self->scratch_size) * size;
    PyObject *kept = NULL; /* contiguous copies of the inputs that were not contiguous */
    PyObject *results = PyTuple_New(self->outputs);
    if (buffers == NULL || scratch == NULL || results == NULL) {
        PyErr_NoMemory();
        goto failed;
    }
    for (Py_ssize_t i = 0; i < self->inputs; i++) {
        int equal = fits(args[i], PyTuple_GET_ITEM(self->input_shapes, i));
        if (equal < 0) goto failed;
        if (!equal) { /* the static shape was wrong: run the ops one by one */
            Py_SETREF(results, PyObject_Vectorcall(self->fallback, args, (size_t)self->inputs, NULL));
            goto done;
        }
        PyObject *contiguous = PyObject_CallMethodNoArgs(args[i], str_is_contiguous);
        if (contiguous == NULL) goto failed;
        Py_DECREF(contiguous); /* True and False are immortal, so the comparison below is safe */
        if (contiguous == Py_True) {
            buffers[i] = address(args[i]);
        } else {
            if (kept == NULL && (kept = PyList_New(0)) == NULL) goto failed;
            PyObject *copied = PyObject_CallMethodNoArgs(args[i], str_contiguous);
            if (copied == NULL || PyList_Append(kept, copied) < 0) {
                Py_XDECREF(copied);
                goto failed;
            }
            buffers[i] = address(copied);
            Py_DECREF(copied);
        }
        if (PyErr_Occurred()) goto failed;
        if (narrow[i]) {
            if (!self->lines->take_narrow(numbers, buffers[i], narrow[i])) {
                Py_SETREF(results, PyObject_Vectorcall(self->fallback, args, (size_t)self->inputs, NULL));
                goto done;
            }
            buffers[i] = numbers;
            numbers += room_of(narrow[i]) * size;
        }
    }
    void **rest = buffers + self->inputs;
    if (allocate(self, results, rest) < 0) goto failed;
    rest += self->outputs;
    const int64_t *scratch_places = (const int64_t *)PyBytes_AS_STRING(self->scratch);
    for (Py_ssize_t i = 0; i < self->scratch_count && !self->rows; i++) rest[i] = scratch + scratch_places[2 * i] * size;
    rest += self->scratch_count;
    const int64_t *places = (const int64_t *)PyBytes_AS_STRING(self->places);
    for (Py_ssize_t i = 0; i < self->constant_count; i++) rest[i] = PyBytes_AS_STRING(self->constants) + places[i] * size;
    int enough = 1, refused = 0;
    Py_BEGIN_ALLOW_THREADS
    if (self->rows)
        enough = execute_shared(self, buffers);
    else
        refused = !execute_segments(self, buffers);
    Py_END_ALLOW_THREADS
    if (!enough) {
        PyErr_NoMemory();
        goto failed;
    }
    if (refused)
        Py_SETREF(results, PyObject_Vectorcall(self->fallback, args, (size_t)self->inputs, NULL));
    else
        for (Py_ssize_t i = 0; i < self->outputs; i++) self->lines->widen(buffers[self->inputs + i], widened[i]);
done:
    PyMem_Free(buffers);
    PyMem_RawFree(scratch);
    Py_XDECREF(kept);
    return results;
failed:
    Py_CLEAR(results);
    goto done;
}

static int is_program(PyObject *object);

/* What one iteration of a loop needs of a program: its buffers, and how their addresses move. */
typedef struct {
    const Program *program;
    const int64_t *moves; /* for each input and output: its address in the first iteration, and the bytes from one iteration to the next */
    void **buffers;
    char *scratch, *numbers;
} Part;

static int prepare(Part *part, const Program *program, PyObject *moves) {
    Py_ssize_t total = program->inputs + program->outputs + program->scratch_count + program->constant_count;
    const int64_t *narrow = (const int64_t *)PyBytes_AS_STRING(program->narrow);
    int64_t converted = 0, kept = program->rows ? 0 : program->scratch_size, size = (int64_t)program->lines->size;
    for (Py_ssize_t i = 0; i < program->inputs; i++) converted += room_of(narrow[i]);
    part->program = program;
    part->moves = (const int64_t *)PyBytes_AS_STRING(moves);
    part->buffers = PyMem_RawMalloc(((size_t)total + 1) * sizeof *part->buffers);
    part->scratch = PyMem_RawMalloc(((size_t)(kept + converted) + 1) * program->lines->size);
    if (part->buffers == NULL || part->scratch == NULL) return -1;
    part->numbers = part->scratch + kept * size;
    void **rest = part->buffers + program->inputs + program->outputs;
    const int64_t *scratch_places = (const int64_t *)PyBytes_AS_STRING(program->scratch);
    for (Py_ssize_t i = 0; i < program->scratch_count && !program->rows; i++) rest[i] = part->scratch + scratch_places[2 * i] * size;
    rest += program->scratch_count;
    const int64_t *places = (const int64_t *)PyBytes_AS_STRING(program->places);
    for (Py_ssize_t i = 0; i < program->constant_count; i++) rest[i] = PyBytes_AS_STRING(program->constants) + places[i] * size;
    return 0;
}

enum { DONE, REFUSED, NO_MEMORY };

static int iterate(const Part *part, int64_t iteration) {
    const Program *program = part->program;
    const int64_t *narrow = (const int64_t *)PyBytes_AS_STRING(program->narrow);
    char *numbers = part->numbers;
    for (Py_ssize_t i = 0; i < program->inputs + program->outputs; i++) {
        char *address = (char *)(intptr_t)part->moves[2 * i] + iteration * part->moves[2 * i + 1];
        part->buffers[i] = address;
        if (i < program->inputs && narrow[i]) {
            if (!program->lines->take_narrow(numbers, address, narrow[i])) return REFUSED;
            part->buffers[i] = numbers;
            numbers += room_of(narrow[i]) * (int64_t)program->lines->size;
        }
    }
    if (program->rows) {
        if (!execute_shared(program, part->buffers)) return NO_MEMORY;
    } else if (!execute_segments(program, part->buffers))
        return REFUSED;
    const int64_t *widened = (const int64_t *)PyBytes_AS_STRING(program->widened);
    for (Py_ssize_t i = 0; i < program->outputs; i++) program->lines->widen(part->buffers[program->inputs + i], widened[i]);
    return DONE;
}

/* run_loop(programs, moves, first, last): iterations `first` to `last` of a loop whose body is a list of programs. Returns False if a program has no result
 * for its inputs, so that the ops' own kernels must run instead. */
static PyObject *run_loop(PyObject *m, PyObject *args) {
    (void)m;
    PyObject *programs, *moves;
    long long first, last;
    if (!PyArg_ParseTuple(args, "O!O!LL", &PyTuple_Type, &programs, &PyTuple_Type, &moves, &first, &last)) return NULL;
    Py_ssize_t count = PyTuple_GET_SIZE(programs);
    if (PyTuple_GET_SIZE(moves) != count) {
        PyErr_SetString(PyExc_ValueError, "each program has its own moves");
        return NULL;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *each = PyTuple_GET_ITEM(programs, i), *table = PyTuple_GET_ITEM(moves, i);
        if (!is_program(each) || !PyBytes_Check(table) ||
            PyBytes_GET_SIZE(table) != (((Program *)each)->inputs + ((Program *)each)->outputs) * 2 * (Py_ssize_t)sizeof(int64_t)) {
            PyErr_SetString(PyExc_ValueError, "the moves of a program are an address and a step for each input and output");
            return NULL;
        }
    }
    Part *parts = PyMem_RawCalloc((size_t)count + 1, sizeof *parts);
    int outcome = parts == NULL ? NO_MEMORY : DONE;
    for (Py_ssize_t i = 0; outcome == DONE && i < count; i++)
        if (prepare(&parts[i], (Program *)PyTuple_GET_ITEM(programs, i), PyTuple_GET_ITEM(moves, i)) < 0) outcome = NO_MEMORY;
    Py_BEGIN_ALLOW_THREADS
    for (int64_t iteration = first; outcome == DONE && iteration < last; iteration++)
        for (Py_ssize_t i = 0; outcome == DONE && i < count; i++) outcome = iterate(&parts[i], iteration);
    Py_END_ALLOW_THREADS
    for (Py_ssize_t i = 0; parts != NULL && i < count; i++) {
        PyMem_RawFree(parts[i].buffers);
        PyMem_RawFree(parts[i].scratch);
    }
    PyMem_RawFree(parts);
    if (outcome == NO_MEMORY) return PyErr_NoMemory();
    return PyBool_FromLong(outcome == DONE);
}

static PyObject *program_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    static char *names[] = {"code",  "input_shapes", "output_groups", "scratch", "scratch_size", "rows",
                            "block", "constants",    "places",        "fallback",     "narrow", "widened", "segments", "dtypes", "is_double", NULL};
    PyObject *code, *shapes, *groups, *scratch, *constants, *places, *fallback, *narrow, *widened, *segments, *dtypes;
    long long size, rows, block;
    int is_double;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "SO!O!SLLLSSOSSSO!p", names, &code, &PyTuple_Type, &shapes, &PyTuple_Type, &groups,
                                     &scratch, &size, &rows, &block, &constants, &places, &fallback, &narrow, &widened, &segments,
                                     &PyTuple_Type, &dtypes, &is_double))
        return NULL;
    if (PyBytes_GET_SIZE(narrow) != PyTuple_GET_SIZE(shapes) * (Py_ssize_t)sizeof(int64_t)) {
        PyErr_SetString(PyExc_ValueError, "`narrow` has one number for each input");
        return NULL;
    }
    Py_ssize_t outputs = 0;
    for (Py_ssize_t g = 0; g < PyTuple_GET_SIZE(groups); g++) {
        PyObject *group = PyTuple_GET_ITEM(groups, g);
        if (!PyTuple_Check(group) || PyTuple_GET_SIZE(group) != 4) {
            PyErr_SetString(PyExc_TypeError, "an output group is (how many, shape, elements, what makes a tensor)");
            return NULL;
        }
        outputs += PyLong_AsSsize_t(PyTuple_GET_ITEM(group, 0));
    }
    if (PyBytes_GET_SIZE(widened) != outputs * (Py_ssize_t)sizeof(int64_t)) {
        PyErr_SetString(PyExc_ValueError, "`widened` has one number for each output");
        return NULL;
    }
    Program *self = (Program *)type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    self->vectorcall = call;
    self->lines = is_double ? &lines64 : &lines32;
    self->code = Py_NewRef(code);
    self->input_shapes = Py_NewRef(shapes);
    self->output_groups = Py_NewRef(groups);
    self->scratch = Py_NewRef(scratch);
    self->constants = Py_NewRef(constants);
    self->places = Py_NewRef(places);
    self->narrow = Py_NewRef(narrow);
    self->widened = Py_NewRef(widened);
    self->dtypes = Py_NewRef(dtypes);
    self->segments = Py_NewRef(segments);
    self->segment_count = PyBytes_GET_SIZE(segments) / (Py_ssize_t)(3 * sizeof(int64_t));
    self->fallback = Py_NewRef(fallback);
    self->inputs = PyTuple_GET_SIZE(shapes);
    self->outputs = outputs;
    self->scratch_count = PyBytes_GET_SIZE(scratch) / (Py_ssize_t)(2 * sizeof(int64_t));
    self->constant_count = PyBytes_GET_SIZE(places) / (Py_ssize_t)sizeof(int64_t);
    self->scratch_size = size;
    self->rows = rows;
    self->block = block;
    self->length = PyBytes_GET_SIZE(code) / (Py_ssize_t)(WORDS * sizeof(int64_t));
    for (Py_ssize_t i = 0; i < self->length; i++) {
        int64_t kind = ((const int64_t *)PyBytes_AS_STRING(code))[i * WORDS];
        if (kind == DENSE || kind == GATHER || kind == SEGMENTS || kind == TOP) self->may_refuse = 1;
    }
    for (Py_ssize_t i = 0; i < self->inputs; i++)
        if (((const int64_t *)PyBytes_AS_STRING(narrow))[i] < 0) self->may_refuse = 1;
    return (PyObject *)self;
}

static int traverse(Program *self, visitproc visit, void *arg) {
    Py_VISIT(self->fallback);
    return 0;
}

static int clear(Program *self) {
    Py_CLEAR(self->fallback);
    return 0;
}

static void dealloc(Program *self) {
    PyObject_GC_UnTrack(self);
    clear(self);
    Py_XDECREF(self->code);
    Py_XDECREF(self->input_shapes);
    Py_XDECREF(self->output_groups);
    Py_XDECREF(self->scratch);
    Py_XDECREF(self->constants);
    Py_XDECREF(self->places);
    Py_XDECREF(self->narrow);
    Py_XDECREF(self->widened);
    Py_XDECREF(self->dtypes);
    Py_XDECREF(self->segments);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyMemberDef members[] = {
    {"input_shapes", T_OBJECT, offsetof(Program, input_shapes), READONLY, "The shape of each input."},
    {"output_groups", T_OBJECT, offsetof(Program, output_groups), READONLY, "The outputs: (how many, shape of all of them, elements of each, what makes a tensor)."},
    {"dtypes", T_OBJECT, offsetof(Program, dtypes), READONLY, "The dtype of each input and output."},
    {"may_refuse", T_BOOL, offsetof(Program, may_refuse), READONLY, "Whether there are inputs for which the ops' own kernels must run."},
    {NULL, 0, 0, 0, NULL},
};

static PyTypeObject ProgramType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "stoker._src.runtime.native.program.Program",
    .tp_doc = "A list of loops over buffers: called with its input tensors, it returns a tuple of new ones.",
    .tp_basicsize = sizeof(Program),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_HAVE_GC,
    .tp_vectorcall_offset = offsetof(Program, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_new = program_new,
    .tp_members = members,
    .tp_traverse = (traverseproc)traverse,
    .tp_clear = (inquiry)clear,
    .tp_dealloc = (destructor)dealloc,
};

static int is_program(PyObject *object) { return Py_IS_TYPE(object, &ProgramType); }

static PyObject *set_sgemm(PyObject *m, PyObject *args) { return lines32.set_gemm(m, args); }

static PyObject *set_dgemm(PyObject *m, PyObject *args) { return lines64.set_gemm(m, args); }

static PyMethodDef functions[] = {
    {"run_loop", run_loop, METH_VARARGS, "Runs iterations of a loop whose body is a list of programs, with the addresses of all buffers. Returns whether all have results."},
    {"set_sgemm", set_sgemm, METH_VARARGS, "Takes the address of sgemm_, that of the product for small matrices (or 0), and whether the first is fast for a few columns, with which products of any size can be fused."},
    {"set_dgemm", set_dgemm, METH_VARARGS, "Takes the address of dgemm_, with which products of float64 of any size can be fused."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "program", "Fused loops: many ops on tensors of float32 or of float64 in one call.", -1, functions, NULL, NULL, NULL, NULL,
};

static int add_names(PyObject *m, const char *attribute, const char **names, int count) {
    PyObject *table = PyDict_New();
    for (int i = 0; table != NULL && i < count; i++) {
        PyObject *number = PyLong_FromLong(i);
        if (number == NULL || PyDict_SetItemString(table, names[i], number) < 0) Py_CLEAR(table);
        Py_XDECREF(number);
    }
    if (table == NULL) return -1;
    int failed = PyModule_AddObjectRef(m, attribute, table);
    Py_DECREF(table);
    return failed;
}

PyMODINIT_FUNC PyInit_program(void) {
    str_shape = PyUnicode_InternFromString("shape");
    str_is_contiguous = PyUnicode_InternFromString("is_contiguous");
    str_contiguous = PyUnicode_InternFromString("contiguous");
    str_data_ptr = PyUnicode_InternFromString("data_ptr");
    str_unbind = PyUnicode_InternFromString("unbind");
    if (PyType_Ready(&ProgramType) < 0) return NULL;
    PyObject *m = PyModule_Create(&module);
    if (m == NULL) return NULL;
    if (PyModule_AddObjectRef(m, "Program", (PyObject *)&ProgramType) < 0 || PyModule_AddIntConstant(m, "WORDS", WORDS) < 0 ||
        PyModule_AddIntMacro(m, UNARY_LOOP) < 0 || PyModule_AddIntMacro(m, BINARY_LOOP) < 0 || PyModule_AddIntMacro(m, MATMUL) < 0 ||
        PyModule_AddIntMacro(m, SUM) < 0 || PyModule_AddIntMacro(m, SOFTMAX) < 0 || PyModule_AddIntMacro(m, COPY) < 0 || PyModule_AddIntMacro(m, SELECT) < 0 || PyModule_AddIntMacro(m, MAX) < 0 ||
        PyModule_AddIntMacro(m, DENSE) < 0 || PyModule_AddIntMacro(m, BAND) < 0 ||
        PyModule_AddIntMacro(m, GATHER) < 0 || PyModule_AddIntMacro(m, SEGMENTS) < 0 || PyModule_AddIntMacro(m, PLACE) < 0 || PyModule_AddIntMacro(m, TOP) < 0 || add_names(m, "DENSE_KINDS", lines32.dense_names, lines32.dense_kinds) < 0 ||
        add_names(m, "UNARY", lines32.unary_names, lines32.unaries) < 0 || add_names(m, "BINARY", lines32.binary_names, lines32.binaries) < 0) {
        Py_DECREF(m);
        return NULL;
    }
    return m;
}
