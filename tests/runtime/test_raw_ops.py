"""tf.raw_ops: one function for each op, with keyword arguments only."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import stoker as tf2
import stoker.compat.v1 as tf
from stoker._src.graph.definition import all_definitions


def test_every_op_is_there():
    """Both namespaces have a function for every definition."""
    defined_by_tests = {"RaiseForTest"}
    for name in all_definitions().keys() - defined_by_tests:
        assert getattr(tf.raw_ops, name) is getattr(tf2.raw_ops, name), name


def test_an_op_is_called_by_keyword(eager):
    """Inputs and attributes go by the names of the OpDef."""
    product = tf2.raw_ops.MatMul(a=[[1.0, 2.0]], b=[[3.0, 4.0]], transpose_b=True)
    np.testing.assert_array_equal(product.numpy(), [[11.0]])


def test_a_node_gets_the_given_name():
    """`name` names the node."""
    assert tf.raw_ops.Add(x=1, y=2, name="sum").op.name == "sum"


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((1, 2), {}, r"Add only takes keyword args \(possible keys: \['x', 'y', 'name'\]\)"),
        ((), {"x": 1}, "'y'"),
        ((), {"x": 1, "y": 2, "z": 3}, "unexpected keyword argument 'z'"),
        ((), {"x": 1, "y": 2, "T": tf.int32}, "unexpected keyword argument 'T'"),
    ],
)
def test_wrong_arguments_are_refused(args, kwargs, message):
    """Positional, missing, unknown and inferred arguments raise TypeError."""
    with pytest.raises(TypeError, match=message):
        tf.raw_ops.Add(*args, **kwargs)


def test_signatures_show_names_and_defaults():
    """What must be given comes first, then attributes with their defaults, then the name."""
    shown = inspect.signature(tf.raw_ops.Print)
    assert list(shown.parameters) == ["input", "data", "message", "first_n", "summarize", "name"]
    assert shown.parameters["first_n"].default == -1


def test_unknown_ops_are_no_attributes():
    """A name that is not an op raises AttributeError."""
    with pytest.raises(AttributeError):
        _ = tf.raw_ops.NoSuchOp


def test_variable_methods_can_be_found_on_the_class():
    """The update methods are attributes of tf.Variable itself, in both namespaces."""
    for name in ("assign", "assign_add", "assign_sub", "scatter_add", "scatter_nd_update", "sparse_read", "gather_nd"):
        assert callable(getattr(tf.Variable, name))
        assert callable(getattr(tf2.Variable, name))


def test_rows_of_a_reference_variable():
    """sparse_read and gather_nd of a 1.x variable gather its value."""
    v = tf.Variable([[1.0, 2.0], [3.0, 4.0]], use_resource=False)
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run(v.sparse_read([1])).tolist() == [[3.0, 4.0]]
        assert session.run(tf.gather(v, [0])).tolist() == [[1.0, 2.0]]
        assert session.run(v.gather_nd([[1, 0]])).tolist() == [3.0]


def test_dtypes_by_number():
    """tf.DType(n) is the dtype of that wire number; other numbers and handle data raise TypeError."""
    assert tf.DType(1) is tf.float32
    with pytest.raises(TypeError, match="type_enum"):
        tf.DType(77)
    with pytest.raises(TypeError, match="HandleData"):
        tf.DType(1, handle_data=3)


def test_ops_on_references_need_a_graph(eager):
    """Eager variables have no references: ops that take one refuse with RuntimeError."""
    with pytest.raises(RuntimeError, match="ApplyGradientDescent does not support eager execution"):
        tf.raw_ops.ApplyGradientDescent(var=tf.Variable([1.0]), alpha=0.1, delta=[1.0])


@pytest.mark.parametrize("results", [[tf.float32] * 2, [tf.int32]])
def test_functions_return_what_the_op_expects(results):
    """An op that calls a function says what it returns; where that is not so, the error names both."""

    with tf.Graph().as_default(), tf.Session() as session:
        function = tf.function(lambda x: x + 1.0).get_concrete_function(tf.TensorSpec([], tf.float32))
        call = tf.raw_ops.PartitionedCall(args=[tf.constant(1.0)], Tout=results, f=function)
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"returns \(float32\), but 'PartitionedCall' expects"):
            session.run(call)
