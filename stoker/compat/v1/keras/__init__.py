"""Public names of tf.keras."""

from stoker.compat.v1.keras import initializers as initializers
