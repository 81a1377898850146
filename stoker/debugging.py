"""Public names of tf.debugging."""

from stoker._src.ops.assertions import assert_op as Assert
