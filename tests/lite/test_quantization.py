"""Quantization of float models, judged by running them on LiteRT."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stoker as tf
from stoker._src.lite.flatbuffer import read_model, write_model
from stoker._src.lite.model import Model, Operator, Subgraph, Tensor
from stoker._src.lite.quantization.calibration import observe_ranges
from stoker._src.lite.quantization.integer import quantize_integer
from stoker._src.lite.quantization.plan import Plan
from stoker._src.lite.quantization.request import INT16_OPS, Request, quantize
from stoker._src.lite.quantization.schemes import (
    ASKING,
    FIXED,
    FREE,
    INT8,
    INT16,
    ONLY_IF_STRICT,
    PASSING,
    SHARING,
    UINT8,
    WEIGHTS,
    quantizable,
)
from stoker._src.lite.verification.layout import schema
from stoker._src.lite.versions import assign_versions
from tests.lite import single_ops

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "lite"
OpsSet = tf.lite.OpsSet
SHAPES = {"network": [1, 8, 8, 1], "unet": [1, 16, 16, 1], "many": [1, 32]}


def _float(name: str) -> bytes:
    return (GOLDEN / f"{name}.tflite").read_bytes()


def _samples(name: str, count: int = 16) -> list[np.ndarray]:
    random = np.random.RandomState(3)
    return [random.uniform(-1, 1, SHAPES[name]).astype(np.float32) for _ in range(count)]


def _quantized(name: str, **options) -> Any:
    model = read_model(_float(name))
    quantize(model, Request(optimize=True, **options))
    return model


def _run(content: bytes, x: np.ndarray) -> dict[str, np.ndarray]:
    """Real values in, real values out, whatever the types of the model's inputs and outputs."""
    interpreter = tf.lite.Interpreter(model_content=content)
    interpreter.allocate_tensors()
    (detail,) = interpreter.get_input_details()
    scale, zero = detail["quantization"]
    if detail["dtype"] is not np.float32:
        info = np.iinfo(detail["dtype"])
        x = np.clip(np.round(x / scale + zero), info.min, info.max).astype(detail["dtype"])
    interpreter.set_tensor(detail["index"], x)
    interpreter.invoke()
    found = {}
    for output in interpreter.get_output_details():
        value, (scale, zero) = interpreter.get_tensor(output["index"]), output["quantization"]
        found[output["name"]] = (value.astype(np.float32) - zero) * scale if scale else value
    return found


def _error(name: str, model: Model) -> float:
    """The largest difference from the float model, in parts of the largest value of an output."""
    content = write_model(model)
    expected = [_run(_float(name), x) for x in _samples(name, 4)]
    found = [_run(content, x) for x in _samples(name, 4)]
    assert expected[0].keys() == found[0].keys()
    worst = 0.0
    for key in expected[0]:
        values = np.stack([each[key] for each in expected])
        worst = max(worst, float(np.abs(np.stack([each[key] for each in found]) - values).max() / np.abs(values).max()))
    return worst


@pytest.mark.parametrize(
    ("scheme", "bound"), [(INT8, 0.03), (INT16, 0.006), (UINT8, 0.03)], ids=["INT8", "INT16", "UINT8"]
)
def test_every_op_of_the_tables_has_its_kernel(scheme, bound):
    """Each op that is said to work on integers does, in a model of it alone, and its result is close to the float model's."""
    codes = {*WEIGHTS, *PASSING, *SHARING, *FIXED, *FREE, *ASKING}
    assert codes == set(single_ops.CASES)
    for code in sorted(codes):
        model = single_ops.model_of(code)
        samples = single_ops.samples_of(model, 3)
        content = write_model(model)
        plan = Plan(
            observe_ranges(model, lambda s=samples: s),
            scheme,
            strict=code in ONLY_IF_STRICT.get(scheme.activations, ()),
        )
        quantize_integer(model, plan, "FLOAT32", "FLOAT32")
        assign_versions(model)
        types = {each.type for each in model.main.operators[-1].inputs if each is not None} | {
            each.type for operator in model.main.operators if operator.code == code for each in operator.outputs
        }
        assert (scheme.activations in types) or not quantizable(code, scheme), code
        expected, found = _outputs(content, samples), _outputs(write_model(model), samples)
        if code not in ASKING and code != "TOPK_V2":
            assert np.abs(found - expected).max() <= bound * np.abs(expected).max(), code


def _outputs(content: bytes, samples: list[list[np.ndarray]]) -> np.ndarray:
    interpreter = tf.lite.Interpreter(model_content=content)
    interpreter.allocate_tensors()
    found = []
    for sample in samples:
        for detail, value in zip(interpreter.get_input_details(), sample, strict=True):
            interpreter.set_tensor(detail["index"], value)
        interpreter.invoke()
        found.extend(interpreter.get_tensor(each["index"]).ravel() for each in interpreter.get_output_details())
    return np.concatenate(found).astype(np.float32)


def _types(model: Model) -> set[str]:
    return {tensor.type for tensor in model.main.tensors}


@pytest.mark.parametrize(
    ("name", "options", "bound"),
    [
        ("network", {}, 0.02),
        ("unet", {}, 0.02),
        ("many", {}, 0.1),
        ("network", {"supported_ops": [INT16_OPS, OpsSet.TFLITE_BUILTINS]}, 0.01),
        ("unet", {"supported_ops": [INT16_OPS, OpsSet.TFLITE_BUILTINS]}, 0.02),
        ("many", {"supported_ops": [INT16_OPS, OpsSet.TFLITE_BUILTINS]}, 0.01),
    ],
)
def test_integer_models_are_close_to_their_float_models(name, options, bound):
    """Inputs and outputs are floating point by default; what is between is in integers of 8 or 16 bits."""
    model = _quantized(name, representative_dataset=lambda: ([x] for x in _samples(name)), **options)
    assert ("INT16" if options else "INT8") in _types(model)
    assert model.main.inputs[0].type == "FLOAT32"
    assert _error(name, model) < bound


@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_inputs_and_outputs_in_integers(kind):
    """With integer inputs and outputs the model has no floating point at all; uint8 has the scale of int8, shifted."""
    model = _quantized(
        "network",
        representative_dataset=lambda: ([x] for x in _samples("network")),
        supported_ops=[OpsSet.TFLITE_BUILTINS_INT8],
        input_type=getattr(tf, kind),
        output_type=getattr(tf, kind),
    )
    assert "FLOAT32" not in _types(model)
    assert model.main.inputs[0].type == model.main.outputs[0].type == kind.upper()
    assert [each.name for each in model.main.inputs] == [
        each.name for each in read_model(_float("network")).main.inputs
    ]
    assert ("QUANTIZE" in model.operator_counts()) == (kind == "uint8")
    assert _error("network", model) < 0.02


def test_numbers_are_those_that_kernels_expect():
    """Convolutions have a scale for each channel, biases the product of two scales, and softmax a result from 0 to 1 in 256 steps."""
    model = _quantized("network", representative_dataset=lambda: ([x] for x in _samples("network")))
    by_code = {operator.code: operator for operator in model.main.operators}
    data, kernel, bias = (tensor.quantization for tensor in by_code["CONV_2D"].inputs)
    assert kernel.scale.shape == (4,) and kernel.axis == 0 and not kernel.zero_point.any()
    np.testing.assert_allclose(bias.scale, data.scale * kernel.scale, rtol=1e-6)
    assert by_code["CONV_2D"].inputs[2].type == "INT32"
    assert by_code["DEPTHWISE_CONV_2D"].inputs[1].quantization.axis == 3
    softmax = by_code["SOFTMAX"].outputs[0].quantization
    assert softmax is not None and softmax.scale == 1 / 256 and softmax.zero_point == -128
    pool = by_code["MAX_POOL_2D"]
    assert pool.inputs[0].quantization.scale == pool.outputs[0].quantization.scale
    weights = by_code["FULLY_CONNECTED"].inputs[1]
    assert weights is not None and weights.data is not None and np.abs(weights.data.astype(int)).max() == 127


def test_ranges_are_those_of_all_samples():
    """Each tensor's range covers every sample; a sample is a list or a dictionary of arrays."""
    model = read_model(_float("network"))
    samples = _samples("network")
    ranges = observe_ranges(model, lambda: ([x] for x in samples))
    low, high = ranges[model.main.inputs[0]]
    assert low == np.min(samples) and high == np.max(samples)
    name = model.main.inputs[0].name
    by_name = observe_ranges(model, tf.lite.RepresentativeDataset(lambda: ({name: x} for x in samples)))
    assert by_name == ranges
    assert all(high >= low for low, high in ranges.values()) and len(ranges) == 7


@pytest.mark.parametrize(
    ("dataset", "message"),
    [
        (list, "no samples"),
        (3, "callable"),
        (lambda: 3, "iterable"),
        (lambda: [[np.zeros([1, 8, 8, 1])]], "float64"),
        (lambda: [[np.zeros([8, 8, 1], np.float32)]], r"\[8, 8, 1\]"),
        (lambda: [[]], "0 arrays"),
        (lambda: [{"y": np.zeros([1, 8, 8, 1], np.float32)}], r"\['y'\]"),
        (lambda: [[np.full([1, 8, 8, 1], np.nan, np.float32)]], "not finite"),
    ],
)
def test_samples_that_do_not_fit_are_errors(dataset, message):
    """What is wrong with a sample is said with numbers and names."""
    with pytest.raises(ValueError, match=message):
        _quantized("network", representative_dataset=dataset)


def test_a_batch_of_samples_for_a_model_of_one_example():
    """A batch is taken example by example, and its ranges are those of its examples."""
    samples = _samples("network")
    one = _quantized("network", representative_dataset=lambda: [[each] for each in samples])
    batch = _quantized("network", representative_dataset=lambda: [[np.concatenate(samples)]])
    assert write_model(one) == write_model(batch)


def _dense(units: int, size: int) -> Any:
    random = np.random.RandomState(0)
    x = Tensor("x", "FLOAT32", (2, size))
    weights = Tensor("w", "FLOAT32", (units, size), random.randn(units, size).astype(np.float32))
    y = Tensor("y", "FLOAT32", (2, units))
    options = schema().FullyConnectedOptionsT()
    return Model([Subgraph("main", [x], [y], [Operator("FULLY_CONNECTED", [x, weights, None], [y], options)])])


def test_weights_alone():
    """Large weights become 8 bits, small ones stay; results are floating point and close."""
    large, small = _dense(64, 32), _dense(4, 4)
    x = np.random.RandomState(1).randn(2, 32).astype(np.float32)
    expected = _run(write_model(large), x)["y"]
    size = len(write_model(large))
    for model in (large, small):
        quantize(model, Request(optimize=True))
    assert large.main.operators[0].inputs[1].type == "INT8"
    assert small.main.operators[0].inputs[1].type == "FLOAT32"
    found = _run(write_model(large), x)["y"]
    assert np.abs(found - expected).max() < 0.03 * np.abs(expected).max()
    assert len(write_model(large)) < 0.4 * size


def test_rows_of_weights_alone_have_a_scale_each():
    """As in TensorFlow 2.21: small rows keep their precision beside large ones. A runtime that would read one scale gets one."""
    x = np.random.RandomState(1).rand(2, 32).astype(np.float32)
    errors = {}
    for runtime in (None, "2.16.0"):
        model = _dense(64, 32)
        rows = model.main.operators[0].inputs[1].data
        rows *= np.geomspace(1e-3, 1, 64, dtype=np.float32)[:, None]
        expected, most = x @ rows.T, np.abs(x) @ np.abs(rows.T)
        quantize(model, Request(optimize=True, runtime=runtime))
        assign_versions(model)
        (product,) = model.main.operators
        assert (product.version >= 12) == (runtime is None) == bool(product.inputs[1].quantization.per_channel)
        found = _run(write_model(model), x)["y"]
        errors[runtime] = (np.abs(found - expected) / most).max(0)
    assert errors[None].max() < 0.01
    assert errors["2.16.0"][:8].max() > 0.1


def test_half_precision():
    """Constants are stored in 16 bits and restored by an op, a small bias with its weights; those that do not fit stay, and their bias, too."""
    models = [_dense(64, 32) for _ in range(3)]
    for each in models:
        each.main.operators[0].inputs[2] = Tensor("b", "FLOAT32", (64,), np.linspace(-1, 1, 64, dtype=np.float32))
    model, large = models[:2]
    whole = write_model(models[2])
    quantize(model, Request(optimize=True, supported_types=[tf.float16]))
    assert [operator.code for operator in model.main.operators] == ["DEQUANTIZE", "DEQUANTIZE", "FULLY_CONNECTED"]
    assert len(write_model(model)) < 0.6 * len(whole)
    x = np.random.RandomState(1).randn(2, 32).astype(np.float32)
    np.testing.assert_allclose(_run(write_model(model), x)["y"], _run(whole, x)["y"], atol=0.02)
    large.main.operators[0].inputs[1].data[0, 0] = 1e6
    quantize(large, Request(optimize=True, supported_types=[tf.float16]))
    assert "FLOAT16" not in _types(large)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"supported_ops": [OpsSet.TFLITE_BUILTINS_INT8]}, "a `representative_dataset` must be specified"),
        ({"input_type": tf.int8}, "inference_input_type and inference_output_type must be tf.float32"),
        (
            {"representative_dataset": list, "input_type": tf.int16},
            r"Unsupported `inference_input_type` value. Expected to be in \('tf.uint8', 'tf.int8'\), instead got tf.int16",
        ),
        (
            {"representative_dataset": list, "output_type": tf.int8, "supported_ops": [INT16_OPS]},
            r"Expected to be in \('tf.int16'\), instead got tf.int8",
        ),
    ],
)
def test_contradicting_options_are_errors(options, message):
    """Integers need samples, and types that the kernels have."""
    with pytest.raises(ValueError, match=message):
        _quantized("network", **options)


def test_ops_that_must_be_integers_and_cannot_are_listed():
    """Where floating point is not allowed, each op that needs it is named with the reason; where it is, conversions surround it."""

    def dataset():
        return ([x] for x in _samples("many"))

    wave = _converter(lambda x: tf.nn.relu(tf.sin(x, name="wave")), [1, 32])
    wave.optimizations, wave.representative_dataset = [tf.lite.Optimize.DEFAULT], dataset
    wave.target_spec.supported_ops = [OpsSet.TFLITE_BUILTINS_INT8]
    with pytest.raises(ValueError, match=r"(?s)not possible for 1 of.*SIN 'wave.*no kernel for INT8"):
        wave.convert()
    mixed = _quantized("many", representative_dataset=dataset)
    assert {operator.code for operator in mixed.main.operators} >= {"DIV", "DEQUANTIZE", "QUANTIZE"}
    with pytest.raises(ValueError, match="Unsupported output type INT16 for output tensor"):
        _quantized(
            "many",
            representative_dataset=dataset,
            supported_ops=[INT16_OPS, OpsSet.TFLITE_BUILTINS],
            output_type=tf.int16,
        )


def _trained(**fake) -> Any:
    """A product with fake quantization of its weights and its result, as training with tf.contrib.quantize leaves it."""
    model = _dense(4, 3)
    operator = model.main.operators[0]
    weights, y = operator.inputs[1], operator.outputs[0]
    assert weights is not None
    faked = Tensor("w/fake", "FLOAT32", weights.shape)
    act = Tensor("y/fake", "FLOAT32", y.shape)
    make = schema().FakeQuantOptionsT
    ops = [Operator("FAKE_QUANT", [weights], [faked], make(min=-3.0, max=3.0, numBits=8, narrowRange=True)), operator]
    operator.inputs[1] = faked
    if fake.get("result", True):
        ops.append(Operator("FAKE_QUANT", [y], [act], make(min=-6.0, max=6.0, numBits=8)))
        model.main.outputs = [act]
    model.main.operators = ops
    return model


@pytest.mark.parametrize("kind", [tf.uint8, tf.int8])
def test_ranges_of_training(kind):
    """A graph with fake quantization becomes integers throughout. The input's scale follows from its mean and deviation."""
    model = _trained()
    float_model = _trained()
    mean = 128.0 if kind == tf.uint8 else 0.0
    quantize(model, Request(inference_type=kind, input_stats={"x": (mean, 64.0)}))
    assert "FAKE_QUANT" not in model.operator_counts() and "FLOAT32" not in _types(model)
    source, result = model.main.inputs[0].quantization, model.main.outputs[0].quantization
    assert source is not None and source.scale == 1 / 64 and source.zero_point == mean
    assert result is not None and result.scale == pytest.approx(np.array([12 / 255]))
    assert model.main.outputs[0].name == "y/fake"
    x = np.random.RandomState(1).uniform(-1, 1, [2, 3]).astype(np.float32)
    quantize(float_model, Request())
    assert float_model.operator_counts() == {"FULLY_CONNECTED": 1, "FAKE_QUANT": 1}
    expected, found = _run(write_model(float_model), x)["y/fake"], _run(write_model(model), x)["y/fake"]
    assert np.abs(found - expected).max() < 0.12


def test_ranges_that_training_left_out():
    """A tensor without a range is an error that names it, unless there are default ranges."""
    with pytest.raises(ValueError, match=r"Array y, which is .* FULLY_CONNECTED operator, is lacking min/max data"):
        quantize(_trained(result=False), Request(inference_type=tf.uint8, input_stats={"x": (128.0, 64.0)}))
    model = _trained(result=False)
    quantize(model, Request(inference_type=tf.uint8, input_stats={"x": (128.0, 64.0)}, default_ranges=(-6.0, 6.0)))
    assert model.main.outputs[0].type == "UINT8"
    with pytest.raises(ValueError, match="Quantization input stats are not available for input tensors 'x'"):
        quantize(_trained(), Request(inference_type=tf.uint8))


def test_fake_quantization_replaces_samples():
    """With optimizations and no dataset, the ranges of training are used; inputs without one stay floating point."""
    model = _trained()
    quantize(model, Request(optimize=True))
    assert "FAKE_QUANT" not in model.operator_counts()
    x = np.random.RandomState(1).uniform(-1, 1, [2, 3]).astype(np.float32)
    float_model = _trained()
    quantize(float_model, Request())
    expected = _run(write_model(float_model), x)["y/fake"]
    np.testing.assert_allclose(_run(write_model(model), x)["y/fake"], expected, atol=0.12)


def _converter(build, shape=(1, 8, 8, 3)):
    tf1 = tf.compat.v1
    with tf1.Graph().as_default(), tf1.Session() as session:
        tf1.set_random_seed(2)
        x = tf1.placeholder(tf.float32, shape, name="x")
        y = tf1.identity(build(x), name="y")
        session.run(tf1.global_variables_initializer())
        return tf1.lite.TFLiteConverter.from_session(session, [x], [y])


def _small_network(x):
    layers = tf.compat.v1.layers
    x = layers.conv2d(x, 8, 3, padding="same", activation=tf.nn.relu)
    return tf.nn.softmax(layers.dense(layers.flatten(layers.max_pooling2d(x, 2, 2)), 16))


def test_converters_quantize_as_they_are_told():
    """Optimizations, samples, supported types and operators choose the kind of quantization; post_training_quantize is the older way."""
    samples = [np.random.RandomState(n).uniform(-1, 1, [1, 8, 8, 3]).astype(np.float32) for n in range(8)]
    converter = _converter(_small_network)
    whole = converter.convert()
    expected = _run(whole, samples[0])["y"]
    sizes = {"float": len(whole)}

    def check(label: str, kinds: set[str]) -> None:
        content = converter.convert()
        sizes[label] = len(content)
        assert {t.type for t in read_model(content).main.tensors} >= kinds
        assert np.abs(_run(content, samples[0])["y"] - expected).max() < 0.01

    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    check("weights", {"INT8", "FLOAT32"})
    converter.target_spec.supported_types = [tf.float16]
    check("half", {"FLOAT16", "FLOAT32"})
    converter.target_spec.supported_types = []
    converter.representative_dataset = tf.lite.RepresentativeDataset(lambda: ([x] for x in samples))
    check("integers", {"INT8", "INT32", "FLOAT32"})
    converter.target_spec.supported_ops = {OpsSet.TFLITE_BUILTINS_INT8}
    converter.inference_input_type = converter.inference_output_type = tf.int8
    check("integers only", {"INT8", "INT32"})
    converter.target_spec.supported_ops = {INT16_OPS, OpsSet.TFLITE_BUILTINS}
    converter.inference_input_type = converter.inference_output_type = tf.float32
    check("16 bits", {"INT16", "INT64", "FLOAT32"})
    assert sizes["weights"] < 0.5 * sizes["float"] and sizes["integers only"] < 0.5 * sizes["float"]
    assert sizes["half"] < 0.7 * sizes["float"]
    older = _converter(_small_network)
    older.post_training_quantize = True
    assert len(older.convert()) == sizes["weights"]


def _trained_network(x):
    """A network as training with fake quantization leaves it."""
    fake = tf.quantization.fake_quant_with_min_max_args
    random = np.random.RandomState(0)
    kernel = tf.constant(random.uniform(-1, 1, [3, 3, 3, 4]).astype(np.float32))
    dense = tf.constant(random.uniform(-1, 1, [64, 5]).astype(np.float32))
    x = tf.nn.conv2d(x, fake(kernel, -1.0, 1.0), 2, "SAME")
    x = fake(tf.nn.relu6(x), 0.0, 6.0)
    return fake(tf.matmul(tf.reshape(x, [-1, 64]), fake(dense, -1.0, 1.0)), -30.0, 30.0)


@pytest.mark.parametrize("kind", [tf.uint8, tf.int8])
def test_graphs_with_fake_quantization(kind):
    """inference_type makes integers of a graph that was trained for them; quantized_input_stats says what the input means."""
    x = np.random.RandomState(1).uniform(-1, 1, [1, 8, 8, 3]).astype(np.float32)
    converter = _converter(_trained_network)
    expected = _run(converter.convert(), x)["y"]
    converter.inference_type = kind
    with pytest.raises(ValueError, match="quantized_input_stats"):
        converter.convert()
    mean = 128 if kind == tf.uint8 else 0
    converter.quantized_input_stats = {"x": (mean, 127.0)}
    content = converter.convert()
    model = read_model(content)
    assert model.main.inputs[0].type == model.main.outputs[0].type == kind.name.upper()
    assert "FLOAT32" not in {t.type for t in model.main.tensors}
    assert np.abs(_run(content, x)["y"] - expected).max() < 0.5
    converter.inference_input_type = converter.inference_output_type = tf.float32
    assert np.abs(_run(converter.convert(), x)["y"] - expected).max() < 0.5


def test_integer_inputs_of_a_float_model():
    """With inference_input_type alone the input is integers, which the model restores by mean and deviation."""
    x = np.random.RandomState(1).uniform(-1, 1, [1, 8, 8, 3]).astype(np.float32)
    converter = _converter(_small_network)
    expected = _run(converter.convert(), x)["y"]
    converter.inference_input_type = tf.uint8
    converter.quantized_input_stats = {"x": (128, 127.0)}
    content = converter.convert()
    model = read_model(content)
    assert model.main.inputs[0].type == "UINT8" and model.main.operators[0].code == "DEQUANTIZE"
    assert np.abs(_run(content, x)["y"] - expected).max() < 0.01


def _loop_model(units: int = 4, batch: int | None = 1) -> tuple[Any, list[np.ndarray]]:
    """A recurrent network as a loop that also collects its outputs, and sequences for it."""
    random = np.random.RandomState(2)
    kernel = random.uniform(-0.9, 0.9, [units + 3, units]).astype(np.float32)

    @tf.function(input_signature=[tf.TensorSpec([batch, 25, 3], tf.float32, name="x")])
    def network(x):
        def step(i, state, outputs):
            state = 0.9 * state + 0.1 * tf.tanh(tf.matmul(tf.concat([x[:, i], state], 1), kernel))
            return i + 1, state, outputs.write(i, state)

        zeros = tf.zeros([tf.shape(x)[0], units])
        outputs = tf.TensorArray(tf.float32, 25, element_shape=[batch, units])
        _, state, outputs = tf.while_loop(lambda i, *_: i < 25, step, [0, zeros, outputs])
        return state, outputs.stack()

    samples = [random.uniform(-1, 1, [1, 25, 3]).astype(np.float32) for _ in range(8)]
    return network.get_concrete_function(), samples


@pytest.mark.parametrize(
    ("ops", "bound"),
    [
        pytest.param(OpsSet.TFLITE_BUILTINS, 1e-5, id="default"),
        pytest.param(OpsSet.TFLITE_BUILTINS_INT8, 0.01, id="int8"),
        pytest.param(OpsSet.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8, 0.002, id="int16"),
    ],
)
def test_loops(ops, bound):
    """Loops stay floating point unless only integers are allowed. In a model of 8 bits the state of a loop has 16, so that errors do not add up."""
    function, samples = _loop_model()
    converter = tf.lite.TFLiteConverter.from_concrete_functions([function])
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = lambda: ([x] for x in samples)
    converter.target_spec.supported_ops = {ops}
    content = converter.convert()
    loop = next(each for each in read_model(content).main.operators if each.code == "WHILE")
    results = {each.type for operator in loop.subgraphs[1].operators for each in operator.outputs}
    state = {each.type for each in loop.outputs if each.shape == (1, 4)}
    if ops is OpsSet.TFLITE_BUILTINS:
        assert state == {"FLOAT32"}
    else:
        assert "FLOAT32" not in results
        assert state == {"INT16"}
    plain = tf.lite.TFLiteConverter.from_concrete_functions([function]).convert()
    for x in samples[:4]:
        for found, expected in zip(_run(content, x).values(), _run(plain, x).values(), strict=True):
            np.testing.assert_allclose(found, expected, atol=bound)


@pytest.mark.parametrize("kind", [tf.int8, tf.uint8])
@pytest.mark.parametrize("batch", [1, None])
def test_a_loop_with_an_interface_of_eight_bits(kind, batch):
    """The final state of a loop, which has 16 bits inside, is an output of 8 bits with the range that it was seen to have.

    The number of sequences may be open: the first state is then filled when the model runs.
    """
    function, samples = _loop_model(batch=batch)
    converter = tf.lite.TFLiteConverter.from_concrete_functions([function])
    plain = converter.convert()
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = lambda: ([x] for x in samples)
    converter.target_spec.supported_ops = {OpsSet.TFLITE_BUILTINS_INT8}
    converter.inference_input_type = converter.inference_output_type = kind
    content = converter.convert()
    model = read_model(content).main
    assert {each.type for each in (*model.inputs, *model.outputs)} == {kind.name.upper()}
    interpreter = tf.lite.Interpreter(model_content=content)
    interpreter.allocate_tensors()
    (given,) = interpreter.get_input_details()
    scale, zero = given["quantization"]
    interpreter.set_tensor(given["index"], np.round(samples[0] / scale + zero).astype(given["dtype"]))
    interpreter.invoke()
    for detail, expected in zip(interpreter.get_output_details(), _run(plain, samples[0]).values(), strict=True):
        scale, zero = detail["quantization"]
        found = scale * (interpreter.get_tensor(detail["index"]).astype(np.float32) - zero)
        np.testing.assert_allclose(found, expected, atol=0.02)


def test_fully_connected_layers_have_a_scale_for_each_channel():
    """As in TensorFlow 2.21: rows of very different size keep their precision. Runtimes that would read one scale refuse the version."""
    weights = np.diag([1e-3, 1, 1e3]).astype(np.float32)

    @tf.function(input_signature=[tf.TensorSpec([1, 3], tf.float32)])
    def network(x):
        return tf.matmul(x, weights) * [1e3, 1, 1e-3]

    converter = tf.lite.TFLiteConverter.from_concrete_functions([network.get_concrete_function()])
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = lambda: ([np.ones([1, 3], np.float32)] for _ in range(2))
    model = read_model(converter.convert())
    (product,) = [each for each in model.main.operators if each.code == "FULLY_CONNECTED"]
    assert product.inputs[1] is not None and product.inputs[1].quantization is not None
    assert product.inputs[1].quantization.per_channel
    assert product.version == 12


def test_a_clamp_is_the_range_of_what_it_clamps():
    """min(max(x, -1), 1) of a moved result costs no op in integers: its range cuts off."""

    @tf.function(input_signature=[tf.TensorSpec([1, 4, 4, 4], tf.float32)])
    def network(x):
        return tf.clip_by_value(tf.nn.depth_to_space(tf.nn.conv2d(x, weights, 1, "SAME"), 2), -1, 1)

    random = np.random.RandomState(0)
    weights = random.uniform(-1, 1, [1, 1, 4, 8]).astype(np.float32)
    converter = tf.lite.TFLiteConverter.from_concrete_functions([network.get_concrete_function()])
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    samples = [random.uniform(-2, 2, [1, 4, 4, 4]).astype(np.float32) for _ in range(8)]
    converter.representative_dataset = lambda: ([x] for x in samples)
    content = converter.convert()
    assert set(read_model(content).operator_counts()) == {"QUANTIZE", "CONV_2D", "DEPTH_TO_SPACE", "DEQUANTIZE"}
    plain = tf.lite.TFLiteConverter.from_concrete_functions([network.get_concrete_function()]).convert()
    (found,), (expected,) = _run(content, samples[0]).values(), _run(plain, samples[0]).values()
    np.testing.assert_allclose(found, expected, atol=0.03)


def test_tables_of_embeddings_are_stored_in_8_bits():
    """Without samples, a large table that rows are picked from is stored in 8 bits, and the rows are restored."""
    table = np.random.RandomState(0).uniform(-1, 1, [200, 16]).astype(np.float32)

    @tf.function(input_signature=[tf.TensorSpec([2, 3], tf.int32)])
    def network(ids):
        return tf.gather(table, ids)

    converter = tf.lite.TFLiteConverter.from_concrete_functions([network.get_concrete_function()])
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    content = converter.convert()
    assert len(content) < table.nbytes / 2
    ids = np.array([[1, 2, 3], [199, 0, 7]], np.int32)
    interpreter = tf.lite.Interpreter(model_content=content)
    run = interpreter.get_signature_runner()
    (found,) = run(**dict.fromkeys(run.get_input_details(), ids)).values()
    np.testing.assert_allclose(found, table[ids], atol=0.01)


@pytest.mark.usefixtures("eager")
def test_a_model_that_keeps_state_is_observed():
    """Operators without results, as those that assign to variables, are no sums before a softmax."""
    total = tf.Variable(np.zeros(4, np.float32))
    weights = np.random.RandomState(0).randn(4, 4).astype(np.float32)

    @tf.function(input_signature=[tf.TensorSpec([1, 4], tf.float32, name="x")])
    def step(x):
        total.assign_add(x[0])
        return {"y": tf.matmul(x, weights)}

    converter = tf.lite.TFLiteConverter.from_concrete_functions([step.get_concrete_function()])
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    x = np.random.RandomState(1).uniform(-1, 1, [1, 4]).astype(np.float32)
    converter.representative_dataset = lambda: [[x], [-x]]
    run = tf.lite.Interpreter(model_content=converter.convert()).get_signature_runner()
    np.testing.assert_allclose(run(x=x)["y"], x @ weights, atol=0.05)


def _two_signatures(tmp_path) -> Any:
    """Two signatures with the same weights, and samples of their inputs."""
    weights = tf.Variable(np.random.RandomState(0).randn(4, 4).astype(np.float32))
    module: Any = tf.Module()
    module.w = weights
    spec = tf.float32
    above = tf.function(
        lambda x: {"y": tf.nn.relu(tf.matmul(x, weights))}, input_signature=[tf.TensorSpec([1, 4], spec, name="x")]
    )
    curve = tf.function(
        lambda z: {"o": tf.tanh(tf.matmul(z, weights))}, input_signature=[tf.TensorSpec([1, 4], spec, name="z")]
    )
    tf.saved_model.save(module, str(tmp_path), signatures={"above": above, "curve": curve})
    converter = tf.lite.TFLiteConverter.from_saved_model(str(tmp_path))
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    return converter, np.random.RandomState(1).uniform(-1, 1, [16, 1, 4]).astype(np.float32), weights.numpy()


@pytest.mark.usefixtures("eager")
def test_samples_of_each_signature(tmp_path):
    """A sample may say which signature it is for: all signatures are quantized, with their inputs and outputs."""
    converter, samples, weights = _two_signatures(tmp_path)
    converter.representative_dataset = lambda: [
        pair for each in samples for pair in (("above", {"x": each}), ("curve", [each]))
    ]
    converter.target_spec.supported_ops = [OpsSet.TFLITE_BUILTINS_INT8]
    converter.inference_input_type = converter.inference_output_type = tf.int8
    interpreter = tf.lite.Interpreter(model_content=converter.convert())
    for key, name, function in (("above", "x", lambda v: np.maximum(v, 0)), ("curve", "z", np.tanh)):
        run = interpreter.get_signature_runner(key)
        (given,), (taken,) = run.get_input_details().values(), run.get_output_details().values()
        assert given["dtype"] is taken["dtype"] is np.int8
        scale, zero = given["quantization"]
        (found,) = run(**{name: np.clip(np.round(samples[0] / scale) + zero, -128, 127).astype(np.int8)}).values()
        real = (found.astype(np.float32) - taken["quantization"][1]) * taken["quantization"][0]
        np.testing.assert_allclose(real, function(samples[0] @ weights), atol=0.06)


@pytest.mark.usefixtures("eager")
def test_a_signature_without_samples(tmp_path):
    """A signature that no sample is for stays floating point; where that is not allowed, it is an error."""
    converter, samples, weights = _two_signatures(tmp_path)
    converter.representative_dataset = lambda: [("curve", [each]) for each in samples]
    run = tf.lite.Interpreter(model_content=converter.convert()).get_signature_runner("above")
    np.testing.assert_allclose(run(x=samples[0])["y"], np.maximum(samples[0] @ weights, 0), atol=0.05)
    converter.target_spec.supported_ops = [OpsSet.TFLITE_BUILTINS_INT8]
    with pytest.raises(ValueError, match="the range of 'above_x' is not known"):
        converter.convert()
    converter.representative_dataset = lambda: [("none", [samples[0]])]
    with pytest.raises(ValueError, match=r"for the signature 'none', and the model has \['above', 'curve'\]"):
        converter.convert()
