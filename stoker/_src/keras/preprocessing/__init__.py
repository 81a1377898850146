"""`tf.keras.preprocessing`: sequences, text and images as arrays. Everything here is NumPy; nothing needs a graph."""
