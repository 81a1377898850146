"""`python -m stoker convert model out.tflite`: SavedModels and frozen graphs, with the options of tflite_convert."""

from __future__ import annotations

import numpy as np
import pytest

import stoker.compat.v1 as tf
from stoker._src.cli.main import main
from stoker._src.lite.flatbuffer import read_model
from tests.lite.running import run_model


@pytest.fixture
def models(tmp_path):
    """A SavedModel and a frozen graph of y = 2 x + 1."""
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        x = tf.placeholder(tf.float32, [None, 3], name="x")
        w = tf.get_variable("w", initializer=np.float32(2))
        y = tf.add(x * w, 1.0, name="y")
        session.run(tf.global_variables_initializer())
        tf.saved_model.simple_save(session, str(tmp_path / "saved"), {"x": x}, {"y": y})
        frozen = tf.graph_util.convert_variables_to_constants(session, graph.as_graph_def(), ["y"])
        tf.train.write_graph(frozen, str(tmp_path), "frozen.pb", as_text=False)
    return tmp_path


def test_a_saved_model(models, capsys):
    """The directory of a SavedModel needs no options."""
    assert main(["convert", str(models / "saved"), str(models / "model.tflite")]) == 0
    assert "bytes written to" in capsys.readouterr().out
    model = (models / "model.tflite").read_bytes()
    np.testing.assert_array_equal(run_model(model, [np.ones((1, 3), np.float32)])[0], [[3, 3, 3]])


def test_a_frozen_graph(models):
    """A frozen graph needs the names of its inputs and outputs; shapes may be given."""
    names = ["--input_arrays", "x", "--output_arrays", "y", "--input_shapes", "4,3"]
    assert main(["convert", str(models / "frozen.pb"), str(models / "model.tflite"), *names]) == 0
    assert read_model((models / "model.tflite").read_bytes()).main.inputs[0].shape == (4, 3)


def test_the_paths_of_tflite_convert(models, capsys):
    """The model and the file to write may be options, as tflite_convert has them; both spellings at once are an error."""
    saved, out = str(models / "saved"), models / "out.bin"
    assert (
        main(["convert", "--saved_model_dir", saved, f"--output_file={out}", "--experimental_new_converter=true"]) == 0
    )
    np.testing.assert_array_equal(run_model(out.read_bytes(), [np.zeros((1, 3), np.float32)])[0], [[1, 1, 1]])
    names = ["--input_arrays=x", "--output_arrays=y"]
    assert main(["convert", "--graph_def_file", str(models / "frozen.pb"), str(models / "b.tflite"), *names]) == 0
    assert main(["convert", "--saved_model_dir", str(models / "none"), "--output_file", str(out)]) == 1
    assert "none' does not exist" in capsys.readouterr().err
    for wrong in (["--saved_model_dir", saved, saved, "c.tflite"], [saved], ["a", "b.tflite", "--output_file", "c"]):
        with pytest.raises(SystemExit):
            main(["convert", *wrong])


def test_a_picture(models):
    """A target that ends in .dot is the model's picture."""
    assert main(["convert", str(models / "saved"), str(models / "model.dot")]) == 0
    assert (models / "model.dot").read_text().startswith("digraph")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "--input_arrays and --output_arrays are required"),
        (["--input_arrays", "x", "--output_arrays", "z"], "Invalid tensors 'z'"),
        (["--input_arrays", "x", "--output_arrays", "y", "--input_shapes", "1,3:2"], "must have the same length"),
        (["--input_arrays", "x", "--output_arrays", "y", "--target_ops", "ALL"], "Invalid value for --target_ops"),
        (["--input_arrays", "x", "--output_arrays", "y", "--mean_values", "0"], "must be used together"),
        (
            ["--input_arrays", "x", "--output_arrays", "y", "--mean_values", "a", "--std_dev_values", "1"],
            "--mean_values and --std_dev_values are numbers",
        ),
        (["--input_arrays", "x", "--output_arrays", "y", "--default_ranges_min", "0"], "must be used together"),
    ],
)
def test_bad_options(models, options, message, capsys):
    """One line says what is wrong, and no file is written."""
    assert main(["convert", str(models / "frozen.pb"), str(models / "model.tflite"), *options]) == 1
    assert message in capsys.readouterr().err
    assert not (models / "model.tflite").exists()
