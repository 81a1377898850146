"""Frozen graphs with nodes of ops that nobody registers: detection models end with TFLite_Detection_PostProcess."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from flatbuffers import flexbuffers

import stoker.compat.v1 as tf
from stoker._src.lite.flatbuffer import read_model
from stoker._src.lite.verification.flexible import options_problem
from tests.lite.running import run_model

NAME = "TFLite_Detection_PostProcess"
OUTPUTS = [NAME, f"{NAME}:1", f"{NAME}:2", f"{NAME}:3"]
RANDOM = np.random.RandomState(0)
IMAGE = RANDOM.uniform(-1, 1, [1, 4, 4, 3]).astype(np.float32)
# Two anchors of the same place and one elsewhere: y, x, height, width of the centre.
ANCHORS = np.array([[0.25, 0.25, 0.5, 0.5], [0.25, 0.25, 0.5, 0.5], [0.75, 0.75, 0.5, 0.5]], np.float32)


def _frozen(path: Any, fake: bool) -> None:
    """A graph whose boxes are the anchors, and whose scores are a product of the image."""
    graph = tf.Graph()
    with graph.as_default():
        x = tf.placeholder(tf.float32, IMAGE.shape, name="image")

        def trained(value: Any, low: float, high: float) -> Any:
            return tf.quantization.fake_quant_with_min_max_args(value, low, high) if fake else value

        weights = np.zeros([48, 18], np.float32)
        weights[:, [13, 15]] = 0.02
        flat = tf.reshape(trained(x, -1, 1), [1, 48])
        both = trained(tf.matmul(flat, trained(tf.constant(weights), -1, 1)), -1, 1)
        tf.reshape(both[:, :12], [1, 3, 4], name="boxes")
        offset = tf.constant(np.array([[[0, 2], [0, 1], [0, 0.5]]], np.float32))
        tf.sigmoid(trained(tf.reshape(both[:, 12:], [1, 3, 2]) + offset, -4, 4), name="scores")
        tf.constant(ANCHORS, name="anchors")
    graph_def = graph.as_graph_def()
    node = graph_def.node.add(op=NAME, name=NAME, input=["boxes", "scores", "anchors"])
    for key in ("_output_quantized", "_support_output_type_float_in_quantized_op"):
        node.attr[key].b = True
    node.attr["use_regular_nms"].b = False
    node.attr["_output_types"].list.type.extend([1] * 4)
    for key, number in (("max_detections", 2), ("max_classes_per_detection", 1), ("num_classes", 1)):
        node.attr[key].i = number
    for key, value in (("nms_score_threshold", 0.1), ("nms_iou_threshold", 0.5), ("y_scale", 10), ("x_scale", 10)):
        node.attr[key].f = value
    node.attr["h_scale"].f = node.attr["w_scale"].f = 5
    path.write_bytes(graph_def.SerializeToString())


@pytest.mark.parametrize("fake", [False, True], ids=["float", "uint8"])
def test_detection_models_run_with_their_last_op(tmp_path, fake):
    """The op's attributes become the options of a custom operator, which LiteRT has: it returns boxes, classes, scores and their number."""
    path = tmp_path / "graph.pb"
    _frozen(path, fake)
    converter = tf.lite.TFLiteConverter.from_frozen_graph(path, ["image"], OUTPUTS)
    converter.allow_custom_ops = True
    given = IMAGE
    if fake:
        converter.inference_type = tf.uint8
        converter.quantized_input_stats = {"image": (128, 127)}
        given = np.round(IMAGE * 127 + 128).astype(np.uint8)
    model = converter.convert()
    last = read_model(model).main.operators[-1]
    assert last.custom_code == NAME
    assert {each.type for each in last.inputs if each is not None} == {"UINT8" if fake else "FLOAT32"}
    boxes, classes, scores, number = run_model(model, [given])
    np.testing.assert_array_equal(number, [2])
    np.testing.assert_array_equal(classes, [[0, 0]])
    np.testing.assert_allclose(boxes, [[[0, 0, 0.5, 0.5], [0.5, 0.5, 1, 1]]], atol=0.02 if fake else 1e-6)
    added = 0.02 * IMAGE.sum()
    np.testing.assert_allclose(scores, [[1 / (1 + np.exp(-2 - added)), 1 / (1 + np.exp(-0.5))]], atol=0.02)


def test_an_unknown_op_is_reported_by_name(tmp_path):
    """Without allow_custom_ops the error names the op, and also with TensorFlow's kernels, which do not have it."""
    path = tmp_path / "graph.pb"
    _frozen(path, fake=False)
    for ops in ([tf.lite.OpsSet.TFLITE_BUILTINS], [tf.lite.OpsSet.TFLITE_BUILTINS, tf.lite.OpsSet.SELECT_TF_OPS]):
        converter = tf.lite.TFLiteConverter.from_frozen_graph(path, ["image"], OUTPUTS)
        converter.target_spec.supported_ops = ops
        with pytest.raises(Exception, match=f"TFLite has no builtin for {NAME}"):
            converter.convert()


def _options(**values: Any) -> bytes:
    builder = flexbuffers.Builder()
    with builder.Map():
        for key, value in values.items():
            builder.Key(key)
            builder.Add(value)
    return bytes(builder.Finish())


def test_options_of_custom_ops_are_checked():
    """Options are refused where a reference or a length leads outside of them, or a count is negative or huge: kernels follow them unchecked."""
    good = _options(a=True, b=5, c=2.5, d="text")
    assert options_problem(good) == ""
    assert "negative or too large" in options_problem(_options(a=-1))
    assert "negative or too large" in options_problem(_options(a=1 << 30))
    assert "not a map" in options_problem(bytes(flexbuffers.Dumps([1, 2])))
    assert options_problem(b"") == "they are too short"
    width = good[-1]
    for position in (len(good) - 1, len(good) - 2, len(good) - 2 - width):
        damaged = bytearray(good)
        damaged[position] ^= 0xFF
        assert options_problem(bytes(damaged)) != ""
    for position in range(len(good)):
        for pattern in (0xFF, 0x01, 0x80, 0x10):
            damaged = bytearray(good)
            damaged[position] ^= pattern
            assert isinstance(options_problem(bytes(damaged)), str)
