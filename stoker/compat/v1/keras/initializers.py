"""Public names of tf.keras.initializers."""

from stoker._src.ops.initializers import Initializer as Initializer
from stoker._src.ops.initializers import Orthogonal as Orthogonal
