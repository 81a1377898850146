/* Crops of float32 images, resized to one size, and their gradient (ops/image/cropping.py), with the arithmetic of the kernels there. */
#include "tensors.h"

#include <math.h>
#include <stdlib.h>

#include "../../base/native/teams.h"
#include "../../base/native/vectorised.h"

enum { WORTH_A_THREAD = 1 << 15 }; /* elements per thread */

typedef struct {
    const float *boxes;
    const int32_t *images; /* the image of each box */
    long long batch, height, width, channels, count, rows, columns;
    int nearest;
} crops;

typedef struct {
    int64_t low, high; /* the pixels on both sides, the same for the nearest one; -1 if the place is outside */
    float fraction;
} place;

static void find_places(place *to, float first, float last, int64_t size, int64_t crop, int nearest) {
    float most = (float)(size - 1), step = crop > 1 ? (last - first) * most / (float)(crop - 1) : 0.0f;
    for (int64_t i = 0; i < crop; i++) {
        float at = crop > 1 ? first * most + (float)i * step : 0.5f * (first + last) * most;
        if (!(at >= 0 && at <= most)) {
            to[i] = (place){-1, -1, 0.0f};
        } else if (nearest) {
            int64_t pixel = (int64_t)floorf(at + 0.5f);
            to[i] = (place){pixel, pixel, 0.0f};
        } else {
            float low = floorf(at);
            to[i] = (place){(int64_t)low, (int64_t)ceilf(at), at - low};
        }
    }
}

static void places_of(const crops *p, int64_t box, place *down, place *across) {
    const float *edges = p->boxes + 4 * box;
    find_places(down, edges[0], edges[2], p->height, p->rows, p->nearest);
    find_places(across, edges[1], edges[3], p->width, p->columns, p->nearest);
}

static int is_fine(const crops *p) {
    for (int64_t i = 0; i < 4 * p->count; i++)
        if (!isfinite(p->boxes[i])) return 0;
    for (int64_t i = 0; i < p->count; i++)
        if (p->images[i] < 0 || p->images[i] >= p->batch) return 0;
    return 1;
}

VECTORISED static void mix(float *restrict out, const float *restrict a, const float *restrict b, const float *restrict c, const float *restrict d,
                           float x, float y, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        float top = a[i] + (b[i] - a[i]) * x, bottom = c[i] + (d[i] - c[i]) * x;
        out[i] = top + (bottom - top) * y;
    }
}

static void crop_one(const crops *p, float *out, const float *image, float usual, int64_t box, place *down, place *across) {
    int64_t pixel = p->channels, line = p->width * pixel;
    places_of(p, box, down, across);
    image += p->images[box] * p->height * line;
    out += box * p->rows * p->columns * pixel;
    for (int64_t y = 0; y < p->rows; y++)
        for (int64_t x = 0; x < p->columns; x++, out += pixel) {
            if (down[y].low < 0 || across[x].low < 0) {
                for (int64_t i = 0; i < pixel; i++) out[i] = usual;
                continue;
            }
            const float *top = image + down[y].low * line, *bottom = image + down[y].high * line;
            int64_t left = across[x].low * pixel, right = across[x].high * pixel;
            mix(out, top + left, top + right, bottom + left, bottom + right, across[x].fraction, down[y].fraction, pixel);
        }
}

VECTORISED static void add_share(float *restrict to, const float *restrict from, float share, int64_t count) {
    for (int64_t i = 0; i < count; i++) to[i] += from[i] * share;
}

/* Adds the share of one of the four corners of each place to the image's gradient: corner 0 is above left, 3 below right. */
static void spread_one(const crops *p, float *image, const float *grads, int64_t box, int corner, place *down, place *across) {
    int64_t pixel = p->channels, line = p->width * pixel;
    places_of(p, box, down, across);
    image += p->images[box] * p->height * line;
    grads += box * p->rows * p->columns * pixel;
    for (int64_t y = 0; y < p->rows; y++)
        for (int64_t x = 0; x < p->columns; x++, grads += pixel) {
            if (down[y].low < 0 || across[x].low < 0) continue;
            float of_row = corner & 2 ? down[y].fraction : 1 - down[y].fraction, of_column = corner & 1 ? across[x].fraction : 1 - across[x].fraction;
            int64_t row = corner & 2 ? down[y].high : down[y].low, column = corner & 1 ? across[x].high : across[x].low;
            add_share(image + row * line + column * pixel, grads, of_row * of_column, pixel);
        }
}

static PyObject *resample(PyObject *args, int backwards) {
    crops p;
    float *out, usual;
    void *boxes, *images, *from;
    int threads, fine;
    if (!PyArg_ParseTuple(args, "O&O&O&O&(LLLL)L(LL)pfi", to_address, &out, to_address, &from, to_address, &boxes, to_address, &images, &p.batch,
                          &p.height, &p.width, &p.channels, &p.count, &p.rows, &p.columns, &p.nearest, &usual, &threads))
        return NULL;
    p.boxes = boxes, p.images = images;
    int64_t share = p.count * p.rows * p.columns * p.channels / WORTH_A_THREAD, each = p.rows + p.columns;
    int used = threads_for(share, threads);
    place *room = malloc((size_t)(each * used) * sizeof *room);
    if (room == NULL) return PyErr_NoMemory();
    Py_BEGIN_ALLOW_THREADS;
    fine = is_fine(&p);
#pragma omp parallel for num_threads(team_for(used)) if (used > 1 && fine)
    for (int part = 0; part < (fine ? used : 0); part++) {
        place *down = room + part * each, *across = down + p.rows;
        if (!backwards) {
            for (int64_t box = p.count * part / used; box < p.count * (part + 1) / used; box++) crop_one(&p, out, from, usual, box, down, across);
        } else { /* an image belongs to one thread, which adds corner by corner in the order of the boxes */
            for (int corner = 0; corner < (p.nearest ? 1 : 4); corner++)
                for (int64_t box = 0; box < p.count; box++)
                    if (p.images[box] % used == part) spread_one(&p, out, from, box, corner, down, across);
        }
    }
    Py_END_ALLOW_THREADS;
    free(room);
    return PyBool_FromLong(fine);
}

static PyObject *crop(PyObject *self, PyObject *args) {
    (void)self;
    return resample(args, 0);
}

static PyObject *spread(PyObject *self, PyObject *args) {
    (void)self;
    return resample(args, 1);
}

static PyMethodDef METHODS[] = {
    {"crop", crop, METH_VARARGS,
     "crop(out, image, boxes, images, image_size, count, crop_size, nearest, usual, threads): False if a box is not finite or has no image."},
    {"spread", spread, METH_VARARGS, "spread(out, grads, ...): the same arguments; adds the gradient of the image to `out`."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "cropping", "Crops of images.", -1, METHODS, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_cropping(void) { return tensors_ready() ? PyModule_Create(&MODULE) : NULL; }
