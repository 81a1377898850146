"""Public names of tf.manip."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.ops.array.gathering import gather_nd as gather_nd
from stoker._src.ops.array.joining import tile as tile
from stoker._src.ops.array.pads import batch_to_space_nd as batch_to_space_nd
from stoker._src.ops.array.pads import space_to_batch_nd as space_to_batch_nd
from stoker._src.ops.array.scattering import scatter_nd as scatter_nd
from stoker._src.ops.array.selection import reverse as reverse
from stoker._src.ops.array.selection import roll as roll
from stoker._src.ops.array.shaping import reshape as reshape
