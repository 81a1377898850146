"""Permutations of indices, and random crops: the numbers are TensorFlow 2.21's."""

import numpy as np
import pytest

import stoker as tf2
import stoker.compat.v1 as tf
from stoker._src.base.errors import FailedPreconditionError, InvalidArgumentError
from tests.ops.samples import Sample, check_sample, samples

SAMPLES = [
    Sample("RandomIndexShuffle", [np.int32(3), np.array([-1, 2, -3], np.int32), np.int32(70000)], reference=lambda *_: np.array(54097, np.int32), gradient=False),
    Sample("RandomIndexShuffle", [np.int64(3), np.array([2**40 + 1, 2, -3]), np.int64(70000)], reference=lambda *_: np.array(42388), gradient=False),
    Sample("RandomIndexShuffle", [np.array([0, 1], np.int32), np.array([[1, 2, 3], [4, 5, 6]], np.int32), np.array([9, 8], np.int32)],
           reference=lambda *_: np.array([2, 1], np.int32), gradient=False),
    Sample("RandomIndexShuffle", [np.array(65536), np.array([1, 2, 3], np.int32), np.array(65536)], reference=lambda *_: np.array(7886), gradient=False),
    Sample("RandomIndexShuffle", [np.uint64(1), np.zeros(3, np.uint32), np.uint64(2**64 - 1)], {"rounds": 8},
           reference=lambda *_: np.array(0x8F71E7C76D052A56, np.uint64), gradient=False),
    Sample("RandomIndexShuffle", [np.int32(5), np.array([1, 2, 3], np.int32), np.int32(3)], raises=(InvalidArgumentError, "3 < 5")),
    Sample("RandomIndexShuffle", [np.int32(1), np.array([1, 2], np.int32), np.int32(3)], raises=(InvalidArgumentError, r"\[2\]")),
]  # fmt: skip


def test_index_shuffle_is_a_permutation():
    """All indices up to the largest, shuffled, are all of them again; the numbers are TensorFlow's."""
    with tf.Graph().as_default(), tf.Session() as session:
        moved = tf2.random.experimental.index_shuffle(tf.range(10), [5, 6], 9)
        assert moved.shape.as_list() == [10]
        assert sorted(session.run(moved).tolist()) == list(range(10))


def test_random_crop_op_draws_what_tensorflow_draws():
    """The RandomCrop op of old graphs takes the places that TensorFlow takes, run after run."""
    image = np.arange(64 * 70, dtype=np.float32).reshape(64, 70, 1)
    with tf.Graph().as_default(), tf.Session() as session:
        crop = tf.raw_ops.RandomCrop(image=image, size=[2, 3], seed=5, seed2=6)
        assert crop.shape.as_list() == [2, 3, 1]
        corners = [divmod(int(session.run(crop)[0, 0, 0]), 70) for _ in range(4)]
        assert corners == [(4, 31), (27, 57), (19, 37), (57, 33)]
        with pytest.raises(FailedPreconditionError, match="height = 64, target_height = 65"):
            session.run(tf.raw_ops.RandomCrop(image=image, size=[65, 1], seed=5, seed2=6))
        with pytest.raises(InvalidArgumentError, match="two elements"):
            session.run(tf.raw_ops.RandomCrop(image=image, size=[1, 1, 1], seed=5, seed2=6))


@samples(SAMPLES)
def test_sample(sample: Sample) -> None:
    """Value, shapes, eager mode, gradient, aliasing and GraphDef of each sample."""
    check_sample(sample)
