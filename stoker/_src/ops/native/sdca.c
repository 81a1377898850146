/* Passes of stochastic dual coordinate ascent: the C version of the loop in stoker/_src/ops/training/sdca_solver.py, with the same
 * arithmetic in the same order. It runs with the interpreter lock released. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <math.h>
#include <stdint.h>

enum { SQUARED, HINGE, SMOOTH_HINGE, LOGISTIC, POISSON, LOSSES };
#define ROUNDS 100

static double clamped(double candidate, double y) {
    double along = y * candidate;
    along = along > 0.0 ? along : 0.0;
    return y * (along < 1.0 ? along : 1.0);
}

/* Newton's method inside a shrinking bracket. A step that would leave the bracket is replaced by its midpoint. */
#define SOLVE(LOW, HIGH, START, UNIT, AT, VALUE, SLOPE)                             \
    double low = (LOW), high = (HIGH), AT = (START);                                \
    for (int round = 0; round < ROUNDS; round++) {                                  \
        double value = (VALUE);                                                     \
        if (value > 0.0) high = AT; else low = AT;                                  \
        double next = AT - value / (SLOPE);                                         \
        if (!(next > low && next < high)) next = 0.5 * (low + high);                \
        double moved = fabs(next - AT);                                             \
        AT = next;                                                                  \
        if (moved <= 1e-13 * ((UNIT) + fabs(AT))) break;                            \
    }

static double sigmoid(double t) {
    double e = exp(-fabs(t));
    return (t < 0.0 ? e : 1.0) / (1.0 + e);
}

static double logistic_update(double dual, double y, double p, double curvature) {
    double before = y * dual, margin = y * p;
    SOLVE(-margin - (1.0 - before) * curvature, -margin + before * curvature, 0.5 * (low + high), 1.0, t,
          t + margin + (sigmoid(t) - before) * curvature, 1.0 + curvature * sigmoid(t) * (1.0 - sigmoid(t)))
    return y * sigmoid(t);
}

static double poisson_update(double dual, double y, double p, double curvature) {
    double rate = y - dual, log_mean = p < -700.0 ? -700.0 : p < 700.0 ? p : 700.0;
    double mean = exp(log_mean);
    double least = rate > 0.0 ? (rate < mean ? rate : mean) : exp(log_mean - (mean - rate) * curvature);
    double most = rate > mean ? rate : mean;
    if (!(least > 1e-100)) least = 1e-100;
    SOLVE(least, most, low, 0.0, v, log(v) - log_mean - (rate - v) * curvature, 1.0 / v + curvature)
    return y - v;
}

static double updated(int loss, double dual, double y, double p, double curvature) {
    switch (loss) {
        case SQUARED: return dual + (y - p - dual) / (1.0 + curvature);
        case HINGE:
            if (curvature == 0.0) return y * p < 1.0 ? y : 0.0;
            return clamped(dual + (y - p) / curvature, y);
        case SMOOTH_HINGE: return clamped(dual + (y - p - dual) / (curvature + 1.0), y);
        case LOGISTIC: return logistic_update(dual, y, p, curvature);
        default: return poisson_update(dual, y, p, curvature);
    }
}

typedef struct {
    Py_buffer order, labels, importance, norms, products, duals; /* one entry per example; order has the indices of examples */
    Py_buffer dense, dense_delta;                                /* float32 rows; float64 */
    Py_buffer starts, places, values, sparse_delta;              /* rows of sparse features; float64 */
} Problem;

static void ascend(const Problem *problem, int loss, double l2, double partitions) {
    const int64_t *order = problem->order.buf, *starts = problem->starts.buf, *places = problem->places.buf;
    const double *labels = problem->labels.buf, *importance = problem->importance.buf, *norms = problem->norms.buf;
    const double *products = problem->products.buf;
    const float *dense = problem->dense.buf, *values = problem->values.buf;
    double *duals = problem->duals.buf, *dense_delta = problem->dense_delta.buf, *sparse_delta = problem->sparse_delta.buf;
    Py_ssize_t count = problem->order.len / 8, width = problem->dense_delta.len / 8;
    for (Py_ssize_t step = 0; step < count; step++) {
        int64_t i = order[step];
        const float *row = dense + i * width;
        double change = 0.0;
        for (Py_ssize_t j = 0; j < width; j++) change += (double)row[j] * dense_delta[j];
        for (int64_t k = starts[i]; k < starts[i + 1]; k++) change += (double)values[k] * sparse_delta[places[k]];
        double p = products[i] + partitions * change;
        double dual = updated(loss, duals[i], labels[i], p, partitions * importance[i] * norms[i] / l2);
        double amount = (dual - duals[i]) * importance[i] / l2;
        duals[i] = dual;
        for (Py_ssize_t j = 0; j < width; j++) dense_delta[j] += (double)row[j] * amount;
        for (int64_t k = starts[i]; k < starts[i + 1]; k++) sparse_delta[places[k]] += (double)values[k] * amount;
    }
}

static int fits(const Problem *problem) {
    Py_ssize_t examples = problem->labels.len / 8, width = problem->dense_delta.len / 8;
    Py_ssize_t entries = problem->places.len / 8, places = problem->sparse_delta.len / 8;
    const int64_t *order = problem->order.buf, *starts = problem->starts.buf, *at = problem->places.buf;
    if (problem->importance.len != examples * 8 || problem->norms.len != examples * 8 || problem->duals.len != examples * 8 ||
        problem->products.len != examples * 8 || problem->starts.len != (examples + 1) * 8 ||
        problem->dense.len != examples * width * 4 || problem->values.len != entries * 4)
        return 0;
    for (Py_ssize_t i = 0; i < problem->order.len / 8; i++)
        if (order[i] < 0 || order[i] >= examples) return 0;
    if (starts[0] != 0 || starts[examples] != entries) return 0;
    for (Py_ssize_t i = 0; i < examples; i++)
        if (starts[i] > starts[i + 1]) return 0;
    for (Py_ssize_t i = 0; i < entries; i++)
        if (at[i] < 0 || at[i] >= places) return 0;
    return 1;
}

static PyObject *sdca_pass(PyObject *self, PyObject *args) {
    Problem problem;
    int loss;
    double l2, partitions;
    (void)self;
    if (!PyArg_ParseTuple(args, "iddy*y*y*y*y*w*y*w*y*y*y*w*", &loss, &l2, &partitions, &problem.order, &problem.labels,
                          &problem.importance, &problem.norms, &problem.products, &problem.duals, &problem.dense,
                          &problem.dense_delta, &problem.starts, &problem.places, &problem.values, &problem.sparse_delta))
        return NULL;
    int valid = loss >= 0 && loss < LOSSES && fits(&problem);
    if (valid) {
        Py_BEGIN_ALLOW_THREADS;
        ascend(&problem, loss, l2, partitions);
        Py_END_ALLOW_THREADS;
    } else {
        PyErr_SetString(PyExc_ValueError, "the arrays of a pass do not fit together");
    }
    Py_buffer *buffers[] = {&problem.order, &problem.labels, &problem.importance, &problem.norms,  &problem.products,
                            &problem.duals, &problem.dense,  &problem.dense_delta, &problem.starts, &problem.places,
                            &problem.values, &problem.sparse_delta};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) PyBuffer_Release(buffers[i]);
    if (!valid) return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef METHODS[] = {
    {"sdca_pass", sdca_pass, METH_VARARGS,
     "sdca_pass(loss, l2, partitions, order, labels, importance, norms, products, duals, dense, dense_delta, starts, places, "
     "values, sparse_delta): takes the examples in order, changing duals and deltas."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "sdca", "Compiled twin of stoker._src.ops.sdca_solver.", -1, METHODS, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_sdca(void) { return PyModule_Create(&MODULE); }
