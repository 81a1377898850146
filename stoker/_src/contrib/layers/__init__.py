"""`tf.contrib.layers`: layers as functions, with initializers, normalizers, regularizers and collections as arguments."""
