"""TensorProtos of constants, as TensorFlow writes them."""

import numpy as np
import pytest

import stoker.compat.v1 as tf


def _written(value, **keywords):
    with tf.Graph().as_default() as graph:
        tf.constant(value, **keywords)
        return graph.as_graph_def().node[0].attr["value"].tensor


COMPLEX = [
    (1 + 2j, {}, [], [1, 2]),
    ([1 + 2j, 3j], {}, [2], [1, 2, 0, 3]),
    (np.array([[1 + 2j, 3 - 1j]]), {}, [1, 2], [1, 2, 3, -1]),
    (np.ones(3, np.complex128), {}, [3], [1, 0, 1, 0, 1, 0]),
    (1 + 2j, {"shape": [3]}, [3], [1, 2]),
    ([1, 2j], {"shape": [2, 2]}, [2, 2], [1, 0, 0, 2]),
    (np.zeros([0], np.complex128), {}, [0], []),
]


@pytest.mark.parametrize(("value", "keywords", "shape", "parts"), COMPLEX)
@pytest.mark.parametrize(("dtype", "field"), [(tf.complex64, "scomplex_val"), (tf.complex128, "dcomplex_val")])
def test_complex_numbers_stand_in_their_field(value, keywords, shape, parts, dtype, field):
    """Complex tensors are pairs of numbers in the typed field, and where a shape asks for more, only those that were given."""
    for proto in (tf.make_tensor_proto(value, dtype, **keywords), _written(value, dtype=dtype, **keywords)):
        assert [size.size for size in proto.tensor_shape.dim] == shape
        assert (list(getattr(proto, field)), proto.tensor_content) == (parts, b"")
        assert tf.make_ndarray(proto).shape == tuple(shape)


@pytest.mark.parametrize(
    ("value", "shape", "field", "stated"),
    [
        (1.0, [3], "float_val", [1.0]),
        ([1.0, 2.0], [5], "float_val", [1.0, 2.0]),
        (2, [2, 2], "int_val", [2]),
        ("a", [2], "string_val", [b"a"]),
    ],
)
def test_what_fills_a_shape_is_written_once(value, shape, field, stated):
    """A constant whose last element fills its shape is written with the elements that were given."""
    proto = _written(value, shape=shape)
    assert (list(getattr(proto, field)), proto.tensor_content) == (stated, b"")
    assert proto == tf.make_tensor_proto(value, shape=shape)
    with tf.Graph().as_default(), tf.Session() as session:
        np.testing.assert_array_equal(session.run(tf.constant(value, shape=shape)), tf.make_ndarray(proto))


def test_a_changed_constant_is_written_whole():
    """The value that `_set_attr` puts in the place of a filled one is written as it is."""
    with tf.Graph().as_default() as graph:
        op = tf.constant(1.0, shape=[3]).op
        value = tf.AttrValue(tensor=tf.make_tensor_proto([1.0, 2.0, 3.0]))
        op._set_attr("value", value)
        assert graph.as_graph_def().node[0].attr["value"] == value
