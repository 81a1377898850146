"""Public names of tf.keras.layers."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.feature_column.layers import DenseFeatures as DenseFeatures
from stoker._src.layers.base import InputSpec as InputSpec
