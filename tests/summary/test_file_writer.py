"""FileWriter and event files: what is written, what is read back, what damaged files give."""

from __future__ import annotations

import pytest

import stoker.compat.v1 as tf


def events(directory):
    """All events of a directory but the first of each file, by file name."""
    found = []
    for path in sorted(directory.iterdir()):
        first, *rest = tf.train.summary_iterator(str(path))
        assert first.file_version == "brain.Event:2"
        found.extend(rest)
    return found


def message(tag="a", value=1.0):
    return tf.Summary(value=[tf.Summary.Value(tag=tag, simple_value=value)])


def test_everything_a_writer_writes(tmp_path):
    """Summaries as messages and bytes, graph, meta graph, run metadata, session log and plain events arrive in order with their steps."""
    x = tf.constant(1.0, name="x")
    with tf.summary.FileWriter(tmp_path, tf.get_default_graph()) as writer:
        writer.add_summary(message(), 1)
        writer.add_summary(message().SerializeToString(), 2)
        writer.add_run_metadata(tf.RunMetadata(), "first run", 3)
        writer.add_session_log(tf.SessionLog(status=tf.SessionLog.START), 4)
        writer.add_event(tf.Event(wall_time=12.0, step=5))
        assert writer.get_logdir() == str(tmp_path)
    graph, meta, one, two, run, log, plain = events(tmp_path)
    assert [node.name for node in tf.GraphDef.FromString(graph.graph_def).node] == [x.op.name]
    assert tf.MetaGraphDef.FromString(meta.meta_graph_def).graph_def.node[0].name == "x"
    assert (one.step, one.summary, two.step, two.summary) == (1, message(), 2, message())
    assert (run.step, run.tagged_run_metadata.tag) == (3, "first run")
    assert (log.step, log.session_log.status) == (4, tf.SessionLog.START)
    assert (plain.step, plain.wall_time) == (5, 12.0)
    assert one.wall_time > 1e9


def test_refusals(tmp_path):
    """Something that is neither a graph nor a meta graph, and a tag used twice, are refused with TensorFlow's words."""
    with tf.summary.FileWriter(tmp_path) as writer:
        with pytest.raises(TypeError, match="must be an instance of `Graph` or the deprecated `GraphDef`"):
            writer.add_graph("graph")
        with pytest.raises(ValueError, match="only graph, or graph_def"):
            writer.add_graph(tf.get_default_graph(), graph_def=tf.GraphDef())
        with pytest.raises(TypeError, match="meta_graph_def must be type MetaGraphDef"):
            writer.add_meta_graph("meta")
        with pytest.raises(TypeError, match="Expected an event_pb2"):
            writer.add_event("event")
        writer.add_run_metadata(tf.RunMetadata(), "tag")
        with pytest.raises(ValueError, match="The provided tag was already used"):
            writer.add_run_metadata(tf.RunMetadata(), "tag")


def test_metadata_is_written_once_for_a_tag(tmp_path):
    """Only the first value of a tag carries its metadata; the caller's message is left as it is."""
    summary = message()
    summary.value[0].metadata.plugin_data.plugin_name = "p"
    with tf.summary.FileWriter(tmp_path) as writer:
        writer.add_summary(summary, 1)
        writer.add_summary(summary, 2)
    first, second = events(tmp_path)
    assert first.summary.value[0].metadata.plugin_data.plugin_name == "p"
    assert not second.summary.value[0].HasField("metadata")
    assert summary.value[0].HasField("metadata")


def test_close_and_reopen(tmp_path):
    """A closed writer drops events with a warning; reopened, it goes on with a second file and leaves the first alone."""
    writer = tf.summary.FileWriter(tmp_path, filename_suffix=".end")
    writer.add_summary(message(), 1)
    writer.close()
    writer.close()
    with pytest.warns(UserWarning, match="closed FileWriter"):
        writer.add_summary(message(), 2)
    writer.reopen()
    writer.add_summary(message(), 3)
    writer.close()
    assert [event.step for event in events(tmp_path)] == [1, 3]
    assert all(path.name.endswith(".end") for path in tmp_path.iterdir())
    assert len(list(tmp_path.iterdir())) == 2


def test_flushing(tmp_path):
    """Events reach the file after `max_queue` of them, after `flush_secs`, and by `flush`."""
    queued = tf.summary.FileWriter(tmp_path / "queue", max_queue=2)
    timed = tf.summary.FileWriter(tmp_path / "time", flush_secs=0)
    for step in range(5):
        queued.add_summary(message(), step)
    timed.add_summary(message(), 7)
    assert [event.step for event in events(tmp_path / "queue")] == [0, 1, 2]
    assert [event.step for event in events(tmp_path / "time")] == [7]
    queued.flush()
    assert len(events(tmp_path / "queue")) == 5
    queued.close()
    timed.close()


def test_a_writer_of_a_session(tmp_path):
    """With `session` events go through a writer that lives there."""
    with tf.Session() as session:
        writer = tf.summary.FileWriter(tmp_path, session=session)
        writer.add_summary(message(), 3)
        writer.close()
        writer.reopen()
        writer.add_summary(message(), 4)
        writer.close()
    assert [event.step for event in events(tmp_path)] == [3, 4]


def test_the_cache_has_one_writer_for_a_directory(tmp_path):
    """`get` gives the same writer until `clear`, which closes it."""
    cache = tf.summary.FileWriterCache
    writer = cache.get(str(tmp_path))
    assert writer is cache.get(str(tmp_path))
    cache.clear()
    assert writer is not cache.get(str(tmp_path))
    cache.clear()
    assert tf.train.SummaryWriterCache is cache
    assert tf.train.SummaryWriter is tf.summary.FileWriter


def test_damaged_files(tmp_path):
    """A last record that is not whole ends the events; damage inside is DataLossError after the events before it."""
    with tf.summary.FileWriter(tmp_path) as writer:
        for step in range(3):
            writer.add_summary(message(), step)
    (path,) = tmp_path.iterdir()
    data = path.read_bytes()
    steps = []
    for cut in range(1, 30):
        path.write_bytes(data[:-cut])
        steps.append([event.step for event in tf.train.summary_iterator(str(path))])
    assert steps == [[0, 0, 1]] * 29
    damaged = bytearray(data)
    damaged[-20] ^= 1
    path.write_bytes(bytes(damaged))
    iterator = tf.train.summary_iterator(str(path))
    assert [next(iterator).step for _ in range(3)] == [0, 0, 1]
    with pytest.raises(tf.errors.DataLossError, match="corrupted record"):
        next(iterator)
    with pytest.raises(tf.errors.NotFoundError):
        tf.train.summary_iterator(str(tmp_path / "nothing"))


@pytest.mark.usefixtures("eager")
def test_eager_mode_is_refused(tmp_path):
    """FileWriter belongs to graphs."""
    with pytest.raises(RuntimeError, match="not compatible with eager execution"):
        tf.summary.FileWriter(tmp_path)
