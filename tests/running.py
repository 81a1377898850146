"""Short ways to compute in tests of behaviour, in a session of their own."""

from __future__ import annotations

import numpy as np

import stoker.compat.v1 as tf


def run(fetches, feeds=None):
    """Fetches from the default graph."""
    with tf.Session() as session:
        return session.run(fetches, feeds)


def run_initialized(fetches, feeds=None):
    """The same, once variables are initialized."""
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches, feeds)


def run_built(build):
    """What `build()` makes in a graph of its own."""
    with tf.Graph().as_default():
        return run(build())


def slope_and_differences(build, value, shape):
    """The gradient of `build` at a few places of `value`, and the finite differences there."""
    x = tf.placeholder_with_default(value, shape)
    total = tf.reduce_sum(tf.sin(build(x)))
    gradient = tf.gradients(total, x)[0]
    found, expected = [], []
    with tf.Session() as session:
        whole = session.run(gradient)
        for place in list(np.ndindex(value.shape))[:: max(1, value.size // 5)]:
            step = np.zeros_like(value)
            step[place] = 1e-5
            expected.append((session.run(total, {x: value + step}) - session.run(total, {x: value - step})) / 2e-5)
            found.append(whole[place])
    return found, expected
