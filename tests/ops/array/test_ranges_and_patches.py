"""Ranges, checks and patches, through the sample runner and the public API."""

import numpy as np
import pytest

import stoker as tf2
import stoker.compat.v1 as tf
from stoker._src.base.errors import InvalidArgumentError, UnimplementedError
from stoker._src.ops.math import sequences
from tests.ops.samples import WHEN_BUILT, Sample, check_sample, f32, f64, i32, samples


def patches(x, sizes, strides, rates):
    """Patches of the interior (VALID), by definition."""
    reach = [(s - 1) * r + 1 for s, r in zip(sizes, rates)]
    rows = range(0, x.shape[1] - reach[0] + 1, strides[0])
    columns = range(0, x.shape[2] - reach[1] + 1, strides[1])
    return np.stack(
        [
            np.stack(
                [
                    x[:, i : i + reach[0] : rates[0], j : j + reach[1] : rates[1]].reshape(x.shape[0], -1)
                    for j in columns
                ],
                1,
            )
            for i in rows
        ],
        1,
    )


WINDOW = {"ksizes": [1, 2, 2, 1], "strides": [1, 1, 2, 1], "rates": [1, 2, 1, 1]}
SAMPLES = [
    Sample("LinSpace", [np.float32(0.1), np.float32(0.9), 7], reference=lambda a, b, n: np.linspace(a, b, 7), gradient=False),
    Sample("LinSpace", [np.float32(0.1), np.float32(0.9), 1], reference=lambda a, b, n: np.array([a]), gradient=False),
    Sample("LinSpace", [np.float32(0.1), np.float32(0.9), 0], raises=(WHEN_BUILT, "Requires num > 0: 0")),
    Sample("BroadcastArgs", [[2, 1], [3]], reference=lambda a, b: np.array([2, 3]), gradient=False),
    Sample("BroadcastArgs", [[2], [3]], raises=(InvalidArgumentError, "2 and 3")),
    Sample("EnsureShape", [f64(2, 3)], {"shape": [None, 3]}, reference=lambda x: x),
    Sample("EnsureShape", [f64(2, 3)], {"shape": [None, 4]}, raises=(InvalidArgumentError, r"3")),
    Sample("CheckNumerics", [f64(2, 3)], {"message": "m"}, reference=lambda x: x),
    Sample("CheckNumericsV2", [f64(2, 3)], {"message": "m"}, reference=lambda x: x),
    Sample("CheckNumerics", [np.array([np.nan, np.inf])], {"message": "m"}, raises=(InvalidArgumentError, "m : Tensor had Inf and NaN values")),
    Sample("CheckNumericsV2", [np.array([np.nan, np.inf, -np.inf])], {"message": "m"},
           raises=(InvalidArgumentError, r"m : Tensor had -Inf, \+Inf, and NaN values")),
    Sample("ExtractImagePatches", [f64(2, 4, 5, 2)], {**WINDOW, "padding": "VALID"},
           reference=lambda x: patches(x, (2, 2), (1, 2), (2, 1))),
    Sample("ExtractImagePatches", [i32(1, 3, 3, 1)], {"ksizes": [1, 3, 3, 1], "strides": [1, 1, 1, 1], "rates": [1, 1, 1, 1], "padding": "SAME"},
           reference=lambda x: patches(np.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]]), (3, 3), (1, 1), (1, 1)), gradient=False),
    Sample("ExtractImagePatches", [f64(2, 4, 5, 2)], {**WINDOW, "ksizes": [2, 2, 2, 1], "padding": "VALID"}, raises=(UnimplementedError, "ksizes")),
    Sample("ExtractVolumePatches", [f64(1, 2, 3, 3, 2)], {"ksizes": [1, 1, 2, 2, 1], "strides": [1, 1, 1, 1, 1], "padding": "VALID"},
           reference=lambda x: np.stack([patches(x[:, k], (2, 2), (1, 1), (1, 1)) for k in range(2)], 1)),
]  # fmt: skip


@samples(SAMPLES)
def test_sample(sample: Sample) -> None:
    """The op does what its reference does, in every mode."""
    check_sample(sample)


def test_linspace_of_tensors(eager):
    """linspace of several starts and ends puts the steps at `axis`, as NumPy does."""
    a, b = f32(2, 3), f32(2, 3)
    for axis in (0, 1, -1):
        np.testing.assert_allclose(tf2.linspace(a, b, 4, axis=axis).numpy(), np.linspace(a, b, 4, axis=axis), rtol=1e-5)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_long_linspace(kind, monkeypatch, eager):
    """A linspace that is longer than a block equals TensorFlow's formula, start + position * step, to the last bit."""
    monkeypatch.setattr(sequences, "_BLOCK", 16)
    start, stop = kind(0.1), kind(0.7)
    for count in (16, 17, 32, 50):
        expected = np.arange(count).astype(kind) * ((stop - start) / kind(count - 1)) + start
        expected[-1] = stop
        np.testing.assert_array_equal(tf2.linspace(start, stop, count).numpy(), expected)


@pytest.mark.parametrize("indexing", ["xy", "ij"])
def test_meshgrid(indexing, eager):
    """meshgrid is NumPy's."""
    vectors = [np.arange(3), np.arange(2), np.arange(4)]
    for found, expected in zip(tf2.meshgrid(*vectors, indexing=indexing), np.meshgrid(*vectors, indexing=indexing)):
        np.testing.assert_array_equal(found.numpy(), expected)
    with pytest.raises(ValueError, match="indexing"):
        tf2.meshgrid([1], indexing="ab")


@pytest.mark.parametrize(("repeats", "axis"), [(2, None), (2, 1), ([1, 0, 3], 1), ([2], 0), (0, 0), ([1, 2], 0)])
def test_repeat(repeats, axis, eager):
    """repeat is NumPy's."""
    x = f32(2, 3)
    np.testing.assert_array_equal(tf2.repeat(x, repeats, axis).numpy(), np.repeat(x, repeats, axis))


def test_broadcast_shapes():
    """Static shapes broadcast to a TensorShape; dynamic ones to a vector whose value is known when theirs are."""
    assert tf.broadcast_static_shape(tf.TensorShape([2, 1]), tf.TensorShape([3])).as_list() == [2, 3]
    with pytest.raises(ValueError, match="Incompatible shapes"):
        tf.broadcast_static_shape(tf.TensorShape([2]), tf.TensorShape([3]))
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 1])
        sizes = tf.broadcast_dynamic_shape(tf.shape(x), [4])
        assert tf.zeros(sizes).shape.as_list() == [None, 4]
        assert session.run(sizes, {x: f32(3, 1)}).tolist() == [3, 4]
