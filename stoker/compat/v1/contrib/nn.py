"""Public names of tf.contrib.nn."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.ops.math.sorting import nth_element as nth_element
from stoker._src.ops.nn.conv_api import conv1d_transpose as conv1d_transpose
