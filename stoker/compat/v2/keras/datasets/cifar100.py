"""Public names of tf.keras.datasets.cifar100."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.keras.datasets import load_cifar100 as load_data
