"""What eager tensors show of themselves."""

import numpy as np
import pytest

import stoker as tf


def test_handles_are_shown_and_are_no_arrays(eager):
    """What holds an object in the place of numbers names its kind, and refuses to be an array."""
    handle = tf.raw_ops.EmptyTensorList(element_shape=[2], max_num_elements=3, element_dtype=tf.float32)
    assert repr(handle) == "<tf.Tensor: shape=(), dtype=variant, value=<TensorList>>"
    assert str(handle) == "tf.Tensor(<TensorList>, shape=(), dtype=variant)"
    for convert in (np.array, int, bool, lambda each: each.numpy()):
        with pytest.raises(tf.errors.InvalidArgumentError, match="dtype variant to a NumPy array"):
            convert(handle)
