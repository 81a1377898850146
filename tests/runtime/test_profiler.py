"""`tf.profiler`: reports as TensorFlow 1.15 writes them, times and memory of traced runs, timelines and advice."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import stoker.compat.v1 as tf
from tests.golden.profiler.cases import build, options, report

Builder = tf.profiler.ProfileOptionBuilder
EXPECTED = json.loads((Path(__file__).parents[1] / "golden" / "profiler" / "reports.json").read_text())


@pytest.fixture
def trace():
    """The metadata of one traced run of a small network."""
    x, loss, gradient, _ = build(tf)
    metadata = tf.RunMetadata()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        traced = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        session.run([loss, gradient], {x: np.ones([32, 20])}, options=traced, run_metadata=metadata)
    return metadata


def test_reports_of_a_graph(tmp_path):
    """Trees by scope and by inputs, and tables by op type, line by line as TensorFlow writes them."""
    build(tf)
    for title, (cmd, chosen) in options(tf).items():
        lines, root = report(tf, str(tmp_path / "report"), cmd, chosen)
        assert lines == EXPECTED[title]["lines"], title
        if chosen["account_type_regexes"] != [".*"]:  # gradients consist of other nodes
            assert getattr(root, "total_definition_count", None) == EXPECTED[title]["definitions"], title


def test_an_op_log(tmp_path):
    """Its floating point operations replace those of the graph, and its types can be accounted."""
    build(tf)
    log = tf.profiler.OpLogProto()
    log.log_entries.add(name="layer1/MatMul", float_ops=5, types=["mine"])
    chosen = Builder(Builder.float_operation()).with_accounted_types(["mine"]).build()
    assert report(tf, str(tmp_path / "report"), "scope", chosen, log)[0] == EXPECTED["an op log"]["lines"]
    tf.profiler.write_op_log(tf.get_default_graph(), str(tmp_path), log)
    written = tf.profiler.OpLogProto.FromString((tmp_path / "tfprof_log").read_bytes())
    entries = {entry.name: entry for entry in written.log_entries}
    assert entries["layer1/MatMul"].float_ops == 5 and list(entries["k"].types) == ["_trainable_variables"]
    trace = entries["layer2/product"].code_def.traces[-1]
    assert written.id_to_string[trace.file_id].endswith("cases.py")
    assert written.id_to_string[trace.function_id] == "hidden"


def test_lines_of_the_program(capsys):
    """The view by code shows the user's own lines, and attributes gradients to the lines of what they are gradients of."""
    build(tf)
    chosen = Builder(Builder.float_operation()).with_node_names(show_name_regexes=[".*cases.py.*"]).build()
    root = tf.profiler.profile(cmd="code", options=chosen)
    assert type(root).__name__ == "MultiGraphNodeProto" and root.total_float_ops == 76692
    found = {node.name.partition(":")[2].split(":")[1]: node for node in root.children}
    assert set(found) == {"build", "build (gradient)"}
    products = [node for node in root.children if [child.name.split(":")[-1] for child in node.children] == ["hidden"]]
    assert [node.total_float_ops for node in products] == [3200]
    assert [member.name for member in products[0].children[0].graph_nodes] == ["layer2/product"]
    assert "hidden (3.20k/3.20k flops)" in capsys.readouterr().out


def test_times_and_memory(trace, capsys):
    """A traced run gives each op its time, the memory it asked for and the size of its outputs."""
    chosen = Builder(Builder.time_and_memory()).with_node_names(show_name_regexes=["layer2.*"]).build()
    root = tf.profiler.profile(run_meta=trace, options=chosen)
    (scope,) = root.children
    product = next(node for node in scope.children if node.name == "layer2/product")
    assert product.requested_bytes == product.output_bytes == 32 * 5 * 4
    assert product.exec_micros == product.cpu_exec_micros > 0 and product.run_count == 1
    assert scope.total_requested_bytes >= product.requested_bytes and root.total_exec_micros >= product.exec_micros
    out = capsys.readouterr().out
    assert "node name | requested bytes | total execution time | accelerator execution time | cpu execution time" in out
    assert "layer2/product (640B/640B, " in out and "-order_by                   micros" in out
    kinds = tf.profiler.profile(run_meta=trace, cmd="op", options={**chosen, "show_name_regexes": [".*"]})
    names = []
    while kinds.children:
        (kinds,) = kinds.children
        names.append(kinds.name)
    assert "MatMul" in names


def test_steps_of_a_profiler(trace, capsys):
    """The last step is profiled, or the one that the options select."""
    profiler = tf.profiler.Profiler()
    with pytest.raises(ValueError, match="no step 3"):
        profiler.profile_graph(Builder().with_step(3).build())
    profiler.add_step(3, trace)
    chosen = Builder().with_empty_output()
    total = profiler.profile_name_scope(chosen.build()).total_exec_micros
    assert total > 0
    assert profiler.profile_graph(chosen.with_step(3).build()).total_exec_micros == total
    assert profiler.profile_operations(chosen.build()).total_exec_micros == total
    assert profiler.profile_python(chosen.build()).total_exec_micros == total
    assert capsys.readouterr().out == ""
    advice = profiler.advise()
    reports = advice.checkers["ExpensiveOperationChecker"].reports
    assert reports[0].startswith("top 1 operation type: ") and reports[1].startswith("top 1 graph node: ")
    assert "ExpensiveOperationChecker:\ntop 1 operation type" in capsys.readouterr().out


def test_timelines(trace, tmp_path):
    """A timeline shows ops, the tensors they make, and the memory that is held; it ends with what it started with."""
    chosen = Builder(Builder.time_and_memory()).with_timeline_output(str(tmp_path / "timeline")).build()
    tf.profiler.profile(run_meta=trace, options=chosen)
    events = json.loads((tmp_path / "timeline_-1").read_text())["traceEvents"]
    names = {event["args"]["name"] for event in events if event["ph"] == "X"}
    assert {"layer1/MatMul", "layer2/product", "conv"} <= names
    lives = {phase: [event["id"] for event in events if event["ph"] == phase] for phase in "NOD"}
    assert lives["N"] == lives["O"] == lives["D"] != []
    held = [event["args"]["cpu"] for event in events if event["ph"] == "C"]
    assert max(held) >= 32 * 10 * 4 and min(held) >= 0 and held[-1] == 0
    with pytest.raises(ValueError, match="pass it as run_meta"):
        tf.profiler.profile(options=chosen)


def test_what_is_refused():
    """Unknown views and outputs, and files for pprof."""
    with pytest.raises(tf.errors.InvalidArgumentError, match="unknown cmd: what"):
        tf.profiler.profile(cmd="what")
    with pytest.raises(ValueError, match="Unknown output 'nonsense'"):
        tf.profiler.profile(options={"output": "nonsense"})
    with pytest.raises(NotImplementedError, match="pprof"):
        tf.profiler.profile(cmd="code", options=Builder().with_pprof_output("file").build())


def test_timelines_of_all_steps(tmp_path):
    """A Profiler writes a timeline of each step for the graph view, and one of the selected step. It has no message for TensorFlow's user interface."""
    with tf.Graph().as_default(), tf.Session() as session:
        doubled = tf.constant([1.0, 2.0]) * tf.placeholder_with_default(2.0, [])
        profiler = tf.profiler.Profiler(session.graph)
        for step in (3, 5):
            metadata = tf.RunMetadata()
            options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
            session.run(doubled, options=options, run_metadata=metadata)
            profiler.add_step(step, metadata)
        builder = Builder(Builder.time_and_memory())
        profiler.profile_graph(builder.with_timeline_output(str(tmp_path / "all")).build())
        profiler.profile_graph(builder.with_timeline_output(str(tmp_path / "one")).with_step(3).build())
        assert sorted(path.name for path in tmp_path.iterdir()) == ["all_3", "all_5", "one_3"]
        with pytest.raises(NotImplementedError, match="ProfileProto"):
            profiler.serialize_to_string()
