"""Paths of fsspec work wherever a path does: each check writes and reads files under local, file:// and memory:// paths."""

from __future__ import annotations

import io
import json
import uuid

import numpy as np
import pytest
import torch

import stoker
import stoker.compat.v1 as tf
from stoker._src.cli.main import main
from stoker._src.graph import context


@pytest.fixture(params=["local", "file", "memory"])
def base(request, tmp_path):
    """A directory that exists, by each scheme."""
    if request.param == "memory":
        path = f"memory://{uuid.uuid4().hex}"
        tf.io.gfile.makedirs(path)
        yield path
        tf.io.gfile.rmtree(path)
    else:
        yield ("file://" if request.param == "file" else "") + str(tmp_path)


def _model() -> tuple:
    x = tf.placeholder(tf.float32, [None, 2], "x")
    w = tf.get_variable("w", [2, 3])
    return x, tf.identity(tf.matmul(x, w), "y")


def saver(base: str) -> None:
    """Saver, meta graphs, the checkpoint state, readers."""
    with tf.Graph().as_default(), tf.Session() as session:
        _model()
        session.run(tf.global_variables_initializer())
        value = session.run("w:0")
        made = tf.train.Saver(max_to_keep=1)
        for step in (1, 2):
            prefix = made.save(session, f"{base}/saved/model", global_step=step)
        assert tf.train.latest_checkpoint(f"{base}/saved") == prefix == f"{base}/saved/model-2"
        assert not tf.io.gfile.exists(f"{base}/saved/model-1.index")
        session.run(tf.global_variables_initializer())
        made.restore(session, prefix)
        np.testing.assert_array_equal(session.run("w:0"), value)
        assert tf.train.get_checkpoint_state(f"{base}/saved").model_checkpoint_path == prefix
        np.testing.assert_array_equal(tf.train.load_variable(f"{base}/saved", "w"), value)
        assert tf.train.list_variables(prefix) == [("w", [2, 3])]
        older = tf.train.Saver(write_version=tf.train.SaverDef.V1).save(session, f"{base}/saved/older")
        made.restore(session, older)
    with tf.Graph().as_default(), tf.Session() as session:
        tf.train.import_meta_graph(f"{prefix}.meta").restore(session, prefix)
        np.testing.assert_array_equal(session.run("w:0"), value)
        tf.train.init_from_checkpoint(prefix, {"w": tf.get_variable("other", [2, 3])})
        session.run(tf.global_variables_initializer())
        np.testing.assert_array_equal(session.run("other:0"), value)


def objects(base: str) -> None:
    """Checkpoint and CheckpointManager."""
    with context.enter_eager():
        v = tf.Variable([1.0, 2.0])
        manager = tf.train.CheckpointManager(tf.train.Checkpoint(v=v), f"{base}/objects", max_to_keep=1)
        manager.save()
        path = manager.save()
        assert manager.checkpoints == [path]
        v.assign([0.0, 0.0])
        stoker.train.Checkpoint(v=v).restore(manager.latest_checkpoint).assert_existing_objects_matched()
        assert v.numpy().tolist() == [1.0, 2.0]


def events(base: str) -> None:
    """FileWriter, summary iterators, and `stoker inspect` of an event file."""
    with tf.Graph().as_default():
        writer = tf.summary.FileWriter(f"{base}/logs")
        writer.add_summary(tf.Summary(value=[tf.Summary.Value(tag="loss", simple_value=2.0)]), 3)
        writer.close()
    (name,) = tf.io.gfile.listdir(f"{base}/logs")
    found = [
        e.summary.value[0].simple_value for e in tf.train.summary_iterator(f"{base}/logs/{name}") if e.summary.value
    ]
    assert found == [2.0]
    assert main(["inspect", f"{base}/logs/{name}"]) == 0
    with context.enter_eager():
        with stoker.summary.create_file_writer(f"{base}/logs2").as_default():
            stoker.summary.scalar("loss", 1.0, step=1)
        assert len(tf.io.gfile.listdir(f"{base}/logs2")) == 1


def saved_models(base: str) -> None:
    """simple_save, Builder, both loaders, `stoker saved_model`, `stoker inspect`, to_torch."""
    path = f"{base}/export"
    with tf.Graph().as_default(), tf.Session() as session:
        x, y = _model()
        session.run(tf.global_variables_initializer())
        expected = session.run(y, {x: [[1.0, 2.0]]})
        tf.saved_model.simple_save(session, path, {"x": x}, {"y": y})
    assert tf.saved_model.contains_saved_model(path)
    with tf.Graph().as_default(), tf.Session() as session:
        tf.saved_model.loader.load(session, ["serve"], path)
        np.testing.assert_array_equal(session.run("y:0", {"x:0": [[1.0, 2.0]]}), expected)
    with context.enter_eager():
        loaded = stoker.saved_model.load(path)
        result = loaded.signatures["serving_default"](x=tf.constant([[1.0, 2.0]]))["y"]
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-6, atol=1e-6)
    assert main(["saved_model", "show", "--dir", path, "--all"]) == 0
    with tf.io.gfile.GFile(f"{base}/x.npy", "wb") as file:
        np.save(file, np.array([[1.0, 2.0]], np.float32))
    run = ["--dir", path, "--tag_set", "serve", "--signature_def", "serving_default", "--inputs", f"x={base}/x.npy"]
    assert main(["saved_model", "run", *run, "--outdir", f"{base}/results"]) == 0
    with tf.io.gfile.GFile(f"{base}/results/y.npy", "rb") as file:
        np.testing.assert_array_equal(np.load(io.BytesIO(file.read())), expected)
    assert main(["saved_model", "run", *run, "--outdir", f"{base}/results"]) == 1
    assert main(["inspect", path, "--json"]) == 0
    np.testing.assert_allclose(
        stoker.to_torch(path)(torch.tensor([[1.0, 2.0]]))["y"].detach(), expected, rtol=1e-6, atol=1e-6
    )


def conversion(base: str) -> None:
    """to_torch of checkpoints and frozen graphs, `stoker convert` and `stoker inspect` of them, with a map and pictures."""
    with tf.Graph().as_default(), tf.Session() as session:
        x, y = _model()
        session.run(tf.global_variables_initializer())
        value, expected = session.run([session.graph.get_tensor_by_name("w:0"), y], {x: [[1.0, 2.0]]})
        prefix = tf.train.Saver().save(session, f"{base}/model")
        frozen = tf.graph_util.convert_variables_to_constants(session, session.graph.as_graph_def(), ["y"])
    tf.io.write_graph(frozen, base, "frozen.pb", as_text=False)
    tf.io.write_graph(frozen, base, "frozen.pbtxt")
    for source in (prefix, f"{prefix}.meta", f"{base}/frozen.pb", f"{base}/frozen.pbtxt"):
        module = stoker.to_torch(source, "x", "y")
        np.testing.assert_allclose(module(torch.tensor([[1.0, 2.0]])).detach(), expected, rtol=1e-6, atol=1e-6)
    with tf.io.gfile.GFile(f"{base}/names.json", "w") as file:
        file.write(json.dumps({"w": "weight"}))
    assert main(["convert", prefix, f"{base}/out.safetensors", "--map", f"{base}/names.json"]) == 0
    assert main(["convert", prefix, f"{base}/many.safetensors", "--max-shard-size", "1"]) == 0
    assert main(["convert", f"{base}/out.safetensors", f"{base}/back", "--rename", "weight=w"]) == 0
    np.testing.assert_array_equal(tf.train.load_variable(f"{base}/back", "w"), value)
    assert main(["inspect", f"{base}/back", "--stats"]) == 0
    assert main(["inspect", f"{base}/frozen.pb", "--graph", f"{base}/graph.svg"]) == 0
    assert main(["inspect", f"{base}/frozen.pbtxt", "--graph", f"{base}/graphs"]) == 0
    assert tf.io.gfile.exists(f"{base}/graph.svg") and len(tf.io.gfile.listdir(f"{base}/graphs")) == 1


def records(base: str) -> None:
    """TFRecord writers, iterators and readers, parsing, and `stoker inspect` of records."""
    example = tf.train.Example()
    example.features.feature["a"].int64_list.value.append(5)
    for kind in ("", "GZIP"):
        path = f"{base}/data{kind}.tfrecord"
        with tf.io.TFRecordWriter(path, kind) as writer:
            writer.write(example.SerializeToString())
        assert list(tf.io.tf_record_iterator(path, tf.io.TFRecordOptions(kind))) == [example.SerializeToString()]
        assert main(["inspect", path]) == 0
    with tf.Graph().as_default(), tf.Session() as session:
        queue = tf.train.string_input_producer([f"{base}/data.tfrecord"], num_epochs=1)
        _, record = tf.TFRecordReader().read(queue)
        parsed = tf.io.parse_single_example(record, {"a": tf.io.FixedLenFeature([], tf.int64)})
        session.run(tf.local_variables_initializer())
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        assert session.run(parsed["a"]) == 5
        coordinator.request_stop()
        coordinator.join(threads, stop_grace_period_secs=60)


def files(base: str) -> None:
    """gfile, file ops, text readers, vocabularies of tables and feature columns."""
    path = f"{base}/words.txt"
    with tf.io.gfile.GFile(path, "w") as file:
        file.write("red\ngreen\n")
    assert tf.io.gfile.glob(f"{base}/*.txt") == [path]
    tf.io.gfile.copy(path, f"{base}/copy.txt")
    tf.io.gfile.rename(f"{base}/copy.txt", f"{base}/moved.txt")
    assert sorted(tf.io.gfile.listdir(base)) == ["moved.txt", "words.txt"]
    with tf.Graph().as_default(), tf.Session() as session:
        table = tf.contrib.lookup.index_table_from_file(path) if hasattr(tf, "contrib") else None
        table = table or tf.lookup.StaticHashTable(
            tf.lookup.TextFileInitializer(path, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER),
            -1,
        )  # fmt: skip
        ids = table.lookup(tf.constant(["green", "blue"]))
        column = tf.feature_column.categorical_column_with_vocabulary_file("c", path)
        hot = tf.feature_column.input_layer(
            {"c": tf.constant([["green"]])}, [tf.feature_column.indicator_column(column)]
        )
        content = tf.io.read_file(path)
        written = tf.io.write_file(f"{base}/made/by_op.txt", "x")
        matched = tf.io.matching_files(f"{base}/*.txt")
        session.run(tf.tables_initializer())
        assert session.run(ids).tolist() == [1, -1]
        assert session.run(hot).tolist() == [[0.0, 1.0]]
        assert session.run(content) == b"red\ngreen\n"
        session.run(written)
        assert tf.io.gfile.GFile(f"{base}/made/by_op.txt").read() == "x"
        assert [each.decode() for each in session.run(matched)] == [f"{base}/moved.txt", path]


def sessions(base: str) -> None:
    """MonitoredTrainingSession with its checkpoints and summaries, and going on from them."""
    for expected in (2, 4):
        with tf.Graph().as_default():
            step = tf.train.get_or_create_global_step()
            tf.summary.scalar("s", tf.constant(1.0))
            train = tf.assign_add(step, 1)
            with tf.train.MonitoredTrainingSession(
                checkpoint_dir=f"{base}/run", save_checkpoint_steps=1, save_summaries_steps=1, log_step_count_steps=None
            ) as session:
                for _ in range(2):
                    found = session.run(train)
            assert found == expected


CHECKS = [saver, objects, events, saved_models, conversion, records, files, sessions]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_paths(base, check, capsys):
    """Everything that takes a path takes these."""
    check(base)
