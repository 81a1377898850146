"""Public names of tf.sparse."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.graph.sparse_tensor import SparseTensor as SparseTensor
from stoker._src.ops.accumulators import SparseConditionalAccumulator as SparseConditionalAccumulator
from stoker._src.ops.counting_sparse import sparse_bincount as bincount
from stoker._src.ops.segment_sparse import sparse_segment_mean as segment_mean
from stoker._src.ops.segment_sparse import sparse_segment_sqrt_n as segment_sqrt_n
from stoker._src.ops.segment_sparse import sparse_segment_sum as segment_sum
from stoker._src.ops.sparse import add as add
from stoker._src.ops.sparse import concat as concat
from stoker._src.ops.sparse import expand_dims as expand_dims
from stoker._src.ops.sparse import eye as eye
from stoker._src.ops.sparse import fill_empty_rows as fill_empty_rows
from stoker._src.ops.sparse import from_dense as from_dense
from stoker._src.ops.sparse import mask as mask
from stoker._src.ops.sparse import maximum as maximum
from stoker._src.ops.sparse import merge as merge
from stoker._src.ops.sparse import minimum as minimum
from stoker._src.ops.sparse import reduce_max as reduce_max
from stoker._src.ops.sparse import reduce_max_sparse as reduce_max_sparse
from stoker._src.ops.sparse import reduce_sum as reduce_sum
from stoker._src.ops.sparse import reduce_sum_sparse as reduce_sum_sparse
from stoker._src.ops.sparse import reorder as reorder
from stoker._src.ops.sparse import reset_shape as reset_shape
from stoker._src.ops.sparse import reshape as reshape
from stoker._src.ops.sparse import retain as retain
from stoker._src.ops.sparse import slice as slice
from stoker._src.ops.sparse import softmax as softmax
from stoker._src.ops.sparse import sparse_dense_matmul as matmul
from stoker._src.ops.sparse import sparse_dense_matmul as sparse_dense_matmul
from stoker._src.ops.sparse import sparse_placeholder as placeholder
from stoker._src.ops.sparse import split as split
from stoker._src.ops.sparse import to_dense as to_dense
from stoker._src.ops.sparse import to_indicator as to_indicator
from stoker._src.ops.sparse import transpose as transpose
from stoker._src.ops.sparse_features import cross as cross
from stoker._src.ops.sparse_features import cross_hashed as cross_hashed
