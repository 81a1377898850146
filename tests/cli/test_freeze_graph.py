"""`tensorflow.python.tools.freeze_graph` for programs that import it."""

import numpy as np
import pytest

import stoker.compat.v1 as tf
from stoker._src.cli.internals.freeze_graph import freeze_graph


@pytest.fixture
def saved(tmp_path, monkeypatch):
    """A graph with variables of both kinds, its checkpoint and its saver, in the current folder."""
    monkeypatch.chdir(tmp_path)
    with tf.Graph().as_default() as graph, tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 2], name="x")
        w = tf.get_variable("w", initializer=np.float32([[1], [2]]))
        b = tf.get_variable("b", initializer=np.float32([3]), use_resource=True)
        tf.add(tf.matmul(x, w), b, name="y")
        saver = tf.train.Saver()
        session.run(tf.global_variables_initializer())
        saver.save(session, "model")
        tf.train.write_graph(graph, ".", "graph.pbtxt")
        tf.train.write_graph(graph, ".", "graph.pb", as_text=False)
        (tmp_path / "saver.pb").write_bytes(saver.as_saver_def().SerializeToString())
    return tmp_path


@pytest.mark.parametrize(
    ("graph", "saver", "binary", "meta"),
    [
        ("graph.pbtxt", "", False, None),
        ("graph.pb", "", True, None),
        ("graph.pb", "saver.pb", True, None),
        (None, "", True, "model.meta"),
    ],
)
def test_variables_become_constants(saved, graph, saver, binary, meta):
    """From a graph in text or bytes, with a saver or without, or from a meta graph."""
    frozen = freeze_graph(graph, saver, binary, "model", "y", None, None, "frozen.pb", True, "", input_meta_graph=meta)
    assert {node.op for node in frozen.node} == {"AddV2", "Const", "Identity", "MatMul", "Placeholder"}
    assert (saved / "frozen.pb").read_bytes() == frozen.SerializeToString(deterministic=True)
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(frozen, name="")
        assert session.run("y:0", {"x:0": [[1.0, 1.0]]}).tolist() == [[6.0]]


def test_some_variables_stay(saved):
    """A list of those to convert, or not to convert."""
    for chosen in ({"variable_names_whitelist": "b"}, {"variable_names_denylist": "w"}):
        frozen = freeze_graph("graph.pb", "", True, "model", "y", None, None, "", True, "", **chosen)
        assert {node.name: node.op for node in frozen.node if node.name in "wb"} == {"w": "VariableV2", "b": "Const"}


def test_what_is_missing_is_named(saved):
    """Files, checkpoints and outputs."""
    with pytest.raises(OSError, match=r"nothing\.pb"):
        freeze_graph("nothing.pb", "", True, "model", "y", None, None, "", True, "")
    with pytest.raises(OSError, match=r"graph\.pb holds no GraphDef in text"):
        freeze_graph("graph.pb", "", False, "model", "y", None, None, "", True, "")
    with pytest.raises(ValueError, match="nothing"):
        freeze_graph("graph.pb", "", True, "nothing", "y", None, None, "", True, "")
    with pytest.raises(ValueError, match="output_node_names"):
        freeze_graph("graph.pb", "", True, "model", "", None, None, "", True, "")
    with pytest.raises(AssertionError, match="zz"):
        freeze_graph("graph.pb", "", True, "model", "zz", None, None, "", True, "")
    with pytest.raises(NotImplementedError, match="SavedModel"):
        freeze_graph(None, "", True, None, "y", None, None, "", True, "", input_saved_model_dir="x")
