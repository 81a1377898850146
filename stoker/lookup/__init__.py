"""Public names of tf.lookup."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker.lookup import experimental as experimental
from stoker._src.ops.lookup import KeyValueTensorInitializer as KeyValueTensorInitializer
from stoker._src.ops.lookup import StaticHashTable as StaticHashTable
from stoker._src.ops.lookup import StaticVocabularyTable as StaticVocabularyTable
from stoker._src.ops.lookup import TextFileIndex as TextFileIndex
from stoker._src.ops.lookup import TextFileInitializer as TextFileInitializer
