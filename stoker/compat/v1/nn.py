"""Public names of tf.nn."""

from stoker._src.ops.array_padding import depth_to_space as depth_to_space
from stoker._src.ops.array_padding import space_to_batch as space_to_batch
from stoker._src.ops.array_padding import space_to_depth as space_to_depth
from stoker._src.ops.math_unary import sigmoid as sigmoid
from stoker._src.ops.math_unary import tanh as tanh
from stoker._src.ops.nn import relu as relu
