"""Options for graphs that were trained with fake quantization. The expected scales are those that TensorFlow 1.15 wrote for the same graphs."""

from __future__ import annotations

import numpy as np
import pytest

import stoker.compat.v1 as tf
from stoker._src.lite.flatbuffer import read_model
from stoker._src.lite.model import Model, Tensor

fake_quant = tf.quantization.fake_quant_with_min_max_args


class _Graph:
    """Convolutions of one pixel with weights between -1 and 1."""

    def __init__(self) -> None:
        self.random = np.random.RandomState(0)
        self.x = tf.placeholder(tf.float32, [1, 4, 4, 2], name="x")
        self.first = fake_quant(self.x, -1, 1)

    def conv(self, x, channels, bias=True):
        shape = [1, 1, int(x.shape[-1]), channels]
        weights = fake_quant(tf.constant(self.random.uniform(-1, 1, shape).astype(np.float32)), -1, 1)
        y = tf.nn.conv2d(x, weights, 1, "SAME")
        return tf.nn.bias_add(y, tf.ones([channels])) if bias else y

    def converted(self, y, **options) -> Model:
        with tf.Session() as session:
            converter = tf.lite.TFLiteConverter.from_session(session, [self.x], [y])
        converter.inference_type = tf.uint8
        converter.quantized_input_stats = {"x": (128, 127)}
        for name, value in options.items():
            setattr(converter, name, value)
        return read_model(converter.convert())


def _numbers(tensor: Tensor | None) -> tuple[float, int]:
    assert tensor is not None and tensor.quantization is not None
    scale, zero = tensor.quantization.scale, tensor.quantization.zero_point
    assert scale is not None and zero is not None
    return round(float(scale[0]), 5), int(zero[0])


@pytest.mark.parametrize(
    ("joined", "inputs"), [(False, [(0.00784, 0), (0.03922, 128)]), (True, [(0.04706, 128), (0.04706, 128)])]
)
def test_ranges_of_a_concatenation(joined, inputs):
    """Each input keeps the range that it was trained with; with change_concat_input_ranges all have the one that holds all."""
    with tf.Graph().as_default():
        graph = _Graph()
        one = fake_quant(tf.nn.relu6(graph.conv(graph.first, 3)), 0, 2)
        other = fake_quant(graph.conv(graph.first, 3), -5, 5)
        both = fake_quant(tf.concat([one, other], 3), -6, 6)
        y = fake_quant(graph.conv(both, 2), -8, 8)
        model = graph.converted(y, change_concat_input_ranges=joined)
    (concat,) = [each for each in model.main.operators if each.code == "CONCATENATION"]
    assert [_numbers(each) for each in concat.inputs] == inputs
    assert _numbers(concat.outputs[0]) == (0.04706, 128)
    assert model.operator_counts() == {"CONV_2D": 3, "CONCATENATION": 1}


def test_fake_quantization_in_the_way_of_a_folding():
    """A range between a convolution and its batch normalization is an error; with reorder_across_fake_quant it gives way."""
    with tf.Graph().as_default():
        graph = _Graph()
        y = fake_quant(graph.conv(graph.first, 3, bias=False), -3, 3)
        y = y * np.array([0.5, 2, 1.5], np.float32) + np.array([0.1, 0.2, 0.3], np.float32)
        y = fake_quant(tf.nn.relu(y), 0, 4)
        with pytest.raises(ValueError, match="lacking min/max data"):
            graph.converted(y)
        model = graph.converted(y, reorder_across_fake_quant=True)
    (conv,) = model.main.operators
    assert _numbers(conv.inputs[1]) == (0.00455, 65)
    assert _numbers(conv.outputs[0]) == (0.01569, 0)


def test_a_moved_range_is_that_of_the_result():
    """Fake quantization that moves behind an activation, where no other follows, has the range that the activation leaves."""
    with tf.Graph().as_default():
        graph = _Graph()
        y = tf.nn.relu(fake_quant(graph.conv(graph.first, 3), -3, 3))
        apart = graph.converted(y)
        model = graph.converted(y, reorder_across_fake_quant=True)
    assert [each.code for each in apart.main.operators] == ["CONV_2D", "RELU"]
    (conv,) = model.main.operators
    assert _numbers(conv.outputs[0]) == (round(3 / 255, 5), 0)
