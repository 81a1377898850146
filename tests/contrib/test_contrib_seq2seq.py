"""tf.contrib.seq2seq, crf and legacy_seq2seq: variables, outputs and gradients are those of TensorFlow 1.15."""

from pathlib import Path

import numpy as np
import pytest

import stoker.compat.v1 as tf
from tests.golden.contrib.rnn import cases, seq2seq_cases

GOLDEN = np.load(Path(cases.__file__).with_name("seq2seq_values.npz"))


@pytest.mark.parametrize("name", seq2seq_cases.SEQ2SEQ)
def test_sequences(name):
    """A network has the variables of TensorFlow's, and the same outputs and gradients with the same weights and seeds."""
    found = cases.results(tf, seq2seq_cases.SEQ2SEQ[name], not name.startswith("beam"))
    expected = {key.partition("/")[2]: GOLDEN[key] for key in GOLDEN.files if key.startswith(name + "/")}
    assert list(found.pop("variables")) == list(expected.pop("variables"))
    assert list(found.pop("without")) == list(expected.pop("without"))
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        np.testing.assert_allclose(found[key], value, rtol=2e-5, atol=3e-6, err_msg=key)
