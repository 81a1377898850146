"""Random programs whose values are compared: stoker's compiled steps, its plain kernels, and TensorFlow."""
