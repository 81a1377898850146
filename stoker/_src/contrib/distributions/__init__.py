"""`tf.contrib.distributions`: distributions over vectors, mixtures, transformed distributions and bijectors."""
