"""`tf.profiler`: parameters and operations as TensorFlow 1.15 counts them, times of traced runs, reports and timelines."""

from __future__ import annotations

import json

import pytest

import stoker.compat.v1 as tf

Builder = tf.profiler.ProfileOptionBuilder


@pytest.fixture
def trace():
    """A small network and the metadata of one run."""
    x = tf.placeholder(tf.float32, [32, 20])
    w = tf.get_variable("w", [20, 10], initializer=tf.zeros_initializer())
    b = tf.get_variable("b", [10], initializer=tf.zeros_initializer())
    tf.get_variable("fixed", [5], initializer=tf.zeros_initializer(), trainable=False)
    with tf.name_scope("net"):
        y = tf.nn.relu(tf.nn.bias_add(tf.matmul(x, w), b))
    k = tf.get_variable("k", [3, 3, 2, 4], initializer=tf.zeros_initializer())
    c = tf.nn.conv2d(tf.zeros([1, 8, 8, 2]), k, [1, 1, 1, 1], "SAME")
    metadata = tf.RunMetadata()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        session.run([y, c], {x: [[1.0] * 20] * 32}, options=options, run_metadata=metadata)
    return metadata


def test_parameters(trace, capsys):
    """Trainable variables by name, with their shapes and their sum."""
    root = tf.profiler.profile(tf.get_default_graph(), options=Builder.trainable_variables_parameter())
    assert root.total_parameters == 282
    assert [(node.name, node.parameters) for node in root.children] == [("b", 10), ("k", 72), ("w", 200)]
    out = capsys.readouterr().out
    assert (
        "_TFProfRoot (--/282 params)\n  b (10, 10/10 params)\n  k (3x3x2x4, 72/72 params)\n  w (20x10, 200/200 params)\n"
        in out
    )


def test_float_operations(trace, capsys):
    """A matrix product counts 2mnk, a convolution 2 for each weight and output, elementwise ops one for each element."""
    options = Builder(Builder.float_operation()).with_empty_output().build()
    root = tf.profiler.profile(options=options)
    found = {node.name: node.float_ops for node in root.children}
    assert found == {"net/MatMul": 12800, "Conv2D": 9216, "net/BiasAdd": 320}
    assert list(found) == ["net/MatMul", "Conv2D", "net/BiasAdd"]
    assert root.total_float_ops == 22336
    assert capsys.readouterr().out == ""


def test_types_and_times(trace, capsys):
    """Op types with what they took; the nodes that ran are counted beside those that are there."""
    options = Builder(Builder.time_and_memory()).select(["micros", "occurrence"]).build()
    root = tf.profiler.profile(run_meta=trace, cmd="op", options=options)
    kinds = {node.name: node for node in root.children}
    assert kinds["MatMul"].exec_micros > 0
    assert kinds["MatMul"].run_count == 1
    assert "MatMul" in capsys.readouterr().out
    profiler = tf.profiler.Profiler()
    profiler.add_step(3, trace)
    assert profiler.profile_operations({**options, "output": "none"}).total_exec_micros == root.total_exec_micros
    assert profiler.profile_name_scope({**options, "output": "none", "step": 3}).total_exec_micros > 0


def test_files(trace, tmp_path):
    """Reports and timelines go to files."""
    report, timeline = str(tmp_path / "report"), str(tmp_path / "timeline.json")
    tf.profiler.profile(options=Builder(Builder.float_operation()).with_file_output(report).build())
    assert "12.80k" in (tmp_path / "report").read_text()
    options = Builder(Builder.time_and_memory()).with_timeline_output(timeline).build()
    tf.profiler.profile(run_meta=trace, options=options)
    assert json.loads((tmp_path / "timeline.json").read_text())["traceEvents"]
    with pytest.raises(ValueError, match="pass it as run_meta"):
        tf.profiler.profile(options=options)


def test_names_and_depth(trace):
    """Nodes are shown, hidden and cut off by name."""
    options = (
        Builder(Builder.float_operation()).with_empty_output().with_node_names(hide_name_regexes=["net/.*"]).build()
    )
    assert [node.name for node in tf.profiler.profile(options=options).children] == ["Conv2D"]
    with pytest.raises(NotImplementedError, match="scope"):
        tf.profiler.profile(cmd="graph")
