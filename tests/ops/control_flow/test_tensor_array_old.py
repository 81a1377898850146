"""TensorArray ops with handles of strings and references of strings, as the oldest graphs have them."""

import numpy as np
import pytest

import stoker.compat.v1 as tf

ROWS = np.arange(6, dtype=np.float32).reshape(3, 2)


@pytest.mark.parametrize("version", ["", "V2"])
def test_all_ops(version):
    """What is written is read, gathered, concatenated and counted; gradients pass through the array."""

    def op(name, **arguments):
        return getattr(tf.raw_ops, f"TensorArray{name}{version}")(**arguments)

    with tf.Graph().as_default() as graph, tf.Session() as session:
        x, flow = tf.constant(ROWS), tf.constant(0.0)
        array = op("", size=3, dtype=tf.float32, clear_after_read=False)
        written = op("Scatter", handle=array, indices=[0, 1, 2], value=x, flow_in=flow)
        row = op("Read", handle=array, index=1, flow_in=written, dtype=tf.float32)
        rows = op("Gather", handle=array, indices=[2, 0], flow_in=written, dtype=tf.float32)
        joined, lengths = op("Concat", handle=array, flow_in=written, dtype=tf.float32)
        size = op("Size", handle=array, flow_in=written)
        other = op("", size=2, dtype=tf.float32)
        part = op("Write", handle=other, index=1, value=x, flow_in=flow)
        back = op("Read", handle=other, index=1, flow_in=part, dtype=tf.float32)
        cut = op("", size=2, dtype=tf.float32)
        split = op("Split", handle=cut, value=x, lengths=np.array([1, 2]), flow_in=flow)
        second = op("Read", handle=cut, index=1, flow_in=split, dtype=tf.float32)
        op("Close", handle=array)
        values = session.run([row, rows, joined, lengths, size, back, second])
        expected = [ROWS[1], ROWS[[2, 0]], ROWS.reshape(-1), [2, 2, 2], 3, ROWS, ROWS[1:]]
        for found, wanted in zip(values, expected):
            np.testing.assert_array_equal(found, wanted)
        total = (
            tf.reduce_sum(row**2) + tf.reduce_sum(rows) + 3 * tf.reduce_sum(joined) + tf.reduce_sum(back * second[0])
        )
        slope = np.array([[1.0, 1], [0, 0], [1, 1]]) + 3
        slope[1] += 2 * ROWS[1] + ROWS.sum(0)
        slope += ROWS[1]
        np.testing.assert_allclose(session.run(tf.gradients(total, x)[0]), slope)
    with tf.Graph().as_default(), tf.Session() as session:
        (again,) = tf.import_graph_def(graph.as_graph_def(), return_elements=[row.name])
        np.testing.assert_array_equal(session.run(again), ROWS[1])


def test_pack_and_unpack():
    """The first version also takes all elements at once."""
    with tf.Graph().as_default(), tf.Session() as session:
        array = tf.raw_ops.TensorArray(size=3, dtype=tf.float32)
        flow = tf.raw_ops.TensorArrayUnpack(handle=array, value=ROWS, flow_in=0.0)
        packed = tf.raw_ops.TensorArrayPack(handle=array, flow_in=flow, dtype=tf.float32)
        np.testing.assert_array_equal(session.run(packed), ROWS)
        with pytest.raises(LookupError):
            tf.gradients(packed, flow)


def test_gradient_with_shape():
    """The array of gradients may have dimensions in front of those of the array's own elements."""
    with tf.Graph().as_default(), tf.Session() as session:
        array, flow = tf.raw_ops.TensorArrayV3(size=2, dtype=tf.float32, element_shape=[2])
        handle, flow = tf.raw_ops.TensorArrayGradWithShape(handle=array, flow_in=flow, shape_to_prepend=[4], source="g")
        flow = tf.raw_ops.TensorArrayWriteV3(handle=handle, index=0, value=tf.ones([4, 2]), flow_in=flow)
        flow = tf.raw_ops.TensorArrayWriteV3(handle=handle, index=0, value=tf.ones([4, 2]), flow_in=flow)
        both = tf.raw_ops.TensorArrayGatherV3(handle=handle, indices=[0, 1], flow_in=flow, dtype=tf.float32)
        np.testing.assert_array_equal(session.run(both), np.stack([np.full((4, 2), 2), np.zeros((4, 2))]))
        wrong = tf.raw_ops.TensorArrayWriteV3(handle=handle, index=1, value=tf.ones([2]), flow_in=flow)
        with pytest.raises(tf.errors.InvalidArgumentError, match="incompatible"):
            session.run(wrong)
