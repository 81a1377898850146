"""The cells of tf.contrib.rnn: variables, outputs and gradients are those of TensorFlow 1.15."""

from pathlib import Path

import numpy as np
import pytest

import stoker.compat.v1 as tf
from tests.golden.contrib.rnn import cases

GOLDEN = np.load(Path(cases.__file__).with_name("values.npz"))


@pytest.mark.parametrize("name", cases.CASES)
def test_cell(name):
    """A cell has the variables of TensorFlow's, and the same outputs and gradients with the same weights."""
    found = cases.results(tf, cases.CASES[name])
    expected = {key.partition("/")[2]: GOLDEN[key] for key in GOLDEN.files if key.startswith(name + "/")}
    assert list(found.pop("variables")) == list(expected.pop("variables"))
    assert list(found.pop("without")) == list(expected.pop("without"))
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        np.testing.assert_allclose(found[key], value, rtol=1e-5, atol=2e-6, err_msg=key)
