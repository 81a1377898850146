"""Public names of tf.contrib.lookup."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.ops.lookup import DenseHashTable as MutableDenseHashTable
from stoker._src.ops.lookup import FastHashSpec as FastHashSpec
from stoker._src.ops.lookup import HasherSpec as HasherSpec
from stoker._src.ops.lookup import HashTable as HashTable
from stoker._src.ops.lookup import IdTableWithHashBuckets as IdTableWithHashBuckets
from stoker._src.ops.lookup import InitializableLookupTableBase as InitializableLookupTableBase
from stoker._src.ops.lookup import KeyValueTensorInitializer as KeyValueTensorInitializer
from stoker._src.ops.lookup import LookupInterface as LookupInterface
from stoker._src.ops.lookup import MutableHashTable as MutableHashTable
from stoker._src.ops.lookup import StrongHashSpec as StrongHashSpec
from stoker._src.ops.lookup import TableInitializerBase as TableInitializerBase
from stoker._src.ops.lookup import TextFileIdTableInitializer as TextFileIdTableInitializer
from stoker._src.ops.lookup import TextFileIndex as TextFileIndex
from stoker._src.ops.lookup import TextFileInitializer as TextFileInitializer
from stoker._src.ops.lookup import TextFileStringTableInitializer as TextFileStringTableInitializer
from stoker._src.ops.lookup_vocabularies import index_table_from_file as index_table_from_file
from stoker._src.ops.lookup_vocabularies import index_table_from_tensor as index_table_from_tensor
from stoker._src.ops.lookup_vocabularies import index_to_string as index_to_string
from stoker._src.ops.lookup_vocabularies import index_to_string_table_from_file as index_to_string_table_from_file
from stoker._src.ops.lookup_vocabularies import index_to_string_table_from_tensor as index_to_string_table_from_tensor
from stoker._src.ops.lookup_vocabularies import string_to_index as string_to_index
from stoker._src.ops.lookup_vocabularies import string_to_index_table_from_file as string_to_index_table_from_file
from stoker._src.ops.lookup_vocabularies import string_to_index_table_from_tensor as string_to_index_table_from_tensor
