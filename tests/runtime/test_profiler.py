"""`tf.profiler`: reports as TensorFlow 1.15 writes them, times and memory of traced runs, timelines and advice."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

import stoker.compat.v1 as tf
from stoker._src.formats import protos
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
    """Unknown views and outputs, and what pprof cannot show."""
    with pytest.raises(tf.errors.InvalidArgumentError, match="unknown cmd: what"):
        tf.profiler.profile(cmd="what")
    with pytest.raises(ValueError, match="Unknown output 'nonsense'"):
        tf.profiler.profile(options={"output": "nonsense"})
    for cmd, select, text in (
        ("scope", ["micros"], "Only 'code' view supports pprof"),
        ("code", ["micros", "bytes"], "Can only select 1 attribute"),
        ("code", ["device"], "pprof doesn't support -select=device"),
    ):
        with pytest.raises(ValueError, match=text):
            tf.profiler.profile(cmd=cmd, options=Builder().select(select).with_pprof_output("file").build())


def test_timelines_of_all_steps(tmp_path):
    """A Profiler writes a timeline of each step for the graph view, and one of the selected step."""
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


def test_a_file_for_pprof(trace, tmp_path):
    """Each op is a sample below the lines that made it. Gradients have functions of their own."""
    chosen = Builder().select(["params"]).with_pprof_output(str(tmp_path / "profile")).build()
    root = tf.profiler.profile(run_meta=trace, cmd="code", options=chosen)
    message = protos.Pprof.FromString(gzip.decompress((tmp_path / "profile").read_bytes()))
    text = message.string_table
    assert [(text[each.type], text[each.unit]) for each in message.sample_type] == [
        ("count", "count"),
        ("params", "count"),
    ]
    functions = {each.id: (text[each.name], text[each.filename]) for each in message.function}
    lines = {each.id: (functions[each.line[0].function_id], each.line[0].line) for each in message.location}
    samples = {text[each.label[0].str]: each for each in message.sample}
    assert samples["k"].value == [1, 3 * 3 * 2 * 4] and sum(each.value[1] for each in message.sample) == 333 + 32 * 20
    assert root.total_parameters == 333 + 32 * 20

    inner, outer = (lines[each] for each in samples["layer2/product"].location_id[:2])
    source = Path(inner[0][1]).read_text().splitlines()
    assert inner[0][0] == "cases:hidden" and 'name="product"' in source[inner[1] - 1]
    assert outer[0][0] == "cases:build" and "hidden(tf, y)" in source[outer[1] - 1]
    (gradient, _), _ = lines[samples["gradients/layer2/product_grad/MatMul"].location_id[0]]
    assert gradient == "cases:hidden (gradient)"


def test_a_profile_as_a_message(trace):
    """The message for TensorFlow's profiler UI holds the graph, the lines that made it, and the runs of each step."""
    profiler = tf.profiler.Profiler(tf.get_default_graph())
    profiler.add_step(3, trace)
    message = protos.ProfileProto.FromString(profiler.serialize_to_string())
    assert list(message.steps) == [3] and message.has_trace
    nodes = {node.name: node for node in message.nodes.values()}
    assert set(nodes) == {op.name for op in tf.get_default_graph().get_operations()}
    product = nodes["layer2/product"]
    assert [message.nodes[product.inputs[i]].name for i in range(2)] == ["layer1/Relu", "layer2/w/read"]
    assert product.op == "MatMul" and product.float_ops == 3200 and product.attrs["transpose_a"].b is False
    assert list(product.output_shapes[0].int64_values) == [32, 5]
    assert "_trainable_variables" in nodes["k"].op_types and list(nodes["k"].shape) == [3, 3, 2, 4]
    assert message.id_to_string[product.trace.traces[-1].function_id] == "hidden"
    run = product.execs[3]
    (times,) = run.cpu_execs[product.canonical_device].times
    assert run.run_count == 1 and run.latest_end_micros - run.all_start_micros == times.int64_values[1] > 0
    assert run.memory_execs[0].output_bytes == 32 * 5 * 4
    assert not nodes["step"].execs
