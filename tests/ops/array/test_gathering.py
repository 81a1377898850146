"""Lookups, scatters, selection and reordering, through the sample runner and the public API."""

import warnings

import numpy as np
import pytest

import stoker as tf2
import stoker.compat.v1 as tf
from stoker._src.base.errors import InvalidArgumentError
from tests.ops.array.test_array import text, u
from tests.ops.samples import WHEN_BUILT, Sample, booleans, c128, check_sample, f32, f64, i32, i64, samples


def at(*values: int, kind: str = "int32") -> np.ndarray:
    return np.array(values, kind)


def scattered(indices, updates, shape):
    result = np.zeros(shape, updates.dtype)
    np.add.at(result, tuple(np.moveaxis(indices, -1, 0)), updates)
    return result


def onto(tensor, indices, updates, ufunc):
    result = tensor.copy()
    ufunc.at(result, tuple(np.moveaxis(indices, -1, 0)), updates)
    return result


PAIRS = np.array([[0, 1], [2, 0], [0, 1]], np.int32)

SAMPLES = [
    Sample("Gather", [f64(4, 2), at(0, 3, 3)], reference=lambda x, i: x[i]),
    Sample("GatherV2", [f64(4, 2), at(0, 3, 3), 0], reference=lambda x, i, a: x[i]),
    Sample("GatherV2", [f64(4, 2), i32(low=1, high=2), 0], reference=lambda x, i, a: x[i]),
    Sample("GatherV2", [f64(4), at(1, 0, kind="int64").reshape(2, 1), 0], reference=lambda x, i, a: x[i]),
    Sample("GatherV2", [f64(2, 3, 2), at(2, 0, 2), 1], reference=lambda x, i, a: x[:, i]),
    Sample("GatherV2", [f64(2, 3), at(2, 0).reshape(2, 1), -1], reference=lambda x, i, a: np.take(x, i, -1)),
    Sample("GatherV2", [f64(2, 3), np.array([[2, 0], [1, 1]]), 1], {"batch_dims": 1},
           reference=lambda x, i, a: np.take_along_axis(x, i, 1)),
    Sample("GatherV2", [f64(2, 2, 3, 2), np.array([[2, 0], [1, 1]]), 2], {"batch_dims": 1},
           reference=lambda x, i, a: np.stack([x[b][:, i[b]] for b in range(2)])),
    Sample("GatherV2", [u(4, kind="uint64"), at(3), 0], reference=lambda x, i, a: x[i], gradient=False),
    Sample("GatherV2", [text(4), at(3, 1), 0], reference=lambda x, i, a: x[i], gradient=False),
    Sample("GatherV2", [f64(0, 2), np.zeros(0, "i4"), 0], reference=lambda x, i, a: x),
    Sample("GatherV2", [f64(5), at(0, 1, 7), 0], raises=(InvalidArgumentError, r"indices\[2\] = 7 is not in \[0, 5\)")),
    Sample("GatherV2", [f64(2, 5), at(0, -1).reshape(2, 1), 1], raises=(InvalidArgumentError, r"indices\[1,0\] = -1 is not in \[0, 5\)")),
    Sample("GatherV2", [text(5), at(5), 0], raises=(InvalidArgumentError, r"indices\[0\] = 5 is not in \[0, 5\)")),
    Sample("GatherV2", [f64(5), at(0), 1], raises=(WHEN_BUILT, "1")),
    Sample("GatherNd", [f64(3, 2), PAIRS], reference=lambda x, i: x[i[:, 0], i[:, 1]]),
    Sample("GatherNd", [f64(3, 2), at(2, 1)], reference=lambda x, i: x[2, 1], gradient=False),
    Sample("GatherNd", [f64(3, 2), at(1, 2).reshape(2, 1)], reference=lambda x, i: x[[1, 2]]),
    Sample("GatherNd", [f64(3, 2), np.zeros((2, 0), "i4")], reference=lambda x, i: np.stack([x, x])),
    Sample("GatherNd", [text(3, 2), PAIRS], reference=lambda x, i: x[i[:, 0], i[:, 1]], gradient=False),
    Sample("GatherNd", [f64(3, 2), np.array([[0, 0], [3, 0]])], raises=(InvalidArgumentError, r"indices\[1\] = \[3, 0\] does not index into param shape \[3,2\]")),
    Sample("GatherNd", [f64(3), at(1, 9).reshape(2, 1)], {"bad_indices_policy": "IGNORE"},
           reference=lambda x, i: np.array([x[1], 0.0]), gradient=False),
    Sample("ScatterNd", [PAIRS, f64(3), [3, 2]], reference=lambda i, v, s: scattered(i, v, s)),
    Sample("ScatterNd", [at(1, 1, 0).reshape(3, 1), f64(3, 2), [2, 2]], reference=lambda i, v, s: scattered(i, v, s)),
    Sample("ScatterNd", [at(1).reshape(1, 1), u(1, kind="uint16"), [2]], reference=lambda i, v, s: scattered(i, v, s), gradient=False),
    Sample("ScatterNd", [at(2).reshape(1, 1), f64(1), [2]], raises=(InvalidArgumentError, r"indices\[0\] = \[2\] does not index into shape \[2\]")),
    Sample("ScatterNd", [at(0).reshape(1, 1), f64(2), [2]], raises=(InvalidArgumentError, "updates")),
    Sample("TensorScatterUpdate", [f64(3, 2), at(2, 0).reshape(2, 1), f64(2, 2)],
           reference=lambda x, i, v: np.stack([v[1], x[1], v[0]])),
    Sample("TensorScatterUpdate", [text(3), at(2).reshape(1, 1), np.array([b"z"], object)],
           reference=lambda x, i, v: np.array([*x[:2], b"z"], object), gradient=False),
    Sample("TensorScatterAdd", [f64(3, 2), PAIRS, f64(3)], reference=lambda x, i, v: onto(x, i, v, np.add)),
    Sample("TensorScatterSub", [f64(3, 2), PAIRS, f64(3)], reference=lambda x, i, v: onto(x, i, v, np.subtract)),
    Sample("TensorScatterMin", [f64(3, 2), PAIRS, f64(3)], reference=lambda x, i, v: onto(x, i, v, np.minimum)),
    Sample("TensorScatterMax", [f64(3, 2), PAIRS, f64(3)], reference=lambda x, i, v: onto(x, i, v, np.maximum)),
    Sample("TensorScatterMax", [np.array([1, 1 << 63], "uint64"), at(0, 1).reshape(2, 1), np.array([1 << 63, 5], "uint64")],
           reference=lambda x, i, v: np.maximum(x, v), gradient=False),
    Sample("ScatterNdNonAliasingAdd", [f64(3, 2), PAIRS, f64(3)], reference=lambda x, i, v: onto(x, i, v, np.add)),
    Sample("DynamicPartition", [f64(4, 2), at(1, 0, 1, 2)], {"num_partitions": 4}, static=False,
           reference=lambda x, p: [x[p == k] for k in range(4)]),
    Sample("DynamicPartition", [text(3), at(1, 0, 1)], {"num_partitions": 2}, static=False, gradient=False,
           reference=lambda x, p: [x[p == k] for k in range(2)]),
    Sample("DynamicPartition", [f64(2), at(0, 3)], {"num_partitions": 2}, raises=(InvalidArgumentError, r"partitions\[1\] = 3 is not in \[0, 2\)")),
    Sample("DynamicStitch", [[at(0, 2), at(1, 0)], [f64(2, 2), f64(2, 2)]], static=False, gradient=False,
           reference=lambda i, d: np.stack([d[1][1], d[1][0], d[0][1]])),
    Sample("ParallelDynamicStitch", [[i32(low=1, high=2), at(0, 2)], [f64(2), f64(2, 2)]], static=False,
           reference=lambda i, d: np.stack([d[1][0], d[0], d[1][1]])),
    Sample("DynamicStitch", [[at(0, -1)], [f64(2)]], raises=(InvalidArgumentError, "-1")),
    # selection
    Sample("Where", [booleans(3, 2)], reference=np.argwhere, gradient=False, static=False),
    Sample("Where", [np.array([0.0, np.nan, 2.0])], reference=lambda x: np.array([[1], [2]]), gradient=False, static=False),
    Sample("Select", [booleans(3), f64(3, 2), f64(3, 2)], reference=lambda c, a, b: np.where(c[:, None], a, b)),
    Sample("Select", [np.bool_(True), f64(3, 2), f64(3, 2)], reference=lambda c, a, b: a),
    Sample("Select", [booleans(2), text(2), text(2)], reference=lambda c, a, b: np.where(c, a, b), gradient=False),
    Sample("Select", [booleans(2), f64(3, 2), f64(3, 2)], raises=(InvalidArgumentError, "2")),
    Sample("SelectV2", [booleans(3, 1), f64(2), f64()], reference=np.where),
    Sample("SelectV2", [booleans(2), c128(2), c128(2)], reference=np.where, gradient=False),
    Sample("OneHot", [at(0, 2, -1, 5), 3, f64(), f64()], gradient=False,
           reference=lambda i, d, a, b: np.where(i[:, None] == np.arange(3), a, b)),
    Sample("OneHot", [at(0, 2, kind="uint8"), 3, np.array(b"y", object), np.array(b"n", object)], {"axis": 0}, gradient=False,
           reference=lambda i, d, a, b: np.array([[b"y", b"n"], [b"n", b"n"], [b"n", b"y"]], object)),
    Sample("OneHot", [at(0), -3, f64(), f64()], raises=(WHEN_BUILT, "-3")),
    Sample("ReverseV2", [f64(2, 3), [-1]], reference=lambda x, a: x[:, ::-1]),
    Sample("ReverseV2", [u(2, 3), np.array([0, 1])], reference=lambda x, a: x[::-1, ::-1], gradient=False),
    Sample("ReverseV2", [text(3), [0]], reference=lambda x, a: x[::-1], gradient=False),
    Sample("ReverseV2", [f64(2, 3), [1, -1]], raises=(WHEN_BUILT, "more than once")),
    Sample("Reverse", [f64(2, 3), [False, True]], reference=lambda x, a: x[:, ::-1]),
    Sample("ReverseSequence", [f64(2, 4, 2), at(3, 0)], {"seq_dim": 1},
           reference=lambda x, n: np.stack([np.concatenate([x[0, 2::-1], x[0, 3:]]), x[1]])),
    Sample("ReverseSequence", [f64(4, 2), at(4, 2, kind="int64")], {"seq_dim": 0, "batch_dim": 1},
           reference=lambda x, n: np.stack([x[::-1, 0], np.concatenate([x[1::-1, 1], x[2:, 1]])], 1)),
    Sample("ReverseSequence", [f64(2, 4), at(5, 0)], {"seq_dim": 1}, raises=(InvalidArgumentError, "5")),
    Sample("Roll", [f64(3, 4), [1, -2], [0, 1]], reference=lambda x, s, a: np.roll(x, (1, -2), (0, 1))),
    Sample("Roll", [text(3), 1, 0], reference=lambda x, s, a: np.roll(x, 1), gradient=False),
    Sample("ListDiff", [i64(5, low=0), i64(2, low=0)], gradient=False, static=False,
           reference=lambda x, y: (x[~np.isin(x, y)], np.nonzero(~np.isin(x, y))[0])),
    Sample("ListDiff", [text(3), text(1)], gradient=False, static=False, reference=lambda x, y: (x[1:], np.array([1, 2]))),
]  # fmt: skip


@samples(SAMPLES)
def test_sample(sample: Sample) -> None:
    """The op does what its reference does, in every mode."""
    check_sample(sample)


def test_gather_gradient_is_indexed_slices():
    """The gradient of rows is those rows with their indices; as a tensor, rows named twice add up."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant(f32(4, 2))
        g = tf.gradients(tf.gather(x, [[1, 3], [1, 0]]) * 2.0, x)[0]
        assert isinstance(g, tf.IndexedSlices)
        np.testing.assert_array_equal(session.run(g.indices), [1, 3, 1, 0])
        assert session.run(g.values).shape == (4, 2)
        assert g.shape.as_list() == [4, 2]
        np.testing.assert_array_equal(session.run(tf.convert_to_tensor(g)), [[2, 2], [4, 4], [0, 0], [2, 2]])


def test_slices_of_unknown_shape_warn():
    """Densifying IndexedSlices of unknown shape warns, as TensorFlow does."""
    with tf.Graph().as_default():
        slices = tf.IndexedSlices(tf.ones([1, 2]), tf.constant([0]), tf.placeholder(tf.int32, [2]))
        with pytest.warns(UserWarning, match="to a dense Tensor of unknown shape"):
            tf.convert_to_tensor(slices)
        with pytest.raises(ValueError, match="without dense_shape"):
            tf.convert_to_tensor(tf.IndexedSlices(tf.ones([1, 2]), tf.constant([0])))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            tf.convert_to_tensor(tf.IndexedSlices(tf.ones([1, 2]), tf.constant([0]), tf.constant([3, 2])))


def test_batch_gather_nd(eager):
    """gather_nd with batch dimensions looks up within each batch."""
    x, i = f32(2, 3, 4), np.array([[[1], [0]], [[2], [2]]])
    expected = np.stack([x[b][i[b, :, 0]] for b in range(2)])
    np.testing.assert_array_equal(tf2.gather_nd(x, i, batch_dims=1).numpy(), expected)
    np.testing.assert_array_equal(
        tf.batch_gather(x[:, :, 0], i[:, :, 0]).numpy(), np.take_along_axis(x[:, :, 0], i[:, :, 0], 1)
    )


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint8, np.uint16, np.bool_, np.complex128])
@pytest.mark.parametrize("transposed", [False, True])
def test_lookups_in_tables_of_their_own(kind, dtype, transposed):
    """Batched lookups and lookups of coordinates take NumPy's elements, rows and slices, of any dtype and layout."""
    random = np.random.RandomState(0)
    x, i = random.randint(0, 9, (3, 4, 5, 2)).astype(dtype), random.randint(0, 3, (3, 4, 6)).astype(kind)
    with tf.Graph().as_default(), tf.Session() as session:
        tables, places = tf.constant(x), tf.constant(i)
        if transposed:
            tables, places = (tf.transpose(each, [1, 0, *range(2, each.shape.ndims)]) for each in (tables, places))
            x, i = x.swapaxes(0, 1), i.swapaxes(0, 1)
        found = session.run(
            [tf.gather(tables, places, axis=n, batch_dims=n) for n in (1, 2)]
            + [tf.gather_nd(tables, places[..., :n]) for n in (1, 2, 3)]
        )
    expected = [
        np.stack([table[at] for table, at in zip(x, i)]),
        np.stack([np.stack([row[each] for row, each in zip(table, at)]) for table, at in zip(x, i)]),
        *(x[tuple(np.moveaxis(i[..., :n], -1, 0))] for n in (1, 2, 3)),
    ]
    for one, other in zip(found, expected):
        np.testing.assert_array_equal(one, other)
        assert one.dtype == dtype


@pytest.mark.parametrize("bad", [-1, 4, 2**40])
def test_lookups_outside_of_their_tables(bad):
    """An index or a coordinate outside of its table is named in the error, also where it would be inside of the next table."""
    x, i = f32(3, 4, 2), np.array([[0], [1], [bad]])
    with tf.Graph().as_default(), tf.Session() as session:
        with pytest.raises(InvalidArgumentError, match=str(bad)):
            session.run(tf.gather(tf.constant(x), tf.placeholder_with_default(i, None), batch_dims=1, axis=1))
        with pytest.raises(InvalidArgumentError, match=rf"\[0, ?{bad}\]"):
            session.run(tf.gather_nd(tf.constant(x), tf.placeholder_with_default(np.array([[1, 2], [0, bad]]), None)))


def test_where_forms(eager):
    """where gives coordinates with one argument and chooses with three; 2.x broadcasts."""
    np.testing.assert_array_equal(tf.where([True, False, True]).numpy(), [[0], [2]])
    np.testing.assert_array_equal(tf2.where([[True], [False]], [1.0, 2.0], 0.0).numpy(), [[1, 2], [0, 0]])
    np.testing.assert_array_equal(tf.where([True, False], [1, 2], [3, 4]).numpy(), [1, 4])
    with pytest.raises(ValueError, match="both be None"):
        tf.where([True], x=[1])


def test_one_hot_dtypes(eager):
    """one_hot is float32 unless a value or dtype says otherwise, and refuses values that disagree."""
    assert tf.one_hot([1], 3).dtype == tf.float32
    assert tf.one_hot([1], 3, dtype=tf.int8).numpy().tolist() == [[0, 1, 0]]
    assert tf.one_hot([1], 2, on_value=True, off_value=False).numpy().tolist() == [[False, True]]
    with pytest.raises(TypeError, match="does not match"):
        tf.one_hot([1], 3, on_value=1.0, dtype=tf.int32)


def test_boolean_mask_of_several_dimensions():
    """A mask of rank K selects among the first K dimensions from `axis` on; the static shape keeps the rest."""
    x, mask = f32(2, 3, 4), booleans(2, 3)
    with tf.Graph().as_default(), tf.Session() as session:
        masked = tf.boolean_mask(x, mask)
        assert masked.shape.as_list() == [None, 4]
        np.testing.assert_array_equal(session.run(masked), x[mask])
        unknown = tf.placeholder(tf.float32, [None, 3, None])
        found = session.run(tf.boolean_mask(unknown, mask), {unknown: x})
        np.testing.assert_array_equal(found, x[mask])
        np.testing.assert_array_equal(session.run(tf.boolean_mask(x, mask[0], axis=1)), x[:, mask[0]])
        with pytest.raises(ValueError, match="scalar"):
            tf.boolean_mask(x, True)
        with pytest.raises(ValueError, match="incompatible"):
            tf.boolean_mask(x, [True])


def test_sequence_mask():
    """Rows are true up to their length; the width is the longest, or given."""
    with tf.Graph().as_default(), tf.Session() as session:
        np.testing.assert_array_equal(
            session.run(tf.sequence_mask([1, 3, 0])), [[True, False, False], [True, True, True], [False] * 3]
        )
        wide = tf.sequence_mask([[1], [2]], 3, tf.float32)
        assert wide.shape.as_list() == [2, 1, 3]
        np.testing.assert_array_equal(session.run(wide), [[[1, 0, 0]], [[1, 1, 0]]])


def test_setdiff1d_and_dynamic_stitch_shapes():
    """setdiff1d returns two vectors; stitching by known indices has a known number of rows."""
    with tf.Graph().as_default():
        out, idx = tf.setdiff1d([1, 2, 3], [2])
        assert out.dtype == idx.dtype == tf.int32
        assert tf.dynamic_stitch([[0, 2], [1]], [tf.zeros([2, 5]), tf.zeros([1, 5])]).shape.as_list() == [3, 5]
