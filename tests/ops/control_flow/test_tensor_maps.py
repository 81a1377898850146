"""Maps of tensors, and batches of lists."""

import pytest

import stoker.compat.v1 as tf
from stoker._src.base.errors import InvalidArgumentError


def test_tensor_map(eager):
    """A map finds values by keys of any shape and dtype; insertions and erasures leave older maps alone."""
    ops = tf.raw_ops
    empty = ops.EmptyTensorMap()
    one = ops.TensorMapInsert(input_handle=empty, key=1.0, value=[2.0, 3.0])
    two = ops.TensorMapInsert(input_handle=one, key="word", value=7)
    sizes = [int(ops.TensorMapSize(input_handle=each)) for each in (empty, one, two)]
    assert sizes == [0, 1, 2]
    assert ops.TensorMapLookup(input_handle=two, key=1.0, value_dtype=tf.float32).numpy().tolist() == [2.0, 3.0]
    assert int(ops.TensorMapLookup(input_handle=two, key="word", value_dtype=tf.int32)) == 7
    assert not bool(ops.TensorMapHasKey(input_handle=two, key=[1.0]))
    gone = ops.TensorMapErase(input_handle=two, key="word", value_dtype=tf.int32)
    assert ops.TensorMapStackKeys(input_handle=gone, key_dtype=tf.float32).numpy().tolist() == [1.0]
    for call, words in (
        (lambda: ops.TensorMapLookup(input_handle=one, key=2.0, value_dtype=tf.float32), "non-existent key"),
        (lambda: ops.TensorMapLookup(input_handle=one, key=1.0, value_dtype=tf.int32), "Type mismatch"),
        (lambda: ops.TensorMapErase(input_handle=one, key=2.0, value_dtype=tf.float32), "non-existent item"),
        (lambda: ops.TensorMapStackKeys(input_handle=empty, key_dtype=tf.float32), "empty map"),
        (lambda: ops.TensorMapStackKeys(input_handle=two, key_dtype=tf.float32), "requested dtype"),
    ):
        with pytest.raises(InvalidArgumentError, match=words):
            call()


def test_push_back_batch(eager):
    """Each of several lists gets the row that belongs to it."""
    ops = tf.raw_ops
    lists = [
        ops.EmptyTensorList(element_shape=tf.constant([], tf.int32), max_num_elements=-1, element_dtype=tf.float32)
        for _ in range(2)
    ]
    pushed = ops.TensorListPushBackBatch(input_handles=tf.stack(lists), tensor=[1.0, 2.0])
    for handle in (pushed[1], tf.unstack(pushed)[1]):
        items = ops.TensorListStack(
            input_handle=handle, element_shape=tf.constant([], tf.int32), element_dtype=tf.float32
        )
        assert items.numpy().tolist() == [2.0]
    with pytest.raises(InvalidArgumentError, match=r"3 vs\. 2"):
        ops.TensorListPushBackBatch(input_handles=tf.stack(lists), tensor=[1.0, 2.0, 3.0])
