"""Ragged tensors: their ops and the functions of `tf.ragged`."""
