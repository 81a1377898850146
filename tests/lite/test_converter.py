"""TFLiteConverter of 1.x: where it starts from, its settings, what it refuses."""

from __future__ import annotations

import os

import numpy as np
import pytest
from flatbuffers import flexbuffers

import stoker.compat.v1 as tf
from stoker._src.lite.flatbuffer import read_model
from tests.lite.running import run_model

Converter = tf.lite.TFLiteConverter
X = np.random.RandomState(0).randn(2, 3).astype(np.float32)


@pytest.fixture
def dense():
    """A session with y = x w + b, whose x has an open batch size."""
    graph = tf.Graph()
    with graph.as_default(), tf.Session(graph=graph) as session:
        x = tf.placeholder(tf.float32, [None, 3], name="x")
        w = tf.get_variable("w", initializer=np.arange(6, dtype=np.float32).reshape(3, 2))
        b = tf.get_variable("b", initializer=np.float32([1, -1]), use_resource=True)
        y = tf.add(tf.matmul(x, w), b, name="y")
        session.run(tf.global_variables_initializer())
        yield session, x, y


def frozen(session, path, as_text=False):
    definition = tf.graph_util.convert_variables_to_constants(session, session.graph_def, ["y"])
    tf.train.write_graph(definition, os.path.dirname(path), os.path.basename(path), as_text=as_text)
    return str(path)


def expected(session, x, y):
    return session.run(y, {x: X[:1]})


def test_defaults_are_the_documented_ones(dense):
    """Every attribute has the default of the documents."""
    session, x, y = dense
    converter = Converter.from_session(session, [x], [y])
    assert converter.inference_type == tf.float32
    assert converter.inference_input_type is None
    assert converter.inference_output_type is None
    assert converter.output_format == tf.lite.constants.TFLITE
    assert converter.quantized_input_stats == {}
    assert converter.default_ranges_stats is None
    assert converter.drop_control_dependency is True
    assert converter.reorder_across_fake_quant is False
    assert converter.change_concat_input_ranges is False
    assert converter.allow_custom_ops is False
    assert converter.post_training_quantize is False
    assert converter.dump_graphviz_dir is None
    assert converter.dump_graphviz_video is False
    assert converter.target_ops == {tf.lite.OpsSet.TFLITE_BUILTINS}
    assert converter.target_spec.supported_ops == {tf.lite.OpsSet.TFLITE_BUILTINS}
    assert converter.optimizations == []
    assert converter.representative_dataset is None
    assert converter.get_input_arrays() == ["x"]


def test_deprecated_attributes_set_their_successors(dense):
    """post_training_quantize and target_ops are other names of optimizations and target_spec.supported_ops."""
    session, x, y = dense
    converter = Converter.from_session(session, [x], [y])
    converter.post_training_quantize = True
    assert converter.optimizations == [tf.lite.Optimize.DEFAULT]
    converter.post_training_quantize = False
    assert converter.optimizations == []
    converter.target_ops = {tf.lite.OpsSet.SELECT_TF_OPS}
    assert converter.target_spec.supported_ops == {tf.lite.OpsSet.SELECT_TF_OPS}


def test_from_session_freezes_the_values_of_the_moment(dense):
    """Variables, of both kinds, are constants of the model; an open batch size becomes 1."""
    session, x, y = dense
    before = expected(session, x, y)
    converter = Converter.from_session(session, [x], [y])
    with session.graph.as_default():
        session.run(tf.global_variables()[0].assign(np.zeros([3, 2], np.float32)))
    model = converter.convert()
    read = read_model(model)
    assert [each.name for each in read.main.inputs] == ["x"]
    assert [each.name for each in read.main.outputs] == ["y"]
    assert read.main.inputs[0].shape == (1, 3)
    assert read.operator_counts() == {"FULLY_CONNECTED": 1}
    np.testing.assert_allclose(run_model(model, [X[:1]])[0], before, rtol=1e-6)


@pytest.mark.parametrize("as_text", [False, True])
def test_from_frozen_graph(dense, tmp_path, as_text):
    """A GraphDef's file, binary or text, with names of tensors and a shape."""
    session, x, y = dense
    path = frozen(session, tmp_path / "graph.pb", as_text)
    model = Converter.from_frozen_graph(path, ["x"], ["y"], input_shapes={"x": [2, 3]}).convert()
    np.testing.assert_allclose(run_model(model, [X])[0], session.run(y, {x: X}), rtol=1e-6)


def test_from_frozen_graph_refuses(dense, tmp_path):
    """Missing and foreign files are IOErrors; unfrozen graphs, unknown names and contradicting shapes ValueErrors."""
    session, *_ = dense
    path = frozen(session, tmp_path / "graph.pb")
    with pytest.raises(IOError, match="does not exist"):
        Converter.from_frozen_graph(str(tmp_path / "none.pb"), ["x"], ["y"])
    (tmp_path / "bad.pb").write_bytes(b"\xff\x00bad")
    with pytest.raises(IOError, match="Unable to parse"):
        Converter.from_frozen_graph(str(tmp_path / "bad.pb"), ["x"], ["y"])
    with pytest.raises(ValueError, match="Invalid tensors 'z' were found"):
        Converter.from_frozen_graph(path, ["x"], ["z"])
    with pytest.raises(ValueError, match="Invalid tensor 'q' found"):
        Converter.from_frozen_graph(path, ["x"], ["y"], input_shapes={"q": [1]})
    with pytest.raises(ValueError, match="cannot be changed"):
        Converter.from_frozen_graph(path, ["x"], ["y"], input_shapes={"x": [2, 4]})
    tf.train.write_graph(session.graph_def, str(tmp_path), "live.pb", as_text=False)
    with pytest.raises(ValueError, match="freeze the graph"):
        Converter.from_frozen_graph(str(tmp_path / "live.pb"), ["x"], ["y"])


def test_tables_of_frozen_graphs(tmp_path):
    """What fills a table is converted with it; a graph that was frozen without it is refused with what to do."""
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        keys = tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([5, 6], tf.int64))
        table = tf.lookup.StaticHashTable(keys, -1)
        words = tf.placeholder(tf.string, [2], name="words")
        tf.identity(table.lookup(words), name="numbers")
        session.run(tf.tables_initializer())
        complete = graph.as_graph_def()
        frozen_def = tf.graph_util.convert_variables_to_constants(session, complete, ["numbers"])
    for name, graph_def in (("complete", complete), ("frozen", frozen_def)):
        (tmp_path / f"{name}.pb").write_bytes(graph_def.SerializeToString())
    model = Converter.from_frozen_graph(str(tmp_path / "complete.pb"), ["words"], ["numbers"]).convert()
    (found,) = run_model(model, [np.array([b"b", b"z"], object)])
    assert found.tolist() == [6, -1]
    with pytest.raises(ValueError, match="from_session, after its initializers have run, or with from_saved_model"):
        Converter.from_frozen_graph(str(tmp_path / "frozen.pb"), ["words"], ["numbers"])


def test_the_constructor_takes_tensors_or_arrays(dense, tmp_path):
    """A GraphDef with tensors, or with names and shapes; neither is a ValueError."""
    session, x, y = dense
    definition = tf.graph_util.convert_variables_to_constants(session, session.graph_def, ["y"])
    for converter in (
        Converter(definition, [x], [y]),
        Converter(definition, None, None, [("x", [1, 3])], ["y"]),
    ):
        np.testing.assert_allclose(run_model(converter.convert(), [X[:1]])[0], expected(session, x, y), rtol=1e-6)
    with pytest.raises(ValueError, match="input_arrays_with_shape and output_arrays must be defined"):
        Converter(definition, None, None, output_arrays=["y"])


def test_from_saved_model(dense, tmp_path):
    """The default signature of the meta graph for serving, or the one that is named; the file has the signature."""
    session, x, y = dense
    directory = str(tmp_path / "saved")
    tf.saved_model.simple_save(session, directory, {"features": x}, {"scores": y})
    model = Converter.from_saved_model(directory, input_shapes={"x": [2, 3]}).convert()
    run = tf.lite.Interpreter(model_content=model).get_signature_runner("serving_default")
    np.testing.assert_allclose(run(features=X)["scores"], session.run(y, {x: X}), rtol=1e-6)
    with pytest.raises(ValueError, match="No 'other' in the SavedModel's SignatureDefs"):
        Converter.from_saved_model(directory, signature_key="other")
    inner = Converter.from_saved_model(directory, output_arrays=["MatMul"])
    assert read_model(inner.convert()).main.outputs[0].name == "MatMul"


@pytest.mark.parametrize(
    ("shape", "message"),
    [(None, "Provide an input shape for input array 'x'"), ([1, None], "only supported in the 1st dimension")],
)
def test_open_shapes_are_refused(shape, message):
    """The rank and every size but the batch's must be known."""
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        x = tf.placeholder(tf.float32, shape, name="x")
        with pytest.raises(ValueError, match=message):
            Converter.from_session(session, [x], [x + 1.0]).convert()


def test_an_open_batch_can_be_resized():
    """The batch of a converted model is 1; an interpreter may change it, because reshapes do not state it."""
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        x = tf.placeholder(tf.float32, [None, 4, 6], name="x")
        rows = tf.reshape(tf.tanh(x), [-1, 4, 2, 3])
        flat = tf.reshape(tf.transpose(rows, [0, 2, 1, 3]), [tf.shape(x)[0], 2, -1])
        columns = tf.squeeze(tf.expand_dims(flat, 2), 2)
        y = tf.reshape(columns, [tf.shape(x)[0], tf.shape(columns)[1], 3, tf.shape(x)[1]], name="y")
        arrays = np.random.RandomState(0).randn(3, 4, 6).astype(np.float32)
        expected = session.run(y, {x: arrays})
        model = Converter.from_session(session, [x], [y]).convert()
    interpreter = tf.lite.Interpreter(model_content=model)
    (detail,) = interpreter.get_input_details()
    assert detail["shape"].tolist() == [1, 4, 6]
    interpreter.resize_tensor_input(detail["index"], [3, 4, 6])
    interpreter.allocate_tensors()
    interpreter.set_tensor(detail["index"], arrays)
    interpreter.invoke()
    found = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_settings_that_contradict_are_refused(dense):
    """Types, statistics and datasets are checked before anything is converted."""
    session, x, y = dense

    def converter(**settings):
        made = Converter.from_session(session, [x], [y])
        for name, value in settings.items():
            setattr(made, name, value)
        return made

    with pytest.raises(ValueError, match="inference_type must be"):
        converter(inference_type=tf.float64).convert()
    with pytest.raises(ValueError, match="std_dev and mean must be defined"):
        converter(inference_type=tf.uint8).convert()
    with pytest.raises(ValueError, match="not available for input tensors 'x'"):
        converter(inference_input_type=tf.uint8, quantized_input_stats={"z": (0.0, 1.0)}).convert()
    with pytest.raises(ValueError, match="inference_output_type must be"):
        converter(inference_output_type=tf.int8).convert()
    with pytest.raises(ValueError, match="input generator"):
        converter(representative_dataset=3).convert()
    with pytest.raises(ValueError, match="output_format"):
        converter(output_format=7).convert()
    with pytest.raises(ValueError, match="OpsSet"):
        converter(target_ops={"TFLITE_BUILTINS"}).convert()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"optimizations": "DEFAULT"},
            "optimizations must be a list or a set of tf.lite.Optimize values, found 'DEFAULT'",
        ),
        ({"optimizations": ["DEFAULT"]}, "optimizations must hold tf.lite.Optimize values, found 'DEFAULT'"),
        ({"optimizations": tf.lite.Optimize.DEFAULT}, "optimizations must be a list"),
        ({"optimizations": None}, "optimizations must be a list"),
        ({"target_ops": tf.lite.OpsSet.TFLITE_BUILTINS}, "supported_ops must be a list or a set of tf.lite.OpsSet"),
        ({"supported_types": tf.float16}, "supported_types must be a list or a set of types"),
        ({"supported_types": ["half-precision"]}, "must hold types such as tf.float16, found 'half-precision'"),
        ({"supported_types": [tf.float64]}, "float64, which is no type of constants"),
        ({"inference_type": tf.uint8, "quantized_input_stats": {"x": 3}}, "'x' are two numbers, found 3"),
        (
            {"inference_type": tf.uint8, "quantized_input_stats": {"x": (0, 1)}, "default_ranges_stats": 6},
            "default_ranges_stats are two numbers, found 6",
        ),
        (
            {"inference_type": tf.int8, "quantized_input_stats": {"x": (127.5, 127.5)}},
            "mean of the input 'x' is 127.5. It is the number that stands for zero, from -128 to 127 in INT8",
        ),
    ],
)
def test_options_that_would_be_without_effect_are_refused(dense, settings, message):
    """An option that is not of its type says what it should be."""
    session, x, y = dense
    converter = Converter.from_session(session, [x], [y])
    for name, value in settings.items():
        setattr(converter.target_spec if name == "supported_types" else converter, name, value)
    with pytest.raises(ValueError, match=message):
        converter.convert()


def test_calls_without_a_model_are_refused(dense, tmp_path):
    """A constructor says which argument is wrong, and a graph that needs more inputs names them."""
    session, x, y = dense
    for arguments, message in (
        ((None, [x], [y]), "sess is a tf.Session, found NoneType"),
        ((session, x, [y]), "input_tensors is a list of tensors, found Tensor"),
        ((session, [x], y), "output_tensors is a list of tensors"),
        ((session, [x], []), "output_tensors is empty"),
    ):
        with pytest.raises(ValueError, match=message):
            Converter.from_session(*arguments)
    path = frozen(session, tmp_path / "frozen.pb")
    with pytest.raises(ValueError, match=r"a dictionary by the names of the inputs, found \[1, 4\]"):
        Converter.from_frozen_graph(path, ["x"], ["y"], [1, 4])
    converter = Converter.from_session(session, [], [y])
    for _ in range(2):
        with pytest.raises(Exception, match=r"Placeholder: .* not among the inputs(.|\n)*node 'x'") as caught:
            converter.convert()
        assert "SELECT_TF_OPS" not in str(caught.value)
        converter.target_spec.supported_ops = {tf.lite.OpsSet.SELECT_TF_OPS}


def test_control_dependencies_are_dropped_or_reported():
    """They are left out silently, or an error where that is not wanted."""
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        x = tf.placeholder(tf.float32, [3], name="x")
        with tf.control_dependencies([tf.debugging.assert_positive(x)]):
            y = tf.multiply(x, 2.0, name="y")
        converter = Converter.from_session(session, [x], [y])
        np.testing.assert_array_equal(run_model(converter.convert(), [np.float32([1, -2, 3])])[0], [2, -4, 6])
        converter.drop_control_dependency = False
        with pytest.raises(Exception, match="no control dependencies, and 1 nodes have some"):
            converter.convert()


def unsupported():
    graph = tf.Graph()
    with graph.as_default():
        x = tf.placeholder(tf.float32, [2, 2], name="x")
        y = tf.add(tf.math.lgamma(x, name="first") + tf.math.lgamma(2.0 * x, name="second"), tf.linalg.det(x), name="y")
    return graph, x, y


def test_unsupported_ops_are_listed_in_one_error():
    """The message has each op once, its nodes, the lines that made them, and what to use instead."""
    graph, x, y = unsupported()
    with (
        tf.Session(graph=graph) as session,
        pytest.raises(Exception, match="not supported by the native TFLite runtime") as raised,
    ):
        Converter.from_session(session, [x], [y]).convert()
    text = str(raised.value)
    assert "3 nodes of 2 op(s)" in text
    assert "node 'first', made at test_converter.py:" in text
    assert "node 'second'" in text
    assert "MatrixDeterminant" in text
    assert "Instead: " in text
    assert "SELECT_TF_OPS" in text


@pytest.mark.parametrize(
    ("build", "instead"),
    [
        (lambda x: tf.strings.length(tf.strings.lower(tf.as_string(x))), "process strings before the model"),
        (lambda x: tf.linalg.logdet(x), "write the formula out for small matrices"),
        (lambda x: tf.gradients(tf.nn.elu(x), x)[0], "convert the graph for inference"),
        (lambda x: tf.math.bessel_i0e(x), "tabulate the function with tf.gather"),
        (lambda x: tf.RaggedTensor.from_row_splits(tf.reshape(x, [4]), [0, 1, 4]).to_tensor(), "tf.sequence_mask"),
        (lambda x: tf.FIFOQueue(1, [tf.float32], [[2, 2]]).dequeue() + x, "make the tensor an input of the model"),
        (lambda x: tf.raw_ops.NthElement(input=x, n=1), "tf.nn.top_k"),
    ],
    ids=["strings", "linalg", "gradients", "functions", "ragged", "queue", "order"],
)
def test_unsupported_ops_have_alternatives(build, instead):
    """The error says what to use instead also for ops that have no text of their own but belong to a family that has."""
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        x = tf.placeholder(tf.float32, [2, 2], name="x")
        converter = Converter.from_session(session, [x], [build(x)])
        with pytest.raises(Exception, match=f"Instead: .*{instead}"):
            converter.convert()


def test_types_without_a_kernel_are_refused():
    """LiteRT would load a product of float64 and fail when it runs; the error comes from the converter, with the type."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [2], name="x")
        y = tf.cast(tf.cast(x, tf.float64) * 2.0, tf.float32)
        converter = tf.lite.TFLiteConverter.from_session(session, [x], [y])
        with pytest.raises(Exception, match="MUL has no kernel for FLOAT64"):
            converter.convert()


@pytest.mark.parametrize(
    ("code", "build"),
    [
        ("ADD_N", lambda x: tf.add_n([x, x, x])),
        ("SIGN", lambda x: tf.sign(x)),
        ("SQUARED_DIFFERENCE", lambda x: tf.math.squared_difference(x, x + 1)),
    ],
)
def test_integers_without_a_kernel_are_refused(code, build):
    """Most builtins compute 64-bit integers; the others are refused by the converter, not when the model runs."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.int64, [2], name="x")
        converter = tf.lite.TFLiteConverter.from_session(session, [x], [build(x)])
        with pytest.raises(Exception, match=f"{code} has no kernel for INT64"):
            converter.convert()


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64])
def test_clamps_of_integers(dtype):
    """The kernels of relu and relu6 take floating point; integers are compared with the limits."""
    values = np.array([-3, 4, 9]).astype(dtype)
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(dtype, [3], name="x")
        outputs = [tf.nn.relu(x), tf.nn.relu6(x)]
        model = tf.lite.TFLiteConverter.from_session(session, [x], outputs).convert()
    found = run_model(model, [values])
    np.testing.assert_array_equal(found[0], np.maximum(values, 0))
    np.testing.assert_array_equal(found[1], np.clip(values, 0, 6))


@pytest.mark.parametrize("dtype", [np.float16, np.uint16])
def test_diagonals_of_16_bits(dtype):
    """LiteRT's kernel would write zeros and parts of other numbers, so it works on 32 bits."""
    values = np.array([[1, 2, 3], [4, 5, 6]], dtype)
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(dtype, [2, 3], name="x")
        model = tf.lite.TFLiteConverter.from_session(session, [x], [tf.linalg.diag(x)]).convert()
    (found,) = run_model(model, [values])
    np.testing.assert_array_equal(found, values[:, :, None] * np.eye(3, dtype=dtype))


def test_select_ops_carry_their_nodes():
    """With SELECT_TF_OPS an op is kept for TensorFlow's kernel, with its NodeDef."""
    graph, x, y = unsupported()
    with tf.Session(graph=graph) as session:
        converter = Converter.from_session(session, [x], [y])
        converter.target_spec.supported_ops = {tf.lite.OpsSet.TFLITE_BUILTINS, tf.lite.OpsSet.SELECT_TF_OPS}
        model = read_model(converter.convert())
    assert model.operator_counts() == {"FlexLgamma": 2, "FlexMatrixDeterminant": 1, "ADD": 2, "MUL": 1}
    (operator,) = [each for each in model.operators() if each.kind == "FlexMatrixDeterminant"]
    assert operator.is_select
    name, node = flexbuffers.Loads(operator.custom_options)
    assert name == "MatrixDeterminant"
    node = tf.NodeDef.FromString(node.encode())
    assert (node.op, list(node.input), node.attr["T"].type) == ("MatrixDeterminant", [], 1)


def test_custom_ops_carry_their_attributes():
    """With allow_custom_ops an op becomes a custom one of its name."""
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        x = tf.placeholder(tf.float32, [3], name="x")
        converter = Converter.from_session(session, [x], [tf.math.cumprod(x, exclusive=True, name="y")])
        converter.allow_custom_ops = True
        model = read_model(converter.convert())
    (operator,) = model.operators()
    assert operator.kind == "Cumprod"
    assert flexbuffers.Loads(operator.custom_options) == {"exclusive": True, "reverse": False}


def test_the_graph_can_be_a_picture(dense):
    """GRAPHVIZ_DOT gives the model in the DOT language, with its operators and tensors."""
    session, x, y = dense
    converter = Converter.from_session(session, [x], [y])
    converter.output_format = tf.lite.constants.GRAPHVIZ_DOT
    picture = converter.convert().decode()
    assert picture.startswith("digraph")
    assert "FULLY_CONNECTED" in picture
    assert "float32[1x3]" in picture


def test_pictures_of_the_stages(dense, tmp_path):
    """dump_graphviz_dir gets a picture of the imported and one of the finished model, with video one of each step."""
    session, x, y = dense
    converter = Converter.from_session(session, [x], [y])
    converter.dump_graphviz_dir = str(tmp_path / "pictures")
    converter.convert()
    assert sorted(os.listdir(tmp_path / "pictures")) == ["toco_AFTER_TRANSFORMATIONS.dot", "toco_AT_IMPORT.dot"]
    assert "ADD" in (tmp_path / "pictures" / "toco_AT_IMPORT.dot").read_text()
    assert "ADD" not in (tmp_path / "pictures" / "toco_AFTER_TRANSFORMATIONS.dot").read_text()
    converter.dump_graphviz_video = True
    converter.convert()
    assert len(os.listdir(tmp_path / "pictures")) > 6


def test_channels_first_images_are_converted():
    """Transposes around channels-first ops cancel, except for those at the model's input and output."""
    random = np.random.RandomState(0)
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        x = tf.placeholder(tf.float32, [1, 3, 8, 8], name="x")
        y = x
        for channels in (4, 5):
            filters = random.randn(3, 3, int(y.shape[1]), channels).astype(np.float32)
            y = tf.nn.conv2d(y, filters, [1, 1, 1, 1], "SAME", data_format="NCHW")
            y = tf.nn.relu(tf.nn.bias_add(y, random.randn(channels).astype(np.float32), data_format="NCHW"))
        y = tf.transpose(y, [0, 2, 3, 1])
        model = Converter.from_session(session, [x], [y]).convert()
    assert read_model(model).operator_counts() == {"TRANSPOSE": 1, "CONV_2D": 2}
    image = random.randn(1, 3, 8, 8).astype(np.float32)
    graph = tf.Graph()
    assert run_model(model, [image])[0].shape == (1, 8, 8, 5)


def test_shape_arithmetic_is_folded():
    """A flatten that computes its sizes needs one RESHAPE."""
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        x = tf.placeholder(tf.float32, [None, 4, 5], name="x")
        sizes = tf.shape(x)
        y = tf.reshape(x, [sizes[0], sizes[1] * sizes[2]])
        model = Converter.from_session(session, [x], [y]).convert()
    assert read_model(model).operator_counts() == {"RESHAPE": 1}


def test_an_output_may_be_an_input_or_a_constant():
    """The model has what the caller asks for, also where nothing is computed."""
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        x = tf.placeholder(tf.float32, [2], name="x")
        outputs = [tf.identity(x), tf.constant([1.0, 2.0]), x + 1.0]
        model = Converter.from_session(session, [x], outputs).convert()
    found = run_model(model, [np.float32([5, 6])])
    np.testing.assert_array_equal(found, [[5, 6], [1, 2], [6, 7]])
