"""Training programs as users write them, next to TensorFlow: the same variables, the same numbers."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import stoker.compat.v1 as tf

GOLDEN = Path(__file__).parents[1] / "golden" / "programs"
_spec = importlib.util.spec_from_file_location("program_cases", GOLDEN / "cases.py")
assert _spec is not None and _spec.loader is not None
cases = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(cases)


@pytest.mark.filterwarnings("ignore:Converting sparse")  # TensorFlow warns of it, too
@pytest.mark.parametrize("name", cases.PROGRAMS)
def test_program_trains_as_in_tensorflow(name):
    """Names and values of variables, losses, gradients and metrics of twenty steps are TensorFlow's."""
    found = cases.train(tf, cases.PROGRAMS[name])
    with np.load(GOLDEN / "values.npz") as golden:
        expected = {key.split("|", 1)[1]: golden[key] for key in golden.files if key.startswith(f"{name}|")}
    assert found.keys() == expected.keys()
    assert found.pop("names").tolist() == expected["names"].tolist()
    for key, value in found.items():
        np.testing.assert_allclose(value, expected[key], rtol=1e-5, atol=1e-5, err_msg=key)
