"""Public names of tf.types."""

from stoker.types import experimental as experimental
