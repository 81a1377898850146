"""TFLiteConverter of 2.x: functions and SavedModels, with open sizes, state and several signatures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stoker as tf
from stoker._src.lite.flatbuffer import read_model
from tests.lite.running import run_model

pytestmark = pytest.mark.usefixtures("eager")
Converter = tf.lite.TFLiteConverter
RANDOM = np.random.RandomState(0)


def runner(model: bytes, key: str | None = None):
    return tf.lite.Interpreter(model_content=model).get_signature_runner(key)


def convert(function) -> bytes:
    return Converter.from_concrete_functions([function.get_concrete_function()]).convert()


def test_a_function_becomes_a_signature():
    """Arguments and results keep their names; variables are constants."""
    factor = tf.Variable(np.float32([1, 2, 3]))

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32, name="x")])
    def function(x):
        return {"scaled": x * factor + 1.0, "total": tf.reduce_sum(x, 1)}

    model = convert(function)
    x = RANDOM.randn(4, 3).astype(np.float32)
    found = runner(model)(x=x)
    np.testing.assert_allclose(found["scaled"], x * np.float32([1, 2, 3]) + 1, rtol=1e-6)
    np.testing.assert_allclose(found["total"], x.sum(1), rtol=1e-5, atol=1e-6)
    assert read_model(model).main.inputs[0].shape == (-1, 3)


def test_open_sizes_stay_open():
    """A batch size that is not known costs no arithmetic on shapes, and any size runs."""
    filters = tf.Variable(RANDOM.randn(3, 3, 2, 4).astype(np.float32))

    @tf.function(input_signature=[tf.TensorSpec([None, 6, 6, 2], tf.float32, name="x")])
    def function(x):
        y = tf.nn.relu(tf.nn.conv2d(x, filters, 1, "SAME"))
        return tf.nn.softmax(tf.reshape(y, [tf.shape(y)[0], -1]))

    model = convert(function)
    assert read_model(model).operator_counts() == {"CONV_2D": 1, "RESHAPE": 1, "SOFTMAX": 1}
    for batch in (1, 5):
        x = RANDOM.randn(batch, 6, 6, 2).astype(np.float32)
        np.testing.assert_allclose(runner(model)(x=x)["output_0"], function(x), rtol=1e-5, atol=1e-6)


def test_a_loop_over_sequences_of_any_length():
    """A Python loop over time, with batch and length open, becomes a WHILE that collects its results."""

    @tf.function(input_signature=[tf.TensorSpec([None, None, 4], tf.float32, name="x")])
    def function(x):
        state = tf.zeros([tf.shape(x)[0], 4])
        states = tf.TensorArray(tf.float32, size=tf.shape(x)[1])
        for i in tf.range(tf.shape(x)[1]):
            state = tf.tanh(state + x[:, i])
            states = states.write(i, state)
        return tf.transpose(states.stack(), [1, 0, 2])

    run = runner(convert(function))
    for shape in ((3, 5, 4), (1, 2, 4)):
        x = RANDOM.randn(*shape).astype(np.float32)
        np.testing.assert_allclose(run(x=x)["output_0"], function(x), rtol=1e-5, atol=1e-6)


def test_a_model_may_keep_state():
    """A variable that the function assigns to is one of the interpreter, with the value that it has at the conversion."""
    total = tf.Variable(10.0)

    @tf.function(input_signature=[tf.TensorSpec([], tf.float32, name="x")])
    def function(x):
        total.assign_add(x)
        return total * 2.0

    model = convert(function)
    assert {"CALL_ONCE", "VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE"} <= set(read_model(model).operator_counts())
    run = runner(model)
    assert [float(run(x=np.float32(2))["output_0"]) for _ in range(3)] == [24, 28, 32]


def test_several_functions_are_several_signatures():
    """Each function has a subgraph of its own; they share the variable that one assigns and one reads."""
    value = tf.Variable(np.float32([1, 2]))

    @tf.function(input_signature=[tf.TensorSpec([2], tf.float32, name="x")])
    def put(x):
        value.assign(x)
        return x

    @tf.function(input_signature=[])
    def get():
        return value + 0.5

    functions = [put.get_concrete_function(), get.get_concrete_function()]
    interpreter = tf.lite.Interpreter(model_content=Converter.from_concrete_functions(functions).convert())
    assert sorted(interpreter.get_signature_list()) == ["get", "put"]
    np.testing.assert_array_equal(interpreter.get_signature_runner("get")()["output_0"], [1.5, 2.5])
    interpreter.get_signature_runner("put")(x=np.float32([5, 6]))
    np.testing.assert_array_equal(interpreter.get_signature_runner("get")()["output_0"], [5.5, 6.5])


def test_what_is_no_concrete_function_is_refused():
    """The message says how to get one."""
    with pytest.raises(ValueError, match=r"list of concrete functions.*get_concrete_function"):
        Converter.from_concrete_functions([tf.function(lambda x: x)])
    with pytest.raises(ValueError, match="No ConcreteFunction is specified"):
        Converter.from_concrete_functions([])
    with pytest.raises(ValueError, match="not object"):
        Converter.from_keras_model(object())


GOLDEN = Path(__file__).parents[1] / "golden" / "saved_model"


@pytest.mark.parametrize("name", ["one_tf1", "one_tf2"])
def test_saved_models_of_tensorflow_1(name):
    """All signatures are converted, with a table whose entries come from an asset."""
    interpreter = tf.lite.Interpreter(model_content=Converter.from_saved_model(GOLDEN / name).convert())
    x = RANDOM.randn(3, 2).astype(np.float32)
    found = interpreter.get_signature_runner("serving_default")(x=x)["y"]
    np.testing.assert_allclose(found, x @ np.float32([[1], [2]]), rtol=1e-6)
    words = np.array([b"two", b"none"], object)
    np.testing.assert_array_equal(interpreter.get_signature_runner("ids")(words=words)["ids"], [1, -1])


def test_saved_models_of_tensorflow_2():
    """A model of tf.function signatures; what the loaded model computes is what LiteRT does."""
    loaded = tf.saved_model.load(GOLDEN / "two_tf2")
    key, signature = next(iter(loaded.signatures.items()))
    converter = Converter.from_saved_model(GOLDEN / "two_tf2", signature_keys=[key])
    ((name, spec),) = signature.structured_input_signature[1].items()
    x = RANDOM.rand(*[size or 3 for size in spec.shape.as_list()]).astype(spec.dtype.as_numpy_dtype)
    expected = signature(**{name: x})
    found = runner(converter.convert(), key)(**{name: x})
    for output, value in expected.items():
        np.testing.assert_allclose(found[output], value, rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="No 'none' in the SavedModel's SignatureDefs"):
        Converter.from_saved_model(GOLDEN / "two_tf2", signature_keys=["none"])
    with pytest.raises(ValueError, match="signature_keys is a list of keys, found 'none'"):
        Converter.from_saved_model(GOLDEN / "two_tf2", signature_keys="none")
    all_keys = tf.lite.Interpreter(model_content=Converter.from_saved_model(GOLDEN / "two_tf2", []).convert())
    assert sorted(all_keys.get_signature_list()) == sorted(loaded.signatures)


@pytest.mark.parametrize(("lower", "upper"), [(-1, 0), (0, -1), (1, 2), (-1, -1)])
def test_bands_of_matrices_of_any_size(lower, upper):
    """The band of a matrix is where it was asked for also if the interpreter decides about the size, as for masks of sequences."""

    @tf.function(input_signature=[tf.TensorSpec([None, None, None], tf.float32, name="x")])
    def band(x):
        ones = tf.ones([tf.shape(x)[1], tf.shape(x)[1]])
        return {"band": tf.linalg.band_part(x, lower, upper), "mask": tf.linalg.band_part(ones, lower, upper)}

    run = runner(Converter.from_concrete_functions([band.get_concrete_function()]).convert())
    for shape in ((2, 3, 5), (1, 4, 2)):
        x = RANDOM.randn(*shape).astype(np.float32)
        for key, value in band(tf.constant(x)).items():
            np.testing.assert_array_equal(run(x=x)[key], value)


def test_saved_models_of_keras_3():
    """`tf.saved_model.save` of such a model: its variables are restored with its objects."""
    values = np.load(GOLDEN / "keras3" / "values.npz")
    model = Converter.from_saved_model(GOLDEN / "keras3").convert()
    (signature,) = tf.lite.Interpreter(model_content=model).get_signature_list().values()
    found = runner(model)(**{signature["inputs"][0]: values["x"]})
    np.testing.assert_allclose(found[signature["outputs"][0]], values["y"], rtol=1e-5, atol=1e-6)
    first = tf.compat.v1.lite.TFLiteConverter.from_saved_model(str(GOLDEN / "keras3")).convert()
    (found,) = run_model(first, [values["x"][:1]])
    np.testing.assert_allclose(found, values["y"][:1], rtol=1e-5, atol=1e-6)


def test_signatures_of_a_loaded_model(tmp_path):
    """Functions of a loaded SavedModel find the variables they read and change, as those that were traced here."""
    module: Any = tf.Module()
    module.w, module.count = tf.Variable(np.eye(3, dtype=np.float32)), tf.Variable(0.0)

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32, name="x")])
    def run(x):
        return {"y": tf.matmul(x, module.w) + module.count.assign_add(1.0)}

    module.run = run
    tf.saved_model.save(module, str(tmp_path / "export"), signatures={"serving_default": run})
    loaded = tf.saved_model.load(str(tmp_path / "export"))
    interpret = runner(Converter.from_concrete_functions([loaded.signatures["serving_default"]], loaded).convert())
    x = RANDOM.randn(2, 3).astype(np.float32)
    for count in (1.0, 2.0):
        np.testing.assert_allclose(interpret(x=x)["y"], x + count, rtol=1e-6)


def test_variables_and_tables_that_share_a_name():
    """Eager mode calls all variables without a name "Variable": the interpreter keeps them apart, and the entries of a captured table."""
    table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([0, 1], tf.int64)), tf.constant(2, tf.int64)
    )
    counts, total = tf.Variable(tf.zeros([3])), tf.Variable(0.0)

    @tf.function(input_signature=[tf.TensorSpec([1], tf.string, name="word")])
    def count(word):
        place = table.lookup(word)[0]
        before = tf.gather(counts, place)
        counts.assign(counts + tf.one_hot(place, 3))
        return {"before": before, "total": total.assign_add(1.0), "counts": counts.read_value()}

    run = runner(Converter.from_concrete_functions([count.get_concrete_function()]).convert())
    words = ["b", "c", "b"]
    found = [run(word=np.array([word.encode()], object)) for word in words]
    assert [float(each["before"]) for each in found] == [0, 0, 1]
    assert [float(each["total"]) for each in found] == [1, 2, 3]
    np.testing.assert_array_equal(found[-1]["counts"], [0, 2, 1])


def test_a_model_that_keras_exported_has_one_signature(tmp_path):
    """Keras exports the function `serve` under two keys; TensorFlow 2.21 converts the default one alone. Other modules keep all their signatures."""
    module: Any = tf.Module()
    module.serve = tf.function(
        lambda x: {"y": x * 2.0}, input_signature=[tf.TensorSpec([None, 3], tf.float32, name="x")]
    )
    signatures = {"serve": module.serve, "serving_default": module.serve}
    tf.saved_model.save(module, str(tmp_path / "export"), signatures=signatures)
    converter = Converter.from_saved_model(str(tmp_path / "export"))
    x = np.ones([2, 3], np.float32)
    np.testing.assert_array_equal(runner(converter.convert())(x=x)["y"], 2 * x)
    both = Converter.from_saved_model(str(tmp_path / "export"), signature_keys=["serve", "serving_default"]).convert()
    assert sorted(tf.lite.Interpreter(model_content=both).get_signature_list()) == ["serve", "serving_default"]
    plain: Any = tf.Module()
    plain.run = module.serve
    tf.saved_model.save(plain, str(tmp_path / "plain"), signatures=signatures)
    content = Converter.from_saved_model(str(tmp_path / "plain")).convert()
    assert sorted(tf.lite.Interpreter(model_content=content).get_signature_list()) == ["serve", "serving_default"]


SUPPRESSION = Path(__file__).parents[1] / "golden" / "lite" / "suppression"


@pytest.mark.parametrize("bits", [32, 8])
@pytest.mark.parametrize("key", ["one", "batch"])
def test_non_maximum_suppression_that_tensorflow_writes_as_a_function(key, bits):
    """The function says what it implements: the builtin takes its place, and reads floating point also in a model of integers."""
    values = np.load(SUPPRESSION / "values.npz")
    boxes, scores = (values[name] if key == "batch" else values[name][0] for name in ("boxes", "scores"))
    converter = Converter.from_saved_model(SUPPRESSION, signature_keys=[key])
    if bits == 8:
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = lambda: iter([{"boxes": boxes, "scores": scores}])
    model = converter.convert()
    found = runner(model, key)(boxes=boxes, scores=scores)
    np.testing.assert_array_equal(found["indices"], values[f"{key}_indices"])
    np.testing.assert_array_equal(found["count"], values[f"{key}_count"])
    codes = [operator.code for subgraph in read_model(model).subgraphs for operator in subgraph.operators]
    assert codes.count("NON_MAX_SUPPRESSION_V4") == 1
    assert len(codes) < 30
    assert not {"TOPK_V2", "QUANTIZE"} & set(codes)
