"""Public names of tf.nn."""

from stoker._src.ops.math import tanh as tanh
from stoker._src.ops.nn import relu as relu
