/* Batch hashing of byte strings. stoker/_src/formats/hashing.py is the Python version and describes the functions. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdint.h>
#include <string.h>

static inline uint64_t load64(const uint8_t *bytes) {
    uint64_t word = 0;
    for (int i = 7; i >= 0; i--) word = (word << 8) | bytes[i];
    return word;
}

static inline uint64_t load32(const uint8_t *bytes) {
    return (uint64_t)bytes[0] | (uint64_t)bytes[1] << 8 | (uint64_t)bytes[2] << 16 | (uint64_t)bytes[3] << 24;
}

static inline uint64_t rotate_right(uint64_t word, int by) { return (word >> by) | (word << (64 - by)); }
static inline uint64_t rotate_left(uint64_t word, int by) { return (word << by) | (word >> (64 - by)); }

/* FarmHash's 64-bit fingerprint. */

#define K0 0xc3a5c85c97cb3127ull
#define K1 0xb492b66fbe98f273ull
#define K2 0x9ae16a3b2f90404full

static inline uint64_t fold(uint64_t word) { return word ^ (word >> 47); }

static inline uint64_t mix(uint64_t u, uint64_t v, uint64_t multiplier) {
    uint64_t a = fold((u ^ v) * multiplier);
    return fold((v ^ a) * multiplier) * multiplier;
}

static uint64_t fingerprint_short(const uint8_t *s, size_t n) {
    uint64_t multiplier = K2 + 2 * (uint64_t)n;
    if (n >= 8) {
        uint64_t a = load64(s) + K2, b = load64(s + n - 8);
        return mix(rotate_right(b, 37) * multiplier + a, (rotate_right(a, 25) + b) * multiplier, multiplier);
    }
    if (n >= 4) return mix(n + (load32(s) << 3), load32(s + n - 4), multiplier);
    if (n > 0) {
        uint32_t y = (uint32_t)s[0] + ((uint32_t)s[n >> 1] << 8);
        uint32_t z = (uint32_t)n + ((uint32_t)s[n - 1] << 2);
        return fold(y * K2 ^ z * K0) * K2;
    }
    return K2;
}

static uint64_t fingerprint_middle(const uint8_t *s, size_t n) {
    uint64_t multiplier = K2 + 2 * (uint64_t)n;
    uint64_t a = load64(s) * (n <= 32 ? K1 : K2), b = load64(s + 8);
    uint64_t c = load64(s + n - 8) * multiplier, d = load64(s + n - 16) * K2;
    uint64_t y = rotate_right(a + b, 43) + rotate_right(c, 30) + d;
    uint64_t z = mix(y, a + rotate_right(b + K2, 18) + c, multiplier);
    if (n <= 32) return z;
    uint64_t e = load64(s + 16) * multiplier, f = load64(s + 24);
    uint64_t g = (y + load64(s + n - 32)) * multiplier, h = (z + load64(s + n - 24)) * multiplier;
    return mix(rotate_right(e + f, 43) + rotate_right(g, 30) + h, e + rotate_right(f + a, 18) + g, multiplier);
}

typedef struct {
    uint64_t first, second;
} Pair;

static inline Pair absorb32(const uint8_t *s, uint64_t a, uint64_t b) {
    a += load64(s);
    b = rotate_right(b + a + load64(s + 24), 21);
    uint64_t c = a;
    a += load64(s + 8) + load64(s + 16);
    b += rotate_right(a, 44);
    Pair pair = {a + load64(s + 24), b + c};
    return pair;
}

static uint64_t fingerprint64(const uint8_t *s, size_t n) {
    if (n <= 16) return fingerprint_short(s, n);
    if (n <= 64) return fingerprint_middle(s, n);
    uint64_t x = 81, y = 81 * K1 + 113, z = fold(y * K2 + 113) * K2, swapped;
    Pair v = {0, 0}, w = {0, 0};
    const uint8_t *end = s + (n - 1) / 64 * 64, *tail = s + n - 64;
    x = x * K2 + load64(s);
    for (; s != end; s += 64) {
        x = rotate_right(x + y + v.first + load64(s + 8), 37) * K1;
        y = rotate_right(y + v.second + load64(s + 48), 42) * K1;
        x ^= w.second;
        y += v.first + load64(s + 40);
        z = rotate_right(z + w.first, 33) * K1;
        v = absorb32(s, v.second * K1, x + w.first);
        w = absorb32(s + 32, z + w.second, y + load64(s + 16));
        swapped = z, z = x, x = swapped;
    }
    uint64_t multiplier = K1 + ((z & 0xff) << 1);
    s = tail;
    w.first += (n - 1) & 63;
    v.first += w.first;
    w.first += v.first;
    x = rotate_right(x + y + v.first + load64(s + 8), 37) * multiplier;
    y = rotate_right(y + v.second + load64(s + 48), 42) * multiplier;
    x ^= w.second * 9;
    y += v.first * 9 + load64(s + 40);
    z = rotate_right(z + w.first, 33) * multiplier;
    v = absorb32(s, v.second * multiplier, x + w.first);
    w = absorb32(s + 32, z + w.second, y + load64(s + 16));
    swapped = z, z = x, x = swapped;
    return mix(mix(v.first, w.first, multiplier) + fold(y) * K0 + z, mix(v.second, w.second, multiplier) + x, multiplier);
}

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
