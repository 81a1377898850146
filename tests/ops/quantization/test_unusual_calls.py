"""Legal calls that programs make now and then, and edges of their values: the numbers are TensorFlow 2.21's."""

import numpy as np
import pytest

import stoker.compat.v1 as tf


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as opened:
        yield opened


def test_fake_quantization_of_a_range_turned_around(session):
    """Where the minimum is above the maximum, everything becomes the (moved) minimum."""
    found = session.run(tf.fake_quant_with_min_max_vars([-2.0, 0.0, 2.0], 0.38, -0.48))
    np.testing.assert_allclose(found, [0.38109803] * 3, rtol=1e-6)
