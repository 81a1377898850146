"""Samples of ops on sparse and ragged tensors."""

import numpy as np

import stoker.compat.v1 as tf
from stoker._src.base.errors import InvalidArgumentError
from tests.ops.samples import Sample, check_sample, f64, samples, texts

SHAPE = np.array([3, 4])
INDICES = np.array([[0, 1], [0, 3], [2, 0]])
OTHER = np.array([[0, 1], [1, 2]])


def dense(indices, values, shape):
    """The sparse tensor as an array."""
    made = np.zeros(shape, np.asarray(values).dtype)
    made[tuple(np.asarray(indices).T)] = values
    return made


def sparse(array):
    """(indices, values) of all elements that are not zero."""
    indices = np.argwhere(array)
    return indices, array[tuple(indices.T)]


def added(a_indices, a, a_shape, b_indices, b, b_shape, *_):
    return *sparse(dense(a_indices, a, a_shape) + dense(b_indices, b, b_shape)), a_shape


def paired(function):
    """The union of two sparse tensors' places with `function` of both."""

    def reference(a_indices, a, shape, b_indices, b, _):
        places = sorted({tuple(i) for i in (*a_indices, *b_indices)})
        both = function(dense(a_indices, a, shape), dense(b_indices, b, shape))
        return np.array(places), np.array([both[place] for place in places])

    return reference


def softmax(indices, values, shape):
    result = np.empty_like(values)
    for row in range(shape[0]):
        here = indices[:, 0] == row
        powers = np.exp(values[here])
        result[here] = powers / powers.sum()
    return result


def at_values(function):
    """An element-wise op of a sparse and a dense tensor, at the places of the sparse one."""
    return lambda indices, values, shape, b: function(values, np.broadcast_to(b, shape)[tuple(indices.T)])


def segment_gradient(scale):
    def reference(g, indices, segments, count):
        made = np.zeros((count, *g.shape[1:]))
        for index, segment in zip(indices, segments):
            made[index] += g[segment] / scale(np.sum(segments == segment))
        return made

    return reference


SEGMENTS = [f64(2, 3), np.array([0, 2, 0]), np.array([0, 0, 1]), 4]


def some_rows(reference):
    return lambda g, indices, segments, count: (
        reference(g, indices, segments, count)[np.unique(indices)],
        np.unique(indices),
    )


VALUES = np.array([2.0, -1.0, 0.5])
SERIALIZED = texts(*(tf.make_tensor_proto(part).SerializeToString() for part in (INDICES, VALUES, SHAPE)))

SAMPLES = [
    Sample("SparseToDense", [INDICES, SHAPE, VALUES, np.float64(7)], gradient=(2, 3),
           reference=lambda i, s, v, d: np.where(dense(i, np.ones(3), s) > 0, dense(i, v, s), d)),
    Sample("SparseToDense", [np.array([1, 3]), np.array([5]), np.float64(2), np.float64(0)], gradient=False, reference=lambda *_: np.array([0, 2.0, 0, 2, 0])),
    Sample("SparseToDense", [np.array([[0, 1], [0, 1]]), SHAPE, f64(2), np.float64(0)], raises=(InvalidArgumentError, "repeated")),
    Sample("SparseToDense", [np.array([[0, 4]]), SHAPE, f64(1), np.float64(0)], raises=(InvalidArgumentError, "out of bounds")),
    Sample("SparseReorder", [INDICES[::-1].copy(), VALUES[::-1].copy(), SHAPE], reference=lambda *_: (INDICES, VALUES), gradient=(1,)),
    Sample("SparseReshape", [INDICES, SHAPE, np.array([2, -1])], static=False,
           reference=lambda i, s, n: (np.stack(np.unravel_index(np.ravel_multi_index(i.T, s), (2, 6)), 1), np.array([2, 6]))),
    Sample("SparseReshape", [INDICES, SHAPE, np.array([5, -1])], raises=(InvalidArgumentError, "12|5")),
    Sample("SparseConcat", [[INDICES, OTHER], [VALUES, f64(2)], [SHAPE, np.array([3, 5])]], {"concat_dim": 1}, gradient=False, static=False,
           reference=lambda i, v, s: (*sparse(np.concatenate([dense(*each) for each in zip(i, v, s)], 1)), np.array([3, 9]))),
    Sample("SparseConcat", [[INDICES, OTHER], [VALUES, f64(2)], [SHAPE, np.array([4, 5])]], {"concat_dim": 1}, raises=(InvalidArgumentError, "3.*4|4.*3")),
    Sample("SparseSplit", [np.int64(1), INDICES, VALUES, SHAPE], {"num_split": 2}, static=False, gradient=False, reference=lambda axis, i, v, s: (
               [np.array([[0, 1], [2, 0]]), np.array([[0, 1]])], [np.array([2.0, 0.5]), np.array([-1.0])], [np.array([3, 2])] * 2)),
    Sample("SparseSlice", [INDICES, VALUES, SHAPE, np.array([0, 1]), np.array([2, 2])], static=False, gradient=(1,),
           reference=lambda *_: (np.array([[0, 0]]), np.array([2.0]), np.array([2, 2]))),
    Sample("SparseSliceGrad", [f64(1), INDICES, np.array([0, 1]), np.array([[0, 0]])], gradient=False,
           reference=lambda g, *_: np.array([g[0], 0, 0])),
    Sample("SparseAdd", [INDICES, VALUES, SHAPE, OTHER, f64(2), SHAPE, np.float64(0)], static=False, gradient=(1, 4), reference=added),
    Sample("SparseAddGrad", [f64(4), INDICES, OTHER, np.array([[0, 1], [0, 3], [1, 2], [2, 0]])], gradient=False,
           reference=lambda g, *_: (g[[0, 1, 3]], g[[0, 2]])),
    Sample("SparseTensorDenseMatMul", [INDICES, VALUES, SHAPE, f64(4, 2)], gradient=(1, 3), static=False, reference=lambda i, v, s, b: dense(i, v, s) @ b),
    Sample("SparseTensorDenseMatMul", [INDICES, VALUES, SHAPE, f64(2, 3)], {"adjoint_a": True, "adjoint_b": True}, gradient=(1, 3), static=False,
           reference=lambda i, v, s, b: dense(i, v, s).T @ b.T),
    Sample("SparseTensorDenseMatMul", [INDICES, VALUES, SHAPE, f64(3, 2)], raises=(InvalidArgumentError, "4.*3|3.*4")),
    Sample("SparseTensorDenseAdd", [INDICES, VALUES, SHAPE, f64(3, 4)], gradient=(1, 3), reference=lambda i, v, s, b: dense(i, v, s) + b),
    Sample("SparseDenseCwiseAdd", [INDICES, VALUES, SHAPE, f64(4)], gradient=False, reference=at_values(np.add)),
    Sample("SparseDenseCwiseMul", [INDICES, VALUES, SHAPE, f64(3, 4)], gradient=(1,), reference=at_values(np.multiply)),
    Sample("SparseDenseCwiseDiv", [INDICES, VALUES, SHAPE, f64(3, 4)], gradient=(1,), reference=at_values(np.divide)),
    Sample("SparseSparseMaximum", [INDICES, VALUES, SHAPE, OTHER, f64(2), SHAPE], gradient=False, static=False, reference=paired(np.maximum)),
    Sample("SparseSparseMinimum", [INDICES, VALUES, SHAPE, OTHER, f64(2), SHAPE], gradient=False, static=False, reference=paired(np.minimum)),
    Sample("SparseReduceSum", [INDICES, VALUES, SHAPE, [1]], gradient=(1,), static=False, reference=lambda i, v, s, a: dense(i, v, s).sum(1)),
    Sample("SparseReduceSum", [INDICES, VALUES, SHAPE, [0, 1]], {"keep_dims": True}, gradient=(1,), static=False, reference=lambda i, v, s, a: v.sum().reshape(1, 1)),
    Sample("SparseReduceSumSparse", [INDICES, VALUES, SHAPE, [1]], gradient=False, static=False,
           reference=lambda *_: (np.array([[0], [2]]), np.array([1.0, 0.5]), np.array([3]))),
    Sample("SparseReduceMax", [INDICES, VALUES, SHAPE, [1]], gradient=False, static=False, reference=lambda *_: np.array([2.0, 0, 0.5])),
    Sample("SparseReduceMaxSparse", [INDICES, VALUES, SHAPE, [1]], {"keep_dims": True}, gradient=False, static=False,
           reference=lambda *_: (np.array([[0, 0], [2, 0]]), np.array([2.0, 0.5]), np.array([3, 1]))),
    Sample("SparseSoftmax", [INDICES, VALUES, SHAPE], gradient=(1,), reference=softmax),
    Sample("SparseFillEmptyRows", [INDICES, VALUES, SHAPE, np.float64(9)], static=False, gradient=(1, 3), reference=lambda *_: (
               np.array([[0, 1], [0, 3], [1, 0], [2, 0]]), np.array([2.0, -1, 9, 0.5]), np.array([False, True, False]), np.array([0, 1, 3]))),
    Sample("SparseFillEmptyRowsGrad", [np.array([0, 1, 3]), f64(4)], gradient=False, reference=lambda m, g: (g[m], g[2])),
    Sample("SparseSegmentMeanGrad", SEGMENTS, gradient=False, reference=segment_gradient(float)),
    Sample("SparseSegmentSqrtNGrad", SEGMENTS, gradient=False, reference=segment_gradient(np.sqrt)),
    Sample("SparseSegmentMeanGradV2", SEGMENTS, gradient=False, static=False, reference=some_rows(segment_gradient(float))),
    Sample("SparseSegmentSqrtNGradV2", SEGMENTS, gradient=False, static=False, reference=some_rows(segment_gradient(np.sqrt))),
    Sample("SparseCross", [[], [], [], [np.array([[1], [2]]), np.array([[3], [4]])]], {
               "hashed_output": True, "num_buckets": 1, "hash_key": 7, "out_type": "int64", "internal_type": "int64"}, static=False,
           reference=lambda *_: (np.array([[0, 0], [1, 0]]), np.array([0, 0]), np.array([2, 1]))),
    Sample("SparseCrossV2", [[], [], [], [np.array([[b"a"]], object), np.array([[b"x", b"y"]], object)], np.array(b"&", object)], static=False,
           reference=lambda *_: (np.array([[0, 0], [0, 1]]), texts(b"a&x", b"a&y"), np.array([1, 2]))),
    Sample("EditDistance", [np.array([[0, 0], [0, 1]]), np.array([1, 2]), np.array([1, 2]), np.array([[0, 0], [0, 1], [0, 2]]), np.array([1, 3, 2]), np.array([1, 3])],
           {"normalize": False}, static=False, reference=lambda *_: np.array([1.0], np.float32)),
    Sample("RaggedTensorToSparse", [[np.array([0, 2, 2, 3])], f64(3)], static=False, gradient=(1,),
           reference=lambda s, v: (np.array([[0, 0], [0, 1], [2, 0]]), v, np.array([3, 2]))),
    Sample("RaggedTensorToTensor", [[-1, 3], f64(3), np.float64(5), [np.array([0, 2, 2, 3])]], {"row_partition_types": ["ROW_SPLITS"]}, static=False, gradient=(1, 2),
           reference=lambda n, v, d, s: np.array([[v[0], v[1], d], [d, d, d], [v[2], d, d]])),
    Sample("RaggedGather", [[np.array([0, 2, 2, 3])], f64(3), np.array([2, 0])], {"OUTPUT_RAGGED_RANK": 1}, static=False, gradient=(1,),
           reference=lambda s, v, i: ([np.array([0, 1, 3])], v[[2, 0, 1]])),
    Sample("RaggedGather", [[np.array([0, 2, 2, 3])], f64(3), np.array([3])], {"OUTPUT_RAGGED_RANK": 1}, raises=(InvalidArgumentError, "3")),
    Sample("SerializeSparse", [INDICES, VALUES, SHAPE], gradient=False),
    Sample("SerializeManySparse", [INDICES, VALUES, SHAPE], gradient=False, static=False),
    Sample("DeserializeSparse", [SERIALIZED], {"dtype": "float64"}, static=False, reference=lambda x: (INDICES, VALUES, SHAPE)),
    Sample("DeserializeManySparse", [SERIALIZED.reshape(1, 3)], {"dtype": "float64"}, static=False,
           reference=lambda x: (np.concatenate([np.zeros((3, 1), int), INDICES], 1), VALUES, np.array([1, 3, 4]))),
    Sample("DeserializeManySparse", [SERIALIZED[:2].reshape(1, 2)], {"dtype": "float64"}, raises=(InvalidArgumentError, "3")),
    Sample("ComputeAccidentalHits", [np.array([[1, 2], [3, 4]]), np.array([4, 0, 1])], {"num_true": 2}, static=False, reference=lambda *_: (
               np.array([0, 1], np.int32), np.array([2, 0]), np.full(2, np.finfo(np.float32).min, np.float32))),
]  # fmt: skip


@samples(SAMPLES)
def test_sample(sample) -> None:
    """The op's value, shape, gradient, eager form and GraphDef agree with each other and with NumPy."""
    check_sample(sample)
