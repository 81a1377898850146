"""Public names of tf.types."""

from stoker.compat.v1.types import experimental as experimental
