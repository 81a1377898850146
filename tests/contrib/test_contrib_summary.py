"""`tf.contrib.summary`: writers of a session, conditions, steps and what is written."""

from __future__ import annotations

import pytest

import stoker.compat.v1 as tf
from stoker._src.summary.state import STATE

summary = tf.contrib.summary


@pytest.fixture(autouse=True)
def clean_state():
    yield
    STATE.writer = STATE.step = STATE.recording = None


def written(directory):
    """(step, tag, kind of value) of everything, and the kinds of other events."""
    found = []
    for path in sorted(directory.iterdir()):
        for event in list(tf.train.summary_iterator(str(path)))[1:]:
            if event.HasField("summary"):
                found.extend((event.step, value.tag, value.WhichOneof("value")) for value in event.summary.value)
            else:
                found.append(event.WhichOneof("what"))
    return found


def test_a_graph_that_writes(tmp_path):
    """Each function adds an op that writes with the global step; nothing is recorded unless a block says so."""
    step = tf.train.get_or_create_global_step()
    increment = tf.assign_add(step, 1)
    writer = summary.create_file_writer(str(tmp_path))
    with writer.as_default():
        with summary.always_record_summaries(), tf.name_scope("scope"):
            always = [
                summary.scalar("s", 1.0),
                summary.histogram("h", [1.0, 2.0], family="f"),
                summary.image("i", tf.zeros([1, 2, 2, 1])),
                summary.audio("a", tf.zeros([1, 4]), 8000, 1),
                summary.generic("g", [1, 2], step=tf.constant(9, tf.int64)),
            ]
        with summary.record_summaries_every_n_global_steps(2):
            second = summary.scalar("second", 1.0)
        with summary.never_record_summaries():
            never = summary.scalar("never", 1.0)
        unsaid = summary.scalar("unsaid", 1.0)
        everything = summary.all_summary_ops()
        assert set(always) <= set(everything)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            with pytest.raises(tf.errors.NotFoundError, match="does not exist"):
                session.run(always[0])
            summary.initialize(graph=tf.get_default_graph(), session=session)
            assert all(session.run(always))
            for expected in (True, False, True):
                assert session.run([second, never, unsaid]) == [expected, False, False]
                session.run(increment)
            session.run(summary.flush())
            session.run(writer.close())
    assert written(tmp_path) == [
        "graph_def",
        (0, "scope/s", "simple_value"),
        (0, "f/scope/f/h", "histo"),
        (0, "scope/i/image/0", "image"),
        (0, "scope/a/audio", "audio"),
        (9, "scope/g", "tensor"),
        (0, "second", "simple_value"),
        (2, "second", "simple_value"),
    ]


def test_without_a_writer():
    """Summaries are no ops, and initializing is refused."""
    assert summary.scalar("s", 1.0).type == "NoOp"
    with pytest.raises(RuntimeError, match="No default tf"):
        summary.initialize()
    assert summary.eval_dir("model", "a") == "model/eval_a"


@pytest.mark.usefixtures("eager")
def test_eager_mode(tmp_path):
    """Summaries are written at once, events as they are."""
    writer = summary.create_file_writer(str(tmp_path))
    with writer.as_default(), summary.always_record_summaries():
        summary.scalar("s", 1.0, step=4)
        summary.import_event(tf.Event(step=5, wall_time=1.0).SerializeToString())
    writer.close()
    assert written(tmp_path) == [(4, "s", "simple_value"), None]


def test_embeddings(tmp_path):
    """The projector's settings stand as text beside the event file."""
    projector = tf.contrib.tensorboard.plugins.projector
    config = projector.ProjectorConfig()
    config.embeddings.add(tensor_name="embedding", metadata_path="words.tsv")
    with tf.summary.FileWriter(tmp_path) as writer:
        projector.visualize_embeddings(writer, config)
    assert 'tensor_name: "embedding"' in (tmp_path / "projector_config.pbtxt").read_text()
