"""Short ways to compute in tests of behaviour, in a session of their own."""

from __future__ import annotations

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
