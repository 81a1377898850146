"""Public names of tf.sparse."""

from stoker._src.graph.sparse_tensor import SparseTensor as SparseTensor
from stoker._src.ops.segment_sparse import sparse_segment_mean_v2 as segment_mean
from stoker._src.ops.segment_sparse import sparse_segment_sqrt_n_v2 as segment_sqrt_n
from stoker._src.ops.segment_sparse import sparse_segment_sum_v2 as segment_sum
