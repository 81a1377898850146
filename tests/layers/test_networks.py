"""Networks of layers, trained next to TensorFlow: the same variables, the same numbers."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import stoker.compat.v1 as tf

GOLDEN = Path(__file__).parents[1] / "golden" / "networks"
_spec = importlib.util.spec_from_file_location("network_cases", GOLDEN / "cases.py")
assert _spec is not None and _spec.loader is not None
cases = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(cases)

# What variables, losses, gradients and metrics are worth in twenty steps is allowed more where an optimizer divides by the size of the gradient: Adam
# turns the last bit of a gradient near zero, which differs from processor to processor, into part of a step. (In float64 it does not.)
LOOSE = {"perceptron": 2e-4}


@pytest.mark.parametrize("name", cases.NETWORKS)
def test_network_trains_as_in_tensorflow(name):
    """Names and initial values of variables, and losses, gradients and metrics of twenty steps, are TensorFlow's."""
    found = cases.train(tf, cases.NETWORKS[name])
    with np.load(GOLDEN / "values.npz") as golden:
        expected = {
            key.split("|", 1)[1].replace("@", "/"): golden[key] for key in golden.files if key.startswith(f"{name}|")
        }
    assert found.keys() == expected.keys()
    assert found.pop("names").tolist() == expected["names"].tolist()
    for key, value in found.items():
        is_early = key.endswith("|first")
        tolerance = 3e-7 if key.startswith("initial|") else 1e-5 if is_early else LOOSE.get(name, 1e-5)
        np.testing.assert_allclose(value, expected[key], rtol=tolerance, atol=tolerance, err_msg=key)
