"""Public names of tf.contrib.lookup."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.ops.resources.tables import DenseHashTable as MutableDenseHashTable
from stoker._src.ops.resources.tables import FastHashSpec as FastHashSpec
from stoker._src.ops.resources.tables import HasherSpec as HasherSpec
from stoker._src.ops.resources.tables import HashTable as HashTable
from stoker._src.ops.resources.tables import IdTableWithHashBuckets as IdTableWithHashBuckets
from stoker._src.ops.resources.tables import InitializableLookupTableBase as InitializableLookupTableBase
from stoker._src.ops.resources.tables import KeyValueTensorInitializer as KeyValueTensorInitializer
from stoker._src.ops.resources.tables import LookupInterface as LookupInterface
from stoker._src.ops.resources.tables import MutableHashTable as MutableHashTable
from stoker._src.ops.resources.tables import StrongHashSpec as StrongHashSpec
from stoker._src.ops.resources.tables import TableInitializerBase as TableInitializerBase
from stoker._src.ops.resources.tables import TextFileIdTableInitializer as TextFileIdTableInitializer
from stoker._src.ops.resources.tables import TextFileIndex as TextFileIndex
from stoker._src.ops.resources.tables import TextFileInitializer as TextFileInitializer
from stoker._src.ops.resources.tables import TextFileStringTableInitializer as TextFileStringTableInitializer
from stoker._src.ops.resources.vocabularies import index_table_from_file as index_table_from_file
from stoker._src.ops.resources.vocabularies import index_table_from_tensor as index_table_from_tensor
from stoker._src.ops.resources.vocabularies import index_to_string as index_to_string
from stoker._src.ops.resources.vocabularies import index_to_string_table_from_file as index_to_string_table_from_file
from stoker._src.ops.resources.vocabularies import index_to_string_table_from_tensor as index_to_string_table_from_tensor
from stoker._src.ops.resources.vocabularies import string_to_index as string_to_index
from stoker._src.ops.resources.vocabularies import string_to_index_table_from_file as string_to_index_table_from_file
from stoker._src.ops.resources.vocabularies import string_to_index_table_from_tensor as string_to_index_table_from_tensor
