"""Public names of tf.lookup.experimental."""

from stoker._src.ops.lookup import DenseHashTable as DenseHashTable
from stoker._src.ops.lookup import MutableHashTable as MutableHashTable
