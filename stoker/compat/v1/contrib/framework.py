"""Public names of tf.contrib.framework."""

from stoker._src.graph.conversion import is_tensor as is_tensor
from stoker._src.ops.initializers import ConvolutionDeltaOrthogonal as convolutional_delta_orthogonal
