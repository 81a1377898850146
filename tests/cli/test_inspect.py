"""stoker inspect."""

import subprocess
import sys

import pytest

import stoker.compat.v1 as tf
from stoker._src.cli.main import main

Feature = tf.train.Feature


def _example(i):
    return tf.train.Example(
        features=tf.train.Features(
            feature={
                "x": Feature(float_list=tf.train.FloatList(value=[0.5, i])),
                "t": Feature(bytes_list=tf.train.BytesList(value=[b"word"] * (i % 2))),
            }
        )
    ).SerializeToString()


@pytest.mark.parametrize("ending", ["", ".index"])
def test_checkpoints(tmp_path, capsys, ending):
    """The tensors of a checkpoint with dtypes, shapes and slices, and how much they are together."""
    prefix = str(tmp_path / "model")
    with tf.Graph().as_default(), tf.Session() as session:
        tf.get_variable("w", [4, 3], partitioner=tf.fixed_size_partitioner(2))
        tf.train.create_global_step()
        tf.Variable(["a"], name="words")
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, prefix)
    assert main(["inspect", prefix + ending]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{prefix}: a checkpoint of 3 tensors in 1 data file(s)",
        "  global_step  int64 scalar",
        "  w            float32 4 x 3, 2 slices",
        "  words        string 1",
        "13 numbers, 56 bytes",
    ]
    (tmp_path / "model.index").write_bytes(b"no index")
    assert main(["inspect", prefix]) == 1
    assert "model.index" in capsys.readouterr().err


@pytest.mark.parametrize("options", [None, "GZIP", "ZLIB"])
def test_examples(tmp_path, capsys, options):
    """Counts, sizes, features with a specification to parse them, and the first records, of any compression."""
    path = str(tmp_path / "x.tfrecord")
    with tf.io.TFRecordWriter(path, options) as writer:
        for i in range(4):
            writer.write(_example(i))
    assert main(["inspect", path, "-n", "1"]) == 0
    out = capsys.readouterr().out
    assert "4 records" in out
    assert "'x': tf.io.FixedLenFeature([2], tf.float32)," in out
    assert "'t': tf.io.VarLenFeature(tf.string)," in out
    assert "The first 1:" in out


def test_events(tmp_path, capsys):
    """Tags with their kinds, numbers of values and steps."""
    path = str(tmp_path / "events")
    with tf.io.TFRecordWriter(path) as writer:
        writer.write(tf.Event(wall_time=1.7e9, file_version="brain.Event:2").SerializeToString())
        for step in range(5):
            value = tf.Summary.Value(tag="loss", simple_value=1 / (step + 1))
            writer.write(tf.Event(wall_time=1.7e9, step=step, summary=tf.Summary(value=[value])).SerializeToString())
    assert main(["inspect", path]) == 0
    out = capsys.readouterr().out
    assert "Events of steps 0 to 4" in out
    assert "loss  scalar  5" in out


def test_sequences_and_other_records(tmp_path, capsys):
    """SequenceExamples are told from Examples; anything else is shown as text."""
    path = str(tmp_path / "s")
    step = Feature(float_list=tf.train.FloatList(value=[1.5]))
    lists = tf.train.FeatureLists(feature_list={"l": tf.train.FeatureList(feature=[step] * 3)})
    with tf.io.TFRecordWriter(path) as writer:
        writer.write(tf.train.SequenceExample(feature_lists=lists).SerializeToString())
    assert main(["inspect", path]) == 0
    assert "3 to 3" in capsys.readouterr().out
    with tf.io.TFRecordWriter(path) as writer:
        writer.write(b"plain \xff text")
    assert main(["inspect", path]) == 0
    assert "plain" in capsys.readouterr().out


def test_damage_is_reported_after_what_stands_before_it(tmp_path, capsys):
    """The records before the damage are counted, the status is 1."""
    path = tmp_path / "bad"
    with tf.io.TFRecordWriter(str(path)) as writer:
        writer.write(b"one")
        writer.write(b"two")
    path.write_bytes(path.read_bytes()[:-1])
    assert main(["inspect", str(path)]) == 1
    captured = capsys.readouterr()
    assert "1 records" in captured.out
    assert "truncated record" in captured.err
    assert main(["inspect", str(tmp_path / "none")]) == 1


def test_odd_files(tmp_path, capsys):
    """The beginning of a header at the end is damage; records of several kinds are told apart; names print on a line."""
    path = str(tmp_path / "odd")
    with tf.python_io.TFRecordWriter(path) as writer:
        feature = tf.train.Feature(int64_list=tf.train.Int64List(value=[7]))
        features = tf.train.Features(feature={"two\nlines": feature})
        writer.write(tf.train.Example(features=features).SerializeToString())
        writer.write(b"garbage")
    assert main(["inspect", path]) == 0
    shown = capsys.readouterr().out
    assert "1 of the first 2 records are something else." in shown
    assert "  two\\nlines  int64  1 of 1" in shown
    with open(path, "ab") as file:
        file.write(b"12345")
    assert main(["inspect", path]) == 1
    assert "the last 5 bytes are not a whole record" in capsys.readouterr().err


def test_a_reader_that_has_seen_enough(tmp_path):
    """A pipe that is closed early ends the command without a traceback."""
    path = str(tmp_path / "x.tfrecord")
    with tf.io.TFRecordWriter(path) as writer:
        writer.write(_example(1))
    command = [sys.executable, "-u", "-m", "stoker", "inspect", path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1
