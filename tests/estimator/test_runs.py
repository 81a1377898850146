"""Estimators train, evaluate and predict as in TensorFlow 1.15, from the same initial values."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

import stoker.compat.v1 as tf

FOLDER = Path(__file__).parent.parent / "golden" / "estimator"
EXPECTED = json.loads((FOLDER / "runs.json").read_text())
# One case of each kind. `scripts/estimator_runs.py` compares all of them.
CASES = (
    "custom",
    "linear_weighted",
    "dnn_norm",
    "dnn_named",
    "wide_deep",
    "baseline_price",
    "head_several",
    "head_multi",
    "object_binary",
)


def _script():
    spec = importlib.util.spec_from_file_location("runs", FOLDER / "runs.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


RUNS = _script()


def read_starts():
    """The initial values of each case."""
    found: dict[str, dict[str, np.ndarray]] = {}
    with np.load(FOLDER / "starts.npz") as file:
        for name in file.files:
            case, _, variable = name.partition("|")
            found.setdefault(case, {})[variable] = file[name]
    return found


@pytest.fixture(scope="module")
def starts():
    """The initial values of each case."""
    return read_starts()


def same(found, expected, path):
    """Compares JSON values; numbers to a relative 2e-5."""
    if isinstance(expected, dict):
        assert sorted(found) == sorted(expected), path
        for name in expected:
            same(found[name], expected[name], f"{path}/{name}")
    elif isinstance(expected, list) and expected and isinstance(expected[0], (dict, str)):
        assert len(found) == len(expected), path
        for number, (one, other) in enumerate(zip(found, expected)):
            same(one, other, f"{path}[{number}]")
    elif isinstance(expected, str):
        assert found == expected, path
    else:
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5, err_msg=path)


@pytest.mark.parametrize("case", CASES)
def test_run_is_that_of_tensorflow(case, starts, tmp_path):
    """Losses of all steps, metrics, predictions and names of variables are those of TensorFlow."""
    found, _ = RUNS.run(tf, case, str(tmp_path), starts[case])
    same(json.loads(json.dumps(found)), EXPECTED[case], case)
