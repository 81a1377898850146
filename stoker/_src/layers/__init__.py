"""`tf.layers`, `tf.losses`, `tf.metrics` and recurrent networks: compositions of ops that own variables."""

from stoker._src import ops as ops  # the layers need all ops
