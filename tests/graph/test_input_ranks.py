"""Ranks that a signature states for inputs: checked in graphs as far as they are known, and in eager mode."""

import numpy as np
import pytest

import stoker as tf2
import stoker.compat.v1 as tf
from stoker._src.base.errors import InvalidArgumentError


def test_ranks_known_at_construction():
    """A wrong rank is a ValueError when the node is made; an unknown one waits for the run."""
    with pytest.raises(ValueError, match="Shape must be rank 0 but is rank 1: input 'pattern'"):
        tf.raw_ops.RegexReplace(input=["a"], pattern=["a"], rewrite="b")
    with pytest.raises(ValueError, match="at most rank 1 but is rank 2"):
        tf.raw_ops.Sum(input=[[1.0]], axis=[[0]])
    with pytest.raises(ValueError, match="at least rank 1 but is rank 0"):
        tf.raw_ops.ConcatV2(values=[tf.constant(1.0), tf.constant(2.0)], axis=0)
    axis = tf.placeholder(tf.int32)
    found = tf.raw_ops.ArgMax(input=[[1.0, 2.0]], dimension=axis)
    with tf.Session() as session:
        assert session.run(found, {axis: 1}).tolist() == [1]
        with pytest.raises(InvalidArgumentError, match="rank 0 but is rank 1: input 'dimension'"):
            session.run(found, {axis: [1]})


def test_ranks_in_eager_mode(eager):
    """In eager mode a wrong rank is an InvalidArgumentError, raised before the kernel runs."""
    with pytest.raises(InvalidArgumentError, match="Shape must be rank 1 but is rank 0: input 'x'"):
        tf2.raw_ops.InvertPermutation(x=np.int32(1))
