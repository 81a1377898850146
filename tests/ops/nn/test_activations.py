"""Activations, biases and their gradients against NumPy."""

from math import erf

import numpy as np
import pytest

import stoker as tf2
import stoker.compat.v1 as tf
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.graph import context
from tests.ops.samples import Sample, check_sample, f32, f64, i32, i64, samples
from tests.running import run

SCALE, SCALE_ALPHA = 1.0507009873554805, 1.7580993408473766


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


SAMPLES = [
    Sample("Relu", [f64(3, 4)], reference=lambda x: np.maximum(x, 0)),
    Sample("Relu", [f32(0, 4)], reference=lambda x: np.maximum(x, 0)),
    Sample("Relu", [f32()], reference=lambda x: np.maximum(x, 0)),
    Sample("Relu", [i64(4)], reference=lambda x: np.maximum(x, 0), gradient=False),
    *(
        Sample("Relu", [i32(4, low=0).astype(kind)], reference=lambda x: x, gradient=False)
        for kind in ("u1", "u2", "u4", "u8")
    ),
    Sample("Relu6", [4 * f64(3, 4)], reference=lambda x: np.clip(x, 0, 6)),
    *(
        Sample("Relu6", [np.array([0, 3, 200]).astype(kind)], reference=lambda x: np.minimum(x, 6), gradient=False)
        for kind in ("u1", "u2", "u4", "u8")
    ),
    Sample("Relu6", [np.array([2**64 - 1], "u8")], reference=lambda x: np.array([6], "u8"), gradient=False),
    Sample("ReluGrad", [f64(5), f64(5)], reference=lambda g, x: g * (x > 0), gradient=(0,)),
    Sample(
        "ReluGrad",
        [i32(5).astype("u4"), i32(5, low=0).astype("u4")],
        reference=lambda g, x: g * (x > 0),
        gradient=False,
    ),
    Sample("Relu6Grad", [f64(5), 4 * f64(5)], reference=lambda g, x: g * ((x > 0) & (x < 6)), gradient=(0,)),
    Sample("LeakyRelu", [f64(3, 4)], {"alpha": 0.3}, reference=lambda x: np.where(x > 0, x, 0.3 * x)),
    Sample("LeakyRelu", [f64(3, 4)], {"alpha": 2.0}, reference=lambda x: np.where(x > 0, x, 2 * x)),
    Sample(
        "LeakyReluGrad",
        [f64(5), f64(5)],
        {"alpha": 0.3},
        reference=lambda g, x: np.where(x > 0, g, 0.3 * g),
        gradient=(0,),
    ),
    Sample("Elu", [f64(3, 4)], reference=lambda x: np.where(x > 0, x, np.expm1(x))),
    Sample("EluGrad", [f64(5), f64(5)], reference=lambda g, y: np.where(y < 0, g * (y + 1), g)),
    Sample("Selu", [f64(3, 4)], reference=lambda x: np.where(x > 0, SCALE * x, SCALE_ALPHA * np.expm1(x))),
    Sample("SeluGrad", [f64(5), f64(5)], reference=lambda g, y: np.where(y < 0, g * (y + SCALE_ALPHA), g * SCALE)),
    Sample("Softplus", [40 * f64(3, 4)], reference=lambda x: np.logaddexp(x, 0)),
    Sample("SoftplusGrad", [f64(5), f64(5)], reference=lambda g, x: g * sigmoid(x)),
    Sample("Softsign", [f64(3, 4)], reference=lambda x: x / (1 + abs(x))),
    Sample("SoftsignGrad", [f64(5), f64(5)], reference=lambda g, x: g / (1 + abs(x)) ** 2),
    Sample("BiasAdd", [f64(2, 3, 4), f64(4)], reference=np.add),
    Sample("BiasAdd", [f64(2, 3, 4, 2), f64(3)], {"data_format": "NCHW"}, reference=lambda x, b: x + b[:, None, None]),
    Sample("BiasAdd", [f64(2, 3), f64(3)], {"data_format": "NCHW"}, reference=np.add),
    Sample("BiasAdd", [i32(2, 3).astype("u2"), i32(3).astype("u2")], reference=np.add, gradient=False),
    Sample("BiasAdd", [f32(2, 3), f32(4)], raises=(InvalidArgumentError, "3.*4")),
    Sample("BiasAddV1", [f64(2, 3), f64(3)], reference=np.add),
    Sample("BiasAddGrad", [f64(2, 3, 4)], reference=lambda g: g.sum((0, 1))),
    Sample("BiasAddGrad", [f64(2, 3, 4, 2)], {"data_format": "NCHW"}, reference=lambda g: g.sum((0, 2, 3))),
    Sample("L2Loss", [f64(2, 3)], reference=lambda x: (x**2).sum() / 2),
    Sample("L2Loss", [f64(0)], reference=lambda x: np.float64(0)),
]


@samples(SAMPLES)
def test_sample(sample: Sample) -> None:
    """The op does what its reference does, in every mode; the gradients of the gradient ops are right too."""
    check_sample(sample)


def test_crelu_doubles_the_channels() -> None:
    """crelu puts relu(-x) behind relu(x) along the axis, under TensorFlow's op names."""
    x = f32(2, 3)
    y = tf.nn.crelu(tf.constant(x))
    assert y.op.name == "CRelu/Relu"
    np.testing.assert_allclose(run(y), np.concatenate([np.maximum(x, 0), np.maximum(-x, 0)], 1))


def test_leaky_relu_of_integers() -> None:
    """Integers are taken as float32."""
    y = tf.nn.leaky_relu(tf.constant([-10, 5]))
    assert y.dtype == tf.float32
    np.testing.assert_allclose(run(y), [-2, 5])


def test_swish_and_gelu() -> None:
    """swish is x * sigmoid(beta x); gelu x * Phi(x), or its tanh approximation."""
    x = f64(7)
    np.testing.assert_allclose(run(tf.nn.swish(tf.constant(x), beta=2.0)), x * sigmoid(2 * x), rtol=1e-6)
    expected = [v * 0.5 * (1 + erf(v / 2**0.5)) for v in x]
    np.testing.assert_allclose(run(tf2.nn.gelu(tf.constant(x))), expected)
    np.testing.assert_allclose(run(tf2.nn.gelu(tf.constant(x), approximate=True)), expected, atol=1e-3)


def test_bias_add_refuses_odd_layouts() -> None:
    """A data format must start with N and end in C, or start with NC."""
    with pytest.raises(ValueError, match="data_format"):
        tf.nn.bias_add(f32(2, 3), f32(3), data_format="HWNC")


def test_xw_plus_b_and_relu_layer() -> None:
    """Both are named after their scope; relu_layer is relu of xw_plus_b."""
    x, w, b = f32(2, 3), f32(3, 4), f32(4)
    y = tf.nn.xw_plus_b(x, w, b)
    z = tf.nn.relu_layer(x, w, b)
    assert (y.op.name, z.op.name) == ("xw_plus_b", "relu_layer")
    np.testing.assert_allclose(run(y), x @ w + b, rtol=1e-5)
    np.testing.assert_allclose(run(z), np.maximum(x @ w + b, 0), rtol=1e-5)


def test_zero_fraction() -> None:
    """The share of zeros as float32; NaN when there are no elements."""
    assert run(tf.nn.zero_fraction(tf.constant([0, 1, 0, 4]))) == np.float32(0.5)
    assert np.isnan(run(tf.nn.zero_fraction(tf.constant([], tf.float32))))


@pytest.mark.parametrize("shape, biases", [((2, 1), 3), ((2, 3), 1), ((2, 3, 1), 4)])
@pytest.mark.parametrize("data_format", ["N..C", "NC.."])
def test_a_bias_of_another_size_is_an_error(shape, biases, data_format):
    """A single channel or a single bias is not repeated, also where only feeds tell the sizes, fused or not, and in eager mode."""
    value = np.ones(shape if data_format == "N..C" else (shape[0], *shape[:0:-1]), np.float32)
    bias = np.ones(biases, np.float32)
    with tf.Graph().as_default(), tf.Session() as session:
        x, b = tf.placeholder(tf.float32, [None] * len(shape)), tf.placeholder(tf.float32, [None])
        y = tf.nn.bias_add(x, b, data_format=data_format)
        for fetch in (y, tf.nn.relu(y) * 2.0):
            for _ in range(3):
                with pytest.raises(InvalidArgumentError, match="BiasAdd"):
                    session.run(fetch, {x: value, b: bias})
    with context.enter_eager(), pytest.raises(InvalidArgumentError, match="BiasAdd"):
        tf.nn.bias_add(value, bias, data_format=data_format)


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_gradients_of_relu_at_the_edges(dtype, fused):
    """The gradient of Relu is a product with 0 or 1, as in TensorFlow: what is not finite stays so, and a NaN feature counts as 0."""
    features = np.array([np.nan, -1.0, -1.0, -0.0, 0.0, np.inf, -np.inf, 2.0, 3.0], dtype)
    gradients = np.array([2.0, np.inf, 4.0, np.nan, 5.0, 6.0, 7.0, np.nan, 8.0], dtype)
    with tf.Graph().as_default(), tf.Session() as session:
        x, g = tf.placeholder(dtype, features.shape), tf.placeholder(dtype, features.shape)
        y = tf.nn.relu(x * 1.0 if fused else x)
        found = session.run(tf.gradients(y, x, g * 1.0 if fused else g)[0], {x: features, g: gradients})
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(found, gradients * (features > 0))
