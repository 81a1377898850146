"""The converter's older names."""

from __future__ import annotations

import inspect
import logging

import numpy as np
import pytest

import stoker.compat.v1 as tf


@pytest.fixture
def graph():
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [1, 2], name="x")
        yield session, x, tf.identity(x * 2.0, name="y")


def _run(content: bytes, value: np.ndarray) -> np.ndarray:
    interpreter = tf.lite.Interpreter(model_content=content)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], value)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def test_class_methods_warn_and_forward(graph, tmp_path, caplog):
    """`TocoConverter` makes a TFLiteConverter and says what to use instead."""
    session, x, y = graph
    with caplog.at_level(logging.WARNING):
        converter = tf.lite.TocoConverter.from_session(session, [x], [y])
    assert isinstance(converter, tf.lite.TFLiteConverter)
    assert "Use `lite.TFLiteConverter.from_session` instead." in caplog.text
    assert _run(converter.convert(), np.array([[1, 2]], np.float32)).tolist() == [[2, 4]]
    path = tmp_path / "graph.pb"
    path.write_bytes(session.graph_def.SerializeToString())
    frozen = tf.lite.TocoConverter.from_frozen_graph(str(path), ["x"], ["y"])
    assert _run(frozen.convert(), np.array([[1, 2]], np.float32)).tolist() == [[2, 4]]
    for name in ("from_session", "from_frozen_graph", "from_saved_model"):
        older, newer = (inspect.signature(getattr(c, name)) for c in (tf.lite.TocoConverter, tf.lite.TFLiteConverter))
        assert list(older.parameters) == list(newer.parameters)


def test_the_function_warns_and_takes_settings(graph, caplog):
    """`toco_convert` takes the converter's settings by position or name."""
    session, x, y = graph
    with caplog.at_level(logging.WARNING):
        content = tf.lite.toco_convert(session.graph_def, [x], [y])
    assert "Use `lite.TFLiteConverter` instead." in caplog.text
    assert _run(content, np.array([[1, 2]], np.float32)).tolist() == [[2, 4]]
    picture = tf.lite.toco_convert(session.graph_def, [x], [y], output_format=tf.lite.constants.GRAPHVIZ_DOT)
    assert picture.startswith(b"digraph")
    content = tf.lite.toco_convert(
        session.graph_def, [x], [y], tf.float32, tf.uint8, quantized_input_stats=[(128.0, 64.0)]
    )
    assert _run(content, np.array([[128, 192]], np.uint8)).tolist() == [[0, 2]]


def test_settings_that_do_not_exist_are_errors(graph):
    """Unknown settings, settings given twice, and those that cannot be honoured are named."""
    session, x, y = graph
    for args, kwargs, error, message in [
        ((), {"inference": 1}, TypeError, "unexpected keyword argument 'inference'"),
        ((tf.float32,), {"inference_type": tf.float32}, TypeError, "multiple values for argument 'inference_type'"),
        ((), {"allow_nonexistent_arrays": True}, ValueError, "allow_nonexistent_arrays"),
        ((), {"input_shapes": [[3, 3]]}, ValueError, r"not \[3, 3\]"),
    ]:
        with pytest.raises(error, match=message):
            tf.lite.toco_convert(session.graph_def, [x], [y], *args, **kwargs)


def test_ops_that_the_converter_knows():
    """A list of named tuples with the names of ops, which are all that a graph of supported ops has: also constants, and loops and branches of 1.x."""
    found = tf.lite.experimental.get_potentially_supported_ops()
    names = {each.op for each in found}
    assert names >= {"Conv2D", "MatMul", "Softmax", "ResizeBilinear", "StridedSlice"} and "Svd" not in names
    assert names >= {"Const", "Enter", "Exit", "LoopCond", "Merge", "NextIteration", "Switch"}
    assert names >= {"UnidirectionalSequenceLstm", "UnidirectionalSequenceRnn"}  # what convert_op_hints_to_stubs makes
    assert repr(found[0]) == f"SupportedOp(op={found[0].op!r})" and len(names) == len(found) > 120
