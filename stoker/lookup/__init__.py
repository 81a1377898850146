"""Public names of tf.lookup."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker.lookup import experimental as experimental
from stoker._src.ops.resources.tables import KeyValueTensorInitializer as KeyValueTensorInitializer
from stoker._src.ops.resources.tables import StaticHashTable as StaticHashTable
from stoker._src.ops.resources.tables import StaticVocabularyTable as StaticVocabularyTable
from stoker._src.ops.resources.tables import TextFileIndex as TextFileIndex
from stoker._src.ops.resources.tables import TextFileInitializer as TextFileInitializer
