"""`tf.lite.Interpreter` on models that TensorFlow converted."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import stoker as tf
from stoker._src.lite.flatbuffer import read_model, write_model

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "lite"
VALUES = np.load(GOLDEN / "values.npz")


def _interpreter(name: str, **options) -> tf.lite.Interpreter:
    return tf.lite.Interpreter(model_content=(GOLDEN / f"{name}.tflite").read_bytes(), **options)


def _arrays(name: str, side: str) -> list[np.ndarray]:
    return [VALUES[key] for key in VALUES.files if key.startswith(f"{name}/{side}")]


@pytest.mark.parametrize("name", ["network", "dynamic", "int8", "mixed", "control", "lstm", "fused_half", "text"])
def test_models_of_tensorflow_run_as_there(name):
    """Inputs in, outputs as TensorFlow's own interpreter computes them."""
    interpreter = _interpreter(name)
    interpreter.allocate_tensors()
    for detail, value in zip(interpreter.get_input_details(), _arrays(name, "in"), strict=True):
        interpreter.set_tensor(detail["index"], value.astype(object) if value.dtype.kind == "S" else value)
    interpreter.invoke()
    for detail, expected in zip(interpreter.get_output_details(), _arrays(name, "out"), strict=True):
        found = interpreter.get_tensor(detail["index"])
        if expected.dtype.kind == "S":
            assert found.tolist() == expected.tolist()
        else:
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_a_model_from_a_path(tmp_path):
    """A path may be a string, bytes or a Path; files of other file systems are read through gfile."""
    path = GOLDEN / "network.tflite"
    for spelling in (str(path), bytes(path), path):
        assert tf.lite.Interpreter(spelling).get_input_details()[0]["shape"].tolist() == [1, 8, 8, 1]
    with tf.io.gfile.GFile("memory://lite/network.tflite", "wb") as file:
        file.write(path.read_bytes())
    assert tf.lite.Interpreter("memory://lite/network.tflite").num_subgraphs() == 1


def test_details_of_tensors():
    """Details have name, index, shape, type and quantization. Temporary tensors, which have no name, are left out."""
    interpreter = _interpreter("int8")
    interpreter.allocate_tensors()
    (detail,) = interpreter.get_input_details()
    assert detail["name"] == "x" and detail["index"] == 0 and detail["dtype"] is np.int8
    assert detail["shape"].tolist() == [1, 8, 8, 1] and detail["shape_signature"].tolist() == [1, 8, 8, 1]
    scale, zero_point = detail["quantization"]
    assert scale == pytest.approx(2 / 255, rel=0.05) and zero_point == -1
    details = interpreter.get_tensor_details()
    assert len(details) == 13 and all(d["name"] for d in details)
    kernel = next(d for d in details if d["shape"].tolist() == [4, 3, 3, 1])
    assert len(kernel["quantization_parameters"]["scales"]) == 4
    assert len(_interpreter("control").get_tensor_details(1)) == 3
    assert _interpreter("dynamic").get_input_details()[0]["shape_signature"].tolist() == [-1, 64]


def test_neither_or_both_sources_are_errors():
    """Exactly one of path and content is needed, and it must be a model."""
    content = (GOLDEN / "network.tflite").read_bytes()
    for args, message in [
        ((), "must be specified"),
        (("model.tflite", content), "Can't both provide"),
        (("/no/such/model.tflite",), "Could not open '/no/such/model.tflite'"),
        ((None, b"TFL3"), "not a valid Flatbuffer buffer"),
        ((None, b"\0" * 100), "not a valid Flatbuffer buffer"),
        ((None, 3), "is bytes"),
    ]:
        with pytest.raises(ValueError, match=message):
            tf.lite.Interpreter(*args)


def test_resizing_an_input():
    """After a resize memory is allocated anew; the result has the size of the input."""
    interpreter = _interpreter("dynamic")
    index = interpreter.get_input_details()[0]["index"]
    interpreter.resize_tensor_input(index, [3, 64])
    interpreter.allocate_tensors()
    x = np.repeat(_arrays("dynamic", "in")[0], 3, axis=0)
    interpreter.set_tensor(index, x)
    interpreter.invoke()
    found = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    np.testing.assert_allclose(found, np.repeat(_arrays("dynamic", "out")[0], 3, axis=0), atol=1e-5)
    with pytest.raises(ValueError, match=r"\[-2, 64\]"):
        interpreter.resize_tensor_input(index, [-2, 64])
    with pytest.raises(ValueError, match="not an input"):
        interpreter.resize_tensor_input(99, [1])
    strict = _interpreter("network")
    with pytest.raises(ValueError, match="ResizeInputTensorStrict"):
        strict.resize_tensor_input(strict.get_input_details()[0]["index"], [2, 8, 8, 1], strict=True)


def test_failures_are_value_errors_that_do_not_repeat_earlier_ones():
    """Setting, invoking and allocating raise ValueError; as later versions of TensorFlow raise RuntimeError, it is one, too."""
    interpreter = _interpreter("network")
    index = interpreter.get_input_details()[0]["index"]
    for _ in range(2):
        with pytest.raises(ValueError) as caught:
            interpreter.invoke()
        assert isinstance(caught.value, RuntimeError)
        assert str(caught.value) == "Invoke called on model that is not ready."
    with pytest.raises(ValueError, match="Tensor is unallocated"):
        interpreter.set_tensor(index, np.zeros([1, 8, 8, 1], np.float32))
    with pytest.raises(ValueError, match="Tensor data is null"):
        interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    interpreter.allocate_tensors()
    with pytest.raises(ValueError, match="Got value of type FLOAT64 but expected type FLOAT32"):
        interpreter.set_tensor(index, np.zeros([1, 8, 8, 1]))
    with pytest.raises(ValueError, match="Dimension mismatch"):
        interpreter.set_tensor(index, np.zeros([1, 8, 8, 2], np.float32))
    for call in (interpreter.get_tensor, lambda n: interpreter.tensor(n)()):
        with pytest.raises(ValueError, match="Invalid tensor index 99"):
            call(99)


def test_views_of_tensors():
    """A view shares memory with the tensor. It must be gone before memory may move; its function may be kept."""
    interpreter = _interpreter("network")
    interpreter.allocate_tensors()
    source = interpreter.tensor(interpreter.get_input_details()[0]["index"])
    result = interpreter.tensor(interpreter.get_output_details()[0]["index"])
    source()[:] = _arrays("network", "in")[0]
    interpreter.invoke()
    np.testing.assert_allclose(result(), _arrays("network", "out")[0], rtol=1e-5)
    for held in (result(), result()[0]):
        for call in (interpreter.invoke, interpreter.allocate_tensors):
            with pytest.raises(RuntimeError, match="at least 1 reference to internal data") as caught:
                call()
            assert not isinstance(caught.value, ValueError)
        del held
    interpreter.invoke()


def test_intermediate_results_are_kept_on_demand():
    """With experimental_preserve_all_tensors every tensor can be read after a run."""
    interpreter = _interpreter("network", experimental_preserve_all_tensors=True)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], _arrays("network", "in")[0])
    interpreter.invoke()
    relu = next(d for d in interpreter.get_tensor_details() if d["shape"].tolist() == [1, 4, 4, 4])
    value = interpreter.get_tensor(relu["index"])
    assert value.min() == 0 and value.max() > 0


def test_signatures_share_variables():
    """Signature runners take and return arrays by name; those of one model see the same variables."""
    interpreter = _interpreter("variables")
    assert interpreter.get_signature_list() == {
        "add": {"inputs": ["x"], "outputs": ["count"]},
        "scale": {"inputs": ["factor"], "outputs": ["scaled"]},
    }
    add, scale = interpreter.get_signature_runner("add"), interpreter.get_signature_runner("scale")
    add(x=np.array([1, 2], np.float32))
    assert add(x=np.array([1, 2], np.float32))["count"].tolist() == [2, 4]
    assert scale(factor=np.array([10, 1], np.float32))["scaled"].tolist() == [20, 4]
    assert add.get_input_details()["x"]["shape"].tolist() == [2]
    assert add.get_output_details()["count"]["dtype"] is np.float32
    for call, message in [
        (lambda: interpreter.get_signature_runner("subtract"), 'Invalid signature_key provided: "subtract"'),
        (interpreter.get_signature_runner, "model has 2 Signatures"),
        (lambda: add(y=1), "Invalid Input name"),
        (add, "expected 1 vs provided 0"),
        (lambda: add(x=np.zeros([1, 2], np.float32)), r"'x' has the shape \[1, 2\], and the model takes \[2\]"),
        (lambda: add(x=[1.0, 2.0]), "FLOAT64"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()


def test_options_are_checked():
    """Threads are counted from one; kernels may be the reference ones."""
    with pytest.raises(ValueError, match="num_threads should >= 1"):
        _interpreter("network", num_threads=0)
    with pytest.raises(ValueError, match="type of num_threads should be int"):
        _interpreter("network", num_threads="two")
    interpreter = _interpreter(
        "network", num_threads=2, experimental_op_resolver_type=tf.lite.experimental.OpResolverType.BUILTIN_REF
    )
    interpreter.allocate_tensors()
    interpreter.invoke()


def test_delegates_that_cannot_be_loaded_are_named():
    """A delegate's library that is missing, or is none, is an error with its name."""
    with pytest.raises(ValueError, match=r"libnothing\.so") as caught:
        tf.lite.experimental.load_delegate("libnothing.so")
    assert isinstance(caught.value, OSError)
    with pytest.raises(ValueError, match=r"libm\.so.*tflite_plugin_create_delegate"):
        tf.lite.experimental.load_delegate("libm.so.6")
    with pytest.raises(ValueError, match="'gpu' is not a delegate"):
        _interpreter("network", experimental_delegates=["gpu"])


def test_inputs_that_are_not_set_are_zero():
    """A loop that counts to an input does not count to what happened to be in memory."""

    @tf.function(input_signature=[tf.TensorSpec([], tf.int32, name="n"), tf.TensorSpec([2], tf.float32, name="x")])
    def count(n, x):
        return {"y": tf.while_loop(lambda i, _: i < n, lambda i, y: (i + 1, y + 1.0), [0, x])[1]}

    model = tf.lite.TFLiteConverter.from_concrete_functions([count.get_concrete_function()]).convert()
    interpreter = tf.lite.Interpreter(model_content=model)
    inputs = {detail["name"]: detail["index"] for detail in interpreter.get_input_details()}
    (output,) = (detail["index"] for detail in interpreter.get_output_details())
    interpreter.allocate_tensors()
    interpreter.invoke()
    np.testing.assert_array_equal(interpreter.get_tensor(output), [0, 0])
    for name, value in (("n", np.int32(3)), ("x", np.float32([1, 2]))):
        interpreter.set_tensor(next(index for key, index in inputs.items() if name in key), value)
    interpreter.allocate_tensors()
    interpreter.invoke()
    np.testing.assert_array_equal(interpreter.get_tensor(output), [4, 5])


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.array(b"bytes", object), b"bytes"),
        (np.array(b"with zeros\0\0", object), b"with zeros\0\0"),
        (np.array("Grüße", object), "Grüße".encode()),
        (np.array("Grüße"), "Grüße".encode()),
        (np.array(b"bytes"), b"bytes"),
        (np.array("", object), b""),
    ],
    ids=["bytes", "zeros", "text", "characters", "fixed", "empty"],
)
def test_a_single_string(value, expected):
    """A string without dimensions is given as an object, as bytes or as text, by `set_tensor` and by a signature. LiteRT would read an object's address."""

    @tf.function(input_signature=[tf.TensorSpec([], tf.string, name="word")])
    def listed(word: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"words": tf.reshape(word, [1])}

    model = tf.lite.TFLiteConverter.from_concrete_functions([listed.get_concrete_function()]).convert()
    interpreter = tf.lite.Interpreter(model_content=model)
    interpreter.allocate_tensors()
    (given,), (result,) = interpreter.get_input_details(), interpreter.get_output_details()
    interpreter.invoke()
    assert interpreter.get_tensor(result["index"]).tolist() == [b""]
    interpreter.set_tensor(given["index"], value)
    interpreter.invoke()
    assert interpreter.get_tensor(result["index"]).tolist() == [expected]
    assert interpreter.get_signature_runner()(word=value)["words"].tolist() == [expected]
    with pytest.raises(ValueError, match="A string is bytes or text, found 3 of type int"):
        interpreter.set_tensor(given["index"], np.array(3, object))


def test_strings_that_have_no_value_yet():
    """Inputs are empty strings until they are set; results cannot be read before there are some. LiteRT follows stray addresses."""
    interpreter = _interpreter("text")
    interpreter.allocate_tensors()
    texts = [d["index"] for d in interpreter.get_input_details() if d["dtype"] is np.bytes_]
    results = [d["index"] for d in interpreter.get_output_details() if d["dtype"] is np.bytes_]
    assert texts and results
    for index in texts:
        assert set(interpreter.get_tensor(index).ravel().tolist()) == {b""}
        with pytest.raises(ValueError, match=f"Tensor {index} has strings"):
            interpreter.tensor(index)
    for index in results:
        with pytest.raises(ValueError, match=f"Tensor {index} of strings has no value"):
            interpreter.get_tensor(index)
    interpreter.invoke()
    for index in results:
        interpreter.get_tensor(index)


def test_inputs_of_fused_cells_keep_their_dimensions():
    """A sequence with a dimension too many is refused, where the kernel of the cell would end the process; other sizes may change."""
    interpreter = _interpreter("fused_half")
    (detail,) = interpreter.get_input_details()
    for shape in ([1, 4, 2, 1], [4, 2]):
        with pytest.raises(ValueError, match=r"the shape \[1, 4, 2\] cannot be resized"):
            interpreter.resize_tensor_input(detail["index"], shape)
    interpreter.resize_tensor_input(detail["index"], [1, 6, 2])
    interpreter.allocate_tensors()
    interpreter.invoke()
    assert interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).shape == (1, 6, 3)


def test_constants_cannot_be_written(tmp_path):
    """Weights are read, by copies and by views, and not written: LiteRT would write into the file's memory, or into the bytes it was given."""
    content = (GOLDEN / "int8.tflite").read_bytes()
    before = bytes(bytearray(content))
    (tmp_path / "model.tflite").write_bytes(content)
    path = str(tmp_path / "model.tflite")
    for interpreter in (tf.lite.Interpreter(model_content=content), tf.lite.Interpreter(path)):
        interpreter.allocate_tensors()
        refused = 0
        for detail in interpreter.get_tensor_details():
            index = detail["index"]
            try:
                value = interpreter.get_tensor(index)
            except ValueError:
                continue  # an intermediate result, which has no memory
            try:
                interpreter.set_tensor(index, value)
            except ValueError as error:
                assert f"Tensor {index} is a constant of the model" in str(error)
                view = interpreter.tensor(index)()
                np.testing.assert_array_equal(view, value)
                if view.ndim:
                    with pytest.raises(ValueError, match="read-only"):
                        view[...] = 0
                refused += 1
                del view
        assert refused > 4
        view = interpreter.tensor(interpreter.get_input_details()[0]["index"])()
        view[...] = 1
        del view
        interpreter.invoke()
    assert content == before


def test_handles_have_no_value():
    """The handle of a table or a variable cannot be read: LiteRT would take its number for a string of any length."""
    interpreter = _interpreter("variables")
    interpreter.allocate_tensors()
    handles = [d["index"] for d in interpreter.get_tensor_details() if d["dtype"] is np.object_]
    assert handles
    for index in handles:
        for call in (interpreter.get_tensor, interpreter.tensor):
            with pytest.raises(ValueError, match=f"Tensor {index} is the handle of a table or variable"):
                call(index)


def test_signatures_do_not_return_handles():
    """A signature, of a damaged file, whose output is a handle is refused when it is asked for."""
    model = read_model((GOLDEN / "variables.tflite").read_bytes())
    signature = model.signatures[0]
    subgraph = signature.subgraph
    handle = next(t for o in subgraph.operators for t in o.outputs if t.type == "RESOURCE")
    name = next(iter(signature.outputs))
    subgraph.outputs = [handle if each is signature.outputs[name] else each for each in subgraph.outputs]
    signature.outputs[name] = handle
    interpreter = tf.lite.Interpreter(model_content=write_model(model))
    with pytest.raises(ValueError, match=f"Output '{name}': Tensor .* is the handle of a table or variable"):
        interpreter.get_signature_runner(signature.key)


def test_interpreters_run_in_threads():
    """Each thread with an interpreter of its own gets its own results."""
    found: dict[int, np.ndarray] = {}
    x = _arrays("network", "in")[0]

    def work(number: int) -> None:
        interpreter = _interpreter("network")
        interpreter.allocate_tensors()
        for _ in range(20):
            interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x * number)
            interpreter.invoke()
        found[number] = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_allclose(found[1], _arrays("network", "out")[0], rtol=1e-5)
    assert not np.allclose(found[1], found[3])


def test_resetting_variables():
    """`reset_all_variables` may be called once memory is allocated."""
    interpreter = _interpreter("lstm")
    interpreter.allocate_tensors()
    interpreter.reset_all_variables()
    interpreter.invoke()


@pytest.mark.parametrize("name", ["network", "int8"])
def test_damaged_models_are_refused_or_run(name):
    """A sample of damaged bytes and cut files: ValueError or a result. The script that does this tries every byte."""
    root = GOLDEN.parent.parent.parent
    content = (GOLDEN / f"{name}.tflite").read_bytes()
    code = f"""
import sys; sys.path.insert(0, "scripts")
from pathlib import Path
import damage_tflite as damage
content = Path({str(GOLDEN / (name + ".tflite"))!r}).read_bytes()
cases = [("flip", n, 0xff) for n in range(2, {len(content)}, 97)] + [("cut", n, 0) for n in range(0, {len(content)}, 211)]
counts = [damage.attempt(damage.damaged(content, case)) for case in cases]
print(counts.count("refused"), counts.count("ran"), len(counts))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    refused, ran, total = map(int, done.stdout.split())
    assert refused + ran == total and refused > 20 and ran > 3
