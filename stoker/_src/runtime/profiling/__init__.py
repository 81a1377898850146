"""`tf.profiler`: options, numbers of ops, views of a graph, and reports."""
