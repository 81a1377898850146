"""What the run command gives for TensorFlow's internal modules and its MNIST reader."""

from __future__ import annotations

import gzip
import struct
import unittest

import numpy as np
import pytest

import stoker.compat.v1 as tf
from stoker._src.cli import mnist
from stoker._src.cli.internals import defun, framework, generated, recurrent, strip_unused, test_util, util


def test_generated_names_of_ops():
    """gen_*_ops name an op by its type in small letters."""
    names = {
        "Conv2DBackpropInput": "conv2d_backprop_input",
        "TopKV2": "top_kv2",
        "LRNGrad": "lrn_grad",
        "ReverseV2": "reverse_v2",
    }
    assert {op: generated.snake_case(op) for op in names} == names
    with tf.Session() as session:
        product = generated.mat_mul(tf.ones([2, 3]), tf.ones([2, 3]), False, transpose_b=True)
        assert session.run(product).tolist() == [[3, 3], [3, 3]]
    with pytest.raises(AttributeError, match="no_such_op"):
        _ = generated.no_such_op


def test_deprecation_decorators_warn_once(caplog):
    """The first call, or the first use of an argument, writes a warning; results are unchanged."""

    @util.deprecated("2020-01-01", "Use new.")
    @util.deprecated_args(None, "Drop it.", "old")
    @util.tf_export("thing")
    def thing(x, old=None):
        return x + 1

    assert [thing(1), thing(2, old=3), thing(3, old=3)] == [2, 3, 4]
    assert [record.getMessage().split(" ")[-2:] for record in caplog.records] == [["Use", "new."], ["Drop", "it."]]


def test_deprecated_values_of_arguments(caplog):
    """Only the value that is named warns; a lookup refuses both names of an argument."""

    @util.deprecated_arg_values(None, "Pass axis.", mode="old")
    def thing(x, mode="new"):
        return x, mode

    assert [thing(1), thing(1, "old"), thing(2, mode="old")] == [(1, "new"), (1, "old"), (2, "old")]
    assert len(caplog.records) == 1
    assert util.deprecated_argument_lookup("axis", None, "dim", 3) == 3
    with pytest.raises(ValueError, match="both 'dim' and 'axis'"):
        util.deprecated_argument_lookup("axis", 1, "dim", 3)


def test_containers_by_identity():
    """Equal keys are different keys."""
    a, b = [1], [1]
    table = util.ObjectIdentityDictionary([(a, "a")])
    assert a in table and b not in table and len(util.ObjectIdentitySet([a, b, a])) == 2


def test_functions_of_graphs():
    """A Defun is traced once, captures, and differentiates by itself, by Python or by another Defun."""
    w = tf.constant(3.0)
    x = tf.constant(2.0)

    @defun.Defun(tf.float32)
    def scaled(value):
        return value * w

    @defun.Defun(tf.float32, python_grad_func=lambda op, g: g * 10.0)
    def by_python(value):
        return value * 2.0

    assert scaled.captured_inputs == []
    with tf.Session() as session:
        ys = [scaled(x), by_python(x)]
        assert session.run(ys) == [6.0, 4.0]
        assert session.run([tf.gradients(y, x)[0] for y in ys]) == [3.0, 10.0]
        assert scaled.captured_inputs == [w]
    with pytest.raises(ValueError, match="Expected number of arguments: 1"):
        scaled(x, x)
    with pytest.raises(ValueError, match="twice"):
        defun.Defun(tf.float32, grad_func=scaled, python_grad_func=len)


def test_names_in_and_out_of_scopes():
    """Scopes come off and go on behind the marks of control inputs and colocation."""
    assert framework.strip_name_scope("loc:@a/b/c", "a/b") == "loc:@c"
    assert framework.prepend_name_scope("loc:@c", "a/b/") == "loc:@a/b/c"
    assert framework.strip_name_scope("x/c", "a") == "x/c"


def test_the_part_of_a_graph_between_nodes():
    """strip_unused replaces inputs by placeholders and drops what is not needed."""
    x = tf.placeholder(tf.float32, [2], name="x")
    y = tf.identity(tf.exp(x, name="y"), name="z")
    tf.negative(y, name="unused")
    cut = strip_unused.strip_unused(y.graph.as_graph_def(), ["y"], ["z"], tf.float32.as_datatype_enum)
    assert [(node.name, node.op) for node in cut.node] == [("y", "Placeholder"), ("z", "Identity")]
    with pytest.raises(KeyError, match="nope"):
        strip_unused.strip_unused(y.graph.as_graph_def(), ["nope"], ["z"], 1)


def test_sizes_of_states():
    """`rnn_cell_impl._concat` joins numbers, shapes and tensors to a tensor, or to a list where they are known."""
    sizes = ((3, 4), (3, [4, 5]), (tf.TensorShape([2]), 4), (tf.constant(3), tf.constant([4, 5])), (3, []))
    expected = [[3, 4], [3, 4, 5], [2, 4], [3, 4, 5], [3]]
    with tf.Session() as session:
        assert [session.run(recurrent.concat_sizes(*each)).tolist() for each in sizes] == expected
    assert [recurrent.concat_sizes(*each, static=True) for each in sizes] == expected
    assert recurrent.concat_sizes(3, tf.TensorShape([None, 2]), static=True) == [3, None, 2]
    assert recurrent.concat_sizes(tf.placeholder(tf.int32, []), 4, static=True) is None
    with pytest.raises(ValueError, match=r"Provided a prefix or suffix of None: 3 and \(\?, 2\)"):
        recurrent.concat_sizes(3, tf.TensorShape([None, 2]))
    with pytest.raises(ValueError, match="prefix tensor must be either a scalar or vector"):
        recurrent.concat_sizes(tf.constant([[3]]), 4)


def test_batch_sizes_of_inputs():
    """`rnn._best_effort_input_batch_size` finds a static batch size in any input, or returns a tensor."""
    unknown, known = tf.placeholder(tf.float32), tf.placeholder(tf.float32, [None, 3, 2])
    assert recurrent.best_effort_input_batch_size([unknown, known]) == 3
    with tf.Session() as session:
        dynamic = recurrent.best_effort_input_batch_size([unknown])
        assert session.run(dynamic, {unknown: np.zeros([5, 4, 2])}) == 4
    with pytest.raises(ValueError, match="rank at least 2"):
        recurrent.best_effort_input_batch_size([tf.zeros([3])])


def test_modes_of_tests():
    """A test runs in a graph, eagerly, in both, or not at all, as its decorator says."""
    seen = []

    class Modes(test_util.TensorFlowTestCase):
        @test_util.run_in_graph_and_eager_modes
        def test_both(self):
            seen.append(tf.executing_eagerly())
            self.assertEqual(self.evaluate(tf.constant(2) + 3), 5)

        @test_util.run_deprecated_v1
        def test_graph(self):
            seen.append(tf.executing_eagerly())

        @test_util.skip_if(True)
        def test_not(self):
            raise AssertionError

        @test_util.run_v2_only
        def test_skipped(self):
            raise AssertionError

    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Modes).run(result)
    assert not result.errors and not result.failures
    assert [reason for test, reason in result.skipped if "test_skipped" in str(test)] == [
        "Test runs in 2.x behaviour only"
    ]
    assert sorted(seen) == [False, False, True]


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


def test_internal_modules_of_feature_columns():
    """Programs that import feature columns from TensorFlow's internal modules find the functions and classes there."""
    from stoker._src.cli.internals.tables import MODULES

    for name in ("feature_column", "feature_column_v2", "feature_column_lib", "serialization"):
        assert f"python.feature_column.{name}" in MODULES
