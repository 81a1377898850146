"""Builds graphs from saved Keras models: each layer becomes ops, with its weights as constants."""
