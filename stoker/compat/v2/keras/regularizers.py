"""Public names of tf.keras.regularizers."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.ops.variables.regularizers import KerasRegularizer as Regularizer
from stoker._src.ops.variables.regularizers import L1 as L1
from stoker._src.ops.variables.regularizers import L1 as l1
from stoker._src.ops.variables.regularizers import l1_l2 as l1_l2
from stoker._src.ops.variables.regularizers import L1L2 as L1L2
from stoker._src.ops.variables.regularizers import L2 as L2
from stoker._src.ops.variables.regularizers import L2 as l2
