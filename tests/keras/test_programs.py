"""Programs with `tf.keras`: what TensorFlow 1.15 recorded for each (tests/golden/keras)."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest

import stoker as tf2
import stoker.compat.v1 as tf
from stoker._src.base import settings

GOLDEN = Path(__file__).parent.parent / "golden" / "keras"


def _loaded():
    """The modules of programs, which import one another by their plain names; other folders have files of the same names."""
    before = {name: sys.modules.pop(name, None) for name in ("programs", "data_programs", "image_programs")}
    sys.path.insert(0, str(GOLDEN))
    try:
        return importlib.import_module("programs"), importlib.import_module("image_programs")
    finally:
        sys.path.remove(str(GOLDEN))
        for name, module in before.items():
            sys.modules.pop(name, None)
            if module is not None:
                sys.modules[name] = module


programs, image_programs = _loaded()
EXPECTED = json.loads((GOLDEN / "results.json").read_text())
EXPECTED_IMAGES = json.loads((GOLDEN / "image_results.json").read_text())


def assert_close(found, expected, where=""):
    """Equal structures, and numbers that differ by at most two in the fourth digit behind the point."""
    if isinstance(expected, dict):
        assert set(found) == set(expected), where
        for key in expected:
            assert_close(found[key], expected[key], f"{where}.{key}")
    elif isinstance(expected, list) and not _numbers(expected):
        assert len(found) == len(expected), where
        for i, (one, other) in enumerate(zip(found, expected)):
            assert_close(one, other, f"{where}[{i}]")
    elif isinstance(expected, (list, float)):
        np.testing.assert_allclose(found, expected, atol=2e-4, rtol=0, err_msg=where)
    else:
        assert found == expected, where


def _numbers(value):
    return (
        not isinstance(value, (str, dict, bool, type(None)))
        and np.asarray(value, dtype=object).size > 0
        and all(
            isinstance(each, (int, float)) and not isinstance(each, bool)
            for each in np.asarray(value, dtype=object).reshape(-1)
        )
    )


@pytest.fixture(autouse=True)
def cleared():
    """Neither layer names nor sessions of an earlier test."""
    tf.keras.backend.clear_session()
    yield
    tf.keras.backend.clear_session()


@pytest.mark.parametrize("name", sorted(programs.PROGRAMS))
def test_programs_in_graphs(name, tmp_path):
    """Losses, metrics, predictions, names and configurations equal those of TensorFlow in a session."""
    assert_close(programs.plain(programs.PROGRAMS[name](tf, str(tmp_path))), EXPECTED["graph"][name])


@pytest.mark.parametrize("name", sorted(programs.PROGRAMS))
def test_programs_in_eager_mode(name, eager, tmp_path):
    """The same where ops run when called."""
    tf.keras.backend.clear_session()
    assert_close(programs.plain(programs.PROGRAMS[name](tf, str(tmp_path))), EXPECTED["eager"][name])


@pytest.mark.parametrize("name", sorted(image_programs.PROGRAMS))
def test_programs_with_images(name, tmp_path):
    """Images in files, folders and arrays, and their random transformations, equal those of TensorFlow."""
    assert_close(programs.plain(image_programs.PROGRAMS[name](tf, str(tmp_path))), EXPECTED_IMAGES[name])


def test_names_of_initializers_of_2_x(monkeypatch):
    """Layers have defaults by names that 2.x does not export: "uniform" and "normal"."""
    monkeypatch.setattr(settings, "tensor_equality", True)
    assert type(tf2.keras.initializers.get("uniform")) is tf2.keras.initializers.RandomUniform
    assert type(tf2.keras.initializers.get("normal")) is tf2.keras.initializers.RandomNormal


def test_metrics_are_reset_under_either_name(eager):
    """`reset_state` is the name in 2.x. A model resets its metrics by whichever method a subclass overrides."""

    class Under2(tf2.keras.metrics.Mean):
        def reset_state(self):
            self.total.assign(7.0)

    class Under1(tf2.keras.metrics.Mean):
        def reset_states(self):
            self.total.assign(8.0)

    mean = tf2.keras.metrics.Mean()
    mean.update_state(3.0)
    mean.reset_state()
    assert [float(each) for each in mean.variables] == [0.0, 0.0]
    model = tf2.keras.Sequential([tf2.keras.layers.Dense(1, input_shape=(2,))])
    model.compile("sgd", "mse", metrics=[Under2(), Under1()])
    model.reset_metrics()
    assert [float(each.total) for each in model.metrics[-2:]] == [7.0, 8.0]


class Small(tf.keras.Model):
    """Two layers, one of them in a list."""

    def __init__(self, name):
        super().__init__(name=name)
        self.first = tf.keras.layers.Dense(2, name="first")
        self.others = [tf.keras.layers.Dense(1, name="other")]

    def call(self, x):
        return self.others[0](self.first(x))


@pytest.mark.parametrize("mode", ["graph", "eager"])
def test_variables_have_the_names_of_their_scopes(mode, request):
    """A layer's variables have its name before theirs, and the names of open scopes and of the model that calls it; `build`
    calls the layers without the model. In eager mode as in a graph."""
    if mode == "eager":
        request.getfixturevalue("eager")
    called, built = Small("net"), Small("net")
    called(tf.ones([1, 3]))
    built.build((None, 3))
    assert [v.name for v in called.weights] == [
        f"net/{each}:0" for each in ("first/kernel", "first/bias", "other/kernel", "other/bias")
    ]
    assert [v.name for v in built.weights][::2] == ["first/kernel:0", "other/kernel:0"]
    with tf.name_scope("outer"):
        layer = tf.keras.layers.Dense(1, name="inner")
        layer(tf.ones([1, 3]))
        with tf.init_scope():
            variable = tf.Variable(1.0, name="v")
    assert [layer.kernel.name, variable.name] == ["outer/inner/kernel:0", "outer/v:0"]


def test_eager_tensors_are_data_like_arrays(eager):
    """Training, evaluation and prediction take the same batches from tensors as from arrays, and shuffle them alike."""
    x, y = np.arange(12, dtype=np.float32).reshape(6, 2) / 10, np.array([0, 1, 0, 1, 1, 0])

    def found(convert):
        model = tf.keras.Sequential(
            [tf.keras.layers.Dense(2, "softmax", input_shape=(2,), kernel_initializer=tf.keras.initializers.Ones())]
        )
        model.compile(tf.keras.optimizers.SGD(0.5), "sparse_categorical_crossentropy", metrics=["acc"])
        np.random.seed(3)
        losses = model.fit(convert(x), convert(y), batch_size=4, epochs=3, verbose=0).history["loss"]
        return [losses, model.evaluate(convert(x), convert(y), verbose=0), model.predict(convert(x), 4).tolist()]

    assert_close(found(tf.constant), found(np.asarray))


@pytest.mark.parametrize("two", [True, False])
def test_apply_gradients_keeps_to_bounds_in_2_x(two, eager, monkeypatch):
    """2.x bounds gradients that a program computed, too; 1.x does not. `minimize` bounds them in both."""
    monkeypatch.setattr(settings, "tensor_equality", two)
    for bound, expected in (
        ({"clipnorm": 0.1}, [1 - 0.1 / 5**0.5, 2 - 0.2 / 5**0.5, 2.9]),
        ({"clipvalue": 0.1}, [0.9, 1.9, 2.9]),
        ({"global_clipnorm": 0.1}, [1 - 0.1 / 14**0.5, 2 - 0.2 / 14**0.5, 3 - 0.3 / 14**0.5]),
    ):
        v, w = tf2.Variable([1.0, 2.0]), tf2.Variable(3.0)

        def loss(v=v, w=w):
            return tf.reduce_sum(v * v) + w * w

        optimizer = tf2.keras.optimizers.SGD(1.0, **bound)
        assert type(optimizer).from_config(optimizer.get_config()).get_config() == optimizer.get_config()
        optimizer.minimize(loss, [v, w])
        np.testing.assert_allclose([*v.numpy(), w.numpy()], expected, rtol=1e-6)
        v.assign([1.0, 2.0])
        w.assign(3.0)
        with tf.GradientTape() as recorded:
            value = loss()
        optimizer.apply_gradients(zip(recorded.gradient(value, [v, w]), [v, w]))
        np.testing.assert_allclose([*v.numpy(), w.numpy()], expected if two else [-1.0, -2.0, -3.0], rtol=1e-6)


@pytest.mark.parametrize("mode", ["graph", "eager"])
def test_weights_of_several_outputs(mode, request):
    """Weights of examples by the names of outputs are those in a list in the outputs' order; an output may have none."""
    if mode == "eager":
        request.getfixturevalue("eager")
        tf.keras.backend.clear_session()
    x, weights = np.arange(16, dtype=np.float32).reshape(8, 2) / 16, np.linspace(0, 2, 8)

    def losses(given):
        inputs = tf.keras.Input((2,))
        outputs = [tf.keras.layers.Dense(1, kernel_initializer="ones", name=name)(inputs) for name in ("a", "b")]
        model = tf.keras.Model(inputs, outputs)
        model.compile(tf.keras.optimizers.SGD(0.1), "mse")
        options = {"batch_size": 4, "epochs": 2, "verbose": 0, "shuffle": False, "validation_split": 0.5}
        return model.fit(x, {"a": x[:, 0], "b": x[:, 1]}, sample_weight=given, **options).history

    if mode == "graph":
        with pytest.raises(ValueError, match=r"Unknown entries in sample_weight dictionary: \['c'\]"):
            losses({"c": weights})
    assert_close(losses({"b": weights, "a": weights * 3}), losses([weights * 3, weights]))
    by_name = losses({"b": weights})
    assert_close(by_name, losses([None, weights]))
    assert_close(by_name, losses([np.ones(8), weights]))


def test_losses_and_metrics_by_name(eager):
    """`return_dict` gives names to what evaluation and single batches return."""
    model = tf2.keras.Sequential([tf2.keras.layers.Dense(1, input_shape=(2,), kernel_initializer="ones")])
    model.compile("sgd", "mse", metrics=[tf2.keras.metrics.MeanAbsoluteError(name="mae")])
    x, y = np.ones([4, 2], np.float32), np.zeros([4, 1], np.float32)
    assert model.evaluate(x, y, verbose=0, return_dict=True) == {"loss": 4.0, "mae": 2.0}
    assert model.test_on_batch(x, y, return_dict=True) == {"loss": 4.0, "mae": 2.0}
    assert model.train_on_batch(x, y, return_dict=True) == {"loss": 4.0, "mae": 2.0}
    model.compile("sgd", "mse")
    assert set(model.evaluate(x, y, verbose=0, return_dict=True)) == {"loss"}


@pytest.mark.parametrize("centered", [False, True])
def test_rmsprop_looks_at_the_averages_after_their_update(centered):
    """The update of rows divides by the root of averages that this step's gradient has entered; all rows decay."""
    with tf.Graph().as_default(), tf.Session() as session:
        table = tf.get_variable("table", initializer=np.ones([4, 2], "f"), use_resource=True)
        rows = tf.placeholder(tf.int32, [None])
        optimizer = tf.keras.optimizers.RMSprop(0.1, centered=centered)
        update = optimizer.get_updates(tf.reduce_sum(tf.gather(table, rows) ** 2), [table])
        session.run(tf.global_variables_initializer())
        expected, squares, means = np.ones([4, 2]), np.zeros([4, 2]), np.zeros([4, 2])
        for taken in ([1, 3, 3], [0, 3]):
            session.run(update, {rows: taken})
            counts = np.bincount(taken, minlength=4)[:, None]
            gradient = counts * 2 * expected
            squares = 0.9 * squares + 0.1 * gradient**2
            means = 0.9 * means + 0.1 * gradient
            spread = squares - means**2 if centered else squares
            expected -= np.where(counts > 0, 0.1 * gradient / (np.sqrt(spread) + 1e-7), 0.0)
        np.testing.assert_allclose(session.run(table), expected, rtol=1e-5)
