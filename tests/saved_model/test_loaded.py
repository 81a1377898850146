"""`tf.saved_model.load`: signatures of SavedModels in eager mode, and models of TensorFlow 2 in sessions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import stoker
import stoker as tf
import stoker.compat.v1 as tf1
from stoker._src.graph import context

GOLDEN = Path(__file__).parent.parent / "golden" / "saved_model"


def test_models_of_objects_load_into_sessions():
    """A model of TensorFlow 2 has a graph with signatures, whose initializer fills its tables from its assets."""
    with tf1.Graph().as_default(), tf1.Session() as session:
        meta = tf1.saved_model.load(session, ["serve"], str(GOLDEN / "two_tf2"))
        for key, fed, expected in (("serving_default", [[1.0, 1.0]], [[6.0]]), ("ids", ["two", "none"], [1, -1])):
            signature = meta.signature_def[key]
            (given,), (wanted,) = signature.inputs.values(), signature.outputs.values()
            assert session.run(wanted.name, {given.name: fed}).tolist() == expected


@pytest.mark.parametrize(("model", "bias"), [("one_tf1", 0.0), ("one_tf2", 0.0), ("two_tf2", 3.0)])
def test_signatures_are_functions(model, bias):
    """Signatures take tensors by name and give a dictionary; a single argument may go without its name."""
    with context.enter_eager():
        loaded = tf.saved_model.load(GOLDEN / model)
        assert sorted(loaded.signatures) == ["ids", "serving_default"]
        compute = loaded.signatures["serving_default"]
        x = np.float32([[1, 1], [0, 3]])
        np.testing.assert_array_equal(compute(x=tf.constant(x))["y"].numpy(), np.float32([[3], [6]]) + bias)
        np.testing.assert_array_equal(compute(x)["y"].numpy(), np.float32([[3], [6]]) + bias)
        (found,) = loaded.signatures["ids"](tf.constant(["two", "none"])).values()
        assert found.numpy().tolist() == [1, -1]
        assert compute.structured_input_signature == ((), {"x": tf.TensorSpec([None, 2], tf.float32, name="x")})
        assert list(compute.structured_outputs) == ["y"]
        with pytest.raises(TypeError, match="'z'"):
            compute(z=x)
        with pytest.raises(TypeError, match="by name"):
            compute(x, x)


def test_what_is_not_loaded_is_told(tmp_path):
    """A 1.x model has no objects, and its signatures need eager mode; models of objects too; several meta graphs need tags."""
    with context.enter_eager():
        loaded = tf.saved_model.load(str(GOLDEN / "one_tf2"))
        with pytest.raises(AttributeError, match="no attribute 'compute'"):
            loaded.compute  # noqa: B018
    with tf1.Graph().as_default(), tf1.Session() as session:
        with pytest.raises(NotImplementedError, match="run in eager mode"):
            loaded.signatures["serving_default"](x=tf.constant([[1.0, 1.0]]))
        with pytest.raises(NotImplementedError, match="works in eager mode"):
            tf.saved_model.load(str(GOLDEN / "two_tf2"), tags=["serve"])
        builder = tf1.saved_model.Builder(str(tmp_path / "model"))
        builder.add_meta_graph_and_variables(session, ["serve"])
        builder.add_meta_graph(["train"])
        builder.save()
    with context.enter_eager(), pytest.raises(ValueError, match="more than one MetaGraph"):
        tf.saved_model.load(str(tmp_path / "model"))


def test_signatures_with_sparse_and_ragged_tensors(tmp_path):
    """A signature of a 1.x model may take and give sparse and ragged tensors, which its description holds with their components."""
    with tf1.Graph().as_default(), tf1.Session() as session:
        rows = tf1.ragged.placeholder(tf.float32, 1, [], name="rows")
        matrix = tf1.sparse_placeholder(tf.float32, [None, 3], name="matrix")
        weights = tf1.get_variable("weights", initializer=[[1.0], [2.0], [3.0]])
        session.run(weights.initializer)
        results = {"product": tf1.sparse_tensor_dense_matmul(matrix, weights), "twice": rows * tf.constant(2.0)}
        tf1.saved_model.simple_save(session, str(tmp_path / "m"), {"rows": rows, "matrix": matrix}, results)
        info = tf1.saved_model.build_tensor_info(rows)
        assert [each.name for each in info.composite_tensor.components] == ["rows/flat_values:0", "rows/row_splits_0:0"]
    with context.enter_eager():
        compute = tf.saved_model.load(tmp_path / "m").signatures["serving_default"]
        found = compute(rows=tf.ragged.constant([[1.0, 2.0], [3.0]]), matrix=tf.sparse.from_dense([[0.0, 4.0, 0.0]]))
        assert found["twice"].to_list() == [[2.0, 4.0], [6.0]]
        assert found["product"].numpy().tolist() == [[8.0]]
    module = stoker.to_torch(str(tmp_path / "m"))
    indices, values, shape = torch.tensor([[0, 1]]), torch.tensor([4.0]), torch.tensor([1, 3])
    found = module(
        matrix_indices=indices,
        matrix_values=values,
        matrix_dense_shape=shape,
        rows=torch.tensor([1.0]),
        rows_1=torch.tensor([0, 1]),
    )
    assert found["product"].tolist() == [[8.0]]
    assert (found["twice"].tolist(), found["twice_1"].tolist()) == ([2.0], [0, 1])
