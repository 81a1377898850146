"""Public names of tf.lookup.experimental."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.ops.resources.tables import DenseHashTable as DenseHashTable
from stoker._src.ops.resources.tables import MutableHashTable as MutableHashTable
