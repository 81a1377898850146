"""Public names of tf.keras.datasets.reuters."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.keras.datasets import get_reuters_word_index as get_word_index
from stoker._src.keras.datasets import load_reuters as load_data
