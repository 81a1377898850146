"""TensorFlow's random numbers as plain functions of a Philox stream. See README.md."""
