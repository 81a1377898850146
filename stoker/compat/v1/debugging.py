"""Public names of tf.debugging."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.ops.array.value_checks import check_numerics as check_numerics
from stoker._src.ops.control_flow.assertions import assert_op as Assert
from stoker._src.ops.control_flow.debugging import assert_equal as assert_equal
from stoker._src.ops.control_flow.debugging import assert_greater as assert_greater
from stoker._src.ops.control_flow.debugging import assert_greater_equal as assert_greater_equal
from stoker._src.ops.control_flow.debugging import assert_integer as assert_integer
from stoker._src.ops.control_flow.debugging import assert_less as assert_less
from stoker._src.ops.control_flow.debugging import assert_less_equal as assert_less_equal
from stoker._src.ops.control_flow.debugging import assert_near as assert_near
from stoker._src.ops.control_flow.debugging import assert_negative as assert_negative
from stoker._src.ops.control_flow.debugging import assert_non_negative as assert_non_negative
from stoker._src.ops.control_flow.debugging import assert_non_positive as assert_non_positive
from stoker._src.ops.control_flow.debugging import assert_none_equal as assert_none_equal
from stoker._src.ops.control_flow.debugging import assert_positive as assert_positive
from stoker._src.ops.control_flow.debugging import assert_proper_iterable as assert_proper_iterable
from stoker._src.ops.control_flow.debugging import assert_rank as assert_rank
from stoker._src.ops.control_flow.debugging import assert_rank_at_least as assert_rank_at_least
from stoker._src.ops.control_flow.debugging import assert_rank_in as assert_rank_in
from stoker._src.ops.control_flow.debugging import assert_same_float_dtype as assert_same_float_dtype
from stoker._src.ops.control_flow.debugging import assert_scalar as assert_scalar
from stoker._src.ops.control_flow.debugging import assert_type as assert_type
from stoker._src.ops.control_flow.debugging import get_log_device_placement as get_log_device_placement
from stoker._src.ops.control_flow.debugging import is_numeric_tensor as is_numeric_tensor
from stoker._src.ops.control_flow.debugging import set_log_device_placement as set_log_device_placement
from stoker._src.ops.control_flow.debugging import verify_tensor_all_finite as assert_all_finite
from stoker._src.ops.control_flow.shape_assertions import assert_shapes as assert_shapes
from stoker._src.ops.math.comparison import is_non_decreasing as is_non_decreasing
from stoker._src.ops.math.comparison import is_strictly_increasing as is_strictly_increasing
from stoker._src.ops.math.unary_functions import is_finite as is_finite
from stoker._src.ops.math.unary_functions import is_inf as is_inf
from stoker._src.ops.math.unary_functions import is_nan as is_nan
