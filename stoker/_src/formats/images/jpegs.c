/* Reads the headers of JPEG files in which nothing is unusual. jpeg.py reads all files, and says what is wrong with those that are damaged. */

#include "codecs.h"
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct {
    int height, width, components, across, down, progressive, adobe, rgb, complete;
    ptrdiff_t scan;
    uint8_t names[4];
} jpeg_form;

static inline int two(const uint8_t *at) { return at[0] << 8 | at[1]; }

static int is_segment(int marker) {
    return (marker >= 0xE0 && marker <= 0xEF) || marker == 0xFE || marker == 0xC4 || marker == 0xCC || (marker >= 0xDA && marker <= 0xDD);
}

static int is_frame(int marker) { return marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC; }

static int tables_fit(int marker, const uint8_t *body, ptrdiff_t size) {
    ptrdiff_t at = 0;
    if (marker == 0xC4) {
        while (size - at > 16) {
            int codes = 0;
            for (int i = 1; i < 17; i++) codes += body[at + i];
            if ((body[at] & ~0x10) >= 4 || codes > 256) return 0;
            at += 17 + codes;
        }
        return at == size;
    }
    if (marker == 0xDB) {
        while (at < size) {
            if ((body[at] & 15) >= 4) return 0;
            at += body[at] >> 4 ? 129 : 65;
        }
        return at == size;
    }
    return marker != 0xDD || size == 2;
}

static int read_frame(jpeg_form *form, int marker, const uint8_t *body, ptrdiff_t size) {
    if (form->components || size < 6 || size != 6 + 3 * body[5] || body[0] != 8) return 0;
    int count = body[5], across[2] = {0, 5}, down[2] = {0, 5}; /* the largest and the smallest factors */
    form->height = two(body + 1);
    form->width = two(body + 3);
    if (!form->height || !form->width || (count != 1 && count != 3 && count != 4)) return 0;
    for (int k = 0; k < count && k < 4; k++) {
        int x = body[7 + 3 * k] >> 4, y = body[7 + 3 * k] & 15;
        if (x < 1 || x > 4 || y < 1 || y > 4) return 0;
        if (x > across[0]) across[0] = x;
        if (x < across[1]) across[1] = x;
        if (y > down[0]) down[0] = y;
        if (y < down[1]) down[1] = y;
        form->names[k] = body[6 + 3 * k];
    }
    form->components = count;
    form->across = across[0] / across[1];
    form->down = down[0] / down[1];
    form->progressive = marker == 0xC2;
    return 1;
}

static int scan_fits(const jpeg_form *form, const uint8_t *body, ptrdiff_t size) {
    int count = body[0];
    if (count < 1 || count > 4 || size != 4 + 2 * count) return 0;
    for (int k = 0; k < count; k++)
        if (!memchr(form->names, body[1 + 2 * k], form->components)) return 0;
    return 1;
}

static int read_form(jpeg_form *form, const uint8_t *file, ptrdiff_t length) {
    if (length < 2 || file[0] != 0xFF || file[1] != 0xD8) return 0;
    ptrdiff_t at = 2;
    for (;;) {
        if (at + 4 > length || file[at] != 0xFF) return 0;
        int marker = file[at + 1];
        ptrdiff_t size = two(file + at + 2) - 2;
        if ((!is_segment(marker) && !is_frame(marker)) || size < 0 || at + 4 + size > length) return 0;
        const uint8_t *body = file + at + 4;
        if (marker == 0xDA) {
            if (!form->components || size < 1 || !scan_fits(form, body, size)) return 0;
            break;
        }
        if (is_frame(marker) ? !read_frame(form, marker, body, size) : !tables_fit(marker, body, size)) return 0;
        if (marker == 0xEE && size >= 5 && !memcmp(body, "Adobe", 5)) {
            form->adobe = 1;
            form->rgb = size >= 12 && body[11] == 0;
        }
        at += 4 + size;
    }
    form->scan = at;
    form->rgb = form->rgb && form->components == 3;
    while (length - at >= 2) {
        const uint8_t *found = memchr(file + at, 0xFF, length - 1 - at);
        if (!found) return 1;
        at = found - file;
        int marker = file[at + 1];
        if (marker <= 1 || marker == 0xFF || (marker >= 0xD0 && marker <= 0xD7)) {
            at++;
        } else if (marker == 0xD9) {
            form->complete = 1;
            return 1;
        } else if (is_segment(marker) && length - at >= 4) {
            at += 2 + two(file + at + 2);
        } else {
            return 0;
        }
    }
    return 1;
}

PyObject *native_jpeg_header(PyObject *self, PyObject *file) {
    if (!PyBytes_Check(file)) Py_RETURN_NONE;
    jpeg_form form = {0};
    if (!read_form(&form, (const uint8_t *)PyBytes_AS_STRING(file), PyBytes_GET_SIZE(file))) Py_RETURN_NONE;
    return Py_BuildValue("iiiiiNNNnN", form.height, form.width, form.components, form.across, form.down, PyBool_FromLong(form.progressive),
                         PyBool_FromLong(form.adobe), PyBool_FromLong(form.rgb), (Py_ssize_t)form.scan, PyBool_FromLong(form.complete));
}
