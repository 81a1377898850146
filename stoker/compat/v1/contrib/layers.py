"""Public names of tf.contrib.layers."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.ops.math.counting import bucketize as bucketize
from stoker._src.ops.variables.regularizers import apply_regularization as apply_regularization
from stoker._src.ops.variables.regularizers import l1_l2_regularizer as l1_l2_regularizer
from stoker._src.ops.variables.regularizers import l1_regularizer as l1_regularizer
from stoker._src.ops.variables.regularizers import l2_regularizer as l2_regularizer
from stoker._src.ops.variables.regularizers import sum_regularizer as sum_regularizer
from stoker._src.ops.variables.regularizers import variance_scaling_initializer as variance_scaling_initializer
from stoker._src.ops.variables.regularizers import xavier_initializer as xavier_initializer
from stoker._src.ops.variables.regularizers import xavier_initializer as xavier_initializer_conv2d
