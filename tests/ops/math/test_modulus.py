"""The modulus of complex numbers is rounded correctly, with and without the extension."""

from unittest import mock

import numpy as np
import pytest
import torch

import stoker.compat.v1 as tf
from stoker._src.ops.math import unary_functions

EDGES = [0.0, -0.0, 1e-45, 1e-38, 3e-20, 1.0, -2e19, 3e38, np.inf, -np.inf, np.nan]


@pytest.mark.parametrize("native", [True, False])
def test_moduli_of_all_sizes(native):
    """Neither tiny nor huge parts spoil the modulus (subnormal results are zero); it is infinite if a part is, and else NaN if a part is."""
    random = np.random.RandomState(0)
    parts = random.randn(2, 9000) * 10.0 ** random.randint(-30, 30, (2, 9000))
    x = np.concatenate([parts[0] + 1j * parts[1], [complex(a, b) for a in EDGES for b in EDGES]]).astype(np.complex64)
    if native:
        with tf.Graph().as_default(), tf.Session() as session:
            given = tf.placeholder(tf.complex64, [None])
            found, other = session.run([tf.abs(given), tf.abs(given[::-1])], {given: x})
    else:  # a run with C extensions, in which subnormal results are zero, has this one, too
        with mock.patch.object(unary_functions, "_modulus", None):
            kernel = unary_functions.complex_abs_kernel
            found, other = (kernel(torch.from_numpy(each)).numpy() for each in (x, x[::-1].copy()))
    with np.errstate(over="ignore"):
        expected = np.hypot(x.real.astype("d"), x.imag.astype("d")).astype("f")
    np.testing.assert_allclose(found, expected, rtol=2e-7, atol=1.2e-38)
    np.testing.assert_array_equal(other, found[::-1])


def test_a_number():
    """A single complex number has a modulus without dimensions."""
    with tf.Graph().as_default(), tf.Session() as session:
        assert session.run(tf.abs(tf.placeholder_with_default(np.complex64(3 - 4j), []))) == 5.0
