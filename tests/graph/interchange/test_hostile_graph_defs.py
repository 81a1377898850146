"""GraphDefs that nobody should write: each is refused with a message that says what is wrong; nothing in them is ever executed."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import stoker.compat.v1 as tf
from stoker._src.base.errors import InternalError
from stoker._src.formats.protos import GraphDef
from stoker._src.graph.interchange.importer import CONSUMER_VERSION
from stoker._src.runtime.plan.emit import check_source

FLOAT, INT32, STRING = 1, 3, 7
REFUSED = (ValueError, TypeError, tf.errors.OpError)


def graph_def(text: str) -> GraphDef:
    from google.protobuf import text_format

    return text_format.Parse(text, GraphDef())


def const(name: str = "c", value: float = 1.0) -> str:
    return (
        f'node {{ name: "{name}" op: "Const" attr {{ key: "dtype" value {{ type: DT_FLOAT }} }} '
        f'attr {{ key: "value" value {{ tensor {{ dtype: DT_FLOAT tensor_shape {{}} float_val: {value} }} }} }} }}'
    )


def node(name: str, op: str, *inputs: str, **attrs: str) -> str:
    """A node as text; attributes are given as the text of their value."""
    listed = " ".join(f'input: "{text}"' for text in inputs)
    pairs = " ".join(f'attr {{ key: "{key}" value {{ {value} }} }}' for key, value in attrs.items())
    return f'node {{ name: "{name}" op: "{op}" {listed} {pairs} }}'


T = "type: DT_FLOAT"


def function(name: str, calls: str) -> str:
    """A function of the library whose body calls another."""
    return (
        f'function {{ signature {{ name: "{name}" input_arg {{ name: "x" type: DT_FLOAT }} output_arg {{ name: "y" type: DT_FLOAT }} }} '
        f'node_def {{ name: "call" op: "{calls}" input: "x" }} ret {{ key: "y" value: "call:y:0" }} }}'
    )


_IDENTITY = (
    'function { signature { name: "same" input_arg { name: "x" type: DT_FLOAT } output_arg { name: "y" type: DT_FLOAT } } '
    'ret { key: "y" value: "x" } }'
)

BAD = {
    "cycle": (node("a", "Neg", "b", T=T) + node("b", "Neg", "a", T=T), "cycle through a, b"),
    "own_input": (node("a", "Neg", "a", T=T), "cycle"),
    "own_control_input": (node("a", "NoOp", "^a"), "cycle"),
    "control_cycle": (node("a", "NoOp", "^b") + node("b", "NoOp", "^a"), "cycle"),
    "missing_input": (node("a", "Neg", "nowhere", T=T), "nowhere"),
    "missing_control_input": (node("a", "NoOp", "^nowhere"), "nowhere"),
    "missing_output": (const() + node("a", "Neg", "c:5", T=T), "c:5.*1 outputs"),
    "too_few_inputs": (const() + node("a", "AddV2", "c", T=T), "expects 2 inputs but has 1"),
    "too_many_inputs": (const() + node("a", "Neg", "c", "c", T=T), "expects 1 inputs but has 2"),
    "wrong_dtype": (const() + node("a", "Neg", "c", T="type: DT_INT32"), "float.*int32"),
    "not_a_reference": (const() + node("a", "Assign", "c", "c", T=T), "reference"),
    "data_after_control": (const() + node("n", "NoOp") + node("a", "Neg", "^n", "c", T=T), "after.*control|control"),
    "duplicate": (const() + const(), "not unique|two nodes"),
    "no_name": (node("", "NoOp"), "name"),
    "name_with_space": (node("a b", "NoOp"), "not a valid node name"),
    "name_with_control_sign": (node("^a", "NoOp"), "not a valid node name"),
    "name_with_colon": (node("a:0", "NoOp"), "not a valid node name"),
    "name_with_newline": (node("a\\nb", "NoOp"), "not a valid node name"),
    "name_ends_in_newline": (node("a\\n", "NoOp"), "not a valid node name"),
    "unknown_op": (node("a", "Frobnicate"), "Frobnicate"),
    "op_of_python": (node("a", "__import__"), "__import__"),
    "empty_op": (node("a", ""), "not registered"),
    "malformed_input": (const() + node("a", "Neg", "c:x", T=T), "c:x"),
    "negative_output": (const() + node("a", "Neg", "c:-1", T=T), "c:-1"),
    "empty_input": (const() + node("a", "Neg", "", T=T), "not an input"),
    "missing_attr": (node("p", "Placeholder"), "missing attr 'dtype'"),
    "attr_of_wrong_kind": (const() + node("a", "Neg", "c", T="i: 1"), "T"),
    "attr_string_for_type": (const() + node("a", "Neg", "c", T='s: "float"'), "T"),
    "attr_empty": (const() + node("a", "Neg", "c", T=""), "empty"),
    "attr_placeholder": (const() + node("a", "Neg", "c", T='placeholder: "X"'), "placeholder"),
    "attr_list_for_scalar": (const() + node("a", "Neg", "c", T="list { type: DT_FLOAT }"), "T"),
    "attr_not_allowed": (const() + node("a", "Neg", "c", T="type: DT_STRING"), "string|not in"),
    "unknown_dtype": (node("p", "Placeholder", dtype="type: 999"), "999"),
    "tensor_of_wrong_dtype": (
        node("c", "Const", dtype=T, value="tensor { dtype: DT_INT32 tensor_shape {} int_val: 1 }"),
        "int32|dtype",
    ),
    "tensor_huge": (
        node("c", "Const", dtype=T, value="tensor { dtype: DT_FLOAT tensor_shape { dim { size: 1000000 } dim { size: 1000000000 } } float_val: 1 }"),
        "elements, too many",
    ),
    "tensor_negative": (
        node("c", "Const", dtype=T, value="tensor { dtype: DT_FLOAT tensor_shape { dim { size: -5 } } float_val: 1 }"),
        "not fully known",
    ),
    "tensor_short_content": (
        node("c", "Const", dtype=T, value='tensor { dtype: DT_FLOAT tensor_shape { dim { size: 4 } } tensor_content: "abc" }'),
        "needs 16 bytes but has 3",
    ),


    "tensor_of_half_strings": (
        node("c", "Const", dtype="type: DT_STRING", value='tensor { dtype: DT_STRING tensor_shape {} tensor_content: "\\011ab" }'),
        "needs 10 bytes for its strings but has 3",
    ),
    "tensor_of_no_booleans": (
        node("c", "Const", dtype="type: DT_BOOL", value='tensor { dtype: DT_BOOL tensor_shape {} tensor_content: "\\002" }'),
        "other than 0 and 1",
    ),
    "shape_negative": (node("p", "Placeholder", dtype=T, shape="shape { dim { size: -7 } }"), "-7|shape"),
    "shape_of_unknown_rank_with_sizes": (
        node("p", "Placeholder", dtype=T, shape="shape { unknown_rank: true dim { size: 3 } }"),
        "unknown rank that has 1 sizes",
    ),
    "attr_of_reference_type": (node("p", "Placeholder", dtype="type: DT_FLOAT_REF"), "reference type float32_ref"),
    "name_with_backslash": (node("a\\\\b", "NoOp"), "not a valid node name"),
    "sum_of_nothing": (node("a", "AddN", N="i: 0", T=T), "0 less than minimum 1"),
    "stated_shape_that_cannot_be": (
        const() + node("a", "Neg", "c", T=T, _output_shapes="list { shape { dim { size: 3 } } }"), "Node 'a'.*[Ss]hape"
    ),
    "stated_shapes_too_few": (const() + node("a", "Neg", "c", T=T, _output_shapes="list { }"), "1 outputs but .* 0 outputs"),
    "variable_read_as_another_dtype": (
        node("v", "VarHandleOp", dtype=T, shape="shape {}") + node("r", "ReadVariableOp", "v", dtype="type: DT_INT32"),
        "wrong dtype. Expected int32 got float",
    ),
    "variable_written_as_another_dtype": (
        const() + node("v", "VarHandleOp", dtype="type: DT_INT32", shape="shape {}") + node("a", "AssignVariableOp", "v", "c", dtype=T),
        "wrong dtype. Expected float32 got int32",
    ),
    "next_iteration_without_loop": (const() + node("n", "NextIteration", "c", T=T), "belongs to no loop"),
    "function_named_as_an_op": (f'library {{ {_IDENTITY.replace("same", "Neg")} }}', "op with the same name"),
    "results_of_another_dtype": (
        f"library {{ {_IDENTITY} }} {const()}"
        + node("a", "If", "c", "c", Tcond=T, Tin="list { type: DT_FLOAT }", Tout="list { type: DT_INT32 }",
               then_branch='func { name: "same" }', else_branch='func { name: "same" }'),
        r"returns \(float32\), but 'a' expects \(int32\)",
    ),
    "recursive_function": (
        const() + node("a", "f", "c") + "library {" + function("f", "f") + "}",
        "calls itself",
    ),
    "mutually_recursive_functions": (
        const() + node("a", "f", "c") + "library {" + function("f", "g") + function("g", "f") + "}",
        "f -> g -> f",
    ),
    "function_without_result": (
        const() + node("a", "f", "c")
        + 'library { function { signature { name: "f" input_arg { name: "x" type: DT_FLOAT } output_arg { name: "y" type: DT_FLOAT } } } }',
        "output 'y'",
    ),
    "unknown_function": (
        const() + node("a", "PartitionedCall", "c", Tin="list { type: DT_FLOAT }", Tout="list { type: DT_FLOAT }", f='func { name: "nope" }'),
        "nope",
    ),
    "negative_version": ("versions { producer: -1 }", "must not be negative"),
    "no_device": (node("a", "NoOp").replace("op:", 'device: "/job:x/bad!" op:'), "Node 'a': '/job:x/bad!' is not a device"),
    "colocated_with_nothing": (
        const() + node("a", "Neg", "c", T=T, _class='list { s: "loc:@nowhere" }'), "Node 'a' .*unknown node 'nowhere'"
    ),
    "too_many_arguments": (
        f'library {{ {_IDENTITY} }} {const()}'
        + node("a", "PartitionedCall", "c", "c", Tin="list { type: DT_FLOAT type: DT_FLOAT }", Tout="list { type: DT_FLOAT }", f='func { name: "same" }'),
        "Function 'same' has 1 arguments, but 'a' passes 2",
    ),
    "argument_of_another_dtype": (
        f'library {{ {_IDENTITY} }} '
        + node("i", "Placeholder", dtype="type: DT_INT32")
        + node("a", "PartitionedCall", "i", Tin="list { type: DT_INT32 }", Tout="list { type: DT_FLOAT }", f='func { name: "same" }'),
        "Argument 0 of function 'same' is float32",
    ),
    "too_new": (f"versions {{ producer: 9999 min_consumer: {CONSUMER_VERSION + 1} }}", "min consumer version"),
    "concat_of_negative_count": (const() + node("a", "ConcatV2", "c", "c", N="i: -3", T=T, Tidx="type: DT_INT32"), "N"),
    "huge_count": (const() + node("a", "Pack", "c", N="i: 4611686018427387904", T=T, axis="i: 0"), "N|inputs"),
}  # fmt: skip


def test_values_beyond_a_constants_shape_are_overlooked():
    """A constant with more values than its shape has room for keeps the first ones."""
    text = node("c", "Const", dtype=T, value="tensor { dtype: DT_FLOAT tensor_shape {} float_val: [1, 2, 3] }")
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(graph_def(text), name="")
        assert session.run("c:0") == 1


@pytest.mark.parametrize("case", BAD)
def test_a_graph_that_makes_no_sense_is_refused(case):
    """ValueError, with a message that names what is wrong; the graph keeps nothing that cannot run."""
    text, expected = BAD[case]
    with pytest.raises(ValueError, match=expected):
        tf.import_graph_def(graph_def(text), name="")


def test_an_unknown_op_is_not_found():
    """Both of TensorFlow's classes catch it: ValueError of 1.x and NotFoundError of 2.x."""
    for error in (ValueError, tf.errors.NotFoundError):
        with pytest.raises(error, match=r"^Op type not registered 'NoSuchOp'.*node 'a'"):
            tf.import_graph_def(graph_def(node("a", "NoSuchOp")), name="")


def test_what_tensorflow_sees_when_a_graph_runs_is_an_invalid_argument_too():
    """A truncated or mistyped constant fails TensorFlow's first run with InvalidArgumentError; here it fails the import."""
    for case in ("tensor_short_content", "tensor_of_wrong_dtype", "tensor_of_half_strings", "too_many_arguments"):
        with pytest.raises(tf.errors.InvalidArgumentError):
            tf.import_graph_def(graph_def(BAD[case][0]))
    with pytest.raises(tf.errors.NotFoundError, match="nope"):
        tf.import_graph_def(graph_def(BAD["unknown_function"][0]))


def test_attributes_that_nobody_knows_are_carried():
    """An attribute that the op does not have changes nothing and is written out again; an empty one is dropped."""
    text = const() + node("a", "Neg", "c", T=T, color='s: "red"', _empty="", _later='placeholder: "x"')
    tf.import_graph_def(graph_def(text), name="")
    assert tf.get_default_graph().get_operation_by_name("a").get_attr("color") == b"red"
    assert tf.Session().run("a:0") == -1.0
    written = {item.name: item for item in tf.get_default_graph().as_graph_def().node}["a"]
    assert written.attr["color"].s == b"red" and "_empty" not in written.attr and "_later" not in written.attr


def test_stated_shapes_make_static_shapes_precise():
    """The attribute _output_shapes (add_shapes=True) is taken over into the static shapes and not kept."""
    text = node("p", "Placeholder", dtype=T, _output_shapes="list { shape { dim { size: -1 } dim { size: 3 } } }")
    tf.import_graph_def(graph_def(text), name="")
    op = tf.get_default_graph().get_operation_by_name("p")
    assert op.outputs[0].shape.as_list() == [None, 3]
    with pytest.raises(ValueError, match="_output_shapes"):
        op.get_attr("_output_shapes")


def test_stated_shapes_of_handles_count_for_nothing():
    """TensorFlow's meta graphs state [2] for handles of stacks, arrays and queues of 1.x, whose shapes nobody uses."""
    pair = "list { shape { dim { size: 2 } } }"
    text = (
        node("size", "Const", dtype="type: DT_INT32", value="tensor { dtype: DT_INT32 tensor_shape {} int_val: 3 }")
        + node("s", "StackV2", "size", elem_type=T, stack_name='s: ""', _output_shapes=pair)
        + node("a", "TensorArrayV3", "size", dtype=T, _output_shapes="list { shape { dim { size: 2 } } shape { } }")
        + node("q", "FIFOQueue", component_types="list { type: DT_FLOAT }", _output_shapes=pair)
    )
    tf.import_graph_def(graph_def(text), name="")
    assert tf.get_default_graph().get_tensor_by_name("a:1").shape.as_list() == []


CONSTANTS = {
    "too_many": ("DT_FLOAT", "", "float_val: [1, 2, 3]", np.float32(1)),
    "too_many_strings": ("DT_STRING", "", 'string_val: "a" string_val: "b"', b"a"),
    "too_many_complex": ("DT_COMPLEX64", "", "scomplex_val: [1, 2, 3, 4]", np.complex64(1 + 2j)),
    "none_wanted": ("DT_FLOAT", "dim { size: 0 }", "float_val: 1", np.zeros(0, np.float32)),
    "rank_unknown": ("DT_FLOAT", "unknown_rank: true dim { size: 1 }", "float_val: 1", np.ones(1, np.float32)),
    "other_field": ("DT_FLOAT", "dim { size: 2 }", "int_val: 3", np.zeros(2, np.float32)),
    "strings_as_content": ("DT_STRING", "dim { size: 2 }", r'tensor_content: "\001\002abc"', [b"a", b"bc"]),
}  # fmt: skip


@pytest.mark.parametrize("case", CONSTANTS)
def test_odd_constants_have_tensorflows_values(case):
    """Too many values are cut, none are zeros, strings may come as lengths and bytes."""
    dtype, shape, values, expected = CONSTANTS[case]
    value = f"tensor {{ dtype: {dtype} tensor_shape {{ {shape} }} {values} }}"
    tf.import_graph_def(graph_def(node("c", "Const", dtype=f"type: {dtype}", value=value)), name="")
    found = tf.Session().run("c:0")
    np.testing.assert_array_equal(found, np.asarray(expected, dtype=object if dtype == "DT_STRING" else None))


def test_more_calls_than_fit_are_refused_or_run_in_bounded_time():
    """Functions that call the next one twice (2^40 calls when written out) are built once each."""
    library = []
    for i in range(40):
        body = (
            f'node_def {{ name: "a" op: "f{i + 1}" input: "x" }} node_def {{ name: "b" op: "f{i + 1}" input: "a:y:0" }}'
        )
        library.append(
            f'function {{ signature {{ name: "f{i}" input_arg {{ name: "x" type: DT_FLOAT }} output_arg {{ name: "y" type: DT_FLOAT }} }} '
            f'{body} ret {{ key: "y" value: "b:y:0" }} }}'
        )
    library.append(
        'function { signature { name: "f40" input_arg { name: "x" type: DT_FLOAT } output_arg { name: "y" type: DT_FLOAT } } '
        'node_def { name: "n" op: "Neg" input: "x" attr { key: "T" value { type: DT_FLOAT } } } ret { key: "y" value: "n:y:0" } }'
    )
    tf.import_graph_def(graph_def(const() + node("a", "f0", "c") + "library {" + " ".join(library) + "}"), name="")
    assert tf.get_default_graph().get_operation_by_name("a").type in ("PartitionedCall", "StatefulPartitionedCall")


def test_deep_graphs_do_not_exhaust_the_stack():
    """A chain of ten thousand nodes imports and runs."""
    chain = [const("n0")] + [node(f"n{i + 1}", "Neg", f"n{i}", T=T) for i in range(10_000)]
    tf.import_graph_def(graph_def("\n".join(chain)), name="")
    assert tf.Session().run("n10000:0") == 1.0


def test_input_map_and_return_elements_are_checked():
    """Arguments of the wrong kind are TypeErrors; names that are not there are ValueErrors."""
    graph = graph_def(const() + node("a", "Neg", "c", T=T))
    with pytest.raises(TypeError, match="GraphDef"):
        tf.import_graph_def("not a graph")
    with pytest.raises(TypeError, match="input_map"):
        tf.import_graph_def(graph, input_map={1: tf.constant(1.0)})
    with pytest.raises(TypeError, match="return_elements"):
        tf.import_graph_def(graph, return_elements="a:0")
    with pytest.raises(ValueError, match="nope"):
        tf.import_graph_def(graph, input_map={"nope": tf.constant(1.0)})
    for missing in ("nope", "nope:0", "a:7"):
        with pytest.raises(ValueError, match=missing):
            tf.import_graph_def(graph, return_elements=[missing])
    with pytest.raises(ValueError, match="int32"):
        tf.import_graph_def(graph, input_map={"c": tf.constant(1)})


def test_input_map_replaces_data_and_control_inputs():
    """`"x:0"` replaces a tensor, `"^x"` what is waited for; names come back as asked."""
    outside = tf.constant(5.0, name="outside")
    waited = tf.no_op(name="waited")
    text = const() + node("n", "NoOp") + node("a", "Neg", "c", "^n", T=T)
    (a, op) = tf.import_graph_def(
        graph_def(text), input_map={"c": outside, "^n": waited}, return_elements=["a:0", "a"], name="sub"
    )
    assert a.name == "sub/a:0" and op is a.op
    assert op.control_inputs == [waited]
    assert tf.Session().run(a) == -5.0


def test_attributes_with_defaults_may_be_left_out():
    """A GraphDef whose default attributes were stripped is whole again after import."""
    text = node("p", "Placeholder", dtype=T) + node("m", "MatMul", "p", "p", T=T)
    tf.import_graph_def(graph_def(text), name="")
    op = tf.get_default_graph().get_operation_by_name("m")
    assert op.get_attr("transpose_a") is False and op.get_attr("transpose_b") is False


def test_defaults_that_only_the_producer_knows_are_dropped():
    """producer_op_list tells which unknown attributes hold a default; others are carried along."""
    from stoker._src.formats.protos import OpList

    producer = OpList()
    op = producer.op.add(name="Neg")
    op.attr.add(name="mode", type="string").default_value.s = b"exact"
    good = graph_def(const() + node("a", "Neg", "c", T=T, mode='s: "exact"'))
    tf.import_graph_def(good, name="", producer_op_list=producer)
    other = graph_def(const("c2") + node("a2", "Neg", "c2", T=T, mode='s: "fast"'))
    tf.import_graph_def(other, name="", producer_op_list=producer)
    attrs = {item.name: item.attr for item in tf.get_default_graph().as_graph_def().node}
    assert "mode" not in attrs["a"] and attrs["a2"]["mode"].s == b"fast"


# -- injection ---------------------------------------------------------------------------------------------------

HOSTILE = [
    "__import__('os').system('touch /tmp/never')",
    "'); raise SystemExit(7); ('",
    '"""\nraise SystemExit(7)\n"""',
    "a\n    raise SystemExit(7)",
    "a\r\nimport os",
    "x = 1; del x",
    "c0",
    "holding.pause()",
    "step",
    "tick",
    "\u2028raise\u2029",
    "ünïcode/名前",
    "\x00",
    "{0.__class__.__mro__}",
    "%s%n%d",
    "A" * 100_000,
]


@pytest.fixture
def no_escape(monkeypatch):
    """Fails the test when anything of a file is imported, and keeps the sources of all steps."""
    sources = []

    def watched(source, filename, known):
        sources.append(source)
        return check_source(source, filename, known)

    monkeypatch.setattr("stoker._src.runtime.plan.emit.check_source", watched)
    before = set(sys.modules)
    yield sources
    assert not {"antigravity", "this"} & (set(sys.modules) - before)


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize(
    "field", ["name", "op", "device", "input", "attr_key", "attr_string", "user_attr", "colocation", "function", "argument", "constant", "container"]
)  # fmt: skip
def test_text_of_a_file_never_becomes_code(field, text, no_escape):
    """Python in any string of a GraphDef is refused or carried as data: no step's source holds it."""
    graph = graph_def(const("c") + node("a", "Neg", "c", T=T))
    a = graph.node[1]
    fetch = "a:0"
    if field == "name":
        a.name, fetch = text, text + ":0"
    elif field == "op":
        a.op = text
    elif field == "device":
        a.device = text
    elif field == "input":
        a.input[0] = text
    elif field == "attr_key":
        a.attr[text].s = b"x"
    elif field == "attr_string":
        a.op = "CheckNumerics"
        a.attr["message"].s = text.encode()
    elif field == "user_attr":
        a.attr["_note"].s = text.encode()
        a.attr["_" + text].s = text.encode()
    elif field == "colocation":
        a.attr["_class"].list.s.append(b"loc:@" + text.encode())
    elif field == "function":
        graph = graph_def(
            const() + node("a", "PartitionedCall", "c", Tin="list { type: DT_FLOAT }", Tout="list { type: DT_FLOAT }")
        )
        graph.MergeFrom(graph_def("library {" + function("f", "Neg") + "}"))
        graph.library.function[0].signature.name = text
        graph.library.function[0].node_def[0].attr["T"].type = FLOAT
        graph.node[1].attr["f"].func.name = text
    elif field == "argument":
        graph = graph_def(const() + node("a", "f", "c") + "library {" + function("f", "Neg") + "}")
        body = graph.library.function[0]
        body.signature.input_arg[0].name = body.node_def[0].input[0] = text
        body.node_def[0].attr["T"].type = FLOAT
    elif field == "constant":
        graph = graph_def(
            node("a", "Const", dtype="type: DT_STRING", value="tensor { dtype: DT_STRING tensor_shape {} }")
        )
        graph.node[0].attr["value"].tensor.string_val.append(text.encode())
    elif field == "container":
        graph = graph_def(
            node("a", "FIFOQueueV2", component_types="list { type: DT_FLOAT }") + node("s", "QueueSizeV2", "a")
        )
        graph.node[0].attr["shared_name"].s = graph.node[0].attr["container"].s = text.encode()
        fetch = "s:0"
    try:
        tf.import_graph_def(graph, name="")
        with tf.Session() as session:
            value = session.run(fetch)
    except (*REFUSED, KeyError):
        pass
    else:
        if field == "constant":
            assert value == text.encode()
    for source in no_escape:
        assert text not in source or text in ("c0", "step", "tick", "holding.pause()")
        assert "SystemExit" not in source and "__import__" not in source


def test_the_check_refuses_what_a_step_must_not_hold():
    """check_source is the last gate: imports, strings, attributes and unknown names do not pass."""
    for body in (
        "import os",
        "x = 'text'",
        "return (holding.__class__,)",
        "return (open,)",
        "x = [i for i in c0]",
        "return (lambda: 0,)",
        "while True: pass",
        "x = f'{c0}'",
        "x = c0[0]",
    ):
        with pytest.raises(InternalError):
            check_source(f"def step(holding):\n    {body}\n", "<test>", {"c0"})
    with pytest.raises(InternalError):
        check_source("def step(holding):\n    return (c0,)\nimport os\n", "<test>", {"c0"})


# -- fuzz --------------------------------------------------------------------------------------------------------

ATTRS = st.sampled_from(
    ["T", "dtype", "value", "N", "axis", "shape", "Tidx", "Tparams", "keep_dims", "transpose_a", "message", "_class", "f", "Tin", "Tout"]
)  # fmt: skip
NAMES = st.sampled_from(["a", "b", "c", "d", "e/f", "g"])
OPS = st.sampled_from(
    "Const Placeholder Neg AddV2 MatMul ConcatV2 Pack Reshape Identity NoOp VariableV2 VarHandleOp ReadVariableOp Assign Switch "
    "Merge Enter Exit NextIteration LoopCond If While PartitionedCall f StridedSlice Cast Shape Sum Split RandomUniform".split()
)  # fmt: skip


@st.composite
def attr_values(draw):
    from stoker._src.formats.protos import AttrValue

    value = AttrValue()
    kind = draw(st.sampled_from(["s", "i", "f", "b", "type", "shape", "tensor", "list", "func", "placeholder", "none"]))
    if kind == "s":
        value.s = draw(st.binary(max_size=8))
    elif kind == "i":
        value.i = draw(st.integers(-(2**63), 2**63 - 1))
    elif kind == "f":
        value.f = draw(st.floats(width=32))
    elif kind == "b":
        value.b = draw(st.booleans())
    elif kind == "type":
        value.type = draw(st.integers(0, 130))
    elif kind == "shape":
        for size in draw(st.lists(st.integers(-3, 2**40), max_size=3)):
            value.shape.dim.add(size=size)
    elif kind == "tensor":
        value.tensor.dtype = draw(st.integers(0, 25))
        value.tensor.tensor_content = draw(st.binary(max_size=16))
        value.tensor.float_val.extend(draw(st.lists(st.floats(width=32), max_size=3)))
        for size in draw(st.lists(st.integers(-3, 2**40), max_size=3)):
            value.tensor.tensor_shape.dim.add(size=size)
    elif kind == "list":
        value.list.i.extend(draw(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=3)))
        value.list.type.extend(draw(st.lists(st.integers(0, 130), max_size=2)))
    elif kind == "func":
        value.func.name = draw(st.sampled_from(["f", "g", ""]))
    elif kind == "placeholder":
        value.placeholder = "T"
    return value


@st.composite
def graphs(draw):
    graph = GraphDef()
    for name in draw(st.lists(NAMES, min_size=1, max_size=5, unique=draw(st.booleans()))):
        item = graph.node.add(name=name, op=draw(OPS))
        item.input.extend(
            prefix + source
            for prefix, source in draw(st.lists(st.tuples(st.sampled_from(["", "", "^"]), NAMES), max_size=3))
        )
        if draw(st.booleans()):
            item.attr["T"].type = item.attr["dtype"].type = FLOAT
        for key, value in draw(st.lists(st.tuples(ATTRS, attr_values()), max_size=3)):
            item.attr[key].CopyFrom(value)
    if draw(st.booleans()):
        graph.MergeFrom(graph_def("library {" + function("f", draw(st.sampled_from(["Neg", "f", "g"]))) + "}"))
    return graph


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(graphs())
def test_any_graph_is_imported_or_refused(graph):
    """Whatever the message holds: an import ends with a graph that writes itself out again, or with a documented error."""
    with tf.Graph().as_default() as target:
        try:
            tf.import_graph_def(graph, name="")
        except REFUSED as error:
            assert str(error)
            return
        assert target.as_graph_def().ByteSize() > 0


def _written() -> bytes:
    """A graph with variables, a conditional and its gradient."""
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [None, 3], name="x")
        w = tf.Variable(np.ones((3, 2), np.float32), name="w")
        y = tf.cond(tf.reduce_sum(x) > 0, lambda: tf.matmul(x, w), lambda: tf.matmul(-x, w))
        tf.gradients(y, [w])
        return graph.as_graph_def().SerializeToString()


WRITTEN = _written()


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(st.data())
def test_damaged_bytes_are_parsed_or_refused(data):
    """Flipped bytes of a real GraphDef give DecodeError from the parser, a refusal, or a graph."""
    from google.protobuf.message import DecodeError

    bad = bytearray(WRITTEN)
    for _ in range(data.draw(st.integers(1, 4))):
        bad[data.draw(st.integers(0, len(bad) - 1))] = data.draw(st.integers(0, 255))
    with tf.Graph().as_default():
        try:
            tf.import_graph_def(GraphDef.FromString(bytes(bad)), name="")
        except (DecodeError, *REFUSED) as error:
            assert str(error)


def _program() -> GraphDef:
    """A graph of many kinds of ops whose outputs can all be run."""
    with tf.Graph().as_default() as graph:
        x = tf.placeholder_with_default(np.ones((2, 3), np.float32), [None, 3], name="x")
        w = tf.Variable(np.ones((3, 2), np.float32), name="w", use_resource=True)
        ref = tf.Variable(np.ones((3, 2), np.float32), name="ref", use_resource=False)
        y = tf.cond(tf.reduce_sum(x) > 0, lambda: tf.matmul(x, w), lambda: tf.matmul(-x, ref))
        tf.gradients(tf.nn.softmax(y), [w])
        tf.concat([tf.reshape(y, [-1]), tf.gather(tf.range(5.0), [1, 2])], 0)
        tf.stack(tf.split(x, 3, axis=1))[:, 0, ::-1]
        tf.string_join([tf.as_string(tf.argmax(y, 1)), tf.constant(["a", "b"])])
        tf.nn.conv2d(tf.ones([1, 4, 4, 1]), tf.ones([2, 2, 1, 1]), 1, "SAME")
        tf.where(tf.transpose(y) > 1.0)
        tf.group(w.assign_add(w * 2.0), tf.assign(ref, ref + 1.0), tf.global_variables_initializer())
        return graph.as_graph_def()


PROGRAM = _program()
PIECES = [value for item in PROGRAM.node for value in item.attr.values()]


def _change(graph, draw):
    """One change of a message: what it says of a node is replaced by what it says elsewhere, lost, or doubled."""

    def one_of(items):
        return items[draw(st.integers(0, len(items) - 1))]

    item = one_of(graph.node)
    what = draw(
        st.sampled_from(["op", "input", "lose", "more", "attr", "type", "sizes", "content", "number", "double"])
    )
    keys = sorted(item.attr)
    tensors = [item.attr[key].tensor for key in keys if item.attr[key].HasField("tensor")]
    if what == "op":
        item.op = one_of(graph.node).op
    elif what == "input" and item.input:
        item.input[draw(st.integers(0, len(item.input) - 1))] = one_of(graph.node).name
    elif what == "lose" and item.input:
        item.input.pop()
    elif what == "more":
        item.input.append(one_of(graph.node).name)
    elif what == "double":
        graph.node.add().CopyFrom(item)
        graph.node[-1].name += "_again"
    elif what == "attr" and keys:
        item.attr[one_of(keys)].CopyFrom(one_of(PIECES))
    elif what == "type" and keys:
        item.attr[one_of(keys)].type = draw(st.integers(0, 24))
    elif what == "number" and keys:
        item.attr[one_of(keys)].i = draw(st.integers(-3, 70))
    elif what == "sizes" and tensors:
        dims = tensors[0].tensor_shape.dim
        dims.add(size=draw(st.integers(-1, 5))) if draw(st.booleans()) or not dims else dims.pop()
    elif what == "content" and tensors:
        tensors[0].tensor_content = draw(st.binary(max_size=24))


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(st.data())
def test_changed_programs_run_or_are_refused(data):
    """A valid GraphDef with a few changes is refused on import, or every output of it runs or raises TensorFlow's errors."""
    changed = GraphDef()
    changed.CopyFrom(PROGRAM)
    for _ in range(data.draw(st.integers(1, 3))):
        _change(changed, data.draw)
    with tf.Graph().as_default() as graph, tf.Session() as session:
        try:
            tf.import_graph_def(changed, name="")
        except REFUSED as error:
            assert str(error)
            return
        for op in graph.get_operations():
            try:
                session.run(list(op.outputs) or op)
            except REFUSED as error:
                assert str(error)


@pytest.mark.parametrize("index", ["٣", "²", "2147483648", "99999999999999999999", "+0", "1_0", ""])
def test_output_indices_are_ascii_digits_of_an_int32(index):
    """What follows the colon of an input is a number in ASCII digits below 2^31, or the node is refused."""
    message = graph_def(const())
    node = message.node.add(name="i", op="Identity", input=[f"c:{index}"])
    node.attr["T"].type = FLOAT
    with tf.Graph().as_default(), pytest.raises(ValueError, match="is not an input"):
        tf.import_graph_def(message)


def test_a_damaged_variable_of_a_meta_graph_is_refused_by_tf_errors():
    """Bytes of a collection that are no message are an InvalidArgumentError that names the collection."""
    message = tf.MetaGraphDef()
    message.collection_def["variables"].bytes_list.value.append(b"\xff\xff\xff")
    with tf.Graph().as_default(), pytest.raises(tf.errors.InvalidArgumentError, match="'variables'"):
        tf.train.import_meta_graph(message)


@pytest.mark.parametrize("field", ["", "variable_name", "initializer_name", "initial_value_name", "snapshot_name"])
def test_a_variable_of_a_meta_graph_names_what_it_consists_of(field):
    """A VariableDef without a variable, or with an op in place of a tensor or the reverse, is an InvalidArgumentError."""
    with tf.Graph().as_default():
        variable = tf.get_variable("v", initializer=1.0)
        named, meta = variable.to_proto(), tf.train.export_meta_graph()
    if field:
        setattr(named, field, "v/read:0" if field == "initializer_name" else "v/Assign")
    meta.collection_def["variables"].bytes_list.value[0] = named.SerializeToString() if field else b""
    with tf.Graph().as_default(), pytest.raises(tf.errors.InvalidArgumentError, match="A VariableDef names"):
        tf.train.import_meta_graph(meta)


def test_a_python_function_cannot_be_guessed():
    """A PyFunc node that another program wrote does not reach a function of this one; one that this program wrote does."""
    calls = []
    value = tf.py_func(lambda x: calls.append(1) or x, [tf.constant(1.0)], tf.float32)
    message = tf.get_default_graph().as_graph_def()
    node = next(each for each in message.node if each.op.startswith("PyFunc"))
    number = value.op.get_attr("token").decode().split("_")[1]
    for token, found in ((node.attr["token"].s, True), (f"pyfunc_{number}".encode(), False)):
        node.attr["token"].s = token
        with tf.Graph().as_default():
            (again,) = tf.import_graph_def(message, return_elements=[f"{node.name}:0"])
            with tf.Session() as session:
                if found:
                    assert session.run(again) == 1.0
                else:
                    with pytest.raises(tf.errors.OpError):
                        session.run(again)
    assert calls == [1]
