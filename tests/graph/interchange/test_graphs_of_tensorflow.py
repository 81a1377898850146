"""Graphs that TensorFlow wrote give in stoker what they gave in TensorFlow."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import stoker.compat.v1 as tf
from stoker._src.graph.interchange.node_def import node_def_of
from stoker._src.graph.interchange.younger_attrs import YOUNGER_ATTRS

GRAPHS = Path(__file__).parents[2] / "golden" / "graphs" / "interop"
WRITTEN = sorted(GRAPHS.glob("*/*.pb"))

sys.path.insert(0, str(GRAPHS))
import travel  # noqa: E402
from interop_programs import PROGRAMS  # noqa: E402


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_graph_of_tensorflow_gives_the_same_values(path):
    """Import, feed, run: every fetched value equals the one TensorFlow computed."""
    assert travel.check_one(tf, str(path)) == ""


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_an_imported_graph_written_again_gives_the_same_values(path, tmp_path):
    """A GraphDef that was imported and exported is as good as the original."""
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(tf.GraphDef.FromString(path.read_bytes()), name="")
        again = tmp_path / path.name
        again.write_bytes(graph.as_graph_def().SerializeToString())
    (tmp_path / path.with_suffix(".npz").name).write_bytes(path.with_suffix(".npz").read_bytes())
    assert travel.check_one(tf, str(again)) == ""


@pytest.mark.parametrize("name", [name for name in PROGRAMS if (GRAPHS / "tensorflow1" / f"{name}.npz").exists()])
def test_a_program_built_here_gives_tensorflows_values(name):
    """The same source gives the same values as TensorFlow 1.15, run by run."""
    stored = np.load(GRAPHS / "tensorflow1" / f"{name}.npz")
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        for number, (fetches, feeds) in enumerate(PROGRAMS[name](tf)):
            for position, value in enumerate(session.run(list(fetches), feeds)):
                if value is not None:
                    expected = stored[f"value_{number}_{position}"]
                    assert travel.difference(expected, travel._portable(value)) == "", fetches[position]


def test_attributes_younger_than_1_15_are_left_out_at_their_default():
    """TensorFlow 1.15 refuses attributes it does not know; it fills in those that are missing."""
    x = tf.placeholder(tf.float32, [2, 2])
    node = node_def_of(tf.matmul(x, x).op)
    assert YOUNGER_ATTRS["MatMul"] == {"grad_a", "grad_b"}
    assert set(node.attr) == {"T", "transpose_a", "transpose_b"}


def test_attributes_younger_than_1_15_are_kept_where_they_matter():
    """An attribute that changes the result is never dropped."""
    op = tf.get_variable("v", [2], use_resource=True).handle.op
    op._set_attr("debug_name", tf.AttrValue(s=b"named"))
    assert node_def_of(op).attr["debug_name"].s == b"named"
