"""The networks of `tf.contrib.slim.nets` against what TensorFlow 1.15 made of the same calls (tests/golden/contrib/net_cases.py)."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

import stoker.compat.v1 as tf
from tests.golden.contrib import net_cases

EXPECTED = json.loads(gzip.decompress((Path(net_cases.HERE) / "nets.json.gz").read_bytes()))
slim = tf.contrib.slim


@pytest.mark.parametrize("name", net_cases.NETS)
def test_structure(name):
    """End points, variables, convolutions and pools have TensorFlow's names, shapes and attributes, in its order."""
    found = json.loads(json.dumps(net_cases.structure(tf, slim, slim.nets, name)))
    for key, expected in EXPECTED[name][0].items():
        assert found[key] == expected, key


@pytest.mark.parametrize("name", [name for name, case in net_cases.NETS.items() if case[2]])
def test_values(name):
    """With the same weights the first layers, penalties and moving averages have TensorFlow's values."""
    for found, expected in zip(net_cases.values(tf, slim, slim.nets, name), EXPECTED[name][1], strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_scores_of_small_images():
    """A network gives probabilities of classes, and every one of its variables gets a gradient, the classifier in the middle included."""
    images, nets = tf.constant(np.random.RandomState(0).rand(2, 139, 139, 3), tf.float32), slim.nets
    with slim.arg_scope(nets.inception.inception_v3_arg_scope()):
        logits, ends = nets.inception.inception_v3(images, 5, depth_multiplier=0.1, min_depth=4, is_training=False)
    loss = tf.reduce_sum(logits) + tf.reduce_sum(ends["AuxLogits"])
    assert all(each is not None for each in tf.gradients(loss, tf.trainable_variables()))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        np.testing.assert_allclose(session.run(ends["Predictions"]).sum(1), [1, 1], rtol=1e-5)


def test_errors():
    """An unknown end point and a multiplier that leaves no channels are refused."""
    images = tf.zeros([1, 224, 224, 3])
    with pytest.raises(ValueError, match="Unknown final endpoint here"):
        slim.nets.inception.inception_v1_base(images, "here")
    with pytest.raises(ValueError, match="depth_multiplier is not greater than zero"):
        slim.nets.inception.inception_v3(images, depth_multiplier=0)
