"""`tf.data`: datasets, iterators and the functions around them. The ops are in ops/dataset."""
