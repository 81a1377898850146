"""Public names of tf.contrib.util."""

from stoker._src.graph.static_values import constant_value as constant_value
