"""`tf.contrib.layers` and `arg_scope` against TensorFlow 1.15 (tests/golden/contrib)."""

from __future__ import annotations

import gzip
import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

import stoker.compat.v1 as tf

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "contrib"
_spec = importlib.util.spec_from_file_location("contrib_layer_cases", GOLDEN / "layer_cases.py")
assert _spec is not None and _spec.loader is not None
cases = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(cases)
EXPECTED = json.loads(gzip.decompress((GOLDEN / "layers.json.gz").read_bytes()))


@pytest.mark.parametrize("name", cases.CASES)
def test_as_tensorflow(name):
    """Variables, collections, shape, values, regularization losses and states after a step are those of 1.15."""
    found, wanted = cases.made_by(tf, name), EXPECTED[name]
    for key in ("variables", "collections", "shape"):
        assert found[key] == wanted[key]
    for key in ("first", "second", "losses"):
        np.testing.assert_allclose(found[key], wanted[key], rtol=1e-4, atol=1e-5)
    assert found["states"].keys() == wanted["states"].keys()
    for key, value in wanted["states"].items():
        np.testing.assert_allclose(found["states"][key], value, rtol=1e-4, atol=1e-5, err_msg=key)


def test_outputs_are_collected_by_the_names_of_their_scopes():
    """A collection of outputs becomes a dictionary by scope; a scope used again replaces its entry."""
    with tf.Graph().as_default():
        images = tf.zeros([2, 8, 8, 3])
        for reuse in (None, True):
            with tf.variable_scope("net", reuse=reuse):
                last = tf.contrib.layers.conv2d(images, 4, 3, scope="c", outputs_collections="ends")
        tf.contrib.layers.max_pool2d(last, 2, outputs_collections="ends", scope="pool")
        found = tf.contrib.layers.utils.convert_collection_to_dict("ends", clear_collection=True)
        assert list(found) == ["net/c", "pool"] and found["net/c"] is last
        assert tf.get_collection("ends") == []


def test_an_arg_scope_gives_defaults_that_calls_override():
    """Inner scopes add to outer ones, the call's own arguments win, and a saved scope can be entered again."""
    arg_scope, add_arg_scope = tf.contrib.framework.arg_scope, tf.contrib.framework.add_arg_scope

    @add_arg_scope
    def function(a, b=1, c=2):
        return a, b, c

    with arg_scope([function], b=5) as saved:
        assert function(0) == (0, 5, 2)
        with arg_scope([function], c=6):
            assert function(0) == (0, 5, 6)
            assert function(0, b=7) == (0, 7, 6)
        with arg_scope({}):
            assert function(0) == (0, 1, 2)
    assert function(0) == (0, 1, 2)
    with arg_scope(saved):
        assert function(0) == (0, 5, 2)
    assert tf.contrib.framework.arg_scoped_arguments(function) == ("b", "c")
    with pytest.raises(ValueError, match="not decorated"), arg_scope([tf.nn.relu]):
        pass
    with pytest.raises(ValueError, match="kwargs must be empty"), arg_scope(saved, b=1):
        pass


def test_devices_of_variables_come_from_the_scope():
    """`arg_scope([model_variable], device=...)` places what layers create."""
    framework = tf.contrib.framework
    chooser = framework.VariableDeviceChooser(num_tasks=2)
    with tf.Graph().as_default(), framework.arg_scope([framework.model_variable], device=chooser):
        tf.contrib.layers.fully_connected(tf.zeros([2, 3]), 4)
        assert [v.device for v in tf.global_variables()] == [
            "/job:ps/task:0/device:CPU:0",
            "/job:ps/task:1/device:CPU:0",
        ]


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda layers, x: layers.fully_connected(x, "3"), "num_outputs type"),
        (lambda layers, x: layers.conv2d(tf.zeros([2]), 3, 3), "expects input with rank 4, got 1"),
        (lambda layers, x: layers.conv2d(x, 3, 3, data_format="X"), "Invalid data_format"),
        (lambda layers, x: layers.batch_norm(x, data_format="X"), "has to be either NCHW or NHWC"),
        (lambda layers, x: layers.max_pool2d(x, 2, data_format="X"), "has to be either NCHW or NHWC"),
        (lambda layers, x: layers.layer_norm(tf.placeholder(tf.float32)), "undefined rank"),
        (lambda layers, x: layers.group_norm(x, groups=2), "not commensurate with 2 groups"),
        (lambda layers, x: layers.group_norm(x, groups=5), "Invalid groups 5 for 3 channels"),
        (lambda layers, x: layers.unit_norm(x, 7), "smaller than the input rank"),
        (lambda layers, x: layers.maxout(x, 2), "not a multiple of num_units"),
        (lambda layers, x: layers.embed_sequence([1]), "Must specify vocab size"),
        (lambda layers, x: layers.stack(x, layers.conv2d, 3), "list or tuple"),
        (lambda layers, x: layers.optimize_loss(tf.reduce_sum(x), None, 0.1, "SGX"), "Optimizer name should be one of"),
        (lambda layers, x: layers.optimize_loss(tf.reduce_sum(x), None, 0.1, 3), "Unrecognized optimizer"),
        (lambda layers, x: layers.optimize_loss(tf.reduce_sum(x), None, 0.1, "SGD", summaries=["x"]), "Summaries should be one of"),
    ],
)  # fmt: skip
def test_bad_arguments_are_refused(call, message):
    """Wrong ranks, formats and names are ValueErrors that say what is expected."""
    with tf.Graph().as_default(), pytest.raises(ValueError, match=message):
        call(tf.contrib.layers, tf.zeros([2, 8, 8, 3]))


def test_variables_are_chosen_by_scope_and_name():
    """Selections by scope, suffix, name and pattern, and what to restore."""
    framework, layers = tf.contrib.framework, tf.contrib.layers
    with tf.Graph().as_default():
        x = tf.zeros([2, 3])
        layers.fully_connected(layers.fully_connected(x, 4, scope="a/one"), 4, scope="b/two")

        def names(found):
            return [v.op.name for v in found]

        assert names(framework.get_variables("a")) == ["a/one/weights", "a/one/biases"]
        assert names(framework.get_variables_by_suffix("biases")) == ["a/one/biases", "b/two/biases"]
        assert names(framework.get_variables_by_name("weights", "b")) == ["b/two/weights"]
        assert names(framework.get_variables_to_restore(exclude=["a"])) == ["b/two/weights", "b/two/biases"]
        assert names(framework.get_variables_to_restore(include=["a"])) == ["a/one/weights", "a/one/biases"]
        assert names(framework.filter_variables(tf.global_variables(), ["weights"], ["^b"])) == ["a/one/weights"]
        assert framework.get_unique_variable("a/one/biases") is tf.global_variables()[1]
        with pytest.raises(ValueError, match="Couldn't find variable"):
            framework.get_unique_variable("c")


def test_variables_take_values_of_arrays_and_checkpoints(tmp_path):
    """`assign_from_values`, `assign_from_checkpoint` and their functions of a session, with names missing in the file."""
    framework = tf.contrib.framework
    prefix = str(tmp_path / "model")
    with tf.Graph().as_default(), tf.Session() as session:
        framework.variable("a", [2], initializer=tf.constant_initializer(3.0))
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, prefix)
    with tf.Graph().as_default(), tf.Session() as session:
        a = framework.variable("a", [2], initializer=tf.zeros_initializer())
        b = framework.variable("b", [2], initializer=tf.zeros_initializer())
        session.run(tf.global_variables_initializer())
        framework.assign_from_values_fn({"b": np.float32([1, 2])})(session)
        np.testing.assert_array_equal(session.run(b), [1, 2])
        op, feeds = framework.assign_from_checkpoint(prefix, {"a": b})
        session.run(op, feeds)
        np.testing.assert_array_equal(session.run(b), [3, 3])
        with pytest.raises(ValueError, match=r"missing variable \[b\]"):
            framework.assign_from_checkpoint(prefix, [a, b])
        restore = framework.assign_from_checkpoint_fn(prefix, [a, b], ignore_missing_vars=True)
        restore(session)
        np.testing.assert_array_equal(session.run(a), [3, 3])
