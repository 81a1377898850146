"""quantize and dequantize."""

from __future__ import annotations

import numpy as np
import pytest

import stoker as tf2
import stoker.compat.v1 as tf

X = np.array([-3.3, -1.0, -0.5, -0.26, 0, 0.1, 0.5, 0.75, 1.0, 1.6, 7.0, 2.49], np.float32)


# (mode, dtype, rounding, narrow, least, most) -> integers, range: printed by TensorFlow 2.21 without oneDNN.
CASES = [
    ("MIN_COMBINED", "qint8", "HALF_AWAY_FROM_ZERO", False, -1.0, 1.0,
     [-128, -128, -64, -34, -1, 12, 63, 95, 127, 127, 127, 127], (-1, 1)),
    ("MIN_COMBINED", "quint8", "HALF_AWAY_FROM_ZERO", False, 0.5, 2.0,
     [0, 0, 0, 0, 0, 13, 64, 96, 128, 204, 255, 255], (0, 2)),
    ("MIN_COMBINED", "quint8", "HALF_AWAY_FROM_ZERO", False, 0.0, 0.0,
     [0, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255], (0, 0.01)),
    ("MIN_FIRST", "qint8", "HALF_AWAY_FROM_ZERO", False, -1.0, 1.0,
     [-128, -128, -64, -33, 0, 13, 64, 96, 127, 127, 127, 127], (-1, 1)),
    ("SCALED", "quint8", "HALF_AWAY_FROM_ZERO", True, -1.0, 1.0,
     [1, 1, 1, 1, 1, 26, 128, 191, 255, 255, 255, 255], (0.0039216, 1)),
    ("SCALED", "quint8", "HALF_TO_EVEN", True, 0.0, 6.0,
     [1, 1, 1, 1, 1, 4, 21, 32, 42, 68, 255, 106], (0.023529, 6)),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case[:4])))
def test_integers_are_those_of_tensorflow(eager, case):
    """Every mode gives TensorFlow's integers and range."""
    mode, dtype, rounding, narrow, least, most, integers, wanted = case
    found = tf2.quantization.quantize(X, least, most, getattr(tf2, dtype), mode, rounding, narrow_range=narrow)
    assert found.output.numpy().astype(np.int64).tolist() == integers
    np.testing.assert_allclose([found.output_min.numpy(), found.output_max.numpy()], wanted, rtol=1e-4)


@pytest.mark.parametrize("mode", ["MIN_COMBINED", "MIN_FIRST", "SCALED"])
@pytest.mark.parametrize("dtype", ["qint8", "quint8", "qint16", "quint16"])
def test_a_round_trip_stays_close(eager, mode, dtype):
    """Dequantized values lie within a step; MIN_FIRST may round the start of the range once more, as in TensorFlow."""
    kind = getattr(tf2, dtype)
    x = np.linspace(0 if dtype.startswith("qu") and mode == "SCALED" else -3, 3, 50).astype(np.float32)
    quantized = tf2.quantization.quantize(x, -3.0, 3.0, kind, mode)
    back = tf2.quantization.dequantize(*quantized, mode=mode)
    step = 6.1 / (int(kind.max) - int(kind.min))
    np.testing.assert_allclose(back.numpy(), x, atol=1.5 * step if mode == "MIN_FIRST" else step)


def test_ranges_of_slices(eager):
    """With an axis each slice has its own scale; MIN_FIRST does not know how."""
    y = np.array([[1.0, -2.0, 3.0], [0.5, 4.0, -6.0]], np.float32)
    found = tf2.quantization.quantize(y, [-1.0, -2.0], [2.0, 3.0], tf2.qint8, "MIN_COMBINED", axis=0)
    assert found.output.numpy().tolist() == [[42, -128, 127], [-1, 127, -128]]
    back = tf2.quantization.dequantize(*found, axis=-2)
    np.testing.assert_allclose(back.numpy(), [[1.0, -1.0, 2.0], [0.4902, 3.0, -2.0]], atol=1e-4)
    with pytest.raises(tf.errors.UnimplementedError):
        tf2.quantization.quantize(y, [-1.0, -2.0], [2.0, 3.0], tf2.qint8, "MIN_FIRST", axis=0)
    with pytest.raises(tf.errors.InvalidArgumentError, match="2 elements"):
        tf2.quantization.quantize(y, [-1.0], [2.0], tf2.qint8, axis=0)


def test_bad_ranges_and_roundings(eager):
    """A range that ends before it starts is refused, and rounding to even outside SCALED."""
    with pytest.raises(tf.errors.InvalidArgumentError, match="larger"):
        tf2.quantization.quantize(X, 2.0, 1.0, tf2.quint8)
    with pytest.raises(tf.errors.InvalidArgumentError, match="HALF_TO_EVEN"):
        tf2.quantization.quantize(X, 0.0, 1.0, tf2.quint8, "MIN_FIRST", "HALF_TO_EVEN")
