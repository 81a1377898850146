"""Models of feature columns train as TensorFlow's do, and their checkpoints are each other's."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

import stoker.compat.v1 as tf

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "feature_column"
_spec = importlib.util.spec_from_file_location("feature_column_models", GOLDEN / "models.py")
assert _spec is not None and _spec.loader is not None
models = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(models)
# TensorFlow warns of the same conversion.
pytestmark = pytest.mark.filterwarnings("ignore:Converting sparse IndexedSlices:UserWarning")


@pytest.mark.parametrize("version", ["tf1", "tf2"])
@pytest.mark.parametrize("name", sorted(models.MODELS))
def test_fifty_steps_have_the_losses_of_tensorflow(name, version):
    """Wide, deep, crossed, shared and sequence models, from serialized Examples, have TensorFlow's losses."""
    expected = json.loads((GOLDEN / version / "losses.json").read_text())[name]
    np.testing.assert_allclose(models.train(tf, models.MODELS[name]), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("version", ["tf1", "tf2"])
def test_a_checkpoint_of_tensorflow_goes_on_here(version):
    """A wide and deep model that TensorFlow trained for fifty steps is restored by name, and its loss goes on falling."""
    expected = json.loads((GOLDEN / version / "losses.json").read_text())["wide_and_deep"]
    losses = models.train(
        tf, models.wide_and_deep, restore_from=str(GOLDEN / version / "after" / "wide_and_deep"), steps=2
    )
    assert losses[1] < losses[0] < expected[-1]


def test_a_checkpoint_has_the_names_and_shapes_of_tensorflow(tmp_path):
    """A saved model has the same tensors as TensorFlow's, partitioned tables as one."""
    models.train(tf, models.wide_and_deep, save_to=str(tmp_path / "mine"), steps=1)
    theirs = tf.train.load_checkpoint(str(GOLDEN / "tf2" / "after" / "wide_and_deep")).get_variable_to_shape_map()
    assert tf.train.load_checkpoint(str(tmp_path / "mine")).get_variable_to_shape_map() == theirs
