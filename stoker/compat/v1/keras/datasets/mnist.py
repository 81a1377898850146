"""Public names of tf.keras.datasets.mnist."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.keras.datasets import load_mnist as load_data
