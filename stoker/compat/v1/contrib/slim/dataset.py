"""Public names of tf.contrib.slim.dataset."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.contrib.slim.reading import Dataset as Dataset
