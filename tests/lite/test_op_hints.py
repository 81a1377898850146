"""`tf.lite.OpHint`, and the nodes that take the place of what it marks."""

from __future__ import annotations

import json

import pytest

import stoker.compat.v1 as tf

OpHint = tf.lite.OpHint
MAPPINGS = {
    "parent_first_child_input": [{"parent_ophint_input_index": 0, "first_child_ophint_input_index": 0}],
    "parent_last_child_output": [{"parent_output_index": 0, "child_output_index": 0}],
    "internal_children_input_output": [{"child_input_index": 0, "child_output_index": 0}],
}


def test_names_of_attributes():
    """The class's constants are those that files and scripts of TensorFlow use."""
    assert {name: value for name, value in vars(OpHint).items() if name.isupper()} == {
        "FUNCTION_NAME_ATTR": "_tflite_function_name",
        "FUNCTION_UUID_ATTR": "_tflite_function_uuid",
        "FUNCTION_INPUT_INDEX_ATTR": "_tflite_function_input_index",
        "FUNCTION_OUTPUT_INDEX_ATTR": "_tflite_function_output_index",
        "FUNCTION_SORT_INDEX_ATTR": "_tflite_function_sort_index",
        "FUNCTION_AGGREGATE_ATTR": "_tflite_function_aggregate",
        "TFLITE_INPUT_INDICES": "_tflite_input_indices",
        "FUNCTION_LEVEL_ATTR": "_tflite_ophint_level",
        "CHILDREN_INPUTS_MAPPINGS": "_tflite_children_ophint_inputs_mapping",
        "AGGREGATE_STACK": "stack",
        "AGGREGATE_FIRST": "first",
        "AGGREGATE_LAST": "last",
    }


@pytest.fixture
def x():
    with tf.Graph().as_default():
        yield tf.placeholder(tf.float32, [1, 2], name="x")


def test_arguments_are_wrapped_and_numbered(x):
    """Inputs and outputs are numbered separately, as they come; names are part of the node's name."""
    hint = OpHint("f")
    first, second = hint.add_inputs(x, x, names=["p", "q"])
    (output,) = hint.add_outputs(first + second)
    uuid = first.op.get_attr("_tflite_function_uuid").decode()
    assert first.op.name == f"InputHint-f-{uuid}-0-None-p" and second.op.name == f"InputHint-f-{uuid}-1-None-q"
    assert output.op.name == f"OutputHint-f-{uuid}-0-None-None" and output.op.type == "Identity"
    assert second.op.get_attr("_tflite_function_input_index") == 1
    assert output.op.get_attr("_tflite_function_output_index") == 0
    assert first.op.get_attr("_tflite_ophint_level") == 1 and first.op.get_attr("_tflite_function_name") == b"f"
    assert first.shape.as_list() == [1, 2]
    assert OpHint("f").add_input(x).op.get_attr("_tflite_function_uuid") != uuid.encode()


def test_tags_have_sort_indices(x):
    """Tensors of a tag share a number and are counted."""
    hint = OpHint("f")
    tagged = [hint.add_input(x, tag="t", aggregate=OpHint.AGGREGATE_STACK) for _ in range(3)]
    plain = hint.add_input(x)
    assert [t.op.get_attr("_tflite_function_sort_index") for t in tagged] == [0, 1, 2]
    assert {t.op.get_attr("_tflite_function_input_index") for t in tagged} == {0}
    assert tagged[0].op.get_attr("_tflite_function_aggregate") == b"stack"
    assert plain.op.get_attr("_tflite_function_input_index") == 1


def test_a_number_may_be_given(x):
    """`index_override` chooses the number; numbering goes on with those that are free."""
    hint = OpHint("f")
    assert hint.add_input(x, index_override=1).op.get_attr("_tflite_function_input_index") == 1
    numbers = [hint.add_input(x).op.get_attr("_tflite_function_input_index") for _ in range(2)]
    assert numbers == [0, 2]


@pytest.mark.parametrize(
    ("calls", "message"),
    [
        ([{"aggregate": "first"}], "You must specify `tag`"),
        ([{"tag": "t"}], "You must specify `aggregate`"),
        ([{}, {"index_override": 0}], "Index 0 was already used"),
        ([{"index_override": 1}, {"index_override": 1}], "Index 1 was already used"),
        (
            [{"tag": "t", "aggregate": "stack", "index_override": n} for n in (1, 2)],
            "Tag 't' was called with two indices 2 and 1",
        ),
        ([{"tag": "t", "aggregate": "sum"}], "'first', 'last' or 'stack'"),
    ],
)
def test_inconsistent_numbers_are_errors(x, calls, message):
    """A number is used once, a tag has one number, and aggregation needs a tag."""
    hint = OpHint("f")
    with pytest.raises(ValueError, match=message):
        for options in calls:
            hint.add_input(x, **options)


def test_names_are_as_many_as_tensors(x):
    """Each tensor has a name or none has."""
    with pytest.raises(ValueError, match="2 tensors and 1 names"):
        OpHint("f").add_inputs(x, x, names=["p"])


def test_levels_and_mappings(x):
    """Above level 1 a hint says how its arguments relate to those of the hints inside; the nodes hold that as JSON."""
    wrapped = OpHint("f", level=2, children_inputs_mappings=MAPPINGS).add_input(x)
    assert json.loads(wrapped.op.get_attr("_tflite_children_ophint_inputs_mapping")) == MAPPINGS
    assert wrapped.op.get_attr("_tflite_ophint_level") == 2
    for level, mappings in [
        (2, None),
        (1, MAPPINGS),
        (0, None),
        (2, {"other": []}),
        (2, {**MAPPINGS, "parent_last_child_output": [{"index": 0}]}),
    ]:
        with pytest.raises(ValueError, match=r"level|keys"):
            OpHint("f", level=level, children_inputs_mappings=mappings)


def test_a_tracker_alone(x):
    """The nested class numbers the arguments of any function."""
    tracker = OpHint.OpHintArgumentTracker("fn", "id", "InputHint", OpHint.FUNCTION_INPUT_INDEX_ATTR)
    assert tracker.add(x, name="n").op.name == "InputHint-fn-id-0-None-n"
    assert tracker.add(x, tag="t", aggregate="last").op.name == "InputHint-fn-id-1-0-None"


def test_a_marked_part_becomes_one_node(x):
    """The node has the hint's function, its inputs in order and its constant attributes; what only it needed is gone."""
    hint = OpHint("cool", scale=2.5)
    wrapped = hint.add_input(x)
    (y,) = hint.add_outputs(tf.sigmoid(wrapped) * 2.5)
    tf.identity(y, name="out")
    seen = []
    with tf.Session() as session:
        stubs = tf.lite.experimental.convert_op_hints_to_stubs(
            session=session, write_callback=lambda graph_def, comment: seen.append((len(graph_def.node), comment))
        )
    nodes = {node.op: node for node in stubs.node}
    assert "Sigmoid" not in nodes and "Mul" not in nodes
    assert list(nodes["cool"].input) == [wrapped.op.name] and nodes["cool"].attr["scale"].f == 2.5
    assert list(nodes["cool"].attr["_tflite_input_indices"].list.i) == [0]
    assert {node.name: list(node.input) for node in stubs.node}[y.op.name] == [nodes["cool"].name]
    assert seen[0] == (len(x.graph.as_graph_def().node), "initial") and len(seen) == 2


def test_what_others_need_stays(x):
    """A node inside of the marked part that a node outside reads is kept."""
    hint = OpHint("cool")
    inner = tf.sigmoid(hint.add_input(x), name="inner")
    tf.identity(hint.add_output(inner * 2.0), name="out")
    tf.negative(inner, name="other")
    stubs = tf.lite.experimental.convert_op_hints_to_stubs(graph_def=x.graph.as_graph_def())
    ops = [node.op for node in stubs.node]
    assert "Sigmoid" in ops and "Mul" not in ops and "cool" in ops


def test_aggregates(x):
    """Stacked arguments are packed and unpacked; of the others the first or the last counts."""
    hint = OpHint("steps")
    state = hint.add_input(tf.zeros([1, 2]), tag="state", aggregate="first")
    outputs = []
    for _ in range(3):
        state = tf.tanh(hint.add_input(x, tag="in", aggregate="stack") + state)
        outputs.append(hint.add_output(state, tag="out", aggregate="stack"))
    final = hint.add_output(state, tag="final", aggregate="last")
    tf.stack([*outputs, final], name="all")
    stubs = tf.lite.experimental.convert_op_hints_to_stubs(graph_def=x.graph.as_graph_def())
    nodes = {node.name: node for node in stubs.node}
    stub = next(node for node in stubs.node if node.op == "steps")
    stack = f"OpHintStack-InputHint-steps-{stub.name}-1-0-None"
    assert list(stub.input) == [f"InputHint-steps-{stub.name}-0-0-None", stack]
    assert nodes[stack].op == "Pack" and len(nodes[stack].input) == 3
    unstack = f"OpHintUnstack-OutputHint-steps-{stub.name}-0-0-None"
    assert list(nodes[unstack].input) == [stub.name] and nodes[unstack].attr["num"].i == 3
    assert list(nodes[outputs[2].op.name].input) == [f"{unstack}:2"]
    assert list(nodes[final.op.name].input) == [f"{stub.name}:1"]
    assert not [node for node in stubs.node if node.op == "Tanh"]


@pytest.mark.parametrize(
    ("given", "joined", "left"),
    [
        (tf.unstack, tf.stack, []),
        (tf.unstack, lambda parts: tf.stack(parts[:2]), ["Pack", "Unpack"]),
        (lambda x: tf.unstack(x)[::-1], tf.stack, ["Pack", "Unpack"]),
        (lambda x: tf.unstack(x, axis=1), tf.stack, ["Pack", "Unpack"]),
    ],
    ids=["all", "some results", "another order", "another axis"],
)
def test_what_is_unstacked_to_be_stacked_stays_whole(given, joined, left):
    """A function over all parts of a tensor in order reads the tensor, and gives its result to those that stack all of it."""
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [3, 3, 2], name="x")
        hint = OpHint("steps")
        parts = [hint.add_input(each, tag="in", aggregate="stack") for each in given(x)]
        parts = [hint.add_output(tf.nn.relu(each), tag="out", aggregate="stack") for each in parts]
        tf.identity(joined(parts), name="all")
        stubs = tf.lite.experimental.convert_op_hints_to_stubs(graph_def=graph.as_graph_def())
    assert [kind for kind in ("Pack", "Unpack") if kind in {node.op for node in stubs.node}] == left
    stub = next(node for node in stubs.node if node.op == "steps")
    reads_all = list(stub.input) == ["x"]
    assert reads_all == (given is tf.unstack)


def test_outputs_that_an_aggregate_leaves_out(x):
    """Of an output that counts by its last tensor, the others are gone with what computes them, unless somebody reads them."""
    hint, state, outputs = OpHint("steps"), tf.zeros([1, 2]), []
    for _ in range(3):
        state = tf.tanh(hint.add_input(x, tag="in", aggregate="stack") + state)
        outputs.append(hint.add_output(state, tag="out", aggregate="last"))
    stubs = tf.lite.experimental.convert_op_hints_to_stubs(graph_def=x.graph.as_graph_def())
    assert [node.op for node in stubs.node].count("Tanh") == 0
    tf.identity(outputs[1])
    stubs = tf.lite.experimental.convert_op_hints_to_stubs(graph_def=x.graph.as_graph_def())
    assert [node.op for node in stubs.node].count("Tanh") == 2


def test_exactly_one_source(x):
    """A session or a GraphDef, not both and not none."""
    with tf.Session() as session, pytest.raises(ValueError, match="only one of session and graph_def"):
        tf.lite.experimental.convert_op_hints_to_stubs(session, x.graph.as_graph_def())
    with pytest.raises(ValueError, match="Must specify session or graph_def"):
        tf.lite.experimental.convert_op_hints_to_stubs()
