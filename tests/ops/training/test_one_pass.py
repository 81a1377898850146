"""Updates that native loops do in one pass have the values of the same rule computed op by op."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stoker.compat.v1 as tf
from stoker._src.ops.training import rules


def _trained(optimizer, start, gradients):
    with tf.Graph().as_default(), tf.Session() as session:
        variable, gradient = tf.Variable(start), tf.placeholder(tf.float32, start.shape)
        made = optimizer()
        step = made.apply_gradients([(gradient, variable)])
        session.run(tf.global_variables_initializer())
        for each in gradients:
            session.run(step, {gradient: each})
        return [
            session.run(tensor) for tensor in (variable, made.get_slot(variable, "m"), made.get_slot(variable, "v"))
        ]


@pytest.mark.skipif(rules.native is None, reason="built without the C extension")
@settings(max_examples=15, deadline=None)
@given(
    st.sampled_from([(1,), (7,), (33, 5), (16_384,), (20_001,)]),
    st.sampled_from([0.0, 0.1, 0.5]),
    st.sampled_from([0.4, 0.9, 0.999]),
    st.integers(0, 100),
)
def test_adam_with_any_decay_is_the_same_in_one_pass(shape, beta1, beta2, seed):
    """Decays of one half and less, as programs for GANs use them, give the same moments, bit by bit, with and without the native loop.

    torch's square root is not always the nearest number, so that the variable may differ in its last bit after each step.
    """
    random = np.random.RandomState(seed)
    start = random.randn(*shape).astype(np.float32)
    gradients = [(random.randn(*shape) * 10.0 ** random.randint(-6, 3)).astype(np.float32) for _ in range(3)]

    def optimizer():
        return tf.train.AdamOptimizer(0.01, beta1, beta2)

    found = _trained(optimizer, start, gradients)
    native, rules.native = rules.native, None
    try:
        expected = _trained(optimizer, start, gradients)
    finally:
        rules.native = native
    np.testing.assert_array_equal(found[1:], expected[1:])
    np.testing.assert_allclose(found[0], expected[0], rtol=3e-7, atol=3e-7)
