"""The package's version and the TensorFlow version its API answers to."""

VERSION = "0.1.0"
API_VERSION_1 = "1.15.5"
API_VERSION_2 = "2.21.0"
