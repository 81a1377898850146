"""Layers on quantized numbers. Expected numbers are TensorFlow 2.21's where no formula is given."""

import numpy as np
import pytest

import stoker.compat.v1 as tf

INTEGERS = {"quint8": tf.uint8, "qint8": tf.int8, "qint32": tf.int32}
RNG = np.random.RandomState(4)


def q(array, kind=tf.quint8):
    """Integers as quantized numbers."""
    return tf.bitcast(tf.constant(array), kind)


def run(outputs):
    """The values of an op's outputs, quantized ones as integers."""
    with tf.Session() as session:
        plain = [tf.bitcast(t, INTEGERS[t.dtype.name]) if t.dtype.is_quantized else t for t in outputs]
        values = session.run(plain)
        for tensor, value in zip(outputs, values):
            assert tensor.shape.is_compatible_with(value.shape)
        return values


def u8(*shape):
    return RNG.randint(0, 256, shape).astype(np.uint8)


@pytest.fixture(autouse=True)
def graph():
    """A graph and the same random numbers for each test."""
    RNG.seed(4)
    with tf.Graph().as_default():
        yield


def test_matmul():
    """Products of what stands above zero; the range makes one step the product of two."""
    a, b = u8(2, 3), u8(3, 4)
    out, low, high = run(tf.raw_ops.QuantizedMatMul(a=q(a), b=q(b), min_a=-1.0, max_a=2.0, min_b=0.0, max_b=3.0))
    np.testing.assert_array_equal(out, (a.astype(int) - 85) @ b.astype(int))
    assert (low, high) == (-297229.59375, 297229.59375)
    turned = run(
        tf.raw_ops.QuantizedMatMul(
            a=q(a.T.copy()),
            b=q(b.T.copy()),
            min_a=-1.0,
            max_a=2.0,
            min_b=0.0,
            max_b=3.0,
            transpose_a=True,
            transpose_b=True,
        )
    )
    np.testing.assert_array_equal(turned[0], out)
    with pytest.raises(ValueError, match="3 and 2"):
        tf.raw_ops.QuantizedMatMul(a=q(a), b=q(a), min_a=0.0, max_a=1.0, min_b=0.0, max_b=1.0)


def test_convolution():
    """Beyond the edges is zero, not the number 0; signed filters have no offset."""
    x, w = u8(1, 4, 5, 2), u8(3, 3, 2, 3)
    arguments = {"min_input": -1.0, "max_input": 2.0, "min_filter": -2.0, "max_filter": 3.0, "strides": [1, 1, 1, 1]}
    out, low, high = run(tf.nn.quantized_conv2d(q(x), q(w), padding="SAME", **arguments))
    plain = tf.nn.conv2d(tf.constant(x - 85.0), tf.constant(w - 102.0), [1, 1, 1, 1], "SAME")
    np.testing.assert_array_equal(out, run([plain])[0])
    assert (low, high) == (-495382.65625, 495382.65625)
    signed = w.astype(np.int8)
    out, _, high = run(tf.nn.quantized_conv2d(q(x), q(signed, tf.qint8), padding="VALID", **arguments))
    plain = tf.nn.conv2d(tf.constant(x - 85.0), tf.constant(signed.astype(float)), [1, 1, 1, 1], "VALID")
    np.testing.assert_array_equal(out, run([plain])[0])


def test_ranges():
    """What sums use of their range, and moved to fewer bits."""
    numbers = np.array([-98615, 0, 5, 98470], np.int32)
    low, high = run(tf.raw_ops.RequantizationRange(input=q(numbers, tf.qint32), input_min=-1000.0, input_max=1000.0))
    step = 2000 / (2**32 - 1)
    np.testing.assert_allclose([low, high], [numbers[0] * step, numbers[-1] * step], atol=step)
    down, *bounds = run(
        tf.raw_ops.QuantizeDownAndShrinkRange(
            input=q(numbers, tf.qint32), input_min=-1000.0, input_max=1000.0, out_type=tf.quint8
        )
    )
    assert down.tolist() == [0, 128, 128, 255] and bounds == [low, high]
    moved, *_ = run(
        tf.raw_ops.Requantize(
            input=q(numbers, tf.qint32), input_min=-1000.0, input_max=1000.0, requested_output_min=-0.02,
            requested_output_max=0.08, out_type=tf.quint8,
        )
    )  # fmt: skip
    assert moved.tolist() == [0, 51, 51, 168]
    for wrong in ((0.5, 1.0), (-1.0, -2.0)):
        bad = tf.raw_ops.Requantize(
            input=q(numbers, tf.qint32), input_min=-1.0, input_max=1.0, requested_output_min=wrong[0],
            requested_output_max=wrong[1], out_type=tf.quint8,
        )  # fmt: skip
        with pytest.raises(tf.errors.InvalidArgumentError, match="requested_output"):
            run(bad)


def test_activations():
    """Numbers below the one that stands for zero become it; ceilings are on the same scale."""
    x = np.array([0, 20, 26, 100, 179, 200, 255], np.uint8)
    relu, low, high = run(tf.raw_ops.QuantizedRelu(features=q(x), min_features=-1.0, max_features=9.0))
    assert relu.tolist() == [26, 26, 26, 100, 179, 200, 255] and (low, high) == (-1, 9)
    relu6, *_ = run(tf.raw_ops.QuantizedRelu6(features=q(x), min_features=-1.0, max_features=9.0))
    assert relu6.tolist() == [26, 26, 26, 100, 179, 179, 179]
    below, *_ = run(tf.nn.quantized_relu_x(q(x), 2.5, -1.0, 9.0))
    assert below.tolist() == [26, 26, 26, 90, 90, 90, 90]


def test_pooling():
    """The largest, and the mean without its fraction."""
    x = np.array([[1, 2, 7, 8], [3, 4, 5, 255]], np.uint8).reshape(1, 2, 4, 1)
    window = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
    assert run(tf.nn.quantized_max_pool(q(x), -1.0, 2.0, **window))[0].ravel().tolist() == [4, 255]
    assert run(tf.nn.quantized_avg_pool(q(x), -1.0, 2.0, **window))[0].ravel().tolist() == [2, 68]


def test_sums_and_products():
    """Sums are near what the operands stand for; products are exact."""
    x, y = u8(2, 4), u8(4)
    of_x, of_y = -1 + x * (3 / 255), y * (3 / 255)
    arguments = {"min_x": -1.0, "max_x": 2.0, "min_y": 0.0, "max_y": 3.0}
    total, low, high = run(tf.raw_ops.QuantizedAdd(x=q(x), y=q(y), **arguments))
    assert (low, high) == (-49152, 49152)
    np.testing.assert_allclose(total * (high / 2**31), of_x + of_y, atol=1e-4)
    bias, low, high = run(
        tf.raw_ops.QuantizedBiasAdd(
            input=q(x), bias=q(y), min_input=-1.0, max_input=2.0, min_bias=0.0, max_bias=3.0, out_type=tf.qint32
        )
    )
    assert (low, high) == (-393216, 393216)
    np.testing.assert_allclose(bias * (high / 2**31), of_x + of_y, atol=1e-3)
    product, low, high = run(tf.raw_ops.QuantizedMul(x=q(x), y=q(y), **arguments))
    np.testing.assert_array_equal(product, (x.astype(int) - 85) * y)
    wrong = tf.raw_ops.QuantizedBiasAdd(
        input=q(x), bias=q(u8(3)), min_input=-1.0, max_input=2.0, min_bias=0.0, max_bias=3.0, out_type=tf.qint32
    )
    with pytest.raises(tf.errors.InvalidArgumentError, match="biases"):
        run(wrong)


def test_forms():
    """Reshaping keeps the range; concatenating finds one for all."""
    x, y = u8(2, 3), u8(2, 2)
    out, low, high = run(tf.raw_ops.QuantizedReshape(tensor=q(x), shape=[3, -1], input_min=-1.0, input_max=2.0))
    np.testing.assert_array_equal(out, x.reshape(3, 2))
    out, low, high = run(tf.quantized_concat(1, [q(x), q(y)], [-1.0, -1.0], [2.0, 2.0]))
    np.testing.assert_array_equal(out, np.concatenate([x, y], 1))
    out, low, high = run(tf.quantized_concat(1, [q(x), q(y)], [-1.0, 0.0], [2.0, 5.0]))
    assert (low, high) == (-1, 5)
    floats = np.concatenate([-1 + x * (3 / 255), y * (5 / 255)], 1)
    np.testing.assert_allclose(-1 + out * (6 / 255), floats, atol=0.03)
