"""Public names of tf.keras.layers."""

from stoker._src.layers.base import InputSpec as InputSpec
