"""1.x models that `tf.saved_model.load` loads: their variables, parts of their graphs, gradients."""

from __future__ import annotations

import numpy as np
import pytest

import stoker as tf
import stoker.compat.v1 as tf1
from stoker._src.graph import context

X = np.array([[1.0, -2.0, 0.5]], np.float32)
W = np.arange(6, dtype=np.float32).reshape(3, 2) / 10


@pytest.fixture
def model(tmp_path):
    """A model with a reference variable and a resource variable; one of its signatures looks words up in a table, one counts."""
    with tf1.Graph().as_default(), tf1.Session() as session:
        x = tf1.placeholder(tf1.float32, [None, 3], name="x")
        w = tf1.get_variable("w", initializer=W, use_resource=False)
        b = tf1.get_variable("b", initializer=np.zeros(2, np.float32), use_resource=True)
        y = tf1.tanh(tf1.matmul(x, w) + b, name="y")
        words = tf1.placeholder(tf1.string, [None], name="words")
        table = tf1.lookup.StaticHashTable(tf1.lookup.KeyValueTensorInitializer(["a", "b"], np.array([0, 2])), 1)
        rows = tf1.gather(w, table.lookup(words), name="rows")
        calls = tf1.get_variable("calls", initializer=0, trainable=False, use_resource=False)
        by = tf1.placeholder(tf1.int32, [], name="by")
        counted = tf1.identity(tf1.assign_add(calls, by), name="counted")
        session.run([tf1.global_variables_initializer(), tf1.tables_initializer()])
        describe = tf1.saved_model.signature_def_utils.predict_signature_def
        builder = tf1.saved_model.Builder(str(tmp_path / "model"))
        builder.add_meta_graph_and_variables(
            session,
            ["serve"],
            {
                "serving_default": describe({"x": x}, {"y": y}),
                "rows": describe({"words": words}, {"rows": rows}),
                "count": describe({"by": by}, {"calls": counted}),
            },
            main_op=tf1.tables_initializer(),
        )
        builder.save()
    with context.enter_eager():
        yield tf.saved_model.load(str(tmp_path / "model"))


def test_signatures_are_differentiable(model):
    """Under a tape, the outputs of a signature have gradients for its inputs and for the model's variables."""
    with tf.GradientTape() as tape:
        x = tf.constant(X)
        tape.watch(x)
        total = tf.reduce_sum(model.signatures["serving_default"](x)["y"])
    w, b, calls = model.variables
    slope = 1 - np.tanh(X @ W) ** 2
    found = tape.gradient(total, [x, w, b, calls])
    for one, other in zip(found, [slope @ W.T, X.T @ slope, slope[0]]):
        np.testing.assert_allclose(one.numpy(), other, rtol=1e-5)
    assert found[3] is None
    assert [variable.name for variable in model.variables] == ["w:0", "b:0", "calls:0"]
    assert [variable.trainable for variable in model.variables] == [True, True, False]


def test_parts_of_the_graph(model):
    """`prune` returns a function of any tensors of the graph; one that needs a table cannot be a function."""
    inner = model.prune("MatMul:0", {"y": "y:0"})
    np.testing.assert_allclose(inner(tf.constant([[1.0, 2.0]]))["y"].numpy(), np.tanh([[1.0, 2.0]]), rtol=1e-6)
    with pytest.raises(KeyError, match="gone"):
        model.prune("x:0", "gone:0")
    with pytest.raises(NotImplementedError, match="tables or queues"):
        model.prune("words:0", "rows:0")


def test_assignments_change_the_model(model):
    """All signatures use the variables of eager mode, those that run in a session as well, and change them."""
    model.variables[0].assign(2 * W)
    np.testing.assert_allclose(model.signatures["serving_default"](X)["y"].numpy(), np.tanh(2 * X @ W), rtol=1e-5)
    np.testing.assert_allclose(model.signatures["rows"](tf.constant(["b"]))["rows"].numpy(), 2 * W[2:])
    assert [int(model.signatures["count"](by=3)["calls"]) for _ in range(2)] == [3, 6]
    assert int(model.variables[2].numpy()) == 6
