"""Ten small networks, forward and gradients, against TensorFlow's recorded results."""

import pathlib

import numpy as np
import pytest

import stoker.compat.v1 as tf
from tests.golden.nn import networks

GOLDEN = pathlib.Path(networks.__file__).with_name("tf2.npz")


@pytest.mark.parametrize("seed", range(len(networks.NETWORKS)), ids=[n.__name__ for n in networks.NETWORKS])
def test_network(seed) -> None:
    """Outputs and the gradients of all weights agree with TensorFlow's to 1e-5."""
    found = networks.results(tf, networks.NETWORKS[seed], seed)
    with np.load(GOLDEN) as recorded:
        for name, value in found.items():
            scale = max(1.0, float(np.abs(recorded[name]).max()))
            np.testing.assert_allclose(value / scale, recorded[name] / scale, rtol=1e-5, atol=1e-5, err_msg=name)
