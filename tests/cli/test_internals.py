"""What the run command gives for TensorFlow's internal modules and its MNIST reader."""

from __future__ import annotations

import gzip
import struct

import numpy as np
import pytest

import stoker.compat.v1 as tf
from stoker._src.cli import internals, mnist


def test_generated_names_of_ops():
    """gen_*_ops name an op by its type in small letters."""
    names = {
        "Conv2DBackpropInput": "conv2d_backprop_input",
        "TopKV2": "top_kv2",
        "LRNGrad": "lrn_grad",
        "ReverseV2": "reverse_v2",
    }
    assert {op: internals.snake_case(op) for op in names} == names
    with tf.Session() as session:
        product = internals.mat_mul(tf.ones([2, 3]), tf.ones([3, 2]))
        assert session.run(product).tolist() == [[3, 3], [3, 3]]
    with pytest.raises(AttributeError, match="no_such_op"):
        _ = internals.no_such_op


def test_deprecation_decorators_warn_once(caplog):
    """The first call, or the first use of an argument, writes a warning; results are unchanged."""

    @internals.deprecated("2020-01-01", "Use new.")
    @internals.deprecated_args(None, "Drop it.", "old")
    @internals.tf_export("thing")
    def thing(x, old=None):
        return x + 1

    assert [thing(1), thing(2, old=3), thing(3, old=3)] == [2, 3, 4]
    assert [record.getMessage().split(" ")[-2:] for record in caplog.records] == [["Use", "new."], ["Drop", "it."]]


def write_idx(path, array):
    header = struct.pack(f">{array.ndim + 1}I", 0x0800 + array.ndim, *array.shape)
    path.write_bytes(gzip.compress(header + array.astype(np.uint8).tobytes()))


@pytest.fixture
def folder(tmp_path):
    """A small MNIST: image i is filled with i."""
    for prefix, count in (("train", 20), ("t10k", 6)):
        numbers = np.arange(count)
        write_idx(tmp_path / f"{prefix}-images-idx3-ubyte.gz", np.tile(numbers[:, None, None], (1, 28, 28)))
        write_idx(tmp_path / f"{prefix}-labels-idx1-ubyte.gz", numbers % 10)
    return tmp_path


def test_mnist_in_batches(folder):
    """Every epoch hands each example out once; pixels go from 0 to 1; labels may be vectors."""
    data = mnist.read_data_sets(str(folder), one_hot=True, validation_size=5, seed=1)
    assert [part.num_examples for part in data] == [15, 5, 6]
    seen = []
    for _ in range(3):
        images, labels = data.train.next_batch(5)
        assert images.shape == (5, 784) and images.dtype == np.float32 and labels.shape == (5, 10)
        seen.extend(np.round(images[:, 0] * 255).astype(int).tolist())
        assert (labels.argmax(1) == np.array(seen[-5:]) % 10).all()
    assert sorted(seen) == list(range(5, 20)) and data.train.epochs_completed == 0
    data.train.next_batch(5)
    assert data.train.epochs_completed == 1
    plain = mnist.read_data_sets(str(folder), dtype=tf.uint8, reshape=False, validation_size=0)
    assert plain.test.images.shape == (6, 28, 28, 1) and plain.test.labels.tolist() == [0, 1, 2, 3, 4, 5]
    assert plain.train.next_batch(3, shuffle=False)[1].tolist() == [0, 1, 2]


def test_mnist_that_is_missing_or_damaged(folder):
    """A missing file says where to put it; a damaged one is DataLossError; sizes are checked."""
    with pytest.raises(ValueError, match="Validation size"):
        mnist.read_data_sets(str(folder))
    labels = folder / "t10k-labels-idx1-ubyte.gz"
    for bad in (
        b"",
        b"not gzip",
        gzip.compress(b"abc"),
        gzip.compress(struct.pack(">2I", 0x0801, 1 << 31)),
        labels.read_bytes()[:-9],
    ):
        good = labels.read_bytes()
        labels.write_bytes(bad)
        with pytest.raises(tf.errors.DataLossError, match="t10k-labels"):
            mnist.read_data_sets(str(folder), validation_size=0)
        labels.write_bytes(good)
    labels.unlink()
    with pytest.raises(tf.errors.NotFoundError, match="t10k-labels"):
        mnist.read_data_sets(str(folder), validation_size=0)
