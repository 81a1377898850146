"""Public names of tf.nest."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.base.nest import assert_same_structure as assert_same_structure
from stoker._src.base.nest import flatten as flatten
from stoker._src.base.nest import is_nested as is_nested
from stoker._src.base.nest import map_structure as map_structure
from stoker._src.base.nest import pack_sequence_as as pack_sequence_as
