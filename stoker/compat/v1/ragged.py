"""Public names of tf.ragged."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.ops.ragged.ragged_features import cross as cross
from stoker._src.ops.ragged.ragged_features import cross_hashed as cross_hashed
from stoker._src.ops.ragged.ragged_functions import boolean_mask as boolean_mask
from stoker._src.ops.ragged.ragged_functions import constant as constant
from stoker._src.ops.ragged.ragged_functions import constant_value_of_lists as constant_value
from stoker._src.ops.ragged.ragged_functions import map_flat_values as map_flat_values
from stoker._src.ops.ragged.ragged_functions import placeholder as placeholder
from stoker._src.ops.ragged.ragged_functions import ragged_range as range
from stoker._src.ops.ragged.ragged_functions import stack as stack
from stoker._src.ops.ragged.ragged_functions import stack_dynamic_partitions as stack_dynamic_partitions
from stoker._src.ops.ragged.ragged_tensor import row_splits_to_segment_ids as row_splits_to_segment_ids
from stoker._src.ops.ragged.ragged_tensor import segment_ids_to_row_splits as segment_ids_to_row_splits
from stoker._src.ops.ragged.ragged_value import RaggedTensorValue as RaggedTensorValue
