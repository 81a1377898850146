/* Decodes PNG files of one size into one array. Only plain files are taken: 8 bits, not interlaced, without a transparent colour that
 * matters, and valid to the last byte. png.py decodes all files, to the same pixels. */

#include "../../base/native/teams.h"
#include "codecs.h"
#include "inflate.h"
#include "unfilter.h"

enum { WORTH_A_THREAD = 1 << 16 }; /* bytes of pixels per thread */

static uint32_t crc_tables[8][256];

static void make_crc_tables(void) {
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int k = 0; k < 8; k++) c = c & 1 ? 0xEDB88320u ^ c >> 1 : c >> 1;
        crc_tables[0][i] = c;
    }
    for (int k = 1; k < 8; k++)
        for (int i = 0; i < 256; i++) crc_tables[k][i] = crc_tables[k - 1][i] >> 8 ^ crc_tables[0][crc_tables[k - 1][i] & 255];
}

static inline uint32_t big_endian(const uint8_t *at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static uint32_t crc32_of(const uint8_t *data, ptrdiff_t size) {
    uint32_t crc = 0xFFFFFFFFu;
    for (; size >= 8; size -= 8, data += 8) {
        uint32_t low = crc ^ (data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16 | (uint32_t)data[3] << 24);
        crc = crc_tables[7][low & 255] ^ crc_tables[6][low >> 8 & 255] ^ crc_tables[5][low >> 16 & 255] ^ crc_tables[4][low >> 24]
            ^ crc_tables[3][data[4]] ^ crc_tables[2][data[5]] ^ crc_tables[1][data[6]] ^ crc_tables[0][data[7]];
    }
    for (; size > 0; size--) crc = crc >> 8 ^ crc_tables[0][(crc ^ *data++) & 255];
    return ~crc;
}

typedef struct {
    ptrdiff_t height, width;
    int channels;  /* of the result */
    int as_stored; /* whether they are the file's own */
} wanted_form;

static const int samples_of[7] = {1, 0, 3, 1, 2, 0, 4};

/* A row of samples as pixels of the result. */
static void convert_row(uint8_t *out, const uint8_t *in, ptrdiff_t width, int color, int channels, const uint8_t *palette) {
    for (ptrdiff_t x = 0; x < width; x++, out += channels) {
        if (color == 3) {
            memcpy(out, palette + 3 * in[x], 3);
        } else if (color == 6) { /* without its alpha */
            memcpy(out, in + 4 * x, 3);
        } else if (color == 2) { /* opaque */
            memcpy(out, in + 3 * x, 3);
            out[3] = 255;
        } else {
            const uint8_t *pixel = color == 4 ? in + 2 * x : in + x;
            out[0] = pixel[0];
            if (channels >= 3) out[1] = out[2] = pixel[0];
            if (channels == 4) out[3] = color == 4 ? pixel[1] : 255;
        }
    }
}

static int decode_png(const uint8_t *file, ptrdiff_t length, uint8_t *out, const wanted_form *form) {
    static const uint8_t signature[16] = {0x89, 'P', 'N', 'G', 13, 10, 26, 10, 0, 0, 0, 13, 'I', 'H', 'D', 'R'};
    if (length < 33 || memcmp(file, signature, 16) || crc32_of(file + 12, 17) != big_endian(file + 29)) return 0;
    if (big_endian(file + 16) != (uint32_t)form->width || big_endian(file + 20) != (uint32_t)form->height) return 0;
    int color = file[25], channels = form->channels;
    if (file[24] != 8 || color > 6 || !samples_of[color] || file[26] || file[27] || file[28]) return 0;
    int samples = samples_of[color], natural = color == 3 ? 3 : samples;
    if (form->as_stored ? channels != natural : channels == 1 ? natural > 2 : channels != 3 && channels != 4) return 0;
    if (color == 3 && channels != 3) return 0;

    uint8_t palette[768] = {0};
    const uint8_t *data = NULL;
    ptrdiff_t at = 33, data_size = 0, palette_size = 0;
    int parts = 0, over = 0;
    for (;;) {
        if (at > length - 12) return 0;
        ptrdiff_t size = big_endian(file + at);
        if (size > length - at - 12) return 0;
        const uint8_t *kind = file + at + 4, *body = file + at + 8;
        if (crc32_of(kind, size + 4) != big_endian(body + size)) return 0;
        for (int i = 0; i < 4; i++)
            if (!((kind[i] | 32) >= 'a' && (kind[i] | 32) <= 'z')) return 0;
        int is_data = !memcmp(kind, "IDAT", 4);
        if (is_data && over) return 0;
        if (parts && !is_data) over = 1;
        if (is_data) {
            if (color == 3 && !palette_size) return 0;
            if (!parts++) data = file + at;
            data_size += size;
        } else if (!memcmp(kind, "PLTE", 4)) {
            if (size % 3 || size < 3 || size > 768 || palette_size || parts) return 0;
            memcpy(palette, body, size);
            palette_size = size;
        } else if (!memcmp(kind, "tRNS", 4)) {
            if (channels == 4 || (color == 3 && form->as_stored)) return 0;
        } else if (!memcmp(kind, "IEND", 4)) {
            break;
        } else if (!(kind[0] & 0x20)) {
            return 0;
        }
        at += 12 + size;
    }
    if (!parts) return 0;

    ptrdiff_t row = form->width * samples, raw_size = (row + 1) * form->height;
    int direct = samples == channels && color != 3;
    ptrdiff_t joined_size = parts > 1 ? data_size : 0;
    uint8_t *room = malloc(raw_size + 3 * row + joined_size);
    if (!room) return 0;
    uint8_t *raw = room, *zeros = room + raw_size, *lines = zeros + row, *joined = lines + 2 * row;
    memset(zeros, 0, row);
    const uint8_t *stream = data + 8;
    if (parts > 1) {
        ptrdiff_t filled = 0;
        for (int k = 0; k < parts; k++) {
            ptrdiff_t size = big_endian(data);
            memcpy(joined + filled, data + 8, size);
            filled += size;
            data += 12 + size;
        }
        stream = joined;
    }
    int good = inflate_exactly(stream, data_size, raw, raw_size);
    const uint8_t *above = zeros;
    for (ptrdiff_t y = 0; good && y < form->height; y++) {
        const uint8_t *source = raw + y * (row + 1);
        uint8_t *target = direct ? out + y * row : lines + (y & 1) * row;
        if (source[0] > 4) good = 0;
        else unfilter_row(source[0], target, source + 1, above, row, samples);
        if (good && !direct) convert_row(out + y * form->width * channels, target, form->width, color, channels, palette);
        above = target;
    }
    free(room);
    return good;
}

PyObject *native_decode_pngs(PyObject *self, PyObject *args) {
    PyObject *given;
    Py_buffer out;
    wanted_form form;
    int threads;
    if (!PyArg_ParseTuple(args, "Ow*nniii", &given, &out, &form.height, &form.width, &form.channels, &form.as_stored, &threads)) return NULL;
    PyObject *files = PySequence_Tuple(given); /* nobody else can change it */
    if (!files) {
        PyBuffer_Release(&out);
        return NULL;
    }
    ptrdiff_t count = PyTuple_GET_SIZE(files), most = PY_SSIZE_T_MAX / 16;
    int fits = form.height > 0 && form.width > 0 && form.channels >= 1 && form.channels <= 4 && form.height < INT32_MAX &&
               form.width < INT32_MAX && form.width < most / form.height && count > 0 && out.len % count == 0 &&
               out.len / count == form.height * form.width * form.channels;
    if (!crc_tables[0][1]) make_crc_tables();
    const uint8_t **starts = fits ? PyMem_Malloc(count * (sizeof(uint8_t *) + sizeof(ptrdiff_t))) : NULL;
    int good = starts != NULL;
    if (good) {
        ptrdiff_t *sizes = (ptrdiff_t *)(starts + count), each = out.len / count;
        for (ptrdiff_t i = 0; i < count; i++) {
            PyObject *file = PyTuple_GET_ITEM(files, i);
            if (!PyBytes_Check(file)) {
                good = 0;
                break;
            }
            starts[i] = (const uint8_t *)PyBytes_AS_STRING(file);
            sizes[i] = PyBytes_GET_SIZE(file);
        }
        if (good) {
            threads = threads_for(count < out.len / WORTH_A_THREAD ? count : out.len / WORTH_A_THREAD, threads);
            Py_BEGIN_ALLOW_THREADS
#pragma omp parallel for schedule(dynamic) reduction(&& : good) num_threads(team_for(threads)) if (threads > 1)
            for (ptrdiff_t i = 0; i < count; i++) good = good && decode_png(starts[i], sizes[i], (uint8_t *)out.buf + i * each, &form);
            Py_END_ALLOW_THREADS
        }
    }
    PyMem_Free(starts);
    PyBuffer_Release(&out);
    Py_DECREF(files);
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "decode_pngs: sizes do not fit");
        return NULL;
    }
    return PyBool_FromLong(good);
}
