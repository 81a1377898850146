"""Public functions called as programs call them: node names, dtypes of plain values and arrays, errors when building."""

import numpy as np
import pytest

import stoker as tf2
import stoker.compat.v1 as tf

SINGLE, WHOLE = np.float32([1.5, 2.5]), np.int32([1, 2])


@pytest.mark.parametrize("function", [tf.add, tf.subtract, tf.multiply, tf.maximum, tf.truediv])
def test_arrays_take_the_dtype_of_the_first_operand(function):
    """An array after an array becomes one of its dtype; a Python number before an array sets the dtype too."""
    with tf.Graph().as_default():
        assert function(SINGLE, WHOLE).dtype == tf.float32
        assert function(SINGLE, np.float64([1, 2])).dtype == tf.float32
        whole = tf.float64 if function is tf.truediv else tf.int32
        assert function(WHOLE, SINGLE).dtype == whole
        assert function(1, SINGLE).dtype == whole
        with pytest.raises(TypeError):
            function(tf.constant(SINGLE), tf.constant(WHOLE))


def test_arrays_keep_a_dtype_that_the_op_takes():
    """The default of a type attribute is for values that have no dtype of their own."""
    with tf.Graph().as_default():
        assert tf.signal.fft(np.complex128([1, 2])).dtype == tf.complex128
        assert tf.raw_ops.FFT(input=[1j, 2]).dtype == tf.complex128
        assert tf.raw_ops.FFT(input=[1.0, 2.0]).dtype == tf.complex64
        assert tf.math.nextafter(np.float64([1]), [2.0]).dtype == tf.float64
        assert tf.math.nextafter([1.0], [2.0]).dtype == tf.float32


def test_scalar_mul():
    """Scalars take the dtype of an array; larger ranks are refused with their shape."""
    with tf.Graph().as_default(), tf.Session() as session:
        product = tf.scalar_mul(2, SINGLE)
        assert product.name == "Mul:0" and tf2.math.scalar_mul(2, SINGLE).name == "scalar_mul:0"
        np.testing.assert_array_equal(session.run(product), [3, 5])
        with pytest.raises(ValueError, match=r"0-D value. Received shape \(2,\)"):
            tf.scalar_mul(SINGLE, SINGLE)
        with pytest.raises(TypeError):
            tf.scalar_mul(2.5, WHOLE)


def test_divide_no_nan_of_integers():
    """Integers are divided as floating point numbers, as truediv does."""
    with tf.Graph().as_default(), tf.Session() as session:
        quotient = tf.math.divide_no_nan(WHOLE, np.int32([0, 4]))
        assert quotient.dtype == tf.float64
        np.testing.assert_array_equal(session.run(quotient), [0, 0.5])
        assert tf.math.divide_no_nan(np.int8([1]), np.int8([2])).dtype == tf.float32


def test_sums_want_lists():
    """A tensor of a graph is not a list of tensors, nor is a number."""
    with tf.Graph().as_default():
        with pytest.raises(TypeError):
            tf.add_n(tf.constant([1.0, 2.0]))
        with pytest.raises(TypeError):
            tf.add_n(3.0)
        with pytest.raises(ValueError, match="list"):
            tf.accumulate_n(SINGLE)


def test_parts_of_what_has_none():
    """The real part of strings and booleans is a TypeError."""
    with tf.Graph().as_default():
        for value in (["a"], [True]):
            with pytest.raises(TypeError, match="numeric"):
                tf.real(value)


@pytest.mark.parametrize(
    ("build", "name"),
    [
        (lambda x: tf.linalg.matvec(x, [1.0, 2, 3]), "MatVec/Squeeze"),
        (tf.signal.fftshift, "fftshift"),
        (tf.signal.ifftshift, "ifftshift"),
        (lambda x: tf.linalg.normalize(x)[0], "normalize/truediv"),
        (tf.angle, "Angle/Select"),
        (lambda x: tf.nn.embedding_lookup(x, [0]), "embedding_lookup/Identity"),
        (lambda x: tf.nn.embedding_lookup(x, [0], max_norm=1.0), "embedding_lookup/Identity"),
        (lambda x: tf.nn.embedding_lookup([x, x], [0]), "embedding_lookup/Reshape_1"),
        (lambda x: tf.nn.leaky_relu(x, None), "LeakyRelu"),
    ],
)
def test_node_names(build, name):
    """Results have the names that TensorFlow gives them."""
    with tf.Graph().as_default():
        assert build(tf.placeholder(tf.float32, [None, 3], name="x")).op.name == name


def test_norm_of_complex_numbers():
    """The Euclidean norm of complex numbers is complex, other norms are real."""
    with tf.Graph().as_default(), tf.Session() as session:
        value = np.complex64([3 + 4j, 0])
        norm = tf.norm(value)
        assert norm.dtype == tf.complex64 and tf.norm(value, ord=1).dtype == tf.float32
        np.testing.assert_allclose(session.run(norm), 5)


def test_rank_and_inverse_of_matrices_of_unknown_sizes():
    """Tolerances come from the real sizes where the static ones are unknown."""
    matrices = np.random.RandomState(0).randn(2, 3, 4).astype(np.float32)
    matrices[1, 2] = matrices[1, 0]
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, None, None])
        rank, inverse = session.run([tf.linalg.matrix_rank(x), tf.linalg.pinv(x)], {x: matrices})
    np.testing.assert_array_equal(rank, np.linalg.matrix_rank(matrices))
    np.testing.assert_allclose(inverse, np.linalg.pinv(matrices), atol=1e-5)
