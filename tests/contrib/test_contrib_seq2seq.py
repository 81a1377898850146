"""tf.contrib.seq2seq, crf and legacy_seq2seq: variables, outputs and gradients are those of TensorFlow 1.15."""

from pathlib import Path

import numpy as np
import pytest

import stoker.compat.v1 as tf
from tests.golden.contrib.rnn import cases, programs, seq2seq_cases

GOLDEN = np.load(Path(cases.__file__).with_name("seq2seq_values.npz"))


# Variants whose gradients are those of another case; only their outputs are compared, which takes a fifth of the time.
OUTPUTS_ONLY = {
    "bahdanau_normalized", "two_contexts", "monotonic_luong", "inference", "custom", "scheduled_output_mapped", "sample_embedding",
    "legacy_basic", "legacy_embedding", "legacy_embedding_fed", "legacy_attention_fed", "legacy_projected", "legacy_one_to_many", "legacy_buckets",
}  # fmt: skip


@pytest.mark.parametrize("name", seq2seq_cases.SEQ2SEQ)
def test_sequences(name):
    """A network has the variables of TensorFlow's, and the same outputs and gradients with the same weights and seeds."""
    found = cases.results(tf, seq2seq_cases.SEQ2SEQ[name], not name.startswith("beam") and name not in OUTPUTS_ONLY)
    expected = {key.partition("/")[2]: GOLDEN[key] for key in GOLDEN.files if key.startswith(name + "/")}
    if name in OUTPUTS_ONLY:
        found.pop("without")
        expected = {key: value for key, value in expected.items() if key == "variables" or key.startswith("output")}
    else:
        assert list(found.pop("without")) == list(expected.pop("without"))
    assert list(found.pop("variables")) == list(expected.pop("variables"))
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        np.testing.assert_allclose(found[key], value, rtol=2e-5, atol=3e-6, err_msg=key)


@pytest.mark.parametrize("name", programs.PROGRAMS)
def test_program(name):
    """A whole program has TensorFlow's losses over 20 steps, and its predictions."""
    expected = np.load(Path(cases.__file__).with_name("programs_values.npz"))
    found = programs.PROGRAMS[name](tf, cases.value_of)
    assert list(found.pop("names")) == list(expected[f"{name}/names"])
    for key, value in found.items():
        np.testing.assert_allclose(value, expected[f"{name}/{key}"], rtol=1e-5, err_msg=key)
