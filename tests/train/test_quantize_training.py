"""The rewrite of graphs for quantized training."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import numpy as np
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


def _quantizers(build, bits=8):
    """{name: (signed, range or None)} of the quantizers that a graph gets."""
    with tf.Graph().as_default() as graph:
        build()
    made = tf.train.do_quantize_training_on_graphdef(graph.as_graph_def(), bits)
    nodes = {node.name: node for node in made.node}
    found = {}
    for node in made.node:
        if node.op == "QuantizeAndDequantizeV2":
            bounds = [nodes[name] for name in node.input[1:]]
            limits = [tf.make_ndarray(bound.attr["value"].tensor).item() for bound in bounds if bound.op == "Const"]
            found[node.name.removesuffix("/QuantizeAndDequantizeV2")] = (node.attr["signed_input"].b, limits or None)
    return found


@pytest.mark.parametrize(
    ("made", "signed", "limits"),
    [
        (lambda v: tf.identity(tf.nn.relu6(v)), False, [0.0, 6.0]),
        (
            lambda v: tf.reshape(tf.nn.max_pool(tf.reshape(tf.tanh(v), [1, 4, 4, 1]), 1, 1, "SAME"), [4, 4]),
            True,
            [-1.0, 1.0],
        ),
        (
            lambda v: tf.reshape(tf.nn.avg_pool(tf.reshape(tf.nn.relu(v), [1, 4, 4, 1]), 1, 1, "SAME"), [4, 4]),
            False,
            None,
        ),
        (lambda v: tf.concat([tf.sigmoid(v), v], 0), False, [0.0, 1.0]),
        (lambda v: tf.concat([v, tf.sigmoid(v)], 0), True, None),
        (lambda v: tf.transpose(tf.nn.relu6(v)), True, None),
        (lambda v: tf.nn.relu6(v) + 0.0, True, None),
    ],
)
def test_ranges_are_known_through_ops_that_keep_them(made, signed, limits):
    """The range of an activation holds behind Identity, Reshape, ConcatV2 and pooling, and behind nothing else."""

    def build():
        source = made(tf.Variable(np.ones([4, 4], np.float32), name="v", use_resource=False))
        tf.matmul(source, tf.Variable(np.ones([4, 4], np.float32), name="w", use_resource=False))

    found = _quantizers(build)
    assert found.pop("w/read") == (True, None)
    assert list(found.values()) == [(signed, limits)]


def test_gradients_are_known_by_the_start_of_their_names():
    """Products in "gradients", "gradients_1" and so on stay as they are; a scope of that name inside of another counts not."""

    def build():
        w = tf.Variable(np.ones([4, 4], np.float32), name="w", use_resource=False)
        for scope in ("gradients", "gradients_1", "tower/gradients"):
            with tf.name_scope(scope):
                tf.matmul(tf.placeholder(tf.float32, [4, 4], name="p"), w)

    assert sorted(_quantizers(build)) == ["tower/gradients/p", "w/read"]


def test_outputs_of_one_op_are_quantized_each():
    """The first output that is used has the op's name, another one its number too."""

    def build():
        halves = tf.split(tf.placeholder(tf.float32, [4, 4], name="p"), 2, axis=1)
        tf.matmul(halves[0], halves[1], transpose_a=True)

    assert sorted(_quantizers(build)) == ["split", "split_1"]


def test_result_runs_and_trains():
    """The rewritten graph trains: forward values are on the grid, ranges follow the data with a decay of 0.999."""
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [2, 2], name="x")
        w = tf.Variable([[0.5, -1.0], [0.26, 0.1]], name="w", use_resource=False)
        tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(tf.matmul(x, w, name="y")), name="train")
        tf.global_variables_initializer()
    made = tf.train.do_quantize_training_on_graphdef(graph.as_graph_def(), 3)
    with tf.Graph().as_default():
        tf.import_graph_def(made, name="")
        with tf.Session() as session:
            session.run("init")
            # Three signed bits for -1 to 0.5: quarters.
            assert session.run("y:0", {"x:0": np.eye(2)}).tolist() == [[0.5, -1.0], [0.25, 0.0]]
            assert session.run("x/Max/Variable:0") == 1.0
            session.run(["train", "y:0"], {"x:0": 2 * np.eye(2)})
            assert session.run("x/Max/Variable:0") == pytest.approx(1.001)
            np.testing.assert_allclose(session.run("w:0"), [[0.3, -1.2], [0.06, -0.1]], atol=1e-6)


def test_bad_arguments():
    """Bits are an integer; the graph's ops and inputs exist."""
    with pytest.raises(TypeError, match="num_bits"):
        tf.train.do_quantize_training_on_graphdef(tf.GraphDef(), 8.5)
    graph = tf.GraphDef()
    node = graph.node.add(name="a", op="NoSuchOp")
    with pytest.raises(tf.errors.NotFoundError, match="Op type not registered 'NoSuchOp'"):
        tf.train.do_quantize_training_on_graphdef(graph, 8)
    node.op = "MatMul"
    node.input.append("x")
    with pytest.raises(tf.errors.InvalidArgumentError, match="Node 'a': Unknown input node 'x'"):
        tf.train.do_quantize_training_on_graphdef(graph, 8)
