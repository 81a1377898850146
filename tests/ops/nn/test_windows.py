"""Properties of windows of every size, stride, dilation and padding, against loops."""

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import stoker.compat.v1 as tf
from stoker._src.graph import context
from stoker._src.graph.definition import find_definition
from tests.ops.nn.references import convolution, depthwise, output_sizes, paddings, pooling, to_front

pairs = st.tuples(st.integers(1, 3), st.integers(1, 3))
sizes = st.tuples(st.integers(1, 7), st.integers(1, 7))
words = st.sampled_from(["SAME", "VALID"])


def call(op, inputs, **attrs):
    definition = find_definition(op)
    assert definition is not None
    with context.enter_eager():
        return definition(*(tf.constant(x) if isinstance(x, np.ndarray) else x for x in inputs), **attrs).numpy()


def fits(size, kernel, strides, rates, padding):
    pads = paddings(size, kernel, strides, rates, padding)
    return all(n >= 1 for n in output_sizes(size, kernel, strides, rates, pads))


def across(values, first):
    return [1, 1, *values] if first else [1, *values, 1]


@settings(max_examples=60, deadline=None)
@given(
    sizes,
    pairs,
    pairs,
    pairs,
    words,
    st.booleans(),
    st.sampled_from(["Conv2D", "DepthwiseConv2dNative"]),
    st.integers(0, 99),
)
def test_convolutions_and_their_transposes(size, kernel, strides, rates, padding, first, op, seed):
    """Values equal the loops'; both gradients are the transposes: <y, g> = <x, to_input(g)> = <w, to_filter(g)>."""
    assume(fits(size, kernel, strides, rates, padding))
    random = np.random.RandomState(seed)
    x, w = random.randn(2, *size, 2), random.randn(*kernel, 2, 3)
    reference = convolution if op == "Conv2D" else depthwise
    expected = reference(x, w, strides, padding, rates)
    g = random.randn(*expected.shape)
    attrs = {
        "strides": across(strides, first),
        "dilations": across(rates, first),
        "padding": padding,
        "data_format": "NCHW" if first else "NHWC",
    }
    turned = [to_front(v).copy() if first else v for v in (x, expected, g)]
    np.testing.assert_allclose(call(op, [turned[0], w], **attrs), turned[1], atol=1e-9)
    to_input = call(f"{op}BackpropInput", [list(turned[0].shape), w, turned[2]], **attrs)
    to_filter = call(f"{op}BackpropFilter", [turned[0], list(w.shape), turned[2]], **attrs)
    inner = (expected * g).sum()
    np.testing.assert_allclose([(to_input * turned[0]).sum(), (to_filter * w).sum()], [inner, inner], atol=1e-9)


@settings(max_examples=60, deadline=None)
@given(sizes, st.tuples(st.integers(1, 5), st.integers(1, 5)), pairs, words, st.booleans(), st.integers(0, 99))
def test_pooling_and_its_gradients(size, kernel, strides, padding, first, seed):
    """Values equal the loops'; the average's gradient is its transpose, the maximum's goes to the maxima."""
    assume(fits(size, kernel, strides, [1, 1], padding))
    random = np.random.RandomState(seed)
    x = random.permutation(2 * size[0] * size[1] * 3).reshape(2, *size, 3).astype(np.float64)
    attrs = {
        "ksize": across(kernel, first),
        "strides": across(strides, first),
        "padding": padding,
        "data_format": "NCHW" if first else "NHWC",
    }
    turned = to_front(x).copy() if first else x
    highest = pooling(x, kernel, strides, padding, np.max)
    average = pooling(x, kernel, strides, padding, np.mean)
    g = random.randn(*highest.shape)
    turn = (lambda v: to_front(v).copy()) if first else (lambda v: v)
    y = call("MaxPool", [turned], **attrs)
    np.testing.assert_array_equal(y, turn(highest))
    np.testing.assert_allclose(call("AvgPool", [turned], **attrs), turn(average))
    back = call("AvgPoolGrad", [list(turned.shape), turn(g)], **attrs)
    np.testing.assert_allclose((back * turned).sum(), (average * g).sum(), atol=1e-8)
    to_max = call("MaxPoolGrad", [turned, y, turn(g)], **attrs)
    np.testing.assert_allclose((to_max * turned).sum(), (highest * g).sum(), atol=1e-8)
    np.testing.assert_allclose(to_max.sum(), g.sum(), atol=1e-9)
