"""Public names of tf.types."""

from stoker.compat.v2.types import experimental as experimental
