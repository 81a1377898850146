"""Public names of tf.keras.datasets.imdb."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.keras.datasets import get_imdb_word_index as get_word_index
from stoker._src.keras.datasets import load_imdb as load_data
