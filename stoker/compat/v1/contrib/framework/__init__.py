"""Public names of tf.contrib.framework."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker.compat.v1.contrib.framework import nest as nest
from stoker._src.graph.conversion import is_tensor as is_tensor
from stoker._src.ops.variables.initializers import ConvolutionDeltaOrthogonal as convolutional_delta_orthogonal
