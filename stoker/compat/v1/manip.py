"""Public names of tf.manip."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.ops.array import reshape as reshape
from stoker._src.ops.array_joining import tile as tile
from stoker._src.ops.array_padding import batch_to_space_nd as batch_to_space_nd
from stoker._src.ops.array_padding import space_to_batch_nd as space_to_batch_nd
from stoker._src.ops.array_selection import reverse as reverse
from stoker._src.ops.array_selection import roll as roll
from stoker._src.ops.gathering import gather_nd as gather_nd
from stoker._src.ops.scattering import scatter_nd as scatter_nd
