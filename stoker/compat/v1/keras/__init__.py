"""Public names of tf.keras."""

# Written by scripts/api_gen.py.
# fmt: off
from stoker.compat.v1.keras import experimental as experimental
from stoker.compat.v1.keras import initializers as initializers
from stoker.compat.v1.keras import layers as layers
from stoker.compat.v1.keras import regularizers as regularizers
