"""`tf.lite.experimental.nn`: cells with hints, and the loop around them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flatbuffers import flexbuffers

import stoker.compat.v1 as tf
from stoker._src.lite.convert import ConverterError
from stoker._src.lite.flatbuffer import read_model

CASES = json.loads((Path(__file__).resolve().parent.parent / "golden" / "lite" / "rnn.json").read_text())
X = np.random.RandomState(0).uniform(-1, 1, [4, 2, 2]).astype(np.float32)


@pytest.fixture(autouse=True)
def _functional_control_flow():
    tf.enable_control_flow_v2()
    yield
    tf.disable_control_flow_v2()


def _nodes(graph_def):
    yield from graph_def.node
    for function in graph_def.library.function:
        yield from function.node_def


def _hints(graph_def) -> list:
    found = []
    for node in _nodes(graph_def):
        attr = node.attr
        if "_tflite_function_name" in attr:
            side = "input" if "_tflite_function_input_index" in attr else "output"
            sort = attr["_tflite_function_sort_index"].i if "_tflite_function_sort_index" in attr else None
            found.append(
                [
                    side.removesuffix("put"),
                    attr["_tflite_function_name"].s.decode(),
                    attr[f"_tflite_function_{side}_index"].i,
                    sort,
                    attr["_tflite_function_aggregate"].s.decode() if sort is not None else None,
                    node.name.rsplit("-", 1)[-1],
                    attr["_tflite_ophint_level"].i,
                ]
            )
    return sorted(found, key=str)


@pytest.mark.parametrize("case", CASES, ids=[case["label"] for case in CASES])
def test_cells_are_those_of_tensorflow(case):
    """Variables, biases, hints and results of a loop equal TensorFlow 1.15's, also with a given initial state."""
    make = getattr(tf.lite.experimental.nn, case["kind"])
    with tf.Graph().as_default() as graph, tf.Session() as session:
        x = tf.placeholder(tf.float32, [4, 2, 2])
        outputs, state = tf.lite.experimental.nn.dynamic_rnn(make(3, name="c", **case["options"]), x, dtype=tf.float32)
        variables = tf.global_variables()
        assert [[v.name, v.shape.as_list()] for v in variables] == case["variables"]
        assert _hints(graph.as_graph_def()) == case["hints"]
        session.run(tf.global_variables_initializer())
        for variable in variables:
            if variable.op.name in case["initial"]:
                assert session.run(variable).tolist() == case["initial"][variable.op.name]
        for number, variable in enumerate(variables):
            value = np.random.RandomState(number).uniform(-1, 1, variable.shape.as_list())
            variable.load(value.astype(np.float32), session)
        found, final = session.run([outputs, state], {x: X})
    np.testing.assert_allclose(found, case["outputs"], rtol=1e-5, atol=1e-6)
    for mine, expected in zip(final if isinstance(final, tuple) else [final], case["state"], strict=True):
        np.testing.assert_allclose(mine, expected, rtol=1e-5, atol=1e-6)


def test_batches_first_and_lengths():
    """With time_major=False the batch comes first. Past its length an example's output is 0 and its state stays."""
    with tf.Graph().as_default() as graph, tf.Session() as session:
        cell = tf.lite.experimental.nn.TfLiteRNNCell(3, name="c")
        by_batch, _ = tf.lite.experimental.nn.dynamic_rnn(
            cell, X.transpose(1, 0, 2), dtype=tf.float32, time_major=False
        )
        by_time, _ = tf.lite.experimental.nn.dynamic_rnn(cell, X, dtype=tf.float32, scope="rnn2")
        assert len([h for h in _hints(graph.as_graph_def()) if h[1] == "TfLiteDynamicRnn"]) == 4
        ended, final = tf.lite.experimental.nn.dynamic_rnn(
            cell, X, sequence_length=[2, 4], dtype=tf.float32, scope="rnn3"
        )
        assert len([h for h in _hints(graph.as_graph_def()) if h[1] == "TfLiteDynamicRnn"]) == 4
        session.run(tf.global_variables_initializer())
        first, second, third, state = session.run([by_batch, by_time, ended, final])
    np.testing.assert_allclose(first.transpose(1, 0, 2), second, rtol=1e-6)
    assert not third[2:, 0].any() and third[2:, 1].any()
    np.testing.assert_allclose(state, [second[1, 0], second[3, 1]], rtol=1e-6)


def test_misuse_is_explained():
    """What is not a cell, missing inputs, an unknown activation and old control flow are errors."""
    nn = tf.lite.experimental.nn
    with tf.Graph().as_default():
        with pytest.raises(TypeError, match="is not an RNNCell"):
            nn.dynamic_rnn(3, X, dtype=tf.float32)
        for nothing in (None, []):
            with pytest.raises(ValueError, match="needs inputs"):
                nn.dynamic_rnn(nn.TfLiteRNNCell(3), nothing, dtype=tf.float32)
        with pytest.raises(ValueError, match="you must give a dtype"):
            nn.dynamic_rnn(nn.TfLiteRNNCell(3), X)
        with pytest.raises(ValueError, match="nope"):
            nn.TfLiteRNNCell(3, activation="nope")
        tf.disable_control_flow_v2()
        with pytest.raises(RuntimeError, match="only supports control flow v2"):
            nn.dynamic_rnn(nn.TFLiteLSTMCell(3), X, dtype=tf.float32)
    with tf.Graph().as_default():
        nn.TfLiteRNNCell(3)(X[0], tf.zeros([2, 3]), scope="c")
        with pytest.raises(ValueError, match="already exists"):
            nn.TfLiteRNNCell(3)(X[0], tf.zeros([2, 3]), scope="c")
        nn.TfLiteRNNCell(3, reuse=True)(X[0], tf.zeros([2, 3]), scope="c")


def test_sizes_and_initial_states():
    """`state_size`, `output_size`, `zero_state`, `get_initial_state`, `scope_name` and `graph` are those of layers and cells."""
    nn = tf.lite.experimental.nn
    with tf.Graph().as_default() as graph:
        lstm = nn.TFLiteLSTMCell(3, num_proj=2, num_unit_shards=2, name="z")
        assert lstm.state_size == tf.nn.rnn_cell.LSTMStateTuple(3, 2) and lstm.output_size == 2
        assert nn.TFLiteLSTMCell(3, num_proj=2, state_is_tuple=False).state_size == 5
        assert [part.shape.as_list() for part in lstm.zero_state(4, tf.float32)] == [[4, 3], [4, 2]]
        assert nn.TfLiteRNNCell(3).get_initial_state(batch_size=4, dtype=tf.float32).shape.as_list() == [4, 3]
        with pytest.raises(ValueError, match="has not been used yet"):
            assert lstm.scope_name
        lstm(X[0], lstm.zero_state(2, tf.float32))
        assert lstm.scope_name == "z"
        assert graph is tf.get_default_graph()


def test_a_loop_becomes_one_stub_for_each_cell():
    """The loop of a MultiRNNCell becomes one node for each cell; the second reads the sequence that the first writes."""
    nn = tf.lite.experimental.nn
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [4, 1, 2], name="x")
        cells = tf.nn.rnn_cell.MultiRNNCell([nn.TFLiteLSTMCell(3, name="a"), nn.TfLiteRNNCell(2, name="b")])
        outputs, _ = nn.dynamic_rnn(cells, x, dtype=tf.float32)
        tf.identity(outputs[-1], name="out")
        stubs = tf.lite.experimental.convert_op_hints_to_stubs(session=session)
    needed = tf.graph_util.extract_sub_graph(stubs, ["out"])
    nodes = {node.name: node for node in needed.node}
    kinds = Counter(node.op for node in needed.node)
    assert kinds["UnidirectionalSequenceLstm"] == kinds["UnidirectionalSequenceRnn"] == 1
    assert not kinds["While"] and not kinds["StatelessWhile"] and not kinds["MatMul"] and not kinds["TensorListStack"]
    lstm = next(node for node in needed.node if node.op == "UnidirectionalSequenceLstm")
    rnn = next(node for node in needed.node if node.op == "UnidirectionalSequenceRnn")
    assert list(lstm.attr["_tflite_input_indices"].list.i) == [*range(9), *range(12, 16), 18, 19]
    assert nodes[lstm.input[0]].input[0] == "x" and rnn.input[0] == f"{lstm.name}:2"
    last = next(node for node in needed.node if node.name.endswith("outputs"))
    assert list(last.input) == [f"{rnn.name}:1"]


def test_unrolled_steps_become_one_stub():
    """The steps of `static_rnn` are one use of the function: it reads what was unstacked, outputs are unstacked, the first state is the argument."""
    nn = tf.lite.experimental.nn
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [4, 1, 2], name="x")
        outputs, _ = tf.nn.static_rnn(nn.TFLiteLSTMCell(3, name="c"), tf.unstack(x), dtype=tf.float32)
        tf.identity(outputs[-1], name="out")
        stubs = tf.lite.experimental.convert_op_hints_to_stubs(graph_def=graph.as_graph_def())
    needed = tf.graph_util.extract_sub_graph(stubs, ["out"])
    kinds = Counter(node.op for node in needed.node)
    assert kinds["UnidirectionalSequenceLstm"] == 1 and not kinds["MatMul"] and not kinds["Pack"]
    unpacked = next(node for node in needed.node if node.name.startswith("OpHintUnstack-"))
    assert unpacked.attr["num"].i == 4


NN = tf.lite.experimental.nn


def _outputs(cell, x, **options):
    return NN.dynamic_rnn(cell, x, dtype=tf.float32, **options)[0]


def _stacked(x):
    cells = tf.nn.rnn_cell.MultiRNNCell([NN.TFLiteLSTMCell(3, name="a"), NN.TfLiteRNNCell(4, name="b")])
    return _outputs(cells, x)


def _both_ways(x, cell: Any = NN.TFLiteLSTMCell, **options):
    forward = _outputs(cell(3, name="f", **options), x, scope="fw")
    backward = _outputs(cell(3, name="b", **options), tf.reverse(x, [0]), scope="bw")
    return tf.concat([forward, tf.reverse(backward, [0])], 2)


def _kept_apart(x):
    forward = _outputs(NN.TFLiteLSTMCell(3, name="f"), x, scope="fw")
    backward = _outputs(NN.TFLiteLSTMCell(3, name="b"), tf.reverse(x, [0]), scope="bw")
    return tf.concat([forward, tf.reverse(backward, [0])], 2) + tf.reduce_sum(forward)


def _everything(x):
    return _outputs(NN.TFLiteLSTMCell(5, use_peepholes=True, cell_clip=0.1, num_proj=3, proj_clip=0.02), x)


def _run(content: bytes) -> np.ndarray:
    interpreter = tf.lite.Interpreter(model_content=content)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], X)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def _unrolled(x):
    return tf.stack(tf.nn.static_rnn(NN.TFLiteLSTMCell(3), tf.unstack(x), dtype=tf.float32)[0])


def _residual(x):
    first = NN.TFLiteLSTMCell(3, name="a")
    second = tf.nn.rnn_cell.ResidualWrapper(NN.TfLiteRNNCell(3, name="b"))
    return _outputs(tf.nn.rnn_cell.MultiRNNCell([first, second]), x)


BOTH = {"BIDIRECTIONAL_SEQUENCE_LSTM", "BIDIRECTIONAL_SEQUENCE_RNN"}
FUSED = {"UNIDIRECTIONAL_SEQUENCE_LSTM", "UNIDIRECTIONAL_SEQUENCE_RNN", *BOTH}


@pytest.mark.parametrize(
    ("build", "fused"),
    [
        (lambda x: _outputs(NN.TFLiteLSTMCell(3, activation=tf.nn.relu), x), 1),
        (_everything, 1),
        (lambda x: _outputs(NN.TfLiteRNNCell(3), x, time_major=False), 1),
        (_stacked, 2),
        (_both_ways, 1),
        (lambda x: _both_ways(x, NN.TfLiteRNNCell), 1),
        (lambda x: _both_ways(x, use_peepholes=True, num_proj=2, cell_clip=0.1), 1),
        (_kept_apart, 2),
        (_unrolled, 1),
        (lambda x: _outputs(NN.TFLiteLSTMCell(3), x, sequence_length=[2, 3]), 0),
        (lambda x: _outputs(NN.TfLiteRNNCell(3, activation="sigmoid"), x), 0),
        (_residual, 0),
        (lambda x: NN.dynamic_rnn(NN.TFLiteLSTMCell(3), x, dtype=tf.float32)[1].c, 0),
    ],
    ids=[
        "relu",
        "everything",
        "rnn",
        "stacked",
        "both ways",
        "both ways rnn",
        "both ways peepholes",
        "kept apart",
        "unrolled",
        "lengths",
        "sigmoid",
        "residual",
        "state",
    ],
)
def test_loops_convert_to_fused_operators(build, fused):
    """A converted model has a fused operator for each cell, or the loop where it would not be the same, and computes what the graph does."""
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(1)
        x = tf.placeholder(tf.float32, X.shape, name="x")
        out = build(x)
        session.run(tf.global_variables_initializer())
        content = tf.lite.TFLiteConverter.from_session(session, [x], [out]).convert()
        expected = session.run(out, {x: X})
    counts = read_model(content).operator_counts()
    assert sum(counts[code] for code in FUSED) == fused and bool(counts["WHILE"]) == (not fused)
    assert not (sum(counts[code] for code in BOTH) and counts["REVERSE_V2"])
    np.testing.assert_allclose(_run(content), expected, atol=1e-6)


@pytest.mark.parametrize(
    ("build", "fused"),
    [
        (lambda x: _outputs(NN.TFLiteLSTMCell(3, use_peepholes=True, num_proj=2), x), 1),
        (lambda x: _outputs(NN.TFLiteLSTMCell(3, activation=tf.nn.relu), x), 1),
        (lambda x: _outputs(NN.TfLiteRNNCell(3, activation="relu"), x), 1),
        (_stacked, 2),
        (_unrolled, 1),
        (lambda x: _outputs(NN.TFLiteLSTMCell(3, cell_clip=0.1), x), 0),
        (lambda x: _outputs(NN.TFLiteLSTMCell(3, num_proj=2, proj_clip=0.05), x), 0),
        (lambda x: _outputs(NN.TfLiteRNNCell(3, activation="sigmoid"), x), 0),
    ],
    ids=["projection", "relu", "rnn", "stacked", "unrolled", "clip", "clipped projection", "sigmoid"],
)
def test_hints_of_tensorflow_do_not_state_what_a_cell_does(build, fused):
    """In a graph that TensorFlow 1.15 wrote, hints have no attributes: a cell is fused if its nodes are those of a plain one, and else converted as it is."""
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(1)
        x = tf.placeholder(tf.float32, X.shape, name="x")
        out = tf.identity(build(x), name="out")
        session.run(tf.global_variables_initializer())
        expected = session.run(out, {x: X})
        graph_def = session.graph.as_graph_def()
        for node in _nodes(graph_def):
            for name in [name for name in node.attr if name.startswith("_tflite_attr_")]:
                del node.attr[name]
        frozen = tf.graph_util.convert_variables_to_constants(session, graph_def, ["out"])
        content = tf.lite.TFLiteConverter(frozen, [x], [out]).convert()
    counts = read_model(content).operator_counts()
    assert sum(counts[code] for code in FUSED) == fused and bool(counts["WHILE"]) == (not fused)
    np.testing.assert_allclose(_run(content), expected, atol=1e-6)


@pytest.mark.parametrize(
    ("build", "fused"),
    [(_everything, 1), (_stacked, 2), (_both_ways, 1), (_unrolled, 1), (lambda x: _unrolled(x)[-1], 1)],
    ids=["everything", "stacked", "both ways", "unrolled", "last step"],
)
def test_stubs_convert_to_fused_operators(build, fused, tmp_path):
    """The graph that `convert_op_hints_to_stubs` makes, frozen, converts to the fused operators and computes what the graph did."""
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(1)
        x = tf.placeholder(tf.float32, X.shape, name="x")
        out = tf.identity(build(x), name="out")
        session.run(tf.global_variables_initializer())
        expected = session.run(out, {x: X})
        stubs = tf.lite.experimental.convert_op_hints_to_stubs(session=session)
        frozen = tf.graph_util.convert_variables_to_constants(session, stubs, ["out"])
        content = tf.lite.TFLiteConverter(frozen, [x], [out]).convert()
    counts = read_model(content).operator_counts()
    assert sum(counts[code] for code in FUSED) == fused and not counts["FULLY_CONNECTED"] and not counts["WHILE"]
    np.testing.assert_allclose(_run(content), expected, atol=1e-6)


def test_a_stub_whose_state_is_read_is_not_converted():
    """The fused operators do not give the final state, so a stub whose state is read is reported like an op without a builtin."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, X.shape, name="x")
        out = tf.identity(tf.nn.static_rnn(NN.TFLiteLSTMCell(3), tf.unstack(x), dtype=tf.float32)[1].c, name="out")
        session.run(tf.global_variables_initializer())
        stubs = tf.lite.experimental.convert_op_hints_to_stubs(session=session)
        frozen = tf.graph_util.convert_variables_to_constants(session, stubs, ["out"])
        with pytest.raises(ConverterError, match="UnidirectionalSequenceLstm: the fused operator gives no final state"):
            tf.lite.TFLiteConverter(frozen, [x], [out]).convert()


@pytest.mark.parametrize("axis", [0, 1])
def test_unrolled_steps_are_not_taken_apart(axis):
    """The steps that `tf.unstack` gives an unrolled cell, and that `tf.stack` joins, stay one tensor."""
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(1)
        x = tf.placeholder(tf.float32, [4, 2, 2], name="x")
        steps, _ = tf.nn.static_rnn(NN.TFLiteLSTMCell(3), tf.unstack(x, axis=axis), dtype=tf.float32)
        out = tf.stack(steps, axis=axis)
        session.run(tf.global_variables_initializer())
        content = tf.lite.TFLiteConverter.from_session(session, [x], [out]).convert()
        expected = session.run(out, {x: X})
    moves = {"TRANSPOSE": 2} if axis else {}
    assert read_model(content).operator_counts() == {"UNIDIRECTIONAL_SEQUENCE_LSTM": 1, **moves}
    np.testing.assert_allclose(_run(content), expected, atol=1e-6)


def test_unrolled_cells_without_a_fused_operator():
    """Cells that have no fused operator are converted step by step, and so is what they read."""
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(1)
        x = tf.placeholder(tf.float32, X.shape, name="x")
        cell = NN.TfLiteRNNCell(3, activation="sigmoid")
        out = tf.stack(tf.nn.static_rnn(cell, tf.unstack(2.0 * x), dtype=tf.float32)[0])
        session.run(tf.global_variables_initializer())
        content = tf.lite.TFLiteConverter.from_session(session, [x], [out]).convert()
        expected = session.run(out, {x: X})
    assert read_model(content).operator_counts()["LOGISTIC"] == 4
    np.testing.assert_allclose(_run(content), expected, atol=1e-6)


def test_other_hints_become_custom_ops_where_these_are_allowed():
    """A hinted function that TFLite does not have is a custom op with its attributes, or what the graph computes in its place."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [2, 2], name="x")
        hint = tf.lite.OpHint("Cool", scale=2.5)
        wrapped = hint.add_input(x)
        out = hint.add_output(tf.sigmoid(wrapped) * 2.5) + 1.0
        converter = tf.lite.TFLiteConverter.from_session(session, [x], [out])
        assert read_model(converter.convert()).operator_counts() == {"LOGISTIC": 1, "MUL": 1, "ADD": 1}
        converter.allow_custom_ops = True
        model = read_model(converter.convert())
    custom = model.main.operators[0]
    assert custom.custom_code == "Cool" and flexbuffers.Loads(custom.custom_options) == {"scale": 2.5}


def _two_layers(x):
    return _outputs(tf.nn.rnn_cell.MultiRNNCell([NN.TFLiteLSTMCell(6, name="a"), NN.TFLiteLSTMCell(4, name="b")]), x)


@pytest.mark.parametrize("build", [_two_layers, _everything, _unrolled], ids=["layers", "everything", "unrolled"])
def test_fused_cells_in_integers(build):
    """With integer ops only, a fused LSTM has 8 bits, 16 for its cell, and stays near the floating point result; samples are separate sequences."""
    random = np.random.RandomState(1)
    samples = [random.uniform(-1, 1, X.shape).astype(np.float32) for _ in range(12)]
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(1)
        x = tf.placeholder(tf.float32, X.shape, name="x")
        out = build(x)
        session.run(tf.global_variables_initializer())
        converter = tf.lite.TFLiteConverter.from_session(session, [x], [out])
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.target_spec.supported_ops = {tf.lite.OpsSet.TFLITE_BUILTINS_INT8}
        converter.representative_dataset = tf.lite.RepresentativeDataset(lambda: ([each] for each in samples))
        content = converter.convert()
        expected = [session.run(out, {x: each}) for each in samples]
    fused = [each for each in read_model(content).main.operators if each.code == "UNIDIRECTIONAL_SEQUENCE_LSTM"]
    states = [each.type for operator in fused for each in operator.inputs if each is not None and each.is_variable]
    assert fused and states == ["INT8", "INT16"] * len(fused)
    interpreter = tf.lite.Interpreter(model_content=content)
    interpreter.allocate_tensors()
    for sample, wanted in zip(samples, expected, strict=True):
        interpreter.reset_all_variables()
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], sample)
        interpreter.invoke()
        found = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
        assert np.abs(found - wanted).mean() < 0.06 * max(np.abs(each).max() for each in expected)
