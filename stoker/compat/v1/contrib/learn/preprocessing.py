"""Public names of tf.contrib.learn.preprocessing."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.contrib.learn.preprocessing import ByteProcessor as ByteProcessor
from stoker._src.contrib.learn.preprocessing import CategoricalVocabulary as CategoricalVocabulary
from stoker._src.contrib.learn.preprocessing import tokenizer as tokenizer
from stoker._src.contrib.learn.preprocessing import VocabularyProcessor as VocabularyProcessor
