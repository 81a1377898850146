"""Random ops whose numbers are TensorFlow's for the same seeds."""
