"""Public names of tf.linalg."""

from stoker._src.ops.clip import global_norm as global_norm
from stoker._src.ops.linalg import matmul as matmul
from stoker._src.ops.math import cross as cross
from stoker._src.ops.nn.moments import l2_normalize_v2 as l2_normalize
