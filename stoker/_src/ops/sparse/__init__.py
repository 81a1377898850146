"""Sparse tensors: their ops and the functions of `tf.sparse`."""
