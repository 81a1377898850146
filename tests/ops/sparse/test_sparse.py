"""Sparse tensors: values that real TensorFlow gives, gradients, and the functions of tf.sparse."""

import numpy as np
import pytest

import stoker as tf2
import stoker.compat.v1 as tf
from stoker._src.base.errors import InvalidArgumentError
from tests.ops.samples import Sample, check_sample, f64, samples
from tests.ops.strings.test_strings import s

F = np.float64
A = [np.array([[0, 1], [1, 0], [1, 2]]), np.array([1.0, 2.0, 3.0]), np.array([2, 3])]
B = [np.array([[0, 1], [1, 1]]), np.array([10.0, 20.0]), np.array([2, 3])]
C = [np.array([[0, 1]]), np.array([-1.0]), np.array([2, 3])]
WIDE = [np.array([[0, 0]]), np.array([1.0]), np.array([1, 9])]
DENSE = np.zeros((2, 3))
DENSE[0, 1], DENSE[1, 0], DENSE[1, 2] = 1, 2, 3


def one(op, inputs, expected, gradient=False, static=False, **attrs):
    return Sample(op, inputs, attrs, reference=lambda *_: expected, gradient=gradient, static=static)


def bad(op, inputs, message, **attrs):
    return Sample(op, inputs, attrs, raises=(InvalidArgumentError, message))


SUM = np.array([[0, 1], [1, 0], [1, 1], [1, 2]])
SAMPLES = [
    one("SparseToDense", [A[0], A[2], A[1], F(0.0)], DENSE, gradient=True),
    one("SparseToDense", [np.array([1, 3]), np.array([5]), F(1), F(0)], np.array([0.0, 1, 0, 1, 0]), gradient=True),
    one("SparseToDense", [np.array([[1, 0], [0, 1]]), np.array([2, 3]), np.array([1.0, 2]), F(0)], np.array([[0, 2.0, 0], [1, 0, 0]]),
        validate_indices=False),
    one("SparseToDense", [np.array([[1, 0]]), np.array([2, 2]), s("x"), s("?").reshape(())], s("?", "?", "x", "?", shape=(2, 2))),
    bad("SparseToDense", [np.array([[0, 5]]), np.array([2, 3]), np.array([1.0]), F(0)], r"indices\[0\] = \[0,5\] is out of bounds: need 0 <= index < \[2,3\]"),
    bad("SparseToDense", [np.array([[1, 0], [0, 1]]), np.array([2, 3]), np.array([1.0, 2]), F(0)], r"indices\[1\] = \[0,1\] is out of order"),
    bad("SparseToDense", [np.array([[1, 0], [1, 0]]), np.array([2, 3]), np.array([1.0, 2]), F(0)], r"indices\[1\] = \[1,0\] is repeated"),
    one("SparseReorder", [np.array([[1, 0], [0, 1], [0, 0]]), np.array([1.0, 2, 3]), np.array([2, 3])],
        (np.array([[0, 0], [0, 1], [1, 0]]), np.array([3.0, 2, 1])), gradient=(1,)),
    one("SparseReshape", [A[0], A[2], np.array([3, -1])], (np.array([[0, 1], [1, 1], [2, 1]]), np.array([3, 2]))),
    bad("SparseReshape", [A[0], A[2], np.array([4, -1])], "6 dense values, but the requested shape requires a multiple of 4"),
    bad("SparseReshape", [A[0], A[2], np.array([4, 4])], "6 dense values, but the requested shape has 16"),
    one("SparseConcat", [[A[0], B[0]], [A[1], B[1]], [A[2], B[2]]],
        (np.array([[0, 1], [1, 0], [1, 2], [2, 1], [3, 1]]), np.array([1.0, 2, 3, 10, 20]), np.array([4, 3])), concat_dim=0),
    one("SparseConcat", [[A[0], B[0]], [A[1], B[1]], [A[2], B[2]]],
        (np.array([[0, 1], [0, 4], [1, 0], [1, 2], [1, 4]]), np.array([1.0, 10, 2, 3, 20]), np.array([2, 6])), concat_dim=-1),
    bad("SparseConcat", [[A[0], WIDE[0]], [A[1], WIDE[1]], [A[2], WIDE[2]]], "expected 3 for dimension 1 but got 9 at position 1", concat_dim=0),
    one("SparseSplit", [np.int64(1), *A], ([np.array([[0, 1], [1, 0]]), np.array([[1, 0]])], [np.array([1.0, 2]), np.array([3.0])],
                                 [np.array([2, 2]), np.array([2, 1])]), num_split=2),
    bad("SparseSplit", [np.int64(0), *A], "num_split", num_split=4),
    one("SparseSlice", [*A, np.array([0, 1]), np.array([2, 9])], (np.array([[0, 0], [1, 1]]), np.array([1.0, 3]), np.array([2, 2])), gradient=(1,)),
    one("SparseAdd", [*A, *B, F(0)], (SUM, np.array([11.0, 2, 20, 3]), A[2]), gradient=(1, 4)),
    one("SparseAdd", [*A, *C, F(0.1)], (np.array([[1, 0], [1, 2]]), np.array([2.0, 3]), A[2])),
    one("SparseAdd", [*A, *C, F(0)], (A[0], np.array([0.0, 2, 3]), A[2])),
    bad("SparseAdd", [*A, *WIDE, F(0)], "got 2 and 1 for dimension 0"),
    one("SparseAddGrad", [np.array([1.0, 2, 3, 4]), A[0], B[0], SUM], (np.array([1.0, 2, 4]), np.array([1.0, 3]))),
    one("SparseTensorDenseMatMul", [*A, np.arange(6.0).reshape(3, 2)], DENSE @ np.arange(6.0).reshape(3, 2), gradient=(1, 3)),
    one("SparseTensorDenseMatMul", [*A, np.arange(4.0).reshape(2, 2)], DENSE.T @ np.arange(4.0).reshape(2, 2).T, gradient=(1, 3),
        adjoint_a=True, adjoint_b=True),
    bad("SparseTensorDenseMatMul", [np.array([[0, 7]]), np.array([1.0]), np.array([2, 3]), f64(3, 2)], r"k \(7\) from index\[0,1\] out of bounds \(>=3\)"),
    bad("SparseTensorDenseMatMul", [*A, f64(4, 2)], "3 vs. 4"),
    one("SparseTensorDenseAdd", [*A, np.ones((2, 3))], DENSE + 1, gradient=(1, 3)),
    bad("SparseTensorDenseAdd", [*A, np.ones((3, 3))], "do not match"),
    one("SparseReduceSum", [*A, [1]], np.array([1.0, 5]), gradient=(1,)),
    one("SparseReduceSum", [*A, [0, 1]], np.array(6.0), gradient=(1,)),
    one("SparseReduceSum", [*A, 0], np.array([[2.0, 1, 3]]), gradient=(1,), keep_dims=True),
    one("SparseReduceSumSparse", [*A, 1], (np.array([[0], [1]]), np.array([1.0, 5]), np.array([2]))),
    one("SparseReduceSumSparse", [*A, [0, 1]], (np.zeros((1, 0)), np.array([6.0]), np.zeros(0))),
    one("SparseReduceSumSparse", [*A, 0], (np.array([[0, 0], [0, 1], [0, 2]]), np.array([2.0, 1, 3]), np.array([1, 3])), keep_dims=True),
    one("SparseReduceMax", [np.array([[0, 0]]), np.array([-5.0]), np.array([2, 2]), [1]], np.array([-5.0, 0])),
    bad("SparseReduceSum", [*A, [2]], "Invalid reduction dimension 2"),
    one("SparseSoftmax", A, np.array([1.0, 1 / (1 + np.e), np.e / (1 + np.e)]), gradient=(1,)),
    one("SparseFillEmptyRows", [np.array([[0, 1], [3, 0], [2, 0]]), np.array([1.0, 2, 3]), np.array([5, 6]), F(9)],
        (np.array([[0, 1], [1, 0], [2, 0], [3, 0], [4, 0]]), np.array([1.0, 9, 3, 2, 9]), np.array([0, 1, 0, 0, 1], bool), np.array([0, 3, 2])),
        gradient=(1, 3)),
    one("SparseFillEmptyRows", [np.zeros((0, 2), "i8"), s(), np.array([2, 6]), s("d").reshape(())],
        (np.array([[0, 0], [1, 0]]), s("d", "d"), np.array([True, True]), np.zeros(0))),
    bad("SparseFillEmptyRows", [np.array([[9, 1]]), np.array([1.0]), np.array([4, 6]), F(9)], r"indices\(0, 0\) is invalid: 9 >= 4"),
    one("SparseFillEmptyRowsGrad", [np.array([0, 2, 3]), np.array([1.0, 2, 3, 4])], (np.array([1.0, 3, 4]), np.array(2.0))),
    one("SparseDenseCwiseMul", [*A, np.array([1.0, 2, 3])], np.array([2.0, 2, 9]), gradient=(1, 3)),
    one("SparseDenseCwiseMul", [*A, np.array([[1.0], [2]])], np.array([1.0, 4, 6]), gradient=(1, 3)),
    one("SparseDenseCwiseDiv", [*A, np.array([[1.0], [2]])], np.array([1.0, 1, 1.5]), gradient=(1, 3)),
    one("SparseDenseCwiseAdd", [*A, np.array([[1.0], [2]])], np.array([2.0, 4, 5])),
    bad("SparseDenseCwiseMul", [*A, f64(3, 1)], r"broadcasts dense to sparse only; got incompatible shapes: \[2,3\] vs. \[3,1\]"),
    one("SparseSparseMaximum", [*A, *B], (SUM, np.array([10.0, 2, 20, 3]))),
    one("SparseSparseMinimum", [*A, *B], (SUM, np.array([1.0, 0, 0, 0]))),
    bad("SparseSparseMaximum", [*A, np.array([[0, 0]]), np.array([1.0]), np.array([3, 3])], "got 2 and 3 for dimension 0"),
]  # fmt: skip


@samples(SAMPLES)
def test_sample(sample: Sample) -> None:
    """The op does what TensorFlow does, in every mode."""
    check_sample(sample)


def parts(sparse):
    return [each.numpy().tolist() for each in (sparse.indices, sparse.values, sparse.dense_shape)]


@pytest.fixture
def a(eager):
    return tf2.SparseTensor(*A)


def test_functions_of_sparse_tensors(a):
    """tf.sparse's functions give TensorFlow's results."""
    assert parts(tf2.sparse.transpose(a)) == [[[0, 1], [1, 0], [2, 1]], [2, 1, 3], [3, 2]]
    assert parts(tf2.sparse.retain(a, [True, False, True])) == [[[0, 1], [1, 2]], [1, 3], [2, 3]]
    assert parts(tf2.sparse.reset_shape(tf2.SparseTensor([[0, 1], [1, 2]], [1.0, 2.0], [5, 6]))) == [
        [[0, 1], [1, 2]],
        [1, 2],
        [2, 3],
    ]
    assert parts(tf2.sparse.from_dense([[0, 1], [2, 0]])) == [[[0, 1], [1, 0]], [1, 2], [2, 2]]
    assert parts(tf2.sparse.expand_dims(a, 0)) == [[[0, 0, 1], [0, 1, 0], [0, 1, 2]], [1, 2, 3], [1, 2, 3]]
    assert parts(tf2.sparse.eye(2, 3)) == [[[0, 0], [1, 1]], [1, 1], [2, 3]]
    wide = tf2.SparseTensor(*WIDE)
    assert parts(tf2.sparse.concat(0, [a, wide], expand_nonconcat_dims=True)) == [
        [[0, 1], [1, 0], [1, 2], [2, 0]], [1, 2, 3, 1], [3, 9],
    ]  # fmt: skip
    ids = tf2.SparseTensor([[0, 0], [0, 1], [1, 0]], np.array([1, 3, 0]), [2, 2])
    assert tf2.sparse.to_indicator(ids, 5).numpy().astype(int).tolist() == [[0, 1, 0, 1, 0], [1, 0, 0, 0, 0]]
    assert parts(a * np.array([1.0, 2.0, 3.0])) == [A[0].tolist(), [2, 2, 9], [2, 3]]
    assert parts(tf2.sparse.map_values(tf2.negative, a))[1] == [-1, -2, -3]
    dense = tf2.constant(np.ones((4, 2)))
    np.testing.assert_allclose(tf2.sparse.sparse_dense_matmul(dense, a).numpy(), np.ones((4, 2)) @ DENSE)
    np.testing.assert_array_equal(tf2.sparse.add(np.ones((2, 3)), a).numpy(), DENSE + 1)
    first, second = tf2.sparse.split(sp_input=a, num_split=2, axis=1)
    assert parts(first)[2] == [2, 2] and parts(second)[2] == [2, 1]
    with pytest.raises(TypeError, match="must be a SparseTensor"):
        tf2.sparse.to_dense(np.ones(3))
    with pytest.raises(TypeError, match="At least one input"):
        tf2.sparse.add(np.ones(3), np.ones(3))


def test_mask_of_indexed_slices(eager):
    """sparse_mask leaves rows out."""
    slices = tf2.IndexedSlices(tf2.constant([[1.0], [2.0], [3.0]]), tf2.constant([5, 6, 7]), tf2.constant([9, 1]))
    masked = tf.sparse_mask(slices, [6])
    assert masked.indices.numpy().tolist() == [5, 7] and masked.values.numpy().tolist() == [[1], [3]]


def test_placeholders_are_fed_and_fetched():
    """A sparse placeholder takes a SparseTensorValue or a tuple, and comes back as a SparseTensorValue."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.sparse_placeholder(tf.float64, [None, 3])
        y = tf.placeholder(tf.float64, [])
        dense = tf.sparse_tensor_to_dense(x) * y
        assert x.shape.as_list() == [None, 3]
        for value in (tf.SparseTensorValue(*A), tuple(A)):
            found, back = session.run([dense, x], {y: 2.0, x: value})
            np.testing.assert_array_equal(found, DENSE * 2)
            assert isinstance(back, tf.SparseTensorValue) and back.values.tolist() == [1, 2, 3]
        with pytest.raises(TypeError, match="SparseTensorValue"):
            session.run(dense, {x: 3, y: 1.0})
        fixed = tf.sparse_placeholder(tf.float64, [2, 3])
        assert fixed.shape.as_list() == [2, 3]


def test_construction_checks_shapes():
    """Parts that do not fit together are refused."""
    with tf.Graph().as_default():
        with pytest.raises(ValueError, match="SparseTensor needs"):
            tf.SparseTensor([[0, 1]], [1.0, 2.0], [2, 3])
        with pytest.raises(ValueError, match="SparseTensor needs"):
            tf.SparseTensor([[0, 1]], [1.0], [2, 3, 4])
        with pytest.raises(TypeError, match="neither"):
            tf.SparseTensor.from_value([1])


EMBEDDINGS = np.arange(12.0, dtype=np.float32).reshape(6, 2)
IDS = ([[0, 0], [0, 1], [2, 0]], np.array([1, 3, 0]), [3, 2])
WEIGHTS = ([[0, 0], [0, 1], [2, 0]], np.array([2.0, 1.0, 0.5], np.float32), [3, 2])
COMBINED = {
    ("sum", False): [[8, 10], [0, 0], [0, 1]],
    ("sum", True): [[10, 13], [0, 0], [0, 0.5]],
    ("mean", False): [[4, 5], [0, 0], [0, 1]],
    ("mean", True): [[10 / 3, 13 / 3], [0, 0], [0, 1]],
    ("sqrtn", False): [[5.656854, 7.071068], [0, 0], [0, 1]],
    ("sqrtn", True): [[4.472136, 5.813777], [0, 0], [0, 1]],
}


@pytest.mark.parametrize(("combiner", "weighted"), COMBINED)
def test_embedding_lookup_sparse(combiner, weighted, eager):
    """Rows are combined as TensorFlow combines them; empty rows are zero."""
    found = tf2.nn.embedding_lookup_sparse(
        EMBEDDINGS, tf2.SparseTensor(*IDS), tf2.SparseTensor(*WEIGHTS) if weighted else None, combiner=combiner
    )
    np.testing.assert_allclose(found.numpy(), COMBINED[combiner, weighted], rtol=1e-5)


def test_embedding_norms_and_safety(eager):
    """max_norm scales rows down; the safe form passes over bad ids and fills empty rows (values from TensorFlow)."""
    np.testing.assert_allclose(
        tf2.nn.embedding_lookup(EMBEDDINGS, [0, 1, 5], max_norm=2.0).numpy(),
        [[0, 1], [1.1094004, 1.6641006], [1.3453456, 1.4798801]],
        rtol=1e-5,
    )
    found = tf2.nn.embedding_lookup_sparse(EMBEDDINGS, tf2.SparseTensor(*IDS), None, combiner="sum", max_norm=1.0)
    np.testing.assert_allclose(found.numpy(), [[1.2054915, 1.5913069], [0, 0], [0, 1]], rtol=1e-5)
    ids = tf2.SparseTensor([[0, 0], [0, 1], [2, 0]], np.array([1, -3, 0]), [4, 2])
    np.testing.assert_allclose(
        tf2.nn.safe_embedding_lookup_sparse(EMBEDDINGS, ids).numpy(), [[2, 3], [0, 0], [0, 1], [0, 0]]
    )
    ids = tf2.SparseTensor([[0, 0], [2, 0]], np.array([1, 0]), [4, 2])
    weights = tf2.SparseTensor([[0, 0], [2, 0]], np.array([1.0, 0.0], np.float32), [4, 2])
    found = tf2.nn.safe_embedding_lookup_sparse(EMBEDDINGS, ids, weights, default_id=5)
    np.testing.assert_allclose(found.numpy(), [[2, 3], [10, 11], [10, 11], [10, 11]])
    deep = tf2.SparseTensor([[0, 1, 0]], np.array([2]), [1, 2, 3])
    np.testing.assert_allclose(tf2.nn.safe_embedding_lookup_sparse(EMBEDDINGS, deep).numpy(), [[[0, 0], [4, 5]]])


@pytest.mark.parametrize("strategy", ["mod", "div"])
def test_embeddings_in_parts(strategy):
    """Several parameter tensors divide the rows; the gradient of each is IndexedSlices."""
    split = [EMBEDDINGS[0::2], EMBEDDINGS[1::2]] if strategy == "mod" else [EMBEDDINGS[:3], EMBEDDINGS[3:]]
    with tf.Graph().as_default(), tf.Session() as session:
        params = [tf.constant(part) for part in split]
        ids = tf.constant([[5, 0], [3, 3]])
        rows = tf.nn.embedding_lookup(params, ids, partition_strategy=strategy)
        assert rows.shape.as_list() == [2, 2, 2]
        np.testing.assert_array_equal(session.run(rows), EMBEDDINGS[[[5, 0], [3, 3]]])
        gradients = tf.gradients(rows, params)
        assert all(isinstance(g, tf.IndexedSlices) for g in gradients)
        total = sum(float(session.run(tf.reduce_sum(g.values))) for g in gradients)
        assert total == 8
        with pytest.raises(ValueError, match="partition strategies"):
            tf.nn.embedding_lookup(params, ids, partition_strategy="other")


def test_embedding_gradient_reaches_the_table():
    """The gradient of a combined lookup is IndexedSlices of the table."""
    with tf.Graph().as_default(), tf.Session() as session:
        table = tf.constant(EMBEDDINGS)
        out = tf.nn.embedding_lookup_sparse(table, tf.SparseTensor(*IDS), None, combiner="mean")
        g = tf.gradients(out, table)[0]
        assert isinstance(g, tf.IndexedSlices)
        expected = np.zeros((6, 2))
        expected[1] = expected[3] = 0.5
        expected[0] = 1
        np.testing.assert_allclose(session.run(tf.convert_to_tensor(g)), expected)
    with pytest.raises(ValueError, match="combiner"), tf.Graph().as_default():
        tf.nn.embedding_lookup_sparse(EMBEDDINGS, tf.SparseTensor(*IDS), None, combiner="max")


def test_sparse_tensors_as_variants(eager):
    """Serialized to variants they can be stacked and reshaped like strings, and come back with those dimensions."""
    sparse = tf2.sparse.SparseTensor([[0, 1], [2, 0]], [5, 6], [3, 4])
    one = tf2.io.serialize_sparse(sparse, out_type=tf2.variant)
    many = tf2.io.serialize_many_sparse(sparse, out_type=tf2.variant)
    assert (one.dtype, one.shape, many.shape) == (tf2.variant, [3], [3, 3])

    def read(serialized, dtype=tf2.int32):
        found = tf2.raw_ops.DeserializeSparse(serialized_sparse=serialized, dtype=dtype)
        return [part.numpy().tolist() for part in found]

    assert read(one) == read(many) == [[[0, 1], [2, 0]], [5, 6], [3, 4]]
    assert read(tf2.reshape(tf2.stack([one, one]), [2, 1, 3]))[2] == [2, 1, 3, 4]
    assert read(many[2]) == [[[0]], [6], [4]]
    with pytest.raises(tf2.errors.InvalidArgumentError, match="Requested SparseTensor of type float32"):
        read(one, tf2.float32)


def test_placeholders_take_their_shape_as_a_tensor():
    """A dense shape given as a tensor is the placeholder's, and may still be fed."""
    sparse = tf.sparse_placeholder(tf.float32, shape=tf.constant([2, 3], tf.int64))
    assert sparse.get_shape().as_list() == [2, 3] and sparse.indices.shape.as_list() == [None, 2]
    dense = tf.sparse_tensor_to_dense(sparse)
    with tf.Session() as session:
        found = session.run(dense, {sparse: (np.array([[0, 1]]), np.array([5.0]), np.array([2, 3]))})
    assert found.tolist() == [[0, 5, 0], [0, 0, 0]]


def test_reorder_takes_any_coordinates(eager):
    """Elements are sorted by their coordinates, also by those outside of the shape; their rank must be the shape's."""
    indices, values = tf.raw_ops.SparseReorder(
        input_indices=[[0, 5], [0, 3], [-1, 9]], input_values=[1.0, 2.0, 3.0], input_shape=[1, 4]
    )
    assert indices.numpy().tolist() == [[-1, 9], [0, 3], [0, 5]]
    assert values.numpy().tolist() == [3.0, 2.0, 1.0]
    with pytest.raises(tf.errors.InvalidArgumentError, match="shape"):
        tf.raw_ops.SparseReorder(input_indices=[[0, 5]], input_values=[1.0], input_shape=[1, 4, 4])


def test_messages_of_strings(eager):
    """Strings of serialized sparse tensors are content: the lengths of all, then their bytes."""
    sparse = tf2.SparseTensor([[0, 0], [0, 2], [1, 1]], ["ab", "", "c"], [2, 3])
    many = tf2.io.serialize_many_sparse(sparse)
    assert many.numpy()[0, 1] == b'\x08\x07\x12\x04\x12\x02\x08\x02"\x04\x02\x00ab'
    assert tf2.io.serialize_sparse(sparse).numpy()[1] == b'\x08\x07\x12\x04\x12\x02\x08\x03"\x06\x02\x00\x01abc'
    assert tf2.io.deserialize_many_sparse(many, tf2.string).values.numpy().tolist() == [b"ab", b"", b"c"]


def test_new_dimensions_of_unknown_rank():
    """expand_dims takes axes and tensors whose ranks are known when it runs."""
    fed, axis = tf.sparse_placeholder(tf.float64), tf.placeholder(tf.int32, [])
    wide = tf.sparse.to_dense(tf.sparse.expand_dims(fed, axis))
    with tf.Session() as session:
        for at in (0, 1, 2, -1, -3):
            found = session.run(wide, {fed: tf.SparseTensorValue(*A), axis: at})
            np.testing.assert_array_equal(found, np.expand_dims(DENSE, at))
        with pytest.raises(InvalidArgumentError):
            session.run(wide, {fed: tf.SparseTensorValue(*A), axis: 3})
