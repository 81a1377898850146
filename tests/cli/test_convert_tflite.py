"""`python -m stoker convert model out.tflite`: SavedModels and frozen graphs, with the options of tflite_convert."""

from __future__ import annotations

import numpy as np
import pytest

import stoker.compat.v1 as tf
from stoker._src.cli.lite_report import quantization_text
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


@pytest.mark.parametrize(("option", "is_one"), [("=TRUE", True), ("=FALSE", False), ("=true", True), ("", True)])
def test_ranges_of_concatenations(tmp_path, option, is_one):
    """--change_concat_input_ranges takes TRUE or FALSE, as that of tflite_convert does, or stands alone: the inputs get the range of the result."""
    with tf.Graph().as_default() as graph:
        x, y = (tf.placeholder(tf.float32, [1, 4], name=name) for name in "xy")
        fake_quant = tf.quantization.fake_quant_with_min_max_args
        parts = [fake_quant(tf.nn.relu(each), 0, high) for each, high in ((x, 1), (y, 2))]
        fake_quant(tf.concat(parts, 1), 0, 2, name="z")
        tf.train.write_graph(graph, str(tmp_path), "frozen.pb", as_text=False)
    arguments = [str(tmp_path / "frozen.pb"), str(tmp_path / "model.tflite"), "--input_arrays=x,y", "--output_arrays=z"]
    arguments += ["--inference_type=QUANTIZED_UINT8", "--mean_values=128,128", "--std_dev_values=127,64"]
    assert main(["convert", *arguments, f"--change_concat_input_ranges{option}"]) == 0
    (joined,) = (
        o for o in read_model((tmp_path / "model.tflite").read_bytes()).main.operators if o.code == "CONCATENATION"
    )
    scales = {quantization_text(each.quantization) for each in joined.inputs if each is not None}
    assert (len(scales) == 1) == is_one


def test_tags_that_a_model_does_not_have(models, capsys):
    """One line names the tags that the SavedModel has."""
    arguments = ["convert", str(models / "saved"), str(models / "model.tflite"), "--saved_model_tag_set=train"]
    assert main(arguments) == 1
    assert "tags 'train' could not be found in SavedModel, with available tags '[{'serve'}]'" in capsys.readouterr().err


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
