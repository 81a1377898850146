"""`tf.contrib`: what 1.x offered beside its stable names."""
