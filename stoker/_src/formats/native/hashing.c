/* Batch hashing of byte strings. stoker/_src/formats/hashing.py is the Python version and describes the functions. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "farmhash.h"

static inline uint64_t rotate_left(uint64_t word, int by) { return (word << by) | (word >> (64 - by)); }

/* MurmurHash64A. */
static uint64_t hash64(const uint8_t *s, size_t n) {
    const uint64_t m = 0xc6a4a7935bd1e995ull;
    uint64_t h = 0xDECAFCAFFEull ^ (n * m);
    for (; n >= 8; s += 8, n -= 8) {
        uint64_t k = load64(s) * m;
        k = (k ^ (k >> 47)) * m;
        h = (h ^ k) * m;
    }
    if (n > 0) {
        uint64_t rest = 0;
        for (size_t i = n; i-- > 0;) rest = (rest << 8) | s[i];
        h = (h ^ rest) * m;
    }
    h = (h ^ (h >> 47)) * m;
    return h ^ (h >> 47);
}

static inline void sip_rounds(uint64_t v[4], int rounds) {
    while (rounds-- > 0) {
        v[0] += v[1], v[1] = rotate_left(v[1], 13) ^ v[0], v[0] = rotate_left(v[0], 32);
        v[2] += v[3], v[3] = rotate_left(v[3], 16) ^ v[2];
        v[0] += v[3], v[3] = rotate_left(v[3], 21) ^ v[0];
        v[2] += v[1], v[1] = rotate_left(v[1], 17) ^ v[2], v[2] = rotate_left(v[2], 32);
    }
}

static uint64_t siphash(uint64_t k0, uint64_t k1, const uint8_t *s, size_t n) {
    uint64_t v[4] = {k0 ^ 0x736f6d6570736575ull, k1 ^ 0x646f72616e646f6dull, k0 ^ 0x6c7967656e657261ull,
                     k1 ^ 0x7465646279746573ull};
    uint64_t last = (uint64_t)n << 56;
    for (; n >= 8; s += 8, n -= 8) {
        uint64_t word = load64(s);
        v[3] ^= word;
        sip_rounds(v, 2);
        v[0] ^= word;
    }
    for (size_t i = 0; i < n; i++) last |= (uint64_t)s[i] << (8 * i);
    v[3] ^= last;
    sip_rounds(v, 2);
    v[0] ^= last;
    v[2] ^= 0xff;
    sip_rounds(v, 4);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

enum { FINGERPRINT, HASH, SIPHASH };

static PyObject *hash_many(PyObject *strings, Py_buffer *out, int kind, uint64_t k0, uint64_t k1) {
    PyObject *fast = PySequence_Fast(strings, "a sequence of bytes is needed");
    if (fast == NULL) return NULL;
    Py_ssize_t count = PySequence_Fast_GET_SIZE(fast);
    if (out->len != count * (Py_ssize_t)sizeof(uint64_t)) {
        Py_DECREF(fast);
        return PyErr_Format(PyExc_ValueError, "the output has %zd bytes, %zd strings need 8 each", out->len, count);
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        char *text;
        Py_ssize_t size;
        uint64_t hash;
        if (PyBytes_AsStringAndSize(PySequence_Fast_GET_ITEM(fast, i), &text, &size) < 0) {
            Py_DECREF(fast);
            return NULL;
        }
        const uint8_t *bytes = (const uint8_t *)text;
        hash = kind == FINGERPRINT ? fingerprint64(bytes, (size_t)size)
               : kind == HASH      ? hash64(bytes, (size_t)size)
                                   : siphash(k0, k1, bytes, (size_t)size);
        memcpy((char *)out->buf + (size_t)i * sizeof hash, &hash, sizeof hash);
    }
    Py_DECREF(fast);
    Py_RETURN_NONE;
}

static PyObject *parse_and_hash(PyObject *args, int kind) {
    PyObject *strings, *result;
    Py_buffer out;
    unsigned long long k0 = 0, k1 = 0;
    if (!PyArg_ParseTuple(args, "Ow*|KK", &strings, &out, &k0, &k1)) return NULL;
    result = hash_many(strings, &out, kind, k0, k1);
    PyBuffer_Release(&out);
    return result;
}

static PyObject *fingerprints(PyObject *self, PyObject *args) { return (void)self, parse_and_hash(args, FINGERPRINT); }
static PyObject *hashes(PyObject *self, PyObject *args) { return (void)self, parse_and_hash(args, HASH); }
static PyObject *siphashes(PyObject *self, PyObject *args) { return (void)self, parse_and_hash(args, SIPHASH); }

static PyMethodDef METHODS[] = {
    {"fingerprints", fingerprints, METH_VARARGS, "fingerprints(strings, out): FarmHash fingerprints, uint64."},
    {"hashes", hashes, METH_VARARGS, "hashes(strings, out): MurmurHash64A, uint64."},
    {"siphashes", siphashes, METH_VARARGS, "siphashes(strings, out, key0, key1): SipHash-2-4, uint64."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "hashing", "Compiled twin of stoker._src.formats.hashing.", -1, METHODS,
    NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_hashing(void) { return PyModule_Create(&MODULE); }
