"""Public names of tf.debugging."""

from stoker._src.ops.array_checks import check_numerics as check_numerics
from stoker._src.ops.assertions import assert_op as Assert
from stoker._src.ops.comparison import is_non_decreasing as is_non_decreasing
from stoker._src.ops.comparison import is_strictly_increasing as is_strictly_increasing
from stoker._src.ops.math_unary import is_finite as is_finite
from stoker._src.ops.math_unary import is_inf as is_inf
from stoker._src.ops.math_unary import is_nan as is_nan
