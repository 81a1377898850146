"""Public names of tf.keras.preprocessing.text."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.keras.preprocessing.text import hashing_trick as hashing_trick
from stoker._src.keras.preprocessing.text import one_hot as one_hot
from stoker._src.keras.preprocessing.text import text_to_word_sequence as text_to_word_sequence
from stoker._src.keras.preprocessing.text import Tokenizer as Tokenizer
from stoker._src.keras.preprocessing.text import tokenizer_from_json as tokenizer_from_json
