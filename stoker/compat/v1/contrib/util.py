"""Public names of tf.contrib.util."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.graph.public import get_static_value as constant_value
from stoker._src.ops.io.tensor_messages import make_ndarray as make_ndarray
from stoker._src.ops.io.tensor_messages import make_tensor_proto as make_tensor_proto
