"""Public names of tf.sparse."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.graph.sparse_tensor import SparseTensor as SparseTensor
from stoker._src.ops.math.sparse_segment_reductions import sparse_segment_mean_v2 as segment_mean
from stoker._src.ops.math.sparse_segment_reductions import sparse_segment_sqrt_n_v2 as segment_sqrt_n
from stoker._src.ops.math.sparse_segment_reductions import sparse_segment_sum_v2 as segment_sum
from stoker._src.ops.ragged.ragged_counting import sparse_bincount as bincount
from stoker._src.ops.sparse.sparse_features import cross as cross
from stoker._src.ops.sparse.sparse_features import cross_hashed as cross_hashed
from stoker._src.ops.sparse.sparse_functions import add_v2 as add
from stoker._src.ops.sparse.sparse_functions import concat_v2 as concat
from stoker._src.ops.sparse.sparse_functions import expand_dims as expand_dims
from stoker._src.ops.sparse.sparse_functions import eye as eye
from stoker._src.ops.sparse.sparse_functions import fill_empty_rows as fill_empty_rows
from stoker._src.ops.sparse.sparse_functions import from_dense as from_dense
from stoker._src.ops.sparse.sparse_functions import map_values as map_values
from stoker._src.ops.sparse.sparse_functions import mask as mask
from stoker._src.ops.sparse.sparse_functions import maximum as maximum
from stoker._src.ops.sparse.sparse_functions import minimum as minimum
from stoker._src.ops.sparse.sparse_functions import reduce_max_v2 as reduce_max
from stoker._src.ops.sparse.sparse_functions import reduce_sum_v2 as reduce_sum
from stoker._src.ops.sparse.sparse_functions import reorder as reorder
from stoker._src.ops.sparse.sparse_functions import reset_shape as reset_shape
from stoker._src.ops.sparse.sparse_functions import reshape as reshape
from stoker._src.ops.sparse.sparse_functions import retain as retain
from stoker._src.ops.sparse.sparse_functions import slice as slice
from stoker._src.ops.sparse.sparse_functions import softmax as softmax
from stoker._src.ops.sparse.sparse_functions import sparse_dense_matmul as sparse_dense_matmul
from stoker._src.ops.sparse.sparse_functions import split_v2 as split
from stoker._src.ops.sparse.sparse_functions import to_dense as to_dense
from stoker._src.ops.sparse.sparse_functions import to_indicator as to_indicator
from stoker._src.ops.sparse.sparse_functions import transpose as transpose
