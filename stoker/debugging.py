"""Public names of tf.debugging."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.ops.array.value_checks import check_numerics as check_numerics
from stoker._src.ops.control_flow.assertions import assert_op as Assert
from stoker._src.ops.control_flow.debugging import assert_all_finite as assert_all_finite
from stoker._src.ops.control_flow.debugging import assert_equal_v2 as assert_equal
from stoker._src.ops.control_flow.debugging import assert_greater_equal_v2 as assert_greater_equal
from stoker._src.ops.control_flow.debugging import assert_greater_v2 as assert_greater
from stoker._src.ops.control_flow.debugging import assert_integer_v2 as assert_integer
from stoker._src.ops.control_flow.debugging import assert_less_equal_v2 as assert_less_equal
from stoker._src.ops.control_flow.debugging import assert_less_v2 as assert_less
from stoker._src.ops.control_flow.debugging import assert_near_v2 as assert_near
from stoker._src.ops.control_flow.debugging import assert_negative_v2 as assert_negative
from stoker._src.ops.control_flow.debugging import assert_non_negative_v2 as assert_non_negative
from stoker._src.ops.control_flow.debugging import assert_non_positive_v2 as assert_non_positive
from stoker._src.ops.control_flow.debugging import assert_none_equal_v2 as assert_none_equal
from stoker._src.ops.control_flow.debugging import assert_positive_v2 as assert_positive
from stoker._src.ops.control_flow.debugging import assert_proper_iterable as assert_proper_iterable
from stoker._src.ops.control_flow.debugging import assert_rank_at_least_v2 as assert_rank_at_least
from stoker._src.ops.control_flow.debugging import assert_rank_in_v2 as assert_rank_in
from stoker._src.ops.control_flow.debugging import assert_rank_v2 as assert_rank
from stoker._src.ops.control_flow.debugging import assert_same_float_dtype as assert_same_float_dtype
from stoker._src.ops.control_flow.debugging import assert_scalar_v2 as assert_scalar
from stoker._src.ops.control_flow.debugging import assert_type_v2 as assert_type
from stoker._src.ops.control_flow.debugging import get_log_device_placement as get_log_device_placement
from stoker._src.ops.control_flow.debugging import is_numeric_tensor as is_numeric_tensor
from stoker._src.ops.control_flow.debugging import set_log_device_placement as set_log_device_placement
from stoker._src.ops.control_flow.shape_assertions import assert_shapes_v2 as assert_shapes
