"""Public names of tf.keras.datasets.cifar10."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.keras.datasets import load_cifar10 as load_data
