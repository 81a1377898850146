"""Functions: bodies of ops compiled to steps, and `tf.function`."""
