"""Variables: their ops, `tf.Variable`, scopes, initializers, `tf.Module`."""
