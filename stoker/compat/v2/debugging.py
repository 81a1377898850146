"""Public names of tf.debugging."""

from stoker._src.ops.array_checks import check_numerics as check_numerics
from stoker._src.ops.assertions import assert_op as Assert
