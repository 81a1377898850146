"""The rewrite of graphs for quantized training."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

import stoker.compat.v1 as tf

GOLDEN = Path(__file__).parent.parent / "golden" / "train" / "quantized.json"


def test_rewrite_is_tensorflows():
    """The rewritten graph has the nodes, inputs and attributes that TensorFlow 1.15 gives it."""
    golden = json.loads(GOLDEN.read_text())
    given = tf.GraphDef.FromString(base64.b64decode(golden["given"]))
    made = tf.train.do_quantize_training_on_graphdef(given, 6)
    found = {node.name: node for node in made.node}
    assert sorted(found) == [name for name, *_ in golden["nodes"]]
    for name, op, inputs, attrs in golden["nodes"]:
        node = found[name]
        assert (node.op, list(node.input)) == (op, inputs), name
        for key, value in attrs.items():
            expected = type(node.attr[key]).FromString(base64.b64decode(value))
            assert key in node.attr, (name, key)
            if expected.WhichOneof("value") != "tensor":
                assert node.attr[key] == expected, (name, key)


def test_given_graph_is_left_alone():
    """The rewrite is a copy."""
    given = tf.GraphDef.FromString(base64.b64decode(json.loads(GOLDEN.read_text())["given"]))
    before = given.SerializeToString(deterministic=True)
    tf.train.do_quantize_training_on_graphdef(given, 8)
    assert given.SerializeToString(deterministic=True) == before


@pytest.mark.parametrize("bits", [0, 64])
def test_number_of_bits(bits):
    """One to 63 bits."""
    with pytest.raises(tf.errors.OutOfRangeError, match=r"num_bits should be in range \[1, 63\]"):
        tf.train.do_quantize_training_on_graphdef(tf.GraphDef(), bits)


def test_only_float32():
    """Other dtypes cannot be quantized."""
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float64, [2, 2])
        tf.matmul(x, x)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Only float32"):
        tf.train.do_quantize_training_on_graphdef(graph.as_graph_def(), 8)
