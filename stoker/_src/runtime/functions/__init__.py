"""Functions: the bodies that ops call, compiled to steps, and `tf.function`."""
