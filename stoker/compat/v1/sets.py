"""Public names of tf.sets."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.ops.sparse.sets import set_difference as difference
from stoker._src.ops.sparse.sets import set_difference as set_difference
from stoker._src.ops.sparse.sets import set_intersection as intersection
from stoker._src.ops.sparse.sets import set_intersection as set_intersection
from stoker._src.ops.sparse.sets import set_size as set_size
from stoker._src.ops.sparse.sets import set_size as size
from stoker._src.ops.sparse.sets import set_union as set_union
from stoker._src.ops.sparse.sets import set_union as union
