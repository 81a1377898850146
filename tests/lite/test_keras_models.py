"""Keras models: files that TensorFlow 1.15, tf_keras and Keras 3 wrote, and objects. The golden files are made by tests/golden/keras_models/make.py."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import stoker as tf2
import stoker.compat.v1 as tf
from stoker._src.formats.keras_files import KerasModel, Weights
from stoker._src.lite.flatbuffer import read_model
from stoker._src.lite.keras.network import build_network

h5py = pytest.importorskip("h5py")
GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "keras_models"
FILES = sorted(path.name for path in GOLDEN.iterdir() if path.suffix in (".h5", ".keras"))


def _run(content: bytes, arrays: list[np.ndarray]) -> list[np.ndarray]:
    interpreter = tf.lite.Interpreter(model_content=content)
    interpreter.allocate_tensors()
    for detail, value in zip(interpreter.get_input_details(), arrays, strict=True):
        interpreter.set_tensor(detail["index"], value.astype(detail["dtype"]))
    interpreter.invoke()
    return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]


@pytest.mark.parametrize("name", FILES)
def test_a_saved_model_computes_what_keras_does(name):
    """The converted model's outputs are those of Keras's `predict`, also of the second call of a model that keeps states."""
    with np.load((GOLDEN / name).with_suffix(".npz")) as file:
        values = dict(file)
    inputs = [values[f"i{n}"] for n in range(int(values["n"]))]
    read = tf.lite.TFLiteConverter.from_keras_model_file
    names = read(str(GOLDEN / name)).get_input_arrays()
    shapes = {each: value.shape for each, value in zip(names, inputs, strict=True)}
    interpreter = tf.lite.Interpreter(model_content=read(str(GOLDEN / name), input_shapes=shapes).convert())
    interpreter.allocate_tensors()
    for call in ("o", "next") if "next0" in values else ("o",):
        for detail, value in zip(interpreter.get_input_details(), inputs, strict=True):
            interpreter.set_tensor(detail["index"], value.astype(detail["dtype"]))
        interpreter.invoke()
        found = [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]
        assert len(found) == sum(key.startswith(call) for key in values)
        for position, value in enumerate(found):
            np.testing.assert_allclose(value, values[f"{call}{position}"], rtol=1e-4, atol=1e-5)


def test_lstm_layers_become_fused_cells():
    """The cell of an LSTM layer with the usual activations is TFLite's own."""
    content = tf.lite.TFLiteConverter.from_keras_model_file(str(GOLDEN / "keras3_lstm.keras")).convert()
    assert read_model(content).operator_counts()["LSTM"] == 2


def test_arrays_and_shapes_by_name():
    """Inputs are named after the input layers; other tensors can be asked for, and an open size can be given."""
    path = str(GOLDEN / "legacy_functional.h5")
    converter = tf.lite.TFLiteConverter.from_keras_model_file(path, input_shapes={"a": [3, 6], "b": [3, 4]})
    assert converter.get_input_arrays() == ["a", "b"]
    shapes = [
        each["shape"].tolist() for each in tf.lite.Interpreter(model_content=converter.convert()).get_input_details()
    ]
    assert shapes == [[3, 6], [3, 4]]
    part = tf.lite.TFLiteConverter.from_keras_model_file(path, ["a"], output_arrays=["pre/BiasAdd"]).convert()
    assert read_model(part).operator_counts() == {"FULLY_CONNECTED": 1}
    with pytest.raises(ValueError, match="Invalid tensors 'nothing'"):
        tf.lite.TFLiteConverter.from_keras_model_file(path, ["nothing"])


def _sequential(*layers: tuple[str, dict[str, Any]], shape=(None, 3)) -> KerasModel:
    described = [{"class_name": "InputLayer", "config": {"batch_input_shape": list(shape), "name": "x"}}]
    described += [
        {"class_name": kind, "config": {"name": f"l{n}", **config}} for n, (kind, config) in enumerate(layers)
    ]
    return KerasModel({"class_name": "Sequential", "config": {"name": "m", "layers": described}}, {}, "2.15.0")


def test_unknown_layers_are_named_together():
    """One error lists every layer without a rule, with its class."""
    model = _sequential(
        ("Lambda", {}),
        ("Activation", {"activation": "relu"}),
        ("Mine", {}),
        ("TFOpLambda", {"function": "io.write_file"}),
    )
    with pytest.raises(
        ValueError, match=r"'l0' of the class Lambda.*'l2' of the class Mine.*'l3' of the class TFOpLambda"
    ):
        build_network(model)


@pytest.mark.parametrize(
    ("layer", "shape", "message"),
    [
        (("Activation", {"activation": "wavy"}), [None, 3], "'l0' of the class Activation.*activation 'wavy'"),
        (("MultiHeadAttention", {"num_heads": 1, "key_dim": 2}), [None, 3, 2], "without a value"),
        (("RNN", {"cell": {"class_name": "Mine", "config": {}}}), [None, 3, 2], "its cell has the class Mine"),
        (("Dense", {"units": 2}), [None, 3], "no weight 'kernel'"),
        (("LSTM", {"stateful": True}), [None, 3, 2], "recurrent_kernel|stateful"),
        (("UpSampling2D", {"interpolation": "lanczos3"}), [None, 2, 2, 1], "lanczos3"),
    ],
)
def test_settings_that_cannot_be_converted(layer, shape, message):
    """A layer that is known, with a setting that is not, is refused by name."""
    with pytest.raises(ValueError, match=message):
        build_network(_sequential(layer, shape=shape))


_POINTS = np.linspace(-4, 4, 12, dtype=np.float32).reshape(2, 6)
_LIMITED = np.clip(_POINTS, -1, 1)
# What Keras 3 documents each activation to be.
_NEWER = {
    "celu": np.where(_POINTS > 0, _POINTS, np.expm1(_POINTS)),
    "glu": _POINTS[:, :3] / (1 + np.exp(-_POINTS[:, 3:])),
    "hard_shrink": np.where(np.abs(_POINTS) > 0.5, _POINTS, 0),
    "hard_silu": _POINTS * np.clip(_POINTS + 3, 0, 6) / 6,
    "hard_sigmoid": np.clip(_POINTS / 6 + 0.5, 0, 1),
    "hard_swish": _POINTS * np.clip(_POINTS + 3, 0, 6) / 6,
    "hard_tanh": _LIMITED,
    "log_sigmoid": -np.log1p(np.exp(-_POINTS)),
    "soft_shrink": np.sign(_POINTS) * np.maximum(np.abs(_POINTS) - 0.5, 0),
    "sparse_plus": np.where(_POINTS > 1, _POINTS, (_LIMITED + 1) ** 2 / 4),
    "sparse_sigmoid": (_LIMITED + 1) / 2,
    "squareplus": (_POINTS + np.sqrt(_POINTS**2 + 4)) / 2,
    "tanh_shrink": _POINTS - np.tanh(_POINTS),
}


@pytest.mark.parametrize("name", _NEWER)
def test_activations_of_keras_3(name):
    """A file may name an activation that only Keras 3 has, or call it as a function."""
    model = _sequential(("Activation", {"activation": name}), shape=(2, 6))
    model.version = "3.15.1"
    network = build_network(model)
    with tf.Session(graph=network.graph) as session:
        found = session.run(network.outputs[0], {network.inputs[0]: _POINTS})
        content = tf.lite.TFLiteConverter.from_session(session, network.inputs, network.outputs).convert()
    np.testing.assert_allclose(found, _NEWER[name], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(_run(content, [_POINTS])[0], _NEWER[name], rtol=1e-5, atol=1e-5)


def test_custom_objects():
    """Activations and layers that the file only names come from the caller."""

    class Scale:
        def __init__(self, name: str, by: float) -> None:
            self.by, self.name = by, name

        def set_weights(self, weights: list[np.ndarray]) -> None:
            self.by *= float(weights[0])

        def __call__(self, x: Any) -> Any:
            return x * self.by

    model = _sequential(("Scale", {"by": 2.0}), ("Activation", {"activation": "double"}))
    model.weights["l0"] = Weights({"l0/w": np.array(3.0)})
    network = build_network(model, {"Scale": Scale, "double": lambda x: x + x})
    with tf.Session(graph=network.graph) as session:
        found = session.run(network.outputs, {network.inputs[0]: np.ones([2, 3])})
    np.testing.assert_array_equal(found[0], np.full([2, 3], 12.0))


def test_functions_of_lambda_layers():
    """A file does not hold the function of a Lambda layer. It comes from the caller, by the name of the layer or of the function."""
    named = {"class_name": "function", "config": "half"}
    model = _sequential(("Lambda", {}), ("Lambda", {"function": named, "arguments": {"by": 4.0}}))
    given = {"l0": lambda x: x + 1.0, "half": lambda x, by: x / by}
    network = build_network(model, given)
    with tf.Session(graph=network.graph) as session:
        found = session.run(network.outputs, {network.inputs[0]: np.ones([2, 3])})
    np.testing.assert_array_equal(found[0], np.full([2, 3], 0.5))
    with pytest.raises(ValueError, match="'l0' of the class Lambda cannot be converted: its function failed"):
        build_network(model, {**given, "l0": lambda x: x.nothing})


def test_files_that_are_no_models(tmp_path):
    """What is missing, no HDF5, weights alone, or not JSON is an error that says so."""
    read = tf.lite.TFLiteConverter.from_keras_model_file
    with pytest.raises(OSError, match="does not exist"):
        read(str(tmp_path / "none.h5"))
    (tmp_path / "text.h5").write_text("hello")
    with pytest.raises(OSError, match="neither an HDF5 file"):
        read(str(tmp_path / "text.h5"))
    (tmp_path / "cut.h5").write_bytes((GOLDEN / "tf1_gru.h5").read_bytes()[:3000])
    with pytest.raises(OSError, match="cannot be read as HDF5"):
        read(str(tmp_path / "cut.h5"))
    with h5py.File(tmp_path / "weights.h5", "w") as file:
        file.create_group("model_weights")
    with pytest.raises(ValueError, match="weights only"):
        read(str(tmp_path / "weights.h5"))
    with h5py.File(tmp_path / "bad.h5", "w") as file:
        file.attrs["model_config"] = "{"
    with pytest.raises(ValueError, match="no JSON"):
        read(str(tmp_path / "bad.h5"))


def test_without_h5py(monkeypatch):
    """The error names the package to install."""
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(ImportError, match="pip install h5py"):
        tf.lite.TFLiteConverter.from_keras_model_file(str(GOLDEN / "tf1_gru.h5"))


class Doubled(tf2.Module):
    """A module that says what it takes."""

    def __init__(self) -> None:
        super().__init__()
        self.w = tf2.Variable(np.eye(3, dtype=np.float32) * 2)
        self.inputs = [tf2.TensorSpec([None, 3], tf2.float32, name="x")]

    def __call__(self, x: Any) -> Any:
        return tf2.matmul(x, self.w)


@pytest.mark.usefixtures("eager")
def test_objects_that_say_what_they_take():
    """A callable with `inputs`, and a function with a signature, convert like Keras models; anything else is told what it lacks."""
    module = Doubled()
    convert = tf2.lite.TFLiteConverter.from_keras_model
    x = np.array([[1, 2, 3]], np.float32)
    np.testing.assert_allclose(_run(convert(module).convert(), [x])[0], 2 * x)
    signed = tf2.function(lambda x: x + 1, input_signature=[tf2.TensorSpec([1, 3], tf2.float32)])
    np.testing.assert_allclose(_run(convert(signed).convert(), [x])[0], x + 1)
    with pytest.raises(ValueError, match="does not say what its inputs are"):
        convert(lambda x: x)
    with pytest.raises(ValueError, match="not int"):
        convert(3)


def test_a_model_of_the_keras_package():
    """Objects of Keras are read by their own description and weights, whatever computes them."""
    layers = [
        {
            "class_name": "Dense",
            "config": {"name": "d", "units": 2, "activation": "relu", "batch_input_shape": [None, 3]},
        }
    ]
    config = {"name": "m", "layers": layers}
    kernel, bias = np.arange(6, dtype=np.float32).reshape(3, 2), np.array([1, -100], np.float32)
    weights = [
        SimpleNamespace(path="m/d/kernel", numpy=lambda: kernel),
        SimpleNamespace(path="m/d/bias", numpy=lambda: bias),
    ]
    described = {"class_name": "Sequential", "config": config, "keras_version": "3.9.0"}
    model: Any = type("Sequential", (), {})()
    model.layers = [SimpleNamespace(name="d", weights=weights)]
    model.get_config, model.to_json = lambda: config, lambda: json.dumps(described)
    content = tf2.lite.TFLiteConverter.from_keras_model(model).convert()
    x = np.array([[1, 2, 3]], np.float32)
    np.testing.assert_allclose(_run(content, [x])[0], np.maximum(x @ kernel + bias, 0))
    assert list(tf.lite.Interpreter(model_content=content).get_signature_list()) == ["serving_default"]
