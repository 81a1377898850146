"""Names of the nodes that functions make, as TensorFlow 1.15 gives them."""

from __future__ import annotations

import numpy as np
import pytest

import stoker.compat.v1 as tf


def _made(make):
    """The names of the nodes that `make` adds, and of what it returns."""
    graph = tf.get_default_graph()
    before = {op.name for op in graph.get_operations()}
    result = make()
    return [op.name for op in graph.get_operations() if op.name not in before], result.name


@pytest.mark.parametrize(
    ("make", "nodes", "result"),
    [
        (lambda x: tf.ones_like(x), ["ones_like/Shape", "ones_like/Const", "ones_like"], "ones_like:0"),
        (
            lambda x: tf.sparse_to_dense([[0, 1]], [2, 3], 1.0, name="d"),
            ["d/sparse_indices", "d/output_shape", "d/sparse_values", "d/default_value", "d"],
            "d:0",
        ),
        (
            lambda x: tf.reduce_join(["a", "b"], 0, name="j"),
            ["ReduceJoin/Const", "ReduceJoin/j/reduction_indices", "ReduceJoin/j"],
            "ReduceJoin/j:0",
        ),
        (lambda x: tf.complex(1.0, 2.0, name="c"), ["real", "imag", "c"], "c:0"),
        (
            lambda x: tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[0, 1], logits=x, name="loss"),
            ["loss/Const", "loss/loss"],
            "loss/loss:0",
        ),
    ],
)
def test_names(make, nodes, result):
    """Nodes for plain values stand beside the op they are for, and the op has the name that was given."""
    x = tf.placeholder(tf.float32, [2, 3], name="x")
    assert _made(lambda: make(x)) == (nodes, result)


def test_hessians_are_named_as_gradients():
    """The scope of a Hessian's first derivatives is `gradients`, whatever name was given; its result is a Reshape."""
    x = tf.constant([1.0, 2.0], name="x")
    (hessian,) = tf.hessians(tf.reduce_sum(x**3), x, name="other")
    scopes = {op.name.split("/")[0] for op in tf.get_default_graph().get_operations()}
    assert hessian.name == "Reshape_1:0"
    assert "gradients" in scopes and "other" not in scopes
    with tf.Session() as session:
        np.testing.assert_allclose(session.run(hessian), np.diag([6.0, 12.0]))


def test_orthogonal_initializer_in_another_dtype():
    """An initializer makes the dtype it is asked for, not only its own."""
    weights = tf.orthogonal_initializer(gain=2.0, seed=5)([3, 3], tf.float64)
    with tf.Session() as session:
        values = session.run(weights)
    assert values.dtype == np.float64
    np.testing.assert_allclose(values @ values.T, 4 * np.eye(3), atol=1e-12)


def test_partitions_must_agree():
    """A partitioned variable is shared only by those who cut it alike; a partitioner returns a sequence."""
    with tf.variable_scope("s", reuse=tf.AUTO_REUSE):
        made = tf.get_variable("v", [4], partitioner=tf.fixed_size_partitioner(2))
        assert tf.get_variable("v", [4], partitioner=tf.fixed_size_partitioner(2)) is made
        with pytest.raises(ValueError, match=r"partitions \[4\].*it has \[2\]"):
            tf.get_variable("v", [4], partitioner=tf.fixed_size_partitioner(4))
    with pytest.raises(ValueError, match="must return a sequence"):
        tf.get_variable("w", [4], partitioner=lambda shape, dtype: 2)


def test_wrong_control_inputs_are_told_at_once():
    """control_dependencies looks at what it is given when it is called, not when its block begins."""
    with pytest.raises(TypeError):
        tf.control_dependencies([3])
    with pytest.raises(KeyError):
        tf.control_dependencies(["nowhere"])


def test_colocation_is_stronger_than_outer_devices():
    """Ops that stand with another are where that one is, whatever device block is around; inner blocks still count."""
    graph = tf.get_default_graph()
    free = tf.constant(1.0)
    with tf.device("/cpu:0"), graph.colocate_with(free.op):
        assert tf.no_op().device == ""
        with tf.device("/cpu:7"):
            assert tf.no_op().device == "/device:CPU:7"


def test_containers_hold_every_kind_of_state():
    """Variables of both kinds, queues and tables made inside of a container block are in it, unless they name another."""
    with tf.container("shelf"):
        made = [
            tf.Variable(1.0).op,
            tf.Variable(1.0, use_resource=True).handle.op,
            tf.FIFOQueue(1, tf.float32).queue_ref.op,
            tf.raw_ops.HashTableV2(key_dtype=tf.int64, value_dtype=tf.int64).op,
        ]
        own = tf.raw_ops.HashTableV2(key_dtype=tf.int64, value_dtype=tf.int64, container="own").op
    assert [op.get_attr("container") for op in made] == [b"shelf"] * 4
    assert own.get_attr("container") == b"own"
    assert tf.Variable(1.0).op.get_attr("container") == b""


@pytest.mark.parametrize(
    ("default_id", "weighted", "name"),
    [(None, False, "look/Reshape_2:0"), (1, False, "look/Reshape_1:0"), (None, True, "look/Reshape_5:0")],
)
@pytest.mark.parametrize("shape", [[2, 3], [2, 2, 3]])
def test_safe_lookup_is_named_after_its_last_reshape(shape, default_id, weighted, name):
    """The result of a safe lookup bears the number of the reshapes before it, whether it needs them or not."""
    ids = tf.SparseTensor([[0] * len(shape)], tf.constant([1], tf.int64), shape)
    weights = tf.SparseTensor(ids.indices, [0.5], shape) if weighted else None
    result = tf.nn.safe_embedding_lookup_sparse(tf.ones([4, 2]), ids, weights, default_id=default_id, name="look")
    assert result.name == name


def test_results_with_custom_gradients_are_called_identity_n():
    """`swish` and the dense CTC loss return nodes called IdentityN; the sparse loss is the plain op without a scope."""
    x = tf.ones([5, 2, 4])
    dense, lengths = tf.ones([2, 3], tf.int32), tf.constant([3, 3])
    assert tf.nn.swish(x).name == "IdentityN:0"
    assert tf.nn.ctc_loss_v2(dense, x, lengths, lengths).name == "ctc_loss_dense/IdentityN:0"
    sparse = tf.SparseTensor([[0, 0]], [1], [2, 3])
    assert tf.nn.ctc_loss_v2(sparse, x, None, lengths, blank_index=0, name="unused").name == "CTCLoss:0"
    assert tf.nn.collapse_repeated(dense, lengths)[0].name == "collapse_repeated_labels/Reshape_3:0"
