"""Crosses of ragged columns, filled rows, and ragged tensors as variants."""

import numpy as np
import pytest

import stoker as tf2
import stoker.compat.v1 as tf
from stoker._src.base.errors import InvalidArgumentError
from tests.ops.samples import Sample, check_sample, samples

ROWS = np.array([0, 0, 3])
SAMPLES = [
    Sample("RaggedFillEmptyRows", [ROWS, np.array([1.0, 2, 3]), np.int64(5), np.float64(-1)], gradient=(1, 3), static=False,
           reference=lambda *_: (np.array([0, 0, 1, 2, 3, 4]), np.array([1.0, 2, -1, -1, 3, -1]), np.array([0, 1, 1, 0, 1], bool), np.array([0, 1, 4]))),
    Sample("RaggedFillEmptyRows", [np.array([3, 0]), np.array([1.0, 2]), np.int64(4), np.float64(-1)], gradient=(1, 3), static=False,
           reference=lambda *_: (np.arange(4), np.array([2.0, -1, -1, 1]), np.array([0, 1, 1, 0], bool), np.array([3, 0]))),
    Sample("RaggedFillEmptyRows", [np.array([0, 9]), np.array([1.0, 2]), np.int64(5), np.float64(0)], raises=(InvalidArgumentError, "9 >= 5")),
    Sample("RaggedFillEmptyRows", [np.array([0]), np.array([1.0, 2]), np.int64(5), np.float64(0)], raises=(InvalidArgumentError, "1")),
    Sample("RaggedFillEmptyRows", [np.array([0]), np.array([1.0]), np.int64(0), np.float64(0)], raises=(InvalidArgumentError, "= 0")),
    Sample("RaggedFillEmptyRowsGrad", [np.array([0, 1, 4]), np.array([1.0, 2, 3, 4, 5, 6])], gradient=False,
           reference=lambda *_: (np.array([1.0, 2, 5]), np.float64(13))),
    Sample("RaggedCross", [[np.array([b"a", b"b"], object)], [np.array([0, 1, 2])], [], [], [], [np.array([[7], [8]])]],
           {"input_order": "RD", "hashed_output": False, "num_buckets": 0, "hash_key": 0, "out_values_type": "string", "out_row_splits_type": "int64"},
           static=False, reference=lambda *_: (np.array([b"a_X_7", b"b_X_8"], object), np.array([0, 1, 2]))),
]  # fmt: skip


@samples(SAMPLES)
def test_sample(sample) -> None:
    """The op's value, shape, gradient, eager form and GraphDef agree with each other and with NumPy."""
    check_sample(sample)


def test_cross(eager):
    """Every combination of the columns' features, in the order of the columns; hashes are TensorFlow's."""
    letters, more = tf2.ragged.constant([["a"], ["b", "c"]]), tf2.ragged.constant([["d"], ["e"]])
    sparse, dense = tf2.sparse.from_dense([[1, 0], [2, 3]]), tf2.constant([["x"], ["y"]])
    cross, hashed = tf2.ragged.cross, tf2.ragged.cross_hashed
    assert cross([letters, more, dense]).to_list() == [[b"a_X_d_X_x"], [b"b_X_e_X_y", b"c_X_e_X_y"]]
    assert cross([dense, sparse, letters]).to_list()[1] == [b"y_X_2_X_b", b"y_X_2_X_c", b"y_X_3_X_b", b"y_X_3_X_c"]
    # Numbers of TensorFlow 2.21.
    assert hashed([letters, more, sparse], num_buckets=100).to_list() == [[21], [14, 88, 72, 67]]
    expected = [[6555228522432700410], [1608727802231854516, 6816049355321045188]]
    assert hashed([letters, more], hash_key=7).to_list() == expected
    assert cross([letters, tf2.ragged.constant([[], ["q"]])]).to_list() == [[], [b"b_X_q", b"c_X_q"]]
    with pytest.raises(ValueError, match="rank=2"):
        cross([tf2.ragged.constant([[["a"]]])])
    with pytest.raises(tf2.errors.InvalidArgumentError, match="same batch dimension"):
        cross([letters, tf2.ragged.constant([["d"]])])
    with pytest.raises(TypeError, match="list"):
        cross(letters)


@pytest.mark.parametrize("batched", [True, False])
def test_variants(batched):
    """A ragged tensor becomes a variant (or one for each row) and comes back, and so do gradients."""
    with tf.Graph().as_default(), tf.Session() as session:
        values = tf.constant([1.0, 2, 3, 4, 5, 6])
        splits = [tf.constant([0, 1, 3], tf.int64), tf.constant([0, 2, 2, 6], tf.int64)]
        encoded = tf.raw_ops.RaggedTensorToVariant(
            rt_nested_splits=splits, rt_dense_values=values, batched_input=batched
        )
        assert encoded.shape == ((2,) if batched else ())
        back, flat = tf.raw_ops.RaggedTensorFromVariant(
            encoded_ragged=encoded, input_ragged_rank=2 - batched, output_ragged_rank=2, Tvalues=tf.float32
        )
        slope = tf.gradients(flat * tf.constant([1.0, 2, 3, 4, 5, 6]), values)[0]
        found_splits, found, slope = session.run([back, flat, slope])
        assert [each.tolist() for each in found_splits] == [[0, 1, 3], [0, 2, 2, 6]]
        np.testing.assert_array_equal(found, [1, 2, 3, 4, 5, 6])
        np.testing.assert_array_equal(slope, [1, 2, 3, 4, 5, 6])
        wrong = tf.raw_ops.RaggedTensorFromVariant(
            encoded_ragged=encoded, input_ragged_rank=0, output_ragged_rank=int(batched), Tvalues=tf.float32
        )
        with pytest.raises(tf.errors.InvalidArgumentError, match="Expected ragged_rank=0"):
            session.run(wrong)
