"""tf.graph_util: parts of graphs, graphs for inference, variables as constants."""

from __future__ import annotations

import numpy as np
import pytest

import stoker.compat.v1 as tf

util = tf.graph_util


def shown(graph_def):
    return [(node.name, node.op, list(node.input)) for node in graph_def.node]


@pytest.fixture
def checked_graph():
    """x -> a -> b (CheckNumerics); c waits for b; d adds b and c; out at the end; h waits for a."""
    x = tf.placeholder(tf.float32, [2], name="x")
    a = tf.identity(x, name="a")
    b = tf.check_numerics(a, "m", name="b")
    with tf.control_dependencies([b]):
        c = tf.identity(x, name="c")
    d = tf.subtract(b, c, name="d")
    tf.identity(tf.square(tf.identity(d, name="e"), name="f"), name="out")
    with tf.control_dependencies([a]):
        tf.no_op(name="h")
    return tf.get_default_graph().as_graph_def()


def test_extract_sub_graph(checked_graph):
    """What a node needs, through data and control inputs, in the order it was written."""
    found = util.extract_sub_graph(checked_graph, ["d"])
    assert [name for name, _, _ in shown(found)] == ["x", "a", "b", "c", "d"]
    assert found.versions == checked_graph.versions
    with pytest.raises(AssertionError, match="nope is not in graph"):
        util.extract_sub_graph(checked_graph, ["nope"])
    with pytest.raises(TypeError, match="iterable of strings"):
        util.extract_sub_graph(checked_graph, "d")
    with pytest.raises(TypeError, match="GraphDef"):
        util.extract_sub_graph("graph", ["d"])


def test_remove_training_nodes(checked_graph):
    """CheckNumerics and passing Identity nodes go; what is waited for or protected stays."""
    assert shown(util.remove_training_nodes(checked_graph)) == [
        ("x", "Placeholder", []),
        ("a", "Identity", ["x"]),
        ("d", "Sub", ["x", "x"]),
        ("f", "Square", ["d"]),
        ("h", "NoOp", ["^a"]),
    ]
    kept = {name for name, _, _ in shown(util.remove_training_nodes(checked_graph, protected_nodes=["e", "b"]))}
    assert kept == {"x", "a", "b", "c", "d", "e", "f", "h"}


def test_must_run_on_cpu():
    """Strings, and int32 where TensorFlow keeps it on the host."""
    variable = tf.Variable(1.0, use_resource=False)
    assert util.must_run_on_cpu(tf.constant("a").op) and util.must_run_on_cpu(tf.constant(1).op)
    assert util.must_run_on_cpu(tf.constant(1).op.node_def)
    assert not util.must_run_on_cpu(tf.constant(1.0).op)
    assert util.must_run_on_cpu(tf.cast(tf.constant([1]), tf.float32).op)
    assert not util.must_run_on_cpu(tf.cast(tf.constant([1.0]), tf.int32).op)
    assert not util.must_run_on_cpu(variable.op) and util.must_run_on_cpu(variable.op, pin_variables_on_cpu=True)


def test_tensor_shape_from_node_def_name():
    """Names as NodeDefs write them."""
    tf.placeholder(tf.float32, [2, None], name="x")
    assert util.tensor_shape_from_node_def_name(tf.get_default_graph(), "x").as_list() == [2, None]


def test_variables_become_constants_also_inside_functions():
    """The frozen graph needs no variables and gives the same values, through loops, conditionals and gathers."""
    old = tf.get_variable("old", initializer=tf.constant([1.0, 2.0]), use_resource=False)
    rows = tf.get_variable("rows", initializer=np.arange(6, dtype=np.float32).reshape(3, 2), use_resource=True)
    factor = tf.get_variable("factor", initializer=2.0, use_resource=True)

    def body(i, s):
        return i + 1, tf.cond(i > 0, lambda: s * factor + tf.reduce_sum(tf.gather(rows, [i])), lambda: s + factor)

    _, total = tf.while_loop(lambda i, s: i < 3, body, [0, 1.0])
    total = tf.identity(total, name="total")
    flat = tf.identity(old + tf.gather(rows, [1])[0] + rows[0], name="flat")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        expected = session.run([flat, total])
        frozen = util.convert_variables_to_constants(session, session.graph_def, ["flat", "total"])
        part = util.convert_variables_to_constants(
            session, session.graph_def, ["flat"], variable_names_whitelist=["old"]
        )
        rest = util.convert_variables_to_constants(
            session, session.graph_def, ["flat"], variable_names_blacklist=["old"]
        )
    ops = {node.op for node in frozen.node}
    assert not ops & {"VarHandleOp", "VariableV2", "ReadVariableOp", "ResourceGather"}
    with tf.Graph().as_default():
        tf.import_graph_def(frozen, name="")
        found = tf.Session().run(["flat:0", "total:0"])
    np.testing.assert_array_equal(found[0], expected[0])
    assert found[1] == expected[1]
    kinds = {node.name: node.op for node in part.node}
    assert kinds["old"] == "Const" and kinds["rows"] == "VarHandleOp" and kinds["Gather"] == "ResourceGather"
    kinds = {node.name: node.op for node in rest.node}
    assert kinds["old"] == "VariableV2" and kinds["rows"] == "Const" and kinds["Gather"] == "GatherV2"


def test_what_cannot_be_frozen_is_refused():
    """An op that writes to the variable cannot take its value instead."""
    variable = tf.get_variable("v", initializer=1.0, use_resource=True)
    with tf.control_dependencies([variable.assign_add(1.0)]):
        tf.identity(variable.read_value(), name="y")
    with tf.Session() as session:
        session.run(variable.initializer)
        with pytest.raises(ValueError, match=r"AssignAddVariableOp.*handle of a variable"):
            util.convert_variables_to_constants(session, session.graph_def, ["y"])
