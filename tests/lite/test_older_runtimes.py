"""Models for older runtimes: builtins that TensorFlow 1.15 does not have are composed of those that it has, or refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import stoker.compat.v1 as tf
from stoker._src.lite.convert import ConverterError
from stoker._src.lite.flatbuffer import read_model
from stoker._src.lite.model import OPERATOR_CODES
from tests.lite.cases import CASES, COMPOSED, VARIANTS
from tests.lite.models import NETWORKS
from tests.lite.running import run_model

LAST_OF_1_15 = OPERATOR_CODES["WHILE"]


def converted(
    build: Any, arrays: list[np.ndarray], runtime: str | None = "1.15.0", **settings: Any
) -> tuple[bytes, Any]:
    """The model of a graph for a runtime, and the session's results."""
    graph = tf.Graph()
    with graph.as_default(), tf.Session(graph=graph) as session:
        inputs = [tf.placeholder(array.dtype, array.shape) for array in arrays]
        outputs = tf.nest.flatten(build(tf, *inputs))
        session.run(tf.global_variables_initializer())
        expected = session.run(outputs, dict(zip(inputs, arrays, strict=True)))
        converter = tf.lite.TFLiteConverter.from_session(session, inputs, outputs)
        converter.target_spec.min_runtime_version = runtime
        for name, value in settings.items():
            setattr(converter, name, value)
        return converter.convert(), expected


def check(model: bytes, arrays: list[np.ndarray], expected: Any, tolerance: float = 1e-5) -> None:
    assert max(OPERATOR_CODES[operator.code] for operator in read_model(model).operators()) <= LAST_OF_1_15
    for found, value in zip(run_model(model, arrays), expected, strict=True):
        np.testing.assert_allclose(found, value, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", ["gru", "detection", "transformer", "unet"])
def test_a_network_for_1_15(name):
    """A network has only builtins of 1.15 if that is asked for, and computes what the session does."""
    network = NETWORKS[name]
    arrays = network.inputs()
    model, expected = converted(network.build, arrays)
    check(model, arrays, expected)
    runtime = read_model(model).metadata["min_runtime_version"].rstrip(b"\0").decode()
    assert [int(part) for part in runtime.split(".")] <= [2, 0, 0]


@pytest.mark.parametrize("stride", [1, 2])
def test_convolutions_of_one_channel(stride):
    """They are depthwise for old runtimes, whose kernels for these are faster."""
    image = np.random.RandomState(0).randn(2, 9, 8, 1).astype(np.float32)
    filters = np.random.RandomState(1).randn(3, 2, 1, 5).astype(np.float32)
    model, expected = converted(lambda tf, x: tf.nn.relu(tf.nn.conv2d(x, filters, stride, "SAME") + 0.5), [image])
    check(model, [image], expected)
    assert [operator.code for operator in read_model(model).main.operators] == ["DEPTHWISE_CONV_2D"]


@pytest.mark.parametrize(("rows", "runtime"), [(20, "1.15.0"), (80, "2.9.0")])
def test_short_lists_need_no_young_runtime(rows, runtime):
    """A loop that collects a short list is read by 1.15, also if that is not asked for."""

    def build(tf: Any, x: Any) -> Any:
        array = tf.TensorArray(tf.float32, size=rows, element_shape=[4])
        step = lambda i, a: (i + 1, a.write(i, x * tf.cast(i, tf.float32)))  # noqa: E731
        return tf.while_loop(lambda i, a: i < rows, step, [0, array])[1].stack()

    x = np.array([1, -2, 3, 0.5], np.float32)
    model, expected = converted(build, [x], None)
    np.testing.assert_allclose(run_model(model, [x])[0], expected[0], rtol=1e-6)
    assert read_model(model).metadata["min_runtime_version"].rstrip(b"\0").decode() == runtime


FORMS = (
    "ABS-int32 ADD-rank-5 MAXIMUM-rank-5 SUB-rank-5 BATCH_MATMUL BATCH_MATMUL-broadcast BATCH_MATMUL-einsum BROADCAST_TO GELU GELU-tanh NON_MAX_SUPPRESSION_V4-padded REDUCE_ALL RELU_0_TO_1 "
    "RESIZE_BILINEAR-half-pixel RESIZE_NEAREST_NEIGHBOR-half-pixel SELECT_V2 SELECT_V2-band-part SIGN SIGN-int32 TRANSPOSE_CONV-bias TRANSPOSE_CONV-activation TRANSPOSE_CONV-activation-alone WHERE-float"
).split()


@pytest.mark.parametrize(
    "case", [case for case in (*CASES, *COMPOSED, *VARIANTS) if case.label in FORMS], ids=lambda case: case.label
)
def test_a_builtin_composed_of_older_ones(case):
    """Each form computes what the builtin does."""
    model, expected = converted(case.build, case.inputs)
    check(model, case.inputs, expected)


def test_all_forms_are_tried():
    """The list above names cases that exist."""
    assert set(FORMS) <= {case.label for case in (*CASES, *COMPOSED, *VARIANTS)}


def test_large_and_small_arguments_of_gelu():
    """The polynomial of the older form is exact to 1e-6 where the function bends, and does not leave it far outside."""
    x = np.concatenate([np.linspace(-9, 9, 2001), [-1e4, -50.0, 50.0, 1e4]]).astype(np.float32)
    build = lambda tf, x: 0.5 * x * (1.0 + tf.math.erf(x * np.float32(np.sqrt(0.5))))  # noqa: E731
    model, expected = converted(build, [x])
    check(model, [x], expected, 1e-6)


@pytest.mark.parametrize("integers", [False, True])
def test_quantized_weights_for_1_15(integers):
    """Weights get one scale, or stay floating point, where 1.15 has no kernel for one in each channel."""
    network = NETWORKS["mobilenet_v2"]
    arrays = network.inputs()

    def build(tf: Any, x: Any) -> Any:
        return network.build(tf, x, width=16)

    settings: dict[str, Any] = {"optimizations": [tf.lite.Optimize.DEFAULT]}
    if integers:
        settings["representative_dataset"] = lambda: iter([arrays])
    model, expected = converted(build, arrays, **settings)
    plain, _ = converted(build, arrays, runtime=None, **settings)
    versions = {(operator.code, operator.version) for operator in read_model(model).operators()}
    assert max(version for code, version in versions if code == "FULLY_CONNECTED") <= 6
    assert max(version for code, version in versions if "CONV_2D" in code) <= 3
    found, reference = run_model(model, arrays)[0], run_model(plain, arrays)[0]
    scale = np.abs(expected[0]).max()
    assert np.abs(found - expected[0]).max() <= max(0.1 * scale, 2 * np.abs(reference - expected[0]).max())


def test_what_the_runtime_cannot_compute_is_refused():
    """The error names the runtime, the builtin, its result and the reason."""
    with pytest.raises(ConverterError, match=r"younger runtime than 1\.15\.0.*\n.*CUMSUM, which makes 'Cumsum'"):
        converted(lambda tf, x: tf.cumsum(x), [np.ones(3, np.float32)])
    with pytest.raises(ConverterError, match="it weakens scores"):
        boxes, scores = np.random.rand(4, 4).astype(np.float32), np.random.rand(4).astype(np.float32)
        converted(lambda tf, b, s: tf.image.non_max_suppression_with_scores(b, s, 2, 0.5, 0.1, 0.5), [boxes, scores])


def test_a_younger_runtime_keeps_what_it_has():
    """2.3 has BATCH_MATMUL but not GELU."""
    network = NETWORKS["transformer"]
    model, _ = converted(network.build, network.inputs(), "2.3.0")
    codes = read_model(model).operator_counts()
    assert codes["BATCH_MATMUL"] == 2
    assert codes["GELU"] == 0


@pytest.mark.parametrize("version", ["1.14.0", "newest", 2, ""])
def test_a_runtime_must_be_a_version(version):
    """Anything but None or a version from 1.15 on is an error."""
    with pytest.raises(ValueError, match=r"min_runtime_version must be a version from 1\.15\.0 on"):
        converted(lambda tf, x: x + 1.0, [np.ones(3, np.float32)], version)
