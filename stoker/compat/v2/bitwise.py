"""Public names of tf.bitwise."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.ops.math.bitwise import bitwise_and as bitwise_and
from stoker._src.ops.math.bitwise import bitwise_or as bitwise_or
from stoker._src.ops.math.bitwise import bitwise_xor as bitwise_xor
from stoker._src.ops.math.bitwise import invert as invert
from stoker._src.ops.math.bitwise import left_shift as left_shift
from stoker._src.ops.math.bitwise import right_shift as right_shift
