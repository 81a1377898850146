"""Functions out to GraphDef and in again, and those that TensorFlow 2 wrote (tests/golden/functions)."""

import json
from pathlib import Path

import numpy as np
import pytest
from tensorboard.compat.proto.graph_pb2 import GraphDef

import stoker.compat.v1 as tf

GOLDEN = Path(__file__).parents[2] / "golden" / "functions"
RECORDED = json.loads((GOLDEN / "values.json").read_text())


def _read(name):
    return GraphDef.FromString((GOLDEN / f"{name}.pb").read_bytes())


def _check(name):
    program = RECORDED["programs"][name]
    with tf.Session() as session:
        for feed, expected in zip(RECORDED["feeds"], program["values"]):
            for value, reference in zip(session.run(program["fetches"], {"x:0": feed}), expected):
                np.testing.assert_allclose(value, np.array(reference, np.float32), rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("name", RECORDED["programs"])
def test_functions_of_tensorflow_2_give_its_values(name):
    """A graph with functions, as TensorFlow 2 writes it, computes the same here."""
    tf.import_graph_def(_read(name), name="")
    _check(name)


@pytest.mark.parametrize("name", RECORDED["programs"])
def test_imported_functions_are_written_again(name):
    """What was read can be written and read once more."""
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(_read(name), name="")
        written = graph.as_graph_def()
    assert len(written.library.function) > 0
    tf.import_graph_def(written, name="")
    _check(name)


@pytest.mark.parametrize("name", [name for name in RECORDED["programs"] if "second" in RECORDED["programs"][name]])
def test_gradients_of_imported_control_flow(name):
    """What was read from a file can be differentiated anew, and its gradient once more, though nothing here built it."""
    tf.import_graph_def(_read(name), name="")
    graph, program = tf.get_default_graph(), RECORDED["programs"][name]
    x = graph.get_tensor_by_name("x:0")
    y, gradient = map(graph.get_tensor_by_name, program["fetches"])
    (anew,) = tf.gradients(y, x)
    seconds = [tf.gradients(first, x)[0] for first in (gradient, anew)]
    with tf.Session() as session:
        for feed, expected, second in zip(RECORDED["feeds"], program["values"], program["second"]):
            first, *found = session.run([anew, *seconds], {x: feed})
            np.testing.assert_allclose(first, expected[1], rtol=2e-5, atol=1e-6)
            for each in found:
                np.testing.assert_allclose(each, second, rtol=1e-4, atol=1e-5)


def test_second_derivatives_of_imported_loops_do_not_mix_the_shapes_of_lists():
    """An imported loop keeps lists of lists. Their elements are lists, which says nothing about the elements of those."""
    program = RECORDED["programs"]["branches_in_loops"]
    x = tf.placeholder(tf.float32)  # of unknown shape
    (gradient,) = tf.import_graph_def(
        _read("branches_in_loops"), input_map={"x:0": x}, return_elements=program["fetches"][1:], name=""
    )
    (second,) = tf.gradients(gradient, x)
    total = tf.get_variable("total", initializer=np.zeros(3, np.float32))
    update = tf.assign_add(total, second)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for feed in RECORDED["feeds"]:
            session.run(update, {x: feed})
        np.testing.assert_allclose(session.run(total), np.sum(program["second"], 0), rtol=1e-4, atol=1e-4)


def test_function_that_is_not_there_is_reported():
    """A node that names a function outside of the library is refused, by name."""
    graph_def = _read("call")
    del graph_def.library.function[:]
    with pytest.raises(ValueError, match="is not defined in the library"):
        tf.import_graph_def(graph_def)


def test_recursive_function_is_refused():
    """A function that calls itself is refused with the chain of calls."""
    graph_def = GraphDef()
    function = graph_def.library.function.add()
    function.signature.name = "again"
    function.signature.input_arg.add(name="a", type=1)
    function.signature.output_arg.add(name="b", type=1)
    inner = function.node_def.add(name="inner", op="PartitionedCall")
    inner.input.append("a")
    inner.attr["Tin"].list.type.append(1)
    inner.attr["Tout"].list.type.append(1)
    inner.attr["f"].func.name = "again"
    function.ret["b"] = "inner:output:0"
    node = graph_def.node.add(name="x", op="Placeholder")
    node.attr["dtype"].type = 1
    call = graph_def.node.add(name="call", op="again")
    call.input.append("x")
    with pytest.raises(ValueError, match="calls itself"):
        tf.import_graph_def(graph_def)


def test_function_input_that_is_not_there_is_reported():
    """A node of a function that takes an unknown value is reported by name."""
    graph_def = _read("call")
    graph_def.library.function[0].node_def[0].input[0] = "nowhere:z:0"
    with pytest.raises(ValueError, match="nowhere"):
        tf.import_graph_def(graph_def)


def test_function_of_the_same_name_is_renamed():
    """Two graphs whose functions have equal names and different bodies can be in one graph."""
    first, second = _read("cond"), _read("cond")
    for function in second.library.function:
        for node in function.node_def:
            if node.op == "Exp":
                node.op = "Square"
    fetch = RECORDED["programs"]["cond"]["fetches"][0]
    a = tf.import_graph_def(first, return_elements=[fetch], name="a")[0]
    b = tf.import_graph_def(second, return_elements=[fetch], name="b")[0]
    written = tf.get_default_graph().as_graph_def()
    with tf.Session() as session:
        values = session.run([a, b], {"a/x:0": [1, 2, 3], "b/x:0": [1, 2, 3]})
    np.testing.assert_allclose(values[0], np.exp([1, 2, 3]), rtol=1e-6)
    np.testing.assert_allclose(values[1], [1, 4, 9], rtol=1e-6)
    with tf.Graph().as_default(), tf.Session() as session:
        again = tf.import_graph_def(written, return_elements=[a.name, b.name], name="")
        np.testing.assert_allclose(session.run(again, {"a/x:0": [1, 2, 3], "b/x:0": [1, 2, 3]}), values)


def test_library_gradient_is_used():
    """A gradient function that the library names takes the place of the derived one."""
    graph_def = GraphDef()
    for name, inputs, expression in (("double", "x", "x"), ("its_gradient", "x dy", "dy")):
        function = graph_def.library.function.add()
        function.signature.name = name
        for each in inputs.split():
            function.signature.input_arg.add(name=each, type=1)
        function.signature.output_arg.add(name="y", type=1)
        node = function.node_def.add(name="sum", op="AddV2")
        node.input.extend([expression, expression])
        node.attr["T"].type = 1
        function.ret["y"] = "sum:z:0"
    graph_def.library.gradient.add(function_name="double", gradient_func="its_gradient")
    for node_name, op in (("x", "Placeholder"), ("call", "double")):
        node = graph_def.node.add(name=node_name, op=op)
        if op == "Placeholder":
            node.attr["dtype"].type = 1
        else:
            node.input.append("x")
    x, y = tf.import_graph_def(graph_def, return_elements=["x:0", "call:0"], name="")
    gradient = tf.gradients(y, x, tf.constant(5.0))[0]
    with tf.Session() as session:
        assert session.run([y, gradient], {x: 3.0}) == [6.0, 10.0]
