"""The order in which conversion functions are tried."""

import numpy as np
import pytest

import stoker.compat.v1 as tf

pytestmark = pytest.mark.usefixtures("eager")


def recorder(log, label, result=NotImplemented):
    def convert(value, dtype=None, name=None, as_ref=False):
        log.append(label)
        return result if result is NotImplemented else tf.constant(result)

    return convert


def test_lower_priorities_come_first():
    """Priority decides, then the order of registration; a function of a base class may come before one of the class."""

    class Base:
        pass

    class Derived(Base):
        pass

    log = []
    tf.register_tensor_conversion_function(Base, recorder(log, "first at 100"), 100)
    tf.register_tensor_conversion_function(Base, recorder(log, "second at 100"))
    tf.register_tensor_conversion_function(Derived, recorder(log, "derived at 150", 5), 150)
    tf.register_tensor_conversion_function((Base, Derived), recorder(log, "at 120"), 120)
    tf.register_tensor_conversion_function(Base, recorder(log, "at 0"), 0)
    assert int(tf.convert_to_tensor(Derived())) == 5
    assert log == ["at 0", "first at 100", "second at 100", "at 120", "derived at 150"]


@pytest.mark.parametrize("priority", [98, 99])
def test_programs_come_before_the_constants(priority):
    """What a program registers for a list of its own goes before the conversion of lists to constants."""

    class Rows(list):
        pass

    log = []
    tf.register_tensor_conversion_function(Rows, recorder(log, "rows", 7), priority)
    assert int(tf.convert_to_tensor(Rows([1, 2]))) == 7
    assert log == ["rows"]


def test_a_hint_that_fails_is_dropped():
    """A preferred dtype that the function refuses is not an error: it is asked again without."""

    class Half:
        pass

    def convert(value, dtype=None, name=None, as_ref=False):
        if dtype is tf.int32:
            raise TypeError("no whole number")
        return tf.constant(0.5)

    tf.register_tensor_conversion_function(Half, convert)
    assert float(tf.convert_to_tensor(Half(), dtype_hint=tf.int32)) == 0.5


def test_composites():
    """IndexedSlices become dense, a row that comes twice is added up; ragged and sparse tensors are refused."""
    slices = tf.IndexedSlices(tf.constant([1.0, 2.0, 4.0]), tf.constant([2, 0, 2]), tf.constant([3]))
    np.testing.assert_array_equal(tf.convert_to_tensor(slices), [2.0, 0.0, 5.0])
    with pytest.raises((TypeError, ValueError)):
        tf.convert_to_tensor(tf.ragged.constant([[1], [2, 3]]))
    with pytest.raises((TypeError, ValueError)):
        tf.convert_to_tensor(tf.SparseTensor([[0]], [1.0], [2]))
