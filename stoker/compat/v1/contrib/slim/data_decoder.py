"""Public names of tf.contrib.slim.data_decoder."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.contrib.slim.decoding import DataDecoder as DataDecoder
