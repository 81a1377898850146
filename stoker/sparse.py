"""Public names of tf.sparse."""

from stoker._src.graph.sparse_tensor import SparseTensor as SparseTensor
