"""Public names of tf.sparse."""

from stoker._src.graph.sparse_tensor import SparseTensor as SparseTensor
from stoker._src.ops.segment_sparse import sparse_segment_mean as segment_mean
from stoker._src.ops.segment_sparse import sparse_segment_sqrt_n as segment_sqrt_n
from stoker._src.ops.segment_sparse import sparse_segment_sum as segment_sum
