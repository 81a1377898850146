"""Public names of tf.nn."""

from stoker._src.ops.array_padding import depth_to_space_v2 as depth_to_space
from stoker._src.ops.array_padding import space_to_batch_v2 as space_to_batch
from stoker._src.ops.array_padding import space_to_depth_v2 as space_to_depth
from stoker._src.ops.math_unary import sigmoid as sigmoid
from stoker._src.ops.math_unary import tanh as tanh
from stoker._src.ops.nn import relu as relu
