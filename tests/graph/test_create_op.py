"""`Graph.create_op`: nodes made from op types, flat inputs and AttrValues."""

import numpy as np
import pytest

import stoker.compat.v1 as tf


def _attr(**fields):
    value = tf.AttrValue()
    for name, given in fields.items():
        setattr(value, name, given)
    return value


@pytest.fixture
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def test_a_node_from_its_type_and_inputs(graph):
    """What inputs and defaults tell need not be said; the node has shapes, runs, and is written like any other."""
    a = tf.constant([1.0, 2.0], name="a")
    op = graph.create_op("Neg", [a], [tf.float32])
    assert (op.name, op.type, op.outputs[0].dtype, op.outputs[0].shape) == ("Neg", "Neg", tf.float32, [2])
    assert op.node_def == tf.negative(a, name="again").op.node_def.__class__(
        name="Neg", op="Neg", input=["a"], attr={"T": _attr(type=1)}
    )
    with tf.Session() as session:
        np.testing.assert_array_equal(session.run(op.outputs[0]), [-1.0, -2.0])


def test_names_are_unique_and_a_slash_ends_a_full_name(graph):
    """Names follow the scope and get suffixes; one that ends in a slash is taken as it is."""
    a = tf.constant(1.0)
    with graph.name_scope("outer"):
        names = [graph.create_op("Neg", [a], name=name).name for name in (None, "x", "x", "full/")]
    assert names == ["outer/Neg", "outer/x", "outer/x_1", "full"]


def test_blocks_around_it_count(graph):
    """Control dependencies, devices and colocation apply; `compute_device=False` leaves devices out."""
    a = tf.constant(1.0, name="a")
    first = tf.no_op(name="first")
    with graph.control_dependencies([first]), graph.device("/cpu:0"):
        placed = graph.create_op("Neg", [a])
        free = graph.create_op("Neg", [a], compute_device=False, compute_shapes=False)
        with graph.colocate_with(a.op):
            beside = graph.create_op("Neg", [a])
    assert [op.control_inputs for op in (placed, free, beside)] == [[first]] * 3
    assert [op.device for op in (placed, free, beside)] == ["/device:CPU:0", "", ""]
    assert beside.colocation_groups() == [b"loc:@a"]
    assert free.outputs[0].shape == []


def test_attributes_are_attr_values(graph):
    """Attributes that nothing tells are given as messages; those that the op does not have stay on the node."""
    fed = graph.create_op("Placeholder", [], [tf.float32], attrs={"dtype": _attr(type=1), "_mine": _attr(i=3)})
    assert fed.outputs[0].shape.rank is None
    assert (fed.get_attr("dtype"), fed.get_attr("_mine")) == (tf.float32, 3)
    parts = [tf.constant([1.0]), tf.constant([2.0])]
    packed = graph.create_op("Pack", parts, attrs={"N": _attr(i=2)})
    assert (packed.get_attr("axis"), packed.outputs[0].shape) == (0, [2, 1])


def test_references(graph):
    """A reference variable is passed as the reference it is."""
    variable = tf.Variable(1.0, use_resource=False)
    reference = variable.op.outputs[0]
    op = graph.create_op("Assign", [reference, tf.constant(2.0)], input_types=[reference.dtype, tf.float32])
    assert op.outputs[0].dtype == reference.dtype
    with tf.Session() as session:
        session.run(op)
        assert session.run(variable) == 2.0


@pytest.mark.parametrize(
    ("op_type", "values", "keywords", "error", "message"),
    [
        ("Nonesuch", [], {}, tf.errors.NotFoundError, "Op type not registered 'Nonesuch' in binary"),
        ("Nonesuch", [], {}, RuntimeError, "Op type not registered 'Nonesuch' in binary"),
        ("Placeholder", [], {}, ValueError, "NodeDef missing attr 'dtype' from Op<name=Placeholder"),
        ("AddN", [1.0, 2.0], {}, ValueError, "missing attr 'N'"),
        ("Add", [1.0, 1], {}, ValueError, "Inconsistent values for attr 'T' DT_FLOAT vs. DT_INT32"),
        ("Add", [1.0], {}, ValueError, "takes 1 tensors for 'y'"),
        ("Neg", [1.0, 1.0], {}, ValueError, "takes 1 inputs, but 2 were given"),
        ("MatMul", [[[1.0, 2.0]], [[1.0, 2.0]]], {}, ValueError, "Dimensions must be equal, but are 2 and 1"),
        ("Neg", [1.0], {"input_types": [tf.int32]}, TypeError, "In op 'Neg', input types .* are not compatible"),
        ("NoOp", [], {"name": "a b"}, ValueError, "'a b' is not a valid node name"),
        ("Placeholder", [], {"attrs": {"dtype": _attr(i=1)}}, ValueError, "AttrValue 'dtype' had value with type"),
    ],
)
def test_what_does_not_fit(graph, op_type, values, keywords, error, message):
    """Unknown ops, missing attributes and inputs that do not fit are refused with TensorFlow's classes."""
    with pytest.raises(error, match=message):
        graph.create_op(op_type, [tf.constant(value) for value in values], **keywords)


def test_only_tensors(graph):
    """Values are not converted."""
    with pytest.raises(TypeError, match=r"Input #0 is not a tensor: 1\.0"):
        graph.create_op("Neg", [1.0], [tf.float32])


def test_a_finalized_graph(graph):
    """Nothing is added to a finalized graph."""
    a = tf.constant(1.0)
    graph.finalize()
    with pytest.raises(RuntimeError, match="finalized"):
        graph.create_op("Neg", [a], [tf.float32])


def test_an_unknown_op_of_a_graph_def(graph):
    """Importing an op that nobody defined raises TensorFlow's class and words."""
    message = tf.GraphDef()
    message.node.add(name="n", op="Nonesuch")
    with pytest.raises(tf.errors.NotFoundError, match=r"^Op type not registered 'Nonesuch'"):
        tf.import_graph_def(message)
