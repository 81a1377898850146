"""Bad calls and values that are no tensors: TensorFlow's error classes, when TensorFlow raises them."""

import functools
import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import stoker as tf

GOLDEN = Path(__file__).parent.parent / "golden"
sys.path.insert(0, str(GOLDEN))

import bad_calls  # noqa: E402

EXPECTED = json.loads((GOLDEN / "bad_calls.json").read_text())


@pytest.fixture
def found(eager):
    return _found()


@functools.cache
def _found():
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return {"calls": bad_calls.outcomes(tf), "conversions": bad_calls.conversions(tf)}


@pytest.mark.parametrize("name", EXPECTED["calls"])
def test_bad_calls(name, found):
    """Class and phase (building, running) are TensorFlow's: eagerly, with known and with unknown shapes."""
    assert found["calls"][name] == EXPECTED["calls"][name]


def test_values(found):
    """Python values become tensors of TensorFlow's dtypes, or its errors: those of eager mode differ from a graph's."""
    assert found["conversions"] == EXPECTED["conversions"]
