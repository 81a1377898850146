"""Public names of tf.nn."""

from stoker._src.ops.math_unary import sigmoid as sigmoid
from stoker._src.ops.math_unary import tanh as tanh
from stoker._src.ops.nn import relu as relu
