"""Public names of tf.debugging."""

from stoker._src.ops.array_checks import check_numerics as check_numerics
