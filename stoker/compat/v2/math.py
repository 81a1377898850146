"""Public names of tf.math."""

from stoker._src.ops.array import invert_permutation as invert_permutation
from stoker._src.ops.math import add as add
from stoker._src.ops.math import add_n as add_n
from stoker._src.ops.math import conj as conj
from stoker._src.ops.math import exp as exp
from stoker._src.ops.math import floordiv as floordiv
from stoker._src.ops.math import log as log
from stoker._src.ops.math import maximum as maximum
from stoker._src.ops.math import multiply as multiply
from stoker._src.ops.math import negative as negative
from stoker._src.ops.math import sqrt as sqrt
from stoker._src.ops.math import square as square
from stoker._src.ops.math import subtract as subtract
from stoker._src.ops.math import tanh as tanh
from stoker._src.ops.math import truediv as truediv
from stoker._src.ops.nn.activations import softplus as softplus
from stoker._src.ops.nn.bias import zero_fraction as zero_fraction
from stoker._src.ops.nn.softmax import log_softmax_v2 as log_softmax
from stoker._src.ops.nn.softmax import softmax_v2 as softmax
from stoker._src.ops.reductions import reduce_mean as reduce_mean
from stoker._src.ops.reductions import reduce_sum as reduce_sum
