"""`tf.keras`: layers, models, optimizers, losses, metrics and callbacks. README.md says what stands where."""
