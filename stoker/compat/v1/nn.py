"""Public names of tf.nn."""

from stoker._src.ops.counting import zero_fraction as zero_fraction
from stoker._src.ops.math_unary import sigmoid as sigmoid
from stoker._src.ops.math_unary import tanh as tanh
from stoker._src.ops.nn import relu as relu
from stoker._src.ops.sorting import in_top_k as in_top_k
from stoker._src.ops.sorting import top_k as top_k
