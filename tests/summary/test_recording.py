"""`tf.summary` of 2.x: writers, steps, conditions and the values that are written."""

from __future__ import annotations

import numpy as np
import pytest

import stoker as tf
import stoker.compat.v1 as tf1
from stoker._src.summary.state import STATE

pytestmark = pytest.mark.usefixtures("eager")


@pytest.fixture(autouse=True)
def clean_state():
    yield
    STATE.writer = STATE.step = STATE.recording = None


def values(directory):
    """(step, value) of everything written to a directory."""
    return [
        (event.step, value)
        for path in sorted(directory.iterdir())
        for event in tf1.train.summary_iterator(str(path))
        for value in event.summary.value
    ]


def array(value):
    return tf.make_ndarray(value.tensor)


def test_scalars_with_steps_and_scopes(tmp_path):
    """The tag has the scopes around it, the step is the argument, the writer's or the thread's."""
    writer = tf.summary.create_file_writer(str(tmp_path))
    with writer.as_default(step=3):
        assert tf.summary.scalar("a", 1.5).numpy()
        with tf.name_scope("outer"):
            tf.summary.scalar("b", tf.constant(2, tf.int64), step=4, description="about b")
    with writer.as_default():
        with pytest.raises(ValueError, match="No step set"):
            tf.summary.scalar("a", 1.5)
        tf.summary.experimental.set_step(tf.Variable(9, dtype=tf.int64))
        tf.summary.scalar("c", 3.0)
        with pytest.raises(ValueError, match="Expected scalar shape"):
            tf.summary.scalar("d", [1.0, 2.0])
    writer.close()
    found = values(tmp_path)
    assert [(step, value.tag, float(array(value))) for step, value in found] == [
        (3, "a", 1.5),
        (4, "outer/b", 2.0),
        (9, "c", 3.0),
    ]
    assert found[1][1].metadata.summary_description == "about b"
    assert {value.metadata.plugin_data.plugin_name for _, value in found} == {"scalars"}


def test_histogram_image_audio_text_and_write(tmp_path):
    """Values are laid out as TensorBoard's plugins read them."""
    with tf.summary.create_file_writer(str(tmp_path)).as_default(step=1):
        tf.summary.histogram("h", [1.0, 2.0, 3.0, 4.0], buckets=3)
        tf.summary.histogram("point", [1.0, 1.0], buckets=2)
        tf.summary.histogram("nothing", [], buckets=2)
        tf.summary.image("i", np.linspace(-0.2, 1.2, 12).reshape(2, 3, 2, 1).astype(np.float32), max_outputs=1)
        tf.summary.audio("s", np.zeros([2, 4, 1], np.float32), 8000)
        tf.summary.text("t", ["x", "y"])
        tf.summary.write("w", [1, 2])
    found = {value.tag: value for _, value in values(tmp_path)}
    assert array(found["h"]).tolist() == [[1, 2, 1], [2, 3, 1], [3, 4, 2]]
    assert array(found["point"]).tolist() == [[1, 1, 0], [1, 1, 2]]
    assert array(found["nothing"]).tolist() == [[0, 0, 0]] * 2
    width, height, *pictures = array(found["i"]).tolist()
    assert (width, height, len(pictures)) == (b"2", b"3", 1)
    assert tf.io.decode_png(pictures[0]).numpy().ravel().tolist() == [0, 0, 13, 46, 78, 111]
    assert array(found["s"]).shape == (2, 2)
    assert array(found["s"])[0, 0].startswith(b"RIFF")
    assert array(found["t"]).tolist() == [b"x", b"y"]
    assert array(found["w"]).tolist() == [1, 2]
    assert not found["w"].HasField("metadata")


def test_record_if(tmp_path):
    """`record_if` takes a bool, a tensor or a function; what is not recorded is not even computed."""
    writer = tf.summary.create_file_writer(str(tmp_path))
    assert not tf.summary.should_record_summaries().numpy()
    with writer.as_default(step=1):
        assert tf.summary.should_record_summaries().numpy()
        with tf.summary.record_if(False):
            assert not tf.summary.scalar("no", 1.0).numpy()
            assert not tf.summary.write("no", lambda: 1 / 0).numpy()
        with tf.summary.record_if(lambda: tf.constant(True)):
            assert tf.summary.scalar("yes", 1.0).numpy()
    assert not tf.summary.scalar("no writer", 1.0, step=1).numpy()
    with tf.summary.create_noop_writer().as_default():
        assert not tf.summary.scalar("nothing", 1.0, step=1).numpy()
    writer.close()
    assert [value.tag for _, value in values(tmp_path)] == ["yes"]


def test_inside_a_function(tmp_path):
    """A traced function writes at every call, under a condition that may be a tensor."""
    writer = tf.summary.create_file_writer(str(tmp_path))

    @tf.function
    def step(x, condition):
        with tf.name_scope("inner"), tf.summary.record_if(condition):
            tf.summary.scalar("x", x, step=tf.cast(x, tf.int64))
        return x

    with writer.as_default():
        for number in range(4):
            step(tf.constant(float(number)), tf.constant(number % 2 == 1))
    writer.close()
    assert [(step, value.tag, float(array(value))) for step, value in values(tmp_path)] == [
        (1, "inner/x", 1.0),
        (3, "inner/x", 3.0),
    ]


def test_closed_writers(tmp_path):
    """A closed writer cannot become the default again; closing and flushing it twice is allowed."""
    writer = tf.summary.create_file_writer(str(tmp_path), filename_suffix=".end")
    writer.set_as_default(step=2)
    assert tf.summary.experimental.get_step() == 2
    tf.summary.scalar("a", 1.0)
    writer.close()
    writer.close()
    writer.flush()
    with pytest.raises(tf.errors.NotFoundError, match="does not exist"):
        tf.summary.scalar("a", 1.0)
    with pytest.raises(RuntimeError, match="already closed"):
        writer.as_default().__enter__()
    with pytest.raises(ValueError, match="Invalid argument to flush"):
        tf.summary.flush(3)
    with pytest.raises(ValueError, match="`logdir` cannot be None"):
        tf.summary.create_file_writer(None)
    (path,) = tmp_path.iterdir()
    assert path.name.endswith(".end")


def test_graphs_and_raw_messages(tmp_path):
    """A graph becomes an event of its own, a serialized Summary one of its values."""
    graph = tf1.Graph()
    with graph.as_default():
        tf1.constant(1.0, name="only")
    raw = tf1.Summary(value=[tf1.Summary.Value(tag="raw", simple_value=2.0)])
    with tf.summary.create_file_writer(str(tmp_path)).as_default(step=1):
        tf.summary.graph(graph)
        tf.summary.experimental.write_raw_pb(raw.SerializeToString())
        with pytest.raises(ValueError, match="is not tf"):
            tf.summary.graph(3)
        tf.summary.flush()
    (path,) = tmp_path.iterdir()
    _, first, second = tf1.train.summary_iterator(str(path))
    assert tf1.GraphDef.FromString(first.graph_def).node[0].name == "only"
    assert second.summary == raw


def test_traces_of_functions(tmp_path):
    """Between `trace_on` and `trace_export` the graphs of called functions are noted; they are written once."""

    @tf.function
    def double(x):
        return x * 2.0

    with tf.summary.create_file_writer(str(tmp_path)).as_default(step=4):
        with pytest.raises(ValueError, match="Must enable trace before export"):
            tf.summary.trace_export("early")
        tf.summary.trace_on(graph=True)
        double(tf.constant(1.0))
        double(tf.constant(2.0))
        tf.summary.trace_export("called")
        tf.summary.trace_on()
        tf.summary.trace_off()
        with pytest.raises(ValueError, match="Must enable trace before export"):
            tf.summary.trace_export("late")
        with pytest.raises(NotImplementedError, match="no profiler"):
            tf.summary.trace_on(profiler=True)
    ((step, value),) = values(tmp_path)
    metadata = tf1.RunMetadata.FromString(array(value).item())
    (function,) = metadata.function_graphs
    assert (step, value.tag) == (4, "called")
    assert "Mul" in {node.op for node in function.pre_optimization_graph.node}
    assert value.metadata.plugin_data.plugin_name == "graph_run_metadata_graph"
