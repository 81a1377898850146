"""Public names of tf.estimator.inputs."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.estimator.array_inputs import numpy_input_fn as numpy_input_fn
from stoker._src.estimator.array_inputs import pandas_input_fn as pandas_input_fn
