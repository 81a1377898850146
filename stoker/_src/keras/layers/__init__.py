"""The layers of `tf.keras.layers`."""
