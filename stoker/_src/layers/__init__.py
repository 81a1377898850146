"""`tf.layers`, `tf.losses`, `tf.metrics` and recurrent networks: compositions of ops that own variables."""
