"""Public names of tf.keras.initializers."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker._src.ops.variables.initializers import Initializer as Initializer
from stoker._src.ops.variables.initializers import Orthogonal as Orthogonal
