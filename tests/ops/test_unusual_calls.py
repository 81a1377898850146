"""Good calls of single functions that few programs make: values, names, partial shapes and kinds of gradients are TensorFlow 2.21's."""

import math

import numpy as np
import pytest

import stoker as tf2
import stoker.compat.v1 as tf
from stoker._src.ops.math.gamma_derivative import gamma_derivative
from stoker._src.ops.math.special_kernels import igamma_grad_a

torch = pytest.importorskip("torch")


def run(fetches, feeds=None):
    with tf.Session() as session:
        return session.run(fetches, feeds)


@pytest.mark.parametrize(
    ("alpha", "sample", "expected"),
    [
        (0.5, 40.0, 5.608062),
        (3.0, 40.0, 2.934762),
        (40.0, 40.0, 1.004181),
        (1e3, 1.01e3, 1.005150930),
        (1e6, 1.01e6, 1.004983584),
        (3.0, np.inf, 0.0),
        (np.inf, 3.0, 0.0),
        (0.0, 3.0, np.nan),
        (3.0, 0.0, 0.0),
    ],
)
def test_gamma_numbers_change_with_their_parameter(alpha, sample, expected):
    """Also in the upper tail, where the series of the distribution function cancels, and for large parameters."""
    found = gamma_derivative(*torch.tensor([[alpha], [sample]], dtype=torch.float64))
    np.testing.assert_allclose(found.numpy(), [expected], rtol=1e-5)


@pytest.mark.parametrize(
    ("a", "x", "expected"),
    [(10.0, 10.0, -0.127214823), (1e3, 1.01e3, -0.01194573134), (5e3, 5e3, -0.005641990), (1e5, 1e5, -0.001261566)],
)
def test_incomplete_gamma_function_changes_with_its_parameter(a, x, expected):
    """The derivative of P(a, x) by a agrees with differences of SciPy's function."""
    found = igamma_grad_a(*torch.tensor([[a], [x]], dtype=torch.float64))
    np.testing.assert_allclose(found.numpy(), [expected], rtol=1e-5)


def test_special_functions_at_the_ends_of_single_precision(eager):
    """Ei is infinite where exp is, the dilogarithm NaN where 1 / x counts as zero; complex infinities keep their zeros."""
    ei = tf2.math.special.expint(tf2.constant([88.7, 88.8, np.inf])).numpy()
    assert np.isfinite(ei[0]) and ei[1] == np.inf and np.isnan(ei[2])
    dilogarithm = tf2.math.special.spence(tf2.constant([8e37, 9e37])).numpy()
    assert np.isfinite(dilogarithm[0]) and np.isnan(dilogarithm[1])
    sign = tf2.raw_ops.Sign(x=tf2.constant([complex(np.inf, 2), 0j, 3 + 4j], tf2.complex64)).numpy()
    assert np.isnan(sign[0].real) and sign[0].imag == 0
    np.testing.assert_allclose(sign[1:], [0, 0.6 + 0.8j], rtol=1e-6)


def test_constants_of_activations_are_rounded_as_tensorflows(eager):
    """gelu's are of single precision for float64 too, the slope of a leaky unit of 16 bits for such tensors."""
    found = tf2.nn.gelu(tf2.constant([-3.0, 0.5], tf2.float64)).numpy()
    root = float(np.float32(np.sqrt(0.5)))
    np.testing.assert_allclose(found, [0.5 * x * math.erfc(-x * root) for x in (-3.0, 0.5)], rtol=1e-13)
    assert tf2.nn.leaky_relu(tf2.constant([-0.842], tf2.float16), 0.3).numpy().tolist() == [-0.252685546875]
    grad = tf2.raw_ops.Relu6Grad(gradients=tf2.constant([np.inf, 2.0]), features=tf2.constant([-1.0, 1.0])).numpy()
    assert np.isnan(grad[0]) and grad[1] == 2


def test_transforms_of_nothing_have_a_shape(eager):
    """No rows of some length give no rows of the transform's."""
    zeros = tf2.zeros([0, 3, 4], tf2.complex64)
    assert tf2.raw_ops.FFTND(input=zeros, fft_length=[5, 4], axes=[1, 2]).shape == (0, 5, 4)


def test_ragged_conditions_and_texts(eager):
    """where gives the coordinates of what is true in rows; join goes element by element."""
    ragged = tf2.ragged.constant([[1, -1], [], [2]])
    assert tf2.where(ragged > 0).numpy().tolist() == [[0, 0], [2, 0]]
    assert tf2.where(ragged > 0, ragged, 0).to_list() == [[1, 0], [], [2]]
    words = tf2.ragged.constant([["a"], ["b", "c"]])
    assert tf2.strings.join([words, "x", words], "-").to_list() == [[b"a-x-a"], [b"b-x-b", b"c-x-c"]]


def test_linspace_of_integers(eager):
    """Whole ends give float64."""
    found = tf2.linspace(1, 5, 3)
    assert found.dtype == tf2.float64 and found.numpy().tolist() == [1, 3, 5]


def test_old_places_of_extremes():
    """arg_max and arg_min of 1.x take the dtype of the result third."""
    x = tf.constant([[3.0, 1.0], [2.0, 5.0]])
    least = tf.arg_min(x, 0, tf.int32, "least")
    assert least.dtype == tf.int32 and least.name == "least:0"
    assert [each.tolist() for each in run([least, tf.arg_max(x, 1)])] == [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    "make",
    [
        lambda x: tf.boolean_mask(x, [True, False, True]),
        lambda x: tf.repeat(x, [1, 0, 2], axis=0),
        lambda x: tf.signal.frame(x, 2, 1),
    ],
    ids=["boolean_mask", "repeat", "frame"],
)
def test_selections_have_dense_gradients(make):
    """They are tensors, not slices, so that programs can compute with them."""
    x = tf.placeholder(tf.float32, [3])
    (gradient,) = tf.gradients(make(x), x)
    assert isinstance(gradient, tf.Tensor)
    assert run(gradient, {x: [1.0, 2.0, 3.0]}).shape == (3,)


def test_gradients_of_sparse_sums_and_products_of_unknown_rank():
    """Neither the rank of the sparse tensor nor that of the dense one need be known."""
    values, dense = tf.placeholder(tf.float32, None), tf.placeholder(tf.float32, None)
    indices, shape = tf.placeholder(tf.int64, None), tf.placeholder(tf.int64, None)
    sparse = tf.SparseTensor(indices, values, shape)
    feeds = {indices: [[0, 1], [1, 0]], values: [2.0, 3.0], shape: [2, 2], dense: [[5.0], [7.0]]}
    total = tf.gradients(tf.sparse.reduce_sum(sparse, axis=[1]) * [10.0, 20.0], values)
    product = tf.gradients((sparse * dense).values, [values, dense])
    found = run([*total, *product], feeds)
    assert [each.tolist() for each in found] == [[10, 20], [5, 7], [[2], [3]]]


def test_names_of_results():
    """Results of functions that are made of several ops have TensorFlow's names."""
    x, numbers = tf.placeholder(tf.float32, [2, 3]), tf.placeholder(tf.int32, [4])
    sparse = tf.SparseTensor([[0, 0]], [1.0], [2, 2])
    made = {
        "concat/concat": tf.concat([x], 0),
        "and/BitwiseAnd": numbers & 3,
        "in_it/in_it": tf.nn.in_top_k(x, [0, 1], 1, name="in_it"),
        "sort/sub_1": tf.sort(numbers),
        "sort_1/Neg_1": tf.sort(x, axis=0),
        "Rank": tf.rank(sparse),
        "Size": tf.size(sparse),
        "Shape/Cast": tf.shape(sparse),
        "AvgPool2D": tf2.nn.avg_pool2d(tf.zeros([1, 4, 4, 1]), 2, 2, "SAME"),
        "Gelu/mul_3": tf2.nn.gelu(x, True),
        "random_uniform/RandomUniform": tf.random_uniform([2]),
        "random_uniform_1": tf.random_uniform([2], 0, 2),
    }
    assert [each.op.name for each in made.values()] == list(made)


def test_partial_shapes():
    """What is known of a shape stays known."""
    x, two = tf.placeholder(tf.float32, [2, 1, 5]), tf.placeholder(tf.int64, [3])
    assert tf.broadcast_to(x, two).shape.as_list() == [2, None, 5]
    assert tf.unravel_index(tf.placeholder(tf.int32, [4]), tf.placeholder(tf.int32, [2])).shape.as_list() == [2, 4]
    assert tf.math.invert_permutation(tf.placeholder(tf.int32)).shape.as_list() == [None]
    blocks, margins = tf.placeholder(tf.int32, [1]), tf.placeholder(tf.int32, [1, 2])
    assert tf.space_to_batch_nd(x, blocks, margins).shape.as_list() == [None, None, 5]
