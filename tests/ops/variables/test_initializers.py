"""Initializers and regularizers: TensorFlow's values, and bad arguments."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import stoker as tf2
import stoker.compat.v1 as tf

GOLDEN = Path(__file__).parents[2] / "golden" / "initializers"
_spec = importlib.util.spec_from_file_location("initializer_cases", GOLDEN / "cases.py")
assert _spec is not None and _spec.loader is not None
cases = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(cases)
with np.load(GOLDEN / "values.npz") as _file:
    EXPECTED = {key: _file[key] for key in _file.files}


def _compare(found):
    for name, value in found.items():
        # Orthogonal bases go through a decomposition, whose rounding differs between libraries.
        orthogonal = "orthogonal" in name or "delta" in name
        np.testing.assert_allclose(value, EXPECTED[name], rtol=1e-6, atol=1e-6 if orthogonal else 0, err_msg=name)


def test_initial_values_of_1x():
    """Variables made by the initializers of 1.x start with TensorFlow's values."""
    _compare(cases.v1_values(tf))


def test_initial_values_of_contrib():
    """Xavier's and the other initializers of tf.contrib give TensorFlow 1.15's values."""
    _compare(cases.contrib_values(tf))


def test_initial_values_of_2x(eager):
    """The initializers of 2.x with a seed give TensorFlow's values, the same at every call."""
    _compare(cases.v2_values(tf2))
    _compare(cases.v2_values(tf2))


def test_unseeded_2x_initializers_differ(eager):
    """Without a seed two calls give different numbers."""
    made = tf2.initializers.GlorotUniform()
    assert not np.array_equal(np.array(made([4, 4])), np.array(made([4, 4])))


def test_2x_constants_must_fit(eager):
    """A constant has one element or as many as the shape."""
    assert np.array(tf2.constant_initializer([1, 2])([2])).tolist() == [1, 2]
    with pytest.raises(TypeError, match="2 elements"):
        tf2.constant_initializer([1, 2])([3])
    with pytest.raises(ValueError, match="numeric"):
        tf2.zeros_initializer()([2], tf2.string)
    with pytest.raises(TypeError, match="Unknown keyword"):
        tf2.zeros_initializer()([2], unknown=1)


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda: tf.orthogonal_initializer()([3]), ValueError),
        (lambda: tf.contrib.framework.convolutional_delta_orthogonal()([3, 4, 2]), ValueError),
        (lambda: tf.contrib.framework.convolutional_delta_orthogonal()([3, 4]), ValueError),
        (lambda: tf.contrib.layers.variance_scaling_initializer(mode="x"), TypeError),
        (lambda: tf.contrib.layers.xavier_initializer(dtype=tf.int32), TypeError),
        (lambda: tf.contrib.layers.l2_regularizer(1), ValueError),
        (lambda: tf.contrib.layers.l1_regularizer(-1.0), ValueError),
        (lambda: tf.contrib.layers.l1_l2_regularizer(1, 1.0), ValueError),
        (lambda: tf2.initializers.VarianceScaling(scale=-1.0), ValueError),
        (lambda: tf2.initializers.VarianceScaling(mode="x"), ValueError),
        (lambda: tf2.initializers.Identity()([2, 2, 2]), ValueError),
        (lambda: tf2.initializers.Orthogonal()([2]), ValueError),
    ],
)
def test_bad_arguments_are_refused(make, kind):
    """Settings and shapes that make no sense raise at once."""
    with pytest.raises(kind):
        make()


def test_regularizers():
    """Penalties have their values, their names, and join REGULARIZATION_LOSSES through get_variable."""
    value = np.array([[1.0, -2.0], [3.0, 0.5]], np.float32)
    chosen = {
        "l1": (tf.contrib.layers.l1_regularizer(0.1), 0.1 * 6.5),
        "l2": (tf.contrib.layers.l2_regularizer(0.1), 0.05 * 14.25),
        "both": (tf.contrib.layers.l1_l2_regularizer(0.1, 0.2), 0.65 + 0.1 * 14.25),
        "keras_l2": (tf.keras.regularizers.l2(0.1), 0.1 * 14.25),
        "keras_both": (tf.keras.regularizers.l1_l2(0.1, 0.2), 0.65 + 0.2 * 14.25),
    }
    for name, (regularizer, _) in chosen.items():
        tf.get_variable(name, initializer=value, regularizer=regularizer)
    tf.get_variable("free", initializer=value, regularizer=tf.contrib.layers.l2_regularizer(0.0))
    losses = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
    assert [loss.op.name for loss in losses][:2] == ["l1/Regularizer/l1_regularizer", "l2/Regularizer/l2_regularizer"]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        np.testing.assert_allclose(session.run(losses), [expected for _, expected in chosen.values()], rtol=1e-6)


def test_apply_regularization():
    """apply_regularization adds the penalties up and collects them."""
    total = tf.contrib.layers.apply_regularization(
        tf.contrib.layers.l2_regularizer(2.0), [tf.constant([1.0, 2.0]), tf.constant([3.0])]
    )
    with tf.Session() as session:
        assert session.run(total) == 14
    assert len(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)) == 2


@pytest.mark.parametrize("dtype", [tf.float16, tf.float64])
def test_orthogonal_values_of_other_dtypes(dtype):
    """Rows are orthogonal, and as long as the gain says, in the dtype that is asked for."""
    with tf.Session() as session:
        found = session.run(tf.orthogonal_initializer(gain=1.5, seed=3)([3, 7], dtype=dtype))
    assert found.dtype == dtype.as_numpy_dtype
    np.testing.assert_allclose(found @ found.T, 2.25 * np.eye(3), atol=5e-3)
