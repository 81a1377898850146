"""`python -m stoker inspect` of checkpoints and graphs: statistics, JSON, pictures."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

import stoker.compat.v1 as tf
from stoker._src.base.dtypes import as_dtype
from stoker._src.cli.graph_picture import Node, svg
from stoker._src.cli.main import main
from stoker._src.cli.reports import sparkline, statistics
from stoker._src.formats.checkpoint_v1 import SliceWriter
from stoker._src.formats.events import read_events
from stoker._src.formats.tensor_bundle import BundleWriter


def _json(capsys, *arguments: str) -> dict:
    assert main(["inspect", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model as a checkpoint with its meta graph, a SavedModel and frozen graphs."""
    directory = tmp_path_factory.mktemp("model")
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(1)
        x = tf.placeholder(tf.float32, [None, 8], "x")
        hidden = tf.layers.dense(x, 4, tf.nn.relu, name="hidden")
        y = tf.nn.softmax(tf.layers.dense(hidden, 5, name="logits"), name="y")
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, str(directory / "model"))
        tf.saved_model.simple_save(session, str(directory / "export"), {"x": x}, {"y": y})
        frozen = tf.graph_util.convert_variables_to_constants(session, session.graph.as_graph_def(), ["y"])
    tf.io.write_graph(frozen, str(directory), "frozen.pb", as_text=False)
    tf.io.write_graph(frozen, str(directory), "frozen.pbtxt", as_text=True)
    (directory / "frozen.bin").write_bytes((directory / "frozen.pb").read_bytes())
    return directory


def test_statistics():
    """Counts of zeros, NaNs and infinities; the rest is about the finite elements; the line shows every bin that is not empty."""
    array = np.array([0.0, 1.0, 2.0, 3.0, np.nan, np.inf, -np.inf], np.float32)
    found = statistics(array)
    assert {key: found[key] for key in ("min", "max", "mean", "zeros", "nan", "inf")} == {
        "min": 0.0, "max": 3.0, "mean": 1.5, "zeros": 1, "nan": 1, "inf": 2,
    }  # fmt: skip
    assert found["std"] == pytest.approx(np.std([0, 1, 2, 3]))
    assert sum(found["histogram"]["counts"]) == 4
    assert len(found["histogram"]["edges"]) == 13
    assert sparkline([0, 1, 500, 1000]) == " ▁▄█"
    assert statistics(np.array([b"x"], object)) is None
    assert statistics(np.zeros([0, 3]))["min"] is None
    assert statistics(np.array([True, False]))["zeros"] == 1
    assert statistics(np.array([3 + 4j]))["max"] == 5.0
    assert statistics(np.array([np.nan]))["histogram"] == {"edges": [], "counts": []}
    json.dumps(statistics(np.array([1e308, -1e308])), allow_nan=False)


def test_checkpoints_with_statistics(tmp_path, capsys):
    """A table with a sparkline in a terminal; the same as JSON; names cannot write to the terminal."""
    prefix = str(tmp_path / "model")
    with BundleWriter(prefix) as writer:
        writer.add("w\x1b[31m", np.arange(24, dtype=np.float32).reshape(4, 6))
        writer.add("z", np.zeros(3, np.int64))
    assert main(["inspect", prefix, "--stats"]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    header, first, second, _ = out.splitlines()[1:]
    assert header.split() == [
        "tensor",
        "dtype",
        "shape",
        "min",
        "max",
        "mean",
        "std",
        "zeros",
        "NaN",
        "Inf",
        "histogram",
    ]
    assert first.split()[1:7] == ["float32", "4", "x", "6", "0", "23"]
    assert first.endswith("█" * 12)
    assert second.split()[:4] == ["z", "int64", "3", "0"]
    data = _json(capsys, prefix, "--stats")
    assert (data["format"], data["elements"], data["bytes"]) == ("V2", 27, 120)
    assert data["tensors"][0]["stats"]["histogram"]["counts"] == [2] * 12
    assert "stats" not in _json(capsys, prefix + ".index")["tensors"][0]


def test_older_and_object_based_checkpoints(tmp_path, capsys):
    """A file of the older format is recognized by its content; objects name their variables; a directory means its newest."""
    writer = SliceWriter(str(tmp_path / "older"))
    writer.add("v", np.ones(3, np.float32), as_dtype("float32"))
    writer.finish()
    data = _json(capsys, str(tmp_path / "older"))
    assert (data["format"], data["tensors"][0]["shape"]) == ("V1", [3])
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.get_variable("scope/v", [2])
        session.run(v.initializer)
        tf.train.Checkpoint(v=v).save(str(tmp_path / "objects"), session=session)
    data = _json(capsys, str(tmp_path))
    assert data["object_based"]
    named = {each["name"]: each.get("variable") for each in data["tensors"]}
    assert named["v/.ATTRIBUTES/VARIABLE_VALUE"] == "scope/v"
    assert main(["inspect", str(tmp_path)]) == 0
    assert "(variable scope/v)" in capsys.readouterr().out


def test_safetensors(tmp_path, capsys):
    """A file, and an index with the files beside it or their directory, are reported as checkpoints are."""
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.get_variable("scope/v", initializer=np.arange(6, dtype=np.float32).reshape(2, 3))
        w = tf.get_variable("w", initializer=np.ones(4, np.int64))
        session.run(tf.global_variables_initializer())
        prefix = tf.train.Checkpoint(v=v, w=w).save(str(tmp_path / "objects"), session=session)
    expected = _json(capsys, prefix, "--stats")
    assert main(["convert", prefix, str(tmp_path / "one.safetensors")]) == 0
    (tmp_path / "many").mkdir()
    assert main(["convert", prefix, str(tmp_path / "many" / "model.safetensors"), "--max-shard-size", "30"]) == 0
    capsys.readouterr()
    for name in ("one.safetensors", "many/model.safetensors.index.json", "many"):
        data = _json(capsys, str(tmp_path / name), "--stats")
        assert (data["format"], data["object_based"]) == ("safetensors", True)
        wanted = [each for each in expected["tensors"] if each["bytes"] is not None]
        assert sorted(data["tensors"], key=lambda each: each["name"]) == wanted
    assert main(["inspect", str(tmp_path / "many")]) == 0
    assert "in 3 safetensors file(s)" in capsys.readouterr().out
    (tmp_path / "bad.safetensors.index.json").write_text("{}")
    assert main(["inspect", str(tmp_path / "bad.safetensors.index.json")]) == 1
    assert "is not an index of safetensors files" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["frozen.pb", "frozen.pbtxt", "frozen.bin"])
def test_graphs(model, capsys, name):
    """Binary and text, whatever the file is called: ops, inputs, outputs, constants with their statistics."""
    data = _json(capsys, str(model / name), "--stats")
    assert data["kind"] == "graph_def"
    assert data["ops"]["MatMul"] == 2
    assert data["inputs"] == [{"name": "x", "op": "Placeholder", "dtype": "float32", "shape": [None, 8]}]
    assert data["outputs"] == ["y"]
    kernel = next(each for each in data["constants"] if each["name"] == "hidden/kernel")
    assert (kernel["shape"], kernel["bytes"], kernel["stats"]["nan"]) == ([8, 4], 128, 0)
    assert main(["inspect", str(model / name), "--stats"]) == 0
    assert re.search(r"hidden/kernel +float32 +8 x 4 +-0\.", capsys.readouterr().out)


def test_meta_graphs_and_saved_models(model, capsys):
    """Signatures, collections, variables, the version that wrote it; a SavedModel with its checkpoint."""
    meta = _json(capsys, str(model / "model.meta"))
    assert meta["kind"] == "meta_graph"
    assert [each["name"] for each in meta["variables"]] == [
        "hidden/kernel",
        "hidden/bias",
        "logits/kernel",
        "logits/bias",
    ]
    assert meta["collections"]["trainable_variables"] == 4
    saved = _json(capsys, str(model / "export"))
    assert saved["kind"] == "saved_model"
    assert saved["meta_graphs"][0]["tags"] == ["serve"]
    signature = saved["meta_graphs"][0]["signatures"]["serving_default"]
    assert signature["outputs"]["y"] == {"tensor": "y:0", "dtype": "float32", "shape": [None, 5]}
    assert len(saved["variables"]["tensors"]) == 4
    assert main(["inspect", str(model / "export")]) == 0
    out = capsys.readouterr().out
    assert "signatures:" in out
    assert "a checkpoint of 4 tensors" in out
    assert _json(capsys, str(model))["kind"] == "checkpoint"


def test_pictures(model, tmp_path, capsys):
    """An SVG with a box for each node in its scopes, and an event file that TensorBoard reads."""
    target = tmp_path / "graph.svg"
    assert main(["inspect", str(model / "frozen.pb"), "--graph", str(target)]) == 0
    text = target.read_text()
    titles = {each.text for each in ElementTree.fromstring(text).iter("{http://www.w3.org/2000/svg}title")}
    assert {"hidden", "hidden/MatMul (MatMul)", "x (Placeholder) ? x 8"} <= titles
    assert main(["inspect", str(model / "export"), "--graph", str(tmp_path / "logs")]) == 0
    (path,) = (tmp_path / "logs").iterdir()
    graph = [tf.GraphDef.FromString(event.graph_def) for event in read_events(str(path)) if event.graph_def]
    assert any(node.name == "hidden/MatMul" for node in graph[0].node)
    assert main(["inspect", str(model / "frozen.pb"), "--graph", str(tmp_path / "graph.png")]) == 1
    assert "end it in .svg" in capsys.readouterr().err
    assert main(["inspect", str(model / "model"), "--graph", str(target)]) == 1
    assert "holds no graph to draw" in capsys.readouterr().err


def test_layout():
    """Inputs stand above what uses them, boxes do not overlap, large scopes stay closed, cycles of scopes do no harm."""
    nodes = [Node("a/x", "X"), Node("b/y", "Y", ["a/x"]), Node("a/z", "Z", ["b/y"]), Node("<&>", "Q", ["a/z", "none"])]
    nodes += [Node(f"big/n{i}", "N", [f"big/n{i - 1}"] if i else ["a/z"]) for i in range(100)]
    text = svg(nodes, "t", most=20)
    root = ElementTree.fromstring(text)
    boxes = {}
    for each in root.iter("{http://www.w3.org/2000/svg}rect"):
        for title in each:
            boxes[title.text] = [float(each.get(key)) for key in ("x", "y", "width", "height")]
    assert boxes["big"][2:] == boxes["<&> (Q)"][2:]
    assert "100 nodes" in text
    assert boxes["a/x (X)"][1] < boxes["<&> (Q)"][1]
    for name in ("a/x (X)", "a/z (Z)"):
        inner, outer = boxes[name], boxes["a"]
        assert outer[0] < inner[0] and inner[0] + inner[2] < outer[0] + outer[2]
    flat = [box for name, box in boxes.items() if "(" in name or name == "big"]
    for i, (x, y, w, h) in enumerate(flat):
        for other_x, other_y, other_w, other_h in flat[:i]:
            assert x + w <= other_x or other_x + other_w <= x or y + h <= other_y or other_y + other_h <= y
    assert ElementTree.fromstring(svg([])).tag.endswith("svg")


def test_what_records_cannot_show(tmp_path, capsys):
    """Statistics, JSON and pictures are for checkpoints, graphs and models; a file of records says so."""
    path = str(tmp_path / "x.tfrecord")
    with tf.io.TFRecordWriter(path) as writer:
        writer.write(b"x")
    assert main(["inspect", path, "--json"]) == 1
    assert "--json, --graph and --stats are for checkpoints, graphs and models" in capsys.readouterr().err
    (tmp_path / "bad.pb").write_bytes(b"\x00\x01no graph")
    assert main(["inspect", str(tmp_path / "bad.pb")]) == 1
    assert "neither a GraphDef nor a MetaGraphDef nor a SavedModel" in capsys.readouterr().err
