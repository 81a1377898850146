"""Public names of tf.keras.datasets.boston_housing."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.keras.datasets import load_boston_housing as load_data
