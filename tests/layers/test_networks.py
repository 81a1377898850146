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


@pytest.mark.parametrize("name", cases.NETWORKS)
def test_network_trains_as_in_tensorflow(name):
    """Variables have TensorFlow's names, order and initial values, and twenty steps give its loss curve."""
    names, initial, losses, final = cases.train(tf, cases.NETWORKS[name])
    with np.load(GOLDEN / "values.npz") as expected:
        assert names == expected[f"{name}|names"].tolist()
        for variable, value in zip(names, initial):
            found = expected[f"{name}|initial|{variable.replace('/', '@')}"]
            np.testing.assert_allclose(value, found, rtol=3e-7, atol=1e-9, err_msg=variable)
        np.testing.assert_allclose(losses, expected[f"{name}|losses"], rtol=2e-4)
        for variable, value in zip(names, final):
            found = expected[f"{name}|final|{variable.replace('/', '@')}"]
            np.testing.assert_allclose(value, found, rtol=5e-3, atol=5e-4, err_msg=variable)
